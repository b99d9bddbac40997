/* layout.h - where the pixels of a detector's modules lie in its image.
 *
 * Model:     the image is a grid of square pixels of the detector's pixel size. A module's raw
 *            pixels lie in it as they were read, turned by quarters if need be. Modules are made
 *            of ASICs with a gap between them, which the raw pixels at the edges of the ASICs
 *            cover: they are wider, half of the gap each, so that one raw pixel is two image
 *            pixels, or four in a corner. Between modules there is nothing.
 * Threads:   functions of their arguments.
 * Ownership: plain data, part of the geometry.
 * Cost:      a pixel is a few divisions; an image is assembled line by line. */
#ifndef SLUICE_LAYOUT_H
#define SLUICE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

struct sl_geometry;

/* The geometry's layout with a place for every module and a size. Where it has none, modules lie
 * one below the other and the beam goes through the middle. */
void sl_layout_resolve(const struct sl_geometry *geometry, struct sl_layout *layout);

/* A plane in space with the image's grid on it: the point at (row, column) of the image is
 * corner + row * down + column * right. Metres from the sample: x to the left when looking along
 * the beam, y up, z along the beam. Without planes (sl_geometry.plane) the image is square to the
 * beam, its rows run along -x and its columns along -y. */
struct sl_plane {
	double corner[3], down[3], right[3]; /* down, right: one pixel */
};

/* The functions below take a geometry whose layout has been resolved. */

/* -EINVAL, with a reason: a module is not inside the image, or lies on another. */
int sl_layout_check(const struct sl_geometry *geometry, char *why, size_t why_bytes);

/* Image pixels that the module takes. */
void sl_layout_extent(const struct sl_geometry *geometry, uint32_t module, uint32_t *rows,
		      uint32_t *columns);

/* The raw pixel of the module (row * columns + column) at this pixel of the image; false: that is
 * not on the module. */
bool sl_layout_raw(const struct sl_geometry *geometry, uint32_t module, int64_t row, int64_t column,
		   uint32_t *pixel);

/* The module at this pixel of the image, or -1: a gap. */
int sl_layout_find(const struct sl_geometry *geometry, int64_t row, int64_t column,
		   uint32_t *pixel);

/* How many image pixels a raw pixel covers. */
uint32_t sl_layout_share(const struct sl_geometry *geometry, uint32_t pixel);

/* The image pixels that it covers, as the module lies in the image. */
void sl_layout_size(const struct sl_geometry *geometry, uint32_t module, uint32_t pixel,
		    uint32_t *rows, uint32_t *columns);

/* Where the middle of a raw pixel lies in the image; the middle of image pixel (0, 0) is at
 * (0.5, 0.5). */
void sl_layout_centre(const struct sl_geometry *geometry, uint32_t module, uint32_t pixel,
		      double *row, double *column);

/* An ASIC of a module, or a module that is one piece: its raw pixels, and where the corner of the
 * first of them lies in the image. Wide pixels count as if they were not: the corner is that of the
 * grid which the others are on. */
struct sl_layout_piece {
	uint32_t first_row, first_column, rows, columns;
	double row, column;
};
uint32_t sl_layout_pieces(const struct sl_geometry *geometry); /* of a module */
void sl_layout_piece(const struct sl_geometry *geometry, uint32_t module, uint32_t index,
		     struct sl_layout_piece *piece);

/* The piece that a raw pixel of any module belongs to. */
uint32_t sl_layout_piece_of(const struct sl_geometry *geometry, uint32_t pixel);

/* The plane that a piece lies in. */
void sl_layout_plane(const struct sl_geometry *geometry, uint32_t module, uint32_t piece,
		     struct sl_plane *plane);

/* Where a point of a raw pixel lies in space. down, right: from the pixel's middle, as the module
 * lies in the image, in parts of the pixel: -0.5 and 0.5 are its edges, of wide pixels too. */
void sl_layout_place(const struct sl_geometry *geometry, uint32_t module, uint32_t pixel,
		     double down, double right, double place[3]);

/* Where the beam is in modules that lie one below the other as they were read: at the pixel that is
 * nearest to it. */
void sl_layout_beam_in_stack(const struct sl_geometry *geometry, double *row, double *column);

/* One image, [rows][columns], out of modules that follow each other, [module][pixel]. Gaps and
 * modules that are missing (a bit each) get `fill`. bytes: of a pixel, 1, 2 or 4. */
void sl_layout_assemble(const struct sl_geometry *geometry, uint32_t bytes, const void *modules,
			uint64_t missing, const void *fill, void *image);

#ifdef __cplusplus
}
#endif

#endif
