/* integrate.h - between the files of the stage: what it knows, and where its sums are.
 *
 * Model:     frames of a batch are worked on in groups of SL_INTEGRATE_MEMBERS side by side, those
 *            that are left over one by one (a group of one member). A pixel of all frames of a
 *            group is one vector, and so is a sum. In the scratch of a group, one after another:
 *
 *              sums     [cells + 1][signal, variance][members]    int64 or double
 *              missing  [cells][members]                          int64: norms of bad pixels
 *              darks    [cells][members]                          double: their dark, if any
 *
 *            The last cell of sums takes what counts nowhere. */
#ifndef SL_STAGE_INTEGRATE_INTEGRATE_H
#define SL_STAGE_INTEGRATE_INTEGRATE_H

#include <sluice/stage.h>

#include "stage/shares.h"

enum { SL_INTEGRATE_MEMBERS = 8 };
enum { SL_INTEGRATE_PATH = 384 };
enum { SL_VARIANCE_COUNTS, SL_VARIANCE_AT_LEAST_ONE };

union sl_sum {
	int64_t whole;
	double real;
};

struct sl_integrate;
extern const struct sl_gpu sl_gpu_integrate;

/* Pixels of `members` frames (SL_INTEGRATE_MEMBERS or 1) become part of a group's sums. */
struct sl_integrate_span {
	uint64_t at; /* its first pixel, of all modules */
	uint32_t count, members;
	const void *in[SL_INTEGRATE_MEMBERS];
	bool is_missing
		[SL_INTEGRATE_MEMBERS]; /* all pixels of this frame are bad, whatever they say */
	void *group;
};
typedef void sl_integrate_add(const struct sl_integrate *s, const struct sl_integrate_span *span);

struct sl_integrate {
	uint32_t bins, azimuth_bins, unit, split, variance, vectors;
	double low, high, polarisation;
	bool solid_angle;
	char dark[SL_INTEGRATE_PATH], flat[SL_INTEGRATE_PATH];

	struct sl_shares shares;
	enum sl_dtype dtype;
	bool real;     /* sums are doubles */
	double least;  /* variance of a pixel, at least; in its own unit */
	double photon; /* of which this is one photon */
	uint64_t module_pixels;
	int result;
	float *axis; /* [bins], [azimuth_bins]: middles */
	sl_integrate_add *add;
};

/* The one for this type of pixels, split and CPU. */
sl_integrate_add *sl_integrate_choose(const struct sl_integrate *s);

/* ---- where things are in a group ---- */

static inline size_t sl_integrate_frame_bytes(const struct sl_integrate *s)
{
	uint64_t cells = s->shares.cells;

	return (2 * (cells + 1) + cells) * sizeof(int64_t) +
	       (s->shares.dark ? cells * sizeof(double) : 0);
}

static inline union sl_sum *sl_integrate_sums(void *group, uint32_t cell, uint32_t members)
{
	return (union sl_sum *)group + (size_t)cell * 2 * members;
}

static inline int64_t *sl_integrate_missing(const struct sl_integrate *s, void *group,
					    uint32_t cell, uint32_t members)
{
	return (int64_t *)group + ((size_t)(s->shares.cells + 1) * 2 + cell) * members;
}

static inline double *sl_integrate_darks(const struct sl_integrate *s, void *group, uint32_t cell,
					 uint32_t members)
{
	return (double *)group + ((size_t)s->shares.cells * 3 + 2 + cell) * members;
}

/* A bad pixel, which was added as if it were 0: its norm and dark are missing. */
void sl_integrate_miss(const struct sl_integrate *s, void *group, uint64_t pixel, uint32_t member,
		       uint32_t members);

/* Sums of all workers become intensity and sigma, [cells] each, of every member. Group number
 * `group` begins at `offset` in every scratch. */
void sl_integrate_conclude(const struct sl_integrate *s, void *const *scratch, unsigned workers,
			   size_t offset, uint32_t members, float *const *intensity,
			   float *const *sigma);

#endif
