/* raw.h - the raw container: chunks of bytes on disk as fast as the disk writes, and back.
 *
 * Model:     a run is a small run file, PATH, and data files NAME_raw_000001.bin and so on, NAME
 *            being PATH without its ending. The run file holds the caller's head; at the end the
 *            caller's tail and a table of the data files are added, and the run is complete. A data
 *            file is a row of chunks, each with a header, a checksum of the payload and the
 *            caller's key, so that a file describes itself after a crash; an index at its end makes
 *            opening quick. docs/reference/raw.md has every byte.
 *
 *            With several folders one data file is open in each, and chunks go to them in turn, one
 *            buffer's worth at a time: several disks add up. A data file that is full is closed and
 *            the next one begins. All files have their final names from the start; no file that
 *            exists is ever written over. A rolling container (keep_ns, keep_bytes) removes whole
 *            data files once every chunk in them is too old; a reader keeps what it has open.
 * Threads:   writer: any thread may append, and read the mark and the counts; chunks are numbered
 *            in the order of the calls. create, finish, abandon and discard: one at a time, without
 *            appends. The writer has threads of its own for the disk. Reader: any number of
 *            threads may read chunks of one reader; sl_raw_refresh() only while none does.
 * Ownership: append copies. The reader owns what it returns, until it is closed.
 * Errors:    -errno, logged with the file and what to do by the function that returns it first.
 * Cost:      an append reads the payload once for checksum and copy, and allocates rarely (the
 *            index grows). It waits for the disk only while all buffers are in use: a stall, which
 *            is counted. Flushing waits on a thread of its own. */
#ifndef SL_RAW_RAW_H
#define SL_RAW_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* ---- writer ---- */

/* What the caller calls a chunk: searched for by the reader, otherwise only kept. */
struct sl_raw_key {
	uint64_t sequence, number, timestamp;
	uint64_t arrived_ns; /* on a clock of the caller's choice; the age of a chunk is by it */
	uint32_t flags;	     /* the caller's */
};

struct sl_raw_options {
	const char *path;	   /* of the run file; missing folders are made */
	const char *const *folder; /* for data files, in turn */
	unsigned folders;	   /* 0: the folder of the run file */
	uint64_t file_bytes;	   /* a data file ends before it; 0: 1 GiB, 128 MiB when rolling */
	uint64_t keep_ns;    /* remove data files this much older than the newest chunk; 0: keep */
	uint64_t keep_bytes; /* data files take up at most this much; 0: no limit */
	uint64_t flush_ns;   /* how often everything is made durable; 0: 1 s */
	uint64_t tail_bytes; /* room reserved on disk for the tail; 0: 64 KiB */
	uint32_t buffer_bytes; /* one write; a multiple of 4096; 0: 1 MiB */
	uint32_t buffers;      /* besides one for each folder; 0: 32 */
	bool cached;	       /* through the page cache: no O_DIRECT */
	bool plain;	       /* pwrite() on a few threads: no io_uring */
};

struct sl_raw_counts {
	uint64_t chunks, bytes; /* appended; bytes of payload */
	uint64_t durable;	/* as sl_raw_durable() */
	uint64_t lost;		/* chunks that were accepted, and that a failed write lost */
	uint64_t written_bytes; /* on disk, with headers and padding */
	uint64_t stalls, stalled_ns, longest_stall_ns; /* appends that waited for the disk */
	uint64_t files;				       /* data files begun */
	uint64_t removed_files, removed_chunks;	       /* by keep_ns and keep_bytes */
	bool direct, uring; /* how it writes: past the page cache; through io_uring */
};

struct sl_raw_writer;

/* Creates the run file, with the caller's head, and the first data files. -EEXIST: the run file or
 * a data file of this name is there. */
int sl_raw_create(const struct sl_raw_options *options, const void *head, size_t bytes,
		  struct sl_raw_writer **writer);

/* One chunk, of all parts one after the other; it may be empty. -ENOSPC (-EDQUOT, -EFBIG, or why a
 * next data file cannot be created): there is no room for it; nothing of it was written, everything
 * before it is whole, and a later append may go well again; logged once. Once a write or a sync has
 * failed every append returns that error: finish the run. -E2BIG: more than 1 TiB. */
int sl_raw_append(struct sl_raw_writer *writer, const struct sl_raw_key *key,
		  const struct iovec *part, unsigned parts);

/* Chunks 0 to here, without the last, are on disk for certain; after keep_ns some of the first may
 * have been removed. */
uint64_t sl_raw_durable(const struct sl_raw_writer *writer);

void sl_raw_counts(const struct sl_raw_writer *writer, struct sl_raw_counts *counts);

/* Make everything that was appended so far durable, now, and wait for it. */
int sl_raw_flush(struct sl_raw_writer *writer);

/* The run is complete: indices, tail, all on disk. The writer is freed in any case. Returns the
 * first error of the disk: then the run file says how many chunks were lost, and all others are
 * there and readable (SL_RAW_DAMAGED). */
int sl_raw_finish(struct sl_raw_writer *writer, const void *tail, size_t bytes);

void sl_raw_abandon(struct sl_raw_writer *writer); /* files stay, without tail: as if killed */
void sl_raw_discard(struct sl_raw_writer *writer); /* all files go; for a run that never began */

/* ---- a run that was set aside ---- */

/* The file begins like a run file. Nothing is logged. */
bool sl_raw_is_run(const char *path);

/* The run that was renamed, with its data files, to names with this ending, for a run at `path`
 * that was killed before it had a chunk: it gets its names back, and what the killed run left goes.
 * `files`: how many; 0: there is none. -EEXIST: the run at `path` has chunks; -EBUSY: it goes
 * on. */
int sl_raw_bring_back(const char *path, const char *ending, uint32_t *files);

/* ---- reader ---- */

enum sl_raw_state {
	SL_RAW_WRITING,	 /* a writer holds the lock */
	SL_RAW_COMPLETE, /* sl_raw_finish() */
	SL_RAW_KILLED	 /* neither */
};

enum {
	SL_RAW_DAMAGED = 1 << 0 /* open also when data files or chunks are missing: facts say so */
};

struct sl_raw_facts {
	enum sl_raw_state state;
	uint64_t generation; /* made up by the writer: the same in all files of a run */
	uint64_t created_unix_ns;
	uint64_t keep_ns; /* the writer's option; not 0: old chunks go */
	uint64_t chunks;  /* that can be read: entries 0 to here */
	uint64_t first;	  /* number of the first of them; not 0: a rolling container */
	uint64_t missing; /* numbers between the first and the last that are not there */
	uint64_t bytes;	  /* of payload */
	uint32_t files, missing_files;
};

/* A chunk of a reader: entry `i` is the i-th by chunk number. */
struct sl_raw_entry {
	struct sl_raw_key key;
	uint64_t chunk;	 /* its number; counts from 0 at the start of the run, without gaps unless
			   facts.missing says so */
	uint64_t bytes;	 /* of payload */
	uint64_t offset; /* of its header in the data file */
	uint32_t file;	 /* for sl_raw_file() */
};

enum sl_raw_by { SL_RAW_BY_SEQUENCE, SL_RAW_BY_NUMBER, SL_RAW_BY_ARRIVAL, SL_RAW_BY_CHUNK };

struct sl_raw_reader;

/* Open a run, in whatever state. All data files stay open, so that they can be read even after the
 * writer removed them. flags: 0 or SL_RAW_DAMAGED. -ENOENT, -EBADMSG (damaged; the file is named),
 * -EPROTO (no raw container, or one of another version). */
int sl_raw_open(const char *path, unsigned flags, struct sl_raw_reader **reader);
void sl_raw_close(struct sl_raw_reader *reader); /* NULL: nothing */

/* Look again at a run that is being written: new chunks are added behind those that are known,
 * which stay, and the state may change. Of a rolling container it keeps all that it has seen: open
 * it anew to let that go. After an error only sl_raw_close() is allowed. */
int sl_raw_refresh(struct sl_raw_reader *reader);

void sl_raw_facts(const struct sl_raw_reader *reader, struct sl_raw_facts *facts);
const void *sl_raw_head(const struct sl_raw_reader *reader, size_t *bytes);
const void *sl_raw_tail(const struct sl_raw_reader *reader, size_t *bytes); /* NULL: not complete */

/* i < facts.chunks. */
const struct sl_raw_entry *sl_raw_entry(const struct sl_raw_reader *reader, uint64_t i);
const char *sl_raw_file(const struct sl_raw_reader *reader, uint32_t file); /* its path */

/* The path of the run file when it was made; "": not known. The run file at the reader's path may
 * be a copy of that one, and see its data files: whether this one belongs to it. */
const char *sl_raw_written_as(const struct sl_raw_reader *reader);
bool sl_raw_owns(const struct sl_raw_reader *reader, uint32_t file);

/* The payload of entry i; bytes: room in the buffer. -EBADMSG: the checksum, or anything else that
 * the file says of this chunk, is wrong; -ENOBUFS: the buffer is too small; neither spoils other
 * chunks. */
int sl_raw_read(const struct sl_raw_reader *reader, uint64_t i, void *buffer, size_t bytes);

/* The entry with the least key that is at least `value`; of several the first. -ENOENT: all are
 * less. Fast where keys grow from chunk to chunk; elsewhere all are looked at. */
int sl_raw_find(const struct sl_raw_reader *reader, enum sl_raw_by by, uint64_t value, uint64_t *i);

#endif
