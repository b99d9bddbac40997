/* configuration.h - how a detector was set, as text that travels beside its data. */
#ifndef SL_DETECTOR_CONFIGURATION_H
#define SL_DETECTOR_CONFIGURATION_H

#include <stddef.h>

#include <sluice/detector.h>

enum { SL_CONFIGURATION_BYTES = 4096 };

/* "kind: jungfrau\nmodules: 8\n...": the detector section of an experiment file, with every option,
 * then the geometry as comments. Padded with zeros; what does not fit is left out, line by line,
 * and the last line says so. */
void sl_detector_configuration(const struct sl_detector *detector, const void *state,
			       const struct sl_detector_options *run,
			       const struct sl_geometry *geometry,
			       char text[SL_CONFIGURATION_BYTES]);

#endif
