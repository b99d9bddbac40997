/* feed.h - rows on their way to a stream of Redis, and a hash with the state of the run, over a
 * connection that may come and go.
 *
 * Model:     rows wait in a queue until Redis has acknowledged them (row_queue.h); up to
 *            SL_FEED_WINDOW are under way at a time. While Redis is away, or does not answer for
 *            `timeout`, rows fill the queue, and a connection is tried once a second. Rows that
 *            find the queue full are missed. After a reconnection the stream's last entry tells
 *            which rows Redis has: the others are sent again, and rows that it had acknowledged and
 *            lost (a server without persistence that was restarted) count as missed.
 *            rows = stored + missed + those that wait, always.
 * Threads:   one at a time.
 * Messages:  one when Redis goes away, one when it is back. */
#ifndef SL_SINK_REDIS_FEED_H
#define SL_SINK_REDIS_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "sink/redis/connection.h"
#include "sink/redis/row_queue.h"

enum { SL_FEED_WINDOW = 512, SL_FEED_COMMANDS = 1024 };

struct sl_feed_options {
	const char *address; /* numeric, or a path; "": it could not be looked up */
	const char *label;   /* what messages call it */
	uint16_t port;
	uint32_t database;
	const char *password; /* "": none */
	const char *stream;   /* the key */
	uint64_t since_ms;    /* entries of this run have no earlier time */
	uint32_t queue;	      /* rows */
	uint64_t timeout_ns;
	bool required; /* for messages */
	/* Adds the commands that write the state of the run, and returns how many. `first`: Redis
	 * has seen none of this run. */
	uint32_t (*describe)(void *arg, struct sl_command *to, bool first);
	void *arg;
};

enum sl_feed_state { SL_FEED_AWAY, SL_FEED_CONNECTING, SL_FEED_READY };

struct sl_feed { /* zeroed: closed */
	struct sl_feed_options options;
	struct sl_redis redis;
	struct sl_row_queue rows;
	enum sl_feed_state state;
	uint8_t command[SL_FEED_COMMANDS]; /* a ring: what replies will be about */
	uint64_t asked, answered;	   /* commands */
	uint64_t try_ns;		   /* away: when to connect again */
	uint64_t progress_ns;		   /* when it last answered, or was asked first */
	uint64_t looked_ns;		   /* when progress was last made */
	uint64_t described_ns;		   /* when the state of the run was last sent */
	uint64_t end_row;	   /* number of the entry that is no row; UINT64_MAX: none */
	bool told;		   /* that it is away */
	bool known;		   /* a connection was ready once */
	bool refusal_told, broken; /* broken: a reply says that this connection is no use */
	uint64_t stored, missed, reconnections;
	uint64_t lost; /* of the missed: acknowledged, and gone after a restart */
};

/* Connects, and waits for that at most `timeout`. -errno: no memory, or Redis is not there and
 * required. Close it even when this failed. */
int sl_feed_open(struct sl_feed *feed, const struct sl_feed_options *options);

/* Forgets all that waits. */
void sl_feed_close(struct sl_feed *feed);

/* Add a row, number feed->rows.end, and send what is due. 0; -ENOBUFS or -ENOMEM: it is missed. */
int sl_feed_add(struct sl_feed *feed, const char *bytes, size_t length);

/* A row that finds no room: it has no number. */
void sl_feed_miss(struct sl_feed *feed);

/* Wait until all rows are acknowledged. -EIO: not within `timeout`, or Redis is away; the rows that
 * wait are then missed. */
int sl_feed_sync(struct sl_feed *feed);

/* Progress without waiting; the state of the run once a second. */
void sl_feed_look(struct sl_feed *feed);

/* The last entry, and the state of the run. Waits at most `timeout` for all that is under way; what
 * remains is missed. NULL: no entry. */
void sl_feed_end(struct sl_feed *feed, const struct sl_command *last);

/* Rows that wait. */
static inline uint64_t sl_feed_waiting(const struct sl_feed *feed)
{
	uint64_t waiting = feed->rows.end - feed->rows.first;

	return waiting - (waiting && feed->end_row < feed->rows.end);
}

#endif
