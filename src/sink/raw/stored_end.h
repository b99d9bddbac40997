/* stored_end.h - what is known of a run when it has ended, as bytes, and back.
 *
 * Model:     sections (bytes.h): the status as the sink's close() had it, as it lies in memory
 *            (sluice/status.h: there are no pointers in it, and members are only added), by which
 *            place the status knows the sink, and the metadata as they are then, with what was
 *            changed in them.
 * Threads:   functions of their arguments.
 * Errors:    -EBADMSG, -ENOMEM; not logged. */
#ifndef SL_SINK_RAW_STORED_END_H
#define SL_SINK_RAW_STORED_END_H

#include <sluice/status.h>

#include "sink/raw/stored_run.h"

int sl_stored_end_write(const struct sl_status *status, const char *where,
			const struct sl_env_metadata *metadata, struct sl_bytes *bytes);

/* The status of a run with this many modules; the metadata of the run are replaced, its changes and
 * run->where set. */
int sl_stored_end_read(const void *data, size_t bytes, struct sl_stored_run *run,
		       struct sl_status *status);

#endif
