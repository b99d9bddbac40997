/* twin_cases.h - cases that twins are tested with, and what tests of them share. */
#ifndef TESTS_LIB_TWIN_CASES_H
#define TESTS_LIB_TWIN_CASES_H

#include "core/device.h"
#include "core/registry.h"
#include "lib/twin_device.h"
#include "lib/twin_rig.h"
#include "stage/correct/correct.h"
#include "stage/reduce/reduce.h"
#include "unit/gpu/gpu.h"

extern const struct sl_unit sl_unit_cpu, sl_unit_cuda, sl_unit_opencl;

/* As it is, but for what all cases share. */
extern struct sl_unit unit_opencl;

#define TRACKER(options) "{kind: tracker, frames: 1000, " options "}"
#define RICH(options)	 "{kind: rich, frames: 1000, " options "}"
#define SMALL(m, r, c)	 .modules = m, .rows = r, .columns = c

extern const struct twin_case gpu_cases[];
extern const size_t gpu_case_count;

const struct twin_case *case_of(const char *name);

struct counted {
	uint64_t checked, unlike, unlike_image, not_launched, looped, published, good, unanswered;
};

extern const char *const gpu_triggers[];
extern const size_t gpu_trigger_count;

void count_figures(void *arg, const char *name, uint64_t value, int failed);

#define NEEDS_OPENCL()                                                       \
	if (sl_unit_opencl.unavailable()) {                                  \
		print_message("# skip: %s\n", sl_unit_opencl.unavailable()); \
		skip();                                                      \
	}

/* Others have no queues that wait, and no kernels that poll. */
bool opencl_is_this_cpu(void);

struct sl_batch *one_batch(struct twin_side *side, const struct twin_case *c, char **memory,
			   uint64_t first);

void free_batch(struct twin_side *side, struct sl_batch *batch, char *memory);

/* Closes both units: what stages have learned is in their states, and the same. Samples that
 * `correct` has learned from; 0: there is no such stage. */
uint64_t twin_compare_learned(const struct twin_case *c, struct twin_side *side,
			      const struct sl_unit *const *unit);

void twin_overlap(const struct twin_case *c, const struct sl_unit *unit, const char *const *set,
		  size_t sets);

/* The unit has three batches, does so many steps, and is closed. */
void twin_close_after(const struct sl_unit *unit, const char *const *set, size_t sets, int steps);

/* To begin with, and in the end. */
int twin_begin(void **arg);

int twin_end(void **arg);

/* What a program of such tests does before them. 0: go on. */
int twin_main(void);

#endif
