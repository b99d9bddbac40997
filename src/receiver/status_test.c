/* status_test.c - snapshots of a receiver, taken by other threads while sources misbehave: each
 * keeps every promise of sluice/status.h. Under ThreadSanitizer (tools/check.py) nothing in them is
 * a race. */
#include <pthread.h>
#include <string.h>

#include "lib/flow_rig.h"

/* The stage `copy`, which `verify` asks for, makes one result of all pixels. */
enum {
	SNAPSHOTS = 100000,
	SNAPSHOTS_SANITIZED = 20000,
	MOVED = 200, /* snapshots that differ from the one before */
	RUNS = 100,  /* no more: then something is wrong */
	OBSERVERS = 2,
	FRAME_BYTES = MODULES * 32 * 64 * 2
};

struct observer {
	pthread_t thread;
	const struct sl_receiver *receiver;
	_Atomic uint32_t *stop;
	uint64_t taken, moved; /* snapshots; those in which frames had been settled meanwhile */
	struct sl_status now, before;
	const char *broken;
};

static uint64_t sum(const uint64_t *value, unsigned n)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < n; i++)
		total += value[i];
	return total;
}

/* ---- promises: what is broken, or NULL ---- */

static const char *column_problem(const struct sl_status_column *c,
				  const struct sl_status_column *b)
{
	uint64_t outcomes = sum(c->outcome, SL_STATUS_OUTCOMES);

	if (c->settled != outcomes + c->pending)
		return "settled is not the sum of outcomes and pending";
	if (sum(c->cause, SL_STATUS_CAUSES) != outcomes)
		return "there is not one cause for each outcome";
	if (c->samples > c->pending)
		return "more samples than are pending";
	if (c->settled < b->settled || c->sent < b->sent)
		return "a column went back";
	for (unsigned i = 0; i < SL_STATUS_OUTCOMES; i++)
		if (c->outcome[i] < b->outcome[i])
			return "an outcome was taken back";
	return NULL;
}

static const char *frames_problem(const struct sl_status *s, const struct sl_status *b)
{
	if (s->kept + s->broken > s->frames || s->prescaled > s->kept || s->partial > s->frames ||
	    s->late > s->frames)
		return "frame counts contradict each other";
	if (s->frames < b->frames || s->kept < b->kept || s->pixel_bytes < b->pixel_bytes ||
	    s->packets < b->packets)
		return "a count went back";
	if (s->last_ns < s->first_ns || (s->frames != 0) != (s->first_ns != 0))
		return "the times of first and last frame contradict each other";
	return NULL;
}

static const char *latency_problem(const struct sl_status_latency *l,
				   const struct sl_status_latency *b)
{
	if (l->count != sum(l->bucket, SL_STATUS_BUCKETS))
		return "a latency's count is not the sum of its buckets";
	if (l->p50_ns > l->p99_ns || l->p99_ns > l->p999_ns || l->p999_ns > l->max_ns)
		return "percentiles are out of order";
	return l->count < b->count ? "a latency's count went back" : NULL;
}

static const char *gauge_problem(const struct sl_status_gauge *g)
{
	return g->now > g->most || (g->of && g->most > g->of) ? "a gauge is over its most" : NULL;
}

/* Sink 'null' counts frames and bytes in one call: a copy has both or neither. */
static const char *addon_problem(const struct sl_status *s)
{
	const struct sl_status_figure *f = &s->figure[s->addon[1].first_figure];

	if (s->addons != 3 || strcmp(s->addon[1].name, "null") != 0 || s->addon[1].figures != 2 ||
	    strcmp(f[0].name, "frames") != 0 || strcmp(f[1].name, "bytes") != 0)
		return "add-ons and figures are not those of the experiment";
	if (f[0].value > s->frames)
		return "a sink counts frames that are not settled";
	if (f[1].value != f[0].value * FRAME_BYTES)
		return "a sink's figures are not of one moment";
	return s->addon[1].error || s->figures_left_out ? "a sink failed" : NULL;
}

static const char *problem(const struct sl_status *s, const struct sl_status *b)
{
	const char *what = frames_problem(s, b);

	for (uint32_t m = 0; m < s->modules && !what; m++)
		what = column_problem(&s->column[m], &b->column[m]);
	for (uint32_t i = 0; i < s->latencies && !what; i++)
		what = latency_problem(&s->latency[i], &b->latency[i]);
	if (!what)
		what = gauge_problem(&s->slots);
	if (!what)
		what = gauge_problem(&s->at_unit);
	if (!what)
		what = gauge_problem(&s->at_sinks);
	if (!what)
		what = addon_problem(s);
	return what;
}

/* ---- observers ---- */

static void *observe(void *arg)
{
	struct observer *o = arg;

	while (!o->broken && !atomic_load_explicit(o->stop, memory_order_relaxed)) {
		sl_receiver_status(o->receiver, &o->now);
		o->broken = problem(&o->now, &o->before);
		o->moved += o->now.frames != o->before.frames;
		o->before = o->now;
		o->taken++;
	}
	return NULL;
}

static void begin(struct observer *o, const struct flow *f, _Atomic uint32_t *stop)
{
	memset(o, 0, sizeof(*o));
	o->receiver = f->receiver;
	o->stop = stop;
	assert_int_equal(pthread_create(&o->thread, NULL, observe, o), 0);
}

/* One run with faults from beginning to end, observed all the time. */
static void observe_run(const char *const *more, size_t n, uint64_t *taken, uint64_t *moved)
{
	static struct observer observer[OBSERVERS];
	_Atomic uint32_t stop = 0;
	struct flow f = {0};
	struct sl_status *end = &observer[0].now;

	open_flow(&f, more, n);
	for (unsigned i = 0; i < OBSERVERS; i++)
		begin(&observer[i], &f, &stop);
	run_flow(&f);
	atomic_store(&stop, 1);
	for (unsigned i = 0; i < OBSERVERS; i++)
		assert_int_equal(pthread_join(observer[i].thread, NULL), 0);
	for (unsigned i = 0; i < OBSERVERS; i++) {
		if (observer[i].broken)
			fail_msg("snapshot %llu: %s", (unsigned long long)observer[i].taken,
				 observer[i].broken);
		*taken += observer[i].taken;
		*moved += observer[i].moved;
	}
	sl_receiver_status(f.receiver, end);
	assert_null(problem(end, &observer[1].before));
	assert_true(sl_status_closed(end));
	assert_int_equal(end->state, SL_STATE_ENDED);
	assert_int_equal(end->frames, end->column[0].settled);
	assert_int_equal(end->figure[end->addon[1].first_figure].value, end->frames);
	close_flow(&f);
}

static void every_snapshot_keeps_its_promises(void **state)
{
	static const char *const lossy[] = {"detector.frames=2000", "frontend.drop=0.02",
					    "frontend.duplicate=0.02", "frontend.corrupt=0.01",
					    "frontend.reorder=0.01"};
	static const char *const gappy[] = {"detector.frames=2000", "frontend.skip=0.05",
					    "frontend.burst=0.001", "unit.workers=2",
					    "unit.batch=3",	    "unit.deadline_us=1"};
	/* Sanitizers make each of them slow: all of them in check-long. */
	bool fewer = getenv("SLUICE_SANITIZER") && !getenv("SLUICE_LONG");
	uint64_t wanted = fewer ? SNAPSHOTS_SANITIZED : SNAPSHOTS, taken = 0, moved = 0;

	/* Some of them while something happened: how many in a run depends on the scheduler. */
	for (unsigned i = 0; i < RUNS && (taken < wanted || moved <= MOVED); i++) {
		if (i % 2)
			observe_run(gappy, sizeof(gappy) / sizeof(gappy[0]), &taken, &moved);
		else
			observe_run(lossy, sizeof(lossy) / sizeof(lossy[0]), &taken, &moved);
	}
	assert_true(taken >= wanted);
	assert_true(moved > MOVED);
}

static void before_the_start_nothing_is_counted(void **state)
{
	static struct sl_status status;
	struct flow f = {.here = open_experiment(NULL, 0)};

	assert_int_equal(sl_receiver_open(f.here, NULL, &f.receiver), 0);
	sl_receiver_status(f.receiver, &status);
	assert_int_equal(status.bytes, sizeof(status));
	assert_int_equal(status.state, SL_STATE_CONFIGURED);
	assert_int_equal(status.result, -1);
	assert_int_equal(status.modules, MODULES);
	assert_int_equal(status.frames, 0);
	assert_int_equal(status.sources_alive, MODULES);
	assert_false(sl_status_closed(&status));
	assert_string_equal(status.link, "udp");
	assert_string_equal(status.addon[0].name, "cpu");
	assert_string_equal(status.addon[2].name, "verify");
	sl_receiver_close(f.receiver);
	sl_experiment_close(f.here);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_the_start_nothing_is_counted),
		cmocka_unit_test(every_snapshot_keeps_its_promises),
	};

	return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
