/* private.h - what the files of the raw container's writer share.
 *
 * Model:     a lane is a folder with its open data file and the buffer being filled. Filled buffers
 *            go to raw_io; the flush thread syncs, closes full data files and prepares the next.
 * Threads:   two locks. `stream` guards lanes and what is appended; it is held for a whole append
 *            or seal, also while that waits for a buffer. `lock` guards buffers and lists of
 *            files, shortly; it may be taken with `stream` held, never the other way round. */
#ifndef SL_RAW_PRIVATE_H
#define SL_RAW_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/file/part_file.h"
#include "base/thread.h"
#include "raw/format.h"
#include "raw/io.h"
#include "raw/raw.h"

enum { RAW_FOLDERS = 64, RAW_BUFFERS = 4096, RAW_WINDOW_FILES = 8 };

struct raw_file { /* a data file that is being written */
	struct raw_file *next;
	struct sl_part_file disk;
	uint32_t number, folder;
	uint64_t limit; /* its size, with the index, stays below */
	bool allocated; /* the file system has set this much aside */
	uint64_t at;	/* where the next byte goes; guarded by `stream`, likewise: */
	uint64_t payload_bytes, first_arrived_ns, last_arrived_ns;
	struct raw_index_entry *entry;
	uint64_t entries, room;
	unsigned in_flight; /* writes; guarded by `lock`, likewise: */
	uint64_t bad_from;  /* nothing from here on is for certain */
};

struct raw_buffer {
	struct raw_write write;
	struct raw_buffer *next; /* while it is free */
	struct raw_file *file;
	uint64_t ticket; /* order of submission; 0: not in flight */
};

/* The data file that follows the open one. */
enum raw_next { RAW_NEXT_NONE, RAW_NEXT_ASKED, RAW_NEXT_MAKING, RAW_NEXT_READY };

struct raw_lane {
	struct raw_file *file;	   /* guarded by `stream`, likewise: */
	struct raw_buffer *buffer; /* NULL: the next byte takes one */
	bool asked;		   /* for the next file, while this one was open */
	enum raw_next next;	   /* guarded by `lock`, likewise: */
	struct raw_file *ready;
};

struct raw_closed { /* a data file that is closed */
	struct raw_closed *next;
	char *path;
	dev_t device;
	ino_t inode;
	struct raw_table_row row;
};

struct sl_raw_writer {
	struct sl_raw_options o; /* defaults filled in; path and folder are copies */
	char **folder;		 /* NULL: that of the run file */
	struct sl_part_file run;
	struct raw_run_head head;
	uint64_t period_ns; /* a data file covers at most this much time; 0: any */
	struct raw_io io;
	uint8_t *memory;
	struct raw_buffer *buffer;
	uint32_t buffers;

	pthread_mutex_t stream;
	struct raw_lane *lane;
	unsigned lanes, turn;
	uint64_t turn_bytes;   /* to this lane since its turn came */
	uint64_t refused_ns;   /* when there was last no room for a chunk */
	uint64_t unrolled_ns;  /* when there was last no next data file; 0: never */
	int refused;	       /* -ENOSPC and the like; 0: the last chunk was taken */
	bool refused_before;   /* and it was logged */
	_Atomic uint32_t last; /* number of the last data file */

	pthread_mutex_t lock;
	pthread_cond_t done; /* a write is over, or a file is prepared or closed */
	struct raw_buffer *free;
	uint64_t tickets;
	struct raw_file *full, **full_last; /* to be closed by the flush thread */
	uint64_t closing, closes; /* files handed over and not closed yet; that were closed */
	struct raw_closed *closed, **closed_last; /* the oldest first */
	uint64_t closed_bytes;

	struct sl_thread thread;
	pthread_cond_t work; /* for the flush thread; guarded by lock, likewise: */
	bool prepare, end;
	uint64_t flush_asked, flush_done; /* numbers of requests */

	_Atomic int status; /* the first error of the disk */
	_Atomic uint64_t chunks, bytes, durable, lost, written_bytes, stalls, stalled_ns,
		longest_stall_ns, newest_ns, files, removed_files, removed_chunks;
	_Atomic uint64_t open_bytes; /* of open data files, as far as they may grow */
	_Atomic uint64_t largest;    /* chunk so far, with its header */
	_Atomic bool cached;	     /* a file system refused O_DIRECT */
};

/* writer.c */
void raw_fail(struct sl_raw_writer *w, int status);

/* stream.c: with `stream` held. */
void raw_stream_begin(struct sl_raw_writer *w, struct raw_lane *lane);
void raw_stream_put(struct sl_raw_writer *w, struct raw_lane *lane, const void *data,
		    uint64_t bytes, uint32_t *crc);
void raw_stream_zeros(struct sl_raw_writer *w, struct raw_lane *lane, uint64_t bytes);
void raw_stream_seal(struct sl_raw_writer *w, struct raw_lane *lane);
void raw_stream_stalled(struct sl_raw_writer *w, uint64_t ns);
void raw_stream_done(void *arg, struct raw_write *write, int error);

/* append.c: with `stream` held. A new data file; the end of a lane. */
int raw_lane_roll(struct sl_raw_writer *w, struct raw_lane *lane, uint64_t need);
void raw_lane_end(struct sl_raw_writer *w, struct raw_lane *lane);

/* data_file.c: a new data file with room for a chunk of `need` bytes. Nothing is logged for
 * -ENOSPC, -EDQUOT and -EFBIG (raw_is_full). */
int raw_file_open(struct sl_raw_writer *w, uint32_t folder, uint64_t need, struct raw_file **file);
int raw_file_close(struct sl_raw_writer *w, struct raw_file *file, struct raw_closed **closed);
void raw_file_discard(struct sl_raw_writer *w, struct raw_file *file);
bool raw_is_full(int error);

/* flush.c */
void *raw_flush_main(void *arg);

/* window.c: data files that are closed; those that are too old go. */
void raw_window_close(struct sl_raw_writer *w, struct raw_closed *closed);
void raw_window_trim(struct sl_raw_writer *w);
bool raw_window_drop_oldest(struct sl_raw_writer *w, uint32_t folder); /* false: none left */
int raw_window_check(const struct sl_raw_writer *w); /* every file is still there */
void raw_window_discard(struct sl_raw_writer *w);
void raw_window_free(struct sl_raw_writer *w);

/* run_file.c */
int raw_run_begin(struct sl_raw_writer *w, const void *head, size_t bytes);
int raw_run_finish(struct sl_raw_writer *w, const void *tail, size_t bytes);

#endif
