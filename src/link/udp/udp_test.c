/* udp_test.c - what is particular to RoCEv2 over sockets: packets made by hand, from friend and
 * foe. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/crc.h"
#include "lib/link_rig.h"
#include "link/udp/udp.h"
#include "roce/icrc.h"
#include "roce/requester.h"

extern const struct sl_link sl_link_udp;

struct forged { /* one packet, right in every respect until a case changes something */
	char from[32];
	uint32_t qpn, psn, rkey, bytes;
	uint64_t va;
	uint8_t opcode_kind;
	bool spoil_icrc, truncate;
	uint8_t *payload;
};

static struct forged honest(struct rig *rig, uint64_t sequence, uint32_t module)
{
	const struct sl_plan *plan = &rig->plan[module];
	struct forged f = {.qpn = plan->qpn,
			   .psn = sl_plan_psn(plan, sequence, 0),
			   .rkey = plan->rkey,
			   .bytes = plan->pmtu,
			   .va = sl_plan_address(plan, sequence, 0),
			   .opcode_kind = SL_ROCE_KIND_WRITE,
			   .payload = rig->block};

	rig_address(
		f.from,
		2); /* the address the source offered, from another port: receivers must not care */
	rig_fill(rig, sequence, module);
	return f;
}

static void gid(const char *text, uint8_t out[16])
{
	memset(out, 0, 16);
	out[10] = out[11] = 0xff;
	assert_int_equal(inet_pton(AF_INET, text, out + 12), 1);
}

static void send_forged(struct rig *rig, const struct forged *f)
{
	struct sl_roce_message message = {.transport = SL_ROCE_UC,
					  .kind = f->opcode_kind,
					  .pkey = SL_ROCE_PKEY_DEFAULT,
					  .pmtu = 4096,
					  .qpn = f->qpn,
					  .psn = f->psn,
					  .rkey = f->rkey,
					  .va = f->va,
					  .bytes = f->bytes};
	struct sl_roce_piece piece = {f->payload, f->bytes};
	struct sl_roce_path path = {.dest_port = 4791, .dont_fragment = true};
	struct sockaddr_in from = {.sin_family = AF_INET},
			   to = {.sin_family = AF_INET, .sin_port = htons(4791)};
	socklen_t size = sizeof(from);
	struct sl_roce_requester cursor;
	struct sl_roce_fragment fragment;
	uint8_t packet[SL_ROCE_HEADERS_MAX + 4096 + SL_ROCE_TRAILER_MAX];
	int discover = IP_PMTUDISC_DO, fd = socket(AF_INET, SOCK_DGRAM, 0);
	size_t n;
	char listen[32];

	rig_address(listen, 1);
	inet_pton(AF_INET, listen, &to.sin_addr);
	inet_pton(AF_INET, f->from, &from.sin_addr);
	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover)),
			 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&from, &size), 0);
	gid(f->from, path.source);
	gid(listen, path.dest);
	path.source_port = ntohs(from.sin_port);

	assert_int_equal(sl_roce_requester_begin(&cursor, &message), 0);
	assert_true(sl_roce_requester_next(&cursor, packet, &fragment));
	n = fragment.header_bytes;
	memcpy(packet + n, f->payload, f->bytes);
	n += f->bytes;
	n += sl_roce_seal(&path, packet, fragment.header_bytes, &piece, 1, sl_crc32, packet + n);
	if (f->spoil_icrc)
		packet[n - 1] ^= 1;
	if (f->truncate)
		n = 11;
	assert_int_equal(sendto(fd, packet, n, 0, (struct sockaddr *)&to, sizeof(to)), n);
	close(fd);
	rig_poll(rig);
}

static void expect_dropped(struct rig *rig, const struct forged *f, enum sl_drop why)
{
	send_forged(rig, f);
	assert_int_equal(rig_dropped(rig, why), 1);
	assert_int_equal(rig_dropped_all(rig), 1);
	assert_true(rig_untouched(rig, 0, 0));
	assert_true(rig_untouched(rig, 0, 1));
	rig_free(rig);
}

static void an_honest_forgery_is_taken(void **state)
{
	struct rig *rig = rig_ready(&sl_link_udp);
	struct forged f = honest(rig, 0, 0);

	send_forged(rig, &f);
	assert_int_equal(rig_dropped_all(rig), 0);
	assert_memory_equal(sl_ring_block(&rig->ring, 0, 0), rig->block, RIG_PMTU);
	assert_int_equal(sl_ring_packets(&rig->ring, 0, 0), 1);
	rig_free(rig);
}

static void a_wrong_checksum(void **state)
{
	struct rig *rig = rig_ready(&sl_link_udp);
	struct forged f = honest(rig, 0, 0);

	f.spoil_icrc = true;
	expect_dropped(rig, &f, SL_DROP_ICRC);
}

static void a_truncated_packet(void **state)
{
	struct rig *rig = rig_ready(&sl_link_udp);
	struct forged f = honest(rig, 0, 0);

	f.truncate = true;
	expect_dropped(rig, &f, SL_DROP_MALFORMED);
}

static void an_unknown_queue(void **state)
{
	struct rig *rig = rig_ready(&sl_link_udp);
	struct forged f = honest(rig, 0, 0);

	f.qpn = rig->plan[1].qpn + 1;
	expect_dropped(rig, &f, SL_DROP_QUEUE);
}

static void a_stranger_with_the_right_key(void **state)
{
	struct rig *rig = rig_ready(&sl_link_udp);
	struct forged f = honest(rig, 0, 0);

	rig_address(f.from, 1);
	expect_dropped(rig, &f, SL_DROP_PEER);
}

/* Shared out among modules; with less than two packets a source would wait for its own credit. */
static void a_window_is_as_asked_for_and_never_too_small(void **state)
{
	static const struct {
		const char *option;
		uint64_t window;
	} cases[] = {{"16384", 16384 / RIG_MODULES},
		     {"8388608", 8388608 / RIG_MODULES},
		     {"4096", 2 * RIG_PMTU},
		     {"4094", 2 * RIG_PMTU},
		     {"100", 2 * RIG_PMTU}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig *rig = rig_new(&sl_link_udp);

		rig->option[0][0] = "window";
		rig->option[0][1] = cases[i].option;
		rig_make_ready(rig);
		for (unsigned m = 0; m < RIG_MODULES; m++)
			assert_int_equal(rig->plan[m].window_bytes, cases[i].window);
		rig_free(rig);
	}
}

/* A module's block that is smaller than two packets may be all of a window: one that is larger by a
 * byte, too, and one that is smaller by a byte is replaced. */
static void a_window_may_be_one_small_block(void **state)
{
	enum { BLOCK = 2 * RIG_PMTU - 500 };
	static const struct {
		const char *option;
		uint64_t window;
	} cases[] = {{"3096", BLOCK}, {"3098", BLOCK + 1}, {"3094", 2 * RIG_PMTU}};
	const struct sl_link_env env = {.ring = NULL};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig *rig = rig_new(&sl_link_udp);
		struct sl_offer offer;
		struct sl_plan plan;

		rig->ring.block_bytes = BLOCK;
		rig->ring.pixel_bytes = BLOCK - SL_RECORD_BYTES;
		rig->option[0][0] = "window";
		rig->option[0][1] = cases[i].option;
		assert_int_equal(rig_open_receiver(rig), 0);
		rig->source = rig_state(rig);
		assert_int_equal(sl_link_udp.open(rig->source, &env), 0);
		assert_int_equal(rig_offer(rig, rig->source, 0, &offer), 0);
		offer.block_bytes = BLOCK;
		assert_int_equal(sl_link_udp.receiving->accept(rig->receiver, &offer, &plan), 0);
		assert_int_equal(plan.window_bytes, cases[i].window);
		rig_free(rig);
	}
}

static void a_wrong_key(void **state)
{
	struct rig *rig = rig_ready(&sl_link_udp);
	struct forged f = honest(rig, 0, 0);

	f.rkey++;
	expect_dropped(rig, &f, SL_DROP_KEY);
}

static void the_right_address_with_the_wrong_psn(void **state)
{
	struct rig *rig = rig_ready(&sl_link_udp);
	struct forged f = honest(rig, 0, 0);

	f.psn = (f.psn + 1) & 0xffffff;
	expect_dropped(rig, &f, SL_DROP_RANGE);
}

static void the_other_modules_block(void **state)
{
	struct rig *rig = rig_ready(&sl_link_udp);
	struct forged f = honest(rig, 0, 0);

	f.va += rig->ring.block_stride;
	expect_dropped(rig, &f, SL_DROP_RANGE);
}

static void a_send_that_no_plan_asked_for(void **state)
{
	struct rig *rig = rig_ready(&sl_link_udp);
	struct forged f = honest(rig, 0, 0);

	f.opcode_kind = SL_ROCE_KIND_SEND;
	f.bytes = 64;
	send_forged(rig, &f);
	assert_int_equal(rig_dropped_all(rig), 1);
	assert_true(rig_untouched(rig, 0, 0));
	rig_free(rig);
}

static void a_write_longer_than_the_pmtu(void **state)
{
	struct rig *rig = rig_ready(&sl_link_udp);
	struct forged f = honest(rig, 0, 0);

	f.bytes = 2 * RIG_PMTU;
	expect_dropped(rig, &f, SL_DROP_MALFORMED);
}

static void a_module_in_one_message_arrives_too(void **state)
{
	struct rig *rig = rig_new(&sl_link_udp);

	rig->message = SL_MESSAGE_MODULE;
	assert_int_equal(rig_open_receiver(rig), 0);
	rig_open_source(rig);
	sl_ring_open(&rig->ring, UINT64_MAX);
	rig_poll(rig);
	assert_int_equal(rig->plan[0].message, SL_MESSAGE_MODULE);
	for (uint64_t k = 0; k < RIG_SLOTS; k++) {
		assert_int_equal(rig_send(rig, k, 0), 0);
		assert_true(rig_arrived(rig, k, 0) && rig_intact(rig, k, 0));
	}
	rig_free(rig);
}

static enum sl_packet_fault drop_packet_3_of_frame_0(void *arg, uint16_t module, uint64_t sequence,
						     uint32_t packet)
{
	return sequence == 0 && packet == 3 ? SL_PACKET_FAULT_DROP : SL_PACKET_FAULT_NONE;
}

static void a_message_broken_in_the_middle_ends_there_and_the_next_is_whole(void **state)
{
	struct rig *rig = rig_new(&sl_link_udp);
	uint64_t ns;

	rig->message = SL_MESSAGE_MODULE;
	rig->fault = drop_packet_3_of_frame_0;
	assert_int_equal(rig_open_receiver(rig), 0);
	rig_open_source(rig);
	sl_ring_open(&rig->ring, UINT64_MAX);
	rig_poll(rig);
	assert_int_equal(rig_send(rig, 0, 0), 0);
	rig_poll(rig);
	assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	assert_int_equal(sl_ring_packets(&rig->ring, 0, 0), 3);
	assert_int_equal(rig_dropped(rig, SL_DROP_BROKEN), rig->plan[0].packets - 4);
	assert_int_equal(rig_send(rig, 1, 0), 0);
	assert_true(rig_arrived(rig, 1, 0) && rig_intact(rig, 1, 0));
	rig_free(rig);
}

static enum sl_packet_fault hold_some(void *arg, uint16_t module, uint64_t sequence,
				      uint32_t packet)
{
	return packet == 3 || packet == 4 || packet == 9 ? SL_PACKET_FAULT_REORDER
							 : SL_PACKET_FAULT_NONE;
}

static struct rig *holding(uint16_t message, uint32_t hold)
{
	struct rig *rig = rig_new(&sl_link_udp);

	rig->message = message;
	rig->fault = hold_some;
	rig->hold = hold;
	rig_make_ready(rig);
	assert_int_equal(rig->plan[0].packets, 10);
	return rig;
}

static void what_is_held_back_comes_behind_others_as_it_was(void **state)
{
	struct rig *rig = holding(SL_MESSAGE_PACKET, 4);
	uint64_t ns;

	for (uint64_t k = 0; k < RIG_SLOTS; k++) {
		assert_int_equal(rig_send(rig, k, 0), 0);
		rig_poll(rig);
		/* The last one waits for packets of the next block, that for the end. */
		assert_false(sl_ring_event(&rig->ring, k, 0, &ns));
		assert_int_equal(sl_ring_packets(&rig->ring, k, 0), 9);
		if (k)
			assert_true(rig_arrived(rig, k - 1, 0) && rig_intact(rig, k - 1, 0));
	}
	assert_int_equal(rig->link->sending->flush(rig->source, 0), 0);
	assert_true(rig_arrived(rig, RIG_SLOTS - 1, 0) && rig_intact(rig, RIG_SLOTS - 1, 0));
	assert_int_equal(rig_dropped_all(rig), 0);
	rig_free(rig);
}

static void a_message_that_is_overtaken_ends_there(void **state)
{
	struct rig *rig = holding(SL_MESSAGE_MODULE, 2);
	uint64_t ns;

	assert_int_equal(rig_send(rig, 0, 0), 0);
	assert_int_equal(rig->link->sending->flush(rig->source, 0), 0);
	rig_poll(rig);
	assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	assert_int_equal(sl_ring_packets(&rig->ring, 0, 0), 3);
	assert_int_equal(rig_dropped(rig, SL_DROP_BROKEN), 7);
	rig_free(rig);
}

static void the_path_mtu_is_one_that_exists_and_both_can_do(void **state)
{
	static const struct {
		uint16_t most, got;
	} cases[] = {{4096, 1024}, {1024, 1024}, {1023, 512}, {300, 256}, {256, 256}};
	struct rig *rig = rig_new(&sl_link_udp);
	struct sl_link_env env = {0};
	void *source = rig_state(rig);
	struct sl_offer offer;
	struct sl_plan plan;

	assert_int_equal(rig_open_receiver(rig), 0);
	assert_int_equal(rig->link->open(source, &env), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(rig_offer(rig, source, 0, &offer), 0);
		offer.max_pmtu = cases[i].most;
		assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), 0);
		assert_int_equal(plan.pmtu, cases[i].got);
	}
	offer.max_pmtu = 255;
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), -EINVAL);
	rig->link->close(source);
	free(source);
	rig_free(rig);
}

static struct sl_offer offer_of_a_device(void)
{
	return (struct sl_offer){
		.services = SL_SERVICE_RC,
		.operations = SL_OPERATION_WRITE | SL_OPERATION_SEND,
		.messages = SL_MESSAGE_PACKET | SL_MESSAGE_MODULE,
		.max_pmtu = 4096,
		.source = {.ip = {[10] = 0xff, 0xff, 127, 0, 0, 1}},
		.credit_port = 4791,
		.block_bytes = RIG_PIXELS,
		.bare = 1,
		.darks = {.first = 3},
		.psn_plus_1 = 0xffffff + 1,
	};
}

static void a_device_may_send_pixels_alone_from_a_psn_of_its_own(void **state)
{
	struct rig *rig = rig_new(&sl_link_udp);
	struct sl_offer offer = offer_of_a_device();
	struct sl_plan plan;

	rig->service = SL_SERVICE_RC;
	assert_int_equal(rig_open_receiver(rig), 0);
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), 0);
	assert_int_equal(plan.block_bytes, RIG_PIXELS);
	assert_int_equal(plan.packets, (RIG_PIXELS + RIG_PMTU - 1) / RIG_PMTU);
	assert_int_equal(plan.first_psn, 0xffffff);
	assert_int_equal(plan.bare, 1);
	assert_int_equal(plan.darks.first, 3);
	offer.block_bytes = RIG_PIXELS + SL_RECORD_BYTES;
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), -EINVAL);
	offer.bare = 0;
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), 0);
	offer.block_bytes = RIG_PIXELS;
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), -EINVAL);
	rig_free(rig);
}

static void without_a_record_there_is_no_checksum(void **state)
{
	struct rig *rig = rig_new(&sl_link_udp);
	struct sl_offer offer = offer_of_a_device();
	struct sl_plan plan;

	rig->service = SL_SERVICE_RC;
	assert_int_equal(rig_open_receiver(rig), 0);
	((struct sl_udp *)rig->receiver)->env.crc = 1;
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), -EINVAL);
	rig_free(rig);
}

static void the_queue_pair_of_a_device_may_be_learnt_later(void **state)
{
	struct rig *rig = rig_new(&sl_link_udp);
	struct sl_offer offer = offer_of_a_device();
	const struct sl_udp_queue *queue;
	struct sl_plan plan;

	rig->service = SL_SERVICE_RC;
	assert_int_equal(rig_open_receiver(rig), 0);
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), 0);
	assert_int_equal(rig->link->receiving->set_queue(rig->receiver, plan.transfer, 0x1000000),
			 -EINVAL);
	assert_int_equal(rig->link->receiving->set_queue(rig->receiver, plan.transfer + 1, 256),
			 -EINVAL);
	assert_int_equal(rig->link->receiving->set_queue(rig->receiver, plan.transfer, 256), 0);
	queue = &((struct sl_udp *)rig->receiver)->queue[plan.transfer];
	assert_int_equal(queue->rc.responder.peer_qpn, 256);
	rig_free(rig);
}

static void an_address_that_is_none_is_refused(void **state)
{
	struct rig *rig = rig_new(&sl_link_udp);
	struct sl_link_env env = {.ring = &rig->ring, .counters = &rig->counters};
	static const char *const bad[] = {"0.0.0.0", "localhost", "300.1.2.3", "", "::", "fe80::1"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		void *state_of = rig_state(rig);

		rig_set(rig->link, state_of, "listen", bad[i]);
		assert_int_equal(rig->link->open(state_of, &env), -EINVAL);
		rig->link->close(state_of);
		free(state_of);
	}
	rig_free(rig);
}

static enum sl_packet_fault corrupt_packet_3(void *arg, uint16_t module, uint64_t sequence,
					     uint32_t packet)
{
	(void)arg;
	(void)module;
	(void)sequence;
	return packet == 3 ? SL_PACKET_FAULT_CORRUPT : SL_PACKET_FAULT_NONE;
}

/* Whether a block of which one packet has a wrong ICRC arrives, with this word for the option. */
static int arrives_corrupt(const char *icrc)
{
	struct rig *rig = rig_new(&sl_link_udp);
	int arrived;

	rig->fault = corrupt_packet_3;
	rig->option[0][0] = "icrc";
	rig->option[0][1] = icrc;
	rig_make_ready(rig);
	assert_int_equal(rig_send(rig, 0, 0), 0);
	arrived = rig_arrived(rig, 0, 0);
	assert_int_equal(rig_dropped(rig, SL_DROP_ICRC), !arrived);
	rig_free(rig);
	return arrived;
}

static void the_icrc_is_checked_unless_told_otherwise(void **state)
{
	(void)state;
	assert_false(arrives_corrupt("check"));
	assert_true(arrives_corrupt("ignore"));
}

static void a_source_may_leave_the_checksum_0(void **state)
{
	struct rig *rig = rig_new(&sl_link_udp);
	const struct sl_udp *udp;
	int no_check = 0;
	socklen_t bytes = sizeof(no_check);

	(void)state;
	rig->option[0][0] = "checksum";
	rig->option[0][1] = "false";
	rig_make_ready(rig);
	udp = rig->source;
	assert_int_equal(getsockopt(udp->send[0].fd, SOL_SOCKET, SO_NO_CHECK, &no_check, &bytes),
			 0);
	assert_int_equal(no_check, 1);
	assert_int_equal(rig->plan[0].ip_id, SL_IP_ID_ZERO); /* nothing is cut by the kernel */
	assert_int_equal(rig_send(rig, 0, 0), 0);
	assert_true(rig_arrived(rig, 0, 0));
	assert_true(rig_intact(rig, 0, 0));
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_honest_forgery_is_taken),
		cmocka_unit_test(a_wrong_checksum),
		cmocka_unit_test(a_truncated_packet),
		cmocka_unit_test(an_unknown_queue),
		cmocka_unit_test(a_stranger_with_the_right_key),
		cmocka_unit_test(a_window_is_as_asked_for_and_never_too_small),
		cmocka_unit_test(a_window_may_be_one_small_block),
		cmocka_unit_test(a_wrong_key),
		cmocka_unit_test(the_right_address_with_the_wrong_psn),
		cmocka_unit_test(the_other_modules_block),
		cmocka_unit_test(a_send_that_no_plan_asked_for),
		cmocka_unit_test(a_write_longer_than_the_pmtu),
		cmocka_unit_test(a_module_in_one_message_arrives_too),
		cmocka_unit_test(a_message_broken_in_the_middle_ends_there_and_the_next_is_whole),
		cmocka_unit_test(what_is_held_back_comes_behind_others_as_it_was),
		cmocka_unit_test(a_message_that_is_overtaken_ends_there),
		cmocka_unit_test(the_path_mtu_is_one_that_exists_and_both_can_do),
		cmocka_unit_test(a_device_may_send_pixels_alone_from_a_psn_of_its_own),
		cmocka_unit_test(without_a_record_there_is_no_checksum),
		cmocka_unit_test(the_queue_pair_of_a_device_may_be_learnt_later),
		cmocka_unit_test(an_address_that_is_none_is_refused),
		cmocka_unit_test(the_icrc_is_checked_unless_told_otherwise),
		cmocka_unit_test(a_source_may_leave_the_checksum_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
