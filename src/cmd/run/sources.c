/* sources.c - the sources of a run: the server hands what front ends say to the receiver; a child
 * process emulates them where that is asked for; the run waits until all are ready. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "receiver/private.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmd/run/child.h"
#include "cmd/run/state.h"
#include "cmd/signals.h"

static int accept_offer(void *arg, const struct sl_wire_hello *hello, const struct sl_offer *offer,
			struct sl_plan *plan, char *why, size_t why_bytes)
{
	struct sl_run_state *run = arg;

	return sl_receiver_accept(run->receiver, offer, hello->host == sl_clock_host(), plan, why,
				  why_bytes);
}

static int take_count(void *arg, uint32_t module, const struct sl_wire_count *count, bool final,
		      char *why, size_t why_bytes)
{
	struct sl_run_state *run = arg;
	uint64_t offered = run->receiver->source[module].offered;
	int err = sl_receiver_count(run->receiver, module, count->next, count->sent,
				    count->position, final, why, why_bytes);

	if (!err && final && offered && count->next < offered && !run->stopping)
		sl_warn("module %u ends after %llu of the %llu frames that it offered", module,
			(unsigned long long)count->next, (unsigned long long)offered);
	return err;
}

static void cancel_plan(void *arg, uint16_t transfer)
{
	struct sl_run_state *run = arg;

	sl_receiver_cancel_plan(run->receiver, transfer);
}

static void source_lost(void *arg, uint32_t module)
{
	struct sl_run_state *run = arg;

	sl_warn("the front end of module %u vanished", module);
	sl_receiver_source_lost(run->receiver, module);
}

static void cancel_offer(void *arg, uint32_t module)
{
	struct sl_run_state *run = arg;

	sl_receiver_cancel_offer(run->receiver, module);
}

static const struct sl_server_ops server_ops = {
	.accept = accept_offer,
	.count = take_count,
	.cancel_plan = cancel_plan,
	.source_lost = source_lost,
	.cancel_offer = cancel_offer,
};

int sl_run_open_server(struct sl_run_state *run)
{
	const struct sl_experiment *e = run->experiment;
	struct sl_server_options o = {
		.address = e->control.address,
		/* With a child of our own any port will do, and two runs do not get in each
		 * other's way. */
		.port = (uint16_t)(e->emulate_local ? 0 : e->control.port),
		.token = e->control.token,
		.modules = e->feroce.enable || run->handover.taken_over ? 0 : e->run.modules,
		.experiment = sl_experiment_digest(e),
		.link = e->link->wire,
		.detector = e->detector->name,
		.silence_ms = (uint32_t)(e->control.silence_s * 1000),
		/* Where frames are put together by sequence, one that comes back has no place. */
		.rejoin = e->ring.align != SL_ALIGN_SEQUENCE,
	};
	int err = 0;

	if (e->link->oneway)
		return sl_one_way_open(&run->oneway, run->receiver);
	if (e->feroce.enable && !run->handover.taken_over)
		err = sl_front_ends_open(e, run->receiver, &run->feroce);
	return err ? err : sl_server_open(&o, &server_ops, run, &run->server);
}

void sl_run_poll_front_ends(struct sl_run_state *run)
{
	if (run->feroce)
		sl_feroce_server_poll(run->feroce);
	if (run->server) {
		sl_server_poll(run->server, SL_RUN_POLL_MS);
	} else {
		sl_clock_sleep_until(sl_clock_ns() + SL_RUN_POLL_MS * UINT64_C(1000000));
		sl_one_way_poll(&run->oneway, sl_clock_ns());
	}
	sl_run_handover_poll(&run->handover);
	sl_receiver_serve(run->receiver);
}

static uint32_t planned(const struct sl_run_state *run)
{
	if (run->handover.taken_over)
		return run->experiment->run.modules;
	return run->feroce ? sl_feroce_server_planned(run->feroce) : sl_server_planned(run->server);
}

static unsigned port_of(const struct sl_run_state *run)
{
	return run->server ? sl_server_port(run->server) : run->receiver->source[0].plan.dest.port;
}

int sl_run_write_port_file(const struct sl_run_state *run)
{
	FILE *file;

	if (!run->options.port_file[0])
		return 0;
	file = fopen(run->options.port_file, "w");
	if (!file || fprintf(file, "%u\n", port_of(run)) < 0 || fclose(file) != 0) {
		sl_error("cannot write '%s': %s", run->options.port_file, strerror(errno));
		return -errno;
	}
	return 0;
}

/* The detector side as a process of its own. */
int sl_run_spawn_child(struct sl_run_state *run)
{
	char port[SL_TRANSFER_NAME + 40];
	char *argv[2 * SL_ARGS_SETS + 11];
	int n = 0;

	snprintf(port, sizeof(port), "%s%s=%u", run->transfer_path,
		 run->server ? "control.port" : "link.port", port_of(run));
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

/* Until every module has a plan and every front end is ready. */
int sl_run_wait_for_front_ends(struct sl_run_state *run)
{
	const struct sl_experiment *e = run->experiment;
	uint64_t start = sl_clock_ns();

	if (!run->server)
		return 0; /* nobody will say that he is ready */
	if (run->feroce)
		sl_info("waiting for %u FEROCE front ends", e->run.modules);
	else if (!e->emulate_local && !run->options.still)
		sl_info("waiting for front ends at %s:%u (sluice emulate %s)", e->control.address,
			sl_server_port(run->server), run->args.plain[0]);
	while (!sl_server_ready(run->server) || planned(run) < e->run.modules) {
		sl_run_poll_front_ends(run);
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
				 planned(run), e->run.modules, e->control.wait_s);
			return -ETIMEDOUT;
		}
	}
	return 0;
}
