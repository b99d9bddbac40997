/* pool.c - frames with everything that hangs on them. */
#include <errno.h>
#include <stdlib.h>

#include "receiver/pool.h"

enum { ALIGN = 4096 };

/* Frames that are worked on together must not lie a power of two apart: what is written to them at
 * the same time would meet in the same set of every cache and the same bank of memory, which takes
 * a third of the speed. */
enum { SKEW = 256, SKEWS = ALIGN / SKEW };

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static void init_view(struct sl_pool *pool, uint32_t i, uint32_t modules, uint32_t items,
		      const struct sl_shape *result, uint32_t results, uint64_t at)
{
	struct sl_frame *frame = &pool->frames[i].frame;

	at += i % SKEWS * SKEW;
	frame->view = &pool->views[(size_t)i * modules];
	pool->frames[i].home = pool;
	frame->verdict = &pool->verdicts[(size_t)i * items];
	frame->views = modules;
	frame->items = items;
	frame->results = results;
	for (uint32_t r = 0; r < results; r++) {
		frame->result[r] = (struct sl_array){
			.shape = result[r],
			.region = &pool->results,
			.offset = at,
			.host = (uint8_t *)pool->results.base + at,
		};
		at += aligned(sl_shape_bytes(&result[r]));
	}
}

static uint64_t frame_bytes(const struct sl_shape *result, uint32_t results)
{
	uint64_t bytes = 0;

	for (uint32_t r = 0; r < results; r++)
		bytes += aligned(sl_shape_bytes(&result[r]));
	return bytes ? bytes + ALIGN : 0;
}

uint64_t sl_pool_bytes(uint32_t count, const struct sl_shape *result, uint32_t results)
{
	return frame_bytes(result, results) * count;
}

int sl_pool_init(struct sl_pool *pool, uint32_t count, uint32_t modules, unsigned feeds,
		 uint32_t items, const struct sl_shape *result, uint32_t results)
{
	uint64_t per_frame = frame_bytes(result, results);
	int err;

	*pool = (struct sl_pool){.count = count, .results = {.fd = -1}};
	pool->frames = calloc(count, sizeof(*pool->frames));
	pool->views = calloc((size_t)count * modules, sizeof(*pool->views));
	pool->verdicts = calloc((size_t)count * items, sizeof(*pool->verdicts));
	if (feeds > 1)
		pool->parts = calloc((size_t)count * feeds, sizeof(*pool->parts));
	err = !pool->frames || !pool->views || !pool->verdicts || (feeds > 1 && !pool->parts)
		      ? -ENOMEM
		      : sl_queue_init(&pool->free, count);
	if (!err && per_frame)
		err = sl_region_open(SL_REGION_HOST, per_frame * count, &pool->results);
	if (err) {
		sl_pool_fini(pool);
		return err;
	}
	for (uint32_t i = 0; i < count; i++) {
		init_view(pool, i, modules, items, result, results, per_frame * i);
		pool->frames[i].part = pool->parts ? &pool->parts[(size_t)i * feeds] : NULL;
		sl_queue_push(&pool->free, &pool->frames[i]);
	}
	return 0;
}

void sl_pool_reset(struct sl_pool *pool)
{
	sl_queue_clear(&pool->free);
	for (uint32_t i = 0; i < pool->count; i++)
		sl_queue_push(&pool->free, &pool->frames[i]);
}

void sl_pool_fini(struct sl_pool *pool)
{
	sl_queue_fini(&pool->free);
	if (pool->results.base)
		sl_region_close(&pool->results);
	free(pool->frames);
	free(pool->parts);
	free(pool->views);
	free(pool->verdicts);
	*pool = (struct sl_pool){.results = {.fd = -1}};
}

struct sl_flow_frame *sl_pool_get(struct sl_pool *pool)
{
	return sl_queue_pop(&pool->free);
}

void sl_pool_put(struct sl_pool *pool, struct sl_flow_frame *frame)
{
	sl_queue_push(&pool->free, frame); /* never full: it has room for all of them */
}
