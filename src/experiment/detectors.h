/* detectors.h - the detectors of an experiment file, and what one of them changes in it.
 *
 * Model:     `detectors` is a list of named detectors whose parts become events. The first one
 *            defines events; each other attaches to them by its `key`, and `missing` says what a
 *            part costs that does not come. An item has the options of the section `detector`, and
 *            sections of its own (link, ring, control, calibration, geometry, frontend, feroce),
 *            which are laid over those of the file, key by key. A file with the section `detector`
 *            has one detector, without a name.
 * Threads:   one. */
#ifndef SL_EXPERIMENT_DETECTORS_H
#define SL_EXPERIMENT_DETECTORS_H

#include <stdint.h>

#include "base/config/config.h"
#include "receiver/assemble/join.h"

enum { SL_DETECTORS_MOST = SL_JOIN_DETECTORS, SL_DETECTOR_NAME = 32 };
enum { SL_DETECTOR_NAME_MOST = 22 }; /* results of it have longer names: SL_NAME_BYTES */

struct sl_detector_names {
	unsigned n; /* 0: the file has the section `detector` */
	char name[SL_DETECTORS_MOST][SL_DETECTOR_NAME];
};

struct sl_key_options { /* what a detector has in common with events: section `key` of an item */
	uint32_t by;	/* enum sl_align_by */
	double offset;	/* frames or triggers; ns by timestamp */
	uint64_t divider;
	double drift_ppm;
	uint64_t window_ns;
	uint32_t wrap_bits;
};

struct sl_missing_options { /* beside the options of the detector */
	uint32_t missing;   /* enum sl_join_missing */
	uint32_t wait_us;
};
extern const struct sl_option sl_key_options[], sl_missing_options[];

/* In the order of the file. Logged: names that are not letters, digits, - and _; too many; items
 * that are no map. */
int sl_detector_names(const struct sl_config *config, struct sl_detector_names *names);

struct sl_detector_choice {
	struct sl_node *item; /* what is left: key, missing, wait_us; NULL: the file has no list */
	struct sl_detector_names names; /* of all in the file */
	/* Receivers of one file listen on consecutive ports, unless a detector names its own. */
	unsigned port_offset;
};

/* Make the file that of one detector; NULL or empty: of the first one. */
int sl_detector_choose(struct sl_config *config, const char *name,
		       struct sl_detector_choice *choice);

#endif
