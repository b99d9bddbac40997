/* request.h - requests of the status socket: a line of JSON becomes a structure.
 *
 * Model:     one object with "call" and the members that this call has; any other member is a
 *            mistake. No input or output: tests/fuzz/request_fuzz.c feeds it with any bytes.
 * Ownership: texts in the structure belong to it, until sl_request_free().
 * Bounds:    64 KiB a line, 8 levels of brackets, 128 overrides, 64 metadata, 16 values. */
#ifndef SL_MONITOR_REQUEST_H
#define SL_MONITOR_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SL_REQUEST_BYTES = 65536,
	SL_REQUEST_DEPTH = 8,
	SL_REQUEST_SETS = 128,
	SL_REQUEST_METADATA = 64,
	SL_REQUEST_VALUES = 16,
	SL_REQUEST_NAME = 63, /* bytes of a value's name, at most */
	SL_REQUEST_WATCH_MIN_MS = 100,
	SL_REQUEST_WATCH_MAX_MS = 3600000,
	SL_REQUEST_WAIT_MAX_MS = 86400000,
};

#define SL_REQUEST_COUNT INT64_C(1000000000000000) /* of frames, at most */

enum sl_request_call {
	SL_REQUEST_STATUS,
	SL_REQUEST_CONFIGURE,
	SL_REQUEST_ARM,
	SL_REQUEST_START,
	SL_REQUEST_PAUSE,
	SL_REQUEST_RESUME,
	SL_REQUEST_STOP,
	SL_REQUEST_ABORT,
	SL_REQUEST_METADATA_CALL,
	SL_REQUEST_WAIT,
	SL_REQUEST_WATCH,
	SL_REQUEST_POINT,
	SL_REQUEST_CLOSE,
	SL_REQUEST_CALLS,
};

struct sl_request {
	enum sl_request_call call;
	const char *name;   /* of the call */
	const char *reason; /* of stop and abort; NULL: none was given */
	const char *set[SL_REQUEST_SETS];
	uint32_t sets;
	struct {
		const char *key, *value; /* value NULL: remove it */
		char number[32];	 /* a value that came as a number, as text */
	} metadata[SL_REQUEST_METADATA];
	uint32_t metadata_set;
	bool keep;		/* of metadata: for later runs, too */
	uint32_t states;	/* of wait: bits, 1 << SL_STATE_RUNNING ... */
	int32_t timeout_ms;	/* of wait; -1: none */
	uint32_t interval_ms;	/* of watch; 0: watch no longer */
	uint64_t first, frames; /* of point; of start and resume: pause behind so many, 0: never */
	struct {
		const char *name; /* A-Z a-z 0-9 _, and a letter first */
		double value;
	} value[SL_REQUEST_VALUES];
	uint32_t values;
	void *json; /* owns the texts */
};

/* -EINVAL: `why` says what is wrong; there is nothing to free then. -ENOMEM likewise. */
int sl_request_parse(const char *line, size_t bytes, struct sl_request *request, char *why,
		     size_t why_bytes);
void sl_request_free(struct sl_request *request);

#endif
