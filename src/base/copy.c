/* copy.c - streaming stores, where the processor has them. */
#include "base/copy.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

enum { LINE = 64 };

/* Whole lines to an aligned place. SSE2 is in every x86-64, and wider stores gain nothing: a line
 * leaves as one write either way. */
static void stream_lines(uint8_t *to, const uint8_t *from, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += LINE)
		for (size_t i = 0; i < LINE; i += sizeof(__m128i))
			_mm_stream_si128(
				(__m128i *)(void *)(to + at + i),
				_mm_loadu_si128((const __m128i *)(const void *)(from + at + i)));
	/* Streaming stores are not ordered by a later release store alone. */
	_mm_sfence();
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

#else

void sl_copy_stream(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

#endif

void sl_copy_away(void *to, const void *from, size_t bytes)
{
	if (bytes < SL_COPY_AWAY_MIN)
		memcpy(to, from, bytes);
	else
		sl_copy_stream(to, from, bytes);
}
