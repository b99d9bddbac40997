/* redis.c - a row about every frame, with its small results, as entries of a Redis Stream; and the
 * state of the run as a hash.
 *
 *   PREFIX:NAME:frames       the stream: an entry for each frame (entry.h), then one with the field
 *                            `end`
 *   PREFIX:NAME:run          the hash: state, counts, which results there are
 *
 * Redis never delays the run (feed.h) unless `required` is set: then each frame waits for its
 * acknowledgement.
 *
 * Threads:   the sink's own.
 * Cost:      one or two microseconds per row beside the system calls, which up to 64 rows share. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/sink.h>

#include "base/clock.h"
#include "base/file/secret_file.h"
#include "base/log.h"
#include "sink/redis/entry.h"
#include "sink/redis/feed.h"
#include "sink/redis/metadata.h"
#include "sink/row.h"

#ifndef SL_VERSION
#define SL_VERSION "unknown"
#endif

enum { ADDRESS_BYTES = 108, KEY_BYTES = 160, PASSWORD_BYTES = 512, PATH_BYTES = 1024 };
enum { TIME_BYTES = 32, RESULT_NAMES_BYTES = SL_RESULTS * (SL_ENTRY_FIELD + 1) };
enum { ALL, KEPT }; /* the choices of results_of */

struct redis {
	char address[ADDRESS_BYTES], password_file[PATH_BYTES], prefix[64], name[64];
	char results[512];
	uint32_t port, database, queue, results_of;
	uint64_t max_rows;
	double timeout_s;
	bool required;

	char label[ADDRESS_BYTES + 16], where[ADDRESS_BYTES + KEY_BYTES + 32];
	char password[PASSWORD_BYTES], numeric[ADDRESS_BYTES];
	char stream[KEY_BYTES], run[KEY_BYTES], experiment[64];
	char description[SL_RESULTS][SL_ENTRY_DESCRIPTION]; /* of each selected result */
	struct sl_entry entry;
	struct sl_feed feed;
	struct sl_command row;
	struct sl_redis_metadata metadata;
	uint64_t opened_ns, started_unix_ns, ended_unix_ns;
	uint64_t frames, kept, broken;
	uint64_t numbered; /* kept frames that have an image in the run's file */
	bool open, abandoned;
};

static const struct sl_option options[] = {
	SL_STRING(struct redis, address, "127.0.0.1",
		  "of the server: a name, an address, or the path of its Unix socket, with a '/' "
		  "in it"),
	SL_U32(struct redis, port, 6379, 1, 65535, "", "TCP port of the server"),
	SL_U32(struct redis, database, 0, 0, 65535, "", "number of the database"),
	SL_STRING(struct redis, password_file, "",
		  "file whose first line is the password; only its owner may read it"),
	SL_STRING(struct redis, prefix, "sluice",
		  "keys are PREFIX:NAME:frames and PREFIX:NAME:run"),
	SL_STRING(struct redis, name, "",
		  "the NAME in the keys; empty: that of the experiment file, with the transfer's"),
	SL_U64(struct redis, max_rows, 100000, 0, 1e15, "rows",
	       "of the stream, about; older ones are removed; 0: no limit"),
	SL_STRING(struct redis, results, "",
		  "results in each row, with commas between them; empty: all of at most 512 bytes "
		  "that are no images; none: none"),
	SL_CHOICE(struct redis, results_of, all, "all|kept",
		  "frames whose rows have results; kept: accelerators need not bring back results "
		  "of rejected frames"),
	SL_BOOL(struct redis, required, false,
		"a frame whose row is not acknowledged within timeout_s counts as unwritten; "
		"false: what Redis misses is counted, and the run never waits"),
	SL_F64(struct redis, timeout_s, 2, 0.05, 60, "s",
	       "without an answer, after which the server counts as gone; also how long the end "
	       "of a run waits for it"),
	SL_U32(struct redis, queue, 10000, 1, 10000000, "rows",
	       "that are kept while the server is away, 256 MiB at most; more are missed"),
	SL_OPTION_END};

/* ---- the hash ---- */

static const char *state_of(const struct redis *redis)
{
	return redis->ended_unix_ns ? "ended" : redis->frames ? "running" : "armed";
}

static void add_text(struct sl_command *to, const char *field, const char *text)
{
	sl_command_text(to, field);
	sl_command_text(to, text);
}

static void add_number(struct sl_command *to, const char *field, uint64_t value)
{
	sl_command_text(to, field);
	sl_command_u64(to, value);
}

static void add_time(struct sl_command *to, const char *field, uint64_t unix_ns)
{
	char text[TIME_BYTES] = "";

	if (unix_ns)
		sl_clock_iso8601(unix_ns, text, sizeof(text));
	add_text(to, field, text);
}

static void delete_run(const struct redis *redis, struct sl_command *to)
{
	sl_command_begin(to, 2);
	sl_command_text(to, "DEL");
	sl_command_text(to, redis->run);
}

static void add_results(const struct redis *redis, struct sl_command *to)
{
	char names[RESULT_NAMES_BYTES] = "", field[SL_ENTRY_FIELD + 8];
	size_t at = 0;

	for (uint32_t i = 0; i < redis->entry.results; i++) {
		const char *name = redis->entry.result[i].field;

		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? "," : "", name);
		snprintf(field, sizeof(field), "result:%s", name);
		add_text(to, field, redis->description[i]);
	}
	add_text(to, "results", names);
}

enum { FIELDS = 14 }; /* of the hash, without those of results and metadata */

static uint32_t describe(void *arg, struct sl_command *to, bool first)
{
	struct redis *redis = arg;
	uint32_t commands = 1;
	char id[TIME_BYTES];

	if (first || redis->abandoned)
		delete_run(redis, to);
	if (redis->abandoned)
		return 1;
	commands += sl_redis_metadata_look(&redis->metadata, redis->run, first, to);
	sl_command_begin(to, 2 + 2 * (FIELDS + redis->entry.results +
				      sl_redis_metadata_fields(&redis->metadata)));
	sl_command_text(to, "HSET");
	sl_command_text(to, redis->run);
	add_text(to, "state", state_of(redis));
	add_time(to, "started", redis->started_unix_ns);
	add_time(to, "ended", redis->ended_unix_ns);
	add_number(to, "frames", redis->frames);
	add_number(to, "kept", redis->kept);
	add_number(to, "rejected", redis->frames - redis->kept - redis->broken);
	add_number(to, "broken", redis->broken);
	add_number(to, "rows_stored", redis->feed.stored);
	add_number(to, "rows_missed", redis->feed.missed);
	add_number(to, "modules", redis->entry.modules);
	add_text(to, "experiment", redis->experiment);
	add_text(to, "sluice", SL_VERSION);
	snprintf(id, sizeof(id), "%" PRIu64 "-1", redis->feed.options.since_ms);
	add_text(to, "first_id", id);
	add_results(redis, to);
	sl_redis_metadata_add(&redis->metadata, to);
	return first ? commands + 1 : commands;
}

/* ---- opening ---- */

static int read_password(struct redis *redis)
{
	char why[512];
	int r;

	if (!redis->password_file[0])
		return 0;
	r = sl_secret_file_read(redis->password_file, redis->password, sizeof(redis->password), why,
				sizeof(why));
	if (r)
		sl_error("redis: password_file: '%s' %s", redis->password_file, why);
	return r;
}

static int look_up(struct redis *redis)
{
	char why[128];

	if (!sl_redis_look_up(redis->address, redis->numeric, sizeof(redis->numeric), why,
			      sizeof(why)))
		return 0;
	redis->numeric[0] = 0;
	if (redis->required) {
		sl_error("redis: address '%s' cannot be looked up: %s", redis->address, why);
		return -EINVAL;
	}
	sl_warn("redis: address '%s' cannot be looked up: %s; all rows of this run are counted as "
		"rows_missed",
		redis->address, why);
	return 0;
}

static void set_names(struct redis *redis, const struct sl_env *env)
{
	const char *name = env->name && env->name[0] ? env->name : "run";

	snprintf(redis->experiment, sizeof(redis->experiment), "%s", name);
	if (redis->name[0])
		name = redis->name;
	snprintf(redis->stream, sizeof(redis->stream), "%s:%s:frames", redis->prefix, name);
	snprintf(redis->run, sizeof(redis->run), "%s:%s:run", redis->prefix, name);
	if (sl_redis_is_path(redis->address))
		snprintf(redis->label, sizeof(redis->label), "%s", redis->address);
	else
		snprintf(redis->label, sizeof(redis->label), "%s:%u", redis->address, redis->port);
	snprintf(redis->where, sizeof(redis->where), "%s %s", redis->label, redis->stream);
}

static int open_entry(struct redis *redis, const struct sl_env *env)
{
	int r;

	redis->entry.stream = redis->stream;
	redis->entry.max_rows = redis->max_rows;
	redis->entry.modules = sl_env_modules(env);
	redis->entry.kept_only = redis->results_of == KEPT;
	r = sl_entry_select(&redis->entry, env, redis->results);
	for (uint32_t i = 0; i < redis->entry.results && !r; i++)
		sl_entry_describe(&env->result[redis->entry.result[i].index],
				  redis->entry.result[i].text, redis->description[i]);
	return r;
}

static int open_redis(void *state, const struct sl_env *env)
{
	struct redis *redis = state;
	struct sl_feed_options o = {.address = redis->numeric,
				    .label = redis->label,
				    .port = (uint16_t)redis->port,
				    .database = redis->database,
				    .password = redis->password,
				    .stream = redis->stream,
				    .queue = redis->queue,
				    .timeout_ns = (uint64_t)(redis->timeout_s * 1e9),
				    .required = redis->required,
				    .describe = describe,
				    .arg = redis};
	int r;

	set_names(redis, env);
	r = open_entry(redis, env);
	if (!r)
		r = sl_redis_metadata_open(&redis->metadata, env);
	if (!r)
		r = read_password(redis);
	if (!r)
		r = look_up(redis);
	if (r)
		return r;
	redis->opened_ns = sl_clock_ns();
	redis->started_unix_ns = sl_clock_unix_ns();
	o.since_ms = redis->started_unix_ns / 1000000;
	redis->open = true;
	return sl_feed_open(&redis->feed, &o);
}

/* ---- frames ---- */

/* The row that is added next. Its time never goes back, whatever the wall clock does. */
static void begin_row(struct redis *redis)
{
	redis->entry.number = redis->feed.rows.end;
	redis->entry.ms = redis->feed.options.since_ms +
			  (sl_clock_ns() - redis->opened_ns) / 1000000;
	sl_command_clear(&redis->row);
}

static void add(struct redis *redis, const struct sl_frame *frame, int64_t image)
{
	if (sl_feed_waiting(&redis->feed) >= redis->queue) {
		sl_feed_miss(&redis->feed);
		return;
	}
	begin_row(redis);
	sl_entry_frame(&redis->entry, frame, image, &redis->row);
	if (redis->row.error)
		sl_feed_miss(&redis->feed);
	else
		sl_feed_add(&redis->feed, redis->row.bytes, redis->row.length);
}

static int put(void *state, struct sl_frame *frame)
{
	struct redis *redis = state;
	bool kept = sl_row_kept(frame), numbered = kept && !frame->unnumbered;
	uint64_t missed = redis->feed.missed;
	int r = 0;

	redis->frames++;
	redis->broken += !sl_frame_goes_on(frame);
	add(redis, frame, numbered ? (int64_t)redis->numbered : -1);
	redis->kept += kept;
	redis->numbered += numbered;
	if (redis->required)
		r = sl_feed_sync(&redis->feed);
	if (redis->required && redis->feed.missed != missed)
		r = -EIO;
	return r;
}

static void idle(void *state)
{
	struct redis *redis = state;

	if (redis->open)
		sl_feed_look(&redis->feed);
}

static int close_redis(void *state, const struct sl_status *status)
{
	struct redis *redis = state;

	if (redis->open && status) {
		begin_row(redis);
		redis->ended_unix_ns = sl_clock_unix_ns();
		sl_entry_end(&redis->entry, redis->frames, redis->feed.missed, &redis->row);
		sl_feed_end(&redis->feed, &redis->row);
	} else if (redis->open) {
		redis->abandoned = true;
		sl_feed_end(&redis->feed, NULL);
	}
	sl_feed_close(&redis->feed);
	sl_command_free(&redis->row);
	sl_redis_metadata_close(&redis->metadata);
	explicit_bzero(redis->password, sizeof(redis->password));
	redis->open = false;
	return 0;
}

/* ---- what the pipeline asks ---- */

static uint32_t wants_more(const void *state)
{
	const struct redis *redis = state;
	bool results = strcmp(redis->results, "none") != 0 && redis->results_of == ALL;

	return results ? SL_WANT_REJECTED_RESULTS : 0;
}

static int reads(const void *state, const char *image)
{
	return 0;
}

static int own_thread(const void *state)
{
	return 1;
}

static const char *where(const void *state)
{
	return ((const struct redis *)state)->where;
}

static void figures(const void *state, sl_sink_figure *figure, void *arg)
{
	const struct redis *redis = state;

	figure(arg, "rows_stored", redis->feed.stored, 0);
	figure(arg, "rows_waiting", sl_feed_waiting(&redis->feed), 0);
	figure(arg, "rows_missed", redis->feed.missed, redis->required);
	figure(arg, "reconnections", redis->feed.reconnections, 0);
}

static void files(const void *state, sl_file_each *each, void *arg)
{
	const struct redis *redis = state;

	if (redis->password_file[0])
		each(arg, SL_FILE_READ, redis->password_file);
}

static int required(const void *state)
{
	return ((const struct redis *)state)->required;
}

/* Where it is required, a row is accepted when the server has acknowledged it. */
static uint64_t durable(const void *state)
{
	return ((const struct redis *)state)->required ? UINT64_MAX : 0;
}

const struct sl_sink sl_sink_redis = {
	.name = "redis",
	.doc = "a row about every frame, with its small results, to a Redis Stream",
	.state_bytes = sizeof(struct redis),
	.options = options,
	.wants = SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_BROKEN,
	.wants_more = wants_more,
	.reads = reads,
	.own_thread = own_thread,
	.idle = idle,
	.open = open_redis,
	.put = put,
	.close = close_redis,
	.where = where,
	.figures = figures,
	.files = files,
	.required = required,
	.durable = durable,
};
