/* stream.c - the sink stream2 beside a plain loop that sends the same messages.
 *
 * A puller in a process of its own takes messages and throws them away. A round is ROUND images:
 *   sink    images are prepared before the clock starts; timed is what the sink's thread does
 *           (put_prepared) until the puller has all of them
 *   loop    the messages of the same images, recorded from the sink, sent by zmq_msg_send() from
 *           where they lie; nothing else is done to them. Before each round, untimed, a sink
 *           without a puller prepares the images and each message is copied to where it is sent
 *           from: so caches, the connection and the puller are as idle as they are for `sink`
 * GB_per_s are 10^9 bytes of messages, packed. pixel_GB_per_s of `sink` are bytes of pixels over
 * all of the time, with the preparing: one thread does both. */
#include <sys/wait.h>
#include <zmq.h>

#include <sluice/sink.h>

#include "bench/part/experiment.h"
#include "bench/peer/peer.h"

#define USAGE "bench_stream EXPERIMENT sink|loop IMAGES"

enum { ROUND = 2 * SL_SINK_WORKERS + 1, PORT = 31001, PATIENCE_MS = 20000 };

struct shared {
	_Atomic uint64_t taken, bytes;
	_Atomic bool stop;
};

struct stream {
	struct bench_experiment b;
	const struct sl_sink *sink;
	void *state;
	struct shared *shared;
	uint64_t sent;
	double seconds, whole_s, cpu_s;
};

static _Noreturn void give_up(const char *what, int err)
{
	errno = -err;
	bench_fail(what);
}

/* Of all threads of this process, ZeroMQ's too; a busy machine changes it less than the time. */
static double cpu_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* An address of this process alone: others may stream on this host. */
static void choose_address(char *address, size_t bytes)
{
	unsigned pid = (unsigned)getpid();

	snprintf(address, bytes, "127.%u.%u.%u", 128 + (pid >> 16 & 63), pid >> 8 & 255, pid & 255);
}

/* ---- the puller ---- */

static void pull(struct shared *shared, const char *endpoint)
{
	const int look_ms = 100, none = 0;
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_PULL);
	zmq_msg_t message;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	zmq_setsockopt(socket, ZMQ_RCVTIMEO, &look_ms, sizeof(look_ms));
	zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
	zmq_connect(socket, endpoint);
	zmq_msg_init(&message);
	while (!atomic_load(&shared->stop)) {
		if (zmq_msg_recv(&message, socket, 0) < 0)
			continue;
		atomic_fetch_add(&shared->bytes, zmq_msg_size(&message));
		atomic_fetch_add(&shared->taken, 1);
	}
	zmq_msg_close(&message);
	zmq_close(socket);
	zmq_ctx_term(context);
}

static void wait_taken(const struct stream *s)
{
	double end = bench_now_s() + 1e-3 * PATIENCE_MS;

	while (atomic_load(&s->shared->taken) < s->sent) {
		if (bench_now_s() > end)
			give_up("the puller", -ETIMEDOUT);
		usleep(20);
	}
}

/* ---- the sink ---- */

static struct sl_frame *next_frame(struct stream *s, uint64_t number)
{
	struct sl_batch batch;
	int err = bench_experiment_fill(&s->b, number, 1, false, &batch);

	if (err)
		give_up("a frame", err);
	return batch.frame[0];
}

static void round_of_sink(struct stream *s)
{
	struct sl_frame *frame[ROUND];
	double begin = bench_now_s(), start, cpu;

	for (unsigned i = 0; i < ROUND; i++) {
		frame[i] = next_frame(s, s->sent + i);
		s->sink->prepare(s->state, i, frame[i]);
	}
	cpu = cpu_now_s();
	start = bench_now_s();
	for (unsigned i = 0; i < ROUND; i++) {
		int err = s->sink->put_prepared(s->state, i, frame[i]);

		if (err)
			give_up("put_prepared", err);
	}
	s->sent += ROUND;
	wait_taken(s);
	s->seconds += bench_now_s() - start;
	s->cpu_s += cpu_now_s() - cpu;
	s->whole_s += bench_now_s() - begin;
}

/* ---- the loop ---- */

struct loop {
	void *context, *socket;
	zmq_msg_t message[ROUND];
	void *memory[ROUND]; /* that it is sent from */
};

/* The sink sends one round to this process, which keeps the messages. */
static void record(struct stream *s, struct loop *loop, const char *endpoint)
{
	const int patience_ms = PATIENCE_MS;
	void *puller;

	loop->context = zmq_ctx_new();
	puller = zmq_socket(loop->context, ZMQ_PULL);
	zmq_setsockopt(puller, ZMQ_RCVTIMEO, &patience_ms, sizeof(patience_ms));
	zmq_connect(puller, endpoint);
	if (s->sink->open(s->state, &s->b.env))
		give_up("the sink", -EIO);
	for (unsigned i = 0; i < ROUND; i++)
		s->sink->put(s->state, next_frame(s, i));
	for (unsigned i = 0; i < ROUND + 1; i++) {
		zmq_msg_t *message = &loop->message[i ? i - 1 : 0]; /* the start message is first */

		if (i != 1)
			zmq_msg_init(message);
		if (zmq_msg_recv(message, puller, 0) < 0)
			give_up("recording", -errno);
	}
	zmq_close(puller);
	s->sink->close(s->state, NULL);
}

static void keep_copies(struct loop *loop)
{
	for (unsigned i = 0; i < ROUND; i++) {
		loop->memory[i] = malloc(zmq_msg_size(&loop->message[i]));
		if (!loop->memory[i])
			give_up("memory", -ENOMEM);
	}
}

static void prepare_loop(struct stream *s, struct loop *loop)
{
	for (unsigned i = 0; i < ROUND; i++) {
		s->sink->put(s->state, next_frame(s, s->sent + i)); /* dropped */
		memcpy(loop->memory[i], zmq_msg_data(&loop->message[i]),
		       zmq_msg_size(&loop->message[i]));
	}
}

static void leave(void *data, void *hint)
{
	(void)data, (void)hint;
}

static void round_of_loop(struct stream *s, struct loop *loop)
{
	double start, cpu;

	prepare_loop(s, loop);
	cpu = cpu_now_s();
	start = bench_now_s();
	for (unsigned i = 0; i < ROUND; i++) {
		zmq_msg_t copy;

		zmq_msg_init_data(&copy, loop->memory[i], zmq_msg_size(&loop->message[i]), leave,
				  NULL);
		if (zmq_msg_send(&copy, loop->socket, 0) < 0)
			give_up("zmq_msg_send", -errno);
	}
	s->sent += ROUND;
	wait_taken(s);
	s->seconds += bench_now_s() - start;
	s->cpu_s += cpu_now_s() - cpu;
}

/* ---- both ---- */

static pid_t start_puller(struct shared *shared, const char *endpoint)
{
	pid_t child = fork();

	if (child < 0)
		bench_fail("fork");
	if (!child) {
		pull(shared, endpoint);
		_exit(0);
	}
	return child;
}

static void measure_sink(struct stream *s, uint64_t images)
{
	int err = s->sink->open(s->state, &s->b.env);

	if (err)
		give_up("the sink", err);
	s->sent = 1; /* the start message */
	wait_taken(s);
	round_of_sink(s); /* buffers are allocated here */
	s->seconds = s->whole_s = s->cpu_s = 0;
	atomic_store(&s->shared->bytes, 0);
	for (uint64_t n = 0; n < images; n += ROUND)
		round_of_sink(s);
	s->sink->close(s->state, NULL);
}

static void measure_loop(struct stream *s, struct loop *loop, const char *endpoint, uint64_t images)
{
	const int none = 0;

	loop->socket = zmq_socket(loop->context, ZMQ_PUSH);
	zmq_setsockopt(loop->socket, ZMQ_LINGER, &none, sizeof(none));
	if (zmq_bind(loop->socket, endpoint) < 0)
		give_up("zmq_bind", -errno);
	if (s->sink->open(s->state, &s->b.env))
		give_up("the sink", -EIO);
	keep_copies(loop);
	round_of_loop(s, loop);
	s->seconds = s->cpu_s = 0;
	atomic_store(&s->shared->bytes, 0);
	for (uint64_t n = 0; n < images; n += ROUND)
		round_of_loop(s, loop);
	s->sink->close(s->state, NULL);
	zmq_close(loop->socket);
	for (unsigned i = 0; i < ROUND; i++)
		zmq_msg_close(&loop->message[i]);
	zmq_ctx_term(loop->context);
	for (unsigned i = 0; i < ROUND; i++)
		free(loop->memory[i]);
}

static int make_images(struct bench_experiment *b)
{
	struct sl_batch batch;
	int err = 0;

	for (int i = 0; i < BENCH_BATCHES && !err; i++) {
		err = bench_experiment_fill(b, (uint64_t)i * b->batch, b->batch, false, &batch);
		err = err ? err : bench_experiment_process(b, &batch);
	}
	return err;
}

static void report(const struct stream *s, uint64_t images)
{
	uint64_t rounds = (images + ROUND - 1) / ROUND, bytes = atomic_load(&s->shared->bytes);
	double pixels = (double)(rounds * ROUND * sl_shape_bytes(&s->b.build.result[0]));

	printf("{\"GB_per_s\": %.6f, ", 1e-9 * (double)bytes / s->seconds);
	if (s->whole_s > 0)
		printf("\"pixel_GB_per_s\": %.6f, ", 1e-9 * pixels / s->whole_s);
	printf("\"images_per_s\": %.2f, \"cpu_us_per_image\": %.2f, \"bytes_per_image\": %.0f}\n",
	       (double)(rounds * ROUND) / s->seconds, 1e6 * s->cpu_s / (double)(rounds * ROUND),
	       (double)bytes / (double)(rounds * ROUND));
}

int main(int argc, char **argv)
{
	char address[32], endpoint[64], other[64], setting[64];
	const char *const overrides[] = {setting, "sinks[0].stream2.required=false",
					 "sinks[0].stream2.wait_s=1"};
	static struct stream s;
	static struct loop loop;
	uint64_t images;
	bool plain;
	int err;

	if (argc != 4 || (strcmp(argv[2], "sink") != 0 && strcmp(argv[2], "loop") != 0))
		bench_usage(USAGE);
	images = bench_number(argv[3], USAGE);
	plain = !strcmp(argv[2], "loop");
	choose_address(address, sizeof(address));
	snprintf(endpoint, sizeof(endpoint), "tcp://%s:%d", address, PORT + plain);
	snprintf(other, sizeof(other), "tcp://%s:%d", address, PORT);
	s.shared = bench_memory(4096, MAP_SHARED);
	memset(s.shared, 0, sizeof(*s.shared));
	start_puller(s.shared, endpoint);
	snprintf(setting, sizeof(setting), "sinks[0].stream2.address=%s", address);
	err = bench_experiment_open(&s.b, argv[1], overrides, plain ? 3 : 1);
	if (!err)
		err = make_images(&s.b);
	if (err)
		give_up(argv[1], err);
	s.sink = s.b.e->sink[0];
	s.state = s.b.e->sink_state[0];
	if (plain) {
		record(&s, &loop, other);
		measure_loop(&s, &loop, endpoint, images);
	} else {
		measure_sink(&s, images);
	}
	report(&s, images);
	atomic_store(&s.shared->stop, true);
	wait(NULL);
	bench_experiment_close(&s.b);
	return 0;
}
