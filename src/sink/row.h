/* row.h - what a sink writes about a frame of any kind: kept or not, the verdict, and what becomes
 * of each module. Sinks that write rows share it, so that their rows say the same.
 *
 * Threads:   functions of their arguments. */
#ifndef SL_SINK_ROW_H
#define SL_SINK_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/frame.h>

/* The frame is whole, not dark, no stage said no, no check refused it, and its results are here.
 * Also of a frame that another sink has left out: there it is unwritten, and this sink has it. */
bool sl_row_kept(const struct sl_frame *frame);

/* Kept, and left out by this sink, which could not keep pace (on_slow): it has no results. */
bool sl_row_left_out(const struct sl_frame *frame);

/* The verdict on the frame: an image's own; of a block of events, how many are kept, and why one of
 * them is. */
struct sl_verdict sl_row_verdict(const struct sl_frame *frame);

/* What the outcome and the cause of each module will be when the sinks are safe: [modules] each. */
void sl_row_outcomes(const struct sl_frame *frame, uint32_t modules, uint8_t *outcome,
		     uint8_t *cause);

#endif
