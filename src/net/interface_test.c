/* interface_test.c - interfaces by address, and their places in machines that do not exist. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/fake_host.h"
#include "net/interface.h"

static void loopback_addresses_are_those_of_lo(void **state)
{
	char name[IF_NAMESIZE];

	assert_true(sl_net_interface("127.0.0.1", name));
	assert_string_equal(name, "lo");
	assert_true(sl_net_interface("127.77.1.2", name));
	assert_string_equal(name, "lo");
}

static void nobody_has_addresses_of_books(void **state)
{
	char name[IF_NAMESIZE] = "untouched";

	assert_false(sl_net_interface("192.0.2.1", name));
	assert_false(sl_net_interface("2001:db8::1", name));
	assert_false(sl_net_interface("no address", name));
	assert_false(sl_net_interface("", name));
	assert_string_equal(name, "untouched");
}

static void the_node_is_that_of_the_device(void **state)
{
	fake_begin();
	fake_file("/sys/class/net/eth0/device/numa_node", "1");
	fake_file("/sys/class/net/eth1/device/numa_node", "-1");
	fake_file("/sys/class/net/eth2/device/numa_node", "0");
	fake_file("/sys/class/net/lo/mtu", "65536");
	assert_int_equal(sl_net_interface_node(fake_root, "eth0"), 1);
	assert_int_equal(sl_net_interface_node(fake_root, "eth2"), 0);
	assert_int_equal(sl_net_interface_node(fake_root, "eth1"), -1);
	assert_int_equal(sl_net_interface_node(fake_root, "lo"), -1);
	assert_int_equal(sl_net_interface_node(fake_root, "eth9"), -1);
	fake_end();
}

static void a_vlan_on_a_bond_sits_where_its_device_does(void **state)
{
	char device[IF_NAMESIZE];

	fake_begin();
	fake_file("/sys/class/net/eth0/device/numa_node", "3");
	fake_folder("/sys/class/net/bond0/lower_eth0");
	fake_folder("/sys/class/net/bond0.5/lower_bond0");
	assert_int_equal(sl_net_interface_node(fake_root, "bond0.5"), 3);
	sl_net_interface_device(fake_root, "bond0.5", device);
	assert_string_equal(device, "eth0");
	sl_net_interface_device(fake_root, "eth0", device);
	assert_string_equal(device, "eth0");
	fake_folder("/sys/class/net/loop0/lower_loop0"); /* the kernel would not */
	assert_int_equal(sl_net_interface_node(fake_root, "loop0"), -1);
	fake_end();
}

static void a_virtual_machine_has_it_one_folder_up(void **state)
{
	char path[128];

	fake_begin();
	fake_file("/sys/class/net/eth0/numa_node", "2");
	fake_folder("/sys/class/net/eth0/device");
	assert_int_equal(sl_net_interface_node(fake_root, "eth0"), -1);
	snprintf(path, sizeof(path), "%s/sys/class/net/eth0/device/subsystem", fake_root);
	assert_int_equal(symlink("../../../bus/virtio", path), 0);
	assert_int_equal(sl_net_interface_node(fake_root, "eth0"), 2);
	assert_string_equal(sl_net_interface_folder(fake_root, "eth0"), "device/..");
	assert_string_equal(sl_net_interface_folder(fake_root, "eth1"), "device");
	fake_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_addresses_are_those_of_lo),
		cmocka_unit_test(nobody_has_addresses_of_books),
		cmocka_unit_test(the_node_is_that_of_the_device),
		cmocka_unit_test(a_virtual_machine_has_it_one_folder_up),
		cmocka_unit_test(a_vlan_on_a_bond_sits_where_its_device_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
