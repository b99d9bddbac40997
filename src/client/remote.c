/* remote.c - a connection to a session: lines of JSON, each with a time limit. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/private.h"
#include "client/registry.h"

enum { LINE_MOST = 8 << 20, FIRST_ROOM = 16384 };

int sl_remote_fail(struct sl_remote_error *error, int err, const char *code, const char *format,
		   ...)
{
	va_list list;

	if (!error)
		return err;
	memset(error, 0, sizeof(*error));
	snprintf(error->code, sizeof(error->code), "%s", code);
	va_start(list, format);
	vsnprintf(error->message, sizeof(error->message), format, list);
	va_end(list);
	return err;
}

uint64_t sl_remote_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int sl_remote_left_ms(uint64_t end_ms, int timeout_ms)
{
	uint64_t now = sl_remote_now_ms();

	if (timeout_ms < 0)
		return -1;
	return now < end_ms ? (int)(end_ms - now) : 0;
}

void sl_remote_free(void *memory)
{
	free(memory);
}

/* ---- open and close ---- */

static struct sl_remote *make(int fd, const char *name)
{
	struct sl_remote *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->fd = fd;
	snprintf(r->name, sizeof(r->name), "%s", name);
	return r;
}

/* -EAGAIN: its queue of connections is full. */
static int connect_within(int folder, const char *name, int timeout_ms)
{
	uint64_t end_ms = sl_remote_now_ms() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms);

	for (;;) {
		const struct timespec pause = {.tv_nsec = 5000000};
		int fd = sl_registry_connect(folder, name);

		if (fd != -EAGAIN || !sl_remote_left_ms(end_ms, timeout_ms))
			return fd;
		nanosleep(&pause, NULL);
	}
}

static int open_in(int folder, const char *name, int timeout_ms, struct sl_remote **remote,
		   struct sl_remote_error *error)
{
	struct sl_registry_facts facts;
	bool alive;
	int err = sl_registry_look(folder, name, &facts, &alive), fd;

	if (err)
		return sl_remote_fail(error, -ENOENT, "absent",
				      "no session is called '%s'; sluice ps lists them", name);
	if (!alive)
		return sl_remote_fail(error, -ECONNREFUSED, "crashed",
				      "the session '%s' was killed or has crashed%s%s", name,
				      facts.folder[0] ? "; its last run folder is " : "",
				      facts.folder);
	fd = connect_within(folder, name, timeout_ms);
	if (fd < 0)
		return sl_remote_fail(error, fd, fd == -EAGAIN ? "timeout" : "connection",
				      "cannot connect to the session '%s': %s", name,
				      strerror(-fd));
	*remote = make(fd, name);
	if (*remote)
		return 0;
	close(fd);
	return sl_remote_fail(error, -ENOMEM, "memory", "no memory");
}

int sl_remote_open(const char *name, int timeout_ms, struct sl_remote **remote,
		   struct sl_remote_error *error)
{
	int folder[SL_REGISTRY_PLACES];
	char why[sizeof(error->message) - 100];
	unsigned places = sl_registry_places(folder, why, sizeof(why));
	int err = why[0] ? sl_remote_fail(error, -EPERM, "absent", "%s", why)
			 : sl_remote_fail(error, -ENOENT, "absent",
					  "no session is called '%s'; sluice ps lists them", name);

	for (unsigned i = 0; i < places; i++) {
		if ((err == -ENOENT || err == -EPERM) && sl_registry_name_is_valid(name))
			err = open_in(folder[i], name, timeout_ms, remote, error);
		close(folder[i]);
	}
	return err;
}

void sl_remote_close(struct sl_remote *r)
{
	if (!r)
		return;
	close(r->fd);
	free(r->in);
	free(r);
}

/* ---- lines ---- */

static int await(struct sl_remote *r, short events, int timeout_ms, struct sl_remote_error *error)
{
	struct pollfd fd = {.fd = r->fd, .events = events};
	int n = poll(&fd, 1, timeout_ms);

	if (n == 0)
		return sl_remote_fail(error, -ETIMEDOUT, "timeout",
				      "the session '%s' did not answer in time", r->name);
	return n < 0 && errno != EINTR
		       ? sl_remote_fail(error, -errno, "connection", "poll: %s", strerror(errno))
		       : 0;
}

static int send_line(struct sl_remote *r, const char *text, uint64_t end_ms, int timeout_ms,
		     struct sl_remote_error *error)
{
	size_t bytes = strlen(text), sent = 0;
	char *line = malloc(bytes + 2);
	int err = line ? 0 : sl_remote_fail(error, -ENOMEM, "memory", "no memory");

	if (line) {
		memcpy(line, text, bytes);
		line[bytes++] = '\n';
	}
	while (!err && sent < bytes) {
		ssize_t n = send(r->fd, line + sent, bytes - sent, MSG_NOSIGNAL);

		if (n > 0)
			sent += (size_t)n;
		else if (errno == EAGAIN)
			err = await(r, POLLOUT, sl_remote_left_ms(end_ms, timeout_ms), error);
		else if (errno != EINTR)
			err = sl_remote_fail(error, -errno, "connection",
					     "the session '%s' has ended or hung up", r->name);
	}
	free(line);
	return err;
}

static int make_room(struct sl_remote *r)
{
	size_t room = r->room ? 2 * r->room : FIRST_ROOM;
	char *more;

	if (r->bytes < r->room)
		return 0;
	more = room > LINE_MOST ? NULL : realloc(r->in, room);
	if (!more)
		return -ENOMEM;
	r->in = more;
	r->room = room;
	return 0;
}

static int take_line(struct sl_remote *r, size_t length, char **line)
{
	*line = strndup(r->in, length);
	if (!*line)
		return -ENOMEM;
	r->bytes -= length + 1;
	memmove(r->in, r->in + length + 1, r->bytes);
	return 0;
}

static int read_more(struct sl_remote *r, int timeout_ms, struct sl_remote_error *error)
{
	ssize_t n;

	if (make_room(r))
		return sl_remote_fail(error, -ENOMEM, "reply",
				      "no memory, or the session's line is too long");
	n = recv(r->fd, r->in + r->bytes, r->room - r->bytes, 0);
	if (n > 0) {
		r->bytes += (size_t)n;
		return 0;
	}
	if (n < 0 && errno == EAGAIN)
		return await(r, POLLIN, timeout_ms, error);
	if (n < 0 && errno == EINTR)
		return 0;
	return sl_remote_fail(error, -ECONNRESET, "connection",
			      "the session '%s' has ended or hung up", r->name);
}

int sl_remote_next(struct sl_remote *r, int timeout_ms, char **line, struct sl_remote_error *error)
{
	uint64_t end_ms = sl_remote_now_ms() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms);
	int err = 0;

	while (!err) {
		const char *end = r->bytes ? memchr(r->in, '\n', r->bytes) : NULL;

		if (end)
			return take_line(r, (size_t)(end - r->in), line);
		err = read_more(r, sl_remote_left_ms(end_ms, timeout_ms), error);
	}
	return err;
}

/* ---- requests ---- */

static void copy_error(const json_t *json, struct sl_remote_error *error)
{
	static const char *const key[] = {"code", "message", "where", "hint"};
	char *const to[] = {error->code, error->message, error->where, error->hint};
	const size_t bytes[] = {sizeof(error->code), sizeof(error->message), sizeof(error->where),
				sizeof(error->hint)};

	for (unsigned i = 0; i < 4; i++) {
		const char *text = json_string_value(json_object_get(json, key[i]));

		snprintf(to[i], bytes[i], "%s", text ? text : "");
	}
}

static int look_at(const json_t *reply, struct sl_remote_error *error)
{
	const json_t *ok = json_object_get(reply, "ok");

	if (json_is_true(ok))
		return 0;
	if (!json_is_false(ok))
		return sl_remote_fail(error, -EBADMSG, "reply", "the reply is not understood");
	if (error)
		copy_error(json_object_get(reply, "error"), error);
	return -EPROTO;
}

int sl_remote_request(struct sl_remote *r, const char *json, int timeout_ms, char **reply,
		      struct sl_remote_error *error)
{
	uint64_t end_ms = sl_remote_now_ms() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms);
	int err = send_line(r, json, end_ms, timeout_ms, error);
	char *line = NULL;
	json_t *parsed;

	if (!err)
		err = sl_remote_next(r, sl_remote_left_ms(end_ms, timeout_ms), &line, error);
	if (err)
		return err;
	parsed = json_loads(line, 0, NULL);
	err = look_at(parsed, error);
	json_decref(parsed);
	if (reply)
		*reply = line;
	else
		free(line);
	return err;
}

int sl_remote_ask(struct sl_remote *r, json_t *request, int timeout_ms, json_t **reply,
		  struct sl_remote_error *error)
{
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL, *line = NULL;
	int err = text ? sl_remote_request(r, text, timeout_ms, &line, error)
		       : sl_remote_fail(error, -EINVAL, "request",
					"no memory, or a text that is not UTF-8");

	free(text);
	json_decref(request);
	if (!err && reply)
		*reply = json_loads(line, 0, NULL);
	free(line);
	return err;
}
