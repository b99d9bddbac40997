/* period.h - what detector kinds share about a run. */
#ifndef SL_DETECTOR_PERIOD_H
#define SL_DETECTOR_PERIOD_H

#include <sluice/detector.h>

/* Time between two frames by the detector's own clock; a run "as fast as credits allow" counts as
 * 1 kHz, so that timestamps never depend on how fast it went. At least 1 ns. */
uint64_t sl_detector_period_ns(const struct sl_detector_options *run);

#endif
