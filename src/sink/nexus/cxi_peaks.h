/* cxi_peaks.h - peaks as CrystFEL reads them, beside the images they were found in.
 *
 * Model:     where a stage makes "peaks", the group /entry/peaks holds nPeaks [n] and peakXPosRaw,
 *            peakYPosRaw, peakTotalIntensity, peakSNR [n, most], row by row with /entry/data: the
 *            layout of CXI files. Positions are numbers of pixels in the stored image, x along its
 *            rows; the middle of the first one is at 0, and CrystFEL adds the half that it wants.
 *            What is behind the last peak of a frame is 0.
 * Threads:   those of the file.
 * Ownership: a row's memory is here, until close. */
#ifndef SL_SINK_NEXUS_CXI_PEAKS_H
#define SL_SINK_NEXUS_CXI_PEAKS_H

#include <stdbool.h>

#include <sluice/env.h>

#include "hdf5/file.h"

enum { SL_CXI_X, SL_CXI_Y, SL_CXI_INTENSITY, SL_CXI_SNR, SL_CXI_COLUMNS };

struct sl_cxi_peaks {
	struct sl_geometry geometry; /* with its layout */
	bool assembled;		     /* the image has the layout's gaps */
	uint32_t result, most;	     /* most 0: there are no peaks to store */
	struct sl_h5_series *count, *column[SL_CXI_COLUMNS];
	float *row;	/* [most] */
	uint64_t bytes; /* of one frame's */
};

/* 0, also without peaks, or -ENOMEM. The file's status tells whether the rest went well. */
int sl_cxi_peaks_open(struct sl_cxi_peaks *peaks, struct sl_h5 *file, const struct sl_env *env,
		      bool assembled);
void sl_cxi_peaks_append(const struct sl_cxi_peaks *peaks, const struct sl_frame *frame);
void sl_cxi_peaks_close(struct sl_cxi_peaks *peaks);

#endif
