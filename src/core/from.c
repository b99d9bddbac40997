/* from.c - the bytes of a block, piece by piece, from where they lie at the source. */
#include <string.h>

#include <sluice/record.h>

#include "core/write.h"

void sl_from_seek(const struct sl_from *from, uint32_t offset, struct sl_from_cursor *cursor)
{
	uint32_t frame_bytes = from->lines * from->line_bytes;

	*cursor = (struct sl_from_cursor){.from = from, .byte = offset};
	if (!offset)
		return;
	cursor->frame = frame_bytes ? offset / frame_bytes : 0;
	if (cursor->frame > from->frames)
		cursor->frame = from->frames;
	cursor->byte -= cursor->frame * frame_bytes;
	if (cursor->frame < from->frames && from->line_bytes) {
		cursor->line = cursor->byte / from->line_bytes;
		cursor->byte -= cursor->line * from->line_bytes;
	}
}

static struct sl_part record_part(struct sl_from_cursor *cursor, uint32_t most)
{
	const struct sl_from *s = cursor->from;
	struct sl_part part = {(const uint8_t *)s->record + cursor->byte, 0};

	if (s->record && cursor->byte < SL_RECORD_BYTES)
		part.bytes = SL_RECORD_BYTES - cursor->byte;
	if (part.bytes > most)
		part.bytes = most;
	cursor->byte += part.bytes;
	return part;
}

struct sl_part sl_from_next(struct sl_from_cursor *cursor, uint32_t most)
{
	const struct sl_from *s = cursor->from;
	uint64_t pitch = s->pitch ? s->pitch : s->line_bytes;
	bool together = pitch == s->line_bytes; /* then a frame is one piece */
	uint32_t lines = together ? s->lines - cursor->line : 1;
	struct sl_part part;

	if (cursor->frame >= s->frames)
		return record_part(cursor, most);
	part.data = (const uint8_t *)s->frame[cursor->frame] + cursor->line * pitch + cursor->byte;
	part.bytes = lines * s->line_bytes - cursor->byte;
	if (part.bytes > most) {
		/* Beyond the line, when lines are together: seek would find the same place. */
		part.bytes = most;
		cursor->byte += most;
		return part;
	}
	cursor->byte = 0;
	cursor->line += lines;
	if (cursor->line == s->lines) {
		cursor->line = 0;
		cursor->frame++;
	}
	return part;
}

static unsigned gather_parts(const struct sl_write *write, uint32_t offset, uint32_t bytes,
			     struct sl_part *part, unsigned most)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 2 && bytes; i++) {
		const struct sl_part *from = &write->part[i];
		uint32_t take;

		if (offset >= from->bytes) {
			offset -= from->bytes;
			continue;
		}
		if (n == most)
			return most + 1;
		take = from->bytes - offset < bytes ? from->bytes - offset : bytes;
		part[n++] = (struct sl_part){(const uint8_t *)from->data + offset, take};
		bytes -= take;
		offset = 0;
	}
	return n;
}

unsigned sl_write_gather(const struct sl_write *write, uint32_t offset, uint32_t bytes,
			 struct sl_part *part, unsigned most)
{
	struct sl_from_cursor cursor;
	unsigned n = 0;

	if (!write->from)
		return gather_parts(write, offset, bytes, part, most);
	sl_from_seek(write->from, write->at + offset, &cursor);
	while (bytes) {
		struct sl_part next = sl_from_next(&cursor, bytes);

		if (n == most)
			return most + 1;
		if (!next.bytes)
			break;
		part[n++] = next;
		bytes -= next.bytes;
	}
	return n;
}

void sl_write_copy(const struct sl_write *write, uint32_t offset, uint32_t bytes, void *to)
{
	struct sl_from_cursor cursor;
	struct sl_part part[2], next;
	uint8_t *at = to;

	if (!write->from) {
		unsigned n = gather_parts(write, offset, bytes, part, 2);

		for (unsigned i = 0; i < n; at += part[i++].bytes)
			memcpy(at, part[i].data, part[i].bytes);
		return;
	}
	sl_from_seek(write->from, write->at + offset, &cursor);
	for (; bytes; bytes -= next.bytes, at += next.bytes) {
		next = sl_from_next(&cursor, bytes);
		if (!next.bytes)
			return;
		memcpy(at, next.data, next.bytes);
	}
}
