/* parts.h - the stored image as flat rectangles, each with its place in space.
 *
 * Model:     images are stored assembled, or with modules one below the other as they were read. A
 *            part is a rectangle of the stored array whose pixels lie on one grid: what NXmx calls
 *            a module, and CrystFEL a panel.
 * Threads:   functions of their arguments.
 * Ownership: plain data. */
#ifndef SL_GEOMETRY_PARTS_H
#define SL_GEOMETRY_PARTS_H

#include <stdbool.h>

#include <sluice/detector.h>

struct sl_panel {
	uint32_t first_row, first_column, rows, columns; /* of the stored array */
	uint32_t module, piece;				 /* that it is of */
	/* Metres: the corner of the first pixel; from one pixel to the next along a row, and down a
	 * column. */
	double origin[3], fast[3], slow[3];
};

/* Of a geometry with its layout resolved. An assembled image is one part, if all of it is in one
 * plane. */
uint32_t sl_panels(const struct sl_geometry *geometry, bool assembled);
void sl_panel_at(const struct sl_geometry *geometry, bool assembled, uint32_t index,
		 struct sl_panel *part);

#endif
