/* peaks.h - what the files of the stage `peaks` share.
 *
 * Model:     a table, made once, says which ring each pixel belongs to. A worker has a workspace:
 *            sums per ring, thresholds per ring, a list of unusual pixels, blobs. Statistics of
 *            rings are made in rings.c out of sums over all pixels (sums.c) and of the
 *            list (scan.c): iterations after the first need only pixels that are, or may
 *            come to be, outside of the limits. measure.c makes peaks of blobs.
 * Threads:   the table is read-only; a workspace is one worker's. */
#ifndef SL_STAGE_PEAKS_PEAKS_H
#define SL_STAGE_PEAKS_PEAKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <sluice/env.h>

#include "core/region.h"
#include "stage/blobs.h"

/* Pixels that are looked at together; chunks that stay in a cache until they are looked at again;
 * one block in so many is a sample. */
enum { SL_PEAKS_CHUNK = 64, SL_PEAKS_BLOCK = 32, SL_PEAKS_SAMPLE = 8 };

/* Sums of a ring are kept several times over, in turn for neighbours on a line, which are often in
 * the same ring and would wait for each other. */
enum { SL_PEAKS_WAYS = 4 };

enum { SL_PEAKS_COLUMNS = 8 }; /* of the result */

struct sl_peaks_span { /* rings of a chunk */
	uint16_t low, high;
};

struct sl_peaks_extremes { /* pixels of a chunk */
	float least, most;
};

struct sl_peaks_table {
	uint32_t modules, rows, columns; /* of a module */
	uint64_t pixels;		 /* of all modules */
	uint32_t rings;
	/* Whole chunks; `rings`: not to be looked at. */
	uint16_t *ring;
	struct sl_peaks_span *span; /* [chunks]; low > high: there is nothing to look at */
	uint32_t *total;	    /* [rings]: pixels */
	uint32_t *sample;	    /* [rings]: of these, in the sample */
	uint32_t largest;	    /* of the totals */
	struct sl_region memory;
};

static inline uint64_t sl_peaks_chunks(const struct sl_peaks_table *table)
{
	return (table->pixels + SL_PEAKS_CHUNK - 1) / SL_PEAKS_CHUNK;
}

static inline bool sl_peaks_in_sample(uint64_t chunk)
{
	return chunk / SL_PEAKS_BLOCK % SL_PEAKS_SAMPLE == SL_PEAKS_SAMPLE / 2;
}

/* Rings about the beam, between these distances in pixels (r_max 0: to the farthest), of pixels
 * that are not masked, nor wide unless these are wanted. 0 or -errno, logged. */
int sl_peaks_table_open(struct sl_peaks_table *table, const struct sl_env *env, bool wide,
			double r_min, double r_max);
void sl_peaks_table_close(struct sl_peaks_table *table);

struct sl_peaks_settings {
	float snr, threshold;
	uint32_t min_pixels, max_pixels, radius; /* of the local background */
};

struct sl_peaks_entry { /* an unusual pixel */
	uint32_t at, ring;
	float value;
};

struct sl_peaks_ring {
	double count, sum, square;	 /* of usual pixels, now */
	double all, all_sum, all_square; /* of valid pixels that are not huge */
	float mean, sigma, lower, upper;
	float high, low; /* the list has all pixels from here on, up and down */
	bool settled;	 /* nothing will change any more */
};

union sl_peaks_sum {
	uint64_t packed; /* sum << 36 + sum of squares */
	double real;
};

struct sl_peaks_work {
	const struct sl_peaks_table *table;
	const struct sl_peaks_settings *settings;
	enum sl_dtype dtype;
	bool whole; /* pixels are counts */

	struct sl_peaks_extremes *extremes; /* [chunks] */
	struct sl_peaks_ring *ring;	    /* [rings] */
	union sl_peaks_sum *sum;	    /* [rings + 1][WAYS], twice as many for floats */
	double *wide_sum, *wide_square;	    /* [rings + 1]: of pixels that do not fit the above */
	uint32_t *missing;		    /* [rings + 1]: pixels that are in no sum */
	float *window_high, *window_low;    /* [rings]: of a ring and the CHUNK - 1 after it */
	struct sl_peaks_entry *list;	    /* [capacity] */
	uint32_t listed, capacity;
	struct sl_peaks_entry *huge; /* [SL_PEAKS_HUGE] */
	uint32_t huges;
	bool overflow; /* the list was too short */
	bool crowded;  /* there were too many huge ones */
	struct sl_blobs blobs;
};

/* Pixels that sums as doubles would lose others beside; these are kept apart. Counts of 16 bits
 * never are. */
enum { SL_PEAKS_HUGE = 1024 };
#define SL_PEAKS_HUGE_U32 262144u
#define SL_PEAKS_HUGE_F32 131072.f

static inline bool sl_peaks_is_huge(enum sl_dtype dtype, float value)
{
	return dtype == SL_F32 ? value >= SL_PEAKS_HUGE_F32 || value <= -SL_PEAKS_HUGE_F32
			       : dtype == SL_U32 && value >= SL_PEAKS_HUGE_U32;
}

/* The last pixels of an image as a whole chunk. */
static inline const void *sl_peaks_last(void *chunk, size_t bytes, const void *pixel, size_t there)
{
	memset(chunk, 0, bytes);
	return memcpy(chunk, pixel, there);
}

size_t sl_peaks_work_bytes(const struct sl_peaks_table *table,
			   const struct sl_peaks_settings *settings);
void sl_peaks_work_init(struct sl_peaks_work *work, const struct sl_peaks_table *table,
			const struct sl_peaks_settings *settings, enum sl_dtype dtype,
			void *memory);

/* sums.c: all valid pixels of chunks into sum, wide_* and missing; extremes. */
typedef void sl_peaks_pass(struct sl_peaks_work *work, const void *image, uint64_t chunk,
			   uint64_t end);
sl_peaks_pass *sl_peaks_sums(enum sl_dtype dtype, uint32_t vectors);

/* scan.c: all pixels of chunks that are beyond high and low of their rings into list. Windows
 * must have been made since these were set. */
void sl_peaks_windows(struct sl_peaks_work *work);
sl_peaks_pass *sl_peaks_scan(enum sl_dtype dtype, uint32_t vectors);

/* rings.c: mean, sigma and limits of every ring; strong pixels are marked in blobs. */
void sl_peaks_rings(struct sl_peaks_work *work, sl_peaks_pass *sums, sl_peaks_pass *scan,
		    const void *image);

/* measure.c: is the blob of n members a peak? If so, its row of the result. */
bool sl_peaks_measure(const struct sl_peaks_work *work, const void *image, uint32_t n,
		      float row[SL_PEAKS_COLUMNS]);

/* ---- the stage ---- */

enum { SL_PEAKS_OF_KEPT, SL_PEAKS_OF_ALL }; /* frames to look at: the choices of `look` */

struct sl_peaks {
	double snr, threshold, r_min, r_max;
	uint32_t min_pixels, max_pixels, local_bg_radius, min_peaks, max_peaks, look, vectors;
	bool wide;

	struct sl_peaks_table table;
	struct sl_peaks_settings settings;
	enum sl_dtype dtype;
	sl_peaks_pass *sums, *scan;
	int input, result;
	size_t scratch_bytes, work_bytes;
};

extern const struct sl_gpu sl_gpu_peaks;

#endif
