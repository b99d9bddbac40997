/* wire_test.c - every message survives the wire, and nothing else passes for one. The last cases
 * send the bytes through a channel. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/tcp/channel.h"
#include "control/tcp/wire.h"

static uint64_t seed;

static uint64_t any(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return seed ^ seed >> 29;
}

static void any_text(char *text, size_t bytes)
{
	size_t length = any() % bytes; /* up to one less than fits: the end mark is part of it */

	memset(text, 0, bytes);
	for (size_t i = 0; i < length; i++) {
		text[i] = (char)(0x20 + any() % 0xe0); /* UTF-8 too */
		if (text[i] == 0x7f)
			text[i] = '~';
	}
}

static void any_bytes(uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)any();
}

static void any_hello(struct sl_wire_hello *h)
{
	h->modules = (uint16_t)any();
	h->host = any();
	h->experiment = any();
	any_text(h->link, sizeof(h->link));
	any_text(h->detector, sizeof(h->detector));
	any_bytes(h->reserved, sizeof(h->reserved));
	any_bytes(h->nonce, sizeof(h->nonce));
}

static void any_offer(struct sl_offer *o)
{
	o->module = (uint16_t)any();
	o->services = (uint16_t)any();
	o->messages = (uint16_t)any();
	o->max_pmtu = (uint16_t)any();
	o->ip_id = (uint16_t)any();
	any_bytes(o->source.ip, sizeof(o->source.ip));
	o->source.port = (uint16_t)any();
	o->credit_port = (uint16_t)any();
	o->credit_qpn = (uint32_t)any();
	o->credit_rkey = (uint32_t)any();
	o->credit_va = any();
	o->block_bytes = any();
	o->first_frame = any();
	o->frames = any();
	o->operations = (uint16_t)any();
	o->lines = (uint32_t)any();
	o->line_bytes = (uint32_t)any();
	o->bare = (uint16_t)any();
}

static void any_plan(struct sl_plan *p)
{
	p->version = (uint16_t)any();
	p->transfer = (uint16_t)any();
	p->module = (uint16_t)any();
	p->service = (uint16_t)any();
	p->message = (uint16_t)any();
	p->pmtu = (uint16_t)any();
	p->ip_id = (uint16_t)any();
	p->crc = (uint16_t)any();
	p->qpn = (uint32_t)any();
	p->rkey = (uint32_t)any();
	p->first_psn = (uint32_t)any();
	p->slots = (uint32_t)any();
	p->packets = (uint32_t)any();
	p->base = any();
	p->stride = any();
	p->block_at = any();
	p->block_bytes = any();
	p->first_sequence = any();
	p->window_bytes = any();
	any_bytes(p->source.ip, sizeof(p->source.ip));
	p->source.port = (uint16_t)any();
	any_bytes(p->dest.ip, sizeof(p->dest.ip));
	p->dest.port = (uint16_t)any();
	p->credit_qpn = (uint32_t)any();
	p->credit_rkey = (uint32_t)any();
	p->credit_va = any();
	p->credit_port = (uint16_t)any();
	any_text(p->location, sizeof(p->location));
	p->operation = (uint16_t)any();
	p->credit_psn = (uint32_t)any();
	p->lines = (uint32_t)any();
	p->line_bytes = (uint32_t)any();
	p->line_pitch = any();
	p->record_at = any();
	p->bare = (uint16_t)any();
}

/* Padding is zero, so that messages may be compared as memory. */
static void any_message(enum sl_wire_type type, struct sl_wire_message *m)
{
	memset(m, 0, sizeof(*m));
	m->type = type;
	if (type == SL_WIRE_HELLO)
		any_hello(&m->hello);
	else if (type == SL_WIRE_OFFER)
		any_offer(&m->offer);
	else if (type == SL_WIRE_PLAN)
		any_plan(&m->plan);
	else if (type == SL_WIRE_COUNT || type == SL_WIRE_DONE)
		m->count = (struct sl_wire_count){(uint16_t)any(), any(), any(), any()};
	else if (type == SL_WIRE_BYE)
		m->bye.more = (uint16_t)any();
	else if (type == SL_WIRE_ERROR)
		any_text(m->error.text, sizeof(m->error.text));
	else if (type == SL_WIRE_CHALLENGE)
		any_bytes(m->challenge.nonce, sizeof(m->challenge.nonce));
	else if (type == SL_WIRE_PROOF)
		any_bytes(m->proof.proof, sizeof(m->proof.proof));
}

/* Decode from memory that ends where the bytes end: a byte too far is seen by the sanitizer. */
static int decode(const uint8_t *bytes, size_t n, struct sl_wire_message *message)
{
	uint8_t *exact = malloc(n ? n : 1);
	int used;

	memcpy(exact, bytes, n);
	used = sl_wire_decode(exact, n, message);
	free(exact);
	return used;
}

static int setup(void **state)
{
	seed = 1;
	return 0;
}

static void every_message_survives_the_round_trip(void **state)
{
	for (unsigned type = SL_WIRE_HELLO; type < SL_WIRE_TYPES; type++)
		for (int i = 0; i < 200; i++) {
			struct sl_wire_message out, in;
			uint8_t bytes[SL_WIRE_MAX];
			int n;

			any_message(type, &out);
			n = sl_wire_encode(&out, bytes, sizeof(bytes));
			assert_true(n >= SL_WIRE_HEADER);
			memset(&in, 0xff, sizeof(in));
			assert_int_equal(decode(bytes, (size_t)n, &in), n);
			assert_memory_equal(&in, &out, sizeof(in));
		}
}

static void a_count_is_these_bytes(void **state)
{
	static const uint8_t golden[] = {
		'S',  'L',  'C',  '1',	2,    0,    6,	  0,	26,   0,    0,	  0,	0x34,
		0x12, 8,    7,	  6,	5,    4,    3,	  2,	1,    0x18, 0x17, 0x16, 0x15,
		0x14, 0x13, 0x12, 0x11, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21,
	};
	const struct sl_wire_message message = {
		.type = SL_WIRE_COUNT,
		.count = {.transfer = 0x1234,
			  .next = UINT64_C(0x0102030405060708),
			  .sent = UINT64_C(0x1112131415161718),
			  .position = UINT64_C(0x2122232425262728)},
	};
	uint8_t bytes[SL_WIRE_MAX];

	assert_int_equal(sl_wire_encode(&message, bytes, sizeof(bytes)), sizeof(golden));
	assert_memory_equal(bytes, golden, sizeof(golden));
}

static void messages_have_the_size_that_is_documented(void **state)
{
	static const int body[SL_WIRE_TYPES] = {
		[SL_WIRE_HELLO] = 162, [SL_WIRE_OFFER] = 82,	 [SL_WIRE_PLAN] = 278,
		[SL_WIRE_COUNT] = 26,  [SL_WIRE_DONE] = 26,	 [SL_WIRE_ERROR] = 256,
		[SL_WIRE_BYE] = 2,     [SL_WIRE_CHALLENGE] = 32, [SL_WIRE_PROOF] = 32,
	};

	for (unsigned type = SL_WIRE_HELLO; type < SL_WIRE_TYPES; type++) {
		struct sl_wire_message message;
		uint8_t bytes[SL_WIRE_MAX];

		any_message(type, &message);
		assert_int_equal(sl_wire_encode(&message, bytes, sizeof(bytes)),
				 SL_WIRE_HEADER + body[type]);
	}
}

static void a_truncated_message_is_never_one(void **state)
{
	for (unsigned type = SL_WIRE_HELLO; type < SL_WIRE_TYPES; type++) {
		struct sl_wire_message message, untouched;
		uint8_t bytes[SL_WIRE_MAX];
		int n;

		any_message(type, &message);
		n = sl_wire_encode(&message, bytes, sizeof(bytes));
		memset(&message, 0x5a, sizeof(message));
		untouched = message;
		for (int cut = 0; cut < n; cut++) {
			assert_int_equal(decode(bytes, (size_t)cut, &message), 0);
			assert_memory_equal(&message, &untouched, sizeof(message));
		}
	}
}

static void bytes_behind_a_message_belong_to_the_next(void **state)
{
	struct sl_wire_message first, second, got;
	uint8_t bytes[2 * SL_WIRE_MAX];
	int n, m;

	any_message(SL_WIRE_PLAN, &first);
	any_message(SL_WIRE_COUNT, &second);
	n = sl_wire_encode(&first, bytes, SL_WIRE_MAX);
	m = sl_wire_encode(&second, bytes + n, SL_WIRE_MAX);
	assert_int_equal(decode(bytes, (size_t)(n + m), &got), n);
	assert_memory_equal(&got, &first, sizeof(got));
	assert_int_equal(decode(bytes + n, (size_t)m, &got), m);
	assert_memory_equal(&got, &second, sizeof(got));
}

static void set_length(uint8_t *bytes, uint32_t body)
{
	for (int i = 0; i < 4; i++)
		bytes[8 + i] = (uint8_t)(body >> 8 * i);
}

static void a_longer_body_is_of_a_later_version_and_good(void **state)
{
	for (unsigned type = SL_WIRE_HELLO; type < SL_WIRE_TYPES; type++) {
		struct sl_wire_message out, in;
		uint8_t bytes[SL_WIRE_MAX + 1];
		int n;

		any_message(type, &out);
		n = sl_wire_encode(&out, bytes, sizeof(bytes));
		memset(bytes + n, 0xee, 10);
		set_length(bytes, (uint32_t)(n - SL_WIRE_HEADER + 10));
		assert_int_equal(decode(bytes, (size_t)n + 9, &in), 0);
		assert_int_equal(decode(bytes, (size_t)n + 10, &in), n + 10);
		assert_memory_equal(&in, &out, sizeof(in));
		set_length(bytes, SL_WIRE_MAX - SL_WIRE_HEADER); /* as long as they may get */
		memset(bytes + n, 0xee, sizeof(bytes) - (size_t)n);
		assert_int_equal(decode(bytes, SL_WIRE_MAX, &in), SL_WIRE_MAX);
	}
}

/* What was appended to a message and may be missing. */
static int later_bytes(unsigned type)
{
	static const int bytes[SL_WIRE_TYPES] = {
		[SL_WIRE_HELLO] = 32, [SL_WIRE_OFFER] = 10, [SL_WIRE_PLAN] = 26, [SL_WIRE_BYE] = 2};

	return bytes[type];
}

static void a_shorter_body_is_refused(void **state)
{
	for (unsigned type = SL_WIRE_HELLO; type < SL_WIRE_TYPES; type++) {
		struct sl_wire_message message;
		uint8_t bytes[SL_WIRE_MAX];
		int n;

		any_message(type, &message);
		n = sl_wire_encode(&message, bytes, sizeof(bytes));
		for (int body = 0; body < n - SL_WIRE_HEADER - later_bytes(type); body++) {
			set_length(bytes, (uint32_t)body);
			assert_int_equal(decode(bytes, (size_t)n, &message), -EPROTO);
		}
	}
}

static void fields_of_later_may_be_missing_and_are_then_zero(void **state)
{
	struct sl_wire_message out, in;
	uint8_t bytes[SL_WIRE_MAX];
	int n, body;

	any_message(SL_WIRE_PLAN, &out);
	n = sl_wire_encode(&out, bytes, sizeof(bytes));
	for (int missing = 1; missing <= later_bytes(SL_WIRE_PLAN); missing++) {
		body = n - SL_WIRE_HEADER - missing;
		set_length(bytes, (uint32_t)body);
		assert_int_equal(decode(bytes, (size_t)(SL_WIRE_HEADER + body), &in),
				 SL_WIRE_HEADER + body);
		assert_int_equal(in.plan.credit_psn, out.plan.credit_psn);
		assert_int_equal(in.plan.bare, 0); /* the last: a part of a field is none */
		assert_int_equal(in.plan.record_at, missing <= 2 ? out.plan.record_at : 0);
		assert_int_equal(in.plan.line_pitch, missing <= 10 ? out.plan.line_pitch : 0);
		assert_int_equal(in.plan.lines, missing <= 22 ? out.plan.lines : 0);
	}
	any_message(SL_WIRE_OFFER, &out);
	n = sl_wire_encode(&out, bytes, sizeof(bytes));
	set_length(bytes, 72); /* as front ends of yesterday send it */
	assert_int_equal(decode(bytes, SL_WIRE_HEADER + 72, &in), SL_WIRE_HEADER + 72);
	assert_int_equal(in.offer.operations, out.offer.operations);
	assert_true(!in.offer.lines && !in.offer.line_bytes && !in.offer.bare);
}

static void a_huge_length_is_refused_at_once(void **state)
{
	static const uint32_t lengths[] = {SL_WIRE_MAX - SL_WIRE_HEADER + 1, 1 << 20, INT32_MAX,
					   UINT32_MAX - SL_WIRE_HEADER, UINT32_MAX};
	struct sl_wire_message message = {.type = SL_WIRE_READY};
	uint8_t bytes[SL_WIRE_MAX];

	sl_wire_encode(&message, bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		set_length(bytes, lengths[i]);
		assert_int_equal(decode(bytes, SL_WIRE_HEADER, &message), -EPROTO);
		assert_int_equal(decode(bytes, SL_WIRE_MAX, &message), -EPROTO);
	}
}

static void another_magic_is_refused_from_its_first_byte_on(void **state)
{
	struct sl_wire_message message = {.type = SL_WIRE_READY};
	uint8_t bytes[SL_WIRE_MAX];

	for (size_t wrong = 0; wrong < 4; wrong++) {
		sl_wire_encode(&message, bytes, sizeof(bytes));
		bytes[wrong] ^= 0x20;
		for (size_t n = 0; n <= SL_WIRE_HEADER; n++)
			assert_int_equal(decode(bytes, n, &message), n > wrong ? -EPROTO : 0);
	}
	assert_int_equal(decode((const uint8_t *)"GET / HTTP/1.1\r\n", 16, &message), -EPROTO);
}

static void another_version_is_told_apart(void **state)
{
	struct sl_wire_message message = {.type = SL_WIRE_READY};
	uint8_t bytes[SL_WIRE_MAX];

	sl_wire_encode(&message, bytes, sizeof(bytes));
	bytes[4]++;
	assert_int_equal(decode(bytes, SL_WIRE_HEADER, &message), -EPROTONOSUPPORT);
	bytes[4]--;
	bytes[5] = 1; /* the high byte counts too */
	assert_int_equal(decode(bytes, SL_WIRE_HEADER, &message), -EPROTONOSUPPORT);
}

static void a_type_that_does_not_exist_is_refused(void **state)
{
	static const uint16_t types[] = {0, SL_WIRE_TYPES, 0x100 + SL_WIRE_READY, UINT16_MAX};
	struct sl_wire_message message = {.type = SL_WIRE_READY};
	uint8_t bytes[SL_WIRE_MAX] = {0};

	sl_wire_encode(&message, bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		bytes[6] = (uint8_t)types[i];
		bytes[7] = (uint8_t)(types[i] >> 8);
		assert_int_equal(decode(bytes, SL_WIRE_HEADER, &message), -EPROTO);
	}
}

enum { ERROR_BYTES = SL_WIRE_HEADER + sizeof(struct sl_wire_error) };

static void encode_error(const char *text, uint8_t bytes[SL_WIRE_MAX])
{
	struct sl_wire_message message;

	memset(&message, 0, sizeof(message));
	message.type = SL_WIRE_ERROR;
	strcpy(message.error.text, text);
	assert_int_equal(sl_wire_encode(&message, bytes, SL_WIRE_MAX), ERROR_BYTES);
}

static void a_text_without_an_end_is_refused(void **state)
{
	struct sl_wire_message message;
	uint8_t bytes[SL_WIRE_MAX];

	encode_error("", bytes);
	memset(bytes + SL_WIRE_HEADER, 'x', sizeof(message.error.text) - 1);
	assert_int_equal(decode(bytes, ERROR_BYTES, &message), ERROR_BYTES);
	bytes[ERROR_BYTES - 1] = 'x';
	assert_int_equal(decode(bytes, ERROR_BYTES, &message), -EPROTO);
}

static void control_characters_in_a_text_are_refused(void **state)
{
	struct sl_wire_message message;
	uint8_t bytes[SL_WIRE_MAX];

	for (unsigned c = 1; c < 256; c++) {
		bool control = c < 0x20 || c == 0x7f;

		encode_error("abc", bytes);
		bytes[SL_WIRE_HEADER + 1] = (uint8_t)c;
		assert_int_equal(decode(bytes, ERROR_BYTES, &message),
				 control ? -EPROTO : ERROR_BYTES);
	}
}

static void anything_behind_a_text_is_refused(void **state)
{
	struct sl_wire_message message;
	uint8_t bytes[SL_WIRE_MAX];

	encode_error("abc", bytes);
	bytes[SL_WIRE_HEADER + 10] = 'x';
	assert_int_equal(decode(bytes, ERROR_BYTES, &message), -EPROTO);
}

static void what_lies_behind_a_text_does_not_travel(void **state)
{
	struct sl_wire_message out, in;
	uint8_t bytes[SL_WIRE_MAX];

	memset(&out, 's', sizeof(out)); /* as a stack may be */
	out.type = SL_WIRE_ERROR;
	strcpy(out.error.text, "no");
	assert_int_equal(sl_wire_encode(&out, bytes, sizeof(bytes)), ERROR_BYTES);
	assert_null(memchr(bytes + SL_WIRE_HEADER, 's', ERROR_BYTES - SL_WIRE_HEADER));
	assert_int_equal(decode(bytes, ERROR_BYTES, &in), ERROR_BYTES);
	assert_string_equal(in.error.text, "no");
}

static void a_buffer_that_is_too_small_gets_nothing(void **state)
{
	for (unsigned type = SL_WIRE_HELLO; type < SL_WIRE_TYPES; type++) {
		struct sl_wire_message message;
		uint8_t whole[SL_WIRE_MAX];
		int n;

		any_message(type, &message);
		n = sl_wire_encode(&message, whole, sizeof(whole));
		for (int room = 0; room < n; room++) {
			uint8_t *small = malloc(room ? (size_t)room : 1);

			assert_int_equal(sl_wire_encode(&message, small, (size_t)room), -ENOSPC);
			free(small);
		}
		assert_int_equal(sl_wire_encode(&message, whole, (size_t)n), n);
	}
}

static void any_bytes_never_pass_by_accident(void **state)
{
	for (int i = 0; i < 20000; i++) {
		struct sl_wire_message message = {.type = SL_WIRE_PLAN};
		uint8_t bytes[300];
		size_t n = any() % sizeof(bytes);
		int used;

		any_bytes(bytes, sizeof(bytes));
		if (i % 2) { /* get past the door */
			any_message(1 + any() % (SL_WIRE_TYPES - 1), &message);
			used = sl_wire_encode(&message, bytes, sizeof(bytes));
			bytes[any() % (unsigned)used] ^= (uint8_t)(1 << any() % 8);
		}
		used = decode(bytes, n, &message);
		assert_true(used <= (int)n);
		assert_true(used >= 0 || used == -EPROTO || used == -EPROTONOSUPPORT);
	}
}

static void types_have_names(void **state)
{
	assert_string_equal(sl_wire_name(SL_WIRE_HELLO), "HELLO");
	assert_string_equal(sl_wire_name(SL_WIRE_ERROR), "ERROR");
	assert_string_equal(sl_wire_name(0), "?");
	assert_string_equal(sl_wire_name(SL_WIRE_TYPES), "?");
}

/* ---- over a channel ---- */

struct pair {
	struct sl_channel a, b;
};

static int setup_pair(void **state)
{
	static struct pair pair;
	int fd[2];

	seed = 1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		return -1;
	sl_channel_init(&pair.a, fd[0]);
	sl_channel_init(&pair.b, fd[1]);
	*state = &pair;
	return 0;
}

static int teardown_pair(void **state)
{
	struct pair *pair = *state;

	sl_channel_close(&pair->a);
	sl_channel_close(&pair->b);
	return 0;
}

static void a_channel_carries_messages_in_order(void **state)
{
	struct pair *pair = *state;
	struct sl_wire_message out[SL_WIRE_TYPES], in;

	for (unsigned type = SL_WIRE_HELLO; type < SL_WIRE_TYPES; type++) {
		any_message(type, &out[type]);
		assert_int_equal(sl_channel_send(&pair->a, &out[type]), 0);
	}
	for (unsigned type = SL_WIRE_HELLO; type < SL_WIRE_TYPES; type++) {
		assert_int_equal(sl_channel_receive(&pair->b, 0, &in), 1);
		assert_memory_equal(&in, &out[type], sizeof(in));
	}
	assert_int_equal(sl_channel_receive(&pair->b, 0, &in), 0);
}

static void a_channel_puts_pieces_together(void **state)
{
	struct pair *pair = *state;
	struct sl_wire_message out, in;
	uint8_t bytes[SL_WIRE_MAX];
	int n;

	any_message(SL_WIRE_PLAN, &out);
	n = sl_wire_encode(&out, bytes, sizeof(bytes));
	for (int i = 0; i < n; i++) {
		assert_int_equal(sl_channel_receive(&pair->b, 0, &in), 0);
		assert_int_equal(write(pair->a.fd, bytes + i, 1), 1);
	}
	assert_int_equal(sl_channel_receive(&pair->b, 0, &in), 1);
	assert_memory_equal(&in, &out, sizeof(in));
}

static void a_channel_survives_more_than_its_buffer(void **state)
{
	struct pair *pair = *state;
	struct sl_wire_message out, in;
	unsigned sent = 6 * sizeof(pair->a.in) / sizeof(struct sl_plan);

	any_message(SL_WIRE_PLAN, &out);
	for (unsigned i = 0; i < sent; i++) {
		out.plan.base = i;
		assert_int_equal(sl_channel_send(&pair->a, &out), 0);
	}
	for (unsigned i = 0; i < sent; i++) {
		assert_int_equal(sl_channel_receive(&pair->b, 0, &in), 1);
		assert_int_equal(in.plan.base, i);
	}
}

static void a_channel_notices_that_the_other_side_is_gone(void **state)
{
	struct pair *pair = *state;
	struct sl_wire_message message = {.type = SL_WIRE_READY};

	assert_int_equal(sl_channel_send(&pair->a, &message), 0);
	sl_channel_close(&pair->a);
	assert_int_equal(sl_channel_receive(&pair->b, 0, &message), 1); /* first what it said */
	assert_int_equal(sl_channel_receive(&pair->b, 0, &message), -EPIPE);
	assert_int_equal(sl_channel_send(&pair->b, &message), -EPIPE); /* and no signal */
}

static void a_channel_does_not_get_over_garbage(void **state)
{
	struct pair *pair = *state;
	struct sl_wire_message message = {.type = SL_WIRE_READY};

	assert_int_equal(write(pair->a.fd, "garbage", 7), 7);
	assert_int_equal(sl_channel_receive(&pair->b, 0, &message), -EPROTO);
	assert_int_equal(sl_channel_send(&pair->a, &message), 0);
	assert_int_equal(sl_channel_receive(&pair->b, 0, &message), -EPROTO);
}

static void a_long_refusal_is_cut_and_arrives(void **state)
{
	struct pair *pair = *state;
	struct sl_wire_message message;
	char text[400];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	sl_channel_refuse(&pair->a, "because %s", text);
	assert_int_equal(sl_channel_receive(&pair->b, 0, &message), 1);
	assert_int_equal(message.type, SL_WIRE_ERROR);
	assert_int_equal(strlen(message.error.text), sizeof(message.error.text) - 1);
	assert_memory_equal(message.error.text, "because xxx", 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup(f, setup)
		CASE(every_message_survives_the_round_trip),
		CASE(a_count_is_these_bytes),
		CASE(messages_have_the_size_that_is_documented),
		CASE(a_truncated_message_is_never_one),
		CASE(bytes_behind_a_message_belong_to_the_next),
		CASE(a_longer_body_is_of_a_later_version_and_good),
		CASE(a_shorter_body_is_refused),
		CASE(fields_of_later_may_be_missing_and_are_then_zero),
		CASE(a_huge_length_is_refused_at_once),
		CASE(another_magic_is_refused_from_its_first_byte_on),
		CASE(another_version_is_told_apart),
		CASE(a_type_that_does_not_exist_is_refused),
		CASE(a_text_without_an_end_is_refused),
		CASE(control_characters_in_a_text_are_refused),
		CASE(anything_behind_a_text_is_refused),
		CASE(what_lies_behind_a_text_does_not_travel),
		CASE(a_buffer_that_is_too_small_gets_nothing),
		CASE(any_bytes_never_pass_by_accident),
		CASE(types_have_names),
#define PAIR(f) cmocka_unit_test_setup_teardown(f, setup_pair, teardown_pair)
		PAIR(a_channel_carries_messages_in_order),
		PAIR(a_channel_puts_pieces_together),
		PAIR(a_channel_survives_more_than_its_buffer),
		PAIR(a_channel_notices_that_the_other_side_is_gone),
		PAIR(a_channel_does_not_get_over_garbage),
		PAIR(a_long_refusal_is_cut_and_arrives),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
