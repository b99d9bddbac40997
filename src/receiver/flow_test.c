/* flow_test.c - both sides of an experiment in one process, without the control protocol: all
 * data threads meet here, so that ThreadSanitizer sees the whole path from front end to ledger. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/flow_rig.h"

static void everything_sent_is_stored_or_dark(void **state)
{
	struct flow f = {0};

	open_flow(&f, NULL, 0);
	run_flow(&f);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(ledger_sent(&f.receiver->ledger), MODULES * (FRAMES + DARKS));
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_STORED), MODULES * FRAMES);
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_VETOED), MODULES * DARKS);
	assert_int_equal(f.receiver->ledger.tally[0].cause[SL_CAUSE_DARK], DARKS);
	assert_int_equal(wrong_pixels(&f), 0);
	close_flow(&f);
}

/* Dark frames are not counted; 0: the number is not known. */
static void add_ons_are_told_how_many_bright_frames_will_come(void **state)
{
	static const char *const endless[] = {"detector.frames=0"};

	for (size_t n = 0; n < 2; n++) {
		struct flow f = {0};

		open_flow(&f, endless, n);
		assert_int_equal(f.receiver->env.frames, n ? 0 : FRAMES);
		sl_emulator_stop(f.emulator, false);
		run_flow(&f);
		close_flow(&f);
	}
}

static void two_workers_and_small_batches_do_the_same(void **state)
{
	const char *const more[] = {together ? "unit.workers=1" : "unit.workers=2", "unit.batch=2"};
	struct flow f = {0};

	open_flow(&f, more, 2);
	run_flow(&f);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_STORED), MODULES * FRAMES);
	assert_int_equal(wrong_pixels(&f), 0);
	close_flow(&f);
}

static void loss_is_accounted_for_and_spoils_nothing(void **state)
{
	static const char *const more[] = {"frontend.drop=0.05", "frontend.duplicate=0.02",
					   "frontend.corrupt=0.01"};
	struct flow f = {0};
	uint64_t hurt;

	open_flow(&f, more, 3);
	run_flow(&f);
	hurt = ledger_total(&f.receiver->ledger, SL_INCOMPLETE) +
	       ledger_total(&f.receiver->ledger, SL_LOST);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_true(hurt > 20);
	assert_true(ledger_total(&f.receiver->ledger, SL_STORED) > 20);
	assert_int_equal(wrong_pixels(&f), 0);
	close_flow(&f);
}

enum { PACKETS = 9 }; /* of a block of 32 x 64 pixels and its record, 512 bytes each */

/* Packets of sequences whose write had a wrong key, by the log; how many they are in all. */
static uint64_t read_forged(FILE *log, uint64_t of_packet[PACKETS], bool hurt[FRAMES + DARKS])
{
	unsigned module, packet;
	unsigned long long sequence;
	uint64_t forged = 0;
	char kind[32];

	while (fscanf(log, "%u %llu %u %31s", &module, &sequence, &packet, kind) == 4) {
		assert_string_equal(kind, "wrong_key");
		assert_true(module < MODULES && sequence < FRAMES + DARKS && packet < PACKETS);
		of_packet[packet]++;
		hurt[sequence] = true;
		forged++;
	}
	return forged;
}

static void a_write_with_a_wrong_key_costs_its_frame_and_no_other(void **state)
{
	char path[] = "/tmp/sluice-flow-log-XXXXXX", name[80];
	const char *more[] = {"frontend.wrong_key=0.02", name};
	uint64_t of_packet[PACKETS] = {0}, forged, frames = 0;
	bool hurt[FRAMES + DARKS] = {false};
	struct flow f = {0};
	FILE *log = fdopen(mkstemp(path), "r");

	snprintf(name, sizeof(name), "frontend.fault_log=%s", path);
	open_flow(&f, more, 2);
	run_flow(&f);
	forged = read_forged(log, of_packet, hurt);
	fclose(log);
	unlink(path);
	for (unsigned p = 0; p < PACKETS; p++)
		assert_true(of_packet[p] > 0);
	for (unsigned k = 0; k < FRAMES + DARKS; k++)
		frames += hurt[k];
	assert_true(forged > 40 && frames < FRAMES / 2);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_STORED) +
				 ledger_total(&f.receiver->ledger, SL_VETOED),
			 MODULES * (FRAMES + DARKS - frames));
	assert_int_equal(wrong_pixels(&f), 0);
	close_flow(&f);
}

static void stopping_after_the_current_frame_loses_nothing(void **state)
{
	static const char *const more[] = {"detector.frames=1000000"};
	struct flow f = {0};

	open_flow(&f, more, 1);
	while (!atomic_load(&f.receiver->totals.frames))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	sl_emulator_stop(f.emulator, false);
	run_flow(&f);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_true(ledger_sent(&f.receiver->ledger) > 0);
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_LOST), 0);
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_INCOMPLETE), 0);
	close_flow(&f);
}

static void a_source_that_vanishes_is_counted_as_far_as_it_reported(void **state)
{
	static const char *const more[] = {"detector.frames=1000000"};
	struct flow f = {0};
	uint64_t outcomes = 0;

	open_flow(&f, more, 1);
	while (atomic_load(&f.receiver->totals.frames) < 20)
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	sl_emulator_stop(f.emulator, true); /* in mid-frame, without a last word */
	while (!sl_emulator_finished(f.emulator))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	for (uint32_t m = 0; m < MODULES; m++)
		sl_receiver_source_lost(f.receiver, m);
	while (!sl_receiver_done(f.receiver))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	sl_emulator_plan_end(f.emulator);
	assert_int_equal(sl_receiver_finish(f.receiver), 0);
	for (unsigned o = SL_STORED; o < SL_OUTCOMES; o++)
		outcomes += ledger_total(&f.receiver->ledger, o);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(outcomes, ledger_sent(&f.receiver->ledger));
	assert_int_equal(atomic_load(&f.receiver->ledger.source_died), MODULES);
	assert_int_equal(wrong_pixels(&f), 0);
	close_flow(&f);
}

static struct sl_unit troubled; /* the experiment's unit, but some batches fail */
static int (*sound_submit)(void *, struct sl_batch *), (*sound_reap)(void *, struct sl_batch **);
static unsigned submits, reaps;

static int submit_with_trouble(void *state, struct sl_batch *batch)
{
	if (++submits % 7 == 0)
		return -EINVAL;
	return sound_submit(state, batch);
}

static int reap_with_trouble(void *state, struct sl_batch **batch)
{
	int got = sound_reap(state, batch);

	if (got > 0 && ++reaps % 5 == 0)
		(*batch)->status = -EIO;
	return got;
}

static void what_the_unit_cannot_process_is_refused_and_named(void **state)
{
	static const char *const more[] = {"unit.batch=2"};
	struct flow f = {0};
	uint64_t refused, stored;

	f.here = open_experiment(more, 1);
	troubled = *f.here->unit;
	sound_submit = troubled.submit;
	sound_reap = troubled.reap;
	troubled.submit = submit_with_trouble;
	troubled.reap = reap_with_trouble;
	f.here->unit = &troubled;
	open_flow(&f, more, 1);
	run_flow(&f);
	refused = ledger_total(&f.receiver->ledger, SL_REFUSED);
	stored = ledger_total(&f.receiver->ledger, SL_STORED);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_true(refused > 0 && stored > 0);
	assert_int_equal(refused + stored + ledger_total(&f.receiver->ledger, SL_VETOED),
			 MODULES * (FRAMES + DARKS));
	assert_int_equal(f.receiver->ledger.tally[0].cause[SL_CAUSE_UNIT], refused / MODULES);
	assert_int_equal(wrong_pixels(&f), 0);
	close_flow(&f);
}

static void stored_by_nexus(void *arg, const char *name, uint64_t value, int failed)
{
	if (!strcmp(name, "frames"))
		*(uint64_t *)arg = value;
}

/* Another seed here than there: every pixel is wrong, and the check says so before any file has
 * it. */
static void what_verify_refuses_is_in_no_file(void **state)
{
	char folder[] = "/tmp/sluice-flow-XXXXXX", path[64], set[128];
	const char *sets[] = {"detector.seed=2", set};
	struct flow f = {0};
	uint64_t stored = 99;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/run.nxs", folder);
	snprintf(set, sizeof(set), "sinks[0].nexus.path=%s", path);
	with_nexus = true;
	f.here = open_experiment(sets, 2);
	with_nexus = false;
	open_flow(&f, NULL, 0);
	run_flow(&f);
	assert_string_equal(f.here->sink[0]->name, "nexus");
	f.here->sink[0]->figures(f.here->sink_state[0], stored_by_nexus, &stored);
	assert_int_equal(stored, 0);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_UNWRITTEN), MODULES * FRAMES);
	close_flow(&f);
	unlink(path);
	rmdir(folder);
}

static void counts_that_cannot_be_true_are_refused(void **state)
{
	static const char *const more[] = {"detector.frames=1000000"};
	struct flow f = {0};
	uint64_t block, opened;
	char why[128] = "";

	open_flow(&f, more, 1);
	while (atomic_load(&f.receiver->totals.frames) < 20)
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	sl_emulator_stop(f.emulator, false);
	while (!sl_emulator_finished(f.emulator))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	pass_counts(&f, false);
	block = f.receiver->feed[0].ring.block_bytes;
	opened = sl_ring_opened(&f.receiver->feed[0].ring, 0);
#define LIE(next, sent, position, word)                                                            \
	do {                                                                                       \
		assert_int_equal(sl_receiver_count(f.receiver, 0, next, sent, position, true, why, \
						   sizeof(why)),                                   \
				 -EPROTO);                                                         \
		assert_non_null(strstr(why, word));                                                \
	} while (0)
	LIE(UINT64_C(1) << 40, 5, 0, "takes back");
	LIE(1, 1, 0, "takes back");
	LIE(opened, opened + 1, 0, "more than there was");
	LIE(UINT64_C(1) << 40, UINT64_C(1) << 40, 0, "more than it offered");
	LIE(opened + 100, opened + 100, 0, "granted");
	LIE(opened, opened, (opened + 100) * block, "granted");
#undef LIE
	assert_int_equal(atomic_load(&f.receiver->source[0].state), SL_SOURCE_RUNNING);
	run_flow(&f);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_LOST), 0);
	close_flow(&f);
}

/* No packet of it could be accepted, or no credit reach it: said at once, with the field. */
static void a_hopeless_offer_is_refused_with_the_reason(void **state)
{
	static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
	struct sl_experiment *e = open_experiment(NULL, 0);
	struct sl_offer good = {.services = SL_SERVICE_UC,
				.operations = SL_OPERATION_WRITE,
				.messages = SL_MESSAGE_PACKET,
				.max_pmtu = 4096,
				.ip_id = SL_IP_ID_ANY},
			offer;
	struct sl_receiver *receiver;
	struct sl_plan plan;
	char why[160];

	memcpy(good.source.ip, v4, sizeof(v4));
	assert_int_equal(sl_receiver_open(e, NULL, &receiver), 0);
	good.block_bytes = receiver->feed[0].ring.block_bytes;
#define REFUSED(change, word)                                                                \
	do {                                                                                 \
		offer = good;                                                                \
		change;                                                                      \
		assert_int_equal(                                                            \
			sl_receiver_accept(receiver, &offer, true, &plan, why, sizeof(why)), \
			-EINVAL);                                                            \
		assert_non_null(strstr(why, word));                                          \
	} while (0)
	REFUSED(memset(offer.source.ip, 0, 16), "source.ip is 0");
	REFUSED(memset(offer.source.ip + 12, 0, 4), "source.ip is 0");
	REFUSED(offer.source.ip[0] = 0xfd, "IPv6, and link.listen is IPv4");
	REFUSED(offer.ip_id = 7, "ip_id is 7");
	REFUSED(offer.credit_va = 4096, "credit_port is 0");
	REFUSED(offer.services = SL_SERVICE_RC, "link {service: uc}");
	REFUSED(offer.operations = SL_OPERATION_SEND, "link {operation: write}");
	REFUSED(offer.messages = SL_MESSAGE_MODULE, "link {message: packet}");
	REFUSED(offer.max_pmtu = 128, "a PMTU of 256");
#undef REFUSED
	assert_int_equal(sl_receiver_accept(receiver, &good, true, &plan, why, sizeof(why)), 0);
	sl_receiver_close(receiver);
	sl_experiment_close(e);
}

static void a_front_end_that_begins_with_another_frame_is_refused(void **state)
{
	struct sl_experiment *e = open_experiment(NULL, 0);
	struct sl_receiver *receiver;
	struct sl_offer offer = {.module = 0,
				 .services = SL_SERVICE_UC,
				 .operations = SL_OPERATION_WRITE,
				 .messages = SL_MESSAGE_PACKET,
				 .max_pmtu = 4096,
				 .source.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
				 .first_frame = 7};
	struct sl_plan plan;
	char why[160];

	assert_int_equal(sl_receiver_open(e, NULL, &receiver), 0);
	offer.block_bytes = receiver->feed[0].ring.block_bytes;
	assert_int_equal(sl_receiver_accept(receiver, &offer, true, &plan, why, sizeof(why)), 0);
	offer.module = 1;
	offer.first_frame = 8;
	assert_int_equal(sl_receiver_accept(receiver, &offer, true, &plan, why, sizeof(why)),
			 -EINVAL);
	assert_non_null(strstr(why, "frame 8"));
	sl_receiver_cancel_plan(receiver,
				0); /* who was first has left: the next may begin where it likes */
	assert_int_equal(sl_receiver_accept(receiver, &offer, true, &plan, why, sizeof(why)), 0);
	sl_receiver_close(receiver);
	sl_experiment_close(e);
}

/* ---- no room ---- */

static _Atomic int gate; /* the sink stands still until it is open */

static int put_when_open(void *state, struct sl_frame *frame)
{
	while (!atomic_load(&gate))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	return 0;
}

static void drop_oldest(const char *unit)
{
	const char *const more[] = {"ring.overrun=drop_oldest", "unit.batch=1",
				    "detector.frames=2000", unit};
	struct sl_sink slow;
	struct flow f = {.here = open_experiment(more, 4)};
	uint64_t dropped = 0;

	slow = *f.here->sink[0];
	slow.put = put_when_open;
	slow.figures = NULL;
	f.here->sink[0] = &slow;
	atomic_store(&gate, 0);
	open_flow(&f, more, 4);
	/* All of it is sent although nothing goes on: the source is not held back. */
	while (!sl_emulator_finished(f.emulator)) {
		pass_counts(&f, false);
		sl_clock_sleep_until(sl_clock_ns() + 5000000);
	}
	atomic_store(&gate, 1);
	run_flow(&f);
	assert_true(ledger_closed(&f.receiver->ledger));
	for (uint32_t m = 0; m < MODULES; m++)
		dropped += f.receiver->ledger.tally[m].cause[SL_CAUSE_OLDEST];
	assert_int_equal(ledger_sent(&f.receiver->ledger), MODULES * (2000 + DARKS));
	assert_int_equal(dropped, ledger_total(&f.receiver->ledger, SL_OVERRUN));
	assert_in_range(dropped, MODULES * 1900, MODULES * 2000);
	assert_int_equal(dropped + ledger_total(&f.receiver->ledger, SL_STORED) +
				 ledger_total(&f.receiver->ledger, SL_VETOED),
			 ledger_sent(&f.receiver->ledger));
	assert_int_equal(f.receiver->slots_used.now, 0);
	assert_in_range(f.receiver->slots_used.most, 2, 12);
	assert_true(f.receiver->at_sinks.most >= 2);
	close_flow(&f);
}

static void what_the_sink_is_too_slow_for_goes_back_oldest_first(void **state)
{
	drop_oldest("unit.kind=cpu");
}

/* One module alone fills its slots and waits for the other, which has not begun: the gauge shows
 * the fullest module, whichever it is. */
static void wait_for_slots(struct flow *f, uint64_t slots)
{
	uint64_t end = sl_clock_ns() + UINT64_C(60000000000);

	while (atomic_load(&f->receiver->slots_used.now) != slots && sl_clock_ns() < end)
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	assert_int_equal(f->receiver->slots_used.now, slots);
	assert_int_equal(f->receiver->slots_used.most, slots);
}

static void plan_module(struct flow *f, struct sl_receiver *receiver, uint32_t module)
{
	struct sl_offer offer;
	struct sl_plan plan;
	char why[128];

	assert_int_equal(sl_emulator_open(f->there, module, module, &f->emulator), 0);
	assert_int_equal(sl_emulator_plan_begin(f->emulator), 0);
	assert_int_equal(sl_emulator_offer(f->emulator, module, &offer), 0);
	assert_int_equal(sl_receiver_accept(receiver, &offer, true, &plan, why, sizeof(why)), 0);
	assert_int_equal(sl_emulator_connect(f->emulator, &plan), 0);
}

static void the_slots_of_every_module_are_measured(void **state)
{
	for (uint32_t m = 0; m < MODULES; m++) {
		struct flow f = {.here = open_experiment(NULL, 0),
				 .there = open_experiment(NULL, 0)};
		struct flow silent = {.there = open_experiment(NULL, 0)};

		assert_int_equal(sl_receiver_open(f.here, NULL, &f.receiver), 0);
		plan_module(&f, f.receiver, m);
		plan_module(&silent, f.receiver, !m);
		assert_int_equal(sl_receiver_start(f.receiver), 0);
		assert_int_equal(sl_emulator_start(f.emulator), 0);
		wait_for_slots(&f, f.receiver->feed[0].ring.slots);
		sl_emulator_stop(f.emulator, true);
		sl_emulator_plan_end(f.emulator);
		sl_emulator_plan_end(silent.emulator);
		sl_emulator_close(silent.emulator);
		sl_experiment_close(silent.there);
		close_flow(&f);
	}
}

/* ---- the same with a device: what its threads do is no business of ThreadSanitizer ---- */

extern const struct sl_unit sl_unit_opencl;

static void need_a_device(void)
{
	const char *sanitizer = getenv("SLUICE_SANITIZER"), *why = sl_unit_opencl.unavailable();

	if (sanitizer && !strcmp(sanitizer, "tsan"))
		why = "drivers of devices do not say what their threads do";
	if (!why)
		return;
	print_message("# skip: %s\n", why);
	skip();
}

static void frames_that_run_out_do_not_stop_a_device(void **state)
{
	need_a_device();
	drop_oldest("unit.kind=opencl");
}

static void a_last_batch_that_is_not_full_leaves_a_device(void **state)
{
	static const char *const more[] = {"unit.kind=opencl", "unit.batch=64"};
	struct flow f = {0};

	need_a_device();
	open_flow(&f, more, 2);
	run_flow(&f);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_STORED), MODULES * FRAMES);
	assert_int_equal(wrong_pixels(&f), 0);
	close_flow(&f);
}

/* Where a link cannot refuse: who announces a block a lap too early has written where the one
 * before was being read. */
static void a_frame_that_was_overwritten_while_it_was_read_is_not_good(void **state)
{
	struct flow f = {.here = open_experiment(NULL, 0)};
	struct sl_link link = *f.here->link;

	link.guards = SL_GUARD_CREDITED;
	f.here->link = &link;
	overwritten = 40;
	open_flow(&f, NULL, 0);
	overwritten = 0;
	run_flow(&f);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(f.receiver->ledger.tally[0].cause[SL_CAUSE_OVERWRITTEN], 1);
	assert_int_equal(f.receiver->ledger.tally[1].cause[SL_CAUSE_PARTNER], 1);
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_OVERRUN), 1);
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_STORED), MODULES * (FRAMES - 1));
	close_flow(&f);
}

static void give_up_a_run(const char *unit)
{
	const char *const more[] = {"detector.frames=1000000", unit};
	struct flow f = {0};

	open_flow(&f, more, 2);
	while (atomic_load(&f.receiver->totals.frames) < 20)
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	sl_emulator_stop(f.emulator, true);
	sl_emulator_plan_end(f.emulator);
	close_flow(&f); /* without finish: what a start that failed half-way does */
}

static void a_run_that_is_given_up_ends_all_threads(void **state)
{
	give_up_a_run("unit.kind=cpu");
}

static void a_run_that_is_given_up_waits_for_its_device(void **state)
{
	need_a_device();
	give_up_a_run("unit.kind=opencl");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_sent_is_stored_or_dark),
		cmocka_unit_test(add_ons_are_told_how_many_bright_frames_will_come),
		cmocka_unit_test(two_workers_and_small_batches_do_the_same),
		cmocka_unit_test(loss_is_accounted_for_and_spoils_nothing),
		cmocka_unit_test(a_write_with_a_wrong_key_costs_its_frame_and_no_other),
		cmocka_unit_test(stopping_after_the_current_frame_loses_nothing),
		cmocka_unit_test(a_source_that_vanishes_is_counted_as_far_as_it_reported),
		cmocka_unit_test(what_the_unit_cannot_process_is_refused_and_named),
		cmocka_unit_test(what_verify_refuses_is_in_no_file),
		cmocka_unit_test(counts_that_cannot_be_true_are_refused),
		cmocka_unit_test(a_hopeless_offer_is_refused_with_the_reason),
		cmocka_unit_test(a_front_end_that_begins_with_another_frame_is_refused),
		cmocka_unit_test(a_run_that_is_given_up_ends_all_threads),
		cmocka_unit_test(what_the_sink_is_too_slow_for_goes_back_oldest_first),
		cmocka_unit_test(the_slots_of_every_module_are_measured),
		cmocka_unit_test(a_frame_that_was_overwritten_while_it_was_read_is_not_good),
	};
	const struct CMUnitTest with_a_device[] = {
		cmocka_unit_test(frames_that_run_out_do_not_stop_a_device),
		cmocka_unit_test(a_last_batch_that_is_not_full_leaves_a_device),
		cmocka_unit_test(a_run_that_is_given_up_waits_for_its_device),
	};
	int failed = cmocka_run_group_tests_name("flow with a device", with_a_device, NULL, NULL);

	return failed + RUN_APART_AND_TOGETHER("flow", tests);
}
