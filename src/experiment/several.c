/* several.c - several detectors of one experiment: what has to fit. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/log.h"
#include "experiment/parts.h"

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

/* ---- of a file ---- */

static void join_options(const struct sl_experiment *other, struct sl_join_options *join)
{
	const struct sl_key_options *key = &other->key;

	*join = (struct sl_join_options){
		.by = (enum sl_align_by)key->by,
		.offset = (int64_t)key->offset,
		.divider = key->divider,
		.drift = key->drift_ppm * 1e-6,
		.window = key->by == SL_ALIGN_TIMESTAMP ? key->window_ns : 0,
		.wrap_bits = key->wrap_bits,
		.missing = (enum sl_join_missing)other->attach.missing,
		.wait_ns = other->attach.wait_us * UINT64_C(1000),
	};
}

/* What arrives while an event waits for its part has to find room. */
static int check_room(const struct sl_experiment *e, const char *name,
		      const struct sl_experiment *other)
{
	double frames = e->run.frame_rate_Hz * other->attach.wait_us * 1e-6;
	const struct sl_node *item = sl_node_child(other->config->root, "detectors");

	if (other->attach.missing != SL_JOIN_WAIT || frames <= e->ring.slots - 2)
		return 0;
	sl_config_error(other->config, item,
			"%s.wait_us: while an event waits %u us for '%s', '%s' takes %.0f frames, "
			"and its ring has %u slots: make the wait shorter, or its ring.slots %.0f",
			name, other->attach.wait_us, name, e->detector_name, frames, e->ring.slots,
			frames + 3);
	return -EINVAL;
}

/* The emulator's clocks are counts of frames. */
static int check_clock(const struct sl_experiment *e, const char *name,
		       const struct sl_experiment *other)
{
	double due = e->run.frame_rate_Hz / (double)other->key.divider;
	const struct sl_node *item = sl_node_child(other->config->root, "detectors");

	if (!e->emulate_local || other->key.by != SL_ALIGN_TIMESTAMP ||
	    fabs(other->run.frame_rate_Hz - due) <= due * 1e-9)
		return 0;
	sl_config_error(other->config, item,
			"%s.frame_rate_Hz is %g, and emulated for each %llu. event of '%s' its "
			"clock would count %g frames in a second: set it to that",
			name, other->run.frame_rate_Hz, (unsigned long long)other->key.divider,
			e->detector_name, due);
	return -EINVAL;
}

/* A keeper holds the memory and the sources of one ring. */
static int check_first(const struct sl_experiment *e)
{
	if (e->others && e->control.keeper[0])
		sl_error("control.keeper is for one detector, and this file has %u: leave it out",
			 e->others + 1);
	else
		return 0;
	return -EINVAL;
}

int sl_experiment_attach_all(struct sl_experiment *e, sl_experiment_open_other *open, void *arg)
{
	for (unsigned i = 1; i < e->names.n; i++) {
		const char *name = e->names.name[i];
		struct sl_join_options join;
		struct sl_experiment *other;
		int err = open(arg, name, &other);

		if (err)
			return err;
		join_options(other, &join);
		err = check_room(e, name, other);
		if (!err)
			err = check_clock(e, name, other);
		if (!err)
			err = sl_experiment_attach(e, name, other, &join);
		if (err) {
			sl_experiment_close(other);
			return err;
		}
	}
	return check_first(e);
}
