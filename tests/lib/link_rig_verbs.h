/* link_rig_verbs.h - the rig on a device of the fake libibverbs, and loss on its wire. */
#ifndef TESTS_LIB_LINK_RIG_VERBS_H
#define TESTS_LIB_LINK_RIG_VERBS_H

#include "lib/fake_verbs.h"
#include "lib/link_rig.h"

/* The PSN says which packet of which sequence this is. */
static inline bool rig_verbs_lost(void *arg, uint32_t qpn, uint32_t psn)
{
	struct rig *rig = arg;

	for (uint16_t m = 0; m < RIG_MODULES; m++) {
		const struct sl_plan *plan = &rig->plan[m];
		uint32_t packet = (psn - plan->first_psn) & 0xffffff;

		if (plan->qpn == qpn)
			return rig->fault(rig, m, packet / plan->packets, packet % plan->packets) ==
			       SL_PACKET_FAULT_DROP;
	}
	return false;
}

static inline void rig_verbs_lose(struct rig *rig)
{
	fake_verbs_lose(rig->fault ? rig_verbs_lost : NULL, rig);
}

/* One device has both of the rig's addresses. */
static inline void rig_verbs_devices(void)
{
	char address[32];

	for (unsigned host = 1; host <= 2; host++) {
		rig_address(address, host);
		fake_verbs_add("fake0", address);
	}
	rig_lose = rig_verbs_lose;
}

#endif
