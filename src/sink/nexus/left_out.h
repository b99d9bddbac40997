/* left_out.h - /entry/sluice/on_slow: kept frames that this file has no image of, because the sink
 * could not keep pace (on_slow: prescale).
 *
 *   policy            prescale
 *   frames_left_out   how many; their rows have the cause `slow`
 *   sequence, factor  [changes]: from this frame on, one of `factor` kept frames was stored
 *   changes           of the factor; more than the rows of these two in a long run
 *
 * Threads:   those of the file. */
#ifndef SL_SINK_NEXUS_LEFT_OUT_H
#define SL_SINK_NEXUS_LEFT_OUT_H

#include <sluice/status.h>

#include "hdf5/file.h"

/* sink: its name, and `where`, by which the status knows it; NULL: the only one of this name.
 * Nothing is written if no frame was left out. */
void sl_left_out_write(struct sl_h5 *file, const char *sink, const char *where,
		       const struct sl_status *status);

#endif
