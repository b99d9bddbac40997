/* gpu_cases.h - cases that GPU sides are tested with, and what tests of them share. */
#ifndef TESTS_LIB_GPU_CASES_H
#define TESTS_LIB_GPU_CASES_H

#include "core/device.h"
#include "core/registry.h"
#include "lib/gpu_device.h"
#include "lib/gpu_rig.h"
#include "stage/correct/correct.h"
#include "stage/correlate/correlate.h"
#include "stage/reduce/reduce.h"
#include "unit/gpu/gpu.h"

extern const struct sl_unit sl_unit_cpu, sl_unit_cuda, sl_unit_opencl;

/* As it is, but for what all cases share. */
extern struct sl_unit unit_opencl;

#define TRACKER(options) "{kind: tracker, frames: 1000, " options "}"
#define RICH(options)	 "{kind: rich, frames: 1000, " options "}"
#define SMALL(m, r, c)	 .modules = m, .rows = r, .columns = c

extern const struct gpu_case gpu_cases[];
extern const size_t gpu_case_count;

const struct gpu_case *case_of(const char *name);

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

struct sl_batch *one_batch(struct gpu_side *side, const struct gpu_case *c, char **memory,
			   uint64_t first);

void free_batch(struct gpu_side *side, struct sl_batch *batch, char *memory);

/* Closes both units: what stages have learned is in their states, and the same. Samples that
 * `correct` has learned from; 0: there is no such stage. */
uint64_t gpu_compare_learned(const struct gpu_case *c, struct gpu_side *side,
			     const struct sl_unit *const *unit);

void gpu_overlap(const struct gpu_case *c, const struct sl_unit *unit, const char *const *set,
		 size_t sets);

/* The unit has three batches, does so many steps, and is closed. */
void gpu_close_after(const struct sl_unit *unit, const char *const *set, size_t sets, int steps);

/* To begin with, and in the end. */
int gpu_begin(void **arg);

int gpu_end(void **arg);

/* What a program of such tests does before them. 0: go on. */
int gpu_main(void);

#endif
