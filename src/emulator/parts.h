/* parts.h - what the files of the emulator share. */
#ifndef SL_EMULATOR_PARTS_H
#define SL_EMULATOR_PARTS_H

#include "emulator/emulator.h"

/* ---- block.c ---- */

/* Which detector renders, and which part of it this front end's transfer sends. */
void sl_emulate_choose_camera(struct sl_emulate *em);

int sl_emulate_frame_open(const struct sl_emulate *em, struct sl_emulate_frame *slot);
void sl_emulate_frame_close(struct sl_emulate_frame *slot);

/* Render the k'th block of this plan for module m, and lay out its writes. */
int sl_emulate_block(struct sl_emulate *em, uint32_t m, uint64_t k, uint64_t sequence,
		     struct sl_emulate_frame *slot);

/* The k'th block of this plan is left out. */
int sl_emulate_leave_out(struct sl_emulate *em, uint64_t k);

/* So are those from the k'th on that it will miss while it is away: other front ends send theirs of
 * them, and they are answered. */
int sl_emulate_stay_away(struct sl_emulate *em, uint64_t k);

/* ---- send.c ---- */

void *sl_emulate_send(void *emulate); /* the data thread */

#endif
