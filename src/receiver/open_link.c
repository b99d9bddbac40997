/* open_link.c - the link of each detector. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "receiver/private.h"

int sl_receiver_keep_links(struct sl_receiver *r)
{
	for (unsigned d = 0; d <= r->experiment->others; d++) {
		const struct sl_experiment *e = sl_receiver_experiment(r, d);
		size_t bytes = e->link->state_bytes;

		r->memory[d].link_options = malloc(bytes ? bytes : 1);
		if (!r->memory[d].link_options)
			return -ENOMEM;
		memcpy(r->memory[d].link_options, e->link_state, bytes);
	}
	return 0;
}

/* Where the file says that sources take no credits, those guard nothing. */
static uint32_t guards_of(const struct sl_experiment *e)
{
	struct sl_link_facts facts;

	sl_link_facts(e->link, e->link_state, &facts);
	return facts.credits ? e->link->guards : e->link->guards & ~(uint32_t)SL_GUARD_CREDITED;
}

static int open_link(struct sl_receiver *r, struct sl_feed *f)
{
	struct sl_experiment *e = f->experiment;
	struct sl_link_env env = {
		.ring = &f->ring,
		.pollers = f->pollers,
		.wake = r->wake + f->first_poller,
		.counters = &r->counters,
		.flight = r->flight ? r->flight + f->first_poller : NULL,
		.service = sl_experiment_service(e),
		.operation = sl_experiment_operation(e),
		.message = sl_experiment_message(e),
		.pmtu = sl_experiment_pmtu(e),
		.crc = sl_experiment_crc(e),
		.bits = f->geometry->bit_depth,
		.pixel_bytes = (uint32_t)sl_dtype_bytes(f->geometry->dtype),
		.unread_rows = f->geometry->unread_rows,
		.notes = r->notes.base,
	};
	int err, fd;

	if (r->handover_from) {
		fd = fcntl(r->handover_from->link_fd, F_DUPFD_CLOEXEC, 0);
		env.handover_fd = &fd;
	}
	memcpy(e->link_state, r->memory[f - r->feed].link_options, e->link->state_bytes);
	f->link_open = true;
	f->guards = guards_of(e);
	err = e->link->open(e->link_state, &env);
	if (err || f != &r->feed[0])
		return err;
	sl_guard_name(f->guards, r->guard, sizeof(r->guard));
	r->env.link = e->link->name;
	r->env.guard = r->guard;
	r->env.proof = sl_proof_name(sl_experiment_crc(e)
					     ? SL_PROOF_CHECKSUM
					     : e->link->proof(env.service, env.message));
	return 0;
}

int sl_receiver_open_link(struct sl_receiver *r)
{
	int err = 0;

	sl_flight_clear(r->flight, r->pollers);
	for (unsigned d = 0; d < r->feeds && !err; d++)
		err = open_link(r, &r->feed[d]);
	return err;
}
