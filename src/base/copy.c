/* copy.c - streaming stores, where the processor has them. */
#include "base/copy.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

enum { LINE = 64 };

/* Whole lines to an aligned place. A line leaves as one write whatever the stores; but fewer of
 * them wait in the core, and let it go on with what comes next. */
static void stream_lines_sse2(uint8_t *to, const uint8_t *from, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += LINE)
		for (size_t i = 0; i < LINE; i += sizeof(__m128i))
			_mm_stream_si128(
				(__m128i *)(void *)(to + at + i),
				_mm_loadu_si128((const __m128i *)(const void *)(from + at + i)));
}

__attribute__((target("avx512f"))) static void stream_lines_avx512(uint8_t *to, const uint8_t *from,
								   size_t bytes)
{
	for (size_t at = 0; at < bytes; at += LINE)
		_mm512_stream_si512((void *)(to + at), _mm512_loadu_si512(from + at));
}

static void stream_lines(uint8_t *to, const uint8_t *from, size_t bytes)
{
	if (__builtin_cpu_supports("avx512f"))
		stream_lines_avx512(to, from, bytes);
	else
		stream_lines_sse2(to, from, bytes);
}

void sl_copy_stream(void *to, const void *from, size_t bytes)
{
	size_t head = -(uintptr_t)to % LINE, lines;

	if (head > bytes)
		head = bytes;
	lines = (bytes - head) / LINE * LINE;
	memcpy(to, from, head);
	stream_lines((uint8_t *)to + head, (const uint8_t *)from + head, lines);
	memcpy((uint8_t *)to + head + lines, (const uint8_t *)from + head + lines,
	       bytes - head - lines);
}

/* Streaming stores are not ordered by a later release store alone. */
void sl_copy_fence(void)
{
	_mm_sfence();
}

#else

void sl_copy_fence(void)
{
}

void sl_copy_stream(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

#endif

void sl_copy_away(void *to, const void *from, size_t bytes)
{
	if (bytes < SL_COPY_AWAY_MIN) {
		memcpy(to, from, bytes);
		return;
	}
	sl_copy_stream(to, from, bytes);
	sl_copy_fence();
}
