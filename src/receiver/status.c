/* status.c - a snapshot of the receiver, for any thread. Only atomics, and what has not changed
 * since sl_receiver_open(), is read here. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/sequence.h"
#include "receiver/private.h"

_Static_assert((int)SL_ASSEMBLER_MODULES <= (int)SL_STATUS_MODULES, "a status has every module");
_Static_assert((int)SL_LATENCIES <= (int)SL_STATUS_LATENCIES, "and every latency");
_Static_assert((int)SL_DROPS <= (int)SL_STATUS_DROPS, "and every kind of drop");
_Static_assert((int)SL_PLACEMENT_THREADS <= (int)SL_STATUS_CPUS, "and every cpu");

static uint64_t get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void totals_status(const struct sl_totals *totals, struct sl_status *status)
{
	uint64_t next;
	uint32_t before;

	do {
		before = sl_sequence_look(&totals->sequence);
		status->frames = sl_sequence_load(&totals->frames);
		status->kept = sl_sequence_load(&totals->kept);
		status->broken = sl_sequence_load(&totals->broken);
		status->partial = sl_sequence_load(&totals->partial);
		status->prescaled = sl_sequence_load(&totals->prescaled);
		status->late = sl_sequence_load(&totals->late);
		status->dark = sl_sequence_load(&totals->dark);
		status->dark_expected = sl_sequence_load(&totals->dark_expected);
		status->repeated = sl_sequence_load(&totals->repeated);
		status->pixel_bytes = sl_sequence_load(&totals->bytes);
		status->first_ns = sl_sequence_load(&totals->first_ns);
		status->last_ns = sl_sequence_load(&totals->last_ns);
		next = sl_sequence_load(&totals->next);
	} while (!sl_sequence_same(&totals->sequence, before));
	if (status->watermark > next) /* durable, and no outcome yet */
		status->watermark = next;
}

static struct sl_status_gauge gauge_status(const struct sl_gauge *gauge, uint64_t of)
{
	struct sl_status_gauge copy = {
		.now = get(&gauge->now), .most = get(&gauge->most), .of = of};

	/* The dispatcher stores `now` first. */
	if (copy.most < copy.now)
		copy.most = copy.now;
	return copy;
}

/* Sinks that leave frames out have copies of them besides. */
static uint64_t frames_at_sinks(const struct sl_receiver *r)
{
	return r->pool.count +
	       (r->stand_ins.count == SL_STAND_INS_PRESCALE ? SL_STAND_INS_PRESCALE : 0);
}

/* It ended with the last frame that it had offered. Where modules may miss triggers, it may have
 * sent fewer on the way. */
static bool came_to_its_end(const struct sl_receiver *r, const struct sl_source *s)
{
	const struct sl_ring_options *ring = &r->experiment->ring;
	unsigned unused = ring->align == SL_ALIGN_FRAME ? 64 - ring->wrap_bits : 0;

	return ring->align != SL_ALIGN_SEQUENCE && get(&s->proven) &&
	       (get(&s->last_frame) - get(&s->final_frame)) << unused == 0;
}

static void source_status(const struct sl_receiver *r, uint32_t module,
			  struct sl_status_source *copy)
{
	const struct sl_source *s = &r->source[module];

	copy->state = atomic_load_explicit(&s->state, memory_order_acquire);
	if (copy->state == SL_SOURCE_RUNNING && !atomic_load(&s->accepted))
		copy->state = SL_SOURCE_ABSENT;
	else if (copy->state == SL_SOURCE_RUNNING && atomic_load(&r->state) < SL_STATE_RUNNING)
		copy->state = SL_SOURCE_PLANNED;
	copy->first = get(&s->first);
	copy->offered = get(&s->offered);
	copy->reached = sl_feed_reached(r->of, module);
	copy->turned_away = sl_feed_turned_away(r->of, module);
	copy->returns = get(&s->returns);
	copy->opened = sl_feed_opened(r->of, module);
	copy->unfinished_sequence = get(&s->unfinished_sequence);
	copy->unfinished_packets = get(&s->unfinished_packets);
	/* Frames that it left out are among those that it dealt with. */
	copy->fell_short = copy->offered && get(&s->next) < copy->offered && !came_to_its_end(r, s);
}

static void latency_status(const struct sl_histogram *histogram, struct sl_status_latency *copy)
{
	struct sl_histogram h;

	sl_histogram_copy(histogram, &h);
	copy->count = sl_histogram_count(&h);
	copy->sum_ns = get(&h.sum);
	copy->p50_ns = sl_histogram_percentile(&h, 0.5);
	copy->p99_ns = sl_histogram_percentile(&h, 0.99);
	copy->p999_ns = sl_histogram_percentile(&h, 0.999);
	copy->max_ns = sl_histogram_max(&h);
	sl_histogram_octaves(&h, copy->bucket, SL_STATUS_BUCKETS);
}

static void link_status(const struct sl_receiver *r, struct sl_status *status)
{
	const struct sl_link_counters *c = &r->counters;

	status->packets = sl_link_packets(c);
	status->packet_bytes = sl_link_bytes(c);
	status->marked = get(&c->marked);
	status->notified = get(&c->notified);
	status->receive_buffer_bytes = get(&c->receive_buffer);
	status->waiting_bytes = get(&c->waiting);
	status->waiting_most_bytes = get(&c->waiting_most);
	for (unsigned i = 0; i < SL_DROPS; i++)
		status->dropped[i] = get(&c->dropped[i]);
	status->one_way = r->feed[0].link->oneway;
	snprintf(status->link, sizeof(status->link), "%s", r->env.link);
	snprintf(status->guard, sizeof(status->guard), "%s", r->env.guard);
	snprintf(status->proof, sizeof(status->proof), "%s", r->env.proof);
}

/* Of an experiment with several. */
static void detectors_status(const struct sl_receiver *r, struct sl_status *status)
{
	status->detectors = r->feeds > 1 ? r->feeds : 0;
	for (unsigned d = 0; d < status->detectors; d++) {
		const struct sl_feed *f = &r->feed[d];
		struct sl_status_detector *one = &status->each[d];

		snprintf(one->name, sizeof(one->name), "%s",
			 d ? r->experiment->other[d - 1].name : r->experiment->detector_name);
		snprintf(one->link, sizeof(one->link), "%s", f->link->name);
		sl_guard_name(f->guards, one->guard, sizeof(one->guard));
		one->first_module = f->first;
		one->modules = f->modules;
		one->one_way = f->link->oneway;
		one->slots = d ? (struct sl_status_gauge){.now = get(&f->slots_now),
							  .most = get(&f->slots_most),
							  .of = f->ring.slots}
			       : status->slots;
	}
}

static void threads_status(const struct sl_receiver *r, struct sl_status_threads *threads)
{
	static const char *const polling[] = {"adaptive", "latency", "cores"};
	const struct sl_placement *p = &r->placement;

	snprintf(threads->polling, sizeof(threads->polling), "%s",
		 polling[r->experiment->threads.polling]);
	threads->crowded = p->crowded;
	threads->ring_node = r->memory[0].node;
	threads->cpus = p->pinned ? p->threads : 0;
	for (unsigned i = 0; i < threads->cpus; i++)
		threads->cpu[i] = p->cpu[i];
	threads->workers = r->workers;
	threads->pollers = r->pollers;
	threads->busy_ns = get(&r->busy_ns);
}

static void add_progress(const struct sl_receiver *r, struct sl_status *status, unsigned turn,
			 const char *name, unsigned index)
{
	struct sl_status_progress *p = &status->progress[status->progress_threads++];

	if (index == UINT32_MAX)
		snprintf(p->name, sizeof(p->name), "%s", name);
	else
		snprintf(p->name, sizeof(p->name), "%s-%u", name, index);
	p->at_ns = get(&r->turn[turn].at_ns);
}

static void progress_status(const struct sl_receiver *r, struct sl_status *status)
{
	bool apart = !r->experiment->threads.together;

	for (unsigned i = 0; i < r->pollers && apart; i++)
		add_progress(r, status, i, "link", i);
	if (apart)
		add_progress(r, status, SL_TURN_DISPATCHER, "dispatcher", UINT32_MAX);
	else
		add_progress(r, status, 0, "data", UINT32_MAX);
	add_progress(r, status, SL_TURN_SETTLER, "settler", UINT32_MAX);
	for (unsigned i = 0; i < r->workers && apart; i++)
		add_progress(r, status, SL_TURN_WORKERS + i, "worker", i);
	for (unsigned i = 0; i < r->experiment->sinks; i++)
		if (r->sink_thread[i].wanted)
			add_progress(r, status, SL_TURN_SINKS + i, "sink", i);
}

void sl_receiver_status(const struct sl_receiver *r, struct sl_status *status)
{
	uint64_t next;

	memset(status, 0, sizeof(*status));
	status->bytes = sizeof(*status);
	status->result = -1;
	status->state = atomic_load(&r->state);
	status->expected_frames = get(&r->expected);
	status->items = sl_geometry_frame_items(&r->geometry);
	status->deadline_us = r->experiment->unit_options.deadline_us;
	status->same_clock = atomic_load(&r->same_clock);
	status->overrun = atomic_load(&r->overrun);
	status->unsaved = atomic_load(&r->outcomes_failed);
	snprintf(status->transfer, sizeof(status->transfer), "%s", r->experiment->transfer);
	/* Before the frame counts: sinks count a frame before it is settled. */
	sl_figures_status(r, status);
	sl_sink_pace_status(r, status);
	totals_status(&r->totals, status);
	status->slots = gauge_status(&r->slots_used, r->feed[0].ring.slots);
	status->at_unit = gauge_status(&r->at_unit, r->pool.count);
	status->at_sinks = gauge_status(&r->at_sinks, frames_at_sinks(r));
	sl_ledger_status(&r->ledger, status);
	for (uint32_t m = 0; m < status->modules; m++)
		source_status(r, m, &status->source[m]);
	status->drained = sl_receiver_is_drained(r, &next);
	status->latencies = SL_LATENCIES;
	for (unsigned l = 0; l < SL_LATENCIES; l++)
		latency_status(&r->latency[l], &status->latency[l]);
	link_status(r, status);
	detectors_status(r, status);
	threads_status(r, &status->threads);
	progress_status(r, status);
	sl_forecast_status(r, status);
	status->taken_ns = sl_clock_ns();
}
