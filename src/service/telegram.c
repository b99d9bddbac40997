/* telegram.c - POST /api/v1/telegram: requests as an XML document. They are actions, as those of
 * other routes are: with the same roles and checks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "service/action.h"
#include "service/parts.h"
#include "service/shared_status.h"
#include "telegram/telegram.h"

/* Telegrams at a time; of these so many may have requests that wait: the rest is for others. */
enum { AT_ONCE = SL_SHARED_STATUS_CALLERS, WAITING = 56 };

/* A telegram that waits for the end of a run holds no worker: it has a thread. */
struct carrier {
	struct sl_telegrams *all;
	struct sl_http_request *request; /* NULL: free, or done */
	struct sl_thread thread;
};

struct sl_telegrams {
	struct sl_service *service;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ends;
	unsigned waiting;
	struct sl_shared_status *shared;
	struct carrier carrier[AT_ONCE];
};

/* ---- requests as actions ---- */

static void copy_text(const json_t *object, const char *member, char *text, size_t bytes)
{
	const char *value = json_string_value(json_object_get(object, member));

	snprintf(text, bytes, "%s", value ? value : "");
}

static int take_error(const struct sl_action *a, struct sl_remote_error *error)
{
	const json_t *e = json_object_get(a->answer, "error");

	memset(error, 0, sizeof(*error));
	copy_text(e, "code", error->code, sizeof(error->code));
	copy_text(e, "message", error->message, sizeof(error->message));
	copy_text(e, "where", error->where, sizeof(error->where));
	copy_text(e, "hint", error->hint, sizeof(error->hint));
	if (!e) {
		snprintf(error->code, sizeof(error->code), "memory");
		snprintf(error->message, sizeof(error->message), "no memory");
	}
	return -EPROTO;
}

static json_t *body_of(const struct sl_telegram_request *r)
{
	json_t *body = json_object(), *set = NULL;

	if (r->reason)
		json_object_set_new(body, "reason", json_string(r->reason));
	if (r->keep)
		json_object_set_new(body, "keep", json_true());
	if (r->call == SL_TELEGRAM_CONFIGURE)
		set = json_array();
	else if (r->call == SL_TELEGRAM_METADATA)
		set = json_object();
	for (unsigned i = 0; i < r->pairs; i++) {
		const struct sl_telegram_pair *p = &r->pair[i];

		if (json_is_array(set))
			json_array_append_new(set, json_string(p->key));
		else
			json_object_set_new(set, p->key,
					    p->value ? json_string(p->value) : json_null());
	}
	if (set)
		json_object_set_new(body, "set", set);
	return body;
}

static void run_action(struct sl_action *a, const struct sl_telegram_request *r)
{
	switch (r->call) {
	case SL_TELEGRAM_CONFIGURE:
		sl_action_configure_session(a);
		break;
	case SL_TELEGRAM_METADATA:
		sl_action_metadata(a);
		break;
	case SL_TELEGRAM_CLOSE:
		sl_action_close_session(a);
		break;
	default:
		sl_action_call_session(a, sl_telegram_call_name(r->call));
	}
}

static int call(void *arg, const struct sl_telegram_request *r, char *state, json_t **metadata,
		struct sl_remote_error *error)
{
	const struct carrier *c = arg;
	json_t *body = body_of(r);
	struct sl_action a = {.service = c->all->service,
			      .role = sl_http_role(c->request),
			      .name = r->to,
			      .body = body};
	int err = 0;

	run_action(&a, r);
	if (!a.answer || a.status >= 400) {
		err = take_error(&a, error);
	} else {
		copy_text(a.answer, "state", state, 16);
		*metadata = json_incref(json_object_get(a.answer, "metadata"));
	}
	json_decref(a.answer);
	json_decref(body);
	return err;
}

static int status(void *arg, const char *name, json_t **status_of, struct sl_remote_error *error)
{
	const struct carrier *c = arg;

	return sl_shared_status_ask(c->all->shared, name, sl_telegram_local.status, status_of,
				    error);
}

/* The service ends, or the client does not wait any more. */
static bool ends(void *arg)
{
	const struct carrier *c = arg;
	struct sl_telegrams *all = c->all;
	bool they_do;

	pthread_mutex_lock(&all->lock);
	they_do = all->ends;
	pthread_mutex_unlock(&all->lock);
	return they_do || sl_http_client_is_gone(c->request);
}

/* ---- places for those that wait ---- */

static bool may_wait(const struct sl_telegram *t)
{
	for (unsigned i = 0; i < t->requests; i++)
		if (t->request[i].wait_s >= 0)
			return true;
	return false;
}

static bool take_place(struct sl_telegrams *all)
{
	bool taken;

	pthread_mutex_lock(&all->lock);
	taken = all->waiting < WAITING;
	all->waiting += taken;
	pthread_mutex_unlock(&all->lock);
	return taken;
}

static void leave_place(struct sl_telegrams *all)
{
	pthread_mutex_lock(&all->lock);
	all->waiting--;
	pthread_mutex_unlock(&all->lock);
}

static void refuse(struct sl_http_request *r, unsigned n, const char *what)
{
	sl_http_answer_error(r, 503, "busy", NULL, "send it again when another one is done",
			     "%u telegrams %s", n, what);
	sl_http_answer_header(r, "Retry-After", "1");
}

/* ---- a thread for each ---- */

static void note(struct sl_http_request *r, const struct sl_telegram *t)
{
	char text[180];
	int used = snprintf(text, sizeof(text), "telegram of %u requests:", t->requests);

	for (unsigned i = 0; i < t->requests && used < (int)sizeof(text); i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used, " %s %s",
				 sl_telegram_call_name(t->request[i].call), t->request[i].to);
	sl_http_note(r, "%s", text);
}

static void answer_with(struct sl_http_request *r, unsigned status, char *reply)
{
	sl_http_answer_bytes(r, status, "application/xml", reply, reply ? strlen(reply) : 0);
}

static void carry_out(struct carrier *c, const struct sl_telegram *t)
{
	static const struct sl_telegram_ops ops = {.call = call, .status = status, .ends = ends};
	struct sl_telegram_answer *answers = calloc(t->requests, sizeof(*answers));

	note(c->request, t);
	if (!answers)
		return; /* an internal error */
	sl_telegram_carry_out(t, &ops, c, answers);
	answer_with(c->request, 200, sl_telegram_write(t, answers, NULL));
	sl_telegram_answers_free(answers, t->requests);
}

static void answer(struct carrier *c)
{
	struct sl_http_request *r = c->request;
	struct sl_telegram *t = NULL;
	struct sl_remote_error error;
	size_t bytes;
	const char *document = sl_http_body(r, &bytes);
	bool waits;

	if (sl_telegram_parse(document, bytes, &t, &error)) {
		answer_with(r, 400, sl_telegram_write(NULL, NULL, &error));
		sl_http_code(r, "request");
		return;
	}
	waits = may_wait(t);
	if (waits && !take_place(c->all)) {
		refuse(r, WAITING, "wait already");
	} else {
		carry_out(c, t);
		if (waits)
			leave_place(c->all);
	}
	sl_telegram_free(t);
}

static void *carry(void *arg)
{
	struct carrier *c = arg;
	struct sl_http_request *request = c->request;

	answer(c);
	pthread_mutex_lock(&c->all->lock);
	c->request = NULL;
	sl_http_finish(request);
	pthread_cond_broadcast(&c->all->changed);
	pthread_mutex_unlock(&c->all->lock);
	return NULL;
}

/* On the thread of bytes: a thread that has ended is joined without a wait. */
static int give(struct sl_telegrams *all, struct sl_http_request *r)
{
	int err = -EBUSY;

	pthread_mutex_lock(&all->lock);
	for (unsigned i = 0; i < AT_ONCE && err == -EBUSY && !all->ends; i++) {
		struct carrier *c = &all->carrier[i];

		if (c->request)
			continue;
		sl_thread_join(&c->thread);
		c->request = r;
		err = sl_thread_start(&c->thread, "telegram", NULL, carry, c);
		if (err)
			c->request = NULL;
	}
	pthread_mutex_unlock(&all->lock);
	return err;
}

static void post(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	int err = give(service->telegrams, r);

	if (!err)
		return;
	refuse(r, AT_ONCE, "are being carried out");
	sl_http_finish(r);
}

int sl_telegrams_open(struct sl_service *service, struct sl_telegrams **telegrams)
{
	struct sl_telegrams *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->shared = sl_shared_status_open();
	if (!all->shared) {
		free(all);
		return -ENOMEM;
	}
	all->service = service;
	pthread_mutex_init(&all->lock, NULL);
	pthread_cond_init(&all->changed, NULL);
	for (unsigned i = 0; i < AT_ONCE; i++)
		all->carrier[i].all = all;
	*telegrams = all;
	return 0;
}

void sl_telegrams_end(struct sl_telegrams *all)
{
	if (!all)
		return;
	pthread_mutex_lock(&all->lock);
	all->ends = true;
	for (unsigned i = 0; i < AT_ONCE; i++)
		while (all->carrier[i].request)
			pthread_cond_wait(&all->changed, &all->lock);
	pthread_mutex_unlock(&all->lock);
	for (unsigned i = 0; i < AT_ONCE; i++)
		sl_thread_join(&all->carrier[i].thread);
}

void sl_telegrams_close(struct sl_telegrams *all)
{
	if (!all)
		return;
	sl_telegrams_end(all);
	sl_shared_status_close(all->shared);
	pthread_cond_destroy(&all->changed);
	pthread_mutex_destroy(&all->lock);
	free(all);
}

const struct sl_http_route sl_telegram_routes[] = {
	{.method = "POST",
	 .pattern = "/api/v1/telegram",
	 .role = SL_ROLE_OPERATE,
	 .how = SL_HTTP_LATER,
	 .handle = post,
	 .doc = "Carry out the requests of an XML document, in order, until one fails; overrides "
		"need the role configure.",
	 .body = "application/xml",
	 .body_optional = true, /* an empty one is answered as XML, too */
	 .said = {{200, "application/xml", NULL,
		   "the reply; its `result` says whether all was done"},
		  {400, "application/xml", NULL, "the document was not understood"},
		  {503, "application/json", "error", "too many telegrams are under way"}}},
	{NULL},
};
