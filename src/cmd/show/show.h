/* show.h - where pictures come from. */
#ifndef SL_CMD_SHOW_SHOW_H
#define SL_CMD_SHOW_SHOW_H

#include <stdbool.h>

#include <sluice/detector.h>

#include "geometry/described.h"

/* A frame of an opened detector: its modules assembled by the layout, or one
 * below the other. Corrected where there is a calibration, and shared out where a pixel is wide. 0
 * or -errno, logged. */
int sl_show_detector(const struct sl_detector *detector, void *state,
		     const struct sl_geometry *geometry, uint64_t frame, uint32_t flags,
		     bool stacked, struct sl_picture *picture);

/* A detector as the beam sees it: RGB, [height][columns][3], malloc'ed; `what` it is, in words. 0
 * or -ENOMEM. */
int sl_show_geometry(const struct sl_described *described, uint32_t height, uint8_t **rgb,
		     uint32_t *columns, char *what, size_t bytes);

/* Digits and a few letters, with their middle at (row, column). */
void sl_glyphs_draw(uint8_t *rgb, uint32_t rows, uint32_t columns, double row, double column,
		    const char *text, uint32_t scale, const uint8_t colour[3]);

/* Whether that is a file of HDF5. */
bool sl_show_is_file(const char *path);

/* An image of a run's file, and its number in the run. 0 or -errno, logged. */
int sl_show_file(const char *path, uint64_t index, struct sl_picture *picture, uint64_t *number);

#endif
