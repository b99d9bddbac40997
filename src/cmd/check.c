/* check.c - sluice check: every mistake of an experiment, and where each value comes from. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "experiment/experiment.h"
#include "experiment/placement.h"
#include "monitor/check_json.h"
#include "receiver/receiver.h"
#include "session/errors.h"
#include "session/outputs.h"

enum { NOTHING, SET, FILE_AND_SET }; /* the choices of `distrust` */
enum { LINES = 200, ROOTS = 32 };

struct check_options {
	char transfer[SL_TRANSFER_NAME], data_roots[4096];
	uint32_t distrust;
	bool quiet, json;
};

static const struct sl_option options[] = {
	SL_STRING(struct check_options, transfer, "", "only this one of the file's transfers"),
	SL_BOOL(struct check_options, quiet, false, "only mistakes"),
	SL_BOOL(struct check_options, json, false,
		"print mistakes, parameters and what the experiment is made of, as JSON"),
	SL_CHOICE(struct check_options, distrust, nothing, "nothing|set|file",
		  "what comes from another host, --set or the file, too: its paths must lie under "
		  "data_roots, its plug-ins and scripts where this user cannot write"),
	SL_STRING(struct check_options, data_roots, "",
		  "folders for that, with commas between them"),
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

/* ---- as JSON ---- */

struct report {
	struct sl_check_line *line;
	size_t lines;
};

static bool is_same(const struct sl_error *a, const struct sl_error *b)
{
	return !strcmp(a->message, b->message) && !strcmp(a->where, b->where) &&
	       !strcmp(a->hint, b->hint);
}

/* The file is read more than once: for its transfers, for each of them, and as it would run. */
static void take_line(void *arg, enum sl_log_level level, const char *text)
{
	struct report *r = arg;
	struct sl_check_line *line = &r->line[r->lines];

	if (level > SL_LOG_WARN || r->lines == LINES)
		return;
	line->level = level;
	sl_error_from_line(text, &line->error);
	for (size_t i = 0; i < r->lines; i++)
		if (r->line[i].level == level && is_same(&r->line[i].error, &line->error))
			return;
	r->lines++;
}

static int print_json(const struct sl_check *check)
{
	char *text = sl_check_json(check);

	if (!text)
		return -ENOMEM;
	puts(text);
	free(text);
	return 0;
}

/* All transfers are checked; what the first one is made of is printed. */
static int check_json(const struct sl_args *args, const struct check_options *o)
{
	struct report report = {calloc(LINES, sizeof(*report.line)), 0};
	const struct sl_log_target target = {take_line, &report};
	struct sl_experiment *e = NULL;
	struct sl_transfer_names names;
	int err, printed;

	if (!report.line)
		return 1;
	sl_log_set_target(&target);
	err = sl_experiment_transfers(args->plain[0], args->set, args->sets, &names);
	for (unsigned i = 0; i < (names.n < 2 || o->transfer[0] ? 1 : names.n); i++)
		err |= check(args, names.n < 2 || o->transfer[0] ? o->transfer : names.name[i],
			     false, true);
	if (!err)
		err = sl_experiment_open(
			args->plain[0], o->transfer[0] || names.n < 2 ? o->transfer : names.name[0],
			args->set, args->sets, &e);
	sl_log_set_target(NULL);
	printed = print_json(&(struct sl_check){.valid = !err,
						.line = report.line,
						.lines = report.lines,
						.experiment = e,
						.transfers = &names});
	if (e)
		sl_experiment_close(e);
	free(report.line);
	if (printed || fflush(stdout) || ferror(stdout)) {
		sl_error("the result could not be written");
		return 1;
	}
	return err ? 1 : 0;
}

static int distrust(struct check_options *o)
{
	static const char *roots[ROOTS];
	char *rest = o->data_roots;
	size_t n = 0;

	for (char *root; (root = strsep(&rest, ","));) {
		if (n == ROOTS) {
			sl_error("--data_roots: more than %d folders", ROOTS);
			return -E2BIG;
		}
		if (*root)
			roots[n++] = root;
	}
	if (o->distrust != NOTHING)
		sl_experiment_distrust(roots, n, o->distrust == FILE_AND_SET);
	return 0;
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
	if (distrust(&o))
		return 1;
	sl_log_once(); /* transfers of one file have mistakes in common */
	if (o.json)
		return check_json(&args, &o);
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
