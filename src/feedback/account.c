/* account.c - which events have their answer. */
#include "feedback/account.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feedback/wire.h"

/* Not more than a few MB of them. */
enum { WINDOW_MIN = 1 << 12, WINDOW_MAX = 1 << 16, WINDOW_EVENTS = 1 << 24 };

static uint32_t window_for(uint32_t items)
{
	uint32_t window = WINDOW_EVENTS / items;

	return window > WINDOW_MAX ? WINDOW_MAX : window < WINDOW_MIN ? WINDOW_MIN : window;
}

int sl_feedback_account_init(struct sl_feedback_account *account, uint32_t items, uint64_t step,
			     uint32_t window, bool part, uint64_t deadline_ns)
{
	struct sl_feedback_account *a = account;

	memset(a, 0, sizeof(*a));
	a->items = items;
	a->step = step ? step : 1;
	a->part = part;
	a->own = items;
	a->deadline_ns = deadline_ns;
	a->words = (items + 63) / 64;
	a->window = window ? window : window_for(items);
	a->frame = calloc(a->window, sizeof(*a->frame));
	a->bits = calloc((size_t)a->window * a->words, sizeof(*a->bits));
	return a->frame && a->bits ? sl_feedback_account_senders(a, 1) : -ENOMEM;
}

int sl_feedback_account_senders(struct sl_feedback_account *a, unsigned senders)
{
	size_t bytes = senders * sizeof(*a->notes);

	free(a->notes);
	a->senders = 0;
	a->notes = aligned_alloc(alignof(struct sl_feedback_account_notes), bytes);
	if (!a->notes)
		return -ENOMEM;
	memset(a->notes, 0, bytes);
	a->senders = senders;
	return 0;
}

void sl_feedback_account_own(struct sl_feedback_account *a, uint32_t first, uint32_t n)
{
	a->own_first = first;
	a->own = n;
}

void sl_feedback_account_fini(struct sl_feedback_account *a)
{
	free(a->frame);
	free(a->bits);
	free(a->notes);
	a->notes = NULL;
	a->senders = 0;
	a->frame = NULL;
	a->bits = NULL;
}

/* ---- what was sent ---- */

bool sl_feedback_account_sent(struct sl_feedback_account *a, unsigned sender, uint64_t number,
			      uint64_t ns)
{
	struct sl_feedback_account_notes *notes = &a->notes[sender];
	uint64_t head = atomic_load_explicit(&notes->head, memory_order_relaxed);

	/* Acquire: pairs with the release in absorb; the note there has been read. */
	if (head - atomic_load_explicit(&notes->tail, memory_order_acquire) ==
	    SL_FEEDBACK_ACCOUNT_NOTES)
		return false;
	notes->note[head % SL_FEEDBACK_ACCOUNT_NOTES] =
		(struct sl_feedback_account_note){number, ns};
	atomic_store_explicit(&notes->head, head + 1, memory_order_release);
	return true;
}

static uint64_t slot_of(const struct sl_feedback_account *a, uint64_t number)
{
	return number / a->step % a->window;
}

static void retire(struct sl_feedback_account *a, struct sl_feedback_account_frame *frame)
{
	if (frame->used && frame->event_ns) {
		a->count.missing += frame->left;
		atomic_fetch_sub_explicit(&a->outstanding, frame->left, memory_order_relaxed);
	}
	frame->used = false;
}

/* The place of a frame that is newer than the one there. */
static void claim(struct sl_feedback_account *a, struct sl_feedback_account_frame *frame,
		  uint64_t number)
{
	retire(a, frame);
	*frame = (struct sl_feedback_account_frame){.number = number, .left = a->own, .used = true};
	memset(&a->bits[slot_of(a, number) * a->words], 0, a->words * sizeof(*a->bits));
}

/* The first module of it leaves. Answers that came before count now as those of its events, without
 * a delay. */
static void begin(struct sl_feedback_account *a, struct sl_feedback_account_frame *frame)
{
	for (uint32_t i = frame->left; i < a->own; i++)
		sl_histogram_add(&a->delay, 0);
	a->count.frames++;
	a->count.events += a->own;
	a->count.kept += frame->early[SL_FEEDBACK_KEEP];
	a->count.rejected += frame->early[SL_FEEDBACK_REJECT];
	a->count.no_data += frame->early[SL_FEEDBACK_NO_DATA];
	a->count.not_sent -= a->own - frame->left;
	atomic_fetch_add_explicit(&a->outstanding, frame->left, memory_order_relaxed);
}

static void widen(struct sl_feedback_account *a, uint64_t number)
{
	if (!a->begun || number < a->first)
		a->first = number;
	if (!a->begun || number > a->newest)
		a->newest = number;
	a->begun = true;
}

static void watch(struct sl_feedback_account *a, const struct sl_feedback_account_note *note)
{
	struct sl_feedback_account_frame *frame = &a->frame[slot_of(a, note->number)];

	widen(a, note->number);
	if (!note->ns)
		return;
	if (frame->used && frame->number > note->number)
		return; /* so far behind that the frame was judged */
	if (!frame->used || frame->number < note->number)
		claim(a, frame, note->number);
	if (!frame->event_ns)
		begin(a, frame);
	if (!frame->event_ns || note->ns < frame->event_ns)
		frame->event_ns = note->ns;
}

void sl_feedback_account_absorb(struct sl_feedback_account *a)
{
	for (unsigned i = 0; i < a->senders; i++) {
		struct sl_feedback_account_notes *notes = &a->notes[i];
		uint64_t head = atomic_load_explicit(&notes->head, memory_order_acquire);
		uint64_t tail = atomic_load_explicit(&notes->tail, memory_order_relaxed);

		for (; tail < head; tail++)
			watch(a, &notes->note[tail % SL_FEEDBACK_ACCOUNT_NOTES]);
		atomic_store_explicit(&notes->tail, tail, memory_order_release);
	}
}

bool sl_feedback_account_absorbed(const struct sl_feedback_account *a)
{
	bool all = true;

	for (unsigned i = 0; i < a->senders; i++)
		all &= atomic_load(&a->notes[i].tail) == atomic_load(&a->notes[i].head);
	return all;
}

/* ---- what came ---- */

static void count_decision(struct sl_feedback_account *a, uint16_t decision)
{
	switch (decision) {
	case SL_FEEDBACK_KEEP:
		a->count.kept++;
		break;
	case SL_FEEDBACK_REJECT:
		a->count.rejected++;
		break;
	default:
		a->count.no_data++;
	}
}

/* False: the event had its answer. */
static bool take(struct sl_feedback_account *a, struct sl_feedback_account_frame *frame,
		 uint32_t item)
{
	uint64_t *word = &a->bits[slot_of(a, frame->number) * a->words + item / 64];
	uint64_t bit = UINT64_C(1) << item % 64;

	if (*word & bit)
		return false;
	*word |= bit;
	frame->left--;
	return true;
}

/* An event of a frame that was sent. */
static void tick_off(struct sl_feedback_account *a, struct sl_feedback_account_frame *frame,
		     uint32_t item, uint16_t decision, uint64_t now_ns)
{
	uint64_t ns = now_ns > frame->event_ns ? now_ns - frame->event_ns : 0;

	if (!take(a, frame, item)) {
		a->count.duplicate++;
		return;
	}
	atomic_fetch_sub_explicit(&a->outstanding, 1, memory_order_relaxed);
	count_decision(a, decision);
	sl_histogram_add(&a->delay, ns);
	if (a->deadline_ns && ns > a->deadline_ns)
		a->count.late++;
}

/* An event of a frame of which nothing was sent: a sender that is behind may still do that. */
static void note_early(struct sl_feedback_account *a, struct sl_feedback_account_frame *frame,
		       uint64_t number, uint32_t item, uint16_t decision)
{
	if (frame->used && frame->number > number)
		return;
	if (!frame->used || frame->number < number)
		claim(a, frame, number);
	if (take(a, frame, item))
		frame->early[decision < SL_FEEDBACK_NO_DATA ? decision : SL_FEEDBACK_NO_DATA]++;
}

/* A frame that this front end left out, or that came and went while it was away. */
static bool was_skipped(const struct sl_feedback_account *a, uint64_t number)
{
	return a->begun && number >= a->first && number <= a->newest &&
	       a->newest - number < a->window * a->step;
}

static void look_at_packets(struct sl_feedback_account *a, uint64_t packet)
{
	if (packet > a->next_packet)
		a->count.packets_lost += packet - a->next_packet;
	/* Those that come late were counted as lost; 0 is a receiver that begins. */
	if (packet >= a->next_packet || !packet)
		a->next_packet = packet + 1;
	a->count.packets++;
}

static void look_at_answer(struct sl_feedback_account *a, uint64_t number,
			   const struct sl_feedback_answer *answer, uint64_t now_ns)
{
	struct sl_feedback_account_frame *frame = &a->frame[slot_of(a, number)];
	uint32_t item = (uint32_t)(answer->number % a->items);
	bool is_own = item - a->own_first < a->own; /* else an event of others' modules */

	if (frame->used && frame->number == number && frame->event_ns) {
		if (is_own)
			tick_off(a, frame, item, answer->decision, now_ns);
		else
			a->count.not_sent++;
	} else if (was_skipped(a, number) && (a->part || answer->decision == SL_FEEDBACK_NO_DATA)) {
		a->count.not_sent++;
		if (is_own)
			note_early(a, frame, number, item, answer->decision);
	} else {
		a->count.unknown++;
	}
}

void sl_feedback_account_packet(struct sl_feedback_account *a, const uint8_t *packet, size_t bytes,
				uint64_t now_ns)
{
	struct sl_feedback_header header;

	if (sl_feedback_read(packet, bytes, &header) || header.items != a->items) {
		a->count.malformed++;
		return;
	}
	look_at_packets(a, header.packet);
	for (uint32_t i = 0; i < header.count; i++) {
		struct sl_feedback_answer answer;

		sl_feedback_read_answer(packet, i, &answer);
		look_at_answer(a, header.first / a->items, &answer, now_ns);
	}
	atomic_store_explicit(&a->heard_ns, now_ns, memory_order_relaxed);
}

void sl_feedback_account_end(struct sl_feedback_account *a)
{
	sl_feedback_account_absorb(a);
	for (uint32_t i = 0; i < a->window; i++)
		retire(a, &a->frame[i]);
}

bool sl_feedback_account_agree(const struct sl_feedback_account *a)
{
	return !a->count.missing && !a->count.duplicate && !a->count.unknown && !a->count.malformed;
}
