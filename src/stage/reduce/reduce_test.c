/* reduce_test.c - statistics, binned images and windows equal those of the plainest loops. */
#include <errno.h>
#include <math.h>

#include "lib/capture.h"
#include "lib/stage_rig.h"

extern const struct sl_stage sl_stage_reduce;

enum { SUM, MEAN, MOST, VALID, OVERLOADS, COLUMNS, FRAMES = 7 };

static const enum sl_dtype types[] = {SL_U8, SL_U16, SL_U32, SL_I16, SL_F32};
enum { TYPES = sizeof(types) / sizeof(*types) };

static void fill(enum sl_dtype dtype, void *pixels, uint64_t seed)
{
	static const float special[] = {NAN, INFINITY, -INFINITY, 1e30f};

	for (int i = 0; i < RIG_PIXELS; i++) {
		uint32_t v = rig_random(&seed), kind = rig_random(&seed) % 16;

		switch (dtype) {
		case SL_U8:
			((uint8_t *)pixels)[i] = kind ? (uint8_t)v : UINT8_MAX;
			break;
		case SL_U16:
			((uint16_t *)pixels)[i] = kind ? (uint16_t)v : UINT16_MAX;
			break;
		case SL_U32:
			((uint32_t *)pixels)[i] = kind ? 2 * v : UINT32_MAX;
			break;
		case SL_I16:
			((int16_t *)pixels)[i] = kind > 1 ? (int16_t) - (v % 30000)
						 : kind	  ? INT16_MAX
							  : INT16_MIN;
			break;
		default:
			((float *)pixels)[i] = kind ? ((float)v - 1e9f) * 1e-5f : special[v % 3];
		}
	}
}

/* NaN: bad; infinite: an overload. */
static double load(enum sl_dtype dtype, const void *pixels, int i)
{
	double v;

	switch (dtype) {
	case SL_U8:
		v = ((const uint8_t *)pixels)[i];
		return v == UINT8_MAX ? NAN : v;
	case SL_U16:
		v = ((const uint16_t *)pixels)[i];
		return v == UINT16_MAX ? NAN : v;
	case SL_U32:
		v = ((const uint32_t *)pixels)[i];
		return v == UINT32_MAX ? NAN : v;
	case SL_I16:
		v = ((const int16_t *)pixels)[i];
		return v == INT16_MIN ? NAN : v == INT16_MAX ? INFINITY : v;
	default:
		v = ((const float *)pixels)[i];
		return v == -INFINITY ? NAN : v;
	}
}

struct rectangle {
	int row, column, rows, columns;
};

/* Modules lie one below the other: rows of the image are rows of the stack. */
static void check_row(enum sl_dtype dtype, const void *pixels, struct rectangle r,
		      const double *row)
{
	long double sum = 0;
	double most = -INFINITY;
	int valid = 0, overloads = 0;

	for (int i = 0; i < RIG_PIXELS; i++) {
		int y = i / RIG_COLUMNS, x = i % RIG_COLUMNS;
		double v = load(dtype, pixels, i);

		if (y < r.row || y >= r.row + r.rows || x < r.column || x >= r.column + r.columns)
			continue;
		overloads += isinf(v) != 0;
		if (!isfinite(v))
			continue;
		sum += v;
		most = fmax(most, v);
		valid++;
	}
	assert_int_equal(row[VALID], valid);
	assert_int_equal(row[OVERLOADS], overloads);
	if (dtype == SL_F32)
		assert_true(fabsl(row[SUM] - sum) <= valid * 0x1p-32);
	else
		assert_true(row[SUM] == (double)sum);
	assert_true(valid ? row[MEAN] == row[SUM] / valid : isnan(row[MEAN]));
	assert_true(valid ? row[MOST] == most : isnan(row[MOST]));
}

static void test_statistics_of_the_image_and_of_rectangles(void **arg)
{
	static const char *const vectors[] = {"auto", "avx2", "baseline"};
	static const char *const ins[] = {"image", "modules"};
	static const uint32_t tiles[] = {1, 7, 64, 100, RIG_MODULE_PIXELS};
	static const struct rectangle r[] = {{0, 0, 10, 61}, {0, 0, 1, 1},   {2, 5, 6, 20},
					     {9, 60, 1, 1},  {4, 0, 2, 100}, {3, 17, 3, 4}};

	for (unsigned n = 0; n < TYPES * 3 * 5 * 2; n++) {
		enum sl_dtype dtype = types[n % TYPES];
		struct rig_frame frames[FRAMES];
		struct rig rig;

		rig_init(&rig, &sl_stage_reduce, dtype);
		rig_set(&rig, "roi", "0,0,1,1; 2, 5,6,20;9,60 , 1,1;\n4,0,2,100 ; 3,17,3,4 ;");
		rig_set(&rig, "roi_in", ins[n / TYPES / 15]);
		rig_set(&rig, "vectors", vectors[n / TYPES % 3]);
		rig_open(&rig);
		assert_null(rig.ops->frame);
		assert_int_equal(rig.out.dim[0], 6);
		for (int f = 0; f < FRAMES; f++) {
			rig_frame_init(&frames[f], false);
			fill(dtype, frames[f].in, (uint64_t)f + n);
		}
		rig_run(&rig, frames, FRAMES, 3, tiles[n / TYPES / 3 % 5], 1 + n % 8);
		for (int f = 0; f < FRAMES; f++) {
			const double *table = frames[f].frame.result[0].host;

			for (int k = 0; k < 6; k++)
				check_row(dtype, frames[f].in, r[k], table + k * COLUMNS);
			rig_check_canaries(&rig, &frames[f]);
			rig_frame_fini(&frames[f]);
		}
		rig_close(&rig);
	}
}

/* Sums that 32 bits do not hold. */
static void test_large_sums_are_exact(void **arg)
{
	enum { PIXELS = 100000 };
	static uint16_t large[PIXELS];
	static int16_t small[PIXELS];
	struct sl_frame *pointer;
	struct sl_batch batch = {.frame = &pointer, .frames = 1, .capacity = 1};

	for (int i = 0; i < PIXELS; i++) {
		large[i] = 65534;
		small[i] = -32767;
	}
	for (int n = 0; n < 2; n++) {
		const void *in = n ? (const void *)small : large;
		struct sl_tile tile = {0, 0, PIXELS, &in, NULL};
		struct rig_frame f;
		struct rig rig;
		const double *row;

		rig_init(&rig, &sl_stage_reduce, n ? SL_I16 : SL_U16);
		rig_open(&rig);
		rig_frame_init(&f, false);
		rig_init_views(&rig, &f);
		pointer = &f.frame;
		rig.ops->tile(rig.state, rig.scratch[0], &batch, &tile);
		rig.ops->finish(rig.state, rig.scratch, 1, &batch);
		row = f.frame.result[0].host;
		assert_true(row[SUM] == (n ? -32767. : 65534.) * PIXELS);
		assert_true(row[MOST] == (n ? -32767. : 65534.));
		rig_frame_fini(&f);
		rig_close(&rig);
	}
}

/* ---- bins ---- */

static double binned_of(enum sl_dtype dtype, const void *pixels, int n, bool mean, int module,
			int y, int x)
{
	double sum = 0;
	int valid = 0;
	bool overload = false;

	for (int row = y * n; row < (y + 1) * n && row < RIG_ROWS; row++)
		for (int c = x * n; c < (x + 1) * n && c < RIG_COLUMNS; c++) {
			double v = load(dtype, pixels,
					module * RIG_MODULE_PIXELS + row * RIG_COLUMNS + c);

			overload |= isinf(v) != 0;
			if (isnan(v))
				continue;
			valid++;
			sum += v;
		}
	return !valid ? NAN : overload ? INFINITY : mean ? sum / valid : sum;
}

static double stored(enum sl_dtype dtype, const void *array, uint32_t i)
{
	int64_t v = dtype == SL_I64 ? ((const int64_t *)array)[i] : 0;

	switch (dtype) {
	case SL_I32: {
		int32_t w = ((const int32_t *)array)[i];

		return w == INT32_MIN ? NAN : w == INT32_MAX ? INFINITY : w;
	}
	case SL_I64:
		return v == INT64_MIN ? NAN : v == INT64_MAX ? INFINITY : (double)v;
	case SL_F64:
		return ((const double *)array)[i];
	default:
		return ((const float *)array)[i];
	}
}

static bool same(double have, double want, double bound)
{
	if (!isfinite(want))
		return isnan(want) ? isnan(have) : have == want;
	return fabs(have - want) <= bound * fabs(want);
}

static void check_binned(const struct rig *rig, const struct rig_frame *f, int n, bool mean)
{
	const struct sl_array *binned = &f->frame.result[1];
	enum sl_dtype made = binned->shape.dtype;
	uint32_t at = 0;

	assert_string_equal(binned->shape.name, "binned");
	for (int m = 0; m < RIG_MODULES; m++)
		for (int y = 0; y < (RIG_ROWS + n - 1) / n; y++)
			for (int x = 0; x < (RIG_COLUMNS + n - 1) / n; x++)
				assert_true(same(stored(made, binned->host, at++),
						 binned_of(rig->in.dtype, f->in, n, mean, m, y, x),
						 made == SL_F32 ? 1e-6 : 0));
	assert_int_equal(at, sl_shape_elements(&binned->shape));
}

static void test_binned_images_and_their_edges(void **arg)
{
	static const char *const bins[] = {"1", "2", "3", "5", "61", "100"};
	static const int n[] = {1, 2, 3, 5, 61, 100};

	for (unsigned t = 0; t < TYPES * 6 * 2; t++) {
		enum sl_dtype dtype = types[t % TYPES];
		bool mean = t / TYPES / 6;
		struct rig_frame f;
		struct rig rig;

		rig_init(&rig, &sl_stage_reduce, dtype);
		rig_set(&rig, "bin", bins[t / TYPES % 6]);
		rig_set(&rig, "binned", mean ? "mean" : "sum");
		rig_open(&rig);
		rig_frame_init(&f, false);
		fill(dtype, f.in, t);
		rig_batch(&rig, &f, 1, 64, 2);
		check_binned(&rig, &f, n[t / TYPES % 6], mean);
		check_row(dtype, f.in, (struct rectangle){0, 0, 10, 61}, f.frame.result[0].host);
		rig_check_canaries(&rig, &f);
		rig_frame_fini(&f);
		rig_close(&rig);
	}
}

/* Every window of three kept frames, on the last of them; rejected and dark ones do not count. */
static void check_windows(const struct rig_frame *frames, int n, int window)
{
	int members[FRAMES], count = 0, windows = 0;

	for (int f = 0; f < n; f++) {
		const struct sl_frame *frame = &frames[f].frame;
		const struct sl_array *sum = &frame->result[2], *most = &frame->result[3];
		bool counts = frame->verdict->keep && !(frame->flags & SL_FRAME_DARK);

		if (counts)
			members[count++] = f;
		assert_int_equal(sum->rows, counts && count == window);
		assert_int_equal(most->rows, counts && count == window);
		if (count < window)
			continue;
		for (uint32_t i = 0; i < sl_shape_elements(&frame->result[1].shape); i++) {
			double total = 0, high = -INFINITY;

			for (int k = 0; k < count; k++) {
				const struct sl_array *one = &frames[members[k]].frame.result[1];
				double v = stored(one->shape.dtype, one->host, i);

				total += v;
				high = isnan(v) || isnan(high) ? NAN : fmax(high, v);
			}
			assert_true(same(stored(sum->shape.dtype, sum->host, i), total, 1e-12));
			assert_true(same(stored(most->shape.dtype, most->host, i), high, 0));
		}
		count = 0;
		windows++;
	}
	assert_true(windows > 0);
}

static void test_windows_of_kept_frames(void **arg)
{
	for (unsigned t = 0; t < TYPES * 3; t++) {
		static const uint32_t batches[] = {1, 2, FRAMES};
		enum sl_dtype dtype = types[t % TYPES];
		struct rig_frame frames[FRAMES];
		struct rig rig;

		rig_init(&rig, &sl_stage_reduce, dtype);
		rig_set(&rig, "bin", "3");
		rig_set(&rig, "window", "2");
		rig_open(&rig);
		for (int f = 0; f < FRAMES; f++) {
			rig_frame_init(&frames[f], f == 4);
			fill(dtype, frames[f].in, (uint64_t)f + t);
			frames[f].verdict.keep = f != 1;
		}
		rig_run(&rig, frames, FRAMES, batches[t / TYPES], 64, 2);
		check_windows(frames, FRAMES, 2);
		for (int f = 0; f < FRAMES; f++) {
			rig_check_canaries(&rig, &frames[f]);
			rig_frame_fini(&frames[f]);
		}
		rig_close(&rig);
	}
}

static void test_frames_without_a_measurement(void **arg)
{
	for (int dark = 0; dark < 2; dark++) {
		struct rig_frame f;
		struct rig rig;
		const double *row;

		rig_init(&rig, &sl_stage_reduce, SL_I16);
		rig_open(&rig);
		rig_frame_init(&f, dark);
		for (int i = 0; i < RIG_PIXELS; i++)
			((int16_t *)f.in)[i] = INT16_MIN;
		rig_batch(&rig, &f, 1, 64, 2);
		row = f.frame.result[0].host;
		assert_true(row[SUM] == 0 && row[VALID] == 0 && row[OVERLOADS] == 0);
		assert_true(dark ? row[MEAN] == 0 && row[MOST] == 0
				 : isnan(row[MEAN]) && isnan(row[MOST]));
		rig_frame_fini(&f);
		rig_close(&rig);
	}
}

static void test_what_cannot_be_is_refused(void **arg)
{
	static const struct {
		enum sl_dtype dtype;
		const char *option, *value, *words;
	} bad[] = {
		{SL_I32, "roi", "", "not int32"},
		{SL_I16, "window", "10", "set bin"},
		{SL_I16, "roi", "1,2,3", "is not 'row"},
		{SL_I16, "roi", "1,2,3,4,5", "is not 'row"},
		{SL_I16, "roi", "a,2,3,4", "is not 'row"},
		{SL_I16, "roi", "0,0,1,1;;", "is not 'row"},
		{SL_I16, "roi", "0,0,0,4", "no pixel"},
		{SL_I16, "roi", "-1,0,5,4", "before the image"},
		{SL_I16, "roi", "10,0,5,4", "rectangle 1 of roi"},
		{SL_I16, "roi", "0,0,5,4; 0,61,4,4", "rectangle 2 of roi"},
		{SL_I16, "roi",
		 "0,0,1,1;0,0,1,1;0,0,1,1;0,0,1,1;0,0,1,1;0,0,1,1;0,0,1,1;0,0,1,1;0,0,1,1;"
		 "0,0,1,1;0,0,1,1;0,0,1,1;0,0,1,1;0,0,1,1;0,0,1,1;0,0,1,1;0,0,1,1",
		 "more than 16"},
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const char *said;
		struct rig rig;

		rig_init(&rig, &sl_stage_reduce, bad[i].dtype);
		rig_set(&rig, bad[i].option, bad[i].value);
		capture_begin();
		assert_int_equal(rig_try_open(&rig), -EINVAL);
		said = capture_end();
		assert_non_null(strstr(said, bad[i].words));
		assert_non_null(strstr(said, "reduce"));
		rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statistics_of_the_image_and_of_rectangles),
		cmocka_unit_test(test_large_sums_are_exact),
		cmocka_unit_test(test_binned_images_and_their_edges),
		cmocka_unit_test(test_windows_of_kept_frames),
		cmocka_unit_test(test_frames_without_a_measurement),
		cmocka_unit_test(test_what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests_name("reduce", tests, NULL, NULL);
}
