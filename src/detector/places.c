/* places.c - the detectors that are built of modules of 512 x 1024 pixels.
 *
 * Such a module is 2 x 4 ASICs of 256 x 256 with gaps of two pixels: 514 x 1030 of the image.
 *
 *   modules   1     2     8 (4M)      18 (9M)     32 (16M)
 *   grid      1x1   2x1   4x2         6x3         8x4
 *   jungfrau              2164x2068   3264x3106   4432x4215   gaps 36 and 8; the 16M is below
 *   eiger           1065  2167x2070   3269x3110   4371x4150   gaps 37 and 10
 *
 * Other numbers fill the next larger grid row by row. Where only the rows in the middle of a module
 * are read out, half of them in either row of ASICs, those stay in their place.
 *
 * Jungfrau: the 4M and 9M are Jungfraujoch's (gaps 8 and 36); the 16M is JF07T32V01 of SwissFEL,
 * from the module origins in PSI's jungfrau_utils (geometry.py): four quadrants of eight modules,
 * shifted by 68 pixels against each other around a hole for the beam, gaps 36 and 9. Eiger: the
 * shapes that Dectris publishes for the EIGER X, as in pyFAI. */
#include "detector/places.h"

enum { MODULE_ROWS = 514, MODULE_COLUMNS = 1030, ASIC = 256, ASIC_GAP = 2 };

#define ROW(y0, x0, y1, x1)                             \
	{y0, x0, 0}, {y0, (x0) + 1039, 0}, {y1, x1, 0}, \
	{                                               \
		y1, (x1) + 1039, 0                      \
	}

static const struct sl_layout jungfrau_16m = {
	.rows = 4432,
	.columns = 4215,
	.module = {ROW(0, 68, 68, 2146), ROW(550, 68, 618, 2146), ROW(1100, 68, 1168, 2146),
		   ROW(1650, 68, 1718, 2146), ROW(2200, 0, 2268, 2078), ROW(2750, 0, 2818, 2078),
		   ROW(3300, 0, 3368, 2078), ROW(3850, 0, 3918, 2078)},
};

const struct sl_places sl_places_jungfrau = {36, 8, &jungfrau_16m, 32};
const struct sl_places sl_places_eiger = {37, 10, NULL, 0};

/* Columns of the grid. */
static uint32_t across(uint32_t modules)
{
	return modules <= 3 ? 1 : modules <= 8 ? 2 : modules <= 18 ? 3 : modules <= 32 ? 4 : 6;
}

static void fill_grid(const struct sl_places *p, uint32_t modules, struct sl_layout *layout)
{
	uint32_t columns = across(modules), rows = (modules + columns - 1) / columns;

	layout->rows = rows * MODULE_ROWS + (rows - 1) * p->row_gap;
	layout->columns = columns * MODULE_COLUMNS + (columns - 1) * p->column_gap;
	for (uint32_t m = 0; m < modules; m++)
		layout->module[m] = (struct sl_layout_module){
			.row = m / columns * (MODULE_ROWS + p->row_gap),
			.column = m % columns * (MODULE_COLUMNS + p->column_gap)};
}

void sl_places_fill(const struct sl_places *p, struct sl_geometry *geometry)
{
	struct sl_layout *layout = &geometry->layout;

	if (p->special && geometry->modules == p->special_modules) {
		*layout = *p->special;
	} else {
		*layout = (struct sl_layout){.rows = 0};
		fill_grid(p, geometry->modules, layout);
	}
	for (uint32_t m = 0; m < geometry->modules && m < SL_LAYOUT_MODULES; m++)
		layout->module[m].row += geometry->unread_rows;
	layout->asic_rows = ASIC - geometry->unread_rows;
	layout->asic_columns = ASIC;
	layout->gap = ASIC_GAP;
	layout->beam_row = layout->rows / 2.0;
	layout->beam_column = layout->columns / 2.0;
}
