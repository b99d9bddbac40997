/* verify.c - compares raw pixels with the truth, which this process computes itself.
 *
 * The truth comes from this process's own copy of the detector, never from what the emulator wrote.
 * Every frame that is called complete is compared, kept or not: one wrong pixel in it means that
 * completeness was not proven. The modules' records are held against the frame, too.
 *
 * Cost: one rendering and one comparison per frame; for tests and demonstrations. Modules are
 * compared by several threads where the detector allows it and there are cores enough, so that the
 * settler's thread is not held up by the whole frame. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/sink.h>

#include "base/log.h"
#include "sink/verify/crew.h"

enum { FEW_CPUS = 4 }; /* with fewer cpus for each thread, the data threads need them more */

struct verify {
	uint32_t max_reports, threads;

	const struct sl_env *env;
	bool crew_open;
	struct sl_crew crew;
	uint8_t *truth; /* [threads][module_bytes]: for detectors that render into a buffer */
	size_t pixel_bytes;
	_Atomic uint32_t reports;
	uint64_t compared, mismatched, pixels, records, unchecked;
};

/* What is found out about a frame, by several threads. */
struct comparison {
	struct verify *verify;
	const struct sl_frame *frame;
	const uint8_t *raw;
	_Atomic uint64_t wrong; /* pixels */
	_Atomic int error;	/* of render() */
};

static const struct sl_option options[] = {
	SL_U32(struct verify, max_reports, 5, 0, 1000, "lines",
	       "describe this many mismatches; all are counted"),
	SL_U32(struct verify, threads, 0, 0, SL_CREW_THREADS, "threads",
	       "threads that compare modules; 0: one for every four cpus, and at most one for a "
	       "module"),
	SL_OPTION_END};

static const struct sl_shape *find_raw(const struct sl_env *env)
{
	for (uint32_t i = 0; i < env->results; i++)
		if (!strcmp(env->result[i].name, "raw"))
			return &env->result[i];
	return NULL;
}

static int reads(const void *state, const char *image)
{
	return !strcmp(image, "raw");
}

/* As many as were asked for, or as pay off; one, if the detector renders on one thread only. */
static unsigned choose_threads(const struct verify *verify)
{
	const struct sl_env *env = verify->env;
	cpu_set_t set;
	unsigned cpus = sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
	unsigned most = verify->threads ? verify->threads : cpus / FEW_CPUS;

	if (!env->detector->parallel || !most)
		return 1;
	return most < env->geometry->modules ? most : env->geometry->modules;
}

static int open_verify(void *state, const struct sl_env *env)
{
	struct verify *verify = state;
	const struct sl_geometry *geometry = env->geometry;
	const struct sl_shape *raw = find_raw(env);
	int err;

	if (!env->detector || !env->detector->render) {
		sl_error("verify: this detector cannot compute its own frames, so there is no "
			 "truth to compare with");
		return -ENOTSUP;
	}
	if (!raw || sl_shape_bytes(raw) != geometry->modules * geometry->module_bytes) {
		sl_error("verify: there are no raw pixels of all modules to compare");
		return -EINVAL;
	}
	verify->env = env;
	verify->pixel_bytes = sl_dtype_bytes(geometry->dtype);
	err = sl_crew_open(&verify->crew, choose_threads(verify), "verify");
	if (err)
		return err;
	verify->crew_open = true;
	if (verify->crew.threads > 1 && env->detector->prepare)
		err = env->detector->prepare(env->detector_state);
	if (err)
		return err;
	verify->truth = malloc(verify->crew.threads * geometry->module_bytes);
	return verify->truth ? 0 : -ENOMEM;
}

/* True when this one is to be described. */
static bool may_report(struct verify *verify)
{
	if (atomic_load(&verify->reports) >= verify->max_reports)
		return false;
	return atomic_fetch_add(&verify->reports, 1) < verify->max_reports;
}

static uint32_t pixel_at(const uint8_t *pixels, size_t bytes, uint64_t index)
{
	uint32_t value = 0;

	memcpy(&value, pixels + index * bytes, bytes); /* little-endian, as the wire is */
	return value;
}

/* How many pixels of a module differ; describes the first. */
static uint64_t count_wrong(struct verify *verify, const struct sl_frame *frame, uint32_t module,
			    const uint8_t *truth, const uint8_t *raw)
{
	uint64_t pixels = sl_geometry_pixels(verify->env->geometry), first = 0, wrong = 0;
	size_t bytes = verify->pixel_bytes;

	for (uint64_t i = 0; i < pixels; i++)
		if (memcmp(truth + i * bytes, raw + i * bytes, bytes) && !wrong++)
			first = i;
	if (wrong && may_report(verify))
		sl_error("verify: frame %" PRIu64 " (sequence %" PRIu64 ") module %u: %" PRIu64
			 " wrong pixels; the first is %" PRIu64 ": expected 0x%x, got 0x%x",
			 frame->number, frame->sequence, module, wrong, first,
			 pixel_at(truth, bytes, first), pixel_at(raw, bytes, first));
	return wrong;
}

static void compare_module(void *arg, unsigned worker, uint32_t m)
{
	struct comparison *c = arg;
	const struct verify *verify = c->verify;
	const struct sl_env *env = verify->env;
	uint64_t bytes = env->geometry->module_bytes;
	uint32_t flags = c->frame->flags & SL_FRAME_DARK ? SL_RECORD_DARK : 0;
	const uint8_t *got = c->raw + m * bytes;
	const void *truth;
	int err;

	if (sl_frame_misses(c->frame, m))
		return;
	err = env->detector->render(env->detector_state, c->frame->number, m, flags,
				    verify->truth + worker * bytes, &truth);
	if (err)
		atomic_store(&c->error, err);
	else if (memcmp(got, truth, bytes))
		atomic_fetch_add(&c->wrong, count_wrong(c->verify, c->frame, m, truth, got));
}

static int compare_pixels(struct verify *verify, struct sl_frame *frame, uint64_t *wrong)
{
	const struct sl_array *raw = sl_frame_result(frame, "raw");
	struct comparison c = {.verify = verify, .frame = frame};

	if (!raw || !raw->host)
		return -EINVAL;
	c.raw = raw->host;
	sl_crew_run(&verify->crew, verify->env->geometry->modules, compare_module, &c);
	*wrong = c.wrong;
	return c.error;
}

/* The records' own words: which frame, when, dark or not. */
static bool records_right(struct verify *verify, const struct sl_frame *frame)
{
	const struct sl_env *env = verify->env;
	uint64_t timestamp = frame->timestamp;
	uint32_t wrong = 0, module = 0;
	/* Our own clock, where the source sends no record: there is no truth of it. */
	bool bare = false;

	for (uint32_t i = 0; i < frame->views; i++)
		bare |= !!(frame->view[i].record.flags & SL_RECORD_BARE);
	if (env->detector->timestamp && !bare)
		timestamp = env->detector->timestamp(env->detector_state, frame->number);
	for (uint32_t i = 0; i < frame->views; i++) {
		const struct sl_record *record = &frame->view[i].record;
		bool dark = record->flags & SL_RECORD_DARK;

		if (sl_frame_misses(frame, i))
			continue;
		if (record->sequence != frame->view[i].sequence || record->frame != frame->number ||
		    (record->timestamp != timestamp && !bare) ||
		    record->module != frame->view[i].module ||
		    dark != !!(frame->flags & SL_FRAME_DARK)) {
			wrong++;
			module = frame->view[i].module;
		}
	}
	if (!wrong && frame->timestamp == timestamp && frame->views == env->geometry->modules)
		return true;
	if (may_report(verify))
		sl_error("verify: frame %" PRIu64 " (sequence %" PRIu64 "): %u of %u records are "
			 "wrong (module %u), or its timestamp %" PRIu64 " is (expected %" PRIu64
			 ")",
			 frame->number, frame->sequence, wrong, frame->views, module,
			 frame->timestamp, timestamp);
	return false;
}

static int put(void *state, struct sl_frame *frame)
{
	struct verify *verify = state;
	uint64_t wrong = 0;
	bool right;
	int r;

	if (!sl_frame_goes_on(frame))
		return 0;
	r = compare_pixels(verify, frame, &wrong);
	if (r) {
		if (!verify->unchecked++)
			sl_error("verify: frame %" PRIu64 " cannot be compared: %s", frame->number,
				 strerror(-r));
		return r;
	}
	right = records_right(verify, frame);
	verify->compared++;
	verify->pixels += wrong;
	verify->mismatched += wrong > 0;
	verify->records += !right;
	return wrong || !right ? -EBADMSG : 0;
}

static int close_verify(void *state, const struct sl_status *status)
{
	struct verify *verify = state;

	if (verify->crew_open)
		sl_crew_close(&verify->crew);
	verify->crew_open = false;
	free(verify->truth);
	verify->truth = NULL;
	return 0;
}

static void figures(const void *state, sl_sink_figure *figure, void *arg)
{
	const struct verify *verify = state;

	figure(arg, "frames_compared", verify->compared, 0);
	figure(arg, "frames_mismatched", verify->mismatched, 1);
	figure(arg, "pixels_mismatched", verify->pixels, 1);
	figure(arg, "frames_with_wrong_records", verify->records, 1);
	figure(arg, "frames_unchecked", verify->unchecked, 1);
}

const struct sl_sink sl_sink_verify = {
	.name = "verify",
	.doc = "compares raw pixels with the truth, recomputed here",
	.state_bytes = sizeof(struct verify),
	.options = options,
	.wants = SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_RAW,
	.reads = reads,
	.open = open_verify,
	.put = put,
	.close = close_verify,
	.figures = figures,
};
