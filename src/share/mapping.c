/* mapping.c - memory of a generation that stays mapped as long as an application holds it: views of
 * languages with garbage collection point into it.
 *
 * Model:     the first hold moves what is mapped from its share or follower to a counted object,
 *            of which that share or follower is one owner. The last owner unmaps it.
 * Threads:   a hold is taken on the thread that uses the share or follower; owners look and release
 *            on any. */
#include <stdlib.h>

#include "share/follower.h"

struct sl_share_mapping {
	_Atomic uint32_t owners;
	uint64_t first; /* n of the generation's first element */
	struct sl_share_memory memory;
};

static struct sl_share_mapping *hold(struct sl_share_memory *memory, uint64_t first)
{
	struct sl_share_mapping *mapping = memory->mapping;

	if (!memory->header)
		return NULL;
	if (!mapping) {
		mapping = calloc(1, sizeof(*mapping));
		if (!mapping)
			return NULL;
		mapping->memory = *memory;
		mapping->first = first;
		atomic_init(&mapping->owners, 1);
		memory->mapping = mapping;
	}
	atomic_fetch_add_explicit(&mapping->owners, 1, memory_order_relaxed);
	return mapping;
}

struct sl_share_mapping *sl_follow_hold_mapping(struct sl_follower *f)
{
	return hold(&f->memory, f->first);
}

struct sl_share_mapping *sl_share_hold_mapping(struct sl_share *share)
{
	return hold(&share->memory, share->memory.header->first);
}

int sl_share_mapping_is_valid(const struct sl_share_mapping *mapping, uint64_t n)
{
	const struct sl_share_place *place = sl_share_place_of(&mapping->memory, n);

	return n >= mapping->first && sl_share_look(place, n) == SL_SHARE_THERE &&
	       sl_share_whole(place, n);
}

void sl_share_mapping_release(struct sl_share_mapping *mapping)
{
	/* The last owner unmaps after everything that the others did with it. */
	if (!mapping || atomic_fetch_sub_explicit(&mapping->owners, 1, memory_order_acq_rel) != 1)
		return;
	sl_share_memory_unmap(&mapping->memory);
	free(mapping);
}
