/* convert.c - sluice convert: a raw file becomes the NeXus file that the run would have written. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "convert/convert.h"

enum { SHOW_NS = 500 * 1000 * 1000 };

struct convert_options {
	bool overwrite, quiet;
};

static const struct sl_option options[] = {
	SL_BOOL(struct convert_options, overwrite, false,
		"replace a file that is there already, and its data files"),
	SL_BOOL(struct convert_options, quiet, false, "say nothing but warnings and errors"),
	SL_OPTION_END,
};

struct shown {
	uint64_t at_ns;
	bool any;
};

static void show(void *arg, uint64_t done, uint64_t of)
{
	struct shown *shown = arg;
	uint64_t now_ns = sl_clock_coarse_ns();

	if (now_ns - shown->at_ns < SHOW_NS && done < of)
		return;
	shown->at_ns = now_ns;
	shown->any = true;
	fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " frames%s", done, of, done < of ? "" : "\n");
}

static void say(const char *path, const struct sl_converted *made)
{
	if (made->done) {
		printf("%s: was converted before; nothing to do\n", path);
		return;
	}
	printf("%s: %" PRIu64 " images, rows about %" PRIu64 " frames%s", path, made->images,
	       made->rows,
	       made->whole ? ""
			   : "; the run was killed: this is what there is, and its ledger does not "
			     "close");
	if (made->kept_files)
		printf("; %u data file%s of an earlier try %s kept", made->kept_files,
		       made->kept_files == 1 ? "" : "s", made->kept_files == 1 ? "was" : "were");
	putchar('\n');
}

int sl_cmd_convert(const struct sl_command *command, int argc, char **argv)
{
	struct sl_convert_options o = {.raw = NULL};
	struct shown shown = {.at_ns = sl_clock_coarse_ns()};
	struct sl_converted made;
	struct convert_options own;
	struct sl_args args;
	int r = sl_args_read(command, options, &own, argc, argv, &args);

	if (r)
		return r == 1 ? 0 : 1;
	if (args.plains != 2) {
		sl_error("convert takes a raw file and the file to be made: sluice %s",
			 command->usage);
		return 1;
	}
	o.raw = args.plain[0];
	o.out = args.plain[1];
	o.set = args.set;
	o.sets = args.sets;
	o.overwrite = own.overwrite;
	if (!own.quiet && isatty(STDERR_FILENO)) {
		o.progress = show;
		o.arg = &shown;
	}
	r = sl_convert(&o, &made);
	if (r)
		return 1;
	if (!own.quiet)
		say(o.out, &made);
	return 0;
}
