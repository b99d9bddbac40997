/* dispatch.c - the dispatcher's thread: opens slots, takes frames from the assembler, feeds the
 * unit in batches, gives slots back as soon as the unit is through with them, and hands every
 * frame on in order. A data thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/datathread.h"
#include "pipeline/receive.h"

enum {
	WAIT_US = 2000,
	/* A source has ended, nothing came for this long, and the link looked this often: nothing
	 * will come. */
	DRAIN_NS = 200 * 1000 * 1000,
	DRAIN_LOOKS = 3,
	/* A batch that is not full waits this long for more while the unit is busy. */
	BATCH_AGE_NS = 1000 * 1000,
};

struct dispatch {
	struct sl_receive *r;
	/* Frames on their way, in order: [pool.count], free-running indices. */
	struct sl_flow_frame **line;
	uint32_t first, last;
	struct sl_flow_frame *spare; /* taken from the pool for a frame that has not come yet */
	struct sl_batch *open;	     /* being filled */
	uint64_t open_ns;
	uint32_t submitted, reaped; /* batches, free-running */
	bool ended;
};

static void wake_link(struct sl_receive *r)
{
	uint64_t one = 1;

	/* A read-modify-write, so that it is not done before the slots were opened
	 * (udp_receive.c, wait). */
	for (unsigned i = 0; i < r->pollers; i++)
		if (atomic_fetch_or(&r->wake[i].asleep, 0) &&
		    write(r->wake[i].fd, &one, sizeof(one)) < 0)
			continue; /* full: it is awake */
}

/* Frames at the head of the line that are done go to the settler. */
static int hand_on(struct dispatch *d)
{
	struct sl_receive *r = d->r;
	int n = 0;

	while (d->first != d->last && d->line[d->first % r->pool.count]->done) {
		sl_queue_push(&r->to_settle, d->line[d->first++ % r->pool.count]);
		n++;
	}
	if (n)
		sl_bell_ring(&r->settling);
	return n;
}

/* The unit could not process it: whole as it is, nothing can be said of it or stored. */
static void give_up(struct sl_frame *frame)
{
	frame->flags &= ~(uint32_t)SL_FRAME_COMPLETE;
	for (uint32_t v = 0; v < frame->views; v++) {
		frame->view[v].outcome = SL_REFUSED;
		frame->view[v].cause = SL_CAUSE_UNIT;
	}
}

static void take_back(struct dispatch *d, struct sl_batch *batch)
{
	struct sl_receive *r = d->r;
	uint64_t now = sl_clock_ns();

	for (uint32_t i = 0; i < batch->frames; i++) {
		struct sl_frame *frame = batch->frame[i];

		frame->hop_ns[SL_HOP_PROCESSED] = now;
		if (batch->status)
			give_up(frame);
		for (uint32_t v = 0; v < frame->views; v++)
			frame->view[v].pixels.host = NULL;
		sl_ring_release(&r->ring, frame->sequence);
		((struct sl_flow_frame *)frame)->done = true;
	}
	d->reaped++;
}

static int reap(struct dispatch *d)
{
	struct sl_receive *r = d->r;
	struct sl_batch *batch;
	int n = 0;

	while (r->experiment->unit->reap(r->experiment->unit_state, &batch) > 0) {
		take_back(d, batch);
		n++;
	}
	return n;
}

static int open_slots(struct dispatch *d)
{
	struct sl_receive *r = d->r;
	unsigned n = sl_ring_open(&r->ring, atomic_load_explicit(&r->limit, memory_order_relaxed));

	if (n)
		wake_link(r);
	return (int)n;
}

static bool submit(struct dispatch *d)
{
	struct sl_receive *r = d->r;
	struct sl_batch *batch = d->open;
	int err = r->experiment->unit->submit(r->experiment->unit_state, batch);

	/* A batch that the unit will never take waits for those before it, then comes back as it
	 * is. */
	if (err == -EAGAIN || (err && d->submitted != d->reaped))
		return false;
	d->submitted++;
	d->open = NULL;
	if (err) {
		batch->status = err;
		take_back(d, batch);
	}
	return true;
}

/* The batch to fill, or NULL when all are in the unit. */
static struct sl_batch *batch_to_fill(struct dispatch *d)
{
	struct sl_receive *r = d->r;

	if (d->open)
		return d->open->frames < d->open->capacity ? d->open : NULL;
	if (d->submitted - d->reaped == r->n_batches)
		return NULL;
	d->open = &r->batches[d->submitted % r->n_batches];
	d->open->frames = 0;
	d->open->status = 0;
	d->open_ns = sl_clock_ns();
	return d->open;
}

static void note_proof(struct sl_receive *r, const struct sl_frame *frame)
{
	for (uint32_t m = 0; m < frame->views; m++) {
		const struct sl_view *view = &frame->view[m];
		bool whole = view->outcome == SL_NO_OUTCOME || view->cause == SL_CAUSE_PARTNER;

		if (whole && view->record.version)
			r->source[m].proven = frame->sequence + 1;
	}
}

/* The next frame out of the assembler into the line. 1, 0, or -ENODATA. */
static int assemble_one(struct dispatch *d)
{
	struct sl_receive *r = d->r;
	struct sl_batch *batch = batch_to_fill(d);
	struct sl_flow_frame *flow;
	int got;

	if (!batch || d->last - d->first == r->pool.count)
		return 0;
	if (!d->spare)
		d->spare = sl_pool_get(&r->pool);
	if (!d->spare)
		return 0;
	flow = d->spare;
	got = sl_assembler_next(&r->assembler, sl_clock_ns(), &flow->frame);
	if (got <= 0)
		return got;
	d->spare = NULL;
	note_proof(r, &flow->frame);
	flow->done = !(flow->frame.flags & SL_FRAME_COMPLETE);
	d->line[d->last++ % r->pool.count] = flow;
	if (!flow->done)
		batch->frame[batch->frames++] = &flow->frame;
	return 1;
}

static int assemble(struct dispatch *d)
{
	int n = 0, got = 1;

	while (!d->ended && (got = assemble_one(d)) > 0) {
		n++;
		if (d->open && d->open->frames == d->open->capacity && !submit(d))
			break;
	}
	if (got == -ENODATA)
		d->ended = true;
	/* Nothing more now: do not let a part of a batch wait for a unit that is idle. */
	if (d->open && d->open->frames &&
	    (d->submitted == d->reaped || d->ended || d->open->frames == d->open->capacity ||
	     sl_clock_ns() - d->open_ns > BATCH_AGE_NS))
		submit(d);
	return n;
}

/* The highest sequence of which the source told us, by a count or by a record that arrived. */
static uint64_t last_word(struct sl_receive *r, uint32_t module)
{
	struct sl_source_status *s = &r->source[module];
	uint64_t end = atomic_load_explicit(&s->next, memory_order_acquire);
	uint64_t opened = atomic_load_explicit(&r->ring.opened, memory_order_relaxed);
	uint64_t ns;

	if (s->proven > end)
		end = s->proven;
	for (uint64_t k = r->assembler.next; k < opened; k++)
		if (sl_ring_event(&r->ring, k, module, &ns) && k + 1 > end)
			end = k + 1;
	return end;
}

/* A source that vanished may have been in mid-frame: that frame it never reported, so it gets no
 * outcome, but a name. */
static void note_unfinished(struct sl_receive *r, uint32_t module, uint64_t end)
{
	uint64_t opened = atomic_load_explicit(&r->ring.opened, memory_order_relaxed);

	for (uint64_t k = end; k < opened; k++) {
		uint32_t packets = sl_ring_packets(&r->ring, k, module);

		if (packets) {
			r->source[module].unfinished_sequence = k;
			r->source[module].unfinished_packets = packets;
		}
	}
}

/* A module's source has ended: when is everything here that will ever come? At once if it is all
 * given out; otherwise when its lane has been quiet for a while, since packets may be on their
 * way longer than the word that they were sent. */
static void check_end(struct sl_receive *r, uint32_t module, uint64_t now)
{
	struct sl_source_status *s = &r->source[module];
	uint32_t state = atomic_load_explicit(&s->state, memory_order_acquire);
	uint64_t reached = sl_ring_reached(&r->ring, module), end, idle;

	if (state == SL_SOURCE_RUNNING || r->assembler.end[module] != UINT64_MAX)
		return;
	if (state == SL_SOURCE_DONE &&
	    r->assembler.next >= atomic_load_explicit(&s->next, memory_order_acquire)) {
		sl_assembler_end(&r->assembler, module, s->next);
		return;
	}
	idle = sl_receive_idle(r);
	if (!s->quiet_since_ns || reached != s->reached) {
		s->reached = reached;
		s->quiet_since_ns = now;
		s->quiet_idle = idle;
		return;
	}
	/* Quiet because the link looked and found nothing, not because it had no time to look. */
	if (now - s->quiet_since_ns < DRAIN_NS || idle - s->quiet_idle < DRAIN_LOOKS)
		return;
	end = s->next;
	if (state == SL_SOURCE_ENDED) /* what was given up before that has its outcome, too */
		end = reached > r->assembler.next ? reached : r->assembler.next;
	if (state == SL_SOURCE_GONE) {
		end = last_word(r, module);
		note_unfinished(r, module, end);
	}
	if (state != SL_SOURCE_DONE)
		sl_ledger_report(&r->ledger, module, end);
	sl_assembler_end(&r->assembler, module, end);
}

static void check_ends(struct dispatch *d)
{
	uint64_t now = sl_clock_ns();

	for (uint32_t m = 0; m < d->r->ring.modules; m++)
		check_end(d->r, m, now);
}

void *sl_dispatch_run(void *receive)
{
	struct sl_receive *r = receive;
	struct dispatch d = {.r = r, .line = calloc(r->pool.count, sizeof(*d.line))};
	struct sl_idle idle;

	if (!d.line)
		abort();
	sl_placement_idle(&r->placement, r->experiment, &idle);
	sl_data_thread_begin("dispatcher");
	while ((!d.ended || d.first != d.last) && !atomic_load(&r->abandon)) {
		uint32_t seen = sl_bell_read(&r->events);
		int work = reap(&d);

		work += open_slots(&d);
		work += assemble(&d);
		work += hand_on(&d);
		check_ends(&d);
		if (work)
			sl_idle_work(&idle);
		else if (sl_idle_sleep(&idle))
			sl_bell_wait(&r->events, seen, WAIT_US);
	}
	sl_data_thread_end();
	free(d.line);
	atomic_store(&r->dispatched, 1);
	sl_bell_ring(&r->settling);
	return NULL;
}
