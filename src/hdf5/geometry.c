/* geometry.c - a geometry to and from /entry/sluice/geometry. */
#include "hdf5/geometry.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define GROUP "/entry/sluice/geometry"

enum { PLACE = 3 }; /* row, column, turns of a module */

/* Numbers of 32 bits and their bounds: what is beyond comes from no detector. */
static const struct {
	const char *name;
	size_t offset;
	uint32_t least, most;
} counts[] = {
#define COUNT(name, field, least, most)                                 \
	{                                                               \
		name, offsetof(struct sl_geometry, field), least, most, \
	}
	COUNT("modules", modules, 1, SL_LAYOUT_MODULES),
	COUNT("rows", rows, 1, 1 << 20),
	COUNT("columns", columns, 1, 1 << 20),
	COUNT("bit_depth", bit_depth, 0, 64),
	COUNT("cells", cells, 0, 1 << 16),
	COUNT("image_rows", layout.rows, 1, 1 << 20),
	COUNT("image_columns", layout.columns, 1, 1 << 20),
	COUNT("asic_rows", layout.asic_rows, 0, 1 << 20),
	COUNT("asic_columns", layout.asic_columns, 0, 1 << 20),
	COUNT("asic_gap", layout.gap, 0, 1 << 16),
};

static const struct {
	const char *name, *units;
	size_t offset;
	bool may_be_nan; /* it is not known */
} reals[] = {
#define REAL(name, units, field, nan)                                  \
	{                                                              \
		name, units, offsetof(struct sl_geometry, field), nan, \
	}
	REAL("pixel_size", "m", pixel_size_m, false),
	REAL("sensor_thickness", "m", sensor_thickness_m, false),
	REAL("distance", "m", distance_m, false),
	REAL("photon_energy", "keV", photon_energy_keV, false),
	REAL("beam_row", "pixel", layout.beam_row, true),
	REAL("beam_column", "pixel", layout.beam_column, true),
};

enum { COUNTS = sizeof(counts) / sizeof(counts[0]), REALS = sizeof(reals) / sizeof(reals[0]) };

static uint32_t *count_of(struct sl_geometry *geometry, size_t i)
{
	return (uint32_t *)(void *)((char *)geometry + counts[i].offset);
}

static double *real_of(struct sl_geometry *geometry, size_t i)
{
	return (double *)(void *)((char *)geometry + reals[i].offset);
}

static const char *path_of(const char *name, char path[96])
{
	snprintf(path, 96, GROUP "/%s", name);
	return path;
}

/* [planes][corner, down, right][x, y, z]: struct sl_plane as it is. */
static void write_planes(struct sl_h5 *file, const struct sl_geometry *geometry)
{
	const struct sl_h5_shape shape = {SL_H5_F64, 3, {geometry->planes, 3, 3}};
	char path[96];

	_Static_assert(sizeof(struct sl_plane) == 9 * sizeof(double), "three vectors");
	if (!geometry->planes)
		return;
	sl_h5_write(file, path_of("plane", path), &shape, geometry->plane);
	sl_h5_attribute_text(file, path, "long_name",
			     "corner of the image, one pixel down, one to the right: metres from "
			     "the sample; of all, of each module, or of each part of each module");
}

void sl_geometry_hdf5_write(struct sl_h5 *file, const struct sl_geometry *geometry)
{
	const struct sl_h5_shape shape = {SL_H5_U32, 2, {geometry->modules, PLACE}};
	uint32_t place[SL_LAYOUT_MODULES][PLACE] = {{0}};
	char path[96];

	if (geometry->modules > SL_LAYOUT_MODULES)
		return;
	sl_h5_group(file, GROUP, "NXcollection");
	sl_h5_write_text(file, path_of("detector", path), geometry->detector);
	sl_h5_write_text(file, path_of("sensor_material", path), geometry->sensor_material);
	for (size_t i = 0; i < COUNTS; i++)
		sl_h5_write_u64(file, path_of(counts[i].name, path),
				*count_of((struct sl_geometry *)geometry, i));
	for (size_t i = 0; i < REALS; i++)
		sl_h5_write_f64(file, path_of(reals[i].name, path),
				*real_of((struct sl_geometry *)geometry, i), reals[i].units);
	for (uint32_t m = 0; m < geometry->modules; m++) {
		const struct sl_layout_module *at = &geometry->layout.module[m];

		place[m][0] = at->row;
		place[m][1] = at->column;
		place[m][2] = at->turns;
	}
	sl_h5_write(file, path_of("module", path), &shape, place);
	sl_h5_attribute_text(file, path, "long_name",
			     "row and column of a module's place in the image, quarter turns");
	write_planes(file, geometry);
}

static int refuse(const char *file, const char *name)
{
	sl_error("%s: " GROUP "/%s is missing, or no detector has such a value; set "
		 "detector.origin to play the images by that name's geometry",
		 file, name);
	return -EINVAL;
}

static int read_counts(struct sl_h5 *file, const char *path, struct sl_geometry *geometry)
{
	char name[96];

	for (size_t i = 0; i < COUNTS; i++) {
		uint64_t value;

		if (sl_h5_read(file, path_of(counts[i].name, name), SL_H5_U64, &value,
			       sizeof(value)) ||
		    value < counts[i].least || value > counts[i].most)
			return refuse(path, counts[i].name);
		*count_of(geometry, i) = (uint32_t)value;
	}
	return 0;
}

static int read_reals(struct sl_h5 *file, const char *path, struct sl_geometry *geometry)
{
	char name[96];

	for (size_t i = 0; i < REALS; i++) {
		double value;

		if (sl_h5_read(file, path_of(reals[i].name, name), SL_H5_F64, &value,
			       sizeof(value)) ||
		    (reals[i].may_be_nan ? isinf(value) : !isfinite(value) || value < 0))
			return refuse(path, reals[i].name);
		*real_of(geometry, i) = value;
	}
	return 0;
}

static int read_places(struct sl_h5 *file, const char *path, struct sl_geometry *geometry)
{
	uint32_t place[SL_LAYOUT_MODULES][PLACE];
	char name[96];

	if (sl_h5_read(file, path_of("module", name), SL_H5_U32, place,
		       geometry->modules * sizeof(place[0])))
		return refuse(path, "module");
	for (uint32_t m = 0; m < geometry->modules; m++) {
		if (place[m][2] > 3)
			return refuse(path, "module");
		geometry->layout.module[m] =
			(struct sl_layout_module){place[m][0], place[m][1], place[m][2]};
	}
	return 0;
}

static bool are_finite(const double *number, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		if (!isfinite(number[i]))
			return false;
	return true;
}

static int read_planes(struct sl_h5 *file, const char *path, struct sl_geometry *geometry,
		       struct sl_plane **plane)
{
	struct sl_h5_shape shape;
	char name[96];
	size_t bytes;
	uint64_t n;

	if (sl_h5_describe(file, path_of("plane", name), &shape))
		return 0;
	n = shape.dim[0];
	if (shape.rank != 3 || shape.dim[1] != 3 || shape.dim[2] != 3 ||
	    (n != 1 && n != geometry->modules &&
	     n != (uint64_t)geometry->modules * sl_layout_pieces(geometry)))
		return refuse(path, "plane");
	bytes = n * sizeof(**plane);
	*plane = malloc(bytes);
	if (!*plane)
		return -ENOMEM;
	if (sl_h5_read(file, name, SL_H5_F64, *plane, bytes) ||
	    !are_finite((const double *)*plane, n * 9)) {
		free(*plane);
		*plane = NULL;
		return refuse(path, "plane");
	}
	geometry->plane = *plane;
	geometry->planes = (uint32_t)n;
	return 0;
}

int sl_geometry_hdf5_read(struct sl_h5 *file, const char *path, struct sl_geometry *geometry,
			  struct sl_plane **plane)
{
	struct sl_geometry g = {.modules = 0};
	struct sl_h5_shape shape;
	char name[96];
	int err;

	if (sl_h5_describe(file, path_of("modules", name), &shape))
		return -ENOENT;
	if (sl_h5_read_text(file, path_of("detector", name), 0, g.detector, sizeof(g.detector)) ||
	    sl_h5_read_text(file, path_of("sensor_material", name), 0, g.sensor_material,
			    sizeof(g.sensor_material)))
		return refuse(path, "detector");
	err = read_counts(file, path, &g);
	if (!err)
		err = read_reals(file, path, &g);
	*plane = NULL;
	if (!err)
		err = read_places(file, path, &g);
	if (!err)
		err = read_planes(file, path, &g, plane);
	if (!err)
		*geometry = g;
	return err;
}
