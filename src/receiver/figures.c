/* figures.c - what sinks, the unit and stages count by themselves, copied by their own threads for
 * a status that any thread may take. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/sequence.h"
#include "receiver/private.h"

_Static_assert((int)SL_EXPERIMENT_SINKS + 1 <= (int)SL_STATUS_ADDONS, "a status has all of them");

/* Data threads copy figures, too: nothing here formats. */
static void copy_text(char *to, size_t bytes, const char *text)
{
	size_t n = strnlen(text, bytes - 1);

	memcpy(to, text, n);
	to[n] = 0;
}

static void add(void *arg, const char *name, uint64_t value, int failed)
{
	struct sl_figures *f = arg;
	struct sl_status_figure *figure = &f->figure[f->figures];

	if (f->figures == sizeof(f->figure) / sizeof(f->figure[0])) {
		f->left_out++;
		f->failures_left_out += failed && value;
		return;
	}
	f->figures++;
	copy_text(figure->name, sizeof(figure->name), name);
	figure->value = value;
	figure->failed = failed != 0;
}

static void add_text(void *arg, const char *name, const char *value)
{
	struct sl_figures *f = arg;
	struct sl_status_text *text = &f->text[f->texts];

	if (f->texts == sizeof(f->text) / sizeof(f->text[0])) {
		f->texts_left_out++;
		return;
	}
	f->texts++;
	copy_text(text->name, sizeof(text->name), name);
	copy_text(text->value, sizeof(text->value), value);
}

static void publish(struct sl_figures_board *board, struct sl_figures *figures)
{
	uint64_t words[SL_FIGURES_WORDS];

	figures->taken_ns = board->taken_ns = sl_clock_ns();
	memcpy(words, figures, sizeof(*figures));
	sl_sequence_write(&board->sequence, board->word, words, SL_FIGURES_WORDS);
}

bool sl_figures_of_unit(const struct sl_receiver *r)
{
	const struct sl_chain *chain = &r->build.chain;
	bool any = r->experiment->unit->figures;

	for (unsigned s = 0; s < chain->stages; s++)
		any |= chain->stage[s].ops->figures != NULL;
	return any;
}

/* Those of stages, too. */
void sl_figures_take_unit(struct sl_receiver *r)
{
	const struct sl_experiment *e = r->experiment;
	const struct sl_chain *chain = &r->build.chain;
	struct sl_figures figures = {.figures = 0};

	if (e->unit->figures)
		e->unit->figures(e->unit_state, add, &figures);
	for (unsigned s = 0; s < chain->stages; s++)
		if (chain->stage[s].ops->figures)
			chain->stage[s].ops->figures(chain->stage[s].state, add, &figures);
	publish(&r->unit_figures, &figures);
}

static void add_stalls(const struct sl_sink_thread *t, struct sl_figures *figures)
{
	uint64_t longest_ns = atomic_load_explicit(&t->longest_ns, memory_order_relaxed);

	add(figures, "stalls", atomic_load_explicit(&t->stalls, memory_order_relaxed), 0);
	add(figures, "longest_put_us", longest_ns / 1000, 0);
}

/* Below which sequence all is safe that the sink has accepted. */
static uint64_t durable_of(const struct sl_sink *sink, const void *state)
{
	if (sink->durable)
		return sink->durable(state);
	return sink->where ? 0 : UINT64_MAX;
}

static void take_sink(struct sl_receiver *r, unsigned i)
{
	const struct sl_experiment *e = r->experiment;
	const char *where = e->sink[i]->where ? e->sink[i]->where(e->sink_state[i]) : NULL;
	struct sl_figures figures = {.figures = 0};

	copy_text(figures.where, sizeof(figures.where), where ? where : "");
	if (e->sink[i]->figures)
		e->sink[i]->figures(e->sink_state[i], add, &figures);
	if (e->sink[i]->texts)
		e->sink[i]->texts(e->sink_state[i], add_text, &figures);
	if (r->sink_thread[i].wanted)
		add_stalls(&r->sink_thread[i], &figures);
	/* Nothing in a sink that is not required makes a run fail. */
	for (uint32_t f = 0; f < figures.figures && r->sink_optional[i]; f++)
		figures.figure[f].failed = 0;
	figures.failures_left_out *= !r->sink_optional[i];
	figures.durable = durable_of(e->sink[i], e->sink_state[i]);
	publish(&r->sink_figures[i], &figures);
}

void sl_figures_take_sinks(struct sl_receiver *r)
{
	for (unsigned i = 0; i < r->experiment->sinks; i++)
		take_sink(r, i);
}

void sl_figures_renew_unit(struct sl_receiver *r, uint64_t now_ns)
{
	if (now_ns - r->unit_figures.taken_ns > SL_FIGURES_NS)
		sl_figures_take_unit(r);
}

void sl_figures_renew_sink(struct sl_receiver *r, unsigned sink, uint64_t now_ns)
{
	if (now_ns - r->sink_figures[sink].taken_ns > SL_FIGURES_NS)
		take_sink(r, sink);
}

void sl_figures_renew_sinks(struct sl_receiver *r, uint64_t now_ns)
{
	for (unsigned i = 0; i < r->experiment->sinks; i++)
		if (!r->sink_thread[i].wanted && !(r->prompt >> i & 1))
			sl_figures_renew_sink(r, i, now_ns);
	sl_sink_threads_watch(r, now_ns);
	sl_sink_pace_watch(r, now_ns);
}

void sl_figures_renew_prompt(struct sl_receiver *r, uint64_t now_ns)
{
	for (unsigned i = 0; i < r->experiment->sinks && r->prompt; i++)
		if (r->prompt >> i & 1)
			sl_figures_renew_sink(r, i, now_ns);
}

/* ---- any thread ---- */

static void copy_texts(const struct sl_figures *figures, struct sl_status *status)
{
	status->texts_left_out += figures->texts_left_out;
	for (uint32_t i = 0; i < figures->texts; i++) {
		if (status->texts == SL_STATUS_TEXTS) {
			status->texts_left_out++;
			continue;
		}
		status->text[status->texts] = figures->text[i];
		status->text[status->texts++].addon = status->addons - 1;
	}
}

/* Returns what is durable in it. */
static uint64_t addon_status(struct sl_status *status, const char *name,
			     const struct sl_figures_board *board)
{
	struct sl_status_addon *addon = &status->addon[status->addons++];
	uint32_t room = SL_STATUS_FIGURES - status->figures;
	uint64_t words[SL_FIGURES_WORDS];
	struct sl_figures figures;

	sl_sequence_read(&board->sequence, board->word, words, SL_FIGURES_WORDS);
	memcpy(&figures, words, sizeof(figures));
	snprintf(addon->name, sizeof(addon->name), "%s", name);
	snprintf(addon->where, sizeof(addon->where), "%s", figures.where);
	addon->taken_ns = figures.taken_ns;
	addon->first_figure = status->figures;
	addon->figures = figures.figures < room ? figures.figures : room;
	memcpy(&status->figure[status->figures], figures.figure,
	       addon->figures * sizeof(figures.figure[0]));
	status->figures += addon->figures;
	copy_texts(&figures, status);
	status->figures_left_out += figures.left_out + (figures.figures - addon->figures);
	status->failures_left_out += figures.failures_left_out;
	for (uint32_t i = addon->figures; i < figures.figures; i++)
		status->failures_left_out += figures.figure[i].failed && figures.figure[i].value;
	return figures.durable;
}

void sl_figures_status(const struct sl_receiver *r, struct sl_status *status)
{
	const struct sl_experiment *e = r->experiment;
	bool safe = atomic_load_explicit(&r->safe, memory_order_relaxed);

	addon_status(status, e->unit->name, &r->unit_figures);
	status->watermark = UINT64_MAX;
	for (unsigned i = 0; i < e->sinks; i++) {
		struct sl_status_addon *addon = &status->addon[status->addons];
		uint64_t durable = addon_status(status, e->sink[i]->name, &r->sink_figures[i]);

		if (safe && !e->sink[i]->durable)
			durable = UINT64_MAX;
		if (!r->sink_optional[i] && durable < status->watermark)
			status->watermark = durable;
		addon->is_sink = 1;
		addon->optional = r->sink_optional[i];
		addon->has_place = e->sink[i]->where != NULL;
		addon->error = atomic_load_explicit(&r->sink_error[i], memory_order_relaxed);
	}
}
