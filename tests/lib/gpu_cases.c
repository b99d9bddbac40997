/* gpu_cases.c - see gpu_cases.h. */
#include "lib/gpu_cases.h"

static int open_kept(void *state, const struct sl_chain *chain, struct sl_bell *todo,
		     struct sl_bell *done, unsigned *workers)
{
	return sl_accelerator_open(state, &gpu_platform, chain, todo, done, workers);
}

struct sl_unit unit_opencl;

const struct gpu_case gpu_cases[] = {
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
	{"correlation of the image", "stages: [correct, correlate: {levels: 4, channels: 8}]", NULL,
	 SMALL(2, 7, 33), .batch = 8, .dtype = SL_U16},
	{"correlation of rings, rows of some frames, missing modules",
	 "stages: [correct, veto: {min_pixels: 40}, correlate: {regions: rings, rings: 5, unit: "
	 "r_pixels, levels: 3, channels: 8, every: 3}]",
	 NULL, SMALL(3, 6, 40), .batch = 11, .dtype = SL_U16, .missing = true, .bound = 1e-14},
	{"correlation of keV, frames that are rejected",
	 "stages: [correct: {output: kev_f32}, correlate: {regions: rings, rings: 3, unit: "
	 "r_pixels, levels: 2, every: 1}]",
	 NULL, SMALL(2, 40, 70), .batch = 9, .dtype = SL_U16, .rejects = true, .bound = 1e-14},
	{"correlation of pixels, 8 bits",
	 "stages: [correlate: {regions: pixels, levels: 3, channels: 24}]", NULL, SMALL(2, 7, 33),
	 .batch = 9, .dtype = SL_U8, .missing = true, .jumps = true},
	{"correlation of counts of 16 bits, pitch",
	 "stages: [correlate: {levels: 14, channels: 8, every: 5}]", NULL, SMALL(2, 40, 70),
	 .batch = 7, .dtype = SL_U16, .pitch = true, .jumps = true, .bound = 1e-14},
	{"correlation of counts of 32 bits", "stages: [correlate: {levels: 2, every: 100}]", NULL,
	 SMALL(2, 7, 33), .batch = 16, .dtype = SL_U32, .no_darks = true, .bound = 1e-14},
	{"one of its own before", "stages: [copy, correct, veto: {min_pixels: 40}]", NULL,
	 SMALL(2, 7, 33), .batch = 8, .dtype = SL_U16},
};

const struct gpu_case *case_of(const char *name)
{
	size_t i = 0;

	while (strcmp(gpu_cases[i].name, name))
		i++;
	return &gpu_cases[i];
}

const char *const gpu_triggers[] = {"unit.trigger=launch", "unit.trigger=graph",
				    "unit.trigger=wait", "unit.trigger=persistent",
				    "unit.trigger=loop"};

void count_figures(void *arg, const char *name, uint64_t value, int failed)
{
	struct counted *counted = arg;

	if (!strcmp(name, "frames_cross_checked"))
		counted->checked = value;
	if (!strcmp(name, "device_ring_frames_published"))
		counted->published = value;
	if (!strcmp(name, "device_ring_frames_unanswered"))
		counted->unanswered = value;
	if (!strcmp(name, "device_ring_frames_good"))
		counted->good = value;
	if (!strcmp(name, "batches_not_launched"))
		counted->not_launched = value;
	if (!strcmp(name, "batches_looped"))
		counted->looped = value;
	if (!strcmp(name, "frames_unlike_the_cpu")) {
		counted->unlike = value;
		assert_true(failed);
	}
	if (!strcmp(name, "frames_unlike_the_cpu_in_image"))
		counted->unlike_image = value;
}

bool opencl_is_this_cpu(void)
{
	struct sl_device_info info = {.is_host = 0};
	struct sl_device *device;

	if (sl_unit_opencl.unavailable() || gpu_device_open(0, &device))
		return false;
	sl_platform_opencl.describe(device, &info);
	gpu_device_close(device);
	return info.is_host;
}

struct sl_batch *one_batch(struct gpu_side *side, const struct gpu_case *c, char **memory,
			   uint64_t first)
{
	struct sl_batch *batch = calloc(1, sizeof(*batch));

	batch->frames = batch->capacity = c->batch;
	batch->frame = calloc(c->batch, sizeof(*batch->frame));
	*memory = calloc(c->batch, gpu_frame_bytes(side));
	for (uint32_t f = 0; f < c->batch; f++) {
		batch->frame[f] = &sl_pool_get(&side->pool)->frame;
		gpu_make(side, c, batch->frame[f], first + f, *memory + f * gpu_frame_bytes(side));
	}
	return batch;
}

void free_batch(struct gpu_side *side, struct sl_batch *batch, char *memory)
{
	for (uint32_t f = 0; f < batch->frames; f++)
		sl_pool_put(&side->pool, (struct sl_flow_frame *)batch->frame[f]);
	free(batch->frame);
	free(batch);
	free(memory);
}

static const void *gpu_state_of(const struct gpu_side *side, const char *stage)
{
	const struct sl_chain *chain = &side->build.chain;

	for (unsigned i = 0; i < chain->stages; i++)
		if (!strcmp(chain->stage[i].ops->name, stage))
			return chain->stage[i].state;
	return NULL;
}

static void gpu_compare_windows(const struct sl_reduce *a, const struct sl_reduce *b)
{
	uint64_t bytes = a->bins * sl_dtype_bytes(a->bin_dtype);

	assert_int_equal(a->window_frames, b->window_frames);
	if (!a->window_frames || a->bin_dtype == SL_F32 || a->bin_dtype == SL_F64)
		return; /* floats have a bound, and are compared when a window is full */
	assert_memory_equal(a->window_sum, b->window_sum, bytes);
	assert_memory_equal(a->window_most, b->window_most, bytes);
}

/* Bit for bit, but for which NaN it is: devices have one of their own. */
static void gpu_compare_floats(const struct gpu_case *c, const char *what, const float *a,
			       const float *b, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (memcmp(&a[i], &b[i], sizeof(*a)) != 0 && !(isnan(a[i]) && isnan(b[i])))
			fail_msg("%s: pixel %llu: %s %.9g, and %.9g on the device", c->name,
				 (unsigned long long)i, what, (double)a[i], (double)b[i]);
}

/* Sums and histories, of the parts of the state that the device keeps. */
static void gpu_compare_correlations(const struct sl_correlate *a, const struct sl_correlate *b)
{
	uint64_t samples = (uint64_t)a->levels * a->channels * a->pixels;

	assert_int_equal(a->frames, b->frames);
	assert_int_equal(a->skipped, b->skipped);
	assert_int_equal(a->restarts, b->restarts);
	assert_int_equal(a->rows, b->rows);
	assert_true(a->frames > 0);
	assert_memory_equal(a->total, b->total, (size_t)a->count * a->lags * sizeof(*a->total));
	for (uint64_t i = 0; i < a->pixels; i++)
		if (a->region[i] != SL_CORRELATE_NONE)
			assert_int_equal(a->next[i], b->next[i]);
	assert_memory_equal(a->history, b->history, samples * sizeof(*a->history));
}

uint64_t gpu_compare_learned(const struct gpu_case *c, struct gpu_side *side,
			     const struct sl_unit *const *unit)
{
	const struct sl_correct *a = gpu_state_of(&side[0], "correct"),
				*b = gpu_state_of(&side[1], "correct");
	uint64_t samples = 0, pixels;

	for (int s = 0; s < 2; s++) {
		unit[s]->close(side[s].experiment->unit_state);
		side[s].unit_open = false;
	}
	if (gpu_state_of(&side[0], "reduce"))
		gpu_compare_windows(gpu_state_of(&side[0], "reduce"),
				    gpu_state_of(&side[1], "reduce"));
	if (gpu_state_of(&side[0], "correlate"))
		gpu_compare_correlations(gpu_state_of(&side[0], "correlate"),
					 gpu_state_of(&side[1], "correlate"));
	if (!a)
		return 0;
	pixels = a->pixels * a->cells;
	for (uint64_t i = 0; i < pixels; i++) {
		if (a->samples[i] != b->samples[i] || a->wrong[i] != b->wrong[i])
			fail_msg("%s: pixel %llu: %u samples and %u wrong ones, and %u and %u on "
				 "the device",
				 c->name, (unsigned long long)i, a->samples[i], a->wrong[i],
				 b->samples[i], b->wrong[i]);
		samples += a->samples[i];
	}
	gpu_compare_floats(c, "sum", a->sum, b->sum, pixels);
	gpu_compare_floats(c, "pedestal", a->pedestal_0, b->pedestal_0, pixels);
	return samples;
}

/* Until all are back, with as many on the device as it takes. */
static void gpu_run_many(struct gpu_side *side, const struct sl_unit *unit, struct sl_batch **batch,
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

void gpu_overlap(const struct gpu_case *c, const struct sl_unit *unit, const char *const *set,
		 size_t sets)
{
	enum { MANY = 6 };
	struct sl_batch *batch[2][MANY];
	const struct sl_unit *const units[] = {&sl_unit_cpu, unit};
	struct gpu_side side[2];
	char *memory[2][MANY];
	unsigned kept = 0;

	assert_int_equal(gpu_try_open(&side[0], c, &sl_unit_cpu, NULL, 0), 0);
	assert_int_equal(gpu_try_open(&side[1], c, unit, set, sets), 0);
	for (int s = 0; s < 2; s++) {
		for (int b = 0; b < MANY; b++)
			batch[s][b] = one_batch(&side[s], c, &memory[s][b], (uint64_t)b * c->batch);
		gpu_run_many(&side[s], s ? unit : &sl_unit_cpu, batch[s], MANY);
	}
	for (int b = 0; b < MANY; b++)
		for (uint32_t f = 0; f < c->batch; f++)
			kept += gpu_compare(c, batch[0][b]->frame[f], batch[1][b]->frame[f]);
	assert_true(kept > 0);
	gpu_compare_learned(c, side, units);
	for (int s = 0; s < 2; s++) {
		for (int b = 0; b < MANY; b++)
			free_batch(&side[s], batch[s][b], memory[s][b]);
		gpu_close(&side[s], s ? unit : &sl_unit_cpu);
	}
}

void gpu_close_after(const struct sl_unit *unit, const char *const *set, size_t sets, int steps)
{
	enum { MANY = 3 };
	struct sl_batch *batch[MANY];
	struct gpu_side side;
	char *memory[MANY];

	assert_int_equal(gpu_try_open(&side, &gpu_cases[0], unit, set, sets), 0);
	for (uint64_t b = 0; b < MANY; b++) {
		batch[b] = one_batch(&side, &gpu_cases[0], &memory[b], b * gpu_cases[0].batch);
		assert_int_equal(unit->submit(side.experiment->unit_state, batch[b]), 0);
	}
	for (int i = 0; i < steps; i++)
		unit->work(side.experiment->unit_state, 0);
	unit->close(side.experiment->unit_state);
	side.unit_open = false;
	for (int b = 0; b < MANY; b++)
		free_batch(&side, batch[b], memory[b]);
	gpu_close(&side, unit);
}

int gpu_begin(void **arg)
{
	gpu_device_init();
	return 0;
}

int gpu_end(void **arg)
{
	return gpu_device_fini();
}

int gpu_main(void)
{
	/* Threads of a driver are none that a sanitizer knows of. */
	if (getenv("SLUICE_SANITIZER") && !strcmp(getenv("SLUICE_SANITIZER"), "tsan")) {
		puts("1..0 # skipped: drivers of devices do not say what their threads do");
		return 1;
	}
	/* PoCL optimizes all kernels of a program, then again those that run: the latter will do.
	 * It is the greater part of the time. */
	setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 0);
	/* Groups of a kernel that polls must all run at once; half of the threads are theirs. */
	setenv("POCL_MAX_PTHREAD_COUNT", "8", 0);
	unit_opencl = sl_unit_opencl;
	unit_opencl.open = open_kept;
	cmocka_set_test_filter(getenv("SLUICE_TESTS")); /* tools/check_gpu.sh runs some */
	return 0;
}

const size_t gpu_case_count = sizeof(gpu_cases) / sizeof(gpu_cases[0]);
const size_t gpu_trigger_count = sizeof(gpu_triggers) / sizeof(gpu_triggers[0]);
