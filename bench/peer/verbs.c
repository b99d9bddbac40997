/* verbs.c - RDMA WRITEs through libibverbs, on whichever device has the address: Soft-RoCE, or
 * an RDMA NIC. A line is a message of its own, as a front end sends them; every 64th carries an
 * immediate, so that the receiver hears of it. Each line begins with its number: the receiver looks
 * at all of them and counts what is not there, which a device does not tell of UC. And the time
 * that one line takes until its completion is seen. */
#include <arpa/inet.h>
#include <sys/wait.h>

#include "bench/peer/verbs_end.h"

#define USAGE BENCH_PEER_USAGE("peer_verbs", "uc-write|rc-write|uc-latency|rc-latency")

enum {
	BLOCK = 64,	 /* lines to a completion at the receiver */
	BATCH = 16,	 /* lines to a call of ibv_post_send and to a completion at the sender */
	DEPTH = 128,	 /* lines in the send queue; perftest's choice */
	BLOCKS = 1024,	 /* receives that are kept posted */
	PATIENCE_S = 10, /* nothing for this long: what is missing was lost; emulation is slow */
	FIRST = 50,	 /* latencies that are not counted */
	GAP_NS = 10000,	 /* between lines whose latency is measured */
};

struct peer {
	struct end end;
	uint64_t lines;	  /* that its memory holds */
	uint64_t targets; /* that the ring holds */
	double seconds;
	bool singly;
};

static uint8_t *line_at(const struct peer *peer, uint64_t number)
{
	return peer->end.memory + number % peer->lines * peer->end.bytes;
}

static uint64_t lines_in(const struct peer *peer, uint64_t bytes)
{
	return bytes / peer->end.bytes / BLOCK * BLOCK;
}

static void open_side(struct peer *peer, unsigned side, uint64_t memory_bytes)
{
	struct end *end = &peer->end;

	end->side = side;
	end->sends = side ? DEPTH : 1;
	end->receives = side ? 1 : BLOCKS;
	peer->lines = lines_in(peer, memory_bytes);
	open_end(end, memory_bytes);
	end->meeting->qpn[side] = end->qp->qp_num;
}

/* ---- sending ---- */

struct batch {
	struct ibv_send_wr wr[BATCH];
	struct ibv_sge sge[BATCH];
};

static void aim(struct peer *peer, struct batch *batch, unsigned i, uint64_t number, bool event)
{
	const struct end *end = &peer->end;
	uint8_t *line = line_at(peer, number);

	memcpy(line, &number, sizeof(number));
	batch->sge[i] = (struct ibv_sge){(uintptr_t)line, (uint32_t)end->bytes, end->mr->lkey};
	batch->wr[i] = (struct ibv_send_wr){
		.sg_list = &batch->sge[i],
		.num_sge = 1,
		.opcode = event ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
		.imm_data = htonl((uint32_t)(number / BLOCK)),
		.wr.rdma = {.remote_addr = end->meeting->va + number % peer->targets * end->bytes,
			    .rkey = end->meeting->rkey},
	};
}

static void post(struct end *end, struct batch *batch, unsigned n)
{
	struct ibv_send_wr *bad;

	for (unsigned i = 0; i + 1 < n; i++)
		batch->wr[i].next = &batch->wr[i + 1];
	batch->wr[n - 1].send_flags = IBV_SEND_SIGNALED;
	errno = ibv_post_send(end->qp, batch->wr, &bad);
	require(!errno, "ibv_post_send");
}

static bool stopped(const struct peer *peer)
{
	return atomic_load_explicit(&peer->end.meeting->stop, memory_order_acquire);
}

static uint64_t seen(const struct peer *peer)
{
	return atomic_load_explicit(&peer->end.meeting->blocks, memory_order_acquire);
}

/* The receiver has at least half of its receives posted, and has looked at what is overwritten. */
static void await_room(const struct peer *peer, uint64_t sent)
{
	uint64_t blocks = peer->targets / BLOCK < BLOCKS ? peer->targets / BLOCK : BLOCKS;

	while (sent / BLOCK >= seen(peer) + blocks / 2 && !stopped(peer))
		sched_yield();
}

/* Whole blocks, until the receiver has had enough. */
static __attribute__((noinline)) void bench_send_all(struct peer *peer)
{
	static struct batch batch;
	uint64_t sent = 0, out = 0;
	struct ibv_wc wc[DEPTH / BATCH];

	while (!stopped(peer) || sent % BLOCK) {
		await_room(peer, sent);
		for (unsigned i = 0; i < BATCH; i++, sent++)
			aim(peer, &batch, i, sent, sent % BLOCK == BLOCK - 1);
		post(&peer->end, &batch, BATCH);
		out += BATCH;
		while (out > DEPTH - BATCH)
			out -= BATCH * await(&peer->end, wc, DEPTH / BATCH, 1000);
	}
	while (out)
		out -= BATCH * await(&peer->end, wc, DEPTH / BATCH, 1000);
	atomic_store(&peer->end.meeting->sent, sent + 1);
}

/* It yields rather than spins: what Soft-RoCE does for it, the kernel may want to do here. */
static void send_singly(struct peer *peer)
{
	static struct batch batch;
	struct ibv_wc wc[1];

	for (uint64_t sent = 0; !stopped(peer); sent++) {
		uint64_t until = bench_now_ns() + GAP_NS;

		while (bench_now_ns() < until)
			continue;
		aim(peer, &batch, 0, sent, true);
		atomic_store(&peer->end.meeting->stamp_ns, bench_now_ns());
		post(&peer->end, &batch, 1);
		while (!take(&peer->end, wc, 1) && !stopped(peer))
			sched_yield();
		while (seen(peer) <= sent && !stopped(peer))
			sched_yield();
	}
}

static pid_t fork_sender(struct peer *peer)
{
	pid_t child = fork();

	if (child < 0)
		bench_fail("fork");
	if (child)
		return child;
	signal(SIGCHLD, SIG_DFL);
	bench_be_sender();
	bench_pin("BENCH_SENDER_CORE");
	open_side(peer, 1, BENCH_SOURCE);
	meet(&peer->end, 1);
	connect_queue(&peer->end);
	meet(&peer->end, 2);
	if (peer->singly)
		send_singly(peer);
	else
		bench_send_all(peer);
	_exit(0);
}

/* ---- receiving ---- */

static void post_receives(struct end *end, unsigned n)
{
	struct ibv_recv_wr empty = {0}, *bad;

	for (unsigned i = 0; i < n; i++) {
		errno = ibv_post_recv(end->qp, &empty, &bad);
		require(!errno, "ibv_post_recv");
	}
}

/* Lines of these blocks that are not there. */
static uint64_t absent(const struct peer *peer, uint64_t first, uint64_t blocks)
{
	uint64_t lost = 0;

	for (uint64_t number = first * BLOCK; number < (first + blocks) * BLOCK; number++)
		lost += memcmp(line_at(peer, number), &number, sizeof(number)) != 0;
	return lost;
}

struct receipt {
	uint64_t blocks, lost; /* seen; lines of them that are not there */
};

/* The blocks that completions tell of, and those before whose own were lost. */
static unsigned look(struct peer *peer, struct receipt *r)
{
	struct end *end = &peer->end;
	struct ibv_wc wc[BATCH];
	unsigned n = await(end, wc, BATCH, 1000 * PATIENCE_S);

	for (unsigned i = 0; i < n; i++) {
		uint32_t ahead = ntohl(wc[i].imm_data) - (uint32_t)r->blocks;

		r->lost += absent(peer, r->blocks, (uint64_t)ahead + 1);
		r->blocks += (uint64_t)ahead + 1;
	}
	post_receives(end, n);
	atomic_store_explicit(&end->meeting->blocks, r->blocks, memory_order_release);
	return n;
}

static _Noreturn void give_up(void)
{
	fprintf(stderr, "nothing arrived for %d seconds\n", PATIENCE_S);
	exit(1);
}

/* Until the time is over, and on until all that was sent is here. Blocks in *timed_s. */
static __attribute__((noinline)) uint64_t bench_receive_all(struct peer *peer, double *timed_s,
							    struct receipt *r)
{
	double start = bench_now_s(), warm = peer->seconds / 4, now;
	uint64_t first = 0, timed = 0, sent;
	unsigned n;

	do {
		n = look(peer, r);
		now = bench_now_s();
		if (!first && now - start > warm) {
			first = r->blocks;
			start = now;
		} else if (first && !timed && r->blocks > first && now - start > peer->seconds) {
			timed = r->blocks - first;
			*timed_s = now - start;
			atomic_store(&peer->end.meeting->stop, 1);
		}
		sent = atomic_load(&peer->end.meeting->sent);
		if (!n && !timed)
			give_up();
	} while (n ? !sent || r->blocks < (sent - 1) / BLOCK : !sent);
	r->lost += sent - 1 - r->blocks * BLOCK;
	return timed;
}

static void receive_singly(struct peer *peer)
{
	struct meeting *meeting = peer->end.meeting;
	uint32_t *time_ns = bench_memory(BENCH_TIMES * sizeof(*time_ns), MAP_PRIVATE);
	double start = bench_now_s(), last = start, now = start;
	uint64_t count = 0, n = 0;
	struct ibv_wc wc[1];

	for (; now - start < 1.25 * peer->seconds || !n; now = bench_now_s()) {
		if (now - last > PATIENCE_S)
			give_up();
		if (!take(&peer->end, wc, 1))
			continue;
		last = now;
		if (count++ >= FIRST && n < BENCH_TIMES)
			time_ns[n++] = (uint32_t)(bench_now_ns() - atomic_load(&meeting->stamp_ns));
		post_receives(&peer->end, 1);
		atomic_store_explicit(&meeting->blocks, count, memory_order_release);
	}
	atomic_store(&meeting->stop, 1);
	bench_print_times(time_ns, n);
}

/* A sender that failed has said why; nobody waits for it then. */
static void lose_sender(int number)
{
	siginfo_t info = {0};

	(void)number;
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_status)
		_exit(1);
}

static void parse(struct peer *peer, int argc, char **argv)
{
	if (argc != 4 || (strncmp(argv[1], "uc-", 3) != 0 && strncmp(argv[1], "rc-", 3) != 0) ||
	    (strcmp(argv[1] + 3, "write") != 0 && strcmp(argv[1] + 3, "latency") != 0))
		bench_usage(USAGE);
	peer->end.reliable = argv[1][0] == 'r';
	peer->singly = !strcmp(argv[1] + 3, "latency");
	peer->end.bytes = bench_number(argv[2], USAGE);
	peer->seconds = bench_seconds(argv[3], USAGE);
	if (peer->end.bytes < sizeof(uint64_t))
		bench_usage(USAGE);
}

int main(int argc, char **argv)
{
	struct peer peer = {0};
	struct meeting *meeting = bench_memory(4096, MAP_SHARED);
	struct receipt receipt = {0};
	uint64_t ring_bytes = bench_env("BENCH_RING", 512 << 20), timed = 0;
	double seconds = 0;
	pid_t child;
	int status;

	parse(&peer, argc, argv);
	memset(meeting, 0, sizeof(*meeting));
	peer.end.meeting = meeting;
	peer.targets = lines_in(&peer, ring_bytes);
	signal(SIGCHLD, lose_sender);
	child = fork_sender(&peer);
	bench_pin("BENCH_RECEIVER_CORE");
	open_side(&peer, 0, ring_bytes);
	post_receives(&peer.end, BLOCKS);
	meeting->va = (uintptr_t)peer.end.memory;
	meeting->rkey = peer.end.mr->rkey;
	meet(&peer.end, 1);
	connect_queue(&peer.end);
	meet(&peer.end, 2);
	if (peer.singly)
		receive_singly(&peer);
	else
		timed = bench_receive_all(&peer, &seconds, &receipt);
	if (waitpid(child, &status, 0) < 0 || status)
		bench_fail("the sender failed");
	if (!peer.singly)
		bench_print_rate(timed * BLOCK, peer.end.bytes, seconds, receipt.lost);
	return 0;
}
