/* rate_fuzz.c - any sequence of CNPs, packets and pauses for a rate controller, and of marked
 * packets for a notification point.
 *
 * The input is eight bytes of settings, then pairs of an operation and its argument. Whatever
 * comes, the rate stays between its bounds, what is granted ahead of time is a burst and a packet
 * at most, who asks again when told to is served in the end, and CNPs are no closer than their
 * gap. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "roce/cnp.h"
#include "roce/rate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Asking every microsecond, the shortest timer, until the queue counts as idle; and per input. */
enum { ASKS = SL_ROCE_RATE_IDLE_NS / 1000 + 10, ASKS_IN_ALL = 2000000 };

static struct sl_roce_rate rate;
static struct sl_roce_cnp cnp;
static uint64_t now, last_due, asks;

static void require(int good)
{
	if (!good)
		abort();
}

/* A value over many orders of magnitude. */
static uint64_t spread(uint8_t byte)
{
	return byte ? (uint64_t)(16 + (byte & 15)) << (byte >> 4) * 2 : 0;
}

static void check(void)
{
	require(rate.alpha <= SL_ROCE_RATE_ALPHA);
	require(rate.cuts <= rate.cnps);
	if (!rate.active) {
		require(sl_roce_rate_limit(&rate) == 0);
		return;
	}
	require(rate.floor > 0 && rate.floor <= rate.ceiling);
	require(rate.rate >= rate.floor && rate.rate <= rate.ceiling);
	require(rate.target <= rate.ceiling && rate.ceiling <= SL_ROCE_RATE_MAX);
}

static void send(uint32_t bytes)
{
	uint64_t when;

	for (int i = 0; (when = sl_roce_rate_allow(&rate, now, bytes)) != 0; i++) {
		require(rate.active && when > now && i < ASKS);
		require(when - now <= rate.timer_ns * rate.scale);
		now = when;
		asks++;
		check();
	}
	require(!rate.active || rate.debt <= (uint64_t)rate.burst_bytes + bytes);
}

static void mark(void)
{
	uint64_t gap = cnp.gap_ns ? cnp.gap_ns : SL_ROCE_CNP_GAP_NS;
	bool first = cnp.asked == 0;

	if (!sl_roce_cnp_due(&cnp, now))
		return;
	require(first || now - last_due >= gap);
	last_due = now;
}

static void operate(uint8_t operation, uint8_t argument)
{
	switch (operation % 6) {
	case 0:
		sl_roce_rate_on_cnp(&rate, now);
		break;
	case 1:
		send(1 + argument * 64u);
		break;
	case 2:
		now += spread(argument);
		break;
	case 3:
		sl_roce_rate_tick(&rate, now);
		break;
	case 4:
		mark();
		break;
	default:
		for (int i = 0; i < argument && asks < ASKS_IN_ALL; i++)
			send(4096);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 8)
		return 0;
	memset(&rate, 0, sizeof(rate));
	memset(&cnp, 0, sizeof(cnp));
	rate.line = spread(data[0]) * 64;
	rate.least = spread(data[1]);
	rate.additive = spread(data[2]);
	rate.hyper = spread(data[3]);
	rate.stage_bytes = spread(data[4]);
	rate.timer_ns = spread(data[5]);
	rate.burst_bytes = (uint32_t)spread(data[6]);
	rate.scale = data[7] >> 4;
	cnp.gap_ns = spread(data[7]);
	now = 1000000000;
	asks = 0;
	if (sl_roce_rate_init(&rate))
		return 0;
	for (size_t i = 8; i + 1 < size && asks < ASKS_IN_ALL; i += 2) {
		operate(data[i], data[i + 1]);
		check();
	}
	return 0;
}
