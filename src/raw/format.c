/* format.c - structs as little-endian bytes, and back with every number looked at. */
#include "raw/format.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"

enum { ORDER = 0x01020304, CHUNK_MAGIC = 0x43524c53, TRAILER_MAGIC = 0x45524c53 }; /* SLRC, SLRE */
static const char RUN_MAGIC[] = "SLRAWRUN", END_MAGIC[] = "SLRAWEND", DATA_MAGIC[] = "SLRAWDAT",
		  FOOTER_MAGIC[] = "SLRAWIDX";

static void put32(uint8_t *to, uint32_t value)
{
	value = htole32(value);
	memcpy(to, &value, sizeof(value));
}

static void put64(uint8_t *to, uint64_t value)
{
	value = htole64(value);
	memcpy(to, &value, sizeof(value));
}

static uint32_t get32(const uint8_t *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return le32toh(value);
}

static uint64_t get64(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return le64toh(value);
}

/* Blocks begin with magic, version and byte order, and end with their checksum. */
static void begin_block(uint8_t *to, size_t bytes, const char *magic)
{
	memset(to, 0, bytes);
	memcpy(to, magic, 8);
	put32(to + 8, RAW_VERSION);
	put32(to + 12, ORDER);
}

static void end_block(uint8_t *to, size_t bytes)
{
	put32(to + bytes - 4, sl_crc32c(0, to, bytes - 4));
}

static int check_crc(const uint8_t *from, size_t bytes)
{
	return get32(from + bytes - 4) == sl_crc32c(0, from, bytes - 4) ? 0 : -EBADMSG;
}

static int check_block(const uint8_t *from, size_t bytes, const char *magic)
{
	if (memcmp(from, magic, 8) != 0 || get32(from + 8) != RAW_VERSION ||
	    get32(from + 12) != ORDER)
		return -EPROTO;
	return check_crc(from, bytes);
}

void raw_write_run_head(const struct raw_run_head *head, uint8_t to[RAW_BLOCK])
{
	begin_block(to, RAW_BLOCK, RUN_MAGIC);
	put64(to + 16, head->generation);
	put64(to + 24, head->created_unix_ns);
	put64(to + 32, head->keep_ns);
	put64(to + 40, head->keep_bytes);
	put64(to + 48, head->head_bytes);
	put64(to + 56, head->folders_bytes);
	put64(to + 64, head->end_at);
	put32(to + 72, head->folders);
	put32(to + 76, head->head_crc);
	put32(to + 80, head->folders_crc);
	end_block(to, RAW_BLOCK);
}

int raw_read_run_head(const uint8_t from[RAW_BLOCK], struct raw_run_head *head)
{
	int r = check_block(from, RAW_BLOCK, RUN_MAGIC);

	if (r)
		return r;
	*head = (struct raw_run_head){.generation = get64(from + 16),
				      .created_unix_ns = get64(from + 24),
				      .keep_ns = get64(from + 32),
				      .keep_bytes = get64(from + 40),
				      .head_bytes = get64(from + 48),
				      .folders_bytes = get64(from + 56),
				      .end_at = get64(from + 64),
				      .folders = get32(from + 72),
				      .head_crc = get32(from + 76),
				      .folders_crc = get32(from + 80)};
	if (head->head_bytes > RAW_BLOB_MAX || head->folders_bytes > RAW_BLOB_MAX ||
	    head->folders > head->folders_bytes ||
	    head->end_at != raw_up(RAW_BLOCK + head->head_bytes + head->folders_bytes, RAW_BLOCK))
		return -EBADMSG;
	return 0;
}

void raw_write_run_end(const struct raw_run_end *end, uint8_t to[RAW_BLOCK])
{
	begin_block(to, RAW_BLOCK, END_MAGIC);
	put64(to + 16, end->generation);
	put64(to + 24, end->finished_unix_ns);
	put64(to + 32, end->chunks);
	put64(to + 40, end->lost);
	put64(to + 48, end->bytes);
	put64(to + 56, end->tail_bytes);
	put64(to + 64, end->files);
	put32(to + 72, end->tail_crc);
	put32(to + 76, end->table_crc);
	end_block(to, RAW_BLOCK);
}

int raw_read_run_end(const uint8_t from[RAW_BLOCK], struct raw_run_end *end)
{
	int r = check_block(from, RAW_BLOCK, END_MAGIC);

	if (r)
		return r;
	*end = (struct raw_run_end){.generation = get64(from + 16),
				    .finished_unix_ns = get64(from + 24),
				    .chunks = get64(from + 32),
				    .lost = get64(from + 40),
				    .bytes = get64(from + 48),
				    .tail_bytes = get64(from + 56),
				    .files = get64(from + 64),
				    .tail_crc = get32(from + 72),
				    .table_crc = get32(from + 76)};
	return end->tail_bytes > RAW_BLOB_MAX || end->files > UINT32_MAX || end->lost > end->chunks
		       ? -EBADMSG
		       : 0;
}

void raw_write_data_head(const struct raw_data_head *head, uint8_t to[RAW_BLOCK])
{
	begin_block(to, RAW_BLOCK, DATA_MAGIC);
	put64(to + 16, head->generation);
	put32(to + 24, head->number);
	put32(to + 28, head->folder);
	end_block(to, RAW_BLOCK);
}

int raw_read_data_head(const uint8_t from[RAW_BLOCK], struct raw_data_head *head)
{
	int r = check_block(from, RAW_BLOCK, DATA_MAGIC);

	if (!r)
		*head = (struct raw_data_head){.generation = get64(from + 16),
					       .number = get32(from + 24),
					       .folder = get32(from + 28)};
	return r;
}

static void put_key(uint8_t *to, const struct sl_raw_key *key)
{
	put64(to, key->sequence);
	put64(to + 8, key->number);
	put64(to + 16, key->timestamp);
	put64(to + 24, key->arrived_ns);
	put32(to + 32, key->flags);
}

static struct sl_raw_key get_key(const uint8_t *from)
{
	return (struct sl_raw_key){.sequence = get64(from),
				   .number = get64(from + 8),
				   .timestamp = get64(from + 16),
				   .arrived_ns = get64(from + 24),
				   .flags = get32(from + 32)};
}

void raw_write_chunk(const struct raw_chunk *chunk, uint8_t to[RAW_HEADER])
{
	memset(to, 0, RAW_HEADER);
	put32(to, CHUNK_MAGIC);
	put32(to + 4, chunk->kind);
	put64(to + 8, chunk->generation);
	put64(to + 16, chunk->number);
	put64(to + 24, chunk->bytes);
	put_key(to + 32, &chunk->key);
	end_block(to, RAW_HEADER);
}

int raw_read_chunk(const uint8_t from[RAW_HEADER], struct raw_chunk *chunk)
{
	uint32_t kind = get32(from + 4);

	if (get32(from) != CHUNK_MAGIC)
		return -EPROTO;
	if (check_crc(from, RAW_HEADER) || kind < RAW_DATA || kind > RAW_INDEX)
		return -EBADMSG;
	*chunk = (struct raw_chunk){.kind = kind,
				    .generation = get64(from + 8),
				    .number = get64(from + 16),
				    .bytes = get64(from + 24),
				    .key = get_key(from + 32)};
	if (chunk->bytes > RAW_CHUNK_MAX || (kind == RAW_PAD && chunk->bytes % RAW_HEADER != 0))
		return -EBADMSG;
	return 0;
}

void raw_write_trailer(const struct raw_trailer *trailer, uint8_t to[RAW_TRAILER])
{
	put32(to, TRAILER_MAGIC);
	put32(to + 4, trailer->payload_crc);
	put64(to + 8, trailer->number);
}

int raw_read_trailer(const uint8_t from[RAW_TRAILER], struct raw_trailer *trailer)
{
	if (get32(from) != TRAILER_MAGIC)
		return -EPROTO;
	*trailer = (struct raw_trailer){.payload_crc = get32(from + 4), .number = get64(from + 8)};
	return 0;
}

void raw_write_entry(const struct raw_index_entry *entry, uint8_t to[RAW_ENTRY])
{
	put64(to, entry->number);
	put64(to + 8, entry->offset);
	put64(to + 16, entry->bytes);
	put_key(to + 24, &entry->key);
	put32(to + 60, entry->payload_crc);
}

int raw_read_entry(const uint8_t from[RAW_ENTRY], struct raw_index_entry *entry)
{
	*entry = (struct raw_index_entry){.number = get64(from),
					  .offset = get64(from + 8),
					  .bytes = get64(from + 16),
					  .key = get_key(from + 24),
					  .payload_crc = get32(from + 60)};
	return entry->bytes > RAW_CHUNK_MAX || entry->offset % RAW_HEADER != 0 ||
			       entry->offset < RAW_BLOCK || entry->offset > INT64_MAX / 2
		       ? -EBADMSG
		       : 0;
}

void raw_write_footer(const struct raw_footer *footer, uint8_t to[RAW_FOOTER])
{
	begin_block(to, RAW_FOOTER, FOOTER_MAGIC);
	put64(to + 16, footer->generation);
	put64(to + 24, footer->index_at);
	put64(to + 32, footer->entries);
	end_block(to, RAW_FOOTER);
}

int raw_read_footer(const uint8_t from[RAW_FOOTER], struct raw_footer *footer)
{
	int r = check_block(from, RAW_FOOTER, FOOTER_MAGIC);

	if (r)
		return r;
	*footer = (struct raw_footer){.generation = get64(from + 16),
				      .index_at = get64(from + 24),
				      .entries = get64(from + 32)};
	return footer->entries > RAW_CHUNK_MAX / RAW_ENTRY || footer->index_at % RAW_BLOCK != 0 ||
			       footer->index_at < RAW_BLOCK || footer->index_at > INT64_MAX / 2
		       ? -EBADMSG
		       : 0;
}

void raw_write_row(const struct raw_table_row *row, uint8_t to[RAW_TABLE_ROW])
{
	put32(to, row->number);
	put32(to + 4, row->folder);
	put64(to + 8, row->chunks);
	put64(to + 16, row->first);
	put64(to + 24, row->last);
	put64(to + 32, row->bytes);
	put64(to + 40, row->first_arrived_ns);
	put64(to + 48, row->last_arrived_ns);
	put64(to + 56, row->payload_bytes);
}

int raw_read_row(const uint8_t from[RAW_TABLE_ROW], struct raw_table_row *row)
{
	*row = (struct raw_table_row){.number = get32(from),
				      .folder = get32(from + 4),
				      .chunks = get64(from + 8),
				      .first = get64(from + 16),
				      .last = get64(from + 24),
				      .bytes = get64(from + 32),
				      .first_arrived_ns = get64(from + 40),
				      .last_arrived_ns = get64(from + 48),
				      .payload_bytes = get64(from + 56)};
	return !row->number || row->first > row->last ||
			       (row->chunks && row->chunks - 1 > row->last - row->first)
		       ? -EBADMSG
		       : 0;
}

/* The last part of the path, and its length without an ending. */
static const char *name_of(const char *run, size_t *length)
{
	const char *slash = strrchr(run, '/'), *name = slash ? slash + 1 : run;
	const char *dot = strrchr(name, '.');

	*length = dot && dot > name ? (size_t)(dot - name) : strlen(name);
	return name;
}

char *raw_data_path(const char *run, const char *folder, uint32_t number)
{
	size_t length, own;
	const char *name = name_of(run, &length);
	char *path;

	own = folder ? strlen(folder) : (size_t)(name - run);
	if (asprintf(&path, "%.*s%s%.*s_raw_%06u.bin", (int)own, folder ? folder : run,
		     folder && own && folder[own - 1] != '/' ? "/" : "", (int)length, name,
		     number) < 0)
		return NULL;
	return path;
}

char *raw_absolute_path(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char *folder = slash ? strndup(path, (size_t)(name - path)) : strdup(".");
	char *resolved = folder ? realpath(folder, NULL) : NULL, *out = NULL;

	if (resolved && asprintf(&out, "%s/%s", strcmp(resolved, "/") ? resolved : "", name) < 0)
		out = NULL;
	free(resolved);
	free(folder);
	return out;
}

uint32_t raw_data_number(const char *run, const char *name)
{
	size_t length, digits;
	const char *own = name_of(run, &length);
	unsigned long number;

	if (strncmp(name, own, length) != 0 || strncmp(name + length, "_raw_", 5) != 0)
		return 0;
	name += length + 5;
	digits = strspn(name, "0123456789");
	if (digits < 6 || digits > 9 || strcmp(name + digits, ".bin") != 0)
		return 0;
	number = strtoul(name, NULL, 10);
	return digits > 6 && number < 1000000 ? 0 : (uint32_t)number;
}
