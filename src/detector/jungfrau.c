/* jungfrau.c - an adaptive-gain photon detector: modules of 512 x 1024 pixels of 75 um.
 *
 * A raw pixel is gain << 14 | ADU. A pixel starts in G0 (41 ADU per keV) and switches to G1, then
 * G2, whose ADU fall with charge, when it has too much of it; beyond G2 it reads 0xc000. Pedestals,
 * gains and noise are spread as on real modules at 12.4 keV; a few pixels are stuck or dead.
 *
 * There are `pool` different bright frames and as many dark ones, rendered when first asked for (or
 * all ahead, by prepare()): frame k is number k % pool of its kind. With a pool length that is
 * prime and larger than usual slot counts, what a slot held a lap ago is never what it should hold
 * now.
 *
 * Hits and blanks: with the defaults a blank has about 0.5 background photons per pixel, 1.1 at
 * most near the beam, where one pixel in 4 million has ten or more: a few per frame even with 64
 * modules. A hit has 30 spots or more, each with at least 15 expected photons in its middle and
 * most with far more: hundreds of pixels have ten or more. The default veto (20 pixels of at least
 * 10 photons) lies far from both.
 *
 * Threads: as detector.h says. Cost: 1 MiB per module and rendered frame, 2-4 ms each. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "detector/run.h"
#include "detector/scene.h"

enum { ROWS = 512, COLUMNS = 1024, PIXELS = ROWS * COLUMNS, GAINS = 3, ADU_MAX = 0x3fff };

/* A pixel changes gain where the comparators of real ones do, well inside the range of the ADC. */
enum { SWITCH_G0_ADU = 14000, SWITCH_G1_ADU = 1500 };

enum { RAW_OVERLOAD = 0xc000, RAW_STUCK_HIGH = 0xffff, RAW_STUCK_LOW = 0x4000 };

/* Keys of the things that are drawn. */
enum { KEY_PEDESTAL = 1, KEY_GAIN = 11, KEY_STUCK = 21, KEY_BRIGHT, KEY_DARK, KEY_SPOTS };

/* Median and spread below and above it (from the 1st and 99th percentile), ADU; gains in ADU per
 * keV: measured on real modules. */
static const struct {
	uint16_t code;
	float pedestal, below, above, gain, gain_spread;
} characters[GAINS] = {
	{0, 2446, 233, 269, 41.0f, 0.015f},
	{1, 13584, 138, 155, -1.439f, 0.015f},
	{3, 14100, 156, 168, -0.1145f, 0.02f},
};

/* G1 and G2 are quieter than G0, in ADU. */
static const float gain_noise[GAINS] = {1, 0.25f, 0.25f};

struct stuck {
	uint32_t pixel;
	uint16_t raw; /* 0: answers, but not to light */
};

struct jungfrau {
	double photon_energy_keV, hit_fraction, spots, spot_photons, background_photons, noise_ADU;
	double distance_m, resolution_A;
	uint32_t pool, bad_pixels;

	uint32_t modules;
	uint64_t seed, period_ns;
	struct sl_scene scene;
	float *normal;			      /* [SL_NORMAL_ENTRIES] */
	float *pedestal[GAINS], *gain[GAINS]; /* [modules][PIXELS] */
	struct stuck *stuck;		      /* [modules][bad_pixels] */
	uint16_t **bright, **dark;	      /* [pool][modules]; NULL: not rendered yet */
	float *spot_mean;		      /* [PIXELS], 0 between uses */
	uint32_t *spot_pixel, spot_pixels;    /* those that are not 0 */
};

static const struct sl_option options[] = {
	SL_F64(struct jungfrau, photon_energy_keV, 12.4, 1, 100, "keV", "energy of a photon"),
	SL_F64(struct jungfrau, hit_fraction, 0.05, 0, 1, "",
	       "share of the bright frames that have spots; one in the pool at least, unless 0"),
	SL_F64(struct jungfrau, spots, 60, 1, 100000, "spots",
	       "mean number of spots of a hit, over all modules"),
	SL_F64(struct jungfrau, spot_photons, 300, 1, 1e6, "photons",
	       "in the brightest pixel of a bright spot; a few have forty times as many"),
	SL_F64(struct jungfrau, background_photons, 0.5, 0, 20, "photons",
	       "mean background of a pixel"),
	SL_F64(struct jungfrau, noise_ADU, 23.9, 0, 1000, "ADU", "RMS noise of a pixel in G0"),
	SL_F64(struct jungfrau, distance_m, 0.1, 0.01, 100, "m", "from sample to detector"),
	SL_F64(struct jungfrau, resolution_A, 2, 0.1, 1000, "Angstrom",
	       "no spots beyond this resolution"),
	SL_U32(struct jungfrau, pool, 31, 1, 4096, "frames",
	       "different frames of each kind, then they repeat; a prime that does not divide the "
	       "number of slots"),
	SL_U32(struct jungfrau, bad_pixels, 24, 0, 4096, "pixels",
	       "stuck or dead pixels of each module"),
	SL_OPTION_END};

/* One plane of pedestals or gains, spread about its median. */
static void fill_plane(const struct jungfrau *j, uint64_t key, float median, float below,
		       float above, float *plane)
{
	for (uint64_t i = 0; i < (uint64_t)j->modules * PIXELS; i++) {
		float x = j->normal[sl_draw(key, i) >> 48];

		plane[i] = median + x * (x < 0 ? below : above);
	}
}

static void choose_bad_pixels(struct jungfrau *j)
{
	static const uint16_t kinds[] = {RAW_STUCK_HIGH, RAW_STUCK_LOW, 0};
	uint64_t key = sl_key(j->seed, KEY_STUCK);

	for (uint64_t i = 0; i < (uint64_t)j->modules * j->bad_pixels; i++) {
		uint64_t module = i / j->bad_pixels;
		uint32_t pixel = (uint32_t)(sl_draw(key, i) % PIXELS);

		j->stuck[i] = (struct stuck){pixel, kinds[i % 3]};
		if (!j->stuck[i].raw)
			for (int g = 0; g < GAINS; g++)
				j->gain[g][module * PIXELS + pixel] = 0;
	}
}

static void fill_tables(struct jungfrau *j)
{
	sl_normal_fill(j->normal);
	for (int g = 0; g < GAINS; g++) {
		float spread = characters[g].gain * characters[g].gain_spread;

		fill_plane(j, sl_key(j->seed, KEY_PEDESTAL + g), characters[g].pedestal,
			   characters[g].below, characters[g].above, j->pedestal[g]);
		fill_plane(j, sl_key(j->seed, KEY_GAIN + g), characters[g].gain, spread, spread,
			   j->gain[g]);
	}
	choose_bad_pixels(j);
}

static int allocate(struct jungfrau *j)
{
	size_t pixels = (size_t)j->modules * PIXELS, entries = (size_t)j->pool * j->modules;
	bool complete;

	j->normal = calloc(SL_NORMAL_ENTRIES, sizeof(*j->normal));
	j->stuck = calloc((size_t)j->modules * j->bad_pixels + 1, sizeof(*j->stuck));
	j->bright = calloc(entries, sizeof(*j->bright));
	j->dark = calloc(entries, sizeof(*j->dark));
	j->spot_mean = calloc(PIXELS, sizeof(*j->spot_mean));
	j->spot_pixel = calloc(PIXELS, sizeof(*j->spot_pixel));
	complete = j->normal && j->stuck && j->bright && j->dark && j->spot_mean && j->spot_pixel;
	for (int g = 0; g < GAINS; g++) {
		j->pedestal[g] = calloc(pixels, sizeof(float));
		j->gain[g] = calloc(pixels, sizeof(float));
		complete = complete && j->pedestal[g] && j->gain[g];
	}
	if (!complete)
		sl_error("jungfrau: no memory for the tables of %u modules", j->modules);
	return complete ? 0 : -ENOMEM;
}

static void describe(const struct jungfrau *j, struct sl_geometry *geometry)
{
	*geometry = (struct sl_geometry){
		.detector = "jungfrau",
		.modules = j->modules,
		.rows = ROWS,
		.columns = COLUMNS,
		.dtype = SL_U16,
		.bit_depth = 16,
		.module_bytes = PIXELS * sizeof(uint16_t),
		.pixel_size_m = 75e-6,
		.sensor_thickness_m = 320e-6,
		.distance_m = j->distance_m,
		.sensor_material = "Si",
		.photon_energy_keV = j->photon_energy_keV,
	};
}

static int open_jungfrau(void *state, const struct sl_detector_run *run,
			 struct sl_geometry *geometry)
{
	struct jungfrau *j = state;
	struct sl_scene_setup setup = {
		.seed = run->seed,
		.modules = run->modules,
		.rows = ROWS,
		.columns = COLUMNS,
		.pool = j->pool,
		.photon_energy_keV = j->photon_energy_keV,
		.distance_m = j->distance_m,
		.pixel_size_m = 75e-6,
		.resolution_A = j->resolution_A,
		.hit_fraction = j->hit_fraction,
		.spots = j->spots,
		.spot_photons = j->spot_photons,
		.background_photons = j->background_photons,
	};
	int err;

	j->modules = run->modules;
	j->seed = run->seed;
	j->period_ns = sl_detector_period_ns(run);
	err = allocate(j);
	if (!err)
		err = sl_scene_open(&setup, &j->scene);
	if (err)
		return err;
	fill_tables(j);
	describe(j, geometry);
	return 0;
}

static void close_jungfrau(void *state)
{
	struct jungfrau *j = state;

	for (size_t i = 0; i < (size_t)j->pool * j->modules; i++) {
		if (j->bright)
			free(j->bright[i]);
		if (j->dark)
			free(j->dark[i]);
	}
	for (int g = 0; g < GAINS; g++) {
		free(j->pedestal[g]);
		free(j->gain[g]);
	}
	sl_scene_close(&j->scene);
	free(j->normal);
	free(j->stuck);
	free(j->bright);
	free(j->dark);
	free(j->spot_mean);
	free(j->spot_pixel);
}

/* What the pixel reads for that many photons: the first gain that holds them. noise: in units of
 * its RMS. */
static uint16_t digitise(const struct jungfrau *j, size_t pixel, double photons, float noise)
{
	double energy = photons * j->photon_energy_keV;
	double adu[GAINS];
	int g = 0;

	for (int i = 0; i < GAINS; i++)
		adu[i] = j->pedestal[i][pixel] + energy * j->gain[i][pixel] +
			 j->noise_ADU * gain_noise[i] * noise + 0.5;
	if (adu[0] >= SWITCH_G0_ADU)
		g = adu[1] > SWITCH_G1_ADU ? 1 : 2;
	if (g == 2 && adu[2] < 1)
		return RAW_OVERLOAD;
	if (adu[g] < 0)
		return (uint16_t)(characters[g].code << 14);
	/* The last code of G2 means something else: stay below it. */
	if (adu[g] > ADU_MAX - 1)
		adu[g] = ADU_MAX - 1;
	return (uint16_t)(characters[g].code << 14 | (uint16_t)adu[g]);
}

static void set_stuck(const struct jungfrau *j, uint32_t module, uint16_t *out)
{
	const struct stuck *stuck = &j->stuck[(size_t)module * j->bad_pixels];

	for (uint32_t i = 0; i < j->bad_pixels; i++)
		if (stuck[i].raw)
			out[stuck[i].pixel] = stuck[i].raw;
}

/* `module` is where its tables begin. 16 bits of a draw are the noise, 32 others the photons. */
static void render_dark(const struct jungfrau *j, uint32_t entry, uint32_t module, uint16_t *out)
{
	uint64_t key = sl_key(sl_key(sl_key(j->seed, KEY_DARK), entry), module);
	const float *pedestal = &j->pedestal[0][(size_t)module * PIXELS];
	const float noise = (float)j->noise_ADU;

	for (uint32_t i = 0; i < PIXELS; i++) {
		float adu = pedestal[i] + noise * j->normal[sl_draw(key, i) & 0xffff] + 0.5f;

		/* Noise alone never switches the gain; the ADC still ends somewhere. */
		adu = adu < 0 ? 0 : adu > ADU_MAX - 1 ? ADU_MAX - 1 : adu;
		out[i] = (uint16_t)adu;
	}
	set_stuck(j, module, out);
}

static void touch(void *arg, uint32_t pixel)
{
	struct jungfrau *j = arg;

	j->spot_pixel[j->spot_pixels++] = pixel;
}

/* Spots come on top of the background that the pixel has anyway: draw that again, add, digitise. */
static void add_spots(struct jungfrau *j, uint32_t entry, uint32_t module, uint64_t key,
		      uint16_t *out)
{
	uint64_t spot_key = sl_key(sl_key(sl_key(j->seed, KEY_SPOTS), entry), module);

	j->spot_pixels = 0;
	sl_scene_spots(&j->scene, entry, module, j->spot_mean, touch, j);
	for (uint32_t n = 0; n < j->spot_pixels; n++) {
		uint32_t i = j->spot_pixel[n];
		uint64_t bits = sl_draw(key, i);
		double photons = sl_poisson_draw(
			sl_scene_background(&j->scene, module, i / COLUMNS, i % COLUMNS),
			(uint32_t)(bits >> 32));

		photons += sl_poisson_any(j->spot_mean[i], sl_draw(spot_key, i), j->normal);
		out[i] =
			digitise(j, (size_t)module * PIXELS + i, photons, j->normal[bits & 0xffff]);
		j->spot_mean[i] = 0;
	}
}

static void render_bright(struct jungfrau *j, uint32_t entry, uint32_t module, uint16_t *out)
{
	uint64_t key = sl_key(sl_key(sl_key(j->seed, KEY_BRIGHT), entry), module);
	size_t base = (size_t)module * PIXELS;
	const float *pedestal = &j->pedestal[0][base], *gain = &j->gain[0][base];
	const float energy = (float)j->photon_energy_keV, noise = (float)j->noise_ADU;

	for (uint32_t i = 0; i < PIXELS;) {
		const struct sl_poisson *background =
			sl_scene_background(&j->scene, module, i / COLUMNS, i % COLUMNS);

		for (uint32_t end = i + SL_SCENE_SQUARE; i < end; i++) {
			uint64_t bits = sl_draw(key, i);
			float photons = (float)sl_poisson_draw(background, (uint32_t)(bits >> 32));
			float x = j->normal[bits & 0xffff];
			float adu = pedestal[i] + photons * energy * gain[i] + noise * x + 0.5f;

			/* Everything but an ordinary pixel in G0 goes the long way. */
			if (__builtin_expect(adu >= 0 && adu < SWITCH_G0_ADU, 1))
				out[i] = (uint16_t)adu;
			else
				out[i] = digitise(j, base + i, photons, x);
		}
	}
	add_spots(j, entry, module, key, out);
	set_stuck(j, module, out);
}

static int render(void *state, uint64_t frame, uint32_t module, uint32_t flags, void *buffer,
		  const void **pixels)
{
	struct jungfrau *j = state;
	bool is_dark = flags & SL_RECORD_DARK;
	uint32_t entry = (uint32_t)(frame % j->pool);
	uint16_t **out;

	if (module >= j->modules)
		return -EINVAL;
	out = &(is_dark ? j->dark : j->bright)[(size_t)entry * j->modules + module];
	if (!*out) {
		*out = malloc(PIXELS * sizeof(uint16_t));
		if (!*out)
			return -ENOMEM;
		if (is_dark)
			render_dark(j, entry, module, *out);
		else
			render_bright(j, entry, module, *out);
	}
	*pixels = *out;
	return 0;
}

static int prepare(void *state)
{
	struct jungfrau *j = state;
	const void *pixels;
	int err;

	for (uint32_t entry = 0; entry < j->pool; entry++)
		for (uint32_t module = 0; module < j->modules; module++) {
			err = render(j, entry, module, SL_RECORD_DARK, NULL, &pixels);
			if (!err)
				err = render(j, entry, module, 0, NULL, &pixels);
			if (err) {
				sl_error("jungfrau: no memory for a pool of %u frames of %u "
					 "modules; "
					 "set pool or modules lower",
					 j->pool, j->modules);
				return err;
			}
		}
	return 0;
}

static void truth(void *state, uint64_t frame, uint32_t flags, struct sl_truth *truth)
{
	struct jungfrau *j = state;

	if (flags & SL_RECORD_DARK)
		*truth = (struct sl_truth){.hit = false};
	else
		sl_scene_truth(&j->scene, (uint32_t)(frame % j->pool), truth);
}

static uint64_t timestamp(void *state, uint64_t frame)
{
	return frame * ((struct jungfrau *)state)->period_ns;
}

static int calibration(void *state, struct sl_calibration *calibration)
{
	struct jungfrau *j = state;

	for (int g = 0; g < GAINS; g++) {
		calibration->pedestal[g] = j->pedestal[g];
		calibration->gain[g] = j->gain[g];
	}
	return 0;
}

const struct sl_detector sl_detector_jungfrau = {
	.name = "jungfrau",
	.doc = "512 x 1024 pixel modules with adaptive gain; pedestals, noise, Bragg-like spots",
	.state_bytes = sizeof(struct jungfrau),
	.options = options,
	.open = open_jungfrau,
	.close = close_jungfrau,
	.render = render,
	.prepare = prepare,
	.truth = truth,
	.timestamp = timestamp,
	.calibration = calibration,
};
