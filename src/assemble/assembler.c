/* assembler.c - gives out frames in order; gives up on what will not come. */
#include <errno.h>
#include <string.h>

#include <sluice/record.h>

#include "assemble/assembler.h"
#include "base/crc.h"

void sl_assembler_init(struct sl_assembler *assembler, struct sl_ring *ring,
		       const struct sl_assembler_options *options)
{
	*assembler = (struct sl_assembler){.ring = ring, .options = *options};
	for (unsigned m = 0; m < SL_ASSEMBLER_MODULES; m++)
		assembler->end[m] = UINT64_MAX;
}

void sl_assembler_end(struct sl_assembler *assembler, uint32_t module, uint64_t end)
{
	assembler->end[module] = end;
}

static bool ended(const struct sl_assembler *a, uint32_t module)
{
	return a->end[module] != UINT64_MAX;
}

static bool all_done(const struct sl_assembler *a)
{
	for (uint32_t m = 0; m < a->ring->modules; m++)
		if (!ended(a, m) || a->next < a->end[m])
			return false;
	return true;
}

static bool whole(const struct sl_assembler *a)
{
	uint64_t ns;

	for (uint32_t m = 0; m < a->ring->modules; m++)
		if (!sl_ring_event(a->ring, a->next, m, &ns))
			return false;
	return true;
}

/* The head is due once anything of it or of a later sequence has arrived. */
static bool due(const struct sl_assembler *a)
{
	for (uint32_t m = 0; m < a->ring->modules; m++)
		if (sl_ring_reached(a->ring, m) > a->next)
			return true;
	return false;
}

static bool hopeless(struct sl_assembler *a, uint64_t now_ns)
{
	bool passed = true;

	for (uint32_t m = 0; m < a->ring->modules && passed; m++) {
		uint64_t ns;

		passed = ended(a, m) || sl_ring_event(a->ring, a->next, m, &ns) ||
			 sl_ring_reached(a->ring, m) > a->next + a->options.late_frames;
	}
	if (passed)
		return true;
	if (!due(a))
		return false;
	if (!a->waiting_ns)
		a->waiting_ns = now_ns;
	return now_ns - a->waiting_ns > a->options.late_timeout_ns;
}

/* Of the pixels as they travelled: the gaps between lines are nobody's. */
static uint32_t pixels_crc(const struct sl_ring *ring, const uint8_t *pixels)
{
	uint32_t crc = 0;

	if (!ring->lines.pitch)
		return sl_crc32c(0, pixels, ring->pixel_bytes);
	for (uint32_t i = 0; i < ring->lines.count; i++)
		crc = sl_crc32c(crc, pixels + i * ring->lines.pitch, ring->lines.bytes);
	return crc;
}

/* What the record says must agree with where it lies. */
static enum sl_cause record_problem(const struct sl_assembler *a, const struct sl_view *view)
{
	const struct sl_record *r = &view->record;

	if (!sl_record_valid(r) || r->sequence != a->next || r->module != view->module ||
	    r->bytes != a->ring->pixel_bytes)
		return SL_CAUSE_RECORD;
	if (!(r->flags & SL_RECORD_CRC))
		return a->options.require_crc ? SL_CAUSE_RECORD : SL_CAUSE_NONE;
	return pixels_crc(a->ring, view->pixels.host) == r->crc32c ? SL_CAUSE_NONE
								   : SL_CAUSE_CHECKSUM;
}

static void decide(struct sl_view *view, enum sl_outcome outcome, enum sl_cause cause)
{
	view->outcome = (uint8_t)outcome;
	view->cause = (uint8_t)cause;
}

/* Fill one view. True when the module is whole and its record agrees. */
static bool look_at(const struct sl_assembler *a, uint32_t module, struct sl_view *view,
		    uint64_t *event_ns)
{
	const struct sl_ring *ring = a->ring;
	uint8_t *block = sl_ring_block(ring, a->next, module);
	enum sl_cause problem;

	memset(view, 0, sizeof(*view));
	view->module = (uint16_t)module;
	view->packets_arrived = sl_ring_packets(ring, a->next, module);
	view->pixels = (struct sl_array){
		.shape = {.name = "raw",
			  .dtype = a->options.dtype,
			  .rank = 2,
			  .dim = {a->options.rows, a->options.columns}},
		.region = ring->region,
		.offset = sl_ring_block_at(ring, a->next, module),
		.host = block,
		.pitch = ring->lines.pitch,
	};
	if (ended(a, module) && a->next >= a->end[module])
		return false; /* never sent, or after the end was told: no outcome */
	if (!sl_ring_event(ring, a->next, module, event_ns)) {
		if (sl_ring_was_turned_away(ring, a->next, module))
			decide(view, SL_OVERRUN, SL_CAUSE_NO_SLOT);
		else if (view->packets_arrived)
			decide(view, SL_INCOMPLETE, SL_CAUSE_DAMAGED);
		else
			decide(view, SL_LOST, SL_CAUSE_NO_ARRIVAL);
		return false;
	}
	memcpy(&view->record, block + ring->record_at, sizeof(view->record));
	problem = record_problem(a, view);
	if (problem != SL_CAUSE_NONE)
		decide(view, SL_INCOMPLETE, problem);
	return problem == SL_CAUSE_NONE;
}

static bool same_trigger(const struct sl_record *a, const struct sl_record *b)
{
	return a->frame == b->frame && !((a->flags ^ b->flags) & SL_RECORD_DARK);
}

static void describe(const struct sl_assembler *a, struct sl_frame *frame, uint64_t now_ns)
{
	uint64_t emit_ns = UINT64_MAX, event_ns = 0;
	const struct sl_view *first = NULL;
	uint32_t good = 0;

	memset(frame->hop_ns, 0, sizeof(frame->hop_ns));
	frame->sequence = a->next;
	frame->number = a->options.first_frame + a->next * a->options.frame_step;
	frame->timestamp = 0;
	frame->flags = 0;
	frame->views = a->ring->modules;
	for (uint32_t m = 0; m < frame->views; m++) {
		struct sl_view *view = &frame->view[m];
		uint64_t ns = 0;

		if (!look_at(a, m, view, &ns))
			continue;
		/* One frame is one trigger: a module that speaks of another does not belong
		 * here. */
		if (first && !same_trigger(&first->record, &view->record)) {
			decide(view, SL_INCOMPLETE, SL_CAUSE_RECORD);
			continue;
		}
		first = first ? first : view;
		good++;
		frame->number = view->record.frame;
		frame->timestamp = view->record.timestamp;
		if (view->record.flags & SL_RECORD_DARK)
			frame->flags |= SL_FRAME_DARK;
		if (view->record.emit_ns < emit_ns)
			emit_ns = view->record.emit_ns;
		if (ns > event_ns)
			event_ns = ns;
	}
	if (good == frame->views)
		frame->flags |= SL_FRAME_COMPLETE;
	frame->hop_ns[SL_HOP_EMIT] = good ? emit_ns : 0;
	frame->hop_ns[SL_HOP_EVENT] = event_ns;
	frame->hop_ns[SL_HOP_ASSEMBLED] = now_ns;
}

/* A frame that is not complete lets its slot go at once; nobody will read its pixels. */
static void discard(struct sl_assembler *a, struct sl_frame *frame)
{
	for (uint32_t m = 0; m < frame->views; m++) {
		struct sl_view *view = &frame->view[m];
		bool unsent = ended(a, m) && a->next >= a->end[m];

		view->pixels.host = NULL;
		if (view->outcome == SL_NO_OUTCOME && !unsent)
			decide(view, SL_INCOMPLETE, SL_CAUSE_PARTNER);
	}
	sl_ring_release(a->ring, a->next);
}

int sl_assembler_next(struct sl_assembler *assembler, uint64_t now_ns, struct sl_frame *frame)
{
	struct sl_assembler *a = assembler;

	if (all_done(a))
		return -ENODATA;
	/* A slot not yet open cannot be given up; the pipeline opens it when frames come back. */
	if (a->next >= atomic_load_explicit(&a->ring->opened, memory_order_relaxed))
		return 0;
	if (!a->closing) {
		bool complete = whole(a);

		if (!complete && !hopeless(a, now_ns))
			return 0;
		sl_ring_close(a->ring, a->next, &a->grace);
		a->closing = true;
	}
	/* After closing: a poller that was inside may still finish the frame, and then it is
	 * whole after all. */
	if (!sl_ring_quiet(a->ring, &a->grace) && !whole(a))
		return 0;
	describe(a, frame, now_ns);
	if (!(frame->flags & SL_FRAME_COMPLETE))
		discard(a, frame);
	a->closing = false;
	a->waiting_ns = 0;
	a->next++;
	return 1;
}
