/* cxi_peaks.c - a table of positions per frame, in the pixels of the stored image. */
#include "sink/nexus/cxi_peaks.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "sink/nexus/account.h"

enum { CHUNK_BYTES = 64 << 10 };

/* Columns of the result (stage/peaks/peaks.c). */
enum { MODULE, ROW, COLUMN, INTENSITY, SNR, PEAK = 8 };

static bool is_peaks(const struct sl_shape *shape)
{
	return !strcmp(shape->name, "peaks") && shape->ragged && shape->rank == 2 &&
	       shape->dim[1] == PEAK && shape->dtype == SL_F32;
}

static void open_series(struct sl_cxi_peaks *p, struct sl_h5 *file)
{
	static const char *const names[SL_CXI_COLUMNS] = {"peakXPosRaw", "peakYPosRaw",
							  "peakTotalIntensity", "peakSNR"};
	struct sl_h5_shape row = {.type = SL_H5_F32, .rank = 1, .dim = {p->most}};
	struct sl_h5_shape count = {.type = SL_H5_I32};
	uint32_t chunk = (uint32_t)(CHUNK_BYTES / (p->most * sizeof(float)));
	char path[64];

	sl_h5_group(file, "/entry/peaks", "NXcollection");
	sl_h5_attribute_text(file, "/entry/peaks", "long_name",
			     "peaks in pixels of /entry/data/data; the middle of the first is 0");
	sl_h5_series_open(file, "/entry/peaks/nPeaks", &count, SL_ACCOUNT_ROWS, &p->count);
	for (int i = 0; i < SL_CXI_COLUMNS; i++) {
		snprintf(path, sizeof(path), "/entry/peaks/%s", names[i]);
		sl_h5_series_open(file, path, &row, chunk ? chunk : 1, &p->column[i]);
	}
}

int sl_cxi_peaks_open(struct sl_cxi_peaks *p, struct sl_h5 *file, const struct sl_env *env,
		      bool assembled)
{
	*p = (struct sl_cxi_peaks){.geometry = *env->geometry, .assembled = assembled};
	sl_layout_resolve(env->geometry, &p->geometry.layout);
	while (p->result < env->results && !is_peaks(&env->result[p->result]))
		p->result++;
	if (p->result == env->results)
		return 0;
	p->row = calloc(env->result[p->result].dim[0], sizeof(*p->row));
	if (!p->row) {
		sl_error("nexus: no memory for %u peaks", env->result[p->result].dim[0]);
		return -ENOMEM;
	}
	p->most = env->result[p->result].dim[0];
	p->bytes = p->most * SL_CXI_COLUMNS * sizeof(*p->row) + sizeof(int32_t);
	open_series(p, file);
	return 0;
}

/* Between the middles of raw pixels, which are not equally far apart where ASICs meet. `at` has the
 * middle of the first one at a half. */
static uint32_t split(double at, uint32_t size, double *rest)
{
	double first = floor(at - 0.5);

	if (first > size - 2.)
		first = size - 2.;
	if (first < 0)
		first = 0;
	*rest = at - 0.5 - first;
	return (uint32_t)first;
}

static void in_layout(const struct sl_geometry *g, uint32_t module, double *row, double *column)
{
	double down, across, y[3], x[3];
	uint32_t r = split(*row, g->rows, &down), c = split(*column, g->columns, &across);
	uint32_t pixel = r * g->columns + c;

	sl_layout_centre(g, module, pixel, &y[0], &x[0]);
	sl_layout_centre(g, module, r + 1 < g->rows ? pixel + g->columns : pixel, &y[1], &x[1]);
	sl_layout_centre(g, module, c + 1 < g->columns ? pixel + 1 : pixel, &y[2], &x[2]);
	*row = y[0] + down * (y[1] - y[0]) + across * (y[2] - y[0]);
	*column = x[0] + down * (x[1] - x[0]) + across * (x[2] - x[0]);
}

static float value_of(const struct sl_cxi_peaks *p, const float *peak, int column)
{
	uint32_t module = (uint32_t)peak[MODULE];
	double y = peak[ROW], x = peak[COLUMN];

	if (column == SL_CXI_INTENSITY || column == SL_CXI_SNR)
		return peak[column == SL_CXI_SNR ? SNR : INTENSITY];
	if (p->assembled)
		in_layout(&p->geometry, module, &y, &x);
	else
		y += (double)module * p->geometry.rows;
	return (float)((column == SL_CXI_X ? x : y) - 0.5);
}

void sl_cxi_peaks_append(const struct sl_cxi_peaks *p, const struct sl_frame *frame)
{
	const struct sl_array *array = &frame->result[p->result];
	const float *peak = array->host;
	int32_t count;

	if (!p->most)
		return;
	count = (int32_t)(array->rows < p->most ? array->rows : p->most);
	sl_h5_series_append(p->count, &count);
	memset(p->row, 0, p->most * sizeof(*p->row));
	for (int i = 0; i < SL_CXI_COLUMNS; i++) {
		for (int32_t k = 0; k < count; k++)
			p->row[k] = value_of(p, peak + (size_t)k * PEAK, i);
		sl_h5_series_append(p->column[i], p->row);
	}
}

void sl_cxi_peaks_close(struct sl_cxi_peaks *p)
{
	free(p->row);
	p->row = NULL;
}
