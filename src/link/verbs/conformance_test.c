/* conformance_test.c - what every link must do, over verbs and a libibverbs without
 * hardware. */
#include "lib/link_conformance.h"
#include "lib/link_rig_verbs.h"

extern const struct sl_link sl_link_verbs;

int main(void)
{
	static const struct sl_link *const links[] = {&sl_link_verbs};

	rig_verbs_devices();
	return conform(links, 1);
}
