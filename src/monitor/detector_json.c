/* detector_json.c - the detector side's own part of its status. */
#include "monitor/detector_json.h"

#include <jansson.h>

#include "client/text.h"

static json_t *text_or_null(const char *text)
{
	return text && text[0] ? sl_json_text(text) : json_null();
}

static json_t *receivers_json(const struct sl_detector_status *s)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < s->receivers; i++) {
		const struct sl_detector_receiver *r = &s->receiver[i];

		json_array_append_new(
			array,
			json_pack("{s:o, s:o, s:I, s:b, s:o, s:I, s:o}", "transfer",
				  text_or_null(r->transfer), "address", sl_json_text(r->address),
				  "port", (json_int_t)r->port, "connected", r->connected,
				  "waits_for", text_or_null(r->waits_for), "gone",
				  (json_int_t)r->gone, "refusal", text_or_null(r->refusal)));
	}
	return array;
}

static json_t *modules_json(const struct sl_detector_status *s)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < s->modules; i++)
		json_array_append_new(array, json_pack("{s:o, s:I, s:I}", "transfer",
						       text_or_null(s->module[i].transfer),
						       "module", (json_int_t)s->module[i].module,
						       "sent", (json_int_t)s->module[i].sent));
	return array;
}

/* Those that are not 0, by name. */
static json_t *faults_json(const struct sl_detector_status *s)
{
	json_t *object = json_object();

	for (unsigned k = SL_FAULT_NONE + 1; k < SL_FAULT_KINDS; k++)
		if (s->fault[k])
			json_object_set_new(object, sl_fault_name(k),
					    json_integer((json_int_t)s->fault[k]));
	return object;
}

static json_t *sets_json(const struct sl_detector_status *s)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < s->sets; i++)
		json_array_append_new(array, sl_json_text(s->set[i]));
	return array;
}

void *sl_json_detector(const struct sl_detector_status *s)
{
	return json_pack("{s:b, s:f, s:I, s:b, s:o, s:o, s:o, s:o}", "one_way", s->one_way,
			 "rate_Hz", s->rate_Hz, "held_ns", (json_int_t)s->held_ns, "held", s->held,
			 "faults", faults_json(s), "receivers", receivers_json(s), "modules",
			 modules_json(s), "set", sets_json(s));
}
