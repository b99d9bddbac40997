/* status.c - what a run counts, as series. */
#include <sluice/status.h>

#include "core/ledger.h"
#include "flight/private.h"

static void counter(struct sl_series_ring *ring, const char *unit, uint64_t value, const char *name)
{
	sl_series_put(ring, SL_SERIES_COUNTER, unit, value, "%s", name);
}

static void gauge(struct sl_series_ring *ring, const char *unit, uint64_t value, const char *name)
{
	sl_series_put(ring, SL_SERIES_GAUGE, unit, value, "%s", name);
}

static void sample_ledger(const struct sl_status *s, struct sl_series_ring *ring)
{
	uint64_t cause[SL_CAUSES] = {0}, sent = 0;

	for (uint32_t m = 0; m < s->modules; m++) {
		sent += s->column[m].sent;
		for (unsigned c = 0; c < SL_CAUSES; c++)
			cause[c] += s->column[m].cause[c];
	}
	counter(ring, "", sent, "sent");
	for (unsigned o = SL_STORED; o < SL_OUTCOMES; o++)
		sl_series_put(ring, SL_SERIES_COUNTER, "", sl_status_total(s, o), "outcome.%s",
			      sl_outcome_name(o));
	for (unsigned c = SL_CAUSE_NONE + 1; c < SL_CAUSES; c++)
		sl_series_put(ring, SL_SERIES_COUNTER, "", cause[c], "cause.%s", sl_cause_name(c));
	counter(ring, "", s->frames, "frames.settled");
	counter(ring, "", s->kept, "frames.kept");
	counter(ring, "", s->late, "frames.late");
}

static void sample_link(const struct sl_status *s, struct sl_series_ring *ring)
{
	counter(ring, "", s->packets, "link.packets");
	counter(ring, "bytes", s->packet_bytes, "link.bytes");
	counter(ring, "", s->marked, "link.marked");
	counter(ring, "", s->notified, "link.notified");
	gauge(ring, "bytes", s->waiting_bytes, "socket.waiting");
	gauge(ring, "bytes", s->waiting_most_bytes, "socket.waiting_most");
	for (unsigned d = 0; d < SL_DROPS; d++)
		sl_series_put(ring, SL_SERIES_COUNTER, "", s->dropped[d], "drop.%s",
			      sl_drop_name(d));
}

static void sample_queues(const struct sl_status *s, struct sl_series_ring *ring)
{
	gauge(ring, "", s->slots.now, "slots");
	gauge(ring, "", s->at_unit.now, "unit.frames");
	gauge(ring, "", s->at_sinks.now, "sinks.frames");
	counter(ring, "ns", s->threads.busy_ns, "unit.busy");
	for (uint32_t i = 0; i < s->addons && i < SL_STATUS_ADDONS; i++) {
		const struct sl_status_pace *pace = &s->pace[i];
		const char *name = s->addon[i].name;

		if (!s->addon[i].is_sink || !pace->threaded)
			continue;
		sl_series_put(ring, SL_SERIES_GAUGE, "", pace->waiting.now, "sink.%s.waiting",
			      name);
		sl_series_put(ring, SL_SERIES_COUNTER, "ns", pace->waited_ns, "sink.%s.waited",
			      name);
		sl_series_put(ring, SL_SERIES_COUNTER, "", pace->left_out, "sink.%s.left_out",
			      name);
	}
}

/* How far each source has come, and the slots that its credits let it fill. */
static void sample_modules(const struct sl_status *s, struct sl_series_ring *ring)
{
	for (uint32_t m = 0; m < s->modules; m++) {
		const struct sl_status_source *source = &s->source[m];

		sl_series_put(ring, SL_SERIES_COUNTER, "", s->column[m].sent, "module.%u.sent", m);
		sl_series_put(ring, SL_SERIES_COUNTER, "", source->reached, "module.%u.reached", m);
		sl_series_put(ring, SL_SERIES_COUNTER, "", s->column[m].settled,
			      "module.%u.settled", m);
		sl_series_put(ring, SL_SERIES_COUNTER, "", source->opened, "module.%u.opened", m);
	}
}

void sl_flight_sample_status(const struct sl_status *s, struct sl_series_ring *ring)
{
	sample_ledger(s, ring);
	sample_link(s, ring);
	sample_queues(s, ring);
	sample_modules(s, ring);
}

uint64_t sl_flight_lost(const struct sl_status *s)
{
	uint64_t lost = 0;

	for (unsigned o = SL_STORED; o < SL_OUTCOMES; o++)
		if (sl_outcome_is_loss((enum sl_outcome)o))
			lost += sl_status_total(s, (enum sl_outcome)o);
	return lost;
}
