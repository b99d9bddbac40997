/* calls.c - the session behind its status socket: what requests of other programs do. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "monitor/status_json.h"
#include "session/metadata.h"
#include "session/private.h"
#include "session/samples.h"

struct sl_session_calls { /* of the socket's thread */
	struct sl_samples samples;
	struct sl_status status;
	struct sl_metadata metadata;
};

static enum sl_state state_of(void *arg)
{
	const struct sl_session *session = arg;

	return (enum sl_state)atomic_load(&session->state);
}

/* ---- status ---- */

static void look(void *arg, struct sl_registry_facts *facts)
{
	struct sl_session *session = arg;
	struct sl_status *now = &session->calls->status;

	if (sl_session_status(session, now, sizeof(*now)))
		return;
	facts->run = now->run;
	snprintf(facts->folder, sizeof(facts->folder), "%s", now->folder);
}

static void take_sample(void *arg)
{
	struct sl_session_calls *s = ((struct sl_session *)arg)->calls;

	sl_samples_take(&s->samples, &s->status);
}

static char *status_line(void *arg, const char *call)
{
	struct sl_session *session = arg;
	struct sl_session_calls *s = session->calls;
	struct sl_error error;
	char *parameters = sl_session_copy_parameters(session), *line;
	struct sl_status_document document = {.status = &s->status,
					      .error = &error,
					      .metadata = &s->metadata,
					      .parameters = parameters};

	sl_session_error(session, &error);
	sl_session_copy_metadata(session, &s->metadata);
	document.rates = sl_samples_rates(&s->samples, &s->status);
	document.taken_unix_ns = sl_clock_unix_ns();
	line = sl_reply_status(call, &document);
	free(parameters);
	return line;
}

/* ---- calls that change the session ---- */

static const struct {
	enum sl_request_call request;
	enum sl_session_call call;
} changes[] = {
	{SL_REQUEST_CONFIGURE, SL_CALL_CONFIGURE}, {SL_REQUEST_ARM, SL_CALL_ARM},
	{SL_REQUEST_START, SL_CALL_START},	   {SL_REQUEST_PAUSE, SL_CALL_PAUSE},
	{SL_REQUEST_RESUME, SL_CALL_RESUME},	   {SL_REQUEST_STOP, SL_CALL_STOP},
	{SL_REQUEST_ABORT, SL_CALL_ABORT},	   {SL_REQUEST_CLOSE, SL_CALL_STOP},
};

static enum sl_session_call call_of(enum sl_request_call request)
{
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (changes[i].request == request)
			return changes[i].call;
	return SL_CALLS;
}

static int not_now(struct sl_session *session, const char *name, struct sl_error *error)
{
	return sl_socket_refuse(error, SL_ERROR_STATE,
				"sluice list states shows what is possible when",
				"%s: not possible while the session is %s", name,
				sl_state_name(atomic_load(&session->state)));
}

/* `sluice run` takes one run and ends. */
static bool is_of_one_run(const struct sl_session *session, enum sl_request_call call)
{
	return session->hooks.single &&
	       (call == SL_REQUEST_CONFIGURE || call == SL_REQUEST_ARM || call == SL_REQUEST_START);
}

static int check(void *arg, const struct sl_request *r, struct sl_error *error)
{
	struct sl_session *session = arg;

	if (is_of_one_run(session, r->call))
		return sl_socket_refuse(error, SL_ERROR_STATE, "use a session for several runs",
					"this is 'sluice run', which takes one run and ends");
	return sl_session_takes(session, call_of(r->call)) ? 0 : not_now(session, r->name, error);
}

static int do_change(struct sl_session *session, const struct sl_request *r)
{
	/* `sluice run` may not have begun its run yet, and a stop before that has no effect. */
	if (session->hooks.single && (r->call == SL_REQUEST_STOP || r->call == SL_REQUEST_ABORT))
		sl_socket_ask_to_close(session->socket);
	switch (r->call) {
	case SL_REQUEST_ARM:
		return sl_session_arm(session);
	case SL_REQUEST_START:
		return r->frames ? sl_session_start_for(session, r->frames)
				 : sl_session_start(session);
	case SL_REQUEST_PAUSE:
		return sl_session_pause(session);
	case SL_REQUEST_RESUME:
		return r->frames ? sl_session_resume_for(session, r->frames)
				 : sl_session_resume(session);
	case SL_REQUEST_STOP:
		sl_session_stop(session, r->reason);
		return 0;
	case SL_REQUEST_ABORT:
		sl_session_abort(session, r->reason);
		return 0;
	case SL_REQUEST_CLOSE:
		sl_socket_ask_to_close(session->socket);
		sl_session_stop(session, "close");
		return 0;
	default:
		return -EINVAL;
	}
}

static int failed(struct sl_session *session, const struct sl_request *r, int err,
		  struct sl_error *error)
{
	if (err == -EPROTO)
		return not_now(session, r->name, error);
	if (err == -EAGAIN)
		return sl_socket_refuse(
			error, SL_ERROR_STATE,
			r->call == SL_REQUEST_START ? "arm first"
						    : "pause, and wait until it is drained",
			"%s with 'frames': possible when the session is %s", r->name,
			r->call == SL_REQUEST_START ? "armed" : "paused and drained");
	if (err == -ENOTSUP)
		return sl_socket_refuse(error, SL_ERROR_STATE, "stop the run instead",
					"the source of module %d takes no credits and cannot wait",
					sl_session_cannot_wait(session));
	return sl_socket_refuse(error, SL_ERROR_SYSTEM, "", "%s: %s", r->name, strerror(-err));
}

static int change(void *arg, const struct sl_request *r, struct sl_error *error)
{
	int err = do_change(arg, r);

	return err ? failed(arg, r, err, error) : 0;
}

static int configure(void *arg, const struct sl_request *r, struct sl_error *error)
{
	int err = sl_session_configure(arg, r->set, r->sets);

	if (!err)
		return 0;
	sl_session_error(arg, error);
	if (err != -EPROTO && error->code)
		return err;
	return failed(arg, r, err, error);
}

static char *metadata(void *arg, const struct sl_request *r, struct sl_error *error)
{
	struct sl_session *session = arg;
	struct sl_metadata *copy = &session->calls->metadata;
	const char *key[SL_REQUEST_METADATA], *value[SL_REQUEST_METADATA];
	char why[300];
	size_t bad;

	for (uint32_t i = 0; i < r->metadata_set; i++) {
		key[i] = r->metadata[i].key;
		value[i] = r->metadata[i].value;
	}
	if (sl_session_change_metadata(session, key, value, r->metadata_set, r->keep, &bad, why,
				       sizeof(why))) {
		sl_socket_refuse(error, SL_ERROR_REQUEST, "", "metadata: '%.70s': %s", key[bad],
				 why);
		return NULL;
	}
	sl_session_copy_next_metadata(session, copy);
	return sl_reply_metadata(copy);
}

static char *point(void *arg, const struct sl_request *r, struct sl_error *error)
{
	struct sl_session *session = arg;
	enum sl_state state = (enum sl_state)atomic_load(&session->state);
	enum sl_error_code code = SL_ERROR_REQUEST;
	uint64_t number;
	char why[200];
	int err = sl_points_add(&session->points, r, &number, why, sizeof(why));

	if (!err)
		return sl_reply_point(number, state);
	if (err == -EPROTO)
		code = SL_ERROR_STATE;
	else if (err == -ENOMEM)
		code = SL_ERROR_SYSTEM;
	sl_socket_refuse(error, code, "", "point: %s", why);
	return NULL;
}

/* ---- open and close ---- */

int sl_session_open_socket(struct sl_session *session, const char *name, const char *root)
{
	static const struct sl_socket_ops ops = {
		.noun = "session",
		.kind = "session",
		.state = state_of,
		.look = look,
		.sample = take_sample,
		.status = status_line,
		.check = check,
		.change = change,
		.configure = configure,
		.metadata = metadata,
		.point = point,
	};
	const struct sl_socket_options options = {
		.name = name,
		.experiment = session->name,
		.root = root,
		.any_name = session->hooks.any_name,
		.ops = &ops,
		.arg = session,
	};
	char why[SL_REGISTRY_PATH + 200] = "no memory for the status socket";
	bool of_name;
	int err;

	session->calls = calloc(1, sizeof(*session->calls));
	err = session->calls ? sl_socket_open(&options, &session->socket, why, sizeof(why))
			     : -ENOMEM;
	if (!err)
		return 0;
	of_name = err == -EINVAL || (err == -EEXIST && !options.any_name);
	if (session->hooks.may_lack_socket && !of_name) {
		sl_warn("no status socket: %s; this run goes on without", why);
		return 0;
	}
	sl_error("%s", why);
	return sl_session_fail(session, of_name ? SL_ERROR_NAME : SL_ERROR_SOCKET, err, why);
}

void sl_session_close_socket(struct sl_session *session)
{
	sl_socket_close(session->socket);
	free(session->calls);
}
