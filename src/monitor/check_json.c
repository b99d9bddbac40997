/* check_json.c - the result of `sluice check --json`. */
#include "monitor/check_json.h"

#include <ctype.h>
#include <float.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "client/text.h"
#include "core/link.h"
#include "core/unit.h"
#include "experiment/experiment.h"

enum { CHECK_SCHEMA = 1 };

static json_t *text_or_null(const char *text)
{
	return text[0] ? sl_json_text(text) : json_null();
}

/* Where ":NUMBER" at the end of [where, end) begins; NULL: it has none. */
static const char *number_before(const char *where, const char *end)
{
	const char *digits = end;

	while (digits > where && isdigit((unsigned char)digits[-1]))
		digits--;
	return digits < end && digits > where + 1 && digits[-1] == ':' ? digits - 1 : NULL;
}

/* The line of "FILE:LINE" or "FILE:LINE:COLUMN". */
static json_t *line_of(const char *where)
{
	const char *last = number_before(where, where + strlen(where));
	const char *line = last ? number_before(where, last) : NULL;

	return last ? json_integer(atoll((line ? line : last) + 1)) : json_null();
}

static json_t *lines_of(const struct sl_check *c, enum sl_log_level level)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->lines; i++) {
		const struct sl_error *e = &c->line[i].error;

		if (c->line[i].level == level)
			json_array_append_new(
				list, json_pack("{s:s, s:o, s:o, s:o, s:o}", "code", "experiment",
						"message", sl_json_text(e->message), "where",
						text_or_null(e->where), "line", line_of(e->where),
						"hint", text_or_null(e->hint)));
	}
	return list;
}

/* ---- parameters ---- */

/* A value with the type that it has; options may have words in the place of numbers ("auto"). */
static json_t *value_of(const struct sl_parameter *p, const char *text)
{
	char *end;
	double number;

	switch (p->type) {
	case SL_PARAMETER_INTEGER:
		number = strtod(text, &end);
		return *end ? sl_json_text(text)
			    : json_integer((json_int_t)strtoll(text, NULL, 10));
	case SL_PARAMETER_NUMBER:
		number = strtod(text, &end);
		return *end ? sl_json_text(text) : json_real(number);
	case SL_PARAMETER_BOOLEAN:
		return json_boolean(!strcmp(text, "true"));
	default:
		return sl_json_text(text);
	}
}

static json_t *limit_of(const struct sl_parameter *p, double limit)
{
	if (p->type == SL_PARAMETER_INTEGER && limit > -9e18 && limit < 9e18)
		return json_integer((json_int_t)limit);
	if (p->type == SL_PARAMETER_NUMBER && limit > -DBL_MAX && limit < DBL_MAX)
		return json_real(limit);
	return json_null();
}

static json_t *parameter_json(const struct sl_parameter *p)
{
	json_t *values = p->values ? json_array() : json_null();

	for (unsigned i = 0; i < p->values; i++)
		json_array_append_new(values, sl_json_text(p->value[i]));
	return json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "name", p->name,
			 "path", sl_json_text(p->path), "label", sl_json_text(p->label), "type",
			 sl_parameter_type_name((enum sl_parameter_type)p->type), "min",
			 limit_of(p, p->min), "max", limit_of(p, p->max), "values", values, "unit",
			 sl_json_text(p->unit), "doc", sl_json_text(p->doc), "value",
			 value_of(p, p->now));
}

static json_t *parameters_of(const struct sl_experiment *e)
{
	json_t *list = json_array();

	for (unsigned i = 0; e && e->parameters && i < e->parameters->n; i++)
		json_array_append_new(list, parameter_json(&e->parameters->parameter[i]));
	return list;
}

char *sl_parameter_values_json(const struct sl_parameters *parameters)
{
	json_t *values = json_object();
	char *text;

	for (unsigned i = 0; parameters && i < parameters->n; i++) {
		const struct sl_parameter *p = &parameters->parameter[i];

		json_object_set_new(values, p->name, value_of(p, p->now));
	}
	text = json_dumps(values, JSON_COMPACT | JSON_REAL_PRECISION(17));
	json_decref(values);
	return text;
}

/* ---- the rest ---- */

static json_t *transfers_of(const struct sl_transfer_names *names)
{
	json_t *list = json_array();

	for (unsigned i = 0; names && i < names->n; i++)
		json_array_append_new(list, sl_json_text(names->name[i]));
	return list;
}

static void add_parts(json_t *json, const struct sl_experiment *e)
{
	json_t *stages = json_array(), *sinks = json_array();

	for (unsigned i = 0; i < e->stages; i++)
		json_array_append_new(stages, json_string(e->stage[i]->name));
	for (unsigned i = 0; i < e->sinks; i++)
		json_array_append_new(sinks, json_string(e->sink[i]->name));
	json_object_set_new(json, "title", text_or_null(e->known.title));
	json_object_set_new(json, "detector", json_string(e->generator->name));
	json_object_set_new(json, "link", json_string(e->link->name));
	json_object_set_new(json, "unit", json_string(e->unit->name));
	json_object_set_new(json, "stages", stages);
	json_object_set_new(json, "sinks", sinks);
	json_object_set_new(json, "emulated", json_boolean(e->emulate_local));
}

char *sl_check_json(const struct sl_check *c)
{
	json_t *json = json_pack("{s:i, s:b, s:o, s:o, s:o, s:o}", "schema", CHECK_SCHEMA, "valid",
				 c->valid, "errors", lines_of(c, SL_LOG_ERROR), "warnings",
				 lines_of(c, SL_LOG_WARN), "transfers", transfers_of(c->transfers),
				 "parameters", parameters_of(c->experiment));
	char *text;

	if (json && c->experiment)
		add_parts(json, c->experiment);
	text = json ? json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
	json_decref(json);
	return text;
}
