/* history.h - the runs of the root: which there are, what became of them, what a crash has left.
 *
 * Model:     a run is its folder ROOT/NNNNNN (docs/reference/run-folders.md): lock and result.json
 *            say what it is. Nothing else is trusted, and nothing is lost when the service is
 *            killed. One thread looks at the root twice a second: for new runs, and for those that
 *            end. Another one recovers the files of crashed runs, one after another, with `sluice
 *            recover` as a child of low priority; what that said is kept in
 *            ROOT/.service/recovered/NNNNNN.json. The last status that was seen of a run that
 *            lives is kept in ROOT/.service/seen, at most 5 s old: if the run crashes, these are
 *            its counts. Rows of runs that are over are kept in memory.
 * Events:    "run": the row of a run that has ended, crashed or was recovered.
 * Threads:   any thread asks; reads files. Not for the thread of bytes.
 * Ownership: JSON objects are references of the caller. */
#ifndef SL_SERVICE_HISTORY_H
#define SL_SERVICE_HISTORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_events;
struct sl_history;

struct sl_history_options {
	const char *program;	/* sluice itself */
	const char *root, *own; /* ROOT and ROOT/.service */
	bool recover;
	struct sl_events *events;
	/* The latest status of a run that lives; NULL: there is none. From the history's own
	 * thread. */
	json_t *(*status_of)(void *arg, uint64_t run);
	void *arg;
};

int sl_history_open(const struct sl_history_options *options, struct sl_history **history);
void sl_history_close(struct sl_history *history); /* NULL is fine */

/* {"runs": [...], "more": bool}: at most `limit` rows, the newest first, all with lower numbers
 * than `before` (0: no bound). NULL: the root cannot be read. */
json_t *sl_history_list(struct sl_history *history, uint64_t before, unsigned limit);
/* Its row; NULL: there is no such run. */
json_t *sl_history_row(struct sl_history *history, uint64_t run);
/* Its result.json, or the row where there is none yet. NULL: there is no such run. */
json_t *sl_history_result(struct sl_history *history, uint64_t run);
/* A file of its folder, opened; or -errno. Never through a symbolic link; only ordinary files. */
int sl_history_file(struct sl_history *history, uint64_t run, const char *name, uint64_t *bytes);
/* The first file of its folder whose name has this ending, "" : there is none. */
void sl_history_find(struct sl_history *history, uint64_t run, const char *ending, char *name,
		     size_t bytes);

#endif
