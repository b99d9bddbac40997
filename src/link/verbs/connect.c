/* connect.c - the two ends of a plan: queue pairs made, told of each other, and connected by
 * hand. */
#include <errno.h>
#include <ifaddrs.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/secret.h"
#include "link/terms.h"
#include "link/verbs/verbs.h"
#include "net/net.h"

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool is_v4(const uint8_t *gid)
{
	return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

static const uint8_t *gid_of(const struct sl_verbs_link *link, unsigned nic)
{
	return sl_verbs_info(link->nic[nic])->gid;
}

/* The mask of the local network that this address is of, as a GID; false: it is of none here. */
static bool mask_of(const struct ifaddrs *all, const uint8_t *gid, uint8_t mask[SL_NET_GID_BYTES])
{
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		uint8_t here[SL_NET_GID_BYTES];

		if (!i->ifa_addr || !i->ifa_netmask ||
		    (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
			continue;
		sl_net_gid((const union sl_net_address *)i->ifa_addr, here);
		if (memcmp(here, gid, sizeof(here)) != 0)
			continue;
		if (i->ifa_addr->sa_family == AF_INET6) {
			const struct sockaddr_in6 *v6 = (const void *)i->ifa_netmask;

			memcpy(mask, &v6->sin6_addr, SL_NET_GID_BYTES);
		} else {
			const struct sockaddr_in *v4 = (const void *)i->ifa_netmask;

			memset(mask, 0xff, sizeof(mapped));
			memcpy(mask + sizeof(mapped), &v4->sin_addr, 4);
		}
		return true;
	}
	return false;
}

static bool same_network(const struct ifaddrs *all, const uint8_t *here, const uint8_t *there)
{
	uint8_t mask[SL_NET_GID_BYTES];

	if (!mask_of(all, here, mask))
		return false;
	for (unsigned i = 0; i < sizeof(mask); i++)
		if ((here[i] ^ there[i]) & mask[i])
			return false;
	return true;
}

/* The NIC whose network the front end is in, else one of its kind of address in turn. */
static int choose_device(struct sl_verbs_link *link, const uint8_t *peer, unsigned *nic)
{
	struct ifaddrs *all = NULL;
	unsigned found = link->nics;

	if (getifaddrs(&all) != 0)
		all = NULL;
	for (unsigned i = 0; i < link->nics && found == link->nics; i++) {
		unsigned d = (link->turn + i) % link->nics;

		if (same_network(all, gid_of(link, d), peer))
			found = d;
	}
	for (unsigned i = 0; i < link->nics && found == link->nics; i++) {
		unsigned d = (link->turn + i) % link->nics;

		if (is_v4(gid_of(link, d)) == is_v4(peer))
			found = d;
	}
	if (all)
		freeifaddrs(all);
	if (found == link->nics) {
		sl_error("link verbs: the front end has an IPv%d address, link.listen has none",
			 is_v4(peer) ? 4 : 6);
		return -EAFNOSUPPORT;
	}
	link->turn = found + 1;
	*nic = found;
	return 0;
}

/* ---- receiving ---- */

/* Without credits nothing stops the source from writing what is being read. Sends go where the
 * receiver says, so they need none. */
static bool is_open_loop(const struct sl_verbs_link *link, const struct sl_offer *offer)
{
	return !offer->credit_va && link->env.operation == SL_OPERATION_WRITE;
}

static int check_offer(const struct sl_verbs_link *link, const struct sl_offer *offer)
{
	struct sl_plan_terms terms;

	sl_terms_init(&terms, &link->env, offer->module);
	if (!sl_plan_accepts(offer, &terms)) {
		if (!(offer->services & link->env.service))
			sl_error("module %u: the front end's queue pair is not %s; both ends must "
				 "have the same link.service",
				 offer->module, link->env.service == SL_SERVICE_RC ? "rc" : "uc");
		return -EINVAL;
	}
	if ((offer->credit_va || link->env.service == SL_SERVICE_RC) &&
	    offer->credit_port != SL_VERBS_PORT) {
		sl_error("module %u: the front end wants answers on UDP port %u, an RDMA NIC sends "
			 "them to %d; set link.reply_port: %d at the front end",
			 offer->module, offer->credit_port, SL_VERBS_PORT, SL_VERBS_PORT);
		return -EDESTADDRREQ;
	}
	if (is_open_loop(link, offer) && !link->env.crc) {
		sl_error("module %u: the front end takes no credits, so that only a checksum can "
			 "show that a block is what was sent; set link.crc: true, or link.kind: "
			 "udp, which checks every packet",
			 offer->module);
		return -EPERM;
	}
	return 0;
}

static int describe(const struct sl_verbs_link *link, const struct sl_offer *offer, uint32_t index,
		    struct sl_verbs_in *in)
{
	const struct sl_ring *ring = link->env.ring;
	const struct sl_verbs_info *info = sl_verbs_info(link->nic[in->nic]);
	struct sl_plan_terms terms;
	int err;

	sl_terms_init(&terms, &link->env, offer->module);
	terms.transfer = (uint16_t)index;
	if (info->pmtu < terms.pmtu)
		terms.pmtu = info->pmtu;
	terms.qpn = sl_verbs_queue_number(in->queue);
	terms.rkey = link->ring[in->nic].rkey;
	terms.psn = sl_secret_u32();
	terms.credit_psn = sl_secret_u32();
	terms.base = link->ring[in->nic].at;
	terms.window_bytes = ring->slots * ring->block_bytes;
	memcpy(terms.dest.ip, info->gid, sizeof(terms.dest.ip));
	terms.dest.port = SL_VERBS_PORT;
	err = sl_plan_answer(offer, &terms, &in->plan);
	if (err)
		return err;
	in->event_bytes = (uint32_t)sl_plan_event_bytes(&in->plan);
	in->credit = (struct sl_credit){.window = in->plan.window_bytes};
	return 0;
}

/* A ring of blocks beside the ring: what arrives there is copied when its event comes, and the
 * record's checksum then speaks of the copy, which the source cannot reach. */
static int make_landing(struct sl_verbs_link *link, struct sl_verbs_in *in)
{
	struct sl_plan *plan = &in->plan;
	uint64_t bytes = link->env.ring->block_stride * plan->slots;
	uint64_t at = (uint64_t)(1 + (sl_secret_u32() & 0x7fff)) << 32;
	int err = sl_region_open(SL_REGION_HOST, bytes, &in->landing);

	if (!err)
		err = sl_verbs_register(link->nic[in->nic], &in->landing, 0, bytes, at,
					SL_VERBS_REMOTE_WRITE, &in->landing_memory);
	if (err)
		return err;
	plan->base = at;
	plan->rkey = in->landing_memory.rkey;
	plan->stride = link->env.ring->block_stride;
	plan->block_at = 0;
	sl_info("module %u sends without credits: its blocks are copied, and their checksums "
		"decide",
		plan->module);
	return 0;
}

static int connect_in(struct sl_verbs_link *link, struct sl_verbs_in *in, uint32_t index)
{
	struct sl_verbs_path path = {
		.peer_qpn = in->plan.credit_qpn,
		.receive_psn = in->plan.first_psn,
		.send_psn = in->plan.credit_psn,
		.pmtu = in->plan.pmtu,
		.traffic_class = (uint8_t)link->traffic_class,
		.timeout = (uint8_t)link->timeout,
		.retry = (uint8_t)(link->retry < 7 ? link->retry : 7),
		.rnr_retry = (uint8_t)link->rnr_retry,
		.min_rnr_timer = (uint8_t)link->min_rnr_timer,
	};
	uint64_t id = sl_verbs_id(SL_VERBS_WORK_RECEIVE, index, in->generation);
	int err = 0;

	memcpy(path.peer, in->plan.source.ip, sizeof(path.peer));
	/* Before the first packet can come; sends are posted for as slots open. */
	for (uint32_t i = 0; i < in->plan.slots + SL_VERBS_MARGIN && !err; i++)
		if (in->plan.operation == SL_OPERATION_WRITE)
			err = sl_verbs_post_receive(in->queue, id, 0, 0, 0);
	return err ? err : sl_verbs_queue_connect(in->queue, &path);
}

/* One that was dropped, or a new one. Front ends come and go only before the start, when no poller
 * runs. */
static uint32_t free_in(const struct sl_verbs_link *link)
{
	uint32_t index = 0;

	while (index < link->ins &&
	       atomic_load_explicit(&link->in[index].active, memory_order_relaxed))
		index++;
	return index;
}

static int open_in(struct sl_verbs_link *link, const struct sl_offer *offer, uint32_t index)
{
	struct sl_verbs_in *in = &link->in[index];
	int err = choose_device(link, offer->source.ip, &in->nic);

	if (err)
		return err;
	if (link->env.message == SL_MESSAGE_MODULE &&
	    offer->block_bytes > sl_verbs_info(link->nic[in->nic])->max_message_bytes) {
		sl_error("link verbs: a block of %llu bytes is more than one message of %s can "
			 "have; set link.message: packet",
			 (unsigned long long)offer->block_bytes,
			 sl_verbs_info(link->nic[in->nic])->name);
		return -EMSGSIZE;
	}
	err = sl_verbs_queue_open(link->nic[in->nic], link->env.service == SL_SERVICE_RC,
				  SL_VERBS_GRANTS, link->env.ring->slots + SL_VERBS_MARGIN,
				  SL_VERBS_REMOTE_WRITE, &in->queue);
	if (err)
		return err;
	err = describe(link, offer, index, in);
	if (!err && is_open_loop(link, offer))
		err = make_landing(link, in);
	return err ? err : connect_in(link, in, index);
}

/* All but `active`, at which the poller may be looking: it is 0, and stays so. */
static void clear(struct sl_verbs_in *in)
{
	uint32_t generation = in->generation + 1;

	memset(&in->queue, 0, sizeof(*in) - offsetof(struct sl_verbs_in, queue));
	in->generation = generation;
	in->landing.fd = -1;
}

int sl_verbs_link_accept(void *state, const struct sl_offer *offer, struct sl_plan *plan)
{
	struct sl_verbs_link *link = state;
	uint32_t index = free_in(link);
	struct sl_verbs_in *in = &link->in[index];
	int err = check_offer(link, offer);

	if (err)
		return err;
	if (index == SL_VERBS_TRANSFERS)
		return -ENOSPC;
	sl_verbs_in_close(in); /* of who had it before */
	clear(in);
	in->next = in->posted = in->used = offer->first_sequence;
	err = open_in(link, offer, index);
	if (err) {
		sl_verbs_in_close(in);
		return err;
	}
	*plan = in->plan;
	if (index == link->ins)
		link->ins++;
	/* Release: pairs with the acquire in receive.c; the poller may already be running. */
	atomic_store_explicit(&in->active, 1, memory_order_release);
	return 0;
}

void sl_verbs_in_close(struct sl_verbs_in *in)
{
	if (in->queue)
		sl_verbs_queue_close(in->queue);
	in->queue = NULL;
	sl_verbs_unregister(&in->landing_memory);
	if (in->landing.base)
		sl_region_close(&in->landing);
}

/* ---- sending ---- */

static int open_memory(struct sl_verbs_link *link, struct sl_verbs_out *out, uint64_t block_bytes)
{
	struct sl_verbs_nic *nic = link->nic[out->nic];
	uint64_t page = (uint64_t)getpagesize();
	uint64_t at = (uint64_t)(1 + (sl_secret_u32() & 0x7fff)) << 32;
	int err;

	out->stage_bytes = SL_VERBS_STAGED * ((block_bytes + page - 1) / page * page);
	err = sl_region_open(SL_REGION_HOST, page + out->stage_bytes, &out->memory);
	if (err)
		return err;
	out->credit = out->memory.base;
	out->stage = (uint8_t *)out->memory.base + page;
	/* The key that the receiver gets opens this one word. */
	err = sl_verbs_register(nic, &out->memory, 0, sizeof(*out->credit), at,
				SL_VERBS_REMOTE_WRITE, &out->word);
	if (!err)
		err = sl_verbs_register(nic, &out->memory, page, out->stage_bytes,
					(uintptr_t)out->stage, SL_VERBS_LOCAL, &out->staging);
	return err;
}

int sl_verbs_link_offer(void *state, struct sl_offer *offer)
{
	struct sl_verbs_link *link = state;
	struct sl_verbs_out *out = &link->out[link->outs];
	const struct sl_verbs_info *info;
	int err;

	if (link->outs == SL_VERBS_TRANSFERS)
		return -ENOSPC;
	*out = (struct sl_verbs_out){.nic = offer->module % link->nics, .memory = {.fd = -1}};
	info = sl_verbs_info(link->nic[out->nic]);
	err = sl_verbs_queue_open(link->nic[out->nic], link->env.service == SL_SERVICE_RC,
				  SL_VERBS_SENDS, 1, SL_VERBS_REMOTE_WRITE, &out->queue);
	if (!err)
		err = open_memory(link, out, offer->block_bytes);
	if (err) {
		sl_verbs_out_close(out);
		return err;
	}
	offer->services = link->env.service;
	offer->operations = SL_OPERATION_WRITE | SL_OPERATION_SEND;
	offer->messages = SL_MESSAGE_PACKET | SL_MESSAGE_MODULE | SL_MESSAGE_LINE;
	offer->max_pmtu = info->pmtu;
	offer->ip_id = SL_IP_ID_ANY;
	memcpy(offer->source.ip, info->gid, sizeof(offer->source.ip));
	offer->source.port = 0; /* the NIC's choice */
	offer->credit_port = SL_VERBS_PORT;
	offer->credit_qpn = sl_verbs_queue_number(out->queue);
	offer->credit_rkey = out->word.rkey;
	offer->credit_va = out->word.at;
	out->offer = *offer;
	link->outs++;
	return 0;
}

static struct sl_verbs_out *out_of(struct sl_verbs_link *link, const struct sl_plan *plan)
{
	for (uint32_t i = 0; i < link->outs; i++) {
		const struct sl_offer *offer = &link->out[i].offer;

		if (offer->module == plan->module && offer->credit_qpn == plan->credit_qpn &&
		    !memcmp(offer->source.ip, plan->source.ip, sizeof(offer->source.ip)))
			return &link->out[i];
	}
	return NULL;
}

int sl_verbs_link_connect(void *state, const struct sl_plan *plan)
{
	struct sl_verbs_link *link = state;
	struct sl_verbs_out *out = out_of(link, plan);
	struct sl_verbs_path path = {
		.peer_qpn = plan->qpn,
		.receive_psn = plan->credit_psn,
		.send_psn = plan->first_psn,
		.pmtu = plan->pmtu,
		.traffic_class = (uint8_t)link->traffic_class,
		.timeout = (uint8_t)link->timeout,
		.retry = (uint8_t)(link->retry < 7 ? link->retry : 7),
		.rnr_retry = (uint8_t)link->rnr_retry,
		.min_rnr_timer = (uint8_t)link->min_rnr_timer,
	};

	if (!out || plan->service != link->env.service || plan->pmtu > out->offer.max_pmtu ||
	    plan->block_bytes != out->offer.block_bytes)
		return -EINVAL;
	if (plan->dest.port != SL_VERBS_PORT) {
		sl_error("the receiver takes data on UDP port %u, an RDMA NIC sends it to %d; set "
			 "link.port: %d at the receiver",
			 plan->dest.port, SL_VERBS_PORT, SL_VERBS_PORT);
		return -EDESTADDRREQ;
	}
	if (plan->credit_va && plan->message != SL_MESSAGE_PACKET &&
	    plan->window_bytes < sl_plan_message_bytes(plan)) {
		sl_error("a message has %llu bytes, which an RDMA NIC sends whole, and "
			 "the receiver lets only %llu be under way; set link.window higher there, "
			 "or link.message: packet",
			 (unsigned long long)sl_plan_message_bytes(plan),
			 (unsigned long long)plan->window_bytes);
		return -EMSGSIZE;
	}
	memcpy(path.peer, plan->dest.ip, sizeof(path.peer));
	out->plan = *plan;
	return sl_verbs_queue_connect(out->queue, &path);
}

void sl_verbs_out_close(struct sl_verbs_out *out)
{
	if (out->queue)
		sl_verbs_queue_close(out->queue);
	out->queue = NULL;
	sl_verbs_unregister(&out->word);
	sl_verbs_unregister(&out->staging);
	if (out->memory.base)
		sl_region_close(&out->memory);
}
