/* roce_fence_rc.h - for tests: RC queues as targets of mutants, the responder alone and with the
 * requester. Include cmocka.h before. */
#ifndef TESTS_LIB_ROCE_FENCE_RC_H
#define TESTS_LIB_ROCE_FENCE_RC_H

#include "lib/roce_fence.h"
#include "roce/rc_queue.h"

enum { WORKS = 4, WINDOW = 8, READ_BYTES = 601, SOURCE_BYTES = 700, HELD = 4 };

static struct fence read_target, source; /* of our own works */
static struct sl_roce_reply held[HELD];	 /* replies of READs that wait */
static unsigned held_count;
static uint64_t now;
static uint64_t response_drops[SL_ROCE_DROPS];

/* ---- RC, the responder ---- */

static struct sl_roce_rc_responder rc;

static inline void rc_fresh(void)
{
	held_count = 0;
	rc = (struct sl_roce_rc_responder){.queue = fresh_responder(SL_ROCE_RC),
					   .peer_qpn = PEER_QPN,
					   .rnr_timer = 1,
					   .reads = 2};
	assert_int_equal(sl_roce_rc_responder_init(&rc), SL_ROCE_OK);
}

static inline void rc_request(struct sl_roce_rc_responder *responder, struct sl_roce_packet *packet)
{
	some_rights(&responder->queue);
	valid_request(&responder->queue, packet);
	if (!responder->queue.open && below(64) == 0)
		foreign_request(packet);
}

static inline void rc_valid(struct sl_roce_packet *packet)
{
	if (rc.failed && below(2))
		rc_fresh();
	rc_request(&rc, packet);
}

static inline void answer_held(struct sl_roce_rc_responder *responder)
{
	for (unsigned i = 0; i < held_count; i++) {
		answer(&held[i]);
		sl_roce_rc_responder_answered(responder, &held[i]);
	}
	held_count = 0;
}

/* Some READs wait, with all that comes after them. */
static inline void answer_some(struct sl_roce_rc_responder *responder, struct sl_roce_reply *reply)
{
	uint32_t behind = (responder->queue.expected_psn - reply->psn) & SL_ROCE_PSN_MASK;

	/* A READ has the numbers of its responses, and no others. */
	assert_true(!reply->read || behind >= sl_roce_packets(reply->bytes, PMTU));
	if (held_count < HELD && (held_count || reply->read) && below(8)) {
		held[held_count++] = *reply;
		return;
	}
	answer_held(responder);
	answer(reply);
	sl_roce_rc_responder_answered(responder, reply);
}

static inline enum sl_roce_drop rc_receive(const struct sl_roce_packet *packet,
					   const struct sl_roce_path *from)
{
	const struct sl_roce_responder before = rc.queue;
	struct sl_roce_action action;
	struct sl_roce_reply reply;
	enum sl_roce_drop drop =
		sl_roce_rc_responder_receive(&rc, from, packet, lookup, NULL, &action, &reply);

	if (!drop) {
		place(&before, packet, &action);
	} else {
		assert_int_equal(rc.queue.expected_psn, before.expected_psn);
		assert_int_equal(rc.queue.receives, before.receives);
	}
	if (reply.pending)
		answer_some(&rc, &reply);
	return drop;
}

/* Finish the message in progress, then one more. */
static inline void prove_responder(struct sl_roce_rc_responder *responder)
{
	struct sl_roce_packet packet;

	answer_held(responder);
	responder->queue.access = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ;
	responder->queue.receives = SL_ROCE_RECEIVES_UNLIMITED;
	while (responder->queue.open) {
		valid_request(&responder->queue, &packet);
		assert_int_equal(give(&packet), SL_ROCE_ACCEPTED);
	}
	prove_write(SL_ROCE_RC, responder->queue.expected_psn);
	assert_false(responder->failed);
}

static inline void rc_prove(void)
{
	if (rc.failed)
		rc_fresh();
	prove_responder(&rc);
}

/* ---- RC, both halves ---- */

static struct sl_roce_rc_queue pair;
static struct sl_roce_work works[WORKS];

static inline void pair_fresh(void)
{
	struct sl_roce_rc_requester *requester = &pair.requester;

	held_count = 0;
	memset(&pair, 0, sizeof(pair));
	pair.responder.queue = fresh_responder(SL_ROCE_RC);
	pair.responder.peer_qpn = PEER_QPN;
	pair.responder.reads = 2;
	requester->psn = below(4) ? below(1 << 24) : 0xffffff - below(16);
	requester->window = WINDOW;
	requester->ack_every = 4;
	requester->reads = 2;
	requester->timeout_ns = 1000;
	requester->retries = 7;
	requester->rnr_retries = 7;
	requester->works = works;
	requester->capacity = WORKS;
	for (int state = SL_ROCE_INIT; state <= SL_ROCE_RTS; state++)
		assert_int_equal(sl_roce_rc_queue_modify(&pair, (enum sl_roce_state)state),
				 SL_ROCE_OK);
}

static inline void post_works(void)
{
	static const struct sl_roce_work plan[] = {
		{.kind = SL_ROCE_KIND_READ, .bytes = READ_BYTES},
		{.kind = SL_ROCE_KIND_WRITE, .bytes = SOURCE_BYTES, .quiet = true},
		{.kind = SL_ROCE_KIND_SEND, .bytes = 3, .quiet = true},
		{.kind = SL_ROCE_KIND_WRITE, .bytes = SOURCE_BYTES, .immediate = true},
		{.kind = SL_ROCE_KIND_SEND, .bytes = PMTU + 1},
		{.kind = SL_ROCE_KIND_WRITE, .bytes = SOURCE_BYTES},
		{.kind = SL_ROCE_KIND_READ, .bytes = 0},
		{.kind = SL_ROCE_KIND_WRITE, .bytes = PMTU, .immediate = true},
		{.kind = SL_ROCE_KIND_SEND},
	};

	while (sl_roce_rc_queue_post(&pair, &plan[pair.requester.posted % 9]) == SL_ROCE_OK)
		;
}

static inline void take_packets(void)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX], payload[PMTU];
	struct sl_roce_completion done;
	struct sl_roce_request request;

	for (int i = 0; sl_roce_rc_queue_next(&pair, now, headers, &request); i++) {
		assert_true(i < WINDOW && request.fragment.bytes <= PMTU);
		if (request.fragment.bytes)
			memcpy(payload, source.inside + request.fragment.offset,
			       request.fragment.bytes);
	}
	while (sl_roce_rc_queue_complete(&pair, &done))
		assert_true(done.status == SL_ROCE_SUCCESS || pair.state == SL_ROCE_ERROR);
}

static inline bool outstanding(const struct sl_roce_rc_requester *requester)
{
	return requester->oldest < requester->sent;
}

/* The next response that the requester waits for. */
static inline void valid_response(const struct sl_roce_rc_requester *requester,
				  struct sl_roce_packet *packet)
{
	const struct sl_roce_work *work = &works[requester->completed % WORKS];
	uint32_t offset = (uint32_t)(requester->oldest - work->first) * PMTU;
	uint32_t left = work->bytes - offset;
	uint8_t operation = SL_ROCE_ACKNOWLEDGE;

	memset(packet, 0, sizeof(*packet));
	packet->pkey = SL_ROCE_PKEY_DEFAULT;
	packet->qpn = QPN;
	packet->psn = sl_roce_psn_add(requester->psn, requester->oldest & SL_ROCE_PSN_MASK);
	packet->aeth.syndrome = SL_ROCE_ACK_UNLIMITED;
	if (work->kind == SL_ROCE_KIND_READ) {
		operation = offset ? SL_ROCE_READ_RESPONSE_MIDDLE : SL_ROCE_READ_RESPONSE_FIRST;
		if (left <= PMTU)
			operation = offset ? SL_ROCE_READ_RESPONSE_LAST
					   : SL_ROCE_READ_RESPONSE_ONLY;
	}
	valid_bytes(packet, SL_ROCE_RC, operation,
		    operation == SL_ROCE_ACKNOWLEDGE ? 0
		    : left < PMTU		     ? left
						     : PMTU);
}

static inline void pair_valid(struct sl_roce_packet *packet)
{
	static const uint8_t syndromes[] = {SL_ROCE_ACK, SL_ROCE_NAK_SEQUENCE, SL_ROCE_RNR_NAK | 1};

	now += 10;
	if (pair.state == SL_ROCE_ERROR && below(2))
		pair_fresh();
	if (pair.state == SL_ROCE_RTS)
		post_works();
	take_packets();
	if (below(2) || !outstanding(&pair.requester) || pair.state != SL_ROCE_RTS) {
		rc_request(&pair.responder, packet);
		return;
	}
	valid_response(&pair.requester, packet);
	if (below(4) == 0 && packet->opcode == SL_ROCE_ACKNOWLEDGE)
		packet->aeth.syndrome = syndromes[below(3)];
}

static inline enum sl_roce_drop pair_receive(const struct sl_roce_packet *packet,
					     const struct sl_roce_path *from)
{
	const struct sl_roce_responder before = pair.responder.queue;
	const struct sl_roce_rc_requester *requester = &pair.requester;
	struct sl_roce_outcome outcome;
	enum sl_roce_drop drop =
		sl_roce_rc_queue_receive(&pair, from, packet, now, lookup, NULL, &outcome);

	if (!outcome.request)
		response_drops[drop]++;
	assert_true(requester->oldest <= requester->next && requester->next <= requester->sent &&
		    requester->sent <= requester->end);
	if (!drop && outcome.request)
		place(&before, packet, &outcome.action);
	else
		assert_int_equal(pair.responder.queue.expected_psn, before.expected_psn);
	if (!drop && outcome.read.bytes) {
		uint8_t *to = read_target.inside + outcome.read.offset;

		memcpy(to, packet->payload, outcome.read.bytes);
		assert_true(fence_holds(&read_target, to, outcome.read.bytes));
	}
	if (outcome.reply.pending)
		answer_some(&pair.responder, &outcome.reply);
	return drop;
}

static inline void pair_prove(void)
{
	struct sl_roce_packet packet;

	if (pair.state == SL_ROCE_ERROR)
		pair_fresh();
	prove_responder(&pair.responder);
	now += UINT64_C(1) << 20; /* over any RNR timer of here */
	post_works();
	take_packets();
	for (int i = 0; outstanding(&pair.requester); i++) {
		assert_true(i < 256);
		valid_response(&pair.requester, &packet);
		assert_int_equal(give(&packet), SL_ROCE_ACCEPTED);
		take_packets();
	}
	assert_int_equal(pair.state, SL_ROCE_RTS);
	assert_int_equal(pair.requester.completed, pair.requester.posted);
}

#endif
