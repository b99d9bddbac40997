/* golden_rc_test.c - every RC exchange with a live Soft-RoCE is a test case, from both ends.
 *
 * Our responder in the place of the one who answered gives the same answers, byte for byte: ACK,
 * NAK and READ response as Soft-RoCE made them, and those that satisfied it. Our requester in the
 * place of the one who asked sends the same packets, takes the answers and completes as it did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_golden.h"
#include "roce/icrc.h"
#include "roce/rc_requester.h"
#include "roce/rc_responder.h"

static struct golden golden;
static struct golden_tests tests;

enum { BUFFER_BYTES = 65536, RECEIVE_BYTES = 4096, QUEUE = 16, TIMEOUT = 1000 };

static struct responder {
	struct sl_roce_rc_responder rc;
	struct sl_roce_key key;
	uint8_t memory[BUFFER_BYTES], receive[RECEIVE_BYTES];
	struct sl_roce_reply reply[QUEUE];
	unsigned replies, sent;
	unsigned completions;
	struct sl_roce_action completion[QUEUE];
} responder;

/* Does the guest ask here, and the host answer? */
static bool guest_asks(const struct golden_case *one)
{
	return golden_starts(one, "RXE_");
}

static const struct sl_roce_key *lookup(void *arg, uint32_t rkey)
{
	return responder.key.rkey == rkey ? &responder.key : NULL;
}

static void responder_init(const struct golden_case *one)
{
	const struct golden_qp *qp = &one->qp;
	bool guest = !guest_asks(one);
	struct sl_roce_responder *queue = &responder.rc.queue;

	memset(&responder, 0, sizeof(responder));
	/* The address and key that the guest was told to use are not those of a real buffer. */
	responder.key = (struct sl_roce_key){
		guest ? qp->rkey : 0xdeadbeef, SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ, 1,
		guest ? qp->addr : UINT64_C(0x1122334455667788), BUFFER_BYTES};
	*queue = (struct sl_roce_responder){
		.transport = SL_ROCE_RC,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = guest ? qp->qpn : qp->peer_qpn,
		.pmtu = qp->mtu,
		.access = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ,
		.domain = 1,
		.expected_psn = guest ? qp->rq_psn : qp->sq_psn,
		.receives = qp->receives,
		.receive_bytes = RECEIVE_BYTES,
	};
	memcpy(queue->peer, guest ? qp->peer : golden.guest, 16);
	memcpy(queue->local, guest ? golden.guest : qp->peer, 16);
	responder.rc.peer_qpn = guest ? qp->peer_qpn : qp->qpn;
	responder.rc.mig = !guest;
	assert_int_equal(sl_roce_rc_responder_init(&responder.rc), SL_ROCE_OK);
}

static void parse(const struct golden_frame *frame, struct sl_roce_packet *packet)
{
	assert_true(sl_roce_icrc_check(&frame->path, frame->udp, frame->udp_bytes, NULL));
	assert_int_equal(sl_roce_parse(frame->udp, frame->udp_bytes, packet), SL_ROCE_OK);
}

static void respond(const struct sl_roce_path *path, const struct sl_roce_packet *packet)
{
	struct sl_roce_action action;
	struct sl_roce_reply reply;

	if (!sl_roce_rc_responder_receive(&responder.rc, path, packet, lookup, NULL, &action,
					  &reply)) {
		if (action.place == SL_ROCE_PLACE_MEMORY)
			memcpy(responder.memory + (action.va - responder.key.base), packet->payload,
			       action.bytes);
		if (action.place == SL_ROCE_PLACE_RECEIVE)
			memcpy(responder.receive + action.offset, packet->payload, action.bytes);
		if (action.complete)
			responder.completion[responder.completions++] = action;
	}
	if (reply.pending)
		responder.reply[responder.replies++] = reply;
}

/* The packet out of headers and payload, sealed for the path of the captured one, is that one. */
static void compare(const struct golden_frame *frame, const uint8_t *headers,
		    const struct sl_roce_fragment *fragment, const uint8_t *payload)
{
	struct sl_roce_piece piece = {payload, fragment->bytes};
	uint8_t packet[GOLDEN_FRAME_BYTES];
	size_t n = fragment->header_bytes;

	memcpy(packet, headers, n);
	if (fragment->bytes)
		memcpy(packet + n, payload, fragment->bytes);
	n += fragment->bytes;
	n += sl_roce_seal(&frame->path, headers, fragment->header_bytes, &piece, 1, NULL,
			  packet + n);
	assert_int_equal(n, frame->udp_bytes);
	assert_memory_equal(packet, frame->udp, n);
}

static void compare_reply(const struct golden_frame *frame)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	struct sl_roce_fragment fragment;
	struct sl_roce_reply *reply = &responder.reply[responder.sent];
	const uint8_t *from = responder.memory;

	assert_true(responder.sent < responder.replies);
	assert_true(sl_roce_reply_next(reply, headers, &fragment));
	if (reply->bytes) {
		from += reply->va - reply->key->base;
		/* Nobody recorded how the guest's buffer was filled. */
		memcpy(responder.memory + (reply->va - reply->key->base) + fragment.offset,
		       frame->payload, frame->payload_bytes);
	}
	compare(frame, headers, &fragment, from + fragment.offset);
	responder.sent += !reply->pending;
}

/* Before the gap, a READ with three responses was not recorded: PSN and MSN of the NAK show it. */
static void make_up_read(void)
{
	struct sl_roce_packet packet = {
		.opcode = SL_ROCE_OPCODE(SL_ROCE_RC, SL_ROCE_READ_REQUEST),
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.has = SL_ROCE_HAS_RETH,
		.qpn = responder.rc.queue.qpn,
		.psn = 0x309,
		.reth = {responder.key.base, responder.key.rkey, 600},
	};

	respond(NULL, &packet);
	assert_int_equal(responder.replies, 1);
	responder.replies = 0;
}

static void replay(const struct golden_case *one)
{
	struct sl_roce_packet packet;

	responder.replies = responder.sent = responder.completions = 0;
	if (golden_starts(one, "RC_psn_gap"))
		make_up_read();
	for (unsigned i = 0; i < one->frames; i++) {
		const struct golden_frame *frame = &one->frame[i];

		if (frame->from_guest != guest_asks(one)) {
			compare_reply(frame);
			continue;
		}
		parse(frame, &packet);
		respond(&frame->path, &packet);
	}
}

/* What the guest saw complete: receives only, that is, where it answers. */
static void compare_received(const struct golden_case *one)
{
	assert_int_equal(json_array_size(one->events), responder.completions);
	for (unsigned i = 0; i < responder.completions; i++) {
		const struct sl_roce_action *c = &responder.completion[i];
		const char *event = json_string_value(json_array_get(one->events, i));
		const char *data = strstr(event, "data=");
		uint8_t bytes[RECEIVE_BYTES];

		assert_int_equal(c->message_bytes, golden_value(event, "byte_len"));
		assert_int_equal(c->immediate, golden_value(event, "wc_flags") >> 1 & 1);
		if (c->immediate)
			assert_int_equal(c->imm, golden_value(event, "imm"));
		if (data) {
			assert_int_equal(hex_bytes(data + 5, bytes, sizeof(bytes)),
					 c->message_bytes);
			assert_memory_equal(bytes, responder.receive, c->message_bytes);
		}
	}
}

static void check_memory(const struct golden_case *one)
{
	uint64_t at = 0;

	for (unsigned i = 0; i < one->frames; i++) {
		const struct golden_frame *frame = &one->frame[i];

		if (!strstr(golden_text(frame->fields, "name"), "RC_WRITE"))
			continue;
		if (golden_has(frame, "va"))
			at = golden_number(frame, "va") - responder.key.base;
		if (!golden_starts(one, "RC_psn_gap"))
			assert_memory_equal(responder.memory + at, frame->payload,
					    frame->payload_bytes);
		at += frame->payload_bytes;
	}
}

/* A queue lives over all cases with its number: replay those before this one, then look. */
static void answer_case(void **state)
{
	const struct golden_case *one = *state;
	unsigned left = golden_starts(one, "RXE_RC_no_ACK") ? 4 : 0;

	responder_init(one);
	for (const struct golden_case *c = golden.one; c <= one; c++) {
		if (!c->qp.uc && c->qp.qpn == one->qp.qpn)
			replay(c);
	}
	check_memory(one);
	if (!guest_asks(one))
		compare_received(one);
	/* Where the host kept silent we would have answered: every time, and always the same. */
	assert_int_equal(responder.replies - responder.sent, left);
	for (unsigned i = 0; i < left; i++)
		assert_memory_equal(&responder.reply[i], &responder.reply[0],
				    sizeof(responder.reply[0]));
	assert_false(responder.rc.failed);
}

static struct sl_roce_work work_of(const struct golden_case *one)
{
	const struct golden_frame *first = &one->frame[0];
	const char *name = golden_text(first->fields, "name");
	struct sl_roce_work work = {.kind = SL_ROCE_KIND_SEND,
				    .bytes = (uint32_t)first->payload_bytes};

	if (guest_asks(one))
		work.id = golden_value(json_string_value(json_array_get(one->events, 0)), "wr_id");
	if (golden_has(first, "va")) {
		work.kind = strstr(name, "READ") ? SL_ROCE_KIND_READ : SL_ROCE_KIND_WRITE;
		work.va = golden_number(first, "va");
		work.rkey = (uint32_t)golden_number(first, "rkey");
		work.bytes = (uint32_t)golden_number(first, "dmalen");
	}
	for (unsigned i = 0; i < one->frames; i++) {
		if (golden_has(&one->frame[i], "imm")) {
			work.immediate = true;
			work.imm = (uint32_t)golden_number(&one->frame[i], "imm");
		}
	}
	return work;
}

static void requester_init(const struct golden_case *one, struct sl_roce_rc_requester *rc,
			   struct sl_roce_work *slot)
{
	bool guest = guest_asks(one);

	memset(rc, 0, sizeof(*rc));
	rc->pkey = SL_ROCE_PKEY_DEFAULT;
	rc->qpn = guest ? one->qp.qpn : one->qp.peer_qpn;
	rc->peer_qpn = guest ? one->qp.peer_qpn : one->qp.qpn;
	memcpy(rc->peer, guest ? one->qp.peer : golden.guest, 16);
	memcpy(rc->local, guest ? golden.guest : one->qp.peer, 16);
	rc->pmtu = one->qp.mtu;
	rc->psn = (uint32_t)golden_number(&one->frame[0], "psn");
	rc->window = 128;
	rc->ack_every = 64;
	rc->reads = 1;
	rc->timeout_ns = TIMEOUT;
	rc->retries = 3;
	rc->mig = !guest;
	rc->works = slot;
	rc->capacity = 1;
	assert_int_equal(sl_roce_rc_requester_init(rc), SL_ROCE_OK);
}

static void ask_case(void **state)
{
	const struct golden_case *one = *state;
	bool silent = golden_starts(one, "RXE_RC_no_ACK");
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	struct sl_roce_rc_requester rc;
	struct sl_roce_work slot, work = work_of(one);
	struct sl_roce_completion done;
	struct sl_roce_request request;
	struct sl_roce_packet packet;
	struct sl_roce_read read;
	uint64_t now = 1;

	requester_init(one, &rc, &slot);
	assert_int_equal(sl_roce_rc_post(&rc, &work), SL_ROCE_OK);
	for (unsigned i = 0; i < one->frames; i++) {
		const struct golden_frame *frame = &one->frame[i];

		assert_false(sl_roce_rc_complete(&rc, &done));
		if (frame->from_guest == guest_asks(one)) {
			assert_true(sl_roce_rc_next(&rc, now, headers, &request));
			assert_int_equal(request.id, work.id);
			compare(frame, headers, &request.fragment, frame->payload);
			now += silent ? TIMEOUT : 0;
			continue;
		}
		assert_false(sl_roce_rc_next(&rc, now, headers, &request));
		parse(frame, &packet);
		assert_int_equal(
			sl_roce_rc_requester_receive(&rc, &frame->path, &packet, now, &read),
			SL_ROCE_ACCEPTED);
		assert_int_equal(read.bytes, frame->payload_bytes);
	}
	assert_false(sl_roce_rc_next(&rc, now, headers, &request));
	assert_true(sl_roce_rc_complete(&rc, &done));
	assert_int_equal(done.id, work.id);
	assert_int_equal(done.status, silent ? SL_ROCE_RETRY_EXCEEDED : SL_ROCE_SUCCESS);
	if (guest_asks(one))
		assert_int_equal(
			done.status,
			golden_value(json_string_value(json_array_get(one->events, 1)), "status"));
}

static void add_case(const struct golden_case *one)
{
	if (one->qp.uc)
		return;
	golden_add(&tests, answer_case, "answer", one);
	/* These two were made by hand: no AckReq where one belongs, and a hole. */
	if (!golden_starts(one, "RC_WRITE_ONLY_noackreq") && !golden_starts(one, "RC_psn_gap"))
		golden_add(&tests, ask_case, "ask", one);
}

int main(void)
{
	int failed;

	golden_load(SL_TEST_DATA "/soft-roce.json", &golden);
	for (unsigned i = 0; i < golden.cases; i++)
		add_case(&golden.one[i]);
	failed = _cmocka_run_group_tests("golden rc", tests.test, tests.count, NULL, NULL);
	json_decref(golden.root);
	return failed;
}
