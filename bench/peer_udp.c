/* peer_udp.c - what a receiver written by hand for UDP does at best: one process sends datagrams
 * with sendmmsg, another takes them with recvmmsg straight into a ring. No header, no checksum,
 * nobody looks at a byte. A counter in shared memory tells the sender how far the receiver is, so
 * that nothing is lost and no credit packet travels. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define USAGE "peer_udp BYTES-PER-DATAGRAM DATAGRAMS"

enum {
	BATCH = 32,		/* as the udp link */
	MEMORY = 64 << 20,	/* larger than caches, like a pool of frames and a ring of slots */
	WINDOW_BYTES = 4 << 20, /* in flight: enough to go on, and still in the cache when read */
	SPINS = 200,		/* of the sender, before the core is offered to others */
	TRIES = 1000,		/* of the receiver, before it sleeps: waking it costs the sender */
	PATIENCE_S = 2,		/* nothing for this long: something was lost */
};

struct shared {
	_Atomic uint64_t received; /* datagrams; released by the receiver, acquired by the sender */
};

struct transfer {
	size_t bytes;
	uint64_t datagrams, window; /* window: in flight at most */
	uint8_t *memory;	    /* source or ring */
	struct shared *shared;
	struct mmsghdr message[BATCH];
	struct iovec iov[BATCH];
};

/* Datagram k begins at k * bytes, around the memory. */
static void aim(struct transfer *t, uint64_t first, unsigned n)
{
	uint64_t places = MEMORY / t->bytes;

	for (unsigned i = 0; i < n; i++)
		t->iov[i] = (struct iovec){t->memory + (first + i) % places * t->bytes, t->bytes};
}

static void prepare(struct transfer *t)
{
	t->memory = bench_memory(MEMORY, MAP_PRIVATE);
	for (unsigned i = 0; i < BATCH; i++)
		t->message[i] =
			(struct mmsghdr){.msg_hdr = {.msg_iov = &t->iov[i], .msg_iovlen = 1}};
}

static void await_window(const struct transfer *t, uint64_t end)
{
	unsigned spins = 0;

	while (end > atomic_load_explicit(&t->shared->received, memory_order_acquire) + t->window)
		if (++spins > SPINS)
			sched_yield();
}

static void send_all(struct transfer *t, const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	uint64_t sent = 0;

	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
		bench_fail("sender");
	prepare(t);
	while (sent < t->datagrams) {
		uint64_t rest = t->datagrams - sent, most = t->window < BATCH ? t->window : BATCH;
		unsigned n = (unsigned)(rest < most ? rest : most);
		int done;

		await_window(t, sent + n);
		aim(t, sent, n);
		done = sendmmsg(fd, t->message, n, 0);
		if (done < 0)
			bench_fail("sendmmsg");
		sent += (unsigned)done;
	}
	close(fd);
}

/* Spin, then sleep. */
static int receive(struct transfer *t, int fd)
{
	int n = -1;

	for (unsigned i = 0; i < TRIES && n < 0; i++)
		n = recvmmsg(fd, t->message, BATCH, MSG_DONTWAIT, NULL);
	if (n < 0)
		n = recvmmsg(fd, t->message, BATCH, MSG_WAITFORONE, NULL);
	if (n < 0)
		bench_fail("recvmmsg (a datagram was lost?)");
	return n;
}

/* Seconds from the first batch to the last, and how many datagrams came in them. */
static double receive_all(struct transfer *t, int fd, uint64_t *timed)
{
	uint64_t received = 0, first = 0;
	double start = 0;

	while (received < t->datagrams) {
		int n;

		aim(t, received, BATCH);
		n = receive(t, fd);
		for (int i = 0; i < n; i++)
			if (t->message[i].msg_len != t->bytes)
				bench_fail("a datagram of another size");
		received += (unsigned)n;
		atomic_store_explicit(&t->shared->received, received, memory_order_release);
		if (!first) {
			first = received;
			start = bench_now_s();
		}
	}
	*timed = received - first;
	return bench_now_s() - start;
}

static int open_receiver(struct sockaddr_in *at, uint64_t *buffer_bytes)
{
	struct timeval patience = {.tv_sec = PATIENCE_S};
	int fd = socket(AF_INET, SOCK_DGRAM, 0), bytes = 8 << 20;
	socklen_t size = sizeof(*at), int_size = sizeof(bytes);

	*at = (struct sockaddr_in){.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
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

/* The kernel counts what it allocated: up to twice the payload, and a kilobyte of its own. */
static uint64_t choose_window(size_t bytes, uint64_t buffer_bytes)
{
	uint64_t safe = buffer_bytes / (2 * bytes + 1024), best = WINDOW_BYTES / bytes;
	uint64_t window = safe < best ? safe : best;

	return window ? window : 1;
}

int main(int argc, char **argv)
{
	struct transfer t = {0};
	struct sockaddr_in at;
	uint64_t buffer_bytes, timed;
	double seconds;
	int fd, status;
	pid_t child;

	if (argc != 3)
		bench_usage(USAGE);
	t.bytes = bench_number(argv[1], USAGE);
	t.datagrams = bench_number(argv[2], USAGE);
	if (t.bytes > 65000)
		bench_usage(USAGE);
	fd = open_receiver(&at, &buffer_bytes);
	t.window = choose_window(t.bytes, buffer_bytes);
	t.shared = bench_memory(4096, MAP_SHARED);
	atomic_store(&t.shared->received, 0);
	child = fork();
	if (child < 0)
		bench_fail("fork");
	if (!child) {
		send_all(&t, &at);
		_exit(0);
	}
	prepare(&t);
	seconds = receive_all(&t, fd, &timed);
	if (waitpid(child, &status, 0) < 0 || status)
		bench_fail("the sender failed");
	printf("{\"GB_per_s\": %.6f, \"packets_per_s\": %.1f, \"seconds\": %.6f}\n",
	       1e-9 * (double)(timed * t.bytes) / seconds, (double)timed / seconds, seconds);
	return 0;
}
