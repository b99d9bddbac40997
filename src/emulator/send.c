/* send.c - the front end's data thread: blocks onto the link, paced by frame rate, credit
 * and limits. */
#include <errno.h>

#include "base/clock.h"
#include "base/datathread.h"
#include "emulator/counts.h"
#include "emulator/parts.h"

enum {
	WAIT_US = 1000,
	BURST = 32, /* writes of one module before the next has its turn */
	NAP_NS = 50 * 1000 * 1000,
};

/* Of the frame that is next. Frames of a plan are counted from 0 here; the receiver may have had
 * others of the module. */
static uint64_t sequence_of(const struct sl_emulator_module *module)
{
	return module->plan.first_sequence + module->begun - (module->gaps ? 0 : module->skipped);
}

/* How far the link has come with a module: that much may be reused, and counts as sent. What still
 * waits in a queue does not. */
static uint64_t note(struct sl_emulator *em, struct sl_emulator_module *module)
{
	uint64_t position = em->sending->reap(em->experiment->link_state, module->plan.transfer);
	uint64_t next = sequence_of(module), skipped = module->skipped, passed;

	for (unsigned i = 0; i < SL_EMULATOR_DEPTH; i++) {
		const struct sl_emulator_frame *frame = &module->frame[i];

		if (frame->position <= position || frame->sequence >= next)
			continue;
		next = frame->sequence;
		skipped = frame->skipped;
	}
	/* What was left out need not be waited for: nothing of it will come. */
	passed = sl_plan_position(&module->plan, next, 0);
	atomic_store_explicit(&module->next, next, memory_order_relaxed);
	atomic_store_explicit(&module->sent, next - (module->gaps ? skipped : 0),
			      memory_order_release);
	atomic_store_explicit(&module->position, passed > position ? passed : position,
			      memory_order_release);
	return position;
}

/* Wait until the link has no need of what ends at position. -ECANCELED: told to end at once. */
static int wait_for(struct sl_emulator *em, struct sl_emulator_module *module, uint64_t position)
{
	const struct sl_link_sending *link = em->sending;
	void *state = em->experiment->link_state;

	while (note(em, module) < position) {
		int err = link->post(state, module->plan.transfer, NULL, 0);

		if (err < 0)
			return err;
		if (note(em, module) >= position)
			break;
		if (atomic_load_explicit(&em->stop, memory_order_relaxed) > 1)
			return -ECANCELED;
		if (sl_idle_sleep(&em->idle))
			link->wait(state, WAIT_US);
	}
	sl_idle_work(&em->idle);
	return 0;
}

/* The frame's memory, once the frame that had it before is no longer needed. */
static int take_frame(struct sl_emulator *em, struct sl_emulator_module *module, uint64_t k,
		      struct sl_emulator_frame **frame)
{
	*frame = &module->frame[k % SL_EMULATOR_DEPTH];
	return wait_for(em, module, (*frame)->position);
}

/* Render the next frame of module m and lay out its writes. */
static int prepare(struct sl_emulator *em, uint32_t m)
{
	struct sl_emulator_module *module = &em->module[m];
	struct sl_emulator_frame *slot;
	uint64_t k = module->begun, sequence = sequence_of(module);
	int err = take_frame(em, module, k, &slot);

	if (!err)
		err = sl_emulator_block(em, m, k, sequence, slot);
	if (err)
		return err;
	slot->skipped = module->skipped;
	slot->position = module->end = sl_plan_position(&module->plan, sequence + 1, 0);
	module->begun++;
	module->done = 0;
	return 0;
}

/* The next frame of module m, or none, where it was to miss one. */
static int begin(struct sl_emulator *em, uint32_t m)
{
	struct sl_emulator_module *module = &em->module[m];
	uint64_t sequence = sequence_of(module);
	int err;

	if (!em->faults ||
	    !sl_faults_skip(em->faults, (uint16_t)m, module->begun, sequence_of(module)))
		return prepare(em, m);
	err = sl_emulator_counts_leave_out(em, m, sequence);
	if (err)
		return err;
	module->begun++;
	module->skipped++;
	note(em, module);
	return sl_emulator_leave_out(em, module->begun - 1);
}

/* A burst of one module, as far as credit and its limit allow. How many writes. */
static int send_burst(struct sl_emulator *em, struct sl_emulator_module *module)
{
	uint64_t k = module->begun - 1;
	const struct sl_write *write = module->frame[k % SL_EMULATOR_DEPTH].write + module->done;
	uint32_t left = module->writes - module->done;
	uint64_t now = module->limit.ns_per_byte > 0 ? sl_clock_ns() : 0, bytes = 0;
	bool allowed = sl_limit_allows(&module->limit, now);
	int n = em->sending->post(em->experiment->link_state, module->plan.transfer, write,
				  !allowed	 ? 0
				  : left < BURST ? left
						 : BURST);

	for (int i = 0; i < n; i++)
		bytes += write[i].bytes;
	if (n > 0) {
		sl_limit_spend(&module->limit, bytes, now);
		module->done += (uint32_t)n;
	}
	return n;
}

/* When a module that is held back by its limit may go on; UINT64_MAX: none is. */
static uint64_t next_allowed(const struct sl_emulator *em)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t m = em->first_module; m < em->end_module; m++) {
		const struct sl_emulator_module *module = &em->module[m];

		if (module->done < module->writes && module->limit.ns_per_byte > 0 &&
		    module->limit.next_ns < next)
			next = module->limit.next_ns;
	}
	return next;
}

/* Nothing can be sent now. */
static void rest(struct sl_emulator *em)
{
	uint64_t now = sl_clock_ns(), next = next_allowed(em);

	if (!sl_idle_sleep(&em->idle))
		return;
	if (next == UINT64_MAX || next <= now)
		em->sending->wait(em->experiment->link_state, WAIT_US);
	else
		sl_clock_sleep_until(next - now < WAIT_US * UINT64_C(1000)
					     ? next
					     : now + WAIT_US * UINT64_C(1000));
}

/* A burst of each module in turn, until all that was prepared is out. -ECANCELED: told to end at
 * once. */
static int send_frame(struct sl_emulator *em)
{
	for (bool left = true; left;) {
		bool progress = false;

		left = false;
		for (uint32_t m = em->first_module; m < em->end_module; m++) {
			struct sl_emulator_module *module = &em->module[m];
			int n;

			if (module->done == module->writes)
				continue;
			n = send_burst(em, module);
			if (n < 0)
				return n;
			progress |= n > 0;
			note(em, module);
			left |= module->done != module->writes;
		}
		if (atomic_load_explicit(&em->stop, memory_order_relaxed) > 1)
			return -ECANCELED;
		if (progress)
			sl_idle_work(&em->idle);
		else if (left)
			rest(em);
	}
	return 0;
}

/* Whether module m has a frame to send now that the k'th is due. One that was delayed sends several
 * when it goes on. */
static bool has_frame(struct sl_emulator *em, uint32_t m, uint64_t k, bool last)
{
	struct sl_emulator_module *module = &em->module[m];

	if (module->begun > k || last)
		return module->begun <= k;
	if (module->begun == k && em->faults &&
	    sl_faults_delay(em->faults, (uint16_t)m, sequence_of(module)))
		module->delayed_to = k + em->experiment->faults.delay_frames;
	return k >= module->delayed_to;
}

/* All modules up to the k'th frame; last: those that were delayed, too. */
static int send_due(struct sl_emulator *em, uint64_t k, bool last)
{
	for (;;) {
		bool some = false;
		int err = 0;

		for (uint32_t m = em->first_module; m < em->end_module && !err; m++)
			if (has_frame(em, m, k, last)) {
				some = true;
				err = begin(em, m);
			}
		if (!err && some)
			err = send_frame(em);
		if (err || !some)
			return err;
	}
}

/* Whether everything that was sent is out of the link's hands; lets it go on meanwhile. */
static int settled(struct sl_emulator *em, bool *all)
{
	const struct sl_link_sending *link = em->sending;
	int err = 0;

	*all = true;
	for (uint32_t m = em->first_module; m < em->end_module && err >= 0; m++) {
		struct sl_emulator_module *module = &em->module[m];

		if (note(em, module) >= module->end)
			continue;
		*all = false;
		err = link->post(em->experiment->link_state, module->plan.transfer, NULL, 0);
	}
	return err < 0 ? err : 0;
}

/* Until the next frame is due, in bites, so that a slow detector can still be stopped soon. */
static int wait_until(struct sl_emulator *em, uint64_t due_ns)
{
	bool all = false;
	uint64_t now;
	int err;

	while ((now = sl_clock_ns()) < due_ns && !atomic_load(&em->stop)) {
		err = all ? 0 : settled(em, &all);
		if (err)
			return err;
		if (em->idle.polling == SL_POLLING_LATENCY)
			sl_idle_sleep(&em->idle); /* it never does */
		else if (all)
			sl_clock_sleep_until(due_ns - now < NAP_NS ? due_ns : now + NAP_NS);
		else if (due_ns - now > WAIT_US * UINT64_C(1000))
			em->sending->wait(em->experiment->link_state, WAIT_US);
		else
			sl_clock_sleep_until(due_ns);
	}
	return 0;
}

/* All that was posted is with the receiver, or was given up: then the link may be closed. */
static int drain(struct sl_emulator *em)
{
	const struct sl_link_sending *link = em->sending;
	int err = 0;

	for (uint32_t m = em->first_module; m < em->end_module && !err; m++) {
		struct sl_emulator_module *module = &em->module[m];

		if (link->flush)
			err = link->flush(em->experiment->link_state, module->plan.transfer);
		if (!err)
			err = wait_for(em, module, module->end);
	}
	return err;
}

/* -ERESTART: this front end goes away before the k'th frame, once. Those that were delayed go
 * first, so that the log says behind which sequence it went. */
static int restarts(struct sl_emulator *em, uint64_t k)
{
	bool all = true;
	int err;

	if (!em->restart || em->frame < em->experiment->faults.restart_after || !k)
		return 0;
	em->restart = false;
	err = send_due(em, k - 1, true);
	for (uint32_t m = em->first_module; m < em->end_module && !err; m++)
		all &= sl_faults_restart(em->faults, (uint16_t)m, sequence_of(&em->module[m]));
	if (!err && all)
		err = sl_emulator_stay_away(em, k);
	return err ? err : all ? -ERESTART : 0;
}

void *sl_emulator_send(void *arg)
{
	struct sl_emulator *em = arg;
	uint64_t k;
	int err = 0;

	sl_pace_begin(&em->pace, em->experiment->run.frame_rate_Hz, sl_clock_ns());
	sl_data_thread_begin("front end");
	for (k = 0; k < em->to_send && !err && !atomic_load(&em->stop); k++) {
		err = restarts(em, k);
		if (err)
			break;
		err = wait_until(em, sl_pace_due(&em->pace, k));
		if (sl_clock_ns() < sl_pace_due(&em->pace, k))
			break; /* told to stop before it was due */
		sl_pace_note(&em->pace, k, sl_clock_ns());
		if (!err)
			err = send_due(em, k, false);
		/* The frame number is spent even when the frame was cut short: the next plan
		 * starts after it. */
		em->frame++;
		if ((em->joined ? em->first_frame + k : k) >= em->darks.first &&
		    em->bright_left != UINT64_MAX)
			em->bright_left--;
	}
	if ((!err || err == -ERESTART) && k) {
		int end = send_due(em, k - 1, true);

		if (!end)
			end = drain(em);
		err = end ? end : err;
	}
	sl_data_thread_end();
	if (err != -ECANCELED)
		atomic_store(&em->error, err);
	atomic_store(&em->finished, 1);
	return NULL;
}
