/* render.c - photons to raw pixels: gain code and ADU. */
#include "detector/jungfrau/jungfrau.h"

enum { ADU_MAX = 0x3fff };

/* A pixel changes gain where the comparators of real ones do, well inside the range of the ADC. */
enum { SWITCH_G0_ADU = 14000, SWITCH_G1_ADU = 1500 };

enum { RAW_OVERLOAD = 0xc000, RAW_STUCK_HIGH = 0xffff, RAW_STUCK_LOW = 0x4000 };

/* What a hot pixel reads above its pedestal. */
enum { HOT_LEAST_ADU = 1500, HOT_RANGE_ADU = 6000 };

/* Keys of the things that are drawn. */
enum { KEY_BRIGHT = 22, KEY_DARK, KEY_SPOTS, KEY_HOT };

const uint16_t sl_jf_codes[SL_JF_GAINS] = {0, 1, 3};

/* G1 and G2 are quieter than G0, in ADU. */
static const float gain_noise[SL_JF_GAINS] = {1, 0.25f, 0.25f};

/* One module of one entry of the pool. */
struct exposure {
	struct sl_jungfrau *j;
	uint32_t entry, module;
	size_t base; /* of its pixels in [module][pixel] */
	const float *pedestal[SL_JF_GAINS], *gain[SL_JF_GAINS]; /* [pixels] */
	uint64_t key;
};

static struct exposure expose(struct sl_jungfrau *j, uint32_t entry, uint32_t module, bool dark)
{
	struct exposure e = {.j = j, .entry = entry, .module = module};
	size_t cell = entry % j->storage_cells;

	e.base = (size_t)module * j->pixels;
	e.key = sl_key(sl_key(sl_key(j->seed, dark ? KEY_DARK : KEY_BRIGHT), entry), module);
	for (int g = 0; g < SL_JF_GAINS; g++) {
		e.pedestal[g] = j->pedestal[g] + cell * j->modules * j->pixels + e.base;
		e.gain[g] = j->gain[g] + e.base;
	}
	return e;
}

/* What the pixel reads for that many photons: the first gain that holds them. noise: in units of
 * its RMS. */
static uint16_t digitise(const struct exposure *e, uint32_t pixel, double photons, float noise)
{
	double energy = photons * e->j->options.photon_energy_keV;
	double adu[SL_JF_GAINS];
	int g = 0;

	for (int i = 0; i < SL_JF_GAINS; i++)
		adu[i] = e->pedestal[i][pixel] + energy * e->gain[i][pixel] +
			 e->j->noise_ADU * gain_noise[i] * noise + 0.5;
	if (adu[0] >= SWITCH_G0_ADU)
		g = adu[1] > SWITCH_G1_ADU ? 1 : 2;
	if (g == 2 && adu[2] < 1)
		return RAW_OVERLOAD;
	if (adu[g] < 0)
		return (uint16_t)(sl_jf_codes[g] << 14);
	/* The last code of G2 means something else: stay below it. */
	if (adu[g] > ADU_MAX - 1)
		adu[g] = ADU_MAX - 1;
	return (uint16_t)(sl_jf_codes[g] << 14 | (uint16_t)adu[g]);
}

static void set_bad(const struct exposure *e, uint16_t *out)
{
	const struct sl_jf_bad *bad = &e->j->bad[(size_t)e->module * e->j->bad_pixels];
	uint64_t key = sl_key(e->key, KEY_HOT);

	for (uint32_t i = 0; i < e->j->bad_pixels; i++) {
		uint32_t at = bad[i].pixel;

		if (bad[i].fault == SL_JF_STUCK_HIGH)
			out[at] = RAW_STUCK_HIGH;
		else if (bad[i].fault == SL_JF_STUCK_LOW)
			out[at] = RAW_STUCK_LOW;
		else if (bad[i].fault == SL_JF_HOT)
			out[at] = (uint16_t)(e->pedestal[0][at] + HOT_LEAST_ADU +
					     (float)(sl_draw(key, i) % HOT_RANGE_ADU));
	}
}

/* 16 bits of a draw are the noise, all others the photons. */
static void render_dark(const struct exposure *e, uint16_t *out)
{
	const float *pedestal = e->pedestal[0], *normal = e->j->normal;
	const float noise = (float)e->j->noise_ADU;

	for (uint32_t i = 0; i < e->j->pixels; i++) {
		float adu = pedestal[i] + noise * normal[sl_draw(e->key, i) & 0xffff] + 0.5f;

		/* Noise alone never switches the gain; the ADC still ends somewhere. */
		adu = adu < 0 ? 0 : adu > ADU_MAX - 1 ? ADU_MAX - 1 : adu;
		out[i] = (uint16_t)adu;
	}
}

static void touch(void *arg, uint32_t pixel)
{
	struct sl_jungfrau *j = arg;

	j->spot_pixel[j->spot_pixels++] = pixel;
}

/* Spots come on top of the background that the pixel has anyway: draw that again, add, digitise. */
static void add_spots(const struct exposure *e, uint16_t *out)
{
	struct sl_jungfrau *j = e->j;
	uint64_t key = sl_key(sl_key(sl_key(j->seed, KEY_SPOTS), e->entry), e->module);

	j->spot_pixels = 0;
	sl_scene_spots(&j->scene, e->entry % j->options.pool, e->module, j->spot_mean, touch, j);
	for (uint32_t n = 0; n < j->spot_pixels; n++) {
		uint32_t i = j->spot_pixel[n];
		uint64_t bits = sl_draw(e->key, i);
		double photons = sl_scene_draw(&j->scene, e->base + i, bits);

		photons += sl_poisson_any(j->spot_mean[i], sl_draw(key, i), j->normal);
		out[i] = digitise(e, i, photons, j->normal[bits & 0xffff]);
		j->spot_mean[i] = 0;
	}
}

static void render_bright(const struct exposure *e, uint16_t *out)
{
	const struct sl_jungfrau *j = e->j;
	const float *pedestal = e->pedestal[0], *gain = e->gain[0];
	const float energy = (float)j->options.photon_energy_keV, noise = (float)j->noise_ADU;

	for (uint32_t i = 0; i < j->pixels; i++) {
		uint64_t bits = sl_draw(e->key, i);
		float photons = (float)sl_scene_draw(&j->scene, e->base + i, bits);
		float x = j->normal[bits & 0xffff];
		float adu = pedestal[i] + photons * energy * gain[i] + noise * x + 0.5f;

		/* Everything but an ordinary pixel in G0 goes the long way. */
		if (__builtin_expect(adu >= 0 && adu < SWITCH_G0_ADU, 1))
			out[i] = (uint16_t)adu;
		else
			out[i] = digitise(e, i, photons, x);
	}
	add_spots(e, out);
}

void sl_jf_make(void *arg, uint32_t entry, uint32_t module, bool dark, void *block)
{
	struct exposure e = expose(arg, entry, module, dark);

	if (dark)
		render_dark(&e, block);
	else
		render_bright(&e, block);
	set_bad(&e, block);
}
