/* nxmx.h - the fixed part of an NXmx file: what is known before the first frame.
 *
 * Model:     groups and fields that describe entry, instrument, detector, beam and sample, from the
 * geometry. The images themselves go to /entry/data/data, which the caller makes. The file is
 * called NXmx (/entry/definition) only when it has all that the definition requires. What XDS
 * (neggia) looks for, as DECTRIS files have it, is in detectorSpecific.
 *
 * Threads:   those of the file.
 *
 * Errors:    stick to the file (hdf5/file.h). */
#ifndef SL_SINK_NEXUS_NXMX_H
#define SL_SINK_NEXUS_NXMX_H

#include <stdbool.h>

#include <sluice/env.h>

#include "hdf5/file.h"

struct sl_nxmx {
	const struct sl_geometry *geometry; /* with its layout resolved */
	double frame_rate_Hz;		    /* 0: not known */
	uint64_t began_unix_ns;		    /* 0: now */
	uint32_t height, width;		    /* of an image as stored */
	bool assembled;	      /* it is the layout's, with gaps; else modules below each other */
	bool beamless;	      /* set within: nobody knows where the beam is */
	const uint32_t *mask; /* [height][width]; NULL: none is stored */
	enum sl_dtype dtype;
	bool counts; /* whole numbers as the detector sent them; the highest is no count */
	const char *instrument, *source, *sample;
	/* Of /entry/data: "data", or what else is to be shown where no images are stored; and the
	 * group of the entry that is shown first. */
	const char *signal, *plot;
};

int sl_nxmx_begin(struct sl_h5 *file, const struct sl_nxmx *about);

/* What the definition requires and this geometry does not have, as the options that set it, with
 * commas; "": nothing. */
void sl_nxmx_lacks(const struct sl_geometry *geometry, char *text, size_t bytes);

/* What is known only now: when it ended, and with how many images. */
int sl_nxmx_end(struct sl_h5 *file, uint64_t images, uint64_t ended_unix_ns); /* 0: now */

enum sl_h5_type sl_nxmx_type(enum sl_dtype dtype);

#endif
