/* raw_sink.h - the state of the sink `raw`, for its files.
 *
 * Threads:   those of the sink. */
#ifndef SL_SINK_RAW_RAW_SINK_H
#define SL_SINK_RAW_RAW_SINK_H

#include <limits.h>

#include <sluice/sink.h>

#include "raw/raw.h"
#include "sink/raw/stored_frame.h"
#include "sink/raw/stored_run.h"

enum { SL_RAW_SINK_PATH = 1024, SL_RAW_SINK_FOLDERS = 16 };
enum { SL_RAW_FRAMES_AUTO, SL_RAW_FRAMES_KEPT, SL_RAW_FRAMES_ALL }; /* the choices of `frames` */

#define SL_RAW_REPLACED ".replaced" /* behind the names of what gives way */

struct sl_raw_sink {
	char path[SL_RAW_SINK_PATH], dataset[SL_NAME_BYTES], folders[4 * SL_RAW_SINK_PATH];
	uint32_t frames; /* of the choices */
	double keep_s, flush_s;
	uint64_t file_bytes, keep_bytes;
	bool cached, overwrite, required;
	uint32_t on_slow; /* 0: auto; 1 + enum sl_on_slow */

	struct sl_raw_writer *writer;
	const struct sl_env *env;
	struct sl_stored_choice choice;
	struct sl_frame_room room;
	uint64_t began_unix_ns, began_ns;
	int refusal;			       /* why no more frames are taken; 0: they are */
	uint64_t images, rows, refused, first; /* first: its sequence */
	struct sl_raw_counts last;	       /* once the file is closed */
	char where[PATH_MAX]; /* path, absolute: for sluice cut in another folder */
	char **old;	      /* [olds]: files of an earlier run that are set aside */
	uint32_t olds;
};

extern const struct sl_option sl_raw_sink_options[];

/* raw_open.c */
int sl_raw_sink_open(void *state, const struct sl_env *env);
/* Files of the earlier run go, or get their names back. */
void sl_raw_sink_end_old(struct sl_raw_sink *raw, bool bring_back);

static inline bool sl_raw_sink_rolls(const struct sl_raw_sink *raw)
{
	return raw->keep_s > 0 || raw->keep_bytes;
}

/* No run waits for a rolling buffer, unless the user asks for it. */
static inline enum sl_on_slow sl_raw_sink_on_slow(const struct sl_raw_sink *raw)
{
	if (raw->on_slow)
		return (enum sl_on_slow)(raw->on_slow - 1);
	return sl_raw_sink_rolls(raw) ? SL_ON_SLOW_DROP : SL_ON_SLOW_WAIT;
}

/* Images of frames that are rejected are stored, too. */
static inline bool sl_raw_sink_all(const struct sl_raw_sink *raw)
{
	return raw->frames == SL_RAW_FRAMES_ALL ||
	       (raw->frames == SL_RAW_FRAMES_AUTO && sl_raw_sink_rolls(raw));
}

#endif
