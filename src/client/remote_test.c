/* remote_test.c - a connection to a session: lines come whole however they were sent, errors keep
 * their words, and no call waits longer than it was told to. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <sluice/client.h>

#include "client/private.h"
#include "client/registry.h"
#include "lib/open_files.h"

enum { PIECES = 4, LONG = 100000, PATIENCE_MS = 20000, LINE_MOST = 8 << 20 };

/* A session that says the same to whatever it is asked. */
struct session {
	struct sl_claim claim;
	int listener;
	const char *say[PIECES]; /* with a pause between them */
	bool hangs_up;
	char heard[256]; /* what it was asked */
	pthread_t thread;
	struct sl_remote *remote;
	struct sl_remote_error error;
};

static char base[200], why[1400];
static unsigned files_before;

static int setup(void **state)
{
	static struct session session;
	const char *temporary = getenv("TMPDIR");

	snprintf(base, sizeof(base), "%s/remote-XXXXXX", temporary ? temporary : "/tmp");
	if (!mkdtemp(base))
		return -1;
	setenv("SLUICE_RUN_DIR", base, 1);
	files_before = open_files();
	memset(&session, 0, sizeof(session));
	*state = &session;
	return 0;
}

static int teardown(void **state)
{
	char command[300];

	assert_int_equal(open_files(), files_before);
	snprintf(command, sizeof(command), "rm -rf '%s'", base);
	return system(command) ? -1 : 0;
}

static bool wait_for(int fd)
{
	struct pollfd at = {.fd = fd, .events = POLLIN};

	return poll(&at, 1, PATIENCE_MS) == 1;
}

static void hear(struct session *s, int fd)
{
	size_t n = 0;

	while (n + 1 < sizeof(s->heard) && wait_for(fd) && recv(fd, s->heard + n, 1, 0) == 1)
		if (s->heard[n++] == '\n')
			return;
}

static void *serve(void *arg)
{
	struct session *s = arg;
	int fd = wait_for(s->listener) ? accept(s->listener, NULL, NULL) : -1;
	char last;

	if (fd < 0)
		return NULL;
	hear(s, fd);
	for (unsigned i = 0; i < PIECES && s->say[i]; i++) {
		size_t bytes = strlen(s->say[i]);

		while (bytes) { /* the client may hang up before the end */
			ssize_t n = send(fd, s->say[i] + strlen(s->say[i]) - bytes, bytes,
					 MSG_NOSIGNAL);

			if (n <= 0)
				break;
			bytes -= (size_t)n;
		}
		usleep(5000);
	}
	while (!s->hangs_up && wait_for(fd) && recv(fd, &last, 1, 0) > 0)
		;
	close(fd);
	return NULL;
}

static void claim_name(struct session *s)
{
	const struct sl_registry_facts facts = {.name = "one", .pid = 1, .folder = "/runs/7"};
	int folder = -1;

	if (sl_registry_open(true, &folder, why, sizeof(why)) ||
	    sl_registry_claim(folder, "one", &s->claim, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(sl_registry_publish(&s->claim, &facts), 0);
	close(folder);
}

static void begin(struct session *s)
{
	claim_name(s);
	s->listener = sl_registry_listen(&s->claim);
	assert_true(s->listener >= 0);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
	assert_int_equal(sl_remote_open("one", PATIENCE_MS, &s->remote, &s->error), 0);
}

static void end(struct session *s)
{
	sl_remote_close(s->remote);
	pthread_join(s->thread, NULL);
	close(s->listener);
	sl_registry_release(&s->claim);
}

static void expect_line(struct session *s, const char *expected)
{
	char *line = NULL;

	assert_int_equal(sl_remote_next(s->remote, PATIENCE_MS, &line, &s->error), 0);
	assert_string_equal(line, expected);
	sl_remote_free(line);
}

static void a_reply_comes_back_as_it_was_sent(void **state)
{
	struct session *s = *state;
	char *reply = NULL;

	s->say[0] = "{\"ok\":true,\"value\":7}\n";
	begin(s);
	assert_int_equal(
		sl_remote_request(s->remote, "{\"ask\":1}", PATIENCE_MS, &reply, &s->error), 0);
	assert_string_equal(reply, "{\"ok\":true,\"value\":7}");
	assert_string_equal(s->heard, "{\"ask\":1}\n");
	sl_remote_free(reply);
	end(s);
}

static void lines_come_whole_in_pieces_and_together(void **state)
{
	static char text[LONG + 1], line[LONG + 2]; /* more than there is room for at first */
	struct session *s = *state;

	memset(text, 'x', LONG);
	snprintf(line, sizeof(line), "%s\n", text);
	s->say[0] = "{\"ok\":";
	s->say[1] = "true}\nfirst\nsec";
	s->say[2] = "ond\n\n";
	s->say[3] = line;
	begin(s);
	assert_int_equal(sl_remote_request(s->remote, "{}", PATIENCE_MS, NULL, &s->error), 0);
	expect_line(s, "first");
	expect_line(s, "second");
	expect_line(s, "");
	expect_line(s, text);
	end(s);
}

static void errors_keep_their_words(void **state)
{
	struct session *s = *state;

	s->say[0] = "{\"ok\":false,\"error\":{\"code\":\"state\",\"message\":\"not now\",\"where\":"
		    "\"run.yaml:3\",\"hint\":\"wait\"}}\n";
	begin(s);
	assert_int_equal(sl_remote_request(s->remote, "{}", PATIENCE_MS, NULL, &s->error), -EPROTO);
	assert_string_equal(s->error.code, "state");
	assert_string_equal(s->error.message, "not now");
	assert_string_equal(s->error.where, "run.yaml:3");
	assert_string_equal(s->error.hint, "wait");
	end(s);
}

static void what_is_no_reply_is_refused(void **state)
{
	static const char *const lines[] = {"nonsense\n", "{}\n", "{\"ok\":1}\n", "[]\n", "\n"};
	struct session *s = *state;

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		s->say[0] = lines[i];
		begin(s);
		assert_int_equal(sl_remote_request(s->remote, "{}", PATIENCE_MS, NULL, &s->error),
				 -EBADMSG);
		assert_string_equal(s->error.code, "reply");
		end(s);
	}
}

static void a_line_without_an_end_is_refused(void **state)
{
	struct session *s = *state;
	char *text = malloc(LINE_MOST + 2);

	assert_non_null(text);
	memset(text, 'x', LINE_MOST + 1);
	text[LINE_MOST + 1] = 0;
	s->say[0] = text;
	begin(s);
	assert_int_equal(sl_remote_request(s->remote, "{}", PATIENCE_MS, NULL, &s->error), -ENOMEM);
	end(s);
	free(text);
}

static void a_session_that_hangs_up_is_noticed(void **state)
{
	static const char *const last[] = {NULL, "half a li"};
	struct session *s = *state;

	for (unsigned i = 0; i < 2; i++) {
		s->say[0] = last[i];
		s->hangs_up = true;
		begin(s);
		memset(&s->error, 'x', sizeof(s->error)); /* as another call may have left it */
		assert_int_equal(sl_remote_request(s->remote, "{}", PATIENCE_MS, NULL, &s->error),
				 -ECONNRESET);
		assert_string_equal(s->error.code, "connection");
		assert_non_null(strstr(s->error.message, "'one' has ended or hung up"));
		assert_string_equal(s->error.where, "");
		assert_string_equal(s->error.hint, "");
		end(s);
	}
}

static void a_session_that_does_not_answer_is_waited_for_as_long_as_asked(void **state)
{
	struct session *s = *state;
	uint64_t start, waited;

	begin(s);
	start = sl_remote_now_ms();
	assert_int_equal(sl_remote_request(s->remote, "{}", 100, NULL, &s->error), -ETIMEDOUT);
	waited = sl_remote_now_ms() - start;
	assert_true(waited >= 99 && waited < PATIENCE_MS);
	assert_string_equal(s->error.code, "timeout");
	start = sl_remote_now_ms();
	assert_int_equal(sl_remote_request(s->remote, "{}", 0, NULL, NULL), -ETIMEDOUT);
	assert_true(sl_remote_now_ms() - start < 5000);
	end(s);
}

static void sessions_that_are_not_there_are_told_from_crashed_ones(void **state)
{
	static const char *const names[] = {"one", "", "../one", ".one"};
	struct session *s = *state;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(sl_remote_open(names[i], 100, &s->remote, &s->error), -ENOENT);
		assert_string_equal(s->error.code, "absent");
	}
	claim_name(s);
	close(s->claim.lock); /* as the kernel does when a process dies */
	assert_int_equal(sl_remote_open("one", 100, &s->remote, &s->error), -ECONNREFUSED);
	assert_string_equal(s->error.code, "crashed");
	assert_non_null(strstr(s->error.message, "its last run folder is /runs/7"));
	close(s->claim.folder);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_reply_comes_back_as_it_was_sent),
		CASE(lines_come_whole_in_pieces_and_together),
		CASE(errors_keep_their_words),
		CASE(what_is_no_reply_is_refused),
		CASE(a_line_without_an_end_is_refused),
		CASE(a_session_that_hangs_up_is_noticed),
		CASE(a_session_that_does_not_answer_is_waited_for_as_long_as_asked),
		CASE(sessions_that_are_not_there_are_told_from_crashed_ones),
	};

	return cmocka_run_group_tests_name("remote", tests, NULL, NULL);
}
