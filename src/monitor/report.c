/* report.c - text for people. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sluice/sink.h>

#include "base/clock.h"
#include "base/log.h"
#include "monitor/report.h"

enum { TERMINAL_NS = 200 * 1000 * 1000, PLAIN_NS = 2000 * 1000 * 1000 };

static uint64_t at_most(uint64_t value, uint64_t limit)
{
	return value < limit ? value : limit;
}

void sl_progress_line_begin(struct sl_progress_line *p)
{
	*p = (struct sl_progress_line){.start_ns = sl_clock_ns(),
				       .terminal = isatty(STDERR_FILENO)};
	p->shown_ns = p->start_ns;
}

bool sl_progress_line_is_due(const struct sl_progress_line *p)
{
	return sl_clock_ns() - p->shown_ns >= (p->terminal ? TERMINAL_NS : PLAIN_NS);
}

/* Sinks that the data waited for since the last line, and those that leave frames out. */
static void print_pace(struct sl_progress_line *p, const struct sl_status *s, uint64_t now_ns,
		       char *text, size_t bytes)
{
	size_t at = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < s->addons; i++) {
		const struct sl_status_pace *pace = &s->pace[i];
		uint64_t waited_ns = pace->waited_ns -
				     at_most(p->shown_waited_ns[i], pace->waited_ns);
		double percent = now_ns > p->shown_ns ? 100.0 * (double)waited_ns /
								(double)(now_ns - p->shown_ns)
						      : 0;

		p->shown_waited_ns[i] = pace->waited_ns;
		if (percent >= 1 && at < bytes)
			at += (size_t)snprintf(text + at, bytes - at, "   waits for %s %.0f %%",
					       s->addon[i].name, percent < 100 ? percent : 100);
		if (pace->left_out && pace->on_slow == SL_ON_SLOW_DROP && at < bytes)
			at += (size_t)snprintf(text + at, bytes - at, "   %s has left out %llu",
					       s->addon[i].name,
					       (unsigned long long)pace->left_out);
		else if (pace->left_out && at < bytes)
			at += (size_t)snprintf(
				text + at, bytes - at, "   %s stores 1 of %u, has left out %llu",
				s->addon[i].name, pace->factor, (unsigned long long)pace->left_out);
	}
}

void sl_progress_line_draw(struct sl_progress_line *p, const struct sl_status *s)
{
	uint64_t now = sl_clock_ns(), intact = s->frames - at_most(s->broken, s->frames);
	double seconds = (double)(now - p->shown_ns) * 1e-9;
	double kept = intact ? 100.0 * (double)s->kept / (double)intact : 0;
	double rate = seconds > 0 ? (double)(s->pixel_bytes - p->shown_bytes) * 1e-9 / seconds : 0;
	char of[32] = "", pace[128], line[384];
	int n;

	/* Modules that are not of one trigger make more frames than were triggered. */
	if (s->expected_frames && s->frames <= s->expected_frames)
		snprintf(of, sizeof(of), " / %llu", (unsigned long long)s->expected_frames);
	print_pace(p, s, now, pace, sizeof(pace));
	n = snprintf(line, sizeof(line),
		     "%s%llu%s frames   %.2f GB/s   %.1f %% kept   %llu lost or damaged   ring "
		     "%llu/%llu "
		     "  waiting %llu + %llu%s%s",
		     p->terminal ? "\r\033[K" : "", (unsigned long long)s->frames, of, rate, kept,
		     (unsigned long long)s->broken, (unsigned long long)s->slots.now,
		     (unsigned long long)s->slots.of, (unsigned long long)s->at_unit.now,
		     (unsigned long long)s->at_sinks.now, pace, p->terminal ? "" : "\n");
	sl_log_write(line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
	p->shown_ns = now;
	p->shown_bytes = s->pixel_bytes;
	p->drawn = true;
	sl_log_progress_shown(p->terminal);
}

void sl_progress_line_end(struct sl_progress_line *p, const struct sl_status *status)
{
	/* The last line speaks of the whole run. */
	p->shown_ns = p->start_ns;
	p->shown_bytes = 0;
	memset(p->shown_waited_ns, 0, sizeof(p->shown_waited_ns));
	sl_progress_line_draw(p, status);
	if (p->terminal)
		sl_log_write("\n", 1);
	sl_log_progress_shown(0);
}

/* What front ends say they left out; most never do. */
static void skipped(FILE *out, const struct sl_status *s)
{
	uint64_t total = 0;

	for (uint32_t m = 0; m < s->modules; m++)
		total += s->column[m].skipped;
	if (!total)
		return;
	fprintf(out, "  %-12s", "skipped");
	for (uint32_t m = 0; m < s->modules; m++)
		fprintf(out, "  %10llu", (unsigned long long)s->column[m].skipped);
	fprintf(out, "  %10llu\n", (unsigned long long)total);
}

static void ledger_table(FILE *out, const struct sl_status *s)
{
	fprintf(out, "\nLedger (module-frames)\n  %-12s", "");
	for (uint32_t m = 0; m < s->modules; m++)
		fprintf(out, "  %*smodule %u", m < 10 ? 2 : 1, "", m);
	fprintf(out, "  %10s\n  %-12s", "total", "sent");
	for (uint32_t m = 0; m < s->modules; m++)
		fprintf(out, "  %10llu", (unsigned long long)s->column[m].sent);
	fprintf(out, "  %10llu\n", (unsigned long long)sl_status_sent(s));
	skipped(out, s);
	for (unsigned o = SL_STORED; o < SL_OUTCOMES; o++) {
		fprintf(out, "  %-12s", sl_outcome_name(o));
		for (uint32_t m = 0; m < s->modules; m++)
			fprintf(out, "  %10llu", (unsigned long long)s->column[m].outcome[o]);
		fprintf(out, "  %10llu\n", (unsigned long long)sl_status_total(s, o));
	}
	fprintf(out, "  the ledger %s\n",
		!sl_status_closed(s) ? "DOES NOT CLOSE"
		: s->sources_gone ? "closes only as far as a front end reported before it vanished"
				  : "closes");
	for (uint32_t m = 0; m < s->modules; m++)
		if (s->source[m].state == SL_SOURCE_DONE && sl_status_contradicts(&s->column[m]))
			fprintf(out,
				"  module %u: more frames arrived than its front end says it "
				"sent\n",
				m);
}

static void causes(FILE *out, const struct sl_status *s)
{
	const char *lead = "  causes: ";

	for (unsigned c = SL_CAUSE_NONE + 1; c < SL_CAUSES; c++) {
		uint64_t total = 0;

		for (uint32_t m = 0; m < s->modules; m++)
			total += s->column[m].cause[c];
		if (!total)
			continue;
		fprintf(out, "%s%s %llu", lead, sl_cause_name(c), (unsigned long long)total);
		lead = ", ";
	}
	if (lead[0] == ',')
		fputc('\n', out);
}

static void congestion(FILE *out, const struct sl_status *s)
{
	if (s->marked)
		fprintf(out,
			"  congestion on the way: %llu packets were marked, front ends were asked "
			"%llu times to slow down\n",
			(unsigned long long)s->marked, (unsigned long long)s->notified);
}

static void drops(FILE *out, const struct sl_status *s)
{
	const char *lead = "  packets turned away: ";

	for (unsigned d = 0; d < SL_DROPS; d++) {
		if (!s->dropped[d])
			continue;
		fprintf(out, "%s%s %llu%s", lead, sl_drop_name(d),
			(unsigned long long)s->dropped[d],
			/* The kernel's count: of batches (GSO, GRO), not of packets. */
			d == SL_DROP_FULL ? " (receive-queue drops; each may be a batch of packets)"
					  : "");
		lead = ", ";
	}
	if (lead[0] == ',')
		fputc('\n', out);
}

static void backlog(FILE *out, const struct sl_status *s)
{
	fprintf(out,
		"  at most %llu of %llu slots in use, %llu frames before and %llu after the unit\n",
		(unsigned long long)s->slots.most, (unsigned long long)s->slots.of,
		(unsigned long long)s->at_unit.most, (unsigned long long)s->at_sinks.most);
	if (s->partial)
		fprintf(out, "  %llu frames went on with missing modules (ring.incomplete: keep)\n",
			(unsigned long long)s->partial);
	if (s->dark > s->dark_expected)
		fprintf(out,
			"  %llu frames were marked dark by their front ends, %llu are by the "
			"detector's options (dark_frames, dark_every)\n",
			(unsigned long long)s->dark, (unsigned long long)s->dark_expected);
	if (s->repeated)
		fprintf(out, "  %llu frames have the number of the frame before them\n",
			(unsigned long long)s->repeated);
	if (s->prescaled)
		fprintf(out, "  %llu frames were kept as a sample of the rejected (prescale)\n",
			(unsigned long long)s->prescaled);
}

/* Sinks that could not keep pace. */
static void pace(FILE *out, const struct sl_status *s)
{
	double seconds = (double)(s->last_ns - s->first_ns) * 1e-9;

	for (uint32_t i = 0; i < s->addons; i++) {
		const struct sl_status_pace *p = &s->pace[i];
		double waited = (double)p->waited_ns * 1e-9;

		if (seconds > 0 && waited >= 0.01 * seconds)
			fprintf(out,
				"  the data waited for %s %.0f %% of the time (%.2f s): it could "
				"not keep pace\n",
				s->addon[i].name, waited < seconds ? 100 * waited / seconds : 100,
				waited);
		if (p->left_out && p->on_slow == SL_ON_SLOW_DROP)
			fprintf(out,
				"  %llu frames were left out by %s, which could not keep pace "
				"(on_slow: drop); the run did not wait for it\n",
				(unsigned long long)p->left_out, s->addon[i].name);
		else if (p->left_out)
			fprintf(out,
				"  %llu kept frames were left out by %s, which could not keep pace "
				"(on_slow: prescale; the factor changed %u times)\n",
				(unsigned long long)p->left_out, s->addon[i].name, p->changes);
	}
}

static void sources(FILE *out, const struct sl_status *status)
{
	for (uint32_t m = 0; m < status->modules; m++) {
		const struct sl_status_source *s = &status->source[m];

		if (s->returns)
			fprintf(out, "  module %u: another front end took over, %llu time%s\n", m,
				(unsigned long long)s->returns, s->returns == 1 ? "" : "s");
		if (s->state != SL_SOURCE_GONE)
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
static void deadline(FILE *out, const struct sl_status *s)
{
	const struct sl_status_latency *l = &s->latency[SL_LATENCY_DECISION];

	if (!s->deadline_us)
		return;
	fprintf(out, "  verdicts due after %u us: %llu of %llu frames were late", s->deadline_us,
		(unsigned long long)s->late, (unsigned long long)s->frames);
	if (l->count)
		fprintf(out, "; they came after (us): p50 %.1f, p99 %.1f, p99.9 %.1f",
			(double)l->p50_ns * 1e-3, (double)l->p99_ns * 1e-3,
			(double)l->p999_ns * 1e-3);
	fputc('\n', out);
}

static void latencies(FILE *out, const struct sl_status *s)
{
	fprintf(out, "\nLatency per hop (us)      p50        p99        max\n");
	for (unsigned i = 0; i < s->latencies; i++) {
		const struct sl_status_latency *l = &s->latency[i];

		if (l->count)
			fprintf(out, "  %-16s %10.1f %10.1f %10.1f\n", sl_latency_name(i),
				(double)l->p50_ns * 1e-3, (double)l->p99_ns * 1e-3,
				(double)l->max_ns * 1e-3);
	}
	deadline(out, s);
	if (!s->same_clock)
		fprintf(out, "  (wire and total are left out: the front end has another clock)\n");
}

static void figures(FILE *out, const struct sl_status *s, const struct sl_status_addon *addon)
{
	const struct sl_status_figure *f = &s->figure[addon->first_figure];

	for (uint32_t i = 0; i < addon->figures; i++, f++) {
		if (!f->failed)
			fprintf(out, ", %s %llu", f->name, (unsigned long long)f->value);
		else if (f->value) /* troubles are named when there are any */
			fprintf(out, ", %s %llu (!)", f->name, (unsigned long long)f->value);
	}
}

static void texts(FILE *out, const struct sl_status *s, uint32_t addon)
{
	for (uint32_t i = 0; i < s->texts && i < SL_STATUS_TEXTS; i++)
		if (s->text[i].addon == addon)
			fprintf(out, ", %s %s", s->text[i].name, s->text[i].value);
}

/* The unit has a line where it counts something. */
static void addons(FILE *out, const struct sl_status *s)
{
	fputc('\n', out);
	for (uint32_t i = 0; i < s->addons; i++) {
		const struct sl_status_addon *a = &s->addon[i];

		if (!a->is_sink && !a->figures)
			continue;
		fprintf(out, "  %s%s", a->name, !a->is_sink ? "" : a->error ? ": FAILED" : ": ok");
		if (a->error && a->optional)
			fprintf(out, " (not required)");
		if (a->where[0])
			fprintf(out, ", %s", a->where);
		figures(out, s, a);
		texts(out, s, i);
		if (a->error)
			fprintf(out, " (%s)", strerror(-a->error));
		fputc('\n', out);
	}
}

double sl_report_busy(const struct sl_status *s, double seconds)
{
	double share = s->threads.workers && seconds > 0
			       ? (double)s->threads.busy_ns * 1e-9 / seconds / s->threads.workers
			       : 0;

	return share < 1 ? share : 1; /* what is measured begins before the first frame */
}

static void rates(FILE *out, const struct sl_status *s)
{
	double seconds = (double)(s->last_ns - s->first_ns) * 1e-9;
	uint64_t whole = s->frames - at_most(s->broken, s->frames);
	char events[48] = "";
	double rate;

	if (!(seconds > 0))
		return;
	rate = (double)whole * s->items / seconds;
	if (s->items > 1)
		snprintf(events, sizeof(events),
			 rate < 1e6 ? " (%.0f events/s)" : " (%.4g M events/s)",
			 rate < 1e6 ? rate : rate * 1e-6);
	fprintf(out,
		"\n%llu frames in %.2f s: %.1f frames/s%s, %.2f GB/s of pixels; link %s, guard %s, "
		"proof %s\n",
		(unsigned long long)s->frames, seconds, (double)s->frames / seconds, events,
		(double)s->pixel_bytes * 1e-9 / seconds, s->link, s->guard, s->proof);
	if (s->threads.workers)
		fprintf(out, "%u worker%s, busy %.0f %% of that time\n", s->threads.workers,
			s->threads.workers == 1 ? "" : "s", 100 * sl_report_busy(s, seconds));
}

void sl_report(FILE *out, const struct sl_status *s)
{
	char words[512];

	ledger_table(out, s);
	causes(out, s);
	drops(out, s);
	congestion(out, s);
	backlog(out, s);
	pace(out, s);
	sources(out, s);
	latencies(out, s);
	rates(out, s);
	addons(out, s);
	fputc('\n', out);
	if (s->early[0])
		fprintf(out, "Ended early: %s\n", s->early);
	sl_result_words(s, words, sizeof(words));
	fprintf(out, "Result: %s\n", words);
	if (s->flight[0])
		fprintf(out, "Why: sluice explain %s\n", s->folder[0] ? s->folder : s->flight);
	fflush(out);
}
