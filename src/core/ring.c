/* ring.c - slot states, event cells, and the grace period between giving up a slot and reading
 * it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bell.h"
#include "core/ring.h"

enum {
	STATE_BITS = 2,
	PROGRESS_BITS = 24,
	AWAY_WORDS = SL_RING_AWAY / 64,
	LINE = 64,
	LOOKED_NS = 20000
};

static uint64_t word(uint64_t sequence, enum sl_slot_state state)
{
	return sequence << STATE_BITS | state;
}

static uint64_t record_at(const struct sl_lines *lines)
{
	return (uint64_t)lines->count * (lines->pitch ? lines->pitch : lines->bytes);
}

static uint64_t block_stride(uint64_t record_at)
{
	uint64_t page = (uint64_t)getpagesize(), bytes = record_at + SL_RECORD_BYTES;

	/* Small blocks a page apart would all fall onto the same cache sets, and each would want a
	 * page table entry of its own: an odd number of cache lines spreads them. */
	if (bytes <= page / 2)
		return (bytes + LINE - 1) / LINE / 2 * 2 * LINE + LINE;
	return (bytes + page - 1) / page * page;
}

static uint64_t slot_stride(uint32_t modules, uint64_t record_at)
{
	uint64_t stride = modules * block_stride(record_at);

	/* A power of two would put the same pixel of every slot into the same cache set. */
	if ((stride & (stride - 1)) == 0)
		stride += (uint64_t)getpagesize();
	return stride;
}

uint64_t sl_ring_region_bytes(uint32_t slots, uint32_t modules, uint64_t pixel_bytes)
{
	return slots * slot_stride(modules, pixel_bytes);
}

/* Zeroed, and alone on its cache lines. */
static void *cache_lines(size_t bytes)
{
	size_t whole = (bytes + LINE - 1) / LINE * LINE;
	void *memory = aligned_alloc(LINE, whole);

	return memory ? memset(memory, 0, whole) : NULL;
}

/* Whole cache lines, and one more: cells of one slot must not lie a power of two apart, where they
 * would meet in the same set of a cache. */
static uint32_t cell_stride(uint32_t slots)
{
	const uint32_t in_line = LINE / sizeof(struct sl_cell);

	return (slots + in_line - 1) / in_line * in_line + in_line;
}

uint64_t sl_ring_lines_bytes(uint32_t slots, uint32_t modules, const struct sl_lines *lines)
{
	return slots * slot_stride(modules, lines->first + record_at(lines));
}

/* lines->bytes has 32 bits: pixels beyond that are no lines (count 0). */
static int init(struct sl_ring *ring, struct sl_region *region, struct sl_bell *bell,
		uint32_t slots, uint32_t modules, uint64_t pixel_bytes,
		const struct sl_lines *lines)
{
	uint64_t at = lines->pitch ? record_at(lines) : pixel_bytes;

	if (slots < 2 || !modules || !pixel_bytes)
		return -EINVAL;
	if (region->bytes < slots * slot_stride(modules, lines->first + at))
		return -ENOSPC;

	memset(ring, 0, sizeof(*ring));
	ring->region = region;
	ring->bell = bell;
	ring->slots = slots;
	ring->modules = modules;
	ring->pixel_bytes = pixel_bytes;
	ring->block_bytes = pixel_bytes + SL_RECORD_BYTES;
	ring->lines = *lines;
	ring->record_at = at;
	ring->block_stride = block_stride(lines->first + at);
	ring->slot_stride = slot_stride(modules, lines->first + at);

	ring->cell_stride = cell_stride(slots);
	ring->cell = cache_lines((size_t)modules * ring->cell_stride * sizeof(*ring->cell));
	ring->lane = cache_lines(modules * sizeof(*ring->lane));
	/* Pages that nobody touches unless a source is ahead of its slots. */
	ring->away = calloc((size_t)modules * AWAY_WORDS, sizeof(*ring->away));
	if (!ring->cell || !ring->lane || !ring->away) {
		sl_ring_fini(ring);
		return -ENOMEM;
	}
	for (uint32_t m = 0; m < modules; m++)
		ring->lane[m].away = ring->away + (size_t)m * AWAY_WORDS;
	return 0;
}

int sl_ring_init(struct sl_ring *ring, struct sl_region *region, struct sl_bell *bell,
		 uint32_t slots, uint32_t modules, uint64_t pixel_bytes)
{
	return init(ring, region, bell, slots, modules, pixel_bytes, &(struct sl_lines){0});
}

int sl_ring_init_lines(struct sl_ring *ring, struct sl_region *region, struct sl_bell *bell,
		       uint32_t slots, uint32_t modules, const struct sl_lines *lines)
{
	if (!lines->count || !lines->bytes || (lines->first && !lines->pitch) ||
	    (lines->pitch && lines->first % lines->pitch + lines->bytes > lines->pitch))
		return -EINVAL;
	return init(ring, region, bell, slots, modules, (uint64_t)lines->count * lines->bytes,
		    lines);
}

void sl_ring_fini(struct sl_ring *ring)
{
	free(ring->cell);
	free(ring->lane);
	free(ring->away);
	ring->cell = NULL;
	ring->lane = NULL;
	ring->away = NULL;
}

void sl_ring_begin(struct sl_ring *ring, uint32_t module, uint64_t sequence)
{
	struct sl_lane *lane = &ring->lane[module];

	/* Release: a poller that sees it knows what is late. */
	atomic_store_explicit(&lane->opened, sequence, memory_order_release);
	atomic_store_explicit(&lane->released, sequence, memory_order_relaxed);
	atomic_store_explicit(&lane->reached, sequence, memory_order_relaxed);
}

void sl_ring_enter(struct sl_ring *ring, unsigned poller)
{
	/* Odd epoch, then cell states: pairs with close and grace (state, then epoch). One of the
	 * two sees the other's store, so either this poller finds the cell closed or the assembler
	 * finds this poller inside (invariant EXCLUSIVE). A read-modify-write on each side rather
	 * than a fence, because ThreadSanitizer does not model fences. */
	atomic_fetch_add_explicit(&ring->poller[poller].epoch, 1, memory_order_seq_cst);
}

void sl_ring_leave(struct sl_ring *ring, unsigned poller)
{
	/* Release: everything placed in this section is visible to who sees it ended (quiet). */
	atomic_fetch_add_explicit(&ring->poller[poller].epoch, 1, memory_order_release);
}

static bool is_open(const struct sl_ring *ring, uint64_t sequence, uint32_t module)
{
	/* seq_cst with close; acquire with open, whose release hands the cell's memory back from
	 * its readers. */
	return atomic_load_explicit(&sl_ring_cell(ring, sequence, module)->state,
				    memory_order_seq_cst) == word(sequence, SL_SLOT_OPEN);
}

enum sl_ring_place sl_ring_may_place(const struct sl_ring *ring, uint64_t sequence, uint32_t module)
{
	if (is_open(ring, sequence, module))
		return SL_PLACE_OK;
	if (sequence >= sl_ring_opened(ring, module))
		return SL_PLACE_AHEAD;
	/* It may have been opened between the two looks: then it is not late but just in time
	 * (invariant NAMED). */
	return is_open(ring, sequence, module) ? SL_PLACE_OK : SL_PLACE_LATE;
}

void sl_ring_progress(struct sl_ring *ring, uint64_t sequence, uint32_t module, uint32_t packets)
{
	/* Relaxed: read only after quiet, which orders it. */
	atomic_store_explicit(&sl_ring_cell(ring, sequence, module)->progress,
			      (sequence + 1) << PROGRESS_BITS | packets, memory_order_relaxed);
}

void sl_ring_reach(struct sl_ring *ring, uint64_t sequence, uint32_t module)
{
	_Atomic uint64_t *reached = &ring->lane[module].reached;

	/* One writer per lane, so a plain compare and store will do. */
	if (sequence + 1 > atomic_load_explicit(reached, memory_order_relaxed)) {
		atomic_store_explicit(reached, sequence + 1, memory_order_release);
		if (ring->bell)
			sl_bell_ring(ring->bell);
	}
}

void sl_ring_looked(struct sl_ring *ring, uint32_t module, uint64_t ns)
{
	_Atomic uint64_t *looked = &ring->lane[module].looked_ns;

	/* Not at each pass of a thread that spins: the assembler reads this cache line. */
	if (ns && ns - atomic_load_explicit(looked, memory_order_relaxed) >= LOOKED_NS)
		atomic_store_explicit(looked, ns, memory_order_release);
}

static _Atomic uint64_t *away_word(const struct sl_ring *ring, uint64_t sequence, uint32_t module)
{
	return &ring->lane[module].away[sequence / 64 % AWAY_WORDS];
}

void sl_ring_turn_away(struct sl_ring *ring, uint64_t sequence, uint32_t module)
{
	struct sl_lane *lane = &ring->lane[module];
	uint64_t bit = UINT64_C(1) << sequence % 64, before;

	/* Everything older than a ring before `opened` was released and its bit cleared, so within
	 * these bounds a bit means one sequence. */
	if (sequence >= sl_ring_opened(ring, module) + SL_RING_AWAY - 2 * (uint64_t)ring->slots)
		return;
	/* Relaxed: read only after reached, or after quiet, which order it. */
	before = atomic_fetch_or_explicit(away_word(ring, sequence, module), bit,
					  memory_order_relaxed);
	if (!(before & bit))
		atomic_fetch_add_explicit(&lane->turned_away, 1, memory_order_relaxed);
}

void sl_ring_raise(struct sl_ring *ring, uint64_t sequence, uint32_t module, uint64_t now_ns)
{
	struct sl_cell *cell = sl_ring_cell(ring, sequence, module);

	atomic_store_explicit(&cell->event_ns, now_ns, memory_order_relaxed);
	/* Release: pairs with the acquire in sl_ring_event; the bytes before it (invariant
	 * PROVEN). */
	atomic_store_explicit(&cell->event, sequence + 1, memory_order_release);
	if (ring->bell)
		sl_bell_ring(ring->bell);
}

static unsigned open_slot(struct sl_ring *ring, uint32_t module, uint64_t limit)
{
	_Atomic uint64_t *opened = &ring->lane[module].opened;
	uint64_t next = atomic_load_explicit(opened, memory_order_relaxed);
	unsigned n = 0;

	for (; next < limit; next++, n++) {
		struct sl_cell *cell = sl_ring_cell(ring, next, module);
		/* Acquire: pairs with the release in sl_ring_release; readers are done with the
		 * memory (invariant EXCLUSIVE). */
		uint64_t state = atomic_load_explicit(&cell->state, memory_order_acquire);

		if ((state & ((1u << STATE_BITS) - 1)) != SL_SLOT_FREE)
			break;
		atomic_store_explicit(&cell->state, word(next, SL_SLOT_OPEN), memory_order_release);
		/* After the state: a poller that sees the count also sees the cell open, and
		 * credits speak of cells that are (invariants NAMED, GRANTED). */
		atomic_store_explicit(opened, next + 1, memory_order_release);
	}
	return n;
}

unsigned sl_ring_open(struct sl_ring *ring, uint64_t limit)
{
	unsigned sum = 0, most = 0;

	for (uint32_t m = 0; m < ring->modules; m++) {
		unsigned n = open_slot(ring, m, limit);

		sum += n;
		most = n > most ? n : most;
	}
	/* One writer. Release: who sees it move sees the cells open. */
	if (sum)
		atomic_store_explicit(&ring->opened,
				      atomic_load_explicit(&ring->opened, memory_order_relaxed) +
					      sum,
				      memory_order_release);
	return most;
}

bool sl_ring_event(const struct sl_ring *ring, uint64_t sequence, uint32_t module,
		   uint64_t *event_ns)
{
	const struct sl_cell *cell = sl_ring_cell(ring, sequence, module);

	if (atomic_load_explicit(&cell->event, memory_order_acquire) != sequence + 1)
		return false;
	*event_ns = atomic_load_explicit(&cell->event_ns, memory_order_relaxed);
	return true;
}

void sl_ring_close(struct sl_ring *ring, uint64_t sequence, uint32_t module)
{
	atomic_exchange_explicit(&sl_ring_cell(ring, sequence, module)->state,
				 word(sequence, SL_SLOT_CLOSED), memory_order_seq_cst);
}

void sl_ring_grace(struct sl_ring *ring, struct sl_grace *grace)
{
	for (unsigned i = 0; i < SL_POLLERS; i++)
		grace->epoch[i] =
			atomic_fetch_add_explicit(&ring->poller[i].epoch, 0, memory_order_seq_cst);
}

void sl_ring_finish(struct sl_ring *ring, uint64_t sequence, uint32_t module)
{
	/* What a poller thinks of this cell does not matter any more: it holds all of its bytes,
	 * and none is placed twice. */
	atomic_store_explicit(&sl_ring_cell(ring, sequence, module)->state,
			      word(sequence, SL_SLOT_CLOSED), memory_order_release);
}

bool sl_ring_quiet(const struct sl_ring *ring, const struct sl_grace *grace)
{
	for (unsigned i = 0; i < SL_POLLERS; i++)
		if ((grace->epoch[i] & 1) &&
		    atomic_load_explicit(&ring->poller[i].epoch, memory_order_acquire) ==
			    grace->epoch[i])
			return false;
	return true;
}

void sl_ring_release(struct sl_ring *ring, uint64_t sequence, uint32_t module)
{
	struct sl_lane *lane = &ring->lane[module];

	if (atomic_load_explicit(&lane->turned_away, memory_order_relaxed))
		atomic_fetch_and_explicit(away_word(ring, sequence, module),
					  ~(UINT64_C(1) << sequence % 64), memory_order_relaxed);
	atomic_store_explicit(&sl_ring_cell(ring, sequence, module)->state,
			      word(sequence, SL_SLOT_FREE), memory_order_release);
	atomic_store_explicit(&lane->released,
			      atomic_load_explicit(&lane->released, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

uint32_t sl_ring_packets(const struct sl_ring *ring, uint64_t sequence, uint32_t module)
{
	uint64_t progress = atomic_load_explicit(&sl_ring_cell(ring, sequence, module)->progress,
						 memory_order_relaxed);

	if (progress >> PROGRESS_BITS != ((sequence + 1) & (UINT64_MAX >> PROGRESS_BITS)))
		return 0;
	return (uint32_t)(progress & ((1u << PROGRESS_BITS) - 1));
}

bool sl_ring_was_turned_away(const struct sl_ring *ring, uint64_t sequence, uint32_t module)
{
	return atomic_load_explicit(&ring->lane[module].turned_away, memory_order_relaxed) &&
	       atomic_load_explicit(away_word(ring, sequence, module), memory_order_relaxed) >>
			       sequence % 64 &
		       1;
}

uint64_t sl_ring_reached(const struct sl_ring *ring, uint32_t module)
{
	return atomic_load_explicit(&ring->lane[module].reached, memory_order_acquire);
}

uint64_t sl_ring_looked_at(const struct sl_ring *ring, uint32_t module)
{
	return atomic_load_explicit(&ring->lane[module].looked_ns, memory_order_acquire);
}

uint64_t sl_ring_opened(const struct sl_ring *ring, uint32_t module)
{
	return atomic_load_explicit(&ring->lane[module].opened, memory_order_acquire);
}

uint32_t sl_ring_used(const struct sl_ring *ring, uint32_t module)
{
	uint64_t opened = sl_ring_opened(ring, module), reached = sl_ring_reached(ring, module);
	uint64_t released =
		atomic_load_explicit(&ring->lane[module].released, memory_order_relaxed);
	uint64_t held = reached < opened ? reached : opened;

	return held > released ? (uint32_t)(held - released) : 0;
}

void sl_ring_rewind(struct sl_ring *ring, uint32_t module, uint64_t sequence)
{
	uint64_t reached = sl_ring_reached(ring, module);

	for (uint64_t k = sequence; k < sl_ring_opened(ring, module); k++)
		atomic_store_explicit(&sl_ring_cell(ring, k, module)->progress, 0,
				      memory_order_relaxed);
	for (uint64_t k = sequence; k < reached; k++)
		atomic_fetch_and_explicit(away_word(ring, k, module), ~(UINT64_C(1) << k % 64),
					  memory_order_relaxed);
	atomic_store_explicit(&ring->lane[module].looked_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->lane[module].reached, sequence, memory_order_release);
}
