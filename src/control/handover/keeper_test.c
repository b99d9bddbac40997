/* keeper_test.c - a keeper in a thread, receivers that come, leave and get in each other's way; and
 * bytes that are no messages. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "control/handover/keeper.h"
#include "lib/capture.h"

struct world {
	char name[SL_KEEPER_NAME];
	struct sl_keeper *keeper;
	pthread_t thread;
	_Atomic int stop;
	struct sl_handover_message message; /* large, so not on the stack */
};

static struct world world;

static void *keep(void *arg)
{
	struct world *w = arg;

	while (!w->stop)
		sl_keeper_poll(w->keeper, 5);
	return NULL;
}

static int setup(void **state)
{
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	sl_log_level(SL_LOG_ERROR);
	snprintf(w->name, sizeof(w->name), "test-%d", (int)getpid());
	*state = w;
	return sl_keeper_open(w->name, &w->keeper) || pthread_create(&w->thread, NULL, keep, w);
}

static void end_keeper(struct world *w)
{
	w->stop = 1;
	pthread_join(w->thread, NULL);
	sl_keeper_close(w->keeper);
	w->keeper = NULL;
}

static int teardown(void **state)
{
	struct world *w = *state;

	if (w->keeper)
		end_keeper(w);
	return 0;
}

/* A receiver that finds so much. */
static int claim(struct world *w, enum sl_handover_message_type found)
{
	int fd = -1;

	assert_int_equal(sl_keeper_claim(w->name, &fd, &w->message), 0);
	assert_int_equal(w->message.type, found);
	return fd;
}

static void store(struct world *w, int fd, const char *text, unsigned fds)
{
	w->message.bytes = strlen(text);
	memcpy(w->message.body, text, w->message.bytes);
	w->message.fds = fds;
	for (unsigned i = 0; i < fds; i++) {
		w->message.fd[i] = memfd_create("test", MFD_CLOEXEC);
		assert_int_equal(ftruncate(w->message.fd[i], 100 + i), 0);
	}
	assert_int_equal(sl_keeper_store(fd, &w->message), 0);
	sl_handover_message_close(&w->message);
}

static void expect_state(struct world *w, const char *text, unsigned fds)
{
	struct stat st;

	assert_int_equal(w->message.bytes, strlen(text));
	assert_memory_equal(w->message.body, text, strlen(text));
	assert_int_equal(w->message.fds, fds);
	for (unsigned i = 0; i < fds; i++) {
		assert_int_equal(fstat(w->message.fd[i], &st), 0);
		assert_int_equal(st.st_size, 100 + i);
		assert_true(fcntl(w->message.fd[i], F_GETFD) & FD_CLOEXEC);
	}
	sl_handover_message_close(&w->message);
}

static void at_first_there_is_nothing(void **state)
{
	close(claim(*state, SL_HANDOVER_MESSAGE_NOTHING));
	close(claim(*state, SL_HANDOVER_MESSAGE_NOTHING));
}

static void what_one_leaves_the_next_finds_and_the_one_after(void **state)
{
	struct world *w = *state;
	int fd = claim(w, SL_HANDOVER_MESSAGE_NOTHING);

	store(w, fd, "a handover state", SL_HANDOVER_MESSAGE_FDS);
	close(fd);
	for (int i = 0; i < 3; i++) {
		fd = claim(w, SL_HANDOVER_MESSAGE_STATE);
		expect_state(w, "a handover state", SL_HANDOVER_MESSAGE_FDS);
		close(fd);
	}
	assert_true(sl_keeper_holds(w->keeper));
}

static void a_later_state_replaces_the_one_before(void **state)
{
	struct world *w = *state;
	int fd = claim(w, SL_HANDOVER_MESSAGE_NOTHING);

	store(w, fd, "first", 5);
	store(w, fd, "second one", 2);
	close(fd);
	fd = claim(w, SL_HANDOVER_MESSAGE_STATE);
	expect_state(w, "second one", 2);
	close(fd);
}

static void what_is_forgotten_is_gone(void **state)
{
	struct world *w = *state;
	int fd = claim(w, SL_HANDOVER_MESSAGE_NOTHING);

	store(w, fd, "first", 5);
	assert_int_equal(sl_keeper_store(fd, NULL), 0);
	close(fd);
	close(claim(w, SL_HANDOVER_MESSAGE_NOTHING));
}

static void one_receiver_at_a_time(void **state)
{
	struct world *w = *state;
	int fd = claim(w, SL_HANDOVER_MESSAGE_NOTHING), other;

	char says[64];

	snprintf(says, sizeof(says), "process %d is the receiver now", (int)getpid());
	capture_begin();
	assert_int_equal(sl_keeper_claim(w->name, &other, &w->message), -EBUSY);
	assert_non_null(strstr(capture_end(), says));
	store(w, fd, "mine", 1);
	assert_int_equal(sl_keeper_claim(w->name, &other, &w->message), -EBUSY);
	close(fd);
	close(claim(w, SL_HANDOVER_MESSAGE_STATE));
	sl_handover_message_close(&w->message);
}

static void a_keeper_that_ends_is_noticed(void **state)
{
	struct world *w = *state;
	int fd = claim(w, SL_HANDOVER_MESSAGE_NOTHING);

	assert_false(sl_keeper_lost(fd));
	end_keeper(w);
	assert_true(sl_keeper_lost(fd));
	assert_int_equal(sl_keeper_store(fd, NULL), -EPIPE);
	close(fd);
	assert_int_equal(sl_keeper_claim(w->name, &fd, &w->message), -ECONNREFUSED);
}

static void names_are_checked_and_taken_once(void **state)
{
	struct world *w = *state;
	struct sl_keeper *other;
	char longest[80];

	assert_int_equal(sl_keeper_open(w->name, &other), -EADDRINUSE);
	memset(longest, 'x', sizeof(longest));
	longest[SL_KEEPER_NAME - 1] = 0;
	assert_true(sl_keeper_name_valid(longest));
	longest[SL_KEEPER_NAME - 1] = 'x';
	longest[SL_KEEPER_NAME] = 0;
	assert_false(sl_keeper_name_valid(longest));
	assert_true(sl_keeper_name_valid("beam-line_1.a"));
	assert_false(sl_keeper_name_valid(""));
	assert_false(sl_keeper_name_valid("a/b"));
	assert_false(sl_keeper_name_valid("a b"));
	assert_int_equal(sl_keeper_open("a b", &other), -EINVAL);
}

/* ---- strangers ---- */

static int dial(const struct world *w)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "sluice/keeper/%u/%s",
			 (unsigned)geteuid(), w->name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_int_equal(
		connect(fd, (struct sockaddr *)&at,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)),
		0);
	return fd;
}

static enum sl_handover_message_type answer(struct world *w, int fd)
{
	int got = sl_handover_message_receive(fd, 5000, &w->message);

	return got > 0 ? w->message.type : 0;
}

static void who_has_not_claimed_may_not_store_nor_forget(void **state)
{
	static const enum sl_handover_message_type types[] = {
		SL_HANDOVER_MESSAGE_STORE, SL_HANDOVER_MESSAGE_FORGET,
		SL_HANDOVER_MESSAGE_STATE, SL_HANDOVER_MESSAGE_NOTHING,
		SL_HANDOVER_MESSAGE_DONE,  SL_HANDOVER_MESSAGE_REFUSED};
	struct world *w = *state;
	int fd = claim(w, SL_HANDOVER_MESSAGE_NOTHING), stranger = dial(w);

	store(w, fd, "mine", 1);
	for (unsigned i = 0; i < 6; i++) {
		w->message = (struct sl_handover_message){
			.type = types[i], .bytes = 3, .fds = 1, .fd = {0}};
		assert_int_equal(sl_handover_message_send(stranger, &w->message), 0);
		assert_int_equal(answer(w, stranger), SL_HANDOVER_MESSAGE_REFUSED);
	}
	close(stranger);
	close(fd);
	fd = claim(w, SL_HANDOVER_MESSAGE_STATE);
	expect_state(w, "mine", 1);
	close(fd);
}

static void garbage_ends_the_connection_and_nothing_else(void **state)
{
	struct world *w = *state;
	int fd = claim(w, SL_HANDOVER_MESSAGE_NOTHING), stranger;
	char bytes[SL_HANDOVER_MESSAGE_HEADER + 1] = "garbage";

	store(w, fd, "mine", 3);
	for (size_t n = 1; n <= sizeof(bytes); n++) {
		stranger = dial(w);
		assert_int_equal(send(stranger, bytes, n, 0), n);
		assert_int_equal(answer(w, stranger), 0);
		close(stranger);
	}
	/* Of another version: it is told so. */
	w->message = (struct sl_handover_message){.type = SL_HANDOVER_MESSAGE_CLAIM};
	sl_handover_message_header(&w->message, (uint8_t *)bytes);
	bytes[4]++;
	stranger = dial(w);
	assert_int_equal(send(stranger, bytes, SL_HANDOVER_MESSAGE_HEADER, 0),
			 SL_HANDOVER_MESSAGE_HEADER);
	assert_int_equal(answer(w, stranger), SL_HANDOVER_MESSAGE_REFUSED);
	close(stranger);
	close(fd);
	fd = claim(w, SL_HANDOVER_MESSAGE_STATE);
	expect_state(w, "mine", 3);
	close(fd);
}

/* A test that leaked descriptors would run out of them. */
static void descriptors_of_what_is_refused_are_closed(void **state)
{
	struct world *w = *state;
	int stranger = dial(w);

	for (int i = 0; i < 100; i++) {
		w->message = (struct sl_handover_message){.type = SL_HANDOVER_MESSAGE_STORE,
							  .fds = SL_HANDOVER_MESSAGE_FDS};
		for (unsigned k = 0; k < SL_HANDOVER_MESSAGE_FDS; k++)
			w->message.fd[k] = stranger;
		assert_int_equal(sl_handover_message_send(stranger, &w->message), 0);
		assert_int_equal(answer(w, stranger), SL_HANDOVER_MESSAGE_REFUSED);
	}
	close(stranger);
	close(claim(w, SL_HANDOVER_MESSAGE_NOTHING));
}

static void a_message_must_be_what_its_header_says(void **state)
{
	struct world *w = *state;
	struct sl_handover_message *p = &w->message;
	uint8_t bytes[SL_HANDOVER_MESSAGE_HEADER + 8] = {0};

	*p = (struct sl_handover_message){.type = SL_HANDOVER_MESSAGE_STORE, .bytes = 8, .fds = 2};
	sl_handover_message_header(p, bytes);
	memset(p, 0, sizeof(*p));
	assert_int_equal(sl_handover_message_parse(bytes, sizeof(bytes), 2, p), 0);
	assert_true(p->type == SL_HANDOVER_MESSAGE_STORE && p->bytes == 8 && p->fds == 2);
	for (size_t n = 0; n < sizeof(bytes); n++)
		assert_int_equal(sl_handover_message_parse(bytes, n, 2, p), -EPROTO);
	assert_int_equal(sl_handover_message_parse(bytes, sizeof(bytes), 1, p), -EPROTO);
	assert_int_equal(sl_handover_message_parse(bytes, sizeof(bytes), 3, p), -EPROTO);
	for (unsigned type = 0; type < 256; type++) {
		bytes[6] = (uint8_t)type;
		assert_int_equal(sl_handover_message_parse(bytes, sizeof(bytes), 2, p),
				 type && type < SL_HANDOVER_MESSAGE_TYPES ? 0 : -EPROTO);
	}
	bytes[6] = SL_HANDOVER_MESSAGE_STORE;
	bytes[4] = SL_HANDOVER_MESSAGE_VERSION + 1;
	assert_int_equal(sl_handover_message_parse(bytes, sizeof(bytes), 2, p), -EPROTONOSUPPORT);
}

/* No message yet is told from a peer that is gone, and from a descriptor that fails. */
static void a_connection_that_is_over_is_told_from_one_that_is_quiet(void **state)
{
	struct world *w = *state;
	int pair[2], ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(sl_handover_message_receive(pair[0], 1, &w->message), 0);
	close(pair[1]);
	assert_int_equal(sl_handover_message_receive(pair[0], 1, &w->message), -EPIPE);
	close(pair[0]);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0); /* readable, and no socket */
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(sl_handover_message_receive(ends[0], 1, &w->message), -EPIPE);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(at_first_there_is_nothing),
		CASE(a_connection_that_is_over_is_told_from_one_that_is_quiet),
		CASE(what_one_leaves_the_next_finds_and_the_one_after),
		CASE(a_later_state_replaces_the_one_before),
		CASE(what_is_forgotten_is_gone),
		CASE(one_receiver_at_a_time),
		CASE(a_keeper_that_ends_is_noticed),
		CASE(names_are_checked_and_taken_once),
		CASE(who_has_not_claimed_may_not_store_nor_forget),
		CASE(garbage_ends_the_connection_and_nothing_else),
		CASE(descriptors_of_what_is_refused_are_closed),
		CASE(a_message_must_be_what_its_header_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
