/* audit.c - the log of commands: one line of JSON each, written by a thread of its own, since a
 * disk may be slow. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "service/http/private.h"

enum { FILE_BYTES = 16 << 20, OLD_FILES = 4 };

/* ---- on its thread ---- */

static int open_file(struct sl_audit *a)
{
	struct stat st;

	a->fd = open(a->path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (a->fd < 0 || fstat(a->fd, &st))
		return -errno;
	a->bytes = (uint64_t)st.st_size;
	return 0;
}

/* audit.log becomes audit.log.1, and so on; the oldest goes. */
static void turn(struct sl_audit *a)
{
	char from[1040], to[1040];

	for (int i = OLD_FILES; i > 0; i--) {
		if (i > 1)
			snprintf(from, sizeof(from), "%s.%d", a->path, i - 1);
		else
			snprintf(from, sizeof(from), "%s", a->path);
		snprintf(to, sizeof(to), "%s.%d", a->path, i);
		rename(from, to);
	}
	close(a->fd);
	if (open_file(a))
		sl_warn("cannot open the audit log '%s': %s", a->path, strerror(errno));
}

/* One warning until it can be written again: a full disk must not fill the journal, too. */
static void note_missing(struct sl_audit *a, const char *why)
{
	if (!a->missing++)
		sl_warn("the audit log '%s' cannot be written: %s", a->path, why);
	pthread_mutex_lock(&a->lock);
	a->lost++;
	pthread_mutex_unlock(&a->lock);
}

static void note_written(struct sl_audit *a)
{
	if (a->missing)
		sl_warn("the audit log '%s' is written again: %llu commands are missing", a->path,
			(unsigned long long)a->missing);
	a->missing = 0;
}

static void put(struct sl_audit *a, const char *line)
{
	size_t bytes = strlen(line);
	ssize_t n;

	if (a->fd >= 0 && a->bytes + bytes > FILE_BYTES)
		turn(a);
	n = a->fd < 0 && open_file(a) ? -1 : write(a->fd, line, bytes);
	if (n == (ssize_t)bytes) {
		a->bytes += bytes;
		note_written(a);
		return;
	}
	note_missing(a, n < 0 ? strerror(errno) : "the disk is full");
	/* Part of a line would spoil the next one. */
	if (n > 0 && ftruncate(a->fd, (off_t)a->bytes))
		a->bytes += (uint64_t)n;
}

static char *take(struct sl_audit *a)
{
	char *line = NULL;

	pthread_mutex_lock(&a->lock);
	while (!a->n && !a->stop)
		pthread_cond_wait(&a->wake, &a->lock);
	if (a->n) {
		line = a->line[a->first];
		a->first = (a->first + 1) % SL_AUDIT_LINES;
		a->n--;
	}
	pthread_mutex_unlock(&a->lock);
	return line;
}

static void *work(void *arg)
{
	struct sl_audit *a = arg;
	char *line;

	while ((line = take(a))) {
		put(a, line);
		free(line);
	}
	return NULL;
}

/* ---- on any thread ---- */

int sl_audit_open(struct sl_audit *a, const char *path)
{
	int err;

	snprintf(a->path, sizeof(a->path), "%s", path);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->wake, NULL);
	err = open_file(a);
	if (err)
		sl_error("cannot open the audit log '%s': %s", path, strerror(-err));
	return err ? err : sl_thread_start(&a->thread, "audit", NULL, work, a);
}

void sl_audit_close(struct sl_audit *a)
{
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
	sl_thread_join(&a->thread);
	if (a->lost)
		sl_warn("%llu commands are not in the audit log", (unsigned long long)a->lost);
	if (a->fd >= 0)
		close(a->fd);
	pthread_cond_destroy(&a->wake);
	pthread_mutex_destroy(&a->lock);
}

static char *line_of(const struct sl_http_request *r)
{
	char time[40], path[SL_HTTP_TARGET_BYTES + 1], *text, *line = NULL;
	json_t *json;

	sl_clock_iso8601(sl_clock_unix_ns(), time, sizeof(time));
	snprintf(path, sizeof(path), "%.*s", (int)r->path_bytes, r->target);
	json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i}", "time", time, "name",
			 r->user ? r->user : "", "role", sl_role_name(r->role), "from", r->from,
			 "method", r->method, "path", path, "status", (int)r->status);
	/* Texts of clients that are no UTF-8 are left out; such a path was refused anyway. */
	if (!json)
		json = json_pack("{s:s, s:s, s:i}", "time", time, "from", r->from, "status",
				 (int)r->status);
	if (r->code[0])
		json_object_set_new(json, "error", json_string(r->code));
	if (r->note[0])
		json_object_set_new(json, "note", json_string(r->note));
	text = json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(json);
	if (text && asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	free(text);
	return line;
}

void sl_audit_request(struct sl_audit *a, const struct sl_http_request *r)
{
	char *line = line_of(r);

	pthread_mutex_lock(&a->lock);
	if (!line || a->n == SL_AUDIT_LINES || a->stop) {
		a->lost++;
		free(line);
	} else {
		a->line[(a->first + a->n++) % SL_AUDIT_LINES] = line;
		pthread_cond_signal(&a->wake);
	}
	pthread_mutex_unlock(&a->lock);
}
