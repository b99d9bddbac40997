/* golden_responder_test.c - every exchange with a live Soft-RoCE is a test case: the behaviour.
 *
 * Our responder in the guest's place does what the guest did, or what InfiniBand demands where
 * Soft-RoCE falls short of it (it wedges after a loss). What it sent, our responder takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_golden.h"
#include "roce/icrc.h"
#include "roce/responder.h"

static struct golden golden;
static struct golden_tests tests;

enum { BUFFER_BYTES = 65536, RECEIVE_BYTES = 4096, BAD_ICRC = SL_ROCE_DROPS };

struct completion {
	uint32_t bytes, imm;
	unsigned receive; /* counts from 0, as the guest's wr_id */
	bool write, immediate;
	uint8_t data[RECEIVE_BYTES];
};

struct guest {
	struct sl_roce_responder queue;
	struct sl_roce_key key;
	uint8_t memory[BUFFER_BYTES], receive[RECEIVE_BYTES];
	unsigned taken;
	unsigned completions; /* of the last case */
	struct completion completion[GOLDEN_FRAMES];
};

static const struct sl_roce_key *lookup(void *arg, uint32_t rkey)
{
	const struct sl_roce_key *key = arg;

	return key->rkey == rkey ? key : NULL;
}

static void guest_init(struct guest *guest, const struct golden_qp *qp)
{
	memset(guest, 0, sizeof(*guest));
	guest->key = (struct sl_roce_key){qp->rkey, SL_ROCE_REMOTE_WRITE, 1, qp->addr, qp->length};
	guest->queue = (struct sl_roce_responder){
		.transport = SL_ROCE_UC,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = qp->qpn,
		.pmtu = qp->mtu,
		.access = SL_ROCE_REMOTE_WRITE,
		.domain = 1,
		.expected_psn = qp->rq_psn,
		.receives = qp->receives,
		.receive_bytes = RECEIVE_BYTES,
	};
	memcpy(guest->queue.peer, qp->peer, sizeof(qp->peer));
	memcpy(guest->queue.local, golden.guest, sizeof(golden.guest));
	assert_int_equal(qp->length, BUFFER_BYTES);
	assert_int_equal(sl_roce_responder_init(&guest->queue), SL_ROCE_OK);
}

static void guest_complete(struct guest *guest, const struct sl_roce_action *action, bool write)
{
	struct completion *c = &guest->completion[guest->completions++];

	*c = (struct completion){action->message_bytes, action->imm, guest->taken++, write,
				 action->immediate};
	if (!write)
		memcpy(c->data, guest->receive, action->message_bytes);
}

/* One frame through ICRC, parser, responder and into the simulated memory. */
static int guest_receive(struct guest *guest, const struct golden_frame *frame)
{
	struct sl_roce_packet packet;
	struct sl_roce_action action;
	enum sl_roce_drop drop;

	if (!sl_roce_icrc_check(&frame->path, frame->udp, frame->udp_bytes, NULL))
		return BAD_ICRC;
	assert_int_equal(sl_roce_parse(frame->udp, frame->udp_bytes, &packet), SL_ROCE_OK);
	drop = sl_roce_responder_receive(&guest->queue, &frame->path, &packet, lookup, &guest->key,
					 &action);
	if (drop)
		return (int)drop;
	if (action.place == SL_ROCE_PLACE_MEMORY)
		memcpy(guest->memory + (action.va - guest->key.base), packet.payload, action.bytes);
	if (action.place == SL_ROCE_PLACE_RECEIVE)
		memcpy(guest->receive + action.offset, packet.payload, action.bytes);
	if (action.complete)
		guest_complete(guest, &action,
			       sl_roce_opcode(packet.opcode)->kind == SL_ROCE_KIND_WRITE);
	return SL_ROCE_ACCEPTED;
}

/* What must become of each frame, and the PSN expected after the case. as_seen: Soft-RoCE had that
 * PSN too. It had another where packets in between were not recorded, and where it was wedged. */
static const struct expectation {
	const char *name;
	int fault[4];
	uint32_t psn;
	bool as_seen;
} expectations[] = {
	{"UC_WRITE_ONLY_64", {0}, 0x101, false},
	{"UC_WRITE_ONLY_13_pad3", {0}, 0x102, false},
	{"UC_WRITE_ONLY_0", {0}, 0x103, true},
	{"UC_WRITE_FIRST_MIDDLE_LAST_612", {0}, 0x106, false},
	{"UC_WRITE_FIRST_LAST_IMM_288", {0}, 0x108, false},
	{"UC_WRITE_ONLY_IMM_16", {0}, 0x109, false},
	{"UC_SEND_ONLY_40", {0}, 0x10a, false},
	{"UC_SEND_ONLY_IMM_7_pad1", {0}, 0x10b, false},
	{"NEG_bad_ICRC", {BAD_ICRC}, 0x10b, false},
	{"UC_WRITE_ONLY_psn_gap", {0}, 0x11f, false},
	{"UC_WRITE_ONLY_b4_ff_fecn_becn", {0}, 0x120, false},
	{"NEG_connected_socket_unknown_ip_id", {BAD_ICRC}, 0x120, false},
	{"UC_WRITE_ONLY_x4_UDP_GSO_ids_0_1_2_3", {0}, 0x125, false},
	{"NEG_UDP_GSO_with_SO_NO_CHECK", {0}, 0x125, false},
	{"NEG_wrong_pkey_0x1234", {SL_ROCE_DROP_PKEY}, 0x125, true},
	{"UC_WRITE_ONLY_mig0_se1", {0}, 0x127, false},
	{"NEG_RC_opcode_to_UC_qp", {SL_ROCE_DROP_TRANSPORT}, 0x127, true},
	{"NEG_bad_rkey_UC", {SL_ROCE_DROP_KEY}, 0x1000, true},
	{"UC_WRITE_ONLY_after_bad_rkey", {0}, 0x1002, true},
	{"OBS_UC_FIRST_shorter_than_MTU", {SL_ROCE_DROP_LENGTH, SL_ROCE_DROP_BROKEN}, 0x2000, true},
	{"OBS_UC_ONLY_longer_than_path_MTU", {SL_ROCE_DROP_LENGTH}, 0x2000, true},
	{"NEG_unknown_qpn", {SL_ROCE_DROP_QUEUE}, 0xfffffe, false},
	{"UC_WRITE_lost_middle", {0, SL_ROCE_DROP_BROKEN}, 0x3001, true},
	/* Soft-RoCE is wedged here; a queue that follows the rules is not. */
	{"OBS_UC_WRITE_ONLY_after_loss", {0}, 0x3004, false},
	{"OBS_UC_WRITE_ONLY_after_loss_expected_psn", {0}, 0x3002, false},
};

static const struct expectation *find_expectation(const char *name)
{
	for (size_t i = 0; i < sizeof(expectations) / sizeof(*expectations); i++) {
		if (strcmp(expectations[i].name, name) == 0)
			return &expectations[i];
	}
	fail_msg("no expectation for %s", name);
	return NULL;
}

static void run_case(struct guest *guest, const struct golden_case *one)
{
	const struct expectation *expected = find_expectation(one->name);

	guest->completions = 0;
	for (unsigned i = 0; i < one->frames; i++)
		assert_int_equal(guest_receive(guest, &one->frame[i]), expected->fault[i]);
}

/* What the memory must hold after a case, from the decoder's fields and not from our responder. */
static void model_memory(const struct golden_case *one, uint8_t *memory)
{
	const struct expectation *expected = find_expectation(one->name);
	uint64_t at = 0;

	for (unsigned i = 0; i < one->frames; i++) {
		const struct golden_frame *frame = &one->frame[i];

		if (expected->fault[i] || strstr(golden_text(frame->fields, "name"), "SEND"))
			continue;
		if (golden_has(frame, "va"))
			at = golden_number(frame, "va") - one->qp.addr;
		memcpy(memory + (frame->payload_bytes ? at : 0), frame->payload,
		       frame->payload_bytes);
		at += frame->payload_bytes;
	}
}

/* "buffer[0x101:+14] == payload": what was looked at in the guest. Bytes beyond the payload were
 * zero there. An untouched or differing buffer is one that does not hold the payload. */
static void compare_with_seen(const struct golden_case *one, const struct guest *guest)
{
	const char *seen = strstr(one->result, "buffer[");
	uint8_t payload[BUFFER_BYTES] = {0};
	unsigned offset, bytes;
	size_t n = 0;
	int end = 0;
	bool holds;

	if (!seen)
		return;
	assert_int_equal(sscanf(seen, "buffer[%x:+%u] %n", &offset, &bytes, &end), 2);
	for (unsigned i = 0; i < one->frames; i++) {
		memcpy(payload + n, one->frame[i].payload, one->frame[i].payload_bytes);
		n += one->frame[i].payload_bytes;
	}
	holds = memcmp(guest->memory + offset, payload, bytes) == 0;
	if (strstr(one->name, "_after_loss"))
		assert_true(holds);
	else
		assert_int_equal(holds, strncmp(seen + end, "== payload", 10) == 0);
}

static void compare_completions(const struct golden_case *one, const struct guest *guest)
{
	assert_int_equal(json_array_size(one->events), guest->completions);
	for (unsigned i = 0; i < guest->completions; i++) {
		const struct completion *c = &guest->completion[i];
		const char *event = json_string_value(json_array_get(one->events, i));
		const char *data = strstr(event, "data=");
		uint8_t bytes[RECEIVE_BYTES];

		assert_non_null(strstr(event, "status=0(success)"));
		assert_int_equal(c->receive, golden_value(event, "wr_id"));
		assert_int_equal(c->write ? 129 : 128, golden_value(event, "opcode"));
		assert_int_equal(c->bytes, golden_value(event, "byte_len"));
		assert_int_equal(c->immediate, golden_value(event, "wc_flags") >> 1 & 1);
		if (c->immediate)
			assert_int_equal(c->imm, golden_value(event, "imm"));
		assert_int_equal(data != NULL, !c->write);
		if (data) {
			assert_int_equal(hex_bytes(data + 5, bytes, sizeof(bytes)), c->bytes);
			assert_memory_equal(bytes, c->data, c->bytes);
		}
	}
}

/* A queue lives over all cases with its number: replay those before this one, then look. */
static void respond_to_case(void **state)
{
	const struct golden_case *one = *state;
	const struct expectation *expected = find_expectation(one->name);
	static struct guest guest;
	static uint8_t model[BUFFER_BYTES];

	guest_init(&guest, &one->qp);
	for (const struct golden_case *c = golden.one; c < one; c++) {
		if (c->qp.qpn == one->qp.qpn)
			run_case(&guest, c);
	}
	memcpy(model, guest.memory, sizeof(model));
	run_case(&guest, one);
	model_memory(one, model);
	assert_memory_equal(guest.memory, model, sizeof(model));
	compare_with_seen(one, &guest);
	compare_completions(one, &guest);
	assert_int_equal(guest.queue.expected_psn, expected->psn);
	if (expected->as_seen)
		assert_int_equal(golden_value(one->result, "rq_psn"), expected->psn);
}

/* The kernel refused to send anything, so there is nothing to see, and the queue must not care. */
static void respond_to_nothing(void **state)
{
	const struct golden_case *one = *state;

	assert_int_equal(one->frames, 0);
	assert_non_null(strstr(one->result, "[Errno 22]"));
	respond_to_case(state);
}

/* RC is not for a UC queue, whoever sends it. */
static void refuse_rc_case(void **state)
{
	const struct golden_case *one = *state;
	static struct guest guest;
	uint8_t before[sizeof(guest.queue)];

	assert_false(one->qp.uc);
	assert_true(one->frames > 0);
	guest_init(&guest, &one->qp);
	for (unsigned i = 0; i < one->frames; i++) {
		const struct golden_frame *frame = &one->frame[i];

		guest.queue.qpn = frame->from_guest ? one->qp.peer_qpn : one->qp.qpn;
		memcpy(guest.queue.peer, frame->path.source, 16);
		memcpy(guest.queue.local, frame->path.dest, 16);
		memcpy(before, &guest.queue, sizeof(before));
		assert_int_equal(guest_receive(&guest, frame), SL_ROCE_DROP_TRANSPORT);
		assert_memory_equal(&guest.queue, before, sizeof(before));
	}
}

/* What Soft-RoCE sent, received by our responder: the message comes out whole. */
static void receive_from_guest(void **state)
{
	const struct golden_case *one = *state;
	const struct golden_frame *last = &one->frame[one->frames - 1];
	static struct guest host;
	struct golden_qp qp = one->qp;
	bool write = strstr(one->name, "WRITE") != NULL;

	qp.qpn = one->qp.peer_qpn;
	qp.rq_psn = (uint32_t)golden_number(&one->frame[0], "psn");
	if (write) {
		qp.addr = golden_number(&one->frame[0], "va");
		qp.rkey = (uint32_t)golden_number(&one->frame[0], "rkey");
	}
	guest_init(&host, &qp);
	memcpy(host.queue.peer, golden.guest, 16);
	memcpy(host.queue.local, one->qp.peer, 16);
	for (unsigned i = 0, at = 0; i < one->frames; i++) {
		const struct golden_frame *frame = &one->frame[i];

		assert_int_equal(guest_receive(&host, frame), SL_ROCE_ACCEPTED);
		assert_memory_equal((write ? host.memory : host.receive) + at, frame->payload,
				    frame->payload_bytes);
		at += (unsigned)frame->payload_bytes;
	}
	assert_false(host.queue.open);
	assert_int_equal(host.completions, !write || golden_has(last, "imm"));
	if (golden_has(last, "imm"))
		assert_int_equal(host.completion[0].imm, golden_number(last, "imm"));
}

static void add_case(const struct golden_case *one)
{
	if (!one->qp.uc)
		golden_add(&tests, refuse_rc_case, "refuse", one);
	else if (golden_starts(one, "RXE_"))
		golden_add(&tests, receive_from_guest, "receive", one);
	else if (one->frames)
		golden_add(&tests, respond_to_case, "respond", one);
	else
		golden_add(&tests, respond_to_nothing, "respond", one);
}

int main(void)
{
	int failed;

	golden_load(SL_TEST_DATA "/soft-roce.json", &golden);
	for (unsigned i = 0; i < golden.cases; i++)
		add_case(&golden.one[i]);
	failed = _cmocka_run_group_tests("golden responder", tests.test, tests.count, NULL, NULL);
	json_decref(golden.root);
	return failed;
}
