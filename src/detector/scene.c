/* scene.c - where spots fall and how bright they are; how the background falls off. */
#include "detector/scene.h"

#include <errno.h>
#include <stdlib.h>

/* Keys of the things that are drawn, so that no two share their random bits. */
enum { KEY_HITS = 101, KEY_COUNT, KEY_SPOT };

struct spot {
	uint32_t module;
	double row, column, sigma, peak; /* pixels, expected photons in the middle */
};

static double square(double x)
{
	return x * x;
}

/* Squared distance from the beam, in pixels. Modules lie one below the other, as they do in the
 * stored image, so that what the file says of the beam and of distances is true of the spots. */
static double distance2(const struct sl_scene *scene, uint32_t module, double row, double column)
{
	const struct sl_scene_setup *s = &scene->setup;
	double down = (double)module * s->rows + row;

	return square(column - s->columns / 2.0) + square(down - s->modules * s->rows / 2.0);
}

/* Bragg's law: sin theta = lambda / 2d, and the spot is at 2 theta. */
static double resolution_limit(const struct sl_scene_setup *s)
{
	double sine = 12.398419843 / s->photon_energy_keV / (2 * s->resolution_A);
	double cosine_2theta = 1 - 2 * sine * sine;

	if (cosine_2theta < 0.01) /* behind the detector's plane, or nearly: everything is inside */
		return 1e9;
	return s->distance_m / s->pixel_size_m * 2 * sine * __builtin_sqrt(1 - sine * sine) /
	       cosine_2theta;
}

/* Which exposures are hits: exactly the number that comes nearest to the share, each set of that
 * size as likely as any other (selection sampling). */
static void choose_hits(struct sl_scene *scene)
{
	const struct sl_scene_setup *s = &scene->setup;
	uint32_t wanted = (uint32_t)(s->hit_fraction * s->pool + 0.5);
	uint64_t key = sl_key(s->seed, KEY_HITS), count_key = sl_key(s->seed, KEY_COUNT);

	if (!wanted && s->hit_fraction > 0)
		wanted = 1;
	for (uint32_t i = 0; i < s->pool; i++) {
		if (sl_uniform(sl_draw(key, i)) * (s->pool - i) >= wanted)
			continue;
		wanted--;
		/* Half to one and a half times the mean: the weakest hit is still one. */
		scene->spots[i] =
			(uint32_t)(s->spots * (0.5 + sl_uniform(sl_draw(count_key, i))) + 0.5);
		if (!scene->spots[i])
			scene->spots[i] = 1;
	}
}

static double background_shape(const struct sl_scene *scene, uint64_t at)
{
	uint32_t across = scene->setup.columns / SL_SCENE_SQUARE;
	uint32_t down = scene->setup.rows / SL_SCENE_SQUARE;
	double column = (at % across + 0.5) * SL_SCENE_SQUARE;
	double row = (at / across % down + 0.5) * SL_SCENE_SQUARE;
	uint32_t module = (uint32_t)(at / across / down);

	return 1 / (1 + distance2(scene, module, row, column) / square(scene->falloff));
}

/* Scale the shape so that its mean over all squares is the one asked for, and round it to levels,
 * whose distributions are then tabulated. */
static void fill_background(struct sl_scene *scene, uint64_t squares)
{
	double sum = 0, peak;

	for (uint64_t i = 0; i < squares; i++)
		sum += background_shape(scene, i);
	peak = scene->setup.background_photons * (double)squares / sum;
	if (peak > SL_POISSON_MEAN_MAX)
		peak = SL_POISSON_MEAN_MAX;
	for (uint64_t i = 0; i < squares; i++)
		scene->level[i] = (uint8_t)(background_shape(scene, i) * (SL_SCENE_LEVELS - 0.5));
	for (unsigned i = 0; i < SL_SCENE_LEVELS; i++)
		sl_poisson_fill(&scene->background[i], peak * (i + 0.5) / SL_SCENE_LEVELS);
}

int sl_scene_open(const struct sl_scene_setup *setup, struct sl_scene *scene)
{
	uint64_t squares = (uint64_t)setup->modules * (setup->rows / SL_SCENE_SQUARE) *
			   (setup->columns / SL_SCENE_SQUARE);
	struct sl_scene s = {.setup = *setup};

	s.background = calloc(SL_SCENE_LEVELS, sizeof(*s.background));
	s.level = calloc(squares, sizeof(*s.level));
	s.spots = calloc(setup->pool, sizeof(*s.spots));
	if (!s.background || !s.level || !s.spots) {
		sl_scene_close(&s);
		return -ENOMEM;
	}
	s.limit = resolution_limit(setup);
	s.falloff = __builtin_sqrt(distance2(&s, 0, 0, 0)) / 2;
	fill_background(&s, squares);
	choose_hits(&s);
	*scene = s;
	return 0;
}

void sl_scene_close(struct sl_scene *scene)
{
	free(scene->background);
	free(scene->level);
	free(scene->spots);
	*scene = (struct sl_scene){.limit = 0};
}

void sl_scene_truth(const struct sl_scene *scene, uint32_t exposure, struct sl_truth *truth)
{
	*truth = (struct sl_truth){
		.hit = scene->spots[exposure] > 0,
		.spots = scene->spots[exposure],
	};
}

/* Most spots are weak, few are very bright: a twentieth of a bright one at least, two thirds of
 * them below it, one in fifty more than thirty-five times as bright. Spots fade towards the edge.
 */
static double spot_peak(const struct sl_scene *scene, double distance_2, double u)
{
	double strength = u * u * u / (1.005 - u) / (1 + distance_2 / square(scene->falloff * 4));

	return scene->setup.spot_photons * (0.05 + strength);
}

static struct spot get_spot(const struct sl_scene *scene, uint32_t exposure, uint32_t index)
{
	const struct sl_scene_setup *s = &scene->setup;
	uint64_t key = sl_key(sl_key(sl_key(s->seed, KEY_SPOT), exposure), index);
	struct spot spot;
	uint64_t draw = 2;
	double d2;

	/* Somewhere inside the resolution limit; where that is smaller than a pixel, anywhere. */
	do {
		double place = sl_uniform(sl_draw(key, draw++)) * s->modules;

		spot.module = (uint32_t)place;
		spot.row = (place - spot.module) * s->rows;
		spot.column = sl_uniform(sl_draw(key, draw++)) * s->columns;
		d2 = distance2(scene, spot.module, spot.row, spot.column);
	} while (d2 > square(scene->limit) && draw < 1000);
	spot.sigma = 0.8 + 0.6 * sl_uniform(sl_draw(key, 0));
	spot.peak = spot_peak(scene, d2, sl_uniform(sl_draw(key, 1)));
	return spot;
}

void sl_scene_spots(const struct sl_scene *scene, uint32_t exposure, uint32_t module, float *mean,
		    sl_scene_touch *touch, void *arg)
{
	const int rows = (int)scene->setup.rows, columns = (int)scene->setup.columns;

	for (uint32_t i = 0; i < scene->spots[exposure]; i++) {
		struct spot spot = get_spot(scene, exposure, i);
		int reach = (int)(5 * spot.sigma) + 1; /* 4e-6 of the peak is left there */

		if (spot.module != module)
			continue;
		for (int r = (int)spot.row - reach; r <= (int)spot.row + reach; r++)
			for (int c = (int)spot.column - reach; c <= (int)spot.column + reach; c++) {
				double d2 = square(r + 0.5 - spot.row) +
					    square(c + 0.5 - spot.column);
				double add = spot.peak * sl_exp(-d2 / (2 * square(spot.sigma)));
				uint32_t pixel = (uint32_t)(r * columns + c);

				if (r < 0 || r >= rows || c < 0 || c >= columns || add < 0.01)
					continue;
				if (mean[pixel] == 0)
					touch(arg, pixel);
				mean[pixel] += (float)add;
			}
	}
}
