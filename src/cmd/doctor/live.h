/* live.h - sluice doctor --live: frames are sent through this host's own path, and what becomes of
 * them is measured.
 *
 * Model:     a run of the pattern detector in this process, with a front end as its child: modules,
 *            link and packets as in the experiment, or small ones without. Every pixel is compared
 *            with the truth. Nothing is left behind.
 * Threads:   one calls. */
#ifndef SL_CMD_DOCTOR_LIVE_H
#define SL_CMD_DOCTOR_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/status.h>

#include "explain/explain.h"

struct sl_experiment;

struct sl_live_options {
	const char
		*address; /* numeric, or the name of an interface; "": of the experiment, or lo */
	uint32_t frames;
};

struct sl_live {
	char address[64], link[16], error[512]; /* error: why it could not run; empty: it did */
	uint32_t modules;
	double first_frame_ms, seconds;
	uint64_t sent;	/* module-frames */
	uint64_t whole; /* of these: stored */
	uint64_t split; /* arrived in part, or without their partners */
	uint64_t lost;	/* nothing of them arrived */
	uint64_t other; /* no room, not written, refused */
	uint64_t wrong; /* frames that verify found different from the truth */
	double frames_per_s, bytes_per_s;
	double wire_p50_us, wire_p99_us, total_p99_us;
	bool explained;
	struct sl_explanation explanation; /* where something was lost */
};

/* experiment: whose detector is not open; NULL: none. */
void sl_live_run(const struct sl_live_options *options, struct sl_experiment *experiment,
		 struct sl_live *live);

/* Everything arrived whole. */
bool sl_live_is_good(const struct sl_live *live);

void sl_live_print(const struct sl_live *live);

/* As JUnit has it, for test systems. 0 or -errno, logged. */
int sl_live_write_junit(const struct sl_live *live, const char *path);

#endif
