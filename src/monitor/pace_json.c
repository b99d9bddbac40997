/* pace_json.c - how a sink keeps pace. */
#include "monitor/pace_json.h"

#include <sluice/sink.h>

static json_t *number(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *changes_json(const struct sl_status *s, uint32_t addon)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < s->changes && i < SL_STATUS_CHANGES; i++)
		if (s->change[i].addon == addon)
			json_array_append_new(array,
					      json_pack("{s:o, s:o}", "sequence",
							number(s->change[i].sequence), "factor",
							number(s->change[i].factor)));
	return array;
}

json_t *sl_json_pace(const struct sl_status *s, uint32_t addon)
{
	const struct sl_status_pace *p = &s->pace[addon];

	if (!p->threaded)
		return json_null();
	return json_pack("{s:s, s:o, s:o, s:{s:o, s:o, s:o}, s:o, s:o, s:o, s:o}", "on_slow",
			 sl_on_slow_name(p->on_slow), "waited_ns", number(p->waited_ns), "left_out",
			 number(p->left_out), "waiting", "now", number(p->waiting.now), "most",
			 number(p->waiting.most), "of", number(p->waiting.of), "mark",
			 number(p->mark), "factor", number(p->factor), "factor_changes",
			 number(p->changes), "changes", changes_json(s, addon));
}
