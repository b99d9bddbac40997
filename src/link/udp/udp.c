/* udp.c - RoCEv2 in user space over ordinary UDP sockets: options, opening, closing, waiting. No
 * privilege, no special NIC. */
#include "link/udp/udp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc.h"
#include "base/log.h"
#include "base/secret.h"
#include "roce/icrc.h"

enum { PACKETS_MIN = 8 }; /* that a receive buffer must hold */

static const struct sl_option options[] = {
	SL_UDP_OPTIONS_ENDS,
	SL_U64(struct sl_udp, receive_buffer, 0, 0, 1073741823, "bytes",
	       "socket receive buffer; 0: as much as this host allows"),
	SL_UDP_OPTIONS_FLOW,
	SL_OPTION_END,
};

const struct sl_roce_key *sl_udp_key_of(void *arg, uint32_t rkey)
{
	const struct sl_roce_key *key = arg;

	return key->rkey == rkey ? key : NULL;
}

void sl_udp_path_set(struct sl_udp_path *path, const uint8_t source[SL_ROCE_GID_BYTES],
		     uint16_t source_port, const uint8_t dest[SL_ROCE_GID_BYTES],
		     uint16_t dest_port)
{
	path->path = (struct sl_roce_path){
		.source_port = source_port, .dest_port = dest_port, .dont_fragment = true};
	memcpy(path->path.source, source, SL_ROCE_GID_BYTES);
	memcpy(path->path.dest, dest, SL_ROCE_GID_BYTES);
	path->to_bytes = sl_net_address(dest, dest_port, &path->to);
}

bool sl_udp_send_one(int fd, const struct sl_udp_path *path, uint8_t *header, size_t header_bytes,
		     const void *payload, size_t bytes)
{
	struct sl_roce_piece piece = {payload, bytes};
	uint8_t trailer[SL_ROCE_TRAILER_MAX];
	size_t trailer_bytes = sl_roce_seal(&path->path, header, header_bytes, &piece,
					    bytes ? 1 : 0, sl_crc32, trailer);
	struct iovec iov[] = {
		{header, header_bytes}, {(void *)payload, bytes}, {trailer, trailer_bytes}};
	struct msghdr message = {.msg_name = (void *)&path->to,
				 .msg_namelen = path->to_bytes,
				 .msg_iov = iov,
				 .msg_iovlen = 3};

	return sendmsg(fd, &message, MSG_DONTWAIT) >= 0;
}

bool sl_udp_icrc_good(const struct sl_roce_path *path, const uint8_t *data, size_t bytes,
		      enum sl_ip_id ip_id)
{
	uint16_t id;

	if (sl_roce_icrc_check(path, data, bytes, sl_crc32))
		return true;
	return ip_id != SL_IP_ID_ZERO &&
	       sl_roce_icrc_check_any_id(path, data, bytes, sl_crc32, &id) &&
	       (ip_id == SL_IP_ID_ANY || id < SL_UDP_SEGMENTS);
}

/* Beyond net.core.rmem_max only with CAP_NET_ADMIN. The kernel doubles what it is asked for, to pay
 * for its own bookkeeping. */
uint64_t sl_udp_enlarge_buffer(const struct sl_udp *udp, int fd)
{
	struct sl_link_counters *counters = udp->env.counters;
	int bytes = (int)(udp->receive_buffer ? udp->receive_buffer : 64u << 20);
	socklen_t size = sizeof(bytes);
	uint64_t least;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size) < 0)
		return 0;
	least = counters ? atomic_load(&counters->receive_buffer) : 0;
	if (counters && !udp->backend && (!least || (uint64_t)bytes < least))
		atomic_store(&counters->receive_buffer, (uint64_t)bytes);
	return (uint64_t)bytes;
}

static int open_receiver(struct sl_udp *udp)
{
	int err = sl_net_parse("link.listen", udp->listen, udp->local);

	if (err)
		return err;
	udp->queue = calloc(SL_UDP_TRANSFERS, sizeof(*udp->queue));
	if (!udp->queue)
		return -ENOMEM;
	for (unsigned i = 0; i < SL_UDP_TRANSFERS; i++)
		udp->queue[i].fd = -1;
	/* Where packets come another way, this one is for what is sent back. */
	udp->fd = udp->env.handover_fd
			  ? *udp->env.handover_fd
			  : sl_net_open(udp->local, udp->backend ? 0 : (uint16_t)udp->port);
	if (udp->fd < 0)
		return udp->fd;
	udp->in_fd[0] = udp->fd;
	sl_net_set_class(udp->fd, (uint8_t)udp->traffic_class & ~SL_NET_ECN_MASK);
	udp->buffer_bytes = sl_udp_enlarge_buffer(udp, udp->fd);
	if (udp->buffer_bytes < PACKETS_MIN * SL_UDP_PACKET_MAX) {
		sl_error("link.receive_buffer: %llu bytes hold hardly a packet; at least %d, or 0",
			 (unsigned long long)udp->buffer_bytes, PACKETS_MIN * SL_UDP_PACKET_MAX);
		return -EINVAL;
	}
	/* Usable numbers are 2..0xfffffe, with room for all our queues. */
	udp->qpn_base = 16 + sl_secret_u32() % (0xffff00 - SL_UDP_TRANSFERS);
	return 0;
}

static int open_source(struct sl_udp *udp)
{
	int err = sl_net_parse("link.source", udp->source, udp->local);

	if (err)
		return err;
	udp->send = calloc(SL_UDP_TRANSFERS, sizeof(*udp->send));
	if (!udp->send)
		return -ENOMEM;
	if (udp->reply_port)
		udp->fd = sl_net_open(udp->local, (uint16_t)udp->reply_port);
	return udp->fd < -1 ? udp->fd : 0;
}

int sl_udp_open(void *state, const struct sl_link_env *env)
{
	struct sl_udp *udp = state;

	udp->fd = -1;
	for (unsigned i = 0; i < SL_POLLERS; i++)
		udp->in_fd[i] = -1;
	udp->env = *env;
	udp->buffers = calloc(env->ring ? env->pollers : 1, sizeof(*udp->buffers));
	if (!udp->buffers)
		return -ENOMEM;
	return env->ring ? open_receiver(udp) : open_source(udp);
}

void sl_udp_close(void *state)
{
	struct sl_udp *udp = state;

	for (uint32_t i = 0; udp->queue && i < udp->queues; i++) {
		sl_placer_fini(&udp->queue[i].placer);
		if (udp->queue[i].fd >= 0)
			close(udp->queue[i].fd);
	}
	for (uint32_t i = 0; udp->send && i < udp->sources; i++)
		sl_udp_source_close(&udp->send[i]);
	if (udp->buffers && udp->fd >= 0)
		close(udp->fd);
	free(udp->queue);
	free(udp->send);
	free(udp->buffers);
	udp->queue = NULL;
	udp->send = NULL;
	udp->buffers = NULL;
}

void sl_udp_reported(void *state, uint16_t transfer, uint64_t position)
{
	struct sl_udp *udp = state;

	if (transfer < udp->queues)
		atomic_store_explicit(&udp->queue[transfer].reported, position,
				      memory_order_release);
}

void sl_udp_failed(struct sl_udp_queue *queue, enum sl_drop why)
{
	uint32_t none = 0;

	atomic_compare_exchange_strong(&queue->failed, &none, 1 + (uint32_t)why);
}

void sl_udp_look_at_memory(struct sl_udp *udp, int fd, uint32_t *full, uint32_t *waiting)
{
	uint32_t here = 0, dropped = 0;

	if (fd < 0 || !sl_net_memory(fd, &here, &dropped))
		return;
	if (waiting) {
		atomic_fetch_add(&udp->env.counters->dropped[SL_DROP_FULL], dropped - *full);
		*waiting = here > *waiting ? here : *waiting;
	}
	*full = dropped;
}

static void look_at_sockets(struct sl_udp *udp)
{
	struct sl_link_counters *counters = udp->env.counters;
	uint32_t waiting = 0;

	sl_udp_look_at_memory(udp, udp->fd, &udp->full, &waiting);
	for (uint32_t i = 0; i < udp->queues; i++)
		sl_udp_look_at_memory(udp, udp->queue[i].fd, &udp->queue[i].full, &waiting);
	atomic_store(&counters->waiting, waiting);
	if (waiting > atomic_load(&counters->waiting_most))
		atomic_store(&counters->waiting_most, waiting);
}

/* Data threads say nothing: here what they noted is told. */
int sl_udp_serve(void *state)
{
	struct sl_udp *udp = state;

	if (!udp->backend)
		look_at_sockets(udp);
	for (uint32_t i = 0; i < udp->queues; i++) {
		uint32_t failed = atomic_load(&udp->queue[i].failed);

		if (!failed || failed == UINT32_MAX)
			continue;
		atomic_store(&udp->queue[i].failed, UINT32_MAX);
		sl_warn("module %u: its reliable connection failed; cause: %s "
			"(docs/how-to/connect.md, "
			"step 7)",
			udp->queue[i].plan.module, sl_drop_name((enum sl_drop)(failed - 1)));
	}
	return 0;
}

bool sl_udp_has_failed(const void *state, uint16_t transfer)
{
	const struct sl_udp *udp = state;

	return transfer < udp->queues && atomic_load(&udp->queue[transfer].failed);
}

void sl_udp_drop(void *state, uint16_t transfer)
{
	struct sl_udp *udp = state;

	if (transfer < udp->queues)
		atomic_store_explicit(&udp->queue[transfer].active, 0, memory_order_release);
}

/* Takes what came, also for transfers that nobody posts to now: their answers would end every
 * later wait at once. */
static int wait_for_answers(void *state, uint32_t timeout_us)
{
	struct sl_udp *udp = state;
	struct pollfd fds[SL_UDP_TRANSFERS + 1];
	uint64_t ns = timeout_us * UINT64_C(1000), now_ns = sl_clock_ns();
	struct timespec timeout;
	nfds_t n = 0;

	for (uint32_t i = 0; i < udp->sources; i++) {
		uint64_t until = udp->send[i].paced_until;

		if (until && (until <= now_ns || until - now_ns < ns))
			ns = until <= now_ns ? 0 : until - now_ns;
	}
	timeout = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	for (uint32_t i = 0; i < udp->sources; i++)
		fds[n++] = (struct pollfd){.fd = udp->send[i].fd, .events = POLLIN};
	if (udp->fd >= 0)
		fds[n++] = (struct pollfd){.fd = udp->fd, .events = POLLIN};
	if (ppoll(fds, n, &timeout, NULL) <= 0)
		return 0;
	for (uint32_t i = 0; i < udp->sources; i++)
		if (fds[i].revents)
			sl_udp_take_answers(udp, &udp->send[i], sl_clock_ns());
	return 1;
}

/* Until data come, or slots were opened. */
int sl_udp_wait(void *state, unsigned poller, uint32_t timeout_us)
{
	struct sl_udp *udp = state;
	struct timespec timeout = {timeout_us / 1000000, timeout_us % 1000000 * 1000};
	struct pollfd fds[2 + SL_UDP_TRANSFERS];
	struct sl_wake *wake = &udp->env.wake[poller];
	nfds_t n = 0;

	fds[n++] = (struct pollfd){.fd = wake->fd, .events = POLLIN};
	fds[n++] = (struct pollfd){.fd = udp->in_fd[poller], .events = POLLIN};
	for (uint32_t i = 0; i < udp->queues; i++)
		if (atomic_load_explicit(&udp->queue[i].active, memory_order_acquire) &&
		    udp->queue[i].fd >= 0 && udp->queue[i].poller == poller)
			fds[n++] = (struct pollfd){.fd = udp->queue[i].fd, .events = POLLIN};
	/* Asleep, then look at the slots once more: who opens slots does it the other way round,
	 * so one sees the other (invariant WOKEN, tests/model/wake.pml). */
	atomic_store(&wake->asleep, 1);
	if (atomic_load(&udp->env.ring->opened) == udp->opened_seen[poller])
		ppoll(fds, n, &timeout, NULL);
	atomic_store(&wake->asleep, 0);
	if (fds[0].revents) {
		uint64_t drained;

		if (read(wake->fd, &drained, sizeof(drained)) < 0)
			return 0; /* another reader was faster */
	}
	return 1;
}

/* Our own responder counts packets whatever the service: a message that breaks off is seen. */
enum sl_proof sl_udp_proof(uint16_t service, uint16_t message)
{
	(void)message;
	return service == SL_SERVICE_RC ? SL_PROOF_RELIABLE : SL_PROOF_PACKET_COUNT;
}

void sl_udp_facts(const void *state, struct sl_link_facts *facts)
{
	const struct sl_udp *udp = state;

	facts->listen = udp->listen;
	facts->source = udp->source;
	facts->credits = udp->credits;
	/* Each transfer has a socket of its own, unless all answers come to one port. */
	facts->senders = udp->reply_port ? 1 : SL_LINK_SENDERS;
}

static void facts_of(const void *state, struct sl_link_facts *facts)
{
	sl_udp_facts(state, facts);
	facts->sockets = true;
	facts->receive_buffer = ((const struct sl_udp *)state)->receive_buffer;
}

static const struct sl_link_receiving receiving = {
	.accept = sl_udp_accept,
	.set_queue = sl_udp_set_queue,
	.poll = sl_udp_poll,
	.wait = sl_udp_wait,
	.serve = sl_udp_serve,
	.reported = sl_udp_reported,
	.drop = sl_udp_drop,
	.failed = sl_udp_has_failed,
};

const struct sl_link_sending sl_udp_sending = {
	.offer = sl_udp_offer,
	.connect = sl_udp_connect,
	.post = sl_udp_post,
	.reap = sl_udp_reap,
	.flush = sl_udp_release_all,
	.wait = wait_for_answers,
};

static const struct sl_link_handover handover = {
	.keep = sl_udp_handover_fd,
	.accept = sl_udp_handover_accept,
	.resume = sl_udp_resume,
};

const struct sl_link sl_link_udp = {
	.name = "udp",
	.doc = "RoCEv2 (UC, RC) in user space over ordinary UDP sockets; any NIC, no privilege",
	.wire = "roce",
	.state_bytes = sizeof(struct sl_udp),
	.options = options,
	.services = SL_SERVICE_UC | SL_SERVICE_RC,
	.operations = SL_OPERATION_WRITE | SL_OPERATION_SEND,
	.messages = SL_MESSAGE_PACKET | SL_MESSAGE_MODULE | SL_MESSAGE_LINE,
	.message = SL_MESSAGE_PACKET,
	.proof = sl_udp_proof,
	.guards = SL_GUARD_ENFORCED | SL_GUARD_CREDITED,
	.pollers = SL_POLLERS,
	.places = SL_REGION_HOST,
	.facts = facts_of,
	.open = sl_udp_open,
	.close = sl_udp_close,
	.bare = true,
	.packet_faults = SL_UDP_PACKET_FAULTS,
	.receiving = &receiving,
	.sending = &sl_udp_sending,
	.handover = &handover,
};
