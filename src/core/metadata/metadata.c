/* metadata.c - a table of short texts. */
#include "core/metadata/metadata.h"

#include <errno.h>
#include <string.h>

bool sl_metadata_is_key(const char *key)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";
	size_t length = strlen(key);

	return length && length < SL_METADATA_KEY && key[0] != '.' &&
	       strspn(key, allowed) == length;
}

/* Its place; n: it is not there. */
static uint32_t find(const struct sl_metadata *m, const char *key)
{
	uint32_t i = 0;

	while (i < m->n && strcmp(m->entry[i].key, key) != 0)
		i++;
	return i;
}

int sl_metadata_set(struct sl_metadata *m, const char *key, const char *value)
{
	uint32_t i;

	if (!sl_metadata_is_key(key))
		return -EINVAL;
	if (value && strlen(value) >= SL_METADATA_VALUE)
		return -EMSGSIZE;
	i = find(m, key);
	if (!value && i < m->n) {
		m->n--;
		memmove(&m->entry[i], &m->entry[i + 1], (m->n - i) * sizeof(m->entry[0]));
	}
	if (!value)
		return 0;
	if (i == SL_METADATA_KEYS)
		return -E2BIG;
	strcpy(m->entry[i].key, key);
	strcpy(m->entry[i].value, value);
	m->n += i == m->n;
	return 0;
}

const char *sl_metadata_get(const struct sl_metadata *m, const char *key)
{
	uint32_t i = find(m, key);

	return i < m->n ? m->entry[i].value : NULL;
}
