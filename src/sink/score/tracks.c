/* tracks.c - tracks that the stage `tracks` found beside true ones.
 *
 * A found track is a true one when its list has stubs of that one in four layers or more; the one
 * with most layers, where there are several. A stub is a true track's when it lies on its helix. A
 * true track can be found when it has stubs of five layers in one sector. Found tracks that are
 * none are fakes; second ones of the same are duplicates. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/log.h"
#include "sink/score/score.h"

enum { EVENT, PT, PHI0, ETA, Z0, CHARGE, SECTORS }; /* of the truth */
/* Of the result (stage/tracks/tracks.c), and of tracks_found. */
enum { FOUND_EVENT, SECTOR, FOUND_X, FOUND_PHI0, FOUND_PHI, LISTED = 7, WIDE = 13 };
enum { COUNT_UNLISTED = 5, COUNTS = 8 };
enum { ALL, FAST, CLASSES };
enum { ON_TRACK = 4 }; /* layers */
static const double NEAR_RAD = 0.06;

struct truth { /* of one event: what stubs are compared with */
	double x, phi0, phi, z0, sinh;
	uint8_t findable, fast;
	uint8_t seen;	       /* by anyone */
	uint8_t best[CLASSES]; /* of someone, and of someone fast */
};

struct stub {
	double phi, r, z;
	uint32_t layer;
};

static double wrapped(double phi)
{
	return phi - 2 * SL_PI * floor(phi / (2 * SL_PI) + 0.5);
}

static void learn(const struct sl_score *score, const struct sl_score_event *e, struct truth *truth)
{
	for (uint32_t i = 0; i < e->knowns; i++) {
		const double *row = e->known + (size_t)i * score->columns;
		double pt = row[score->at[PT]], x = row[score->at[CHARGE]] / pt;

		truth[i] = (struct truth){
			.x = x,
			.phi0 = row[score->at[PHI0]],
			.phi = row[score->at[PHI0]] - asin(SL_TRACKER_K * SL_TRACKER_R_PHI * x),
			.z0 = row[score->at[Z0]],
			.sinh = sinh(row[score->at[ETA]]),
			.findable = row[score->at[SECTORS]] > 0,
			.fast = pt >= (double)score->wanted.tracks.pt_GeV,
		};
	}
}

/* Strips are 5 cm long: in r, where they lie in disks. Phi is off by 3 deviations and more of
 * scattering. */
static bool is_on(const struct stub *stub, const struct truth *truth)
{
	double turn = asin(fmax(-1, fmin(1, SL_TRACKER_K * stub->r * truth->x)));
	double z = truth->z0 + turn / (SL_TRACKER_K * truth->x) * truth->sinh;

	return fabs(wrapped(stub->phi - truth->phi0 + turn)) < 0.0015 + 0.02 * fabs(truth->x) &&
	       fabs(stub->z - z) < 3 + 3 * fabs(truth->sinh);
}

static struct stub unpack(const struct sl_score *score, const struct sl_score_event *e,
			  uint32_t sector, uint32_t index)
{
	uint32_t row = e->number * score->sectors + sector % score->sectors;
	const uint8_t *at = e->raw + sector / score->sectors * e->module_bytes +
			    (uint64_t)row * SL_TRACKER_ROW_BYTES + index * SL_STUB_BYTES;
	struct sl_stub stub;

	sl_stub_unpack(at, &stub);
	return (struct stub){stub.phi * SL_STUB_PHI_RAD + sl_tracker_sector_phi(sector),
			     stub.r * SL_STUB_R_CM, stub.z * SL_STUB_Z_CM, stub.layer};
}

/* In how many layers. */
static uint32_t layers_on(const struct stub *stub, uint32_t stubs, const struct truth *truth)
{
	uint32_t layers = 0, n = 0;

	for (uint32_t i = 0; i < stubs; i++)
		if (is_on(&stub[i], truth))
			layers |= 1u << stub[i].layer;
	for (uint32_t k = 1; k < 8; k++)
		n += layers >> k & 1;
	return n;
}

/* Which true track it is; notes all that it has enough stubs of. -1: none. */
static int64_t identify(const float *found, const struct stub *stub, uint32_t stubs,
			struct truth *truth, uint32_t truths)
{
	uint32_t most = ON_TRACK - 1;
	int64_t best = -1;

	for (uint32_t t = 0; t < truths; t++) {
		uint32_t layers;

		if (!(fabs(wrapped((double)found[FOUND_PHI] - truth[t].phi)) < NEAR_RAD))
			continue;
		layers = layers_on(stub, stubs, &truth[t]);
		if (layers >= ON_TRACK)
			truth[t].seen = 1;
		if (layers > most) {
			most = layers;
			best = t;
		}
	}
	return best;
}

static void count_found(struct sl_score_class *class, int64_t best, uint8_t *taken)
{
	if (best < 0) {
		class->fakes++;
		return;
	}
	class->duplicates += *taken;
	*taken = 1;
}

static void compare(struct sl_score *score, const struct sl_score_event *e, struct truth *truth)
{
	const uint16_t *list = e->stub;
	uint8_t nobody = 0;

	for (uint32_t k = 0; k < e->founds; k++) {
		const float *found = e->found + (size_t)k * WIDE;
		uint32_t n = (uint32_t)found[LISTED];
		bool fast = fabs((double)found[FOUND_X]) * (double)score->wanted.tracks.pt_GeV <= 1;
		struct stub stub[SL_STUBS];
		int64_t best;

		for (uint32_t i = 0; i < n && i < SL_STUBS; i++)
			stub[i] = unpack(score, e, (uint32_t)found[SECTOR], list[i]);
		best = identify(found, stub, n < SL_STUBS ? n : SL_STUBS, truth, e->knowns);
		list += n;
		count_found(&score->class[ALL], best, best < 0 ? &nobody : &truth[best].best[ALL]);
		if (fast)
			count_found(&score->class[FAST], best,
				    best < 0 ? &nobody : &truth[best].best[FAST]);
	}
}

static int score_event(struct sl_score *score, const struct sl_score_event *e)
{
	struct truth *truth = score->scratch;
	uint32_t fast = 0, findable = 0;

	learn(score, e, truth);
	compare(score, e, truth);
	for (int c = 0; c < CLASSES; c++)
		score->class[c].events++;
	for (uint32_t t = 0; t < e->knowns; t++) {
		fast += truth[t].fast;
		findable += truth[t].fast && truth[t].findable;
		for (int c = 0; c < CLASSES; c++)
			if (truth[t].findable && (c == ALL || truth[t].fast)) {
				score->class[c].findable++;
				score->class[c].found += truth[t].seen;
			}
	}
	if (fast < score->wanted.tracks.min_tracks)
		return SL_SCORE_REJECT;
	return findable < score->wanted.tracks.min_tracks ? SL_SCORE_KEEP : SL_SCORE_KEEP_FINDABLE;
}

static bool decides(const struct sl_score *score)
{
	return score->wanted.tracks.min_tracks > 0;
}

static uint64_t unlisted(struct sl_frame *frame)
{
	const struct sl_array *counts = sl_frame_result(frame, "tracks_found");
	const uint32_t *count = counts ? counts->host : NULL;
	uint64_t sum = 0;

	for (uint32_t i = 0; count && i < frame->items; i++)
		sum += count[i * COUNTS + COUNT_UNLISTED];
	return sum;
}

static void tell_class(const struct sl_score_class *c, const char *which)
{
	char found[16];
	double events = c->events ? (double)c->events : 1;

	sl_info("score: %" PRIu64 " events, tracks%s: found %s of %" PRIu64
		" with five layers in a sector; %.3f fakes and %.3f duplicates an event",
		c->events, which, sl_score_share(found, c->found, c->findable), c->findable,
		(double)c->fakes / events, (double)c->duplicates / events);
}

static void tell(const struct sl_score *score)
{
	char which[48];

	tell_class(&score->class[ALL], "");
	snprintf(which, sizeof(which), " of %g GeV or more", (double)score->wanted.tracks.pt_GeV);
	if (score->wanted.tracks.pt_GeV > 0)
		tell_class(&score->class[FAST], which);
}

static void figures(const struct sl_score *score, sl_sink_figure *figure, void *arg)
{
	const struct sl_score_class *all = &score->class[ALL], *fast = &score->class[FAST];

	figure(arg, "tracks_findable", all->findable, 0);
	figure(arg, "tracks_found", all->found, 0);
	figure(arg, "tracks_fakes", all->fakes, 0);
	figure(arg, "tracks_duplicates", all->duplicates, 0);
	if (!(score->wanted.tracks.pt_GeV > 0))
		return;
	figure(arg, "fast_findable", fast->findable, 0);
	figure(arg, "fast_found", fast->found, 0);
	figure(arg, "fast_fakes", fast->fakes, 0);
	figure(arg, "fast_duplicates", fast->duplicates, 0);
}

const struct sl_score_kind sl_score_tracks = {
	.result = "tracks",
	.list = "tracks_stubs",
	.result_columns = WIDE,
	.listed = LISTED,
	.wanted = "tracks_wanted",
	.wanted_bytes = sizeof(struct sl_tracks_wanted),
	.scratch_bytes = sizeof(struct truth),
	.column = {"event", "pt", "phi0", "eta", "z0", "charge", "sectors"},
	.decides = decides,
	.event = score_event,
	.unlisted = unlisted,
	.tell = tell,
	.figures = figures,
};
