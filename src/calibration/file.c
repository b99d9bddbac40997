/* file.c - tables to and from HDF5. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "calibration/tables.h"
#include "hdf5/file.h"

#define FORMAT "sluice-calibration"
enum { VERSION = 1 };

#define UNITS_ADU  "ADU"
#define UNITS_GAIN "ADU/keV"

struct reading {
	const char *path;
	struct sl_h5 *file;
	struct sl_tables *tables;
};

static int refuse(const struct reading *r, const char *what)
{
	sl_error("%s: %s", r->path, what);
	return -EINVAL;
}

/* ---- writing ---- */

static void attribute_u32(struct sl_h5 *file, const char *name, uint32_t value)
{
	sl_h5_attribute(file, "/", name, SL_H5_U32, 0, &value);
}

static void write_about(struct sl_h5 *file, const struct sl_tables *t)
{
	char now[64];

	sl_clock_iso8601(sl_clock_unix_ns(), now, sizeof(now));
	sl_h5_attribute_text(file, "/", "format", FORMAT);
	attribute_u32(file, "version", VERSION);
	sl_h5_attribute_text(file, "/", "program", "sluice " SL_VERSION);
	sl_h5_attribute_text(file, "/", "created", now);
	sl_h5_attribute_text(file, "/", "detector", t->detector);
	attribute_u32(file, "modules", t->modules);
	attribute_u32(file, "rows", t->rows);
	attribute_u32(file, "columns", t->columns);
	attribute_u32(file, "cells", t->cells);
}

/* Tables of one gain each, [cell][module][pixel], as [cell][gain][module][row][column]. */
static int write_cells(struct sl_h5 *file, const char *path, const struct sl_tables *t,
		       float *const *table)
{
	const struct sl_h5_shape shape = {
		SL_H5_F32, 5, {t->cells, SL_GAINS, t->modules, t->rows, t->columns}};
	float *all;

	if (!table[0] && !table[1] && !table[2])
		return 0;
	all = malloc(t->cells * SL_GAINS * t->pixels * sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (uint32_t cell = 0; cell < t->cells; cell++)
		for (int g = 0; g < SL_GAINS; g++) {
			float *to = all + (cell * SL_GAINS + (uint64_t)g) * t->pixels;

			if (table[g])
				memcpy(to, table[g] + cell * t->pixels, t->pixels * sizeof(*to));
			for (uint64_t i = 0; !table[g] && i < t->pixels; i++)
				to[i] = NAN;
		}
	sl_h5_write(file, path, &shape, all);
	free(all);
	return sl_h5_attribute_text(file, path, "units", UNITS_ADU);
}

static int write_gains(struct sl_h5 *file, const struct sl_tables *t)
{
	const struct sl_h5_shape shape = {
		SL_H5_F32, 4, {SL_GAINS, t->modules, t->rows, t->columns}};
	float *all;

	if (!t->gain[0] || !t->gain[1] || !t->gain[2])
		return 0;
	all = malloc(SL_GAINS * t->pixels * sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (int g = 0; g < SL_GAINS; g++)
		memcpy(all + (uint64_t)g * t->pixels, t->gain[g], t->pixels * sizeof(*all));
	sl_h5_write(file, "/gain", &shape, all);
	free(all);
	return sl_h5_attribute_text(file, "/gain", "units", UNITS_GAIN);
}

static int write_mask(struct sl_h5 *file, const struct sl_tables *t)
{
	const struct sl_h5_shape shape = {SL_H5_U8, 3, {t->modules, t->rows, t->columns}};

	if (!t->mask)
		return 0;
	sl_h5_write(file, "/mask", &shape, t->mask);
	return sl_h5_attribute_text(file, "/mask", "long_name",
				    "1 no samples, 2 wrong gain, 4 stuck, 8 pedestal, 16 RMS; 0 "
				    "good");
}

int sl_calibration_write(const char *path, const struct sl_tables *t)
{
	const struct sl_h5_shape frames = {SL_H5_U64, 1, {SL_GAINS}};
	struct sl_h5 *file;
	int err = sl_h5_create(path, &file);

	if (err)
		return err;
	write_about(file, t);
	err = write_cells(file, "/pedestal", t, t->pedestal);
	if (!err)
		err = write_cells(file, "/rms", t, t->rms);
	if (!err)
		err = write_gains(file, t);
	if (!err)
		err = write_mask(file, t);
	if (!err)
		err = sl_h5_write(file, "/frames", &frames, t->frames);
	if (err) {
		sl_error("%s: the calibration could not be written: %s", path, strerror(-err));
		sl_h5_abandon(file);
		return err;
	}
	return sl_h5_finish(file);
}

/* ---- reading ---- */

static int read_u32(const struct reading *r, const char *name, uint32_t *value)
{
	char why[128];
	int err = sl_h5_read_attribute(r->file, "/", name, SL_H5_U32, value, sizeof(*value));

	if (err != -ENOENT)
		return err;
	snprintf(why, sizeof(why), "has no attribute '%s': no calibration of this program", name);
	return refuse(r, why);
}

static int read_detector(const struct reading *r, char *text, size_t bytes)
{
	int err = sl_h5_read_attribute_text(r->file, "/", "format", text, bytes);

	if (err || strcmp(text, FORMAT) != 0)
		return refuse(r, "is no calibration of this program: its attribute 'format' is not "
				 "'" FORMAT "'");
	err = sl_h5_read_attribute_text(r->file, "/", "detector", text, bytes);
	return err ? refuse(r, "does not say of which detector it is") : 0;
}

/* Of this detector; a replay that does not say whose data it plays may be of any. */
static int check_detector(const struct reading *r)
{
	char text[SL_NAME_BYTES], why[256];
	int err = read_detector(r, text, sizeof(text));

	if (err)
		return err;
	if (!strcmp(text, r->tables->detector) || !strcmp(r->tables->detector, "replay"))
		return 0;
	snprintf(why, sizeof(why), "is a calibration of detector '%s', not of '%s'%s", text,
		 r->tables->detector, !strcmp(text, "replay") ? " (set detector.origin)" : "");
	return refuse(r, why);
}

static int check_shape(const struct reading *r)
{
	const struct sl_tables *t = r->tables;
	const char *const name[] = {"modules", "rows", "columns", "cells"};
	const uint32_t wanted[] = {t->modules, t->rows, t->columns, t->cells};
	uint32_t version = 0, has;
	char why[160];
	int err = read_u32(r, "version", &version);

	if (!err && version != VERSION) {
		snprintf(why, sizeof(why), "is of version %u, this program reads %u", version,
			 VERSION);
		err = refuse(r, why);
	}
	for (unsigned i = 0; i < 4 && !err; i++) {
		err = read_u32(r, name[i], &has);
		if (err || has == wanted[i])
			continue;
		snprintf(why, sizeof(why), "is of a detector with %u %s, this one has %u", has,
			 i == 3 ? "storage cells" : name[i], wanted[i]);
		err = refuse(r, why);
	}
	return err;
}

/* 1: there and as it should be; 0: not there. */
static int look(const struct reading *r, const char *path, const struct sl_h5_shape *wanted,
		const char *units)
{
	struct sl_h5_shape shape;
	char text[32] = "", why[160];
	int err = sl_h5_describe(r->file, path, &shape);

	if (err)
		return err == -ENOENT ? 0 : err;
	if (shape.rank != wanted->rank ||
	    memcmp(shape.dim, wanted->dim, shape.rank * sizeof(shape.dim[0])) != 0) {
		snprintf(why, sizeof(why), "%s has another shape than its attributes say", path);
		return refuse(r, why);
	}
	if (!units)
		return 1;
	err = sl_h5_read_attribute_text(r->file, path, "units", text, sizeof(text));
	if (!err && !strcmp(text, units))
		return 1;
	snprintf(why, sizeof(why), "%s is in units '%s', expected '%s'", path, text, units);
	return refuse(r, why);
}

static bool any_finite(const float *value, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (isfinite(value[i]))
			return true;
	return false;
}

/* Gains that were not measured are NaN throughout: what there is of them stays. */
static int read_cells(const struct reading *r, const char *path, float **table)
{
	struct sl_tables *t = r->tables;
	const struct sl_h5_shape shape = {
		SL_H5_F32, 5, {t->cells, SL_GAINS, t->modules, t->rows, t->columns}};
	size_t bytes = SL_GAINS * t->pixels * sizeof(float);
	int err = look(r, path, &shape, UNITS_ADU);
	float *cell;

	if (err <= 0)
		return err;
	cell = malloc(bytes);
	err = cell ? 0 : -ENOMEM;
	for (uint32_t c = 0; c < t->cells && !err; c++) {
		err = sl_h5_read_row(r->file, path, c, SL_H5_F32, cell, bytes);
		for (int g = 0; g < SL_GAINS && !err; g++) {
			const float *from = cell + (uint64_t)g * t->pixels;

			if (!any_finite(from, t->pixels))
				continue;
			err = sl_tables_make(t, &table[g], t->cells);
			if (!err)
				memcpy(table[g] + c * t->pixels, from, t->pixels * sizeof(*from));
		}
	}
	free(cell);
	return err;
}

static int read_gains(const struct reading *r)
{
	struct sl_tables *t = r->tables;
	const struct sl_h5_shape shape = {
		SL_H5_F32, 4, {SL_GAINS, t->modules, t->rows, t->columns}};
	int err = look(r, "/gain", &shape, UNITS_GAIN), found = err;
	char why[160];

	for (uint64_t g = 0; g < SL_GAINS && found > 0; g++) {
		err = sl_tables_make(t, &t->gain[g], 1);
		if (!err)
			err = sl_h5_read_row(r->file, "/gain", g, SL_H5_F32, t->gain[g],
					     t->pixels * sizeof(float));
		if (err)
			return err;
	}
	return found > 0 && sl_gains_problem(t, why, sizeof(why)) ? refuse(r, why) : err;
}

static int read_mask(const struct reading *r)
{
	struct sl_tables *t = r->tables;
	const struct sl_h5_shape shape = {SL_H5_U8, 3, {t->modules, t->rows, t->columns}};
	int err = look(r, "/mask", &shape, NULL);

	if (err <= 0)
		return err;
	err = sl_tables_make_mask(t);
	return err ? err : sl_h5_read(r->file, "/mask", SL_H5_U8, t->mask, t->pixels);
}

/* Pedestals that are all NaN were not measured. */
static bool has_anything(const struct sl_tables *t)
{
	for (int g = 0; g < SL_GAINS; g++)
		if (t->pedestal[g] || t->gain[g])
			return true;
	return t->mask;
}

static int read_all(const struct reading *r)
{
	struct sl_tables *t = r->tables;
	const struct sl_h5_shape shape = {SL_H5_U64, 1, {SL_GAINS}};
	int err = check_detector(r);

	if (!err)
		err = check_shape(r);
	if (!err)
		err = read_cells(r, "/pedestal", t->pedestal);
	if (!err)
		err = read_cells(r, "/rms", t->rms);
	if (!err)
		err = read_gains(r);
	if (!err)
		err = read_mask(r);
	if (!err && !has_anything(t))
		err = refuse(r, "it has neither a pedestal, nor gains, nor a mask");
	if (!err)
		err = look(r, "/frames", &shape, NULL);
	if (err > 0)
		err = sl_h5_read(r->file, "/frames", SL_H5_U64, t->frames, sizeof(t->frames));
	if (!err)
		sl_h5_read_attribute_text(r->file, "/", "created", t->created, sizeof(t->created));
	return err;
}

int sl_calibration_read(const char *path, struct sl_tables *tables)
{
	struct reading r = {.path = path, .tables = tables};
	int err = sl_h5_open(path, &r.file);

	if (err)
		return err;
	err = read_all(&r);
	sl_h5_close(r.file);
	return err;
}

int sl_calibration_look(const char *path, struct sl_geometry *geometry)
{
	struct reading r = {.path = path};
	struct sl_geometry g = {.dtype = SL_U16};
	int err = sl_h5_open(path, &r.file);

	if (err)
		return err;
	err = read_detector(&r, g.detector, sizeof(g.detector));
	if (!err)
		err = read_u32(&r, "modules", &g.modules);
	if (!err)
		err = read_u32(&r, "rows", &g.rows);
	if (!err)
		err = read_u32(&r, "columns", &g.columns);
	if (!err)
		err = read_u32(&r, "cells", &g.cells);
	sl_h5_close(r.file);
	if (!err)
		*geometry = g;
	return err;
}
