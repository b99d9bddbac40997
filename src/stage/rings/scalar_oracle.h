/* scalar_oracle.h - rings by plain loops, equal to the stage's bit for bit.
 *
 * Threads:   a pure function.
 * Cost:      about a microsecond an event: what `sluice bench trigger` calls scalar/rings. */
#ifndef SL_STAGE_RINGS_SCALAR_ORACLE_H
#define SL_STAGE_RINGS_SCALAR_ORACLE_H

#include "stage/rings/find.h"

void sl_scalar_rings(const struct sl_rings_settings *set, const uint8_t *packed,
		     struct sl_rings_event *found);

#endif
