/* again.c - between two runs of a session: what is slow to make stays, all else is made anew.
 *
 * The ring's memory, the detector, stages with their tables and the pool of frames stay. The link
 * is closed at the end of a run and opened at the beginning of the next: new queue pairs and keys,
 * so that a packet of the earlier run that arrives late is refused and never taken for a new
 * one. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "core/numa.h"
#include "receiver/private.h"

void sl_receiver_rest(struct sl_receiver *r)
{
	sl_receiver_close_run(r);
	r->resting = true;
}

/* Sequences begin at 0 again: a record that is left from the earlier run would have the sequence
 * of a new one. */
static void clear_records(struct sl_receiver *r)
{
	for (unsigned d = 0; d < r->feeds; d++) {
		struct sl_ring *ring = &r->feed[d].ring;

		for (uint64_t k = 0; k < ring->slots; k++)
			for (uint32_t m = 0; m < ring->modules; m++)
				memset(sl_ring_record(ring, k, m), 0, SL_RECORD_BYTES);
	}
}

/* Stages forget what they learned; those that learn nothing are as they were after open(). */
static int reset_stages(struct sl_receiver *r)
{
	for (unsigned s = 0; s < r->build.chain.stages; s++) {
		const struct sl_chain_stage *stage = &r->build.chain.stage[s];
		int err;

		if (!stage->ops->ordered)
			continue;
		err = stage->ops->again ? stage->ops->again(stage->state) : -ENOTSUP;
		if (err)
			return err;
	}
	return 0;
}

static int reset_unit(struct sl_receiver *r)
{
	const struct sl_unit *unit = r->experiment->unit;
	int err = unit->again ? unit->again(r->experiment->unit_state) : -ENOTSUP;

	if (!err)
		err = reset_stages(r);
	if (err)
		return err;
	sl_queue_clear(&r->to_settle);
	sl_pool_reset(&r->pool);
	sl_pool_reset(&r->dropped);
	return 0;
}

/* A unit or a stage that cannot begin again is closed and opened, and the others with it. */
static int renew_unit(struct sl_receiver *r)
{
	int node = r->experiment->threads.numa ? r->placement.node : -1;
	int preferred, err;

	if (!reset_unit(r))
		return 0;
	sl_receiver_close_unit(r);
	sl_experiment_renew_stages(r->experiment);
	preferred = node >= 0 ? sl_numa_prefer(node) : -EINVAL;
	err = sl_receiver_open_unit(r);
	if (!preferred)
		sl_numa_forget();
	return err;
}

int sl_receiver_again(struct sl_receiver *r, const char *outcomes_path)
{
	int err;

	sl_receiver_begin_run(r);
	err = sl_ledger_init(&r->ledger, sl_experiment_modules(r->experiment));
	if (!err)
		err = sl_receiver_open_ring(r);
	if (!err) {
		clear_records(r);
		err = sl_receiver_open_link(r);
	}
	if (!err)
		err = renew_unit(r);
	if (!err)
		err = sl_receiver_open_outputs(r, outcomes_path);
	return err;
}
