/* sequence.h - counters that one thread changes together, and any thread reads together.
 *
 * Model:     a sequence lock. The writer makes the sequence odd, changes the counters, makes it
 *            even again. A reader copies the counters between two looks at the sequence; if it has
 *            moved, the reader copies once more. Every counter is atomic, stored with release by
 *            the writer (sl_sequence_store) and loaded with acquire by readers (sl_sequence_load):
 *            that orders them after the first look and before the second without a fence, which
 *            ThreadSanitizer would not understand.
 * Threads:   one writer, any number of readers. The writer never waits. A reader waits while the
 *            writer is between begin and end, however long the scheduler keeps the writer there.
 * Cost:      two stores for the writer. */
#ifndef SL_BASE_SEQUENCE_H
#define SL_BASE_SEQUENCE_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline void sl_sequence_step(_Atomic uint32_t *sequence, memory_order order)
{
	uint32_t now = atomic_load_explicit(sequence, memory_order_relaxed);

	atomic_store_explicit(sequence, now + 1, order);
}

/* Relaxed is enough: every counter is stored with release, and so after it. */
static inline void sl_sequence_begin(_Atomic uint32_t *sequence)
{
	sl_sequence_step(sequence, memory_order_relaxed);
}

/* Release: pairs with the acquire in sl_sequence_look(). */
static inline void sl_sequence_end(_Atomic uint32_t *sequence)
{
	sl_sequence_step(sequence, memory_order_release);
}

static inline void sl_sequence_store(_Atomic uint64_t *counter, uint64_t value)
{
	atomic_store_explicit(counter, value, memory_order_release);
}

static inline void sl_sequence_add(_Atomic uint64_t *counter, uint64_t n)
{
	sl_sequence_store(counter, atomic_load_explicit(counter, memory_order_relaxed) + n);
}

static inline uint64_t sl_sequence_load(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_acquire);
}

/* The reader's first look: waits for an even sequence. */
static inline uint32_t sl_sequence_look(const _Atomic uint32_t *sequence)
{
	enum {
		SPINS = 64
	}; /* a writer that runs is through by then; one that does not needs a cpu */
	uint32_t now;

	for (unsigned i = 0; (now = atomic_load_explicit(sequence, memory_order_acquire)) & 1; i++)
		if (i >= SPINS)
			sched_yield();
	return now;
}

/* The reader's second look: true if the copy is consistent. */
static inline bool sl_sequence_same(const _Atomic uint32_t *sequence, uint32_t before)
{
	return atomic_load_explicit(sequence, memory_order_relaxed) == before;
}

/* A whole structure as words. */
static inline void sl_sequence_write(_Atomic uint32_t *sequence, _Atomic uint64_t *to,
				     const uint64_t *from, size_t words)
{
	sl_sequence_begin(sequence);
	for (size_t i = 0; i < words; i++)
		sl_sequence_store(&to[i], from[i]);
	sl_sequence_end(sequence);
}

static inline void sl_sequence_read(const _Atomic uint32_t *sequence, const _Atomic uint64_t *from,
				    uint64_t *to, size_t words)
{
	uint32_t before;

	do {
		before = sl_sequence_look(sequence);
		for (size_t i = 0; i < words; i++)
			to[i] = sl_sequence_load(&from[i]);
	} while (!sl_sequence_same(sequence, before));
}

#endif
