/* rings.h - where the beam and rings of equal resolution are on an image.
 *
 * Model:     a share's array `image_plane` says where the image lies in space, `photon_energy` what
 *            the wavelength is (docs/how-to/follow-a-run.md). On a plane that is square to the beam
 *            a ring is a circle about the beam; on a tilted one it is a line of points.
 * Threads:   functions of their arguments. */
#ifndef SL_SERVICE_IMAGE_RINGS_H
#define SL_SERVICE_IMAGE_RINGS_H

#include <stdbool.h>
#include <stdint.h>

enum { SL_IMAGE_RINGS = 8, SL_IMAGE_RING_POINTS = 72 };

struct sl_image_ring {
	double d_A, radius; /* radius: mean, in pixels */
	bool circle;	    /* about the beam */
	double point[SL_IMAGE_RING_POINTS]
		    [2]; /* row, column; NaN: the ring does not meet the plane */
};

struct sl_image_rings {
	bool has_beam;
	double beam[2];				       /* row, column */
	double distance_m, pixel_size_m, wavelength_A; /* 0: not known */
	uint32_t rings;
	struct sl_image_ring ring[SL_IMAGE_RINGS];
};

/* plane: corner, a row down, a column to the right, rows, columns. False: it makes no sense. */
bool sl_image_rings_find(const double plane[11], double energy_keV, struct sl_image_rings *rings);

#endif
