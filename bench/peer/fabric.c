/* fabric.c - libfabric over TCP: one-sided writes into a ring in another process. Timed by the
 * sender until the last one is delivered, and so all of them: TCP keeps the order. */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "bench/peer/peer.h"

#define USAGE BENCH_PEER_USAGE("peer_fabric", "write")

enum { OUTSTANDING = 64, ADDRESS_MAX = 512 };

struct place { /* of the ring, as the sender must know it */
	uint64_t va, key;
	uint8_t address[ADDRESS_MAX];
};

struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

static void check(long err, const char *what)
{
	if (err >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-err));
	exit(1);
}

static struct fi_info *choose(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_RMA | FI_MSG;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
				      FI_MR_VIRT_ADDR;
	hints->fabric_attr->prov_name = strdup("tcp");
	check(fi_getinfo(FI_VERSION(1, 14), bench_receiver(), NULL, FI_SOURCE, hints, &info),
	      "fi_getinfo");
	fi_freeinfo(hints);
	return info;
}

static void open_end(struct end *end)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT, .size = 2 * OUTSTANDING};

	end->info = choose();
	check(fi_fabric(end->info->fabric_attr, &end->fabric, NULL), "fi_fabric");
	check(fi_domain(end->fabric, end->info, &end->domain, NULL), "fi_domain");
	check(fi_av_open(end->domain, &av, &end->av, NULL), "fi_av_open");
	check(fi_cq_open(end->domain, &cq, &end->cq, NULL), "fi_cq_open");
	check(fi_endpoint(end->domain, end->info, &end->ep, NULL), "fi_endpoint");
	check(fi_ep_bind(end->ep, &end->av->fid, 0), "fi_ep_bind");
	check(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	check(fi_enable(end->ep), "fi_enable");
}

static struct fid_mr *register_memory(struct end *end, void *memory, uint64_t bytes,
				      uint64_t access)
{
	struct fid_mr *mr;

	check(fi_mr_reg(end->domain, memory, bytes, access, 0, access, 0, &mr, NULL), "fi_mr_reg");
	return mr;
}

static uint64_t completed(struct end *end)
{
	struct fi_cq_entry entry[OUTSTANDING];
	ssize_t n = fi_cq_read(end->cq, entry, OUTSTANDING);

	if (n == -FI_EAGAIN)
		return 0;
	check(n, "fi_cq_read");
	return (uint64_t)n;
}

struct job {
	struct end *end;
	const struct place *place;
	const uint8_t *source;
	void *desc;
	fi_addr_t to;
	size_t bytes;
};

/* Delivered before it completes. To ask that of every write would make it ten times slower. */
static ssize_t write_last(const struct job *job)
{
	struct iovec iov = {(void *)job->source, job->bytes};
	struct fi_rma_iov to = {job->place->va, job->bytes, job->place->key};
	void *desc = job->desc;
	struct fi_msg_rma message = {.msg_iov = &iov,
				     .desc = &desc,
				     .iov_count = 1,
				     .addr = job->to,
				     .rma_iov = &to,
				     .rma_iov_count = 1};
	ssize_t err = fi_writemsg(job->end->ep, &message, FI_DELIVERY_COMPLETE | FI_COMPLETION);

	if (err != -FI_EAGAIN)
		check(err, "fi_writemsg");
	return err;
}

static __attribute__((noinline)) uint64_t bench_send_all(const struct job *job, double seconds,
							 double *timed_s)
{
	uint64_t ring = bench_env("BENCH_RING", 512 << 20), n = 0, done = 0;
	size_t bytes = job->bytes;
	double start = bench_now_s();

	while (bench_now_s() - start < seconds) {
		ssize_t err = -FI_EAGAIN;

		if (n - done < OUTSTANDING)
			err = fi_write(
				job->end->ep, job->source + n % (BENCH_SOURCE / bytes) * bytes,
				bytes, job->desc, job->to,
				job->place->va + n % (ring / bytes) * bytes, job->place->key, NULL);
		if (err == 0)
			n++;
		else if (err != -FI_EAGAIN)
			check(err, "fi_write");
		if (err || n % 16 == 0)
			done += completed(job->end);
	}
	for (n++; write_last(job) == -FI_EAGAIN;)
		done += completed(job->end);
	while (done < n)
		done += completed(job->end);
	*timed_s = bench_now_s() - start;
	return n;
}

static void send_all(int fd, size_t bytes, double seconds, struct bench_shared *shared)
{
	uint8_t *source = bench_memory(BENCH_SOURCE, MAP_PRIVATE);
	struct place place;
	struct end end;
	struct job job = {.end = &end, .place = &place, .source = source, .bytes = bytes};
	double timed;
	uint64_t n;

	open_end(&end);
	job.desc = fi_mr_desc(register_memory(&end, source, BENCH_SOURCE, FI_WRITE));
	if (recv(fd, &place, sizeof(place), MSG_WAITALL) != sizeof(place))
		bench_fail("the receiver's address");
	check(fi_av_insert(end.av, place.address, 1, &job.to, 0, NULL) == 1 ? 0 : -FI_EINVAL,
	      "fi_av_insert");
	bench_send_all(&job, seconds / 4, &timed); /* warm */
	n = bench_send_all(&job, seconds, &timed);
	bench_print_rate(n, bytes, timed, 0);
	fflush(stdout);
	atomic_store(&shared->stop, 1);
}

static void describe(struct end *end, struct place *place)
{
	uint64_t ring = bench_env("BENCH_RING", 512 << 20);
	void *memory = bench_memory(ring, MAP_PRIVATE);
	size_t bytes = sizeof(place->address);

	place->key = fi_mr_key(register_memory(end, memory, ring, FI_REMOTE_WRITE));
	place->va = end->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)memory
								      : 0;
	check(fi_getname(&end->ep->fid, place->address, &bytes), "fi_getname");
}

int main(int argc, char **argv)
{
	struct bench_shared *shared = bench_memory(4096, MAP_SHARED);
	static struct place place;
	struct end end;
	int pair[2], status;
	pid_t child;

	if (argc != 4 || strcmp(argv[1], "write") != 0)
		bench_usage(USAGE);
	memset(shared, 0, sizeof(*shared));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || (child = fork()) < 0)
		bench_fail("fork");
	if (!child) {
		bench_be_sender();
		bench_pin("BENCH_SENDER_CORE");
		send_all(pair[1], bench_number(argv[2], USAGE), bench_seconds(argv[3], USAGE),
			 shared);
		_exit(0);
	}
	bench_pin("BENCH_RECEIVER_CORE");
	open_end(&end);
	describe(&end, &place);
	if (write(pair[0], &place, sizeof(place)) != sizeof(place))
		bench_fail("socketpair");
	while (!atomic_load(&shared->stop) && waitpid(child, &status, WNOHANG) == 0)
		for (unsigned i = 0; i < 1000; i++)
			completed(&end); /* a read of the queue is what makes progress */
	return atomic_load(&shared->stop) ? 0 : 1;
}
