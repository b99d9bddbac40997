/* poller_packet_race_test.c - two threads poll the packet link, each with a ring of its own: every
 * packet comes to the thread of its queue, shown one by one or in blocks. */
#include "lib/link_race.h"
#include "link/packet/packet.h"

extern const struct sl_link sl_link_packet;

static void blocks_of_two_pollers_arrive_whole(void **state)
{
	(void)state;
	race_two_pollers(rig_new(&sl_link_packet));
}

static void over_a_reliable_connection(void **state)
{
	struct rig *rig = rig_new(&sl_link_packet);

	(void)state;
	rig->service = SL_SERVICE_RC;
	race_two_pollers(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_of_two_pollers_arrive_whole),
		cmocka_unit_test(over_a_reliable_connection),
	};
	const char *why = sl_packet_unavailable();

	if (why) {
		printf("1..0 # SKIP %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
