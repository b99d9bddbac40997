/* settle.c - the settling thread: gives each frame to the sinks that want it and writes its
 * outcome, once (invariant ONCE) and in sequence order, when all of them are through with it. It
 * may block and allocate: when it, or a sink, is slow the frame pool runs dry and the source is
 * made to wait. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sequence.h"
#include "receiver/dispatch/deadline.h"
#include "receiver/private.h"

enum { WAIT_US = 10000 };

/* Sinks with a place are writers, those without are checks. */
static bool is_writer(const struct sl_receiver *r, unsigned sink)
{
	return r->experiment->sink[sink]->where != NULL;
}

/* The settler itself gives frames to this sink: neither a thread of the sink nor the dispatcher
 * does. */
static bool is_ours(const struct sl_receiver *r, unsigned sink)
{
	return !r->sink_thread[sink].wanted && !(r->prompt >> sink & 1);
}

/* True when every sink of this kind that wants it, and that the settler gives it to, has it. */
static bool put_to(struct sl_receiver *r, struct sl_frame *frame, uint32_t want, bool writers)
{
	bool all = true;

	for (unsigned i = 0; i < r->experiment->sinks; i++)
		if (r->sink_wants[i] & want && is_writer(r, i) == writers && is_ours(r, i))
			all &= sl_sink_put(r, i, frame) || r->sink_optional[i];
	return all;
}

/* It is kept, and will not be stored. */
static void mark_unwritten(struct sl_frame *frame, enum sl_cause cause)
{
	for (uint32_t v = 0; v < sl_frame_all_views(frame); v++) {
		if (sl_frame_misses(frame, v))
			continue;
		frame->view[v].outcome = SL_UNWRITTEN;
		frame->view[v].cause = (uint8_t)cause;
	}
}

static void settle(struct sl_receiver *r, const struct sl_frame *frame, uint32_t want,
		   bool accepted)
{
	bool sample = sl_frame_is_prescaled(frame);

	for (uint32_t v = 0; v < sl_frame_all_views(frame); v++) {
		const struct sl_view *view = &frame->view[v];
		enum sl_outcome outcome = view->outcome;
		enum sl_cause cause = view->cause;
		bool kept = want == SL_WANT_KEPT && !sl_frame_misses(frame, v);

		if (outcome == SL_NO_OUTCOME)
			continue; /* never sent */
		if (kept && accepted) {
			sl_ledger_settle_pending(&r->ledger, view->module, view->sequence, sample);
			sl_outcomes_pend(r, view->sequence, view->module, sample);
			continue;
		}
		/* What was marked before keeps its cause. */
		if (kept && outcome != SL_UNWRITTEN) {
			outcome = SL_UNWRITTEN;
			cause = SL_CAUSE_SINK;
		}
		sl_ledger_settle(&r->ledger, view->module, view->sequence, outcome, cause);
		sl_outcomes_log(r, view->sequence, view->module, outcome, cause);
	}
}

static void add_latency(struct sl_receiver *r, enum sl_latency which, uint64_t from_ns,
			uint64_t to_ns)
{
	if (to_ns >= from_ns)
		sl_histogram_add(&r->latency[which], to_ns - from_ns);
}

/* True: its verdict came after the deadline. sunk_ns: when the last sink returned. */
static bool measure(struct sl_receiver *r, const struct sl_frame *frame, uint64_t sunk_ns)
{
	const uint64_t *hop = frame->hop_ns;
	const struct sl_deadline deadline = {.ns = r->experiment->unit_options.deadline_us *
						   1000ull};
	bool same_clock = atomic_load_explicit(&r->same_clock, memory_order_relaxed);

	if (!(frame->flags & SL_FRAME_COMPLETE))
		return false;
	add_latency(r, SL_LATENCY_ASSEMBLE, hop[SL_HOP_EVENT], hop[SL_HOP_ASSEMBLED]);
	add_latency(r, SL_LATENCY_PROCESS, hop[SL_HOP_ASSEMBLED], hop[SL_HOP_PROCESSED]);
	add_latency(r, SL_LATENCY_SINK, hop[SL_HOP_PROCESSED], sunk_ns);
	if (same_clock) {
		add_latency(r, SL_LATENCY_WIRE, hop[SL_HOP_EMIT], hop[SL_HOP_EVENT]);
		if (deadline.ns)
			add_latency(r, SL_LATENCY_DECISION, hop[SL_HOP_EMIT],
				    hop[SL_HOP_PROCESSED]);
		add_latency(r, SL_LATENCY_TOTAL, hop[SL_HOP_EMIT], sunk_ns);
	}
	return sl_deadline_missed(&deadline, frame, same_clock);
}

/* What a front end should not do, and no outcome tells. */
static void count_odd(struct sl_receiver *r, const struct sl_frame *frame, uint32_t want)
{
	const struct sl_darks darks = sl_detector_darks(&r->experiment->run);
	struct sl_totals *t = &r->totals;

	if (frame->flags & SL_FRAME_DARK)
		sl_sequence_add(&t->dark, 1);
	if (sl_darks_has(&darks, frame->sequence))
		sl_sequence_add(&t->dark_expected, 1);
	if (want == SL_WANT_BROKEN)
		return;
	if (t->number == frame->number + 1)
		sl_sequence_add(&t->repeated, 1);
	t->number = frame->number + 1;
}

/* A part of no event, and nothing of it is lost. */
static bool is_unmatched(const struct sl_frame *frame)
{
	bool any = false;

	for (uint32_t v = 0; v < sl_frame_all_views(frame); v++) {
		any |= frame->view[v].outcome == SL_UNMATCHED;
		if (frame->view[v].outcome != SL_UNMATCHED &&
		    frame->view[v].outcome != SL_NO_OUTCOME)
			return false;
	}
	return any;
}

/* Of its modules that are here. */
static uint64_t pixel_bytes(const struct sl_receiver *r, const struct sl_frame *frame)
{
	uint64_t bytes = 0;

	for (unsigned d = 0; d < r->feeds; d++) {
		const struct sl_feed *f = &r->feed[d];
		uint64_t missing = frame->missing >> f->first;

		if (f->modules < 64)
			missing &= (UINT64_C(1) << f->modules) - 1;
		bytes += (f->modules - (uint32_t)__builtin_popcountll(missing)) *
			 f->geometry->module_bytes;
	}
	return bytes;
}

static void count_frame(struct sl_receiver *r, const struct sl_frame *frame, uint32_t want,
			bool late, uint64_t sunk_ns)
{
	struct sl_totals *t = &r->totals;

	sl_sequence_begin(&t->sequence);
	sl_sequence_add(&t->frames, 1);
	if (want == SL_WANT_BROKEN && !is_unmatched(frame))
		sl_sequence_add(&t->broken, 1);
	if (want != SL_WANT_BROKEN)
		sl_sequence_add(&t->bytes, pixel_bytes(r, frame));
	if (frame->flags & SL_FRAME_PARTIAL)
		sl_sequence_add(&t->partial, 1);
	if (want == SL_WANT_KEPT)
		sl_sequence_add(&t->kept, 1);
	if (want == SL_WANT_KEPT && sl_frame_is_prescaled(frame))
		sl_sequence_add(&t->prescaled, 1);
	if (late)
		sl_sequence_add(&t->late, 1);
	count_odd(r, frame, want);
	if (!atomic_load_explicit(&t->first_ns, memory_order_relaxed))
		sl_sequence_store(&t->first_ns, frame->hop_ns[SL_HOP_ASSEMBLED]);
	sl_sequence_store(&t->last_ns, sunk_ns);
	sl_sequence_store(&t->next, frame->sequence + 1);
	sl_sequence_end(&t->sequence);
}

/* All sinks are through with it, but for some that drop frames: those may read it still. */
static void finish(struct sl_receiver *r, struct sl_flow_frame *flow)
{
	const struct sl_frame *frame = &flow->frame;
	bool refused = atomic_load_explicit(&flow->refused, memory_order_relaxed);
	uint64_t sunk_ns = sl_clock_ns();

	settle(r, frame, flow->want, flow->accepted && !refused);
	count_frame(r, frame, flow->want, measure(r, frame, sunk_ns), sunk_ns);
	sl_figures_renew_sinks(r, sunk_ns);
}

static void give_back(struct sl_receiver *r, struct sl_flow_frame *flow)
{
	/* Acquire: pairs with the release of the sinks' threads. */
	if (atomic_load_explicit(&flow->lingers, memory_order_acquire)) {
		r->lingering[r->lingerings++] = flow;
		return;
	}
	sl_pool_put(flow->home, flow);
	sl_dispatcher_wake(r);
}

/* Settled frames that the last sink is through with. */
static bool release_lingering(struct sl_receiver *r)
{
	uint32_t before = r->lingerings;

	r->lingerings = 0;
	for (uint32_t i = 0; i < before; i++)
		give_back(r, r->lingering[i]);
	return r->lingerings != before;
}

/* Sinks are through with a frame that a copy is settled in place of. */
static void return_lent(struct sl_receiver *r, struct sl_flow_frame *flow)
{
	struct sl_flow_frame *copy = flow->copy;

	if (copy) {
		copy->accepted = flow->accepted;
		copy->refused = flow->refused;
		copy->at_sinks--;
	}
	flow->copy = NULL;
	give_back(r, flow);
}

static bool take_back(struct sl_receiver *r, struct sl_lent *lent)
{
	bool any = false;

	for (;;) {
		if (!lent->oldest)
			lent->oldest = sl_queue_pop(&lent->frames);
		/* Acquire: pairs with the release of the sinks' threads. */
		if (!lent->oldest ||
		    atomic_load_explicit(&lent->oldest->at_sinks, memory_order_acquire))
			return any;
		return_lent(r, lent->oldest);
		lent->oldest = NULL;
		any = true;
	}
}

/* The frames that all sinks are through with, in sequence order. False: there was none. */
static bool finish_ready(struct sl_receiver *r)
{
	bool any = false;

	if (!r->sink_threads)
		return false;
	any |= release_lingering(r);
	any |= take_back(r, &r->lent);
	any |= take_back(r, &r->lent_stand_ins);
	for (;;) {
		if (!r->oldest)
			r->oldest = sl_queue_pop(&r->in_flight);
		/* Acquire: pairs with the release of the sinks' threads. */
		if (!r->oldest || atomic_load_explicit(&r->oldest->at_sinks, memory_order_acquire))
			return any;
		finish(r, r->oldest);
		give_back(r, r->oldest);
		r->oldest = NULL;
		any = true;
	}
}

static struct sl_flow_frame *stand_in(struct sl_receiver *r)
{
	for (;;) {
		uint32_t seen = sl_bell_read(&r->settling);
		struct sl_flow_frame *flow;

		finish_ready(r);
		flow = sl_pool_get(&r->stand_ins);
		if (flow)
			return flow;
		sl_turn_note(&r->turn[SL_TURN_SETTLER]);
		sl_bell_wait(&r->settling, seen, WAIT_US);
	}
}

static void copy_frame(const struct sl_frame *from, struct sl_frame *to)
{
	struct sl_view *view = to->view;
	struct sl_verdict *verdict = to->verdict;

	memcpy(view, from->view, sl_frame_all_views(from) * sizeof(*view));
	memcpy(verdict, from->verdict, from->items * sizeof(*verdict));
	*to = *from;
	to->view = view;
	to->verdict = verdict;
}

/* Another frame is settled in its place: it goes back as soon as sinks are through with it. */
static void lend(struct sl_receiver *r, struct sl_flow_frame *flow)
{
	if (!atomic_load_explicit(&flow->at_sinks, memory_order_acquire))
		return_lent(r, flow);
	else
		sl_queue_push(flow->home == &r->pool ? &r->lent.frames : &r->lent_stand_ins.frames,
			      flow);
}

static bool any_required(const struct sl_receiver *r, uint32_t sinks)
{
	for (unsigned i = 0; i < r->experiment->sinks; i++)
		if (sinks >> i & 1 && !r->sink_optional[i])
			return true;
	return false;
}

/* The frame without its results, for a row about it. */
static struct sl_flow_frame *make_copy(struct sl_receiver *r, const struct sl_flow_frame *flow)
{
	struct sl_flow_frame *copy = stand_in(r);

	copy_frame(&flow->frame, &copy->frame);
	memset(copy->frame.result, 0, sizeof(copy->frame.result));
	copy->frame.results = 0;
	copy->want = flow->want;
	copy->copy = NULL;
	copy->accepted = false;
	copy->refused = false;
	copy->at_sinks = 0;
	return copy;
}

/* The first sink that numbers images is one of these. */
static bool is_unnumbered(const struct sl_receiver *r, uint32_t sinks)
{
	for (unsigned i = 0; i < r->experiment->sinks; i++)
		if (r->experiment->sink[i]->numbers_images)
			return sinks >> i & 1;
	return false;
}

/* Some sinks cannot keep pace and are not given this frame: they get a copy, for a row about it. A
 * copy is settled, too, since outcomes are in sequence order: the frame itself is free for other
 * data as soon as other sinks are through with it. If one of the slow sinks is required, the frame
 * is unwritten; else it is what the others make of it. */
static struct sl_flow_frame *leave_out(struct sl_receiver *r, struct sl_flow_frame *flow,
				       uint32_t sinks, uint32_t slow)
{
	struct sl_flow_frame *row = make_copy(r, flow), *settled = row;

	flow->copy = NULL;
	flow->frame.unnumbered = is_unnumbered(r, slow);
	if (any_required(r, slow)) {
		mark_unwritten(&flow->frame, SL_CAUSE_SLOW);
	} else {
		settled = flow->copy = make_copy(r, flow);
		settled->at_sinks = 1;
	}
	mark_unwritten(&row->frame, SL_CAUSE_SLOW);
	sl_sink_submit(r, slow, row);
	sl_sink_submit(r, sinks & ~slow, flow);
	flow->accepted = put_to(r, &flow->frame, flow->want, true);
	lend(r, flow);
	if (settled != row)
		lend(r, row);
	return settled;
}

/* No frame is left out while data can wait in the ring. */
static void wait_for_sinks(struct sl_receiver *r, uint32_t sinks)
{
	for (;;) {
		uint32_t seen = sl_bell_read(&r->settling);

		finish_ready(r);
		if (!sl_sink_pace_may_wait(r, sinks))
			return;
		sl_turn_note(&r->turn[SL_TURN_SETTLER]);
		sl_figures_renew_sinks(r, sl_clock_ns());
		sl_bell_wait(&r->settling, seen, WAIT_US);
	}
}

/* Checks before writers: what a check refuses is in no file, except as a row that says so. Returns
 * the frame that is to be settled: this one or a copy. */
static struct sl_flow_frame *put_all(struct sl_receiver *r, struct sl_flow_frame *flow)
{
	struct sl_frame *frame = &flow->frame;
	bool all = put_to(r, frame, flow->want, false) && !flow->prompt_refused;
	uint32_t sinks = sl_sink_threads_for(r, flow->want), slow = 0;

	sinks &= ~sl_sink_pace_drop(r, sinks, flow);
	if (flow->want == SL_WANT_KEPT && all) {
		wait_for_sinks(r, sinks);
		slow = sl_sink_pace_decide(r, sinks, frame->sequence);
	} else if (flow->want == SL_WANT_KEPT) {
		mark_unwritten(frame, SL_CAUSE_SINK);
	}
	if (slow)
		return leave_out(r, flow, sinks, slow);
	sl_sink_submit(r, sinks, flow);
	flow->accepted = put_to(r, frame, flow->want, true) && all;
	return flow;
}

static struct sl_flow_frame *begin(struct sl_receiver *r, struct sl_flow_frame *flow)
{
	flow->frame.unnumbered = 0;
	sl_decide(flow);
	return put_all(r, flow);
}

/* Frames that were dropped, one or a row. Sinks' threads get copies, so that a sink that stands
 * still keeps none of the frames that the dispatcher needs to go on dropping. */
static void take_dropped(struct sl_receiver *r, struct sl_flow_frame *flow)
{
	for (uint64_t i = 0; i <= flow->more; i++) {
		struct sl_flow_frame *each = r->sink_threads ? stand_in(r) : flow;

		if (each != flow)
			copy_frame(&flow->frame, &each->frame);
		begin(r, each);
		if (each != flow)
			sl_queue_push(&r->in_flight, each);
		else
			finish(r, flow);
		sl_flow_step(&flow->frame, 1);
	}
	give_back(r, flow);
}

static void take(struct sl_receiver *r, struct sl_flow_frame *flow)
{
	flow = begin(r, flow);
	if (r->sink_threads) {
		sl_queue_push(&r->in_flight, flow);
		return;
	}
	finish(r, flow);
	give_back(r, flow);
}

static bool none_in_flight(struct sl_receiver *r)
{
	if (!r->sink_threads)
		return true;
	return !r->lingerings && !r->oldest && sl_queue_empty(&r->in_flight) && !r->lent.oldest &&
	       sl_queue_empty(&r->lent.frames) && !r->lent_stand_ins.oldest &&
	       sl_queue_empty(&r->lent_stand_ins.frames);
}

void *sl_settler_main(void *receiver)
{
	struct sl_receiver *r = receiver;
	struct sl_idle idle;

	if (r->experiment->threads.together) /* the cpus are the data thread's */
		sl_idle_init(&idle, SL_POLLING_CORES, 0, true);
	else
		sl_placement_idle(&r->placement, r->experiment, &idle);
	for (;;) {
		uint32_t seen = sl_bell_read(&r->settling);
		uint32_t last = atomic_load(&r->dispatched);
		struct sl_flow_frame *flow = sl_queue_pop(&r->to_settle);
		bool did = finish_ready(r) || flow;

		sl_turn_note(&r->turn[SL_TURN_SETTLER]);
		if (flow && flow->home == &r->dropped)
			take_dropped(r, flow);
		else if (flow)
			take(r, flow);
		if (did) {
			sl_idle_work(&idle);
			continue;
		}
		if (last && none_in_flight(r))
			break;
		if (sl_idle_sleep(&idle)) {
			sl_figures_renew_sinks(r, sl_clock_ns());
			sl_bell_wait(&r->settling, seen, WAIT_US);
		}
	}
	atomic_store(&r->settled, 1);
	return NULL;
}
