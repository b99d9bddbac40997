/* describe.c - a frame out of the heads that belong to it: views, numbers, times, outcomes. */
#include <string.h>

#include <sluice/record.h>

#include "base/crc.h"
#include "receiver/assemble/assembler.h"

static void decide(struct sl_view *view, enum sl_outcome outcome, enum sl_cause cause)
{
	view->outcome = (uint8_t)outcome;
	view->cause = (uint8_t)cause;
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
static enum sl_cause record_problem(const struct sl_assembler *a, uint32_t module,
				    const struct sl_view *view)
{
	const struct sl_record *r = &view->record;

	if (!sl_record_valid(r) || r->sequence != view->sequence || r->module != module ||
	    r->bytes != a->ring->pixel_bytes)
		return SL_CAUSE_RECORD;
	if (!(r->flags & SL_RECORD_CRC))
		return a->options.require_crc ? SL_CAUSE_RECORD : SL_CAUSE_NONE;
	return pixels_crc(a->ring, view->pixels.host) == r->crc32c ? SL_CAUSE_NONE
								   : SL_CAUSE_CHECKSUM;
}

/* Where the source could not be kept out, what does not fit may be what it wrote there later: it
 * came whole for all we know, and that is not known. */
static void decide_problem(const struct sl_assembler *a, uint32_t module, struct sl_view *view,
			   enum sl_cause problem)
{
	const struct sl_record *r = &view->record;

	if (!(a->options.unguarded >> module & 1))
		decide(view, SL_INCOMPLETE, problem);
	else if (sl_record_valid(r) && r->module == module && r->sequence > view->sequence)
		decide(view, SL_OVERRUN, SL_CAUSE_OVERWRITTEN);
	else
		decide(view, SL_UNPROVEN, problem);
}

/* What of a view does not depend on the frame is set once. */
static void init_view(const struct sl_assembler *a, uint32_t module, struct sl_view *view)
{
	if (view->pixels.region != a->ring->region)
		view->pixels = (struct sl_array){
			.shape = {.name = "raw",
				  .dtype = a->options.dtype,
				  .rank = 2,
				  .dim = {a->options.rows, a->options.columns}},
			.region = a->ring->region,
			.pitch = a->ring->lines.pitch,
		};
	view->pixels.host = NULL;
	view->pixels.offset = 0;
	view->sequence = a->head[module].sequence;
	view->module = (uint16_t)(a->options.first_module + module);
	view->held = 0;
	view->packets_arrived = 0;
	decide(view, SL_NO_OUTCOME, SL_CAUSE_NONE);
}

/* Fill the view of a module that has its head in this frame. True when it is whole and its record
 * agrees. */
static bool look_at(const struct sl_assembler *a, uint32_t m, struct sl_view *view,
		    uint64_t *event_ns)
{
	struct sl_ring *ring = a->ring;
	uint64_t k = view->sequence;
	uint8_t *block = sl_ring_block(ring, k, m);
	enum sl_cause problem;

	view->held = 1;
	view->packets_arrived = sl_ring_packets(ring, k, m);
	view->pixels.offset = sl_ring_block_at(ring, k, m);
	view->pixels.host = block;
	if (!sl_ring_event(ring, k, m, event_ns)) {
		memset(&view->record, 0, sizeof(view->record));
		if (sl_ring_was_turned_away(ring, k, m))
			decide(view, SL_OVERRUN, SL_CAUSE_NO_SLOT);
		else if (view->packets_arrived)
			decide(view, SL_INCOMPLETE, SL_CAUSE_DAMAGED);
		else
			decide(view, SL_LOST, SL_CAUSE_NO_ARRIVAL);
		return false;
	}
	sl_ring_finish(ring, k, m);
	memcpy(&view->record, sl_ring_record(ring, k, m), sizeof(view->record));
	problem = record_problem(a, m, view);
	if (problem != SL_CAUSE_NONE)
		decide_problem(a, m, view, problem);
	return problem == SL_CAUSE_NONE;
}

static bool same_trigger(const struct sl_assembler *a, const struct sl_record *x,
			 const struct sl_record *y)
{
	return (a->options.align.by != SL_ALIGN_SEQUENCE || x->frame == y->frame) &&
	       !((x->flags ^ y->flags) & SL_RECORD_DARK);
}

static void let_go(struct sl_assembler *a, uint32_t module, struct sl_view *view)
{
	if (view->held)
		sl_ring_release(a->ring, view->sequence, module);
	view->held = 0;
	view->pixels.host = NULL;
}

/* Nobody will read its pixels: cells go back at once. */
static void discard(struct sl_assembler *a, struct sl_frame *frame, uint64_t members, bool late)
{
	for (uint32_t m = 0; m < frame->views; m++) {
		struct sl_view *view = &frame->view[m];

		if (view->outcome == SL_NO_OUTCOME && (members >> m & 1))
			decide(view, SL_INCOMPLETE, late ? SL_CAUSE_LATE : SL_CAUSE_PARTNER);
		let_go(a, m, view);
	}
}

void sl_assembler_discard(struct sl_assembler *a, struct sl_frame *frame, enum sl_outcome outcome,
			  enum sl_cause cause)
{
	for (uint32_t m = 0; m < frame->views; m++) {
		struct sl_view *view = &frame->view[m];

		if (!sl_frame_misses(frame, m))
			decide(view, outcome, cause);
		let_go(a, m, view);
	}
	frame->flags &= ~(uint32_t)(SL_FRAME_COMPLETE | SL_FRAME_PARTIAL);
}

/* It goes on without the modules that are missing. */
static void fill_in(struct sl_assembler *a, struct sl_frame *frame)
{
	frame->flags |= SL_FRAME_PARTIAL;
	for (uint32_t m = 0; m < frame->views; m++) {
		if (!sl_frame_misses(frame, m))
			continue;
		let_go(a, m, &frame->view[m]);
		frame->view[m].pixels.host = a->options.fill;
	}
}

static void clear(const struct sl_assembler *a, uint64_t key, uint64_t now_ns,
		  struct sl_frame *frame)
{
	memset(frame->hop_ns, 0, sizeof(frame->hop_ns));
	frame->hop_ns[SL_HOP_EMIT] = UINT64_MAX;
	frame->hop_ns[SL_HOP_ASSEMBLED] = now_ns;
	frame->sequence = a->next;
	frame->number = a->options.align.by == SL_ALIGN_SEQUENCE
				? a->options.first_frame + a->next * a->options.frame_step
			: a->options.align.by == SL_ALIGN_FRAME ? key
								: a->number_last + 1;
	frame->timestamp = 0;
	frame->flags = 0;
	frame->missing = 0;
	frame->views = a->ring->modules;
}

/* What the records of whole modules say of the frame. */
static void take_word(const struct sl_assembler *a, struct sl_frame *frame,
		      const struct sl_record *record, uint64_t key, uint64_t event_ns)
{
	if (a->options.align.by != SL_ALIGN_FRAME)
		frame->number = record->frame;
	frame->timestamp = a->options.align.by == SL_ALIGN_TIMESTAMP ? key : record->timestamp;
	if (record->flags & SL_RECORD_DARK)
		frame->flags |= SL_FRAME_DARK;
	if (record->emit_ns < frame->hop_ns[SL_HOP_EMIT])
		frame->hop_ns[SL_HOP_EMIT] = record->emit_ns;
	if (event_ns > frame->hop_ns[SL_HOP_EVENT])
		frame->hop_ns[SL_HOP_EVENT] = event_ns;
}

void sl_assembler_describe(struct sl_assembler *assembler, uint64_t members, uint64_t key,
			   bool late, uint64_t now_ns, struct sl_frame *frame)
{
	struct sl_assembler *a = assembler;
	const struct sl_view *first = NULL;

	clear(a, key, now_ns, frame);
	for (uint32_t m = 0; m < frame->views; m++) {
		struct sl_view *view = &frame->view[m];
		uint64_t ns = 0;

		init_view(a, m, view);
		frame->missing |= UINT64_C(1) << m;
		if (!(members >> m & 1)) {
			memset(&view->record, 0, sizeof(view->record));
			continue; /* never sent, or after the end was told: no outcome */
		}
		if (!look_at(a, m, view, &ns))
			continue;
		/* One frame is one trigger: a module that speaks of another does not belong
		 * here. */
		if (first && !same_trigger(a, &first->record, &view->record)) {
			decide(view, SL_INCOMPLETE, SL_CAUSE_RECORD);
			continue;
		}
		first = first ? first : view;
		frame->missing &= ~(UINT64_C(1) << m);
		take_word(a, frame, &view->record, key, ns);
	}
	if (!first)
		frame->hop_ns[SL_HOP_EMIT] = 0;
	if (first && !late)
		a->number_last = frame->number;
	if (!frame->missing && !late)
		frame->flags |= SL_FRAME_COMPLETE;
	else if (first && a->options.fill && !late)
		fill_in(a, frame);
	else
		discard(a, frame, members, late);
}
