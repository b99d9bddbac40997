/* fault_test.c - the same seed hurts the same packets, about as many as asked for, and the log says
 * exactly which. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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
	memset(faults, 0, sizeof(*faults));
	faults->options = (struct sl_fault_options){
		.drop = drop, .duplicate = duplicate, .corrupt = corrupt, .fault_seed = seed};
}

/* The fate of packet i of a run of modules, frames and packets. */
static enum sl_fate fate_of(struct sl_faults *faults, uint32_t i)
{
	return sl_faults_fate(faults, (uint16_t)(i % 3), i / 3 / 16, i / 3 % 16);
}

static void nothing_asked_for_nothing_done(void **state)
{
	struct sl_fault fault;

	set(*state, 0, 0, 0, 1);
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(fate_of(*state, i), SL_FATE_SEND);
	assert_int_equal(sl_faults_drain(*state, &fault), 0);
}

static void a_rate_of_one_spares_nobody(void **state)
{
	static const enum sl_fate fates[] = {SL_FATE_DROP, SL_FATE_DUPLICATE, SL_FATE_CORRUPT};

	for (unsigned f = 0; f < 3; f++) {
		set(*state, f == 0, f == 1, f == 2, 1);
		for (uint32_t i = 0; i < 10000; i++)
			assert_int_equal(fate_of(*state, i), fates[f]);
	}
}

static void the_same_seed_hurts_the_same_packets(void **state)
{
	struct sl_faults *faults = *state;
	enum { N = 20000 };
	static uint8_t first[N];

	set(faults, 0.1, 0.1, 0.1, 7);
	for (uint32_t i = 0; i < N; i++)
		first[i] = (uint8_t)fate_of(faults, i);
	set(faults, 0.1, 0.1, 0.1, 7);
	for (uint32_t i = N; i-- > 0;) /* in any order */
		assert_int_equal(fate_of(faults, i), first[i]);
}

static void another_seed_hurts_others(void **state)
{
	unsigned both = 0, hurt = 0;
	struct sl_faults *other = calloc(1, sizeof(*other));

	set(*state, 0.1, 0, 0, 1);
	set(other, 0.1, 0, 0, 2);
	for (uint32_t i = 0; i < 20000; i++) {
		bool a = fate_of(*state, i) == SL_FATE_DROP, b = fate_of(other, i) == SL_FATE_DROP;

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

		count[fate_of(*state, i)]++;
		while (sl_faults_drain(*state, &fault))
			;
	}
	/* More than six standard deviations to each side. */
	assert_in_range(count[SL_FATE_DROP], 0.045 * N, 0.055 * N);
	assert_in_range(count[SL_FATE_DUPLICATE], 0.017 * N, 0.023 * N);
	assert_in_range(count[SL_FATE_CORRUPT], 0.094 * N, 0.106 * N);
}

/* How often a fault hits when only one of module, sequence and packet changes. */
static unsigned drops_along(struct sl_faults *faults, unsigned m, unsigned s, unsigned p)
{
	unsigned drops = 0;

	for (unsigned i = 0; i < 10000; i++)
		drops += sl_faults_fate(faults, (uint16_t)(m * i), s * i, p * i) == SL_FATE_DROP;
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
	struct sl_fault fault;

	set(faults, 0.1, 0.1, 0.1, 5);
	for (uint32_t i = 0; i < 50000; i++) {
		enum sl_fate fate = fate_of(faults, i);

		assert_int_equal(sl_faults_drain(faults, &fault), fate != SL_FATE_SEND);
		if (fate == SL_FATE_SEND)
			continue;
		assert_int_equal(fault.fate, fate);
		assert_int_equal(fault.module, i % 3);
		assert_int_equal(fault.sequence, i / 3 / 16);
		assert_int_equal(fault.packet, i / 3 % 16);
	}
}

static void a_full_log_injects_nothing_more(void **state)
{
	struct sl_faults *faults = *state;
	struct sl_fault fault;
	unsigned drained = 0;

	set(faults, 1, 0, 0, 1);
	for (uint32_t i = 0; i < SL_FAULT_LOG; i++)
		assert_int_equal(fate_of(faults, i), SL_FATE_DROP);
	assert_int_equal(fate_of(faults, SL_FAULT_LOG), SL_FATE_SEND);
	assert_int_equal(sl_faults_drain(faults, &fault), 1); /* room for one */
	assert_int_equal(fate_of(faults, SL_FAULT_LOG), SL_FATE_DROP);
	assert_int_equal(fate_of(faults, SL_FAULT_LOG + 1), SL_FATE_SEND);
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
		if (fate_of(faults, i) == SL_FATE_DROP)
			sum += i / 3 / 16 * 16 + i / 3 % 16 + i % 3;
	while (sl_faults_fate(faults, UINT16_MAX, 0, 0) != SL_FATE_DROP)
		sched_yield();
	pthread_join(thread, &seen);
	assert_int_equal((uintptr_t)seen, sum);
}

static void fates_have_names(void **state)
{
	assert_string_equal(sl_fate_name(SL_FATE_SEND), "send");
	assert_string_equal(sl_fate_name(SL_FATE_DROP), "drop");
	assert_string_equal(sl_fate_name(SL_FATE_DUPLICATE), "duplicate");
	assert_string_equal(sl_fate_name(SL_FATE_CORRUPT), "corrupt");
}

static void the_options_default_to_no_faults(void **state)
{
	struct sl_fault_options options;
	char why[128];

	memset(&options, 0xff, sizeof(options));
	sl_options_defaults(sl_fault_options, &options);
	assert_true(options.drop == 0 && options.duplicate == 0 && options.corrupt == 0);
	assert_string_equal(options.fault_log, "");
	assert_int_not_equal(sl_option_set(sl_option_find(sl_fault_options, "drop"), &options,
					   "1.1", why, sizeof(why)),
			     0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(nothing_asked_for_nothing_done),
		CASE(a_rate_of_one_spares_nobody),
		CASE(the_same_seed_hurts_the_same_packets),
		CASE(another_seed_hurts_others),
		CASE(rates_are_about_what_was_asked_for),
		CASE(module_sequence_and_packet_each_decide),
		CASE(the_log_is_what_was_done),
		CASE(a_full_log_injects_nothing_more),
		CASE(the_log_may_be_drained_by_another_thread),
		CASE(fates_have_names),
		CASE(the_options_default_to_no_faults),
	};

	return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
