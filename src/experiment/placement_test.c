/* placement_test.c - data threads to cpus, on machines that do not exist. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "experiment/placement.h"
#include "lib/capture.h"
#include "lib/fake_host.h"

static struct sl_experiment *e;

/* udp on lo, one worker, an emulator on this host: link-0 dispatcher worker-0 settler front-end. */
static void open_transfer(const char *more, const char *transfer)
{
	char path[64];
	int fd = memfd_create("experiment", MFD_CLOEXEC);

	/* Numbers of threads that do not depend on the host, unless a case has its own. */
	dprintf(fd, "detector: {kind: pattern, modules: 4}\nsinks: ['null']\n%s%s%s%s", more,
		strstr(more, "link:") ? "" : "link: {pollers: 1}\n",
		strstr(more, "unit:") ? "" : "unit: {workers: 1}\n",
		strstr(more, "threads:") ? "" : "threads: {senders: 1}\n");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(sl_experiment_open(path, transfer, NULL, 0, &e), 0);
	close(fd);
}

static void open_experiment(const char *more)
{
	open_transfer(more, NULL);
}

static int begin(void **state)
{
	fake_begin();
	return 0;
}

static int end(void **state)
{
	fake_end();
	sl_experiment_close(e);
	return 0;
}

static void expect_cpus(const struct sl_placement *p, const char *wanted)
{
	char text[256] = "";
	size_t used = 0;

	for (unsigned i = 0; p->pinned && i < p->threads; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d", i ? " " : "",
					 p->cpu[i]);
	assert_string_equal(text, wanted);
}

static void expect_receiver(const char *wanted)
{
	struct sl_placement p;

	assert_int_equal(sl_placement_receiver(e, fake_root, &p), 0);
	expect_cpus(&p, wanted);
}

static void expect_source(uint32_t first, uint32_t last, const char *wanted)
{
	struct sl_placement p;

	assert_int_equal(sl_placement_source(e, fake_root, first, last + 1, &p), 0);
	expect_cpus(&p, wanted);
}

static int cpu_of(const struct sl_placement *p, enum sl_role role, unsigned index)
{
	cpu_set_t set;

	if (!sl_placement_of(p, role, index, &set))
		return -1;
	assert_int_equal(CPU_COUNT(&set), 1);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			return i;
	return -1;
}

static void with_enough_cpus_everybody_has_one(void **state)
{
	struct sl_placement p;

	fake_machine(1, 8, 1);
	open_experiment("link: {pollers: 2}\nunit: {workers: 2}\n");
	assert_int_equal(sl_placement_receiver(e, fake_root, &p), 0);
	assert_true(p.pinned && !p.crowded && !p.shared);
	assert_int_equal(p.line, 7);
	assert_int_equal(cpu_of(&p, SL_ROLE_LINK, 0), 1);
	assert_int_equal(cpu_of(&p, SL_ROLE_LINK, 1), 2);
	assert_int_equal(cpu_of(&p, SL_ROLE_DISPATCHER, 0), 3);
	assert_int_equal(cpu_of(&p, SL_ROLE_WORKER, 0), 4);
	assert_int_equal(cpu_of(&p, SL_ROLE_WORKER, 1), 5);
	assert_int_equal(cpu_of(&p, SL_ROLE_WORKER, 2), -1); /* of whom we did not know */
	assert_int_equal(cpu_of(&p, SL_ROLE_SETTLER, 0), 6);
	assert_int_equal(p.node, -1); /* there is but one */
}

static void the_front_end_comes_after_the_receiver(void **state)
{
	struct sl_placement p;

	fake_machine(1, 8, 1);
	open_experiment("emulate: local\n");
	expect_receiver("1 2 3 4");
	assert_int_equal(sl_placement_source(e, fake_root, 0, 4, &p), 0);
	assert_int_equal(cpu_of(&p, SL_ROLE_SOURCE, 0), 5);
}

static void front_ends_that_share_the_modules_do_not_meet(void **state)
{
	fake_machine(1, 9, 1);
	open_experiment("");
	expect_receiver("1 2 3 4");
	expect_source(0, 1, "5");
	expect_source(2, 2, "7");
	expect_source(3, 3, "8");
}

static void a_front_end_elsewhere_has_the_host_for_itself(void **state)
{
	fake_machine(1, 4, 1);
	open_experiment("control: {address: 192.0.2.1, token: t}\n"
			"link: {pollers: 1, listen: 192.0.2.1, source: 192.0.2.2}\n");
	expect_source(0, 3, "1");
	expect_receiver(""); /* 4 threads, and one cpu for the rest of the host */
	fake_machine(1, 5, 1);
	expect_receiver("1 2 3 4");
}

static void with_no_cpu_to_spare_nobody_is_pinned(void **state)
{
	struct sl_placement p;
	struct sl_idle idle;
	char text[256];

	fake_machine(1, 2, 1);
	open_experiment("");
	assert_int_equal(sl_placement_receiver(e, fake_root, &p), 0);
	assert_true(!p.pinned && !p.shared && p.crowded);
	assert_int_equal(cpu_of(&p, SL_ROLE_LINK, 0), -1);
	sl_placement_describe(&p, text, sizeof(text));
	assert_non_null(strstr(text, "5 data threads"));
	assert_non_null(strstr(text, "2 cpus"));
	sl_placement_idle(&p, e, &idle);
	assert_true(sl_idle_sleep(&idle)); /* at once: others need the cpu */
	fake_machine(1, 5, 1);
	expect_receiver("");
	fake_machine(1, 6, 1);
	expect_receiver("1 2 3 4");
}

static void one_thread_for_all_needs_one_cpu(void **state)
{
	struct sl_placement p;

	fake_machine(1, 4, 1);
	open_experiment("threads: {together: true}\n");
	assert_int_equal(sl_placement_receiver(e, fake_root, &p), 0);
	assert_true(p.pinned && !p.crowded);
	assert_int_equal(p.line, 3);
	assert_int_equal(cpu_of(&p, SL_ROLE_LINK, 0), 1);
	assert_int_equal(cpu_of(&p, SL_ROLE_SETTLER, 0), 2);
	expect_source(0, 3, "3");
	fake_machine(1, 3, 1);
	expect_receiver("");
}

static void with_room_adaptive_threads_look_again(void **state)
{
	struct sl_placement p;
	struct sl_idle idle;

	fake_machine(1, 8, 1);
	open_experiment("threads: {spin_us: 50, senders: 1}\n");
	assert_int_equal(sl_placement_receiver(e, fake_root, &p), 0);
	sl_placement_idle(&p, e, &idle);
	assert_int_equal(idle.limit_ns, 50000);
	assert_int_equal(idle.polling, SL_POLLING_ADAPTIVE);
	assert_false(idle.crowded);
}

static void taskset_and_cgroups_are_obeyed(void **state)
{
	fake_machine(1, 16, 1);
	open_experiment("");
	fake_allow("8-15");
	expect_receiver("8 9 10 11");
	fake_allow("8-12");
	expect_receiver("");
}

static void near_the_interface_and_so_is_memory(void **state)
{
	struct sl_placement p;
	char text[256];

	fake_machine(2, 8, 2);
	fake_file("/sys/class/net/lo/device/numa_node", "1"); /* if lo were a device */
	open_experiment("");
	assert_int_equal(sl_placement_receiver(e, fake_root, &p), 0);
	expect_cpus(&p, "8 9 10 11");
	assert_int_equal(p.node, 1);
	assert_string_equal(p.interface, "lo");
	sl_placement_describe(&p, text, sizeof(text));
	assert_non_null(strstr(text, "8-11"));
	assert_non_null(strstr(text, "node 1"));
	expect_source(0, 3, "12");
}

static void without_an_interface_memory_is_near_the_link(void **state)
{
	struct sl_placement p;

	fake_machine(2, 8, 1);
	fake_allow("8-15");
	open_experiment("link: {kind: shm}\n");
	assert_int_equal(sl_placement_receiver(e, fake_root, &p), 0);
	expect_cpus(&p, "8 9 10 11");
	assert_int_equal(p.node, 1);
	fake_allow("8-9");
	assert_int_equal(sl_placement_receiver(e, fake_root, &p), 0);
	assert_int_equal(p.node, -1); /* threads may run anywhere */
}

static void of_several_transfers_none_takes_cpus_that_it_was_not_given(void **state)
{
	static const char file[] = "threads: {senders: 1}\ntransfers:\n  a: {}\n"
				   "  b: {threads: {cpus: 4-7}}\n";
	struct sl_placement p;

	fake_machine(1, 11, 1);
	open_transfer(file, "a");
	assert_int_equal(sl_placement_receiver(e, fake_root, &p), 0);
	assert_true(!p.pinned && !p.crowded);
	fake_machine(1, 10, 1); /* twice five threads, and none to spare */
	assert_int_equal(sl_placement_receiver(e, fake_root, &p), 0);
	assert_true(!p.pinned && p.crowded);
	sl_experiment_close(e);
	open_transfer(file, "b");
	expect_receiver("4 5 6 7");
	sl_experiment_close(e);
	open_transfer("transfers:\n  a: {}\n", "a");
	expect_receiver("1 2 3 4");
}

static void pin_false_is_obeyed(void **state)
{
	struct sl_placement p;

	fake_machine(1, 16, 1);
	open_experiment("threads: {pin: false, cpus: '3-9'}\n");
	assert_int_equal(sl_placement_receiver(e, fake_root, &p), 0);
	assert_true(!p.pinned && !p.shared && !p.crowded);
	assert_int_equal(cpu_of(&p, SL_ROLE_LINK, 0), -1);
}

static void a_list_is_taken_in_its_order(void **state)
{
	fake_machine(1, 8, 1);
	open_experiment("threads: {cpus: 7 2-4, source_cpus: '0', senders: 1}\n");
	expect_receiver("7 2 3 4");
	expect_source(0, 3, "0");
}

static void a_list_that_is_too_short_is_shared(void **state)
{
	struct sl_placement p;
	cpu_set_t set;

	fake_machine(1, 8, 1);
	open_experiment("threads: {cpus: 2-3}\n");
	assert_int_equal(sl_placement_receiver(e, fake_root, &p), 0);
	assert_true(!p.pinned && p.shared && p.crowded);
	assert_non_null(sl_placement_of(&p, SL_ROLE_SETTLER, 0, &set));
	assert_true(CPU_COUNT(&set) == 2 && CPU_ISSET(2, &set) && CPU_ISSET(3, &set));
}

static void a_list_beyond_the_allowed_is_an_error(void **state)
{
	struct sl_placement p;
	const char *said;

	fake_machine(1, 8, 1);
	fake_allow("0-3");
	open_experiment("threads: {cpus: 2-5}\n");
	capture_begin();
	assert_int_equal(sl_placement_receiver(e, fake_root, &p), -EINVAL);
	said = capture_end();
	assert_non_null(strstr(said, "threads.cpus"));
	assert_non_null(strstr(said, "cpu 4"));
	assert_non_null(strstr(said, "0-3"));
	assert_int_equal(sl_placement_source(e, fake_root, 0, 4, &p), 0); /* not its list */
}

/* One sentence for each way, and the list of cpus where there is one. */
static void where_threads_run_is_told(void **state)
{
	struct sl_placement p = {.threads = 3, .line = 7, .cpus = 1, .nodes = 1};
	char text[256];

	CPU_SET(2, &p.set);
	CPU_SET(3, &p.set);
	sl_placement_describe(&p, text, sizeof(text));
	assert_string_equal(text, "data threads are not pinned");
	p.crowded = true;
	sl_placement_describe(&p, text, sizeof(text));
	assert_string_equal(text, "7 data threads on this host and 1 cpu: none is pinned, the "
				  "scheduler does better");
	p.shared = true;
	sl_placement_describe(&p, text, sizeof(text));
	assert_string_equal(text, "3 data threads share the cpus 2-3");
	p.pinned = true;
	sl_placement_describe(&p, text, sizeof(text));
	assert_string_equal(text, "data threads have a cpu each: 2-3");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(with_enough_cpus_everybody_has_one),
		CASE(the_front_end_comes_after_the_receiver),
		CASE(front_ends_that_share_the_modules_do_not_meet),
		CASE(a_front_end_elsewhere_has_the_host_for_itself),
		CASE(with_no_cpu_to_spare_nobody_is_pinned),
		CASE(one_thread_for_all_needs_one_cpu),
		CASE(with_room_adaptive_threads_look_again),
		CASE(taskset_and_cgroups_are_obeyed),
		CASE(near_the_interface_and_so_is_memory),
		CASE(without_an_interface_memory_is_near_the_link),
		CASE(of_several_transfers_none_takes_cpus_that_it_was_not_given),
		CASE(pin_false_is_obeyed),
		CASE(a_list_is_taken_in_its_order),
		CASE(a_list_that_is_too_short_is_shared),
		CASE(a_list_beyond_the_allowed_is_an_error),
		cmocka_unit_test(where_threads_run_is_told),
	};
#undef CASE

	return cmocka_run_group_tests(tests, NULL, NULL);
}
