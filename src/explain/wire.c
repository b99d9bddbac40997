/* wire.c - rules about packets that did not arrive, or not as they were sent. */
#include <string.h>

#include "explain/private.h"

/* ---- the path's limits ---- */

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
			sl_case_interface(c), c->mtu, needed + 64, pmtu_for(c->mtu));
		sl_finding_command(f, "sudo ip link set %s mtu %u", sl_case_interface(c),
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
	else
		sl_command_by_module(c, f, "sent|offered|source");
	sl_finding_prove(f, "packets_marked", (double)c->marked, "");
	sl_finding_prove(f, "notifications", (double)c->notified, "");
	sl_finding_prove(f, "packets_missing", sl_case_missing_packets(c), "");
	return true;
}

/* ---- packets lost between front ends and this host ---- */

/* "47 arrived damaged (ICRC), and 153 of 17000 did not arrive" */
static void tell_lost(const struct sl_case *c, const struct sl_case_on_the_way *w, char *text,
		      size_t bytes)
{
	double sent = sl_case_missing_packets(c) + (double)c->packets;
	uint64_t nic = sl_case_nic_errors(c);
	size_t at = 0;

	text[0] = '\0';
	if (w->damaged > 0)
		at += (size_t)snprintf(text + at, bytes - at, "; %.0f arrived damaged (ICRC)",
				       w->damaged);
	if (w->gone > 0)
		at += (size_t)snprintf(text + at, bytes - at, "; %s%.0f of %.0f did not arrive",
				       c->drop[SL_DROP_FULL] ? "at least " : "", w->gone, sent);
	if (w->quiet_frames)
		at += (size_t)snprintf(text + at, bytes - at,
				       "; %llu module-frames were damaged long after the last "
				       "time that a queue of this host was full",
				       (unsigned long long)w->quiet_frames);
	if (nic)
		snprintf(text + at, bytes - at, "; %s counts %llu frames with errors",
			 sl_case_interface(c), (unsigned long long)nic);
}

/* Faults that the experiment asks an emulated front end for. */
static void tell_injected(const struct sl_case *c, char *text, size_t bytes)
{
	double sent = (double)c->sent * (double)c->block_packets;
	size_t at = 0;

	text[0] = '\0';
	if (c->inject_drop > 0)
		at += (size_t)snprintf(text + at, bytes - at,
				       "; an emulated front end leaves out about %.0f packets "
				       "(frontend.drop: %g)",
				       sent * c->inject_drop, c->inject_drop);
	if (c->inject_corrupt > 0)
		snprintf(text + at, bytes - at,
			 "; an emulated front end damages about %.0f packets (frontend.corrupt: "
			 "%g)",
			 sent * c->inject_corrupt, c->inject_corrupt);
}

static void mend_lossy(const struct sl_case *c, struct sl_finding *f)
{
	if (c->inject_drop > 0 || c->inject_corrupt > 0) {
		sl_finding_advise(f, "The experiment asks for these faults: leave them out.");
		sl_finding_command(f, "sluice run %s%s%s", sl_case_file(c),
				   c->inject_drop > 0 ? " --set frontend.drop=0" : "",
				   c->inject_corrupt > 0 ? " --set frontend.corrupt=0" : "");
	} else if (sl_case_is_loopback(c)) {
		sl_finding_advise(f, "Packets came by loopback, where no cable loses them: look at "
				     "the front end itself, at queueing rules (tc) and at "
				     "firewalls.");
		sl_finding_command(f, "ip -s -s link show dev lo; tc -s qdisc show dev lo");
	} else {
		sl_finding_advise(
			f,
			"Look for a bad cable, transceiver or switch port: the counters of both "
			"ends of each link say which. link.service: rc sends again what was lost.");
		if (!c->interface[0])
			sl_finding_command(f, "ip -s -s link");
		else
			sl_finding_command(f,
					   "ip -s -s link show dev %s; ethtool -S %s | grep -iE "
					   "'err|crc|discard|drop'",
					   sl_case_interface(c), sl_case_interface(c));
	}
}

static void prove_lossy(const struct sl_case *c, const struct sl_case_on_the_way *w,
			struct sl_finding *f)
{
	sl_finding_prove(f, "packets_missing", sl_case_missing_packets(c), "");
	sl_finding_prove(f, "packets_placed", (double)c->packets, "");
	sl_finding_prove(f, "packets_damaged", w->damaged, "");
	sl_finding_prove(f, "packets_gone", w->gone, "");
	sl_finding_prove(f, "receive_queue_drops", (double)c->drop[SL_DROP_FULL], "");
	sl_finding_prove(f, "packets_marked", (double)c->marked, "");
	if (w->quiet_frames)
		sl_finding_prove(f, "module_frames_damaged_in_quiet", (double)w->quiet_frames, "");
	if (c->inject_drop > 0)
		sl_finding_prove(f, "injected_drop", c->inject_drop, "");
	if (c->inject_corrupt > 0)
		sl_finding_prove(f, "injected_corrupt", c->inject_corrupt, "");
}

/* Packets that were damaged or lost; those that the experiment asks for, where the receive queues
 * hide them. 0: not known. */
static double lost_packets(const struct sl_case *c, const struct sl_case_on_the_way *w)
{
	double lost = w->damaged + w->gone + (double)w->quiet_frames;
	double injected = (c->inject_drop + c->inject_corrupt) * (double)c->sent *
			  (double)c->block_packets;

	return c->drop[SL_DROP_FULL] && injected > lost ? injected : lost;
}

/* Damaged on the way, or gone where no queue of this host was full. Beside full queues it is named
 * only if numbers prove it. Without a flight record only the socket's counter is known. */
bool sl_rule_lossy_cable(const struct sl_case *c, struct sl_finding *f)
{
	struct sl_case_on_the_way w = sl_case_on_the_way(c);
	bool seen = w.damaged > 0 || sl_case_nic_errors(c);
	double lost = lost_packets(c, &w);
	char where[96], what[400], injected[240];

	if (!sl_case_missing(c) ||
	    (lost <= 0 && !seen && (c->drop[SL_DROP_FULL] || c->block_packets)))
		return false;
	f->score = seen ? 0.9 : c->has_flight ? 0.6 : 0.4;
	sl_case_modules(c, sl_case_misses, where, sizeof(where));
	tell_lost(c, &w, what, sizeof(what));
	tell_injected(c, injected, sizeof(injected));
	sl_finding_say(f, "Packets of %s were lost between front end and this host%s%s.", where,
		       what, injected);
	if (lost > 0)
		sl_finding_packets(f, lost);
	mend_lossy(c, f);
	prove_lossy(c, &w, f);
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
			   sl_case_interface(c));
	sl_finding_prove(f, "module_frames_sent", (double)c->sent, "");
	return true;
}
