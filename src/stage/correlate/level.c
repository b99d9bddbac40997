/* level.c - a group of fresh samples makes pairs with those before it, level by level.
 *
 * Products are made of all pixels, as if samples that are missing were 0. Sums of samples over the
 * pairs of a lag are sums over frames, of the clean pixels of a span; what dirty pixels have is
 * counted one by one.
 *
 * Cost:      a product of each pixel, frame and channel; all levels but the first together as much
 *            as half of the first. */
#include <string.h>

#include "stage/correlate/work.h"

enum { CHUNK = SL_CORRELATE_CHUNK };

/* One level's part of the work. */
struct level {
	uint32_t number;
	uint64_t first;		     /* sample */
	uint32_t fresh, past, rows;  /* rows: those of the past, and the fresh ones */
	uint32_t skip_from, skip_to; /* rows that no lag reaches */
	int64_t most;		     /* of all samples, either way */
	bool any;		     /* of the fresh ones is a sample of any pixel */
	bool gaps;		     /* a row that a lag reaches is missing */
};

static int32_t *slot(const struct sl_correlate *s, const struct sl_correlate_work *w,
		     uint32_t level, uint64_t sample)
{
	uint64_t row = (uint64_t)level * s->channels + sample % s->channels;

	return s->history + row * s->pixels + w->first_pixel;
}

/* ---- samples ---- */

static void note_mixed(struct sl_correlate_work *w, uint32_t row, const int32_t *from)
{
	memset(w->is_missing[row], 0, sizeof(w->is_missing[row]));
	for (uint32_t i = 0; i < w->pixels; i++) {
		w->is_missing[row][i] = from[i] == SL_CORRELATE_MISSING;
		w->is_dirty[i] |= w->is_missing[row][i];
	}
}

static void take_row(const struct sl_correlate *s, struct sl_correlate_work *w, struct level *l,
		     uint32_t row, const int32_t *from)
{
	struct sl_correlate_taken taken;

	s->take(from, w->pixels, w->row[row], &taken);
	memset(w->row[row] + w->pixels, 0, (CHUNK - w->pixels) * sizeof(int32_t));
	w->kind[row] = taken.missing == w->used ? SL_ROW_MISSING
		       : taken.missing		? SL_ROW_MIXED
						: SL_ROW_WHOLE;
	if (w->kind[row] == SL_ROW_MIXED)
		note_mixed(w, row, from);
	l->gaps |= w->kind[row] == SL_ROW_MISSING;
	l->most = -(int64_t)taken.low > l->most ? -(int64_t)taken.low : l->most;
	l->most = taken.high > l->most ? taken.high : l->most;
}

static void count_clean(struct sl_correlate_work *w)
{
	w->dirty = 0;
	for (uint32_t i = 0; i < CHUNK; i++)
		w->dirty += w->is_dirty[i];
	for (uint32_t n = 0; n < w->spans; n++) {
		struct sl_correlate_span *span = &w->span[n];

		span->clean = span->count;
		for (uint32_t i = 0; w->dirty && i < span->count; i++)
			span->clean -= w->is_dirty[span->first + i];
	}
}

static void take_rows(const struct sl_correlate *s, struct sl_correlate_work *w, struct level *l)
{
	uint32_t near = sl_correlate_first_channel(s, l->number);

	l->rows = l->past + l->fresh;
	l->skip_from = near < l->fresh ? l->past : l->rows - near;
	l->skip_to = l->past;
	l->most = 0;
	l->any = l->gaps = false;
	memset(w->is_dirty, 0, sizeof(w->is_dirty));
	for (uint32_t k = 0; k < l->fresh; k++) {
		take_row(s, w, l, l->past + k, w->fresh[k]);
		l->any |= w->kind[l->past + k] != SL_ROW_MISSING;
	}
	/* One slot is left over: that of the sample `channels` before the first. */
	for (uint32_t k = 0; k < l->skip_from && l->any; k++)
		take_row(s, w, l, k, slot(s, w, l->number, l->first + 1 + k));
	count_clean(w);
}

static void store(const struct sl_correlate *s, struct sl_correlate_work *w, const struct level *l)
{
	uint32_t k = l->fresh > s->channels ? l->fresh - s->channels : 0;

	memcpy(w->before, slot(s, w, l->number, l->first + s->channels - 1),
	       w->pixels * sizeof(int32_t));
	for (; k < l->fresh; k++)
		memcpy(slot(s, w, l->number, l->first + k), w->fresh[k],
		       w->pixels * sizeof(int32_t));
}

/* Two samples become one of the next level, in place. */
static uint32_t merge(struct sl_correlate_work *w, const struct level *l)
{
	uint32_t odd = (uint32_t)(l->first & 1), n = (l->fresh + odd) / 2;

	for (uint32_t k = 0; k < n; k++) {
		const int32_t *a = k || !odd ? w->fresh[2 * k - odd] : w->before;
		const int32_t *b = w->fresh[2 * k + 1 - odd];
		int32_t *to = w->fresh[k];

		for (uint32_t i = 0; i < w->pixels; i++)
			to[i] = a[i] == SL_CORRELATE_MISSING || b[i] == SL_CORRELATE_MISSING
					? SL_CORRELATE_MISSING
					: (int32_t)((uint32_t)a[i] + (uint32_t)b[i]);
	}
	return n;
}

/* ---- sums ---- */

static struct sl_correlate_sum *sum_of(const struct sl_correlate *s, struct sl_correlate_work *w,
				       const struct sl_correlate_span *span, const struct level *l,
				       uint32_t channel)
{
	return &w->sums[(uint64_t)span->region * s->lags + sl_correlate_first_lag(s, l->number) +
			channel - sl_correlate_first_channel(s, l->number)];
}

static void add_products(struct sl_correlate_sum *sum, __int128 products)
{
	struct sl_correlate_sum one = {.low = (uint64_t)products,
				       .high = (int64_t)(products >> 64)};

	sl_correlate_add(sum, &one);
}

/* Spans are short where rings are thin: no loop for vectors pays there. */
static int64_t sum_of_span(const int32_t *sample, uint32_t count)
{
	int64_t sum = 0;

	if (count >= 32) {
		for (uint32_t i = 0; i < count; i++)
			sum += sample[i];
		return sum;
	}
	for (uint32_t i = 0; i < count; i++) {
		sum += sample[i];
		__asm__("" : "+r"(sum));
	}
	return sum;
}

/* Of four channels, which have been added up pixel by pixel. */
static void take_products(const struct sl_correlate *s, struct sl_correlate_work *w,
			  const struct level *l, uint32_t channel, bool narrow)
{
	for (uint32_t k = 0; k < 4; k++)
		for (uint32_t n = 0; n < w->spans; n++) {
			const struct sl_correlate_span *span = &w->span[n];
			const int32_t *few = (const int32_t *)(void *)w->products + k * CHUNK;
			const int64_t *many = w->products[k];
			__int128 sum = 0;

			if (narrow)
				sum = sum_of_span(few + span->first, span->count);
			for (uint32_t i = 0; !narrow && i < span->count; i++)
				sum += many[span->first + i];
			add_products(sum_of(s, w, span, l, channel + k), sum);
		}
}

static void multiply(const struct sl_correlate *s, struct sl_correlate_work *w,
		     const struct level *l)
{
	/* A group is filled up to a multiple of four with rows of zeros. */
	bool narrow = l->most * l->most * SL_CORRELATE_GROUP < INT32_MAX;

	for (uint32_t c = sl_correlate_first_channel(s, l->number); c < s->channels; c += 4) {
		memset(w->products, 0, sizeof(w->products));
		for (uint32_t t = 0; t < l->fresh; t += 4) {
			const int32_t *later[4], *earlier[7];

			for (uint32_t k = 0; k < 4; k++)
				later[k] = w->row[l->past + t + k];
			for (uint32_t k = 0; k < 7; k++)
				earlier[k] = w->row[l->past + t + k - c - 3];
			(narrow ? s->narrow : s->wide)(later, earlier, w->products);
		}
		take_products(s, w, l, c, narrow);
	}
}

static void sum_rows(struct sl_correlate_work *w, const struct level *l)
{
	memset(w->sum[0], 0, w->spans * sizeof(w->sum[0][0]));
	for (uint32_t k = 0; k < l->rows; k++) {
		if (w->kind[k] == SL_ROW_MISSING || (k >= l->skip_from && k < l->skip_to)) {
			memcpy(w->sum[k + 1], w->sum[k], w->spans * sizeof(w->sum[0][0]));
			continue;
		}
		for (uint32_t n = 0; n < w->spans; n++) {
			const struct sl_correlate_span *span = &w->span[n];
			const int32_t *sample = w->row[k] + span->first;
			int64_t sum = sum_of_span(sample, span->count);

			for (uint32_t i = 0; span->clean < span->count && i < span->count; i++)
				sum -= w->is_dirty[span->first + i] ? sample[i] : 0;
			w->sum[k + 1][n] = w->sum[k][n] + sum;
		}
	}
}

/* The samples of all pairs of the rows from..to - 1 with those c before, of pixels that have them
 * all. */
static void add_rows(const struct sl_correlate *s, struct sl_correlate_work *w,
		     const struct level *l, uint32_t c, uint32_t from, uint32_t to)
{
	for (uint32_t n = 0; n < w->spans; n++) {
		struct sl_correlate_sum *sum = sum_of(s, w, &w->span[n], l, c);

		sum->left += w->sum[to - c][n] - w->sum[from - c][n];
		sum->right += w->sum[to][n] - w->sum[from][n];
		sum->pairs += (uint64_t)w->span[n].clean * (to - from);
	}
}

static void add_samples(const struct sl_correlate *s, struct sl_correlate_work *w,
			const struct level *l)
{
	for (uint32_t c = sl_correlate_first_channel(s, l->number); c < s->channels; c++) {
		if (!l->gaps)
			add_rows(s, w, l, c, l->past, l->rows);
		for (uint32_t k = l->past; l->gaps && k < l->rows; k++)
			if (w->kind[k] != SL_ROW_MISSING && w->kind[k - c] != SL_ROW_MISSING)
				add_rows(s, w, l, c, k, k + 1);
	}
}

static bool has(const struct sl_correlate_work *w, uint32_t row, uint32_t pixel)
{
	return w->kind[row] == SL_ROW_WHOLE ||
	       (w->kind[row] == SL_ROW_MIXED && !w->is_missing[row][pixel]);
}

static void add_dirty(const struct sl_correlate *s, struct sl_correlate_work *w,
		      const struct level *l, const struct sl_correlate_span *span, uint32_t pixel)
{
	for (uint32_t c = sl_correlate_first_channel(s, l->number); c < s->channels; c++) {
		struct sl_correlate_sum *sum = sum_of(s, w, span, l, c);

		for (uint32_t k = l->past; k < l->rows; k++)
			if (has(w, k, pixel) && has(w, k - c, pixel)) {
				sum->left += w->row[k - c][pixel];
				sum->right += w->row[k][pixel];
				sum->pairs++;
			}
	}
}

static void pair_up(const struct sl_correlate *s, struct sl_correlate_work *w,
		    const struct level *l)
{
	if (!l->any)
		return;
	/* Samples are multiplied four at a time. */
	memset(w->row + l->rows, 0, (4 - l->fresh % 4) % 4 * sizeof(w->row[0]));
	multiply(s, w, l);
	sum_rows(w, l);
	add_samples(s, w, l);
	for (uint32_t n = 0; w->dirty && n < w->spans; n++)
		for (uint32_t i = w->span[n].first; i < w->span[n].first + w->span[n].count; i++)
			if (w->is_dirty[i])
				add_dirty(s, w, l, &w->span[n], i);
}

void sl_correlate_advance(const struct sl_correlate *s, struct sl_correlate_work *w)
{
	struct level l = {.first = w->first,
			  .fresh = (uint32_t)(w->next - w->first),
			  .past = s->channels - 1};

	for (; l.fresh && l.number < s->levels; l.number++) {
		uint32_t more;

		take_rows(s, w, &l);
		store(s, w, &l);
		more = merge(w, &l);
		pair_up(s, w, &l);
		l.first >>= 1;
		l.fresh = more;
	}
	w->first = w->next;
}
