/* event.h - one event of the NA62 RICH: particles, their light, the photomultipliers that saw
 * it.
 *
 * Model:     17 m of neon, mirrors with a focal length of 17 m, two disks of photomultipliers.
 *            A particle of mass m and momentum p makes a ring of radius f sqrt(2(n-1) - m^2/p^2)
 *            whose centre is its direction. Its photons leave along the whole way, so that they
 *            meet the mirrors within a disk as large as the ring; mirrors left and right of the
 *            beam serve different disks, hence rings that are shared between both. All is a
 *            function of the key.
 * Threads:   the tables are read-only.
 * Cost:      about two microseconds an event. */
#ifndef SL_DETECTOR_RICH_EVENT_H
#define SL_DETECTOR_RICH_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/events.h>

enum sl_rich_particle { SL_RICH_ELECTRON, SL_RICH_MUON, SL_RICH_PION };
enum { SL_RICH_RINGS = 3 };

struct sl_rich_setup {
	double two_rings, three_rings; /* shares of the events */
	double ring_hits;	       /* mean of a ring at the largest radius */
	double noise_hits;	       /* mean of an event */
	double resolution_mm; /* of a photon, across the ring, before it falls into a cell */
	const float *normal;  /* [SL_NORMAL_ENTRIES] */
};

struct sl_rich_ring {
	double x_mm, y_mm, radius_mm, momentum_GeV;
	enum sl_rich_particle particle;
	uint32_t hits; /* hits of the event that it caused, perhaps with another */
};

struct sl_rich_event {
	uint32_t hits, rings;
	uint16_t hit[SL_RICH_HITS];
	struct sl_rich_ring ring[SL_RICH_RINGS];
};

/* The radius of a particle's ring; 0 below threshold. */
double sl_rich_radius_mm(enum sl_rich_particle particle, double momentum_GeV);

/* dark: noise alone. */
void sl_rich_event(const struct sl_rich_setup *setup, uint64_t key, bool dark,
		   struct sl_rich_event *event);

/* How many rings that event has, without the rest. */
uint32_t sl_rich_event_rings(const struct sl_rich_setup *setup, uint64_t key);

#endif
