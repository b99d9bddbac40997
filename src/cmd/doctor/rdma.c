/* rdma.c - sluice doctor: devices of link verbs. */
#include <string.h>

#include "cmd/doctor/doctor.h"
#include "net/net.h"
#include "net/verbs/verbs.h"

static void tell_address(void *arg, const struct sl_verbs_info *info)
{
	static const uint8_t none[SL_VERBS_GID_BYTES];
	struct sl_doctor *d = arg;
	bool unneeded = d->experiment && !sl_doctor_has_link(d, "verbs");
	char text[SL_NET_TEXT_BYTES];

	if (memcmp(info->gid, none, sizeof(none)) == 0) {
		sl_doctor_say(d, unneeded, "RDMA: %s has no RoCE v2 address that can be used%s",
			      info->name, info->max_work ? "" : ", or this user may not open it");
		sl_doctor_fix(d, "%s",
			      info->max_work
				      ? "sudo ip address add ADDRESS/PREFIX dev INTERFACE   # rdma "
					"link shows which"
				      : "ls -l /dev/infiniband   # uverbs* must be readable and "
					"writable");
		return;
	}
	sl_net_format(info->gid, text);
	sl_doctor_say(d, info->active || unneeded,
		      "RDMA: %s port %u has %s (GID %u), path MTU %u%s", info->name, info->port,
		      text, info->gid_index, info->pmtu, info->active ? "" : ", port down");
	if (!info->active)
		sl_doctor_fix(d, "sudo ip link set INTERFACE up   # and a cable");
}

/* What link verbs needs. Where nobody asks for it, its absence is not a fault. */
void sl_doctor_rdma(struct sl_doctor *d)
{
	const char *why = sl_verbs_unavailable();
	bool wanted = sl_doctor_has_link(d, "verbs");

	if (d->root[0])
		return; /* what is here says nothing of there */
	if (!why && sl_verbs_survey(tell_address, d) > 0)
		return;
	sl_doctor_say(d, !wanted, "RDMA: no %s, which link verbs needs",
		      why ? "library" : "device");
	sl_doctor_fix(d, "%s",
		      why ? why
			  : "a card, or Soft-RoCE: sudo modprobe rdma_rxe && sudo rdma link add "
			    "rxe0 type rxe netdev INTERFACE");
}

struct wanted {
	uint8_t gid[SL_NET_GID_BYTES];
	bool found;
};

static void compare(void *arg, const struct sl_verbs_info *info)
{
	struct wanted *w = arg;

	w->found |= memcmp(info->gid, w->gid, sizeof(w->gid)) == 0;
}

void sl_doctor_rdma_address(struct sl_doctor *d, const char *address)
{
	struct wanted w = {.found = false};

	if (d->root[0] || sl_verbs_unavailable() || sl_net_parse("link.listen", address, w.gid))
		return;
	sl_verbs_survey(compare, &w);
	if (w.found)
		return;
	sl_doctor_say(d, false, "RDMA: no device has the address %s (link.listen)", address);
	sl_doctor_fix(
		d,
		"rdma link; ip -brief address   # show devices, their interfaces, and addresses");
}
