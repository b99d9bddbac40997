/* peer_zmq.c - ZeroMQ PUSH/PULL over TCP on loopback, between two processes: what many facilities
 * stream frames with. Its own flow control, its own threads, messages taken and thrown away. */
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "bench.h"

#define USAGE "peer_zmq BYTES-PER-MESSAGE MESSAGES"

enum { ENDPOINT_BYTES = 128, HIGH_WATER = 1000, SOURCE = 64 << 20 };

static void send_all(const char *endpoint, size_t bytes, uint64_t messages)
{
	const uint8_t *source = bench_memory(SOURCE, MAP_PRIVATE);
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_PUSH);
	int high_water = HIGH_WATER;

	zmq_setsockopt(socket, ZMQ_SNDHWM, &high_water, sizeof(high_water));
	if (zmq_connect(socket, endpoint) < 0)
		bench_fail("zmq_connect");
	for (uint64_t i = 0; i < messages; i++)
		if (zmq_send(socket, source + i % (SOURCE / bytes) * bytes, bytes, 0) < 0)
			bench_fail("zmq_send");
	zmq_close(socket);
	zmq_ctx_term(context); /* returns when all is sent */
}

/* Seconds from the first message to the last. */
static double receive_all(void *socket, size_t bytes, uint64_t messages)
{
	double start = 0;
	zmq_msg_t message;

	zmq_msg_init(&message);
	for (uint64_t i = 0; i < messages; i++) {
		if (zmq_msg_recv(&message, socket, 0) < 0 || zmq_msg_size(&message) != bytes)
			bench_fail("zmq_msg_recv");
		if (i == 0)
			start = bench_now_s();
	}
	zmq_msg_close(&message);
	return bench_now_s() - start;
}

/* The sender is forked before there is a context, which would not survive it, and hears through a
 * pipe where to connect. */
int main(int argc, char **argv)
{
	char endpoint[ENDPOINT_BYTES] = "tcp://127.0.0.1:*";
	size_t bytes, size = sizeof(endpoint);
	void *context, *socket;
	uint64_t messages;
	int pipe_fd[2], status;
	double seconds;
	pid_t child;

	if (argc != 3)
		bench_usage(USAGE);
	bytes = bench_number(argv[1], USAGE);
	messages = bench_number(argv[2], USAGE);
	if (bytes > SOURCE || messages < 2)
		bench_usage(USAGE);
	if (pipe(pipe_fd) < 0 || (child = fork()) < 0)
		bench_fail("fork");
	if (!child) {
		if (read(pipe_fd[0], endpoint, sizeof(endpoint)) != sizeof(endpoint))
			_exit(1);
		send_all(endpoint, bytes, messages);
		_exit(0);
	}
	context = zmq_ctx_new();
	socket = zmq_socket(context, ZMQ_PULL);
	if (zmq_bind(socket, endpoint) < 0 ||
	    zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &size) < 0 ||
	    write(pipe_fd[1], endpoint, sizeof(endpoint)) != sizeof(endpoint))
		bench_fail("zmq_bind");
	seconds = receive_all(socket, bytes, messages);
	if (waitpid(child, &status, 0) < 0 || status)
		bench_fail("the sender failed");
	zmq_close(socket);
	zmq_ctx_term(context);
	printf("{\"GB_per_s\": %.6f, \"packets_per_s\": %.1f, \"seconds\": %.6f}\n",
	       1e-9 * (double)((messages - 1) * bytes) / seconds, (double)(messages - 1) / seconds,
	       seconds);
	return 0;
}
