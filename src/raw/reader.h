/* reader.h - what the files of the raw container's reader share.
 *
 * Model:     a source is an open data file. Its chunks are found by its index, or by a scan that
 *            checks every payload; they are gathered, put in order, and shown to the caller as far
 *            as no chunk in between can still appear. */
#ifndef SL_RAW_READER_H
#define SL_RAW_READER_H

#include "raw/format.h"
#include "raw/raw.h"

struct raw_item {
	struct sl_raw_entry entry;
	uint32_t payload_crc;
};

struct raw_source {
	char *path;
	int fd;
	uint32_t number, folder;
	uint64_t scanned; /* every chunk before this offset is known */
	uint64_t chunks, first, last;
	bool whole; /* nothing more will come */
};

struct sl_raw_reader {
	char *path;
	unsigned flags;
	int fd; /* of the run file */
	enum sl_raw_state state;
	struct raw_run_head head;
	struct raw_run_end end; /* when complete, likewise: */
	struct raw_table_row *row;
	uint8_t *head_blob, *tail_blob;
	char **folder; /* where to look for data files; the first ones as the writer was told */
	uint32_t folders;
	char *written_as; /* path of the run file when it was made; NULL: it is not known */
	struct raw_source *source;
	uint32_t sources, source_room;
	struct raw_item *item; /* by chunk number as far as they are shown */
	uint64_t items, item_room, shown;
	uint64_t bytes, missing;
	uint32_t missing_files;
	bool sorted[SL_RAW_BY_CHUNK + 1]; /* the shown ones, by each key */
};

/* Logs "FILE: byte N: what"; -EBADMSG. */
int raw_damaged(const char *path, uint64_t offset, const char *what);

/* pread() of all of it; -EBADMSG: the file ends before, not logged; other errors are logged. */
int raw_read_at(const char *path, int fd, void *to, uint64_t bytes, uint64_t offset);

/* run_read.c: the head; the state, and the end if there is one. */
int raw_run_open(struct sl_raw_reader *r);
int raw_run_look(struct sl_raw_reader *r);

/* source.c: data files in the folders that are not open yet. */
int raw_sources_find(struct sl_raw_reader *r);

/* scan.c: the chunks of a source that are not known yet become items. */
int raw_source_load(struct sl_raw_reader *r, uint32_t source);
int raw_item_add(struct sl_raw_reader *r, uint32_t source, const struct raw_index_entry *entry);

#endif
