/* recover.c - sluice recover: files of runs that were killed, made whole. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "raw/raw.h"
#include "sink/nexus/recover.h"
#include "sink/raw/raw_sink.h"

struct recover_options {
	bool quiet;
};

static const struct sl_option options[] = {
	SL_BOOL(struct recover_options, quiet, false, "say nothing but errors"),
	SL_OPTION_END,
};

static void say(const char *path, const struct sl_nexus_recovered *r)
{
	if (r->brought_back)
		printf("%s: the run that was to replace it was killed before it had rows: %u files "
		       "of the earlier run have their names again\n",
		       path, r->brought_back);
	if (r->released) {
		printf("%s: the run was killed before it had rows: there is nothing to recover, "
		       "and "
		       "its data file%s no longer in the way\n",
		       path, r->released == 1 ? " is" : "s are");
		return;
	}
	if (r->complete) {
		printf("%s: is whole; nothing to do\n", path);
		return;
	}
	printf("%s: recovered: %" PRIu64 " images, rows about %" PRIu64
	       " frames, %u data file%s%s\n",
	       path, r->images, r->rows, r->files, r->files == 1 ? "" : "s",
	       r->mended ? "; the last one ends with the last flush before the run was killed"
			 : "");
	if (r->root[0])
		printf("%s: the root of its hash tree is %s\n", path, r->root);
}

/* Raw files are read as they are, also those of killed runs; what a run that never began was to
 * replace comes back. */
static int recover_raw(const char *path, bool quiet)
{
	uint32_t files;
	int r = sl_raw_bring_back(path, SL_RAW_REPLACED, &files);

	if (r || quiet)
		return r;
	if (files)
		printf("%s: the run that was to replace it was killed before it had frames: %u "
		       "files "
		       "of the earlier run have their names again\n",
		       path, files);
	else
		printf("%s: is a raw file; nothing to do: sluice convert reads what a killed run "
		       "left\n",
		       path);
	return 0;
}

static bool is_raw(const char *path)
{
	char aside[PATH_MAX];

	snprintf(aside, sizeof(aside), "%s" SL_RAW_REPLACED, path);
	return sl_raw_is_run(path) || sl_raw_is_run(aside);
}

int sl_cmd_recover(const struct sl_command *command, int argc, char **argv)
{
	struct recover_options o;
	struct sl_args args;
	int failed = 0, r = sl_args_read(command, options, &o, argc, argv, &args);

	if (r)
		return r == 1 ? 0 : 1;
	if (!args.plains) {
		sl_error("recover takes files of runs: sluice %s", command->usage);
		return 1;
	}
	for (int i = 0; i < (int)args.plains; i++) {
		struct sl_nexus_recovered recovered;

		if (is_raw(args.plain[i]))
			failed |= recover_raw(args.plain[i], o.quiet) != 0;
		else if (sl_nexus_recover(args.plain[i], &recovered))
			failed = 1;
		else if (!o.quiet)
			say(args.plain[i], &recovered);
	}
	return failed;
}
