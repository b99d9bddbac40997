/* twin_test.c - stages on accelerators against the same ones on the CPU. A new twin is tested by a
 * line in the table. */
#include <errno.h>
#include <pthread.h>

#include <sluice/device.h>
#include <sluice/registry.h>

#include "lib/capture.h"
#include "lib/twin_device.h"
#include "lib/twin_rig.h"
#include "unit/device/device.h"

extern const struct sl_unit sl_unit_cpu, sl_unit_cuda, sl_unit_opencl;

static int open_kept(void *state, const struct sl_chain *chain, struct sl_bell *todo,
		     struct sl_bell *done, unsigned *workers)
{
	return sl_accelerator_open(state, &twin_platform, chain, todo, done, workers);
}

/* As it is, but for what all cases share. */
static struct sl_unit unit_opencl;
static const struct sl_unit *const accelerators[] = {&unit_opencl, &sl_unit_cuda};

#define HUGE_BYTES (1ull << 60)

enum { BATCHES = 5, FIELD_PIXELS = 2 * 40 * 70 };

#define TRACKER(options) "{kind: tracker, frames: 1000, " options "}"
#define RICH(options)	 "{kind: rich, frames: 1000, " options "}"
#define SMALL(m, r, c)	 .modules = m, .rows = r, .columns = c

static const struct twin_case cases[] = {
	{"photons", "stages: [correct: {darks: 5}, veto: {threshold: 9, min_pixels: 40}]", NULL,
	 SMALL(2, 7, 33), .batch = 8, .dtype = SL_U16},
	{"photons, eight at a time", "stages: [correct: {darks: 5}, veto: {min_pixels: 40}]", NULL,
	 SMALL(3, 6, 40), .batch = 8, .dtype = SL_U16},
	{"photons, no dark frames", "stages: [correct, veto: {threshold: 9, min_pixels: 40}]", NULL,
	 SMALL(3, 6, 40), .batch = 8, .dtype = SL_U16, .no_darks = true, .missing = true},
	{"photons, two that count",
	 "stages: [correct, veto: {threshold: 1, min_pixels: 100}, veto: {"
	 "threshold: 9, min_pixels: 40}]",
	 NULL, SMALL(3, 6, 40), .batch = 8, .dtype = SL_U16, .no_darks = true},
	{"photons, no dark frames, nobody counts", "stages: [correct]", NULL, SMALL(3, 6, 40),
	 .batch = 11, .dtype = SL_U16, .no_darks = true},
	{"photons of a real detector", "stages: [correct, veto]",
	 "{kind: jungfrau, modules: 2, bad_pixels: 20}", .batch = 3, .no_darks = true},
	{"photons, rows with a pitch", "stages: [correct, veto: {min_pixels: 40}]", NULL,
	 SMALL(3, 6, 40), .batch = 7, .dtype = SL_U16, .pitch = true},
	{"photons, storage cells, missing modules", "stages: [correct: {darks: 3}]", NULL,
	 SMALL(3, 6, 40), .cells = 4, .batch = 16, .dtype = SL_U16, .missing = true},
	{"photons of noisy pixels", "stages: [correct: {darks: 9, noise_max: 300}]", NULL,
	 SMALL(1, 6, 40), .batch = 16, .dtype = SL_U16},
	{"keV", "stages: [correct: {output: kev_f32}, veto: {threshold: 9, min_pixels: 40}]", NULL,
	 SMALL(2, 7, 33), .batch = 8, .dtype = SL_U16},
	{"photons with fractions, cells", "stages: [correct: {output: photons_f32}, veto]", NULL,
	 SMALL(2, 7, 33), .cells = 2, .batch = 8, .dtype = SL_U16, .missing = true},
	{"counts of 8 bits", "stages: [veto: {threshold: 9, min_pixels: 40}]", NULL,
	 SMALL(2, 7, 33), .batch = 8, .dtype = SL_U8, .no_darks = true},
	{"counts of 16 bits, pitch", "stages: [veto: {threshold: 2900, min_pixels: 40}]", NULL,
	 SMALL(2, 7, 33), .batch = 8, .dtype = SL_U16, .pitch = true, .missing = true},
	{"counts of 32 bits", "stages: [veto: {threshold: 30, min_pixels: 100}]", NULL,
	 SMALL(2, 7, 33), .batch = 8, .dtype = SL_U32},
	{"lists of photons",
	 "stages: [correct, veto: {min_pixels: 40}, sparse: {threshold: 3, row_pointers: true}]",
	 NULL, SMALL(2, 7, 33), .batch = 8, .dtype = SL_U16, .missing = true},
	{"lists, several runs, wide loads", "stages: [correct, sparse: {row_pointers: true}]", NULL,
	 SMALL(3, 60, 128), .batch = 5, .dtype = SL_U16},
	{"lists that are full",
	 "stages: [correct, sparse: {threshold: 1, max_pixels: 9000, row_pointers: true}]", NULL,
	 SMALL(3, 60, 129), .batch = 5, .dtype = SL_U16},
	{"lists of keV", "stages: [correct: {output: kev_f32}, sparse: {threshold: 2}]", NULL,
	 SMALL(3, 60, 128), .batch = 5, .dtype = SL_U16, .missing = true},
	{"lists of 8 bits", "stages: [sparse: {threshold: 9, row_pointers: true}]", NULL,
	 SMALL(3, 60, 128), .batch = 8, .dtype = SL_U8},
	{"lists of 8 bits, a few pixels", "stages: [sparse: {threshold: 9, max_pixels: 11}]", NULL,
	 SMALL(1, 5, 7), .batch = 8, .dtype = SL_U8, .pitch = true},
	{"lists of 16 bits", "stages: [sparse: {threshold: 3000, row_pointers: true}]", NULL,
	 SMALL(2, 100, 64), .batch = 8, .dtype = SL_U16, .missing = true},
	{"lists of 32 bits",
	 "stages: [veto: {threshold: 30, min_pixels: 100}, sparse: {threshold: 38}]", NULL,
	 SMALL(2, 100, 64), .batch = 8, .dtype = SL_U32},
	{"lists by radius",
	 "stages: [correct, veto: {min_pixels: 40}, sparse: {method: radial, unit: r_pixels, "
	 "bins: 23, row_pointers: true}]",
	 NULL, SMALL(2, 40, 67), .batch = 8, .dtype = SL_U16, .missing = true, .peaks = true},
	{"lists by radius, norms, few rounds, full",
	 "stages: [correct, veto: {min_pixels: 400}, sparse: {method: radial, unit: q_nm, bins: "
	 "40, "
	 "solid_angle: true, polarisation: 0.9, cycle: 2, max_pixels: 300, rejected: true}]",
	 NULL, SMALL(3, 64, 128), .batch = 5, .dtype = SL_U16, .peaks = true, .bound = 1e-5},
	{"lists by radius, no rounds, a part",
	 "stages: [correct, sparse: {method: radial, unit: r_pixels, cycle: 0, low: 5, high: 30, "
	 "cutoff_pick: 1, noise: 0.5, bins: 1}]",
	 NULL, SMALL(2, 40, 67), .batch = 8, .dtype = SL_U16},
	{"lists by radius, of overloads only",
	 "stages: [correct, sparse: {method: radial, unit: r_pixels, bins: 9, noise: 100000}]",
	 NULL, SMALL(2, 40, 67), .batch = 8, .dtype = SL_U16},
	{"lists of keV by radius",
	 "stages: [correct: {output: kev_f32}, sparse: {method: radial, unit: tth_deg, bins: 30, "
	 "solid_angle: true}]",
	 NULL, SMALL(2, 40, 67), .batch = 8, .dtype = SL_U16, .peaks = true, .bound = 1e-5},
	{"lists of 8 bits by radius",
	 "stages: [sparse: {method: radial, unit: r_pixels, bins: 20, cutoff_clip: 4}]", NULL,
	 SMALL(2, 40, 67), .batch = 8, .dtype = SL_U8, .peaks = true},
	{"lists of 16 bits by radius, many bins",
	 "stages: [sparse: {method: radial, unit: r_pixels, bins: 3000}]", NULL, SMALL(2, 40, 64),
	 .batch = 4, .dtype = SL_U16, .pitch = true, .missing = true},
	{"lists of 32 bits by radius",
	 "stages: [sparse: {method: radial, unit: r_pixels, bins: 20, cycle: 16}]", NULL,
	 SMALL(2, 40, 67), .batch = 8, .dtype = SL_U32},
	{"peaks of photons", "stages: [correct, veto: {min_pixels: 40}, peaks: {min_peaks: 3}]",
	 NULL, SMALL(2, 40, 67), .batch = 8, .dtype = SL_U16, .missing = true, .peaks = true},
	{"peaks, small and many, tables that are full",
	 "stages: [correct, peaks: {snr: 1.5, threshold: 2, min_pixels: 1, max_pixels: 30, "
	 "min_peaks: 0, max_peaks: 9, wide: true}]",
	 NULL, SMALL(3, 64, 128), .batch = 5, .dtype = SL_U16, .peaks = true},
	{"peaks in a part of the image, of all frames",
	 "stages: [correct, veto: {min_pixels: 100}, peaks: {snr: 2, r_min: 9, r_max: 40, "
	 "min_peaks: 1, "
	 "local_bg_radius: 9, look: all}]",
	 NULL, SMALL(2, 40, 67), .batch = 8, .dtype = SL_U16, .peaks = true},
	{"peaks of keV", "stages: [correct: {output: kev_f32}, peaks: {snr: 3, min_peaks: 2}]",
	 NULL, SMALL(2, 40, 67), .batch = 8, .dtype = SL_U16, .peaks = true, .bound = 1e-5},
	{"peaks of 8 bits", "stages: [peaks: {min_peaks: 2}]", NULL, SMALL(2, 40, 67), .batch = 8,
	 .dtype = SL_U8, .peaks = true, .pitch = true},
	{"peaks of 16 bits, many thousand pixels",
	 "stages: [peaks: {threshold: 5000, min_peaks: 2, max_pixels: 5000}]", NULL,
	 SMALL(2, 100, 200), .batch = 4, .dtype = SL_U16, .peaks = true},
	{"peaks of 32 bits", "stages: [peaks: {min_peaks: 2, snr: 2}]", NULL, SMALL(2, 40, 67),
	 .batch = 8, .dtype = SL_U32, .peaks = true, .missing = true},
	{"spots of photons", "stages: [correct, veto: {min_pixels: 40}, spots: {min_spots: 3}]",
	 NULL, SMALL(2, 40, 67), .batch = 8, .dtype = SL_U16, .missing = true, .peaks = true},
	{"spots, small and many, tables that are full",
	 "stages: [correct, spots: {sigmas: 0.5, threshold: 2, box: 1, min_pixels: 1, max_pixels: "
	 "30, "
	 "min_spots: 0, max_spots: 9}]",
	 NULL, SMALL(3, 64, 128), .batch = 5, .dtype = SL_U16, .peaks = true},
	{"spots of all frames, a large box",
	 "stages: [correct, veto: {min_pixels: 60}, spots: {box: 15, sigmas: 0, min_spots: 1, "
	 "look: all}]",
	 NULL, SMALL(2, 20, 33), .batch = 8, .dtype = SL_U16, .peaks = true},
	{"spots of keV", "stages: [correct: {output: kev_f32}, spots: {sigmas: 3, min_spots: 2}]",
	 NULL, SMALL(2, 40, 67), .batch = 8, .dtype = SL_U16, .peaks = true},
	{"spots of 8 bits", "stages: [spots: {min_spots: 2}]", NULL, SMALL(2, 40, 67), .batch = 8,
	 .dtype = SL_U8, .peaks = true, .pitch = true},
	{"spots of 16 bits", "stages: [spots: {threshold: 5000, min_spots: 2, max_pixels: 5000}]",
	 NULL, SMALL(2, 100, 200), .batch = 4, .dtype = SL_U16, .peaks = true},
	{"spots of 32 bits", "stages: [spots: {min_spots: 2, sigmas: 2}]", NULL, SMALL(2, 40, 67),
	 .batch = 8, .dtype = SL_U32, .peaks = true, .missing = true},
	{"a stage of the CPU behind",
	 "stages: [correct, veto: {min_pixels: 40}, prescale: {every: 3}]", NULL, SMALL(2, 7, 33),
	 .batch = 8, .dtype = SL_U16},
	{"a sample of what is rejected, with all that is made of every frame",
	 "stages: [correct, veto: {min_pixels: 60}, integrate: {bins: 30}, reduce: {bin: 3, "
	 "window: 2, roi: '1,1,3,5'}, sparse: {threshold: 3, row_pointers: true}, prescale: "
	 "{every: 2}]",
	 NULL, SMALL(2, 7, 33), .batch = 8, .dtype = SL_U16, .missing = true},
	{"a sample, with what is made of kept frames only",
	 "stages: [correct, veto: {min_pixels: 60}, sparse: {method: radial, unit: r_pixels, bins: "
	 "9, row_pointers: true}, reduce: {bin: 20}, peaks: {min_peaks: 3}, spots: {min_spots: 9}, "
	 "prescale: {every: 1, count: by_reason}]",
	 NULL, SMALL(2, 40, 67), .batch = 8, .dtype = SL_U16, .missing = true, .peaks = true},
	{"a sample of events without rings",
	 "stages: [rings: {min_rings: 2, particle: pion, min_matches: 1}, prescale: {every: 7}]",
	 RICH("modules: 2, events: 37"), .batch = 5, .dtype = SL_U8, .missing = true},
	{"a sample of events without tracks",
	 "stages: [tracks: {min_tracks: 30}, prescale: {every: 2}]",
	 TRACKER("modules: 2, events: 2, sectors: 9"), .batch = 4, .dtype = SL_U8},
	{"profile of photons",
	 "stages: [correct: {darks: 5}, veto: {min_pixels: 20}, integrate: {bins: 30}]", NULL,
	 SMALL(2, 7, 33), .batch = 8, .dtype = SL_U16, .missing = true},
	{"profile of photons, more than a tile", "stages: [correct, integrate: {bins: 100}]", NULL,
	 SMALL(2, 40, 72), .batch = 19, .dtype = SL_U16, .missing = true},
	{"profile of photons, boxes, one at least",
	 "stages: [correct, integrate: {bins: 40, split: bbox, variance: at_least_one}]", NULL,
	 SMALL(3, 40, 70), .batch = 7, .dtype = SL_U16},
	{"profile of photons, one at least, polarised",
	 "stages: [correct, integrate: {bins: 20, variance: at_least_one, polarisation: 0.9}]",
	 NULL, SMALL(2, 7, 33), .batch = 8, .dtype = SL_U16},
	{"profile of keV", "stages: [correct: {output: kev_f32}, integrate: {bins: 100}]", NULL,
	 SMALL(2, 40, 70), .batch = 9, .dtype = SL_U16, .missing = true, .bound = 1e-6},
	{"profile of keV, boxes",
	 "stages: [correct: {output: kev_f32}, integrate: {bins: 90, split: bbox, unit: r_mm, "
	 "variance: at_least_one}]",
	 NULL, SMALL(2, 40, 72), .batch = 9, .dtype = SL_U16, .bound = 1e-6},
	{"cake of photons", "stages: [correct, integrate: {bins: 20, azimuth_bins: 36}]", NULL,
	 SMALL(2, 40, 72), .batch = 8, .dtype = SL_U16, .missing = true},
	{"cake of photons with fractions, boxes",
	 "stages: [correct: {output: photons_f32}, integrate: {bins: 20, azimuth_bins: 8, "
	 "split: bbox}]",
	 NULL, SMALL(2, 40, 70), .batch = 8, .dtype = SL_U16, .bound = 1e-6},
	{"profile of counts of 8 bits", "stages: [integrate: {bins: 30}]", NULL, SMALL(2, 40, 72),
	 .batch = 33, .dtype = SL_U8, .missing = true},
	{"profiles of odd rows", "stages: [integrate: {bins: 20}]", NULL, SMALL(1, 40, 69),
	 .batch = 9, .dtype = SL_U16},
	{"of rows of 4 bytes", "stages: [integrate: {bins: 20}]", NULL, SMALL(1, 40, 70),
	 .batch = 9, .dtype = SL_U16},
	{"of rows of 8 bytes", "stages: [integrate: {bins: 20}]", NULL, SMALL(1, 40, 68),
	 .batch = 9, .dtype = SL_U16, .no_darks = true},
	{"of 8 bits, rows of 4 bytes", "stages: [integrate: {bins: 20}]", NULL, SMALL(1, 40, 68),
	 .batch = 9, .dtype = SL_U8},
	{"of 32 bits, rows of 8 bytes", "stages: [integrate: {bins: 20}]", NULL, SMALL(1, 40, 70),
	 .batch = 9, .dtype = SL_U32},
	{"of 8 bits, boxes", "stages: [integrate: {bins: 30, split: bbox, unit: tth_deg}]", NULL,
	 SMALL(2, 7, 33), .batch = 18, .dtype = SL_U8, .pitch = true},
	{"of 16 bits, dark and flat",
	 "stages: [integrate: {bins: 30, dark: dark.raw, flat: flat.raw}]", NULL, SMALL(2, 40, 70),
	 .batch = 8, .dtype = SL_U16, .missing = true, .bound = 1e-6},
	{"of 16 bits, dark and flat, boxes, within a range",
	 "stages: [integrate: {bins: 30, dark: dark.raw, flat: flat.raw, split: bbox, unit: "
	 "r_pixels, low: 5, high: 30}]",
	 NULL, SMALL(2, 40, 70), .batch = 8, .dtype = SL_U16, .pitch = true, .bound = 1e-6},
	{"cake of counts of 16 bits", "stages: [integrate: {bins: 9, azimuth_bins: 100}]", NULL,
	 SMALL(1, 70, 8), .batch = 5, .dtype = SL_U16, .no_darks = true},
	{"of 32 bits", "stages: [integrate: {bins: 50, variance: at_least_one}]", NULL,
	 SMALL(2, 40, 72), .batch = 8, .dtype = SL_U32, .missing = true},
	{"cake of counts of 32 bits, boxes",
	 "stages: [integrate: {bins: 50, azimuth_bins: 4, split: bbox}]", NULL, SMALL(2, 40, 70),
	 .batch = 8, .dtype = SL_U32, .missing = true, .bound = 1e-6},
	{"a bin for all pixels, and a veto of counts",
	 "stages: [veto: {threshold: 2900, min_pixels: 200}, integrate: {bins: 1}]", NULL,
	 SMALL(2, 40, 72), .batch = 8, .dtype = SL_U16},
	{"statistics of photons, rectangles",
	 "stages: [correct, veto: {min_pixels: 20}, reduce: {roi: '0,0,3,5; 4,2,9,20; 6,30,2,3'}]",
	 NULL, SMALL(2, 7, 33), .batch = 8, .dtype = SL_U16, .missing = true},
	{"statistics of keV, bins, windows",
	 "stages: [correct: {output: kev_f32}, reduce: {bin: 3, window: 4, roi: '1,1,3,5'}]", NULL,
	 SMALL(3, 6, 40), .batch = 9, .dtype = SL_U16, .missing = true},
	{"statistics of photons, pixels that are all below 0",
	 "stages: [correct, reduce: {roi: '0,0,1,1; 2,3,1,2; 3,9,2,1; 4,4,1,1', bin: 1}]", NULL,
	 SMALL(2, 7, 33), .batch = 32, .dtype = SL_U16, .no_darks = true},
	{"statistics of keV, pixels that are all below 0",
	 "stages: [correct: {output: kev_f32}, reduce: {roi: '0,0,1,1; 2,3,1,2; 3,9,2,1', bin: 1, "
	 "window: 2}]",
	 NULL, SMALL(2, 7, 33), .batch = 16, .dtype = SL_U16, .no_darks = true},
	{"photons, bins, windows of kept frames",
	 "stages: [correct, veto: {min_pixels: 30}, reduce: {bin: 2, window: 3}]", NULL,
	 SMALL(2, 7, 33), .batch = 8, .dtype = SL_U16, .missing = true},
	{"windows before peaks judge",
	 "stages: [correct, veto: {min_pixels: 40}, reduce: {bin: 8, window: 3}, peaks: "
	 "{min_peaks: 3}]",
	 NULL, SMALL(2, 40, 67), .batch = 8, .dtype = SL_U16, .peaks = true},
	{"photons, means, windows", "stages: [correct, reduce: {bin: 4, binned: mean, window: 2}]",
	 NULL, SMALL(3, 6, 40), .batch = 8, .dtype = SL_U16},
	{"photons, large bins", "stages: [correct, reduce: {bin: 20, window: 1}]", NULL,
	 SMALL(2, 40, 70), .batch = 8, .dtype = SL_U16, .missing = true},
	{"photons, sums of 64 bits", "stages: [correct, reduce: {bin: 200, window: 2}]", NULL,
	 SMALL(2, 40, 70), .batch = 8, .dtype = SL_U16},
	{"keV, large bins", "stages: [correct: {output: kev_f32}, reduce: {bin: 17, window: 2}]",
	 NULL, SMALL(2, 40, 70), .batch = 8, .dtype = SL_U16, .bound = 1e-6},
	{"reduced counts of 8 bits", "stages: [reduce: {bin: 5, window: 7}]", NULL,
	 SMALL(2, 40, 72), .batch = 9, .dtype = SL_U8, .missing = true},
	{"reduced counts of 16 bits, pitch",
	 "stages: [reduce: {bin: 1, roi: '0,0,40,30', roi_in: modules}]", NULL, SMALL(2, 40, 70),
	 .batch = 9, .dtype = SL_U16, .pitch = true},
	{"reduced counts of 32 bits", "stages: [reduce: {bin: 3, window: 3}]", NULL,
	 SMALL(2, 7, 33), .batch = 9, .dtype = SL_U32, .missing = true},
	{"means of counts of 32 bits", "stages: [reduce: {bin: 30, binned: mean}]", NULL,
	 SMALL(2, 40, 70), .batch = 9, .dtype = SL_U32},
	{"rings", "stages: [rings]", RICH("modules: 2, events: 96"), .batch = 4, .dtype = SL_U8},
	{"rings, four modules, some missing, rows with a pitch",
	 "stages: [rings: {min_rings: 2, particle: pion, min_matches: 1}]",
	 RICH("modules: 4, events: 37, three_rings: 0.5"), .batch = 4, .dtype = SL_U8,
	 .missing = true, .pitch = true, .no_darks = true},
	{"rings of crowds, few triplets",
	 "stages: [rings: {triplets: 7, min_hits: 4, min_rings: 3}]",
	 RICH("events: 300, three_rings: 1, two_rings: 0, noise_hits: 8"), .batch = 2,
	 .dtype = SL_U8, .no_darks = true},
	{"rings, a table that is full, a place",
	 "stages: [rings: {max_rows: 50, match_x_mm: 20, match_distance_mm: 60, window_mm: 30, "
	 "min_own: 6, min_hits: 8, max_rings: 2, match_max_mm: 150, triplets: 512}]",
	 RICH("events: 1100, pool: 11"), .batch = 2, .dtype = SL_U8},
	{"rings of more events than a group lists", "stages: [rings]",
	 RICH("events: 2100, pool: 11"), .batch = 1, .dtype = SL_U8, .no_darks = true},
	{"rings of blocks that are kept", "stages: [rings, prescale: {every: 9}]",
	 RICH("modules: 2, events: 37"), .batch = 5, .dtype = SL_U8, .rejects = true},
	{"rings of all blocks", "stages: [rings: {look: all}, prescale: {every: 9}]",
	 RICH("modules: 2, events: 37"), .batch = 5, .dtype = SL_U8, .rejects = true},
	{"tracks of blocks that are kept", "stages: [tracks, prescale: {every: 2}]",
	 TRACKER("modules: 2, events: 2, sectors: 9"), .batch = 4, .dtype = SL_U8, .rejects = true},
	{"tracks of all blocks", "stages: [tracks: {look: all}, prescale: {every: 2}]",
	 TRACKER("modules: 2, events: 2, sectors: 9"), .batch = 4, .dtype = SL_U8, .rejects = true},
	{"tracks, fits that are seldom good",
	 "stages: [tracks: {fit: true, min_layers: 3, common: 2, fit_deviations: 1, sector_tracks: "
	 "200}]",
	 TRACKER("modules: 2, events: 2, sectors: 9"), .batch = 4, .dtype = SL_U8},
	{"tracks, fits that are good whatever there is",
	 "stages: [tracks: {fit: true, min_layers: 3, common: 6, fit_deviations: 100, "
	 "sector_tracks: 200, min_pt_GeV: 2}]",
	 TRACKER("modules: 2, events: 2, sectors: 9"), .batch = 8, .dtype = SL_U8,
	 .no_darks = true},
	{"tracks, duplicates where the circle closes",
	 "stages: [tracks: {min_layers: 4, common: 2, sector_tracks: 40, min_tracks: 0}]",
	 TRACKER("events: 1, sectors: 288, pool: 7"), .batch = 1, .dtype = SL_U8, .no_darks = true},
	{"tracks, rectangles", "stages: [tracks: {cells: rectangles}]",
	 TRACKER("modules: 2, events: 2, sectors: 18"), .batch = 3, .dtype = SL_U8},
	{"tracks, hexagons, many cells, any bend",
	 "stages: [tracks: {columns: 64, rows: 64, bend: 0, min_layers: 4, min_pt_GeV: 2}]",
	 TRACKER("events: 1, sectors: 9"), .batch = 3, .dtype = SL_U8, .no_darks = true},
	{"tracks, one hexagon, missing modules, pitch",
	 "stages: [tracks: {cells: one-hexagon, columns: 31, rows: 45, trigger_pt_GeV: 5}]",
	 TRACKER("modules: 4, events: 3, sectors: 9"), .batch = 3, .dtype = SL_U8, .missing = true,
	 .pitch = true},
	{"tracks, a few of each, all kept as they are",
	 "stages: [tracks: {unique: keep, sector_tracks: 37, max_tracks: 50, max_stubs: 4, "
	 "min_layers: 3, min_tracks: 0}]",
	 TRACKER("modules: 2, events: 2, sectors: 5"), .batch = 4, .dtype = SL_U8},
	{"tracks, duplicates of a sector alone, crowded",
	 "stages: [tracks: {unique: sector, common: 2, sector_tracks: 3, min_layers: 3, "
	 "min_tracks: 20}]",
	 TRACKER("modules: 2, events: 2, sectors: 12"), .batch = 4, .dtype = SL_U8},
	{"tracks, fits", "stages: [tracks: {fit: true, min_tracks: 2}]",
	 TRACKER("modules: 2, events: 2, sectors: 18"), .batch = 3, .dtype = SL_U8},
	{"tracks, fits, crowded, rectangles",
	 "stages: [tracks: {fit: true, cells: rectangles, sector_tracks: 3, min_layers: 3, "
	 "common: 4, fit_deviations: 9}]",
	 TRACKER("modules: 2, events: 1, sectors: 18"), .batch = 3, .dtype = SL_U8},
	{"tracks, fits, no duplicates sought",
	 "stages: [tracks: {fit: true, unique: keep, sector_tracks: 100, min_layers: 4}]",
	 TRACKER("events: 2, sectors: 7"), .batch = 2, .dtype = SL_U8, .no_darks = true},
	{"tracks of all sectors", "stages: [tracks: {fit: true, sector_tracks: 65}]",
	 TRACKER("events: 1, sectors: 288, pool: 3"), .batch = 1, .dtype = SL_U8, .no_darks = true},
	{"one of its own before", "stages: [copy, correct, veto: {min_pixels: 40}]", NULL,
	 SMALL(2, 7, 33), .batch = 8, .dtype = SL_U16},
};

static const struct twin_case *case_of(const char *name)
{
	size_t i = 0;

	while (strcmp(cases[i].name, name))
		i++;
	return &cases[i];
}

struct counted {
	uint64_t checked, unlike, unlike_image, not_launched, published, good, unanswered;
};

static const char *const triggers[] = {"unit.trigger=launch", "unit.trigger=graph",
				       "unit.trigger=wait", "unit.trigger=persistent"};
static const char *trigger = "unit.trigger=launch"; /* of tests that are run with two of them */

static void count_figures(void *arg, const char *name, uint64_t value, int failed)
{
	struct counted *counted = arg;

	if (!strcmp(name, "frames_cross_checked"))
		counted->checked = value;
	if (!strcmp(name, "ring_frames_published"))
		counted->published = value;
	if (!strcmp(name, "ring_frames_unanswered"))
		counted->unanswered = value;
	if (!strcmp(name, "ring_frames_good"))
		counted->good = value;
	if (!strcmp(name, "batches_not_launched"))
		counted->not_launched = value;
	if (!strcmp(name, "frames_unlike_the_cpu")) {
		counted->unlike = value;
		assert_true(failed);
	}
	if (!strcmp(name, "frames_unlike_the_cpu_in_image"))
		counted->unlike_image = value;
}

/* Alone on the device, of raw events. */
static bool has_kernel_that_polls(const struct twin_case *c)
{
	return !strncmp(c->stages, "stages: [rings", 14) && !c->rejects;
}

static void run_case(const struct twin_case *c, const struct sl_unit *unit, const char *how)
{
	const struct sl_unit *const units[] = {&sl_unit_cpu, unit};
	const char *set[] = {NULL, "unit.cross_check=3", how};
	struct counted counted = {0};
	struct twin_side side[2];
	char kind[64];
	unsigned kept = 0;
	uint64_t next = 0;

	snprintf(kind, sizeof(kind), "unit.kind=%s", unit->name);
	set[0] = kind;
	assert_int_equal(twin_try_open(&side[0], c, &sl_unit_cpu, NULL, 0), 0);
	assert_int_equal(twin_try_open(&side[1], c, unit, set, 3), 0);
	for (int b = 0; b < BATCHES; b++) {
		uint32_t frames = b % 2 ? c->batch : 1 + c->batch / 3; /* full and not */

		kept += twin_both(c, side, units, next, frames);
		next += frames;
	}
	assert_true(kept > 0); /* else nothing was compared */
	/* By the unit itself, and as well with the bounds that twins state. */
	unit->figures(side[1].experiment->unit_state, count_figures, &counted);
	assert_true(counted.checked > 0 && counted.checked <= next);
	assert_int_equal(counted.unlike, 0);
	if (!strcmp(how, "unit.trigger=persistent")) {
		assert_int_equal(counted.published, next);
		assert_int_equal(counted.good, next);
	} else {
		assert_int_equal(counted.not_launched, strcmp(how, triggers[0]) ? BATCHES : 0);
	}
	twin_close(&side[0], &sl_unit_cpu);
	twin_close(&side[1], unit);
}

/* Others have no queues that wait, and no kernels that poll. */
static bool opencl_is_this_cpu(void)
{
	struct sl_device_info info = {.is_host = 0};
	struct sl_device *device;

	if (sl_unit_opencl.unavailable() || twin_device_open(0, &device))
		return false;
	sl_platform_opencl.describe(device, &info);
	twin_device_close(device);
	return info.is_host;
}

/* With each trigger that it can have; tools/check_gpu.sh asks for one, and for some cases. */
static void run_triggers(const struct twin_case *c, const struct sl_unit *unit)
{
	const char *only = getenv("SLUICE_TRIGGER"), *part = getenv("SLUICE_CASES");

	if (part && !strstr(c->name, part))
		return;
	for (size_t t = 0; t < sizeof(triggers) / sizeof(triggers[0]); t++)
		if ((!only || strstr(triggers[t], only)) &&
		    (!strstr(triggers[t], "persistent") || has_kernel_that_polls(c)) &&
		    (t < 2 || unit == &sl_unit_cuda || opencl_is_this_cpu()))
			run_case(c, unit, triggers[t]);
}

/* Files that stages read, in a folder of their own, where we are from now on. */
static void write_fields(char *folder)
{
	static const char *const name[] = {"dark.raw", "flat.raw"};
	uint64_t seed = 3;

	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	for (int i = 0; i < 2; i++) {
		FILE *file = fopen(name[i], "wb");

		assert_non_null(file);
		for (int k = 0; k < FIELD_PIXELS; k++) {
			uint32_t bits = twin_random(&seed);
			float value = i ? 0.8f + (float)(bits % 97) * 0.003f
					: (float)(bits % 1000) * 0.123f;

			if (bits % 61 == 0)
				value = i ? 0 : NAN;
			assert_int_equal(fwrite(&value, sizeof(value), 1, file), 1);
		}
		fclose(file);
	}
}

static void remove_fields(const char *folder)
{
	unlink("dark.raw");
	unlink("flat.raw");
	assert_int_equal(chdir("/"), 0);
	rmdir(folder);
}

static void test_results_are_those_of_the_cpu(void **arg)
{
	char folder[] = "/tmp/sluice-twin-XXXXXX";
	bool any = false;

	write_fields(folder);
	for (size_t u = 0; u < sizeof(accelerators) / sizeof(accelerators[0]); u++) {
		if (accelerators[u]->unavailable())
			continue;
		any = true;
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			run_triggers(&cases[i], accelerators[u]);
	}
	remove_fields(folder);
	if (!any) {
		print_message("# SKIP %s\n", sl_unit_opencl.unavailable());
		skip();
	}
}

#define NEEDS_OPENCL()                                                      \
	if (sl_unit_opencl.unavailable()) {                                 \
		print_message("# SKIP %s\n", sl_unit_opencl.unavailable()); \
		skip();                                                     \
	}

/* ---- images of few pixels, or of none that count ---- */

/* snr is not 1: of two pixels the greater one is exactly one deviation above their mean. */
#define READERS                                                                                   \
	"veto: {threshold: 2, min_pixels: 0}, integrate: {bins: 3}, reduce: {bin: 2, window: 2, " \
	"roi: '0,0,1,1'}, peaks: {snr: 0.9, threshold: 1, min_pixels: 1, min_peaks: 0}, spots: "  \
	"{sigmas: 0, threshold: 1, box: 2, min_pixels: 1, min_spots: 0}, sparse: "

static const struct {
	const char *stages;
	enum sl_dtype dtype;
	double bound;
} readers[] = {
	{"stages: [correct, " READERS "{threshold: 1, row_pointers: true}]", SL_U16, 0},
	{"stages: [correct, " READERS "{method: radial, unit: r_pixels, bins: 3}]", SL_U16, 0},
	{"stages: [correct: {output: kev_f32}, " READERS "{threshold: 1, row_pointers: true}]",
	 SL_U16, 1e-5},
	{"stages: [correct: {output: kev_f32}, " READERS
	 "{method: radial, unit: r_pixels, bins: 3}]",
	 SL_U16, 1e-5},
	{"stages: [" READERS "{threshold: 1, row_pointers: true}]", SL_U8, 0},
	{"stages: [" READERS "{method: radial, unit: r_pixels, bins: 3}]", SL_U16, 0},
	{"stages: [" READERS "{threshold: 1, row_pointers: true}]", SL_U32, 0},
	{"stages: [" READERS "{method: radial, unit: r_pixels, bins: 3}]", SL_U32, 0},
	{"stages: [veto: {threshold: 2, min_pixels: 0}, integrate: {bins: 3}, reduce: {bin: 2}, "
	 "spots: {sigmas: 0, threshold: 1, box: 2, min_pixels: 1, min_spots: 0}, sparse: "
	 "{threshold: 1, row_pointers: true}]",
	 SL_F32, 1e-5},
};

static const struct twin_case edges[] = {
	{.name = "one pixel", SMALL(1, 1, 1)},
	{.name = "one pixel of each module", SMALL(2, 1, 1), .missing = true},
	{.name = "one row", SMALL(1, 1, 33), .pitch = true},
	{.name = "one column", SMALL(1, 33, 1)},
	{.name = "frames without a valid pixel", SMALL(2, 5, 8), .blank = true},
	{.name = "the beam beside the image", SMALL(2, 5, 7), .aside = true},
};

/* For those that do not refuse to begin with it: `integrate`, and `sparse` by radius. */
static const struct twin_case masked[] = {
	{"all pixels masked",
	 "stages: [correct, veto: {threshold: 2, min_pixels: 0}, reduce: {bin: 2, window: 2}, "
	 "spots: {min_spots: 0}, sparse: {threshold: 1, row_pointers: true}]",
	 NULL, SMALL(2, 5, 8), .batch = 6, .dtype = SL_U16, .masked = true},
	{"all pixels masked, keV",
	 "stages: [correct: {output: kev_f32}, veto: {threshold: 2, min_pixels: 0}, reduce: {bin: "
	 "2, window: 2}, spots: {min_spots: 0}, sparse: {threshold: 1, row_pointers: true}]",
	 NULL, SMALL(2, 5, 7), .batch = 6, .dtype = SL_U16, .masked = true},
};

static void run_edges(const struct sl_unit *unit)
{
	for (size_t e = 0; e < sizeof(edges) / sizeof(edges[0]); e++)
		for (size_t r = 0; r < sizeof(readers) / sizeof(readers[0]); r++) {
			struct twin_case c = edges[e];
			char name[128];

			snprintf(name, sizeof(name), "%s, stages %zu", edges[e].name, r);
			c.name = name;
			c.stages = readers[r].stages;
			c.dtype = readers[r].dtype;
			c.bound = readers[r].bound;
			c.batch = 6;
			run_case(&c, unit, triggers[0]);
		}
}

static void test_edges_of_images_are_those_of_the_cpu(void **arg)
{
	NEEDS_OPENCL();
	for (size_t u = 0; u < sizeof(accelerators) / sizeof(accelerators[0]); u++)
		if (!accelerators[u]->unavailable()) {
			run_edges(accelerators[u]);
			run_case(&masked[0], accelerators[u], triggers[0]);
			run_case(&masked[1], accelerators[u], triggers[0]);
		}
}

/* ---- a device that fails ---- */

static struct sl_platform faulty;
static const struct sl_platform *beneath;
static int calls, fail_at; /* of what is made to fail; 0: never */
static bool silent;	   /* it does not answer any more */
static int marks;	   /* that were seen to be reached */
static int error_at;	   /* of these one is an error instead; 0: none */
static bool for_good;	   /* and all after it */
static int silent_at;	   /* from that one on it does not answer; 0: always does */
static int busy;	   /* after an error: so often it is asked until it is at rest */
static int closed;	   /* devices */

static int fails(void)
{
	return fail_at && ++calls >= fail_at;
}

static int faulty_memory(struct sl_device *device, uint64_t bytes, struct sl_device_memory *m)
{
	/* More than any device has: what the driver itself says and leaves is seen. */
	return beneath->memory_open(device, fails() ? HUGE_BYTES : bytes, m);
}

static int faulty_launch(struct sl_device_queue *queue, struct sl_device_kernel *kernel,
			 const struct sl_device_range *range,
			 const struct sl_device_argument *argument, unsigned arguments)
{
	return fails() ? -EIO
		       : sl_platform_opencl.launch(queue, kernel, range, argument, arguments);
}

/* Marks are counted when they are reached, so that how long that takes makes no difference. With
 * one batch at a time the first says that verdicts are there, the second that results are. */
static int faulty_reached(struct sl_device_mark *mark)
{
	int reached = sl_platform_opencl.reached(mark);

	if (reached != 1 || silent)
		return silent ? 0 : reached;
	if (error_at && marks >= error_at && busy)
		return busy-- ? 0 : 1;
	marks++;
	silent = silent_at && marks >= silent_at;
	if (error_at && (for_good ? marks >= error_at : marks == error_at))
		return -EIO;
	return !silent;
}

static const char *faulty_problem(const struct sl_device *device)
{
	return "on the device: words of its driver";
}

/* All that was opened is closed before its device. */
static void faulty_close(struct sl_device *device)
{
	assert_int_equal(device->held_bytes, 0);
	closed++;
	beneath->close(device);
}

/* Devices have the platform in them: this one's calls must be those that fail. */
static int faulty_open(unsigned index, struct sl_device **device)
{
	int err = beneath->open(index, device);

	if (!err)
		(*device)->platform = &faulty;
	return err;
}

static int open_faulty(void *state, const struct sl_chain *chain, struct sl_bell *todo,
		       struct sl_bell *done, unsigned *workers)
{
	return sl_accelerator_open(state, &faulty, chain, todo, done, workers);
}

/* One that is never heard of again keeps what it has: that must be its own. */
static struct sl_unit faulty_unit(const struct sl_platform *platform)
{
	struct sl_unit unit = sl_unit_opencl;

	beneath = platform;
	faulty = *platform;
	faulty.open = faulty_open;
	faulty.close = faulty_close;
	unit.open = open_faulty;
	calls = fail_at = closed = 0;
	marks = error_at = silent_at = busy = 0;
	silent = for_good = false;
	return unit;
}

/* Each piece of memory that there is, one after the other. */
static void without_memory(const struct twin_case *c)
{
	const char *set[] = {"unit.kind=opencl", "unit.lanes=1"};
	struct sl_unit unit = faulty_unit(&twin_platform);
	struct twin_side side;
	int succeeded = 0;
	bool of_stages = false, of_lanes = false;

	faulty.memory_open = faulty_memory;
	for (int at = 1; !succeeded; at++) {
		const char *said;
		int err;

		calls = 0;
		fail_at = at;
		capture_begin();
		err = twin_try_open(&side, c, &unit, set, 2);
		said = capture_end();
		succeeded = calls < at;
		assert_int_equal(err, succeeded ? 0 : -ENOMEM);
		if (err) {
			assert_non_null(strstr(said, "opencl: no memory for "));
			assert_non_null(strstr(said, "1152921504606846976 more bytes"));
			of_stages |= !!strstr(said, "for stage '");
			of_lanes |= !!strstr(said, "for 1 batches of");
		}
		twin_close(&side, &unit);
	}
	assert_true(of_stages && of_lanes);
}

static void test_no_memory_is_said_and_nothing_is_left(void **arg)
{
	NEEDS_OPENCL();
	without_memory(case_of("photons"));
	without_memory(case_of("of rows of 8 bytes"));
	without_memory(case_of("reduced counts of 32 bits"));
	without_memory(case_of("lists by radius"));
	without_memory(case_of("peaks of photons"));
	without_memory(case_of("spots of photons"));
}

static struct sl_batch *one_batch(struct twin_side *side, const struct twin_case *c, char **memory,
				  uint64_t first)
{
	struct sl_batch *batch = calloc(1, sizeof(*batch));

	batch->frames = batch->capacity = c->batch;
	batch->frame = calloc(c->batch, sizeof(*batch->frame));
	*memory = calloc(c->batch, twin_frame_bytes(side));
	for (uint32_t f = 0; f < c->batch; f++) {
		batch->frame[f] = &sl_pool_get(&side->pool)->frame;
		twin_make(side, c, batch->frame[f], first + f,
			  *memory + f * twin_frame_bytes(side));
	}
	return batch;
}

static void free_batch(struct twin_side *side, struct sl_batch *batch, char *memory)
{
	for (uint32_t f = 0; f < batch->frames; f++)
		sl_pool_put(&side->pool, (struct sl_flow_frame *)batch->frame[f]);
	free(batch->frame);
	free(batch);
	free(memory);
}

/* The batch in which it happens, and the next. */
static void expect_refusals(struct sl_unit *unit, struct twin_side *side, const char *words)
{
	const char *said;

	for (int b = 0; b < 2; b++) {
		char *memory;
		struct sl_batch *batch = one_batch(side, &cases[0], &memory, 0);
		int status;

		capture_begin();
		status = twin_batch(side, unit, batch);
		said = capture_end();
		assert_int_equal(status, -EIO);
		if (b == 0)
			assert_non_null(strstr(said, words));
		free_batch(side, batch, memory);
	}
}

static void test_a_kernel_that_fails_is_named_and_frames_refused(void **arg)
{
	const char *set[] = {"unit.kind=opencl"};
	struct sl_unit unit = faulty_unit(&twin_platform);
	struct twin_side side;

	NEEDS_OPENCL();
	faulty.launch = faulty_launch;
	assert_int_equal(twin_try_open(&side, &cases[0], &unit, set, 1), 0);
	fail_at = 2;
	expect_refusals(&unit, &side, "the device was given up");
	twin_close(&side, &unit);
}

/* What is wrong with a kernel is known only when it has run: while verdicts are awaited, or
 * results; in the first batch, or later. Frames are given away when the device does nothing more
 * to them. */
static void refuse_at(int at)
{
	const char *set[] = {trigger, "unit.kind=opencl"};
	struct sl_unit unit = faulty_unit(&twin_platform);
	struct twin_side side;

	assert_int_equal(twin_try_open(&side, &cases[0], &unit, set, 2), 0);
	faulty.reached = faulty_reached;
	faulty.problem = faulty_problem;
	for (int b = 0; b < (at - 1) / 2; b++) {
		char *memory;
		struct sl_batch *batch = one_batch(&side, &cases[0], &memory, 0);

		assert_int_equal(twin_batch(&side, &unit, batch), 0);
		free_batch(&side, batch, memory);
	}
	error_at = at;
	busy = 5;
	expect_refusals(&unit, &side, "given up: on the device: words of its driver");
	assert_int_equal(busy, 0);
	twin_close(&side, &unit);
}

static void test_an_error_after_the_launch_is_told_and_frames_refused(void **arg)
{
	NEEDS_OPENCL();
	for (int at = 1; at <= 4; at++)
		refuse_at(at);
}

static void test_a_device_that_does_not_answer_is_given_up(void **arg)
{
	const char *set[] = {trigger, "unit.kind=opencl", "unit.timeout_ms=20"};
	struct sl_unit unit = faulty_unit(&sl_platform_opencl);
	struct twin_side side;

	NEEDS_OPENCL();
	assert_int_equal(twin_try_open(&side, &cases[0], &unit, set, 3), 0);
	faulty.reached = faulty_reached;
	silent = true;
	expect_refusals(&unit, &side, "it did not answer in time");
	silent = false;
	twin_close(&side, &unit);
}

/* A device that was given up, and then closed: when it comes to rest after all, and when not. */
static void give_up_and_close(bool rests)
{
	const char *set[] = {trigger, "unit.kind=opencl", "unit.timeout_ms=20"};
	struct sl_unit unit = faulty_unit(&sl_platform_opencl);
	struct twin_side side;

	assert_int_equal(twin_try_open(&side, &cases[0], &unit, set, 3), 0);
	faulty.reached = faulty_reached;
	silent = true;
	expect_refusals(&unit, &side, "it did not answer in time");
	silent = !rests;
	twin_close(&side, &unit);
	assert_int_equal(closed, rests);
	silent = false;
}

static void test_a_device_that_comes_to_rest_is_closed_and_another_is_left(void **arg)
{
	NEEDS_OPENCL();
	give_up_and_close(true);
	give_up_and_close(false);
}

/* What was learned is asked for before a batch is checked: that must have an end, too. */
static void test_no_wait_is_without_an_end(void **arg)
{
	const char *set[] = {trigger, "unit.kind=opencl", "unit.timeout_ms=20",
			     "unit.cross_check=1"};
	struct sl_unit unit = faulty_unit(&sl_platform_opencl);
	struct twin_side side;

	NEEDS_OPENCL();
	assert_int_equal(twin_try_open(&side, &cases[0], &unit, set, 4), 0);
	faulty.reached = faulty_reached;
	silent = true;
	expect_refusals(&unit, &side, "it did not answer in time");
	silent = false;
	twin_close(&side, &unit);
}

static void test_a_unit_is_closed_while_batches_are_there(void **arg)
{
	const char *set[] = {trigger, "unit.kind=opencl"};
	struct sl_unit unit = faulty_unit(&twin_platform);
	struct sl_batch *batch[3];
	struct twin_side side;
	char *memory[3];

	NEEDS_OPENCL();
	for (int steps = 1; steps < 6; steps++) {
		closed = 0;
		assert_int_equal(twin_try_open(&side, &cases[0], &unit, set, 2), 0);
		for (uint64_t b = 0; b < 3; b++) {
			batch[b] = one_batch(&side, &cases[0], &memory[b], b * cases[0].batch);
			assert_int_equal(unit.submit(side.experiment->unit_state, batch[b]), 0);
		}
		for (int i = 0; i < steps; i++)
			unit.work(side.experiment->unit_state, 0);
		unit.close(side.experiment->unit_state);
		side.unit_open = false;
		assert_int_equal(closed, 1);
		for (int b = 0; b < 3; b++)
			free_batch(&side, batch[b], memory[b]);
		twin_close(&side, &unit);
	}
}

/* A kernel that polls, and never begins: its frames are refused, or the CPU's. */
static int no_launch(struct sl_device_queue *queue, struct sl_device_kernel *kernel,
		     const struct sl_device_range *range, const struct sl_device_argument *argument,
		     unsigned arguments)
{
	return 0;
}

static void test_a_kernel_that_polls_and_does_not_answer_is_given_up(void **arg)
{
	const char *set[] = {"unit.kind=opencl", "unit.trigger=persistent", "unit.timeout_ms=20",
			     "unit.fallback=cpu"};
	const struct twin_case *c = case_of("rings");
	struct sl_unit unit = faulty_unit(&twin_platform);

	NEEDS_OPENCL();
	faulty.launch = no_launch;
	for (size_t sets = 3; sets <= 4; sets++) {
		struct counted counted = {0};
		struct twin_side side;

		closed = 0;
		assert_int_equal(twin_try_open(&side, c, &unit, set, sets), 0);
		for (int b = 0; b < 2; b++) {
			char *memory;
			struct sl_batch *batch = one_batch(&side, c, &memory, 0);
			int status;

			capture_begin();
			status = twin_batch(&side, &unit, batch);
			assert_int_equal(!!strstr(capture_end(), "it did not answer in time"),
					 b == 0);
			assert_int_equal(status, sets == 3 ? -EIO : 0);
			free_batch(&side, batch, memory);
		}
		unit.figures(side.experiment->unit_state, count_figures, &counted);
		assert_int_equal(counted.published, c->batch);
		assert_int_equal(counted.unanswered, c->batch);
		assert_int_equal(counted.good, 0);
		twin_close(&side, &unit);
		assert_int_equal(closed, 1);
	}
}

static void test_only_stages_that_poll_can_be_persistent(void **arg)
{
	const char *set[] = {"unit.kind=opencl", "unit.trigger=persistent"};
	struct twin_side side;

	NEEDS_OPENCL();
	capture_begin();
	assert_int_equal(twin_try_open(&side, &cases[0], &unit_opencl, set, 2), -EINVAL);
	assert_non_null(strstr(capture_end(), "has a kernel that polls: rings"));
	twin_close(&side, &unit_opencl);
}

/* ---- a device that is wrong ---- */

static uint64_t spoil_bytes, spoil_at; /* of memory of that size, a byte */

static int spoiling_launch(struct sl_device_queue *queue, struct sl_device_kernel *kernel,
			   const struct sl_device_range *range,
			   const struct sl_device_argument *argument, unsigned arguments)
{
	static const unsigned char wrong = 0x7b;
	int err = sl_platform_opencl.launch(queue, kernel, range, argument, arguments);

	for (unsigned i = 0; i < arguments && !err; i++)
		if (argument[i].memory && argument[i].memory->bytes == spoil_bytes)
			err = sl_platform_opencl.write(queue, argument[i].memory, spoil_at, &wrong,
						       1, 1, 1);
	return err;
}

static void test_what_is_unlike_the_cpu_is_counted_and_named(void **arg)
{
	static const struct twin_case wrong = {
		"wrong",	 "stages: [correct]", NULL, SMALL(2, 7, 33), .batch = 8,
		.dtype = SL_U16, .no_darks = true};
	const char *set[] = {"unit.kind=opencl", "unit.cross_check=1"}, *said;
	struct sl_unit unit = faulty_unit(&twin_platform);
	struct counted counted = {0};
	struct twin_side side;

	NEEDS_OPENCL();
	faulty.launch = spoiling_launch;
	spoil_bytes = 8 * 2 * 7 * 33 * sizeof(int16_t);	  /* the images of a batch */
	spoil_at = 3 * 2 * 7 * 33 * sizeof(int16_t) + 11; /* pixel 5 of the fourth */
	assert_int_equal(twin_try_open(&side, &wrong, &unit, set, 2), 0);
	capture_begin();
	for (uint64_t b = 0; b < 2; b++) {
		char *memory;
		struct sl_batch *batch = one_batch(&side, &wrong, &memory, b * wrong.batch);

		assert_int_equal(twin_batch(&side, &unit, batch), 0);
		free_batch(&side, batch, memory);
	}
	said = capture_end();
	assert_non_null(strstr(said, "frame 3: image differs from the CPU's, first at element 5;"));
	assert_null(strstr(said, "frame 11")); /* counted only */
	unit.figures(side.experiment->unit_state, count_figures, &counted);
	assert_int_equal(counted.checked, 16);
	assert_int_equal(counted.unlike, 2);
	assert_int_equal(counted.unlike_image, 2);
	twin_close(&side, &unit);
}

static void test_rows_that_cannot_be_are_not_copied(void **arg)
{
	static const struct twin_case lists = {"lists",
					       "stages: [sparse: {threshold: 9}]",
					       NULL,
					       SMALL(2, 7, 33),
					       .batch = 8,
					       .dtype = SL_U8,
					       .no_darks = true};
	const char *set[] = {"unit.kind=opencl"};
	struct sl_unit unit = faulty_unit(&twin_platform);
	struct sl_batch *batch;
	struct twin_side side;
	char *memory;

	NEEDS_OPENCL();
	faulty.launch = spoiling_launch;
	spoil_bytes = SL_RESULTS * 8 * sizeof(uint32_t); /* numbers of rows */
	spoil_at = 4 * 2 + 3;				 /* the highest byte, of the third frame */
	assert_int_equal(twin_try_open(&side, &lists, &unit, set, 1), 0);
	batch = one_batch(&side, &lists, &memory, 0);
	capture_begin();
	assert_int_equal(twin_batch(&side, &unit, batch), -EIO);
	assert_non_null(strstr(capture_end(), "a kernel wrote more rows than there can be"));
	free_batch(&side, batch, memory);
	twin_close(&side, &unit);
}

/* As a run without a device, whenever it fails: what it has learned goes with it. */
static void fall_back_at(int at)
{
	const char *set[] = {"unit.kind=opencl", "unit.fallback=cpu"};
	struct sl_unit unit = faulty_unit(&twin_platform);
	const struct sl_unit *const units[] = {&sl_unit_cpu, &unit};
	struct twin_side side[2];

	assert_int_equal(twin_try_open(&side[0], &cases[0], &sl_unit_cpu, NULL, 0), 0);
	assert_int_equal(twin_try_open(&side[1], &cases[0], &unit, set, 2), 0);
	faulty.launch = faulty_launch;
	fail_at = at;
	capture_begin();
	for (int b = 0; b < 4; b++)
		twin_both(&cases[0], side, units, (uint64_t)b * cases[0].batch, cases[0].batch);
	assert_non_null(strstr(capture_end(), "the device was given up"));
	twin_close(&side[0], &sl_unit_cpu);
	twin_close(&side[1], &unit);
}

static void test_the_cpu_goes_on_where_the_device_failed(void **arg)
{
	NEEDS_OPENCL();
	fall_back_at(1); /* the first kernel of all */
	fall_back_at(7); /* the first one of the third batch */
}

/* An error that comes after the launch, or no answer at all. How often the device has said that it
 * is not done yet must not matter: it was asked until it was. */
static void stand_in(const struct twin_case *c, int error, bool ever, int silence)
{
	const char *set[] = {trigger, "unit.kind=opencl", "unit.fallback=cpu",
			     "unit.timeout_ms=50"};
	struct sl_unit unit = faulty_unit(&twin_platform);
	const struct sl_unit *const units[] = {&sl_unit_cpu, &unit};
	struct twin_side side[2];
	unsigned kept = 0;

	assert_int_equal(twin_try_open(&side[0], c, &sl_unit_cpu, NULL, 0), 0);
	assert_int_equal(twin_try_open(&side[1], c, &unit, set, silence ? 4 : 3), 0);
	faulty.reached = faulty_reached;
	faulty.problem = faulty_problem;
	error_at = error;
	for_good = ever;
	silent_at = silence;
	busy = ever ? 0 : 5;
	capture_begin();
	for (int b = 0; b < 4; b++)
		kept += twin_both(c, side, units, (uint64_t)b * c->batch, c->batch);
	assert_non_null(strstr(capture_end(), silence ? "given up: it did not answer in time"
						      : "given up: on the device: words of"));
	assert_true(kept > 0);
	assert_int_equal(error ? busy : 0, 0);
	silent = false;
	silent_at = 0;
	twin_close(&side[0], &sl_unit_cpu);
	twin_close(&side[1], &unit);
}

static void test_the_cpu_goes_on_after_an_error_that_comes_late(void **arg)
{
	NEEDS_OPENCL();
	for (int at = 1; at <= 6; at++) {
		stand_in(case_of("counts of 32 bits"), at, at % 2, 0);
		stand_in(case_of("photons, no dark frames"), at, false, 0);
	}
}

/* Kernels that have run have learned, and the CPU learns it again: the frames have their results,
 * but these may differ, which is said. */
static void test_what_may_be_learned_twice_is_told(void **arg)
{
	const char *set[] = {trigger, "unit.kind=opencl", "unit.fallback=cpu"}, *said;
	struct sl_unit unit = faulty_unit(&twin_platform);
	struct sl_batch *batch;
	struct twin_side side;
	char *memory;

	NEEDS_OPENCL();
	assert_int_equal(twin_try_open(&side, &cases[0], &unit, set, 3), 0);
	faulty.reached = faulty_reached;
	error_at = 1;
	batch = one_batch(&side, &cases[0], &memory, 0);
	capture_begin();
	assert_int_equal(twin_batch(&side, &unit, batch), 0);
	said = capture_end();
	assert_non_null(strstr(said, "dark frames may have been learned from twice"));
	assert_null(strstr(said, "stage 'veto'"));
	free_batch(&side, batch, memory);
	twin_close(&side, &unit);
}

/* Verdicts go into memory of the unit's own first. */
static void test_the_cpu_goes_on_where_only_verdicts_were_awaited(void **arg)
{
	NEEDS_OPENCL();
	stand_in(&cases[0], 0, false, 1);
	stand_in(case_of("lists of 32 bits"), 0, false, 3);
}

/* Results go straight into frames: nobody else may write there. */
static void refuse_what_may_be_written(int error, int silence)
{
	const char *set[] = {trigger, "unit.kind=opencl", "unit.fallback=cpu",
			     "unit.timeout_ms=20"};
	struct sl_unit unit = faulty_unit(&twin_platform);
	struct twin_side side;

	assert_int_equal(twin_try_open(&side, &cases[0], &unit, set, 4), 0);
	faulty.reached = faulty_reached;
	error_at = error;
	silent_at = silence;
	expect_refusals(&unit, &side, "it may still write into results: the CPU cannot go on");
	silent = false;
	silent_at = 0;
	twin_close(&side, &unit);
}

static void test_the_cpu_does_not_go_on_while_results_may_be_written(void **arg)
{
	NEEDS_OPENCL();
	refuse_what_may_be_written(0, 2);
	refuse_what_may_be_written(2, 2); /* an error, and no rest after it */
}

static void test_without_a_device_the_cpu_stands_in_from_the_start(void **arg)
{
	const char *set[] = {"unit.kind=opencl", "unit.fallback=cpu", "unit.device=200"};
	const struct sl_unit *const units[] = {&sl_unit_cpu, &sl_unit_opencl};
	struct twin_side side[2];
	unsigned kept = 0;

	assert_int_equal(twin_try_open(&side[0], &cases[0], &sl_unit_cpu, NULL, 0), 0);
	capture_begin();
	assert_int_equal(twin_try_open(&side[1], &cases[0], &sl_unit_opencl, set, 3), 0);
	assert_non_null(strstr(capture_end(), "goes on with the CPU"));
	for (uint64_t b = 0; b < BATCHES; b++)
		kept += twin_both(&cases[0], side, units, b * 8, 8);
	assert_true(kept > 0);
	twin_close(&side[0], &sl_unit_cpu);
	twin_close(&side[1], &sl_unit_opencl);
}

static void test_a_stage_of_the_cpu_cannot_come_between(void **arg)
{
	static const struct twin_case between = {"between",  "stages: [correct, prescale, veto]",
						 NULL,	     SMALL(2, 7, 33),
						 .batch = 8, .dtype = SL_U16};
	const char *set[] = {"unit.kind=opencl"};
	struct twin_side side;

	capture_begin();
	assert_int_equal(twin_try_open(&side, &between, &sl_unit_opencl, set, 1), -EINVAL);
	assert_non_null(strstr(capture_end(), "stage 'prescale' runs on the CPU only"));
	twin_close(&side, &sl_unit_opencl);
}

static void test_order_can_only_be_given_up_by_stages_that_learn_nothing(void **arg)
{
	const char *set[] = {"unit.kind=opencl", "unit.order=any"};
	struct twin_side side;

	capture_begin();
	assert_int_equal(twin_try_open(&side, &cases[0], &sl_unit_opencl, set, 2), -EINVAL);
	assert_non_null(strstr(capture_end(), "learns from frame to frame"));
	twin_close(&side, &sl_unit_opencl);
}

/* ---- many batches at once ---- */

/* Until all are back, with as many on the device as it takes. */
static void run_many(struct twin_side *side, const struct sl_unit *unit, struct sl_batch **batch,
		     unsigned n)
{
	unsigned given = 0, back = 0;

	while (back < n) {
		struct sl_batch *done;

		if (given < n && given - back < 6 &&
		    !unit->submit(side->experiment->unit_state, batch[given]))
			given++;
		unit->work(side->experiment->unit_state, 0);
		while (unit->reap(side->experiment->unit_state, &done)) {
			assert_ptr_equal(done, batch[back]); /* in order */
			assert_int_equal(done->status, 0);
			back++;
		}
	}
}

static void overlap(const struct twin_case *c, const char *const *set, size_t sets)
{
	enum { MANY = 6 };
	struct sl_batch *batch[2][MANY];
	struct twin_side side[2];
	char *memory[2][MANY];
	unsigned kept = 0;

	assert_int_equal(twin_try_open(&side[0], c, &sl_unit_cpu, NULL, 0), 0);
	assert_int_equal(twin_try_open(&side[1], c, &sl_unit_opencl, set, sets), 0);
	for (int s = 0; s < 2; s++) {
		for (int b = 0; b < MANY; b++)
			batch[s][b] = one_batch(&side[s], c, &memory[s][b], (uint64_t)b * c->batch);
		run_many(&side[s], s ? &sl_unit_opencl : &sl_unit_cpu, batch[s], MANY);
	}
	for (int b = 0; b < MANY; b++)
		for (uint32_t f = 0; f < c->batch; f++)
			kept += twin_compare(c, batch[0][b]->frame[f], batch[1][b]->frame[f]);
	assert_true(kept > 0);
	for (int s = 0; s < 2; s++) {
		for (int b = 0; b < MANY; b++)
			free_batch(&side[s], batch[s][b], memory[s][b]);
		twin_close(&side[s], s ? &sl_unit_opencl : &sl_unit_cpu);
	}
}

static void test_batches_overlap_and_come_back_in_order(void **arg)
{
	const char *const lanes[] = {trigger, "unit.kind=opencl", "unit.lanes=3"};
	const char *const any[] = {trigger, "unit.kind=opencl", "unit.lanes=4", "unit.order=any"};

	NEEDS_OPENCL();
	overlap(case_of("photons, eight at a time"), lanes, 3);
	overlap(case_of("counts of 32 bits"), any, 4);
	overlap(case_of("lists of 32 bits"), any, 4);
	overlap(case_of("rings"), any, 4);
	overlap(case_of("tracks, fits"), any, 4);
}

/* ---- two units at once, each with a thread of its own as in a run ---- */

struct crew {
	struct twin_side *side;
	_Atomic bool stop;
};

static void *work_until_stopped(void *arg)
{
	struct crew *crew = arg;

	while (!crew->stop)
		sl_unit_opencl.work(crew->side->experiment->unit_state, 0);
	return NULL;
}

/* Both have as many batches as they take, one after the other from here. */
static void run_two(struct twin_side *side, struct sl_batch *(*batch)[6], unsigned n)
{
	unsigned given[2] = {0}, back[2] = {0};

	while (back[0] < n || back[1] < n)
		for (int u = 0; u < 2; u++) {
			struct sl_batch *done;

			if (given[u] < n && !sl_unit_opencl.submit(side[u].experiment->unit_state,
								   batch[u][given[u]]))
				given[u]++;
			while (sl_unit_opencl.reap(side[u].experiment->unit_state, &done)) {
				assert_ptr_equal(done, batch[u][back[u]++]);
				assert_int_equal(done->status, 0);
			}
		}
}

static void test_two_units_at_once(void **arg)
{
	enum { MANY = 6 };
	const char *const set[] = {trigger, "unit.kind=opencl", "unit.lanes=2"};
	const struct twin_case *c[] = {case_of("photons"), case_of("lists by radius")};
	struct sl_batch *batch[2][MANY], *cpu;
	struct twin_side side[2], alone;
	char *memory[2][MANY], *own;
	struct crew crew[2];
	pthread_t thread[2];

	NEEDS_OPENCL();
	for (int u = 0; u < 2; u++) {
		assert_int_equal(twin_try_open(&side[u], c[u], &sl_unit_opencl, set, 3), 0);
		for (int b = 0; b < MANY; b++)
			batch[u][b] =
				one_batch(&side[u], c[u], &memory[u][b], (uint64_t)b * c[u]->batch);
		crew[u].side = &side[u];
		crew[u].stop = false;
		assert_int_equal(pthread_create(&thread[u], NULL, work_until_stopped, &crew[u]), 0);
	}
	run_two(side, batch, MANY);
	for (int u = 0; u < 2; u++) {
		unsigned kept = 0;

		crew[u].stop = true;
		pthread_join(thread[u], NULL);
		assert_int_equal(twin_try_open(&alone, c[u], &sl_unit_cpu, NULL, 0), 0);
		for (int b = 0; b < MANY; b++) {
			cpu = one_batch(&alone, c[u], &own, (uint64_t)b * c[u]->batch);
			assert_int_equal(twin_batch(&alone, &sl_unit_cpu, cpu), 0);
			for (uint32_t f = 0; f < c[u]->batch; f++)
				kept += twin_compare(c[u], cpu->frame[f], batch[u][b]->frame[f]);
			free_batch(&alone, cpu, own);
			free_batch(&side[u], batch[u][b], memory[u][b]);
		}
		assert_true(kept > 0);
		twin_close(&alone, &sl_unit_cpu);
		twin_close(&side[u], &sl_unit_opencl);
	}
}

static int begin(void **arg)
{
	twin_device_init();
	return 0;
}

static int begin_waiting(void **arg)
{
	if (!opencl_is_this_cpu())
		return 0; /* the same again */
	trigger = triggers[2];
	return 0;
}

static int end_waiting(void **arg)
{
	trigger = triggers[0];
	return 0;
}

static int end(void **arg)
{
	return twin_device_fini();
}

#define WAITING(test) cmocka_unit_test_setup_teardown(test, begin_waiting, end_waiting)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_results_are_those_of_the_cpu),
		cmocka_unit_test(test_edges_of_images_are_those_of_the_cpu),
		cmocka_unit_test(test_no_memory_is_said_and_nothing_is_left),
		cmocka_unit_test(test_a_kernel_that_fails_is_named_and_frames_refused),
		cmocka_unit_test(test_an_error_after_the_launch_is_told_and_frames_refused),
		cmocka_unit_test(test_a_device_that_does_not_answer_is_given_up),
		cmocka_unit_test(test_a_device_that_comes_to_rest_is_closed_and_another_is_left),
		cmocka_unit_test(test_no_wait_is_without_an_end),
		cmocka_unit_test(test_a_unit_is_closed_while_batches_are_there),
		cmocka_unit_test(test_a_kernel_that_polls_and_does_not_answer_is_given_up),
		cmocka_unit_test(test_only_stages_that_poll_can_be_persistent),
		cmocka_unit_test(test_what_is_unlike_the_cpu_is_counted_and_named),
		cmocka_unit_test(test_rows_that_cannot_be_are_not_copied),
		cmocka_unit_test(test_the_cpu_goes_on_where_the_device_failed),
		cmocka_unit_test(test_the_cpu_goes_on_after_an_error_that_comes_late),
		cmocka_unit_test(test_what_may_be_learned_twice_is_told),
		cmocka_unit_test(test_the_cpu_goes_on_where_only_verdicts_were_awaited),
		cmocka_unit_test(test_the_cpu_does_not_go_on_while_results_may_be_written),
		cmocka_unit_test(test_without_a_device_the_cpu_stands_in_from_the_start),
		cmocka_unit_test(test_a_stage_of_the_cpu_cannot_come_between),
		cmocka_unit_test(test_order_can_only_be_given_up_by_stages_that_learn_nothing),
		cmocka_unit_test(test_batches_overlap_and_come_back_in_order),
		cmocka_unit_test(test_two_units_at_once),
		/* Once more, with kernels that are queued ahead. */
		WAITING(test_an_error_after_the_launch_is_told_and_frames_refused),
		WAITING(test_a_device_that_does_not_answer_is_given_up),
		WAITING(test_a_device_that_comes_to_rest_is_closed_and_another_is_left),
		WAITING(test_no_wait_is_without_an_end),
		WAITING(test_a_unit_is_closed_while_batches_are_there),
		WAITING(test_the_cpu_goes_on_after_an_error_that_comes_late),
		WAITING(test_what_may_be_learned_twice_is_told),
		WAITING(test_the_cpu_goes_on_where_only_verdicts_were_awaited),
		WAITING(test_the_cpu_does_not_go_on_while_results_may_be_written),
		WAITING(test_batches_overlap_and_come_back_in_order),
		WAITING(test_two_units_at_once),
	};

	/* Threads of a driver are none that a sanitizer knows of. */
	if (getenv("SLUICE_SANITIZER") && !strcmp(getenv("SLUICE_SANITIZER"), "tsan")) {
		puts("1..0 # skipped: drivers of devices do not say what their threads do");
		return 0;
	}
	/* PoCL optimizes all kernels of a program, then again those that run: the latter will do.
	 * It is the greater part of the time. */
	setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 0);
	unit_opencl = sl_unit_opencl;
	unit_opencl.open = open_kept;
	cmocka_set_test_filter(getenv("SLUICE_TESTS")); /* tools/check_gpu.sh runs some */
	return cmocka_run_group_tests_name("twins", tests, begin, end);
}
