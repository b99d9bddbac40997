/* sink_threads.c - sinks that take their time have a thread each: a slow disk delays neither the
 * other sinks nor the frames behind them, until the pool of frames is used up. A sink may have
 * workers besides, which prepare several frames at a time.
 *
 * Threads:   the settler submits, in sequence order; each sink's thread hands frames to its
 *            workers, puts them in that order when they are prepared, and says so; the settler
 *            gives a frame its outcome when all sinks have said so. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "receiver/private.h"

enum { WAIT_US = 10000, IDLE_NS = 200 * 1000 * 1000 };

static void refuse(struct sl_receiver *r, unsigned sink, int err)
{
	if (!atomic_load_explicit(&r->sink_error[sink], memory_order_relaxed))
		atomic_store_explicit(&r->sink_error[sink], err, memory_order_relaxed);
}

bool sl_sink_put(struct sl_receiver *r, unsigned sink, struct sl_frame *frame)
{
	const struct sl_experiment *e = r->experiment;
	int err = e->sink[sink]->put(e->sink_state[sink], frame);

	if (err)
		refuse(r, sink, err);
	return !err;
}

static bool put_prepared(struct sl_receiver *r, unsigned sink, unsigned slot,
			 struct sl_frame *frame)
{
	const struct sl_experiment *e = r->experiment;
	int err = e->sink[sink]->put_prepared(e->sink_state[sink], slot, frame);

	if (err)
		refuse(r, sink, err);
	return !err;
}

static void note_stall(struct sl_sink_thread *t, uint64_t took_ns)
{
	if (took_ns > t->stall_ns)
		atomic_fetch_add_explicit(&t->stalls, 1, memory_order_relaxed);
	if (took_ns > atomic_load_explicit(&t->longest_ns, memory_order_relaxed))
		atomic_store_explicit(&t->longest_ns, took_ns, memory_order_relaxed);
}

/* Copies without results are few and small, but a sink that drops frames may stand still. */
static bool counts(const struct sl_sink_thread *t, const struct sl_flow_frame *flow)
{
	return flow->home == &t->receiver->pool || t->drops;
}

/* slot -1: the sink has no workers. */
static void put(struct sl_sink_thread *t, int slot, struct sl_flow_frame *flow)
{
	struct sl_receiver *r = t->receiver;
	uint64_t begin_ns = sl_clock_ns();
	bool accepted;

	atomic_store_explicit(&t->putting_since_ns, begin_ns, memory_order_relaxed);
	accepted = slot < 0 ? sl_sink_put(r, t->sink, &flow->frame)
			    : put_prepared(r, t->sink, (unsigned)slot, &flow->frame);
	atomic_store_explicit(&t->putting_since_ns, 0, memory_order_relaxed);
	note_stall(t, sl_clock_ns() - begin_ns);
	if (!accepted && !r->sink_optional[t->sink])
		atomic_store_explicit(&flow->refused, true, memory_order_relaxed);
	if (counts(t, flow))
		sl_sink_pace_give_back(&t->pace);
	/* Release: pairs with the settler's acquire in settle.c; it is the settler's again. */
	if (atomic_fetch_sub_explicit(t->drops ? &flow->lingers : &flow->at_sinks, 1,
				      memory_order_acq_rel) == 1)
		sl_bell_ring(&r->settling);
}

/* ---- workers ---- */

static void *worker_main(void *arg)
{
	struct sl_sink_thread *t = arg;
	const struct sl_experiment *e = t->receiver->experiment;

	for (;;) {
		struct sl_sink_job *job;
		unsigned slot;

		pthread_mutex_lock(&t->lock);
		while (t->begun == t->taken && !t->end)
			pthread_cond_wait(&t->work, &t->lock);
		if (t->begun == t->taken) {
			pthread_mutex_unlock(&t->lock);
			return NULL;
		}
		slot = (unsigned)(t->begun++ % t->slots);
		pthread_mutex_unlock(&t->lock);
		job = &t->job[slot];
		e->sink[t->sink]->prepare(e->sink_state[t->sink], slot, &job->flow->frame);
		atomic_store_explicit(&job->ready, true, memory_order_release);
		sl_bell_ring(&t->bell);
	}
}

static void hand_out(struct sl_sink_thread *t, struct sl_flow_frame *flow)
{
	struct sl_sink_job *job = &t->job[t->taken % t->slots];

	job->flow = flow;
	atomic_store_explicit(&job->ready, false, memory_order_relaxed);
	pthread_mutex_lock(&t->lock);
	t->taken++;
	pthread_cond_signal(&t->work);
	pthread_mutex_unlock(&t->lock);
}

/* One step: as many frames to the workers as there are slots, then the next one that is prepared
 * to the sink. False: there was nothing to do. */
static bool step_with_workers(struct sl_sink_thread *t)
{
	unsigned slot = (unsigned)(t->done % t->slots);
	struct sl_flow_frame *flow;
	bool any = false;

	while (t->taken - t->done < t->slots && (flow = sl_queue_pop(&t->frames))) {
		hand_out(t, flow);
		any = true;
	}
	if (t->done == t->taken || !atomic_load_explicit(&t->job[slot].ready, memory_order_acquire))
		return any;
	put(t, (int)slot, t->job[slot].flow);
	t->done++;
	return true;
}

static bool step(struct sl_sink_thread *t)
{
	struct sl_flow_frame *flow;

	if (t->workers)
		return step_with_workers(t);
	flow = sl_queue_pop(&t->frames);
	if (flow)
		put(t, -1, flow);
	return flow != NULL;
}

/* Nothing to put at the moment. */
static void rest(struct sl_sink_thread *t)
{
	const struct sl_experiment *e = t->receiver->experiment;
	uint64_t now_ns = sl_clock_ns();

	if (!e->sink[t->sink]->idle || now_ns - t->idle_ns < IDLE_NS)
		return;
	t->idle_ns = now_ns;
	e->sink[t->sink]->idle(e->sink_state[t->sink]);
}

static void *sink_main(void *arg)
{
	struct sl_sink_thread *t = arg;
	struct sl_receiver *r = t->receiver;

	for (;;) {
		uint32_t seen = sl_bell_read(&t->bell);
		uint32_t last = atomic_load(&t->stop);
		bool any = step(t);

		sl_turn_note(&r->turn[SL_TURN_SINKS + t->sink]);
		if (!any && last && t->done == t->taken)
			break;
		sl_figures_renew_sink(r, t->sink, sl_clock_ns());
		if (any)
			continue;
		rest(t);
		sl_bell_wait(&t->bell, seen, WAIT_US);
	}
	return NULL;
}

uint32_t sl_sink_threads_for(const struct sl_receiver *r, uint32_t want)
{
	uint32_t sinks = 0;

	for (unsigned i = 0; i < r->experiment->sinks && r->sink_threads; i++)
		if (r->sink_thread[i].wanted && r->sink_wants[i] & want)
			sinks |= UINT32_C(1) << i;
	return sinks;
}

static void submit_one(struct sl_sink_thread *t, struct sl_flow_frame *flow)
{
	if (counts(t, flow))
		sl_sink_pace_take(&t->pace);
	sl_queue_push(&t->frames, flow); /* never full: it has room for all frames there are */
	sl_bell_ring(&t->bell);
}

/* Their number first: the first of them may be through with it before the last has it. */
void sl_sink_submit(struct sl_receiver *r, uint32_t sinks, struct sl_flow_frame *flow)
{
	uint32_t lingers = 0;

	for (unsigned i = 0; i < r->experiment->sinks; i++)
		lingers += sinks >> i & 1 && r->sink_thread[i].drops;
	atomic_store_explicit(&flow->refused, false, memory_order_relaxed);
	atomic_store_explicit(&flow->lingers, lingers, memory_order_relaxed);
	atomic_store_explicit(&flow->at_sinks, (uint32_t)__builtin_popcount(sinks) - lingers,
			      memory_order_relaxed);
	for (unsigned i = 0; i < r->experiment->sinks; i++)
		if (sinks >> i & 1)
			submit_one(&r->sink_thread[i], flow);
}

void sl_sink_threads_watch(struct sl_receiver *r, uint64_t now_ns)
{
	const struct sl_experiment *e = r->experiment;

	for (unsigned i = 0; i < e->sinks && r->sink_threads; i++) {
		struct sl_sink_thread *t = &r->sink_thread[i];
		uint64_t since_ns =
			atomic_load_explicit(&t->putting_since_ns, memory_order_relaxed);

		if (!since_ns || now_ns < since_ns + t->tell_ns || t->told_ns == since_ns)
			continue;
		t->told_ns = since_ns;
		sl_warn("sink %s has been writing one frame for more than %g s (%s): is the disk "
			"or the network behind it slow? Frames wait meanwhile",
			e->sink[i]->name, (double)t->tell_ns * 1e-9,
			e->sink[i]->where ? e->sink[i]->where(e->sink_state[i]) : "");
	}
}

static int open_one(struct sl_receiver *r, unsigned i, uint32_t frames)
{
	const struct sl_sink *sink = r->experiment->sink[i];
	const void *state = r->experiment->sink_state[i];
	struct sl_sink_thread *t = &r->sink_thread[i];
	unsigned workers = sink->workers ? sink->workers(state) : 0;

	t->receiver = r;
	t->sink = i;
	t->wanted = r->sink_threads = true;
	t->stall_ns = SL_STALL_NS;
	t->tell_ns = SL_STALL_TELL_NS;
	t->workers = workers < SL_SINK_WORKERS ? workers : SL_SINK_WORKERS;
	t->slots = sl_sink_slots(t->workers);
	sl_sink_pace_init(&t->pace, sl_sink_pace_on_slow(r, i),
			  r->pool.count - r->drop_sinks * r->drop_frames, t->slots);
	t->drops = sl_sink_pace_on_slow(r, i) == SL_ON_SLOW_DROP;
	if (t->drops)
		t->pace.high = r->drop_frames;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->work, NULL);
	return sl_queue_init(&t->frames, frames);
}

static bool has_own_thread(const struct sl_receiver *r, unsigned sink)
{
	const struct sl_experiment *e = r->experiment;

	return e->sink[sink]->own_thread && e->sink[sink]->own_thread(e->sink_state[sink]);
}

/* A sink whose put() blocks the settler cannot be told to leave frames out. */
static int check_on_slow(const struct sl_receiver *r, unsigned sink)
{
	enum sl_on_slow on_slow = sl_sink_pace_on_slow(r, sink);

	if (on_slow == SL_ON_SLOW_DROP && !r->sink_optional[sink]) {
		sl_error("sink %s is required: on_slow: drop is not possible; set on_slow to "
			 "prescale, or required: false",
			 r->experiment->sink[sink]->name);
		return -EINVAL;
	}
	if (on_slow == SL_ON_SLOW_WAIT || has_own_thread(r, sink))
		return 0;
	sl_error("sink %s has no thread of its own in this build (HDF5 is not thread-safe): "
		 "on_slow: %s is not possible; set on_slow: wait",
		 r->experiment->sink[sink]->name, sl_on_slow_name(on_slow));
	return -ENOTSUP;
}

static int open_queues(struct sl_receiver *r, uint32_t frames, uint32_t stand_ins)
{
	int err = sl_queue_init(&r->in_flight, frames);

	r->lingering = calloc(frames, sizeof(struct sl_flow_frame *));
	r->lingerings = 0;
	if (!r->lingering)
		err = -ENOMEM;
	if (!err)
		err = sl_queue_init(&r->lent.frames, r->pool.count);
	if (!err)
		err = sl_queue_init(&r->lent_stand_ins.frames, stand_ins);
	if (!err)
		err = sl_pool_init(&r->stand_ins, stand_ins, r->modules, r->feeds,
				   sl_geometry_frame_items(&r->geometry), NULL, 0);
	return err;
}

/* Which sinks have one is known once their options are. */
int sl_sink_threads_open(struct sl_receiver *r)
{
	uint32_t stand_ins = SL_STAND_INS, frames;
	int err = 0;

	for (unsigned i = 0; i < r->experiment->sinks && !err; i++) {
		err = check_on_slow(r, i);
		if (sl_sink_pace_on_slow(r, i) == SL_ON_SLOW_PRESCALE)
			stand_ins = SL_STAND_INS_PRESCALE;
	}
	frames = r->pool.count + r->dropped.count + stand_ins;
	for (unsigned i = 0; i < r->experiment->sinks && !err; i++)
		if (has_own_thread(r, i))
			err = open_one(r, i, frames);
	return err || !r->sink_threads ? err : open_queues(r, frames, stand_ins);
}

static int start_one(struct sl_sink_thread *t)
{
	const char *sink = t->receiver->experiment->sink[t->sink]->name;
	char name[48]; /* the kernel keeps 15 characters */
	int err = 0;

	for (unsigned w = 0; w < t->workers && !err; w++) {
		snprintf(name, sizeof(name), "%.8s-pack-%u", sink, w);
		err = sl_thread_start(&t->worker[w], name, NULL, worker_main, t);
	}
	snprintf(name, sizeof(name), "sink-%s", sink);
	return err ? err : sl_thread_start(&t->thread, name, NULL, sink_main, t);
}

int sl_sink_threads_start(struct sl_receiver *r)
{
	int err = 0;

	for (unsigned i = 0; i < r->experiment->sinks && !err; i++)
		if (r->sink_thread[i].wanted)
			err = start_one(&r->sink_thread[i]);
	return err;
}

/* The workers last: the sink's thread waits for what they have begun. */
static void join_one(struct sl_sink_thread *t)
{
	atomic_store(&t->stop, 1);
	sl_bell_ring(&t->bell);
	sl_thread_join(&t->thread);
	pthread_mutex_lock(&t->lock);
	t->end = true;
	pthread_cond_broadcast(&t->work);
	pthread_mutex_unlock(&t->lock);
	for (unsigned w = 0; w < t->workers; w++)
		sl_thread_join(&t->worker[w]);
}

/* After the settler, which gives them work. */
void sl_sink_threads_join(struct sl_receiver *r)
{
	for (unsigned i = 0; i < SL_EXPERIMENT_SINKS; i++)
		if (r->sink_thread[i].wanted)
			join_one(&r->sink_thread[i]);
}

void sl_sink_threads_close(struct sl_receiver *r)
{
	for (unsigned i = 0; i < SL_EXPERIMENT_SINKS; i++) {
		struct sl_sink_thread *t = &r->sink_thread[i];

		if (!t->wanted)
			continue;
		sl_queue_fini(&t->frames);
		pthread_mutex_destroy(&t->lock);
		pthread_cond_destroy(&t->work);
		t->wanted = false;
	}
	free(r->lingering);
	r->lingering = NULL;
	sl_queue_fini(&r->in_flight);
	sl_queue_fini(&r->lent.frames);
	sl_queue_fini(&r->lent_stand_ins.frames);
	sl_pool_fini(&r->stand_ins);
	r->sink_threads = false;
}
