/* several.c - several detectors of one experiment: what has to fit. */
#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "experiment/experiment.h"

uint32_t sl_experiment_modules(const struct sl_experiment *e)
{
	uint32_t modules = e->run.modules;

	for (unsigned i = 0; i < e->others; i++)
		modules += e->other[i].experiment->run.modules;
	return modules;
}

/* A part is known by its sequence only while its modules have it in common. */
static bool has_sequences(const struct sl_experiment *e)
{
	return e->ring.align == SL_ALIGN_SEQUENCE;
}

static int check(const struct sl_experiment *e, const char *name, const struct sl_experiment *other,
		 const struct sl_join_options *join)
{
	uint32_t modules = sl_experiment_modules(e) + other->run.modules;

	if (e->others == SL_EXPERIMENT_OTHERS)
		sl_error("detector '%s' is one too many: %d is the most", name,
			 SL_EXPERIMENT_OTHERS + 1);
	else if (modules > SL_ALIGN_MODULES)
		sl_error("with detector '%s' there are %u modules: %d is the most of all detectors "
			 "together",
			 name, modules, SL_ALIGN_MODULES);
	else if (join->by == SL_ALIGN_SEQUENCE && !(has_sequences(e) && has_sequences(other)))
		sl_error("detector '%s' has no key in common with events: sequences need "
			 "ring.align: sequence of both; attach it by frame or timestamp",
			 name);
	else if (e->threads.together)
		sl_error("threads.together is for one detector: leave it out, or the detector '%s'",
			 name);
	else
		return 0;
	return -EINVAL;
}

int sl_experiment_attach(struct sl_experiment *e, const char *name, struct sl_experiment *other,
			 const struct sl_join_options *join)
{
	struct sl_experiment_other *o = &e->other[e->others];

	if (check(e, name, other, join))
		return -EINVAL;
	snprintf(o->name, sizeof(o->name), "%s", name);
	o->experiment = other;
	o->join = *join;
	e->others++;
	return 0;
}
