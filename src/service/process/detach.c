/* detach.c - a program that goes on without us: a child of a child, in a session of its own. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/process/child.h"
#include "service/process/process.h"

static _Noreturn void become(const struct sl_detached *d, int log, int error_fd, int alive)
{
	int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pid_t child;

	if (setsid() < 0)
		sl_child_fail(error_fd);
	child = fork();
	if (child < 0)
		sl_child_fail(error_fd);
	if (child)
		_exit(0);
	if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 ||
	    (d->folder && chdir(d->folder)))
		sl_child_fail(error_fd);
	sl_child_execute(d->argv, error_fd, alive);
}

static int start(const struct sl_detached *d, int log, int *alive)
{
	int lives[2], errors[2], err;
	pid_t child;

	if (pipe2(lives, O_CLOEXEC))
		return -errno;
	if (pipe2(errors, O_CLOEXEC)) {
		err = -errno;
		close(lives[0]);
		close(lives[1]);
		return err;
	}
	child = fork();
	if (!child)
		become(d, log, errors[1], lives[1]);
	err = child < 0 ? -errno : 0;
	close(lives[1]);
	close(errors[1]);
	if (!err) {
		waitpid(child, NULL, 0);
		err = sl_child_started(errors[0]);
	}
	close(errors[0]);
	if (err)
		close(lives[0]);
	else
		*alive = lives[0];
	return err;
}

int sl_process_detach(const struct sl_detached *d, int *alive)
{
	int log, err;

	unlink(d->log); /* a program that runs already keeps its own */
	log = open(d->log, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (log < 0)
		return -errno;
	err = start(d, log, alive);
	close(log);
	return err;
}

bool sl_process_lives(int alive, int timeout_ms)
{
	struct pollfd fd = {.fd = alive};

	return poll(&fd, 1, timeout_ms) == 0 || !(fd.revents & (POLLHUP | POLLERR));
}
