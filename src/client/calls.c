/* calls.c - the usual requests to a session. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/private.h"

static void copy_state(const json_t *reply, char *state)
{
	const char *text = json_string_value(json_object_get(reply, "state"));

	if (state)
		snprintf(state, 16, "%s", text ? text : "");
}

int sl_remote_call(struct sl_remote *r, const char *call, const char *reason, int timeout_ms,
		   char *state, struct sl_remote_error *error)
{
	json_t *request = json_pack("{s:s}", "call", call), *reply = NULL;
	int err;

	if (reason)
		json_object_set_new(request, "reason", json_string(reason));
	err = sl_remote_ask(r, request, timeout_ms, &reply, error);
	if (!err)
		copy_state(reply, state);
	json_decref(reply);
	return err;
}

static json_t *list_of(const char *const *text, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(list, json_string(text[i]))) {
			json_decref(list); /* not UTF-8 */
			return NULL;
		}
	return list;
}

int sl_remote_configure(struct sl_remote *r, const char *const *set, size_t sets, int timeout_ms,
			struct sl_remote_error *error)
{
	return sl_remote_ask(
		r, json_pack("{s:s, s:o}", "call", "configure", "set", list_of(set, sets)),
		timeout_ms, NULL, error);
}

int sl_remote_wait(struct sl_remote *r, const char *const *states, size_t n, int timeout_ms,
		   char *state, struct sl_remote_error *error)
{
	json_t *reply = NULL;
	/* The session answers in time; the connection may take a moment more. */
	int err = sl_remote_ask(r,
				json_pack("{s:s, s:o, s:i}", "call", "wait", "states",
					  list_of(states, n), "timeout_ms",
					  timeout_ms < 0 ? -1 : timeout_ms),
				timeout_ms < 0 ? -1 : timeout_ms + 1000, &reply, error);

	if (!err)
		copy_state(reply, state);
	json_decref(reply);
	return err;
}

/* ---- metadata ---- */

int sl_remote_set_metadata(struct sl_remote *r, const char *key, const char *value, int timeout_ms,
			   struct sl_remote_error *error)
{
	return sl_remote_ask(r, json_pack("{s:s, s:{s:s?}}", "call", "metadata", "set", key, value),
			     timeout_ms, NULL, error);
}

int sl_remote_metadata(struct sl_remote *r, int timeout_ms,
		       void (*each)(void *arg, const char *key, const char *value), void *arg,
		       struct sl_remote_error *error)
{
	json_t *reply = NULL, *value;
	const char *key;
	int err =
		sl_remote_ask(r, json_pack("{s:s}", "call", "metadata"), timeout_ms, &reply, error);

	if (!err) {
		json_t *metadata = json_object_get(reply, "metadata");

		json_object_foreach(metadata, key, value)
			each(arg, key, json_is_string(value) ? json_string_value(value) : "");
	}
	json_decref(reply);
	return err;
}

/* ---- sinks ---- */

int sl_remote_sinks(struct sl_remote *r, int timeout_ms,
		    void (*each)(void *arg, const char *sink, const char *where), void *arg,
		    struct sl_remote_error *error)
{
	json_t *reply = NULL, *addon;
	size_t i;
	int err = sl_remote_ask(r, json_pack("{s:s}", "call", "status"), timeout_ms, &reply, error);

	if (!err) {
		json_t *addons = json_object_get(json_object_get(reply, "status"), "addons");

		json_array_foreach(addons, i, addon)
		{
			const char *name = json_string_value(json_object_get(addon, "name"));
			const char *kind = json_string_value(json_object_get(addon, "kind"));
			const char *where = json_string_value(json_object_get(addon, "where"));

			if (name && where && kind && !strcmp(kind, "sink"))
				each(arg, name, where);
		}
	}
	json_decref(reply);
	return err;
}

/* ---- status ---- */

static const json_t *at(const json_t *json, const char *a, const char *b)
{
	const json_t *inner = json_object_get(json, a);

	return b ? json_object_get(inner, b) : inner;
}

static void copy_text(const json_t *json, char *text, size_t bytes)
{
	const char *value = json_string_value(json);

	snprintf(text, bytes, "%s", value ? value : "");
}

static uint64_t number_of(const json_t *json)
{
	json_int_t value = json_integer_value(json);

	return value > 0 ? (uint64_t)value : 0;
}

/* Outcomes that a run without trouble has none of, but `lost`. */
static uint64_t damaged_of(const json_t *outcomes)
{
	static const char *const name[] = {"incomplete", "overrun", "unproven", "refused",
					   "unwritten"};
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		sum += number_of(json_object_get(outcomes, name[i]));
	return sum;
}

static double rate_of(const json_t *rates, const char *name)
{
	const json_t *value = json_object_get(rates, name);

	return json_is_number(value) ? json_number_value(value) : -1;
}

void sl_remote_brief(const json_t *json, struct sl_remote_status *status, size_t bytes)
{
	const json_t *outcomes = at(at(json, "ledger", "total"), "outcomes", NULL);
	const json_t *rates = at(json, "rates", NULL), *age = at(json, "progress_age_ns", NULL);
	struct sl_remote_status s = {.bytes = sizeof(s)};

	copy_text(at(json, "session", NULL), s.session, sizeof(s.session));
	copy_text(at(json, "state", NULL), s.state, sizeof(s.state));
	copy_text(at(json, "transfer", NULL), s.transfer, sizeof(s.transfer));
	copy_text(at(json, "result", NULL), s.result, sizeof(s.result));
	copy_text(at(json, "folder", NULL), s.folder, sizeof(s.folder));
	copy_text(at(json, "experiment", NULL), s.experiment, sizeof(s.experiment));
	copy_text(at(json, "error", "code"), s.error, sizeof(s.error));
	copy_text(at(json, "error", "message"), s.error_message, sizeof(s.error_message));
	s.drained = json_is_true(at(json, "drained", NULL));
	s.run = number_of(at(json, "run", NULL));
	s.frames = number_of(at(json, "frames", "settled"));
	s.expected_frames = number_of(at(json, "frames", "expected"));
	s.pixel_bytes = number_of(at(json, "frames", "pixel_bytes"));
	s.frames_per_s = rate_of(rates, "frames_per_s");
	s.bytes_per_s = rate_of(rates, "bytes_per_s");
	s.lost = number_of(json_object_get(outcomes, "lost"));
	s.damaged = damaged_of(outcomes);
	s.progress_age_ns = json_is_integer(age) ? number_of(age) : UINT64_MAX;
	memset(status, 0, bytes);
	memcpy(status, &s, bytes < sizeof(s) ? bytes : sizeof(s));
}

int sl_remote_status_of(const char *line, struct sl_remote_status *status, size_t bytes)
{
	json_t *reply = json_loads(line, 0, NULL);
	const json_t *json = json_object_get(reply, "status");
	int err = json_is_object(json) ? 0 : -EBADMSG;

	if (!err)
		sl_remote_brief(json, status, bytes);
	json_decref(reply);
	return err;
}

int sl_remote_status(struct sl_remote *r, int timeout_ms, struct sl_remote_status *status,
		     size_t bytes, struct sl_remote_error *error)
{
	json_t *reply = NULL;
	int err = sl_remote_ask(r, json_pack("{s:s}", "call", "status"), timeout_ms, &reply, error);
	const json_t *json = json_object_get(reply, "status");

	if (!err && json_is_object(json))
		sl_remote_brief(json, status, bytes);
	else if (!err)
		err = sl_remote_fail(error, -EBADMSG, "reply", "the reply is not understood");
	json_decref(reply);
	return err;
}
