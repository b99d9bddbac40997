/* measure.c - what follows from a result and a flight record: rates, waits, what buffers hold. */
#include <string.h>

#include "core/ledger.h"
#include "explain/private.h"

/* Of a record, the samples this long before the first loss and after it count as near. */
#define NEAR_NS UINT64_C(3000000000)

enum {
	/* What the kernel charges for a packet beside its payload, and the least that a packet
	 * costs (link/udp/accept.c). */
	SKB_EXTRA = 484,
	SKB_HEAD = 256,
};

/* ---- series ---- */

const struct sl_case_series *sl_case_find(const struct sl_case *c, const char *name)
{
	for (size_t i = 0; i < c->n_series; i++)
		if (!strcmp(c->series[i].name, name))
			return &c->series[i];
	return NULL;
}

uint64_t sl_series_of(const struct sl_case_series *s, size_t sample)
{
	if (!s)
		return SL_NO_VALUE;
	if (!s->value)
		return s->constant;
	return sample < s->n ? s->value[sample] : SL_NO_VALUE;
}

/* Between the first and the last sample that have it. */
static uint64_t growth(const struct sl_case_series *s, size_t from, size_t to)
{
	uint64_t first = SL_NO_VALUE, last = SL_NO_VALUE;

	for (size_t i = from; i <= to; i++) {
		uint64_t value = sl_series_of(s, i);

		if (value == SL_NO_VALUE)
			continue;
		first = first == SL_NO_VALUE ? value : first;
		last = value;
	}
	return last != SL_NO_VALUE && last > first ? last - first : 0;
}

uint64_t sl_case_grew_between(const struct sl_case *c, const char *name, size_t from, size_t to)
{
	const struct sl_case_series *s = sl_case_find(c, name);

	return s && to < c->samples ? growth(s, from, to) : 0;
}

uint64_t sl_case_grew(const struct sl_case *c, const char *name)
{
	return c->samples ? sl_case_grew_between(c, name, 0, c->samples - 1) : 0;
}

static double seconds_to(const struct sl_case *c, size_t sample)
{
	return (double)(c->at_ns[sample] - c->at_ns[sample - 1]) * 1e-9;
}

static bool is_near(const struct sl_case *c, size_t sample)
{
	uint64_t at = c->at_ns[sample];

	return !c->first_loss_ns ||
	       (at + NEAR_NS >= c->first_loss_ns && at <= c->first_loss_ns + NEAR_NS);
}

/* ---- ledger ---- */

uint64_t sl_case_lost(const struct sl_case *c)
{
	uint64_t lost = 0;

	for (unsigned o = SL_STORED; o < SL_OUTCOMES; o++)
		if (sl_outcome_is_loss((enum sl_outcome)o))
			lost += c->outcome[o];
	return lost;
}

uint64_t sl_case_missing(const struct sl_case *c)
{
	uint64_t lost = c->cause[SL_CAUSE_NO_ARRIVAL];

	lost = lost > c->skipped ? lost - c->skipped : 0;
	return lost + c->cause[SL_CAUSE_DAMAGED];
}

double sl_case_share_without_room(const struct sl_case *c)
{
	double sent = 0, lost = 0;

	for (size_t i = 1; i < c->samples; i++) {
		if (!is_near(c, i))
			continue;
		sent += (double)sl_case_grew_between(c, "sent", i - 1, i);
		lost += (double)sl_case_grew_between(c, "cause.no_slot", i - 1, i) +
			(double)sl_case_grew_between(c, "cause.oldest", i - 1, i);
	}
	if (lost <= 0 || sent <= 0) { /* the record does not tell */
		sent = (double)c->sent;
		lost = (double)(c->cause[SL_CAUSE_NO_SLOT] + c->cause[SL_CAUSE_OLDEST]);
	}
	return lost < sent ? lost / sent : 1;
}

/* ---- threads ---- */

static bool begins(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static bool ends(const char *text, const char *ending)
{
	size_t length = strlen(text), n = strlen(ending);

	return length >= n && !strcmp(text + length - n, ending);
}

/* The series of the same thread with another ending. */
static const struct sl_case_series *sibling(const struct sl_case *c,
					    const struct sl_case_series *run, const char *ending)
{
	char name[160];

	snprintf(name, sizeof(name), "%.*s%s", (int)(strlen(run->name) - strlen(".run")), run->name,
		 ending);
	return sl_case_find(c, name);
}

static double difference(const struct sl_case_series *s, size_t sample)
{
	uint64_t before = sl_series_of(s, sample - 1), now = sl_series_of(s, sample);

	return before != SL_NO_VALUE && now != SL_NO_VALUE && now > before ? (double)(now - before)
									   : 0;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* What a thread waited is counted when it has got a cpu: perhaps of earlier samples, too. */
static double share(double part, double whole)
{
	return part < whole ? part / whole : 1;
}

/* How long a thread waits for a cpu at a time where nothing is wrong: the least average of a
 * sample. */
static double usual_wait_ms(const struct sl_case *c, const struct sl_case_series *wait,
			    const struct sl_case_series *slices)
{
	double least = -1;

	for (size_t i = 1; i < c->samples; i++) {
		double times = difference(slices, i), ms = difference(wait, i) * 1e-6;

		if (times > 0 && (least < 0 || ms / times < least))
			least = ms / times;
	}
	return least < 0 ? 0 : least;
}

struct waits { /* of a thread */
	const struct sl_case_series *run, *wait, *slices;
	double usual_ms, waited_ms, of_ms;
};

static void add_sample(const struct sl_case *c, size_t sample, struct waits *w,
		       struct sl_case_threads *t)
{
	double waited_ms = difference(w->wait, sample) * 1e-6,
	       span_ms = seconds_to(c, sample) * 1e3;
	double times = larger(difference(w->slices, sample), 1);
	double longest_ms = waited_ms - (times - 1) * w->usual_ms;

	w->waited_ms += waited_ms;
	w->of_ms += span_ms;
	t->wait_ms = larger(t->wait_ms, waited_ms / times);
	t->wait_share = larger(t->wait_share, share(waited_ms, span_ms));
	t->run_share = larger(t->run_share, share(difference(w->run, sample) * 1e-6, span_ms));
	if (longest_ms > t->longest_ms) {
		t->longest_ms = longest_ms;
		t->waited_ms = waited_ms;
		t->of_ms = span_ms;
	}
}

static void add_thread(const struct sl_case *c, const struct sl_case_series *run,
		       struct sl_case_threads *t)
{
	struct waits w = {
		.run = run, .wait = sibling(c, run, ".wait"), .slices = sibling(c, run, ".slices")};

	w.usual_ms = usual_wait_ms(c, w.wait, w.slices);
	for (size_t i = 1; i < c->samples; i++)
		if (is_near(c, i))
			add_sample(c, i, &w, t);
	if (w.of_ms > 0)
		t->mean_share = larger(t->mean_share, share(w.waited_ms, w.of_ms));
}

bool sl_case_threads(const struct sl_case *c, const char *prefix, struct sl_case_threads *t)
{
	char begin[80];
	bool any = false;

	snprintf(begin, sizeof(begin), "thread.%s", prefix);
	*t = (struct sl_case_threads){0};
	for (size_t s = 0; s < c->n_series; s++) {
		const struct sl_case_series *run = &c->series[s];

		if (!begins(run->name, begin) || !ends(run->name, ".run"))
			continue;
		any = true;
		add_thread(c, run, t);
	}
	return any;
}

/* ---- a process that was stopped ---- */

/* Of all samples: how far apart they usually are. */
static double usual_seconds(const struct sl_case *c)
{
	double sum = 0, longest = 0;

	for (size_t i = 1; i < c->samples; i++) {
		sum += seconds_to(c, i);
		longest = larger(longest, seconds_to(c, i));
	}
	/* Without the longest, which is what is looked for. */
	return c->samples > 2 ? (sum - longest) / (double)(c->samples - 2) : 0.25;
}

/* The largest share of the time to this sample in which a thread ran or wanted to. */
static double activity(const struct sl_case *c, size_t sample)
{
	double most = 0;

	for (size_t s = 0; s < c->n_series; s++) {
		const struct sl_case_series *run = &c->series[s];

		if (begins(run->name, "thread.") && ends(run->name, ".run"))
			most = larger(most, difference(run, sample) +
						    difference(sibling(c, run, ".wait"), sample));
	}
	return most / (seconds_to(c, sample) * 1e9);
}

/* A sampler that comes late because it got no cpu has waited for one; one that comes late while no
 * thread of its process ran or waited was stopped. Most of the usual time between two samples may
 * be in the gap, too. */
bool sl_case_stopped(const struct sl_case *c, struct sl_case_stop *stop)
{
	double usual = usual_seconds(c);

	*stop = (struct sl_case_stop){0};
	for (size_t i = 1; i < c->samples; i++) {
		double gap = seconds_to(c, i), still = gap - usual;

		if (gap < 3 * usual || still < 0.3 || still < stop->seconds ||
		    activity(c, i) * gap > usual + 0.25 * still)
			continue;
		stop->seconds = still;
		stop->sample = i;
	}
	return stop->seconds > 0;
}

/* ---- receive buffers ---- */

double sl_case_buffer_bytes(const struct sl_case *c)
{
	double payload = c->pmtu ? c->pmtu : 1024, cost = 512;

	while (cost < payload + SKB_EXTRA)
		cost *= 2;
	return (double)c->receive_buffer / (cost + SKB_HEAD) * payload;
}

double sl_case_rate(const struct sl_case *c)
{
	double most = 0;

	for (size_t i = 1; i < c->samples; i++) {
		double frames = (double)sl_case_grew_between(c, "sent", i - 1, i);

		if (is_near(c, i))
			most = larger(most, frames * (double)c->block_bytes / seconds_to(c, i));
	}
	return most;
}

/* Each module has a socket of its own, as a rule. */
double sl_case_buffer_ms(const struct sl_case *c)
{
	double rate = sl_case_rate(c);

	return rate > 0 && c->modules ? sl_case_buffer_bytes(c) / (rate / c->modules) * 1e3 : 0;
}
