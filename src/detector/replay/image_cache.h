/* image_cache.h - images of a stack when they are wanted: from memory, or from where they wait.
 *
 * Model:     before a run, prepare() puts the images that it will play into memory, when they fit.
 *            Otherwise raw files are read as images are wanted, and what must be unpacked first is
 *            unpacked into a scratch file without a name; the kernel reads ahead in both. Without
 *            prepare() an image is read by whoever asks, and may be slow.
 * Threads:   one at a time. After prepare(), sl_image_cache_get() neither allocates, locks nor
 *            logs.
 * Ownership: the stack is the cache's. */
#ifndef SL_DETECTOR_REPLAY_IMAGE_CACHE_H
#define SL_DETECTOR_REPLAY_IMAGE_CACHE_H

#include <stdint.h>

#include "detector/replay/stack.h"

struct sl_image_cache {
	struct sl_stack *stack;
	uint64_t image_bytes;
	/* The images that wait: `first` of the stack and those that follow, round its end. */
	uint64_t first, ready;
	uint8_t *memory;
	int scratch; /* a file; -1: none */
	bool direct; /* raw files are read as they are */
	uint8_t *last;
	uint64_t last_image; /* what `last` holds; UINT64_MAX: nothing */
	int failed;	     /* why an image was not to be had, once; and which */
	uint64_t failed_image;
};

/* Logs why not. */
int sl_image_cache_open(const struct sl_stack_options *options, struct sl_image_cache *cache);
void sl_image_cache_close(struct sl_image_cache *cache);

/* sl_stack_cut() of its stack; before prepare(). */
int sl_image_cache_cut(struct sl_image_cache *cache, const struct sl_geometry *geometry);

/* Have `images` from `first` on ready: in `most` bytes of memory, or in a file in `folder`. */
int sl_image_cache_prepare(struct sl_image_cache *cache, uint64_t first, uint64_t images,
			   uint64_t most, const char *folder);

/* `bytes` of an image from `offset` on: in buffer, or where *pixels says. -ENODATA: it was not
 * prepared. */
int sl_image_cache_get(struct sl_image_cache *cache, uint64_t image, uint64_t offset,
		       uint64_t bytes, void *buffer, const void **pixels);

#endif
