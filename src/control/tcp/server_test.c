/* server_test.c - the receiver's side of the plan exchange, against front ends that say what they
 * like. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/tcp/proof.h"
#include "control/tcp/testing.h"
#include "lib/capture.h"

/* ---- peers ---- */

static struct sl_channel *arrive(struct world *w)
{
	struct sl_channel *peer = &w->peer[w->peers++];
	struct sockaddr_in a = at(ADDRESS, sl_server_port(w->server));
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	sl_channel_init(peer, fd);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return peer;
}

/* The next word for this peer, while the server does its work: 1, or -errno. */
static int hear(struct world *w, struct sl_channel *peer, struct sl_wire_message *message)
{
	uint64_t end = sl_clock_ns() + PATIENCE_NS;
	int got = 0;

	while (!got && sl_clock_ns() < end) {
		sl_server_poll(w->server, 0);
		got = sl_channel_receive(peer, 1, message);
	}
	assert_int_not_equal(got, 0);
	return got;
}

static void expect_refusal(struct world *w, struct sl_channel *peer, const char *words)
{
	struct sl_wire_message message;

	assert_int_equal(hear(w, peer, &message), 1);
	assert_int_equal(message.type, SL_WIRE_ERROR);
	if (!strstr(message.error.text, words))
		fail_msg("'%s' does not say '%s'", message.error.text, words);
	assert_int_equal(hear(w, peer, &message), -EPIPE);
}

/* Let the server work until `condition`. */
#define until(w, condition)                                                                     \
	for (uint64_t end_ = sl_clock_ns() + PATIENCE_NS; !(condition);) {                      \
		sl_server_poll((w)->server, 1);                                                 \
		if (sl_clock_ns() > end_)                                                       \
			fail_msg("after %.0f s still not: %s", PATIENCE_NS * 1e-9, #condition); \
	}

/* Offer a module and take its plan: the transfer. */
static uint16_t plan_for(struct world *w, struct sl_channel *peer, uint16_t module)
{
	struct sl_wire_message message;

	say(peer, offer(module));
	assert_int_equal(hear(w, peer, &message), 1);
	assert_int_equal(message.type, SL_WIRE_PLAN);
	assert_int_equal(message.plan.module, module);
	assert_int_equal(message.plan.slots, 32);
	assert_int_equal(message.plan.block_bytes, 4160);
	return message.plan.transfer;
}

/* A front end with one module, ready to go. */
static struct sl_channel *ready_peer(struct world *w, uint16_t module, uint16_t *transfer)
{
	struct sl_channel *peer = arrive(w);

	say(peer, hello(1));
	*transfer = plan_for(w, peer, module);
	say(peer, word(SL_WIRE_READY));
	return peer;
}

static void expect_word(struct world *w, struct sl_channel *peer, enum sl_wire_type type)
{
	struct sl_wire_message message;

	assert_int_equal(hear(w, peer, &message), 1);
	assert_int_equal(message.type, type);
}

/* Two front ends, one module each, started. */
static void start(struct world *w, struct sl_channel *peer[MODULES], uint16_t transfer[MODULES])
{
	for (uint16_t m = 0; m < MODULES; m++)
		peer[m] = ready_peer(w, m, &transfer[m]);
	until(w, sl_server_ready(w->server));
	sl_server_start(w->server, sl_clock_ns());
	for (uint16_t m = 0; m < MODULES; m++)
		expect_word(w, peer[m], SL_WIRE_START);
}

/* ---- the course of a run ---- */

static void one_front_end_may_serve_every_module(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer = arrive(w);
	uint16_t transfer[MODULES];

	say(peer, hello(MODULES));
	for (uint16_t m = 0; m < MODULES; m++) {
		assert_int_equal(sl_server_planned(w->server), m);
		transfer[m] = plan_for(w, peer, m);
	}
	assert_int_equal(sl_server_planned(w->server), MODULES);
	assert_int_equal(w->last_hello.host, 77);
	assert_false(sl_server_ready(w->server));
	say(peer, word(SL_WIRE_READY));
	until(w, sl_server_ready(w->server));
	sl_server_start(w->server, sl_clock_ns());
	expect_word(w, peer, SL_WIRE_START);

	say(peer, count(SL_WIRE_COUNT, transfer[1], 7));
	until(w, w->counts == 1);
	assert_int_equal(w->last_module, 1);
	assert_int_equal(w->last_count.next, 7);
	assert_int_equal(w->last_count.sent, 7);
	assert_int_equal(w->last_count.position, 7000);

	say(peer, count(SL_WIRE_DONE, transfer[0], 9));
	until(w, w->finals == 1);
	assert_int_equal(w->last_module, 0);
	assert_false(sl_server_finished(w->server));
	say(peer, count(SL_WIRE_DONE, transfer[1], 9));
	until(w, sl_server_finished(w->server));
	sl_server_bye(w->server, false);
	expect_word(w, peer, SL_WIRE_BYE);
	assert_int_equal(w->gone + w->withdrawn, 0);
}

/* From HELLO to DONE, over a connection that may have seen a run before. */
static void one_whole_run(struct world *w, struct sl_channel *peer, bool more)
{
	uint16_t transfer[MODULES];
	unsigned finals = w->finals;

	say(peer, hello(MODULES));
	for (uint16_t m = 0; m < MODULES; m++)
		transfer[m] = plan_for(w, peer, m);
	say(peer, word(SL_WIRE_READY));
	until(w, sl_server_ready(w->server));
	sl_server_start(w->server, sl_clock_ns());
	expect_word(w, peer, SL_WIRE_START);
	for (uint16_t m = 0; m < MODULES; m++)
		say(peer, count(SL_WIRE_DONE, transfer[m], 9));
	until(w, w->finals == finals + MODULES);
	sl_server_bye(w->server, more);
	expect_word(w, peer, SL_WIRE_BYE);
}

static void a_front_end_that_stays_is_asked_again(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer = arrive(w);

	for (unsigned run = 0; run < 3; run++) {
		one_whole_run(w, peer, run < 2);
		if (run == 2)
			break;
		sl_server_again(w->server, sl_clock_ns());
		assert_int_equal(sl_server_planned(w->server), 0);
		assert_false(sl_server_ready(w->server));
		expect_word(w, peer, SL_WIRE_AGAIN);
	}
	assert_int_equal(w->accepted, 3 * MODULES);
	assert_int_equal(w->gone + w->withdrawn, 0);
}

/* One that hangs up at BYE, or between two runs, is replaced by any other. */
static void a_front_end_that_does_not_stay_comes_anew(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer = arrive(w);

	one_whole_run(w, peer, true);
	sl_channel_close(peer);
	sl_server_again(w->server, sl_clock_ns());
	one_whole_run(w, arrive(w), false);
	assert_int_equal(w->gone + w->withdrawn, 0);
}

static void several_front_ends_start_together(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer[MODULES];
	struct sl_wire_message message;
	uint16_t transfer[MODULES];

	peer[0] = ready_peer(w, 0, &transfer[0]);
	for (int i = 0; i < 5; i++)
		sl_server_poll(w->server, 1);
	assert_false(sl_server_ready(w->server));
	assert_int_equal(sl_channel_receive(peer[0], 0, &message), 0);
	peer[1] = ready_peer(w, 1, &transfer[1]);
	until(w, sl_server_ready(w->server));
	assert_int_not_equal(transfer[0], transfer[1]);
	sl_server_start(w->server, sl_clock_ns());
	expect_word(w, peer[0], SL_WIRE_START);
	expect_word(w, peer[1], SL_WIRE_START);
}

static void stop_reaches_every_front_end(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer[MODULES];
	uint16_t transfer[MODULES];

	start(w, peer, transfer);
	sl_server_stop(w->server);
	expect_word(w, peer[0], SL_WIRE_STOP);
	expect_word(w, peer[1], SL_WIRE_STOP);
	say(peer[0], count(SL_WIRE_DONE, transfer[0], 3)); /* it goes on to count */
	until(w, w->finals == 1);
}

static void a_front_end_that_leaves_before_the_start_makes_room(void **state)
{
	struct world *w = *state;
	uint16_t first, again;
	struct sl_channel *peer = ready_peer(w, 1, &first);

	until(w, sl_server_planned(w->server) == 1);
	sl_channel_close(peer);
	until(w, w->withdrawn == 1);
	assert_int_equal(w->last_withdrawn, first);
	assert_int_equal(sl_server_planned(w->server), 0);
	ready_peer(w, 1, &again);
	assert_int_equal(sl_server_planned(w->server), 1);
	assert_int_equal(w->gone, 0);
}

static void a_front_end_that_vanishes_after_the_start_is_gone(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer[MODULES];
	uint16_t transfer[MODULES];

	start(w, peer, transfer);
	sl_channel_close(peer[1]);
	until(w, w->gone == 1);
	assert_int_equal(w->last_gone, 1);
	assert_int_equal(w->withdrawn, 0);
	assert_false(sl_server_finished(w->server)); /* the other goes on */
	say(peer[0], count(SL_WIRE_DONE, transfer[0], 9));
	until(w, sl_server_finished(w->server));
	sl_server_bye(w->server, false);
	expect_word(w, peer[0], SL_WIRE_BYE);
}

static void a_front_end_that_is_done_may_leave(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer[MODULES];
	uint16_t transfer[MODULES];

	start(w, peer, transfer);
	for (int m = 0; m < MODULES; m++) {
		say(peer[m], count(SL_WIRE_DONE, transfer[m], 9));
		sl_channel_close(peer[m]);
	}
	until(w, sl_server_finished(w->server));
	for (int i = 0; i < 5; i++)
		sl_server_poll(w->server, 1);
	assert_int_equal(w->finals, MODULES);
	assert_int_equal(w->gone, 0);
}

/* ---- who is turned away ---- */

static void a_late_comer_is_told_so(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer[MODULES], *late;
	uint16_t transfer[MODULES];

	start(w, peer, transfer);
	late = arrive(w);
	say(late, hello(1));
	expect_refusal(w, late, "already started");
	assert_int_equal(w->gone, 0);
	say(peer[0], count(SL_WIRE_COUNT, transfer[0], 1));
	until(w, w->counts == 1);
}

static void another_experiment_is_refused(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer = arrive(w);
	struct sl_wire_message message = hello(1);

	message.hello.experiment++;
	say(peer, message);
	expect_refusal(w, peer, "detector section differs");
	message = hello(1);
	strcpy(message.hello.detector, "jungfrau");
	peer = arrive(w);
	say(peer, message);
	expect_refusal(w, peer, "detector section differs");
}

static void a_device_without_an_experiment_file_is_taken_by_its_shape(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer = arrive(w);
	struct sl_wire_message message = hello(1);

	message.hello.experiment = 0;
	say(peer, message);
	say(peer, offer(0));
	assert_int_equal(hear(w, peer, &message), 1);
	assert_int_equal(message.type, SL_WIRE_PLAN);
}

static void another_link_is_refused_by_name(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer = arrive(w);
	struct sl_wire_message message = hello(1);

	strcpy(message.hello.link, "shm");
	say(peer, message);
	expect_refusal(w, peer, "its link speaks 'shm', here it is 'udp'");
}

static void a_wrong_number_of_modules_is_refused(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer = arrive(w);

	say(peer, hello(0));
	expect_refusal(w, peer, "0 modules offered");
	peer = arrive(w);
	say(peer, hello(MODULES + 1));
	expect_refusal(w, peer, "3 modules offered, the experiment has 2");
}

static void a_module_out_of_range_is_refused(void **state)
{
	struct world *w = *state;
	static const uint16_t modules[] = {MODULES, 64, UINT16_MAX};

	for (size_t i = 0; i < sizeof(modules) / sizeof(*modules); i++) {
		struct sl_channel *peer = arrive(w);

		say(peer, hello(1));
		say(peer, offer(modules[i]));
		expect_refusal(w, peer, "the experiment has 2");
	}
	assert_int_equal(w->accepted, 0);
}

static void a_module_is_served_once(void **state)
{
	struct world *w = *state;
	uint16_t transfer;
	struct sl_channel *first = ready_peer(w, 0, &transfer), *second = arrive(w);
	struct sl_wire_message message;

	say(second, hello(1));
	say(second, offer(0));
	expect_refusal(w, second, "module 0 is already served");
	assert_int_equal(w->withdrawn, 0);
	assert_int_equal(sl_server_planned(w->server), 1);
	assert_int_equal(sl_channel_receive(first, 0, &message), 0);
}

static void a_front_end_that_offers_a_module_twice_loses_it(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer = arrive(w);
	uint16_t transfer;

	say(peer, hello(2));
	transfer = plan_for(w, peer, 0);
	say(peer, offer(0));
	expect_refusal(w, peer, "module 0 is already served");
	assert_int_equal(w->withdrawn, 1);
	assert_int_equal(w->last_withdrawn, transfer);
	assert_int_equal(sl_server_planned(w->server), 0);
}

static void an_offer_the_link_does_not_take_is_refused_in_its_words(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer = arrive(w);

	w->refuse_offers = 1;
	say(peer, hello(1));
	say(peer, offer(1));
	expect_refusal(w, peer, "module 1: not in the mood");
	assert_int_equal(sl_server_planned(w->server), 0);
	assert_int_equal(w->withdrawn, 0);
}

static void words_out_of_turn_are_refused(void **state)
{
	static const enum sl_wire_type types[] = {SL_WIRE_OFFER, SL_WIRE_PLAN,	SL_WIRE_READY,
						  SL_WIRE_START, SL_WIRE_COUNT, SL_WIRE_DONE,
						  SL_WIRE_STOP,	 SL_WIRE_BYE};
	struct world *w = *state;
	struct sl_channel *peer;

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		char words[64];

		peer = arrive(w);
		say(peer, word(types[i]));
		snprintf(words, sizeof(words), "%s was not expected", sl_wire_name(types[i]));
		expect_refusal(w, peer, words);
	}
	peer = arrive(w);
	say(peer, hello(1));
	say(peer, hello(1));
	expect_refusal(w, peer, "HELLO was not expected");
	peer = arrive(w);
	say(peer, hello(2));
	plan_for(w, peer, 0);
	say(peer, word(SL_WIRE_READY)); /* one offer is still due */
	expect_refusal(w, peer, "READY was not expected");
}

static void counts_before_the_start_are_refused(void **state)
{
	struct world *w = *state;
	uint16_t transfer;
	struct sl_channel *peer = ready_peer(w, 0, &transfer);

	say(peer, count(SL_WIRE_COUNT, transfer, 1));
	expect_refusal(w, peer, "COUNT was not expected");
	assert_int_equal(w->counts, 0);
	assert_int_equal(w->withdrawn, 1);
}

static void counts_for_a_foreign_transfer_are_refused(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer[MODULES];
	uint16_t transfer[MODULES];

	start(w, peer, transfer);
	say(peer[0], count(SL_WIRE_DONE, transfer[1], 1));
	expect_refusal(w, peer[0], "which is not yours");
	assert_int_equal(w->finals, 0);
	assert_int_equal(w->gone, 1);
	assert_int_equal(w->last_gone, 0);
	say(peer[1], count(SL_WIRE_COUNT, transfer[1], 5));
	until(w, w->counts == 1);
	assert_int_equal(w->last_module, 1);
}

static void a_count_that_cannot_be_true_ends_the_connection(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer[MODULES];
	uint16_t transfer[MODULES];

	start(w, peer, transfer);
	say(peer[0], count(SL_WIRE_DONE, transfer[0], UINT64_C(1) << 40));
	until(w, w->gone == 1);
	assert_int_equal(w->finals, 0);
	assert_int_equal(w->last_gone, 0);
}

static void who_does_not_stop_can_be_left_behind(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer[MODULES];
	uint16_t transfer[MODULES];

	start(w, peer, transfer);
	sl_server_stop(w->server);
	sl_server_abandon(w->server);
	assert_int_equal(w->gone, MODULES);
	assert_true(sl_server_finished(w->server));
}

static void a_count_after_done_is_refused(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer[MODULES];
	uint16_t transfer[MODULES];

	start(w, peer, transfer);
	say(peer[0], count(SL_WIRE_DONE, transfer[0], 5));
	say(peer[0], count(SL_WIRE_DONE, transfer[0], 6));
	expect_refusal(w, peer[0], "which has ended with your DONE");
	assert_int_equal(w->finals, 1);
	assert_int_equal(w->last_count.next, 5);
	assert_int_equal(w->gone, 0);
}

static void garbage_is_refused_and_disturbs_nobody(void **state)
{
	static const char garbage[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct world *w = *state;
	uint16_t transfer;
	struct sl_channel *good = arrive(w), *bad = arrive(w);

	say(good, hello(1));
	assert_int_equal(write(bad->fd, garbage, sizeof(garbage)), sizeof(garbage));
	expect_refusal(w, bad, "not the plan protocol");
	transfer = plan_for(w, good, 0);
	assert_int_equal(transfer, FIRST_TICKET);
	assert_int_equal(w->withdrawn, 0);
}

static void garbage_after_the_start_ends_only_its_sender(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer[MODULES];
	uint16_t transfer[MODULES];

	start(w, peer, transfer);
	assert_int_equal(write(peer[0]->fd, "garbage", 7), 7);
	expect_refusal(w, peer[0], "not the plan protocol");
	assert_int_equal(w->gone, 1);
	say(peer[1], count(SL_WIRE_DONE, transfer[1], 5));
	until(w, sl_server_finished(w->server));
}

static void another_version_is_told_which_this_one_is(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer = arrive(w);

	assert_int_equal(write(peer->fd, "SLC1\x63\0\1\0\0\0\0\0", 12), 12);
	expect_refusal(w, peer, "another version of the plan protocol; this one is 2");
}

static void a_front_end_that_reports_an_error_is_let_go(void **state)
{
	struct world *w = *state;
	uint16_t transfer;
	struct sl_channel *peer = ready_peer(w, 0, &transfer);
	struct sl_wire_message message = {.type = SL_WIRE_ERROR, .error = {"out of paper"}};

	say(peer, message);
	until(w, w->withdrawn == 1);
	assert_int_equal(hear(w, peer, &message), -EPIPE);
}

static void a_crowd_of_silent_peers_shuts_nobody_out(void **state)
{
	struct world *w = *state;
	struct sl_channel *first = arrive(w);
	uint16_t transfer;

	for (int i = 0; i < 79; i++) { /* more than it has room for */
		sl_server_poll(w->server, 0);
		arrive(w);
	}
	expect_refusal(w, first, "it has not said what it is");
	ready_peer(w, 0, &transfer);
	assert_int_equal(sl_server_planned(w->server), 1);
}

static void a_stranger_that_says_nothing_is_dropped(void **state)
{
	struct world *w = *state;
	struct sl_channel *silent = arrive(w), *slow = arrive(w);

	say(slow, hello(1)); /* and no offer */
	expect_refusal(w, silent, "nothing heard from it for 0.12 s");
	expect_refusal(w, slow, "nothing heard");
}

static void who_is_ready_may_wait_for_the_others(void **state)
{
	struct world *w = *state;
	uint64_t end = sl_clock_ns() + 2 * IMPATIENT_MS * UINT64_C(1000000);
	struct sl_channel *peer;
	uint16_t transfer;

	peer = ready_peer(w, 0, &transfer);
	until(w, sl_clock_ns() > end);
	assert_int_equal(w->withdrawn, 0);
	ready_peer(w, 1, &transfer);
	until(w, sl_server_ready(w->server));
	sl_server_start(w->server, sl_clock_ns());
	expect_word(w, peer, SL_WIRE_START);
}

static void a_front_end_that_stops_counting_is_gone(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer[MODULES];
	uint16_t transfer[MODULES];

	start(w, peer, transfer);
	say(peer[0], count(SL_WIRE_DONE, transfer[0], 5)); /* has nothing more to say */
	expect_refusal(w, peer[1], "nothing heard");
	assert_int_equal(w->gone, 1);
	assert_int_equal(w->last_gone, 1);
	assert_true(sl_server_finished(w->server));
	sl_server_bye(w->server, false);
	expect_word(w, peer[0], SL_WIRE_BYE);
}

static void a_front_end_that_goes_on_counting_stays(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer = arrive(w);
	uint16_t transfer[MODULES];
	uint64_t end;

	say(peer, hello(MODULES));
	for (uint16_t m = 0; m < MODULES; m++)
		transfer[m] = plan_for(w, peer, m);
	say(peer, word(SL_WIRE_READY));
	until(w, sl_server_ready(w->server));
	sl_server_start(w->server, sl_clock_ns());
	for (end = sl_clock_ns() + 2 * IMPATIENT_MS * UINT64_C(1000000); sl_clock_ns() < end;) {
		say(peer, count(SL_WIRE_COUNT, transfer[0], 1));
		sl_server_poll(w->server, 1);
	}
	assert_int_equal(w->gone, 0);
}

/* There is no end to it: those that have left make room, also when they leave late. */
static void one_front_end_after_the_other_may_come(void **state)
{
	struct world *w = *state;
	struct sl_channel *before = NULL;

	for (unsigned i = 0; i < PEERS; i++) {
		struct sl_channel *peer = arrive(w);
		uint16_t transfer;

		say(peer, hello(1));
		transfer = plan_for(w, peer, 0);
		if (before)
			sl_channel_close(before);
		before = NULL;
		say(peer, word(SL_WIRE_READY));
		expect_word(w, peer, SL_WIRE_START);
		if (i % 2) {
			say(peer, count(SL_WIRE_DONE, transfer, 1));
			before = peer;
		} else {
			sl_channel_close(peer); /* it vanishes */
		}
		until(w, w->gone + w->finals == i + 1);
	}
}

static struct sl_wire_message hello_with_nonce(void)
{
	struct sl_wire_message message = hello(1);

	memset(message.hello.nonce, 0x5a, sizeof(message.hello.nonce));
	return message;
}

/* HELLO, and the answer to the challenge by that token, for that purpose, to a listener whose port
 * is by `off` another one. */
static struct sl_wire_message prove_as(struct world *w, struct sl_channel *peer, const char *token,
				       enum sl_proof_purpose purpose, int off,
				       struct sl_wire_message greeting)
{
	struct sl_proof_terms terms = {.purpose = purpose, .hello = greeting.hello};
	struct sl_wire_message answer, proof = {.type = SL_WIRE_PROOF};

	say(peer, greeting);
	assert_int_equal(hear(w, peer, &answer), 1);
	assert_int_equal(answer.type, SL_WIRE_CHALLENGE);
	terms.challenge = answer.challenge;
	assert_int_equal(sl_proof_set_listener(&terms, SL_PROOF_CONNECTS, peer->fd), 0);
	assert_int_equal(terms.port, sl_server_port(w->server));
	terms.port = (uint16_t)(terms.port + off);
	sl_proof_make(SL_PROOF_CONNECTS, token, &terms, &proof.proof);
	say(peer, proof);
	return proof;
}

static struct sl_wire_message prove(struct world *w, struct sl_channel *peer, const char *token)
{
	return prove_as(w, peer, token, SL_PROOF_PLANS, 0, hello_with_nonce());
}

/* A sink that looks for a feedback listener, and a front end that dialled another receiver: both
 * know the token, and a relay brings their proofs here. */
static void a_proof_for_another_purpose_or_listener_opens_nothing(void **state)
{
	struct world *w = *state;
	struct sl_channel *peer = arrive(w);

	prove_as(w, peer, "secret", SL_PROOF_FEEDBACK, 0, hello_with_nonce());
	expect_refusal(w, peer, "wrong control.token");
	peer = arrive(w);
	prove_as(w, peer, "secret", SL_PROOF_PLANS, 1, hello_with_nonce());
	expect_refusal(w, peer, "wrong control.token");
}

/* The first word after the peer's proof is the refusal: it hears no proof of ours. */
static void a_peer_that_wants_something_else_hears_no_proof(void **state)
{
	struct world *w = *state;
	struct sl_wire_message greeting = hello_with_nonce();
	struct sl_channel *peer = arrive(w);

	strcpy(greeting.hello.detector, "answers");
	prove_as(w, peer, "secret", SL_PROOF_PLANS, 0, greeting);
	expect_refusal(w, peer, "the detector section differs");
}

static void only_the_right_token_opens(void **state)
{
	static const char *const wrong[] = {"", "s", "secre", "secret2", "Secret", "terces"};
	struct world *w = *state;
	struct sl_wire_message proof;
	struct sl_channel *peer;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		peer = arrive(w);
		prove(w, peer, wrong[i]);
		expect_refusal(w, peer, "wrong control.token");
	}
	peer = arrive(w);
	say(peer, hello(1));
	expect_refusal(w, peer, "challenge and response");
	peer = arrive(w);
	proof = prove(w, peer, "secret");
	expect_word(w, peer, SL_WIRE_PROOF);
	plan_for(w, peer, 0);

	/* What was recorded opens nothing: the receiver's nonce is another one. */
	peer = arrive(w);
	say(peer, hello_with_nonce());
	expect_word(w, peer, SL_WIRE_CHALLENGE);
	say(peer, proof);
	expect_refusal(w, peer, "wrong control.token");
}

static void no_word_takes_the_place_of_a_proof(void **state)
{
	struct world *w = *state;
	const struct sl_wire_message words[] = {offer(0), hello(1), word(SL_WIRE_READY),
						count(SL_WIRE_COUNT, FIRST_TICKET, 1)};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		struct sl_channel *peer = arrive(w);

		say(peer, hello_with_nonce());
		expect_word(w, peer, SL_WIRE_CHALLENGE);
		say(peer, words[i]);
		expect_refusal(w, peer, "was not expected now");
	}
	assert_int_equal(w->accepted, 0);
}

/* Which experiment runs here is none of a stranger's business. */
static void a_stranger_learns_nothing_before_its_proof(void **state)
{
	struct world *w = *state;
	struct sl_wire_message greeting = hello_with_nonce();
	struct sl_channel *peer = arrive(w);

	strcpy(greeting.hello.detector, "eiger");
	greeting.hello.modules = 60;
	say(peer, greeting);
	expect_word(w, peer, SL_WIRE_CHALLENGE);
	say(peer, word(SL_WIRE_PROOF));
	expect_refusal(w, peer, "wrong control.token");
}

static void a_crowd_without_proofs_shuts_nobody_out(void **state)
{
	struct world *w = *state;
	struct sl_channel *first = arrive(w), *peer;

	say(first, hello_with_nonce());
	expect_word(w, first, SL_WIRE_CHALLENGE);
	for (int i = 0; i < 79; i++) { /* more than it has room for */
		sl_server_poll(w->server, 0);
		say(arrive(w), hello_with_nonce());
	}
	expect_refusal(w, first, "it has not said what it is");
	peer = arrive(w);
	prove(w, peer, "secret");
	expect_word(w, peer, SL_WIRE_PROOF);
	plan_for(w, peer, 0);
}

/* ---- opening ---- */

static int open_captured(const struct sl_server_options *options, const char **text)
{
	struct sl_server *untouched = (struct sl_server *)options, *server = untouched;
	int err;

	capture_begin();
	err = sl_server_open(options, &ops, NULL, &server);
	*text = capture_end();
	if (err)
		assert_ptr_equal(server, untouched);
	else
		sl_server_close(server);
	return err;
}

static void a_port_in_use_is_told_with_what_to_do(void **state)
{
	struct world *w = *state;
	struct sl_server_options options = options_with("");
	const char *text;

	options.port = sl_server_port(w->server);
	assert_int_equal(open_captured(&options, &text), -EADDRINUSE);
	assert_non_null(strstr(text, "another receiver runs there"));
	assert_non_null(strstr(text, "control.port"));
}

static void other_hosts_need_a_token(void **state)
{
	struct sl_server_options options = options_with("");
	const char *text;

	options.address = "0.0.0.0";
	assert_int_equal(open_captured(&options, &text), -EPERM);
	assert_non_null(strstr(text, "control.token"));
	options.address = "10.1.2.3";
	assert_int_equal(open_captured(&options, &text), -EPERM);
	options.address = "0.0.0.0";
	options.token = "secret";
	assert_int_equal(open_captured(&options, &text), 0);
}

static void what_is_no_address_is_refused(void **state)
{
	struct sl_server_options options = options_with("");
	const char *text;

	options.address = "localhost";
	assert_int_equal(open_captured(&options, &text), -EINVAL);
	assert_non_null(strstr(text, "'localhost' is not an IPv4 or IPv6 address"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(one_front_end_may_serve_every_module),
		CASE(a_front_end_that_stays_is_asked_again),
		CASE(a_front_end_that_does_not_stay_comes_anew),
		CASE(several_front_ends_start_together),
		CASE(stop_reaches_every_front_end),
		CASE(a_front_end_that_leaves_before_the_start_makes_room),
		CASE(a_front_end_that_vanishes_after_the_start_is_gone),
		CASE(a_front_end_that_is_done_may_leave),
		CASE(a_late_comer_is_told_so),
		CASE(another_experiment_is_refused),
		CASE(a_device_without_an_experiment_file_is_taken_by_its_shape),
		CASE(another_link_is_refused_by_name),
		CASE(a_wrong_number_of_modules_is_refused),
		CASE(a_module_out_of_range_is_refused),
		CASE(a_module_is_served_once),
		CASE(a_front_end_that_offers_a_module_twice_loses_it),
		CASE(an_offer_the_link_does_not_take_is_refused_in_its_words),
		CASE(words_out_of_turn_are_refused),
		CASE(counts_before_the_start_are_refused),
		CASE(counts_for_a_foreign_transfer_are_refused),
		CASE(a_count_that_cannot_be_true_ends_the_connection),
		CASE(who_does_not_stop_can_be_left_behind),
		CASE(a_count_after_done_is_refused),
		CASE(garbage_is_refused_and_disturbs_nobody),
		CASE(garbage_after_the_start_ends_only_its_sender),
		CASE(another_version_is_told_which_this_one_is),
		CASE(a_front_end_that_reports_an_error_is_let_go),
		CASE(a_crowd_of_silent_peers_shuts_nobody_out),
#define IMPATIENT(f) cmocka_unit_test_setup_teardown(f, setup_impatient, teardown)
		IMPATIENT(a_stranger_that_says_nothing_is_dropped),
		IMPATIENT(who_is_ready_may_wait_for_the_others),
		IMPATIENT(a_front_end_that_stops_counting_is_gone),
		IMPATIENT(a_front_end_that_goes_on_counting_stays),
		cmocka_unit_test_setup_teardown(one_front_end_after_the_other_may_come,
						setup_rejoin, teardown),
#define TOKEN(f) cmocka_unit_test_setup_teardown(f, setup_with_token, teardown)
		TOKEN(only_the_right_token_opens),
		TOKEN(a_proof_for_another_purpose_or_listener_opens_nothing),
		TOKEN(a_peer_that_wants_something_else_hears_no_proof),
		TOKEN(no_word_takes_the_place_of_a_proof),
		TOKEN(a_stranger_learns_nothing_before_its_proof),
		TOKEN(a_crowd_without_proofs_shuts_nobody_out),
		CASE(a_port_in_use_is_told_with_what_to_do),
		cmocka_unit_test(other_hosts_need_a_token),
		cmocka_unit_test(what_is_no_address_is_refused),
	};

	sl_log_level(
		SL_LOG_ERROR); /* the server's warnings reach the peers too, and are read there */
	return cmocka_run_group_tests_name("server", tests, NULL, NULL);
}
