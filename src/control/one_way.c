/* one_way.c - the receiver's word for sources that have none. */
#include "receiver/private.h"
#include "control/one_way.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"

#define OPEN_NS UINT64_C(10000000000)

enum {
	NAP_NS = 1000 * 1000,
	LAG_NS = 1000 * 1000 * 1000, /* that a module may be behind the others at the end */
	LOOKS = 3,		     /* that the link took in vain meanwhile */
};

static int plan(struct sl_one_way *o, uint32_t module)
{
	struct sl_receiver *r = o->receiver;
	const struct sl_geometry *g = &r->geometry;
	struct sl_offer offer = {
		.module = (uint16_t)module,
		.block_bytes = g->module_bytes,
		.lines = g->rows,
		.line_bytes = (uint32_t)(g->module_bytes / g->rows),
		.first_frame = g->first_frame,
		.frame_step = g->frame_step,
		.frames = o->frames,
		.darks = sl_detector_darks(&r->experiment->run),
	};
	char why[160] = "";
	struct sl_plan made;
	int err = r->experiment->link->offer(r->experiment->link_state, &offer);

	if (!err) /* times of records are ours, wherever the detector is */
		err = sl_receiver_accept(r, &offer, true, &made, why, sizeof(why));
	if (err && why[0])
		sl_error("module %u: %s", module, why);
	return err;
}

int sl_one_way_open(struct sl_one_way *oneway, struct sl_receiver *receiver)
{
	const struct sl_experiment *e = receiver->experiment;
	int err = 0;

	*oneway = (struct sl_one_way){
		.receiver = receiver,
		.frames = e->run.dark_frames + e->run.frames,
		.first_ns = (uint64_t)(e->control.wait_s * 1e9),
		.silence_ns = (uint64_t)(e->control.silence_s * 1e9),
	};
	/* A source that goes on has nowhere to go on to. */
	sl_receiver_limit(receiver, oneway->frames);
	for (uint32_t m = 0; m < receiver->ring.modules && !err; m++)
		err = plan(oneway, m);
	return err;
}

int sl_one_way_wait(const struct sl_one_way *oneway)
{
	const struct sl_ring *ring = &oneway->receiver->ring;
	uint64_t end = sl_clock_ns() + OPEN_NS;

	for (uint32_t m = 0; m < ring->modules;) {
		if (sl_ring_opened(ring, m)) {
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

void sl_one_way_start(struct sl_one_way *oneway, uint64_t now_ns)
{
	oneway->quiet_ns = now_ns;
}

/* All that will come of it has come, or will within a moment: the dispatcher waits for that. */
static void finish(struct sl_one_way *o, uint32_t module)
{
	char why[160] = "";

	o->over[module] = true;
	if (sl_receiver_count(o->receiver, module, o->frames, o->frames, 0, true, why,
			      sizeof(why))) {
		sl_warn("%s", why);
		sl_receiver_source_lost(o->receiver, module);
	}
}

static void lose(struct sl_one_way *o, uint32_t module, uint64_t reached)
{
	o->over[module] = true;
	if (o->packets)
		sl_warn("module %u: nothing came for %g s (control.silence_s), after %llu of the "
			"%llu frames of this run",
			module, (double)o->silence_ns * 1e-9, (unsigned long long)reached,
			(unsigned long long)o->frames);
	else
		sl_warn("module %u: nothing came within %g s (control.wait_s)", module,
			(double)o->first_ns * 1e-9);
	sl_receiver_source_lost(o->receiver, module);
}

void sl_one_way_poll(struct sl_one_way *oneway, uint64_t now_ns)
{
	struct sl_one_way *o = oneway;
	const struct sl_receiver *r = o->receiver;
	uint64_t packets = atomic_load_explicit(&r->counters.packets, memory_order_relaxed);
	uint64_t idle = sl_receiver_idle(r), newest = 0, quiet_ns;
	bool lag, silent;

	if (packets != o->packets) {
		o->packets = packets;
		o->quiet_ns = now_ns;
		o->idle = idle;
	}
	quiet_ns = now_ns - o->quiet_ns;
	for (uint32_t m = 0; m < r->ring.modules; m++)
		if (sl_ring_reached(&r->ring, m) > newest)
			newest = sl_ring_reached(&r->ring, m);
	/* Quiet because the link looked and found nothing, not because it had no time to look. */
	lag = newest >= o->frames && quiet_ns > LAG_NS && idle - o->idle >= LOOKS;
	silent = quiet_ns > (packets ? o->silence_ns : o->first_ns) && idle - o->idle >= LOOKS;
	for (uint32_t m = 0; m < r->ring.modules; m++) {
		uint64_t reached = sl_ring_reached(&r->ring, m);

		if (o->over[m])
			continue;
		if (reached >= o->frames || lag)
			finish(o, m);
		else if (silent)
			lose(o, m, reached);
	}
}

void sl_one_way_hasten(struct sl_one_way *oneway)
{
	if (oneway->first_ns > LAG_NS)
		oneway->first_ns = LAG_NS;
	if (oneway->silence_ns > LAG_NS)
		oneway->silence_ns = LAG_NS;
}

void sl_one_way_stop(struct sl_one_way *oneway)
{
	struct sl_receiver *r = oneway->receiver;

	for (uint32_t m = 0; m < r->ring.modules; m++) {
		if (oneway->over[m])
			continue;
		oneway->over[m] = true;
		sl_receiver_cut(r, m);
	}
}
