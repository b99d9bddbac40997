/* report.c - text for people. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "monitor/report.h"

enum { TERMINAL_NS = 200 * 1000 * 1000, PLAIN_NS = 2000 * 1000 * 1000 };

static uint64_t get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static uint64_t at_most(uint64_t value, uint64_t limit)
{
	return value < limit ? value : limit;
}

void sl_progress_begin(struct sl_progress *p, uint64_t expected)
{
	*p = (struct sl_progress){
		.expected = expected, .start_ns = sl_clock_ns(), .terminal = isatty(STDERR_FILENO)};
	p->shown_ns = p->start_ns;
}

static void draw(struct sl_progress *p, const struct sl_receiver *r, uint64_t now)
{
	uint64_t frames = get(&r->frames), bytes = get(&r->bytes);
	/* Counters move while they are read: what is newer than `frames` is left out. */
	uint64_t broken = at_most(get(&r->broken), frames), intact = frames - broken;
	double seconds = (double)(now - p->shown_ns) * 1e-9;
	double kept = intact ? 100.0 * (double)at_most(get(&r->kept), intact) / (double)intact : 0;
	double rate = seconds > 0 ? (double)(bytes - p->shown_bytes) * 1e-9 / seconds : 0;
	char of[32] = "";

	/* Modules that are not of one trigger make more frames than were triggered. */
	if (p->expected && frames <= p->expected)
		snprintf(of, sizeof(of), " / %llu", (unsigned long long)p->expected);
	fprintf(stderr,
		"%s%llu%s frames   %.2f GB/s   %.1f %% kept   %llu lost or damaged   ring %llu/%u  "
		" "
		"waiting %llu + %llu%s",
		p->terminal ? "\r\033[K" : "", (unsigned long long)frames, of, rate, kept,
		(unsigned long long)broken, (unsigned long long)get(&r->slots_used.now),
		r->ring.slots, (unsigned long long)get(&r->at_unit.now),
		(unsigned long long)get(&r->at_sinks.now), p->terminal ? "" : "\n");
	fflush(stderr);
	p->shown_ns = now;
	p->shown_bytes = bytes;
	p->drawn = 1;
	sl_log_progress_shown(p->terminal);
}

void sl_progress_draw(struct sl_progress *p, const struct sl_receiver *r)
{
	uint64_t now = sl_clock_ns();

	if (now - p->shown_ns >= (p->terminal ? TERMINAL_NS : PLAIN_NS))
		draw(p, r, now);
}

void sl_progress_end(struct sl_progress *p, const struct sl_receiver *r)
{
	double seconds = (double)(sl_clock_ns() - p->start_ns) * 1e-9;

	/* The last line speaks of the whole run. */
	p->shown_ns = p->start_ns;
	p->shown_bytes = 0;
	if (seconds > 0)
		draw(p, r, sl_clock_ns());
	if (p->terminal && p->drawn)
		fputc('\n', stderr);
	sl_log_progress_shown(0);
}

/* What front ends say they left out; most never do. */
static void skipped(FILE *out, const struct sl_ledger *ledger)
{
	uint64_t total = 0;

	for (uint32_t m = 0; m < ledger->modules; m++)
		total += get(&ledger->tally[m].skipped);
	if (!total)
		return;
	fprintf(out, "  %-12s", "skipped");
	for (uint32_t m = 0; m < ledger->modules; m++)
		fprintf(out, "  %10llu", (unsigned long long)get(&ledger->tally[m].skipped));
	fprintf(out, "  %10llu\n", (unsigned long long)total);
}

static void ledger_table(FILE *out, const struct sl_ledger *ledger)
{
	fprintf(out, "\nLedger (module-frames)\n  %-12s", "");
	for (uint32_t m = 0; m < ledger->modules; m++)
		fprintf(out, "  %*smodule %u", m < 10 ? 2 : 1, "", m);
	fprintf(out, "  %10s\n  %-12s", "total", "sent");
	for (uint32_t m = 0; m < ledger->modules; m++)
		fprintf(out, "  %10llu", (unsigned long long)get(&ledger->tally[m].sent));
	fprintf(out, "  %10llu\n", (unsigned long long)sl_ledger_sent(ledger));
	skipped(out, ledger);
	for (unsigned o = SL_STORED; o < SL_OUTCOMES; o++) {
		fprintf(out, "  %-12s", sl_outcome_name(o));
		for (uint32_t m = 0; m < ledger->modules; m++)
			fprintf(out, "  %10llu",
				(unsigned long long)get(&ledger->tally[m].outcome[o]));
		fprintf(out, "  %10llu\n", (unsigned long long)sl_ledger_total(ledger, o));
	}
	fprintf(out, "  the ledger %s\n",
		!sl_ledger_closed(ledger)	    ? "DOES NOT CLOSE"
		: atomic_load(&ledger->source_died) ? "closes only as far as a front end reported "
						      "before it vanished"
						    : "closes");
}

static void causes(FILE *out, const struct sl_ledger *ledger)
{
	const char *lead = "  causes: ";

	for (unsigned c = SL_CAUSE_NONE + 1; c < SL_CAUSES; c++) {
		uint64_t total = 0;

		for (uint32_t m = 0; m < ledger->modules; m++)
			total += get(&ledger->tally[m].cause[c]);
		if (!total)
			continue;
		fprintf(out, "%s%s %llu", lead, sl_cause_name(c), (unsigned long long)total);
		lead = ", ";
	}
	if (lead[0] == ',')
		fputc('\n', out);
}

static void congestion(FILE *out, const struct sl_link_counters *counters)
{
	uint64_t marked = get(&counters->marked);

	if (marked)
		fprintf(out,
			"  congestion on the way: %llu packets were marked, front ends were asked "
			"%llu times to slow down\n",
			(unsigned long long)marked, (unsigned long long)get(&counters->notified));
}

static void drops(FILE *out, const struct sl_link_counters *counters)
{
	const char *lead = "  packets turned away: ";

	for (unsigned d = 0; d < SL_DROPS; d++) {
		uint64_t n = get(&counters->dropped[d]);

		if (!n)
			continue;
		fprintf(out, "%s%s %llu", lead, sl_drop_name(d), (unsigned long long)n);
		lead = ", ";
	}
	if (lead[0] == ',')
		fputc('\n', out);
}

static void backlog(FILE *out, const struct sl_receiver *r)
{
	uint64_t partial = get(&r->partial), prescaled = get(&r->prescaled);

	fprintf(out,
		"  at most %llu of %u slots in use, %llu frames before and %llu after the unit\n",
		(unsigned long long)get(&r->slots_used.most), r->ring.slots,
		(unsigned long long)get(&r->at_unit.most),
		(unsigned long long)get(&r->at_sinks.most));
	if (partial)
		fprintf(out, "  %llu frames went on with missing modules (ring.incomplete: keep)\n",
			(unsigned long long)partial);
	if (prescaled)
		fprintf(out, "  %llu frames were kept as a sample of the rejected (prescale)\n",
			(unsigned long long)prescaled);
}

static void sources(FILE *out, const struct sl_receiver *r)
{
	for (uint32_t m = 0; m < r->ledger.modules; m++) {
		const struct sl_source_status *s = &r->source[m];

		if (s->returns)
			fprintf(out, "  module %u: another front end took over, %u time%s\n", m,
				s->returns, s->returns == 1 ? "" : "s");
		if (atomic_load(&s->state) != SL_SOURCE_GONE)
			continue;
		fprintf(out, "  module %u: its front end vanished; counted as far as it reported",
			m);
		if (s->unfinished_packets)
			fprintf(out, " (frame %llu was under way, %llu packets of it came)",
				(unsigned long long)s->unfinished_sequence,
				(unsigned long long)s->unfinished_packets);
		fputc('\n', out);
	}
}

/* From the front end's time of the frame to its verdicts. */
static void deadline(FILE *out, const struct sl_receiver *r)
{
	const struct sl_histogram *h = &r->latency[SL_LATENCY_DECISION];

	if (!r->experiment->unit_options.deadline_us)
		return;
	fprintf(out, "  verdicts due after %u us: %llu of %llu frames were late",
		r->experiment->unit_options.deadline_us, (unsigned long long)get(&r->late),
		(unsigned long long)get(&r->frames));
	if (sl_histogram_count(h))
		fprintf(out, "; they came after (us): p50 %.1f, p99 %.1f, p99.9 %.1f",
			(double)sl_histogram_percentile(h, 0.50) * 1e-3,
			(double)sl_histogram_percentile(h, 0.99) * 1e-3,
			(double)sl_histogram_percentile(h, 0.999) * 1e-3);
	fputc('\n', out);
}

static void latencies(FILE *out, const struct sl_receiver *r)
{
	fprintf(out, "\nLatency per hop (us)      p50        p99        max\n");
	for (unsigned l = 0; l < SL_LATENCIES; l++) {
		const struct sl_histogram *h = &r->latency[l];

		if (!sl_histogram_count(h))
			continue;
		fprintf(out, "  %-16s %10.1f %10.1f %10.1f\n", sl_latency_name(l),
			(double)sl_histogram_percentile(h, 0.50) * 1e-3,
			(double)sl_histogram_percentile(h, 0.99) * 1e-3,
			(double)sl_histogram_max(h) * 1e-3);
	}
	deadline(out, r);
	if (!r->same_clock)
		fprintf(out, "  (wire and total are left out: the front end has another clock)\n");
}

static void print_figure(void *arg, const char *name, uint64_t value, int failed)
{
	if (!failed)
		fprintf(arg, ", %s %llu", name, (unsigned long long)value);
	else if (value) /* troubles are named when there are any */
		fprintf(arg, ", %s %llu (!)", name, (unsigned long long)value);
}

static void sinks(FILE *out, const struct sl_receiver *r)
{
	const struct sl_experiment *e = r->experiment;

	fputc('\n', out);
	if (e->unit->figures) {
		fprintf(out, "  %s", e->unit->name);
		e->unit->figures(e->unit_state, print_figure, out);
		fputc('\n', out);
	}
	for (unsigned i = 0; i < e->sinks; i++) {
		const struct sl_sink *sink = e->sink[i];
		const char *where = sink->where ? sink->where(e->sink_state[i]) : NULL;

		fprintf(out, "  %s: %s", sink->name, r->sink_error[i] ? "FAILED" : "ok");
		if (where && where[0])
			fprintf(out, ", %s", where);
		if (sink->figures)
			sink->figures(e->sink_state[i], print_figure, out);
		if (r->sink_error[i])
			fprintf(out, " (%s)", strerror(-r->sink_error[i]));
		fputc('\n', out);
	}
}

double sl_report_busy(const struct sl_receiver *r, double seconds)
{
	double share = r->workers && seconds > 0
			       ? (double)get(&r->busy_ns) * 1e-9 / seconds / r->workers
			       : 0;

	return share < 1 ? share : 1; /* what is measured begins before the first frame */
}

static void rates(FILE *out, const struct sl_receiver *r)
{
	double seconds = (double)(r->last_ns - r->first_ns) * 1e-9;
	uint64_t frames = get(&r->frames), whole = frames - at_most(get(&r->broken), frames);
	uint32_t items = sl_geometry_frame_items(&r->geometry);
	char events[48] = "";
	double rate;

	if (!(seconds > 0))
		return;
	rate = (double)whole * items / seconds;
	if (items > 1)
		snprintf(events, sizeof(events),
			 rate < 1e6 ? " (%.0f events/s)" : " (%.4g M events/s)",
			 rate < 1e6 ? rate : rate * 1e-6);
	fprintf(out,
		"\n%llu frames in %.2f s: %.1f frames/s%s, %.2f GB/s of pixels; link %s, guard %s, "
		"proof %s\n",
		(unsigned long long)frames, seconds, (double)frames / seconds, events,
		(double)get(&r->bytes) * 1e-9 / seconds, r->env.link, r->env.guard, r->env.proof);
	if (r->workers)
		fprintf(out, "%u worker%s, busy %.0f %% of that time\n", r->workers,
			r->workers == 1 ? "" : "s", 100 * sl_report_busy(r, seconds));
}

void sl_report(FILE *out, const struct sl_receiver *r, enum sl_result result, const char *early)
{
	static const char *const words[] = {
		[SL_RESULT_INTACT] =
			"intact: every module-frame is accounted for, none lost or damaged",
		[SL_RESULT_ERROR] = "error",
		[SL_RESULT_DAMAGED] = "damaged: everything is accounted for, but see above",
		[SL_RESULT_UNCLOSED] =
			"unclosed: not everything that was sent can be accounted for",
		[SL_RESULT_EMPTY] = "empty: nothing was sent",
	};

	ledger_table(out, &r->ledger);
	causes(out, &r->ledger);
	drops(out, &r->counters);
	congestion(out, &r->counters);
	backlog(out, r);
	sources(out, r);
	latencies(out, r);
	rates(out, r);
	sinks(out, r);
	fputc('\n', out);
	if (early)
		fprintf(out, "Ended early: %s\n", early);
	fprintf(out, "Result: %s\n", words[result]);
	fflush(out);
}
