/* senders.c - the threads that send: which modules each has, and what each has of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "emulator/parts.h"

/* ---- before and after all plans ---- */

static int open_sender(struct sl_emulator *em, struct sl_emulator_sender *sender)
{
	const struct sl_experiment *e = em->experiment;

	sender->link_state = calloc(1, e->link->state_bytes ? e->link->state_bytes : 1);
	if (!sender->link_state)
		return -ENOMEM;
	if (!sl_fault_options_any(&e->faults))
		return 0;
	sender->faults = calloc(1, sizeof(*sender->faults));
	if (!sender->faults)
		return -ENOMEM;
	sl_faults_init(sender->faults, &e->faults);
	return 0;
}

int sl_emulator_senders_open(struct sl_emulator *em)
{
	uint32_t modules = em->end_module - em->first_module;
	size_t bytes = em->senders * sizeof(*em->sender);
	int err = 0;

	em->sender = aligned_alloc(alignof(struct sl_emulator_sender), bytes);
	if (!em->sender)
		return -ENOMEM;
	memset(em->sender, 0, bytes);
	for (unsigned i = 0; i < em->senders; i++) {
		struct sl_emulator_sender *sender = &em->sender[i];

		sender->emulator = em;
		sender->index = i;
		sender->first_module = em->first_module + i * modules / em->senders;
		sender->end_module = em->first_module + (i + 1) * modules / em->senders;
		err = err ? err : open_sender(em, sender);
	}
	return err;
}

void sl_emulator_senders_close(struct sl_emulator *em)
{
	for (unsigned i = 0; em->sender && i < em->senders; i++) {
		free(em->sender[i].link_state);
		free(em->sender[i].faults);
	}
	free(em->sender);
	em->sender = NULL;
}

struct sl_emulator_sender *sl_emulator_sender_of(struct sl_emulator *em, uint32_t module)
{
	unsigned i = 0;

	while (i < em->senders - 1 && module >= em->sender[i].end_module)
		i++;
	return &em->sender[i];
}

void sl_emulator_senders_again(struct sl_emulator *em)
{
	for (unsigned i = 0; i < em->senders; i++)
		if (em->sender[i].faults)
			sl_faults_init(em->sender[i].faults, &em->experiment->faults);
}

/* ---- a plan ---- */

static int connect_sender(struct sl_emulator *em, struct sl_emulator_sender *sender)
{
	const struct sl_experiment *e = em->experiment;
	struct sl_link_env env = {
		.service = sl_experiment_service(e),
		.counters = &em->counters,
		.bits = em->geometry.bit_depth,
		.pixel_bytes = (uint32_t)sl_dtype_bytes(em->geometry.dtype),
		.unread_rows = em->geometry.unread_rows,
		.fault = sl_fault_options_of_packets(&e->faults) ? sl_faults_of_packet : NULL,
		.fault_arg = sender->faults,
		.hold = sender->faults && e->faults.reorder > 0 ? e->faults.reorder_packets : 0,
	};

	memcpy(sender->link_state, em->link_options, e->link->state_bytes);
	sender->link_open = true; /* close() is due even when open() fails */
	return e->link->open(sender->link_state, &env);
}

int sl_emulator_senders_connect(struct sl_emulator *em)
{
	int err = 0;

	for (unsigned i = 0; i < em->senders && !err; i++)
		err = connect_sender(em, &em->sender[i]);
	return err;
}

/* All of them go away before the same frame. */
static void choose_restart(struct sl_emulator *em)
{
	uint64_t after = em->experiment->faults.restart_after;

	em->restart_at = UINT64_MAX;
	if (em->restart)
		em->restart_at = after > em->first_frame ? after - em->first_frame : 1;
}

int sl_emulator_senders_start(struct sl_emulator *em)
{
	int err = 0;

	choose_restart(em);
	sl_pace_begin(&em->pace, em->experiment->run.frame_rate_Hz, sl_clock_ns());
	for (unsigned i = 0; i < em->senders && !err; i++) {
		struct sl_emulator_sender *sender = &em->sender[i];
		char name[24] = "front-end"; /* the kernel keeps 15 characters */
		cpu_set_t set;

		if (em->senders > 1)
			snprintf(name, sizeof(name), "front-end-%u", i);
		sl_pace_begin(&sender->pace, em->pace.rate_Hz, em->pace.start_ns);
		sl_placement_idle(&em->placement, em->experiment, &sender->idle);
		err = sl_thread_start(&sender->thread, name,
				      sl_placement_of(&em->placement, SL_ROLE_SOURCE, i, &set),
				      sl_emulator_send, sender);
	}
	if (err)
		sl_emulator_tell_stop(em, true); /* to those that run already */
	return err;
}

uint64_t sl_emulator_held_ns(const struct sl_emulator *em, bool *held)
{
	uint64_t now_ns = sl_clock_ns(), sum = 0;

	*held = false;
	for (unsigned i = 0; i < em->senders; i++) {
		const struct sl_emulator_sender *sender = &em->sender[i];
		uint64_t since = atomic_load_explicit(&sender->held_since_ns, memory_order_relaxed);

		sum += atomic_load_explicit(&sender->held_ns, memory_order_relaxed);
		if (since && now_ns > since)
			sum += now_ns - since;
		*held |= since != 0;
	}
	return sum;
}

/* Frames of a plan that are not dark. */
static uint64_t bright_of(const struct sl_emulator *em, uint64_t frames)
{
	uint64_t first = em->joined ? em->first_frame : 0, dark = em->darks.first;
	uint64_t dark_here = dark > first ? dark - first : 0;

	return frames > dark_here ? frames - dark_here : 0;
}

static void count_frames(struct sl_emulator *em)
{
	uint64_t begun = atomic_exchange(&em->begun, 0), frames = begun >> SL_EMULATOR_FLAGS;

	em->frame += frames;
	if (em->bright_left != UINT64_MAX)
		em->bright_left -= bright_of(em, frames);
	if (begun & SL_EMULATOR_RESTARTS)
		em->restart = false;
}

void sl_emulator_senders_end(struct sl_emulator *em)
{
	for (unsigned i = 0; i < em->senders; i++)
		sl_thread_join(&em->sender[i].thread);
	for (unsigned i = 0; i < em->senders; i++) {
		struct sl_emulator_sender *sender = &em->sender[i];

		sl_histogram_merge(&em->pace.late, &sender->pace.late);
		sender->pace = (struct sl_pace){.rate_Hz = 0}; /* it is not added twice */
	}
	count_frames(em);
}

void sl_emulator_senders_disconnect(struct sl_emulator *em)
{
	for (unsigned i = 0; i < em->senders; i++) {
		struct sl_emulator_sender *sender = &em->sender[i];

		if (sender->link_open)
			em->experiment->link->close(sender->link_state);
		sender->link_open = false;
	}
}
