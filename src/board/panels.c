/* panels.c - ledger, latencies, queues, causes and sinks of a session. */
#include <stdio.h>
#include <string.h>

#include "board/causes.h"
#include "board/private.h"

enum { NAME = 11, COUNT = 14, SHARE = 9, MODULE = 13, HOP = 10, VALUE = 11, TEXT = 32 };

static unsigned title(struct sl_grid *g, struct sl_area a, const char *name)
{
	unsigned column = sl_grid_put(g, a.top, a.left, a.width, SL_TITLE, name);

	if (column + 1 < a.left + a.width)
		sl_grid_rule(g, a.top, column + 1, a.left + a.width - column - 1);
	return a.top + 1;
}

static struct sl_area below(struct sl_area a, unsigned row)
{
	a.top = row < a.bottom ? row : a.bottom;
	return a;
}

/* ---- ledger ---- */

static unsigned module_columns(const struct sl_view *v, struct sl_area a)
{
	unsigned room = a.width > NAME + COUNT + SHARE ? (a.width - NAME - COUNT - SHARE) / MODULE
						       : 0;

	return v->modules > 1 && v->modules <= room ? v->modules : 0;
}

static uint64_t value_of(const struct sl_view_column *c, int outcome)
{
	return outcome < 0 ? c->sent : outcome ? c->outcome[outcome] : c->pending;
}

/* outcome: -1: sent; 0: pending. */
static void ledger_row(struct sl_grid *g, const struct sl_view *v, struct sl_area a, unsigned row,
		       int outcome, const char *name)
{
	unsigned modules = module_columns(v, a), column = a.left + NAME;
	uint64_t n = value_of(&v->total, outcome);
	bool loss = outcome > 0 && sl_view_is_loss((enum sl_outcome)outcome);
	enum sl_style style = !n ? SL_DIM : loss ? SL_BAD : SL_PLAIN;
	char text[TEXT];

	sl_grid_put(g, row, a.left, NAME, n ? style : SL_DIM, name);
	for (unsigned m = 0; m < modules; m++, column += MODULE)
		sl_grid_put_right(g, row, column + MODULE, style,
				  sl_board_count(value_of(&v->module[m], outcome), text));
	sl_grid_put_right(g, row, column + COUNT, n && outcome < 0 ? SL_BOLD : style,
			  sl_board_count(n, text));
	column += COUNT;
	if (outcome <= 0 || !n || !v->total.settled)
		return;
	sl_grid_put_right(g, row, column + SHARE, style,
			  sl_board_percent((double)n / (double)v->total.settled, text));
	column += SHARE + 2;
	if (column + 4 < a.left + a.width)
		sl_grid_bar(g, row, column, a.left + a.width - column,
			    (double)n / (double)v->total.settled, loss ? SL_BAD : SL_ACCENT);
}

unsigned sl_board_ledger(struct sl_grid *g, const struct sl_view *v, struct sl_area a, bool all)
{
	unsigned row = title(g, a, "Ledger, module-frames"), modules = module_columns(v, a);
	char text[TEXT];

	for (unsigned m = 0; m < modules && row < a.bottom; m++) {
		snprintf(text, sizeof(text), "module %u", m);
		sl_grid_put_right(g, row, a.left + NAME + (m + 1) * MODULE, SL_DIM, text);
	}
	if (modules && row < a.bottom)
		sl_grid_put_right(g, row++, a.left + NAME + modules * MODULE + COUNT, SL_DIM,
				  "total");
	if (row < a.bottom)
		ledger_row(g, v, a, row++, -1, "sent");
	for (int i = SL_NO_OUTCOME + 1; i < SL_OUTCOMES && row < a.bottom; i++)
		if (all || i == SL_STORED || v->total.outcome[i])
			ledger_row(g, v, a, row++, i, sl_outcome_name((enum sl_outcome)i));
	if (v->total.pending && row < a.bottom)
		ledger_row(g, v, a, row++, 0, "pending");
	return row;
}

/* ---- latencies ---- */

unsigned sl_board_hops(struct sl_grid *g, const struct sl_view *v, struct sl_area a)
{
	static const char *const heads[] = {"p50", "p99", "max"};
	unsigned row = title(g, a, "Latency by hop");
	unsigned value = a.width >= HOP + 3 * VALUE ? VALUE : (a.width - HOP) / 3;

	if (!v->hops && row < a.bottom)
		sl_grid_put(g, row++, a.left, a.width, SL_DIM, "no frame was measured yet");
	for (unsigned i = 0; i < 3 && v->hops && row < a.bottom; i++)
		sl_grid_put_right(g, row, a.left + HOP + (i + 1) * value, SL_DIM, heads[i]);
	row += v->hops && row < a.bottom;
	for (unsigned h = 0; h < v->hops && row < a.bottom; h++, row++) {
		const struct sl_view_hop *hop = &v->hop[h];
		const double us[] = {hop->p50_us, hop->p99_us, hop->max_us};
		bool whole = !strcmp(hop->name, "total");

		sl_grid_put(g, row, a.left, HOP, whole ? SL_BOLD : SL_PLAIN, hop->name);
		for (unsigned i = 0; i < 3; i++) {
			char text[TEXT];

			sl_grid_put_right(g, row, a.left + HOP + (i + 1) * value,
					  whole ? SL_BOLD : SL_PLAIN, sl_board_us(us[i], text));
		}
	}
	return row;
}

/* ---- queues ---- */

static void gauge_row(struct sl_grid *g, struct sl_area a, unsigned row, const char *name,
		      const struct sl_view_gauge *gauge, uint64_t mark)
{
	uint64_t of = gauge->of ? gauge->of : gauge->most;
	double share = of ? (double)gauge->now / (double)of : 0;
	bool says_most = a.width >= 46;
	unsigned right = says_most ? 26 : 13,
		 bar = a.width > HOP + right ? a.width - HOP - right : 4;
	char now[TEXT], most[TEXT], text[100];
	enum sl_style style = mark	    ? (gauge->now >= mark ? SL_WARN : SL_GOOD)
			      : share > 0.9 ? SL_BAD
			      : share > 0.7 ? SL_WARN
					    : SL_GOOD;

	sl_grid_put(g, row, a.left, HOP - 1, SL_PLAIN, name);
	sl_grid_bar(g, row, a.left + HOP, bar, share, style);
	if (gauge->of)
		snprintf(text, sizeof(text), "%s of %s", sl_board_count(gauge->now, now),
			 sl_board_count(gauge->of, most));
	else
		snprintf(text, sizeof(text), "%s", sl_board_count(gauge->now, now));
	sl_grid_print(g, row, a.left + HOP + bar + 1, 12, SL_PLAIN, "%s", text);
	if (says_most)
		sl_grid_print(g, row, a.left + HOP + bar + 14, 12, SL_DIM, "most %s",
			      sl_board_count(gauge->most, most));
}

unsigned sl_board_queues(struct sl_grid *g, const struct sl_view *v, struct sl_area a)
{
	unsigned row = title(g, a, "Ring and queues");

	if (row < a.bottom)
		gauge_row(g, a, row++, "ring", &v->slots, 0);
	if (row < a.bottom)
		gauge_row(g, a, row++, "unit", &v->unit, 0);
	if (row < a.bottom)
		gauge_row(g, a, row++, "sinks", &v->at_sinks, 0);
	for (unsigned i = 0; i < v->sinks && row < a.bottom; i++)
		if (v->sink[i].has_pace)
			gauge_row(g, a, row++, v->sink[i].name, &v->sink[i].waiting,
				  v->sink[i].mark);
	return row;
}

/* ---- why ---- */

static unsigned cause_lines(struct sl_grid *g, struct sl_area a, enum sl_cause cause, uint64_t n,
			    bool hints)
{
	const struct sl_cause_words *words = &sl_cause_words[cause];
	char count[TEXT], line[600];
	unsigned column, row;

	column = sl_grid_print(g, a.top, a.left, a.width, SL_BAD, "%s %s ",
			       sl_board_count(n, count), sl_cause_name(cause));
	snprintf(line, sizeof(line), "%s", words->words);
	row = sl_board_wrap(
		g, (struct sl_area){a.top, column + 1, a.left + a.width - column - 1, a.bottom},
		SL_PLAIN, line);
	if (!hints || !words->hint[0] || row >= a.bottom)
		return row;
	snprintf(line, sizeof(line), "To mend it: %s", words->hint);
	return sl_board_wrap(g, (struct sl_area){row, a.left + 2, a.width - 2, a.bottom}, SL_DIM,
			     line);
}

static unsigned other_lines(struct sl_grid *g, const struct sl_view *v, struct sl_area a)
{
	unsigned row = a.top;
	char count[TEXT];

	for (unsigned i = 0; i < v->drops && row < a.bottom; i++)
		sl_grid_print(g, row++, a.left, a.width, SL_WARN, "%s packets turned away: %s",
			      sl_board_count(v->drop[i].packets, count), v->drop[i].name);
	if (v->gone && row < a.bottom)
		sl_grid_print(g, row++, a.left, a.width, SL_BAD, "%s sources vanished",
			      sl_board_count(v->gone, count));
	if (v->misuse && row < a.bottom)
		sl_grid_print(g, row++, a.left, a.width, SL_BAD,
			      "%s outcomes written twice: a bug, please report it",
			      sl_board_count(v->misuse, count));
	return row;
}

/* The largest first; a line that says which command tells more. */
unsigned sl_board_causes(struct sl_grid *g, const struct sl_view *v, struct sl_area a)
{
	uint64_t lost = sl_view_lost(&v->total), below_n = UINT64_MAX;
	unsigned row = title(g, a, lost ? "Lost or damaged, and why" : "Losses"), last = 0;
	bool roomy = a.bottom > a.top + 10, explains = v->flight[0] && a.bottom > a.top + 2;

	if (explains)
		a.bottom--;
	if (!lost && row < a.bottom)
		sl_grid_put(g, row++, a.left, a.width, v->total.settled ? SL_GOOD : SL_DIM,
			    v->total.settled ? "nothing was lost or damaged"
					     : "nothing has come yet");
	while (lost && row < a.bottom) {
		unsigned next = 0;

		for (unsigned i = SL_CAUSE_NONE + 1; i < SL_CAUSES; i++) {
			uint64_t n = v->total.cause[i];
			bool left = n < below_n || (n == below_n && i > last);

			if (n && sl_cause_words[i].hint[0] && left &&
			    (!next || n > v->total.cause[next]))
				next = i;
		}
		if (!next)
			break;
		below_n = v->total.cause[next];
		last = next;
		row = cause_lines(g, below(a, row), (enum sl_cause)next, below_n, roomy);
	}
	row = other_lines(g, v, below(a, row));
	if (explains)
		sl_grid_print(g, row++, a.left, a.width, SL_ACCENT, "sluice explain %s",
			      v->folder[0] ? v->folder : v->name);
	return row;
}

/* ---- sinks and disks ---- */

static void sink_row(struct sl_grid *g, struct sl_area a, unsigned row,
		     const struct sl_view_sink *s)
{
	unsigned end = a.left + a.width, column = a.left + HOP + 1;
	char figures[80] = "", count[TEXT], bytes[TEXT];

	sl_grid_put(g, row, a.left, HOP, s->error[0] ? SL_BAD : SL_PLAIN, s->name);
	if (s->error[0]) {
		sl_grid_put(g, row, column, end - column, SL_BAD, s->error);
		return;
	}
	if (s->frames >= 0)
		snprintf(figures, sizeof(figures), "%s frames",
			 sl_board_count((uint64_t)s->frames, count));
	if (s->bytes >= 0)
		snprintf(figures + strlen(figures), sizeof(figures) - strlen(figures), "%s%s",
			 figures[0] ? ", " : "", sl_board_bytes((double)s->bytes, bytes));
	if (s->left_out)
		snprintf(figures + strlen(figures), sizeof(figures) - strlen(figures),
			 ", %s left out", sl_board_count(s->left_out, count));
	sl_grid_put_right(g, row, end, s->left_out ? SL_BAD : SL_PLAIN, figures);
	if (column + strlen(figures) + 2 < end)
		sl_grid_put(g, row, column, end - column - (unsigned)strlen(figures) - 2, SL_DIM,
			    s->where);
}

unsigned sl_board_sinks(struct sl_grid *g, const struct sl_view *v, struct sl_area a)
{
	unsigned row = title(g, a, "Sinks and disks");
	char bytes[TEXT], fit[TEXT];

	for (unsigned i = 0; i < v->sinks && row < a.bottom; i++)
		sink_row(g, a, row++, &v->sink[i]);
	for (unsigned i = 0; i < v->disks && row < a.bottom; i++) {
		const struct sl_view_disk *d = &v->disk[i];
		char text[120];

		snprintf(text, sizeof(text), "%s, %s frames when armed",
			 sl_board_bytes((double)d->free_bytes, bytes),
			 sl_board_count(d->frames_fit, fit));
		sl_grid_put(g, row, a.left, HOP, SL_PLAIN, "disk");
		sl_grid_put_right(g, row, a.left + a.width, d->fits ? SL_PLAIN : SL_BAD, text);
		if (HOP + strlen(text) + 12 < a.width)
			sl_grid_put(g, row, a.left + HOP + 1,
				    a.width - HOP - (unsigned)strlen(text) - 3, SL_DIM, d->path);
		row++;
	}
	if (!v->sinks && !v->disks && row < a.bottom)
		sl_grid_put(g, row++, a.left, a.width, SL_DIM, "none");
	return row;
}

/* ---- over time ---- */

static void history(struct sl_grid *g, const struct sl_view *v, struct sl_area a, const char *name,
		    const float *value, enum sl_style style)
{
	char text[80], seconds[TEXT];
	double most, span = 0;

	title(g, a, name);
	most = sl_grid_curve(g, a.top + 1, a.left, a.width, a.bottom - a.top - 1, value, v->rates,
			     style);
	for (size_t i = v->rates > a.width ? v->rates - a.width + 1 : 1; i < v->rates; i++)
		span += v->since_s[i];
	snprintf(text, sizeof(text), " most %.4g in %s", most, sl_board_time(span, seconds));
	if (sl_grid_width(name) + sl_grid_width(text) + 4 < a.width)
		sl_grid_put_right(g, a.top, a.left + a.width, SL_DIM, text);
}

void sl_board_history(struct sl_grid *g, const struct sl_view *v, struct sl_area a)
{
	unsigned gap = 3, width = (a.width - 2 * gap) / 3;
	struct sl_area part = {a.top, a.left, width, a.bottom};
	bool lost = sl_view_lost(&v->total) > 0;

	history(g, v, part, "Frames/s", v->rate, SL_GOOD);
	part.left += width + gap;
	history(g, v, part, "Slots of the ring in use", v->slots_used, SL_ACCENT);
	part.left += width + gap;
	part.width = a.left + a.width - part.left;
	history(g, v, part, "Lost or damaged", v->loss, lost ? SL_BAD : SL_DIM);
}
