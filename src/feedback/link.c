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

int sl_feedback_link_init(struct sl_feedback_link *over, const char *what, const char *name,
			  uint16_t service)
{
	const struct sl_link *link = find(what, name);
	const char *why = link && link->unavailable ? link->unavailable() : NULL;

	memset(over, 0, sizeof(*over));
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
	over->link = link;
	over->service = service;
	over->message = link->message;
	over->crc = link->proof(service, link->message) == SL_PROOF_CHECKSUM;
	over->state = calloc(1, link->state_bytes);
	over->options = calloc(1, link->state_bytes);
	if (!over->state || !over->options) {
		sl_feedback_link_fini(over);
		return -ENOMEM;
	}
	sl_options_defaults(link->options, over->options);
	return 0;
}

void sl_feedback_link_fini(struct sl_feedback_link *over)
{
	free(over->state);
	free(over->options);
	over->state = over->options = NULL;
}

int sl_feedback_link_set(struct sl_feedback_link *over, const char *what, const char *name,
			 const char *value)
{
	char why[128];
	int err = sl_options_set(over->link->options, over->options, name, value, why, sizeof(why));

	if (!err || err == -ENOENT)
		return 0;
	sl_error("%s: link %s, %s: '%s': %s", what, over->link->name, name, value, why);
	return -EINVAL;
}

int sl_feedback_link_open(struct sl_feedback_link *over, const struct sl_link_env *env)
{
	memcpy(over->state, over->options, over->link->state_bytes);
	return over->link->open(over->state, env);
}
