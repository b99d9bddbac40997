/* open.c - a session is made: options are copied, the experiment is read; and unmade. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "flight/recorder.h"
#include "monitor/check_json.h"
#include "monitor/summary.h"
#include "session/errors.h"
#include "session/private.h"

/* Every line of this session's threads. The first error of a step is kept: it explains why the step
 * failed. */
static void take_line(void *arg, enum sl_log_level level, const char *line)
{
	struct sl_session *s = arg;

	if (level == SL_LOG_ERROR &&
	    strncmp(line, SL_CHILD_LOG_PREFIX, strlen(SL_CHILD_LOG_PREFIX))) {
		pthread_mutex_lock(&s->lock);
		if (!s->line[0])
			snprintf(s->line, sizeof(s->line), "%s", line);
		pthread_mutex_unlock(&s->lock);
	}
	sl_run_log_line(&s->folder.log, level, line);
	if (s->log_line) {
		s->log_line(s->log_arg, level, line);
	} else {
		sl_log_set_target(NULL);
		sl_log_line(level, line);
		sl_log_set_target(&s->log);
	}
}

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
	int fd = memfd_create("experiment", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	/* Above those of stdin, stdout and stderr, which a program may have closed. */
	s->text_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	close(fd);
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

int sl_session_add_sets(struct sl_session *s, const char *const *set, size_t sets)
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

/* Absolute: the program may change its working directory between two runs. */
static char *absolute(const char *path, int *err)
{
	char *here, *whole = NULL;

	if (!path || !path[0] || path[0] == '/')
		return copy_of(path, err);
	here = getcwd(NULL, 0);
	if (!here || asprintf(&whole, "%s/%s", here, path) < 0)
		*err = here ? -ENOMEM : -errno;
	free(here);
	return whole;
}

static int copy_options(struct sl_session *s, const struct sl_session_options *o)
{
	int err = 0;

	s->text_fd = -1;
	if (o->bytes < offsetof(struct sl_session_options, transfer)) {
		sl_error("struct sl_session_options: set its member bytes to its size");
		return -EINVAL;
	}
	if (!o->path == !o->text) {
		sl_error("a session needs either the path of an experiment or its text");
		return -EINVAL;
	}
	if (o->path)
		s->path = copy_of(o->path, &err);
	else
		err = hold_text(s, o->text);
	s->name = o->path ? s->path : "text";
	s->transfer = copy_of(o->transfer, &err);
	s->summary = copy_of(o->summary, &err);
	s->summary_option = copy_of(o->summary, &err);
	s->outcomes = copy_of(o->outcomes, &err);
	s->outcomes_option = copy_of(o->outcomes, &err);
	s->root = absolute(o->root, &err);
	s->port_file = copy_of(o->port_file, &err);
	s->program = copy_of(o->program, &err);
	s->emulate = o->emulate;
	s->live = o->live;
	s->summary_version = o->summary_version ? o->summary_version : SL_SUMMARY_VERSION;
	if (!err)
		err = sl_session_add_sets(s, o->set, o->sets);
	s->option_sets = s->sets;
	return err;
}

/* For statuses, which other threads take. */
static void note_asked(struct sl_session *s)
{
	const struct sl_detector_options *run = &s->experiment->run;
	char *parameters = sl_parameter_values_json(s->experiment->parameters);

	pthread_mutex_lock(&s->lock);
	free(s->parameters);
	s->parameters = parameters;
	snprintf(s->asked.detector, sizeof(s->asked.detector), "%s",
		 s->experiment->generator->name);
	s->asked.frames = run->frames;
	s->asked.dark_frames = run->dark_frames;
	s->asked.rate_Hz = run->frame_rate_Hz;
	pthread_mutex_unlock(&s->lock);
}

char *sl_session_copy_parameters(struct sl_session *s)
{
	char *copy;

	pthread_mutex_lock(&s->lock);
	copy = s->parameters ? strdup(s->parameters) : NULL;
	pthread_mutex_unlock(&s->lock);
	return copy;
}

/* Read and check; the former experiment goes only if that succeeds. */
int sl_session_read(struct sl_session *s)
{
	struct sl_experiment *e;
	const char *transfer = s->transfer[0] ? s->transfer : NULL;
	const char *const *set = (const char *const *)s->set;
	int err = s->live ? sl_experiment_open_live(s->path, transfer, set, s->sets, &e)
			  : sl_experiment_open(s->path, transfer, set, s->sets, &e);

	if (err)
		return err;
	err = s->hooks.change ? s->hooks.change(s->hooks.arg, e) : 0;
	if (err) {
		sl_experiment_close(e);
		return err;
	}
	err = sl_experiment_keep_states(e);
	if (!err)
		err = sl_session_read_metadata(s, &e->said);
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
	note_asked(s);
	e->metadata = &s->metadata_of_env;
	s->probed = false;
	if (s->root[0] || s->hooks.folder)
		sl_experiment_warn_of_shared_outputs(e);
	return 0;
}

static void free_session(struct sl_session *s)
{
	sl_session_close_socket(s);
	sl_recorder_close(s->recorder);
	sl_session_metadata_fini(&s->metadata);
	sl_points_fini(&s->points);
	if (s->experiment)
		sl_experiment_close(s->experiment);
	for (unsigned i = 0; i < s->sets; i++)
		free(s->set[i]);
	free(s->path);
	free(s->transfer);
	free(s->summary);
	free(s->outcomes);
	free(s->summary_option);
	free(s->outcomes_option);
	free(s->root);
	free(s->parameters);
	sl_run_folder_fini(&s->folder);
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
	s->text_fd = s->wake = s->summary_file.fd = s->flight_dir = -1;
	s->keeper.socket = -1;
	sl_run_folder_init(&s->folder);
	s->child_log = (struct sl_child_log){.fd = -1, .child = -1};
	s->last.result = -1;
	pthread_mutex_init(&s->lock, NULL);
	sl_session_metadata_init(&s->metadata);
	sl_session_init_env_metadata(s, &s->metadata_of_env);
	sl_points_init(&s->points);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return s;
}

static enum sl_error_code open_code(int err)
{
	if (err == -ENOMEM)
		return SL_ERROR_MEMORY;
	return err == -EMFILE || err == -ENFILE || err == -EAGAIN ? SL_ERROR_SYSTEM
								  : SL_ERROR_EXPERIMENT;
}

int sl_session_open_with(const struct sl_session_options *options,
			 const struct sl_session_hooks *hooks, struct sl_session **session,
			 struct sl_error *error)
{
	const struct sl_log_target *before = sl_log_target();
	struct sl_session_options known = {0};
	struct sl_session *s = make();
	int err;

	if (!s && error)
		*error = (struct sl_error){.code = SL_ERROR_MEMORY, .err = -ENOMEM};
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
		err = sl_session_read(s);
	if (!err && s->root[0])
		sl_run_folder_warn_of_crashes(s->root);
	atomic_store(&s->state, SL_STATE_CONFIGURED);
	if (!err && known.name)
		err = sl_session_open_socket(s, known.name, known.root);
	if (!err)
		err = sl_thread_start(&s->thread, "control", NULL, sl_session_main, s);
	sl_log_set_target(before);
	if (err) {
		sl_session_fail(s, open_code(err), err, strerror(-err));
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
	const struct sl_log_target *before;

	if (!s)
		return;
	sl_socket_quiesce(s->socket);
	sl_session_stop(s, "close");
	sl_session_wish(s, SL_WISH_CLOSE);
	sl_thread_join(&s->thread);
	before = sl_log_target();
	sl_log_set_target(&s->log);
	sl_session_release(s, true);
	sl_session_picture_fini(&s->pictures);
	sl_log_set_target(before);
	free_session(s);
}
