/* conformance_test.c - what every stage must do. A new one is tested by adding it to the list; one
 * that is not there fails it. */
#include <errno.h>
#include <stdio.h>

#include "lib/capture.h"
#include "lib/rich_draw.h"
#include "lib/stage_rig.h"
#include "lib/tracks_oracle.h"

extern const struct sl_stage sl_stage_copy, sl_stage_correct, sl_stage_correlate,
	sl_stage_integrate, sl_stage_peaks, sl_stage_prescale, sl_stage_python, sl_stage_reduce,
	sl_stage_rings, sl_stage_sparse, sl_stage_spots, sl_stage_tracks, sl_stage_veto;

static const struct sl_stage *const stages[] = {
	&sl_stage_copy,	 &sl_stage_correct,  &sl_stage_correlate, &sl_stage_integrate,
	&sl_stage_peaks, &sl_stage_prescale, &sl_stage_python,	  &sl_stage_reduce,
	&sl_stage_rings, &sl_stage_sparse,   &sl_stage_spots,	  &sl_stage_tracks,
	&sl_stage_veto};

enum { FRAMES = 24 };

#define FOR_EACH(ops)                                           \
	for (const struct sl_stage *const *each = stages, *ops; \
	     each < stages + sizeof(stages) / sizeof(*stages) && (ops = *each); each++)

enum { RICH_EVENTS = 25 };

/* Debian's first: it has NumPy. */
static const char *python;
static bool has_numpy;

static void find_python(void)
{
	char command[160];

	python = access("/usr/bin/python3", X_OK) ? "python3" : "/usr/bin/python3";
	snprintf(command, sizeof(command), "%s -c 'import numpy' 2> /dev/null", python);
	has_numpy = system(command) == 0;
}

static bool windows; /* of binned images: reduce is ordered with them */

/* On a detector that the stage is for. */
static void init(struct rig *rig, const struct sl_stage *ops, enum sl_dtype dtype)
{
	rig_init(rig, ops, dtype);
	if (ops == &sl_stage_reduce && windows) {
		rig_set(rig, "bin", "2");
		rig_set(rig, "window", "5");
	}
	if (ops == &sl_stage_correlate) {
		rig_set(rig, "regions", "rings");
		rig_set(rig, "rings", "7");
		rig_set(rig, "levels", "3");
		rig_set(rig, "channels", "8");
		rig_set(rig, "every", "3");
	}
	if (ops == &sl_stage_python) {
		rig_set(rig, "script", SL_TEST_DATA "/python/sum.py");
		rig_set(rig, "inputs", "raw");
		rig_set(rig, "numbers", "2");
		rig_set(rig, "processes", "2");
		rig_set(rig, "deadline_ms", "60000");
		rig_set(rig, "python", python);
	}
	if (ops == &sl_stage_rings)
		rig_set_events(rig, RICH_EVENTS, SL_RICH_EVENT_BYTES, false);
	if (ops == &sl_stage_tracks)
		rig_set_events(rig, 1, SL_TRACKER_ROW_BYTES, true);
}

/* One to three rings and noise; made once, for it takes its time. */
static void fill_rings(uint8_t *event, uint64_t seed)
{
	enum { DIFFERENT = 37 };
	static uint8_t made[DIFFERENT][SL_RICH_EVENT_BYTES];
	static uint32_t done;
	struct rich_draw draw = {.random = 1};

	for (; done < DIFFERENT; done++) {
		for (uint32_t k = 0; k <= done % 3; k++)
			rich_draw_ring(&draw, 40. * k, 0, 120. + 10 * (done % 7), 14, 4);
		rich_draw_noise(&draw, 2);
		rich_draw_pack(&draw, made[done]);
	}
	for (uint32_t i = 0; i < RIG_MODULES * RICH_EVENTS; i++)
		memcpy(event + (size_t)i * SL_RICH_EVENT_BYTES, made[(seed + i * 5) % DIFFERENT],
		       SL_RICH_EVENT_BYTES);
}

static void fill_tracks(uint8_t *row, uint64_t seed)
{
	struct oracle_track truth[4];

	for (uint32_t i = 0; i < RIG_MODULES; i++)
		oracle_sector(&seed, 4, 60, row + (size_t)i * SL_TRACKER_ROW_BYTES, truth);
}

/* Plausible pixels of that type: photons, keV, or raw ones in all gains. */
static void fill_pixels(enum sl_dtype dtype, void *pixels, uint64_t seed)
{
	for (int i = 0; i < RIG_PIXELS; i++) {
		uint32_t bits = rig_random(&seed);

		switch (dtype) {
		case SL_U8:
			((uint8_t *)pixels)[i] = (uint8_t)bits;
			break;
		case SL_U16:
			((uint16_t *)pixels)[i] = (uint16_t)(bits % 8 ? 2000 + bits % 12000 : bits);
			break;
		case SL_I16:
			((int16_t *)pixels)[i] = (int16_t)(bits % 8 ? bits % 14 : bits);
			break;
		case SL_F32:
			((float *)pixels)[i] = (float)(bits % 4000) * 0.1f;
			break;
		default:
			((uint32_t *)pixels)[i] = bits;
			break;
		}
	}
}

/* How many bytes. */
static size_t fill_input(const struct sl_stage *ops, enum sl_dtype dtype, void *pixels,
			 uint64_t seed)
{
	if (ops == &sl_stage_rings) {
		fill_rings(pixels, seed);
		return RIG_MODULES * RICH_EVENTS * SL_RICH_EVENT_BYTES;
	}
	if (ops == &sl_stage_tracks) {
		fill_tracks(pixels, seed);
		return RIG_MODULES * SL_TRACKER_ROW_BYTES;
	}
	fill_pixels(dtype, pixels, seed);
	return RIG_PIXELS * sl_dtype_bytes(dtype);
}

/* A third of the frames are dark, in no regular order. */
static void make_frames(const struct sl_stage *ops, struct rig_frame *frames, enum sl_dtype dtype)
{
	for (int f = 0; f < FRAMES; f++) {
		rig_frame_init(&frames[f], f * 7 % 11 < 4);
		frames[f].frame.number = (uint64_t)f;
		fill_input(ops, dtype, frames[f].in, (uint64_t)f + 1);
	}
}

static void free_frames(struct rig_frame *frames)
{
	for (int f = 0; f < FRAMES; f++)
		rig_frame_fini(&frames[f]);
}

static void run(const struct sl_stage *ops, enum sl_dtype dtype, struct rig_frame *frames,
		uint32_t batch, uint32_t tile, unsigned workers)
{
	struct rig rig;

	init(&rig, ops, dtype);
	rig_open(&rig);
	make_frames(ops, frames, dtype);
	rig_run(&rig, frames, FRAMES, batch, tile, workers);
	for (int f = 0; f < FRAMES; f++)
		rig_check_canaries(&rig, &frames[f]);
	rig_close(&rig);
}

/* Each time that `python` is opened interpreters are started: one type stands for all. */
static bool is_left_out(const struct sl_stage *ops, enum sl_dtype dtype)
{
	return ops == &sl_stage_python && (!has_numpy || dtype != SL_I16);
}

static bool accepts(const struct sl_stage *ops, enum sl_dtype dtype)
{
	const char *said;
	struct rig rig;
	int err;

	if (is_left_out(ops, dtype))
		return false;
	init(&rig, ops, dtype);
	capture_begin();
	err = rig_try_open(&rig);
	said = capture_end();
	rig_close(&rig); /* also when open() failed */
	assert_true(err == 0 || err == -EINVAL);
	if (err)
		assert_non_null(strstr(said, ops->name)); /* who refuses says so */
	return !err;
}

/* SL_STAGE_NAMES is what the build registers. */
static void test_every_stage_is_here(void **arg)
{
	char names[] = SL_STAGE_NAMES;
	size_t n = 0;

	for (char *name = strtok(names, " "); name; name = strtok(NULL, " "), n++) {
		bool here = false;

		FOR_EACH(ops)
		here |= !strcmp(ops->name, name);
		if (!here)
			fail_msg("%s is not in the list", name);
	}
	assert_int_equal(n, sizeof(stages) / sizeof(*stages));
}

static void test_names_docs_and_options(void **arg)
{
	FOR_EACH(ops)
	{
		assert_true(strlen(ops->name) > 0 && strlen(ops->name) < SL_NAME_BYTES);
		assert_true(strlen(ops->doc) > 0);
		assert_true(strlen(ops->input) > 0);
		for (const struct sl_option *o = ops->options; o->name; o++) {
			assert_true(strlen(o->doc) > 0);
			assert_true(o->offset + o->size <= ops->state_bytes);
		}
	}
}

static void test_reads_some_type_and_refuses_others_properly(void **arg)
{
	FOR_EACH(ops)
	{
		int accepted = 0;

		for (int dtype = 0; dtype < SL_DTYPES; dtype++)
			accepted += accepts(ops, (enum sl_dtype)dtype);
		assert_true(accepted > 0 || (ops == &sl_stage_python && !has_numpy));
	}
}

static void test_output_is_described(void **arg)
{
	FOR_EACH(ops)
	for (int dtype = 0; dtype < SL_DTYPES; dtype++) {
		struct rig rig;

		if (!accepts(ops, (enum sl_dtype)dtype))
			continue;
		init(&rig, ops, (enum sl_dtype)dtype);
		rig_open(&rig);
		for (uint32_t i = 0; i < rig.terms.outputs; i++) {
			assert_true(*rig.terms.output[i].name);
			assert_true(sl_shape_bytes(&rig.terms.output[i]) > 0);
		}
		rig_close(&rig);
	}
}

/* Of a ragged one, the rows that there are. */
static void check_same_outputs(const struct sl_frame *want, const struct sl_frame *have)
{
	assert_int_equal(want->results, have->results);
	for (uint32_t i = 0; i < want->results; i++) {
		const struct sl_array *a = &want->result[i], *b = &have->result[i];
		size_t bytes = sl_shape_bytes(&a->shape);

		if (a->shape.ragged) {
			assert_int_equal(a->rows, b->rows);
			assert_true(a->rows <= a->shape.dim[0]);
			bytes = bytes / a->shape.dim[0] * a->rows;
		}
		assert_memory_equal(a->host, b->host, bytes);
	}
}

static void check_same_verdicts(const struct sl_frame *want, const struct sl_frame *have)
{
	assert_int_equal(want->items, have->items);
	for (uint32_t i = 0; i < want->items; i++) {
		assert_true(want->verdict[i].score == have->verdict[i].score);
		assert_int_equal(want->verdict[i].keep, have->verdict[i].keep);
		assert_int_equal(want->verdict[i].reason, have->verdict[i].reason);
	}
}

static void check_same_results(const struct sl_stage *ops, enum sl_dtype dtype, uint32_t batch,
			       uint32_t tile, unsigned workers)
{
	struct rig_frame want[FRAMES], have[FRAMES];

	run(ops, dtype, want, 1, RIG_MODULE_PIXELS, 1);
	run(ops, dtype, have, batch, tile, workers);
	for (int f = 0; f < FRAMES; f++) {
		assert_memory_equal(want[f].out_memory, have[f].out_memory,
				    (RIG_PIXELS + 2 * RIG_CANARY) * 4);
		assert_memory_equal(want[f].in_memory, have[f].in_memory,
				    (RIG_PIXELS + 2 * RIG_CANARY) * 4);
		check_same_outputs(&want[f].frame, &have[f].frame);
		check_same_verdicts(&want[f].frame, &have[f].frame);
	}
	free_frames(want);
	free_frames(have);
}

/* A session keeps stages from run to run: an ordered one forgets when it is told to, and the others
 * have learned nothing. */
static void check_second_run(const struct sl_stage *ops, enum sl_dtype dtype)
{
	struct rig_frame want[FRAMES], have[FRAMES];
	const struct sl_stage *as;
	struct rig rig;
	void *before;

	run(ops, dtype, want, 4, 100, 2);
	init(&rig, ops, dtype);
	rig_open(&rig);
	as = rig.terms.as ? rig.terms.as : ops;
	before = malloc(ops->state_bytes);
	memcpy(before, rig.state, ops->state_bytes);
	make_frames(ops, have, dtype);
	rig_run(&rig, have, FRAMES, 4, 100, 2);
	free_frames(have);
	if (as->ordered) {
		assert_non_null(as->again); /* all of ours can */
		assert_int_equal(as->again(rig.state), 0);
	}
	assert_memory_equal(before, rig.state, ops->state_bytes);
	free(before);
	make_frames(ops, have, dtype);
	rig_run(&rig, have, FRAMES, 4, 100, 2);
	rig_close(&rig);
	for (int f = 0; f < FRAMES; f++) {
		assert_memory_equal(want[f].out_memory, have[f].out_memory,
				    (RIG_PIXELS + 2 * RIG_CANARY) * 4);
		check_same_outputs(&want[f].frame, &have[f].frame);
		check_same_verdicts(&want[f].frame, &have[f].frame);
	}
	free_frames(want);
	free_frames(have);
}

static void test_a_second_run_is_as_the_first(void **arg)
{
	FOR_EACH(ops)
	for (int dtype = 0; dtype < SL_DTYPES; dtype++)
		if (accepts(ops, (enum sl_dtype)dtype))
			check_second_run(ops, (enum sl_dtype)dtype);
	windows = true;
	check_second_run(&sl_stage_reduce, SL_I16);
	windows = false;
}

static void test_results_do_not_depend_on_tiles_batches_or_workers(void **arg)
{
	static const struct {
		uint32_t batch, tile;
		unsigned workers;
	} cuts[] = {{1, 64, 1}, {2, 100, 1},  {5, 1, 3},
		    {24, 7, 2}, {24, 304, 8}, {7, RIG_MODULE_PIXELS, 4}};

	FOR_EACH(ops)
	for (int dtype = 0; dtype < SL_DTYPES; dtype++) {
		bool accepted = accepts(ops, (enum sl_dtype)dtype);
		/* It has no tiles. */
		size_t step = ops == &sl_stage_python ? 3 : 1;

		for (size_t c = 0; c < sizeof(cuts) / sizeof(cuts[0]) && accepted; c += step)
			check_same_results(ops, (enum sl_dtype)dtype, cuts[c].batch, cuts[c].tile,
					   cuts[c].workers);
	}
}

/* Or else the test before this one says little of them. */
static void test_triggers_have_something_to_find(void **arg)
{
	static const struct sl_stage *const triggers[] = {&sl_stage_rings, &sl_stage_tracks};

	for (int i = 0; i < 2; i++) {
		struct rig_frame frames[FRAMES];
		uint32_t rows = 0, most = 0;

		run(triggers[i], SL_U8, frames, 4, RIG_MODULE_PIXELS, 2);
		for (int f = 0; f < FRAMES; f++) {
			uint32_t here = frames[f].frame.result[0].rows;

			rows += here;
			most = here > most ? here : most;
			if (frames[f].frame.flags & SL_FRAME_DARK)
				assert_int_equal(here, 0);
		}
		assert_true(rows > FRAMES && most > 3);
		free_frames(frames);
	}
}

static void test_input_is_left_alone(void **arg)
{
	FOR_EACH(ops)
	for (int dtype = 0; dtype < SL_DTYPES; dtype++) {
		struct rig_frame frames[FRAMES];
		uint32_t copy[RIG_PIXELS];
		size_t bytes;

		if (!accepts(ops, (enum sl_dtype)dtype))
			continue;
		run(ops, (enum sl_dtype)dtype, frames, 4, 50, 2);
		for (int f = 0; f < FRAMES; f++) {
			bytes = fill_input(ops, (enum sl_dtype)dtype, copy, (uint64_t)f + 1);
			assert_memory_equal(frames[f].in, copy, bytes);
		}
		free_frames(frames);
	}
}

/* One tile in the middle: nothing else is touched. */
static void test_a_tile_writes_only_its_own_pixels(void **arg)
{
	enum { FIRST = 65, COUNT = 131 };

	FOR_EACH(ops)
	for (int dtype = 0; dtype < SL_DTYPES; dtype++) {
		struct rig rig;
		struct rig_frame frame;
		struct sl_frame *pointer = &frame.frame;
		struct sl_batch batch = {.frame = &pointer, .frames = 1, .capacity = 1};
		size_t bytes, begin;

		if (!ops->tile || !accepts(ops, (enum sl_dtype)dtype))
			continue;
		init(&rig, ops, (enum sl_dtype)dtype);
		rig_open(&rig);
		rig_frame_init(&frame, false);
		fill_input(ops, (enum sl_dtype)dtype, frame.in, 3);
		rig_tile(&rig, &batch, &frame, 0, 1, FIRST, COUNT);
		bytes = rig_is_image(&rig.out) ? sl_dtype_bytes(rig.out.dtype) : 0;
		begin = RIG_CANARY * 4 + (RIG_MODULE_PIXELS + FIRST) * bytes;
		for (size_t i = 0; i < (RIG_PIXELS + 2 * RIG_CANARY) * 4; i++)
			if (i < begin || i >= begin + COUNT * bytes)
				assert_int_equal(frame.out_memory[i], RIG_POISON);
		rig_frame_fini(&frame);
		rig_close(&rig);
	}
}

static void test_an_empty_batch_is_harmless(void **arg)
{
	FOR_EACH(ops)
	for (int dtype = 0; dtype < SL_DTYPES; dtype++) {
		struct rig rig;

		if (!accepts(ops, (enum sl_dtype)dtype))
			continue;
		init(&rig, ops, (enum sl_dtype)dtype);
		rig_open(&rig);
		rig_batch(&rig, NULL, 0, RIG_MODULE_PIXELS, 2);
		rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_stage_is_here),
		cmocka_unit_test(test_names_docs_and_options),
		cmocka_unit_test(test_reads_some_type_and_refuses_others_properly),
		cmocka_unit_test(test_output_is_described),
		cmocka_unit_test(test_results_do_not_depend_on_tiles_batches_or_workers),
		cmocka_unit_test(test_a_second_run_is_as_the_first),
		cmocka_unit_test(test_triggers_have_something_to_find),
		cmocka_unit_test(test_input_is_left_alone),
		cmocka_unit_test(test_a_tile_writes_only_its_own_pixels),
		cmocka_unit_test(test_an_empty_batch_is_harmless),
	};

	find_python();
	return cmocka_run_group_tests_name("stage conformance", tests, NULL, NULL);
}
