/* detector.c - sluice bench detector: how fast the emulated detectors offer their frames, and
 * how fast they make new ones, each with its default options on one core.
 *
 *   detector/NAME        frames as a front end asks for them, every block copied into a ring of
 *                        64 MiB, as the source of `shm` does
 *   detector/NAME/new    frames that nobody has asked for before: what the pools are made of */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/detector.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "core/registry.h"

#define RING (UINT64_C(64) << 20)

enum { SLOWER = 5 }; /* opening a detector again and again takes longer than what is measured */

struct subject {
	const struct sl_detector *detector;
	struct sl_geometry geometry;
	void *state;
	uint8_t *buffer;
};

static void close_subject(struct subject *s)
{
	if (s->state)
		s->detector->close(s->state);
	free(s->state);
	free(s->buffer);
}

/* What cannot be opened as it is (a replay of no file) said why, and is not measured here. */
static int open_subject(const struct sl_detector *detector, uint64_t seed, struct subject *s)
{
	struct sl_detector_options run;

	sl_options_defaults(sl_detector_options, &run);
	run.seed = seed;
	*s = (struct subject){.detector = detector, .state = calloc(1, detector->state_bytes)};
	if (!s->state)
		return -ENOMEM;
	sl_options_defaults(detector->options, s->state);
	if (detector->open(s->state, &run, &s->geometry))
		return -ENODEV;
	s->buffer = malloc(s->geometry.module_bytes);
	return s->buffer ? 0 : -ENOMEM;
}

/* All modules of a frame to `to`, where it is wanted. */
static int take(struct subject *s, uint64_t frame, uint8_t *to)
{
	for (uint32_t m = 0; m < s->geometry.modules; m++) {
		const void *pixels;
		int err = s->detector->render(s->state, frame, m, 0, s->buffer, &pixels);

		if (err)
			return err;
		if (to)
			memcpy(to + m * s->geometry.module_bytes, pixels, s->geometry.module_bytes);
	}
	return 0;
}

static void conclude(const struct subject *s, uint64_t frames, uint64_t ns,
		     struct sl_bench_sample *sample)
{
	uint64_t bytes = s->geometry.modules * s->geometry.module_bytes;

	sample->frame_bytes = bytes;
	sample->frame_items = sl_geometry_frame_items(&s->geometry);
	sample->bytes = frames * bytes;
	sample->GB_per_s = (double)sample->bytes / (double)(ns ? ns : 1);
}

static int offer(const struct sl_bench *bench, struct subject *s, struct sl_bench_sample *sample)
{
	uint64_t bytes = s->geometry.modules * s->geometry.module_bytes, frames = 0, start, now;
	uint64_t slots = bytes < RING ? RING / bytes : 1;
	uint8_t *ring = malloc(slots * bytes);
	int err = ring ? 0 : -ENOMEM;

	if (!err && s->detector->prepare)
		err = s->detector->prepare(s->state);
	if (!err)
		memset(ring, 1, slots * bytes); /* its pages are there before the clock runs */
	start = now = sl_clock_ns();
	for (; !err && (double)(now - start) < 1e9 * bench->o.seconds; now = sl_clock_ns())
		for (int i = 0; i < 16 && !err; i++, frames++)
			err = take(s, frames, ring + frames % slots * bytes);
	conclude(s, frames, now - start, sample);
	free(ring);
	return err;
}

/* The first frame of one detector after another, each with a seed of its own. */
static int make(const struct sl_bench *bench, const struct sl_detector *detector,
		struct sl_bench_sample *sample)
{
	uint64_t begun = sl_clock_ns(), frames = 0, spent = 0;
	double limit = 1e9 * bench->o.seconds;
	struct subject s;
	int err;

	do {
		err = open_subject(detector, ++frames, &s);
		if (!err) {
			uint64_t start = sl_clock_ns();

			err = take(&s, 0, NULL);
			spent += sl_clock_ns() - start;
		}
		conclude(&s, frames, spent, sample);
		close_subject(&s);
	} while (!err && (double)spent < limit && (double)(sl_clock_ns() - begun) < SLOWER * limit);
	return err;
}

int sl_bench_detector(const struct sl_bench *bench, const struct sl_bench_row *row,
		      struct sl_bench_sample *sample)
{
	struct subject s;
	int err;

	sl_bench_take_side(bench, row, 0);
	if (row->fresh)
		return make(bench, row->detector, sample);
	err = open_subject(row->detector, 1, &s);
	if (!err)
		err = offer(bench, &s, sample);
	close_subject(&s);
	return err;
}

static void add(struct sl_bench *bench, const struct sl_detector *detector, bool fresh)
{
	struct sl_bench_row row = {.detector = detector, .fresh = fresh};

	snprintf(row.name, sizeof(row.name), "detector/%s%s", detector->name, fresh ? "/new" : "");
	if (!bench->o.only[0] || fnmatch(bench->o.only, row.name, 0) == 0)
		bench->row[bench->rows++] = row;
}

int sl_bench_detector_rows(struct sl_bench *bench)
{
	size_t n = 0;

	while (sl_detectors[n])
		n++;
	bench->row = calloc(2 * n + 1, sizeof(*bench->row));
	if (!bench->row)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		add(bench, sl_detectors[i], false);
	for (size_t i = 0; i < n; i++)
		add(bench, sl_detectors[i], true);
	return 0;
}

static double per_second(const struct sl_bench_row *row, const struct sl_bench_figure *f,
			 bool items)
{
	const struct sl_bench_sample *sample = &row->sample[0];

	return f->median * 1e9 / (double)sample->frame_bytes * (items ? sample->frame_items : 1);
}

double sl_bench_events_per_s(const struct sl_bench_row *row, const struct sl_bench_figure *f)
{
	return per_second(row, f, true);
}

void sl_bench_print_detectors(const struct sl_bench *bench, FILE *out)
{
	struct sl_bench_figure f;

	fprintf(out, "%-30s %8s %8s %8s %12s %12s\n", "GB/s, one core", "median", "min", "max",
		"frames/s", "M events/s");
	for (unsigned i = 0; i < bench->rows; i++) {
		const struct sl_bench_row *row = &bench->row[i];

		if (!sl_bench_summarise(row, sl_bench_pick_rate, 0, &f))
			continue;
		fprintf(out, "%-30s %8.3f %8.3f %8.3f %12.1f", row->name, f.median, f.min, f.max,
			per_second(row, &f, false));
		if (row->sample[0].frame_items > 1)
			fprintf(out, " %12.4g", 1e-6 * sl_bench_events_per_s(row, &f));
		fputc('\n', out);
	}
}
