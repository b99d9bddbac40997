/* remote_read.c - a follower READs: elements into slots, and looks that say whether they count. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "share/remote_follow.h"

enum { LOOK = 255 }; /* id of its READ; those of slots are their numbers */
#define PAUSE_NS UINT64_C(10000000)

/* ---- posting ---- */

/* Completions of queue pairs that were closed have another epoch. */
static uint64_t work_of(const struct sl_share_remote_follower *r, unsigned id)
{
	return r->epoch << 8 | id;
}

static bool post(struct sl_share_remote_follower *r, unsigned queue,
		 const struct sl_share_work *work)
{
	if (!r->rdma->ops->post(r->queue[queue], work))
		return true;
	r->failed = SL_STATUS_FLUSHED; /* depth and lengths are right: the queue pair has failed */
	return false;
}

static unsigned number_of(const struct sl_share_remote_follower *r, const struct sl_share_slot *s)
{
	return (unsigned)(s - r->slot);
}

static void post_data(struct sl_follower *f, struct sl_share_slot *slot)
{
	struct sl_share_remote_follower *r = f->remote;
	const struct sl_share_header *h = &r->there.header;
	uint64_t base = h->data_offset + slot->n % h->count * h->stride + slot->from;
	struct sl_share_work work = {
		.id = work_of(r, number_of(r, slot)),
		.read = true,
		.local = &slot->local,
		.rkey = h->in_second ? r->there.second_key : r->there.region_key,
	};

	while (slot->posted < slot->bytes && slot->reads <= SL_SHARE_READS_OF_SLOT) {
		uint64_t left = slot->bytes - slot->posted;

		work.at = slot->to + slot->posted;
		work.va = base + slot->posted;
		work.bytes = left < r->rdma->read_bytes ? (uint32_t)left : r->rdma->read_bytes;
		if (!post(r, SL_SHARE_DATA, &work))
			return;
		slot->posted += work.bytes;
		slot->reads++;
	}
}

static bool post_note(struct sl_share_remote_follower *r, struct sl_share_slot *slot)
{
	const struct sl_share_work work = {
		.id = work_of(r, number_of(r, slot)),
		.read = true,
		.local = &r->self,
		.at = &slot->place,
		.bytes = sizeof(slot->place),
		.rkey = r->there.region_key,
		.va = SL_SHARE_HEADER_BYTES +
		      slot->n % r->there.header.count * (uint64_t)sizeof(struct sl_share_place),
	};

	return post(r, SL_SHARE_DATA, &work);
}

static void free_own(struct sl_share_remote_follower *r, struct sl_share_slot *slot)
{
	if (slot->local.at)
		r->rdma->ops->close_local(r->rdma, &slot->local);
	free(slot->own);
	slot->own = NULL;
	slot->own_bytes = 0;
}

/* Memory of the slot's own, of at least that size; registered, where a NIC reads into it. No READ
 * into the slot is under way. */
static int make_own(struct sl_share_remote_follower *r, struct sl_share_slot *slot, uint64_t bytes)
{
	int err = 0;

	if (slot->own && slot->own_bytes >= bytes)
		return 0;
	free_own(r, slot);
	bytes = bytes ? bytes : 1;
	slot->own = malloc(bytes);
	if (slot->own && r->rdma->is_nic)
		err = r->rdma->ops->open_local(r->rdma, slot->own, bytes, &slot->local);
	if (slot->own && !err) {
		slot->own_bytes = bytes;
		return 0;
	}
	free_own(r, slot);
	return -ENOMEM;
}

int sl_share_slot_begin(struct sl_follower *f, struct sl_share_slot *slot, uint64_t n,
			uint64_t offset, uint64_t bytes, void *to)
{
	struct sl_share_remote_follower *r = f->remote;

	slot->ahead = !to || r->rdma->is_nic;
	if (slot->ahead && make_own(r, slot, bytes)) {
		slot->state = SL_SHARE_FREE;
		return -ENOMEM;
	}
	slot->state = SL_SHARE_READING;
	slot->n = n;
	slot->from = offset;
	slot->bytes = bytes;
	slot->posted = slot->look = 0;
	slot->to = slot->ahead ? slot->own : to;
	slot->reads = post_note(r, slot);
	post_data(f, slot);
	return 0;
}

void sl_share_look_soon(struct sl_share_remote_follower *r)
{
	r->pause_ns = PAUSE_NS;
	r->slow_ns = 0;
}

/* What was read before it is posted can be judged by it. */
void sl_share_look_post(struct sl_share_remote_follower *r)
{
	const struct sl_share_work work = {
		.id = work_of(r, LOOK),
		.read = true,
		.local = &r->self,
		.at = &r->words,
		.bytes = sizeof(r->words),
		.rkey = r->there.region_key,
		.va = offsetof(struct sl_share_header, words),
	};

	if (r->looks_posted != r->looks_done || r->failed || !post(r, SL_SHARE_LOOKS, &work))
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

static void complete(struct sl_follower *f, const struct sl_share_done *done)
{
	struct sl_share_remote_follower *r = f->remote;
	unsigned id = done->id & 0xff;
	struct sl_share_slot *slot;

	if (done->id != work_of(r, id))
		return;
	if (done->status) {
		if (!r->failed || r->failed == SL_STATUS_FLUSHED)
			r->failed = done->status;
		return;
	}
	if (id == LOOK) {
		looked(f);
		return;
	}
	slot = &r->slot[id];
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
	struct sl_share_done done[SL_SHARE_DONE];
	unsigned n;
	bool any = r->rdma->ops->poll(r->rdma, sl_clock_ns(), done, &n);

	for (unsigned i = 0; i < n && !r->failed; i++)
		complete(f, &done[i]);
	if (r->rdma->failed && !r->failed)
		r->failed = SL_STATUS_FLUSHED;
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
	const struct sl_share_rdma_ops *ops = r->rdma->ops;
	struct pollfd fd[] = {
		{.fd = ops->fd(r->rdma), .events = ops->events(r->rdma)},
		{.fd = f->socket, .events = POLLRDHUP},
	};
	uint64_t now, wake = ops->wake(r->rdma), ns = 0;
	struct timespec time;

	if (!sl_idle_sleep(&r->idle) || (ops->arm(r->rdma) && sl_share_pump(f)))
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

static void free_slots(struct sl_share_remote_follower *r)
{
	for (unsigned i = 0; i <= SL_SHARE_SLOTS; i++) {
		free_own(r, &r->slot[i]);
		r->slot[i] = (struct sl_share_slot){0};
	}
}

void sl_share_slots_reset(struct sl_follower *f)
{
	struct sl_share_remote_follower *r = f->remote;
	uint64_t fits = SL_SHARE_SLOT_BYTES / r->there.header.data_bytes;

	free_slots(r);
	r->depth = fits > SL_SHARE_SLOTS ? SL_SHARE_SLOTS : fits ? (unsigned)fits : 1;
	r->looks_done = r->looks_posted;
	r->failed = 0;
	r->granted = false;
	sl_share_look_soon(r);
	r->state = SL_SHARE_LIVE;
	r->published = r->claimed = r->ended_look = 0;
}

void sl_share_slots_fini(struct sl_follower *f)
{
	free_slots(f->remote);
}
