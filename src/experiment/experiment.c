/* experiment.c - an experiment from its files: site file, experiment file, --set, transfer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment/parts.h"
#include "experiment/site.h"

static char own[SL_EXPERIMENT_OWN]; /* lines */

/* The rest of a line: "emulate=none", or "...port=NUMBER". */
static bool may_be_own(const char *line, size_t length)
{
	static const char emulate[] = "emulate=none", port[] = ".port=";
	size_t digits = 0;

	while (digits < length && line[length - 1 - digits] >= '0' &&
	       line[length - 1 - digits] <= '9')
		digits++;
	length -= digits;
	if (!digits)
		return length == sizeof(emulate) - 1 && !strncmp(line, emulate, length);
	return length >= sizeof(port) &&
	       !strncmp(line + length - (sizeof(port) - 1), port, sizeof(port) - 1);
}

int sl_experiment_set_own(const char *lines)
{
	size_t length;

	if (strlen(lines) >= sizeof(own))
		return -E2BIG;
	for (const char *line = lines; *line; line += length + (line[length] == '\n')) {
		length = strcspn(line, "\n");
		if (!may_be_own(line, length))
			return -EINVAL;
	}
	strcpy(own, lines);
	return 0;
}

static int set_own(struct sl_config *config)
{
	char copy[sizeof(own)], *rest = copy, *line;
	int err = 0;

	strcpy(copy, own);
	while (!err && (line = strsep(&rest, "\n")))
		err = *line ? sl_config_override_own(config, line) : 0;
	return err;
}

static int set_all(struct sl_config *config, const char *const *overrides, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n; i++) {
		int one = sl_config_override(config, overrides[i]);

		err = one ? one : err;
	}
	return err ? err : set_own(config);
}

int sl_experiment_transfers(const char *path, const char *const *overrides, size_t n,
			    struct sl_transfer_names *names)
{
	struct sl_config *config = NULL;
	struct sl_site site;
	int err = sl_site_open(&site);

	names->n = 0;
	if (!err)
		err = sl_config_open(path, &config);
	if (!err)
		err = sl_site_defaults(&site, config);
	if (!err) {
		int set = set_all(config, overrides, n);

		err = sl_transfer_names(config, names);
		err = err ? err : set;
	}
	sl_config_close(config);
	sl_site_close(&site);
	return err;
}

int sl_experiment_detectors(const char *path, const char *const *overrides, size_t n,
			    struct sl_detector_names *names)
{
	struct sl_config *config = NULL;
	int err = sl_config_open(path, &config);

	names->n = 0;
	if (!err) {
		int set = set_all(config, overrides, n);

		err = sl_detector_names(config, names);
		err = err ? err : set;
	}
	sl_config_close(config);
	return err;
}

static void note(struct sl_reader *r, int err)
{
	r->err = r->err ? r->err : err;
}

/* Site files know sections by their present names only. Where there is none, the file stays as it
 * was written, and the reader of the section takes either name. */
static void rename_sections(struct sl_config *config)
{
	for (const struct sl_plain_section *s = sl_plain_sections; s->name; s++) {
		struct sl_node *node = sl_node_child(config->root, s->name);
		struct sl_node *former = s->was ? sl_node_child(config->root, s->was) : NULL;

		if (!former || sl_node_is_null(former) ||
		    (node && (former->kind != SL_NODE_MAP || node->kind != SL_NODE_MAP ||
			      node->origin == former->origin)))
			continue; /* two of them are for the reader of the section */
		sl_config_warn(config, former, "is called '%s' now; the former name still works",
			       s->name);
		if (node)
			sl_node_fold(node, former);
		else
			former->key = s->name;
	}
}

/* What front ends have no use for, and others of the detectors do not have. */
static void leave_out(struct sl_config *config)
{
	static const char *const sections[] = {"stages",  "sinks",	"goniometer", "feedback",
					       "answers", "parameters", NULL};

	for (unsigned i = 0; sections[i]; i++) {
		struct sl_node *node = sl_node_child(config->root, sections[i]);

		if (node)
			sl_node_unlink(node);
	}
}

/* The text is that of the whole file: the sections of one detector are not laid over it yet. */
static int choose_detector(struct sl_reader *r, const char *detector)
{
	struct sl_config *config = r->e->config;
	struct sl_detector_choice choice;
	int err;

	sl_experiment_hide_tokens(config);
	if (sl_node_child(config->root, "detectors") && !(r->e->text = sl_config_text(config)))
		return -ENOMEM;
	err = sl_detector_choose(config, detector, &choice);
	if (err || !choice.item)
		return err;
	if (r->e->one)
		leave_out(config);
	snprintf(r->e->detector_name, sizeof(r->e->detector_name), "%s", choice.item->key);
	r->detector = choice.item;
	r->e->names = choice.names;
	r->e->port_offset = choice.port_offset;
	return 0;
}

/* Locks are looked at after each step, so that no later one hides what an earlier one did. */
static int resolve(struct sl_reader *r, const struct sl_site *site, const char *transfer,
		   const char *detector, const char *const *overrides, size_t n)
{
	struct sl_config *config = r->e->config;
	struct sl_transfer_choice choice;
	int err;

	if (site->files) {
		rename_sections(config);
		note(r, sl_site_defaults(site, config));
		note(r, sl_site_lock(site, config));
	}
	note(r, set_all(config, overrides, n));
	if (site->files) {
		rename_sections(config);
		note(r, sl_site_lock(site, config));
	}
	err = sl_experiment_plugins(config);
	if (!err)
		err = sl_transfer_choose(config, transfer, &choice);
	if (!err && r->e->live)
		err = sl_experiment_add_live(config);
	if (err)
		return err;
	r->e->port_offset = choice.port_offset;
	err = choose_detector(r, detector);
	if (err)
		return err;
	if (site->files) {
		rename_sections(config);
		note(r, sl_site_finish(site, config));
	}
	r->transfer = choice.options;
	r->e->transfers = choice.transfers;
	return 0;
}

static int understand(struct sl_reader *r)
{
	struct sl_experiment *e = r->e;
	int distrust = 0;

	sl_experiment_read(r);
	if (r->err != -ENOMEM)
		distrust = sl_experiment_distrust_paths(e, !(r->bad & ~SL_SECTION_PARAMETERS));
	if (distrust)
		return distrust; /* before a file that it names is read */
	if (e->control.port)
		e->control.port += e->port_offset;
	if (!(r->bad & SL_SECTION_CONTROL))
		note(r, sl_experiment_token(e));
	if (r->err != -ENOMEM)
		note(r, sl_experiment_check(e, r->bad));
	/* The text is stored with the run: a reader of the file must not learn the secret. */
	sl_experiment_hide_tokens(e->config);
	if (!r->err && !e->text && !(e->text = sl_config_text(e->config)))
		return -ENOMEM;
	return r->err;
}

enum special { PLAIN, NO_SINKS, LIVE, ONE };

struct file {
	const char *path;
	const char *const *overrides;
	size_t n;
};

/* detector NULL: the first one. */
static int open_alone(const struct file *f, const char *transfer, const char *detector,
		      enum special special, struct sl_experiment **experiment)
{
	struct sl_reader r = {.e = calloc(1, sizeof(*r.e))};
	struct sl_site site;
	int err;

	if (!r.e)
		return -ENOMEM;
	r.e->no_sinks = special == NO_SINKS || special == ONE;
	r.e->live = special == LIVE;
	r.e->one = special == ONE;
	err = sl_site_open(&site);
	if (!err)
		err = sl_config_open(f->path, &r.e->config);
	if (!err)
		err = resolve(&r, &site, transfer, detector, f->overrides, f->n);
	sl_site_close(&site);
	if (!err)
		err = understand(&r);
	if (err) {
		sl_experiment_close(r.e);
		return err;
	}
	*experiment = r.e;
	return 0;
}

static int open_other(void *arg, const char *name, struct sl_experiment **other)
{
	return open_alone(arg, NULL, name, ONE, other);
}

static int open_experiment(const char *path, const char *transfer, const char *const *overrides,
			   size_t n, enum special special, struct sl_experiment **experiment)
{
	struct file f = {path, overrides, n};
	struct sl_experiment *e;
	int err = open_alone(&f, transfer, NULL, special, &e);

	if (err)
		return err;
	err = sl_experiment_attach_all(e, open_other, &f);
	if (!err)
		err = sl_experiment_check_parameters(e);
	if (err) {
		sl_experiment_close(e);
		return err;
	}
	*experiment = e;
	return 0;
}

int sl_experiment_open_one(const char *path, const char *detector, const char *const *overrides,
			   size_t n, struct sl_experiment **experiment)
{
	return open_alone(&(struct file){path, overrides, n}, NULL, detector, ONE, experiment);
}

int sl_experiment_open(const char *path, const char *transfer, const char *const *overrides,
		       size_t n, struct sl_experiment **experiment)
{
	return open_experiment(path, transfer, overrides, n, PLAIN, experiment);
}

int sl_experiment_open_no_sinks(const char *path, const char *transfer,
				const char *const *overrides, size_t n,
				struct sl_experiment **experiment)
{
	return open_experiment(path, transfer, overrides, n, NO_SINKS, experiment);
}

int sl_experiment_open_live(const char *path, const char *transfer, const char *const *overrides,
			    size_t n, struct sl_experiment **experiment)
{
	return open_experiment(path, transfer, overrides, n, LIVE, experiment);
}

void sl_experiment_close(struct sl_experiment *e)
{
	for (unsigned i = 0; i < SL_EXPERIMENT_STAGES; i++)
		free(e->stage_state[i]);
	for (unsigned i = 0; i < SL_EXPERIMENT_SINKS; i++)
		free(e->sink_state[i]);
	for (unsigned i = 0; i < e->others; i++)
		sl_experiment_close(e->other[i].experiment);
	free(e->generator_state);
	free(e->link_state);
	free(e->unit_state);
	free(e->text);
	free(e->parameters);
	sl_refined_free(&e->refined);
	sl_experiment_forget_states(e);
	sl_experiment_forget_outputs(e);
	if (e->config)
		sl_config_close(e->config);
	free(e);
}
