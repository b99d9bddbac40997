/* rings.c - rings of light among the hits of small events; an event is kept when they are those
 * that are looked for.
 *
 *   found    a circle with at least min_hits hits within window_mm of it, min_own of which are not
 *            nearer to another ring of the event; its radius is within radius_min_mm and
 *            radius_max_mm, its centre within centre_max_mm of the disk's. How it is found is said
 *            in passes.h
 *   matches  its radius is what light of `particle` has between two momenta, tolerance_mm more or
 *            less, and within match_min_mm and match_max_mm; its centre is within
 *            match_distance_mm of (match_x_mm, match_y_mm)
 *   kept     an event with min_rings to max_rings rings, at least min_matches of which match
 *
 * Adds "rings", float32 [rows][7]: event of the frame, x, y, radius, hits, RMS of their distance
 * (mm), 1 when it matches. "rings_found", uint32 [8], says how many there were, also when max_rows
 * are fewer; how many events had 0, 1, 2, 3 rings, and more; how many of these were found by one
 * fit; and how many hits had a number that no cell has, or one that was there before.
 *
 * An event with more than three rings has the first three in the table, and 4 for a score. The
 * constant "rings_wanted" tells the condition.
 *
 * Results are the same with all vectors, bit for bit, and whatever else is in the block. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <sluice/stage.h>

#include "base/log.h"
#include "stage/rings/maths.h"
#include "stage/rings/rings.h"
#include "stage/vectors.h"
#include "stage/workspace.h"

enum { COLUMNS = 7 };
enum { FOUND, FOUND_NONE, FOUND_MORE = FOUND_NONE + SL_RINGS + 1, FOUND_ALONE, FOUND_ODD, COUNTS };
enum { ANY, ELECTRON, MUON, PION, KAON };

static const struct sl_option options[] = {
	SL_F64(struct sl_rings, radius_min_mm, 45, 1, 1000, "mm", "of a ring, at least"),
	SL_F64(struct sl_rings, radius_max_mm, 215, 1, 1000, "mm", "of a ring, at most"),
	SL_F64(struct sl_rings, centre_max_mm, 200, 1, 1000, "mm",
	       "of a ring's centre from that of the disk, at most"),
	SL_F64(struct sl_rings, window_mm, 15, 1, 100, "mm",
	       "hits that are nearer to a ring belong to it; about 2.2 times what they are off"),
	SL_U32(struct sl_rings, min_hits, 6, 4, 32, "hits", "of a ring, at least"),
	SL_U32(struct sl_rings, min_own, 4, 4, 32, "hits",
	       "of these, not nearer to another ring, at least; no more than min_hits"),
	SL_U32(struct sl_rings, triplets, 64, 1, SL_RINGS_TRIPLETS, "triplets",
	       "circles through three hits that are tried for each ring, where one fit is not "
	       "enough; an even number"),
	SL_U32(struct sl_rings, min_rings, 1, 0, 4, "rings",
	       "keep events with at least as many; 4 is more than three"),
	SL_U32(struct sl_rings, max_rings, 4, 0, 4, "rings", "and at most as many; 4: or more"),
	SL_U32(struct sl_rings, min_matches, 0, 0, 3, "rings",
	       "and at least so many that match; 0: whatever they are"),
	SL_CHOICE(struct sl_rings, particle, any, "any|electron|muon|pion|kaon",
		  "a ring matches when it may be light of this one"),
	SL_F64(struct sl_rings, momentum_min_GeV, 15, 0.001, 1000, "GeV/c", "of that, at least"),
	SL_F64(struct sl_rings, momentum_max_GeV, 35, 0.001, 1000, "GeV/c", "at most"),
	SL_F64(struct sl_rings, tolerance_mm, 5, 0, 100, "mm",
	       "a radius may be off by so much; about twice its resolution"),
	SL_F64(struct sl_rings, match_min_mm, 0, 0, 1000, "mm",
	       "a ring matches when its radius is at least this"),
	SL_F64(struct sl_rings, match_max_mm, 0, 0, 1000, "mm", "and at most this; 0: any"),
	SL_F64(struct sl_rings, match_x_mm, 0, -1000, 1000, "mm",
	       "and when its centre is near this place"),
	SL_F64(struct sl_rings, match_y_mm, 0, -1000, 1000, "mm", "upwards from the disk's centre"),
	SL_F64(struct sl_rings, match_distance_mm, 0, 0, 1000, "mm",
	       "so far from there, at most; 0: anywhere"),
	SL_U32(struct sl_rings, max_rows, 0, 0, 1u << 24, "rings",
	       "room for as many of a frame in the result, all are counted; 0: for all"),
	SL_CHOICE(struct sl_rings, look, kept, "kept|all",
		  "at frames that no stage before it rejected, or at all"),
	SL_VECTORS_OPTION(struct sl_rings),
	SL_OPTION_END};

static int refuse(const char *why)
{
	sl_error("rings: %s", why);
	return -EINVAL;
}

/* Comparisons with what is no number are all false: nothing would ever be found. */
static int check_numbers(const struct sl_rings *r)
{
	for (const struct sl_option *o = options; o->name; o++) {
		double value;

		if (o->type != SL_OPTION_F64)
			continue;
		memcpy(&value, (const char *)r + o->offset, sizeof(value));
		if (!isfinite(value)) {
			sl_error("rings: %s must be a number", o->name);
			return -EINVAL;
		}
	}
	return 0;
}

static int check(const struct sl_rings *r, const struct sl_env *env)
{
	const struct sl_geometry *g = env->geometry;

	if (g->dtype != SL_U8 || g->columns != SL_RICH_EVENT_BYTES || g->items != g->rows ||
	    g->items_shared) {
		sl_error("rings reads events of 48 bytes, as detector 'rich' has them, not blocks "
			 "of '%s'",
			 g->detector);
		return -EINVAL;
	}
	if (!(r->radius_min_mm < r->radius_max_mm))
		return refuse("radius_max_mm must be above radius_min_mm");
	if (!(r->window_mm < r->radius_min_mm))
		return refuse("window_mm must be below radius_min_mm");
	if (r->min_own > r->min_hits)
		return refuse("min_own must not be above min_hits");
	if (r->min_rings > r->max_rings)
		return refuse("max_rings must not be below min_rings");
	if (r->min_matches > r->max_rings)
		return refuse("min_matches must not be above max_rings");
	return check_numbers(r);
}

/* What `particle` and the other limits leave of radii. */
static int match_radius(struct sl_rings *r)
{
	static const float mass_GeV[] = {
		[ELECTRON] = 0.000511f, [MUON] = 0.105658f, [PION] = 0.139570f, [KAON] = 0.493677f};

	r->slow = 0;
	r->fast = INFINITY;
	r->least = (float)r->match_min_mm;
	r->most = r->match_max_mm > 0 ? (float)r->match_max_mm : INFINITY;
	if (r->particle != ANY) {
		float slow = sl_rings_light(mass_GeV[r->particle], (float)r->momentum_min_GeV);
		float fast = sl_rings_light(mass_GeV[r->particle], (float)r->momentum_max_GeV);
		float tolerance = (float)r->tolerance_mm;

		if (!(r->momentum_min_GeV <= r->momentum_max_GeV))
			return refuse("momentum_max_GeV must not be below momentum_min_GeV");
		if (!(fast > 0))
			return refuse("such a particle makes no light at momentum_max_GeV");
		r->slow = slow > 0 ? sqrtf(slow) : 0;
		r->fast = sqrtf(fast);
		r->least = fmaxf(r->least, r->slow - tolerance);
		r->most = fminf(r->most, r->fast + tolerance);
	}
	if (!(r->least <= r->most))
		return refuse("no radius can match: match_min_mm, match_max_mm, particle");
	r->x = (float)r->match_x_mm;
	r->y = (float)r->match_y_mm;
	r->distance = r->match_distance_mm > 0 ? (float)pow(r->match_distance_mm, 2) : INFINITY;
	return 0;
}

/* What truth is asked for: radii as they are, without what they may be measured wrong by. */
static void describe_wanted(struct sl_rings *r, struct sl_stage_terms *terms)
{
	enum { FLOATS = sizeof(r->wanted) / sizeof(float) };

	r->wanted = (struct sl_rings_wanted){
		.min_rings = (float)r->min_rings,
		.max_rings = (float)r->max_rings,
		.min_matches = (float)r->min_matches,
		.radius_min_mm = fmaxf((float)r->match_min_mm, r->slow),
		.radius_max_mm =
			fminf(r->match_max_mm > 0 ? (float)r->match_max_mm : INFINITY, r->fast),
		.x_mm = r->x,
		.y_mm = r->y,
		.distance_mm = r->match_distance_mm > 0 ? (float)r->match_distance_mm : INFINITY,
	};
	terms->constants = 1;
	terms->constant[0] = (struct sl_constant){
		{.name = "rings_wanted", .dtype = SL_F32, .rank = 1, .dim = {FLOATS}}, &r->wanted};
}

static void describe(const struct sl_rings *r, struct sl_stage_terms *terms)
{
	terms->outputs = 2;
	terms->output[0] = (struct sl_shape){.name = "rings",
					     .dtype = SL_F32,
					     .rank = 2,
					     .dim = {r->rows, COLUMNS},
					     .ragged = 1,
					     .doc = "event of the frame, x, y (mm), radius (mm), "
						    "hits, RMS (mm), matches"};
	terms->output[1] =
		(struct sl_shape){.name = "rings_found",
				  .dtype = SL_U32,
				  .rank = 1,
				  .dim = {COUNTS},
				  .doc = "rings; events with 0, 1, 2, 3, more; explained by "
					 "one fit; numbers that are no hits"};
}

static void settle(struct sl_rings *r)
{
	r->settings.radius_min = (float)r->radius_min_mm;
	r->settings.radius_max = (float)r->radius_max_mm;
	r->settings.reach = (float)r->centre_max_mm;
	r->settings.window = (float)r->window_mm;
	/* Hits of two rings that lie close to each other spread more than those of one. */
	r->settings.rms = (float)r->window_mm * 0.6f;
	r->settings.min_hits = r->min_hits;
	r->settings.min_own = r->min_own;
	r->settings.triplets = r->triplets;
	sl_rings_settings_init(&r->settings);
	r->passes = sl_rings_passes_of(sl_vectors_choose(r->vectors));
}

static int open_rings(void *state, const struct sl_env *env, const struct sl_shape *in,
		      struct sl_stage_terms *terms)
{
	struct sl_rings *r = state;
	uint32_t all = SL_RINGS * sl_geometry_frame_items(env->geometry);
	int err = check(r, env);

	if (!err)
		err = match_radius(r);
	if (err)
		return err;
	settle(r);
	r->events = env->geometry->items;
	r->rows = r->max_rows && r->max_rows < all ? r->max_rows : all;
	r->input = terms->input;
	r->result = terms->result;
	describe(r, terms);
	describe_wanted(r, terms);
	sl_workspace_ask(terms, env, sizeof(struct sl_rings_work));
	r->scratch_bytes = terms->scratch_bytes;
	return 0;
}

static void close_rings(void *state)
{
	(void)state;
}

static int matches(const struct sl_rings *r, const struct sl_rings_ring *ring, float radius)
{
	float dx = ring->x - r->x, dy = ring->y - r->y;

	return radius >= r->least && radius <= r->most && dx * dx + dy * dy <= r->distance;
}

/* What was found so far of a frame. */
struct output {
	float *row;
	uint32_t rows, *count;
};

/* How many rings of the event match; all of them go into the table. */
static uint32_t list(const struct sl_rings *r, const struct sl_rings_event *e, uint32_t item,
		     struct output *out)
{
	uint32_t n = e->rings < SL_RINGS ? e->rings : SL_RINGS, matched = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct sl_rings_ring *ring = &e->ring[i];
		float radius = sqrtf(ring->square);
		int match = matches(r, ring, radius);
		float *row = out->row + (size_t)out->rows * COLUMNS;

		matched += (uint32_t)match;
		if (out->rows == r->rows)
			continue;
		row[0] = (float)item;
		row[1] = ring->x;
		row[2] = ring->y;
		row[3] = radius;
		row[4] = ring->hits;
		row[5] = sqrtf(ring->spread);
		row[6] = (float)match;
		out->rows++;
	}
	return matched;
}

/* What an earlier stage rejected stays so. */
static void decide(struct sl_verdict *verdict, int keep, float score)
{
	if (!verdict->keep || verdict->reason == SL_REASON_PRESCALED)
		return;
	verdict->keep = (uint16_t)keep;
	verdict->score = score;
	verdict->reason = SL_REASON_RINGS;
}

static void judge(const struct sl_rings *r, const struct sl_rings_event *e, uint32_t item,
		  struct sl_verdict *verdict, struct output *out)
{
	uint32_t matched = list(r, e, item, out);

	out->count[FOUND] += e->rings;
	out->count[FOUND_NONE + e->rings]++;
	out->count[FOUND_ALONE] += e->alone;
	out->count[FOUND_ODD] += e->odd;
	decide(verdict,
	       e->rings >= r->min_rings && e->rings <= r->max_rings && matched >= r->min_matches,
	       (float)e->rings);
}

/* The events of a module, from the link or from a stage that has copied them. */
static const uint8_t *events_of(const struct sl_rings *r, const struct sl_frame *frame, uint32_t m,
				size_t *pitch)
{
	const struct sl_array *pixels = &frame->view[m].pixels;

	*pitch = SL_RICH_EVENT_BYTES;
	if (r->input != SL_STAGE_RAW)
		return (const uint8_t *)frame->result[r->input].host +
		       (size_t)m * r->events * SL_RICH_EVENT_BYTES;
	if (pixels->pitch)
		*pitch = pixels->pitch;
	return pixels->host;
}

static void module(const struct sl_rings *r, struct sl_rings_work *work, struct sl_frame *frame,
		   uint32_t m, struct output *out)
{
	size_t pitch;
	const uint8_t *packed = events_of(r, frame, m, &pitch);

	for (uint32_t first = 0; first < r->events; first += SL_RINGS_CHUNK) {
		uint32_t n = r->events - first, item = m * r->events + first;

		n = n < SL_RINGS_CHUNK ? n : SL_RINGS_CHUNK;
		sl_rings_find(&r->settings, r->passes, packed + first * pitch, pitch, n, work);
		for (uint32_t i = 0; i < n; i++)
			judge(r, &work->event[i], item + i, &frame->verdict[item + i], out);
	}
}

static void frame(void *state, void *scratch, const struct sl_batch *batch, uint32_t f)
{
	const struct sl_rings *r = state;
	struct sl_frame *frame = batch->frame[f];
	struct sl_array *table = &frame->result[r->result];
	struct output out = {.row = table->host, .count = frame->result[r->result + 1].host};

	table->rows = 0;
	for (uint32_t i = 0; i < COUNTS; i++)
		out.count[i] = 0;
	if (frame->flags & SL_FRAME_DARK ||
	    (r->look == SL_RINGS_LOOK_AT_KEPT && !sl_frame_is_kept(frame)))
		return;
	for (uint32_t m = 0; m < frame->views; m++) {
		if (!sl_frame_misses(frame, m)) {
			module(r, sl_workspace(scratch, r->scratch_bytes, f), frame, m, &out);
			continue;
		}
		/* Events that did not arrive. */
		for (uint32_t i = 0; i < r->events; i++)
			decide(&frame->verdict[m * r->events + i], 0, 0);
	}
	table->rows = out.rows;
}

const struct sl_stage sl_stage_rings = {
	.name = "rings",
	.doc = "finds rings of light in events of a RICH, and keeps those that are looked for",
	.state_bytes = sizeof(struct sl_rings),
	.options = options,
	.input = "raw",
	.gpu = &sl_gpu_rings,
	.open = open_rings,
	.close = close_rings,
	.frame = frame,
};
