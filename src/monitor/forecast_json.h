/* forecast_json.h - the forecast of free space as JSON, the same in status and summary.
 *
 * Ownership: the caller's reference. */
#ifndef SL_MONITOR_FORECAST_JSON_H
#define SL_MONITOR_FORECAST_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include <sluice/status.h>

#include "client/text.h"

/* Numbers that JSON's integers cannot have are null: there is no end of frames that fit. */
static inline json_t *sl_json_forecast_number(uint64_t value, bool known)
{
	return known && value <= INT64_MAX ? json_integer((json_int_t)value) : json_null();
}

static inline json_t *sl_json_forecast(const struct sl_status *s)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < s->disks && i < SL_STATUS_DISKS; i++) {
		const struct sl_status_disk *d = &s->disk[i];
		bool known = d->needed_bytes;

		json_array_append_new(
			array,
			json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "path", sl_json_text(d->path),
				  "free_bytes", sl_json_forecast_number(d->free_bytes, true),
				  "frame_bytes", sl_json_forecast_number(d->frame_bytes, true),
				  "needed_bytes", sl_json_forecast_number(d->needed_bytes, known),
				  "frames_fit", sl_json_forecast_number(d->frames_fit, true),
				  "fits", known ? json_boolean(!d->is_short) : json_null()));
	}
	return array;
}

#endif
