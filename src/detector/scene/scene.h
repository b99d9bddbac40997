/* scene.h - the photons that fall on a synthetic X-ray detector: a crystal's diffraction on top of
 * what air and water scatter.
 *
 * Model:     a pool of `pool` different exposures, of which a chosen share are hits: they have
 *            Bragg spots. These are the nodes of a crystal's lattice, turned at random, that lie
 *            on the Ewald sphere within the resolution limit; they are as wide as the crystal's
 *            mosaicity and the beam's bandwidth make them. The background has a radial profile: air
 *            near the beam, the broad ring of water at 3.2 Angstrom, powder rings of ice if wanted;
 *            times polarisation and solid angle; behind the beam stop and its holder little is
 *            left. It is the same on all exposures, but for its statistics. Everything is placed in
 *            the detector's image, by its layout: wide pixels collect more, spots go over edges.
 *            All is a function of the setup: any part of any exposure can be had alone.
 * Threads:   one at a time: the spots of the exposure asked for last are kept.
 * Ownership: the scene owns its tables; the geometry is copied.
 * Cost:      2 bytes per pixel; a background draw is a byte from a table of 200 KiB, of which it
 *            uses neighbouring parts. 50-100 us for the spots of a hit. */
#ifndef SL_DETECTOR_SCENE_SCENE_H
#define SL_DETECTOR_SCENE_SCENE_H

#include <sluice/detector.h>
#include <sluice/random.h>

/* What a detector section says of it. It is the first member of a detector's state, so that the
 * rows below can stand in the detector's own table. */
struct sl_scene_options {
	double photon_energy_keV, distance_m, beam_x, beam_y, beam_stop;
	double hit_fraction, spots, spot_photons, resolution_A;
	double background_photons, ice;
	uint32_t pool;
};

#define SL_SCENE_ROWS                                                                              \
	SL_F64(struct sl_scene_options, photon_energy_keV, 12.4, 1, 100, "keV",                    \
	       "energy of a photon"),                                                              \
		SL_F64(struct sl_scene_options, distance_m, 0.1, 0.01, 100, "m",                   \
		       "from sample to detector"),                                                 \
		SL_F64(struct sl_scene_options, beam_x, 0, -5000, 5000, "pixels",                  \
		       "where the beam hits: to the right of the image's middle"),                 \
		SL_F64(struct sl_scene_options, beam_y, 0, -5000, 5000, "pixels",                  \
		       "likewise, below it"),                                                      \
		SL_F64(struct sl_scene_options, beam_stop, 30, 0, 1000, "pixels",                  \
		       "radius of the beam stop's shadow; 0: there is none, nor its holder"),      \
		SL_F64(struct sl_scene_options, hit_fraction, 0.05, 0, 1, "",                      \
		       "share of the bright frames that have spots; one in the pool at least, "    \
		       "unless 0"),                                                                \
		SL_F64(struct sl_scene_options, spots, 60, 1, 100000, "spots",                     \
		       "mean number of spots of a hit, over all modules"),                         \
		SL_F64(struct sl_scene_options, spot_photons, 300, 1, 1e6, "photons",              \
		       "in the brightest pixel of a bright spot; a few have forty times as "       \
		       "many"),                                                                    \
		SL_F64(struct sl_scene_options, resolution_A, 2, 0.1, 1000, "Angstrom",            \
		       "no spots beyond this resolution"),                                         \
		SL_F64(struct sl_scene_options, background_photons, 0.8, 0, 20, "photons",         \
		       "what a pixel has of the background where water scatters most: on its "     \
		       "ring, "                                                                    \
		       "before polarisation and solid angle"),                                     \
		SL_F64(struct sl_scene_options, ice, 0, 0, 20, "",                                 \
		       "powder rings of ice: the brightest, by the top of water's ring; 0: none"), \
		SL_U32(struct sl_scene_options, pool, 31, 1, 4096, "frames",                       \
		       "different frames of each kind, then they repeat; a prime that does not "   \
		       "divide the number of slots")

enum { SL_SCENE_LEVEL_BITS = 7, SL_SCENE_LEVELS = 1 << SL_SCENE_LEVEL_BITS };
enum { SL_SCENE_FRACTION_BITS = 16 - SL_SCENE_LEVEL_BITS };

struct sl_spot {
	double row, column;	  /* of the image */
	double radial, across;	  /* widths along and across the radius, pixels */
	double peak;		  /* expected photons of an image pixel in its middle */
	uint32_t module, pixel;	  /* where its middle lies */
	double radius, inverse_d; /* pixels from the beam; 1 / Angstrom */
	int32_t index[3];	  /* Miller indices; 0 0 0: not of the lattice */
};

struct sl_scene {
	struct sl_scene_options options;
	struct sl_geometry geometry; /* with its layout */
	uint64_t seed;

	struct sl_poisson *background; /* [SL_SCENE_LEVELS] */
	uint16_t *level;	       /* [modules][pixels]: level and fraction */
	uint32_t *spots;	       /* [pool]; 0: not a hit */

	double distance, limit; /* pixels; the resolution limit's distance from the beam */
	double *profile;	/* [profile_steps + 1]: by distance from the beam */
	uint32_t profile_steps; /* SL_SCENE_STEPS to a pixel */

	struct sl_spot *spot; /* of exposure `exposure` */
	uint32_t exposure, *taken, taken_mask;
};

/* 0, -ENOMEM or -EINVAL (a layout that is none; logged). The geometry needs all but its photon
 * energy, distance and beam, which this fills in. */
int sl_scene_open(const struct sl_scene_options *options, uint64_t seed,
		  struct sl_geometry *geometry, struct sl_scene *scene);
void sl_scene_close(struct sl_scene *scene);

/* What is left of the beam at this place of the image: 1, or less behind the beam stop. */
double sl_scene_transmission(const struct sl_scene *scene, double row, double column);

void sl_scene_truth(const struct sl_scene *scene, uint32_t exposure, struct sl_truth *truth);
extern const struct sl_truth_column sl_scene_columns[];
uint32_t sl_scene_truth_rows(struct sl_scene *scene, uint32_t exposure, double *table,
			     uint32_t most);

/* Background photons of pixel `at` ([modules][pixels]), from 48 random bits: two of the levels'
 * distributions are mixed so that their mean is right, and next to nothing is added to its
 * variance. */
static inline unsigned sl_scene_draw(const struct sl_scene *scene, size_t at, uint64_t bits)
{
	uint32_t dither = (uint32_t)(bits >> 16) & ((1 << SL_SCENE_FRACTION_BITS) - 1);
	uint32_t level = (scene->level[at] + dither) >> SL_SCENE_FRACTION_BITS;

	return sl_poisson_draw(&scene->background[level], (uint32_t)(bits >> 32));
}

/* Add the expected photons of the exposure's spots to `mean` ([rows][columns] of this module), and
 * call `touch` for every pixel that was 0 before. */
typedef void sl_scene_touch(void *arg, uint32_t pixel);
void sl_scene_spots(struct sl_scene *scene, uint32_t exposure, uint32_t module, float *mean,
		    sl_scene_touch *touch, void *arg);

/* ---- between the files of the scene ---- */

enum { SL_SCENE_STEPS = 4 };
#define SL_SCENE_KEV_ANGSTROM 12.398419843

/* 1 / d of what is diffracted to this distance from the beam. */
double sl_scene_inverse_d(const struct sl_scene *scene, double radius);

/* Polarisation and solid angle at this place, relative to the beam. */
double sl_scene_factors(const struct sl_scene *scene, double down, double right);

/* Fills background and level; 0 or -ENOMEM. */
int sl_scene_fill_background(struct sl_scene *scene);

/* The spots of an exposure, in `spot`. */
void sl_scene_find_spots(struct sl_scene *scene, uint32_t exposure);

#endif
