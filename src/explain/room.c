/* room.c - rules about module-frames that found no slot, or were given back, and about the unit. */
#include <string.h>

#include "explain/private.h"

static uint64_t without_room(const struct sl_case *c)
{
	return c->cause[SL_CAUSE_NO_SLOT] + c->cause[SL_CAUSE_OLDEST];
}

/* The sink that the data waited for longest. */
static const struct sl_case_sink *slowest(const struct sl_case *c)
{
	const struct sl_case_sink *slowest = NULL;

	for (unsigned i = 0; i < c->sinks; i++)
		if (c->sink[i].waited_ns && (!slowest || c->sink[i].waited_ns > slowest->waited_ns))
			slowest = &c->sink[i];
	return slowest;
}

/* A sink held most frames of the pool, so slots stayed closed. */
bool sl_rule_slow_sink_room(const struct sl_case *c, struct sl_finding *f)
{
	const struct sl_case_sink *s = slowest(c);
	double waited = s ? (double)s->waited_ns * 1e-9 : 0;

	if (!s || waited < 0.05 * c->seconds)
		return false;
	f->score = 0.9;
	sl_finding_say(
		f,
		"The disk is slower than the data: sink %s held most frames of the pool, and the "
		"data waited %.2f s for it%s%s; meanwhile the ring was full, and %llu "
		"module-frames "
		"found no room (ring.overrun: %s).",
		s->name, waited, s->where[0] ? ", which writes " : "", s->where,
		(unsigned long long)without_room(c), c->overrun[0] ? c->overrun : "?");
	sl_finding_advise(
		f, "Write less (compression, a veto), to a faster disk, or let this sink leave "
		   "frames out (on_slow: prescale).");
	sl_finding_command(f, "sluice run %s --set sinks.%s.on_slow=prescale", sl_case_file(c),
			   s->name);
	sl_finding_prove(f, "waited_for_sink", waited, "s");
	sl_finding_prove(f, "frames_at_sink", (double)s->waiting_most, "");
	sl_finding_prove(f, "slots_used", (double)c->slots_most, "");
	sl_finding_prove(f, "slots", (double)c->slots, "");
	return true;
}

static void name_bottleneck(const struct sl_case *c, char *text, size_t bytes)
{
	if (c->unit_busy > 0.7)
		snprintf(text, bytes, "the stages took %.0f %% of the time of all workers",
			 100 * c->unit_busy);
	else
		snprintf(text, bytes, "%llu of %llu slots were in use at most",
			 (unsigned long long)c->slots_most, (unsigned long long)c->slots);
}

bool sl_rule_overrun_policy(const struct sl_case *c, struct sl_finding *f)
{
	bool oldest = c->cause[SL_CAUSE_OLDEST] >= c->cause[SL_CAUSE_NO_SLOT];
	const char *policy = c->overrun[0] ? c->overrun : oldest ? "drop_oldest" : "drop_newest";
	char bottleneck[120];

	if (!without_room(c))
		return false;
	f->score = 0.75;
	name_bottleneck(c, bottleneck, sizeof(bottleneck));
	sl_finding_say(
		f,
		"The ring was full, and its policy says what goes then (ring.overrun: %s): %llu "
		"module-frames %s; %s.",
		policy, (unsigned long long)without_room(c),
		oldest ? "were given back unprocessed" : "were turned away", bottleneck);
	sl_finding_advise(
		f, c->credits ? "Let sources wait instead, or process less: fewer stages, more "
				"workers, a larger ring for bursts."
			      : "These sources cannot wait: send less, process less, or give the "
				"ring more slots for bursts.");
	if (c->credits)
		sl_finding_command(f, "sluice run %s --set ring.overrun=pause", sl_case_file(c));
	else
		sl_finding_command(f, "sluice run %s --set ring.slots=%llu", sl_case_file(c),
				   (unsigned long long)(c->slots ? 4 * c->slots : 128));
	sl_finding_prove(f, "module_frames_without_room", (double)without_room(c), "");
	sl_finding_prove(f, "slots_used", (double)c->slots_most, "");
	sl_finding_prove(f, "slots", (double)c->slots, "");
	if (c->unit_busy >= 0)
		sl_finding_prove(f, "unit_busy", c->unit_busy, "");
	return true;
}

bool sl_rule_overwritten(const struct sl_case *c, struct sl_finding *f)
{
	uint64_t n = c->cause[SL_CAUSE_OVERWRITTEN];

	if (!n)
		return false;
	f->score = 0.95;
	f->module_frames = n;
	sl_finding_say(f,
		       "%llu module-frames were overwritten while they were being read: their "
		       "source wrote "
		       "beyond its credits, and this link cannot refuse that.",
		       (unsigned long long)n);
	sl_finding_advise(
		f, "Make the front end keep its credits, or take a link that refuses what does "
		   "not fit (udp, packet, xdp).");
	sl_finding_command(f, "sluice run %s --set link.kind=udp", sl_case_file(c));
	sl_finding_prove(f, "overwritten", (double)n, "");
	return true;
}

bool sl_rule_unit_failed(const struct sl_case *c, struct sl_finding *f)
{
	uint64_t n = c->cause[SL_CAUSE_UNIT];

	if (!n)
		return false;
	f->score = 0.9;
	f->module_frames = n;
	sl_finding_say(f,
		       "The unit could not process %llu module-frames: a device or a stage failed.",
		       (unsigned long long)n);
	sl_finding_advise(f, "The log says what failed; unit.kind: cpu needs no device.");
	sl_finding_command(f, "sluice run %s --set unit.kind=cpu", sl_case_file(c));
	sl_finding_prove(f, "refused_by_unit", (double)n, "");
	return true;
}
