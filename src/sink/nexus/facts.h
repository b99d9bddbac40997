/* facts.h - what users say of a run, where NeXus puts it.
 *
 *   /entry/title, experiment_identifier       title, proposal
 *   /entry/user, or user_1, user_2 ...        users (NXuser)
 *   /entry/instrument/name, /entry/source     instrument, source, source_type
 *   /entry/sample                             sample and what is known of it
 *   /entry/instrument/beam, attenuator        flux, size, profile, polarization; transmission
 *   /entry/instrument/detector/count_time     exposure_s
 *   /entry/metadata                           free keys: numbers with @units, or texts
 *   /entry/sluice/metadata                    all of them as texts, as users gave them
 *   /entry/sluice/metadata_changes            when which one changed during the run
 *   /entry/sluice/points                      of a scan: first_sequence, frames, time, values/NAME;
 *                                             without space for them they are left out
 *
 * Model:     written when the file begins, so that a killed run leaves them, and again in the end
 *            where they have changed.
 * Threads:   those of the file.
 * Errors:    stick to the file (hdf5/file.h). */
#ifndef SL_SINK_NEXUS_FACTS_H
#define SL_SINK_NEXUS_FACTS_H

#include <sluice/env.h>

#include "core/metadata/keys.h"
#include "hdf5/file.h"

enum { SL_FACTS_BYTES = 384 << 10 }; /* that the end may add to the file */

struct sl_facts {				   /* zeroed: closed */
	const struct sl_env_metadata *const *from; /* as the environment has them in the end */
	struct sl_metadata *written;
	struct sl_metadata_known known; /* of these */
	/* Names where users give none: the sink's own options. */
	const char *instrument, *source, *sample;
};

/* What users say when the file begins; before any of the functions below. */
int sl_facts_open(struct sl_facts *facts, const struct sl_env *env);
void sl_facts_close(struct sl_facts *facts);

/* The group of the entry, the instrument, the sample, the beam and the detector are there, with the
 * names of instrument, source and sample. */
void sl_facts_begin(struct sl_facts *facts, struct sl_h5 *file);
void sl_facts_end(struct sl_facts *facts, struct sl_h5 *file);

#endif
