/* endpoint_fuzz.c - any bytes as datagrams for a whole endpoint with an RC, a UC and a UD queue
 * pair that have work and receives posted.
 *
 * The input is records: two bytes (bits 0..12: length; 13: it arrived marked; 14: with a PSN
 * that its queue pair waits for; 15: aimed, with our numbers, keys and the right ICRC), then
 * that many bytes. What peers can reach ends where the sanitizer's fences are. The endpoint must
 * not leave them, must send only whole packets to its peer, and must complete all that was
 * posted. */
#include <errno.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "endpoint/state.h"
#include "roce/psn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
ssize_t sendmsg(int fd, const struct msghdr *message, int flags);
int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags);

enum { QPS = 3, FIRST_QPN = 0x11, PMTU = 256, MEMORY_BYTES = 1500, RECEIVE_BYTES = 700 };
enum { RECEIVES = 4, READ_BYTES = 601, QKEY = 0x1111, PSN = 0xfffff8 };
#define IOVA UINT64_C(0x10000)

static const uint8_t transports[QPS] = {SL_ROCE_RC, SL_ROCE_UC, SL_ROCE_UD};
static struct sl_endpoint *endpoint;
static struct sl_qp *qps[QPS];
static uint8_t *memory, *receive, *local;
static uint32_t rkey;
static unsigned posted, completed;
static union sl_net_address peer;

static void require(int good)
{
	if (!good)
		abort();
}

/* ---- the kernel's part: packets end here ---- */

enum { DATAGRAM_BYTES = 65507 };

static size_t gather(const struct msghdr *message, uint8_t *packet)
{
	size_t n = 0;

	for (size_t i = 0; i < message->msg_iovlen; i++) {
		require(n + message->msg_iov[i].iov_len <= DATAGRAM_BYTES);
		memcpy(packet + n, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
		n += message->msg_iov[i].iov_len;
	}
	return n;
}

/* The packets of a message have one length but for the last, and the kernel counts them. */
static size_t segment_bytes(const struct msghdr *message, size_t all)
{
	const struct cmsghdr *c = message->msg_controllen ? message->msg_control : NULL;
	uint16_t bytes = 0;

	if (!c || c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_SEGMENT)
		return all;
	memcpy(&bytes, CMSG_DATA(c), sizeof(bytes));
	require(bytes > 0 && bytes < all);
	return bytes;
}

static size_t take(const struct msghdr *message)
{
	static uint8_t datagram[DATAGRAM_BYTES];
	size_t all = gather(message, datagram), each = segment_bytes(message, all);
	struct sl_roce_packet parsed;
	struct sl_roce_path path;
	uint8_t gid[16];

	sl_net_gid(message->msg_name, gid);
	sl_endpoint_path(endpoint, gid, SL_ROCE_UDP_PORT, &path);
	path.ip_id = 0;
	for (size_t at = 0; at < all; at += each, path.ip_id++) {
		size_t n = all - at < each ? all - at : each;

		require(n <= SL_PACKET_BYTES);
		require(sl_roce_parse(datagram + at, n, &parsed) == SL_ROCE_OK);
		require(parsed.payload_bytes <= PMTU);
		require(sl_roce_icrc_check(&path, datagram + at, n, sl_crc32));
	}
	return all;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	return (ssize_t)take(message);
}

/* A socket that is full now and then. */
int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	static unsigned calls;

	if (++calls % 5 == 0) {
		errno = EAGAIN;
		return -1;
	}
	for (unsigned i = 0; i < count; i++)
		messages[i].msg_len = (unsigned)take(&messages[i].msg_hdr);
	return (int)count;
}

/* ---- the endpoint ---- */

static void open_endpoint(void)
{
	struct sl_endpoint_options options = {.keys = 1, .qps = QPS};
	struct sl_endpoint_memory registered = {
		.bytes = MEMORY_BYTES,
		.iova = IOVA,
		.has_iova = true,
		.access = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ,
	};

	memory = malloc(MEMORY_BYTES);
	receive = malloc(RECEIVE_BYTES);
	local = malloc(READ_BYTES);
	require(memory && receive && local);
	memset(memory, 0, MEMORY_BYTES);
	memset(local, 0, READ_BYTES);
	registered.at = memory;
	require(sl_net_parse("fuzz", "127.0.0.1", options.address) == 0);
	require(sl_endpoint_open(&options, &endpoint) == 0);
	require(sl_endpoint_register(endpoint, &registered, &rkey) == 0);
	sl_net_address(options.address, SL_ROCE_UDP_PORT, &peer);
}

static void connect_qp(struct sl_qp *qp)
{
	struct sl_qp_attributes a;

	sl_qp_attributes_init(&a);
	memcpy(a.peer, sl_endpoint_address(endpoint), sizeof(a.peer));
	a.peer_qpn = 0x22;
	a.pmtu = PMTU;
	a.qkey = QKEY;
	a.send_psn = a.receive_psn = PSN;
	a.retries = 255;
	a.window = 8;
	require(sl_qp_connect(qp, &a) == 0);
}

static void open_qps(void)
{
	for (unsigned i = 0; i < QPS; i++) {
		const struct sl_qp_options options = {
			.transport = transports[i],
			.access = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ,
			.qpn = FIRST_QPN + i,
			.sends = 4,
			.receives = RECEIVES,
			.peer_reads = 2,
		};

		require(sl_qp_create(endpoint, &options, &qps[i]) == 0);
		connect_qp(qps[i]);
	}
	posted = completed = 0;
}

static void reap(void)
{
	struct sl_completion done;

	while (sl_endpoint_reap(endpoint, NULL, &done, 1)) {
		completed++;
		require(done.status == SL_STATUS_SUCCESS || sl_qp_state(done.qp) == SL_ROCE_ERROR);
		if (done.kind == SL_COMPLETION_RECEIVE && !done.status)
			require(done.bytes <= RECEIVE_BYTES);
	}
}

/* Everything full again; a queue pair that failed begins anew. */
static void refill(struct sl_qp *qp)
{
	static const uint8_t kinds[] = {SL_ROCE_KIND_READ, SL_ROCE_KIND_WRITE, SL_ROCE_KIND_SEND};
	const struct sl_piece room[SL_QP_PIECES] = {{receive, 300},
						    {receive + 300, RECEIVE_BYTES - 300}};
	struct sl_work work = {.piece = {{local, 100}}, .to = {.qpn = 0x22, .qkey = QKEY}};

	if (sl_qp_state(qp) == SL_ROCE_ERROR) {
		require(sl_qp_modify(qp, SL_ROCE_RESET, NULL) == 0);
		connect_qp(qp);
	}
	memcpy(work.to.address, sl_endpoint_address(endpoint), sizeof(work.to.address));
	while (sl_qp_receive(qp, 1, room) == 0)
		posted++;
	for (unsigned i = posted;; i++) {
		work.kind = qp == qps[0] ? kinds[i % 3] : SL_ROCE_KIND_SEND;
		work.piece[1] =
			(struct sl_piece){local + 100, qp == qps[2] ? 100 : READ_BYTES - 100};
		if (sl_qp_send(qp, &work))
			break;
		posted++;
	}
}

/* ---- packets ---- */

static void put24(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 16);
	at[1] = (uint8_t)(value >> 8);
	at[2] = (uint8_t)value;
}

/* The PSN that would be the right one. */
static uint32_t awaited(unsigned transport, uint8_t opcode)
{
	const struct sl_roce_opcode *row = sl_roce_opcode(opcode);
	const struct sl_roce_rc_requester *r = &qps[0]->rc.requester;

	if (transport == SL_ROCE_UC)
		return qps[1]->uc.expected_psn;
	if (row && row->kind == SL_ROCE_KIND_RESPONSE)
		return sl_roce_psn_add(r->psn, (uint32_t)r->oldest & SL_ROCE_PSN_MASK);
	return qps[0]->rc.responder.queue.expected_psn;
}

static void aim(uint8_t *packet, size_t n, bool near)
{
	struct sl_roce_path path;
	unsigned transport = packet[0] >> 5;
	unsigned which = transport == SL_ROCE_UC ? 1 : transport == SL_ROCE_UD ? 2 : 0;
	size_t key = transport == SL_ROCE_UD ? 12 : 20;
	uint32_t value = transport == SL_ROCE_UD ? QKEY : rkey;

	if (n < 16)
		return;
	packet[1] &= 0xf0;
	packet[2] = packet[3] = 0xff;
	put24(packet + 5, FIRST_QPN + which);
	if (near)
		put24(packet + 9, sl_roce_psn_add(awaited(transport, packet[0]),
						  (packet[11] & 3) * 0xffffff % 3));
	if (n >= key + 8 && sl_roce_opcode(packet[0]) &&
	    sl_roce_opcode(packet[0])->headers & (SL_ROCE_HAS_RETH | SL_ROCE_HAS_DETH)) {
		packet[key] = (uint8_t)(value >> 24);
		put24(packet + key + 1, value);
	}
	sl_endpoint_path(endpoint, sl_endpoint_address(endpoint), endpoint->port, &path);
	path.source_port = SL_ROCE_UDP_PORT;
	sl_roce_icrc_put(sl_roce_icrc(&path, packet, 12,
				      &(struct sl_roce_piece){packet + 12, n - 16}, 1, 0, sl_crc32),
			 packet + n - 4);
}

static void one_packet(const uint8_t *data, size_t n, unsigned flags, uint64_t now)
{
	uint8_t *exact = malloc(n ? n : 1); /* so that a byte too far is seen */

	require(exact != NULL);
	memcpy(exact, data, n);
	if (flags & 0x8000)
		aim(exact, n, flags & 0x4000);
	sl_endpoint_datagram(endpoint, &peer, flags & 0x2000 ? SL_NET_ECN_CE : 0, exact, n, now);
	free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t now = 1000;

	if (!endpoint)
		open_endpoint();
	open_qps();
	while (size >= 2) {
		unsigned flags = data[0] | (unsigned)data[1] << 8;
		size_t n = flags & 0x1fff;

		data += 2;
		size -= 2;
		n = n < size ? n : size;
		for (unsigned i = 0; i < QPS; i++)
			refill(qps[i]);
		sl_send_packets(endpoint, now, 64);
		one_packet(data, n, flags, now);
		sl_send_packets(endpoint, now, 64);
		reap();
		now += 30000;
		data += n;
		size -= n;
	}
	for (unsigned i = 0; i < QPS; i++)
		require(sl_qp_modify(qps[i], SL_ROCE_ERROR, NULL) == 0);
	reap();
	for (unsigned i = 0; i < QPS; i++) {
		require(sl_qp_sends(qps[i]) + sl_qp_receives(qps[i]) == 0);
		sl_qp_destroy(qps[i]);
	}
	require(completed <= posted);
	return 0;
}
