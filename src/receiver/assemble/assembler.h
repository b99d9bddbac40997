/* assembler.h - module events become frames, in order, whole or not.
 *
 * Model:     each module has a stream of cells, in the order of its sequences, and a head: the
 *            oldest one not yet given out. A frame takes the heads that belong together: those of
 *            one sequence, or, where modules may miss triggers, those of one frame number or
 *            timestamp (align.h), the lowest first: an event builder's merge.
 *            A head is known when its event is there; it is given up when the module's own queue
 *            has moved `late_frames` sequences past it (the order of packets decides, so the same
 *            traffic always gives the same result), or when the module has ended. Then it has an
 *            outcome and no key: it goes to the first frame that it can belong to. After
 *            `late_timeout_ns` since anything was due, heads aligned by sequence are given up,
 *            others are left out of the frame; what comes of them later is incomplete, late. That
 *            time passes only as far as the link has looked (core/look.h): packets that wait in a
 *            buffer of this host are not late. A module that was waited for in vain is not waited
 *            for again until it sends something.
 *            Cells that are given up are closed, waited for (ring.h, grace) and released here;
 *            cells of frames that go on stay closed until the pipeline releases them.
 * Threads:   one, the dispatcher's; begin() before it runs, or there.
 *            With several detectors there is an assembler for each, and its frames are parts of
 *            events (join.h).
 * Ownership: fills a frame of the caller's; views point into the ring until the cell is
 *            released.
 * Cost:      a few loads per module and frame; a CRC32C over the pixels when records carry one. */
#ifndef SL_RECEIVER_ASSEMBLE_ASSEMBLER_H
#define SL_RECEIVER_ASSEMBLE_ASSEMBLER_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/frame.h>

#include "core/ring.h"
#include "receiver/assemble/align.h"

enum { SL_ASSEMBLER_MODULES = SL_ALIGN_MODULES };

struct sl_assembler_options {
	uint32_t late_frames;
	uint64_t late_timeout_ns;
	bool require_crc; /* a record without a checksum is not believed */
	/* The detector's number of sequence 0: names frames of which nothing came. */
	uint64_t first_frame;
	uint64_t frame_step;	/* and of sequence 1: first_frame + frame_step */
	enum sl_dtype dtype;	/* of raw pixels */
	uint32_t rows, columns; /* of a module */
	uint32_t first_module;	/* number of its first one, through all detectors */
	struct sl_align align;
	/* Frames with missing modules go on, with these pixels (SL_FILL_BYTE) in their place; NULL:
	 * they do not. */
	void *fill;
	/* A bit per module of this detector: its source cannot be kept from writing again what is
	 * read. What its record or checksum contradicts is then overrun or unproven. */
	uint64_t unguarded;
};

enum sl_head_state {
	SL_HEAD_WAITING,
	SL_HEAD_CLOSING, /* given up; pollers may still be inside */
	SL_HEAD_KNOWN,	 /* its event is there, and its key */
	SL_HEAD_BLIND,	 /* it has no key: given up, or its record is wrong */
	SL_HEAD_ENDED,
};

struct sl_head {	   /* the oldest cell of a module that was not given out */
	uint64_t sequence; /* of its stream */
	uint64_t key;
	enum sl_head_state state;
	/* The last key before it, and whose it was: keys grow with sequences. */
	bool follows;
	uint64_t key_before, sequence_before;
};

struct sl_assembler {
	struct sl_ring *ring;
	struct sl_assembler_options options;
	uint64_t next;	     /* frames given out: the next one's sequence */
	uint64_t waiting_ns; /* since when it is known to be due; 0: not yet */
	uint32_t looked;     /* by sequence: heads below it are known */
	bool closing;	     /* some cells are closed, waiting for pollers to leave */
	bool patient;	     /* the caller's: no time-out, for a source has yet to begin */
	struct sl_grace grace;
	struct sl_head head[SL_ASSEMBLER_MODULES];
	/* 1 + how far a module's stream had come when it was waited for in vain; 0: never. */
	uint64_t silent_at[SL_ASSEMBLER_MODULES];
	/* Per module: sequences from here on were never sent; UINT64_MAX: not known yet. */
	uint64_t end[SL_ASSEMBLER_MODULES];
	bool aligned; /* a key is known: key_last, to which others are near */
	bool passed;  /* a frame with that key was given out */
	uint64_t key_last, number_last;
};

void sl_assembler_init(struct sl_assembler *assembler, struct sl_ring *ring,
		       const struct sl_assembler_options *options);

/* Module's source begins with this sequence and this frame number of its own, before the run or
 * after another source of the module has ended there. */
void sl_assembler_begin(struct sl_assembler *assembler, uint32_t module, uint64_t sequence,
			uint64_t first_frame);

/* Before the first frame: module's sequences below this one are not of this run. Frames are
 * counted from the highest such number on. */
void sl_assembler_skip(struct sl_assembler *assembler, uint32_t module, uint64_t sequence);

/* The source says that module's sequences end here, and everything of it that will ever arrive
 * has arrived. */
void sl_assembler_end(struct sl_assembler *assembler, uint32_t module, uint64_t end);

/* 1: *frame is the next one, with its views' outcomes set where already decided; 0: not yet;
 * -ENODATA: that was the last. */
int sl_assembler_next(struct sl_assembler *assembler, uint64_t now_ns, struct sl_frame *frame);

/* The same in two steps. find: 1: *group are the heads of the next frame; 0; -ENODATA. take: fill
 * the frame, and go on behind it. Modules that end in between leave the group. */
struct sl_group;
int sl_assembler_find(struct sl_assembler *assembler, uint64_t now_ns, struct sl_group *group);
void sl_assembler_take(struct sl_assembler *assembler, const struct sl_group *group,
		       uint64_t now_ns, struct sl_frame *frame);

/* Something of the next frame or of a later one has arrived. */
bool sl_assembler_due(const struct sl_assembler *assembler);

/* Everything that came by this time of modules that are waited for has been taken from the buffers
 * of this host. */
bool sl_assembler_looked(const struct sl_assembler *assembler, uint64_t by_ns);

/* Modules that are waited for cannot have come: their cells are not open. */
bool sl_assembler_shut(const struct sl_assembler *assembler);

/* How many module-frames of all modules were reached so far: whether something came since. */
uint64_t sl_assembler_reached(const struct sl_assembler *assembler);

/* describe.c: fill the frame from the heads that are in it (a bit per module; 0: none), and let the
 * cells go that nobody will read. late: its trigger was given out before. */
void sl_assembler_describe(struct sl_assembler *assembler, uint64_t members, uint64_t key,
			   bool late, uint64_t now_ns, struct sl_frame *frame);

/* A frame that goes on does not after all: its cells go back, and modules without an outcome get
 * this one. */
void sl_assembler_discard(struct sl_assembler *assembler, struct sl_frame *frame,
			  enum sl_outcome outcome, enum sl_cause cause);

#endif
