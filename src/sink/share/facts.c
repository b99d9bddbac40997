/* facts.c - arrays that tell followers what the others mean, so that they need no other file: axes
 * of profiles, where the image lies in space, where rows of lists are in the image. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geometry/plane.h"
#include "sink/share/arrays.h"

enum { AXIS_BYTES = 64 << 10, LIST_COLUMNS = 4 };

/* ---- axes ---- */

/* A stage's constant NAME_AXIS is about its result NAME. */
static bool is_about(const struct sl_constant *constant, const struct sl_shared *s)
{
	for (uint32_t i = 0; i < s->arrays; i++) {
		size_t n = strlen(s->share[i].name);

		if (s->array[i].from == SL_SHARED_RESULT &&
		    !strncmp(constant->shape.name, s->share[i].name, n) &&
		    constant->shape.name[n] == '_')
			return true;
	}
	return false;
}

/* "where the bins are (1/nm)": what is in the brackets. */
static void copy_unit(const char *doc, char *unit, size_t bytes)
{
	const char *from = doc ? strrchr(doc, '(') : NULL;

	snprintf(unit, bytes, "%s", from ? from + 1 : "");
	unit[strcspn(unit, ")")] = 0;
}

static void add_axes(struct sl_shared *s, const struct sl_env *env)
{
	for (uint32_t i = 0; i < env->constants; i++) {
		const struct sl_constant *c = &env->constant[i];
		struct sl_share_array *array;

		if (c->shape.rank != 1 || sl_shape_bytes(&c->shape) > AXIS_BYTES ||
		    !is_about(c, s) || sl_shared_find(s, c->shape.name) >= 0)
			continue;
		array = sl_shared_add(
			s, c->shape.name, c->shape.dtype,
			(struct sl_shared_array){.from = SL_SHARED_CONSTANT, .constant = c->data});
		if (!array)
			return;
		array->dim[0] = c->shape.dim[0];
		copy_unit(c->shape.doc, array->unit, sizeof(array->unit));
	}
}

/* ---- the image in space ---- */

static bool has_assembled_image(const struct sl_shared *s)
{
	for (uint32_t i = 0; i < s->arrays; i++)
		if (s->array[i].mosaic)
			return true;
	return false;
}

static void add_numbers(struct sl_shared *s, const char *name, const double *data, uint32_t n,
			const char *unit)
{
	struct sl_share_array *array;

	if (sl_shared_find(s, name) >= 0)
		return;
	array = sl_shared_add(
		s, name, SL_F64,
		(struct sl_shared_array){.from = SL_SHARED_CONSTANT, .constant = data});
	if (!array)
		return;
	array->dim[0] = n;
	snprintf(array->unit, sizeof(array->unit), "%s", unit);
}

static void add_plane(struct sl_shared *s)
{
	const struct sl_geometry *g = &s->geometry;
	struct sl_plane plane;
	double worst_m;

	if (!(g->pixel_size_m > 0) || !(g->distance_m > 0) ||
	    (!g->planes && !(isfinite(g->layout.beam_row) && isfinite(g->layout.beam_column))))
		return;
	sl_plane_fit(g, &plane, &worst_m);
	memcpy(s->plane, plane.corner, sizeof(plane.corner));
	memcpy(s->plane + 3, plane.down, sizeof(plane.down));
	memcpy(s->plane + 6, plane.right, sizeof(plane.right));
	s->plane[9] = g->layout.rows;
	s->plane[10] = g->layout.columns;
	add_numbers(s, "image_plane", s->plane, 11, "m");
	s->energy_keV = g->photon_energy_keV;
	if (s->energy_keV > 0)
		add_numbers(s, "photon_energy", &s->energy_keV, 1, "keV");
}

/* ---- positions of lists ---- */

static const char *const lists[][2] = {{"peaks", "peaks_in_image"}, {"spots", "spots_in_image"}};

static void add_positions(struct sl_shared *s)
{
	for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++) {
		int list = sl_shared_find(s, lists[k][0]);
		const struct sl_share_array *from = &s->share[list < 0 ? 0 : list];
		struct sl_share_array *array;

		if (list < 0 || !from->ragged || from->rank != 2 || from->dim[1] < LIST_COLUMNS ||
		    strcmp(from->type, "<f4") != 0 || sl_shared_find(s, lists[k][1]) >= 0)
			continue;
		array = sl_shared_add(s, lists[k][1], SL_F32,
				      (struct sl_shared_array){.from = SL_SHARED_POSITIONS,
							       .list = (uint32_t)list});
		if (!array)
			return;
		array->rank = 2;
		array->ragged = 1;
		array->dim[0] = from->dim[0];
		array->dim[1] = 2;
		snprintf(array->unit, sizeof(array->unit), "pixels");
	}
}

/* From a point of a module's raw pixels to one of the image. */
static void place(const struct sl_geometry *g, uint32_t module, float row, float column,
		  float to[2])
{
	struct sl_layout_piece piece;
	double down, right;
	uint32_t pixel;

	pixel = (uint32_t)row * g->columns + (uint32_t)column;
	sl_layout_piece(g, module, sl_layout_piece_of(g, pixel), &piece);
	down = (double)row - piece.first_row;
	right = (double)column - piece.first_column;
	switch (g->layout.module[module].turns % 4) {
	case 0:
		to[0] = (float)(piece.row + down);
		to[1] = (float)(piece.column + right);
		break;
	case 1: /* to the right in the module is down in the image */
		to[0] = (float)(piece.row + right);
		to[1] = (float)(piece.column - down);
		break;
	case 2:
		to[0] = (float)(piece.row - down);
		to[1] = (float)(piece.column - right);
		break;
	default:
		to[0] = (float)(piece.row - right);
		to[1] = (float)(piece.column + down);
	}
}

void sl_shared_positions(const struct sl_shared *s, const struct sl_array *list, uint32_t rows,
			 float *to)
{
	const struct sl_geometry *g = &s->geometry;
	const uint32_t columns = list->shape.dim[1];
	const float *from = list->host;

	for (uint32_t i = 0; i < rows; i++, from += columns, to += 2) {
		float module = from[0], row = from[1], column = from[2];

		if (!(module >= 0 && module < (float)g->modules && row >= 0 &&
		      row < (float)g->rows && column >= 0 && column < (float)g->columns)) {
			to[0] = to[1] = NAN;
		} else if (s->assembled) {
			place(g, (uint32_t)module, row, column, to);
		} else {
			to[0] = module * (float)g->rows + row;
			to[1] = column;
		}
	}
}

void sl_shared_add_facts(struct sl_shared *s, const struct sl_env *env)
{
	add_axes(s, env);
	if (has_assembled_image(s))
		add_plane(s);
	if (!env->geometry->items)
		add_positions(s);
}
