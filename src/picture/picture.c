/* picture.c - from floats to colours. */
#include "picture/picture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

void sl_picture_bin(struct sl_picture *p, uint32_t bin)
{
	uint32_t rows = p->rows / bin, columns = p->columns / bin;

	if (bin < 2 || !rows || !columns)
		return;
	/* What is written lies before all that is still to be read. */
	for (uint32_t r = 0; r < rows; r++)
		for (uint32_t c = 0; c < columns; c++) {
			double sum = 0;
			uint32_t n = 0;

			for (uint32_t i = 0; i < bin * bin; i++) {
				size_t row = (size_t)r * bin + i / bin;
				float x = p->pixels[row * p->columns + c * bin + i % bin];

				if (isnan(x))
					continue;
				sum += x;
				n++;
			}
			p->pixels[(size_t)r * columns + c] = n ? (float)(sum / n) : NAN;
		}
	p->rows = rows;
	p->columns = columns;
}

static int compare_floats(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static double percentile(const float *sorted, size_t n, double percent)
{
	double at = percent / 100 * (double)(n - 1);

	return n ? sorted[(size_t)(at + 0.5)] : 0;
}

struct scale {
	double low, high, knee; /* knee: where a logarithm begins */
	uint32_t kind;
};

/* A sample of the finite pixels is enough for percentiles. */
static int find_scale(const struct sl_picture *p, const struct sl_picture_look *look,
		      struct scale *scale)
{
	size_t all = (size_t)p->rows * p->columns, step = all / 1000000 + 1, n = 0;
	float *sorted = malloc((all / step + 1) * sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < all; i += step)
		if (isfinite(p->pixels[i]))
			sorted[n++] = p->pixels[i];
	qsort(sorted, n, sizeof(*sorted), compare_floats);
	*scale = (struct scale){.low = percentile(sorted, n, look->low),
				.high = percentile(sorted, n, look->high),
				.kind = look->scale};
	if (!(scale->high > scale->low))
		scale->high = scale->low + 1;
	scale->knee = (percentile(sorted, n, 50) - scale->low) * 2;
	if (!(scale->knee > (scale->high - scale->low) * 1e-3))
		scale->knee = (scale->high - scale->low) * 1e-3;
	free(sorted);
	return 0;
}

/* 0 to 1. */
static double place(const struct scale *s, float x)
{
	double y = (x - s->low) / (s->high - s->low);

	if (!(y > 0))
		return 0;
	if (y >= 1)
		return 1;
	if (s->kind == SL_PICTURE_SQRT)
		return sqrt(y);
	if (s->kind == SL_PICTURE_LOG)
		return log1p((x - s->low) / s->knee) / log1p((s->high - s->low) / s->knee);
	return y;
}

int sl_picture_colour(const struct sl_picture *p, const struct sl_picture_look *look,
		      uint8_t *index, double range[2])
{
	struct scale scale;
	int err = find_scale(p, look, &scale);

	if (err)
		return err;
	for (size_t i = 0; i < (size_t)p->rows * p->columns; i++)
		index[i] = isnan(p->pixels[i]) ? 0
					       : (uint8_t)(1.5 + place(&scale, p->pixels[i]) * 254);
	range[0] = scale.low;
	range[1] = scale.high;
	return 0;
}

struct stop {
	double at;
	uint8_t colour[3];
};

/* Night to fire: dark blue, violet, red, orange, yellow, white; ever brighter. */
static const struct stop fire[] = {
	{0, {4, 4, 18}},	{0.2, {45, 12, 92}},	{0.4, {130, 30, 108}}, {0.6, {212, 66, 62}},
	{0.78, {248, 140, 28}}, {0.92, {250, 216, 90}}, {1, {255, 255, 230}}};
/* As on film: what is bright is dark. */
static const struct stop paper[] = {{0, {255, 255, 255}}, {1, {0, 0, 0}}};

static const struct stop grey[] = {{0, {0, 0, 0}}, {1, {255, 255, 255}}};
static const struct stop *const maps[] = {
	[SL_PICTURE_FIRE] = fire, [SL_PICTURE_PAPER] = paper, [SL_PICTURE_GREY] = grey};

static const uint8_t nothing[][3] = {[SL_PICTURE_FIRE] = {58, 66, 72},
				     [SL_PICTURE_PAPER] = {196, 210, 224},
				     [SL_PICTURE_GREY] = {40, 60, 90}};

void sl_picture_palette(enum sl_picture_colours colours, uint8_t palette[256][3])
{
	const struct stop *stop = maps[colours];

	for (int c = 0; c < 3; c++)
		palette[0][c] = nothing[colours][c];
	for (int i = 1; i < 256; i++) {
		double at = (i - 1) / 254., share;

		while (stop[1].at < at)
			stop++;
		share = (at - stop[0].at) / (stop[1].at - stop[0].at);
		for (int c = 0; c < 3; c++)
			palette[i][c] = (uint8_t)(stop[0].colour[c] * (1 - share) +
						  stop[1].colour[c] * share + 0.5);
	}
}
