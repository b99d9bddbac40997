/* drawing.c - an element as a picture in a PNG file, with peaks and rings drawn on it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "picture/picture.h"
#include "service/image/render.h"

enum { PEAK_RADIUS = 5, BEAM_ARM = 8, RGB = 3 };

struct canvas {
	uint32_t rows, columns;
	uint8_t *rgb;
	const struct sl_pixels_view *view;
};

static const uint8_t green[RGB] = {96, 255, 160}, yellow[RGB] = {255, 214, 102};
static const uint8_t red[RGB] = {255, 92, 92};

/* In pixels of the canvas; beyond its edges nothing is drawn. */
static void dot(const struct canvas *c, double row, double column, const uint8_t colour[RGB])
{
	if (row >= 0 && column >= 0 && row < c->rows && column < c->columns)
		memcpy(c->rgb + ((size_t)row * c->columns + (size_t)column) * RGB, colour, RGB);
}

static double canvas_row(const struct canvas *c, double row)
{
	return (row - c->view->y) / c->view->bin;
}

static double canvas_column(const struct canvas *c, double column)
{
	return (column - c->view->x) / c->view->bin;
}

static void line(const struct canvas *c, const double from[2], const double to[2],
		 const uint8_t colour[RGB])
{
	double length = hypot(to[0] - from[0], to[1] - from[1]);
	double most = 4.0 * (c->rows + c->columns);

	/* What is far outside is not drawn dot by dot. */
	for (double at = 0; at <= length && length < most; at += 0.7)
		dot(c, from[0] + (to[0] - from[0]) * at / fmax(length, 1),
		    from[1] + (to[1] - from[1]) * at / fmax(length, 1), colour);
}

static void circle(const struct canvas *c, double row, double column, double radius,
		   const uint8_t colour[RGB])
{
	for (double phi = 0; phi < 2 * M_PI; phi += 0.7 / radius)
		dot(c, row + radius * sin(phi), column + radius * cos(phi), colour);
}

static void draw_rings(const struct canvas *c, const struct sl_image_rings *rings)
{
	for (uint32_t i = 0; i < rings->rings; i++)
		for (int k = 0; k < SL_IMAGE_RING_POINTS; k++) {
			const double *a = rings->ring[i].point[k];
			const double *b = rings->ring[i].point[(k + 1) % SL_IMAGE_RING_POINTS];
			const double from[2] = {canvas_row(c, a[0]), canvas_column(c, a[1])};
			const double to[2] = {canvas_row(c, b[0]), canvas_column(c, b[1])};

			if (!isnan(from[0]) && !isnan(to[0]))
				line(c, from, to, yellow);
		}
	for (int k = -BEAM_ARM; k <= BEAM_ARM && rings->has_beam; k++) {
		double row = canvas_row(c, rings->beam[0]);
		double column = canvas_column(c, rings->beam[1]);

		dot(c, row + k, column, red);
		dot(c, row, column + k, red);
	}
}

static void draw_peaks(const struct canvas *c, const struct sl_image_peaks *peaks)
{
	for (uint32_t i = 0; i < peaks->n && i < SL_IMAGE_PEAKS; i++) {
		const float *at = peaks->position + 2 * (size_t)i;

		if (isfinite(at[0]) && isfinite(at[1]))
			circle(c, canvas_row(c, (double)at[0]), canvas_column(c, (double)at[1]),
			       PEAK_RADIUS, green);
	}
}

static void draw_over(const struct canvas *c, const struct sl_image_request *r,
		      const struct sl_image_element *e, const struct sl_image_part *part)
{
	struct sl_image_peaks peaks;
	struct sl_image_rings rings;

	if (r->rings && sl_image_find_rings(e, part, &rings))
		draw_rings(c, &rings);
	if (r->peaks && sl_image_find_peaks(e, part, &peaks))
		draw_peaks(c, &peaks);
}

/* Indices become colours. */
static int colour(const struct sl_picture *picture, const struct sl_picture_look *look,
		  uint8_t *rgb)
{
	size_t n = (size_t)picture->rows * picture->columns;
	uint8_t palette[256][RGB], *index = malloc(n);
	double range[2];
	int err = index ? sl_picture_colour(picture, look, index, range) : -ENOMEM;

	sl_picture_palette((enum sl_picture_colours)look->colours, palette);
	for (size_t i = 0; i < n && !err; i++)
		memcpy(rgb + i * RGB, palette[index[i]], RGB);
	free(index);
	return err;
}

static int draw(struct sl_image_payload *p, const struct sl_image_request *r,
		const struct sl_image_element *e, const struct sl_image_part *part)
{
	const struct sl_picture_look look = {r->scale, r->colours, r->low, r->high};
	struct sl_picture picture = {.pixels = NULL};
	struct canvas c = {.view = &part->view};
	int err = sl_pixels_picture(part->kind, part->pixels, part->columns, &part->view, &picture);

	if (err)
		return err;
	c.rows = picture.rows;
	c.columns = picture.columns;
	c.rgb = malloc((size_t)c.rows * c.columns * RGB);
	err = c.rgb ? colour(&picture, &look, c.rgb) : -ENOMEM;
	if (!err) {
		draw_over(&c, r, e, part);
		err = sl_png_encode_rgb(c.rows, c.columns, c.rgb, &p->data, &p->bytes);
	}
	free(picture.pixels);
	free(c.rgb);
	return err;
}

struct sl_image_payload *sl_image_render_picture(const struct sl_image_request *r,
						 const struct sl_image_element *e,
						 const struct sl_image_part *part)
{
	struct sl_image_payload *p;

	if (!sl_png_is_there())
		return sl_image_payload_error(404, "not_found", NULL,
					      "libpng-dev was not found when this was built: "
					      "there are no pictures");
	p = sl_image_payload_make(200, SL_IMAGE_PNG);
	if (p && !draw(p, r, e, part))
		return p;
	sl_image_payload_release(p);
	return NULL;
}
