/* sparse_test.c - lists are those of the plainest loops, whatever the type of pixels, tiles,
 * workers and instructions; what does not fit is counted, and what cannot be is refused. */
#include <errno.h>
#include <math.h>

#include "lib/capture.h"
#include "lib/stage_rig.h"

extern const struct sl_stage sl_stage_sparse;

enum { INDEX, VALUE, FOUND, BACKGROUND, DEVIATION, BINS = 23 };

static const enum sl_dtype types[] = {SL_U8, SL_U16, SL_U32, SL_I16, SL_F32};
enum { TYPES = sizeof(types) / sizeof(*types) };

static void store(enum sl_dtype dtype, void *pixels, int i, double v)
{
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
		((float *)pixels)[i] = (float)v;
	}
}

/* NaN: bad. An overload is infinite. */
static double load(enum sl_dtype dtype, const void *pixels, int i)
{
	switch (dtype) {
	case SL_U8:
		return ((const uint8_t *)pixels)[i] == UINT8_MAX ? NAN
								 : ((const uint8_t *)pixels)[i];
	case SL_U16:
		return ((const uint16_t *)pixels)[i] == UINT16_MAX ? NAN
								   : ((const uint16_t *)pixels)[i];
	case SL_U32:
		return ((const uint32_t *)pixels)[i] == UINT32_MAX ? NAN
								   : ((const uint32_t *)pixels)[i];
	case SL_I16: {
		int16_t v = ((const int16_t *)pixels)[i];

		return v == INT16_MIN ? NAN : v == INT16_MAX ? INFINITY : v;
	}
	default: {
		float v = ((const float *)pixels)[i];

		return v == -INFINITY ? NAN : v;
	}
	}
}

static double bad_of(enum sl_dtype dtype, int which)
{
	static const double bad[SL_DTYPES][2] = {[SL_U8] = {UINT8_MAX, UINT8_MAX},
						 [SL_U16] = {UINT16_MAX, UINT16_MAX},
						 [SL_U32] = {UINT32_MAX, UINT32_MAX},
						 [SL_I16] = {INT16_MIN, INT16_MAX},
						 [SL_F32] = {NAN, INFINITY}};

	return bad[dtype][which];
}

/* A background, some pixels far above it (one in so many), some that are no measurement. */
static void fill_with(enum sl_dtype dtype, void *pixels, uint64_t seed, uint32_t one_in)
{
	double unit = dtype == SL_F32 ? 12.4 : 1;

	for (int i = 0; i < RIG_PIXELS; i++) {
		uint32_t draw = rig_random(&seed), more = rig_random(&seed);
		double v = 3 + more % 7 + (dtype == SL_F32 ? more % 100 / 100. : 0);

		if (dtype == SL_I16)
			v -= 5;
		if (draw % one_in == 0)
			v += 10 + more % 180;
		store(dtype, pixels, i, v * unit);
		if (draw % 31 == 0)
			store(dtype, pixels, i, bad_of(dtype, more & 1));
	}
}

static void fill(enum sl_dtype dtype, void *pixels, uint64_t seed)
{
	fill_with(dtype, pixels, seed, 17);
}

static const uint32_t *list_of(const struct rig_frame *f)
{
	return f->frame.result[INDEX].host;
}

static uint32_t found_of(const struct rig_frame *f)
{
	return *(const uint32_t *)f->frame.result[FOUND].host;
}

static void check_values(const struct rig *rig, const struct rig_frame *f)
{
	size_t bytes = sl_dtype_bytes(rig->in.dtype);

	assert_int_equal(f->frame.result[INDEX].rows, f->frame.result[VALUE].rows);
	for (uint32_t i = 0; i < f->frame.result[INDEX].rows; i++)
		assert_memory_equal((const char *)f->frame.result[VALUE].host + i * bytes,
				    (const char *)f->in + list_of(f)[i] * bytes, bytes);
	rig_check_canaries(rig, f);
}

/* ---- by threshold ---- */

static void check_threshold(const struct rig *rig, const struct rig_frame *f, double threshold)
{
	uint32_t n = 0;

	if (rig->in.dtype == SL_F32)
		threshold = (float)(threshold * 12.4);
	for (int i = 0; i < RIG_PIXELS; i++)
		if (load(rig->in.dtype, f->in, i) >= threshold) {
			assert_true(n < f->frame.result[INDEX].rows);
			assert_int_equal(list_of(f)[n++], i);
		}
	assert_int_equal(f->frame.result[INDEX].rows, n);
	assert_int_equal(found_of(f), n);
	check_values(rig, f);
}

static void test_lists_are_those_of_a_plain_loop(void **arg)
{
	static const char *const vectors[] = {"auto", "avx2", "baseline"};
	static const uint32_t tiles[] = {1, 7, 64, 100, RIG_MODULE_PIXELS};
	static const unsigned workers[] = {1, 2, 3, 8};

	for (unsigned n = 0; n < TYPES * 3 * 5 * 4; n++) {
		enum sl_dtype dtype = types[n % TYPES];
		struct rig_frame frames[5];
		struct rig rig;

		rig_init(&rig, &sl_stage_sparse, dtype);
		rig_set(&rig, "threshold", "8");
		rig_set(&rig, "vectors", vectors[n / TYPES % 3]);
		rig_open(&rig);
		assert_null(rig.ops->frame); /* so that images need not go to memory */
		for (int f = 0; f < 5; f++) {
			rig_frame_init(&frames[f], false);
			fill(dtype, frames[f].in, (uint64_t)f + n);
		}
		rig_run(&rig, frames, 5, 3, tiles[n / TYPES / 3 % 5], workers[n / TYPES / 15]);
		for (int f = 0; f < 5; f++) {
			check_threshold(&rig, &frames[f], 8);
			rig_frame_fini(&frames[f]);
		}
		rig_close(&rig);
	}
}

static void run_one(struct rig *rig, struct rig_frame *f, unsigned workers)
{
	rig_batch(rig, f, 1, RIG_MODULE_PIXELS, workers);
}

static void test_what_does_not_fit_is_counted(void **arg)
{
	struct rig_frame whole, cut;
	struct rig rig;

	for (unsigned workers = 2; workers <= 8; workers *= 2) {
		uint32_t all[RIG_PIXELS], n;

		rig_init(&rig, &sl_stage_sparse, SL_I16);
		rig_open(&rig);
		rig_frame_init(&whole, false);
		fill(SL_I16, whole.in, 3);
		run_one(&rig, &whole, workers);
		n = whole.frame.result[INDEX].rows;
		memcpy(all, list_of(&whole), n * sizeof(*all));
		rig_close(&rig);

		rig_init(&rig, &sl_stage_sparse, SL_I16);
		rig_set(&rig, "max_pixels", "20");
		rig_open(&rig);
		assert_int_equal(rig.terms.output[INDEX].dim[0], 20);
		rig_frame_init(&cut, false);
		fill(SL_I16, cut.in, 3);
		run_one(&rig, &cut, workers);
		assert_true(n > 30);
		assert_int_equal(found_of(&cut), n);
		assert_int_equal(cut.frame.result[INDEX].rows, 20);
		assert_memory_equal(list_of(&cut), all, 20 * sizeof(*all));
		check_values(&rig, &cut);
		rig_close(&rig);
		rig_frame_fini(&whole);
		rig_frame_fini(&cut);
	}
}

static void test_everything_picked_and_nothing_picked(void **arg)
{
	struct rig_frame f;
	struct rig rig;

	for (int all = 0; all < 2; all++) {
		rig_init(&rig, &sl_stage_sparse, SL_U16);
		rig_open(&rig);
		rig_frame_init(&f, false);
		for (int i = 0; i < RIG_PIXELS; i++)
			store(SL_U16, f.in, i, all ? 65534 : 9);
		run_one(&rig, &f, 3);
		assert_int_equal(f.frame.result[INDEX].rows, all ? RIG_PIXELS : 0);
		check_threshold(&rig, &f, 10);
		rig_close(&rig);
		rig_frame_fini(&f);
	}
}

static void test_dark_frames_have_empty_lists(void **arg)
{
	static const char *const methods[] = {"threshold", "radial"};

	for (int m = 0; m < 2; m++) {
		struct rig_frame f;
		struct rig rig;

		rig_init(&rig, &sl_stage_sparse, SL_I16);
		rig_set(&rig, "method", methods[m]);
		rig_set(&rig, "unit", "r_pixels");
		rig_open(&rig);
		rig_frame_init(&f, true);
		fill(SL_I16, f.in, 1);
		run_one(&rig, &f, 2);
		assert_int_equal(f.frame.result[INDEX].rows, 0);
		assert_int_equal(f.frame.result[VALUE].rows, 0);
		assert_int_equal(found_of(&f), 0);
		rig_close(&rig);
		rig_frame_fini(&f);
	}
}

static void test_row_pointers_make_a_matrix_of_it(void **arg)
{
	struct rig_frame f;
	struct rig rig;
	const uint32_t *pointer;

	rig_init(&rig, &sl_stage_sparse, SL_I16);
	rig_set(&rig, "row_pointers", "true");
	rig_set(&rig, "threshold", "150"); /* so that rows are empty, too */
	rig_open(&rig);
	assert_string_equal(rig.terms.output[3].name, "sparse_row_pointer");
	rig_frame_init(&f, false);
	fill(SL_I16, f.in, 9);
	run_one(&rig, &f, 2);
	pointer = f.frame.result[3].host;
	for (uint32_t row = 0, i = 0; row < RIG_MODULES * RIG_ROWS; row++) {
		assert_int_equal(pointer[row], i);
		while (i < f.frame.result[INDEX].rows && list_of(&f)[i] / RIG_COLUMNS == row)
			i++;
		assert_int_equal(pointer[row + 1], i);
	}
	rig_check_canaries(&rig, &f);
	rig_close(&rig);
	rig_frame_fini(&f);
}

/* ---- by radius: written anew, with a mark for every pixel and no shortcut ---- */

struct oracle {
	double norm[RIG_PIXELS];
	float radius[RIG_PIXELS];
	int bin[RIG_PIXELS];
	bool clipped[RIG_PIXELS];
	float average[BINS], sigma[BINS];
};

static void place(struct oracle *o, double distance, double polarisation, const uint8_t *mask)
{
	double high = 0;

	for (int i = 0; i < RIG_PIXELS; i++) {
		double y = i / RIG_COLUMNS + 0.5 - RIG_MODULES * RIG_ROWS / 2.;
		double x = i % RIG_COLUMNS + 0.5 - RIG_COLUMNS / 2.;
		double c = cos(atan(hypot(x, y) * 75e-6 / distance)), chi = atan2(y, x);

		o->radius[i] = (float)hypot(x, y);
		high = fmax(high, hypot(x, y));
		o->norm[i] = (float)(c * c * c * 0.5 *
				     (1 + c * c - polarisation * cos(2 * chi) * (1 - c * c)));
		if (!(distance > 0))
			o->norm[i] = 1;
	}
	high = nextafter(high, INFINITY);
	for (int i = 0; i < RIG_PIXELS; i++) {
		double y = i / RIG_COLUMNS + 0.5 - RIG_MODULES * RIG_ROWS / 2.;
		double x = i % RIG_COLUMNS + 0.5 - RIG_COLUMNS / 2.;

		o->bin[i] = mask && mask[i] ? -1 : (int)(hypot(x, y) / high * BINS);
		o->radius[i] = (float)(hypot(x, y) / high * BINS); /* in bins */
	}
}

static bool average_of(struct oracle *o, enum sl_dtype dtype, const void *pixels, int bin)
{
	double signal = 0, variance = 0, norm = 0, photon = dtype == SL_F32 ? 12.4 : 1;

	for (int i = 0; i < RIG_PIXELS; i++) {
		double v = load(dtype, pixels, i);

		if (o->bin[i] != bin || o->clipped[i] || !isfinite(v))
			continue;
		signal += v;
		variance += fmax(v * photon, photon * photon);
		norm += o->norm[i];
	}
	o->average[bin] = norm > 0 ? (float)(signal / norm) : 0;
	o->sigma[bin] = norm > 0 ? (float)sqrt(variance / norm) : 0;
	return norm > 0;
}

static void clip(struct oracle *o, enum sl_dtype dtype, const void *pixels, int bin, int cycle,
		 double cutoff)
{
	int n = 0;
	bool any = average_of(o, dtype, pixels, bin);

	for (int i = 0; i < RIG_PIXELS; i++)
		n += o->bin[i] == bin;
	for (int round = 0; round < cycle && any; round++) {
		double cut = fmax(cutoff, sqrt(2 * log(fmax(n, 3) / sqrt(2 * M_PI))));
		int clipped = 0;

		for (int i = 0; i < RIG_PIXELS; i++) {
			double v = load(dtype, pixels, i) / o->norm[i];

			if (o->bin[i] != bin || o->clipped[i] || !isfinite(v) ||
			    !(fabs(v - o->average[bin]) > cut * o->sigma[bin]))
				continue;
			o->clipped[i] = true;
			clipped++;
		}
		if (!clipped)
			break;
		n = n - clipped > 3 ? n - clipped : 3;
		any = average_of(o, dtype, pixels, bin);
	}
}

/* By how much a pixel is above what it must be; 0: a tie. */
static double above(const struct oracle *o, enum sl_dtype dtype, const void *pixels, int i,
		    double noise, double cutoff)
{
	double at = fmax(o->radius[i] - 0.5, 0), v = load(dtype, pixels, i);
	int left = at < BINS - 1 ? (int)at : BINS - 1, right = left < BINS - 1 ? left + 1 : left;
	double part = at - left, average, sigma, margin;

	average = o->average[left] * (1 - part) + o->average[right] * part;
	sigma = o->sigma[left] * (1 - part) + o->sigma[right] * part;
	noise *= dtype == SL_F32 ? 12.4 : 1;
	margin = fmax(noise, cutoff * hypot(sigma, noise));
	if (isinf(v))
		return 1;
	return o->bin[i] < 0 || isnan(v) ? -1 : (v / o->norm[i] - average - margin) / margin;
}

/* How many are picked. */
static uint32_t check_radial(const struct rig *rig, const struct rig_frame *f,
			     const struct oracle *o, double noise, double cutoff)
{
	const float *average = f->frame.result[BACKGROUND].host;
	const float *sigma = f->frame.result[DEVIATION].host;
	uint32_t n = 0, picked = 0;

	for (int b = 0; b < BINS; b++) {
		assert_true(fabs(average[b] - o->average[b]) <= 1e-5 * fabs(o->average[b]));
		assert_true(fabs(sigma[b] - o->sigma[b]) <= 1e-5 * o->sigma[b]);
	}
	for (int i = 0; i < RIG_PIXELS; i++) {
		bool has = n < f->frame.result[INDEX].rows && list_of(f)[n] == (uint32_t)i;
		double by = above(o, rig->in.dtype, f->in, i, noise, cutoff);

		if (o->bin[i] < 0)
			by = -1; /* masked, overload or not */
		assert_true(fabs(by) < 1e-5 || has == (by > 0));
		n += has;
		picked += by > 0;
	}
	assert_int_equal(n, f->frame.result[INDEX].rows);
	assert_int_equal(n, found_of(f));
	check_values(rig, f);
	return picked;
}

static void open_radial(struct rig *rig, enum sl_dtype dtype)
{
	rig_init(rig, &sl_stage_sparse, dtype);
	rig->geometry.pixel_size_m = 75e-6;
	rig_set(rig, "method", "radial");
	rig_set(rig, "unit", "r_pixels");
	rig_set(rig, "bins", "23");
}

static void test_backgrounds_and_picks_are_those_of_plain_loops(void **arg)
{
	static const char *const vectors[] = {"auto", "avx2", "baseline"};
	static struct oracle o;
	static uint8_t mask[RIG_PIXELS];
	uint32_t picked = 0;

	for (int i = 0; i < RIG_PIXELS; i++)
		mask[i] = i % 13 == 5 || i / RIG_COLUMNS == 3;
	for (unsigned n = 0; n < TYPES * 3 * 2 * 2 * 2 * 2; n++) {
		enum sl_dtype dtype = types[n % TYPES];
		bool masked = n / TYPES / 3 & 1, norms = n / TYPES / 6 & 1;
		bool other = n / TYPES / 12 & 1, many = n / TYPES / 24; /* more than are listed */
		struct rig_frame f;
		struct rig rig;

		open_radial(&rig, dtype);
		rig_set(&rig, "vectors", vectors[n / TYPES % 3]);
		rig.calibration.mask = masked ? mask : NULL;
		rig.geometry.distance_m = norms ? 0.002 : 0;
		rig_set(&rig, "solid_angle", norms ? "true" : "false");
		rig_set(&rig, "polarisation", norms ? "0.9" : "0");
		rig_set(&rig, "cycle", other ? "2" : "5");
		rig_set(&rig, "cutoff_clip", other ? "4" : "0");
		rig_set(&rig, "cutoff_pick", other ? "2" : "3");
		rig_set(&rig, "noise", other ? "2.5" : "1");
		rig_open(&rig);
		assert_null(rig.ops->tile);
		rig_frame_init(&f, false);
		fill_with(dtype, f.in, n, many ? 4 : 23);
		run_one(&rig, &f, 2);
		memset(o.clipped, 0, sizeof(o.clipped));
		place(&o, norms ? 0.002 : 0, 0.9, masked ? mask : NULL);
		for (int b = 0; b < BINS; b++)
			clip(&o, dtype, f.in, b, other ? 2 : 5, other ? 4 : 0);
		picked += check_radial(&rig, &f, &o, other ? 2.5 : 1, other ? 2 : 3);
		rig_close(&rig);
		rig_frame_fini(&f);
	}
	assert_true(picked > 5000);
}

static void test_rows_with_a_pitch_give_the_same(void **arg)
{
	enum { PITCH = RIG_COLUMNS * 2 + 38 };
	char *padded = calloc(RIG_MODULES * RIG_ROWS, PITCH);
	struct rig_frame f;
	struct rig rig;
	uint32_t all[RIG_PIXELS], rows;

	open_radial(&rig, SL_I16);
	rig_open(&rig);
	rig_frame_init(&f, false);
	fill(SL_I16, f.in, 5);
	run_one(&rig, &f, 1);
	rows = f.frame.result[INDEX].rows;
	memcpy(all, list_of(&f), rows * sizeof(*all));
	for (int r = 0; r < RIG_MODULES * RIG_ROWS; r++)
		memcpy(padded + r * PITCH, (char *)f.in + r * RIG_COLUMNS * 2, RIG_COLUMNS * 2);
	for (int m = 0; m < RIG_MODULES; m++) {
		f.view[m].pixels.host = padded + m * RIG_ROWS * PITCH;
		f.view[m].pixels.pitch = PITCH;
	}
	rig.ops->frame(rig.state, rig.scratch[0],
		       &(struct sl_batch){.frame = &(struct sl_frame *){&f.frame}, .frames = 1}, 0);
	assert_int_equal(f.frame.result[INDEX].rows, rows);
	assert_memory_equal(list_of(&f), all, rows * sizeof(*all));
	rig_close(&rig);
	rig_frame_fini(&f);
	free(padded);
}

static void test_rejected_frames_are_looked_at_when_asked(void **arg)
{
	for (int asked = 0; asked < 2; asked++) {
		struct rig_frame f;
		struct rig rig;

		open_radial(&rig, SL_I16);
		rig_set(&rig, "rejected", asked ? "true" : "false");
		rig_open(&rig);
		rig_frame_init(&f, false);
		fill(SL_I16, f.in, 5);
		f.verdict.keep = 0;
		run_one(&rig, &f, 1);
		assert_int_equal(f.frame.result[INDEX].rows > 0, asked);
		assert_int_equal(found_of(&f) > 0, asked);
		rig_close(&rig);
		rig_frame_fini(&f);
	}
}

/* A ring that is bad everywhere has no background: 0, and none of its pixels is picked. */
static void test_rings_and_frames_without_a_valid_pixel(void **arg)
{
	for (int all = 0; all < 2; all++) {
		static struct oracle o;
		struct rig_frame f;
		struct rig rig;

		place(&o, 0, 0, NULL);
		open_radial(&rig, SL_I16);
		rig_open(&rig);
		rig_frame_init(&f, false);
		fill(SL_I16, f.in, 5);
		for (int i = 0; i < RIG_PIXELS; i++)
			if (all || o.bin[i] == 7)
				((int16_t *)f.in)[i] = INT16_MIN;
		run_one(&rig, &f, 1);
		assert_true(((float *)f.frame.result[BACKGROUND].host)[7] == 0);
		assert_true(((float *)f.frame.result[DEVIATION].host)[7] == 0);
		for (uint32_t i = 0; i < f.frame.result[INDEX].rows; i++)
			assert_int_not_equal(o.bin[list_of(&f)[i]], 7);
		assert_int_equal(f.frame.result[INDEX].rows > 0, !all);
		rig_close(&rig);
		rig_frame_fini(&f);
	}
}

static void test_an_image_of_one_pixel(void **arg)
{
	static const char *const methods[] = {"threshold", "radial"};

	for (int m = 0; m < 2; m++) {
		struct rig_frame f;
		struct rig rig;
		const void *in;
		struct sl_tile tile = {0, 0, 1, &in, NULL};
		struct sl_frame *pointer = &f.frame;
		struct sl_batch batch = {.frame = &pointer, .frames = 1};

		open_radial(&rig, SL_I16);
		rig_set(&rig, "method", methods[m]);
		rig.geometry.modules = rig.geometry.rows = rig.geometry.columns = 1;
		rig_open(&rig);
		rig_frame_init(&f, false);
		((int16_t *)f.in)[0] = 5000;
		in = f.in;
		rig_init_views(&rig, &f);
		if (m == 0) {
			rig.ops->tile(rig.state, rig.scratch[0], &batch, &tile);
			rig.ops->finish(rig.state, rig.scratch, 1, &batch);
		} else {
			rig.ops->frame(rig.state, rig.scratch[0], &batch, 0);
		}
		/* Alone it is its own background. */
		assert_int_equal(f.frame.result[INDEX].rows, m == 0);
		assert_int_equal(found_of(&f), m == 0);
		rig_check_canaries(&rig, &f);
		rig_close(&rig);
		rig_frame_fini(&f);
	}
}

static void test_what_cannot_be_is_refused(void **arg)
{
	static uint8_t mask[RIG_PIXELS];
	static const struct {
		enum sl_dtype dtype;
		const char *option, *value, *other, *to;
		bool masked;
		const char *words;
	} bad[] = {
		{SL_I32, "threshold", "10", "method", "threshold", false, "not int32"},
		{SL_U8, "threshold", "255", "method", "threshold", false, "254 at most"},
		{SL_I16, "threshold", "32767", "method", "threshold", false, "32766 at most"},
		{SL_U16, "threshold", "65535", "method", "threshold", false, "65534 at most"},
		{SL_I16, "unit", "q_nm", "method", "radial", false, "distance_m"},
		{SL_I16, "low", "30", "high", "20", false, "high must be above low"},
		{SL_I16, "low", "1000", "method", "radial", false, "farthest pixel"},
		{SL_I16, "method", "radial", "unit", "r_pixels", true, "not masked"},
	};

	memset(mask, 1, sizeof(mask));
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const char *said;
		struct rig rig;

		open_radial(&rig, bad[i].dtype);
		rig_set(&rig, bad[i].option, bad[i].value);
		rig_set(&rig, bad[i].other, bad[i].to);
		rig.calibration.mask = bad[i].masked ? mask : NULL;
		rig.geometry.distance_m = 0;
		capture_begin();
		assert_int_equal(rig_try_open(&rig), -EINVAL);
		said = capture_end();
		assert_non_null(strstr(said, bad[i].words));
		assert_non_null(strstr(said, "sparse"));
		rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists_are_those_of_a_plain_loop),
		cmocka_unit_test(test_what_does_not_fit_is_counted),
		cmocka_unit_test(test_everything_picked_and_nothing_picked),
		cmocka_unit_test(test_dark_frames_have_empty_lists),
		cmocka_unit_test(test_row_pointers_make_a_matrix_of_it),
		cmocka_unit_test(test_backgrounds_and_picks_are_those_of_plain_loops),
		cmocka_unit_test(test_rows_with_a_pitch_give_the_same),
		cmocka_unit_test(test_rejected_frames_are_looked_at_when_asked),
		cmocka_unit_test(test_rings_and_frames_without_a_valid_pixel),
		cmocka_unit_test(test_an_image_of_one_pixel),
		cmocka_unit_test(test_what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests_name("sparse", tests, NULL, NULL);
}
