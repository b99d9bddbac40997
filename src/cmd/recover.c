/* recover.c - sluice recover: files of runs that were killed, made whole. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "sink/nexus/recover.h"

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

		if (sl_nexus_recover(args.plain[i], &recovered))
			failed = 1;
		else if (!o.quiet)
			say(args.plain[i], &recovered);
	}
	return failed;
}
