/* spots.c - a crystal's Bragg spots: the nodes of a lattice that the Ewald sphere touches.
 *
 * The crystal is that of lysozyme, or one like it that is larger, where the number of spots asked
 * for needs more nodes; each hit has it turned another way. A spot is found by taking a place of
 * the image at random, and the node next to where it lies on the sphere: if that is near enough to
 * the sphere, diffracts onto a pixel and was not taken before, it is one. */
#include "detector/scene/scene.h"

#include <string.h>

/* Keys of the things that are drawn, so that no two share their random bits. */
enum { KEY_TURN = 111, KEY_PLACE, KEY_SPOT };

/* Places tried for a spot; then it is put anywhere. That happens where the resolution limit is
 * within the beam stop or off the detector. */
enum { TRIES = 2000 };

struct vector {
	double x, y, z; /* right, down, along the beam */
};

struct crystal {
	struct vector axis[3]; /* directions of the cell's edges */
	double edge[3];	       /* Angstrom */
	double tolerance;      /* how far from the sphere a node may be, 1 / Angstrom */
	double wave_number;    /* 1 / Angstrom */
};

static double square(double x)
{
	return x * x;
}

static double dot(struct vector a, struct vector b)
{
	return a.x * b.x + a.y * b.y + a.z * b.z;
}

/* Any orientation is as likely as any other (Marsaglia: four numbers from two disks are a point of
 * the sphere in four dimensions, which is a rotation). */
static void turn(struct crystal *crystal, uint64_t key)
{
	double q[4], scale = 1;
	uint64_t draw = 0;

	for (int half = 0; half < 2; half++) {
		double s, *p = q + 2 * half;

		do {
			p[0] = 2 * sl_uniform(sl_draw(key, draw++)) - 1;
			p[1] = 2 * sl_uniform(sl_draw(key, draw++)) - 1;
			s = square(p[0]) + square(p[1]);
		} while (s >= 1 || s < 1e-6);
		scale = half ? __builtin_sqrt(scale / s) : 1 - s;
	}
	q[2] *= scale;
	q[3] *= scale;
	crystal->axis[0] = (struct vector){1 - 2 * (square(q[2]) + square(q[3])),
					   2 * (q[1] * q[2] + q[0] * q[3]),
					   2 * (q[1] * q[3] - q[0] * q[2])};
	crystal->axis[1] = (struct vector){2 * (q[1] * q[2] - q[0] * q[3]),
					   1 - 2 * (square(q[1]) + square(q[3])),
					   2 * (q[2] * q[3] + q[0] * q[1])};
	crystal->axis[2] = (struct vector){2 * (q[1] * q[3] + q[0] * q[2]),
					   2 * (q[2] * q[3] - q[0] * q[1]),
					   1 - 2 * (square(q[1]) + square(q[2]))};
}

/* Three times as many nodes as spots are to be near enough: on `area` of the sphere there are
 * 2 tolerance volume area of them. The tolerance stays well below the distance of nodes, else what
 * is seen is no lattice: then the cell is larger. */
static void choose_cell(const struct sl_scene *scene, uint32_t spots, struct crystal *crystal)
{
	static const double edges[3] = {79.1, 79.1, 37.9};
	const struct sl_layout *l = &scene->geometry.layout;
	const double most = 0.002, pi = 3.141592653589793;
	double volume = edges[0] * edges[1] * edges[2], larger2;
	double area = square(crystal->wave_number / scene->distance) * l->rows * l->columns;
	double inside = pi / square(scene->options.resolution_A);

	if (inside < area)
		area = inside;
	crystal->tolerance = 3 * spots / (2 * volume * area);
	larger2 = crystal->tolerance / most;
	for (int i = 0; i < 3; i++)
		crystal->edge[i] = larger2 > 1 ? edges[i] * __builtin_sqrt(larger2) : edges[i];
	if (larger2 > 1)
		crystal->tolerance = most / __builtin_sqrt(larger2);
}

static int32_t nearest(double x)
{
	return x < 0 ? -(int32_t)(0.5 - x) : (int32_t)(x + 0.5);
}

/* The node next to where this place of the image lies on the sphere, and where that one's spot is.
 * False: too far from the sphere, or not towards the detector. */
static bool find_node(const struct sl_scene *scene, const struct crystal *crystal,
		      struct sl_spot *spot)
{
	const struct sl_layout *l = &scene->geometry.layout;
	struct vector p = {spot->column - l->beam_column, spot->row - l->beam_row, scene->distance};
	double scale = crystal->wave_number / __builtin_sqrt(dot(p, p)), off;
	struct vector q = {p.x * scale, p.y * scale, p.z * scale - crystal->wave_number};
	struct vector k = {0, 0, crystal->wave_number};

	for (int i = 0; i < 3; i++) {
		double length;

		spot->index[i] = nearest(dot(q, crystal->axis[i]) * crystal->edge[i]);
		length = spot->index[i] / crystal->edge[i];
		k.x += length * crystal->axis[i].x;
		k.y += length * crystal->axis[i].y;
		k.z += length * crystal->axis[i].z;
	}
	off = __builtin_sqrt(dot(k, k)) - crystal->wave_number;
	if (off > crystal->tolerance || off < -crystal->tolerance ||
	    k.z < 0.01 * crystal->wave_number ||
	    !(spot->index[0] || spot->index[1] || spot->index[2]))
		return false;
	spot->column = l->beam_column + k.x / k.z * scene->distance;
	spot->row = l->beam_row + k.y / k.z * scene->distance;
	return true;
}

/* On a pixel, not behind the beam stop, within the limit. */
static bool is_seen(const struct sl_scene *scene, struct sl_spot *spot)
{
	const struct sl_layout *l = &scene->geometry.layout;
	double r2 = square(spot->row - l->beam_row) + square(spot->column - l->beam_column);
	int module;

	if (r2 > square(scene->limit) || spot->row < 0 || spot->row >= l->rows ||
	    spot->column < 0 || spot->column >= l->columns ||
	    sl_scene_transmission(scene, spot->row, spot->column) < 1)
		return false;
	module = sl_layout_find(&scene->geometry, (int64_t)spot->row, (int64_t)spot->column,
				&spot->pixel);
	spot->module = (uint32_t)module;
	return module >= 0;
}

/* Looked up by its indices in a table of spots, 1 being the first; noted as number `i`. */
static bool is_new(struct sl_scene *scene, const struct sl_spot *spot, uint32_t i)
{
	uint64_t key = 0;
	uint32_t at;

	for (int n = 0; n < 3; n++)
		key = sl_key(key, (uint32_t)spot->index[n]);
	for (at = (uint32_t)key & scene->taken_mask; scene->taken[at];
	     at = (at + 1) & scene->taken_mask) {
		const struct sl_spot *other = &scene->spot[scene->taken[at] - 1];

		if (!memcmp(other->index, spot->index, sizeof(spot->index)))
			return false;
	}
	scene->taken[at] = i + 1;
	return true;
}

/* Within the rectangle that holds both image and limit. */
static void take_place(const struct sl_scene *scene, uint64_t key, uint64_t *draw,
		       struct sl_spot *spot)
{
	const struct sl_layout *l = &scene->geometry.layout;
	double top = l->beam_row - scene->limit, left = l->beam_column - scene->limit;
	double bottom = l->beam_row + scene->limit, right = l->beam_column + scene->limit;

	top = top < 0 ? 0 : top;
	left = left < 0 ? 0 : left;
	bottom = bottom > l->rows ? l->rows : bottom;
	right = right > l->columns ? l->columns : right;
	spot->row = top + sl_uniform(sl_draw(key, (*draw)++)) * (bottom - top);
	spot->column = left + sl_uniform(sl_draw(key, (*draw)++)) * (right - left);
}

static void place_anywhere(const struct sl_scene *scene, uint64_t bits, struct sl_spot *spot)
{
	const struct sl_geometry *g = &scene->geometry;
	uint64_t pixels = sl_geometry_pixels(g), at = bits % (g->modules * pixels);

	memset(spot->index, 0, sizeof(spot->index));
	spot->module = (uint32_t)(at / pixels);
	spot->pixel = (uint32_t)(at % pixels);
	sl_layout_centre(g, spot->module, spot->pixel, &spot->row, &spot->column);
}

static void place_spot(struct sl_scene *scene, const struct crystal *crystal, uint64_t key,
		       uint32_t i)
{
	struct sl_spot *spot = &scene->spot[i];
	uint64_t draw = 0;

	key = sl_key(key, i);
	for (int n = 0; n < TRIES; n++) {
		take_place(scene, key, &draw, spot);
		if (find_node(scene, crystal, spot) && is_seen(scene, spot) &&
		    is_new(scene, spot, i))
			return;
	}
	place_anywhere(scene, sl_draw(key, draw), spot);
}

/* Most spots are weak, few are very bright: a twentieth of a bright one at least, two thirds of
 * them below it, one in fifty more than thirty-five times as bright. They fade with resolution
 * (a temperature factor of 15 square Angstrom), and as all that is scattered does. */
static double peak_of(const struct sl_scene *scene, const struct sl_spot *spot, double u)
{
	const struct sl_layout *l = &scene->geometry.layout;
	double fade =
		sl_exp(-15 * square(spot->inverse_d) / 2) *
		sl_scene_factors(scene, spot->row - l->beam_row, spot->column - l->beam_column);

	return scene->options.spot_photons * (0.05 + fade * u * u * u / (1.005 - u));
}

static void describe_spot(const struct sl_scene *scene, uint64_t key, uint32_t i,
			  struct sl_spot *spot)
{
	const double bandwidth = 0.0008;
	const struct sl_layout *l = &scene->geometry.layout;

	key = sl_key(key, i);
	spot->radius = __builtin_sqrt(square(spot->row - l->beam_row) +
				      square(spot->column - l->beam_column));
	spot->inverse_d = sl_scene_inverse_d(scene, spot->radius);
	spot->across = 0.8 + 0.6 * sl_uniform(sl_draw(key, 0));
	spot->radial = __builtin_sqrt(square(spot->across) + square(bandwidth * spot->radius));
	if (spot->radial > 3) /* far out, where the plane is seen edge-on */
		spot->radial = 3;
	spot->peak = peak_of(scene, spot, sl_uniform(sl_draw(key, 1)));
}

void sl_scene_find_spots(struct sl_scene *scene, uint32_t exposure)
{
	struct crystal crystal = {.wave_number = scene->options.photon_energy_keV /
						 SL_SCENE_KEV_ANGSTROM};
	uint64_t place_key = sl_key(sl_key(scene->seed, KEY_PLACE), exposure);
	uint64_t spot_key = sl_key(sl_key(scene->seed, KEY_SPOT), exposure);

	if (scene->exposure == exposure)
		return;
	scene->exposure = exposure;
	memset(scene->taken, 0, (scene->taken_mask + (size_t)1) * sizeof(*scene->taken));
	turn(&crystal, sl_key(sl_key(scene->seed, KEY_TURN), exposure));
	choose_cell(scene, scene->spots[exposure], &crystal);
	for (uint32_t i = 0; i < scene->spots[exposure]; i++) {
		place_spot(scene, &crystal, place_key, i);
		describe_spot(scene, spot_key, i, &scene->spot[i]);
	}
}

/* Expected photons of the spot in the image pixel whose middle is so far from its own. */
static double photons_at(const struct sl_scene *scene, const struct sl_spot *s, double down,
			 double right)
{
	const struct sl_layout *l = &scene->geometry.layout;
	double y = s->row - l->beam_row, x = s->column - l->beam_column;
	double out = s->radius > 0 ? (down * y + right * x) / s->radius : down;
	double aside2 = square(down) + square(right) - square(out);

	return s->peak * sl_exp(-square(out / s->radial) / 2 - aside2 / (2 * square(s->across)));
}

/* Whether it can reach the module at all. */
static bool is_near(const struct sl_scene *scene, uint32_t module, const struct sl_spot *s,
		    double reach)
{
	const struct sl_layout_module *at = &scene->geometry.layout.module[module];
	uint32_t rows, columns;

	sl_layout_extent(&scene->geometry, module, &rows, &columns);
	return s->row + reach >= at->row && s->row - reach <= (double)at->row + rows &&
	       s->column + reach >= at->column && s->column - reach <= (double)at->column + columns;
}

void sl_scene_spots(struct sl_scene *scene, uint32_t exposure, uint32_t module, float *mean,
		    sl_scene_touch *touch, void *arg)
{
	sl_scene_find_spots(scene, exposure);
	for (uint32_t i = 0; i < scene->spots[exposure]; i++) {
		const struct sl_spot *s = &scene->spot[i];
		int64_t reach = (int64_t)(5 * s->radial) + 1; /* 4e-6 of the peak is left there */
		int64_t row = (int64_t)s->row, column = (int64_t)s->column;

		if (!is_near(scene, module, s, (double)reach + 1))
			continue;
		for (int64_t r = row - reach; r <= row + reach; r++)
			for (int64_t c = column - reach; c <= column + reach; c++) {
				double add = photons_at(scene, s, (double)r + 0.5 - s->row,
							(double)c + 0.5 - s->column);
				uint32_t pixel;

				if (add < 0.01 ||
				    !sl_layout_raw(&scene->geometry, module, r, c, &pixel))
					continue;
				if (mean[pixel] == 0)
					touch(arg, pixel);
				mean[pixel] += (float)add;
			}
	}
}
