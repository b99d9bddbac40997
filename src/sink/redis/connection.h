/* connection.h - a connection to Redis that never waits unless it is asked to. The one place with
 * <hiredis/hiredis.h> is connection.c.
 *
 * Model:     connect() begins; progress() finishes connecting, sends what was added, and hands over
 *            replies in the order of their commands. An error closes the connection, and `why` says
 *            what happened.
 * Threads:   one at a time.
 * Signals:   a peer that has gone raises none. */
#ifndef SL_SINK_REDIS_CONNECTION_H
#define SL_SINK_REDIS_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sink/redis/command.h"

struct sl_redis_reply {
	bool error;
	/* A string, status or error; of an array the first string in it. NULL: there is none. */
	const char *text;
};
typedef void sl_redis_replied(void *arg, const struct sl_redis_reply *reply);

struct redisContext;

struct sl_redis {		      /* zeroed: closed */
	struct redisContext *context; /* NULL: closed */
	bool connected;
	struct sl_command out; /* commands on their way */
	size_t out_sent;       /* bytes of them that the kernel has */
	char why[160];	       /* of the last error */
};

/* The address is the path of a Unix socket: it has a '/'. */
bool sl_redis_is_path(const char *address);

/* A name as a numeric address. A path stays as it is. -EINVAL with the reason in `why`. May take
 * seconds. */
int sl_redis_look_up(const char *name, char *address, size_t bytes, char *why, size_t why_bytes);

/* address: numeric, or the path of a Unix socket. -errno: refused at once. */
int sl_redis_connect(struct sl_redis *redis, const char *address, uint16_t port);
void sl_redis_close(struct sl_redis *redis);

/* Commands are added to redis->out, also before it is connected. Waits at most wait_ms for the
 * peer. 0, or -errno and closed. `replied` must not call functions of this header. */
int sl_redis_progress(struct sl_redis *redis, int wait_ms, sl_redis_replied *replied, void *arg);

#endif
