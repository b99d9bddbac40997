/* values_fuzz.c - any JSON as the values of parameters: what is taken is an override of a declared
 * path, within its declared range, on one line. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "service/experiments/experiments.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char declared[] =
	"[{\"name\":\"n\",\"path\":\"detector.frames\",\"type\":\"integer\",\"min\":1,\"max\":1000,"
	"\"value\":5},"
	"{\"name\":\"w\",\"path\":\"unit.workers\",\"type\":\"integer\",\"min\":1,\"max\":64,"
	"\"value\":\"auto\"},"
	"{\"name\":\"r\",\"path\":\"detector.rate\",\"type\":\"number\",\"min\":0.5,\"max\":1e6,"
	"\"value\":1.5},"
	"{\"name\":\"p\",\"path\":\"threads.pin\",\"type\":\"boolean\",\"value\":true},"
	"{\"name\":\"m\",\"path\":\"threads.polling\",\"type\":\"choice\",\"values\":[\"fast\","
	"\"10\"],\"value\":\"fast\"},"
	"{\"name\":\"t\",\"path\":\"metadata.title\",\"type\":\"text\",\"value\":\"\"}]";

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void look(const char *set)
{
	const char *value = strchr(set, '=');

	check(value != NULL);
	value++;
	for (const char *c = set; *c; c++)
		check((unsigned char)*c >= 0x20 && *c != 0x7f);
	if (!strncmp(set, "detector.frames=", 16))
		check(atoll(value) >= 1 && atoll(value) <= 1000);
	else if (!strncmp(set, "detector.rate=", 14))
		check(atof(value) >= 0.5 && atof(value) <= 1e6);
	else if (!strncmp(set, "threads.pin=", 12))
		check(!strcmp(value, "true") || !strcmp(value, "false"));
	else if (!strncmp(set, "threads.polling=", 16))
		check(!strcmp(value, "fast") || !strcmp(value, "10"));
	else
		check(!strncmp(set, "unit.workers=", 13) || !strncmp(set, "metadata.title=", 15));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sl_values values;
	static json_t *parameters;
	json_t *json = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL),
	       *errors = json_array();
	size_t wrong;

	if (!parameters)
		parameters = json_loads(declared, 0, NULL);
	if (json_is_object(json)) {
		int err = sl_values_of(parameters, json, &values, errors);

		wrong = json_array_size(errors);
		check((err != 0) == (wrong > 0) && values.n + wrong == json_object_size(json));
		for (size_t i = 0; i < values.n; i++)
			look(values.set[i]);
	}
	json_decref(errors);
	json_decref(json);
	return 0;
}
