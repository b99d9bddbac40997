/* fetch.c - sluice fetch: an element of a share, or a part of it, once. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/share/follower.h"
#include "cmd/signals.h"

enum { LOOK_NS = 5000000 };

struct fetch_options {
	char n[32], array[32], out[1024], npy[1024], png[1024];
	uint64_t offset, bytes;
	bool json;
	double timeout_s, low, high;
	uint32_t scale, colours, bin;
	struct sl_reach reach;
};

static const struct sl_option options[] = {
	SL_STRING(struct fetch_options, n, "", "number of the element; without it the newest"),
	SL_STRING(struct fetch_options, array, "",
		  "fetch this array alone; without it the whole element, and for --npy and --png "
		  "its first image"),
	SL_U64(struct fetch_options, offset, 0, 0, 1e15, "bytes",
	       "of --out: where the part begins, in the array or in the element"),
	SL_U64(struct fetch_options, bytes, 0, 0, 1e15, "bytes",
	       "of --out: of the part; 0: to the end"),
	SL_STRING(struct fetch_options, out, "", "write the bytes to this file; -: to stdout"),
	SL_STRING(struct fetch_options, npy, "", "write the array to this file, for NumPy"),
	SL_STRING(struct fetch_options, png, "", "draw the array into this file"),
	SL_BOOL(struct fetch_options, json, false, "print what is known of the element as JSON"),
	SL_F64(struct fetch_options, timeout_s, 10, 0, 86400, "s",
	       "for an element, where none is published yet"),
	SL_PICTURE_OPTIONS(struct fetch_options),
	SL_REACH_OPTIONS(struct fetch_options),
	SL_OPTION_END,
};

struct fetch {
	struct fetch_options options;
	const char *url;
	struct sl_follower *follower;
	const struct sl_share_description *d;
	struct sl_follow_element element;
	uint64_t n, offset, bytes; /* the part */
	int array;		   /* -1: the whole element */
	void *data;
};

static int read_number(struct fetch *f)
{
	char *end;

	f->n = UINT64_MAX;
	if (!f->options.n[0])
		return 0;
	errno = 0;
	f->n = strtoull(f->options.n, &end, 10);
	if (!errno && f->options.n[0] >= '0' && f->options.n[0] <= '9' && !*end)
		return 0;
	sl_error("--n: '%s': takes a number", f->options.n);
	return -EINVAL;
}

static bool wants_array(const struct fetch_options *o)
{
	return o->npy[0] || o->png[0];
}

/* The part that is fetched, of the share as it is now. */
static int choose_part(struct fetch *f)
{
	const struct fetch_options *o = &f->options;
	uint64_t begin = 0, all;

	f->d = sl_follow_describe(f->follower);
	f->array = -1;
	if (o->array[0] || wants_array(o))
		f->array = sl_array_of(f->d, o->array);
	if (f->array == -EINVAL)
		return -EINVAL;
	if (f->array < 0 && wants_array(o)) {
		sl_error("%s: it has no image; name one of its arrays with --array", f->url);
		return -EINVAL;
	}
	all = f->d->data_bytes;
	if (f->array >= 0) {
		begin = f->d->array[f->array].offset;
		all = f->d->array[f->array].bytes;
	}
	if (o->offset >= all || o->bytes > all - o->offset) {
		sl_error("--offset, --bytes: %s has %" PRIu64 " bytes",
			 f->array >= 0 ? f->d->array[f->array].name : "the element", all);
		return -ERANGE;
	}
	f->offset = begin + o->offset;
	f->bytes = o->bytes ? o->bytes : all - o->offset;
	if (!o->out[0] && !wants_array(o))
		f->bytes = 1; /* its note alone */
	free(f->data);
	f->data = malloc(f->bytes);
	if (f->data)
		return 0;
	sl_error("no memory for %" PRIu64 " bytes", f->bytes);
	return -ENOMEM;
}

static void failed(const struct fetch *f, int err)
{
	if (err == -ENODATA && f->n != UINT64_MAX)
		sl_error("%s: element %" PRIu64 " is not published yet", f->url, f->n);
	else if (err == -ESTALE && f->n != UINT64_MAX)
		sl_error("%s: element %" PRIu64 " was overtaken: the share has the newest %" PRIu64
			 " elements",
			 f->url, f->n, f->d->count);
	else
		sl_follow_failed(f->url, err);
}

/* The writer may publish its first element later, take long to fill the only place, or change the
 * layout meanwhile. */
static int fetch(struct fetch *f)
{
	uint64_t end_ns = sl_clock_ns() + (uint64_t)(f->options.timeout_s * 1e9);
	int err = choose_part(f);

	while (!err && !sl_signal) {
		err = sl_follow_fetch(f->follower, f->n, f->offset, f->bytes, f->data, &f->element);
		if (!err)
			return 0;
		if ((err == -ESTALE && f->n != UINT64_MAX) ||
		    (err != -ESTALE && err != -ENODATA && err != -ETIMEDOUT && err != -EAGAIN) ||
		    sl_clock_ns() >= end_ns) {
			failed(f, err);
			return err;
		}
		if (err != -ESTALE)
			sl_clock_sleep_until(sl_clock_ns() + LOOK_NS);
		err = choose_part(f);
	}
	return err ? err : -EINTR;
}

static int save(struct fetch *f)
{
	const struct fetch_options *o = &f->options;
	const struct sl_picture_look look = {o->scale, o->colours, o->low, o->high};
	struct sl_taken taken = {.data = f->data};
	int err = 0;

	if (f->array >= 0 && f->element.note.absent >> f->array & 1) {
		sl_error("%s: element %" PRIu64 " has no '%s': its frame was not processed", f->url,
			 f->element.n, f->d->array[f->array].name);
		return -ENODATA;
	}
	if (f->array >= 0) {
		taken.array = &f->d->array[f->array];
		taken.rows = f->element.note.rows[f->array];
	}
	if (o->npy[0])
		err = sl_save_npy(o->npy, &taken);
	if (!err && o->png[0])
		err = sl_save_png(o->png, &taken, &look, o->bin);
	if (!err && o->out[0])
		err = sl_save_bytes(o->out, f->data, f->bytes);
	return err;
}

static void print(const struct fetch *f)
{
	char words[160];

	if (f->options.json) {
		sl_print_element_json(f->d, &f->element, -1);
		return;
	}
	sl_print_element(f->d, &f->element, -1);
	for (uint32_t i = 0; i < f->d->arrays; i++) {
		const struct sl_taken taken = {.array = &f->d->array[i],
					       .rows = f->element.note.rows[i]};

		if (f->array >= 0 && f->array != (int)i)
			continue;
		sl_taken_words(&taken, words, sizeof(words));
		printf("  %-20s %s\n", taken.array->name,
		       f->element.note.absent >> i & 1 ? "absent" : words);
	}
}

static int check(const struct fetch_options *o)
{
	if (!wants_array(o) || (!o->offset && !o->bytes))
		return 0;
	sl_error("--offset and --bytes are of --out: --npy and --png take a whole array");
	return -EINVAL;
}

int sl_cmd_fetch(const struct sl_command *command, int argc, char **argv)
{
	struct fetch f = {.array = -1};
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
	err = check(&f.options);
	if (!err)
		err = read_number(&f);
	if (!err)
		err = sl_reach_share(f.url, &f.options.reach, &f.follower);
	if (!err)
		err = fetch(&f);
	if (!err && strcmp(f.options.out, "-") != 0)
		print(&f); /* first: an element's age is that of now */
	if (!err)
		err = save(&f);
	sl_follow_close(f.follower);
	free(f.data);
	return err ? 1 : 0;
}
