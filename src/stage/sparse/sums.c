/* sums.c - the first pass of the radial method: all pixels of an image, added up by bins. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "stage/sparse/work.h"

enum { BLOCK = SL_OUTSIDE_BLOCK, WAYS = SL_SPARSE_WAYS };

/* Pixels of 16 bits until halves of a sum might overflow: a way has a quarter of them, and the odd
 * ones of each chunk, below 2^15 in all. */
enum { PACKED_PIXELS = 100000 };

double sl_sparse_value(enum sl_dtype dtype, const void *pixels, uint64_t i)
{
	switch (dtype) {
	case SL_U8:
		return ((const uint8_t *)pixels)[i];
	case SL_U16:
		return ((const uint16_t *)pixels)[i];
	case SL_U32:
		return ((const uint32_t *)pixels)[i];
	case SL_I16:
		return ((const int16_t *)pixels)[i];
	default:
		return ((const float *)pixels)[i];
	}
}

void sl_sparse_spans(struct sl_sparse_work *w, sl_sparse_on_span *work)
{
	const struct sl_sparse *s = w->s;
	size_t bytes = sl_dtype_bytes(s->dtype);

	for (uint32_t m = 0; m < s->modules; m++) {
		const struct sl_array *raw = &w->frame->view[m].pixels;
		uint64_t first = m * s->module_pixels;

		if (s->input != SL_STAGE_RAW)
			work(w, (const char *)w->frame->result[s->input].host + first * bytes,
			     first, (uint32_t)s->module_pixels);
		else if (!raw->pitch)
			work(w, raw->host, first, (uint32_t)s->module_pixels);
		for (uint32_t row = 0; s->input == SL_STAGE_RAW && raw->pitch && row < s->rows;
		     row++)
			work(w, (const char *)raw->host + row * raw->pitch,
			     first + (uint64_t)row * s->columns, s->columns);
	}
}

static void leave_out(struct sl_sparse_bin *bin, float norm)
{
	bin->norm -= norm;
	bin->valid--;
}

/* What ways have of whole numbers goes to the bins: the variance is in the upper half. */
static void unpack(struct sl_sparse_work *w)
{
	uint32_t bins = w->s->radial.bins + 1;

	for (uint32_t b = 0; b < bins; b++)
		for (uint32_t i = b; i < WAYS * bins; i += bins) {
			int64_t both = w->ways[i].whole;
			int32_t signal = (int32_t)(uint32_t)both;

			w->bin[b].signal.whole += signal;
			w->bin[b].variance.whole += (both - signal) >> 32;
			w->ways[i].whole = 0;
		}
	w->packed = 0;
}

/* For each type of pixel, in four ways, so that neighbours of one bin need not wait for each other.
 * Whether all pixels of a chunk are measurements comes first: that vectorises. */
#define ADD(TYPE, NAME, VALID, ONE)                                                              \
	static void add_##NAME(struct sl_sparse_work *w, const void *pixels, uint64_t at,        \
			       uint32_t count)                                                   \
	{                                                                                        \
		const TYPE *restrict pixel = pixels;                                             \
		const uint16_t *restrict bin = w->s->radial.bin + at;                            \
		union sl_sparse_sum *restrict sum = w->ways;                                     \
		size_t way = w->s->radial.bins + 1;                                              \
                                                                                                 \
		for (uint32_t first = 0; first < count; first += BLOCK) {                        \
			uint32_t end = count - first < BLOCK ? count : first + BLOCK, i = first; \
			TYPE valid = 1;                                                          \
                                                                                                 \
			for (uint32_t k = first; k < end; k++)                                   \
				valid = (VALID) ? valid : 0;                                     \
			for (; valid != 0 && i + WAYS <= end; i += WAYS) {                       \
				ONE(0, i)                                                        \
				ONE(1, i + 1)                                                    \
				ONE(2, i + 2)                                                    \
				ONE(3, i + 3)                                                    \
			}                                                                        \
			for (uint32_t k = i; k < end; k++) {                                     \
				if (VALID)                                                       \
					ONE(k % WAYS, k)                                         \
				else                                                             \
					leave_out(&w->bin[bin[k]], w->s->radial.norm[at + k]);   \
			}                                                                        \
			w->packed += BLOCK;                                                      \
			if (sizeof(TYPE) <= 2 && w->packed >= PACKED_PIXELS)                     \
				unpack(w);                                                       \
		}                                                                                \
	}

#define PACKED(n, i)                                                                \
	{                                                                           \
		int64_t v = pixel[i], most = v > 1 ? v : 1;                         \
                                                                                    \
		sum[(n)*way + bin[i]].whole += v + (int64_t)((uint64_t)most << 32); \
	}
#define PAIR_WHOLE(n, i)                                                  \
	{                                                                 \
		union sl_sparse_sum *pair = &sum[2 * ((n)*way + bin[i])]; \
		int64_t v = pixel[i];                                     \
                                                                          \
		pair[0].whole += v;                                       \
		pair[1].whole += v > 1 ? v : 1;                           \
	}
#define PAIR_REAL(n, i)                                                   \
	{                                                                 \
		union sl_sparse_sum *pair = &sum[2 * ((n)*way + bin[i])]; \
		double v = pixel[i], photon = w->s->photon;               \
                                                                          \
		pair[0].real += v;                                        \
		pair[1].real += (v > photon ? v : photon) * photon;       \
	}

ADD(uint8_t, u8, pixel[k] != UINT8_MAX, PACKED)
ADD(uint16_t, u16, pixel[k] != UINT16_MAX, PACKED)
ADD(int16_t, i16, pixel[k] != INT16_MAX && pixel[k] != INT16_MIN, PACKED)
ADD(uint32_t, u32, pixel[k] != UINT32_MAX, PAIR_WHOLE)
ADD(float, f32, fabsf(pixel[k]) < INFINITY, PAIR_REAL)

static void unpack_pairs(struct sl_sparse_work *w)
{
	uint32_t bins = w->s->radial.bins + 1;

	for (uint32_t i = 0; i < WAYS * bins; i++) {
		const union sl_sparse_sum *pair = &w->ways[2 * i];
		struct sl_sparse_bin *bin = &w->bin[i % bins];

		if (w->s->dtype == SL_F32) {
			bin->signal.real += pair[0].real;
			bin->variance.real += pair[1].real;
		} else {
			bin->signal.whole += pair[0].whole;
			bin->variance.whole += pair[1].whole;
		}
	}
}

void sl_sparse_add_up(struct sl_sparse_work *w)
{
	static sl_sparse_on_span *const add[SL_DTYPES] = {[SL_U8] = add_u8,
							  [SL_U16] = add_u16,
							  [SL_U32] = add_u32,
							  [SL_I16] = add_i16,
							  [SL_F32] = add_f32};
	const struct sl_sparse *s = w->s;
	uint32_t bins = s->radial.bins;

	for (uint32_t b = 0; b <= bins; b++)
		w->bin[b] = (struct sl_sparse_bin){.norm = b < bins ? s->radial.total[b] : 0,
						   .valid = b < bins ? s->pixels_of[b] : 0,
						   .n = b < bins ? s->pixels_of[b] : 0};
	memset(w->ways, 0, WAYS * 2 * (bins + 1) * sizeof(*w->ways));
	w->packed = 0;
	sl_sparse_spans(w, add[s->dtype]);
	if (sl_dtype_bytes(s->dtype) <= 2)
		unpack(w);
	else
		unpack_pairs(w);
}
