/* packets.c - how many packets are missing, and where they went, as far as the numbers tell. */
#include <stdio.h>
#include <string.h>

#include "explain/private.h"

enum {
	DATAGRAM_MOST = 65535, /* bytes that a batch has at most */
	BATCH_MOST = 128,      /* packets, whatever their size: the kernel's limit */
	HEADERS = 28,	       /* at least: IPv4 and UDP */
};

/* ---- all that are missing ---- */

/* Of module-frames that found no room, were overwritten or came late, packets are not placed
 * either; those losses have causes of their own. */
static uint64_t unplaced_frames(const struct sl_case *c)
{
	return c->cause[SL_CAUSE_NO_SLOT] + c->cause[SL_CAUSE_OLDEST] +
	       c->cause[SL_CAUSE_OVERWRITTEN] + c->cause[SL_CAUSE_LATE];
}

/* At least one of each module-frame: what front ends have said to have sent lags behind what has
 * arrived while a run goes on. */
double sl_case_missing_packets(const struct sl_case *c)
{
	double sent = (double)c->sent * (double)c->block_packets;
	double missing = sent - (double)c->packets, least = (double)sl_case_missing(c);

	if (!c->block_packets)
		return 0;
	return missing > least ? missing : least;
}

/* ---- receive queues ---- */

static unsigned batch_of(const struct sl_case *c)
{
	double bytes = c->block_packets ? (double)c->block_bytes / (double)c->block_packets : 0;
	double packets;

	if (!strcmp(c->link, "xdp") || bytes <= 0) /* each packet comes alone, or: not known */
		return !strcmp(c->link, "xdp") ? 1 : BATCH_MOST;
	packets = DATAGRAM_MOST / (bytes + HEADERS);
	return packets < 1 ? 1 : packets > BATCH_MOST ? BATCH_MOST : (unsigned)packets;
}

struct sl_case_full sl_case_full(const struct sl_case *c)
{
	struct sl_case_full full = {.counted = c->drop[SL_DROP_FULL], .batch = batch_of(c)};
	double missing = sl_case_missing_packets(c);

	full.most = (double)full.counted * full.batch;
	if (c->block_packets && full.most > missing)
		full.most = missing;
	return full;
}

const char *sl_case_full_words(const struct sl_case *c, char *text, size_t bytes)
{
	struct sl_case_full full = sl_case_full(c);
	double missing = sl_case_missing_packets(c);
	char each[48] = "each of one packet", and[64] = "";

	if (full.batch > 1)
		snprintf(each, sizeof(each), "each of 1 to %u packets", full.batch);
	if (missing > 0)
		snprintf(and, sizeof(and), "; %.0f packets are missing", missing);
	snprintf(text, bytes, "the kernel counts %llu receive-queue drops, %s%s",
		 (unsigned long long)full.counted, each, and);
	return text;
}

/* ---- below the sockets ---- */

static uint64_t nic_grew(const struct sl_case *c, const char *name)
{
	char text[64];

	snprintf(text, sizeof(text), "nic.%s.%s", c->interface, name);
	return sl_case_grew(c, text);
}

static uint64_t if_large(const struct sl_case *c, uint64_t dropped)
{
	bool large = sl_case_missing(c) && (double)dropped > 0.1 * sl_case_missing_packets(c);

	return large ? dropped : 0;
}

uint64_t sl_case_nic_missed(const struct sl_case *c)
{
	return if_large(c, nic_grew(c, "rx_missed_errors") + nic_grew(c, "rx_fifo_errors") +
				   nic_grew(c, "rx_over_errors"));
}

uint64_t sl_case_nic_errors(const struct sl_case *c)
{
	return nic_grew(c, "rx_crc_errors") + nic_grew(c, "rx_frame_errors");
}

uint64_t sl_case_backlog_dropped(const struct sl_case *c)
{
	return if_large(c, sl_case_grew(c, "softnet.dropped"));
}

uint64_t sl_case_refused(const struct sl_case *c)
{
	return c->drop[SL_DROP_QUEUE] + c->drop[SL_DROP_PEER] + c->drop[SL_DROP_KEY] +
	       c->drop[SL_DROP_RANGE] + c->drop[SL_DROP_MALFORMED];
}

/* ---- on the way ---- */

/* What a module-frame may take from the first drop to its outcome: until the receiver gives it up,
 * by time or by frames that came after it, and a second for what is slow here. */
static uint64_t outcome_takes_ns(const struct sl_case *c)
{
	double by_time = (double)c->late_timeout_us * 1e3, by_frames = by_time;
	double span = c->samples ? (double)(c->at_ns[c->samples - 1] - c->at_ns[0]) : 0;
	double sent = (double)sl_case_grew(c, "sent"), modules = c->modules ? c->modules : 1;

	if (c->late_frames && sent > 0)
		by_frames = 2.0 * (double)c->late_frames * modules / sent * span;
	if (by_time <= 0 || by_frames < by_time)
		by_time = by_frames;
	return 1000000000 + (uint64_t)(by_time < 3.6e12 ? by_time : 3.6e12);
}

static uint64_t full_so_far(const struct sl_case *c, size_t sample)
{
	char missed[64], fifo[64];
	const char *const names[] = {"drop.full", "softnet.dropped", missed, fifo};
	uint64_t sum = 0;

	snprintf(missed, sizeof(missed), "nic.%s.rx_missed_errors", c->interface);
	snprintf(fifo, sizeof(fifo), "nic.%s.rx_fifo_errors", c->interface);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		sum += sl_case_grew_between(c, names[i], 0, sample);
	return sum;
}

/* Damaged between two samples, so long after queues of this host were full that those have nothing
 * to do with it. */
static uint64_t quiet_frames(const struct sl_case *c)
{
	uint64_t takes = outcome_takes_ns(c), frames = 0, full = 0, changed_ns;

	if (!c->samples || !sl_case_find(c, "drop.full"))
		return 0;
	changed_ns = c->at_ns[0];
	for (size_t i = 1; i < c->samples; i++) {
		uint64_t now = full_so_far(c, i);

		if (now != full)
			changed_ns = c->at_ns[i];
		full = now;
		if (c->at_ns[i - 1] >= changed_ns + takes)
			frames += sl_case_grew_between(c, "cause.damaged", i - 1, i);
	}
	return frames;
}

/* Missing packets that no queue of this host can have dropped, and that were not turned away. */
static double not_dropped_here(const struct sl_case *c)
{
	struct sl_case_full full = sl_case_full(c);
	double known = full.counted ? (double)full.counted * full.batch : 0;

	known += (double)(sl_case_nic_missed(c) + sl_case_backlog_dropped(c) + sl_case_refused(c) +
			  c->drop[SL_DROP_LATE] + c->drop[SL_DROP_BROKEN]);
	known += (double)unplaced_frames(c) * (double)c->block_packets;
	known = sl_case_missing_packets(c) - known;
	return known > 0 ? known : 0;
}

struct sl_case_on_the_way sl_case_on_the_way(const struct sl_case *c)
{
	struct sl_case_on_the_way w = {.damaged = (double)c->drop[SL_DROP_ICRC]};
	double elsewhere = not_dropped_here(c);

	w.gone = elsewhere > w.damaged ? elsewhere - w.damaged : 0;
	if (c->drop[SL_DROP_FULL])
		w.quiet_frames = quiet_frames(c);
	return w;
}
