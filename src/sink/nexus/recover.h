/* recover.h - a file of a run that was killed, made whole.
 *
 * Model:     rows up to the last flush (hdf5/rolled/recover.h); the ledger as far as they tell it;
 *            /entry/sluice/state says "recovered". A run that was killed before it had rows,
 *            and that was to replace another, gives way to that other one.
 * Threads:   one.
 * Errors:    -errno, logged; what was there stays. */
#ifndef SL_SINK_NEXUS_RECOVER_H
#define SL_SINK_NEXUS_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

struct sl_nexus_recovered {
	bool complete;		/* it was whole: nothing was done */
	uint32_t files, mended; /* data files; those that were not whole */
	uint64_t images, rows;	/* kept frames; frames of any kind */
	uint32_t brought_back;	/* files of the earlier run that have their names again */
	uint32_t released;	/* data files without rows or a master, which are gone */
	char root[65];		/* of its hash tree; empty: it has none */
};

int sl_nexus_recover(const char *path, struct sl_nexus_recovered *recovered);

#endif
