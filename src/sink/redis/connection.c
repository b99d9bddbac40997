/* connection.c - hiredis connects and reads replies; sending is done here, without SIGPIPE and
 * without waiting. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "sink/redis/connection.h"

enum { READ_BYTES = 64 << 10 };

static int fail(struct sl_redis *redis, int err, const char *why)
{
	snprintf(redis->why, sizeof(redis->why), "%s", why ? why : strerror(-err));
	sl_redis_close(redis);
	return err;
}

bool sl_redis_is_path(const char *address)
{
	return strchr(address, '/') != NULL;
}

int sl_redis_look_up(const char *name, char *address, size_t bytes, char *why, size_t why_bytes)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	int r;

	if (sl_redis_is_path(name)) {
		snprintf(address, bytes, "%s", name);
		return 0;
	}
	r = getaddrinfo(name, NULL, &hints, &found);
	if (!r)
		r = getnameinfo(found->ai_addr, found->ai_addrlen, address, (socklen_t)bytes, NULL,
				0, NI_NUMERICHOST);
	if (found)
		freeaddrinfo(found);
	if (!r)
		return 0;
	snprintf(why, why_bytes, "%s", gai_strerror(r));
	return -EINVAL;
}

int sl_redis_connect(struct sl_redis *redis, const char *address, uint16_t port)
{
	sl_redis_close(redis);
	redis->context = sl_redis_is_path(address) ? redisConnectUnixNonBlock(address)
						   : redisConnectNonBlock(address, port);
	if (!redis->context)
		return fail(redis, -ENOMEM, NULL);
	if (redis->context->err) {
		int err = errno > 0 ? -errno : -EIO;
		char why[sizeof(redis->context->errstr)];

		snprintf(why, sizeof(why), "%s", redis->context->errstr);
		return fail(redis, err, why);
	}
	return 0;
}

void sl_redis_close(struct sl_redis *redis)
{
	if (redis->context)
		redisFree(redis->context);
	redis->context = NULL;
	redis->connected = false;
	redis->out_sent = 0;
	if (redis->out.bytes) /* a password may have been there */
		explicit_bzero(redis->out.bytes, redis->out.length);
	sl_command_clear(&redis->out);
}

static int wait_for(const struct sl_redis *redis, short events, int wait_ms)
{
	struct pollfd pollfd = {.fd = redis->context->fd, .events = events};

	return poll(&pollfd, 1, wait_ms) > 0 ? pollfd.revents : 0;
}

static int finish_connecting(struct sl_redis *redis, int wait_ms)
{
	int err = 0;
	socklen_t bytes = sizeof(err);

	if (!wait_for(redis, POLLOUT, wait_ms))
		return 0;
	if (getsockopt(redis->context->fd, SOL_SOCKET, SO_ERROR, &err, &bytes))
		err = errno;
	if (err)
		return fail(redis, -err, NULL);
	redis->connected = true;
	return 0;
}

static bool is_sent(const struct sl_redis *redis)
{
	return redis->out_sent == redis->out.length;
}

static int flush(struct sl_redis *redis)
{
	if (redis->out.error)
		return fail(redis, redis->out.error, NULL);
	while (!is_sent(redis)) {
		ssize_t n = send(redis->context->fd, redis->out.bytes + redis->out_sent,
				 redis->out.length - redis->out_sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return 0;
		if (n < 0)
			return fail(redis, -errno, NULL);
		redis->out_sent += (size_t)n;
	}
	sl_command_clear(&redis->out);
	redis->out_sent = 0;
	return 0;
}

static const char *first_text(const redisReply *reply)
{
	while (reply && reply->type == REDIS_REPLY_ARRAY)
		reply = reply->elements ? reply->element[0] : NULL;
	if (!reply || reply->type == REDIS_REPLY_NIL || reply->type == REDIS_REPLY_INTEGER)
		return NULL;
	return reply->str;
}

static int hand_over(struct sl_redis *redis, sl_redis_replied *replied, void *arg)
{
	for (;;) {
		struct sl_redis_reply reply;
		redisReply *one = NULL;

		if (redisGetReplyFromReader(redis->context, (void **)&one) != REDIS_OK)
			return fail(redis, -EPROTO, "the answer is not of Redis");
		if (!one)
			return 0;
		reply.error = one->type == REDIS_REPLY_ERROR;
		reply.text = first_text(one);
		replied(arg, &reply);
		freeReplyObject(one);
	}
}

/* Sets *any when something came. */
static int take(struct sl_redis *redis, sl_redis_replied *replied, void *arg, bool *any)
{
	char bytes[READ_BYTES];
	ssize_t n;
	int r = 0;

	do {
		n = recv(redis->context->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return 0;
		if (n < 0)
			return fail(redis, -errno, NULL);
		if (!n)
			return fail(redis, -ECONNRESET, "it closed the connection");
		*any = true;
		if (redisReaderFeed(redis->context->reader, bytes, (size_t)n) != REDIS_OK)
			return fail(redis, -ENOMEM, NULL);
		r = hand_over(redis, replied, arg);
	} while (!r && n == sizeof(bytes));
	return r;
}

int sl_redis_progress(struct sl_redis *redis, int wait_ms, sl_redis_replied *replied, void *arg)
{
	bool any = false;
	int r = 0;

	if (!redis->context)
		return -ENOTCONN;
	if (!redis->connected)
		r = finish_connecting(redis, wait_ms);
	if (r || !redis->connected)
		return r;
	r = flush(redis);
	if (!r)
		r = take(redis, replied, arg, &any);
	if (r || any || !wait_ms)
		return r;
	wait_for(redis, (short)(POLLIN | (is_sent(redis) ? 0 : POLLOUT)), wait_ms);
	r = flush(redis);
	return r ? r : take(redis, replied, arg, &any);
}
