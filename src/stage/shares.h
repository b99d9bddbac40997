/* shares.h - which cells of a profile or a cake each pixel counts in, and how much.
 *
 * Model:     a cell is a ring (bin) about the beam, or a ring's piece of some degrees (sector):
 *            cell = sector * bins + bin. Without split a pixel counts whole where its middle lies.
 *            With bounding boxes it counts in every cell that the box of its distances (and angles)
 *            overlaps, by the overlap, as in pyFAI: what lies beyond an angle of 180 degrees counts
 *            in the last sector, and below a distance of 0 in the first bin; what lies beyond low
 *            and high counts nowhere. A share is a number of 1 / 2^bits (stage/radial_maths.h).
 *            Norms are rounded to a number of norm_unit, so that taking pixels away from a total
 *            is exact.
 * Ownership: tables in one region, pages there after open; read-only from then on.
 * Cost:      4 bytes per pixel without split; with it 4, and 8 per share, of which there are two
 *            where bins are about as wide as pixels. Another 4 for norms, and 4 for a dark image,
 *            which are looked at for bad pixels only. */
#ifndef SL_STAGE_SHARES_H
#define SL_STAGE_SHARES_H

#include "core/region.h"
#include "stage/rays.h"

struct sl_shares_options {
	uint32_t bins, sectors; /* sectors 0: rings are whole */
	bool boxes;
	double low, high;	  /* as sl_radial_options */
	uint32_t value_bits;	  /* of the largest value of a pixel; 0: it is a float */
	const float *dark, *flat; /* [pixels]; NULL: none. Not finite, or a flat of 0: masked */
};

/* The last share of a pixel has a bit more, so that a loop over shares knows where the next pixel
 * begins without asking. A pixel that counts nowhere has one, of 0, in the cell behind the last. */
#define SL_SHARE_LAST (1u << 31)

struct sl_share {
	uint32_t cell, share;
};

static inline uint32_t sl_share_part(struct sl_share share)
{
	return share.share & ~SL_SHARE_LAST;
}

struct sl_shares {
	uint32_t bins, sectors, cells; /* cells: all of them; sectors: 1 for whole rings */
	double low, high;
	int bits; /* a whole pixel is 1 << bits; 0 without split */
	uint64_t pixels;

	uint32_t *cell;		/* [pixels], without split; `cells`: it counts nowhere */
	uint32_t *first;	/* [pixels + 1], with it: where its shares begin */
	struct sl_share *share; /* [first[pixels]] */

	float *norm; /* [pixels]; 0: it counts nowhere */
	double norm_unit;
	float *dark; /* [pixels], or NULL */

	int64_t *total;		 /* [cells]: of norms, in norm_unit */
	double *dark_total;	 /* [cells]: of shares times dark */
	struct sl_region memory; /* of all these */
};

/* 0, or -errno, logged with `who`: a range without pixels, no memory. */
int sl_shares_open(struct sl_shares *shares, const struct sl_shares_options *options,
		   const struct sl_rays *rays, const struct sl_env *env, const char *who);
void sl_shares_close(struct sl_shares *shares);

/* What a pixel with that share of a cell has in the total. */
static inline int64_t sl_shares_norm(const struct sl_shares *s, uint64_t pixel, uint32_t share)
{
	return (int64_t)(s->norm[pixel] / s->norm_unit * share / (double)(1u << s->bits) + 0.5);
}

/* And in that of dark. */
static inline double sl_shares_dark(const struct sl_shares *s, uint64_t pixel, uint32_t share)
{
	return share / (double)(1u << s->bits) * s->dark[pixel];
}

/* Middles of bins, in the unit, and of sectors, in degrees. */
double sl_shares_bin(const struct sl_shares *shares, uint32_t bin);
double sl_shares_sector(const struct sl_shares *shares, uint32_t sector);

#endif
