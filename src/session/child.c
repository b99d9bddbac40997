/* child.c - start, watch and end a child. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "experiment/experiment.h"
#include "session/child.h"

enum { GRACE_S = 5 };

extern char **environ;

/* By its own name, so that it has one in ps and top. */
const char *sl_child_self(void)
{
	static char program[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	program[length > 0 ? length : 0] = 0;
	return length > 0 && access(program, X_OK) == 0 ? program : "/proc/self/exe";
}

/* Two variables that only a child of this program gets: the number of its parent, and what the
 * parent sets (sl_experiment_set_own), which a command line would show to every user. */
#define PARENT "SLUICE_PARENT"
#define OWN    "SLUICE_OWN"

void sl_child_bind(void)
{
	const char *parent = getenv(PARENT), *own = getenv(OWN);

	if (parent) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		/* It died before we could ask to be told. */
		if (getppid() != (pid_t)atol(parent))
			_exit(1);
		if (own && sl_experiment_set_own(own)) {
			sl_error(OWN ": is set by another program than sluice; unset it");
			_exit(1);
		}
	}
	unsetenv(PARENT);
	unsetenv(OWN);
}

struct environment {
	char **list;
	char parent[32];
	char own[sizeof(OWN) + SL_EXPERIMENT_OWN];
};

/* Ours, and what is for the child alone. The list is the caller's to free. */
static int make_environment(struct environment *e, const char *own)
{
	size_t n = 0;

	if (own && strlen(own) >= sizeof(e->own) - sizeof(OWN))
		return -E2BIG;
	snprintf(e->parent, sizeof(e->parent), PARENT "=%ld", (long)getpid());
	snprintf(e->own, sizeof(e->own), OWN "=%s", own ? own : "");
	while (environ[n])
		n++;
	e->list = calloc(n + 3, sizeof(*e->list));
	if (!e->list)
		return -ENOMEM;
	memcpy(e->list, environ, n * sizeof(*e->list));
	e->list[n] = e->parent;
	if (own)
		e->list[n + 1] = e->own;
	return 0;
}

/* ---- what it inherits ---- */

enum { KEPT = 16 };

struct kept {
	int fd[KEPT], highest;
	unsigned n;
};

static bool is_kept(const struct kept *kept, int fd)
{
	for (unsigned i = 0; i < kept->n; i++)
		if (kept->fd[i] == fd)
			return true;
	return false;
}

static void keep(struct kept *kept, int fd)
{
	if (fd <= STDERR_FILENO || is_kept(kept, fd) || kept->n == KEPT || fcntl(fd, F_GETFD) < 0)
		return;
	kept->fd[kept->n++] = fd;
	if (fd > kept->highest)
		kept->highest = fd;
}

/* Those that a text names, as "--set control.token_file=/dev/fd/5" does. */
static void keep_named(struct kept *kept, const char *text)
{
	static const char *const folder[] = {"/dev/fd/", "/proc/self/fd/"};

	for (size_t i = 0; text && i < sizeof(folder) / sizeof(*folder); i++)
		for (const char *at = strstr(text, folder[i]); at; at = strstr(at, folder[i])) {
			char *end;
			long fd;

			at += strlen(folder[i]);
			fd = strtol(at, &end, 10);
			if (end > at && fd >= 0 && fd <= INT_MAX)
				keep(kept, (int)fd);
		}
}

/* In the child, in this order. glibc does not mind closing a descriptor that is not open. */
static int add_actions(posix_spawn_file_actions_t *actions, const struct sl_child_options *options,
		       const struct kept *kept)
{
	int err = 0;

	if (options->output)
		err = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, options->output,
						       O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (!err && options->errors_fd >= 0)
		err = posix_spawn_file_actions_adddup2(actions, options->errors_fd, STDERR_FILENO);
	for (int fd = STDERR_FILENO + 1; fd <= kept->highest && !err; fd++)
		err = is_kept(kept, fd) /* onto itself: it is not closed on exec then */
			      ? posix_spawn_file_actions_adddup2(actions, fd, fd)
			      : posix_spawn_file_actions_addclose(actions, fd);
	if (!err)
		err = posix_spawn_file_actions_addclosefrom_np(actions, kept->highest + 1);
	return -err;
}

static void find_kept(struct kept *kept, const struct sl_child_options *options, char *const *argv)
{
	*kept = (struct kept){.highest = STDERR_FILENO};
	keep(kept, options->keep_fd);
	keep_named(kept, options->uses);
	keep_named(kept, getenv("SLUICE_SITE"));
	for (; *argv; argv++)
		keep_named(kept, *argv);
}

int sl_child_start(const struct sl_child_options *options, char *const *argv, pid_t *child)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	struct environment e;
	struct kept kept;
	sigset_t none;
	int err = make_environment(&e, options->own);

	if (err)
		return err;
	find_kept(&kept, options, argv);
	posix_spawn_file_actions_init(&actions);
	err = -add_actions(&actions, options, &kept);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(&attributes, 0);
	/* The control thread takes no signals; its child does. */
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attributes, &none);
	if (!err)
		err = posix_spawnp(child, options->program, &actions, &attributes, argv, e.list);
	free(e.list);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (err) {
		sl_error("cannot start '%s %s': %s", options->program, argv[1], strerror(err));
		*child = 0;
	}
	return -err;
}

bool sl_child_alive(pid_t *child, int *status)
{
	int word;

	pid_t ended;

	if (!*child)
		return true;
	ended = waitpid(*child, &word, WNOHANG);
	/* ECHILD: the program that uses the library has taken the status; it is not known here. */
	if (ended != *child && !(ended < 0 && errno == ECHILD))
		return true;
	if (ended < 0)
		word = 0;
	*child = 0;
	if (status)
		*status = WIFEXITED(word) ? WEXITSTATUS(word) : -WTERMSIG(word);
	return false;
}

void sl_child_end(pid_t *child, int *status)
{
	uint64_t end = sl_clock_ns() + GRACE_S * UINT64_C(1000000000);

	while (*child && sl_child_alive(child, status)) {
		if (sl_clock_ns() > end) {
			kill(*child, SIGKILL);
			waitpid(*child, NULL, 0);
			*child = 0;
			if (status)
				*status = 1;
			return;
		}
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	}
}
