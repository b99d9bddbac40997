/* facts.c - what a link says of itself as configured. */
#include "core/link.h"

void sl_link_facts(const struct sl_link *link, const void *state, struct sl_link_facts *facts)
{
	*facts = (struct sl_link_facts){.listen = "", .source = "", .credits = true};
	if (link->facts)
		link->facts(state, facts);
}
