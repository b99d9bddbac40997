/* spots_test.c - spots are those that a plain program in double precision finds, in images of every
 * type, with every kind of vectors, sparse or full; and what special frames become. */
#include <errno.h>

#include "lib/capture.h"
#include "lib/frame_rig.h"
#include "stage/spots/maths.h"

extern const struct sl_stage sl_stage_spots;

enum { MOST = 8192 };

static const enum sl_dtype types[] = {SL_U8, SL_U16, SL_U32, SL_I16, SL_F32};
enum { TYPES = 5 };

/* ---- the plain program ---- */

struct plain {
	int modules, rows, columns, box, min_pixels, max_pixels;
	double threshold, sigmas;
	double *value; /* NaN: not there */
	bool *strong;
	double spot[MOST][8];
	int spots;
	int candidates;
};

static void plain_box(const struct plain *p, int module, int y, int x, double *n, double *mean,
		      double *variance)
{
	const double *value = p->value + module * p->rows * p->columns;
	double sum = 0, square = 0;

	*n = 0;
	for (int twice = 0; twice < 2; twice++)
		for (int yy = y - p->box; yy <= y + p->box; yy++)
			for (int xx = x - p->box; xx <= x + p->box; xx++) {
				double v;

				if (yy < 0 || yy >= p->rows || xx < 0 || xx >= p->columns ||
				    (yy == y && xx == x))
					continue;
				v = value[yy * p->columns + xx];
				if (isnan(v))
					continue;
				*n += !twice;
				sum += twice ? 0 : v;
				square += twice ? pow(v - sum / *n, 2) : 0;
			}
	*mean = sum / *n;
	*variance = square / (*n - 1);
}

static void plain_mark(struct plain *p)
{
	for (int i = 0; i < p->modules * p->rows * p->columns; i++) {
		int pixel = i % (p->rows * p->columns);
		double n, mean, variance;

		p->strong[i] = false;
		if (!(p->value[i] >= p->threshold))
			continue;
		p->candidates++;
		plain_box(p, i / (p->rows * p->columns), pixel / p->columns, pixel % p->columns, &n,
			  &mean, &variance);
		p->strong[i] = n > 1 && p->value[i] > mean &&
			       p->value[i] - mean > p->sigmas * sqrt(variance);
	}
}

static int plain_fill(struct plain *p, int first, int at, int *pixel)
{
	int n = 0;

	p->strong[first + at] = false;
	pixel[n++] = at;
	for (int i = 0; i < n; i++)
		for (int k = 0; k < 9; k++) {
			int y = pixel[i] / p->columns + k / 3 - 1;
			int x = pixel[i] % p->columns + k % 3 - 1;

			if (y < 0 || y >= p->rows || x < 0 || x >= p->columns ||
			    !p->strong[first + y * p->columns + x])
				continue;
			p->strong[first + y * p->columns + x] = false;
			pixel[n++] = y * p->columns + x;
		}
	return n;
}

static void plain_spot(struct plain *p, int module, const int *pixel, int n)
{
	const double *value = p->value + module * p->rows * p->columns;
	double sum = 0, y = 0, x = 0, most = -INFINITY, mean, variance, around, *spot;
	int brightest = 0;

	for (int i = 0; i < n; i++) {
		double v = value[pixel[i]];

		sum += v;
		y += v * (pixel[i] / p->columns);
		x += v * (pixel[i] % p->columns);
		if (v > most) {
			most = v;
			brightest = pixel[i];
		}
	}
	plain_box(p, module, brightest / p->columns, brightest % p->columns, &around, &mean,
		  &variance);
	assert_true(p->spots < MOST);
	spot = p->spot[p->spots++];
	spot[0] = module;
	spot[1] = y / sum + 0.5;
	spot[2] = x / sum + 0.5;
	spot[3] = sum;
	spot[4] = (most - mean) / (variance > 0 ? sqrt(variance) : 0.01);
	spot[5] = n;
	spot[6] = most;
	spot[7] = mean;
}

static void plain_find(struct plain *p)
{
	int pixels = p->rows * p->columns;
	int *pixel = calloc((size_t)(unsigned)pixels, sizeof(int));

	plain_mark(p);
	for (int i = 0; i < p->modules * pixels; i++) {
		int first = i / pixels * pixels, n;

		if (!p->strong[i])
			continue;
		n = plain_fill(p, first, i - first, pixel);
		if (n >= p->min_pixels && n <= p->max_pixels)
			plain_spot(p, i / pixels, pixel, n);
	}
	free(pixel);
}

static void plain_open(struct plain *p, const struct frame_rig *rig, const void *image,
		       const uint8_t *mask)
{
	uint32_t pixels = rig->geometry.modules * rig->geometry.rows * rig->geometry.columns;
	double photon = rig->in.dtype == SL_F32 ? rig->geometry.photon_energy_keV : 1;

	*p = (struct plain){.modules = (int)rig->geometry.modules,
			    .rows = (int)rig->geometry.rows,
			    .columns = (int)rig->geometry.columns,
			    .box = 3,
			    .min_pixels = 2,
			    .max_pixels = 200,
			    .threshold = 5 * photon,
			    .sigmas = 5};
	p->value = calloc(pixels, sizeof(double));
	p->strong = calloc(pixels, sizeof(bool));
	for (uint32_t i = 0; i < pixels; i++)
		p->value[i] = mask && mask[i] ? NAN : frame_rig_load(rig->in.dtype, image, i);
}

static void plain_close(struct plain *p)
{
	free(p->value);
	free(p->strong);
}

/* ---- comparison ---- */

static void check_spots(const struct plain *p, struct frame_rig *rig, struct frame_rig_frame *f)
{
	const struct sl_array *spots = frame_rig_result(rig, f, 0);
	const float *have = spots->host;

	assert_int_equal(*(uint32_t *)frame_rig_result(rig, f, 1)->host, p->spots);
	assert_int_equal(spots->rows, p->spots);
	for (int i = 0; i < p->spots; i++)
		for (int k = 0; k < 8; k++)
			if (fabs(have[i * 8 + k] - p->spot[i][k]) >
			    2e-5 * fabs(p->spot[i][k]) + 1e-4)
				fail_msg("spot %d of %d, column %d: %g, not %g", i, p->spots, k,
					 have[i * 8 + k], p->spot[i][k]);
}

/* Peaks of two to four pixels a side on a background. */
static void draw(enum sl_dtype dtype, uint32_t rows, uint32_t columns, double flat, double bright,
		 double bad, uint64_t seed, void *image)
{
	double photon = dtype == SL_F32 ? 12.5 : 1;

	for (uint32_t i = 0; i < rows * columns; i++) {
		uint32_t y = i / columns % 17, x = i % columns % 19,
			 size = 2 + i / columns / 17 % 2;
		bool peak = y < size && x < size && i / columns / 17 % 3;
		double v = frame_rig_counts(&seed, flat + (peak ? bright + 6 * sqrt(flat) : 0)) *
			   photon;

		if (dtype == SL_F32)
			v += frame_rig_uniform(&seed) - 0.5;
		frame_rig_store(dtype, image, i, frame_rig_uniform(&seed) < bad ? NAN : v);
	}
}

struct setup {
	enum sl_dtype dtype;
	uint32_t modules, rows, columns;
	const char *threshold, *sigmas, *box;
	const uint8_t *mask;
};

/* How many spots the plain program found. */
static int compare(const struct setup *s, void *image)
{
	static const char *const vectors[] = {"baseline", "avx2", "avx512", "auto"};
	char *first = NULL;
	struct plain p;
	int spots = 0;

	for (int v = 0; v < 4; v++) {
		struct frame_rig_frame f;
		struct frame_rig rig;
		size_t there;

		frame_rig_init(&rig, &sl_stage_spots, s->dtype, s->modules, s->rows, s->columns);
		rig.calibration.mask = s->mask;
		frame_rig_set(&rig, "vectors", vectors[v]);
		frame_rig_set(&rig, "max_spots", "8192");
		frame_rig_set(&rig, "threshold", s->threshold);
		frame_rig_set(&rig, "sigmas", s->sigmas);
		frame_rig_set(&rig, "box", s->box);
		frame_rig_open(&rig);
		frame_rig_frame_init(&rig, &f, image);
		frame_rig_run(&rig, &f, (uint32_t)v * 2);
		there = frame_rig_result(&rig, &f, 0)->rows * 8 * sizeof(float);
		if (!v) {
			plain_open(&p, &rig, image, s->mask);
			p.threshold = atof(s->threshold) * (s->dtype == SL_F32 ? 12.5 : 1);
			p.sigmas = atof(s->sigmas);
			p.box = atoi(s->box);
			plain_find(&p);
			check_spots(&p, &rig, &f);
			spots = p.spots;
			plain_close(&p);
			first = malloc(there + 1);
			memcpy(first, f.memory[0], there);
		}
		assert_memory_equal(first, f.memory[0], there);
		assert_int_equal(*(uint32_t *)frame_rig_result(&rig, &f, 1)->host, spots);
		frame_rig_frame_fini(&rig, &f);
		frame_rig_close(&rig);
	}
	free(first);
	return spots;
}

/* Few candidates, and nothing but: a low threshold on a high background. */
static void spots_are_those_of_the_plain_program(void **arg)
{
	static const struct {
		double flat, bright, bad;
		const char *threshold, *sigmas, *box;
	} kind[] = {{0.5, 40, 0.01, "5", "3", "3"},	 {0, 40, 0, "5", "3", "3"},
		    {10, 40, 0.01, "1", "3", "3"},	 {8, 40, 0, "9.5", "2.5", "2"},
		    {100, 40, 0, "50", "3", "5"},	 {0.2, 40, 0.3, "2", "1", "1"},
		    {2000, 400, 0.01, "1900", "3", "4"}, {1, 3000, 0.01, "5", "2.5", "5"}};

	(void)arg;
	for (unsigned n = 0; n < TYPES * 8; n++) {
		struct setup s = {types[n % TYPES],
				  1 + n % 3,
				  60 + n,
				  150 - n,
				  kind[n / TYPES].threshold,
				  kind[n / TYPES].sigmas,
				  kind[n / TYPES].box,
				  NULL};
		void *image = malloc(4 * s.modules * s.rows * s.columns);

		draw(s.dtype, s.modules * s.rows, s.columns, kind[n / TYPES].flat,
		     kind[n / TYPES].bright, kind[n / TYPES].bad, n + 1, image);
		/* A byte ends before the brightest kinds begin. */
		assert_true(compare(&s, image) > (s.dtype == SL_U8 && n / TYPES > 5 ? -1 : 5));
		free(image);
	}
}

static void small_images_of_all_sizes(void **arg)
{
	(void)arg;
	for (unsigned n = 0; n < 120; n++) {
		struct setup s = {types[n % TYPES],  1 + n % 2, 1 + n / 6,	    1 + n % 29,
				  n % 3 ? "5" : "1", "2",	n % 2 ? "3" : "15", NULL};
		void *image = malloc(4 * s.modules * s.rows * s.columns);

		draw(s.dtype, s.modules * s.rows, s.columns, 1, n % 7 ? 40 : 2000, 0.05, n + 1000,
		     image);
		compare(&s, image);
		free(image);
	}
}

static void masked_pixels_are_not_there(void **arg)
{
	enum { ROWS = 90, COLUMNS = 110 };
	static uint8_t mask[ROWS * COLUMNS];
	void *image = malloc(ROWS * COLUMNS * 4);

	(void)arg;
	for (int i = 0; i < ROWS * COLUMNS; i++)
		mask[i] = i % COLUMNS < 50 || i % 13 == 4;
	for (unsigned n = 0; n < 2 * TYPES; n++) {
		struct setup s = {types[n % TYPES],	   1,	ROWS, COLUMNS,
				  n < TYPES ? "5" : "0.5", "3", "3",  NULL};
		int all, some;

		draw(s.dtype, ROWS, COLUMNS, 3, 40, 0, 4, image);
		all = compare(&s, image);
		s.mask = mask;
		some = compare(&s, image);
		assert_true(some > 5 && some < all * 3 / 4);
	}
	free(image);
}

/* The integer form says the same as sums in double precision. */
static void whole_numbers_say_the_same(void **arg)
{
	uint64_t seed = 9;

	(void)arg;
	for (int i = 0; i < 20000; i++) {
		double sum = 0, square = 0, d, spread;
		int n = 2 + (int)(frame_rig_random(&seed) % 47), value;

		for (int k = 0; k < n; k++) {
			double v = frame_rig_random(&seed) % (1u << frame_rig_random(&seed) % 17);

			sum += v;
			square += v * v;
		}
		value = (int)(frame_rig_random(&seed) % 65536);
		d = value * (double)n - sum;
		spread = n * square - sum * sum;
		assert_int_equal(sl_spots_is_strong_whole(value, n, (sl_i64)sum, (sl_i64)square, 3),
				 sl_spots_is_strong((float)d, (float)spread, n, 3));
	}
}

struct single {
	struct frame_rig rig;
	struct frame_rig_frame f;
	char *image;
};

static void single_open(struct single *s, enum sl_dtype dtype, uint32_t modules, uint32_t rows,
			uint32_t columns)
{
	frame_rig_init(&s->rig, &sl_stage_spots, dtype, modules, rows, columns);
	s->image = calloc(modules * rows * columns, 4);
}

static uint32_t single_run(struct single *s)
{
	frame_rig_open(&s->rig);
	frame_rig_frame_init(&s->rig, &s->f, s->image);
	frame_rig_run(&s->rig, &s->f, 3);
	return *(uint32_t *)frame_rig_result(&s->rig, &s->f, 1)->host;
}

static void single_close(struct single *s)
{
	frame_rig_frame_fini(&s->rig, &s->f);
	frame_rig_close(&s->rig);
	free(s->image);
}

/* Nothing there, nothing but one value, and one pixel. */
static void frames_without_spots(void **arg)
{
	(void)arg;
	for (int n = 0; n < 3 * TYPES; n++) {
		enum sl_dtype dtype = types[n % TYPES];
		uint32_t size = n / TYPES == 2 ? 1 : 40;
		struct single s;

		single_open(&s, dtype, 1, size, size);
		for (uint32_t i = 0; i < size * size; i++)
			frame_rig_store(dtype, s.image, i, n / TYPES == 0 ? NAN : 200);
		assert_int_equal(single_run(&s), 0);
		assert_int_equal(frame_rig_result(&s.rig, &s.f, 0)->rows, 0);
		assert_false(s.f.verdict.keep);
		assert_int_equal(s.f.verdict.reason, SL_REASON_SPOTS);
		single_close(&s);
	}
}

/* At the corner, where peaks of the other stage cannot begin, in an empty image. */
static void open_with_one_spot(struct single *s)
{
	single_open(s, SL_I16, 2, 30, 40);
	((int16_t *)s->image)[30 * 40] = 9;
	((int16_t *)s->image)[30 * 40 + 1] = 27;
}

static void a_spot_by_hand(void **arg)
{
	struct single s;
	const float *spot;

	(void)arg;
	open_with_one_spot(&s);
	frame_rig_set(&s.rig, "sigmas", "1");
	frame_rig_set(&s.rig, "box", "3");
	assert_int_equal(single_run(&s), 1);
	spot = frame_rig_result(&s.rig, &s.f, 0)->host;
	assert_true(spot[0] == 1 && spot[1] == 0.5f && spot[2] == 1.25f);
	assert_true(spot[3] == 36 && spot[5] == 2 && spot[6] == 27);
	/* 19 pixels around the brighter one: 9, and zeros. */
	assert_true(fabs(spot[7] - 9 / 19.) < 1e-6);
	assert_true(fabs(spot[4] - (27 - 9 / 19.) / (9 / sqrt(19.))) < 1e-4);
	single_close(&s);
}

static void more_spots_than_there_is_room_for(void **arg)
{
	struct single s;

	(void)arg;
	single_open(&s, SL_U16, 1, 100, 100);
	frame_rig_set(&s.rig, "max_spots", "7");
	frame_rig_set(&s.rig, "sigmas", "2");
	for (int y = 0; y < 10; y++)
		for (int x = 0; x < 10; x++) {
			((uint16_t *)s.image)[(y * 10 + 5) * 100 + x * 10 + 5] = 100;
			((uint16_t *)s.image)[(y * 10 + 5) * 100 + x * 10 + 6] = 100;
		}
	assert_int_equal(single_run(&s), 100);
	assert_int_equal(frame_rig_result(&s.rig, &s.f, 0)->rows, 7);
	assert_true(s.f.verdict.keep && s.f.verdict.score == 100);
	single_close(&s);
}

static void frames_are_judged(void **arg)
{
	static const struct {
		const char *min_spots, *look;
		bool kept_before, dark;
		uint32_t found, keep;
		int reason;
	} cases[] = {
		{"1", "kept", true, false, 1, 1, SL_REASON_SPOTS},
		{"2", "kept", true, false, 1, 0, SL_REASON_SPOTS},
		{"0", "kept", true, false, 1, 1, SL_REASON_UNJUDGED},
		{"1", "kept", false, false, 0, 0, SL_REASON_BRIGHT_PIXELS},
		{"1", "all", false, false, 1, 0, SL_REASON_BRIGHT_PIXELS},
		{"1", "all", false, true, 0, 0, SL_REASON_BRIGHT_PIXELS},
	};

	(void)arg;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct single s;

		open_with_one_spot(&s);
		frame_rig_set(&s.rig, "sigmas", "1");
		frame_rig_set(&s.rig, "min_spots", cases[i].min_spots);
		frame_rig_set(&s.rig, "look", cases[i].look);
		frame_rig_open(&s.rig);
		frame_rig_frame_init(&s.rig, &s.f, s.image);
		if (cases[i].dark)
			s.f.frame.flags |= SL_FRAME_DARK;
		if (!cases[i].kept_before)
			s.f.verdict = (struct sl_verdict){.reason = SL_REASON_BRIGHT_PIXELS};
		frame_rig_run(&s.rig, &s.f, 0);
		assert_int_equal(*(uint32_t *)frame_rig_result(&s.rig, &s.f, 1)->host,
				 cases[i].found);
		assert_int_equal(s.f.verdict.keep, cases[i].keep);
		assert_int_equal(s.f.verdict.reason, cases[i].reason);
		single_close(&s);
	}
}

static void what_cannot_be_is_refused(void **arg)
{
	static const struct {
		const char *option, *value, *words;
		enum sl_dtype dtype;
		double energy;
	} bad[] = {
		{"box", "3", "not int32", SL_I32, 12.4},
		{"box", "3", "photon energy", SL_F32, 0},
		{"min_pixels", "201", "max_pixels", SL_I16, 12.4},
	};

	(void)arg;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct frame_rig rig;

		frame_rig_init(&rig, &sl_stage_spots, bad[i].dtype, 1, 20, 20);
		rig.geometry.photon_energy_keV = bad[i].energy;
		frame_rig_set(&rig, bad[i].option, bad[i].value);
		capture_begin();
		assert_int_equal(frame_rig_try_open(&rig), -EINVAL);
		assert_non_null(strstr(capture_end(), bad[i].words));
		frame_rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spots_are_those_of_the_plain_program),
		cmocka_unit_test(small_images_of_all_sizes),
		cmocka_unit_test(masked_pixels_are_not_there),
		cmocka_unit_test(whole_numbers_say_the_same),
		cmocka_unit_test(frames_without_spots),
		cmocka_unit_test(a_spot_by_hand),
		cmocka_unit_test(more_spots_than_there_is_room_for),
		cmocka_unit_test(frames_are_judged),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests_name("spots", tests, NULL, NULL);
}
