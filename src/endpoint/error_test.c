/* error_test.c - what must not work does not, and says so: keys, ranges, rights, receives that are
 * missing or too small, peers that are gone. */
#include "endpoint/testing.h"

enum { BYTES = 1 << 20 };

static uint8_t source[BYTES], landing[BYTES];

static const struct sl_completion *left(unsigned i)
{
	return &rig.side[LEFT].done[i];
}

static const struct sl_completion *right(unsigned i)
{
	return &rig.side[RIGHT].done[i];
}

static void untouched(void)
{
	for (unsigned i = 0; i < MEMORY_BYTES; i++)
		assert_int_equal(rig.side[RIGHT].memory[i], 0);
}

/* A request that fails, with one behind it and a receive on the other side: both are flushed, as is
 * what is posted later. */
static void refused(struct sl_work work, unsigned status)
{
	const struct sl_piece room[SL_QP_PIECES] = {{landing, 100}};
	struct sl_work behind = rig_work(SL_ROCE_KIND_SEND, source, 10, 0);

	behind.id = 78;
	rig_receive(4, landing, 100);
	rig_send(&work);
	rig_send(&behind);
	rig_run(2, 1);
	assert_int_equal(left(0)->id, 77);
	assert_int_equal(left(0)->status, status);
	assert_int_equal(left(1)->id, 78);
	assert_int_equal(left(1)->status, SL_STATUS_FLUSHED);
	assert_int_equal(right(0)->id, 4);
	assert_int_equal(right(0)->status, SL_STATUS_FLUSHED);
	for (int k = 0; k < SIDES; k++) {
		assert_int_equal(sl_qp_state(rig.side[k].qp), SL_ROCE_ERROR);
		assert_int_equal(sl_qp_send(rig.side[k].qp, &behind), 0);
		assert_int_equal(sl_qp_receive(rig.side[k].qp, 9, room), 0);
	}
	rig_run(4, 3);
	assert_int_equal(left(2)->status, SL_STATUS_FLUSHED);
	assert_int_equal(left(3)->status, SL_STATUS_FLUSHED);
	assert_int_equal(right(1)->status, SL_STATUS_FLUSHED);
	assert_int_equal(right(2)->status, SL_STATUS_FLUSHED);
	untouched();
	rig_disconnect();
}

static uint32_t key_with(uint32_t access, uint32_t domain)
{
	const struct sl_endpoint_memory memory = {
		.at = rig.side[RIGHT].memory, .bytes = 8192, .access = access, .domain = domain};
	uint32_t rkey;

	assert_int_equal(sl_endpoint_register(rig.side[RIGHT].endpoint, &memory, &rkey), 0);
	return rkey;
}

static void with_key(uint8_t kind, uint32_t rkey)
{
	struct sl_work work;

	rig_connect(SL_ROCE_RC);
	work = rig_work(kind, source, 100, 0);
	work.rkey = rkey;
	refused(work, SL_STATUS_REMOTE_ACCESS);
}

static void test_keys(void **state)
{
	memset(source, 1, 100);
	with_key(SL_ROCE_KIND_WRITE, rig.side[RIGHT].rkey ^ 1);
	with_key(SL_ROCE_KIND_READ, rig.side[RIGHT].rkey ^ 0x80000000);
	with_key(SL_ROCE_KIND_WRITE, 0);
	with_key(SL_ROCE_KIND_WRITE, key_with(SL_ROCE_REMOTE_READ, DOMAIN));
	with_key(SL_ROCE_KIND_READ, key_with(SL_ROCE_REMOTE_WRITE, DOMAIN));
	with_key(SL_ROCE_KIND_WRITE, key_with(SL_ROCE_REMOTE_WRITE, DOMAIN + 1));
	with_key(SL_ROCE_KIND_READ, key_with(SL_ROCE_REMOTE_READ, DOMAIN + 1));
	assert_int_equal(sl_endpoint_deregister(rig.side[RIGHT].endpoint, rig.side[RIGHT].rkey), 0);
	with_key(SL_ROCE_KIND_WRITE, rig.side[RIGHT].rkey);
	assert_int_equal(sl_endpoint_deregister(rig.side[RIGHT].endpoint, rig.side[RIGHT].rkey),
			 -ENOENT);
}

static void test_ranges(void **state)
{
	const uint64_t base = (uint64_t)(uintptr_t)rig.side[RIGHT].memory;
	const struct {
		uint64_t va;
		uint32_t bytes;
	} wrong[] = {{base - 1, 1},
		     {base + MEMORY_BYTES, 1},
		     {base + MEMORY_BYTES - 99, 100},
		     {base - 100, 3000},
		     {base + MEMORY_BYTES - 3000, 3001},
		     {UINT64_MAX, 2},
		     {UINT64_MAX - 99, 3000},
		     {0, 1}};

	memset(source, 1, 4000);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct sl_work work;

		rig_connect(SL_ROCE_RC);
		work = rig_work(i & 1 ? SL_ROCE_KIND_WRITE : SL_ROCE_KIND_READ, source,
				wrong[i].bytes, 0);
		work.va = wrong[i].va;
		refused(work, SL_STATUS_REMOTE_ACCESS);
	}
}

/* What the queue pair never permits is another refusal than what a key does not. */
static void test_rights_of_queue(void **state)
{
	rig.options.access = SL_ROCE_REMOTE_READ;
	rig_connect(SL_ROCE_RC);
	refused(rig_work(SL_ROCE_KIND_WRITE, source, 100, 0), SL_STATUS_REMOTE_INVALID);
	rig.options.access = SL_ROCE_REMOTE_WRITE;
	rig_connect(SL_ROCE_RC);
	refused(rig_work(SL_ROCE_KIND_READ, source, 100, 0), SL_STATUS_REMOTE_INVALID);
}

static void test_receive_too_small(void **state)
{
	struct sl_work work;

	rig_connect(SL_ROCE_RC);
	rig_receive(4, landing, 1999);
	rig_receive(5, landing, 5000);
	work = rig_work(SL_ROCE_KIND_SEND, source, 2000, 0);
	rig_send(&work);
	rig_run(1, 2);
	assert_int_equal(left(0)->status, SL_STATUS_REMOTE_INVALID);
	assert_int_equal(right(0)->status, SL_STATUS_LOCAL_LENGTH);
	assert_int_equal(right(0)->id, 4);
	assert_int_equal(right(1)->status, SL_STATUS_FLUSHED);
	assert_int_equal(right(1)->id, 5);
}

/* No receive: the sender waits as long as it was told to, as often as it was told to. */
static void test_not_ready(void **state)
{
	struct sl_qp_counters counters;
	struct sl_work work;
	uint64_t began;

	rig.attributes[LEFT].rnr_retries = 3;
	rig.attributes[RIGHT].min_rnr_timer = 14;
	rig_connect(SL_ROCE_RC);
	work = rig_work(SL_ROCE_KIND_SEND, source, 2000, 0);
	began = rig.now;
	rig_send(&work);
	rig_run(1, 0);
	assert_int_equal(left(0)->status, SL_STATUS_RNR_EXCEEDED);
	assert_int_equal(rig.now - began, 3 * sl_roce_rnr_ns(14));
	sl_qp_count(rig.side[LEFT].qp, &counters);
	assert_int_equal(counters.rnr_naks_received, 4);
	sl_qp_count(rig.side[RIGHT].qp, &counters);
	assert_int_equal(counters.rnr_naks_sent, 4);
	/* The peer knows nothing of it. */
	assert_int_equal(sl_qp_state(rig.side[RIGHT].qp), SL_ROCE_RTS);
}

static void test_ready_later(void **state)
{
	struct sl_work work;

	rig_connect(SL_ROCE_RC);
	fill(source, 5000, 1);
	work = rig_work(SL_ROCE_KIND_SEND, source, 5000, 0);
	rig_send(&work);
	for (int i = 0; i < 20; i++)
		rig_step();
	assert_int_equal(rig.side[LEFT].count, 0);
	rig_receive(4, landing, 5000);
	rig_run(1, 1);
	assert_int_equal(left(0)->status, SL_STATUS_SUCCESS);
	check_filled(landing, 5000, 1);
}

static void test_peer_gone(void **state)
{
	struct sl_qp_counters counters;
	struct sl_work work;
	uint64_t began;

	rig.attributes[LEFT].retries = 2;
	rig.attributes[LEFT].timeout = 10;
	rig_connect(SL_ROCE_RC);
	work = rig_work(SL_ROCE_KIND_SEND, source, 2000, 0);
	sl_qp_destroy(rig.side[RIGHT].qp);
	began = rig.now;
	rig_send(&work);
	rig_run(1, 0);
	assert_int_equal(left(0)->status, SL_STATUS_RETRY_EXCEEDED);
	assert_int_equal(rig.now - began, 3 * sl_roce_timeout_ns(10));
	assert_int_equal(sl_qp_state(rig.side[LEFT].qp), SL_ROCE_ERROR);
	sl_qp_count(rig.side[LEFT].qp, &counters);
	assert_int_equal(counters.sent, 6);
	assert_int_equal(counters.resent, 4);
	assert_int_equal(dropped(RIGHT, SL_ROCE_DROP_QUEUE), 6);
}

/* A key that is revoked while its memory is being read, or written, stops both at once. */
static void revoke(uint8_t kind, enum sl_roce_transport transport)
{
	const struct sl_endpoint_memory memory = {
		.at = rig.side[RIGHT].memory,
		.bytes = BYTES,
		.access = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ,
		.domain = DOMAIN,
	};
	struct sl_work work;
	uint32_t rkey;

	assert_int_equal(sl_endpoint_register(rig.side[RIGHT].endpoint, &memory, &rkey), 0);
	rig_connect(transport);
	work = rig_work(kind, source, BYTES, 0);
	work.rkey = rkey;
	memset(source, 1, BYTES);
	rig_send(&work);
	for (int i = 0; i < 4; i++)
		rig_step();
	assert_int_equal(rig.side[LEFT].count, 0);
	assert_int_equal(sl_endpoint_deregister(rig.side[RIGHT].endpoint, rkey), 0);
	memset(rig.side[RIGHT].memory, 0, BYTES);
	rig_run(1, 0);
	rig_settle();
	if (transport == SL_ROCE_RC) {
		assert_int_equal(left(0)->status, SL_STATUS_REMOTE_ACCESS);
		assert_int_equal(sl_qp_state(rig.side[RIGHT].qp), SL_ROCE_ERROR);
	}
	untouched();
	rig_disconnect();
}

static void test_revoked(void **state)
{
	revoke(SL_ROCE_KIND_WRITE, SL_ROCE_RC);
	revoke(SL_ROCE_KIND_READ, SL_ROCE_RC);
	revoke(SL_ROCE_KIND_WRITE, SL_ROCE_UC);
}

/* UC says nothing to anyone, and the next good message is taken. */
static void test_uc_silent(void **state)
{
	struct sl_work work;

	rig_connect(SL_ROCE_UC);
	memset(source, 1, 4000);
	work = rig_work(SL_ROCE_KIND_WRITE, source, 4000, 0);
	work.rkey ^= 1;
	rig_send(&work);
	work = rig_work(SL_ROCE_KIND_WRITE, source, 4000, MEMORY_BYTES - 3999);
	rig_send(&work);
	work = rig_work(SL_ROCE_KIND_SEND, source, 4000, 0);
	rig_send(&work); /* no receive */
	rig_run(3, 0);
	rig_settle();
	untouched();
	assert_true(dropped(RIGHT, SL_ROCE_DROP_KEY) > 0);
	assert_true(dropped(RIGHT, SL_ROCE_DROP_RANGE) > 0);
	assert_true(dropped(RIGHT, SL_ROCE_DROP_RECEIVE) > 0);
	fill(source, 4000, 9);
	rig_receive(4, landing, 4000);
	work = rig_work(SL_ROCE_KIND_SEND, source, 4000, 0);
	rig_send(&work);
	rig_run(4, 1);
	check_filled(landing, 4000, 9);
}

static void test_ud_qkey(void **state)
{
	struct sl_work work;

	rig_connect(SL_ROCE_UD);
	rig_receive(4, landing, 1000);
	work = rig_work(SL_ROCE_KIND_SEND, source, 100, 0);
	work.to.qkey++;
	rig_send(&work);
	work = rig_work(SL_ROCE_KIND_SEND, source, 1000, 0); /* too long for the receive */
	rig_send(&work);
	rig_run(2, 0);
	rig_settle();
	assert_int_equal(dropped(RIGHT, SL_ROCE_DROP_QKEY), 1);
	assert_int_equal(dropped(RIGHT, SL_ROCE_DROP_RECEIVE), 1);
	assert_int_equal(rig.side[RIGHT].count, 0);
}

/* More READs than the peer has room to remember: it drops them, and they come again. */
static void test_busy(void **state)
{
	rig.options.peer_reads = 1;
	rig.attributes[LEFT].reads = 16;
	rig_connect(SL_ROCE_RC);
	fill(rig.side[RIGHT].memory, 16 * 2000, 4);
	for (unsigned i = 0; i < 16; i++) {
		struct sl_work work =
			rig_work(SL_ROCE_KIND_READ, landing + i * 2000, 2000, i * 2000);

		rig_send(&work);
	}
	rig_run(16, 0);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(left(i)->status, SL_STATUS_SUCCESS);
	check_filled(landing, 16 * 2000, 4);
	assert_true(dropped(RIGHT, SL_ENDPOINT_DROP_BUSY) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_keys),
		TEST(test_ranges),
		TEST(test_rights_of_queue),
		TEST(test_receive_too_small),
		TEST(test_not_ready),
		TEST(test_ready_later),
		TEST(test_peer_gone),
		TEST(test_revoked),
		TEST(test_uc_silent),
		TEST(test_ud_qkey),
		TEST(test_busy),
	};

	return cmocka_run_group_tests_name("endpoint_error", tests, NULL, NULL);
}
