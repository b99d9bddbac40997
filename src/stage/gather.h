/* gather.h - pixels by bins: for each bin where its pixels are, so that a group of threads has one.
 *
 * Ownership: the host's copy lives until free(); the device's is the caller's. */
#ifndef SL_STAGE_GATHER_H
#define SL_STAGE_GATHER_H

#include "core/device.h"

struct sl_gather {
	uint32_t *start; /* [bins + 1]: in `index` */
	uint32_t *index; /* pixels of one bin after those of another, rising */
};

/* bin[pixels], `bins` where a pixel has none. 0 or -ENOMEM, logged. */
int sl_gather_make(struct sl_gather *gather, const uint16_t *bin, uint64_t pixels, uint32_t bins);
void sl_gather_free(struct sl_gather *gather);

/* To the device. What `queue` does must be over before free(). */
int sl_gather_send(const struct sl_gather *gather, uint32_t bins, struct sl_device *device,
		   struct sl_device_queue *queue, struct sl_device_memory *start,
		   struct sl_device_memory *index);

#endif
