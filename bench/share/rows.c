/* rows.c - which rows `sluice bench share` has, and what they are compared with.
 *
 *   sluice/local/...        a share of this host
 *   sluice/rdma/...         rdma:// over the user-space endpoint on loopback
 *   sluice/verbs/...        rdma:// with both ends on an RDMA NIC of this host
 *   .../fetch/BYTES         the newest element again and again; .../follow/BYTES: every element
 *   .../ping, /message, /view, /answer, /crowd: latencies, docs/reference/benchmarks.md
 *   PEER/HOW/BYTES          the same bytes by other means */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "bench/share/share.h"

#define KiB (UINT64_C(1) << 10)
#define MiB (UINT64_C(1) << 20)

static const struct {
	uint64_t bytes;
	bool swept; /* a row only with --sweep */
} sizes[] = {
	{1, false},	    {16, true},	  {256, true},	     {4 * KiB, false},	 {64 * KiB, true},
	{256 * KiB, false}, {MiB, false}, {16 * MiB, false}, {256 * MiB, false}, {1024 * MiB, true},
};

static const struct {
	const char *name, *program, *mode;
} peers[] = {
	{"memcpy/fetch", "peer_memcpy", "fetch"},
	{"zeromq/reqrep", "peer_zmq_share", "reqrep"},
	{"zeromq/reqrep-ipc", "peer_zmq_share", "reqrep-ipc"},
	{"ucx/tcp-get", "peer_ucx", "tcp-get"},
	{"ucx/shm-get", "peer_ucx", "shm-get"},
};

static const struct {
	const char *name;
	struct sl_bench_share what;
} latencies[] = {
	{"sluice/local/ping", {.what = SL_BENCH_PING, .bytes = 64}},
	{"sluice/rdma/ping", {.what = SL_BENCH_PING, .remote = true, .bytes = 64}},
	{"sluice/local/message/64", {.what = SL_BENCH_MESSAGE, .bytes = 64}},
	{"sluice/rdma/message/64", {.what = SL_BENCH_MESSAGE, .remote = true, .bytes = 64}},
	{"sluice/local/view", {.what = SL_BENCH_VIEW, .bytes = SL_BENCH_CAMERA}},
	{"sluice/local/view/spin",
	 {.what = SL_BENCH_VIEW, .spins = true, .bytes = SL_BENCH_CAMERA}},
	{"sluice/local/view/spin/look",
	 {.what = SL_BENCH_VIEW, .spins = true, .looks = true, .bytes = SL_BENCH_CAMERA}},
	{"sluice/local/view/python/look",
	 {.what = SL_BENCH_VIEW, .python = true, .looks = true, .bytes = SL_BENCH_CAMERA}},
	{"sluice/local/view/python",
	 {.what = SL_BENCH_VIEW, .python = true, .bytes = SL_BENCH_CAMERA}},
	{"sluice/rdma/view", {.what = SL_BENCH_VIEW, .remote = true, .bytes = SL_BENCH_CAMERA}},
	{"sluice/verbs/view",
	 {.what = SL_BENCH_VIEW, .remote = true, .nic = true, .bytes = SL_BENCH_CAMERA}},
	{"sluice/local/answer", {.what = SL_BENCH_ANSWER, .bytes = SL_BENCH_CAMERA}},
	{"sluice/rdma/answer", {.what = SL_BENCH_ANSWER, .remote = true, .bytes = SL_BENCH_CAMERA}},
	{"sluice/verbs/answer",
	 {.what = SL_BENCH_ANSWER, .remote = true, .nic = true, .bytes = SL_BENCH_CAMERA}},
	{"sluice/local/crowd/0", {.what = SL_BENCH_CROWD, .bytes = SL_BENCH_CAMERA}},
	{"sluice/local/crowd/10",
	 {.what = SL_BENCH_CROWD, .followers = 10, .bytes = SL_BENCH_CAMERA}},
};

static const struct sl_bench_share_limit limits[] = {
	{"sluice/local/view/python", SL_BENCH_P50, 50},
	{"sluice/rdma/fetch/262144", SL_BENCH_P99, 200},
};

static const struct sl_bench_ratio comparisons[] = {
	{"sluice/local/fetch/1048576", "memcpy/fetch/1048576", 0.95, {0}},
	{"sluice/local/fetch/16777216", "memcpy/fetch/16777216", 0.95, {0}},
	{"sluice/local/fetch/268435456", "memcpy/fetch/268435456", 0.95, {0}},
	{"sluice/local/fetch/1073741824", "memcpy/fetch/1073741824", 0.95, {0}},
	{"sluice/local/fetch/262144", "zeromq/reqrep-ipc/262144", 0, {0}},
	{"sluice/local/fetch/262144", "ucx/shm-get/262144", 0, {0}},
	{"sluice/local/follow/262144", "zeromq/pubsub-ipc/262144", 0, {0}},
	{"sluice/rdma/fetch/262144", "zeromq/reqrep/262144", 1.5, {0}},
	{"sluice/rdma/fetch/1048576", "zeromq/reqrep/1048576", 0, {0}},
	{"sluice/rdma/fetch/262144", "ucx/tcp-get/262144", 0, {0}},
	{"sluice/rdma/follow/262144", "zeromq/pubsub/262144", 0, {0}},
};

enum { LOCAL, RDMA, VERBS, WAYS };

enum {
	SIZES = sizeof(sizes) / sizeof(sizes[0]),
	PEERS = sizeof(peers) / sizeof(peers[0]),
	LATENCIES = sizeof(latencies) / sizeof(latencies[0]),
	ROWS = SIZES * (PEERS + WAYS) + LATENCIES + 5,
};

static struct sl_bench_share fetches[WAYS * (SIZES + 1)];
static unsigned fetched;
static const char *no_nic; /* NULL: there is an RDMA NIC */

static const struct {
	const char *name;
	bool remote, nic;
} ways[WAYS] = {[LOCAL] = {"local", false, false},
		[RDMA] = {"rdma", true, false},
		[VERBS] = {"verbs", true, true}};

const struct sl_bench_ratio *sl_bench_share_comparison(unsigned i)
{
	return i < sizeof(comparisons) / sizeof(comparisons[0]) ? &comparisons[i] : NULL;
}

const struct sl_bench_share_limit *sl_bench_share_limit(const char *row)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (!strcmp(limits[i].row, row))
			return &limits[i];
	return NULL;
}

static void add(struct sl_bench *bench, const struct sl_bench_row *row)
{
	if (bench->o.only[0] && fnmatch(bench->o.only, row->name, 0) != 0)
		return;
	if (bench->o.compared && !sl_bench_compared(row->name))
		return;
	bench->row[bench->rows++] = *row;
}

static void add_ours(struct sl_bench *bench, enum sl_bench_share_what what, unsigned way,
		     uint64_t bytes)
{
	struct sl_bench_share *share = &fetches[fetched++];
	struct sl_bench_row row = {.share = share, .why = ways[way].nic ? no_nic : NULL};

	*share = (struct sl_bench_share){
		.what = what, .remote = ways[way].remote, .nic = ways[way].nic, .bytes = bytes};
	snprintf(row.name, sizeof(row.name), "sluice/%s/%s/%llu", ways[way].name,
		 what == SL_BENCH_FETCH ? "fetch" : "follow", (unsigned long long)bytes);
	add(bench, &row);
}

static void add_peer(struct sl_bench *bench, const char *name, const char *program,
		     const char *mode, uint64_t bytes)
{
	struct sl_bench_row row = {.program = program, .mode = mode, .bytes = bytes};

	snprintf(row.name, sizeof(row.name), "%s/%llu", name, (unsigned long long)bytes);
	add(bench, &row);
}

/* What is compared lies side by side, so that both see the same machine. */
int sl_bench_share_rows(struct sl_bench *bench)
{
	struct sl_bench_share_nic nic;

	bench->row = calloc(ROWS + 1, sizeof(*bench->row));
	if (!bench->row)
		return -ENOMEM;
	no_nic = sl_bench_share_nic(bench, &nic);
	for (unsigned i = 0; i < SIZES; i++) {
		if (sizes[i].swept && !bench->o.sweep)
			continue;
		add_ours(bench, SL_BENCH_FETCH, LOCAL, sizes[i].bytes);
		add_peer(bench, peers[0].name, peers[0].program, peers[0].mode, sizes[i].bytes);
		add_ours(bench, SL_BENCH_FETCH, RDMA, sizes[i].bytes);
		add_ours(bench, SL_BENCH_FETCH, VERBS, sizes[i].bytes);
		for (unsigned p = 1; p < PEERS; p++)
			add_peer(bench, peers[p].name, peers[p].program, peers[p].mode,
				 sizes[i].bytes);
	}
	add_ours(bench, SL_BENCH_FOLLOW, LOCAL, SL_BENCH_CAMERA);
	add_peer(bench, "zeromq/pubsub-ipc", "peer_zmq_share", "pubsub-ipc", SL_BENCH_CAMERA);
	add_ours(bench, SL_BENCH_FOLLOW, RDMA, SL_BENCH_CAMERA);
	add_peer(bench, "zeromq/pubsub", "peer_zmq_share", "pubsub", SL_BENCH_CAMERA);
	add_ours(bench, SL_BENCH_FOLLOW, VERBS, SL_BENCH_CAMERA);
	for (unsigned i = 0; i < LATENCIES; i++) {
		struct sl_bench_row row = {.share = &latencies[i].what,
					   .latency = true,
					   .why = latencies[i].what.nic ? no_nic : NULL};

		snprintf(row.name, sizeof(row.name), "%s", latencies[i].name);
		add(bench, &row);
	}
	return 0;
}
