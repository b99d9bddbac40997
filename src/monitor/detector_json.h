/* detector_json.h - what the status of a detector side has beside that of a session.
 *
 * Model:     docs/reference/status.md has the fields, under `detector_side`.
 * Threads:   any but data threads: it allocates.
 * Ownership: plain data; the lists are the caller's. */
#ifndef SL_MONITOR_DETECTOR_JSON_H
#define SL_MONITOR_DETECTOR_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "frontend/fault.h"

struct sl_detector_module {
	const char *transfer; /* "": none */
	uint32_t module;
	uint64_t sent; /* frames, in this run */
};

struct sl_detector_receiver { /* of a transfer */
	const char *transfer;
	const char *address;
	uint32_t port;
	const char *waits_for; /* what this transfer waits for; NULL: nothing */
	bool connected;
	uint32_t gone;	     /* how often it vanished in this run */
	const char *refusal; /* what it said when it last refused; "": it has not */
};

struct sl_detector_status {
	bool one_way;	  /* there is no way back: receivers are not known */
	double rate_Hz;	  /* 0: as fast as it can */
	uint64_t held_ns; /* nothing could be sent: no credits, or no room in the link */
	bool held;
	uint64_t fault[SL_FAULT_KINDS]; /* injected */
	uint32_t receivers, modules;
	const struct sl_detector_receiver *receiver;
	const struct sl_detector_module *module;
	const char *const *set; /* [sets]: of the last configure */
	uint32_t sets;
};

/* A json_t; NULL: no memory. */
void *sl_json_detector(const struct sl_detector_status *status);

#endif
