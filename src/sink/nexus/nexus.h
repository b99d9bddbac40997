/* nexus.h - what the sink `nexus` and the recovery of its files share.
 *
 * Threads:   those of the file. */
#ifndef SL_SINK_NEXUS_NEXUS_H
#define SL_SINK_NEXUS_NEXUS_H

#include "hdf5/file.h"

/* Of the file: writing, complete, recovered. */
#define SL_NEXUS_STATE "/entry/sluice/state"

/* In the place of the state before. */
void sl_nexus_set_state(struct sl_h5 *file, const char *state);

/* /entry/data/data_000001 and so on, as XDS's plug-ins look for images; nothing where the file has
 * no images. */
void sl_nexus_link_data(struct sl_h5 *file, const char *path, uint32_t files);

#endif
