/* rc_link_test.c - our requester against our responder through a bad network, seed by seed: every
 * message is executed exactly once and in order, memory is what it should be, completions come in
 * order, and READs bring what was there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_channel.h"
#include "roce/psn.h"
#include "roce/rc_requester.h"
#include "roce/rc_responder.h"

enum { MESSAGES = 16, MESSAGE_MAX = 5 * SL_ROCE_PMTU_MAX, SLOTS = 6, REPLIES = 256 };
enum { WRITE_KEY = 1, READ_KEY = 2, A = 0x11, B = 0x22 };
#define BASE UINT64_C(0x7f0000000000)

static struct link {
	struct random random;
	struct sl_roce_rc_requester requester;
	struct sl_roce_rc_responder responder;
	struct sl_roce_work slots[SLOTS];
	struct sl_roce_reply reply[REPLIES]; /* a queue: waiting to be sent */
	unsigned replies;
	unsigned posted, executed, completed, again;
	unsigned revoke; /* the keys when so many messages were executed; 0: never */
	unsigned blamed, flushed;
	uint64_t now;
	struct sl_roce_work work[MESSAGES];
	uint8_t source[MESSAGES][MESSAGE_MAX], target[MESSAGES][MESSAGE_MAX]; /* by message */
	uint8_t memory[MESSAGE_MAX], model[MESSAGE_MAX];		      /* WRITE */
	uint8_t library[MESSAGE_MAX];					      /* READ */
	uint8_t receive[MESSAGE_MAX];
	struct channel there, back; /* large: not cleared with the rest */
} link;

static const struct sl_roce_key keys[] = {
	{WRITE_KEY, SL_ROCE_REMOTE_WRITE, 0, BASE, MESSAGE_MAX},
	{READ_KEY, SL_ROCE_REMOTE_READ, 0, BASE, MESSAGE_MAX},
};

static const struct sl_roce_key *lookup(void *arg, uint32_t rkey)
{
	if (link.revoke && link.executed >= link.revoke)
		return NULL;
	return rkey == WRITE_KEY ? &keys[0] : rkey == READ_KEY ? &keys[1] : NULL;
}

static uint32_t below(uint32_t n)
{
	return random_below(&link.random, n);
}

/* Zero, one, around multiples of the PMTU, anything. */
static uint32_t some_length(uint32_t pmtu)
{
	switch (below(5)) {
	case 0:
		return below(3);
	case 1:
		return pmtu * (1 + below(4)) + below(3) - 1;
	default:
		return below(5 * pmtu + 1);
	}
}

static void plan_messages(void)
{
	static const uint8_t kinds[] = {SL_ROCE_KIND_SEND, SL_ROCE_KIND_WRITE, SL_ROCE_KIND_WRITE,
					SL_ROCE_KIND_READ};

	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct sl_roce_work *work = &link.work[i];

		memset(work, 0, sizeof(*work));
		work->id = i;
		work->kind = kinds[below(4)];
		work->bytes = some_length(link.requester.pmtu);
		work->va = BASE + below(MESSAGE_MAX - work->bytes + 1);
		work->rkey = work->kind == SL_ROCE_KIND_READ ? READ_KEY : WRITE_KEY;
		work->immediate = work->kind != SL_ROCE_KIND_READ && below(2);
		work->quiet = below(2);
		work->imm = i;
		for (uint32_t k = 0; k < work->bytes; k++)
			link.source[i][k] = (uint8_t)(i * 37 + k * 7 + (k >> 8));
	}
}

static void start(uint32_t seed, unsigned lose, unsigned repeat, unsigned jitter)
{
	uint32_t pmtu, psn;

	memset(&link, 0, offsetof(struct link, there));
	link.random.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	below(2);
	pmtu = 256u << (seed % 8 < 5 ? seed % 8 : 0);
	psn = below(2) ? 0xffffff - below(40) : below(0x1000000);
	link.now = 1;
	link.requester = (struct sl_roce_rc_requester){
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = A,
		.peer_qpn = B,
		.pmtu = pmtu,
		.psn = psn,
		.window = 1 + below(24),
		.reads = 1 + below(3),
		.timeout_ns = 500,
		.retries = SL_ROCE_RETRY_FOREVER,
		.rnr_retries = SL_ROCE_RNR_FOREVER,
		.works = link.slots,
		.capacity = SLOTS,
	};
	link.requester.ack_every = 1 + below(link.requester.window);
	link.responder.queue = (struct sl_roce_responder){
		.transport = SL_ROCE_RC,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = B,
		.pmtu = pmtu,
		.access = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ,
		.expected_psn = psn,
		.receives = 1,
		.receive_bytes = MESSAGE_MAX,
	};
	link.responder.peer_qpn = A;
	link.responder.rnr_timer = 1;
	link.responder.reads = link.requester.reads; /* which the peer keeps to */
	channel_init(&link.there, &link.random, lose, repeat, jitter, 10);
	channel_init(&link.back, &link.random, lose, repeat, jitter, 10);
	for (uint32_t k = 0; k < MESSAGE_MAX; k++)
		link.library[k] = (uint8_t)(k * 11 + (k >> 8));
	assert_int_equal(sl_roce_rc_requester_init(&link.requester), SL_ROCE_OK);
	assert_int_equal(sl_roce_rc_responder_init(&link.responder), SL_ROCE_OK);
	plan_messages();
}

static void post_and_send(void)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	struct sl_roce_request request;

	while (link.posted < MESSAGES &&
	       sl_roce_rc_post(&link.requester, &link.work[link.posted]) == SL_ROCE_OK)
		link.posted++;
	while (sl_roce_rc_next(&link.requester, link.now, headers, &request)) {
		link.again += request.again;
		channel_send(&link.there, link.now, headers, &request.fragment,
			     link.source[request.id] + request.fragment.offset);
	}
}

static void answer(const struct sl_roce_reply *reply)
{
	if (!reply->pending)
		return;
	if (link.replies && below(2) && sl_roce_reply_merge(&link.reply[link.replies - 1], reply))
		return;
	assert_true(link.replies < REPLIES);
	link.reply[link.replies++] = *reply;
}

static void send_replies(void)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	struct sl_roce_fragment fragment;

	for (unsigned i = 0; i < link.replies; i++) {
		struct sl_roce_reply *reply = &link.reply[i];
		const uint8_t *from = reply->bytes ? link.library + (reply->va - BASE) : NULL;

		while (sl_roce_reply_next(reply, headers, &fragment))
			channel_send(&link.back, link.now, headers, &fragment,
				     from ? from + fragment.offset : NULL);
		sl_roce_rc_responder_answered(&link.responder, reply);
	}
	link.replies = 0;
}

/* The message that is executed now must be the next one of the plan. */
static void message_executed(const struct sl_roce_action *action)
{
	const struct sl_roce_work *work;

	assert_true(link.executed < MESSAGES);
	work = &link.work[link.executed];
	assert_int_equal(action->message_bytes, work->bytes);
	assert_int_equal(action->immediate, work->immediate);
	if (work->immediate)
		assert_int_equal(action->imm, link.executed);
	if (work->kind == SL_ROCE_KIND_SEND)
		assert_memory_equal(link.receive, link.source[link.executed], work->bytes);
	if (work->kind == SL_ROCE_KIND_WRITE && work->bytes)
		memcpy(link.model + (work->va - BASE), link.source[link.executed], work->bytes);
	assert_memory_equal(link.memory, link.model, sizeof(link.model));
	link.executed++;
}

static void arrive_there(struct channel_packet *carried)
{
	struct sl_roce_packet packet;
	struct sl_roce_action action;
	struct sl_roce_reply reply;

	assert_int_equal(sl_roce_parse(carried->data, carried->bytes, &packet), SL_ROCE_OK);
	if (!sl_roce_rc_responder_receive(&link.responder, NULL, &packet, lookup, NULL, &action,
					  &reply)) {
		if (action.place == SL_ROCE_PLACE_MEMORY)
			memcpy(link.memory + (action.va - BASE), packet.payload, action.bytes);
		if (action.place == SL_ROCE_PLACE_RECEIVE)
			memcpy(link.receive + action.offset, packet.payload, action.bytes);
		if (action.last)
			message_executed(&action);
	}
	assert_true(link.revoke || !link.responder.failed);
	answer(&reply);
	if (below(3) == 0 && link.responder.queue.receives == 0)
		link.responder.queue.receives++;
}

static void arrive_back(struct channel_packet *carried)
{
	struct sl_roce_packet packet;
	struct sl_roce_read read;

	assert_int_equal(sl_roce_parse(carried->data, carried->bytes, &packet), SL_ROCE_OK);
	sl_roce_rc_requester_receive(&link.requester, NULL, &packet, link.now, &read);
	assert_true(link.revoke || !link.requester.failed);
	if (read.bytes) {
		assert_true(read.offset + read.bytes <= link.work[read.id].bytes);
		memcpy(link.target[read.id] + read.offset, packet.payload, read.bytes);
	}
}

static void completed_well(const struct sl_roce_completion *done)
{
	const struct sl_roce_work *work = &link.work[done->id];

	assert_int_equal(link.blamed + link.flushed, 0);
	assert_int_equal(done->bytes, work->bytes);
	assert_true(link.executed > link.completed);
	if (work->kind == SL_ROCE_KIND_READ && work->bytes)
		assert_memory_equal(link.target[done->id], link.library + (work->va - BASE),
				    work->bytes);
}

static void take_completions(void)
{
	struct sl_roce_completion done;

	while (sl_roce_rc_complete(&link.requester, &done)) {
		assert_int_equal(done.id, link.completed);
		assert_true(link.revoke || done.status == SL_ROCE_SUCCESS);
		if (done.status == SL_ROCE_SUCCESS)
			completed_well(&done);
		else if (done.status == SL_ROCE_FLUSHED)
			link.flushed++;
		else
			link.blamed++;
		link.completed++;
	}
}

static void step(void)
{
	struct channel_packet *there, *back;
	uint64_t wake;

	post_and_send();
	if (below(2))
		send_replies();
	there = channel_first(&link.there);
	back = channel_first(&link.back);
	wake = sl_roce_rc_wake(&link.requester);
	if (there && there->due <= wake && (!back || there->due <= back->due)) {
		link.now = there->due > link.now ? there->due : link.now;
		arrive_there(there);
		there->due = 0;
	} else if (back && back->due <= wake) {
		link.now = back->due > link.now ? back->due : link.now;
		arrive_back(back);
		back->due = 0;
	} else if (link.replies) {
		send_replies();
	} else {
		/* Otherwise it is stuck. */
		assert_true(wake != UINT64_MAX || link.requester.failed);
		link.now = wake > link.now ? wake : link.now;
		link.responder.queue.receives += link.responder.queue.receives == 0;
		sl_roce_rc_tick(&link.requester, link.now);
	}
	take_completions();
}

static void run(void)
{
	for (unsigned steps = 0; link.completed < MESSAGES; steps++) {
		assert_true(steps < 100000); /* it must come to an end */
		step();
	}
	if (link.revoke)
		return;
	assert_int_equal(link.executed, MESSAGES);
	assert_memory_equal(link.memory, link.model, sizeof(link.model));
	assert_int_equal(link.responder.msn, MESSAGES);
	assert_int_equal(link.requester.oldest, link.requester.end);
	assert_int_equal(link.responder.queue.expected_psn,
			 sl_roce_psn_add(link.requester.psn, (uint32_t)link.requester.end));
}

static void nothing_is_sent_twice_on_a_good_network(void **state)
{
	for (uint32_t seed = 0; seed < 400; seed++) {
		start(seed, 0, 0, 0);
		link.responder.queue.receives = SL_ROCE_RECEIVES_UNLIMITED;
		link.requester.timeout_ns = UINT64_C(1) << 40;
		run();
		assert_int_equal(link.again, 0);
	}
}

static void receives_that_come_late(void **state)
{
	for (uint32_t seed = 0; seed < 400; seed++) {
		start(seed, 0, 0, 0);
		run();
	}
}

static void losses(void **state)
{
	unsigned lost = 0;

	for (uint32_t seed = 0; seed < 1000; seed++) {
		start(seed, 20 + seed % 300, 0, 0);
		run();
		lost += link.there.lost + link.back.lost;
	}
	assert_true(lost > 1000);
}

static void repetitions(void **state)
{
	for (uint32_t seed = 0; seed < 500; seed++) {
		start(seed, 0, 300, 0);
		run();
	}
}

static void reordering(void **state)
{
	for (uint32_t seed = 0; seed < 500; seed++) {
		start(seed, 0, 0, 1 + seed % 200);
		run();
	}
}

static void everything_at_once(void **state)
{
	for (uint32_t seed = 0; seed < 2000; seed++) {
		start(seed, seed % 200, seed % 150, seed % 400);
		run();
	}
}

/* Whatever is lost on the way, all work completes: well, then one to blame, then flushed. */
static void failure_completes_everything(void **state)
{
	unsigned blamed = 0;

	for (uint32_t seed = 0; seed < 500; seed++) {
		start(seed, seed % 100, seed % 50, seed % 100);
		link.revoke = 1 + seed % (MESSAGES - 1);
		link.requester.retries = link.requester.retries_left = 7;
		run();
		assert_true(link.blamed <= 1);
		assert_int_equal(link.blamed, link.requester.failed);
		blamed += link.blamed;
	}
	assert_true(blamed > 300); /* SENDs and empty messages need no key */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_sent_twice_on_a_good_network),
		cmocka_unit_test(receives_that_come_late),
		cmocka_unit_test(losses),
		cmocka_unit_test(repetitions),
		cmocka_unit_test(reordering),
		cmocka_unit_test(everything_at_once),
		cmocka_unit_test(failure_completes_everything),
	};

	return cmocka_run_group_tests_name("rc link", tests, NULL, NULL);
}
