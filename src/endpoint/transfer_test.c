/* transfer_test.c - every operation, at every PMTU, at lengths around its boundaries, over IPv4 and
 * IPv6, byte by byte. */
#include "endpoint/testing.h"

enum { PIECE = 5 }; /* bytes of the first of two pieces */

static const uint32_t pmtus[] = {256, 512, 1024, 2048, 4096};
static uint8_t source[MEMORY_BYTES], landing[MEMORY_BYTES];

struct shape {
	uint8_t kind;
	bool immediate;
};

/* Lengths around the PMTU, and one of many packets. */
static unsigned lengths(uint32_t pmtu, uint32_t out[16])
{
	const uint32_t some[] = {
		0, 1, 3, 4, pmtu - 1, pmtu, pmtu + 1, 2 * pmtu, 2 * pmtu + 3, 20 * pmtu - 1};

	memcpy(out, some, sizeof(some));
	return sizeof(some) / sizeof(some[0]);
}

static struct sl_work two_pieces(struct shape shape, uint8_t *at, uint32_t bytes)
{
	struct sl_work work = rig_work(shape.kind, at, bytes, 11);
	uint32_t first = bytes < PIECE ? bytes : PIECE;

	work.piece[0].bytes = first;
	work.piece[1] = (struct sl_piece){at + first, bytes - first};
	work.immediate = shape.immediate;
	work.imm = 0xa1b2c3d4;
	return work;
}

/* Every range of two pieces: the bytes between, and no others. */
static void bytes_go_to_the_pieces_that_they_belong_to(void **state)
{
	for (uint32_t first = 0; first <= 8; first++)
		for (uint32_t offset = 0; offset <= 8; offset++)
			for (uint32_t bytes = 0; offset + bytes <= 8; bytes++) {
				uint8_t to[2][10], from[8] = {1, 2, 3, 4, 5, 6, 7, 8};
				struct sl_piece piece[SL_QP_PIECES] = {{to[0] + 1, first},
								       {to[1] + 1, 8 - first}};
				struct sl_roce_piece out[SL_QP_PIECES];
				unsigned n = sl_pieces_gather(piece, offset, bytes, out), sum = 0;

				memset(to, 0, sizeof(to));
				sl_pieces_scatter(piece, offset, from, bytes);
				for (uint32_t i = 0; i < 8; i++) {
					uint32_t in = i < first ? to[0][1 + i]
								: to[1][1 + i - first];
					bool within = i >= offset && i < offset + bytes;

					assert_int_equal(in, within ? from[i - offset] : 0);
				}
				assert_int_equal(to[0][0] | to[1][0] | to[0][1 + first] |
							 to[1][9 - first],
						 0);
				for (unsigned i = 0; i < n; i++) {
					assert_memory_equal(out[i].data, from + sum, out[i].bytes);
					sum += out[i].bytes;
				}
				assert_int_equal(sum, bytes);
			}
}

static void check_receive(const struct sl_completion *done, struct shape shape, uint32_t bytes)
{
	bool write = shape.kind == SL_ROCE_KIND_WRITE;

	assert_int_equal(done->id, 4);
	assert_int_equal(done->status, SL_STATUS_SUCCESS);
	assert_ptr_equal(done->qp, rig.side[RIGHT].qp);
	assert_int_equal(done->kind, write ? SL_COMPLETION_RECEIVE_WRITE : SL_COMPLETION_RECEIVE);
	assert_int_equal(done->bytes, bytes);
	assert_int_equal(done->immediate, shape.immediate);
	assert_int_equal(done->imm, shape.immediate ? 0xa1b2c3d4 : 0);
}

/* One message of each length from left to right. */
static void transfer(struct shape shape, uint32_t bytes)
{
	uint8_t *to = shape.kind == SL_ROCE_KIND_SEND ? landing : rig.side[RIGHT].memory + 11;
	bool receives = shape.kind == SL_ROCE_KIND_SEND || shape.immediate;
	struct sl_work work = two_pieces(shape, source, bytes);
	uint64_t executed = dropped(RIGHT, SL_ROCE_ACCEPTED) +
			    sl_roce_packets(bytes, rig.attributes[LEFT].pmtu);

	fill(source, bytes, bytes + shape.kind);
	memset(to, 0xee, bytes + 8);
	if (receives)
		rig_receive(4, landing, bytes);
	rig_send(&work);
	rig_run(1, receives);
	assert_int_equal(rig.side[LEFT].done[0].status, SL_STATUS_SUCCESS);
	assert_int_equal(rig.side[LEFT].done[0].bytes, bytes);
	assert_int_equal(rig.side[LEFT].done[0].id, 77);
	if (receives)
		check_receive(&rig.side[RIGHT].done[0], shape, bytes);
	/* Over UC a WRITE is complete here before it is there. */
	while (dropped(RIGHT, SL_ROCE_ACCEPTED) < executed)
		rig_step();
	check_filled(to, bytes, bytes + shape.kind);
	for (int i = 0; i < 8; i++)
		assert_int_equal(to[bytes + i], 0xee);
	rig.side[LEFT].count = rig.side[RIGHT].count = 0;
}

static void read_back(uint32_t bytes)
{
	struct sl_work work = two_pieces((struct shape){SL_ROCE_KIND_READ, false}, landing, bytes);

	fill(rig.side[RIGHT].memory + 11, bytes, bytes);
	memset(landing, 0xee, bytes + 8);
	rig_send(&work);
	rig_run(1, 0);
	assert_int_equal(rig.side[LEFT].done[0].status, SL_STATUS_SUCCESS);
	assert_int_equal(rig.side[LEFT].done[0].kind, SL_COMPLETION_READ);
	assert_int_equal(rig.side[LEFT].done[0].bytes, bytes);
	check_filled(landing, bytes, bytes);
	for (int i = 0; i < 8; i++)
		assert_int_equal(landing[bytes + i], 0xee);
	rig.side[LEFT].count = 0;
}

static void all_operations(enum sl_roce_transport transport, uint32_t bytes)
{
	const struct shape shapes[] = {{SL_ROCE_KIND_SEND, false},
				       {SL_ROCE_KIND_SEND, true},
				       {SL_ROCE_KIND_WRITE, false},
				       {SL_ROCE_KIND_WRITE, true}};

	for (unsigned i = 0; i < 4; i++)
		transfer(shapes[i], bytes);
	if (transport == SL_ROCE_RC)
		read_back(bytes);
}

static void all_lengths(enum sl_roce_transport transport)
{
	for (unsigned p = 0; p < 5; p++) {
		uint32_t list[16];
		unsigned count = lengths(pmtus[p], list);

		rig.attributes[LEFT].pmtu = rig.attributes[RIGHT].pmtu = pmtus[p];
		rig_connect(transport);
		for (unsigned i = 0; i < count; i++)
			all_operations(transport, list[i]);
		rig_disconnect();
	}
}

static void nothing_dropped(void)
{
	for (int side = 0; side < SIDES; side++) {
		for (unsigned why = 1; why < SL_ENDPOINT_DROPS; why++)
			assert_int_equal(dropped(side, why), 0);
	}
}

static void test_uc(void **state)
{
	all_lengths(SL_ROCE_UC);
	nothing_dropped();
}

static void test_rc(void **state)
{
	all_lengths(SL_ROCE_RC);
	nothing_dropped();
}

static void test_megabytes(void **state)
{
	rig.attributes[LEFT].pmtu = rig.attributes[RIGHT].pmtu = 4096;
	rig_connect(SL_ROCE_RC);
	all_operations(SL_ROCE_RC, 1 << 20);
	all_operations(SL_ROCE_RC, (2 << 20) + 1);
	rig_disconnect();
	rig.attributes[LEFT].pmtu = rig.attributes[RIGHT].pmtu = 256;
	rig_connect(SL_ROCE_RC);
	all_operations(SL_ROCE_RC, 1 << 20);
	rig_disconnect();
	rig_connect(SL_ROCE_UC);
	all_operations(SL_ROCE_UC, 1 << 20);
	nothing_dropped();
}

/* Datagrams: the receive begins with who sent it. */
static void datagram(uint32_t bytes, bool immediate)
{
	const struct sl_completion *done = rig.side[RIGHT].done;
	struct sl_work work =
		two_pieces((struct shape){SL_ROCE_KIND_SEND, immediate}, source, bytes);
	uint8_t *payload = landing + SL_ROCE_UD_HEADER_BYTES;

	fill(source, bytes, bytes);
	memset(landing, 0xee, bytes + SL_ROCE_UD_HEADER_BYTES + 8);
	rig_receive(4, landing, bytes + SL_ROCE_UD_HEADER_BYTES);
	rig_send(&work);
	rig_run(1, 1);
	check_receive(done, (struct shape){SL_ROCE_KIND_SEND, immediate},
		      bytes + SL_ROCE_UD_HEADER_BYTES);
	assert_int_equal(done->from.qpn, sl_qp_number(rig.side[LEFT].qp));
	assert_int_equal(done->from.port, sl_endpoint_port(rig.side[LEFT].endpoint));
	assert_memory_equal(done->from.address, sl_endpoint_address(rig.side[LEFT].endpoint), 16);
	assert_int_equal(rig.v6 ? landing[0] : landing[20], rig.v6 ? 0x60 : 0x45);
	check_filled(payload, bytes, bytes);
	assert_int_equal(payload[bytes], 0xee);
	rig.side[LEFT].count = rig.side[RIGHT].count = 0;
}

static void test_ud(void **state)
{
	for (unsigned p = 0; p < 5; p++) {
		const uint32_t some[] = {0, 1, 3, pmtus[p] - 1, pmtus[p]};

		rig.attributes[LEFT].pmtu = rig.attributes[RIGHT].pmtu = pmtus[p];
		rig_connect(SL_ROCE_UD);
		for (unsigned i = 0; i < 5; i++) {
			datagram(some[i], false);
			datagram(some[i], true);
		}
		rig_disconnect();
	}
	nothing_dropped();
}

/* Both directions at once, many messages, completions in order; then the PSN wraps. */
static void test_both_ways(void **state)
{
	enum { MESSAGES = 40, BYTES = 3000 };

	rig.attributes[LEFT].send_psn = rig.attributes[RIGHT].receive_psn = 0xffffff;
	rig_connect(SL_ROCE_RC);
	fill(source, BYTES, 1);
	for (unsigned i = 0; i < MESSAGES; i++) {
		for (int k = 0; k < SIDES; k++) {
			const struct sl_piece room[SL_QP_PIECES] = {
				{landing + (2 * i + k) * BYTES, BYTES}};
			struct sl_work work = rig_work(SL_ROCE_KIND_SEND, source, BYTES, 0);

			work.id = i;
			assert_int_equal(sl_qp_receive(rig.side[k].qp, 1000 + i, room), 0);
			assert_int_equal(sl_qp_send(rig.side[k].qp, &work), 0);
		}
	}
	rig_run(2 * MESSAGES, 2 * MESSAGES);
	for (int k = 0; k < SIDES; k++) {
		uint64_t send = 0, receive = 1000;

		for (unsigned i = 0; i < rig.side[k].count; i++) {
			const struct sl_completion *done = &rig.side[k].done[i];

			assert_int_equal(done->status, SL_STATUS_SUCCESS);
			assert_int_equal(done->id,
					 done->kind == SL_COMPLETION_SEND ? send++ : receive++);
		}
	}
	for (unsigned i = 0; i < 2 * MESSAGES; i++)
		check_filled(landing + i * BYTES, BYTES, 1);
}

/* Peers name the memory as they were told to. */
static void test_chosen_address(void **state)
{
	const struct sl_endpoint_memory memory = {
		.at = rig.side[RIGHT].memory + 4096,
		.bytes = 8192,
		.iova = 0,
		.has_iova = true,
		.access = SL_ROCE_REMOTE_WRITE,
		.domain = DOMAIN,
	};
	struct sl_work work;
	uint32_t rkey;

	assert_int_equal(sl_endpoint_register(rig.side[RIGHT].endpoint, &memory, &rkey), 0);
	rig_connect(SL_ROCE_RC);
	fill(source, 100, 3);
	work = rig_work(SL_ROCE_KIND_WRITE, source, 100, 0);
	work.rkey = rkey;
	work.va = 8092;
	rig_send(&work);
	rig_run(1, 0);
	assert_int_equal(rig.side[LEFT].done[0].status, SL_STATUS_SUCCESS);
	check_filled(rig.side[RIGHT].memory + 4096 + 8092, 100, 3);
}

/* Quiet work says nothing and its slots are used again. */
static void test_quiet(void **state)
{
	rig_connect(SL_ROCE_RC);
	for (unsigned i = 0; i < 300; i++) {
		struct sl_work work = rig_work(SL_ROCE_KIND_WRITE, source, 100, 0);

		work.quiet = true;
		work.id = i;
		while (sl_qp_send(rig.side[LEFT].qp, &work) == -EAGAIN)
			rig_step();
	}
	rig_settle();
	assert_int_equal(rig.side[LEFT].count, 0);
	assert_int_equal(sl_qp_sends(rig.side[LEFT].qp), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_uc),
		TEST_V6(test_uc),
		TEST(test_rc),
		TEST_V6(test_rc),
		TEST(test_megabytes),
		TEST(test_ud),
		TEST_V6(test_ud),
		TEST(test_both_ways),
		TEST_V6(test_both_ways),
		TEST(test_chosen_address),
		TEST(test_quiet),
		cmocka_unit_test(bytes_go_to_the_pieces_that_they_belong_to),
	};

	return cmocka_run_group_tests_name("endpoint_transfer", tests, NULL, NULL);
}
