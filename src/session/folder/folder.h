/* folder.h - the folder of one run: ROOT/NNNNNN, with its lock, its log and its result.
 *
 * Model:     the number is one more than the highest in the root, made by mkdir: two sessions never
 *            have the same. `lock` is held by flock() while the run lives. Every file is opened
 *            relative to the folder's descriptor, never through a symbolic link, and replaces no
 *            file that is there. result.json.part holds room for the result from the beginning,
 *            so that it can be written on a full disk; it gets its name when it is whole.
 *            docs/reference/run-folders.md is the page for users.
 * Receivers: the receivers of one run with several transfers share the folder: the program that
 *            starts them makes it and hands each the lock (sl_run_folder_join). The names of their
 *            own files have the transfer's name in them: run.NAME.log.
 * Threads:   one, except for the log.
 * Errors:    0 or -errno, logged. */
#ifndef SL_SESSION_FOLDER_H
#define SL_SESSION_FOLDER_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <sluice/status.h>

#include "session/folder/run_log.h"

struct sl_run_folder {
	int dir, lock;	   /* -1: there is no folder */
	int result;	   /* result.json.part; -1: none */
	uint64_t number;   /* 0: there is no folder */
	uint64_t reserved; /* bytes of `result` */
	char path[SL_STATUS_PATH];
	char transfer[SL_STATUS_NAME]; /* in the names of its files; empty: not */
	struct sl_run_log log;

	/* Between two runs: the highest number in the root, and when the root was changed. */
	uint64_t last;
	struct timespec changed;
};

void sl_run_folder_init(struct sl_run_folder *folder);
void sl_run_folder_fini(struct sl_run_folder *folder);

/* Make the next folder of the root (which is made, too, if only its last part is missing), lock it,
 * begin run.log and reserve this many bytes for the result. An error leaves nothing behind. */
int sl_run_folder_make(struct sl_run_folder *folder, const char *root, size_t result_bytes);

/* The folder of the program that started this one. given: "FD:PATH", FD being the lock. */
int sl_run_folder_join(struct sl_run_folder *folder, const char *given, const char *transfer,
		       size_t result_bytes);
void sl_run_folder_give(const struct sl_run_folder *folder, char *given, size_t bytes);

/* "run.log" or "run.NAME.log": stem and ending with the transfer's name between them. */
void sl_run_folder_name(const struct sl_run_folder *folder, const char *stem, const char *ending,
			char *name, size_t bytes);

/* A new file with this text. */
int sl_run_folder_write(const struct sl_run_folder *folder, const char *name, const char *text);

/* result.json: whole, synced, then named. */
int sl_run_folder_write_result(struct sl_run_folder *folder, const char *text);

/* The run is over: lock and log are closed. */
void sl_run_folder_close(struct sl_run_folder *folder);
/* The run cannot begin: remove what was made of the folder, and close it. */
void sl_run_folder_remove(struct sl_run_folder *folder);

/* ---- the root ---- */

enum sl_run_state {
	SL_RUN_NONE,	/* not a run folder, or being made just now */
	SL_RUN_LIVES,	/* the lock is held */
	SL_RUN_ENDED,	/* there is a result */
	SL_RUN_CRASHED, /* the lock is free, and there is no result */
};

/* Of one run in an opened root. */
enum sl_run_state sl_run_folder_state(int root, uint64_t number);

/* The name of a number's folder: at least six digits. */
void sl_run_folder_digits(uint64_t number, char *name, size_t bytes);
/* The number that a name stands for; 0: none. */
uint64_t sl_run_folder_number(const char *name);
/* The highest number that an opened root has; 0: none. */
int sl_run_folder_highest(int root, uint64_t *number);

/* Log a warning about each run of the root that has crashed since the last one with a result. How
 * many there are. */
unsigned sl_run_folder_warn_of_crashes(const char *root);

#endif
