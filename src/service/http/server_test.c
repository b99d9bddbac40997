/* server_test.c - a server with routes of its own and clients that speak over sockets: handlers of
 * every kind, bodies, bounds, streams of viewers that read and of those that do not, the audit log.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "service/http/events.h"
#include "service/http/server.h"

enum { ANSWER = 4 << 20 };

struct rig {
	struct sl_http_server *server;
	struct sl_events *events;
	uint16_t port;
	_Atomic unsigned blocked; /* handlers that wait */
	_Atomic bool go;
	struct sl_http_request *later;
	struct sl_thread thread;
	char audit[64];
};

/* ---- handlers ---- */

static void echo(void *arg, struct sl_http_request *r)
{
	size_t bytes;
	const char *body = sl_http_body(r, &bytes);

	sl_http_note(r, "%zu bytes", bytes);
	sl_http_answer_text(r, 200, "text/plain", body);
}

static void look(void *arg, struct sl_http_request *r)
{
	char text[400];

	snprintf(text, sizeof(text), "%s %llu %s %d %s", sl_http_segment(r, 0),
		 (unsigned long long)sl_http_whole(r, "n"), sl_http_text(r, "word"),
		 sl_http_flag(r, "flag"), sl_role_name(sl_http_role(r)));
	sl_http_answer_text(r, 200, "text/plain", text);
}

static void parse(void *arg, struct sl_http_request *r)
{
	static const char *const members[] = {"a", "b", NULL};
	json_t *json = sl_http_body_json(r);

	if (json && sl_http_only(r, json, members))
		sl_http_answer_json(r, 200, json_incref(json));
	json_decref(json);
}

static void wait_for_go(void *arg, struct sl_http_request *r)
{
	struct rig *rig = arg;

	atomic_fetch_add(&rig->blocked, 1);
	while (!atomic_load(&rig->go))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	sl_http_answer_empty(r, 204);
}

static void *finish_later(void *arg)
{
	struct rig *rig = arg;

	sl_clock_sleep_until(sl_clock_ns() + 20000000);
	sl_http_answer_text(rig->later, 200, "text/plain", "late");
	sl_http_finish(rig->later);
	return NULL;
}

static void answer_later(void *arg, struct sl_http_request *r)
{
	struct rig *rig = arg;

	rig->later = r;
	sl_thread_join(&rig->thread);
	sl_thread_start(&rig->thread, "later", NULL, finish_later, rig);
}

static void answer_at_once(void *arg, struct sl_http_request *r)
{
	sl_http_answer_text(r, 200, "text/plain", "early");
	sl_http_finish(r);
}

static void say_nothing(void *arg, struct sl_http_request *r)
{
}

static void stream(void *arg, struct sl_http_request *r)
{
	struct rig *rig = arg;
	const struct sl_event hello = {"hello", NULL, "{}", false};

	sl_http_answer_events(r, rig->events, sl_http_text(r, "topic"),
			      sl_http_whole(r, "interval_ms"), &hello, 1);
}

static const struct sl_http_parameter of_look[] = {{"n", SL_HTTP_WHOLE, 0, 100, "7", NULL, ""},
						   {"word", SL_HTTP_TEXT, 0, 20, NULL, NULL, ""},
						   {"flag", SL_HTTP_FLAG, 0, 0, NULL, NULL, ""},
						   {NULL}};
static const struct sl_http_parameter of_stream[] = {
	{"topic", SL_HTTP_TEXT, 0, 20, NULL, NULL, ""},
	{"interval_ms", SL_HTTP_WHOLE, 0, 100000, "0", NULL, ""},
	{NULL}};
static const struct sl_http_route routes[] = {
	{.method = "POST",
	 .pattern = "/echo",
	 .handle = echo,
	 .body = "text/plain",
	 .body_optional = true},
	{.method = "PUT",
	 .pattern = "/echo",
	 .handle = echo,
	 .body = "text/plain",
	 .how = SL_HTTP_ON_WORKER},
	{.method = "GET", .pattern = "/look/{name}", .handle = look, .query = of_look},
	{.method = "POST",
	 .pattern = "/json",
	 .handle = parse,
	 .body = "application/json",
	 .how = SL_HTTP_ON_WORKER,
	 .quiet = true},
	{.method = "GET", .pattern = "/wait", .handle = wait_for_go, .how = SL_HTTP_ON_WORKER},
	{.method = "GET", .pattern = "/later", .handle = answer_later, .how = SL_HTTP_LATER},
	{.method = "GET", .pattern = "/sooner", .handle = answer_at_once, .how = SL_HTTP_LATER},
	{.method = "GET", .pattern = "/nothing", .handle = say_nothing, .how = SL_HTTP_ON_WORKER},
	{.method = "GET", .pattern = "/stream", .handle = stream, .query = of_stream},
	{NULL},
};
static const struct sl_http_route *const tables[] = {routes, NULL};

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct sl_http_options o = {
		.listen = "127.0.0.1:0", .routes = tables, .service = rig, .audit = rig->audit};

	snprintf(rig->audit, sizeof(rig->audit), "/tmp/audit-%d.log", (int)getpid());
	unlink(rig->audit);
	rig->events = sl_events_open();
	assert_non_null(rig->events);
	assert_int_equal(sl_http_open(&o, &rig->server), 0);
	rig->port = (uint16_t)atoi(strrchr(sl_http_url(rig->server), ':') + 1);
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	atomic_store(&rig->go, true);
	sl_http_quiesce(rig->server);
	sl_thread_join(&rig->thread);
	sl_events_end(rig->events);
	sl_http_close(rig->server);
	sl_events_close(rig->events);
	unlink(rig->audit);
	free(rig);
	return 0;
}

/* ---- clients ---- */

static int connect_to(const struct rig *rig, int receive_bytes)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(rig->port),
				      .sin_addr = {htonl(INADDR_LOOPBACK)}};
	const struct timeval limit = {.tv_sec = 60};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	if (receive_bytes)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void say(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t n = send(fd, text, bytes, MSG_NOSIGNAL);

		if (n <= 0)
			return; /* it has hung up */
		text += n;
		bytes -= (size_t)n;
	}
}

/* All that comes until it hangs up. */
static char *hear(int fd)
{
	size_t have = 0, room = ANSWER;
	char *text = malloc(room);
	ssize_t n;

	while ((n = recv(fd, text + have, room - 1 - have, 0)) > 0) {
		have += (size_t)n;
		if (have + 1 == room) {
			room *= 2;
			text = realloc(text, room);
			assert_non_null(text);
		}
	}
	text[have] = 0;
	close(fd);
	return text;
}

/* An answer, with its head; the connection ends behind it. */
static char *ask_with(const struct rig *rig, const char *line, const char *headers,
		      const char *body, size_t bytes)
{
	int fd = connect_to(rig, 0);
	char head[8000];

	snprintf(head, sizeof(head),
		 "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: "
		 "%zu\r\n%s\r\n",
		 line, bytes, headers);
	say(fd, head, strlen(head));
	say(fd, body, bytes);
	return hear(fd);
}

static void answers(const struct rig *rig, const char *line, const char *body, int status,
		    const char *has)
{
	char *answer = ask_with(rig, line, "", body, strlen(body));
	int got = 0;

	sscanf(answer, "HTTP/1.1 %d", &got);
	if (got != status || (has && !strstr(answer, has)))
		fail_msg("%s: %d expected, with '%s'; got:\n%.500s", line, status, has ? has : "",
			 answer);
	free(answer);
}

/* ---- tests ---- */

static void handlers_of_every_kind_answer(void **state)
{
	const struct rig *rig = *state;

	answers(rig, "POST /echo", "at once", 200, "\r\n\r\nat once");
	answers(rig, "POST /echo", "", 200, "Content-Length: 0");
	answers(rig, "PUT /echo", "on a worker", 200, "\r\n\r\non a worker");
	answers(rig, "GET /later", "", 200, "\r\n\r\nlate");
	answers(rig, "GET /sooner", "", 200, "\r\n\r\nearly");
	answers(rig, "GET /nothing", "", 500, "\"code\":\"system\"");
	answers(rig, "HEAD /later", "", 200, "Content-Length: 4");
	answers(rig, "GET /look/abc?n=5&word=a%20b&flag", "", 200, "\r\n\r\nabc 5 a b 1 configure");
	answers(rig, "GET /look/abc", "", 200, "\r\n\r\nabc 7  0 configure");
}

static void requests_that_do_not_fit_are_refused(void **state)
{
	const struct rig *rig = *state;
	char *long_target = calloc(1, 6000);

	answers(rig, "PUT /echo", "", 400, "takes a body");
	answers(rig, "GET /look/abc", "body", 400, "takes no body");
	answers(rig, "GET /look/abc?m=1", "", 400, "'m'");
	answers(rig, "GET /look/a%2Fb", "", 404, "not_found");
	answers(rig, "DELETE /echo", "", 405, "Allow: POST, PUT");
	answers(rig, "BREW /echo", "", 405, "POST, PUT");
	answers(rig, "POST /json", "{\"a\":1,\"b\":[]}", 200, "{\"a\":1,\"b\":[]}");
	answers(rig, "POST /json", "{\"c\":1}", 400, "'c'");
	answers(rig, "POST /json", "{\"a\":1,\"a\":2}", 400, "not JSON");
	answers(rig, "POST /json", "[1]", 400, "not a JSON object");
	answers(rig, "POST /json", "{", 400, "line 1");
	memset(long_target, 'x', 5500);
	memcpy(long_target, "GET /look/", 10);
	answers(rig, long_target, "", 414, "too_large");
	free(long_target);
}

static void bodies_are_bounded(void **state)
{
	const struct rig *rig = *state;
	char *body = malloc(3 << 20), *answer;

	memset(body, 'y', 3 << 20);
	answer = ask_with(rig, "POST /echo", "", body, 1 << 20);
	assert_non_null(strstr(answer, "HTTP/1.1 200"));
	assert_int_equal(strlen(strstr(answer, "\r\n\r\n") + 4), 1 << 20);
	free(answer);
	answer = ask_with(rig, "POST /echo", "Expect: 100-continue\r\n", body, (1 << 20) + 1);
	assert_non_null(strstr(answer, "HTTP/1.1 413"));
	free(answer);
	free(body);
}

/* Chunks say nothing of the whole: it is counted as it comes. */
static void chunked_bodies_are_bounded(void **state)
{
	static const char head[] = "POST /echo HTTP/1.1\r\nHost: localhost\r\nConnection: "
				   "close\r\nTransfer-Encoding: chunked\r\n\r\n";
	const struct rig *rig = *state;
	char *chunk = malloc(65536 + 20), *answer;
	int fd = connect_to(rig, 0), at;

	say(fd, head, sizeof(head) - 1);
	at = sprintf(chunk, "10000\r\n");
	memset(chunk + at, 'z', 65536);
	memcpy(chunk + at + 65536, "\r\n", 2);
	for (int i = 0; i < 20; i++)
		say(fd, chunk, (size_t)at + 65538);
	say(fd, "0\r\n\r\n", 5);
	answer = hear(fd);
	assert_non_null(strstr(answer, "HTTP/1.1 413"));
	free(answer);
	fd = connect_to(rig, 0);
	say(fd, head, sizeof(head) - 1);
	for (int i = 0; i < 1000; i++) /* without end: it hangs up */
		say(fd, chunk, (size_t)at + 65538);
	free(hear(fd));
	free(chunk);
	answers(rig, "POST /echo", "still here", 200, "still here");
}

static void what_waits_for_workers_is_bounded(void **state)
{
	struct rig *rig = *state;
	int fd[SL_HTTP_WORKERS + SL_HTTP_JOBS];
	static const char request[] =
		"GET /wait HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

	for (unsigned i = 0; i < SL_HTTP_WORKERS; i++) {
		fd[i] = connect_to(rig, 0);
		say(fd[i], request, sizeof(request) - 1);
	}
	while (atomic_load(&rig->blocked) < SL_HTTP_WORKERS)
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	for (unsigned i = SL_HTTP_WORKERS; i < SL_HTTP_WORKERS + SL_HTTP_JOBS; i++) {
		fd[i] = connect_to(rig, 0);
		say(fd[i], request, sizeof(request) - 1);
	}
	/* What is answered at once does not wait for them. */
	answers(rig, "GET /look/x", "", 200, "x 7");
	for (;;) { /* the last of them may still be on its way */
		char *answer = ask_with(rig, "PUT /echo", "", "a", 1);
		bool busy = strstr(answer, "HTTP/1.1 503") && strstr(answer, "Retry-After: 1");

		free(answer);
		if (busy)
			break;
	}
	atomic_store(&rig->go, true);
	for (unsigned i = 0; i < SL_HTTP_WORKERS + SL_HTTP_JOBS; i++) {
		char *answer = hear(fd[i]);

		assert_non_null(strstr(answer, "HTTP/1.1 204"));
		free(answer);
	}
}

static void connections_are_bounded(void **state)
{
	static const char request[] = "GET /look/x HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct rig *rig = *state;
	unsigned served = 0, busy = 0;
	int fd[300];
	char text[500];

	for (unsigned i = 0; i < 300; i++)
		fd[i] = connect_to(rig, 0);
	for (unsigned i = 0; i < 300; i++) {
		ssize_t n;

		say(fd[i], request, sizeof(request) - 1);
		n = recv(fd[i], text, sizeof(text) - 1, 0);
		text[n > 0 ? n : 0] = 0;
		served += strstr(text, "HTTP/1.1 200") != NULL;
		busy += strstr(text, "HTTP/1.1 503") != NULL;
	}
	assert_int_equal(served, SL_HTTP_CONNECTIONS);
	assert_int_equal(busy, 300 - SL_HTTP_CONNECTIONS);
	for (unsigned i = 0; i < 300; i++)
		close(fd[i]);
	for (;;) { /* once it has seen that they are gone */
		char *answer = ask_with(rig, "GET /look/x", "", "", 0);
		bool good = strstr(answer, "HTTP/1.1 200") != NULL;

		free(answer);
		if (good)
			break;
	}
}

/* ---- streams ---- */

static int open_stream(const struct rig *rig, const char *query, int receive_bytes)
{
	int fd = connect_to(rig, receive_bytes);
	char head[300];

	snprintf(head, sizeof(head),
		 "GET /stream%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", query);
	say(fd, head, strlen(head));
	return fd;
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static void await_viewers(struct rig *rig, unsigned n)
{
	while (sl_events_viewers(rig->events) != n)
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
}

static void viewers_get_what_they_want(void **state)
{
	struct rig *rig = *state;
	int all = open_stream(rig, "", 0), one = open_stream(rig, "?topic=a", 0);
	char data[40], *text;

	await_viewers(rig, 2);
	for (unsigned i = 0; i < 20; i++) {
		struct sl_event event = {"tick", i % 2 ? "a" : "b", data, false};

		snprintf(data, sizeof(data), "{\"i\":%u}", i);
		sl_events_publish(rig->events, &event);
	}
	sl_events_publish(rig->events, &(struct sl_event){"news", NULL, "{}", false});
	sl_events_keep_alive(rig->events);
	sl_events_end(rig->events);
	text = hear(all);
	assert_int_equal(count(text, "event: hello"), 1);
	assert_int_equal(count(text, "event: tick"), 20);
	assert_non_null(strstr(text, "data: {\"i\":19}"));
	assert_int_equal(count(text, "event: news"), 1);
	assert_non_null(strstr(text, "Content-Type: text/event-stream"));
	free(text);
	text = hear(one);
	assert_int_equal(count(text, "event: tick"), 10);
	assert_null(strstr(text, "{\"i\":0}"));
	assert_int_equal(count(text, "event: news"), 1);
	free(text);
	await_viewers(rig, 0);
}

/* 400 MB for a viewer that reads nothing: they are not kept, and nothing waits for it. What it gets
 * in the end and what it missed is all there was. */
static void a_viewer_that_does_not_read_is_told_what_it_missed(void **state)
{
	enum { EVENTS = 400 };
	struct rig *rig = *state;
	char *data = malloc((1 << 20) + 1), *text;
	const struct sl_event event = {"big", NULL, data, false};
	int fd = open_stream(rig, "", 4096);
	unsigned long long missed = 0;
	const char *at;

	memset(data, 'd', 1 << 20);
	data[1 << 20] = 0;
	await_viewers(rig, 1);
	for (unsigned i = 0; i < EVENTS; i++)
		sl_events_publish(rig->events, &event);
	assert_true(sl_events_missed(rig->events) > EVENTS / 2);
	sl_events_publish(rig->events, &(struct sl_event){"last", NULL, "{}", false});
	sl_events_end(rig->events);
	text = hear(fd);
	for (at = strstr(text, "{\"missed\":"); at; at = strstr(at + 1, "{\"missed\":"))
		missed += strtoull(at + 10, NULL, 10);
	assert_int_equal(missed + count(text, "event: big") + count(text, "event: last"),
			 EVENTS + 1);
	assert_int_equal(count(text, "event: last"), 1);
	free(text);
	free(data);
}

static void of_what_changes_only_the_latest_is_kept(void **state)
{
	struct rig *rig = *state;
	char *data = malloc(200001), *text;
	const struct sl_event status = {"status", "a", data, true},
			      plug = {"plug", "a", data, false};
	int fd = open_stream(rig, "", 4096), rare = open_stream(rig, "?interval_ms=100000", 0);

	memset(data, 's', 200000);
	data[200000] = 0;
	await_viewers(rig, 2);
	for (unsigned i = 0; i < 40; i++) /* 8 MB: more than the sockets hold */
		sl_events_publish(rig->events, &plug);
	data[10] = 0;
	for (unsigned i = 0; i < 100; i++)
		sl_events_publish(rig->events, &status);
	sl_events_end(rig->events);
	text = hear(fd);
	assert_true(count(text, "event: status") <= 2); /* one could have been under way */
	free(text);
	text = hear(rare);
	assert_int_equal(count(text, "event: status"), 1);
	free(text);
	free(data);
}

static void viewers_that_leave_are_noticed(void **state)
{
	struct rig *rig = *state;
	int fd = open_stream(rig, "", 0);

	await_viewers(rig, 1);
	close(fd);
	while (sl_events_viewers(rig->events)) {
		sl_events_keep_alive(rig->events);
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	}
}

/* ---- audit ---- */

static void commands_are_logged(void **state)
{
	struct rig *rig = *state;
	char text[4000] = "";
	FILE *file;
	size_t n;

	answers(rig, "POST /echo", "12345", 200, NULL);
	answers(rig, "GET /look/x", "", 200, NULL);
	answers(rig, "POST /json", "{}", 200, NULL); /* a quiet one */
	free(ask_with(rig, "GET /look/x", "Origin: http://evil.org\r\n", "", 0));
	free(ask_with(rig, "DELETE /a\"b%0Ac\x01", "", "", 0));
	do {
		file = fopen(rig->audit, "r");
		n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
		text[n] = 0;
		if (file)
			fclose(file);
	} while (count(text, "\n") < 2);
	assert_non_null(strstr(
		text,
		"\"method\":\"POST\",\"path\":\"/echo\",\"status\":200,\"note\":\"5 bytes\"}"));
	assert_non_null(strstr(text, "\"status\":403,\"error\":\"forbidden\""));
	assert_null(strstr(text, "/json"));
	assert_null(strstr(text, "\"GET\",\"path\":\"/look/x\",\"status\":200"));
	for (const char *c = text; *c; c++)
		assert_true(*c == '\n' || (*c >= ' ' && *c < 127));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(handlers_of_every_kind_answer),
		CASE(requests_that_do_not_fit_are_refused),
		CASE(bodies_are_bounded),
		CASE(chunked_bodies_are_bounded),
		CASE(what_waits_for_workers_is_bounded),
		CASE(connections_are_bounded),
		CASE(viewers_get_what_they_want),
		CASE(a_viewer_that_does_not_read_is_told_what_it_missed),
		CASE(of_what_changes_only_the_latest_is_kept),
		CASE(viewers_that_leave_are_noticed),
		CASE(commands_are_logged),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
