/* recover.h - what a killed writer left of a rolled file (rolled.h), made whole.
 *
 * Model:     closed data files are whole. The one at hand is replaced by a copy that has what the
 *            last flush counted, and nothing behind it. The master, which has all that was known
 *            when rows began, gets the rows of all data files as virtual datasets; the caller adds
 *            what belongs to the end, and finishes it as any other file.
 * Threads:   one.
 * Errors:    -errno, logged. What was there stays as it was until its replacement is whole. -EBUSY:
 *            a run is writing it. */
#ifndef SL_HDF5_ROLLED_RECOVER_H
#define SL_HDF5_ROLLED_RECOVER_H

#include "hdf5/file.h"

struct sl_h5_recovered {
	uint32_t files;	 /* data files */
	uint32_t mended; /* of these, that were not whole */
};

/* Data files of another run at the names of this one's are left alone, with a warning. */
int sl_h5_recover(const char *path, struct sl_h5_recovered *recovered, struct sl_h5 **master);

/* Rows that a data file has for certain: of its longest series; up to the last flush if it is not
 * whole. 0: HDF5 cannot open it, or it is none of ours. */
uint64_t sl_h5_data_rows(const char *path);

#endif
