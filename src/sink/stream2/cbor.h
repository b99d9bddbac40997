/* cbor.h - the part of CBOR (RFC 8949) that DECTRIS' stream2 needs, written only.
 *
 * Model:     each call appends one item. Lengths are definite: the caller says how many items an
 *            array or a map has, then appends them. Heads are as short as their value allows.
 *            Bytes that do not fit are counted in `used`, not written: a writer without memory
 *            measures a message.
 * Threads:   a writer belongs to one thread at a time.
 * Ownership: the memory is the caller's. */
#ifndef SL_SINK_STREAM2_CBOR_H
#define SL_SINK_STREAM2_CBOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tags. The numbers of typed arrays are those of RFC 8746. */
enum {
	SL_CBOR_DATE_TIME = 0,
	SL_CBOR_MULTI_DIMENSIONAL = 40, /* [[rows, columns], typed array], row by row */
	SL_CBOR_U8 = 64,
	SL_CBOR_U16 = 69, /* little-endian, as all of these */
	SL_CBOR_U32 = 70,
	SL_CBOR_F32 = 85,
	SL_CBOR_SELF_DESCRIBED = 55799,	    /* d9 d9 f7: first bytes of every message */
	SL_CBOR_DECTRIS_COMPRESSED = 56500, /* [algorithm, element bytes, byte string] */
};

enum { SL_CBOR_LONG_BYTES_HEAD = 5 }; /* of sl_cbor_long_bytes() */

struct sl_cbor {
	uint8_t *memory;
	size_t bytes, used; /* used > bytes: the memory was too small */
};

static inline struct sl_cbor sl_cbor_writer(void *memory, size_t bytes)
{
	return (struct sl_cbor){.memory = memory, .bytes = bytes};
}

void sl_cbor_uint(struct sl_cbor *cbor, uint64_t value);
void sl_cbor_float(struct sl_cbor *cbor, double value); /* double precision */
void sl_cbor_bool(struct sl_cbor *cbor, bool value);
void sl_cbor_text(struct sl_cbor *cbor, const char *text);
void sl_cbor_bytes(struct sl_cbor *cbor, const void *bytes, size_t length);
void sl_cbor_array(struct sl_cbor *cbor, uint64_t items);
void sl_cbor_map(struct sl_cbor *cbor, uint64_t pairs);
void sl_cbor_tag(struct sl_cbor *cbor, uint64_t tag); /* of the item that follows */

/* Items that are encoded already, or the bytes behind sl_cbor_long_bytes(). */
void sl_cbor_raw(struct sl_cbor *cbor, const void *bytes, size_t length);

/* The head of a byte string, with a length of four bytes whatever the value: DECTRIS writes images
 * so, and the length can be set later (sl_cbor_set_long_bytes). */
void sl_cbor_long_bytes(struct sl_cbor *cbor, uint32_t length);

/* head: where the SL_CBOR_LONG_BYTES_HEAD bytes of that head are. */
void sl_cbor_set_long_bytes(uint8_t *head, uint32_t length);

#endif
