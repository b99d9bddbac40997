/* lines.h - the lines of a block, where an offer becomes a plan.
 *
 * Model:     the source says in its offer which lines its pixels have, the ring which pitch they
 *            get. A source that knows of no lines can have neither a pitch nor a message per line.
 * Threads:   the control thread, in accept(). */
#ifndef SL_LINK_LINES_H
#define SL_LINK_LINES_H

#include <stdbool.h>

#include "core/link.h"

/* Whether the lines that are offered are those of the ring, as far as they matter. */
bool sl_lines_fit(const struct sl_link_env *env, const struct sl_offer *offer);

/* Lines, pitch, record_at and packets of a plan whose message, pmtu and block_bytes are set. */
void sl_lines_plan(const struct sl_ring *ring, const struct sl_offer *offer, struct sl_plan *plan);

#endif
