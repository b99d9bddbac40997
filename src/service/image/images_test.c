/* images_test.c - image processes that answer, die, stall and talk nonsense: every request gets one
 * answer in time, and nothing is left behind. The processes are a script that does what the name of
 * its session says. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/registry.h"
#include "lib/share_rig.h"
#include "service/image/images.h"

static const char script[] =
	"#!/usr/bin/python3\n"
	"import array, os, socket, struct, sys, time\n"
	"name = sys.argv[sys.argv.index('--session') + 1]\n"
	"control = socket.socket(fileno=int(sys.argv[sys.argv.index('--fd') + 1]))\n"
	"control.setblocking(True)\n"
	"if name == 'dead':\n"
	"    sys.exit(3)\n"
	"count = 0\n"
	"while True:\n"
	"    data, ancillary, _, _ = control.recvmsg(2000, socket.CMSG_SPACE(4))\n"
	"    if not ancillary:\n"
	"        sys.exit(0)\n"
	"    stream = socket.socket(fileno=array.array('i', ancillary[0][2])[0])\n"
	"    stream.setblocking(True)\n"
	"    count += 1\n"
	"    head = lambda status, kind, length: struct.pack('<IHHIIQ', 0x4d494c53, status, kind, "
	"0, "
	"0, length)\n"
	"    if name == 'mute':\n"
	"        keep = globals().setdefault('keep', [])\n"
	"        keep.append(stream)\n"
	"        continue\n"
	"    if name == 'garbage':\n"
	"        stream.sendall(os.urandom(64))\n"
	"        time.sleep(60)\n"
	"    if name == 'huge':\n"
	"        stream.sendall(head(200, 1, 1 << 40))\n"
	"        time.sleep(60)\n"
	"    if name == 'half':\n"
	"        stream.sendall(head(200, 1, 100) + b'x' * 10)\n"
	"    elif name == 'once' and count == 2:\n"
	"        sys.exit(0)\n"
	"    else:\n"
	"        body = b'%d %d ' % (os.getpid(), count) + data\n"
	"        stream.sendall(head(200, 3, len(body)) + body)\n"
	"    stream.close()\n";

static const char *const sessions[] = {"good", "dead", "mute", "garbage", "huge", "half", "once"};
enum { SESSIONS = sizeof(sessions) / sizeof(sessions[0]) };

static struct sl_claim claim[SESSIONS];
static char program[300];
static struct sl_image_service *images;

static int setup_all(void **state)
{
	char why[200];
	FILE *file;
	int folder;

	if (share_setup(state) || sl_registry_open(true, &folder, why, sizeof(why)))
		return -1;
	for (int i = 0; i < SESSIONS; i++) {
		struct sl_registry_facts facts = {.pid = getpid()};

		snprintf(facts.name, sizeof(facts.name), "%s", sessions[i]);
		if (sl_registry_claim(folder, sessions[i], &claim[i], why, sizeof(why)) ||
		    sl_registry_publish(&claim[i], &facts))
			return -1;
	}
	close(folder);
	snprintf(program, sizeof(program), "%s/program", share_base);
	file = fopen(program, "w");
	if (!file || fputs(script, file) < 0 || fclose(file))
		return -1;
	return chmod(program, 0700);
}

static int teardown_all(void **state)
{
	for (int i = 0; i < SESSIONS; i++)
		sl_registry_release(&claim[i]);
	return share_teardown(state);
}

static int setup(void **state)
{
	const struct sl_image_service_options options = {.program = program, .stalled_ms = 200};

	return sl_image_service_open(&options, &images);
}

static int teardown(void **state)
{
	sl_image_service_close(images);
	return 0;
}

/* ---- answers ---- */

struct waiting {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned answers, bad; /* bad: status 503 */
	unsigned status;
	char text[200];
};

static struct waiting waiting = {.lock = PTHREAD_MUTEX_INITIALIZER,
				 .changed = PTHREAD_COND_INITIALIZER};

static void note(void *arg, const struct sl_image_answer *answer)
{
	struct waiting *w = arg;
	size_t n = answer->bytes < sizeof(w->text) - 1 ? answer->bytes : sizeof(w->text) - 1;

	pthread_mutex_lock(&w->lock);
	w->answers++;
	w->bad += answer->status == 503;
	w->status = answer->status;
	memcpy(w->text, answer->body ? answer->body : "", answer->body ? n : 0);
	w->text[n] = 0;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	sl_image_body_free(answer->body);
}

static void wait_for(unsigned answers)
{
	pthread_mutex_lock(&waiting.lock);
	while (waiting.answers < answers)
		pthread_cond_wait(&waiting.changed, &waiting.lock);
	assert_int_equal(waiting.answers, answers);
	pthread_mutex_unlock(&waiting.lock);
}

static unsigned ask(const char *session, uint32_t timeout_ms)
{
	waiting.answers = waiting.bad = 0;
	assert_int_equal(
		sl_image_service_ask(images, session, "image?x=1", timeout_ms, note, &waiting), 0);
	wait_for(1);
	return waiting.status;
}

enum { PATIENCE_MS = 60000 };

/* ---- cases ---- */

static void a_process_answers_request_after_request(void **state)
{
	char expected[60];
	int pid;

	assert_int_equal(ask("good", PATIENCE_MS), 200);
	pid = sl_image_service_process_of(images, "good");
	assert_true(pid > 0);
	snprintf(expected, sizeof(expected), "%d 1 image?x=1", pid);
	assert_string_equal(waiting.text, expected);
	assert_int_equal(ask("good", PATIENCE_MS), 200);
	snprintf(expected, sizeof(expected), "%d 2 image?x=1", pid);
	assert_string_equal(waiting.text, expected);
	assert_int_equal(sl_image_service_started(images), 1);
}

static void one_that_was_killed_is_started_again(void **state)
{
	for (unsigned i = 1; i <= 5; i++) {
		assert_int_equal(ask("good", PATIENCE_MS), 200);
		assert_int_equal(sl_image_service_started(images), i);
		assert_int_equal(kill(sl_image_service_process_of(images, "good"), SIGKILL), 0);
	}
}

static void one_that_ends_instead_of_answering_gets_a_second_chance(void **state)
{
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(ask("once", PATIENCE_MS), 200);
		assert_int_equal(sl_image_service_started(images), i);
	}
}

static void one_that_cannot_start_is_not_tried_all_the_time(void **state)
{
	uint64_t started;

	assert_int_equal(ask("dead", PATIENCE_MS), 503);
	assert_non_null(strstr(waiting.text, "\"code\":\"busy\""));
	started = sl_image_service_started(images);
	assert_in_range(started, 1, 2);
	for (int i = 0; i < 20; i++)
		assert_int_equal(ask("dead", PATIENCE_MS), 503);
	assert_true(sl_image_service_started(images) <= started + 8);
	assert_int_equal(ask("good", PATIENCE_MS), 200); /* others go on */
}

static void nonsense_is_no_answer(void **state)
{
	static const char *const bad[] = {"garbage", "huge", "half"};

	for (int i = 0; i < 3; i++) {
		assert_int_equal(ask(bad[i], PATIENCE_MS), 503);
		assert_int_equal(ask("good", PATIENCE_MS), 200);
	}
	/* What talks nonsense is out of order. */
	assert_int_equal(sl_image_service_process_of(images, "garbage"), 0);
	assert_int_equal(sl_image_service_process_of(images, "huge"), 0);
}

static void one_that_stalls_is_killed(void **state)
{
	assert_int_equal(ask("mute", 1000), 503);
	assert_non_null(strstr(waiting.text, "does not answer"));
	for (int i = 0; i < 2000 && sl_image_service_process_of(images, "mute"); i++)
		usleep(5000);
	assert_int_equal(sl_image_service_process_of(images, "mute"), 0);
	assert_int_equal(ask("good", PATIENCE_MS), 200);
}

static void requests_are_bounded_and_all_are_answered_in_the_end(void **state)
{
	unsigned taken = 0, refused = 0;

	waiting.answers = waiting.bad = 0;
	for (int i = 0; i < SL_IMAGE_SERVICE_CALLS + 50; i++) {
		int err =
			sl_image_service_ask(images, "mute", "image", PATIENCE_MS, note, &waiting);

		taken += !err;
		refused += err == -EBUSY;
	}
	assert_true(taken <= SL_IMAGE_SERVICE_CALLS && refused >= 1 &&
		    taken + refused == SL_IMAGE_SERVICE_CALLS + 50);
	sl_image_service_end(images);
	wait_for(taken);
	assert_int_equal(waiting.bad, taken);
	assert_int_equal(sl_image_service_ask(images, "good", "image", 1000, note, &waiting),
			 -EBUSY);
}

static void wrong_names_start_nothing(void **state)
{
	char text[SL_IMAGE_QUERY_BYTES + 1];

	assert_int_equal(ask("absent", PATIENCE_MS), 404);
	assert_non_null(strstr(waiting.text, "not_found"));
	assert_int_equal(sl_image_service_ask(images, "../up", "image", 1000, note, &waiting),
			 -EINVAL);
	assert_int_equal(sl_image_service_ask(images, "", "image", 1000, note, &waiting), -EINVAL);
	memset(text, 'x', sizeof(text));
	text[SL_IMAGE_QUERY_BYTES] = 0;
	assert_int_equal(sl_image_service_ask(images, "good", text, 1000, note, &waiting), -EINVAL);
	assert_int_equal(sl_image_service_started(images), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_process_answers_request_after_request),
		CASE(one_that_was_killed_is_started_again),
		CASE(one_that_ends_instead_of_answering_gets_a_second_chance),
		CASE(one_that_cannot_start_is_not_tried_all_the_time),
		CASE(nonsense_is_no_answer),
		CASE(one_that_stalls_is_killed),
		CASE(requests_are_bounded_and_all_are_answered_in_the_end),
		CASE(wrong_names_start_nothing),
	};

	if (access("/usr/bin/python3", X_OK)) {
		print_message("# skip: /usr/bin/python3 is not there\n");
		return 0;
	}
	return cmocka_run_group_tests_name("images", tests, setup_all, teardown_all);
}
