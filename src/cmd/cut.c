/* cut.c - sluice cut: what just happened, out of a rolling buffer of a run that may go on. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sluice/client.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "convert/cut.h"

enum { CALL_MS = 10000, MISSING = 2 };

struct cut_options {
	char last[32], around[32], sink[PATH_MAX];
	uint64_t before, after;
	double wait_s;
	bool overwrite, quiet;
};

static const struct sl_option options[] = {
	SL_STRING(struct cut_options, last, "",
		  "the last seconds before the newest frame, as in 30s; also ms and min"),
	SL_STRING(struct cut_options, around, "",
		  "number of a frame, or of an event where frames are blocks of events"),
	SL_U64(struct cut_options, before, 100, 0, 1e15, "frames", "of --around: frames before it"),
	SL_U64(struct cut_options, after, 100, 0, 1e15, "frames", "of --around: frames after it"),
	SL_F64(struct cut_options, wait_s, 10, 0, 86400, "s",
	       "of --around: longest wait for the frames after it"),
	SL_STRING(struct cut_options, sink, "",
		  "path of the raw file, where the session writes several"),
	SL_BOOL(struct cut_options, overwrite, false,
		"replace a file that is there already, and its data files"),
	SL_BOOL(struct cut_options, quiet, false, "say nothing but warnings and errors"),
	SL_OPTION_END,
};

/* "30s", "500ms", "2min", "30". */
static int read_seconds(const char *text, double *seconds)
{
	static const struct {
		const char *unit;
		double s;
	} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"min", 60}};
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && end != text; i++)
		if (!strcmp(end, units[i].unit) && value > 0 && value * units[i].s < 1e9) {
			*seconds = value * units[i].s;
			return 0;
		}
	sl_error("--last: '%s': takes a time, as in 30s, 500ms or 2min", text);
	return -EINVAL;
}

static int read_window(const struct cut_options *own, struct sl_cut_options *o)
{
	char *end;

	if (!own->last[0] == !own->around[0]) {
		sl_error("cut takes either --last, as in --last 30s, or --around with the number "
			 "of a frame");
		return -EINVAL;
	}
	o->before = own->before;
	o->after = own->after;
	o->wait_s = own->wait_s;
	if (own->last[0])
		return read_seconds(own->last, &o->last_s);
	errno = 0;
	o->around = strtoull(own->around, &end, 10);
	if (errno || *end || own->around[0] == '-') {
		sl_error("--around: '%s': takes the number of a frame", own->around);
		return -EINVAL;
	}
	return 0;
}

/* ---- which raw file ---- */

enum { PAIRS = 64 };

struct found {
	char path[PATH_MAX];
	unsigned n;
	char *key[PAIRS], *value[PAIRS]; /* metadata of the run, as they are now */
	unsigned pairs;
	bool live; /* the run has told them */
};

static void note_pair(void *arg, const char *key, const char *value)
{
	struct found *found = arg;
	char *own_key = strdup(key), *own_value = strdup(value);

	if (found->pairs == PAIRS || !own_key || !own_value) {
		free(own_key);
		free(own_value);
		return;
	}
	found->key[found->pairs] = own_key;
	found->value[found->pairs++] = own_value;
}

static void each_pair(void *arg, void (*one)(void *to, const char *key, const char *value),
		      void *to)
{
	const struct found *found = arg;

	for (unsigned i = 0; i < found->pairs; i++)
		one(to, found->key[i], found->value[i]);
}

static void free_pairs(struct found *found)
{
	for (unsigned i = 0; i < found->pairs; i++) {
		free(found->key[i]);
		free(found->value[i]);
	}
}

static void note_raw(void *arg, const char *sink, const char *where)
{
	struct found *found = arg;

	if (strcmp(sink, "raw") != 0)
		return;
	found->n++;
	snprintf(found->path, sizeof(found->path), "%s", where);
}

static int ask_session(const char *name, struct found *found)
{
	struct sl_remote_error e = {.message = ""};
	struct sl_remote *remote = NULL;
	int r = sl_remote_open(name, CALL_MS, &remote, &e);

	if (!r)
		r = sl_remote_sinks(remote, CALL_MS, note_raw, found, &e);
	if (!r)
		r = sl_remote_metadata(remote, CALL_MS, note_pair, found, &e);
	found->live = !r;
	sl_remote_close(remote);
	if (r) {
		sl_error("%s: %s%s%s; and there is no raw file of this name", name, e.message,
			 e.hint[0] ? "; " : "", e.hint);
		return r;
	}
	if (found->n == 1)
		return 0;
	if (found->n)
		sl_error("%s: its run writes %u raw files: name one with --sink PATH", name,
			 found->n);
	else
		sl_error("%s: its run has no sink raw. To do: add '- raw: {path: look.raw, keep_s: "
			 "60}' to the sinks of the experiment",
			 name);
	return -ENOENT;
}

/* A file that is there, else a session. */
static int find_raw(const char *name, const struct cut_options *own, struct found *found)
{
	struct stat st;

	if (own->sink[0] || !stat(name, &st) || strchr(name, '/')) {
		snprintf(found->path, sizeof(found->path), "%s", own->sink[0] ? own->sink : name);
		return 0;
	}
	return ask_session(name, found);
}

static int say(const char *path, const struct sl_cut_made *made, bool quiet)
{
	if (!quiet)
		printf("%s: frames %" PRIu64 " to %" PRIu64 ", %.3f s: rows about %" PRIu64
		       " frames, %" PRIu64 " images, %" PRIu64 " frames kept by the run\n",
		       path, made->first, made->last, made->seconds, made->frames, made->images,
		       made->kept);
	if (!made->missing[0])
		return 0;
	sl_warn("%s: missing: %s", path, made->missing);
	return MISSING;
}

int sl_cmd_cut(const struct sl_command *command, int argc, char **argv)
{
	struct sl_cut_options o = {.raw = NULL};
	struct found found = {.n = 0};
	const struct sl_env_metadata metadata = {.each = each_pair, .arg = &found};
	struct sl_cut_made made;
	struct cut_options own;
	struct sl_args args;
	int r = sl_args_read(command, options, &own, argc, argv, &args);

	if (r)
		return r == 1 ? 0 : 1;
	if (args.plains != 2) {
		sl_error("cut takes a session or a raw file, and the file to be made: sluice %s",
			 command->usage);
		return 1;
	}
	if (read_window(&own, &o) || find_raw(args.plain[0], &own, &found)) {
		free_pairs(&found);
		return 1;
	}
	o.raw = found.path;
	o.out = args.plain[1];
	o.set = args.set;
	o.sets = args.sets;
	o.overwrite = own.overwrite;
	o.metadata = found.live ? &metadata : NULL;
	r = sl_cut(&o, &made) ? 1 : say(o.out, &made, own.quiet);
	free_pairs(&found);
	return r;
}
