/* verbs.c - RDMA NICs through libibverbs: options, opening, closing. The rest is in
 * connect.c, receive.c and send.c. */
#include "link/verbs/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/secret.h"
#include "net/net.h"

#define DEVICE_OPTION                                                                             \
	{                                                                                         \
		"nic", SL_OPTION_STRING, SL_OPTION_FIELD(struct sl_verbs_link, nic_names), "", 0, \
			0, "", "look for the addresses on these NICs only (rdma link)", NULL,     \
			"device"                                                                  \
	}

static const struct sl_option options[] = {
	SL_STRING(struct sl_verbs_link, listen, "",
		  "IPv4 or IPv6 address of the NIC that takes data; several, separated by commas, "
		  "for several NICs; empty: the first RoCE v2 address there is"),
	SL_STRING(struct sl_verbs_link, source, "",
		  "address of the NIC that the front end sends from; of several, modules take them "
		  "in turn; empty: the first there is"),
	DEVICE_OPTION,
	SL_CHOICE(struct sl_verbs_link, poll, event, "event|spin",
		  "sleep until the NIC has something to say, or ask it again and again: spin costs "
		  "a core and saves some microseconds"),
	SL_U32(struct sl_verbs_link, traffic_class, 2, 0, 255, "",
	       "of what is sent: DSCP and ECN bits; 2 lets switches mark instead of drop"),
	SL_U32(struct sl_verbs_link, timeout, 16, 1, 31, "",
	       "rc: silence before packets are sent again, 4.096 us times two to this"),
	SL_U32(struct sl_verbs_link, retry, 6, 0, 255, "",
	       "rc: attempts before giving up; NICs know 7 at most, Soft-RoCE takes that for no "
	       "end"),
	SL_U32(struct sl_verbs_link, rnr_retry, 7, 0, 7, "",
	       "rc: attempts after 'receiver not ready'; 7: no end"),
	SL_U32(struct sl_verbs_link, min_rnr_timer, 12, 0, 31, "",
	       "rc: how long 'receiver not ready' asks the front end to wait; 12: 0.64 ms"),
	SL_OPTION_END,
};

/* ---- NICs ---- */

static int open_device(struct sl_verbs_link *link, const uint8_t *gid, uint32_t completions)
{
	int err;

	if (link->nics == SL_VERBS_DEVICES) {
		sl_error("link.verbs: more than %d addresses", SL_VERBS_DEVICES);
		return -EINVAL;
	}
	err = sl_verbs_open(link->nic_names, gid, completions, &link->nic[link->nics]);
	if (!err)
		link->nics++;
	return err;
}

/* The addresses of a list, one after another. */
static int open_devices(struct sl_verbs_link *link, const char *what, const char *list,
			uint32_t completions)
{
	char word[SL_NET_TEXT_BYTES];
	int err = 0;

	list += strspn(list, ", ");
	if (!*list)
		return open_device(link, NULL, completions);
	while (*list && !err) {
		size_t n = strcspn(list, ", ");
		uint8_t gid[SL_NET_GID_BYTES];

		snprintf(word, sizeof(word), "%.*s", (int)n, list);
		err = sl_net_parse(what, word, gid);
		if (!err)
			err = open_device(link, gid, completions);
		list += n;
		list += strspn(list, ", ");
	}
	return err;
}

/* A peer learns nothing of our layout: the ring begins at a random address of its own. As far as a
 * huge page goes it lies as the ring does, so that the NIC can use huge pages too. */
static uint64_t address_for(const struct sl_region *region)
{
	return (uint64_t)(1 + (sl_secret_u32() & 0x7fff)) << 32 |
	       ((uintptr_t)region->base & ((UINT64_C(1) << 30) - 1));
}

static int open_receiver(struct sl_verbs_link *link)
{
	struct sl_region *region = link->env.ring->region;
	uint64_t completions = (uint64_t)link->env.ring->modules *
			       (link->env.ring->slots + SL_VERBS_MARGIN + SL_VERBS_GRANTS);
	int err;

	if (link->env.operation == SL_OPERATION_SEND && link->env.service != SL_SERVICE_RC) {
		sl_error("link verbs: operation send needs service rc: over uc a lost block would "
			 "shift all later ones by one posted receive; set link.service: rc");
		return -EINVAL;
	}
	link->in = calloc(SL_VERBS_TRANSFERS, sizeof(*link->in));
	if (!link->in)
		return -ENOMEM;
	err = open_devices(link, "link.verbs: listen", link->listen, (uint32_t)completions);
	for (unsigned d = 0; d < link->nics && !err; d++)
		err = sl_verbs_register(link->nic[d], region, 0, region->bytes, address_for(region),
					SL_VERBS_REMOTE_WRITE, &link->ring[d]);
	return err;
}

static int open_source(struct sl_verbs_link *link)
{
	if (link->env.fault) {
		sl_error("link verbs: a NIC cannot be told to lose, repeat or damage packets; "
			 "faults on demand (frontend.drop, duplicate, corrupt) need link udp or "
			 "shm");
		return -EOPNOTSUPP;
	}
	link->out = calloc(SL_VERBS_TRANSFERS, sizeof(*link->out));
	if (!link->out)
		return -ENOMEM;
	/* A failed queue completes all that was posted, asked for or not. */
	return open_devices(link, "link.verbs: source", link->source,
			    SL_VERBS_TRANSFERS * SL_VERBS_SENDS);
}

static int verbs_open(void *state, const struct sl_link_env *env)
{
	struct sl_verbs_link *link = state;

	link->env = *env;
	if (!link->env.service)
		link->env.service = SL_SERVICE_UC;
	if (!link->env.operation)
		link->env.operation = SL_OPERATION_WRITE;
	return env->ring ? open_receiver(link) : open_source(link);
}

static void verbs_close(void *state)
{
	struct sl_verbs_link *link = state;

	for (uint32_t i = 0; i < link->ins; i++)
		sl_verbs_in_close(&link->in[i]);
	for (uint32_t i = 0; i < link->outs; i++)
		sl_verbs_out_close(&link->out[i]);
	for (unsigned d = 0; d < link->nics; d++) {
		sl_verbs_unregister(&link->ring[d]);
		sl_verbs_close(link->nic[d]);
	}
	free(link->in);
	free(link->out);
	link->in = NULL;
	link->out = NULL;
	link->ins = link->outs = link->nics = 0;
}

/* ---- control thread ---- */

static int verbs_serve(void *state)
{
	struct sl_verbs_link *link = state;
	unsigned refused = 0;

	for (unsigned d = 0; d < link->nics; d++)
		refused += sl_verbs_serve(link->nic[d]);
	if (refused && link->env.counters)
		atomic_fetch_add_explicit(&link->env.counters->dropped[SL_DROP_KEY], refused,
					  memory_order_relaxed);
	return 0;
}

static void verbs_reported(void *state, uint16_t transfer, uint64_t position)
{
	struct sl_verbs_link *link = state;

	if (transfer < link->ins)
		atomic_store_explicit(&link->in[transfer].reported, position, memory_order_release);
}

static void verbs_drop(void *state, uint16_t transfer)
{
	struct sl_verbs_link *link = state;

	if (transfer >= link->ins || !atomic_exchange(&link->in[transfer].active, 0))
		return;
	sl_verbs_queue_reset(link->in[transfer].queue);
}

static int wait_for_events(void *state, unsigned poller, uint32_t timeout_us)
{
	(void)poller; /* there is one */
	return sl_verbs_wait_receive(state, timeout_us);
}

/* A NIC shows events, not packets: where a block is several messages, and none is sent
 * again, a gap shows nowhere but in the checksum. */
static enum sl_proof verbs_proof(uint16_t service, uint16_t message)
{
	if (service == SL_SERVICE_RC)
		return SL_PROOF_RELIABLE;
	return message == SL_MESSAGE_MODULE ? SL_PROOF_MESSAGE : SL_PROOF_CHECKSUM;
}

static void facts_of(const void *state, struct sl_link_facts *facts)
{
	const struct sl_verbs_link *link = state;

	facts->listen = link->listen;
	facts->source = link->source;
}

static const struct sl_link_receiving receiving = {
	.accept = sl_verbs_link_accept,
	.poll = sl_verbs_link_poll,
	.wait = wait_for_events,
	.serve = verbs_serve,
	.reported = verbs_reported,
	.drop = verbs_drop,
};

static const struct sl_link_sending sending = {
	.offer = sl_verbs_link_offer,
	.connect = sl_verbs_link_connect,
	.post = sl_verbs_link_post,
	.reap = sl_verbs_link_reap,
	.wait = sl_verbs_wait_send,
};

const struct sl_link sl_link_verbs = {
	.name = "verbs",
	.doc = "RoCEv2 by an RDMA NIC (ConnectX and others, Soft-RoCE), through libibverbs",
	.wire = "roce",
	.state_bytes = sizeof(struct sl_verbs_link),
	.options = options,
	.services = SL_SERVICE_UC | SL_SERVICE_RC,
	.operations = SL_OPERATION_WRITE | SL_OPERATION_SEND,
	.messages = SL_MESSAGE_PACKET | SL_MESSAGE_MODULE | SL_MESSAGE_LINE,
	.message = SL_MESSAGE_MODULE,
	.proof = verbs_proof,
	.guards = SL_GUARD_CREDITED,
	.places = SL_REGION_HOST,
	.unavailable = sl_verbs_unavailable,
	.facts = facts_of,
	.open = verbs_open,
	.close = verbs_close,
	.receiving = &receiving,
	.sending = &sending,
	.no_handover = "a queue pair of an RDMA NIC ends with the process that made it",
};
