/* state.h - the state of the sink `nexus`: its options, its file and what it has counted.
 *
 * Threads:   those of the sink; workers read the options and use the slots of `ready`. */
#ifndef SL_SINK_NEXUS_STATE_H
#define SL_SINK_NEXUS_STATE_H

#include <sluice/sink.h>

#include "sink/nexus/account.h"
#include "sink/nexus/audit.h"
#include "sink/nexus/cxi_peaks.h"
#include "sink/nexus/facts.h"
#include "sink/nexus/hits.h"
#include "sink/nexus/images.h"
#include "sink/nexus/nexus.h"
#include "sink/nexus/results.h"
#include "sink/nexus/sparse_frames.h"
#include "sink/nexus/turns.h"

enum { SL_NEXUS_PATH = 1024 };
enum { SL_NEXUS_MODULES, SL_NEXUS_ASSEMBLED, SL_NEXUS_NONE }; /* the choices of `image` */
enum { SL_NEXUS_ALL, SL_NEXUS_KEPT };			      /* frames whose results are stored */

#define SL_NEXUS_UNKNOWN "unknown" /* names that no option gives */

struct sl_nexus {
	char path[SL_NEXUS_PATH], dataset[SL_NAME_BYTES], instrument[64], source[64], sample[64];
	uint32_t image;	  /* of the choices */
	uint32_t results; /* SL_NEXUS_ALL, SL_NEXUS_KEPT */
	uint32_t compression, workers, frames_per_file;
	double flush_s;
	bool overwrite, audit, required;
	uint32_t on_slow;
	char group[64], mode[8];

	const struct sl_env *env;
	struct sl_nexus_rebuild rebuild; /* zeros: the run itself writes */
	bool rebuilds;			 /* the times are those of the recording */
	struct sl_facts facts;		 /* what users say of the run */
	struct sl_h5 *file;
	struct sl_account account;
	struct sl_mosaic mosaic; /* when assembled */
	struct sl_images ready;	 /* images to be stored */
	struct sl_results found;
	struct sl_hits hits;
	struct sl_cxi_peaks peaks;
	struct sl_sparse_frames sparse;
	struct sl_turns turns;
	struct sl_nexus_audit leaves; /* with `audit` */
	uint32_t image_crc;	      /* of the frame at hand */
	struct sl_h5_series *images, *number, *timestamp, *sequence, *missing;
	uint64_t result_bytes, image_bytes; /* of what stages made; as stored, not packed */
	int refusal;			    /* why no more frames are taken; 0: they are */
	uint64_t frames, bytes, stored_bytes, refused;
	uint32_t in_file;	     /* frames of the data file at hand */
	uint64_t flushed_ns;	     /* when it was last */
	uint64_t rows, flushed_rows; /* about any frame */
	uint64_t durable;	     /* of these, when the file is closed */
	uint64_t first;		     /* sequence of the first row */
	char where[SL_NEXUS_PATH + sizeof(".part")];
};

extern const struct sl_option sl_nexus_options[];

/* open.c: calls of the sink. */
int sl_nexus_open(void *state, const struct sl_env *env);
int sl_nexus_own_thread(const void *state);
unsigned sl_nexus_workers(const void *state);

/* space.c */
void sl_nexus_space(const void *state, struct sl_sink_space *space);

#endif
