/* open_ring.c - the ring of a receiver: its memory, and the assembler over it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host/room.h"
#include "base/log.h"
#include "core/numa.h"
#include "receiver/private.h"

/* The ring's memory stays from run to run. */
static int open_region(struct sl_receiver *r, const struct sl_lines *lines)
{
	const struct sl_experiment *e = r->experiment;
	uint64_t bytes = sl_ring_lines_bytes(e->ring.slots, r->geometry.modules, lines);
	char what[64];
	int err;

	/* Memory that a keeper holds is there already. */
	snprintf(what, sizeof(what), "a ring of %u slots", e->ring.slots);
	if (!r->handover_from &&
	    !sl_room_for(what, bytes, "make ring.slots smaller, or raise the limit"))
		return -ENOMEM;
	err = sl_receiver_open_memory(r, bytes);
	if (err == -EINVAL || err == -ENOTSUP)
		return err; /* said there */
	if (err) {
		sl_error("no memory for a ring of %u slots (%.1f GB): %s; lower ring.slots, or "
			 "raise the "
			 "limit that is in the way (ulimit -v, -f for shm)",
			 e->ring.slots, (double)bytes * 1e-9, strerror(-err));
		return err;
	}
	r->ring_node = r->placement.nodes > 1 ? sl_numa_of(r->region.base) : -1;
	return 0;
}

static int open_fill(struct sl_receiver *r)
{
	if (r->fill)
		return 0;
	r->fill = malloc(r->ring.record_at);
	if (!r->fill)
		return -ENOMEM;
	memset(r->fill, SL_FILL_BYTE, r->ring.record_at);
	/* -1 would be a measurement. */
	for (uint64_t i = 0; r->geometry.dtype == SL_I16 && i < r->ring.record_at / 2; i++)
		((int16_t *)r->fill)[i] = INT16_MIN;
	return 0;
}

int sl_receiver_open_ring(struct sl_receiver *r)
{
	struct sl_experiment *e = r->experiment;
	struct sl_lines lines;
	struct sl_assembler_options options = {
		.late_frames = e->ring.late_frames,
		.late_timeout_ns = e->ring.late_timeout_us
					   ? e->ring.late_timeout_us * UINT64_C(1000)
					   : e->ring.late_timeout_ms * UINT64_C(1000000),
		.require_crc = sl_experiment_crc(e),
		.frame_step = r->geometry.frame_step ? r->geometry.frame_step : 1,
		.dtype = r->geometry.dtype,
		.rows = r->geometry.rows,
		.columns = r->geometry.columns,
	};
	int err = sl_ring_options_lines(&e->ring, &r->geometry, &lines);

	if (!err && !r->region.base)
		err = open_region(r, &lines);
	if (err)
		return err;
	if (e->ring.poison)
		sl_region_poison(&r->region);
	err = sl_ring_init_lines(&r->ring, &r->region, &r->events, e->ring.slots,
				 r->geometry.modules, &lines);
	if (!err && e->ring.incomplete == SL_INCOMPLETE_KEEP)
		err = open_fill(r);
	options.fill = r->fill;
	if (!err)
		err = sl_ring_options_align(&e->ring, r->geometry.modules, &options.align);
	if (!err)
		sl_assembler_init(&r->assembler, &r->ring, &options);
	return err;
}
