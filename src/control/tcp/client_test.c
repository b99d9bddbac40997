/* client_test.c - the front end's side of the plan exchange: first against receivers that do what
 * they like, then against the server, which runs on a thread of its own. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/tcp/client.h"
#include "control/tcp/testing.h"
#include "lib/capture.h"

struct stage {
	int listener;
	uint16_t port;
	struct sl_client client;
	enum sl_wire_type heard;
};

static int setup_stage(void **state)
{
	static struct stage stage;
	struct sockaddr_in a = at(ADDRESS, 0);
	socklen_t size = sizeof(a);

	stage.client.channel.fd = -1;
	stage.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(stage.listener, (struct sockaddr *)&a, size) || listen(stage.listener, 0) ||
	    getsockname(stage.listener, (struct sockaddr *)&a, &size))
		return -1;
	stage.port = ntohs(a.sin_port);
	*state = &stage;
	return 0;
}

static int teardown_stage(void **state)
{
	struct stage *s = *state;

	sl_client_close(&s->client);
	if (s->listener >= 0)
		close(s->listener);
	return 0;
}

static void stop_listening(struct stage *s)
{
	close(s->listener);
	s->listener = -1;
}

static void nobody_there_is_told_after_the_wait(void **state)
{
	struct stage *s = *state;
	uint64_t start_ns = sl_clock_ns();
	char words[128];
	const char *text;
	int err;

	stop_listening(s);
	capture_begin();
	err = sl_client_connect(&s->client, ADDRESS, s->port, 0.12, NULL);
	text = capture_end();
	assert_int_equal(err, -ETIMEDOUT);
	assert_in_range(sl_clock_ns() - start_ns, 120000000, 2000000000);
	snprintf(words, sizeof(words), "no receiver at %s:%u within 0.1 s", ADDRESS, s->port);
	assert_non_null(strstr(text, words));
	assert_non_null(strstr(text, "sluice run"));
}

static void a_place_that_swallows_packets_is_given_up_in_time(void **state)
{
	struct stage *s = *state;
	struct sockaddr_in a = at(ADDRESS, s->port);
	uint64_t start_ns;
	int fill[4], err;

	/* A full backlog: further connections are neither accepted nor refused. */
	for (int i = 0; i < 4; i++) {
		fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		connect(fill[i], (struct sockaddr *)&a, sizeof(a));
	}
	start_ns = sl_clock_ns();
	capture_begin();
	err = sl_client_connect(&s->client, ADDRESS, s->port, 0.1, NULL);
	capture_end();
	assert_int_equal(err, -ETIMEDOUT);
	assert_true(sl_clock_ns() - start_ns < 3000000000);
	for (int i = 0; i < 4; i++)
		close(fill[i]);
}

static void the_wait_ends_when_told_to_stop(void **state)
{
	struct stage *s = *state;
	_Atomic int stop = 1;

	stop_listening(s);
	assert_int_equal(sl_client_connect(&s->client, ADDRESS, s->port, 60, &stop), -EINTR);
}

static void an_impossible_place_is_refused_at_once(void **state)
{
	struct stage *s = *state;
	const char *text;

	capture_begin();
	assert_int_equal(sl_client_connect(&s->client, "nowhere", 1, 60, NULL), -EINVAL);
	assert_int_equal(sl_client_connect(&s->client, ADDRESS, 0, 60, NULL), -EINVAL);
	text = capture_end();
	assert_non_null(strstr(text, "'nowhere' port 1"));
}

/* Stands before the C library's: on demand our own port, which the kernel picks out of thousands,
 * is the one that we connect to. */
static bool meet_itself;

int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t bytes)
{
	if (meet_itself && bind(fd, to, bytes))
		return -1;
	return (int)syscall(SYS_connect, fd, to, bytes);
}

static void a_client_does_not_meet_itself(void **state)
{
	struct stage *s = *state;
	const char *text;
	int err;

	stop_listening(s);
	meet_itself = true;
	capture_begin();
	err = sl_client_connect(&s->client, ADDRESS, s->port, 0, NULL);
	text = capture_end();
	meet_itself = false;
	assert_int_equal(err, -ETIMEDOUT);
	assert_non_null(strstr(text, "Connection refused"));
}

/* Connect, greet, let the receiver do `bytes` (NULL: nothing) and maybe hang up, then offer. */
static int offer_to(struct stage *s, const void *bytes, size_t n, bool hang_up, const char **text)
{
	struct sl_wire_message greeting = hello(1), request = offer(0);
	struct sl_plan plan;
	int fd, err;

	assert_int_equal(sl_client_connect(&s->client, ADDRESS, s->port, 5, NULL), 0);
	assert_int_equal(s->client.answer_ms, 10000);
	s->client.answer_ms = hang_up || bytes ? 5000 : 50;
	assert_int_equal(sl_client_hello(&s->client, &greeting.hello, ""), 0);
	fd = accept(s->listener, NULL, NULL);
	if (bytes)
		assert_int_equal(write(fd, bytes, n), n);
	if (hang_up)
		close(fd);
	capture_begin();
	err = sl_client_offer(&s->client, &request.offer, &plan);
	*text = capture_end();
	if (!hang_up)
		close(fd);
	return err;
}

static void a_receiver_that_never_answers_is_not_waited_for_forever(void **state)
{
	const char *text;

	assert_int_equal(offer_to(*state, NULL, 0, false, &text), -ETIMEDOUT);
	assert_non_null(strstr(text, "does not answer"));
}

static void a_receiver_that_hangs_up_is_told(void **state)
{
	const char *text;

	assert_int_equal(offer_to(*state, NULL, 0, true, &text), -EPIPE);
	assert_non_null(strstr(text, "hung up"));
}

static void something_else_that_answers_is_told(void **state)
{
	static const char greeting[] = "220 mail.example.org ESMTP\r\n";
	const char *text;

	assert_int_equal(offer_to(*state, greeting, sizeof(greeting) - 1, false, &text), -EPROTO);
	assert_non_null(strstr(text, "does not speak the plan protocol"));
}

static void a_receiver_of_another_version_is_told(void **state)
{
	const char *text;

	assert_int_equal(offer_to(*state, "SLC1\x01\0\3\0\0\0\0\0", 12, false, &text),
			 -EPROTONOSUPPORT);
	assert_non_null(strstr(text, "another version"));
}

static void an_answer_that_is_no_plan_is_refused(void **state)
{
	struct sl_wire_message message = word(SL_WIRE_START);
	uint8_t bytes[SL_WIRE_MAX];
	int n = sl_wire_encode(&message, bytes, sizeof(bytes));
	const char *text;

	assert_int_equal(offer_to(*state, bytes, (size_t)n, false, &text), -EPROTO);
}

static void a_refusal_is_logged_in_the_receivers_words(void **state)
{
	struct sl_wire_message message = {.type = SL_WIRE_ERROR, .error = {"wrong shoes"}};
	uint8_t bytes[SL_WIRE_MAX];
	int n = sl_wire_encode(&message, bytes, sizeof(bytes));
	const char *text;

	/* It has hung up already, as a server does, and what we sent was never read. */
	assert_int_equal(offer_to(*state, bytes, (size_t)n, true, &text), -ECONNREFUSED);
	assert_non_null(strstr(text, "the receiver refuses: wrong shoes"));
}

static void the_receivers_words_reach_who_listens(void **state)
{
	struct stage *s = *state;
	struct sl_channel receiver;
	const char *text;

	assert_int_equal(sl_client_connect(&s->client, ADDRESS, s->port, 5, NULL), 0);
	sl_channel_init(&receiver, accept(s->listener, NULL, NULL));
	assert_int_equal(sl_client_listen(&s->client, 0), 0);
	say(&receiver, word(SL_WIRE_STOP));
	assert_int_equal(sl_client_listen(&s->client, 1000), SL_WIRE_STOP);
	sl_channel_refuse(&receiver, "disk full");
	capture_begin();
	assert_int_equal(sl_client_listen(&s->client, 1000), SL_WIRE_ERROR);
	text = capture_end();
	assert_non_null(strstr(text, "disk full"));
	sl_channel_close(&receiver);
	assert_int_equal(sl_client_listen(&s->client, 1000), -EPIPE);
}

/* ---- client and server together ---- */

struct runner {
	struct world *w;
	pthread_t thread;
	_Atomic int stop;
};

static void *run_server(void *arg)
{
	struct runner *r = arg;
	bool started = false, over = false;

	while (!atomic_load(&r->stop)) {
		sl_server_poll(r->w->server, 2);
		if (!started && sl_server_ready(r->w->server)) {
			sl_server_start(r->w->server, sl_clock_ns());
			started = true;
		}
		if (!over && sl_server_finished(r->w->server)) {
			sl_server_bye(r->w->server, false);
			over = true;
		}
	}
	return NULL;
}

static void run(struct runner *r, struct world *w)
{
	r->w = w;
	atomic_init(&r->stop, 0);
	assert_int_equal(pthread_create(&r->thread, NULL, run_server, r), 0);
}

static void halt(struct runner *r)
{
	atomic_store(&r->stop, 1);
	pthread_join(r->thread, NULL);
}

static int listen_long(struct sl_client *client)
{
	return sl_client_listen(client, PATIENCE_NS / 1000000);
}

static void a_whole_run_from_hello_to_bye(void **state)
{
	struct world *w = *state;
	static struct sl_client client[MODULES];
	struct sl_plan plan[MODULES];
	struct runner r;
	struct sl_wire_message greeting = hello(1);

	run(&r, w);
	for (uint16_t m = 0; m < MODULES; m++) {
		struct sl_wire_message request = offer(m);

		assert_int_equal(
			sl_client_connect(&client[m], ADDRESS, sl_server_port(w->server), 5, NULL),
			0);
		assert_int_equal(sl_client_hello(&client[m], &greeting.hello, ""), 0);
		assert_int_equal(sl_client_offer(&client[m], &request.offer, &plan[m]), 0);
		assert_int_equal(plan[m].module, m);
		assert_int_equal(plan[m].transfer, FIRST_TICKET + m);
		assert_int_equal(sl_client_ready(&client[m]), 0);
	}
	for (int m = 0; m < MODULES; m++)
		assert_int_equal(listen_long(&client[m]), SL_WIRE_START);
	for (uint64_t k = 1; k <= 100; k++)
		for (int m = 0; m < MODULES; m++) {
			struct sl_wire_count c = {plan[m].transfer, k, k, 4160 * k};

			assert_int_equal(sl_client_count(&client[m], &c, k == 100), 0);
		}
	for (int m = 0; m < MODULES; m++) {
		assert_int_equal(listen_long(&client[m]), SL_WIRE_BYE);
		sl_client_close(&client[m]);
	}
	halt(&r);
	assert_int_equal(w->counts, 99 * MODULES);
	assert_int_equal(w->finals, MODULES);
	assert_int_equal(w->last_count.next, 100);
	assert_int_equal(w->gone + w->withdrawn, 0);
}

static void a_refused_client_always_learns_why(void **state)
{
	struct world *w = *state;
	static struct sl_client client;
	struct sl_wire_message greeting = hello(1), request = offer(0);
	struct runner r;

	greeting.hello.experiment++;
	run(&r, w);
	for (int i = 0; i < 100; i++) { /* the refusal races with the offer that follows at once */
		const char *text;
		struct sl_plan plan;
		int err;

		assert_int_equal(
			sl_client_connect(&client, ADDRESS, sl_server_port(w->server), 5, NULL), 0);
		capture_begin();
		err = sl_client_hello(&client, &greeting.hello, "");
		if (!err)
			err = sl_client_offer(&client, &request.offer, &plan);
		text = capture_end();
		sl_client_close(&client);
		assert_int_equal(err, -ECONNREFUSED);
		assert_non_null(strstr(text, "detector section differs"));
	}
	halt(&r);
	assert_int_equal(w->accepted, 0);
}

static void one_attempt_says_how_it_went_and_logs_nothing(void **state)
{
	struct world *w = *state;
	static struct sl_client client;
	const char *text;

	capture_begin();
	assert_int_equal(sl_client_try(&client, "somebody", "nowhere", 1, 100), -EINVAL);
	assert_int_equal(sl_client_try(&client, "somebody", ADDRESS, 0, 100), -EINVAL);
	assert_int_equal(
		sl_client_try(&client, "somebody", "127.93.17.2", sl_server_port(w->server), 100),
		-ECONNREFUSED);
	assert_int_equal(
		sl_client_try(&client, "somebody", ADDRESS, sl_server_port(w->server), 1000), 0);
	text = capture_end();
	assert_string_equal(text, "");
	assert_string_equal(client.peer, "somebody");
	sl_client_close(&client);
}

/* ---- with a token ---- */

#define TOKEN "correct horse battery staple"

/* A program that took the receiver's port: it speaks the protocol and does not know the token. */
static void *impostor(void *arg)
{
	struct stage *s = arg;
	struct sl_channel channel;
	struct sl_wire_message message = {.type = SL_WIRE_CHALLENGE};

	sl_channel_init(&channel, accept(s->listener, NULL, NULL));
	while (sl_channel_receive(&channel, 1000, &message) == 0)
		;
	message = (struct sl_wire_message){.type = SL_WIRE_CHALLENGE};
	sl_channel_send(&channel, &message);
	while (sl_channel_receive(&channel, 1000, &message) == 0)
		;
	/* The front end's own proof, sent back to it. */
	sl_channel_send(&channel, &message);
	/* What it hears next, if anything. */
	while (sl_channel_receive(&channel, 1000, &message) == 0)
		;
	s->heard = message.type;
	sl_channel_close(&channel);
	return NULL;
}

static void a_receiver_that_does_not_know_the_token_gets_no_offer(void **state)
{
	struct stage *s = *state;
	struct sl_wire_message greeting = hello(1);
	const char *text;
	pthread_t thread;
	int err;

	assert_int_equal(pthread_create(&thread, NULL, impostor, s), 0);
	assert_int_equal(sl_client_connect(&s->client, ADDRESS, s->port, 5, NULL), 0);
	capture_begin();
	err = sl_client_hello(&s->client, &greeting.hello, TOKEN);
	text = capture_end();
	assert_int_equal(err, -ECONNREFUSED);
	assert_non_null(strstr(text, "could not prove that it knows control.token"));
	assert_string_equal(s->client.refusal, "it does not know control.token");
	sl_client_close(&s->client);
	pthread_join(thread, NULL);
	assert_int_equal(s->heard, SL_WIRE_PROOF); /* no OFFER came after it */
}

static int greet_with(struct world *w, const char *token, const char **text)
{
	static struct sl_client client;
	struct sl_wire_message greeting = hello(1), request = offer(0);
	struct sl_plan plan;
	int err;

	assert_int_equal(sl_client_connect(&client, ADDRESS, sl_server_port(w->server), 5, NULL),
			 0);
	capture_begin();
	err = sl_client_hello(&client, &greeting.hello, token);
	if (!err)
		err = sl_client_offer(&client, &request.offer, &plan);
	*text = capture_end();
	sl_client_close(&client);
	return err;
}

static void both_sides_prove_that_they_know_the_token(void **state)
{
	struct world *w = *state;
	const char *text;
	struct runner r;

	run(&r, w);
	assert_int_equal(greet_with(w, "secret", &text), 0);
	assert_int_equal(greet_with(w, "secrets", &text), -ECONNREFUSED);
	assert_non_null(strstr(text, "wrong control.token"));
	assert_int_equal(greet_with(w, "", &text), -ECONNREFUSED);
	assert_non_null(strstr(text, "challenge and response"));
	halt(&r);
	assert_int_equal(w->accepted, 1);
}

static void a_token_on_one_side_alone_is_told(void **state)
{
	struct world *w = *state;
	const char *text;
	struct runner r;

	run(&r, w);
	assert_int_equal(greet_with(w, TOKEN, &text), -ECONNREFUSED);
	assert_non_null(strstr(text, "set the same on both sides"));
	halt(&r);
	assert_int_equal(w->accepted, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f)	  cmocka_unit_test_setup_teardown(f, setup, teardown)
#define CLIENT(f) cmocka_unit_test_setup_teardown(f, setup_stage, teardown_stage)
		CLIENT(nobody_there_is_told_after_the_wait),
		CLIENT(a_place_that_swallows_packets_is_given_up_in_time),
		CLIENT(the_wait_ends_when_told_to_stop),
		CLIENT(an_impossible_place_is_refused_at_once),
		CLIENT(a_client_does_not_meet_itself),
		CLIENT(a_receiver_that_never_answers_is_not_waited_for_forever),
		CLIENT(a_receiver_that_hangs_up_is_told),
		CLIENT(something_else_that_answers_is_told),
		CLIENT(a_receiver_of_another_version_is_told),
		CLIENT(an_answer_that_is_no_plan_is_refused),
		CLIENT(a_refusal_is_logged_in_the_receivers_words),
		CLIENT(the_receivers_words_reach_who_listens),
		CASE(a_whole_run_from_hello_to_bye),
		CASE(a_refused_client_always_learns_why),
		CASE(one_attempt_says_how_it_went_and_logs_nothing),
		CLIENT(a_receiver_that_does_not_know_the_token_gets_no_offer),
		cmocka_unit_test_setup_teardown(both_sides_prove_that_they_know_the_token,
						setup_with_token, teardown),
		CASE(a_token_on_one_side_alone_is_told),
	};

	sl_log_level(
		SL_LOG_ERROR); /* the server's warnings reach the peers too, and are read there */
	return cmocka_run_group_tests_name("client", tests, NULL, NULL);
}
