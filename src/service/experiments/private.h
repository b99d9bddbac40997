/* private.h - the folder of experiments between its files: files.c lists, reads and replaces;
 * check.c checks. */
#ifndef SL_SERVICE_EXPERIMENTS_PRIVATE_H
#define SL_SERVICE_EXPERIMENTS_PRIVATE_H

#include <pthread.h>
#include <sys/stat.h>

#include "service/experiments/experiments.h"

enum { SL_EXPERIMENTS_KEPT = 256, SL_EXPERIMENT_FILE = 1 << 20 };

struct sl_kept_check { /* of a file as it was */
	char name[64];
	ino_t inode;
	off_t bytes;
	struct timespec modified;
	json_t *found; /* NULL: free */
};

struct sl_experiments {
	char program[1024], folder[1024], temporary[1024], data_roots[4096];
	pthread_mutex_t lock; /* of kept */
	struct sl_kept_check kept[SL_EXPERIMENTS_KEPT];
	unsigned next;		/* the one that goes when there is no room */
	pthread_mutex_t change; /* one file is replaced at a time */
};

/* An opened file with its facts; -errno. */
int sl_experiments_file(const struct sl_experiments *experiments, const char *name,
			struct stat *st);
/* The check of a file, from memory if it has not changed. */
json_t *sl_experiments_known(struct sl_experiments *experiments, const char *name,
			     const struct stat *st);

#endif
