/* starved_test.c - a link thread that gets no cpu: packets that wait in its socket are not late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/flow_rig.h"

enum { STALLS = 3, STALL_NS = 400 * 1000 * 1000, A_FEW = 3 };

static struct sl_link slow; /* the experiment's link, with a poll() of ours */
static struct sl_link_receiving slow_receiving;
static int (*sound_poll)(void *, unsigned, unsigned);
static struct sl_receiver *_Atomic stalled;
static _Atomic unsigned stalls;

/* A few packets at a time, so that frames are seen half-way; then no look for four times as long as
 * late_timeout_ms, which a front end on a busy host does not need between two modules. */
static int poll_late(void *state, unsigned poller, unsigned budget)
{
	struct sl_receiver *r = atomic_load(&stalled);
	int n = sound_poll(state, poller, budget < A_FEW ? budget : A_FEW);
	uint64_t reached, ns;

	if (!r || n <= 0 || atomic_load(&stalls) == STALLS)
		return n;
	reached = sl_ring_reached(&r->feed[0].ring, 0);
	if (reached < 20 * (atomic_load(&stalls) + 1) ||
	    sl_ring_event(&r->feed[0].ring, reached - 1, 0, &ns) ||
	    !sl_ring_packets(&r->feed[0].ring, reached - 1, 0))
		return n;
	atomic_fetch_add(&stalls, 1);
	sl_clock_sleep_until(sl_clock_ns() + STALL_NS);
	return n;
}

static void open_slow(struct flow *f, const char *const *more, size_t n)
{
	atomic_store(&stalled, NULL);
	atomic_store(&stalls, 0);
	f->here = open_experiment(more, n);
	slow = *f->here->link;
	slow_receiving = *slow.receiving;
	sound_poll = slow_receiving.poll;
	slow_receiving.poll = poll_late;
	slow.receiving = &slow_receiving;
	f->here->link = &slow;
	open_flow(f, more, n);
	atomic_store(&stalled, f->receiver);
}

static void all_is_stored(const char *align)
{
	const char *const more[] = {"ring.late_timeout_ms=100", "link.segment=false",
				    "detector.frame_rate_Hz=1000", align};
	struct flow f = {0};

	open_slow(&f, more, sizeof(more) / sizeof(*more));
	run_flow(&f);
	assert_int_equal(atomic_load(&stalls), STALLS);
	assert_true(ledger_closed(&f.receiver->ledger));
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_STORED), MODULES * FRAMES);
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_INCOMPLETE), 0);
	assert_int_equal(ledger_total(&f.receiver->ledger, SL_LOST), 0);
	assert_int_equal(wrong_pixels(&f), 0);
	close_flow(&f);
}

static void what_waits_in_the_socket_is_not_late(void **state)
{
	(void)state;
	all_is_stored("ring.align=sequence");
}

static void nor_is_it_by_frame_number(void **state)
{
	(void)state;
	all_is_stored("ring.align=frame");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_waits_in_the_socket_is_not_late),
		cmocka_unit_test(nor_is_it_by_frame_number),
	};

	return RUN_APART_AND_TOGETHER("starved", tests);
}
