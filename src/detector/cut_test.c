/* cut_test.c - a cut shows exactly the source's pixels, modules, frames and calibration that it
 * names, and nothing else. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc.h"
#include "detector/configuration.h"
#include "detector/cut.h"

extern const struct sl_detector sl_detector_jungfrau, sl_detector_pattern, sl_detector_rich,
	sl_detector_tracker;

struct rig {
	struct sl_cut cut;
	struct sl_detector detector;
	struct sl_detector_options run;
	struct sl_geometry geometry;
	/* The source a second time, uncut. */
	void *whole_state;
	struct sl_geometry whole;
	uint8_t *buffer, *whole_buffer;
};

static void *new_source(const struct sl_detector *source)
{
	void *state = calloc(1, source->state_bytes);

	sl_options_defaults(source->options, state);
	return state;
}

static void set_cells(void *state, const char *cells)
{
	char why[100];

	assert_int_equal(
		sl_option_set(sl_option_find(sl_detector_jungfrau.options, "storage_cells"), state,
			      cells, why, sizeof(why)),
		0);
}

static int rig_open(struct rig *rig, const struct sl_detector *source, struct sl_cut_options o)
{
	struct sl_detector_options run = {.modules = 4, .frames = 60, .dark_frames = 12, .seed = 7};
	char why[200];

	o.every = o.every ? o.every : 1;
	o.stack = o.stack ? o.stack : 1;
	*rig = (struct rig){.cut = {.options = o,
				    .generator = source,
				    .generator_state = new_source(source),
				    .generator_options = run},
			    .whole_state = new_source(source)};
	if (source == &sl_detector_jungfrau) {
		set_cells(rig->cut.generator_state, "3");
		set_cells(rig->whole_state, "3");
	}
	assert_int_equal(sl_cut_apply(&o, &run, &rig->run, why, sizeof(why)), 0);
	sl_cut_detector(&rig->cut, &rig->detector);
	assert_int_equal(source->open(rig->whole_state, &run, &rig->whole), 0);
	rig->whole_buffer = calloc(1, rig->whole.module_bytes);
	if (rig->detector.open(&rig->cut, &rig->run, &rig->geometry))
		return -EINVAL;
	rig->buffer = calloc(1, rig->geometry.module_bytes);
	return 0;
}

static void rig_close(struct rig *rig)
{
	rig->detector.close(&rig->cut);
	rig->cut.generator->close(rig->whole_state);
	free(rig->cut.generator_state);
	free(rig->whole_state);
	free(rig->buffer);
	free(rig->whole_buffer);
}

static uint16_t source_pixel(struct rig *rig, uint64_t frame, uint32_t module, uint32_t flags,
			     uint32_t x, uint32_t y)
{
	const void *pixels;

	assert_int_equal(rig->cut.generator->render(rig->whole_state, frame, module, flags,
						    rig->whole_buffer, &pixels),
			 0);
	return ((const uint16_t *)pixels)[y * rig->whole.columns + x];
}

static void every_pixel_is_the_source_s(void **state)
{
	struct rig rig;
	const struct sl_cut_options o = {.first_module = 1,
					 .modules = 2,
					 .x = 3,
					 .y = 1,
					 .width = 5,
					 .height = 2,
					 .every = 3,
					 .phase = 2,
					 .stack = 4};

	(void)state;
	assert_int_equal(rig_open(&rig, &sl_detector_pattern, o), 0);
	assert_int_equal(rig.geometry.modules, 2);
	assert_int_equal(rig.geometry.rows, 8);
	assert_int_equal(rig.geometry.columns, 5);
	assert_int_equal(rig.geometry.module_bytes, 8 * 5 * 2);
	for (uint64_t k = 0; k < 5; k++)
		for (uint32_t m = 0; m < 2; m++) {
			uint32_t flags = k < rig.run.dark_frames ? SL_RECORD_DARK : 0;
			uint64_t frame = sl_geometry_frame(&rig.geometry, k);
			const void *pixels;

			assert_int_equal(frame, 2 + k * 12);
			assert_int_equal(
				rig.detector.render(&rig.cut, frame, m, flags, rig.buffer, &pixels),
				0);
			for (uint32_t i = 0; i < 8 * 5; i++)
				assert_int_equal(((const uint16_t *)pixels)[i],
						 source_pixel(&rig, frame + i / 10 * 3, 1 + m,
							      flags, 3 + i % 5, 1 + i / 5 % 2));
			assert_int_equal(rig.detector.timestamp(&rig.cut, frame),
					 rig.cut.generator->timestamp(rig.whole_state, frame));
		}
	rig_close(&rig);
}

/* Dark and bright frames, counted one by one. */
static void the_run_is_as_long_as_frames_are_chosen(void **state)
{
	struct sl_detector_options whole = {
		.modules = 4, .frames = 61, .dark_frames = 12, .frame_rate_Hz = 600};

	(void)state;
	for (uint32_t every = 1; every < 8; every++)
		for (uint32_t phase = 0; phase < every; phase++)
			for (uint32_t stack = 1; stack < 4; stack++) {
				struct sl_cut_options o = {
					.every = every, .phase = phase, .stack = stack};
				struct sl_detector_options run;
				uint64_t darks = 0, all = 0;
				char why[200];
				int err = sl_cut_apply(&o, &whole, &run, why, sizeof(why));

				for (uint64_t f = 0; f < 73; f++) {
					all += f % every == phase;
					darks += f % every == phase && f < 12;
				}
				assert_int_equal(err, darks % stack ? -EINVAL : 0);
				if (err) {
					assert_non_null(strstr(why, "half dark"));
					continue;
				}
				assert_int_equal(run.dark_frames, darks / stack);
				assert_int_equal(run.dark_frames + run.frames, all / stack);
				assert_int_equal(sl_cut_left_over(&o, &whole), all % stack);
				assert_true(run.frame_rate_Hz * every * stack > 599.9);
			}
}

/* A chopper makes frames of the detector dark; a part of them has the same ones, wherever it
 * begins. */
static void a_choppers_frames_stay_dark(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 7 * 7 * 7 * 3 * 4; n++) {
		uint32_t every = n % 7 + 1, phase = n / 7 % 7 % every, chop = n / 49 % 7;
		struct sl_cut_options o = {
			.every = every, .phase = phase, .stack = n / 343 % 3 + 1};
		struct sl_detector_options run,
			whole = {.modules = 1,
				 .frames = 90,
				 .dark_frames = n / 1029 % 4 * o.stack * every,
				 .dark_every = chop};
		struct sl_darks all = sl_detector_darks(&whole), part;
		char why[200];

		if (sl_cut_apply(&o, &whole, &run, why, sizeof(why))) {
			assert_true(o.stack > 1 && chop && every % chop);
			assert_non_null(strstr(why, "detector.dark_every"));
			continue;
		}
		part = sl_detector_darks(&run);
		for (uint64_t k = 0; k < run.dark_frames + run.frames; k++)
			for (uint32_t i = 0; i < o.stack; i++) {
				uint64_t f = phase + (k * o.stack + i) * every;
				uint64_t after = f - whole.dark_frames;
				bool dark = f < whole.dark_frames ||
					    (chop && after % chop == chop - 1);

				assert_int_equal(sl_darks_has(&all, f), dark);
				assert_int_equal(sl_darks_has(&part, k), dark);
			}
	}
}

static void what_makes_no_sense_is_refused(void **state)
{
	static const struct {
		struct sl_cut_options o;
		const char *words;
	} bad[] = {
		{{.first_module = 4, .every = 1, .stack = 1}, "the detector has 0 to 3"},
		{{.first_module = 2, .modules = 3, .every = 1, .stack = 1}, "modules 2 to 4"},
		{{.every = 3, .phase = 3, .stack = 1}, "must be below every"},
		{{.every = 1000, .phase = 500, .stack = 1}, "not one bright frame"},
		{{.every = 1, .stack = 100}, "not one bright frame"},
		{{.every = 1, .stack = 1, .part = SL_CUT_RECORDS, .y = 1}, "choose pixels"},
		{{.every = 1, .stack = 1, .part = SL_CUT_CONFIGURATION, .width = 5},
		 "choose pixels"},
	};
	struct sl_detector_options whole = {.modules = 4, .frames = 60}, run;
	struct rig rig;
	char why[200];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(sl_cut_apply(&bad[i].o, &whole, &run, why, sizeof(why)), -EINVAL);
		assert_non_null(strstr(why, bad[i].words));
	}
	assert_int_equal(
		rig_open(&rig, &sl_detector_pattern, (struct sl_cut_options){.x = 10, .width = 7}),
		-EINVAL);
	rig_close(&rig);
}

static void calibration_goes_with_its_pixels(void **state)
{
	const struct sl_cut_options o = {.first_module = 2,
					 .modules = 2,
					 .x = 100,
					 .y = 50,
					 .width = 9,
					 .height = 3,
					 .every = 2,
					 .stack = 2};
	struct sl_calibration cut, whole;
	struct rig rig;

	(void)state;
	assert_int_equal(rig_open(&rig, &sl_detector_jungfrau, o), 0);
	assert_int_equal(rig.detector.calibration(&rig.cut, &cut), 0);
	assert_int_equal(rig.cut.generator->calibration(rig.whole_state, &whole), 0);
	assert_int_equal(cut.cells, 3);
	for (uint32_t i = 0; i < 2 * 6 * 9; i++) {
		uint64_t pixels = sl_geometry_pixels(&rig.whole);
		uint64_t at = (2 + i / 54) * pixels + (50 + i / 9 % 3) * rig.whole.columns + 100 +
			      i % 9;

		assert_int_equal(cut.mask[i], whole.mask[at]);
		for (unsigned g = 0; g < 3; g++) {
			assert_true(cut.gain[g][i] == whole.gain[g][at]);
			/* The second frame of a stack is two frames, and so two cells, later. */
			for (uint32_t cell = 0; cell < 3; cell++)
				assert_true(
					cut.pedestal[g][cell * 2 * 6 * 9 + i] ==
					whole.pedestal[g][(cell + i / 27 % 2 * 2) % 3 * 4 * pixels +
							  at]);
		}
	}
	rig_close(&rig);
}

/* The mask of a rectangle that has a bad pixel. */
static void a_mask_goes_with_its_pixels(void **state)
{
	struct sl_calibration cut, whole;
	struct rig rig;
	uint32_t bad = 0;

	(void)state;
	assert_int_equal(rig_open(&rig, &sl_detector_jungfrau,
				  (struct sl_cut_options){.x = 24, .width = 1000, .y = 12}),
			 0);
	assert_int_equal(rig.detector.calibration(&rig.cut, &cut), 0);
	assert_int_equal(rig.cut.generator->calibration(rig.whole_state, &whole), 0);
	for (uint32_t m = 0; m < 4; m++)
		for (uint32_t i = 0; i < 500 * 1000; i++) {
			uint8_t is = cut.mask[m * 500 * 1000 + i];

			bad += is;
			assert_int_equal(
				is, whole.mask[(m * 512 + 12 + i / 1000) * 1024 + 24 + i % 1000]);
		}
	assert_true(bad > 50);
	rig_close(&rig);
}

static void whole_modules_keep_their_places(void **state)
{
	struct rig rig;

	(void)state;
	assert_int_equal(rig_open(&rig, &sl_detector_jungfrau,
				  (struct sl_cut_options){
					  .first_module = 1, .modules = 2, .every = 3, .phase = 1}),
			 0);
	assert_int_equal(rig.geometry.layout.rows, rig.whole.layout.rows);
	assert_int_equal(rig.geometry.layout.columns, rig.whole.layout.columns);
	assert_int_equal(rig.geometry.layout.gap, 2);
	assert_true(rig.geometry.layout.beam_row == rig.whole.layout.beam_row);
	for (uint32_t m = 0; m < 2; m++)
		assert_memory_equal(&rig.geometry.layout.module[m], &rig.whole.layout.module[1 + m],
				    sizeof(struct sl_layout_module));
	assert_int_equal(rig.geometry.cells, 3);
	rig_close(&rig);
	/* Of a detector that has no layout, too. */
	assert_int_equal(
		rig_open(&rig, &sl_detector_pattern, (struct sl_cut_options){.first_module = 2}),
		0);
	assert_int_equal(rig.geometry.layout.rows, 4 * 4);
	assert_int_equal(rig.geometry.layout.module[0].row, 2 * 4);
	rig_close(&rig);
}

static void rectangles_lie_one_below_the_other(void **state)
{
	struct sl_layout layout;
	struct rig rig;

	(void)state;
	assert_int_equal(rig_open(&rig, &sl_detector_jungfrau,
				  (struct sl_cut_options){.x = 3, .width = 100, .height = 50}),
			 0);
	sl_layout_resolve(&rig.geometry, &layout);
	assert_int_equal(layout.rows, 4 * 50);
	assert_int_equal(layout.columns, 100);
	assert_int_equal(layout.module[3].row, 150);
	rig_close(&rig);
}

/* The tables of a stack's frames, one after the other; a short one is filled as far as it goes. */
static void truth_goes_with_its_frames(void **state)
{
	double cut[300][9], whole[300][9];
	uint32_t rows = 0, hits = 0;
	uint64_t frame;
	struct rig rig;

	(void)state;
	assert_int_equal(rig_open(&rig, &sl_detector_jungfrau,
				  (struct sl_cut_options){.every = 1, .stack = 12}),
			 0);
	for (frame = 0; frame < 36 && rows < 50; frame += 12) {
		uint32_t first = 0, count;

		rows = rig.detector.truth_rows(&rig.cut, frame, 0, cut[0], 300);
		for (uint64_t f = frame; f < frame + 12; f++, first += count) {
			count = rig.cut.generator->truth_rows(rig.whole_state, f, 0, whole[0], 300);
			assert_memory_equal(cut[first], whole[0], count * sizeof(whole[0]));
			hits += count > 0;
		}
		assert_int_equal(rows, first);
	}
	frame -= 12;
	assert_true(hits > 0 && rows > 10);
	memset(cut, 0, sizeof(cut));
	assert_int_equal(rig.detector.truth_rows(&rig.cut, frame, 0, cut[0], 10), rows);
	assert_true(cut[9][0] > 0 && cut[10][0] == 0);
	rig_close(&rig);
}

static void records_describe_the_whole_module(void **state)
{
	struct rig rig;
	struct sl_record record;
	const void *pixels;

	(void)state;
	assert_int_equal(rig_open(&rig, &sl_detector_pattern,
				  (struct sl_cut_options){.part = SL_CUT_RECORDS, .stack = 2}),
			 0);
	assert_int_equal(rig.geometry.module_bytes, 2 * SL_RECORD_BYTES);
	assert_null(rig.detector.calibration);
	assert_int_equal(rig.detector.render(&rig.cut, 20, 3, 0, rig.buffer, &pixels), 0);
	memcpy(&record, (const uint8_t *)pixels + SL_RECORD_BYTES, sizeof(record));
	assert_true(sl_record_valid(&record));
	assert_int_equal(record.frame, 21);
	assert_int_equal(record.module, 3);
	assert_int_equal(record.bytes, rig.whole.module_bytes);
	source_pixel(&rig, 21, 3, 0, 0, 0); /* renders the whole module */
	assert_int_equal(record.crc32c, sl_crc32c(0, rig.whole_buffer, rig.whole.module_bytes));
	rig_close(&rig);
	/* Of three storage cells each frame of a stack has its own. */
	assert_int_equal(rig_open(&rig, &sl_detector_jungfrau,
				  (struct sl_cut_options){.part = SL_CUT_RECORDS, .stack = 2}),
			 0);
	for (uint64_t frame = 20; frame < 24; frame += 2) {
		assert_int_equal(rig.detector.render(&rig.cut, frame, 0, 0, rig.buffer, &pixels),
				 0);
		for (uint32_t i = 0; i < 2; i++) {
			memcpy(&record, (const uint8_t *)pixels + i * SL_RECORD_BYTES,
			       sizeof(record));
			assert_int_equal(record.cell, (frame + i) % 3);
		}
	}
	rig_close(&rig);
}

/* Both sides open the detector alike, so the receiver knows what the text must be. */
static void configuration_is_that_of_the_source(void **state)
{
	struct rig rig;
	const void *pixels;

	(void)state;
	assert_int_equal(
		rig_open(&rig, &sl_detector_pattern,
			 (struct sl_cut_options){.part = SL_CUT_CONFIGURATION, .every = 3}),
		0);
	assert_int_equal(rig.geometry.module_bytes, SL_CONFIGURATION_BYTES);
	assert_int_equal(rig.geometry.dtype, SL_U8);
	assert_int_equal(rig.detector.render(&rig.cut, 21, 3, 0, rig.buffer, &pixels), 0);
	assert_ptr_equal(pixels, rig.buffer);
	assert_non_null(strstr(pixels, "kind: pattern\nmodules: 4\nframes: 60\n"));
	assert_non_null(strstr(pixels, "\ncolumns: 16\n"));
	assert_int_equal(((const char *)pixels)[SL_CONFIGURATION_BYTES - 1], 0);
	rig_close(&rig);
}

static void events_are_counted_as_long_as_they_are_whole(void **arg)
{
	static const struct {
		struct sl_cut_options options;
		uint32_t items; /* of rich: it has 256 to a block */
	} cases[] = {{{.modules = 2}, 256}, {{.stack = 3}, 768}, {{.every = 2, .stack = 2}, 512},
		     {{.height = 100}, 0},  {{.width = 47}, 0},	 {{.part = SL_CUT_RECORDS}, 0}};
	struct rig rig;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(rig_open(&rig, &sl_detector_rich, cases[i].options), 0);
		assert_int_equal(rig.geometry.items, cases[i].items);
		assert_int_equal(rig.geometry.rows % sl_geometry_items(&rig.geometry), 0);
		rig_close(&rig);
	}
	assert_int_equal(rig_open(&rig, &sl_detector_tracker, (struct sl_cut_options){.stack = 2}),
			 0);
	assert_int_equal(sl_geometry_frame_items(&rig.geometry), 8);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pixel_is_the_source_s),
		cmocka_unit_test(the_run_is_as_long_as_frames_are_chosen),
		cmocka_unit_test(a_choppers_frames_stay_dark),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(calibration_goes_with_its_pixels),
		cmocka_unit_test(a_mask_goes_with_its_pixels),
		cmocka_unit_test(whole_modules_keep_their_places),
		cmocka_unit_test(rectangles_lie_one_below_the_other),
		cmocka_unit_test(truth_goes_with_its_frames),
		cmocka_unit_test(records_describe_the_whole_module),
		cmocka_unit_test(configuration_is_that_of_the_source),
		cmocka_unit_test(events_are_counted_as_long_as_they_are_whole),
	};

	return cmocka_run_group_tests_name("cut", tests, NULL, NULL);
}
