/* remote_open.c - a share for other hosts: its listener, its secret, and the memory that followers
 * may READ. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/file/secret_file.h"
#include "share/remote.h"

enum { BACKLOG = 64, SECRET_LEAST = 16 };

/* ---- where it listens ---- */

static int find_address(const char *listen_at, union sl_net_address *at, socklen_t *at_bytes,
			char *why, size_t why_bytes)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	char host[SL_SHARE_REMOTE_HOST], digits[8];
	struct addrinfo *found;
	uint16_t port;
	int failed;

	if (!sl_share_remote_place(listen_at, host, &port, NULL)) {
		snprintf(why, why_bytes, "listen: '%s' is not HOST:PORT or [IPV6]:PORT", listen_at);
		return -EINVAL;
	}
	snprintf(digits, sizeof(digits), "%u", port);
	failed = getaddrinfo(host, digits, &hints, &found);
	if (failed) {
		snprintf(why, why_bytes, "listen: %s: %s", host, gai_strerror(failed));
		return -EINVAL;
	}
	*at_bytes = found->ai_addrlen < sizeof(*at) ? found->ai_addrlen : sizeof(*at);
	memset(at, 0, sizeof(*at));
	memcpy(at, found->ai_addr, *at_bytes);
	freeaddrinfo(found);
	return 0;
}

static bool is_one_interface(const uint8_t address[SL_NET_GID_BYTES])
{
	static const uint8_t any4[SL_NET_GID_BYTES] = {[10] = 0xff, 0xff};
	static const uint8_t any6[SL_NET_GID_BYTES];

	return memcmp(address, any4, sizeof(any4)) && memcmp(address, any6, sizeof(any6)) &&
	       !(address[0] == 0xfe && (address[1] & 0xc0) == 0x80);
}

static int open_listener(const union sl_net_address *at, socklen_t bytes, char *why,
			 size_t why_bytes)
{
	int fd = socket(at->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (fd >= 0 && !bind(fd, &at->any, bytes) && !listen(fd, BACKLOG))
		return fd;
	err = -errno;
	snprintf(why, why_bytes, "listen: %s", strerror(-err));
	if (fd >= 0)
		close(fd);
	return err;
}

/* UDP on the same port, so that one rule of a firewall lets both in; on another, where a program
 * has that one. */
static int open_transport(struct sl_share *share, const char *device,
			  const uint8_t address[SL_NET_GID_BYTES], uint16_t port, char *why,
			  size_t why_bytes)
{
	struct sl_share_remote *r = share->remote;
	uint32_t peers = share->max_peers;
	int err;

	if (device)
		return sl_share_rdma_open_nic(device, address, peers, 1, &r->rdma, why, why_bytes);
	err = sl_share_rdma_open_udp(address, port, peers, &r->rdma, why, why_bytes);
	return err == -EADDRINUSE
		       ? sl_share_rdma_open_udp(address, 0, peers, &r->rdma, why, why_bytes)
		       : err;
}

static int read_secret(struct sl_share_remote *r, const struct sl_share_options *options,
		       bool this_host, char *why, size_t why_bytes)
{
	if (options->secret_file)
		return sl_secret_file_read(options->secret_file, r->secret, sizeof(r->secret), why,
					   why_bytes);
	if (this_host)
		return 0;
	snprintf(
		why, why_bytes,
		"listen: other hosts can reach %s, so that a secret is required: set secret_file "
		"to a file of mode 0600 with the same line on both sides ('head -c 32 /dev/urandom "
		"| base64' makes one)",
		options->listen);
	return -EINVAL;
}

static void set_url(struct sl_share *share, const uint8_t address[SL_NET_GID_BYTES], uint16_t port)
{
	char text[SL_NET_TEXT_BYTES];

	sl_net_format(address, text);
	snprintf(share->url, sizeof(share->url),
		 strchr(text, ':') ? "rdma://[%s]:%u/%s" : "rdma://%s:%u/%s", text, port,
		 share->description.name);
}

/* ---- memory ---- */

/* Only what the ring takes of memory that the application brought. */
static int register_memory(struct sl_share *share)
{
	const struct sl_share_header *h = share->memory.header;
	struct sl_share_remote *r = share->remote;
	const struct sl_share_rdma_ops *ops = r->rdma->ops;
	uint64_t bytes = h->count * h->stride;
	int err = ops->expose(r->rdma, share->memory.header, share->memory.bytes, 0,
			      SL_ROCE_REMOTE_READ, &r->region_key);

	r->second_key = 0;
	r->second_bytes = 0;
	if (err || !share->memory.second)
		return err;
	r->second_bytes = h->data_offset + bytes;
	err = ops->expose(r->rdma, share->memory.data, bytes, h->data_offset, SL_ROCE_REMOTE_READ,
			  &r->second_key);
	if (err)
		ops->hide(r->rdma, r->region_key);
	return err;
}

void sl_share_remote_settle(struct sl_share *share)
{
	struct sl_share_remote *r = share->remote;

	if (!r->moved)
		return;
	r->rdma->ops->hide(r->rdma, r->region_key);
	if (r->second_key)
		r->rdma->ops->hide(r->rdma, r->second_key);
	/* There is room: as many keys were given up. Otherwise followers are refused by theirs. */
	if (register_memory(share))
		r->region_key = r->second_key = 0;
	r->moved = false;
	pthread_cond_broadcast(&r->settled);
}

void sl_share_remote_move(struct sl_share *share)
{
	struct sl_share_remote *r = share->remote;

	r->moved = true;
	if (share->unserved)
		sl_share_remote_settle(share);
	sl_share_kick(share);
	while (r->moved)
		pthread_cond_wait(&r->settled, &share->lock);
}

/* ---- the end ---- */

/* A follower that has never connected its queue pairs reads nothing. */
static bool all_finished(const struct sl_share *share)
{
	for (const struct sl_share_peer *peer = share->peer; peer; peer = peer->next)
		if (peer->far && peer->far->queue[0] && !peer->far->finished)
			return false;
	return true;
}

void sl_share_remote_linger(struct sl_share *share)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += SL_SHARE_LINGER_MS / 1000;
	pthread_mutex_lock(&share->lock);
	for (struct sl_share_peer *peer = share->peer; peer; peer = peer->next)
		if (peer->far && peer->id)
			sl_share_out_put(&peer->out, SL_SHARE_FRAME_ENDED, 0, NULL, 0, NULL, 0);
	sl_share_kick(share);
	while (!share->unserved && !all_finished(share) &&
	       !pthread_cond_timedwait(&share->remote->settled, &share->lock, &end))
		;
	pthread_mutex_unlock(&share->lock);
}

/* ---- all of it ---- */

static int start(struct sl_share *share, const struct sl_share_options *options, char *why,
		 size_t why_bytes)
{
	struct sl_share_remote *r = share->remote;
	uint8_t address[SL_NET_GID_BYTES];
	union sl_net_address at;
	socklen_t bytes;
	int err = find_address(options->listen, &at, &bytes, why, why_bytes);

	if (err)
		return err;
	sl_net_gid(&at, address);
	if (!is_one_interface(address)) {
		snprintf(why, why_bytes,
			 "listen: %s is not the address of one interface, which RDMA needs",
			 options->listen);
		return -EINVAL;
	}
	err = read_secret(r, options, sl_net_same_host(&at), why, why_bytes);
	if (err)
		return err;
	r->listener = open_listener(&at, bytes, why, why_bytes);
	if (r->listener < 0)
		return r->listener;
	err = open_transport(share, options->device, address, sl_net_port(r->listener), why,
			     why_bytes);
	if (err)
		return err;
	err = register_memory(share);
	if (err)
		snprintf(why, why_bytes, "its memory: %s%s", strerror(-err),
			 options->device ? "; a NIC pins it, which ulimit -l may not allow" : "");
	set_url(share, address, sl_net_port(r->listener));
	return err;
}

int sl_share_remote_open(struct sl_share *share, const struct sl_share_options *options, char *why,
			 size_t why_bytes)
{
	pthread_condattr_t clock;
	int err;

	share->remote = calloc(1, sizeof(*share->remote));
	if (!share->remote) {
		snprintf(why, why_bytes, "no memory");
		return -ENOMEM;
	}
	share->remote->listener = -1;
	sl_idle_init(&share->remote->idle, SL_POLLING_ADAPTIVE, SL_SHARE_SPIN_NS, true);
	share->remote->greet_ns = SL_SHARE_GREET_MS * UINT64_C(1000000);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&share->remote->settled, &clock);
	pthread_condattr_destroy(&clock);
	err = start(share, options, why, why_bytes);
	if (err)
		sl_share_remote_close(share);
	return err;
}

void sl_share_remote_close(struct sl_share *share)
{
	struct sl_share_remote *r = share->remote;

	if (!r)
		return;
	if (r->rdma)
		r->rdma->ops->close(r->rdma);
	if (r->listener >= 0)
		close(r->listener);
	pthread_cond_destroy(&r->settled);
	memset(r->secret, 0, sizeof(r->secret));
	free(r);
	share->remote = NULL;
}
