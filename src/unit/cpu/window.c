/* window.c - batches in order, several of them in flight.
 *
 * Order:     what must come in sequence does, and nothing else waits.
 *
 *            - A pass over a batch begins when the pass before it is concluded: all of its items
 *              have been run, and finish() of the stages that are done has returned.
 *            - Passes are concluded in the order of the batches. An item that has been run counts
 *              as an arrival at its pass; that the batch before has concluded the pass is one
 *              arrival more. The worker of the last arrival concludes the pass, and then arrives
 *              at that of the next batch. So finish() of a stage sees batches in order, one at a
 *              time, and batches come back in order (invariant ORDERED).
 *            - Where a stage learns pixel by pixel (SL_ORDER_PARTS), a tile is run when the batch
 *              before has had the same tile.
 *            - Where a stage's state must not be touched before the batch before is done with it
 *              (SL_ORDER_BATCHES), the pass is open when the batch before has concluded the
 *              stage's last pass.
 *
 * Threads:   a worker that finds an item that it may not run yet takes none. It is woken by the
 *            worker that makes the item free (invariant WOKEN).
 * Cost:      an item: two atomic additions, and one store where tiles have an order; a pass: a
 *            bell and one addition more. */
#include "unit/cpu/engine.h"

#include <string.h>

struct item {
	struct sl_cpu_flight *flight;
	uint64_t batch; /* its number */
	unsigned pass;
	uint32_t number;
};

static struct sl_cpu_flight *flight_of(const struct sl_cpu_engine *e, uint64_t batch)
{
	return &e->flight[batch % e->flights];
}

static struct sl_batch *batch_of(const struct sl_cpu_engine *e, uint64_t batch)
{
	return e->batch[batch % SL_CPU_QUEUE];
}

static void run_frame(struct sl_cpu_engine *e, const struct sl_cpu_flight *flight, unsigned worker,
		      const struct sl_cpu_pass *pass, struct sl_batch *batch, uint32_t f)
{
	if (f >= batch->frames)
		return; /* the batch is not full */
	for (unsigned i = 0; i < pass->stages; i++) {
		const struct sl_chain_stage *stage = &e->chain.stage[pass->stage[i]];
		char *scratch = flight->scratch[pass->stage[i]][worker]; /* NULL: it needs none */

		stage->ops->frame(stage->state,
				  scratch ? scratch + f * stage->terms.scratch_bytes : NULL, batch,
				  f);
	}
}

void sl_cpu_run_item(struct sl_cpu_engine *e, struct sl_cpu_flight *flight, unsigned worker,
		     const struct sl_cpu_pass *pass, struct sl_batch *batch, uint32_t item)
{
	if (pass->frames)
		run_frame(e, flight, worker, pass, batch, item);
	else
		sl_cpu_tiles_run(&e->tiles, worker, pass, flight->scratch, batch, item);
}

void sl_cpu_finish_stages(struct sl_cpu_engine *e, struct sl_cpu_flight *flight,
			  const struct sl_cpu_pass *pass, struct sl_batch *batch, uint64_t joined)
{
	for (unsigned i = 0; i < pass->finishes; i++) {
		const struct sl_chain_stage *stage = &e->chain.stage[pass->finish[i]];
		void *scratch[SL_CPU_WORKERS];
		unsigned n = 0;

		for (uint64_t left = joined; left; left &= left - 1)
			scratch[n++] = flight->scratch[pass->finish[i]][__builtin_ctzll(left)];
		stage->ops->finish(stage->state, scratch, n, batch);
	}
}

/* Last of all that belongs to a step: pairs with the acquires in take_from() and may_run(). */
static void open_step(struct sl_cpu_flight *flight, uint64_t step)
{
	atomic_store_explicit(&flight->ticket, step << SL_CPU_ITEM_BITS, memory_order_release);
}

/* All items of the pass have been run, and the batch before has concluded it. */
static void conclude(struct sl_cpu_engine *e, struct sl_cpu_flight *flight, uint64_t batch,
		     unsigned pass)
{
	uint64_t joined = atomic_load_explicit(&flight->joined, memory_order_relaxed);
	uint64_t step = batch * e->passes.n + pass;

	/* Before the batch after this one can arrive here in its turn. */
	atomic_store_explicit(&flight->arrived[pass], 0, memory_order_relaxed);
	sl_cpu_finish_stages(e, flight, &e->passes.pass[pass], batch_of(e, batch), joined);
	if (pass < e->passes.n - 1) {
		open_step(flight, step + 1);
		return;
	}
	batch_of(e, batch)->status = 0;
	atomic_store_explicit(&flight->joined, 0, memory_order_relaxed);
	/* Pairs with reap(). Batches are concluded in order: there is one writer at a time. */
	atomic_store_explicit(&e->finished, batch + 1, memory_order_release);
	open_step(flight, (batch + e->flights) * e->passes.n);
	sl_bell_ring(e->done);
}

/* One arrival at the end of a pass; with the last one the pass is concluded. */
static void arrive(struct sl_cpu_engine *e, uint64_t batch, unsigned pass)
{
	uint32_t all = sl_cpu_items(e, &e->passes.pass[pass]) + 1;
	bool concluded = false;

	for (;; batch++) {
		struct sl_cpu_flight *flight = flight_of(e, batch);
		/* Releases what this worker did to the worker of the last arrival, which acquires
		 * it. */
		uint32_t n =
			atomic_fetch_add_explicit(&flight->arrived[pass], 1, memory_order_acq_rel);

		if (n + 1 < all)
			break;
		conclude(e, flight, batch, pass);
		concluded = true;
	}
	/* Workers that found nothing may have gone to sleep although there is more now. */
	if (concluded && e->workers > 1)
		sl_bell_ring(e->todo);
}

/* Whether the batch before is done with the tile. More than that: another worker has taken and done
 * the tile of this batch, too, since the ticket was read. Then the ticket has moved, and must be
 * read again, not waited for. */
static bool enough(uint32_t seen, uint64_t batch)
{
	return (int32_t)(seen - (uint32_t)batch) >= 0;
}

/* Whether the batch before is where it has to be before this item may be run. */
static bool may_run(struct sl_cpu_engine *e, const struct item *item)
{
	const struct sl_cpu_pass *pass = &e->passes.pass[item->pass];
	const _Atomic uint32_t *seen;

	if (pass->after >= 0 && item->batch) {
		uint64_t before = item->batch - 1;
		uint64_t ticket = atomic_load_explicit(&flight_of(e, before)->ticket,
						       memory_order_acquire); /* open_step() */

		if (ticket >> SL_CPU_ITEM_BITS <= before * e->passes.n + (unsigned)pass->after)
			return false;
	}
	if (!e->seen[item->pass])
		return true;
	/* Pairs with the store in note_seen(). */
	seen = &e->seen[item->pass][item->number].batches;
	if (enough(atomic_load_explicit(seen, memory_order_acquire), item->batch))
		return true;
	/* Say so, then look again: either this worker sees the tile done, or the worker that has
	 * it sees the word and rings (invariant WOKEN, tests/model/unit_wake.pml). */
	if (!atomic_load_explicit(&e->blocked, memory_order_seq_cst))
		atomic_store_explicit(&e->blocked, 1, memory_order_seq_cst);
	return enough(atomic_load_explicit(seen, memory_order_seq_cst), item->batch);
}

static void note_seen(struct sl_cpu_engine *e, const struct item *item)
{
	struct sl_cpu_seen *seen = e->seen[item->pass];

	if (!seen)
		return;
	/* Pairs with may_run(). */
	atomic_store_explicit(&seen[item->number].batches, (uint32_t)(item->batch + 1),
			      memory_order_seq_cst);
	/* Taken back first: a worker that says it again afterwards is heard by the next ring. */
	if (atomic_load_explicit(&e->blocked, memory_order_seq_cst)) {
		atomic_store_explicit(&e->blocked, 0, memory_order_seq_cst);
		sl_bell_ring(e->todo);
	}
}

static bool take_from(struct sl_cpu_engine *e, struct sl_cpu_flight *flight, struct item *item)
{
	uint64_t t = atomic_load_explicit(&flight->ticket, memory_order_acquire); /* open_step() */

	item->flight = flight;
	do {
		uint64_t submitted =
			atomic_load_explicit(&e->submitted, memory_order_acquire); /* submit() */
		uint64_t step = t >> SL_CPU_ITEM_BITS;

		item->batch = step / e->passes.n;
		item->pass = (unsigned)(step % e->passes.n);
		item->number = t & SL_CPU_ITEM_MASK;
		if (item->batch >= submitted ||
		    item->number >= sl_cpu_items(e, &e->passes.pass[item->pass]) ||
		    !may_run(e, item))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&flight->ticket, &t, t + 1, memory_order_acquire, memory_order_acquire));
	return true;
}

/* The oldest batch first: slots of the ring are free again as soon as can be. */
static bool take(struct sl_cpu_engine *e, struct item *item)
{
	uint64_t oldest = atomic_load_explicit(&e->finished, memory_order_relaxed);

	for (unsigned i = 0; i < e->flights; i++)
		if (take_from(e, flight_of(e, oldest + i), item))
			return true;
	return false;
}

/* The first item of a batch that this worker runs: its scratch begins with zeros, and counts. */
static void join(struct sl_cpu_engine *e, unsigned worker, const struct item *item)
{
	uint64_t *begun = &e->worker[worker].begun[item->flight - e->flight];

	if (*begun == item->batch + 1)
		return;
	*begun = item->batch + 1;
	sl_cpu_scratch_clear(e, item->flight, worker, batch_of(e, item->batch)->frames);
	/* Released with the arrival. */
	atomic_fetch_or_explicit(&item->flight->joined, UINT64_C(1) << worker,
				 memory_order_relaxed);
}

int sl_cpu_work_in_order(struct sl_cpu_engine *e, unsigned worker)
{
	struct item item;

	if (!take(e, &item))
		return 0;
	join(e, worker, &item);
	sl_cpu_run_item(e, item.flight, worker, &e->passes.pass[item.pass], batch_of(e, item.batch),
			item.number);
	note_seen(e, &item);
	arrive(e, item.batch, item.pass);
	return 1;
}
