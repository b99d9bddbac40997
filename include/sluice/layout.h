/* layout.h - where the pixels of a detector's modules lie in its image.
 *
 * Model:     the image is a grid of square pixels of the detector's pixel size. A module's raw
 *            pixels lie in it as they were read, turned by quarters if need be. Modules are made
 *            of ASICs with a gap between them, which the raw pixels at the edges of the ASICs
 *            cover: they are wider, half of the gap each, so that one raw pixel is two image
 *            pixels, or four in a corner. Between modules there is nothing.
 * Ownership: plain data, part of the geometry. */
#ifndef SLUICE_LAYOUT_H
#define SLUICE_LAYOUT_H

#include <stdint.h>

enum { SL_LAYOUT_MODULES = 64 };

struct sl_layout_module {
	uint32_t row, column; /* of the image: the upper left corner of the place it takes */
	uint32_t turns;	      /* quarter turns clockwise, 0 to 3 */
};

struct sl_layout {
	uint32_t rows, columns;		  /* of the image; 0: modules lie one below the other */
	uint32_t asic_rows, asic_columns; /* in raw pixels; 0: the module is one piece */
	uint32_t gap;			  /* image pixels between ASICs: even */
	double beam_row, beam_column;	  /* where the beam hits the image's plane, in pixels */
	struct sl_layout_module module[SL_LAYOUT_MODULES];
};

#endif
