/* described.h - a detector's geometry as people and other programs read it.
 *
 * Model:     the same of an experiment's detector and of a file that a run left: parts of the
 *            stored image, the plane that fits them best, and what else is known.
 * Threads:   one.
 * Ownership: sl_described_free(). */
#ifndef SL_GEOMETRY_DESCRIBED_H
#define SL_GEOMETRY_DESCRIBED_H

#include <stdio.h>

#include "geometry/parts.h"
#include "geometry/plane.h"

struct sl_described {
	char detector[64];
	struct sl_panel *part; /* [parts] */
	uint32_t parts;
	uint32_t modules;	/* 0: not known */
	uint32_t rows, columns; /* of the stored image; 0: not known */
	bool assembled;		/* it is the image that `mean` is of */
	struct sl_plane mean;	/* of the assembled image */
	uint32_t image_rows, image_columns;
	double worst_m;				     /* a corner is so far from it */
	double pixel_size_m, distance_m, energy_keV; /* 0: not known */
	bool has_mask;
	uint64_t masked; /* pixels */
};

/* Of a geometry; assembled: the image is stored so. mask [module][pixel] may be NULL. -EINVAL,
 * logged: it has no pixel size or no distance; -ENOMEM. */
int sl_describe(const struct sl_geometry *geometry, bool assembled, const uint8_t *mask,
		struct sl_described *described);
/* Of a file of a run (geometry/nxmx.h). */
int sl_describe_file(const char *path, struct sl_described *described);
void sl_described_free(struct sl_described *described);

void sl_described_table(FILE *out, const struct sl_described *described);
void sl_described_nexus(FILE *out, const struct sl_described *described);
void sl_described_crystfel(FILE *out, const struct sl_described *described);
/* -EINVAL, logged: no PONI file can say it. */
int sl_described_poni(FILE *out, const struct sl_described *described);

#endif
