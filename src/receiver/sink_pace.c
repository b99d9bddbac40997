/* sink_pace.c - sinks that cannot keep pace: what they are not given, how long data wait for them,
 * and when the run ends because of one. */
#include "receiver/sink_pace.h"

#include <string.h>

#include "base/log.h"
#include "receiver/private.h"

/* For each sink that drops frames: a disk that pauses for a moment costs nothing. */
enum { DROP_BYTES = 256 << 20, DROP_LEAST = 8, DROP_MOST = 128 };
#define LOOK_NS	   UINT64_C(2000000000)
#define TELL_NS	   UINT64_C(60000000000)
#define TELL_SHARE 0.1

void sl_sink_pace_init(struct sl_sink_pace *pace, enum sl_on_slow on_slow, uint32_t pool,
		       uint32_t slots)
{
	uint32_t room = pool > slots ? pool - slots : 0;
	uint32_t others = pool / 8 > 2 ? pool / 8 : 2; /* that no sink may take */
	uint32_t most = pool > others ? pool - others : 1;

	*pace = (struct sl_sink_pace){.on_slow = on_slow, .factor = 1};
	pace->high = slots + room * 3 / 4;
	if (pace->high > most)
		pace->high = most;
	pace->low = slots < pace->high / 2 ? slots : pace->high / 2;
	pace->period = pool;
	pace->kept = pool; /* the first change need not wait */
}

static void change(struct sl_sink_pace *pace, uint32_t factor)
{
	atomic_store_explicit(&pace->factor, factor, memory_order_relaxed);
	atomic_fetch_add_explicit(&pace->changes, 1, memory_order_relaxed);
	pace->changed = pace->kept;
}

static void adapt(struct sl_sink_pace *pace, uint32_t held)
{
	uint32_t factor = atomic_load_explicit(&pace->factor, memory_order_relaxed);

	if (pace->kept - pace->changed < pace->period)
		return;
	if (held >= pace->high && factor < SL_SINK_PACE_FACTOR_MOST)
		change(pace, factor * 2);
	else if (held <= pace->low && factor > 1)
		change(pace, factor / 2);
}

bool sl_sink_pace_leaves_out(struct sl_sink_pace *pace)
{
	uint32_t held = atomic_load_explicit(&pace->held, memory_order_relaxed);

	if (pace->on_slow != SL_ON_SLOW_PRESCALE)
		return false;
	pace->kept++;
	pace->since++;
	adapt(pace, held);
	if (held >= pace->high ||
	    pace->since < atomic_load_explicit(&pace->factor, memory_order_relaxed)) {
		atomic_fetch_add_explicit(&pace->left_out, 1, memory_order_relaxed);
		return true;
	}
	pace->since = 0;
	return false;
}

bool sl_sink_pace_ends_run(struct sl_sink_pace *pace, bool pressed, uint64_t now_ns)
{
	if (pace->on_slow != SL_ON_SLOW_STOP)
		return false;
	if (!pressed || !sl_sink_pace_is_full(pace)) {
		pace->slow_since_ns = 0;
		return false;
	}
	if (!pace->slow_since_ns)
		pace->slow_since_ns = now_ns;
	return now_ns - pace->slow_since_ns > SL_SINK_PACE_STOP_NS;
}

double sl_sink_pace_tells(struct sl_sink_pace *pace, uint64_t now_ns)
{
	uint64_t waited_ns = atomic_load_explicit(&pace->waited_ns, memory_order_relaxed);
	uint64_t looked_ns = pace->looked_ns;
	double share;

	if (looked_ns && now_ns - looked_ns < LOOK_NS)
		return 0;
	share = looked_ns ? (double)(waited_ns - pace->looked_waited_ns) /
				    (double)(now_ns - looked_ns)
			  : 0;
	pace->looked_ns = now_ns;
	pace->looked_waited_ns = waited_ns;
	if (share < TELL_SHARE || (pace->told_ns && now_ns - pace->told_ns < TELL_NS))
		return 0;
	pace->told_ns = now_ns;
	return share < 1 ? share : 1;
}

/* ---- the sinks of a receiver ---- */

static const char *place(const struct sl_receiver *r, unsigned sink)
{
	const struct sl_experiment *e = r->experiment;

	return e->sink[sink]->where ? e->sink[sink]->where(e->sink_state[sink]) : "";
}

/* A ring is half full: soon sources would have to wait, or overrun. */
static bool pressed(const struct sl_receiver *r)
{
	if (2 * atomic_load_explicit(&r->slots_used.now, memory_order_relaxed) >=
	    r->feed[0].ring.slots)
		return true;
	for (unsigned d = 1; d < r->feeds; d++)
		if (2 * atomic_load_explicit(&r->feed[d].slots_now, memory_order_relaxed) >=
		    r->feed[d].ring.slots)
			return true;
	return false;
}

bool sl_sink_pace_may_wait(const struct sl_receiver *r, uint32_t sinks)
{
	for (unsigned i = 0; i < r->experiment->sinks; i++) {
		const struct sl_sink_pace *pace = &r->sink_thread[i].pace;

		if (sinks >> i & 1 && pace->on_slow == SL_ON_SLOW_PRESCALE &&
		    sl_sink_pace_is_full(pace) && !pressed(r))
			return true;
	}
	return false;
}

/* Sink i is add-on 1 + i: the unit comes first. The first change is told, the others are in the
 * list of changes. */
static void note_change(struct sl_receiver *r, unsigned sink, uint64_t sequence)
{
	struct sl_sink_pace *pace = &r->sink_thread[sink].pace;
	uint32_t n = atomic_load_explicit(&r->changes, memory_order_relaxed);
	uint32_t factor = atomic_load_explicit(&pace->factor, memory_order_relaxed);

	if (n < SL_STATUS_CHANGES) {
		r->change[n] = (struct sl_status_change){sequence, 1 + sink, factor};
		/* Release: pairs with sl_sink_pace_status(); entries are never written again. */
		atomic_store_explicit(&r->changes, n + 1, memory_order_release);
	}
	if (atomic_load_explicit(&pace->changes, memory_order_relaxed) == 1)
		sl_warn("sink %s (%s) cannot keep pace: from frame %llu on, of %u kept frames one "
			"is stored, and of more if need be (on_slow: prescale)",
			r->experiment->sink[sink]->name, place(r, sink),
			(unsigned long long)sequence, factor);
}

uint32_t sl_sink_pace_decide(struct sl_receiver *r, uint32_t sinks, uint64_t sequence)
{
	uint32_t left_out = 0;

	for (unsigned i = 0; i < r->experiment->sinks; i++) {
		struct sl_sink_pace *pace = &r->sink_thread[i].pace;
		uint32_t before = atomic_load_explicit(&pace->changes, memory_order_relaxed);

		if (!(sinks >> i & 1))
			continue;
		if (sl_sink_pace_leaves_out(pace))
			left_out |= UINT32_C(1) << i;
		if (atomic_load_explicit(&pace->changes, memory_order_relaxed) != before)
			note_change(r, i, sequence);
	}
	return left_out;
}

enum sl_on_slow sl_sink_pace_on_slow(const struct sl_receiver *r, unsigned sink)
{
	const struct sl_experiment *e = r->experiment;

	return e->sink[sink]->on_slow ? e->sink[sink]->on_slow(e->sink_state[sink])
				      : SL_ON_SLOW_WAIT;
}

uint32_t sl_sink_pace_drop_frames(struct sl_receiver *r)
{
	uint64_t bytes = sl_pool_bytes(1, r->build.result, r->build.results);
	uint64_t frames = bytes ? DROP_BYTES / bytes : DROP_MOST;

	r->drop_sinks = 0;
	for (unsigned i = 0; i < r->experiment->sinks; i++)
		r->drop_sinks += sl_sink_pace_on_slow(r, i) == SL_ON_SLOW_DROP;
	r->drop_frames = frames < DROP_LEAST  ? DROP_LEAST
			 : frames > DROP_MOST ? DROP_MOST
					      : (uint32_t)frames;
	return r->drop_sinks * r->drop_frames;
}

/* Copies without results are few, and shared with other sinks: all that drop have half of them. */
static bool has_no_room(const struct sl_receiver *r, const struct sl_sink_pace *pace,
			const struct sl_flow_frame *flow)
{
	uint32_t held = atomic_load_explicit(&pace->held, memory_order_relaxed);
	uint32_t most = SL_STAND_INS / 2 / (r->drop_sinks > 2 ? r->drop_sinks : 2);

	return held >= pace->high || (flow->home != &r->pool && held >= (most ? most : 1));
}

uint32_t sl_sink_pace_drop(struct sl_receiver *r, uint32_t sinks, const struct sl_flow_frame *flow)
{
	uint32_t dropped = 0;

	for (unsigned i = 0; i < r->experiment->sinks && sinks; i++) {
		struct sl_sink_pace *pace = &r->sink_thread[i].pace;

		if (!(sinks >> i & 1) || pace->on_slow != SL_ON_SLOW_DROP ||
		    !has_no_room(r, pace, flow))
			continue;
		dropped |= UINT32_C(1) << i;
		if (!atomic_fetch_add_explicit(&pace->left_out, 1, memory_order_relaxed))
			sl_warn("sink %s (%s) cannot keep pace: frame %llu is not in it, nor is "
				"any other that comes while %u wait for it; left_out counts them "
				"(on_slow: drop)",
				r->experiment->sink[i]->name, place(r, i),
				(unsigned long long)flow->frame.sequence, pace->high);
	}
	return dropped;
}

static void end_run(struct sl_receiver *r, unsigned sink)
{
	const struct sl_sink_pace *pace = &r->sink_thread[sink].pace;
	uint32_t held = atomic_load_explicit(&pace->held, memory_order_relaxed);

	sl_error("sink %s (%s) cannot keep pace: %u of %u frames have waited for it for more than "
		 "%d s. The run stops (on_slow: stop), and what has come is stored. To do: write "
		 "to a faster disk, store less, or set on_slow to wait or prescale",
		 r->experiment->sink[sink]->name, place(r, sink), held, r->pool.count,
		 (int)(SL_SINK_PACE_STOP_NS / 1000000000));
	atomic_store(&r->too_slow, 1 + sink);
}

void sl_sink_pace_watch(struct sl_receiver *r, uint64_t now_ns)
{
	for (unsigned i = 0; i < r->experiment->sinks && r->sink_threads; i++) {
		struct sl_sink_pace *pace = &r->sink_thread[i].pace;
		double share;

		if (!r->sink_thread[i].wanted)
			continue;
		if (!atomic_load(&r->too_slow) && sl_sink_pace_ends_run(pace, pressed(r), now_ns))
			end_run(r, i);
		share = sl_sink_pace_tells(pace, now_ns);
		if (share > 0)
			sl_warn("sink %s (%s) cannot keep pace: the data waited for it %.0f %% of "
				"the last %d s. Sources that take credits wait, others overrun; "
				"on_slow can be prescale or stop instead",
				r->experiment->sink[i]->name, place(r, i), 100 * share,
				(int)(LOOK_NS / 1000000000));
	}
}

bool sl_receiver_too_slow(const struct sl_receiver *r)
{
	return atomic_load(&r->too_slow);
}

void sl_sink_pace_wait(struct sl_receiver *r, uint64_t ns, uint32_t at_unit)
{
	struct sl_sink_pace *slowest = NULL;
	uint32_t most = at_unit;

	for (unsigned i = 0; i < r->experiment->sinks && r->sink_threads; i++) {
		struct sl_sink_pace *pace = &r->sink_thread[i].pace;
		uint32_t held = atomic_load_explicit(&pace->held, memory_order_relaxed);

		if (r->sink_thread[i].wanted && !r->sink_thread[i].drops && held > most) {
			most = held;
			slowest = pace;
		}
	}
	if (slowest)
		atomic_fetch_add_explicit(&slowest->waited_ns, ns, memory_order_relaxed);
}

static void status_of(const struct sl_sink_pace *pace, uint32_t pool, struct sl_status_pace *copy)
{
	copy->threaded = 1;
	copy->on_slow = pace->on_slow;
	copy->factor = atomic_load_explicit(&pace->factor, memory_order_relaxed);
	copy->changes = atomic_load_explicit(&pace->changes, memory_order_relaxed);
	copy->waiting.now = atomic_load_explicit(&pace->held, memory_order_relaxed);
	copy->waiting.most = atomic_load_explicit(&pace->most, memory_order_relaxed);
	copy->waiting.of = pool;
	if (copy->waiting.most < copy->waiting.now)
		copy->waiting.most = copy->waiting.now;
	copy->mark = pace->high;
	copy->waited_ns = atomic_load_explicit(&pace->waited_ns, memory_order_relaxed);
	copy->left_out = atomic_load_explicit(&pace->left_out, memory_order_relaxed);
}

void sl_sink_pace_status(const struct sl_receiver *r, struct sl_status *status)
{
	uint32_t too_slow = atomic_load(&r->too_slow);

	for (unsigned i = 0; i < r->experiment->sinks; i++)
		if (r->sink_thread[i].wanted)
			status_of(&r->sink_thread[i].pace, r->pool.count, &status->pace[1 + i]);
	status->too_slow = too_slow ? 1 + too_slow : 0; /* add-on 0 is the unit */
	/* Acquire: pairs with note_change(). */
	status->changes = atomic_load_explicit(&r->changes, memory_order_acquire);
	memcpy(status->change, r->change, status->changes * sizeof(r->change[0]));
}
