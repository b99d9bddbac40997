/* join_key.h - what a part is known by, and its key on the scale of events (join.h).
 *
 * Model:     a moment is the sequence, number and time of a part. Those of the detector that
 *            defines events are the scale: key = number * divider, or time. Those of another
 *            detector are brought to that scale by its offset, divider and drift.
 * Threads:   the dispatcher's.
 * Cost:      one record read and checked for each part. */
#ifndef SL_RECEIVER_ASSEMBLE_JOIN_KEY_H
#define SL_RECEIVER_ASSEMBLE_JOIN_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "receiver/assemble/group.h"
#include "receiver/assemble/join.h"

struct sl_join_moment sl_join_moment_of(struct sl_join *join, uint32_t index,
					const struct sl_group *group);

/* The moment has this kind of key. */
bool sl_join_has(const struct sl_join_moment *at, enum sl_align_by by);

/* Of an event; and of a part, near to an event's key as long as nothing is known of its counter. */
uint64_t sl_join_event_key(const struct sl_join *join, const struct sl_join_moment *event,
			   enum sl_align_by by);
uint64_t sl_join_part_key(struct sl_join_detector *d, const struct sl_join_moment *at,
			  uint64_t key);
int64_t sl_join_window(const struct sl_join_detector *d);

/* The trigger of an event, which dividers count; and whether the detector has a part of it. */
uint64_t sl_join_trigger(const struct sl_join *join, const struct sl_join_detector *d,
			 const struct sl_join_moment *event);
bool sl_join_expects(const struct sl_join *join, const struct sl_join_detector *d,
		     const struct sl_join_moment *event);

#endif
