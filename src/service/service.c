/* service.c - the service is opened and closed: its folders, its parts, its server. */
#include "service/service.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "client/registry.h"
#include "service/parts.h"
#include "service/schema.h"

enum { NICE = 10 };

/* ---- folders ---- */

static int whole_path(const char *path, const char *option, char *whole)
{
	char real[PATH_MAX];

	if (!realpath(path, real)) {
		sl_error("--%s %s: %s", option, path, strerror(errno));
		return -errno;
	}
	if (strlen(real) >= SL_SERVICE_PATH - 64) {
		sl_error("--%s %s: the path is too long", option, path);
		return -ENAMETOOLONG;
	}
	memcpy(whole, real, strlen(real) + 1);
	return 0;
}

static int make_folder(const char *path, mode_t mode, const char *what)
{
	if (!mkdir(path, mode) || errno == EEXIST)
		return 0;
	sl_error("cannot make %s '%s': %s", what, path, strerror(errno));
	return -errno;
}

/* Folders below the service's own. */
static int make_below(const struct sl_service *s, const char *name)
{
	char path[SL_SERVICE_PATH + 32];

	snprintf(path, sizeof(path), "%s/%s", s->own, name);
	return make_folder(path, 0700, "the service's own folder");
}

/* Held until the service ends, however that happens. */
static int take_root(struct sl_service *s)
{
	char path[SL_SERVICE_PATH + 32];

	snprintf(path, sizeof(path), "%s/lock", s->own);
	s->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->lock >= 0 && !flock(s->lock, LOCK_EX | LOCK_NB))
		return 0;
	if (errno == EWOULDBLOCK)
		sl_error("another service has the root '%s': end it, or choose another --root",
			 s->root);
	else
		sl_error("cannot lock '%s': %s", path, strerror(errno));
	return -errno;
}

/* Texts that were being checked when a service was killed. */
static void sweep(const struct sl_service *s)
{
	char path[SL_SERVICE_PATH + 32], name[SL_SERVICE_PATH + 700];
	const struct dirent *entry, *file;
	DIR *list, *inner;

	snprintf(path, sizeof(path), "%s/tmp", s->own);
	list = opendir(path);
	while (list && (entry = readdir(list))) {
		if (strncmp(entry->d_name, "check-", 6) != 0)
			continue;
		snprintf(name, sizeof(name), "%s/%.200s", path, entry->d_name);
		inner = opendir(name);
		while (inner && (file = readdir(inner)))
			unlinkat(dirfd(inner), file->d_name, 0);
		if (inner)
			closedir(inner);
		rmdir(name);
	}
	if (list)
		closedir(list);
}

static int open_folders(struct sl_service *s, const struct sl_service_options *o)
{
	int err = make_folder(o->root, 0777, "the root of the runs");

	if (!err)
		err = whole_path(o->root, "root", s->root);
	if (!err)
		err = whole_path(o->experiments, "experiments", s->folder);
	if (err)
		return err;
	snprintf(s->own, sizeof(s->own), "%.*s/.service", SL_SERVICE_PATH - 16, s->root);
	snprintf(s->data_roots, sizeof(s->data_roots), "%s,%s%s%s", s->root, s->folder,
		 o->data_roots[0] ? "," : "", o->data_roots);
	snprintf(s->program, sizeof(s->program), "%s", o->program);
	err = make_folder(s->own, 0700, "the service's own folder");
	if (!err)
		err = take_root(s);
	if (!err)
		err = make_below(s, "tmp");
	if (!err)
		err = make_below(s, "sessions");
	if (!err)
		sweep(s);
	return err;
}

/* ---- parts ---- */

static bool has_systemd(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char path[300];

	if (access("/run/systemd/system", F_OK))
		return false;
	if (!geteuid())
		return true;
	snprintf(path, sizeof(path), "%s/systemd/private", runtime ? runtime : "");
	return access(path, F_OK) == 0; /* the user's own manager */
}

/* Sessions have their sockets there: none could begin, and none would be seen. */
static int check_sockets(void)
{
	char why[SL_REGISTRY_PATH + 100] = "";
	int folder, err = sl_registry_open(false, &folder, why, sizeof(why));

	if (!err)
		close(folder);
	if (!err || err == -ENOENT) /* the first session makes it */
		return 0;
	sl_error("the folder of sockets of sessions (SLUICE_RUN_DIR): %s", why);
	return err;
}

static int open_sessions(struct sl_service *s, const struct sl_service_options *o)
{
	char logs[SL_SERVICE_PATH + 32];
	int err;
	const struct sl_sessions_options sessions = {
		.program = s->program,
		.root = s->root,
		.folder = s->folder,
		.logs = logs,
		.systemd = o->sessions == SL_SERVICE_SYSTEMD ||
			   (o->sessions == SL_SERVICE_AUTO && has_systemd()),
		.events = s->events,
	};

	err = check_sockets();
	if (err)
		return err;
	snprintf(logs, sizeof(logs), "%s/sessions", s->own);
	return sl_sessions_open(&sessions, &s->sessions);
}

static int open_experiments(struct sl_service *s)
{
	char temporary[SL_SERVICE_PATH + 32];
	const struct sl_experiments_options experiments = {.program = s->program,
							   .folder = s->folder,
							   .temporary = temporary,
							   .data_roots = s->data_roots};

	snprintf(temporary, sizeof(temporary), "%s/tmp", s->own);
	return sl_experiments_open(&experiments, &s->experiments);
}

static int open_http(struct sl_service *s, const struct sl_service_options *o)
{
	char audit[SL_SERVICE_PATH + 16];
	struct sl_http_options http = {
		.listen = o->listen,
		.hosts = o->hosts,
		.tokens = o->tokens,
		.tls_cert = o->tls_cert,
		.tls_key = o->tls_key,
		.insecure = o->insecure,
		.audit = audit,
		.routes = sl_service_routes,
		.service = s,
	};

	for (unsigned i = 0; i < o->hosts; i++)
		http.host[i] = o->host[i];
	snprintf(audit, sizeof(audit), "%s/audit.log", s->own);
	return sl_http_open(&http, &s->http);
}

struct wanted {
	const struct sl_service *service;
	uint64_t run;
	json_t *status;
};

static void take_status_of(void *arg, const struct sl_seen *seen)
{
	struct wanted *w = arg;

	if (!w->status && seen->status && seen->info.run == w->run &&
	    !strcmp(seen->info.root, w->service->root))
		w->status = json_incref(seen->status);
}

static json_t *status_of_run(void *arg, uint64_t run)
{
	struct wanted w = {.service = arg, .run = run};

	sl_sessions_each(w.service->sessions, take_status_of, &w);
	return w.status;
}

static int open_parts(struct sl_service *s, const struct sl_service_options *o)
{
	const struct sl_history_options history = {.program = s->program,
						   .root = s->root,
						   .own = s->own,
						   .recover = o->recover,
						   .events = s->events,
						   .status_of = status_of_run,
						   .arg = s};
	const struct sl_image_service_options images = {.program = s->program};
	int err = open_experiments(s);

	if (!err)
		err = open_sessions(s, o);
	/* Data threads go first: from here on all threads are nicer than those of sessions. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), getpriority(PRIO_PROCESS, 0) + NICE);
	if (!err)
		err = sl_history_open(&history, &s->history);
	if (!err)
		err = sl_image_service_open(&images, &s->images);
	if (!err)
		err = sl_telegrams_open(s, &s->telegrams);
	if (!err)
		err = open_http(s, o);
	return err ? err : sl_sessions_watch(s->sessions);
}

static void free_service(struct sl_service *s)
{
	sl_image_service_close(s->images);
	sl_history_close(s->history);
	sl_telegrams_close(s->telegrams);
	sl_sessions_close(s->sessions);
	sl_experiments_close(s->experiments);
	sl_events_close(s->events);
	json_decref(s->addons);
	json_decref(s->absent);
	pthread_mutex_destroy(&s->drawing);
	if (s->lock >= 0)
		close(s->lock);
	free(s);
}

static void close_http(struct sl_service *s)
{
	if (!s->http)
		return;
	sl_http_quiesce(s->http);
	sl_events_end(s->events);
	sl_image_service_end(s->images); /* it finishes the requests that it has */
	sl_telegrams_end(s->telegrams);
	sl_http_close(s->http);
}

int sl_service_open(const struct sl_service_options *o, struct sl_service **service)
{
	struct sl_service *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->lock = -1;
	s->started_unix_ns = sl_clock_unix_ns();
	pthread_mutex_init(&s->drawing, NULL);
	s->events = sl_events_open();
	s->addons = sl_schema_addons();
	s->absent = sl_schema_absent();
	err = s->events && s->addons && s->absent ? open_folders(s, o) : -ENOMEM;
	if (!err)
		err = open_parts(s, o);
	if (err) {
		close_http(s);
		free_service(s);
		return err;
	}
	*service = s;
	return 0;
}

const char *sl_service_url(const struct sl_service *s)
{
	return sl_http_url(s->http);
}

void sl_service_close(struct sl_service *s)
{
	close_http(s);
	free_service(s);
}
