/* sums.c - dark frames summed up, and what follows from the sums. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "calibration/sums.h"

enum { ADU_MASK = 0x3fff, PLAIN = -1 };

/* A raw pixel is gain code << 14 | ADU; code 2 does not exist. */
static const uint16_t codes[SL_GAINS] = {0, 1, 3};

static bool is_wide(enum sl_dtype dtype)
{
	return sl_dtype_bytes(dtype) > 2;
}

int sl_sums_open(struct sl_sums *s, const struct sl_geometry *geometry, int gain)
{
	uint64_t n = geometry->modules * sl_geometry_pixels(geometry);

	*s = (struct sl_sums){
		.dtype = geometry->dtype,
		.gain = gain,
		.cells = geometry->cells ? geometry->cells : 1,
		.modules = geometry->modules,
		.module_pixels = sl_geometry_pixels(geometry),
	};
	if (gain != PLAIN && geometry->dtype != SL_U16) {
		sl_error("only 16-bit pixels have the gain in their upper two bits; detector '%s' "
			 "sends %s",
			 geometry->detector, sl_dtype_name(geometry->dtype));
		return -EINVAL;
	}
	n *= s->cells;
	s->samples = calloc(n, sizeof(*s->samples));
	s->wrong = calloc(n, sizeof(*s->wrong));
	if (is_wide(s->dtype)) {
		s->mean = calloc(n, sizeof(*s->mean));
		s->spread = calloc(n, sizeof(*s->spread));
	} else {
		s->sum = calloc(n, sizeof(*s->sum));
		s->squares = calloc(n, sizeof(*s->squares));
	}
	if (s->samples && s->wrong && ((s->mean && s->spread) || (s->sum && s->squares)))
		return 0;
	sl_error("no memory for the sums of %llu pixels and %u storage cells",
		 (unsigned long long)(n / s->cells), s->cells);
	return -ENOMEM;
}

void sl_sums_close(struct sl_sums *s)
{
	free(s->samples);
	free(s->wrong);
	free(s->sum);
	free(s->squares);
	free(s->mean);
	free(s->spread);
	*s = (struct sl_sums){.gain = PLAIN};
}

static void add_gain(struct sl_sums *s, uint64_t at, const uint16_t *raw)
{
	uint16_t code = codes[s->gain];

	for (uint64_t i = 0; i < s->module_pixels; i++) {
		uint32_t right = raw[i] >> 14 == code;
		uint32_t adu = right * (raw[i] & ADU_MASK);

		s->samples[at + i] += right;
		s->wrong[at + i] += !right;
		s->sum[at + i] += adu;
		s->squares[at + i] += (uint64_t)adu * adu;
	}
}

#define ADD_WHOLE(type)                                          \
	for (uint64_t i = 0; i < s->module_pixels; i++) {        \
		int64_t value = ((const type *)pixels)[i];       \
                                                                 \
		s->samples[at + i]++;                            \
		s->sum[at + i] += value;                         \
		s->squares[at + i] += (uint64_t)(value * value); \
	}

#define ADD_WIDE(type)                                                 \
	for (uint64_t i = 0; i < s->module_pixels; i++) {              \
		double value = ((const type *)pixels)[i];              \
		double away = value - s->mean[at + i];                 \
                                                                       \
		s->mean[at + i] += away / ++s->samples[at + i];        \
		s->spread[at + i] += away * (value - s->mean[at + i]); \
	}

void sl_sums_add(struct sl_sums *s, uint32_t cell, uint32_t module, const void *pixels)
{
	uint64_t at = ((uint64_t)cell * s->modules + module) * s->module_pixels;

	if (cell >= s->cells || module >= s->modules)
		return;
	if (s->gain != PLAIN) {
		add_gain(s, at, pixels);
		return;
	}
	switch (s->dtype) {
	case SL_U8:
		ADD_WHOLE(uint8_t);
		break;
	case SL_U16:
		ADD_WHOLE(uint16_t);
		break;
	case SL_I16:
		ADD_WHOLE(int16_t);
		break;
	case SL_U32:
		ADD_WIDE(uint32_t);
		break;
	case SL_I32:
		ADD_WIDE(int32_t);
		break;
	default:
		ADD_WIDE(float);
		break;
	}
}

static float mean_of(const struct sl_sums *s, uint64_t i)
{
	if (!s->samples[i])
		return NAN;
	return (float)(s->mean ? s->mean[i] : (double)s->sum[i] / s->samples[i]);
}

/* sqrt(n Q - S^2) / n: the difference is exact, however much of it cancels. */
static float rms_of(const struct sl_sums *s, uint64_t i)
{
	uint64_t n = s->samples[i];
	__int128 difference;

	if (!n)
		return NAN;
	if (s->mean)
		return (float)sqrt(s->spread[i] / (double)n);
	difference = (__int128)n * s->squares[i] - (__int128)s->sum[i] * s->sum[i];
	return (float)(sqrt((double)difference) / (double)n);
}

int sl_sums_tables(const struct sl_sums *s, struct sl_tables *t)
{
	int g = s->gain == PLAIN ? 0 : s->gain;
	int err = sl_tables_make(t, &t->pedestal[g], t->cells);

	if (!err)
		err = sl_tables_make(t, &t->rms[g], t->cells);
	if (err)
		return err;
	for (uint64_t i = 0; i < t->cells * t->pixels; i++) {
		t->pedestal[g][i] = mean_of(s, i);
		t->rms[g][i] = rms_of(s, i);
	}
	t->frames[g] = s->frames;
	return 0;
}

/* Median and spread of a table's part that belongs to one module and cell. */
struct usual {
	float median, spread;
};

static int usual_of(const float *value, uint64_t n, struct usual *usual)
{
	float *away = malloc(n * sizeof(*away));

	if (!away)
		return -ENOMEM;
	usual->median = sl_median(value, n);
	for (uint64_t i = 0; i < n; i++)
		away[i] = fabsf(value[i] - usual->median);
	usual->spread = 1.4826f * sl_median(away, n);
	free(away);
	return 0;
}

static bool is_out(float value, const struct usual *usual, double min, double max, double spreads)
{
	if ((min != 0 && value < min) || (max != 0 && value > max))
		return true;
	return spreads > 0 && usual->spread > 0 &&
	       fabsf(value - usual->median) > spreads * usual->spread;
}

static uint8_t judge(const struct sl_sums *s, const struct sl_bounds *b, uint64_t i, float pedestal,
		     float rms, const struct usual *usual_pedestal, const struct usual *usual_rms)
{
	uint64_t all = (uint64_t)s->samples[i] + s->wrong[i];
	uint8_t bad = 0;

	if (!all)
		return 0; /* nothing was seen of it: its module is missing, or its cell */
	if (!s->samples[i])
		return SL_MASK_EMPTY | SL_MASK_GAIN;
	if (b->wrong_share > 0 && s->wrong[i] > b->wrong_share * (double)all)
		bad |= SL_MASK_GAIN;
	if (b->stuck && s->samples[i] > 1 && rms == 0)
		bad |= SL_MASK_STUCK;
	if (is_out(pedestal, usual_pedestal, b->pedestal_min, b->pedestal_max, b->spreads))
		bad |= SL_MASK_PEDESTAL;
	if (is_out(rms, usual_rms, b->rms_min, b->rms_max, b->spreads))
		bad |= SL_MASK_RMS;
	return bad;
}

static int mask_module(const struct sl_sums *s, const struct sl_bounds *b, uint64_t at,
		       const struct sl_tables *t, uint8_t *mask)
{
	int g = s->gain == PLAIN ? 0 : s->gain;
	const float *pedestal = t->pedestal[g] + at, *rms = t->rms[g] + at;
	struct usual usual_pedestal, usual_rms;
	int err = usual_of(pedestal, s->module_pixels, &usual_pedestal);

	if (!err)
		err = usual_of(rms, s->module_pixels, &usual_rms);
	for (uint64_t i = 0; i < s->module_pixels && !err; i++)
		mask[i] |= judge(s, b, at + i, pedestal[i], rms[i], &usual_pedestal, &usual_rms);
	return err;
}

static void count(const uint8_t *mask, uint64_t n, struct sl_bad *bad)
{
	*bad = (struct sl_bad){0};
	for (uint64_t i = 0; i < n; i++) {
		bad->empty += !!(mask[i] & SL_MASK_EMPTY);
		bad->gain += !!(mask[i] & SL_MASK_GAIN);
		bad->stuck += !!(mask[i] & SL_MASK_STUCK);
		bad->pedestal += !!(mask[i] & SL_MASK_PEDESTAL);
		bad->rms += !!(mask[i] & SL_MASK_RMS);
		bad->any += mask[i] != 0;
	}
}

int sl_sums_mask(const struct sl_sums *s, const struct sl_bounds *bounds, struct sl_tables *t,
		 struct sl_bad *bad)
{
	int err = sl_tables_make_mask(t);

	for (uint32_t cell = 0; cell < s->cells && !err; cell++)
		for (uint32_t m = 0; m < s->modules && !err; m++)
			err = mask_module(s, bounds,
					  ((uint64_t)cell * s->modules + m) * s->module_pixels, t,
					  t->mask + m * s->module_pixels);
	if (!err && bad)
		count(t->mask, t->pixels, bad);
	return err;
}
