/* conformance_test.c - what every link must do, over AF_XDP on loopback, in a network of its
 * own: nobody else's packets pass the program. */
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "lib/link_conformance.h"
#include "net/xdp/xdp.h"

extern const struct sl_link sl_link_xdp;

/* Why not; NULL: it is there. */
static const char *own_network(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd;

	if (sl_xdp_unavailable())
		return sl_xdp_unavailable();
	if (unshare(CLONE_NEWNET))
		return "no network namespace is allowed here";
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		return "no loopback interface in a network namespace";
	close(fd);
	return NULL;
}

int main(void)
{
	static const struct sl_link *const links[] = {&sl_link_xdp};
	const char *why = own_network();

	if (why) {
		printf("1..0 # SKIP %s\n", why);
		return 0;
	}
	return conform(links, 1);
}
