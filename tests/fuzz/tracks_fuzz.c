/* tracks_fuzz.c - any bytes as stubs of two neighbouring sectors: every cell is accounted for,
 * tracks are in their map and have numbers, and plain C finds the same as vectors do. The first
 * byte chooses cells, size and fit. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "stage/tracks/maths.h"
#include "stage/tracks/tracks.h"
#include "stage/vectors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SECTORS = 10, TRACKS = 8 }; /* the first and the last of these have stubs */

static struct sl_tracks_found find(const struct sl_tracks_plan *plan, uint32_t vectors,
				   uint8_t (*row)[SL_TRACKER_ROW_BYTES],
				   struct sl_tracks_work *work)
{
	struct sl_tracks_calls calls = sl_tracks_calls(plan, vectors);
	struct sl_tracks_found found = {0};

	work->end[0] = 0;
	for (uint32_t i = 0; i < SECTORS; i++) {
		struct sl_track *track = &work->track[work->end[i]];
		uint32_t n;

		work->row[i] = row[i];
		n = sl_tracks_sector(plan, &calls, row[i], work, track, &found);
		for (uint32_t k = 0; k < n; k++)
			track[k].sector = (uint16_t)i;
		work->end[i + 1] = work->end[i] + n;
	}
	sl_tracks_event(plan, work, SECTORS, &found);
	return found;
}

static void check(const struct sl_tracks_plan *plan, const struct sl_tracks_work *work,
		  const struct sl_tracks_found *found)
{
	if (found->cells != found->tracks + found->duplicates + found->misfits + found->crowded)
		abort();
	for (uint32_t i = 0; i < work->end[SECTORS]; i++) {
		const struct sl_track *t = &work->track[i];

		if (t->column >= plan->set.columns || t->row >= plan->set.rows ||
		    sl_tracks_ones(t->layers) < plan->set.min_layers || t->layers & 1 ||
		    !isfinite(t->x) || !isfinite(t->phi) || !isfinite(t->chi2))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t sizes[] = {32, 64, 4, 33};
	static uint8_t row[SECTORS][SL_TRACKER_ROW_BYTES];
	size_t bytes = sizeof(struct sl_tracks_work) + sizeof(struct sl_track) * SECTORS * TRACKS;
	struct sl_tracks_work *work[2];
	struct sl_tracks_found found[2];
	struct sl_tracks_plan plan;
	uint8_t first = size ? *data : 0;

	sl_tracks_plan(&plan, &(struct sl_tracks_settings){
				      .min_pt_GeV = first & 8 ? 2 : 3,
				      .columns = sizes[first & 3],
				      .rows = sizes[first >> 2 & 3],
				      .min_layers = 3 + (first >> 6),
				      .cells = first % 3,
				      .bend = first & 16 ? 3 : 0,
				      .common = 3,
				      .between = true,
				      .fit = first & 32,
				      .fit_limit = 16,
				      .sector_tracks = TRACKS,
			      });
	memset(row, 0, sizeof(row));
	for (size_t i = 1; i < size && i <= 2 * sizeof(row[0]); i++)
		row[(i - 1) / sizeof(row[0]) * (SECTORS - 1)][(i - 1) % sizeof(row[0])] = data[i];
	for (int k = 0; k < 2; k++) {
		work[k] = aligned_alloc(64, (bytes + 63) / 64 * 64);
		if (!work[k])
			abort();
		found[k] = find(&plan, k ? SL_VECTORS_BASELINE : SL_VECTORS_AUTO, row, work[k]);
		check(&plan, work[k], &found[k]);
	}
	if (memcmp(&found[0], &found[1], sizeof(found[0])) != 0 ||
	    memcmp(work[0]->track, work[1]->track,
		   work[0]->end[SECTORS] * sizeof(struct sl_track)) != 0)
		abort();
	free(work[0]);
	free(work[1]);
	return 0;
}
