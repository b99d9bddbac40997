/* camera.c - an optical camera of any size, 8 to 16 bits: by default 512 x 512 pixels of 8 bits at
 * 5,000 frames per second, as the high-speed cameras at synchrotron beamlines.
 *
 * What it sees: droplets that fly through a beam of light. The beam is brightest in the middle of
 * the image; a scintillator's grain and scratches lie over it, always the same; every pixel has a
 * gain and an offset of its own, and photon and read noise. Droplets are dark disks with a glint,
 * or bright ones, of different sizes; each crosses the image on a straight line, again and again:
 * in a pool of frames it goes round once. Each module is a camera of its own.
 *
 * Threads: as detector.h says. Cost: a module's pixels per rendered frame, and 8 bytes a pixel of
 * tables; 15 ns a pixel. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/detector.h>
#include <sluice/random.h>

#include "base/log.h"
#include "detector/frame_cache.h"

/* Keys of the things that are drawn. */
enum { KEY_GRAIN = 401, KEY_BRIGHT, KEY_DARK, KEY_PATH, KEY_GAIN, KEY_OFFSET };

/* Shares of the full scale: the offset of every pixel, and the beam's brightest. */
static const float offset = 0.03f, beam = 0.5f;

struct camera {
	uint32_t width, height, bits, droplets, pool;
	double radius, noise;

	uint32_t modules;
	uint64_t seed, period_ns;
	struct sl_frame_cache cache;
	float *normal; /* [SL_NORMAL_ENTRIES] */
	/* [modules][height][width], shares of the full scale: light that falls there without
	 * droplets, times the pixel's gain; its offset. */
	float *light, *dark;
	float *image; /* [height][width]: light on the frame that is made */
};

static const struct sl_option options[] = {
	SL_U32(struct camera, width, 512, 8, 16384, "pixels", "of the image"),
	SL_U32(struct camera, height, 512, 8, 16384, "pixels", "of the image"),
	SL_U32(struct camera, bits, 8, 8, 16, "bits",
	       "of a pixel: up to 8 are sent as one byte, more as two"),
	SL_U32(struct camera, droplets, 3, 0, 100, "droplets",
	       "that fly about; not all are in the image all the time"),
	SL_F64(struct camera, radius, 0.04, 0.001, 0.5, "",
	       "of a middling droplet, as a share of the image's smaller side"),
	SL_F64(struct camera, noise, 0.01, 0, 1, "",
	       "RMS read noise, as a share of the full scale"),
	SL_U32(struct camera, pool, 31, 1, 4096, "frames",
	       "different frames of each kind, then they repeat; a prime that does not divide the "
	       "number of slots"),
	SL_OPTION_END};

/* Row and column of the image, modules one below the other; brightness: what the droplet adds, as a
 * share of the full scale, or takes away of what is there. */
static const struct sl_truth_column columns[] = {
	{"row", "pixel"},    {"column", "pixel"}, {"module", ""},
	{"radius", "pixel"}, {"brightness", ""},  {NULL, NULL},
};

static double square(double x)
{
	return x * x;
}

static double smaller_side(const struct camera *c)
{
	return c->width < c->height ? c->width : c->height;
}

/* Smooth noise in -1 to 1: random values on a grid of `size` pixels, blended between. */
static double grain(uint64_t key, double row, double column, double size)
{
	double y = row / size, x = column / size, value[4];
	uint64_t r = (uint64_t)y, k = (uint64_t)x;

	y -= (double)r;
	x -= (double)k;
	y = y * y * (3 - 2 * y);
	x = x * x * (3 - 2 * x);
	for (unsigned i = 0; i < 4; i++)
		value[i] = 2 * sl_uniform(sl_draw(sl_key(key, r + i / 2), k + i % 2)) - 1;
	return (value[0] * (1 - x) + value[1] * x) * (1 - y) +
	       (value[2] * (1 - x) + value[3] * x) * y;
}

/* The beam's profile, wider than high, with grain of three sizes and a few scratches. */
static double illumination(const struct camera *c, uint64_t key, uint32_t row, uint32_t column)
{
	double side = smaller_side(c);
	double y = (row + 0.5 - c->height / 2.0) / (0.55 * c->height);
	double x = (column + 0.5 - c->width / 2.0) / (0.75 * c->width);
	double shape = sl_exp(-square(x) - square(y)), texture = 1;

	texture += 0.10 * grain(key, row, column, side / 6);
	texture += 0.06 * grain(key + 1, row, column, side / 24);
	texture += 0.03 * grain(key + 2, row, column, 2.5);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t bits = sl_draw(key, i);
		double slope = (double)(bits % 200) / 100 - 1;
		double at = (double)(bits >> 16 & 0xffff) / 65536 * c->height;
		double off = row - at - slope * (column - c->width / 2.0);

		if (off * off < 1)
			texture -= 0.12 * (1 - off * off);
	}
	return shape * texture;
}

static void fill_tables(struct camera *c)
{
	uint64_t pixels = (uint64_t)c->width * c->height;

	sl_normal_fill(c->normal);
	for (uint64_t i = 0; i < c->modules * pixels; i++) {
		uint64_t key = sl_key(sl_key(c->seed, KEY_GRAIN), i / pixels);
		uint32_t row = (uint32_t)(i % pixels / c->width);
		uint32_t column = (uint32_t)(i % pixels % c->width);
		float x = c->normal[sl_draw(sl_key(c->seed, KEY_GAIN), i) >> 48];
		float y = c->normal[sl_draw(sl_key(c->seed, KEY_OFFSET), i) >> 48];

		c->light[i] = beam * (float)illumination(c, key, row, column) * (1 + 0.015f * x);
		c->dark[i] = offset * (1 + 0.1f * y);
	}
}

static int open_camera(void *state, const struct sl_detector_options *run,
		       struct sl_geometry *geometry)
{
	struct camera *c = state;
	uint64_t pixels = (uint64_t)c->width * c->height;

	c->modules = run->modules;
	c->seed = run->seed;
	c->period_ns = sl_detector_period_ns(run);
	*geometry = (struct sl_geometry){
		.detector = "camera",
		.modules = c->modules,
		.rows = c->height,
		.columns = c->width,
		.dtype = c->bits <= 8 ? SL_U8 : SL_U16,
		.bit_depth = c->bits,
		.module_bytes = pixels * (c->bits <= 8 ? 1 : 2),
		.pixel_size_m = 10e-6,
	};
	c->normal = calloc(SL_NORMAL_ENTRIES, sizeof(*c->normal));
	c->light = calloc(c->modules * pixels, sizeof(*c->light));
	c->dark = calloc(c->modules * pixels, sizeof(*c->dark));
	c->image = calloc(pixels, sizeof(*c->image));
	if (!c->normal || !c->light || !c->dark || !c->image ||
	    sl_frame_cache_open(&c->cache, c->pool, c->modules, geometry->module_bytes)) {
		sl_error("camera: no memory for %u images of %u x %u pixels", c->modules, c->width,
			 c->height);
		return -ENOMEM;
	}
	fill_tables(c);
	return 0;
}

static void close_camera(void *state)
{
	struct camera *c = state;

	sl_frame_cache_close(&c->cache);
	free(c->normal);
	free(c->light);
	free(c->dark);
	free(c->image);
}

struct droplet {
	double row, column, radius;
	float light; /* what it adds, or takes away: a share of the full scale */
};

/* Where it is in this frame of the pool. It comes in at one side and leaves at the other, and is
 * out of sight for a while. */
static struct droplet droplet_at(const struct camera *c, uint32_t module, uint32_t number,
				 uint32_t entry)
{
	uint64_t key = sl_key(sl_key(sl_key(c->seed, KEY_PATH), module), number);
	double u[5], way;
	struct droplet d;

	for (unsigned i = 0; i < 5; i++)
		u[i] = sl_uniform(sl_draw(key, i));
	way = (double)entry / c->pool + u[0];
	way = (way - (way >= 1)) * 1.6 - 0.3;
	if (u[4] < 0.5)
		way = 1 - way;
	d.radius = c->radius * smaller_side(c) * (0.5 + u[3]);
	d.column = way * c->width;
	d.row = (0.15 + 0.7 * u[1] + (way - 0.5) * (u[2] - 0.5) * 0.6) * c->height;
	d.light = number % 3 == 2 ? -0.7f : 0.35f + 0.1f * (float)u[4];
	return d;
}

/* Its middle is in the image. */
static bool is_seen(const struct camera *c, const struct droplet *d)
{
	return d->row >= 0 && d->row < c->height && d->column >= 0 && d->column < c->width;
}

/* 1 inside, 0 outside, with an edge a pixel wide; distance in radii. */
static float disk(double distance, double radius)
{
	double edge = (1 - distance) * radius + 0.5;

	return edge <= 0 ? 0 : edge >= 1 ? 1 : (float)edge;
}

static void add_droplet(const struct camera *c, const struct droplet *d, float *light)
{
	int64_t reach = (int64_t)d->radius + 3;
	int64_t row = (int64_t)(d->row + 1e5) - 100000,
		column = (int64_t)(d->column + 1e5) - 100000;

	for (int64_t r = row - reach; r <= row + reach; r++)
		for (int64_t k = column - reach; k <= column + reach; k++) {
			double y = (double)r + 0.5 - d->row, x = (double)k + 0.5 - d->column;
			double glint = square(y / d->radius + 0.35) + square(x / d->radius + 0.3);
			float *at = light + r * c->width + k, inside;

			if (r < 0 || r >= c->height || k < 0 || k >= c->width)
				continue;
			inside = disk(__builtin_sqrt(square(y) + square(x)) / d->radius, d->radius);
			if (d->light < 0)
				*at *= 1 + d->light * inside;
			else
				*at += d->light * inside;
			*at += 0.25f * inside * (float)sl_exp(-glint * 12);
		}
}

static void light_up(struct camera *c, uint32_t entry, uint32_t module)
{
	size_t pixels = (size_t)c->width * c->height;

	memcpy(c->image, c->light + module * pixels, pixels * sizeof(*c->image));
	for (uint32_t n = 0; n < c->droplets; n++) {
		struct droplet d = droplet_at(c, module, n, entry);

		add_droplet(c, &d, c->image);
	}
}

static void make(void *arg, uint32_t entry, uint32_t module, bool dark, void *block)
{
	struct camera *c = arg;
	uint64_t key = sl_key(sl_key(sl_key(c->seed, dark ? KEY_DARK : KEY_BRIGHT), entry), module);
	size_t pixels = (size_t)c->width * c->height;
	const float *offsets = c->dark + module * pixels;
	/* A full well of 20,000 electrons: photon noise by the square root of the light. */
	const float noise = (float)c->noise, well = 1 / 20000.f,
		    full = (float)((1u << c->bits) - 1);

	if (dark)
		memset(c->image, 0, pixels * sizeof(*c->image));
	else
		light_up(c, entry, module);
	for (size_t i = 0; i < pixels; i++) {
		uint64_t bits = sl_draw(key, i);
		float x = (offsets[i] + c->image[i] + noise * c->normal[bits & 0xffff] +
			   __builtin_sqrtf(c->image[i] * well) * c->normal[bits >> 48]) *
				  full +
			  0.5f;

		x = x < 0 ? 0 : x > full ? full : x;
		if (c->bits <= 8)
			((uint8_t *)block)[i] = (uint8_t)x;
		else
			((uint16_t *)block)[i] = (uint16_t)x;
	}
}

static int render(void *state, uint64_t frame, uint32_t module, uint32_t flags, void *buffer,
		  const void **pixels)
{
	struct camera *c = state;

	return sl_frame_cache_get(&c->cache, frame, module, flags & SL_RECORD_DARK, make, c,
				  pixels);
}

static int prepare(void *state)
{
	struct camera *c = state;

	return sl_frame_cache_fill(&c->cache, make, c, "camera");
}

static uint32_t truth_rows(void *state, uint64_t frame, uint32_t flags, double *table,
			   uint32_t most)
{
	struct camera *c = state;
	uint32_t rows = 0;

	for (uint32_t i = 0; !(flags & SL_RECORD_DARK) && i < c->modules * c->droplets; i++) {
		uint32_t module = i / c->droplets;
		struct droplet d =
			droplet_at(c, module, i % c->droplets, (uint32_t)(frame % c->pool));
		const double row[] = {d.row + (double)module * c->height, d.column, module,
				      d.radius, d.light};

		if (!is_seen(c, &d))
			continue;
		if (rows++ < most)
			table = (double *)mempcpy(table, row, sizeof(row));
	}
	return rows;
}

static void truth(void *state, uint64_t frame, uint32_t flags, struct sl_truth *truth)
{
	uint32_t rows = truth_rows(state, frame, flags, NULL, 0);

	*truth = (struct sl_truth){.hit = rows > 0, .spots = rows};
}

static uint64_t timestamp(void *state, uint64_t frame)
{
	return frame * ((struct camera *)state)->period_ns;
}

static uint32_t repeats_after(const void *state)
{
	return ((const struct camera *)state)->pool;
}

const struct sl_detector sl_detector_camera = {
	.name = "camera",
	.doc = "an image of any size in 8 to 16 bits: droplets that fly through a beam of light",
	.state_bytes = sizeof(struct camera),
	.options = options,
	.rate_Hz = 5000,
	.truth_columns = columns,
	.open = open_camera,
	.close = close_camera,
	.render = render,
	.prepare = prepare,
	.truth = truth,
	.truth_rows = truth_rows,
	.timestamp = timestamp,
	.parallel = 1,
	.repeats_after = repeats_after,
};
