/* tagged.h - words of a ring as the host writes them: 16 bytes at once, with the turn last.
 *
 * Model:     a chunk of a tagged buffer is 12 bytes of the event and its turn; whoever reads 16
 *            bytes at once sees all of it, or an old turn. A device polls the lines of the cache
 *            that chunks are in, and takes them from the CPU that writes: so a line is written by
 *            one store where there is one for it (AVX-512), and by four where not; and when all are
 *            written, they are moved to where devices read sooner (CLDEMOTE), where CPUs can.
 * Threads:   none of its own. Does not allocate, lock or log.
 * Cost:      4 KiB of an event that a device polls: 0.4 us until all lines are out, 0.2 us of
 *            which this CPU is busy with it; by chunks, 0.4 us. */
#ifndef SL_GPU_RING_TAGGED_H
#define SL_GPU_RING_TAGGED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/ring/words.h"

enum { SL_TAGGED_WORDS = 16, SL_TAGGED_LINE = 64 };

/* At once where a store of 16 bytes is one (x86-64 with AVX says so); elsewhere the turn comes
 * last. What was written before is there before. */
static inline void sl_tagged_words(void *at, uint32_t x, uint32_t y, uint32_t z, uint32_t turn)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	typedef uint32_t chunk __attribute__((vector_size(16)));

	atomic_signal_fence(
		memory_order_seq_cst); /* the CPU keeps stores in order; compilers may not */
	*(volatile chunk *)at = (chunk){x, y, z, turn};
	atomic_signal_fence(memory_order_seq_cst);
#else
	_Atomic uint32_t *word = at;

	atomic_store_explicit(&word[0], x, memory_order_relaxed);
	atomic_store_explicit(&word[1], y, memory_order_relaxed);
	atomic_store_explicit(&word[2], z, memory_order_relaxed);
	atomic_store_explicit(&word[3], turn, memory_order_release);
#endif
}

/* Chunks that so many bytes take. */
static inline uint32_t sl_tagged_chunks(uint32_t bytes)
{
	return (bytes + SL_DEVICE_RING_CHUNK - 1) / SL_DEVICE_RING_CHUNK;
}

/* Bytes of a buffer for such an event. It begins with its meta word, and no line that a device
 * reads at once is of two buffers: it polls one while the source writes another. */
static inline uint32_t sl_tagged_buffer_bytes(uint32_t event_bytes)
{
	const uint32_t lines = 2 * SL_TAGGED_LINE;

	return ((1 + sl_tagged_chunks(event_bytes)) * SL_TAGGED_WORDS + lines - 1) / lines * lines;
}

/* Has this CPU a store for a whole line? */
bool sl_tagged_has_lines(void);

/* All chunks of a buffer, also those behind the event, which are zeros; the first one comes last.
 * `at` and `buffer_bytes` are multiples of a line; what of the event does not fit is left out.
 * lines: by whole lines, where sl_tagged_has_lines() says so. */
void sl_tagged_put(void *at, uint32_t buffer_bytes, const void *event, uint32_t bytes,
		   uint32_t turn, bool lines);

#endif
