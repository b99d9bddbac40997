/* socket_test.c - the status socket of a session: requests, several clients at once, and clients
 * that send garbage, stall, or come in crowds. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <sluice/client.h>
#include <sluice/sluice.h>

#include "base/clock.h"
#include "client/registry.h"
#include "session/metadata.h"
#include "session/private.h"
#include "session/session.h"

enum { PATIENCE_MS = 60000, CLIENTS = 16 };

/* No source comes: it stays `configured` until it is stopped. */
#define EXPERIMENT                                                                          \
	"detector: {kind: pattern, modules: 2, rows: 32, columns: 64}\nlink: {kind: shm}\n" \
	"control: {port: 0}\nsinks: ['null']\n"

static char base[200], last_line[600];
static _Atomic unsigned lines;
static pthread_mutex_t line_lock = PTHREAD_MUTEX_INITIALIZER;

static void note_line(void *arg, enum sl_log_level level, const char *line)
{
	pthread_mutex_lock(&line_lock);
	snprintf(last_line, sizeof(last_line), "%s", line);
	pthread_mutex_unlock(&line_lock);
	lines++;
}

static int setup(void **state)
{
	const char *temporary = getenv("TMPDIR");

	lines = 0;
	snprintf(base, sizeof(base), "%s/socket-XXXXXX", temporary ? temporary : "/tmp");
	if (!mkdtemp(base))
		return -1;
	setenv("SLUICE_RUN_DIR", base, 1);
	return 0;
}

static int teardown(void **state)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf '%s'", base);
	return system(command) ? -1 : 0;
}

static int try_open(const char *name, bool any_name, struct sl_session **session,
		    struct sl_error *error)
{
	const struct sl_session_hooks hooks = {.any_name = any_name, .may_lack_socket = any_name};
	const struct sl_session_options options = {
		.bytes = sizeof(options), .text = EXPERIMENT, .name = name, .log = note_line};

	return sl_session_open_with(&options, &hooks, session, error);
}

static struct sl_session *opened(const char *name)
{
	struct sl_session *session = NULL;
	struct sl_error error;

	if (try_open(name, false, &session, &error))
		fail_msg("%s", error.message);
	return session;
}

static struct sl_remote *connected(const char *name)
{
	struct sl_remote *remote = NULL;
	struct sl_remote_error error;

	if (sl_remote_open(name, PATIENCE_MS, &remote, &error))
		fail_msg("%s", error.message);
	return remote;
}

static json_t *asked(struct sl_remote *remote, const char *request, int expected)
{
	struct sl_remote_error error;
	char *reply = NULL;
	int err = sl_remote_request(remote, request, PATIENCE_MS, &reply, &error);
	json_t *json;

	if (err != expected)
		fail_msg("%s: %d, %s", request, err, err ? error.message : "");
	json = json_loads(reply, 0, NULL);
	assert_non_null(json);
	sl_remote_free(reply);
	return json;
}

static void is_refused(struct sl_remote *remote, const char *request, const char *code)
{
	json_t *json = asked(remote, request, -EPROTO);

	assert_string_equal(
		json_string_value(json_object_get(json_object_get(json, "error"), "code")), code);
	json_decref(json);
}

static void is_taken(struct sl_remote *remote, const char *request)
{
	json_decref(asked(remote, request, 0));
}

static void a_name_belongs_to_one_session(void **state)
{
	struct sl_session *first = opened("one"), *second;
	struct sl_status *status = malloc(sizeof(*status));
	struct sl_error error;

	assert_int_equal(sl_session_status(first, status, sizeof(*status)), 0);
	assert_string_equal(status->session, "one");
	assert_int_equal(try_open("one", false, &second, &error), -EEXIST);
	assert_int_equal(error.code, SL_ERROR_NAME);
	assert_non_null(strstr(error.message, "'one' is running already"));
	assert_int_equal(try_open("no name", false, &second, &error), -EINVAL);
	assert_int_equal(error.code, SL_ERROR_NAME);
	assert_int_equal(try_open("one", true, &second, &error), 0);
	assert_int_equal(sl_session_status(second, status, sizeof(*status)), 0);
	assert_string_equal(status->session, "one-2");
	sl_session_close(second);
	sl_session_close(first);
	second = opened("one");
	assert_int_equal(lines, 2); /* of the two that failed */
	sl_session_close(second);
	free(status);
}

/* The last name that is tried has the number 99; when that one is taken, too, the session goes on
 * without a socket. */
static void names_with_numbers_end_at_99(void **state)
{
	enum { FIRST = 2, LAST = 99 };
	struct sl_claim *claim = calloc(LAST + 1, sizeof(*claim));
	struct sl_status *status = malloc(sizeof(*status));
	char name[SL_REGISTRY_NAME], why[200];
	struct sl_session *first = opened("one"), *session;
	struct sl_error error;
	int folder;

	assert_true(claim && status);
	assert_int_equal(sl_registry_open(true, &folder, why, sizeof(why)), 0);
	for (unsigned i = FIRST; i < LAST; i++) {
		snprintf(name, sizeof(name), "one-%u", i);
		assert_int_equal(sl_registry_claim(folder, name, &claim[i], why, sizeof(why)), 0);
	}
	assert_int_equal(try_open("one", true, &session, &error), 0);
	assert_int_equal(sl_session_status(session, status, sizeof(*status)), 0);
	assert_string_equal(status->session, "one-99");
	sl_session_close(session);
	assert_int_equal(sl_registry_claim(folder, "one-99", &claim[LAST], why, sizeof(why)), 0);
	assert_int_equal(try_open("one", true, &session, &error), 0);
	assert_int_equal(sl_session_status(session, status, sizeof(*status)), 0);
	assert_string_equal(status->session, "");
	assert_non_null(strstr(last_line, "goes on without"));
	sl_session_close(session);
	for (unsigned i = FIRST; i <= LAST; i++)
		sl_registry_release(&claim[i]);
	sl_session_close(first);
	close(folder);
	free(claim);
	free(status);
}

static void without_a_folder_there_is_no_socket(void **state)
{
	struct sl_session *session;
	struct sl_error error;

	assert_int_equal(chmod(base, 0755), 0);
	assert_int_equal(try_open("one", false, &session, &error), -EPERM);
	assert_int_equal(error.code, SL_ERROR_SOCKET);
	assert_int_equal(try_open("one", true, &session, &error), 0);
	assert_non_null(strstr(last_line, "no status socket: "));
	assert_non_null(strstr(last_line, "goes on without"));
	sl_session_close(session);
}

static void states_are_followed(void **state)
{
	const char *const ended[] = {"ended"}, *const armed[] = {"armed"};
	struct sl_session *session = opened("one");
	struct sl_remote *remote = connected("one");
	struct sl_remote_status status;
	struct sl_remote_error error;
	char now[16];

	assert_int_equal(sl_remote_status(remote, PATIENCE_MS, &status, sizeof(status), &error), 0);
	assert_string_equal(status.state, "configured");
	assert_string_equal(status.session, "one");
	assert_string_equal(status.result, "");
	assert_true(status.progress_age_ns == UINT64_MAX);
	is_refused(remote, "{\"call\":\"pause\"}", "state");
	is_refused(remote, "{\"call\":\"resume\"}", "state");
	is_taken(remote, "{\"call\":\"stop\"}"); /* no run is under way: no effect */
	assert_int_equal(lines, 0); /* refusals are not logged: a client could fill the log */
	assert_int_equal(sl_remote_wait(remote, armed, 1, 20, now, &error), -EPROTO);
	assert_string_equal(error.code, "timeout");
	assert_int_equal(sl_remote_call(remote, "start", NULL, PATIENCE_MS, now, &error), 0);
	assert_string_equal(now, "configured");
	is_refused(remote, "{\"call\":\"arm\"}", "state");
	is_refused(remote, "{\"call\":\"configure\"}", "state");
	is_taken(remote, "{\"call\":\"start\"}"); /* it is being armed: start is kept for later */
	assert_int_equal(sl_remote_call(remote, "stop", "test", PATIENCE_MS, now, &error), 0);
	assert_int_equal(sl_remote_wait(remote, ended, 1, PATIENCE_MS, now, &error), 0);
	assert_string_equal(now, "ended");
	assert_int_equal(sl_remote_status(remote, PATIENCE_MS, &status, sizeof(status), &error), 0);
	assert_string_equal(status.error, "stopped");
	assert_string_equal(status.result, "error");
	sl_remote_close(remote);
	sl_session_close(session);
}

static void configure_reads_and_tells_mistakes(void **state)
{
	const char *const good[] = {"ring.slots=16"}, *const bad[] = {"ring.slots=many"};
	struct sl_session *session = opened("one");
	struct sl_remote *remote = connected("one"), *other = connected("one");
	struct sl_remote_error error;
	json_t *json;

	if (sl_remote_configure(remote, good, 1, PATIENCE_MS, &error))
		fail_msg("%s: %s", error.code, error.message);
	assert_int_equal(sl_remote_configure(remote, bad, 1, PATIENCE_MS, &error), -EPROTO);
	assert_string_equal(error.code, "experiment");
	assert_non_null(strstr(error.message, "ring.slots"));
	json = asked(other, "{\"call\":\"status\"}", 0);
	assert_string_equal(json_string_value(json_object_get(json, "state")), "fault");
	json_decref(json);
	assert_int_equal(sl_remote_configure(remote, NULL, 0, PATIENCE_MS, &error), 0);
	sl_remote_close(remote);
	sl_remote_close(other);
	sl_session_close(session);
}

static void note_key(void *arg, const char *key, const char *value)
{
	strcat(strcat(strcat(strcat(arg, key), "="), value), " ");
}

static void points_are_of_a_run(void **state)
{
	struct sl_session *session = opened("one");
	struct sl_remote *remote = connected("one");

	is_refused(remote, "{\"call\":\"point\",\"frames\":1}", "state");
	sl_points_begin(&session->points);
	is_taken(remote, "{\"call\":\"point\",\"first\":3,\"frames\":2,\"values\":{\"x\":1}}");
	is_refused(remote, "{\"call\":\"point\",\"frames\":1,\"values\":{\"y\":1}}", "request");
	assert_int_equal(session->points.n, 1);
	sl_points_end(&session->points);
	sl_remote_close(remote);
	sl_session_close(session);
}

static void metadata_come_from_both_sides(void **state)
{
	struct sl_metadata *copy = malloc(sizeof(*copy));
	struct sl_session *session = opened("one");
	struct sl_remote *remote = connected("one");
	struct sl_remote_error error;
	char seen[200] = "";
	json_t *json;

	assert_int_equal(sl_session_set_metadata(session, "sample", "lysozyme"), 0);
	assert_int_equal(sl_session_set_metadata(session, "a b", "x"), -EINVAL);
	assert_int_equal(sl_remote_set_metadata(remote, "users", "me", PATIENCE_MS, &error), 0);
	assert_int_equal(sl_remote_set_metadata(remote, "user", "me", PATIENCE_MS, &error),
			 -EPROTO);
	assert_string_equal(error.code, "request");
	assert_non_null(strstr(error.message, "did you mean 'users'?"));
	is_refused(remote, "{\"call\":\"metadata\",\"set\":{\"exposure_s\":\"1 ms\"}}", "request");
	is_taken(remote, "{\"call\":\"metadata\",\"set\":{\"T\":77.5}}");
	is_refused(remote, "{\"call\":\"metadata\",\"set\":{\"n\":1,\"a b\":1}}", "request");
	assert_int_equal(sl_remote_keep_metadata(remote, "users", NULL, PATIENCE_MS, &error), 0);
	assert_int_equal(sl_remote_metadata(remote, PATIENCE_MS, note_key, seen, &error), 0);
	assert_string_equal(seen, "sample=lysozyme T=77.5 ");
	sl_session_copy_metadata(session, copy);
	assert_int_equal(copy->n, 2);
	json = asked(remote, "{\"call\":\"status\"}", 0);
	assert_string_equal(
		json_string_value(json_object_get(
			json_object_get(json_object_get(json, "status"), "metadata"), "T")),
		"77.5");
	json_decref(json);
	free(copy);
	sl_remote_close(remote);
	sl_session_close(session);
}

/* ---- connections without the library ---- */

static int raw(const char *name)
{
	int folder, fd;
	char why[200];

	assert_int_equal(sl_registry_open(false, &folder, why, sizeof(why)), 0);
	do
		fd = sl_registry_connect(folder, name);
	while (fd == -EAGAIN && !usleep(1000));
	close(folder);
	assert_true(fd >= 0);
	fcntl(fd, F_SETFL, 0); /* blocking */
	return fd;
}

static void write_all(int fd, const char *bytes, size_t n)
{
	while (n) {
		ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

		if (sent < 0)
			return; /* it was cut */
		bytes += sent;
		n -= (size_t)sent;
	}
}

/* Everything until the session hangs up; the number of lines. */
static unsigned read_to_end(int fd)
{
	char bytes[4096];
	unsigned n = 0;
	ssize_t got;

	while ((got = recv(fd, bytes, sizeof(bytes), 0)) > 0)
		for (ssize_t i = 0; i < got; i++)
			n += bytes[i] == '\n';
	close(fd);
	return n;
}

static void garbage_is_answered_then_cut(void **state)
{
	struct sl_session *session = opened("one");
	static char zeros[100000];
	int fd = raw("one");

	for (int i = 0; i < 20; i++)
		write_all(fd, "garbage\n\n", 9);
	assert_int_equal(read_to_end(fd), 8);
	fd = raw("one");
	write_all(fd, zeros, sizeof(zeros)); /* a line that does not end */
	assert_int_equal(read_to_end(fd), 1);
	fd = raw("one"); /* a last line without its end */
	write_all(fd, "{\"call\":\"status\"}\n{\"call\":\"status\"}", 35);
	shutdown(fd, SHUT_WR);
	assert_int_equal(read_to_end(fd), 2);
	fd = raw("one"); /* it does not wait for its replies, and yet they have their effect */
	write_all(fd, "{\"call\":\"metadata\",\"set\":{\"a\":1}}\n{\"call\":\"status\"}\n", 53);
	close(fd);
	assert_int_equal(lines, 0);
	sl_session_close(session);
}

static void too_many_clients_are_turned_away(void **state)
{
	struct sl_session *session = opened("one");
	struct sl_remote *remote[CLIENTS], *more;
	int fd;

	for (unsigned i = 0; i < CLIENTS; i++) {
		remote[i] = connected("one");
		is_taken(remote[i], "{\"call\":\"status\"}");
	}
	fd = raw("one");
	assert_int_equal(read_to_end(fd), 1);
	sl_remote_close(remote[0]);
	is_taken(remote[1], "{\"call\":\"status\"}");
	more = connected("one");
	is_taken(more, "{\"call\":\"status\"}");
	sl_remote_close(more);
	for (unsigned i = 1; i < CLIENTS; i++)
		sl_remote_close(remote[i]);
	sl_session_close(session);
}

static void a_crowd_is_served_in_turn(void **state)
{
	struct sl_session *session = opened("one");
	struct sl_remote *remote = connected("one");
	char *many = malloc(18 * 1000);
	int fd = raw("one");
	uint64_t begin;

	for (int i = 0; i < 1000; i++)
		memcpy(many + 18 * i, "{\"call\":\"status\"}\n", 18);
	write_all(fd, many, 18 * 1000);
	begin = sl_clock_ns();
	for (int i = 0; i < 5; i++)
		is_taken(remote, "{\"call\":\"status\"}");
	/* 200 requests a second for both: the flood's thousand would take four. */
	assert_true(sl_clock_ns() - begin < UINT64_C(2000000000));
	close(fd);
	free(many);
	sl_remote_close(remote);
	sl_session_close(session);
}

static void watchers_get_lines_and_the_last_word(void **state)
{
	struct sl_session *session = opened("one");
	struct sl_remote *watcher = connected("one"), *waiter = connected("one");
	int stalled = raw("one"), waits = raw("one");
	char *line = NULL;

	write_all(stalled, "{\"call\":\"watch\",\"interval_ms\":100}\n", 36);
	write_all(waits, "{\"call\":\"wait\",\"states\":[\"armed\"]}\n", 36);
	is_taken(watcher, "{\"call\":\"watch\",\"interval_ms\":100}");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sl_remote_next(watcher, PATIENCE_MS, &line, NULL), 0);
		assert_non_null(strstr(line, "\"call\":\"watch\""));
		sl_remote_free(line);
	}
	is_taken(waiter, "{\"call\":\"start\"}");
	is_taken(waiter, "{\"call\":\"close\"}");
	assert_true(sl_session_asked_to_close(session));
	is_taken(waiter, "{\"call\":\"wait\",\"states\":[\"ended\"]}");
	sl_session_close(session);
	assert_int_equal(read_to_end(waits), 1);
	do {
		assert_int_equal(sl_remote_next(watcher, PATIENCE_MS, &line, NULL), 0);
		if (!strstr(line, "\"state\":\"ended\"")) {
			sl_remote_free(line);
			line = NULL;
		}
	} while (!line);
	sl_remote_free(line);
	assert_int_equal(sl_remote_next(watcher, PATIENCE_MS, &line, NULL), -ECONNRESET);
	sl_remote_close(watcher);
	sl_remote_close(waiter);
	close(stalled);
}

static void a_client_that_waits_hears_of_the_close(void **state)
{
	struct sl_session *session = opened("one");
	struct sl_remote *other = connected("one");
	int waits = raw("one");

	write_all(waits, "{\"call\":\"wait\",\"states\":[\"armed\"]}\n", 36);
	is_taken(other, "{\"call\":\"status\"}");
	is_taken(other, "{\"call\":\"status\"}"); /* in turn: the other request was taken, too */
	sl_session_close(session);
	assert_int_equal(read_to_end(waits), 1);
	sl_remote_close(other);
}

static void closing_waits_for_configure(void **state)
{
	for (int i = 0; i < 20; i++) {
		struct sl_session *session = opened("one");
		int fd = raw("one");

		write_all(fd, "{\"call\":\"configure\"}\n", 21);
		if (i % 2)
			usleep((unsigned)i * 100);
		sl_session_close(session);
		close(fd);
	}
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void no_free_descriptor_costs_no_time(void **state)
{
	struct sl_session *session = opened("one");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), taken[256], n = 0;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct rlimit before, few;
	uint64_t used;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){128, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/one.sock", base);
	while (n < 256 && (taken[n] = dup(fd)) >= 0)
		n++;
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	used = cpu_ns();
	usleep(300000);
	assert_true(cpu_ns() - used < 100000000);
	while (n)
		close(taken[--n]);
	setrlimit(RLIMIT_NOFILE, &before);
	write_all(fd, "{\"call\":\"status\"}\n", 18);
	shutdown(fd, SHUT_WR);
	assert_int_equal(read_to_end(fd), 1);
	sl_session_close(session);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_name_belongs_to_one_session),
		CASE(names_with_numbers_end_at_99),
		CASE(without_a_folder_there_is_no_socket),
		CASE(states_are_followed),
		CASE(configure_reads_and_tells_mistakes),
		CASE(points_are_of_a_run),
		CASE(metadata_come_from_both_sides),
		CASE(garbage_is_answered_then_cut),
		CASE(too_many_clients_are_turned_away),
		CASE(a_crowd_is_served_in_turn),
		CASE(watchers_get_lines_and_the_last_word),
		CASE(a_client_that_waits_hears_of_the_close),
		CASE(closing_waits_for_configure),
		CASE(no_free_descriptor_costs_no_time),
	};

	return cmocka_run_group_tests_name("socket", tests, NULL, NULL);
}
