/* send.c - blocks into registered memory and out through the NIC, never beyond credit. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "link/verbs/verbs.h"

enum {
	SIGNAL_EVERY = 32, /* work requests; and the last of every block */
	ALIGNMENT = 64,
	/* A credit makes no completion at its target: who waits for one looks this often. */
	LOOK_NS = 50 * 1000,
};

/* The word is written by the peer's NIC, eight aligned bytes at once, or from the lowest byte up
 * (Soft-RoCE): what is read is never more than what was granted. It never goes back. Acquire: what
 * follows is not done before. */
static bool take_credit(struct sl_verbs_out *out)
{
	uint64_t granted = out->plan.credit_va
				   ? atomic_load_explicit(out->credit, memory_order_acquire)
				   : UINT64_MAX; /* the receiver gives none and wants no waiting */

	if (granted <= out->granted)
		return false;
	out->granted = granted;
	return true;
}

static void complete(struct sl_verbs_out *out, const struct sl_verbs_completion *c)
{
	uint32_t number = (uint32_t)c->id;
	const struct sl_verbs_staged *work = &out->work[number % SL_VERBS_SENDS];

	if (c->status) {
		/* The first says why, the others only that they came after it. */
		if (!out->error || out->error == -ECANCELED)
			out->error = c->status;
		return;
	}
	out->completed = number + 1;
	out->tail = work->head;
	if (work->position > out->done)
		out->done = work->position;
}

/* All transfers share the completion queues. How many there were. */
static int take_completions(struct sl_verbs_link *link)
{
	struct sl_verbs_completion completion[SL_VERBS_BATCH];
	int all = 0, n;

	for (unsigned d = 0; d < link->nics; d++)
		while ((n = sl_verbs_poll(link->nic[d], completion, SL_VERBS_BATCH)) > 0) {
			for (int i = 0; i < n; i++)
				if (sl_verbs_id_index(completion[i].id) < link->outs)
					complete(&link->out[sl_verbs_id_index(completion[i].id)],
						 &completion[i]);
			all += n;
		}
	return all;
}

/* Where the next `bytes` are staged; NULL: no room now. They do not wrap around. */
static uint8_t *reserve(const struct sl_verbs_out *out, uint32_t bytes, uint64_t *head)
{
	uint64_t need = ((uint64_t)bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	uint64_t start = out->head, at = start % out->stage_bytes;

	if (at + need > out->stage_bytes) {
		start += out->stage_bytes - at;
		at = 0;
	}
	if (need > out->stage_bytes || start + need - out->tail > out->stage_bytes ||
	    out->posted - out->completed == SL_VERBS_SENDS)
		return NULL;
	*head = start + need;
	return out->stage + at;
}

static uint32_t flags_of(const struct sl_verbs_out *out, const struct sl_write *write)
{
	uint32_t flags = 0;

	if (write->flags & SL_WRITE_IMM)
		flags |= SL_VERBS_IMMEDIATE | SL_VERBS_SIGNAL;
	if (write->flags & SL_WRITE_SEND)
		flags |= SL_VERBS_SEND;
	if (out->posted % SIGNAL_EVERY == SIGNAL_EVERY - 1)
		flags |= SL_VERBS_SIGNAL;
	return flags;
}

/* 1: it is the NIC's; 0: not now; or an error. */
static int send_write(struct sl_verbs_out *out, uint32_t index, const struct sl_write *write)
{
	uint64_t head;
	uint8_t *at = reserve(out, write->bytes, &head);
	struct sl_verbs_send send = {
		.id = sl_verbs_id(SL_VERBS_WORK_WRITE, index, out->posted),
		.local = (uintptr_t)at,
		.lkey = out->staging.lkey,
		.bytes = write->bytes,
		.remote = write->va,
		.rkey = write->rkey,
		.immediate = write->imm,
		.flags = flags_of(out, write),
	};
	int err;

	if (!at || write->position > out->granted)
		return 0;
	sl_write_copy(write, 0, write->bytes, at);
	err = sl_verbs_post_send(out->queue, &send);
	if (err)
		return err == -ENOMEM || err == -EAGAIN ? 0 : err;
	out->work[out->posted % SL_VERBS_SENDS] = (struct sl_verbs_staged){head, write->position};
	out->posted++;
	out->head = head;
	return 1;
}

static struct sl_verbs_out *out_of(struct sl_verbs_link *link, uint16_t transfer, uint32_t *index)
{
	for (*index = 0; *index < link->outs; (*index)++) {
		struct sl_verbs_out *out = &link->out[*index];

		if (out->plan.version && out->plan.transfer == transfer)
			return out;
	}
	return NULL;
}

int sl_verbs_link_post(void *state, uint16_t transfer, const struct sl_write *write, size_t n)
{
	struct sl_verbs_link *link = state;
	uint32_t index;
	struct sl_verbs_out *out = out_of(link, transfer, &index);
	size_t done = 0;

	if (!out)
		return -EINVAL;
	take_completions(link);
	take_credit(out);
	while (done < n && !out->error) {
		int sent = send_write(out, index, &write[done]);

		if (sent < 0)
			return sent;
		if (!sent)
			break;
		done++;
	}
	return out->error ? out->error : (int)done;
}

uint64_t sl_verbs_link_reap(void *state, uint16_t transfer)
{
	struct sl_verbs_link *link = state;
	uint32_t index;
	const struct sl_verbs_out *out = out_of(link, transfer, &index);

	take_completions(link);
	return out ? out->done : 0;
}

/* Something that a post could use: a completion, a credit, or an error to tell. */
static bool anything(struct sl_verbs_link *link)
{
	bool some = take_completions(link) > 0;

	for (uint32_t i = 0; i < link->outs; i++)
		some |= (link->out[i].plan.version && take_credit(&link->out[i])) ||
			link->out[i].error;
	return some;
}

int sl_verbs_wait_send(void *state, uint32_t timeout_us)
{
	struct sl_verbs_link *link = state;
	uint64_t end = sl_clock_ns() + timeout_us * UINT64_C(1000), now;
	struct pollfd fds[SL_VERBS_DEVICES];

	if (link->poll == SL_VERBS_SPIN)
		return 1;
	for (unsigned d = 0; d < link->nics; d++) {
		fds[d] = (struct pollfd){.fd = sl_verbs_fd(link->nic[d]), .events = POLLIN};
		sl_verbs_arm(link->nic[d]);
	}
	while (!anything(link) && (now = sl_clock_ns()) < end) {
		uint64_t nap = end - now < LOOK_NS ? end - now : LOOK_NS;
		struct timespec timeout = {0, (long)nap};

		if (ppoll(fds, link->nics, &timeout, NULL) <= 0)
			continue;
		for (unsigned d = 0; d < link->nics; d++)
			if (fds[d].revents)
				sl_verbs_drain(link->nic[d]);
		break;
	}
	return 1;
}
