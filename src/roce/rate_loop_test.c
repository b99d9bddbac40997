/* rate_loop_test.c - the closed loop in simulated time: senders, one queue that marks as RED does,
 * notification points, controllers. With them the queue stays short, nothing is dropped, shares
 * become equal and come back when a sender leaves; without them the same queue overflows.
 *
 * Bounds are for this network (40 Gb/s, 4 KiB packets, 10 us there and back) and the marking of the
 * DCQCN paper: from 5 KB on, 1 % at 200 KB, everything above. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_channel.h"
#include "roce/cnp.h"
#include "roce/rate.h"

enum { SENDERS = 16, QUEUE = 4096, CNPS = 64, MS = 1000000, STEP_NS = 104 };

struct sender {
	struct sl_roce_rate rate;
	struct sl_roce_cnp cnp; /* the state that the receiver has for it */
	bool on;
	uint64_t next;		  /* when to try again */
	uint64_t own_bytes;	  /* per second: what it has to send; 0: all it can */
	uint64_t delivered, mark; /* bytes; and where a measurement began */
	uint64_t due[CNPS];	  /* CNPs on their way */
	unsigned head, tail;
};

static struct network {
	struct random random;
	uint64_t line, capacity, delay_ns;
	uint32_t packet, buffer, k_min, k_max; /* bytes */
	bool controlled;
	uint64_t now, busy_until;
	uint8_t from[QUEUE], marked[QUEUE]; /* the queue: packets */
	unsigned head, tail;
	uint32_t longest, dropped;
	struct sender sender[SENDERS];
} net;

static uint32_t queued(void)
{
	return (net.tail - net.head) * net.packet;
}

static void start(unsigned senders, bool line_known)
{
	memset(&net, 0, sizeof(net));
	net.random.state = 42;
	net.line = net.capacity = 5000000000u;
	net.delay_ns = 5000;
	net.packet = 4096 + 64;
	net.buffer = 6u << 20;
	net.k_min = 5000;
	net.k_max = 200000;
	net.controlled = true;
	for (unsigned i = 0; i < SENDERS; i++) {
		net.sender[i].on = i < senders;
		net.sender[i].rate.line = line_known ? net.line : 0;
		assert_int_equal(sl_roce_rate_init(&net.sender[i].rate), SL_ROCE_OK);
	}
}

/* Below k_min never, above k_max always, 1 % just below it. */
static bool marks(void)
{
	uint32_t bytes = queued();

	if (bytes <= net.k_min)
		return false;
	if (bytes > net.k_max)
		return true;
	return random_below(&net.random, 100 * (net.k_max - net.k_min)) < bytes - net.k_min;
}

static void enqueue(unsigned from)
{
	if (queued() + net.packet > net.buffer || net.tail - net.head == QUEUE) {
		net.dropped++;
		return;
	}
	net.from[net.tail % QUEUE] = (uint8_t)from;
	net.marked[net.tail % QUEUE] = marks();
	net.tail++;
	net.longest = queued() > net.longest ? queued() : net.longest;
}

static void send(unsigned i)
{
	struct sender *s = &net.sender[i];
	uint64_t when = 0;

	if (!s->on || net.now < s->next)
		return;
	if (net.controlled)
		when = sl_roce_rate_allow(&s->rate, net.now, net.packet);
	s->next = when;
	if (when)
		return;
	enqueue(i);
	s->next = net.now +
		  net.packet * UINT64_C(1000000000) / (s->own_bytes ? s->own_bytes : net.line);
}

static void deliver(void)
{
	struct sender *s = &net.sender[net.from[net.head % QUEUE]];

	s->delivered += net.packet;
	if (net.marked[net.head % QUEUE] && sl_roce_cnp_due(&s->cnp, net.now)) {
		assert_true(s->tail - s->head < CNPS);
		s->due[s->tail++ % CNPS] = net.now + 2 * net.delay_ns;
	}
	net.head++;
}

static void run(uint64_t ns)
{
	for (uint64_t end = net.now + ns; net.now < end; net.now += STEP_NS) {
		while (net.head != net.tail && net.busy_until <= net.now) {
			deliver();
			net.busy_until += net.packet * UINT64_C(1000000000) / net.capacity;
		}
		if (net.head == net.tail && net.busy_until < net.now)
			net.busy_until = net.now;
		for (unsigned i = 0; i < SENDERS; i++) {
			struct sender *s = &net.sender[i];

			for (; s->head != s->tail && s->due[s->head % CNPS] <= net.now; s->head++)
				sl_roce_rate_on_cnp(&s->rate, net.now);
			send(i);
		}
	}
}

struct shares {
	double jain, used; /* fairness, 1 when equal; part of the capacity */
};

/* Over the next ns. */
static struct shares measure(uint64_t ns)
{
	double sum = 0, squares = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < SENDERS; i++)
		net.sender[i].mark = net.sender[i].delivered;
	run(ns);
	for (unsigned i = 0; i < SENDERS; i++) {
		double x = (double)(net.sender[i].delivered - net.sender[i].mark);

		sum += x;
		squares += x * x;
		n += net.sender[i].on;
	}
	return (struct shares){sum * sum / (n * squares),
			       sum / ((double)net.capacity * (double)ns / 1e9)};
}

/* Five windows in a row. */
static void expect_shared(uint64_t window, double jain, double used, uint32_t longest)
{
	assert_int_equal(net.dropped, 0);
	net.longest = 0;
	for (int i = 0; i < 5; i++) {
		struct shares shares = measure(window);

		if (shares.jain < jain || shares.used < used)
			fail_msg("fairness %.4f, used %.4f", shares.jain, shares.used);
	}
	if (net.longest > longest)
		fail_msg("queue of %u bytes", net.longest);
	assert_int_equal(net.dropped, 0);
}

static void queue_is_short_and_shares_are_equal(void **state)
{
	for (unsigned senders = 2; senders <= 8; senders *= 2) {
		for (int known = 0; known <= 1; known++) {
			start(senders, known);
			run(20 * MS);
			expect_shared(20 * MS, 0.97, 0.93, 400000);
		}
	}
}

static void without_controllers_the_queue_overflows(void **state)
{
	for (unsigned senders = 2; senders <= 8; senders *= 2) {
		start(senders, true);
		net.controlled = false;
		run(20 * MS);
		assert_true(net.longest > net.buffer - net.packet);
		assert_true(net.dropped > 1000);
	}
}

static void alone_nobody_is_slowed_down(void **state)
{
	start(1, false);
	run(20 * MS);
	assert_true(measure(20 * MS).used > 0.99);
	assert_int_equal(net.sender[0].rate.cnps, 0);
	assert_false(net.sender[0].rate.active);
}

static void newcomer_gets_its_share(void **state)
{
	for (int known = 0; known <= 1; known++) {
		start(3, known);
		run(50 * MS);
		net.sender[3].on = true;
		run(60 * MS);
		expect_shared(20 * MS, 0.97, 0.93, 400000);
	}
}

/* Three of four leave: the last one has the whole line again, and no pacing. */
static void rate_comes_back_when_others_leave(void **state)
{
	for (int known = 0; known <= 1; known++) {
		start(4, known);
		run(50 * MS);
		assert_true(net.sender[0].rate.active);
		assert_true(net.sender[0].rate.rate < net.line / 2);
		for (unsigned i = 1; i < 4; i++)
			net.sender[i].on = false;
		run(40 * MS);
		assert_true(measure(20 * MS).used > 0.99);
		assert_false(net.sender[0].rate.active);
		assert_int_equal(net.dropped, 0);
	}
}

/* A sender with less to send than its share gets through; the others share the rest. */
static void modest_sender_is_not_held_back(void **state)
{
	uint64_t wanted = 400000000;

	start(4, true);
	net.sender[3].own_bytes = wanted;
	run(40 * MS);
	measure(100 * MS);
	assert_true(net.sender[3].delivered - net.sender[3].mark > wanted / 10 * 95 / 100);
	assert_int_equal(net.dropped, 0);
}

/* A slow and distant bottleneck, as a software switch is: 1 Gb/s, half a millisecond for there and
 * back. */
static void start_slow(bool line_known, uint32_t scale)
{
	start(2, false);
	net.line = net.capacity = 125000000;
	net.delay_ns = 250000;
	net.buffer = 1u << 20;
	net.k_min = 20000;
	for (unsigned i = 0; i < 2; i++) {
		net.sender[i].rate.line = line_known ? net.line : 0;
		net.sender[i].rate.scale = scale;
		assert_int_equal(sl_roce_rate_init(&net.sender[i].rate), SL_ROCE_OK);
	}
}

/* The loop is ten times slower than its timers: fair and lossless, but a third is unused. */
static void slow_link(void **state)
{
	for (int known = 0; known <= 1; known++) {
		start_slow(known, 1);
		run(200 * MS);
		expect_shared(100 * MS, 0.97, 0.6, 600000);
	}
}

/* With clocks that suit it, it is used almost in full, and the queue is half as long. */
static void slow_link_with_slow_clocks(void **state)
{
	for (int known = 0; known <= 1; known++) {
		start_slow(known, 20);
		run(500 * MS);
		expect_shared(500 * MS, 0.97, 0.9, 300000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_is_short_and_shares_are_equal),
		cmocka_unit_test(without_controllers_the_queue_overflows),
		cmocka_unit_test(alone_nobody_is_slowed_down),
		cmocka_unit_test(newcomer_gets_its_share),
		cmocka_unit_test(rate_comes_back_when_others_leave),
		cmocka_unit_test(modest_sender_is_not_held_back),
		cmocka_unit_test(slow_link),
		cmocka_unit_test(slow_link_with_slow_clocks),
	};

	return cmocka_run_group_tests_name("rate loop", tests, NULL, NULL);
}
