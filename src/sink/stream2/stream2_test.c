/* stream2_test.c - a series as a puller in the same process sees it; pullers that come late, stay
 * away, stall and leave. */
#include <unistd.h>
#include <zmq.h>

#include "sink/conformance.h"
#include "sink/stream2/cbor.h"

extern const struct sl_sink sl_sink_stream2;

enum { MESSAGE_BYTES = 64 << 10, PATIENCE_MS = 20000 };

static char address[32], endpoint[64];

static void set_address(struct bench *bench)
{
	bench_set(bench, "address", address);
	bench_set(bench, "wait_s", "0");
}

static void begin(struct bench *bench)
{
	bench_init(bench, &sl_sink_stream2);
	set_address(bench);
}

/* ---- a puller ---- */

struct puller {
	void *context, *socket;
	uint8_t message[MESSAGE_BYTES];
	int bytes;
};

static void connect_puller(struct puller *p)
{
	const int none = 0, small = 1, buffer = 4096, patience_ms = PATIENCE_MS;

	p->context = zmq_ctx_new();
	p->socket = zmq_socket(p->context, ZMQ_PULL);
	zmq_setsockopt(p->socket, ZMQ_LINGER, &none, sizeof(none));
	zmq_setsockopt(p->socket, ZMQ_RCVHWM, &small, sizeof(small));
	zmq_setsockopt(p->socket, ZMQ_RCVBUF, &buffer, sizeof(buffer));
	zmq_setsockopt(p->socket, ZMQ_RCVTIMEO, &patience_ms, sizeof(patience_ms));
	assert_int_equal(zmq_connect(p->socket, endpoint), 0);
}

static void disconnect_puller(struct puller *p)
{
	zmq_close(p->socket);
	zmq_ctx_term(p->context);
}

/* The next message is of this type. */
static void expect(struct puller *p, const char *type)
{
	p->bytes = zmq_recv(p->socket, p->message, sizeof(p->message), 0);
	assert_true(p->bytes > 20 && p->bytes <= MESSAGE_BYTES);
	assert_memory_equal(p->message, "\xd9\xd9\xf7", 3);
	assert_memory_equal(p->message + 4 + (p->message[3] == 0xb8), "dtype", 5);
	assert_memory_equal(p->message + 10 + (p->message[3] == 0xb8), type, strlen(type));
}

static bool has(const struct puller *p, const void *bytes, size_t length)
{
	return memmem(p->message, (size_t)p->bytes, bytes, length) != NULL;
}

/* ---- series ---- */

/* Two frames are prepared before the first is put, as workers do it. */
static void a_series_reaches_the_puller(void **state)
{
	static const char *const compression[] = {"bslz4", "lz4", "none"};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct puller puller;
		struct bench bench;
		struct sl_frame *frame;
		uint16_t pixels[PIXELS];

		begin(&bench);
		bench_set(&bench, "wait_s", "20");
		bench_set(&bench, "compression", compression[i]);
		connect_puller(&puller);
		assert_int_equal(bench_open(&bench), 0);
		expect(&puller, "start");
		assert_true(has(&puller, "image_dtypefuint16", 18));
		frame = bench_frame(&bench, 1, KEPT);
		for (int k = 0; k < PIXELS; k++)
			pixels[k] = (uint16_t)(bench.image[k] < 0 ? 0 : bench.image[k]);
		sl_sink_stream2.prepare(bench.state, 1, frame);
		sl_sink_stream2.prepare(bench.state, 4, frame);
		assert_int_equal(sl_sink_stream2.put_prepared(bench.state, 4, frame), 0);
		assert_int_equal(sl_sink_stream2.put_prepared(bench.state, 1, frame), 0);
		expect(&puller, "image");
		assert_true(has(&puller, "himage_id\0", 10));
		assert_true(has(&puller, "frame_number\2", 13));
		if (i == 2)
			assert_memory_equal(puller.message + puller.bytes - sizeof(pixels), pixels,
					    sizeof(pixels));
		else
			assert_true(has(&puller, compression[i], strlen(compression[i])));
		expect(&puller, "image");
		assert_true(has(&puller, "himage_id\1", 10));
		assert_int_equal(bench_close(&bench), 0);
		expect(&puller, "end");
		assert_int_equal(bench_figure(&bench, "images_sent"), 2);
		assert_int_equal(bench_figure(&bench, "images_dropped"), 0);
		assert_int_equal(bench_figure(&bench, "pixels_clipped"), 2 * 34);
		disconnect_puller(&puller);
		bench_fini(&bench);
	}
}

static void each_pair(void *arg, void (*one)(void *to, const char *key, const char *value),
		      void *to)
{
	(void)arg;
	one(to, "sample", "lysozyme");
	one(to, "exposure_s", "0.25");
}

static void the_start_message_says_what_is_known(void **state)
{
	const struct sl_env_metadata metadata = {.each = each_pair};
	const struct sl_goniometer turns = {.axes = 1,
					    .axis = {{.name = "omega", .increment_deg = 0.1}}};
	struct puller puller;
	struct bench bench;

	(void)state;
	begin(&bench);
	bench_set(&bench, "wait_s", "20");
	connect_puller(&puller);
	bench.env.metadata = &metadata;
	bench.env.goniometer = &turns;
	bench.env.frames = 77;
	assert_int_equal(bench_open(&bench), 0);
	expect(&puller, "start");
	assert_true(has(&puller,
			"user_data\xa2"
			"fsamplehlysozyme",
			26));
	assert_true(has(&puller, "count_time\xfb\x3f\xd0\0", 14)); /* not frame_time */
	assert_true(has(&puller,
			"goniometer\xa1"
			"eomega\xa2",
			18));
	assert_true(has(&puller, "number_of_images\x18\x4d", 18));
	assert_true(has(&puller, "threshold_energy\xa1kthreshold_1\xfb", 30));
	assert_true(has(&puller, "pixel_mask\xa1", 11));
	assert_int_equal(bench_close(&bench), 0);
	expect(&puller, "end");
	disconnect_puller(&puller);
	bench_fini(&bench);
}

static void a_puller_that_comes_before_the_first_image_gets_the_series(void **state)
{
	struct puller puller;
	struct bench bench;

	(void)state;
	begin(&bench);
	assert_int_equal(bench_open(&bench), 0);
	connect_puller(&puller);
	usleep(300000); /* it connects meanwhile */
	assert_int_equal(bench_feed(&bench, 0, KEPT), 0);
	expect(&puller, "start");
	expect(&puller, "image");
	assert_int_equal(bench_close(&bench), 0);
	expect(&puller, "end");
	disconnect_puller(&puller);
	bench_fini(&bench);
}

static void a_puller_that_comes_later_gets_nothing(void **state)
{
	const int short_ms = 100;
	struct puller puller;
	struct bench bench;

	(void)state;
	begin(&bench);
	assert_int_equal(bench_open(&bench), 0);
	assert_int_equal(bench_feed(&bench, 0, KEPT), 0);
	connect_puller(&puller);
	usleep(300000);
	assert_int_equal(bench_feed(&bench, 1, KEPT), 0);
	assert_int_equal(bench_close(&bench), 0);
	zmq_setsockopt(puller.socket, ZMQ_RCVTIMEO, &short_ms, sizeof(short_ms));
	assert_int_equal(zmq_recv(puller.socket, puller.message, 1, 0), -1);
	assert_int_equal(bench_figure(&bench, "images_dropped"), 2);
	assert_int_equal(bench_figure(&bench, "images_sent"), 0);
	disconnect_puller(&puller);
	bench_fini(&bench);
}

/* ---- required ---- */

static void required_without_a_puller_does_not_open(void **state)
{
	struct bench bench;

	(void)state;
	begin(&bench);
	bench_set(&bench, "required", "true");
	assert_int_equal(bench_open(&bench), -ENOTCONN);
	assert_int_equal(sl_sink_stream2.close(bench.state, NULL), 0);
	bench_fini(&bench);
}

static void required_refuses_what_a_puller_that_left_cannot_get(void **state)
{
	struct puller puller;
	struct bench bench;
	uint64_t k = 0;
	int said = 0;

	(void)state;
	begin(&bench);
	bench_set(&bench, "required", "true");
	bench_set(&bench, "wait_s", "20");
	connect_puller(&puller);
	assert_int_equal(bench_open(&bench), 0);
	assert_int_equal(bench_feed(&bench, k++, KEPT), 0);
	disconnect_puller(&puller);
	while (!said && k < 2000) {
		usleep(1000);
		said = bench_feed(&bench, k++, KEPT);
	}
	assert_int_equal(said, -ENOTCONN);
	assert_int_equal(bench_feed(&bench, k, KEPT), -ENOTCONN);
	assert_int_equal(bench_close(&bench), -EPIPE);
	assert_int_equal(bench_figure(&bench, "pullers_lost"), 1);
	assert_int_equal(bench_figure(&bench, "images_dropped"), 2);
	assert_int_equal(bench_figure(&bench, "images_refused"), 2);
	bench_fini(&bench);
}

/* A frame without the image is refused in any case. */
static void a_frame_without_the_image_is_refused(void **state)
{
	struct bench bench;
	struct sl_frame *frame;

	(void)state;
	begin(&bench);
	assert_int_equal(bench_open(&bench), 0);
	frame = bench_frame(&bench, 0, KEPT);
	frame->results = 0;
	assert_int_equal(sl_sink_stream2.put(bench.state, frame), -EINVAL);
	assert_int_equal(bench_figure(&bench, "images_refused"), 1);
	assert_int_equal(bench_feed(&bench, 1, KEPT), 0);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

/* ---- a full queue ---- */

/* 4 MB an image, which no socket buffer takes. */
static void make_large(struct bench *bench, uint16_t **pixels)
{
	bench->geometry.rows = bench->geometry.columns = 1024;
	bench->shape[0] = (struct sl_shape){"raw", SL_U16, 3, {MODULES, 1024, 1024}};
	bench_set(bench, "dataset", "raw");
	bench_set(bench, "compression", "none");
	bench_set(bench, "queue", "2");
	bench_set(bench, "wait_s", "20");
	bench_set(bench, "timeout_s", "0.3");
	*pixels = calloc(MODULES << 20, sizeof(**pixels));
	assert_non_null(*pixels);
}

static int feed_large(struct bench *bench, uint64_t k, uint16_t *pixels)
{
	struct sl_frame *frame = bench_frame(bench, k, KEPT);

	frame->result[0] = (struct sl_array){.shape = bench->shape[0], .host = pixels};
	return sl_sink_stream2.put(bench->state, frame);
}

static void a_full_queue_drops(void **state)
{
	struct puller puller;
	struct bench bench;
	uint16_t *pixels;

	(void)state;
	begin(&bench);
	make_large(&bench, &pixels);
	connect_puller(&puller);
	assert_int_equal(bench_open(&bench), 0);
	for (uint64_t k = 0; k < 20; k++)
		assert_int_equal(feed_large(&bench, k, pixels), 0);
	assert_true(bench_figure(&bench, "images_dropped") >= 10);
	assert_int_equal(
		bench_figure(&bench, "images_dropped") + bench_figure(&bench, "images_sent"), 20);
	assert_int_equal(bench_close(&bench), 0);
	assert_in_range(bench_figure(&bench, "images_untaken"), 1, 2);
	disconnect_puller(&puller);
	bench_fini(&bench);
	free(pixels);
}

static void waiting_ends_and_required_frames_are_unwritten(void **state)
{
	struct puller puller;
	struct bench bench;
	uint16_t *pixels;
	int refused = 0;

	(void)state;
	begin(&bench);
	make_large(&bench, &pixels);
	bench_set(&bench, "on_slow", "wait");
	bench_set(&bench, "required", "true");
	connect_puller(&puller);
	assert_int_equal(bench_open(&bench), 0);
	for (uint64_t k = 0; k < 20; k++) {
		int said = feed_large(&bench, k, pixels);

		assert_true(!said || said == -ENOBUFS);
		refused += !!said;
	}
	assert_true(refused >= 10); /* and only the first of them waited */
	assert_int_equal(bench_close(&bench), -EPIPE);
	disconnect_puller(&puller);
	bench_fini(&bench);
	free(pixels);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFORMANCE_CASES,
		cmocka_unit_test(a_series_reaches_the_puller),
		cmocka_unit_test(the_start_message_says_what_is_known),
		cmocka_unit_test(a_puller_that_comes_before_the_first_image_gets_the_series),
		cmocka_unit_test(a_puller_that_comes_later_gets_nothing),
		cmocka_unit_test(required_without_a_puller_does_not_open),
		cmocka_unit_test(required_refuses_what_a_puller_that_left_cannot_get),
		cmocka_unit_test(a_frame_without_the_image_is_refused),
		cmocka_unit_test(a_full_queue_drops),
		cmocka_unit_test(waiting_ends_and_required_frames_are_unwritten),
	};
	unsigned pid = (unsigned)getpid();

	/* An address of this process alone. */
	snprintf(address, sizeof(address), "127.%u.%u.%u", 64 + (pid >> 16 & 63), pid >> 8 & 255,
		 pid & 255);
	snprintf(endpoint, sizeof(endpoint), "tcp://%s:31001", address);
	conforming = &sl_sink_stream2;
	prepare = set_address;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
