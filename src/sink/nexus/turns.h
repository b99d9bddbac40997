/* turns.h - the sample's axes in NXmx: where each was when a stored image was taken.
 *
 * Model:     /entry/sample/transformations has a field for each axis of the goniometer, [n] in
 *            degrees, row by row with /entry/data, and NAME_end with where it was when that image
 *            ended. The sample depends on the first axis, and each axis on the next. Images that
 *            were not kept leave gaps in the angles: they are those of the frames' own numbers.
 * Threads:   those of the file.
 * Errors:    stick to the file (hdf5/file.h). */
#ifndef SL_SINK_NEXUS_TURNS_H
#define SL_SINK_NEXUS_TURNS_H

#include <sluice/env.h>

#include "hdf5/file.h"

struct sl_turns {
	const struct sl_goniometer *goniometer; /* NULL: the sample does not turn */
	const struct sl_geometry *geometry;
	struct sl_h5_series *begin[SL_AXES], *end[SL_AXES]; /* end NULL: it stands still */
	uint64_t images, first, last; /* images, and the numbers of the first and the last one */
};

/* After sl_nxmx_begin(); writes /entry/sample/depends_on in any case. */
void sl_turns_open(struct sl_turns *turns, struct sl_h5 *file, const struct sl_env *env);
void sl_turns_append(struct sl_turns *turns, const struct sl_frame *frame);
/* Say, when all images are there, that they are no even sweep. */
void sl_turns_end(const struct sl_turns *turns, const char *path);

#endif
