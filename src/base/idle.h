/* idle.h - a thread that found nothing to do: look again at once, or sleep?
 *
 * Model:     waking up takes longer than most gaps between packets, and looking costs a core. So a
 *            thread looks again for a while (spins), then sleeps. ADAPTIVE: for as long as lately
 *            would have been worth it, at most limit_ns. A gap that a longer look would have
 *            bridged doubles the while; one beyond the limit halves it, so that who waits long
 *            hardly looks at all. LATENCY: never sleeps. CORES: always sleeps.
 *
 *              if (work())
 *                      sl_idle_work(&idle);
 *              else if (sl_idle_sleep(&idle))
 *                      wait();
 * Threads:   one thread's own.
 * Cost:      with work: a compare. Without: a look at the clock, and the pause instruction. */
#ifndef SL_BASE_IDLE_H
#define SL_BASE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

enum sl_polling { SL_POLLING_ADAPTIVE, SL_POLLING_LATENCY, SL_POLLING_CORES };

struct sl_idle {
	enum sl_polling polling;
	bool crowded;	   /* others may need this core: let them have it between looks */
	uint64_t limit_ns; /* longest while */
	uint64_t while_ns; /* as things are; begins with the limit */
	uint64_t since_ns; /* without work since; 0: it has work */
};

void sl_idle_init(struct sl_idle *idle, enum sl_polling polling, uint64_t limit_ns, bool crowded);

/* At a given time, without pause: what the two below are made of. */
void sl_idle_work_at(struct sl_idle *idle, uint64_t now_ns);
bool sl_idle_sleep_at(struct sl_idle *idle, uint64_t now_ns);

/* It found something. */
void sl_idle_work(struct sl_idle *idle);

/* It found nothing. True: sleep now. False: look again. */
bool sl_idle_sleep(struct sl_idle *idle);

#endif
