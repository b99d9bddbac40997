/* sync.h - a thread that makes data files durable, so that the writer waits for no disk.
 *
 * Model:     jobs in order: make what was written to a data file by now durable (flush), or check
 *            and publish one that HDF5 has closed. Flushes of one file that wait are one job.
 *            The owner's thread is the one that writes by HDF5. This thread calls HDF5 only to
 *            open a closed file again and look up at most SL_H5_SAMPLES chunks of each series
 *            (samples.c); it syncs, and reads these chunks, by the file's descriptor.
 * Threads:   one owner asks; any thread may read the mark.
 * Ownership: a closed file belongs to this thread, and is freed.
 * Cost:      HDF5's lock is taken for each call, not for the whole check: a write of the owner
 *            waits for one call at most. */
#ifndef SL_HDF5_ROLLED_SYNC_H
#define SL_HDF5_ROLLED_SYNC_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "hdf5/handle.h"

struct sl_h5_sync_job;

struct sl_h5_sync {
	struct sl_thread thread;
	bool threaded; /* else jobs are done by the caller */
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct sl_h5_sync_job *first, *last; /* guarded by lock, likewise: */
	bool end;
	_Atomic uint64_t durable; /* the mark of the last job that went well */
	_Atomic int status;	  /* the first error */
	_Atomic uint32_t settled; /* closed files that went well */
};

int sl_h5_sync_open(struct sl_h5_sync *sync);

/* Everything that was written to this file by now has this mark. -ENOMEM. */
int sl_h5_sync_flush(struct sl_h5_sync *sync, struct sl_h5 *file, uint64_t mark);
int sl_h5_sync_closed(struct sl_h5_sync *sync, struct sl_h5 *file, uint64_t mark);

/* Wait until all jobs are done. The first error, or 0. */
int sl_h5_sync_close(struct sl_h5_sync *sync);

#endif
