/* event.c - one event of the NA62 RICH. */
#include "detector/rich/event.h"

#include <math.h>
#include <string.h>

#include <sluice/random.h>

#include "detector/trig.h"

enum { KEY_RINGS = 1, KEY_RING, KEY_PHOTON, KEY_NOISE, KEY_ORDER };
enum { SEEN_MAX = 255 }; /* lit cells of an event before the board cuts at 32 */

static const double FOCAL_MM = 17000, RADIUS_MAX_MM = 190.5; /* 17 m sqrt(2 (n-1)) */
static const double INDEX = 62.8e-6;			     /* n - 1 of neon */

/* From decays of kaons of 75 GeV. Two-body decays have flat spectra between the ends that the
 * kaon's speed gives; of Ke3 it is roughly so. Shares as the branching ratios are. The lower end is
 * the threshold of the light where that is higher: what makes no ring is not in the truth. */
static const struct {
	double mass_GeV, from_GeV, to_GeV, share;
} particles[] = {
	[SL_RICH_ELECTRON] = {0.000511, 5, 60, 0.05},
	[SL_RICH_MUON] = {0.105658, 9.5, 75, 0.64},
	[SL_RICH_PION] = {0.139570, 12.5, 69, 0.31},
};

/* Directions: the ring's centre is spread so far about the middle of the disk. Decays happen so far
 * from the mirrors, which decides how far from the beam the particle meets them. */
static const double CENTRE_MM = 45, DECAY_NEAR_M = 67, DECAY_FAR_M = 132, FOCAL_M = 17;

struct seen { /* while an event is made */
	uint32_t cells;
	uint16_t cell[SEEN_MAX];
	uint8_t by[SL_RICH_CELLS]; /* a bit per ring, another for noise; 0: dark */
};
enum { BY_NOISE = 1 << SL_RICH_RINGS };

double sl_rich_radius_mm(enum sl_rich_particle particle, double momentum_GeV)
{
	double ratio = particles[particle].mass_GeV / momentum_GeV;
	double square = 2 * INDEX - ratio * ratio;

	return square > 0 ? FOCAL_MM * sqrt(square) : 0;
}

static void light(struct seen *seen, uint32_t cell, unsigned by)
{
	if (!seen->by[cell]) {
		if (seen->cells == SEEN_MAX)
			return;
		seen->cell[seen->cells++] = (uint16_t)cell;
	}
	seen->by[cell] |= (uint8_t)by;
}

/* The cell of a disk that a point is in, or -1: the nearest centre, of this row or of one beside
 * it. Light guides leave no gaps between cells. */
static int cell_at(double x, double y)
{
	int middle = (int)floor(y / SL_RICH_ROW_PITCH_MM + 0.5) + SL_RICH_ROWS / 2, found = -1;
	double least = SL_RICH_PITCH_MM * SL_RICH_PITCH_MM / 3; /* a corner of the hexagon */

	for (int row = middle - 1; row <= middle + 1; row++) {
		double dx, dy, centre;
		int first, n, i;

		if (row < 0 || row >= SL_RICH_ROWS)
			continue;
		first = sl_rich_row[row];
		n = sl_rich_row[row + 1] - first;
		centre = x / SL_RICH_PITCH_MM + (n - 1) / 2.;
		i = (int)floor(centre + 0.5);
		if (i < 0 || i >= n)
			continue;
		dx = (centre - i) * SL_RICH_PITCH_MM;
		dy = y - (row - SL_RICH_ROWS / 2) * SL_RICH_ROW_PITCH_MM;
		if (dx * dx + dy * dy < least) {
			least = dx * dx + dy * dy;
			found = first + i;
		}
	}
	return found;
}

static double normal(const struct sl_rich_setup *setup, uint64_t key, uint64_t counter)
{
	return setup->normal[sl_draw(key, counter) >> 48];
}

static void choose_ring(const struct sl_rich_setup *setup, uint64_t key, struct sl_rich_ring *ring)
{
	double u = sl_uniform(sl_draw(key, 0));
	enum sl_rich_particle p = SL_RICH_PION;

	if (u < particles[SL_RICH_MUON].share)
		p = SL_RICH_MUON;
	else if (u < particles[SL_RICH_MUON].share + particles[SL_RICH_ELECTRON].share)
		p = SL_RICH_ELECTRON;
	ring->particle = p;
	ring->momentum_GeV = particles[p].from_GeV +
			     sl_uniform(sl_draw(key, 1)) *
				     (particles[p].to_GeV - particles[p].from_GeV);
	ring->radius_mm = sl_rich_radius_mm(p, ring->momentum_GeV);
	ring->x_mm = CENTRE_MM * normal(setup, key, 2);
	ring->y_mm = CENTRE_MM * normal(setup, key, 3);
}

static void shine(const struct sl_rich_setup *setup, uint64_t key, const struct sl_rich_ring *ring,
		  unsigned by, struct seen *seen)
{
	double share = ring->radius_mm / RADIUS_MAX_MM;
	double mean = setup->ring_hits * share * share, photons;
	double way_m = DECAY_NEAR_M + sl_uniform(sl_draw(key, 4)) * (DECAY_FAR_M - DECAY_NEAR_M);
	double mirror_mm = ring->x_mm / FOCAL_M * way_m;
	uint64_t photon_key = sl_key(key, KEY_PHOTON);

	photons = sl_poisson_any(mean, sl_draw(key, 5), setup->normal);
	for (uint64_t i = 0; i < (uint64_t)photons; i++) {
		double radius = ring->radius_mm +
				setup->resolution_mm * normal(setup, photon_key, 3 * i + 1);
		double from = sl_uniform(sl_draw(photon_key, 3 * i + 2)), c, s;
		int cell;

		sl_cos_sin(sl_uniform(sl_draw(photon_key, 3 * i)), &c, &s);
		cell = cell_at(ring->x_mm + radius * c, ring->y_mm + radius * s);
		if (cell < 0)
			continue;
		if (mirror_mm + from * ring->radius_mm * c > 0)
			cell += SL_RICH_DISK_CELLS;
		light(seen, (uint32_t)cell, by);
	}
}

static void add_noise(const struct sl_rich_setup *setup, uint64_t key, struct seen *seen)
{
	double n = sl_poisson_any(setup->noise_hits, sl_draw(key, 0), setup->normal);

	for (uint64_t i = 1; i <= (uint64_t)n; i++)
		light(seen, (uint32_t)(sl_draw(key, i) % SL_RICH_CELLS), BY_NOISE);
}

/* In no order: a shuffle, as far as hits are kept. */
static void read_out(uint64_t key, struct seen *seen, struct sl_rich_event *event)
{
	event->hits = seen->cells < SL_RICH_HITS ? seen->cells : SL_RICH_HITS;
	for (uint32_t i = 0; i < event->hits; i++) {
		uint32_t j = i + (uint32_t)(sl_draw(key, i) % (seen->cells - i));
		uint16_t cell = seen->cell[j];

		seen->cell[j] = seen->cell[i];
		event->hit[i] = cell;
		for (uint32_t r = 0; r < event->rings; r++)
			event->ring[r].hits += seen->by[cell] >> r & 1;
	}
}

uint32_t sl_rich_event_rings(const struct sl_rich_setup *setup, uint64_t key)
{
	double u = sl_uniform(sl_draw(sl_key(key, KEY_RINGS), 0));

	return u < setup->three_rings ? 3 : u < setup->three_rings + setup->two_rings ? 2 : 1;
}

void sl_rich_event(const struct sl_rich_setup *setup, uint64_t key, bool dark,
		   struct sl_rich_event *event)
{
	struct seen seen;

	seen.cells = 0;
	memset(seen.by, 0, sizeof(seen.by));
	memset(event, 0, sizeof(*event));
	event->rings = dark ? 0 : sl_rich_event_rings(setup, key);
	for (uint32_t r = 0; r < event->rings; r++) {
		uint64_t ring_key = sl_key(sl_key(key, KEY_RING), r);

		choose_ring(setup, ring_key, &event->ring[r]);
		shine(setup, ring_key, &event->ring[r], 1u << r, &seen);
	}
	add_noise(setup, sl_key(key, KEY_NOISE), &seen);
	read_out(sl_key(key, KEY_ORDER), &seen, event);
}
