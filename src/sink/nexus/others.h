/* others.h - detectors that attach to events, where NeXus looks for them.
 *
 *   /entry/instrument/detector_NAME   NXdetector: data and frame_number are links to /entry/results
 *   /entry/events                     which frame of which detector belongs to which event:
 *                                     sequence and number of the event, and a column for each
 *                                     detector, -1 where the event has no frame of it
 *
 * Model:     pixels of these detectors are results, a row for each event, so that the row is the
 *            index into each detector's stack. Readers of one detector take the first group of the
 *            instrument by its name: that is /entry/instrument/detector.
 * Threads:   those of the file.
 * Errors:    stick to the file (hdf5/file.h). */
#ifndef SL_SINK_NEXUS_OTHERS_H
#define SL_SINK_NEXUS_OTHERS_H

#include <sluice/env.h>

#include "hdf5/file.h"

/* After the series of results were opened. */
void sl_nexus_others_open(struct sl_h5 *file, const struct sl_env *env);

#endif
