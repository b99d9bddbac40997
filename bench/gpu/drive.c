/* drive.c - rows ingest/...: the one thread that makes frames of what five sources wrote,
 * has them worked on, and lets the sources write again; and the ledger.
 *
 *   event n:  all five meta words have its turn    seen
 *             its frame is in a batch of the unit  submitted
 *             the batch is back: compared, and its buffers are enabled for turn + buffers: reaped
 *
 * It touches no pixel. At the end nothing is enabled any more; as all five rings were enabled
 * alike, sources write what they still may, and all of that is worked on, too. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/idle.h"
#include "base/log.h"
#include "bench/gpu/ingest.h"
#include "gpu/dialect/batch.h"

enum {
	MOST_TIMES = 1 << 22,
	SPIN_NS = 200000,
	NAP_NS = 20000,
	LATE_NS = 10000000, /* a batch that is not full waits for so long */
};

/* ---- events ---- */

static const struct sl_ingest_meta *meta_of(const struct sl_ingest *g, unsigned source,
					    uint64_t event)
{
	return &g->source[source].meta[event % g->terms.buffers];
}

static bool is_there(const struct sl_ingest *g, unsigned source, uint64_t event)
{
	/* Pairs with the source's release: then its pixels are there, too. */
	return atomic_load_explicit(&meta_of(g, source, event)->turn, memory_order_acquire) ==
	       sl_ingest_turn(event);
}

static unsigned collect(struct sl_ingest *g, uint64_t now)
{
	unsigned n = 0;

	for (; g->seen - g->reaped < g->terms.buffers; n++) {
		for (unsigned m = 0; m < SL_INGEST_SOURCES; m++)
			if (!is_there(g, m, g->seen))
				return n;
		g->seen_ns[g->seen++ % g->terms.buffers] = now;
	}
	return n;
}

/* What nobody writes must not look like a checksum that is right. */
static void prepare(struct sl_ingest *g, struct sl_frame *frame, uint64_t event)
{
	uint32_t *sum = frame->result[g->checksum].host;

	frame->sequence = frame->number = event;
	for (unsigned m = 0; m < SL_INGEST_SOURCES; m++)
		sum[m] = ~meta_of(g, m, event)->check;
}

/* Full batches; when it is late, or the end, others. */
static unsigned submit(struct sl_ingest *g, uint64_t now)
{
	uint32_t buffers = g->terms.buffers, stack = g->s.row->stack;
	uint32_t first = (uint32_t)(g->submitted % buffers);
	uint64_t n = g->seen - g->submitted;
	struct sl_batch *batch = &g->batch[g->given % buffers];
	unsigned most =
		g->s.unit->batches ? g->s.unit->batches(g->s.unit_state, g->s.row->stack) + 1 : 2;
	int err;

	if (!n || g->failed || g->given - g->back >= most)
		return 0;
	if (n < stack && !g->ending && now - g->seen_ns[first] < LATE_NS)
		return 0;
	n = n < stack ? n : stack;
	n = n < buffers - first ? n : buffers - first;
	*batch = (struct sl_batch){
		.frame = g->s.line + first, .frames = (uint32_t)n, .capacity = stack};
	for (uint64_t i = 0; i < n; i++)
		prepare(g, batch->frame[i], g->submitted + i);
	err = g->s.unit->submit(g->s.unit_state, batch);
	if (err == -EAGAIN)
		return 0;
	if (err) {
		snprintf(g->result->why, SL_INGEST_WHY, "the unit does not take a batch: %s",
			 strerror(-err));
		g->failed = err;
		return 1;
	}
	g->submitted += n;
	g->given++;
	return 1;
}

/* ---- what came back ---- */

static uint64_t bytes_out(const struct sl_ingest *g, const struct sl_frame *frame)
{
	uint64_t bytes = sizeof(struct sl_kernel_verdict);

	for (uint32_t i = 0; i < frame->results && frame->verdict->keep; i++) {
		const struct sl_array *result = &frame->result[i];

		if (g->counted[i])
			bytes += !result->shape.ragged
					 ? sl_shape_bytes(&result->shape)
					 : sl_shape_bytes(&result->shape) / result->shape.dim[0] *
						   result->rows;
	}
	return bytes;
}

static void note_wrong(struct sl_ingest_result *result, const char *text)
{
	result->wrong++;
	if (!result->why[0])
		snprintf(result->why, sizeof(result->why), "%s", text);
}

/* Each module's checksum, and what the stages made of the frame. */
static void judge(struct sl_ingest *g, const struct sl_frame *frame, uint64_t event)
{
	const uint32_t *sum = frame->result[g->checksum].host;
	uint32_t bright = g->bright[event % g->terms.buffers];
	bool counted = g->terms.written || frame->verdict->score == (float)bright;
	char text[SL_INGEST_WHY];

	for (unsigned m = 0; m < SL_INGEST_SOURCES; m++) {
		const struct sl_ingest_meta *meta = meta_of(g, m, event);

		if (counted && meta->check == sum[m] && meta->bytes == g->module_bytes &&
		    !meta->flags) {
			g->result->good++;
			continue;
		}
		if (meta->check != sum[m])
			snprintf(text, sizeof(text),
				 "event %" PRIu64 ", module %u: what was worked on has checksum "
				 "%08x, and the source wrote %08x",
				 event, m, sum[m], meta->check);
		else
			snprintf(text, sizeof(text),
				 "event %" PRIu64 ", module %u: %u bytes, flags %u, %g bright "
				 "pixels in its frame, which has %u",
				 event, m, meta->bytes, meta->flags, frame->verdict->score, bright);
		note_wrong(g->result, text);
	}
}

static void account(struct sl_ingest *g, const struct sl_frame *frame, uint64_t event, uint64_t now)
{
	struct sl_ingest_result *r = g->result;
	uint64_t ns = now - g->seen_ns[event % g->terms.buffers];

	judge(g, frame, event);
	r->events++;
	r->kept += frame->verdict->keep != 0;
	if (event < g->terms.warm)
		return;
	r->timed++;
	r->took_ns = now - g->begun_ns;
	r->bytes_in += SL_INGEST_SOURCES * g->module_bytes;
	r->bytes_out += bytes_out(g, frame);
	if (r->times < MOST_TIMES)
		r->ns[r->times++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

/* Nobody reads the event's buffers any more. */
static void enable(struct sl_ingest *g, uint64_t event)
{
	for (unsigned m = 0; m < SL_INGEST_SOURCES; m++)
		atomic_store_explicit(&g->source[m].enable[event % g->terms.buffers],
				      sl_ingest_turn(event + g->terms.buffers),
				      memory_order_release); /* await_enable() */
}

static unsigned reap(struct sl_ingest *g, uint64_t now)
{
	struct sl_batch *batch;
	unsigned n = 0;

	while (g->s.unit->reap(g->s.unit_state, &batch)) {
		g->back++;
		n++;
		if (batch->status && !g->failed) {
			g->failed = batch->status;
			snprintf(g->result->why, SL_INGEST_WHY,
				 "the unit did not work on event %" PRIu64 ": %s",
				 batch->frame[0]->sequence, strerror(-batch->status));
		}
		/* From the first that failed on nothing is answered any more. */
		for (uint32_t f = 0; f < batch->frames && !g->failed; f++) {
			account(g, batch->frame[f], g->reaped, now);
			if (!g->ending)
				enable(g, g->reaped);
			g->reaped++;
			if (g->reaped == g->terms.warm)
				g->begun_ns = now;
		}
	}
	return n;
}

/* ---- the run ---- */

static void say_who(struct sl_ingest *g)
{
	double s = 1e-9 * (double)g->terms.timeout_ns;
	char *why = g->result->why;

	g->failed = -ETIMEDOUT;
	if (why[0])
		return;
	if (g->given > g->back) {
		snprintf(why, SL_INGEST_WHY,
			 "the unit has not given back event %" PRIu64 " for %g s", g->reaped, s);
		return;
	}
	for (unsigned m = 0; m < SL_INGEST_SOURCES; m++)
		if (!is_there(g, m, g->seen)) {
			snprintf(why, SL_INGEST_WHY,
				 "source %u has not written event %" PRIu64 " for %g s", m, g->seen,
				 s);
			return;
		}
}

static bool is_over(const struct sl_ingest *g)
{
	return g->failed ? g->given == g->back : g->ending && g->reaped == g->until;
}

static void drive(struct sl_ingest *g)
{
	struct timespec nap = {0, NAP_NS};
	struct sl_idle idle;

	sl_idle_init(&idle, SL_POLLING_ADAPTIVE, SPIN_NS, true);
	g->begun_ns = g->moved_ns = sl_clock_ns();
	while (!is_over(g)) {
		uint64_t now = sl_clock_ns();

		if (!g->ending && g->reaped >= g->terms.warm &&
		    now - g->begun_ns >= g->terms.run_ns) {
			g->ending = true;
			g->until = g->reaped + g->terms.buffers;
		}
		if (collect(g, now) + submit(g, now) + reap(g, now)) {
			g->moved_ns = now;
			sl_idle_work(&idle);
		} else if (now - g->moved_ns > g->terms.timeout_ns) {
			say_who(g);
			return;
		} else if (sl_idle_sleep(&idle)) {
			nanosleep(&nap, NULL);
		}
	}
}

/* What is in rings and was never answered, found by looking at each of their words. */
static void close_ledger(struct sl_ingest *g)
{
	struct sl_ingest_result *r = g->result;

	for (unsigned m = 0; m < SL_INGEST_SOURCES; m++) {
		r->published += g->source[m].published;
		for (uint64_t n = g->reaped; n < g->reaped + g->terms.buffers; n++)
			r->unanswered += is_there(g, m, n);
	}
	r->closed = r->published == r->good + r->wrong + r->unanswered;
	if (!r->closed && !r->why[0])
		snprintf(r->why, sizeof(r->why),
			 "%" PRIu64 " events were published, but %" PRIu64 " good, %" PRIu64
			 " wrong, %" PRIu64 " unanswered",
			 r->published, r->good, r->wrong, r->unanswered);
}

int sl_ingest_run(struct sl_ingest *g, struct sl_ingest_result *result)
{
	int err = 0;

	*result = (struct sl_ingest_result){.ns = malloc(MOST_TIMES * sizeof(*result->ns))};
	if (!result->ns)
		return -ENOMEM;
	g->result = result;
	prctl(PR_SET_TIMERSLACK, 1);
	err = sl_bench_worker_start(&g->worker, &g->s);
	for (unsigned i = 0; i < SL_INGEST_SOURCES && !err; i++)
		err = sl_ingest_source_start(&g->source[i]);
	if (!err)
		drive(g);
	atomic_store_explicit(&g->quit, true, memory_order_relaxed);
	for (unsigned i = 0; i < SL_INGEST_SOURCES; i++)
		sl_thread_join(&g->source[i].thread);
	sl_bench_worker_stop(&g->worker);
	if (err)
		return err;
	close_ledger(g);
	return g->failed ? g->failed : result->wrong || !result->closed ? -EBADMSG : 0;
}
