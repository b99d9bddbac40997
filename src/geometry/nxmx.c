/* nxmx.c - parts of a stored image, read back. */
#include "geometry/nxmx.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "geometry/plane.h"
#include "hdf5/file.h"
#include "hdf5/geometry.h"

#define DETECTOR "/entry/instrument/detector"
#define KEV_A	 12.398419843320026

enum { PARTS_MOST = 4096, CHAIN_MOST = 16 };

struct reader {
	struct sl_h5 *file;
	const char *path;
	struct sl_nxmx_geometry *out;
};

static double number(const struct reader *r, const char *path, double otherwise)
{
	double value;

	return sl_h5_read(r->file, path, SL_H5_F64, &value, sizeof(value)) ? otherwise : value;
}

static int refuse(const struct reader *r, const char *object, const char *why)
{
	sl_error("%s: %s: %s", r->path, object, why);
	return -EINVAL;
}

/* The translation of one transformation, and the name of what it is relative to. */
static int read_step(const struct reader *r, const char *axis, double step[3], char *next,
		     size_t bytes)
{
	double length, vector[3], offset[3] = {0, 0, 0};
	char type[32] = "";

	if (sl_h5_read(r->file, axis, SL_H5_F64, &length, sizeof(length)) ||
	    sl_h5_read_attribute(r->file, axis, "vector", SL_H5_F64, vector, sizeof(vector)))
		return refuse(r, axis, "has no length or no vector");
	sl_h5_read_attribute(r->file, axis, "offset", SL_H5_F64, offset, sizeof(offset));
	sl_h5_read_attribute_text(r->file, axis, "transformation_type", type, sizeof(type));
	if (strcmp(type, "translation") != 0)
		return refuse(r, axis, "is no translation: only those are known here");
	if (sl_h5_read_attribute_text(r->file, axis, "depends_on", next, bytes))
		return refuse(r, axis, "does not say what it depends on");
	for (int i = 0; i < 3; i++)
		step[i] = length * vector[i] + offset[i];
	return 0;
}

/* Where a module begins: along the chain to the sample. */
static int read_origin(const struct reader *r, const char *axis, double origin[3])
{
	char name[256], next[256];
	int err = 0;

	memset(origin, 0, 3 * sizeof(*origin));
	snprintf(name, sizeof(name), "%s", axis);
	for (int i = 0; i < CHAIN_MOST && !err && strcmp(name, ".") != 0; i++) {
		double step[3];

		err = read_step(r, name, step, next, sizeof(next));
		for (int k = 0; k < 3 && !err; k++)
			origin[k] += step[k];
		snprintf(name, sizeof(name), "%s", next);
	}
	return err;
}

static int read_direction(const struct reader *r, const char *axis, double way[3])
{
	double length;

	if (sl_h5_read(r->file, axis, SL_H5_F64, &length, sizeof(length)) ||
	    sl_h5_read_attribute(r->file, axis, "vector", SL_H5_F64, way, 3 * sizeof(*way)))
		return refuse(r, axis, "has no length or no vector");
	for (int i = 0; i < 3; i++)
		way[i] *= length;
	return 0;
}

static int read_part(const struct reader *r, const char *group, struct sl_panel *part)
{
	uint64_t origin[2], size[2];
	char path[160];
	int err;

	snprintf(path, sizeof(path), "%s/data_origin", group);
	err = sl_h5_read(r->file, path, SL_H5_U64, origin, sizeof(origin));
	snprintf(path, sizeof(path), "%s/data_size", group);
	err = err ? err : sl_h5_read(r->file, path, SL_H5_U64, size, sizeof(size));
	if (err || origin[0] > UINT32_MAX || origin[1] > UINT32_MAX || !size[0] || !size[1] ||
	    size[0] > UINT32_MAX || size[1] > UINT32_MAX)
		return refuse(r, group, "has no data_origin and data_size of two numbers");
	*part = (struct sl_panel){.first_row = (uint32_t)origin[0],
				  .first_column = (uint32_t)origin[1],
				  .rows = (uint32_t)size[0],
				  .columns = (uint32_t)size[1]};
	snprintf(path, sizeof(path), "%s/module_offset", group);
	err = read_origin(r, path, part->origin);
	snprintf(path, sizeof(path), "%s/fast_pixel_direction", group);
	err = err ? err : read_direction(r, path, part->fast);
	snprintf(path, sizeof(path), "%s/slow_pixel_direction", group);
	return err ? err : read_direction(r, path, part->slow);
}

/* module_0, or module_00 where there are more. */
static bool find_part(const struct reader *r, uint32_t index, char *group, size_t bytes)
{
	struct sl_h5_shape shape;
	char path[160];

	for (int digits = 1; digits < 5; digits++) {
		snprintf(group, bytes, DETECTOR "/module_%0*u", digits, index);
		snprintf(path, sizeof(path), "%s/data_origin", group);
		if (!sl_h5_describe(r->file, path, &shape))
			return true;
	}
	return false;
}

static int read_parts(struct reader *r)
{
	struct sl_nxmx_geometry *g = r->out;
	char group[128];
	int err = 0;

	g->part = calloc(PARTS_MOST, sizeof(*g->part));
	if (!g->part)
		return -ENOMEM;
	while (!err && g->parts < PARTS_MOST && find_part(r, g->parts, group, sizeof(group))) {
		g->part[g->parts].module = g->parts;
		err = read_part(r, group, &g->part[g->parts]);
		g->part[g->parts].module = g->parts;
		g->parts++;
	}
	if (!err && !g->parts)
		err = refuse(r, DETECTOR, "has no module_0: this is no NXmx file of sluice");
	return err;
}

static void read_fields(struct reader *r)
{
	struct sl_nxmx_geometry *g = r->out;
	struct sl_h5_shape shape;
	double wavelength = number(r, "/entry/instrument/beam/incident_wavelength", 0);

	g->distance_m = number(r, DETECTOR "/distance", 0);
	g->pixel_size_m = number(r, DETECTOR "/x_pixel_size", 0);
	g->energy_keV = wavelength > 0 ? KEV_A / wavelength : 0;
	g->beam_row = number(r, DETECTOR "/beam_center_y", NAN);
	g->beam_column = number(r, DETECTOR "/beam_center_x", NAN);
	g->has_mask = !sl_h5_describe(r->file, DETECTOR "/pixel_mask", &shape);
	if (!sl_h5_describe(r->file, "/entry/data/data", &shape) && shape.rank == 3 &&
	    sl_h5_elements(&shape, 1) <= SL_H5_PIXELS_MOST) {
		g->rows = (uint32_t)shape.dim[1];
		g->columns = (uint32_t)shape.dim[2];
	}
	sl_h5_read_text(r->file, DETECTOR "/description", 0, g->detector, sizeof(g->detector));
}

/* Whether the images are the detector's, and how they are stored. */
static bool is_of(struct sl_h5 *file, const struct sl_geometry *g, bool *assembled)
{
	struct sl_h5_shape shape;
	bool stack;

	if (sl_h5_describe(file, "/entry/data/data", &shape) || shape.rank != 3)
		return false;
	stack = shape.dim[1] == (uint64_t)g->modules * g->rows && shape.dim[2] == g->columns;
	*assembled = !stack;
	return stack || (shape.dim[1] == g->layout.rows && shape.dim[2] == g->layout.columns);
}

int sl_nxmx_stored(const char *path, struct sl_geometry *geometry, struct sl_plane **plane,
		   bool *assembled)
{
	struct sl_h5 *file;
	char why[160];
	int err = sl_h5_open(path, &file);

	*plane = NULL;
	if (err)
		return err;
	err = sl_geometry_hdf5_read(file, path, geometry, plane);
	if (!err &&
	    (sl_layout_check(geometry, why, sizeof(why)) || !is_of(file, geometry, assembled)))
		err = -ENOENT;
	sl_h5_close(file);
	if (err) {
		free(*plane);
		*plane = NULL;
	}
	return err;
}

int sl_nxmx_geometry(const char *path, struct sl_nxmx_geometry *geometry)
{
	struct reader r = {.path = path, .out = geometry};
	int err = sl_h5_open(path, &r.file);

	*geometry = (struct sl_nxmx_geometry){.beam_row = NAN, .beam_column = NAN};
	if (err)
		return err;
	read_fields(&r);
	err = read_parts(&r);
	sl_h5_close(r.file);
	if (err)
		sl_nxmx_geometry_free(geometry);
	return err;
}
