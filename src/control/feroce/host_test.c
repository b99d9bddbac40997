/* host_test.c - seats for FEROCE front ends, against front ends that ask, send, stop and lie as
 * they like. Time and network are this program's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/feroce/host.h"
#include "lib/capture.h"

#define MS UINT64_C(1000000)

enum {
	MODULES = 2,
	PACKETS = 5, /* of a block */
	FRAMES = 100,
	DARKS = 10,
	BLOCK = 5000,
	SILENCE_MS = 3000,
	HERE = 0x0a000001, /* 10.0.0.1 */
	DEVICE = 0x0a000005,
	OTHER = 0x0a000006,
	PORT = 17185,
	THEIR_PORT = 17000,
	QPN = 256,
	FIRST_QUEUE = 5000, /* of our queue pairs */
	SENT_MAX = 64,
};

struct sent {
	uint32_t ip;
	uint16_t port;
	struct sl_feroce_message message;
};

struct world {
	struct sl_feroce_host host;
	uint64_t now;
	/* what the host sent, and which of it was looked at */
	struct sent sent[SENT_MAX];
	unsigned sent_n, heard_n;
	/* what it told the receiver */
	struct sl_offer offer[MODULES + 1];
	unsigned accepted, withdrawn, met, counted, ended, gone;
	uint32_t met_qpn, last_module;
	uint64_t next[MODULES], limit;
	bool refuse_offers, refuse_counts, use_send;
	/* what the receiver has seen */
	struct sl_progress seen[MODULES];
};

static void note(void *arg, uint32_t ip, uint16_t port, const struct sl_feroce_message *message)
{
	struct world *w = arg;

	assert_true(w->sent_n < SENT_MAX);
	w->sent[w->sent_n++] = (struct sent){ip, port, *message};
}

static int accept_offer(void *arg, const struct sl_offer *offer, bool same_host,
			struct sl_plan *plan, char *why, size_t why_bytes)
{
	struct world *w = arg;

	if (w->refuse_offers) {
		snprintf(why, why_bytes, "not in the mood");
		return -EINVAL;
	}
	w->offer[w->accepted % (MODULES + 1)] = *offer;
	*plan = (struct sl_plan){
		.version = SL_PLAN_VERSION,
		.transfer = (uint16_t)w->accepted,
		.module = offer->module,
		.operation = w->use_send ? SL_OPERATION_SEND : SL_OPERATION_WRITE,
		.qpn = FIRST_QUEUE + w->accepted,
		.rkey = 0xabcd0000 + w->accepted,
		.first_psn = offer->psn_plus_1 - 1,
		.slots = 4,
		.packets = PACKETS,
		.base = UINT64_C(0x700000000),
		.stride = 0x3000,
		.block_at = offer->module * UINT64_C(0x2000),
		.block_bytes = offer->block_bytes,
		.dest = {.ip = {[10] = 0xff, 0xff, 10, 0, 0, 1}},
	};
	w->accepted++;
	return 0;
}

static int meet(void *arg, uint16_t transfer, uint32_t qpn)
{
	struct world *w = arg;

	w->met++;
	w->met_qpn = qpn;
	return 0;
}

static void look(void *arg, uint32_t module, struct sl_progress *seen)
{
	struct world *w = arg;

	*seen = w->seen[module];
}

static int count(void *arg, uint32_t module, uint64_t next, uint64_t sent, uint64_t position,
		 bool final, char *why, size_t why_bytes)
{
	struct world *w = arg;

	if (w->refuse_counts)
		return -EPROTO;
	w->counted++;
	w->next[module] = next;
	return 0;
}

static void end(void *arg, uint32_t module)
{
	struct world *w = arg;

	w->ended++;
	w->last_module = module;
}

static void cancel_plan(void *arg, uint16_t transfer)
{
	((struct world *)arg)->withdrawn++;
}

static void source_lost(void *arg, uint32_t module)
{
	struct world *w = arg;

	w->gone++;
	w->last_module = module;
}

static void limit(void *arg, uint64_t sequence)
{
	((struct world *)arg)->limit = sequence;
}

static const struct sl_control_ops ops = {
	.accept = accept_offer,
	.set_queue = meet,
	.cancel_plan = cancel_plan,
	.count = count,
	.end = end,
	.source_lost = source_lost,
	.limit = limit,
	.progress = look,
};

static const struct sl_feroce_options plain = {
	.modules = MODULES,
	.port = PORT,
	.block_bytes = BLOCK,
	.bare = true,
	.frames = FRAMES,
	.darks = {.first = DARKS},
	.silence_ms = SILENCE_MS,
};

static struct world *world_with(const struct sl_feroce_options *options)
{
	static struct world world;

	world = (struct world){.now = 1000 * MS};
	for (unsigned m = 0; m < MODULES; m++)
		world.seen[m] = (struct sl_progress){
			.opened = 4, .packets_whole = PACKETS, .end = UINT64_MAX};
	sl_feroce_host_init(&world.host, options, &ops, &world, note, &world);
	return &world;
}

static struct world *world_of(uint32_t modules)
{
	struct sl_feroce_options options = plain;

	options.modules = modules;
	return world_with(&options);
}

/* ---- front ends ---- */

static void tell(struct world *w, uint32_t ip, const struct sl_feroce_message *message)
{
	uint8_t bytes[SL_FEROCE_BYTES];

	sl_feroce_encode(message, bytes);
	sl_feroce_host_hear(&w->host, ip, bytes, sizeof(bytes));
}

static struct sl_feroce_message request(enum sl_feroce_request what, uint32_t ip, uint32_t qpn)
{
	return (struct sl_feroce_message){.info = true,
					  .request = what,
					  .local = {.qpn = qpn, .ip = ip},
					  .remote = {.ip = HERE},
					  .port = THEIR_PORT};
}

static void ask_open(struct world *w, uint32_t ip, uint32_t qpn)
{
	struct sl_feroce_message m = request(SL_FEROCE_OPEN, ip, qpn);

	tell(w, ip, &m);
}

static void ask_close(struct world *w, uint32_t ip, uint32_t qpn, uint32_t queue)
{
	struct sl_feroce_message m = request(SL_FEROCE_CLOSE, ip, qpn);

	m.remote.qpn = queue;
	tell(w, ip, &m);
}

/* The one message that was sent since we last looked. */
static const struct sent *heard(struct world *w)
{
	assert_int_equal(w->sent_n, w->heard_n + 1);
	return &w->sent[w->heard_n++];
}

static void silence(struct world *w)
{
	assert_int_equal(w->sent_n, w->heard_n);
}

static void expect(struct world *w, enum sl_feroce_request what, enum sl_feroce_answer ack)
{
	const struct sent *s = heard(w);

	assert_true(s->message.info);
	assert_int_equal(s->message.request, what);
	assert_int_equal(s->message.answer, ack != SL_FEROCE_ACK_NONE);
	assert_int_equal(s->message.ack, ack);
	assert_int_equal(s->message.port, PORT);
}

static void pass(struct world *w, uint64_t ms)
{
	for (uint64_t i = 0; i < ms; i += 10) {
		w->now += 10 * MS;
		for (unsigned m = 0; m < MODULES; m++)
			w->seen[m].idle++;
		sl_feroce_host_tick(&w->host, w->now);
	}
}

static void arrive(struct world *w, uint32_t module, uint64_t reached, uint32_t packets)
{
	w->seen[module].reached = reached;
	w->seen[module].packets = packets;
	w->seen[module].opened = reached + 4;
}

/* One front end, connected and started. */
static struct world *one_runs(void)
{
	struct world *w = world_of(1);

	ask_open(w, DEVICE, QPN);
	sl_feroce_host_start(&w->host);
	expect(w, SL_FEROCE_OPEN, SL_FEROCE_ACK);
	return w;
}

/* ---- connecting ---- */

static void an_open_is_an_offer_and_its_plan_the_answer(void **state)
{
	struct world *w = world_of(2);
	struct sl_feroce_message m = request(SL_FEROCE_OPEN, DEVICE, QPN);
	const struct sl_offer *offer = &w->offer[0];
	const struct sent *s;

	m.local.psn = 0x123456;
	tell(w, DEVICE, &m);
	assert_int_equal(w->accepted, 1);
	assert_int_equal(offer->module, 0);
	assert_int_equal(offer->services, SL_SERVICE_RC);
	assert_int_equal(offer->operations, SL_OPERATION_WRITE | SL_OPERATION_SEND);
	assert_memory_equal(offer->source.ip, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x05", 16);
	assert_int_equal(offer->credit_port, 4791);
	assert_int_equal(offer->credit_qpn, QPN);
	assert_int_equal(offer->credit_va, 0);
	assert_int_equal(offer->block_bytes, BLOCK);
	assert_int_equal(offer->bare, 1);
	assert_int_equal(offer->frames, FRAMES);
	assert_int_equal(offer->darks.first, DARKS);
	assert_int_equal(offer->psn_plus_1, 0x123457);

	s = heard(w);
	assert_int_equal(s->ip, DEVICE);
	assert_int_equal(s->port, THEIR_PORT);
	assert_int_equal(s->message.ack, SL_FEROCE_ACK);
	assert_int_equal(s->message.local.qpn, FIRST_QUEUE);
	assert_int_equal(s->message.local.psn, 0x123456);
	assert_int_equal(s->message.local.rkey, 0xabcd0000);
	assert_true(s->message.local.va == UINT64_C(0x700000000));
	assert_int_equal(s->message.local.ip, HERE);
	assert_int_equal(s->message.remote.qpn, QPN);
	assert_int_equal(s->message.remote.ip, DEVICE);
	assert_int_equal(s->message.port, PORT);
}

static void who_is_placed_by_the_receiver_gets_no_key(void **state)
{
	struct world *w = world_of(2);
	const struct sent *s;

	w->use_send = true;
	ask_open(w, DEVICE, QPN);
	s = heard(w);
	assert_int_equal(s->message.local.qpn, FIRST_QUEUE);
	assert_int_equal(s->message.local.rkey, 0);
	assert_true(s->message.local.va == 0);
}

static void two_devices_are_two_modules(void **state)
{
	struct world *w = world_of(2);

	ask_open(w, DEVICE, QPN);
	heard(w);
	ask_open(w, OTHER, QPN);
	assert_int_equal(w->offer[1].module, 1);
	assert_int_equal(sl_feroce_host_planned(&w->host), 2);
	/* The last one may send when the receiver takes packets, and not before. */
	silence(w);
	ask_open(w, OTHER, QPN);
	silence(w);
	sl_feroce_host_start(&w->host);
	assert_true(heard(w)->message.local.va == UINT64_C(0x700002000));
}

static void two_queues_of_one_device_are_two_modules(void **state)
{
	struct world *w = world_of(2);

	ask_open(w, DEVICE, QPN);
	ask_open(w, DEVICE, QPN + 1);
	assert_int_equal(w->accepted, 2);
}

static void an_open_that_comes_again_gets_the_same_answer(void **state)
{
	struct world *w = world_of(2);
	struct sent first;

	ask_open(w, DEVICE, QPN);
	first = *heard(w);
	ask_open(w, DEVICE, QPN);
	assert_memory_equal(&first, heard(w), sizeof(first));
	assert_int_equal(w->accepted, 1);
}

static void an_open_with_another_psn_is_a_new_beginning(void **state)
{
	struct world *w = world_of(2);
	struct sl_feroce_message m = request(SL_FEROCE_OPEN, DEVICE, QPN);

	tell(w, DEVICE, &m);
	heard(w);
	m.local.psn = 77;
	tell(w, DEVICE, &m);
	assert_int_equal(w->withdrawn, 1);
	assert_int_equal(heard(w)->message.local.psn, 77);
	assert_int_equal(sl_feroce_host_planned(&w->host), 1);
}

static void before_its_first_data_a_device_may_ask_again_then_no_more(void **state)
{
	struct world *w = one_runs();

	ask_open(w, DEVICE, QPN);
	expect(w, SL_FEROCE_OPEN, SL_FEROCE_ACK);
	arrive(w, 0, 1, 1);
	ask_open(w, DEVICE, QPN);
	silence(w);
	assert_int_equal(w->host.misplaced, 1);
}

static void who_cannot_be_served_is_not_answered(void **state)
{
	struct world *w = world_of(1);
	const char *said;

	w->refuse_offers = true;
	capture_begin();
	ask_open(w, DEVICE, QPN);
	silence(w);
	assert_int_equal(sl_feroce_host_planned(&w->host), 0);
	w->refuse_offers = false;
	ask_open(w, DEVICE, QPN);
	assert_int_equal(sl_feroce_host_planned(&w->host), 1);
	ask_open(w, OTHER, QPN); /* no seat */
	sl_feroce_host_start(&w->host);
	expect(w, SL_FEROCE_OPEN, SL_FEROCE_ACK);
	ask_open(w, OTHER, QPN); /* too late */
	silence(w);
	said = capture_end();
	assert_non_null(strstr(said, "not in the mood"));
	assert_non_null(strstr(said, "10.0.0.6"));
	assert_int_equal(w->host.misplaced, 3);
}

static void info_and_rts_are_acknowledged_to_who_is_connected(void **state)
{
	struct world *w = world_of(2);
	struct sl_feroce_message m = request(SL_FEROCE_RTS, DEVICE, QPN);

	m.remote.qpn = FIRST_QUEUE;
	tell(w, DEVICE, &m);
	expect(w, SL_FEROCE_RTS, SL_FEROCE_NO_QP);
	ask_open(w, DEVICE, QPN);
	heard(w);
	tell(w, DEVICE, &m);
	expect(w, SL_FEROCE_RTS, SL_FEROCE_ACK);
	m.request = SL_FEROCE_INFO;
	tell(w, DEVICE, &m);
	expect(w, SL_FEROCE_INFO, SL_FEROCE_ACK);
	m.remote.qpn = FIRST_QUEUE + 1;
	tell(w, DEVICE, &m);
	expect(w, SL_FEROCE_INFO, SL_FEROCE_NO_QP);
}

static void who_closes_before_the_start_makes_room(void **state)
{
	struct world *w = world_of(1);

	ask_open(w, DEVICE, QPN);
	ask_close(w, DEVICE, QPN, FIRST_QUEUE);
	expect(w, SL_FEROCE_CLOSE, SL_FEROCE_ACK);
	assert_int_equal(w->withdrawn, 1);
	assert_int_equal(sl_feroce_host_planned(&w->host), 0);
	ask_close(w, DEVICE, QPN, FIRST_QUEUE); /* the answer was lost */
	expect(w, SL_FEROCE_CLOSE, SL_FEROCE_ACK);
	assert_int_equal(w->withdrawn, 1);
	ask_open(w, DEVICE, QPN);
	assert_int_equal(w->accepted, 2);
	assert_int_equal(sl_feroce_host_planned(&w->host), 1);
}

static void who_waits_for_the_start_hears_when_another_leaves(void **state)
{
	struct world *w = world_of(2);

	ask_open(w, DEVICE, QPN);
	heard(w);
	ask_open(w, OTHER, QPN);
	silence(w);
	ask_close(w, DEVICE, QPN, FIRST_QUEUE);
	assert_int_equal(w->sent_n, w->heard_n + 2);
	assert_int_equal(w->sent[w->sent_n - 1].ip, OTHER);
	assert_int_equal(w->sent[w->sent_n - 1].message.request, SL_FEROCE_OPEN);
}

static void closing_what_is_not_there(void **state)
{
	struct world *w = world_of(2);

	ask_close(w, DEVICE, QPN, 99);
	expect(w, SL_FEROCE_CLOSE, SL_FEROCE_NO_QP);
	ask_open(w, DEVICE, QPN);
	heard(w);
	ask_close(w, DEVICE, QPN + 1, FIRST_QUEUE); /* not its own */
	expect(w, SL_FEROCE_CLOSE, SL_FEROCE_NAK);
	ask_close(w, OTHER, QPN, FIRST_QUEUE); /* another's */
	expect(w, SL_FEROCE_CLOSE, SL_FEROCE_NO_QP);
	assert_int_equal(sl_feroce_host_planned(&w->host), 1);
}

/* ---- strangers ---- */

static void what_makes_no_sense_does_nothing(void **state)
{
	struct world *w = world_of(2);
	struct sl_feroce_message m = request(SL_FEROCE_OPEN, DEVICE, QPN);
	uint8_t bytes[SL_FEROCE_BYTES + 1] = {0x0b}; /* no such request */

	sl_feroce_host_hear(&w->host, DEVICE, bytes, sizeof(bytes));
	sl_feroce_host_hear(&w->host, DEVICE, bytes, 0);
	sl_feroce_host_hear(&w->host, DEVICE, bytes, SL_FEROCE_BYTES);
	assert_int_equal(w->host.malformed, 3);

	tell(w, OTHER, &m); /* in another's name */
	m.port = 0;
	tell(w, DEVICE, &m);
	m = request(SL_FEROCE_OPEN, DEVICE, 1);
	tell(w, DEVICE, &m);
	m = request(SL_FEROCE_ERROR, DEVICE, QPN);
	tell(w, DEVICE, &m);
	m = request(SL_FEROCE_NONE, DEVICE, QPN);
	m.generator = (struct sl_feroce_generator){.valid = true, .start = true};
	tell(w, DEVICE, &m);
	m.info = false;
	tell(w, DEVICE, &m);
	m = request(SL_FEROCE_OPEN, DEVICE, QPN);
	m.answer = true;
	m.ack = SL_FEROCE_ACK;
	tell(w, DEVICE, &m); /* nobody asked */
	assert_int_equal(w->host.misplaced, 7);
	assert_int_equal(w->accepted, 0);
	silence(w);
}

/* ---- ends ---- */

static void the_run_ends_with_its_last_frame(void **state)
{
	struct world *w = one_runs();

	arrive(w, 0, FRAMES, PACKETS - 1);
	pass(w, 1000);
	assert_int_equal(w->counted, 0);
	arrive(w, 0, FRAMES, PACKETS);
	pass(w, 10);
	assert_int_equal(w->counted, 1);
	assert_int_equal(w->next[0], FRAMES);
	pass(w, 1000);
	silence(w); /* not before what it sent is safe */
	sl_feroce_host_bye(&w->host);
	assert_true(sl_feroce_host_leaving(&w->host));
	pass(w, 10);
	expect(w, SL_FEROCE_CLOSE, SL_FEROCE_ACK_NONE);
	assert_int_equal(w->gone, 0);
}

static void a_close_is_the_end(void **state)
{
	struct world *w = one_runs();

	arrive(w, 0, 7, PACKETS);
	pass(w, 10);
	ask_close(w, DEVICE, QPN, FIRST_QUEUE);
	expect(w, SL_FEROCE_CLOSE, SL_FEROCE_ACK);
	assert_int_equal(w->ended, 1);
	ask_close(w, DEVICE, QPN, FIRST_QUEUE); /* the answer was lost */
	expect(w, SL_FEROCE_CLOSE, SL_FEROCE_ACK);
	pass(w, 5000);
	silence(w); /* it knows */
	assert_int_equal(w->ended, 1);
	assert_int_equal(w->counted + w->gone, 0);
}

static void a_stop_waits_for_the_block_under_way(void **state)
{
	struct world *w = one_runs();

	arrive(w, 0, 8, 2);
	w->seen[0].opened = 8;
	sl_feroce_host_stop(&w->host);
	pass(w, 100);
	assert_int_equal(w->ended, 0);
	arrive(w, 0, 8, PACKETS);
	w->seen[0].opened = 8;
	pass(w, 10);
	assert_int_equal(w->ended, 1);
	assert_int_equal(w->limit, 8);
	sl_feroce_host_bye(&w->host);
	pass(w, 10);
	expect(w, SL_FEROCE_CLOSE, SL_FEROCE_ACK_NONE);
}

static void a_stop_lets_a_device_fill_the_slots_that_are_open(void **state)
{
	struct world *w = one_runs();

	for (uint64_t k = 5; k < 8; k++) {
		arrive(w, 0, k, PACKETS);
		w->seen[0].opened = 8;
		sl_feroce_host_stop(&w->host);
		pass(w, 100);
		assert_int_equal(w->ended, 0);
	}
	arrive(w, 0, 8, PACKETS);
	w->seen[0].opened = 8;
	pass(w, 10);
	assert_int_equal(w->ended, 1);
}

static void a_stop_lets_go_who_rests(void **state)
{
	struct world *w = one_runs();

	arrive(w, 0, 5, PACKETS);
	sl_feroce_host_stop(&w->host);
	pass(w, 300);
	assert_int_equal(w->ended, 1);
}

static void a_stop_before_any_data(void **state)
{
	struct world *w = one_runs();

	sl_feroce_host_stop(&w->host);
	pass(w, 300);
	assert_int_equal(w->ended, 1);
}

static void a_stop_in_a_block_that_never_ends(void **state)
{
	struct world *w = one_runs();

	arrive(w, 0, 7, 2);
	sl_feroce_host_stop(&w->host);
	pass(w, 300);
	assert_int_equal(w->ended, 1);
}

/* Quiet because the link looked and found nothing, not because it had no time to look. */
static void a_link_that_does_not_look_is_not_quiet(void **state)
{
	struct world *w = one_runs();

	arrive(w, 0, 7, 2);
	sl_feroce_host_stop(&w->host);
	for (int i = 0; i < 100; i++) {
		w->now += 10 * MS;
		sl_feroce_host_tick(&w->host, w->now);
	}
	assert_int_equal(w->ended, 0);
	pass(w, 50);
	assert_int_equal(w->ended, 1);
}

static void a_close_after_a_stop_is_the_end_at_once(void **state)
{
	struct world *w = one_runs();

	arrive(w, 0, 7, 2);
	sl_feroce_host_stop(&w->host);
	ask_close(w, DEVICE, QPN, FIRST_QUEUE);
	assert_int_equal(w->ended, 1);
	pass(w, 1000);
	assert_int_equal(w->ended, 1);
}

static void silence_after_the_first_data_is_an_end(void **state)
{
	struct world *w = one_runs();

	pass(w, 10 * SILENCE_MS); /* waiting for its first trigger */
	assert_int_equal(w->gone, 0);
	arrive(w, 0, 3, 1);
	pass(w, SILENCE_MS - 100);
	arrive(w, 0, 3, 2); /* a packet is a sign of life */
	pass(w, SILENCE_MS - 100);
	assert_int_equal(w->gone, 0);
	pass(w, 200);
	assert_int_equal(w->gone, 1);
	assert_int_equal(w->counted, 0);
	sl_feroce_host_bye(&w->host);
	pass(w, 10);
	expect(w, SL_FEROCE_CLOSE, SL_FEROCE_ACK_NONE);
}

/* Until its first packet there is a limit of its own, from the start of the run. */
static void nothing_within_first_s_is_an_end(void **state)
{
	struct sl_feroce_options options = plain;
	struct world *w;

	options.modules = 2;
	options.first_ms = SILENCE_MS / 2;
	w = world_with(&options);
	ask_open(w, DEVICE, QPN);
	ask_open(w, OTHER, QPN);
	pass(w, 2 * SILENCE_MS); /* the run has not begun */
	assert_int_equal(w->gone, 0);
	sl_feroce_host_start(&w->host);
	pass(w, 10);
	arrive(w, 0, 1, 1);
	pass(w, SILENCE_MS / 2 - 100);
	assert_int_equal(w->gone, 0);
	pass(w, 200);
	assert_int_equal(w->gone, 1);
	assert_int_equal(w->last_module, 1);
	pass(w, SILENCE_MS / 2 - 200); /* the other has begun: it may be silent for longer */
	assert_int_equal(w->gone, 1);
	pass(w, 300);
	assert_int_equal(w->gone, 2);
	assert_int_equal(w->last_module, 0);
}

static void who_waits_for_a_slot_is_not_silent(void **state)
{
	struct world *w = one_runs();

	arrive(w, 0, 8, PACKETS);
	w->seen[0].opened = 8;
	pass(w, 10 * SILENCE_MS);
	assert_int_equal(w->gone, 0);
	w->seen[0].opened = 9;
	pass(w, SILENCE_MS + 100);
	assert_int_equal(w->gone, 1);
}

static void no_limit_of_silence(void **state)
{
	struct sl_feroce_options options = plain;
	struct world *w;

	options.modules = 1;
	options.silence_ms = 0;
	w = world_with(&options);
	ask_open(w, DEVICE, QPN);
	sl_feroce_host_start(&w->host);
	arrive(w, 0, 3, 1);
	pass(w, 100000);
	assert_int_equal(w->gone, 0);
}

static void a_count_that_is_not_taken_makes_it_gone(void **state)
{
	struct world *w = one_runs();

	w->refuse_counts = true;
	arrive(w, 0, FRAMES, PACKETS);
	capture_begin();
	pass(w, 10);
	capture_end();
	assert_int_equal(w->gone, 1);
}

static void one_ends_the_other_goes_on(void **state)
{
	struct world *w = world_of(2);

	ask_open(w, DEVICE, QPN);
	ask_open(w, OTHER, QPN);
	sl_feroce_host_start(&w->host);
	arrive(w, 0, 5, PACKETS);
	arrive(w, 1, 5, PACKETS);
	ask_close(w, DEVICE, QPN, FIRST_QUEUE);
	assert_int_equal(w->ended, 1);
	assert_int_equal(w->last_module, 0);
	sl_feroce_host_abandon(&w->host);
	assert_int_equal(w->gone, 1);
	assert_int_equal(w->last_module, 1);
}

static void a_close_of_ours_is_repeated_until_answered(void **state)
{
	struct world *w = one_runs();
	struct sl_feroce_message m = request(SL_FEROCE_CLOSE, DEVICE, QPN);

	arrive(w, 0, FRAMES, PACKETS);
	pass(w, 10);
	sl_feroce_host_bye(&w->host);
	pass(w, 10);
	heard(w);
	pass(w, 300);
	heard(w);
	m.answer = true;
	m.ack = SL_FEROCE_NO_QP;
	m.remote.qpn = FIRST_QUEUE;
	tell(w, DEVICE, &m);
	assert_false(sl_feroce_host_leaving(&w->host));
	pass(w, 3000);
	sl_feroce_host_dismiss(&w->host);
	silence(w);
}

static void a_close_of_ours_is_not_repeated_for_ever(void **state)
{
	struct world *w = one_runs();

	arrive(w, 0, FRAMES, PACKETS);
	pass(w, 10);
	sl_feroce_host_bye(&w->host);
	pass(w, 10000);
	assert_int_equal(w->sent_n - w->heard_n, 3);
	assert_false(sl_feroce_host_leaving(&w->host));
	sl_feroce_host_dismiss(&w->host);
	assert_int_equal(w->sent_n - w->heard_n, 4);
}

/* With as many seats as there are modules: each front end once, and nothing behind the last. */
static void the_last_close_goes_to_every_front_end_that_is_connected(void **state)
{
	struct world *w = world_of(2);

	ask_open(w, DEVICE, QPN);
	ask_open(w, OTHER, QPN + 1);
	sl_feroce_host_start(&w->host);
	w->heard_n = w->sent_n;
	w->host.seat[2].phase = SL_FEROCE_SEAT_OPEN; /* beyond the modules of this run */
	sl_feroce_host_dismiss(&w->host);
	assert_int_equal(w->sent_n - w->heard_n, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(w->sent[w->heard_n].ip, i ? OTHER : DEVICE);
		assert_int_equal(w->sent[w->heard_n].message.remote.qpn, QPN + i);
		assert_int_equal(w->sent[w->heard_n++].message.request, SL_FEROCE_CLOSE);
	}
}

/* A core that closed a queue pair answers a CLOSE that comes again with an error: its first byte is
 * 0xf9. */
static void an_error_in_answer_to_a_close_is_the_end_of_it(void **state)
{
	struct world *w = one_runs();
	struct sl_feroce_message m = request(SL_FEROCE_CLOSE, DEVICE, QPN);
	uint8_t bytes[SL_FEROCE_BYTES];

	arrive(w, 0, FRAMES, PACKETS);
	pass(w, 10);
	sl_feroce_host_bye(&w->host);
	pass(w, 300);
	assert_int_equal(w->sent_n - w->heard_n, 2);
	m.answer = true;
	m.ack = SL_FEROCE_ACK_ERROR;
	m.remote.qpn = FIRST_QUEUE;
	sl_feroce_encode(&m, bytes);
	assert_int_equal(bytes[0], 0xf9);
	sl_feroce_host_hear(&w->host, DEVICE, bytes, sizeof(bytes));
	assert_false(sl_feroce_host_leaving(&w->host));
	assert_int_equal(w->host.misplaced, 0);
}

static void an_answer_to_a_close_of_another_queue_is_none(void **state)
{
	static const uint32_t queues[][2] = {{QPN + 2, FIRST_QUEUE}, {QPN, FIRST_QUEUE + 100}};
	struct world *w = one_runs();

	arrive(w, 0, FRAMES, PACKETS);
	pass(w, 10);
	sl_feroce_host_bye(&w->host);
	pass(w, 10);
	for (unsigned i = 0; i < 2; i++) {
		struct sl_feroce_message m = request(SL_FEROCE_CLOSE, DEVICE, queues[i][0]);

		m.answer = true;
		m.ack = SL_FEROCE_ACK;
		m.remote.qpn = queues[i][1];
		tell(w, DEVICE, &m);
		assert_true(sl_feroce_host_leaving(&w->host));
		assert_int_equal(w->host.misplaced, i + 1);
	}
}

/* ---- front ends that wait to be asked ---- */

static struct world *asking(void)
{
	struct sl_feroce_options options = plain;

	options.devices = 1;
	options.device[0] = DEVICE;
	return world_with(&options);
}

static void answer_open(struct world *w, uint32_t qpn, enum sl_feroce_answer ack)
{
	struct sl_feroce_message m = request(SL_FEROCE_OPEN, DEVICE, qpn);

	m.answer = true;
	m.ack = ack;
	m.remote.qpn = FIRST_QUEUE;
	m.port = SL_FEROCE_PORT;
	tell(w, DEVICE, &m);
}

static void a_device_is_asked_and_its_queue_is_learnt(void **state)
{
	struct world *w = asking();
	const struct sent *s;

	pass(w, 10);
	assert_int_equal(w->offer[0].credit_qpn, 0);
	assert_int_equal(w->offer[0].psn_plus_1, 1);
	s = heard(w);
	assert_int_equal(s->ip, DEVICE);
	assert_int_equal(s->port, SL_FEROCE_PORT);
	assert_int_equal(s->message.request, SL_FEROCE_OPEN);
	assert_false(s->message.answer);
	assert_int_equal(s->message.local.qpn, FIRST_QUEUE);
	assert_int_equal(s->message.local.rkey, 0xabcd0000);
	assert_int_equal(s->message.remote.ip, DEVICE);
	assert_int_equal(sl_feroce_host_planned(&w->host), 0);
	answer_open(w, QPN, SL_FEROCE_ACK);
	assert_int_equal(w->met, 1);
	assert_int_equal(w->met_qpn, QPN);
	assert_int_equal(sl_feroce_host_planned(&w->host), 1);
	ask_open(w, OTHER, QPN); /* takes the other seat */
	assert_int_equal(w->offer[1].module, 1);
}

static void a_device_is_asked_again_and_what_it_opened_twice_is_closed(void **state)
{
	struct world *w = asking();

	pass(w, 10);
	heard(w);
	pass(w, 900);
	silence(w);
	pass(w, 200);
	expect(w, SL_FEROCE_OPEN, SL_FEROCE_ACK_NONE);
	assert_int_equal(w->accepted, 1);
	answer_open(w, QPN, SL_FEROCE_ACK);
	answer_open(w, QPN + 1, SL_FEROCE_ACK);
	assert_int_equal(w->met, 1);
	assert_int_equal(w->sent[w->sent_n - 1].message.remote.qpn, QPN + 1);
	expect(w, SL_FEROCE_CLOSE, SL_FEROCE_ACK_NONE);
	answer_open(w, QPN, SL_FEROCE_ACK);
	silence(w);
}

static void a_device_may_be_asked_for_two_queues(void **state)
{
	struct sl_feroce_options options = plain;
	struct world *w;

	options.devices = 2;
	options.device[0] = options.device[1] = DEVICE;
	w = world_with(&options);
	pass(w, 10);
	assert_int_equal(w->sent_n, 2);
	for (uint32_t i = 0; i < 2; i++) {
		struct sl_feroce_message m = request(SL_FEROCE_OPEN, DEVICE, QPN + 1 - i);

		m.answer = true;
		m.ack = SL_FEROCE_ACK;
		m.remote.qpn = FIRST_QUEUE + i;
		tell(w, DEVICE, &m);
		assert_int_equal(sl_feroce_host_planned(&w->host), i + 1);
		assert_int_equal(w->host.seat[i].queue.qpn, QPN + 1 - i);
	}
}

static void a_device_that_refuses_is_asked_again(void **state)
{
	struct world *w = asking();
	const char *said;

	capture_begin();
	pass(w, 10);
	heard(w);
	answer_open(w, 0, SL_FEROCE_NO_QP);
	pass(w, 1100);
	said = capture_end();
	expect(w, SL_FEROCE_OPEN, SL_FEROCE_ACK_NONE);
	assert_non_null(strstr(said, "10.0.0.5 cannot be served: it refuses"));
	assert_int_equal(sl_feroce_host_planned(&w->host), 0);
}

/* Its answer to the second OPEN says NO_QP and otherwise repeats its answer to the first one. */
static void a_refusal_that_repeats_the_answer_before_is_understood(void **state)
{
	struct sl_feroce_options options = plain;
	struct world *w;
	const char *said;

	options.devices = 2;
	options.device[0] = options.device[1] = DEVICE;
	w = world_with(&options);
	capture_begin();
	pass(w, 10);
	answer_open(w, QPN, SL_FEROCE_ACK);
	answer_open(w, QPN, SL_FEROCE_NO_QP);
	said = capture_end();
	assert_non_null(strstr(said, "10.0.0.5 cannot be served: it refuses"));
	assert_int_equal(sl_feroce_host_planned(&w->host), 1);
	assert_int_equal(w->host.seat[0].queue.qpn, QPN);
}

static void a_device_that_was_asked_and_leaves_is_asked_again(void **state)
{
	struct world *w = asking();

	pass(w, 10);
	heard(w);
	answer_open(w, QPN, SL_FEROCE_ACK);
	ask_close(w, DEVICE, QPN, FIRST_QUEUE);
	expect(w, SL_FEROCE_CLOSE, SL_FEROCE_ACK);
	assert_int_equal(w->withdrawn, 1);
	pass(w, 1100);
	expect(w, SL_FEROCE_OPEN, SL_FEROCE_ACK_NONE);
	assert_int_equal(w->accepted, 2);
}

/* ---- */

int main(void)
{
#define CASE(f) cmocka_unit_test(f)
	const struct CMUnitTest tests[] = {
		CASE(an_open_is_an_offer_and_its_plan_the_answer),
		CASE(who_is_placed_by_the_receiver_gets_no_key),
		CASE(two_devices_are_two_modules),
		CASE(two_queues_of_one_device_are_two_modules),
		CASE(an_open_that_comes_again_gets_the_same_answer),
		CASE(an_open_with_another_psn_is_a_new_beginning),
		CASE(before_its_first_data_a_device_may_ask_again_then_no_more),
		CASE(who_cannot_be_served_is_not_answered),
		CASE(info_and_rts_are_acknowledged_to_who_is_connected),
		CASE(who_closes_before_the_start_makes_room),
		CASE(who_waits_for_the_start_hears_when_another_leaves),
		CASE(closing_what_is_not_there),
		CASE(what_makes_no_sense_does_nothing),
		CASE(the_run_ends_with_its_last_frame),
		CASE(a_close_is_the_end),
		CASE(a_stop_waits_for_the_block_under_way),
		CASE(a_stop_lets_a_device_fill_the_slots_that_are_open),
		CASE(a_stop_lets_go_who_rests),
		CASE(a_stop_before_any_data),
		CASE(a_stop_in_a_block_that_never_ends),
		CASE(a_link_that_does_not_look_is_not_quiet),
		CASE(a_close_after_a_stop_is_the_end_at_once),
		CASE(silence_after_the_first_data_is_an_end),
		CASE(who_waits_for_a_slot_is_not_silent),
		CASE(no_limit_of_silence),
		CASE(nothing_within_first_s_is_an_end),
		CASE(a_count_that_is_not_taken_makes_it_gone),
		CASE(one_ends_the_other_goes_on),
		CASE(a_close_of_ours_is_repeated_until_answered),
		CASE(a_close_of_ours_is_not_repeated_for_ever),
		CASE(the_last_close_goes_to_every_front_end_that_is_connected),
		CASE(an_error_in_answer_to_a_close_is_the_end_of_it),
		CASE(an_answer_to_a_close_of_another_queue_is_none),
		CASE(a_device_is_asked_and_its_queue_is_learnt),
		CASE(a_device_is_asked_again_and_what_it_opened_twice_is_closed),
		CASE(a_device_may_be_asked_for_two_queues),
		CASE(a_device_that_refuses_is_asked_again),
		CASE(a_refusal_that_repeats_the_answer_before_is_understood),
		CASE(a_device_that_was_asked_and_leaves_is_asked_again),
	};

	return cmocka_run_group_tests_name("feroce_host", tests, NULL, NULL);
}
