/* parts.h - what the files of the emulator share. */
#ifndef SL_EMULATOR_PARTS_H
#define SL_EMULATOR_PARTS_H

#include "emulator/emulator.h"

/* ---- block.c ---- */

/* Which detector renders, and which part of it this front end's transfer sends. */
void sl_emulator_choose_generator(struct sl_emulator *em);

int sl_emulator_frame_open(const struct sl_emulator *em, struct sl_emulator_frame *slot);
void sl_emulator_frame_close(struct sl_emulator_frame *slot);

/* Render the k'th block of this plan for module m, and lay out its writes. */
int sl_emulator_block(struct sl_emulator_sender *sender, uint32_t m, uint64_t k, uint64_t sequence,
		      struct sl_emulator_frame *slot);

/* The k'th block of this plan is left out. */
int sl_emulator_leave_out(struct sl_emulator_sender *sender, uint64_t k);

/* So are those from the k'th on that it will miss while it is away: other front ends send theirs of
 * them, and they are answered. */
int sl_emulator_stay_away(struct sl_emulator_sender *sender, uint64_t k);

/* The frame number as the counter of one of several detectors has it: ahead by its key.offset. */
uint64_t sl_emulator_counter(const struct sl_experiment *experiment, uint64_t number);

/* ---- senders.c ---- */

/* Divide the modules among the senders; each gets its faults, if there are any. */
int sl_emulator_senders_open(struct sl_emulator *em);
void sl_emulator_senders_close(struct sl_emulator *em);

/* The sender of a module. */
struct sl_emulator_sender *sl_emulator_sender_of(struct sl_emulator *em, uint32_t module);

/* Faults as at the first frame. */
void sl_emulator_senders_again(struct sl_emulator *em);

/* A link state for each sender, as configured. */
int sl_emulator_senders_connect(struct sl_emulator *em);
int sl_emulator_senders_start(struct sl_emulator *em);

/* Join them, and add up what they did; then close their links. */
void sl_emulator_senders_end(struct sl_emulator *em);
void sl_emulator_senders_disconnect(struct sl_emulator *em);

/* ---- send.c ---- */

void *sl_emulator_send(void *sender); /* the data thread */

/* Ask all senders to end. */
void sl_emulator_tell_stop(struct sl_emulator *em, bool at_once);

#endif
