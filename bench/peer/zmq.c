/* zmq.c - ZeroMQ over TCP between two processes: what many facilities stream frames with.
 * PUSH/PULL with its own flow control and its own threads, messages taken and thrown away; and
 * the round trip of one message between two PAIR sockets. Nobody is pinned: its threads find
 * their cores better themselves. */
#include <sys/wait.h>
#include <zmq.h>

#include "bench/peer/peer.h"

#define USAGE BENCH_PEER_USAGE("peer_zmq", "push|pingpong")

enum {
	ENDPOINT_BYTES = 128,
	HIGH_WATER = 1000,	/* its default */
	QUEUED_MAX = 256 << 20, /* but no more bytes than this */
	PATIENCE_MS = 200,	/* then it looks whether it should stop */
	FIRST = 200,
};

struct transfer {
	size_t bytes;
	double seconds;
	struct bench_shared *shared;
};

static void *open_socket(void *context, int kind, size_t bytes)
{
	void *socket = zmq_socket(context, kind);
	int high_water = HIGH_WATER, patience = PATIENCE_MS, linger = 0;

	if ((uint64_t)high_water * bytes > QUEUED_MAX)
		high_water = (int)(QUEUED_MAX / bytes);
	zmq_setsockopt(socket, ZMQ_SNDHWM, &high_water, sizeof(high_water));
	zmq_setsockopt(socket, ZMQ_RCVHWM, &high_water, sizeof(high_water));
	zmq_setsockopt(socket, ZMQ_SNDTIMEO, &patience, sizeof(patience));
	zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience, sizeof(patience));
	zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof(linger));
	return socket;
}

static bool stopped(const struct transfer *t)
{
	return atomic_load_explicit(&t->shared->stop, memory_order_acquire);
}

static __attribute__((noinline)) void bench_send_all(const struct transfer *t, void *socket)
{
	const uint8_t *source = bench_memory(BENCH_SOURCE, MAP_PRIVATE);
	uint64_t i = 0;

	while (!stopped(t)) {
		const uint8_t *from = source + i % (BENCH_SOURCE / t->bytes) * t->bytes;

		if (zmq_send(socket, from, t->bytes, 0) >= 0)
			i++;
		else if (errno != EAGAIN)
			bench_fail("zmq_send");
	}
}

static __attribute__((noinline)) uint64_t bench_receive_all(const struct transfer *t, void *socket,
							    double *timed_s)
{
	double start = 0, now = 0;
	bool warm = false;
	uint64_t n = 0;
	zmq_msg_t message;

	zmq_msg_init(&message);
	do {
		if (zmq_msg_recv(&message, socket, 0) < 0) {
			if (errno != EAGAIN)
				bench_fail("zmq_msg_recv");
			continue;
		}
		if (zmq_msg_size(&message) != t->bytes)
			bench_fail("a message of another size");
		now = bench_now_s();
		n++;
		if (start == 0 || (!warm && now - start > t->seconds / 4)) {
			warm = start > 0;
			start = now;
			n = 0;
		}
	} while (!warm || now - start < t->seconds);
	zmq_msg_close(&message);
	*timed_s = now - start;
	return n;
}

/* ---- round trips: a time in every message ---- */

static void stamp(uint8_t *message)
{
	uint64_t now = bench_now_ns();

	memcpy(message, &now, sizeof(now));
}

static void ping(const struct transfer *t, void *socket)
{
	uint8_t *message = bench_memory(t->bytes, MAP_PRIVATE);

	while (!stopped(t)) {
		uint64_t until = bench_now_ns() + 10000; /* queues are empty */

		while (bench_now_ns() < until)
			continue;
		stamp(message);
		if (zmq_send(socket, message, t->bytes, 0) < 0)
			continue;
		while (zmq_recv(socket, message, t->bytes, 0) < 0 && !stopped(t))
			continue;
	}
}

static void pong(const struct transfer *t, void *socket)
{
	uint32_t *time_ns = bench_memory(BENCH_TIMES * sizeof(*time_ns), MAP_PRIVATE);
	uint8_t *message = bench_memory(t->bytes, MAP_PRIVATE);
	double end = bench_now_s() + 1.25 * t->seconds;
	uint64_t n = 0, trips = 0, sent;

	while (bench_now_s() < end) {
		if (zmq_recv(socket, message, t->bytes, 0) < 0)
			continue;
		memcpy(&sent, message, sizeof(sent));
		if (trips++ >= FIRST && n < BENCH_TIMES)
			time_ns[n++] = (uint32_t)(bench_now_ns() - sent);
		stamp(message);
		zmq_send(socket, message, t->bytes, 0);
	}
	bench_print_times(time_ns, n);
}

static void be_sender(const struct transfer *t, const char *endpoint, bool pings)
{
	void *context, *socket;

	bench_be_sender();
	context = zmq_ctx_new();
	socket = open_socket(context, pings ? ZMQ_PAIR : ZMQ_PUSH, t->bytes);
	if (zmq_connect(socket, endpoint) < 0)
		bench_fail("zmq_connect");
	if (pings)
		ping(t, socket);
	else
		bench_send_all(t, socket);
	zmq_close(socket);
	zmq_ctx_term(context);
}

/* The sender is forked before there is a context, which would not survive it, and hears through a
 * pipe where to connect. */
int main(int argc, char **argv)
{
	char endpoint[ENDPOINT_BYTES];
	size_t size = sizeof(endpoint);
	struct transfer t = {0};
	void *context, *socket;
	int pipe_fd[2], status;
	double seconds = 0;
	uint64_t n = 0;
	pid_t child;
	bool pings;

	if (argc != 4 || (strcmp(argv[1], "push") != 0 && strcmp(argv[1], "pingpong") != 0))
		bench_usage(USAGE);
	t.bytes = bench_number(argv[2], USAGE);
	t.seconds = bench_seconds(argv[3], USAGE);
	pings = !strcmp(argv[1], "pingpong");
	if (t.bytes > BENCH_SOURCE || t.bytes < sizeof(uint64_t))
		bench_usage(USAGE);
	t.shared = bench_memory(4096, MAP_SHARED);
	memset(t.shared, 0, sizeof(*t.shared));
	if (pipe(pipe_fd) < 0 || (child = fork()) < 0)
		bench_fail("fork");
	if (!child) {
		if (read(pipe_fd[0], endpoint, sizeof(endpoint)) != sizeof(endpoint))
			_exit(1);
		be_sender(&t, endpoint, pings);
		_exit(0);
	}
	memset(endpoint, 0, sizeof(endpoint));
	snprintf(endpoint, sizeof(endpoint), "tcp://%s:*", bench_receiver());
	context = zmq_ctx_new();
	socket = open_socket(context, pings ? ZMQ_PAIR : ZMQ_PULL, t.bytes);
	if (zmq_bind(socket, endpoint) < 0 ||
	    zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size) < 0 ||
	    write(pipe_fd[1], endpoint, sizeof(endpoint)) != sizeof(endpoint))
		bench_fail("zmq_bind");
	if (pings)
		pong(&t, socket);
	else
		n = bench_receive_all(&t, socket, &seconds);
	atomic_store(&t.shared->stop, 1);
	if (waitpid(child, &status, 0) < 0 || status)
		bench_fail("the sender failed");
	zmq_close(socket);
	zmq_ctx_term(context);
	if (!pings)
		bench_print_rate(n, t.bytes, seconds, 0);
	return 0;
}
