/* handle.h - what the files of this folder share: the file behind its handle, and how HDF5's errors
 * become ours.
 *
 * Threads:   as file.h. */
#ifndef SL_HDF5_HANDLE_H
#define SL_HDF5_HANDLE_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/file/part_file.h"
#include "codec/codec.h"
#include "hdf5/file.h"
#include "hdf5/rolled/old_files.h"

struct sl_h5_rolled;

/* What a data file was when it was closed and found to be right. */
struct sl_h5_closed {
	struct sl_h5_closed *next;
	char *path;
	dev_t device;
	ino_t inode;
	off_t bytes;
};

struct sl_h5 {
	hid_t id;
	char *path;		  /* its name in the end */
	struct sl_part_file disk; /* while it is written; fd -1 when reading */
	int status;		  /* the error that sticks */
	bool broken;		  /* HDF5 failed to write: it must not touch this file again */
	bool no_fallocate;
	uint64_t reserved; /* blocks below this offset are ours */
	uint64_t headroom; /* what finishing may need */
	uint64_t step;	   /* how much to reserve ahead */
	struct sl_h5_series *series;
	struct sl_h5_samples *samples; /* of series that have ended */
	struct sl_h5_rolled *rolled;   /* NULL: its series lie in the file itself */
	struct sl_h5_closed *closed;   /* of a data file: to be filled; another's. NULL: none */
	struct sl_h5_old old; /* data files of the master that this one replaces, without any */
	hid_t links;	      /* for reading: how links to other files are followed (origin.c) */
};

/* Room that one call may need besides its data: object headers, heaps and index nodes are a few KiB
 * each. */
enum { SL_H5_SLACK_BYTES = 64 << 10 };

/* Make HDF5 quiet on this thread, and harmless; before its first call. */
void sl_h5_prepare(void);

/* HDF5 refused: log why. While writing, the file is given up. */
int sl_h5_failed(struct sl_h5 *file, const char *verb, const char *path);

/* Some other error while writing `path`: log it; it sticks. */
int sl_h5_stop(struct sl_h5 *file, int status, const char *verb, const char *path);

/* Room for one write, without keeping the headroom: what the headroom is for. The error sticks. */
int sl_h5_room(struct sl_h5 *file, uint64_t bytes, const char *path);

/* HDF5 is done with a file that was written: trim it, compare it with the samples, publish it. The
 * error sticks. */
int sl_h5_settle(struct sl_h5 *file);

/* A file that is written, as HDF5 opens it: `flags` of H5Fcreate() or H5Fopen(). swmr: others may
 * read it while it grows. -errno, logged, and it sticks. */
int sl_h5_begin(struct sl_h5 *file, bool create, bool swmr);
void sl_h5_close_id(struct sl_h5 *file);

/* Add to the headroom of this very file, and have it reserved at once. -ENOSPC and others. */
int sl_h5_keep_more(struct sl_h5 *file, uint64_t bytes);

/* As sl_h5_create(); over: what an earlier run left in PATH.part goes. */
int sl_h5_create_over(const char *path, bool over, struct sl_h5 **created);

/* An empty handle; NULL: no memory. */
struct sl_h5 *sl_h5_allocate(const char *path);
void sl_h5_forget(struct sl_h5 *file);

/* The file that has the datasets of its series. */
struct sl_h5 *sl_h5_home(struct sl_h5 *file);

/* rolled.c: the last data file ends and the master has its series (finish), or nothing is left. */
int sl_h5_rolled_end(struct sl_h5 *file);
void sl_h5_rolled_discard(struct sl_h5 *file);

/* A file that is being written, by its descriptor: "/proc/self/fd/N". */
static inline void sl_h5_self(const struct sl_h5 *file, char path[32])
{
	snprintf(path, 32, "/proc/self/fd/%d", file->disk.fd);
}

/* ---- samples.c: what was written is there in the end ---- */

/* Some chunks of a series, evenly over all of them: their rows and checksums. */
enum { SL_H5_SAMPLES = 32 };
struct sl_h5_samples {
	struct sl_h5_samples *next;
	char *path;
	uint64_t rows;	/* of the series, at its end */
	uint64_t every; /* one chunk in so many */
	uint32_t rank, n;
	struct {
		uint64_t chunk, row;
		uint32_t crc;
	} sample[SL_H5_SAMPLES];
};

void sl_h5_sample(struct sl_h5_samples *samples, uint64_t chunk, uint64_t row, const void *data,
		  size_t bytes);

/* The file is closed by HDF5: open it again by its descriptor and compare. The error sticks: bytes
 * are missing or others, as when another program has cut the file short. */
int sl_h5_read_back(struct sl_h5 *file);
void sl_h5_samples_free(struct sl_h5 *file);

/* Register our own filters; before a dataset is read that others wrote. */
void sl_h5_filters(void);

/* Chunks of a dataset with these creation properties are packed so, elements of these bytes. */
int sl_h5_filter_set(hid_t properties, enum sl_codec codec, size_t element);

/* On this thread chunks have so many bytes at least when unpacked; 0: not known. */
void sl_h5_filter_expect(size_t bytes);

/* Why a dataset with these creation properties cannot be unpacked; NULL: it can. */
const char *sl_h5_filter_lacks(hid_t properties, char *why, size_t why_bytes);

/* The dataset at path and what it is. -ENOENT is not logged. */
int sl_h5_dataset(struct sl_h5 *file, const char *path, hid_t *dataset, struct sl_h5_shape *shape);

/* origin.c: H5P_LINK_ACCESS or H5P_DATASET_ACCESS with which a link to another file is followed to
 * ordinary files only: opening a pipe would wait for a writer. The caller closes it, if it is not
 * H5P_DEFAULT. */
hid_t sl_h5_link_access(hid_t kind);

/* 0 or -EINVAL, logged for `file`: there is something of that name, and it is no ordinary file. */
int sl_h5_check_ordinary(const char *file, const char *name);

/* origin.c: its values come from this file or from beside it, and no virtual dataset leads back to
 * itself. -errno, logged. */
int sl_h5_check_origin(const char *file, hid_t dataset, const char *path);

hid_t sl_h5_native(enum sl_h5_type type);
hid_t sl_h5_text_type(void); /* the caller closes it */

#endif
