/* calls.c - what requests of a status socket do. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "monitor/status_json.h"
#include "session/socket/private.h"

#define SAMPLE_NS UINT64_C(1000000000)

int sl_socket_refuse(struct sl_error *error, enum sl_error_code code, const char *hint,
		     const char *format, ...)
{
	va_list list;

	memset(error, 0, sizeof(*error));
	error->code = code;
	error->err = -EPROTO;
	snprintf(error->hint, sizeof(error->hint), "%s", hint);
	va_start(list, format);
	vsnprintf(error->message, sizeof(error->message), format, list);
	va_end(list);
	return -EPROTO;
}

/* ---- status ---- */

void sl_socket_look(struct sl_socket *s)
{
	struct sl_registry_facts now = s->facts;

	s->ops->look(s->arg, &now);
	if (now.run == s->facts.run && !strcmp(now.folder, s->facts.folder))
		return;
	s->facts = now;
	sl_registry_publish(&s->claim, &s->facts);
}

void sl_socket_sample(struct sl_socket *s, uint64_t now_ns)
{
	sl_socket_look(s);
	s->ops->sample(s->arg);
	s->sample_next_ns = now_ns + SAMPLE_NS;
}

char *sl_socket_status_line(struct sl_socket *s, const char *call)
{
	sl_socket_look(s);
	return s->ops->status(s->arg, call);
}

/* ---- calls that change something ---- */

static void *configure(void *arg)
{
	struct sl_socket *s = arg;
	struct sl_socket_worker *w = &s->worker;

	w->err = s->ops->configure(s->arg, &w->request, &w->error);
	atomic_store(&w->done, true);	      /* pairs with the load in sl_socket_end_configure() */
	atomic_store(&s->configuring, false); /* pairs with the load in sl_socket_quiesce() */
	sl_socket_wake(s);
	return NULL;
}

/* On a thread of its own: it reads files. The worker has the request then. */
static int begin_configure(struct sl_socket *s, struct sl_socket_client *c, struct sl_request *r,
			   struct sl_error *error)
{
	struct sl_socket_worker *w = &s->worker;
	int err;

	if (w->busy)
		return sl_socket_refuse(error, SL_ERROR_STATE, "",
					"configure: another one is under way");
	w->request = *r;
	w->client = c;
	w->error = (struct sl_error){.code = SL_ERROR_NONE};
	atomic_store(&w->done, false);
	atomic_store(&s->configuring, true);
	err = sl_thread_start(&w->thread, "configure", NULL, configure, s);
	if (err) {
		atomic_store(&s->configuring, false);
		return sl_socket_refuse(error, SL_ERROR_SYSTEM, "", "configure: %s",
					strerror(-err));
	}
	w->busy = c->configures = true;
	r->json = NULL;
	return 0;
}

void sl_socket_end_configure(struct sl_socket *s, uint64_t now_ns)
{
	struct sl_socket_worker *w = &s->worker;

	if (!w->busy || !atomic_load(&w->done))
		return;
	sl_thread_join(&w->thread);
	w->busy = false;
	sl_request_free(&w->request);
	if (!w->client)
		return;
	w->client->configures = false;
	sl_socket_reply(w->client,
			w->err ? sl_reply_error(&w->error)
			       : sl_reply_ok("configure", s->ops->state(s->arg)),
			now_ns);
	w->client = NULL;
}

static void change(struct sl_socket *s, struct sl_socket_client *c, struct sl_request *r,
		   uint64_t now_ns)
{
	struct sl_error error;
	int err;

	/* Asked before the call: a call that is refused may be logged, and a client could fill the
	 * log. */
	pthread_mutex_lock(&s->gate);
	if (s->quiet)
		err = sl_socket_refuse(&error, SL_ERROR_STATE, "", "the %s is closing",
				       s->ops->noun);
	else
		err = s->ops->check(s->arg, r, &error);
	if (!err && r->call == SL_REQUEST_CONFIGURE)
		err = begin_configure(s, c, r, &error);
	else if (!err)
		err = s->ops->change(s->arg, r, &error);
	pthread_mutex_unlock(&s->gate);
	if (err)
		sl_socket_reply(c, sl_reply_error(&error), now_ns);
	else if (r->call != SL_REQUEST_CONFIGURE)
		sl_socket_reply(c, sl_reply_ok(r->name, s->ops->state(s->arg)), now_ns);
}

/* ---- other requests ---- */

static void metadata(struct sl_socket *s, struct sl_socket_client *c, const struct sl_request *r,
		     uint64_t now_ns)
{
	struct sl_error error = {.code = SL_ERROR_NONE};
	char *line = s->ops->metadata(s->arg, r, &error);

	sl_socket_reply(c, line || !error.code ? line : sl_reply_error(&error), now_ns);
}

static void point(struct sl_socket *s, struct sl_socket_client *c, const struct sl_request *r,
		  uint64_t now_ns)
{
	struct sl_error error = {.code = SL_ERROR_NONE};
	char *line;

	if (!s->ops->point) {
		sl_socket_reply_error(c, SL_ERROR_REQUEST, "point: a detector side takes no points",
				      "tell the session that receives", now_ns);
		return;
	}
	line = s->ops->point(s->arg, r, &error);
	sl_socket_reply(c, line || !error.code ? line : sl_reply_error(&error), now_ns);
}

static void begin_wait(struct sl_socket_client *c, const struct sl_request *r, uint64_t now_ns)
{
	c->states = r->states | 1 << SL_STATE_ENDED | 1 << SL_STATE_FAULT;
	c->until_ns = r->timeout_ms < 0 ? UINT64_MAX : now_ns + (uint64_t)r->timeout_ms * 1000000;
}

void sl_socket_serve_waiting(struct sl_socket *s, uint64_t now_ns, bool all)
{
	for (unsigned i = 0; i < SL_SOCKET_CLIENTS; i++) {
		struct sl_socket_client *c = &s->client[i];
		enum sl_state state = s->ops->state(s->arg);

		if (c->fd < 0 || !c->states)
			continue;
		if (all || c->states >> state & 1)
			sl_socket_reply(c, sl_socket_status_line(s, "wait"), now_ns);
		else if (now_ns >= c->until_ns)
			sl_socket_reply_error(c, SL_ERROR_TIMEOUT,
					      "the state did not come within timeout_ms", "",
					      now_ns);
		else
			continue;
		c->states = 0;
	}
}

static void serve(struct sl_socket *s, struct sl_socket_client *c, struct sl_request *r,
		  uint64_t now_ns)
{
	switch (r->call) {
	case SL_REQUEST_STATUS:
		sl_socket_reply(c, sl_socket_status_line(s, r->name), now_ns);
		break;
	case SL_REQUEST_METADATA_CALL:
		metadata(s, c, r, now_ns);
		break;
	case SL_REQUEST_POINT:
		point(s, c, r, now_ns);
		break;
	case SL_REQUEST_WAIT:
		begin_wait(c, r, now_ns);
		break;
	case SL_REQUEST_WATCH:
		c->every_ns = (uint64_t)r->interval_ms * 1000000;
		c->next_ns = now_ns;
		if (!c->every_ns)
			sl_socket_reply(c, sl_reply_ok(r->name, s->ops->state(s->arg)), now_ns);
		break;
	default:
		change(s, c, r, now_ns);
		break;
	}
}

void sl_socket_serve_line(struct sl_socket *s, struct sl_socket_client *c, const char *line,
			  size_t length, uint64_t now_ns)
{
	struct sl_request request;
	char why[300];

	c->heard_ns = now_ns;
	c->follows = false;
	if (sl_request_parse(line, length, &request, why, sizeof(why))) {
		c->cut = ++c->bad >= SL_SOCKET_BAD;
		sl_socket_reply_error(c, SL_ERROR_REQUEST, why,
				      c->cut ? "too many such lines: the connection ends" : "",
				      now_ns);
		return;
	}
	c->follows = request.call == SL_REQUEST_STOP || request.call == SL_REQUEST_ABORT;
	serve(s, c, &request, now_ns);
	sl_request_free(&request);
}
