/* session.c - sessions: calls from any thread become wishes of the control thread. */
#include "session/session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "flight/recorder.h"
#include "monitor/result.h"
#include "session/errors.h"
#include "session/private.h"

#ifndef SL_VERSION
#define SL_VERSION "unknown"
#endif

const char *sl_version(void)
{
	return SL_VERSION;
}

/* ---- between threads ---- */

void sl_session_set_state(struct sl_session *s, enum sl_state state)
{
	pthread_mutex_lock(&s->lock);
	atomic_store(&s->state, state);
	if (state == SL_STATE_ENDED || state == SL_STATE_FAULT)
		s->busy = s->arming = false;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	sl_socket_wake(s->socket);
}

bool sl_session_wants(const struct sl_session *s, uint32_t which)
{
	return atomic_load(&s->wish) & which;
}

uint32_t sl_session_wishes(struct sl_session *s, uint32_t which)
{
	return atomic_fetch_and(&s->wish, ~which) & which;
}

/* In a signal handler, too: an atomic and a write. */
void sl_session_wish(struct sl_session *s, uint32_t what)
{
	const uint64_t one = 1;

	atomic_fetch_or(&s->wish, what);
	while (write(s->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void wait_for_wish(struct sl_session *s)
{
	struct pollfd fd = {.fd = s->wake, .events = POLLIN};
	uint64_t count;

	poll(&fd, 1, -1);
	if (read(s->wake, &count, sizeof(count)) < 0)
		return;
}

void *sl_session_main(void *arg)
{
	struct sl_session *s = arg;

	while (!sl_session_wants(s, SL_WISH_CLOSE)) {
		if (sl_session_wishes(s, SL_WISH_ARM))
			sl_session_run(s);
		else
			wait_for_wish(s);
	}
	return NULL;
}

/* ---- errors ---- */

static bool in(const struct sl_session *s, uint32_t states)
{
	return 1u << atomic_load(&s->state) & states;
}

static bool allows(const struct sl_session *s, enum sl_session_call call)
{
	return sl_session_allows(call, atomic_load(&s->state));
}

int sl_session_fail(struct sl_session *s, enum sl_error_code code, int err, const char *message)
{
	pthread_mutex_lock(&s->lock);
	if (!s->error.code) {
		s->error = (struct sl_error){.code = code, .err = err};
		sl_error_from_line(s->line[0] ? s->line : message, &s->error);
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

void sl_session_forget_line(struct sl_session *s)
{
	pthread_mutex_lock(&s->lock);
	s->line[0] = '\0';
	pthread_mutex_unlock(&s->lock);
}

void sl_session_error(struct sl_session *s, struct sl_error *error)
{
	pthread_mutex_lock(&s->lock);
	*error = s->error;
	pthread_mutex_unlock(&s->lock);
}

bool sl_session_takes(struct sl_session *s, enum sl_session_call call)
{
	bool possible;

	pthread_mutex_lock(&s->lock);
	possible = allows(s, call);
	if (call == SL_CALL_CONFIGURE || call == SL_CALL_ARM)
		possible &= !s->busy;
	else if (call == SL_CALL_START)
		possible &= !s->busy || s->arming;
	else if (call == SL_CALL_PAUSE)
		possible &= s->receiver != NULL;
	pthread_mutex_unlock(&s->lock);
	return possible;
}

/* A call that the state does not allow. The run's own error, if it has one, stays. */
static int refuse(struct sl_session *s, enum sl_session_call call)
{
	const struct sl_log_target *before = sl_log_target();

	sl_log_set_target(&s->log);
	sl_warn("%s: not possible while the session is %s", sl_session_rules[call].name,
		allows(s, call) ? "at work" : sl_state_name(atomic_load(&s->state)));
	sl_log_set_target(before);
	return -EPROTO;
}

/* ---- calls ---- */

/* Between two runs, while the control thread rests. */
int sl_session_configure(struct sl_session *s, const char *const *set, size_t sets)
{
	const struct sl_log_target *before = sl_log_target();
	bool possible;
	int err;

	pthread_mutex_lock(&s->lock);
	possible = !s->busy && allows(s, SL_CALL_CONFIGURE);
	if (possible) {
		s->busy = true; /* no other call comes between */
		s->error = (struct sl_error){.code = SL_ERROR_NONE};
		s->line[0] = '\0';
	}
	pthread_mutex_unlock(&s->lock);
	if (!possible)
		return refuse(s, SL_CALL_CONFIGURE);
	sl_log_set_target(&s->log);
	sl_session_release(s, false);
	while (s->sets > s->option_sets)
		free(s->set[--s->sets]);
	err = sl_session_add_sets(s, set, sets);
	if (!err)
		err = sl_session_read(s);
	if (err)
		sl_session_fail(s, SL_ERROR_EXPERIMENT, err, strerror(-err));
	sl_log_set_target(before);
	pthread_mutex_lock(&s->lock);
	s->busy = false;
	pthread_mutex_unlock(&s->lock);
	sl_session_set_state(s, err ? SL_STATE_FAULT : SL_STATE_CONFIGURED);
	return err;
}

/* The next run begins: what was said of the one before no longer holds. */
static int begin(struct sl_session *s, enum sl_session_call call, uint32_t wishes)
{
	bool possible;

	pthread_mutex_lock(&s->lock);
	possible = !s->busy && allows(s, call);
	if (possible) {
		s->busy = s->arming = true;
		s->error = (struct sl_error){.code = SL_ERROR_NONE};
		s->line[0] = '\0';
		memset(&s->last, 0, sizeof(s->last));
		s->last.result = -1;
		s->run = 0;
		s->run_folder[0] = s->flight_path[0] = '\0';
		sl_session_begin_metadata(s);
		sl_points_begin(&s->points);
		atomic_store(&s->reason_state, 0);
		atomic_store(&s->wish, 0);
		atomic_store(&s->state, SL_STATE_CONFIGURED);
		sl_session_wish(s, wishes);
	}
	pthread_mutex_unlock(&s->lock);
	return possible ? 0 : refuse(s, call);
}

int sl_session_arm(struct sl_session *s)
{
	return begin(s, SL_CALL_ARM, SL_WISH_ARM);
}

int sl_session_start(struct sl_session *s)
{
	bool arms;

	pthread_mutex_lock(&s->lock);
	arms = s->arming && in(s, 1 << SL_STATE_CONFIGURED | 1 << SL_STATE_ARMED);
	if (arms) /* with the lock held: the wish is for this run and no later one */
		sl_session_wish(s, SL_WISH_START);
	pthread_mutex_unlock(&s->lock);
	return arms ? 0 : begin(s, SL_CALL_START, SL_WISH_ARM | SL_WISH_START);
}

static int cannot_pause(struct sl_session *s, int module)
{
	const struct sl_log_target *before = sl_log_target();

	sl_log_set_target(&s->log);
	sl_warn("the source of module %d takes no credits and cannot wait; stop the run instead",
		module);
	sl_log_set_target(before);
	return -ENOTSUP;
}

int sl_session_cannot_wait(struct sl_session *s)
{
	int module;

	pthread_mutex_lock(&s->lock);
	module = s->receiver ? sl_receiver_cannot_wait(s->receiver) : -1;
	pthread_mutex_unlock(&s->lock);
	return module;
}

int sl_session_pause(struct sl_session *s)
{
	int module = -1;
	bool possible;

	pthread_mutex_lock(&s->lock);
	possible = s->receiver && allows(s, SL_CALL_PAUSE);
	if (possible)
		module = sl_receiver_cannot_wait(s->receiver);
	if (possible && module < 0 && sl_session_wants(s, SL_WISH_PAUSE))
		sl_receiver_pause(s->receiver,
				  true); /* sooner than behind the frames it was to take */
	else if (possible && module < 0)
		sl_session_wish(s, SL_WISH_PAUSE);
	pthread_mutex_unlock(&s->lock);
	if (!possible)
		return refuse(s, SL_CALL_PAUSE);
	return module < 0 ? 0 : cannot_pause(s, module);
}

int sl_session_resume(struct sl_session *s)
{
	if (!allows(s, SL_CALL_RESUME))
		return refuse(s, SL_CALL_RESUME);
	sl_session_wishes(s, SL_WISH_PAUSE);
	return 0;
}

int sl_session_start_for(struct sl_session *s, uint64_t frames)
{
	int err = -EAGAIN;

	pthread_mutex_lock(&s->lock);
	if (s->receiver && s->arming && in(s, 1 << SL_STATE_ARMED)) {
		err = sl_receiver_cannot_wait(s->receiver) < 0 ? 0 : -ENOTSUP;
		if (!err) {
			sl_receiver_pause_at(s->receiver, frames);
			sl_session_wish(s, SL_WISH_START | SL_WISH_PAUSE);
		}
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

int sl_session_resume_for(struct sl_session *s, uint64_t frames)
{
	uint64_t next;
	int err = -EAGAIN;

	pthread_mutex_lock(&s->lock);
	if (s->receiver && in(s, 1 << SL_STATE_PAUSED) && sl_session_wants(s, SL_WISH_PAUSE) &&
	    sl_receiver_is_drained(s->receiver, &next)) {
		sl_receiver_pause_at(s->receiver, next + frames);
		atomic_store(&s->state, SL_STATE_RUNNING);
		pthread_cond_broadcast(&s->changed);
		err = 0;
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

/* In a signal handler, too. The first reason stays. */
static void end(struct sl_session *s, const char *reason, uint32_t what)
{
	uint32_t none = 0;

	if (atomic_compare_exchange_strong(&s->reason_state, &none, 1)) {
		size_t n = 0;

		for (reason = reason ? reason : "request"; reason[n] && n < sizeof(s->reason) - 1;
		     n++)
			s->reason[n] = reason[n];
		s->reason[n] = '\0';
		atomic_store(&s->reason_state, 2);
	}
	sl_session_wish(s, what);
}

void sl_session_copy_reason(const struct sl_session *s, char *text, size_t bytes)
{
	snprintf(text, bytes, "%s", atomic_load(&s->reason_state) == 2 ? s->reason : "");
}

void sl_session_stop(struct sl_session *s, const char *reason)
{
	end(s, reason, SL_WISH_STOP);
}

void sl_session_abort(struct sl_session *s, const char *reason)
{
	end(s, reason, SL_WISH_STOP | SL_WISH_ABORT);
}

bool sl_session_asked_to_close(const struct sl_session *s)
{
	return sl_socket_asked_to_close(s->socket);
}

void sl_session_no_front_end(struct sl_session *s)
{
	sl_session_wish(s, SL_WISH_NO_FRONT_END);
}

static bool has_ended(const struct sl_session *s)
{
	return in(s, 1 << SL_STATE_ENDED | 1 << SL_STATE_FAULT);
}

int sl_session_wait(struct sl_session *s, uint32_t states, int timeout_ms)
{
	uint64_t end_ns = sl_clock_ns() + (uint64_t)timeout_ms * 1000000;
	const struct timespec until = {.tv_sec = (time_t)(end_ns / 1000000000),
				       .tv_nsec = (long)(end_ns % 1000000000)};
	int err = 0, state;

	pthread_mutex_lock(&s->lock);
	while (!in(s, states) && !has_ended(s) && !err)
		err = timeout_ms < 0 ? pthread_cond_wait(&s->changed, &s->lock)
				     : pthread_cond_timedwait(&s->changed, &s->lock, &until);
	state = in(s, states) || has_ended(s) ? (int)atomic_load(&s->state) : -ETIMEDOUT;
	pthread_mutex_unlock(&s->lock);
	return state;
}

int sl_session_status(struct sl_session *s, struct sl_status *status, size_t bytes)
{
	struct sl_status *now = calloc(1, sizeof(*now));

	if (!now)
		return -ENOMEM;
	pthread_mutex_lock(&s->lock);
	if (s->receiver && s->last.result < 0) {
		sl_receiver_status(s->receiver, now);
		now->started_unix_ns = s->started_unix_ns;
		snprintf(now->experiment, sizeof(now->experiment), "%s", s->name);
		if (sl_recorder_is_frozen(s->recorder))
			snprintf(now->flight, sizeof(now->flight), "%s", s->flight_path);
	} else {
		*now = s->last;
		now->bytes = sizeof(*now);
		now->taken_ns = sl_clock_ns();
	}
	now->state = atomic_load(&s->state);
	now->run = s->run;
	snprintf(now->folder, sizeof(now->folder), "%s", s->run_folder);
	memcpy(now->detector, s->asked.detector, sizeof(now->detector));
	now->detector_frames = s->asked.frames;
	now->detector_dark_frames = s->asked.dark_frames;
	now->detector_rate_Hz = s->asked.rate_Hz;
	if (!has_ended(s))
		now->result = -1; /* a front end may still have a say */
	snprintf(now->session, sizeof(now->session), "%s", sl_socket_name(s->socket));
	pthread_mutex_unlock(&s->lock);
	memset(status, 0, bytes);
	memcpy(status, now, bytes < sizeof(*now) ? bytes : sizeof(*now));
	free(now);
	return 0;
}

int sl_session_exit(struct sl_session *s)
{
	int status;

	pthread_mutex_lock(&s->lock);
	status = s->error.code || s->last.result < 0
			 ? SL_RESULT_ERROR
			 : sl_result_exit((enum sl_result)s->last.result);
	pthread_mutex_unlock(&s->lock);
	return status;
}
