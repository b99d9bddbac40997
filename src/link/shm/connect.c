/* connect.c - how a source gets the ring: a Unix socket, a key, and file descriptors in
 * return. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "link/shm/shm.h"

enum { MAGIC = 0x4d485353, /* "SSHM" */ TIMEOUT_MS = 5000, HELLO_MS = 200 };

/* "@name" is the abstract namespace: it vanishes with its owner, so nothing stale is left
 * behind. */
static socklen_t address_of(const char *location, struct sockaddr_un *address)
{
	size_t length = strlen(location);

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (length >= sizeof(address->sun_path))
		length = sizeof(address->sun_path) - 1;
	memcpy(address->sun_path, location, length);
	if (location[0] == '@')
		address->sun_path[0] = 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

int sl_shm_listen(struct sl_shm *shm)
{
	struct sockaddr_un address;
	socklen_t size;
	uint64_t nonce;
	int err;

	if (shm->name[0])
		snprintf(shm->location, sizeof(shm->location), "@%s", shm->name);
	else if (getrandom(&nonce, sizeof(nonce), 0) == sizeof(nonce))
		snprintf(shm->location, sizeof(shm->location), "@sluice-%016llx",
			 (unsigned long long)nonce);
	else
		return -EIO;
	size = address_of(shm->location, &address);
	shm->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (shm->listener < 0)
		return -errno;
	if (bind(shm->listener, (struct sockaddr *)&address, size) < 0 ||
	    listen(shm->listener, SL_SHM_TRANSFERS) < 0) {
		err = -errno;
		sl_error("link.shm: cannot listen on '%s': %s", shm->location,
			 err == -EADDRINUSE ? "another receiver has that name" : strerror(-err));
		return err;
	}
	return 0;
}

int sl_shm_queue_open(struct sl_shm_queue *queue)
{
	int err = sl_region_open(SL_REGION_SHARED, sizeof(struct sl_shm_lane), &queue->lane_region);

	if (err)
		return err;
	queue->lane = queue->lane_region.base;
	queue->connection = -1;
	queue->wake_source = -1;
	queue->wake_receiver = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (queue->wake_receiver < 0)
		goto undo;
	queue->wake_source = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (queue->wake_source < 0)
		goto undo;
	return 0;

undo:
	err = -errno;
	sl_shm_queue_close(queue);
	return err;
}

void sl_shm_queue_close(struct sl_shm_queue *queue)
{
	int fds[] = {queue->connection, queue->wake_receiver, queue->wake_source};

	for (unsigned i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	queue->connection = queue->wake_receiver = queue->wake_source = -1;
	if (queue->lane)
		sl_region_close(&queue->lane_region);
	queue->lane = NULL;
}

static int send_fds(int connection, const int fds[SL_SHM_FDS], uint64_t ring_bytes)
{
	union {
		char bytes[CMSG_SPACE(SL_SHM_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {&ring_bytes, sizeof(ring_bytes)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(SL_SHM_FDS * sizeof(int));
	memcpy(CMSG_DATA(cmsg), fds, SL_SHM_FDS * sizeof(int));
	return sendmsg(connection, &msg, MSG_NOSIGNAL) == sizeof(ring_bytes) ? 0 : -errno;
}

static void refuse(struct sl_shm *shm, enum sl_drop why)
{
	atomic_fetch_add_explicit(&shm->env.counters->dropped[why], 1, memory_order_relaxed);
}

/* Only our own user (or root) may have the ring, and only who knows the transfer's key. */
static int admit(struct sl_shm *shm, int connection)
{
	struct sl_shm_hello hello;
	struct ucred who;
	socklen_t size = sizeof(who);
	struct pollfd fd = {.fd = connection, .events = POLLIN};
	struct sl_shm_queue *queue;
	int err;

	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0 ||
	    (who.uid != getuid() && who.uid != 0)) {
		refuse(shm, SL_DROP_PEER);
		return -EPERM;
	}
	if (poll(&fd, 1, HELLO_MS) != 1 ||
	    recv(connection, &hello, sizeof(hello), 0) != sizeof(hello) || hello.magic != MAGIC ||
	    hello.transfer >= shm->queues) {
		refuse(shm, SL_DROP_MALFORMED);
		return -EPROTO;
	}
	queue = &shm->queue[hello.transfer];
	if (hello.rkey != queue->plan.rkey || queue->connection >= 0) {
		refuse(shm, SL_DROP_KEY);
		return -EACCES;
	}
	err = send_fds(connection,
		       (int[]){shm->env.ring->region->fd, queue->lane_region.fd,
			       queue->wake_receiver, queue->wake_source},
		       shm->env.ring->region->bytes);
	if (!err)
		queue->connection = connection;
	return err;
}

int sl_shm_serve(void *state)
{
	struct sl_shm *shm = state;
	int connection;

	while ((connection = accept4(shm->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		if (admit(shm, connection))
			close(connection);
	return 0;
}

static int receive_fds(int connection, int fds[SL_SHM_FDS], uint64_t *ring_bytes)
{
	union {
		char bytes[CMSG_SPACE(SL_SHM_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {ring_bytes, sizeof(*ring_bytes)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *cmsg;

	if (recvmsg(connection, &msg, MSG_CMSG_CLOEXEC) != sizeof(*ring_bytes))
		return -EACCES; /* closed on us: the receiver did not like the key */
	cmsg = CMSG_FIRSTHDR(&msg);
	if (!cmsg || cmsg->cmsg_type != SCM_RIGHTS ||
	    cmsg->cmsg_len != CMSG_LEN(SL_SHM_FDS * sizeof(int)))
		return -EPROTO;
	memcpy(fds, CMSG_DATA(cmsg), SL_SHM_FDS * sizeof(int));
	return 0;
}

static int handover_accept(struct sl_shm *shm, struct sl_shm_queue *queue,
			   const int fds[SL_SHM_FDS], uint64_t ring_bytes)
{
	int err;

	queue->wake_receiver = fds[2];
	queue->wake_source = fds[3];
	if (shm->ring.base)
		close(fds[0]); /* the same ring as for the first transfer */
	else if ((err = sl_region_map(fds[0], ring_bytes, &shm->ring)) != 0)
		return err;
	err = sl_region_map(fds[1], sizeof(struct sl_shm_lane), &queue->lane_region);
	if (err)
		return err;
	queue->lane = queue->lane_region.base;
	return 0;
}

int sl_shm_connect(void *state, const struct sl_plan *plan)
{
	struct sl_shm *shm = state;
	struct sl_shm_hello hello = {
		.magic = MAGIC, .transfer = plan->transfer, .rkey = plan->rkey};
	struct timeval timeout = {TIMEOUT_MS / 1000, 0};
	struct sl_shm_queue *queue;
	struct sockaddr_un address;
	socklen_t size = address_of(plan->location, &address);
	uint64_t ring_bytes = 0;
	int fds[SL_SHM_FDS], err;

	if (plan->transfer >= SL_SHM_TRANSFERS)
		return -EINVAL;
	queue = &shm->queue[plan->transfer];
	queue->plan = *plan;
	queue->connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (queue->connection < 0)
		return -errno;
	setsockopt(queue->connection, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	if (connect(queue->connection, (struct sockaddr *)&address, size) < 0 ||
	    send(queue->connection, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello)) {
		err = -errno;
		sl_error("link.shm: no receiver at '%s': %s", plan->location, strerror(-err));
		return err;
	}
	err = receive_fds(queue->connection, fds, &ring_bytes);
	if (err) {
		sl_error("link.shm: the receiver at '%s' refused transfer %u", plan->location,
			 plan->transfer);
		return err;
	}
	err = handover_accept(shm, queue, fds, ring_bytes);
	if (err)
		return err;
	atomic_store_explicit(&queue->active, 1, memory_order_release);
	if (plan->transfer >= shm->queues)
		shm->queues = plan->transfer + 1u;
	return 0;
}
