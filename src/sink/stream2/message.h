/* message.h - the three messages of a stream2 series: start, image, end.
 *
 * Model:     a message is one map in CBOR. DECTRIS' parser and areaDetector enforce more than the
 *            specification says, and these messages keep to it: the magic bytes d9 d9 f7, `type`
 *            as the first key, definite lengths, floats where a field is a float, no negative
 *            integer, `image_dtype` and `threshold_energy` in every start message.
 *            An image message is made of two parts that follow each other: the fields, whose
 *            image_id is known only in sequence order, and `data`, which any worker may prepare.
 * Source:    github.com/dectris/documentation 732e690: stream_v2/README.md,
 *            stream_v2/examples/stream2.c, cbor/dectris-compression-tag.md; recorded messages of
 *            its branch stream2-test_data.
 * Threads:   functions of their arguments.
 * Ownership: texts and arrays are the caller's. */
#ifndef SL_SINK_STREAM2_MESSAGE_H
#define SL_SINK_STREAM2_MESSAGE_H

#include <sluice/env.h>

#include "codec/codec.h"
#include "sink/stream2/cbor.h"

#define SL_STREAM2_CHANNEL "threshold_1" /* areaDetector knows threshold_N alone */

enum {
	SL_STREAM2_UNIQUE_BYTES = 27,  /* a ULID: 26 characters */
	SL_STREAM2_DATE_BYTES = 32,    /* RFC 3339 */
	SL_STREAM2_FIELDS_BYTES = 512, /* the fields of an image message take less */
	SL_STREAM2_DATA_BYTES = 128,   /* the head of `data` takes less */
};
#define SL_STREAM2_TIME_BASE_HZ UINT64_C(1000000000) /* denominator of all times */

struct sl_stream2_series {
	uint64_t id;
	char unique_id[SL_STREAM2_UNIQUE_BYTES];
};

struct sl_stream2_start {
	const struct sl_stream2_series *series;
	const struct sl_env *env;
	const struct sl_geometry *geometry; /* with its layout resolved */
	char arm_date[SL_STREAM2_DATE_BYTES];
	uint32_t rows, columns;
	enum sl_dtype dtype;		   /* of the images as sent: SL_U8, SL_U16 or SL_U32 */
	double beam_row, beam_column;	   /* NaN: not known */
	double frame_time_s, count_time_s; /* from frame to frame; of these, exposed */
	uint64_t saturation;		   /* largest valid value */
	enum sl_codec codec;		   /* of the mask */
	const void *mask; /* [rows][columns] of uint32_t, packed by `codec`; NULL: none */
	uint32_t mask_bytes;
	const void *user_data; /* keys and values, encoded one after another */
	size_t user_bytes;
	uint64_t user_pairs; /* 0: no user_data */
};

struct sl_stream2_image {
	const struct sl_stream2_series *series;
	const char *series_date;
	uint64_t id;
	uint64_t start_ns, real_ns;		   /* after series_date; how long it was exposed */
	uint64_t frame_number, timestamp, missing; /* as struct sl_frame has them */
};

/* A ULID (time and random bits), and an id that is larger than that of every earlier series of this
 * process. */
void sl_stream2_series_init(struct sl_stream2_series *series);

/* What an image can be sent as; 0: it cannot. */
uint32_t sl_stream2_tag(enum sl_dtype dtype);

/* The bytes of the message; more than `bytes`: it is not written whole. */
size_t sl_stream2_start(const struct sl_stream2_start *start, void *memory, size_t bytes);
size_t sl_stream2_end(const struct sl_stream2_series *series, void *memory, size_t bytes);

/* All of an image message that stands before `data`. */
size_t sl_stream2_image_fields(const struct sl_stream2_image *image, void *memory, size_t bytes);

/* `data` with one channel, up to the packed bytes, which follow. Its last SL_CBOR_LONG_BYTES_HEAD
 * bytes are to be set to their number (sl_cbor_set_long_bytes). */
size_t sl_stream2_data_head(uint32_t rows, uint32_t columns, enum sl_dtype dtype,
			    enum sl_codec codec, void *memory, size_t bytes);

#endif
