/* calibration.c - from files and detector to the tables of a run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "experiment/experiment.h"
#include "receiver/calibration.h"

/* A table of the whole detector, for the modules, rectangle and stack of a transfer. */
static void cut(const struct sl_cut *c, const void *from, size_t each, void *to)
{
	const struct sl_geometry *s = &c->source_geometry;
	const struct sl_cut_options *o = &c->options;
	size_t line = c->width * each;
	uint8_t *at = to;

	for (uint32_t m = 0; m < c->geometry.modules; m++)
		for (uint32_t i = 0; i < o->stack; i++)
			for (uint32_t y = 0; y < c->height; y++, at += line) {
				uint64_t row = (uint64_t)(o->first_module + m) * s->rows + o->y + y;

				memcpy(at, (const uint8_t *)from + (row * s->columns + o->x) * each,
				       line);
			}
}

static int cut_cells(const struct sl_cut *c, const struct sl_tables *whole, const float *from,
		     uint32_t cells, struct sl_tables *part, float **to)
{
	int err = sl_tables_make(part, to, cells);

	for (uint32_t cell = 0; cell < cells && !err; cell++)
		cut(c, from + cell * whole->pixels, sizeof(float), *to + cell * part->pixels);
	return err;
}

static int cut_tables(const struct sl_cut *c, const struct sl_tables *whole, struct sl_tables *part)
{
	int err = 0;

	part->cells = whole->cells;
	for (int g = 0; g < SL_GAINS && !err; g++) {
		if (whole->pedestal[g])
			err = cut_cells(c, whole, whole->pedestal[g], whole->cells, part,
					&part->pedestal[g]);
		if (!err && whole->gain[g])
			err = cut_cells(c, whole, whole->gain[g], 1, part, &part->gain[g]);
	}
	if (!err && whole->mask)
		err = sl_tables_make_mask(part);
	if (!err && whole->mask)
		cut(c, whole->mask, 1, part->mask);
	return err;
}

/* Pedestals that the files do not have are the detector's; where it has none they are not known,
 * and pixels in that gain are bad. */
static int complete(struct sl_tables *t, const struct sl_calibration *own)
{
	uint32_t cells = own->cells ? own->cells : 1;

	for (int g = 0; g < SL_GAINS; g++) {
		int err;

		if (t->pedestal[g])
			continue;
		err = sl_tables_make(t, &t->pedestal[g], t->cells);
		if (err)
			return err;
		for (uint32_t cell = 0; own->pedestal[g] && cell < t->cells; cell++)
			memcpy(t->pedestal[g] + cell * t->pixels,
			       own->pedestal[g] + cell % cells * t->pixels,
			       t->pixels * sizeof(float));
	}
	return 0;
}

static int use(struct sl_tables *t, bool measured, struct sl_calibration *calibration)
{
	int err = complete(t, calibration);

	if (err)
		return err;
	for (int g = 0; g < SL_GAINS; g++) {
		calibration->pedestal[g] = t->pedestal[g];
		if (t->gain[g])
			calibration->gain[g] = t->gain[g];
		if (!calibration->gain[g]) {
			sl_error("calibration: neither the files nor detector '%s' have gains; set "
				 "calibration.gains",
				 t->detector);
			return -EINVAL;
		}
	}
	calibration->cells = t->cells;
	calibration->measured = measured;
	if (t->mask)
		calibration->mask = t->mask;
	return 0;
}

static int read_files(const struct sl_experiment *e, struct sl_tables *tables)
{
	int err = 0;

	if (e->calibration.file[0])
		err = sl_calibration_read(e->calibration.file, tables);
	if (!err && e->calibration.gains[0])
		err = sl_gains_read(e->calibration.gains, tables);
	if (!err && e->calibration.file[0])
		sl_info("calibration from %s, %s%s", e->calibration.file,
			tables->created[0] ? "made " : "which does not say when it was made",
			tables->created);
	return err;
}

/* Pixels that the section `geometry` masks, and those that the detector itself knows (`own`), added
 * to those that are masked already. */
static int add_masks(const struct sl_experiment *e, const struct sl_geometry *geometry,
		     const uint8_t *own, struct sl_calibrated *calibrated,
		     struct sl_calibration *calibration)
{
	uint64_t pixels = geometry->modules * sl_geometry_pixels(geometry);

	calibrated->mask = calloc(pixels, 1);
	if (!calibrated->mask)
		return -ENOMEM;
	if (e->refined.mask && e->transfer[0])
		cut(&e->cut, e->refined.mask, 1, calibrated->mask);
	else if (e->refined.mask)
		memcpy(calibrated->mask, e->refined.mask, pixels);
	for (uint64_t i = 0; calibration->mask && i < pixels; i++)
		calibrated->mask[i] |= calibration->mask[i];
	for (uint64_t i = 0; own && i < pixels; i++)
		calibrated->mask[i] |= own[i];
	calibration->mask = calibrated->mask;
	return 1;
}

/* own: the mask that the detector itself has. */
static int calibrate(struct sl_experiment *e, const struct sl_geometry *geometry,
		     struct sl_calibrated *calibrated, struct sl_calibration *calibration,
		     const uint8_t **own)
{
	bool named = e->calibration.file[0] || e->calibration.gains[0];
	bool is_part = e->transfer[0] != 0;
	struct sl_tables *tables = is_part ? &calibrated->part : &calibrated->whole;
	int err = 0;

	*calibration = (struct sl_calibration){.cells = 0};
	if (e->detector->calibration)
		err = e->detector->calibration(e->detector_state, calibration);
	*own = calibration->mask;
	/* Records have no pixels to calibrate. */
	if (err || !named || (is_part && e->cut.options.part == SL_CUT_RECORDS))
		return err ? err
			   : sl_calibration_has_gains(calibration) || calibration->mask != NULL;
	sl_tables_init(&calibrated->whole, is_part ? &e->cut.source_geometry : geometry);
	err = read_files(e, &calibrated->whole);
	if (!err && is_part) {
		sl_tables_init(&calibrated->part, geometry);
		err = cut_tables(&e->cut, &calibrated->whole, &calibrated->part);
	}
	if (!err)
		err = use(tables, calibrated->whole.pedestal[0] != NULL, calibration);
	return err ? err : 1;
}

int sl_calibrate(struct sl_experiment *e, const struct sl_geometry *geometry,
		 struct sl_calibrated *calibrated, struct sl_calibration *calibration)
{
	const uint8_t *own = NULL;
	int err = calibrate(e, geometry, calibrated, calibration, &own);
	bool pixels = !e->transfer[0] || e->cut.options.part == SL_CUT_PIXELS;
	bool more = e->refined.mask || (own && own != calibration->mask);

	return err >= 0 && more && pixels ? add_masks(e, geometry, own, calibrated, calibration)
					  : err;
}

void sl_calibrated_free(struct sl_calibrated *calibrated)
{
	sl_tables_free(&calibrated->whole);
	sl_tables_free(&calibrated->part);
	free(calibrated->mask);
	calibrated->mask = NULL;
}
