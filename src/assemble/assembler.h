/* assembler.h - module events become frames, in sequence order, whole or not.
 *
 * Model:     the head is the oldest sequence not yet given out. It is given out when every
 *            module's event is there; or given up when each missing module's own queue has moved
 *            `late_frames` sequences past it (the order of packets decides, so the same traffic
 *            always gives the same result), or has ended, or when `late_timeout_ns` have passed
 *            since anything of this or a later sequence arrived. Given-up slots are closed,
 *            waited for (ring.h, grace) and released here; slots of complete frames stay closed
 *            until the pipeline releases them.
 * Threads:   one, the dispatcher's; sl_assembler_end() there too.
 * Ownership: fills a frame of the caller's; views point into the ring until the slot is
 *            released.
 * Cost:      a few loads per module per call; a CRC32C over the pixels when records carry one. */
#ifndef SL_ASSEMBLE_ASSEMBLER_H
#define SL_ASSEMBLE_ASSEMBLER_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/frame.h>
#include <sluice/ring.h>

enum { SL_ASSEMBLER_MODULES = 64 };

struct sl_assembler_options {
	uint32_t late_frames;
	uint64_t late_timeout_ns;
	bool require_crc; /* a record without a checksum is not believed */
	/* The detector's number of sequence 0: names frames of which nothing came. */
	uint64_t first_frame;
	uint64_t frame_step;	/* and of sequence 1: first_frame + frame_step */
	enum sl_dtype dtype;	/* of raw pixels */
	uint32_t rows, columns; /* of a module */
};

struct sl_assembler {
	struct sl_ring *ring;
	struct sl_assembler_options options;
	uint64_t next;	     /* the head */
	uint64_t waiting_ns; /* since when the head is known to be due; 0: not yet */
	bool closing;	     /* the head's slot is closed, waiting for pollers to leave */
	struct sl_grace grace;
	/* Per module: sequences from here on were never sent; UINT64_MAX: not known yet. */
	uint64_t end[SL_ASSEMBLER_MODULES];
};

void sl_assembler_init(struct sl_assembler *assembler, struct sl_ring *ring,
		       const struct sl_assembler_options *options);

/* The source says that module's sequences end here, and everything of it that will ever arrive
 * has arrived. */
void sl_assembler_end(struct sl_assembler *assembler, uint32_t module, uint64_t end);

/* 1: *frame is the next one, with its views' outcomes set where already decided; 0: not yet;
 * -ENODATA: that was the last. */
int sl_assembler_next(struct sl_assembler *assembler, uint64_t now_ns, struct sl_frame *frame);

#endif
