/* tagged.c - an event in chunks of 12 bytes and a turn, a line of four chunks at a time. */
#include "gpu/ring/tagged.h"

#include <string.h>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define HAS_LINES 1
#include <immintrin.h>
#else
#define HAS_LINES 0
#endif

enum {
	CHUNKS = SL_TAGGED_LINE / SL_TAGGED_WORDS, /* of a line */
	EVENT = CHUNKS * SL_DEVICE_RING_CHUNK,	   /* bytes of an event in one */
};

bool sl_tagged_has_lines(void)
{
#if HAS_LINES
	return __builtin_cpu_supports("avx512f");
#else
	return false;
#endif
}

/* Where the event's bytes of a line begin. The first line has a chunk less. */
static uint32_t begin_of(uint32_t line)
{
	return line ? line * EVENT - SL_DEVICE_RING_CHUNK : 0;
}

/* Any line of the buffer: with the head, with the end of the event, behind it. */
static void make_line(uint32_t word[CHUNKS * 4], uint32_t line, const char *event, uint32_t bytes,
		      uint32_t turn)
{
	uint32_t at = begin_of(line);

	memset(word, 0, SL_TAGGED_LINE);
	if (!line)
		word[0] = bytes;
	for (uint32_t c = line ? 0 : 1; c < CHUNKS; c++, at += SL_DEVICE_RING_CHUNK)
		if (at < bytes)
			memcpy(&word[4 * c], event + at,
			       bytes - at < SL_DEVICE_RING_CHUNK ? bytes - at
								 : SL_DEVICE_RING_CHUNK);
	for (uint32_t c = 0; c < CHUNKS; c++)
		word[4 * c + 3] = turn;
}

static void put_chunks(char *to, const uint32_t word[CHUNKS * 4])
{
	for (uint32_t c = CHUNKS; c--;)
		sl_tagged_words(to + c * SL_TAGGED_WORDS, word[4 * c], word[4 * c + 1],
				word[4 * c + 2], word[4 * c + 3]);
}

/* A line in the middle of the event: all four chunks are of it. */
static void put_whole_chunks(char *to, const char *event, uint32_t turn)
{
	uint32_t word[3];

	for (uint32_t c = 0; c < CHUNKS; c++) {
		memcpy(word, event + c * SL_DEVICE_RING_CHUNK, sizeof(word));
		sl_tagged_words(to + c * SL_TAGGED_WORDS, word[0], word[1], word[2], turn);
	}
}

#if HAS_LINES
typedef __m512i line __attribute__((may_alias));

/* CPUs that do not know CLDEMOTE take it for nothing. */
__attribute__((target("avx512f,cldemote"))) static void
put_lines(char *to, uint32_t lines, const char *event, uint32_t bytes, uint32_t turn)
{
	const __m512i spread =
		_mm512_setr_epi32(0, 1, 2, 15, 3, 4, 5, 15, 6, 7, 8, 15, 9, 10, 11, 15);
	const __m512i turns = _mm512_set1_epi32((int)turn);
	uint32_t word[CHUNKS * 4], i;

	atomic_signal_fence(memory_order_seq_cst);
	for (i = 1; i < lines && begin_of(i) + EVENT <= bytes; i++) {
		__m512i v = _mm512_maskz_loadu_epi32(0x0fff, event + begin_of(i));

		v = _mm512_permutexvar_epi32(spread, v);
		*(volatile line *)(to + (uint64_t)i * SL_TAGGED_LINE) =
			_mm512_mask_blend_epi32(0x8888, v, turns);
	}
	for (; i < lines; i++) {
		make_line(word, i, event, bytes, turn);
		*(volatile line *)(to + (uint64_t)i * SL_TAGGED_LINE) = _mm512_loadu_si512(word);
	}
	make_line(word, 0, event, bytes, turn);
	atomic_signal_fence(memory_order_seq_cst);
	*(volatile line *)to = _mm512_loadu_si512(word);
	atomic_signal_fence(memory_order_seq_cst);
	/* To the cache that devices read: they would have to fetch them out of this CPU's own. */
	for (i = 0; i < lines; i++)
		_cldemote(to + (uint64_t)i * SL_TAGGED_LINE);
}
#endif

void sl_tagged_put(void *at, uint32_t buffer_bytes, const void *event, uint32_t bytes,
		   uint32_t turn, bool lines)
{
	uint32_t most = buffer_bytes / SL_TAGGED_LINE, word[CHUNKS * 4], i;
	char *to = at;

#if HAS_LINES
	if (lines) {
		put_lines(to, most, event, bytes, turn);
		return;
	}
#endif
	(void)lines;
	for (i = 1; i < most && begin_of(i) + EVENT <= bytes; i++)
		put_whole_chunks(to + (uint64_t)i * SL_TAGGED_LINE,
				 (const char *)event + begin_of(i), turn);
	for (; i < most; i++) {
		make_line(word, i, event, bytes, turn);
		put_chunks(to + (uint64_t)i * SL_TAGGED_LINE, word);
	}
	make_line(word, 0, event, bytes, turn);
	put_chunks(to, word); /* the head last */
}
