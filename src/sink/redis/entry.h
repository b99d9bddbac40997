/* entry.h - a frame as an entry of a Redis Stream, and the run as a hash.
 *
 * Model:     one XADD for each frame: fields of its row (sink/row.h), then one for each selected
 *            result. A result of at most SL_ENTRY_TEXT elements is text, numbers with commas
 *            between them; others are little-endian bytes. A ragged result has as many bytes as it
 *            has rows in this frame. Frames that are broken have no results.
 *            The id of an entry is MILLISECONDS-NUMBER: the wall clock, and the row's number + 1.
 *            Sent again it has the same id, so that Redis has it once.
 * Threads:   functions of their arguments. */
#ifndef SL_SINK_REDIS_ENTRY_H
#define SL_SINK_REDIS_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/env.h>
#include <sluice/frame.h>
#include <sluice/status.h>

#include "sink/redis/command.h"

enum {
	SL_ENTRY_TEXT = 16,	    /* most elements that are written as text */
	SL_ENTRY_AUTO_BYTES = 512,  /* most bytes of a result that is selected by default */
	SL_ENTRY_BYTES = 256 << 10, /* most bytes of one that is selected by name */
	SL_ENTRY_FIELD = SL_NAME_BYTES + 8,
	SL_ENTRY_DESCRIPTION = 96,
};

struct sl_entry_result {
	uint32_t index; /* of sl_frame.result */
	bool text;
	char field[SL_ENTRY_FIELD];
};

struct sl_entry {
	const char *stream; /* the key */
	uint64_t max_rows;  /* 0: no limit */
	uint32_t modules;
	bool kept_only; /* results of kept frames alone */
	struct sl_entry_result result[SL_RESULTS];
	uint32_t results;
	uint64_t number; /* of the row that is added next */
	uint64_t ms;	 /* its time */
};

/* selection: names with commas between them; "": all small ones; "none". Logged: -EINVAL. */
int sl_entry_select(struct sl_entry *entry, const struct sl_env *env, const char *selection);

/* image: index of its image in the file of the run; -1: it has none there. */
void sl_entry_frame(const struct sl_entry *entry, const struct sl_frame *frame, int64_t image,
		    struct sl_command *command);

/* The last one of a run. */
void sl_entry_end(const struct sl_entry *entry, uint64_t frames, uint64_t missed,
		  struct sl_command *command);

/* "float32 (4) text", "float32 (rows,4) bytes". */
void sl_entry_describe(const struct sl_shape *shape, bool text,
		       char description[SL_ENTRY_DESCRIPTION]);

#endif
