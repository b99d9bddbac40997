/* service.c - the service is opened and closed: its folders, its parts, its server. */
#include "service/service.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "service/parts.h"
#include "session/child.h"

/* ---- folders ---- */

static int whole_path(const char *path, const char *option, char *whole)
{
	char real[PATH_MAX];

	if (!realpath(path, real)) {
		sl_error("--%s %s: %s", option, path, strerror(errno));
		return -errno;
	}
	if (snprintf(whole, SL_SERVICE_PATH, "%s", real) >= SL_SERVICE_PATH - 64) {
		sl_error("--%s %s: the path is too long", option, path);
		return -ENAMETOOLONG;
	}
	return 0;
}

static int make_folder(const char *path, mode_t mode, const char *what)
{
	if (!mkdir(path, mode) || errno == EEXIST)
		return 0;
	sl_error("cannot make %s '%s': %s", what, path, strerror(errno));
	return -errno;
}

static int open_folders(struct sl_service *s, const struct sl_service_options *o)
{
	int err = make_folder(o->root, 0777, "the root of the runs");

	if (!err)
		err = whole_path(o->root, "root", s->root);
	if (!err)
		err = whole_path(o->experiments, "experiments", s->experiments);
	if (err)
		return err;
	snprintf(s->own, sizeof(s->own), "%.*s/.service", SL_SERVICE_PATH - 16, s->root);
	return make_folder(s->own, 0700, "the service's own folder");
}

/* ---- open and close ---- */

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

int sl_service_open(const struct sl_service_options *o, struct sl_service **service)
{
	const struct sl_image_service_options images = {.program = sl_child_self()};
	struct sl_service *s = calloc(1, sizeof(*s));
	int err = s ? open_folders(s, o) : -ENOMEM;

	if (err) {
		free(s);
		return err;
	}
	s->started_unix_ns = sl_clock_unix_ns();
	s->events = sl_events_open();
	err = s->events ? sl_image_service_open(&images, &s->images) : -ENOMEM;
	if (!err)
		err = open_http(s, o);
	if (err) {
		sl_image_service_close(s->images);
		sl_events_close(s->events);
		free(s);
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
	sl_http_quiesce(s->http);
	sl_events_end(s->events);
	sl_image_service_end(s->images);
	sl_http_close(s->http);
	sl_image_service_close(s->images);
	sl_events_close(s->events);
	free(s);
}
