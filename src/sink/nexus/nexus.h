/* nexus.h - what the sink `nexus` and the recovery of its files share.
 *
 * Threads:   those of the file. */
#ifndef SL_SINK_NEXUS_NEXUS_H
#define SL_SINK_NEXUS_NEXUS_H

#include <stdbool.h>
#include <stdint.h>

#include "hdf5/file.h"

/* A file that is not written by the run itself, but out of a recording of it (src/convert). */
struct sl_nexus_rebuild {
	/* The text that the run's files are to share (hdf5/rolled/data_files.h); NULL: a new
	 * one. */
	const char *file_set;
	uint32_t
		kept_files; /* of an earlier conversion to this file: data files, which are whole */
	bool all_images;    /* of rejected and dark frames, too, as far as they have one */
	uint64_t refused;   /* frames that the recording could not take */
	const char *state;  /* in the end; NULL: complete */
	const char *cut;    /* which part of a run it is, for people; NULL: all of it */
	/* The sink of the run that made the recording, and its place as the status has it (NULL:
	 * not known): what it left out is left out here. NULL: the run itself writes. */
	const char *recorder, *recorded_at;
};

/* By its options: the result whose images are stored; NULL: none. */
const char *sl_nexus_dataset(const void *state);

/* Before open(); the texts must stay until close(). */
void sl_nexus_set_rebuild(void *state, const struct sl_nexus_rebuild *rebuild);

/* While it is open: data files that were begun; those that are on disk for certain. */
uint32_t sl_nexus_data_files(const void *state);
uint32_t sl_nexus_safe_files(const void *state);
/* Images of frames that are in data files that are kept must be prepared, too: the audit needs
 * their checksums. */
bool sl_nexus_reads_images(const void *state);

/* In the place of close(), where not all rows came: what is there stays, to be gone on with. */
void sl_nexus_leave(void *state);

/* Of the file: writing, complete, recovered. */
#define SL_NEXUS_STATE "/entry/sluice/state"

/* In the place of the state before. */
void sl_nexus_set_state(struct sl_h5 *file, const char *state);

/* /entry/data/data_000001 and so on, as XDS's plug-ins look for images; nothing where the file has
 * no images. */
void sl_nexus_link_data(struct sl_h5 *file, const char *path, uint32_t files);

#endif
