/* audit_json.c - audits as JSON; docs/reference/audit.md lists the fields. */
#include "monitor/audit_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* ---- the root of a summary ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int find_root(const json_t *summary, const char *name, struct sl_hash *root)
{
	const json_t *sinks = json_object_get(summary, "sinks"), *sink;
	size_t i;

	json_array_foreach(sinks, i, sink)
	{
		const char *where = json_string_value(json_object_get(sink, "where"));
		const char *text = json_string_value(
			json_object_get(json_object_get(sink, "texts"), "audit_root"));

		if (where && text && !strcmp(base_name(where), name))
			return sl_hash_read(text, root) ? -EBADMSG : 0;
	}
	return -ENOENT;
}

int sl_audit_summary_root(const char *summary, const char *name, struct sl_hash *root)
{
	FILE *file = fopen(summary, "r");
	json_t *json, *one;
	const char *key;
	int r;

	if (!file)
		return -errno;
	json = json_loadf(file, 0, NULL);
	fclose(file);
	if (!json_is_object(json)) {
		json_decref(json);
		return -EBADMSG;
	}
	r = find_root(json, name, root);
	json_object_foreach(json_object_get(json, "transfers"), key, one) if (r == -ENOENT)
		r = find_root(one, name, root);
	json_decref(json);
	return r;
}

/* ---- what an audit found ---- */

struct sl_audit_document {
	json_t *findings;
	uint64_t most;
};

struct sl_audit_document *sl_audit_document_open(uint64_t most)
{
	struct sl_audit_document *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->most = most;
	d->findings = json_array();
	return d;
}

static json_t *text_json(const char *text)
{
	json_t *json = json_string(text); /* NULL where it is not UTF-8 */

	return json ? json : json_string("?");
}

static json_t *number_or_null(bool there, uint64_t value)
{
	return there && value <= INT64_MAX ? json_integer((json_int_t)value) : json_null();
}

void sl_audit_document_add(struct sl_audit_document *d, const struct sl_finding *f)
{
	if (json_array_size(d->findings) >= d->most)
		return;
	json_array_append_new(
		d->findings,
		json_pack("{s:s, s:o, s:o, s:o, s:o}", "kind", sl_finding_name(f->kind), "file",
			  f->file ? text_json(f->file) : json_null(), "sequence",
			  number_or_null(f->has_frame, f->sequence), "frame",
			  number_or_null(f->has_frame, f->number), "text", text_json(f->text)));
}

static json_t *root_json(const char *root)
{
	return root[0] ? text_json(root) : json_null();
}

char *sl_audit_document_text(struct sl_audit_document *d, const char *path,
			     const struct sl_audit_result *r, const struct sl_counts *counts)
{
	json_t *json = json_pack("{s:i, s:o, s:s, s:o, s:o, s:o, s:s}", "schema", 1, "run",
				 text_json(path), "result", r->findings ? "damaged" : "proven",
				 "run_id", text_json(r->run_id), "root", root_json(r->root),
				 "root_written", root_json(r->written), "state", r->state);
	const struct {
		const char *name;
		uint64_t value;
	} number[] = {{"files", r->files},
		      {"rows", r->rows},
		      {"module_frames", r->module_frames},
		      {"images", r->images},
		      {"image_bytes", r->image_bytes},
		      {"source_checksums", r->source_crcs},
		      {"source_checksums_compared", r->source_checked},
		      {"sent", r->ledger_sent},
		      {"findings", r->findings}};
	char *text;

	for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++)
		json_object_set_new(json, number[i].name, number_or_null(true, number[i].value));
	json_object_set_new(json, "cut", r->cut[0] ? text_json(r->cut) : json_null());
	json_object_set_new(json, "ledger_closed", json_boolean(r->ledger_closed));
	json_object_set_new(
		json, "counts",
		counts ? json_pack("{s:o, s:o}", "sent", number_or_null(true, counts->sent),
				   "checksums_compared", number_or_null(true, counts->compared))
		       : json_null());
	json_object_set(json, "first_findings", d->findings);
	text = json_dumps(json, JSON_INDENT(2));
	json_decref(json);
	json_decref(d->findings);
	free(d);
	return text;
}
