/* eiger.c - a counting photon detector: modules of 512 x 1024 pixels of 75 um, from one (500K) to 2
 * (1M), 8 (4M), 18 (9M) and 32 (16M), laid out as real ones are (places.c).
 *
 * A raw pixel is a number of photons, of 4, 8, 12, 16 or 32 bits; what does not fit is the highest
 * number. With 4 bits it has a byte of its own here, with 12 two bytes: PSI's links pack them.
 * There are no pedestals and no gains: an image is ready as it comes. Pixels at the edges of the
 * chips are wide and collect two or four times as much. A dark frame has a count here and there. A
 * few pixels are dead, and as many are noisy.
 *
 * On the wire a module is two half-modules of 256 rows, each with two ports of 256 rows by 512
 * columns: that is the link's business, a block here is the whole module.
 *
 * Threads: as detector.h says. Cost: a module's pixels per rendered frame, about 2 ms each. */
#include <errno.h>
#include <stdlib.h>

#include <sluice/detector.h>

#include "base/log.h"
#include "detector/frame_cache.h"
#include "detector/places.h"
#include "detector/scene/scene.h"

enum { ROWS = 512, COLUMNS = 1024, PIXELS = ROWS * COLUMNS };

/* Keys of the things that are drawn. */
enum { KEY_BRIGHT = 301, KEY_DARK, KEY_SPOTS, KEY_BAD, KEY_NOISE };

static const struct {
	enum sl_dtype dtype;
	uint32_t bits;
} formats[] = {{SL_U8, 4}, {SL_U8, 8}, {SL_U16, 12}, {SL_U16, 16}, {SL_U32, 32}};

struct eiger {
	struct sl_scene_options options; /* first: see scene.h */
	uint32_t bits, bad_pixels;	 /* bits: index into the choices */

	uint64_t seed, period_ns;
	struct sl_geometry geometry;
	struct sl_scene scene;
	struct sl_frame_cache cache;
	float *normal;			   /* [SL_NORMAL_ENTRIES] */
	uint32_t *counts;		   /* [PIXELS], between uses free */
	float *spot_mean;		   /* [PIXELS], 0 between uses */
	uint32_t *spot_pixel, spot_pixels; /* those that are not 0 */
};

static const struct sl_option options[] = {
	SL_SCENE_ROWS,
	SL_CHOICE(struct eiger, bits, 16, "4|8|12|16|32", "bits of a pixel's counter"),
	SL_U32(struct eiger, bad_pixels, 24, 0, 4096, "pixels",
	       "dead or noisy pixels of each module, half of them each"),
	SL_OPTION_END};

static void describe(struct eiger *e, uint32_t modules)
{
	e->geometry = (struct sl_geometry){
		.detector = "eiger",
		.modules = modules,
		.rows = ROWS,
		.columns = COLUMNS,
		.dtype = formats[e->bits].dtype,
		.bit_depth = formats[e->bits].bits,
		.module_bytes = PIXELS * (uint64_t)sl_dtype_bytes(formats[e->bits].dtype),
		.pixel_size_m = 75e-6,
		.sensor_thickness_m = 320e-6,
		.sensor_material = "Si",
	};
	sl_places_fill(&sl_places_eiger, &e->geometry);
}

static int allocate(struct eiger *e)
{
	e->normal = calloc(SL_NORMAL_ENTRIES, sizeof(*e->normal));
	e->counts = calloc(PIXELS, sizeof(*e->counts));
	e->spot_mean = calloc(PIXELS, sizeof(*e->spot_mean));
	e->spot_pixel = calloc(PIXELS, sizeof(*e->spot_pixel));
	if (!e->normal || !e->counts || !e->spot_mean || !e->spot_pixel)
		return -ENOMEM;
	return sl_frame_cache_open(&e->cache, e->options.pool, e->geometry.modules,
				   e->geometry.module_bytes);
}

static int open_eiger(void *state, const struct sl_detector_options *run,
		      struct sl_geometry *geometry)
{
	struct eiger *e = state;
	int err;

	e->seed = run->seed;
	e->period_ns = sl_detector_period_ns(run);
	describe(e, run->modules);
	err = allocate(e);
	if (!err)
		err = sl_scene_open(&e->options, e->seed, &e->geometry, &e->scene);
	if (err == -ENOMEM)
		sl_error("eiger: no memory for %u modules", run->modules);
	if (err)
		return err;
	sl_normal_fill(e->normal);
	*geometry = e->geometry;
	return 0;
}

static void close_eiger(void *state)
{
	struct eiger *e = state;

	sl_scene_close(&e->scene);
	sl_frame_cache_close(&e->cache);
	free(e->normal);
	free(e->counts);
	free(e->spot_mean);
	free(e->spot_pixel);
}

static void touch(void *arg, uint32_t pixel)
{
	struct eiger *e = arg;

	e->spot_pixel[e->spot_pixels++] = pixel;
}

static void count_photons(struct eiger *e, uint32_t entry, uint32_t module, uint64_t key)
{
	uint64_t spot_key = sl_key(key, KEY_SPOTS);
	size_t base = (size_t)module * PIXELS;

	for (uint32_t i = 0; i < PIXELS; i++)
		e->counts[i] = sl_scene_draw(&e->scene, base + i, sl_draw(key, i));
	e->spot_pixels = 0;
	sl_scene_spots(&e->scene, entry, module, e->spot_mean, touch, e);
	for (uint32_t n = 0; n < e->spot_pixels; n++) {
		uint32_t i = e->spot_pixel[n];
		double more = sl_poisson_any(e->spot_mean[i], sl_draw(spot_key, i), e->normal);

		e->counts[i] += more < 2e9 ? (uint32_t)more : 2000000000u;
		e->spot_mean[i] = 0;
	}
}

/* Thresholds are high above the noise: one pixel in ten thousand counts something. */
static void count_noise(struct eiger *e, uint64_t key)
{
	for (uint32_t i = 0; i < PIXELS; i++)
		e->counts[i] = sl_draw(key, i) % 10007 == 0;
}

static void set_bad(struct eiger *e, uint32_t module, uint64_t key)
{
	uint64_t bad_key = sl_key(sl_key(e->seed, KEY_BAD), module);

	for (uint32_t i = 0; i < e->bad_pixels; i++) {
		uint32_t pixel = (uint32_t)(sl_draw(bad_key, i) % PIXELS);

		e->counts[pixel] = i % 2 ? 0
					 : (uint32_t)(sl_draw(sl_key(key, KEY_NOISE), i) % 100000);
	}
}

static void write_counts(const struct eiger *e, void *block)
{
	uint32_t most = UINT32_MAX >> (32 - e->geometry.bit_depth);

	switch (e->geometry.dtype) {
	case SL_U8:
		for (uint32_t i = 0; i < PIXELS; i++)
			((uint8_t *)block)[i] =
				(uint8_t)(e->counts[i] < most ? e->counts[i] : most);
		break;
	case SL_U16:
		for (uint32_t i = 0; i < PIXELS; i++)
			((uint16_t *)block)[i] =
				(uint16_t)(e->counts[i] < most ? e->counts[i] : most);
		break;
	default:
		for (uint32_t i = 0; i < PIXELS; i++)
			((uint32_t *)block)[i] = e->counts[i];
		break;
	}
}

static void make(void *arg, uint32_t entry, uint32_t module, bool dark, void *block)
{
	struct eiger *e = arg;
	uint64_t key = sl_key(sl_key(sl_key(e->seed, dark ? KEY_DARK : KEY_BRIGHT), entry), module);

	if (dark)
		count_noise(e, key);
	else
		count_photons(e, entry, module, key);
	set_bad(e, module, key);
	write_counts(e, block);
}

static int render(void *state, uint64_t frame, uint32_t module, uint32_t flags, void *buffer,
		  const void **pixels)
{
	struct eiger *e = state;

	return sl_frame_cache_get(&e->cache, frame, module, flags & SL_RECORD_DARK, make, e,
				  pixels);
}

static int prepare(void *state)
{
	struct eiger *e = state;

	return sl_frame_cache_fill(&e->cache, make, e, "eiger");
}

static void truth(void *state, uint64_t frame, uint32_t flags, struct sl_truth *truth)
{
	struct eiger *e = state;

	if (flags & SL_RECORD_DARK)
		*truth = (struct sl_truth){.hit = false};
	else
		sl_scene_truth(&e->scene, (uint32_t)(frame % e->options.pool), truth);
}

static uint32_t truth_rows(void *state, uint64_t frame, uint32_t flags, double *table,
			   uint32_t most)
{
	struct eiger *e = state;

	if (flags & SL_RECORD_DARK)
		return 0;
	return sl_scene_truth_rows(&e->scene, (uint32_t)(frame % e->options.pool), table, most);
}

static uint64_t timestamp(void *state, uint64_t frame)
{
	return frame * ((struct eiger *)state)->period_ns;
}

static uint32_t repeats_after(const void *state)
{
	return ((const struct eiger *)state)->options.pool;
}

const struct sl_detector sl_detector_eiger = {
	.name = "eiger",
	.doc = "512 x 1024 pixel modules that count photons in 4, 8, 12, 16 or 32 bits, up to "
	       "16M and more: a crystal's diffraction",
	.state_bytes = sizeof(struct eiger),
	.options = options,
	.rate_Hz = 750,
	.truth_columns = sl_scene_columns,
	.open = open_eiger,
	.close = close_eiger,
	.render = render,
	.prepare = prepare,
	.truth = truth,
	.truth_rows = truth_rows,
	.timestamp = timestamp,
	.parallel = 1,
	.repeats_after = repeats_after,
};
