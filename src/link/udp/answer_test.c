/* answer_test.c - what comes back to a source and may be forged: word of congestion. */
#include "base/crc.h"
#include "lib/link_rig.h"
#include "link/udp/udp.h"

extern const struct sl_link sl_link_udp;

static struct sl_udp_source *sender(struct rig *rig)
{
	return &((struct sl_udp *)rig->source)->send[0];
}

/* A CNP for the first transfer, as the receiver would send it, out of any socket. */
static void send_cnp(struct rig *rig, int fd)
{
	const struct sl_udp_source *source = sender(rig);
	struct sl_udp_path back;
	uint8_t header[SL_ROCE_CNP_BYTES];

	sl_udp_path_set(&back, source->plan.dest.ip, sl_net_port(fd), source->plan.source.ip,
			source->plan.source.port);
	assert_int_equal(sl_roce_cnp_encode(source->offer.credit_qpn, header), SL_ROCE_OK);
	assert_true(sl_udp_send_one(fd, &back, header, sizeof(header), NULL, 0));
}

static void look(struct rig *rig)
{
	assert_true(rig->link->sending->post(rig->source, rig->plan[0].transfer, NULL, 0) >= 0);
}

static struct rig *ready(uint16_t service)
{
	struct rig *rig = rig_new(&sl_link_udp);

	rig->service = service;
	rig_make_ready(rig);
	assert_int_equal(rig_send(rig, 0, 0), 0);
	rig_poll(rig);
	look(rig);
	return rig;
}

/* Another program on the receiver's host has its address, and not its port. */
static void from_another_port(uint16_t service)
{
	struct rig *rig = ready(service);
	int stranger = sl_net_open(sender(rig)->plan.dest.ip, 0);

	assert_true(stranger >= 0);
	send_cnp(rig, stranger);
	look(rig);
	assert_int_equal(sender(rig)->rate.cnps, 0);
	send_cnp(rig, ((struct sl_udp *)rig->receiver)->fd);
	look(rig);
	assert_int_equal(sender(rig)->rate.cnps, 1);
	close(stranger);
	rig_free(rig);
}

static void a_cnp_comes_from_where_credits_come_from(void **state)
{
	from_another_port(SL_SERVICE_UC);
}

static void or_from_where_acknowledgements_come_from(void **state)
{
	from_another_port(SL_SERVICE_RC);
}

/* However many lie there, a look ends, and the next block can be sent. */
static void a_flood_does_not_hold_the_sender(void **state)
{
	struct rig *rig = ready(SL_SERVICE_UC);
	uint64_t before;

	for (int i = 0; i < 600; i++)
		send_cnp(rig, ((struct sl_udp *)rig->receiver)->fd);
	before = sender(rig)->rate.cnps;
	look(rig);
	assert_true(sender(rig)->rate.cnps > before);
	assert_true(sender(rig)->rate.cnps <= before + 64);
	for (int i = 0; i < 10; i++)
		look(rig);
	assert_true(sender(rig)->rate.cnps > before + 64);
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cnp_comes_from_where_credits_come_from),
		cmocka_unit_test(or_from_where_acknowledgements_come_from),
		cmocka_unit_test(a_flood_does_not_hold_the_sender),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
