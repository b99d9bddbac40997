/* detectors.c - one detector's file out of the experiment's; and what of several has to fit. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/config/layers.h"
#include "base/log.h"
#include "experiment/parts.h"

/* Enough for 2^53 ns: 104 days. */
#define OFFSET_MOST 9e15

const struct sl_option sl_key_options[] = {
	SL_CHOICE(struct sl_key_options, by, sequence, "sequence|frame|timestamp",
		  "what a part of this detector and its event have in common: their place in the "
		  "stream, the frame number, or the time"),
	SL_F64(struct sl_key_options, offset, 0, -OFFSET_MOST, OFFSET_MOST, "",
	       "how far this detector is ahead of events: frames of it, or ns by timestamp"),
	SL_U64(struct sl_key_options, divider, 1, 1, 1e9, "",
	       "it has a part for each n-th event only"),
	SL_F64(struct sl_key_options, drift_ppm, 0, -1e5, 1e5, "ppm",
	       "by timestamp: by how much its clock is faster"),
	SL_U64(struct sl_key_options, window_ns, 1000, 0, 1e15, "ns",
	       "by timestamp: times that differ by no more are of the same event"),
	SL_U32(struct sl_key_options, wrap_bits, 64, 8, 64, "bits",
	       "its counter begins again after so many bits"),
	SL_OPTION_END,
};

const struct sl_option sl_missing_options[] = {
	SL_CHOICE(struct sl_missing_options, missing, require, "require|wait|optional",
		  "an event whose part of this detector does not come: is incomplete; goes on "
		  "after wait_us; goes on at once"),
	SL_U32(struct sl_missing_options, wait_us, 1000, 0, 60e6, "us",
	       "missing wait: how long an event waits for its part"),
	SL_OPTION_END,
};

/* What an item has beside the options of its detector. */
static const char *const sections[] = {"link",	   "ring",     "control", "calibration",
				       "geometry", "frontend", "feroce",  NULL};
static const char *const attaching[] = {"key", "missing", "wait_us", NULL};

static bool is_one_of(const char *key, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(key, *names))
			return true;
	return false;
}

static bool good_name(const char *name)
{
	return name[0] && strlen(name) <= SL_DETECTOR_NAME_MOST &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789-_")];
}

static struct sl_node *list_of(const struct sl_config *config)
{
	struct sl_node *list = sl_node_get(config->root, "detectors");

	return list && !sl_node_is_null(list) ? list : NULL;
}

static bool is_known(const struct sl_detector_names *names, const char *name)
{
	for (unsigned i = 0; i < names->n; i++)
		if (!strcmp(names->name[i], name))
			return true;
	return false;
}

static int add_name(const struct sl_config *config, const struct sl_node *item,
		    struct sl_detector_names *names)
{
	const struct sl_node *one = item->kind == SL_NODE_MAP ? item->child : NULL;

	if (!one || one->next || one->kind != SL_NODE_MAP)
		sl_config_error(config, item,
				"takes a name and its options, as in  - camera: {kind: ...}");
	else if (!good_name(one->key))
		sl_config_error(config, one,
				"a detector's name has 1 to %d letters, digits, - and _",
				SL_DETECTOR_NAME_MOST);
	else if (!strcmp(one->key, "raw") || !strcmp(one->key, "image"))
		sl_config_error(config, one,
				"stages call their pixels so: give the detector another name");
	else if (is_known(names, one->key))
		sl_config_error(config, one, "is there twice: detectors need names of their own");
	else if (names->n == SL_DETECTORS_MOST)
		sl_config_error(config, one, "is one too many: there are at most %d detectors",
				SL_DETECTORS_MOST);
	else {
		snprintf(names->name[names->n++], SL_DETECTOR_NAME, "%s", one->key);
		return 0;
	}
	return -EINVAL;
}

/* Two sections for one thing, or one that belongs elsewhere. */
static int check_others(const struct sl_config *config, const struct sl_node *list)
{
	const struct sl_node *detector = sl_node_child(config->root, "detector");
	const struct sl_node *transfers = sl_node_child(config->root, "transfers");
	int err = 0;

	if (detector && !sl_config_is_site(detector)) {
		sl_config_error(config, detector,
				"the file has a list of detectors: an option of one of them is "
				"detectors.NAME.OPTION");
		err = -EINVAL;
	}
	if (transfers && !sl_node_is_null(transfers)) {
		sl_config_error(config, list,
				"a file has transfers of one detector, or several detectors: leave "
				"one of the two sections out");
		err = -EINVAL;
	}
	return err;
}

int sl_detector_names(const struct sl_config *config, struct sl_detector_names *names)
{
	struct sl_node *list = list_of(config);
	int err = 0;

	names->n = 0;
	if (!list)
		return 0;
	if (list->kind != SL_NODE_LIST || !list->child) {
		sl_config_error(config, list,
				"takes a list, as in  detectors: [image: {kind: ...}, camera: "
				"{kind: ...}]");
		return -EINVAL;
	}
	for (struct sl_node *item = list->child; item; item = item->next)
		err = add_name(config, item, names) ? -EINVAL : err;
	return check_others(config, list) ? -EINVAL : err;
}

static struct sl_node *node_of(const struct sl_config *config, const char *name, unsigned *index)
{
	struct sl_node *item = list_of(config)->child;

	for (*index = 0; name && name[0] && item && strcmp(item->child->key, name) != 0; ++*index)
		item = item->next;
	return item ? item->child : NULL;
}

static int refuse(const struct sl_config *config, const struct sl_detector_names *names,
		  const char *name)
{
	char known[512] = "";
	size_t used = 0;

	for (unsigned i = 0; i < names->n && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
					 names->name[i]);
	if (names->n)
		sl_error("%s: no detector is called '%s'; there are: %s", config->file, name,
			 known);
	else
		sl_error("%s: has no list of detectors, and so none that is called '%s'",
			 config->file, name);
	return -EINVAL;
}

static void move(struct sl_node **at, struct sl_node *to)
{
	struct sl_node *node = *at, **last = &to->child;

	*at = node->next;
	while (*last)
		last = &(*last)->next;
	node->next = NULL;
	node->parent = to;
	*last = node;
}

/* Sections go up; what is left but for what attaches it is the section `detector`. */
static int lay_over(struct sl_config *config, struct sl_node *item)
{
	struct sl_node over = {.kind = SL_NODE_MAP};
	struct sl_node *detector = sl_tree_alloc(sl_tree_of(config), sizeof(*detector));

	if (!detector)
		return -ENOMEM;
	*detector = *item;
	detector->key = "detector";
	detector->child = detector->next = NULL;
	detector->parent = &over;
	over.child = detector;
	for (struct sl_node **at = &item->child; *at;) {
		if (is_one_of((*at)->key, attaching))
			at = &(*at)->next;
		else
			move(at, is_one_of((*at)->key, sections) ? &over : detector);
	}
	sl_node_lay_over(config->root, &over);
	return 0;
}

int sl_detector_choose(struct sl_config *config, const char *name,
		       struct sl_detector_choice *choice)
{
	struct sl_node *node = NULL;
	unsigned index;
	int err;

	*choice = (struct sl_detector_choice){0};
	err = sl_detector_names(config, &choice->names);
	if (err)
		return err;
	if (!choice->names.n && (!name || !name[0]))
		return 0;
	if (choice->names.n)
		node = node_of(config, name, &index);
	if (!node)
		return refuse(config, &choice->names, name);
	choice->item = node;
	if (!sl_node_child(sl_node_child(node, "control"), "port"))
		choice->port_offset = index;
	return lay_over(config, node);
}

/* ---- as it is read ---- */

static void refuse_key(struct sl_reader *r, const struct sl_node *node, const char *why)
{
	sl_config_error(r->e->config, node, "%s", why);
	r->err = -EINVAL;
}

static void check_key(struct sl_reader *r, const struct sl_node *key)
{
	if (r->e->key.by == SL_ALIGN_TIMESTAMP)
		return;
	if (r->e->key.drift_ppm != 0)
		refuse_key(r, key, "drift_ppm is of clocks: set by: timestamp");
	if (r->e->key.offset != floor(r->e->key.offset))
		refuse_key(r, key, "offset is a number of whole frames");
}

void sl_experiment_read_attachment(struct sl_reader *r)
{
	static const char *const also[] = {"key", NULL};
	const struct sl_node *list = sl_node_child(r->e->config->root, "detectors");
	struct sl_option_set missing = {sl_missing_options, &r->e->attach};
	struct sl_option_set common = {sl_key_options, &r->e->key};
	struct sl_node *key = r->detector ? sl_node_get(r->detector, "key") : NULL;

	if (r->site && list)
		refuse_key(r, list,
			   "a site file has no detectors; it has sections that each of them "
			   "shares");
	if (sl_config_fill(r->e->config, r->detector, &missing, 1, also))
		r->err = -EINVAL;
	if (sl_config_fill(r->e->config, key && !sl_node_is_null(key) ? key : NULL, &common, 1,
			   NULL))
		r->err = -EINVAL;
	if (r->detector && r->detector->child && !strcmp(r->e->detector_name, r->e->names.name[0]))
		refuse_key(r, r->detector->child,
			   "the first detector defines events: key, missing and wait_us are for "
			   "the others");
	if (!r->err)
		check_key(r, key);
}

/* ---- what has to fit ---- */

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
