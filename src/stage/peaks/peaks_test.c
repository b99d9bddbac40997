/* peaks_test.c - peaks are those that a plain program in double precision finds, in images of every
 * type, with every kind of vectors; and what a frame that has no peaks, or nothing but, becomes. */
#include <errno.h>

#include "lib/capture.h"
#include "lib/frame_rig.h"
#include "stage/peaks/peaks.h"

extern const struct sl_stage sl_stage_peaks;

enum { MOST = 4096 };

static const enum sl_dtype types[] = {SL_U8, SL_U16, SL_U32, SL_I16, SL_F32};
enum { TYPES = 5 };

/* ---- the plain program ---- */

struct plain {
	int modules, rows, columns;
	double beam_row, beam_column, snr, threshold;
	int min_pixels, max_pixels, radius;
	double *value; /* NaN: not there */
	int *ring, rings;
	double *mean, *upper;
	bool *seen;
	double peak[MOST][8];
	int peaks;
};

static void plain_open(struct plain *p)
{
	int pixels = p->modules * p->rows * p->columns;

	p->value = calloc((size_t)pixels, sizeof(double));
	p->ring = calloc((size_t)pixels, sizeof(int));
	p->seen = calloc((size_t)pixels, sizeof(bool));
	p->rings = 0;
	for (int i = 0; i < pixels; i++) {
		double y = i / p->columns + 0.5 - p->beam_row;
		double x = i % p->columns + 0.5 - p->beam_column;

		p->ring[i] = (int)rint(sqrt(x * x + y * y));
		if (p->ring[i] >= p->rings)
			p->rings = p->ring[i] + 1;
	}
	p->mean = calloc((size_t)p->rings, sizeof(double));
	p->upper = calloc((size_t)p->rings, sizeof(double));
}

static void plain_close(struct plain *p)
{
	free(p->value);
	free(p->ring);
	free(p->seen);
	free(p->mean);
	free(p->upper);
}

/* Of one ring: the pixels once for the mean and once for the deviation, five times. */
static void plain_ring(struct plain *p, const int *pixel, int pixels, double *mean, double *upper)
{
	double lower = -1e9;

	*upper = 1e9;
	*mean = 0;
	for (int k = 0; k < 5; k++) {
		double sum = 0, square = 0, sigma;
		int n = 0;

		for (int i = 0; i < pixels; i++)
			if (p->value[pixel[i]] > lower && p->value[pixel[i]] < *upper) {
				sum += p->value[pixel[i]];
				n++;
			}
		if (!n && !k)
			*upper = INFINITY;
		if (!n)
			return;
		*mean = sum / n;
		for (int i = 0; i < pixels; i++)
			if (p->value[pixel[i]] > lower && p->value[pixel[i]] < *upper)
				square += pow(p->value[pixel[i]] - *mean, 2);
		sigma = sqrt(square / n);
		lower = *mean - p->snr * sigma;
		*upper = fmax(*mean + p->snr * sigma, p->threshold);
	}
}

static void plain_rings(struct plain *p)
{
	size_t all = (size_t)(p->modules * p->rows * p->columns), rings = (size_t)p->rings;
	int *pixel = calloc(all, sizeof(int)), *end = calloc(rings + 1, sizeof(int));

	/* Sorted by ring: end[r] is where those of ring r will end. */
	for (size_t i = 0; i < all; i++)
		end[p->ring[i] + 1] += !isnan(p->value[i]);
	for (size_t r = 0; r < rings; r++)
		end[r + 1] += end[r];
	for (size_t i = 0; i < all; i++)
		if (!isnan(p->value[i]))
			pixel[end[p->ring[i]]++] = (int)i;
	for (size_t r = 0; r < rings; r++) {
		int first = r ? end[r - 1] : 0;

		plain_ring(p, pixel + first, end[r] - first, &p->mean[r], &p->upper[r]);
	}
	free(end);
	free(pixel);
}

static bool plain_strong(const struct plain *p, int module, int y, int x)
{
	int at = (module * p->rows + y) * p->columns + x;

	return y >= 0 && y < p->rows && x >= 0 && x < p->columns &&
	       p->value[at] > p->upper[p->ring[at]];
}

/* Pixels that hang together, numbers inside of the module. */
static int plain_fill(struct plain *p, int module, int y, int x, int *pixel)
{
	int first = module * p->rows * p->columns, n = 0;

	p->seen[first + y * p->columns + x] = true;
	pixel[n++] = y * p->columns + x;
	for (int i = 0; i < n; i++)
		for (int k = 0; k < 9; k++) {
			int yy = pixel[i] / p->columns + k / 3 - 1;
			int xx = pixel[i] % p->columns + k % 3 - 1;

			if (!plain_strong(p, module, yy, xx) ||
			    p->seen[first + yy * p->columns + xx])
				continue;
			p->seen[first + yy * p->columns + xx] = true;
			pixel[n++] = yy * p->columns + xx;
		}
	return n;
}

static void plain_around(const struct plain *p, int module, int row, int column, double *offset,
			 double *sigma, double *brightest)
{
	const double *value = p->value + module * p->rows * p->columns;
	const int *ring = p->ring + module * p->rows * p->columns;
	int reach = 2 * p->radius;

	for (int twice = 0; twice < 2; twice++) {
		double sum = 0;
		int n = 0;

		for (int y = 0; y < p->rows; y++)
			for (int x = 0; x < p->columns; x++) {
				int at = y * p->columns + x;

				if (pow(y - row, 2) + pow(x - column, 2) > reach * reach ||
				    !(value[at] < p->upper[ring[at]]))
					continue;
				sum += twice ? pow(value[at] - *offset, 2) : value[at];
				*brightest = fmax(*brightest, value[at]);
				n++;
			}
		if (!twice)
			*offset = n ? sum / n : p->mean[ring[row * p->columns + column]];
		else
			*sigma = sum > 0 ? sqrt(sum / n) : 0.01;
	}
}

static void plain_peak(struct plain *p, int module, const int *pixel, int n)
{
	const double *value = p->value + module * p->rows * p->columns;
	const int *ring = p->ring + module * p->rows * p->columns;
	double sum = 0, y = 0, x = 0, raw = 0, raw_y = 0, raw_x = 0, most = -INFINITY;
	double offset = 0, sigma = 0, brightest = -INFINITY, net, *peak;

	for (int i = 0; i < n; i++) {
		double v = value[pixel[i]], weight = fabs(v - p->mean[ring[pixel[i]]]);

		sum += weight;
		y += weight * (pixel[i] / p->columns);
		x += weight * (pixel[i] % p->columns);
		raw += v;
		raw_y += v * (pixel[i] / p->columns);
		raw_x += v * (pixel[i] % p->columns);
		most = fmax(most, v);
	}
	plain_around(p, module, (int)rint(y / sum), (int)rint(x / sum), &offset, &sigma,
		     &brightest);
	net = raw - n * offset;
	if (!(raw > 0) || net / sigma < p->snr || most - offset < brightest - offset)
		return;
	if (raw_y / raw < 0 || raw_y / raw > p->rows - 1 || raw_x / raw < 0 ||
	    raw_x / raw > p->columns - 1)
		return;
	assert_true(p->peaks < MOST);
	peak = p->peak[p->peaks++];
	peak[0] = module;
	peak[1] = raw_y / raw + 0.5;
	peak[2] = raw_x / raw + 0.5;
	peak[3] = net;
	peak[4] = net / sigma;
	peak[5] = n;
	peak[6] = most;
	peak[7] = offset;
}

static void plain_find(struct plain *p)
{
	int *pixel = calloc((size_t)(p->rows * p->columns), sizeof(int));

	plain_rings(p);
	p->peaks = 0;
	for (int m = 0; m < p->modules; m++)
		for (int y = 1; y < p->rows - 1; y++)
			for (int x = 1; x < p->columns - 1; x++) {
				int n;

				if (p->seen[(m * p->rows + y) * p->columns + x] ||
				    !plain_strong(p, m, y, x))
					continue;
				n = plain_fill(p, m, y, x, pixel);
				if (n >= p->min_pixels && n <= p->max_pixels)
					plain_peak(p, m, pixel, n);
			}
	free(pixel);
}

/* ---- images ---- */

struct scene {
	enum sl_dtype dtype;
	uint32_t modules, rows, columns;
	double flat, near; /* background: everywhere, and more near the beam */
	int peaks;
	double bright; /* photons of a peak, at most */
	double bad;    /* part of pixels that are no measurement */
	double photon; /* value of one */
};

static void draw(const struct scene *s, uint64_t seed, void *image)
{
	uint32_t pixels = s->modules * s->rows * s->columns;
	double *mean = calloc(pixels, sizeof(double));

	for (uint32_t i = 0; i < pixels; i++) {
		double y = i / s->columns + 0.5 - s->modules * s->rows / 2.;
		double x = i % s->columns + 0.5 - s->columns / 2.;

		mean[i] = s->flat + s->near * exp(-hypot(x, y) / 60);
	}
	for (int k = 0; k < s->peaks; k++) {
		double row = frame_rig_uniform(&seed) * s->modules * s->rows;
		double column = frame_rig_uniform(&seed) * s->columns;
		double photons = (0.1 + 0.9 * frame_rig_uniform(&seed)) * s->bright;
		double width = 0.5 + frame_rig_uniform(&seed) * 0.7;

		for (uint32_t i = 0; i < pixels; i++) {
			double y = i / s->columns + 0.5 - row, x = i % s->columns + 0.5 - column;

			if (fabs(x) < 8 && fabs(y) < 8)
				mean[i] += photons / (6.283185 * width * width) *
					   exp(-(x * x + y * y) / (2 * width * width));
		}
	}
	for (uint32_t i = 0; i < pixels; i++) {
		double value = frame_rig_counts(&seed, mean[i]) * s->photon;

		if (s->dtype == SL_F32)
			value += frame_rig_uniform(&seed) - 0.5;
		frame_rig_store(s->dtype, image, i,
				frame_rig_uniform(&seed) < s->bad ? NAN : value);
	}
	free(mean);
}

/* ---- comparison ---- */

static void plain_for(struct plain *p, const struct frame_rig *rig, const void *image,
		      const uint8_t *mask)
{
	double photon = rig->in.dtype == SL_F32 ? rig->geometry.photon_energy_keV : 1;
	uint32_t pixels = rig->geometry.modules * rig->geometry.rows * rig->geometry.columns;

	*p = (struct plain){.modules = (int)rig->geometry.modules,
			    .rows = (int)rig->geometry.rows,
			    .columns = (int)rig->geometry.columns,
			    .snr = 5,
			    .threshold = 4 * photon,
			    .min_pixels = 2,
			    .max_pixels = 200,
			    .radius = 3};
	p->beam_row = p->modules * p->rows / 2.;
	p->beam_column = p->columns / 2.;
	if (rig->geometry.layout.rows) {
		p->beam_row = rig->geometry.layout.beam_row;
		p->beam_column = rig->geometry.layout.beam_column;
	}
	plain_open(p);
	for (uint32_t i = 0; i < pixels; i++)
		p->value[i] = mask && mask[i] ? NAN : frame_rig_load(rig->in.dtype, image, i);
}

static void check_peaks(const struct plain *p, struct frame_rig *rig, struct frame_rig_frame *f)
{
	const struct sl_array *peaks = frame_rig_result(rig, f, 0);
	const float *have = peaks->host;

	assert_int_equal(*(uint32_t *)frame_rig_result(rig, f, 1)->host, p->peaks);
	assert_int_equal(peaks->rows, p->peaks);
	for (int i = 0; i < p->peaks; i++)
		for (int k = 0; k < 8; k++)
			if (fabs(have[i * 8 + k] - p->peak[i][k]) >
			    2e-5 * fabs(p->peak[i][k]) + 1e-4)
				fail_msg("peak %d of %d, column %d: %g, not %g", i, p->peaks, k,
					 have[i * 8 + k], p->peak[i][k]);
}

/* A scene, with every kind of vectors; how many peaks the plain program found. */
static int compare(const struct scene *s, uint64_t seed, const uint8_t *mask, const char *max_peaks)
{
	static const char *const vectors[] = {"baseline", "avx2", "avx512", "auto"};
	size_t bytes = (size_t)s->modules * s->rows * s->columns * sl_dtype_bytes(s->dtype);
	char *image = malloc(bytes), *first = NULL;
	struct plain p;
	int peaks = 0;

	draw(s, seed, image);
	for (int v = 0; v < 4; v++) {
		struct frame_rig_frame f;
		struct frame_rig rig;
		size_t there;

		frame_rig_init(&rig, &sl_stage_peaks, s->dtype, s->modules, s->rows, s->columns);
		rig.geometry.photon_energy_keV = s->photon;
		rig.calibration.mask = mask;
		frame_rig_set(&rig, "vectors", vectors[v]);
		frame_rig_set(&rig, "max_peaks", max_peaks);
		frame_rig_open(&rig);
		frame_rig_frame_init(&rig, &f, image);
		frame_rig_run(&rig, &f, (uint32_t)v * 2);
		there = frame_rig_result(&rig, &f, 0)->rows * 8 * sizeof(float);
		if (!v) {
			plain_for(&p, &rig, image, mask);
			plain_find(&p);
			peaks = p.peaks;
			check_peaks(&p, &rig, &f);
			plain_close(&p);
			first = malloc(there + 1);
			memcpy(first, f.memory[0], there);
		}
		assert_memory_equal(first, f.memory[0], there);
		assert_int_equal(*(uint32_t *)frame_rig_result(&rig, &f, 1)->host, peaks);
		frame_rig_frame_fini(&rig, &f);
		frame_rig_close(&rig);
	}
	free(first);
	free(image);
	return peaks;
}

static void peaks_are_those_of_the_plain_program(void **arg)
{
	static const struct {
		double flat, near, bright, bad;
	} kind[] = {{0.5, 4, 200, 0.01},  {0, 0, 60, 0},	   {0.02, 0.5, 100, 0},
		    {3, 30, 3000, 0.002}, {2000, 0, 60000, 0.001}, {12, 0, 1e6, 0}};

	(void)arg;
	for (int n = 0; n < TYPES * 6; n++) {
		enum sl_dtype dtype = types[n % TYPES];
		struct scene s = {dtype,
				  1 + (uint32_t)n % 3,
				  100 + (uint32_t)n * 3,
				  211 - (uint32_t)n * 2,
				  kind[n / TYPES].flat,
				  kind[n / TYPES].near,
				  25,
				  kind[n / TYPES].bright,
				  kind[n / TYPES].bad,
				  dtype == SL_F32 ? 12.5 : 1};

		/* A byte's worth of background leaves no room for peaks. */
		if (dtype == SL_U8 && s.flat > 100)
			s.flat = 100;
		assert_true(compare(&s, (uint64_t)n + 1, NULL, "4096") >= (dtype == SL_U8 ? 1 : 8));
	}
}

static void small_images_of_all_sizes(void **arg)
{
	(void)arg;
	for (int n = 0; n < 150; n++) {
		enum sl_dtype dtype = types[n % TYPES];
		struct scene s = {dtype,
				  1 + (uint32_t)n % 2,
				  1 + (uint32_t)n / 5,
				  1 + (uint32_t)n % 37,
				  0.2,
				  0.5,
				  n % 4,
				  80,
				  0.02,
				  dtype == SL_F32 ? 12.5 : 1};

		compare(&s, (uint64_t)n + 100, NULL, "4096");
	}
}

static void masked_pixels_are_not_there(void **arg)
{
	enum { ROWS = 120, COLUMNS = 150 };
	static uint8_t mask[ROWS * COLUMNS];
	int found[2];

	(void)arg;
	for (int i = 0; i < ROWS * COLUMNS; i++)
		mask[i] = i % COLUMNS < 75 || i % 17 == 3;
	for (int t = 0; t < TYPES; t++) {
		struct scene s = {types[t], 1,	ROWS, COLUMNS, 0.5,
				  3,	    60, 200,  0,       types[t] == SL_F32 ? 12.5 : 1};

		for (int m = 0; m < 2; m++)
			found[m] = compare(&s, 7, m ? mask : NULL, "4096");
		assert_true(found[0] > 30 && found[1] > 5 && found[1] < found[0] * 3 / 4);
	}
}

/* ---- what is special ---- */

struct single {
	struct frame_rig rig;
	struct frame_rig_frame f;
	char *image;
};

static void single_open(struct single *s, enum sl_dtype dtype, uint32_t modules, uint32_t rows,
			uint32_t columns)
{
	frame_rig_init(&s->rig, &sl_stage_peaks, dtype, modules, rows, columns);
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

static void no_valid_pixel_no_peak(void **arg)
{
	(void)arg;
	for (int t = 0; t < TYPES; t++) {
		struct single s;

		single_open(&s, types[t], 2, 30, 40);
		for (int i = 0; i < 2 * 30 * 40; i++)
			frame_rig_store(types[t], s.image, (uint64_t)i, NAN);
		assert_int_equal(single_run(&s), 0);
		assert_int_equal(frame_rig_result(&s.rig, &s.f, 0)->rows, 0);
		assert_false(s.f.verdict.keep);
		assert_int_equal(s.f.verdict.reason, SL_REASON_PEAKS);
		assert_true(s.f.verdict.score == 0);
		single_close(&s);
	}
}

/* A ring that has no valid pixel but those of the peak, and rings that have none at all. */
static void rings_without_a_valid_pixel(void **arg)
{
	struct single s;
	struct plain p;

	(void)arg;
	single_open(&s, SL_I16, 1, 64, 64);
	for (int i = 0; i < 64 * 64; i++) {
		double r = hypot(i / 64 - 31.5, i % 64 - 31.5);

		frame_rig_store(SL_I16, s.image, (uint64_t)i,
				r > 10 && r < 20 ? NAN : (i * 7 % 5 == 0));
	}
	for (int i = 0; i < 9; i++) /* in the ring of 15, and one at 28 */
		frame_rig_store(SL_I16, s.image, (uint64_t)((31 + i / 3) * 64 + 46 + i % 3), 100);
	for (int i = 0; i < 9; i++)
		frame_rig_store(SL_I16, s.image, (uint64_t)((31 + i / 3) * 64 + 58 + i % 3), 100);
	single_run(&s);
	plain_for(&p, &s.rig, s.image, NULL);
	plain_find(&p);
	assert_true(p.peaks >= 1);
	check_peaks(&p, &s.rig, &s.f);
	plain_close(&p);
	single_close(&s);
}

static void a_beam_far_off_the_image(void **arg)
{
	static const double beam[][2] = {{-3000, 70}, {1e7, -1e7}, {50, 1e5}, {0, 0}};

	(void)arg;
	for (int b = 0; b < 4; b++) {
		struct scene scene = {SL_I16, 1, 100, 140, 2, 0, 15, 300, 0, 1};
		struct single s;
		struct plain p;

		single_open(&s, SL_I16, 1, 100, 140);
		s.rig.geometry.layout = (struct sl_layout){.rows = 100,
							   .columns = 140,
							   .beam_row = beam[b][0],
							   .beam_column = beam[b][1]};
		draw(&scene, (uint64_t)b + 5, s.image);
		single_run(&s);
		plain_for(&p, &s.rig, s.image, NULL);
		plain_find(&p);
		assert_true(p.peaks > 8);
		check_peaks(&p, &s.rig, &s.f);
		plain_close(&p);
		single_close(&s);
	}
}

/* A part of the image is over every limit: one blob, of hundreds of pixels, that is no peak, in the
 * shape of a maze so that it is filled piece by piece; real peaks are found all the same. */
static void blobs_that_are_too_large(void **arg)
{
	enum { SIZE = 400, MAZE = 60, TOP = 170 };
	struct single s;
	struct plain p;

	(void)arg;
	single_open(&s, SL_U16, 1, SIZE, SIZE);
	for (int y = 0; y < SIZE; y++)
		for (int x = 0; x < SIZE; x++) {
			bool wall = y % 4 == 0 || x == (y / 4 % 2 ? 0 : MAZE - 1);

			wall &= y >= TOP && y < TOP + MAZE && x < MAZE;
			frame_rig_store(SL_U16, s.image, (uint64_t)(y * SIZE + x),
					wall ? 5000 + x : (x * 31 + y * 17) % 3);
		}
	for (int k = 0; k < 12; k++)
		for (int i = 0; i < 4; i++)
			frame_rig_store(
				SL_U16, s.image,
				(uint64_t)((10 + k * 30 + i / 2) * SIZE + 300 + k * 5 + i % 2),
				3000 + 100 * i);
	single_run(&s);
	plain_for(&p, &s.rig, s.image, NULL);
	plain_find(&p);
	assert_int_equal(p.peaks, 12);
	check_peaks(&p, &s.rig, &s.f);
	plain_close(&p);
	single_close(&s);
}

/* Every other pixel, or pair of pixels, is strong, or would be: bounded, and counted. */
static void frames_full_of_strong_pixels(void **arg)
{
	(void)arg;
	for (int kind = 0; kind < 4; kind++) {
		struct single s;
		struct plain p;
		uint32_t found;

		single_open(&s, SL_I16, 1, 120, 160);
		frame_rig_set(&s.rig, "max_peaks", "10");
		frame_rig_set(&s.rig, "snr", kind < 2 ? "5" : "0.5");
		for (int y = 0; y < 120; y++)
			for (int x = 0; x < 160; x++) {
				bool strong = kind % 2 ? y % 4 == 1 && x % 5 < 2 : true;

				frame_rig_store(SL_I16, s.image, (uint64_t)(y * 160 + x),
						strong ? 20000 + (x * 7 + y) % 3 : 1 + (x + y) % 2);
			}
		found = single_run(&s);
		plain_for(&p, &s.rig, s.image, NULL);
		p.snr = kind < 2 ? 5 : 0.5;
		plain_find(&p);
		assert_int_equal(found, p.peaks);
		assert_int_equal(frame_rig_result(&s.rig, &s.f, 0)->rows, found < 10 ? found : 10);
		if (kind == 3)
			assert_true(found > 800);
		plain_close(&p);
		single_close(&s);
	}
}

/* Counts and keV that would drown others in a sum of doubles, and more of them than are kept
 * apart. */
static void huge_pixels_drown_nothing(void **arg)
{
	static const int numbers[] = {3, 900, 3000};

	(void)arg;
	for (int n = 0; n < 6; n++) {
		enum sl_dtype dtype = n % 2 ? SL_F32 : SL_U32;
		double photon = dtype == SL_F32 ? 12.5 : 1;
		struct scene scene = {dtype, 1, 150, 170, 1, 2, 20, 300, 0, photon};
		struct single s;
		struct plain p;
		uint64_t seed = (uint64_t)n;

		single_open(&s, dtype, 1, 150, 170);
		s.rig.geometry.photon_energy_keV = photon;
		draw(&scene, 77, s.image);
		for (int k = 0; k < numbers[n / 2]; k++)
			frame_rig_store(dtype, s.image, frame_rig_random(&seed) % (150 * 170),
					k % 2 ? 3e9 : 16777216. * (1 + k % 7));
		single_run(&s);
		plain_for(&p, &s.rig, s.image, NULL);
		p.threshold = 4 * photon;
		plain_find(&p);
		/* Deviations from means of 1e9 are what doubles can tell. */
		assert_int_equal(*(uint32_t *)frame_rig_result(&s.rig, &s.f, 1)->host, p.peaks);
		plain_close(&p);
		single_close(&s);
	}
}

/* The quick way was taken: rings came from the list, not from a look at all pixels. */
static void the_list_is_long_enough(void **arg)
{
	struct sl_geometry g = {.modules = 1, .rows = 300, .columns = 310};
	struct sl_env env = {.geometry = &g};
	struct sl_peaks_settings settings = {5, 4, 2, 200, 3};

	(void)arg;
	for (int t = 0; t < TYPES; t++) {
		struct scene s = {types[t], 1, 300, 310, 0.5, 5, 40, 500, 0.001, 1};
		struct sl_peaks_table table;
		struct sl_peaks_work work;
		void *image = malloc(300 * 310 * 4), *memory;

		draw(&s, 11, image);
		assert_int_equal(sl_peaks_table_open(&table, &env, true, 0, 0), 0);
		memory = malloc(sl_peaks_work_bytes(&table, &settings));
		memset(memory, FRAME_RIG_POISON, sl_peaks_work_bytes(&table, &settings));
		sl_peaks_work_init(&work, &table, &settings, types[t], memory);
		sl_peaks_rings(&work, sl_peaks_sums(types[t], 0), sl_peaks_scan(types[t], 0),
			       image);
		assert_false(work.overflow || work.crowded);
		assert_true(work.listed > 50 && work.listed < work.capacity);
		sl_peaks_table_close(&table);
		free(memory);
		free(image);
	}
}

/* Rings that are columns, four of them, so that all pixels of one go into the same packed sum: as
 * many as it can take, and some more. */
static void sums_of_large_rings_are_exact(void **arg)
{
	(void)arg;
	for (int n = 0; n < 8; n++) {
		enum sl_dtype dtype = n % 2 ? SL_I16 : SL_U16;
		uint32_t rows = 65536 + (uint32_t)(n / 2 % 2) * 200;
		int value = n < 4 ? 1023 : 1024;
		struct sl_geometry g = {.modules = 1, .rows = rows, .columns = 4};
		struct sl_env env = {.geometry = &g};
		struct sl_peaks_settings settings = {5, 4, 2, 200, 3};
		struct sl_peaks_table table;
		struct sl_peaks_work work;
		uint16_t *image = calloc(4 * rows, 2);
		void *memory;

		g.layout = (struct sl_layout){.rows = rows,
					      .columns = 4,
					      .beam_row = rows / 2.,
					      .beam_column = -1e12 - 0.5};
		for (uint32_t i = 0; i < 4 * rows; i++)
			image[i] = (uint16_t)(i % 4 == 1 && dtype == SL_I16 ? -value : value);
		assert_int_equal(sl_peaks_table_open(&table, &env, true, 0, 0), 0);
		assert_int_equal(table.rings, 4);
		memory = malloc(sl_peaks_work_bytes(&table, &settings));
		sl_peaks_work_init(&work, &table, &settings, dtype, memory);
		sl_peaks_rings(&work, sl_peaks_sums(dtype, 0), sl_peaks_scan(dtype, 0), image);
		for (int r = 0; r < 4; r++) {
			double sign = r == 1 && dtype == SL_I16 ? -1 : 1;

			assert_true(work.ring[r].all == rows);
			assert_true(work.ring[r].all_sum == sign * value * (double)rows);
			assert_true(work.ring[r].all_square == (double)value * value * rows);
		}
		sl_peaks_table_close(&table);
		free(memory);
		free(image);
	}
}

static void raw_pixels_in_views_with_a_pitch(void **arg)
{
	enum { ROWS = 60, COLUMNS = 70, PITCH = 256, MODULES = 3 };
	struct scene scene = {SL_U16, MODULES, ROWS, COLUMNS, 1, 2, 20, 200, 0, 1};
	struct single s;
	struct plain p;
	char *padded = malloc(MODULES * ROWS * PITCH);

	(void)arg;
	single_open(&s, SL_U16, MODULES, ROWS, COLUMNS);
	s.rig.raw = true;
	draw(&scene, 3, s.image);
	memset(padded, 0x33, MODULES * ROWS * PITCH);
	for (int r = 0; r < MODULES * ROWS; r++)
		memcpy(padded + r * PITCH, s.image + r * COLUMNS * 2, COLUMNS * 2);
	frame_rig_open(&s.rig);
	frame_rig_frame_init(&s.rig, &s.f, s.image);
	for (int m = 0; m < MODULES; m++) {
		s.f.view[m].pixels.host = padded + m * ROWS * PITCH;
		s.f.view[m].pixels.pitch = PITCH;
	}
	frame_rig_run(&s.rig, &s.f, 7);
	plain_for(&p, &s.rig, s.image, NULL);
	plain_find(&p);
	assert_true(p.peaks > 8);
	check_peaks(&p, &s.rig, &s.f);
	plain_close(&p);
	single_close(&s);
	free(padded);
}

/* A peak at the middle of pixel (40, 70) of module 1, in an empty image. */
static void open_with_one_peak(struct single *s)
{
	single_open(s, SL_I16, 2, 60, 80);
	for (int i = 0; i < 9; i++)
		((int16_t *)s->image)[(60 + 39 + i / 3) * 80 + 69 + i % 3] = i == 4 ? 60 : 20;
}

static void a_peak_by_hand(void **arg)
{
	struct single s;
	const float *peak;

	(void)arg;
	open_with_one_peak(&s);
	assert_int_equal(single_run(&s), 1);
	peak = frame_rig_result(&s.rig, &s.f, 0)->host;
	assert_true(peak[0] == 1 && peak[1] == 40.5f && peak[2] == 70.5f);
	assert_true(peak[3] == 220 && peak[5] == 9 && peak[6] == 60 && peak[7] == 0);
	assert_true(fabsf(peak[4] - 22000) < 1); /* the background does not vary: 0.01 */
	single_close(&s);
}

static void frames_are_judged(void **arg)
{
	static const struct {
		const char *min_peaks, *look;
		bool kept_before, dark;
		uint32_t found, keep;
		int reason;
	} cases[] = {
		{"1", "kept", true, false, 1, 1, SL_REASON_PEAKS},
		{"2", "kept", true, false, 1, 0, SL_REASON_PEAKS},
		{"0", "kept", true, false, 1, 1, SL_REASON_UNJUDGED},
		{"1", "kept", false, false, 0, 0, SL_REASON_BRIGHT_PIXELS},
		{"1", "all", false, false, 1, 0, SL_REASON_BRIGHT_PIXELS},
		{"1", "all", false, true, 0, 0, SL_REASON_BRIGHT_PIXELS},
	};

	(void)arg;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct single s;

		open_with_one_peak(&s);
		frame_rig_set(&s.rig, "min_peaks", cases[i].min_peaks);
		frame_rig_set(&s.rig, "look", cases[i].look);
		frame_rig_open(&s.rig);
		frame_rig_frame_init(&s.rig, &s.f, s.image);
		if (cases[i].dark)
			s.f.frame.flags |= SL_FRAME_DARK;
		if (!cases[i].kept_before)
			s.f.verdict =
				(struct sl_verdict){.reason = SL_REASON_BRIGHT_PIXELS, .score = 17};
		frame_rig_run(&s.rig, &s.f, 0);
		assert_int_equal(*(uint32_t *)frame_rig_result(&s.rig, &s.f, 1)->host,
				 cases[i].found);
		assert_int_equal(frame_rig_result(&s.rig, &s.f, 0)->rows, cases[i].found);
		assert_int_equal(s.f.verdict.keep, cases[i].keep);
		assert_int_equal(s.f.verdict.reason, cases[i].reason);
		if (!cases[i].kept_before)
			assert_true(s.f.verdict.score == 17);
		single_close(&s);
	}
}

static void what_cannot_be_is_refused(void **arg)
{
	static uint8_t mask[2 * 30 * 40];
	static const struct {
		const char *option, *value, *words;
		enum sl_dtype dtype;
		double energy;
		bool masked;
	} bad[] = {
		{"snr", "5", "not int32", SL_I32, 12.4, false},
		{"snr", "5", "photon energy", SL_F32, 0, false},
		{"min_pixels", "201", "max_pixels", SL_I16, 12.4, false},
		{"r_min", "1000", "no pixel between", SL_I16, 12.4, false},
		{"snr", "5", "not masked", SL_I16, 12.4, true},
	};

	(void)arg;
	memset(mask, 1, sizeof(mask));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct single s;

		single_open(&s, bad[i].dtype, 2, 30, 40);
		s.rig.geometry.photon_energy_keV = bad[i].energy;
		s.rig.calibration.mask = bad[i].masked ? mask : NULL;
		frame_rig_set(&s.rig, bad[i].option, bad[i].value);
		capture_begin();
		assert_int_equal(frame_rig_try_open(&s.rig), -EINVAL);
		assert_non_null(strstr(capture_end(), bad[i].words));
		frame_rig_close(&s.rig);
		free(s.image);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peaks_are_those_of_the_plain_program),
		cmocka_unit_test(small_images_of_all_sizes),
		cmocka_unit_test(masked_pixels_are_not_there),
		cmocka_unit_test(no_valid_pixel_no_peak),
		cmocka_unit_test(rings_without_a_valid_pixel),
		cmocka_unit_test(a_beam_far_off_the_image),
		cmocka_unit_test(blobs_that_are_too_large),
		cmocka_unit_test(frames_full_of_strong_pixels),
		cmocka_unit_test(huge_pixels_drown_nothing),
		cmocka_unit_test(the_list_is_long_enough),
		cmocka_unit_test(sums_of_large_rings_are_exact),
		cmocka_unit_test(raw_pixels_in_views_with_a_pitch),
		cmocka_unit_test(a_peak_by_hand),
		cmocka_unit_test(frames_are_judged),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests_name("peaks", tests, NULL, NULL);
}
