/* row.h - what a sink writes about a frame of any kind: kept or not, the verdict, and what becomes
 * of each module. Sinks that write rows share it, so that their rows say the same.
 *
 * Threads:   functions of their arguments. */
#ifndef SL_SINK_ROW_H
#define SL_SINK_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/frame.h>

/* The frame is whole, not dark, and no stage said no. */
bool sl_row_kept(const struct sl_frame *frame);

/* The verdict on the frame: an image's own; of a block of events, how many are kept, and why one of
 * them is. */
struct sl_verdict sl_row_verdict(const struct sl_frame *frame);

/* What the outcome and the cause of each module will be when the sinks are safe: [modules] each. */
void sl_row_outcomes(const struct sl_frame *frame, uint32_t modules, uint8_t *outcome,
		     uint8_t *cause);

#endif
