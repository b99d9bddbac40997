/* body.c - words of a command line as bodies of requests. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "service/remote/remote.h"

enum { NAME_BYTES = 128 };

static char *dumped(json_t *json)
{
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	json_decref(json);
	return text;
}

/* The name before '='; NULL: there is none. value: what is behind it. */
static const char *name_of(const char *word, char name[NAME_BYTES], const char **value)
{
	const char *equals = strchr(word, '=');

	if (!equals || equals == word || equals - word >= NAME_BYTES)
		return NULL;
	snprintf(name, NAME_BYTES, "%.*s", (int)(equals - word), word);
	*value = equals + 1;
	return name;
}

/* 5, 1.5, true and "5" in quotes are JSON; all else is a text. */
static json_t *value_of(const char *text)
{
	json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);

	if (json_is_number(json) || json_is_boolean(json) || json_is_string(json))
		return json;
	json_decref(json);
	return json_string(text);
}

char *sl_api_start_body(const char *experiment, const char *name, const char *const *word,
			size_t words, const char *const *set, size_t sets, size_t *wrong)
{
	json_t *json = json_object(), *parameters = json_object(), *list = json_array();
	char key[NAME_BYTES];
	const char *value;
	size_t i;

	for (i = 0; i < words && name_of(word[i], key, &value); i++)
		json_object_set_new(parameters, key, value_of(value));
	*wrong = i;
	if (experiment)
		json_object_set_new(json, "experiment", json_string(experiment));
	if (name && name[0])
		json_object_set_new(json, "name", json_string(name));
	for (size_t k = 0; k < sets; k++)
		json_array_append_new(list, json_string(set[k]));
	if (words)
		json_object_set(json, "parameters", parameters);
	if (sets)
		json_object_set(json, "set", list);
	json_decref(parameters);
	json_decref(list);
	if (i == words)
		return dumped(json);
	json_decref(json);
	return NULL;
}

char *sl_api_metadata_body(const char *const *word, size_t words, bool keep, size_t *wrong)
{
	json_t *set = json_object(), *json;
	char key[NAME_BYTES];
	const char *value;
	size_t i;

	for (i = 0; i < words && name_of(word[i], key, &value); i++)
		json_object_set_new(set, key, *value ? json_string(value) : json_null());
	*wrong = i;
	json = json_pack("{s:o}", "set", set);
	if (keep)
		json_object_set_new(json, "keep", json_true());
	if (i == words)
		return dumped(json);
	json_decref(json);
	return NULL;
}

char *sl_api_reason_body(const char *reason)
{
	json_t *json = json_object();

	if (reason && reason[0])
		json_object_set_new(json, "reason", json_string(reason));
	return dumped(json);
}
