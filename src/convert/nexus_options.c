/* nexus_options.c - the sink `nexus` for a recorded run: options as a user gave them, and those
 * that the recording decides. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "convert/convert.h"
#include "sink/nexus/nexus.h"

static int set(void *state, const char *name, const char *value)
{
	char why[256];
	int r = sl_options_set(sl_sink_nexus.options, state, name, value, why, sizeof(why));

	if (r == -ENOENT)
		sl_error("the sink nexus has no option '%s'; sluice list nexus shows which it has",
			 name);
	else if (r)
		sl_error("%s: '%s': %s", name, value, why);
	return r;
}

static int set_text(void *state, const char *text)
{
	const char *equals = strchr(text, '=');
	char name[64];

	if (!equals || (size_t)(equals - text) >= sizeof(name)) {
		sl_error("--set %s: takes OPTION=VALUE, an option of the sink nexus", text);
		return -EINVAL;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
	if (!strcmp(name, "path") || !strcmp(name, "overwrite")) {
		sl_error("--set %s: the file is named by the last argument, and replaced with "
			 "--overwrite",
			 text);
		return -EINVAL;
	}
	return set(state, name, equals + 1);
}

/* All cores: no receiver needs them. */
static int set_workers(void *state)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	char text[16];

	snprintf(text, sizeof(text), "%ld",
		 cores < 1		   ? 1
		 : cores > SL_SINK_WORKERS ? (long)SL_SINK_WORKERS
					   : cores);
	return set(state, "workers", text);
}

/* The image that is asked for is the one that there is. */
static int check_image(const struct sl_recorded *recorded, const void *state)
{
	const char *stored = sl_recorded_dataset(recorded), *asked = sl_nexus_dataset(state);

	if (!asked || (stored && !strcmp(asked, stored)))
		return 0;
	if (stored)
		sl_error("%s: has no '%s': of each frame '%s' was stored (option dataset of the "
			 "sink raw)",
			 recorded->path, asked, stored);
	else
		sl_error("%s: has no images: convert it with --set image=none", recorded->path);
	return -EINVAL;
}

void *sl_convert_sink(const struct sl_recorded *recorded, const char *out, bool overwrite,
		      const char *const *sets, unsigned count)
{
	void *state = calloc(1, sl_sink_nexus.state_bytes);
	const char *stored = sl_recorded_dataset(recorded);
	int r;

	if (!state)
		return NULL;
	sl_options_defaults(sl_sink_nexus.options, state);
	r = set(state, "path", out);
	if (!r)
		r = set(state, "overwrite", overwrite ? "true" : "false");
	if (!r)
		r = set_workers(state);
	if (!r)
		r = stored ? set(state, "dataset", stored) : set(state, "image", "none");
	for (unsigned i = 0; i < count && !r; i++)
		r = set_text(state, sets[i]);
	if (!r)
		r = check_image(recorded, state);
	if (!r)
		return state;
	free(state);
	return NULL;
}
