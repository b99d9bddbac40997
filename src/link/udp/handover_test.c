/* handover_test.c - one receiver is left in the middle of something, another takes its place with
 * the same sockets and what was noted: what was taken is not expected again, what was not is found,
 * credits go on. */
#include <errno.h>
#include <fcntl.h>

#include "lib/link_rig.h"
#include "link/udp/udp.h"

extern const struct sl_link sl_link_udp;

enum { PACKETS = (RIG_PIXELS + SL_RECORD_BYTES + RIG_PMTU - 1) / RIG_PMTU };

static _Alignas(64) uint8_t notes[SL_LINK_TRANSFERS][SL_LINK_NOTE_BYTES];

static struct sl_udp *udp(void *state)
{
	return state;
}

/* Packet by packet, so that a budget is a number of packets. */
static struct rig *rig_with(uint16_t service, uint16_t message, const char *credits,
			    const char *option, const char *value)
{
	struct rig *rig = rig_new(&sl_link_udp);

	memset(notes, 0xee, sizeof(notes)); /* as somebody else may have left them */
	rig->notes = notes;
	rig->service = service;
	rig->message = message;
	rig->option[0][0] = "segment";
	rig->option[0][1] = "false";
	rig->option[1][0] = "credits";
	rig->option[1][1] = credits;
	rig->option[2][0] = option;
	rig->option[2][1] = value;
	rig->option[3][0] = "retry";
	rig->option[3][1] = "255";
	rig_make_ready(rig);
	return rig;
}

static struct rig *rig_handover(uint16_t service, uint16_t message, const char *credits)
{
	return rig_with(service, message, credits, "timeout", "8"); /* a millisecond */
}

struct left { /* what a receiver leaves: its descriptors, through somebody who holds them */
	int link, flow[RIG_MODULES];
};

static int hold(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* The receiver is no more; its ring's cells neither. */
static struct left leave(struct rig *rig)
{
	const struct sl_link *link = rig->link;
	struct left left = {.link = hold(link->handover->keep(rig->receiver, SL_LINK_TRANSFERS))};

	for (unsigned m = 0; m < RIG_MODULES; m++)
		left.flow[m] = hold(link->handover->keep(rig->receiver, rig->plan[m].transfer));
	rig_close_receiver(rig);
	sl_ring_fini(&rig->ring);
	sl_region_poison(&rig->region);
	assert_int_equal(sl_ring_init(&rig->ring, &rig->region, &rig->bell, RIG_SLOTS, RIG_MODULES,
				      RIG_PIXELS),
			 0);
	return left;
}

static int handover_accept(struct rig *rig, unsigned module, int fd)
{
	return rig->link->handover->accept(rig->receiver, &udp(rig->source)->send[module].offer,
					   &rig->plan[module], fd);
}

/* Another receiver in its place; first[] of each module. */
static void take_over(struct rig *rig, const struct left *left, uint64_t *first)
{
	uint64_t highest = 0;

	rig->handover_fd = &left->link;
	assert_int_equal(rig_open_receiver(rig), 0);
	for (unsigned m = 0; m < RIG_MODULES; m++)
		assert_int_equal(handover_accept(rig, m, left->flow[m]), 0);
	rig->link->handover->resume(rig->receiver, first);
	for (unsigned m = 0; m < RIG_MODULES; m++)
		highest = first[m] > highest ? first[m] : highest;
	for (unsigned m = 0; m < RIG_MODULES; m++)
		sl_ring_begin(&rig->ring, m, highest);
	sl_ring_open(&rig->ring, UINT64_MAX);
}

static void replace(struct rig *rig, uint64_t *first)
{
	struct left left = leave(rig);

	take_over(rig, &left, first);
}

static void expect_arrives(struct rig *rig, uint64_t sequence, unsigned module)
{
	uint64_t ns;

	assert_int_equal(rig_send(rig, sequence, module), 0);
	for (int i = 0; i < 2000; i++) {
		rig_poll(rig);
		if (sl_ring_event(&rig->ring, sequence, module, &ns))
			break;
		/* RC: it may have to send something again. */
		assert_true(rig->link->sending->post(rig->source, rig->plan[module].transfer, NULL,
						     0) >= 0);
		usleep(100);
	}
	assert_true(sl_ring_event(&rig->ring, sequence, module, &ns));
	assert_true(rig_intact(rig, sequence, module));
}

/* RC: what the source has to do besides posting. */
static void pump(struct rig *rig, uint64_t position, unsigned module)
{
	for (int i = 0; i < 2000; i++) {
		assert_true(rig->link->sending->post(rig->source, rig->plan[module].transfer, NULL,
						     0) >= 0);
		rig_poll(rig);
		if (rig->link->sending->reap(rig->source, rig->plan[module].transfer) >= position)
			return;
		usleep(100);
	}
	fail_msg("not acknowledged");
}

static void what_waits_in_the_sockets_is_found(void **state)
{
	struct rig *rig = rig_handover(SL_SERVICE_UC, 0, "true");
	uint64_t first[SL_LINK_TRANSFERS];

	for (unsigned m = 0; m < RIG_MODULES; m++)
		assert_int_equal(rig_send(rig, 0, m), 0);
	replace(rig, first);
	assert_int_equal(first[0], 0);
	assert_int_equal(first[1], 0);
	for (unsigned m = 0; m < RIG_MODULES; m++) {
		assert_true(rig_arrived(rig, 0, m));
		assert_true(rig_intact(rig, 0, m));
		expect_arrives(rig, 1, m);
	}
	assert_int_equal(rig_dropped_all(rig), 0);
	rig_free(rig);
}

static void a_block_that_was_begun_is_not_expected(void **state)
{
	struct rig *rig = rig_handover(SL_SERVICE_UC, 0, "true");
	uint64_t first[SL_LINK_TRANSFERS];

	for (unsigned m = 0; m < RIG_MODULES; m++)
		expect_arrives(rig, 0, m);
	assert_int_equal(rig_send(rig, 1, 0), 0);
	rig->link->receiving->poll(rig->receiver, 0, PACKETS / 2);
	replace(rig, first);
	assert_int_equal(first[0], 2);
	assert_int_equal(first[1], 1);
	assert_int_equal(rig_send(rig, 1, 1), 0);
	rig_poll(rig);
	assert_int_equal(rig_dropped(rig, SL_DROP_LATE), PACKETS - PACKETS / 2 + PACKETS);
	assert_true(rig_untouched(rig, 1, 0));
	for (unsigned m = 0; m < RIG_MODULES; m++)
		for (uint64_t k = 2; k < 2 + RIG_SLOTS; k++)
			expect_arrives(rig, k, m);
	rig_free(rig);
}

/* A process that is killed returns from its last system call to nowhere. */
static void what_was_taken_in_the_last_call_counts_as_taken(void **state)
{
	struct rig *rig = rig_handover(SL_SERVICE_UC, 0, "true");
	uint64_t first[SL_LINK_TRANSFERS];
	struct left left;
	char byte;

	assert_int_equal(rig_send(rig, 0, 0), 0);
	sl_udp_note_reading(&udp(rig->receiver)->queue[0], 4);
	left = leave(rig);
	for (int i = 0; i < 3; i++)
		assert_true(recv(left.flow[0], &byte, 1, MSG_DONTWAIT) > 0);
	take_over(rig, &left, first);
	assert_int_equal(first[0], 1);
	assert_int_equal(first[1], 0);
	expect_arrives(rig, 1, 0);
	rig_free(rig);
}

static void no_more_than_was_granted_can_have_been_taken(void **state)
{
	struct rig *rig = rig_handover(SL_SERVICE_UC, 0, "true");
	uint64_t first[SL_LINK_TRANSFERS];

	sl_udp_note_reading(&udp(rig->receiver)->queue[0], 1000000);
	replace(rig, first);
	assert_int_equal(first[0], RIG_SLOTS);
	assert_int_equal(first[1], 0);
	rig_free(rig);
}

/* All that was granted is lost, and nothing that arrives could say so. */
static void credits_go_on_when_all_that_was_under_way_is_lost(void **state)
{
	struct rig *rig = rig_with(SL_SERVICE_UC, 0, "true", "window", "16384"); /* half each */
	uint64_t first[SL_LINK_TRANSFERS];
	struct sl_write write[64];
	struct left left;
	size_t n, done;
	char byte;

	rig_fill(rig, 0, 0);
	n = rig_writes(rig, 0, 0, write);
	done = (size_t)rig->link->sending->post(rig->source, rig->plan[0].transfer, write, n);
	assert_true(done > 0 && done < n);
	left = leave(rig);
	while (recv(left.flow[0], &byte, 1, MSG_DONTWAIT) > 0)
		continue;
	take_over(rig, &left, first);
	for (int i = 0; i < 1000 && done < n; i++) {
		rig_poll(rig);
		done += (size_t)rig->link->sending->post(rig->source, rig->plan[0].transfer,
							 write + done, n - done);
	}
	assert_int_equal(done, n);
	expect_arrives(rig, 1, 0);
	rig_free(rig);
}

/* It gives up a block after this many packets of it were taken, acknowledged or not. */
static void rc_goes_on(uint16_t message, unsigned taken)
{
	struct rig *rig = rig_handover(SL_SERVICE_RC, message, "true");
	uint64_t first[SL_LINK_TRANSFERS], position;
	struct left left;
	char byte;

	for (uint64_t k = 0; k < 2; k++) {
		expect_arrives(rig, k, 0);
		pump(rig, sl_plan_position(&rig->plan[0], k + 1, 0), 0);
	}
	assert_int_equal(rig_send(rig, 2, 0), 0);
	rig->link->receiving->poll(rig->receiver, 0, taken);
	left = leave(rig);
	/* Some more were taken and not noted, so not acknowledged. */
	for (int i = 0; i < 2; i++)
		assert_true(recv(left.flow[0], &byte, 1, MSG_DONTWAIT) > 0);
	take_over(rig, &left, first);
	assert_int_equal(first[0], taken ? 3 : 2);
	rig_fill(rig, 2, 0);
	pump(rig, sl_plan_position(&rig->plan[0], 3, 0), 0);
	if (!taken)
		assert_true(rig_arrived(rig, 2, 0) && rig_intact(rig, 2, 0));
	for (uint64_t k = 3; k < 3 + RIG_SLOTS; k++) {
		if (k >= first[0] + RIG_SLOTS)
			rig_release(rig, first[0]++);
		expect_arrives(rig, k, 0);
		position = sl_plan_position(&rig->plan[0], k + 1, 0);
		pump(rig, position, 0);
	}
	assert_int_equal(rig_dropped(rig, SL_DROP_RANGE), 0);
	assert_int_equal(udp(rig->receiver)->queue[0].rc.state, SL_ROCE_RTS);
	rig_free(rig);
}

static void rc_sends_again_what_was_not_noted(void **state)
{
	rc_goes_on(SL_MESSAGE_PACKET, 0);
	rc_goes_on(SL_MESSAGE_PACKET, 4);
}

static void rc_goes_on_in_the_middle_of_a_message(void **state)
{
	rc_goes_on(SL_MESSAGE_MODULE, 0);
	rc_goes_on(SL_MESSAGE_MODULE, 4);
	rc_goes_on(SL_MESSAGE_MODULE, PACKETS - 3);
}

/* Credits that were sent and not acknowledged: the source has all of them, or none. */
static void rc_credits_go_on_under_their_numbers(void **state)
{
	enum { LAPS = 50 };
	const struct sl_roce_rc_requester *grants;

	for (int arrived = 0; arrived < 2; arrived++) {
		struct rig *rig = rig_handover(SL_SERVICE_RC, SL_MESSAGE_PACKET, "true");
		uint64_t first[SL_LINK_TRANSFERS];
		struct left left;
		char byte;

		for (uint64_t k = 0; k < LAPS; k++) {
			expect_arrives(rig, k, 0);
			pump(rig, sl_plan_position(&rig->plan[0], k + 1, 0), 0);
			rig_release(rig, k); /* and is granted the slot */
		}
		rig->link->receiving->poll(rig->receiver, 0, 64);
		left = leave(rig);
		if (arrived)
			rig->link->sending->post(rig->source, rig->plan[0].transfer, NULL, 0);
		else
			while (recv(udp(rig->source)->send[0].fd, &byte, 1, MSG_DONTWAIT) > 0)
				continue;
		take_over(rig, &left, first);
		assert_int_equal(first[0], LAPS);
		for (uint64_t k = LAPS; k < LAPS + 3 * RIG_SLOTS; k++) {
			if (k >= first[0] + RIG_SLOTS)
				rig_release(rig, first[0]++);
			expect_arrives(rig, k, 0);
			pump(rig, sl_plan_position(&rig->plan[0], k + 1, 0), 0);
		}
		grants = &udp(rig->receiver)->queue[0].rc.requester;
		assert_int_equal(sl_roce_psn_add(grants->psn, (uint32_t)grants->sent),
				 udp(rig->source)->send[0].rc.responder.queue.expected_psn);
		rig_free(rig);
	}
}

/* ---- without credits ---- */

struct runner { /* a source that nothing stops */
	struct rig *rig;
	pthread_t thread;
	uint64_t next;
	_Atomic int stop;
};

static void *run(void *arg)
{
	struct runner *r = arg;

	for (; !r->stop; r->next++) {
		for (unsigned m = 0; m < RIG_MODULES; m++) {
			struct sl_write write[64];
			size_t n, done = 0;

			rig_fill(r->rig, r->next, m);
			n = rig_writes(r->rig, r->next, m, write);
			while (done < n) {
				int sent = r->rig->link->sending->post(r->rig->source,
								       r->rig->plan[m].transfer,
								       write + done, n - done);

				assert_true(sent >= 0);
				done += (size_t)sent;
			}
		}
		usleep(1000);
	}
	return NULL;
}

/* More than 2^24 packets later a PSN alone says nothing. */
static void a_source_that_nothing_holds_back_is_found_by_its_immediate(void **state)
{
	struct rig *rig = rig_handover(SL_SERVICE_UC, 0, "false");
	struct runner r = {.rig = rig, .next = (UINT64_C(1) << 25) / PACKETS + 12345};
	uint64_t first[SL_LINK_TRANSFERS], begin = r.next;
	struct left left;

	for (unsigned m = 0; m < RIG_MODULES; m++)
		expect_arrives(rig, 0, m);
	left = leave(rig);
	assert_int_equal(rig_send(rig, 1, 0), 0); /* of long ago: it fills the socket */
	assert_int_equal(pthread_create(&r.thread, NULL, run, &r), 0);
	take_over(rig, &left, first);
	r.stop = 1;
	pthread_join(r.thread, NULL);
	assert_true(first[0] > begin && first[0] <= r.next);
	assert_true(first[1] > begin && first[1] <= r.next);
	while (sl_ring_opened(&rig->ring, 0) <= r.next) {
		rig_release(rig, sl_ring_opened(&rig->ring, 0) - RIG_SLOTS);
	}
	for (unsigned m = 0; m < RIG_MODULES; m++)
		expect_arrives(rig, r.next, m);
	rig_free(rig);
}

static void one_that_is_silent_is_believed_to_be_where_it_was(void **state)
{
	struct rig *rig = rig_handover(SL_SERVICE_UC, 0, "false");
	uint64_t first[SL_LINK_TRANSFERS];

	expect_arrives(rig, 0, 0);
	replace(rig, first);
	assert_int_equal(first[0], 1);
	assert_int_equal(first[1], 0);
	expect_arrives(rig, 1, 0);
	rig_free(rig);
}

/* ---- what does not fit ---- */

static void a_plan_that_no_longer_fits_is_refused(void **state)
{
	struct rig *rig = rig_handover(SL_SERVICE_UC, 0, "true");
	struct left left = leave(rig);
	struct sl_plan plan = rig->plan[0];

	rig->handover_fd = &left.link;
	rig->crc = 1;
	assert_int_equal(rig_open_receiver(rig), 0);
	assert_int_equal(handover_accept(rig, 0, left.flow[0]), -EINVAL);
	udp(rig->receiver)->env.crc = 0;
#define REFUSED(field, value)                                                     \
	do {                                                                      \
		rig->plan[0].field = value;                                       \
		assert_int_equal(handover_accept(rig, 0, left.flow[0]), -EINVAL); \
		rig->plan[0] = plan;                                              \
	} while (0)
	REFUSED(pmtu, 512);
	REFUSED(packets, plan.packets + 1);
	REFUSED(service, SL_SERVICE_RC);
	REFUSED(message, SL_MESSAGE_MODULE);
	REFUSED(slots, plan.slots + 1);
	REFUSED(stride, plan.stride + 64);
	REFUSED(block_at, 64);
	REFUSED(block_bytes, plan.block_bytes + 4);
	REFUSED(dest.port, 4792);
	REFUSED(dest.ip[15], (uint8_t)(plan.dest.ip[15] + 1));
	REFUSED(version, SL_PLAN_VERSION + 1);
	REFUSED(module, 1);
	REFUSED(transfer, SL_LINK_TRANSFERS);
	assert_int_equal(handover_accept(rig, 0, left.flow[0]), 0);
	assert_int_equal(handover_accept(rig, 0, left.flow[0]), -EINVAL); /* it is taken */
	rig->plan[1].qpn++;
	assert_int_equal(handover_accept(rig, 1, left.flow[1]), -EINVAL);
	close(left.flow[1]);
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_waits_in_the_sockets_is_found),
		cmocka_unit_test(a_block_that_was_begun_is_not_expected),
		cmocka_unit_test(what_was_taken_in_the_last_call_counts_as_taken),
		cmocka_unit_test(no_more_than_was_granted_can_have_been_taken),
		cmocka_unit_test(credits_go_on_when_all_that_was_under_way_is_lost),
		cmocka_unit_test(rc_sends_again_what_was_not_noted),
		cmocka_unit_test(rc_goes_on_in_the_middle_of_a_message),
		cmocka_unit_test(rc_credits_go_on_under_their_numbers),
		cmocka_unit_test(a_source_that_nothing_holds_back_is_found_by_its_immediate),
		cmocka_unit_test(one_that_is_silent_is_believed_to_be_where_it_was),
		cmocka_unit_test(a_plan_that_no_longer_fits_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
