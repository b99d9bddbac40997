/* states.c - the states of add-ons as their options left them, for run after run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "experiment/experiment.h"

struct sl_experiment_states {
	void *generator, *link, *unit;
	void *stage[SL_EXPERIMENT_STAGES], *sink[SL_EXPERIMENT_SINKS];
};

static void *copy_of(const void *state, size_t bytes, int *err)
{
	void *copy = malloc(bytes ? bytes : 1);

	if (copy && bytes)
		memcpy(copy, state, bytes);
	if (!copy)
		*err = -ENOMEM;
	return copy;
}

static void forget(struct sl_experiment_states *s)
{
	for (unsigned i = 0; i < SL_EXPERIMENT_STAGES; i++)
		free(s->stage[i]);
	for (unsigned i = 0; i < SL_EXPERIMENT_SINKS; i++)
		free(s->sink[i]);
	free(s->generator);
	free(s->link);
	free(s->unit);
	free(s);
}

int sl_experiment_keep_states(struct sl_experiment *e)
{
	struct sl_experiment_states *s = calloc(1, sizeof(*s));
	int err = s ? 0 : -ENOMEM;

	if (err)
		return err;
	s->generator = copy_of(e->generator_state, e->generator->state_bytes, &err);
	s->link = copy_of(e->link_state, e->link->state_bytes, &err);
	s->unit = copy_of(e->unit_state, e->unit->state_bytes, &err);
	for (unsigned i = 0; i < e->stages; i++)
		s->stage[i] = copy_of(e->stage_state[i], e->stage[i]->state_bytes, &err);
	for (unsigned i = 0; i < e->sinks; i++)
		s->sink[i] = copy_of(e->sink_state[i], e->sink[i]->state_bytes, &err);
	if (err) {
		forget(s);
		return err;
	}
	sl_experiment_forget_states(e);
	e->states = s;
	for (unsigned i = 0; i < e->others && !err; i++)
		err = sl_experiment_keep_states(e->other[i].experiment);
	return err;
}

void sl_experiment_forget_states(struct sl_experiment *e)
{
	if (e->states)
		forget(e->states);
	e->states = NULL;
}

void sl_experiment_renew_sinks(struct sl_experiment *e)
{
	for (unsigned i = 0; e->states && i < e->sinks; i++)
		memcpy(e->sink_state[i], e->states->sink[i], e->sink[i]->state_bytes);
}

void sl_experiment_renew_stages(struct sl_experiment *e)
{
	for (unsigned i = 0; e->states && i < e->stages; i++)
		memcpy(e->stage_state[i], e->states->stage[i], e->stage[i]->state_bytes);
	if (e->states)
		memcpy(e->unit_state, e->states->unit, e->unit->state_bytes);
}

void sl_experiment_renew_sources(struct sl_experiment *e)
{
	if (!e->states)
		return;
	memcpy(e->generator_state, e->states->generator, e->generator->state_bytes);
	memcpy(e->link_state, e->states->link, e->link->state_bytes);
	for (unsigned i = 0; i < e->others; i++)
		sl_experiment_renew_sources(e->other[i].experiment);
}
