/* child.c - between fork() and exec(): system calls only, no memory, no locks. */
#include "service/process/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* Sanitizers reserve terabytes of address space. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static void limit(int what, uint64_t most)
{
	const struct rlimit both = {most, most};

	if (most)
		setrlimit(what, &both);
}

void sl_child_limits(unsigned cpu_s, uint64_t memory_bytes, int nicer)
{
	limit(RLIMIT_CPU, cpu_s);
	limit(RLIMIT_AS, SANITIZED ? 0 : memory_bytes);
	if (nicer)
		setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + nicer);
}

_Noreturn void sl_child_fail(int error_fd)
{
	int err = errno;
	ssize_t n = write(error_fd, &err, sizeof(err));

	_exit(n > 0 ? 127 : 126);
}

_Noreturn void sl_child_execute(const char *const *argv, int error_fd, int keep_fd)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	if (keep_fd >= 0)
		fcntl(keep_fd, F_SETFD, 0);
	execvp(argv[0], (char *const *)argv);
	sl_child_fail(error_fd);
}

int sl_child_started(int error_fd)
{
	int err = 0;
	ssize_t n;

	do {
		n = read(error_fd, &err, sizeof(err));
	} while (n < 0 && errno == EINTR);
	return n == sizeof(err) ? -err : 0;
}
