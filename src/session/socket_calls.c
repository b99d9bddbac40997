/* socket_calls.c - what requests of the status socket do. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "session/metadata.h"
#include "session/socket_private.h"
#include "session/states.h"

#define SAMPLE_NS UINT64_C(1000000000)

/* ---- status ---- */

void sl_socket_look(struct sl_socket *s)
{
	const struct sl_status *now = &s->status;

	if (sl_session_status(s->session, &s->status, sizeof(s->status)))
		return;
	if (now->run == s->facts.run && !strcmp(now->folder, s->facts.folder))
		return;
	s->facts.run = now->run;
	snprintf(s->facts.folder, sizeof(s->facts.folder), "%s", now->folder);
	sl_registry_publish(&s->claim, &s->facts);
}

void sl_socket_sample(struct sl_socket *s, uint64_t now_ns)
{
	sl_socket_look(s);
	s->sample[0] = s->sample[1];
	s->sample[1] = (struct sl_socket_sample){s->status.taken_ns, s->status.frames,
						 s->status.pixel_bytes, s->status.run};
	s->sample_next_ns = now_ns + SAMPLE_NS;
}

static bool is_before(const struct sl_socket_sample *from, const struct sl_status *now)
{
	return from->ns && now->taken_ns > from->ns && now->run == from->run &&
	       now->frames >= from->frames && now->pixel_bytes >= from->bytes;
}

/* Over one to two seconds; from the first frame on, in the first seconds of a run. 0 when no run is
 * under way. */
static struct sl_rates rates(const struct sl_socket *s)
{
	const struct sl_status *now = &s->status;
	const struct sl_socket_sample first = {now->first_ns, 0, 0, now->run};
	const struct sl_socket_sample *from = &s->sample[!is_before(&s->sample[0], now)];
	struct sl_rates r = {0};
	double seconds;

	if (now->state == SL_STATE_ENDED || now->state == SL_STATE_FAULT)
		return r;
	if (first.ns && (!is_before(from, now) || first.ns > from->ns))
		from = &first;
	if (!is_before(from, now))
		return r;
	r.window_ns = now->taken_ns - from->ns;
	seconds = (double)r.window_ns * 1e-9;
	r.frames_per_s = (double)(now->frames - from->frames) / seconds;
	r.bytes_per_s = (double)(now->pixel_bytes - from->bytes) / seconds;
	return r;
}

char *sl_socket_status_line(struct sl_socket *s, const char *call)
{
	struct sl_error error;
	struct sl_status_document document = {
		.status = &s->status, .error = &error, .metadata = &s->metadata};

	sl_socket_look(s);
	sl_session_error(s->session, &error);
	sl_session_copy_metadata(s->session, &s->metadata);
	document.rates = rates(s);
	document.taken_unix_ns = sl_clock_unix_ns();
	return sl_reply_status(call, &document);
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

static int do_change(struct sl_socket *s, const struct sl_request *r)
{
	/* `sluice run` may not have begun its run yet, and a stop before that has no effect. */
	if (s->session->hooks.single && (r->call == SL_REQUEST_STOP || r->call == SL_REQUEST_ABORT))
		atomic_store(&s->close_asked, true);
	switch (r->call) {
	case SL_REQUEST_ARM:
		return sl_session_arm(s->session);
	case SL_REQUEST_START:
		return sl_session_start(s->session);
	case SL_REQUEST_PAUSE:
		return sl_session_pause(s->session);
	case SL_REQUEST_RESUME:
		return sl_session_resume(s->session);
	case SL_REQUEST_STOP:
		sl_session_stop(s->session, r->reason);
		return 0;
	case SL_REQUEST_ABORT:
		sl_session_abort(s->session, r->reason);
		return 0;
	case SL_REQUEST_CLOSE:
		atomic_store(&s->close_asked, true);
		sl_session_stop(s->session, "close");
		return 0;
	default:
		return -EINVAL;
	}
}

static void *configure(void *arg)
{
	struct sl_socket *s = arg;
	struct sl_socket_worker *w = &s->worker;

	w->err = sl_session_configure(s->session, w->request.set, w->request.sets);
	atomic_store(&w->done, true);	      /* pairs with the load in sl_socket_end_configure() */
	atomic_store(&s->configuring, false); /* pairs with the load in sl_socket_quiesce() */
	sl_socket_wake(s);
	return NULL;
}

/* On a thread of its own: it reads files. The worker has the request then. */
static int begin_configure(struct sl_socket *s, struct sl_socket_client *c, struct sl_request *r)
{
	struct sl_socket_worker *w = &s->worker;
	int err;

	if (w->busy)
		return -EPROTO;
	w->request = *r;
	w->client = c;
	atomic_store(&w->done, false);
	atomic_store(&s->configuring, true);
	err = sl_thread_start(&w->thread, "configure", NULL, configure, s);
	if (err) {
		atomic_store(&s->configuring, false);
		return err;
	}
	w->busy = c->configures = true;
	r->json = NULL;
	return 0;
}

static void reply_failed(struct sl_socket *s, struct sl_socket_client *c, const char *name, int err,
			 uint64_t now_ns)
{
	char message[200];

	if (err == -EPROTO) {
		snprintf(message, sizeof(message), "%s: not possible while the session is %s", name,
			 sl_state_name(atomic_load(&s->session->state)));
		sl_socket_reply_error(c, SL_ERROR_STATE, message,
				      "sluice list states shows what is possible when", now_ns);
	} else if (err == -ENOTSUP) {
		snprintf(message, sizeof(message),
			 "the source of module %d takes no credits and cannot wait",
			 sl_session_cannot_wait(s->session));
		sl_socket_reply_error(c, SL_ERROR_STATE, message, "stop the run instead", now_ns);
	} else {
		snprintf(message, sizeof(message), "%s: %s", name, strerror(-err));
		sl_socket_reply_error(c, SL_ERROR_SYSTEM, message, "", now_ns);
	}
}

void sl_socket_end_configure(struct sl_socket *s, uint64_t now_ns)
{
	struct sl_socket_worker *w = &s->worker;
	struct sl_error error;

	if (!w->busy || !atomic_load(&w->done))
		return;
	sl_thread_join(&w->thread);
	w->busy = false;
	sl_request_free(&w->request);
	if (!w->client)
		return;
	w->client->configures = false;
	sl_session_error(s->session, &error);
	if (!w->err)
		sl_socket_reply(w->client,
				sl_reply_ok("configure", atomic_load(&s->session->state)), now_ns);
	else if (w->err != -EPROTO && error.code)
		sl_socket_reply(w->client, sl_reply_error(&error), now_ns);
	else
		reply_failed(s, w->client, "configure", w->err, now_ns);
	w->client = NULL;
}

/* `sluice run` takes one run and ends. */
static bool is_of_one_run(const struct sl_socket *s, enum sl_request_call call)
{
	return s->session->hooks.single &&
	       (call == SL_REQUEST_CONFIGURE || call == SL_REQUEST_ARM || call == SL_REQUEST_START);
}

static void change(struct sl_socket *s, struct sl_socket_client *c, struct sl_request *r,
		   uint64_t now_ns)
{
	bool quiet;
	int err = 0;

	if (is_of_one_run(s, r->call)) {
		sl_socket_reply_error(c, SL_ERROR_STATE,
				      "this is 'sluice run', which takes one run and ends",
				      "use a session for several runs", now_ns);
		return;
	}
	/* Asked before the call: a call that is refused is logged, and a client could fill the log.
	 */
	pthread_mutex_lock(&s->gate);
	quiet = s->quiet;
	if (quiet || !sl_session_takes(s->session, call_of(r->call)))
		err = -EPROTO;
	else if (r->call == SL_REQUEST_CONFIGURE)
		err = begin_configure(s, c, r);
	else
		err = do_change(s, r);
	pthread_mutex_unlock(&s->gate);
	if (quiet)
		sl_socket_reply_error(c, SL_ERROR_STATE, "the session is closing", "", now_ns);
	else if (err)
		reply_failed(s, c, r->name, err, now_ns);
	else if (r->call != SL_REQUEST_CONFIGURE)
		sl_socket_reply(c, sl_reply_ok(r->name, atomic_load(&s->session->state)), now_ns);
}

/* ---- other requests ---- */

static void metadata(struct sl_socket *s, struct sl_socket_client *c, const struct sl_request *r,
		     uint64_t now_ns)
{
	const char *key[SL_REQUEST_METADATA], *value[SL_REQUEST_METADATA];
	char message[400], why[300];
	size_t bad;
	int err;

	for (uint32_t i = 0; i < r->metadata_set; i++) {
		key[i] = r->metadata[i].key;
		value[i] = r->metadata[i].value;
	}
	err = sl_session_change_metadata(s->session, key, value, r->metadata_set, r->keep, &bad,
					 why, sizeof(why));
	if (!err) {
		sl_session_copy_next_metadata(s->session, &s->metadata);
		sl_socket_reply(c, sl_reply_metadata(&s->metadata), now_ns);
		return;
	}
	snprintf(message, sizeof(message), "metadata: '%.70s': %s", key[bad], why);
	sl_socket_reply_error(c, SL_ERROR_REQUEST, message, "", now_ns);
}

static void point(struct sl_socket *s, struct sl_socket_client *c, const struct sl_request *r,
		  uint64_t now_ns)
{
	enum sl_state state = (enum sl_state)atomic_load(&s->session->state);
	char message[300], why[200];
	uint64_t number;
	int err = sl_points_add(&s->session->points, r, &number, why, sizeof(why));

	if (!err) {
		sl_socket_reply(c, sl_reply_point(number, state), now_ns);
		return;
	}
	snprintf(message, sizeof(message), "point: %s", why);
	sl_socket_reply_error(c,
			      err == -EPROTO   ? SL_ERROR_STATE
			      : err == -ENOMEM ? SL_ERROR_SYSTEM
					       : SL_ERROR_REQUEST,
			      message, "", now_ns);
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
		enum sl_state state = (enum sl_state)atomic_load(&s->session->state);

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
			sl_socket_reply(c, sl_reply_ok(r->name, atomic_load(&s->session->state)),
					now_ns);
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
