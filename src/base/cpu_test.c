/* cpu_test.c - lists of cpus, and the order of the cpus of machines that do not exist. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/sysfile.h"
#include "lib/fake_host.h"

static int begin(void **state)
{
	fake_begin();
	return 0;
}

static int end(void **state)
{
	fake_end();
	return 0;
}

static void expect_order(int node, const char *wanted)
{
	char text[256] = "";
	struct sl_cpus cpus;
	int order[SL_CPUS];
	size_t used = 0;
	unsigned n;

	sl_cpus_read(fake_root, &cpus);
	n = sl_cpus_order(&cpus, node, order);
	for (unsigned i = 0; i < n; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d", i ? " " : "",
					 order[i]);
	assert_string_equal(text, wanted);
}

static void expect_list(const char *text, const char *wanted)
{
	char back[256];
	cpu_set_t set;

	assert_int_equal(sl_cpu_list_parse(text, &set), 0);
	sl_cpu_list_format(&set, back, sizeof(back));
	assert_string_equal(back, wanted);
}

static void lists_are_read_and_written(void **state)
{
	expect_list("", "");
	expect_list("0", "0");
	expect_list("0-3,8", "0-3,8");
	expect_list("8,3,2,1,0", "0-3,8");
	expect_list("0, 2, 4-4", "0,2,4");
	expect_list("1023", "1023");
}

static void what_is_no_list_is_refused(void **state)
{
	static const char *const bad[] = {"a",	 "1-",	  "-1",	 "3-2",	 "1024",       "0-1024",
					  "0x1", "1 2 x", "1;2", "0--2", "99999999999"};
	cpu_set_t set;
	int number[SL_CPUS];

	CPU_ZERO(&set);
	CPU_SET(7, &set);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(sl_cpu_list_parse(bad[i], &set), -EINVAL);
		assert_int_equal(sl_cpu_list_numbers(bad[i], number), -EINVAL);
	}
	assert_int_equal(CPU_COUNT(&set), 1); /* outputs are set only on success */
}

static void numbers_keep_their_order(void **state)
{
	int number[SL_CPUS];

	assert_int_equal(sl_cpu_list_numbers("6,2-4,0", number), 5);
	assert_int_equal(number[0], 6);
	assert_int_equal(number[1], 2);
	assert_int_equal(number[3], 4);
	assert_int_equal(number[4], 0);
}

static void a_list_too_long_for_its_text_is_cut(void **state)
{
	char text[8];
	cpu_set_t set;

	assert_int_equal(sl_cpu_list_parse("0,2,4,6,8,10,12", &set), 0);
	sl_cpu_list_format(&set, text, sizeof(text));
	assert_true(strlen(text) < sizeof(text));
}

static void one_node_whole_cores_cpu_0_last(void **state)
{
	fake_machine(1, 4, 1);
	expect_order(SL_CPU_NO_NODE, "1 2 3 0");
}

static void second_threads_come_after_all_cores(void **state)
{
	fake_machine(1, 3, 2);
	expect_order(0, "1 2 0 3 4 5");
}

static void near_comes_before_far(void **state)
{
	fake_machine(2, 3, 2);
	expect_order(0, "1 2 0 3 4 5 6 7 8 9 10 11");
	expect_order(1, "3 4 5 1 2 0 9 10 11 6 7 8");
	expect_order(SL_CPU_NO_NODE, "1 2 0 3 4 5 6 7 8 9 10 11");
}

static void distances_decide_what_is_near(void **state)
{
	fake_machine(3, 2, 1);
	fake_file("/sys/devices/system/node/node2/distance", "12 32 10");
	expect_order(2, "4 5 1 0 2 3");
	fake_file("/sys/devices/system/node/node2/distance", "32 12 10");
	expect_order(2, "4 5 2 3 1 0");
}

static void only_what_is_allowed(void **state)
{
	fake_machine(2, 4, 1);
	fake_allow("2-5");
	expect_order(1, "4 5 2 3");
	expect_order(0, "2 3 4 5");
	fake_allow("0,99"); /* beyond the machine */
	expect_order(0, "0");
}

static void isolated_ones_first(void **state)
{
	fake_machine(2, 4, 1);
	fake_file("/sys/devices/system/cpu/isolated", "3,6-7");
	expect_order(0, "3 6 7 1 2 0 4 5");
}

static void an_odd_node_is_no_node(void **state)
{
	fake_machine(2, 2, 1);
	expect_order(9999, "1 0 2 3");
}

static void without_sys_there_is_one_plain_cpu(void **state)
{
	struct sl_cpus cpus;

	sl_cpus_read(fake_root, &cpus);
	assert_int_equal(cpus.nodes, 1);
	expect_order(0, "0");
}

static void this_host_has_what_the_kernel_lets_us_use(void **state)
{
	struct sl_cpus cpus;
	cpu_set_t kernel;
	int order[SL_CPUS];

	assert_int_equal(sched_getaffinity(0, sizeof(kernel), &kernel), 0);
	sl_cpus_read("", &cpus);
	assert_true(CPU_EQUAL(&cpus.allowed, &kernel));
	assert_int_equal(sl_cpus_order(&cpus, SL_CPU_NO_NODE, order), CPU_COUNT(&kernel));
	assert_true(cpus.nodes >= 1);
}

/* As the kernel lists them: data, instructions, both, and the last one. */
static void the_last_cache_is_that_of_the_highest_level(void **state)
{
	static const char *const level[] = {"1", "1", "3", "2"};
	static const char *const size[] = {"48K", "64K", "32768K", "1024K"};
	char path[96];

	assert_true(sl_cpu_last_cache_bytes(fake_root) == 0);
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
		fake_file(path, level[i]);
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
		fake_file(path, size[i]);
	}
	assert_true(sl_cpu_last_cache_bytes(fake_root) == 32 << 20);
}

static void small_files_are_read(void **state)
{
	char text[32];
	long long number = 5;

	fake_file("/sys/a/number", "-17 and more");
	fake_file("/sys/a/word", "word");
	fake_file("/sys/a/empty", "");
	fake_file("/proc/status", "Key:\t value one\nKeyTwo: two\nMax of three   3\nLast:");
	assert_true(sl_sysfile_number(fake_root, &number, "/sys/%s/number", "a"));
	assert_int_equal(number, -17);
	assert_false(sl_sysfile_number(fake_root, &number, "/sys/a/word"));
	assert_false(sl_sysfile_number(fake_root, &number, "/sys/a/none"));
	assert_int_equal(number, -17);
	assert_true(sl_sysfile_line(fake_root, text, sizeof(text), "/sys/a/word"));
	assert_string_equal(text, "word");
	assert_false(sl_sysfile_line(fake_root, text, sizeof(text), "/sys/a/empty"));
	assert_true(sl_sysfile_value(fake_root, "/proc/status", "Key", text, sizeof(text)));
	assert_string_equal(text, "value one");
	assert_true(sl_sysfile_value(fake_root, "/proc/status", "KeyTwo", text, sizeof(text)));
	assert_string_equal(text, "two");
	assert_true(sl_sysfile_value(fake_root, "/proc/status", "Max of three", text, 32));
	assert_string_equal(text, "3");
	assert_true(sl_sysfile_value(fake_root, "/proc/status", "Last", text, sizeof(text)));
	assert_string_equal(text, "");
	assert_false(sl_sysfile_value(fake_root, "/proc/status", "Ke", text, sizeof(text)));
	assert_false(sl_sysfile_value(fake_root, "/proc/none", "Key", text, sizeof(text)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_read_and_written),
		cmocka_unit_test(what_is_no_list_is_refused),
		cmocka_unit_test(numbers_keep_their_order),
		cmocka_unit_test(a_list_too_long_for_its_text_is_cut),
		cmocka_unit_test_setup_teardown(one_node_whole_cores_cpu_0_last, begin, end),
		cmocka_unit_test_setup_teardown(second_threads_come_after_all_cores, begin, end),
		cmocka_unit_test_setup_teardown(near_comes_before_far, begin, end),
		cmocka_unit_test_setup_teardown(distances_decide_what_is_near, begin, end),
		cmocka_unit_test_setup_teardown(only_what_is_allowed, begin, end),
		cmocka_unit_test_setup_teardown(isolated_ones_first, begin, end),
		cmocka_unit_test_setup_teardown(an_odd_node_is_no_node, begin, end),
		cmocka_unit_test_setup_teardown(without_sys_there_is_one_plain_cpu, begin, end),
		cmocka_unit_test(this_host_has_what_the_kernel_lets_us_use),
		cmocka_unit_test_setup_teardown(the_last_cache_is_that_of_the_highest_level, begin,
						end),
		cmocka_unit_test_setup_teardown(small_files_are_read, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
