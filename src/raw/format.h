/* format.h - the bytes of the raw container: run file, data files, chunks, index.
 *
 * Model:     pure functions between structs and bytes, little-endian whatever the host is. The
 *            read functions believe nothing: magic, version, checksum and generation are looked
 *            at, and every length is one that a file can have; the caller compares it with the
 *            size of the file at hand. docs/reference/raw.md has the same as tables.
 * Threads:   any. */
#ifndef SL_RAW_FORMAT_H
#define SL_RAW_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raw/raw.h"

enum {
	RAW_VERSION = 1,
	RAW_BLOCK = 4096,  /* heads of files, and what O_DIRECT wants to be a multiple of */
	RAW_HEADER = 128,  /* of a chunk; chunks begin at multiples of it */
	RAW_TRAILER = 16,  /* of a chunk: its last bytes */
	RAW_ENTRY = 64,	   /* of an index */
	RAW_FOOTER = 128,  /* the last bytes of a data file that was closed */
	RAW_TABLE_ROW = 64 /* of the table of data files */
};
#define RAW_CHUNK_MAX (UINT64_C(1) << 40) /* bytes of payload */
#define RAW_BLOB_MAX  (UINT64_C(1) << 32) /* head, tail, names of folders */

enum raw_kind { RAW_DATA = 1, RAW_PAD, RAW_INDEX };

static inline uint64_t raw_up(uint64_t n, uint64_t multiple)
{
	return (n + multiple - 1) / multiple * multiple;
}

/* Header, payload, zeros, trailer. */
static inline uint64_t raw_chunk_bytes(uint64_t payload)
{
	return raw_up(RAW_HEADER + payload + RAW_TRAILER, RAW_HEADER);
}

/* The index of a data file: a chunk, zeros, and the footer at the end of a block. */
static inline uint64_t raw_index_bytes(uint64_t entries)
{
	return raw_up(raw_chunk_bytes(entries * RAW_ENTRY) + RAW_FOOTER, RAW_BLOCK);
}

struct raw_run_head {
	uint64_t generation, created_unix_ns, keep_ns, keep_bytes;
	uint64_t head_bytes, folders_bytes;
	uint64_t end_at; /* of the end block: behind head and folders */
	uint32_t folders, head_crc, folders_crc;
};

struct raw_run_end {
	uint64_t generation, finished_unix_ns;
	uint64_t chunks, lost, bytes; /* appended, lost by failed writes, bytes of payload */
	uint64_t tail_bytes, files;
	uint32_t tail_crc, table_crc;
};

struct raw_data_head {
	uint64_t generation;
	uint32_t number, folder; /* from 1; from 0 */
};

struct raw_chunk {
	enum raw_kind kind;
	uint64_t generation, number, bytes;
	struct sl_raw_key key;
};

struct raw_trailer {
	uint64_t number;
	uint32_t payload_crc;
};

struct raw_index_entry {
	uint64_t number, offset, bytes;
	struct sl_raw_key key;
	uint32_t payload_crc;
};

struct raw_footer {
	uint64_t generation, index_at, entries;
};

struct raw_table_row { /* a data file in the table at the end of the run file */
	uint32_t number, folder;
	uint64_t chunks, first, last; /* chunks 0: an empty file */
	uint64_t bytes;		      /* size of the file */
	uint64_t first_arrived_ns, last_arrived_ns, payload_bytes;
};

void raw_write_run_head(const struct raw_run_head *head, uint8_t to[RAW_BLOCK]);
void raw_write_run_end(const struct raw_run_end *end, uint8_t to[RAW_BLOCK]);
void raw_write_data_head(const struct raw_data_head *head, uint8_t to[RAW_BLOCK]);
void raw_write_chunk(const struct raw_chunk *chunk, uint8_t to[RAW_HEADER]);
void raw_write_trailer(const struct raw_trailer *trailer, uint8_t to[RAW_TRAILER]);
void raw_write_entry(const struct raw_index_entry *entry, uint8_t to[RAW_ENTRY]);
void raw_write_footer(const struct raw_footer *footer, uint8_t to[RAW_FOOTER]);
void raw_write_row(const struct raw_table_row *row, uint8_t to[RAW_TABLE_ROW]);

/* 0; -EPROTO: other magic, byte order or version; -EBADMSG: a wrong checksum, or a number that no
 * writer writes. */
int raw_read_run_head(const uint8_t from[RAW_BLOCK], struct raw_run_head *head);
int raw_read_run_end(const uint8_t from[RAW_BLOCK], struct raw_run_end *end);
int raw_read_data_head(const uint8_t from[RAW_BLOCK], struct raw_data_head *head);
int raw_read_chunk(const uint8_t from[RAW_HEADER], struct raw_chunk *chunk);
int raw_read_trailer(const uint8_t from[RAW_TRAILER], struct raw_trailer *trailer);
int raw_read_footer(const uint8_t from[RAW_FOOTER], struct raw_footer *footer);

/* No checksum of their own: that of the index, and of the table, covers them. -EBADMSG: a number
 * that no writer writes. */
int raw_read_entry(const uint8_t from[RAW_ENTRY], struct raw_index_entry *entry);
int raw_read_row(const uint8_t from[RAW_TABLE_ROW], struct raw_table_row *row);

/* "FOLDER/NAME_raw_%06u.bin" for a run file of this path; folder NULL: that of the run file. The
 * caller frees it; NULL: no memory. */
char *raw_data_path(const char *run, const char *folder, uint32_t number);

/* This path with its folder resolved; the caller frees it. NULL: there is no such folder, or no
 * memory. */
char *raw_absolute_path(const char *path);

/* The number of a data file of this run by its name, without folder; 0: it is not one. */
uint32_t raw_data_number(const char *run, const char *name);

#endif
