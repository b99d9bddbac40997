/* tables.c - pedestals, gains and bad pixels, spread as on real modules at 12.4 keV. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "detector/jungfrau/jungfrau.h"

/* Keys of the things that are drawn. */
enum { KEY_PEDESTAL = 1, KEY_GAIN = 11, KEY_BAD = 21, KEY_CELL = 31, KEY_CELL_PIXEL = 41 };

/* Median and spread below and above it (from the 1st and 99th percentile), ADU; gains in ADU per
 * keV: measured on real modules. How far storage cells differ, as a whole and by pixel, ADU. */
static const struct {
	float pedestal, below, above, gain, gain_spread, cell, cell_pixel;
} characters[SL_JF_GAINS] = {
	{2446, 233, 269, 41.0f, 0.015f, 60, 25},
	{13584, 138, 155, -1.439f, 0.015f, 20, 8},
	{14100, 156, 168, -0.1145f, 0.02f, 20, 8},
};

/* One plane of pedestals or gains, spread about its median. */
static void fill_plane(const struct sl_jungfrau *j, uint64_t key, float median, float below,
		       float above, float *plane)
{
	for (uint64_t i = 0; i < (uint64_t)j->modules * j->pixels; i++) {
		float x = j->normal[sl_draw(key, i) >> 48];

		plane[i] = median + x * (x < 0 ? below : above);
	}
}

/* The other storage cells are like the first, with an offset of their own. */
static void fill_cells(const struct sl_jungfrau *j, int g)
{
	uint64_t pixels = (uint64_t)j->modules * j->pixels;
	const float *first = j->pedestal[g];

	for (uint32_t cell = 1; cell < j->storage_cells; cell++) {
		uint64_t key = sl_key(sl_key(j->seed, KEY_CELL_PIXEL + g), cell);
		float *plane = j->pedestal[g] + cell * pixels;
		float offset = characters[g].cell *
			       j->normal[sl_draw(sl_key(j->seed, KEY_CELL + g), cell) >> 48];

		for (uint64_t i = 0; i < pixels; i++)
			plane[i] = first[i] + offset +
				   characters[g].cell_pixel * j->normal[sl_draw(key, i) >> 48];
	}
}

static void choose_bad_pixels(struct sl_jungfrau *j)
{
	uint64_t key = sl_key(j->seed, KEY_BAD);

	for (uint64_t i = 0; i < (uint64_t)j->modules * j->bad_pixels; i++) {
		uint64_t module = i / j->bad_pixels;
		uint32_t pixel = (uint32_t)(sl_draw(key, i) % j->pixels);

		j->bad[i] = (struct sl_jf_bad){pixel, i % j->bad_pixels % SL_JF_FAULTS};
		j->mask[module * j->pixels + pixel] = 1;
		for (int g = 0; j->bad[i].fault == SL_JF_DEAD && g < SL_JF_GAINS; g++)
			j->gain[g][module * j->pixels + pixel] = 0;
	}
}

static int allocate(struct sl_jungfrau *j)
{
	size_t pixels = (size_t)j->modules * j->pixels;
	bool complete;

	j->normal = calloc(SL_NORMAL_ENTRIES, sizeof(*j->normal));
	j->bad = calloc((size_t)j->modules * j->bad_pixels + 1, sizeof(*j->bad));
	j->mask = calloc(pixels, sizeof(*j->mask));
	j->spot_mean = calloc(j->pixels, sizeof(*j->spot_mean));
	j->spot_pixel = calloc(j->pixels, sizeof(*j->spot_pixel));
	complete = j->normal && j->bad && j->mask && j->spot_mean && j->spot_pixel;
	for (int g = 0; g < SL_JF_GAINS; g++) {
		j->pedestal[g] = calloc(pixels * j->storage_cells, sizeof(float));
		j->gain[g] = calloc(pixels, sizeof(float));
		complete = complete && j->pedestal[g] && j->gain[g];
	}
	if (!complete)
		sl_error("jungfrau: no memory for the tables of %u modules with %u storage cells",
			 j->modules, j->storage_cells);
	return complete ? 0 : -ENOMEM;
}

int sl_jf_tables_open(struct sl_jungfrau *j)
{
	int err = allocate(j);

	if (err)
		return err;
	sl_normal_fill(j->normal);
	for (int g = 0; g < SL_JF_GAINS; g++) {
		float spread = characters[g].gain * characters[g].gain_spread;

		fill_plane(j, sl_key(j->seed, KEY_PEDESTAL + g), characters[g].pedestal,
			   characters[g].below, characters[g].above, j->pedestal[g]);
		fill_cells(j, g);
		fill_plane(j, sl_key(j->seed, KEY_GAIN + g), characters[g].gain, spread, spread,
			   j->gain[g]);
	}
	choose_bad_pixels(j);
	return 0;
}

void sl_jf_tables_close(struct sl_jungfrau *j)
{
	for (int g = 0; g < SL_JF_GAINS; g++) {
		free(j->pedestal[g]);
		free(j->gain[g]);
	}
	free(j->normal);
	free(j->bad);
	free(j->mask);
	free(j->spot_mean);
	free(j->spot_pixel);
}
