/* scan.c - the chunks of a data file: by the index at its end, or one after the other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/crc.h"
#include "base/log.h"
#include "raw/reader.h"

enum { WINDOW = 1 << 20 };

struct window { /* a piece of the file in memory */
	const struct raw_source *source;
	uint64_t size; /* of the file */
	uint64_t start, bytes;
	uint8_t *data;
};

int raw_item_add(struct sl_raw_reader *r, uint32_t source, const struct raw_index_entry *entry)
{
	uint64_t room = r->item_room ? 2 * r->item_room : 1024;
	struct raw_source *s = &r->source[source];
	struct raw_item *item;

	if (r->items == r->item_room) {
		item = realloc(r->item, room * sizeof(*item));
		if (!item)
			return -ENOMEM;
		r->item = item;
		r->item_room = room;
	}
	r->item[r->items++] = (struct raw_item){.entry = {.key = entry->key,
							  .chunk = entry->number,
							  .bytes = entry->bytes,
							  .offset = entry->offset,
							  .file = source},
						.payload_crc = entry->payload_crc};
	if (!s->chunks++)
		s->first = entry->number;
	s->last = entry->number;
	return 0;
}

/* These bytes of the file, at most WINDOW; NULL: it ends before, or cannot be read (*e). */
static const uint8_t *look(struct window *v, uint64_t offset, uint64_t bytes, int *e)
{
	uint64_t most;

	*e = 0;
	if (offset > v->size || bytes > v->size - offset)
		return NULL;
	if (offset >= v->start && offset + bytes <= v->start + v->bytes)
		return v->data + (offset - v->start);
	most = v->size - offset < WINDOW ? v->size - offset : WINDOW;
	v->bytes = 0;
	*e = raw_read_at(v->source->path, v->source->fd, v->data, most, offset);
	if (*e) {
		*e = *e == -EBADMSG ? 0 : *e; /* cut off meanwhile */
		return NULL;
	}
	v->start = offset;
	v->bytes = most;
	return v->data;
}

static bool payload_crc(struct window *v, uint64_t offset, uint64_t bytes, uint32_t *crc, int *e)
{
	*crc = 0;
	*e = 0;
	while (bytes) {
		uint64_t n = bytes < WINDOW ? bytes : WINDOW;
		const uint8_t *piece = look(v, offset, n, e);

		if (!piece)
			return false;
		*crc = sl_crc32c(*crc, piece, n);
		offset += n;
		bytes -= n;
	}
	return true;
}

enum found { END, GOOD, BAD, INDEX }; /* BAD: its payload is not what it was; the next may be */

static enum found look_at_chunk(struct window *v, uint64_t generation, struct raw_chunk *chunk,
				uint64_t at, struct raw_index_entry *entry, int *e)
{
	const uint8_t *header = look(v, at, RAW_HEADER, e), *end;
	struct raw_trailer trailer;
	uint64_t bytes;
	uint32_t crc;

	if (!header || raw_read_chunk(header, chunk) || chunk->generation != generation)
		return END;
	if (chunk->kind == RAW_INDEX)
		return INDEX;
	if (chunk->kind == RAW_PAD)
		return GOOD;
	bytes = raw_chunk_bytes(chunk->bytes);
	if (bytes > v->size - at)
		return END;
	*entry = (struct raw_index_entry){
		.number = chunk->number, .offset = at, .bytes = chunk->bytes, .key = chunk->key};
	if (!payload_crc(v, at + RAW_HEADER, chunk->bytes, &crc, e))
		return END;
	end = look(v, at + bytes - RAW_TRAILER, RAW_TRAILER, e);
	if (!end)
		return END;
	entry->payload_crc = crc;
	return raw_read_trailer(end, &trailer) || trailer.number != chunk->number ||
			       trailer.payload_crc != crc
		       ? BAD
		       : GOOD;
}

/* A chunk with a bad payload may still be on its way while the writer lives: then it ends here. */
static int scan(struct sl_raw_reader *r, uint32_t number, struct window *v)
{
	struct raw_source *s = &r->source[number];
	struct raw_index_entry entry;
	struct raw_chunk chunk;
	enum found found;
	int e = 0;

	while (!e) {
		found = look_at_chunk(v, r->head.generation, &chunk, s->scanned, &entry, &e);
		if (e || found == END || (found == BAD && r->state == SL_RAW_WRITING))
			break;
		if (found == INDEX) {
			s->whole = true;
			break;
		}
		if (found == BAD)
			sl_warn("%s: byte %llu: chunk %llu is not whole, and left out", s->path,
				(unsigned long long)s->scanned, (unsigned long long)chunk.number);
		if (found == GOOD && chunk.kind == RAW_DATA)
			e = raw_item_add(r, number, &entry);
		if (!e)
			s->scanned += chunk.kind == RAW_PAD ? RAW_HEADER + chunk.bytes
							    : raw_chunk_bytes(chunk.bytes);
	}
	return e;
}

/* 0: it has none that can be believed. 1: the entries lie at *index, which the caller frees. */
static int read_index(const struct sl_raw_reader *r, const struct raw_source *s, uint64_t size,
		      struct raw_footer *footer, uint8_t **index)
{
	uint8_t last[RAW_FOOTER];
	struct raw_trailer trailer;
	struct raw_chunk chunk;
	uint64_t bytes;
	int e;

	if (size < RAW_BLOCK + RAW_FOOTER)
		return 0;
	e = raw_read_at(s->path, s->fd, last, sizeof(last), size - RAW_FOOTER);
	if (e)
		return e == -EBADMSG ? 0 : e;
	if (raw_read_footer(last, footer) || footer->generation != r->head.generation ||
	    footer->index_at > size || raw_index_bytes(footer->entries) != size - footer->index_at)
		return 0;
	bytes = raw_chunk_bytes(footer->entries * RAW_ENTRY);
	*index = malloc(bytes);
	if (!*index)
		return -ENOMEM;
	e = raw_read_at(s->path, s->fd, *index, bytes, footer->index_at);
	if (!e && !raw_read_chunk(*index, &chunk) && chunk.kind == RAW_INDEX &&
	    chunk.generation == r->head.generation && chunk.bytes == footer->entries * RAW_ENTRY &&
	    !raw_read_trailer(*index + bytes - RAW_TRAILER, &trailer) &&
	    trailer.payload_crc == sl_crc32c(0, *index + RAW_HEADER, chunk.bytes))
		return 1;
	free(*index);
	return e == -EBADMSG ? 0 : e;
}

/* Entries that a writer would have written: one behind the other, inside the file. */
static bool is_in_order(const uint8_t *index, const struct raw_footer *footer)
{
	struct raw_index_entry entry;
	uint64_t at = RAW_BLOCK, number = 0;

	for (uint64_t i = 0; i < footer->entries; i++) {
		if (raw_read_entry(index + RAW_HEADER + i * RAW_ENTRY, &entry) ||
		    entry.offset < at || entry.offset > footer->index_at ||
		    raw_chunk_bytes(entry.bytes) > footer->index_at - entry.offset ||
		    (i && entry.number < number))
			return false;
		at = entry.offset + raw_chunk_bytes(entry.bytes);
		number = entry.number + 1;
	}
	return true;
}

/* 1: taken; 0: there is none. */
static int take_index(struct sl_raw_reader *r, uint32_t number, uint64_t size)
{
	struct raw_index_entry entry;
	struct raw_footer footer;
	uint8_t *index;
	int e = read_index(r, &r->source[number], size, &footer, &index);

	if (e <= 0)
		return e;
	e = is_in_order(index, &footer) ? 0 : -EBADMSG;
	for (uint64_t i = 0; i < footer.entries && !e; i++) {
		raw_read_entry(index + RAW_HEADER + i * RAW_ENTRY, &entry);
		e = raw_item_add(r, number, &entry);
	}
	free(index);
	if (e)
		return e == -EBADMSG ? 0 : e;
	r->source[number].whole = true;
	return 1;
}

int raw_source_load(struct sl_raw_reader *r, uint32_t number)
{
	struct raw_source *s = &r->source[number];
	struct window v = {.source = s};
	struct stat st;
	int e;

	if (s->whole)
		return 0;
	if (fstat(s->fd, &st))
		return -errno;
	v.size = (uint64_t)st.st_size;
	e = s->chunks || s->scanned > RAW_BLOCK ? 0 : take_index(r, number, v.size);
	if (e)
		return e < 0 ? e : 0;
	v.data = malloc(WINDOW);
	if (!v.data)
		return -ENOMEM;
	e = scan(r, number, &v);
	free(v.data);
	return e;
}
