/* sink.h - where frames end: files, streams, checks. Each is one `struct sl_sink`.
 *
 * Model:     put() is called for the frames the sink wants, in sequence order. A kept frame that
 *            every sink accepted is pending; it becomes stored when the sinks' close() says that
 *            what they accepted is safe. A put() that fails makes its frame unwritten; the sink
 *            logs the first failure, goes on refusing, and still closes what it has properly.
 * Threads:   open and close on the thread that runs the experiment, put between the two on the
 *            settler, or on a thread of its own (own_thread). All may allocate, lock and block:
 *            none is a data thread. But see prompt.
 * Ownership: the frame is the sink's to read until put() returns. */
#ifndef SLUICE_SINK_H
#define SLUICE_SINK_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/env.h>
#include <sluice/feedback.h>
#include <sluice/file.h>
#include <sluice/frame.h>
#include <sluice/option.h>
#include <sluice/outcome.h>
#include <sluice/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sl_wants {
	SL_WANT_KEPT = 1 << 0,
	SL_WANT_REJECTED = 1 << 1, /* vetoed and dark frames */
	SL_WANT_BROKEN = 1 << 2,   /* incomplete, lost, ...: views say what is there */
	SL_WANT_RAW = 1 << 3,	   /* raw pixels: the pipeline adds a result named "raw" */
	/* Results of rejected frames, too, but for images: units need not bring back others. */
	SL_WANT_REJECTED_RESULTS = 1 << 4,
	/* And their images: a sink that stores those of rejected frames. */
	SL_WANT_REJECTED_IMAGES = 1 << 5,
};

/* What happens when frames come faster than a sink with own_thread puts them, in the order of the
 * choices of SL_ON_SLOW. */
enum sl_on_slow {
	SL_ON_SLOW_WAIT,     /* the pool of frames runs dry, and sources wait or overrun */
	SL_ON_SLOW_PRESCALE, /* of N kept frames one is given to it, and a row about each */
	SL_ON_SLOW_STOP,     /* the run ends */
	/* Frames of any kind that come while several wait for it are not given to it, and no
	 * outcome waits for it: for a sink that is not required. Not among the choices of
	 * SL_ON_SLOW. */
	SL_ON_SLOW_DROP,
};
const char *sl_on_slow_name(enum sl_on_slow on_slow); /* "wait", ... */

/* The option that on_slow() returns, a uint32_t, the same words for every sink. */
#define SL_ON_SLOW(S, f)                                                                           \
	SL_CHOICE(S, f, wait, "wait|prescale|stop",                                                \
		  "when it cannot keep pace: front ends wait; or of N kept frames one is stored, " \
		  "with N as small as possible; or the run stops")
#define SL_REQUIRED(S, f)                                                                     \
	SL_BOOL(S, f, true,                                                                   \
		"true: frames that it refuses are unwritten, and the run is damaged; false: " \
		"they are counted only")

/* One figure for the summary; `failed` marks one that must make the run fail when it is not zero.
 */
typedef void sl_sink_figure(void *arg, const char *name, uint64_t value, int failed);

/* One text for the summary, as the root of a hash tree: at most 63 and 127 bytes. */
typedef void sl_sink_text(void *arg, const char *name, const char *value);

enum { SL_SINK_WORKERS = 16 };

/* Frames that are being prepared, wait for an earlier one, or are being put. */
static inline unsigned sl_sink_slots(unsigned workers)
{
	return 2 * workers + 1;
}

/* What a sink is going to write, at most: every frame kept, nothing packed. */
struct sl_sink_space {
	const char *path;     /* of a file of it: where; NULL: it writes none */
	uint64_t frame_bytes; /* for each frame */
	uint64_t fixed_bytes; /* besides */
	uint64_t held_bytes;  /* that its files have reserved and not used yet */
	uint64_t reserved[4];
};

struct sl_sink {
	const char *name, *doc;
	size_t state_bytes;
	const struct sl_option *options;
	uint32_t wants;

	/* What it wants by its options, in addition. NULL: nothing. Asked before open(). */
	uint32_t (*wants_more)(const void *state);
	/* Whether it reads the image of this name (a result of one element per pixel). NULL: it may
	 * read any. What nobody reads need not be written. Asked before open(). */
	int (*reads)(const void *state, const char *image);
	/* Whether put() and figures() run on a thread of this sink's own, so that a slow sink
	 * delays neither the others nor the decisions that go back; for sinks with where(). Frames
	 * come in sequence order there, too; other sinks may read the same frame meanwhile. NULL:
	 * no. Asked before open(). */
	int (*own_thread)(const void *state);
	/* Whether put() and figures() may run on a data thread: a put() takes some microseconds,
	 * and neither allocates, locks, logs, formats nor sleeps. Where one thread does it all
	 * (threads.together), such a sink is given each frame there as soon as it is decided,
	 * before all other sinks; open and close stay where they are. NULL: no. Asked before
	 * open(). */
	int (*prompt)(const void *state);
	/* Threads that prepare frames for a sink with own_thread, several frames at a time: for
	 * work that takes long and needs no order, such as compression. At most SL_SINK_WORKERS.
	 * NULL or 0: none, and put() is called. Asked before open(). */
	unsigned (*workers)(const void *state);
	/* On any of these threads, once for each frame, before put_prepared() of the same frame.
	 * `slot` is below sl_sink_slots(workers) and belongs to this frame from here until
	 * put_prepared() returns: it numbers the memory that the sink has for what it makes here.
	 * An error is kept there, too, and returned by put_prepared(). */
	void (*prepare)(void *state, unsigned slot, struct sl_frame *frame);
	/* In the place of put(), with its rules: in sequence order, on the sink's own thread. */
	int (*put_prepared)(void *state, unsigned slot, struct sl_frame *frame);
	/* Now and then while no frame comes, on the sink's own thread: a few times a second. */
	void (*idle)(void *state);
	int (*open)(void *state, const struct sl_env *env);
	int (*put)(void *state, struct sl_frame *frame);

	/* 0: everything accepted is safe. `status` has the counts, outcomes and figures of the
	 * whole run; what sinks accepted is pending there still, and its result is not known yet.
	 * NULL: the run never began, and nothing may be left behind. Called even when open()
	 * failed. */
	int (*close)(void *state, const struct sl_status *status);

	/* Where the result is, for the user. A sink without this is a check: it is asked before
	 * those that write, so that what it refuses is in no file. */
	const char *(*where)(const void *state);
	void (*figures)(const void *state, sl_sink_figure *figure, void *arg);

	/* The files of its options; before open(). NULL: none. */
	void (*files)(const void *state, sl_file_each *each, void *arg);

	/* How it answers the front end, by its options; before open(), so that a run is refused
	 * whose front end listens otherwise. Fills link, address, source, port, service and device;
	 * the texts are the sink's. NULL: it answers nothing. */
	enum sl_feedback_by (*feedback)(const void *state, struct sl_feedback_sender_options *to);

	/* What is no number, beside figures() and on the same thread; at most 4. NULL: none. */
	void (*texts)(const void *state, sl_sink_text *text, void *arg);

	/* What its options say of the run that is also a key of the experiment's section
	 * `metadata`, as the sample's name; before open(), so that a run is refused in which the
	 * two contradict. NULL, or the result is NULL: nothing. */
	const char *(*fact)(const void *state, const char *key);

	/* What it will need on a disk, for the forecast that is made before the first frame; after
	 * open(), with *space zeroed. NULL: it writes no files, or little. */
	void (*space)(const void *state, struct sl_sink_space *space);

	/* What happens when it cannot keep pace; other than wait needs own_thread. With prescale,
	 * kept frames that are left out reach it without results: their views are unwritten, cause
	 * slow, and it writes a row. NULL: wait. Asked before open(). */
	enum sl_on_slow (*on_slow)(const void *state);
	/* Whether a frame is stored only if this sink has it. 0: what it refuses, and a close()
	 * that fails, are counted and change no outcome. NULL: 1. Asked before open(). */
	int (*required)(const void *state);
	/* The sequence below which all that it accepted is safe, even if the program is killed now;
	 * UINT64_MAX: all that it accepted. On the thread of figures(). NULL: of a sink with
	 * where(), nothing is before close(); of a check, all that it accepted. */
	uint64_t (*durable)(const void *state);
	/* 1: it numbers its images from 0, in the order of the kept frames that it is given, and
	 * other sinks tell users these numbers (image_index). Of several such sinks the first
	 * counts. */
	int numbers_images;
};

static inline uint32_t sl_sink_wants(const struct sl_sink *sink, const void *state)
{
	return sink->wants | (sink->wants_more ? sink->wants_more(state) : 0);
}

#ifdef __cplusplus
}
#endif

#endif
