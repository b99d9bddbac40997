/* conformance_test.c - what every link must do, over packet sockets on loopback. */
#include "lib/link_conformance.h"
#include "link/packet/packet.h"

extern const struct sl_link sl_link_packet;

int main(void)
{
	static const struct sl_link *const links[] = {&sl_link_packet};
	const char *why = sl_packet_unavailable();

	if (why) {
		printf("1..0 # SKIP %s\n", why);
		return 0;
	}
	return conform(links, 1);
}
