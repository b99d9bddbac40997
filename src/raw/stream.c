/* stream.c - bytes of chunks into aligned buffers, and these to the disk. */
#include <string.h>

#include "base/clock.h"
#include "base/copy.h"
#include "base/crc.h"
#include "base/log.h"
#include "raw/private.h"

enum { PIECE = 32 << 10 }; /* checksum and copy find it in the first-level cache */

void raw_stream_stalled(struct sl_raw_writer *w, uint64_t ns)
{
	atomic_fetch_add_explicit(&w->stalls, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&w->stalled_ns, ns, memory_order_relaxed);
	/* With `stream` held: no other thread changes it. */
	if (ns > atomic_load_explicit(&w->longest_stall_ns, memory_order_relaxed))
		atomic_store_explicit(&w->longest_stall_ns, ns, memory_order_relaxed);
}

static struct raw_buffer *take_buffer(struct sl_raw_writer *w, struct raw_file *file)
{
	struct raw_buffer *b;
	uint64_t start;

	pthread_mutex_lock(&w->lock);
	if (!w->free) {
		start = sl_clock_ns();
		while (!w->free)
			pthread_cond_wait(&w->done, &w->lock);
		raw_stream_stalled(w, sl_clock_ns() - start);
	}
	b = w->free;
	w->free = b->next;
	pthread_mutex_unlock(&w->lock);
	b->file = file;
	b->write.fd = file->disk.fd;
	b->write.offset = file->at;
	b->write.bytes = b->write.written = b->write.stuck = 0;
	return b;
}

static void submit(struct sl_raw_writer *w, struct raw_lane *lane)
{
	struct raw_buffer *b = lane->buffer;

	lane->buffer = NULL;
	pthread_mutex_lock(&w->lock);
	b->ticket = ++w->tickets;
	b->file->in_flight++;
	pthread_mutex_unlock(&w->lock);
	raw_io_submit(&w->io, &b->write);
}

void raw_stream_done(void *arg, struct raw_write *write, int error)
{
	struct sl_raw_writer *w = arg;
	struct raw_buffer *b = &w->buffer[write->buffer];
	uint64_t bad = write->offset + write->written;

	if (error && !atomic_load(&w->status)) {
		sl_error("%s: cannot write at byte %llu: %s; the run ends with what is on disk",
			 b->file->disk.path, (unsigned long long)bad, strerror(-error));
		raw_fail(w, error);
	}
	atomic_fetch_add_explicit(&w->written_bytes, error ? 0 : write->bytes,
				  memory_order_relaxed);
	pthread_mutex_lock(&w->lock);
	if (error && bad < b->file->bad_from)
		b->file->bad_from = bad;
	b->ticket = 0;
	b->file->in_flight--;
	b->next = w->free;
	w->free = b;
	pthread_cond_broadcast(&w->done);
	pthread_mutex_unlock(&w->lock);
}

/* Room for at least a byte; how much there is. */
static uint32_t make_room(struct sl_raw_writer *w, struct raw_lane *lane, uint64_t wanted)
{
	uint32_t room;

	if (!lane->buffer)
		lane->buffer = take_buffer(w, lane->file);
	room = w->o.buffer_bytes - lane->buffer->write.bytes;
	return wanted < room ? (uint32_t)wanted : room;
}

static void filled(struct sl_raw_writer *w, struct raw_lane *lane, uint32_t bytes)
{
	lane->buffer->write.bytes += bytes;
	lane->file->at += bytes;
	if (lane->buffer->write.bytes == w->o.buffer_bytes)
		submit(w, lane);
}

static void copy_piece(uint8_t *to, const uint8_t *from, uint32_t bytes, uint32_t *crc)
{
	if (crc)
		*crc = sl_crc32c(*crc, from, bytes);
	if (bytes == PIECE)
		sl_copy_stream(to, from, bytes);
	else
		memcpy(to, from, bytes);
}

/* crc: goes on over these bytes; NULL: none is wanted. */
void raw_stream_put(struct sl_raw_writer *w, struct raw_lane *lane, const void *data,
		    uint64_t bytes, uint32_t *crc)
{
	const uint8_t *from = data;

	while (bytes) {
		uint32_t n = make_room(w, lane, bytes < PIECE ? bytes : PIECE);

		copy_piece(lane->buffer->write.data + lane->buffer->write.bytes, from, n, crc);
		/* The disk, and the flush thread, may read it from here on. */
		if (n == PIECE)
			sl_copy_fence();
		filled(w, lane, n);
		from += n;
		bytes -= n;
	}
}

void raw_stream_zeros(struct sl_raw_writer *w, struct raw_lane *lane, uint64_t bytes)
{
	while (bytes) {
		uint32_t n = make_room(w, lane, bytes);

		memset(lane->buffer->write.data + lane->buffer->write.bytes, 0, n);
		filled(w, lane, n);
		bytes -= n;
	}
}

void raw_stream_begin(struct sl_raw_writer *w, struct raw_lane *lane)
{
	const struct raw_data_head head = {.generation = w->head.generation,
					   .number = lane->file->number,
					   .folder = lane->file->folder};
	uint8_t block[RAW_BLOCK];

	raw_write_data_head(&head, block);
	raw_stream_put(w, lane, block, sizeof(block), NULL);
}

/* What the buffer holds goes to the disk now, padded to a whole block; blocks are never written
 * again. */
void raw_stream_seal(struct sl_raw_writer *w, struct raw_lane *lane)
{
	uint64_t gap;

	if (!lane->buffer)
		return;
	gap = raw_up(lane->file->at, RAW_BLOCK) - lane->file->at;
	if (gap) {
		const struct raw_chunk pad = {.kind = RAW_PAD,
					      .generation = w->head.generation,
					      .bytes = gap - RAW_HEADER};
		uint8_t header[RAW_HEADER];

		raw_write_chunk(&pad, header);
		raw_stream_put(w, lane, header, sizeof(header), NULL);
		raw_stream_zeros(w, lane, pad.bytes);
	}
	if (lane->buffer) /* else the padding has filled it */
		submit(w, lane);
}
