/* facts.c - NAME.json: what a session says of itself to programs that do not connect. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/registry.h"
#include "client/text.h"

enum { FACTS_SCHEMA = 1, FACTS_BYTES = 65536 };

static json_t *text_or_null(const char *text)
{
	return text[0] ? sl_json_text(text) : json_null();
}

int sl_registry_facts_write(int fd, const struct sl_registry_facts *f)
{
	json_t *json = json_pack("{s:i, s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o}", "schema",
				 FACTS_SCHEMA, "name", f->name, "kind",
				 f->kind[0] ? f->kind : "session", "pid", (json_int_t)f->pid,
				 "started_unix_ns", (json_int_t)f->started_unix_ns, "run",
				 (json_int_t)f->run, "experiment", text_or_null(f->experiment),
				 "root", text_or_null(f->root), "folder", text_or_null(f->folder));
	int err = 0;

	if (!json)
		return -ENOMEM;
	if (json_dumpfd(json, fd, JSON_INDENT(1)) != 0)
		err = errno ? -errno : -EIO;
	json_decref(json);
	return err;
}

static void copy_text(const json_t *json, const char *key, char *text, size_t bytes)
{
	const char *value = json_string_value(json_object_get(json, key));

	snprintf(text, bytes, "%s", value ? value : "");
}

static uint64_t number_of(const json_t *json, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(json, key));

	return value > 0 ? (uint64_t)value : 0;
}

int sl_registry_facts_read(int fd, struct sl_registry_facts *f)
{
	char *bytes = malloc(FACTS_BYTES);
	ssize_t n = bytes ? read(fd, bytes, FACTS_BYTES) : -1;
	json_t *json = n > 0 ? json_loadb(bytes, (size_t)n, 0, NULL) : NULL;

	free(bytes);
	if (!json_is_object(json)) {
		json_decref(json);
		return -EBADMSG;
	}
	memset(f, 0, sizeof(*f));
	f->pid = (int64_t)number_of(json, "pid");
	f->started_unix_ns = number_of(json, "started_unix_ns");
	f->run = number_of(json, "run");
	copy_text(json, "name", f->name, sizeof(f->name));
	copy_text(json, "kind", f->kind, sizeof(f->kind));
	if (!f->kind[0]) /* before there were others */
		snprintf(f->kind, sizeof(f->kind), "session");
	copy_text(json, "experiment", f->experiment, sizeof(f->experiment));
	copy_text(json, "root", f->root, sizeof(f->root));
	copy_text(json, "folder", f->folder, sizeof(f->folder));
	json_decref(json);
	return 0;
}
