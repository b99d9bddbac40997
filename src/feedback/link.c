/* link.c - links for answers. */
#include "feedback/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/registry.h"

static const struct sl_link *find(const char *what, const char *name)
{
	const struct sl_link *link = sl_link_find(name);
	char known[256] = "";
	size_t used = 0;

	if (link && !link->oneway)
		return link;
	for (size_t i = 0; sl_links[i] && used < sizeof(known); i++)
		if (!sl_links[i]->oneway)
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
						 used ? ", " : "", sl_links[i]->name);
	sl_error("%s: no link that goes both ways is called '%s'; there are: %s", what, name,
		 known);
	return NULL;
}

int sl_way_init(struct sl_way *way, const char *what, const char *name, uint16_t service)
{
	const struct sl_link *link = find(what, name);
	const char *why = link && link->unavailable ? link->unavailable() : NULL;

	memset(way, 0, sizeof(*way));
	if (!link)
		return -EINVAL;
	if (why) {
		sl_error("%s: link '%s' cannot be used here: %s", what, name, why);
		return -EINVAL;
	}
	if (!(link->services & service)) {
		sl_error("%s: link '%s' has no service %s", what, name,
			 service == SL_SERVICE_RC ? "rc" : "uc");
		return -EINVAL;
	}
	way->link = link;
	way->service = service;
	way->message = link->message;
	way->crc = link->proof(service, link->message) == SL_PROOF_CHECKSUM;
	way->state = calloc(1, link->state_bytes);
	way->options = calloc(1, link->state_bytes);
	if (!way->state || !way->options) {
		sl_way_fini(way);
		return -ENOMEM;
	}
	sl_options_defaults(link->options, way->options);
	return 0;
}

void sl_way_fini(struct sl_way *way)
{
	free(way->state);
	free(way->options);
	way->state = way->options = NULL;
}

int sl_way_set(struct sl_way *way, const char *what, const char *name, const char *value)
{
	const struct sl_option *option = sl_option_find(way->link->options, name);
	char why[128];

	if (!option || !sl_option_set(option, way->options, value, why, sizeof(why)))
		return 0;
	sl_error("%s: link %s, %s: '%s': %s", what, way->link->name, name, value, why);
	return -EINVAL;
}

int sl_way_open(struct sl_way *way, const struct sl_link_env *env)
{
	memcpy(way->state, way->options, way->link->state_bytes);
	return way->link->open(way->state, env);
}
