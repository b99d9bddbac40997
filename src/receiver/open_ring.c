/* open_ring.c - the ring of each detector: its memory, and the assembler over it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host/room.h"
#include "base/log.h"
#include "core/numa.h"
#include "receiver/private.h"

struct sl_experiment *sl_receiver_experiment(const struct sl_receiver *r, unsigned feed)
{
	return feed ? r->experiment->other[feed - 1].experiment : r->experiment;
}

/* The ring's memory stays from run to run. */
static int open_region(struct sl_receiver *r, struct sl_feed *f, struct sl_feed_memory *m,
		       const struct sl_lines *lines)
{
	const struct sl_experiment *e = f->experiment;
	uint64_t bytes = sl_ring_lines_bytes(e->ring.slots, f->modules, lines);
	char what[64];
	int err;

	/* Memory that a keeper holds is there already. */
	snprintf(what, sizeof(what), "a ring of %u slots", e->ring.slots);
	if (!r->handover_from &&
	    !sl_room_for(what, bytes, "make ring.slots smaller, or raise the limit"))
		return -ENOMEM;
	err = f == &r->feed[0] ? sl_receiver_open_memory(r, bytes)
			       : sl_region_open(f->link->places, bytes, &m->region);
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

const struct sl_feed *sl_receiver_polled(const struct sl_receiver *r, unsigned poller)
{
	unsigned d = 0;

	while (d + 1 < r->feeds && poller >= r->feed[d + 1].first_poller)
		d++;
	return &r->feed[d];
}

/* Modules of a feed follow those of the one before; so do its link threads. */
static void init_feed(struct sl_receiver *r, unsigned d)
{
	struct sl_feed *f = &r->feed[d], *before = d ? f - 1 : NULL;

	f->receiver = r;
	f->experiment = sl_receiver_experiment(r, d);
	f->geometry = d ? &r->memory[d].geometry : &r->geometry;
	f->first = d ? before->first + before->modules : 0;
	f->modules = f->geometry->modules;
	f->first_poller = d ? before->first_poller + before->pollers : 0;
	f->pollers = d ? 1 : r->pollers - r->experiment->others;
	f->link = f->experiment->link;
	f->link_state = f->experiment->link_state;
	for (uint32_t m = 0; m < f->modules; m++)
		r->of[f->first + m] = f;
}

static void init_feeds(struct sl_receiver *r)
{
	r->feeds = 1 + r->experiment->others;
	r->modules = 0;
	r->all_enforced = true;
	for (unsigned d = 0; d < r->feeds; d++) {
		init_feed(r, d);
		r->modules += r->feed[d].modules;
		r->all_enforced &= !!(r->feed[d].link->guards & SL_GUARD_ENFORCED);
	}
	sl_join_init(&r->join, 0, r->experiment->ring.incomplete == SL_INCOMPLETE_KEEP);
}

static int open_assembler(struct sl_feed *f, struct sl_feed_memory *m)
{
	struct sl_experiment *e = f->experiment;
	struct sl_assembler_options options = {
		.late_frames = e->ring.late_frames,
		.late_timeout_ns = e->ring.late_timeout_us
					   ? e->ring.late_timeout_us * UINT64_C(1000)
					   : e->ring.late_timeout_ms * UINT64_C(1000000),
		.require_crc = sl_experiment_crc(e),
		.frame_step = f->geometry->frame_step ? f->geometry->frame_step : 1,
		.dtype = f->geometry->dtype,
		.rows = f->geometry->rows,
		.columns = f->geometry->columns,
		.first_module = f->first,
		.fill = m->fill,
	};
	int err = sl_ring_options_align(&e->ring, f->modules, &options.align);

	if (!err)
		sl_assembler_init(&f->assembler, &f->ring, &options);
	return err;
}

static int open_feed(struct sl_receiver *r, unsigned d)
{
	static const struct sl_join_options own = {.by = SL_ALIGN_SEQUENCE};
	struct sl_feed *f = &r->feed[d];
	struct sl_feed_memory *m = &r->memory[d];
	struct sl_experiment *e = f->experiment;
	struct sl_lines lines;
	int err = sl_ring_options_lines(&e->ring, f->geometry, &lines);

	if (!err && !m->region.base)
		err = open_region(r, f, m, &lines);
	if (err)
		return err;
	if (e->ring.poison)
		sl_region_poison(&m->region);
	err = sl_ring_init_lines(&f->ring, &m->region, &r->events, e->ring.slots, f->modules,
				 &lines);
	/* Events are kept or not, whatever detector their parts are of. */
	if (!err && r->experiment->ring.incomplete == SL_INCOMPLETE_KEEP)
		err = open_fill(m, f->ring.record_at, f->geometry->dtype);
	if (!err)
		err = open_assembler(f, m);
	if (!err)
		err = sl_join_add(&r->join, &f->assembler,
				  d ? &r->experiment->other[d - 1].join : &own);
	return err;
}

int sl_receiver_open_ring(struct sl_receiver *r)
{
	int err = 0;

	init_feeds(r);
	for (unsigned d = 0; d < r->feeds && !err; d++)
		err = open_feed(r, d);
	return err;
}
