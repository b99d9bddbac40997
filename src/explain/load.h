/* load.h - runs that are to be explained, from where they left their files, or from a session.
 *
 * Model:     a path is a run folder, a result or summary in a file, or flight.json alone. The
 *            flight record lies beside the result, or where the result says.
 * Ownership: the list is the caller's, to be freed with free().
 * Errors:    -errno, with the reason. */
#ifndef SL_EXPLAIN_LOAD_H
#define SL_EXPLAIN_LOAD_H

#include "explain/explain.h"

/* One explanation, or one for each transfer of the run. */
int sl_explain_path(const char *path, struct sl_explanation **list, size_t *n, char *why,
		    size_t why_bytes);

/* The reply of a session to {"call": "status"}. */
int sl_explain_reply(const char *name, const char *reply, struct sl_explanation **list, size_t *n,
		     char *why, size_t why_bytes);

#endif
