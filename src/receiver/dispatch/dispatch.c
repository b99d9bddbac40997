/* dispatch.c - the dispatcher: opens slots, takes frames from the assembler, feeds the unit in
 * batches, gives slots back as soon as the unit is through with them, and hands every frame on in
 * order. A data thread; its own, or the one that also polls the link and works (together.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/datathread.h"
#include "receiver/dispatch/deadline.h"
#include "receiver/private.h"

enum {
	WAIT_US = 2000,
	/* A batch that is not full waits this long for more while the unit is busy, and longer
	 * while it has enough. */
	BATCH_AGE_NS = 1000 * 1000,
};

struct sl_dispatcher {
	struct sl_receiver *r;
	/* Frames on their way, in order: [room], free-running indices. */
	struct sl_flow_frame **line;
	uint32_t room, first, last;
	/* Taken from the pools for a frame that has not come yet. */
	struct sl_flow_frame *spare, *spare_dropped;
	uint64_t handed;       /* frames, to the settler */
	struct sl_batch *open; /* being filled */
	uint64_t open_ns;
	uint32_t submitted, reaped; /* batches, free-running */
	uint32_t enough;	    /* of them in the unit: a further one waits until it is full */
	uint64_t in_unit;	    /* a bit for each batch that is there */
	uint64_t unit_frames;	    /* in these batches */
	struct sl_deadline deadline;
	uint64_t begun_ns; /* when the unit may have begun with its batch: submitted, or the last
			      one came back */
	uint64_t
		dry_ns; /* when data that wait for a frame of the pool were last seen; 0: none do */
	bool ended;
};

/* Of link threads, those that sleep in wait(). */
static void wake_link(struct sl_receiver *r)
{
	uint64_t one = 1;

	/* A read-modify-write, so that it is not done before the slots were opened
	 * (link/udp/udp.c, sl_udp_wait; invariant WOKEN). */
	for (unsigned i = 0; i < r->pollers; i++)
		if (atomic_fetch_or(&r->wake[i].asleep, 0) &&
		    write(r->wake[i].fd, &one, sizeof(one)) < 0)
			continue; /* full: it is awake */
}

/* The thread that does it all sleeps in the link's wait(); it looks at the bell once more before
 * (together.c). */
void sl_dispatcher_wake(struct sl_receiver *r)
{
	sl_bell_ring(&r->events);
	if (r->experiment->threads.together)
		wake_link(r);
}

/* Frames at the head of the line that are done go to the settler: each once, in order (invariant
 * ONCE). Sinks that are prompt have them before. */
static int hand_on(struct sl_dispatcher *d)
{
	struct sl_receiver *r = d->r;
	int n = 0;

	while (d->first != d->last && d->line[d->first % d->room]->done) {
		struct sl_flow_frame *flow = d->line[d->first % d->room];

		if (r->prompt)
			sl_prompt_put(r, flow);
		/* While the settler is busy anyway, more may join the newest that were dropped. */
		if (flow->home == &r->dropped && d->first + 1 == d->last && !d->ended &&
		    !sl_queue_empty(&r->to_settle))
			break;
		d->first++;
		d->handed += 1 + flow->more;
		sl_queue_push(&r->to_settle, flow);
		n++;
	}
	if (n)
		sl_bell_ring(&r->settling);
	return n;
}

/* The unit could not process it: whole as it is, nothing can be said of it or stored. */
static void give_up(struct sl_frame *frame)
{
	frame->flags &= ~(uint32_t)(SL_FRAME_COMPLETE | SL_FRAME_PARTIAL);
	for (uint32_t v = 0; v < sl_frame_all_views(frame); v++) {
		if (sl_frame_misses(frame, v))
			continue;
		frame->view[v].outcome = SL_REFUSED;
		frame->view[v].cause = SL_CAUSE_UNIT;
	}
}

/* Links that cannot refuse a write: a source that ignored its credit wrote where this frame was
 * being read, as its announcement of a lap too early shows. Whatever was made of it is no good. */
static void check_overwritten(const struct sl_receiver *r, struct sl_frame *frame)
{
	uint64_t overwritten = 0;

	for (uint32_t v = 0; v < sl_frame_all_views(frame); v++) {
		const struct sl_view *view = &frame->view[v];
		const struct sl_feed *f = r->of[v];
		uint32_t m = v - f->first;

		if (view->held && !(f->link->guards & SL_GUARD_ENFORCED) &&
		    !(f->assembler.options.unguarded >> m & 1) &&
		    sl_ring_was_turned_away(&f->ring, view->sequence + f->ring.slots, m))
			overwritten |= UINT64_C(1) << v;
	}
	if (!overwritten)
		return;
	frame->flags &= ~(uint32_t)(SL_FRAME_COMPLETE | SL_FRAME_PARTIAL);
	for (uint32_t v = 0; v < sl_frame_all_views(frame); v++) {
		if (sl_frame_misses(frame, v))
			continue;
		frame->view[v].outcome = overwritten >> v & 1 ? SL_OVERRUN : SL_INCOMPLETE;
		frame->view[v].cause = overwritten >> v & 1 ? SL_CAUSE_OVERWRITTEN
							    : SL_CAUSE_PARTNER;
	}
}

static void release(struct sl_receiver *r, struct sl_frame *frame)
{
	for (uint32_t v = 0; v < sl_frame_all_views(frame); v++) {
		struct sl_view *view = &frame->view[v];
		struct sl_feed *f = r->of[v];

		if (view->held)
			sl_ring_release(&f->ring, view->sequence, v - f->first);
		view->held = 0;
		view->pixels.host = NULL;
	}
}

static void take_back(struct sl_dispatcher *d, struct sl_batch *batch)
{
	struct sl_receiver *r = d->r;
	uint64_t now = sl_clock_ns();

	for (uint32_t i = 0; i < batch->frames; i++) {
		struct sl_frame *frame = batch->frame[i];

		frame->hop_ns[SL_HOP_PROCESSED] = now;
		if (batch->status)
			give_up(frame);
		if (!r->all_enforced)
			check_overwritten(r, frame);
		release(r, frame);
		((struct sl_flow_frame *)frame)->done = true;
	}
	if (!batch->status)
		sl_deadline_learn(&d->deadline, batch->frames, now - d->begun_ns);
	d->begun_ns = now;
	d->reaped++;
	d->unit_frames -= batch->frames;
	d->in_unit &= ~(UINT64_C(1) << (batch - r->batches));
}

static int reap(struct sl_dispatcher *d)
{
	struct sl_receiver *r = d->r;
	struct sl_batch *batch;
	int n = 0;

	while (r->experiment->unit->reap(r->experiment->unit_state, &batch) > 0) {
		take_back(d, batch);
		n++;
	}
	return n;
}

static int open_slots(struct sl_dispatcher *d)
{
	unsigned most = sl_slots_open(d->r);

	if (most)
		wake_link(d->r);
	return (int)most;
}

static bool submit(struct sl_dispatcher *d)
{
	struct sl_receiver *r = d->r;
	struct sl_batch *batch = d->open;
	int err = r->experiment->unit->submit(r->experiment->unit_state, batch);

	/* A batch that the unit will never take waits for those before it, then comes back as it
	 * is. */
	if (err == -EAGAIN || (err && d->submitted != d->reaped))
		return false;
	if (d->submitted == d->reaped)
		d->begun_ns = sl_clock_ns();
	d->submitted++;
	d->unit_frames += batch->frames;
	d->in_unit |= UINT64_C(1) << (batch - r->batches);
	d->open = NULL;
	if (err) {
		batch->status = err;
		take_back(d, batch);
	}
	return true;
}

/* The batch to fill, or NULL when all are in the unit. */
static struct sl_batch *batch_to_fill(struct sl_dispatcher *d)
{
	struct sl_receiver *r = d->r;
	unsigned i;

	if (d->open)
		return d->open->frames < d->open->capacity ? d->open : NULL;
	if (d->submitted - d->reaped == r->n_batches)
		return NULL;
	i = (unsigned)__builtin_ctzll(~d->in_unit); /* they may come back in any order */
	d->open = &r->batches[i];
	d->open->frames = 0;
	d->open->deadline_ns = 0;
	d->open->status = 0;
	d->open_ns = sl_clock_ns();
	return d->open;
}

static void note_proof(struct sl_receiver *r, const struct sl_frame *frame)
{
	for (uint32_t m = 0; m < sl_frame_all_views(frame); m++) {
		const struct sl_view *view = &frame->view[m];
		bool whole = view->outcome == SL_NO_OUTCOME || view->cause == SL_CAUSE_PARTNER ||
			     view->cause == SL_CAUSE_LATE;

		if (whole && view->record.version) {
			atomic_store_explicit(&r->source[m].proven, view->sequence + 1,
					      memory_order_relaxed);
			atomic_store_explicit(&r->source[m].last_frame, view->record.frame,
					      memory_order_relaxed);
		}
	}
}

static bool has_spare(struct sl_flow_frame **spare, struct sl_pool *pool)
{
	if (!*spare)
		*spare = sl_pool_get(pool);
	return *spare;
}

static void append(struct sl_dispatcher *d, struct sl_flow_frame *flow)
{
	flow->prompted = 0;
	flow->prompt_refused = false;
	d->line[d->last++ % d->room] = flow;
}

/* Of one detector, or an event of several. 1, 0, or -ENODATA. */
static int next(struct sl_receiver *r, struct sl_flow_frame *flow)
{
	uint64_t now = sl_clock_ns();

	return r->feeds == 1 ? sl_assembler_next(&r->feed[0].assembler, now, &flow->frame)
			     : sl_join_next(&r->join, now, &flow->frame, flow->part);
}

/* The next frame out of the assembler into the line. 1, 0, or -ENODATA. */
static int assemble_one(struct sl_dispatcher *d)
{
	struct sl_receiver *r = d->r;
	struct sl_batch *batch = batch_to_fill(d);
	struct sl_flow_frame *flow;
	int got;

	if (!batch || !has_spare(&d->spare, &r->pool))
		return 0;
	flow = d->spare;
	got = next(r, flow);
	if (got <= 0)
		return got;
	d->spare = NULL;
	note_proof(r, &flow->frame);
	flow->done = !sl_frame_goes_on(&flow->frame);
	append(d, flow);
	if (flow->done)
		return 1;
	batch->frame[batch->frames++] = &flow->frame;
	sl_deadline_join(&d->deadline, batch, &flow->frame,
			 atomic_load_explicit(&r->same_clock, memory_order_relaxed));
	return 1;
}

/* ---- ring.overrun drop_oldest (drop.c) ---- */

/* The oldest frame that is not in the unit goes back, so that newer ones find room. Its outcome
 * travels in the line like every other; a row of them is one entry, for a settler that stands still
 * must not stop this. 1, 0, or -ENODATA. */
static int drop_one(struct sl_dispatcher *d)
{
	struct sl_receiver *r = d->r;
	struct sl_flow_frame *flow, *newest = NULL;
	int got;

	if (!sl_drop_is_due(r) || !has_spare(&d->spare_dropped, &r->dropped))
		return 0;
	flow = d->spare_dropped;
	got = next(r, flow);
	if (got <= 0)
		return got;
	note_proof(r, &flow->frame);
	sl_drop(&flow->frame);
	release(r, &flow->frame);
	if (d->first != d->last)
		newest = d->line[(d->last - 1) % d->room];
	if (newest && newest->home == &r->dropped && sl_drop_continues(newest, &flow->frame)) {
		newest->more++;
		return 1;
	}
	d->spare_dropped = NULL;
	flow->done = true;
	flow->more = 0;
	append(d, flow);
	return 1;
}

static bool may_drop(struct sl_dispatcher *d)
{
	struct sl_receiver *r = d->r;

	return r->experiment->ring.overrun == SL_OVERRUN_DROP_OLDEST && !d->ended &&
	       (!batch_to_fill(d) || !has_spare(&d->spare, &r->pool));
}

/* The batch that is being filled takes no more: it is full, or time presses. */
static bool is_due(const struct sl_dispatcher *d)
{
	if (!d->open || !d->open->frames)
		return false;
	return d->open->frames == d->open->capacity ||
	       (d->deadline.ns &&
		sl_deadline_presses(&d->deadline, d->open, d->unit_frames, sl_clock_ns()));
}

static int assemble(struct sl_dispatcher *d)
{
	int n = 0, got = 1;

	while (!d->ended && (got = assemble_one(d)) > 0) {
		n++;
		if (is_due(d) && !submit(d))
			break;
	}
	while (got != -ENODATA && may_drop(d) && (got = drop_one(d)) > 0)
		n += 1 + open_slots(d);
	if (got == -ENODATA)
		d->ended = true;
	/* Nothing more now: do not let a part of a batch wait for a unit that is idle. */
	if (d->open && d->open->frames &&
	    (d->submitted == d->reaped || d->ended || is_due(d) ||
	     (d->submitted - d->reaped < d->enough && sl_clock_ns() - d->open_ns > BATCH_AGE_NS)))
		submit(d);
	return n;
}

static void set(struct sl_gauge *gauge, uint64_t now)
{
	atomic_store_explicit(&gauge->now, now, memory_order_relaxed);
	if (now > atomic_load_explicit(&gauge->most, memory_order_relaxed))
		atomic_store_explicit(&gauge->most, now, memory_order_relaxed);
}

/* Of its fullest module. */
static uint32_t slots_used(const struct sl_feed *f)
{
	uint32_t used = 0;

	for (uint32_t m = 0; m < f->modules; m++) {
		uint32_t n = sl_ring_used(&f->ring, m);

		used = n > used ? n : used;
	}
	return used;
}

static void measure(struct sl_dispatcher *d)
{
	struct sl_receiver *r = d->r;
	uint64_t settled = atomic_load_explicit(&r->totals.frames, memory_order_relaxed);

	set(&r->slots_used, slots_used(&r->feed[0]));
	for (unsigned i = 1; i < r->feeds; i++) {
		struct sl_feed *f = &r->feed[i];
		uint32_t used = slots_used(f);

		atomic_store_explicit(&f->slots_now, used, memory_order_relaxed);
		if (used > atomic_load_explicit(&f->slots_most, memory_order_relaxed))
			atomic_store_explicit(&f->slots_most, used, memory_order_relaxed);
	}
	set(&r->at_unit, d->last - d->first);
	set(&r->at_sinks, d->handed > settled ? d->handed - settled : 0);
}

/* Slots hold more than is in the unit, and there is no frame of the pool for it. The clock is read
 * only then. */
static void note_dry(struct sl_dispatcher *d)
{
	struct sl_receiver *r = d->r;
	uint64_t used = atomic_load_explicit(&r->slots_used.now, memory_order_relaxed), now;
	bool dry = !d->ended && used > d->last - d->first && batch_to_fill(d) &&
		   !has_spare(&d->spare, &r->pool);

	if (!dry && !d->dry_ns)
		return;
	now = sl_clock_ns();
	if (d->dry_ns)
		sl_sink_pace_wait(r, now - d->dry_ns, d->last - d->first);
	d->dry_ns = dry ? now : 0;
}

int sl_dispatcher_open(struct sl_receiver *r, struct sl_dispatcher **dispatcher)
{
	struct sl_dispatcher *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->r = r;
	d->room = r->pool.count + r->dropped.count;
	d->deadline.ns = r->experiment->unit_options.deadline_us * 1000ull;
	d->enough = r->experiment->unit->enough
			    ? r->experiment->unit->enough(r->experiment->unit_state)
			    : UINT32_MAX;
	d->line = calloc(d->room, sizeof(*d->line));
	if (!d->line) {
		free(d);
		return -ENOMEM;
	}
	*dispatcher = d;
	return 0;
}

void sl_dispatcher_close(struct sl_dispatcher *d)
{
	if (d)
		free(d->line);
	free(d);
}

bool sl_dispatcher_goes_on(const struct sl_dispatcher *d)
{
	return (!d->ended || d->first != d->last) && !atomic_load(&d->r->abandon);
}

int sl_dispatcher_turn(struct sl_dispatcher *d)
{
	struct sl_receiver *r = d->r;
	int work = reap(d);

	sl_turn_note(&r->turn[SL_TURN_DISPATCHER]);
	sl_begins_check(r);
	work += open_slots(d);
	work += assemble(d);
	work += hand_on(d);
	/* A source that comes back after the last frame was given out is too late. */
	if (!d->ended)
		sl_ends_check(r);
	measure(d);
	note_dry(d);
	return work;
}

void sl_dispatcher_end(struct sl_dispatcher *d)
{
	atomic_store(&d->r->dispatched, 1);
	sl_bell_ring(&d->r->settling);
}

void *sl_dispatcher_main(void *receiver)
{
	struct sl_receiver *r = receiver;
	struct sl_dispatcher *d = r->dispatcher;
	struct sl_idle idle;

	sl_placement_idle(&r->placement, r->experiment, &idle);
	sl_data_thread_begin("dispatcher");
	while (sl_dispatcher_goes_on(d)) {
		uint32_t seen = sl_bell_read(&r->events);

		if (sl_dispatcher_turn(d))
			sl_idle_work(&idle);
		else if (sl_idle_sleep(&idle))
			sl_bell_wait(&r->events, seen, WAIT_US);
	}
	sl_data_thread_end();
	sl_dispatcher_end(d);
	return NULL;
}
