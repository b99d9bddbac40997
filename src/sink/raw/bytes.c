/* bytes.c - numbers and texts as bytes. */
#include "sink/raw/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they lie");

enum { ROOM_LEAST = 4096, NO_TEXT = 0, TEXT_MOST = 64 << 20 };

void sl_bytes_free(struct sl_bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct sl_bytes){.used = 0};
}

static bool make_room(struct sl_bytes *bytes, size_t count)
{
	size_t room = bytes->room ? bytes->room : ROOM_LEAST;
	uint8_t *data;

	if (bytes->error)
		return false;
	if (count <= bytes->room - bytes->used)
		return true;
	while (room - bytes->used < count)
		room *= 2;
	data = realloc(bytes->data, room);
	if (!data) {
		bytes->error = -ENOMEM;
		return false;
	}
	bytes->data = data;
	bytes->room = room;
	return true;
}

void sl_bytes_put(struct sl_bytes *bytes, const void *data, size_t count)
{
	if (!count || !make_room(bytes, count))
		return;
	memcpy(bytes->data + bytes->used, data, count);
	bytes->used += count;
}

void sl_bytes_u32(struct sl_bytes *bytes, uint32_t value)
{
	sl_bytes_put(bytes, &value, sizeof(value));
}

void sl_bytes_u64(struct sl_bytes *bytes, uint64_t value)
{
	sl_bytes_put(bytes, &value, sizeof(value));
}

void sl_bytes_f64(struct sl_bytes *bytes, double value)
{
	sl_bytes_put(bytes, &value, sizeof(value));
}

/* Its length with the NUL, 0 for NULL, then the text. */
void sl_bytes_text(struct sl_bytes *bytes, const char *text)
{
	size_t count = text ? strlen(text) + 1 : NO_TEXT;

	sl_bytes_u32(bytes, (uint32_t)count);
	sl_bytes_put(bytes, text, count);
}

size_t sl_bytes_begin(struct sl_bytes *bytes, uint32_t tag)
{
	sl_bytes_u32(bytes, tag);
	sl_bytes_u32(bytes, 0); /* reserved */
	sl_bytes_u64(bytes, 0);
	return bytes->used;
}

void sl_bytes_end(struct sl_bytes *bytes, size_t begun)
{
	uint64_t count = bytes->used - begun;

	if (!bytes->error)
		memcpy(bytes->data + begun - sizeof(count), &count, sizeof(count));
}

/* ---- back ---- */

void sl_bytes_bad(struct sl_bytes_reader *reader)
{
	if (!reader->error)
		reader->error = -EBADMSG;
	reader->left = 0;
}

const void *sl_bytes_get(struct sl_bytes_reader *reader, size_t count)
{
	const uint8_t *at = reader->at;

	if (reader->error || count > reader->left) {
		sl_bytes_bad(reader);
		return NULL;
	}
	reader->at += count;
	reader->left -= count;
	return at;
}

static void copy(struct sl_bytes_reader *reader, void *value, size_t count)
{
	const void *at = sl_bytes_get(reader, count);

	if (at)
		memcpy(value, at, count);
}

uint32_t sl_bytes_get_u32(struct sl_bytes_reader *reader)
{
	uint32_t value = 0;

	copy(reader, &value, sizeof(value));
	return value;
}

uint64_t sl_bytes_get_u64(struct sl_bytes_reader *reader)
{
	uint64_t value = 0;

	copy(reader, &value, sizeof(value));
	return value;
}

double sl_bytes_get_f64(struct sl_bytes_reader *reader)
{
	double value = 0;

	copy(reader, &value, sizeof(value));
	return value;
}

/* NULL: there is none, or it is not as it should be. */
static const char *get_text(struct sl_bytes_reader *reader, size_t *count)
{
	const char *text;

	*count = sl_bytes_get_u32(reader);
	if (*count == NO_TEXT)
		return NULL;
	text = *count <= TEXT_MOST ? sl_bytes_get(reader, *count) : NULL;
	if (!text || memchr(text, 0, *count) != text + *count - 1) {
		sl_bytes_bad(reader);
		return NULL;
	}
	return text;
}

char *sl_bytes_get_text(struct sl_bytes_reader *reader)
{
	size_t count;
	const char *text = get_text(reader, &count);
	char *own = text ? malloc(count) : NULL;

	if (own)
		memcpy(own, text, count);
	else if (text)
		reader->error = -ENOMEM;
	return own;
}

void sl_bytes_get_name(struct sl_bytes_reader *reader, char *name, size_t bytes)
{
	size_t count;
	const char *text = get_text(reader, &count);

	memset(name, 0, bytes);
	if (text && count <= bytes)
		memcpy(name, text, count);
	else
		sl_bytes_bad(reader);
}

bool sl_bytes_section(struct sl_bytes_reader *reader, uint32_t *tag,
		      struct sl_bytes_reader *section)
{
	uint64_t count;

	if (reader->error || !reader->left)
		return false;
	*tag = sl_bytes_get_u32(reader);
	sl_bytes_get_u32(reader);
	count = sl_bytes_get_u64(reader);
	*section = (struct sl_bytes_reader){.left = count};
	section->at = sl_bytes_get(reader, count);
	return section->at != NULL;
}
