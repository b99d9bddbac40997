/* rich.c - the ring-imaging Cherenkov detector of NA62: many small events in a block, each the hits
 * of one kaon decay (sluice/events.h says how they are written).
 *
 * A module is a link from the readout boards. Each carries whole events of its own: 48 bytes at
 * 10 MHz are what four links of 1 Gb/s can take together. So event i of module m of a frame is
 * item m * events + i of that frame. Blocks are made once, as a pool, and replayed; dark ones have
 * noise only.
 *
 * Cost: nothing but a pointer once the pool is there; about two microseconds an event to make it,
 * and 48 bytes of memory, and 56 for each of its rings.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/detector.h>
#include <sluice/random.h>

#include "base/log.h"
#include "detector/canvas.h"
#include "detector/rich/event.h"

enum { KEY_BRIGHT = 1, KEY_DARK };

static const struct sl_truth_column truth_columns[] = {
	{"event", ""},	       {"x", "mm"},	 {"y", "mm"},  {"radius", "mm"},
	{"momentum", "GeV/c"}, {"particle", ""}, {"hits", ""}, {NULL, NULL}};
enum { TRUTH_COLUMNS = sizeof(truth_columns) / sizeof(*truth_columns) - 1 };

struct block {		/* of one module */
	uint8_t *bytes; /* NULL: not made yet */
	double *truth;	/* [rings][TRUTH_COLUMNS]; dark ones have none */
	uint32_t rings;
};

struct rich {
	double two_rings, three_rings, ring_hits, noise_hits, resolution_mm;
	uint32_t events, pool;

	uint32_t modules;
	uint64_t seed, period_ns;
	bool has_darks;
	struct sl_rich_setup setup;
	float *normal;		     /* [SL_NORMAL_ENTRIES] */
	struct block *bright, *dark; /* [pool][modules] */
	uint32_t *rings;	     /* [pool], of all modules; 0: not counted yet */
};

static const struct sl_option options[] = {
	SL_U32(struct rich, events, 256, 1, 16384, "events",
	       "in a block; 256 on each of four links are 0.1 ms at 10 MHz"),
	SL_F64(struct rich, two_rings, 0.3, 0, 1, "", "share of the events with two rings"),
	SL_F64(struct rich, three_rings, 0.05, 0, 1, "",
	       "share of the events with three rings; all others have one"),
	SL_F64(struct rich, ring_hits, 17, 0, 40, "hits",
	       "mean of a ring of the largest radius, 190 mm; smaller ones have fewer"),
	SL_F64(struct rich, noise_hits, 2, 0, 20, "hits", "mean of an event, anywhere"),
	SL_F64(struct rich, resolution_mm, 4.7, 0, 50, "mm",
	       "RMS of a photon's distance from its ring, before it falls into a cell of 18 mm"),
	SL_U32(struct rich, pool, 127, 1, 65536, "blocks",
	       "different blocks of a module, then they repeat; a prime that does not divide the "
	       "number of slots"),
	SL_OPTION_END};

static int allocate(struct rich *r)
{
	size_t blocks = (size_t)r->pool * r->modules;

	r->normal = calloc(SL_NORMAL_ENTRIES, sizeof(*r->normal));
	r->bright = calloc(blocks, sizeof(*r->bright));
	r->dark = calloc(blocks, sizeof(*r->dark));
	r->rings = calloc(r->pool, sizeof(*r->rings));
	if (r->normal && r->bright && r->dark && r->rings)
		return 0;
	sl_error("rich: no memory for the tables of %u blocks of %u modules", r->pool, r->modules);
	return -ENOMEM;
}

static int open_rich(void *state, const struct sl_detector_options *run,
		     struct sl_geometry *geometry)
{
	struct rich *r = state;
	int err;

	r->modules = run->modules;
	r->seed = run->seed;
	r->period_ns = sl_detector_period_ns(run);
	r->has_darks = run->dark_frames || run->dark_every;
	err = allocate(r);
	if (err)
		return err;
	sl_normal_fill(r->normal);
	r->setup = (struct sl_rich_setup){
		.two_rings = r->two_rings,
		.three_rings = r->three_rings,
		.ring_hits = r->ring_hits,
		.noise_hits = r->noise_hits,
		.resolution_mm = r->resolution_mm,
		.normal = r->normal,
	};
	*geometry = (struct sl_geometry){
		.detector = "rich",
		.modules = r->modules,
		.rows = r->events,
		.columns = SL_RICH_EVENT_BYTES,
		.dtype = SL_U8,
		.bit_depth = 8,
		.module_bytes = (uint64_t)r->events * SL_RICH_EVENT_BYTES,
		.items = r->events,
	};
	return 0;
}

static void close_rich(void *state)
{
	struct rich *r = state;

	for (size_t i = 0; i < (size_t)r->pool * r->modules; i++) {
		if (r->bright) {
			free(r->bright[i].bytes);
			free(r->bright[i].truth);
		}
		if (r->dark) {
			free(r->dark[i].bytes);
			free(r->dark[i].truth);
		}
	}
	free(r->normal);
	free(r->bright);
	free(r->dark);
	free(r->rings);
}

static uint64_t event_key(const struct rich *r, uint32_t entry, uint32_t module, uint32_t event,
			  bool is_dark)
{
	uint64_t key = sl_key(sl_key(r->seed, is_dark ? KEY_DARK : KEY_BRIGHT), entry);

	return sl_key(sl_key(key, module), event);
}

/* Adds an event's rings to the block's truth, which has room. */
static void note_rings(struct block *block, uint32_t item, const struct sl_rich_event *event)
{
	for (uint32_t i = 0; i < event->rings; i++) {
		const struct sl_rich_ring *ring = &event->ring[i];
		const double values[TRUTH_COLUMNS] = {
			item,		ring->x_mm, ring->y_mm, ring->radius_mm, ring->momentum_GeV,
			ring->particle, ring->hits};

		memcpy(block->truth + (size_t)block->rings++ * TRUTH_COLUMNS, values,
		       sizeof(values));
	}
}

static uint32_t count_rings(const struct rich *r, uint32_t entry, uint32_t module)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->events; i++)
		n += sl_rich_event_rings(&r->setup, event_key(r, entry, module, i, false));
	return n;
}

static int make(const struct rich *r, uint32_t entry, uint32_t module, bool is_dark,
		struct block *block)
{
	size_t rings = is_dark ? 0 : count_rings(r, entry, module);
	uint8_t *out = malloc((size_t)r->events * SL_RICH_EVENT_BYTES);
	struct sl_rich_event event;

	block->truth = malloc(rings * TRUTH_COLUMNS * sizeof(*block->truth) + 1);
	if (!out || !block->truth) {
		free(out);
		free(block->truth);
		block->truth = NULL;
		return -ENOMEM;
	}
	block->bytes = out;
	for (uint32_t i = 0; i < r->events; i++, out += SL_RICH_EVENT_BYTES) {
		sl_rich_event(&r->setup, event_key(r, entry, module, i, is_dark), is_dark, &event);
		sl_rich_pack(event.hit, event.hits, out);
		note_rings(block, module * r->events + i, &event);
	}
	return 0;
}

/* A module's block of a frame, made if need be; NULL: no memory. */
static const struct block *block_of(struct rich *r, uint64_t frame, uint32_t module, bool is_dark)
{
	uint32_t entry = (uint32_t)(frame % r->pool);
	struct block *block = &(is_dark ? r->dark : r->bright)[(size_t)entry * r->modules + module];

	return block->bytes || !make(r, entry, module, is_dark, block) ? block : NULL;
}

static int render(void *state, uint64_t frame, uint32_t module, uint32_t flags, void *buffer,
		  const void **pixels)
{
	struct rich *r = state;
	const struct block *block;

	if (module >= r->modules)
		return -EINVAL;
	block = block_of(r, frame, module, flags & SL_RECORD_DARK);
	if (!block)
		return -ENOMEM;
	*pixels = block->bytes;
	return 0;
}

static int prepare(void *state)
{
	struct rich *r = state;
	const void *pixels;
	int err = 0;

	for (uint32_t entry = 0; entry < r->pool && !err; entry++)
		for (uint32_t module = 0; module < r->modules && !err; module++) {
			err = render(r, entry, module, 0, NULL, &pixels);
			if (!err && r->has_darks)
				err = render(r, entry, module, SL_RECORD_DARK, NULL, &pixels);
		}
	if (err)
		sl_error("rich: no memory for a pool of %u blocks of %u events in %u modules; set "
			 "pool, events or modules lower",
			 r->pool, r->events, r->modules);
	return err;
}

static void truth(void *state, uint64_t frame, uint32_t flags, struct sl_truth *truth)
{
	struct rich *r = state;
	uint32_t entry = (uint32_t)(frame % r->pool), n = 0;

	*truth = (struct sl_truth){.hit = false};
	if (flags & SL_RECORD_DARK)
		return;
	if (!r->rings[entry]) {
		for (uint32_t m = 0; m < r->modules; m++)
			n += count_rings(r, entry, m);
		r->rings[entry] = n;
	}
	*truth = (struct sl_truth){.hit = true, .spots = r->rings[entry]};
}

static uint32_t truth_rows(void *state, uint64_t frame, uint32_t flags, double *table,
			   uint32_t most)
{
	struct rich *r = state;
	struct sl_truth all;
	uint32_t row = 0;

	if (flags & SL_RECORD_DARK)
		return 0;
	for (uint32_t m = 0; m < r->modules && row < most; m++) {
		const struct block *block = block_of(r, frame, m, false);
		uint32_t n;

		if (!block)
			return 0;
		n = block->rings < most - row ? block->rings : most - row;
		memcpy(table + (size_t)row * TRUTH_COLUMNS, block->truth,
		       (size_t)n * TRUTH_COLUMNS * sizeof(*table));
		row += n;
	}
	truth(state, frame, flags, &all);
	return all.spots;
}

/* ---- the picture: both disks side by side, lit cells, true rings ---- */

enum {
	WHITE = 0xffffff,
	GREY = 0xe4e4e8,
	OUTLINE = 0x9a9aa4,
	HIT = 0xd02020,
	RING_COLOURS = 3,
};
static const double DISK_MM = 306, DISK_X_MM = 330; /* its radius; of its centre */

static void draw_cell(const struct sl_canvas *canvas, uint32_t cell, uint32_t colour)
{
	double x, y, side = cell < SL_RICH_DISK_CELLS ? -DISK_X_MM : DISK_X_MM;

	sl_rich_position(cell, &x, &y);
	sl_canvas_dot(canvas, x + side, y, 8, colour);
}

/* A ring is drawn on both disks, since its light may be on either. */
static void draw_ring(const struct sl_canvas *canvas, const struct sl_rich_ring *ring)
{
	static const uint32_t colours[RING_COLOURS] = {[SL_RICH_ELECTRON] = 0x20a040,
						       [SL_RICH_MUON] = 0x2050d0,
						       [SL_RICH_PION] = 0x000000};

	for (int side = -1; side <= 1; side += 2) {
		double x = ring->x_mm + side * DISK_X_MM;

		sl_canvas_circle(canvas, x, ring->y_mm, ring->radius_mm, colours[ring->particle]);
		sl_canvas_dot(canvas, x, ring->y_mm, 4, colours[ring->particle]);
	}
}

static int picture(void *state, uint64_t frame, uint32_t flags, uint32_t item, uint8_t *rgb,
		   uint32_t rows, uint32_t columns)
{
	struct rich *r = state;
	struct sl_canvas canvas = {.rgb = rgb, .rows = rows, .columns = columns};
	bool is_dark = flags & SL_RECORD_DARK;
	struct sl_rich_event event;

	if (item >= r->modules * r->events)
		return -EINVAL;
	/* Both disks fit, whichever side is the shorter. */
	canvas.span = 2 * (DISK_X_MM + DISK_MM) + 20;
	if (columns > rows)
		canvas.span *= columns > 2 * rows ? 0.5 : (double)rows / columns;
	sl_rich_event(&r->setup,
		      event_key(r, (uint32_t)(frame % r->pool), item / r->events, item % r->events,
				is_dark),
		      is_dark, &event);
	sl_canvas_clear(&canvas, WHITE);
	for (int side = -1; side <= 1; side += 2)
		sl_canvas_circle(&canvas, side * DISK_X_MM, 0, DISK_MM, OUTLINE);
	for (uint32_t cell = 0; cell < SL_RICH_CELLS; cell++)
		draw_cell(&canvas, cell, GREY);
	for (uint32_t i = 0; i < event.hits; i++)
		draw_cell(&canvas, event.hit[i], HIT);
	for (uint32_t i = 0; i < event.rings; i++)
		draw_ring(&canvas, &event.ring[i]);
	return 0;
}

static uint64_t timestamp(void *state, uint64_t frame)
{
	return frame * ((struct rich *)state)->period_ns;
}

static uint32_t repeats_after(const void *state)
{
	return ((const struct rich *)state)->pool;
}

const struct sl_detector sl_detector_rich = {
	.name = "rich",
	.doc = "NA62 RICH: blocks of events of up to 32 hits, rings of pions, muons and electrons",
	.state_bytes = sizeof(struct rich),
	.options = options,
	.rate_Hz = 1e7 / 256,
	.truth_columns = truth_columns,
	.open = open_rich,
	.close = close_rich,
	.render = render,
	.prepare = prepare,
	.truth = truth,
	.truth_rows = truth_rows,
	.timestamp = timestamp,
	.parallel = 1,
	.picture = picture,
	.picture_aspect = 2,
	.repeats_after = repeats_after,
};
