/* pace_json.h - how a sink keeps pace, as JSON, for the status and the summary. */
#ifndef SL_MONITOR_PACE_JSON_H
#define SL_MONITOR_PACE_JSON_H

#include <jansson.h>

#include <sluice/status.h>

/* Of the add-on with this index. null: it has no thread of its own. */
json_t *sl_json_pace(const struct sl_status *status, uint32_t addon);

#endif
