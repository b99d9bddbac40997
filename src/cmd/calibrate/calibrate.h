/* calibrate.h - what the files of `sluice calibrate` share. */
#ifndef SL_CMD_CALIBRATE_CALIBRATE_H
#define SL_CMD_CALIBRATE_CALIBRATE_H

#include "experiment/experiment.h"

/* An experiment that plays dark images from a file to a receiver of the same shape as this
 * experiment's detector. */
struct sl_dark_file {
	const char *file, *dataset; /* as the options of `replay` */
	uint64_t frames;	    /* at most; 0: all that there are */
	char path[256];		    /* of the experiment that was written: unlink it */
};

/* Logs why not. */
int sl_dark_file_open(const struct sl_experiment *experiment, struct sl_dark_file *dark);

/* What a calibration file has, for people: counts and medians. -ERANGE, logged: it is useless. */
int sl_calibration_print(const char *path);

#endif
