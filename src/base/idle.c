/* idle.c - spin, then sleep. */
#include "base/idle.h"

#include <sched.h>

#include "base/clock.h"

enum { LEAST_NS = 1000 }; /* a shorter look is none; growing begins here */

void sl_idle_init(struct sl_idle *idle, enum sl_polling polling, uint64_t limit_ns, bool crowded)
{
	*idle = (struct sl_idle){
		.polling = polling, .crowded = crowded, .limit_ns = limit_ns, .while_ns = limit_ns};
}

void sl_idle_work_at(struct sl_idle *idle, uint64_t now_ns)
{
	uint64_t gap_ns = now_ns - idle->since_ns;

	idle->since_ns = 0;
	if (gap_ns <= idle->while_ns)
		return; /* long enough */
	if (gap_ns > idle->limit_ns)
		idle->while_ns = idle->while_ns / 2 < LEAST_NS ? 0 : idle->while_ns / 2;
	else
		idle->while_ns = idle->while_ns < LEAST_NS ? LEAST_NS : idle->while_ns * 2;
	if (idle->while_ns > idle->limit_ns)
		idle->while_ns = idle->limit_ns;
}

bool sl_idle_sleep_at(struct sl_idle *idle, uint64_t now_ns)
{
	if (idle->polling != SL_POLLING_ADAPTIVE)
		return idle->polling == SL_POLLING_CORES;
	if (!idle->since_ns)
		idle->since_ns = now_ns;
	return now_ns - idle->since_ns >= idle->while_ns;
}

void sl_idle_work(struct sl_idle *idle)
{
	if (idle->since_ns)
		sl_idle_work_at(idle, sl_clock_ns());
}

static void pause_briefly(const struct sl_idle *idle)
{
	if (idle->crowded)
		sched_yield();
	else {
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		__asm__ volatile("yield");
#endif
	}
}

bool sl_idle_sleep(struct sl_idle *idle)
{
	if (sl_idle_sleep_at(idle, idle->polling == SL_POLLING_ADAPTIVE ? sl_clock_ns() : 0))
		return true;
	pause_briefly(idle);
	return false;
}
