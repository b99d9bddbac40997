/* blobs.c - flood fill in bits. */
#include "stage/blobs.h"

#include <string.h>

static uint64_t words_of(uint32_t modules, uint32_t rows, uint32_t columns)
{
	return ((uint64_t)modules * rows * columns + 63) / 64;
}

size_t sl_blobs_bytes(uint32_t modules, uint32_t rows, uint32_t columns, uint32_t most)
{
	return 2 * words_of(modules, rows, columns) * sizeof(uint64_t) +
	       ((size_t)most + 1) * sizeof(struct sl_blob_pixel);
}

void sl_blobs_init(struct sl_blobs *b, uint32_t modules, uint32_t rows, uint32_t columns,
		   uint32_t most, void *memory)
{
	b->modules = modules;
	b->rows = rows;
	b->columns = columns;
	b->most = most;
	b->words = words_of(modules, rows, columns);
	b->marked = memory;
	b->dropped = b->marked + b->words;
	b->member = (struct sl_blob_pixel *)(b->dropped + b->words);
}

void sl_blobs_clear(struct sl_blobs *b)
{
	memset(b->marked, 0, 2 * b->words * sizeof(*b->marked));
}

static bool is_set(const uint64_t *bits, uint32_t at)
{
	return bits[at / 64] >> at % 64 & 1;
}

static bool is_inside(const struct sl_blobs *b, uint32_t at)
{
	uint32_t pixel = at % (b->rows * b->columns);
	uint32_t row = pixel / b->columns, column = pixel % b->columns;

	return row > 0 && row + 1 < b->rows && column > 0 && column + 1 < b->columns;
}

int sl_blobs_next(const struct sl_blobs *b, bool inside, uint32_t *at)
{
	uint64_t w = *at / 64, bits = w < b->words ? b->marked[w] & ~UINT64_C(0) << *at % 64 : 0;

	for (;;) {
		while (bits) {
			*at = (uint32_t)(w * 64 + (uint64_t)__builtin_ctzll(bits));
			if (!inside || is_inside(b, *at))
				return 1;
			bits &= bits - 1;
		}
		if (++w >= b->words)
			return 0;
		bits = b->marked[w];
	}
}

static void take(struct sl_blobs *b, uint32_t *n, uint32_t at, uint32_t row, uint32_t column)
{
	b->marked[at / 64] &= ~(UINT64_C(1) << at % 64);
	b->member[(*n)++] = (struct sl_blob_pixel){at, row, column};
}

/* Takes what touches member p. False: it touches what was dropped, or is too large. */
static bool spread(struct sl_blobs *b, uint32_t p, uint32_t *n)
{
	const struct sl_blob_pixel from = b->member[p];
	uint32_t top = from.row ? from.row - 1 : 0, left = from.column ? from.column - 1 : 0;
	uint32_t bottom = from.row + 1 < b->rows ? from.row + 1 : from.row;
	uint32_t right = from.column + 1 < b->columns ? from.column + 1 : from.column;
	uint32_t first = from.at - from.row * b->columns - from.column; /* of the module */
	bool good = true;

	for (uint32_t row = top; row <= bottom; row++)
		for (uint32_t column = left; column <= right; column++) {
			uint32_t at = first + row * b->columns + column;

			if (is_set(b->dropped, at))
				good = false;
			else if (is_set(b->marked, at) && *n <= b->most)
				take(b, n, at, row, column);
		}
	return good && *n <= b->most;
}

uint32_t sl_blobs_fill(struct sl_blobs *b, uint32_t at)
{
	uint32_t pixel = at % (b->rows * b->columns), n = 0;
	bool good = true;

	take(b, &n, at, pixel / b->columns, pixel % b->columns);
	for (uint32_t p = 0; p < n; p++)
		good &= spread(b, p, &n);
	if (good)
		return n;
	for (uint32_t p = 0; p < n; p++)
		b->dropped[b->member[p].at / 64] |= UINT64_C(1) << b->member[p].at % 64;
	return 0;
}
