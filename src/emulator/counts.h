/* counts.h - the front end's own account of what it sent, as a text for 'sluice audit --source'.
 *
 * Model:     the sending thread notes each module-frame, with the checksum of its pixels if it has
 *            one, before anything of it leaves; the control thread writes a line about it when the
 *            link has sent it. The counts of the modules are the last lines: without them the text
 *            is not whole. One text per plan; the next one replaces it.
 * Threads:   note and leave_out on the sending thread; all else on the control thread.
 * Cost:      a few stores per module-frame. The sending thread waits where the control thread is
 *            thousands of module-frames behind. */
#ifndef SL_EMULATOR_COUNTS_H
#define SL_EMULATOR_COUNTS_H

#include <sluice/record.h>

struct sl_emulator;
struct sl_emulator_counts;

/* 0: also where none are asked for (frontend.counts), and em->counts stays NULL. */
int sl_emulator_counts_open(struct sl_emulator *em);
void sl_emulator_counts_close(struct sl_emulator *em);

/* A plan begins; what was written of the last one goes, unless this front end comes back to its
 * run. */
void sl_emulator_counts_begin(struct sl_emulator *em);

/* -ECANCELED: told to end at once while waiting. */
int sl_emulator_counts_note(struct sl_emulator *em, uint32_t module,
			    const struct sl_record *record);
int sl_emulator_counts_leave_out(struct sl_emulator *em, uint32_t module, uint64_t sequence);

void sl_emulator_counts_write(struct sl_emulator *em);
void sl_emulator_counts_end(struct sl_emulator *em); /* the sending thread has ended */

#endif
