/* work.h - one frame on its way through the radial method of the stage `sparse`.
 *
 * Model:     sums of all pixels by bins; then rounds, each of which looks at the pixels that may be
 *            outside of some bounds: as a list, or all through the image where the list would be
 *            too long. A pixel that is looked at comes as a candidate, with all that is known of
 *            it, so that tables of the whole detector are touched once for it.
 * Threads:   one frame, one worker.
 * Ownership: the arrays lie in the worker's scratch. */
#ifndef SL_STAGE_SPARSE_WORK_H
#define SL_STAGE_SPARSE_WORK_H

#include "stage/sparse/sparse.h"

enum { SL_SPARSE_WAYS = 4, SL_SPARSE_GROUP = 8 };

union sl_sparse_sum {
	int64_t whole;
	double real;
};

struct sl_sparse_bin {
	union sl_sparse_sum signal, variance;
	double norm;
	uint32_t valid;	  /* pixels in these sums */
	uint32_t n;	  /* of Chauvenet's criterion */
	uint32_t clipped; /* in this round */
	float average, sigma;
	bool active;
};

/* A round's bounds of a bin: out is |x - average| > cut. */
struct sl_sparse_bound {
	float average, cut;
};

struct sl_sparse_candidate {
	uint32_t at;	/* its number in the image */
	uint32_t bin;	/* below bins */
	uint32_t value; /* begins with its bytes */
	float x;	/* what it would be with a norm of 1 */
};

struct sl_sparse_work;

typedef void sl_sparse_visitor(struct sl_sparse_work *w, const struct sl_sparse_candidate *pixel);

struct sl_sparse_work {
	const struct sl_sparse *s;
	const struct sl_frame *frame;
	struct sl_sparse_list *list;
	float *average, *sigma;		/* [bins]: as known so far; the results in the end */
	struct sl_sparse_bin *bin;	/* [bins + 1]: the last for pixels without one */
	struct sl_sparse_bound *rounds; /* [cycle][bins] */
	union sl_sparse_sum *ways;	/* [WAYS][bins + 1], or pairs of these */
	uint32_t round, packed;

	float *low, *high;	       /* [bins]: what is to be looked at is below or above */
	float *list_low, *list_high;   /* [bins]: likewise, of what is listed */
	float *group_low, *group_high; /* one of these, by groups of bins */
	struct sl_sparse_candidate *candidate;
	uint32_t candidates;
	enum { SL_SPARSE_NOT_LISTED, SL_SPARSE_LISTED, SL_SPARSE_TOO_MANY } listed;
	sl_sparse_visitor *visitor;
};

double sl_sparse_value(enum sl_dtype dtype, const void *pixels, uint64_t i);

/* ---- sums.c ---- */

/* The sums of all bins. */
void sl_sparse_add_up(struct sl_sparse_work *w);

/* Pixels first to first + count of the image lie in one piece at `pixels`. */
typedef void sl_sparse_on_span(struct sl_sparse_work *w, const void *pixels, uint64_t first,
			       uint32_t count);
void sl_sparse_spans(struct sl_sparse_work *w, sl_sparse_on_span *work);

/* ---- scan.c ---- */

uint32_t sl_sparse_groups(const struct sl_sparse *s);
uint32_t sl_sparse_candidates(const struct sl_sparse *s); /* room for so many */

/* What a pixel of a bin is above when it is picked; or above that share of the way. */
float sl_sparse_picked_above(const struct sl_sparse_work *w, uint32_t bin, float share);

/* Every pixel of a bin that is below low[] or above high[], and some more; by rising number. */
void sl_sparse_visit_outside(struct sl_sparse_work *w, sl_sparse_visitor *visitor);

#endif
