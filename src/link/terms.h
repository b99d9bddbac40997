/* terms.h - the terms of a receiver's plans that follow from its ring and its options.
 *
 * Threads:   the control thread, in accept(). */
#ifndef SL_LINK_TERMS_H
#define SL_LINK_TERMS_H

#include "core/answer.h"
#include "core/link.h"

/* All but transfer, bare, keys, numbers, base, window and dest. */
void sl_terms_init(struct sl_plan_terms *terms, const struct sl_link_env *env, uint16_t module);

#endif
