/* convert.h - a NeXus file out of a raw file: what the sink `nexus` would have written in the same
 * run.
 *
 * Model:     the sink itself writes it: it is opened with the environment of the recording, gets
 *            its frames in order and is closed with the status of the run's end. A run that did not
 *            come to its end is converted as far as it goes; its ledger, summed up from the rows,
 *            does not close, and the file's state is "recovered", as with sluice recover.
 *            With data files (frames_per_file) a conversion that was interrupted goes on behind the
 *            last whole one (journal.h).
 * Threads:   the caller's is the sink's own; others read and pack (pump.h).
 * Errors:    -errno, logged. */
#ifndef SL_CONVERT_CONVERT_H
#define SL_CONVERT_CONVERT_H

#include <sluice/sink.h>

#include "convert/recorded.h"

struct sl_convert_options {
	const char *raw, *out;
	const char *const *set; /* [sets]: "option=value" of the sink nexus */
	unsigned sets;
	bool overwrite;
	void (*progress)(void *arg, uint64_t done, uint64_t of); /* NULL: none */
	void *arg;
};

struct sl_converted {
	uint64_t rows, images;
	uint32_t kept_files; /* of an earlier conversion */
	bool whole;	     /* the run had come to its end */
	bool done;	     /* an earlier conversion had finished the file: nothing was done */
};

int sl_convert(const struct sl_convert_options *options, struct sl_converted *converted);

/* ---- shared with cut.c ---- */

/* The sink nexus with options for this recording; to be freed. NULL: logged. */
void *sl_convert_sink(const struct sl_recorded *recorded, const char *out, bool overwrite,
		      const char *const *set, unsigned sets);
extern const struct sl_sink sl_sink_nexus;

/* The ledger of a part of a run, from the rows of its frames. */
void sl_convert_count(struct sl_status *status, const struct sl_frame *frame);

#endif
