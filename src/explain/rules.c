/* rules.c - the table of rules, and the order of what they find. */
#include "explain/explain.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "explain/private.h"

/* Losses that have one cause together. */
enum group {
	/* Of packets, by where they went. */
	SOCKET,
	NIC,
	BACKLOG,
	PATH,
	FOREIGN,
	LATE,
	ROOM,
	OVERWRITTEN,
	CONTENT,
	SINK,
	SLOW,
	UNIT,
	SOURCE,
	SKIPPED,
	GROUPS
};

static const char *const group_name[GROUPS] = {
	[SOCKET] = "socket",   [NIC] = "nic",
	[BACKLOG] = "backlog", [PATH] = "path",
	[FOREIGN] = "foreign", [LATE] = "late",
	[ROOM] = "room",       [OVERWRITTEN] = "overwritten",
	[CONTENT] = "content", [SINK] = "sink",
	[SLOW] = "slow",       [UNIT] = "unit",
	[SOURCE] = "source",   [SKIPPED] = "skipped",
};

static const struct {
	const char *cause;
	enum group group;
	sl_rule_fn *rule;
} rules[] = {
	{"stopped_receiver", SOCKET, sl_rule_stopped_receiver},
	{"small_receive_buffer", SOCKET, sl_rule_small_receive_buffer},
	{"starved_core", SOCKET, sl_rule_starved_core},
	{"busy_link_thread", SOCKET, sl_rule_busy_link_thread},
	{"overflowed_buffer", SOCKET, sl_rule_overflowed_buffer},
	{"nic_ring", NIC, sl_rule_nic_ring},
	{"kernel_backlog", BACKLOG, sl_rule_kernel_backlog},
	{"wrong_mtu", PATH, sl_rule_wrong_mtu},
	{"congested_port", PATH, sl_rule_congested_port},
	{"late_front_end", LATE, sl_rule_late_front_end},
	{"foreign_packets", FOREIGN, sl_rule_foreign_packets},
	{"nothing_arrives", PATH, sl_rule_nothing_arrives},
	{"lossy_cable", PATH, sl_rule_lossy_cable},
	{"stopped_receiver", ROOM, sl_rule_stopped_room},
	{"slow_disk", ROOM, sl_rule_slow_sink_room},
	{"starved_core", ROOM, sl_rule_starved_room},
	{"overrun_policy", ROOM, sl_rule_overrun_policy},
	{"overwritten", OVERWRITTEN, sl_rule_overwritten},
	{"full_disk", SINK, sl_rule_full_disk},
	{"disk_quota", SINK, sl_rule_disk_quota},
	{"file_size_limit", SINK, sl_rule_file_size_limit},
	{"failed_sink", SINK, sl_rule_failed_sink},
	{"slow_disk", SLOW, sl_rule_slow_disk},
	{"spoilt_memory", CONTENT, sl_rule_spoilt_memory},
	{"wrong_record", CONTENT, sl_rule_wrong_record},
	{"failed_unit", UNIT, sl_rule_unit_failed},
	{"skipped_frames", SKIPPED, sl_rule_skipped},
	{"vanished_front_end", SOURCE, sl_rule_vanished_front_end},
};

const struct sl_cause_word sl_explain_causes[] = {
	{"small_receive_buffer", "a socket's receive buffer holds less than comes at once"},
	{"starved_core", "threads of the receiver waited too long for a cpu"},
	{"stopped_receiver", "the process stood still: SIGSTOP, a debugger, a frozen cgroup"},
	{"busy_link_thread", "one thread could not take all packets"},
	{"overflowed_buffer", "a receive buffer overflowed, for none of these reasons"},
	{"nic_ring", "the NIC's receive ring was full"},
	{"kernel_backlog", "a cpu's queue between NIC and sockets was full"},
	{"wrong_mtu", "long packets do not pass"},
	{"congested_port", "switches marked packets (ECN), and dropped others"},
	{"lossy_cable", "packets are damaged or gone between front end and this host"},
	{"late_front_end", "a module came after its frame was given up"},
	{"foreign_packets", "packets came that do not fit the plan"},
	{"nothing_arrives", "not one packet came"},
	{"overrun_policy", "the ring was full, and ring.overrun gave frames up"},
	{"slow_disk", "a sink that writes could not keep pace"},
	{"full_disk", "no space was left"},
	{"disk_quota", "the quota of a disk was used up"},
	{"file_size_limit", "a file reached ulimit -f"},
	{"failed_sink", "a sink failed, or found the data wrong"},
	{"overwritten", "a source wrote beyond its credits"},
	{"spoilt_memory", "pixels do not match their checksum"},
	{"wrong_record", "records contradict what came"},
	{"failed_unit", "a device or a stage failed"},
	{"skipped_frames", "front ends left frames out themselves"},
	{"vanished_front_end", "a front end went away"},
	{NULL, NULL},
};

/* ---- for the rules ---- */

void sl_finding_say(struct sl_finding *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(f->sentence, sizeof(f->sentence), format, args);
	va_end(args);
}

void sl_finding_advise(struct sl_finding *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(f->advice, sizeof(f->advice), format, args);
	va_end(args);
}

void sl_finding_command(struct sl_finding *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(f->command, sizeof(f->command), format, args);
	va_end(args);
}

void sl_finding_prove(struct sl_finding *f, const char *name, double value, const char *unit)
{
	struct sl_evidence *e = &f->proof[f->evidence];

	if (f->evidence == SL_EVIDENCE || !isfinite(value))
		return;
	snprintf(e->name, sizeof(e->name), "%s", name);
	snprintf(e->unit, sizeof(e->unit), "%s", unit);
	e->value = value;
	f->evidence++;
}

void sl_finding_packets(struct sl_finding *f, double packets)
{
	if (packets < (double)f->module_frames && packets >= 1)
		f->module_frames = (uint64_t)packets;
	f->at_most = true;
}

/* ---- what they find ---- */

/* Module-frames with a cause of their own; those with the cause `partner` follow from others. */
static uint64_t lost_in(const struct sl_case *c, enum group group)
{
	switch (group) {
	case SOCKET:
	case NIC:
	case BACKLOG:
	case PATH:
	case FOREIGN:
	case LATE: /* or what the ledger calls so: see its rule */
		return sl_case_missing(c);
	case ROOM:
		return c->cause[SL_CAUSE_NO_SLOT] + c->cause[SL_CAUSE_OLDEST];
	case OVERWRITTEN:
		return c->cause[SL_CAUSE_OVERWRITTEN];
	case CONTENT:
		return c->cause[SL_CAUSE_CHECKSUM] + c->cause[SL_CAUSE_RECORD];
	case SINK:
		return c->cause[SL_CAUSE_SINK];
	case SLOW:
		return c->cause[SL_CAUSE_SLOW];
	case UNIT:
		return c->cause[SL_CAUSE_UNIT];
	case SKIPPED:
		return c->skipped;
	default:
		return c->cause[SL_CAUSE_PARTNER];
	}
}

static double weight(const struct sl_finding *f)
{
	return f->score * (double)f->module_frames;
}

/* Rules with losses of their own, whatever the group has lost. */
static bool is_of_its_own(const struct sl_case *c, sl_rule_fn *rule)
{
	return (rule == sl_rule_late_front_end && c->cause[SL_CAUSE_LATE]) ||
	       (rule == sl_rule_vanished_front_end && c->vanished);
}

/* What explains most, best, is first; of one group, what fits best. */
static int by_weight(const void *a, const void *b)
{
	const struct sl_finding *x = a, *y = b;
	double difference = weight(y) - weight(x);

	if (difference == 0)
		difference = y->score - x->score;
	return difference > 0 ? 1 : difference < 0 ? -1 : 0;
}

static void apply_rules(const struct sl_case *c, struct sl_explanation *e)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct sl_finding f = {.cause = rules[i].cause,
				       .group = group_name[rules[i].group],
				       .module_frames = lost_in(c, rules[i].group)};

		if (e->findings == SL_FINDINGS ||
		    (!f.module_frames && !is_of_its_own(c, rules[i].rule)) || !rules[i].rule(c, &f))
			continue;
		e->finding[e->findings++] = f;
	}
	qsort(e->finding, e->findings, sizeof(e->finding[0]), by_weight);
}

/* Where no rule fits: the counters that might have told. */
static void list_what_was_looked_at(const struct sl_case *c, struct sl_explanation *e)
{
	char *text = e->looked_at;
	size_t bytes = sizeof(e->looked_at), at;

	at = (size_t)snprintf(text, bytes, "causes in the ledger:");
	for (unsigned k = SL_CAUSE_NONE + 1; k < SL_CAUSES && at + 40 < bytes; k++)
		if (c->cause[k] && k != SL_CAUSE_DARK && k != SL_CAUSE_STAGE)
			at += (size_t)snprintf(text + at, bytes - at, " %s %llu",
					       sl_cause_name((enum sl_cause)k),
					       (unsigned long long)c->cause[k]);
	if (c->misuse)
		at += (size_t)snprintf(text + at, bytes - at, " outcomes written twice %llu",
				       (unsigned long long)c->misuse);
	at += (size_t)snprintf(text + at, bytes - at, "; packets turned away:");
	for (unsigned d = 0; d < SL_DROPS && at + 40 < bytes; d++)
		if (c->drop[d])
			at += (size_t)snprintf(text + at, bytes - at, " %s %llu",
					       sl_drop_name((enum sl_drop)d),
					       (unsigned long long)c->drop[d]);
	if (at < bytes)
		snprintf(text + at, bytes - at, "; %s",
			 c->has_flight ? "sockets, interfaces, cpus, threads, disks and queues of "
					 "the flight record"
				       : "there is no flight record (flight.record: true keeps "
					 "one)");
}

static int read_texts(struct sl_case *c, const struct sl_explain_texts *t, char *why,
		      size_t why_bytes)
{
	int err = t->result ? sl_case_read(c, t->result, t->result_bytes, why, why_bytes) : 0;

	if (!err && t->flight)
		err = sl_case_read_flight(c, t->flight, t->flight_bytes, why, why_bytes);
	if (!err)
		sl_case_words(c, t);
	return err;
}

static void explain(const struct sl_case *c, struct sl_explanation *e)
{
	e->lost = sl_case_lost(c);
	e->sent = c->sent + c->skipped;
	e->has_result = c->has_result;
	e->has_flight = c->has_flight;
	e->is_live = c->is_live;
	e->is_unclosed = c->is_unclosed;
	if (!e->lost && !e->is_unclosed)
		return;
	apply_rules(c, e);
	if (!e->findings)
		list_what_was_looked_at(c, e);
}

int sl_explain(const struct sl_explain_texts *texts, struct sl_explanation *e, char *why,
	       size_t why_bytes)
{
	struct sl_case *c = calloc(1, sizeof(*c));
	int err;

	memset(e, 0, sizeof(*e));
	if (!c) {
		snprintf(why, why_bytes, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	c->unit_busy = -1;
	err = read_texts(c, texts, why, why_bytes);
	if (!err)
		explain(c, e);
	sl_case_free(c);
	free(c);
	return err;
}
