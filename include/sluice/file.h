/* file.h - the files that an add-on reads and writes, so that a run overwrites none that it needs.
 *
 * Model:     detectors, stages and sinks have a query `files` that names the files of their
 *            options, one call per file. A run refuses to start if a file that one add-on writes is
 *            read by another one, or written twice.
 * Threads:   on one thread, after the options were set, before open().
 * Ownership: the path is the add-on's, valid during the call. */
#ifndef SLUICE_FILE_H
#define SLUICE_FILE_H

#ifdef __cplusplus
extern "C" {
#endif

enum sl_file_use {
	SL_FILE_READ,  /* must not be replaced by an output of the run */
	SL_FILE_WRITE, /* an output: created, or replaced */
	SL_FILE_CODE,  /* executed: a script (named with SL_FILE_READ, too) or an interpreter */
};

/* "" is ignored: options that name no file need not be left out. */
typedef void sl_file_each(void *arg, enum sl_file_use use, const char *path);

#ifdef __cplusplus
}
#endif

#endif
