/* session.c - sessions: calls from any thread become wishes of the control thread. */
#include "session/session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "monitor/summary.h"
#include "session/errors.h"
#include "session/private.h"
#include "session/states.h"

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
		s->busy = false;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
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
static void wish(struct sl_session *s, uint32_t what)
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

static void *control_main(void *arg)
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

int sl_session_fail(struct sl_session *s, enum sl_error_code code, int err, const char *message)
{
	pthread_mutex_lock(&s->lock);
	if (!s->error.code) {
		s->error.code = code;
		s->error.err = err;
		if (!s->error.message[0])
			snprintf(s->error.message, sizeof(s->error.message), "%s", message);
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

/* Every line of this session's threads. The first error is kept, for sl_session_error(). */
static void take_line(void *arg, enum sl_log_level level, const char *line)
{
	struct sl_session *s = arg;

	if (level == SL_LOG_ERROR) {
		pthread_mutex_lock(&s->lock);
		if (!s->error.message[0])
			sl_error_from_line(line, &s->error);
		pthread_mutex_unlock(&s->lock);
	}
	if (s->log_line) {
		s->log_line(s->log_arg, level, line);
	} else {
		sl_log_set_target(NULL);
		sl_log(level, "%s", line);
		sl_log_set_target(&s->log);
	}
}

void sl_session_error(struct sl_session *s, struct sl_error *error)
{
	pthread_mutex_lock(&s->lock);
	*error = s->error;
	pthread_mutex_unlock(&s->lock);
}

/* A call that the state does not allow. */
static int refuse(struct sl_session *s, enum sl_session_call call)
{
	const struct sl_log_target *before = sl_log_target();

	sl_log_set_target(&s->log);
	sl_error("%s: not in state '%s'; docs/reference/states.md has the table",
		 sl_session_rules[call].name, sl_state_name(atomic_load(&s->state)));
	sl_log_set_target(before);
	return sl_session_fail(s, SL_ERROR_STATE, -EPROTO, "");
}

/* ---- opening ---- */

static char *copy_of(const char *text, int *err)
{
	char *copy = strdup(text ? text : "");

	if (!copy)
		*err = -ENOMEM;
	return copy;
}

/* A text is read as a file: the child that emulates gets the same descriptor. */
static int hold_text(struct sl_session *s, const char *text)
{
	size_t bytes = strlen(text);
	char path[32];
	int err = 0;

	s->text_fd = memfd_create("experiment", MFD_CLOEXEC);
	if (s->text_fd < 0)
		return -errno;
	while (bytes) {
		ssize_t n = write(s->text_fd, text, bytes);

		if (n < 0)
			return -errno;
		text += n;
		bytes -= (size_t)n;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->text_fd);
	s->path = copy_of(path, &err);
	return err;
}

static int add_sets(struct sl_session *s, const char *const *set, size_t sets)
{
	int err = 0;

	for (size_t i = 0; i < sets && !err; i++) {
		if (s->sets == SL_SESSION_SETS) {
			sl_error("more than %d overrides", SL_SESSION_SETS);
			return -E2BIG;
		}
		s->set[s->sets] = copy_of(set[i], &err);
		s->sets += !err;
	}
	return err;
}

static int copy_options(struct sl_session *s, const struct sl_session_options *o)
{
	int err = 0;

	s->text_fd = -1;
	if (!o->path == !o->text) {
		sl_error("a session needs either the path of an experiment or its text");
		return -EINVAL;
	}
	if (o->path)
		s->path = copy_of(o->path, &err);
	else
		err = hold_text(s, o->text);
	s->transfer = copy_of(o->transfer, &err);
	s->summary = copy_of(o->summary, &err);
	s->outcomes = copy_of(o->outcomes, &err);
	s->port_file = copy_of(o->port_file, &err);
	s->program = copy_of(o->program, &err);
	s->emulate = o->emulate;
	s->summary_version = o->summary_version ? o->summary_version : SL_SUMMARY_VERSION;
	if (!err)
		err = add_sets(s, o->set, o->sets);
	s->option_sets = s->sets;
	return err;
}

/* Read and check; the former experiment goes only if that succeeds. */
static int configure(struct sl_session *s)
{
	struct sl_experiment *e;
	int err = sl_experiment_open(s->path, s->transfer[0] ? s->transfer : NULL,
				     (const char *const *)s->set, s->sets, &e);

	if (err)
		return err;
	err = s->hooks.change ? s->hooks.change(s->hooks.arg, e) : 0;
	if (err) {
		sl_experiment_close(e);
		return err;
	}
	e->emulate_local |= s->emulate;
	s->transfer_path[0] = '\0';
	if (e->transfer[0])
		snprintf(s->transfer_path, sizeof(s->transfer_path), "transfers.%s.", e->transfer);
	if (s->experiment)
		sl_experiment_close(s->experiment);
	s->experiment = e;
	return 0;
}

static void free_session(struct sl_session *s)
{
	if (s->experiment)
		sl_experiment_close(s->experiment);
	for (unsigned i = 0; i < s->sets; i++)
		free(s->set[i]);
	free(s->path);
	free(s->transfer);
	free(s->summary);
	free(s->outcomes);
	free(s->port_file);
	free(s->program);
	if (s->text_fd >= 0)
		close(s->text_fd);
	if (s->wake >= 0)
		close(s->wake);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static struct sl_session *make(void)
{
	struct sl_session *s = calloc(1, sizeof(*s));
	pthread_condattr_t attributes;

	if (!s)
		return NULL;
	s->text_fd = s->wake = -1;
	s->keeper.socket = -1;
	s->last.result = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return s;
}

int sl_session_open_with(const struct sl_session_options *options,
			 const struct sl_session_hooks *hooks, struct sl_session **session,
			 struct sl_error *error)
{
	const struct sl_log_target *before = sl_log_target();
	struct sl_session_options known = {0};
	struct sl_session *s = make();
	int err;

	if (!s)
		return -ENOMEM;
	/* A program that was built with an older header knows fewer members. */
	memcpy(&known, options, options->bytes < sizeof(known) ? options->bytes : sizeof(known));
	s->log_line = known.log;
	s->log_arg = known.log_arg;
	s->log = (struct sl_log_target){take_line, s};
	if (hooks)
		s->hooks = *hooks;
	sl_log_set_target(&s->log);
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = s->wake < 0 ? -errno : copy_options(s, &known);
	if (!err)
		err = configure(s);
	if (!err) {
		atomic_store(&s->state, SL_STATE_CONFIGURED);
		err = sl_thread_start(&s->thread, "control", NULL, control_main, s);
	}
	sl_log_set_target(before);
	if (err) {
		sl_session_fail(s, err == -ENOMEM ? SL_ERROR_MEMORY : SL_ERROR_EXPERIMENT, err,
				strerror(-err));
		if (error)
			*error = s->error;
		free_session(s);
		return err;
	}
	*session = s;
	return 0;
}

int sl_session_open(const struct sl_session_options *options, struct sl_session **session,
		    struct sl_error *error)
{
	return sl_session_open_with(options, NULL, session, error);
}

void sl_session_close(struct sl_session *s)
{
	if (!s)
		return;
	wish(s, SL_WISH_CLOSE);
	sl_thread_join(&s->thread);
	free_session(s);
}

/* ---- calls ---- */

static bool in(const struct sl_session *s, uint32_t states)
{
	return 1u << atomic_load(&s->state) & states;
}

static bool allows(const struct sl_session *s, enum sl_session_call call)
{
	return sl_session_allows(call, atomic_load(&s->state));
}

/* Between two runs, while the control thread rests. */
int sl_session_configure(struct sl_session *s, const char *const *set, size_t sets)
{
	const struct sl_log_target *before = sl_log_target();
	bool possible;
	int err;

	pthread_mutex_lock(&s->lock);
	possible = !s->busy && allows(s, SL_CALL_CONFIGURE);
	if (possible)
		s->error = (struct sl_error){.code = SL_ERROR_NONE};
	pthread_mutex_unlock(&s->lock);
	if (!possible)
		return refuse(s, SL_CALL_CONFIGURE);
	sl_log_set_target(&s->log);
	while (s->sets > s->option_sets)
		free(s->set[--s->sets]);
	err = add_sets(s, set, sets);
	if (!err)
		err = configure(s);
	if (err)
		sl_session_fail(s, SL_ERROR_EXPERIMENT, err, strerror(-err));
	sl_log_set_target(before);
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
		s->busy = true;
		s->error = (struct sl_error){.code = SL_ERROR_NONE};
		memset(&s->last, 0, sizeof(s->last));
		s->last.result = -1;
		atomic_store(&s->by, NULL);
		atomic_store(&s->wish, 0);
		atomic_store(&s->state, SL_STATE_CONFIGURED);
	}
	pthread_mutex_unlock(&s->lock);
	if (!possible)
		return refuse(s, call);
	wish(s, wishes);
	return 0;
}

int sl_session_arm(struct sl_session *s)
{
	return begin(s, SL_CALL_ARM, SL_WISH_ARM);
}

int sl_session_start(struct sl_session *s)
{
	bool arms;

	pthread_mutex_lock(&s->lock);
	arms = s->busy && in(s, 1 << SL_STATE_CONFIGURED | 1 << SL_STATE_ARMED);
	pthread_mutex_unlock(&s->lock);
	if (!arms)
		return begin(s, SL_CALL_START, SL_WISH_ARM | SL_WISH_START);
	wish(s, SL_WISH_START);
	return 0;
}

static int cannot_pause(struct sl_session *s, uint32_t module)
{
	struct sl_error error = {.code = SL_ERROR_PAUSE, .err = -ENOTSUP};

	snprintf(error.message, sizeof(error.message),
		 "the source of module %u takes no credits and cannot wait", module);
	snprintf(error.hint, sizeof(error.hint), "stop the run instead");
	s->error = error;
	return -ENOTSUP;
}

int sl_session_pause(struct sl_session *s)
{
	int err = 0, module;

	pthread_mutex_lock(&s->lock);
	if (!s->receiver || !allows(s, SL_CALL_PAUSE)) {
		err = -EPROTO;
	} else {
		module = sl_receiver_cannot_wait(s->receiver);
		err = module >= 0 ? cannot_pause(s, (uint32_t)module) : 0;
	}
	pthread_mutex_unlock(&s->lock);
	if (err == -EPROTO)
		return refuse(s, SL_CALL_PAUSE);
	if (!err)
		wish(s, SL_WISH_PAUSE);
	return err;
}

int sl_session_resume(struct sl_session *s)
{
	if (!allows(s, SL_CALL_RESUME))
		return refuse(s, SL_CALL_RESUME);
	sl_session_wishes(s, SL_WISH_PAUSE);
	return 0;
}

static void end(struct sl_session *s, const char *by, uint32_t what)
{
	const char *nobody = NULL;

	atomic_compare_exchange_strong(&s->by, &nobody, by ? by : "request");
	wish(s, what);
}

void sl_session_stop(struct sl_session *s, const char *by)
{
	end(s, by, SL_WISH_STOP);
}

void sl_session_abort(struct sl_session *s, const char *by)
{
	end(s, by, SL_WISH_STOP | SL_WISH_ABORT);
}

void sl_session_no_front_end(struct sl_session *s)
{
	wish(s, SL_WISH_NO_FRONT_END);
}

int sl_session_wait(struct sl_session *s, uint32_t states, int timeout_ms)
{
	uint64_t end_ns = sl_clock_ns() + (uint64_t)timeout_ms * 1000000;
	const struct timespec until = {.tv_sec = (time_t)(end_ns / 1000000000),
				       .tv_nsec = (long)(end_ns % 1000000000)};
	int err = 0, state;

	pthread_mutex_lock(&s->lock);
	while (!in(s, states) && !err)
		err = timeout_ms < 0 ? pthread_cond_wait(&s->changed, &s->lock)
				     : pthread_cond_timedwait(&s->changed, &s->lock, &until);
	state = in(s, states) ? (int)atomic_load(&s->state) : -ETIMEDOUT;
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
		snprintf(now->experiment, sizeof(now->experiment), "%s", s->path);
	} else {
		*now = s->last;
		now->bytes = sizeof(*now);
		now->taken_ns = sl_clock_ns();
	}
	now->state = atomic_load(&s->state);
	pthread_mutex_unlock(&s->lock);
	memset(status, 0, bytes);
	memcpy(status, now, bytes < sizeof(*now) ? bytes : sizeof(*now));
	free(now);
	return 0;
}
