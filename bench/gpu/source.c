/* source.c - the sources of rows ingest/...: threads in the place of five front ends that
 * write into rings in the host's memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include <sluice/random.h>

#include "base/copy.h"
#include "base/idle.h"
#include "bench/gpu/checksum_maths.h"
#include "bench/gpu/ingest.h"

enum { LINE = 64, SPIN_NS = 200000, NAP_NS = 20000 };
enum { CHUNK = 1024, PERIOD = 16 }; /* words */
/* Bits of two pixels that are another for each event: less than the noise. */
#define CHANGED 0x00070007u

/* ---- an event ---- */

static uint32_t *buffer_of(const struct sl_ingest_source *source, uint64_t event)
{
	const struct sl_ingest *g = source->home;

	return (uint32_t *)(source->data +
			    event % g->terms.buffers * SL_INGEST_SOURCES * g->module_bytes);
}

/* 28 bits of a number in two pixels, as any two that are in G0. */
static uint32_t in_pixels(uint64_t number)
{
	return (uint32_t)(number & 0x3fff) | (uint32_t)(number >> 14 & 0x3fff) << 16;
}

/* Pixels stay; only their first ones say which event this is. */
static uint32_t write_stamp(struct sl_ingest_source *source, uint64_t event)
{
	uint32_t *to = buffer_of(source, event);
	const uint32_t stamp[SL_INGEST_STAMP] = {in_pixels(event), in_pixels(event >> 28),
						 in_pixels(~event), source->number};

	memcpy(to, stamp, sizeof(stamp));
	return source->rest[event % source->home->terms.buffers] +
	       sl_ingest_checksum(stamp, 0, SL_INGEST_STAMP);
}

SL_FORCE_INLINE void make_words(uint32_t *restrict to, const uint32_t *restrict from,
				const uint32_t *restrict change, uint32_t first, uint32_t n,
				uint32_t *restrict sum)
{
	uint32_t all = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t word = from[i] ^ change[i];

		to[i] = word;
		all += sl_checksum_word(word, first + i);
	}
	*sum += all;
}
SL_VECTORS(make_words,
	   (uint32_t *restrict to, const uint32_t *restrict from, const uint32_t *restrict change,
	    uint32_t first, uint32_t n, uint32_t *restrict sum),
	   (to, from, change, first, n, sum))

/* All pixels, around the cache: the device reads them next, not this core. */
static uint32_t write_pixels(struct sl_ingest_source *source, uint64_t event)
{
	const struct sl_ingest *g = source->home;
	uint32_t words = (uint32_t)(g->module_bytes / sizeof(uint32_t)), sum = 0;
	uint32_t change[CHUNK] __attribute__((aligned(64)));
	uint32_t chunk[CHUNK] __attribute__((aligned(64)));
	uint64_t key = sl_key(source->number, event);
	uint32_t *to = buffer_of(source, event);

	for (uint32_t k = 0; k < CHUNK; k++)
		change[k] = k < PERIOD ? (uint32_t)sl_draw(key, k) & CHANGED : change[k - PERIOD];
	for (uint32_t at = 0; at < words; at += CHUNK) {
		uint32_t n = words - at < CHUNK ? words - at : CHUNK;

		SL_VECTORS_PICK(make_words, g->vectors)
		(chunk, source->base + at, change, at, n, &sum);
		sl_copy_stream(to + at, chunk, n * sizeof(*chunk));
	}
	sl_copy_fence();
	return sum;
}

static void publish(struct sl_ingest_source *source, uint64_t event, uint32_t check)
{
	const struct sl_ingest *g = source->home;
	struct sl_ingest_meta *meta = &source->meta[event % g->terms.buffers];

	meta->bytes = (uint32_t)g->module_bytes;
	meta->flags = 0;
	meta->check = check;
	source->published++;
	/* After all pixels; pairs with the driver's look at it. */
	atomic_store_explicit(&meta->turn, sl_ingest_turn(event), memory_order_release);
}

/* ---- the thread ---- */

/* The buffer may be written; false: it never will. */
static bool await_enable(struct sl_ingest_source *source, uint64_t event, struct sl_idle *idle)
{
	struct sl_ingest *g = source->home;
	_Atomic uint32_t *enable = &source->enable[event % g->terms.buffers];
	struct timespec nap = {0, NAP_NS};

	/* Pairs with the driver's release, when nobody reads the buffer any more. */
	while (atomic_load_explicit(enable, memory_order_acquire) != sl_ingest_turn(event)) {
		if (atomic_load_explicit(&g->quit, memory_order_relaxed))
			return false;
		if (sl_idle_sleep(idle))
			nanosleep(&nap, NULL);
	}
	sl_idle_work(idle);
	return true;
}

static bool is_now(const struct sl_ingest_source *source, const struct sl_ingest_fault *fault,
		   uint64_t event)
{
	return fault->on && fault->source == source->number && fault->event == event;
}

static void *write_events(void *arg)
{
	struct sl_ingest_source *source = arg;
	const struct sl_ingest_terms *terms = &source->home->terms;
	struct sl_idle idle;

	prctl(PR_SET_TIMERSLACK, 1);
	sl_idle_init(&idle, SL_POLLING_ADAPTIVE, SPIN_NS, true);
	for (uint64_t event = 0; !is_now(source, &terms->vanish, event); event++) {
		uint32_t check;

		if (!await_enable(source, event, &idle))
			break;
		check = terms->written ? write_pixels(source, event) : write_stamp(source, event);
		if (is_now(source, &terms->spoil, event))
			buffer_of(source, event)[source->home->module_bytes / 8] ^= 1u << 5;
		publish(source, event, check);
	}
	return NULL;
}

/* ---- the ring ---- */

/* What every buffer has from the beginning: pixels of frames of the scene. */
static void fill(struct sl_ingest_source *source)
{
	const struct sl_ingest *g = source->home;
	uint64_t pixels = g->module_bytes / sizeof(uint16_t);
	uint32_t words = (uint32_t)(g->module_bytes / sizeof(uint32_t));

	for (uint32_t b = 0; b < g->terms.buffers; b++) {
		uint32_t *to = buffer_of(source, b);

		memcpy(to, g->scene.raw + b % g->drawn * g->scene.pixels + source->number * pixels,
		       g->module_bytes);
		source->rest[b] = sl_ingest_checksum(to + SL_INGEST_STAMP, SL_INGEST_STAMP,
						     words - SL_INGEST_STAMP);
		atomic_init(&source->meta[b].turn, 0);
		atomic_init(&source->enable[b], sl_ingest_turn(b));
	}
	memcpy(source->base, source->data, g->module_bytes);
}

static int open_memory(struct sl_ingest *g, uint64_t bytes, struct sl_device_memory *m)
{
	if (g->device)
		return g->device->platform->pinned_open(g->device, bytes, m);
	*m = (struct sl_device_memory){.bytes = bytes, .host = aligned_alloc(LINE, bytes)};
	return m->host ? 0 : -ENOMEM;
}

static void close_memory(struct sl_ingest *g, struct sl_device_memory *m)
{
	if (g->device)
		g->device->platform->memory_close(g->device, m);
	else
		free(m->host);
}

int sl_ingest_pixels_open(struct sl_ingest *g)
{
	return open_memory(g, (uint64_t)g->terms.buffers * SL_INGEST_SOURCES * g->module_bytes,
			   &g->pixels);
}

void sl_ingest_pixels_close(struct sl_ingest *g)
{
	close_memory(g, &g->pixels);
}

int sl_ingest_source_open(struct sl_ingest *g, unsigned number)
{
	struct sl_ingest_source *source = &g->source[number];
	uint64_t buffers = g->terms.buffers;
	uint64_t words = (sizeof(*source->meta) + sizeof(*source->enable)) * buffers;
	int err;

	source->home = g;
	source->number = number;
	source->rest = calloc(buffers, sizeof(*source->rest));
	source->base = aligned_alloc(LINE, g->module_bytes);
	if (!source->rest || !source->base)
		return -ENOMEM;
	err = open_memory(g, (words + LINE - 1) / LINE * LINE, &source->memory);
	if (err)
		return err;
	source->data = (uint8_t *)g->pixels.host + number * g->module_bytes;
	source->meta = source->memory.host;
	source->enable = (void *)(source->meta + buffers);
	fill(source);
	return 0;
}

int sl_ingest_source_start(struct sl_ingest_source *source)
{
	char name[16];

	snprintf(name, sizeof(name), "source-%u", source->number);
	return sl_thread_start(&source->thread, name, NULL, write_events, source);
}

void sl_ingest_source_close(struct sl_ingest_source *source)
{
	if (source->home)
		close_memory(source->home, &source->memory);
	free(source->rest);
	free(source->base);
}
