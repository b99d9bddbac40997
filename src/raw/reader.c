/* reader.c - chunks of a run in order, and their payloads with checksums looked at. */
#include "raw/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/log.h"

static int by_chunk(const void *a, const void *b)
{
	const struct raw_item *x = a, *y = b;

	return x->entry.chunk < y->entry.chunk ? -1 : x->entry.chunk > y->entry.chunk;
}

static uint64_t key_of(const struct sl_raw_entry *entry, enum sl_raw_by by)
{
	switch (by) {
	case SL_RAW_BY_SEQUENCE:
		return entry->key.sequence;
	case SL_RAW_BY_NUMBER:
		return entry->key.number;
	case SL_RAW_BY_ARRIVAL:
		return entry->key.arrived_ns;
	default:
		return entry->chunk;
	}
}

/* From this number on every chunk is in a file that is open here, or was never written: a rolling
 * writer removes the oldest files of each folder first. */
static uint64_t dense_from(const struct sl_raw_reader *r)
{
	uint64_t from = 0;

	if (!r->head.keep_ns && !r->head.keep_bytes)
		return 0;
	for (uint32_t folder = 0; folder < r->head.folders; folder++)
		for (uint32_t i = 0; i < r->sources; i++)
			if (r->source[i].folder == folder && r->source[i].chunks) {
				if (r->source[i].first > from)
					from = r->source[i].first;
				break; /* the oldest of this folder */
			}
	return from;
}

/* Whether every folder has chunks behind this number, and nothing before them can still come: then
 * what is missing below was removed by a rolling writer between two looks. */
static bool is_gone(const struct sl_raw_reader *r, uint64_t number)
{
	for (uint32_t folder = 0; folder < r->head.folders; folder++) {
		const struct raw_source *newest = NULL;

		for (uint32_t i = r->sources; i-- > 0;) {
			const struct raw_source *s = &r->source[i];

			if (s->folder != folder || (!newest && !s->chunks))
				continue;
			if (newest && !s->whole)
				return false;
			if (!newest && s->last < number)
				return false;
			newest = s;
		}
	}
	return r->head.keep_ns || r->head.keep_bytes;
}

static void show_one(struct sl_raw_reader *r, const struct raw_item *item)
{
	const struct raw_item *before = r->shown ? &r->item[r->shown - 1] : NULL;

	for (int by = 0; by <= SL_RAW_BY_CHUNK; by++)
		if (before && key_of(&item->entry, by) < key_of(&before->entry, by))
			r->sorted[by] = false;
	r->bytes += item->entry.bytes;
	r->shown++;
}

/* While the writer lives, a chunk is shown once those before it are: they may be on their way. */
static int show(struct sl_raw_reader *r)
{
	uint64_t dense = dense_from(r);

	if (r->items > r->shown)
		qsort(r->item + r->shown, r->items - r->shown, sizeof(*r->item), by_chunk);
	for (uint64_t i = r->shown; i < r->items; i++) {
		const struct raw_item *item = &r->item[i];
		uint64_t expected = i ? r->item[i - 1].entry.chunk + 1 : 0;

		if (i && item->entry.chunk < expected)
			return raw_damaged(r->source[item->entry.file].path, item->entry.offset,
					   "this chunk has the number of another one");
		if (expected < dense)
			expected = dense;
		if (item->entry.chunk > expected) {
			if (r->state == SL_RAW_WRITING && !is_gone(r, item->entry.chunk))
				break;
			r->missing += item->entry.chunk - expected;
		}
		show_one(r, item);
	}
	return 0;
}

static const struct raw_source *source_of(const struct sl_raw_reader *r, uint32_t number)
{
	for (uint32_t i = 0; i < r->sources; i++)
		if (r->source[i].number == number)
			return &r->source[i];
	return NULL;
}

static void complain_of_row(struct sl_raw_reader *r, const struct raw_table_row *row,
			    const struct raw_source *source)
{
	char *path = raw_data_path(r->path, r->folder[row->folder], row->number);

	if (!source) {
		r->missing_files++;
		sl_error("%s: this data file of %s is missing, with %llu chunks from number %llu "
			 "on: put it there, or into the folder of the run file",
			 path ? path : "?", r->path, (unsigned long long)row->chunks,
			 (unsigned long long)row->first);
	} else {
		sl_error("%s: has %llu chunks that can be read, of %llu that were written",
			 source->path, (unsigned long long)source->chunks,
			 (unsigned long long)row->chunks);
	}
	free(path);
}

/* A complete run has what its table says. */
static int check_table(struct sl_raw_reader *r)
{
	uint64_t behind = r->shown ? r->item[r->shown - 1].entry.chunk + 1 : 0;
	bool good = !r->end.lost;

	if (r->end.lost)
		sl_error("%s: its writer has lost %llu of %llu chunks to errors of the disk",
			 r->path, (unsigned long long)r->end.lost,
			 (unsigned long long)r->end.chunks);
	for (uint64_t i = 0; i < r->end.files; i++) {
		const struct raw_source *source = source_of(r, r->row[i].number);

		if (source && source->chunks == r->row[i].chunks)
			continue;
		good = false;
		complain_of_row(r, &r->row[i], source);
	}
	/* Those behind the last one that is there. */
	if (r->end.chunks > behind)
		r->missing += r->end.chunks - behind;
	return good || (r->flags & SL_RAW_DAMAGED) ? 0 : -EBADMSG;
}

/* Called as long as the writer lives, as far as was known. */
static int look(struct sl_raw_reader *r)
{
	int e = raw_run_look(r);

	if (!e)
		e = raw_sources_find(r);
	for (uint32_t i = 0; i < r->sources && !e; i++)
		e = raw_source_load(r, i);
	if (!e)
		e = show(r);
	if (!e && r->state == SL_RAW_COMPLETE)
		e = check_table(r);
	return e;
}

int sl_raw_open(const char *path, unsigned flags, struct sl_raw_reader **reader)
{
	struct sl_raw_reader *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	r->fd = -1;
	r->flags = flags;
	for (int by = 0; by <= SL_RAW_BY_CHUNK; by++)
		r->sorted[by] = true;
	r->path = strdup(path);
	e = r->path ? raw_run_open(r) : -ENOMEM;
	if (!e)
		e = look(r);
	if (e)
		sl_raw_close(r);
	else
		*reader = r;
	return e;
}

void sl_raw_close(struct sl_raw_reader *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->sources; i++) {
		close(r->source[i].fd);
		free(r->source[i].path);
	}
	for (uint32_t i = 0; i < r->folders; i++)
		free(r->folder[i]);
	if (r->fd >= 0)
		close(r->fd);
	free(r->folder);
	free(r->written_as);
	free(r->source);
	free(r->item);
	free(r->row);
	free(r->head_blob);
	free(r->tail_blob);
	free(r->path);
	free(r);
}

int sl_raw_refresh(struct sl_raw_reader *r)
{
	return r->state == SL_RAW_WRITING ? look(r) : 0;
}

void sl_raw_facts(const struct sl_raw_reader *r, struct sl_raw_facts *facts)
{
	*facts = (struct sl_raw_facts){.state = r->state,
				       .generation = r->head.generation,
				       .created_unix_ns = r->head.created_unix_ns,
				       .keep_ns = r->head.keep_ns,
				       .chunks = r->shown,
				       .first = r->shown ? r->item[0].entry.chunk : 0,
				       .missing = r->missing,
				       .bytes = r->bytes,
				       .files = r->sources,
				       .missing_files = r->missing_files};
}

const void *sl_raw_head(const struct sl_raw_reader *r, size_t *bytes)
{
	*bytes = r->head.head_bytes;
	return r->head_blob;
}

const void *sl_raw_tail(const struct sl_raw_reader *r, size_t *bytes)
{
	*bytes = r->state == SL_RAW_COMPLETE ? r->end.tail_bytes : 0;
	return r->state == SL_RAW_COMPLETE ? r->tail_blob : NULL;
}

const struct sl_raw_entry *sl_raw_entry(const struct sl_raw_reader *r, uint64_t i)
{
	return &r->item[i].entry;
}

const char *sl_raw_file(const struct sl_raw_reader *r, uint32_t file)
{
	return r->source[file].path;
}

/* Header, payload and the rest in one call as a rule. */
static int read_chunk(const struct raw_source *s, const struct sl_raw_entry *entry, uint8_t *header,
		      uint8_t *payload, uint8_t *rest)
{
	uint64_t end = raw_chunk_bytes(entry->bytes) - RAW_HEADER - entry->bytes;
	uint64_t all = raw_chunk_bytes(entry->bytes);
	struct iovec part[] = {{header, RAW_HEADER}, {payload, entry->bytes}, {rest, end}};
	ssize_t n = preadv(s->fd, part, 3, (off_t)entry->offset);
	int e;

	if (n >= 0 && (uint64_t)n == all)
		return 0;
	e = raw_read_at(s->path, s->fd, header, RAW_HEADER, entry->offset);
	if (!e)
		e = raw_read_at(s->path, s->fd, payload, entry->bytes, entry->offset + RAW_HEADER);
	if (!e)
		e = raw_read_at(s->path, s->fd, rest, end,
				entry->offset + RAW_HEADER + entry->bytes);
	return e;
}

int sl_raw_read(const struct sl_raw_reader *r, uint64_t i, void *buffer, size_t bytes)
{
	const struct raw_item *item = &r->item[i];
	const struct raw_source *s = &r->source[item->entry.file];
	uint8_t header[RAW_HEADER], rest[RAW_HEADER + RAW_TRAILER];
	uint64_t end = raw_chunk_bytes(item->entry.bytes) - RAW_HEADER - item->entry.bytes;
	struct raw_chunk chunk;
	struct raw_trailer trailer;
	const char *wrong = NULL;
	int e;

	if (bytes < item->entry.bytes)
		return -ENOBUFS;
	e = read_chunk(s, &item->entry, header, buffer, rest);
	if (e && e != -EBADMSG)
		return e;
	if (e)
		wrong = "the file ends before the chunk does";
	else if (raw_read_chunk(header, &chunk) || chunk.kind != RAW_DATA ||
		 chunk.generation != r->head.generation || chunk.number != item->entry.chunk ||
		 chunk.bytes != item->entry.bytes)
		wrong = "its header is damaged";
	else if (raw_read_trailer(rest + end - RAW_TRAILER, &trailer) ||
		 trailer.number != chunk.number || trailer.payload_crc != item->payload_crc)
		wrong = "its last bytes are damaged";
	else if (sl_crc32c(0, buffer, item->entry.bytes) != item->payload_crc)
		wrong = "the checksum of its payload is wrong";
	if (!wrong)
		return 0;
	sl_error("%s: byte %llu: chunk %llu: %s", s->path, (unsigned long long)item->entry.offset,
		 (unsigned long long)item->entry.chunk, wrong);
	return -EBADMSG;
}

static int find_slowly(const struct sl_raw_reader *r, enum sl_raw_by by, uint64_t value,
		       uint64_t *i)
{
	uint64_t best = r->shown;

	for (uint64_t k = 0; k < r->shown; k++) {
		uint64_t key = key_of(&r->item[k].entry, by);

		if (key >= value && (best == r->shown || key < key_of(&r->item[best].entry, by)))
			best = k;
	}
	if (best == r->shown)
		return -ENOENT;
	*i = best;
	return 0;
}

int sl_raw_find(const struct sl_raw_reader *r, enum sl_raw_by by, uint64_t value, uint64_t *i)
{
	uint64_t low = 0, high = r->shown;

	if (!r->sorted[by])
		return find_slowly(r, by, value, i);
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (key_of(&r->item[middle].entry, by) < value)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == r->shown)
		return -ENOENT;
	*i = low;
	return 0;
}
