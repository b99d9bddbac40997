/* side_test.c - a detector side that stays: its states, runs with a session of this process, other
 * overrides between them, and a status that any client may take meanwhile. */
#include "emulator/side/side.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <sluice/client.h>
#include <sluice/sluice.h>

#include "base/thread.h"

enum { PATIENCE_MS = 60000, FRAMES = 40 };

static char base[200], path[240];

/* Nobody listens there. */
static unsigned free_port(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t bytes = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
	close(fd);
	return ntohs(at.sin_port);
}

static int setup(void **state)
{
	const char *temporary = getenv("TMPDIR");
	FILE *file;

	snprintf(base, sizeof(base), "%s/side-XXXXXX", temporary ? temporary : "/tmp");
	if (!mkdtemp(base))
		return -1;
	setenv("SLUICE_RUN_DIR", base, 1);
	snprintf(path, sizeof(path), "%s/e.yaml", base);
	file = fopen(path, "w");
	fprintf(file,
		"detector: {kind: pattern, modules: 2, rows: 8, columns: 64, frames: %d}\n"
		"link: {kind: shm}\ncontrol: {port: %u, wait_s: 60}\n"
		"sinks: [verify]\nemulate: none\n",
		FRAMES, free_port());
	return fclose(file);
}

static int teardown(void **state)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf '%s'", base);
	return system(command) ? -1 : 0;
}

static struct sl_side *opened(const char *set)
{
	const struct sl_side_options options = {.path = path,
						.name = "side",
						.transfer = "",
						.last_module = UINT32_MAX,
						.set = &set,
						.sets = set != NULL,
						.quiet = true};
	struct sl_side *side = NULL;

	assert_int_equal(sl_side_open(&options, &side), 0);
	assert_string_equal(sl_side_name(side), "side");
	return side;
}

static struct sl_remote *connected(void)
{
	struct sl_remote *remote;
	struct sl_remote_error error;

	if (sl_remote_open("side", PATIENCE_MS, &remote, &error))
		fail_msg("%s", error.message);
	return remote;
}

static void comes(const char *wanted)
{
	const char *const states[] = {wanted};
	struct sl_remote *remote = connected();
	struct sl_remote_error error;
	char now[16];

	if (sl_remote_wait(remote, states, 1, PATIENCE_MS, now, &error))
		fail_msg("%s: %s", wanted, error.message);
	assert_string_equal(now, wanted);
	sl_remote_close(remote);
}

static struct sl_remote_status status_of(void)
{
	struct sl_remote *remote = connected();
	struct sl_remote_status status;

	assert_int_equal(sl_remote_status(remote, PATIENCE_MS, &status, sizeof(status), NULL), 0);
	sl_remote_close(remote);
	return status;
}

static void calls_need_their_state(void **state)
{
	const char *const bad[] = {"detector.frames=some"};
	struct sl_side *side = opened(NULL), *other;
	const struct sl_side_options same = {
		.path = path, .name = "side", .last_module = UINT32_MAX};
	struct sl_error error;

	assert_int_equal(sl_side_open(&same, &other), -EEXIST);
	assert_int_equal(sl_side_state(side), SL_STATE_CONFIGURED);
	sl_side_stop(side, "early"); /* no run is under way: no effect */
	assert_int_equal(sl_side_arm(side), 0);
	assert_int_equal(sl_side_arm(side), -EPROTO);
	assert_int_equal(sl_side_configure(side, NULL, 0), -EPROTO);
	sl_side_stop(side, "test");
	comes("ended");
	sl_side_error(side, &error);
	assert_int_equal(error.code, SL_ERROR_STOPPED);
	assert_int_equal(sl_side_configure(side, bad, 1), -EINVAL);
	assert_int_equal(sl_side_state(side), SL_STATE_FAULT);
	sl_side_error(side, &error);
	assert_int_equal(error.code, SL_ERROR_EXPERIMENT);
	assert_int_equal(sl_side_arm(side), -EPROTO);
	assert_int_equal(sl_side_configure(side, NULL, 0), 0);
	assert_int_equal(sl_side_arm(side), 0);
	sl_side_close(side);
}

static void no_receiver_is_a_fault(void **state)
{
	struct sl_side *side = opened("control.wait_s=0.05");
	struct sl_error error;

	assert_int_equal(sl_side_start(side), 0);
	comes("fault");
	sl_side_error(side, &error);
	assert_int_equal(error.code, SL_ERROR_RECEIVER);
	assert_non_null(strstr(error.message, "no receiver at"));
	assert_int_equal(sl_side_start(side), -EPROTO);
	assert_int_equal(sl_side_configure(side, NULL, 0), 0);
	sl_side_close(side);
}

static _Atomic bool looks;

static void *look(void *arg)
{
	while (atomic_load(&looks))
		status_of();
	return NULL;
}

static void take_run(struct sl_session *session, struct sl_side *side, uint64_t frames)
{
	struct sl_status *status = malloc(sizeof(*status));

	assert_int_equal(sl_side_arm(side), 0);
	assert_int_equal(sl_session_arm(session), 0);
	comes("armed");
	assert_int_equal(sl_session_start(session), 0); /* the receiver first: nothing comes yet */
	assert_int_equal(sl_session_wait(session, 1 << SL_STATE_RUNNING, PATIENCE_MS),
			 SL_STATE_RUNNING);
	assert_int_equal(status_of().frames, 0);
	assert_int_equal(sl_side_start(side), 0);
	assert_int_equal(sl_session_wait(session, 1 << SL_STATE_ENDED, PATIENCE_MS),
			 SL_STATE_ENDED);
	comes("ended");
	sl_session_status(session, status, sizeof(*status));
	assert_int_equal(status->result, SL_RESULT_INTACT);
	assert_int_equal(status->frames, frames);
	free(status);
	assert_int_equal(status_of().frames, frames);
	assert_string_equal(status_of().result, "intact");
}

static void runs_follow_each_other(void **state)
{
	const char *const fewer[] = {"detector.frames=17"};
	const struct sl_session_options options = {.bytes = sizeof(options), .path = path};
	struct sl_side *side = opened(NULL);
	struct sl_thread looker = {0};
	struct sl_session *session;

	assert_int_equal(sl_session_open(&options, &session, NULL), 0);
	atomic_store(&looks, true);
	assert_int_equal(sl_thread_start(&looker, "looker", NULL, look, NULL), 0);
	take_run(session, side, FRAMES);
	take_run(session, side, FRAMES); /* over the same connection */
	assert_int_equal(sl_side_configure(side, fewer, 1), 0);
	assert_int_equal(sl_session_configure(session, fewer, 1), 0);
	take_run(session, side, 17);
	assert_int_equal(status_of().run, 3);
	atomic_store(&looks, false);
	sl_thread_join(&looker);
	sl_session_close(session);
	sl_side_close(side);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(calls_need_their_state),
		CASE(no_receiver_is_a_fault),
		CASE(runs_follow_each_other),
	};

	return cmocka_run_group_tests_name("side", tests, NULL, NULL);
}
