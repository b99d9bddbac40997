/* refine.c - from options and files to planes. */
#include "geometry/refine.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "geometry/geom.h"
#include "geometry/mask.h"
#include "geometry/poni.h"
#include "geometry/text.h"

/* Metres: planes that are nearer to each other than this are one. */
#define SAME	  1e-8
#define KEV_METRE 12.398419843320026e-10

const struct sl_option sl_refine_options[] = {
	SL_STRING(struct sl_refine_options, file, "",
		  "geometry file: pyFAI's (.poni) or CrystFEL's (.geom); empty: none"),
	SL_F64(struct sl_refine_options, distance_m, 0, 0, 1000, "m",
	       "from the sample to the image's plane, along its normal; in the place of the "
	       "file's; 0: as the file or the detector says"),
	SL_F64(struct sl_refine_options, beam_row, -1000000, -1000000, 1000000, "pixels",
	       "where the beam hits the image, from its upper edge; -1000000: as the detector "
	       "says"),
	SL_F64(struct sl_refine_options, beam_column, -1000000, -1000000, 1000000, "pixels",
	       "likewise, from its left edge"),
	SL_F64(struct sl_refine_options, rot1, 0, -3.2, 3.2, "rad",
	       "tilt of the detector, as pyFAI has it: about the vertical"),
	SL_F64(struct sl_refine_options, rot2, 0, -3.2, 3.2, "rad",
	       "likewise, about the horizontal"),
	SL_F64(struct sl_refine_options, rot3, 0, -3.2, 3.2, "rad", "likewise, about the beam"),
	SL_STRING(struct sl_refine_options, mask, "",
		  "pixels that are not to be used, not 0: HDF5 (FILE or FILE:/DATASET), npy, TIFF "
		  "or EDF"),
	SL_OPTION_END,
};

const struct sl_option sl_refine_module_options[] = {
	SL_U32(struct sl_refine_module, module, 0, 0, 63, "", "which one"),
	SL_F64(struct sl_refine_module, right_m, 0, -1, 1, "m", "shift along the image's rows"),
	SL_F64(struct sl_refine_module, down_m, 0, -1, 1, "m", "shift down its columns"),
	SL_F64(struct sl_refine_module, away_m, 0, -1, 1, "m", "shift away from the sample"),
	SL_F64(struct sl_refine_module, rot_right, 0, -1, 1, "rad",
	       "turn about the first of these directions, through the module's middle"),
	SL_F64(struct sl_refine_module, rot_down, 0, -1, 1, "rad", "about the second"),
	SL_F64(struct sl_refine_module, rot_away, 0, -1, 1, "rad", "about the third"),
	SL_OPTION_END,
};

static bool has_beam(const struct sl_refine_options *o)
{
	return o->beam_row > SL_REFINE_NO_BEAM || o->beam_column > SL_REFINE_NO_BEAM;
}

static bool has_tilt(const struct sl_refine_options *o)
{
	return o->rot1 != 0 || o->rot2 != 0 || o->rot3 != 0;
}

static int refuse(const char *why)
{
	sl_error("geometry: %s", why);
	return -EINVAL;
}

static int check(const struct sl_refine_options *o, struct sl_geometry *g)
{
	char why[160];

	if (g->items)
		return refuse("this detector sends events, which are no image");
	if (o->file[0] && (has_beam(o) || has_tilt(o)))
		return refuse("beam and tilt are in the file: beam_row, beam_column, rot1, rot2 "
			      "and rot3 must not be set");
	if (g->planes && !o->file[0] && (has_tilt(o) || o->modules) &&
	    !(o->distance_m > 0 && o->beam_row > SL_REFINE_NO_BEAM &&
	      o->beam_column > SL_REFINE_NO_BEAM))
		return refuse("the recording has tilts or places of modules of its own, from which "
			      "these cannot be counted: leave the section out, or set distance_m, "
			      "beam_row and beam_column with it");
	sl_layout_resolve(g, &g->layout);
	if (sl_layout_check(g, why, sizeof(why)))
		return refuse(why);
	if (!(g->pixel_size_m > 0))
		return refuse("the detector has no pixel size");
	for (unsigned i = 0; i < o->modules; i++)
		if (o->module[i].module >= g->modules) {
			sl_error("geometry.modules: there is no module %u; the detector has 0 to "
				 "%u",
				 o->module[i].module, g->modules - 1);
			return -EINVAL;
		}
	return 0;
}

/* ---- files ---- */

/* The detector's own energy counts where it has one. */
static void take_energy(const char *file, double keV, struct sl_geometry *g)
{
	if (!(keV > 0))
		return;
	if (g->photon_energy_keV > 0 &&
	    fabs(keV - g->photon_energy_keV) > 1e-3 * g->photon_energy_keV)
		sl_warn("%s is of photons of %.6g keV; the experiment's have %.6g keV, which "
			"counts",
			file, keV, g->photon_energy_keV);
	if (!(g->photon_energy_keV > 0))
		g->photon_energy_keV = keV;
}

static int read_poni(const struct sl_refine_options *o, const char *text, size_t bytes,
		     struct sl_geometry *g, struct sl_plane *plane)
{
	struct sl_poni_file poni;
	int err = sl_poni_parse(o->file, text, bytes, &poni);

	if (err)
		return err;
	if (o->distance_m > 0)
		poni.poni.distance = o->distance_m;
	err = sl_poni_plane(o->file, &poni, g, plane);
	if (!err && poni.wavelength_m > 0)
		take_energy(o->file, KEV_METRE / poni.wavelength_m, g);
	g->planes = 1;
	return err;
}

static int read_geom(const struct sl_refine_options *o, const char *text, size_t bytes,
		     struct sl_geometry *g, struct sl_plane *plane, uint8_t *mask)
{
	struct sl_geom geom;
	int err = sl_geom_parse(o->file, text, bytes, &geom);

	if (!err)
		err = sl_geom_planes(o->file, &geom, o->distance_m, g, plane, mask);
	if (!err && geom.has_mask)
		sl_warn("%s names a mask in a file, which is not read; geometry.mask takes one",
			o->file);
	if (!err)
		take_energy(o->file, geom.energy_keV, g);
	g->planes = g->modules * sl_layout_pieces(g);
	sl_geom_free(&geom);
	return err;
}

static bool ends_with(const char *text, const char *end)
{
	size_t a = strlen(text), b = strlen(end);

	return a >= b && !strcmp(text + a - b, end);
}

static int read_file(const struct sl_refine_options *o, struct sl_geometry *g,
		     struct sl_refined *refined)
{
	bool is_poni = ends_with(o->file, ".poni");
	size_t bytes;
	char *text;
	int err;

	if (!is_poni && !ends_with(o->file, ".geom")) {
		sl_error("geometry.file: '%s': the name must end with .poni (pyFAI) or .geom "
			 "(CrystFEL)",
			 o->file);
		return -EINVAL;
	}
	err = sl_text_read(o->file, "geometry.file", &text, &bytes);
	if (err)
		return err;
	err = is_poni ? read_poni(o, text, bytes, g, refined->plane)
		      : read_geom(o, text, bytes, g, refined->plane, refined->mask);
	free(text);
	return err;
}

/* ---- options ---- */

static int take_options(const struct sl_refine_options *o, struct sl_geometry *g,
			struct sl_plane *plane)
{
	struct sl_layout *l = &g->layout;
	struct sl_poni poni = {.rot1 = o->rot1, .rot2 = o->rot2, .rot3 = o->rot3};
	double row, column;

	g->distance_m = o->distance_m > 0 ? o->distance_m : g->distance_m;
	l->beam_row = o->beam_row > SL_REFINE_NO_BEAM ? o->beam_row : l->beam_row;
	l->beam_column = o->beam_column > SL_REFINE_NO_BEAM ? o->beam_column : l->beam_column;
	if (!has_tilt(o) && !o->modules)
		return 0;
	if (!(g->distance_m > 0))
		return refuse("a tilt, or shifts of modules, need a distance: set "
			      "geometry.distance_m");
	poni.distance = g->distance_m;
	/* Where the beam hits moves as the point of normal incidence does. */
	sl_plane_from_poni(&poni, g->pixel_size_m, g->pixel_size_m, plane);
	sl_plane_beam(plane, &row, &column);
	if (!isfinite(row))
		return refuse("so tilted, the beam does not hit the image's plane: a PONI file "
			      "can say where it is");
	poni.poni1 = (l->beam_row - row) * g->pixel_size_m;
	poni.poni2 = (l->beam_column - column) * g->pixel_size_m;
	sl_plane_from_poni(&poni, g->pixel_size_m, g->pixel_size_m, plane);
	g->planes = 1;
	return 0;
}

/* Three directions of a plane: along its rows, down its columns, away from the sample. */
static void axes_of(const struct sl_plane *p, double axis[3][3])
{
	double sign;

	memcpy(axis[0], p->right, sizeof(axis[0]));
	memcpy(axis[1], p->down, sizeof(axis[1]));
	sl_vector_cross(p->right, p->down, axis[2]);
	sign = sl_vector_dot(axis[2], p->corner) < 0 ? -1 : 1;
	for (int k = 0; k < 3; k++) {
		double length = sl_vector_length(axis[k]) * (k == 2 ? sign : 1);

		for (int i = 0; i < 3; i++)
			axis[k][i] /= length;
	}
}

/* About the module's middle, which then is shifted. */
static void move_plane(const struct sl_refine_module *m, double row, double column,
		       struct sl_plane *p)
{
	double axis[3][3], turn[3], shift[3], middle[3];

	axes_of(p, axis);
	for (int i = 0; i < 3; i++) {
		middle[i] = p->corner[i] + row * p->down[i] + column * p->right[i];
		turn[i] = m->rot_right * axis[0][i] + m->rot_down * axis[1][i] +
			  m->rot_away * axis[2][i];
		shift[i] = m->right_m * axis[0][i] + m->down_m * axis[1][i] +
			   m->away_m * axis[2][i];
	}
	sl_vector_rotate(turn, p->down);
	sl_vector_rotate(turn, p->right);
	for (int i = 0; i < 3; i++)
		p->corner[i] = middle[i] + shift[i] - row * p->down[i] - column * p->right[i];
}

static void move_modules(const struct sl_refine_options *o, struct sl_geometry *g,
			 struct sl_plane *plane)
{
	uint32_t each;

	if (!o->modules)
		return;
	for (uint32_t m = g->modules; g->planes == 1 && m-- > 1;)
		plane[m] = plane[0];
	g->planes = g->planes == 1 ? g->modules : g->planes;
	each = g->planes / g->modules;
	for (unsigned i = 0; i < o->modules; i++) {
		const struct sl_refine_module *m = &o->module[i];
		const struct sl_layout_module *at = &g->layout.module[m->module];
		uint32_t rows, columns;

		sl_layout_extent(g, m->module, &rows, &columns);
		for (uint32_t k = 0; k < each; k++)
			move_plane(m, at->row + rows / 2.0, at->column + columns / 2.0,
				   &plane[m->module * each + k]);
	}
}

/* ---- together ---- */

static bool is_same(const struct sl_geometry *g, const struct sl_plane *a, const struct sl_plane *b)
{
	for (int corner = 0; corner < 4; corner++)
		for (int i = 0; i < 3; i++) {
			double row = corner & 1 ? g->layout.rows : 0;
			double column = corner & 2 ? g->layout.columns : 0;

			if (fabs(a->corner[i] - b->corner[i] + row * (a->down[i] - b->down[i]) +
				 column * (a->right[i] - b->right[i])) > SAME)
				return false;
		}
	return true;
}

/* As few planes as there are. */
static void merge(struct sl_geometry *g, struct sl_plane *plane)
{
	uint32_t pieces = g->planes / g->modules, i;

	for (i = 1; i < g->planes && is_same(g, &plane[0], &plane[i]);)
		i++;
	if (i >= g->planes) {
		g->planes = 1;
		return;
	}
	for (i = 0; i < g->planes; i++)
		if (!is_same(g, &plane[i / pieces * pieces], &plane[i]))
			return;
	for (i = 0; i < g->modules; i++)
		plane[i] = plane[i * pieces];
	g->planes = g->modules;
}

static int conclude(struct sl_geometry *g, struct sl_plane *plane)
{
	struct sl_plane mean;
	double worst;

	if (!g->planes)
		return 0;
	g->plane = plane;
	if (g->planes > 1)
		merge(g, plane);
	sl_plane_fit(g, &mean, &worst);
	g->distance_m = sl_plane_distance(&mean);
	sl_plane_beam(&mean, &g->layout.beam_row, &g->layout.beam_column);
	return g->distance_m > 0 ? 0 : refuse("the sample is in the detector's plane");
}

static bool any_set(const uint8_t *mask, uint64_t pixels)
{
	for (uint64_t i = 0; i < pixels; i++)
		if (mask[i])
			return true;
	return false;
}

int sl_refine(const struct sl_refine_options *o, struct sl_geometry *g, struct sl_refined *refined)
{
	bool places = o->file[0] || o->distance_m > 0 || has_beam(o) || has_tilt(o) || o->modules;
	uint64_t pixels = g->modules * sl_geometry_pixels(g);
	int err;

	sl_refined_free(refined);
	if (!places && !o->mask[0])
		return 0;
	err = check(o, g);
	if (err)
		return err;
	refined->plane = calloc((size_t)g->modules * sl_layout_pieces(g), sizeof(struct sl_plane));
	refined->mask = calloc(pixels, 1);
	if (!refined->plane || !refined->mask)
		return -ENOMEM;
	if (places) { /* in the place of what the detector says */
		g->plane = NULL;
		g->planes = 0;
		err = o->file[0] ? read_file(o, g, refined) : take_options(o, g, refined->plane);
	}
	if (places && !err) {
		move_modules(o, g, refined->plane);
		err = conclude(g, refined->plane);
	}
	if (!err && o->mask[0])
		err = sl_mask_read(o->mask, g, refined->mask);
	if (!err && !any_set(refined->mask, pixels)) {
		free(refined->mask);
		refined->mask = NULL;
	}
	return err;
}

void sl_refined_free(struct sl_refined *refined)
{
	free(refined->plane);
	free(refined->mask);
	*refined = (struct sl_refined){.plane = NULL};
}
