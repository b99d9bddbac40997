/* metadata_json.h - the metadata of a run as a JSON object, for result.json and the status. */
#ifndef SL_MONITOR_METADATA_JSON_H
#define SL_MONITOR_METADATA_JSON_H

#include <jansson.h>

#include "client/text.h"
#include "core/metadata/metadata.h"

/* NULL: an empty object. */
static inline json_t *sl_json_metadata(const struct sl_metadata *m)
{
	json_t *object = json_object();

	for (uint32_t i = 0; m && i < m->n; i++)
		json_object_set_new(object, m->entry[i].key, sl_json_text(m->entry[i].value));
	return object;
}

#endif
