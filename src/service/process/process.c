/* process.c - a program with limits, to its end. */
#include "service/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "service/process/child.h"

enum { LOOK_MS = 50, SOON_MS = 1, FIRST_ROOM = 4096 };

struct stream {
	int fd; /* ours; -1: closed */
	char *bytes;
	size_t n, room;
};

struct run {
	const struct sl_process *p;
	struct sl_process_result *result;
	pid_t child;
	int in; /* its stdin; -1: all is written */
	size_t written;
	struct stream out, err;
	uint64_t end_ns;
};

/* ---- the child, before it is another program ---- */

static void become(const struct sl_process *p, const int *fd, int error_fd)
{
	if (!p->goes_on)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	sl_child_limits(p->cpu_s, p->memory_bytes, p->nicer);
	if (dup2(fd[0], 0) < 0 || dup2(fd[1], 1) < 0 || dup2(fd[2], 2) < 0 ||
	    (p->folder && chdir(p->folder)))
		sl_child_fail(error_fd);
	sl_child_execute(p->argv, error_fd, p->held ? p->held : -1);
}

/* ---- its streams ---- */

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int make_room(struct stream *s)
{
	size_t room = s->room ? 2 * s->room : FIRST_ROOM;
	char *more;

	if (s->n + 1 < s->room)
		return 0;
	more = realloc(s->bytes, room);
	if (!more)
		return -ENOMEM;
	s->bytes = more;
	s->room = room;
	return 0;
}

/* What is more than `most` is read and forgotten: the program must not wait for us. */
static void take(struct stream *s, size_t most)
{
	char rest[4096];
	ssize_t n;

	if (s->n >= most || make_room(s)) {
		n = read(s->fd, rest, sizeof(rest));
	} else {
		size_t room = s->room - 1 - s->n;

		n = read(s->fd, s->bytes + s->n, room < most - s->n ? room : most - s->n);
		s->n += n > 0 ? (size_t)n : 0;
	}
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		close_one(&s->fd);
}

static void give(struct run *r)
{
	ssize_t n = write(r->in, r->p->input + r->written, r->p->input_bytes - r->written);

	if (n > 0)
		r->written += (size_t)n;
	if (r->written == r->p->input_bytes || (n < 0 && errno != EAGAIN && errno != EINTR))
		close_one(&r->in);
}

static void move(struct run *r, int timeout_ms)
{
	struct pollfd fd[3] = {{r->in, POLLOUT, 0}, {r->out.fd, POLLIN, 0}, {r->err.fd, POLLIN, 0}};

	if (poll(fd, 3, timeout_ms) <= 0)
		return;
	if (fd[0].revents)
		give(r);
	if (fd[1].revents)
		take(&r->out, r->p->most_bytes);
	if (fd[2].revents)
		take(&r->err, r->p->most_bytes);
}

/* ---- its end ---- */

static bool has_ended(struct run *r)
{
	int word;
	pid_t ended = waitpid(r->child, &word, WNOHANG);

	if (!ended || (ended < 0 && errno == EINTR))
		return false;
	r->result->status = ended < 0 ? 0 : WIFEXITED(word) ? WEXITSTATUS(word) : -WTERMSIG(word);
	return true;
}

/* True: it was to end and did not. */
static bool is_over(struct run *r)
{
	r->result->timed_out = sl_clock_ns() > r->end_ns;
	r->result->stopped = r->p->stop && r->p->stop(r->p->arg);
	return r->result->timed_out || r->result->stopped;
}

static void attend(struct run *r)
{
	bool ended = false;

	while (!ended) {
		/* A child of its own may hold the streams; its end counts, not theirs. */
		move(r, r->out.fd < 0 && r->err.fd < 0 ? SOON_MS : LOOK_MS);
		ended = has_ended(r);
		if (!ended && is_over(r)) {
			if (r->result->stopped && r->p->goes_on)
				return; /* init takes its exit status when we have ended */
			kill(-r->child, SIGKILL);
			kill(r->child, SIGKILL);
			while (!has_ended(r))
				sl_clock_sleep_until(sl_clock_ns() + 1000000);
			ended = true;
		}
	}
	while (r->out.fd >= 0 || r->err.fd >= 0) { /* what it has left in the pipes */
		struct pollfd fd[2] = {{r->out.fd, POLLIN, 0}, {r->err.fd, POLLIN, 0}};

		if (poll(fd, 2, 0) <= 0)
			break;
		move(r, 0);
	}
	kill(-r->child, SIGKILL); /* and whom it has left */
}

static void finish(struct run *r)
{
	close_one(&r->in);
	close_one(&r->out.fd);
	close_one(&r->err.fd);
	for (struct stream *s = &r->out; s; s = s == &r->out ? &r->err : NULL) {
		if (!s->bytes)
			s->bytes = calloc(1, 1);
		else
			s->bytes[s->n] = 0;
	}
	r->result->out = r->out.bytes;
	r->result->out_bytes = r->out.n;
	r->result->err = r->err.bytes;
	r->result->err_bytes = r->err.n;
}

/* Pipes for stdin, stdout, stderr and the error of exec: ours in [0], the child's in [1]. */
static int make_pipes(int pipes[4][2])
{
	for (int i = 0; i < 4; i++)
		if (pipe2(pipes[i], O_CLOEXEC)) {
			int err = -errno;

			while (i-- > 0) {
				close(pipes[i][0]);
				close(pipes[i][1]);
			}
			return err;
		}
	return 0;
}

static int start(struct run *r)
{
	int pipes[4][2], err = make_pipes(pipes), child[3];

	if (err)
		return err;
	child[0] = pipes[0][0];
	child[1] = pipes[1][1];
	child[2] = pipes[2][1];
	r->child = fork();
	if (!r->child)
		become(r->p, child, pipes[3][1]);
	err = r->child < 0 ? -errno : 0;
	for (int i = 0; i < 3; i++)
		close(child[i]);
	close(pipes[3][1]);
	r->in = pipes[0][1];
	r->out.fd = pipes[1][0];
	r->err.fd = pipes[2][0];
	if (!err)
		err = sl_child_started(pipes[3][0]);
	close(pipes[3][0]);
	if (err && r->child > 0)
		waitpid(r->child, NULL, 0);
	fcntl(r->in, F_SETFL, O_NONBLOCK);
	fcntl(r->out.fd, F_SETFL, O_NONBLOCK);
	fcntl(r->err.fd, F_SETFL, O_NONBLOCK);
	return err;
}

int sl_process_run(const struct sl_process *process, struct sl_process_result *result)
{
	struct run r = {
		.p = process, .result = result, .in = -1, .out = {.fd = -1}, .err = {.fd = -1}};
	int err;

	memset(result, 0, sizeof(*result));
	err = start(&r);
	r.end_ns = sl_clock_ns() + process->timeout_ms * UINT64_C(1000000);
	if (!process->input_bytes)
		close_one(&r.in);
	if (!err)
		attend(&r);
	finish(&r);
	if (!err && result->out && result->err)
		return 0;
	sl_process_free(result);
	return err ? err : -ENOMEM;
}

void sl_process_free(struct sl_process_result *result)
{
	free(result->out);
	free(result->err);
	memset(result, 0, sizeof(*result));
}
