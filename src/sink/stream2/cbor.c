/* cbor.c - items of CBOR, one after another. */
#include "sink/stream2/cbor.h"

#include <string.h>

/* The three high bits of an item's first byte. */
enum major {
	UNSIGNED = 0 << 5,
	BYTES = 2 << 5,
	TEXT = 3 << 5,
	ARRAY = 4 << 5,
	MAP = 5 << 5,
	TAG = 6 << 5,
	SIMPLE = 7 << 5,
};

/* The five low bits: a value below ONE_BYTE is itself. */
enum { ONE_BYTE = 24, FOUR_BYTES = 26, FALSE = 20, TRUE = 21, DOUBLE = 27 };

void sl_cbor_raw(struct sl_cbor *c, const void *bytes, size_t length)
{
	if (length && c->used <= c->bytes && length <= c->bytes - c->used)
		memcpy(c->memory + c->used, bytes, length);
	c->used += length;
}

static void append_first(struct sl_cbor *c, enum major major, uint8_t low)
{
	uint8_t byte = (uint8_t)(major | low);

	sl_cbor_raw(c, &byte, 1);
}

static void append_big_endian(struct sl_cbor *c, uint64_t value, unsigned bytes)
{
	uint8_t text[8];

	for (unsigned i = 0; i < bytes; i++)
		text[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
	sl_cbor_raw(c, text, bytes);
}

static void head(struct sl_cbor *c, enum major major, uint64_t value)
{
	unsigned log_bytes = value > UINT32_MAX ? 3 : value > UINT16_MAX ? 2 : value > UINT8_MAX;

	if (value < ONE_BYTE) {
		append_first(c, major, (uint8_t)value);
		return;
	}
	append_first(c, major, (uint8_t)(ONE_BYTE + log_bytes));
	append_big_endian(c, value, 1u << log_bytes);
}

void sl_cbor_uint(struct sl_cbor *c, uint64_t value)
{
	head(c, UNSIGNED, value);
}

void sl_cbor_float(struct sl_cbor *c, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	append_first(c, SIMPLE, DOUBLE);
	append_big_endian(c, bits, sizeof(bits));
}

void sl_cbor_bool(struct sl_cbor *c, bool value)
{
	append_first(c, SIMPLE, value ? TRUE : FALSE);
}

void sl_cbor_text(struct sl_cbor *c, const char *text)
{
	size_t length = strlen(text);

	head(c, TEXT, length);
	sl_cbor_raw(c, text, length);
}

void sl_cbor_bytes(struct sl_cbor *c, const void *bytes, size_t length)
{
	head(c, BYTES, length);
	sl_cbor_raw(c, bytes, length);
}

void sl_cbor_array(struct sl_cbor *c, uint64_t items)
{
	head(c, ARRAY, items);
}

void sl_cbor_map(struct sl_cbor *c, uint64_t pairs)
{
	head(c, MAP, pairs);
}

void sl_cbor_tag(struct sl_cbor *c, uint64_t tag)
{
	head(c, TAG, tag);
}

void sl_cbor_long_bytes(struct sl_cbor *c, uint32_t length)
{
	append_first(c, BYTES, FOUR_BYTES);
	append_big_endian(c, length, 4);
}

void sl_cbor_set_long_bytes(uint8_t *place, uint32_t length)
{
	struct sl_cbor c = sl_cbor_writer(place, SL_CBOR_LONG_BYTES_HEAD);

	sl_cbor_long_bytes(&c, length);
}
