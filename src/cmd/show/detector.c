/* detector.c - what a detector sends, as a picture. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/show/show.h"

enum { RAW_OVERLOAD = 0xc000, RAW_BAD_HIGH = 0xffff, RAW_BAD_LOW = 0x4000 };

struct source {
	const struct sl_detector *detector;
	void *state;
	struct sl_geometry geometry; /* with its layout */
	struct sl_calibration calibration;
	bool calibrated;
	uint64_t frame;
	uint32_t flags;
};

static float plain_value(enum sl_dtype dtype, const void *pixels, uint64_t i)
{
	switch (dtype) {
	case SL_U8:
		return ((const uint8_t *)pixels)[i];
	case SL_U16:
		return ((const uint16_t *)pixels)[i];
	case SL_U32:
		return (float)((const uint32_t *)pixels)[i];
	case SL_I16:
		return ((const int16_t *)pixels)[i];
	case SL_I32:
		return (float)((const int32_t *)pixels)[i];
	default:
		return ((const float *)pixels)[i];
	}
}

/* Photons, or keV where their energy is not known; at: [module][pixel]. */
static float corrected_value(const struct source *s, uint64_t at, uint16_t raw)
{
	const struct sl_calibration *c = &s->calibration;
	uint64_t all = s->geometry.modules * sl_geometry_pixels(&s->geometry);
	uint64_t cell = c->cells > 1 ? sl_geometry_cell(&s->geometry, s->frame) : 0;
	double energy = s->geometry.photon_energy_keV > 0 ? s->geometry.photon_energy_keV : 1;
	int g = raw >> 14 == 3 ? 2 : raw >> 14;

	if (raw == RAW_OVERLOAD)
		return INFINITY;
	if (raw == RAW_BAD_HIGH || raw == RAW_BAD_LOW || raw >> 14 == 2 || c->gain[g][at] == 0 ||
	    (c->mask && c->mask[at]))
		return NAN;
	return (float)(((raw & 0x3fff) - c->pedestal[g][cell * all + at]) / c->gain[g][at] /
		       energy);
}

/* All modules one below the other. */
static int render(const struct source *s, float *out)
{
	const struct sl_geometry *g = &s->geometry;
	uint64_t pixels = sl_geometry_pixels(g);
	void *buffer = malloc(g->module_bytes);
	int err = buffer ? 0 : -ENOMEM;

	for (uint32_t m = 0; m < g->modules && !err; m++, out += pixels) {
		const void *raw;

		err = s->detector->render(s->state, s->frame, m, s->flags, buffer, &raw);
		for (uint64_t i = 0; i < pixels && !err; i++)
			out[i] = s->calibrated && g->dtype == SL_U16
					 ? corrected_value(s, m * pixels + i,
							   ((const uint16_t *)raw)[i])
					 : plain_value(g->dtype, raw, i);
	}
	free(buffer);
	return err;
}

/* A wide pixel's photons fell onto all the image pixels that it covers. */
static void share_out(const struct sl_geometry *g, float *out)
{
	uint64_t pixels = sl_geometry_pixels(g);

	for (uint64_t i = 0; i < pixels; i++) {
		uint32_t share = sl_layout_share(g, (uint32_t)i);

		for (uint32_t m = 0; share > 1 && m < g->modules; m++)
			out[m * pixels + i] /= (float)share;
	}
}

static int assemble(const struct sl_geometry *g, struct sl_picture *picture)
{
	const float fill = NAN;
	float *image = malloc((size_t)g->layout.rows * g->layout.columns * sizeof(*image));

	if (!image)
		return -ENOMEM;
	share_out(g, picture->pixels);
	sl_layout_assemble(g, sizeof(float), picture->pixels, 0, &fill, image);
	free(picture->pixels);
	*picture = (struct sl_picture){g->layout.rows, g->layout.columns, image};
	return 0;
}

static int draw(const struct source *s, bool stacked, struct sl_picture *picture)
{
	const struct sl_geometry *g = &s->geometry;
	char why[100];
	int err;

	*picture = (struct sl_picture){.rows = g->modules * g->rows, .columns = g->columns};
	picture->pixels = malloc((size_t)picture->rows * picture->columns * sizeof(float));
	if (!picture->pixels)
		return -ENOMEM;
	err = render(s, picture->pixels);
	if (!err && !stacked) {
		err = sl_layout_check(g, why, sizeof(why));
		if (err)
			sl_error("%s: its layout is none: %s", g->detector, why);
	}
	if (!err && !stacked)
		err = assemble(g, picture);
	if (err) {
		free(picture->pixels);
		picture->pixels = NULL;
	}
	return err;
}

int sl_show_detector(const struct sl_detector *detector, void *state,
		     const struct sl_geometry *geometry, uint64_t frame, uint32_t flags,
		     bool stacked, struct sl_picture *picture)
{
	struct source s = {.detector = detector,
			   .state = state,
			   .geometry = *geometry,
			   .frame = frame,
			   .flags = flags};
	int err = 0;

	sl_layout_resolve(geometry, &s.geometry.layout);
	if (detector->calibration) {
		err = detector->calibration(state, &s.calibration);
		s.calibrated = !err && sl_calibration_has_gains(&s.calibration);
	}
	if (!err)
		err = draw(&s, stacked, picture);
	if (err)
		sl_error("no picture of frame %llu: %s", (unsigned long long)frame, strerror(-err));
	return err;
}
