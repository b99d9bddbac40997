/* child.c - start, watch and end a child. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/run/child.h"

enum { GRACE_S = 5 };

extern char **environ;

/* By its own name, so that it has one in ps and top. */
static void find_program(char program[PATH_MAX])
{
	char link[PATH_MAX];
	ssize_t length;

	strcpy(program, "/proc/self/exe");
	length = readlink(program, link, sizeof(link) - 1);
	if (length <= 0)
		return;
	link[length] = 0;
	if (access(link, X_OK) == 0)
		memcpy(program, link, (size_t)length + 1);
}

int sl_child_start(char *const *argv, const char *output, pid_t *child)
{
	char program[PATH_MAX];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int err;

	find_program(program);
	posix_spawn_file_actions_init(&actions);
	if (output)
		posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output,
						 O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setpgroup(&attributes, 0);
	err = posix_spawn(child, program, &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (err) {
		sl_error("cannot start '%s %s': %s", argv[0], argv[1], strerror(err));
		*child = 0;
	}
	return -err;
}

bool sl_child_alive(pid_t *child, int *status)
{
	int word;

	if (!*child || waitpid(*child, &word, WNOHANG) != *child)
		return true;
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
