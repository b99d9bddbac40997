/* process_test.c - programs with limits of time, cpu and output; programs that outlive us. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "service/process/process.h"

static struct sl_process_result run(struct sl_process p, const char *script)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct sl_process_result result;

	p.argv = argv;
	p.most_bytes = p.most_bytes ? p.most_bytes : 100000;
	p.timeout_ms = p.timeout_ms ? p.timeout_ms : 60000;
	assert_int_equal(sl_process_run(&p, &result), 0);
	return result;
}

static void output_and_status_come_back(void **state)
{
	struct sl_process_result r =
		run((struct sl_process){.input = "some words", .input_bytes = 10, .folder = "/"},
		    "cat; pwd; echo wrong >&2; exit 7");

	assert_int_equal(r.status, 7);
	assert_string_equal(r.out, "some words/\n");
	assert_string_equal(r.err, "wrong\n");
	assert_false(r.timed_out);
	sl_process_free(&r);
}

static void a_signal_is_told_from_a_status(void **state)
{
	struct sl_process_result r = run((struct sl_process){.timeout_ms = 60000}, "kill -SEGV $$");

	assert_int_equal(r.status, -SIGSEGV);
	sl_process_free(&r);
}

/* More in both directions than pipes hold: nothing waits for ever. */
static void much_goes_in_and_out(void **state)
{
	size_t bytes = 1 << 20;
	char *input = malloc(bytes);
	struct sl_process_result r;

	memset(input, 'x', bytes);
	r = run((struct sl_process){.input = input, .input_bytes = bytes, .most_bytes = 2 * bytes},
		"cat; cat /dev/null");
	assert_int_equal(r.out_bytes, bytes);
	assert_memory_equal(r.out, input, bytes);
	sl_process_free(&r);
	r = run((struct sl_process){.input = input, .input_bytes = bytes, .most_bytes = 1000},
		"cat");
	assert_int_equal(r.status, 0);
	assert_int_equal(r.out_bytes, 1000);
	sl_process_free(&r);
	/* it reads nothing */
	r = run((struct sl_process){.input = input, .input_bytes = bytes}, "exit 3");
	assert_int_equal(r.status, 3);
	sl_process_free(&r);
	free(input);
}

static void time_is_limited_with_its_children(void **state)
{
	uint64_t begin = sl_clock_ns();
	struct sl_process_result r =
		run((struct sl_process){.timeout_ms = 200}, "sleep 1000 & echo $!; wait");
	pid_t child = (pid_t)atol(r.out);

	assert_true(r.timed_out);
	assert_int_equal(r.status, -SIGKILL);
	assert_true(sl_clock_ns() - begin < UINT64_C(500000000000));
	assert_true(child > 1);
	while (!kill(child, 0)) /* init takes it; in a container that may be nobody for a while */
		if (sl_clock_ns() - begin > UINT64_C(5000000000)) {
			char path[64], text[64] = "";
			int fd;

			snprintf(path, sizeof(path), "/proc/%d/stat", (int)child);
			fd = open(path, O_RDONLY);
			assert_true(fd < 0 || (read(fd, text, 63) > 0 && strstr(text, ") Z")));
			close(fd);
			break;
		}
	sl_process_free(&r);
}

static bool at_once(void *arg)
{
	return true;
}

static void it_is_stopped_when_asked(void **state)
{
	struct sl_process_result r = run((struct sl_process){.stop = at_once}, "sleep 1000");

	assert_true(r.stopped);
	assert_int_equal(r.status, -SIGKILL);
	sl_process_free(&r);
}

static void limits_and_niceness_are_set(void **state)
{
	struct sl_process_result r = run((struct sl_process){.cpu_s = 3, .nicer = 4},
					 "ulimit -t; nice; exec 5>&1; ls /proc/self/fd | wc -l");
	int before = getpriority(PRIO_PROCESS, 0), cpu_s, nice, descriptors;

	assert_int_equal(sscanf(r.out, "%d %d %d", &cpu_s, &nice, &descriptors), 3);
	assert_int_equal(cpu_s, 3);
	assert_int_equal(nice, before + 4 > 19 ? 19 : before + 4);
	sl_process_free(&r);
}

static void no_descriptor_leaks(void **state)
{
	int open_here = open("/dev/null", O_RDONLY); /* without O_CLOEXEC */
	char script[64];
	struct sl_process_result r;

	snprintf(script, sizeof(script), "test ! -e /proc/self/fd/%d", open_here);
	r = run((struct sl_process){.cpu_s = 10}, script);
	assert_int_equal(r.status, 0);
	sl_process_free(&r);
	close(open_here);
}

static bool has_written(void *arg)
{
	const int *fd = arg;
	struct stat st;

	return !fstat(*fd, &st) && st.st_size > 0;
}

/* A lock that the program shares lasts until its end, though we have let go of it. */
static void a_program_holds_the_lock_that_it_was_given(void **state)
{
	char path[] = "/tmp/process-test-XXXXXX", script[100], pid[32] = "";
	int held = mkostemp(path, O_CLOEXEC), other = open(path, O_RDWR | O_CLOEXEC);
	struct sl_process p = {
		.held = held, .goes_on = true, .stop = has_written, .arg = (void *)&held};
	struct sl_process_result r;

	assert_true(held > 2 && other >= 0);
	unlink(path);
	assert_int_equal(flock(held, LOCK_EX | LOCK_NB), 0);
	snprintf(script, sizeof(script), "echo $$ >&%d; exec sleep 600", held);
	r = run(p, script);
	assert_true(r.stopped);
	close(held);
	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	assert_true(pread(other, pid, sizeof(pid) - 1, 0) > 0);
	assert_int_equal(kill((pid_t)strtol(pid, NULL, 10), SIGKILL), 0);
	assert_int_equal(flock(other, LOCK_EX), 0); /* it comes with the end of the program */
	close(other);
	sl_process_free(&r);
}

static void what_cannot_run_is_an_error(void **state)
{
	const char *const argv[] = {"/nonexistent/program", NULL};
	const struct sl_process p = {.argv = argv, .timeout_ms = 1000},
				in = {.argv = argv, .folder = "/nonexistent"};
	struct sl_process_result r;

	assert_int_equal(sl_process_run(&p, &r), -ENOENT);
	assert_int_equal(sl_process_run(&in, &r), -ENOENT);
}

static void detached_programs_go_on(void **state)
{
	char folder[] = "/tmp/detach-XXXXXX", log[64], go[64], script[200], text[100] = "";
	const char *argv[] = {"sh", "-c", script, NULL};
	const struct sl_detached d = {argv, "/", log};
	int alive, fd;

	assert_non_null(mkdtemp(folder));
	snprintf(log, sizeof(log), "%s/log", folder);
	snprintf(go, sizeof(go), "%s/go", folder);
	snprintf(script, sizeof(script),
		 "echo $PPID $(pwd); while [ ! -e %s ]; do sleep 0.01; done; exit 1", go);
	assert_int_equal(sl_process_detach(&d, &alive), 0);
	assert_true(sl_process_lives(alive, 0));
	fd = open(go, O_CREAT | O_WRONLY, 0600);
	close(fd);
	while (sl_process_lives(alive, 10000))
		;
	close(alive);
	fd = open(log, O_RDONLY);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	assert_true(atol(text) != getpid());
	assert_non_null(strstr(text, " /\n"));
	argv[0] = "/nonexistent/program";
	assert_int_equal(sl_process_detach(&d, &alive), -ENOENT);
	unlink(go);
	unlink(log);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_and_status_come_back),
		cmocka_unit_test(a_signal_is_told_from_a_status),
		cmocka_unit_test(much_goes_in_and_out),
		cmocka_unit_test(time_is_limited_with_its_children),
		cmocka_unit_test(it_is_stopped_when_asked),
		cmocka_unit_test(limits_and_niceness_are_set),
		cmocka_unit_test(no_descriptor_leaks),
		cmocka_unit_test(a_program_holds_the_lock_that_it_was_given),
		cmocka_unit_test(what_cannot_run_is_an_error),
		cmocka_unit_test(detached_programs_go_on),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
