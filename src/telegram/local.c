/* local.c - requests of telegrams over the status sockets of this host. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "telegram/telegram.h"

/* configure() reads files and plug-ins. */
enum { OPEN_MS = 2000, CALL_MS = 10000, CONFIGURE_MS = 120000 };

static json_t *request_of(const struct sl_telegram_request *r)
{
	json_t *request = json_pack("{s:s}", "call", sl_telegram_call_name(r->call));
	json_t *set = NULL;

	if (r->reason)
		json_object_set_new(request, "reason", json_string(r->reason));
	if (r->call == SL_TELEGRAM_CONFIGURE)
		set = json_array();
	else if (r->call == SL_TELEGRAM_METADATA && r->pairs)
		set = json_object();
	for (unsigned i = 0; i < r->pairs; i++) {
		const struct sl_telegram_pair *p = &r->pair[i];

		if (r->call == SL_TELEGRAM_CONFIGURE)
			json_array_append_new(set, json_string(p->key));
		else
			json_object_set_new(set, p->key,
					    p->value ? json_string(p->value) : json_null());
	}
	if (set)
		json_object_set_new(request, "set", set);
	if (r->keep)
		json_object_set_new(request, "keep", json_true());
	return request;
}

/* One request over a connection of its own. */
static int ask(const char *name, json_t *request, int timeout_ms, json_t **reply,
	       struct sl_remote_error *error)
{
	char *line = json_dumps(request, JSON_COMPACT), *answer = NULL;
	struct sl_remote *remote;
	int err = line ? sl_remote_open(name, OPEN_MS, &remote, error) : -ENOMEM;

	json_decref(request);
	if (!err) {
		err = sl_remote_request(remote, line, timeout_ms, &answer, error);
		sl_remote_close(remote);
	}
	if (!err)
		*reply = json_loads(answer, 0, NULL);
	if (!err && !*reply)
		err = -EBADMSG;
	if ((err == -ENOMEM && !line) || err == -EBADMSG) {
		memset(error, 0, sizeof(*error));
		snprintf(error->code, sizeof(error->code), "%s", line ? "reply" : "memory");
		snprintf(error->message, sizeof(error->message), "%s",
			 line ? "the reply is not understood" : "no memory");
	}
	sl_remote_free(answer);
	free(line);
	return err;
}

static int call(void *arg, const struct sl_telegram_request *r, char *state, json_t **metadata,
		struct sl_remote_error *error)
{
	json_t *reply = NULL;
	int err = ask(r->to, request_of(r),
		      r->call == SL_TELEGRAM_CONFIGURE ? CONFIGURE_MS : CALL_MS, &reply, error);
	const char *now = json_string_value(json_object_get(reply, "state"));

	if (!err && now)
		snprintf(state, 16, "%s", now);
	if (!err)
		*metadata = json_incref(json_object_get(reply, "metadata"));
	json_decref(reply);
	return err;
}

static int status(void *arg, const char *name, json_t **status_of, struct sl_remote_error *error)
{
	json_t *reply = NULL;
	int err = ask(name, json_pack("{s:s}", "call", "status"), CALL_MS, &reply, error);

	if (!err)
		*status_of = json_incref(json_object_get(reply, "status"));
	json_decref(reply);
	return err;
}

const struct sl_telegram_ops sl_telegram_local = {.call = call, .status = status};
