/* follow.c - one row of `sluice bench share`: the process that measures follows a share. */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/share/share.h"

enum {
	PATIENCE_MS = 5000,
	STEPS_OF_A_CLOCK = 1000,
	SAID = 4096,
};
#define PYTHON "/usr/bin/python3"
#define SCRIPT "peer_share.py"

struct subject {
	const struct sl_bench_share *what;
	struct sl_bench_serving *serving;
	struct sl_follower *follower;
	uint8_t *data;
	uint32_t *ns;
	struct sl_follow_element element;
};

/* ---- one of what is measured; its time in *ns, 0: the loop takes it ---- */

static int fetch(struct subject *s, uint64_t *ns)
{
	return sl_follow_fetch(s->follower, UINT64_MAX, 0, s->what->bytes, s->data, &s->element);
}

static int follow(struct subject *s, uint64_t *ns)
{
	int err = sl_follow_next(s->follower, SL_FOLLOW_EVERY, PATIENCE_MS, s->data, s->what->bytes,
				 &s->element);

	if (!err && s->element.missed) {
		fprintf(stderr, "element %llu: %llu before it were missed\n",
			(unsigned long long)s->element.n, (unsigned long long)s->element.missed);
		err = -EBADMSG;
	}
	if (!err)
		atomic_store_explicit(&s->serving->taken, s->element.n, memory_order_release);
	return err;
}

static int ping(struct subject *s, uint64_t *ns)
{
	return sl_follow_ping(s->follower, PATIENCE_MS, ns);
}

static int message(struct subject *s, uint64_t *ns)
{
	struct sl_share_message answer;
	int err = sl_follow_send(s->follower, 1, s->data, s->what->bytes, PATIENCE_MS);

	if (!err)
		err = sl_follow_receive(s->follower, PATIENCE_MS, &answer);
	if (!err)
		sl_remote_free(answer.data);
	return err;
}

/* Until the flag changes, but for the end of patience. */
static void spin(const struct subject *s)
{
	const uint64_t *flag = sl_follow_flag(s->follower);
	uint64_t end = sl_clock_ns() + PATIENCE_MS * UINT64_C(1000000);

	do
		for (unsigned i = 0; i < STEPS_OF_A_CLOCK; i++)
			if (__atomic_load_n(flag, __ATOMIC_ACQUIRE) > s->element.n + 1)
				return;
	while (sl_clock_ns() < end);
}

static int view(struct subject *s, uint64_t *ns)
{
	uint64_t now;
	int err;

	if (s->what->spins)
		spin(s);
	if (s->what->looks)
		err = sl_follow_peek(s->follower, SL_FOLLOW_NEWEST, PATIENCE_MS, &s->element);
	else
		err = sl_follow_next(s->follower, SL_FOLLOW_NEWEST, PATIENCE_MS, s->data,
				     s->what->bytes, &s->element);
	now = sl_clock_unix_ns();
	*ns = now > s->element.note.commit_unix_ns ? now - s->element.note.commit_unix_ns : 1;
	return err;
}

static int answer(struct subject *s, uint64_t *ns)
{
	int err = view(s, ns);

	return err ? err
		   : sl_follow_send(s->follower, 1 + (uint32_t)s->element.n, s->data,
				    sizeof(uint64_t), PATIENCE_MS);
}

typedef int one(struct subject *s, uint64_t *ns);

static one *const all[] = {
	[SL_BENCH_FETCH] = fetch,     [SL_BENCH_FOLLOW] = follow, [SL_BENCH_PING] = ping,
	[SL_BENCH_MESSAGE] = message, [SL_BENCH_VIEW] = view,	  [SL_BENCH_ANSWER] = answer};

/* ---- the loop ---- */

/* A quarter of the time to get warm, then for as long as asked, and at least three times. */
static int measure(struct subject *s, double seconds, struct sl_bench_sample *sample)
{
	one *work = all[s->what->what];
	uint64_t warm = (uint64_t)(2.5e8 * seconds), most = (uint64_t)(1e9 * seconds);
	uint64_t begun = sl_clock_ns(), now, last, start, n = 0;
	int err = 0;

	do {
		uint64_t ns = 0;

		err = work(s, &ns);
	} while (!err && sl_clock_ns() - begun < warm);
	start = last = now = sl_clock_ns();
	while (!err && (now - start < most || n < 3)) {
		uint64_t ns = 0;

		err = work(s, &ns);
		now = sl_clock_ns();
		s->ns[n % SL_BENCH_SHARE_TIMES] = (uint32_t)(ns ? ns : now - last);
		last = now;
		n++;
	}
	if (err)
		return err;
	sample->count = n;
	sample->bytes = n * s->what->bytes;
	sample->GB_per_s = (double)sample->bytes / (double)(now - start);
	sl_bench_quantiles(s->ns, n < SL_BENCH_SHARE_TIMES ? n : SL_BENCH_SHARE_TIMES,
			   sample->quantile_us);
	return 0;
}

static int check(const struct subject *s, struct sl_bench_sample *sample)
{
	bool copies = s->what->what == SL_BENCH_FETCH || s->what->what == SL_BENCH_FOLLOW ||
		      (s->what->what == SL_BENCH_VIEW && !s->what->looks);

	if (!copies || sl_bench_share_is(s->data, s->what->bytes))
		return 0;
	sample->wrong = true;
	fprintf(stderr, "what was copied is not what was committed\n");
	return -EBADMSG;
}

static int by_c(const struct sl_bench *bench, struct subject *s, struct sl_bench_sample *sample)
{
	struct sl_follow_options options = {.bytes = sizeof(options)};
	struct sl_remote_error error;
	int err;

	if (s->what->nic) {
		options.device = s->serving->device;
		options.secret_file = s->serving->secret;
	}
	s->data = sl_bench_share_memory(s->what->bytes, MAP_PRIVATE);
	s->ns = sl_bench_share_memory(SL_BENCH_SHARE_TIMES * sizeof(*s->ns), MAP_PRIVATE);
	if (!s->data || !s->ns)
		return -ENOMEM;
	err = sl_follow_open(s->serving->url, &options, &s->follower, &error);
	unlink(s->serving->secret); /* both have read it */
	if (err) {
		fprintf(stderr, "%s\n", error.message);
		return err;
	}
	err = measure(s, bench->o.seconds, sample);
	if (err && err != -EBADMSG)
		fprintf(stderr, "%s: %s\n", s->serving->url, strerror(-err));
	if (!err)
		err = check(s, sample);
	sl_follow_close(s->follower);
	return err;
}

/* ---- the follower in Python ---- */

/* The one that this process has. */
static void name_the_library(void)
{
	Dl_info info;

	if (dladdr((void *)(uintptr_t)sl_follow_open, &info))
		setenv("SLUICE_CLIENT_LIBRARY", info.dli_fname, 0);
}

static int by_python(const struct sl_bench *bench, const struct subject *s,
		     struct sl_bench_sample *sample)
{
	char script[SL_BENCH_PATH], seconds[32], said[SAID + 1];
	int pipe_fd[2], status;
	size_t n = 0;
	ssize_t got;
	pid_t child;

	if (!sl_bench_find_program(SCRIPT, script) || access(PYTHON, X_OK) < 0) {
		fprintf(stderr, "there is no " PYTHON ", or no bench/" SCRIPT "\n");
		return -ENODEV;
	}
	snprintf(seconds, sizeof(seconds), "%.3f", bench->o.seconds);
	if (pipe(pipe_fd) < 0 || (child = fork()) < 0)
		return -errno;
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(pipe_fd[1], STDOUT_FILENO);
		name_the_library();
		execl(PYTHON, PYTHON, script, s->what->looks ? "view" : "copy", s->serving->url,
		      seconds, (char *)NULL);
		_exit(127);
	}
	close(pipe_fd[1]);
	while (n < SAID && (got = read(pipe_fd[0], said + n, SAID - n)) > 0)
		n += (size_t)got;
	said[n] = '\0';
	close(pipe_fd[0]);
	if (waitpid(child, &status, 0) != child || status)
		return WIFEXITED(status) && WEXITSTATUS(status) == SL_BENCH_CANNOT ? -ENODEV : -EIO;
	sl_bench_parse(said, true, sample);
	return sample->why[0] ? -EIO : 0;
}

int sl_bench_share(const struct sl_bench *bench, const struct sl_bench_row *row,
		   struct sl_bench_sample *sample)
{
	struct subject s = {.what = row->share};
	struct sl_bench_server server;
	int err, stopped;

	if (s.what->what == SL_BENCH_CROWD)
		return sl_bench_crowd(bench, row, sample);
	err = sl_bench_server_start(bench, row, &server);
	if (err)
		return err;
	sl_bench_take_side(bench, row, 0);
	s.serving = server.serving;
	err = s.what->python ? by_python(bench, &s, sample) : by_c(bench, &s, sample);
	stopped = sl_bench_server_stop(&server);
	if (!err && s.what->what == SL_BENCH_ANSWER) {
		sample->count = s.serving->times;
		sl_bench_quantiles(s.serving->ns, s.serving->times, sample->quantile_us);
	}
	return err ? err : stopped;
}
