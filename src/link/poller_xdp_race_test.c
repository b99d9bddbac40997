/* poller_xdp_race_test.c - two threads poll the xdp link. On loopback all packets come to one of
 * them, and the other hands its queue over; over a veth pair with two receive queues the interface
 * spreads them. In networks of its own: nobody else's packets pass the program. */
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "lib/link_race.h"
#include "net/xdp/xdp.h"

extern const struct sl_link sl_link_xdp;

static int near_fd, far_fd; /* the networks of receiver and source */

static int network_of_its_own(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd, up;

	if (unshare(CLONE_NEWNET))
		return -1;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	up = fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &request);
	close(fd);
	return up ? open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC) : -1;
}

static bool shell(const char *format, int a, int b, int c)
{
	char text[600], quiet[700];

	snprintf(text, sizeof(text), format, a, b, c);
	snprintf(quiet, sizeof(quiet), "{ %s; } >/dev/null 2>&1", text);
	return system(quiet) == 0;
}

/* This process is in the receiver's. */
static bool cable(void)
{
	return shell("nsenter --net=/proc/%d/fd/%d sh -c 'ip link add cable numrxqueues 2 "
		     "numtxqueues 2 type veth peer name cable numrxqueues 2 numtxqueues 2 "
		     "netns %d && ip addr add 10.89.1.2/24 dev cable && ip link set cable up'",
		     getpid(), far_fd, getpid()) &&
	       shell("ip addr add 10.89.1.1/24 dev cable && ip link set cable up", 0, 0, 0);
}

static void enter(int fd)
{
	assert_int_equal(setns(fd, CLONE_NEWNET), 0);
}

static int open_there(void *state, const struct sl_link_env *env)
{
	int err;

	enter(env->ring ? near_fd : far_fd);
	err = sl_link_xdp.open(state, env);
	enter(near_fd);
	return err;
}

static int offer_there(void *state, struct sl_offer *offer)
{
	int err;

	enter(far_fd);
	err = sl_link_xdp.sending->offer(state, offer);
	enter(near_fd);
	return err;
}

static void race(bool wire, uint16_t service)
{
	struct sl_link_sending sending = *sl_link_xdp.sending;
	struct sl_link there = sl_link_xdp;
	struct rig *rig;

	there.open = open_there;
	sending.offer = offer_there;
	there.sending = &sending;
	rig = rig_new(wire ? &there : &sl_link_xdp);
	rig->service = service;
	if (wire) {
		rig->listen_at = "10.89.1.1";
		rig->send_from = "10.89.1.2";
	}
	race_two_pollers(rig);
}

static void all_queues_go_to_the_one_that_has_packets(void **state)
{
	(void)state;
	race(false, SL_SERVICE_UC);
}

static void they_do_over_a_reliable_connection(void **state)
{
	(void)state;
	race(false, SL_SERVICE_RC);
}

static void blocks_of_two_receive_queues_arrive_whole(void **state)
{
	(void)state;
	if (!cable()) {
		print_message("skipped: no veth pair between network namespaces here\n");
		skip();
	}
	for (int i = 0; i < 4; i++) /* other ports, and so other receive queues, each time */
		race(true, i % 2 ? SL_SERVICE_RC : SL_SERVICE_UC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_queues_go_to_the_one_that_has_packets),
		cmocka_unit_test(they_do_over_a_reliable_connection),
		cmocka_unit_test(blocks_of_two_receive_queues_arrive_whole),
	};
	const char *why = sl_xdp_unavailable();

	if (!why) {
		far_fd = network_of_its_own();
		near_fd = network_of_its_own();
		if (far_fd < 0 || near_fd < 0)
			why = "no network namespace is allowed here";
	}
	if (why) {
		printf("1..0 # SKIP %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
