/* period.c - the options that every detector section has. */
#include <sluice/detector.h>

const struct sl_option sl_detector_options[] = {
	SL_U32(struct sl_detector_options, modules, 1, 1, 64, "modules",
	       "how many modules a frame has"),
	SL_U64(struct sl_detector_options, frames, 1000, 0, 1e12, "frames",
	       "frames in the run, after the dark ones; 0: until it is stopped, or all that a "
	       "recording has"),
	SL_U64(struct sl_detector_options, dark_frames, 0, 0, 1e9, "frames",
	       "dark frames sent first: pedestals are measured from them"),
	SL_U32(struct sl_detector_options, dark_every, 0, 0, 1e6, "frames",
	       "a chopper: of the frames after those, one in so many is dark too; 0: none, 2: dark "
	       "and bright in turn"),
	SL_F64(struct sl_detector_options, frame_rate_Hz, 0, 0, 1e7, "Hz",
	       "frames per second; 0: as fast as credits allow"),
	SL_U64(struct sl_detector_options, seed, 1, 0, 9007199254740992., "",
	       "synthetic frames are a function of it"),
	SL_OPTION_END};

uint64_t sl_detector_frames(const struct sl_detector_options *run,
			    const struct sl_geometry *geometry)
{
	if (run->frames)
		return run->dark_frames + run->frames;
	return geometry->frames ? geometry->frames : UINT64_MAX;
}

struct sl_darks sl_detector_darks(const struct sl_detector_options *run)
{
	uint32_t every = run->dark_every;
	struct sl_darks darks = {.first = run->dark_frames, .every = every};

	if (!every)
		return darks;
	darks.step = run->chopper_step ? run->chopper_step % every : 1;
	darks.phase = run->chopper_step ? run->chopper_phase % every
					: (every - (uint32_t)(run->dark_frames % every)) % every;
	return darks;
}

uint64_t sl_detector_period_ns(const struct sl_detector_options *run)
{
	double period;

	if (!(run->frame_rate_Hz > 0))
		return 1000000;
	period = 1e9 / run->frame_rate_Hz;
	if (period < 1)
		return 1;
	return period < 1e18 ? (uint64_t)(period + 0.5) : (uint64_t)1e18;
}
