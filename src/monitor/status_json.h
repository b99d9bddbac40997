/* status_json.h - a status as JSON, for the status socket: docs/reference/status.md has the fields.
 *
 * Model:     one object, of struct sl_status and what a session knows beside it. Fields are only
 *            added; what changes its meaning gets another schema number. Units are in the names.
 * Threads:   any but data threads: it allocates.
 * Ownership: the text is the caller's, by free(). */
#ifndef SL_MONITOR_STATUS_JSON_H
#define SL_MONITOR_STATUS_JSON_H

#include <sluice/error.h>
#include <sluice/status.h>

#include "core/metadata/metadata.h"

enum { SL_STATUS_SCHEMA = 1 };

struct sl_detector_status;

struct sl_rates {	    /* over the last second or so */
	uint64_t window_ns; /* 0: not known yet */
	double frames_per_s, bytes_per_s;
};

struct sl_status_document {
	const struct sl_status *status;
	const struct sl_error *error;		   /* NULL, or code SL_ERROR_NONE: none */
	const struct sl_metadata *metadata;	   /* NULL: none */
	const char *parameters;			   /* a JSON object; NULL: none are declared */
	const struct sl_detector_status *detector; /* NULL: it is that of a session */
	struct sl_rates rates;
	uint64_t taken_unix_ns; /* wall clock of status->taken_ns */
};

/* One line, without its end. NULL: no memory. */
char *sl_status_json(const struct sl_status_document *document);

/* Time since a thread of the run, or a frame, last made progress; UINT64_MAX: none has yet. */
uint64_t sl_status_progress_age_ns(const struct sl_status *status);

/* Of enum sl_source_state: "absent", ... */
const char *sl_status_source_name(uint32_t state);

/* ---- replies of the status socket: one line each, with its end. NULL: no memory. ---- */

char *sl_reply_ok(const char *call, enum sl_state state);
char *sl_reply_error(const struct sl_error *error);
char *sl_reply_status(const char *call, const struct sl_status_document *document);
char *sl_reply_point(uint64_t point, enum sl_state state);
char *sl_reply_metadata(const struct sl_metadata *metadata);

#endif
