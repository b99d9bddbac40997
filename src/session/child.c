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

#define PARENT "SLUICE_PARENT"

void sl_child_bind(void)
{
	const char *parent = getenv(PARENT);

	if (!parent)
		return;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != (pid_t)atol(parent)) /* it died before we could ask to be told */
		_exit(1);
	unsetenv(PARENT);
}

/* Our environment, and the number of this process. The array is the caller's to free. */
static char **environment(char parent[32])
{
	size_t n = 0;
	char **copy;

	snprintf(parent, 32, PARENT "=%ld", (long)getpid());
	while (environ[n])
		n++;
	copy = calloc(n + 2, sizeof(*copy));
	if (!copy)
		return NULL;
	memcpy(copy, environ, n * sizeof(*copy));
	copy[n] = parent;
	return copy;
}

int sl_child_start(const struct sl_child_options *options, char *const *argv, pid_t *child)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	char parent[32], **environment_of_child = environment(parent);
	sigset_t none;
	int err;

	if (!environment_of_child)
		return -ENOMEM;
	posix_spawn_file_actions_init(&actions);
	if (options->output)
		posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, options->output,
						 O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (options->errors_fd >= 0)
		posix_spawn_file_actions_adddup2(&actions, options->errors_fd, STDERR_FILENO);
	if (options->keep_fd >= 0) /* onto itself: it is not closed on exec then */
		posix_spawn_file_actions_adddup2(&actions, options->keep_fd, options->keep_fd);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(&attributes, 0);
	/* The control thread takes no signals; its child does. */
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attributes, &none);
	err = posix_spawnp(child, options->program, &actions, &attributes, argv,
			   environment_of_child);
	free(environment_of_child);
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
