/* sources.c - the sources of a run: the drivers that plan them; a child process that emulates them
 * where that is asked for; the run waits until all are ready. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/run/child.h"
#include "cmd/run/state.h"
#include "cmd/signals.h"

int sl_run_open_controls(struct sl_run_state *run)
{
	struct sl_control_env env = {.file = run->args.plain[0]};

	sl_receiver_control_env(run->receiver, &env);
	return sl_controls_open(&run->controls, &env, run->handover.taken_over);
}

void sl_run_poll_sources(struct sl_run_state *run)
{
	sl_controls_poll(&run->controls, SL_RUN_POLL_MS);
	sl_run_handover_poll(&run->handover);
	sl_receiver_serve(run->receiver);
}

int sl_run_write_port_file(const struct sl_run_state *run)
{
	const char *option;
	FILE *file;

	if (!run->options.port_file[0])
		return 0;
	file = fopen(run->options.port_file, "w");
	if (!file || fprintf(file, "%u\n", sl_controls_port(&run->controls, &option)) < 0 ||
	    fclose(file) != 0) {
		sl_error("cannot write '%s': %s", run->options.port_file, strerror(errno));
		return -errno;
	}
	return 0;
}

/* The detector side as a process of its own. */
int sl_run_spawn_child(struct sl_run_state *run)
{
	const char *option;
	unsigned at = sl_controls_port(&run->controls, &option);
	char port[SL_TRANSFER_NAME + 40];
	char *argv[2 * SL_ARGS_SETS + 11];
	int n = 0;

	snprintf(port, sizeof(port), "%s%s=%u", run->transfer_path, option, at);
	argv[n++] = (char *)"sluice";
	argv[n++] = (char *)"emulate";
	argv[n++] = (char *)run->args.plain[0];
	for (unsigned i = 0; i < run->args.sets; i++) {
		argv[n++] = (char *)"--set";
		argv[n++] = (char *)run->args.set[i];
	}
	argv[n++] = (char *)"--set";
	argv[n++] = port;
	if (run->experiment->transfer[0]) {
		argv[n++] = (char *)"--transfer";
		argv[n++] = run->experiment->transfer;
	}
	argv[n++] = (char *)"--once";
	argv[n++] = (char *)"--quiet";
	if (!run->options.quiet)
		argv[n++] = (char *)"--report";
	argv[n] = NULL;
	return sl_child_start(argv, NULL, &run->child);
}

/* Until every module has a plan and every source is ready. */
int sl_run_wait_for_sources(struct sl_run_state *run)
{
	const struct sl_experiment *e = run->experiment;
	uint64_t start = sl_clock_ns();
	char what[1200];

	if (!e->emulate_local && !run->options.still &&
	    sl_controls_wait_for(&run->controls, what, sizeof(what)))
		sl_info("waiting for %s", what);
	while (!sl_controls_ready(&run->controls) ||
	       sl_controls_planned(&run->controls) < e->run.modules) {
		sl_run_poll_sources(run);
		if (sl_signal) {
			sl_info("stopped before it began");
			return -EINTR;
		}
		if (!sl_child_alive(&run->child, NULL) || sl_front_end_ended) {
			sl_error("the front end ended before the run began");
			return -ECHILD;
		}
		if ((double)(sl_clock_ns() - start) * 1e-9 > e->control.wait_s) {
			sl_error("%u of %u modules were offered within %g s (control.wait_s)",
				 sl_controls_planned(&run->controls), e->run.modules,
				 e->control.wait_s);
			return -ETIMEDOUT;
		}
	}
	return 0;
}
