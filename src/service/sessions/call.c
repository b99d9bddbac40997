/* call.c - one request to one session, on a connection of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/registry.h"
#include "service/sessions/private.h"

enum { CALL_MS = 5000, CONFIGURE_MS = 30000 };

static int fail(struct sl_remote_error *error, int err, const char *code, const char *message)
{
	memset(error, 0, sizeof(*error));
	snprintf(error->code, sizeof(error->code), "%s", code);
	snprintf(error->message, sizeof(error->message), "%.500s", message);
	return err;
}

int sl_sessions_ask(struct sl_sessions *s, const char *name, json_t *request, json_t **reply,
		    struct sl_remote_error *error)
{
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL, *line = NULL;
	const char *call = json_string_value(json_object_get(request, "call"));
	/* It reads files, and plug-ins may measure something. */
	int limit_ms = call && !strcmp(call, "configure") ? CONFIGURE_MS : CALL_MS;
	struct sl_remote *remote = NULL;
	int err;

	json_decref(request);
	if (!text)
		return fail(error, -EINVAL, "request", "a text of the request is not UTF-8");
	err = sl_remote_open(name, CALL_MS, &remote, error);
	if (!err)
		err = sl_remote_request(remote, text, limit_ms, &line, error);
	if (!err && reply)
		*reply = json_loads(line, 0, NULL);
	sl_remote_free(line);
	sl_remote_close(remote);
	free(text);
	sl_sessions_look(s);
	return err;
}

int sl_sessions_forget(struct sl_sessions *s, const char *name, struct sl_remote_error *error)
{
	int folder[SL_REGISTRY_PLACES], err = -ENOENT;
	char why[SL_REGISTRY_PATH];
	unsigned places = sl_registry_places(folder, why, sizeof(why));

	for (unsigned i = 0; i < places; i++) {
		struct sl_registry_facts facts;
		struct sl_claim claim;
		bool alive;

		if (err == -ENOENT && !sl_registry_look(folder[i], name, &facts, &alive)) {
			/* As a session takes its name: one that begins just now keeps it. */
			err = sl_registry_claim(folder[i], name, &claim, why, sizeof(why));
			if (!err)
				sl_registry_release(&claim);
		}
		close(folder[i]);
	}
	sl_sessions_look(s);
	if (err == -ENOENT)
		return fail(error, err, "absent", "no session has this name");
	return err ? fail(error, err, err == -EEXIST ? "state" : "system", why) : 0;
}
