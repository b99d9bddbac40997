/* picture.c - an event of the tracker, seen along the beam. */
#include "detector/tracker/picture.h"

#include <sluice/events.h>

#include "detector/trig.h"

enum {
	BACK = 0x0b0d12,
	LAYER = 0x2c3444,
	STUB = 0x8fa3bf,
	POSITIVE = 0xff8c3a,
	NEGATIVE = 0x3ab4ff,
};
static const double OUTER_CM = 112;

static uint32_t wedges_of(uint32_t sectors)
{
	return (sectors - 1) / SL_TRACKER_ETA_SECTORS + 1;
}

static int is_wedge(uint32_t sectors)
{
	return wedges_of(sectors) <= SL_TRACKER_PHI_SECTORS / 4;
}

static void at(uint32_t sectors, double phi, double r, double *x, double *y)
{
	double turns = phi / (2 * SL_PI), c, s;

	/* The middle of the wedges, which begin at half a turn, goes to the top. */
	if (is_wedge(sectors))
		turns += 0.75 - wedges_of(sectors) / 2. / SL_TRACKER_PHI_SECTORS;
	sl_cos_sin(turns, &c, &s);
	*x = r * c;
	*y = r * s;
}

void sl_tracker_picture_begin(struct sl_canvas *canvas, uint32_t sectors)
{
	static const double radii[] = {23, 36, 51, 69, 86, 108};

	canvas->x = canvas->y = 0;
	canvas->span = 2 * OUTER_CM;
	if (is_wedge(sectors)) {
		canvas->y = OUTER_CM / 2;
		canvas->span = OUTER_CM * (wedges_of(sectors) < 4 ? 1.05 : 1.5);
	}
	sl_canvas_clear(canvas, BACK);
	for (unsigned i = 0; i < sizeof(radii) / sizeof(*radii); i++)
		sl_canvas_circle(canvas, 0, 0, radii[i], LAYER);
}

void sl_tracker_picture_stubs(const struct sl_canvas *canvas, uint32_t sectors, uint32_t sector,
			      const uint8_t *row)
{
	struct sl_stub stub;

	for (uint32_t i = 0; i < SL_STUBS && sl_stub_unpack(row, &stub); i++) {
		double x, y;

		at(sectors, sl_tracker_sector_phi(sector) + stub.phi * SL_STUB_PHI_RAD,
		   stub.r * SL_STUB_R_CM, &x, &y);
		sl_canvas_dot(canvas, x, y, canvas->span / 500, STUB);
		row += SL_STUB_BYTES;
	}
}

void sl_tracker_picture_track(const struct sl_canvas *canvas, uint32_t sectors, double phi0,
			      double q_over_pt)
{
	double x = 0, y = 0;

	for (double r = 2; r <= OUTER_CM; r += 2) {
		double next_x, next_y;

		at(sectors, phi0 - sl_asin(SL_TRACKER_K * q_over_pt * r), r, &next_x, &next_y);
		sl_canvas_line(canvas, x, y, next_x, next_y, q_over_pt > 0 ? POSITIVE : NEGATIVE);
		x = next_x;
		y = next_y;
	}
}
