/* journal.h - what a conversion has finished, so that the next one goes on there.
 *
 * Model:     a text file OUT.convert beside the file that is written. It begins with what is
 *            converted and how, in words; a line for each data file that is whole and on disk
 *            follows: number, entries of the recording up to its end, bytes, CRC32C; the last
 *            line says that the file is being closed. It is locked while a conversion goes on,
 *            and goes when that is done. Only a file of this user with no other name is used, and
 *            only one that a conversion wrote.
 * Threads:   one.
 * Errors:    -errno, logged. */
#ifndef SL_CONVERT_JOURNAL_H
#define SL_CONVERT_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "hdf5/rolled/data_files.h"

/* How `what` of sl_journal_open() begins: its first line. */
#define SL_JOURNAL_HEAD "sluice convert "

struct sl_journal_file { /* a data file */
	uint64_t entries, bytes;
	uint32_t crc;
};

struct sl_journal {
	char *path;
	const char *out; /* the caller's */
	int fd;
	bool resumes; /* an earlier conversion of the same began it */
	bool closing; /* and was about to finish the file */
	/* Which files are of this conversion (hdf5/rolled/data_files.h). */
	char file_set[SL_H5_FILE_SET_BYTES];
	uint64_t begun_ns; /* wall clock; what is older is not of this conversion */
	struct sl_journal_file *file;
	uint32_t files;
};

/* what: lines that say what is converted and how, SL_JOURNAL_HEAD first. An earlier journal of the
 * same is gone on with: its data files are read and compared, and those behind the first that
 * differs are forgotten.
 * -EEXIST: it is of another conversion, and not overwrite; or no journal. -EBUSY: one goes on.
 * Close even when this failed. */
int sl_journal_open(const char *out, const char *what, bool overwrite, struct sl_journal *journal);

/* Data file number files + 1 is whole; `entries` of the recording come before the next one. */
int sl_journal_add(struct sl_journal *journal, uint64_t entries);

/* All data files are written: what is at OUT from now on, if it is whole, is this conversion's. */
int sl_journal_closing(struct sl_journal *journal);

/* done: the journal goes; else it stays. */
void sl_journal_close(struct sl_journal *journal, bool done);

#endif
