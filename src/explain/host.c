/* host.c - rules about packets that arrived at this host, and that it had no room for. */
#include <string.h>

#include "explain/private.h"

#define MB 1e6

enum { WORDS = 160 };

/* Of the link's sockets, or of the memory that the kernel puts packets into. */
static bool was_full(const struct sl_case *c)
{
	return c->drop[SL_DROP_FULL] > 0;
}

static void prove_full(const struct sl_case *c, struct sl_finding *f)
{
	struct sl_case_full full = sl_case_full(c);

	sl_finding_packets(f, full.most);
	sl_finding_prove(f, "receive_queue_drops", (double)full.counted, "");
	if (full.batch > 1)
		sl_finding_prove(f, "packets_in_a_drop_at_most", full.batch, "");
	if (c->block_packets)
		sl_finding_prove(f, "packets_missing", sl_case_missing_packets(c), "");
	if (c->receive_buffer)
		sl_finding_prove(f, "receive_buffer", (double)c->receive_buffer, "bytes");
}

/* Those of the threads that take packets: "data" where one thread does it all. */
static bool link_threads(const struct sl_case *c, struct sl_case_threads *t)
{
	return sl_case_threads(c, "link-", t) || sl_case_threads(c, "data", t);
}

/* ---- a process that stands still ---- */

static bool stopped(const struct sl_case *c, struct sl_finding *f, const char *effect)
{
	const char *name = c->session[0] ? c->session : "NAME";
	struct sl_case_stop stop;

	if (!sl_case_stopped(c, &stop))
		return false;
	f->score = 0.97;
	sl_finding_say(
		f,
		"The receiver stood still for %.2f s: no thread of it ran, and none waited for a "
		"cpu, as if the process was stopped (SIGSTOP, a debugger, a frozen cgroup, or a "
		"suspended machine); %s.",
		stop.seconds, effect);
	sl_finding_advise(f,
			  "Find what stops the process. To hold a run for a while, pause it: then "
			  "sources wait.");
	/* Its process may have ended since, and another one have its number. */
	sl_finding_command(f, "sluice ctl %s pause   # and then: sluice ctl %s resume", name, name);
	sl_finding_prove(f, "stood_still", stop.seconds, "s");
	return true;
}

bool sl_rule_stopped_receiver(const struct sl_case *c, struct sl_finding *f)
{
	char effect[WORDS + 64], words[WORDS];

	if (!was_full(c))
		return false;
	snprintf(effect, sizeof(effect), "meanwhile its receive buffer filled: %s",
		 sl_case_full_words(c, words, sizeof(words)));
	if (!stopped(c, f, effect))
		return false;
	prove_full(c, f);
	return true;
}

bool sl_rule_stopped_room(const struct sl_case *c, struct sl_finding *f)
{
	return stopped(c, f, "what had come meanwhile was then more than the ring had slots for");
}

/* ---- a receive buffer ---- */

/* As the kernel counts: two blocks, or 50 ms, and what it charges besides, and no less than twice
 * what there is; in whole MiB. */
static uint64_t buffer_wanted(const struct sl_case *c)
{
	double holds = sl_case_buffer_bytes(c), each = c->modules ? c->modules : 1;
	double want = 2.0 * (double)c->block_bytes, more = sl_case_rate(c) / each * 0.05;
	uint64_t bytes = 4 << 20;

	want = more > want ? more : want;
	want = holds > 0 ? want * (double)c->receive_buffer / holds : want;
	/* The kernel has doubled what it was asked for. */
	want = want < (double)c->receive_buffer ? (double)c->receive_buffer : want;
	while ((double)bytes < want && bytes < UINT64_C(1) << 30)
		bytes *= 2;
	return bytes;
}

static void mend_buffer(const struct sl_case *c, struct sl_finding *f)
{
	unsigned long long wanted = buffer_wanted(c);

	sl_finding_advise(
		f, "Give the sockets a larger buffer%s.",
		c->credits || c->one_way
			? ""
			: ", or let front ends take credits (link.credits: true): then they send "
			  "no more than it holds");
	if (c->receive_buffer_wanted)
		sl_finding_command(f, "sluice run %s --set link.receive_buffer=%llu",
				   sl_case_file(c), wanted);
	else
		sl_finding_command(f, "sudo sysctl -w net.core.rmem_max=%llu", wanted);
}

/* How well it fits that the thread that takes packets got no cpu for longer than the buffer lasts:
 * certain where it waited so long on average, likely where it waited most of the time; possible
 * where all its waits of a sample together are longer. */
static double starved_score(const struct sl_case_threads *t, double buffer_ms)
{
	double needed = buffer_ms / 2 > 4 ? buffer_ms / 2 : 4;

	if (t->wait_ms >= needed)
		return 0.6 + 0.3 * (t->wait_ms / (t->wait_ms + buffer_ms));
	if (t->longest_ms >= 2 * needed && t->wait_share >= 0.25)
		return 0.55 + 0.3 * t->wait_share;
	return t->longest_ms >= needed && t->waited_ms >= 2 * needed ? 0.45 : 0;
}

/* How little it holds, as a score; 0: enough, or not known. */
static double too_small(const struct sl_case *c)
{
	double bytes = sl_case_buffer_bytes(c), ms = sl_case_buffer_ms(c);

	if (c->block_bytes && bytes < (double)c->block_bytes)
		return 0.93;
	return ms > 0 && ms < 2 ? 0.9 : 0;
}

/* ", and a module sends 0.52 MB in a row" */
static const char *block_words(const struct sl_case *c, char *text, size_t bytes)
{
	text[0] = '\0';
	if (c->block_bytes)
		snprintf(text, bytes, ", and a module sends %.2f MB in a row",
			 (double)c->block_bytes / MB);
	return text;
}

static void prove_buffer(const struct sl_case *c, struct sl_finding *f)
{
	double ms = sl_case_buffer_ms(c);

	prove_full(c, f);
	if (c->receive_buffer)
		sl_finding_prove(f, "receive_buffer_holds", sl_case_buffer_bytes(c), "bytes");
	if (c->block_bytes)
		sl_finding_prove(f, "block", (double)c->block_bytes, "bytes");
	if (ms > 0)
		sl_finding_prove(f, "receive_buffer_lasts", ms, "ms");
}

bool sl_rule_small_receive_buffer(const struct sl_case *c, struct sl_finding *f)
{
	char block[96], words[WORDS];

	f->score = was_full(c) && c->receive_buffer ? too_small(c) : 0;
	if (f->score <= 0)
		return false;
	sl_finding_say(f,
		       "The receive buffer is too small: it has %.2f MB, which hold %.2f MB of "
		       "data%s; %s.",
		       (double)c->receive_buffer / MB, sl_case_buffer_bytes(c) / MB,
		       block_words(c, block, sizeof(block)),
		       sl_case_full_words(c, words, sizeof(words)));
	mend_buffer(c, f);
	prove_buffer(c, f);
	return true;
}

/* Of a thread that was neither starved nor busy. */
static void tell_overflow(const struct sl_case *c, const struct sl_case_threads *t,
			  struct sl_finding *f)
{
	char block[96], words[WORDS];

	sl_finding_say(f,
		       "The receive buffer overflowed, and it is not too small by itself: it has "
		       "%.2f MB, which hold %.2f MB of data%s, and last %.1f ms; the thread that "
		       "takes packets ran for at most %.0f %% of the time and waited for a cpu for "
		       "at most %.0f of %.0f ms; %s.",
		       (double)c->receive_buffer / MB, sl_case_buffer_bytes(c) / MB,
		       block_words(c, block, sizeof(block)), sl_case_buffer_ms(c),
		       100 * t->run_share, t->waited_ms, t->of_ms,
		       sl_case_full_words(c, words, sizeof(words)));
	sl_finding_advise(f,
			  "Packets came in bursts, or something kept that thread that no counter "
			  "shows (a hypervisor, interrupts, memory that is short): look at the "
			  "host; a larger buffer bridges it.");
	sl_finding_prove(f, "waited_for_cpu", t->waited_ms, "ms");
	sl_finding_prove(f, "link_thread_ran", t->run_share, "");
}

/* None of the rules about a full queue fits. */
bool sl_rule_overflowed_buffer(const struct sl_case *c, struct sl_finding *f)
{
	struct sl_case_threads t = {0};
	struct sl_case_stop stop;
	bool threads = link_threads(c, &t);
	char words[WORDS];

	if (!was_full(c) || (c->receive_buffer && too_small(c) > 0) || sl_case_stopped(c, &stop) ||
	    (threads && (starved_score(&t, sl_case_buffer_ms(c)) > 0 || t.run_share >= 0.9)))
		return false;
	f->score = 0.4;
	if (threads && c->receive_buffer) {
		tell_overflow(c, &t, f);
	} else {
		sl_finding_say(f,
			       "The receive buffer overflowed; whether it is too small or was "
			       "emptied too late is not known%s: %s.",
			       c->has_flight ? "" : " without a flight record",
			       sl_case_full_words(c, words, sizeof(words)));
		sl_finding_advise(f,
				  "Give the receiver a larger buffer, and its threads cpus of "
				  "their own; with flight.record: true the next loss tells more.");
	}
	sl_finding_command(f, "sluice doctor %s", sl_case_file(c));
	if (c->receive_buffer && c->receive_buffer_wanted)
		sl_finding_command(f, "sluice run %s --set link.receive_buffer=%llu",
				   sl_case_file(c), (unsigned long long)buffer_wanted(c));
	prove_buffer(c, f);
	return true;
}

/* ---- cpus ---- */

static void mend_starved(const struct sl_case *c, struct sl_finding *f, double throttled_ms)
{
	if (throttled_ms > 0) {
		sl_finding_advise(
			f, "Raise the quota of its cgroup (cpu.max; of a service: CPUQuota=).");
		sl_finding_command(f,
				   "systemctl set-property --runtime UNIT CPUQuota=   # no quota");
	} else if (c->cpus_allowed && c->cpus_allowed < c->cpus_online) {
		sl_finding_advise(f, "It may use %d of %d cpus: give it more.", c->cpus_allowed,
				  c->cpus_online);
		sl_finding_command(f, "taskset -c 0-%d sluice run %s", c->cpus_online - 1,
				   sl_case_file(c));
	} else {
		sl_finding_advise(
			f, "Keep other programs off its cpus (threads.cpus, isolcpus=), or give "
			   "it a better priority than theirs.");
		sl_finding_command(f,
				   "sudo nice -n -10 sluice run %s   # top -H shows what ran there",
				   sl_case_file(c));
	}
}

static void tell_starved(const struct sl_case *c, struct sl_finding *f, const char *who,
			 const struct sl_case_threads *t, const char *effect)
{
	char waited[80], quota[120] = "";
	double throttled_ms = (double)sl_case_grew(c, "cgroup.throttled_us") * 1e-3;
	double steal_ms = (double)sl_case_grew(c, "cpu.steal");

	if (t->longest_ms > 8 * t->wait_ms || t->wait_share < 0.25)
		snprintf(waited, sizeof(waited), "for %.0f of %.0f ms", t->waited_ms, t->of_ms);
	else
		snprintf(waited, sizeof(waited), "%.0f ms at a time, %.0f %% of the time",
			 t->wait_ms, 100 * t->wait_share);
	if (throttled_ms > 100)
		snprintf(quota, sizeof(quota),
			 "; its cgroup was held back for %.0f ms by its quota", throttled_ms);
	else
		throttled_ms = 0;
	sl_finding_say(f, "The receiver was starved of cpu: %s waited for one %s%s; %s.", who,
		       waited, quota, effect);
	mend_starved(c, f, throttled_ms);
	sl_finding_prove(f, "waited_for_cpu", t->waited_ms, "ms");
	sl_finding_prove(f, "waited_at_a_time", t->wait_ms, "ms");
	sl_finding_prove(f, "waited_share", t->wait_share, "");
	if (throttled_ms > 0)
		sl_finding_prove(f, "throttled", throttled_ms, "ms");
	if (steal_ms > 0)
		sl_finding_prove(f, "stolen_by_the_host", steal_ms, "ms");
}

bool sl_rule_starved_core(const struct sl_case *c, struct sl_finding *f)
{
	double ms = sl_case_buffer_ms(c);
	struct sl_case_threads t;
	char effect[WORDS + 64], words[WORDS];

	f->score = was_full(c) && link_threads(c, &t) ? starved_score(&t, ms) : 0;
	if (f->score <= 0)
		return false;
	snprintf(effect, sizeof(effect), "its receive buffer lasts %.0f ms, and %s", ms,
		 sl_case_full_words(c, words, sizeof(words)));
	tell_starved(c, f, "the thread that takes packets", &t, effect);
	prove_full(c, f);
	sl_finding_prove(f, "receive_buffer_lasts", ms, "ms");
	return true;
}

/* A thread that processes frames waits for a cpu most of the time. Without that it would have done
 * 1 / (1 - share) times as much: likely, where that is enough for what found no room. */
bool sl_rule_starved_room(const struct sl_case *c, struct sl_finding *f)
{
	static const char *const names[] = {"dispatcher", "worker-", "settler", "data"};
	struct sl_case_threads t, most = {0};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (sl_case_threads(c, names[i], &t) && t.longest_ms > most.longest_ms)
			most = t;
	if (most.longest_ms < 20 || most.wait_share < 0.5)
		return false;
	f->score = most.mean_share >= 0.9 * sl_case_share_without_room(c) ? 0.85 : 0.6;
	tell_starved(c, f, "a thread that processes frames", &most,
		     "meanwhile the ring filled, and what came then had no slot");
	return true;
}

bool sl_rule_busy_link_thread(const struct sl_case *c, struct sl_finding *f)
{
	struct sl_case_threads t;
	char words[WORDS];

	if (!was_full(c) || !link_threads(c, &t) || t.run_share < 0.9)
		return false;
	f->score = 0.7;
	sl_finding_say(f,
		       "The link thread could not keep pace: it ran %.0f %% of the time, and %s.",
		       100 * t.run_share, sl_case_full_words(c, words, sizeof(words)));
	sl_finding_advise(f, "%s",
			  c->modules > 1
				  ? "Let more threads take packets; modules are shared out among "
				    "them."
				  : "One module has one thread: send less, or in larger packets "
				    "(link.pmtu).");
	if (c->modules > 1)
		sl_finding_command(f, "sluice run %s --set link.pollers=%u", sl_case_file(c),
				   c->modules < 4 ? c->modules : 4);
	else
		sl_finding_command(f,
				   "sluice doctor %s   # compares the rate with what a thread "
				   "can take",
				   sl_case_file(c));
	sl_finding_prove(f, "link_thread_ran", t.run_share, "");
	prove_full(c, f);
	return true;
}

/* ---- below the sockets ---- */

bool sl_rule_nic_ring(const struct sl_case *c, struct sl_finding *f)
{
	uint64_t missed = sl_case_nic_missed(c);

	if (!missed)
		return false;
	f->score = 0.88;
	sl_finding_say(
		f,
		"%s had no room for %llu packets: its receive ring was full when they came, since "
		"the kernel did not empty it in time.",
		c->interface, (unsigned long long)missed);
	sl_finding_advise(f, "Enlarge the ring, and let several cpus serve it.");
	sl_finding_command(
		f, "sudo ethtool -G %s rx 8192   # ethtool -g %s shows the most it can have",
		c->interface, c->interface);
	sl_finding_packets(f, (double)missed);
	sl_finding_prove(f, "nic_missed", (double)missed, "");
	sl_finding_prove(f, "packets_missing", sl_case_missing_packets(c), "");
	return true;
}

bool sl_rule_kernel_backlog(const struct sl_case *c, struct sl_finding *f)
{
	uint64_t dropped = sl_case_backlog_dropped(c);

	if (!dropped)
		return false;
	f->score = 0.86;
	sl_finding_say(
		f,
		"The kernel dropped %llu packets before they came to a socket: a cpu's backlog was "
		"full (softnet_stat).",
		(unsigned long long)dropped);
	sl_finding_advise(f, "Allow a longer backlog, and spread interrupts over more cpus.");
	sl_finding_command(f, "sudo sysctl -w net.core.netdev_max_backlog=10000");
	sl_finding_packets(f, (double)dropped);
	sl_finding_prove(f, "softnet_dropped", (double)dropped, "");
	sl_finding_prove(f, "softnet_squeezed", (double)sl_case_grew(c, "softnet.squeezed"), "");
	return true;
}
