/* path.c - rules about sources, and about packets and contents that are not as planned. */
#include <string.h>

#include "explain/private.h"

static bool has_late(const struct sl_case_module *m)
{
	return m->cause[SL_CAUSE_LATE] > 0;
}

static bool has_vanished(const struct sl_case_module *m)
{
	return m->vanished;
}

/* ---- sources ---- */

static unsigned late_ms(const struct sl_case *c)
{
	uint64_t ms = c->late_timeout_us / 1000;

	return ms < 1000 ? 5000 : (unsigned)(4 * ms < 3600000 ? 4 * ms : 3600000);
}

static void tell_late(const struct sl_case *c, struct sl_finding *f, const char *who,
		      const char *what)
{
	sl_finding_say(
		f,
		"A front end was late: %s of %s came after the receiver had given the frame up%s.",
		what, who,
		c->late_timeout_us ? ", having waited for as long as ring.late_timeout_ms says"
				   : "");
	sl_finding_advise(
		f, "Find what delays that front end, or wait longer for it, with slots for what "
		   "the others send meanwhile (ring.slots).");
	sl_finding_command(f, "sluice run %s --set ring.late_timeout_ms=%u", sl_case_file(c),
			   late_ms(c));
	if (c->late_timeout_us)
		sl_finding_prove(f, "late_timeout", (double)c->late_timeout_us * 1e-3, "ms");
}

bool sl_rule_late_front_end(const struct sl_case *c, struct sl_finding *f)
{
	uint64_t frames = c->cause[SL_CAUSE_LATE], packets = c->drop[SL_DROP_LATE];
	char who[96], what[96];

	if (frames) {
		f->score = 0.92;
		f->group = "late";
		f->module_frames = frames;
		sl_case_modules(c, has_late, who, sizeof(who));
		snprintf(what, sizeof(what), "%llu module-frames", (unsigned long long)frames);
	} else if (sl_case_missing(c) && (double)packets > 0.3 * sl_case_missing_packets(c)) {
		f->score = 0.91;
		sl_finding_packets(f, (double)packets);
		sl_case_modules(c, sl_case_misses, who, sizeof(who));
		snprintf(what, sizeof(what), "%llu packets", (unsigned long long)packets);
	} else {
		return false;
	}
	tell_late(c, f, who, what);
	sl_finding_prove(f, "late_module_frames", (double)frames, "");
	sl_finding_prove(f, "late_packets", (double)packets, "");
	return true;
}

/* What vanished front ends had offered and did not send, as far as it is known. */
static uint64_t never_sent(const struct sl_case *c)
{
	uint64_t n = 0;

	for (unsigned m = 0; m < c->modules; m++) {
		const struct sl_case_module *module = &c->module[m];

		if (module->vanished && module->offered > module->sent + module->skipped)
			n += module->offered - module->sent - module->skipped;
	}
	return n;
}

bool sl_rule_vanished_front_end(const struct sl_case *c, struct sl_finding *f)
{
	char who[96], rest[120] = "", lack[120] = "";
	uint64_t never = never_sent(c), partners = c->cause[SL_CAUSE_PARTNER];

	if (!c->vanished)
		return false;
	f->score = 0.8;
	f->module_frames = partners;
	sl_case_modules(c, has_vanished, who, sizeof(who));
	if (never)
		snprintf(rest, sizeof(rest),
			 "; it had offered %llu module-frames more than it sent",
			 (unsigned long long)never);
	if (partners)
		snprintf(lack, sizeof(lack), "; %llu module-frames of other modules are incomplete",
			 (unsigned long long)partners);
	sl_finding_say(
		f,
		"The front end of %s vanished: its connection ended, or it said and sent nothing "
		"for control.silence_s%s%s.",
		who, rest, lack);
	sl_finding_advise(
		f, "Look at that front end: its log and exit status. With ring.incomplete: keep, "
		   "frames go on without it.");
	if (partners)
		sl_finding_command(f, "sluice run %s --set ring.incomplete=keep", sl_case_file(c));
	else
		sl_command_by_module(c, f, "sent|offered|source");
	sl_finding_prove(f, "sources_vanished", c->vanished, "");
	if (never)
		sl_finding_prove(f, "module_frames_never_sent", (double)never, "");
	if (partners)
		sl_finding_prove(f, "module_frames_without_partner", (double)partners, "");
	return true;
}

bool sl_rule_skipped(const struct sl_case *c, struct sl_finding *f)
{
	if (!c->skipped)
		return false;
	f->score = 0.9;
	f->module_frames = c->skipped;
	sl_finding_say(
		f,
		"Front ends left out %llu module-frames themselves, and said so: they missed "
		"triggers, or had no room for what came.",
		(unsigned long long)c->skipped);
	sl_finding_advise(
		f,
		"Nothing was lost between front end and receiver: look at the triggers and at "
		"the front end's own buffers%s.",
		c->inject_skip > 0 ? ", or leave out the faults that the experiment asks for" : "");
	if (c->inject_skip > 0)
		sl_finding_command(f, "sluice run %s --set frontend.skip=0", sl_case_file(c));
	else
		sl_command_by_module(c, f, "skipped");
	sl_finding_prove(f, "module_frames_skipped", (double)c->skipped, "");
	return true;
}

/* ---- packets of others, and contents ---- */

bool sl_rule_foreign_packets(const struct sl_case *c, struct sl_finding *f)
{
	static const enum sl_drop kinds[] = {SL_DROP_QUEUE, SL_DROP_PEER, SL_DROP_KEY,
					     SL_DROP_RANGE, SL_DROP_MALFORMED};
	uint64_t refused = sl_case_refused(c);
	enum sl_drop kind = SL_DROP_QUEUE;

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (c->drop[kinds[i]] > c->drop[kind])
			kind = kinds[i];
	if (!sl_case_missing(c) || (double)refused <= 0.3 * sl_case_missing_packets(c) || !refused)
		return false;
	f->score = 0.8;
	sl_finding_say(
		f,
		"%llu packets came that do not fit the plan (%s): the front end sends to another "
		"queue, key or place than it was told, or it is another one.",
		(unsigned long long)refused, sl_drop_name(kind));
	sl_finding_advise(f, "Compare what the front end sends with its plan, packet by packet "
			     "(docs/how-to/connect.md).");
	sl_finding_packets(f, (double)refused);
	sl_command_packets(c, f);
	sl_finding_prove(f, "packets_refused", (double)refused, "");
	sl_finding_prove(f, "packets_missing", sl_case_missing_packets(c), "");
	return true;
}

bool sl_rule_spoilt_memory(const struct sl_case *c, struct sl_finding *f)
{
	uint64_t bad = c->cause[SL_CAUSE_CHECKSUM];

	if (!bad)
		return false;
	f->score = 0.9;
	f->module_frames = bad;
	sl_finding_say(
		f,
		"%llu module-frames arrived whole, with pixels that do not match their checksum: "
		"they were spoilt in the front end's memory, or beyond the network's own checks.",
		(unsigned long long)bad);
	sl_finding_advise(
		f, "Test the memory of the front end; look whether one module has them all.");
	sl_command_by_module(c, f, "checksum");
	sl_finding_prove(f, "wrong_checksums", (double)bad, "");
	return true;
}

bool sl_rule_wrong_record(const struct sl_case *c, struct sl_finding *f)
{
	uint64_t bad = c->cause[SL_CAUSE_RECORD];

	if (!bad)
		return false;
	f->score = 0.9;
	f->module_frames = bad;
	sl_finding_say(
		f,
		"%llu module-frames arrived whole, with records that contradict them or belong to "
		"another trigger than the other modules'.",
		(unsigned long long)bad);
	sl_finding_advise(
		f, "Compare the records that the front end writes with docs/reference/wire.md; "
		   "with triggers that modules may miss, set ring.align: frame.");
	sl_command_by_module(c, f, "record");
	sl_finding_prove(f, "wrong_records", (double)bad, "");
	return true;
}
