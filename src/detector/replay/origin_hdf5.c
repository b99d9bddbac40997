/* origin_hdf5.c - what a file says of its detector.
 *
 * Fields that this program did not write are taken where they are single numbers with a unit that
 * is known; one that is not is left out, with a warning, rather than keep the images from being
 * played. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "detector/replay/origin.h"
#include "hdf5/geometry.h"

#define DETECTOR     "/entry/instrument/detector"
#define BEAM	     "/entry/instrument/beam"
#define KEV_ANGSTROM 12.398419843320026 /* h c; exact in the SI since 2019 */

/* Pixels of a mask, at most: 4 GiB of it. */
enum { MASK_SIDE = 1 << 15 };

/* What a unit is in metres, keV or pixels; "" is the first of its kind. */
static const struct unit {
	const char *name;
	char kind; /* of length, energy, pixel */
	double value;
} units[] = {
	{"m", 'l', 1},
	{"mm", 'l', 1e-3},
	{"um", 'l', 1e-6},
	{"\xc2\xb5m", 'l', 1e-6},
	{"nm", 'l', 1e-9},
	{"A", 'l', 1e-10},
	{"angstrom", 'l', 1e-10},
	{"Angstrom", 'l', 1e-10},
	{"\xc3\x85", 'l', 1e-10},
	{"keV", 'e', 1},
	{"eV", 'e', 1e-3},
	{"pixel", 'p', 1},
	{"pixels", 'p', 1},
	{"px", 'p', 1},
};

/* A single number in the unit of its kind; NaN: it is not there. */
static double number(struct sl_h5 *file, const char *path, char kind, double usual)
{
	struct sl_h5_shape shape;
	char name[32] = "";
	double value, unit = usual;

	if (sl_h5_describe(file, path, &shape))
		return NAN;
	if (sl_h5_elements(&shape, 0) != 1 || shape.type == SL_H5_TEXT ||
	    sl_h5_read(file, path, SL_H5_F64, &value, sizeof(value)) || !isfinite(value))
		return NAN;
	if (sl_h5_read_attribute_text(file, path, "units", name, sizeof(name)) || !name[0])
		return value * unit;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (units[i].kind == kind && !strcmp(units[i].name, name))
			return value * units[i].value;
	sl_warn("replay: %s is in '%s', a unit that is not known here: it is not used", path, name);
	return NAN;
}

/* The first of these that is there. */
static double first_number(struct sl_h5 *file, const char *const *paths, char kind, double usual)
{
	for (; *paths; paths++) {
		double value = number(file, *paths, kind, usual);

		if (value > 0)
			return value;
	}
	return 0;
}

static void read_energy(struct sl_h5 *file, struct sl_geometry *g)
{
	static const char *const wavelength[] = {BEAM "/incident_wavelength",
						 "/entry/sample/beam/incident_wavelength", NULL};
	static const char *const energy[] = {BEAM "/incident_energy",
					     DETECTOR "/detectorSpecific/photon_energy", NULL};
	double length_m = first_number(file, wavelength, 'l', 1e-10);

	g->photon_energy_keV = length_m > 0 ? KEV_ANGSTROM / (length_m * 1e10)
					    : first_number(file, energy, 'e', 1e-3);
}

static void read_figures(struct sl_h5 *file, struct sl_geometry *g)
{
	static const char *const distance[] = {DETECTOR "/distance", DETECTOR "/detector_distance",
					       NULL};
	static const char *const pixel[] = {DETECTOR "/x_pixel_size", NULL};
	static const char *const thickness[] = {DETECTOR "/sensor_thickness", NULL};
	double row = number(file, DETECTOR "/beam_center_y", 'p', 1);
	double column = number(file, DETECTOR "/beam_center_x", 'p', 1);

	g->distance_m = first_number(file, distance, 'l', 1);
	g->pixel_size_m = first_number(file, pixel, 'l', 1);
	g->sensor_thickness_m = first_number(file, thickness, 'l', 1);
	/* Some writers put 0 for a beam that they do not know. */
	if (row != 0 && column != 0) {
		g->layout.beam_row = row;
		g->layout.beam_column = column;
	}
	read_energy(file, g);
}

static void read_material(struct sl_h5 *file, struct sl_geometry *g)
{
	const char *path = DETECTOR "/sensor_material";
	struct sl_h5_shape shape;
	char name[64];

	if (sl_h5_describe(file, path, &shape) || shape.type != SL_H5_TEXT ||
	    sl_h5_read_text(file, path, 0, name, sizeof(name)))
		return;
	if (!strcmp(name, "Silicon"))
		strcpy(name, "Si");
	if (strlen(name) < sizeof(g->sensor_material))
		strcpy(g->sensor_material, name);
}

static int read_mask(struct sl_h5 *file, struct sl_origin_file *from)
{
	static const char *const paths[] = {DETECTOR "/pixel_mask",
					    DETECTOR "/detectorSpecific/pixel_mask"};
	struct sl_h5_shape shape;
	const char *path = paths[0];
	size_t bytes;

	/* Of modules one below the other it has three dimensions; the second has two. */
	if (sl_h5_describe(file, path, &shape) || shape.rank == 3) {
		path = paths[1];
		if (sl_h5_describe(file, path, &shape))
			return 0;
	}
	if (shape.rank != 2 || shape.type == SL_H5_TEXT || !shape.dim[0] || !shape.dim[1] ||
	    shape.dim[0] > MASK_SIDE * 4 || shape.dim[1] > MASK_SIDE) {
		sl_warn("replay: %s is no image: it is not used", path);
		return 0;
	}
	bytes = shape.dim[0] * shape.dim[1] * sizeof(*from->mask);
	from->mask = malloc(bytes);
	if (!from->mask)
		return -ENOMEM;
	from->mask_rows = (uint32_t)shape.dim[0];
	from->mask_columns = (uint32_t)shape.dim[1];
	return sl_h5_read(file, path, SL_H5_U32, from->mask, bytes);
}

int sl_origin_hdf5(const char *path, struct sl_origin_file *from)
{
	struct sl_h5 *file;
	char why[160];
	int err = sl_h5_open(path, &file);

	if (err)
		return err;
	err = sl_geometry_hdf5_read(file, path, &from->geometry, &from->plane);
	from->laid_out = !err;
	if (!err && sl_layout_check(&from->geometry, why, sizeof(why))) {
		sl_error("%s: /entry/sluice/geometry is no layout: %s", path, why);
		err = -EINVAL;
	}
	if (err == -ENOENT) {
		err = 0;
		read_figures(file, &from->geometry);
		read_material(file, &from->geometry);
	}
	if (!err)
		err = read_mask(file, from);
	sl_h5_close(file);
	return err;
}
