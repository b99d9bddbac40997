/* carry.c - requests of a telegram are carried out, one after another, and waited for. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "telegram/telegram.h"

enum { LOOK_NS = 50 * 1000 * 1000 };

static const char *text_at(const json_t *object, const char *member)
{
	const char *text = json_string_value(json_object_get(object, member));

	return text ? text : "";
}

static bool is(const char *state, const char *name)
{
	return !strcmp(state, name);
}

/* Nothing more happens by itself. */
static bool is_over(const char *state)
{
	return is(state, "ended") || is(state, "fault");
}

/* The state in which a call has had its effect; NULL: there is none to wait for. */
static const char *leads_to(const struct sl_telegram_request *r)
{
	switch (r->call) {
	case SL_TELEGRAM_ARM:
		return "armed";
	case SL_TELEGRAM_START:
	case SL_TELEGRAM_RESUME:
		return "running";
	case SL_TELEGRAM_PAUSE:
		return "paused";
	case SL_TELEGRAM_STOP:
	case SL_TELEGRAM_ABORT:
		return "ended";
	case SL_TELEGRAM_WAIT:
		return r->state;
	default:
		return NULL;
	}
}

/* A short run may be past the state that is waited for, when it is looked at. */
static bool has_come(const struct sl_telegram_request *r, const char *wanted, const json_t *status)
{
	const char *state = text_at(status, "state");
	bool failed = json_is_object(json_object_get(status, "error"));

	if (r->call == SL_TELEGRAM_PAUSE)
		return is(state, "paused") && json_is_true(json_object_get(status, "drained"));
	if (r->call == SL_TELEGRAM_START || r->call == SL_TELEGRAM_RESUME)
		return is(state, wanted) || is(state, "paused") || is(state, "stopping") ||
		       (is(state, "ended") && !failed);
	if (r->call == SL_TELEGRAM_ARM)
		return is(state, wanted) || is(state, "running") || is(state, "paused") ||
		       is(state, "stopping") || (is(state, "ended") && !failed);
	return is(state, wanted);
}

static int fail(struct sl_remote_error *error, const char *code, const char *format,
		const char *wanted, const char *state)
{
	memset(error, 0, sizeof(*error));
	snprintf(error->code, sizeof(error->code), "%s", code);
	snprintf(error->message, sizeof(error->message), format, wanted, state);
	return -EPROTO;
}

/* It ended instead: what the run says of it, where it says something. */
static int missed(const char *wanted, const json_t *status, struct sl_remote_error *error)
{
	const json_t *own = json_object_get(status, "error");

	if (!json_is_object(own))
		return fail(error, "state", "it is not %s: its run is %s", wanted,
			    text_at(status, "state"));
	memset(error, 0, sizeof(*error));
	snprintf(error->code, sizeof(error->code), "%s", text_at(own, "code"));
	snprintf(error->message, sizeof(error->message), "%s", text_at(own, "message"));
	snprintf(error->where, sizeof(error->where), "%s", text_at(own, "where"));
	snprintf(error->hint, sizeof(error->hint), "%s", text_at(own, "hint"));
	return -EPROTO;
}

/* The last status that was seen is the answer's. */
static int take_status(const struct sl_telegram_request *r, const struct sl_telegram_ops *ops,
		       void *arg, struct sl_telegram_answer *a)
{
	json_t *status = NULL;
	int err = ops->status(arg, r->to, &status, &a->error);

	if (err)
		return err;
	json_decref(a->status);
	a->status = status;
	snprintf(a->state, sizeof(a->state), "%s", text_at(status, "state"));
	return 0;
}

static int wait_for(const struct sl_telegram_request *r, const struct sl_telegram_ops *ops,
		    void *arg, struct sl_telegram_answer *a)
{
	const char *wanted = leads_to(r);
	uint64_t end_ns = sl_clock_ns() + (uint64_t)(r->wait_s * 1e9);

	for (;;) {
		int err = take_status(r, ops, arg, a);

		if (err)
			return err;
		if (has_come(r, wanted, a->status))
			return 0;
		if (is_over(a->state))
			return missed(wanted, a->status, &a->error);
		if (sl_clock_ns() >= end_ns || (ops->ends && ops->ends(arg)))
			return fail(&a->error, "timeout",
				    "it is not %s within the time of the request: it is %s", wanted,
				    a->state);
		sl_clock_sleep_until(sl_clock_ns() + LOOK_NS);
	}
}

static int carry_out(const struct sl_telegram_request *r, const struct sl_telegram_ops *ops,
		     void *arg, struct sl_telegram_answer *a)
{
	int err = 0;

	if (r->call == SL_TELEGRAM_CAPABILITIES) {
		a->capabilities = sl_telegram_capabilities();
		return 0;
	}
	if (r->call == SL_TELEGRAM_STATUS)
		return take_status(r, ops, arg, a);
	if (r->call != SL_TELEGRAM_WAIT)
		err = ops->call(arg, r, a->state, &a->metadata, &a->error);
	if (!err && r->wait_s >= 0 && leads_to(r))
		err = wait_for(r, ops, arg, a);
	return err;
}

int sl_telegram_carry_out(const struct sl_telegram *t, const struct sl_telegram_ops *ops, void *arg,
			  struct sl_telegram_answer *answer)
{
	for (unsigned i = 0; i < t->requests; i++) {
		int err = carry_out(&t->request[i], ops, arg, &answer[i]);

		answer[i].result = err ? SL_TELEGRAM_FAILED : SL_TELEGRAM_DONE;
		if (err)
			return -1;
	}
	return 0;
}

void sl_telegram_answers_free(struct sl_telegram_answer *answer, unsigned n)
{
	for (unsigned i = 0; answer && i < n; i++) {
		json_decref(answer[i].status);
		json_decref(answer[i].metadata);
		json_decref(answer[i].capabilities);
	}
	free(answer);
}

char *sl_telegram_serve(const void *document, size_t bytes, const struct sl_telegram_ops *ops,
			void *arg, bool *failed)
{
	struct sl_telegram *t = NULL;
	struct sl_telegram_answer *answer = NULL;
	struct sl_remote_error error;
	char *reply;

	*failed = true;
	if (sl_telegram_parse(document, bytes, &t, &error))
		return sl_telegram_write(NULL, NULL, &error);
	answer = calloc(t->requests, sizeof(*answer));
	if (answer)
		*failed = sl_telegram_carry_out(t, ops, arg, answer) != 0;
	reply = answer ? sl_telegram_write(t, answer, NULL) : NULL;
	sl_telegram_answers_free(answer, t->requests);
	sl_telegram_free(t);
	return reply;
}
