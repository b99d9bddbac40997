/* scene.c - which exposures are hits, and what is known of their spots. */
#include "detector/scene/scene.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"

/* Keys of the things that are drawn, so that no two share their random bits. */
enum { KEY_HITS = 101, KEY_COUNT };

static double square(double x)
{
	return x * x;
}

double sl_scene_inverse_d(const struct sl_scene *scene, double radius)
{
	double cosine = scene->distance / __builtin_sqrt(square(scene->distance) + square(radius));
	double sine = __builtin_sqrt((1 - cosine) / 2); /* of theta */

	return 2 * sine * scene->options.photon_energy_keV / SL_SCENE_KEV_ANGSTROM;
}

/* Bragg's law: sin theta = lambda / 2d, and the spot is at 2 theta. */
static double resolution_limit(const struct sl_scene *scene)
{
	const struct sl_scene_options *o = &scene->options;
	double sine = SL_SCENE_KEV_ANGSTROM / o->photon_energy_keV / (2 * o->resolution_A);
	double cosine_2theta = 1 - 2 * sine * sine;

	if (cosine_2theta < 0.01) /* behind the detector's plane, or nearly: everything is inside */
		return 1e9;
	return scene->distance * 2 * sine * __builtin_sqrt(1 - sine * sine) / cosine_2theta;
}

/* Which exposures are hits: exactly the number that comes nearest to the share, each set of that
 * size as likely as any other (selection sampling). */
static uint32_t choose_hits(struct sl_scene *scene)
{
	const struct sl_scene_options *o = &scene->options;
	uint32_t wanted = (uint32_t)(o->hit_fraction * o->pool + 0.5), most = 1;
	uint64_t key = sl_key(scene->seed, KEY_HITS), count_key = sl_key(scene->seed, KEY_COUNT);

	if (!wanted && o->hit_fraction > 0)
		wanted = 1;
	for (uint32_t i = 0; i < o->pool; i++) {
		if (sl_uniform(sl_draw(key, i)) * (o->pool - i) >= wanted)
			continue;
		wanted--;
		/* Half to one and a half times the mean: the weakest hit is still one. */
		scene->spots[i] =
			(uint32_t)(o->spots * (0.5 + sl_uniform(sl_draw(count_key, i))) + 0.5);
		if (!scene->spots[i])
			scene->spots[i] = 1;
		if (scene->spots[i] > most)
			most = scene->spots[i];
	}
	return most;
}

/* The list of spots, and a table with room to spare in which they are looked up. */
static int allocate_spots(struct sl_scene *scene, uint32_t most)
{
	uint32_t size = 4;

	while (size < 2 * most)
		size *= 2;
	scene->spot = calloc(most, sizeof(*scene->spot));
	scene->taken = calloc(size, sizeof(*scene->taken));
	scene->taken_mask = size - 1;
	scene->exposure = UINT32_MAX;
	return scene->spot && scene->taken ? 0 : -ENOMEM;
}

static int allocate(struct sl_scene *scene)
{
	const struct sl_geometry *g = &scene->geometry;
	const struct sl_layout *l = &g->layout;
	double down = l->beam_row > l->rows / 2.0 ? l->beam_row : l->rows - l->beam_row;
	double right = l->beam_column > l->columns / 2.0 ? l->beam_column
							 : l->columns - l->beam_column;

	scene->profile_steps = (uint32_t)(__builtin_sqrt(square(down) + square(right)) + 2) *
			       SL_SCENE_STEPS;
	scene->profile = calloc(scene->profile_steps + 1, sizeof(*scene->profile));
	scene->background = calloc(SL_SCENE_LEVELS, sizeof(*scene->background));
	scene->level = calloc(g->modules * sl_geometry_pixels(g), sizeof(*scene->level));
	scene->spots = calloc(scene->options.pool, sizeof(*scene->spots));
	if (!scene->profile || !scene->background || !scene->level || !scene->spots)
		return -ENOMEM;
	return allocate_spots(scene, choose_hits(scene));
}

int sl_scene_open(const struct sl_scene_options *options, uint64_t seed, struct sl_geometry *g,
		  struct sl_scene *scene)
{
	char why[128];
	int err;

	g->photon_energy_keV = options->photon_energy_keV;
	g->distance_m = options->distance_m;
	sl_layout_resolve(g, &g->layout);
	g->layout.beam_row = g->layout.rows / 2.0 + options->beam_y;
	g->layout.beam_column = g->layout.columns / 2.0 + options->beam_x;
	*scene = (struct sl_scene){.options = *options, .geometry = *g, .seed = seed};
	if (sl_layout_check(g, why, sizeof(why))) {
		sl_error("%s: %s", g->detector, why);
		return -EINVAL;
	}
	scene->distance = options->distance_m / g->pixel_size_m;
	scene->limit = resolution_limit(scene);
	err = allocate(scene);
	if (!err)
		err = sl_scene_fill_background(scene);
	if (err)
		sl_scene_close(scene);
	return err;
}

void sl_scene_close(struct sl_scene *scene)
{
	free(scene->profile);
	free(scene->background);
	free(scene->level);
	free(scene->spots);
	free(scene->spot);
	free(scene->taken);
	*scene = (struct sl_scene){.limit = 0};
}

void sl_scene_truth(const struct sl_scene *scene, uint32_t exposure, struct sl_truth *truth)
{
	*truth = (struct sl_truth){
		.hit = scene->spots[exposure] > 0,
		.spots = scene->spots[exposure],
	};
}

/* Row and column of the image are where the spot's middle lies, (0.5, 0.5) being that of the first
 * pixel; photons are those expected of the whole spot, were there no gaps. */
const struct sl_truth_column sl_scene_columns[] = {
	{"row", "pixel"},
	{"column", "pixel"},
	{"module", ""},
	{"module_row", "pixel"},
	{"module_column", "pixel"},
	{"photons", ""},
	{"radius", "pixel"},
	{"resolution", "angstrom"},
	{"energy", "keV"},
	{NULL, NULL},
};

uint32_t sl_scene_truth_rows(struct sl_scene *scene, uint32_t exposure, double *table,
			     uint32_t most)
{
	const double two_pi = 6.283185307179586;
	uint32_t columns = scene->geometry.columns;

	sl_scene_find_spots(scene, exposure);
	for (uint32_t i = 0; i < scene->spots[exposure] && i < most; i++) {
		const struct sl_spot *s = &scene->spot[i];
		double photons = s->peak * two_pi * s->radial * s->across;
		const double row[] = {s->row,
				      s->column,
				      s->module,
				      s->pixel / columns,
				      s->pixel % columns,
				      photons,
				      s->radius,
				      1 / s->inverse_d,
				      photons * scene->options.photon_energy_keV};

		for (size_t c = 0; c < sizeof(row) / sizeof(row[0]); c++)
			*table++ = row[c];
	}
	return scene->spots[exposure];
}
