/* canvas.h - dots, lines and circles on an array of RGB.
 *
 * Model:     the world is a square of `span` units around (x, y) in the middle of the picture, y
 *            upwards; the smaller side of the picture shows all of it. What lies outside the
 *            picture is not drawn.
 * Threads:   one.
 * Ownership: the pixels stay the caller's. */
#ifndef SL_DETECTOR_CANVAS_H
#define SL_DETECTOR_CANVAS_H

#include <stdint.h>

struct sl_canvas {
	uint8_t *rgb; /* [rows][columns][3] */
	uint32_t rows, columns;
	double x, y, span;
};

/* Colours are 0xRRGGBB. */
void sl_canvas_clear(const struct sl_canvas *canvas, uint32_t colour);

/* A filled disk; radius in the world's units, but at least half a pixel. */
void sl_canvas_dot(const struct sl_canvas *canvas, double x, double y, double radius,
		   uint32_t colour);
void sl_canvas_line(const struct sl_canvas *canvas, double x0, double y0, double x1, double y1,
		    uint32_t colour);
void sl_canvas_circle(const struct sl_canvas *canvas, double x, double y, double radius,
		      uint32_t colour);

#endif
