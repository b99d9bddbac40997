/* poller_race_test.c - two threads poll the udp link. */
#include "lib/link_race.h"

extern const struct sl_link sl_link_udp;

static void blocks_of_two_pollers_arrive_whole(void **state)
{
	(void)state;
	race_two_pollers(rig_new(&sl_link_udp));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_of_two_pollers_arrive_whole)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
