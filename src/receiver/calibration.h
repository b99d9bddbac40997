/* calibration.h - the calibration that stages work with: the detector's own, and in its place what
 * the experiment's section `calibration` names; with the mask of the section `geometry`.
 *
 * Model:     files are of the whole detector; where a transfer carries a part of it, the tables are
 *            cut as its pixels are.
 * Threads:   one, before the run.
 * Ownership: the tables that `calibration` points to belong to struct sl_calibrated, or to the
 *            detector. */
#ifndef SL_RECEIVER_CALIBRATION_H
#define SL_RECEIVER_CALIBRATION_H

#include "calibration/tables.h"

struct sl_experiment;

struct sl_calibrated {
	struct sl_tables whole, part; /* part: of a transfer */
	uint8_t *mask;		      /* with that of the section `geometry`; NULL: it has none */
};

/* Once the detector is open, with the geometry that it gave. 1: there is one; 0: there is none;
 * errors are logged. */
int sl_calibrate(struct sl_experiment *experiment, const struct sl_geometry *geometry,
		 struct sl_calibrated *calibrated, struct sl_calibration *calibration);
void sl_calibrated_free(struct sl_calibrated *calibrated);

#endif
