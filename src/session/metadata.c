/* metadata.c - the metadata of a session. */
#include "session/metadata.h"

#include <errno.h>
#include <stdlib.h>

#include <sluice/sluice.h>

#include "base/log.h"
#include "session/private.h"

void sl_session_metadata_init(struct sl_session_metadata *metadata)
{
	pthread_mutex_init(&metadata->lock, NULL);
}

void sl_session_metadata_fini(struct sl_session_metadata *metadata)
{
	pthread_mutex_destroy(&metadata->lock);
}

void sl_session_copy_metadata(struct sl_session *s, struct sl_metadata *copy)
{
	pthread_mutex_lock(&s->metadata.lock);
	*copy = s->metadata.table;
	pthread_mutex_unlock(&s->metadata.lock);
}

int sl_session_change_metadata(struct sl_session *s, const char *const *key,
			       const char *const *value, size_t n, size_t *bad)
{
	struct sl_metadata *changed = malloc(sizeof(*changed));
	int err = 0;

	*bad = 0;
	if (!changed)
		return -ENOMEM;
	pthread_mutex_lock(&s->metadata.lock);
	*changed = s->metadata.table;
	for (size_t i = 0; i < n && !err; i++) {
		*bad = i;
		err = sl_metadata_set(changed, key[i], value[i]);
	}
	if (!err)
		s->metadata.table = *changed;
	pthread_mutex_unlock(&s->metadata.lock);
	free(changed);
	return err;
}

int sl_session_set_metadata(struct sl_session *s, const char *key, const char *value)
{
	size_t bad;

	return sl_session_change_metadata(s, &key, &value, 1, &bad);
}

void sl_session_each_metadata(void *arg, void (*one)(void *to, const char *key, const char *value),
			      void *to)
{
	struct sl_metadata *copy = malloc(sizeof(*copy));

	if (!copy) {
		sl_warn("no memory for the metadata: they are left out");
		return;
	}
	sl_session_copy_metadata(arg, copy);
	for (uint32_t i = 0; i < copy->n; i++)
		one(to, copy->entry[i].key, copy->entry[i].value);
	free(copy);
}
