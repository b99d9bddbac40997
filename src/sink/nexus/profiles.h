/* profiles.h - profiles and cakes of the stage `integrate` as groups NXdata, which viewers plot by
 * themselves.
 *
 * Model:     /entry/profile: intensity and intensity_errors [n, bins] over frame_number [n] and one
 *            of q, two_theta, radius [bins]. /entry/cake: the same [n, sectors, bins], with azimuth
 *            [sectors]. The rows are those of /entry/results; frame_number and image_index are
 *            links to its own. Axes are the stage's constants, NAME_AXIS: what is the same for all
 *            frames is in the file once. /entry/correlation: g2 [regions, lags], of the whole
 *            run, with its axes and what it is made of; constants that are known at the end.
 * Threads:   those of the file.
 * Errors:    stick to the file (hdf5/file.h). */
#ifndef SL_SINK_NEXUS_PROFILES_H
#define SL_SINK_NEXUS_PROFILES_H

#include <stdbool.h>

#include <sluice/env.h>

#include "hdf5/file.h"

enum { SL_PROFILES = 2 };

struct sl_profiles {
	struct sl_profile {
		struct sl_h5_series *intensity, *errors;
		uint32_t from, errors_from;	  /* in sl_frame.result */
		uint64_t at_byte, errors_at_byte; /* of these results */
	} one[SL_PROFILES];
	uint32_t n;
};

/* Whether result i of the chain goes there, so that /entry/results need not have it. */
bool sl_profiles_take(const struct sl_env *env, uint32_t i);

/* The name of a group in /entry, for viewers to begin with; NULL: there is none. */
const char *sl_profiles_plot(const struct sl_env *env);

/* The group /entry/results is there. */
void sl_profiles_open(struct sl_profiles *profiles, struct sl_h5 *file, const struct sl_env *env);
void sl_profiles_append(const struct sl_profiles *profiles, const struct sl_frame *frame);

/* When the run has ended: what stages know of it as a whole. */
void sl_profiles_end(struct sl_h5 *file, const struct sl_env *env);

#endif
