/* conformance_test.c - what every detector must do. A new one is tested by adding it to the list.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sluice/detector.h>

#ifdef OF_PLUGIN /* that of docs/tutorials/write-a-detector.md */
#include <sluice/plugin.h>

static const struct sl_detector *detectors[1];

__attribute__((constructor)) static void take_detector(void)
{
	detectors[0] = sl_plugin.detectors[0];
}
#else
extern const struct sl_detector sl_detector_camera, sl_detector_eiger, sl_detector_jungfrau,
	sl_detector_pattern, sl_detector_rich, sl_detector_speckle, sl_detector_tracker;

static const struct sl_detector *const detectors[] = {
	&sl_detector_camera, &sl_detector_eiger,   &sl_detector_jungfrau, &sl_detector_pattern,
	&sl_detector_rich,   &sl_detector_speckle, &sl_detector_tracker};
#endif

struct subject {
	const struct sl_detector *ops;
	void *state;
	struct sl_geometry geometry;
	void *buffer;
};

/* extreme: -1 every number at its minimum, 1 at its maximum, but for those that memory grows with,
 * whose maximum is a matter of the machine; 0 defaults. */
static void set_options(const struct sl_option *options, void *base, int extreme)
{
	char text[64], why[128];

	sl_options_defaults(options, base);
	for (; extreme && options->name; options++) {
		double value = extreme < 0 ? options->min : options->max;

		if (extreme > 0 && strstr(" pool spots width height ", options->name))
			continue;
		if (options->type > SL_OPTION_F64)
			continue;
		snprintf(text, sizeof(text), "%.17g", value);
		assert_int_equal(sl_option_set(options, base, text, why, sizeof(why)), 0);
	}
}

static struct subject subject_open(const struct sl_detector *ops, uint64_t seed, uint32_t modules,
				   double rate, int extreme)
{
	struct sl_detector_options run = {
		.modules = modules, .frames = 100, .seed = seed, .frame_rate_Hz = rate};
	struct subject s = {.ops = ops, .state = calloc(1, ops->state_bytes)};

	set_options(ops->options, s.state, extreme);
	assert_int_equal(ops->open(s.state, &run, &s.geometry), 0);
	s.buffer = calloc(1, s.geometry.module_bytes);
	assert_non_null(s.buffer);
	return s;
}

static void subject_close(struct subject *s)
{
	s->ops->close(s->state);
	free(s->state);
	free(s->buffer);
}

static const void *subject_render(struct subject *s, uint64_t frame, uint32_t module,
				  uint32_t flags)
{
	const void *pixels = NULL;

	assert_int_equal(s->ops->render(s->state, frame, module, flags, s->buffer, &pixels), 0);
	assert_non_null(pixels);
	return pixels;
}

/* Frames of two subjects, or two frames of one: compared by value, since a buffer is reused. */
static bool frames_equal(struct subject *a, uint64_t frame_a, struct subject *b, uint64_t frame_b,
			 uint32_t module_a, uint32_t module_b, uint32_t flags_a, uint32_t flags_b)
{
	size_t bytes = a->geometry.module_bytes;
	void *copy = malloc(bytes);
	bool equal;

	memcpy(copy, subject_render(a, frame_a, module_a, flags_a), bytes);
	equal = !memcmp(copy, subject_render(b, frame_b, module_b, flags_b), bytes);
	free(copy);
	return equal;
}

#define FOR_EACH(ops)                                                 \
	for (const struct sl_detector *const *each = detectors, *ops; \
	     each < detectors + sizeof(detectors) / sizeof(*detectors) && (ops = *each); each++)

static void test_names_and_docs(void **arg)
{
	FOR_EACH(ops)
	{
		assert_true(strlen(ops->name) > 0 && strlen(ops->name) < SL_NAME_BYTES);
		assert_true(strlen(ops->doc) > 0);
		for (const struct sl_option *o = ops->options; o->name; o++) {
			assert_true(strlen(o->doc) > 0);
			assert_true(o->offset + o->size <= ops->state_bytes);
			assert_ptr_equal(sl_option_find(ops->options, o->name), o);
		}
	}
}

static void test_run_options_have_documented_defaults(void **arg)
{
	struct sl_detector_options run;

	sl_options_defaults(sl_detector_options, &run);
	assert_int_equal(run.modules, 1);
	assert_int_equal(run.frames, 1000);
	assert_int_equal(run.dark_frames, 0);
	assert_int_equal(run.seed, 1);
	assert_true(run.frame_rate_Hz == 0);
}

static void test_geometry_is_consistent(void **arg)
{
	FOR_EACH(ops)
	{
		struct subject s = subject_open(ops, 1, 2, 0, 0);

		assert_string_equal(s.geometry.detector, ops->name);
		assert_int_equal(s.geometry.modules, 2);
		assert_int_equal(s.geometry.module_bytes, sl_geometry_pixels(&s.geometry) *
								  sl_dtype_bytes(s.geometry.dtype));
		assert_true(s.geometry.bit_depth <= 8 * sl_dtype_bytes(s.geometry.dtype));
		assert_int_equal(s.geometry.rows % sl_geometry_items(&s.geometry), 0);
		assert_true(ops->rate_Hz >= 0);
		subject_close(&s);
	}
}

static void test_two_copies_agree(void **arg)
{
	FOR_EACH(ops)
	{
		struct subject a = subject_open(ops, 7, 2, 0, 0), b = subject_open(ops, 7, 2, 0, 0);

		/* Asked in another order: nothing may depend on who came first. */
		subject_render(&b, 5, 1, 0);
		for (uint64_t frame = 0; frame < 4; frame++)
			for (uint32_t module = 0; module < 2; module++)
				for (uint32_t flags = 0; flags <= SL_RECORD_DARK; flags++)
					assert_true(frames_equal(&a, frame, &b, frame, module,
								 module, flags, flags));
		subject_close(&a);
		subject_close(&b);
	}
}

static void test_a_frame_stays_what_it_was(void **arg)
{
	FOR_EACH(ops)
	{
		struct subject s = subject_open(ops, 3, 2, 0, 0);

		assert_true(frames_equal(&s, 2, &s, 2, 1, 1, 0, 0));
		subject_render(&s, 3, 0, 0);
		subject_render(&s, 2, 1, SL_RECORD_DARK);
		assert_true(frames_equal(&s, 2, &s, 2, 1, 1, 0, 0));
		subject_close(&s);
	}
}

static void test_pixels_depend_on_frame_module_dark_and_seed(void **arg)
{
	FOR_EACH(ops)
	{
		struct subject s = subject_open(ops, 1, 2, 0, 0);
		struct subject other = subject_open(ops, 2, 2, 0, 0);

		assert_false(frames_equal(&s, 0, &s, 1, 0, 0, 0, 0));
		assert_false(frames_equal(&s, 0, &s, 0, 0, 1, 0, 0));
		assert_false(frames_equal(&s, 0, &s, 0, 0, 0, 0, SL_RECORD_DARK));
		assert_false(frames_equal(&s, 0, &s, 1, 0, 0, SL_RECORD_DARK, SL_RECORD_DARK));
		assert_false(frames_equal(&s, 0, &other, 0, 0, 0, 0, 0));
		subject_close(&s);
		subject_close(&other);
	}
}

static void test_frames_are_there_up_to_the_end(void **arg)
{
	FOR_EACH(ops)
	{
		struct subject a = subject_open(ops, 1, 1, 0, 0), b = subject_open(ops, 1, 1, 0, 0);
		uint64_t last = UINT64_C(1000000000000);

		assert_true(frames_equal(&a, last, &b, last, 0, 0, 0, 0));
		assert_false(frames_equal(&a, last, &a, last - 1, 0, 0, 0, 0));
		subject_close(&a);
		subject_close(&b);
	}
}

static void test_module_out_of_range_is_refused(void **arg)
{
	FOR_EACH(ops)
	{
		struct subject s = subject_open(ops, 1, 3, 0, 0);
		const void *pixels = &pixels;

		assert_int_equal(ops->render(s.state, 0, 3, 0, s.buffer, &pixels), -EINVAL);
		assert_int_equal(ops->render(s.state, 0, UINT32_MAX, 0, s.buffer, &pixels),
				 -EINVAL);
		assert_ptr_equal(pixels, &pixels);
		subject_close(&s);
	}
}

static void test_timestamps_increase(void **arg)
{
	static const double rates[] = {0, 0.1, 3, 1000, 1e7};

	FOR_EACH(ops)
	for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
		struct subject s = subject_open(ops, 1, 1, rates[r], 0);
		struct subject t = subject_open(ops, 1, 1, rates[r], 0);

		for (uint64_t frame = 0; frame < 100; frame++) {
			uint64_t now = ops->timestamp(s.state, frame);

			assert_true(ops->timestamp(s.state, frame + 1) > now);
			assert_true(ops->timestamp(t.state, frame) == now);
		}
		subject_close(&s);
		subject_close(&t);
	}
}

static void test_timestamps_follow_the_frame_rate(void **arg)
{
	FOR_EACH(ops)
	{
		struct subject fast = subject_open(ops, 1, 1, 0, 0);
		struct subject slow = subject_open(ops, 1, 1, 100, 0);

		assert_int_equal(ops->timestamp(fast.state, 7), 7000000);
		assert_int_equal(ops->timestamp(slow.state, 7), 70000000);
		subject_close(&fast);
		subject_close(&slow);
	}
}

static void test_truth_is_deterministic_and_dark_frames_are_no_hits(void **arg)
{
	FOR_EACH(ops)
	{
		struct subject a = subject_open(ops, 5, 1, 0, 0), b = subject_open(ops, 5, 1, 0, 0);

		for (uint64_t frame = 0; frame < 100; frame++) {
			struct sl_truth ta, tb, dark;

			ops->truth(a.state, frame, 0, &ta);
			ops->truth(b.state, frame, 0, &tb);
			ops->truth(a.state, frame, SL_RECORD_DARK, &dark);
			assert_int_equal(ta.hit, tb.hit);
			assert_int_equal(ta.spots, tb.spots);
			assert_int_equal(ta.hit, ta.spots > 0);
			assert_false(dark.hit);
		}
		subject_close(&a);
		subject_close(&b);
	}
}

static void test_pictures_are_whole_and_items_out_of_range_are_refused(void **arg)
{
	enum { ROWS = 60, COLUMNS = 90 };

	FOR_EACH(ops)
	{
		struct subject s = subject_open(ops, 5, 2, 0, 0);
		uint32_t items = sl_geometry_frame_items(&s.geometry);
		uint8_t a[ROWS * COLUMNS * 3 + 1], b[ROWS * COLUMNS * 3 + 1];

		if (ops->picture) {
			memset(a, 0x11, sizeof(a));
			memset(b, 0x22, sizeof(b));
			assert_int_equal(ops->picture(s.state, 3, 0, items - 1, a, ROWS, COLUMNS),
					 0);
			assert_int_equal(ops->picture(s.state, 3, 0, items - 1, b, ROWS, COLUMNS),
					 0);
			assert_memory_equal(a, b, sizeof(a) - 1);
			assert_int_equal(a[sizeof(a) - 1], 0x11);
			assert_int_equal(ops->picture(s.state, 3, 0, items, a, ROWS, COLUMNS),
					 -EINVAL);
		}
		subject_close(&s);
	}
}

static void test_prepare_changes_nothing(void **arg)
{
	FOR_EACH(ops)
	{
		struct subject a = subject_open(ops, 1, 1, 0, 0), b = subject_open(ops, 1, 1, 0, 0);

		if (ops->prepare)
			assert_int_equal(ops->prepare(a.state), 0);
		assert_true(frames_equal(&a, 12, &b, 12, 0, 0, 0, 0));
		assert_true(frames_equal(&a, 12, &b, 12, 0, 0, SL_RECORD_DARK, SL_RECORD_DARK));
		subject_close(&a);
		subject_close(&b);
	}
}

static void test_extreme_options_work(void **arg)
{
	FOR_EACH(ops)
	for (int extreme = -1; extreme <= 1; extreme += 2) {
		struct subject s = subject_open(ops, 1, 1, 0, extreme);

		for (uint64_t frame = 0; frame < 3; frame++) {
			subject_render(&s, frame, 0, 0);
			subject_render(&s, frame, 0, SL_RECORD_DARK);
		}
		subject_close(&s);
	}
}

static void test_many_modules(void **arg)
{
	FOR_EACH(ops)
	{
		struct subject s = subject_open(ops, 1, 9, 0, 0);

		assert_int_equal(s.geometry.modules, 9);
		assert_false(frames_equal(&s, 0, &s, 0, 8, 7, 0, 0));
		subject_close(&s);
	}
}

static void test_calibration_is_complete_where_there_is_one(void **arg)
{
	FOR_EACH(ops)
	{
		struct subject s = subject_open(ops, 1, 2, 0, 0);
		struct sl_calibration calibration = {{0}};
		size_t last = 2 * sl_geometry_pixels(&s.geometry) - 1;

		if (ops->calibration) {
			assert_int_equal(ops->calibration(s.state, &calibration), 0);
			for (int g = 0; g < 3; g++) {
				assert_true(calibration.pedestal[g][0] > 0);
				assert_true(calibration.pedestal[g][last] > 0);
				assert_true(calibration.gain[g][last] == calibration.gain[g][last]);
			}
		}
		subject_close(&s);
	}
}

static void test_modules_have_places_in_an_image(void **arg)
{
	static const uint32_t sizes[] = {1, 2, 8, 9};

	FOR_EACH(ops)
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		struct subject s = subject_open(ops, 1, sizes[n], 0, 0);
		struct sl_geometry g = s.geometry;
		char why[100];

		sl_layout_resolve(&g, &g.layout);
		assert_int_equal(sl_layout_check(&g, why, sizeof(why)), 0);
		/* One who has a layout says where the beam is, too. */
		if (s.geometry.layout.rows && g.photon_energy_keV > 0)
			assert_true(g.layout.beam_row > 0 && g.layout.beam_column > 0);
		subject_close(&s);
	}
}

static void test_events_are_whole_rows(void **arg)
{
	FOR_EACH(ops)
	{
		struct subject s = subject_open(ops, 1, 1, 0, 0);

		assert_int_equal(s.geometry.rows % sl_geometry_items(&s.geometry), 0);
		subject_close(&s);
	}
}

static void test_cells_of_geometry_and_calibration_agree(void **arg)
{
	FOR_EACH(ops)
	for (int extreme = 0; extreme <= 1; extreme++) {
		struct subject s = subject_open(ops, 1, 1, 0, extreme);
		uint64_t pixels = sl_geometry_pixels(&s.geometry);
		struct sl_calibration c = {.cells = 0};
		uint64_t masked = 0;

		if (ops->calibration) {
			assert_int_equal(ops->calibration(s.state, &c), 0);
			if (c.cells > 1)
				assert_int_equal(c.cells, s.geometry.cells);
			for (int g = 0; g < 3; g++)
				assert_true(c.pedestal[g][(c.cells ? c.cells : 1) * pixels - 1] >
					    0);
			for (uint64_t i = 0; c.mask && i < pixels; i++)
				masked += c.mask[i] != 0;
			assert_true(masked < pixels / 10);
		}
		subject_close(&s);
	}
}

static uint32_t count_columns(const struct sl_detector *ops)
{
	uint32_t columns = 0;

	while (ops->truth_columns && ops->truth_columns[columns].name)
		columns++;
	return columns;
}

static void test_truth_columns_have_names_and_units(void **arg)
{
	FOR_EACH(ops)
	{
		uint32_t columns = count_columns(ops);

		assert_int_equal(ops->truth_columns != NULL, ops->truth_rows != NULL);
		assert_true(columns <= SL_TRUTH_COLUMNS);
		assert_true(!ops->truth_columns || columns > 0);
		assert_true(ops->rate_Hz >= 0);
		for (uint32_t i = 0; i < columns; i++) {
			assert_true(strlen(ops->truth_columns[i].name) > 0);
			assert_non_null(ops->truth_columns[i].unit);
			for (uint32_t k = 0; k < i; k++)
				assert_string_not_equal(ops->truth_columns[i].name,
							ops->truth_columns[k].name);
		}
	}
}

/* As many rows as there are spots, the same ones for everybody, and no more than asked for. */
static void check_truth_rows(struct subject *a, struct subject *b, uint64_t frame, uint32_t flags)
{
	const struct sl_detector *ops = a->ops;
	uint32_t columns = count_columns(ops), rows;
	double *table, *other;
	struct sl_truth truth;

	ops->truth(a->state, frame, flags, &truth);
	rows = ops->truth_rows(a->state, frame, flags, NULL, 0);
	assert_int_equal(rows, truth.spots);
	table = calloc((size_t)(rows + 1) * columns, sizeof(*table));
	other = calloc((size_t)(rows + 1) * columns, sizeof(*other));
	assert_int_equal(ops->truth_rows(a->state, frame, flags, table, rows), rows);
	assert_int_equal(ops->truth_rows(b->state, frame, flags, other, rows / 2), rows);
	assert_memory_equal(table, other, (size_t)rows / 2 * columns * sizeof(*table));
	for (uint32_t i = 0; i < (rows + 1) * columns; i++) {
		assert_true(table[i] - table[i] == 0); /* finite */
		if (i >= rows / 2 * columns)
			assert_true(other[i] == 0);
	}
	free(table);
	free(other);
}

static void test_truth_rows_are_as_many_as_there_are_spots(void **arg)
{
	FOR_EACH(ops)
	{
		struct subject a = subject_open(ops, 5, 2, 0, 0), b = subject_open(ops, 5, 2, 0, 0);

		for (uint64_t frame = 0; ops->truth_rows && frame < 40; frame++) {
			check_truth_rows(&a, &b, frame, 0);
			check_truth_rows(&a, &b, frame, SL_RECORD_DARK);
		}
		subject_close(&a);
		subject_close(&b);
	}
}

/* The first column says which of the frame's events it is of, in order. */
static void test_truth_of_events_names_events_of_the_frame(void **arg)
{
	FOR_EACH(ops)
	{
		struct subject s = subject_open(ops, 5, 2, 0, 0);
		uint32_t columns = count_columns(ops), rows;
		double *table;

		if (s.geometry.items && ops->truth_rows) {
			assert_string_equal(ops->truth_columns[0].name, "event");
			rows = ops->truth_rows(s.state, 3, 0, NULL, 0);
			table = calloc((size_t)rows + 1, columns * sizeof(*table));
			ops->truth_rows(s.state, 3, 0, table, rows);
			for (uint32_t i = 0; i < rows; i++) {
				double event = table[(size_t)i * columns];

				assert_true(event >= 0 && event == (uint32_t)event);
				assert_true(event < sl_geometry_frame_items(&s.geometry));
				assert_true(!i || event >= table[(size_t)(i - 1) * columns]);
			}
			free(table);
		}
		subject_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_and_docs),
		cmocka_unit_test(test_run_options_have_documented_defaults),
		cmocka_unit_test(test_geometry_is_consistent),
		cmocka_unit_test(test_two_copies_agree),
		cmocka_unit_test(test_a_frame_stays_what_it_was),
		cmocka_unit_test(test_pixels_depend_on_frame_module_dark_and_seed),
		cmocka_unit_test(test_frames_are_there_up_to_the_end),
		cmocka_unit_test(test_module_out_of_range_is_refused),
		cmocka_unit_test(test_timestamps_increase),
		cmocka_unit_test(test_timestamps_follow_the_frame_rate),
		cmocka_unit_test(test_truth_is_deterministic_and_dark_frames_are_no_hits),
		cmocka_unit_test(test_pictures_are_whole_and_items_out_of_range_are_refused),
		cmocka_unit_test(test_prepare_changes_nothing),
		cmocka_unit_test(test_extreme_options_work),
		cmocka_unit_test(test_many_modules),
		cmocka_unit_test(test_calibration_is_complete_where_there_is_one),
		cmocka_unit_test(test_modules_have_places_in_an_image),
		cmocka_unit_test(test_events_are_whole_rows),
		cmocka_unit_test(test_cells_of_geometry_and_calibration_agree),
		cmocka_unit_test(test_truth_columns_have_names_and_units),
		cmocka_unit_test(test_truth_rows_are_as_many_as_there_are_spots),
		cmocka_unit_test(test_truth_of_events_names_events_of_the_frame),
	};

	return cmocka_run_group_tests_name("detector conformance", tests, NULL, NULL);
}
