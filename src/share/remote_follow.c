/* remote_follow.c - a follower of a share on another host: which element it READs, and what it does
 * meanwhile. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "share/remote_follow.h"

enum {
	COPIES = 1000, /* that the writer may overtake before a call gives up */
	FAILURES = 3,  /* of queue pairs in a row */
	RECOVER_MS = 5000,
};
/* Between looks while nothing arrives: what tells of arrivals is not sent again when it is lost. */
#define PAUSE_NS      UINT64_C(10000000)
#define PAUSE_MOST_NS UINT64_C(100000000)

/* ---- when something is wrong ---- */

/* No READ can land any longer. */
static int end(struct sl_follower *f, int err)
{
	struct sl_share_remote_follower *r = f->remote;

	r->over = err;
	sl_share_remote_disconnect(r->qp);
	return err;
}

/* -ESTALE: of another layout now. */
static int attach_again(struct sl_follower *f)
{
	struct sl_share_remote_follower *r = f->remote;
	int err = sl_share_remote_attach(f, sl_share_end_ns(RECOVER_MS), NULL);

	if (err == -ESTALE) /* that is why it failed */
		r->failures = 0;
	if (!err || err == -ESTALE)
		return err;
	return end(f, r->over ? r->over : -ECONNRESET);
}

/* A queue pair has failed: memory was given up, or packets did not get through. */
static int recover(struct sl_follower *f)
{
	struct sl_share_remote_follower *r = f->remote;

	if (r->over)
		return end(f, r->over);
	if (!r->failed)
		return 0;
	return ++r->failures > FAILURES ? end(f, -EIO) : attach_again(f);
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
		return attach_again(f);
	if (r->state == SL_SHARE_ENDED) {
		sl_follower_say(f, SL_SHARE_FRAME_FINISHED, 0, NULL, 0, now);
		return end(f, -EPIPE);
	}
	return end_ns != UINT64_MAX && now >= end_ns ? -ETIMEDOUT : 0;
}

/* Look from time to time, and when the share says that it moves or ends. */
static void look_slowly(struct sl_share_remote_follower *r, uint64_t now)
{
	if (r->line->state != SL_SHARE_LIVE && r->line->generation) {
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

static int idle(struct sl_follower *f, uint64_t end_ns)
{
	struct sl_share_remote_follower *r = f->remote;
	uint64_t now = sl_clock_ns();
	int err = at_the_end(f, now, end_ns);

	if (err)
		return err;
	grant(f, now);
	look_slowly(r, now);
	if (!sl_share_pump(f) && !r->failed)
		sl_share_pump_wait(f, end_ns < r->slow_ns ? end_ns : r->slow_ns);
	return 0;
}

static int wait_for(struct sl_follower *f, enum sl_follow_mode mode, uint64_t end_ns, uint64_t *n)
{
	struct sl_share_remote_follower *r = f->remote;
	int err;

	r->pause_ns = PAUSE_NS;
	r->slow_ns = 0;
	for (;;) {
		err = recover(f);
		if (err)
			return err;
		*n = sl_follower_choose(f, mode, sl_share_known(f));
		if (*n != UINT64_MAX)
			return 0;
		err = idle(f, end_ns);
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
		if (!slot->own)
			slot->own = malloc(f->description.data_bytes);
		if (!slot->own)
			return;
		sl_share_slot_begin(f, slot, k, 0, f->description.data_bytes, slot->own);
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

/* Element n in its slot, WHOLE or LOST. */
static bool get(struct sl_follower *f, enum sl_follow_mode mode, uint64_t n, void *data,
		struct sl_share_slot **slot)
{
	struct sl_share_remote_follower *r = f->remote;
	struct sl_share_slot *s = &r->slot[n % r->depth];

	*slot = s;
	if (!holds(s, n)) {
		if (!finish(f, s)) /* of another element, which was read ahead */
			return false;
		sl_share_slot_begin(f, s, n, 0, f->description.data_bytes, data);
	}
	if (mode == SL_FOLLOW_EVERY)
		read_ahead(f, n);
	return finish(f, s);
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
		if (!get(f, mode, n, data, &slot))
			continue; /* recover, or the end */
		if (slot->state == SL_SHARE_WHOLE) {
			if (slot->ahead)
				memcpy(data, slot->own, f->description.data_bytes);
			element->note = slot->place.note;
			slot->state = SL_SHARE_FREE;
			r->failures = 0;
			sl_follower_deliver(f, n, element);
			return 0;
		}
		if (mode == SL_FOLLOW_EVERY)
			f->next = n + 1;
		i++;
	}
	return -EAGAIN;
}

/* ---- parts ---- */

/* A look that begins now. */
static int look(struct sl_follower *f)
{
	struct sl_share_remote_follower *r = f->remote;
	uint64_t number = r->looks_posted + 1;

	while (!r->failed && !r->over && r->looks_done < number) {
		sl_share_look_post(r);
		if (!sl_share_pump(f) && !r->failed)
			sl_share_pump_wait(f, UINT64_MAX);
	}
	return recover(f);
}

/* 0: it is there; 1: overtaken; 2: try again; -errno. */
static int fetch_once(struct sl_follower *f, uint64_t n, uint64_t offset, uint64_t bytes,
		      void *into, struct sl_follow_element *element)
{
	struct sl_share_remote_follower *r = f->remote;
	struct sl_share_slot *slot = &r->slot[SL_SHARE_PART];
	int err;

	sl_share_slot_begin(f, slot, n, offset, bytes, into);
	if (!finish(f, slot)) {
		err = recover(f);
		return err ? err : 2;
	}
	r->failures = 0;
	if (slot->state != SL_SHARE_WHOLE)
		return 1;
	*element = (struct sl_follow_element){.n = n, .data = into, .note = slot->place.note};
	return 0;
}

/* The look behind the copy says whether it is still the newest; one that was so within this call is
 * new enough. */
static int fetch_newest(struct sl_follower *f, uint64_t offset, uint64_t bytes, void *into,
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
			err = fetch_once(f, p - 1, offset, bytes, into, element);
		else
			err = look(f);
		if (err < 0)
			return err;
		if (!err && p > f->first && (fresh || r->published == p))
			return 0;
		fresh = err != 2;
	}
	return -EAGAIN;
}

static int fetch(struct sl_follower *f, uint64_t n, uint64_t offset, uint64_t bytes, void *into,
		 struct sl_follow_element *element)
{
	int err = recover(f);

	if (err)
		return err;
	if (n == UINT64_MAX)
		return fetch_newest(f, offset, bytes, into, element);
	do {
		if (n >= sl_share_known(f))
			err = look(f);
		if (err < 0)
			return err;
		if (n >= sl_share_known(f))
			return -ENODATA;
		if (n < f->first)
			return -ESTALE;
		err = fetch_once(f, n, offset, bytes, into, element);
	} while (err == 2);
	return err == 1 ? -ESTALE : err;
}

/* As of the last look. */
static uint64_t peers(const struct sl_follower *f)
{
	return f->remote->words.peers;
}

static const uint64_t *flag(const struct sl_follower *f)
{
	return &f->remote->line->published;
}

const struct sl_follower_ops sl_follower_there = {
	.take = take,
	.fetch = fetch,
	.attach = sl_share_remote_attach,
	.flag = flag,
	.peers = peers,
	.close = sl_share_remote_leave,
};
