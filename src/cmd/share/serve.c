/* serve.c - a file's array, or zeros, as a region or a ring of elements. */
#include "cmd/share/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/share.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/share/follower.h"
#include "cmd/share/message.h"
#include "cmd/share/npy.h"
#include "cmd/signals.h"

enum { LOOK_MS = 100, RING_PLACES = 32 };

struct serve {
	const struct sl_serve_options *options;
	struct sl_npy npy; /* what there is: all elements of a ring */
	void *memory;	   /* of the file */
	const uint8_t *data;
	uint64_t elements, element_bytes;
	struct sl_share_array array;
	struct sl_share *share;
};

/* ---- what is served ---- */

static int read_npy(struct serve *s)
{
	uint64_t bytes;
	char why[200];
	int err = sl_read_whole(s->options->npy, &s->memory, &bytes);

	if (err)
		return err;
	err = sl_npy_parse(s->memory, bytes < SL_NPY_MOST ? bytes : SL_NPY_MOST, &s->npy, why,
			   sizeof(why));
	if (err) {
		sl_error("%s: %s", s->options->npy, why);
		return err;
	}
	s->data = (uint8_t *)s->memory + s->npy.data;
	s->npy.data = bytes - s->npy.data; /* from here on: how many there are */
	return 0;
}

/* "512,512" */
static int read_shape(struct serve *s)
{
	const char *at = s->options->shape;
	char *end;

	for (s->npy.rank = 0; *at && s->npy.rank < SL_NPY_RANK; s->npy.rank++) {
		errno = 0;
		s->npy.dim[s->npy.rank] = strtoull(at, &end, 10);
		if (errno || end == at || *at == '-' || (*end && *end != ','))
			break;
		at = end + (*end == ',');
	}
	if (!*at)
		return 0;
	sl_error("--shape: '%s': takes at most %d numbers with commas between them, as in 512,512",
		 s->options->shape, SL_NPY_RANK);
	return -EINVAL;
}

static int read_raw(struct serve *s)
{
	const struct sl_serve_options *o = s->options;
	uint64_t bytes = o->size;
	int err = o->raw[0] ? sl_read_whole(o->raw, &s->memory, &bytes) : 0;

	if (!err && !o->raw[0]) {
		s->memory = calloc(1, bytes ? bytes : 1);
		err = s->memory ? 0 : -ENOMEM;
		if (err)
			sl_error("no memory for %" PRIu64 " bytes", bytes);
	}
	if (err)
		return err;
	s->data = s->memory;
	s->npy = (struct sl_npy){.rank = 1, .dim = {bytes}, .data = bytes};
	snprintf(s->npy.type, sizeof(s->npy.type), "%s", o->type);
	return o->shape[0] ? read_shape(s) : 0;
}

static int read_it(struct serve *s)
{
	const struct sl_serve_options *o = s->options;

	if ((o->npy[0] != 0) + (o->raw[0] != 0) + (o->size != 0) != 1) {
		sl_error("serve takes one of --npy FILE, --raw FILE and --size BYTES");
		return -EINVAL;
	}
	return o->npy[0] ? read_npy(s) : read_raw(s);
}

/* The first dimension of a ring counts its elements. */
static int divide(struct serve *s)
{
	uint32_t first = s->options->ring;
	uint64_t most = 1;

	if (first && !s->npy.rank) {
		sl_error("--ring: the array has one number alone: nothing counts elements");
		return -EINVAL;
	}
	if (s->npy.rank - first > SL_SHARE_RANK) {
		sl_error("an array of a share has at most %d dimensions", SL_SHARE_RANK);
		return -EINVAL;
	}
	s->elements = first ? s->npy.dim[0] : 1;
	s->array = (struct sl_share_array){.rank = s->npy.rank - first};
	snprintf(s->array.name, sizeof(s->array.name), "%s", s->options->array);
	memcpy(s->array.type, s->npy.type, sizeof(s->array.type));
	for (uint32_t i = 0; i < s->array.rank; i++) {
		uint64_t dim = s->npy.dim[i + first];

		if (dim > UINT32_MAX || (dim && most > (UINT64_C(1) << 47) / dim)) {
			sl_error("an array of this size does not fit into a share");
			return -EINVAL;
		}
		s->array.dim[i] = (uint32_t)dim;
		most *= dim;
	}
	if (s->elements)
		return 0;
	sl_error("--ring: the array is empty");
	return -EINVAL;
}

static int open_share(struct serve *s, const char *name)
{
	const struct sl_serve_options *o = s->options;
	const struct sl_share_options options = {
		.bytes = sizeof(options),
		.arrays = 1,
		.array = &s->array,
		.count = o->count  ? o->count
			 : o->ring ? RING_PLACES
				   : 1,
		.listen = o->listen[0] ? o->listen : NULL,
		.secret_file = o->secret_file[0] ? o->secret_file : NULL,
		.device = o->device[0] ? o->device : NULL,
	};
	struct sl_remote_error error;
	int err = sl_share_open(name, &options, &s->share, &error);

	if (err) {
		sl_error("%s", error.message);
		return err;
	}
	s->element_bytes = sl_share_describe(s->share)->array[0].bytes;
	if (s->npy.data / s->elements >= s->element_bytes)
		return 0;
	sl_error("there are %" PRIu64 " bytes of data, and an array of this type and shape has "
		 "%" PRIu64,
		 s->npy.data, s->element_bytes * s->elements);
	return -EINVAL;
}

/* ---- serving ---- */

static void publish(struct serve *s, uint64_t n)
{
	const void *from[] = {s->data + n % s->elements * s->element_bytes};
	const struct sl_share_note note = {.number = n, .keep = 1};

	sl_share_push(s->share, &note, from);
}

static void take_messages(struct serve *s, int timeout_ms)
{
	struct sl_share_message m;
	int wait_ms = timeout_ms;

	while (!sl_share_receive(s->share, wait_ms, &m)) {
		printf("message of follower %" PRIu64 ": ", m.peer);
		sl_print_message(&m);
		if (s->options->echo && sl_share_send(s->share, m.peer, m.kind, m.data, m.bytes))
			sl_warn("follower %" PRIu64 " takes no answers", m.peer);
		sl_remote_free(m.data);
		wait_ms = 0;
	}
}

static int until(uint64_t end_ns)
{
	uint64_t now_ns = sl_clock_ns(), ms = now_ns < end_ns ? (end_ns - now_ns) / 1000000 : 0;

	return ms < LOOK_MS ? (int)ms : LOOK_MS;
}

static void serve(struct serve *s)
{
	const struct sl_serve_options *o = s->options;
	uint64_t begin_ns = sl_clock_ns(), end_ns = UINT64_MAX, due_ns = begin_ns, n = 0;

	if (o->duration_s > 0)
		end_ns = begin_ns + (uint64_t)(o->duration_s * 1e9);
	while (!sl_signal && sl_clock_ns() < end_ns && !(o->elements && n >= o->elements)) {
		if ((o->ring || !n) && sl_clock_ns() >= due_ns) {
			publish(s, n++);
			due_ns = begin_ns + (uint64_t)((double)n * 1e9 / o->rate_Hz);
		}
		take_messages(s, until(o->ring && due_ns < end_ns ? due_ns : end_ns));
		if (o->ring && until(due_ns) == 0)
			sl_clock_sleep_until(due_ns);
	}
}

int sl_serve(const char *name, const struct sl_serve_options *options)
{
	struct serve s = {.options = options};
	const struct sl_taken taken = {.array = &s.array};
	char words[160];
	int err = read_it(&s);

	if (!err)
		err = divide(&s);
	if (!err)
		err = open_share(&s, name);
	if (!err) {
		sl_taken_words(&taken, words, sizeof(words));
		printf("%s: %s %s, %" PRIu64 " %s; Ctrl-C ends it\n", sl_share_url(s.share),
		       s.array.name, words, sl_share_describe(s.share)->count,
		       sl_share_describe(s.share)->count == 1 ? "place" : "places");
		fflush(stdout);
		serve(&s);
	}
	sl_share_close(s.share);
	free(s.memory);
	return err;
}
