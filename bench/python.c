/* python.c - the peer in Python: one process for all rounds, since what it prepares (pyFAI's
 * matrices, OpenCL's kernels) takes longer than what is measured. It is told a line, "MODE SIZE
 * SECONDS FILE", and answers with a line of JSON; in between it waits. FILE is where a profile
 * goes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/stage/stage.h"

enum { PATIENCE_S = 180, SAID = 4096 };

/* Debian's, which has the packages; the first on the path may be another. */
#define PYTHON "/usr/bin/python3"
#define SCRIPT "peer_pyfai.py"

/* What it says beside its answers, and libraries of its have much to say, is read when it fails. */
static void run_python(const struct sl_bench_python *p, const char *script, const char *folder,
		       const int to[2], const int from[2])
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN); /* of the terminal: who started it ends it */
	dup2(to[0], STDIN_FILENO);
	dup2(from[1], STDOUT_FILENO);
	dup2(p->err, STDERR_FILENO);
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC); /* what libraries have opened */
	execl(PYTHON, PYTHON, script, folder, (char *)NULL);
	_exit(127);
}

static void start(struct sl_bench_python *p, const char *folder)
{
	char script[SL_BENCH_PATH];
	int to[2] = {-1, -1}, from[2] = {-1, -1};

	p->pid = -1;
	if (!sl_bench_find_program(SCRIPT, script)) {
		snprintf(p->why, sizeof(p->why), "bench/" SCRIPT " is not beside this program");
		return;
	}
	if (access(PYTHON, X_OK) < 0) {
		snprintf(p->why, sizeof(p->why), "there is no " PYTHON);
		return;
	}
	p->err = memfd_create("python", MFD_CLOEXEC);
	if (p->err < 0 || pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0 ||
	    (p->pid = fork()) < 0) {
		snprintf(p->why, sizeof(p->why), "%s", strerror(errno));
		p->pid = -1;
	} else if (!p->pid) {
		run_python(p, script, folder, to, from);
	}
	close(to[0]);
	close(from[1]);
	p->to = to[1];
	p->from = from[0];
}

/* One line, or false: it ended, or takes too long. */
static bool listen_to(const struct sl_bench_python *p, char said[SAID], double patience_s)
{
	uint64_t until = sl_clock_ns() + (uint64_t)(1e9 * patience_s), now;
	size_t n = 0;

	while (n < SAID - 1 && (now = sl_clock_ns()) < until) {
		struct pollfd poll_fd = {.fd = p->from, .events = POLLIN};

		if (poll(&poll_fd, 1, (int)((until - now) / 1000000) + 1) <= 0)
			continue;
		if (read(p->from, said + n, 1) != 1)
			return false;
		if (said[n++] == '\n') {
			said[n] = '\0';
			return true;
		}
	}
	return false;
}

/* {"why": "..."}: it cannot, and says why. */
static bool says_why(const char *said, char *why, size_t bytes)
{
	static const char key[] = "\"why\": \"";
	const char *at = strstr(said, key);

	if (!at)
		return false;
	at += strlen(key);
	snprintf(why, bytes, "%.*s", (int)strcspn(at, "\""), at);
	return true;
}

void sl_bench_python_measure(const struct sl_bench *bench, const struct sl_bench_row *row,
			     struct sl_bench_sample *sample)
{
	struct sl_bench_python *p = &bench->stages->python;
	char said[SAID], file[SL_BENCH_PATH];

	sl_bench_files_profile(bench->stages, row->name, file, sizeof(file));
	if (!p->pid)
		start(p, bench->stages->folder);
	if (p->pid > 0 &&
	    dprintf(p->to, "%s %s %.3f %s\n", row->work->mode,
		    row->size == SL_BENCH_4M ? "4m" : "500k", bench->o.seconds, file) > 0) {
		if (listen_to(p, said, PATIENCE_S + 50 * bench->o.seconds)) {
			if (!says_why(said, sample->why, sizeof(sample->why)))
				sl_bench_parse(said, false, sample);
			return;
		}
		sl_bench_last_line(p->err, p->why, sizeof(p->why));
		if (!p->why[0])
			snprintf(p->why, sizeof(p->why), "bench/" SCRIPT " took too long");
		sl_bench_python_end(p);
		p->pid = -1;
	}
	snprintf(sample->why, sizeof(sample->why), "%s", p->why);
	sample->cannot = true;
}

void sl_bench_python_end(struct sl_bench_python *p)
{
	if (p->pid <= 0)
		return;
	close(p->to);
	close(p->from);
	close(p->err);
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	p->pid = 0;
}
