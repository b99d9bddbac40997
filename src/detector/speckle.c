/* speckle.c - coherent light, scattered by particles that diffuse: speckles whose correlation in
 * time is known, for photon correlation (stage `correlate`).
 *
 * The field in a pixel is a sum of WAVES plane waves with random phases, each with a frequency of
 * its own out of a Lorentz distribution. Its mean correlation is an exponential, so that
 *
 *   g2(lag) = 1 + (1 - 1 / WAVES) exp(-lag / correlation_frames)
 *
 * of the intensity, and of the photons, which are drawn from it, for every lag but 0. There photons
 * add 1 / mean. With decay: diffusion the time goes with the inverse square of the distance from
 * the beam, and is correlation_frames at a quarter of the image's smaller side.
 *
 * Threads: as detector.h says. Cost: 64 bytes of tables and about 60 ns a pixel. Nothing is kept:
 * frames do not repeat. */
#include <errno.h>
#include <stdlib.h>

#include <sluice/detector.h>
#include <sluice/random.h>

#include "base/log.h"
#include "detector/trig.h"

enum { WAVES = 8, COSINE_BITS = 12, COSINES = 1 << COSINE_BITS };
enum { KEY_PHASE = 601, KEY_FREQUENCY, KEY_PHOTONS, KEY_DARK };
enum { DECAY_FLAT, DECAY_DIFFUSION }; /* the choices of `decay` */

static const double dark_counts = 0.01;

struct wave {
	uint32_t phase, step; /* in 2^-32 turns: at frame 0, and from each to the next */
};

struct speckle {
	uint32_t rows, columns, decay;
	double photons, correlation_frames;

	uint32_t modules, pixels;
	uint64_t seed, period_ns;
	struct wave *wave; /* [modules][pixels][WAVES] */
	float *cosine;	   /* [COSINES], of a turn */
	float *normal;	   /* [SL_NORMAL_ENTRIES] */
};

static const struct sl_option options[] = {
	SL_U32(struct speckle, rows, 128, 1, 4096, "pixels", "height of a module"),
	SL_U32(struct speckle, columns, 128, 1, 4096, "pixels", "width of a module"),
	SL_F64(struct speckle, photons, 1, 0.0001, 1000, "photons", "mean of a pixel"),
	SL_F64(struct speckle, correlation_frames, 20, 0.1, 1e9, "frames",
	       "in which g2 - 1 falls to 1/e"),
	SL_CHOICE(struct speckle, decay, flat, "flat|diffusion",
		  "the same everywhere; or faster the farther from the beam, as of particles that "
		  "diffuse: the time is that at a quarter of the image's smaller side"),
	SL_OPTION_END};

static double correlation_at(const struct speckle *s, const struct sl_geometry *g, uint32_t module,
			     uint32_t pixel)
{
	double side = g->layout.rows < g->layout.columns ? g->layout.rows : g->layout.columns;
	double row, column, square;

	if (s->decay == DECAY_FLAT)
		return s->correlation_frames;
	sl_layout_centre(g, module, pixel, &row, &column);
	row -= g->layout.beam_row;
	column -= g->layout.beam_column;
	square = row * row + column * column;
	return s->correlation_frames * side * side / 16 / (square > 0.25 ? square : 0.25);
}

static uint32_t turns(double turns)
{
	double whole = __builtin_floor(turns);

	/* The difference can be rounded up to a whole turn: it wraps to 0. */
	return (uint32_t)(uint64_t)((turns - whole) * 0x1p32);
}

static void fill_waves(struct speckle *s, const struct sl_geometry *g)
{
	uint64_t phases = sl_key(s->seed, KEY_PHASE), steps = sl_key(s->seed, KEY_FREQUENCY);

	for (uint64_t i = 0; i < (uint64_t)s->modules * s->pixels; i++) {
		double frames =
			correlation_at(s, g, (uint32_t)(i / s->pixels), (uint32_t)(i % s->pixels));

		for (uint64_t k = i * WAVES; k < (i + 1) * WAVES; k++) {
			double cosine, sine;

			/* Half a turn of the uniform angle has one tangent of each value. */
			sl_cos_sin(sl_uniform(sl_draw(steps, k)) / 2 - 0.25, &cosine, &sine);
			s->wave[k].step = turns(sine / cosine / (2 * frames) / 6.283185307179586);
			s->wave[k].phase = (uint32_t)(sl_draw(phases, k) >> 32);
		}
	}
}

static void describe(const struct speckle *s, struct sl_geometry *geometry)
{
	*geometry = (struct sl_geometry){
		.detector = "speckle",
		.modules = s->modules,
		.rows = s->rows,
		.columns = s->columns,
		.dtype = SL_U16,
		.bit_depth = 16,
		.module_bytes = s->pixels * UINT64_C(2),
		.pixel_size_m = 75e-6,
		.distance_m = 5,
		.photon_energy_keV = 8,
	};
}

static int open_speckle(void *state, const struct sl_detector_options *run,
			struct sl_geometry *geometry)
{
	struct speckle *s = state;
	struct sl_geometry resolved;

	s->modules = run->modules;
	s->pixels = s->rows * s->columns;
	s->seed = run->seed;
	s->period_ns = sl_detector_period_ns(run);
	describe(s, geometry);
	s->wave = calloc((size_t)s->modules * s->pixels * WAVES, sizeof(*s->wave));
	s->cosine = calloc(COSINES, sizeof(*s->cosine));
	s->normal = calloc(SL_NORMAL_ENTRIES, sizeof(*s->normal));
	if (!s->wave || !s->cosine || !s->normal) {
		sl_error("speckle: no memory for %u modules of %u x %u pixels", s->modules, s->rows,
			 s->columns);
		return -ENOMEM;
	}
	sl_normal_fill(s->normal);
	for (uint32_t i = 0; i < COSINES; i++) {
		double cosine, sine;

		sl_cos_sin((i + 0.5) / COSINES, &cosine, &sine);
		s->cosine[i] = (float)cosine;
	}
	resolved = *geometry;
	sl_layout_resolve(geometry, &resolved.layout);
	fill_waves(s, &resolved);
	return 0;
}

static void close_speckle(void *state)
{
	struct speckle *s = state;

	free(s->wave);
	free(s->cosine);
	free(s->normal);
}

/* Its mean over all phases is 1. */
static double intensity(const struct speckle *s, const struct wave *wave, uint32_t frame)
{
	float real = 0, imaginary = 0;

	for (int k = 0; k < WAVES; k++) {
		uint32_t phase = wave[k].phase + wave[k].step * frame;

		real += s->cosine[phase >> (32 - COSINE_BITS)];
		imaginary += s->cosine[(phase - (1u << 30)) >> (32 - COSINE_BITS)];
	}
	return ((double)real * real + (double)imaginary * imaginary) / WAVES;
}

static int render(void *state, uint64_t frame, uint32_t module, uint32_t flags, void *buffer,
		  const void **pixels)
{
	const struct speckle *s = state;
	bool dark = flags & SL_RECORD_DARK;
	uint16_t *count = buffer;
	uint64_t key;

	if (module >= s->modules)
		return -EINVAL;
	key = sl_key(sl_key(sl_key(s->seed, dark ? KEY_DARK : KEY_PHOTONS), frame), module);
	for (uint32_t i = 0; i < s->pixels; i++) {
		const struct wave *wave = s->wave + ((size_t)module * s->pixels + i) * WAVES;
		double mean = dark ? dark_counts : s->photons * intensity(s, wave, (uint32_t)frame);
		double n = sl_poisson_any(mean, sl_draw(key, i), s->normal);

		count[i] = (uint16_t)(n < UINT16_MAX - 1 ? n : UINT16_MAX - 1);
	}
	*pixels = buffer;
	return 0;
}

static void truth(void *state, uint64_t frame, uint32_t flags, struct sl_truth *truth)
{
	*truth = (struct sl_truth){.hit = false};
}

static uint64_t timestamp(void *state, uint64_t frame)
{
	return frame * ((struct speckle *)state)->period_ns;
}

const struct sl_detector sl_detector_speckle = {
	.name = "speckle",
	.doc = "photons of coherent light from particles that diffuse: speckles with a known "
	       "correlation in time",
	.state_bytes = sizeof(struct speckle),
	.options = options,
	.rate_Hz = 2000,
	.open = open_speckle,
	.close = close_speckle,
	.render = render,
	.truth = truth,
	.timestamp = timestamp,
	.parallel = 1,
};
