/* gather.c - pixels sorted by their bins. */
#include "stage/gather.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "gpu/table.h"

/* start[b + 1] counts, then is where the next pixel of bin b goes, and its end when all are there.
 */
int sl_gather_make(struct sl_gather *g, const uint16_t *bin, uint64_t pixels, uint32_t bins)
{
	uint32_t next = 0;

	g->start = calloc(bins + 1ull, sizeof(*g->start));
	g->index = calloc(pixels, sizeof(*g->index));
	if (!g->start || !g->index) {
		sl_error("no memory for a table of %llu pixels", (unsigned long long)pixels);
		sl_gather_free(g);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < pixels; i++)
		if (bin[i] < bins)
			g->start[bin[i] + 1]++;
	for (uint32_t b = 0; b < bins; b++) {
		uint32_t count = g->start[b + 1];

		g->start[b + 1] = next;
		next += count;
	}
	for (uint64_t i = 0; i < pixels; i++)
		if (bin[i] < bins)
			g->index[g->start[bin[i] + 1]++] = (uint32_t)i;
	return 0;
}

void sl_gather_free(struct sl_gather *g)
{
	free(g->start);
	free(g->index);
	*g = (struct sl_gather){0};
}

int sl_gather_send(const struct sl_gather *g, uint32_t bins, struct sl_device *device,
		   struct sl_device_queue *queue, struct sl_device_memory *start,
		   struct sl_device_memory *index)
{
	int err =
		sl_device_table(device, queue, g->start, (bins + 1ull) * sizeof(*g->start), start);

	return err ? err
		   : sl_device_table(device, queue, g->index, g->start[bins] * sizeof(*g->index),
				     index);
}
