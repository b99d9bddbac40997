/* space.c - what a run will need on disk, at most. */
#include "hdf5/file.h"
#include "sink/nexus/state.h"

enum {
	ALIGN_BYTES = 4096, /* chunks begin on pages */
	ROW_BYTES = 128,    /* about a frame, in all tables; then, for each module: */
	MODULE_BYTES = 2,
	FIXED_BYTES = 1 << 20 /* indexes */
};

void sl_nexus_space(const void *state, struct sl_sink_space *space)
{
	const struct sl_nexus *nexus = state;

	space->path = nexus->path;
	space->frame_bytes = ROW_BYTES + (uint64_t)MODULE_BYTES * nexus->account.modules +
			     nexus->found.bytes + nexus->peaks.bytes +
			     sl_nexus_audit_frame_bytes(&nexus->leaves);
	if (nexus->image_bytes)
		space->frame_bytes += nexus->image_bytes + ALIGN_BYTES;
	space->fixed_bytes = FIXED_BYTES;
	if (nexus->file) {
		space->fixed_bytes += sl_h5_headroom(nexus->file);
		space->held_bytes = sl_h5_unused(nexus->file);
	}
}
