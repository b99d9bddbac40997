/* background.c - what air, water and ice scatter, and what the beam stop leaves of it. */
#include "detector/scene/scene.h"

#include <errno.h>
#include <stdlib.h>

#define WATER 0.315 /* its ring, 1 / Angstrom */

/* Where rings of hexagonal ice are, 1 / Angstrom, and how bright, by the strongest. */
static const struct {
	double inverse_d, intensity;
} ice[] = {{1 / 3.897, 1},    {1 / 3.669, 0.52}, {1 / 3.441, 0.72}, {1 / 2.671, 0.16},
	   {1 / 2.249, 0.42}, {1 / 2.072, 0.31}, {1 / 1.948, 0.06}, {1 / 1.918, 0.22},
	   {1 / 1.883, 0.12}, {1 / 1.721, 0.09}};

static double square(double x)
{
	return x * x;
}

static double bell(double x, double middle, double width)
{
	return sl_exp(-square((x - middle) / width) / 2);
}

/* By 1 / d: air rises towards the beam; water has its ring at 3.2 Angstrom, steeper towards the
 * beam, a shoulder at 2.1, and a floor that falls slowly. */
static double scatter(double s)
{
	double air = 2 / (1 + square(s / 0.05));
	double water = bell(s, WATER, s < WATER ? 0.05 : 0.075) + 0.3 * bell(s, 0.48, 0.06);

	return air + water + 0.3 * sl_exp(-square(s / 0.8));
}

static double rings(double s)
{
	double sum = 0;

	for (unsigned i = 0; i < sizeof(ice) / sizeof(ice[0]); i++)
		sum += ice[i].intensity * bell(s, ice[i].inverse_d, 0.0015);
	return sum;
}

/* Pixels far out are farther away and seen from the side: the third power of the cosine. */
static double solid_angle(const struct sl_scene *scene, double radius)
{
	double cosine2 = square(scene->distance) / (square(scene->distance) + square(radius));

	return cosine2 * __builtin_sqrt(cosine2);
}

/* The beam is polarised along the rows, nearly all of it, as at synchrotrons and free-electron
 * lasers. */
static double polarisation(const struct sl_scene *scene, double down, double right)
{
	const double along = 0.99;
	double length2 = square(scene->distance) + square(down) + square(right);

	return 1 - (along * square(right) + (1 - along) * square(down)) / length2;
}

double sl_scene_factors(const struct sl_scene *scene, double down, double right)
{
	return polarisation(scene, down, right) *
	       solid_angle(scene, __builtin_sqrt(square(down) + square(right)));
}

/* 0 inside, 1 outside, with an edge two pixels wide. */
static double edge(double outside)
{
	return outside <= -1 ? 0 : outside >= 1 ? 1 : (outside + 1) / 2;
}

/* A disk, and a thin arm that holds it from below, a little aslant, and lets a third through. */
double sl_scene_transmission(const struct sl_scene *scene, double row, double column)
{
	double radius = scene->options.beam_stop, down = row - scene->geometry.layout.beam_row;
	double right = column - scene->geometry.layout.beam_column;
	double width = radius / 5 < 2.5 ? 2.5 : radius / 5, aside = right - 0.09 * down, left = 1;

	if (!(radius > 0))
		return 1;
	if (square(down) + square(right) < square(radius + 1))
		left = 0.02 + 0.98 * edge(__builtin_sqrt(square(down) + square(right)) - radius);
	if (down > 0 && aside < width + 1 && aside > -width - 1)
		left *= 0.35 + 0.65 * edge((aside < 0 ? -aside : aside) - width);
	return left;
}

/* Photons of an image pixel, with the solid angle. Returns the highest point. */
static double fill_profile(struct sl_scene *scene)
{
	const struct sl_scene_options *o = &scene->options;
	double top = 0, scale = o->background_photons / scatter(WATER);

	for (uint32_t i = 0; i <= scene->profile_steps; i++) {
		double radius = (double)i / SL_SCENE_STEPS;
		double s = sl_scene_inverse_d(scene, radius), sum = scatter(s);

		if (o->ice > 0)
			sum += o->ice * scatter(WATER) * rings(s);
		scene->profile[i] = scale * sum * solid_angle(scene, radius);
		if (scene->profile[i] > top)
			top = scene->profile[i];
	}
	return top;
}

static double profile_at(const struct sl_scene *scene, double radius)
{
	double at = radius * SL_SCENE_STEPS;
	uint32_t i = (uint32_t)at;

	if (i >= scene->profile_steps)
		return scene->profile[scene->profile_steps];
	return scene->profile[i] + (at - i) * (scene->profile[i + 1] - scene->profile[i]);
}

/* x is a share of the highest level. Levels are the squares of even steps, so that they lie close
 * where there is little; between two of them the fraction is linear. */
static uint16_t level_of(double x)
{
	const double last = SL_SCENE_LEVELS - 1;
	uint32_t level = (uint32_t)(last * __builtin_sqrt(x));
	double below, above;

	if (level >= SL_SCENE_LEVELS - 1)
		return (SL_SCENE_LEVELS - 1) << SL_SCENE_FRACTION_BITS;
	below = square(level);
	above = square(level + 1);
	x = (x * square(last) - below) / (above - below);
	/* Rounding may leave x a little below 0. */
	return (uint16_t)((level << SL_SCENE_FRACTION_BITS) +
			  (uint32_t)(x > 0 ? x * (1 << SL_SCENE_FRACTION_BITS) : 0));
}

/* Where the pixels of a module's row, or column, lie: places add up, shares multiply. */
struct places {
	double row, column; /* of pixel (r, 0), or (0, c) less that of (0, 0) */
	uint32_t share;
};

static void find_places(const struct sl_scene *scene, uint32_t module, struct places *rows,
			struct places *columns)
{
	const struct sl_geometry *g = &scene->geometry;
	double row, column;

	sl_layout_centre(g, module, 0, &row, &column);
	for (uint32_t r = 0; r < g->rows; r++) {
		sl_layout_centre(g, module, r * g->columns, &rows[r].row, &rows[r].column);
		rows[r].share = sl_layout_share(g, r * g->columns);
	}
	for (uint32_t c = 0; c < g->columns; c++) {
		sl_layout_centre(g, module, c, &columns[c].row, &columns[c].column);
		columns[c].row -= row;
		columns[c].column -= column;
		columns[c].share = sl_layout_share(g, c);
	}
}

/* One module's levels, as shares of `top`. */
static void fill_module(struct sl_scene *scene, double top, const struct places *rows,
			const struct places *columns, uint16_t *level)
{
	const struct sl_geometry *g = &scene->geometry;

	for (uint32_t r = 0; r < g->rows; r++)
		for (uint32_t c = 0; c < g->columns; c++) {
			double row = rows[r].row + columns[c].row;
			double column = rows[r].column + columns[c].column;
			double down = row - g->layout.beam_row;
			double right = column - g->layout.beam_column;
			double radius = __builtin_sqrt(square(down) + square(right));
			double mean = rows[r].share * columns[c].share * profile_at(scene, radius) *
				      polarisation(scene, down, right) *
				      sl_scene_transmission(scene, row, column);

			*level++ = level_of(mean / top);
		}
}

int sl_scene_fill_background(struct sl_scene *scene)
{
	const struct sl_geometry *g = &scene->geometry;
	struct places *places = calloc(g->rows + g->columns, sizeof(*places));
	uint32_t wide = 1 + g->layout.gap / 2;
	double top = fill_profile(scene) * wide * wide;

	if (!places)
		return -ENOMEM;
	if (!(top > 0))
		top = 1; /* there is none: all levels are 0 */
	for (uint32_t m = 0; m < g->modules; m++) {
		find_places(scene, m, places, places + g->rows);
		fill_module(scene, top, places, places + g->rows,
			    scene->level + m * sl_geometry_pixels(g));
	}
	free(places);
	for (uint32_t i = 0; i < SL_SCENE_LEVELS; i++) {
		double mean = top * square((double)i / (SL_SCENE_LEVELS - 1));

		sl_poisson_fill(&scene->background[i],
				mean < SL_POISSON_MEAN_MAX ? mean : SL_POISSON_MEAN_MAX);
	}
	return 0;
}
