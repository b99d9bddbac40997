/* feed_test.c - rows reach a server that goes away, forgets, refuses or says nothing; each is
 * counted once. The server is a thread of this test with a stream that has ids alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "sink/redis/feed.h"

enum { SINCE = 1000, ROWS_MOST = 4096, BUFFER = 1 << 20 };

/* What it does to rows. */
enum { STORE, REFUSE, DROP, STORE_AND_DROP, SILENCE };

static struct server {
	char path[64];
	int listener;
	pthread_t thread;
	_Atomic int stop, mode;
	_Atomic uint64_t rows, descriptions, connections; /* rows: in its stream */
	uint64_t last;					  /* sequence of the last id */
	uint64_t foreign; /* id of an entry of another run; 0: none */
	const char *password;
} server;

/* A whole command at `at`: where it ends, and its first three arguments. NULL: not whole. */
static char *parse(char *at, const char *end, char argument[3][64])
{
	long count, length;
	char *line = memmem(at, (size_t)(end - at), "\r\n", 2);

	if (!line)
		return NULL;
	count = strtol(at + 1, NULL, 10);
	at = line + 2;
	for (long i = 0; i < count; i++) {
		line = memmem(at, (size_t)(end - at), "\r\n", 2);
		if (!line)
			return NULL;
		length = strtol(at + 1, NULL, 10);
		at = line + 2;
		if (end - at < length + 2)
			return NULL;
		if (i < 3)
			snprintf(argument[i], 64, "%.*s", (int)length, at);
		at += length + 2;
	}
	return at;
}

static void say(int fd, const char *text)
{
	send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* False: hang up. */
static bool add_row(int fd, const char *id)
{
	int mode = atomic_load(&server.mode);
	uint64_t number = strtoull(strchr(id, '-') + 1, NULL, 10);

	if (mode == DROP)
		return false;
	if (mode == REFUSE) {
		say(fd, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
		return true;
	}
	if (number <= server.last) {
		say(fd, "-ERR The ID specified in XADD is equal or smaller than the target stream "
			"top item\r\n");
		return true;
	}
	server.last = number;
	atomic_fetch_add(&server.rows, 1);
	if (mode == STORE_AND_DROP)
		return false;
	say(fd, "+1-1\r\n");
	return true;
}

static bool answer(int fd, char argument[3][64])
{
	char text[128];

	if (!strcmp(argument[0], "XADD"))
		return add_row(fd, argument[2]);
	if (!strcmp(argument[0], "AUTH") && strcmp(argument[1], server.password) != 0) {
		say(fd, "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
	} else if (!strcmp(argument[0], "XREVRANGE")) {
		if (server.foreign || server.last) {
			snprintf(text, sizeof(text), "%d-%d", SINCE,
				 (int)(server.foreign ? server.foreign : server.last));
			dprintf(fd, "*1\r\n*2\r\n$%zu\r\n%s\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n",
				strlen(text), text);
		} else
			say(fd, "*0\r\n");
	} else {
		atomic_fetch_add(&server.descriptions, !strcmp(argument[0], "HSET"));
		say(fd, "+OK\r\n");
	}
	return true;
}

static void serve(int fd)
{
	static char bytes[BUFFER];
	char argument[3][64] = {""};
	size_t have = 0;

	while (!atomic_load(&server.stop)) {
		struct pollfd pollfd = {.fd = fd, .events = POLLIN};
		char *at = bytes, *next;
		ssize_t n;

		if (atomic_load(&server.mode) == SILENCE || poll(&pollfd, 1, 5) <= 0) {
			usleep(500);
			continue;
		}
		n = recv(fd, bytes + have, sizeof(bytes) - have, MSG_DONTWAIT);
		if (n <= 0)
			return;
		have += (size_t)n;
		while ((next = parse(at, bytes + have, argument))) {
			if (!answer(fd, argument))
				return;
			at = next;
		}
		have -= (size_t)(at - bytes);
		memmove(bytes, at, have);
	}
}

static void *server_main(void *arg)
{
	(void)arg;
	while (!atomic_load(&server.stop)) {
		struct pollfd pollfd = {.fd = server.listener, .events = POLLIN};
		int fd;

		if (poll(&pollfd, 1, 5) <= 0)
			continue;
		fd = accept(server.listener, NULL, NULL);
		if (fd < 0)
			continue;
		atomic_fetch_add(&server.connections, 1);
		serve(fd);
		close(fd);
	}
	return NULL;
}

static void begin_server(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	atomic_store(&server.stop, 0);
	unlink(server.path);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", server.path);
	server.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server.listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(server.listener, 4), 0);
	assert_int_equal(pthread_create(&server.thread, NULL, server_main, NULL), 0);
}

static void end_server(void)
{
	atomic_store(&server.stop, 1);
	pthread_join(server.thread, NULL);
	close(server.listener);
	unlink(server.path);
}

static uint32_t describe(void *arg, struct sl_command *to, bool first)
{
	(void)arg, (void)first;
	sl_command_begin(to, 2);
	sl_command_text(to, "HSET");
	sl_command_text(to, "run");
	return 1;
}

/* ---- messages ---- */

static struct {
	int warnings, infos, errors;
	char last[512];
} said;

static void note(void *arg, enum sl_log_level level, const char *line)
{
	(void)arg;
	said.warnings += level == SL_LOG_WARN;
	said.infos += level == SL_LOG_INFO;
	said.errors += level == SL_LOG_ERROR;
	snprintf(said.last, sizeof(said.last), "%s", line);
}

static const struct sl_log_target target = {note, NULL};

/* ---- a feed ---- */

static struct sl_feed feed;
static struct sl_feed_options options;

static int setup(void **state)
{
	(void)state;
	memset(&said, 0, sizeof(said));
	memset(&feed, 0, sizeof(feed));
	sl_log_set_target(&target);
	server = (struct server){.password = "secret"};
	snprintf(server.path, sizeof(server.path), "/tmp/feed-%d.sock", (int)getpid());
	options = (struct sl_feed_options){.address = server.path,
					   .label = "it",
					   .password = "",
					   .stream = "s",
					   .since_ms = SINCE,
					   .queue = 100,
					   .timeout_ns = 600000000,
					   .describe = describe};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sl_log_set_target(NULL);
	return 0;
}

static int add(void)
{
	struct sl_command row = {0};
	char id[48];
	int r;

	snprintf(id, sizeof(id), "%d-%d", SINCE + 1, (int)feed.rows.end + 1);
	sl_command_begin(&row, 5);
	sl_command_text(&row, "XADD");
	sl_command_text(&row, "s");
	sl_command_text(&row, id);
	sl_command_text(&row, "a");
	sl_command_text(&row, "b");
	r = sl_feed_add(&feed, row.bytes, row.length);
	sl_command_free(&row);
	return r;
}

/* Until the condition holds, a few seconds at most. */
#define WAIT_FOR(condition)                                                   \
	for (int i = 0; !(condition); i++, usleep(2000), sl_feed_look(&feed)) \
	assert_true(i < 2500)

static void adds_up(uint64_t rows)
{
	assert_int_equal(feed.stored + feed.missed + sl_feed_waiting(&feed), rows);
}

static void end(void)
{
	sl_feed_end(&feed, NULL);
	assert_int_equal(sl_feed_waiting(&feed), 0);
	sl_feed_close(&feed);
}

static void all_rows_arrive_in_order(void **state)
{
	struct sl_command last = {0};

	(void)state;
	begin_server();
	assert_int_equal(sl_feed_open(&feed, &options), 0);
	assert_int_equal(feed.state, SL_FEED_READY);
	for (int i = 0; i < 2000; i++) {
		WAIT_FOR(sl_feed_waiting(&feed) < options.queue);
		assert_int_equal(add(), 0);
	}
	sl_command_begin(&last, 3);
	sl_command_text(&last, "XADD");
	sl_command_text(&last, "s");
	sl_command_text(&last, "1001-2001");
	sl_feed_end(&feed, &last);
	assert_int_equal(feed.stored, 2000);
	assert_int_equal(feed.missed, 0);
	assert_int_equal(atomic_load(&server.rows), 2001);
	assert_true(atomic_load(&server.descriptions) >= 2);
	assert_int_equal(said.warnings + said.infos + said.errors, 0);
	sl_command_free(&last);
	sl_feed_close(&feed);
	end_server();
}

static void without_a_server_rows_wait_and_then_are_missed(void **state)
{
	(void)state;
	assert_int_equal(sl_feed_open(&feed, &options), 0);
	assert_int_equal(said.warnings, 1);
	for (int i = 0; i < 150; i++)
		assert_int_equal(add(), i < 100 ? 0 : -ENOBUFS);
	assert_int_equal(sl_feed_waiting(&feed), 100);
	adds_up(150);
	end();
	assert_int_equal(feed.missed, 150);
	assert_int_equal(said.warnings, 1);
}

static void a_required_server_that_is_not_there_is_an_error(void **state)
{
	(void)state;
	options.required = true;
	assert_true(sl_feed_open(&feed, &options) < 0);
	assert_int_equal(said.errors, 1);
	assert_non_null(strstr(said.last, "set required: false"));
	sl_feed_close(&feed);
}

/* Rows that were stored and not acknowledged are not stored twice, nor missed. */
static void a_lost_connection_loses_and_doubles_nothing(int mode)
{
	begin_server();
	assert_int_equal(sl_feed_open(&feed, &options), 0);
	for (int i = 0; i < 10; i++)
		add();
	WAIT_FOR(feed.stored == 10);
	atomic_store(&server.mode, mode);
	for (int i = 0; i < 20; i++)
		add();
	WAIT_FOR(feed.state == SL_FEED_AWAY);
	atomic_store(&server.mode, STORE);
	adds_up(30);
	WAIT_FOR(feed.state == SL_FEED_READY);
	WAIT_FOR(feed.stored == 30);
	assert_int_equal(atomic_load(&server.rows), 30);
	assert_int_equal(feed.missed, 0);
	assert_int_equal(feed.reconnections, 1);
	assert_int_equal(said.warnings, 1);
	assert_int_equal(said.infos, 1);
	end();
	end_server();
}

static void a_server_that_hangs_up(void **state)
{
	(void)state;
	a_lost_connection_loses_and_doubles_nothing(DROP);
}

static void a_server_that_hangs_up_after_storing(void **state)
{
	(void)state;
	a_lost_connection_loses_and_doubles_nothing(STORE_AND_DROP);
}

static void a_server_that_says_nothing(void **state)
{
	(void)state;
	a_lost_connection_loses_and_doubles_nothing(SILENCE);
}

static void a_server_that_forgets(void **state)
{
	(void)state;
	begin_server();
	assert_int_equal(sl_feed_open(&feed, &options), 0);
	for (int i = 0; i < 50; i++)
		add();
	WAIT_FOR(feed.stored == 50);
	end_server();
	server.last = 30;
	WAIT_FOR(feed.state == SL_FEED_AWAY);
	add();
	begin_server();
	WAIT_FOR(feed.stored == 31);
	assert_int_equal(feed.missed, 20);
	assert_int_equal(feed.lost, 20);
	assert_non_null(strstr(said.last, "lost 20 rows"));
	adds_up(51);
	end();
	end_server();
}

static void refused_rows_are_missed_and_told_once(void **state)
{
	(void)state;
	begin_server();
	assert_int_equal(sl_feed_open(&feed, &options), 0);
	atomic_store(&server.mode, REFUSE);
	for (int i = 0; i < 20; i++)
		add();
	WAIT_FOR(feed.missed == 20);
	atomic_store(&server.mode, STORE);
	add();
	WAIT_FOR(feed.stored == 1);
	assert_int_equal(said.warnings, 1);
	assert_non_null(strstr(said.last, "OOM"));
	end();
	end_server();
}

static void the_password_is_sent_and_never_told(void **state)
{
	(void)state;
	begin_server();
	options.password = "secret";
	assert_int_equal(sl_feed_open(&feed, &options), 0);
	assert_int_equal(feed.state, SL_FEED_READY);
	end();
	memset(&feed, 0, sizeof(feed));
	options.password = "wr0ng-one";
	assert_int_equal(sl_feed_open(&feed, &options), 0);
	assert_int_equal(feed.state, SL_FEED_AWAY);
	assert_int_equal(said.warnings, 1);
	assert_non_null(strstr(said.last, "WRONGPASS"));
	assert_null(strstr(said.last, "wr0ng-one"));
	end();
	end_server();
}

static void a_stream_of_another_run_is_left_alone(void **state)
{
	(void)state;
	server.foreign = 77;
	begin_server();
	assert_int_equal(sl_feed_open(&feed, &options), 0);
	assert_int_equal(feed.state, SL_FEED_AWAY);
	assert_non_null(strstr(said.last, "another run"));
	add();
	end();
	assert_int_equal(feed.missed, 1);
	assert_int_equal(atomic_load(&server.rows), 0);
	assert_int_equal(atomic_load(&server.descriptions), 0);
	end_server();
}

static void sync_waits_for_the_row_and_gives_up_in_time(void **state)
{
	uint64_t begin_ns;

	(void)state;
	options.required = true;
	begin_server();
	assert_int_equal(sl_feed_open(&feed, &options), 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(add(), 0);
		assert_int_equal(sl_feed_sync(&feed), 0);
		assert_int_equal(feed.stored, i + 1);
	}
	/* All is answered: nothing to wait for. */
	begin_ns = sl_clock_ns();
	for (int i = 0; i < 100; i++)
		assert_int_equal(sl_feed_sync(&feed), 0);
	assert_true(sl_clock_ns() - begin_ns < 1000000000);
	atomic_store(&server.mode, SILENCE);
	usleep(20000); /* it may be about to read */
	begin_ns = sl_clock_ns();
	for (int i = 0; i < 10; i++) {
		add();
		assert_int_equal(sl_feed_sync(&feed), -EIO);
	}
	/* The first waited; the others knew. */
	assert_true(sl_clock_ns() - begin_ns < 3 * options.timeout_ns);
	adds_up(20);
	assert_int_equal(feed.missed, 10);
	atomic_store(&server.mode, STORE);
	WAIT_FOR(feed.state == SL_FEED_READY);
	assert_int_equal(add(), 0);
	assert_int_equal(sl_feed_sync(&feed), 0);
	assert_int_equal(feed.stored, 11);
	end();
	end_server();
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(all_rows_arrive_in_order),
		CASE(without_a_server_rows_wait_and_then_are_missed),
		CASE(a_required_server_that_is_not_there_is_an_error),
		CASE(a_server_that_hangs_up),
		CASE(a_server_that_hangs_up_after_storing),
		CASE(a_server_that_says_nothing),
		CASE(a_server_that_forgets),
		CASE(refused_rows_are_missed_and_told_once),
		CASE(the_password_is_sent_and_never_told),
		CASE(a_stream_of_another_run_is_left_alone),
		CASE(sync_waits_for_the_row_and_gives_up_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
