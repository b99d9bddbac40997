/* session_folder.c - a run of a session in its folder: outputs, log, experiment and result. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "monitor/result.h"
#include "monitor/summary.h"
#include "picture/picture.h"
#include "session/outputs.h"
#include "session/private.h"

/* Room for the result on a disk that is full at the end: a summary has about 6 KiB, and 1.5 KiB
 * more for each module; metadata may have 70 KiB. */
enum { RESULT_BYTES = 104 << 10, RESULT_BYTES_OF_MODULE = 3 << 10, OWN_FILES = 17 };

static int make(struct sl_session *s)
{
	size_t bytes = RESULT_BYTES +
		       (size_t)sl_experiment_modules(s->experiment) * RESULT_BYTES_OF_MODULE;

	return s->hooks.folder ? sl_run_folder_join(&s->folder, s->hooks.folder,
						    s->experiment->transfer, bytes)
			       : sl_run_folder_make(&s->folder, s->root, bytes);
}

/* An option's path as it is in this run. */
static int place(const struct sl_session *s, const char *option, char **path)
{
	char *placed = NULL;

	if (!option[0] || option[0] == '/')
		placed = strdup(option);
	else if (asprintf(&placed, "%s/%s", s->folder.path, option) < 0)
		placed = NULL;
	if (!placed)
		return -ENOMEM;
	free(*path);
	*path = placed;
	return 0;
}

/* As the file has it: relative paths of outputs begin in the folder of whatever run reads it. */
static int write_experiment(struct sl_session *s)
{
	char name[128], *text;
	int err = sl_experiment_place(s->experiment, NULL, NULL);

	if (err)
		return err;
	text = sl_experiment_resolved(s->experiment, true);
	if (!text)
		return -ENOMEM;
	sl_run_folder_name(&s->folder, "experiment", "yaml", name, sizeof(name));
	err = sl_run_folder_write(&s->folder, name, text);
	free(text);
	return err;
}

/* No output has the name of a file of the folder's own. */
static int spare_own_files(struct sl_session *s)
{
	static const char *const own[][2] = {{"run", "log"},	      {"experiment", "yaml"},
					     {"flight", "json"},      {"flight", "pcapng"},
					     {"result", "json"},      {"picture", "png"},
					     {"picture", "png.part"}, {"result", "json.part"}};
	const char *const ours[] = {s->summary, s->outcomes};
	struct sl_run_folder plain = {.transfer = ""};
	const char *list[OWN_FILES];
	char path[OWN_FILES][SL_STATUS_PATH + 160], name[128];
	size_t n = 0;

	snprintf(path[n], sizeof(path[n]), "%s/lock", s->folder.path);
	n++;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		sl_run_folder_name(&plain, own[i][0], own[i][1], name, sizeof(name));
		snprintf(path[n++], sizeof(path[0]), "%s/%s", s->folder.path, name);
		sl_run_folder_name(&s->folder, own[i][0], own[i][1], name, sizeof(name));
		if (s->folder.transfer[0])
			snprintf(path[n++], sizeof(path[0]), "%s/%s", s->folder.path, name);
	}
	for (size_t i = 0; i < n; i++)
		list[i] = path[i];
	return sl_outputs_spare_paths(s->experiment, ours, 2, list, n);
}

static int fill(struct sl_session *s)
{
	int err = write_experiment(s);

	if (!err)
		err = sl_session_place_outputs(s);
	if (!err)
		err = place(s, s->summary_option, &s->summary);
	if (!err)
		err = place(s, s->outcomes_option, &s->outcomes);
	return err ? err : spare_own_files(s);
}

int sl_session_begin_folder(struct sl_session *s)
{
	bool has_folder = s->root[0] || s->hooks.folder;
	char line[1200];
	int err = has_folder ? make(s) : 0;

	s->runs++;
	if (err)
		return err;
	pthread_mutex_lock(&s->lock);
	s->run = has_folder ? s->folder.number : s->runs;
	snprintf(s->run_folder, sizeof(s->run_folder), "%s", has_folder ? s->folder.path : "");
	pthread_mutex_unlock(&s->lock);
	if (!has_folder)
		return sl_session_place_outputs(s);
	snprintf(line, sizeof(line), "run %" PRIu64 " of %.1000s, sluice %s", s->folder.number,
		 s->name, sl_version());
	sl_run_log_line(&s->folder.log, SL_LOG_INFO, line);
	if (!s->hooks.quiet && !s->hooks.folder)
		sl_info("run %" PRIu64 ": %s", s->folder.number, s->folder.path);
	return fill(s);
}

void sl_session_begin_picture(struct sl_session *s)
{
	const struct sl_experiment *e = s->experiment;
	char name[128], path[SL_STATUS_PATH + 160];

	if (!s->live || !s->folder.number || !sl_png_is_there())
		return;
	sl_run_folder_name(&s->folder, "picture", "png", name, sizeof(name));
	snprintf(path, sizeof(path), "%s/%s", s->folder.path, name);
	for (unsigned i = 0; i < e->sinks; i++) {
		const char *where = !strcmp(e->sink[i]->name, "share")
					    ? e->sink[i]->where(e->sink_state[i])
					    : "";

		if (!where[0])
			continue;
		sl_session_picture_begin(&s->pictures, where, path);
		return;
	}
}

/* ---- the end ---- */

static void warn_of_lost_lines(struct sl_session *s, struct sl_summary_run *run)
{
	int err;

	run->log_lines_lost = sl_run_log_lost(&s->folder.log, &err);
	if (run->log_lines_lost)
		sl_warn("%" PRIu64 " lines could not be written to the log of '%s': %s",
			run->log_lines_lost, s->folder.path, strerror(-err));
}

static void describe(struct sl_session *s, enum sl_state state, const struct sl_error *error,
		     struct sl_summary_run *run)
{
	run->number = s->folder.number;
	run->folder = s->folder.path;
	run->state = sl_state_name(state);
	run->exit = sl_session_exit(s);
	run->started_unix_ns = s->started_unix_ns;
	run->ended_unix_ns = sl_clock_unix_ns();
	if (error->code) {
		run->code = sl_error_name(error->code);
		run->message = error->message;
		run->where = error->where;
		run->hint = error->hint;
	}
}

/* The status of the end, for the result and for the program. */
static void complete_status(struct sl_session *s, enum sl_state state, struct sl_error *error)
{
	pthread_mutex_lock(&s->lock);
	s->last.state = state;
	s->last.run = s->run;
	snprintf(s->last.folder, sizeof(s->last.folder), "%s", s->run_folder);
	snprintf(s->last.transfer, sizeof(s->last.transfer), "%s", s->experiment->transfer);
	*error = s->error;
	pthread_mutex_unlock(&s->lock);
}

static void write_result(struct sl_session *s, const struct sl_summary_run *run)
{
	char *text = sl_summary_result(&s->last, run);
	int err = text ? sl_run_folder_write_result(&s->folder, text) : -ENOMEM;

	if (err)
		sl_session_fail(s, SL_ERROR_OUTPUT, err, "the result was not written");
	free(text);
}

static void log_end(struct sl_session *s, const struct sl_summary_run *run)
{
	enum sl_result result = s->last.result < 0 ? SL_RESULT_ERROR
						   : (enum sl_result)s->last.result;
	char line[200];

	snprintf(line, sizeof(line), "run %" PRIu64 " %s: %s, %" PRIu64 " frames, exit status %d",
		 run->number, run->state, sl_result_name(result), s->last.frames, run->exit);
	sl_run_log_line(&s->folder.log, SL_LOG_INFO, line);
}

static void end(struct sl_session *s, enum sl_state state, const struct sl_error *error)
{
	char *file = s->text_fd < 0 ? realpath(s->path, NULL) : NULL;
	char *here = getcwd(NULL, 0);
	struct sl_summary_run run = {.file = file ? file : s->name, .working_directory = here};

	struct sl_metadata *metadata = malloc(sizeof(*metadata));

	if (metadata)
		sl_session_copy_metadata(s, metadata);
	run.metadata = metadata;
	sl_session_forget_line(s);
	describe(s, state, error, &run);
	log_end(s, &run);
	warn_of_lost_lines(s, &run);
	write_result(s, &run);
	sl_run_folder_close(&s->folder);
	free(metadata);
	free(file);
	free(here);
}

void sl_session_end_folder(struct sl_session *s, enum sl_state state)
{
	struct sl_error error;

	complete_status(s, state, &error);
	if (s->folder.number)
		end(s, state, &error);
	sl_session_error(s, &error); /* the result may have failed */
	if (s->hooks.ended)
		s->hooks.ended(s->hooks.arg, &s->last, &error);
}
