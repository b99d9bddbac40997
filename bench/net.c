/* net.c - the network of the /cut rows: two namespaces and a veth pair between them, with
 * every offload that would let a packet pass uncut switched off on both ends. Namespaces are held
 * by processes that end with ours, and go with them. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"

/* A process in a network namespace of its own; 0: not allowed. */
static pid_t hold(void)
{
	int ready[2];
	char good = 0;
	pid_t child;

	if (pipe(ready) < 0)
		return 0;
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		good = unshare(CLONE_NEWNET) == 0;
		if (write(ready[1], &good, 1) != 1 || !good)
			_exit(1);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (child > 0 && (read(ready[0], &good, 1) != 1 || !good)) {
		waitpid(child, NULL, 0);
		child = 0;
	}
	close(ready[0]);
	return child > 0 ? child : 0;
}

static bool shell(const char *command)
{
	char quiet[512];

	snprintf(quiet, sizeof(quiet), "{ %s; } >/dev/null 2>&1", command);
	return system(quiet) == 0;
}

static bool in_side(const struct sl_bench *bench, unsigned side, const char *command)
{
	char text[400];

	snprintf(text, sizeof(text), "nsenter --net=/proc/%d/ns/net sh -c '%s'",
		 (int)bench->holder[side], command);
	return shell(text);
}

static const char *make_pair(struct sl_bench *bench)
{
	char text[300];

	snprintf(text, sizeof(text),
		 "ip link add veth0 netns %d type veth peer name veth0 netns %d",
		 (int)bench->holder[0], (int)bench->holder[1]);
	if (!shell(text))
		return "a veth pair could not be made (iproute2 and the kernel's veth are needed)";
	for (unsigned side = 0; side < 2; side++) {
		snprintf(text, sizeof(text),
			 "ip link set lo up && ip addr add 10.77.0.%u/24 dev veth0 && "
			 "ip link set veth0 mtu 9000 up",
			 1 + side);
		if (!in_side(bench, side, text))
			return "the veth pair could not be configured (ip, nsenter)";
		if (!in_side(bench, side,
			     "ethtool -K veth0 tso off gso off gro off tx-udp-segmentation off"))
			return "offloads could not be switched off (is ethtool installed?)";
	}
	return NULL;
}

void sl_bench_net_open(struct sl_bench *bench)
{
	const char *why = NULL;

	for (unsigned side = 0; side < 2 && !why; side++) {
		bench->holder[side] = hold();
		if (!bench->holder[side])
			why = "network namespaces need root";
	}
	if (!why)
		why = make_pair(bench);
	if (!why)
		return;
	sl_bench_net_close(bench);
	snprintf(bench->no_cut, sizeof(bench->no_cut), "%s", why);
}

void sl_bench_net_close(struct sl_bench *bench)
{
	for (unsigned side = 0; side < 2; side++) {
		if (bench->holder[side]) {
			kill(bench->holder[side], SIGKILL);
			waitpid(bench->holder[side], NULL, 0);
		}
		bench->holder[side] = 0;
	}
}
