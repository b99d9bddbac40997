/* frame_cache.c - blocks of synthetic frames, made once. */
#include "detector/frame_cache.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"

static size_t blocks(const struct sl_frame_cache *cache)
{
	return 2 * (size_t)cache->entries * cache->modules;
}

int sl_frame_cache_open(struct sl_frame_cache *cache, uint32_t entries, uint32_t modules,
			size_t bytes)
{
	*cache = (struct sl_frame_cache){.entries = entries, .modules = modules, .bytes = bytes};
	cache->block = calloc(blocks(cache), sizeof(*cache->block));
	return cache->block ? 0 : -ENOMEM;
}

void sl_frame_cache_close(struct sl_frame_cache *cache)
{
	for (size_t i = 0; cache->block && i < blocks(cache); i++)
		free(cache->block[i]);
	free(cache->block);
	*cache = (struct sl_frame_cache){.entries = 0};
}

int sl_frame_cache_get(struct sl_frame_cache *cache, uint64_t frame, uint32_t module, bool dark,
		       sl_frame_cache_make *make, void *arg, const void **block)
{
	uint32_t entry = (uint32_t)(frame % cache->entries);
	void **at;

	if (module >= cache->modules)
		return -EINVAL;
	at = &cache->block[((size_t)dark * cache->entries + entry) * cache->modules + module];
	if (!*at) {
		void *fresh = malloc(cache->bytes);

		if (!fresh)
			return -ENOMEM;
		make(arg, entry, module, dark, fresh);
		*at = fresh;
	}
	*block = *at;
	return 0;
}

int sl_frame_cache_fill(struct sl_frame_cache *cache, sl_frame_cache_make *make, void *arg,
			const char *detector)
{
	const void *block;
	int err = 0;

	for (uint32_t entry = 0; entry < cache->entries && !err; entry++)
		for (uint32_t i = 0; i < 2 * cache->modules && !err; i++)
			err = sl_frame_cache_get(cache, entry, i / 2, !(i % 2), make, arg, &block);
	if (err)
		sl_error("%s: no memory for a pool of %u frames of %u modules; set pool or modules "
			 "lower",
			 detector, cache->entries, cache->modules);
	return err;
}
