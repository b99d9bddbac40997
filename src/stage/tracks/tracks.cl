/* tracks.cl - candidates of sectors of the tracker, a group of 160 threads for each: see sector.clh. */
#include "gpu/dialect/batch.h"
#include "stage/tracks/sector.clh"

SL_DEVICE void clear(SL_LOCAL struct group *g, SL_GLOBAL const struct sl_kernel_frame *frame,
		     SL_GLOBAL const struct sl_kernel_verdict *verdict, struct sl_kernel_tracks rules)
{
	sl_u32 i;

	clear_group(g);
	if (sl_thread() == 0)
		g->kept = rules.looks_at_all;
	sl_barrier();
	for (i = sl_thread(); i < frame->items; i += SL_KERNEL_STUBS)
		if (verdict[i].keep)
			sl_or(&g->kept, 1u);
	sl_barrier();
}

/* Group 0: of sectors, 1: of events, 2: of frames. fits: NULL without. */
SL_DEVICE void find(SL_LOCAL struct group *g, SL_LOCAL struct fits *fits, SL_GLOBAL const sl_u8 *raw,
		    SL_GLOBAL const struct sl_kernel_frame *frame, SL_GLOBAL const struct sl_kernel_view *view,
		    SL_GLOBAL const struct sl_kernel_verdict *verdict, struct sl_kernel_tracks rules,
		    SL_GLOBAL const struct sl_kernel_tracks_plan *plan, SL_GLOBAL struct sl_kernel_sector *sector,
		    SL_GLOBAL struct sl_kernel_track *track)
{
	sl_u32 i = sl_group(0), e = sl_group(1), f = sl_group(2), at = (f * rules.events + e) * rules.all + i;
	struct sl_kernel_sector found = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

	clear(g, &frame[f], verdict + f * rules.events, rules);
	found.looked_at = g->kept && !(frame[f].flags & SL_KERNEL_DARK);
	find_candidates(g, fits, read_stub(row_of(raw, view, rules, f, e, i), sl_thread()),
			found.looked_at && !view[f * rules.modules + i / rules.sectors].missing, 1, rules, plan,
			track + (sl_u64)at * rules.limit, &found);
	if (sl_thread() == 0)
		sector[at] = found;
}

#define FIND_PARAMETERS                                                                                              \
	(SL_GLOBAL const sl_u8 *raw, SL_GLOBAL const struct sl_kernel_frame *frame,                                  \
	 SL_GLOBAL const struct sl_kernel_view *view, SL_GLOBAL const struct sl_kernel_verdict *verdict,             \
	 struct sl_kernel_tracks rules, SL_GLOBAL const struct sl_kernel_tracks_plan *plan,                          \
	 SL_GLOBAL struct sl_kernel_sector *sector, SL_GLOBAL struct sl_kernel_track *track)

SL_KERNEL SL_GROUP(160, 6) void tracks_find FIND_PARAMETERS
{
	SL_SHARED struct group g;

	find(&g, 0, raw, frame, view, verdict, rules, plan, sector, track);
}

SL_KERNEL SL_GROUP(160, 4) void tracks_fit FIND_PARAMETERS
{
	SL_SHARED struct group g;
	SL_SHARED struct fits fits;

	find(&g, &fits, raw, frame, view, verdict, rules, plan, sector, track);
}
