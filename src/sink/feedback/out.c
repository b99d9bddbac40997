/* out.c - packets of answers, out. */
#include "sink/feedback/out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/datathread.h"
#include "base/log.h"
#include "net/net.h"

enum {
	SEND_S = 1,    /* that a full socket may hold up the sinks, once */
	REFUSALS = 16, /* in a row, before a message is given up */
	RUN = 64,      /* packets that kernels cut out of one message, and its bytes */
	RUN_BYTES = 65000,
};

/* Packets that are one message. */
struct sl_feedback_burst {
	uint32_t first, packets;
	union {
		struct cmsghdr header;
		uint8_t bytes[SL_NET_CONTROL_BYTES];
	} control;
};

/* ---- UDP ---- */

static int open_socket(struct sl_feedback_out *out, const union sl_net_address *to, socklen_t bytes)
{
	const struct timeval patience = {.tv_sec = SEND_S};
	int err;

	out->message = calloc(out->packets, sizeof(*out->message));
	out->iov = calloc(out->packets, sizeof(*out->iov));
	out->run = calloc(out->packets, sizeof(*out->run));
	if (!out->message || !out->iov || !out->run)
		return -ENOMEM;
	out->fd = socket(to->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (out->fd < 0)
		return -errno;
	setsockopt(out->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	out->segments = sl_net_segments(out->fd);
	/* Connected, so that it is told when nobody listens. */
	if (connect(out->fd, &to->any, bytes) == 0)
		return 0;
	err = -errno;
	sl_error("feedback: no way to %s, port %u: %s", out->to.address, out->to.port,
		 strerror(-err));
	return err;
}

static void tell_why(struct sl_feedback_out *out)
{
	sl_error("feedback: answers cannot be sent to %s, port %u: %s", out->to.address,
		 out->to.port, strerror(out->why));
	out->told = true;
}

static void give_up(struct sl_feedback_out *out, const struct sl_feedback_packet *packet,
		    uint32_t n, int err)
{
	if (!out->why)
		out->why = err;
	if (!out->told && !sl_is_data_thread())
		tell_why(out);
	for (uint32_t i = 0; i < n; i++)
		out->unsent += packet[i].items;
}

/* How many of these packets one message can have: all of a size, the last may have less. */
static uint32_t run_of(const struct sl_feedback_out *out, const struct sl_feedback_packet *packet,
		       uint32_t n)
{
	uint32_t k = 1, most = packet[0].bytes && out->segments ? RUN_BYTES / packet[0].bytes : 1;

	most = most < RUN ? most : RUN;
	while (k < n && k < most && packet[k].bytes <= packet[0].bytes &&
	       packet[k - 1].bytes == packet[0].bytes)
		k++;
	return k;
}

/* Packets from `from` on, in as few messages as can be. */
static uint32_t make_messages(struct sl_feedback_out *out, const struct sl_feedback_packet *packet,
			      uint32_t from, uint32_t n)
{
	uint32_t messages = 0;

	for (uint32_t i = from; i < n; messages++) {
		struct sl_feedback_burst *run = &out->run[messages];
		struct msghdr *m = &out->message[messages].msg_hdr;

		run->first = i;
		run->packets = run_of(out, packet + i, n - i);
		*m = (struct msghdr){.msg_iov = &out->iov[i], .msg_iovlen = run->packets};
		if (run->packets > 1)
			sl_net_segment(m, &run->control, (uint16_t)packet[i].bytes);
		for (uint32_t end = i + run->packets; i < end; i++)
			out->iov[i] = (struct iovec){(void *)packet[i].data, packet[i].bytes};
	}
	return messages;
}

/* A way whose packets must be smaller than these, or whose device cannot: one by one, then. */
static bool cannot_cut(const struct sl_feedback_burst *run, int err)
{
	return run->packets > 1 && (err == EINVAL || err == EIO || err == EMSGSIZE);
}

static void send_datagrams(struct sl_feedback_out *out, const struct sl_feedback_packet *packet,
			   uint32_t n)
{
	uint32_t messages = make_messages(out, packet, 0, n), sent = 0;
	unsigned refusals = 0;

	while (sent < messages) {
		const struct sl_feedback_burst *run = &out->run[sent];
		int r = sendmmsg(out->fd, out->message + sent, messages - sent,
				 out->stuck ? MSG_DONTWAIT : 0);

		if (r > 0) {
			sent += (uint32_t)r;
			refusals = 0;
			out->stuck = false;
		} else if (errno == ECONNREFUSED && refusals++ < REFUSALS) {
			out->refused++; /* one before it was; this one has not been sent yet */
		} else if (cannot_cut(run, errno)) {
			out->segments = false;
			messages = make_messages(out, packet, run->first, n);
			sent = 0;
		} else if (errno != EINTR) {
			out->stuck = errno == EAGAIN || errno == EWOULDBLOCK;
			give_up(out, &packet[run->first], run->packets, errno);
			sent++;
		}
	}
}

/* ---- both ---- */

int sl_feedback_out_open(struct sl_feedback_out *out, enum sl_feedback_by by,
			 const struct sl_feedback_sender_options *to,
			 const struct sl_feedback_senders *feedback, uint32_t packets)
{
	union sl_net_address at;
	socklen_t bytes = sl_net_numeric(to->address, to->port, &at);

	*out = (struct sl_feedback_out){
		.by = by, .to = *to, .packets = packets, .fd = -1, .feedback = feedback};
	if (!bytes) {
		sl_error("feedback: address '%s' is no numeric IPv4 or IPv6 address", to->address);
		return -EINVAL;
	}
	if (by == SL_FEEDBACK_BY_UDP)
		return open_socket(out, &at, bytes);
	if (feedback)
		return feedback->open(feedback, to, &out->back);
	sl_error("feedback: by write: there is no way back here");
	return -ENOTSUP;
}

void sl_feedback_out_send(struct sl_feedback_out *out, const struct sl_feedback_packet *packet,
			  uint32_t n)
{
	uint32_t taken;

	if (out->by == SL_FEEDBACK_BY_UDP) {
		send_datagrams(out, packet, n);
		return;
	}
	taken = out->feedback->send(out->back, packet, n);
	for (uint32_t i = taken; i < n; i++)
		out->unsent += packet[i].items;
}

void sl_feedback_out_close(struct sl_feedback_out *out)
{
	if (out->back)
		out->unsent += out->feedback->close(out->back);
	out->back = NULL;
	if (out->why && !out->told)
		tell_why(out);
	if (out->fd >= 0)
		close(out->fd);
	out->fd = -1;
	free(out->message);
	free(out->iov);
	free(out->run);
	out->message = NULL;
	out->iov = NULL;
	out->run = NULL;
}
