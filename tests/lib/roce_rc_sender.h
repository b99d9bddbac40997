/* roce_rc_sender.h - for tests: an RC send queue, responses to it, and what it did. Its PSNs wrap
 * at the third packet. Include cmocka.h before. */
#ifndef TESTS_LIB_ROCE_RC_SENDER_H
#define TESTS_LIB_ROCE_RC_SENDER_H

#include "roce/rc_requester.h"

#include <string.h>

enum { PMTU = 256, QPN = 0x11, PEER_QPN = 0x22, WORKS = 8, TIMEOUT = 1000, PSN = 0xfffffe };
#define OP(name) SL_ROCE_OPCODE(SL_ROCE_RC, SL_ROCE_##name)

static struct sl_roce_work works[WORKS];
static struct sl_roce_rc_requester rc;
static struct sl_roce_request request;
static struct sl_roce_packet packet; /* the last one sent, parsed back */
static struct sl_roce_read got;
static struct sl_roce_completion done;
static uint64_t now;

static inline int fresh(void **state)
{
	memset(&rc, 0, sizeof(rc));
	rc.pkey = SL_ROCE_PKEY_DEFAULT;
	rc.qpn = QPN;
	rc.peer_qpn = PEER_QPN;
	rc.pmtu = PMTU;
	rc.psn = PSN;
	rc.window = 8;
	rc.ack_every = 4;
	rc.reads = 2;
	rc.timeout_ns = TIMEOUT;
	rc.retries = 3;
	rc.rnr_retries = 2;
	rc.works = works;
	rc.capacity = WORKS;
	now = 1;
	return sl_roce_rc_requester_init(&rc);
}

static inline int post(uint8_t kind, uint64_t id, uint32_t bytes)
{
	struct sl_roce_work work = {
		.id = id, .kind = kind, .rkey = 0x77, .va = 0x10000, .bytes = bytes};

	return sl_roce_rc_post(&rc, &work);
}

static inline void post_quiet(uint64_t id, uint32_t bytes)
{
	struct sl_roce_work work = {.id = id,
				    .kind = SL_ROCE_KIND_WRITE,
				    .quiet = true,
				    .rkey = 0x77,
				    .va = 0x10000,
				    .bytes = bytes};

	assert_int_equal(sl_roce_rc_post(&rc, &work), SL_ROCE_OK);
}

#define WRITE(id, bytes) assert_int_equal(post(SL_ROCE_KIND_WRITE, id, bytes), SL_ROCE_OK)
#define SEND(id, bytes)	 assert_int_equal(post(SL_ROCE_KIND_SEND, id, bytes), SL_ROCE_OK)
#define READ(id, bytes)	 assert_int_equal(post(SL_ROCE_KIND_READ, id, bytes), SL_ROCE_OK)

static inline bool next(void)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	const struct sl_roce_fragment *f = &request.fragment;

	if (!sl_roce_rc_next(&rc, now, headers, &request))
		return false;
	assert_int_equal(sl_roce_parse_headers(headers, f->header_bytes,
					       f->header_bytes + f->bytes + f->pad + 4u, &packet),
			 SL_ROCE_OK);
	assert_int_equal(packet.qpn, PEER_QPN);
	assert_int_equal(packet.psn, f->psn);
	return true;
}

/* The next packet is the one with this number, counted from the first ever. */
static inline void expect_packet(uint8_t op, uint32_t number, bool ackreq)
{
	assert_true(next());
	assert_int_equal(packet.opcode, op);
	assert_int_equal(packet.psn, (PSN + number) & 0xffffff);
	assert_int_equal(packet.ackreq, ackreq);
}

static inline unsigned drain(void)
{
	unsigned n = 0;

	while (next())
		n++;
	return n;
}

static inline enum sl_roce_drop respond(uint8_t op, uint32_t number, uint8_t syndrome,
					uint32_t bytes)
{
	struct sl_roce_packet response = {
		.opcode = op,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.has = sl_roce_opcode(op)->headers,
		.qpn = QPN,
		.psn = (PSN + number) & 0xffffff,
		.aeth = {syndrome, 0},
		.payload_bytes = bytes,
	};

	return sl_roce_rc_requester_receive(&rc, NULL, &response, now, &got);
}

static inline enum sl_roce_drop ack(uint32_t number)
{
	return respond(OP(ACKNOWLEDGE), number, SL_ROCE_ACK_UNLIMITED, 0);
}

static inline enum sl_roce_drop nak(uint32_t number, uint8_t syndrome)
{
	return respond(OP(ACKNOWLEDGE), number, syndrome, 0);
}

static inline void expect_completion(uint64_t id, uint8_t status)
{
	assert_true(sl_roce_rc_complete(&rc, &done));
	assert_int_equal(done.id, id);
	assert_int_equal(done.status, status);
}

static inline void expect_none(void)
{
	assert_false(sl_roce_rc_complete(&rc, &done));
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)

#endif
