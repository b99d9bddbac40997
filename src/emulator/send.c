/* send.c - a sender of the front end, a data thread: blocks of its modules onto the link, paced by
 * frame rate, credit and limits.
 *
 * Senders agree on one thing: behind which frame they end when they are told to stop. The first
 * that begins a frame begins it for all of them (em->begun). */
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

static bool ends_at_once(const struct sl_emulator *em)
{
	return atomic_load_explicit(&em->stop, memory_order_relaxed) > 1;
}

/* Of the frame that is next. Frames of a plan are counted from 0 here; the receiver may have had
 * others of the module. */
static uint64_t sequence_of(const struct sl_emulator_module *module)
{
	return module->plan.first_sequence + module->begun - (module->gaps ? 0 : module->skipped);
}

/* How far the link has come with a module: that much may be reused, and counts as sent. What still
 * waits in a queue does not. */
static uint64_t note(struct sl_emulator_sender *sender, struct sl_emulator_module *module)
{
	const struct sl_link_sending *link = sender->emulator->sending;
	uint64_t position = link->reap(sender->link_state, module->plan.transfer);
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
static int wait_for(struct sl_emulator_sender *sender, struct sl_emulator_module *module,
		    uint64_t position)
{
	const struct sl_link_sending *link = sender->emulator->sending;

	while (note(sender, module) < position) {
		int err = link->post(sender->link_state, module->plan.transfer, NULL, 0);

		if (err < 0)
			return err;
		if (note(sender, module) >= position)
			break;
		if (ends_at_once(sender->emulator))
			return -ECANCELED;
		if (sl_idle_sleep(&sender->idle))
			link->wait(sender->link_state, WAIT_US);
	}
	sl_idle_work(&sender->idle);
	return 0;
}

/* The frame's memory, once the frame that had it before is no longer needed. */
static int take_frame(struct sl_emulator_sender *sender, struct sl_emulator_module *module,
		      uint64_t k, struct sl_emulator_frame **frame)
{
	*frame = &module->frame[k % SL_EMULATOR_DEPTH];
	return wait_for(sender, module, (*frame)->position);
}

/* Render the next frame of module m and lay out its writes. */
static int prepare(struct sl_emulator_sender *sender, uint32_t m)
{
	struct sl_emulator_module *module = &sender->emulator->module[m];
	struct sl_emulator_frame *slot;
	uint64_t k = module->begun, sequence = sequence_of(module);
	int err = take_frame(sender, module, k, &slot);

	if (!err)
		err = sl_emulator_block(sender, m, k, sequence, slot);
	if (err)
		return err;
	slot->skipped = module->skipped;
	slot->position = module->end = sl_plan_position(&module->plan, sequence + 1, 0);
	module->begun++;
	module->done = 0;
	return 0;
}

/* The next frame of module m, or none, where it was to miss one. */
static int begin(struct sl_emulator_sender *sender, uint32_t m)
{
	struct sl_emulator *em = sender->emulator;
	struct sl_emulator_module *module = &em->module[m];
	uint64_t sequence = sequence_of(module);
	int err;

	if (!sender->faults ||
	    !sl_faults_skip(sender->faults, (uint16_t)m, module->begun, sequence_of(module)))
		return prepare(sender, m);
	err = sl_emulator_counts_leave_out(em, m, sequence);
	if (err)
		return err;
	module->begun++;
	module->skipped++;
	note(sender, module);
	return sl_emulator_leave_out(sender, module->begun - 1);
}

/* A burst of one module, as far as credit and its limit allow. How many writes. */
static int send_burst(struct sl_emulator_sender *sender, struct sl_emulator_module *module)
{
	uint64_t k = module->begun - 1;
	const struct sl_write *write = module->frame[k % SL_EMULATOR_DEPTH].write + module->done;
	uint32_t left = module->writes - module->done;
	uint64_t now = module->limit.ns_per_byte > 0 ? sl_clock_ns() : 0, bytes = 0;
	bool allowed = sl_limit_allows(&module->limit, now);
	int n = sender->emulator->sending->post(sender->link_state, module->plan.transfer, write,
						!allowed       ? 0
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
static uint64_t next_allowed(const struct sl_emulator_sender *sender)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t m = sender->first_module; m < sender->end_module; m++) {
		const struct sl_emulator_module *module = &sender->emulator->module[m];

		if (module->done < module->writes && module->limit.ns_per_byte > 0 &&
		    module->limit.next_ns < next)
			next = module->limit.next_ns;
	}
	return next;
}

/* For the status: from the first time that nothing could be sent until something was. This thread
 * alone writes. */
static void note_held(struct sl_emulator_sender *sender, uint64_t now_ns)
{
	if (!atomic_load_explicit(&sender->held_since_ns, memory_order_relaxed))
		atomic_store_explicit(&sender->held_since_ns, now_ns, memory_order_relaxed);
}

static void note_released(struct sl_emulator_sender *sender)
{
	uint64_t since = atomic_load_explicit(&sender->held_since_ns, memory_order_relaxed);

	if (!since)
		return;
	atomic_store_explicit(&sender->held_since_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&sender->held_ns,
			      atomic_load_explicit(&sender->held_ns, memory_order_relaxed) +
				      sl_clock_ns() - since,
			      memory_order_relaxed);
}

/* Nothing can be sent now. */
static void rest(struct sl_emulator_sender *sender)
{
	uint64_t now = sl_clock_ns(), next = next_allowed(sender);

	if (next == UINT64_MAX || next <= now)
		note_held(sender, now);
	if (!sl_idle_sleep(&sender->idle))
		return;
	if (next == UINT64_MAX || next <= now)
		sender->emulator->sending->wait(sender->link_state, WAIT_US);
	else
		sl_clock_sleep_until(next - now < WAIT_US * UINT64_C(1000)
					     ? next
					     : now + WAIT_US * UINT64_C(1000));
}

/* A burst of each module in turn, until all that was prepared is out. -ECANCELED: told to end at
 * once. */
static int send_frame(struct sl_emulator_sender *sender)
{
	for (bool left = true; left;) {
		bool progress = false;

		left = false;
		for (uint32_t m = sender->first_module; m < sender->end_module; m++) {
			struct sl_emulator_module *module = &sender->emulator->module[m];
			int n;

			if (module->done == module->writes)
				continue;
			n = send_burst(sender, module);
			if (n < 0)
				return n;
			progress |= n > 0;
			note(sender, module);
			left |= module->done != module->writes;
		}
		if (progress)
			note_released(sender);
		if (ends_at_once(sender->emulator))
			return -ECANCELED;
		if (progress)
			sl_idle_work(&sender->idle);
		else if (left)
			rest(sender);
	}
	return 0;
}

/* Whether module m has a frame to send now that the k'th is due. One that was delayed sends several
 * when it goes on. */
static bool has_frame(struct sl_emulator_sender *sender, uint32_t m, uint64_t k, bool last)
{
	struct sl_emulator *em = sender->emulator;
	struct sl_emulator_module *module = &em->module[m];

	if (module->begun > k || last)
		return module->begun <= k;
	if (module->begun == k && sender->faults &&
	    sl_faults_delay(sender->faults, (uint16_t)m, sequence_of(module)))
		module->delayed_to = k + em->experiment->faults.delay_frames;
	return k >= module->delayed_to;
}

/* All its modules up to the k'th frame; last: those that were delayed, too. */
static int send_due(struct sl_emulator_sender *sender, uint64_t k, bool last)
{
	for (;;) {
		bool some = false;
		int err = 0;

		for (uint32_t m = sender->first_module; m < sender->end_module && !err; m++)
			if (has_frame(sender, m, k, last)) {
				some = true;
				err = begin(sender, m);
			}
		if (!err && some)
			err = send_frame(sender);
		if (err || !some)
			return err;
	}
}

/* Whether everything that was sent is out of the link's hands; lets it go on meanwhile. */
static int settled(struct sl_emulator_sender *sender, bool *all)
{
	const struct sl_link_sending *link = sender->emulator->sending;
	int err = 0;

	*all = true;
	for (uint32_t m = sender->first_module; m < sender->end_module && err >= 0; m++) {
		struct sl_emulator_module *module = &sender->emulator->module[m];

		if (note(sender, module) >= module->end)
			continue;
		*all = false;
		err = link->post(sender->link_state, module->plan.transfer, NULL, 0);
	}
	return err < 0 ? err : 0;
}

/* Told to stop, and no sender has begun the k'th frame. */
static bool ends_before(const struct sl_emulator *em, uint64_t k)
{
	uint64_t begun = atomic_load(&em->begun);

	return ends_at_once(em) || (begun & SL_EMULATOR_STOPPED && begun >> SL_EMULATOR_FLAGS <= k);
}

/* The k'th frame is to be sent, by this sender and all others. False: told to stop before any of
 * them began it. */
static bool begin_frame(struct sl_emulator *em, uint64_t k)
{
	uint64_t begun = atomic_load(&em->begun);

	while (begun >> SL_EMULATOR_FLAGS <= k && !(begun & SL_EMULATOR_STOPPED))
		if (atomic_compare_exchange_weak(&em->begun, &begun, (k + 1) << SL_EMULATOR_FLAGS))
			return !ends_at_once(em);
	return begun >> SL_EMULATOR_FLAGS > k && !ends_at_once(em);
}

/* The front end goes away, by this sender and all others. False: told to stop before any of them
 * went. */
static bool begin_restart(struct sl_emulator *em)
{
	uint64_t begun = atomic_load(&em->begun);

	while (!(begun & (SL_EMULATOR_STOPPED | SL_EMULATOR_RESTARTS)))
		if (atomic_compare_exchange_weak(&em->begun, &begun, begun | SL_EMULATOR_RESTARTS))
			return true;
	return begun & SL_EMULATOR_RESTARTS;
}

void sl_emulator_tell_stop(struct sl_emulator *em, bool at_once)
{
	uint32_t level = at_once ? 2 : 1, before = atomic_load(&em->stop);

	while (before < level && !atomic_compare_exchange_weak(&em->stop, &before, level))
		continue;
	atomic_fetch_or(&em->begun, SL_EMULATOR_STOPPED);
}

/* Until the next frame is due, in bites, so that a slow detector can still be stopped soon. */
static int wait_until(struct sl_emulator_sender *sender, uint64_t k)
{
	struct sl_emulator *em = sender->emulator;
	uint64_t due_ns = sl_pace_due(&sender->pace, k), now;
	bool all = false;
	int err;

	while ((now = sl_clock_ns()) < due_ns && !ends_before(em, k)) {
		err = all ? 0 : settled(sender, &all);
		if (err)
			return err;
		if (sender->idle.polling == SL_POLLING_LATENCY)
			sl_idle_sleep(&sender->idle); /* it never does */
		else if (all)
			sl_clock_sleep_until(due_ns - now < NAP_NS ? due_ns : now + NAP_NS);
		else if (due_ns - now > WAIT_US * UINT64_C(1000))
			em->sending->wait(sender->link_state, WAIT_US);
		else
			sl_clock_sleep_until(due_ns);
	}
	return 0;
}

/* All that was posted is with the receiver, or was given up: then the link may be closed. */
static int drain(struct sl_emulator_sender *sender)
{
	const struct sl_link_sending *link = sender->emulator->sending;
	int err = 0;

	for (uint32_t m = sender->first_module; m < sender->end_module && !err; m++) {
		struct sl_emulator_module *module = &sender->emulator->module[m];

		if (link->flush)
			err = link->flush(sender->link_state, module->plan.transfer);
		if (!err)
			err = wait_for(sender, module, module->end);
	}
	return err;
}

/* Write down that a module goes away. The log is emptied all the time: wait where it is full, for
 * this front end goes away as a whole. */
static int note_restart(struct sl_emulator_sender *sender, uint32_t m)
{
	struct sl_emulator_module *module = &sender->emulator->module[m];

	while (!sl_faults_restart(sender->faults, (uint16_t)m, sequence_of(module))) {
		if (ends_at_once(sender->emulator))
			return -ECANCELED;
		sl_clock_sleep_until(sl_clock_ns() + WAIT_US * UINT64_C(1000));
	}
	return 0;
}

/* -ERESTART: this front end goes away before the k'th frame, once. Those that were delayed go
 * first, so that the log says behind which sequence it went. */
static int restarts(struct sl_emulator_sender *sender, uint64_t k)
{
	int err;

	if (k != sender->emulator->restart_at || !begin_restart(sender->emulator))
		return 0;
	err = send_due(sender, k - 1, true);
	for (uint32_t m = sender->first_module; m < sender->end_module && !err; m++)
		err = note_restart(sender, m);
	if (!err)
		err = sl_emulator_stay_away(sender, k);
	return err ? err : -ERESTART;
}

/* Frame after frame. *k: those that were begun. */
static int send_frames(struct sl_emulator_sender *sender, uint64_t *k)
{
	struct sl_emulator *em = sender->emulator;
	int err = 0;

	for (*k = 0; *k < em->to_send && !err; ++*k) {
		err = restarts(sender, *k);
		if (!err)
			err = wait_until(sender, *k);
		if (err || !begin_frame(em, *k))
			break;
		sl_pace_note(&sender->pace, *k, sl_clock_ns());
		/* The frame number is spent even when the frame is cut short: the next plan starts
		 * after it. */
		err = send_due(sender, *k, false);
	}
	return err;
}

/* An error of one sender ends all; the first counts, and a restart only where there is none. */
static void fail(struct sl_emulator *em, int err)
{
	int before = 0;

	if (!atomic_compare_exchange_strong(&em->error, &before, err) && before == -ERESTART)
		atomic_compare_exchange_strong(&em->error, &before, err);
	if (err != -ERESTART)
		sl_emulator_tell_stop(em, true);
}

void *sl_emulator_send(void *arg)
{
	struct sl_emulator_sender *sender = arg;
	struct sl_emulator *em = sender->emulator;
	uint64_t k;
	int err;

	sl_data_thread_begin("front end");
	err = send_frames(sender, &k);
	if ((!err || err == -ERESTART) && k) {
		int end = send_due(sender, k - 1, true);

		if (!end)
			end = drain(sender);
		err = end ? end : err;
	}
	sl_data_thread_end();
	note_released(sender);
	if (err && err != -ECANCELED)
		fail(em, err);
	atomic_fetch_add(&em->finished, 1);
	return NULL;
}
