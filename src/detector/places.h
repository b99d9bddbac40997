/* places.h - how many modules of a kind make a detector: where each lies.
 *
 * Model:     modules lie on a grid; a family has gaps of its own, and so many columns for so many
 *            modules as the detectors that are built. Some are not a grid: those have a table.
 * Ownership: tables are const. */
#ifndef SL_DETECTOR_PLACES_H
#define SL_DETECTOR_PLACES_H

#include <sluice/detector.h>

struct sl_places {
	uint32_t row_gap, column_gap; /* between modules, in image pixels */
	/* Used for exactly so many modules; NULL: there is none. */
	const struct sl_layout *special;
	uint32_t special_modules;
};
extern const struct sl_places sl_places_jungfrau, sl_places_eiger;

/* The layout of a geometry that has modules, rows and columns. The beam goes through the middle. */
void sl_places_fill(const struct sl_places *places, struct sl_geometry *geometry);

#endif
