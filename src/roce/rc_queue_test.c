/* rc_queue_test.c - the states of a reliable queue pair, and two of them talking both ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "roce/rc_queue.h"

#include <string.h>

enum { PMTU = 256, RKEY = 0x77, WORKS = 4, BYTES = 4096 };
#define BASE UINT64_C(0x10000)

static struct end {
	struct sl_roce_rc_queue queue;
	struct sl_roce_work works[WORKS];
	uint8_t memory[BYTES], receive[BYTES], target[BYTES];
	unsigned receives;
} a, b;

static const struct sl_roce_key key = {RKEY, SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ, 0, BASE,
				       BYTES};
static uint64_t now;

static const struct sl_roce_key *lookup(void *arg, uint32_t rkey)
{
	return rkey == RKEY ? &key : NULL;
}

static void end_init(struct end *end, uint32_t qpn, uint32_t peer_qpn)
{
	memset(end, 0, sizeof(*end));
	end->queue.responder.queue = (struct sl_roce_responder){
		.transport = SL_ROCE_RC,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = qpn,
		.pmtu = PMTU,
		.access = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ,
		.peer = {(uint8_t)peer_qpn},
		.local = {(uint8_t)qpn},
		.expected_psn = peer_qpn,
		.receives = 16,
		.receive_bytes = BYTES,
	};
	end->queue.responder.peer_qpn = peer_qpn;
	end->queue.requester = (struct sl_roce_rc_requester){
		.psn = qpn,
		.window = 16,
		.ack_every = 8,
		.reads = 1,
		.timeout_ns = 1000,
		.retries = 1,
		.works = end->works,
		.capacity = WORKS,
	};
}

static int fresh(void **state)
{
	now = 1;
	end_init(&a, 0x11, 0x22);
	end_init(&b, 0x22, 0x11);
	return 0;
}

static void raise(struct end *end, enum sl_roce_state to)
{
	for (enum sl_roce_state state = SL_ROCE_INIT; state <= to; state++)
		assert_int_equal(sl_roce_rc_queue_modify(&end->queue, state), SL_ROCE_OK);
}

static int post(struct end *end, uint8_t kind, uint64_t id, uint32_t rkey)
{
	struct sl_roce_work work = {
		.id = id, .kind = kind, .rkey = rkey, .va = BASE + 100, .bytes = 600};

	return sl_roce_rc_queue_post(&end->queue, &work);
}

static void carry(struct end *from, struct end *to, const uint8_t *headers,
		  const struct sl_roce_fragment *fragment, const uint8_t *payload);

static void take(struct end *end, struct end *peer, const struct sl_roce_packet *packet,
		 const uint8_t *payload)
{
	const struct sl_roce_path path = {.source = {(uint8_t)peer->queue.responder.queue.qpn},
					  .dest = {(uint8_t)end->queue.responder.queue.qpn}};
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	struct sl_roce_fragment fragment;
	struct sl_roce_outcome got;

	if (!sl_roce_rc_queue_receive(&end->queue, &path, packet, now, lookup, NULL, &got)) {
		if (got.action.place == SL_ROCE_PLACE_MEMORY)
			memcpy(end->memory + (got.action.va - BASE), payload, got.action.bytes);
		if (got.action.place == SL_ROCE_PLACE_RECEIVE)
			memcpy(end->receive + got.action.offset, payload, got.action.bytes);
		if (got.read.bytes)
			memcpy(end->target + got.read.offset, payload, got.read.bytes);
		end->receives += got.action.receive;
	}
	while (sl_roce_reply_next(&got.reply, headers, &fragment))
		carry(end, peer, headers, &fragment,
		      got.reply.read ? end->memory + (got.reply.va - BASE) + fragment.offset
				     : NULL);
}

static void carry(struct end *from, struct end *to, const uint8_t *headers,
		  const struct sl_roce_fragment *fragment, const uint8_t *payload)
{
	struct sl_roce_packet packet;

	assert_int_equal(
		sl_roce_parse_headers(headers, fragment->header_bytes,
				      fragment->header_bytes + fragment->bytes + fragment->pad + 4u,
				      &packet),
		SL_ROCE_OK);
	take(to, from, &packet, payload);
}

static unsigned pump(struct end *from, struct end *to, const uint8_t *source)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	struct sl_roce_request request;
	unsigned n = 0;

	for (; sl_roce_rc_queue_next(&from->queue, now, headers, &request); n++)
		carry(from, to, headers, &request.fragment, source + request.fragment.offset);
	return n;
}

static void expect(struct end *end, uint64_t id, uint8_t status)
{
	struct sl_roce_completion done;

	assert_true(sl_roce_rc_queue_complete(&end->queue, &done));
	assert_int_equal(done.id, id);
	assert_int_equal(done.status, status);
}

static void transitions(void **state)
{
	for (int from = SL_ROCE_RESET; from <= SL_ROCE_RTS; from++) {
		for (int to = SL_ROCE_RESET; to < SL_ROCE_STATES; to++) {
			bool legal = to == from + 1 || to == SL_ROCE_RESET || to == SL_ROCE_ERROR;

			fresh(NULL);
			raise(&a, (enum sl_roce_state)from);
			assert_int_equal(sl_roce_rc_queue_modify(&a.queue, (enum sl_roce_state)to),
					 legal ? SL_ROCE_OK : SL_ROCE_EINVAL);
			assert_int_equal(a.queue.state, legal ? to : from);
		}
	}
	assert_int_equal(a.queue.state, SL_ROCE_ERROR);
	assert_int_equal(sl_roce_rc_queue_modify(&a.queue, SL_ROCE_RTS), SL_ROCE_EINVAL);
	assert_int_equal(sl_roce_rc_queue_modify(&a.queue, SL_ROCE_RESET), SL_ROCE_OK);
	raise(&a, SL_ROCE_RTS);
}

static void bad_attributes_keep_the_state(void **state)
{
	raise(&a, SL_ROCE_INIT);
	a.queue.responder.queue.pmtu = 100;
	assert_int_equal(sl_roce_rc_queue_modify(&a.queue, SL_ROCE_RTR), SL_ROCE_EINVAL);
	assert_int_equal(a.queue.state, SL_ROCE_INIT);
	a.queue.responder.queue.pmtu = PMTU;
	assert_int_equal(sl_roce_rc_queue_modify(&a.queue, SL_ROCE_RTR), SL_ROCE_OK);
	a.queue.requester.window = 0;
	assert_int_equal(sl_roce_rc_queue_modify(&a.queue, SL_ROCE_RTS), SL_ROCE_EINVAL);
	assert_int_equal(a.queue.state, SL_ROCE_RTR);
}

static void receives_from_rtr_on_and_sends_in_rts(void **state)
{
	static const uint8_t source[BYTES] = {1, 2, 3};

	raise(&a, SL_ROCE_RTS);
	raise(&b, SL_ROCE_INIT);
	assert_int_equal(post(&b, SL_ROCE_KIND_SEND, 1, 0), SL_ROCE_EINVAL);
	assert_int_equal(post(&a, SL_ROCE_KIND_WRITE, 1, RKEY), SL_ROCE_OK);
	pump(&a, &b, source);
	assert_int_equal(b.queue.responder.msn, 0);
	assert_int_equal(sl_roce_rc_queue_modify(&b.queue, SL_ROCE_RTR), SL_ROCE_OK);
	assert_int_equal(post(&b, SL_ROCE_KIND_SEND, 1, 0), SL_ROCE_EINVAL);
	now += 1000;
	assert_int_equal(pump(&a, &b, source), 3);
	expect(&a, 1, SL_ROCE_SUCCESS);
	assert_memory_equal(b.memory + 100, source, 600);
}

static void both_ways(void **state)
{
	static uint8_t one[BYTES], two[BYTES];

	for (int i = 0; i < BYTES; i++) {
		one[i] = (uint8_t)i;
		two[i] = (uint8_t)(i * 3);
	}
	raise(&a, SL_ROCE_RTS);
	raise(&b, SL_ROCE_RTS);
	assert_int_equal(post(&a, SL_ROCE_KIND_WRITE, 1, RKEY), SL_ROCE_OK);
	assert_int_equal(post(&a, SL_ROCE_KIND_READ, 2, RKEY), SL_ROCE_OK);
	assert_int_equal(post(&b, SL_ROCE_KIND_SEND, 3, 0), SL_ROCE_OK);
	pump(&a, &b, one);
	pump(&b, &a, two);
	expect(&a, 1, SL_ROCE_SUCCESS);
	expect(&a, 2, SL_ROCE_SUCCESS);
	expect(&b, 3, SL_ROCE_SUCCESS);
	assert_memory_equal(b.memory + 100, one, 600);
	assert_memory_equal(a.target, one, 600);
	assert_memory_equal(a.receive, two, 600);
	assert_int_equal(a.receives, 1);
}

static void access_error_fails_both_ends(void **state)
{
	static const uint8_t source[BYTES];

	raise(&a, SL_ROCE_RTS);
	raise(&b, SL_ROCE_RTS);
	assert_int_equal(post(&b, SL_ROCE_KIND_SEND, 9, 0), SL_ROCE_OK); /* not sent yet */
	assert_int_equal(post(&a, SL_ROCE_KIND_WRITE, 1, 0x999), SL_ROCE_OK);
	assert_int_equal(post(&a, SL_ROCE_KIND_SEND, 2, 0), SL_ROCE_OK);
	pump(&a, &b, source);
	assert_int_equal(a.queue.state, SL_ROCE_ERROR);
	assert_int_equal(b.queue.state, SL_ROCE_ERROR);
	expect(&a, 1, SL_ROCE_REMOTE_ACCESS);
	expect(&a, 2, SL_ROCE_FLUSHED);
	expect(&b, 9, SL_ROCE_FLUSHED);
	assert_int_equal(pump(&b, &a, source), 0);
	assert_int_equal(post(&b, SL_ROCE_KIND_SEND, 10, 0), SL_ROCE_OK);
	expect(&b, 10, SL_ROCE_FLUSHED);
}

static void time_out_fails_the_queue(void **state)
{
	static const uint8_t source[BYTES];

	raise(&a, SL_ROCE_RTS); /* and b stays deaf */
	assert_int_equal(post(&a, SL_ROCE_KIND_SEND, 1, 0), SL_ROCE_OK);
	for (int i = 0; i < 3; i++) {
		pump(&a, &b, source);
		now += 1000;
	}
	assert_int_equal(a.queue.state, SL_ROCE_ERROR);
	expect(&a, 1, SL_ROCE_RETRY_EXCEEDED);
	assert_true(a.queue.responder.failed);
}

static void error_before_it_could_send(void **state)
{
	raise(&a, SL_ROCE_INIT);
	assert_int_equal(sl_roce_rc_queue_modify(&a.queue, SL_ROCE_ERROR), SL_ROCE_OK);
	assert_int_equal(post(&a, SL_ROCE_KIND_SEND, 1, 0), SL_ROCE_EINVAL);
	assert_int_equal(pump(&a, &b, NULL), 0);
}

static void reset_forgets(void **state)
{
	static const uint8_t source[BYTES];
	struct sl_roce_completion done;

	raise(&a, SL_ROCE_RTS);
	assert_int_equal(post(&a, SL_ROCE_KIND_SEND, 1, 0), SL_ROCE_OK);
	pump(&a, &b, source);
	assert_int_equal(sl_roce_rc_queue_modify(&a.queue, SL_ROCE_RESET), SL_ROCE_OK);
	assert_false(sl_roce_rc_queue_complete(&a.queue, &done));
	raise(&a, SL_ROCE_RTS);
	raise(&b, SL_ROCE_RTR);
	assert_int_equal(post(&a, SL_ROCE_KIND_SEND, 2, 0), SL_ROCE_OK);
	pump(&a, &b, source);
	expect(&a, 2, SL_ROCE_SUCCESS);
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(transitions),
		TEST(bad_attributes_keep_the_state),
		TEST(receives_from_rtr_on_and_sends_in_rts),
		TEST(both_ways),
		TEST(access_error_fails_both_ends),
		TEST(time_out_fails_the_queue),
		TEST(error_before_it_could_send),
		TEST(reset_forgets),
	};

	return cmocka_run_group_tests_name("rc queue", tests, NULL, NULL);
}
