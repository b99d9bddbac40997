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
	struct sl_feed_memory *m = &r->memory[0];
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
	m->node = r->placement.nodes > 1 ? sl_numa_of(m->region.base) : -1;
	return 0;
}

static int open_fill(struct sl_feed_memory *m, uint64_t bytes, enum sl_dtype dtype)
{
	if (m->fill)
		return 0;
	m->fill = malloc(bytes);
	if (!m->fill)
		return -ENOMEM;
	memset(m->fill, SL_FILL_BYTE, bytes);
	/* -1 would be a measurement. */
	for (uint64_t i = 0; dtype == SL_I16 && i < bytes / 2; i++)
		((int16_t *)m->fill)[i] = INT16_MIN;
	return 0;
}

/* Modules of a feed follow those of the one before. */
static void init_feed(struct sl_receiver *r)
{
	struct sl_experiment *e = r->experiment;
	struct sl_feed *f = &r->feed[0];

	f->receiver = r;
	f->modules = r->geometry.modules;
	f->pollers = r->pollers;
	f->link = e->link;
	f->link_state = e->link_state;
	r->feeds = 1;
	r->modules = f->modules;
	r->all_enforced = f->link->guards & SL_GUARD_ENFORCED;
	for (uint32_t m = 0; m < f->modules; m++)
		r->of[f->first + m] = f;
}

const struct sl_feed *sl_receiver_polled(const struct sl_receiver *r, unsigned poller)
{
	unsigned d = 0;

	while (d + 1 < r->feeds && poller >= r->feed[d + 1].first_poller)
		d++;
	return &r->feed[d];
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
	struct sl_feed_memory *m = &r->memory[0];
	struct sl_feed *f = &r->feed[0];
	int err = sl_ring_options_lines(&e->ring, &r->geometry, &lines);

	init_feed(r);
	if (!err && !m->region.base)
		err = open_region(r, &lines);
	if (err)
		return err;
	if (e->ring.poison)
		sl_region_poison(&m->region);
	err = sl_ring_init_lines(&f->ring, &m->region, &r->events, e->ring.slots,
				 r->geometry.modules, &lines);
	if (!err && e->ring.incomplete == SL_INCOMPLETE_KEEP)
		err = open_fill(m, f->ring.record_at, r->geometry.dtype);
	options.fill = m->fill;
	if (!err)
		err = sl_ring_options_align(&e->ring, r->geometry.modules, &options.align);
	if (!err)
		sl_assembler_init(&f->assembler, &f->ring, &options);
	return err;
}
