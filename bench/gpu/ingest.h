/* ingest.h - between the files of the rows ingest/... of `sluice bench gpu`.
 *
 * Model:     five sources, each a thread with a ring of its own, are the five modules of a frame.
 *            A ring has the words of docs/reference/device-rings.md: an enable word per buffer,
 *            which says whose turn it is to be written, and a meta word, which the source writes
 *            when the event is there: bytes, flags, a checksum of the pixels, the turn. One
 *            thread, the driver, waits for all five meta words of an event, makes a frame of the
 *            five buffers where they lie, gives batches of frames to a unit, takes them back,
 *            compares the checksums that the unit made of what it worked on with those of the
 *            sources, and only then enables the buffers again. So nothing is ever overrun: a slow
 *            unit holds the sources.
 * Ledger:    of events of sources, five to a frame: each is good (it came back, and its checksum is
 *            the source's), wrong (it came back, and is not) or unanswered. Published are those
 *            that the sources counted; the sum of the others is counted by the driver.
 * Files:     source.c the sources; drive.c the driver and the ledger;
 *            ingest_open.c what they need; checksum.c the stage that makes
 *            checksums; ingest.c the rows.
 * Threads:   the sources', the unit's worker, and that of sl_ingest_run().
 * Ownership: open() and close() in any case. */
#ifndef SL_BENCH_GPU_INGEST_H
#define SL_BENCH_GPU_INGEST_H

#include <stdatomic.h>

#include "bench/gpu/gpu.h"
#include "core/device.h"
#include "stage/vectors.h"

enum {
	SL_INGEST_SOURCES = 5,
	SL_INGEST_STAMP = 4, /* words at the beginning of a module that are the event's own; their
				pixels are masked */
	SL_INGEST_PIXELS = SL_INGEST_STAMP * 2,
	SL_INGEST_WHY = 160,
};
#define SL_INGEST_CHECKSUM "checksum"

struct sl_ingest_meta { /* 16 bytes; the turn is written last */
	uint32_t bytes, flags, check;
	_Atomic uint32_t turn;
};

struct sl_ingest_fault { /* for tests */
	bool on;
	unsigned source;
	uint64_t event;
};

struct sl_ingest_terms {
	uint32_t buffers;      /* of a ring: a power of two */
	uint32_t warm;	       /* events before the clock runs */
	bool written;	       /* sources write all pixels of each event; else only a stamp */
	uint64_t run_ns;       /* no new events are asked for after that */
	uint64_t timeout_ns;   /* without anything new: the run ends */
	struct sl_ingest_fault /* the source ends before it; one bit of it is changed */
		vanish,
		spoil;
};

struct sl_ingest;

struct sl_ingest_source {
	struct sl_thread thread;
	struct sl_ingest *home;
	unsigned number;
	struct sl_device_memory memory; /* of the words */
	uint8_t *data;			/* its module of buffer 0, of home->pixels */
	struct sl_ingest_meta *meta;
	_Atomic uint32_t *enable;
	uint32_t *rest;	    /* [buffers]: checksum of resident pixels but for the stamp */
	uint32_t *base;	    /* a module of pixels that are written, each time a little different */
	uint64_t published; /* its own; read when the thread has ended */
};

struct sl_ingest_result {
	uint64_t events, kept;	      /* frames that came back */
	uint64_t timed, took_ns;      /* of these, after the first ones; from when to when */
	uint64_t bytes_in, bytes_out; /* of those */
	uint64_t published, good, wrong, unanswered; /* of sources' events */
	bool closed;
	uint32_t *ns; /* [times]: from the last meta word seen to the frame back */
	size_t times;
	char why[SL_INGEST_WHY]; /* what the first trouble was; "": there was none */
};

struct sl_ingest {
	struct sl_ingest_terms terms;
	struct sl_device *device;    /* NULL: rings are in plain memory */
	struct sl_bench_scene scene; /* with a frame for each buffer */
	uint32_t drawn;		     /* frames that there are pixels of */
	uint8_t *mask;
	uint64_t module_bytes;
	enum sl_vectors vectors;
	struct sl_bench_subject s;
	struct sl_bench_worker worker;
	struct sl_ingest_source source[SL_INGEST_SOURCES];
	/* [buffers][sources]: modules of a frame lie beside each other, so that one copy moves all
	 * of them. */
	struct sl_device_memory pixels;
	_Atomic bool quit;
	/* The driver's: reaped <= submitted <= seen, in events; batches likewise. */
	uint64_t seen, submitted, reaped, until;
	uint64_t given, back;
	struct sl_batch *batch;	  /* [buffers] */
	uint64_t *seen_ns;	  /* [buffers] */
	uint32_t *bright;	  /* [buffers]: the score of resident frames */
	int checksum;		  /* which of the results */
	bool counted[SL_RESULTS]; /* comes back for frames that are kept */
	bool ending;
	int failed;
	uint64_t begun_ns, moved_ns;
	struct sl_ingest_result *result;
};

extern const struct sl_stage sl_bench_checksum_stage;

/* Of n words, the first of which is number `first` of what the checksum is of. */
uint32_t sl_ingest_checksum(const void *words, uint32_t first, uint32_t n);

/* The row's stages over modules that are a fifth of the scene's rows each, in the unit of its
 * platform; in the cpu unit without one. 0 or -errno, logged. */
int sl_ingest_open(struct sl_ingest *g, const struct sl_ingest_terms *terms,
		   const struct sl_bench_row *row, const struct sl_bench_scene *scene,
		   struct sl_device *device);
/* Once. 0; -ETIMEDOUT: nothing came, or came back; -EBADMSG: a checksum was another, or the ledger
 * does not close; or what the unit said. result->why has the words; result->ns is the caller's. */
int sl_ingest_run(struct sl_ingest *g, struct sl_ingest_result *result);
void sl_ingest_close(struct sl_ingest *g);

/* ---- source.c ---- */

/* g->pixels, which all sources have a share of. */
int sl_ingest_pixels_open(struct sl_ingest *g);
void sl_ingest_pixels_close(struct sl_ingest *g);
int sl_ingest_source_open(struct sl_ingest *g, unsigned number);
void sl_ingest_source_close(struct sl_ingest_source *source);
int sl_ingest_source_start(struct sl_ingest_source *source);

static inline uint32_t sl_ingest_turn(uint64_t event)
{
	return (uint32_t)(event + 1);
}

#endif
