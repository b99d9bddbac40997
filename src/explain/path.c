/* path.c - rules about packets that did not arrive, came late, or were not what was sent. */
#include <string.h>

#include "explain/private.h"

static const char *interface_of(const struct sl_case *c)
{
	return c->interface[0] ? c->interface : "INTERFACE";
}

/* Module-frames of a module that are missing, less those that its source left out. */
static uint64_t missing_of(const struct sl_case_module *m)
{
	uint64_t lost = m->cause[SL_CAUSE_NO_ARRIVAL];

	lost = lost > m->skipped ? lost - m->skipped : 0;
	return lost + m->cause[SL_CAUSE_DAMAGED];
}

/* "module 3", "modules 1, 4", "all modules". */
static void name_modules(const struct sl_case *c, bool (*is_hurt)(const struct sl_case_module *m),
			 char *text, size_t bytes)
{
	unsigned hurt = 0, named = 0;
	size_t at;

	for (unsigned m = 0; m < c->modules; m++)
		hurt += is_hurt(&c->module[m]);
	if (!hurt || hurt == c->modules) {
		snprintf(text, bytes, c->modules == 1 ? "module 0" : "all modules");
		return;
	}
	at = (size_t)snprintf(text, bytes, hurt == 1 ? "module" : "modules");
	for (unsigned m = 0; m < c->modules && named < 6 && at + 8 < bytes; m++)
		if (is_hurt(&c->module[m]))
			at += (size_t)snprintf(text + at, bytes - at, named++ ? ", %u" : " %u", m);
	if (hurt > named && at + 8 < bytes)
		snprintf(text + at, bytes - at, ", ...");
}

static bool misses(const struct sl_case_module *m)
{
	return missing_of(m) > 0;
}

static bool has_late(const struct sl_case_module *m)
{
	return m->cause[SL_CAUSE_LATE] > 0;
}

static bool has_vanished(const struct sl_case_module *m)
{
	return m->vanished;
}

/* ---- the wire ---- */

enum { IPV4_UDP = 28 };

static uint32_t longest_seen(const struct sl_case *c, uint64_t *sampled)
{
	uint32_t longest = 0;

	*sampled = 0;
	for (unsigned m = 0; m < c->modules; m++) {
		const struct sl_case_module *module = &c->module[m];

		*sampled += module->sampled;
		longest = module->longest_payload > longest ? module->longest_payload : longest;
	}
	return longest ? longest + IPV4_UDP : 0;
}

/* The largest that fits, with the headers that it may have. */
static unsigned pmtu_for(uint32_t mtu)
{
	unsigned pmtu = 256;

	while (pmtu < 4096 && pmtu * 2 + 92 <= mtu)
		pmtu *= 2;
	return pmtu;
}

/* No packet of full length comes, and shorter ones do; or nothing comes, and the interface could
 * not take the full ones. */
bool sl_rule_wrong_mtu(const struct sl_case *c, struct sl_finding *f)
{
	uint64_t sampled;
	uint32_t seen = longest_seen(c, &sampled), needed = c->longest_packet;
	bool narrow = c->mtu && c->mtu < needed;
	bool short_only = sampled >= 8 && seen + 32 < needed;

	if (!sl_case_missing(c) || !needed || (!short_only && !(narrow && !sampled)))
		return false;
	f->score = narrow ? 0.97 : 0.9;
	sl_finding_say(
		f,
		"The MTU on the way is too small: packets of %u bytes were sent, and the longest "
		"that arrived has %u.",
		needed, seen);
	if (!seen)
		sl_finding_say(
			f,
			"The MTU of this host's interface is too small: packets of %u bytes were "
			"sent, it takes at most %u, and none arrived.",
			needed, c->mtu);
	if (narrow) {
		sl_finding_advise(
			f,
			"%s has an MTU of %u: set it to %u or more, or send smaller packets "
			"(link.pmtu: %u).",
			interface_of(c), c->mtu, needed + 64, pmtu_for(c->mtu));
		sl_finding_command(f, "sudo ip link set %s mtu %u", interface_of(c),
				   needed + 64 > 9000 ? needed + 64 : 9000);
	} else {
		sl_finding_advise(
			f, "Raise the MTU of the switches and of the front end, or send smaller "
			   "packets.");
		sl_finding_command(f, "sluice run %s --set link.pmtu=%u", sl_case_file(c),
				   pmtu_for(seen > 348 ? seen : 1500));
	}
	sl_finding_prove(f, "packet_needs", needed, "bytes");
	sl_finding_prove(f, "longest_arrived", seen, "bytes");
	if (c->mtu)
		sl_finding_prove(f, "interface_mtu", c->mtu, "bytes");
	sl_finding_prove(f, "packets_sampled", (double)sampled, "");
	return true;
}

/* Of one module, Gbit/s. */
static double rate_of_module(const struct sl_case *c)
{
	double seconds = c->seconds;

	if (seconds <= 0 && c->samples > 1)
		seconds = (double)(c->at_ns[c->samples - 1] - c->at_ns[0]) * 1e-9;
	return seconds > 0 && c->modules ? (double)c->bytes / seconds / c->modules * 8e-9 : 0;
}

bool sl_rule_congested_port(const struct sl_case *c, struct sl_finding *f)
{
	double rate = rate_of_module(c);

	if (!sl_case_missing(c) || !c->marked)
		return false;
	f->score = c->drop[SL_DROP_FULL] ? 0.5 : 0.9;
	sl_finding_say(
		f,
		"A port on the way is congested: switches marked %llu of %llu packets that arrived "
		"(ECN), and about %.0f did not arrive; front ends were asked %llu times to slow "
		"down.",
		(unsigned long long)c->marked, (unsigned long long)c->packets,
		sl_case_missing_packets(c), (unsigned long long)c->notified);
	sl_finding_advise(
		f, "Front ends together send more than the port takes: give them ports of their "
		   "own, or a limit each; switches should mark earlier.");
	if (rate > 0)
		sl_finding_command(f, "sluice run %s --set link.rate_limit=%.3g", sl_case_file(c),
				   0.9 * rate);
	sl_finding_prove(f, "packets_marked", (double)c->marked, "");
	sl_finding_prove(f, "notifications", (double)c->notified, "");
	sl_finding_prove(f, "packets_missing", sl_case_missing_packets(c), "");
	return true;
}

static uint64_t nic_errors(const struct sl_case *c)
{
	static const char *const names[] = {"rx_crc_errors", "rx_frame_errors"};
	uint64_t errors = 0;

	for (unsigned i = 0; i < 2; i++) {
		char text[64];

		snprintf(text, sizeof(text), "nic.%s.%s", c->interface, names[i]);
		errors += sl_case_grew(c, text);
	}
	return errors;
}

/* Damaged on the way, or gone, while no counter of this host moved. Without a flight record only
 * the socket's counter is known. */
bool sl_rule_lossy_cable(const struct sl_case *c, struct sl_finding *f)
{
	double missing = sl_case_missing_packets(c);
	uint64_t damaged = c->drop[SL_DROP_ICRC] + nic_errors(c);
	char where[96], bad[120] = "";

	if (!sl_case_missing(c) || (c->drop[SL_DROP_FULL] && !damaged))
		return false;
	f->score = damaged ? 0.9 : c->has_flight ? 0.6 : 0.4;
	name_modules(c, misses, where, sizeof(where));
	if (damaged)
		snprintf(bad, sizeof(bad), ", %llu arrived damaged (ICRC, frame check)",
			 (unsigned long long)damaged);
	sl_finding_say(f,
		       "Packets of %s were lost between front end and this host: %.0f of %.0f are "
		       "missing%s, and this host threw away %llu.",
		       where, missing, missing + (double)c->packets, bad,
		       (unsigned long long)c->drop[SL_DROP_FULL]);
	sl_finding_advise(
		f, "Look for a bad cable, transceiver or switch port: the counters of both ends "
		   "of each link say which. link.service: rc sends again what was lost.");
	sl_finding_command(f, "ethtool -S %s | grep -iE 'err|crc|discard|drop'", interface_of(c));
	sl_finding_prove(f, "packets_missing", missing, "");
	sl_finding_prove(f, "packets_placed", (double)c->packets, "");
	sl_finding_prove(f, "packets_damaged", (double)damaged, "");
	sl_finding_prove(f, "packets_thrown_away", (double)c->drop[SL_DROP_FULL], "");
	sl_finding_prove(f, "packets_marked", (double)c->marked, "");
	return true;
}

bool sl_rule_nothing_arrives(const struct sl_case *c, struct sl_finding *f)
{
	uint64_t refused = 0;

	for (unsigned d = 0; d < SL_DROPS; d++)
		refused += c->drop[d];
	if (!sl_case_missing(c) || c->packets || refused)
		return false;
	f->score = 0.75;
	sl_finding_say(f,
		       "No packet arrived at all, although front ends say that they sent %llu "
		       "module-frames: they go elsewhere, or a firewall drops them.",
		       (unsigned long long)c->sent);
	sl_finding_advise(
		f, "Compare link.listen with where front ends send to; look whether packets come "
		   "to the interface, and what filters them.");
	sl_finding_command(f, "sudo tcpdump -ni %s udp   # and: sudo nft list ruleset",
			   interface_of(c));
	sl_finding_prove(f, "module_frames_sent", (double)c->sent, "");
	return true;
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
		name_modules(c, has_late, who, sizeof(who));
		snprintf(what, sizeof(what), "%llu module-frames", (unsigned long long)frames);
	} else if (sl_case_missing(c) && (double)packets > 0.3 * sl_case_missing_packets(c)) {
		f->score = 0.91;
		name_modules(c, misses, who, sizeof(who));
		snprintf(what, sizeof(what), "%llu packets", (unsigned long long)packets);
	} else {
		return false;
	}
	tell_late(c, f, who, what);
	sl_finding_prove(f, "late_module_frames", (double)frames, "");
	sl_finding_prove(f, "late_packets", (double)packets, "");
	return true;
}

bool sl_rule_vanished_front_end(const struct sl_case *c, struct sl_finding *f)
{
	char who[96];

	if (!c->vanished)
		return false;
	f->score = 0.8;
	f->module_frames = c->cause[SL_CAUSE_PARTNER];
	name_modules(c, has_vanished, who, sizeof(who));
	sl_finding_say(
		f,
		"The front end of %s vanished: its connection ended, or it said and sent nothing "
		"for control.silence_s; frames without it are incomplete.",
		who);
	sl_finding_advise(
		f, "Look at that front end. With ring.incomplete: keep, frames go on without "
		   "it.");
	sl_finding_command(f, "sluice run %s --set ring.incomplete=keep", sl_case_file(c));
	sl_finding_prove(f, "sources_vanished", c->vanished, "");
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
		f, "Nothing was lost between front end and receiver: look at the triggers and at "
		   "the front end's own buffers.");
	sl_finding_prove(f, "module_frames_skipped", (double)c->skipped, "");
	return true;
}

/* ---- packets of others, and contents ---- */

bool sl_rule_foreign_packets(const struct sl_case *c, struct sl_finding *f)
{
	static const enum sl_drop kinds[] = {SL_DROP_QUEUE, SL_DROP_PEER, SL_DROP_KEY,
					     SL_DROP_RANGE, SL_DROP_MALFORMED};
	uint64_t refused = 0, most = 0;
	enum sl_drop kind = SL_DROP_QUEUE;

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		refused += c->drop[kinds[i]];
		if (c->drop[kinds[i]] > most) {
			most = c->drop[kinds[i]];
			kind = kinds[i];
		}
	}
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
	sl_finding_command(f, "tshark -r flight.pcapng -V | less");
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
	sl_finding_prove(f, "wrong_records", (double)bad, "");
	return true;
}
