/* fault_test.c - a network that loses, repeats, damages and reorders: over RC everything arrives as
 * it was sent; over UC whole messages or nothing. */
#include "endpoint/testing.h"
#include "roce/psn.h"

struct network {
	uint64_t random;
	unsigned lose, repeat, damage, hold; /* of 1000 */
	unsigned happened;
	uint64_t after; /* packets that pass unharmed first */
};

static struct network network[SIDES];

static uint32_t draw(struct network *n)
{
	n->random = n->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(n->random >> 33) % 1000;
}

static enum sl_endpoint_fault_kind decide(void *arg, const struct sl_roce_packet *packet)
{
	struct network *n = arg;
	uint32_t at = draw(n);

	if (n->after && n->after--)
		return SL_ENDPOINT_FAULT_NONE;
	n->happened += at < n->lose + n->repeat + n->damage + n->hold;
	if (at < n->lose)
		return SL_ENDPOINT_FAULT_LOSE;
	at -= n->lose;
	if (at < n->repeat)
		return SL_ENDPOINT_FAULT_REPEAT;
	at -= n->repeat;
	if (at < n->damage)
		return SL_ENDPOINT_FAULT_CORRUPT;
	at -= n->damage;
	return at < n->hold ? SL_ENDPOINT_FAULT_HOLD : SL_ENDPOINT_FAULT_NONE;
}

static int set_up(void **state, bool v6)
{
	memset(&rig, 0, sizeof(rig));
	memset(network, 0, sizeof(network));
	rig.v6 = v6;
	for (int i = 0; i < SIDES; i++)
		rig.side[i].fault = (struct sl_endpoint_fault){decide, &network[i]};
	rig_open();
	return 0;
}

static int set_up_v4(void **state)
{
	return set_up(state, false);
}

static int set_up_v6(void **state)
{
	return set_up(state, true);
}

/* ---- RC ---- */

enum { MESSAGES = 24, LONGEST = 40000, STRIDE = 1 << 16 };

static uint8_t source[MESSAGES * STRIDE], landing[MESSAGES * STRIDE];

static uint32_t length(unsigned i, uint32_t seed)
{
	return (i * 7919 + seed * 104729) % LONGEST;
}

/* SENDs, WRITEs with and without immediate, READs, by turns. */
static void post(unsigned i, uint32_t seed, unsigned *receives)
{
	static const uint8_t kinds[] = {SL_ROCE_KIND_SEND, SL_ROCE_KIND_WRITE, SL_ROCE_KIND_READ,
					SL_ROCE_KIND_WRITE};
	uint8_t kind = kinds[i % 4];
	uint32_t bytes = length(i, seed);
	uint8_t *at = kind == SL_ROCE_KIND_READ ? landing : source;
	struct sl_work work = rig_work(kind, at + i * STRIDE, bytes, i * STRIDE);

	work.id = i;
	work.immediate = i % 4 == 3;
	work.imm = i;
	fill(kind == SL_ROCE_KIND_READ ? rig.side[RIGHT].memory + i * STRIDE : source + i * STRIDE,
	     bytes, i + seed);
	if (i % 4 == 0 || i % 4 == 3) {
		rig_receive(i, landing + i * STRIDE, bytes);
		(*receives)++;
	}
	rig_send(&work);
}

static void verify(uint32_t seed)
{
	for (unsigned i = 0; i < MESSAGES; i++) {
		bool write = i % 2 == 1;

		assert_int_equal(rig.side[LEFT].done[i].id, i);
		assert_int_equal(rig.side[LEFT].done[i].status, SL_STATUS_SUCCESS);
		check_filled(write ? rig.side[RIGHT].memory + i * STRIDE : landing + i * STRIDE,
			     length(i, seed), i + seed);
	}
	for (unsigned i = 0; i < rig.side[RIGHT].count; i++) {
		const struct sl_completion *done = &rig.side[RIGHT].done[i];

		assert_int_equal(done->status, SL_STATUS_SUCCESS);
		assert_int_equal(done->bytes, length((unsigned)done->id, seed));
		if (done->immediate)
			assert_int_equal(done->imm, done->id);
		if (i)
			assert_true(done->id > done[-1].id);
	}
}

static void round_of(uint32_t seed, uint32_t pmtu)
{
	unsigned receives = 0;

	for (int i = 0; i < SIDES; i++) {
		network[i].random = seed * 2 + (unsigned)i;
		rig.attributes[i].pmtu = pmtu;
		rig.attributes[i].retries = 255;
	}
	memset(landing, 0, sizeof(landing));
	memset(rig.side[RIGHT].memory, 0, MEMORY_BYTES);
	rig_connect(SL_ROCE_RC);
	for (unsigned i = 0; i < MESSAGES; i++)
		post(i, seed, &receives);
	rig_run(MESSAGES, receives);
	verify(seed);
	rig_disconnect();
}

static void rounds(struct network faults)
{
	static const uint32_t pmtus[] = {256, 1024, 4096};

	for (int i = 0; i < SIDES; i++)
		network[i] = faults;
	for (uint32_t seed = 1; seed <= 6; seed++)
		round_of(seed, pmtus[seed % 3]);
	assert_true(network[LEFT].happened > 10);
}

static void test_rc_loss(void **state)
{
	rounds((struct network){.lose = 30});
}

static void test_rc_repeats(void **state)
{
	rounds((struct network){.repeat = 100});
}

static void test_rc_reordering(void **state)
{
	rounds((struct network){.hold = 30});
}

/* The first packets pass: until a peer's identifications are known, IPv4 lets one damaged packet in
 * 65536 through. */
static void test_rc_damage(void **state)
{
	rounds((struct network){.damage = 30, .after = rig.v6 ? 0 : 40});
	assert_true(dropped(LEFT, SL_ENDPOINT_DROP_ICRC) > 0);
	assert_true(dropped(RIGHT, SL_ENDPOINT_DROP_ICRC) > 0);
}

static void test_rc_everything(void **state)
{
	rounds((struct network){.lose = 20, .repeat = 20, .hold = 20, .damage = rig.v6 ? 20 : 0});
}

/* ---- UC ---- */

enum { UC_PACKETS = 5, UC_PMTU = 256, UC_BYTES = UC_PACKETS * UC_PMTU - 7, UC_MESSAGES = 200 };

static bool harmed[UC_MESSAGES];

/* Loses and damages, and remembers which messages that hit. */
static enum sl_endpoint_fault_kind harm(void *arg, const struct sl_roce_packet *packet)
{
	uint32_t first = rig.attributes[LEFT].send_psn;
	int32_t index = sl_roce_psn_diff(packet->psn, first) / UC_PACKETS;
	enum sl_endpoint_fault_kind fault = decide(arg, packet);

	if (fault != SL_ENDPOINT_FAULT_NONE && index >= 0 && index < UC_MESSAGES)
		harmed[index] = true;
	return fault;
}

static int set_up_uc(void **state)
{
	memset(harmed, 0, sizeof(harmed));
	set_up(state, true);
	rig_teardown(state);
	memset(&rig, 0, sizeof(rig));
	rig.v6 = true; /* damage is always seen */
	rig.side[LEFT].fault = (struct sl_endpoint_fault){harm, &network[LEFT]};
	network[LEFT] = (struct network){.random = 5, .lose = 15, .damage = 15};
	rig_open();
	rig.attributes[LEFT].pmtu = rig.attributes[RIGHT].pmtu = UC_PMTU;
	rig.options.receives = rig.options.sends = UC_MESSAGES;
	rig_connect(SL_ROCE_UC);
	return 0;
}

static void uc_send(uint8_t kind)
{
	static uint8_t bytes[UC_MESSAGES][UC_BYTES];

	for (unsigned i = 0; i < UC_MESSAGES; i++) {
		struct sl_work work = rig_work(kind, bytes[i], UC_BYTES, i * 2048);

		fill(bytes[i], UC_BYTES, i);
		work.immediate = true;
		work.imm = i;
		rig_receive(i, landing + i * 2048, UC_BYTES);
		rig_send(&work);
	}
}

/* Exactly the messages that nothing happened to, in order. */
static void test_uc_missing(void **state, uint8_t kind)
{
	unsigned whole = 0, seen = 0;

	uc_send(kind);
	rig_settle();
	for (unsigned i = 0; i < UC_MESSAGES; i++)
		whole += !harmed[i];
	assert_true(whole > 20 && whole < UC_MESSAGES - 20);
	rig_run(UC_MESSAGES, whole);
	for (unsigned i = 0; i < UC_MESSAGES; i++) {
		const struct sl_completion *done = &rig.side[RIGHT].done[seen];
		uint8_t *at = kind == SL_ROCE_KIND_SEND ? landing + seen * 2048
							: rig.side[RIGHT].memory + i * 2048;

		if (harmed[i])
			continue;
		assert_int_equal(done->imm, i);
		assert_int_equal(done->id, seen++);
		assert_int_equal(done->bytes, UC_BYTES);
		check_filled(at, UC_BYTES, i);
	}
	assert_int_equal(seen, whole);
}

static void test_uc_sends(void **state)
{
	test_uc_missing(state, SL_ROCE_KIND_SEND);
}

static void test_uc_writes(void **state)
{
	test_uc_missing(state, SL_ROCE_KIND_WRITE);
}

/* Repeated and late packets: some messages are lost, but what completes is right. */
static void test_uc_disorder(void **state)
{
	network[LEFT] = (struct network){.random = 6, .repeat = 30, .hold = 20};
	uc_send(SL_ROCE_KIND_SEND);
	rig_settle();
	assert_true(rig.side[RIGHT].count > UC_MESSAGES / 2);
	for (unsigned i = 0; i < rig.side[RIGHT].count; i++) {
		const struct sl_completion *done = &rig.side[RIGHT].done[i];

		assert_int_equal(done->bytes, UC_BYTES);
		check_filled(landing + i * 2048, UC_BYTES, done->imm);
	}
}

#define RC(name)                                                        \
	cmocka_unit_test_setup_teardown(name, set_up_v4, rig_teardown), \
		cmocka_unit_test_setup_teardown(name, set_up_v6, rig_teardown)
#define UC(name) cmocka_unit_test_setup_teardown(name, set_up_uc, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RC(test_rc_loss),   RC(test_rc_repeats),    RC(test_rc_reordering),
		RC(test_rc_damage), RC(test_rc_everything), UC(test_uc_sends),
		UC(test_uc_writes), UC(test_uc_disorder),
	};

	return cmocka_run_group_tests_name("endpoint_fault", tests, NULL, NULL);
}
