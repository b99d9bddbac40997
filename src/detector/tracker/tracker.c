/* tracker.c - the outer tracker of CMS as its level-1 track trigger sees it: stubs, sector by
 * sector (sluice/events.h says how they are written).
 *
 * The detector is 288 sectors, 32 in phi by 9 in eta, which overlap. A module is a board that has
 * some of them, by default the nine of one wedge in phi, so that 32 modules are all; every module
 * has its part of every event. Row event * sectors + s of module m is sector m * sectors + s.
 * Blocks are made once, as a pool, and replayed; dark ones have a little noise.
 *
 * Cost: nothing but a pointer once the pool is there; about a millisecond an event to make it,
 * whatever part of the detector is wanted. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/detector.h>
#include <sluice/random.h>

#include "base/log.h"
#include "detector/tracker/event.h"
#include "detector/tracker/picture.h"

enum { KEY_BRIGHT = 1, KEY_DARK, KEY_ORDER };
enum { WAITING = 1024 }; /* stubs of a sector before the board cuts at 160 */

struct block { /* of all modules */
	/* [modules][module_bytes]; NULL: not made yet. Set last: with it the others hold. */
	uint8_t *_Atomic bytes;
	double *truth; /* [tracks][TRUTH_COLUMNS] */
	uint32_t tracks;
};

struct waiting { /* a sector while an event is made */
	uint32_t stubs;
	struct sl_stub stub[WAITING];
};

struct tracker {
	double pile_up, jets, pt_cut_GeV, efficiency, background;
	uint32_t events, sectors, pool;

	uint32_t modules, all; /* all: sectors of all modules */
	uint64_t seed, period_ns, module_bytes;
	bool has_darks;
	struct sl_tracker_setup setup;
	float *normal;		     /* [SL_NORMAL_ENTRIES] */
	struct block *bright, *dark; /* [pool] */
	pthread_mutex_t making;	     /* a block; guards: */
	struct sl_tracker_event *event;
	struct waiting *waiting; /* [all] */
};

static const struct sl_option options[] = {
	SL_U32(struct tracker, events, 4, 1, 64, "events", "in a block"),
	SL_U32(struct tracker, sectors, 9, 1, SL_TRACKER_SECTORS, "sectors",
	       "of a module; 32 modules of 9 are the whole detector"),
	SL_F64(struct tracker, pile_up, 140, 0, 300, "collisions", "mean, beside the hard one"),
	SL_F64(struct tracker, jets, 6, 0, 20, "jets", "of the hard collision"),
	SL_F64(struct tracker, pt_cut_GeV, 3, 2, 20, "GeV",
	       "modules make no stubs of what is slower across the beam"),
	SL_F64(struct tracker, efficiency, 0.95, 0, 1, "", "of a layer to see a track"),
	SL_F64(struct tracker, background, 1, 0, 3, "",
	       "stubs of no track; 1: 65 stubs in a sector at a pile-up of 140, 90 at 200"),
	SL_U32(struct tracker, pool, 31, 1, 4096, "blocks",
	       "different blocks, then they repeat; a prime that does not divide the number of "
	       "slots"),
	SL_OPTION_END};

static const struct sl_truth_column truth_columns[] = {
	{"event", ""},	{"pt", "GeV/c"}, {"phi0", "rad"}, {"eta", ""},	 {"z0", "cm"},
	{"charge", ""}, {"sector", ""},	 {"sectors", ""}, {"stubs", ""}, {NULL, NULL}};
enum { TRUTH_COLUMNS = sizeof(truth_columns) / sizeof(*truth_columns) - 1 };
enum { EVENT, PT, PHI0, ETA, Z0, CHARGE };

static int allocate(struct tracker *t)
{
	t->normal = calloc(SL_NORMAL_ENTRIES, sizeof(*t->normal));
	t->bright = calloc(t->pool, sizeof(*t->bright));
	t->dark = calloc(t->pool, sizeof(*t->dark));
	t->event = malloc(sizeof(*t->event));
	t->waiting = malloc(t->all * sizeof(*t->waiting));
	if (t->normal && t->bright && t->dark && t->event && t->waiting)
		return 0;
	sl_error("tracker: no memory for the tables of %u blocks of %u sectors", t->pool, t->all);
	return -ENOMEM;
}

static int open_tracker(void *state, const struct sl_detector_options *run,
			struct sl_geometry *geometry)
{
	struct tracker *t = state;
	int err;

	pthread_mutex_init(&t->making, NULL);
	if (run->modules * t->sectors > SL_TRACKER_SECTORS) {
		sl_error("tracker: %u modules of %u sectors are more than the detector has, %u; "
			 "set modules or sectors lower",
			 run->modules, t->sectors, SL_TRACKER_SECTORS);
		return -EINVAL;
	}
	t->modules = run->modules;
	t->all = t->modules * t->sectors;
	t->seed = run->seed;
	t->period_ns = sl_detector_period_ns(run);
	t->has_darks = run->dark_frames || run->dark_every;
	t->module_bytes = (uint64_t)t->events * t->sectors * SL_TRACKER_ROW_BYTES;
	err = allocate(t);
	if (err)
		return err;
	sl_normal_fill(t->normal);
	t->setup = (struct sl_tracker_setup){
		.pile_up = t->pile_up,
		.jets = t->jets,
		.pt_cut_GeV = t->pt_cut_GeV,
		.efficiency = t->efficiency,
		.background = t->background,
		.normal = t->normal,
	};
	*geometry = (struct sl_geometry){
		.detector = "tracker",
		.modules = t->modules,
		.rows = t->events * t->sectors,
		.columns = SL_TRACKER_ROW_BYTES,
		.dtype = SL_U8,
		.bit_depth = 8,
		.module_bytes = t->module_bytes,
		.items = t->events,
		.items_shared = true,
	};
	return 0;
}

static void close_tracker(void *state)
{
	struct tracker *t = state;

	for (uint32_t i = 0; i < t->pool; i++) {
		if (t->bright) {
			free(t->bright[i].bytes);
			free(t->bright[i].truth);
		}
		if (t->dark)
			free(t->dark[i].bytes);
	}
	free(t->normal);
	free(t->bright);
	free(t->dark);
	free(t->event);
	free(t->waiting);
	pthread_mutex_destroy(&t->making);
}

/* ---- making a block ---- */

static void deal(struct tracker *t)
{
	for (uint32_t i = 0; i < t->all; i++)
		t->waiting[i].stubs = 0;
	for (uint32_t i = 0; i < t->event->stubs; i++) {
		const struct sl_tracker_stub *stub = &t->event->stub[i];
		struct sl_tracker_sectors s = sl_tracker_sectors(&t->setup, stub);

		for (uint32_t p = 0; p < s.phis; p++) {
			uint32_t phi = (s.phi + p) % SL_TRACKER_PHI_SECTORS;
			uint32_t sector = phi * SL_TRACKER_ETA_SECTORS + s.eta;

			for (uint32_t e = 0; e < s.etas && sector < t->all; e++, sector++) {
				struct waiting *w = &t->waiting[sector];

				if (w->stubs < WAITING)
					w->stub[w->stubs++] = sl_tracker_digitise(stub, phi);
			}
		}
	}
}

/* In no order: a shuffle, as far as stubs are kept. */
static void read_out(struct waiting *w, uint64_t key, uint8_t *row)
{
	uint32_t n = w->stubs < SL_STUBS ? w->stubs : SL_STUBS;

	memset(row, 0, SL_TRACKER_ROW_BYTES);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = i + (uint32_t)(sl_draw(key, i) % (w->stubs - i));

		sl_stub_pack(&w->stub[j], row + (size_t)i * SL_STUB_BYTES);
		w->stub[j] = w->stub[i];
	}
}

/* The tracks of sectors that are there: others cannot be found. */
static int note_tracks(const struct tracker *t, uint32_t event, struct block *block)
{
	const struct sl_tracker_event *e = t->event;
	double *truth = realloc(block->truth, ((size_t)block->tracks + e->tracks + 1) *
						      TRUTH_COLUMNS * sizeof(*truth));

	if (!truth)
		return -ENOMEM;
	block->truth = truth;
	for (uint32_t i = 0; i < e->tracks; i++) {
		const struct sl_tracker_track *k = &e->track[i];
		const double values[TRUTH_COLUMNS] = {event,	 k->pt_GeV,  k->phi0,
						      k->eta,	 k->z0_cm,   k->charge,
						      k->sector, k->sectors, k->stubs};

		if (k->sector < t->all)
			memcpy(truth + (size_t)block->tracks++ * TRUTH_COLUMNS, values,
			       sizeof(values));
	}
	return 0;
}

/* Where in a block the row of a sector is. */
static uint64_t row_at(const struct tracker *t, uint32_t event, uint32_t sector)
{
	return sector / t->sectors * t->module_bytes +
	       (uint64_t)(event * t->sectors + sector % t->sectors) * SL_TRACKER_ROW_BYTES;
}

static int make(struct tracker *t, uint32_t entry, bool is_dark, struct block *block)
{
	uint64_t key = sl_key(sl_key(t->seed, is_dark ? KEY_DARK : KEY_BRIGHT), entry);
	uint8_t *bytes = malloc(t->modules * t->module_bytes);

	if (!bytes)
		return -ENOMEM;
	block->tracks = 0; /* also after a try for which there was no memory */
	for (uint32_t event = 0; event < t->events; event++) {
		uint64_t event_key = sl_key(key, event), order = sl_key(event_key, KEY_ORDER);

		sl_tracker_event(&t->setup, event_key, is_dark, t->event);
		deal(t);
		for (uint32_t i = 0; i < t->all; i++)
			read_out(&t->waiting[i], sl_key(order, i), bytes + row_at(t, event, i));
		if (!is_dark && note_tracks(t, event, block)) {
			free(bytes);
			return -ENOMEM;
		}
	}
	atomic_store_explicit(&block->bytes, bytes, memory_order_release);
	return 0;
}

static int make_once(struct tracker *t, uint32_t entry, bool is_dark, struct block *block)
{
	int err = 0;

	pthread_mutex_lock(&t->making);
	if (!block->bytes)
		err = make(t, entry, is_dark, block);
	pthread_mutex_unlock(&t->making);
	return err;
}

/* The block of a frame, made if need be; NULL: no memory. A record that says "dark" in a run
 * without dark frames leads to a block that prepare() did not make: threads of all modules may come
 * here for it at once. */
static const struct block *block_of(struct tracker *t, uint64_t frame, bool is_dark)
{
	uint32_t entry = (uint32_t)(frame % t->pool);
	struct block *block = &(is_dark ? t->dark : t->bright)[entry];

	if (!atomic_load_explicit(&block->bytes, memory_order_acquire) &&
	    make_once(t, entry, is_dark, block))
		return NULL;
	return block;
}

/* ---- as a detector ---- */

static int render(void *state, uint64_t frame, uint32_t module, uint32_t flags, void *buffer,
		  const void **pixels)
{
	struct tracker *t = state;
	const struct block *block;

	if (module >= t->modules)
		return -EINVAL;
	block = block_of(t, frame, flags & SL_RECORD_DARK);
	if (!block)
		return -ENOMEM;
	*pixels = block->bytes + module * t->module_bytes;
	return 0;
}

static int prepare(void *state)
{
	struct tracker *t = state;

	for (uint32_t entry = 0; entry < t->pool; entry++)
		if (!block_of(t, entry, false) || (t->has_darks && !block_of(t, entry, true))) {
			sl_error("tracker: no memory for a pool of %u blocks of %u events in %u "
				 "sectors; set pool, events, modules or sectors lower",
				 t->pool, t->events, t->all);
			return -ENOMEM;
		}
	return 0;
}

static void truth(void *state, uint64_t frame, uint32_t flags, struct sl_truth *truth)
{
	const struct block *block = flags & SL_RECORD_DARK ? NULL : block_of(state, frame, false);
	uint32_t tracks = block ? block->tracks : 0;

	*truth = (struct sl_truth){.hit = tracks > 0, .spots = tracks};
}

static uint32_t truth_rows(void *state, uint64_t frame, uint32_t flags, double *table,
			   uint32_t most)
{
	const struct block *block = flags & SL_RECORD_DARK ? NULL : block_of(state, frame, false);

	if (!block)
		return 0;
	if (most > block->tracks)
		most = block->tracks;
	if (most)
		memcpy(table, block->truth, (size_t)most * TRUTH_COLUMNS * sizeof(*table));
	return block->tracks;
}

static uint64_t timestamp(void *state, uint64_t frame)
{
	return frame * ((struct tracker *)state)->period_ns;
}

static int picture(void *state, uint64_t frame, uint32_t flags, uint32_t item, uint8_t *rgb,
		   uint32_t rows, uint32_t columns)
{
	struct tracker *t = state;
	bool is_dark = flags & SL_RECORD_DARK;
	const struct block *block = item < t->events ? block_of(t, frame, is_dark) : NULL;
	struct sl_canvas canvas = {.rgb = rgb, .rows = rows, .columns = columns};

	if (!block)
		return item < t->events ? -ENOMEM : -EINVAL;
	sl_tracker_picture_begin(&canvas, t->all);
	for (uint32_t sector = 0; sector < t->all; sector++)
		sl_tracker_picture_stubs(&canvas, t->all, sector,
					 block->bytes + row_at(t, item, sector));
	for (uint32_t i = 0; i < block->tracks; i++) {
		const double *k = block->truth + (size_t)i * TRUTH_COLUMNS;

		if (k[EVENT] == item)
			sl_tracker_picture_track(&canvas, t->all, k[PHI0], k[CHARGE] / k[PT]);
	}
	return 0;
}

static uint32_t repeats_after(const void *state)
{
	return ((const struct tracker *)state)->pool;
}

const struct sl_detector sl_detector_tracker = {
	.name = "tracker",
	.doc = "CMS track trigger: 288 overlapping sectors with up to 160 stubs, pile-up, tracks",
	.state_bytes = sizeof(struct tracker),
	.options = options,
	.rate_Hz = 40e6 / 4,
	.truth_columns = truth_columns,
	.open = open_tracker,
	.close = close_tracker,
	.render = render,
	.prepare = prepare,
	.truth = truth,
	.truth_rows = truth_rows,
	.timestamp = timestamp,
	.parallel = 1,
	.picture = picture,
	.repeats_after = repeats_after,
};
