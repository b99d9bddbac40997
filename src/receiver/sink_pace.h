/* sink_pace.h - whether a sink with a thread of its own keeps pace with the data, and what follows
 * when it does not (on_slow of sluice/sink.h).
 *
 * Model:     a sink holds a frame of the pool from its submission until it is put. It is full while
 *            it holds at least `high` frames: three quarters of those that its workers do not need.
 *            The rest of the pool is left to the dispatcher and the unit. It is slow while it is
 *            full and the ring, where data wait meanwhile, is at least half full: a disk that
 *            pauses for a moment costs nothing.
 *            prescale: a slow sink is given no kept frame, and the factor N doubles, once in
 *            `period` kept frames; while it is not slow, it is given one of N. When no frame waits
 *            but those in the hands of its workers, N is halved, as often.
 *            stop: the sink has been slow for SL_SINK_PACE_STOP_NS without a break.
 *            drop: while the sink is full it is given no frame of any kind, whatever the ring
 *            holds. It is full with the frames that the pool has for it besides: nothing waits for
 *            it.
 * Threads:   the settler decides; the sink's thread gives frames back; any thread reads the
 *            atomics.
 * Cost:      an atomic addition for each frame and sink. */
#ifndef SL_RECEIVER_SINK_PACE_H
#define SL_RECEIVER_SINK_PACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sluice/sink.h>

enum { SL_SINK_PACE_FACTOR_MOST = 64 };
#define SL_SINK_PACE_STOP_NS UINT64_C(1000000000)

struct sl_sink_pace {
	enum sl_on_slow on_slow;
	uint32_t high, low, period;
	_Atomic uint32_t held, most;
	_Atomic uint32_t factor, changes;
	_Atomic uint64_t left_out;
	_Atomic uint64_t waited_ns; /* the dispatcher's */
	/* The settler's. Kept frames so far, at the last change of the factor, and since the last
	 * one that the sink was given. */
	uint64_t kept, changed, since;
	uint64_t slow_since_ns; /* 0: it is not slow */
	uint64_t looked_ns, looked_waited_ns, told_ns;
};

/* pool: frames that there are; slots: frames that the sink may have in its hands without being
 * slow. */
void sl_sink_pace_init(struct sl_sink_pace *pace, enum sl_on_slow on_slow, uint32_t pool,
		       uint32_t slots);

static inline void sl_sink_pace_take(struct sl_sink_pace *pace) /* submitted to the sink */
{
	uint32_t held = atomic_fetch_add_explicit(&pace->held, 1, memory_order_relaxed) + 1;

	if (held > atomic_load_explicit(&pace->most, memory_order_relaxed))
		atomic_store_explicit(&pace->most, held, memory_order_relaxed);
}

static inline void sl_sink_pace_give_back(struct sl_sink_pace *pace) /* put */
{
	atomic_fetch_sub_explicit(&pace->held, 1, memory_order_relaxed);
}

static inline bool sl_sink_pace_is_full(const struct sl_sink_pace *pace)
{
	return atomic_load_explicit(&pace->held, memory_order_relaxed) >= pace->high;
}

/* For each kept frame, once, and not while the sink is full and the ring is not: whether the sink
 * is not given this one. Never, unless on_slow is prescale. */
bool sl_sink_pace_leaves_out(struct sl_sink_pace *pace);

/* Now and then: the run has to end. pressed: the ring is half full. Never, unless on_slow is
 * stop. */
bool sl_sink_pace_ends_run(struct sl_sink_pace *pace, bool pressed, uint64_t now_ns);

/* The share of the last seconds in which data waited for this sink, if that is worth a message now:
 * a tenth or more, and none was due in the last minute. 0: it is not. */
double sl_sink_pace_tells(struct sl_sink_pace *pace, uint64_t now_ns);

#endif
