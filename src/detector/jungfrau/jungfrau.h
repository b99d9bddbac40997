/* jungfrau.h - between the files of the detector: tables, how a pixel answers, the detector. */
#ifndef SL_DETECTOR_JUNGFRAU_JUNGFRAU_H
#define SL_DETECTOR_JUNGFRAU_JUNGFRAU_H

#include <stdbool.h>

#include "detector/frame_cache.h"
#include "detector/scene/scene.h"

enum { SL_JF_ROWS = 512, SL_JF_COLUMNS = 1024 };
enum { SL_JF_ROWS_STEP = 8 }; /* that can be read out: 4 to a packet, in both halves */
enum { SL_JF_GAINS = 3 };

/* What is wrong with a pixel. */
enum sl_jf_fault {
	SL_JF_STUCK_HIGH, /* reads 0xffff */
	SL_JF_STUCK_LOW,  /* reads 0x4000 */
	SL_JF_DEAD,	  /* answers, but not to light: its gains are 0 */
	SL_JF_HOT,	  /* leaks: reads far above its pedestal, another value each time */
	SL_JF_FAULTS,
};

struct sl_jf_bad {
	uint32_t pixel;
	enum sl_jf_fault fault;
};

struct sl_jungfrau {
	struct sl_scene_options options; /* first: see scene.h */
	double noise_ADU;
	uint32_t bad_pixels, storage_cells, read_rows;

	uint32_t modules, pixels; /* pixels: of a module, that are read out */
	uint64_t seed, period_ns;
	struct sl_scene scene;
	struct sl_frame_cache cache;
	float *normal;			   /* [SL_NORMAL_ENTRIES] */
	float *pedestal[SL_JF_GAINS];	   /* [storage_cells][modules][pixels] */
	float *gain[SL_JF_GAINS];	   /* [modules][pixels] */
	struct sl_jf_bad *bad;		   /* [modules][bad_pixels] */
	uint8_t *mask;			   /* [modules][pixels]: the same */
	float *spot_mean;		   /* [pixels], 0 between uses */
	uint32_t *spot_pixel, spot_pixels; /* those that are not 0 */
};

/* 0 or -ENOMEM; close works after either. */
int sl_jf_tables_open(struct sl_jungfrau *j);
void sl_jf_tables_close(struct sl_jungfrau *j);

/* One block; a sl_frame_cache_make. */
void sl_jf_make(void *arg, uint32_t entry, uint32_t module, bool dark, void *block);

/* The code of a gain in the upper bits of a raw pixel. */
extern const uint16_t sl_jf_codes[SL_JF_GAINS];

#endif
