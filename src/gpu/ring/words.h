/* words.h - words of a ring of buffers that a device polls, the same for source, host and device.
 *
 * All of them are 16 bytes with the turn last: bytes, flags, check, turn of an event; outcome,
 * bytes, score, turn of a completion; 12 bytes and the turn of a tagged chunk.
 *
 * Event n goes into buffer n % buffers; its turn is n + 1. Turns count up and wrap: a turn is there
 * when the word is it, and the buffer was lapped when the word is beyond.
 * docs/reference/device-rings.md. */
#ifndef SL_GPU_RING_WORDS_H
#define SL_GPU_RING_WORDS_H

#include "gpu/dialect/language.h"

/* How a completion ends an event. */
enum sl_device_ring_outcome {
	SL_DEVICE_RING_GOOD = 1,
	SL_DEVICE_RING_LAPPED =
		2, /* its buffer was written again before the device was through with it */
	SL_DEVICE_RING_WRONG = 3, /* larger than a buffer, or a flag that is not the source's */
};

enum {
	SL_DEVICE_RING_KEEP = 0x100, /* in a completion: the result is there */
	SL_DEVICE_RING_END = 1, /* of an event's flags, no source's: WRONG; after stop, no event */
	SL_DEVICE_RING_CHUNK = 12,    /* bytes of an event in 16, where each chunk has its turn */
	SL_DEVICE_RING_LOCAL = 16384, /* most bytes of such an event */
};

/* Added to a turn while the buffer is written: due to nobody, and not that of the event before. */
#define SL_DEVICE_RING_WRITING 0x80000000u

#endif
