/* fence_test.c - no packet, however made, writes or reads outside what it may: millions of mutants
 * for queues whose memory lies between guard pages and canaries. What they say is really done.
 *
 * Usage: roce_fence_test [PACKETS [SEED]]. Only mutants count; about as many valid packets keep the
 * queues alive in between. A failure names the seed and the packet. Where PACKETS are given it says
 * how long they will take, and how many were dropped for which cause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/roce_fence.h"
#include "lib/roce_fence_rc.h"
#include "lib/sanitized.h"
#include "roce/ud.h"

#include <time.h>

enum { QKEY = 0x1111, CHECK_EVERY = 1 << 16, PROVE_EVERY = 1 << 10, PARSE_ERRORS = 8 };
#define BIT(drop) (1u << SL_ROCE_DROP_##drop)

static uint64_t packets = SANITIZED ? 500000 : 2000000, seed = 1, thrown;
static bool verbose, finished;
static struct fence part; /* of a packet */
static uint64_t drops[SL_ROCE_DROPS], accepted[256], unparsed[PARSE_ERRORS];

/* ---- UC ---- */

static struct sl_roce_responder uc;

static void uc_fresh(void)
{
	uc = fresh_responder(SL_ROCE_UC);
	assert_int_equal(sl_roce_responder_init(&uc), SL_ROCE_OK);
}

static void uc_valid(struct sl_roce_packet *packet)
{
	some_rights(&uc);
	valid_request(&uc, packet);
}

static enum sl_roce_drop uc_receive(const struct sl_roce_packet *packet,
				    const struct sl_roce_path *from)
{
	const struct sl_roce_responder before = uc;
	struct sl_roce_action action;
	enum sl_roce_drop drop =
		sl_roce_responder_receive(&uc, from, packet, lookup, NULL, &action);

	if (!drop) {
		place(&before, packet, &action);
	} else {
		assert_int_equal(uc.expected_psn, before.expected_psn);
		assert_int_equal(uc.receives, before.receives);
	}
	return drop;
}

static void uc_prove(void)
{
	uc.access = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ;
	prove_write(SL_ROCE_UC, below(1 << 24));
	uc.receives = SL_ROCE_RECEIVES_UNLIMITED;
}

/* ---- UD ---- */

static struct sl_roce_ud_receiver ud;

static void ud_fresh(void)
{
	ud = (struct sl_roce_ud_receiver){.pkey = SL_ROCE_PKEY_DEFAULT,
					  .qpn = QPN,
					  .qkey = QKEY,
					  .pmtu = PMTU,
					  .receives = SL_ROCE_RECEIVES_UNLIMITED,
					  .receive_bytes = 200};
	memcpy(ud.local, path.dest, sizeof(ud.local));
}

static void ud_valid(struct sl_roce_packet *packet)
{
	memset(packet, 0, sizeof(*packet));
	packet->pkey = SL_ROCE_PKEY_DEFAULT;
	packet->qpn = QPN;
	packet->psn = below(1 << 24);
	packet->deth.qkey = QKEY;
	packet->deth.source_qpn = PEER_QPN;
	valid_bytes(packet, SL_ROCE_UD, (uint8_t)(SL_ROCE_SEND_ONLY + below(2)), below(161));
	ud.receives = some_receives(ud.receives);
	ud.receive_bytes = below(2) ? 200 : RECEIVE_BYTES;
}

static enum sl_roce_drop ud_receive(const struct sl_roce_packet *packet,
				    const struct sl_roce_path *from)
{
	struct sl_roce_ud_arrival arrival;
	/* A receive of 200 bytes has nothing behind it either. */
	uint8_t *to = receive.inside + RECEIVE_BYTES - ud.receive_bytes;
	enum sl_roce_drop drop = sl_roce_ud_receive(&ud, from, packet, &arrival);

	if (drop)
		return drop;
	sl_roce_ud_header(from, packet->header_bytes + packet->payload_bytes, to);
	memcpy(to + arrival.offset, packet->payload, arrival.bytes);
	assert_true(fence_holds(&receive, to, arrival.receive_bytes));
	return drop;
}

static void ud_prove(void)
{
	struct sl_roce_packet packet;

	ud_valid(&packet);
	ud.receives = SL_ROCE_RECEIVES_UNLIMITED;
	assert_int_equal(give(&packet), SL_ROCE_ACCEPTED);
}

/* ---- the run ---- */

static const struct target targets[] = {
	{"uc responder", 3, 0x20, 0x2b,
	 BIT(QUEUE) | BIT(TRANSPORT) | BIT(PKEY) | BIT(PEER) | BIT(BROKEN) | BIT(LENGTH) |
		 BIT(ACCESS) | BIT(KEY) | BIT(RANGE) | BIT(RECEIVE),
	 uc_fresh, uc_valid, uc_receive, uc_prove},
	{"rc responder", 3, 0x00, 0x0c,
	 BIT(QUEUE) | BIT(TRANSPORT) | BIT(PKEY) | BIT(PEER) | BIT(BROKEN) | BIT(LENGTH) |
		 BIT(ACCESS) | BIT(KEY) | BIT(RANGE) | BIT(RECEIVE) | BIT(STATE) | BIT(AHEAD) |
		 BIT(DUPLICATE) | BIT(READS),
	 rc_fresh, rc_valid, rc_receive, rc_prove},
	{"rc queue", 3, 0x00, 0x11,
	 BIT(QUEUE) | BIT(TRANSPORT) | BIT(PKEY) | BIT(PEER) | BIT(BROKEN) | BIT(LENGTH) |
		 BIT(ACCESS) | BIT(KEY) | BIT(RANGE) | BIT(RECEIVE) | BIT(STATE) | BIT(AHEAD) |
		 BIT(DUPLICATE) | BIT(READS),
	 pair_fresh, pair_valid, pair_receive, pair_prove},
	{"ud receiver", 1, 0x64, 0x65,
	 BIT(QUEUE) | BIT(TRANSPORT) | BIT(PKEY) | BIT(PEER) | BIT(LENGTH) | BIT(RECEIVE) |
		 BIT(QKEY),
	 ud_fresh, ud_valid, ud_receive, ud_prove},
};

enum { TARGETS = sizeof(targets) / sizeof(*targets) };

static void say_where(void)
{
	fprintf(stderr, "# %s, seed %llu, after %llu mutants; the packet:", target->name,
		(unsigned long long)seed, (unsigned long long)thrown);
	for (size_t i = 0; i < mutant.n && i < 64; i++)
		fprintf(stderr, " %02x", mutant.bytes[i]);
	fprintf(stderr, "\n");
}

/* Headers alone, as from a scattered datagram, right before the guard page. */
static void parse_part(void)
{
	size_t head = below((uint32_t)(mutant.n < 44 ? mutant.n : 44) + 1);
	uint8_t *at = part.inside + part.bytes - head;
	struct sl_roce_packet packet;

	memcpy(at, mutant.bytes, head);
	if (sl_roce_parse_headers(at, head, mutant.n, &packet) == SL_ROCE_OK)
		assert_true(packet.header_bytes <= head);
}

static void throw(bool mutate)
{
	struct sl_roce_packet packet;
	enum sl_roce_drop drop;
	int error;

	target->valid(&mutant.packet);
	mutant.path = path;
	mutant.key = &areas[below(AREAS)].key;
	if (mutant.packet.reth.length && below(4))
		mutant.key = lookup(NULL, mutant.packet.reth.rkey);
	if (mutate)
		mutant_make(&mutant);
	else
		mutant_encode(&mutant);
	error = sl_roce_parse(mutant.bytes, mutant.n, &packet);
	if (below(16) == 0)
		parse_part();
	if (below(64) == 0)
		sl_roce_icrc_check(&path, mutant.bytes, mutant.n, NULL);
	if (error) {
		unparsed[-error]++;
		return;
	}
	drop = target->receive(&packet, &mutant.path);
	drops[drop]++;
	accepted[packet.opcode] += !drop;
}

static void throw_all(uint64_t count)
{
	random_source.state = seed * UINT64_C(0x9e3779b97f4a7c15) + (uintptr_t)(target - targets);
	target->fresh();
	for (thrown = 0; thrown < count;) {
		bool mutate = below(2);

		throw(mutate);
		thrown += mutate;
		if (mutate && thrown % PROVE_EVERY == 0)
			target->prove();
		if (mutate && thrown % CHECK_EVERY == 0)
			areas_check();
	}
	target->prove();
	areas_check();
	assert_true(fence_intact(&read_target) && fence_untouched(&source));
}

/* Every cause that it can drop for was seen, and no other. */
static void check_causes(const char *what, const uint64_t *counts, unsigned causes)
{
	for (unsigned i = 1; i < SL_ROCE_DROPS; i++) {
		const char *name = sl_roce_drop_name((enum sl_roce_drop)i);
		unsigned long long count = counts[i];

		if (verbose && count)
			fprintf(stderr, "# %s: %12llu %s\n", what, count, name);
		if ((causes >> i & 1) != (count > 0))
			fail_msg("%s: %llu dropped for: %s", what, count, name);
	}
}

static void check_unparsed(void)
{
	for (int i = -SL_ROCE_ESHORT; i <= -SL_ROCE_EPAD; i++)
		assert_true(unparsed[i] > 0);
}

/* Every opcode that it serves was accepted, and no other. */
static void check_opcodes(void)
{
	for (unsigned i = 0; i < 256; i++) {
		bool served = i >= target->first_opcode && i <= target->last_opcode;

		if (served != (accepted[i] > 0))
			fail_msg("%llu accepted: %s", (unsigned long long)accepted[i],
				 sl_roce_opcode_name((uint8_t)i));
	}
}

/* So that one knows how long to wait. */
static void say_how_long(void)
{
	const uint64_t some = 1000000;
	struct timespec start, end;
	double seconds;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (target = targets; target < targets + TARGETS; target++)
		throw_all(some / 10 * target->share);
	clock_gettime(CLOCK_MONOTONIC, &end);
	seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
	fprintf(stderr, "# %llu mutants, seed %llu: about %.0f s\n", (unsigned long long)packets,
		(unsigned long long)seed, seconds * (double)packets / (double)some);
}

static int after(void **state)
{
	if (!finished)
		say_where();
	return 0;
}

static void run(void **state)
{
	finished = false;
	target = *state;
	memset(drops, 0, sizeof(drops));
	memset(accepted, 0, sizeof(accepted));
	memset(unparsed, 0, sizeof(unparsed));
	memset(response_drops, 0, sizeof(response_drops));
	throw_all(packets / 10 * target->share);
	check_causes(target->name, drops, target->causes);
	if (target->receive == pair_receive)
		check_causes("rc queue, responses", response_drops,
			     BIT(QUEUE) | BIT(TRANSPORT) | BIT(PKEY) | BIT(PEER) | BIT(BROKEN) |
				     BIT(LENGTH) | BIT(STATE) | BIT(AHEAD) | BIT(DUPLICATE));
	check_opcodes();
	check_unparsed();
	finished = true;
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[TARGETS];

	if (getenv("SLUICE_LONG")) /* tools/check.py --long */
		packets *= 5;
	if (argc > 1)
		packets = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	verbose = argc > 1;
	areas_make();
	fence_make(&read_target, READ_BYTES, true, PROT_READ | PROT_WRITE);
	fence_make(&part, SL_ROCE_HEADERS_MAX + 4, true, PROT_READ | PROT_WRITE);
	fence_make(&source, SOURCE_BYTES, true, PROT_READ);
	mutant_init(&mutant, &random_source);
	mutant.pmtu = PMTU;
	mutant.keys = keys;
	mutant.key_count = AREAS;
	if (verbose)
		say_how_long();
	for (unsigned i = 0; i < TARGETS; i++)
		tests[i] = (struct CMUnitTest){targets[i].name, run, NULL, after,
					       (void *)(uintptr_t)&targets[i]};
	return cmocka_run_group_tests_name("fence", tests, NULL, NULL);
}
