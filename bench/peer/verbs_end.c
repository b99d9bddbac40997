/* verbs_end.c - a queue pair on the device that has an address, and its completions. */
#include "bench/peer/verbs_end.h"

#include <arpa/inet.h>
#include <poll.h>

enum {
	PORT = 1,
	GIDS = 64,
	TIMEOUT = 18, /* of RC: 4.096 us * 2^18; emulated machines may be silent for long */
	RETRIES = 7,
	SPINS = 200, /* looks at a completion queue before it sleeps */
};

static const char *address_of(unsigned side)
{
	const char *text = side ? getenv("BENCH_SENDER") : NULL;

	return text ? text : bench_receiver();
}

static union ibv_gid gid_of(unsigned side)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (inet_pton(AF_INET, address_of(side), gid.raw + 12) != 1 &&
	    inet_pton(AF_INET6, address_of(side), gid.raw) != 1)
		bench_usage("BENCH_RECEIVER and BENCH_SENDER are IP addresses");
	return gid;
}

static int find_gid(struct ibv_context *device, const union ibv_gid *gid)
{
	struct ibv_gid_entry entry;

	for (uint32_t i = 0; i < GIDS; i++)
		if (!ibv_query_gid_ex(device, PORT, i, &entry, 0) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(&entry.gid, gid, sizeof(*gid)))
			return (int)i;
	return -1;
}

static void open_device(struct end *end)
{
	union ibv_gid gid = gid_of(end->side);
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (unsigned i = 0; list && list[i] && !end->device; i++) {
		struct ibv_context *device = ibv_open_device(list[i]);

		end->gid_index = device ? find_gid(device, &gid) : -1;
		if (end->gid_index >= 0)
			end->device = device;
		else if (device)
			ibv_close_device(device);
	}
	if (list)
		ibv_free_device_list(list);
	if (!end->device) {
		fprintf(stderr, "no RDMA device has the address %s\n", address_of(end->side));
		exit(1);
	}
}

void require(bool good, const char *what)
{
	if (!good)
		bench_fail(what);
}

static void open_queue(struct end *end)
{
	struct ibv_qp_init_attr options = {
		.qp_type = end->reliable ? IBV_QPT_RC : IBV_QPT_UC,
		.cap = {.max_send_wr = end->sends,
			.max_recv_wr = end->receives,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = PORT,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	end->channel = ibv_create_comp_channel(end->device);
	require(end->channel, "ibv_create_comp_channel");
	end->cq = ibv_create_cq(end->device, (int)(end->sends + end->receives), NULL, end->channel,
				0);
	require(end->cq, "ibv_create_cq");
	options.send_cq = options.recv_cq = end->cq;
	end->qp = ibv_create_qp(end->domain, &options);
	require(end->qp, "ibv_create_qp");
	require(!ibv_modify_qp(end->qp, &init,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS),
		"to state INIT");
}

void open_end(struct end *end, uint64_t memory_bytes)
{
	open_device(end);
	/* On one core whoever is waited for has none. */
	end->spins = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? SPINS : 1;
	end->domain = ibv_alloc_pd(end->device);
	require(end->domain, "ibv_alloc_pd");
	end->memory = bench_memory(memory_bytes, MAP_PRIVATE);
	end->mr = ibv_reg_mr(end->domain, end->memory, memory_bytes,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	require(end->mr, "ibv_reg_mr");
	open_queue(end);
}

static enum ibv_mtu mtu_of(const struct end *end)
{
	struct ibv_port_attr port;

	require(!ibv_query_port(end->device, PORT, &port), "ibv_query_port");
	if (128u << port.active_mtu < end->bytes) {
		fprintf(stderr, "%s carries %u bytes in a packet at most\n",
			ibv_get_device_name(end->device->device), 128u << port.active_mtu);
		exit(1);
	}
	return port.active_mtu;
}

void connect_queue(struct end *end)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_of(end),
		.dest_qp_num = end->meeting->qpn[!end->side],
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = PORT,
			    .grh = {.dgid = gid_of(!end->side),
				    .sgid_index = (uint8_t)end->gid_index,
				    .hop_limit = 64}},
	};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = TIMEOUT,
				  .retry_cnt = RETRIES,
				  .rnr_retry = RETRIES,
				  .max_rd_atomic = 1};
	int to_rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int to_rts = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (end->reliable) {
		to_rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		to_rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			  IBV_QP_MAX_QP_RD_ATOMIC;
	}
	require(!ibv_modify_qp(end->qp, &rtr, to_rtr), "to state RTR");
	require(!ibv_modify_qp(end->qp, &rts, to_rts), "to state RTS");
}

void meet(struct end *end, uint32_t step)
{
	atomic_store(&end->meeting->ready[end->side], step);
	while (atomic_load(&end->meeting->ready[!end->side]) < step)
		sched_yield();
}

/* ---- completions ---- */

unsigned take(struct end *end, struct ibv_wc *wc, unsigned most)
{
	int n = ibv_poll_cq(end->cq, (int)most, wc);

	require(n >= 0, "ibv_poll_cq");
	for (int i = 0; i < n; i++)
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "a completion: %s\n", ibv_wc_status_str(wc[i].status));
			exit(1);
		}
	return (unsigned)n;
}

/* Sleeps until the queue says that there is something; it may have been taken already. */
static bool sleep_for(struct end *end, int ms)
{
	struct pollfd fd = {.fd = end->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, ms) <= 0)
		return false;
	require(!ibv_get_cq_event(end->channel, &cq, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	return true;
}

unsigned await(struct end *end, struct ibv_wc *wc, unsigned most, int ms)
{
	unsigned n = 0;
	bool more = true;

	for (unsigned i = 0; i < end->spins && !n; i++)
		n = take(end, wc, most);
	while (!n && more) {
		require(!ibv_req_notify_cq(end->cq, 0), "ibv_req_notify_cq");
		n = take(end, wc, most); /* what came before that */
		if (!n)
			more = sleep_for(end, ms);
	}
	return n ? n : take(end, wc, most);
}
