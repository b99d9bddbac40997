/* zmq_share.c - what a share is compared with: ZeroMQ between two processes, over TCP or a Unix
 * socket (-ipc). REQ/REP: a request of one byte, answered by BYTES, one after the other. PUB/SUB:
 * messages of BYTES as fast as the publisher can send them; what the subscriber gets is counted.
 * Messages are copied into the program's own memory, as followers of a share copy them. Nobody is
 * pinned: its threads find their cores better themselves. */
#include <sys/wait.h>
#include <zmq.h>

#include "bench/peer/peer.h"

#define USAGE BENCH_PEER_USAGE("peer_zmq_share", "reqrep|reqrep-ipc|pubsub|pubsub-ipc")

enum {
	ENDPOINT_BYTES = 200,
	PATIENCE_MS = 200, /* then the other process looks whether it should stop */
	QUEUED_MAX = 256 << 20,
	HIGH_WATER = 1000, /* its default */
};

struct peer {
	size_t bytes;
	void *socket;
	uint8_t *to;
	struct bench_shared *shared;
};

static void *open_socket(void *context, int kind, size_t bytes)
{
	void *socket = zmq_socket(context, kind);
	int high_water = HIGH_WATER, patience = PATIENCE_MS, linger = 0;

	if ((uint64_t)high_water * bytes > QUEUED_MAX)
		high_water = bytes < QUEUED_MAX ? (int)(QUEUED_MAX / bytes) : 1;
	zmq_setsockopt(socket, ZMQ_SNDHWM, &high_water, sizeof(high_water));
	zmq_setsockopt(socket, ZMQ_RCVHWM, &high_water, sizeof(high_water));
	zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience, sizeof(patience));
	zmq_setsockopt(socket, ZMQ_SNDTIMEO, &patience, sizeof(patience));
	zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof(linger));
	return socket;
}

static bool stopped(const struct peer *p)
{
	return atomic_load_explicit(&p->shared->stop, memory_order_acquire);
}

/* The next message, at its place. */
static void take(struct peer *p)
{
	zmq_msg_t message;

	zmq_msg_init(&message);
	while (zmq_msg_recv(&message, p->socket, 0) < 0)
		if (errno != EAGAIN)
			bench_fail("zmq_msg_recv");
	if (zmq_msg_size(&message) != p->bytes)
		bench_fail("a message of another size");
	memcpy(p->to, zmq_msg_data(&message), p->bytes);
	zmq_msg_close(&message);
}

static void bench_request(void *arg)
{
	struct peer *p = arg;

	while (zmq_send(p->socket, "?", 1, 0) < 0)
		if (errno != EAGAIN)
			bench_fail("zmq_send");
	take(p);
}

static void bench_subscribe(void *arg)
{
	take(arg);
}

/* ---- the other process ---- */

static void reply(const struct peer *p, const uint8_t *from)
{
	char request[8];

	while (!stopped(p))
		if (zmq_recv(p->socket, request, sizeof(request), 0) == 1)
			while (zmq_send(p->socket, from, p->bytes, 0) < 0 && !stopped(p))
				continue;
}

static void publish(const struct peer *p, const uint8_t *from)
{
	while (!stopped(p))
		zmq_send(p->socket, from, p->bytes, 0);
}

static void be_server(struct peer *p, const char *endpoint, bool publishes)
{
	const uint8_t *from = bench_memory(p->bytes, MAP_PRIVATE);
	void *context;

	bench_be_sender();
	context = zmq_ctx_new();
	p->socket = open_socket(context, publishes ? ZMQ_PUB : ZMQ_REP, p->bytes);
	if (zmq_connect(p->socket, endpoint) < 0)
		bench_fail("zmq_connect");
	(publishes ? publish : reply)(p, from);
	zmq_close(p->socket);
	zmq_ctx_term(context);
}

static void bind_to(struct peer *p, bool ipc, char endpoint[ENDPOINT_BYTES])
{
	const char *folder = getenv("TMPDIR");
	size_t size = ENDPOINT_BYTES;

	memset(endpoint, 0, ENDPOINT_BYTES);
	if (ipc)
		snprintf(endpoint, ENDPOINT_BYTES, "ipc://%s/sluice-peer-%d",
			 folder ? folder : "/tmp", (int)getpid());
	else
		snprintf(endpoint, ENDPOINT_BYTES, "tcp://%s:*", bench_receiver());
	if (zmq_bind(p->socket, endpoint) < 0 ||
	    zmq_getsockopt(p->socket, ZMQ_LAST_ENDPOINT, endpoint, &size) < 0)
		bench_fail("zmq_bind");
}

/* The other process is forked before there is a context, which would not survive it, and hears
 * through a pipe where to connect. */
int main(int argc, char **argv)
{
	char endpoint[ENDPOINT_BYTES];
	bool ipc, publishes;
	struct peer p = {0};
	int pipe_fd[2], status;
	void *context;
	pid_t child;

	if (argc != 4)
		bench_usage(USAGE);
	publishes = !strncmp(argv[1], "pubsub", 6);
	ipc = !strcmp(argv[1] + 6, "-ipc");
	if ((!publishes && strncmp(argv[1], "reqrep", 6) != 0) || (argv[1][6] && !ipc))
		bench_usage(USAGE);
	p.bytes = bench_number(argv[2], USAGE);
	p.shared = bench_memory(4096, MAP_SHARED);
	memset(p.shared, 0, sizeof(*p.shared));
	if (pipe(pipe_fd) < 0 || (child = fork()) < 0)
		bench_fail("fork");
	if (!child) {
		if (read(pipe_fd[0], endpoint, sizeof(endpoint)) != sizeof(endpoint))
			_exit(1);
		be_server(&p, endpoint, publishes);
		_exit(0);
	}
	context = zmq_ctx_new();
	p.socket = open_socket(context, publishes ? ZMQ_SUB : ZMQ_REQ, p.bytes);
	if (publishes)
		zmq_setsockopt(p.socket, ZMQ_SUBSCRIBE, "", 0);
	bind_to(&p, ipc, endpoint);
	if (write(pipe_fd[1], endpoint, sizeof(endpoint)) != sizeof(endpoint))
		bench_fail("pipe");
	p.to = bench_memory(p.bytes, MAP_PRIVATE);
	bench_each(publishes ? bench_subscribe : bench_request, &p, p.bytes,
		   bench_seconds(argv[3], USAGE));
	fflush(stdout);
	atomic_store(&p.shared->stop, 1);
	zmq_close(p.socket);
	zmq_ctx_term(context);
	if (waitpid(child, &status, 0) < 0 || status)
		bench_fail("the other process failed");
	return 0;
}
