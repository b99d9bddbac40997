/* nxmx.c - entry, instrument, detector, beam and sample, as the NeXus application definition NXmx
 * has them.
 *
 * An assembled image is one NXdetector_module. Modules that lie below each other are one each, or
 * one for every ASIC, where there are gaps between them: with its place in the stored array, and
 * its place in space, by the layout. beam_center is in pixels of the stored array; where the
 * modules lie below each other it is the pixel next to the beam. Directions are NeXus's: x to the
 * left when looking along the beam, y up, z along the beam.
 *
 * Fields that depend on the wall clock, and so differ between two runs of the same data, are
 * exactly: /entry/start_time, /entry/end_time, /entry/end_time_estimated. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "sink/nexus/nxmx.h"

#define INSTRUMENT   "/entry/instrument"
#define DETECTOR     INSTRUMENT "/detector"
#define TRANSLATION  DETECTOR "/transformations/translation"
#define KEV_ANGSTROM 12.398419843320026 /* h c; exact in the SI since 2019 */

/* correct: -32768 marks bad pixels, 32767 overload. NXmx: invalid below, invalid above. */
enum { PHOTONS_LEAST = -32767, PHOTONS_MOST = 32766 };

enum sl_h5_type sl_nxmx_type(enum sl_dtype dtype)
{
	static const enum sl_h5_type types[] = {
		[SL_U8] = SL_H5_U8,   [SL_U16] = SL_H5_U16, [SL_U32] = SL_H5_U32,
		[SL_I16] = SL_H5_I16, [SL_I32] = SL_H5_I32, [SL_F32] = SL_H5_F32,
		[SL_I64] = SL_H5_I64, [SL_F64] = SL_H5_F64,
	};

	return types[dtype];
}

static void write_i64(struct sl_h5 *file, const char *path, int64_t value)
{
	sl_h5_write(file, path, &(struct sl_h5_shape){.type = SL_H5_I64}, &value);
}

static void write_time(struct sl_h5 *file, const char *path)
{
	char text[64];

	sl_clock_iso8601(sl_clock_unix_ns(), text, sizeof(text));
	sl_h5_write_text(file, path, text);
}

/* Three components of a direction or an offset, in metres. */
struct vector {
	double x, y, z;
};

static void write_axis(struct sl_h5 *file, const char *path, double length_m, struct vector along,
		       struct vector offset, const char *depends_on)
{
	sl_h5_write_f64(file, path, length_m, "m");
	sl_h5_attribute_text(file, path, "transformation_type", "translation");
	sl_h5_attribute(file, path, "vector", SL_H5_F64, 3, &along);
	sl_h5_attribute(file, path, "offset", SL_H5_F64, 3, &offset);
	sl_h5_attribute_text(file, path, "offset_units", "m");
	sl_h5_attribute_text(file, path, "depends_on", depends_on);
}

static void write_pair(struct sl_h5 *file, const char *path, uint64_t slow, uint64_t fast)
{
	const struct sl_h5_shape shape = {SL_H5_U64, 1, {2}};
	const uint64_t pair[2] = {slow, fast};

	sl_h5_write(file, path, &shape, pair);
}

/* A part of the stored array: where it begins there, where its corner lies in the image, and how
 * often it is turned. */
struct part {
	uint32_t first_row, first_column, rows, columns, turns;
	double row, column;
};

static void write_part(struct sl_h5 *file, const struct sl_nxmx *about, uint32_t number, int digits,
		       const struct part *part)
{
	/* The way along a row for each number of quarter turns; down a column it is the next. */
	static const struct vector ways[] = {{.x = -1}, {.y = -1}, {.x = 1}, {.y = 1}};
	const struct sl_geometry *g = about->geometry;
	double size_m = g->pixel_size_m;
	struct vector origin = {.x = (g->layout.beam_column - part->column) * size_m,
				.y = (g->layout.beam_row - part->row) * size_m};
	char group[64], path[128], offset[128];

	/* Readers go by the order of names: numbers have as many digits as the last one. */
	snprintf(group, sizeof(group), DETECTOR "/module_%0*u", digits, number);
	sl_h5_group(file, group, "NXdetector_module");
	snprintf(path, sizeof(path), "%s/data_origin", group);
	write_pair(file, path, part->first_row, part->first_column);
	snprintf(path, sizeof(path), "%s/data_size", group);
	write_pair(file, path, part->rows, part->columns);
	snprintf(offset, sizeof(offset), "%s/module_offset", group);
	write_axis(file, offset, 0, ways[0], origin, TRANSLATION);
	snprintf(path, sizeof(path), "%s/fast_pixel_direction", group);
	write_axis(file, path, size_m, ways[part->turns], (struct vector){.x = 0}, offset);
	snprintf(path, sizeof(path), "%s/slow_pixel_direction", group);
	write_axis(file, path, size_m, ways[(part->turns + 1) % 4], (struct vector){.x = 0},
		   offset);
}

static void write_modules(struct sl_h5 *file, const struct sl_nxmx *about)
{
	const struct sl_geometry *g = about->geometry;
	uint32_t pieces = sl_layout_pieces(g), all = g->modules * pieces;
	int digits = 1;

	for (uint32_t n = all - 1; n >= 10; n /= 10)
		digits++;
	for (uint32_t i = 0; i < all; i++) {
		uint32_t module = i / pieces;
		struct sl_layout_piece piece;

		sl_layout_piece(g, module, i % pieces, &piece);
		write_part(file, about, i, digits,
			   &(struct part){.first_row = module * g->rows + piece.first_row,
					  .first_column = piece.first_column,
					  .rows = piece.rows,
					  .columns = piece.columns,
					  .turns = g->layout.module[module].turns,
					  .row = piece.row,
					  .column = piece.column});
	}
}

/* A stage may have made an image of another size: then nothing is known but that it is one piece,
 * and the beam is taken to hit its middle. */
static void write_geometry(struct sl_h5 *file, const struct sl_nxmx *about)
{
	const struct sl_geometry *g = about->geometry;
	struct part whole = {.rows = about->height, .columns = about->width};
	double row = about->height / 2.0, column = about->width / 2.0;

	if (about->assembled) {
		row = g->layout.beam_row;
		column = g->layout.beam_column;
		write_part(file, about, 0, 1, &whole);
	} else if (about->height == g->modules * g->rows && about->width == g->columns) {
		sl_layout_beam_in_stack(g, &row, &column);
		write_modules(file, about);
	} else {
		whole.row = g->layout.beam_row - row;
		whole.column = g->layout.beam_column - column;
		write_part(file, about, 0, 1, &whole);
	}
	if (!about->beamless) {
		sl_h5_write_f64(file, DETECTOR "/beam_center_x", column, "pixel");
		sl_h5_write_f64(file, DETECTOR "/beam_center_y", row, "pixel");
	}
}

/* Where nobody knows the beam, the file does not name a place. Its parts must lie somewhere all
 * the same: about the middle. */
static void write_places(struct sl_h5 *file, const struct sl_nxmx *about)
{
	struct sl_geometry geometry = *about->geometry;
	struct sl_nxmx known = *about;

	known.geometry = &geometry;
	known.beamless = !isfinite(geometry.layout.beam_row) ||
			 !isfinite(geometry.layout.beam_column);
	if (known.beamless) {
		geometry.layout.beam_row = geometry.layout.rows / 2.0;
		geometry.layout.beam_column = geometry.layout.columns / 2.0;
	}
	write_geometry(file, &known);
}

static void write_mask(struct sl_h5 *file, const struct sl_nxmx *about)
{
	const struct sl_h5_shape shape = {SL_H5_U32, 2, {about->height, about->width}};

	if (about->mask)
		sl_h5_write(file, DETECTOR "/pixel_mask", &shape, about->mask);
}

static void write_sensor(struct sl_h5 *file, const struct sl_geometry *geometry)
{
	sl_h5_write_text(file, DETECTOR "/description", geometry->detector);
	sl_h5_write_text(file, DETECTOR "/type", "Pixel");
	if (geometry->sensor_material[0])
		sl_h5_write_text(file, DETECTOR "/sensor_material", geometry->sensor_material);
	if (geometry->sensor_thickness_m > 0)
		sl_h5_write_f64(file, DETECTOR "/sensor_thickness", geometry->sensor_thickness_m,
				"m");
	sl_h5_write_f64(file, DETECTOR "/x_pixel_size", geometry->pixel_size_m, "m");
	sl_h5_write_f64(file, DETECTOR "/y_pixel_size", geometry->pixel_size_m, "m");
	sl_h5_write_u64(file, DETECTOR "/bit_depth_readout", geometry->bit_depth);
}

static void write_detector(struct sl_h5 *file, const struct sl_nxmx *about)
{
	sl_h5_group(file, DETECTOR, "NXdetector");
	write_sensor(file, about->geometry);
	sl_h5_write_f64(file, DETECTOR "/distance", about->geometry->distance_m, "m");
	if (about->frame_rate_Hz > 0)
		sl_h5_write_f64(file, DETECTOR "/frame_time", 1 / about->frame_rate_Hz, "s");
	if (about->dtype == SL_I16) {
		write_i64(file, DETECTOR "/saturation_value", PHOTONS_MOST);
		write_i64(file, DETECTOR "/underload_value", PHOTONS_LEAST);
	}
	sl_h5_write_text(file, DETECTOR "/depends_on", TRANSLATION);
	sl_h5_group(file, DETECTOR "/transformations", "NXtransformations");
	write_axis(file, TRANSLATION, about->geometry->distance_m, (struct vector){.z = 1},
		   (struct vector){.x = 0}, ".");
	write_places(file, about);
	write_mask(file, about);
	if (!strcmp(about->signal, "data"))
		sl_h5_link(file, DETECTOR "/data", "/entry/data/data");
}

static void write_beam(struct sl_h5 *file, const struct sl_nxmx *about)
{
	double keV = about->geometry->photon_energy_keV;

	sl_h5_group(file, INSTRUMENT "/beam", "NXbeam");
	if (keV > 0) {
		sl_h5_write_f64(file, INSTRUMENT "/beam/incident_wavelength", KEV_ANGSTROM / keV,
				"angstrom");
		sl_h5_write_f64(file, INSTRUMENT "/beam/incident_energy", keV * 1000, "eV");
	}
	sl_h5_group(file, "/entry/source", "NXsource");
	sl_h5_write_text(file, "/entry/source/name", about->source);
	sl_h5_group(file, "/entry/sample", "NXsample");
	sl_h5_write_text(file, "/entry/sample/name", about->sample);
	sl_h5_write_text(file, "/entry/sample/depends_on", ".");
	sl_h5_link(file, "/entry/sample/beam", INSTRUMENT "/beam");
}

int sl_nxmx_begin(struct sl_h5 *file, const struct sl_nxmx *about)
{
	sl_h5_attribute_text(file, "/", "NX_class", "NXroot");
	sl_h5_attribute_text(file, "/", "default", "entry");
	sl_h5_group(file, "/entry", "NXentry");
	sl_h5_attribute_text(file, "/entry", "default", about->plot);
	sl_h5_write_text(file, "/entry/definition", "NXmx");
	write_time(file, "/entry/start_time");
	sl_h5_group(file, "/entry/data", "NXdata");
	sl_h5_attribute_text(file, "/entry/data", "signal", about->signal);
	sl_h5_group(file, INSTRUMENT, "NXinstrument");
	sl_h5_write_text(file, INSTRUMENT "/name", about->instrument);
	write_detector(file, about);
	write_beam(file, about);
	return sl_h5_status(file);
}

int sl_nxmx_end(struct sl_h5 *file)
{
	write_time(file, "/entry/end_time");
	write_time(file, "/entry/end_time_estimated");
	return sl_h5_status(file);
}
