/* schema.c - every add-on and section with its options, as JSON schema. */
#include "service/schema.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/detector.h>
#include <sluice/sink.h>
#include <sluice/stage.h>

#include "core/link.h"
#include "core/registry.h"
#include "core/unit.h"
#include "experiment/experiment.h"

/* ---- one option ---- */

static void set_range(json_t *json, const struct sl_option *o)
{
	bool whole = o->type != SL_OPTION_F64;

	if (o->max <= o->min || !isfinite(o->min) || !isfinite(o->max))
		return;
	/* Beyond 2^53 a number of JSON is not exact; no option takes such values on purpose. */
	if (fabs(o->min) < 9e15)
		json_object_set_new(json, "minimum",
				    whole ? json_integer((json_int_t)o->min) : json_real(o->min));
	if (fabs(o->max) < 9e15)
		json_object_set_new(json, "maximum",
				    whole ? json_integer((json_int_t)o->max) : json_real(o->max));
}

static json_t *words_of(const char *choices)
{
	json_t *list = json_array();

	for (const char *at = choices; at && *at;) {
		size_t n = strcspn(at, "|");

		json_array_append_new(list, json_stringn(at, n));
		at += n + (at[n] == '|');
	}
	return list;
}

/* Numbers may be written with k, M, G, Ki, Mi, Gi: a number, or such a text. */
static json_t *number_json(const struct sl_option *o)
{
	json_t *number =
		json_pack("{s:s}", "type", o->type == SL_OPTION_F64 ? "number" : "integer");
	json_t *text = o->choices ? json_pack("{s:o}", "enum", words_of(o->choices))
				  : json_pack("{s:s, s:s}", "type", "string", "pattern",
					      "^-?[0-9.eE+xX]+[0-9a-fA-F.]*([kMG]i?)?$");

	set_range(number, o);
	return json_pack("{s:[o, o]}", "anyOf", number, text);
}

/* The default as it is: a number, true or false, or a text. */
static json_t *default_of(const struct sl_option *o)
{
	char *end;
	double number = strtod(o->def, &end);

	if (o->type == SL_OPTION_BOOL)
		return json_boolean(!strcmp(o->def, "true"));
	if ((o->type == SL_OPTION_U32 || o->type == SL_OPTION_U64) && *o->def && !*end &&
	    number >= 0 && number < 9e15)
		return json_integer((json_int_t)number);
	if (o->type == SL_OPTION_F64 && *o->def && !*end)
		return json_real(number);
	return json_string(o->def);
}

static json_t *option_json(const struct sl_option *o)
{
	json_t *json;

	switch (o->type) {
	case SL_OPTION_U32:
	case SL_OPTION_U64:
	case SL_OPTION_F64:
		json = number_json(o);
		break;
	case SL_OPTION_BOOL:
		json = json_pack("{s:s}", "type", "boolean");
		break;
	case SL_OPTION_CHOICE:
		json = json_pack("{s:o}", "enum", words_of(o->choices));
		break;
	default:
		json = json_pack("{s:s}", "type", "string");
		if (o->size)
			json_object_set_new(json, "maxLength",
					    json_integer((json_int_t)o->size - 1));
	}
	if (o->def && o->type != SL_OPTION_SECRET)
		json_object_set_new(json, "default", default_of(o));
	json_object_set_new(json, "description", json_string(o->doc));
	if (o->unit && o->unit[0])
		json_object_set_new(json, "x-unit", json_string(o->unit));
	if (o->type == SL_OPTION_SECRET)
		json_object_set_new(json, "writeOnly", json_true());
	return json;
}

json_t *sl_schema_of_options(const struct sl_option *options)
{
	json_t *properties = json_object();

	for (; options && options->name; options++)
		json_object_set_new(properties, options->name, option_json(options));
	return json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties,
			 "additionalProperties", 0);
}

/* ---- add-ons ---- */

static void add(json_t *list, const char *name, const char *doc, const struct sl_option *options,
		const char *why_not)
{
	json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:s?}", "name", name, "doc", doc,
					      "options", sl_schema_of_options(options),
					      "unavailable", why_not));
}

json_t *sl_schema_addons(void)
{
	json_t *links = json_array(), *detectors = json_array(), *stages = json_array(),
	       *units = json_array(), *sinks = json_array(), *sections = json_array();

	for (size_t i = 0; sl_links[i]; i++)
		add(links, sl_links[i]->name, sl_links[i]->doc, sl_links[i]->options,
		    sl_links[i]->unavailable ? sl_links[i]->unavailable() : NULL);
	for (size_t i = 0; sl_detectors[i]; i++)
		add(detectors, sl_detectors[i]->name, sl_detectors[i]->doc,
		    sl_detectors[i]->options, NULL);
	for (size_t i = 0; sl_stages[i]; i++)
		add(stages, sl_stages[i]->name, sl_stages[i]->doc, sl_stages[i]->options, NULL);
	for (size_t i = 0; sl_units[i]; i++)
		add(units, sl_units[i]->name, sl_units[i]->doc, sl_units[i]->options,
		    sl_units[i]->unavailable ? sl_units[i]->unavailable() : NULL);
	for (size_t i = 0; sl_sinks[i]; i++)
		add(sinks, sl_sinks[i]->name, sl_sinks[i]->doc, sl_sinks[i]->options, NULL);
	for (const struct sl_section *s = sl_sections; s->name; s++)
		add(sections, s->name, s->doc, s->options, NULL);
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "links", links, "detectors", detectors,
			 "stages", stages, "units", units, "sinks", sinks, "sections", sections);
}

json_t *sl_schema_absent(void)
{
	json_t *list = json_array();

	for (const struct sl_absent *a = sl_absents; a->name; a++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "kind", a->kind, "name",
						      a->name, "why", a->why));
	return list;
}
