/* roce_pcap.c - every kind of packet that we send, as a capture file, and beside it what each
 * should be, for others to judge: tests/system/dissect_test.py.
 *
 * Usage: roce_pcap CAPTURE.pcap INTENTIONS.jsonl
 *
 * One line of JSON per packet says what was meant, in words and not in opcodes: who reads it has a
 * table of its own. IPv4 and IPv6, all path MTUs, lengths that are empty, odd, and around multiples
 * of the MTU. */
#include <inttypes.h>

#include "lib/roce_capture.h"
#include "roce/cnp.h"
#include "roce/psn.h"
#include "roce/rc_queue.h"
#include "roce/ud.h"

enum { QPN = 0x123456, PEER_QPN = 0xabcdef, RKEY = 0x8badf00d, QKEY = 0x80010000, WORKS = 4 };
enum { BYTES = 4 * SL_ROCE_PMTU_MAX, LENGTHS = 7, RNR_CODE = 12 };
#define BASE UINT64_C(0x7f0123456000)

static FILE *intentions;
static uint8_t memory[BYTES];
static uint32_t pmtu;

/* ---- intentions ---- */

static const char *position_of(uint32_t index, uint32_t count)
{
	if (count == 1)
		return "only";
	return index == 0 ? "first" : index == count - 1 ? "last" : "middle";
}

static void intend(const char *transport, const char *kind, uint32_t index, uint32_t count,
		   uint32_t psn, uint32_t payload)
{
	fprintf(intentions,
		"{\"transport\": \"%s\", \"kind\": \"%s\", \"position\": \"%s\", \"ip\": %d, "
		"\"psn\": %" PRIu32 ", \"payload\": %" PRIu32,
		transport, kind, position_of(index, count), ipv6 ? 6 : 4, psn, payload);
}

static void intend_number(const char *name, uint64_t value)
{
	fprintf(intentions, ", \"%s\": %" PRIu64, name, value);
}

static void intend_done(uint32_t qpn)
{
	intend_number("qpn", qpn);
	fprintf(intentions, "}\n");
}

/* A packet of a SEND or WRITE, or the request of a READ. */
static void intend_request(const char *transport, const struct sl_roce_work *work, uint32_t index,
			   uint32_t psn, bool ackreq)
{
	static const char *const kinds[] = {[SL_ROCE_KIND_SEND] = "send",
					    [SL_ROCE_KIND_WRITE] = "write",
					    [SL_ROCE_KIND_READ] = "read"};
	bool read = work->kind == SL_ROCE_KIND_READ;
	uint32_t count = read ? 1 : sl_roce_packets(work->bytes, pmtu);
	bool last = index == count - 1;
	uint32_t payload = read ? 0 : last ? work->bytes - index * pmtu : pmtu;

	intend(transport, kinds[work->kind], index, count, psn, payload);
	if (work->kind != SL_ROCE_KIND_SEND && index == 0) {
		intend_number("va", work->va);
		intend_number("rkey", work->rkey);
		intend_number("length", work->bytes);
	}
	if (work->immediate && last)
		intend_number("imm", work->imm);
	intend_number("solicited", work->solicited && last);
	intend_number("ackreq", ackreq);
	intend_done(PEER_QPN);
}

/* ---- what is sent ---- */

static uint32_t length_of(int i)
{
	const uint32_t lengths[LENGTHS] = {0, 1, 3, pmtu - 1, pmtu, pmtu + 1, 3 * pmtu + 6};

	return lengths[i];
}

/* Number 0..3: with and without immediate, SEND and WRITE. */
static struct sl_roce_work work_of(int number, uint32_t bytes)
{
	return (struct sl_roce_work){
		.kind = number < 2 ? SL_ROCE_KIND_SEND : SL_ROCE_KIND_WRITE,
		.immediate = number % 2,
		.solicited = number % 2,
		.imm = 0xcafe0000 + bytes,
		.rkey = RKEY,
		.va = BASE + 7,
		.bytes = bytes,
	};
}

static void send_uc(void)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	uint32_t psn = 0xfffff0; /* wraps */

	for (int i = 0; i < 4 * LENGTHS; i++) {
		const struct sl_roce_work work = work_of(i % 4, length_of(i / 4));
		struct sl_roce_message message = {.transport = SL_ROCE_UC,
						  .kind = work.kind,
						  .immediate = work.immediate,
						  .solicited = work.solicited,
						  .pkey = SL_ROCE_PKEY_DEFAULT,
						  .pmtu = pmtu,
						  .qpn = PEER_QPN,
						  .psn = psn,
						  .imm = work.imm,
						  .rkey = work.rkey,
						  .va = work.va,
						  .bytes = work.bytes};
		struct sl_roce_requester requester;
		struct sl_roce_fragment fragment;

		require(!sl_roce_requester_begin(&requester, &message), "UC message");
		for (uint32_t k = 0; sl_roce_requester_next(&requester, headers, &fragment); k++) {
			intend_request("UC", &work, k, psn, false);
			emit(false, headers, &fragment, memory + fragment.offset);
			psn = (psn + 1) & SL_ROCE_PSN_MASK;
		}
	}
}

static struct sl_roce_rc_requester requester;
static struct sl_roce_rc_responder responder;
static struct sl_roce_work works[WORKS];

static const struct sl_roce_key *lookup(void *arg, uint32_t rkey)
{
	static const struct sl_roce_key key = {RKEY, SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ, 0,
					       BASE, BYTES};

	return rkey == RKEY ? &key : NULL;
}

static void rc_connect(void)
{
	requester = (struct sl_roce_rc_requester){.pkey = SL_ROCE_PKEY_DEFAULT,
						  .qpn = QPN,
						  .peer_qpn = PEER_QPN,
						  .pmtu = pmtu,
						  .psn = 0xfffff0,
						  .window = 64,
						  .ack_every = 64,
						  .reads = 1,
						  .works = works,
						  .capacity = WORKS};
	responder.queue = (struct sl_roce_responder){
		.transport = SL_ROCE_RC,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = PEER_QPN,
		.pmtu = pmtu,
		.access = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ,
		.expected_psn = 0xfffff0,
		.receives = SL_ROCE_RECEIVES_UNLIMITED,
		.receive_bytes = BYTES,
	};
	responder.peer_qpn = QPN;
	responder.rnr_timer = RNR_CODE;
	require(!sl_roce_rc_requester_init(&requester), "requester");
	require(!sl_roce_rc_responder_init(&responder), "responder");
}

static void parse(const uint8_t *headers, const struct sl_roce_fragment *fragment,
		  struct sl_roce_packet *packet)
{
	size_t bytes = fragment->header_bytes + fragment->bytes + fragment->pad + 4u;

	require(!sl_roce_parse_headers(headers, fragment->header_bytes, bytes, packet), "parse");
}

/* All packets of a reply; they go to the requester, too. */
static void send_reply(struct sl_roce_reply *reply, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	uint32_t count = reply->read ? sl_roce_packets(reply->bytes, pmtu) : 1, left = reply->bytes;
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	struct sl_roce_fragment fragment;
	struct sl_roce_packet packet;
	struct sl_roce_read read;

	for (uint32_t i = 0; sl_roce_reply_next(reply, headers, &fragment); i++) {
		uint32_t payload = left < pmtu ? left : pmtu;

		left -= payload;
		intend("RC", reply->read ? "response" : "acknowledge", i, count, psn + i, payload);
		if (i == 0 || i == count - 1) {
			intend_number("syndrome", syndrome);
			intend_number("msn", msn);
		}
		intend_done(QPN);
		emit(true, headers, &fragment, memory + 7 + fragment.offset);
		parse(headers, &fragment, &packet);
		sl_roce_rc_requester_receive(&requester, NULL, &packet, 1, &read);
	}
	require(left == 0, "reply");
}

static void send_rc(void)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	struct sl_roce_completion done;
	struct sl_roce_request request;
	struct sl_roce_packet packet;
	struct sl_roce_action action;
	struct sl_roce_reply reply;
	uint32_t psn = 0xfffff0, msn = 0;

	rc_connect();
	for (int i = 0; i < 5 * LENGTHS; i++, msn++) {
		struct sl_roce_work work = work_of(i % 5, length_of(i / 5));
		uint32_t count = sl_roce_packets(work.bytes, pmtu);

		if (i % 5 == 4) {
			work.kind = SL_ROCE_KIND_READ;
			work.immediate = work.solicited = false;
		}
		require(!sl_roce_rc_post(&requester, &work), "post");
		for (uint32_t k = 0; sl_roce_rc_next(&requester, 1, headers, &request); k++) {
			bool read = work.kind == SL_ROCE_KIND_READ;

			intend_request("RC", &work, k, (psn + k) & SL_ROCE_PSN_MASK,
				       read || k == count - 1 ||
					       (psn - 0xfffff0 + k + 1) % 64 == 0);
			emit(false, headers, &request.fragment, memory + request.fragment.offset);
			parse(headers, &request.fragment, &packet);
			require(!sl_roce_rc_responder_receive(&responder, NULL, &packet, lookup,
							      NULL, &action, &reply),
				"request");
			if (reply.pending)
				send_reply(&reply, 0x1f, read ? psn : (psn + k) & SL_ROCE_PSN_MASK,
					   msn + (read || k == count - 1));
		}
		require(sl_roce_rc_complete(&requester, &done) && !done.status, "completion");
		psn = (psn + count) & SL_ROCE_PSN_MASK;
	}
}

/* Whatever makes the responder say no. */
static void refuse(uint8_t operation, uint32_t ahead, uint32_t rkey, uint32_t receives,
		   uint8_t syndrome)
{
	uint32_t expected = 0xfffff0;
	struct sl_roce_packet packet = {.opcode = SL_ROCE_OPCODE(SL_ROCE_RC, operation),
					.pkey = SL_ROCE_PKEY_DEFAULT,
					.qpn = PEER_QPN,
					.psn = expected + ahead,
					.reth = {BASE, rkey, pmtu},
					.payload_bytes = pmtu};
	struct sl_roce_action action;
	struct sl_roce_reply reply;

	rc_connect();
	responder.queue.receives = receives;
	require(sl_roce_rc_responder_receive(&responder, NULL, &packet, lookup, NULL, &action,
					     &reply) != SL_ROCE_ACCEPTED,
		"a packet that should have been refused");
	send_reply(&reply, syndrome, expected, 0);
}

static void send_naks(void)
{
	refuse(SL_ROCE_WRITE_ONLY, 3, RKEY, 1, 0x60);
	refuse(SL_ROCE_WRITE_MIDDLE, 0, RKEY, 1, 0x61);
	refuse(SL_ROCE_WRITE_ONLY, 0, RKEY + 1, 1, 0x62);
	refuse(SL_ROCE_SEND_ONLY, 0, RKEY, 0, 0x20 | RNR_CODE);
}

static void send_ud(void)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX];

	for (int i = 0; i < 10; i++) {
		struct sl_roce_ud_message message = {.immediate = i % 2,
						     .solicited = i % 2,
						     .pkey = SL_ROCE_PKEY_DEFAULT,
						     .pmtu = pmtu,
						     .qpn = PEER_QPN,
						     .qkey = QKEY,
						     .source_qpn = QPN,
						     .psn = (uint32_t)i,
						     .imm = 0x01020304,
						     .bytes = length_of(i / 2)};
		struct sl_roce_fragment fragment;

		require(!sl_roce_ud_encode(&message, headers, &fragment), "UD message");
		intend("UD", "send", 0, 1, message.psn, message.bytes);
		if (message.immediate)
			intend_number("imm", message.imm);
		intend_number("solicited", message.solicited);
		intend_number("qkey", QKEY);
		intend_number("source_qpn", QPN);
		intend_done(PEER_QPN);
		emit(false, headers, &fragment, memory);
	}
}

static void send_cnp(void)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	const struct sl_roce_fragment fragment = {.header_bytes = SL_ROCE_CNP_BYTES};

	require(!sl_roce_cnp_encode(QPN, headers), "CNP");
	intend("CNP", "cnp", 0, 1, 0, 0);
	intend_done(QPN);
	emit(true, headers, &fragment, NULL);
}

int main(int argc, char **argv)
{
	require(argc == 3, "usage: roce_pcap CAPTURE.pcap INTENTIONS.jsonl");
	capture_open(argv[1]);
	intentions = fopen(argv[2], "w");
	require(intentions != NULL, "cannot open its file");
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 7 + (i >> 8) + 1);
	for (int version = 0; version < 2; version++) {
		ipv6 = version;
		for (pmtu = 256; pmtu <= SL_ROCE_PMTU_MAX; pmtu *= 2) {
			send_uc();
			send_rc();
			send_naks();
			send_ud();
			send_cnp();
		}
	}
	capture_close();
	require(!fclose(intentions), "cannot write its file");
	return 0;
}
