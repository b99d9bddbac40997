/* control_recorder.h - a receiver that only records what a control driver calls, and fails the test
 * when a call breaks a promise of core/control.h. */
#ifndef TESTS_LIB_CONTROL_RECORDER_H
#define TESTS_LIB_CONTROL_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/control.h"

enum { RECORDER_MODULES = 2, RECORDER_FRAMES = 20, RECORDER_PACKETS = 5, RECORDER_SLOTS = 8 };

struct recorded_module {
	bool planned; /* accepted, and neither cancelled nor over */
	unsigned accepts, counts, cancelled_plans, cancelled_offers;
	unsigned finals, ends, cuts, losses; /* ways in which a source can be over */
	uint32_t qpn;
	struct sl_progress progress; /* the test sets it; the driver reads it */
};

struct recorder {
	bool running; /* the test says so: the driver was started */
	uint64_t limit;
	int accept_error, count_error; /* answer with these */
	unsigned calls;		       /* of everything but progress */
	struct recorded_module module[RECORDER_MODULES];
};

void recorder_init(struct recorder *recorder);
extern const struct sl_control_ops recorder_ops;

/* How often it was over, by whatever way. */
unsigned recorder_over(const struct recorder *recorder, uint32_t module);

/* What arrives of a module: everything below `reached`, whole; slots are open behind it. */
void recorder_arrive(struct recorder *recorder, uint32_t module, uint64_t reached);

#endif
