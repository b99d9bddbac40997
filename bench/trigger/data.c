/* data.c - the events: those of the emulators `rich` and `tracker`, made before the
 * clock runs.
 *
 *   RICH      blocks of 256, 32 or 1024 events, one to three rings each, about 20 hits, two of
 *             which are noise; or six
 *   tracker   whole events, 288 sectors of 32 boards, at a pile-up of 140 or 200
 *   sectors   rows of 160 stubs, as many as a row can have: the emulator at a pile-up of 200 with
 *             twice the stubs of no track, and of its sectors those that are full. 288 of them are
 *             a frame, whichever sectors they were */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench/trigger/trigger.h"
#include "core/registry.h"

static const struct recipe {
	const char *detector;
	uint32_t modules, frames;
	const char *option[3][2];
	bool full; /* of the rows, those that are */
} recipes[SL_BENCH_SIZES] = {
	[SL_BENCH_RICH] = {"rich", 1, 128, {{"events", "256"}, {"pool", "128"}}, false},
	[SL_BENCH_RICH_32] = {"rich", 1, 1024, {{"events", "32"}, {"pool", "1024"}}, false},
	[SL_BENCH_RICH_1024] = {"rich", 1, 32, {{"events", "1024"}, {"pool", "32"}}, false},
	[SL_BENCH_RICH_NOISE] =
		{"rich", 1, 128, {{"events", "256"}, {"pool", "128"}, {"noise_hits", "6"}}, false},
	[SL_BENCH_SECTORS] = {"tracker",
			      32,
			      8,
			      {{"events", "1"}, {"pile_up", "200"}, {"background", "2"}},
			      true},
	[SL_BENCH_TRACKER_140] = {"tracker", 32, 32, {{"events", "1"}, {"pile_up", "140"}}, false},
	[SL_BENCH_TRACKER_200] = {"tracker", 32, 32, {{"events", "1"}, {"pile_up", "200"}}, false},
};

enum { TRIES = 64 }; /* events that are looked at for every frame of full sectors, at most */

/* ---- the emulator ---- */

struct source {
	const struct sl_detector *detector;
	struct sl_geometry geometry;
	void *state;
	uint8_t *buffer;
};

static void source_close(struct source *s)
{
	if (s->geometry.modules)
		s->detector->close(s->state);
	free(s->state);
	free(s->buffer);
}

static int source_set(struct source *s, const char *name, const char *text)
{
	const struct sl_option *option = sl_option_find(s->detector->options, name);
	char why[128];

	if (option && !sl_option_set(option, s->state, text, why, sizeof(why)))
		return 0;
	sl_error("detector '%s' has no %s of %s", s->detector->name, name, text);
	return -EINVAL;
}

static int source_open(struct source *s, const struct recipe *recipe)
{
	struct sl_detector_options run;
	int err = 0;

	*s = (struct source){.detector = sl_detector_find(recipe->detector)};
	if (!s->detector) {
		sl_error("no detector '%s' in this program", recipe->detector);
		return -ENODEV;
	}
	sl_options_defaults(sl_detector_options, &run);
	run.modules = recipe->modules;
	s->state = calloc(1, s->detector->state_bytes);
	if (!s->state)
		return -ENOMEM;
	sl_options_defaults(s->detector->options, s->state);
	for (unsigned i = 0; i < 3 && recipe->option[i][0] && !err; i++)
		err = source_set(s, recipe->option[i][0], recipe->option[i][1]);
	if (!err && s->detector->open(s->state, &run, &s->geometry)) {
		s->geometry.modules = 0;
		err = -ENODEV;
	}
	if (!err)
		s->buffer = malloc(s->geometry.module_bytes);
	return err ? err : s->buffer ? 0 : -ENOMEM;
}

/* All modules of a frame. */
static int source_take(struct source *s, uint64_t frame, uint8_t *to)
{
	for (uint32_t m = 0; m < s->geometry.modules; m++) {
		const void *block;
		int err = s->detector->render(s->state, frame, m, 0, s->buffer, &block);

		if (err)
			return err;
		memcpy(to + m * s->geometry.module_bytes, block, s->geometry.module_bytes);
	}
	return 0;
}

/* ---- scenes ---- */

static bool is_rich(const struct sl_bench_scene *s)
{
	return s->geometry.columns == SL_RICH_EVENT_BYTES;
}

static uint64_t frame_bytes(const struct sl_bench_scene *s)
{
	return s->geometry.modules * s->geometry.module_bytes;
}

static uint32_t frame_rows(const struct sl_bench_scene *s)
{
	return s->geometry.modules * s->geometry.rows;
}

const uint8_t *sl_bench_item(const struct sl_bench_scene *s, uint64_t i)
{
	return s->events + i * s->geometry.columns;
}

static uint32_t count_stubs(const uint8_t *row)
{
	struct sl_stub stub;
	uint32_t n = 0;

	while (n < SL_STUBS && sl_stub_unpack(row + n * SL_STUB_BYTES, &stub))
		n++;
	return n;
}

static void count_parts(struct sl_bench_scene *s)
{
	uint64_t rows = (uint64_t)s->frames * frame_rows(s), parts = 0;

	for (uint64_t i = 0; i < rows; i++) {
		const uint8_t *row = sl_bench_item(s, i);

		parts += is_rich(s) ? sl_rich_hits(row) : count_stubs(row);
	}
	s->parts = (double)parts / ((double)s->frames * s->items);
}

/* Rows that are full, out of as many events as that takes. */
static int take_full(struct source *source, struct sl_bench_scene *s)
{
	uint64_t wanted = (uint64_t)s->frames * frame_rows(s), n = 0;
	uint8_t *event = malloc(frame_bytes(s));
	int err = event ? 0 : -ENOMEM;

	for (uint64_t frame = 0; !err && n < wanted && frame < TRIES * s->frames; frame++) {
		err = source_take(source, frame, event);
		for (uint32_t i = 0; !err && i < frame_rows(s) && n < wanted; i++) {
			const uint8_t *row = event + (uint64_t)i * SL_TRACKER_ROW_BYTES;

			if (count_stubs(row) == SL_STUBS)
				memcpy(s->events + n++ * SL_TRACKER_ROW_BYTES, row,
				       SL_TRACKER_ROW_BYTES);
		}
	}
	free(event);
	if (!err && n < wanted) {
		sl_error("of the sectors that the emulator made, %llu are full; %llu are wanted",
			 (unsigned long long)n, (unsigned long long)wanted);
		err = -ENODATA;
	}
	return err;
}

static int fill(struct source *source, const struct recipe *recipe, struct sl_bench_scene *s)
{
	int err = 0;

	s->geometry = source->geometry;
	s->frames = recipe->frames;
	s->pixels = sl_geometry_pixels(&s->geometry);
	s->items = is_rich(s) ? sl_geometry_frame_items(&s->geometry) : 1;
	if (recipe->full)
		s->items = frame_rows(s);
	s->events = malloc(s->frames * frame_bytes(s));
	if (!s->events)
		return -ENOMEM;
	if (recipe->full)
		err = take_full(source, s);
	for (uint32_t f = 0; !recipe->full && f < s->frames && !err; f++)
		err = source_take(source, f, s->events + f * frame_bytes(s));
	if (!err)
		count_parts(s);
	return err;
}

int sl_bench_events_make(struct sl_bench_scene *s, enum sl_bench_size size)
{
	struct source source;
	int err = source_open(&source, &recipes[size]);

	*s = (struct sl_bench_scene){.memory = {.fd = -1}};
	if (!err)
		err = fill(&source, &recipes[size], s);
	source_close(&source);
	if (err)
		sl_bench_scene_free(s);
	return err;
}
