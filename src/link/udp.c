/* udp.c - RoCEv2 in user space over ordinary UDP sockets: opening, offering, accepting. No
 * privilege, no special NIC. udp_receive.c and udp_send.c are the data path. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "link/udp.h"

enum {
	HEADERS = 20 + 8 + 32 + 4, /* IPv4, UDP, BTH with RETH and immediate, ICRC */
	SKB_EXTRA = 400,	   /* head room and shared info */
	SKB_HEAD = 256,
	WINDOW_MAX = 2 << 20,
	WINDOW_PACKETS_MIN = 2, /* per module: one would wait for its own credit */
};

static const struct sl_option options[] = {
	SL_STRING(struct sl_udp, listen, "127.0.0.1", "IPv4 address the receiver takes data on"),
	SL_U32(struct sl_udp, port, 4791, 1, 65535, "", "UDP port; RoCEv2 has 4791"),
	SL_STRING(struct sl_udp, source, "127.0.0.1", "IPv4 address the front end sends from"),
	SL_U64(struct sl_udp, receive_buffer, 0, 0, 1073741823, "bytes",
	       "socket receive buffer; 0: as much as this host allows"),
	SL_U64(struct sl_udp, window, 0, 0, 4294967296.0, "bytes",
	       "most in flight over all modules; 0: what half the receive buffer surely holds, "
	       "at most 2 MiB"),
	SL_OPTION_END,
};

uint32_t sl_udp_random(void)
{
	uint32_t value;

	/* Keys must not be guessable; without the kernel's generator there is no safe fallback. */
	if (getrandom(&value, sizeof(value), 0) != sizeof(value))
		abort();
	return value;
}

void sl_udp_gid(const struct in_addr *ip, uint8_t gid[SL_ROCE_GID_BYTES])
{
	memset(gid, 0, 10);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, ip, 4);
}

struct in_addr sl_udp_ip(const uint8_t gid[SL_ROCE_GID_BYTES])
{
	struct in_addr ip;

	memcpy(&ip, gid + 12, 4);
	return ip;
}

const struct sl_roce_key *sl_udp_key_of(void *arg, uint32_t rkey)
{
	const struct sl_roce_key *key = arg;

	return key->rkey == rkey ? key : NULL;
}

static int parse_address(const char *key, const char *text, struct in_addr *ip)
{
	if (inet_pton(AF_INET, text, ip) == 1 && ip->s_addr != htonl(INADDR_ANY))
		return 0;
	sl_error("link.udp: %s: '%s' is not the IPv4 address of one interface; the checksum of "
		 "every packet covers it, so 0.0.0.0 will not do",
		 key, text);
	return -EINVAL;
}

int sl_udp_socket(const struct sockaddr_in *bind_to)
{
	int discover = IP_PMTUDISC_DO, err;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	char text[INET_ADDRSTRLEN];

	if (fd < 0) {
		err = -errno;
		sl_error("cannot open a UDP socket: %s (ulimit -n?)", strerror(-err));
		return err;
	}
	if (setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover)) < 0 ||
	    bind(fd, (const struct sockaddr *)bind_to, sizeof(*bind_to)) < 0)
		goto undo_fd;
	return fd;

undo_fd:
	err = -errno;
	inet_ntop(AF_INET, &bind_to->sin_addr, text, sizeof(text));
	if (err == -EADDRINUSE)
		sl_error("%s:%u is in use: another receiver runs there, or the kernel's Soft-RoCE "
			 "(rdma_rxe) owns the port; stop it, or set link.listen to another address",
			 text, ntohs(bind_to->sin_port));
	else
		sl_error("cannot bind UDP %s:%u: %s", text, ntohs(bind_to->sin_port),
			 strerror(-err));
	close(fd);
	return err;
}

/* As large as asked for, as far as the host allows; what we got decides the window. */
static uint64_t enlarge_buffer(int fd, uint64_t want)
{
	int bytes = (int)(want ? want : 64u << 20);
	socklen_t size = sizeof(bytes);

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size) < 0)
		return 0;
	return (uint64_t)bytes;
}

/* What a packet costs of the receive buffer: the kernel counts the memory it takes, not its length.
 * Measured on loopback, Linux 6.18: the packet and some 400 bytes, rounded up to a power of two,
 * and 256 more; 8448 for a payload of 4096. */
static uint64_t buffer_cost(uint64_t payload)
{
	uint64_t need = payload + HEADERS + SKB_EXTRA, cost = 512;

	while (cost < need)
		cost *= 2;
	return cost + SKB_HEAD;
}

/* Half the buffer in bytes of blocks, by what the packets of a block cost; but no more than
 * stays in cache between the kernel's copy and ours. */
static uint64_t safe_window(uint64_t buffer_bytes, const struct sl_plan *plan)
{
	uint64_t tail = plan->block_bytes - (plan->packets - 1) * (uint64_t)plan->pmtu;
	uint64_t cost = (plan->packets - 1) * buffer_cost(plan->pmtu) + buffer_cost(tail);
	uint64_t window =
		(uint64_t)((double)buffer_bytes / 2 / (double)cost * (double)plan->block_bytes);

	return window < WINDOW_MAX ? window : WINDOW_MAX;
}

static void set_window(const struct sl_udp *udp, struct sl_plan *plan)
{
	uint64_t least = WINDOW_PACKETS_MIN * (uint64_t)plan->pmtu;

	plan->window_bytes = (udp->window ? udp->window : safe_window(udp->buffer_bytes, plan)) /
			     udp->env.ring->modules;
	if (plan->window_bytes >= least || plan->window_bytes >= plan->block_bytes)
		return;
	plan->window_bytes = least;
	if (plan->module == 0 && !udp->window)
		sl_warn("a receive buffer of %llu bytes is small for %u modules; if packets get "
			"lost: sudo sysctl -w net.core.rmem_max=%d",
			(unsigned long long)udp->buffer_bytes, udp->env.ring->modules, 64 << 20);
}

static int open_receiver(struct sl_udp *udp)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)udp->port)};
	int err = parse_address("listen", udp->listen, &at.sin_addr);

	if (err)
		return err;
	udp->queue = calloc(SL_UDP_TRANSFERS, sizeof(*udp->queue));
	if (!udp->queue)
		return -ENOMEM;
	udp->fd = sl_udp_socket(&at);
	if (udp->fd < 0)
		return udp->fd;
	udp->buffer_bytes = enlarge_buffer(udp->fd, udp->receive_buffer);
	sl_udp_gid(&at.sin_addr, udp->local);
	/* Usable numbers are 2..0xfffffe, with room for all our queues. */
	udp->qpn_base = 16 + sl_udp_random() % (0xffff00 - SL_UDP_TRANSFERS);
	return 0;
}

static int open_source(struct sl_udp *udp)
{
	struct in_addr ip;
	int err = parse_address("source", udp->source, &ip);

	if (err)
		return err;
	sl_udp_gid(&ip, udp->local);
	udp->send = calloc(SL_UDP_TRANSFERS, sizeof(*udp->send));
	return udp->send ? 0 : -ENOMEM;
}

static int udp_open(void *state, const struct sl_link_env *env)
{
	struct sl_udp *udp = state;

	udp->fd = -1;
	udp->env = *env;
	udp->buffers = calloc(1, sizeof(*udp->buffers));
	if (!udp->buffers)
		return -ENOMEM;
	return env->ring ? open_receiver(udp) : open_source(udp);
}

static void udp_close(void *state)
{
	struct sl_udp *udp = state;

	for (uint32_t i = 0; udp->queue && i < udp->queues; i++)
		sl_placer_fini(&udp->queue[i].placer);
	for (uint32_t i = 0; udp->send && i < udp->sources; i++)
		close(udp->send[i].fd);
	if (udp->buffers && udp->fd >= 0)
		close(udp->fd);
	free(udp->queue);
	free(udp->send);
	free(udp->buffers);
	udp->queue = NULL;
	udp->send = NULL;
	udp->buffers = NULL;
}

/* The largest path MTU there is that is no larger than either; 0: none. */
static uint16_t pmtu_for(uint16_t wanted, uint16_t most)
{
	uint16_t pmtu = SL_ROCE_PMTU_MAX;

	while (pmtu >= 256 && (pmtu > wanted || pmtu > most))
		pmtu /= 2;
	return pmtu >= 256 ? pmtu : 0;
}

static void describe_plan(const struct sl_udp *udp, const struct sl_offer *offer, uint32_t index,
			  struct sl_plan *plan)
{
	const struct sl_ring *ring = udp->env.ring;

	*plan = (struct sl_plan){
		.version = SL_PLAN_VERSION,
		.transfer = (uint16_t)index,
		.module = offer->module,
		.service = SL_SERVICE_UC,
		.operation = SL_OPERATION_WRITE,
		.message = udp->env.message & offer->messages,
		.pmtu = pmtu_for(udp->env.pmtu, offer->max_pmtu),
		.ip_id = offer->ip_id,
		.crc = udp->env.crc,
		.qpn = udp->qpn_base + index,
		.rkey = sl_udp_random(),
		.first_psn = sl_udp_random() & 0xffffff,
		.slots = ring->slots,
		/* Addresses on the wire are offsets from a random base: a peer learns nothing of
		 * our layout. */
		.base = (uint64_t)(sl_udp_random() & 0x7fff) << 32,
		.stride = ring->slot_stride,
		.block_at = offer->module * ring->block_stride,
		.block_bytes = ring->block_bytes,
		.first_sequence = 0,
		.source = offer->source,
		.credit_qpn = offer->credit_qpn,
		.credit_rkey = offer->credit_rkey,
		.credit_va = offer->credit_va,
		.credit_port = offer->credit_port,
	};
	plan->packets = sl_roce_packets((uint32_t)plan->block_bytes, plan->pmtu);
	set_window(udp, plan);
	memcpy(plan->dest.ip, udp->local, sizeof(plan->dest.ip));
	plan->dest.port = (uint16_t)udp->port;
}

/* One that was dropped, or a new one. Front ends come and go only before the start, when no poller
 * runs. */
static uint32_t free_queue(const struct sl_udp *udp)
{
	uint32_t index = 0;

	while (index < udp->queues &&
	       atomic_load_explicit(&udp->queue[index].active, memory_order_relaxed))
		index++;
	return index;
}

static int udp_accept(void *state, const struct sl_offer *offer, struct sl_plan *plan)
{
	struct sl_udp *udp = state;
	uint32_t index = free_queue(udp);
	struct sl_udp_queue *queue = &udp->queue[index];
	int err;

	if (index == SL_UDP_TRANSFERS)
		return -ENOSPC;
	if (offer->module >= udp->env.ring->modules || !(offer->services & SL_SERVICE_UC) ||
	    !(offer->messages & udp->env.message) ||
	    offer->block_bytes != udp->env.ring->block_bytes || offer->max_pmtu < 256)
		return -EINVAL;
	describe_plan(udp, offer, index, &queue->plan);
	if (!sl_roce_pmtu_valid(queue->plan.pmtu))
		return -EINVAL;

	queue->responder = (struct sl_roce_responder){
		.transport = SL_ROCE_UC,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = queue->plan.qpn,
		.pmtu = queue->plan.pmtu,
		.access = SL_ROCE_REMOTE_WRITE,
		.expected_psn = queue->plan.first_psn,
		.receives = SL_ROCE_RECEIVES_UNLIMITED,
	};
	memcpy(queue->responder.peer, offer->source.ip, sizeof(queue->responder.peer));
	memcpy(queue->responder.local, udp->local, sizeof(queue->responder.local));
	queue->key = (struct sl_roce_key){
		.rkey = queue->plan.rkey,
		.access = SL_ROCE_REMOTE_WRITE,
		.base = queue->plan.base,
		.bytes = (uint64_t)udp->env.ring->slots * udp->env.ring->slot_stride,
	};
	queue->credit = (struct sl_credit){.window = queue->plan.window_bytes};
	if (sl_roce_responder_init(&queue->responder))
		return -EINVAL;
	sl_placer_fini(&queue->placer); /* of who had the queue before */
	queue->heard = queue->heard_ns = queue->credit_psn = 0;
	atomic_store(&queue->reported, 0);
	err = sl_placer_init(&queue->placer, udp->env.ring, udp->env.counters, &queue->plan);
	if (err)
		return err;
	udp->any_id |= offer->ip_id != SL_IP_ID_ZERO;
	*plan = queue->plan;
	if (index == udp->queues)
		udp->queues++;
	/* Release: pairs with the acquire in udp_receive.c; the poller may already be running. */
	atomic_store_explicit(&queue->active, 1, memory_order_release);
	return 0;
}

static void udp_reported(void *state, uint16_t transfer, uint64_t position)
{
	struct sl_udp *udp = state;

	if (transfer < udp->queues)
		atomic_store_explicit(&udp->queue[transfer].reported, position,
				      memory_order_release);
}

static void udp_drop(void *state, uint16_t transfer)
{
	struct sl_udp *udp = state;

	if (transfer < udp->queues)
		atomic_store_explicit(&udp->queue[transfer].active, 0, memory_order_release);
}

static int udp_offer(void *state, struct sl_offer *offer)
{
	struct sl_udp *udp = state;
	struct sl_udp_source *source = &udp->send[udp->sources];
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = sl_udp_ip(udp->local)};
	socklen_t size = sizeof(at);
	int fd;

	if (udp->sources == SL_UDP_TRANSFERS)
		return -ENOSPC;
	fd = sl_udp_socket(&at);
	if (fd < 0)
		return fd;
	if (getsockname(fd, (struct sockaddr *)&at, &size) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	*source = (struct sl_udp_source){.fd = fd, .cursor = {.done = true}};
	offer->services = SL_SERVICE_UC;
	offer->operations = SL_OPERATION_WRITE;
	offer->messages = SL_MESSAGE_PACKET | SL_MESSAGE_MODULE;
	offer->max_pmtu = SL_ROCE_PMTU_MAX;
	offer->ip_id = SL_IP_ID_ZERO;
	memcpy(offer->source.ip, udp->local, sizeof(offer->source.ip));
	offer->source.port = ntohs(at.sin_port);
	offer->credit_port = offer->source.port;
	offer->credit_qpn = 16 + sl_udp_random() % 0xffff00;
	offer->credit_rkey = sl_udp_random();
	offer->credit_va = ((uint64_t)sl_udp_random() << 8) + 8; /* 0 would mean: no credits */
	source->offer = *offer;
	udp->sources++;
	return 0;
}

static int udp_connect(void *state, const struct sl_plan *plan)
{
	struct sl_udp *udp = state;
	struct sl_udp_source *source = NULL;

	for (uint32_t i = 0; i < udp->sources && !source; i++)
		if (udp->send[i].offer.source.port == plan->source.port)
			source = &udp->send[i];
	if (!source || !sl_roce_pmtu_valid(plan->pmtu))
		return -EINVAL;

	source->plan = *plan;
	source->dest = (struct sockaddr_in){.sin_family = AF_INET,
					    .sin_port = htons(plan->dest.port),
					    .sin_addr = sl_udp_ip(plan->dest.ip)};
	source->path = (struct sl_roce_path){.source_port = plan->source.port,
					     .dest_port = plan->dest.port,
					     .dont_fragment = true};
	memcpy(source->path.source, udp->local, SL_ROCE_GID_BYTES);
	memcpy(source->path.dest, plan->dest.ip, SL_ROCE_GID_BYTES);
	source->credit_path = (struct sl_roce_path){.source_port = plan->dest.port,
						    .dest_port = plan->source.port,
						    .dont_fragment = true};
	memcpy(source->credit_path.source, plan->dest.ip, SL_ROCE_GID_BYTES);
	memcpy(source->credit_path.dest, udp->local, SL_ROCE_GID_BYTES);

	source->responder = (struct sl_roce_responder){
		.transport = SL_ROCE_UC,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = source->offer.credit_qpn,
		.pmtu = plan->pmtu,
		.access = SL_ROCE_REMOTE_WRITE,
	};
	memcpy(source->responder.peer, plan->dest.ip, SL_ROCE_GID_BYTES);
	memcpy(source->responder.local, udp->local, SL_ROCE_GID_BYTES);
	source->key = (struct sl_roce_key){.rkey = source->offer.credit_rkey,
					   .access = SL_ROCE_REMOTE_WRITE,
					   .base = source->offer.credit_va,
					   .bytes = sizeof(source->granted)};
	return sl_roce_responder_init(&source->responder) ? -EINVAL : 0;
}

static enum sl_proof udp_proof(uint16_t service, uint16_t message)
{
	(void)service;
	(void)message;
	return SL_PROOF_PACKET_COUNT;
}

const struct sl_link sl_link_udp = {
	.name = "udp",
	.doc = "RoCEv2 UC writes over ordinary UDP sockets; any NIC, no privilege",
	.wire = "roce",
	.state_bytes = sizeof(struct sl_udp),
	.options = options,
	.services = SL_SERVICE_UC,
	.operations = SL_OPERATION_WRITE,
	.messages = SL_MESSAGE_PACKET | SL_MESSAGE_MODULE,
	.message = SL_MESSAGE_PACKET,
	.proof = udp_proof,
	.guards = SL_GUARD_ENFORCED | SL_GUARD_CREDITED,
	.places = SL_REGION_HOST,
	.open = udp_open,
	.close = udp_close,
	.accept = udp_accept,
	.poll = sl_udp_poll,
	.wait = sl_udp_wait,
	.reported = udp_reported,
	.drop = udp_drop,
	.offer = udp_offer,
	.connect = udp_connect,
	.post = sl_udp_post,
	.reap = sl_udp_reap,
};
