/* closed.h - data files that HDF5 has closed: remembered, and looked at once more before the master
 * promises them.
 *
 * Threads:   the owner's; the thread of sync.h fills in what a file is when it is on disk.
 * Ownership: the list and its paths are the owner's. */
#ifndef SL_HDF5_ROLLED_CLOSED_H
#define SL_HDF5_ROLLED_CLOSED_H

#include "hdf5/handle.h"

/* What ends the name of a file that takes the rows of a data file that is kept. */
#define SL_H5_AGAIN ".again"

/* A data file is about to be closed: data->closed is its entry in the list. -ENOMEM. */
int sl_h5_closed_add(struct sl_h5_closed **list, struct sl_h5 *data);

/* The file that took rows of a data file that is kept goes, and its entry is of the latter. Frees
 * `data`. -errno, logged: the data file is not there. */
int sl_h5_closed_again(struct sl_h5 *data);

/* -ESTALE, logged: one of them is not there, or not as it was. */
int sl_h5_closed_check(const struct sl_h5_closed *list);

void sl_h5_closed_free(struct sl_h5_closed **list);

#endif
