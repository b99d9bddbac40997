/* images.h - images on their way into the file: put together, and packed, several at a time.
 *
 * Model:     a slot holds what is made of one frame's image: nothing where the image is stored as
 *            it lies in the frame, the assembled image, the packed one.
 * Threads:   make() of different slots on different threads; then the sink's thread reads the slot.
 * Ownership: bytes that get() gives are the slot's, or the frame's. */
#ifndef SL_SINK_NEXUS_IMAGES_H
#define SL_SINK_NEXUS_IMAGES_H

#include "codec/codec.h"
#include "sink/mosaic.h"

struct sl_images_options {
	enum sl_codec codec;
	const struct sl_mosaic *mosaic; /* NULL: modules stay below each other */
	enum sl_dtype dtype;
	uint64_t bytes; /* of an image as stored, not packed */
	unsigned slots;
	bool sum; /* the pixels: CRC32C of what is stored, before it is packed */
};

struct sl_images_slot;

struct sl_images {
	struct sl_images_options options;
	struct sl_images_slot *slot; /* [options.slots] */
};

/* -ENOMEM, logged. Close even when this failed; zeroed memory may be closed. */
int sl_images_open(struct sl_images *images, const struct sl_images_options *options);
void sl_images_close(struct sl_images *images);

/* image: [module][pixel]; it must stay until get(). */
void sl_images_make(const struct sl_images *images, unsigned slot, const void *image,
		    uint64_t missing);

/* What is to be stored, and its bytes; -errno: it could not be packed. */
int64_t sl_images_get(const struct sl_images *images, unsigned slot, const void **data);
uint32_t sl_images_crc(const struct sl_images *images, unsigned slot); /* 0 without `sum` */

#endif
