/* edge_test.c - dark and flat; frames, rings and modules without a valid pixel; a beam
 * off the image; and what cannot be integrated is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/capture.h"
#include "lib/integrate_rig.h"

/* A file of numbers; its path. */
static const char *write_file(const char *name, const void *numbers, size_t bytes)
{
	static char path[160];
	const char *folder = getenv("TMPDIR");
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s-%d", folder ? folder : "/tmp", name, (int)getpid());
	file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(numbers, 1, bytes, file), bytes);
	fclose(file);
	return path;
}

static void remove_file(const char *name)
{
	unlink(write_file(name, "", 0));
}

/* With all that can be wrong with them. */
static void make_fields(float *dark, float *flat)
{
	for (int i = 0; i < RIG_PIXELS; i++) {
		dark[i] = (float)(i % 7) * 0.37f - (float)(i % 31 == 0);
		flat[i] = 0.5f + (float)(i % 11) * 0.1f;
	}
	dark[17] = NAN;
	flat[33] = 0;
	flat[34] = NAN;
	flat[35] = INFINITY;
	flat[36] = -1;
}

static void dark_and_flat_are_taken_into_account(void **arg)
{
	static float dark[RIG_PIXELS], flat[RIG_PIXELS];

	(void)arg;
	make_fields(dark, flat);
	for (unsigned n = 0; n < 4 * 5; n++) {
		struct oracle o = oracle_for(n % 8);
		struct stack stack;
		struct rig rig;

		o.dark = n / 5 != 1 ? dark : NULL;
		o.flat = n / 5 != 2 ? flat : NULL;
		rig_for(&rig, types[n % 5], &o);
		if (o.dark)
			rig_set(&rig, "dark", write_file("dark", dark, sizeof(dark)));
		if (o.flat)
			rig_set(&rig, "flat", write_file("flat", flat, sizeof(flat)));
		rig_open(&rig);
		stack_init(&stack, types[n % 5]);
		rig_run(&rig, stack.frame, FRAMES, 20, 100, 2);
		check_stack(&rig, &o, &stack, n);
		stack_fini(&stack);
		rig_close(&rig);
	}
	remove_file("dark");
	remove_file("flat");
}

/* Run one stack of int16 in which some frames are all bad; sigma and intensity of each. */
static void without_a_valid_pixel_there_is_no_number(void **arg)
{
	(void)arg;
	for (unsigned n = 0; n < 8; n++) {
		struct oracle o = oracle_for(n);
		struct stack stack;
		struct rig rig;

		rig_for(&rig, SL_I16, &o);
		rig_open(&rig);
		stack_init(&stack, SL_I16);
		for (int i = 0; i < RIG_PIXELS; i++) {
			((int16_t *)stack.frame[2].in)[i] = INT16_MIN;
			((int16_t *)stack.frame[19].in)[i] = INT16_MAX;
		}
		rig_run(&rig, stack.frame, FRAMES, 20, 64, 2);
		for (uint32_t k = 0; k < BINS; k++) {
			assert_true(isnan(stack.result[2][0][k + (o.sectors ? 0 : BINS)]));
			assert_true(isnan(stack.result[19][o.sectors ? 1 : 0]
						      [k + (o.sectors ? 0 : 2 * BINS)]));
		}
		oracle_run(&rig, &o, stack.frame[3].in);
		if (!o.sectors)
			assert_true(oracle_check(&o, stack.result[3][0] + BINS,
						 stack.result[3][0] + 2 * BINS) > BINS / 3);
		stack_fini(&stack);
		rig_close(&rig);
	}
}

/* Whatever its pixels say: int16 is filled up with -1. */
static void a_missing_module_counts_nowhere(void **arg)
{
	(void)arg;
	for (unsigned n = 0; n < 4; n++) {
		struct oracle o = oracle_for(n);
		static uint8_t mask[RIG_PIXELS];
		struct stack stack;
		struct rig rig;

		rig_for(&rig, SL_I16, &o);
		rig_open(&rig);
		stack_init(&stack, SL_I16);
		for (int f = 0; f < FRAMES; f++) {
			stack.frame[f].frame.missing = 2;
			memset((int16_t *)stack.frame[f].in + RIG_MODULE_PIXELS, SL_FILL_BYTE,
			       RIG_MODULE_PIXELS * sizeof(int16_t));
		}
		rig_run(&rig, stack.frame, FRAMES, 20, 64, 2);
		memset(mask + RIG_MODULE_PIXELS, 1, RIG_MODULE_PIXELS);
		o.mask = mask;
		for (int f = 0; f < FRAMES; f++) {
			const float *first = stack.result[f][0];

			oracle_run(&rig, &o, stack.frame[f].in);
			assert_true((o.sectors ? oracle_check(&o, first, stack.result[f][1])
					       : oracle_check(&o, first + BINS, first + 2 * BINS)) >
				    10);
		}
		stack_fini(&stack);
		rig_close(&rig);
	}
}

static void a_dark_frame_has_zeros_and_harms_no_other(void **arg)
{
	struct oracle o = oracle_for(1);
	struct stack stack;
	struct rig rig;

	(void)arg;
	rig_for(&rig, SL_U16, &o);
	rig_open(&rig);
	stack_init(&stack, SL_U16);
	for (int f = 0; f < FRAMES; f++)
		if (f % 3 == 0 || f >= 16)
			stack.frame[f].frame.flags |= SL_FRAME_DARK;
	rig_run(&rig, stack.frame, FRAMES, FRAMES, 64, 2);
	for (int f = 0; f < FRAMES; f++) {
		const float *profile = stack.result[f][0];

		oracle_run(&rig, &o, stack.frame[f].in);
		if (stack.frame[f].frame.flags & SL_FRAME_DARK)
			for (int b = 0; b < 2 * BINS; b++)
				assert_true(profile[BINS + b] == 0);
		else
			oracle_check(&o, profile + BINS, profile + 2 * BINS);
	}
	stack_fini(&stack);
	rig_close(&rig);
}

static void the_beam_may_be_off_the_image(void **arg)
{
	(void)arg;
	for (unsigned n = 0; n < 8; n++) {
		struct oracle o = oracle_for(n);
		struct stack stack;
		struct rig rig;

		o.low = 45;
		o.high = 75;
		rig_for(&rig, SL_U16, &o);
		rig.geometry.layout.beam_row = -12.25;
		rig.geometry.layout.beam_column = -20.6;
		rig_open(&rig);
		stack_init(&stack, SL_U16);
		rig_run(&rig, stack.frame, FRAMES, 20, 100, 2);
		for (int f = 0; f < FRAMES; f++) {
			const float *first = stack.result[f][0];

			oracle_run(&rig, &o, stack.frame[f].in);
			assert_true((o.sectors ? oracle_check(&o, first, stack.result[f][1])
					       : oracle_check(&o, first + BINS, first + 2 * BINS)) >
				    5);
		}
		stack_fini(&stack);
		rig_close(&rig);
	}
}

static void refused(struct rig *rig, const char *words)
{
	capture_begin();
	assert_true(rig_try_open(rig) < 0);
	assert_non_null(strstr(capture_end(), words));
	rig_close(rig);
}

static void what_cannot_be_is_refused(void **arg)
{
	static const struct {
		const char *option, *value;
		double distance, energy, pixel;
		const char *words;
	} bad[] = {
		{"bins", "10", 0, 12.4, 75e-6, "distance_m"},
		{"bins", "10", 0.1, 0, 75e-6, "photon_energy_keV"},
		{"bins", "10", 0.1, 12.4, 0, "no pixel size"},
		{"low", "60", 0.1, 12.4, 75e-6, "high must be above low"},
		{"low", "50", 0.1, 12.4, 75e-6, "high must be above low"},
		{"low", "49.99", 10, 12.4, 75e-6, "no pixel that is not masked"},
		{"dark", "/nothing/there", 0.1, 12.4, 75e-6, "cannot read '/nothing/there'"},
		{"flat", "/nothing/there", 0.1, 12.4, 75e-6, "integrate: flat"},
	};
	struct oracle o = oracle_for(0);

	(void)arg;
	for (unsigned i = 0; i < 2 * sizeof(bad) / sizeof(*bad); i++) {
		struct rig rig;

		o.boxes = i & 1;
		rig_for(&rig, SL_I16, &o);
		rig_set(&rig, bad[i / 2].option, bad[i / 2].value);
		rig.geometry.distance_m = bad[i / 2].distance;
		rig.geometry.photon_energy_keV = bad[i / 2].energy;
		rig.geometry.pixel_size_m = bad[i / 2].pixel;
		refused(&rig, bad[i / 2].words);
	}
}

static void tables_of_the_wrong_shape_or_without_a_number_are_refused(void **arg)
{
	static float numbers[RIG_PIXELS];
	static uint8_t all[RIG_PIXELS];
	struct oracle o = oracle_for(1);
	struct rig rig;

	(void)arg;
	rig_for(&rig, SL_I16, &o);
	rig_set(&rig, "dark", write_file("dark", numbers, sizeof(numbers) - 4));
	refused(&rig, "bytes; 2 modules of 5 x 61 pixels are");
	rig_for(&rig, SL_I16, &o);
	rig_set(&rig, "flat", write_file("flat", numbers, sizeof(numbers)));
	refused(&rig, "no pixel that is not masked"); /* all are 0 */
	for (int i = 0; i < RIG_PIXELS; i++)
		numbers[i] = NAN;
	rig_for(&rig, SL_I16, &o);
	rig_set(&rig, "dark", write_file("dark", numbers, sizeof(numbers)));
	refused(&rig, "not one finite number");
	remove_file("dark");
	remove_file("flat");

	memset(all, 1, sizeof(all));
	o.mask = all;
	rig_for(&rig, SL_I16, &o);
	refused(&rig, "no pixel that is not masked");

	o.mask = NULL;
	rig_for(&rig, SL_I32, &o);
	refused(&rig, "not int32");
	rig_for(&rig, SL_I16, &o);
	rig.geometry.layout.beam_row = NAN;
	refused(&rig, "where the beam is");
}

static void numbers_that_are_none_are_no_options(void **arg)
{
	static const struct {
		const char *option, *value;
	} bad[] = {
		{"low", "nan"},		  {"low", "-1"},	   {"high", "nan"},
		{"high", "inf"},	  {"polarisation", "nan"}, {"bins", "0"},
		{"bins", "65536"},	  {"split", "pixel"},	   {"polarisation", "1.1"},
		{"azimuth_bins", "3601"},
	};

	(void)arg;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const struct sl_option *row =
			sl_option_find(sl_stage_integrate.options, bad[i].option);
		void *state = calloc(1, sl_stage_integrate.state_bytes);
		char why[128];

		assert_true(sl_option_set(row, state, bad[i].value, why, sizeof(why)) < 0);
		free(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dark_and_flat_are_taken_into_account),
		cmocka_unit_test(without_a_valid_pixel_there_is_no_number),
		cmocka_unit_test(a_missing_module_counts_nowhere),
		cmocka_unit_test(a_dark_frame_has_zeros_and_harms_no_other),
		cmocka_unit_test(the_beam_may_be_off_the_image),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(tables_of_the_wrong_shape_or_without_a_number_are_refused),
		cmocka_unit_test(numbers_that_are_none_are_no_options),
	};

	return cmocka_run_group_tests_name("integrate_edge", tests, NULL, NULL);
}
