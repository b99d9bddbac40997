/* control.c - a detector of the receiver as control drivers see it (core/control.h): they count its
 * modules from 0. */
#include "core/control.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "receiver/private.h"

#define OPEN_NS UINT64_C(10000000000)

enum { NAP_NS = 1000 * 1000 };

static int offer(void *arg, struct sl_offer *offer)
{
	const struct sl_feed *f = arg;

	return f->link->receiving->offer(f->link_state, offer);
}

static int accept_offer(void *arg, const struct sl_offer *offer, bool same_host,
			struct sl_plan *plan, char *why, size_t why_bytes)
{
	return sl_feed_accept(arg, offer, same_host, plan, why, why_bytes);
}

static int set_queue(void *arg, uint16_t transfer, uint32_t qpn)
{
	return sl_feed_set_queue(arg, transfer, qpn);
}

static void cancel_plan(void *arg, uint16_t transfer)
{
	sl_feed_cancel_plan(arg, transfer);
}

static void cancel_offer(void *arg, uint32_t module)
{
	const struct sl_feed *f = arg;

	sl_receiver_cancel_offer(f->receiver, f->first + module);
}

static int count(void *arg, uint32_t module, uint64_t next, uint64_t sent, uint64_t position,
		 bool final, char *why, size_t why_bytes)
{
	const struct sl_feed *f = arg;

	return sl_receiver_count(f->receiver, f->first + module, next, sent, position, final, why,
				 why_bytes);
}

static void end(void *arg, uint32_t module)
{
	const struct sl_feed *f = arg;

	sl_receiver_end(f->receiver, f->first + module);
}

static void cut(void *arg, uint32_t module)
{
	const struct sl_feed *f = arg;

	sl_receiver_cut(f->receiver, f->first + module);
}

static void source_lost(void *arg, uint32_t module)
{
	const struct sl_feed *f = arg;

	sl_receiver_source_lost(f->receiver, f->first + module);
}

static void limit(void *arg, uint64_t sequence)
{
	struct sl_feed *f = arg;

	atomic_store_explicit(&f->limit, sequence, memory_order_relaxed);
}

static void progress(void *arg, uint32_t module, struct sl_progress *progress)
{
	const struct sl_feed *f = arg;

	sl_receiver_progress(f->receiver, f->first + module, progress);
}

const struct sl_control_ops sl_receiver_control_ops = {
	.offer = offer,
	.accept = accept_offer,
	.set_queue = set_queue,
	.cancel_plan = cancel_plan,
	.cancel_offer = cancel_offer,
	.count = count,
	.end = end,
	.cut = cut,
	.source_lost = source_lost,
	.limit = limit,
	.progress = progress,
};

void sl_receiver_control_env(struct sl_receiver *r, unsigned detector, struct sl_control_env *env)
{
	struct sl_feed *f = &r->feed[detector];

	env->experiment = f->experiment;
	env->geometry = f->geometry;
	env->block_bytes = f->ring.block_bytes;
	env->pixel_bytes = f->ring.pixel_bytes;
	env->ops = &sl_receiver_control_ops;
	env->arg = f;
}

int sl_receiver_wait_open(const struct sl_receiver *r)
{
	uint64_t end = sl_clock_ns() + OPEN_NS;

	for (uint32_t m = 0; m < r->modules;) {
		if (sl_feed_opened(r->of, m)) {
			m++;
		} else if (sl_clock_ns() > end) {
			sl_error("no slots were opened within 10 s: this host is too busy");
			return -ETIMEDOUT;
		} else {
			sl_clock_sleep_until(sl_clock_ns() + NAP_NS);
		}
	}
	return 0;
}
