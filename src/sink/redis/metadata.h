/* metadata.h - what users say of a run, as fields of the hash: metadata:KEY.
 *
 * Model:     each time the hash is written, all keys of that moment are; fields of keys that are no
 *            longer set are deleted.
 * Threads:   the sink's own. */
#ifndef SL_SINK_REDIS_METADATA_H
#define SL_SINK_REDIS_METADATA_H

#include <stdbool.h>

#include <sluice/env.h>

#include "core/metadata/metadata.h"
#include "sink/redis/command.h"

struct sl_redis_metadata { /* zeroed: closed */
	const struct sl_env_metadata *const *from;
	struct sl_metadata *now;
	struct sl_metadata
		*sent; /* keys that the hash may have: a lost connection loses commands */
};

int sl_redis_metadata_open(struct sl_redis_metadata *metadata, const struct sl_env *env);
void sl_redis_metadata_close(struct sl_redis_metadata *metadata);

/* Look at them, and add the command that deletes fields of `hash`, where there are any. first: the
 * hash has none yet. How many commands: 0 or 1. */
uint32_t sl_redis_metadata_look(struct sl_redis_metadata *metadata, const char *hash, bool first,
				struct sl_command *to);
uint32_t sl_redis_metadata_fields(const struct sl_redis_metadata *metadata);
/* Names and values, as arguments of HSET. */
void sl_redis_metadata_add(const struct sl_redis_metadata *metadata, struct sl_command *to);

#endif
