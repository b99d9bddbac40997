/* no_fake_verbs.c - in place of the fake libibverbs where the headers of the real one are missing:
 * tests that can do without it are still built, and find no such link. */
#include "lib/fake_verbs.h"

void fake_verbs_add(const char *device, const char *address)
{
	(void)device;
	(void)address;
}

void fake_verbs_lose(bool (*lose)(void *arg, uint32_t qpn, uint32_t psn), void *arg)
{
	(void)lose;
	(void)arg;
}

void fake_verbs_retry(unsigned tries)
{
	(void)tries;
}
