/* calibration.h - the options of the sink `calibration`, for `sluice calibrate`: that command is a
 * run with this sink in the place of the experiment's stages and sinks.
 *
 * Ownership: plain data; the sink's state begins with it. */
#ifndef SL_SINK_CALIBRATION_H
#define SL_SINK_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

enum { SL_CALIBRATION_PATH_BYTES = 1024 };

/* As the choices of `gain`. */
enum sl_calibration_gain {
	SL_CALIBRATION_AUTO,
	SL_CALIBRATION_G0,
	SL_CALIBRATION_G1,
	SL_CALIBRATION_G2,
	SL_CALIBRATION_PLAIN,
};

struct sl_calibration_sink {
	char path[SL_CALIBRATION_PATH_BYTES], base[SL_CALIBRATION_PATH_BYTES];
	uint32_t gain; /* enum sl_calibration_gain */
	bool all, stuck;
	double pedestal_min, pedestal_max, rms_min, rms_max, spreads, wrong_share;
	uint64_t frames_max;
};

#endif
