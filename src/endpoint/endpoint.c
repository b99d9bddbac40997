/* endpoint.c - opening, polling, waiting, counting. */
#include "endpoint/endpoint.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "endpoint/state.h"

enum {
	KEYS_DEFAULT = 64,
	KEYS_MAX = 1 << 20,
	QPS_DEFAULT = 64,
	QPS_MAX = 1 << 16,
	RECEIVE_BUFFER = 64 << 20, /* asked for; the host may allow less */
	SEND_BUFFER = 4 << 20,	   /* some batches of the longest packets */
	WINDOW_MAX = 4096,
	/* What a packet costs of the receive buffer: the kernel counts the memory it takes. Seen on
	 * loopback, Linux 6.18: with its headers and 400 bytes more, rounded up to a power of two,
	 * and 256 more. */
	HEADERS = 40 + 8 + SL_ROCE_HEADERS_MAX + SL_ROCE_TRAILER_MAX,
	SKB_EXTRA = 400,
	SKB_HEAD = 256,
};

/* ---- opening ---- */

static uint64_t set_buffer(int fd, int force, int name, uint64_t want)
{
	int bytes = (int)want;
	socklen_t size = sizeof(bytes);

	if (setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, name, &bytes, sizeof(bytes));
	return getsockopt(fd, SOL_SOCKET, name, &bytes, &size) < 0 ? 0 : (uint64_t)bytes;
}

static int open_socket(struct sl_endpoint *endpoint)
{
	const struct sl_endpoint_options *o = &endpoint->options;
	int err = 0;

	endpoint->fd = sl_net_open(o->address, o->port);
	if (endpoint->fd < 0)
		return endpoint->fd;
	if (o->traffic_class)
		err = sl_net_set_class(endpoint->fd, o->traffic_class);
	if (err) {
		sl_error("cannot set the traffic class to %u: %s", o->traffic_class,
			 strerror(-err));
		return err;
	}
	endpoint->port = sl_net_port(endpoint->fd);
	endpoint->segments = !o->fault.decide && sl_net_segments(endpoint->fd);
	sl_net_merge(endpoint->fd);
	endpoint->buffer_bytes = set_buffer(endpoint->fd, SO_RCVBUFFORCE, SO_RCVBUF,
					    o->receive_buffer ? o->receive_buffer : RECEIVE_BUFFER);
	set_buffer(endpoint->fd, SO_SNDBUFFORCE, SO_SNDBUF, SEND_BUFFER);
	return 0;
}

static int check_options(const struct sl_endpoint_options *given, struct sl_endpoint_options *o)
{
	*o = *given;
	if (!o->keys)
		o->keys = KEYS_DEFAULT;
	if (!o->qps)
		o->qps = QPS_DEFAULT;
	if (o->keys <= KEYS_MAX && o->qps <= QPS_MAX && o->receive_buffer <= INT32_MAX)
		return 0;
	sl_error("an endpoint has at most %d keys, %d queue pairs and a receive buffer of 2 GiB",
		 KEYS_MAX, QPS_MAX);
	return -EINVAL;
}

int sl_endpoint_open(const struct sl_endpoint_options *options, struct sl_endpoint **endpoint)
{
	struct sl_endpoint *made = calloc(1, sizeof(*made));
	int err;

	if (!made)
		return -ENOMEM;
	made->fd = -1;
	made->v4 = memcmp(options->address, (const uint8_t[12]){[10] = 0xff, 0xff}, 12) == 0;
	err = check_options(options, &made->options);
	if (!err)
		err = sl_memories_init(made);
	if (!err)
		err = sl_table_init(&made->numbers, made->options.qps);
	if (!err)
		err = sl_receive_queue_init(made);
	if (!err)
		err = sl_out_init(made);
	if (!err)
		err = sl_fault_init(made);
	if (!err)
		err = open_socket(made);
	if (err) {
		sl_endpoint_close(made);
		return err;
	}
	*endpoint = made;
	return 0;
}

void sl_endpoint_close(struct sl_endpoint *endpoint)
{
	if (!endpoint)
		return;
	while (endpoint->qps)
		sl_qp_destroy(endpoint->qps);
	if (endpoint->fd >= 0)
		close(endpoint->fd);
	sl_fault_fini(endpoint);
	sl_out_fini(endpoint);
	sl_receive_queue_fini(endpoint);
	sl_table_fini(&endpoint->numbers);
	sl_memories_fini(endpoint);
	free(endpoint);
}

/* ---- what it is ---- */

uint16_t sl_endpoint_port(const struct sl_endpoint *endpoint)
{
	return endpoint->port;
}

const uint8_t *sl_endpoint_address(const struct sl_endpoint *endpoint)
{
	return endpoint->options.address;
}

bool sl_endpoint_same_family(const struct sl_endpoint *endpoint, const uint8_t *gid)
{
	bool v4 = memcmp(gid, (const uint8_t[12]){[10] = 0xff, 0xff}, 12) == 0;

	return v4 == endpoint->v4;
}

void sl_endpoint_path(const struct sl_endpoint *endpoint, const uint8_t *gid, uint16_t port,
		      struct sl_roce_path *path)
{
	*path = (struct sl_roce_path){
		.source_port = endpoint->port, .dest_port = port, .dont_fragment = true};
	memcpy(path->source, endpoint->options.address, sizeof(path->source));
	memcpy(path->dest, gid, sizeof(path->dest));
}

uint32_t sl_endpoint_window(const struct sl_endpoint *endpoint, uint32_t pmtu)
{
	uint64_t cost = 512, packets;

	while (cost < pmtu + HEADERS + SKB_EXTRA)
		cost *= 2;
	packets = endpoint->buffer_bytes / 2 / (cost + SKB_HEAD);
	if (packets > WINDOW_MAX)
		return WINDOW_MAX;
	return packets ? (uint32_t)packets : 1;
}

void sl_endpoint_count(const struct sl_endpoint *endpoint, struct sl_endpoint_counters *counters)
{
	*counters = endpoint->counters;
}

const char *sl_endpoint_drop_name(unsigned drop)
{
	switch (drop) {
	case SL_ENDPOINT_DROP_MALFORMED:
		return "malformed";
	case SL_ENDPOINT_DROP_ICRC:
		return "icrc";
	case SL_ENDPOINT_DROP_BUSY:
		return "busy";
	default:
		return sl_roce_drop_name((enum sl_roce_drop)drop);
	}
}

/* ---- progress ---- */

int sl_endpoint_poll(struct sl_endpoint *endpoint, uint64_t now, unsigned budget)
{
	unsigned received, sent;

	endpoint->kicked = false;
	sl_out_flush(endpoint);
	received = sl_endpoint_receive_packets(endpoint, now, budget);
	sent = sl_send_packets(endpoint, now, budget);
	/* Who waits now without polling again must not sleep on what is ready. */
	if (sent == budget || sl_fault_holds(endpoint))
		endpoint->kicked = true;
	return (int)(received + sent);
}

int sl_endpoint_fd(const struct sl_endpoint *endpoint)
{
	return endpoint->fd;
}

short sl_endpoint_events(const struct sl_endpoint *endpoint)
{
	return endpoint->out_count ? POLLIN | POLLOUT : POLLIN;
}

uint64_t sl_endpoint_wake(const struct sl_endpoint *endpoint)
{
	return endpoint->kicked ? 0 : sl_send_wake(endpoint);
}

int sl_endpoint_wait(struct sl_endpoint *endpoint, uint64_t now, uint64_t timeout_ns)
{
	struct pollfd fd = {.fd = endpoint->fd, .events = sl_endpoint_events(endpoint)};
	uint64_t wake = sl_endpoint_wake(endpoint), ns = timeout_ns;
	struct timespec limit;

	if (wake != UINT64_MAX && (wake <= now || wake - now < ns))
		ns = wake > now ? wake - now : 0;
	limit.tv_sec = (time_t)(ns / 1000000000);
	limit.tv_nsec = (long)(ns % 1000000000);
	return ppoll(&fd, 1, ns == UINT64_MAX ? NULL : &limit, NULL) < 0 ? -errno : 0;
}

unsigned sl_endpoint_reap(struct sl_endpoint *endpoint, struct sl_qp *qp,
			  struct sl_completion *completions, unsigned most)
{
	unsigned count = 0;

	if (qp)
		return sl_works_reap(qp, completions, most);
	for (uint32_t i = 0; count < most && i < endpoint->numbers.used; i++) {
		qp = endpoint->reap_turn ? endpoint->reap_turn : endpoint->qps;
		endpoint->reap_turn = qp->next;
		count += sl_works_reap(qp, completions + count, most - count);
	}
	return count;
}
