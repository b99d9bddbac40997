/* loss_test.c - no loss wedges a queue. A stream of messages, one and several packets long, loses
 * every single packet and every pair of packets in turn. UC: what was hit is gone, to the packet as
 * it should be, and all other messages arrive. RC: everything arrives, once and in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "roce/psn.h"
#include "roce/rc_queue.h"

#include <string.h>

enum { PMTU = 256, QPN = 0x11, PEER_QPN = 0x22, RKEY = 0x77, SLOT = 4 * PMTU, MESSAGES = 8 };
enum { PSN = 0xfffffa, TIMEOUT = 1000, NONE = 1000000, WIRE = 64 };
#define BASE UINT64_C(0x10000)

/* By message: how long it is, what it carries, and where it arrived. */
static const uint32_t lengths[MESSAGES] = {100,	     3 * PMTU, PMTU, 2 * PMTU - 1,
					   4 * PMTU, 0,	       7,    PMTU + 1};
static uint8_t source[MESSAGES][SLOT], memory[MESSAGES][SLOT], receive[SLOT];
static struct sl_roce_key key;

static const struct sl_roce_key *lookup(void *arg, uint32_t rkey)
{
	return rkey == key.rkey ? &key : NULL;
}

static void fresh_memory(void)
{
	key = (struct sl_roce_key){RKEY, SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ, 0, BASE,
				   sizeof(memory)};
	memset(memory, 0, sizeof(memory));
	memset(receive, 0, sizeof(receive));
	for (int i = 0; i < MESSAGES * SLOT; i++)
		source[i / SLOT][i % SLOT] = (uint8_t)(1 + i % 251);
}

static struct sl_roce_responder fresh_queue(uint8_t transport)
{
	return (struct sl_roce_responder){
		.transport = transport,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = QPN,
		.pmtu = PMTU,
		.access = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ,
		.expected_psn = PSN,
		.receives = SL_ROCE_RECEIVES_UNLIMITED,
		.receive_bytes = SLOT,
	};
}

static void parse(const uint8_t *headers, const struct sl_roce_fragment *fragment,
		  const uint8_t *payload, struct sl_roce_packet *packet)
{
	assert_int_equal(
		sl_roce_parse_headers(headers, fragment->header_bytes,
				      fragment->header_bytes + fragment->bytes + fragment->pad + 4u,
				      packet),
		SL_ROCE_OK);
	packet->payload = payload;
}

static void place(const struct sl_roce_packet *packet, const struct sl_roce_action *action)
{
	if (action->place == SL_ROCE_PLACE_MEMORY)
		memcpy(&memory[0][0] + (action->va - BASE), packet->payload, action->bytes);
	if (action->place == SL_ROCE_PLACE_RECEIVE)
		memcpy(receive + action->offset, packet->payload, action->bytes);
}

/* ---- UC ---- */

enum mix { SENDS, WRITES, TURNS }; /* one kind, or both in turns */

static struct sl_roce_responder uc;

static uint8_t kind_of(enum mix mix, unsigned message)
{
	bool send = mix == SENDS || (mix == TURNS && message % 2);

	return send ? SL_ROCE_KIND_SEND : SL_ROCE_KIND_WRITE;
}

/* It arrived, and nothing of an older one shows through. */
static void uc_delivered(enum mix mix, unsigned message, const struct sl_roce_action *action)
{
	bool send = kind_of(mix, message) == SL_ROCE_KIND_SEND;

	assert_int_equal(action->message_bytes, lengths[message]);
	assert_memory_equal(send ? receive : memory[message], source[message], lengths[message]);
	assert_int_equal(action->immediate, message % 3 == 0);
	assert_int_equal(action->complete, send || message % 3 == 0);
}

struct uc_run {
	unsigned packet;    /* of the stream */
	uint32_t next_psn;  /* after the last one that was accepted */
	bool open;	    /* a message has begun, and nothing says yet that its end is lost */
	unsigned delivered; /* messages */
};

/* One message. Packets are accepted up to the first that is lost; when the end is lost, the next
 * message shows it. */
static void uc_message(enum mix mix, unsigned message, unsigned lost1, unsigned lost2,
		       struct uc_run *run)
{
	struct sl_roce_message m = {.transport = SL_ROCE_UC,
				    .kind = kind_of(mix, message),
				    .immediate = message % 3 == 0,
				    .pkey = SL_ROCE_PKEY_DEFAULT,
				    .pmtu = PMTU,
				    .qpn = QPN,
				    .psn = sl_roce_psn_add(PSN, run->packet),
				    .rkey = RKEY,
				    .va = BASE + message * SLOT,
				    .bytes = lengths[message]};
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	struct sl_roce_requester requester;
	struct sl_roce_fragment fragment;
	struct sl_roce_packet packet;
	struct sl_roce_action action;
	bool broken = false;

	assert_int_equal(sl_roce_requester_begin(&requester, &m), SL_ROCE_OK);
	for (; sl_roce_requester_next(&requester, headers, &fragment); run->packet++) {
		enum sl_roce_drop drop;

		parse(headers, &fragment, source[message] + fragment.offset, &packet);
		if (run->packet == lost1 || run->packet == lost2) {
			broken = true;
			continue;
		}
		drop = sl_roce_responder_receive(&uc, NULL, &packet, lookup, NULL, &action);
		assert_int_equal(drop, broken ? SL_ROCE_DROP_BROKEN : SL_ROCE_ACCEPTED);
		if (broken) {
			run->open = false;
			continue;
		}
		assert_int_equal(action.gap, sl_roce_psn_diff(packet.psn, run->next_psn));
		assert_int_equal(action.gave_up, action.first && run->open);
		run->open = !action.last;
		run->next_psn = sl_roce_psn_add(packet.psn, 1);
		place(&packet, &action);
		if (action.last) {
			uc_delivered(mix, message, &action);
			run->delivered++;
		}
	}
}

/* How many packets the stream has; how many messages lose something. */
static unsigned stream_packets(void)
{
	unsigned packets = 0;

	for (unsigned i = 0; i < MESSAGES; i++)
		packets += sl_roce_packets(lengths[i], PMTU);
	return packets;
}

static unsigned messages_hit(unsigned lost1, unsigned lost2)
{
	unsigned hit = 0, first = 0;

	for (unsigned i = 0; i < MESSAGES; i++) {
		unsigned end = first + sl_roce_packets(lengths[i], PMTU);

		hit += (lost1 >= first && lost1 < end) || (lost2 >= first && lost2 < end);
		first = end;
	}
	return hit;
}

static void uc_stream(enum mix mix, unsigned lost1, unsigned lost2)
{
	struct uc_run run = {.next_psn = PSN};

	fresh_memory();
	uc = fresh_queue(SL_ROCE_UC);
	assert_int_equal(sl_roce_responder_init(&uc), SL_ROCE_OK);
	for (unsigned i = 0; i < MESSAGES; i++)
		uc_message(mix, i, lost1, lost2, &run);
	assert_int_equal(run.delivered, MESSAGES - messages_hit(lost1, lost2));
	/* and once more, whatever came before */
	memset(memory, 0, sizeof(memory));
	run.delivered = 0;
	for (unsigned i = 0; i < MESSAGES; i++)
		uc_message(mix, i, NONE, NONE, &run);
	assert_int_equal(run.delivered, MESSAGES);
	assert_int_equal(run.packet, 2 * stream_packets());
}

static void uc_every_loss(enum mix mix)
{
	unsigned packets = stream_packets();

	uc_stream(mix, NONE, NONE);
	for (unsigned i = 0; i < packets; i++) {
		uc_stream(mix, i, NONE);
		for (unsigned j = i + 1; j < packets; j++)
			uc_stream(mix, i, j);
	}
}

static void uc_sends(void **state)
{
	uc_every_loss(SENDS);
}

static void uc_writes(void **state)
{
	uc_every_loss(WRITES);
}

static void uc_in_turns(void **state)
{
	uc_every_loss(TURNS);
}

/* ---- RC ---- */

struct wire { /* what is under way in one direction */
	unsigned count;
	struct sl_roce_packet packet[WIRE];
};

static struct rc_end {
	struct sl_roce_rc_queue queue;
	struct sl_roce_work works[MESSAGES];
	struct wire to_peer;
} near, far;

static struct {
	uint64_t now;
	unsigned carried, lost1, lost2;
	unsigned executed, completed;
	uint8_t target[MESSAGES][SLOT]; /* of READs */
} rc;

/* Every fourth is a READ, every other one quiet; so is the last. */
static struct sl_roce_work work_of(unsigned i)
{
	static const uint8_t kinds[] = {SL_ROCE_KIND_WRITE, SL_ROCE_KIND_READ, SL_ROCE_KIND_SEND,
					SL_ROCE_KIND_WRITE};

	return (struct sl_roce_work){.id = i,
				     .kind = kinds[i % 4],
				     .immediate = i % 4 == 2,
				     .quiet = i % 2,
				     .imm = i,
				     .rkey = RKEY,
				     .va = BASE + i * SLOT,
				     .bytes = lengths[i]};
}

static void rc_connect(struct rc_end *end, uint32_t qpn, uint32_t peer_qpn)
{
	memset(end, 0, sizeof(*end));
	end->queue.responder.queue = fresh_queue(SL_ROCE_RC);
	end->queue.responder.queue.qpn = qpn;
	end->queue.responder.peer_qpn = peer_qpn;
	end->queue.responder.reads = 1;
	end->queue.requester = (struct sl_roce_rc_requester){.psn = PSN,
							     .window = 6,
							     .ack_every = 4,
							     .reads = 1,
							     .timeout_ns = TIMEOUT,
							     .retries = 3,
							     .rnr_retries = 3,
							     .works = end->works,
							     .capacity = MESSAGES};
	for (int state = SL_ROCE_INIT; state <= SL_ROCE_RTS; state++)
		assert_int_equal(sl_roce_rc_queue_modify(&end->queue, (enum sl_roce_state)state),
				 SL_ROCE_OK);
}

static void carry(struct wire *wire, const uint8_t *headers,
		  const struct sl_roce_fragment *fragment, const uint8_t *payload)
{
	unsigned number = rc.carried++;

	if (number == rc.lost1 || number == rc.lost2)
		return;
	assert_true(wire->count < WIRE);
	parse(headers, fragment, payload, &wire->packet[wire->count++]);
}

/* Message by message, as posted. */
static void executed(const struct sl_roce_action *action)
{
	const struct sl_roce_work work = work_of(rc.executed);

	assert_true(rc.executed < MESSAGES);
	assert_int_equal(action->message_bytes, work.bytes);
	assert_int_equal(action->immediate, work.immediate);
	if (work.kind == SL_ROCE_KIND_SEND)
		assert_memory_equal(receive, source[rc.executed], work.bytes);
	if (work.kind == SL_ROCE_KIND_WRITE)
		assert_memory_equal(memory[rc.executed], source[rc.executed], work.bytes);
	rc.executed++;
}

static void take(struct rc_end *end, const struct sl_roce_packet *packet)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	struct sl_roce_fragment fragment;
	struct sl_roce_outcome got;

	if (!sl_roce_rc_queue_receive(&end->queue, NULL, packet, rc.now, lookup, NULL, &got)) {
		if (got.request)
			place(packet, &got.action);
		if (got.request && got.action.last)
			executed(&got.action);
		if (got.read.bytes)
			memcpy(rc.target[got.read.id] + got.read.offset, packet->payload,
			       got.read.bytes);
	}
	assert_int_equal(end->queue.state, SL_ROCE_RTS);
	while (sl_roce_reply_next(&got.reply, headers, &fragment))
		carry(&end->to_peer, headers, &fragment,
		      got.reply.read ? &memory[0][0] + (got.reply.va - BASE) + fragment.offset
				     : NULL);
	sl_roce_rc_responder_answered(&end->queue.responder, &got.reply);
}

/* All that is under way arrives; true when there was something. */
static bool arrive(struct rc_end *from, struct rc_end *to)
{
	static struct wire wire;

	wire = from->to_peer;
	from->to_peer.count = 0;
	for (unsigned i = 0; i < wire.count; i++)
		take(to, &wire.packet[i]);
	return wire.count > 0;
}

static void complete(void)
{
	struct sl_roce_completion done;

	while (sl_roce_rc_queue_complete(&near.queue, &done)) {
		assert_int_equal(done.id, rc.completed);
		assert_int_equal(done.status, SL_ROCE_SUCCESS);
		if (done.kind == SL_ROCE_KIND_READ)
			assert_memory_equal(rc.target[done.id], source[done.id], done.bytes);
		rc.completed++;
	}
}

static void rc_stream(unsigned lost1, unsigned lost2)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	struct sl_roce_request request;

	fresh_memory();
	memset(&rc, 0, sizeof(rc));
	rc.lost1 = lost1;
	rc.lost2 = lost2;
	rc.now = 1;
	rc_connect(&near, PEER_QPN, QPN);
	rc_connect(&far, QPN, PEER_QPN);
	for (unsigned i = 0; i < MESSAGES; i++) {
		const struct sl_roce_work work = work_of(i);

		if (work.kind == SL_ROCE_KIND_READ) /* is there to be read */
			memcpy(memory[i], source[i], work.bytes);
		assert_int_equal(sl_roce_rc_queue_post(&near.queue, &work), SL_ROCE_OK);
	}
	for (unsigned steps = 0; rc.completed < MESSAGES; steps++) {
		assert_true(steps < 1000);
		while (sl_roce_rc_queue_next(&near.queue, rc.now, headers, &request))
			carry(&near.to_peer, headers, &request.fragment,
			      source[request.id] + request.fragment.offset);
		if (!arrive(&near, &far) && !arrive(&far, &near))
			rc.now = sl_roce_rc_wake(&near.queue.requester); /* silence */
		complete();
	}
	assert_int_equal(rc.executed, MESSAGES);
	if (lost1 == NONE)
		assert_int_equal(rc.now, 1); /* nothing waited for a time-out */
}

static void rc_every_loss(void **state)
{
	unsigned packets, all;

	rc_stream(NONE, NONE);
	packets = rc.carried;
	assert_true(packets > stream_packets()); /* there are ACKs */
	for (unsigned i = 0; i < packets; i++) {
		rc_stream(i, NONE);
		all = rc.carried; /* with what was sent again: that may be lost, too */
		for (unsigned j = i + 1; j < all; j++)
			rc_stream(i, j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uc_sends),
		cmocka_unit_test(uc_writes),
		cmocka_unit_test(uc_in_turns),
		cmocka_unit_test(rc_every_loss),
	};

	return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
