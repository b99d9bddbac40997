/* feed.c - a queue, a window and a connection. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "sink/redis/feed.h"

enum { AUTH, SELECT, LAST, ROW, STATE }; /* what commands are */
enum { ROWS_AT_ONCE = 64, WAIT_MS = 20, OUT_BYTES = 1 << 20 };

#define RETRY_NS    UINT64_C(1000000000)
#define DESCRIBE_NS UINT64_C(1000000000)
#define LOOK_NS	    UINT64_C(1000000) /* rows that come faster are sent together */

static void asked(struct sl_feed *feed, uint8_t what)
{
	if (feed->asked == feed->answered)
		feed->progress_ns = sl_clock_ns();
	feed->command[feed->asked++ % SL_FEED_COMMANDS] = what;
}

/* ---- away and back ---- */

static void tell_away(struct sl_feed *feed, const char *why)
{
	const struct sl_feed_options *o = &feed->options;
	const char *hint = strstr(why, "NOAUTH") ? " (set password_file)" : "";

	if (feed->told)
		return;
	feed->told = true;
	if (o->required && !feed->known)
		sl_error("redis: %s: %s%s; start the server, or set required: false", o->label, why,
			 hint);
	else if (o->required)
		sl_error("redis: %s: %s%s; frames are refused until it is back (required: true)",
			 o->label, why, hint);
	else
		sl_warn("redis: %s: %s%s; up to %u rows wait for it, more are counted as "
			"rows_missed; trying again every second",
			o->label, why, hint, o->queue);
}

static void go_away(struct sl_feed *feed, const char *why)
{
	sl_redis_close(&feed->redis);
	sl_row_queue_rewind(&feed->rows);
	feed->asked = feed->answered = 0;
	feed->broken = false;
	feed->state = SL_FEED_AWAY;
	feed->try_ns = sl_clock_ns() + RETRY_NS;
	tell_away(feed, why);
}

static void connect_again(struct sl_feed *feed)
{
	const struct sl_feed_options *o = &feed->options;
	struct sl_command *out = &feed->redis.out;

	if (!o->address[0])
		return;
	if (sl_redis_connect(&feed->redis, o->address, o->port)) {
		go_away(feed, feed->redis.why);
		return;
	}
	feed->state = SL_FEED_CONNECTING;
	if (o->password[0]) {
		sl_command_begin(out, 2);
		sl_command_text(out, "AUTH");
		sl_command_text(out, o->password);
		asked(feed, AUTH);
	}
	if (o->database) {
		sl_command_begin(out, 2);
		sl_command_text(out, "SELECT");
		sl_command_u64(out, o->database);
		asked(feed, SELECT);
	}
	sl_command_begin(out, 6);
	sl_command_text(out, "XREVRANGE");
	sl_command_text(out, o->stream);
	sl_command_text(out, "+");
	sl_command_text(out, "-");
	sl_command_text(out, "COUNT");
	sl_command_text(out, "1");
	asked(feed, LAST);
}

static void give_up(struct sl_feed *feed, const char *why)
{
	snprintf(feed->redis.why, sizeof(feed->redis.why), "%s", why);
	feed->broken = true;
}

static void tell_back(struct sl_feed *feed, uint64_t lost)
{
	char more[80] = "";

	if (lost)
		snprintf(more, sizeof(more), "; it has lost %" PRIu64 " rows that it had stored",
			 lost);
	if (feed->told)
		sl_info("redis: %s is connected again: %" PRIu64 " rows wait, %" PRIu64
			" were missed%s",
			feed->options.label, sl_feed_waiting(feed), feed->missed, more);
	feed->told = false;
}

/* The id of the stream's last entry; NULL: it has none. All entries of this run have a time of
 * since_ms or later; others must be older. */
static void resume(struct sl_feed *feed, const char *id)
{
	struct sl_row_queue *rows = &feed->rows;
	uint64_t has = 0, lost;
	char *rest = NULL;

	if (id && strtoull(id, &rest, 10) >= feed->options.since_ms && *rest == '-')
		has = strtoull(rest + 1, NULL, 10);
	if (has > rows->tried) {
		give_up(feed, "another run writes to the same stream, or the clock was set back: "
			      "set name, or delete the stream");
		return;
	}
	for (uint64_t i = rows->first; i < has && i < rows->end; i++)
		feed->stored += i != feed->end_row;
	lost = sl_row_queue_resume(rows, has);
	feed->stored -= lost;
	feed->missed += lost;
	feed->lost += lost;
	feed->reconnections += feed->known;
	feed->state = SL_FEED_READY;
	feed->described_ns = 0;
	tell_back(feed, lost);
}

/* ---- replies ---- */

/* Of a row that was sent on an earlier connection: that one has arrived. */
static bool is_there_already(const struct sl_feed *feed, const struct sl_redis_reply *reply)
{
	return feed->rows.first < feed->rows.resent && reply->text &&
	       strstr(reply->text, "equal or smaller");
}

static void row_answered(struct sl_feed *feed, const struct sl_redis_reply *reply)
{
	bool refused = reply->error && !is_there_already(feed, reply);
	bool counts = feed->rows.first != feed->end_row;

	feed->missed += refused && counts;
	feed->stored += !refused && counts;
	sl_row_queue_answered(&feed->rows, refused);
	if (refused && !feed->refusal_told) {
		feed->refusal_told = true;
		sl_warn("redis: %s refuses rows, which are counted as rows_missed: %s",
			feed->options.label, reply->text ? reply->text : "");
	}
}

static void replied(void *arg, const struct sl_redis_reply *reply)
{
	struct sl_feed *feed = arg;
	uint8_t what;

	if (feed->broken)
		return;
	if (feed->answered == feed->asked) {
		give_up(feed, "it answers what it was not asked");
		return;
	}
	what = feed->command[feed->answered++ % SL_FEED_COMMANDS];
	feed->progress_ns = sl_clock_ns();
	if (what == ROW)
		row_answered(feed, reply);
	else if (reply->error)
		give_up(feed, reply->text ? reply->text : "an error without words");
	else if (what == LAST)
		resume(feed, reply->text);
}

/* ---- progress ---- */

static void send_state(struct sl_feed *feed, uint64_t now_ns)
{
	uint32_t commands;

	if (feed->described_ns && now_ns - feed->described_ns < DESCRIBE_NS)
		return;
	commands = feed->options.describe(feed->options.arg, &feed->redis.out, !feed->known);
	for (uint32_t i = 0; i < commands; i++)
		asked(feed, STATE);
	feed->known = true;
	feed->described_ns = now_ns;
}

static void send_rows(struct sl_feed *feed)
{
	while (feed->asked - feed->answered < SL_FEED_WINDOW &&
	       feed->redis.out.length < OUT_BYTES) {
		const struct sl_waiting_row *row = sl_row_queue_next(&feed->rows);

		if (!row)
			return;
		sl_command_raw(&feed->redis.out, row->bytes, row->length);
		asked(feed, ROW);
	}
}

static bool is_silent(const struct sl_feed *feed, uint64_t now_ns)
{
	return feed->asked != feed->answered &&
	       now_ns - feed->progress_ns > feed->options.timeout_ns;
}

static void check(struct sl_feed *feed, int err, uint64_t now_ns)
{
	char why[sizeof(feed->redis.why)];

	if (!err && feed->broken)
		err = -EIO;
	if (!err && now_ns > feed->progress_ns && is_silent(feed, now_ns)) {
		snprintf(feed->redis.why, sizeof(feed->redis.why), "no answer for %g s",
			 (double)feed->options.timeout_ns * 1e-9);
		err = -ETIMEDOUT;
	}
	if (!err)
		return;
	snprintf(why, sizeof(why), "%s", feed->redis.why);
	go_away(feed, why);
}

/* One step; waits at most wait_ms for the peer. */
static void step(struct sl_feed *feed, int wait_ms)
{
	uint64_t now_ns = sl_clock_ns();

	feed->looked_ns = now_ns;
	if (feed->state == SL_FEED_AWAY && now_ns >= feed->try_ns)
		connect_again(feed);
	if (feed->state == SL_FEED_AWAY)
		return;
	if (feed->state == SL_FEED_READY) {
		send_state(feed, now_ns);
		send_rows(feed);
	}
	check(feed, sl_redis_progress(&feed->redis, wait_ms, replied, feed), sl_clock_ns());
}

/* Two steps, as the first may find replies that make room. */
void sl_feed_look(struct sl_feed *feed)
{
	step(feed, 0);
	if (feed->state == SL_FEED_READY && feed->rows.sent != feed->rows.end)
		step(feed, 0);
}

static bool is_done(const struct sl_feed *feed)
{
	return feed->state == SL_FEED_READY && feed->rows.first == feed->rows.end &&
	       feed->asked == feed->answered;
}

/* Until everything is answered, Redis is away, or the time is up. */
static bool finish(struct sl_feed *feed, uint64_t until_ns)
{
	while (!is_done(feed) && feed->state != SL_FEED_AWAY && sl_clock_ns() < until_ns)
		step(feed, WAIT_MS);
	return is_done(feed);
}

/* What waits is missed. */
static void drop_waiting(struct sl_feed *feed)
{
	while (feed->rows.first != feed->rows.end) {
		feed->missed += feed->rows.first != feed->end_row;
		sl_row_queue_answered(&feed->rows, true);
	}
}

/* ---- calls ---- */

int sl_feed_open(struct sl_feed *feed, const struct sl_feed_options *options)
{
	int r = sl_row_queue_open(&feed->rows, options->queue + 1); /* one for the last entry */
	uint64_t until_ns = sl_clock_ns() + options->timeout_ns;

	feed->options = *options;
	feed->end_row = UINT64_MAX;
	if (r)
		return r;
	while (feed->state != SL_FEED_READY && sl_clock_ns() < until_ns && !feed->told &&
	       options->address[0])
		step(feed, WAIT_MS);
	if (feed->state == SL_FEED_READY) {
		step(feed, 0);
		finish(feed, until_ns);
		return 0;
	}
	if (feed->state == SL_FEED_CONNECTING)
		go_away(feed, "it does not answer");
	return options->required ? -ECONNREFUSED : 0;
}

void sl_feed_close(struct sl_feed *feed)
{
	sl_redis_close(&feed->redis);
	sl_command_free(&feed->redis.out);
	sl_row_queue_close(&feed->rows);
}

void sl_feed_miss(struct sl_feed *feed)
{
	feed->missed++;
	if (sl_clock_ns() - feed->looked_ns >= LOOK_NS)
		sl_feed_look(feed);
}

int sl_feed_add(struct sl_feed *feed, const char *bytes, size_t length)
{
	uint64_t unsent;
	int r = feed->rows.end - feed->rows.first >= feed->options.queue
			? -ENOBUFS
			: sl_row_queue_push(&feed->rows, bytes, length);

	if (r) {
		sl_feed_miss(feed);
		return r;
	}
	unsent = feed->rows.end - feed->rows.sent;
	if (sl_clock_ns() - feed->looked_ns >= LOOK_NS ||
	    (feed->state == SL_FEED_READY &&
	     (feed->asked == feed->answered || unsent % ROWS_AT_ONCE == 0)))
		sl_feed_look(feed);
	return 0;
}

int sl_feed_sync(struct sl_feed *feed)
{
	if (feed->state == SL_FEED_READY && finish(feed, sl_clock_ns() + feed->options.timeout_ns))
		return 0;
	if (feed->state == SL_FEED_READY)
		go_away(feed, "it does not answer");
	drop_waiting(feed);
	return -EIO;
}

void sl_feed_end(struct sl_feed *feed, const struct sl_command *last)
{
	uint64_t until_ns = sl_clock_ns() + feed->options.timeout_ns;

	if (last && !last->error) {
		feed->end_row = feed->rows.end;
		if (sl_row_queue_push(&feed->rows, last->bytes, last->length))
			feed->end_row = UINT64_MAX;
	}
	feed->try_ns = 0;
	step(feed, 0);
	finish(feed, until_ns);
	drop_waiting(feed);
	feed->described_ns = 0; /* now that all is counted */
	if (feed->state == SL_FEED_READY)
		step(feed, 0);
	finish(feed, until_ns);
}
