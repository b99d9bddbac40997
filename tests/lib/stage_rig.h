/* stage_rig.h - a stage on a small detector, for tests: frames with canaries around their results,
 * cut into batches and tiles and given to any number of (pretended) workers. */
#ifndef STAGE_RIG_H
#define STAGE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sluice/stage.h>

enum {
	RIG_MODULES = 2,
	RIG_ROWS = 5,
	RIG_COLUMNS = 61, /* no multiple of any vector or block */
	RIG_MODULE_PIXELS = RIG_ROWS * RIG_COLUMNS,
	RIG_PIXELS = RIG_MODULES * RIG_MODULE_PIXELS,
	RIG_CANARY = 64, /* elements of 4 bytes before and after each array */
	RIG_POISON = 0x5a,
	RIG_BATCH = 32,
	RIG_ITEMS = 64, /* most events of a frame */
	RIG_WORKERS = 8,
};

/* Small and always the same. */
uint32_t rig_random(uint64_t *state);

struct rig {
	const struct sl_stage *ops;
	void *state;
	struct sl_geometry geometry;
	struct sl_calibration calibration;
	float *table[6]; /* pedestals, gains: [RIG_PIXELS], to be changed before open */
	struct sl_env env;
	struct sl_shape in, out; /* out: the first, if any */
	struct sl_stage_terms terms;
	void *scratch[RIG_WORKERS];
	bool stream; /* tiles say so */
	bool events; /* of rig_set_events() */
};

struct rig_frame {
	struct sl_frame frame;
	struct sl_verdict verdict;
	struct sl_verdict item[RIG_ITEMS]; /* instead, of a detector of events */
	struct sl_view view[RIG_MODULES];
	char *in_memory, *out_memory;
	void *in, *out;
	char *more[SL_STAGE_OUTPUTS]; /* of outputs that are no image and have no other memory */
};

void rig_init(struct rig *rig, const struct sl_stage *ops, enum sl_dtype input);

/* A detector of events instead: rows of so many bytes, one for each event of a module. All modules
 * together have no more than RIG_PIXELS * 4 bytes. */
void rig_set_events(struct rig *rig, uint32_t events, uint32_t bytes, bool shared);

void rig_set(struct rig *rig, const char *option, const char *value);

int rig_try_open(struct rig *rig);

void rig_open(struct rig *rig);

void rig_close(struct rig *rig);

void rig_frame_init(struct rig_frame *f, bool dark);

void rig_frame_fini(struct rig_frame *f);

/* Whether that output has an element per pixel: tiles write it. */
bool rig_is_image(const struct sl_shape *shape);

/* Memory for every output, and for frame() the input's address. */
void rig_init_views(struct rig *rig, struct rig_frame *f);

/* Every byte of the result's memory outside the array is as it was. */
void rig_check_canaries(const struct rig *rig, const struct rig_frame *f);

void rig_tile(struct rig *rig, struct sl_batch *batch, struct rig_frame *frames, unsigned worker,
	      uint32_t module, uint32_t first, uint32_t count);

void rig_batch(struct rig *rig, struct rig_frame *frames, uint32_t n, uint32_t tile,
	       unsigned workers);

/* All frames, in batches of at most `batch`. */
void rig_run(struct rig *rig, struct rig_frame *frames, uint32_t n, uint32_t batch, uint32_t tile,
	     unsigned workers);

#endif
