/* stream2.c - kept images as a DECTRIS stream2: CBOR messages over ZeroMQ, for Eiger clients.
 *
 * A run is a series: a start message to every puller, one message for each kept image, an end
 * message. image_id counts kept images from 0; image n goes to socket n / block % sockets. What a
 * socket cannot take is dropped and counted, and its image_id is missing in the stream.
 *
 * Threads:   workers assemble, convert and pack an image into a message (prepare); the sink's own
 *            thread writes the fields in front of it, since only there image_id is known, and gives
 *            the message to ZeroMQ (put_prepared), whose threads send it.
 * Cost:      one copy to assemble, one pass to convert, packing; sending copies nothing. Memory: a
 *            message buffer for every slot of the workers and every queued image, touched as far
 *            as packed images need it. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/sink.h>

#include "base/clock.h"
#include "base/log.h"
#include "codec/pack.h"
#include "sink/stream2/image.h"
#include "sink/stream2/message.h"
#include "sink/stream2/push.h"
#include "sink/stream2/start.h"

enum { MODULES, ASSEMBLED }; /* the choices of `image` */
enum { BSLZ4, LZ4, NONE };   /* of `compression` */
enum { DROP, WAIT };	     /* of `on_slow` */
enum { SLOTS = 2 * SL_SINK_WORKERS + 1 };
/* Where pixels begin in a message buffer: aligned for any type. What precedes them ends there. */
enum { PIXELS_AT = SL_STREAM2_FIELDS_BYTES + SL_STREAM2_DATA_BYTES };
#define DEFAULT_PERIOD_NS UINT64_C(1000000) /* as timestamps have it without a frame rate */

/* What one worker at a time needs. */
struct workspace {
	struct workspace *next; /* in the list of free ones */
	struct sl_packer packer;
	void *image;
};

struct slot {
	struct sl_push_buffer *buffer;
	size_t bytes; /* from the head of `data` on */
	int error;
};

struct stream2 {
	char address[64], dataset[SL_NAME_BYTES];
	uint32_t port, sockets, block, queue, image, compression, on_slow, workers;
	bool required;
	double wait_s, timeout_s;

	struct sl_image made;
	struct sl_push push;
	struct sl_stream2_series series;
	char series_date[SL_STREAM2_DATE_BYTES];
	uint64_t first_timestamp, period_ns, exposure_ns;
	uint8_t data_head[SL_STREAM2_DATA_BYTES];
	size_t data_head_bytes, packed_most;
	enum sl_codec codec;
	void *start;
	struct slot slot[SLOTS];
	pthread_mutex_t lock;
	struct workspace *free;
	bool open, told;
	uint64_t images, bytes, refused, untaken;
	_Atomic uint64_t clipped;
	char where[SL_PUSH_ENDPOINT_BYTES];
};

static const struct sl_option options[] = {
	SL_STRING(struct stream2, address, "127.0.0.1",
		  "address of this host that pullers connect to; *: all of them"),
	SL_U32(struct stream2, port, 31001, 1, 65535, "", "TCP port of the first socket"),
	SL_U32(struct stream2, sockets, 1, 1, SL_PUSH_SOCKETS, "sockets",
	       "PUSH sockets on consecutive ports, one puller each; images are divided between "
	       "them"),
	SL_U32(struct stream2, block, 1, 1, 1000000, "images",
	       "consecutive images that go to the same socket"),
	SL_STRING(struct stream2, dataset, "image", "the stage's result that is sent"),
	SL_CHOICE(struct stream2, image, assembled, "modules|assembled",
		  "modules one below the other as they were read, or one image with the "
		  "detector's gaps"),
	SL_CHOICE(struct stream2, compression, bslz4, "bslz4|lz4|none", "of the images"),
	SL_U32(struct stream2, workers, 2, 0, SL_SINK_WORKERS, "threads",
	       "threads that pack images; 0: the sink's own thread packs them"),
	SL_BOOL(struct stream2, required, false,
		"true: the run fails without a puller on every socket, and a dropped image makes "
		"its frame unwritten; false: drops are counted only"),
	SL_F64(struct stream2, wait_s, 1, 0, 600, "s",
	       "longest wait for pullers before the run begins"),
	SL_CHOICE(struct stream2, on_slow, drop, "drop|wait",
		  "when a puller's queue is full: drop the image, or wait for room and so slow "
		  "down the run"),
	SL_U32(struct stream2, queue, 100, 1, 100000, "images", "images queued for each puller"),
	SL_F64(struct stream2, timeout_s, 5, 0.1, 600, "s",
	       "a puller that takes nothing for this time is not waited for any more: with "
	       "on_slow: wait, and at the end of the run"),
	SL_OPTION_END};

/* ---- open ---- */

/* The result to send, or a message that says which there are. */
static const struct sl_shape *find_result(const struct stream2 *s, const struct sl_env *env)
{
	char names[SL_RESULTS * (SL_NAME_BYTES + 2)] = "";
	size_t at = 0;

	for (uint32_t i = 0; i < env->results; i++) {
		if (!strcmp(env->result[i].name, s->dataset))
			return &env->result[i];
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? ", " : "",
				       env->result[i].name);
	}
	if (env->results)
		sl_error("stream2: no stage makes '%s'; set dataset to what there is: %s",
			 s->dataset, names);
	else
		sl_error("stream2: no stage makes an image to send: add one to stages, for example "
			 "'- correct:'");
	return NULL;
}

static void free_workspaces(struct stream2 *s)
{
	while (s->free) {
		struct workspace *w = s->free;

		s->free = w->next;
		sl_packer_fini(&w->packer);
		free(w->image);
		free(w);
	}
}

static int open_workspaces(struct stream2 *s)
{
	for (uint32_t i = 0; i < (s->workers ? s->workers : 1); i++) {
		struct workspace *w = calloc(1, sizeof(*w));

		if (!w || sl_packer_init(&w->packer, SL_VECTORS_AUTO)) {
			free(w);
			return -ENOMEM;
		}
		w->next = s->free;
		s->free = w;
		w->image = malloc(s->made.bytes);
		if (!w->image)
			return -ENOMEM;
	}
	return 0;
}

static void describe(struct stream2 *s, const struct sl_env *env)
{
	static const enum sl_codec codecs[] = {
		[BSLZ4] = SL_CODEC_BSLZ4, [LZ4] = SL_CODEC_LZ4, [NONE] = SL_CODEC_NONE};

	s->codec = codecs[s->compression];
	s->packed_most = s->codec == SL_CODEC_NONE
				 ? s->made.bytes
				 : sl_pack_bound(s->codec, s->made.bytes, s->made.element);
	s->period_ns = env->frame_rate_Hz > 0 ? (uint64_t)(1e9 / env->frame_rate_Hz)
					      : DEFAULT_PERIOD_NS;
	s->exposure_ns = sl_start_exposure_ns(env, s->period_ns);
	s->data_head_bytes = sl_stream2_data_head(s->made.rows, s->made.columns, s->made.dtype,
						  s->codec, s->data_head, sizeof(s->data_head));
	sl_stream2_series_init(&s->series);
	if (s->sockets > 1)
		snprintf(s->where, sizeof(s->where), "tcp://%s:%u-%u", s->address, s->port,
			 s->port + s->sockets - 1);
	else
		snprintf(s->where, sizeof(s->where), "tcp://%s:%u", s->address, s->port);
}

static int open_push(struct stream2 *s)
{
	const struct sl_push_options push = {
		.address = s->address,
		.port = s->port,
		.sockets = s->sockets,
		.queue = s->queue,
		.buffer_bytes = PIXELS_AT + s->packed_most,
		.timeout_ns = (uint64_t)(1e9 * s->timeout_s),
		.wait = s->on_slow == WAIT,
	};

	return sl_push_open(&s->push, &push);
}

/* Every socket has a puller, or none is required. */
static int meet_pullers(struct stream2 *s)
{
	uint32_t missing = sl_push_wait(&s->push, (uint64_t)(1e9 * s->wait_s));

	for (uint32_t i = 0; missing && s->required && i < s->sockets; i++)
		if (!s->push.socket[i].pullers) {
			sl_error("stream2: no puller has connected to %s within %.3g s (wait_s). "
				 "To do: start the client first, or set required: false",
				 s->push.socket[i].endpoint, s->wait_s);
			return -ENOTCONN;
		}
	return 0;
}

static int check_ports(const struct stream2 *s)
{
	if (s->port + s->sockets - 1 <= UINT16_MAX)
		return 0;
	sl_error("stream2: port %u and %u sockets go beyond port 65535; lower one of them", s->port,
		 s->sockets);
	return -EINVAL;
}

static int open_stream2(void *state, const struct sl_env *env)
{
	struct stream2 *s = state;
	const struct sl_shape *shape = find_result(s, env);
	size_t start_bytes = 0;
	int err = shape ? check_ports(s) : -EINVAL;

	if (err)
		return err;
	pthread_mutex_init(&s->lock, NULL);
	s->open = true;
	err = sl_image_open(&s->made, env, shape, s->image == ASSEMBLED);
	if (err)
		return err;
	describe(s, env);
	err = open_workspaces(s);
	if (!err)
		err = sl_start_make(&s->made, env, &s->series, s->codec, &s->free->packer,
				    s->period_ns, &s->start, &start_bytes);
	if (!err)
		err = open_push(s);
	if (!err)
		err = meet_pullers(s);
	if (!err)
		sl_push_start(&s->push, s->start, start_bytes);
	return err;
}

/* ---- workers ---- */

static struct workspace *take_workspace(struct stream2 *s)
{
	struct workspace *w;

	pthread_mutex_lock(&s->lock);
	w = s->free; /* never NULL: there is one for each worker */
	s->free = w->next;
	pthread_mutex_unlock(&s->lock);
	return w;
}

static void return_workspace(struct stream2 *s, struct workspace *w)
{
	pthread_mutex_lock(&s->lock);
	w->next = s->free;
	s->free = w;
	pthread_mutex_unlock(&s->lock);
}

/* Returns the bytes of the image as it is sent, or -errno. */
static int64_t pack(struct stream2 *s, const struct sl_array *result, uint64_t missing, void *out)
{
	struct workspace *w = take_workspace(s);
	void *memory = s->codec == SL_CODEC_NONE ? out : w->image;
	uint64_t clipped = 0;
	const void *image = sl_image_make(&s->made, result->host, missing, memory, &clipped);
	int64_t n = (int64_t)s->made.bytes;

	if (s->codec != SL_CODEC_NONE)
		n = sl_pack(&w->packer, s->codec, image, s->made.bytes, s->made.element, out,
			    s->packed_most);
	else if (image != out)
		memcpy(out, image, s->made.bytes);
	return_workspace(s, w);
	atomic_fetch_add_explicit(&s->clipped, clipped, memory_order_relaxed);
	return n;
}

static void prepare(void *state, unsigned number, struct sl_frame *frame)
{
	struct stream2 *s = state;
	struct slot *slot = &s->slot[number];
	const struct sl_array *result = sl_frame_result(frame, s->dataset);
	uint8_t *head;
	int64_t n;

	*slot = (struct slot){.error = -EINVAL};
	if (!result || !result->host || sl_shape_bytes(&result->shape) != s->made.from_bytes)
		return;
	slot->buffer = sl_push_buffer_get(&s->push);
	slot->error = -ENOMEM;
	if (!slot->buffer)
		return;
	head = slot->buffer->memory + PIXELS_AT - s->data_head_bytes;
	n = pack(s, result, frame->missing, head + s->data_head_bytes);
	slot->error = n < 0 ? (int)n : 0;
	if (n < 0)
		return;
	memcpy(head, s->data_head, s->data_head_bytes);
	sl_cbor_set_long_bytes(head + s->data_head_bytes - SL_CBOR_LONG_BYTES_HEAD, (uint32_t)n);
	slot->bytes = s->data_head_bytes + (size_t)n;
}

/* ---- the sink's own thread ---- */

/* In front of the data. Returns where the message begins in the buffer. */
static size_t write_fields(struct stream2 *s, const struct sl_frame *frame, struct slot *slot)
{
	uint64_t since = frame->timestamp - s->first_timestamp;
	const struct sl_stream2_image image = {
		.series = &s->series,
		.series_date = s->series_date,
		.id = s->images,
		.start_ns = frame->timestamp > s->first_timestamp ? since : 0,
		.real_ns = s->exposure_ns,
		.frame_number = frame->number,
		.timestamp = frame->timestamp,
		.missing = frame->missing};
	uint8_t fields[SL_STREAM2_FIELDS_BYTES];
	size_t n = sl_stream2_image_fields(&image, fields, sizeof(fields));

	memcpy(slot->buffer->memory + PIXELS_AT - s->data_head_bytes - n, fields, n);
	return PIXELS_AT - s->data_head_bytes - n;
}

/* The series begins with its first image: times count from there. */
static void begin_series(struct stream2 *s, const struct sl_frame *frame)
{
	sl_clock_iso8601(sl_clock_unix_ns(), s->series_date, sizeof(s->series_date));
	s->first_timestamp = frame->timestamp;
}

static int refuse(struct stream2 *s, const struct sl_frame *frame, int why, const char *what)
{
	s->refused++;
	if (!s->told)
		sl_error("stream2: image %" PRIu64 " (frame %" PRIu64 ") %s: %s. This frame and "
			 "others like it are %s",
			 s->images - 1, frame->number, what, strerror(-why),
			 s->required ? "unwritten" : "counted (images_refused)");
	s->told = true;
	return why;
}

static int put_prepared(void *state, unsigned number, struct sl_frame *frame)
{
	struct stream2 *s = state;
	struct slot *slot = &s->slot[number];
	size_t offset, bytes;
	int err = slot->error;

	if (!s->images)
		begin_series(s, frame);
	if (err) {
		if (slot->buffer)
			sl_push_buffer_put(slot->buffer);
		s->images++;
		return refuse(s, frame, err, "could not be packed");
	}
	offset = write_fields(s, frame, slot);
	bytes = PIXELS_AT - s->data_head_bytes - offset + slot->bytes;
	err = sl_push_image(&s->push, (uint32_t)(s->images / s->block % s->sockets), slot->buffer,
			    offset, bytes);
	s->images++;
	s->bytes += err ? 0 : bytes;
	return err && s->required ? refuse(s, frame, err, "was dropped") : 0;
}

static int put(void *state, struct sl_frame *frame)
{
	prepare(state, 0, frame);
	return put_prepared(state, 0, frame);
}

/* ---- close ---- */

/* Whether what was accepted is safe: that counts only where pullers are required. */
static int end_series(struct stream2 *s)
{
	uint8_t end[128];
	size_t bytes = sl_stream2_end(&s->series, end, sizeof(end));

	s->untaken = sl_push_end(&s->push, end, bytes);
	if (s->untaken)
		sl_warn("stream2: %" PRIu64 " images were still queued at the end, and the puller "
			"has taken nothing for %.3g s (timeout_s): they are lost",
			s->untaken, s->timeout_s);
	if (!s->required || (!s->untaken && !s->push.lost))
		return 0;
	sl_error("stream2: a required puller has not got the whole series: frames are unwritten");
	return -EPIPE;
}

static int close_stream2(void *state, const struct sl_status *status)
{
	struct stream2 *s = state;
	int err = 0;

	if (!s->open)
		return 0;
	if (s->push.context)
		err = end_series(s);
	sl_push_close(&s->push);
	free_workspaces(s);
	sl_image_close(&s->made);
	free(s->start);
	s->start = NULL;
	pthread_mutex_destroy(&s->lock);
	s->open = false;
	return status ? err : 0;
}

/* ---- queries ---- */

static const char *where(const void *state)
{
	return ((const struct stream2 *)state)->where;
}

static void figures(const void *state, sl_sink_figure *figure, void *arg)
{
	const struct stream2 *s = state;
	uint64_t dropped = 0, sent = 0;
	char name[32];

	for (uint32_t i = 0; i < s->push.sockets; i++) {
		sent += s->push.socket[i].sent;
		dropped += s->push.socket[i].dropped;
	}
	figure(arg, "images_sent", sent, 0);
	figure(arg, "bytes", s->bytes, 0);
	figure(arg, "images_dropped", dropped, s->required);
	for (uint32_t i = 0; s->push.sockets > 1 && i < s->push.sockets; i++) {
		snprintf(name, sizeof(name), "images_dropped_%u", s->port + i);
		figure(arg, name, s->push.socket[i].dropped, 0);
	}
	figure(arg, "images_refused", s->refused, 1);
	figure(arg, "images_untaken", s->untaken, s->required);
	figure(arg, "pixels_clipped", atomic_load_explicit(&s->clipped, memory_order_relaxed), 0);
	figure(arg, "pullers_lost", s->push.lost, s->required);
	figure(arg, "pullers_extra", s->push.extra, 0);
}

static int reads(const void *state, const char *image)
{
	return !strcmp(image, ((const struct stream2 *)state)->dataset);
}

static uint32_t wants_more(const void *state)
{
	return strcmp(((const struct stream2 *)state)->dataset, "raw") == 0 ? SL_WANT_RAW : 0;
}

/* A slow puller delays neither other sinks nor what goes back to the front end. */
static int own_thread(const void *state)
{
	(void)state;
	return 1;
}

static int required(const void *state)
{
	return ((const struct stream2 *)state)->required;
}

static unsigned workers(const void *state)
{
	return ((const struct stream2 *)state)->workers;
}

const struct sl_sink sl_sink_stream2 = {
	.name = "stream2",
	.doc = "sends kept images to Eiger clients (DECTRIS stream2: CBOR over ZeroMQ)",
	.state_bytes = sizeof(struct stream2),
	.options = options,
	.wants = SL_WANT_KEPT,
	.wants_more = wants_more,
	.reads = reads,
	.own_thread = own_thread,
	.workers = workers,
	.prepare = prepare,
	.put_prepared = put_prepared,
	.open = open_stream2,
	.put = put,
	.close = close_stream2,
	.where = where,
	.figures = figures,
	.required = required,
};
