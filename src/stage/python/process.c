/* process.c - one process of the script: started, heard, ended.
 *
 * A process is the interpreter with the program of python/sluice/stage.py, which comes by a
 * descriptor: so it is always the one that belongs to this library. It has
 *
 *              3  its end of the socket pair (wire.h)
 *              4  the frames, read only
 *              5  the program
 *
 * and pipes in the place of stdout and stderr. It is killed when the thread that started it, the
 * supervisor, ends. It leads a process group, so that what it has started ends with it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "stage/python/python.h"

enum { SOCKET = 3, MEMORY, CODE, GIVEN };
enum { END_MS = 2000 }; /* an interpreter that ends takes a while on a busy host */

extern char **environ;

/* ---- what it prints ---- */

static void log_line(const struct sl_python_engine *e, unsigned index, bool is_error,
		     const char *line)
{
	char who[32] = "";

	if (e->processes > 1)
		snprintf(who, sizeof(who), "[%u]", index);
	/* Two formats, so that each has a limit of its own (log.h). */
	if (is_error)
		sl_warn("%s%s: %s", e->options->name, who, line);
	else
		sl_info("%s%s prints: %s", e->options->name, who, line);
}

/* Whole lines; one that is longer than the buffer is cut. */
static void take_lines(const struct sl_python_engine *e, unsigned index, bool is_error,
		       struct sl_python_output *o)
{
	char *end;

	while ((end = memchr(o->line, '\n', o->used)) || o->used == sizeof(o->line) - 1) {
		size_t length = end ? (size_t)(end - o->line) : o->used;
		size_t used = end ? length + 1 : length;

		o->line[length] = 0;
		log_line(e, index, is_error, o->line);
		o->used -= used;
		memmove(o->line, o->line + used, o->used);
	}
}

/* What is there now, and not more than this many bytes: other processes are to be heard, too. */
static void read_one(const struct sl_python_engine *e, unsigned index, bool is_error,
		     struct sl_python_output *o)
{
	enum { MOST = 65536 };
	size_t sum = 0;
	ssize_t n = 0;

	while (o->fd >= 0 && sum < MOST) {
		n = read(o->fd, o->line + o->used, sizeof(o->line) - 1 - o->used);
		if (n <= 0)
			break;
		sum += (size_t)n;
		o->used += (size_t)n;
		take_lines(e, index, is_error, o);
	}
	if (o->fd >= 0 && n == 0) { /* it has closed its end */
		close(o->fd);
		o->fd = -1;
	}
}

void sl_python_read_output(struct sl_python_engine *e, unsigned index)
{
	struct sl_python_process *p = &e->process[index];

	read_one(e, index, false, &p->out);
	read_one(e, index, true, &p->err);
}

static void close_output(const struct sl_python_engine *e, unsigned index, bool is_error,
			 struct sl_python_output *o)
{
	if (o->used) {
		o->line[o->used] = 0;
		log_line(e, index, is_error, o->line);
	}
	if (o->fd >= 0)
		close(o->fd);
	*o = (struct sl_python_output){.fd = -1};
}

/* ---- its beginning ---- */

struct ends { /* of what it gets; none is one of the numbers that it gets them as */
	int socket, memory, code, out, err;
};

static int out_of_the_way(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, GIVEN);

	close(fd);
	return high;
}

static int open_pipe(struct sl_python_output *o, int *child)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	o->fd = ends[0];
	o->used = 0;
	*child = out_of_the_way(ends[1]);
	return *child < 0 ? -errno : 0;
}

static int open_ends(const struct sl_python_engine *e, struct sl_python_process *p,
		     struct ends *ends)
{
	int pair[2], err;

	*ends = (struct ends){-1, -1, -1, -1, -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	p->socket = pair[0];
	ends->socket = out_of_the_way(pair[1]);
	ends->memory = fcntl(e->memory.fd, F_DUPFD_CLOEXEC, GIVEN);
	ends->code = fcntl(e->code, F_DUPFD_CLOEXEC, GIVEN);
	if (ends->socket < 0 || ends->memory < 0 || ends->code < 0)
		return -errno;
	err = open_pipe(&p->out, &ends->out);
	return err ? err : open_pipe(&p->err, &ends->err);
}

static void close_ends(const struct ends *ends)
{
	const int fd[] = {ends->socket, ends->memory, ends->code, ends->out, ends->err};

	for (size_t i = 0; i < sizeof(fd) / sizeof(*fd); i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

static int add_actions(posix_spawn_file_actions_t *actions, const struct ends *ends)
{
	const struct {
		int from, to;
	} moves[] = {{ends->socket, SOCKET},
		     {ends->memory, MEMORY},
		     {ends->code, CODE},
		     {ends->out, STDOUT_FILENO},
		     {ends->err, STDERR_FILENO}};
	int err = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

	for (size_t i = 0; i < sizeof(moves) / sizeof(*moves) && !err; i++)
		err = posix_spawn_file_actions_adddup2(actions, moves[i].from, moves[i].to);
	return err ? err : posix_spawn_file_actions_addclosefrom_np(actions, GIVEN);
}

static int start(const struct sl_python_engine *e, unsigned index, const struct ends *ends,
		 pid_t *pid)
{
	const struct sl_python *o = e->options;
	char parent[24], number[24];
	char *const argv[] = {(char *)o->python, "/dev/fd/5",	      parent, number,
			      (char *)o->script, (char *)o->function, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int err;

	snprintf(parent, sizeof(parent), "%ld", (long)getpid());
	snprintf(number, sizeof(number), "%u", index);
	posix_spawn_file_actions_init(&actions);
	err = add_actions(&actions, ends);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(&attributes, 0);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attributes, &none);
	if (!err)
		err = posix_spawnp(pid, o->python, &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

int sl_python_spawn(struct sl_python_engine *e, unsigned index)
{
	struct sl_python_process *p = &e->process[index];
	struct ends ends;
	int err = open_ends(e, p, &ends);

	if (err) {
		sl_error("%s: no descriptors for a process of the script: %s", e->options->name,
			 strerror(-err));
	} else {
		err = start(e, index, &ends, &p->pid);
		if (err)
			sl_error("%s: cannot start '%s': %s (option python: the interpreter)",
				 e->options->name, e->options->python, strerror(-err));
	}
	close_ends(&ends);
	if (err) {
		p->pid = 0;
		sl_python_bury(e, index, NULL, 0);
		return err;
	}
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	atomic_store_explicit(&p->ended, false, memory_order_relaxed);
	return 0;
}

/* ---- its end ---- */

bool sl_python_has_ended(const struct sl_python_process *p)
{
	siginfo_t info = {.si_pid = 0};

	if (!p->pid)
		return true;
	/* An error: the program that uses the library has taken its status. */
	return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid;
}

/* Its socket closes a little before it ends. */
static bool wait_for_end(const struct sl_python_process *p)
{
	uint64_t until = sl_clock_ns() + END_MS * UINT64_C(1000000);

	while (!sl_python_has_ended(p)) {
		if (sl_clock_ns() >= until)
			return false;
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	}
	return true;
}

static void describe_end(int status, bool killed, char *how, size_t bytes)
{
	if (killed)
		snprintf(how, bytes, "closed its socket and went on");
	else if (WIFEXITED(status))
		snprintf(how, bytes, "ended with exit status %d", WEXITSTATUS(status));
	else
		snprintf(how, bytes, "was killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
}

void sl_python_bury(struct sl_python_engine *e, unsigned index, char *how, size_t bytes)
{
	struct sl_python_process *p = &e->process[index];
	bool killed = how ? !wait_for_end(p) : true;
	int status = 0;

	if (p->pid) { /* it is in the table still: the group is its own */
		kill(-p->pid, SIGKILL);
		kill(p->pid, SIGKILL);
		while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	if (how)
		describe_end(status, killed, how, bytes);
	sl_python_read_output(e, index);
	close_output(e, index, false, &p->out);
	close_output(e, index, true, &p->err);
	if (p->socket >= 0)
		close(p->socket);
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->socket = p->pidfd = -1;
	p->pid = 0;
}
