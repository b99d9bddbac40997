/* nxmx.c - entry, instrument, detector, beam and sample, as the NeXus application definition NXmx
 * has them.
 *
 * An assembled image is one NXdetector_module; one for each module or ASIC, where these are not in
 * one plane. Modules that lie below each other are one each, or one for every ASIC, where there are
 * gaps between them: with its place in the stored array, and its place in space
 * (geometry/parts.h). beam_center is in pixels of the stored array; where the
 * modules lie below each other it is the pixel next to the beam. Directions are NeXus's: x to the
 * left when looking along the beam, y up, z along the beam.
 *
 * Fields that depend on the wall clock, and so differ between two runs of the same data, are
 * exactly: /entry/start_time, /entry/end_time, /entry/end_time_estimated. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "geometry/parts.h"
#include "geometry/plane.h"
#include "sink/nexus/nxmx.h"

#define INSTRUMENT   "/entry/instrument"
#define DETECTOR     INSTRUMENT "/detector"
#define SPECIFIC     DETECTOR "/detectorSpecific"
#define GROUP	     INSTRUMENT "/detector_group"
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

/* 0: now. */
static void write_time(struct sl_h5 *file, const char *path, uint64_t unix_ns)
{
	char text[64];

	sl_clock_iso8601(unix_ns ? unix_ns : sl_clock_unix_ns(), text, sizeof(text));
	sl_h5_write_text(file, path, text);
}

/* From local time to UTC, as in +01:00. */
static void write_time_zone(struct sl_h5 *file, const char *path)
{
	time_t now = time(NULL);
	struct tm local = {0};
	char text[16];
	long minutes;

	localtime_r(&now, &local);
	minutes = local.tm_gmtoff / 60;
	snprintf(text, sizeof(text), "%c%02ld:%02ld", minutes < 0 ? '-' : '+',
		 labs(minutes) / 60 % 24, labs(minutes) % 60);
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

/* How long it is, and which way it points; pixels of no size point as they would square to the
 * beam. */
static double unit_of(const double v[3], struct vector otherwise, struct vector *way)
{
	double length = sl_vector_length(v);

	*way = length > 0 ? (struct vector){v[0] / length, v[1] / length, v[2] / length}
			  : otherwise;
	return length;
}

static void write_part(struct sl_h5 *file, const struct sl_nxmx *about, uint32_t number, int digits,
		       const struct sl_panel *part)
{
	const struct vector nowhere = {.x = 0}, left = {.x = -1}, down = {.y = -1};
	/* What the translation of the whole detector leaves. */
	const struct vector origin = {part->origin[0], part->origin[1],
				      part->origin[2] - about->geometry->distance_m};
	char group[64], path[128], offset[128];
	struct vector way;
	double length;

	/* Readers go by the order of names: numbers have as many digits as the last one. */
	snprintf(group, sizeof(group), DETECTOR "/module_%0*u", digits, number);
	sl_h5_group(file, group, "NXdetector_module");
	snprintf(path, sizeof(path), "%s/data_origin", group);
	write_pair(file, path, part->first_row, part->first_column);
	snprintf(path, sizeof(path), "%s/data_size", group);
	write_pair(file, path, part->rows, part->columns);
	snprintf(offset, sizeof(offset), "%s/module_offset", group);
	write_axis(file, offset, 0, left, origin, TRANSLATION);
	snprintf(path, sizeof(path), "%s/fast_pixel_direction", group);
	length = unit_of(part->fast, left, &way);
	write_axis(file, path, length, way, nowhere, offset);
	snprintf(path, sizeof(path), "%s/slow_pixel_direction", group);
	length = unit_of(part->slow, down, &way);
	write_axis(file, path, length, way, nowhere, offset);
}

static void write_parts(struct sl_h5 *file, const struct sl_nxmx *about)
{
	uint32_t all = sl_panels(about->geometry, about->assembled);
	int digits = 1;

	for (uint32_t n = all - 1; n >= 10; n /= 10)
		digits++;
	for (uint32_t i = 0; i < all; i++) {
		struct sl_panel part;

		sl_panel_at(about->geometry, about->assembled, i, &part);
		write_part(file, about, i, digits, &part);
	}
}

/* A stage may have made an image of another size: then nothing is known but that it is one piece,
 * and the beam is taken to hit its middle. */
static void write_other(struct sl_h5 *file, const struct sl_nxmx *about, double row, double column)
{
	double size = about->geometry->pixel_size_m;
	const struct sl_panel part = {
		.rows = about->height,
		.columns = about->width,
		.origin = {column * size, row * size, about->geometry->distance_m},
		.fast = {-size, 0, 0},
		.slow = {0, -size, 0}};

	write_part(file, about, 0, 1, &part);
}

static void write_geometry(struct sl_h5 *file, const struct sl_nxmx *about)
{
	const struct sl_geometry *g = about->geometry;
	double row = about->height / 2.0, column = about->width / 2.0;

	if (about->assembled) {
		row = g->layout.beam_row;
		column = g->layout.beam_column;
		write_parts(file, about);
	} else if (about->height == g->modules * g->rows && about->width == g->columns) {
		if (!about->beamless)
			sl_layout_beam_in_stack(g, &row, &column);
		write_parts(file, about);
	} else {
		write_other(file, about, row, column);
	}
	if (!about->beamless) {
		sl_h5_write_f64(file, DETECTOR "/beam_center_x", column, "pixel");
		sl_h5_write_f64(file, DETECTOR "/beam_center_y", row, "pixel");
	}
}

/* Where nobody knows the beam, the file does not name a place. Its parts must lie somewhere all
 * the same: about the middle. With planes in space they lie where they do, and it may be that the
 * beam does not hit them. */
static void write_places(struct sl_h5 *file, const struct sl_nxmx *about)
{
	struct sl_geometry geometry = *about->geometry;
	struct sl_nxmx known = *about;

	known.geometry = &geometry;
	known.beamless = !isfinite(geometry.layout.beam_row) ||
			 !isfinite(geometry.layout.beam_column);
	if (known.beamless && !geometry.planes) {
		geometry.layout.beam_row = geometry.layout.rows / 2.0;
		geometry.layout.beam_column = geometry.layout.columns / 2.0;
	}
	write_geometry(file, &known);
}

static void write_mask(struct sl_h5 *file, const struct sl_nxmx *about)
{
	const struct sl_geometry *g = about->geometry;
	const struct sl_h5_shape shape = {SL_H5_U32, 2, {about->height, about->width}};
	const struct sl_h5_shape by_module = {SL_H5_U32, 3, {g->modules, g->rows, g->columns}};

	if (!about->mask)
		return;
	sl_h5_write(file, SPECIFIC "/pixel_mask", &shape, about->mask);
	/* dxtbx 3.12 fails on a mask of two dimensions where a part of the image is narrower than
	 * it, as ASICs of a module are; one of three dimensions it leaves alone. */
	if (!about->assembled && sl_layout_pieces(g) > 1)
		sl_h5_write(file, DETECTOR "/pixel_mask", &by_module, about->mask);
	else
		sl_h5_name_again(file, DETECTOR "/pixel_mask", SPECIFIC "/pixel_mask");
}

/* What DECTRIS files have, and XDS (neggia) asks for. */
static void write_specific(struct sl_h5 *file, const struct sl_nxmx *about)
{
	sl_h5_group(file, SPECIFIC, "NXcollection");
	sl_h5_write_u64(file, SPECIFIC "/ntrigger", 1);
	sl_h5_write_u64(file, SPECIFIC "/x_pixels_in_detector", about->width);
	sl_h5_write_u64(file, SPECIFIC "/y_pixels_in_detector", about->height);
}

/* Values outside of these two are no measurement. */
static void write_limits(struct sl_h5 *file, const struct sl_nxmx *about)
{
	uint32_t bits = about->geometry->bit_depth,
		 most = 8 * (uint32_t)sl_dtype_bytes(about->dtype);

	if (about->dtype == SL_I16) {
		write_i64(file, DETECTOR "/saturation_value", PHOTONS_MOST);
		write_i64(file, DETECTOR "/underload_value", PHOTONS_LEAST);
	} else if (about->counts && bits > 1 && bits <= most) {
		write_i64(file, DETECTOR "/saturation_value", (int64_t)((UINT64_C(1) << bits) - 2));
		write_i64(file, DETECTOR "/underload_value", 0);
	}
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
	/* Measured, not computed from other fields of the file. */
	sl_h5_write(file, DETECTOR "/distance_derived", &(struct sl_h5_shape){.type = SL_H5_U8},
		    &(const uint8_t){0});
	if (about->frame_rate_Hz > 0)
		sl_h5_write_f64(file, DETECTOR "/frame_time", 1 / about->frame_rate_Hz, "s");
	write_limits(file, about);
	write_specific(file, about);
	sl_h5_write_text(file, DETECTOR "/depends_on", TRANSLATION);
	sl_h5_group(file, DETECTOR "/transformations", "NXtransformations");
	write_axis(file, TRANSLATION, about->geometry->distance_m, (struct vector){.z = 1},
		   (struct vector){.x = 0}, ".");
	write_places(file, about);
	write_mask(file, about);
	if (!strcmp(about->signal, "data"))
		sl_h5_link(file, DETECTOR "/data", "/entry/data/data");
}

/* How detectors are grouped: there is one, and it has no parent. */
static void write_group(struct sl_h5 *file)
{
	static const char *const names[] = {"detector"};
	const struct sl_h5_shape one = {SL_H5_I64, 1, {1}};

	sl_h5_group(file, GROUP, "NXdetector_group");
	sl_h5_write_texts(file, GROUP "/group_names", names, 1);
	sl_h5_write(file, GROUP "/group_index", &one, &(const int64_t){1});
	sl_h5_write(file, GROUP "/group_parent", &one, &(const int64_t){-1});
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
	sl_h5_link(file, "/entry/sample/beam", INSTRUMENT "/beam");
}

void sl_nxmx_lacks(const struct sl_geometry *g, char *text, size_t bytes)
{
	const struct {
		bool has;
		const char *option;
	} required[] = {
		{g->sensor_material[0] != 0, "sensor_material"},
		{g->sensor_thickness_m > 0, "sensor_thickness_m"},
		{g->photon_energy_keV > 0, "photon_energy_keV"},
		{g->distance_m > 0, "distance_m"},
		{g->pixel_size_m > 0, "pixel_size_m"},
	};
	size_t used = 0;

	text[0] = 0;
	for (size_t i = 0; i < sizeof(required) / sizeof(required[0]) && used < bytes; i++)
		if (!required[i].has)
			used += (size_t)snprintf(text + used, bytes - used, "%s%s",
						 used ? ", " : "", required[i].option);
}

int sl_nxmx_begin(struct sl_h5 *file, const struct sl_nxmx *about)
{
	char lacks[128];

	sl_h5_attribute_text(file, "/", "NX_class", "NXroot");
	sl_h5_attribute_text(file, "/", "default", "entry");
	sl_h5_group(file, "/entry", "NXentry");
	sl_h5_attribute_text(file, "/entry", "default", about->plot);
	sl_nxmx_lacks(about->geometry, lacks, sizeof(lacks));
	if (!lacks[0] && !about->geometry->items)
		sl_h5_write_text(file, "/entry/definition", "NXmx");
	write_time(file, "/entry/start_time", about->began_unix_ns);
	sl_h5_group(file, "/entry/data", "NXdata");
	sl_h5_attribute_text(file, "/entry/data", "signal", about->signal);
	sl_h5_group(file, INSTRUMENT, "NXinstrument");
	sl_h5_write_text(file, INSTRUMENT "/name", about->instrument);
	write_time_zone(file, INSTRUMENT "/time_zone");
	write_detector(file, about);
	write_group(file);
	write_beam(file, about);
	return sl_h5_status(file);
}

int sl_nxmx_end(struct sl_h5 *file, uint64_t images, uint64_t ended_unix_ns)
{
	sl_h5_write_u64(file, SPECIFIC "/nimages", images);
	write_time(file, "/entry/end_time", ended_unix_ns);
	write_time(file, "/entry/end_time_estimated", ended_unix_ns);
	return sl_h5_status(file);
}
