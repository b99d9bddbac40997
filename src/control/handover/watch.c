/* watch.c - watching sources that cannot count. */
#include "receiver/private.h"
#include "control/handover/watch.h"
#include "base/log.h"

enum {
	/* Nothing came for this long, and the link looked this often: nothing will come. */
	DRAIN_NS = 200 * 1000 * 1000,
	DRAIN_LOOKS = 3,
};

void sl_handover_watch_init(struct sl_handover_watch *taken_over, struct sl_receiver *receiver,
			    double silence_s)
{
	*taken_over = (struct sl_handover_watch){.receiver = receiver,
						 .silence_ns = (uint64_t)(silence_s * 1e9)};
}

/* The sequence after all that it offered. */
static uint64_t last_of(const struct sl_source *s)
{
	uint64_t first = s->plan.first_sequence;

	return s->offer.frames && s->offer.frames < UINT64_MAX - first ? first + s->offer.frames
								       : UINT64_MAX;
}

/* No block of it is under way. */
static bool between_blocks(const struct sl_source *s,
			   const struct sl_handover_watch_module *m)
{
	return m->seen.reached <= s->first || m->seen.packets == s->plan.packets;
}

/* It cannot send: no slot is open for its next block. That is not silence. */
static bool waits_for_us(const struct sl_source *s, const struct sl_handover_watch_module *m)
{
	return m->seen.reached >= m->seen.opened && between_blocks(s, m);
}

static void look(struct sl_handover_watch *a, uint32_t module, uint64_t now_ns)
{
	struct sl_handover_watch_module *m = &a->module[module];
	struct sl_receiver_progress was = m->seen;

	sl_receiver_progress(a->receiver, module, &m->seen);
	if (m->quiet_ns && m->seen.reached == was.reached && m->seen.packets == was.packets &&
	    !waits_for_us(&a->receiver->source[module], m))
		return;
	m->quiet_ns = now_ns;
	m->quiet_idle = m->seen.idle;
}

/* It has sent all that it offered, or all that it will. */
static bool has_ended(const struct sl_handover_watch *a, uint32_t module, uint64_t now_ns)
{
	const struct sl_source *s = &a->receiver->source[module];
	const struct sl_handover_watch_module *m = &a->module[module];

	if (m->seen.reached >= last_of(s) && between_blocks(s, m))
		return true;
	return a->stopping && (waits_for_us(s, m) || (now_ns - m->quiet_ns > DRAIN_NS &&
						      m->seen.idle - m->quiet_idle >= DRAIN_LOOKS));
}

void sl_handover_watch_poll(struct sl_handover_watch *a, uint64_t now_ns)
{
	for (uint32_t i = 0; i < a->receiver->ring.modules; i++) {
		struct sl_handover_watch_module *m = &a->module[i];

		if (m->over)
			continue;
		look(a, i, now_ns);
		if (has_ended(a, i, now_ns)) {
			m->over = true;
			sl_receiver_end(a->receiver, i);
		} else if (a->silence_ns && now_ns - m->quiet_ns > a->silence_ns) {
			m->over = true;
			sl_warn("the source of module %u fell silent (control.silence_s)", i);
			sl_receiver_source_lost(a->receiver, i);
		}
	}
}

void sl_handover_watch_stop(struct sl_handover_watch *a)
{
	struct sl_receiver *r = a->receiver;
	uint64_t opened = 0;

	a->stopping = true;
	for (uint32_t i = 0; i < r->ring.modules; i++) {
		struct sl_receiver_progress progress;

		sl_receiver_progress(r, i, &progress);
		if (progress.opened > opened)
			opened = progress.opened;
	}
	for (uint32_t i = 0; i < r->ring.modules; i++) {
		const struct sl_source *s = &r->source[i];

		/* Over RC it is told to come again, and waits. */
		if (!s->open_loop || s->plan.service == SL_SERVICE_RC) {
			sl_receiver_limit(r, opened);
		} else if (!a->module[i].over) {
			a->module[i].over = true;
			sl_receiver_cut(r, i);
		}
	}
}

void sl_handover_watch_abandon(struct sl_handover_watch *a)
{
	for (uint32_t i = 0; i < a->receiver->ring.modules; i++) {
		if (a->module[i].over)
			continue;
		a->module[i].over = true;
		sl_receiver_source_lost(a->receiver, i);
	}
}

bool sl_handover_watch_exhausted(const struct sl_receiver *r)
{
	for (uint32_t i = 0; i < r->ring.modules; i++) {
		const struct sl_source *s = &r->source[i];
		uint32_t state = atomic_load(&s->state);

		if (state == SL_SOURCE_DONE)
			continue;
		if (state != SL_SOURCE_ENDED || sl_ring_reached(&r->ring, i) < last_of(s))
			return false;
	}
	return true;
}
