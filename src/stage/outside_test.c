/* outside_test.c - every set of instructions gives the bits of the plainest loop. */
#include <math.h>

#include "lib/stage_rig.h"
#include "stage/outside.h"
#include "stage/vectors.h"

enum { BLOCKS = 40, PIXELS = BLOCKS * SL_OUTSIDE_BLOCK };

static const int64_t least[] = {[SL_I16] = INT16_MIN, [SL_F32] = 0};
static const int64_t most[] = {
	[SL_U8] = UINT8_MAX, [SL_U16] = UINT16_MAX, [SL_U32] = UINT32_MAX, [SL_I16] = INT16_MAX};
static const enum sl_dtype types[] = {SL_U8, SL_U16, SL_U32, SL_I16, SL_F32};

/* Often the ends of the range, and numbers next to the bounds. */
static int64_t draw(enum sl_dtype dtype, uint64_t *seed)
{
	uint32_t bits = rig_random(seed), kind = rig_random(seed) % 8;
	int64_t low = dtype == SL_F32 ? -1000 : least[dtype];
	int64_t high = dtype == SL_F32 ? 1000 : most[dtype];

	return kind == 0   ? low
	       : kind == 1 ? high
	       : kind < 5  ? low + (high - low) / 2 + (int64_t)(bits % 5) - 2
			   : low + (int64_t)((uint64_t)bits * 2 % (uint64_t)(high - low + 1));
}

static void store(enum sl_dtype dtype, void *pixels, int i, int64_t v, uint64_t *seed)
{
	static const float special[] = {NAN, INFINITY, -INFINITY, -0.0f};

	switch (dtype) {
	case SL_U8:
		((uint8_t *)pixels)[i] = (uint8_t)v;
		break;
	case SL_U16:
		((uint16_t *)pixels)[i] = (uint16_t)v;
		break;
	case SL_U32:
		((uint32_t *)pixels)[i] = (uint32_t)v;
		break;
	case SL_I16:
		((int16_t *)pixels)[i] = (int16_t)v;
		break;
	default:
		((float *)pixels)[i] = rig_random(seed) % 9 ? (float)v
							    : special[rig_random(seed) % 4];
	}
}

static double load(enum sl_dtype dtype, const void *pixels, int i)
{
	switch (dtype) {
	case SL_U8:
		return ((const uint8_t *)pixels)[i];
	case SL_U16:
		return ((const uint16_t *)pixels)[i];
	case SL_U32:
		return ((const uint32_t *)pixels)[i];
	case SL_I16:
		return ((const int16_t *)pixels)[i];
	default:
		return ((const float *)pixels)[i];
	}
}

static uint64_t plainest(enum sl_dtype dtype, const void *pixels, int first, int count,
			 const struct sl_outside_bounds *b)
{
	double low = dtype == SL_F32 ? b->real_low : (double)b->low;
	double high = dtype == SL_F32 ? b->real_high : (double)b->high;
	uint64_t mask = 0;

	for (int i = 0; i < count; i++) {
		double v = load(dtype, pixels, first + i);

		if (v > high || v < low)
			mask |= UINT64_C(1) << i;
	}
	return mask;
}

static void make(enum sl_dtype dtype, void *pixels, struct sl_outside_bounds *bounds,
		 uint64_t *seed)
{
	for (int i = 0; i < PIXELS; i++)
		store(dtype, pixels, i, draw(dtype, seed), seed);
	for (int b = 0; b < BLOCKS; b++) {
		bounds[b].low = draw(dtype, seed);
		bounds[b].high = draw(dtype, seed);
		bounds[b].real_low = (float)bounds[b].low;
		bounds[b].real_high = (float)bounds[b].high;
	}
}

static void test_all_sets_of_instructions_agree(void **arg)
{
	static uint32_t pixels[PIXELS];
	static struct sl_outside_bounds bounds[BLOCKS];
	uint64_t seed = 5, mask[BLOCKS];

	for (int round = 0; round < 200; round++)
		for (size_t t = 0; t < sizeof(types) / sizeof(*types); t++)
			for (uint32_t v = SL_VECTORS_AUTO; v <= SL_VECTORS_BASELINE; v++) {
				uint32_t step = round % 2;

				make(types[t], pixels, bounds, &seed);
				sl_outside_choose(types[t], v)(pixels, BLOCKS, bounds, step, mask);
				for (int b = 0; b < BLOCKS; b++)
					assert_true(mask[b] == plainest(types[t], pixels,
									b * SL_OUTSIDE_BLOCK,
									SL_OUTSIDE_BLOCK,
									&bounds[b * (int)step]));
			}
}

static void test_parts_of_a_block(void **arg)
{
	static uint32_t pixels[PIXELS];
	static struct sl_outside_bounds bounds[BLOCKS];
	uint64_t seed = 6;

	for (size_t t = 0; t < sizeof(types) / sizeof(*types); t++)
		for (uint32_t count = 0; count < SL_OUTSIDE_BLOCK; count++) {
			make(types[t], pixels, bounds, &seed);
			assert_true(sl_outside_part(types[t], pixels, count, bounds) ==
				    plainest(types[t], pixels, 0, (int)count, bounds));
		}
}

static void test_there_is_none_for_other_types(void **arg)
{
	assert_null(sl_outside_choose(SL_I32, SL_VECTORS_AUTO));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_sets_of_instructions_agree),
		cmocka_unit_test(test_parts_of_a_block),
		cmocka_unit_test(test_there_is_none_for_other_types),
	};

	return cmocka_run_group_tests_name("outside", tests, NULL, NULL);
}
