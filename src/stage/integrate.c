/* integrate.c - azimuthal integration: the mean of what pixels at the same distance from the beam
 * count, with its error.
 *
 *   intensity(bin) = sum of signal / sum of norm        over the valid pixels of the bin
 *   sigma(bin)     = sqrt(sum of variance) / sum of norm, variance = signal (Poisson)
 *
 * A pixel counts whole in the bin that its middle lies in. Bad pixels and overloads of the frame
 * (INT16_MIN and INT16_MAX, NaN and infinity, the largest number of an unsigned image) are left
 * out, with their norm. A bin without a valid pixel is NaN. Counts are added as integers, so that
 * the result does not depend on tiles, workers or vectors; keV are added as doubles.
 *
 * Adds "profile", float32 [3][bins]: the middle of each bin, intensity, sigma.
 *
 * Cost: one pass over the tile, which is in cache when `correct` just wrote it; two bytes of table
 * per pixel. Neighbours on a line often share a bin: four sets of sums in turn keep additions from
 * waiting for each other.
 * Threads: every worker adds into its own scratch; finish() brings the sums together. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <sluice/stage.h>

#include "base/log.h"
#include "stage/radial.h"

enum { WAYS = 4, CHUNK = 64 };

struct integrate {
	uint32_t bins, unit;
	double low, high, polarisation;
	bool solid_angle;

	struct sl_radial radial;
	enum sl_dtype dtype;
	uint64_t module_pixels;
	double photon; /* signal of one: variance = signal * photon */
	int result;
};

/* Of one frame, by one worker: sums [WAYS][bins + 1], the last for pixels without a bin; then the
 * norms [bins] of pixels that this frame has not. */
union sum {
	int64_t whole;
	double real;
};

static const struct sl_option options[] = {
	SL_U32(struct integrate, bins, 1000, 1, 65535, "bins", "of the profile"),
	SL_CHOICE(struct integrate, unit, q_nm, "q_nm|tth_deg|r_mm|r_pixels",
		  "what bins are equally wide in: q in 1/nm, 2 theta in degrees, the distance from "
		  "the beam in mm or pixels"),
	SL_F64(struct integrate, low, 0, 0, 1e6, "", "where the first bin begins"),
	SL_F64(struct integrate, high, 0, 0, 1e6, "",
	       "where the last one ends; 0: at the farthest pixel"),
	SL_BOOL(struct integrate, solid_angle, true,
		"pixels far out see less of the sample: divide by what they see"),
	SL_F64(struct integrate, polarisation, 0, -1, 1, "",
	       "of the beam, to divide by; 0: none, 0.99: a synchrotron's, 1: all along the rows"),
	SL_OPTION_END};

static size_t sums_of(const struct integrate *s)
{
	return (size_t)WAYS * (s->radial.bins + 1);
}

static int open_integrate(void *state, const struct sl_env *env, const struct sl_shape *in,
			  struct sl_stage_terms *terms)
{
	struct integrate *s = state;
	const struct sl_radial_options o = {
		.bins = s->bins,
		.unit = s->unit,
		.low = s->low,
		.high = s->high,
		.solid_angle = s->solid_angle,
		.polarisation = s->polarisation,
	};
	int err;

	if (in->dtype == SL_I32) {
		sl_error("integrate reads counts (uint8, uint16, uint32), int16 photons or float32 "
			 "keV, not %s",
			 sl_dtype_name(in->dtype));
		return -EINVAL;
	}
	err = sl_radial_open(&s->radial, &o, env, "integrate");
	if (err)
		return err;
	s->dtype = in->dtype;
	s->module_pixels = sl_geometry_pixels(env->geometry);
	s->photon = in->dtype == SL_F32 && env->geometry->photon_energy_keV > 0
			    ? env->geometry->photon_energy_keV
			    : 1;
	s->result = terms->result;
	terms->outputs = 1;
	terms->output[0] = (struct sl_shape){
		.name = "profile", .dtype = SL_F32, .rank = 2, .dim = {3, s->radial.bins}};
	terms->scratch_bytes = sums_of(s) * sizeof(union sum) + s->radial.bins * sizeof(double);
	return 0;
}

static void close_integrate(void *state)
{
	sl_radial_close(&((struct integrate *)state)->radial);
}

/* Where the norms of what is missing begin. */
static double *missing_of(const struct integrate *s, void *scratch)
{
	return (double *)((union sum *)scratch + sums_of(s));
}

/* ---- for each type of pixel: is it valid, are all of a run, and the sums ---- */

static inline int valid_u8(uint8_t v)
{
	return v != UINT8_MAX;
}

static inline int valid_u16(uint16_t v)
{
	return v != UINT16_MAX;
}

static inline int valid_u32(uint32_t v)
{
	return v != UINT32_MAX;
}

static inline int valid_i16(int16_t v)
{
	return v != INT16_MIN && v != INT16_MAX;
}

static inline int valid_f32(float v)
{
	return isfinite(v);
}

/* The check of a whole chunk first: it vectorises, and hardly ever finds one. */
#define ADD(TYPE, NAME, FIELD)                                                                   \
	static void add_##NAME(const struct integrate *s, uint64_t at, const TYPE *pixel,        \
			       uint32_t count, union sum *sum, double *missing)                  \
	{                                                                                        \
		const uint16_t *bin = s->radial.bin + at;                                        \
		size_t way = s->radial.bins + 1;                                                 \
                                                                                                 \
		for (uint32_t first = 0; first < count; first += CHUNK) {                        \
			uint32_t end = count - first < CHUNK ? count : first + CHUNK, i = first; \
			int valid = 1;                                                           \
                                                                                                 \
			for (uint32_t k = first; k < end; k++)                                   \
				valid &= valid_##NAME(pixel[k]);                                 \
			for (; valid && i + WAYS <= end; i += WAYS) {                            \
				sum[bin[i]].FIELD += pixel[i];                                   \
				sum[way + bin[i + 1]].FIELD += pixel[i + 1];                     \
				sum[2 * way + bin[i + 2]].FIELD += pixel[i + 2];                 \
				sum[3 * way + bin[i + 3]].FIELD += pixel[i + 3];                 \
			}                                                                        \
			for (; i < end; i++) {                                                   \
				if (valid_##NAME(pixel[i]))                                      \
					sum[bin[i]].FIELD += pixel[i];                           \
				else if (bin[i] < s->radial.bins)                                \
					missing[bin[i]] += s->radial.norm[at + i];               \
			}                                                                        \
		}                                                                                \
	}

ADD(uint8_t, u8, whole)
ADD(uint16_t, u16, whole)
ADD(uint32_t, u32, whole)
ADD(int16_t, i16, whole)
ADD(float, f32, real)

static void tile(void *state, void *scratch, const struct sl_batch *batch,
		 const struct sl_tile *tile)
{
	const struct integrate *s = state;
	uint64_t at = tile->module * s->module_pixels + tile->first;
	size_t entry = sums_of(s) * sizeof(union sum) + s->radial.bins * sizeof(double);

	for (uint32_t f = 0; f < batch->frames; f++) {
		union sum *sum = (union sum *)(void *)((char *)scratch + f * entry);
		double *missing = missing_of(s, sum);

		if (batch->frame[f]->flags & SL_FRAME_DARK)
			continue; /* has no image */
		switch (s->dtype) {
		case SL_U8:
			add_u8(s, at, tile->in[f], tile->count, sum, missing);
			break;
		case SL_U16:
			add_u16(s, at, tile->in[f], tile->count, sum, missing);
			break;
		case SL_U32:
			add_u32(s, at, tile->in[f], tile->count, sum, missing);
			break;
		case SL_I16:
			add_i16(s, at, tile->in[f], tile->count, sum, missing);
			break;
		default:
			add_f32(s, at, tile->in[f], tile->count, sum, missing);
		}
	}
}

/* What all workers have of a bin of frame f. */
static double signal_of(const struct integrate *s, void *const *scratch, unsigned workers,
			size_t offset, uint32_t bin)
{
	int64_t whole = 0;
	double real = 0;

	for (unsigned w = 0; w < workers; w++)
		for (unsigned way = 0; way < WAYS; way++) {
			const union sum *sum = (const void *)((const char *)scratch[w] + offset);

			sum += way * (s->radial.bins + 1) + bin;
			if (s->dtype == SL_F32)
				real += sum->real;
			else
				whole += sum->whole;
		}
	return s->dtype == SL_F32 ? real : (double)whole;
}

static void conclude(const struct integrate *s, void *const *scratch, unsigned workers,
		     size_t offset, float *profile)
{
	uint32_t bins = s->radial.bins;

	for (uint32_t b = 0; b < bins; b++) {
		double signal = signal_of(s, scratch, workers, offset, b);
		double norm = s->radial.total[b];

		for (unsigned w = 0; w < workers; w++)
			norm -= missing_of(s, (char *)scratch[w] + offset)[b];
		/* What is left of sums of floats when every pixel is missing is no norm. */
		if (!(norm > s->radial.total[b] * 1e-12))
			norm = NAN;
		profile[b] = (float)sl_radial_middle(&s->radial, b);
		profile[bins + b] = (float)(signal / norm);
		profile[2 * bins + b] = (float)(sqrt(fabs(signal) * s->photon) / norm);
	}
}

static void finish(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch)
{
	const struct integrate *s = state;
	size_t entry = sums_of(s) * sizeof(union sum) + s->radial.bins * sizeof(double);

	for (uint32_t f = 0; f < batch->frames; f++) {
		float *profile = batch->frame[f]->result[s->result].host;

		if (batch->frame[f]->flags & SL_FRAME_DARK)
			memset(profile, 0, 3 * s->radial.bins * sizeof(*profile));
		else
			conclude(s, scratch, workers, f * entry, profile);
	}
}

const struct sl_stage sl_stage_integrate = {
	.name = "integrate",
	.doc = "azimuthal integration: a profile of intensity over q, angle or distance, with "
	       "errors",
	.state_bytes = sizeof(struct integrate),
	.options = options,
	.input = "image",
	.open = open_integrate,
	.close = close_integrate,
	.tile = tile,
	.finish = finish,
};
