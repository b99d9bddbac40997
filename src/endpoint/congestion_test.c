/* congestion_test.c - marked packets are answered, seldom enough; who is told so slows down, and
 * still everything arrives; strangers slow nobody down. */
#include "base/crc.h"
#include "endpoint/testing.h"

enum { BYTES = 1 << 18 };

static uint8_t source[BYTES], landing[BYTES];

/* Everything that LEFT sends looks as if a switch had marked it. */
static int set_up(void **state)
{
	memset(&rig, 0, sizeof(rig));
	rig.side[LEFT].options.traffic_class = SL_NET_ECN_CE;
	rig_open();
	rig.quiet_ms = 0;
	return 0;
}

static int set_up_v6(void **state)
{
	memset(&rig, 0, sizeof(rig));
	rig.v6 = true;
	rig.side[LEFT].options.traffic_class = SL_NET_ECN_CE;
	rig_open();
	rig.quiet_ms = 0;
	return 0;
}

static struct sl_qp_counters count(int side)
{
	struct sl_qp_counters counters;

	sl_qp_count(rig.side[side].qp, &counters);
	return counters;
}

static struct sl_endpoint_counters count_all(int side)
{
	struct sl_endpoint_counters counters;

	sl_endpoint_count(rig.side[side].endpoint, &counters);
	return counters;
}

/* One CNP however many packets are marked, until its time has passed. */
static void test_seldom(void **state)
{
	rig_connect(SL_ROCE_UC);
	for (unsigned i = 0; i < 20; i++) {
		struct sl_work work = rig_work(SL_ROCE_KIND_WRITE, source, 100, 0);

		rig_send(&work);
	}
	rig_settle();
	assert_int_equal(count_all(RIGHT).congested, 20);
	assert_int_equal(count_all(RIGHT).cnps_sent, 1);
	assert_int_equal(count(RIGHT).cnps_sent, 1);
	assert_int_equal(count_all(LEFT).cnps_received, 1);
	assert_int_equal(count(LEFT).cnps_received, 1);
	assert_int_equal(count_all(LEFT).congested, 0);
	rig.now += SL_ROCE_CNP_GAP_NS;
	for (unsigned i = 0; i < 3; i++) {
		struct sl_work work = rig_work(SL_ROCE_KIND_WRITE, source, 100, 0);

		rig_send(&work);
	}
	rig_settle();
	assert_int_equal(count(RIGHT).cnps_sent, 2);
}

/* The clock stands still while packets flow: what is not paced takes no time. */
static uint64_t transfer(enum sl_roce_transport transport, uint8_t kind)
{
	uint8_t *to = rig.side[RIGHT].memory;
	struct sl_work work;
	uint64_t began;

	rig.attributes[LEFT].pmtu = rig.attributes[RIGHT].pmtu = 4096;
	rig_connect(transport);
	fill(kind == SL_ROCE_KIND_READ ? to : source, BYTES, 3);
	work = rig_work(kind, kind == SL_ROCE_KIND_READ ? landing : source, BYTES, 0);
	began = rig.now;
	for (int i = 0; i < 4; i++) {
		rig_send(&work);
		rig_run((unsigned)i + 1, 0);
		assert_int_equal(rig.side[LEFT].done[i].status, SL_STATUS_SUCCESS);
	}
	rig_settle();
	check_filled(kind == SL_ROCE_KIND_READ ? landing : to, BYTES, 3);
	return rig.now - began;
}

static void slows_down(enum sl_roce_transport transport)
{
	uint64_t ns = transfer(transport, SL_ROCE_KIND_WRITE);

	assert_true(ns > 1000000);
	assert_true(count(RIGHT).cnps_sent > 1);
	assert_int_equal(count(LEFT).cnps_received, count(RIGHT).cnps_sent);
	assert_true(count(LEFT).rate > 0);
	assert_true(rig.side[LEFT].qp->rate.cuts > 1);
	assert_int_equal(count(RIGHT).rate, 0);
}

static void test_rc_slows_down(void **state)
{
	slows_down(SL_ROCE_RC);
}

static void test_uc_slows_down(void **state)
{
	slows_down(SL_ROCE_UC);
}

/* Here the data flows against the marked requests: nobody is told to slow down who sends data. */
static void test_reads_are_answered_at_full_speed(void **state)
{
	transfer(SL_ROCE_RC, SL_ROCE_KIND_READ);
	assert_true(count(LEFT).cnps_received > 0);
	assert_int_equal(count(RIGHT).rate, 0);
}

/* The answers to READs are data too: whoever sends them slows down. */
static void test_answers_slow_down(void **state)
{
	uint64_t ns;

	assert_int_equal(sl_net_set_class(sl_endpoint_fd(rig.side[LEFT].endpoint), 0), 0);
	assert_int_equal(sl_net_set_class(sl_endpoint_fd(rig.side[RIGHT].endpoint), SL_NET_ECN_CE),
			 0);
	ns = transfer(SL_ROCE_RC, SL_ROCE_KIND_READ);
	assert_true(ns > 1000000);
	assert_true(count(RIGHT).cnps_received > 1);
	assert_true(count(RIGHT).rate > 0);
	assert_int_equal(count(LEFT).rate, 0);
}

/* ---- CNPs by hand ---- */

static void forge(const char *from, uint32_t qpn, bool damaged)
{
	struct sl_endpoint *right = rig.side[RIGHT].endpoint;
	uint8_t packet[SL_ROCE_CNP_BYTES + SL_ROCE_TRAILER_MAX], gid[16];
	struct sl_roce_path path;
	union sl_net_address address;
	size_t bytes = SL_ROCE_CNP_BYTES;

	assert_int_equal(sl_net_parse("test", from, gid), 0);
	sl_endpoint_path(right, gid, sl_endpoint_port(right), &path);
	memcpy(path.dest, path.source, 16);
	memcpy(path.source, gid, 16);
	path.source_port = 0;
	path.ip_id = 0x718c;
	assert_int_equal(sl_roce_cnp_encode(qpn, packet), 0);
	bytes += sl_roce_seal(&path, packet, bytes, NULL, 0, sl_crc32, packet + bytes);
	packet[13] ^= damaged;
	sl_net_address(gid, 0, &address);
	sl_endpoint_datagram(right, &address, SL_ROCE_CNP_DSCP << 2, packet, bytes, rig.now);
}

static void test_strangers(void **state)
{
	struct sl_work work;

	rig_connect(SL_ROCE_RC);
	work = rig_work(SL_ROCE_KIND_WRITE, source, 100, 0);
	work.rkey = rig.side[LEFT].rkey;
	work.va = (uint64_t)(uintptr_t)rig.side[LEFT].memory;
	assert_int_equal(sl_qp_send(rig.side[RIGHT].qp, &work), 0);
	rig_run(0, 1);
	forge("127.0.0.9", sl_qp_number(rig.side[RIGHT].qp), false);
	assert_int_equal(dropped(RIGHT, SL_ROCE_DROP_PEER), 1);
	forge("127.0.0.1", sl_qp_number(rig.side[RIGHT].qp) ^ 1, false);
	assert_int_equal(dropped(RIGHT, SL_ROCE_DROP_QUEUE), 1);
	forge("127.0.0.1", sl_qp_number(rig.side[RIGHT].qp), true);
	assert_int_equal(dropped(RIGHT, SL_ENDPOINT_DROP_ICRC), 1);
	assert_int_equal(count(RIGHT).rate, 0);
	forge("127.0.0.1", sl_qp_number(rig.side[RIGHT].qp), false);
	assert_int_equal(count(RIGHT).cnps_received, 1);
	assert_true(count(RIGHT).rate > 0);
}

/* A queue pair that does not send yet, or has nobody in particular to listen to. */
static void test_nothing_to_slow_down(void **state)
{
	rig_create(SL_ROCE_RC);
	for (int s = SL_ROCE_INIT; s <= SL_ROCE_RTR; s++)
		assert_int_equal(sl_qp_modify(rig.side[RIGHT].qp, (enum sl_roce_state)s,
					      &rig.attributes[RIGHT]),
				 0);
	for (int i = 0; i < 3; i++) {
		forge("127.0.0.1", sl_qp_number(rig.side[RIGHT].qp), false);
		rig.now += 1000000000;
	}
	assert_int_equal(count(RIGHT).cnps_received, 3);
	rig_disconnect();
	rig_connect(SL_ROCE_UD);
	forge("127.0.0.1", sl_qp_number(rig.side[RIGHT].qp), false);
	assert_int_equal(dropped(RIGHT, SL_ROCE_DROP_TRANSPORT), 1);
}

#define MARKED(name)	cmocka_unit_test_setup_teardown(name, set_up, rig_teardown)
#define MARKED_V6(name) cmocka_unit_test_setup_teardown(name, set_up_v6, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MARKED(test_seldom),
		MARKED_V6(test_seldom),
		MARKED(test_rc_slows_down),
		MARKED_V6(test_rc_slows_down),
		MARKED(test_uc_slows_down),
		MARKED(test_reads_are_answered_at_full_speed),
		MARKED(test_answers_slow_down),
		TEST(test_strangers),
		TEST(test_nothing_to_slow_down),
	};

	return cmocka_run_group_tests_name("endpoint_congestion", tests, NULL, NULL);
}
