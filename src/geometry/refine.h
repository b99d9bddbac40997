/* refine.h - what an experiment's section `geometry` says of a detector, put into its geometry.
 *
 * Model:     a detector describes itself as square to the beam. The section replaces that: with a
 *            PONI or a CrystFEL file, or with distance, beam and tilt; modules may be shifted and
 *            turned besides; and a mask marks pixels. How the image is assembled stays as it is.
 * Threads:   one, before the run.
 * Errors:    0 or -errno, logged with the file and line, or the option.
 * Ownership: struct sl_refined owns planes and mask; the geometry points to the planes. */
#ifndef SL_GEOMETRY_REFINE_H
#define SL_GEOMETRY_REFINE_H

#include <sluice/detector.h>

/* A number that no beam has: as the detector or the file says. */
#define SL_REFINE_NO_BEAM (-1e6)

struct sl_refine_module { /* along the image's columns, down its rows, and away from the sample */
	uint32_t module;
	double right_m, down_m, away_m;	      /* metres */
	double rot_right, rot_down, rot_away; /* radians, about these directions */
};
extern const struct sl_option sl_refine_module_options[];

struct sl_refine_options {
	char file[384], mask[384];
	double distance_m, beam_row, beam_column, rot1, rot2, rot3;
	struct sl_refine_module module[SL_LAYOUT_MODULES];
	unsigned modules;
};
extern const struct sl_option sl_refine_options[]; /* without the modules */

struct sl_refined {
	struct sl_plane *plane;
	uint8_t *mask; /* [module][pixel]; NULL: none */
};

/* `refined` is zeroed, or that of an earlier call, which is freed. */
int sl_refine(const struct sl_refine_options *options, struct sl_geometry *geometry,
	      struct sl_refined *refined);
void sl_refined_free(struct sl_refined *refined);

#endif
