/* fault_test.c - the same seed hurts the same packets, about as many as asked for, and the log says
 * exactly which. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/fault.h"

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct sl_faults));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void set(struct sl_faults *faults, double drop, double duplicate, double corrupt,
		uint64_t seed)
{
	const struct sl_fault_options options = {
		.drop = drop, .duplicate = duplicate, .corrupt = corrupt, .fault_seed = seed};

	sl_faults_init(faults, &options);
}

/* The fault of packet i of a run of modules, frames and packets. */
static enum sl_packet_fault fault_of(struct sl_faults *faults, uint32_t i)
{
	return sl_faults_of_packet(faults, (uint16_t)(i % 3), i / 3 / 16, i / 3 % 16);
}

static void nothing_asked_for_nothing_done(void **state)
{
	struct sl_fault fault;

	set(*state, 0, 0, 0, 1);
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(fault_of(*state, i), SL_PACKET_FAULT_NONE);
	assert_int_equal(sl_faults_drain(*state, &fault), 0);
}

/* A NIC, which cannot hurt packets, is not asked to. */
static void what_is_done_to_blocks_asks_nothing_of_the_link(void **state)
{
	const struct sl_fault_options blocks = {.wrong_key = 1,
						.spoil = 1,
						.skip = 1,
						.delay = 1,
						.restart_after = 1,
						.drift_ppm = 1},
				      packets = {.burst = 0.1}, none = {0};

	assert_true(sl_fault_options_any(&blocks));
	assert_false(sl_fault_options_of_packets(&blocks));
	assert_true(sl_fault_options_of_packets(&packets));
	assert_false(sl_fault_options_of_packets(&none));
}

static void a_rate_of_one_spares_nobody(void **state)
{
	static const enum sl_packet_fault packet_faults[] = {
		SL_PACKET_FAULT_DROP, SL_PACKET_FAULT_DUPLICATE, SL_PACKET_FAULT_CORRUPT};

	for (unsigned f = 0; f < 3; f++) {
		set(*state, f == 0, f == 1, f == 2, 1);
		for (uint32_t i = 0; i < 10000; i++)
			assert_int_equal(fault_of(*state, i), packet_faults[f]);
	}
}

static void the_same_seed_hurts_the_same_packets(void **state)
{
	struct sl_faults *faults = *state;
	enum { N = 20000 };
	static uint8_t first[N];

	set(faults, 0.1, 0.1, 0.1, 7);
	for (uint32_t i = 0; i < N; i++)
		first[i] = (uint8_t)fault_of(faults, i);
	set(faults, 0.1, 0.1, 0.1, 7);
	for (uint32_t i = N; i-- > 0;) /* in any order */
		assert_int_equal(fault_of(faults, i), first[i]);
}

static void another_seed_hurts_others(void **state)
{
	unsigned both = 0, hurt = 0;
	struct sl_faults *other = calloc(1, sizeof(*other));

	set(*state, 0.1, 0, 0, 1);
	set(other, 0.1, 0, 0, 2);
	for (uint32_t i = 0; i < 20000; i++) {
		bool a = fault_of(*state, i) == SL_PACKET_FAULT_DROP,
		     b = fault_of(other, i) == SL_PACKET_FAULT_DROP;

		hurt += a;
		both += a && b;
	}
	free(other);
	assert_in_range(both, hurt / 20, hurt / 5); /* about one in ten, by chance */
}

static void rates_are_about_what_was_asked_for(void **state)
{
	enum { N = 200000 };
	unsigned count[4] = {0};

	set(*state, 0.05, 0.02, 0.1, 42);
	for (uint32_t i = 0; i < N; i++) {
		struct sl_fault fault;

		count[fault_of(*state, i)]++;
		while (sl_faults_drain(*state, &fault))
			;
	}
	/* More than six standard deviations to each side. */
	assert_in_range(count[SL_PACKET_FAULT_DROP], 0.045 * N, 0.055 * N);
	assert_in_range(count[SL_PACKET_FAULT_DUPLICATE], 0.017 * N, 0.023 * N);
	assert_in_range(count[SL_PACKET_FAULT_CORRUPT], 0.094 * N, 0.106 * N);
}

/* How often a fault hits when only one of module, sequence and packet changes. */
static unsigned drops_along(struct sl_faults *faults, unsigned m, unsigned s, unsigned p)
{
	unsigned drops = 0;

	for (unsigned i = 0; i < 10000; i++)
		drops += sl_faults_of_packet(faults, (uint16_t)(m * i), s * i, p * i) ==
			 SL_PACKET_FAULT_DROP;
	return drops;
}

static void module_sequence_and_packet_each_decide(void **state)
{
	set(*state, 0.5, 0, 0, 3);
	assert_in_range(drops_along(*state, 1, 0, 0), 4500, 5500);
	assert_in_range(drops_along(*state, 0, 1, 0), 4500, 5500);
	assert_in_range(drops_along(*state, 0, 0, 1), 4500, 5500);
}

static void the_log_is_what_was_done(void **state)
{
	struct sl_faults *faults = *state;
	struct sl_fault logged;

	set(faults, 0.1, 0.1, 0.1, 5);
	for (uint32_t i = 0; i < 50000; i++) {
		enum sl_packet_fault fault = fault_of(faults, i);

		assert_int_equal(sl_faults_drain(faults, &logged), fault != SL_PACKET_FAULT_NONE);
		if (fault == SL_PACKET_FAULT_NONE)
			continue;
		assert_int_equal(logged.kind, fault);
		assert_int_equal(logged.module, i % 3);
		assert_int_equal(logged.sequence, i / 3 / 16);
		assert_int_equal(logged.packet, i / 3 % 16);
	}
}

static void a_full_log_injects_nothing_more(void **state)
{
	struct sl_faults *faults = *state;
	struct sl_fault fault;
	unsigned drained = 0;

	set(faults, 1, 0, 0, 1);
	for (uint32_t i = 0; i < SL_FAULT_LOG; i++)
		assert_int_equal(fault_of(faults, i), SL_PACKET_FAULT_DROP);
	assert_int_equal(fault_of(faults, SL_FAULT_LOG), SL_PACKET_FAULT_NONE);
	assert_int_equal(sl_faults_drain(faults, &fault), 1); /* room for one */
	assert_int_equal(fault_of(faults, SL_FAULT_LOG), SL_PACKET_FAULT_DROP);
	assert_int_equal(fault_of(faults, SL_FAULT_LOG + 1), SL_PACKET_FAULT_NONE);
	while (sl_faults_drain(faults, &fault))
		drained++;
	assert_int_equal(drained, SL_FAULT_LOG);
}

static void *drain_thread(void *arg)
{
	struct sl_faults *faults = arg;
	uintptr_t sum = 0;
	struct sl_fault fault;

	for (;;) {
		if (!sl_faults_drain(faults, &fault)) {
			sched_yield();
			continue;
		}
		if (fault.module == UINT16_MAX)
			return (void *)sum;
		sum += fault.sequence * 16 + fault.packet + fault.module;
	}
}

static void the_log_may_be_drained_by_another_thread(void **state)
{
	struct sl_faults *faults = *state;
	uintptr_t sum = 0;
	pthread_t thread;
	void *seen;

	set(faults, 1, 0, 0, 1);
	assert_int_equal(pthread_create(&thread, NULL, drain_thread, faults), 0);
	for (uint32_t i = 0; i < 3 * SL_FAULT_LOG; i++)
		if (fault_of(faults, i) == SL_PACKET_FAULT_DROP)
			sum += i / 3 / 16 * 16 + i / 3 % 16 + i % 3;
	while (sl_faults_of_packet(faults, UINT16_MAX, 0, 0) != SL_PACKET_FAULT_DROP)
		sched_yield();
	pthread_join(thread, &seen);
	assert_int_equal((uintptr_t)seen, sum);
}

static void faults_have_names(void **state)
{
	assert_string_equal(sl_fault_name(SL_FAULT_DROP), "drop");
	assert_string_equal(sl_fault_name(SL_FAULT_REORDER), "reorder");
	for (unsigned k = 0; k < SL_FAULT_KINDS; k++)
		for (unsigned i = 0; i < k; i++)
			assert_string_not_equal(sl_fault_name(k), sl_fault_name(i));
}

static void the_options_default_to_no_faults(void **state)
{
	struct sl_fault_options options;
	char why[128];

	memset(&options, 0xff, sizeof(options));
	sl_options_defaults(sl_fault_options, &options);
	assert_false(sl_fault_options_any(&options));
	assert_true(options.drop == 0 && options.duplicate == 0 && options.corrupt == 0);
	assert_string_equal(options.fault_log, "");
	assert_int_not_equal(sl_option_set(sl_option_find(sl_fault_options, "drop"), &options,
					   "1.1", why, sizeof(why)),
			     0);
}

/* ---- the other kinds ---- */

static void begin(struct sl_faults *faults, const struct sl_fault_options *options)
{
	struct sl_fault_options o = *options;

	o.fault_seed = 7;
	sl_faults_init(faults, &o);
}

static void only_chosen_modules_are_hurt(void **state)
{
	static const struct {
		const char *text;
		uint64_t modules;
	} cases[] = {{"", UINT64_MAX}, {"0", 1}, {"2", 4}, {"1-3", 14}, {"63", UINT64_C(1) << 63}};

	for (unsigned i = 0; i < 5; i++) {
		struct sl_fault_options o = {.drop = 1};

		snprintf(o.fault_modules, sizeof(o.fault_modules), "%s", cases[i].text);
		begin(*state, &o);
		for (uint16_t m = 0; m < 64; m++)
			assert_int_equal(sl_faults_of_packet(*state, m, 0, 0) ==
						 SL_PACKET_FAULT_DROP,
					 cases[i].modules >> m & 1);
	}
}

static void a_burst_goes_on_over_the_end_of_a_block_in_its_own_module(void **state)
{
	struct sl_fault_options o = {.burst = 0.01, .burst_packets = 40};
	struct sl_fault fault;
	unsigned left = 0, bursts = 0;

	begin(*state, &o);
	for (uint32_t i = 0; i < 20000; i++) {
		bool dropped = sl_faults_of_packet(*state, 1, i / 16, i % 16) ==
			       SL_PACKET_FAULT_DROP;

		bursts += dropped && !left;
		left = dropped ? (left ? left : 40) - 1 : left;
		assert_true(dropped || left == 0);
		if (!dropped)
			continue;
		assert_int_equal(sl_faults_drain(*state, &fault), 1);
		assert_int_equal(fault.kind, SL_FAULT_BURST);
	}
	assert_in_range(bursts, 90, 190); /* one per 100 packets outside of bursts */
	while (sl_faults_of_packet(*state, 1, 5000, 0) != SL_PACKET_FAULT_DROP)
		;
	assert_int_equal(sl_faults_of_packet(*state, 0, 5001, 0), SL_PACKET_FAULT_NONE);
}

static void kinds_strike_independently(void **state)
{
	struct sl_fault_options o = {.skip = 0.5, .delay = 0.5, .wrong_key = 0.5};
	unsigned both = 0, keys = 0;

	begin(*state, &o);
	for (uint64_t k = 0; k < 10000; k++) {
		bool skip = sl_faults_skip(*state, 0, k, k), delay = sl_faults_delay(*state, 0, k);

		both += skip && delay;
		keys += sl_faults_wrong_key(*state, 0, k, 0) != skip;
	}
	assert_in_range(both, 2250, 2750);
	assert_in_range(keys, 4700, 5300);
}

static void a_spoilt_bit_lies_in_the_block_and_the_log_says_in_which_packet(void **state)
{
	struct sl_plan plan = {.message = SL_MESSAGE_PACKET,
			       .pmtu = 256,
			       .packets = 5,
			       .block_bytes = 1000 + 64,
			       .module = 3};
	struct sl_fault_options o = {.spoil = 1};
	unsigned records = 0;

	begin(*state, &o);
	for (uint64_t k = 0; k < 5000; k++) {
		struct sl_fault fault;
		uint64_t bit;

		assert_true(sl_faults_spoil(*state, &plan, k, &bit));
		assert_int_equal(sl_faults_drain(*state, &fault), 1);
		assert_true(bit < 8 * plan.block_bytes);
		assert_int_equal(fault.packet, bit / 8 / 256);
		assert_int_equal(fault.kind,
				 bit / 8 < 1000 ? SL_FAULT_SPOIL : SL_FAULT_SPOIL_RECORD);
		assert_int_equal(fault.module, 3);
		records += bit / 8 >= 1000;
	}
	assert_in_range(records, 200, 400); /* 64 bytes in 1064 */
}

static void clocks_drift_apart_module_by_module(void **state)
{
	struct sl_fault_options o = {.drift_ppm = 100, .clock_offset_ns = -1000};
	struct sl_fault fault;

	begin(*state, &o);
	assert_int_equal(sl_faults_clock(*state, 0, 0, 1000000000), 1000000000);
	assert_int_equal(sl_faults_drain(*state, &fault), 0);
	assert_int_equal(sl_faults_clock(*state, 1, 4, 1000000000), 1000099000);
	assert_int_equal(sl_faults_clock(*state, 2, 4, 1000000000), 1000198000);
	assert_int_equal(sl_faults_clock(*state, 1, 5, 100), 0); /* not before its beginning */
	assert_int_equal(sl_faults_drain(*state, &fault), 1);
	assert_int_equal(fault.kind, SL_FAULT_DRIFT);
	assert_int_equal(fault.sequence, 4);
	assert_int_equal(sl_faults_drain(*state, &fault), 1);
	assert_int_equal(sl_faults_drain(*state, &fault), 0); /* once per module */
}

static void a_clock_may_drift_or_be_off_alone(void **state)
{
	struct sl_fault_options off = {.clock_offset_ns = 500}, drift = {.drift_ppm = 10};

	begin(*state, &off);
	assert_int_equal(sl_faults_clock(*state, 1, 4, 1000000000), 1000000500);
	assert_int_equal(sl_faults_clock(*state, 0, 4, 1000000000), 1000000000);
	begin(*state, &drift);
	assert_int_equal(sl_faults_clock(*state, 1, 4, 1000000000), 1000010000);
	assert_int_equal(sl_faults_clock(*state, 0, 4, 1000000000), 1000000000);
}

static void a_front_end_restarts_as_a_whole_and_not_alone(void **state)
{
	struct sl_fault_options o = {.restart_after = 5, .fault_modules = "1-2"};

	assert_int_equal(sl_faults_restart_of(&o, 1, 3, 4), 1);
	assert_int_equal(sl_faults_restart_of(&o, 2, 3, 4), 1);
	assert_int_equal(sl_faults_restart_of(&o, 0, 1, 4), 0);
	assert_int_equal(sl_faults_restart_of(&o, 0, 2, 4), -EINVAL);
	o.fault_modules[0] = 0;
	assert_int_equal(sl_faults_restart_of(&o, 0, 4, 4), -EINVAL); /* nobody would go on */
	o.restart_after = 0;
	assert_int_equal(sl_faults_restart_of(&o, 0, 4, 4), 0);
}

static void what_cannot_be_done_is_refused_with_its_name(void **state)
{
	const struct sl_link nic = {.name = "nic"};
	const struct sl_link wire = {.name = "wire", .packet_faults = ~0u};
	const struct {
		struct sl_fault_options options;
		const struct sl_link *link;
		uint16_t service, operation;
		const char *says; /* NULL: it can be done */
	} cases[] = {
		{{.drop = 1}, &wire, SL_SERVICE_UC, SL_OPERATION_WRITE, NULL},
		{{.spoil = 1, .skip = 1}, &nic, SL_SERVICE_UC, SL_OPERATION_WRITE, NULL},
		{{.drop = 0.1}, &nic, SL_SERVICE_UC, SL_OPERATION_WRITE, "drop: link 'nic'"},
		{{.burst = 0.1}, &nic, SL_SERVICE_UC, SL_OPERATION_WRITE, "burst"},
		{{.reorder = 0.1}, &nic, SL_SERVICE_UC, SL_OPERATION_WRITE, "reorder"},
		{{.drop = 0.7, .burst = 0.7}, &wire, SL_SERVICE_UC, SL_OPERATION_WRITE, "all"},
		{{.skip = 0.1}, &wire, SL_SERVICE_RC, SL_OPERATION_WRITE, "skip"},
		{{.wrong_key = 0.1}, &wire, SL_SERVICE_UC, SL_OPERATION_SEND, "wrong_key"},
		{{.restart_after = 1}, &wire, SL_SERVICE_UC, SL_OPERATION_WRITE, "restart"},
		{{.wrong_key = 0.1}, &wire, SL_SERVICE_RC, SL_OPERATION_WRITE, NULL},
		{{.delay = 1, .delay_frames = 3}, &wire, SL_SERVICE_UC, SL_OPERATION_WRITE, NULL},
		{{.delay = 1, .delay_frames = 4}, &wire, SL_SERVICE_UC, SL_OPERATION_WRITE, "(3)"},
		{{.fault_modules = "64"}, &wire, SL_SERVICE_UC, SL_OPERATION_WRITE, "'64'"},
		{{.fault_modules = "3-2"}, &wire, SL_SERVICE_UC, SL_OPERATION_WRITE, "'3-2'"},
		{{.fault_modules = "-1"}, &wire, SL_SERVICE_UC, SL_OPERATION_WRITE, "'-1'"},
		{{.fault_modules = "4"},
		 &wire,
		 SL_SERVICE_UC,
		 SL_OPERATION_WRITE,
		 "there are modules 0 to 3"},
		{{.fault_modules = "1,2"}, &wire, SL_SERVICE_UC, SL_OPERATION_WRITE, "'1,2'"},
	};
	char why[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct sl_fault_setting setting = {.link = cases[i].link,
							 .service = cases[i].service,
							 .operation = cases[i].operation,
							 .modules = 4,
							 .by_sequence = true,
							 .slack = 3};

		unsigned broken = 0;

		for (unsigned rule = 0; rule < SL_FAULT_RULES; rule++)
			broken += sl_fault_rule_broken(&cases[i].options, &setting, rule, why,
						       sizeof(why));
		assert_int_equal(broken, cases[i].says != NULL);
		if (cases[i].says)
			assert_non_null(strstr(why, cases[i].says));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(nothing_asked_for_nothing_done),
		CASE(what_is_done_to_blocks_asks_nothing_of_the_link),
		CASE(a_rate_of_one_spares_nobody),
		CASE(the_same_seed_hurts_the_same_packets),
		CASE(another_seed_hurts_others),
		CASE(rates_are_about_what_was_asked_for),
		CASE(module_sequence_and_packet_each_decide),
		CASE(the_log_is_what_was_done),
		CASE(a_full_log_injects_nothing_more),
		CASE(the_log_may_be_drained_by_another_thread),
		CASE(faults_have_names),
		CASE(the_options_default_to_no_faults),
		CASE(only_chosen_modules_are_hurt),
		CASE(a_burst_goes_on_over_the_end_of_a_block_in_its_own_module),
		CASE(kinds_strike_independently),
		CASE(a_spoilt_bit_lies_in_the_block_and_the_log_says_in_which_packet),
		CASE(clocks_drift_apart_module_by_module),
		CASE(a_clock_may_drift_or_be_off_alone),
		CASE(a_front_end_restarts_as_a_whole_and_not_alone),
		CASE(what_cannot_be_done_is_refused_with_its_name),
	};

	return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
