/* fault_run.h - a mix, run: the receiver and its front ends in this process, without the
 * control protocol.
 *
 * Threads:   the caller's goes round the front ends; a second one answers for the receiver, since
 *            shared memory is handed over in a conversation.
 * Ownership: one run per process; what goes wrong ends it with a word. */
#ifndef TESTS_LIB_FAULT_RUN_H
#define TESTS_LIB_FAULT_RUN_H

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emulator/emulator.h"
#include "lib/fake_verbs.h"
#include "lib/fault_mix_file.h"
#include "lib/fault_pixels.h"
#include "receiver/private.h"

enum { RUN_TURN_NS = 1000000 };
enum run_state { RUN_OFFERS, RUN_SENDS, RUN_IS_DONE };

struct run_front {
	struct sl_experiment *experiment;
	struct sl_emulator *emulator;
	uint32_t first, end; /* modules */
	uint32_t offered;    /* as far as that */
	bool waits;	     /* `offer` was made, and not answered yet */
	struct sl_offer offer;
	enum run_state state;
	bool back, missed; /* missed: it came back when the run was over */
	char log[96];
};

static struct run {
	struct mix mix;
	char folder[64], file[96], outcomes[96], wire_log[96];
	struct sl_experiment *here;
	struct sl_receiver *receiver;
	struct run_front front[MIX_MODULES];
	struct sl_plan plan[MIX_MODULES];
	struct sl_faults *wire; /* what a NIC's wire loses */
	FILE *wire_file;
	bool stopped; /* ring.overrun stop */
	pthread_t server;
	pthread_mutex_t serving;
	_Atomic uint32_t ended;
} run = {.serving = PTHREAD_MUTEX_INITIALIZER};

static inline void wrong(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

/* ---- files and devices ---- */

static inline void run_write_file(bool aloud)
{
	unsigned pid = (unsigned)getpid(), net = 11 + pid / 31250 % 80, sub = 1 + pid / 125 % 250;
	const char *tmp = getenv("TMPDIR");
	char listen[32], source[32];
	FILE *file;

	snprintf(run.folder, sizeof(run.folder), "%s/sluice-mix-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(run.folder))
		wrong("no folder: %s", strerror(errno));
	snprintf(run.file, sizeof(run.file), "%s/mix.yaml", run.folder);
	snprintf(run.outcomes, sizeof(run.outcomes), "%s/outcomes.txt", run.folder);
	snprintf(run.wire_log, sizeof(run.wire_log), "%s/wire.txt", run.folder);
	snprintf(listen, sizeof(listen), "127.%u.%u.%u", net, sub, pid % 125 * 2 + 1);
	snprintf(source, sizeof(source), "127.%u.%u.%u", net, sub, pid % 125 * 2 + 2);
	file = fopen(run.file, "w");
	if (!file)
		wrong("no file: %s", strerror(errno));
	mix_write(&run.mix, file, listen, source);
	if (aloud)
		mix_write(&run.mix, stdout, listen, source);
	fclose(file);
	if (run.mix.link == MIX_VERBS) {
		fake_verbs_add("fake0", listen);
		fake_verbs_add("fake0", source);
		/* A receiver grants credit as soon as it has a plan, and the source connects when
		 * it gets that. A NIC has seconds for it. */
		fake_verbs_retry(UINT32_MAX);
	}
}

static inline void run_remove_files(void)
{
	for (unsigned i = 0; i < run.mix.fronts; i++)
		unlink(run.front[i].log);
	unlink(run.file);
	unlink(run.outcomes);
	unlink(run.wire_log);
	rmdir(run.folder);
}

/* The PSN says which packet of which sequence this is. */
static inline bool run_wire_loses(void *arg, uint32_t qpn, uint32_t psn)
{
	for (uint32_t m = 0; m < run.mix.modules; m++) {
		const struct sl_plan *plan = &run.plan[m];
		uint32_t packet = (psn - plan->first_psn) & 0xffffff;

		if (plan->version && plan->qpn == qpn)
			return sl_faults_of_packet(arg, (uint16_t)m,
						   plan->first_sequence + packet / plan->packets,
						   packet % plan->packets) == SL_PACKET_FAULT_DROP;
	}
	return false;
}

static inline void run_open_wire(void)
{
	const struct sl_fault_options options = {.drop = run.mix.drop_on_wire,
						 .fault_seed = run.mix.fault_seed};

	if (!run.mix.drop_on_wire)
		return;
	run.wire = calloc(1, sizeof(*run.wire));
	run.wire_file = fopen(run.wire_log, "w");
	if (!run.wire || !run.wire_file)
		wrong("no log");
	sl_faults_init(run.wire, &options);
	fake_verbs_lose(run_wire_loses, run.wire);
}

static inline void run_drain_wire(void)
{
	struct sl_fault fault;

	while (run.wire && sl_faults_drain(run.wire, &fault))
		fprintf(run.wire_file, "%u %llu %u %s\n", fault.module,
			(unsigned long long)fault.sequence, fault.packet,
			sl_fault_name(fault.kind));
}

/* ---- open ---- */

static inline void run_open_front(unsigned index)
{
	const struct mix *mix = &run.mix;
	struct run_front *front = &run.front[index];
	uint32_t first = mix->front_at[index], end = mix->front_at[index + 1];
	const char *transfer = mix->stacked ? "part" : NULL;
	char log[128], after[64], frames[64], modules[64];
	const char *sets[] = {log, after, frames, modules};
	bool restarts = mix->restarts >> index & 1;

	front->first = front->offered = first;
	front->end = end;
	snprintf(log, sizeof(log), "frontend.fault_log=%s/faults%u.txt", run.folder, index);
	snprintf(front->log, sizeof(front->log), "%s/faults%u.txt%s", run.folder, index,
		 mix->stacked ? ".part" : ""); /* each transfer has a log of its own */
	snprintf(after, sizeof(after), "frontend.restart_after=%llu",
		 (unsigned long long)(mix->first + mix->restart_after));
	snprintf(frames, sizeof(frames), "frontend.restart_frames=%u", mix->restart_frames);
	snprintf(modules, sizeof(modules), "frontend.fault_modules=%u-%u", first, end - 1);
	if (sl_experiment_open(run.file, transfer, sets, restarts ? 4 : 1, &front->experiment) ||
	    sl_emulator_open(front->experiment, first, end - 1, &front->emulator) ||
	    (mix->first && sl_emulator_join(front->emulator, mix->first)) ||
	    sl_emulator_plan_begin(front->emulator))
		wrong("front end %u cannot be opened", index);
}

static inline void *run_serve(void *arg)
{
	while (!atomic_load(&run.ended)) {
		pthread_mutex_lock(&run.serving);
		sl_receiver_serve(run.receiver);
		pthread_mutex_unlock(&run.serving);
		sl_clock_sleep_until(sl_clock_ns() + 500000);
	}
	return arg;
}

/* One module further with its plans. False: not now. */
static inline bool run_offer(struct run_front *front)
{
	uint32_t m = front->offered;
	char why[160] = "";
	int err;

	if (!front->waits && sl_emulator_offer(front->emulator, m, &front->offer))
		wrong("module %u cannot offer", m);
	front->waits = true;
	if (run.mix.open_loop)
		front->offer.credit_va = 0;
	pthread_mutex_lock(&run.serving);
	err = sl_receiver_accept(run.receiver, &front->offer, true, &run.plan[m], why, sizeof(why));
	pthread_mutex_unlock(&run.serving);
	if (err == -EAGAIN && front->back)
		return false;
	if (err == -EBUSY && front->back && m == front->first) {
		front->missed = true;
		return false;
	}
	if (err || sl_emulator_connect(front->emulator, &run.plan[m]))
		wrong("module %u finds no plan: %s", m, why);
	if (run.plan[m].packets != run.mix.packets)
		wrong("%u packets a block, not %u", run.plan[m].packets, run.mix.packets);
	front->waits = false;
	front->offered++;
	return true;
}

static inline void run_begin(void)
{
	const struct mix *mix = &run.mix;

	if (sl_experiment_open(run.file, mix->stacked ? "part" : NULL, NULL, 0, &run.here))
		wrong("the receiver's side cannot be opened");
	pixels_watch(run.here, mix);
	if (sl_receiver_open(run.here, run.outcomes, &run.receiver))
		wrong("the receiver cannot be opened");
	for (unsigned i = 0; i < run.mix.fronts; i++)
		run_open_front(i);
	if (pthread_create(&run.server, NULL, run_serve, NULL))
		wrong("no thread");
	for (unsigned i = 0; i < run.mix.fronts; i++)
		while (run.front[i].offered < run.front[i].end)
			run_offer(&run.front[i]);
	run_open_wire();
	for (uint32_t i = 0; i < mix->trespasses; i++)
		sl_ring_turn_away(&run.receiver->feed[0].ring, mix->trespass[i],
				  mix->trespass_module[i]);
	if (mix->restarts)
		sl_receiver_limit(run.receiver, mix->limit);
	if (sl_receiver_start(run.receiver))
		wrong("the receiver cannot be started");
	for (unsigned i = 0; i < run.mix.fronts; i++) {
		run.front[i].state = RUN_SENDS;
		if (sl_emulator_start(run.front[i].emulator))
			wrong("front end %u cannot be started", i);
	}
}

/* ---- until all is sent and settled ---- */

static inline void run_pass_counts(const struct run_front *front, bool final)
{
	for (uint32_t m = front->first; m < front->end; m++) {
		struct sl_emulator_module *module = &front->emulator->module[m];
		uint64_t position = atomic_load(&module->position);
		uint64_t sent = atomic_load(&module->sent), next = atomic_load(&module->next);
		char why[160];

		if (sl_receiver_count(run.receiver, m, next, sent, position, final, why,
				      sizeof(why)))
			wrong("%s", why);
	}
}

/* It is gone. Whether it comes back. */
static inline bool run_end_plan(struct run_front *front)
{
	int err;

	run_pass_counts(front, true);
	err = sl_emulator_plan_end(front->emulator);
	if (err && err != -ERESTART)
		wrong("sending failed: %s", strerror(-err));
	if (!err)
		return false;
	err = sl_emulator_rejoin(front->emulator);
	if (err == -ENODATA)
		return false;
	if (err || sl_emulator_plan_begin(front->emulator))
		wrong("it cannot come back");
	front->back = true;
	front->offered = front->first;
	return true;
}

static inline void run_turn(struct run_front *front)
{
	switch (front->state) {
	case RUN_OFFERS:
		while (front->offered < front->end)
			if (!run_offer(front)) {
				front->state = front->missed ? RUN_IS_DONE : RUN_OFFERS;
				return;
			}
		if (sl_emulator_start(front->emulator))
			wrong("it cannot be started again");
		front->state = RUN_SENDS;
		break;
	case RUN_SENDS:
		sl_emulator_log_faults(front->emulator);
		if (!sl_emulator_finished(front->emulator))
			run_pass_counts(front, false);
		else
			front->state = run_end_plan(front) ? RUN_OFFERS : RUN_IS_DONE;
		break;
	case RUN_IS_DONE:
		return;
	}
}

/* Who was away is waited for again, or will not come: the others may go on. */
static inline void run_lift_limit(void)
{
	bool lift = true;

	for (unsigned i = 0; i < run.mix.fronts; i++) {
		const struct run_front *front = &run.front[i];

		if (run.mix.restarts >> i & 1)
			lift &= front->state == RUN_IS_DONE ||
				(front->back && front->state == RUN_SENDS);
	}
	if (lift)
		sl_receiver_limit(run.receiver, UINT64_MAX);
}

/* As sluice run does. */
static inline void run_check_overrun(void)
{
	if (run.mix.overrun != MIX_STOP || run.stopped || run.mix.trespasses ||
	    !sl_receiver_overrun(run.receiver))
		return;
	run.stopped = true;
	for (unsigned i = 0; i < run.mix.fronts; i++)
		sl_emulator_stop(run.front[i].emulator, false);
}

static inline void run_finish(void)
{
	unsigned done = 0;
	int err;

	while (done < run.mix.fronts) {
		run_check_overrun();
		done = 0;
		for (unsigned i = 0; i < run.mix.fronts; i++) {
			run_turn(&run.front[i]);
			done += run.front[i].state == RUN_IS_DONE;
		}
		run_lift_limit();
		run_drain_wire();
		if (done < run.mix.fronts)
			sl_clock_sleep_until(sl_clock_ns() + RUN_TURN_NS);
	}
	while (!sl_receiver_done(run.receiver))
		sl_clock_sleep_until(sl_clock_ns() + RUN_TURN_NS);
	err = sl_receiver_finish(run.receiver);
	if (pixels.problem[0])
		wrong("%s", pixels.problem);
	if (err)
		wrong("a sink failed: %s", strerror(-err));
	atomic_store(&run.ended, 1);
	pthread_join(run.server, NULL);
	if (run.wire_file)
		fclose(run.wire_file);
}

static inline void run_end(void)
{
	for (unsigned i = 0; i < run.mix.fronts; i++) {
		if (run.front[i].missed)
			sl_emulator_plan_end(run.front[i].emulator);
		sl_emulator_close(run.front[i].emulator);
	}
	sl_receiver_close(run.receiver);
	for (unsigned i = 0; i < run.mix.fronts; i++)
		sl_experiment_close(run.front[i].experiment);
	sl_experiment_close(run.here);
	fake_verbs_lose(NULL, NULL);
	free(run.wire);
	free(pixels.truth);
}

#endif
