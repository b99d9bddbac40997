/* ring.c - the host's and the source's side of a ring that a device polls. */
#include "gpu/ring/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpu/ring/tagged.h"
#include "gpu/table.h"

enum { WORDS = 16 }; /* bytes of a meta word, a completion, a chunk */
enum { LOOKS = 16 }; /* at a completion, for one at the clock */

#define COMPILING_NS 120000000000ull /* until a kernel that is compiled late answers */

static uint32_t buffer_of(const struct sl_device_ring *r, uint64_t n)
{
	return (uint32_t)n & (r->terms.buffers - 1);
}

/* ---- opening ---- */

/* Another device writes. */
static const char *check_remote(const struct sl_device_ring_terms *t,
				const struct sl_device_info *info)
{
	if (!t->remote)
		return NULL;
	if (!t->on_device)
		return "what another device writes is in this device's memory";
	if (!info->sees_remote_writes)
		return "kernels that run on this device do not see what others write into its "
		       "memory in order";
	return NULL;
}

static uint32_t round_up(uint32_t bytes, uint32_t to)
{
	return (bytes + to - 1) / to * to;
}

static int check_terms(const struct sl_device_ring_terms *t, const struct sl_device_ring_work *work,
		       const struct sl_device_info *info)
{
	const char *problem = NULL;

	if (!t->buffers || t->buffers & (t->buffers - 1) || t->buffers > 1 << 20)
		problem = "buffers are a power of two, at most 2^20";
	else if (!t->event_bytes || t->event_bytes > 1u << 30)
		problem = "an event is of 1 byte to 1 GiB";
	else if (t->tagged && sl_tagged_chunks(t->event_bytes) + 1 > SL_DEVICE_RING_LOCAL / WORDS)
		problem = "an event of tagged chunks is of at most 12276 bytes";
	else if (t->tagged && t->on_device)
		problem = "tagged chunks are in the host's memory";
	else if (t->result_bytes > (t->tagged ? t->event_bytes : 1u << 30))
		problem = "a result is of at most 1 GiB, and one of tagged chunks not larger than "
			  "an event";
	else if (!t->groups || !t->threads || t->threads > 1024 || t->threads % 32)
		problem = "a kernel has groups, of threads in multiples of 32 up to 1024";
	else if (t->groups > t->buffers)
		problem = "there are at least as many buffers as groups";
	else if (t->groups > info->processors)
		problem = "each group that polls has a processor, and the device has fewer";
	else if (work->arguments > SL_DEVICE_RING_ARGUMENTS)
		problem = "a kernel has at most 12 arguments of its own";
	else
		problem = check_remote(t, info);
	if (problem)
		sl_error("gpu ring: %s", problem);
	return problem ? -EINVAL : 0;
}

/* Memory that others are given is theirs to its end: nothing else may be in its last page. */
static uint64_t shared(const struct sl_device_ring *r, uint64_t bytes)
{
	const uint64_t unit = SL_DEVICE_SHARED;

	return r->terms.remote ? (bytes + unit - 1) / unit * unit : bytes;
}

static int open_memory(struct sl_device_ring *r)
{
	const struct sl_platform *p = r->platform;
	const struct sl_device_ring_terms *t = &r->terms;
	uint64_t words = (uint64_t)t->buffers * WORDS;
	int (*where)(struct sl_device *, uint64_t, struct sl_device_memory *) =
		t->on_device ? p->memory_open : p->pinned_open;
	int err = where(r->device, shared(r, (uint64_t)t->buffers * r->buffer_bytes), &r->data);

	if (!err)
		err = where(r->device, shared(r, words), &r->meta);
	if (!err)
		err = p->pinned_open(r->device, (uint64_t)t->buffers * r->slot_bytes, &r->result);
	if (!err)
		err = p->pinned_open(r->device, words, &r->completion);
	if (!err)
		err = p->pinned_open(r->device, WORDS, &r->stop);
	if (!err)
		err = p->pinned_open(r->device, t->buffers * sizeof(uint32_t), &r->enable);
	if (!err)
		err = p->pinned_open(r->device, 2 * words, &r->staging);
	return err;
}

/* Nothing was ever there; buffer b waits for turn b + 1. */
static int clear(struct sl_device_ring *r)
{
	struct sl_device_memory *pinned[] = {&r->result, &r->completion, &r->stop, &r->staging};
	struct sl_device_memory *other[] = {&r->data, &r->meta};
	_Atomic uint32_t *enable = r->enable.host;
	int err = 0;

	for (size_t i = 0; i < sizeof(pinned) / sizeof(pinned[0]); i++)
		memset(pinned[i]->host, 0, pinned[i]->bytes);
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]) && !err; i++)
		if (other[i]->host)
			memset(other[i]->host, 0, other[i]->bytes);
		else
			err = r->platform->zero(r->run, other[i], 0, other[i]->bytes);
	for (uint32_t b = 0; b < r->terms.buffers; b++)
		atomic_store_explicit(&enable[b], b + 1, memory_order_relaxed);
	return err;
}

int sl_device_ring_open(struct sl_device_ring *r, struct sl_device *device,
			const struct sl_device_ring_terms *terms,
			const struct sl_device_ring_work *work)
{
	struct sl_device_info info;
	int err;

	*r = (struct sl_device_ring){.terms = *terms, .work = *work, .device = device};
	r->platform = device->platform;
	r->platform->describe(device, &info);
	err = check_terms(terms, work, &info);
	if (err)
		return err;
	r->buffer_bytes = terms->tagged ? sl_tagged_buffer_bytes(terms->event_bytes)
					: round_up(terms->event_bytes, WORDS);
	r->by_lines = sl_tagged_has_lines();
	r->slot_bytes = terms->tagged ? sl_tagged_chunks(terms->result_bytes) * WORDS
				      : round_up(terms->result_bytes, WORDS);
	r->may_compile = info.compiles_late;
	err = r->platform->queue_open(device, &r->run);
	if (!err)
		err = r->platform->queue_open(device, &r->in);
	if (!err)
		err = open_memory(r);
	if (!err)
		err = clear(r);
	if (!err)
		err = sl_device_ring_kernel_open(r);
	if (err)
		sl_error("gpu ring: %u buffers of %u bytes cannot be opened on %s: %s",
			 terms->buffers, r->buffer_bytes, r->platform->name,
			 r->platform->problem(device));
	if (err && r->running)
		sl_device_ring_end(r); /* the kernel ends, so that the ring can be closed */
	return err;
}

void sl_device_ring_close(struct sl_device_ring *r)
{
	struct sl_device_memory *memory[] = {&r->data,	 &r->meta, &r->result, &r->completion,
					     &r->enable, &r->stop, &r->staging};

	if (!r->platform || r->running)
		return; /* it may still write */
	/* What is queued may still need memory: if it does not end, that is left to it. */
	if ((r->in && sl_device_finish(r->device, r->in) == -ETIMEDOUT) ||
	    (r->run && sl_device_finish(r->device, r->run) == -ETIMEDOUT))
		return;
	if (r->in)
		r->platform->queue_close(r->in);
	if (r->run)
		r->platform->queue_close(r->run);
	sl_device_ring_kernel_close(r);
	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		r->platform->memory_close(r->device, memory[i]);
	*r = (struct sl_device_ring){0};
}

/* ---- the source ---- */

bool sl_device_ring_may_write(const struct sl_device_ring *r, uint64_t n)
{
	const _Atomic uint32_t *enable = r->enable.host;

	return atomic_load_explicit(&enable[buffer_of(r, n)], memory_order_acquire) ==
	       (uint32_t)(n + 1);
}

void *sl_device_ring_begin(struct sl_device_ring *r, uint64_t n)
{
	uint64_t b = buffer_of(r, n);

	sl_tagged_words((char *)r->meta.host + b * WORDS, 0, 0, 0,
			(uint32_t)(n + 1) + SL_DEVICE_RING_WRITING);
#if !defined(__SANITIZE_THREAD__)		   /* which knows no fences */
	atomic_thread_fence(memory_order_release); /* the mark is there before data changes */
#endif
	return (char *)r->data.host + b * r->buffer_bytes;
}

/* First it is marked as being written: a kernel that still works on the event before sees that. */
static int put_plain(struct sl_device_ring *r, uint64_t n, const void *data, uint32_t bytes)
{
	uint64_t b = buffer_of(r, n), most = bytes < r->buffer_bytes ? bytes : r->buffer_bytes;
	uint32_t turn = (uint32_t)(n + 1);
	const struct sl_platform *p = r->platform;
	char *words;
	int err;

	if (r->data.host) {
		memcpy(sl_device_ring_begin(r, n), data, most);
		sl_tagged_words((char *)r->meta.host + b * WORDS, bytes, 0, 0, turn);
		return 0;
	}
	/* Copies of a queue arrive in order. */
	words = (char *)r->staging.host + 2 * b * WORDS;
	sl_tagged_words(words, 0, 0, 0, turn + SL_DEVICE_RING_WRITING);
	sl_tagged_words(words + WORDS, bytes, 0, 0, turn);
	err = p->write(r->in, &r->meta, b * WORDS, words, WORDS, 1, 0);
	if (!err)
		err = p->write(r->in, &r->data, b * r->buffer_bytes, data, most, 1, 0);
	if (!err)
		err = p->write(r->in, &r->meta, b * WORDS, words + WORDS, WORDS, 1, 0);
	return err ? err : p->flush(r->in);
}

static void count_in(struct sl_device_ring *r, uint64_t n)
{
	/* A source that writes what it may not need not keep the order either. */
	if (n + 1 > atomic_load_explicit(&r->published, memory_order_relaxed))
		atomic_store_explicit(&r->published, n + 1, memory_order_release);
}

int sl_device_ring_publish(struct sl_device_ring *r, uint64_t n, const void *data, uint32_t bytes)
{
	int err = 0;

	if (atomic_load_explicit(&r->is_over, memory_order_acquire))
		return -ESHUTDOWN;
	if (r->terms.tagged)
		sl_tagged_put((char *)r->data.host + (uint64_t)buffer_of(r, n) * r->buffer_bytes,
			      r->buffer_bytes, data, bytes, (uint32_t)(n + 1), r->by_lines);
	else
		err = put_plain(r, n, data, bytes);
	if (!err)
		count_in(r, n);
	return err;
}

int sl_device_ring_commit(struct sl_device_ring *r, uint64_t n, uint32_t bytes)
{
	if (atomic_load_explicit(&r->is_over, memory_order_acquire))
		return -ESHUTDOWN;
	sl_tagged_words((char *)r->meta.host + (uint64_t)buffer_of(r, n) * WORDS, bytes, 0, 0,
			(uint32_t)(n + 1));
	count_in(r, n);
	return 0;
}

int sl_device_ring_share(struct sl_device_ring *r, int *data, int *meta)
{
	int err = r->terms.remote ? r->platform->share(r->device, &r->data, data) : -EINVAL;

	if (err)
		return err;
	err = r->platform->share(r->device, &r->meta, meta);
	if (err)
		close(*data);
	return err;
}

int sl_device_ring_arrived(struct sl_device_ring *r, uint64_t n)
{
	if (atomic_load_explicit(&r->is_over, memory_order_acquire))
		return -ESHUTDOWN;
	count_in(r, n);
	return 0;
}

/* ---- the host ---- */

static void count(struct sl_device_ring_ledger *l,
		  const struct sl_device_ring_completion *completion)
{
	l->good += completion->outcome == SL_DEVICE_RING_GOOD;
	l->lapped += completion->outcome == SL_DEVICE_RING_LAPPED;
	l->wrong += completion->outcome == SL_DEVICE_RING_WRONG;
	l->kept += completion->keep;
}

/* An event that is there has an answer in time, or never. */
static int late(struct sl_device_ring *r)
{
	uint64_t now;

	if (atomic_load_explicit(&r->published, memory_order_acquire) <= r->next) {
		r->waits_since_ns = 0;
		return 0;
	}
	if (r->waits_since_ns && ++r->looks % LOOKS)
		return 0;
	now = sl_clock_ns();
	if (!r->waits_since_ns) {
		r->waits_since_ns = now;
		r->looks = 0;
	}
	if (now - r->waits_since_ns <= r->terms.timeout_ns)
		return 0;
	/* As long as the kernel is there it may still be on its way. */
	if (r->may_compile && now - r->waits_since_ns <= COMPILING_NS &&
	    r->platform->reached(r->ended) == 0)
		return 0;
	return -ETIMEDOUT;
}

int sl_device_ring_take(struct sl_device_ring *r, struct sl_device_ring_completion *completion)
{
	uint64_t b = buffer_of(r, r->next);
	const _Atomic uint32_t *word = (void *)((char *)r->completion.host + b * WORDS);
	uint32_t turn, outcome;

	if (r->taken)
		return -EBUSY;
	turn = atomic_load_explicit(&word[3], memory_order_acquire);
	if (turn != (uint32_t)(r->next + 1))
		return late(r);
	outcome = atomic_load_explicit(&word[0], memory_order_relaxed);
	*completion = (struct sl_device_ring_completion){
		.event = r->next,
		.outcome = (enum sl_device_ring_outcome)(outcome & 0xff),
		.keep = outcome & SL_DEVICE_RING_KEEP,
		.bytes = atomic_load_explicit(&word[1], memory_order_relaxed),
		.score = atomic_load_explicit(&word[2], memory_order_relaxed),
	};
	count(&r->ledger, completion);
	r->waits_since_ns = 0;
	r->may_compile = false;
	r->taken = true;
	return 1;
}

/* A chunk of a result, which may come after the completion. */
static int await_chunk(const struct sl_device_ring *r, const _Atomic uint32_t *word, uint32_t turn,
		       uint32_t have[3])
{
	uint64_t since = 0;

	while (atomic_load_explicit(&word[3], memory_order_acquire) != turn) {
		uint64_t now = sl_clock_ns();

		since = since ? since : now;
		if (now - since > r->terms.timeout_ns)
			return -ETIMEDOUT;
	}
	for (int k = 0; k < 3; k++)
		have[k] = atomic_load_explicit(&word[k], memory_order_relaxed);
	return 0;
}

int sl_device_ring_result(const struct sl_device_ring *r,
			  const struct sl_device_ring_completion *completion, void *to,
			  uint32_t room)
{
	const char *slot = (char *)r->result.host +
			   (uint64_t)buffer_of(r, completion->event) * r->slot_bytes;
	uint32_t most = r->terms.tagged ? r->slot_bytes / WORDS * SL_DEVICE_RING_CHUNK
					: r->slot_bytes;
	uint32_t bytes = completion->bytes < most ? completion->bytes : most, have[3];
	char *out = to;

	if (!completion->keep)
		return -ENODATA;
	if (!r->terms.tagged) {
		memcpy(to, slot, bytes < room ? bytes : room);
		return (int)(bytes < room ? bytes : room);
	}
	for (uint32_t at = 0; at < bytes; at += SL_DEVICE_RING_CHUNK, slot += WORDS) {
		uint32_t left = bytes - at < SL_DEVICE_RING_CHUNK ? bytes - at
								  : SL_DEVICE_RING_CHUNK;
		int err =
			await_chunk(r, (const void *)slot, (uint32_t)(completion->event + 1), have);

		if (err)
			return err;
		if (at < room)
			memcpy(out + at, have, left < room - at ? left : room - at);
	}
	return (int)(bytes < room ? bytes : room);
}

const void *sl_device_ring_slot(const struct sl_device_ring *r)
{
	return (char *)r->result.host + (uint64_t)buffer_of(r, r->next) * r->slot_bytes;
}

int sl_device_ring_release(struct sl_device_ring *r)
{
	_Atomic uint32_t *enable = r->enable.host;
	uint32_t b = buffer_of(r, r->next);

	if (!r->taken)
		return -EINVAL;
	atomic_store_explicit(&enable[b], (uint32_t)(r->next + 1 + r->terms.buffers),
			      memory_order_release);
	r->next++;
	r->taken = false;
	return 0;
}

void sl_device_ring_stop(struct sl_device_ring *r)
{
	_Atomic uint32_t *stop = r->stop.host;

	atomic_store_explicit(&r->is_over, true, memory_order_release);
	atomic_store_explicit(stop, 1, memory_order_release);
}

int sl_device_ring_end(struct sl_device_ring *r)
{
	atomic_store_explicit(&r->is_over, true, memory_order_release);
	return sl_device_ring_kernel_end(r);
}

struct sl_device_ring_ledger sl_device_ring_ledger(const struct sl_device_ring *r)
{
	struct sl_device_ring_ledger l = r->ledger;

	uint64_t answered = l.good + l.lapped + l.wrong;

	l.published = atomic_load_explicit(&r->published, memory_order_acquire);
	if (l.published < answered)
		l.published =
			answered; /* a completion can be quicker than its source's own count */
	l.unanswered = l.published - answered;
	return l;
}
