/* answers.c - the thread that takes what followers say. */
#include "sink/share/answers.h"

#include <stdbool.h>
#include <string.h>

#include "base/clock.h"

enum { PATIENCE_MS = 20 /* then it looks whether the run has ended */ };

void sl_answers_committed(struct sl_answers *a, uint64_t n, uint64_t now_ns)
{
	atomic_store_explicit(&a->committed_ns[n % SL_ANSWER_ELEMENTS], now_ns,
			      memory_order_relaxed);
	/* Pairs with the acquire in time_of(). */
	atomic_store_explicit(&a->next, n + 1, memory_order_release);
}

static bool is_known(struct sl_answers *a, uint64_t n)
{
	uint64_t next = atomic_load_explicit(&a->next, memory_order_acquire);

	/* One less than there are: the oldest may be overwritten at any moment. */
	return n < next && next - n < SL_ANSWER_ELEMENTS;
}

/* When it was committed; 0: that is not known. */
static uint64_t time_of(struct sl_answers *a, uint64_t n)
{
	uint64_t ns;

	if (!is_known(a, n))
		return 0;
	ns = atomic_load_explicit(&a->committed_ns[n % SL_ANSWER_ELEMENTS], memory_order_acquire);
	return is_known(a, n) ? ns : 0; /* nor was it overwritten meanwhile */
}

static void take(struct sl_answers *a, const struct sl_share_message *message)
{
	uint64_t now = sl_clock_ns(), n, committed;

	atomic_fetch_add_explicit(&a->messages, 1, memory_order_relaxed);
	if (message->kind != SL_ANSWER_KIND || message->bytes < sizeof(n))
		return;
	memcpy(&n, message->data, sizeof(n));
	committed = time_of(a, n);
	if (committed)
		sl_histogram_add(&a->ns, now > committed ? now - committed : 0);
}

static void *run(void *arg)
{
	struct sl_answers *a = arg;
	struct sl_share_message message;

	while (!atomic_load_explicit(&a->ends, memory_order_acquire))
		if (!sl_share_receive(a->share, PATIENCE_MS, &message)) {
			take(a, &message);
			sl_remote_free(message.data);
		}
	return NULL;
}

int sl_answers_start(struct sl_answers *a, struct sl_share *share)
{
	a->share = share;
	atomic_store_explicit(&a->ends, 0, memory_order_release);
	return sl_thread_start(&a->thread, "answers", NULL, run, a);
}

void sl_answers_stop(struct sl_answers *a)
{
	atomic_store_explicit(&a->ends, 1, memory_order_release);
	sl_thread_join(&a->thread);
}
