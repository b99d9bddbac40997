/* origin.h - what is known of the detector that recorded the images: by the file, by its name, by
 * options.
 *
 * Model:     options stand over the file, the file over what every detector of that name has.
 *            Images are a stack of modules, or assembled with the layout's gaps: then the modules
 *            are cut out of them again, or, with detector.modules: 1, the image is one panel
 *            whose gaps are masked. Where no layout is known, modules lie one below the other.
 * Files:     origin.c the decision; origin_hdf5.c what files say: /entry/sluice/geometry, and
 *            fields of NXmx and of DECTRIS master files.
 * Threads:   one, when the detector is opened.
 * Ownership: mask and planes of what was found are the caller's, to be freed. */
#ifndef SL_DETECTOR_REPLAY_ORIGIN_H
#define SL_DETECTOR_REPLAY_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/detector.h>

#include "detector/replay/stack.h"

/* What a file says. Numbers: 0: nothing; the beam: NaN. */
struct sl_origin_file {
	bool laid_out; /* geometry is complete, as this program wrote it; else its figures alone */
	struct sl_geometry geometry;
	struct sl_plane *plane; /* that it points to; NULL: none */
	uint32_t *mask;		/* [mask_rows][mask_columns], NXmx's bits; NULL: none */
	uint32_t mask_rows, mask_columns;
};

/* What options say; "" and 0: nothing. */
struct sl_origin_options {
	const char *name, *sensor_material;
	uint32_t bit_depth, cells;
	double photon_energy_keV, distance_m, beam_x, beam_y, pixel_size_m, sensor_thickness_m;
};

struct sl_origin_found {
	struct sl_geometry geometry; /* but module_bytes and frames */
	bool cut;		     /* images are assembled: modules are cut out of them */
	uint8_t *mask;		     /* [modules][pixels]; NULL: none is known */
	struct sl_plane *plane;	     /* that the geometry points to; NULL: none */
};

/* 0, or -errno, logged with the option to set. `file` names the images in messages. */
int sl_origin_find(const struct sl_origin_options *options, const struct sl_origin_file *from,
		   const struct sl_stack_shape *shape, uint32_t modules, const char *file,
		   struct sl_origin_found *origin);

/* For each raw pixel, [modules][pixels], the image pixel that it is stored in. geometry: with its
 * layout. malloc'ed; NULL: no memory. */
uint32_t *sl_origin_places(const struct sl_geometry *geometry);

/* A file that says nothing. */
void sl_origin_nothing(struct sl_origin_file *from);

/* 0, also where the file says nothing; -errno: it is damaged, logged. Free mask and plane in any
 * case. */
int sl_origin_hdf5(const char *path, struct sl_origin_file *from);

#endif
