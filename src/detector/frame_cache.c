/* frame_cache.c - blocks of synthetic frames, made once. */
#include "detector/frame_cache.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"

static size_t blocks(const struct sl_stock *stock)
{
	return 2 * (size_t)stock->entries * stock->modules;
}

int sl_stock_open(struct sl_stock *stock, uint32_t entries, uint32_t modules, size_t bytes)
{
	*stock = (struct sl_stock){.entries = entries, .modules = modules, .bytes = bytes};
	stock->block = calloc(blocks(stock), sizeof(*stock->block));
	return stock->block ? 0 : -ENOMEM;
}

void sl_stock_close(struct sl_stock *stock)
{
	for (size_t i = 0; stock->block && i < blocks(stock); i++)
		free(stock->block[i]);
	free(stock->block);
	*stock = (struct sl_stock){.entries = 0};
}

int sl_stock_get(struct sl_stock *stock, uint64_t frame, uint32_t module, bool dark,
		 sl_stock_make *make, void *arg, const void **block)
{
	uint32_t entry = (uint32_t)(frame % stock->entries);
	void **at;

	if (module >= stock->modules)
		return -EINVAL;
	at = &stock->block[((size_t)dark * stock->entries + entry) * stock->modules + module];
	if (!*at) {
		void *fresh = malloc(stock->bytes);

		if (!fresh)
			return -ENOMEM;
		make(arg, entry, module, dark, fresh);
		*at = fresh;
	}
	*block = *at;
	return 0;
}

int sl_stock_fill(struct sl_stock *stock, sl_stock_make *make, void *arg, const char *detector)
{
	const void *block;
	int err = 0;

	for (uint32_t entry = 0; entry < stock->entries && !err; entry++)
		for (uint32_t i = 0; i < 2 * stock->modules && !err; i++)
			err = sl_stock_get(stock, entry, i / 2, !(i % 2), make, arg, &block);
	if (err)
		sl_error("%s: no memory for a pool of %u frames of %u modules; set pool or modules "
			 "lower",
			 detector, stock->entries, stock->modules);
	return err;
}
