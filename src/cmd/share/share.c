/* share.c - sluice share: the shares of this user on this host; one of them array by array; and a
 * share to try. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/share/follower.h"
#include "cmd/share/serve.h"
#include "cmd/signals.h"

#define RATE_NS UINT64_C(250000000) /* rates are counted over this time */

struct share_options {
	bool json;
	struct sl_serve_options serve;
	struct sl_reach reach;
};

#define SERVE_OPTION(type, name, def, min, max, unit, doc)                                         \
	{                                                                                          \
#name, type, offsetof(struct share_options, serve.name),                           \
			sizeof(((struct share_options *)0)->serve.name), def, min, max, unit, doc, \
			NULL, NULL                                                                 \
	}

static const struct sl_option options[] = {
	SL_BOOL(struct share_options, json, false, "print all that is known, as JSON"),
	SERVE_OPTION(SL_OPTION_STRING, npy, "", 0, 0, "", "of serve: the array of this NumPy file"),
	SERVE_OPTION(SL_OPTION_STRING, raw, "", 0, 0, "",
		     "of serve: the bytes of this file, as --type and --shape say"),
	SERVE_OPTION(SL_OPTION_U64, size, "0", 0, 1e12, "bytes", "of serve: zeros"),
	SERVE_OPTION(SL_OPTION_STRING, type, "|u1", 0, 0, "",
		     "of serve: as NumPy writes it: |u1, <u2, <f4 ..."),
	SERVE_OPTION(SL_OPTION_STRING, shape, "", 0, 0, "",
		     "of serve: as in 512,512; without it all bytes in a row"),
	SERVE_OPTION(SL_OPTION_STRING, array, "data", 0, 0, "", "of serve: name of the array"),
	SERVE_OPTION(SL_OPTION_BOOL, ring, "false", 0, 1, "",
		     "of serve: the first dimension counts elements, which are published in turn, "
		     "again and again"),
	SERVE_OPTION(SL_OPTION_F64, rate_Hz, "10", 1e-3, 1e6, "Hz", "of --ring: elements a second"),
	SERVE_OPTION(SL_OPTION_U64, elements, "0", 0, 1e15, "elements",
		     "of --ring: end after this many; 0: never"),
	SERVE_OPTION(SL_OPTION_U64, count, "0", 0, 1e9, "places",
		     "of serve: 0: 1, and of a ring 32"),
	SERVE_OPTION(SL_OPTION_BOOL, echo, "false", 0, 1, "",
		     "of serve: send every message back to the follower it came from"),
	SERVE_OPTION(SL_OPTION_F64, duration_s, "0", 0, 1e9, "s",
		     "of serve: end after this time; 0: with Ctrl-C"),
	SERVE_OPTION(SL_OPTION_STRING, listen, "", 0, 0, "",
		     "of serve: HOST:PORT for followers on other hosts"),
	SL_REACH_OPTIONS(struct share_options),
	SL_OPTION_END,
};

/* ---- a share that is looked at ---- */

struct seen {
	char name[64];
	struct sl_follower *follower; /* NULL: it could not be followed */
	uint64_t published, at_ns;
	double rate;
	struct sl_follow_element newest;
	bool any; /* there is one */
};

/* The newest element tells how many there are, also of a share on another host, whose flag moves
 * only while its follower waits. */
static void look(struct seen *s)
{
	uint8_t byte;

	s->at_ns = sl_clock_ns();
	s->any = !sl_follow_fetch(s->follower, UINT64_MAX, 0, 1, &byte, &s->newest);
	s->published = s->any ? s->newest.n + 1 : 0;
}

static void look_again(struct seen *s)
{
	const struct seen before = *s;

	look(s);
	s->rate = (double)(s->published - before.published) * 1e9 /
		  (double)(s->at_ns - before.at_ns);
}

/* But for the one that looks. Below 0: not known. */
static int64_t followers(const struct seen *s)
{
	return (int64_t)sl_follow_peers(s->follower) - 1;
}

static void size_words(uint64_t bytes, char *text, size_t size)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
	double value = (double)bytes;
	unsigned i = 0;

	for (; value >= 1000 && i < 4; i++)
		value /= 1000;
	snprintf(text, size, i ? "%.4g %s" : "%.0f %s", value, units[i]);
}

static void age_words(const struct seen *s, char *text, size_t size)
{
	uint64_t now = sl_clock_unix_ns();

	if (!s->any)
		snprintf(text, size, "-");
	else
		snprintf(text, size, "%.1f s",
			 now > s->newest.note.commit_unix_ns
				 ? (double)(now - s->newest.note.commit_unix_ns) * 1e-9
				 : 0);
}

/* ---- as words ---- */

static void print_row(const struct seen *s)
{
	const struct sl_share_description *d;
	char bytes[32], age[32], peers[24] = "-";

	if (!s->follower) {
		printf("%-24s cannot be followed\n", s->name);
		return;
	}
	d = sl_follow_describe(s->follower);
	size_words(d->data_bytes, bytes, sizeof(bytes));
	age_words(s, age, sizeof(age));
	if (followers(s) >= 0)
		snprintf(peers, sizeof(peers), "%" PRId64, followers(s));
	printf("%-24s %10s %8" PRIu64 " %12" PRIu64 " %10.4g/s %9s %10s  %s\n", s->name, bytes,
	       d->count, s->published, s->rate, peers, age, d->run);
}

static void print_arrays(const struct seen *s)
{
	const struct sl_share_description *d = sl_follow_describe(s->follower);
	char words[160];

	for (uint32_t i = 0; i < d->arrays; i++) {
		const struct sl_taken taken = {.array = &d->array[i], .rows = d->array[i].dim[0]};

		sl_taken_words(&taken, words, sizeof(words));
		printf("  %-24s %s%s\n", d->array[i].name, d->array[i].ragged ? "up to " : "",
		       words);
	}
}

/* ---- as JSON ---- */

static void print_array_json(const struct sl_share_array *array)
{
	printf("{\"name\":");
	sl_print_json_text(array->name);
	printf(",\"type\":");
	sl_print_json_text(array->type);
	printf(",\"unit\":");
	sl_print_json_text(array->unit);
	printf(",\"ragged\":%s,\"shape\":[", array->ragged ? "true" : "false");
	for (uint32_t i = 0; i < array->rank; i++)
		printf("%s%u", i ? "," : "", array->dim[i]);
	printf("],\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 "}", array->offset, array->bytes);
}

static void print_json(const struct seen *s)
{
	const struct sl_share_description *d;

	printf("{\"name\":");
	sl_print_json_text(s->name);
	if (!s->follower) {
		printf(",\"alive\":false}");
		return;
	}
	d = sl_follow_describe(s->follower);
	printf(",\"alive\":true,\"run\":");
	sl_print_json_text(d->run);
	printf(",\"generation\":%" PRIu64 ",\"places\":%" PRIu64 ",\"element_bytes\":%" PRIu64
	       ",\"published\":%" PRIu64 ",\"rate\":%.6g",
	       d->generation, d->count, d->data_bytes, s->published, s->rate);
	if (followers(s) >= 0)
		printf(",\"followers\":%" PRId64, followers(s));
	if (s->any)
		printf(",\"newest\":%" PRIu64 ",\"newest_unix_ns\":%" PRIu64, s->newest.n,
		       s->newest.note.commit_unix_ns);
	printf(",\"arrays\":[");
	for (uint32_t i = 0; i < d->arrays; i++) {
		printf("%s", i ? "," : "");
		print_array_json(&d->array[i]);
	}
	printf("]}");
}

/* ---- all of them, or one ---- */

static void print_all(struct seen *seen, size_t n, bool json, bool arrays)
{
	for (size_t i = 0; i < n; i++)
		if (seen[i].follower)
			look(&seen[i]);
	if (n)
		sl_clock_sleep_until(sl_clock_ns() + RATE_NS);
	if (json)
		printf("[");
	else
		printf("%-24s %10s %8s %12s %12s %9s %10s  %s\n", "NAME", "ELEMENT", "PLACES",
		       "PUBLISHED", "RATE", "FOLLOWERS", "NEWEST", "RUN");
	for (size_t i = 0; i < n; i++) {
		if (seen[i].follower)
			look_again(&seen[i]);
		if (json && i)
			printf(",");
		if (json)
			print_json(&seen[i]);
		else
			print_row(&seen[i]);
		if (!json && arrays)
			print_arrays(&seen[i]);
	}
	if (json)
		puts("]");
}

static int list(bool json)
{
	const struct sl_follow_options patience = {.bytes = sizeof(patience), .timeout_ms = 1000};
	char(*names)[64];
	struct seen *seen;
	size_t n;
	int err = sl_share_list(&names, &n);

	if (err) {
		sl_error("cannot list shares: %s", strerror(-err));
		return err;
	}
	seen = calloc(n ? n : 1, sizeof(*seen));
	if (!seen)
		sl_error("no memory for a list of %zu shares", n);
	for (size_t i = 0; seen && i < n; i++) {
		memcpy(seen[i].name, names[i], sizeof(seen[i].name));
		if (sl_follow_open(names[i], &patience, &seen[i].follower, NULL))
			seen[i].follower = NULL;
	}
	if (seen)
		print_all(seen, n, json, false);
	for (size_t i = 0; seen && i < n; i++)
		sl_follow_close(seen[i].follower);
	sl_remote_free(names);
	err = seen ? 0 : -ENOMEM;
	free(seen);
	return err;
}

static int describe(const char *url, const struct share_options *o)
{
	struct seen seen = {.follower = NULL};
	int err = sl_reach_share(url, &o->reach, &seen.follower);

	if (err)
		return err;
	snprintf(seen.name, sizeof(seen.name), "%s", sl_follow_describe(seen.follower)->name);
	print_all(&seen, 1, o->json, true);
	sl_follow_close(seen.follower);
	return 0;
}

int sl_cmd_share(const struct sl_command *command, int argc, char **argv)
{
	struct share_options o;
	struct sl_args args;
	int err = sl_args_read(command, options, &o, argc, argv, &args);
	bool serves = !err && args.plains && !strcmp(args.plain[0], "serve");

	if (err)
		return err > 0 ? 0 : 1;
	if (args.plains > 1 + serves || (serves && args.plains < 2)) {
		sl_error("usage: sluice %s", command->usage);
		return 1;
	}
	sl_signals_catch();
	if (!serves)
		return (args.plains ? describe(args.plain[0], &o) : list(o.json)) ? 1 : 0;
	snprintf(o.serve.secret_file, sizeof(o.serve.secret_file), "%s", o.reach.secret_file);
	snprintf(o.serve.device, sizeof(o.serve.device), "%s", o.reach.device);
	return sl_serve(args.plain[1], &o.serve) ? 1 : 0;
}
