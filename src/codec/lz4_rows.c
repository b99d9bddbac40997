/* lz4_rows.c - matches found, and written as LZ4's sequences: token, literals, offset, length. */
#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "base/vector/choose.h"
#include "codec/lz4_rows.h"

/* Of the format: the least match; a match starts at least LAST_START bytes before the end of the
 * block, and ends at least LAST_END bytes before it. */
enum { MATCH_LEAST = 4, LAST_START = 12, LAST_END = 5, NIBBLE = 15 };

/* Positions grow by 1 until 64 searches have failed, then by 2 for 64 more, and so on. */
enum { PATIENCE_BITS = 4 };

struct packing {
	struct sl_lz4_table *table;
	const uint8_t *in;
	uint8_t *out;
	uint32_t bytes, base;
	uint32_t anchor; /* everything before is written */
};

void sl_lz4_table_init(struct sl_lz4_table *table)
{
	memset(table->last, 0, sizeof(table->last));
	table->base = SL_LZ4_ROWS_MOST; /* 0 in the table is then before the block */
}

static uint32_t load32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static uint64_t load64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

static uint32_t hash_of(uint32_t four)
{
	return four * 2654435761u >> (32 - SL_LZ4_ROWS_HASH_BITS);
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* How many bytes are equal, at most `most`. Reads up to 7 bytes more. */
SL_FORCE_INLINE uint32_t equal_bytes(const uint8_t *a, const uint8_t *b, uint32_t most)
{
	for (uint32_t n = 0; n < most; n += 8) {
		uint64_t differ = load64(a + n) ^ load64(b + n);

		if (differ) {
			return least(n + (uint32_t)__builtin_ctzll(differ) / 8, most);
		}
	}
	return most;
}

/* How many bytes before a and b are equal, at most `most` and at most 7. Reads 8. */
SL_FORCE_INLINE uint32_t equal_bytes_before(const uint8_t *a, const uint8_t *b, uint32_t most)
{
	uint64_t differ = load64(a - 8) ^ load64(b - 8);

	/* Without a branch, which would be a coin toss. */
	return least((uint32_t)__builtin_clzll(differ | 0xff) / 8, most);
}

/* What a nibble of 15 cannot hold. */
SL_FORCE_INLINE uint8_t *put_length(uint8_t *out, uint32_t rest)
{
	if (rest >= 255) {
		memset(out, 255, rest / 255);
		out += rest / 255;
	}
	*out++ = (uint8_t)(rest % 255);
	return out;
}

/* The token, and the literals from anchor to `start`. Writes up to 31 bytes more. */
SL_FORCE_INLINE uint8_t *put_literals(struct packing *p, uint32_t start)
{
	const uint8_t *from = p->in + p->anchor;
	uint32_t literals = start - p->anchor;
	uint8_t *out = p->out;

	if (literals < NIBBLE) {
		*out++ = (uint8_t)(literals << 4);
		memcpy(out, from, 16);
	} else {
		*out++ = NIBBLE << 4;
		out = put_length(out, literals - NIBBLE);
		if (literals <= 32)
			memcpy(out, from, 32);
		else
			memcpy(out, from, literals);
	}
	return out + literals;
}

SL_FORCE_INLINE void put_match(struct packing *p, uint32_t start, uint32_t offset, uint32_t length)
{
	uint8_t *token = p->out, *out = put_literals(p, start);

	*out++ = (uint8_t)offset;
	*out++ = (uint8_t)(offset >> 8);
	if (length - MATCH_LEAST < NIBBLE) {
		*token |= (uint8_t)(length - MATCH_LEAST);
	} else {
		*token |= NIBBLE;
		out = put_length(out, length - MATCH_LEAST - NIBBLE);
	}
	p->out = out;
	p->anchor = start + length;
}

/* The match of the 4 bytes at `at` with those at `before`, made as long as it can be. */
SL_FORCE_INLINE void put_longest(struct packing *p, uint32_t at, uint32_t before)
{
	const uint8_t *in = p->in;
	uint32_t offset = at - before;
	uint32_t end = at + MATCH_LEAST +
		       equal_bytes(in + at + MATCH_LEAST, in + before + MATCH_LEAST,
				   p->bytes - LAST_END - at - MATCH_LEAST);

	at -= equal_bytes_before(in + at, in + before, least(at - p->anchor, before));
	put_match(p, at, offset, end - at);
}

/* The last position with the same 4 bytes, and a match with it. false: none is known. */
SL_FORCE_INLINE bool pack_known(struct packing *p, uint32_t at, uint32_t four)
{
	uint16_t *last = p->table->last;
	const uint8_t *in = p->in;
	uint32_t hash = hash_of(four), before = (uint16_t)(last[hash] - p->base);

	last[hash] = (uint16_t)(p->base + at);
	/* One branch, which noise never takes: whether a position is old would be a coin toss. */
	if (!((before < at) & (load32(in + (before & (SL_LZ4_ROWS_MOST - 1))) == four)))
		return false;
	put_longest(p, at, before);
	at = p->anchor - 2;
	last[hash_of(load32(in + at))] = (uint16_t)(p->base + at);
	return true;
}

/* Rows that are in use, from `at` to before `end`. Returns the next position to look at. */
static uint32_t pack_used(struct packing *packing, uint32_t at, uint32_t end)
{
	struct packing p =
		*packing; /* stays in registers: a store into the table cannot alias it */
	uint32_t misses = 1 << PATIENCE_BITS;
	uint32_t until = end + LAST_START <= p.bytes ? end : p.bytes - LAST_START + 1;

	while (at < until) {
		uint32_t four = load32(p.in + at);

		if (!four && at && !p.in[at - 1]) { /* the most frequent match, without the table */
			put_longest(&p, at, at - 1);
		} else if (!pack_known(&p, at, four)) {
			at += misses++ >> PATIENCE_BITS;
			continue;
		}
		at = p.anchor;
		misses = 1 << PATIENCE_BITS;
	}
	*packing = p;
	return p.anchor > end ? p.anchor : end;
}

/* Zeros from `at` to `end`, and those that happen to follow: one match with the byte before. */
static uint32_t pack_zeros(struct packing *p, uint32_t at, uint32_t end)
{
	const uint8_t *in = p->in;

	if (!at || in[at - 1])
		at++;
	while (at > p->anchor && at > 1 && !in[at - 1] && !in[at - 2])
		at--;
	if (at + LAST_START > p->bytes)
		return end;
	if (end > p->bytes - LAST_END)
		end = p->bytes - LAST_END;
	if (end < at + MATCH_LEAST)
		return end;
	end += equal_bytes(in + end, in + end - 1, p->bytes - LAST_END - end);
	put_match(p, at, 1, end - at);
	return end;
}

static void begin_block(struct packing *p)
{
	struct sl_lz4_table *table = p->table;

	if (table->base + SL_LZ4_ROWS_MOST > UINT16_MAX + 1)
		sl_lz4_table_init(table);
	p->base = table->base;
	table->base += SL_LZ4_ROWS_MOST;
}

/* How many rows from the first on are alike, in use or zero. `used`: bit 0 is the first row. */
static uint32_t alike(uint64_t used, uint32_t rows)
{
	uint64_t other = used & 1 ? ~used : used;

	return other ? least((uint32_t)__builtin_ctzll(other), rows) : rows;
}

size_t sl_lz4_rows(struct sl_lz4_table *table, const uint8_t *in, uint32_t bytes, uint64_t used,
		   uint32_t row, uint8_t *out)
{
	struct packing p = {.table = table, .in = in, .out = out, .bytes = bytes};
	uint32_t rows = bytes > LAST_START ? bytes / row : 0, at = 0;

	begin_block(&p);
	for (uint32_t r = 0, end; r < rows;) {
		uint64_t rest = used >> r;

		r += alike(rest, rows - r);
		end = r * row;
		if (at < end)
			at = rest & 1 ? pack_used(&p, at, end) : pack_zeros(&p, at, end);
	}
	return (size_t)(put_literals(&p, bytes) - out);
}
