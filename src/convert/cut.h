/* cut.h - a part of a recorded run as a NeXus file of its own, while the run may go on.
 *
 * Model:     the window is the last seconds before the newest frame, or a number of frames around
 *            one. Every frame of the window has a row with its verdict and outcome, as in any file;
 *            every image that was recorded is stored, those of rejected and dark frames too:
 *            image_index in the rows says which frames have one. The ledger is that of the rows,
 *            and closes. What of the window is not in the recording any more, or not yet, is said
 *            in the file (/entry/sluice/cut), too.
 * Threads:   as convert.h. The writer of the recording is not asked, and does not wait.
 * Errors:    -errno, logged. */
#ifndef SL_CONVERT_CUT_H
#define SL_CONVERT_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/env.h>

struct sl_cut_options {
	const char *raw, *out;
	const char *const *set; /* [sets]: "option=value" of the sink nexus */
	unsigned sets;
	bool overwrite;
	double last_s; /* 0: around */
	/* Frame, or event where frames are blocks of events; and frames before and after it. */
	uint64_t around, before, after;
	double wait_s; /* longest wait for the frames after it */
	/* As the run has them now; NULL: those of the recording. */
	const struct sl_env_metadata *metadata;
};

enum { SL_CUT_TEXT = 512 };

struct sl_cut_made {
	uint64_t frames, images, kept; /* rows; stored; of these, of frames that were kept */
	uint64_t first, last;	       /* frame numbers */
	double seconds;		       /* from the arrival of the first to that of the last */
	char missing[SL_CUT_TEXT];     /* what of the window is not there; empty: nothing */
};

int sl_cut(const struct sl_cut_options *options, struct sl_cut_made *made);

#endif
