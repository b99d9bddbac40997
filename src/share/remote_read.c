/* remote_read.c - a follower READs: elements into slots, and looks that say whether they count. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "share/remote_follow.h"

enum { BUDGET = 64, REAPED = 32 };
#define LOOK	 UINT64_MAX /* id of its READ; those of slots are their numbers */
#define PAUSE_NS UINT64_C(10000000)

/* ---- posting ---- */

static bool post(struct sl_share_remote_follower *r, unsigned queue, uint64_t id, uint32_t key,
		 uint64_t va, void *at, uint64_t bytes)
{
	const struct sl_work work = {
		.id = id,
		.kind = SL_ROCE_KIND_READ,
		.piece = {{at, (uint32_t)bytes}},
		.rkey = key,
		.va = va,
	};

	if (!sl_qp_send(r->qp[queue], &work))
		return true;
	r->failed = SL_STATUS_FLUSHED; /* depth and lengths are right: the queue pair has failed */
	return false;
}

static void post_data(struct sl_follower *f, struct sl_share_slot *slot)
{
	struct sl_share_remote_follower *r = f->remote;
	const struct sl_share_header *h = &r->there.header;
	uint64_t base = h->data_offset + slot->n % h->count * h->stride + slot->from;
	uint32_t key = h->in_second ? r->there.second_key : r->there.region_key;

	while (slot->posted < slot->bytes && slot->reads <= SL_SHARE_READS_OF_SLOT) {
		uint64_t left = slot->bytes - slot->posted;
		uint64_t bytes = left < SL_SHARE_READ_BYTES ? left : SL_SHARE_READ_BYTES;

		if (!post(r, SL_SHARE_DATA, (uint64_t)(slot - r->slot), key, base + slot->posted,
			  slot->to + slot->posted, bytes))
			return;
		slot->posted += bytes;
		slot->reads++;
	}
}

void sl_share_slot_begin(struct sl_follower *f, struct sl_share_slot *slot, uint64_t n,
			 uint64_t offset, uint64_t bytes, void *to)
{
	struct sl_share_remote_follower *r = f->remote;
	uint64_t place = SL_SHARE_HEADER_BYTES +
			 n % f->description.count * (uint64_t)sizeof(struct sl_share_place);

	slot->state = SL_SHARE_READING;
	slot->ahead = to == slot->own;
	slot->n = n;
	slot->from = offset;
	slot->bytes = bytes;
	slot->posted = slot->look = 0;
	slot->to = to;
	slot->reads = post(r, SL_SHARE_DATA, (uint64_t)(slot - r->slot), r->there.region_key, place,
			   &slot->place, sizeof(slot->place));
	post_data(f, slot);
}

void sl_share_look_soon(struct sl_share_remote_follower *r)
{
	r->pause_ns = PAUSE_NS;
	r->slow_ns = 0;
}

/* What was read before it is posted can be judged by it. */
void sl_share_look_post(struct sl_share_remote_follower *r)
{
	if (r->looks_posted != r->looks_done || r->failed)
		return;
	if (!post(r, SL_SHARE_LOOKS, LOOK, r->there.region_key,
		  offsetof(struct sl_share_header, words), &r->words, sizeof(r->words)))
		return;
	r->looks_posted++;
	for (unsigned i = 0; i <= SL_SHARE_SLOTS; i++)
		if (r->slot[i].state == SL_SHARE_READ && !r->slot[i].look)
			r->slot[i].look = r->looks_posted;
}

/* ---- completions ---- */

static void judge(struct sl_follower *f)
{
	struct sl_share_remote_follower *r = f->remote;

	for (unsigned i = 0; i <= SL_SHARE_SLOTS; i++) {
		struct sl_share_slot *slot = &r->slot[i];

		if (slot->state != SL_SHARE_READ || !slot->look || slot->look > r->looks_done)
			continue;
		/* Invariant WHOLE (tests/model/share_remote.pml): `claimed` is n + 1 of what the
		 * writer has begun, and element n + count has the same place. */
		slot->state = r->claimed <= slot->n + f->description.count &&
					      slot->place.done == slot->n + 1
				      ? SL_SHARE_WHOLE
				      : SL_SHARE_LOST;
	}
}

static void looked(struct sl_follower *f)
{
	struct sl_share_remote_follower *r = f->remote;

	r->looks_done = r->looks_posted;
	r->claimed = r->words.claimed;
	r->published = r->words.published;
	r->state = (enum sl_share_state)r->words.state;
	if (r->state == SL_SHARE_ENDED && !r->ended_look)
		r->ended_look = r->looks_done;
	judge(f);
}

static void complete(struct sl_follower *f, const struct sl_completion *done)
{
	struct sl_share_remote_follower *r = f->remote;
	struct sl_share_slot *slot;

	if (done->status) {
		if (!r->failed || r->failed == SL_STATUS_FLUSHED)
			r->failed = done->status;
		return;
	}
	if (done->id == LOOK) {
		looked(f);
		return;
	}
	slot = &r->slot[done->id];
	slot->reads--;
	post_data(f, slot);
	if (!slot->reads && slot->posted == slot->bytes)
		slot->state = SL_SHARE_READ;
}

static bool look_is_missing(const struct sl_share_remote_follower *r)
{
	for (unsigned i = 0; i <= SL_SHARE_SLOTS; i++)
		if (r->slot[i].state == SL_SHARE_READ && !r->slot[i].look)
			return true;
	return false;
}

bool sl_share_pump(struct sl_follower *f)
{
	struct sl_share_remote_follower *r = f->remote;
	struct sl_completion done[REAPED];
	uint64_t now = sl_clock_ns();
	bool any = sl_endpoint_poll(r->endpoint, now, BUDGET) > 0;
	unsigned n = sl_endpoint_reap(r->endpoint, NULL, done, REAPED);

	for (unsigned i = 0; i < n && !r->failed; i++)
		complete(f, &done[i]);
	if (look_is_missing(r))
		sl_share_look_post(r);
	if (any)
		sl_idle_work(&r->idle);
	/* Pairs with the acquire of a thread that waits for sl_follow_flag(). */
	__atomic_store_n(&r->flag, sl_share_known(f), __ATOMIC_RELEASE);
	return any || n;
}

/* ---- waiting ---- */

void sl_share_pump_wait(struct sl_follower *f, uint64_t end_ns)
{
	struct sl_share_remote_follower *r = f->remote;
	struct pollfd fd[] = {
		{.fd = sl_endpoint_fd(r->endpoint), .events = sl_endpoint_events(r->endpoint)},
		{.fd = f->socket, .events = POLLRDHUP},
	};
	uint64_t now, wake = sl_endpoint_wake(r->endpoint), ns = 0;
	struct timespec time;

	if (!sl_idle_sleep(&r->idle))
		return;
	now = sl_clock_ns();
	wake = end_ns < wake ? end_ns : wake;
	if (wake > now)
		ns = wake - now;
	time = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	if (ppoll(fd, 2, wake == UINT64_MAX ? NULL : &time, NULL) > 0 && fd[1].revents)
		r->over = sl_follower_hear_the_last(f);
}

uint64_t sl_share_known(const struct sl_follower *f)
{
	const struct sl_share_remote_follower *r = f->remote;
	uint64_t arrived = __atomic_load_n(&r->line->published, __ATOMIC_ACQUIRE);

	return r->line->generation == f->description.generation && arrived > r->published
		       ? arrived
		       : r->published;
}

/* ---- slots ---- */

void sl_share_slots_reset(struct sl_follower *f)
{
	struct sl_share_remote_follower *r = f->remote;
	uint64_t fits = SL_SHARE_SLOT_BYTES / r->there.header.data_bytes;

	for (unsigned i = 0; i <= SL_SHARE_SLOTS; i++) {
		free(r->slot[i].own);
		r->slot[i] = (struct sl_share_slot){0};
	}
	r->depth = fits > SL_SHARE_SLOTS ? SL_SHARE_SLOTS : fits ? (unsigned)fits : 1;
	r->looks_done = r->looks_posted;
	r->failed = 0;
	r->granted = false;
	sl_share_look_soon(r);
	r->state = SL_SHARE_LIVE;
	r->published = r->claimed = r->ended_look = 0;
}

void sl_share_slots_fini(struct sl_share_remote_follower *r)
{
	for (unsigned i = 0; i <= SL_SHARE_SLOTS; i++)
		free(r->slot[i].own);
}
