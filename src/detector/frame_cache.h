/* frame_cache.h - synthetic blocks that are made once and sent again and again.
 *
 * Model:     there are `entries` different bright frames and as many dark ones; frame k is number
 *            k % entries of its kind. A block is made when it is first asked for. With a number of
 *            entries that is prime and larger than usual slot counts, what a slot held a lap ago is
 *            never what it should hold now.
 * Threads:   one at a time.
 * Ownership: blocks are the cache's and stay where they are until it is closed.
 * Cost:      the memory of the blocks that were asked for. */
#ifndef SL_DETECTOR_FRAME_CACHE_H
#define SL_DETECTOR_FRAME_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_frame_cache {
	uint32_t entries, modules;
	size_t bytes; /* of a block */
	void **block; /* [dark][entries][modules]; NULL: not made yet */
};

/* 0 or -ENOMEM. */
int sl_frame_cache_open(struct sl_frame_cache *cache, uint32_t entries, uint32_t modules,
			size_t bytes);
void sl_frame_cache_close(struct sl_frame_cache *cache);

/* Makes one block of the cache. */
typedef void sl_frame_cache_make(void *arg, uint32_t entry, uint32_t module, bool dark,
				 void *block);

/* The block, made now if need be. -EINVAL: no such module; -ENOMEM. */
int sl_frame_cache_get(struct sl_frame_cache *cache, uint64_t frame, uint32_t module, bool dark,
		       sl_frame_cache_make *make, void *arg, const void **block);

/* All of them ahead. -ENOMEM: logged, by the name of the detector. */
int sl_frame_cache_fill(struct sl_frame_cache *cache, sl_frame_cache_make *make, void *arg,
			const char *detector);

#endif
