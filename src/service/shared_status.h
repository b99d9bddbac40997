/* shared_status.h - the status of a session, asked for by many telegrams at a time.
 *
 * Model:     a session takes few connections. Callers that ask for the status of the same session
 *            share one request, which began after each of them asked: none gets a status from
 *            before its own call. Requests to one session begin at least 20 ms apart.
 * Threads:   any; a call blocks as long as the request does.
 * Ownership: *status is a reference of the caller; it must not be changed.
 * Errors:    those of the request, the same for all that share it. */
#ifndef SL_SERVICE_SHARED_STATUS_H
#define SL_SERVICE_SHARED_STATUS_H

#include <jansson.h>

#include <sluice/client.h>

struct sl_shared_status;

enum { SL_SHARED_STATUS_CALLERS = 64 }; /* at a time */

struct sl_shared_status *sl_shared_status_open(void); /* NULL: no memory */
void sl_shared_status_close(struct sl_shared_status *shared);

/* ask: sends the request to the session of that name. */
int sl_shared_status_ask(struct sl_shared_status *shared, const char *name,
			 int (*ask)(void *arg, const char *name, json_t **status,
				    struct sl_remote_error *error),
			 json_t **status, struct sl_remote_error *error);

#endif
