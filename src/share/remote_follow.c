/* remote_follow.c - a follower of a share on another host: which element it READs, and what it does
 * meanwhile. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "share/remote_follow.h"

enum {
	COPIES = 1000, /* that the writer may overtake before a call gives up */
	AT_LEAST = 10, /* copies that it tries, however short its time is */
	FAILURES = 3,  /* of queue pairs in a row */
};
#define RECOVER_NS UINT64_C(5000000000) /* to attach again, however much time a call has */
/* Longest time between looks while nothing arrives: what tells of arrivals is not sent again when
 * it is lost. */
#define PAUSE_MOST_NS UINT64_C(100000000)
/* Between looks at a place that is being filled. */
#define FILLING_NS	UINT64_C(20000)
#define FILLING_MOST_NS UINT64_C(1000000)

/* ---- when something is wrong ---- */

/* No READ can land any longer. */
static int end(struct sl_follower *f, int err)
{
	struct sl_share_remote_follower *r = f->remote;

	r->over = err;
	sl_share_remote_disconnect(r->rdma, r->queue);
	return err;
}

/* -ESTALE: of another layout now; -ETIMEDOUT, -ENOBUFS: not attached yet, a later call goes on. */
static int attach_again(struct sl_follower *f, uint64_t end_ns)
{
	struct sl_share_remote_follower *r = f->remote;
	int err;

	if (!r->attach_end_ns)
		r->attach_end_ns = sl_clock_ns() + RECOVER_NS;
	err = sl_share_remote_attach(f, end_ns < r->attach_end_ns ? end_ns : r->attach_end_ns,
				     NULL);
	if ((err == -ETIMEDOUT || err == -EAGAIN) && sl_clock_ns() < r->attach_end_ns)
		return -ETIMEDOUT;
	r->attach_end_ns = 0;
	if (err == -ESTALE) /* that is why it failed */
		r->failures = 0;
	if (!err || err == -ESTALE || err == -ENOBUFS)
		return err;
	return end(f, r->over ? r->over : err == -EPIPE ? err : -ECONNRESET);
}

/* A queue pair has failed: memory was given up, or packets did not get through. Or a call before
 * this one had no time to attach. */
static int recover(struct sl_follower *f, uint64_t end_ns)
{
	struct sl_share_remote_follower *r = f->remote;

	if (r->over)
		return end(f, r->over);
	if (r->step == SL_SHARE_ATTACHED && !r->failed)
		return 0;
	if (r->step == SL_SHARE_ATTACHED && ++r->failures > FAILURES)
		return end(f, -EIO);
	return attach_again(f, end_ns);
}

/* ---- waiting for an element ---- */

/* What the share may send without being asked for again. Where that cannot be said, looks find what
 * arrives; a connection that was closed is found while waiting. */
static void grant(struct sl_follower *f, uint64_t now)
{
	struct sl_share_remote_follower *r = f->remote;

	if (r->granted && r->line->left > SL_SHARE_ARRIVALS_AT_A_TIME / 2)
		return;
	r->granted = true;
	r->line->left = SL_SHARE_ARRIVALS_AT_A_TIME;
	sl_follower_say(f, SL_SHARE_FRAME_ARRIVALS, SL_SHARE_ARRIVALS_AT_A_TIME, NULL, 0, now);
}

/* Nothing is left of what was published: what now? 0: wait; or what the caller is told. */
static int at_the_end(struct sl_follower *f, uint64_t now, uint64_t end_ns)
{
	struct sl_share_remote_follower *r = f->remote;

	if (r->state == SL_SHARE_MOVED || r->line->generation > f->description.generation)
		return attach_again(f, end_ns);
	/* Invariant COUNTED: a look may have read `published` before it read the end; the look
	 * behind it has not. */
	if (r->state == SL_SHARE_ENDED && r->looks_done > r->ended_look) {
		sl_follower_say(f, SL_SHARE_FRAME_FINISHED, 0, NULL, 0, now);
		return end(f, -EPIPE);
	}
	return 0;
}

/* Look from time to time, and when the share says that it moves or ends. */
static void look_slowly(struct sl_share_remote_follower *r, uint64_t now)
{
	if (r->state != SL_SHARE_LIVE || (r->line->state != SL_SHARE_LIVE && r->line->generation)) {
		sl_share_look_post(r);
		return;
	}
	if (!r->slow_ns)
		r->slow_ns = now + r->pause_ns;
	if (now < r->slow_ns)
		return;
	sl_share_look_post(r);
	r->granted = false; /* it may believe that it has sent all that it may */
	r->pause_ns = 2 * r->pause_ns < PAUSE_MOST_NS ? 2 * r->pause_ns : PAUSE_MOST_NS;
	r->slow_ns = now + r->pause_ns;
}

/* late: the time is over: take what has arrived, and do not wait. */
static int idle(struct sl_follower *f, uint64_t end_ns, bool late)
{
	struct sl_share_remote_follower *r = f->remote;
	uint64_t now = sl_clock_ns();
	int err = at_the_end(f, now, end_ns);

	if (err)
		return err;
	grant(f, now);
	look_slowly(r, now);
	if (!sl_share_pump(f) && !r->failed && !late)
		sl_share_pump_wait(f, end_ns < r->slow_ns ? end_ns : r->slow_ns);
	return 0;
}

/* Calls without time to wait make progress, too: each takes what has arrived since the last one. */
static int wait_for(struct sl_follower *f, enum sl_follow_mode mode, uint64_t end_ns, uint64_t *n)
{
	bool late = false;
	int err;

	for (;;) {
		err = recover(f, end_ns);
		if (err)
			return err;
		*n = sl_follower_choose(f, mode, sl_share_known(f));
		if (*n != UINT64_MAX)
			return 0;
		if (late)
			return -ETIMEDOUT;
		late = sl_clock_ns() >= end_ns;
		err = idle(f, end_ns, late);
		if (err)
			return err;
	}
}

/* ---- elements ---- */

static bool holds(const struct sl_share_slot *slot, uint64_t n)
{
	return slot->n == n && slot->state != SL_SHARE_FREE && slot->state != SL_SHARE_LOST;
}

/* Those behind element n that are published, so that their READs do not wait for each other. */
static void read_ahead(struct sl_follower *f, uint64_t n)
{
	struct sl_share_remote_follower *r = f->remote;
	uint64_t known = sl_share_known(f);

	for (uint64_t k = n + 1; k < known && k < n + r->depth; k++) {
		struct sl_share_slot *slot = &r->slot[k % r->depth];

		if (holds(slot, k) || slot->state == SL_SHARE_READING)
			continue;
		if (sl_share_slot_begin(f, slot, k, 0, f->description.data_bytes, NULL))
			return;
	}
}

static bool is_under_way(const struct sl_share_slot *slot)
{
	return slot->state == SL_SHARE_READING || slot->state == SL_SHARE_READ;
}

/* Until the slot is decided. false: the queue pairs failed, or the share has gone. */
static bool finish(struct sl_follower *f, const struct sl_share_slot *slot)
{
	struct sl_share_remote_follower *r = f->remote;

	while (is_under_way(slot) && !r->failed && !r->over)
		if (!sl_share_pump(f) && !r->failed)
			sl_share_pump_wait(f, UINT64_MAX);
	return !r->failed && !r->over;
}

/* Element n in its slot, WHOLE or LOST. -EAGAIN: the queue pairs failed, or the share has gone. */
static int get(struct sl_follower *f, enum sl_follow_mode mode, uint64_t n, void *data,
	       struct sl_share_slot **slot)
{
	struct sl_share_remote_follower *r = f->remote;
	struct sl_share_slot *s = &r->slot[n % r->depth];

	*slot = s;
	if (!holds(s, n)) {
		if (!finish(f, s)) /* of another element, which was read ahead */
			return -EAGAIN;
		if (sl_share_slot_begin(f, s, n, 0, f->description.data_bytes, data))
			return -ENOMEM;
	}
	if (mode == SL_FOLLOW_EVERY)
		read_ahead(f, n);
	return finish(f, s) ? 0 : -EAGAIN;
}

static int take(struct sl_follower *f, enum sl_follow_mode mode, uint64_t end_ns, void *data,
		struct sl_follow_element *element)
{
	struct sl_share_remote_follower *r = f->remote;

	for (unsigned i = 0; i < COPIES;) {
		struct sl_share_slot *slot;
		uint64_t n;
		int err = wait_for(f, mode, end_ns, &n);

		if (err)
			return err;
		err = get(f, mode, n, data, &slot);
		if (err == -EAGAIN)
			continue; /* recover, or the end */
		if (err)
			return err;
		if (slot->state == SL_SHARE_WHOLE) {
			if (slot->ahead)
				memcpy(data, slot->own, f->description.data_bytes);
			element->note = slot->place.note;
			sl_follower_limit_rows(f, &element->note);
			slot->state = SL_SHARE_FREE;
			r->failures = 0;
			sl_share_look_soon(r);
			sl_follower_deliver(f, n, element);
			return 0;
		}
		f->next = n + 1; /* invariant OVERTAKEN: element n + count takes its place */
		if (i++ >= AT_LEAST && sl_clock_ns() >= end_ns)
			return -ETIMEDOUT;
	}
	return -EAGAIN;
}

/* ---- parts ---- */

struct part { /* of an element's data, that is wanted until then */
	uint64_t offset, bytes;
	void *into;
	uint64_t end_ns;
};

/* A look that begins now. */
static int look(struct sl_follower *f, uint64_t end_ns)
{
	struct sl_share_remote_follower *r = f->remote;
	uint64_t number = r->looks_posted + 1;

	while (!r->failed && !r->over && r->looks_done < number) {
		sl_share_look_post(r);
		if (sl_share_pump(f) || r->failed)
			continue;
		if (sl_clock_ns() >= end_ns)
			return -ETIMEDOUT;
		sl_share_pump_wait(f, end_ns);
	}
	return recover(f, end_ns);
}

/* 0: it is there; 1: overtaken; 2: try again; -errno. */
static int fetch_once(struct sl_follower *f, uint64_t n, const struct part *part,
		      struct sl_follow_element *element)
{
	struct sl_share_remote_follower *r = f->remote;
	struct sl_share_slot *slot = &r->slot[SL_SHARE_PART];
	int err;

	if (sl_share_slot_begin(f, slot, n, part->offset, part->bytes, part->into))
		return -ENOMEM;
	if (!finish(f, slot)) {
		err = recover(f, part->end_ns);
		return err ? err : 2;
	}
	r->failures = 0;
	if (slot->state != SL_SHARE_WHOLE)
		return 1;
	*element = (struct sl_follow_element){.n = n, .data = part->into, .note = slot->place.note};
	sl_follower_limit_rows(f, &element->note);
	if (slot->ahead)
		memcpy(part->into, slot->own, part->bytes);
	return 0;
}

/* The newest of p elements is being overwritten: wait for the next one, without its data. 0: it is
 * there. */
static int wait_while_filled(struct sl_follower *f, uint64_t p, uint64_t end_ns)
{
	uint64_t pause_ns = FILLING_NS;
	int err = 0;

	while (!err && sl_share_known(f) <= p) {
		uint64_t now = sl_clock_ns();

		err = at_the_end(f, now, end_ns);
		if (err || now >= end_ns)
			return err ? err : -EAGAIN;
		nanosleep(&(struct timespec){.tv_nsec = (long)pause_ns}, NULL);
		pause_ns = 2 * pause_ns < FILLING_MOST_NS ? 2 * pause_ns : FILLING_MOST_NS;
		err = look(f, end_ns);
	}
	return err == -ETIMEDOUT ? -EAGAIN : err;
}

/* The look behind the copy says whether it is still the newest; one that was so within this call is
 * new enough. */
static int fetch_newest(struct sl_follower *f, const struct part *part,
			struct sl_follow_element *element)
{
	struct sl_share_remote_follower *r = f->remote;
	bool fresh = false;

	for (unsigned i = 0; i < COPIES; i++) {
		uint64_t p = sl_share_known(f);
		int err = 0;

		if (p <= f->first && fresh)
			return -ENODATA;
		if (p > f->first)
			err = fetch_once(f, p - 1, part, element);
		else
			err = look(f, part->end_ns);
		if (err < 0)
			return err;
		if (!err && p > f->first && (fresh || r->published == p))
			return 0;
		fresh = err != 2;
		if (err == 1)
			err = wait_while_filled(f, p, part->end_ns);
		if (err < 0)
			return err;
	}
	return -EAGAIN;
}

static int fetch(struct sl_follower *f, uint64_t n, uint64_t offset, uint64_t bytes, void *into,
		 struct sl_follow_element *element)
{
	const struct part part = {offset, bytes, into, sl_share_end_ns(f->timeout_ms)};
	int err = recover(f, part.end_ns);

	if (err)
		return err;
	if (n == UINT64_MAX)
		return fetch_newest(f, &part, element);
	do {
		if (n >= sl_share_known(f))
			err = look(f, part.end_ns);
		if (err < 0)
			return err;
		if (n >= sl_share_known(f))
			return -ENODATA;
		if (n < f->first)
			return -ESTALE;
		err = fetch_once(f, n, &part, element);
	} while (err == 2);
	return err == 1 ? -ESTALE : err;
}

static int published(struct sl_follower *f, uint64_t *n)
{
	uint64_t end_ns = sl_share_end_ns(f->timeout_ms);
	int err = recover(f, end_ns);

	if (!err)
		err = look(f, end_ns);
	*n = sl_share_known(f);
	return err;
}

/* As of the last look. */
static uint64_t peers(const struct sl_follower *f)
{
	return f->remote->words.peers;
}

static const uint64_t *flag(const struct sl_follower *f)
{
	return &f->remote->flag;
}

const struct sl_follower_ops sl_follower_there = {
	.take = take,
	.fetch = fetch,
	.published = published,
	.flag = flag,
	.peers = peers,
	.close = sl_share_remote_leave,
};
