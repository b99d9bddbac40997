/* outputs.c - the paths of files that stages and sinks write: as the file has them, or in the
 * folder of a run. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "experiment/parts.h"

struct sl_output_path {
	const char *add_on;
	const struct sl_option *option;
	void *base;
	char *text; /* as the file has it */
};

typedef int each_fn(void *arg, const char *add_on, const struct sl_option *option, void *base);

static int each_option(const char *add_on, const struct sl_option *options, void *base,
		       each_fn *each, void *arg)
{
	int err = 0;

	for (; options && options->name && !err; options++)
		if (options->type == SL_OPTION_OUTPUT)
			err = each(arg, add_on, options, base);
	return err;
}

static int each_output(const struct sl_experiment *e, each_fn *each, void *arg)
{
	int err = 0;

	for (unsigned i = 0; i < e->stages && !err; i++)
		err = each_option(e->stage[i]->name, e->stage[i]->options, e->stage_state[i], each,
				  arg);
	for (unsigned i = 0; i < e->sinks && !err; i++)
		err = each_option(e->sink[i]->name, e->sink[i]->options, e->sink_state[i], each,
				  arg);
	return err;
}

static const char *text_of(const struct sl_option *option, const void *base)
{
	return (const char *)base + option->offset;
}

static int note(void *arg, const char *add_on, const struct sl_option *option, void *base)
{
	struct sl_experiment *e = arg;
	struct sl_output_path *more = realloc(e->output, (e->outputs + 1) * sizeof(*more));
	char *text = more ? strndup(text_of(option, base), option->size) : NULL;

	if (more)
		e->output = more;
	if (!text)
		return -ENOMEM;
	e->output[e->outputs++] = (struct sl_output_path){add_on, option, base, text};
	return 0;
}

static int place(const struct sl_output_path *o, const char *folder)
{
	char *path = NULL, why[256];
	int err;

	if (!folder || !o->text[0] || o->text[0] == '/')
		return sl_option_set(o->option, o->base, o->text, why, sizeof(why));
	if (asprintf(&path, "%s/%s", folder, o->text) < 0)
		return -ENOMEM;
	err = sl_option_set(o->option, o->base, path, why, sizeof(why));
	if (err) {
		sl_error("%s.%s: '%s' is too long; choose a shorter path for the root of the runs",
			 o->add_on, o->option->name, path);
		err = -ENAMETOOLONG;
	}
	free(path);
	return err;
}

int sl_experiment_place(struct sl_experiment *e, const char *folder)
{
	int err = e->outputs ? 0 : each_output(e, note, e);

	for (unsigned i = 0; i < e->outputs && !err; i++)
		err = place(&e->output[i], folder);
	return err;
}

void sl_experiment_forget_outputs(struct sl_experiment *e)
{
	for (unsigned i = 0; i < e->outputs; i++)
		free(e->output[i].text);
	free(e->output);
}

/* Some part of the path is "..". */
static bool climbs(const char *path)
{
	for (const char *part = path; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (!strncmp(part, "..", 2) && (!part[2] || part[2] == '/'))
			return true;
	}
	return false;
}

static int warn(void *arg, const char *add_on, const struct sl_option *option, void *base)
{
	const char *text = text_of(option, base);

	if (text[0] == '/' || climbs(text))
		sl_warn("%s.%s: '%s' is in no run folder: each run replaces the file of the run "
			"before; a relative path without '..' begins in the run's own folder",
			add_on, option->name, text);
	return 0;
}

void sl_experiment_warn_of_shared_outputs(const struct sl_experiment *e)
{
	each_output(e, warn, NULL);
}
