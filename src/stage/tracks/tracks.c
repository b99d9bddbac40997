/* tracks.c - tracks of the CMS tracker, found sector by sector by a Hough transform; an event with
 * enough of them is kept.
 *
 *   map        q/pT by phi at 67 cm: `columns` by `rows` cells, rectangles or hexagons. A stub is
 *              in the cells along its line (src/stage/tracks/maths.h)
 *   candidate  a cell with stubs of `min_layers` layers
 *   fit        a helix through its stubs, without those too far off; where too few layers are left
 *              it was no track
 *   duplicate  a candidate with stubs of `common` layers in common with a better one, of its own
 *              sector or of one that overlaps with it
 *
 * A frame is a block of events of the detector `tracker`: row event * sectors + s of module m is
 * sector m * sectors + s. Sectors of modules that are missing are empty. The first stub that is
 * not valid ends a row, whatever follows; stubs of layer 0 are left out and counted; those that no
 * track of the sector can have are in no cell.
 *
 * Adds "tracks", float32 [rows][13], one row per track, events in order, then sectors, better ones
 * first; "tracks_stubs", uint16, the stubs of each as indices into the row of its sector, one track
 * after the other, at most `max_stubs` of one; and "tracks_found", uint32 [events][8]: what has
 * become of all the cells (struct sl_tracks_found). The score of an event is its number of tracks
 * of at least `trigger_pt_GeV`; the constant "tracks_wanted" tells the condition.
 *
 * Cells and candidates are the same with all vectors, bit for bit.
 *
 * Cost: a few us for a sector; memory for all candidates of one event. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <sluice/stage.h>

#include "base/log.h"
#include "stage/tracks/maths.h"
#include "stage/tracks/stage.h"
#include "stage/vectors.h"
#include "stage/workspace.h"

enum { EVENT, SECTOR, KEEP }; /* unique */
enum { COLUMNS = 13, MOST_ROWS = 1 << 20 };

static const struct sl_option options[] = {
	SL_CHOICE(struct sl_tracks, cells, hexagons, "rectangles|hexagons|one-hexagon",
		  "of the map; one-hexagon: a stub is in one of a column at most"),
	SL_U32(struct sl_tracks, columns, 32, 4, SL_TRACKS_CELLS, "cells", "of the map, in q/pT"),
	SL_U32(struct sl_tracks, rows, 32, 2, SL_TRACKS_CELLS, "cells", "of the map, in phi"),
	SL_F64(struct sl_tracks, min_pt_GeV, 3, 2, 100, "GeV",
	       "the map goes to here, on both sides of infinity"),
	SL_U32(struct sl_tracks, min_layers, 5, 3, 7, "layers",
	       "that a candidate has stubs of, at least"),
	SL_F64(struct sl_tracks, bend, 3, 0, 100, "deviations",
	       "that the bend of a stub may be off q/pT of a cell; 0: any"),
	SL_BOOL(struct sl_tracks, fit, false,
		"put a helix through the stubs, leave out those that are off, and drop candidates "
		"that have too few layers then"),
	SL_F64(struct sl_tracks, fit_deviations, 4, 1, 1000, "deviations",
	       "that a stub may be off the helix"),
	SL_CHOICE(struct sl_tracks, unique, event, "event|sector|keep",
		  "take out duplicates, of the event or of each sector alone, or keep them"),
	SL_U32(struct sl_tracks, common, 3, 1, 7, "layers", "that duplicates share stubs of"),
	SL_U32(struct sl_tracks, min_tracks, 1, 0, 100000, "tracks",
	       "keep the event when there are at least as many; 0: tracks decide nothing"),
	SL_F64(struct sl_tracks, trigger_pt_GeV, 0, 0, 1000, "GeV", "only those of at least this"),
	SL_U32(struct sl_tracks, max_tracks, 4096, 1, MOST_ROWS, "tracks",
	       "room for as many of a block in the result; all are counted"),
	SL_U32(struct sl_tracks, max_stubs, 31, 1, SL_STUBS, "stubs",
	       "room for as many of a track in the list; all are counted"),
	SL_U32(struct sl_tracks, sector_tracks, 32, 1, SL_TRACKS_MOST, "tracks",
	       "of a sector before duplicates in others are taken out, at most; all are counted"),
	SL_CHOICE(struct sl_tracks, look, kept, "kept|all",
		  "at blocks that no stage before it rejected, or at all"),
	SL_VECTORS_OPTION(struct sl_tracks),
	SL_OPTION_END};

static int check(const struct sl_geometry *g, const struct sl_shape *in)
{
	if (in->dtype != SL_U8 || g->columns != SL_TRACKER_ROW_BYTES || !g->items ||
	    !g->items_shared || g->rows % g->items) {
		sl_error("tracks reads rows of %d bytes, %d stubs of a sector, as detector "
			 "'tracker' has them, not %u x %u %s of detector '%s'",
			 SL_TRACKER_ROW_BYTES, SL_STUBS, g->rows, g->columns,
			 sl_dtype_name(in->dtype), g->detector);
		return -EINVAL;
	}
	if ((uint64_t)g->modules * (g->rows / g->items) > SL_TRACKER_SECTORS) {
		sl_error("tracks: %u modules of %u sectors are more than the tracker has, %d",
			 g->modules, g->rows / g->items, SL_TRACKER_SECTORS);
		return -EINVAL;
	}
	return 0;
}

static void describe(const struct sl_tracks *t, struct sl_stage_terms *terms)
{
	terms->outputs = 3;
	terms->output[0] =
		(struct sl_shape){.name = "tracks",
				  .dtype = SL_F32,
				  .rank = 2,
				  .dim = {t->max_tracks, COLUMNS},
				  .ragged = 1,
				  .doc = "event, sector, q/pT (1/GeV), phi at the beam, phi at "
					 "67.24 cm (rad), layers, stubs, listed, column, "
					 "row, z0 (cm), cot theta, chi2"};
	terms->output[1] =
		(struct sl_shape){.name = "tracks_stubs",
				  .dtype = SL_U16,
				  .rank = 1,
				  .dim = {t->max_tracks * t->max_stubs},
				  .ragged = 1,
				  .doc = "of each track in turn: indices into its sector"};
	terms->output[2] =
		(struct sl_shape){.name = "tracks_found",
				  .dtype = SL_U32,
				  .rank = 2,
				  .dim = {t->events, SL_TRACKS_FOUND},
				  .doc = "tracks, cells, duplicates, misfits, crowded, not in "
					 "the table, stubs of no layer, full sectors"};
}

static void describe_wanted(struct sl_tracks *t, struct sl_stage_terms *terms)
{
	enum { FLOATS = sizeof(t->wanted) / sizeof(float) };

	t->wanted = (struct sl_tracks_wanted){(float)t->min_tracks, (float)t->trigger_pt_GeV};
	terms->constants = 1;
	terms->constant[0] = (struct sl_constant){
		{.name = "tracks_wanted", .dtype = SL_F32, .rank = 1, .dim = {FLOATS}}, &t->wanted};
}

static int open_tracks(void *state, const struct sl_env *env, const struct sl_shape *in,
		       struct sl_stage_terms *terms)
{
	struct sl_tracks *t = state;
	const struct sl_geometry *g = env->geometry;
	uint32_t all;
	int err = check(g, in);

	if (err)
		return err;
	t->events = g->items;
	t->sectors = g->rows / g->items;
	t->modules = g->modules;
	t->result = terms->result;
	all = t->modules * t->sectors;
	sl_tracks_plan(&t->plan,
		       &(struct sl_tracks_settings){
			       .min_pt_GeV = t->min_pt_GeV,
			       .columns = t->columns,
			       .rows = t->rows,
			       .min_layers = t->min_layers,
			       .cells = t->cells,
			       .bend = t->bend,
			       .common = t->unique == KEEP ? 0 : t->common,
			       .between = t->unique == EVENT,
			       .fit = t->fit,
			       .fit_limit = (float)(t->fit_deviations * t->fit_deviations),
			       .sector_tracks = t->sector_tracks,
		       });
	t->calls = sl_tracks_calls(&t->plan, t->vectors);
	describe(t, terms);
	describe_wanted(t, terms);
	sl_workspace_ask(terms, env,
			 sizeof(struct sl_tracks_work) +
				 (size_t)all * t->sector_tracks * sizeof(struct sl_track));
	t->scratch_bytes = terms->scratch_bytes;
	return 0;
}

static void close_tracks(void *state)
{
}

/* ---- one event ---- */

/* Where its sectors' stubs are. */
static void find_rows(const struct sl_tracks *t, const struct sl_frame *frame, uint32_t event,
		      struct sl_tracks_work *work)
{
	for (uint32_t i = 0; i < t->modules * t->sectors; i++) {
		uint32_t m = i / t->sectors, row = event * t->sectors + i % t->sectors;
		const struct sl_array *pixels = &frame->view[m].pixels;
		uint64_t pitch = pixels->pitch ? pixels->pitch : SL_TRACKER_ROW_BYTES;
		bool missing = sl_frame_misses(frame, m) || !pixels->host;

		work->row[i] = missing ? NULL : (const uint8_t *)pixels->host + row * pitch;
	}
}

static void find_tracks(const struct sl_tracks *t, struct sl_tracks_work *work,
			struct sl_tracks_found *found)
{
	uint32_t sectors = t->modules * t->sectors;

	work->end[0] = 0;
	for (uint32_t i = 0; i < sectors; i++) {
		struct sl_track *track = &work->track[work->end[i]];
		uint32_t n = 0;

		if (work->row[i])
			n = sl_tracks_sector(&t->plan, &t->calls, work->row[i], work, track, found);
		for (uint32_t k = 0; k < n; k++)
			track[k].sector = (uint16_t)i;
		work->end[i + 1] = work->end[i] + n;
	}
	sl_tracks_event(&t->plan, work, sectors, found);
}

/* ---- results ---- */

struct table {
	float *row;
	uint16_t *stub;
	uint32_t rows, stubs;
};

static uint32_t list_stubs(const struct sl_tracks *t, const struct sl_track *track,
			   struct table *table)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < SL_TRACKS_SET; k++)
		for (uint64_t bits = track->set[k]; bits && n < t->max_stubs; bits &= bits - 1, n++)
			table->stub[table->stubs++] =
				(uint16_t)(k * 64 + (uint32_t)__builtin_ctzll(bits));
	return n;
}

static float wrapped(double phi)
{
	return (float)(phi - 2 * SL_PI * floor(phi / (2 * SL_PI) + 0.5));
}

static void write_track(const struct sl_tracks *t, uint32_t event, const struct sl_track *track,
			struct table *table)
{
	double middle = sl_tracker_sector_phi(track->sector);
	double turn = (double)(SL_TRACKS_K * SL_TRACKS_R_CM * track->x);
	double phi = (double)track->phi + middle;
	uint32_t listed = list_stubs(t, track, table);
	const float row[COLUMNS] = {
		(float)event,
		track->sector,
		track->x,
		wrapped(phi + turn + turn * turn * turn / 6),
		wrapped(phi),
		(float)sl_tracks_ones(track->layers),
		track->stubs,
		(float)listed,
		track->column,
		track->row,
		t->fit ? track->z0 : NAN,
		t->fit ? track->cot : NAN,
		t->fit ? track->chi2 : NAN,
	};

	memcpy(table->row + (size_t)table->rows++ * COLUMNS, row, sizeof(row));
}

/* How many of the tracks count for the decision; all are written as far as there is room. */
static uint32_t write_event(const struct sl_tracks *t, uint32_t event,
			    const struct sl_tracks_work *work, struct table *table,
			    struct sl_tracks_found *found)
{
	uint32_t fast = 0;

	for (uint32_t i = 0; i < work->end[t->modules * t->sectors]; i++) {
		const struct sl_track *track = &work->track[i];

		if (track->state != SL_TRACKS_IS_KEPT)
			continue;
		fast += (double)fabsf(track->x) * t->trigger_pt_GeV <= 1;
		if (table->rows < t->max_tracks)
			write_track(t, event, track, table);
		else
			found->unlisted++;
	}
	return fast;
}

static void decide(const struct sl_tracks *t, struct sl_verdict *verdict, uint32_t tracks)
{
	if (!t->min_tracks || !verdict->keep || verdict->reason == SL_REASON_PRESCALED)
		return;
	verdict->keep = tracks >= t->min_tracks;
	verdict->score = (float)tracks;
	verdict->reason = SL_REASON_TRACKS;
}

static void frame(void *state, void *scratch, const struct sl_batch *batch, uint32_t f)
{
	const struct sl_tracks *t = state;
	struct sl_frame *frame = batch->frame[f];
	struct sl_array *result = &frame->result[t->result];
	struct sl_tracks_found *found = result[2].host;
	struct sl_tracks_work *work = sl_workspace(scratch, t->scratch_bytes, f);
	struct table table = {.row = result[0].host, .stub = result[1].host};

	memset(found, 0, t->events * sizeof(*found));
	result[0].rows = result[1].rows = 0;
	if (frame->flags & SL_FRAME_DARK ||
	    (t->look == SL_TRACKS_LOOK_AT_KEPT && !sl_frame_is_kept(frame)))
		return;
	for (uint32_t i = 0; i < t->events; i++) {
		uint32_t fast;

		find_rows(t, frame, i, work);
		find_tracks(t, work, &found[i]);
		fast = write_event(t, i, work, &table, &found[i]);
		if (i < frame->items)
			decide(t, &frame->verdict[i], fast);
	}
	result[0].rows = table.rows;
	result[1].rows = table.stubs;
}

const struct sl_stage sl_stage_tracks = {
	.name = "tracks",
	.doc = "finds tracks in the CMS tracker by a Hough transform, and keeps events with enough",
	.state_bytes = sizeof(struct sl_tracks),
	.options = options,
	.input = "raw",
	.gpu = &sl_gpu_tracks,
	.open = open_tracks,
	.close = close_tracks,
	.frame = frame,
};
