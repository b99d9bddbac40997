/* follow.c - sluice follow: elements of a share as they come, a line each; and as files. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/share/follower.h"
#include "cmd/signals.h"

enum { LOOK_MS = 200 };
#define RATE_NS UINT64_C(500000000) /* over at least this time */

struct follow_options {
	char array[32], npy[1024], png[1024];
	bool every, newest, again, json;
	uint64_t count;
	double interval_s, timeout_s, low, high;
	uint32_t scale, colours, bin;
	struct sl_reach reach;
};

static const struct sl_option options[] = {
	SL_BOOL(struct follow_options, newest, false,
		"the newest element each time (this is what happens without --every)"),
	SL_BOOL(struct follow_options, every, false,
		"every element in turn; those that were overtaken are counted as missed"),
	SL_F64(struct follow_options, interval_s, 0.1, 0, 86400, "s",
	       "of the newest: from one to the next; 0: as fast as they come"),
	SL_U64(struct follow_options, count, 0, 0, 1e15, "elements",
	       "end after this many; 0: when the share ends"),
	SL_F64(struct follow_options, timeout_s, 0, 0, 86400, "s",
	       "give up when no element comes for this time; 0: never"),
	SL_BOOL(struct follow_options, again, false,
		"when the share has ended, wait for the next one of this name"),
	SL_STRING(struct follow_options, array, "",
		  "save this array; without it --npy saves all, and --png the first image"),
	SL_STRING(struct follow_options, npy, "",
		  "save each element to this folder, for NumPy: ARRAY-N.npy"),
	SL_STRING(struct follow_options, png, "",
		  "draw each element: into this file, which is replaced each time, or into this "
		  "folder (with a / at the end): ARRAY-N.png"),
	SL_BOOL(struct follow_options, json, false, "a JSON object for each element"),
	SL_PICTURE_OPTIONS(struct follow_options),
	SL_REACH_OPTIONS(struct follow_options),
	SL_OPTION_END,
};

struct follow {
	struct follow_options options;
	const char *url;
	struct sl_follower *follower;
	const struct sl_share_description *d;
	struct sl_follow_element element;
	void *data; /* NULL: only what is known of elements is needed */
	int array;  /* of --array, or the first image for --png */
	bool png_folder;
	bool overtaken; /* it was said that the writer overtakes every copy */
	bool unread;	/* no program reads stdout any more */
	uint64_t seen, missed;
	uint64_t rate_n, rate_ns; /* an element some time ago, and when it was committed */
	double rate;		  /* below 0: not known */
};

static bool saves(const struct follow *f)
{
	return f->options.npy[0] || f->options.png[0];
}

/* The layout of the share as it is now. */
static int settle_layout(struct follow *f)
{
	f->d = sl_follow_describe(f->follower);
	f->array = sl_array_of(f->d, f->options.array);
	if (f->array == -EINVAL)
		return -EINVAL;
	if (f->array < 0 && f->options.png[0]) {
		sl_error("%s: it has no image to draw; name one of its arrays with --array",
			 f->url);
		return -EINVAL;
	}
	free(f->data);
	f->data = saves(f) ? malloc(f->d->data_bytes) : NULL;
	if (f->data || !saves(f))
		return 0;
	sl_error("no memory for %" PRIu64 " bytes", f->d->data_bytes);
	return -ENOMEM;
}

/* Over the network nothing can be looked at in place. */
static int copy_instead(struct follow *f)
{
	f->data = malloc(f->d->data_bytes);
	return f->data ? 0 : -ENOMEM;
}

static int next(struct follow *f)
{
	enum sl_follow_mode mode = f->options.every ? SL_FOLLOW_EVERY : SL_FOLLOW_NEWEST;
	int err = f->data ? 0 : sl_follow_peek(f->follower, mode, LOOK_MS, &f->element);

	if (err == -EOPNOTSUPP)
		err = copy_instead(f);
	return f->data && !err ? sl_follow_next(f->follower, mode, LOOK_MS, f->data,
						f->d->data_bytes, &f->element)
			       : err;
}

/* ---- an element ---- */

static void measure(struct follow *f)
{
	const struct sl_follow_element *e = &f->element;
	uint64_t now_ns = e->note.commit_unix_ns;

	if (f->rate_ns && now_ns < f->rate_ns + RATE_NS)
		return;
	if (f->rate_ns)
		f->rate = (double)(e->n - f->rate_n) * 1e9 / (double)(now_ns - f->rate_ns);
	f->rate_n = e->n;
	f->rate_ns = now_ns;
}

static bool is_there(const struct follow *f, int array)
{
	return !(f->element.note.absent >> array & 1);
}

static struct sl_taken taken(const struct follow *f, int array)
{
	return (struct sl_taken){.array = &f->d->array[array],
				 .data = (const uint8_t *)f->data + f->d->array[array].offset,
				 .rows = f->element.note.rows[array]};
}

static void path_of(const struct follow *f, const char *folder, int array, const char *ending,
		    char *path, size_t bytes)
{
	size_t at = (size_t)snprintf(path, bytes, "%s/", folder);
	char *name = path + at;

	snprintf(path + at, bytes - at, "%s-%06" PRIu64 ".%s", f->d->array[array].name,
		 f->element.n, ending);
	/* A name is what the writer of the share chose. */
	for (; *name; name++)
		if (*name == '/' || (unsigned char)*name < 0x20)
			*name = '_';
}

static int save_npy(const struct follow *f)
{
	char path[1200];
	int err = 0;

	for (int i = 0; i < (int)f->d->arrays && !err; i++) {
		struct sl_taken t = taken(f, i);

		if ((f->options.array[0] && i != f->array) || !is_there(f, i))
			continue;
		path_of(f, f->options.npy, i, "npy", path, sizeof(path));
		err = sl_save_npy(path, &t);
	}
	return err;
}

static int save_png(const struct follow *f)
{
	const struct follow_options *o = &f->options;
	const struct sl_picture_look look = {o->scale, o->colours, o->low, o->high};
	struct sl_taken t = taken(f, f->array);
	char path[1200];

	if (!is_there(f, f->array))
		return 0;
	if (!f->png_folder)
		return sl_save_png(o->png, &t, &look, o->bin);
	path_of(f, o->png, f->array, "png", path, sizeof(path));
	return sl_save_png(path, &t, &look, o->bin);
}

static int show(struct follow *f)
{
	int err = 0;

	f->seen++;
	f->missed += f->element.missed;
	measure(f);
	if (!f->options.every && !f->options.json)
		f->element.missed = 0; /* passed over on purpose */
	if (f->options.json)
		sl_print_element_json(f->d, &f->element, f->rate);
	else
		sl_print_element(f->d, &f->element, f->rate);
	f->unread = fflush(stdout) != 0;
	if (f->options.npy[0])
		err = save_npy(f);
	if (!err && f->options.png[0])
		err = save_png(f);
	return err;
}

/* ---- the loop ---- */

static bool ends(const struct follow *f)
{
	return sl_signal || f->unread || (f->options.count && f->seen >= f->options.count);
}

static void say_overtaken(struct follow *f)
{
	if (!f->overtaken)
		sl_follow_failed(f->url, -EAGAIN);
	f->overtaken = true;
}

/* Until this share ends, or the command does. -EPIPE: the share has ended. */
static int follow_one(struct follow *f)
{
	uint64_t last_ns = sl_clock_ns();
	int err = settle_layout(f);

	while (!err && !ends(f)) {
		err = next(f);
		if (err == -ETIMEDOUT) {
			double waited_s = (double)(sl_clock_ns() - last_ns) * 1e-9;

			err = 0;
			if (f->options.timeout_s > 0 && waited_s >= f->options.timeout_s) {
				sl_error("%s: no element has come for %g s", f->url,
					 f->options.timeout_s);
				return -ETIMEDOUT;
			}
			continue;
		}
		if (err == -EAGAIN) {
			err = 0;
			say_overtaken(f);
			continue;
		}
		if (err == -ESTALE) {
			err = settle_layout(f);
			continue;
		}
		if (err) {
			if (err != -EPIPE)
				sl_follow_failed(f->url, err);
			return err;
		}
		last_ns = sl_clock_ns();
		if (show(f))
			return -EIO;
		if (!f->options.every && !ends(f))
			sl_clock_sleep_until(last_ns + (uint64_t)(f->options.interval_s * 1e9));
	}
	return err;
}

static void say_end(const struct follow *f)
{
	if (!f->options.json)
		printf("%s: ended; %" PRIu64 " elements seen, %" PRIu64 " passed over or missed\n",
		       f->url, f->seen, f->missed);
	fflush(stdout);
}

static int follow(struct follow *f)
{
	struct sl_reach reach = f->options.reach;
	int err;

	do {
		err = sl_reach_share(f->url, &reach, &f->follower);
		if (err)
			return err == -EINTR ? 0 : err;
		f->rate = -1;
		f->rate_ns = 0;
		err = follow_one(f);
		sl_follow_close(f->follower);
		f->follower = NULL;
		if (err == -EPIPE)
			say_end(f);
		reach.wait_s = 1e9; /* for the next one */
	} while (err == -EPIPE && f->options.again && !ends(f));
	return err == -EPIPE ? 0 : err;
}

/* A folder that is there, or that the path says to be one. */
static int prepare_folders(struct follow *f)
{
	struct follow_options *o = &f->options;
	size_t length = strlen(o->png);
	struct stat st;

	f->png_folder = length &&
			(o->png[length - 1] == '/' || (!stat(o->png, &st) && S_ISDIR(st.st_mode)));
	if (!o->every || !o->newest)
		return 0;
	sl_error("--every and --newest exclude each other");
	return -EINVAL;
}

int sl_cmd_follow(const struct sl_command *command, int argc, char **argv)
{
	struct follow f = {.array = -1};
	struct sl_args args;
	int err = sl_args_read(command, options, &f.options, argc, argv, &args);

	if (err)
		return err > 0 ? 0 : 1;
	if (args.plains != 1) {
		sl_error("which share? sluice share lists them; usage: sluice %s", command->usage);
		return 1;
	}
	f.url = args.plain[0];
	sl_signals_catch();
	err = prepare_folders(&f);
	if (!err)
		err = follow(&f);
	free(f.data);
	return err ? 1 : 0;
}
