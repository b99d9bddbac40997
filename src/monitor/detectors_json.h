/* detectors_json.h - the detectors of an experiment with several, as status and summary show them.
 */
#ifndef SL_MONITOR_DETECTORS_JSON_H
#define SL_MONITOR_DETECTORS_JSON_H

#include <jansson.h>

#include <sluice/status.h>

/* A list; empty: there is one detector, without a name. NULL: no memory. */
static inline json_t *sl_json_detectors(const struct sl_status *s)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < s->detectors && i < SL_STATUS_DETECTORS; i++) {
		const struct sl_status_detector *d = &s->each[i];

		json_array_append_new(
			list,
			json_pack("{s:s, s:i, s:i, s:s, s:s, s:b, s:{s:I, s:I, s:I}}", "name",
				  d->name, "first_module", (int)d->first_module, "modules",
				  (int)d->modules, "link", d->link, "guard", d->guard, "one_way",
				  d->one_way, "slots", "now", (json_int_t)d->slots.now, "most",
				  (json_int_t)d->slots.most, "of", (json_int_t)d->slots.of));
	}
	return list;
}

#endif
