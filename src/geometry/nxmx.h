/* nxmx.h - where the pixels of a file lie, by its NXmx fields.
 *
 * Model:     the parts (NXdetector_module) of the stored images with their places. Only chains of
 *            transformations as sluice writes them are followed: translations, which end at the
 *            sample.
 * Errors:    0 or -errno, logged with the file.
 * Ownership: sl_nxmx_geometry_free(). */
#ifndef SL_GEOMETRY_NXMX_H
#define SL_GEOMETRY_NXMX_H

#include "geometry/parts.h"

struct sl_nxmx_geometry {
	char detector[64];
	struct sl_panel *part; /* [parts] */
	uint32_t parts;
	uint32_t rows, columns; /* of the stored image; 0: the file has none */
	bool has_mask;
	double distance_m, energy_keV, pixel_size_m; /* 0: not known */
	double beam_row, beam_column;		     /* of the stored image; NaN: not known */
};

/* The geometry that a file of sluice has beside NXmx, where its images are those of that detector:
 * a stack of modules, or assembled. plane: malloc'ed, NULL: none. -ENOENT: it has none, not
 * logged. */
int sl_nxmx_stored(const char *path, struct sl_geometry *geometry, struct sl_plane **plane,
		   bool *assembled);

int sl_nxmx_geometry(const char *path, struct sl_nxmx_geometry *geometry);
void sl_nxmx_geometry_free(struct sl_nxmx_geometry *geometry);

/* The plane that fits the stored image best, as one: worst_m says how far a corner of a part is
 * from it. That is far where modules are stored one below the other. */
void sl_nxmx_plane(const struct sl_nxmx_geometry *geometry, struct sl_plane *plane,
		   double *worst_m);

#endif
