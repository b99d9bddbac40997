/* python_test.c - the stage with scripts that behave, and with scripts that do not: every frame has
 * its result and is counted once, and the stage goes on. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "lib/capture.h"
#include "lib/open_files.h"
#include "lib/sanitized.h"
#include "lib/stage_rig.h"
#include "stage/python/python.h"

extern const struct sl_stage sl_stage_python;

enum { FRAMES = 12, LONG_MS = 60000 };

struct bench {
	struct rig rig;
	struct rig_frame frame[FRAMES];
	uint64_t figure[SL_PYTHON_FIGURES]; /* as they are reported */
	unsigned figures;
};
enum { JUDGED, UNJUDGED, LATE, ERRORS, RESTARTS };

/* ---- a folder with scripts ---- */

static char folder[] = "/tmp/python-test-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[4][128];
	static unsigned next;
	char *at = path[next++ % 4];

	snprintf(at, sizeof(path[0]), "%s/%s", folder, name);
	return at;
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static const char *interpreter(void)
{
	return access("/usr/bin/python3", X_OK) ? "python3" : "/usr/bin/python3";
}

/* `text` after a line with the folder: "FOLDER = ...". */
static void bench_init(struct bench *b, const char *text)
{
	static char all[8192];

	snprintf(all, sizeof(all), "import os, signal, sys, time\nFOLDER = '%s'\n%s", folder, text);
	write_file("script.py", all, 0600);
	memset(b, 0, sizeof(*b));
	rig_init(&b->rig, &sl_stage_python, SL_U16);
	rig_set(&b->rig, "script", path_of("script.py"));
	rig_set(&b->rig, "inputs", "raw");
	rig_set(&b->rig, "python", interpreter());
	rig_set(&b->rig, "deadline_ms", "60000");
	for (int f = 0; f < FRAMES; f++) {
		rig_frame_init(&b->frame[f], false);
		b->frame[f].frame.number = (uint64_t)f;
		memset(b->frame[f].in, 0, RIG_PIXELS * 2);
		((uint16_t *)b->frame[f].in)[RIG_PIXELS - 1] = (uint16_t)(100 + f);
	}
}

static void note_figure(void *arg, const char *name, uint64_t value, int failed)
{
	static const char *const names[SL_PYTHON_FIGURES] = {"python_judged", "python_unjudged",
							     "python_late", "python_errors",
							     "python_restarts"};
	struct bench *b = arg;

	assert_true(b->figures < SL_PYTHON_FIGURES);
	assert_string_equal(name, names[b->figures]);
	assert_int_equal(failed, 0);
	b->figure[b->figures++] = value;
}

/* A batch of frames that no stage has seen; then figures. */
static void bench_run(struct bench *b)
{
	for (int f = 0; f < FRAMES; f++)
		b->frame[f].verdict = (struct sl_verdict){.keep = 1};
	rig_run(&b->rig, b->frame, FRAMES, FRAMES, RIG_MODULE_PIXELS, 1);
	b->figures = 0;
	sl_stage_python.figures(b->rig.state, note_figure, b);
	for (int f = 0; f < FRAMES; f++)
		rig_check_canaries(&b->rig, &b->frame[f]);
}

static void bench_fini(struct bench *b)
{
	for (int f = 0; f < FRAMES; f++)
		rig_frame_fini(&b->frame[f]);
	rig_close(&b->rig);
}

static int judged(const struct bench *b, int f)
{
	return *(const uint8_t *)b->frame[f].frame.result[0].host;
}

static int keep(const struct bench *b, int f)
{
	return b->frame[f].verdict.keep;
}

/* Each frame has been judged, or is kept; and is counted as that. */
static void check_account(const struct bench *b, uint64_t frames)
{
	uint64_t sum = 0;

	for (int f = 0; f < FRAMES; f++) {
		assert_true(judged(b, f) == SL_PYTHON_JUDGED || judged(b, f) == SL_PYTHON_UNJUDGED);
		if (judged(b, f) == SL_PYTHON_UNJUDGED) {
			assert_int_equal(keep(b, f), 1);
			assert_int_equal(b->frame[f].verdict.reason, SL_REASON_UNJUDGED);
		}
		sum += judged(b, f) == SL_PYTHON_JUDGED;
	}
	assert_true(b->figure[JUDGED] >= sum);
	assert_int_equal(b->figure[JUDGED] + b->figure[UNJUDGED], frames);
}

/* Batches until all frames of one are judged: a process has been started again. */
static void run_until_judged(struct bench *b, uint64_t frames)
{
	uint64_t end = sl_clock_ns() + UINT64_C(60000000000);
	bool all = false;

	while (!all && sl_clock_ns() < end) {
		sl_clock_sleep_until(sl_clock_ns() + 20000000);
		bench_run(b);
		frames += FRAMES;
		check_account(b, frames);
		all = true;
		for (int f = 0; f < FRAMES; f++)
			all &= judged(b, f) == SL_PYTHON_JUDGED;
	}
	assert_true(all);
}

/* ---- scripts that behave ---- */

static const char verdicts[] =
	"import numpy\n"
	"def setup(about):\n"
	"    assert about['modules'] == 2 and about['detector'] == 'rig', about\n"
	"    assert about['name'] == 'a \"b\" \\\\ c\\n', about\n"
	"    assert about['frame_rate_Hz'] is None and about['process'] == 0\n"
	"    assert about['arrays']['raw']['shape'] == (2, 5, 61), about\n"
	"def judge(frame):\n"
	"    n, top = frame.number, int(frame['raw'].max())\n"
	"    assert top == 100 + n and frame['raw'].sum() == top, (n, top)\n"
	"    assert frame.timestamp == 7 * n and list(frame) == ['raw'] and len(frame) == 1\n"
	"    assert frame.keep and not frame.partial and not frame.missing\n"
	"    return [True, False, numpy.bool_(True), 0, (True, 2.5), (False, -1),\n"
	"            {'keep': True, 'score': 4, 'numbers': [1, 2, 3]},\n"
	"            {'keep': 1, 'numbers': numpy.arange(2)},\n"
	"            None, (1, 2, 3), {'kept': 1}, {'keep': 1, 'numbers': range(4)}][n]\n";

static void test_all_forms_of_a_verdict(void **arg)
{
	static const int keeps[FRAMES] = {1, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1};
	static const double scores[8] = {1, 0, 1, 0, 2.5, -1, 4, 1};
	struct bench b;

	bench_init(&b, verdicts);
	rig_set(&b.rig, "numbers", "3");
	b.rig.env.name = "a \"b\" \\ c\n";
	b.rig.env.frame_rate_Hz = 1. / 0.;
	rig_open(&b.rig);
	for (int f = 0; f < FRAMES; f++)
		b.frame[f].frame.timestamp = 7 * (uint64_t)f;
	capture_begin();
	bench_run(&b);
	bench_fini(&b); /* its frames are gone, the verdicts are here */
	capture_end();
	for (int f = 0; f < FRAMES; f++) {
		assert_int_equal(keep(&b, f), keeps[f]);
		assert_int_equal(b.frame[f].verdict.reason, f < 8 ? SL_REASON_SCORE : 0);
		if (f < 8)
			assert_true(b.frame[f].verdict.score == (float)scores[f]);
	}
	assert_int_equal(b.figure[JUDGED], 8);
	assert_int_equal(b.figure[UNJUDGED], 4);
	assert_int_equal(b.figure[ERRORS], 4);
	assert_int_equal(b.figure[LATE] + b.figure[RESTARTS], 0);
}

static void test_numbers_are_results(void **arg)
{
	const double *number;
	struct bench b;

	bench_init(&b, "def judge(frame):\n"
		       "    return {'keep': False, 'score': 1, 'numbers': [frame.number] * 2}\n");
	rig_set(&b.rig, "numbers", "3");
	rig_set(&b.rig, "name", "mine");
	rig_open(&b.rig);
	assert_string_equal(b.rig.terms.output[0].name, "mine_judged");
	assert_string_equal(b.rig.terms.output[1].name, "mine_numbers");
	rig_run(&b.rig, b.frame, FRAMES, 5, RIG_MODULE_PIXELS, 1);
	for (int f = 0; f < FRAMES; f++) {
		number = b.frame[f].frame.result[1].host;
		assert_int_equal(judged(&b, f), SL_PYTHON_JUDGED);
		assert_true(number[0] == f && number[1] == f && number[2] != number[2]);
	}
	bench_fini(&b);
}

/* A tuple of a keep and a score says what was tried and went through; there must be nothing. */
static const char attack[] =
	"import mmap\n"
	"def tries(frame):\n"
	"    def write(): frame['raw'][0] = 1\n"
	"    def unlock(): frame['raw'].flags.writeable = True\n"
	"    def map(): mmap.mmap(4, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)\n"
	"    def reopen(): os.write(os.open('/proc/self/fd/4', os.O_RDWR), b'x')\n"
	"    def pwrite(): os.pwrite(4, b'x', 0)\n"
	"    def cut(): os.truncate('/proc/self/fd/4', 0)\n"
	"    return write, unlock, map, reopen, pwrite, cut\n"
	"def judge(frame):\n"
	"    score = 0\n"
	"    for i, what in enumerate(tries(frame)):\n"
	"        try: what()\n"
	"        except (ValueError, OSError): continue\n"
	"        score |= 1 << i\n"
	"    return True, score\n";

static void test_a_script_cannot_write_to_the_memory_of_the_run(void **arg)
{
	struct bench b;

	bench_init(&b, attack);
	rig_open(&b.rig);
	bench_run(&b);
	for (int f = 0; f < FRAMES; f++) {
		assert_int_equal(judged(&b, f), SL_PYTHON_JUDGED);
		assert_true(b.frame[f].verdict.score == 0);
	}
	bench_fini(&b);
}

static void test_rejected_and_dark_frames_are_not_shown(void **arg)
{
	struct bench b;

	for (int all = 0; all < 2; all++) {
		bench_init(&b, "def judge(frame):\n    return True, 9\n");
		rig_set(&b.rig, "look", all ? "all" : "kept");
		rig_open(&b.rig);
		b.frame[1].verdict.keep = 0;
		b.frame[2].frame.flags |= SL_FRAME_DARK;
		rig_run(&b.rig, b.frame, FRAMES, FRAMES, RIG_MODULE_PIXELS, 1);
		for (int f = 0; f < FRAMES; f++)
			assert_int_equal(judged(&b, f), f == 2 || (f == 1 && !all)
								? SL_PYTHON_NOT_SHOWN
								: SL_PYTHON_JUDGED);
		assert_int_equal(keep(&b, 1), 0); /* rejected stays rejected */
		bench_fini(&b);
	}
}

static void test_verdicts_do_not_depend_on_the_number_of_processes(void **arg)
{
	struct bench b;

	for (int n = 1; n <= 4; n++) {
		bench_init(&b, "def judge(frame):\n"
			       "    return frame.number % 3 == 0, int(frame['raw'].max())\n");
		rig_set(&b.rig, "processes", (const char[]){(char)('0' + n), 0});
		rig_open(&b.rig);
		bench_run(&b);
		check_account(&b, FRAMES);
		for (int f = 0; f < FRAMES; f++) {
			assert_int_equal(keep(&b, f), f % 3 == 0);
			assert_true(b.frame[f].verdict.score == 100.f + (float)f);
		}
		bench_fini(&b);
	}
}

/* Its globals are its own; setup() is called for each run. */
static void test_a_run_begins_with_setup(void **arg)
{
	struct bench b;

	bench_init(&b, "def setup(about):\n    global n\n    n = 0\n"
		       "def judge(frame):\n    global n\n    n += 1\n    return True, n\n");
	rig_open(&b.rig);
	for (int run = 0; run < 3; run++) {
		bench_run(&b);
		for (int f = 0; f < FRAMES; f++)
			assert_true(b.frame[f].verdict.score == 1.f + (float)f);
		assert_int_equal(b.figure[JUDGED], FRAMES);
		assert_int_equal(b.figure[RESTARTS], 0);
		assert_int_equal(b.rig.ops->again(b.rig.state), 0);
	}
	bench_fini(&b);
}

/* ---- scripts that do not ---- */

/* Frame 3 takes as long as the test likes. */
static void test_a_late_verdict_is_keep(void **arg)
{
	struct bench b;

	for (int n = 1; n <= 2; n++) {
		unlink(path_of("go"));
		bench_init(&b,
			   "def judge(frame):\n"
			   "    while frame.number == 3 and not os.path.exists(FOLDER + '/go'):\n"
			   "        time.sleep(0.005)\n"
			   "    return False\n");
		rig_set(&b.rig, "deadline_ms", SANITIZED ? "500" : "200");
		rig_set(&b.rig, "stuck_s", "600");
		rig_set(&b.rig, "processes", n == 1 ? "1" : "2");
		rig_open(&b.rig);
		capture_begin();
		bench_run(&b);
		check_account(&b, FRAMES);
		assert_int_equal(judged(&b, 3), SL_PYTHON_UNJUDGED);
		assert_int_equal(keep(&b, 3), 1);
		assert_true(b.figure[LATE] >= 1);
		for (int f = 4; f < FRAMES && n == 1; f++)
			assert_int_equal(judged(&b, f), SL_PYTHON_UNJUDGED);
		write_file("go", "", 0600);
		run_until_judged(&b, FRAMES);
		assert_int_equal(b.figure[RESTARTS], 0);
		bench_fini(&b);
		capture_end();
	}
}

/* The thread that judges is held up from before the deadline until an answer has come: by a
 * handler, which the script starts. */
static const struct bench *held_up;

static void hold_up(int signal)
{
	const struct sl_python *options = held_up->rig.state;
	struct pollfd p = {.fd = options->engine->process[0].socket, .events = POLLIN};

	(void)signal;
	poll(&p, 1, LONG_MS);
}

/* An answer that is there when the thread looks next, but came after the deadline, is late. */
static void test_an_answer_before_the_next_look_is_late(void **arg)
{
	struct sigaction before, during = {.sa_handler = hold_up};
	struct bench b;

	bench_init(&b, "def judge(frame):\n"
		       "    if frame.number == 3:\n"
		       "        os.kill(os.getppid(), signal.SIGUSR1)\n"
		       "        time.sleep(0.8)\n"
		       "    return False\n");
	held_up = &b;
	rig_set(&b.rig, "deadline_ms", "300");
	rig_set(&b.rig, "stuck_s", "600");
	rig_open(&b.rig);
	sigaction(SIGUSR1, &during, &before);
	capture_begin();
	bench_run(&b);
	capture_end();
	sigaction(SIGUSR1, &before, NULL);
	check_account(&b, FRAMES);
	assert_int_equal(judged(&b, 3), SL_PYTHON_UNJUDGED);
	assert_int_equal(keep(&b, 3), 1);
	assert_true(b.figure[LATE] >= 1);
	assert_int_equal(b.figure[RESTARTS], 0);
	bench_fini(&b);
}

/* What happens at frame 3 happens once: a file says that it has. */
static const char once[] = "def once():\n"
			   "    try: os.close(os.open(FOLDER + '/once', os.O_CREAT | os.O_EXCL))\n"
			   "    except FileExistsError: return False\n"
			   "    return True\n";

/* deadline_ms: NULL: none that a busy host could miss; otherwise frames before that one may be
 * late, too, and processes be started again for it. */
static void check_comes_back(const char *act, const char *says, const char *deadline_ms)
{
	static char text[2048];
	const char *said;
	struct bench b;

	unlink(path_of("once"));
	snprintf(text, sizeof(text),
		 "%sdef judge(frame):\n    if frame.number == 3 and once():\n        %s\n"
		 "    return False, 5\n",
		 once, act);
	bench_init(&b, text);
	if (deadline_ms)
		rig_set(&b.rig, "deadline_ms", deadline_ms);
	rig_set(&b.rig, "stuck_s", "0.01"); /* twice the deadline, then */
	rig_open(&b.rig);
	capture_begin();
	bench_run(&b);
	check_account(&b, FRAMES);
	assert_int_equal(judged(&b, 3), SL_PYTHON_UNJUDGED);
	for (int f = 0; f < 3 && !deadline_ms; f++)
		assert_int_equal(judged(&b, f), SL_PYTHON_JUDGED);
	run_until_judged(&b, FRAMES);
	assert_in_range(b.figure[RESTARTS], 1, deadline_ms ? UINT32_MAX : 1);
	assert_int_equal(b.figure[ERRORS], 0);
	bench_fini(&b);
	said = capture_end();
	if (!strstr(said, says))
		fail_msg("'%s' is not in: %s", says, said);
}

static void test_a_script_that_ends_is_started_again(void **arg)
{
	check_comes_back("os._exit(3)", "ended with exit status 3", NULL);
	check_comes_back("sys.exit('no more')", "ended with exit status 1", NULL);
	check_comes_back("os.kill(os.getpid(), signal.SIGKILL)", "killed by signal 9", NULL);
	check_comes_back("os.abort()", "killed by signal 6", NULL);
}

static void test_a_script_that_stops_is_started_again(void **arg)
{
	const char *deadline_ms = SANITIZED ? "1000" : "300";

	check_comes_back("os.kill(os.getpid(), signal.SIGSTOP)", "did not answer", deadline_ms);
	check_comes_back("time.sleep(600)", "did not answer", deadline_ms);
}

static void test_garbage_as_an_answer(void **arg)
{
	check_comes_back("os.write(3, b'garbage')", "wrote what is no answer", NULL);
	check_comes_back("os.write(3, bytes(32))", "wrote what is no answer", NULL);
	check_comes_back("os.write(3, bytes(100000))", "wrote what is no answer", NULL);
	/* It ends by itself, or is killed on a busy host. */
	check_comes_back("os.close(3)", "it is started again", NULL);
}

/* A child that goes on with the parent's work answers a second time; and one that outlives its
 * parent ends with it. */
static void test_a_script_that_forks(void **arg)
{
	struct bench b;

	bench_init(&b, "def judge(frame):\n"
		       "    if frame.number % 4 == 1 and os.fork() == 0: pass\n"
		       "    return frame.number % 2 == 0, 5\n");
	rig_open(&b.rig);
	capture_begin();
	bench_run(&b);
	check_account(&b, FRAMES);
	bench_fini(&b);
	capture_end();
}

static void test_exceptions_are_counted_and_told_once(void **arg)
{
	const char *said, *at;
	struct bench b;

	bench_init(&b, "def judge(frame):\n    return 1 / (frame.number % 2)\n");
	rig_open(&b.rig);
	capture_begin();
	bench_run(&b);
	check_account(&b, FRAMES);
	assert_int_equal(b.figure[ERRORS], FRAMES / 2);
	assert_int_equal(b.figure[UNJUDGED], FRAMES / 2);
	assert_int_equal(b.figure[RESTARTS], 0);
	bench_fini(&b);
	said = capture_end();
	at = strstr(said, "ZeroDivisionError");
	assert_non_null(at);
	assert_null(strstr(at + 1, "ZeroDivisionError"));
	assert_non_null(strstr(said, "line 4, in judge"));
}

static void test_what_it_prints_goes_to_the_log(void **arg)
{
	const char *said;
	unsigned lines = 0;
	struct bench b;

	bench_init(&b, "def judge(frame):\n"
		       "    print('seen', frame.number, '\\x1b[2J')\n"
		       "    print('z' * 5000, file=sys.stderr)\n"
		       "    for i in range(2000): print('line', i)\n"
		       "    return True\n");
	rig_open(&b.rig);
	capture_begin();
	bench_run(&b);
	check_account(&b, FRAMES);
	assert_int_equal(b.figure[JUDGED], FRAMES);
	bench_fini(&b);
	said = capture_end();
	assert_non_null(strstr(said, "sluice: python prints: seen 0 ?[2J\n"));
	assert_non_null(strstr(said, "warning: python: zzzz"));
	for (; *said; said++)
		lines += *said == '\n';
	assert_true(lines > 100 && lines < 600); /* of 24,000 */
}

/* ---- scripts that cannot begin ---- */

static void check_refused(const char *text, const char *says, void (*set)(struct bench *b))
{
	const char *said;
	struct bench b;

	bench_init(&b, text);
	if (set)
		set(&b);
	capture_begin();
	assert_true(rig_try_open(&b.rig) < 0);
	bench_fini(&b);
	said = capture_end();
	if (!strstr(said, says))
		fail_msg("'%s' is not in: %s", says, said);
}

static void no_script(struct bench *b)
{
	rig_set(&b->rig, "script", "");
}

static void missing_script(struct bench *b)
{
	rig_set(&b->rig, "script", path_of("none.py"));
}

static void missing_interpreter(struct bench *b)
{
	rig_set(&b->rig, "python", "no-such-python");
}

static void no_numpy(struct bench *b)
{
	static char text[128];

	snprintf(text, sizeof(text), "#!/bin/sh\nexec %s -S \"$@\"\n", interpreter());
	write_file("python-alone", text, 0700);
	rig_set(&b->rig, "python", path_of("python-alone"));
}

static void other_function(struct bench *b)
{
	rig_set(&b->rig, "function", "decide");
}

static void other_input(struct bench *b)
{
	rig_set(&b->rig, "inputs", "raw, peaks");
}

static void same_input(struct bench *b)
{
	rig_set(&b->rig, "inputs", "raw, raw");
}

static void other_name(struct bench *b)
{
	rig_set(&b->rig, "name", "My stage");
}

static void short_start(struct bench *b)
{
	rig_set(&b->rig, "start_s", "0.1");
}

static void three_processes(struct bench *b)
{
	rig_set(&b->rig, "processes", "3");
}

static void test_a_script_that_cannot_begin_is_an_error(void **arg)
{
	static const char good[] = "def judge(frame):\n    return True\n";

	check_refused(good, "option script is missing", no_script);
	check_refused(good, "none.py': No such file", missing_script);
	check_refused(good, "cannot start 'no-such-python': No such file", missing_interpreter);
	check_refused(good, "has no NumPy", no_numpy);
	check_refused(good, "there is no function decide(frame) in it", other_function);
	check_refused(good, "there is no 'peaks'", other_input);
	check_refused(good, "'raw' is there twice", same_input);
	check_refused(good, "'My stage' is no name", other_name);
	check_refused("def judge(frame)\n    return True\n",
		      "script.py: line 3: SyntaxError: ", NULL);
	check_refused("import no_such_module\n", "line 3: ModuleNotFoundError: No module named",
		      three_processes);
	check_refused("def setup(about):\n    raise ValueError('about\\nthis')\n"
		      "def judge(frame): pass\n",
		      "setup(): line 4: ValueError: about", NULL);
	check_refused("os._exit(7)\n", "ended with exit status 7", NULL);
	check_refused("os.kill(os.getpid(), signal.SIGKILL)\n", "killed by signal 9", NULL);
	check_refused("os.write(3, b'x')\n", "no answer", NULL);
	check_refused("time.sleep(600)\n", "not ready after 0.1 s", short_start);
}

/* A script that is right when it is opened and wrong when it is started again: the frames are
 * kept, and a script that is put right is found. */
static void test_a_script_that_is_changed_meanwhile(void **arg)
{
	struct bench b;

	bench_init(&b, "def judge(frame):\n    os._exit(0)\n");
	rig_open(&b.rig);
	write_file("script.py", "def judge(frame\n", 0600);
	capture_begin();
	for (int i = 1; i <= 10; i++) {
		bench_run(&b);
		check_account(&b, (uint64_t)i * FRAMES);
		sl_clock_sleep_until(sl_clock_ns() + 30000000);
	}
	assert_int_equal(b.figure[JUDGED], 0);
	assert_int_equal(b.figure[RESTARTS], 1);
	write_file("script.py", "def judge(frame):\n    return True\n", 0600);
	run_until_judged(&b, 10 * FRAMES);
	bench_fini(&b);
	capture_end();
}

/* ---- */

static int make_folder(void **arg)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **arg)
{
	static const char *const names[] = {"script.py", "go", "once", "python-alone"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(path_of(names[i]));
	return rmdir(folder);
}

/* Each test leaves neither descriptors nor processes. */
static unsigned files_before;

static int begin(void **arg)
{
	files_before = open_files();
	return 0;
}

static int end(void **arg)
{
	return open_files() == files_before && waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD
		       ? 0
		       : -1;
}

static bool has_numpy(void)
{
	char command[160];

	snprintf(command, sizeof(command), "%s -c 'import numpy' 2> /dev/null", interpreter());
	return system(command) == 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_forms_of_a_verdict),
		TEST(test_numbers_are_results),
		TEST(test_a_script_cannot_write_to_the_memory_of_the_run),
		TEST(test_rejected_and_dark_frames_are_not_shown),
		TEST(test_verdicts_do_not_depend_on_the_number_of_processes),
		TEST(test_a_run_begins_with_setup),
		TEST(test_a_late_verdict_is_keep),
		TEST(test_an_answer_before_the_next_look_is_late),
		TEST(test_a_script_that_ends_is_started_again),
		TEST(test_a_script_that_stops_is_started_again),
		TEST(test_garbage_as_an_answer),
		TEST(test_a_script_that_forks),
		TEST(test_exceptions_are_counted_and_told_once),
		TEST(test_what_it_prints_goes_to_the_log),
		TEST(test_a_script_that_cannot_begin_is_an_error),
		TEST(test_a_script_that_is_changed_meanwhile),
	};

	if (!has_numpy()) {
		printf("1..0 # SKIP %s has no NumPy\n", interpreter());
		return 0;
	}
	return cmocka_run_group_tests_name("python", tests, make_folder, remove_folder);
}
