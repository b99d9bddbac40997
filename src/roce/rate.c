/* rate.c - the DCQCN reaction point in integers. Rates are below 2^38 and alpha below 2^25, so that
 * their product fits; bytes times a second in nanoseconds fit for what a call may ask for. */
#include "roce/rate.h"

#define SECOND UINT64_C(1000000000)

int sl_roce_rate_init(struct sl_roce_rate *r)
{
	if (r->line > SL_ROCE_RATE_MAX || r->least > SL_ROCE_RATE_MAX ||
	    r->additive > SL_ROCE_RATE_MAX || r->hyper > SL_ROCE_RATE_MAX)
		return SL_ROCE_EINVAL;
	if (r->scale > SL_ROCE_RATE_SCALE_MAX)
		return SL_ROCE_EINVAL;
	if (r->timer_ns && r->timer_ns < 1000)
		return SL_ROCE_EINVAL;
	r->timer_ns = r->timer_ns ? r->timer_ns : SL_ROCE_RATE_TIMER_NS;
	r->scale = r->scale ? r->scale : 1;
	r->burst_bytes = r->burst_bytes ? r->burst_bytes : SL_ROCE_RATE_BURST;
	r->active = false;
	r->alpha = 0;
	r->rate = r->target = r->ceiling = r->floor = 0;
	r->step_additive = r->step_hyper = r->step_bytes = 0;
	r->cut_at = r->calm_at = r->raise_at = 0;
	r->time_steps = r->byte_steps = 0;
	r->stage_sent = r->debt = r->change = r->paid_at = r->sent_at = 0;
	r->window_at = r->window_bytes = r->measured = r->peak = 0;
	r->cnps = r->cuts = 0;
	return SL_ROCE_OK;
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
	return value < most ? value : most;
}

/* Large numbers lose some low bits, so that the product fits. */
static uint64_t per_second(uint64_t bytes, uint64_t ns)
{
	for (; bytes >> 33; bytes >>= 1)
		ns = ns > 1 ? ns >> 1 : 1;
	return at_most(bytes * SECOND / ns, SL_ROCE_RATE_MAX);
}

/* Note what leaves, window by window. */
static void measure(struct sl_roce_rate *r, uint64_t now, uint32_t bytes)
{
	uint64_t elapsed = now - r->window_at;

	if (elapsed >= (uint64_t)SL_ROCE_RATE_WINDOW_NS * r->scale) {
		r->measured = per_second(r->window_bytes, elapsed);
		if (r->measured > r->peak)
			r->peak = r->measured;
		r->window_at = now;
		r->window_bytes = 0;
	}
	r->window_bytes += bytes;
	r->sent_at = now;
}

/* The whole window before, or the one under way when more is being sent now. A few packets at once
 * are no rate: at least the time of an alpha step counts. */
static uint64_t measured(const struct sl_roce_rate *r, uint64_t now)
{
	uint64_t elapsed = now - r->window_at;
	uint64_t under_way = per_second(
		r->window_bytes, elapsed > SL_ROCE_RATE_ALPHA_NS ? elapsed : SL_ROCE_RATE_ALPHA_NS);

	return under_way > r->measured ? under_way : r->measured;
}

static uint64_t share(const struct sl_roce_rate *r, unsigned of)
{
	return r->ceiling / of + 1;
}

/* false: nothing was sent, so nobody can mean us. */
static bool activate(struct sl_roce_rate *r, uint64_t now)
{
	uint64_t sending = measured(r, now);

	if (sending == 0)
		return false;
	if (sending > r->peak)
		r->peak = sending;
	r->ceiling = r->line ? r->line : at_most(2 * r->peak, SL_ROCE_RATE_MAX);
	r->floor = at_most(r->least ? r->least : share(r, SL_ROCE_RATE_LEAST_SHARE), r->ceiling);
	r->rate = r->line ? r->line : sending > r->floor ? sending : r->floor;
	r->step_additive = r->additive ? r->additive : share(r, SL_ROCE_RATE_ADDITIVE_SHARE);
	r->step_hyper = r->hyper ? r->hyper : r->step_additive * SL_ROCE_RATE_HYPER_FACTOR;
	r->step_bytes = r->stage_bytes ? r->stage_bytes
				       : share(r, SL_ROCE_RATE_STAGE_SHARE) * r->scale;
	r->alpha = SL_ROCE_RATE_ALPHA;
	r->debt = r->change = 0;
	r->paid_at = now;
	r->active = true;
	return true;
}

static void cut(struct sl_roce_rate *r, uint64_t now)
{
	r->target = r->rate;
	r->rate -= r->rate * (r->alpha / 2) / SL_ROCE_RATE_ALPHA;
	if (r->rate < r->floor)
		r->rate = r->floor;
	r->alpha += (SL_ROCE_RATE_ALPHA - r->alpha) >> SL_ROCE_RATE_G_SHIFT;
	r->cut_at = now;
	r->calm_at = now + (uint64_t)SL_ROCE_RATE_ALPHA_NS * r->scale;
	r->raise_at = now + r->timer_ns * r->scale;
	r->time_steps = r->byte_steps = 0;
	r->stage_sent = 0;
	r->cuts++;
}

void sl_roce_rate_on_cnp(struct sl_roce_rate *r, uint64_t now)
{
	r->cnps++;
	sl_roce_rate_tick(r, now);
	if (r->active ? now - r->cut_at < (uint64_t)SL_ROCE_RATE_CUT_NS * r->scale
		      : !activate(r, now))
		return;
	cut(r, now);
}

/* One step of recovery. The rate comes ever closer to the line rate: near enough is there. */
static void raise(struct sl_roce_rate *r)
{
	bool time_slow = r->time_steps <= SL_ROCE_RATE_FAST;
	bool bytes_slow = r->byte_steps <= SL_ROCE_RATE_FAST;
	uint32_t both = r->time_steps < r->byte_steps ? r->time_steps : r->byte_steps;

	if (!time_slow && !bytes_slow)
		r->target += r->step_hyper * (both - SL_ROCE_RATE_FAST);
	else if (!time_slow || !bytes_slow)
		r->target += r->step_additive;
	r->target = at_most(r->target, r->ceiling);
	r->rate = (r->rate + r->target) / 2;
	if (r->rate >= r->ceiling - r->ceiling / 128)
		r->active = false;
}

void sl_roce_rate_tick(struct sl_roce_rate *r, uint64_t now)
{
	if (!r->active)
		return;
	if (now - r->sent_at >= (uint64_t)SL_ROCE_RATE_IDLE_NS * r->scale) {
		r->active = false;
		return;
	}
	/* Both loops are short: at most as many steps as the time until it counts as idle has. */
	for (; r->calm_at <= now; r->calm_at += (uint64_t)SL_ROCE_RATE_ALPHA_NS * r->scale)
		r->alpha -= r->alpha >> SL_ROCE_RATE_G_SHIFT;
	for (; r->active && r->raise_at <= now; r->raise_at += r->timer_ns * r->scale) {
		r->time_steps++;
		raise(r);
	}
}

/* What was sent ahead is paid for as time passes, at the rate of now. In slices, so that a slice
 * times any rate fits; what is less than a byte stays for the next time. */
static void pay(struct sl_roce_rate *r, uint64_t now)
{
	const uint64_t slice = UINT64_C(1) << 25;

	while (r->debt && r->paid_at < now) {
		uint64_t elapsed = at_most(now - r->paid_at, slice);
		uint64_t worth = elapsed * r->rate + r->change;

		r->debt -= at_most(worth / SECOND, r->debt);
		r->change = worth % SECOND;
		r->paid_at += elapsed;
	}
	r->paid_at = now;
}

static void charge(struct sl_roce_rate *r, uint32_t bytes)
{
	r->debt += bytes;
	r->stage_sent += bytes;
	if (r->stage_sent >= r->step_bytes) {
		r->stage_sent = 0;
		r->byte_steps++;
		raise(r);
	}
}

/* When the debt has come down to a burst; or when the rate is another one, if that is sooner. */
static uint64_t ask_again(const struct sl_roce_rate *r)
{
	uint64_t worth = (r->debt - r->burst_bytes) * SECOND - r->change;

	return at_most(r->paid_at + (worth + r->rate - 1) / r->rate, r->raise_at);
}

uint64_t sl_roce_rate_allow(struct sl_roce_rate *r, uint64_t now, uint32_t bytes)
{
	sl_roce_rate_tick(r, now);
	if (r->active) {
		pay(r, now);
		if (r->debt > r->burst_bytes)
			return ask_again(r);
		charge(r, bytes);
	}
	measure(r, now, bytes);
	return 0;
}
