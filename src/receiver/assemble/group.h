/* group.h - which heads are the next frame, where modules may miss triggers.
 *
 * Model:     of the heads that have a key the lowest comes first, with all that are as near as the
 *            window. A head without one (it was lost, or its record is wrong) goes to that frame if
 *            it can be of it, whatever follows in its stream; else it is a frame of its own. No
 *            guess makes a block late, sets the key of a frame, or cuts its window.
 * Threads:   the assembler's.
 * Cost:      a few comparisons per module. */
#ifndef SL_RECEIVER_ASSEMBLE_GROUP_H
#define SL_RECEIVER_ASSEMBLE_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "receiver/assemble/assembler.h"

struct sl_group {
	uint64_t members, key;
	bool known; /* one of them at least has a key of its own */
	bool late;  /* its trigger was given out before */
};

/* The key of a cell whose event is there. False when its record is not to be believed. */
bool sl_group_key(struct sl_assembler *assembler, uint32_t module, uint64_t sequence,
		  uint64_t *key);

/* The next one; false: nothing is known yet. */
bool sl_group_find(struct sl_assembler *assembler, struct sl_group *group);

/* Could what is waited for of module belong to this group? */
bool sl_group_may_have(const struct sl_assembler *assembler, uint32_t module,
		       const struct sl_group *group);

#endif
