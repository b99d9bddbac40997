/* rate.h - congestion, the sender's side: slow down when told, speed up again when not.
 *
 * Model:     one controller per sending queue, the reaction point of DCQCN (Zhu et al., Congestion
 *            Control for Large-Scale RDMA Deployments, SIGCOMM 2015). It is inactive, and nothing
 *            is paced, until a CNP comes. Then
 *              cut        target = rate; rate *= 1 - alpha/2; alpha += g * (1 - alpha)
 *              calm       alpha *= 1 - g, every 55 us without a CNP
 *              recovery   every timer_ns, and every stage_bytes sent, rate = (rate + target) / 2.
 *                         From the sixth of these steps on, by time or by bytes, the target rises
 *                         by `additive`; when both have passed five, by `hyper`, twice `hyper`, ...
 *            until the rate is the line rate again and the controller is inactive. alpha, between 0
 *            and 1, says how bad the congestion is; it is 1 when a controller becomes active.
 *            CNPs that follow the last cut within 40 us are counted and not acted upon.
 *            A queue that has sent nothing for 250 ms begins anew, as one that never sent.
 *            The clocks suit paths that answer within tens of microseconds. Where marks come back
 *            later, since queues are deep or links slow, `scale` stretches all of them: a source
 *            must not speed up again before it can hear what its last step did.
 * Line rate: where it is not known, the first cut starts from the rate measured over the last
 *            millisecond, and twice the highest rate measured so far stands in for it.
 * Pacing:    a token bucket: after burst_bytes at once, packets leave at the rate.
 * Time:      nanoseconds of any clock that does not go backwards, passed in.
 * Threads:   one at a time per controller.
 * Ownership: the caller's memory.
 * Cost:      inactive, an addition and two comparisons per packet; active, two divisions. */
#ifndef SL_ROCE_RATE_H
#define SL_ROCE_RATE_H

#include "roce/roce.h"

enum {
	/* g = 1/256, the timers, F = 5: the DCQCN paper, and the simulator of its authors. */
	SL_ROCE_RATE_G_SHIFT = 8,
	SL_ROCE_RATE_ALPHA_NS = 55000,
	SL_ROCE_RATE_TIMER_NS = 55000,
	SL_ROCE_RATE_FAST = 5,
	/* Rates in the paper are for 40 Gb/s: 40 Mb/s additive, 10 MB per stage. Here they are the
	 * same shares of any line: a thousandth, and what it carries in 2 ms. The authors'
	 * simulator has 200 Mb/s as hyper increase: five times additive. */
	SL_ROCE_RATE_ADDITIVE_SHARE = 1000,
	SL_ROCE_RATE_HYPER_FACTOR = 5,
	SL_ROCE_RATE_STAGE_SHARE = 500,
	/* CNPs are 50 us apart (cnp.h): no jitter swallows one, and a peer with a shorter gap
	 * (ConnectX: 4 us) slows us down no more than the paper means to. */
	SL_ROCE_RATE_CUT_NS = 40000,
	SL_ROCE_RATE_LEAST_SHARE = 1000, /* ours; ConnectX has 1 Mb/s on any line */
	/* Ours: a burst is what a UDP_SEGMENT send takes at once. */
	SL_ROCE_RATE_BURST = 65536,
	SL_ROCE_RATE_IDLE_NS = 250000000,
	SL_ROCE_RATE_WINDOW_NS = 1000000,
	SL_ROCE_RATE_SCALE_MAX = 10000,
};

#define SL_ROCE_RATE_MAX   (UINT64_C(1) << 38) /* bytes per second */
#define SL_ROCE_RATE_ALPHA (UINT32_C(1) << 24) /* an alpha of 1 */

struct sl_roce_rate {
	/* Set by the caller before sl_roce_rate_init(); 0: the default. Bytes per second. */
	uint64_t line;	      /* 0: not known */
	uint64_t least;	      /* never slower than this */
	uint64_t additive;    /* of the line, or what stands in for it, when it becomes active */
	uint64_t hyper;	      /* likewise */
	uint64_t stage_bytes; /* likewise */
	uint64_t timer_ns;    /* between steps of recovery */
	uint32_t scale; /* all clocks go this much slower, for paths whose queues take longer */
	uint32_t burst_bytes; /* more where the sender looks less often than a burst lasts */

	/* Its own; active, rate, alpha and the counts are worth reading. */
	bool active;
	uint32_t alpha;
	uint64_t rate, target, ceiling, floor;
	uint64_t step_additive, step_hyper, step_bytes;
	uint64_t cut_at, calm_at, raise_at; /* the last cut, the next steps */
	uint32_t time_steps, byte_steps;    /* since the last cut */
	uint64_t stage_sent;		    /* bytes since the last step by bytes */
	uint64_t debt, paid_at;		    /* bytes allowed ahead of time, and as of when */
	uint64_t change;		    /* paid too much: parts of 10^9 of a byte */
	uint64_t sent_at;		    /* the last packet */
	uint64_t window_at, window_bytes;   /* measuring: since when, how much */
	uint64_t measured, peak;	    /* of the last whole window, of all */
	uint64_t cnps, cuts;		    /* received, acted upon */
};

/* SL_ROCE_EINVAL: a rate above SL_ROCE_RATE_MAX, a timer below 1 us, a scale above
 * SL_ROCE_RATE_SCALE_MAX. Inactive afterwards. */
int sl_roce_rate_init(struct sl_roce_rate *rate);

/* A CNP came for this queue (sl_roce_cnp_receive). */
void sl_roce_rate_on_cnp(struct sl_roce_rate *rate, uint64_t now);

/* May `bytes` leave now (a packet, or a train of them)? 0: yes, and they are charged. Otherwise
 * when to ask again. The caller counts payload or whole packets, but always the same. */
uint64_t sl_roce_rate_allow(struct sl_roce_rate *rate, uint64_t now, uint32_t bytes);

/* Let the timers act. The other calls do so too: only needed to see the rate while nothing is sent.
 */
void sl_roce_rate_tick(struct sl_roce_rate *rate, uint64_t now);

/* Bytes per second; 0: not limited. */
static inline uint64_t sl_roce_rate_limit(const struct sl_roce_rate *rate)
{
	return rate->active ? rate->rate : 0;
}

#endif
