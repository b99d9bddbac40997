/* receive_test.c - packets that nobody connected sent: strangers, garbage, other identifications; a
 * socket that is full; waiting. */
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/log.h"
#include "endpoint/testing.h"

enum { PSN = 0x123 }; /* the first that RIGHT waits for */

static uint8_t landing[8192];

/* A SEND_ONLY of four bytes for RIGHT's queue pair. */
static size_t forge(uint8_t packet[64], uint32_t psn, uint16_t ip_id)
{
	const struct side *right = &rig.side[RIGHT], *left = &rig.side[LEFT];
	const struct sl_roce_packet head = {
		.opcode = SL_ROCE_OPCODE(SL_ROCE_UC, SL_ROCE_SEND_ONLY),
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = sl_qp_number(right->qp),
		.psn = psn & 0xffffff,
	};
	const struct sl_roce_piece payload = {"data", 4};
	struct sl_roce_path path = {.ip_id = ip_id};
	int n = sl_roce_encode_headers(&head, packet);

	sl_endpoint_path(left->endpoint, sl_endpoint_address(right->endpoint),
			 sl_endpoint_port(right->endpoint), &path);
	path.ip_id = ip_id;
	memcpy(packet + n, "data", 4);
	return (size_t)n + 4 +
	       sl_roce_seal(&path, packet, (size_t)n, &payload, 1, sl_crc32, packet + n + 4);
}

/* Give it to RIGHT as if it came from LEFT. */
static void give(const uint8_t *packet, size_t bytes)
{
	union sl_net_address from;

	sl_net_address(sl_endpoint_address(rig.side[LEFT].endpoint),
		       sl_endpoint_port(rig.side[LEFT].endpoint), &from);
	sl_endpoint_datagram(rig.side[RIGHT].endpoint, &from, 0, packet, bytes, rig.now);
	rig_reap(&rig.side[RIGHT]);
}

static bool arrives(uint32_t psn, uint16_t ip_id)
{
	uint8_t packet[64];

	rig.side[RIGHT].count = 0;
	rig_receive(1, landing, 100);
	give(packet, forge(packet, psn, ip_id));
	return rig.side[RIGHT].count == 1;
}

/* A peer with identifications of its own is served, but one that always began at 0 is held to it,
 * until it insists. */
static void test_identification(void **state)
{
	uint32_t psn = PSN;

	rig_connect(SL_ROCE_UC);
	for (uint16_t id = 60000; id > 100; id = (uint16_t)(id / 2))
		assert_true(arrives(psn++, id));
	for (int i = 0; i < 15; i++)
		assert_true(arrives(psn++, 0));
	assert_true(arrives(psn++, 700));
	for (int i = 0; i < 16; i++)
		assert_true(arrives(psn++, 0));
	for (int i = 0; i < 5; i++) {
		assert_false(arrives(psn++, 700));
		assert_false(arrives(psn++, 701));
		assert_true(arrives(psn++, 0));
	}
	assert_int_equal(dropped(RIGHT, SL_ENDPOINT_DROP_ICRC), 10);
	assert_false(arrives(psn++, 1000));
	assert_false(arrives(psn++, 1001));
	assert_true(arrives(psn++, 1002));
	assert_true(arrives(psn++, 1003));
}

/* Soft-RoCE counts up over all packets, through 0, too, and jumps after a pause: none of its
 * packets is refused. */
static void test_identifications_that_jump(void **state)
{
	uint32_t psn = PSN;
	uint16_t id = 65400;

	rig_connect(SL_ROCE_UC);
	for (unsigned i = 0; i < 2000; i++) {
		id = (uint16_t)(id + (i % 90 ? 1 : 1 + i * 37));
		assert_true(arrives(psn++, id));
	}
	for (unsigned i = 0; i < 40; i++)
		assert_true(arrives(psn++, (uint16_t)i));
	assert_true(arrives(psn++, 5000));
	assert_int_equal(dropped(RIGHT, SL_ENDPOINT_DROP_ICRC), 0);
}

/* A kernel cuts packets from longer messages, and a few of them are lost on the way: those that
 * arrive count. */
static void test_identifications_with_gaps(void **state)
{
	uint32_t psn = PSN;

	rig_connect(SL_ROCE_UC);
	for (unsigned message = 0; message < 60; message++) {
		for (uint16_t id = 0; id < 44; id++) {
			if ((message * 44 + id) % 7)
				assert_true(arrives(psn++, id));
		}
	}
	assert_false(arrives(psn++, 5000));
	assert_int_equal(dropped(RIGHT, SL_ENDPOINT_DROP_ICRC), 1);
}

/* Over IPv6 there is nothing unknown. */
static void test_every_bit(void **state)
{
	uint8_t packet[64];
	size_t bytes;

	rig_connect(SL_ROCE_UC);
	rig_receive(1, landing, 100);
	bytes = forge(packet, PSN, 0);
	for (size_t bit = 0; bit < bytes * 8; bit++) {
		if (bit / 8 == 4)
			continue; /* congestion marks: not covered */
		packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
		give(packet, bytes);
		packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(rig.side[RIGHT].count, 0);
	give(packet, bytes);
	assert_int_equal(rig.side[RIGHT].count, 1);
}

/* Garbage from a real socket, of all lengths, and a packet from an address that is not the peer's.
 */
static void test_strangers(void **state)
{
	union sl_net_address to, from;
	socklen_t n = sl_net_address(sl_endpoint_address(rig.side[RIGHT].endpoint),
				     sl_endpoint_port(rig.side[RIGHT].endpoint), &to);
	static uint8_t garbage[9000];
	uint8_t gid[16], packet[64];
	int fd;

	rig_connect(SL_ROCE_UC);
	assert_int_equal(sl_net_parse("test", "127.0.0.9", gid), 0);
	fd = sl_net_open(gid, 0);
	assert_true(fd >= 0);
	fill(garbage, sizeof(garbage), 3);
	for (size_t bytes = 0; bytes <= sizeof(garbage); bytes += bytes < 70 ? 1 : 893)
		assert_int_equal(sendto(fd, garbage, bytes, 0, &to.any, n), bytes);
	rig_settle();
	assert_true(dropped(RIGHT, SL_ENDPOINT_DROP_MALFORMED) > 70);
	rig_receive(1, landing, 100);
	sl_net_address(gid, 4791, &from);
	sl_endpoint_datagram(rig.side[RIGHT].endpoint, &from, 0, packet, forge(packet, PSN, 0),
			     rig.now);
	assert_int_equal(dropped(RIGHT, SL_ROCE_DROP_PEER), 1);
	assert_int_equal(rig.side[RIGHT].count, 0);
	assert_true(arrives(PSN, 0));
	close(fd);
}

/* Stands before the C library's: a socket that takes only so many messages, or none of several
 * packets. */
static unsigned takes = UINT_MAX;
static int refuses = EAGAIN;
static bool takes_together = true;
static unsigned together; /* messages of several packets that it took */

int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	unsigned before = 0;
	long n;

	while (before < count && (takes_together || !messages[before].msg_hdr.msg_control))
		together += messages[before++].msg_hdr.msg_control != NULL;
	if (!takes || !before) {
		errno = before ? refuses : EINVAL;
		return -1;
	}
	count = before;
	n = syscall(SYS_sendmmsg, fd, messages, count < takes ? count : takes, flags);
	if (n > 0 && takes != UINT_MAX)
		takes -= (unsigned)n;
	return (int)n;
}

/* What a full socket does not take is kept, and the memory that it came from is free at once. */
static void test_full_socket(void **state)
{
	enum { MESSAGES = 5, BYTES = 1000 };
	struct sl_endpoint *endpoint = rig.side[LEFT].endpoint;
	uint8_t *source = malloc(BYTES);

	assert_non_null(source);
	rig.attributes[LEFT].pmtu = rig.attributes[RIGHT].pmtu = 256;
	rig_connect(SL_ROCE_UC);
	fill(source, BYTES, 8);
	for (unsigned i = 0; i < MESSAGES; i++) {
		struct sl_work work = rig_work(SL_ROCE_KIND_WRITE, source, BYTES, i * BYTES);

		rig_send(&work);
	}
	takes = 3;
	sl_endpoint_poll(endpoint, rig.now, 100);
	assert_int_equal(sl_endpoint_events(endpoint), POLLIN | POLLOUT);
	rig_reap(&rig.side[LEFT]);
	assert_int_equal(rig.side[LEFT].count, MESSAGES);
	memset(source, 0, BYTES);
	free(source);
	for (takes = 1; sl_endpoint_events(endpoint) & POLLOUT; takes = 1)
		sl_endpoint_poll(endpoint, rig.now, 100);
	takes = UINT_MAX;
	rig_settle();
	for (unsigned i = 0; i < MESSAGES; i++)
		check_filled(rig.side[RIGHT].memory + i * BYTES, BYTES, 8);
}

/* More than a batch waits: nothing is lost and nothing overtakes. */
static void test_full_for_long(void **state)
{
	enum { BYTES = 100 * 256 };
	static uint8_t source[BYTES];
	struct sl_work work;

	rig.attributes[LEFT].pmtu = rig.attributes[RIGHT].pmtu = 256;
	rig.attributes[LEFT].window = 128;
	rig_connect(SL_ROCE_RC);
	fill(source, BYTES, 8);
	work = rig_work(SL_ROCE_KIND_WRITE, source, BYTES, 0);
	rig_send(&work);
	takes = 0;
	for (int i = 0; i < 10; i++)
		sl_endpoint_poll(rig.side[LEFT].endpoint, rig.now, 32);
	takes = UINT_MAX;
	rig_run(1, 0);
	check_filled(rig.side[RIGHT].memory, BYTES, 8);
	assert_int_equal(dropped(RIGHT, SL_ROCE_DROP_AHEAD), 0);
	assert_int_equal(dropped(RIGHT, SL_ROCE_DROP_DUPLICATE), 0);
}

/* READs of several lengths, so that messages of packets begin and end anywhere. */
static void read_all(uint32_t most)
{
	uint8_t *to = malloc(most);
	unsigned done = 0;

	assert_non_null(to);
	fill(rig.side[RIGHT].memory, most, 8);
	for (uint32_t bytes = most; bytes; bytes = bytes * 5 / 7) {
		struct sl_work work = rig_work(SL_ROCE_KIND_READ, to, bytes, 0);

		memset(to, 0, bytes);
		rig_send(&work);
		rig_run(++done, 0);
		assert_int_equal(rig.side[LEFT].done[done - 1].status, SL_STATUS_SUCCESS);
		check_filled(to, bytes, 8);
	}
	free(to);
}

/* Packets of one length leave and arrive together, and no identification that the kernel gave them
 * was unexpected. */
static void test_together(void **state)
{
	for (uint32_t pmtu = 256; pmtu <= 4096; pmtu *= 2) {
		rig.attributes[LEFT].pmtu = rig.attributes[RIGHT].pmtu = pmtu;
		rig_connect(SL_ROCE_RC);
		together = 0;
		read_all(1 << 20);
		assert_true(!rig.side[RIGHT].endpoint->segments || together > 20);
		assert_int_equal(dropped(LEFT, SL_ENDPOINT_DROP_ICRC), 0);
		assert_int_equal(rig.side[LEFT].qp->counters.resent, 0);
		rig_disconnect();
	}
}

/* Queue pairs by turns to one peer: a message has packets of one of them, since each foretells the
 * identifications of its own. */
static void test_queue_pairs_by_turns(void **state)
{
	enum { PAIRS = 3, ROUNDS = 60 };
	struct sl_qp *qp[SIDES][PAIRS];
	uint8_t byte[4] = {0};

	for (unsigned k = 0; k < PAIRS; k++) {
		rig_connect(SL_ROCE_RC);
		for (unsigned i = 0; i < SIDES; i++)
			qp[i][k] = rig.side[i].qp;
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned k = 0; k < PAIRS; k++) {
			struct sl_work work;

			rig.side[RIGHT].qp = qp[RIGHT][k];
			work = rig_work(SL_ROCE_KIND_READ, byte, sizeof(byte), 0);
			for (unsigned i = 0; i <= round % 3; i++)
				assert_int_equal(sl_qp_send(qp[LEFT][k], &work), 0);
		}
		rig.side[LEFT].count = 0;
		rig_run(PAIRS * (1 + round % 3), 0);
	}
	assert_int_equal(dropped(RIGHT, SL_ENDPOINT_DROP_ICRC), 0);
	assert_int_equal(dropped(LEFT, SL_ENDPOINT_DROP_ICRC), 0);
	for (unsigned k = 0; k < PAIRS; k++)
		assert_int_equal(qp[LEFT][k]->counters.resent, 0);
}

/* A path that takes no such messages: the first is lost and sent again, packet by packet from then
 * on. */
static void test_a_path_that_takes_none(void **state)
{
	if (!rig.side[RIGHT].endpoint->segments)
		skip(); /* this kernel has none */
	rig_connect(SL_ROCE_RC);
	takes_together = false;
	read_all(300000);
	takes_together = true;
	assert_false(rig.side[RIGHT].endpoint->segments);
	assert_true(rig.side[RIGHT].endpoint->counters.unsent > 1);
	assert_int_equal(rig.side[RIGHT].endpoint->counters.send_error, -EINVAL);
}

/* What the kernel refuses for good is counted, with the reason, and blocks nothing. */
static void test_refused_for_good(void **state)
{
	struct sl_endpoint_counters counters;
	struct sl_work work;

	rig_connect(SL_ROCE_UC);
	rig_receive(1, landing, 100);
	work = rig_work(SL_ROCE_KIND_SEND, landing, 100, 0);
	rig_send(&work);
	takes = 0;
	refuses = EMSGSIZE;
	sl_endpoint_poll(rig.side[LEFT].endpoint, rig.now, 32);
	takes = UINT_MAX;
	refuses = EAGAIN;
	sl_endpoint_count(rig.side[LEFT].endpoint, &counters);
	assert_int_equal(counters.unsent, 1);
	assert_int_equal(counters.send_error, -EMSGSIZE);
	rig_send(&work);
	rig_run(2, 1);
}

/* Waiting ends with a packet, with a timer, with posted work, and with the limit. */
static void test_waiting(void **state)
{
	struct sl_endpoint *left, *right;
	struct sl_work work;
	uint8_t byte = 0;

	rig_connect(SL_ROCE_RC);
	left = rig.side[LEFT].endpoint;
	right = rig.side[RIGHT].endpoint;
	rig_settle();
	assert_int_equal(sl_endpoint_wake(left), UINT64_MAX);
	assert_int_equal(sl_endpoint_wait(left, rig.now, 1000000), 0);
	work = rig_work(SL_ROCE_KIND_SEND, &byte, 1, 0);
	rig_send(&work);
	assert_int_equal(sl_endpoint_wake(left), 0);
	assert_int_equal(sl_endpoint_wait(left, rig.now, UINT64_MAX), 0);
	assert_int_equal(sl_endpoint_poll(left, rig.now, 32), 1);
	assert_int_equal(sl_endpoint_wake(left), rig.now + sl_roce_timeout_ns(14));
	assert_int_equal(sl_endpoint_wait(right, rig.now, UINT64_MAX), 0);
	assert_int_equal(sl_endpoint_poll(right, rig.now, 32), 2); /* the SEND and its RNR NAK */
	assert_int_equal(sl_endpoint_wait(left, rig.now, UINT64_MAX), 0);
	assert_int_equal(sl_endpoint_poll(left, rig.now, 32), 1);
	assert_int_equal(sl_endpoint_wake(left), rig.now + sl_roce_rnr_ns(12));
}

/* A port that is taken is an error, not a silent share of its packets. */
static void test_port_taken(void **state)
{
	struct sl_endpoint_options options = rig.side[LEFT].options;
	struct sl_endpoint *second;

	sl_log_level(-1);
	options.port = sl_endpoint_port(rig.side[LEFT].endpoint);
	assert_int_equal(sl_endpoint_open(&options, &second), -EADDRINUSE);
	options.keys = UINT32_MAX;
	assert_int_equal(sl_endpoint_open(&options, &second), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_identification),
		TEST(test_identifications_that_jump),
		TEST(test_identifications_with_gaps),
		TEST_V6(test_every_bit),
		TEST(test_strangers),
		TEST(test_full_socket),
		TEST(test_full_for_long),
		TEST(test_refused_for_good),
		TEST(test_waiting),
		TEST(test_port_taken),
		TEST(test_together),
		TEST_V6(test_together),
		TEST(test_queue_pairs_by_turns),
		TEST(test_a_path_that_takes_none),
	};

	return cmocka_run_group_tests_name("endpoint_receive", tests, NULL, NULL);
}
