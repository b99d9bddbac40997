/* check.c - sluice check: every mistake of an experiment, and where each value comes from. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "experiment/experiment.h"
#include "experiment/placement.h"
#include "receiver/receiver.h"
#include "session/outputs.h"

struct check_options {
	char transfer[SL_TRANSFER_NAME];
	bool quiet;
};

static const struct sl_option options[] = {
	SL_STRING(struct check_options, transfer, "", "only this one of the file's transfers"),
	SL_BOOL(struct check_options, quiet, false, "only mistakes"),
	SL_OPTION_END,
};

static int print(const struct sl_experiment *e, bool several)
{
	char *text = sl_experiment_resolved(e, true);
	struct sl_placement placement;

	if (!text)
		return -ENOMEM;
	if (several)
		printf("--- # transfer %s\n", e->transfer);
	/* Lists of cpus that this process may not use are for the host that runs it. */
	if (!sl_placement_receiver(e, "", &placement))
		printf("# threads, were it run here: %s\n", placement.counts);
	fputs(text, stdout);
	free(text);
	return 0;
}

static int check(const struct sl_args *args, const char *transfer, bool several, bool quiet)
{
	struct sl_experiment *e;
	int err = sl_experiment_open(args->plain[0], transfer, args->set, args->sets, &e);

	if (err)
		return err;
	err = sl_receiver_check(e);
	if (sl_outputs_check_run(e, args->plain[0], NULL, 0))
		err = -EINVAL;
	if (!quiet && print(e, several))
		err = -ENOMEM;
	sl_experiment_close(e);
	return err;
}

int sl_cmd_check(const struct sl_command *command, int argc, char **argv)
{
	struct sl_transfer_names names;
	struct check_options o;
	struct sl_args args;
	int err = sl_args_read(command, options, &o, argc, argv, &args);

	if (err)
		return err > 0 ? 0 : 1;
	if (args.plains != 1) {
		sl_error("which experiment? usage: sluice %s", command->usage);
		return 1;
	}
	sl_log_once(); /* transfers of one file have mistakes in common */
	err = sl_experiment_transfers(args.plain[0], args.set, args.sets, &names);
	if (names.n < 2 || o.transfer[0])
		err |= check(&args, o.transfer, false, o.quiet);
	else
		for (unsigned i = 0; i < names.n; i++)
			err |= check(&args, names.name[i], true, o.quiet);
	if (fflush(stdout) || ferror(stdout)) {
		sl_error("the experiment could not be written: %s", strerror(errno));
		err = -EIO;
	}
	return err ? 1 : 0;
}
