/* experiments.h - the folder of experiment files: listed, checked, read and replaced.
 *
 * Model:     the experiment NAME is the file NAME.yaml of the folder. Files are checked by `sluice
 *            check --json` in a process with limits: neither a file nor its plug-ins are read in
 *            this one. What a check has found is kept until the file changes. Texts that come over
 *            HTTP, and overrides, are distrusted: their paths must lie under the data roots, their
 *            plug-ins and scripts where the service cannot write (experiment/experiment.h,
 *            sl_experiment_distrust).
 * Threads:   any; each call reads files and may wait for a check, half a minute at most.
 * Ownership: JSON objects are references of the caller. */
#ifndef SL_SERVICE_EXPERIMENTS_H
#define SL_SERVICE_EXPERIMENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct sl_experiments;

struct sl_experiments_options {
	const char *program;	/* sluice itself */
	const char *folder;	/* of the files */
	const char *temporary;	/* a folder of the service's own; it is there */
	const char *data_roots; /* with commas between them */
};

enum sl_distrust { SL_DISTRUST_NOTHING, SL_DISTRUST_SET, SL_DISTRUST_FILE };

int sl_experiments_open(const struct sl_experiments_options *options,
			struct sl_experiments **experiments);
void sl_experiments_close(struct sl_experiments *experiments); /* NULL is fine */

/* {"experiments": [{name, title, modified_unix_ns, bytes, valid, error, parameters}]}, by name;
 * also files whose names cannot be addressed, as not valid. NULL: the folder cannot be read. */
json_t *sl_experiments_list(struct sl_experiments *experiments);
/* {name, text, sha256, modified_unix_ns, valid, errors, parameters}; NULL: there is none of that
 * name. */
json_t *sl_experiments_get(struct sl_experiments *experiments, const char *name);
/* The path of its file; false: there is none. */
bool sl_experiments_path(struct sl_experiments *experiments, const char *name, char *path,
			 size_t bytes);

/* What `sluice check --json` says, always fresh. text NULL: of the file. NULL: it could not be
 * made; errors have "where" with the name of the file alone. */
json_t *sl_experiments_check(struct sl_experiments *experiments, const char *name, const char *text,
			     size_t bytes, const char *const *set, size_t sets,
			     enum sl_distrust distrust);

enum sl_put { SL_PUT_REPLACED, SL_PUT_MADE, SL_PUT_INVALID, SL_PUT_CONFLICT, SL_PUT_FAILED };
/* Replace or make a file, once its text is valid. match: of the header If-Match (NULL: none),
 * fresh: it must not be there. sha256: of the text that is there then, 65 bytes. found: the check;
 * NULL: none was made. */
enum sl_put sl_experiments_put(struct sl_experiments *experiments, const char *name,
			       const char *text, size_t bytes, const char *match, bool fresh,
			       char *sha256, json_t **found, char *why, size_t why_bytes);

/* ---- parameters: functions of JSON ---- */

enum { SL_VALUES = 64, SL_VALUE_BYTES = 640 };

struct sl_values {
	size_t n;
	char set[SL_VALUES][SL_VALUE_BYTES]; /* "path=value" */
};

/* Values by name, as an experiment's `parameters` declare them, become overrides. 0, or -EINVAL:
 * errors (an array) has one for each mistake. */
int sl_values_of(const json_t *parameters, const json_t *values, struct sl_values *to,
		 json_t *errors);

#endif
