/* metadata.c - metadata as fields of a hash. */
#include "sink/redis/metadata.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIELD_BYTES = SL_METADATA_KEY + 16 };

int sl_redis_metadata_open(struct sl_redis_metadata *m, const struct sl_env *env)
{
	m->from = &env->metadata;
	m->now = calloc(1, sizeof(*m->now));
	m->sent = calloc(1, sizeof(*m->sent));
	return m->now && m->sent ? 0 : -ENOMEM;
}

void sl_redis_metadata_close(struct sl_redis_metadata *m)
{
	free(m->now);
	free(m->sent);
	m->now = m->sent = NULL;
}

static void copy_one(void *to, const char *key, const char *value)
{
	sl_metadata_set(to, key, value);
}

static void add_field(struct sl_command *to, const char *key)
{
	char field[FIELD_BYTES];

	snprintf(field, sizeof(field), "metadata:%s", key);
	sl_command_text(to, field);
}

static uint32_t gone(const struct sl_redis_metadata *m)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->sent->n; i++)
		n += !sl_metadata_get(m->now, m->sent->entry[i].key);
	return n;
}

static uint32_t delete_gone(const struct sl_redis_metadata *m, const char *hash,
			    struct sl_command *to)
{
	uint32_t n = gone(m);

	if (!n)
		return 0;
	sl_command_begin(to, 2 + n);
	sl_command_text(to, "HDEL");
	sl_command_text(to, hash);
	for (uint32_t i = 0; i < m->sent->n; i++)
		if (!sl_metadata_get(m->now, m->sent->entry[i].key))
			add_field(to, m->sent->entry[i].key);
	return 1;
}

uint32_t sl_redis_metadata_look(struct sl_redis_metadata *m, const char *hash, bool first,
				struct sl_command *to)
{
	uint32_t commands;

	if (first)
		m->sent->n = 0;
	m->now->n = 0;
	if (*m->from)
		(*m->from)->each((*m->from)->arg, copy_one, m->now);
	commands = delete_gone(m, hash, to);
	for (uint32_t i = 0; i < m->now->n; i++)
		sl_metadata_set(m->sent, m->now->entry[i].key, "");
	return commands;
}

uint32_t sl_redis_metadata_fields(const struct sl_redis_metadata *m)
{
	return m->now->n;
}

void sl_redis_metadata_add(const struct sl_redis_metadata *m, struct sl_command *to)
{
	for (uint32_t i = 0; i < m->now->n; i++) {
		add_field(to, m->now->entry[i].key);
		sl_command_text(to, m->now->entry[i].value);
	}
}
