/* begins.c - sources that do not begin together.
 *
 * A frame is not late before every source has begun: devices that are powered one after another
 * would lose all frames of the first, although it can be told to wait. So while a source that can
 * wait has yet to begin, and all that have begun can wait too, no frame is given up for its age:
 * the ring fills, and those that send are held by their credits, or told to come again. */
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "receiver/private.h"

#define TELL_NS UINT64_C(5000000000)

void sl_begins_check(struct sl_receiver *r)
{
	uint64_t awaited = 0;
	bool begun = false, held = true;

	if (r->all_began)
		return;
	for (uint32_t m = 0; m < r->modules; m++) {
		struct sl_source *s = &r->source[m];
		uint32_t state = atomic_load_explicit(&s->state, memory_order_acquire);
		uint64_t first = atomic_load_explicit(&s->first, memory_order_relaxed);
		bool can_wait = atomic_load_explicit(&s->can_wait, memory_order_relaxed);

		if (sl_feed_reached(r->of, m) > first) {
			begun = true;
			held &= can_wait;
		} else if (state == SL_SOURCE_RUNNING) {
			awaited |= UINT64_C(1) << m;
			held &= can_wait;
		}
	}
	r->all_began = !awaited;
	held = awaited && begun && held;
	r->join.patient = held;
	r->feed[0].assembler.patient = held;
	atomic_store_explicit(&r->awaited, held ? awaited : 0, memory_order_relaxed);
}

void sl_begins_tell(struct sl_receiver *r, uint64_t now_ns)
{
	uint64_t awaited = atomic_load_explicit(&r->awaited, memory_order_relaxed);
	char list[SL_ASSEMBLER_MODULES * 4];
	size_t n = 0;

	if (!awaited || r->awaited_since_ns == UINT64_MAX)
		return;
	if (!r->awaited_since_ns)
		r->awaited_since_ns = now_ns;
	if (now_ns - r->awaited_since_ns < TELL_NS)
		return;
	for (uint32_t m = 0; m < r->modules; m++)
		if (awaited >> m & 1)
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%u", n ? ", " : "", m);
	sl_warn("nothing has come of module %s yet: the other modules wait for it, and lose "
		"nothing",
		list);
	r->awaited_since_ns = UINT64_MAX;
}
