/* data.c - frames as a Jungfrau takes them in serial crystallography: photons of a
 * ring of water, peaks, electronic noise, pixels in all three gains. A function of pixel and frame
 * alone, so that every run measures the same frames. Figures are those of real frames at
 * 12.4 keV: pedestals of 2446, 13584 and 14100 ADU, 41.0, -1.439 and -0.1145 ADU per keV, 24 ADU of
 * noise, 1.7 photons per pixel, 9e-4 of the pixels in G1 and 6e-5 in G2. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/random.h>

#include "bench/stage/stage.h"

enum { LEVELS = 64, REACH = 5, BORDER = 12 };
enum { G0_PHOTONS = 24, G1_PHOTONS = 700 }; /* more than that is seen in the next gain */
/* Of 65536 pixels: those that switch although they need not, scattered; peaks add the rest. And
 * those that are masked. */
enum { EARLY_G1 = 42, EARLY_G2 = 4, MASKED = 33 };
enum { NOISE_G0 = 24, NOISE_G1 = 3, NOISE_G2 = 1 };
enum { KEY_TABLES = 1, KEY_PEAKS, KEY_PIXELS, KEY_SHARP };

static const struct {
	uint32_t rows, columns, frames;
} sizes[SL_BENCH_SIZES] = {
	{2164, 2068, 32}, /* two stacks: 286 MB */
	{512, 1024, 64},  /* 67 MB */
};

struct brush { /* what drawing needs and nobody else */
	float normal[SL_NORMAL_ENTRIES];
	struct sl_poisson level[LEVELS];
	uint8_t *ring; /* [pixels]: the level of the background */
};

static double radius(const struct sl_geometry *g, uint32_t row, uint32_t column)
{
	double y = row + 0.5 - g->layout.beam_row, x = column + 0.5 - g->layout.beam_column;

	return sqrt(x * x + y * y);
}

static int prepare(struct brush *brush, const struct sl_geometry *g)
{
	double far = sqrt((double)g->rows * g->rows + (double)g->columns * g->columns) / 2;

	sl_normal_fill(brush->normal);
	for (unsigned i = 0; i < LEVELS; i++) {
		double x = ((i + 0.5) / LEVELS - 0.45) / 0.18;

		sl_poisson_fill(&brush->level[i], 1 + 1.75 * sl_exp(-x * x));
	}
	brush->ring = malloc(sl_geometry_pixels(g));
	if (!brush->ring)
		return -ENOMEM;
	for (uint32_t r = 0; r < g->rows; r++)
		for (uint32_t c = 0; c < g->columns; c++) {
			unsigned level = (unsigned)(LEVELS * radius(g, r, c) / far);

			brush->ring[(size_t)r * g->columns + c] =
				(uint8_t)(level < LEVELS ? level : LEVELS - 1);
		}
	return 0;
}

/* ---- the calibration ---- */

static void fill_tables(struct sl_bench_scene *s, const struct brush *brush)
{
	static const double typical[SL_BENCH_PLANES] = {2446, 13584, 14100, 41, -1.439, -0.1145};
	static const double spread[SL_BENCH_PLANES] = {250, 150, 160, 0.8, 0.03, 0.0025};

	for (unsigned p = 0; p < SL_BENCH_PLANES; p++) {
		uint64_t key = sl_key(KEY_TABLES, p);

		for (uint64_t i = 0; i < s->pixels; i++)
			s->plane[p][i] =
				(float)(typical[p] +
					spread[p] * brush->normal[sl_draw(key, i) & 0xffff]);
	}
	for (uint64_t i = 0; i < s->pixels; i++)
		s->mask[i] = (sl_draw(sl_key(KEY_TABLES, 99), i) & 0xffff) < MASKED;
	for (unsigned g = 0; g < 3; g++) {
		s->calibration.pedestal[g] = s->plane[g];
		s->calibration.gain[g] = s->plane[3 + g];
	}
	s->calibration.mask = s->mask;
	s->calibration.measured = true;
}

/* ---- pixels ---- */

/* The background of a pixel with `more` photons of a peak, as it is read out. */
static inline uint16_t draw_pixel(const struct sl_bench_scene *s, const struct brush *brush,
				  uint64_t key, uint64_t i, unsigned more)
{
	static const uint16_t code[3] = {0, 0x4000, 0xc000};
	static const float noise[3] = {NOISE_G0, NOISE_G1, NOISE_G2};
	uint64_t bits = sl_draw(key, i);
	unsigned early = bits & 0xffff;
	unsigned n = sl_poisson_draw(&brush->level[brush->ring[i]], (uint32_t)(bits >> 32)) + more;
	unsigned g = n > G1_PHOTONS || early < EARLY_G2		     ? 2
		     : n > G0_PHOTONS || early < EARLY_G2 + EARLY_G1 ? 1
								     : 0;
	float adu = s->plane[g][i] + noise[g] * brush->normal[bits >> 16 & 0xffff] +
		    (float)n * s->plane[3 + g][i] * (float)s->geometry.photon_energy_keV;

	adu = adu < 1 ? 1 : adu > 16382 ? 16382 : adu; /* the ends mean other things */
	return (uint16_t)(code[g] | (uint16_t)(adu + 0.5f));
}

/* Peaks are one to a cell of a grid, so that none is on another. */
static void place_peaks(struct sl_bench_scene *s, uint32_t frame)
{
	const struct sl_geometry *g = &s->geometry;
	uint32_t across = (uint32_t)ceil(sqrt((double)s->peaks * g->columns / g->rows));
	uint32_t down = (s->peaks + across - 1) / across;
	double height = (double)g->rows / down, width = (double)g->columns / across;

	for (uint32_t p = 0; p < s->peaks; p++) {
		uint64_t key = sl_key(sl_key(KEY_PEAKS, frame), p);

		s->peak[frame * s->peaks + p] = (struct sl_bench_peak){
			.row = (float)(p / across * height + BORDER +
				       (height - 2 * BORDER) * sl_uniform(sl_draw(key, 0))),
			.column = (float)(p % across * width + BORDER +
					  (width - 2 * BORDER) * sl_uniform(sl_draw(key, 1))),
		};
	}
}

/* Of two pixels to thirty, and of 40 photons to 400 in the highest. */
static void draw_peak(struct sl_bench_scene *s, const struct brush *brush, uint32_t frame,
		      uint32_t p)
{
	const struct sl_bench_peak *peak = &s->peak[frame * s->peaks + p];
	uint64_t key = sl_key(sl_key(KEY_SHARP, frame), p);
	uint64_t pixels = sl_key(KEY_PIXELS, frame);
	double height = 40 * sl_exp(2.3 * sl_uniform(sl_draw(key, 0)));
	double sharp = 0.6 + 0.55 * sl_uniform(sl_draw(key, 1));
	int row = (int)peak->row, column = (int)peak->column;

	for (int r = row - REACH; r <= row + REACH; r++)
		for (int c = column - REACH; c <= column + REACH; c++) {
			double y = r + 0.5 - peak->row, x = c + 0.5 - peak->column;
			uint64_t i = (uint64_t)r * s->geometry.columns + (uint64_t)c;
			double mean = height * sl_exp(-(x * x + y * y) / (2 * sharp * sharp));
			double more = sl_poisson_any(mean, sl_draw(key, 2 + i), brush->normal);

			if (more >= 1)
				s->raw[frame * s->pixels + i] =
					draw_pixel(s, brush, pixels, i, (unsigned)more);
		}
}

static void draw_frame(struct sl_bench_scene *s, const struct brush *brush, uint32_t frame)
{
	uint64_t key = sl_key(KEY_PIXELS, frame);
	uint16_t *raw = s->raw + frame * s->pixels;

	for (uint64_t i = 0; i < s->pixels; i++)
		raw[i] = draw_pixel(s, brush, key, i, 0);
	place_peaks(s, frame);
	for (uint32_t p = 0; p < s->peaks; p++)
		draw_peak(s, brush, frame, p);
}

/* As the stage `correct` says that it does; that it does so is what rows are checked for. */
static int16_t photons(const struct sl_bench_scene *s, uint64_t i, uint16_t raw)
{
	unsigned g = raw >> 14 == 3 ? 2 : raw >> 14;
	double scale = s->plane[3 + g][i] * s->geometry.photon_energy_keV;
	float value = ((float)(raw & 0x3fff) - s->plane[g][i]) * (float)(1 / scale);

	return s->mask[i] ? INT16_MIN : (int16_t)roundf(value);
}

static void correct_frame(struct sl_bench_scene *s, uint32_t frame)
{
	const uint16_t *raw = s->raw + frame * s->pixels;
	int16_t *image = s->image + frame * s->pixels;

	for (uint64_t i = 0; i < s->pixels; i++)
		image[i] = photons(s, i, raw[i]);
}

uint32_t sl_bench_check(const void *pixels, uint64_t n)
{
	const uint16_t *v = pixels;
	uint32_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum += v[i] * (uint32_t)(2 * i + 1);
	return sum;
}

/* ---- all of it ---- */

/* One module in the place of eight, so that peers that know no modules see the same image. */
static struct sl_geometry geometry_of(enum sl_bench_size size)
{
	struct sl_geometry g = {
		.detector = "jungfrau",
		.modules = 1,
		.rows = sizes[size].rows,
		.columns = sizes[size].columns,
		.dtype = SL_U16,
		.bit_depth = 16,
		.pixel_size_m = 0x1p-14,
		.distance_m = 0.125,
		.photon_energy_keV = 12.4,
		.sensor_material = "Si",
		.sensor_thickness_m = 320e-6,
	};

	g.module_bytes = sl_geometry_pixels(&g) * sizeof(uint16_t);
	sl_layout_resolve(&g, &g.layout);
	/* In the middle, but not in the middle of a pixel. Pixels are 61 um, a power of two, and
	 * the beam is at a 64th of one: pyFAI has positions in float32, and rounded ones would put
	 * pixels at the edges of bins on either side. */
	g.layout.beam_row = g.rows / 2 + 24. / 64;
	g.layout.beam_column = g.columns / 2 + 9. / 64;
	return g;
}

static int allocate(struct sl_bench_scene *s)
{
	uint64_t all = s->frames * s->pixels;
	int err = sl_region_open(SL_REGION_HOST, all * 4 + s->pixels * (4 * SL_BENCH_PLANES + 1),
				 &s->memory);

	if (err)
		return err;
	s->peak = calloc((size_t)s->frames * s->peaks, sizeof(*s->peak));
	if (!s->peak)
		return -ENOMEM;
	s->raw = s->memory.base;
	s->image = (int16_t *)(s->raw + all);
	s->plane[0] = (float *)(s->image + all);
	for (unsigned p = 1; p < SL_BENCH_PLANES; p++)
		s->plane[p] = s->plane[p - 1] + s->pixels;
	s->mask = (uint8_t *)(s->plane[SL_BENCH_PLANES - 1] + s->pixels);
	return 0;
}

/* A little more than what the farthest corner has: no pixel lies across the end of the range,
 * where every program has its own mind. */
static double farthest_q(const struct sl_geometry *g)
{
	double tan = radius(g, 0, 0) * g->pixel_size_m / g->distance_m;

	return 1.002 * 4 * M_PI * sin(atan(tan) / 2) * g->photon_energy_keV / 1.2398419843320026;
}

int sl_bench_scene_make(struct sl_bench_scene *s, enum sl_bench_size size)
{
	struct brush *brush = calloc(1, sizeof(*brush));
	int err;

	*s = (struct sl_bench_scene){.geometry = geometry_of(size), .memory = {.fd = -1}};
	s->frames = sizes[size].frames;
	s->pixels = sl_geometry_pixels(&s->geometry);
	s->peaks = (uint32_t)(150 * s->pixels / 4475152);
	s->high = farthest_q(&s->geometry);
	err = brush ? allocate(s) : -ENOMEM;
	if (!err)
		err = prepare(brush, &s->geometry);
	if (!err)
		fill_tables(s, brush);
	for (uint32_t f = 0; !err && f < s->frames; f++) {
		draw_frame(s, brush, f);
		correct_frame(s, f);
	}
	if (brush)
		free(brush->ring);
	free(brush);
	if (err)
		sl_bench_scene_free(s);
	return err;
}

void sl_bench_scene_free(struct sl_bench_scene *s)
{
	if (s->memory.base)
		sl_region_close(&s->memory);
	free(s->peak);
	free(s->events);
	*s = (struct sl_bench_scene){.memory = {.fd = -1}};
}
