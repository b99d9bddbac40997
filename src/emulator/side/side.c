/* side.c - a detector side is made and unmade; calls from any thread become flags and a wish. */
#include "emulator/side/side.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/side/private.h"
#include "session/errors.h"
#include "session/states.h"

/* ---- between threads ---- */

void sl_side_set_state(struct sl_side *s, enum sl_state state)
{
	pthread_mutex_lock(&s->lock);
	atomic_store(&s->state, state);
	if (state == SL_STATE_ENDED || state == SL_STATE_FAULT)
		s->busy = s->arming = false;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	sl_socket_wake(s->socket);
}

enum sl_state sl_side_state(struct sl_side *s)
{
	return (enum sl_state)atomic_load(&s->state);
}

const char *sl_side_name(const struct sl_side *s)
{
	return sl_socket_name(s->socket);
}

bool sl_side_asked_to_close(const struct sl_side *s)
{
	return sl_socket_asked_to_close(s->socket);
}

/* ---- errors ---- */

/* Every line of this side's threads. The first error of a step explains why the step failed. */
static void take_line(void *arg, enum sl_log_level level, const char *line)
{
	struct sl_side *s = arg;

	if (level == SL_LOG_ERROR) {
		pthread_mutex_lock(&s->lock);
		if (!s->line[0])
			snprintf(s->line, sizeof(s->line), "%s", line);
		pthread_mutex_unlock(&s->lock);
	}
	sl_log_set_target(NULL);
	sl_log_line(level, line);
	sl_log_set_target(&s->log);
}

int sl_side_fail(struct sl_side *s, enum sl_error_code code, int err, const char *message)
{
	pthread_mutex_lock(&s->lock);
	if (!s->error.code) {
		s->error = (struct sl_error){.code = code, .err = err};
		sl_error_from_line(s->line[0] ? s->line : message, &s->error);
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

void sl_side_forget_line(struct sl_side *s)
{
	pthread_mutex_lock(&s->lock);
	s->line[0] = '\0';
	pthread_mutex_unlock(&s->lock);
}

void sl_side_error(struct sl_side *s, struct sl_error *error)
{
	pthread_mutex_lock(&s->lock);
	*error = s->error;
	pthread_mutex_unlock(&s->lock);
}

/* ---- calls ---- */

/* As sessions have it, but for pause: what it sends is paced by the credits of its receiver. */
static bool allows(const struct sl_side *s, enum sl_request_call call)
{
	enum sl_state state = (enum sl_state)atomic_load(&s->state);

	switch (call) {
	case SL_REQUEST_CONFIGURE:
		return !s->busy && sl_session_allows(SL_CALL_CONFIGURE, state);
	case SL_REQUEST_ARM:
		return !s->busy && sl_session_allows(SL_CALL_ARM, state);
	case SL_REQUEST_START:
		return s->arming || (!s->busy && sl_session_allows(SL_CALL_START, state));
	case SL_REQUEST_STOP:
	case SL_REQUEST_ABORT:
	case SL_REQUEST_CLOSE:
		return true;
	default:
		return false;
	}
}

bool sl_side_takes(struct sl_side *s, enum sl_request_call call)
{
	bool possible;

	pthread_mutex_lock(&s->lock);
	possible = allows(s, call);
	pthread_mutex_unlock(&s->lock);
	return possible;
}

/* The next run begins: what was said of the one before no longer holds. With the lock held. */
static void begin(struct sl_side *s, bool start)
{
	s->busy = s->arming = s->wanted = true;
	s->error = (struct sl_error){.code = SL_ERROR_NONE};
	s->line[0] = s->reason[0] = '\0';
	s->result = -1;
	s->started_unix_ns = s->ended_unix_ns = 0;
	s->run++;
	for (unsigned i = 0; i < s->streams; i++)
		sl_side_begin_stream(&s->stream[i]);
	atomic_store(&s->stop, 0);
	atomic_store(&s->hurry, 0);
	atomic_store(&s->abort, 0);
	atomic_store(&s->hold, !start);
	atomic_store(&s->state, SL_STATE_CONFIGURED);
	pthread_cond_broadcast(&s->changed);
}

int sl_side_arm(struct sl_side *s)
{
	int err = 0;

	pthread_mutex_lock(&s->lock);
	if (allows(s, SL_REQUEST_ARM))
		begin(s, false);
	else
		err = -EPROTO;
	pthread_mutex_unlock(&s->lock);
	return err;
}

int sl_side_start(struct sl_side *s)
{
	int err = 0;

	pthread_mutex_lock(&s->lock);
	if (!allows(s, SL_REQUEST_START))
		err = -EPROTO;
	else if (s->arming) /* with the lock held: it is meant for this run */
		atomic_store(&s->hold, 0);
	else
		begin(s, true);
	pthread_mutex_unlock(&s->lock);
	return err;
}

static void end(struct sl_side *s, const char *reason, bool at_once)
{
	pthread_mutex_lock(&s->lock);
	if (s->arming && !s->reason[0])
		snprintf(s->reason, sizeof(s->reason), "%s", reason ? reason : "request");
	if (s->arming) {
		atomic_store(&s->stop, 1);
		if (at_once)
			atomic_store(&s->abort, 1);
		if (atomic_load(&s->state) == SL_STATE_RUNNING)
			atomic_store(&s->state, SL_STATE_STOPPING);
	}
	pthread_mutex_unlock(&s->lock);
	sl_socket_wake(s->socket);
}

void sl_side_stop(struct sl_side *s, const char *reason)
{
	end(s, reason, false);
}

void sl_side_abort(struct sl_side *s, const char *reason)
{
	end(s, reason, true);
}

/* With the lock held: the status shows them. */
static int add_sets(struct sl_side *s, const char *const *set, size_t sets)
{
	if (sets > SL_SIDE_SETS - s->sets)
		return -E2BIG;
	for (size_t i = 0; i < sets; i++) {
		s->set[s->sets] = strdup(set[i]);
		if (!s->set[s->sets])
			return -ENOMEM;
		s->sets++;
	}
	return 0;
}

/* While the control thread rests. */
int sl_side_configure(struct sl_side *s, const char *const *set, size_t sets)
{
	const struct sl_log_target *before = sl_log_target();
	bool possible;
	int err = 0;

	pthread_mutex_lock(&s->lock);
	possible = allows(s, SL_REQUEST_CONFIGURE);
	if (possible) {
		s->busy = true;
		s->error = (struct sl_error){.code = SL_ERROR_NONE};
		s->line[0] = '\0';
		while (s->sets > s->option_sets)
			free(s->set[--s->sets]);
		err = add_sets(s, set, sets);
	}
	pthread_mutex_unlock(&s->lock);
	if (!possible)
		return -EPROTO;
	sl_log_set_target(&s->log);
	if (err)
		sl_error("configure: more than %d overrides, or no memory", SL_SIDE_SETS);
	else
		err = sl_side_read(s);
	if (err)
		sl_side_fail(s, SL_ERROR_EXPERIMENT, err, strerror(-err));
	sl_log_set_target(before);
	pthread_mutex_lock(&s->lock);
	s->busy = false;
	pthread_mutex_unlock(&s->lock);
	sl_side_set_state(s, err ? SL_STATE_FAULT : SL_STATE_CONFIGURED);
	return err;
}

/* ---- open and close ---- */

static void free_side(struct sl_side *s)
{
	sl_side_close_socket(s);
	sl_side_free_streams(s->stream, s->streams);
	while (s->sets)
		free(s->set[--s->sets]);
	free((char *)s->options.path);
	free((char *)s->options.name);
	free((char *)s->options.transfer);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int copy_options(struct sl_side *s, const struct sl_side_options *o)
{
	int err;

	s->options = *o;
	s->options.path = strdup(o->path);
	s->options.name = strdup(o->name);
	s->options.transfer = strdup(o->transfer ? o->transfer : "");
	err = add_sets(s, o->set, o->sets);
	s->option_sets = s->sets;
	s->options.set = NULL;
	if (!s->options.path || !s->options.name || !s->options.transfer)
		return -ENOMEM;
	return err;
}

int sl_side_open(const struct sl_side_options *options, struct sl_side **side)
{
	const struct sl_log_target *before = sl_log_target();
	struct sl_side *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	s->result = -1;
	s->log = (struct sl_log_target){take_line, s};
	sl_log_set_target(&s->log);
	err = copy_options(s, options);
	if (!err)
		err = sl_side_read(s);
	atomic_store(&s->state, SL_STATE_CONFIGURED);
	if (!err)
		err = sl_side_open_socket(s);
	if (!err)
		err = sl_thread_start(&s->thread, "control", NULL, sl_side_main, s);
	sl_log_set_target(before);
	if (err) {
		free_side(s);
		return err;
	}
	*side = s;
	return 0;
}

void sl_side_close(struct sl_side *s)
{
	if (!s)
		return;
	sl_socket_quiesce(s->socket);
	sl_side_stop(s, "close");
	pthread_mutex_lock(&s->lock);
	s->closing = true;
	atomic_store(&s->hurry, 1);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	sl_thread_join(&s->thread);
	free_side(s);
}
