/* stored_run.h - what sinks are told of a run before its first frame (sluice/env.h), as bytes, and
 * back.
 *
 * Model:     a version, then sections (bytes.h): geometry with layout and planes, calibration as
 *            far as sinks read it (mask, and whether there are gains), shapes of results,
 *            constants with their data, texts, goniometer, metadata, and what is stored of each
 *            frame. Reading gives an environment that a sink can be opened with.
 *            Not stored: the detector and its state, feedback, the tables of a calibration.
 * Threads:   functions of their arguments.
 * Ownership: a run that was read owns all that its environment points to, until
 *            sl_stored_run_free().
 * Errors:    -EBADMSG: these bytes are not what was written; every number is checked. -EPROTO:
 *            written by a later version. -ENOMEM. Not logged: the caller knows the file. */
#ifndef SL_SINK_RAW_STORED_RUN_H
#define SL_SINK_RAW_STORED_RUN_H

#include <sluice/env.h>

#include "sink/raw/bytes.h"

enum {
	SL_STORED_VERSION = 1,
	SL_STORED_METADATA = 64,
	SL_STORED_CHANGES = 128,
	SL_STORED_NO_IMAGE = -1
};

/* What is stored of each frame besides its row and its small results. */
struct sl_stored_choice {
	int32_t image; /* index of the result whose pixels are stored; SL_STORED_NO_IMAGE */
	bool all;      /* images of rejected frames, too */
};

struct sl_stored_change { /* of metadata, during the run */
	uint64_t unix_ns;
	char *key, *from, *to;
};

struct sl_stored_metadata {
	uint32_t pairs;
	char *key[SL_STORED_METADATA], *value[SL_STORED_METADATA];
	uint64_t left_out; /* changes before these: */
	uint32_t changes;
	struct sl_stored_change *change; /* [SL_STORED_CHANGES]; NULL: it is not known */
};

struct sl_stored_run {
	struct sl_env env;
	struct sl_stored_choice choice;
	struct sl_geometry geometry;
	struct sl_plane *plane;
	struct sl_calibration calibration;
	uint8_t *mask;
	struct sl_shape *result;
	struct sl_constant *constant;
	struct sl_goniometer goniometer;
	struct sl_stored_metadata metadata;
	struct sl_env_metadata each;
	char *link, *guard, *proof, *experiment, *name;
	char *where; /* of the sink, as the status of the end has it; NULL: not known */
};

/* Adds to `bytes`; -ENOMEM. */
int sl_stored_run_write(const struct sl_env *env, const struct sl_stored_choice *choice,
			struct sl_bytes *bytes);
int sl_stored_run_read(const void *data, size_t bytes, struct sl_stored_run *run);
void sl_stored_run_free(struct sl_stored_run *run);

/* A section of metadata by itself, for those that changed: what is there is replaced. */
void sl_stored_metadata_write(const struct sl_env_metadata *metadata, struct sl_bytes *bytes);
void sl_stored_metadata_read(struct sl_bytes_reader *reader, struct sl_stored_metadata *metadata);

/* Likewise what was changed. Nothing is written where changes are not kept. */
void sl_stored_changes_write(const struct sl_env_metadata *metadata, struct sl_bytes *bytes);
void sl_stored_changes_read(struct sl_bytes_reader *reader, struct sl_stored_run *run);

#endif
