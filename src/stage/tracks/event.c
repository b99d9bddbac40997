/* event.c - what overlapping sectors have found twice.
 *
 * A stub is in every sector that its track may belong to, so neighbours find the same track. Two
 * candidates are the same if they have stubs of `common` layers in common and lie near each other
 * in q/pT and phi; the one with more layers stays, of equal ones that of the lower sector. Stubs
 * are the same if all their bits are, phi counted around the circle: the sectors' middles are whole
 * steps of phi apart.
 *
 * Cost: for each candidate, a look at those of the sectors beside its own. */
#include <math.h>
#include <string.h>

#include "stage/tracks/tracks.h"

/* How far apart sectors can have a stub in common. */
enum { PHI_REACH = 1, ETA_REACH = 2 };
enum { SECTOR_STEPS = 4096, CIRCLE_STEPS = SECTOR_STEPS * SL_TRACKER_PHI_SECTORS };

/* The stubs of a candidate as numbers that are the same in all sectors. */
struct keys {
	uint32_t n;
	uint64_t key[SL_STUBS];
	uint8_t layer[SL_STUBS];
};

static void read_keys(const struct sl_tracks_work *work, const struct sl_track *track,
		      struct keys *keys)
{
	const uint8_t *row = work->row[track->sector];
	uint32_t turn = track->sector / SL_TRACKER_ETA_SECTORS * SECTOR_STEPS;

	keys->n = 0;
	for (uint32_t k = 0; k < SL_TRACKS_SET; k++)
		for (uint64_t bits = track->set[k]; bits; bits &= bits - 1) {
			uint32_t s = k * 64 + (uint32_t)__builtin_ctzll(bits);
			struct sl_stub stub;
			uint64_t word = 0;

			sl_stub_unpack(row + s * SL_STUB_BYTES, &stub);
			memcpy(&word, row + s * SL_STUB_BYTES, SL_STUB_BYTES);
			keys->key[keys->n] = (word & ((1ull << 34) - 1)) |
					     (uint64_t)(((uint32_t)stub.phi + turn) % CIRCLE_STEPS)
						     << 34;
			keys->layer[keys->n++] = (uint8_t)stub.layer;
		}
}

static uint32_t common_layers(const struct keys *a, const struct keys *b)
{
	uint32_t layers = 0;

	for (uint32_t i = 0; i < a->n; i++) {
		uint32_t same = 0;

		for (uint32_t j = 0; j < b->n; j++)
			same |= a->key[i] == b->key[j];
		layers |= same << a->layer[i];
	}
	return sl_tracks_ones(layers);
}

/* turn: from the middle of b's sector to that of a's. */
static bool is_near(const struct sl_tracks_plan *plan, const struct sl_track *a,
		    const struct sl_track *b, float turn)
{
	return fabsf(a->x - b->x) <= plan->x_window &&
	       fabsf(a->phi - b->phi + turn) <= plan->y_window;
}

/* Is a candidate of this sector, which is kept, the same track? */
static bool is_in(const struct sl_tracks_plan *plan, const struct sl_tracks_work *work,
		  const struct sl_track *track, const struct keys *keys, uint32_t sector,
		  float turn)
{
	for (uint32_t i = work->end[sector]; i < work->end[sector + 1]; i++) {
		const struct sl_track *other = &work->track[i];
		struct keys others;

		if (other->state != SL_TRACKS_IS_KEPT || !is_near(plan, track, other, turn))
			continue;
		read_keys(work, other, &others);
		if (common_layers(keys, &others) >= plan->set.common)
			return true;
	}
	return false;
}

static bool is_elsewhere(const struct sl_tracks_plan *plan, const struct sl_tracks_work *work,
			 const struct sl_track *track, uint32_t sectors)
{
	const int etas = SL_TRACKER_ETA_SECTORS, phis = SL_TRACKER_PHI_SECTORS;
	int phi = track->sector / etas, eta = track->sector % etas;
	struct keys keys;

	read_keys(work, track, &keys);
	for (int p = -PHI_REACH; p <= PHI_REACH; p++)
		for (int e = eta - ETA_REACH; e <= eta + ETA_REACH; e++) {
			uint32_t sector = (uint32_t)((phi + p + phis) % phis * etas + e);
			float turn = (float)(-p * 2 * SL_PI / phis);

			if (e < 0 || e >= etas || (!p && e == eta) || sector >= sectors)
				continue;
			if (is_in(plan, work, track, &keys, sector, turn))
				return true;
		}
	return false;
}

/* Candidates of so many layers: those whose neighbours are better come when these are kept. */
static void judge(const struct sl_tracks_plan *plan, struct sl_tracks_work *work, uint32_t sectors,
		  uint32_t layers, struct sl_tracks_found *found)
{
	for (uint32_t i = 0; i < work->end[sectors]; i++) {
		struct sl_track *track = &work->track[i];

		if (sl_tracks_ones(track->layers) != layers)
			continue;
		if (plan->set.between && is_elsewhere(plan, work, track, sectors)) {
			track->state = SL_TRACKS_IS_DUPLICATE;
			found->duplicates++;
			continue;
		}
		track->state = SL_TRACKS_IS_KEPT;
		found->tracks++;
	}
}

void sl_tracks_event(const struct sl_tracks_plan *plan, struct sl_tracks_work *work,
		     uint32_t sectors, struct sl_tracks_found *found)
{
	for (uint32_t layers = 7; layers >= plan->set.min_layers; layers--)
		judge(plan, work, sectors, layers, found);
}
