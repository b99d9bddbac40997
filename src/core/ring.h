/* ring.h - slots that a front end fills and the pipeline drains, and the cells where their events
 * appear.
 *
 * Model:     N slots; sequence k of a module lies in slot k % N, in the module's own page-aligned
 *            block (pixels, then record). Block and state are its cell's: modules share memory, and
 *            nothing else, so one that lags behind the others, or is gone, holds up only itself.
 *
 *              FREE --open--> OPEN@k --close--> CLOSED@k --release--> FREE --open--> OPEN@k+N ...
 *
 *            Cells of a module open strictly in sequence order. While OPEN@k the link may place
 *            bytes of sequence k and of no other; while CLOSED@k nobody writes and the readers own
 *            it. An event is state, not a message: cell[slot][module] says which sequence is proven
 *            complete there; nothing can be full, nothing is lost in between. A complete cell is
 *            written no more: the link refuses bytes that it has received.
 * Threads:   link threads (pollers): enter, may_place, progress, reach, turn_away, raise, leave.
 *            One assembler thread: open, event, close, finish, grace, quiet, release. Each cell has
 *            one writer, the poller of its module. A cell may be closed while a poller is inside it
 *            (giving up on a late module): pollers bracket each poll with enter/leave, and the cell
 *            is handed on only when every poller has left the section it was in ("quiet").
 * Promises:  invariant EXCLUSIVE: nobody writes into a block between its hand-over to readers and
 *            its release, nor into a cell that has gone on to another sequence.
 *            invariant PROVEN: what is published as good is its own to the last byte, from its
 *            event until its release.
 *            invariant NAMED: the cause of what is not whole is the true one.
 *            tests/model checks them on a model of these calls.
 * Ownership: the region holds pixels and records only. Cells and lanes are private memory no peer
 *            can write.
 * Cost:      wait-free; no allocation or system call after init, except waking a sleeping
 *            assembler. */
#ifndef SL_CORE_RING_H
#define SL_CORE_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sluice/record.h>

#include "core/region.h"

struct sl_bell;

enum {
	SL_POLLERS = 8,
	/* So far ahead of its slots a source is remembered, sequence by sequence: which of them
	 * were turned away. A source that is further ahead is not believed
	 * (receiver/sources.c). */
	SL_RING_AWAY = 1 << 20,
};
enum sl_slot_state { SL_SLOT_FREE, SL_SLOT_OPEN, SL_SLOT_CLOSED };

/* One per slot and module. A poller writes to those of its modules for every packet: so cells of a
 * module lie together, and no two modules have them on one cache line. */
struct sl_cell {
	_Atomic uint64_t state; /* sequence << 2 | enum sl_slot_state */
	_Atomic uint64_t event; /* sequence + 1 that is proven complete; released by raise, acquired
				   by event */
	_Atomic uint64_t event_ns; /* when; written before event */
	_Atomic uint64_t progress; /* (sequence + 1) << 24 | packets placed so far */
};

struct sl_lane { /* one per module */
	/* The poller's: 1 + the highest sequence of which anything arrived; how many module-frames
	 * were turned away, and which (a bit per sequence, modulo SL_RING_AWAY). */
	alignas(64) _Atomic uint64_t reached;
	_Atomic uint64_t turned_away;
	_Atomic uint64_t *away;
	/* Everything that came by then has been taken (look.h); 0: no link has the module yet.
	 * Released by looked, acquired by looked_at: events of what was taken are seen. */
	_Atomic uint64_t looked_ns;
	/* The assembler's: sequences below it have had their cell opened; how many were released.
	 */
	alignas(64) _Atomic uint64_t opened;
	_Atomic uint64_t released;
};

struct sl_poller {
	alignas(64) _Atomic uint64_t epoch; /* odd while inside a poll */
};

/* How a module's pixels lie in its block: lines, with or without a gap between them, from the
 * block's beginning on or as a rectangle inside of it. */
struct sl_lines {
	uint32_t count, bytes;
	uint64_t pitch; /* bytes from one to the next; 0: they follow each other */
	uint64_t first; /* byte of the block where they begin; 0 without a pitch */
};

struct sl_ring {
	struct sl_region *region;
	struct sl_bell *bell; /* rung on events; the assembler sleeps on it */
	uint32_t slots, modules;
	uint64_t pixel_bytes;  /* of one module */
	uint64_t block_bytes;  /* pixels and record, as they travel */
	struct sl_lines lines; /* of the pixels */
	uint64_t record_at;    /* from the first pixel on */
	uint64_t block_stride; /* page-aligned block */
	uint64_t slot_stride;  /* never a power of two: slots must not fall onto the same cache sets
				*/
	struct sl_cell *cell;  /* [modules][cell_stride], of which `slots` are used */
	uint32_t cell_stride;
	struct sl_lane *lane;	/* [modules] */
	_Atomic uint64_t *away; /* of all lanes */
	struct sl_poller poller[SL_POLLERS];
	_Atomic uint64_t opened; /* cells that were ever opened: when it moves, there is new room */
};

/* How many bytes of region a ring of this shape needs. */
uint64_t sl_ring_region_bytes(uint32_t slots, uint32_t modules, uint64_t pixel_bytes);
uint64_t sl_ring_lines_bytes(uint32_t slots, uint32_t modules, const struct sl_lines *lines);

/* No slot is open yet. The region and the bell stay the caller's. */
int sl_ring_init(struct sl_ring *ring, struct sl_region *region, struct sl_bell *bell,
		 uint32_t slots, uint32_t modules, uint64_t pixel_bytes);

/* The same of blocks of lines. -EINVAL also for a pitch that is shorter than a line. */
int sl_ring_init_lines(struct sl_ring *ring, struct sl_region *region, struct sl_bell *bell,
		       uint32_t slots, uint32_t modules, const struct sl_lines *lines);
void sl_ring_fini(struct sl_ring *ring);

/* Before any cell of module was opened: its first sequence is this one; what belongs to earlier
 * ones is late. */
void sl_ring_begin(struct sl_ring *ring, uint32_t module, uint64_t sequence);

/* Where in the region the first pixel lies. */
static inline uint64_t sl_ring_block_at(const struct sl_ring *ring, uint64_t sequence,
					uint32_t module)
{
	return sequence % ring->slots * ring->slot_stride + module * ring->block_stride +
	       ring->lines.first;
}

static inline uint8_t *sl_ring_block(const struct sl_ring *ring, uint64_t sequence, uint32_t module)
{
	return (uint8_t *)ring->region->base + sl_ring_block_at(ring, sequence, module);
}

/* Where its record lies. */
static inline uint8_t *sl_ring_record(const struct sl_ring *ring, uint64_t sequence,
				      uint32_t module)
{
	return sl_ring_block(ring, sequence, module) + ring->record_at;
}

static inline struct sl_cell *sl_ring_cell(const struct sl_ring *ring, uint64_t sequence,
					   uint32_t module)
{
	return &ring->cell[(size_t)module * ring->cell_stride + sequence % ring->slots];
}

/* ---- link threads ---- */

void sl_ring_enter(struct sl_ring *ring, unsigned poller);
void sl_ring_leave(struct sl_ring *ring, unsigned poller);

enum sl_ring_place { SL_PLACE_OK, SL_PLACE_LATE, SL_PLACE_AHEAD };

/* May bytes of sequence be placed now? Valid until sl_ring_leave(). */
enum sl_ring_place sl_ring_may_place(const struct sl_ring *ring, uint64_t sequence,
				     uint32_t module);
void sl_ring_progress(struct sl_ring *ring, uint64_t sequence, uint32_t module, uint32_t packets);
void sl_ring_reach(struct sl_ring *ring, uint64_t sequence, uint32_t module);
void sl_ring_turn_away(struct sl_ring *ring, uint64_t sequence, uint32_t module);

/* What came of module by this time has been taken, as sl_look_pass() says; 0: nothing new is known.
 * UINT64_MAX: nothing more will be taken. Times that differ by less than 20 us may be left out. */
void sl_ring_looked(struct sl_ring *ring, uint32_t module, uint64_t ns);

/* The module-frame is proven complete: everything written to its block so far is visible to who
 * sees the event. */
void sl_ring_raise(struct sl_ring *ring, uint64_t sequence, uint32_t module, uint64_t now_ns);

/* ---- the assembler's thread ---- */

/* Open every module's cells, in order, as long as the next one is free and its sequence is below
 * limit. Returns how many it were of the module that got most. */
unsigned sl_ring_open(struct sl_ring *ring, uint64_t limit);

/* True, with the time of the event, when sequence of module is proven complete. */
bool sl_ring_event(const struct sl_ring *ring, uint64_t sequence, uint32_t module,
		   uint64_t *event_ns);

struct sl_grace { /* what pollers were doing when a slot was closed */
	uint64_t epoch[SL_POLLERS];
};

/* From now on nothing more is placed into these cells, except by pollers still inside: after the
 * last close() take the grace, and wait for sl_ring_quiet() before reading. */
void sl_ring_close(struct sl_ring *ring, uint64_t sequence, uint32_t module);
void sl_ring_grace(struct sl_ring *ring, struct sl_grace *grace);
bool sl_ring_quiet(const struct sl_ring *ring, const struct sl_grace *grace);

/* The same for a cell whose event was seen: it has no writer, and there is nobody to wait for. */
void sl_ring_finish(struct sl_ring *ring, uint64_t sequence, uint32_t module);

/* CLOSED@sequence -> FREE. */
void sl_ring_release(struct sl_ring *ring, uint64_t sequence, uint32_t module);

/* ---- any thread ---- */

/* Sequences of module below it have had their cell opened. */
uint64_t sl_ring_opened(const struct sl_ring *ring, uint32_t module);
uint32_t sl_ring_packets(const struct sl_ring *ring, uint64_t sequence, uint32_t module);
bool sl_ring_was_turned_away(const struct sl_ring *ring, uint64_t sequence, uint32_t module);
uint64_t sl_ring_reached(const struct sl_ring *ring, uint32_t module);
uint64_t sl_ring_looked_at(const struct sl_ring *ring, uint32_t module);

/* Cells of module that hold something: reached, and not yet released. */
uint32_t sl_ring_used(const struct sl_ring *ring, uint32_t module);

/* Another source takes over the module from this sequence on; what the one before began there is
 * forgotten. No poller may know the lane, and every sequence before it must have been sent. */
void sl_ring_rewind(struct sl_ring *ring, uint32_t module, uint64_t sequence);

#endif
