/* give_up.c - a device that fails, or does not answer: what becomes of its batches, and of itself.
 *
 * Model: batches that it had are run by the CPU (`fallback: cpu`), with what it has learned where
 * it still gives that back; or come back as not processed. One that may still write into frames is
 * left to itself, and frames with it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "gpu/table.h"
#include "unit/cpu/cpu.h"
#include "unit/gpu/engine.h"

/* How long a device that is given up may take to come to rest. */
#define CLOSING_NS 3000000000ull

/* A device that does not answer may never let go: whoever waits for it hangs. So its memory stays,
 * and is found here. */
static struct sl_engine *abandoned;

void sl_engine_abandon(struct sl_engine *e)
{
	e->before = abandoned;
	abandoned = e;
}

int sl_engine_settle(struct sl_engine *e)
{
	int err = e->slots.in ? sl_device_finish(e->device, e->slots.in) : 0;

	for (unsigned i = 0; i < e->slots.n && err != -ETIMEDOUT; i++)
		if (e->slots.slot[i].out)
			err = sl_device_finish(e->device, e->slots.slot[i].out);
	return err;
}

/* Is it (still) at something? A run may end while batches are there; and a device that was given up
 * may have been slow only. */
bool sl_engine_comes_to_rest(struct sl_engine *e)
{
	bool is_idle = e->dead != -ETIMEDOUT && e->oldest == e->taken;

	if (!is_idle)
		e->device->patience_ns = CLOSING_NS;
	if (sl_poll_end(e->poll, CLOSING_NS) == -ETIMEDOUT)
		return false;
	if (e->slots.platform && sl_device_let_go(&e->slots) == -ETIMEDOUT)
		return false;
	return is_idle || sl_engine_settle(e) != -ETIMEDOUT;
}

/* Without the device. */
void sl_engine_run_here(struct sl_engine *e, struct sl_batch *batch)
{
	int err = -EIO;

	if (e->fall_back) {
		sl_verdicts_reset(batch);
		err = sl_host_run(&e->all, batch);
		e->fallen_back += batch->frames;
		e->unlearned += e->forgot ? batch->frames : 0;
	}
	sl_engine_finish(e, batch, err);
}

static bool may_still_write(const struct sl_engine *e)
{
	for (unsigned i = 0; i < e->slots.n; i++)
		if (e->slots.slot[i].state == SL_BATCH_SLOT_RETURNING)
			return true;
	return false;
}

static bool learns(const struct sl_engine *e)
{
	for (unsigned s = 0; s < e->chain.stages; s++)
		if (e->slots.gpu[s] && e->chain.stage[s].ops->gpu->give_back)
			return true;
	return false;
}

/* What kernels have learned cannot be taken back, and the batches that are still there are run
 * again by the CPU, which goes on with it. */
static void tell_what_is_learned_twice(struct sl_engine *e)
{
	uint64_t darks = 0;

	for (uint64_t number = e->oldest; number < e->taken && learns(e); number++) {
		const struct sl_batch *batch = e->batch[number % SL_ENGINE_BATCHES];

		for (uint32_t f = 0; f < batch->frames; f++)
			darks += !!(batch->frame[f]->flags & SL_FRAME_DARK);
	}
	if (darks)
		sl_warn("%s: %" PRIu64 " dark frames may have been learned from twice: the device "
			"was at them, and the CPU does them again",
			e->device->platform->name, darks);
	e->twice += darks;
}

/* The CPU is to go on. */
static void take_over(struct sl_engine *e)
{
	const char *name = e->device->platform->name;
	int err = e->dead;

	/* What is copied must not come when the CPU has begun. */
	if (err != -ETIMEDOUT) {
		err = sl_batch_slots_give_back(&e->slots);
		e->fall_back = err != -ETIMEDOUT;
	} else {
		e->fall_back = !may_still_write(e);
	}
	if (!e->fall_back) {
		e->dead = -ETIMEDOUT;
		sl_error("%s: it may still write into results: the CPU cannot go on, and frames "
			 "are refused from now on",
			 name);
	} else if (err && e->oldest && learns(e)) { /* it has been through batches */
		e->forgot = true;
		sl_warn("%s: the CPU goes on with what it knew when the run began: what the device "
			"has learned (pedestals) is lost",
			name);
	} else if (!err) {
		tell_what_is_learned_twice(e);
	}
}

static const char *reason(const struct sl_engine *e, int err)
{
	const char *problem = e->device->platform->problem(e->device);

	if (err == -ETIMEDOUT)
		return "it did not answer in time";
	if (err == -EPROTO)
		return "a kernel wrote more rows than there can be, or could not read a frame";
	return *problem ? problem : strerror(-err);
}

/* Nothing more is asked of the device. What it was working on is done here, or not at all. One that
 * fails may be in the middle of copies: frames are not given away before these are over. One that
 * does not answer is not waited for. */
void sl_engine_give_up(struct sl_engine *e, int err)
{
	sl_error("%s: the device was given up: %s", e->device->platform->name, reason(e, err));
	e->dead = err;
	sl_poll_stop(e->poll);
	if (err != -ETIMEDOUT && sl_engine_settle(e) == -ETIMEDOUT)
		e->dead = -ETIMEDOUT;
	if (e->fall_back)
		take_over(e);
	sl_device_loop_stop(&e->slots); /* what it has learned is taken */
	for (; e->oldest < e->taken; e->oldest++)
		sl_engine_run_here(e, e->batch[e->oldest % SL_ENGINE_BATCHES]);
	for (unsigned i = 0; i < e->slots.n; i++) {
		e->slots.slot[i].batch = NULL;
		e->slots.slot[i].state = SL_BATCH_SLOT_FREE;
	}
}
