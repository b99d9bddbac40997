/* probe.c - start the process that tries the plug-ins, and read what it left. */
#include "session/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "plugin/plugin.h"
#include "session/child.h"
#include "session/private.h"

#define STEP_NS	    UINT64_C(1000000)
#define PATIENCE_NS UINT64_C(60000000000)

static bool is_of_plugin(const void *add_on)
{
	const char *path;

	return sl_plugin_of(add_on, &path);
}

static bool uses_plugins(const struct sl_experiment *e)
{
	bool any = is_of_plugin(e->generator);

	for (unsigned i = 0; i < e->stages; i++)
		any |= is_of_plugin(e->stage[i]);
	for (unsigned i = 0; i < e->sinks; i++)
		any |= is_of_plugin(e->sink[i]);
	return any;
}

static int start(struct sl_session *s, int errors_fd, pid_t *child)
{
	const struct sl_child_options options = {
		.program = s->program[0] ? s->program : "sluice",
		.output = "/dev/null",
		.errors_fd = errors_fd,
		.keep_fd = s->text_fd,
		.uses = s->experiment->control.token_file,
	};
	char *argv[2 * SL_SESSION_SETS + 10];
	int n = 0;

	argv[n++] = (char *)"sluice";
	argv[n++] = (char *)"run";
	argv[n++] = (char *)SL_PROBE_ARGUMENT;
	argv[n++] = s->run_folder[0] ? s->run_folder : (char *)".";
	argv[n++] = s->path;
	for (unsigned i = 0; i < s->sets; i++) {
		argv[n++] = (char *)"--set";
		argv[n++] = s->set[i];
	}
	if (s->experiment->transfer[0]) {
		argv[n++] = (char *)"--transfer";
		argv[n++] = s->experiment->transfer;
	}
	argv[n] = NULL;
	return sl_child_start(&options, argv, child);
}

static void kill_child(pid_t *child)
{
	int status;

	kill(*child, SIGKILL);
	while (sl_child_alive(child, &status))
		sl_clock_sleep_until(sl_clock_ns() + STEP_NS);
}

/* The exit status, or minus the signal; 0 as well when it was given up. */
static int await(struct sl_session *s, pid_t child)
{
	uint64_t end = sl_clock_ns() + PATIENCE_NS;
	int status = 0;

	while (sl_child_alive(&child, &status)) {
		if (sl_session_wants(s, SL_WISH_STOP | SL_WISH_ABORT | SL_WISH_CLOSE)) {
			kill_child(&child);
			return 0;
		}
		if (sl_clock_ns() > end) {
			sl_warn("opening the plug-ins takes longer than %u s; whether one of them "
				"crashes is not known",
				(unsigned)(PATIENCE_NS / 1000000000));
			kill_child(&child);
			return 0;
		}
		sl_clock_sleep_until(sl_clock_ns() + STEP_NS);
	}
	return status;
}

/* The last line of what the process left. */
static void last_line(int fd, char *line, size_t bytes)
{
	off_t length = lseek(fd, 0, SEEK_END),
	      at = length > (off_t)bytes - 1 ? length - (off_t)bytes + 1 : 0;
	ssize_t n = pread(fd, line, bytes - 1, at);
	char *start;

	line[n > 0 ? n : 0] = '\0';
	if (n > 0 && line[n - 1] == '\n')
		line[n - 1] = '\0';
	start = strrchr(line, '\n');
	if (start)
		memmove(line, start + 1, strlen(start + 1) + 1);
}

static int crashed(int fd, int number)
{
	char line[1200], *path;

	last_line(fd, line, sizeof(line));
	path = strchr(line, ' ');
	if (path)
		*path++ = '\0';
	if (path && *path == '/')
		sl_error("plug-in %s (%s) crashes in open: SIG%s", line, path,
			 sigabbrev_np(number) ? sigabbrev_np(number) : "?");
	else
		sl_error("opening the experiment with its plug-ins crashes: SIG%s",
			 sigabbrev_np(number) ? sigabbrev_np(number) : "?");
	return -EFAULT;
}

int sl_session_probe(struct sl_session *s)
{
	int fd, status = 0, err;
	pid_t child;

	if (!s->hooks.probe || s->probed || !uses_plugins(s->experiment))
		return 0;
	fd = memfd_create("probe", MFD_CLOEXEC);
	if (fd < 0)
		return 0;
	err = start(s, fd, &child);
	if (!err)
		status = await(s, child);
	if (!err && status < 0)
		err = crashed(fd, -status);
	close(fd);
	s->probed = !err;
	return err == -EFAULT ? err : 0;
}
