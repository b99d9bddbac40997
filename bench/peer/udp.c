/* udp.c - what a receiver written by hand for UDP does at best: one process sends datagrams
 * with sendmmsg, another takes them with recv or recvmmsg straight into a ring. No header, no
 * checksum of its own, nobody looks at a byte. A counter in shared memory tells the sender how far
 * the receiver is, so that nothing is lost and no credit packet travels. And the round trip of one
 * datagram.
 *
 * recv-copy is the plain receiver of a native detector (slsReceiver and the like): packets of 48
 * bytes of header and BYTES of pixels, as many in a send as the kernel cuts; each is taken with
 * recv into a buffer, its header says which it is, and its pixels are copied to their place. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "bench/peer/peer.h"

#define USAGE BENCH_PEER_USAGE("peer_udp", "recv|recvmmsg|recv-copy|pingpong")

enum {
	BATCH = 32,
	WINDOW_BYTES = 4 << 20, /* in flight: enough to go on, and still in the cache when read */
	SPINS = 2000,		/* of the sender, before the core is offered to others */
	TRIES = 1000,		/* of the receiver, before it sleeps: waking it costs the sender */
	PATIENCE_S = 2,		/* nothing for this long: something was lost */
	FIRST = 200,		/* round trips that are not counted */
	HEADER = 48,		/* of recv-copy: frame at 0, packet at 12 */
	PACKETS = 128,		/* of a frame there */
	SEND_MAX = 65000,
};

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

struct transfer {
	size_t bytes;
	double seconds;
	unsigned batch;	 /* datagrams per call */
	uint64_t window; /* datagrams in flight at most */
	uint8_t *memory; /* source or ring */
	uint64_t memory_bytes;
	struct bench_shared *shared;
	struct mmsghdr message[BATCH];
	struct iovec iov[BATCH];
	bool copies; /* recv-copy */
	uint8_t packet[1 << 16], header[BATCH][HEADER];
};

/* Datagram k begins at k * bytes, around the memory. */
static void aim(struct transfer *t, uint64_t first, unsigned n)
{
	uint64_t places = t->memory_bytes / t->bytes;

	for (unsigned i = 0; i < n; i++)
		t->iov[i] = (struct iovec){t->memory + (first + i) % places * t->bytes, t->bytes};
}

static void prepare(struct transfer *t, uint64_t memory_bytes)
{
	t->memory_bytes = memory_bytes;
	t->memory = bench_memory(memory_bytes, MAP_PRIVATE);
	for (unsigned i = 0; i < BATCH; i++)
		t->message[i] =
			(struct mmsghdr){.msg_hdr = {.msg_iov = &t->iov[i], .msg_iovlen = 1}};
}

static bool stopped(const struct transfer *t)
{
	return atomic_load_explicit(&t->shared->stop, memory_order_acquire);
}

static void await_window(const struct transfer *t, uint64_t end)
{
	unsigned spins = 0;

	while (end > atomic_load_explicit(&t->shared->received, memory_order_acquire) + t->window &&
	       !stopped(t))
		if (++spins > SPINS)
			sched_yield();
}

static int open_sender(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), one = 1;

	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
		bench_fail("sender");
	if (getenv("BENCH_NOCSUM") &&
	    setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &one, sizeof(one)) < 0)
		bench_fail("SO_NO_CHECK");
	return fd;
}

static __attribute__((noinline)) void bench_send_all(struct transfer *t, int fd)
{
	uint64_t sent = 0;

	while (!stopped(t)) {
		int done;

		await_window(t, sent + t->batch);
		if (stopped(t))
			break;
		aim(t, sent, t->batch);
		done = sendmmsg(fd, t->message, t->batch, 0);
		if (done < 0)
			bench_fail("sendmmsg");
		sent += (unsigned)done;
	}
	atomic_store(&t->shared->sent, sent + 1); /* 1 more: it has ended */
}

/* Packets of a detector, as many in one send as fit. */
static __attribute__((noinline)) void bench_send_cut(struct transfer *t, int fd)
{
	uint64_t sent = 0, places = t->memory_bytes / t->bytes;
	int each = (int)(HEADER + t->bytes);
	unsigned most = SEND_MAX / (unsigned)each;
	struct iovec iov[2 * BATCH];
	struct msghdr message = {.msg_iov = iov};

	most = most > BATCH ? BATCH : most > t->batch ? t->batch : most;
	if (getenv("BENCH_NOCSUM") ||
	    setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &each, sizeof(each)) < 0)
		most = 1; /* without a checksum the kernel cuts nothing */
	while (!stopped(t)) {
		await_window(t, sent + most);
		if (stopped(t))
			break;
		for (unsigned i = 0; i < most; i++) {
			uint64_t frame = 1 + (sent + i) / PACKETS;
			uint32_t packet = (uint32_t)((sent + i) % PACKETS);

			memcpy(t->header[i], &frame, sizeof(frame));
			memcpy(t->header[i] + 12, &packet, sizeof(packet));
			iov[2 * i] = (struct iovec){t->header[i], HEADER};
			iov[2 * i + 1] = (struct iovec){t->memory + (sent + i) % places * t->bytes,
							t->bytes};
		}
		message.msg_iovlen = 2 * most;
		if (sendmsg(fd, &message, 0) < 0)
			bench_fail("sendmsg");
		sent += most;
	}
	atomic_store(&t->shared->sent, sent + 1);
}

/* One packet to its place. */
static unsigned receive_copy(struct transfer *t, int fd)
{
	uint64_t places = t->memory_bytes / t->bytes, frame;
	uint32_t packet;
	ssize_t n = -1;

	for (unsigned i = 0; i < TRIES && n < 0; i++)
		n = recv(fd, t->packet, sizeof(t->packet), MSG_DONTWAIT);
	if (n < 0)
		n = recv(fd, t->packet, sizeof(t->packet), 0);
	if (n != (ssize_t)(HEADER + t->bytes))
		return 0;
	memcpy(&frame, t->packet, sizeof(frame));
	memcpy(&packet, t->packet + 12, sizeof(packet));
	memcpy(t->memory + ((frame - 1) * PACKETS + packet) % places * t->bytes, t->packet + HEADER,
	       t->bytes);
	return 1;
}

/* Spin, then sleep. How many came; 0: none in PATIENCE_S. */
static unsigned receive_many(struct transfer *t, int fd)
{
	int n = -1;

	for (unsigned i = 0; i < TRIES && n < 0; i++)
		n = recvmmsg(fd, t->message, t->batch, MSG_DONTWAIT, NULL);
	if (n < 0)
		n = recvmmsg(fd, t->message, t->batch, MSG_WAITFORONE, NULL);
	for (int i = 0; i < n; i++)
		if (t->message[i].msg_len != t->bytes)
			bench_fail("a datagram of another size");
	return n < 0 ? 0 : (unsigned)n;
}

static unsigned receive_one(struct transfer *t, int fd)
{
	ssize_t n = -1;

	for (unsigned i = 0; i < TRIES && n < 0; i++)
		n = recv(fd, t->iov[0].iov_base, t->bytes, MSG_DONTWAIT);
	if (n < 0)
		n = recv(fd, t->iov[0].iov_base, t->bytes, 0);
	return n == (ssize_t)t->bytes;
}

/* Until the time is over, and on until all that was sent is here. Datagrams in *timed_s. */
static __attribute__((noinline)) uint64_t bench_receive_all(struct transfer *t, int fd, bool many,
							    double *timed_s)
{
	uint64_t received = 0, first = 0, timed = 0, sent;
	double start = bench_now_s(), warm = t->seconds / 4, now;

	do {
		unsigned n;

		aim(t, received, many ? t->batch : 1);
		n = t->copies ? receive_copy(t, fd)
		    : many    ? receive_many(t, fd)
			      : receive_one(t, fd);
		received += n;
		atomic_store_explicit(&t->shared->received, received, memory_order_release);
		now = bench_now_s();
		if (!first && now - start > warm) {
			first = received;
			start = now;
		} else if (first && !timed && now - start > t->seconds) {
			timed = received - first;
			*timed_s = now - start;
			atomic_store(&t->shared->stop, 1);
		}
		sent = atomic_load(&t->shared->sent);
		if (!n && !(sent && received >= sent - 1)) {
			if (!timed)
				bench_fail("a datagram was lost");
			break;
		}
	} while (!sent || received < sent - 1);
	return timed;
}

static int open_receiver(struct sockaddr_in *at, uint64_t *buffer_bytes)
{
	struct timeval patience = {.tv_sec = PATIENCE_S};
	int fd = socket(AF_INET, SOCK_DGRAM, 0), bytes = (int)bench_env("BENCH_BUFFER", 8 << 20);
	socklen_t size = sizeof(*at), int_size = sizeof(bytes);

	*at = (struct sockaddr_in){.sin_family = AF_INET,
				   .sin_addr.s_addr = inet_addr(bench_receiver())};
	if (fd < 0 || bind(fd, (struct sockaddr *)at, sizeof(*at)) < 0 ||
	    getsockname(fd, (struct sockaddr *)at, &size) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		bench_fail("receiver");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &int_size) < 0)
		bench_fail("SO_RCVBUF");
	*buffer_bytes = (uint64_t)bytes;
	return fd;
}

/* The kernel counts what it allocated: up to twice the payload, and a kilobyte of its own. And it
 * gives back what was read only when that is a quarter of the buffer. */
static void choose_window(struct transfer *t, uint64_t buffer_bytes)
{
	uint64_t safe = buffer_bytes * 3 / 4 / (2 * t->bytes + 1024),
		 best = WINDOW_BYTES / t->bytes;

	t->window = safe < best ? safe : best;
	if (!t->window)
		t->window = 1;
	t->batch = t->window / 2 < BATCH ? (unsigned)(t->window + 1) / 2 : BATCH;
}

/* ---- round trips: a time in every datagram, taken just before it is sent ---- */

static bool take_spinning(int fd, uint8_t *datagram, size_t bytes, const struct transfer *t)
{
	while (recv(fd, datagram, bytes, MSG_DONTWAIT) != (ssize_t)bytes)
		if (stopped(t))
			return false;
	return true;
}

static uint32_t age_of(const uint8_t *datagram)
{
	uint64_t stamp;

	memcpy(&stamp, datagram, sizeof(stamp));
	return (uint32_t)(bench_now_ns() - stamp);
}

static void stamp(uint8_t *datagram)
{
	uint64_t now = bench_now_ns();

	memcpy(datagram, &now, sizeof(now));
}

static void ping(struct transfer *t, int fd)
{
	uint8_t *datagram = bench_memory(t->bytes, MAP_PRIVATE);

	do {
		uint64_t until = bench_now_ns() + 10000; /* queues are empty */

		while (bench_now_ns() < until)
			continue;
		stamp(datagram);
		if (send(fd, datagram, t->bytes, 0) < 0)
			bench_fail("send");
	} while (take_spinning(fd, datagram, t->bytes, t));
}

static void pong(struct transfer *t, int fd)
{
	uint32_t *time_ns = bench_memory(BENCH_TIMES * sizeof(*time_ns), MAP_PRIVATE);
	uint8_t *datagram = bench_memory(t->bytes, MAP_PRIVATE);
	double end = bench_now_s() + 1.25 * t->seconds;
	uint64_t n = 0, trips = 0;

	while (bench_now_s() < end) {
		struct sockaddr_in from;
		socklen_t size = sizeof(from);

		if (recvfrom(fd, datagram, t->bytes, MSG_DONTWAIT, (struct sockaddr *)&from,
			     &size) < 0)
			continue;
		if (trips++ >= FIRST && n < BENCH_TIMES)
			time_ns[n++] = age_of(datagram);
		stamp(datagram);
		sendto(fd, datagram, t->bytes, 0, (struct sockaddr *)&from, size);
	}
	atomic_store(&t->shared->stop, 1);
	bench_print_times(time_ns, n);
}

static pid_t fork_sender(struct transfer *t, const struct sockaddr_in *to, bool pings)
{
	pid_t child = fork();
	int fd;

	if (child < 0)
		bench_fail("fork");
	if (child)
		return child;
	bench_be_sender();
	bench_pin("BENCH_SENDER_CORE");
	fd = open_sender(to);
	if (!pings)
		prepare(t, BENCH_SOURCE);
	if (pings)
		ping(t, fd);
	else if (t->copies)
		bench_send_cut(t, fd);
	else
		bench_send_all(t, fd);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct transfer t = {0};
	struct sockaddr_in at;
	uint64_t buffer_bytes, timed;
	double seconds = 0;
	int fd, status;
	pid_t child;
	bool pings;

	if (argc != 4 || (strcmp(argv[1], "recv") != 0 && strcmp(argv[1], "recvmmsg") != 0 &&
			  strcmp(argv[1], "recv-copy") != 0 && strcmp(argv[1], "pingpong") != 0))
		bench_usage(USAGE);
	t.bytes = bench_number(argv[2], USAGE);
	t.seconds = bench_seconds(argv[3], USAGE);
	if (t.bytes > 65000 || t.bytes < sizeof(uint64_t))
		bench_usage(USAGE);
	pings = !strcmp(argv[1], "pingpong");
	t.copies = !strcmp(argv[1], "recv-copy");
	fd = open_receiver(&at, &buffer_bytes);
	choose_window(&t, buffer_bytes);
	t.shared = bench_memory(4096, MAP_SHARED);
	memset(t.shared, 0, sizeof(*t.shared));
	child = fork_sender(&t, &at, pings);
	bench_pin("BENCH_RECEIVER_CORE");
	if (pings) {
		pong(&t, fd);
		return waitpid(child, &status, 0) < 0 || status;
	}
	prepare(&t, bench_env("BENCH_RING", 512 << 20));
	timed = bench_receive_all(&t, fd, !strcmp(argv[1], "recvmmsg"), &seconds);
	if (waitpid(child, &status, 0) < 0 || status)
		bench_fail("the sender failed");
	bench_print_rate(timed, t.bytes, seconds,
			 atomic_load(&t.shared->sent) - 1 - atomic_load(&t.shared->received));
	return 0;
}
