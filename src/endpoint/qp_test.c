/* qp_test.c - states and what each allows, limits, attributes that make no sense, completions by
 * turns. */
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "endpoint/testing.h"

static const uint8_t transports[] = {SL_ROCE_RC, SL_ROCE_UC, SL_ROCE_UD};
static uint8_t bytes[10000];
static const struct sl_piece room[SL_QP_PIECES] = {{bytes, 1000}};

static struct sl_work small(void)
{
	return rig_work(SL_ROCE_KIND_SEND, bytes, 10, 0);
}

static int step(enum sl_roce_state to)
{
	return sl_qp_modify(rig.side[LEFT].qp, to, &rig.attributes[LEFT]);
}

/* All pairs of states; the right ones are those of verbs. */
static void test_transitions(void **state)
{
	for (int t = 0; t < 3; t++) {
		rig_create(transports[t]);
		for (int from = SL_ROCE_RESET; from < SL_ROCE_STATES; from++) {
			for (int to = SL_ROCE_RESET; to < SL_ROCE_STATES; to++) {
				bool allowed = to == SL_ROCE_RESET || to == SL_ROCE_ERROR ||
					       (to == from + 1 && to <= SL_ROCE_RTS);

				assert_int_equal(step(SL_ROCE_RESET), 0);
				for (int s = SL_ROCE_INIT; s <= from && from <= SL_ROCE_RTS; s++)
					assert_int_equal(step((enum sl_roce_state)s), 0);
				if (from == SL_ROCE_ERROR)
					assert_int_equal(step(SL_ROCE_ERROR), 0);
				assert_int_equal(step((enum sl_roce_state)to),
						 allowed ? 0 : -EINVAL);
				assert_int_equal(sl_qp_state(rig.side[LEFT].qp),
						 allowed ? to : from);
			}
		}
		rig_disconnect();
	}
}

/* Which state takes which work. */
static void test_posting(void **state)
{
	for (int t = 0; t < 3; t++) {
		struct sl_work work;
		struct sl_qp *qp;

		rig_create(transports[t]);
		work = small();
		qp = rig.side[LEFT].qp;
		assert_int_equal(sl_qp_receive(qp, 1, room), -EINVAL);
		assert_int_equal(sl_qp_send(qp, &work), -EINVAL);
		assert_int_equal(step(SL_ROCE_INIT), 0);
		assert_int_equal(sl_qp_receive(qp, 1, room), 0);
		assert_int_equal(sl_qp_send(qp, &work), -EINVAL);
		assert_int_equal(step(SL_ROCE_RTR), 0);
		assert_int_equal(sl_qp_receive(qp, 2, room), 0);
		assert_int_equal(sl_qp_send(qp, &work), -EINVAL);
		assert_int_equal(step(SL_ROCE_RTS), 0);
		assert_int_equal(sl_qp_send(qp, &work), 0);
		assert_int_equal(sl_qp_receives(qp), 2);
		assert_int_equal(sl_qp_sends(qp), 1);
		/* RESET forgets. */
		assert_int_equal(step(SL_ROCE_RESET), 0);
		assert_int_equal(sl_qp_receives(qp) + sl_qp_sends(qp), 0);
		assert_int_equal(
			sl_endpoint_reap(rig.side[LEFT].endpoint, qp, rig.side[LEFT].done, 8), 0);
		rig_disconnect();
	}
}

/* ERROR from any state flushes what was posted, in order. */
static void test_flush(void **state)
{
	for (int t = 0; t < 3; t++) {
		for (int at = SL_ROCE_INIT; at <= SL_ROCE_RTS; at++) {
			struct sl_completion *done = rig.side[LEFT].done;
			struct sl_work work;
			unsigned sends = at == SL_ROCE_RTS ? 3 : 0;

			rig_create(transports[t]);
			work = small();
			for (int s = SL_ROCE_INIT; s <= at; s++)
				assert_int_equal(step((enum sl_roce_state)s), 0);
			for (unsigned i = 0; i < 3; i++) {
				work.id = i;
				assert_int_equal(sl_qp_receive(rig.side[LEFT].qp, 10 + i, room), 0);
				if (i < sends)
					rig_send(&work);
			}
			assert_int_equal(step(SL_ROCE_ERROR), 0);
			work.id = 3;
			rig_send(&work);
			assert_int_equal(sl_endpoint_reap(rig.side[LEFT].endpoint, NULL, done, 16),
					 sends + 4);
			for (unsigned i = 0; i < sends + 4; i++) {
				assert_int_equal(done[i].status, SL_STATUS_FLUSHED);
				assert_int_equal(done[i].id, i < sends	  ? i
							     : i == sends ? 3
									  : 10 + i - sends - 1);
			}
			rig_disconnect();
		}
	}
}

/* A queue pair that only receives needs no RTS; RC acknowledges from RTR. */
static void test_receiver_in_rtr(void **state)
{
	for (int t = 0; t < 3; t++) {
		uint8_t landing[1000] = {0};
		struct sl_work work;

		rig_create(transports[t]);
		assert_int_equal(sl_qp_connect(rig.side[LEFT].qp, &rig.attributes[LEFT]), 0);
		for (int s = SL_ROCE_INIT; s <= SL_ROCE_RTR; s++)
			assert_int_equal(sl_qp_modify(rig.side[RIGHT].qp, (enum sl_roce_state)s,
						      &rig.attributes[RIGHT]),
					 0);
		rig_receive(4, landing, sizeof(landing));
		fill(bytes, 10, 1);
		work = small();
		rig_send(&work);
		rig_run(1, 1);
		assert_int_equal(rig.side[LEFT].done[0].status, SL_STATUS_SUCCESS);
		check_filled(landing + (transports[t] == SL_ROCE_UD ? 40 : 0), 10, 1);
		rig_disconnect();
	}
}

/* Before RTR nothing is received, and after a failure nothing either. */
static void test_deaf_states(void **state)
{
	rig_create(SL_ROCE_UC);
	assert_int_equal(sl_qp_connect(rig.side[LEFT].qp, &rig.attributes[LEFT]), 0);
	for (int s = SL_ROCE_RESET; s <= SL_ROCE_ERROR; s += SL_ROCE_ERROR) {
		struct sl_work work = small();

		assert_int_equal(sl_qp_modify(rig.side[RIGHT].qp, (enum sl_roce_state)s, NULL), 0);
		rig_send(&work);
		rig_settle();
		assert_int_equal(dropped(RIGHT, SL_ROCE_DROP_STATE), 1 + s / SL_ROCE_ERROR);
	}
}

static void test_bad_attributes(void **state)
{
	struct sl_qp_attributes good, *a = &rig.attributes[LEFT];
	struct sl_qp *qp;

	rig_create(SL_ROCE_RC);
	qp = rig.side[LEFT].qp;
	good = *a;
#define REFUSED(change)                                          \
	do {                                                     \
		*a = good;                                       \
		change;                                          \
		assert_int_equal(step(SL_ROCE_RESET), 0);        \
		assert_int_equal(sl_qp_connect(qp, a), -EINVAL); \
	} while (0)
	REFUSED(a->pmtu = 1000);
	REFUSED(a->pmtu = 8192);
	REFUSED(a->peer_qpn = 0x1000000);
	REFUSED(a->peer_port = 0);
	REFUSED(a->receive_psn = 0x1000000);
	REFUSED(a->send_psn = 0x1000000);
	REFUSED(a->min_rnr_timer = 32);
	REFUSED(a->rnr_retries = 8);
	REFUSED(a->window = 1 << 23);
	REFUSED(a->ack_every = 1 << 23);
	REFUSED(assert_int_equal(sl_net_parse("test", "fd00::1", a->peer), 0));
#undef REFUSED
	*a = good;
	assert_int_equal(step(SL_ROCE_RESET), 0);
	assert_int_equal(sl_qp_modify(qp, SL_ROCE_INIT, NULL), 0);
	assert_int_equal(sl_qp_modify(qp, SL_ROCE_RTR, NULL), -EINVAL);
	assert_int_equal(sl_qp_connect(qp, a), 0);
	assert_int_equal(sl_qp_connect(qp, a), -EINVAL);
}

static void test_bad_work(void **state)
{
	struct sl_work work;

	rig.attributes[LEFT].reads = 0;
	rig_connect(SL_ROCE_RC);
#define REFUSED(kind, change)                                                    \
	do {                                                                     \
		work = rig_work(kind, bytes, 100, 0);                            \
		change;                                                          \
		assert_int_equal(sl_qp_send(rig.side[LEFT].qp, &work), -EINVAL); \
	} while (0)
	REFUSED(SL_ROCE_KIND_READ, );
	REFUSED(SL_ROCE_KIND_ATOMIC, );
	REFUSED(SL_ROCE_KIND_SEND, work.piece[0].bytes = 0x80000001);
	REFUSED(SL_ROCE_KIND_SEND, work.piece[0].at = NULL);
	REFUSED(SL_ROCE_KIND_SEND, work.piece[1].bytes = 1);
	rig_disconnect();
	rig_connect(SL_ROCE_UC);
	REFUSED(SL_ROCE_KIND_READ, );
	rig_disconnect();
	rig_connect(SL_ROCE_UD);
	REFUSED(SL_ROCE_KIND_READ, );
	REFUSED(SL_ROCE_KIND_WRITE, );
	REFUSED(SL_ROCE_KIND_SEND, work.piece[0].bytes = 1025);
	REFUSED(SL_ROCE_KIND_SEND, work.to.qpn = 0x1000000);
	REFUSED(SL_ROCE_KIND_SEND, assert_int_equal(sl_net_parse("", "::1", work.to.address), 0));
#undef REFUSED
}

static void test_depth(void **state)
{
	struct sl_work work;

	rig.options.sends = 3;
	rig.options.receives = 2;
	rig_connect(SL_ROCE_RC);
	work = small();
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 3; i++)
			rig_send(&work);
		assert_int_equal(sl_qp_send(rig.side[LEFT].qp, &work), -EAGAIN);
		for (int i = 0; i < 2; i++)
			rig_receive(4, bytes + 5000, 10);
		assert_int_equal(sl_qp_receive(rig.side[RIGHT].qp, 4, room), -EAGAIN);
		rig_run(2, 2);
		rig_receive(4, bytes + 5000, 10);
		rig_run(3, 3);
		rig.side[LEFT].count = rig.side[RIGHT].count = 0;
	}
}

static void test_limits(void **state)
{
	struct sl_endpoint_options options = {.keys = 2, .qps = 2};
	struct sl_endpoint_memory memory = {.at = bytes, .bytes = 100};
	struct sl_qp_options o = {.transport = SL_ROCE_UC};
	struct sl_endpoint *endpoint;
	struct sl_qp *qp[3];
	uint32_t rkey[3];

	memcpy(options.address, sl_endpoint_address(rig.side[LEFT].endpoint), 16);
	assert_int_equal(sl_endpoint_open(&options, &endpoint), 0);
	assert_int_equal(sl_qp_create(endpoint, &o, &qp[0]), 0);
	o.qpn = sl_qp_number(qp[0]);
	assert_int_equal(sl_qp_create(endpoint, &o, &qp[1]), -EEXIST);
	o.qpn = 0xfffffe;
	assert_int_equal(sl_qp_create(endpoint, &o, &qp[1]), 0);
	assert_int_equal(sl_qp_number(qp[1]), 0xfffffe);
	o.qpn = 0;
	assert_int_equal(sl_qp_create(endpoint, &o, &qp[2]), -ENOSPC);
	sl_qp_destroy(qp[0]);
	assert_int_equal(sl_qp_create(endpoint, &o, &qp[2]), 0);
	o.qpn = 0xffffff;
	assert_int_equal(sl_qp_create(endpoint, &o, &qp[0]), -EINVAL);
	o = (struct sl_qp_options){.transport = SL_ROCE_RD};
	assert_int_equal(sl_qp_create(endpoint, &o, &qp[0]), -EINVAL);
	assert_int_equal(sl_endpoint_register(endpoint, &memory, &rkey[0]), 0);
	assert_int_equal(sl_endpoint_register(endpoint, &memory, &rkey[1]), 0);
	assert_true(rkey[0] != rkey[1]);
	assert_int_equal(sl_endpoint_register(endpoint, &memory, &rkey[2]), -ENOSPC);
	assert_int_equal(sl_endpoint_deregister(endpoint, rkey[0]), 0);
	assert_int_equal(sl_endpoint_register(endpoint, &memory, &rkey[2]), 0);
	sl_endpoint_close(endpoint);
}

static void test_bad_memory(void **state)
{
	struct sl_endpoint_memory memory = {.at = bytes, .bytes = 100, .has_iova = true};
	struct sl_endpoint *endpoint = rig.side[LEFT].endpoint;
	uint32_t rkey;

	memory.iova = UINT64_MAX - 98;
	assert_int_equal(sl_endpoint_register(endpoint, &memory, &rkey), -EINVAL);
	memory.iova--;
	assert_int_equal(sl_endpoint_register(endpoint, &memory, &rkey), 0);
	memory.bytes = 1; /* one byte is memory, also the last that there can be */
	memory.iova = UINT64_MAX;
	assert_int_equal(sl_endpoint_register(endpoint, &memory, &rkey), 0);
	memory.bytes = 0;
	assert_int_equal(sl_endpoint_register(endpoint, &memory, &rkey), -EINVAL);
	memory = (struct sl_endpoint_memory){.bytes = 10};
	assert_int_equal(sl_endpoint_register(endpoint, &memory, &rkey), -EINVAL);
	memory = (struct sl_endpoint_memory){.at = bytes, .bytes = 10};
	memory.access = SL_ROCE_REMOTE_ATOMIC;
	assert_int_equal(sl_endpoint_register(endpoint, &memory, &rkey), -EINVAL);
}

/* Several queue pairs share an endpoint: each has its turn, to send and to be reaped. */
static void test_turns(void **state)
{
	enum { QPS = 5, MESSAGES = 20 };
	unsigned seen[QPS] = {0};
	struct sl_qp *qp[QPS];

	rig_create(SL_ROCE_UC);
	for (int i = 0; i < QPS; i++) {
		assert_int_equal(sl_qp_create(rig.side[LEFT].endpoint, &rig.options, &qp[i]), 0);
		assert_int_equal(sl_qp_connect(qp[i], &rig.attributes[LEFT]), 0);
		for (unsigned m = 0; m < MESSAGES; m++) {
			struct sl_work work = small();

			work.id = (uint64_t)i;
			assert_int_equal(sl_qp_send(qp[i], &work), 0);
		}
	}
	sl_endpoint_poll(rig.side[LEFT].endpoint, rig.now, QPS * SL_TURN);
	for (int i = 0; i < QPS; i++)
		assert_int_equal(qp[i]->sends.completed, SL_TURN);
	while (rig.side[LEFT].count < QPS) {
		assert_int_equal(sl_endpoint_reap(rig.side[LEFT].endpoint, NULL,
						  rig.side[LEFT].done + rig.side[LEFT].count, 1),
				 1);
		seen[rig.side[LEFT].done[rig.side[LEFT].count++].id]++;
	}
	for (int i = 0; i < QPS; i++)
		assert_int_equal(seen[i], 1);
	/* One goes away between two turns. */
	sl_qp_destroy(rig.side[LEFT].endpoint->turn);
	sl_qp_destroy(rig.side[LEFT].endpoint->reap_turn);
	rig_settle();
}

/* A wait ends with its own time or the next timer, whichever is first: with the other one it would
 * last for more than two hours, or for ever. */
static void test_waits(void **state)
{
	struct sl_endpoint *left = rig.side[LEFT].endpoint;
	struct sl_work work;
	uint64_t wake;

	assert_int_equal(sl_endpoint_wait(left, rig.now, 1), 0); /* no timer */
	rig_create(SL_ROCE_RC);
	rig.attributes[LEFT].timeout = 31;
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(sl_qp_connect(rig.side[i].qp, &rig.attributes[i]), 0);
	work = small();
	rig_send(&work);
	sl_endpoint_poll(left, rig.now, 32); /* it leaves, and no answer comes */
	wake = sl_endpoint_wake(left);
	assert_in_range(wake - rig.now, UINT64_C(7200000000000), UINT64_C(36000000000000));
	assert_int_equal(sl_endpoint_wait(left, rig.now, 1), 0);
	assert_int_equal(sl_endpoint_wait(left, rig.now, 0), 0);
	assert_int_equal(sl_endpoint_wait(left, wake - 1, UINT64_MAX), 0);
	assert_int_equal(sl_endpoint_wait(left, wake, UINT64_MAX), 0);
	assert_int_equal(sl_endpoint_wait(left, wake + 1, UINT64_MAX), 0);
}

/* Anything that comes to its port. */
static void *send_later(void *arg)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
				       .sin_port = htons(sl_endpoint_port(arg)),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	sl_clock_sleep_until(sl_clock_ns() + 50000000);
	sendto(fd, "x", 1, 0, (const struct sockaddr *)&to, sizeof(to));
	close(fd);
	return NULL;
}

/* And not before. */
static void test_waits_for_packets(void **state)
{
	struct sl_endpoint *left = rig.side[LEFT].endpoint;
	struct pollfd fd = {.fd = sl_endpoint_fd(left), .events = POLLIN};
	pthread_t thread;

	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, send_later, left), 0);
	assert_int_equal(sl_endpoint_wait(left, rig.now, UINT64_MAX), 0);
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_names(void **state)
{
	for (unsigned i = 0; i < SL_ENDPOINT_DROPS; i++)
		assert_string_not_equal(sl_endpoint_drop_name(i), "unknown");
	assert_string_equal(sl_endpoint_drop_name(SL_ENDPOINT_DROP_ICRC), "icrc");
	assert_string_equal(sl_status_name(SL_STATUS_RETRY_EXCEEDED), "no answer from the peer");
	assert_string_equal(sl_status_name(99), "unknown status");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_transitions), TEST(test_posting),
		TEST(test_flush),	TEST(test_receiver_in_rtr),
		TEST(test_deaf_states), TEST(test_bad_attributes),
		TEST(test_bad_work),	TEST(test_depth),
		TEST(test_limits),	TEST(test_bad_memory),
		TEST(test_turns),	TEST(test_names),
		TEST(test_waits),	TEST(test_waits_for_packets),
	};

	return cmocka_run_group_tests_name("endpoint_qp", tests, NULL, NULL);
}
