/* metadata.h - what users say of a run: sample, proposal, shutter; a table of short texts.
 *
 * Model:     keys in the order in which they were first set. A key is a name: 1 to 63 characters of
 *            A-Z a-z 0-9 . _ - and no dot at the beginning.
 * Ownership: plain memory of the caller, without pointers. About 70 KiB. */
#ifndef SL_CORE_METADATA_METADATA_H
#define SL_CORE_METADATA_METADATA_H

#include <stdbool.h>
#include <stdint.h>

enum { SL_METADATA_KEYS = 64, SL_METADATA_KEY = 64, SL_METADATA_VALUE = 1024 };

struct sl_metadata {
	uint32_t n;
	struct {
		char key[SL_METADATA_KEY], value[SL_METADATA_VALUE];
	} entry[SL_METADATA_KEYS];
};

bool sl_metadata_is_key(const char *text);

/* value NULL: remove the key. -EINVAL: no key; -EMSGSIZE: the value is longer than 1023 bytes;
 * -E2BIG: there are 64 keys already. */
int sl_metadata_set(struct sl_metadata *metadata, const char *key, const char *value);
/* NULL: there is no such key. */
const char *sl_metadata_get(const struct sl_metadata *metadata, const char *key);

#endif
