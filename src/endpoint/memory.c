/* memory.c - registrations: what peers may reach, and where it lies. */
#include <errno.h>
#include <stdlib.h>

#include "base/secret.h"
#include "endpoint/state.h"

int sl_memories_init(struct sl_endpoint *endpoint)
{
	endpoint->memories = calloc(endpoint->options.keys, sizeof(*endpoint->memories));
	if (!endpoint->memories)
		return -ENOMEM;
	return sl_table_init(&endpoint->keys, endpoint->options.keys);
}

void sl_memories_fini(struct sl_endpoint *endpoint)
{
	sl_table_fini(&endpoint->keys);
	free(endpoint->memories);
}

/* A registration without memory is free: an empty one cannot be made. */
static struct sl_memory *free_memory(struct sl_endpoint *endpoint)
{
	for (uint32_t i = 0; i < endpoint->options.keys; i++) {
		if (!endpoint->memories[i].at)
			return &endpoint->memories[i];
	}
	return NULL;
}

int sl_endpoint_register(struct sl_endpoint *endpoint, const struct sl_endpoint_memory *memory,
			 uint32_t *rkey)
{
	struct sl_memory *slot = free_memory(endpoint);
	uint64_t base = memory->has_iova ? memory->iova : (uint64_t)(uintptr_t)memory->at;
	uint32_t number;
	int err;

	if (!memory->at || !memory->bytes || base + memory->bytes - 1 < base)
		return -EINVAL;
	if (memory->access & ~(uint32_t)(SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ))
		return -EINVAL;
	if (!slot)
		return -ENOSPC;
	do {
		number = sl_secret_u32();
		err = number ? sl_table_add(&endpoint->keys, number, slot) : -EEXIST;
	} while (err == -EEXIST);
	if (err)
		return err;
	slot->key =
		(struct sl_roce_key){number, memory->access, memory->domain, base, memory->bytes};
	slot->at = memory->at;
	*rkey = number;
	return 0;
}

int sl_endpoint_deregister(struct sl_endpoint *endpoint, uint32_t rkey)
{
	struct sl_memory *slot = sl_table_remove(&endpoint->keys, rkey);

	if (!slot)
		return -ENOENT;
	*slot = (struct sl_memory){.at = NULL};
	return 0;
}

const struct sl_roce_key *sl_memory_lookup(void *endpoint, uint32_t rkey)
{
	const struct sl_endpoint *e = endpoint;
	const struct sl_memory *memory = sl_table_find(&e->keys, rkey);

	return memory ? &memory->key : NULL;
}

/* The key covers va: the state machines have checked it. */
uint8_t *sl_memory_at(const struct sl_roce_key *key, uint64_t va)
{
	const struct sl_memory *memory =
		(const struct sl_memory *)(const void *)((const uint8_t *)key -
							 offsetof(struct sl_memory, key));

	return memory->at + (va - key->base);
}
