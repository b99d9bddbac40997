/* nic_test.c - what is said of NICs that do not exist, and that asking real ones works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cmd/doctor/doctor.h"
#include "core/registry.h"

/* As it should be for a receiver over udp. */
static const struct sl_nic good_nic = {
	.name = "eth7",
	.rx_ring = 8192,
	.rx_ring_max = 8192,
	.rx_pause = 1,
	.tx_pause = 1,
	.gro = 1,
	.rx_checksum = 1,
	.tx_udp_segmentation = 0,
	.rx_udp_gro_forwarding = 0,
	.rx_gro_list = 0,
	.hash_ports = 1,
	.queues = 8,
};

static struct sl_experiment experiment;
static struct sl_doctor doctor;

/* What is said of this NIC; the text is valid until the next call. */
static const char *judge(const struct sl_nic *nic, const char *link, bool front_end)
{
	static char *text;
	size_t bytes;

	free(text);
	experiment.link = sl_link_find(link);
	if (!experiment.link) {
		print_message("this program has no link %s\n", link);
		skip();
	}
	experiment.run.modules = 2;
	doctor = (struct sl_doctor){.root = "", .experiment = &experiment, .front_end = front_end};
	doctor.out = open_memstream(&text, &bytes);
	sl_doctor_nic(&doctor, nic);
	fclose(doctor.out);
	return text;
}

static void mends(const struct sl_nic *nic, const char *link, bool front_end, const char *command)
{
	const char *said = judge(nic, link, front_end);
	char line[128];

	assert_int_equal(doctor.wants, 1);
	snprintf(line, sizeof(line), "\n          %s\n", command);
	if (!strstr(said, line))
		fail_msg("no '%s' in:\n%s", command, said);
}

static void fine(const struct sl_nic *nic, const char *link)
{
	const char *said = judge(nic, link, false);

	if (doctor.wants || strstr(said, "mend"))
		fail_msg("%s: %s", link, said);
}

static void a_good_nic_is_good_for_every_link(void **state)
{
	static const char *const links[] = {"udp", "packet", "shm"};

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		fine(&good_nic, links[i]);
}

static void each_fault_has_its_command(void **state)
{
	struct sl_nic nic = good_nic;

	nic.rx_ring = 512;
	mends(&nic, "udp", false, "sudo ethtool -G eth7 rx 8192");
	nic = good_nic;
	nic.tx_pause = 0;
	mends(&nic, "udp", false, "sudo ethtool -A eth7 rx on tx on");
	nic = good_nic;
	nic.gro = 0;
	mends(&nic, "udp", false, "sudo ethtool -K eth7 gro on");
	nic = good_nic;
	nic.rx_checksum = 0;
	mends(&nic, "udp", false, "sudo ethtool -K eth7 rx on");
	nic = good_nic;
	nic.hash_ports = 0;
	mends(&nic, "udp", false, "sudo ethtool -N eth7 rx-flow-hash udp4 sdfn");
	nic.v6 = true;
	mends(&nic, "packet", false, "sudo ethtool -N eth7 rx-flow-hash udp6 sdfn");
	nic = good_nic;
	nic.rx_udp_gro_forwarding = 1;
	mends(&nic, "packet", false, "sudo ethtool -K eth7 rx-udp-gro-forwarding off");
	nic = good_nic;
	nic.rx_gro_list = 1;
	mends(&nic, "packet", false, "sudo ethtool -K eth7 rx-gro-list off");
	nic = good_nic;
	mends(&nic, "udp", true, "sudo ethtool -K eth7 tx-udp-segmentation on");
}

static void what_does_not_matter_is_not_to_be_mended(void **state)
{
	struct sl_nic nic = good_nic;

	nic.rx_udp_gro_forwarding = nic.rx_gro_list = 1;
	fine(&nic, "udp");
	nic = good_nic;
	nic.gro = nic.rx_checksum = 0;
	fine(&nic, "packet");
	nic = good_nic;
	nic.hash_ports = 0;
	nic.queues = 1;
	fine(&nic, "udp");
}

static void an_rdma_nic_needs_pause_frames_only(void **state)
{
	struct sl_nic nic = good_nic;

	nic.rx_ring = 1;
	nic.gro = nic.rx_checksum = nic.hash_ports = 0;
	fine(&nic, "verbs");
	nic.rx_pause = 0;
	mends(&nic, "verbs", false, "sudo ethtool -A eth7 rx on tx on");
}

static void a_nic_that_says_nothing_is_not_blamed(void **state)
{
	struct sl_nic nic = {.name = "eth7",
			     .rx_ring = -1,
			     .rx_ring_max = -1,
			     .rx_pause = -1,
			     .tx_pause = -1,
			     .gro = -1,
			     .rx_checksum = -1,
			     .tx_udp_segmentation = -1,
			     .rx_udp_gro_forwarding = -1,
			     .rx_gro_list = -1,
			     .hash_ports = -1,
			     .queues = -1};

	assert_string_equal(judge(&nic, "udp", false), "");
	assert_string_equal(judge(&nic, "packet", false), "");
	assert_string_equal(judge(&nic, "udp", true), "");
}

/* lo is everywhere, and has some features. */
static void the_kernel_answers(void **state)
{
	struct sl_nic nic;

	sl_nic_read("lo", false, &nic);
	assert_string_equal(nic.name, "lo");
	assert_true(nic.gro == 0 || nic.gro == 1);
	assert_true(nic.rx_checksum == 1);
	assert_true(nic.queues >= 1);
	assert_int_equal(nic.rx_ring, -1);
	assert_int_equal(nic.rx_pause, -1);
	assert_true(nic.tx_udp_segmentation >= 0 || nic.rx_gro_list >= 0);
	sl_nic_read("no-such-nic", true, &nic);
	assert_int_equal(nic.gro, -1);
	assert_int_equal(nic.queues, -1);
	assert_int_equal(nic.rx_gro_list, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_nic_is_good_for_every_link),
		cmocka_unit_test(each_fault_has_its_command),
		cmocka_unit_test(what_does_not_matter_is_not_to_be_mended),
		cmocka_unit_test(an_rdma_nic_needs_pause_frames_only),
		cmocka_unit_test(a_nic_that_says_nothing_is_not_blamed),
		cmocka_unit_test(the_kernel_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
