/* private.h - what the files about a master and its data files share.
 *
 * Threads:   those of the file. */
#ifndef SL_HDF5_ROLLED_PRIVATE_H
#define SL_HDF5_ROLLED_PRIVATE_H

#include "hdf5/rolled/closed.h"
#include "hdf5/rolled/data_files.h"
#include "hdf5/rolled/old_files.h"
#include "hdf5/rolled/rolled.h"
#include "hdf5/rolled/sync.h"

struct sl_h5_rolled {
	struct sl_h5 *data; /* at hand; NULL: none */
	uint32_t files;	    /* begun */
	struct sl_h5_series *flushed;
	uint64_t *counts; /* a row of it */
	uint64_t mark;	  /* of the last flush */
	bool rows;	  /* between rows_begin and rows_end */
	uint32_t kept;	  /* data files that an earlier writer finished */
	char file_set[SL_H5_FILE_SET_BYTES];
	struct sl_h5_old old;	     /* data files of an earlier run */
	struct sl_h5_closed *closed; /* data files of this one, the newest first */
	bool syncs;		     /* the thread is there */
	struct sl_h5_sync sync;
};

/* The next data file. Removes what it began when it fails. */
int sl_h5_begin_data(struct sl_h5 *file);

#endif
