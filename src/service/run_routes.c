/* run_routes.c - /api/v1/runs: the history. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/parts.h"
#include "service/process/process.h"
#include "session/folder/folder.h"

enum { PICTURE_MS = 60000, PICTURE_CPU_S = 60, NICER = 5 };

#define JSON "application/json"
#define TEXT "text/plain; charset=utf-8"

static void absent(struct sl_http_request *r)
{
	sl_http_answer_error(r, 404, "not_found", NULL, "GET /api/v1/runs lists them",
			     "there is no run %s", sl_http_segment(r, 0));
}

static void get_all(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	json_t *list = sl_history_list(service->history, sl_http_whole(r, "before"),
				       (unsigned)sl_http_whole(r, "limit"));

	if (list)
		sl_http_answer_json(r, 200, list);
	else
		sl_http_answer_error(r, 500, "system", NULL, NULL,
				     "the root of the runs cannot be read");
}

static void get_one(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	json_t *one = sl_history_result(service->history, sl_http_segment_number(r, 0));

	if (one)
		sl_http_answer_json(r, 200, one);
	else
		absent(r);
}

/* ---- files ---- */

static void answer_file(struct sl_service *service, struct sl_http_request *r, const char *name,
			const char *hint)
{
	uint64_t run = sl_http_segment_number(r, 0), bytes;
	int fd = sl_history_file(service->history, run, name, &bytes);
	json_t *row;

	if (fd >= 0) {
		sl_http_answer_file(r, 200, TEXT, fd, bytes);
		return;
	}
	row = sl_history_row(service->history, run);
	if (row)
		sl_http_answer_error(r, 404, "not_found", NULL, hint, "run %llu has no %s",
				     (unsigned long long)run, name);
	else
		absent(r);
	json_decref(row);
}

/* "run.log", or "run.NAME.log" of one transfer. */
static void answer_named(struct sl_service *service, struct sl_http_request *r, const char *stem,
			 const char *ending)
{
	const char *transfer = sl_http_text(r, "transfer");
	char name[300];

	if (strchr(transfer, '/')) {
		sl_http_answer_error(r, 400, "request", NULL, NULL, "transfer takes a name");
		return;
	}
	snprintf(name, sizeof(name), "%s%s%s.%s", stem, transfer[0] ? "." : "", transfer, ending);
	answer_file(service, r, name, NULL);
}

static void get_log(void *service, struct sl_http_request *r)
{
	answer_named(service, r, "run", "log");
}

static void get_experiment(void *service, struct sl_http_request *r)
{
	answer_named(service, r, "experiment", "yaml");
}

static void get_outcomes(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	char name[256];

	sl_history_find(service->history, sl_http_segment_number(r, 0), "outcomes.txt", name,
			sizeof(name));
	answer_file(service, r, name[0] ? name : "outcomes.txt",
		    "start the session with \"outcomes\": true");
}

/* ---- picture ---- */

static void picture_path(const struct sl_service *s, uint64_t run, char *path, size_t bytes)
{
	char name[32];

	sl_run_folder_digits(run, name, sizeof(name));
	snprintf(path, bytes, "%s/pictures/%s.png", s->own, name);
}

/* Drawn once, by a process of its own; under another name until it is whole. */
static int draw(const struct sl_service *s, uint64_t run, const char *file, const char *path,
		char *why, size_t bytes)
{
	char part[1300], folder[1200], source[1600], name[32];
	const char *const argv[] = {s->program, "show", source, "--output", part, NULL};
	const struct sl_process p = {.argv = argv,
				     .folder = s->own,
				     .most_bytes = 1000,
				     .timeout_ms = PICTURE_MS,
				     .cpu_s = PICTURE_CPU_S,
				     .nicer = NICER};
	struct sl_process_result result;
	int err;

	sl_run_folder_digits(run, name, sizeof(name));
	snprintf(folder, sizeof(folder), "%s/pictures", s->own);
	mkdir(folder, 0700);
	snprintf(source, sizeof(source), "%s/%s/%s", s->root, name, file);
	snprintf(part, sizeof(part), "%s/%s-%llx.png", folder, name,
		 (unsigned long long)(uintptr_t)&p);
	err = sl_process_run(&p, &result);
	if (err) {
		snprintf(why, bytes, "%s", strerror(-err));
		return err;
	}
	snprintf(why, bytes, "%.200s", result.err);
	err = result.status || rename(part, path) ? -EIO : 0;
	if (err)
		unlink(part);
	sl_process_free(&result);
	return err;
}

static bool answer_drawn(struct sl_http_request *r, const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return false;
	if (fstat(fd, &st)) {
		close(fd);
		return false;
	}
	sl_http_answer_file(r, 200, "image/png", fd, (uint64_t)st.st_size);
	sl_http_answer_header(r, "Cache-Control", "private, max-age=3600");
	return true;
}

/* One at a time: the others would take all workers. */
static void draw_and_answer(struct sl_service *service, struct sl_http_request *r, const char *file,
			    const char *path)
{
	char why[256] = "";
	int err;

	if (pthread_mutex_trylock(&service->drawing)) {
		sl_http_answer_error(r, 503, "busy", NULL, "try again in a second",
				     "another picture is being drawn");
		sl_http_answer_header(r, "Retry-After", "1");
		return;
	}
	err = draw(service, sl_http_segment_number(r, 0), file, path, why, sizeof(why));
	pthread_mutex_unlock(&service->drawing);
	if (err || !answer_drawn(r, path))
		sl_http_answer_error(r, 404, "not_found", NULL, NULL,
				     "no picture could be drawn: %s", why);
}

/* The one that the session has drawn; of a run with several transfers the first of them. */
static bool answer_own(struct sl_service *service, struct sl_http_request *r)
{
	uint64_t run = sl_http_segment_number(r, 0), bytes;
	char name[256];
	int fd;

	sl_history_find(service->history, run, "picture.png", name, sizeof(name));
	if (!name[0])
		sl_history_find(service->history, run, ".png", name, sizeof(name));
	fd = name[0] ? sl_history_file(service->history, run, name, &bytes) : -1;
	if (fd < 0)
		return false;
	sl_http_answer_file(r, 200, "image/png", fd, bytes);
	sl_http_answer_header(r, "Cache-Control", "private, max-age=3600");
	return true;
}

static void get_picture(void *arg, struct sl_http_request *r)
{
	struct sl_service *service = arg;
	uint64_t run = sl_http_segment_number(r, 0);
	json_t *row = sl_history_row(service->history, run);
	const char *state = json_string_value(json_object_get(row, "state"));
	char path[1200], file[256];

	picture_path(service, run, path, sizeof(path));
	sl_history_find(service->history, run, ".nxs", file, sizeof(file));
	if (!row)
		absent(r);
	else if (!strcmp(state, "live") || (!answer_own(service, r) && !file[0]))
		sl_http_answer_error(r, 404, "not_found", NULL, NULL, "run %llu has no picture%s",
				     (unsigned long long)run, file[0] ? " before its end" : "");
	else if (!sl_http_status(r) && !answer_drawn(r, path))
		draw_and_answer(service, r, file, path);
	json_decref(row);
}

static const struct sl_http_parameter of_list[] = {
	{"limit", SL_HTTP_WHOLE, 1, 1000, "50", NULL, "rows at most"},
	{"before", SL_HTTP_WHOLE, 0, INT64_MAX, "0", NULL,
	 "only runs with lower numbers; 0: from the newest on"},
	{NULL},
};
static const struct sl_http_parameter of_file[] = {
	{"transfer", SL_HTTP_TEXT, 0, 63, NULL, NULL, "of a run with several"},
	{NULL},
};

#define FILE_ROUTE(name, handler, words, parameters)                                            \
	{                                                                                       \
		.method = "GET", .pattern = "/api/v1/runs/{run}/" name, .role = SL_ROLE_VIEW,   \
		.how = SL_HTTP_ON_WORKER, .handle = handler, .doc = words, .query = parameters, \
		.said = {                                                                       \
			{200, TEXT, NULL, "the file"},                                          \
			{404, JSON, "error", "no such run, or file"}                            \
		}                                                                               \
	}

const struct sl_http_route sl_run_routes[] = {
	{.method = "GET",
	 .pattern = "/api/v1/runs",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = get_all,
	 .doc = "The history of runs, the newest first.",
	 .query = of_list,
	 .said = {{200, JSON, "runs", "a page of the history"}}},
	{.method = "GET",
	 .pattern = "/api/v1/runs/{run}",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = get_one,
	 .doc = "The result of a run; of one that lives or has crashed, what is known.",
	 .said = {{200, JSON, "run_result", "result.json, or its row"},
		  {404, JSON, "error", "no such run"}}},
	FILE_ROUTE("log", get_log, "run.log.", of_file),
	FILE_ROUTE("experiment", get_experiment,
		   "The experiment as the run had it, with the origin of each key.", of_file),
	FILE_ROUTE("outcomes", get_outcomes,
		   "A line for each module-frame, where the session was started so.", NULL),
	{.method = "GET",
	 .pattern = "/api/v1/runs/{run}/picture.png",
	 .role = SL_ROLE_VIEW,
	 .how = SL_HTTP_ON_WORKER,
	 .handle = get_picture,
	 .doc = "An image of the run's file.",
	 .said = {{200, "image/png", NULL, "the picture"},
		  {404, JSON, "error", "no such run, or no picture"},
		  {503, JSON, "error", "another picture is being drawn"}}},
	{NULL},
};
