/* worker.c - sluice bench gpu: the unit of a row, with a thread for its worker, as in a
 * run: whoever submits and takes back is not held by a driver's calls. */
#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/idle.h"
#include "base/log.h"
#include "bench/gpu/gpu.h"
#include "core/registry.h"

enum { SPIN_NS = 200000, NAP_NS = 20000 };

static int set_option(struct sl_bench_subject *s, const char *name, const char *text)
{
	const struct sl_option *option = sl_option_find(s->unit->options, name);
	char why[128];

	if (option && !sl_option_set(option, s->unit_state, text, why, sizeof(why)))
		return 0;
	sl_error("unit '%s' has no %s of %s", s->unit->name, name, text);
	return -EINVAL;
}

int sl_bench_unit_open(struct sl_bench_subject *s, const char *name,
		       const char *const (*options)[2], unsigned n)
{
	unsigned workers;
	int err = 0;

	s->unit = sl_unit_find(name);
	if (!s->unit) {
		sl_error("no unit '%s' in this program", name);
		return -ENODEV;
	}
	s->unit_state = calloc(1, s->unit->state_bytes);
	if (!s->unit_state)
		return -ENOMEM;
	sl_options_defaults(s->unit->options, s->unit_state);
	for (unsigned i = 0; i < n && !err && options[i][0]; i++)
		err = set_option(s, options[i][0], options[i][1]);
	return err ? err
		   : s->unit->open(s->unit_state, &s->build.chain, &s->todo, &s->done, &workers);
}

static void *run_worker(void *arg)
{
	struct sl_bench_worker *w = arg;
	struct sl_bench_subject *s = w->subject;
	struct timespec nap = {0, NAP_NS};
	struct sl_idle idle;

	/* The unit naps while the device is at it: for as long as it says, and no longer. */
	prctl(PR_SET_TIMERSLACK, 1);
	sl_idle_init(&idle, SL_POLLING_ADAPTIVE, SPIN_NS, true);
	while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
		if (s->unit->work(s->unit_state, 0))
			sl_idle_work(&idle);
		else if (sl_idle_sleep(&idle))
			nanosleep(&nap, NULL);
	}
	return NULL;
}

int sl_bench_worker_start(struct sl_bench_worker *w, struct sl_bench_subject *s)
{
	w->subject = s;
	atomic_init(&w->stop, false);
	return sl_thread_start(&w->thread, "unit", NULL, run_worker, w);
}

void sl_bench_worker_stop(struct sl_bench_worker *w)
{
	atomic_store_explicit(&w->stop, true, memory_order_relaxed);
	sl_thread_join(&w->thread);
}
