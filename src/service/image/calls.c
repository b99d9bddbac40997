/* calls.c - a request is sent to its process, and what comes back is read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "service/image/images_private.h"
#include "service/image/payload.h"

enum { TRIES = 2 };

/* ---- bodies ---- */

struct body {
	struct sl_image_service *images;
	size_t bytes;
	uint8_t data[];
};

uint8_t *sl_image_body_make(struct sl_image_service *images, size_t bytes)
{
	struct body *body;

	if (atomic_fetch_add(&images->bytes, bytes) + bytes > SL_IMAGE_SERVICE_BYTES ||
	    !(body = malloc(sizeof(*body) + bytes))) {
		atomic_fetch_sub(&images->bytes, bytes);
		return NULL;
	}
	body->images = images;
	body->bytes = bytes;
	return body->data;
}

void sl_image_body_free(void *data)
{
	struct body *body = data ? (struct body *)((uint8_t *)data - offsetof(struct body, data))
				 : NULL;

	if (!body)
		return;
	atomic_fetch_sub(&body->images->bytes, body->bytes);
	free(body);
}

/* ---- ends ---- */

static void remove_call(struct sl_image_service *images, struct sl_image_call *call)
{
	struct sl_image_call **at = &images->call;

	while (*at && *at != call)
		at = &(*at)->next;
	if (*at)
		*at = call->next;
	if (call->fd >= 0)
		close(call->fd);
	free(call);
	pthread_mutex_lock(&images->lock);
	images->calls--;
	pthread_mutex_unlock(&images->lock);
}

static void end(struct sl_image_service *images, struct sl_image_call *call,
		const struct sl_image_answer *answer)
{
	call->done(call->arg, answer);
	remove_call(images, call);
}

void sl_image_call_fail(struct sl_image_service *images, struct sl_image_call *call,
			unsigned status, const char *why)
{
	bool busy = status == 503;
	struct sl_image_payload *p = sl_image_payload_error(status, busy ? "busy" : "not_found",
							    busy ? "try again in a second" : NULL,
							    "%s", why);
	struct sl_image_answer answer = {.status = status};

	sl_image_body_free(call->body);
	call->body = NULL;
	if (p)
		answer.body = sl_image_body_make(images, p->bytes);
	if (answer.body) {
		memcpy(answer.body, p->data, p->bytes);
		answer.bytes = p->bytes;
		answer.type = SL_IMAGE_JSON;
	}
	sl_image_payload_release(p);
	end(images, call, &answer);
}

static void lose_process(struct sl_image_service *images, const struct sl_image_call *call,
			 bool kills)
{
	if (call->child->control >= 0 && call->child->started_ns == call->started_ns)
		sl_image_child_gone(images, call->child, kills);
}

/* The process has ended before it answered: another gets the request, once. */
static int again(struct sl_image_service *images, struct sl_image_call *call)
{
	lose_process(images, call, false);
	if (call->fd >= 0)
		close(call->fd);
	call->fd = -1;
	if (call->got || call->tries >= TRIES) {
		sl_image_call_fail(images, call, 503, "the process that makes images has ended");
		return -1;
	}
	return sl_image_call_begin(images, call);
}

/* ---- there ---- */

static int transmit(const struct sl_image_call *call, int stream)
{
	struct iovec piece = {(void *)call->query, strlen(call->query)};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {.bytes = {0}};
	struct msghdr message = {.msg_iov = &piece,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &stream, sizeof(stream));
	return sendmsg(call->child->control, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno
											: 0;
}

int sl_image_call_begin(struct sl_image_service *images, struct sl_image_call *call)
{
	struct sl_image_refusal refusal;
	int pair[2], err;

	call->tries++;
	call->child = sl_image_child_of(images, call->session, &refusal);
	if (!call->child) {
		sl_image_call_fail(images, call, refusal.status, refusal.why);
		return -1;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair)) {
		sl_image_call_fail(images, call, 503, "the service has too many open files");
		return -1;
	}
	call->started_ns = call->child->started_ns;
	err = transmit(call, pair[1]);
	close(pair[1]);
	call->fd = pair[0];
	if (!err)
		return 0;
	if (err == -EPIPE || err == -ECONNRESET || err == -ENOTCONN)
		return again(images, call);
	sl_image_call_fail(images, call, 503, "too many images are asked for");
	return -1;
}

/* ---- and back ---- */

static int complete(struct sl_image_service *images, struct sl_image_call *call)
{
	const struct sl_image_answer answer = {.status = call->head.status,
					       .type = (enum sl_image_type)call->head.type,
					       .deflated = call->head.deflated,
					       .body = call->body,
					       .bytes = call->head.bytes};

	call->body = NULL;
	end(images, call, &answer);
	return -1;
}

/* 0: go on; -1: the call is gone. */
static int take_head(struct sl_image_service *images, struct sl_image_call *call)
{
	if (!sl_image_head_is_right(&call->head)) {
		lose_process(images, call, true);
		sl_image_call_fail(images, call, 503,
				   "the process that makes images is out of order");
		return -1;
	}
	if (call->child->started_ns == call->started_ns)
		call->child->answered_ns = sl_clock_ns();
	if (!call->head.bytes)
		return complete(images, call);
	call->body = sl_image_body_make(images, call->head.bytes);
	if (call->body)
		return 0;
	sl_image_call_fail(images, call, 503,
			   "viewers have not taken the images that they asked for");
	return -1;
}

static int take(struct sl_image_service *images, struct sl_image_call *call, size_t n)
{
	bool had_head = call->got >= sizeof(call->head);

	call->got += n;
	if (!had_head && call->got == sizeof(call->head))
		return take_head(images, call);
	if (had_head && call->got == sizeof(call->head) + call->head.bytes)
		return complete(images, call);
	return 0;
}

int sl_image_call_read(struct sl_image_service *images, struct sl_image_call *call)
{
	for (;;) {
		bool head = call->got < sizeof(call->head);
		size_t at = head ? call->got : call->got - sizeof(call->head);
		size_t left = (head ? sizeof(call->head) : call->head.bytes) - at;
		uint8_t *to = head ? (uint8_t *)&call->head : call->body;
		ssize_t n = recv(call->fd, to + at, left, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0)
			return again(images, call);
		if (take(images, call, (size_t)n))
			return -1;
	}
}
