/* session_actions.c - sessions are started, configured, told what to do, and closed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/registry.h"
#include "service/action.h"
#include "service/parts.h"

enum { SETS = 90 }; /* of a request: there is room for ours */

struct overrides {
	const char *set[SETS + SL_VALUES + 4];
	size_t n;
	struct sl_values values;
};

/* ---- overrides: declared parameters, and for the role configure any option ---- */

static int take_sets(struct sl_action *a, struct overrides *o)
{
	const json_t *list = json_object_get(a->body, "set"), *one;
	size_t i;

	if (!list || json_is_null(list) || (json_is_array(list) && !json_array_size(list)))
		return 0;
	if (a->role < SL_ROLE_CONFIGURE)
		return sl_action_fail(a, 403, "forbidden", NULL,
				      "use `parameters`, which the experiment declares", NULL,
				      "set needs the role configure");
	if (!json_is_array(list) || json_array_size(list) > SETS)
		return sl_action_fail(a, 400, "request", NULL, NULL, NULL,
				      "set takes a list of at most %d texts", SETS);
	json_array_foreach(list, i, one)
	{
		const char *text = json_string_value(one);

		if (!text || !strchr(text, '=') || strlen(text) != json_string_length(one) ||
		    strlen(text) > 4000)
			return sl_action_fail(a, 400, "request", NULL, NULL, NULL,
					      "set takes texts of the form path.to.key=value");
		o->set[o->n++] = text;
	}
	return 0;
}

static int take_parameters(struct sl_action *a, const json_t *declared, struct overrides *o)
{
	const json_t *values = json_object_get(a->body, "parameters");
	json_t *errors;
	int err = 0;

	if (!values || json_is_null(values))
		return 0;
	if (!json_is_object(values))
		return sl_action_fail(a, 400, "request", NULL, NULL, NULL,
				      "parameters takes a map of names to values");
	errors = json_array();
	if (sl_values_of(declared, values, &o->values, errors))
		err = sl_action_fail_check(a, errors);
	json_decref(errors);
	for (size_t i = 0; i < o->values.n && !err; i++)
		o->set[o->n++] = o->values.set[i];
	return err;
}

/* The experiment as it would be, with the errors of its check as the answer. */
static int check(struct sl_action *a, const char *experiment, const struct overrides *o)
{
	json_t *found = sl_experiments_check(a->service->experiments, experiment, NULL, 0, o->set,
					     o->n, SL_DISTRUST_SET);
	int err = json_is_true(json_object_get(found, "valid"))
			  ? 0
			  : sl_action_fail_check(a, json_object_get(found, "errors"));

	json_decref(found);
	return err;
}

/* ---- start ---- */

struct wishes {
	const char *experiment, *name, *transfer;
	bool outcomes;
};

static int take_wishes(struct sl_action *a, struct wishes *w)
{
	static const char *const members[] = {"experiment", "name",	"transfer", "parameters",
					      "set",	    "outcomes", NULL};
	const json_t *outcomes = json_object_get(a->body, "outcomes");

	if (sl_action_only(a, members) || sl_action_text(a, "experiment", &w->experiment) ||
	    sl_action_text(a, "name", &w->name) || sl_action_text(a, "transfer", &w->transfer))
		return -1;
	w->outcomes = json_is_true(outcomes);
	if (outcomes && !json_is_boolean(outcomes))
		return sl_action_fail(a, 400, "request", NULL, NULL, NULL,
				      "outcomes takes true or false");
	if (!sl_registry_name_is_valid(w->experiment))
		return sl_action_fail(a, 400, "request", NULL, "GET /api/v1/experiments lists them",
				      NULL, "experiment takes the name of one");
	if (w->name[0] && !sl_registry_name_is_valid(w->name))
		return sl_action_fail(a, 400, "name", NULL, NULL, NULL,
				      "'%s' is no name of a session: 1 to 63 of A-Z a-z 0-9 . _ -, "
				      "and no '.' or '-' at the beginning",
				      w->name);
	snprintf(a->note, sizeof(a->note), "experiment %s", w->experiment);
	return 0;
}

/* The transfer, where the file has several. */
static int check_transfer(struct sl_action *a, const json_t *found, const char *transfer)
{
	const json_t *transfers = json_object_get(found, "transfers"), *one;
	char names[300] = "";
	size_t i;

	json_array_foreach(transfers, i, one)
	{
		size_t used = strlen(names);

		if (!strcmp(json_string_value(one), transfer))
			return 0;
		snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
			 json_string_value(one));
	}
	if (json_array_size(transfers) < 2 && !transfer[0])
		return 0;
	return sl_action_fail(a, 400, "request", NULL, NULL, NULL,
			      "transfer takes one of the file's: %s",
			      names[0] ? names : "it has none");
}

static int prepare(struct sl_action *a, const struct wishes *w, struct overrides *o)
{
	json_t *found = sl_experiments_get(a->service->experiments, w->experiment);
	int err;

	if (!found)
		return sl_action_fail(a, 404, "not_found", NULL,
				      "GET /api/v1/experiments lists them", NULL,
				      "there is no experiment '%s'", w->experiment);
	err = json_is_true(json_object_get(found, "valid"))
		      ? 0
		      : sl_action_fail_check(a, json_object_get(found, "errors"));
	if (!err)
		err = check_transfer(a, found, w->transfer);
	if (!err)
		err = take_parameters(a, json_object_get(found, "parameters"), o);
	if (!err)
		err = take_sets(a, o);
	json_decref(found);
	return err ? err : check(a, w->experiment, o);
}

void sl_action_start_session(struct sl_action *a)
{
	struct overrides *o = calloc(1, sizeof(*o));
	struct sl_remote_error error;
	struct wishes w;
	char path[1200], name[64];
	struct sl_session_start start = {.experiment = path};

	if (!o || take_wishes(a, &w) || prepare(a, &w, o))
		goto out;
	if (!sl_experiments_path(a->service->experiments, w.experiment, path, sizeof(path))) {
		sl_action_fail(a, 404, "not_found", NULL, NULL, NULL, "there is no experiment '%s'",
			       w.experiment);
		goto out;
	}
	start.name = w.name[0] ? w.name : NULL;
	start.transfer = w.transfer[0] ? w.transfer : NULL;
	start.outcomes = w.outcomes ? "outcomes.txt" : NULL;
	start.set = o->set;
	start.sets = o->n;
	if (sl_sessions_start(a->service->sessions, &start, name, &error)) {
		sl_action_fail_remote(a, &error);
		goto out;
	}
	snprintf(a->note, sizeof(a->note), "experiment %s as %s, %zu overrides", w.experiment, name,
		 o->n);
	sl_action_done(a, 201, json_pack("{s:s}", "name", name));
out:
	free(o);
}

/* ---- configure ---- */

/* The experiment's name in our folder; false: the session has a file from elsewhere. */
static bool experiment_of(struct sl_action *a, char name[64])
{
	json_t *session = sl_sessions_one(a->service->sessions, a->name);
	const char *path = json_string_value(json_object_get(session, "experiment"));
	const char *slash = path ? strrchr(path, '/') : NULL;
	size_t folder = slash ? (size_t)(slash - path) : 0, length = slash ? strlen(slash + 1) : 0;
	bool ours = slash && folder == strlen(a->service->folder) &&
		    !strncmp(path, a->service->folder, folder) && length > 5 && length < 69 &&
		    !strcmp(slash + 1 + length - 5, ".yaml");

	if (ours)
		snprintf(name, 64, "%.*s", (int)(length - 5), slash + 1);
	json_decref(session);
	return ours;
}

static int prepare_configure(struct sl_action *a, struct overrides *o)
{
	static const char *const members[] = {"parameters", "set", NULL};
	char experiment[64];
	json_t *found;
	int err;

	if (sl_action_only(a, members))
		return -1;
	if (!json_object_get(a->body, "parameters") && !json_object_get(a->body, "set"))
		return 0;
	if (!experiment_of(a, experiment))
		return sl_action_fail(
			a, 409, "state", NULL, "configure it with sluice ctl on its host", NULL,
			"the session's experiment is not in the folder of the service");
	found = sl_experiments_get(a->service->experiments, experiment);
	err = take_parameters(a, json_object_get(found, "parameters"), o);
	json_decref(found);
	if (!err)
		err = take_sets(a, o);
	return err ? err : check(a, experiment, o);
}

static json_t *texts(const char *const *text, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_string(text[i]));
	return list;
}

/* The reply to a call: its state. */
static void ask(struct sl_action *a, unsigned status, json_t *request)
{
	struct sl_remote_error error;
	json_t *reply = NULL;
	const char *state;

	if (sl_sessions_ask(a->service->sessions, a->name, request, &reply, &error)) {
		sl_action_fail_remote(a, &error);
		return;
	}
	state = json_string_value(json_object_get(reply, "state"));
	sl_action_done(a, status, json_pack("{s:s?}", "state", state));
	json_decref(reply);
}

void sl_action_configure_session(struct sl_action *a)
{
	struct overrides *o = calloc(1, sizeof(*o));

	if (o && !prepare_configure(a, o)) {
		snprintf(a->note, sizeof(a->note), "%zu overrides", o->n);
		ask(a, 200,
		    json_pack("{s:s, s:o}", "call", "configure", "set", texts(o->set, o->n)));
	}
	free(o);
}

/* ---- other calls ---- */

void sl_action_call_session(struct sl_action *a, const char *call)
{
	static const char *const members[] = {"reason", NULL}, *const none[] = {NULL};
	bool reasoned = !strcmp(call, "stop") || !strcmp(call, "abort");
	const char *reason;
	json_t *request;

	if (sl_action_only(a, reasoned ? members : none) || sl_action_text(a, "reason", &reason))
		return;
	if (strlen(reason) > 15) {
		sl_action_fail(a, 400, "request", NULL, NULL, NULL,
			       "reason takes a text of at most 15 bytes");
		return;
	}
	request = json_pack("{s:s}", "call", call);
	if (reason[0])
		json_object_set_new(request, "reason", json_string(reason));
	ask(a, 202, request);
}

void sl_action_close_session(struct sl_action *a)
{
	static const char *const none[] = {NULL};
	json_t *session = sl_sessions_one(a->service->sessions, a->name);
	bool crashed = json_is_true(json_object_get(session, "crashed"));
	struct sl_remote_error error;

	json_decref(session);
	if (sl_action_only(a, none))
		return;
	if (!crashed)
		ask(a, 202, json_pack("{s:s}", "call", "close"));
	else if (sl_sessions_forget(a->service->sessions, a->name, &error))
		sl_action_fail_remote(a, &error);
	else
		sl_action_done(a, 200, json_pack("{s:n}", "state"));
}

void sl_action_metadata(struct sl_action *a)
{
	static const char *const members[] = {"set", "keep", NULL};
	const json_t *set = json_object_get(a->body, "set"),
		     *keep = json_object_get(a->body, "keep");
	json_t *request = json_pack("{s:s}", "call", "metadata"), *reply = NULL;
	struct sl_remote_error error;

	if (sl_action_only(a, members) || (set && !json_is_object(set)) ||
	    (keep && !json_is_boolean(keep))) {
		if (!a->answer)
			sl_action_fail(
				a, 400, "request", NULL, NULL, NULL,
				"metadata take {set: {key: value or null}, keep: true or false}");
		json_decref(request);
		return;
	}
	if (set)
		json_object_set(request, "set", (json_t *)set);
	if (keep)
		json_object_set(request, "keep", (json_t *)keep);
	if (sl_sessions_ask(a->service->sessions, a->name, request, &reply, &error))
		sl_action_fail_remote(a, &error);
	else
		sl_action_done(a, 200,
			       json_pack("{s:O}", "metadata", json_object_get(reply, "metadata")));
	json_decref(reply);
}
