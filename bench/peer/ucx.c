/* ucx.c - UCX over TCP: one-sided puts into a ring in another process, the nearest relative of
 * what Sluice does, by the library that HPC uses for it. Timed by the sender, from flush to flush:
 * what counts has arrived. tcp-get and shm-get: one-sided gets of the same memory of another
 * process, one at a time, over TCP or through shared memory, as followers of a share fetch it. */
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>

#include "bench/peer/peer.h"

#define USAGE BENCH_PEER_USAGE("peer_ucx", "put|tcp-get|shm-get")

enum { OUTSTANDING = 64, ADDRESS_MAX = 4096 };

struct place { /* of the ring, as the sender must know it */
	uint64_t va, address_bytes, rkey_bytes;
	uint8_t address[ADDRESS_MAX], rkey[ADDRESS_MAX];
};

static void check(ucs_status_t status, const char *what)
{
	if (status == UCS_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
	exit(1);
}

static ucp_worker_h open_worker(ucp_context_h *context)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_RMA};
	ucp_worker_params_t worker_params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
					     .thread_mode = UCS_THREAD_MODE_SINGLE};
	ucp_config_t *config;
	ucp_worker_h worker;

	check(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
	check(ucp_init(&params, config, context), "ucp_init");
	ucp_config_release(config);
	check(ucp_worker_create(*context, &worker_params, &worker), "ucp_worker_create");
	return worker;
}

static void await(ucp_worker_h worker, ucs_status_ptr_t request, const char *what)
{
	if (UCS_PTR_IS_ERR(request))
		check(UCS_PTR_STATUS(request), what);
	if (!UCS_PTR_IS_PTR(request))
		return;
	while (ucp_request_check_status(request) == UCS_INPROGRESS)
		ucp_worker_progress(worker);
	check(ucp_request_check_status(request), what);
	ucp_request_free(request);
}

static void flush(ucp_worker_h worker, ucp_ep_h ep)
{
	ucp_request_param_t param = {0};

	await(worker, ucp_ep_flush_nbx(ep, &param), "ucp_ep_flush");
}

/* Puts for so long, then all of them at their place. How many. */
static __attribute__((noinline)) uint64_t bench_send_all(ucp_worker_h worker, ucp_ep_h ep,
							 const struct place *place, ucp_rkey_h rkey,
							 size_t bytes, double seconds,
							 double *timed_s)
{
	uint64_t ring = bench_env("BENCH_RING", 512 << 20), n = 0;
	const uint8_t *source = bench_memory(BENCH_SOURCE, MAP_PRIVATE);
	ucs_status_ptr_t request[OUTSTANDING] = {0};
	double start = bench_now_s();

	while (bench_now_s() - start < seconds) {
		ucp_request_param_t param = {0};

		await(worker, request[n % OUTSTANDING], "ucp_put");
		request[n % OUTSTANDING] =
			ucp_put_nbx(ep, source + n % (BENCH_SOURCE / bytes) * bytes, bytes,
				    place->va + n % (ring / bytes) * bytes, rkey, &param);
		n++;
	}
	for (unsigned i = 0; i < OUTSTANDING; i++)
		await(worker, request[i], "ucp_put");
	flush(worker, ep);
	*timed_s = bench_now_s() - start;
	return n;
}

static void send_all(int fd, size_t bytes, double seconds, struct bench_shared *shared)
{
	ucp_context_h context;
	ucp_worker_h worker = open_worker(&context);
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	struct place place;
	ucp_rkey_h rkey;
	double timed;
	uint64_t n;
	ucp_ep_h ep;

	if (recv(fd, &place, sizeof(place), MSG_WAITALL) != sizeof(place))
		bench_fail("the receiver's address");
	params.address = (const ucp_address_t *)place.address;
	check(ucp_ep_create(worker, &params, &ep), "ucp_ep_create");
	check(ucp_ep_rkey_unpack(ep, place.rkey, &rkey), "ucp_ep_rkey_unpack");
	bench_send_all(worker, ep, &place, rkey, bytes, seconds / 4, &timed); /* warm */
	n = bench_send_all(worker, ep, &place, rkey, bytes, seconds, &timed);
	bench_print_rate(n, bytes, timed, 0);
	fflush(stdout);
	atomic_store(&shared->stop, 1);
}

struct get {
	ucp_worker_h worker;
	ucp_ep_h ep;
	ucp_rkey_h rkey;
	uint64_t va;
	uint8_t *to;
	size_t bytes;
};

static void bench_get(void *arg)
{
	const struct get *g = arg;
	ucp_request_param_t param = {0};

	await(g->worker, ucp_get_nbx(g->ep, g->to, g->bytes, g->va, g->rkey, &param), "ucp_get");
}

static void get_all(int fd, size_t bytes, double seconds, struct bench_shared *shared)
{
	ucp_context_h context;
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	struct get g = {.worker = open_worker(&context), .bytes = bytes};
	struct place place;

	if (recv(fd, &place, sizeof(place), MSG_WAITALL) != sizeof(place))
		bench_fail("the other side's address");
	params.address = (const ucp_address_t *)place.address;
	check(ucp_ep_create(g.worker, &params, &g.ep), "ucp_ep_create");
	check(ucp_ep_rkey_unpack(g.ep, place.rkey, &g.rkey), "ucp_ep_rkey_unpack");
	g.va = place.va;
	g.to = bench_memory(bytes, MAP_PRIVATE);
	bench_each(bench_get, &g, bytes, seconds);
	fflush(stdout);
	atomic_store(&shared->stop, 1);
}

static void describe(ucp_context_h context, ucp_worker_h worker, uint64_t ring, struct place *place)
{
	void *memory = bench_memory(ring, MAP_PRIVATE), *rkey;
	ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
						     UCP_MEM_MAP_PARAM_FIELD_LENGTH,
				       .address = memory,
				       .length = ring};
	ucp_address_t *address;
	size_t address_bytes, rkey_bytes;
	ucp_mem_h mapped;

	check(ucp_mem_map(context, &params, &mapped), "ucp_mem_map");
	check(ucp_rkey_pack(context, mapped, &rkey, &rkey_bytes), "ucp_rkey_pack");
	check(ucp_worker_get_address(worker, &address, &address_bytes), "ucp_worker_get_address");
	if (address_bytes > ADDRESS_MAX || rkey_bytes > ADDRESS_MAX)
		bench_fail("a longer address than expected");
	place->va = (uint64_t)(uintptr_t)memory;
	memcpy(place->address, address, address_bytes);
	memcpy(place->rkey, rkey, rkey_bytes);
}

/* -1: not one of these. */
static int gets(const char *mode)
{
	static const char *const modes[] = {"put", "tcp-get", "shm-get"};

	for (int i = 0; i < 3; i++)
		if (!strcmp(mode, modes[i]))
			return i;
	return -1;
}

int main(int argc, char **argv)
{
	struct bench_shared *shared = bench_memory(4096, MAP_SHARED);
	static struct place place;
	ucp_context_h context;
	ucp_worker_h worker;
	int pair[2], status;
	pid_t child;
	int get;

	if (argc != 4 || (get = gets(argv[1])) < 0)
		bench_usage(USAGE);
	memset(shared, 0, sizeof(*shared));
	setenv("UCX_TLS", get == 2 ? "shm" : "tcp", 1);
	if (get != 2)
		setenv("UCX_NET_DEVICES", "lo", 1);
	setenv("UCX_LOG_LEVEL", "error", 1);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || (child = fork()) < 0)
		bench_fail("fork");
	if (!child) {
		bench_be_sender();
		bench_pin("BENCH_SENDER_CORE");
		(get ? get_all : send_all)(pair[1], bench_number(argv[2], USAGE),
					   bench_seconds(argv[3], USAGE), shared);
		_exit(0);
	}
	bench_pin("BENCH_RECEIVER_CORE");
	worker = open_worker(&context);
	describe(context, worker,
		 get ? bench_number(argv[2], USAGE) : bench_env("BENCH_RING", 512 << 20), &place);
	if (write(pair[0], &place, sizeof(place)) != sizeof(place))
		bench_fail("socketpair");
	while (!atomic_load(&shared->stop) && waitpid(child, &status, WNOHANG) == 0)
		for (unsigned i = 0; i < 1000; i++)
			ucp_worker_progress(worker);
	return atomic_load(&shared->stop) ? 0 : 1;
}
