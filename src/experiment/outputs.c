/* outputs.c - the paths of files that stages and sinks write: as the file has them, or as they are
 * in a run. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file/path_words.h"
#include "base/log.h"
#include "experiment/parts.h"

struct sl_output_path {
	const char *add_on;
	const struct sl_option *option;
	void *base;
	char *text; /* as the file has it */
};

typedef int each_fn(void *arg, const char *add_on, const struct sl_option *option, void *base);

static bool is_output(const struct sl_option *option)
{
	return option->type == SL_OPTION_OUTPUT || option->type == SL_OPTION_OUTPUT_FOLDERS;
}

static int each_option(const char *add_on, const struct sl_option *options, void *base,
		       each_fn *each, void *arg)
{
	int err = 0;

	for (; options && options->name && !err; options++)
		if (is_output(options))
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

/* ---- words ---- */

enum { WORDS = 5 };

/* What the words stand for, and the memory of those that are made here. */
struct words {
	struct sl_path_word word[WORDS];
	char run[24], date[16], time[16];
};

static void set_words(const struct sl_experiment *e, const struct sl_run_words *in, struct words *w)
{
	const time_t seconds = (time_t)(in->unix_ns / UINT64_C(1000000000));
	const char *transfer = e->transfer[0] ? e->transfer : NULL;
	struct tm utc;

	gmtime_r(&seconds, &utc);
	snprintf(w->run, sizeof(w->run), "%06" PRIu64, in->run);
	strftime(w->date, sizeof(w->date), "%Y%m%d", &utc);
	strftime(w->time, sizeof(w->time), "%H%M%S", &utc);
	w->word[0] = (struct sl_path_word){
		"run", in->run ? w->run : NULL,
		"runs have numbers in run folders alone: add --root DIR, or use {date} and {time}"};
	w->word[1] = (struct sl_path_word){"date", w->date, NULL};
	w->word[2] = (struct sl_path_word){"time", w->time, NULL};
	w->word[3] = (struct sl_path_word){
		"transfer", transfer, "the experiment has no transfers: write a name in its place"};
	w->word[4] = (struct sl_path_word){
		"sample", in->sample && in->sample[0] ? in->sample : "unknown", NULL};
}

enum { FOLDERS_BYTES = 4 * PATH_MAX }; /* of a list of them */

/* As it is in a run. */
static int expand(const struct sl_option *option, const char *text, const char *folder,
		  const struct words *words, char *path, size_t bytes, char *why, size_t why_bytes)
{
	size_t used = 0;

	if (option->type == SL_OPTION_OUTPUT_FOLDERS)
		return sl_path_list_expand(text, folder, words->word, WORDS, path, bytes, why,
					   why_bytes);
	if (folder && text[0] && text[0] != '/')
		used = (size_t)snprintf(path, bytes, "%s/", folder);
	if (used >= bytes) {
		snprintf(why, why_bytes, "is longer than %zu bytes with its folder", bytes - 1);
		return -ENAMETOOLONG;
	}
	return sl_path_words_expand(text, words->word, WORDS, path + used, bytes - used, why,
				    why_bytes);
}

/* With values of any kind: what is wrong without them is wrong. */
void sl_experiment_check_words(struct sl_reader *r, struct sl_node *section,
			       const struct sl_option *options, const void *base)
{
	static const struct sl_run_words any = {.run = 1};
	char path[FOLDERS_BYTES], why[512];
	struct words words;

	set_words(r->e, &any, &words);
	if (r->site) /* the experiment may have transfers */
		words.word[3].value = "";
	for (; options && options->name; options++) {
		struct sl_node *node = section ? sl_config_option(section, options) : NULL;

		if (!node || !is_output(options) ||
		    !expand(options, text_of(options, base), NULL, &words, path, sizeof(path), why,
			    sizeof(why)))
			continue;
		sl_config_error(r->e->config, node, "%s", why);
		r->err = -EINVAL;
	}
}

/* ---- a run ---- */

static int set_path(const struct sl_output_path *o, const char *path)
{
	char why[256];

	if (!sl_option_set(o->option, o->base, path, why, sizeof(why)))
		return 0;
	sl_error("%s.%s: '%s' is too long; choose a shorter path, or a shorter one for the root of "
		 "the runs",
		 o->add_on, o->option->name, path);
	return -ENAMETOOLONG;
}

static int place(const struct sl_output_path *o, const char *folder, const struct words *words)
{
	char path[FOLDERS_BYTES], why[512];
	int err = expand(o->option, o->text, folder, words, path, sizeof(path), why, sizeof(why));

	if (!err)
		return set_path(o, path);
	sl_error("%s.%s: '%s': %s", o->add_on, o->option->name, o->text, why);
	return err;
}

int sl_experiment_place(struct sl_experiment *e, const char *folder, const struct sl_run_words *in)
{
	int err = e->outputs ? 0 : each_output(e, note, e);
	struct words words;

	if (in)
		set_words(e, in, &words);
	for (unsigned i = 0; i < e->outputs && !err; i++)
		err = in ? place(&e->output[i], folder, &words)
			 : set_path(&e->output[i], e->output[i].text);
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

static void warn_of(const char *add_on, const struct sl_option *option, const char *text)
{
	if (sl_path_words_has(text, "run") || sl_path_words_has(text, "time"))
		return;
	if (text[0] == '/' || climbs(text))
		sl_warn("%s.%s: '%s' is in no run folder: the next run finds the file of this one "
			"there; a relative path without '..' begins in the run's own folder",
			add_on, option->name, text);
}

static int warn(void *arg, const char *add_on, const struct sl_option *option, void *base)
{
	const char *rest = text_of(option, base), *path;
	char one[PATH_MAX];
	size_t bytes;

	if (option->type == SL_OPTION_OUTPUT) {
		warn_of(add_on, option, rest);
		return 0;
	}
	while (sl_path_list_next(&rest, &path, &bytes)) {
		snprintf(one, sizeof(one), "%.*s", (int)bytes, path);
		warn_of(add_on, option, one);
	}
	return 0;
}

void sl_experiment_warn_of_shared_outputs(const struct sl_experiment *e)
{
	each_output(e, warn, NULL);
}
