/* triggers.c - how the kernels of a batch come to run: they are launched one by one; or captured
 * once and played by one call; or queued before the batch is there, behind a word that comes after
 * its pixels; or played again and again by the device itself, behind such words (loop.c).
 *
 * Queued ahead, they are for a full batch of any kind. Of one that is not full the rest is frames
 * that are missing and rejected, whose results nobody looks at. */
#include <errno.h>

#include "base/log.h"
#include "gpu/table.h"
#include "unit/gpu/gpu.h"

static uint32_t kind_of(const struct sl_batch_slots *l, const struct sl_batch *batch)
{
	uint32_t kind = 0;

	for (unsigned s = 0; s < l->chain->stages; s++) {
		const struct sl_gpu *gpu = l->gpu[s] ? l->chain->stage[s].ops->gpu : NULL;

		if (gpu && gpu->kind && gpu->kind(l->gpu[s], batch))
			kind |= 1u << s;
	}
	return kind;
}

static int capture(struct sl_batch_slots *l, unsigned slot, struct sl_device_queue *queue,
		   const struct sl_batch *batch, struct sl_device_graph **made)
{
	int err = l->platform->graph_begin(queue), ended;

	if (err)
		return err;
	err = sl_batch_slot_run(l, slot, queue, batch);
	ended = l->platform->graph_end(queue, made); /* in any case */
	if (err && !ended)
		l->platform->graph_close(*made);
	return err ? err : ended;
}

/* What was captured for batches like this one; captured now, if it is the first. Where there are
 * too many sizes of batches, the rest of them is launched. */
static int play(struct sl_batch_slots *l, unsigned index, struct sl_device_queue *queue,
		const struct sl_batch *batch)
{
	struct sl_batch_slot *slot = &l->slot[index];
	uint32_t kind = kind_of(l, batch);
	unsigned i = 0;
	int err = 0;

	while (i < slot->graphs &&
	       (slot->cached[i].frames != batch->frames || slot->cached[i].kind != kind))
		i++;
	if (i == SL_BATCH_SLOT_GRAPHS)
		return sl_batch_slot_run(l, index, queue, batch);
	if (i == slot->graphs) {
		err = capture(l, index, queue, batch, &slot->cached[i].graph);
		if (err)
			return err;
		slot->cached[i].frames = batch->frames;
		slot->cached[i].kind = kind;
		slot->graphs++;
	}
	l->played++;
	return l->platform->play(queue, slot->cached[i].graph);
}

/* ---- ahead ---- */

static int arm(struct sl_batch_slots *l, unsigned index)
{
	struct sl_batch_slot *slot = &l->slot[index];
	struct sl_device_queue *queue = l->work[index % l->works];
	int err = l->platform->wait_value(queue, &slot->gate, 0, slot->turn + 1);

	if (err)
		return err;
	slot->armed = ++l->armed; /* whatever fails now, somebody must open the gate */
	err = l->platform->play(queue, slot->cached[0].graph);
	if (!err)
		err = l->platform->mark(queue, slot->worked);
	return err ? err : l->platform->flush(queue);
}

/* The word follows what is on its way in the same queue. */
static int open_gate(struct sl_batch_slots *l, struct sl_batch_slot *slot)
{
	uint32_t *word = sl_batch_slot_word(l, slot);
	int err;

	*word = slot->turn + 1;
	err = l->platform->write(l->in, &slot->gate, 0, word, sizeof(*word), 1, 0);
	if (err)
		return err; /* it is still armed: who lets go tries again */
	slot->turn++;
	slot->armed = 0;
	l->loop.next = (l->loop.next + 1) % l->n;
	l->played++;
	return l->platform->flush(l->in);
}

static int open_gates(struct sl_batch_slots *l)
{
	struct sl_device_info info;
	int err = 0;

	l->platform->describe(l->device, &info);
	for (unsigned i = 0; i < l->n && !err; i++) {
		struct sl_batch_slot *slot = &l->slot[i];

		/* Queues write it, and they or kernels wait for it; a CPU's through the host. */
		err = (info.is_host ? l->platform->pinned_open : l->platform->memory_open)(
			l->device, SL_BATCH_SLOT_LINE, &slot->gate);
		if (!err)
			err = l->platform->zero(l->in, &slot->gate, 0, SL_BATCH_SLOT_LINE);
		/* Before the first one waits: a driver may not load kernels while one does. */
		if (!err && l->trigger == SL_BATCH_SLOTS_WAIT) {
			err = capture(l, i, l->work[i % l->works], NULL, &slot->cached[0].graph);
			slot->graphs = !err;
		}
	}
	return err ? err : sl_device_finish(l->device, l->in);
}

/* The device plays; where it cannot, the host does, batch by batch. */
static int open_loop(struct sl_batch_slots *l)
{
	int err = open_gates(l);

	if (!err)
		err = sl_device_loop_open(l);
	if (err == -ENOTSUP && l->loop.playing)
		return -EIO; /* some do, others do not */
	if (err != -ENOTSUP)
		return err;
	sl_warn("%s: unit.trigger: loop: the host plays kernels, as for graph, for this device "
		"does not launch them itself: %s",
		l->platform->name, l->platform->problem(l->device));
	sl_device_loop_close(l);
	for (unsigned i = 0; i < l->n; i++)
		l->platform->memory_close(l->device, &l->slot[i].gate);
	l->trigger = SL_BATCH_SLOTS_GRAPH;
	return 0;
}

int sl_device_triggers_open(struct sl_batch_slots *l)
{
	int err = 0;

	if (l->trigger == SL_BATCH_SLOTS_LOOP)
		return open_loop(l);
	if (l->trigger != SL_BATCH_SLOTS_WAIT)
		return 0;
	err = open_gates(l);
	for (unsigned i = 0; i < l->n && !err; i++)
		err = arm(l, i);
	if (err == -ENOTSUP)
		sl_error("%s: unit.trigger: wait: queues of this device cannot wait for a word",
			 l->platform->name);
	return err;
}

void sl_device_triggers_close(struct sl_batch_slots *l, struct sl_batch_slot *slot)
{
	for (unsigned i = 0; i < slot->graphs; i++)
		l->platform->graph_close(slot->cached[i].graph);
	slot->graphs = 0;
	l->platform->memory_close(l->device, &slot->gate);
}

/* ---- a batch ---- */

int sl_device_trigger(struct sl_batch_slots *l, unsigned index)
{
	struct sl_batch_slot *slot = &l->slot[index];
	struct sl_device_queue *work = l->work[index % l->works];
	const struct sl_platform *p = l->platform;
	int err;

	if (sl_device_is_ahead(l))
		return open_gate(l, slot);
	err = p->mark(l->in, slot->filled);
	if (!err)
		err = p->flush(l->in);
	if (!err)
		err = p->wait(work, slot->filled);
	if (!err)
		err = l->trigger == SL_BATCH_SLOTS_GRAPH
			      ? play(l, index, work, slot->batch)
			      : sl_batch_slot_run(l, index, work, slot->batch);
	if (!err)
		err = p->mark(work, slot->worked);
	return err ? err : p->flush(work);
}

int sl_device_trigger_again(struct sl_batch_slots *l, unsigned index)
{
	return l->trigger == SL_BATCH_SLOTS_WAIT ? arm(l, index) : 0;
}

/* Queues have kernels in the order in which batch slots were armed: so must they be filled. */
static int oldest_armed(const struct sl_batch_slots *l)
{
	int next = -1;

	for (unsigned i = 0; i < l->n; i++)
		if (l->slot[i].armed && (next < 0 || l->slot[i].armed < l->slot[next].armed))
			next = (int)i;
	return next;
}

int sl_batch_slots_next(const struct sl_batch_slots *l)
{
	int next = -1;

	if (l->trigger == SL_BATCH_SLOTS_WAIT)
		next = oldest_armed(l);
	else if (l->trigger == SL_BATCH_SLOTS_LOOP && l->works == 1)
		next = (int)l->loop.next; /* one after the other, whichever is back first */
	else
		for (unsigned i = 0; i < l->n && next < 0; i++)
			next = l->slot[i].state == SL_BATCH_SLOT_FREE ? (int)i : -1;
	return next >= 0 && l->slot[next].state == SL_BATCH_SLOT_FREE ? next : -1;
}

int sl_device_let_go(struct sl_batch_slots *l)
{
	static const struct sl_batch nothing;
	int err = 0;

	if (l->trigger == SL_BATCH_SLOTS_LOOP)
		return sl_device_loop_end(l);
	if (l->trigger != SL_BATCH_SLOTS_WAIT)
		return 0;
	for (unsigned i = 0; i < l->n && !err; i++) {
		if (!l->slot[i].armed)
			continue;
		err = sl_batch_slot_describe(l, i, &nothing);
		if (!err)
			err = open_gate(l, &l->slot[i]);
	}
	if (err)
		return -ETIMEDOUT; /* they wait for ever */
	for (unsigned i = 0; i < l->works && !err; i++)
		err = sl_device_finish(l->device, l->work[i]);
	return err;
}
