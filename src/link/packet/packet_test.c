/* packet_test.c - what only the packet link does: every header is seen and checked, beside another
 * owner of the port, one by one or in blocks. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/crc.h"
#include "lib/link_rig.h"
#include "link/packet/packet.h"
#include "roce/icrc.h"

extern const struct sl_link sl_link_packet;

enum { PORT = 4791 };

static void to_gid(const char *text, uint8_t gid[SL_ROCE_GID_BYTES])
{
	assert_int_equal(sl_net_parse("test", text, gid), 0);
}

/* A socket of its own on an address of this process. */
static int udp_socket(unsigned host, uint16_t port)
{
	uint8_t gid[SL_ROCE_GID_BYTES];
	char text[32];
	int fd;

	rig_address(text, host);
	to_gid(text, gid);
	fd = sl_net_open(gid, port);
	assert_true(fd >= 0);
	return fd;
}

/* ---- packets made by hand, IPv4 headers included ---- */

struct made {
	uint8_t bytes[128];
	size_t n;
	struct sl_roce_path path;
};

static void put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* UC WRITE_ONLY of 8 bytes to where the plan does not let it: it gets as far as its key. */
static void make(struct made *m, const struct sl_plan *plan, uint16_t id, uint16_t sealed_id)
{
	uint8_t *p = m->bytes, *udp = p + 20, *bth = udp + 8;

	memset(m, 0, sizeof(*m));
	m->path = (struct sl_roce_path){
		.source_port = 1000, .dest_port = PORT, .ip_id = sealed_id, .dont_fragment = true};
	memcpy(m->path.source, plan->source.ip, SL_ROCE_GID_BYTES);
	memcpy(m->path.dest, plan->dest.ip, SL_ROCE_GID_BYTES);
	m->n = 20 + 8 + 12 + 16 + 8 + 4;
	p[0] = 0x45;
	put16(p + 2, (unsigned)m->n);
	put16(p + 4, id);
	put16(p + 6, 0x4000);
	p[8] = 64;
	p[9] = 17;
	memcpy(p + 12, plan->source.ip + 12, 4);
	memcpy(p + 16, plan->dest.ip + 12, 4);
	put16(udp, 1000);
	put16(udp + 2, PORT);
	put16(udp + 4, (unsigned)m->n - 20);
	bth[0] = 0x2a;
	bth[2] = bth[3] = 0xff;
	put16(bth + 6, plan->qpn & 0xffff);
	bth[5] = (uint8_t)(plan->qpn >> 16);
	put16(bth + 10, plan->first_psn & 0xffff);
	bth[9] = (uint8_t)(plan->first_psn >> 16);
	bth[27] = 8; /* length in the RETH; address and key are 0 */
	sl_roce_seal(&m->path, bth, 28, &(struct sl_roce_piece){bth + 28, 8}, 1, sl_crc32,
		     bth + 36);
}

static void send_raw(const struct made *m)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);

	assert_true(fd >= 0);
	memcpy(&to.sin_addr, m->bytes + 16, 4);
	assert_int_equal(sendto(fd, m->bytes, m->n, 0, (struct sockaddr *)&to, sizeof(to)), m->n);
	close(fd);
}

/* ---- cases ---- */

static void every_identification_is_checked_whole(void **state)
{
	static const uint16_t ids[] = {1, 63, 64, 0x1234, 0xffff};
	struct rig *rig = rig_ready(*state);
	struct made m;

	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		make(&m, &rig->plan[0], ids[i], ids[i]);
		send_raw(&m);
		rig_poll(rig);
		assert_int_equal(rig_dropped(rig, SL_DROP_KEY), i + 1); /* past the checksum */
		/* One that a UDP socket, which sees no identification, could not tell from a good
		 * one. */
		make(&m, &rig->plan[0], ids[i], ids[i] ^ 2);
		send_raw(&m);
		rig_poll(rig);
		assert_int_equal(rig_dropped(rig, SL_DROP_ICRC), i + 1);
	}
	assert_int_equal(rig_dropped_all(rig), 2 * sizeof(ids) / sizeof(*ids));
	rig_free(rig);
}

static void a_packet_that_may_be_fragmented_is_checked_as_it_came(void **state)
{
	struct rig *rig = rig_ready(*state);
	struct made m;

	make(&m, &rig->plan[0], 7, 7);
	m.bytes[6] = 0; /* its checksum says otherwise */
	send_raw(&m);
	rig_poll(rig);
	assert_int_equal(rig_dropped(rig, SL_DROP_ICRC), 1);
	m.path.dont_fragment = false;
	sl_roce_seal(&m.path, m.bytes + 28, 28, &(struct sl_roce_piece){m.bytes + 56, 8}, 1,
		     sl_crc32, m.bytes + 64);
	send_raw(&m);
	rig_poll(rig);
	assert_int_equal(rig_dropped(rig, SL_DROP_KEY), 1);
	rig_free(rig);
}

static void fragments_and_options_are_counted(void **state)
{
	struct rig *rig = rig_ready(*state);
	struct made m;

	make(&m, &rig->plan[0], 7, 7);
	put16(m.bytes + 6, 0x2000); /* more fragments */
	send_raw(&m);
	rig_poll(rig);
	assert_int_equal(rig_dropped(rig, SL_DROP_MALFORMED), 1);
	put16(m.bytes + 6, 0x2010); /* in the middle: has no port, and is never seen */
	send_raw(&m);
	rig_poll(rig);
	assert_int_equal(rig_dropped_all(rig), 1);
	make(&m, &rig->plan[0], 7, 7);
	memmove(m.bytes + 24, m.bytes + 20, m.n - 20);
	memset(m.bytes + 20, 1, 4); /* no operation, four times */
	m.bytes[0] = 0x46;
	m.n += 4;
	put16(m.bytes + 2, (unsigned)m.n);
	send_raw(&m);
	rig_poll(rig);
	assert_int_equal(rig_dropped(rig, SL_DROP_MALFORMED), 2);
	rig_free(rig);
}

static void other_ports_and_addresses_are_not_seen(void **state)
{
	struct rig *rig = rig_ready(*state);
	struct made m;

	make(&m, &rig->plan[0], 7, 7);
	m.bytes[23]++;
	send_raw(&m);
	m.bytes[23]--;
	m.bytes[19]++; /* the neighbour's address, also of this host */
	send_raw(&m);
	rig_poll(rig);
	assert_int_equal(rig_dropped_all(rig), 0);
	rig_free(rig);
}

static void another_may_own_the_port(void **state)
{
	int owner = udp_socket(1, PORT);
	struct rig *rig = rig_ready(*state);

	for (uint64_t k = 0; k < RIG_SLOTS; k++) {
		assert_int_equal(rig_send(rig, k, 0), 0);
		assert_true(rig_arrived(rig, k, 0) && rig_intact(rig, k, 0));
	}
	assert_int_equal(rig_dropped_all(rig), 0);
	rig_free(rig);
	close(owner);
}

/* Else every packet would be answered with "port unreachable". */
static void the_port_is_not_unreachable(void **state)
{
	struct rig *rig = rig_ready(*state);
	int fd = udp_socket(2, 0), error = 0;
	socklen_t size = sizeof(error);
	union sl_net_address to;

	sl_net_address(rig->plan[0].dest.ip, PORT, &to);
	assert_int_equal(connect(fd, &to.any, sizeof(to.v4)), 0);
	assert_int_equal(send(fd, "x", 1, 0), 1);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), 0);
	assert_int_equal(error, 0);
	rig_poll(rig);
	assert_int_equal(rig_dropped(rig, SL_DROP_MALFORMED), 1);
	rig_close_receiver(rig); /* and then it is */
	assert_int_equal(send(fd, "x", 1, 0), 1);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), 0);
	assert_int_equal(error, ECONNREFUSED);
	close(fd);
	rig_free(rig);
}

static void packets_sent_one_by_one_arrive_too(void **state)
{
	struct rig *rig = rig_new(*state);

	rig->option[0][0] = "segment";
	rig->option[0][1] = "false";
	rig_make_ready(rig);
	for (uint64_t k = 0; k < RIG_SLOTS; k++) {
		assert_int_equal(rig_send(rig, k, 1), 0);
		assert_true(rig_arrived(rig, k, 1) && rig_intact(rig, k, 1));
	}
	assert_int_equal(rig_dropped_all(rig), 0);
	rig_free(rig);
}

/* What does not fit is lost, what does is intact, and it goes on from there. */
static void a_ring_that_overflows_recovers(void **state)
{
	struct rig *rig = rig_new(*state);
	int fd = udp_socket(2, 0);
	union sl_net_address to;
	uint64_t strays;

	rig->option[0][0] = "ring_bytes";
	rig->option[0][1] = "2Mi";
	rig_make_ready(rig);
	sl_net_address(rig->plan[0].dest.ip, PORT, &to);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(sendto(fd, "x", 1, 0, &to.any, sizeof(to.v4)), 1);
	rig_poll(rig);
	strays = rig_dropped(rig, SL_DROP_MALFORMED);
	assert_true(strays > 10 && strays < 1000);
	for (uint64_t k = 0; k < RIG_SLOTS; k++) {
		assert_int_equal(rig_send(rig, k, 0), 0);
		assert_true(rig_arrived(rig, k, 0) && rig_intact(rig, k, 0));
	}
	assert_int_equal(rig_dropped_all(rig), strays);
	close(fd);
	rig_free(rig);
}

/* A block is ours when it is full or old: polling has to wait for it. */
static int patient_poll(void *state, unsigned poller, unsigned budget)
{
	int n = sl_link_packet.receiving->poll(state, poller, budget);

	if (n)
		return n;
	usleep(6000);
	return sl_link_packet.receiving->poll(state, poller, budget);
}

static uint64_t reaped(const struct rig *rig)
{
	return rig->link->sending->reap(rig->source, rig->plan[0].transfer) /
	       rig->plan[0].block_bytes;
}

static void blocks(const struct sl_link *packet, uint16_t service)
{
	struct sl_link_receiving receiving = *packet->receiving;
	struct sl_link patient = *packet;
	struct rig *rig;

	receiving.poll = patient_poll;
	patient.receiving = &receiving;
	rig = rig_new(&patient);
	rig->service = service;
	rig->option[0][0] = "delivery";
	rig->option[0][1] = "blocks";
	rig_make_ready(rig);
	for (uint64_t k = 0; k < 5 * RIG_SLOTS; k++) {
		assert_int_equal(rig_send(rig, k, 0), 0);
		assert_true(rig_arrived(rig, k, 0) && rig_intact(rig, k, 0));
		rig_release(rig, k);
		/* rc: the one block of the rig is free when it was acknowledged */
		for (int tries = 0; tries < 100 && reaped(rig) <= k; tries++) {
			rig->link->sending->post(rig->source, rig->plan[0].transfer, NULL, 0);
			rig_poll(rig);
		}
		assert_true(reaped(rig) > k);
	}
	/* rc: what waits in a block for too long is sent again */
	if (service == SL_SERVICE_UC)
		assert_int_equal(rig_dropped_all(rig), 0);
	assert_int_equal(rig_dropped_all(rig), rig_dropped(rig, SL_DROP_DUPLICATE));
	rig_free(rig);
}

static void blocks_that_are_given_up_by_the_clock(void **state)
{
	blocks(*state, SL_SERVICE_UC);
}

static void blocks_over_a_reliable_connection(void **state)
{
	blocks(*state, SL_SERVICE_RC);
}

static void frames_arrive_over_ipv6(void **state)
{
	struct rig *rig = rig_new(*state);
	static char port[16];

	if (access("/proc/net/if_inet6", F_OK)) {
		print_message("skipped: no IPv6 here\n");
		skip();
	}
	snprintf(port, sizeof(port), "%u", 20000 + (unsigned)getpid() % 20000);
	rig->listen_at = rig->send_from = "::1";
	rig->option[0][0] = "port";
	rig->option[0][1] = port;
	rig_make_ready(rig);
	for (uint64_t k = 0; k < RIG_SLOTS; k++) {
		assert_int_equal(rig_send(rig, k, 0), 0);
		assert_true(rig_arrived(rig, k, 0) && rig_intact(rig, k, 0));
	}
	assert_int_equal(rig_dropped_all(rig), 0);
	rig_free(rig);
}

static void an_interface_that_is_not_there_is_named(void **state)
{
	struct rig *rig = rig_new(*state);

	rig->option[0][0] = "interface";
	rig->option[0][1] = "nowhere0";
	assert_int_equal(rig_open_receiver(rig), -ENODEV);
	rig_free(rig);
}

/* A child of another user has no capability; sending needs none. */
static void without_the_privilege_it_says_what_to_do(void **state)
{
	struct rig *rig = rig_new(*state);
	struct sl_link_env env = {0};
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		void *source = rig_state(rig);
		const char *why;
		int bad = 0;

		bad |= setgid(65534) || setuid(65534);
		why = sl_packet_unavailable();
		bad |= !why || !strstr(why, "setcap cap_net_raw+ep /");
		bad |= rig_open_receiver(rig) != -EPERM;
		bad |= rig->link->open(source, &env) != 0;
		rig->link->close(source);
		_exit(bad ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	rig_free(rig);
}

#define CASE(f) cmocka_unit_test_prestate(f, (void *)&sl_link_packet)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(every_identification_is_checked_whole),
		CASE(a_packet_that_may_be_fragmented_is_checked_as_it_came),
		CASE(fragments_and_options_are_counted),
		CASE(other_ports_and_addresses_are_not_seen),
		CASE(another_may_own_the_port),
		CASE(the_port_is_not_unreachable),
		CASE(packets_sent_one_by_one_arrive_too),
		CASE(a_ring_that_overflows_recovers),
		CASE(blocks_that_are_given_up_by_the_clock),
		CASE(blocks_over_a_reliable_connection),
		CASE(frames_arrive_over_ipv6),
		CASE(an_interface_that_is_not_there_is_named),
		CASE(without_the_privilege_it_says_what_to_do),
	};
	const char *why = sl_packet_unavailable();

	if (why) {
		printf("1..0 # SKIP %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
