/* look.c - up to when a link thread has taken everything that came. */
#include "core/look.h"

uint64_t sl_look_pass(struct sl_look *look, uint64_t now_ns, uint64_t taken, bool emptied)
{
	uint64_t since = look->since_ns;

	if (emptied) {
		*look = (struct sl_look){0};
		return now_ns;
	}
	if (!since) {
		*look = (struct sl_look){.since_ns = now_ns, .taken = taken};
		return 0;
	}
	look->taken += taken;
	if (look->taken < SL_LOOK_PACKETS)
		return 0;
	*look = (struct sl_look){.since_ns = now_ns, .taken = 0};
	return since;
}
