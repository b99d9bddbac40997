/* nic.c - shares by an RDMA NIC: it answers READs of a share's memory by itself. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/verbs/verbs.h"
#include "roce/rc_queue.h"
#include "share/rdma/rdma.h"

enum {
	EXPOSED = 4, /* memories; a share has two, a follower one */
	QUEUES_OF_A_PEER = 3,
	STALE = 2, /* as much again for completions of queue pairs that were closed */
	/* As of endpoints: about 70 ms for an answer, 7 tries. Soft-RoCE takes 7 retries for "no
	 * limit". */
	TIMEOUT = 14,
	RETRIES = 6,
	RNR_RETRIES = 7,
	RNR_TIMER = 12,
};
#define SERVE_NS UINT64_C(1000000000) /* how often a sleeper asks whether the NIC has failed */

struct nic {
	struct sl_share_rdma base;
	struct sl_verbs_nic *nic;
	struct sl_verbs_memory exposed[EXPOSED];
};

static struct nic *nic_of(const struct sl_share_rdma *rdma)
{
	return (struct nic *)(uintptr_t)rdma;
}

static struct sl_verbs_queue *queue_of(const struct sl_share_queue *queue)
{
	return (struct sl_verbs_queue *)(uintptr_t)queue;
}

/* ---- memory ---- */

static enum sl_verbs_access access_for(uint32_t access)
{
	return access & SL_ROCE_REMOTE_WRITE  ? SL_VERBS_REMOTE_WRITE
	       : access & SL_ROCE_REMOTE_READ ? SL_VERBS_REMOTE_READ
					      : SL_VERBS_LOCAL;
}

static int register_memory(struct sl_share_rdma *rdma, void *at, uint64_t bytes, uint64_t iova,
			   uint32_t access, struct sl_verbs_memory *memory)
{
	const struct sl_region region = {
		.kind = SL_REGION_HOST, .base = at, .bytes = bytes, .fd = -1};
	struct sl_share_hush hush;
	int err;

	sl_share_hush(&hush, NULL, 0);
	err = sl_verbs_register(nic_of(rdma)->nic, &region, 0, bytes, iova, access_for(access),
				memory);
	sl_share_unhush(&hush);
	return err;
}

static int expose(struct sl_share_rdma *rdma, void *at, uint64_t bytes, uint64_t iova,
		  uint32_t access, uint32_t *key)
{
	struct sl_verbs_memory *memory = nic_of(rdma)->exposed, *end = memory + EXPOSED;
	int err;

	while (memory < end && memory->handle)
		memory++;
	if (memory == end)
		return -ENOSPC;
	err = register_memory(rdma, at, bytes, iova, access, memory);
	*key = err ? 0 : memory->rkey;
	return err;
}

static void hide(struct sl_share_rdma *rdma, uint32_t key)
{
	for (unsigned i = 0; i < EXPOSED; i++) {
		struct sl_verbs_memory *memory = &nic_of(rdma)->exposed[i];

		if (memory->handle && memory->rkey == key)
			sl_verbs_unregister(memory);
	}
}

static int open_local(struct sl_share_rdma *rdma, void *at, uint64_t bytes,
		      struct sl_share_local *local)
{
	struct sl_verbs_memory memory;
	int err = register_memory(rdma, at, bytes, (uint64_t)(uintptr_t)at, 0, &memory);

	*local = (struct sl_share_local){0};
	if (!err)
		*local = (struct sl_share_local){
			.at = at, .handle = memory.handle, .bytes = bytes, .key = memory.lkey};
	return err;
}

static void close_local(struct sl_share_rdma *rdma, struct sl_share_local *local)
{
	struct sl_verbs_memory memory = {.handle = local->handle};

	(void)rdma;
	sl_verbs_unregister(&memory);
	*local = (struct sl_share_local){0};
}

/* ---- queue pairs ---- */

static int open_queue(struct sl_share_rdma *rdma, const struct sl_share_queue_options *o,
		      struct sl_share_queue **queue)
{
	struct sl_verbs_queue *opened = NULL;
	struct sl_share_hush hush;
	int err;

	sl_share_hush(&hush, NULL, 0);
	err = sl_verbs_queue_open(nic_of(rdma)->nic, o->reliable, o->sends, 1,
				  access_for(o->access), &opened);
	sl_share_unhush(&hush);
	*queue = err ? NULL : (struct sl_share_queue *)opened;
	return err;
}

static void close_queue(struct sl_share_queue *queue)
{
	if (queue)
		sl_verbs_queue_close(queue_of(queue));
}

static uint32_t number(const struct sl_share_queue *queue)
{
	return sl_verbs_queue_number(queue_of(queue));
}

static int connect_queue(struct sl_share_queue *queue, const struct sl_share_path *p)
{
	struct sl_verbs_path path = {.peer_qpn = p->qpn,
				     .receive_psn = p->receive_psn,
				     .send_psn = p->send_psn,
				     .pmtu = (uint16_t)p->pmtu,
				     .timeout = TIMEOUT,
				     .retry = RETRIES,
				     .rnr_retry = RNR_RETRIES,
				     .min_rnr_timer = RNR_TIMER,
				     .reads = (uint8_t)p->reads};
	struct sl_share_hush hush;
	int err;

	memcpy(path.peer, p->peer, sizeof(path.peer));
	sl_share_hush(&hush, NULL, 0);
	err = sl_verbs_queue_connect(queue_of(queue), &path);
	sl_share_unhush(&hush);
	return err;
}

static int post(struct sl_share_queue *queue, const struct sl_share_work *w)
{
	const struct sl_verbs_send send = {
		.id = w->id,
		.local = (uint64_t)(uintptr_t)w->at,
		.remote = w->va,
		.bytes = w->bytes,
		.lkey = w->local->key,
		.rkey = w->rkey,
		.flags = SL_VERBS_SIGNAL | (w->read ? SL_VERBS_READ : 0u),
	};

	return sl_verbs_post_send(queue_of(queue), &send);
}

/* ---- progress ---- */

static unsigned status_of(int status)
{
	switch (status) {
	case 0:
		return SL_STATUS_SUCCESS;
	case -ECANCELED:
		return SL_STATUS_FLUSHED;
	case -ETIMEDOUT:
		return SL_STATUS_RETRY_EXCEEDED;
	case -ENOBUFS:
		return SL_STATUS_RNR_EXCEEDED;
	case -EACCES:
		return SL_STATUS_REMOTE_ACCESS;
	case -EPROTO:
		return SL_STATUS_REMOTE_INVALID;
	default:
		return SL_STATUS_REMOTE_OPERATION;
	}
}

static bool poll_nic(struct sl_share_rdma *rdma, uint64_t now, struct sl_share_done *done,
		     unsigned *n)
{
	struct sl_verbs_completion c[SL_SHARE_DONE];
	int got = sl_verbs_poll(nic_of(rdma)->nic, c, SL_SHARE_DONE);

	(void)now;
	*n = got > 0 ? (unsigned)got : 0;
	for (unsigned i = 0; i < *n; i++)
		done[i] = (struct sl_share_done){c[i].id, status_of(c[i].status)};
	return *n > 0;
}

/* What made it readable before is old: those completions were polled. */
static bool arm(struct sl_share_rdma *rdma)
{
	struct sl_verbs_nic *nic = nic_of(rdma)->nic;

	sl_verbs_serve(nic);
	rdma->failed = sl_verbs_has_failed(nic);
	sl_verbs_drain(nic);
	sl_verbs_arm(nic);
	return true;
}

static int fd(const struct sl_share_rdma *rdma)
{
	return sl_verbs_fd(nic_of(rdma)->nic);
}

static short events(const struct sl_share_rdma *rdma)
{
	(void)rdma;
	return POLLIN;
}

static uint64_t wake(const struct sl_share_rdma *rdma)
{
	(void)rdma;
	return sl_clock_ns() + SERVE_NS;
}

/* ---- open and close ---- */

static uint16_t port_of(const struct sl_share_rdma *rdma)
{
	(void)rdma;
	return SL_SHARE_NIC_PORT;
}

static void close_nic(struct sl_share_rdma *rdma)
{
	if (!rdma)
		return;
	for (unsigned i = 0; i < EXPOSED; i++)
		sl_verbs_unregister(&nic_of(rdma)->exposed[i]);
	sl_verbs_close(nic_of(rdma)->nic);
	free(rdma);
}

static const struct sl_share_rdma_ops ops = {
	.close = close_nic,
	.port = port_of,
	.expose = expose,
	.hide = hide,
	.open_local = open_local,
	.close_local = close_local,
	.open_queue = open_queue,
	.close_queue = close_queue,
	.number = number,
	.connect = connect_queue,
	.post = post,
	.poll = poll_nic,
	.arm = arm,
	.fd = fd,
	.events = events,
	.wake = wake,
};

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

int sl_share_rdma_open_nic(const char *device, const uint8_t address[SL_NET_GID_BYTES],
			   uint32_t peers, uint32_t sends, struct sl_share_rdma **rdma, char *why,
			   size_t why_bytes)
{
	struct nic *n = calloc(1, sizeof(*n));
	const struct sl_verbs_info *info;
	struct sl_share_hush hush;
	int err;

	if (!n) {
		snprintf(why, why_bytes, "no memory");
		return -ENOMEM;
	}
	sl_share_hush(&hush, why, why_bytes);
	err = sl_verbs_open(device, address, STALE * QUEUES_OF_A_PEER * sends * peers, &n->nic);
	sl_share_unhush(&hush);
	if (err) {
		if (!why[0])
			snprintf(why, why_bytes, "device: %s: %s", device, strerror(-err));
		free(n);
		return err;
	}
	info = sl_verbs_info(n->nic);
	if (!info->pmtu) {
		snprintf(why, why_bytes,
			 "device: %s has a path MTU that this program does not know", device);
		sl_verbs_close(n->nic);
		free(n);
		return -EOPNOTSUPP;
	}
	n->base = (struct sl_share_rdma){
		.ops = &ops,
		.is_nic = true,
		.pmtu = info->pmtu,
		.reads = least(info->max_reads, SL_SHARE_READS),
		.read_bytes = least(info->max_message_bytes, SL_SHARE_READ_BYTES),
	};
	*rdma = &n->base;
	return 0;
}
