/* predict_test.c - the predictive receiver with a small format of its own, over loopback: packets
 * that come in order are received in place; whatever is lost, doubled, overtaken or foreign is
 * repaired, and nothing that was received changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/predict.h"

enum {
	PACKETS = 1024,
	PAYLOAD = 100,
	LAST = 60,  /* payload of the last packet of a block */
	BLOCK = 16, /* packets */
	HEADER = 8,
	TRAILER = 4,
	BUDGET = 4096,
	UNTOUCHED = 0xa5,
	TRIALS = 200,
};

struct guess {
	uint64_t n;
	bool placed;
	uint8_t header[HEADER], trailer[TRAILER];
};

struct rig {
	int fd, sender, stranger;
	union sl_net_address to;
	socklen_t to_bytes;
	uint16_t sender_port;
	struct sl_predict_stream stream;
	struct sl_predict_batch batch;
	struct guess guess[SL_PREDICT_BATCH];
	uint8_t scratch[SL_PREDICT_BATCH][PAYLOAD];
	uint8_t memory[PACKETS][PAYLOAD];
	bool in[PACKETS];
	uint64_t next, open; /* packets below `open` may be placed */
	unsigned in_place, copied, doubled, refused, foreign, empty, other;
	size_t longest;
};

static uint32_t payload_of(uint64_t n)
{
	return n % BLOCK == BLOCK - 1 ? LAST : PAYLOAD;
}

static uint8_t pixel(uint64_t n, uint32_t i)
{
	return (uint8_t)(n * 7 + i);
}

static void encode(uint64_t n, uint8_t *header, uint8_t *trailer)
{
	uint64_t inverse = ~n;

	memcpy(header, &n, HEADER);
	memcpy(trailer, &inverse, TRAILER);
}

static uint64_t decode(const uint8_t *header, const uint8_t *trailer)
{
	uint8_t want[TRAILER], same[HEADER];
	uint64_t n;

	memcpy(&n, header, HEADER);
	encode(n, same, want);
	return memcmp(want, trailer, TRAILER) != 0 ? UINT64_MAX : n;
}

/* ---- the format ---- */

static uint64_t next_packet(void *flow, unsigned most)
{
	assert_in_range(most, 1, SL_PREDICT_MANY * SL_PREDICT_BATCH);
	return ((struct rig *)flow)->next;
}

static uint32_t lay_out(void *flow, unsigned number, uint64_t n, struct iovec *iov, unsigned *iovs)
{
	struct rig *rig = flow;
	struct guess *guess = &rig->guess[number];

	guess->n = n;
	guess->placed = n < rig->open && !rig->in[n];
	iov[0] = (struct iovec){guess->header, HEADER};
	iov[1] = (struct iovec){guess->placed ? rig->memory[n] : rig->scratch[number],
				payload_of(n)};
	iov[2] = (struct iovec){guess->trailer, TRAILER};
	*iovs = 3;
	return HEADER + payload_of(n) + TRAILER;
}

static void arrived(void *flow, struct sl_predict_datagram *datagram, const struct msghdr *header)
{
	const struct rig *rig = flow;
	uint8_t gid[SL_NET_GID_BYTES];

	datagram->foreign = header->msg_name &&
			    sl_net_gid(header->msg_name, gid) != rig->sender_port;
}

static void take(struct rig *rig, uint64_t n)
{
	rig->in[n] = true;
	if (n >= rig->next)
		rig->next = n + 1;
}

static bool take_guessed(void *flow, const struct sl_predict_datagram *datagram, unsigned number)
{
	struct rig *rig = flow;
	const struct guess *guess = &rig->guess[number];

	assert_false(datagram->foreign);
	if (!guess->placed || decode(guess->header, guess->trailer) != guess->n)
		return false;
	assert_false(rig->in[guess->n]);
	take(rig, guess->n);
	rig->in_place++;
	return true;
}

static void take_other(void *flow, const struct sl_predict_datagram *datagram, const uint8_t *data,
		       size_t bytes)
{
	struct rig *rig = flow;
	uint64_t n;

	rig->longest = bytes > rig->longest ? bytes : rig->longest;
	if (!bytes) {
		rig->empty++;
		return;
	}
	if (datagram->foreign) {
		rig->foreign++;
		return;
	}
	n = bytes < HEADER + TRAILER ? UINT64_MAX : decode(data, data + bytes - TRAILER);
	if (n >= PACKETS || bytes != HEADER + payload_of(n) + TRAILER) {
		rig->other++;
	} else if (n >= rig->open) {
		rig->refused++;
	} else if (rig->in[n]) {
		rig->doubled++;
	} else {
		memcpy(rig->memory[n], data + HEADER, payload_of(n));
		take(rig, n);
		rig->copied++;
	}
}

static const struct sl_predict_ops ops = {
	.next = next_packet,
	.lay_out = lay_out,
	.arrived = arrived,
	.take_guessed = take_guessed,
	.take_other = take_other,
};

/* ---- the rig ---- */

static struct rig *rig_new(void)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	uint8_t gid[SL_NET_GID_BYTES];

	assert_non_null(rig);
	assert_int_equal(sl_net_parse("test", "127.0.0.1", gid), 0);
	rig->fd = sl_net_open(gid, 0);
	rig->sender = sl_net_open(gid, 0);
	rig->stranger = sl_net_open(gid, 0);
	assert_true(rig->fd >= 0 && rig->sender >= 0 && rig->stranger >= 0);
	sl_net_merge(rig->fd);
	rig->to_bytes = sl_net_address(gid, sl_net_port(rig->fd), &rig->to);
	rig->sender_port = sl_net_port(rig->sender);
	rig->stream = (struct sl_predict_stream){.batch = SL_PREDICT_BATCH, .peers = true};
	rig->open = PACKETS;
	memset(rig->memory, UNTOUCHED, sizeof(rig->memory));
	return rig;
}

static void rig_free(struct rig *rig)
{
	close(rig->fd);
	close(rig->sender);
	close(rig->stranger);
	free(rig);
}

static unsigned rig_poll(struct rig *rig)
{
	return sl_predict_poll(&ops, rig, rig->fd, &rig->stream, &rig->batch, BUDGET);
}

/* One datagram, as the packets of `together`; the payload of packet n is XORed with `flip`. */
static void send_from(struct rig *rig, int fd, const uint64_t *n, unsigned together, uint8_t flip)
{
	uint8_t data[BLOCK * (HEADER + PAYLOAD + TRAILER)], *at = data;
	_Alignas(8) uint8_t control[SL_NET_CONTROL_BYTES];
	struct iovec iov = {.iov_base = data};
	struct msghdr message = {.msg_name = &rig->to,
				 .msg_namelen = rig->to_bytes,
				 .msg_iov = &iov,
				 .msg_iovlen = 1};

	for (unsigned p = 0; p < together; p++) {
		uint32_t bytes = payload_of(n[p]);

		for (uint32_t i = 0; i < bytes; i++)
			at[HEADER + i] = pixel(n[p], i) ^ flip;
		encode(n[p], at, at + HEADER + bytes);
		at += HEADER + bytes + TRAILER;
	}
	iov.iov_len = (size_t)(at - data);
	if (together > 1)
		sl_net_segment(&message, control, HEADER + PAYLOAD + TRAILER);
	assert_int_equal(sendmsg(fd, &message, 0), iov.iov_len);
}

static void send_one(struct rig *rig, uint64_t n)
{
	send_from(rig, rig->sender, &n, 1, 0);
}

static void send_bytes(struct rig *rig, int fd, const void *data, size_t bytes)
{
	assert_int_equal(sendto(fd, data, bytes, 0, &rig->to.any, rig->to_bytes), bytes);
}

static bool intact(const struct rig *rig, uint64_t n)
{
	for (uint32_t i = 0; i < payload_of(n); i++)
		if (rig->memory[n][i] != pixel(n, i))
			return false;
	return rig->in[n];
}

static bool untouched(const struct rig *rig, uint64_t n)
{
	for (uint32_t i = 0; i < PAYLOAD; i++)
		if (rig->memory[n][i] != UNTOUCHED)
			return false;
	return !rig->in[n];
}

static void assert_intact(const struct rig *rig, uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n < to; n++)
		assert_true(intact(rig, n));
}

/* ---- tests ---- */

static void packets_in_order_are_received_in_place(void **state)
{
	struct rig *rig = rig_new();

	for (uint64_t n = 0; n < 128; n++) {
		send_one(rig, n);
		if (n % 32 == 31)
			assert_int_equal(rig_poll(rig), 32);
	}
	assert_intact(rig, 0, 128);
	assert_int_equal(rig->in_place, 128);
	assert_int_equal(rig->copied, 0);
	assert_int_equal(rig->stream.guessed, 128);
	assert_int_equal(rig->stream.repaired, 0);
	rig_free(rig);
}

/* Of the kernel's GRO: several packets of one length, the last shorter, in one datagram. */
static void packets_that_come_together_are_received_in_place(void **state)
{
	for (unsigned together = 2; together <= BLOCK; together *= 2) {
		struct rig *rig = rig_new();
		uint64_t n[BLOCK];

		if (!sl_net_segments(rig->sender)) {
			rig_free(rig);
			print_message("# skip: this kernel does not segment UDP\n");
			skip();
		}
		for (uint64_t at = 0; at < PACKETS; at += together) {
			for (unsigned i = 0; i < together; i++)
				n[i] = at + i;
			send_from(rig, rig->sender, n, together, 0);
			if (at % (4 * BLOCK) == 0)
				assert_true(rig_poll(rig) > 0);
		}
		rig_poll(rig);
		assert_intact(rig, 0, PACKETS);
		assert_int_equal(rig->in_place + rig->copied, PACKETS);
		/* The first datagrams say how many packets come together. */
		assert_in_range(rig->copied, 1, 5 * BLOCK);
		assert_int_equal(rig->other + rig->doubled, 0);
		rig_free(rig);
	}
}

static void after_a_lost_packet_the_rest_is_repaired(void **state)
{
	struct rig *rig = rig_new();

	for (uint64_t n = 0; n < 20; n++)
		if (n != 5)
			send_one(rig, n);
	assert_int_equal(rig_poll(rig), 19);
	assert_intact(rig, 0, 5);
	assert_intact(rig, 6, 20);
	assert_false(rig->in[5]);
	assert_int_equal(rig->in_place, 5);
	assert_int_equal(rig->copied, 14);
	send_one(rig, 20); /* and guesses go on behind it */
	assert_int_equal(rig_poll(rig), 1);
	assert_int_equal(rig->in_place, 6);
	send_one(rig, 5);
	assert_int_equal(rig_poll(rig), 1);
	assert_intact(rig, 0, 21);
	rig_free(rig);
}

static void a_doubled_packet_changes_nothing(void **state)
{
	struct rig *rig = rig_new();
	const uint64_t two = 2, six = 6;

	for (uint64_t n = 0; n < 8; n++) {
		send_one(rig, n);
		if (n == 3)
			send_from(rig, rig->sender, &two, 1, 0xff);
	}
	assert_int_equal(rig_poll(rig), 9);
	send_from(rig, rig->sender, &six, 1, 0xff);
	assert_int_equal(rig_poll(rig), 1);
	assert_intact(rig, 0, 8);
	assert_int_equal(rig->doubled, 2);
	assert_int_equal(rig->in_place, 4);
	assert_int_equal(rig->copied, 4);
	rig_free(rig);
}

static void shuffle(uint64_t *n, unsigned count, uint32_t *seed)
{
	for (unsigned i = count - 1; i > 0; i--) {
		unsigned j = (*seed = *seed * 1664525 + 1013904223) / 256 % (i + 1);
		uint64_t keep = n[i];

		n[i] = n[j];
		n[j] = keep;
	}
}

/* Each lies, at first, where another of them belongs. */
static void packets_that_overtake_each_other_find_their_places(void **state)
{
	uint32_t seed = 5;

	for (int trial = 0; trial < TRIALS; trial++) {
		struct rig *rig = rig_new();
		uint64_t order[64];

		for (unsigned i = 0; i < 64; i++)
			order[i] = i;
		shuffle(order + trial % 60, 64 - (unsigned)trial % 60, &seed);
		for (unsigned i = 0; i < 64; i++)
			send_one(rig, order[i]);
		assert_int_equal(rig_poll(rig), 64);
		assert_intact(rig, 0, 64);
		assert_true(rig->in_place >= (unsigned)trial % 60);
		assert_int_equal(rig->in_place + rig->copied, 64);
		rig_free(rig);
	}
}

static void a_foreign_datagram_is_not_taken(void **state)
{
	struct rig *rig = rig_new();
	const uint64_t four = 4;

	for (uint64_t n = 0; n < 8; n++) {
		if (n == 4)
			send_from(rig, rig->stranger, &four, 1, 0xff);
		send_one(rig, n);
	}
	assert_int_equal(rig_poll(rig), 9);
	assert_int_equal(rig->foreign, 1);
	assert_int_equal(rig->in_place, 4);
	assert_intact(rig, 0, 8);
	rig_free(rig);
}

/* In either kind of call: for many datagrams, and for one that brings many packets. */
static void an_empty_datagram_is_one_packet_of_0_bytes(void **state)
{
	for (int one = 0; one < 2; one++) {
		struct rig *rig = rig_new();

		for (uint64_t n = 0; n < 8; n++) {
			if (n == 4)
				send_bytes(rig, rig->sender, "", 0);
			send_one(rig, n);
		}
		rig->stream.eighths = one ? 8 * SL_PREDICT_BATCH : 0;
		assert_int_equal(rig_poll(rig), 9);
		assert_int_equal(rig->empty, 1);
		assert_int_equal(rig->other, 0);
		assert_intact(rig, 0, 8);
		send_bytes(rig, rig->sender, "", 0); /* and it does not look like an empty socket */
		assert_int_equal(rig_poll(rig), 1);
		rig_free(rig);
	}
}

static void a_datagram_of_another_length_does_no_harm(void **state)
{
	static const size_t lengths[] = {1, HEADER, 111, 113, 4000, 60000, 65507};
	static uint8_t noise[65507];

	memset(noise, 0xee, sizeof(noise));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct rig *rig = rig_new();

		for (uint64_t n = 0; n < 8; n++) {
			if (n == 4)
				send_bytes(rig, rig->sender, noise, lengths[i]);
			send_one(rig, n);
		}
		assert_int_equal(rig_poll(rig), 9);
		assert_int_equal(rig->other, 1);
		assert_true(rig->longest >= lengths[i]);
		assert_intact(rig, 0, 8);
		for (uint64_t n = 8 + SL_PREDICT_BATCH; n < PACKETS; n++)
			assert_true(untouched(rig, n));
		rig_free(rig);
	}
}

static void nothing_is_predicted_where_nothing_may_be_placed(void **state)
{
	struct rig *rig = rig_new();

	rig->open = 6;
	for (uint64_t n = 0; n < 12; n++)
		send_one(rig, n);
	assert_int_equal(rig_poll(rig), 12);
	assert_intact(rig, 0, 6);
	assert_int_equal(rig->refused, 6);
	for (uint64_t n = 6; n < PACKETS; n++)
		assert_true(untouched(rig, n));
	rig_free(rig);
}

static void the_batch_follows_what_comes(void **state)
{
	struct rig *rig = rig_new();
	uint64_t n = 0;

	for (int i = 0; i < 8; i++)
		assert_int_equal(rig_poll(rig), 0);
	assert_int_equal(rig->stream.batch, SL_PREDICT_BATCH_MIN);
	for (; n < 256; n++)
		send_one(rig, n);
	assert_int_equal(sl_predict_poll(&ops, rig, rig->fd, &rig->stream, &rig->batch, 250), 250);
	assert_int_equal(rig->stream.batch, SL_PREDICT_BATCH);
	assert_int_equal(rig_poll(rig), 6);
	assert_intact(rig, 0, 256);
	assert_int_equal(rig->copied, 0);
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_in_order_are_received_in_place),
		cmocka_unit_test(packets_that_come_together_are_received_in_place),
		cmocka_unit_test(after_a_lost_packet_the_rest_is_repaired),
		cmocka_unit_test(a_doubled_packet_changes_nothing),
		cmocka_unit_test(packets_that_overtake_each_other_find_their_places),
		cmocka_unit_test(a_foreign_datagram_is_not_taken),
		cmocka_unit_test(an_empty_datagram_is_one_packet_of_0_bytes),
		cmocka_unit_test(a_datagram_of_another_length_does_no_harm),
		cmocka_unit_test(nothing_is_predicted_where_nothing_may_be_placed),
		cmocka_unit_test(the_batch_follows_what_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
