/* parameters.c - values of clients become overrides, as far as the experiment declares them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/text.h"
#include "service/experiments/experiments.h"

enum { TEXT_BYTES = 256 };

static const char *text_of(const json_t *json, const char *key)
{
	const char *text = json_string_value(json_object_get(json, key));

	return text ? text : "";
}

static void add_error(json_t *errors, const char *name, const char *message)
{
	char where[100];

	snprintf(where, sizeof(where), "parameters.%.64s", name);
	json_array_append_new(errors, json_pack("{s:s, s:o, s:o, s:n, s:n}", "code", "experiment",
						"message", sl_json_text(message), "where",
						sl_json_text(where), "line", "hint"));
}

static const json_t *find(const json_t *parameters, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach(parameters, i, one) if (!strcmp(text_of(one, "name"), name)) return one;
	return NULL;
}

/* ---- a value as text, or why not ---- */

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

static bool in_range(const json_t *p, double value)
{
	const json_t *min = json_object_get(p, "min"), *max = json_object_get(p, "max");

	return isfinite(value) && !(json_is_number(min) && value < json_number_value(min)) &&
	       !(json_is_number(max) && value > json_number_value(max));
}

static const char *take_number(const json_t *p, const json_t *value, char *text, size_t bytes,
			       char *why, size_t why_bytes)
{
	const char *type = text_of(p, "type"),
		   *now = json_string_value(json_object_get(p, "value"));
	bool whole = !strcmp(type, "integer");

	/* A word that stands in the place of a number, as "auto", may be said again. */
	if (json_is_string(value) && now && !strcmp(json_string_value(value), now)) {
		snprintf(text, bytes, "%s", now);
		return NULL;
	}
	if (json_is_integer(value) && in_range(p, (double)json_integer_value(value))) {
		snprintf(text, bytes, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return NULL;
	}
	if (json_is_real(value) && !whole && in_range(p, json_real_value(value))) {
		snprintf(text, bytes, "%.17g", json_real_value(value));
		return NULL;
	}
	snprintf(why, why_bytes, "takes %s from %.9g to %.9g",
		 whole ? "a whole number" : "a number",
		 json_number_value(json_object_get(p, "min")),
		 json_number_value(json_object_get(p, "max")));
	return why;
}

/* Values of a list are compared as they would be written. */
static const char *take_choice(const json_t *p, const json_t *value, char *text, size_t bytes,
			       char *why, size_t why_bytes)
{
	const json_t *values = json_object_get(p, "values"), *one;
	size_t i, used;

	if (json_is_string(value))
		snprintf(text, bytes, "%s", json_string_value(value));
	else if (json_is_integer(value))
		snprintf(text, bytes, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		snprintf(text, bytes, "%.9g", json_real_value(value));
	else
		snprintf(text, bytes, "%s",
			 json_is_true(value)	? "true"
			 : json_is_false(value) ? "false"
						: "");
	used = (size_t)snprintf(why, why_bytes, "takes one of");
	json_array_foreach(values, i, one)
	{
		if (!strcmp(json_string_value(one), text))
			return NULL;
		if (used < why_bytes)
			used += (size_t)snprintf(why + used, why_bytes - used, "%s%s",
						 i ? ", " : " ", json_string_value(one));
	}
	return why;
}

static const char *take(const json_t *p, const json_t *value, char *text, size_t bytes, char *why,
			size_t why_bytes)
{
	const char *type = text_of(p, "type");

	if (!strcmp(type, "integer") || !strcmp(type, "number"))
		return take_number(p, value, text, bytes, why, why_bytes);
	if (!strcmp(type, "choice"))
		return take_choice(p, value, text, bytes, why, why_bytes);
	if (!strcmp(type, "boolean")) {
		snprintf(text, bytes, "%s", json_is_true(value) ? "true" : "false");
		return json_is_boolean(value) ? NULL : "takes true or false";
	}
	if (!json_is_string(value) ||
	    json_string_length(value) != strlen(json_string_value(value)) ||
	    json_string_length(value) >= bytes || !is_plain(json_string_value(value)))
		return "takes a text of at most 255 bytes, on one line";
	snprintf(text, bytes, "%s", json_string_value(value));
	return NULL;
}

int sl_values_of(const json_t *parameters, const json_t *values, struct sl_values *to,
		 json_t *errors)
{
	size_t before = json_array_size(errors);
	const json_t *value;
	const char *name;

	to->n = 0;
	json_object_foreach((json_t *)values, name, value)
	{
		const json_t *p = find(parameters, name);
		char text[TEXT_BYTES], why[300];
		const char *wrong = p ? take(p, value, text, sizeof(text), why, sizeof(why))
				      : "the experiment declares no such parameter";

		if (!wrong && (to->n == SL_VALUES ||
			       strlen(text_of(p, "path")) + strlen(text) + 2 > SL_VALUE_BYTES))
			wrong = "is more than can be set";
		if (wrong)
			add_error(errors, name, wrong);
		else
			snprintf(to->set[to->n++], SL_VALUE_BYTES, "%s=%s", text_of(p, "path"),
				 text);
	}
	return json_array_size(errors) > before ? -EINVAL : 0;
}
