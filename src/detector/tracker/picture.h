/* picture.h - an event of the tracker, seen along the beam: layers, stubs, true tracks.
 *
 * Model:     all of the circle, or, where few sectors are there, their wedge, upright and as large
 *            as fits. The canvas has its pixels set; begin() chooses what it shows. `sectors` are
 *            those that are there, from sector 0.
 * Threads:   one. */
#ifndef SL_DETECTOR_TRACKER_PICTURE_H
#define SL_DETECTOR_TRACKER_PICTURE_H

#include <stdint.h>

#include "detector/canvas.h"

void sl_tracker_picture_begin(struct sl_canvas *canvas, uint32_t sectors);

/* row: the stubs of that sector, as they are sent. */
void sl_tracker_picture_stubs(const struct sl_canvas *canvas, uint32_t sectors, uint32_t sector,
			      const uint8_t *row);
void sl_tracker_picture_track(const struct sl_canvas *canvas, uint32_t sectors, double phi0,
			      double q_over_pt);

#endif
