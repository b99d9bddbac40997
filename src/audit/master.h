/* master.h - what the file that a run's path names says of the whole run.
 *
 * Model:     roots, counts, the names of data files, the ledger. Of a run in one file, that file
 *            is its only data file.
 * Threads:   one.
 * Errors:    0 or -errno, logged: it cannot be audited. */
#ifndef SL_AUDIT_MASTER_H
#define SL_AUDIT_MASTER_H

#include <limits.h>

#include "audit/layout.h"
#include "audit/leaf.h"
#include "hdf5/file.h"

struct sl_master_file {
	char name[NAME_MAX + 1];
	uint64_t rows, first_sequence, first_image;
	struct sl_hash root;
};

struct sl_master {
	struct sl_h5 *file_handle;
	char folder[PATH_MAX]; /* with its slash; empty: the working folder */
	char name[NAME_MAX + 1];
	char state[16], root[SL_HASH_TEXT], run_id[SL_AUDIT_RUN_ID_TEXT];
	char cut[SL_AUDIT_CUT]; /* which part of a run it is; empty: all of it */
	uint64_t rows;
	bool rolled;
	uint32_t files;
	struct sl_master_file *file; /* [files] */
	bool ledger_closed;
	uint64_t refused;
	uint32_t modules; /* of the ledger */
	uint64_t sent[SL_LEAF_MODULES], settled[SL_LEAF_MODULES];
};

int sl_master_open(struct sl_master *master, const char *path);
void sl_master_close(struct sl_master *master);

/* The root of the leaves that programs see which open the master. */
int sl_master_shown(struct sl_master *master, struct sl_hash *root);

#endif
