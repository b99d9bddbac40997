/* doctor.c - sluice doctor: what stands between this host and line rate, each with the command
 * that mends it. Changes nothing; everything also works without, only slower. With --live it also
 * sends frames (live.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/doctor/doctor.h"
#include "cmd/doctor/live.h"
#include "net/interface.h"

struct doctor_options {
	char root[512], transfer[SL_TRANSFER_NAME];
	bool live;
	char address[64], junit[1024];
	uint32_t frames;
};

static const struct sl_option options[] = {
	SL_STRING(struct doctor_options, root, "",
		  "look at the /proc and /sys in this folder, copied from another host"),
	SL_STRING(struct doctor_options, transfer, "", "only this one of the file's transfers"),
	SL_BOOL(struct doctor_options, live, false,
		"send frames from this host to itself, and measure what becomes of them"),
	SL_STRING(
		struct doctor_options, address, "",
		"of live: address of this host, or interface, where frames come in; empty: that of "
		"the experiment, or loopback"),
	SL_U32(struct doctor_options, frames, 500, 1, 10000000, "frames", "of live: how many"),
	SL_STRING(struct doctor_options, junit, "",
		  "of live: write the results to this file as JUnit has them"),
	SL_OPTION_END,
};

/* Several, where the link takes several; none: the link finds them itself. */
static void check_addresses(struct sl_doctor *d, char *addresses, const char *option)
{
	for (char *save, *one = strtok_r(addresses, ", ", &save); one;
	     one = strtok_r(NULL, ", ", &save)) {
		sl_doctor_interface(d, one, option);
		if (sl_doctor_has_link(d, "verbs"))
			sl_doctor_rdma_address(d, one);
	}
}

static void check_network(struct sl_doctor *d)
{
	struct sl_link_facts facts;
	char addresses[256];

	if (!d->experiment) {
		sl_doctor_interface(d, "127.0.0.1", "loopback");
		return;
	}
	sl_link_facts(d->experiment->link, d->experiment->link_state, &facts);
	snprintf(addresses, sizeof(addresses), "%s", d->front_end ? facts.source : facts.listen);
	check_addresses(d, addresses, d->front_end ? "link.source" : "link.listen");
}

/* Another host has link.listen: then it receives, and this one sends. */
static bool is_front_end(const struct sl_experiment *e)
{
	char listen[256], source[256], name[IF_NAMESIZE];
	struct sl_link_facts facts;

	sl_link_facts(e->link, e->link_state, &facts);
	snprintf(listen, sizeof(listen), "%.*s", (int)strcspn(facts.listen, ", "), facts.listen);
	snprintf(source, sizeof(source), "%.*s", (int)strcspn(facts.source, ", "), facts.source);
	return listen[0] && !sl_net_interface(listen, name) && source[0] &&
	       sl_net_interface(source, name) && strcmp(name, "lo") != 0;
}

static int consider(struct sl_doctor *d)
{
	struct sl_experiment *e = d->experiment;
	struct sl_geometry geometry;

	d->front_end = is_front_end(e);
	if (sl_experiment_open_detector(e, &geometry) == 0) {
		struct sl_lines lines;

		if (!sl_ring_options_lines(&e->ring, &geometry, &lines))
			d->ring_bytes =
				sl_ring_lines_bytes(e->ring.slots, geometry.modules, &lines);
	}
	e->detector->close(e->detector_state);
	if (d->front_end)
		return sl_placement_source(e, d->root, 0, e->run.modules, &d->placement);
	return sl_placement_receiver(e, d->root, &d->placement);
}

static void examine(struct sl_doctor *d)
{
	if (d->front_end)
		sl_doctor_say(d, true, "this host has link.source: it is seen as the front end");
	sl_doctor_cpu(d);
	sl_doctor_buffers(d);
	sl_doctor_memory(d);
	sl_doctor_privileges(d);
	sl_doctor_rdma(d);
	check_network(d);
	if (d->sysctl)
		fprintf(d->out, "\nWhat sysctl -w sets is gone after a restart; as a line in "
				"/etc/sysctl.d/90-sluice.conf it stays.\n");
	fprintf(d->out, "\n%s\n",
		d->wants ? "What is marked 'mend' costs speed, not correctness."
			 : "This host lacks nothing we know of.");
}

/* For one transfer, or without a file. */
static int doctor(const struct doctor_options *o, const struct sl_args *args, const char *transfer)
{
	static struct sl_doctor d; /* too large for a stack */
	int err;

	d = (struct sl_doctor){.out = stdout,
			       .root = o->root,
			       .file = args->plains ? args->plain[0] : "EXPERIMENT.yaml"};
	if (args->plains &&
	    sl_experiment_open(args->plain[0], transfer, args->set, args->sets, &d.experiment))
		return -EINVAL;
	sl_cpus_read(d.root, &d.cpus);
	err = d.experiment ? consider(&d) : 0;
	if (!err)
		examine(&d);
	if (d.experiment)
		sl_experiment_close(d.experiment);
	return err;
}

/* 0, or 1: not everything arrived whole. */
static int try_live(const struct doctor_options *o, const struct sl_args *args,
		    const char *transfer)
{
	const struct sl_live_options options = {.address = o->address, .frames = o->frames};
	static struct sl_live live; /* too large for a stack */
	struct sl_experiment *e = NULL;
	int err = 0;

	if (args->plains && sl_experiment_open(args->plain[0], transfer, args->set, args->sets, &e))
		return 1;
	sl_live_run(&options, e, &live);
	sl_live_print(&live);
	if (o->junit[0])
		err = sl_live_write_junit(&live, o->junit);
	if (e)
		sl_experiment_close(e);
	return err || !sl_live_is_good(&live);
}

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

int sl_cmd_doctor(const struct sl_command *command, int argc, char **argv)
{
	struct sl_transfer_names names = {.n = 0};
	struct doctor_options o;
	struct sl_args args;
	bool live;
	int err = sl_args_read(command, options, &o, argc, argv, &args);

	if (err)
		return err > 0 ? 0 : 1;
	if (o.root[0] && !is_folder(o.root)) {
		sl_error("--root: '%s' is no folder", o.root);
		return 1;
	}
	if (args.plains && sl_experiment_transfers(args.plain[0], args.set, args.sets, &names))
		return 1;
	live = o.live || o.junit[0];
	if (names.n < 2 || o.transfer[0])
		return doctor(&o, &args, o.transfer) || (live && try_live(&o, &args, o.transfer));
	if (live) {
		sl_error("--live: each transfer has its own receiver; name one with --transfer");
		return 1;
	}
	for (unsigned i = 0; i < names.n && !err; i++) {
		printf("%s== transfer %s ==\n", i ? "\n" : "", names.name[i]);
		err = doctor(&o, &args, names.name[i]);
	}
	return err ? 1 : 0;
}
