/* unit.h - where stages run: CPUs, accelerators. Each is one `struct sl_unit`.
 *
 * Model:     batches go in with submit() and come back with reap(), in order unless the unit was
 *            told that order is not needed; frames reach sinks in sequence all the same. A unit
 *            makes no threads: the pipeline gives it workers, each of which calls work() until the
 *            run ends.
 * Threads:   submit and reap on one thread (the dispatcher); work(w) on worker w. None may
 *            allocate, lock or log.
 * Ownership: a batch is the unit's between submit and reap. */
#ifndef SL_CORE_UNIT_H
#define SL_CORE_UNIT_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/stage.h>

enum { SL_UNIT_WORKERS = 64 }; /* at most, where the program chooses */
enum { SL_CHAIN_STAGES = 16, SL_CHAIN_RAW = SL_STAGE_RAW, SL_CHAIN_NONE = -2 };

struct sl_bell;

struct sl_chain_stage {
	const struct sl_stage *ops;
	void *state;
	int input;  /* SL_CHAIN_RAW, or an index into sl_frame.result */
	int output; /* written tile by tile: SL_CHAIN_NONE, or an index into sl_frame.result */
	struct sl_shape in;
	struct sl_stage_terms terms;
	/* No sink, and no finish(), reads `output`: it may stay with those who work on the tile. */
	int unread;
};

struct sl_chain {
	struct sl_chain_stage stage[SL_CHAIN_STAGES];
	unsigned stages;
	const struct sl_geometry *geometry;
	uint32_t batch_frames; /* most frames in a batch */
	int rejected_read;     /* a sink reads results of rejected frames, but no images */
	int rejected_images;   /* and one reads their images, too */
};

/* One figure for the summary; `failed` marks one that must make the run fail when it is not zero.
 */
typedef void sl_unit_figure(void *arg, const char *name, uint64_t value, int failed);

struct sl_unit {
	const char *name, *doc;
	size_t state_bytes;
	const struct sl_option *options;
	int drives; /* its workers call a driver, which allocates and locks as it likes */

	/* Why it cannot be used on this host and what to do about it; NULL: it can. May itself be
	 * NULL: it always can. */
	const char *(*unavailable)(void);

	/* *workers: how many threads are to call work(). `done` is rung when reap() has something;
	 * `todo` wakes workers. */
	int (*open)(void *state, const struct sl_chain *chain, struct sl_bell *todo,
		    struct sl_bell *done, unsigned *workers);
	void (*close)(void *state);
	/* Where its options leave the number of workers to the program: take this one, and return
	 * 1. 0 workers: only say so. Otherwise return 0. Before open(). NULL: they never do. */
	int (*choose_workers)(void *state, unsigned workers);
	/* How many threads open() will ask for, by its options or as it was told. NULL: one. Asked
	 * before open(). */
	unsigned (*workers)(const void *state);
	/* How many batches of at most so many frames it works on at a time. NULL: one. Asked before
	 * open(). */
	unsigned (*batches)(const void *state, uint32_t batch_frames);
	/* With so many batches inside it has work for all of its workers: one more, if it is not
	 * full, may as well wait for frames that come. NULL: it never has. After open(). */
	unsigned (*enough)(const void *state);
	/* Memory that pixels and results of frames will lie in: copies to and from it may be made
	 * faster now. NULL: it makes none. After open(), before the first submit(). */
	void (*know)(void *state, void *memory, uint64_t bytes);
	/* 0, -EAGAIN when there is no room now, or why it will never be taken. A batch that comes
	 * back with a status other than 0 was not processed: its frames are refused. */
	int (*submit)(void *state, struct sl_batch *batch);
	int (*reap)(void *state, struct sl_batch **batch); /* 1 or 0 */
	int (*work)(void *state, unsigned worker);	   /* 1: did something, 0: idle */
	/* A run is over, and no worker is at work: what a device has learned goes into the state of
	 * the stages, as far as they ask for it (struct sl_stage: conclude). NULL: it is there. */
	void (*settle)(void *state);
	/* Another run begins, with the same chain; no worker is at work. -errno, or NULL: it must
	 * be closed and opened. */
	int (*again)(void *state);
	/* What it has to say when all is over, before close(). NULL: nothing. */
	void (*figures)(const void *state, sl_unit_figure *figure, void *arg);
};

#endif
