/* conformance_test.c - what every link must do, over those that need nothing but this host. */
#include "lib/link_conformance.h"

extern const struct sl_link sl_link_udp, sl_link_shm, sl_link_sls, sl_link_nanet;

int main(void)
{
	static const struct sl_link *const links[] = {&sl_link_udp, &sl_link_shm, &sl_link_sls,
						      &sl_link_nanet};

	return conform(links, sizeof(links) / sizeof(*links));
}
