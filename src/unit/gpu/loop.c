/* loop.c - trigger `loop`: kernels of all batch slots, one batch slot after the other, are
 * captured once, and the device plays that again itself, for as long as the run lasts. In front of
 * a batch slot's kernels is one that waits for the word of its batch, and behind them one that
 * brings verdicts to the host: so from the last copy of a batch to its verdicts nothing is asked
 * of the driver.
 *
 * Where batches may pass each other, each batch slot is a graph in a queue of its own. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "gpu/dialect/kernels.h"
#include "gpu/table.h"
#include "unit/gpu/gpu.h"

enum { WAIT, DONE, KERNELS };
enum { DONE_THREADS = 256, LINE_WORDS = SL_BATCH_SLOT_LINE / sizeof(uint32_t) };
#define PATIENCE_NS 1000000ull /* before it is asked whether the device is still at it */

static int around(struct sl_batch_slots *l, unsigned slot, struct sl_device_queue *queue)
{
	struct sl_device_loop *loop = &l->loop;
	struct sl_batch_slot *at = &l->slot[slot];
	const struct sl_device_range one = {.threads = 1}, group = {.threads = DONE_THREADS};
	uint32_t verdicts = (uint32_t)(at->verdict.bytes / sizeof(uint32_t)),
		 rows = (uint32_t)(at->rows.bytes / sizeof(uint32_t)), done_at = slot * LINE_WORDS;
	const struct sl_device_argument wait[] = {SL_ARG_MEMORY(&at->gate),
						  SL_ARG_MEMORY(&loop->turn), SL_ARG(slot),
						  SL_ARG_MEMORY(&loop->stop)},
					done[] = {SL_ARG_MEMORY(&at->verdict),
						  SL_ARG_MEMORY(&at->rows),
						  SL_ARG(verdicts),
						  SL_ARG(rows),
						  SL_ARG_MEMORY(&at->down),
						  SL_ARG_MEMORY(&loop->turn),
						  SL_ARG(slot),
						  SL_ARG_MEMORY(&loop->done),
						  SL_ARG(done_at)};
	int err = l->platform->launch(queue, loop->kernel[WAIT], &one, wait, 4);

	if (!err)
		err = sl_batch_slot_run(l, slot, queue, NULL);
	return err ? err : l->platform->launch(queue, loop->kernel[DONE], &group, done, 9);
}

static int begin(struct sl_batch_slots *l, unsigned work)
{
	const struct sl_platform *p = l->platform;
	struct sl_device_loop *loop = &l->loop;
	struct sl_device_queue *queue = l->work[work];
	struct sl_device_graph *lost;
	int err = p->mark_open(l->device, &loop->ended[work]);

	if (!err)
		err = p->graph_begin(queue);
	if (err)
		return err;
	for (unsigned i = work; i < l->n && !err; i += l->works)
		err = around(l, i, queue);
	if (!err)
		err = p->graph_end_looped(queue, &loop->stop, &loop->graph[work]);
	else if (!p->graph_end(queue, &lost))
		p->graph_close(lost);
	return err;
}

static int play(struct sl_batch_slots *l, unsigned work)
{
	const struct sl_platform *p = l->platform;
	int err = p->play(l->work[work], l->loop.graph[work]);

	if (err)
		return err;
	l->loop.playing++;
	err = p->mark(l->work[work], l->loop.ended[work]);
	return err ? err : p->flush(l->work[work]);
}

static int open_words(struct sl_batch_slots *l)
{
	const struct sl_platform *p = l->platform;
	struct sl_device_loop *loop = &l->loop;
	uint32_t first[SL_GPU_BATCH_SLOTS];
	int err = p->pinned_open(l->device, SL_BATCH_SLOT_LINE, &loop->stop);

	for (unsigned i = 0; i < SL_GPU_BATCH_SLOTS; i++)
		first[i] = 1;
	if (!err)
		err = p->pinned_open(l->device, (uint64_t)l->n * SL_BATCH_SLOT_LINE, &loop->done);
	if (!err)
		err = p->memory_open(l->device, sizeof(first), &loop->turn);
	if (err)
		return err;
	memset(loop->stop.host, 0, loop->stop.bytes);
	memset(loop->done.host, 0, loop->done.bytes);
	err = p->write(l->in, &loop->turn, 0, first, sizeof(first), 1, 0);
	return err ? err : sl_device_finish(l->device, l->in);
}

int sl_device_loop_open(struct sl_batch_slots *l)
{
	static const char *const name[KERNELS] = {"batch_slot_wait", "batch_slot_done"};
	struct sl_device_loop *loop = &l->loop;
	int err = sl_device_kernels(l->device, &sl_kernels_batch_slot, name, KERNELS,
				    &loop->program, loop->kernel);

	if (!err)
		err = open_words(l);
	/* All before the first is played: a driver may not load kernels while one polls. */
	for (unsigned i = 0; i < l->works && !err; i++)
		err = begin(l, i);
	for (unsigned i = 0; i < l->works && !err; i++)
		err = play(l, i);
	return err;
}

void sl_device_loop_close(struct sl_batch_slots *l)
{
	struct sl_device_loop *loop = &l->loop;
	struct sl_device_memory *memory[] = {&loop->stop, &loop->turn, &loop->done};

	for (unsigned i = 0; i < l->works; i++) {
		if (loop->graph[i])
			l->platform->graph_close(loop->graph[i]);
		if (loop->ended[i])
			l->platform->mark_close(loop->ended[i]);
	}
	if (loop->program)
		sl_device_kernels_close(l->device, loop->program, loop->kernel, KERNELS);
	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		l->platform->memory_close(l->device, memory[i]);
	memset(loop, 0, sizeof(*loop));
}

/* ---- a batch ---- */

static bool is_done(const struct sl_batch_slots *l, unsigned slot)
{
	const _Atomic uint32_t *done = l->loop.done.host;

	return atomic_load_explicit(&done[slot * LINE_WORDS], memory_order_acquire) ==
	       l->slot[slot].turn;
}

int sl_device_loop_reached(struct sl_batch_slots *l, unsigned slot, uint64_t since_ns)
{
	uint64_t now;
	int ended;

	if (is_done(l, slot))
		return 1;
	now = sl_clock_ns();
	if (now - since_ns < PATIENCE_NS || now - l->loop.asked_ns < PATIENCE_NS)
		return 0;
	l->loop.asked_ns = now;
	ended = l->platform->reached(l->loop.ended[slot % l->works]);
	if (!ended || is_done(l, slot))
		return is_done(l, slot);
	return ended < 0 ? ended : -EIO; /* nobody plays any more */
}

/* 1: nothing happens there any more, 0, or what is wrong. */
static int rests(struct sl_batch_slots *l, unsigned slot)
{
	return is_done(l, slot) ? 1 : l->platform->reached(l->loop.ended[slot % l->works]);
}

int sl_device_loop_rest(struct sl_batch_slots *l)
{
	const struct timespec nap = {0, 20000};
	uint64_t since = sl_clock_ns();

	for (unsigned i = 0; i < l->n && l->loop.playing; i++) {
		int there;

		while (!(there = rests(l, i))) {
			if (l->device->patience_ns &&
			    sl_clock_ns() - since > l->device->patience_ns)
				return -ETIMEDOUT;
			nanosleep(&nap, NULL);
		}
		if (there < 0)
			return there;
	}
	return 0;
}

void sl_device_loop_stop(struct sl_batch_slots *l)
{
	_Atomic uint32_t *stop = l->loop.stop.host;

	if (stop)
		atomic_store_explicit(stop, 1, memory_order_release);
}

/* Kernels run once or twice more, whatever is in their batch slots: that must be nothing. */
static int empty(struct sl_batch_slots *l)
{
	static const struct sl_batch nothing;
	int err = sl_device_loop_rest(l);

	for (unsigned i = 0; i < l->n && !err; i++)
		err = sl_batch_slot_describe(l, i, &nothing);
	return err ? err : sl_device_finish(l->device, l->in);
}

int sl_device_loop_end(struct sl_batch_slots *l)
{
	int err = 0;

	l->loop.is_spoilt |= l->loop.playing && empty(l);
	sl_device_loop_stop(l);
	for (unsigned i = 0; i < l->loop.playing; i++) {
		int ended = sl_device_finish(l->device, l->work[i]);

		err = ended && err != -ETIMEDOUT ? ended : err;
	}
	if (err != -ETIMEDOUT)
		l->loop.playing = 0;
	return err;
}
