/* sources.c - the sources of a run: the drivers that plan them; a child process that emulates them
 * where that is asked for; the session waits until all are ready. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file/part_file.h"
#include "session/child.h"
#include "session/private.h"

#define CHILD_GRACE_NS UINT64_C(5000000000)

int sl_session_open_controls(struct sl_session *s)
{
	struct sl_control_env env[SL_DETECTORS_MOST];
	unsigned detectors = 1 + s->experiment->others;

	for (unsigned d = 0; d < detectors; d++) {
		env[d] = (struct sl_control_env){.file = s->name};
		sl_receiver_control_env(s->receiver, d, &env[d]);
	}
	if (s->controls.drivers) /* of the run before */
		return sl_controls_again(&s->controls, env);
	return sl_controls_open(&s->controls, env, detectors, s->keeper.taken_over);
}

void sl_session_poll_sources(struct sl_session *s)
{
	/* A client waits for the pause behind these frames. */
	bool soon = s->paused && atomic_load(&s->state) == SL_STATE_RUNNING;

	sl_controls_poll(&s->controls, soon ? SL_SESSION_SOON_MS : SL_SESSION_POLL_MS);
	sl_session_keeper_poll(&s->keeper);
	sl_child_log_poll(&s->child_log);
	sl_receiver_serve(s->receiver);
}

/* A line for each detector, in the order of the file. */
static bool print_ports(const struct sl_session *s, int fd)
{
	const char *option;
	bool good = true;

	for (unsigned d = 0; d <= s->experiment->others; d++)
		good &= dprintf(fd, "%u\n", sl_controls_port(&s->controls, d, &option)) > 0;
	return good;
}

int sl_session_write_port_file(struct sl_session *s)
{
	struct sl_part_file file;
	int err;

	if (!s->port_file[0])
		return 0;
	err = sl_part_file_open(s->port_file, &file);
	if (err)
		return err;
	if (print_ports(s, file.fd))
		return sl_part_file_publish(&file);
	err = -errno;
	sl_error("cannot write '%s': %s", s->port_file, strerror(-err));
	sl_part_file_discard(&file);
	return err;
}

/* Where a front end that this session starts finds it: a line for each detector. A site file does
 * not lock the port. */
static void say_ports(const struct sl_session *s, char *text, size_t bytes)
{
	const struct sl_experiment *e = s->experiment;
	size_t used = 0;

	text[0] = '\0';
	for (unsigned d = 0; d <= e->others && used < bytes; d++) {
		const char *option, *name = e->names.n ? e->names.name[d] : "";
		unsigned at = sl_controls_port(&s->controls, d, &option);

		if (option)
			used += (size_t)snprintf(text + used, bytes - used, "%s%s%s%s%s=%u\n",
						 s->transfer_path, name[0] ? "detectors." : "",
						 name, name[0] ? "." : "", option, at);
	}
}

static int spawn(struct sl_session *s)
{
	char ports[SL_DETECTORS_MOST * (SL_TRANSFER_NAME + 48)];
	const struct sl_child_options options = {
		.program = s->program[0] ? s->program : "sluice",
		.output = s->hooks.report ? NULL : "/dev/null",
		.errors_fd = s->child_log.child,
		.keep_fd = s->text_fd,
		.uses = s->experiment->control.token_file,
		.own = ports,
	};
	char *argv[2 * SL_SESSION_SETS + 11];
	int n = 0, err;

	say_ports(s, ports, sizeof(ports));
	argv[n++] = (char *)"sluice";
	argv[n++] = (char *)"emulate";
	argv[n++] = s->path;
	for (unsigned i = 0; i < s->sets; i++) {
		argv[n++] = (char *)"--set";
		argv[n++] = s->set[i];
	}
	if (s->experiment->transfer[0]) {
		argv[n++] = (char *)"--transfer";
		argv[n++] = s->experiment->transfer;
	}
	argv[n++] = (char *)"--once";
	argv[n++] = (char *)"--quiet";
	if (s->hooks.report)
		argv[n++] = (char *)"--report";
	argv[n] = NULL;
	err = sl_child_start(&options, argv, &s->child);
	sl_child_log_started(&s->child_log);
	return err;
}

int sl_session_spawn_child(struct sl_session *s)
{
	/* The lines of a front end belong into the log of the program that uses the library, and
	 * into that of the run. */
	int err = s->log_line || s->run_folder[0] ? sl_child_log_open(&s->child_log) : 0;

	return err ? err : spawn(s);
}

bool sl_session_has_child(struct sl_session *s)
{
	s->child_stayed = s->child && sl_child_alive(&s->child, NULL);
	if (!s->child_stayed)
		sl_child_log_close(&s->child_log);
	return s->child_stayed;
}

/* One that stayed from an earlier run and has died since is replaced; one that was just started
 * would die again. */
static int check_child(struct sl_session *s)
{
	if (sl_child_alive(&s->child, NULL))
		return 0;
	if (s->child_stayed) {
		s->child_stayed = false;
		sl_warn("the front end of the earlier runs has ended; starting another");
		sl_child_log_close(&s->child_log);
		return sl_session_spawn_child(s);
	}
	sl_error("the front end ended before the run began");
	return -ECHILD;
}

static int problem(struct sl_session *s, uint64_t start_ns)
{
	const struct sl_experiment *e = s->experiment;

	if (sl_session_wants(s, SL_WISH_STOP | SL_WISH_ABORT | SL_WISH_CLOSE)) {
		sl_info("stopped before it began");
		return sl_session_fail(s, SL_ERROR_STOPPED, -EINTR, "stopped before it began");
	}
	if (sl_session_wants(s, SL_WISH_NO_FRONT_END)) {
		sl_error("the front end ended before the run began");
		return sl_session_fail(s, SL_ERROR_FRONT_END, -ECHILD, "");
	}
	if (check_child(s))
		return sl_session_fail(s, SL_ERROR_FRONT_END, -ECHILD, "");
	if ((double)(sl_clock_ns() - start_ns) * 1e-9 > e->control.wait_s) {
		sl_error("%u of %u modules were offered within %g s (control.wait_s)",
			 sl_controls_planned(&s->controls), sl_experiment_modules(e),
			 e->control.wait_s);
		return sl_session_fail(s, SL_ERROR_SOURCES, -ETIMEDOUT, "");
	}
	return 0;
}

bool sl_session_sources_are_ready(const struct sl_session *s)
{
	return sl_controls_ready(&s->controls) &&
	       sl_controls_planned(&s->controls) == sl_experiment_modules(s->experiment);
}

int sl_session_wait_for_sources(struct sl_session *s)
{
	const struct sl_experiment *e = s->experiment;
	uint64_t start_ns = sl_clock_ns();
	char what[1200];
	int err = 0;

	if (!e->emulate_local && !s->hooks.still &&
	    sl_controls_wait_for(&s->controls, what, sizeof(what)))
		sl_info("waiting for %s", what);
	while (!err && !sl_session_sources_are_ready(s)) {
		sl_session_poll_sources(s);
		err = problem(s, start_ns);
	}
	return err;
}

/* Until it has ended by itself, for this long at most. */
static void await_child(struct sl_session *s, uint64_t most_ns)
{
	uint64_t end = sl_clock_ns() + most_ns;

	while (s->child && sl_child_alive(&s->child, &s->child_status) && sl_clock_ns() < end) {
		sl_child_log_poll(&s->child_log);
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	}
}

void sl_session_end_child(struct sl_session *s)
{
	const struct sl_feedback_options *feedback = &s->experiment->feedback;
	bool began = s->last.result != SL_RESULT_ERROR;
	bool listens = feedback->address[0] && began;

	if (listens)
		await_child(s, (uint64_t)(feedback->wait_s * 1e9));
	/* A front end that hears nothing does not know that the run was stopped. */
	if (s->child && (!began || (s->experiment->link->oneway && s->stopping_ns)))
		kill(s->child, SIGTERM);
	await_child(s, CHILD_GRACE_NS);
	sl_child_end(&s->child, &s->child_status);
	sl_child_log_close(&s->child_log);
	if (!listens || !s->experiment->emulate_local || !s->child_status)
		return;
	sl_session_forget_line(s);
	sl_error("the front end did not hear exactly one answer to each event, or failed");
	sl_session_fail(s, SL_ERROR_FRONT_END, -ECHILD, "");
}
