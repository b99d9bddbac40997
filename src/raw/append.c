/* append.c - one chunk: a lane and a data file for it, header, payload, trailer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "raw/private.h"

/* After a refusal, for this long every chunk is refused without another look at the disk. */
#define REFUSE_NS UINT64_C(250000000)
/* Full files that may wait to be closed, each with its descriptor and its index in memory. */
enum { MOST_CLOSING = 64 };

static bool has_room(const struct raw_file *file, uint64_t need)
{
	return file && raw_up(file->at + need, RAW_BLOCK) + raw_index_bytes(file->entries + 1) <=
			       file->limit;
}

static bool is_over(const struct sl_raw_writer *w, const struct raw_file *file, uint64_t arrived_ns)
{
	return w->period_ns && file->entries && arrived_ns > file->first_arrived_ns &&
	       arrived_ns - file->first_arrived_ns >= w->period_ns;
}

/* The file that the flush thread has prepared, or NULL: there is none. A request that it has not
 * begun with is cancelled, as it may be waiting for the disk. */
static struct raw_file *take_ready(struct sl_raw_writer *w, struct raw_lane *lane)
{
	struct raw_file *file;

	pthread_mutex_lock(&w->lock);
	while (lane->next == RAW_NEXT_MAKING)
		pthread_cond_wait(&w->done, &w->lock);
	file = lane->ready;
	lane->ready = NULL;
	lane->next = RAW_NEXT_NONE;
	pthread_mutex_unlock(&w->lock);
	return file;
}

static bool is_rolling(const struct sl_raw_writer *w)
{
	return w->o.keep_ns || w->o.keep_bytes;
}

/* A new file; in a rolling container the oldest ones of this folder make room. */
static int make_file(struct sl_raw_writer *w, uint32_t folder, uint64_t need,
		     struct raw_file **file)
{
	int r;

	do {
		r = raw_file_open(w, folder, need, file);
	} while (raw_is_full(r) && is_rolling(w) && raw_window_drop_oldest(w, folder));
	return r;
}

static void hand_over(struct sl_raw_writer *w, struct raw_lane *lane)
{
	raw_stream_seal(w, lane);
	pthread_mutex_lock(&w->lock);
	lane->file->next = NULL;
	*w->full_last = lane->file;
	w->full_last = &lane->file->next;
	w->closing++;
	pthread_cond_signal(&w->work);
	pthread_mutex_unlock(&w->lock);
	lane->file = NULL;
}

void raw_lane_end(struct sl_raw_writer *w, struct raw_lane *lane)
{
	struct raw_file *ready = take_ready(w, lane);

	if (lane->file)
		hand_over(w, lane);
	if (ready)
		raw_file_discard(w, ready);
}

/* The next data file of this lane. The one at hand stays if there is none. */
int raw_lane_roll(struct sl_raw_writer *w, struct raw_lane *lane, uint64_t need)
{
	uint64_t start = sl_clock_ns();
	struct raw_file *file = take_ready(w, lane);
	int r = 0;

	if (file && !has_room(file, RAW_BLOCK + need)) { /* a chunk larger than those before */
		raw_file_discard(w, file);
		file = NULL;
	}
	if (!file) { /* the flush thread was not fast enough, or had no room */
		r = make_file(w, (uint32_t)(lane - w->lane), need, &file);
		if (lane->file)
			raw_stream_stalled(w, sl_clock_ns() - start);
	}
	if (r)
		return r;
	if (lane->file)
		hand_over(w, lane);
	lane->file = file;
	lane->asked = false;
	atomic_fetch_add(&w->files, 1);
	raw_stream_begin(w, lane);
	return 0;
}

static bool is_recent(uint64_t ns)
{
	return ns && sl_clock_ns() - ns < REFUSE_NS;
}

static uint64_t count_closing(struct sl_raw_writer *w)
{
	uint64_t files;

	pthread_mutex_lock(&w->lock);
	files = w->closing;
	pthread_mutex_unlock(&w->lock);
	return files;
}

/* -EAGAIN: not before a file has been closed. */
static int make_ready(struct sl_raw_writer *w, struct raw_lane *lane, uint64_t need,
		      uint64_t arrived_ns)
{
	bool room = has_room(lane->file, need);
	int r;

	if (room && (!is_over(w, lane->file, arrived_ns) || is_recent(w->unrolled_ns)))
		return 0;
	if (count_closing(w) >= MOST_CLOSING)
		return room ? 0 : -EAGAIN;
	r = raw_lane_roll(w, lane, need);
	if (r)
		w->unrolled_ns = sl_clock_ns();
	return room ? 0 : r; /* without a next file this one covers a longer time */
}

/* Beginning with the lane whose turn it is: a disk that is full or gone leaves the others. */
static int choose_lane(struct sl_raw_writer *w, uint64_t need, uint64_t arrived_ns,
		       struct raw_lane **lane)
{
	int r = -ENOSPC;

	if (w->turn_bytes >= w->o.buffer_bytes) {
		w->turn = (w->turn + 1) % w->lanes;
		w->turn_bytes = 0;
	}
	for (unsigned i = 0; i < w->lanes; i++) {
		*lane = &w->lane[w->turn];
		r = make_ready(w, *lane, need, arrived_ns);
		if (!r || r == -ENOMEM || r == -EAGAIN)
			return r;
		w->turn = (w->turn + 1) % w->lanes;
		w->turn_bytes = 0;
	}
	return r;
}

/* Full disk, but a rolling container has files that can go as soon as they are closed. */
static bool will_have_room(struct sl_raw_writer *w, int r)
{
	return raw_is_full(r) && is_rolling(w) && count_closing(w);
}

/* Without `stream`, which the flush thread may need before it closes the next file. */
static void wait_for_close(struct sl_raw_writer *w)
{
	uint64_t before;

	pthread_mutex_lock(&w->lock);
	before = w->closes;
	while (w->closing && w->closes == before)
		pthread_cond_wait(&w->done, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

/* There is no data file for the chunk: said once, until it goes well again. */
static int refuse(struct sl_raw_writer *w, int r)
{
	w->refused = r;
	w->refused_ns = sl_clock_ns();
	if (!w->refused_before)
		sl_error("%s: no room for more chunks (%s): everything before is kept; free some "
			 "space, or end the run",
			 w->o.path, strerror(-r));
	w->refused_before = true;
	return r;
}

static int grow_index(struct raw_file *file)
{
	uint64_t room = file->room ? 2 * file->room : 256;
	struct raw_index_entry *entry;

	if (file->entries < file->room)
		return 0;
	entry = realloc(file->entry, room * sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	file->entry = entry;
	file->room = room;
	return 0;
}

static void put_chunk(struct sl_raw_writer *w, struct raw_lane *lane, struct raw_index_entry *entry,
		      const struct iovec *part, unsigned parts)
{
	const struct raw_chunk chunk = {.kind = RAW_DATA,
					.generation = w->head.generation,
					.number = entry->number,
					.bytes = entry->bytes,
					.key = entry->key};
	struct raw_trailer trailer = {.number = entry->number};
	uint8_t header[RAW_HEADER], end[RAW_TRAILER];

	raw_write_chunk(&chunk, header);
	raw_stream_put(w, lane, header, sizeof(header), NULL);
	for (unsigned i = 0; i < parts; i++)
		raw_stream_put(w, lane, part[i].iov_base, part[i].iov_len, &trailer.payload_crc);
	raw_stream_zeros(w, lane,
			 raw_chunk_bytes(entry->bytes) - RAW_HEADER - entry->bytes - RAW_TRAILER);
	raw_write_trailer(&trailer, end);
	raw_stream_put(w, lane, end, sizeof(end), NULL);
	entry->payload_crc = trailer.payload_crc;
}

static void note_chunk(struct sl_raw_writer *w, struct raw_file *file,
		       const struct raw_index_entry *entry)
{
	uint64_t arrived = entry->key.arrived_ns;

	if (!file->entries || arrived < file->first_arrived_ns)
		file->first_arrived_ns = arrived;
	if (!file->entries || arrived > file->last_arrived_ns)
		file->last_arrived_ns = arrived;
	if (arrived > atomic_load_explicit(&w->newest_ns, memory_order_relaxed))
		atomic_store_explicit(&w->newest_ns, arrived, memory_order_relaxed);
	file->payload_bytes += entry->bytes;
	file->entry[file->entries++] = *entry;
	atomic_fetch_add_explicit(&w->bytes, entry->bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&w->chunks, 1, memory_order_relaxed);
}

/* The next file is asked for while this one is half full. */
static void look_ahead(struct sl_raw_writer *w, struct raw_lane *lane)
{
	const struct raw_file *file = lane->file;

	if (lane->asked ||
	    (file->at < file->limit / 2 &&
	     !(w->period_ns && file->last_arrived_ns - file->first_arrived_ns >= w->period_ns / 2)))
		return;
	lane->asked = true;
	pthread_mutex_lock(&w->lock);
	lane->next = RAW_NEXT_ASKED;
	w->prepare = true;
	pthread_cond_signal(&w->work);
	pthread_mutex_unlock(&w->lock);
}

/* -EAGAIN: try again after the next close of a file. */
static int append(struct sl_raw_writer *w, struct raw_index_entry *entry, const struct iovec *part,
		  unsigned parts)
{
	uint64_t need = raw_chunk_bytes(entry->bytes);
	struct raw_lane *lane;
	int r = atomic_load(&w->status);

	if (r)
		return r;
	if (w->refused && is_recent(w->refused_ns))
		return w->refused;
	if (need > atomic_load_explicit(&w->largest, memory_order_relaxed))
		atomic_store_explicit(&w->largest, need, memory_order_relaxed);
	r = choose_lane(w, need, entry->key.arrived_ns, &lane);
	if (r == -EAGAIN || (r && will_have_room(w, r)))
		return -EAGAIN;
	if (r)
		return r == -ENOMEM ? r : refuse(w, r);
	r = grow_index(lane->file);
	if (r)
		return r;
	w->refused = 0;
	w->refused_before = false;
	entry->number = atomic_load_explicit(&w->chunks, memory_order_relaxed);
	entry->offset = lane->file->at;
	put_chunk(w, lane, entry, part, parts);
	w->turn_bytes += need;
	note_chunk(w, lane->file, entry);
	look_ahead(w, lane);
	return 0;
}

int sl_raw_append(struct sl_raw_writer *w, const struct sl_raw_key *key, const struct iovec *part,
		  unsigned parts)
{
	struct raw_index_entry entry = {.key = *key};
	uint64_t start = 0;
	int r;

	for (unsigned i = 0; i < parts; i++) {
		if (part[i].iov_len > RAW_CHUNK_MAX - entry.bytes)
			return -E2BIG;
		entry.bytes += part[i].iov_len;
	}
	for (;;) {
		pthread_mutex_lock(&w->stream);
		r = append(w, &entry, part, parts);
		if (r != -EAGAIN && start)
			raw_stream_stalled(w, sl_clock_ns() - start);
		pthread_mutex_unlock(&w->stream);
		if (r != -EAGAIN)
			return r;
		start = start ? start : sl_clock_ns();
		wait_for_close(w);
	}
}
