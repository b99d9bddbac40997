/* remote_attach.c - a follower of a share on another host: queue pairs, opened and made anew.
 *
 * Model:     to attach takes three steps: ask for queue pairs (CONNECT), wait for the share's
 *            answer, and look once, which shows that packets get through. A call whose time is over
 *            leaves it at the step that it has reached, and the next call goes on from there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "share/remote_follow.h"

enum { LINE_BYTES = 64, TRIES = 3 };

/* ---- the transport ---- */

/* With the address of the TCP connection, and the line that the share WRITEs to. port: of a UDP
 * socket; 0: any. */
static int open_transport(struct sl_follower *f, uint16_t port, struct sl_remote_error *error)
{
	struct sl_share_remote_follower *r = f->remote;
	uint8_t address[SL_NET_GID_BYTES];
	char why[SL_SHARE_WHY] = "no memory";
	int err = sl_share_remote_address(f->socket, false, address);

	if (!err && r->device[0])
		err = sl_share_rdma_open_nic(r->device, address, 1, SL_SHARE_SENDS, &r->rdma, why,
					     sizeof(why));
	else if (!err)
		err = sl_share_rdma_open_udp(address, port, 1, &r->rdma, why, sizeof(why));
	if (err)
		return sl_share_code(error, err, f->name, why);
	err = r->rdma->ops->open_local(r->rdma, r, sizeof(*r), &r->self);
	if (!err)
		err = r->rdma->ops->expose(r->rdma, r->line, LINE_BYTES,
					   (uint64_t)(uintptr_t)r->line, SL_ROCE_REMOTE_WRITE,
					   &r->line_key);
	if (err)
		snprintf(why, sizeof(why), "its memory: %s%s", strerror(-err),
			 r->device[0] ? "; an RDMA NIC pins it, which ulimit -l may not allow"
				      : "");
	return err ? sl_share_code(error, err, f->name, why) : 0;
}

static void close_transport(struct sl_follower *f)
{
	struct sl_share_remote_follower *r = f->remote;

	if (!r->rdma)
		return;
	sl_share_remote_disconnect(r->rdma, r->queue);
	sl_share_slots_fini(f);
	if (r->self.at)
		r->rdma->ops->close_local(r->rdma, &r->self);
	r->rdma->ops->close(r->rdma);
	r->rdma = NULL;
}

/* The share is on a NIC, which sends to UDP port 4791 alone, and this follower has a socket. */
static int move_to_nic_port(struct sl_follower *f, struct sl_remote_error *error)
{
	int err;

	close_transport(f);
	err = open_transport(f, SL_SHARE_NIC_PORT, error);
	if (!err) {
		f->remote->step = SL_SHARE_BEGINS;
		return 0;
	}
	return sl_share_fail(error, err, "connection",
			     "cannot follow %s: it is on an RDMA NIC, which sends to UDP port %d "
			     "alone, and that port cannot be had here: %s; follow it with an RDMA "
			     "NIC (device)",
			     f->name, SL_SHARE_NIC_PORT, strerror(-err));
}

/* ---- queue pairs ---- */

static const uint32_t access_of[SL_SHARE_QUEUES] = {
	[SL_SHARE_DATA] = 0,
	[SL_SHARE_LOOKS] = 0,
	[SL_SHARE_ARRIVALS] = SL_ROCE_REMOTE_WRITE,
};

static int check_offer(struct sl_follower *f, struct sl_share_remote_offer *offer, char *why,
		       size_t why_bytes)
{
	int err =
		sl_share_remote_check_offer(f->in.payload, f->in.head.bytes, offer, why, why_bytes);

	if (err)
		return err;
	if (strcmp(offer->header.name, f->remote->hello.name) ||
	    offer->header.generation < f->remote->there.header.generation) {
		snprintf(why, why_bytes, "its header is that of another share");
		return -EPROTO;
	}
	return 0;
}

static int ask(struct sl_follower *f, uint64_t end_ns, struct sl_remote_error *error)
{
	struct sl_share_remote_follower *r = f->remote;
	int err;

	r->ours = (struct sl_share_remote_end){
		.pmtu = sl_share_remote_pmtu(f->socket),
		.key = r->line_key,
		.at = (uint64_t)(uintptr_t)r->line,
	};
	sl_share_remote_disconnect(r->rdma, r->queue);
	r->epoch++;
	memset(r->line, 0, sizeof(*r->line));
	err = sl_share_remote_queues(r->rdma, SL_SHARE_SENDS, access_of, r->queue, &r->ours);
	if (!err)
		err = sl_follower_say(f, SL_SHARE_FRAME_CONNECT, 0, &r->ours, sizeof(r->ours),
				      end_ns);
	if (err)
		return sl_share_code(error, err, f->name, strerror(-err));
	f->asked = true;
	r->step = SL_SHARE_ASKED;
	return 0;
}

static int connect_to_offer(struct sl_follower *f, const struct sl_share_remote_offer *offer)
{
	struct sl_share_remote_follower *r = f->remote;
	uint8_t peer[SL_NET_GID_BYTES];
	int err = sl_share_remote_address(f->socket, true, peer);

	if (!err)
		err = sl_share_remote_connect(r->rdma, r->queue, peer, &r->ours, &offer->end);
	if (err)
		return err;
	if (offer->header.generation != r->there.header.generation)
		r->tries = 0; /* it was resized meanwhile: that is why the tries before failed */
	r->there = *offer;
	sl_share_slots_reset(f);
	r->first_look = r->looks_posted + 1;
	r->step = SL_SHARE_LOOKS_FIRST;
	return 0;
}

static int take_offer(struct sl_follower *f, uint64_t end_ns, struct sl_remote_error *error)
{
	const struct sl_share_rdma *rdma = f->remote->rdma;
	struct sl_share_remote_offer offer;
	char why[SL_SHARE_WHY] = "no queue pairs";
	int err;

	if (!f->asked) { /* another call has read the answer and discarded it */
		f->remote->step = SL_SHARE_BEGINS;
		return 0;
	}
	err = sl_share_remote_hear(f, SL_SHARE_FRAME_CONNECTED, sizeof(offer), end_ns, error);
	if (err)
		return err;
	err = check_offer(f, &offer, why, sizeof(why));
	sl_follower_discard(f);
	if (!err && offer.end.nic && !rdma->is_nic && rdma->ops->port(rdma) != SL_SHARE_NIC_PORT)
		return move_to_nic_port(f, error);
	if (!err)
		err = connect_to_offer(f, &offer);
	return err ? sl_share_code(error, err, f->name, why) : 0;
}

/* 0: it has come; -EIO: a READ has failed. */
static int wait_for_look(struct sl_follower *f, uint64_t end_ns)
{
	struct sl_share_remote_follower *r = f->remote;

	while (!r->failed && !r->over && r->looks_done < r->first_look) {
		sl_share_look_post(r);
		if (sl_share_pump(f) || r->failed)
			continue;
		if (sl_clock_ns() >= end_ns)
			return -ETIMEDOUT;
		sl_share_pump_wait(f, end_ns);
	}
	return r->over ? r->over : r->failed ? -EIO : 0;
}

static int look_first(struct sl_follower *f, uint64_t end_ns, struct sl_remote_error *error)
{
	struct sl_share_remote_follower *r = f->remote;
	int err = wait_for_look(f, end_ns);

	if (!err) {
		r->step = SL_SHARE_ATTACHED;
		return 0;
	}
	if (err == -EIO && ++r->tries < TRIES) {
		r->step = SL_SHARE_BEGINS;
		return 0;
	}
	if (err == -EIO)
		return sl_share_fail(
			error, err, "connection",
			"cannot follow %s: READs of UDP port %u fail: %s; a firewall must let "
			"UDP through as well as TCP",
			f->name, r->there.end.port, sl_status_name((unsigned)r->failed));
	return sl_share_code(error, err, f->name,
			     err == -ETIMEDOUT ? "READs were not answered in time"
					       : "the share closed the connection");
}

static int take_step(struct sl_follower *f, uint64_t end_ns, struct sl_remote_error *error)
{
	switch (f->remote->step) {
	case SL_SHARE_BEGINS:
		return ask(f, end_ns, error);
	case SL_SHARE_ASKED:
		return take_offer(f, end_ns, error);
	default:
		return look_first(f, end_ns, error);
	}
}

int sl_share_remote_attach(struct sl_follower *f, uint64_t end_ns, struct sl_remote_error *error)
{
	struct sl_share_remote_follower *r = f->remote;
	uint64_t before = f->description.generation;
	int err = 0;

	if (r->step == SL_SHARE_ATTACHED) {
		r->step = SL_SHARE_BEGINS;
		r->tries = 0;
	}
	while (!err && r->step != SL_SHARE_ATTACHED)
		err = take_step(f, end_ns, error);
	if (err || r->there.header.generation == before)
		return err;
	sl_follower_describe(f, &r->there.header);
	return before ? -ESTALE : 0;
}

/* ---- open and close ---- */

static int prepare(struct sl_follower *f, const char *url, const struct sl_follow_options *options,
		   uint16_t *port, struct sl_remote_error *error)
{
	struct sl_share_remote_follower *r = calloc(1, sizeof(*r));

	f->remote = r;
	f->ops = &sl_follower_there;
	f->words = r ? &r->words : NULL;
	if (r)
		r->line = aligned_alloc(LINE_BYTES, LINE_BYTES);
	if (!r || !r->line)
		return sl_share_fail(error, -ENOMEM, "memory", "no memory");
	r->hello.version = SL_SHARE_REMOTE_VERSION;
	sl_idle_init(&r->idle, SL_POLLING_ADAPTIVE, SL_SHARE_SPIN_NS, true);
	if (!sl_share_remote_place(url + strlen("rdma://"), r->host, port, r->hello.name))
		return sl_share_fail(error, -EINVAL, "request",
				     "'%s' is no share: rdma://HOST:PORT/NAME", url);
	if (options && options->device &&
	    (size_t)snprintf(r->device, sizeof(r->device), "%s", options->device) >=
		    sizeof(r->device))
		return sl_share_fail(error, -EINVAL, "request",
				     "device: '%s' is no name of an RDMA NIC", options->device);
	return sl_share_remote_read_secret(f, options, error);
}

int sl_follower_open_remote(struct sl_follower *f, const char *url,
			    const struct sl_follow_options *options, uint64_t end_ns,
			    struct sl_remote_error *error)
{
	uint16_t port;
	int err;

	snprintf(f->name, sizeof(f->name), "%s", url);
	err = prepare(f, url, options, &port, error);
	if (!err)
		err = sl_share_remote_dial(f, port, end_ns, error);
	if (!err)
		err = sl_share_remote_greet(f, end_ns, error);
	if (!err)
		err = open_transport(f, 0, error);
	if (!err)
		err = sl_share_remote_attach(f, end_ns, error);
	/* One that ends just now may still have answered. */
	if (err == -EPIPE || (!err && f->remote->state == SL_SHARE_ENDED))
		return sl_share_fail(error, -ENOENT, "absent", "the share %s has ended", f->name);
	if (err)
		return err;
	/* The first element that it gets is the newest that is there. */
	f->next = f->remote->published > f->first ? f->remote->published - 1 : f->first;
	return 0;
}

void sl_share_remote_leave(struct sl_follower *f)
{
	struct sl_share_remote_follower *r = f->remote;

	if (!r)
		return;
	close_transport(f);
	memset(r->secret, 0, sizeof(r->secret));
	free(r->line);
	free(r);
}
