/* event.h - one bunch crossing in the outer tracker of CMS: tracks, the stubs they leave,
 * and stubs that are of no track.
 *
 * Model:     six barrel layers and five disks on either side, in 3.8 T. A hard collision with jets
 *            among many others (pile-up) makes tracks above the momentum that the modules let
 *            through; each leaves a stub in nearly every layer it crosses, displaced by scattering
 *            and blurred by strips. Far more stubs come from slower particles, secondaries and
 *            chance. All is a function of the key.
 * Threads:   the tables are read-only.
 * Cost:      about a millisecond an event: 10,000 stubs and more. */
#ifndef SL_DETECTOR_TRACKER_EVENT_H
#define SL_DETECTOR_TRACKER_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/events.h>

enum { SL_TRACKER_TRACKS = 2048, SL_TRACKER_STUBS = 1 << 16, SL_TRACKER_NO_TRACK = 0xffff };

struct sl_tracker_setup {
	double pile_up;	   /* mean number of collisions */
	double jets;	   /* of the hard one */
	double pt_cut_GeV; /* of the modules */
	double efficiency; /* of a layer */
	double background; /* stubs of no track; 1: as many as expected */
	const float *normal;
};

struct sl_tracker_track {
	double pt_GeV, phi0, eta, z0_cm;
	int charge;
	uint32_t sector;  /* it belongs to; SL_TRACKER_SECTORS: to none */
	uint32_t sectors; /* that have its stubs of five layers or more */
	uint32_t stubs;
};

struct sl_tracker_stub { /* as measured, before it is rounded to 48 bits */
	double phi, r_cm, z_cm, q_over_pt;
	uint16_t layer, track; /* SL_TRACKER_NO_TRACK */
};

struct sl_tracker_event { /* large: not for the stack */
	uint32_t tracks, stubs;
	struct sl_tracker_track track[SL_TRACKER_TRACKS];
	struct sl_tracker_stub stub[SL_TRACKER_STUBS];
};

/* dark: no collisions, a little noise. */
void sl_tracker_event(const struct sl_tracker_setup *setup, uint64_t key, bool dark,
		      struct sl_tracker_event *event);

/* The sectors that a stub's track may belong to: `phis` of them from phi sector `phi`, around the
 * circle, each with `etas` from eta sector `eta`. */
struct sl_tracker_sectors {
	uint32_t phi, phis, eta, etas;
};
struct sl_tracker_sectors sl_tracker_sectors(const struct sl_tracker_setup *setup,
					     const struct sl_tracker_stub *stub);

/* The stub as that sector sees it. */
struct sl_stub sl_tracker_digitise(const struct sl_tracker_stub *stub, uint32_t phi_sector);

#endif
