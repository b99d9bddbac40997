/* measure.c - what a blob of strong pixels stands out from, and whether it is a peak.
 *
 * The background is what is below the upper limit in a disc about the blob's middle, of twice the
 * local radius, inside the module. The middle is where the pixels' weight is, above the means of
 * their rings; the position that is given in the end is where their raw intensity is. */
#include <math.h>

#include "stage/peaks/maths.h"
#include "stage/peaks/peaks.h"
#include "stage/pixels.h"

struct background {
	float mean, sigma, brightest;
};

struct blob {
	double row, column; /* the middle of the middle pixel is a whole number */
	double sum;
	float maximum;
};

static float value_of(const struct sl_peaks_work *w, const void *image, uint32_t at)
{
	float value = 0;

	sl_pixel_read(w->dtype, image, at, &value);
	return value;
}

/* Where the blob is: weighted by what is above the rings' means, or by all. False: the weights have
 * no sum. */
static bool weigh(const struct sl_peaks_work *w, const void *image, uint32_t n, bool above,
		  struct blob *blob)
{
	double row = 0, column = 0, sum = 0;

	blob->maximum = -INFINITY;
	for (uint32_t i = 0; i < n; i++) {
		const struct sl_blob_pixel *pixel = &w->blobs.member[i];
		float value = value_of(w, image, pixel->at);
		double weight = value;

		if (above)
			weight -= w->ring[w->table->ring[pixel->at]].mean;
		row += weight * pixel->row;
		column += weight * pixel->column;
		sum += weight;
		blob->maximum = value > blob->maximum ? value : blob->maximum;
	}
	blob->row = row / sum;
	blob->column = column / sum;
	blob->sum = sum;
	return sum > 0;
}

/* Part of [0, size) that is at most `reach` from the middle. */
static void cut(int64_t middle, int64_t reach, uint32_t size, int64_t *low, int64_t *high)
{
	*low = middle - reach > 0 ? middle - reach : 0;
	*high = middle + reach < (int64_t)size - 1 ? middle + reach : (int64_t)size - 1;
}

struct sums {
	double n, sum, square;
	float brightest;
};

static void add(const struct sl_peaks_work *w, const void *image, uint32_t at, struct sums *s)
{
	uint32_t ring = w->table->ring[at];
	float value;

	if (ring == w->table->rings || !sl_pixel_read(w->dtype, image, at, &value) ||
	    !sl_peaks_is_background(value, w->ring[ring].upper))
		return;
	s->n++;
	s->sum += value;
	s->square += (double)value * value;
	s->brightest = value > s->brightest ? value : s->brightest;
}

/* Without a pixel to look at it is what the ring of the middle has, or of the first pixel where
 * there is no ring. */
static float mean_there(const struct sl_peaks_work *w, uint32_t middle)
{
	const struct sl_peaks_table *t = w->table;
	uint32_t at = t->ring[middle] < t->rings ? middle : w->blobs.member[0].at;

	return w->ring[t->ring[at]].mean;
}

static struct background look_around(const struct sl_peaks_work *w, const void *image,
				     const struct blob *blob)
{
	const struct sl_blob_pixel *m = w->blobs.member;
	uint32_t first = m->at - m->row * w->table->columns - m->column; /* of the module */
	int64_t reach = 2 * (int64_t)w->settings->radius, columns = w->table->columns;
	int64_t row = llrint(blob->row), column = llrint(blob->column), top, bottom, left, right;
	struct sums s = {.brightest = -INFINITY};

	cut(row, reach, w->table->rows, &top, &bottom);
	cut(column, reach, w->table->columns, &left, &right);
	for (int64_t y = top; y <= bottom; y++)
		for (int64_t x = left; x <= right; x++)
			if ((y - row) * (y - row) + (x - column) * (x - column) <= reach * reach)
				add(w, image, first + (uint32_t)(y * columns + x), &s);
	if (!s.n)
		return (struct background){
			mean_there(w, first + (uint32_t)(row * columns + column)),
			SL_PEAKS_LEAST_SIGMA, s.brightest};
	return (struct background){
		(float)(s.sum / s.n),
		sl_peaks_sigma((float)((s.n * s.square - s.sum * s.sum) / (s.n * s.n))),
		s.brightest};
}

bool sl_peaks_measure(const struct sl_peaks_work *w, const void *image, uint32_t n,
		      float row[SL_PEAKS_COLUMNS])
{
	const struct sl_peaks_table *t = w->table;
	struct background background;
	struct blob blob;
	float net, snr;

	if (n < w->settings->min_pixels || !weigh(w, image, n, true, &blob))
		return false;
	background = look_around(w, image, &blob);
	if (!weigh(w, image, n, false, &blob))
		return false;
	net = (float)(blob.sum - (double)n * background.mean);
	snr = sl_peaks_snr(net, background.sigma);
	if (!sl_peaks_stands_out(snr, w->settings->snr, blob.maximum, background.brightest))
		return false;
	if (!(blob.row >= 0 && blob.row <= t->rows - 1 && blob.column >= 0 &&
	      blob.column <= t->columns - 1))
		return false;
	row[0] = (float)(w->blobs.member[0].at / (t->rows * t->columns));
	row[1] = (float)(blob.row + 0.5);
	row[2] = (float)(blob.column + 0.5);
	row[3] = net;
	row[4] = snr;
	row[5] = (float)n;
	row[6] = blob.maximum;
	row[7] = background.mean;
	return true;
}
