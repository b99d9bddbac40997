/* rich_draw.h - events of a RICH for tests: rings of photons and noise, as hits of cells. Apart
 * from the emulator of the detector, and simpler. */
#ifndef RICH_DRAW_H
#define RICH_DRAW_H

#include <math.h>
#include <stdint.h>

#include <sluice/events.h>

struct rich_draw {
	uint64_t random;
	uint16_t hit[256];
	uint32_t hits;
};

static inline double rich_draw_uniform(struct rich_draw *d)
{
	d->random = d->random * 6364136223846793005u + 1442695040888963407u;
	return (double)(d->random >> 11) / 9007199254740992.;
}

static inline double rich_draw_normal(struct rich_draw *d)
{
	return sqrt(-2 * log(1 - rich_draw_uniform(d))) * cos(2 * SL_PI * rich_draw_uniform(d));
}

static inline uint32_t rich_draw_poisson(struct rich_draw *d, double mean)
{
	double limit = exp(-mean), product = rich_draw_uniform(d);
	uint32_t n = 0;

	for (; product > limit; n++)
		product *= rich_draw_uniform(d);
	return n;
}

/* The cell that a point is in, of one of the disks by chance; a hit is there once. */
static inline void rich_draw_hit(struct rich_draw *d, double x, double y)
{
	double least = SL_RICH_PITCH_MM * SL_RICH_PITCH_MM / 3;
	uint32_t cell = SL_RICH_CELLS;

	for (uint32_t i = 0; i < SL_RICH_DISK_CELLS; i++) {
		double cx, cy;

		sl_rich_position(i, &cx, &cy);
		if (pow(x - cx, 2) + pow(y - cy, 2) < least) {
			least = pow(x - cx, 2) + pow(y - cy, 2);
			cell = i;
		}
	}
	if (cell == SL_RICH_CELLS)
		return;
	cell += rich_draw_uniform(d) < 0.5 ? SL_RICH_DISK_CELLS : 0;
	for (uint32_t i = 0; i < d->hits; i++)
		if (d->hit[i] == cell)
			return;
	if (d->hits < 256)
		d->hit[d->hits++] = (uint16_t)cell;
}

static inline void rich_draw_ring(struct rich_draw *d, double x, double y, double radius,
				  uint32_t photons, double sigma)
{
	double turn = 2 * SL_PI * rich_draw_uniform(d);

	for (uint32_t i = 0; i < photons; i++) {
		/* Without a spread they are as far from each other as can be. */
		double angle = sigma > 0 ? 2 * SL_PI * rich_draw_uniform(d)
					 : turn + 2 * SL_PI * i / photons;
		double r = radius + (sigma > 0 ? sigma * rich_draw_normal(d) : 0);

		rich_draw_hit(d, x + r * cos(angle), y + r * sin(angle));
	}
}

static inline void rich_draw_noise(struct rich_draw *d, uint32_t hits)
{
	for (uint32_t i = 0; i < hits; i++)
		rich_draw_hit(d, (2 * rich_draw_uniform(d) - 1) * 306,
			      (2 * rich_draw_uniform(d) - 1) * 306);
}

/* One to three rings and noise, as docs/reference/events.md describes an event. */
static inline void rich_draw_event(struct rich_draw *d, double noise)
{
	double u = rich_draw_uniform(d);
	int rings = u < 0.05 ? 3 : u < 0.35 ? 2 : 1;

	for (int i = 0; i < rings; i++) {
		double radius = 190 * sqrt(1 - pow(0.25 + 0.55 * rich_draw_uniform(d), 2));

		rich_draw_ring(d, 45 * rich_draw_normal(d), 45 * rich_draw_normal(d), radius,
			       rich_draw_poisson(d, 17 * pow(radius / 190, 2)), 4.7);
	}
	rich_draw_noise(d, rich_draw_poisson(d, noise));
}

/* In no order, and 32 of them at most; then begins anew. */
static inline void rich_draw_pack(struct rich_draw *d, uint8_t *event)
{
	for (uint32_t i = 0; i + 1 < d->hits; i++) {
		uint32_t j = i + (uint32_t)(rich_draw_uniform(d) * (d->hits - i));
		uint16_t hit = d->hit[i];

		d->hit[i] = d->hit[j];
		d->hit[j] = hit;
	}
	sl_rich_pack(d->hit, d->hits < SL_RICH_HITS ? d->hits : SL_RICH_HITS, event);
	d->hits = 0;
}

#endif
