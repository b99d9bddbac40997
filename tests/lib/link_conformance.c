/* link_conformance.c - see link_conformance.h. */
#include <errno.h>

#include "lib/link_conformance.h"

/* How many things a link can tell of n packets: each of them, or, behind a NIC, the block. */
static uint64_t visible(const struct rig *rig, size_t n)
{
	return rig_is_nic(rig->link) ? 1 : rig->link->oneway ? rig->plan[0].packets : n;
}

static void frames_arrive_whole_and_in_order(void **state)
{
	struct rig *rig = rig_ready(*state);

	for (uint64_t k = 0; k < 3 * RIG_SLOTS; k++) {
		for (uint32_t m = 0; m < RIG_MODULES; m++) {
			assert_int_equal(rig_send(rig, k, m), 0);
			assert_true(rig_arrived(rig, k, m));
			assert_true(rig_intact(rig, k, m));
			assert_int_equal(sl_ring_reached(&rig->ring, m), k + 1);
		}
		rig_release(rig, k);
	}
	assert_int_equal(rig_dropped_all(rig), 0);
	rig_free(rig);
}

static void no_event_before_the_last_byte(void **state)
{
	struct rig *rig = rig_ready(*state);
	struct sl_write write[64];
	uint64_t ns;
	size_t n;

	rig_fill(rig, 0, 0);
	n = rig_writes(rig, 0, 0, write);
	for (size_t i = 0; i < n; i++) {
		assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
		assert_int_equal(
			rig->link->sending->post(rig->source, rig->plan[0].transfer, write + i, 1),
			1);
		rig_poll(rig);
	}
	assert_true(rig_arrived(rig, 0, 0));
	rig_free(rig);
}

static void modules_are_independent(void **state)
{
	struct rig *rig = rig_ready(*state);
	uint64_t ns;

	assert_int_equal(rig_send(rig, 0, 1), 0);
	assert_int_equal(rig_send(rig, 1, 1), 0);
	assert_true(rig_arrived(rig, 1, 1));
	assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	assert_true(rig_untouched(rig, 0, 0));
	assert_int_equal(rig_send(rig, 0, 0), 0);
	assert_true(rig_arrived(rig, 0, 0));
	assert_true(rig_intact(rig, 0, 1));
	rig_free(rig);
}

static void the_source_waits_for_open_slots(void **state)
{
	struct rig *rig = rig_ready(*state);

	for (uint64_t k = 0; k < RIG_SLOTS; k++)
		assert_int_equal(rig_send(rig, k, 0), 0);
	assert_true(rig_send(rig, RIG_SLOTS, 0) > 0); /* the ring is full */
	assert_int_equal(rig_dropped_all(rig), 0);    /* and nothing was sent in vain */
	assert_true(rig_arrived(rig, 0, 0));
	assert_true(rig_intact(rig, 0, 0)); /* nor written over what is being read */

	rig_release(rig, 0);
	rig_poll(rig);
	assert_int_equal(rig_send(rig, RIG_SLOTS, 0), 0);
	assert_true(rig_arrived(rig, RIG_SLOTS, 0));
	assert_true(rig_intact(rig, RIG_SLOTS, 0));
	rig_free(rig);
}

static void nothing_is_sent_before_anything_is_granted(void **state)
{
	struct rig *rig = rig_new(*state);

	assert_int_equal(rig_open_receiver(rig), 0);
	rig_open_source(rig);
	assert_true(rig_send(rig, 0, 0) > 0);
	assert_int_equal(rig_dropped_all(rig), 0);
	assert_int_equal(sl_link_packets(&rig->counters), 0);
	rig_free(rig);
}

/* A link may let the kernel write to where a payload is expected before it is judged, in an open
 * slot and over bytes that nobody has received: what is promised is that it raises no event,
 * touches no other block, and does not stay. */
static void a_wrong_key_is_counted_and_changes_nothing(void **state)
{
	struct rig *rig = rig_ready(*state);
	struct sl_write write[64];
	size_t n;
	uint64_t ns;

	rig_fill(rig, 0, 0);
	n = rig_writes(rig, 0, 0, write);
	for (size_t i = 0; i < n; i++)
		write[i].rkey ^= 1;
	assert_int_equal(rig->link->sending->post(rig->source, rig->plan[0].transfer, write, n), n);
	rig_poll(rig);
	/* A NIC refuses by itself, without a word. */
	assert_int_equal(rig_dropped(rig, SL_DROP_KEY), rig_is_nic(rig->link) ? 0 : n);
	assert_int_equal(rig_dropped_all(rig), rig_is_nic(rig->link) ? 0 : n);
	assert_true(rig_untouched(rig, 0, 1) && rig_untouched(rig, 1, 0));
	assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	if (rig->link->guards & SL_GUARD_ENFORCED) {
		assert_int_equal(rig_send(rig, 0, 0), 0);
		assert_true(rig_arrived(rig, 0, 0) && rig_intact(rig, 0, 0));
	}
	rig_free(rig);
}

static void another_modules_key_does_not_open_this_ones_blocks(void **state)
{
	struct rig *rig = rig_ready(*state);
	struct sl_write write[64];
	size_t n;

	assert_int_not_equal(rig->plan[0].rkey, rig->plan[1].rkey);
	rig_fill(rig, 0, 0);
	n = rig_writes(rig, 0, 0, write);
	for (size_t i = 0; i < n; i++)
		write[i].rkey = rig->plan[1].rkey;
	rig->link->sending->post(rig->source, rig->plan[0].transfer, write, n);
	rig_poll(rig);
	assert_int_equal(rig_dropped(rig, SL_DROP_KEY), n);
	assert_true(rig_untouched(rig, 0, 1) && rig_untouched(rig, 1, 0));
	rig_free(rig);
}

/* Beside, before, behind, and where 64 bits overflow. */
static void out_of_range_is_counted_and_raises_no_event(void **state)
{
	struct rig *rig = rig_ready(*state);
	const struct sl_plan *plan = &rig->plan[0];
	uint64_t span = plan->slots * plan->stride, ns;
	const uint64_t va[] = {
		sl_plan_address(plan, 0, 0) + 4, /* beside */
		plan->base + span,		 /* behind */
		plan->base + span - 8,		 /* across the end */
		plan->base - 8,			 /* before */
		UINT64_MAX - 8,			 /* around the corner */
		sl_plan_address(plan, 1, 0),	 /* another slot than its sequence has */
	};

	for (size_t i = 0; i < sizeof(va) / sizeof(*va); i++) {
		struct sl_write write[64];
		uint64_t before = rig_dropped(rig, SL_DROP_RANGE);
		size_t n;

		rig_fill(rig, 0, 0);
		n = rig_writes(rig, 0, 0, write);
		write[n - 1].va = va[i];
		assert_int_equal(
			rig->link->sending->post(rig->source, plan->transfer, &write[n - 1], 1), 1);
		rig_poll(rig);
		assert_int_equal(rig_dropped(rig, SL_DROP_RANGE), before + 1);
		assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	}
	assert_int_equal(rig_dropped_all(rig), sizeof(va) / sizeof(*va));
	rig_free(rig);
}

static void a_frame_sent_twice_is_taken_once(void **state)
{
	struct rig *rig = rig_ready(*state);
	struct sl_write write[64];
	size_t n;

	assert_int_equal(rig_send(rig, 0, 0), 0);
	assert_true(rig_arrived(rig, 0, 0));
	memset(rig->block, 0xee, sizeof(rig->block)); /* the second time with other bytes */
	n = rig_writes(rig, 0, 0, write);
	if (rig->link->guards & SL_GUARD_ENFORCED) {
		rig->link->sending->post(rig->source, rig->plan[0].transfer, write, n);
		rig_poll(rig);
		assert_true(rig_intact(rig, 0,
				       0)); /* enforced: bytes received are never written again */
	} else {
		rig_fill(rig, 0, 0);
		rig->link->sending->post(rig->source, rig->plan[0].transfer, write, n);
		rig_poll(rig);
	}
	assert_int_equal(rig_dropped(rig, SL_DROP_DUPLICATE), visible(rig, n));
	rig_free(rig);
}

static void what_comes_after_its_slot_was_given_up_is_late(void **state)
{
	struct rig *rig = rig_ready(*state);
	struct sl_write write[64];
	size_t n;

	n = rig_writes(rig, 0, 0, write);
	sl_ring_close(&rig->ring, 0, 0);
	assert_int_equal(rig->link->sending->post(rig->source, rig->plan[0].transfer, write, n), n);
	rig_poll(rig);
	assert_int_equal(rig_dropped(rig, SL_DROP_LATE), visible(rig, n));
	rig_free(rig);
}

static enum sl_packet_fault drop_first_packet_of_frame_1(void *arg, uint16_t module,
							 uint64_t sequence, uint32_t packet)
{
	return sequence == 1 && packet == 0 ? SL_PACKET_FAULT_DROP : SL_PACKET_FAULT_NONE;
}

static void a_lost_packet_costs_its_frame_and_no_other(void **state)
{
	struct rig *rig = rig_new(*state);
	uint64_t ns;

	rig->fault = drop_first_packet_of_frame_1;
	assert_int_equal(rig_open_receiver(rig), 0);
	rig_open_source(rig);
	sl_ring_open(&rig->ring, UINT64_MAX);
	rig_poll(rig);
	for (uint64_t k = 0; k < RIG_SLOTS; k++) {
		assert_int_equal(rig_send(rig, k, 0), 0);
		if (k != 1)
			assert_true(rig_arrived(rig, k, 0));
	}
	assert_false(sl_ring_event(&rig->ring, 1, 0, &ns));
	assert_true(rig_intact(rig, 0, 0) && rig_intact(rig, 2, 0) && rig_intact(rig, 3, 0));
	rig_free(rig);
}

static enum sl_packet_fault drop_everything(void *arg, uint16_t module, uint64_t sequence,
					    uint32_t packet)
{
	return SL_PACKET_FAULT_DROP;
}

/* All of a window lost: only the source's own count can tell the receiver that it was sent. */
static void credit_comes_back_after_everything_was_lost(void **state)
{
	struct rig *rig = rig_new(*state);

	rig->fault = drop_everything;
	assert_int_equal(rig_open_receiver(rig), 0);
	rig_open_source(rig);
	sl_ring_open(&rig->ring, UINT64_MAX);
	rig_poll(rig);
	for (uint64_t k = 0; k < RIG_SLOTS; k++)
		rig_send(rig, k, 0);
	rig->link->receiving->reported(
		rig->receiver, rig->plan[0].transfer,
		rig->link->sending->reap(rig->source, rig->plan[0].transfer));
	/* The word must grow old, since it may have overtaken packets. */
	for (int tries = 0; tries < 5000 && !sl_ring_reached(&rig->ring, 0); tries++) {
		rig_poll(rig);
		usleep(1000);
	}
	/* They are due now: the assembler can give up on them. */
	assert_int_equal(sl_ring_reached(&rig->ring, 0), RIG_SLOTS);
	for (uint64_t k = 0; k < RIG_SLOTS; k++)
		rig_release(rig, k);
	rig_poll(rig);
	for (uint64_t k = RIG_SLOTS; k < 2 * RIG_SLOTS; k++)
		assert_int_equal(rig_send(rig, k, 0), 0);
	rig_free(rig);
}

static void a_source_that_closes_in_mid_frame_raises_nothing(void **state)
{
	struct rig *rig = rig_ready(*state);
	struct sl_write write[64];
	uint64_t ns;
	size_t n;

	rig_fill(rig, 0, 0);
	n = rig_writes(rig, 0, 0, write);
	if (n > 1)
		rig->link->sending->post(rig->source, rig->plan[0].transfer, write, n / 2);
	rig_close_source(rig);
	rig_poll(rig);
	assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	assert_int_equal(sl_ring_packets(&rig->ring, 0, 0),
			 n > 1 && !rig_is_nic(rig->link) ? n / 2 : 0);
	rig->link->receiving->drop(rig->receiver, rig->plan[0].transfer);
	rig_poll(rig); /* nothing left over to trip on */
	rig_free(rig);
}

static void a_receiver_that_closes_does_not_hurt_the_source(void **state)
{
	struct rig *rig = rig_ready(*state);
	struct sl_write write[64];
	size_t n = rig_writes(rig, 0, 0, write);

	rig_close_receiver(rig);
	for (int i = 0; i < 20; i++) {
		int sent = rig->link->sending->post(rig->source, rig->plan[0].transfer, write, n);

		assert_true(sent >= 0 || sent == -EPIPE);
		rig->link->sending->wait(rig->source, 100);
	}
	rig_free(rig);
}

static void a_dropped_transfer_takes_nothing_more(void **state)
{
	struct rig *rig = rig_ready(*state);
	uint64_t ns;

	rig->link->receiving->drop(rig->receiver, rig->plan[0].transfer);
	rig_send(rig, 0, 0);
	rig_poll(rig);
	assert_false(sl_ring_event(&rig->ring, 0, 0, &ns));
	assert_true(rig_send(rig, 0, 1) == 0 &&
		    rig_arrived(rig, 0, 1)); /* the other one still does */
	rig_free(rig);
}

static void offers_that_do_not_fit_are_refused(void **state)
{
	struct rig *rig = rig_new(*state);
	void *source = rig_state(rig);
	struct sl_link_env env = {0};
	struct sl_offer offer;
	struct sl_plan plan = {.version = 77};

	assert_int_equal(rig_open_receiver(rig), 0);
	assert_int_equal(rig->link->open(source, &env), 0);
	assert_int_equal(rig_offer(rig, source, RIG_MODULES, &offer), 0);
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), -EINVAL);
	assert_int_equal(rig_offer(rig, source, 0, &offer), 0);
	offer.block_bytes--;
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), -EINVAL);
	offer.block_bytes++;
	offer.messages = 0;
	assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan), -EINVAL);
	assert_int_equal(plan.version, 77); /* outputs are set only on success */
	rig->link->close(source);
	free(source);
	rig_free(rig);
}

/* Front ends may come and go before the start as often as they like. */
static void a_dropped_transfer_makes_room_for_another(void **state)
{
	struct rig *rig = rig_new(*state);

	assert_int_equal(rig_open_receiver(rig), 0);
	for (int i = 0; i < 100; i++) {
		struct sl_plan before = rig->plan[0];

		rig_open_source(rig);
		/* Who was dropped cannot go on: another key, or, behind a NIC, another queue. */
		if (rig_is_nic(rig->link))
			assert_int_not_equal(rig->plan[0].qpn, before.qpn);
		else if (!rig->link->oneway)
			assert_int_not_equal(rig->plan[0].rkey, before.rkey);
		if (i == 99)
			break;
		for (unsigned m = 0; m < RIG_MODULES; m++)
			rig->link->receiving->drop(rig->receiver, rig->plan[m].transfer);
		rig_close_source(rig);
	}
	sl_ring_open(&rig->ring, UINT64_MAX);
	rig_poll(rig);
	for (uint32_t m = 0; m < RIG_MODULES; m++) {
		assert_int_equal(rig_send(rig, 0, m), 0);
		assert_true(rig_arrived(rig, 0, m) && rig_intact(rig, 0, m));
	}
	rig_free(rig);
}

static void keys_are_random(void **state)
{
	struct rig *a = rig_ready(*state);
	uint32_t keys[4] = {a->plan[0].rkey, a->plan[1].rkey};

	rig_free(a);
	a = rig_ready(*state);
	keys[2] = a->plan[0].rkey;
	keys[3] = a->plan[1].rkey;
	rig_free(a);
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < i; j++)
			assert_int_not_equal(keys[i], keys[j]);
}

static void waiting_ends_when_slots_were_opened(void **state)
{
	struct rig *rig = rig_ready(*state);
	uint64_t one = 1, start;

	rig_poll(rig);
	assert_int_equal(write(rig->wake[0].fd, &one, sizeof(one)), sizeof(one));
	start = sl_clock_ns();
	rig->link->receiving->wait(rig->receiver, 0, 30 * 1000 * 1000);
	assert_true(sl_clock_ns() - start < UINT64_C(20) * 1000 * 1000 * 1000);
	assert_int_equal(atomic_load(&rig->wake[0].asleep), 0);
	assert_int_equal(read(rig->wake[0].fd, &one, sizeof(one)), -1); /* and it was drained */
	rig_free(rig);
}

/* A block may be given up only for what the link has looked at: packets that wait in its buffers
 * are not late. Links may say a time that is 20 ms too early, never one that is too late. */
static void the_link_says_up_to_when_it_has_taken_everything(void **state)
{
	struct rig *rig = rig_ready(*state);
	const struct sl_link_receiving *receiving = rig->link->receiving;
	uint64_t before, ns;
	struct sl_write write[64];
	size_t n;

	for (int round = 0; round < 3; round++) {
		sl_clock_sleep_until(sl_clock_ns() + 30000000);
		before = sl_clock_ns();
		for (uint32_t m = 0; m < RIG_MODULES; m++)
			assert_true(sl_ring_looked_at(&rig->ring, m) < before);
		rig_poll(rig);
		for (uint32_t m = 0; m < RIG_MODULES; m++) {
			assert_true(sl_ring_looked_at(&rig->ring, m) + 21000000 >= before);
			assert_true(sl_ring_looked_at(&rig->ring, m) <= sl_clock_ns());
		}
	}
	rig_fill(rig, 0, 0);
	n = rig_writes(rig, 0, 0, write);
	assert_int_equal(rig->link->sending->post(rig->source, rig->plan[0].transfer, write, n), n);
	sl_clock_sleep_until(sl_clock_ns() + 30000000);
	before = sl_clock_ns();
	/* A pass that leaves some of them there has not taken everything. */
	receiving->poll(rig->receiver, 0, 1);
	if (!sl_ring_event(&rig->ring, 0, 0, &ns))
		assert_true(sl_ring_looked_at(&rig->ring, 0) + 21000000 < before);
	assert_true(rig_arrived(rig, 0, 0));
	rig_free(rig);
}

static void nothing_is_lost_with_default_buffers_and_a_lazy_receiver(void **state)
{
	struct rig *rig = rig_new(*state);

	rig->receive_buffer = 212992 / 2; /* the kernel doubles what is asked for */
	assert_int_equal(rig_open_receiver(rig), 0);
	rig_open_source(rig);
	sl_ring_open(&rig->ring, UINT64_MAX);
	rig_poll(rig);
	/* rig_send polls only when the source has no credit left. */
	for (uint64_t k = 0; k < 200; k++) {
		for (uint32_t m = 0; m < RIG_MODULES; m++)
			assert_int_equal(rig_send(rig, k, m), 0);
		if (k % RIG_SLOTS == RIG_SLOTS - 1)
			for (uint64_t j = k - RIG_SLOTS + 1; j <= k; j++) {
				assert_true(rig_arrived(rig, j, 0) && rig_arrived(rig, j, 1));
				assert_true(rig_intact(rig, j, 0) && rig_intact(rig, j, 1));
				rig_release(rig, j);
			}
	}
	assert_int_equal(rig_dropped_all(rig), 0);
	rig_free(rig);
}

static void closing_a_link_that_never_opened_is_harmless(void **state)
{
	const struct sl_link *link = *state;
	void *never = calloc(1, link->state_bytes);

	sl_options_defaults(link->options, never);
	link->close(never);
	free(never);
}

static void the_descriptor_is_whole(void **state)
{
	const struct sl_link *link = *state;

	assert_non_null(link->receiving);
	assert_non_null(link->sending);
	assert_true((link->handover == NULL) == (link->no_handover != NULL));
	assert_true(link->oneway == (link->receiving->offer != NULL));
	assert_true(link->oneway == (link->sending->accept != NULL));
}

static bool set_text(const struct sl_link *link, void *options, const char *name, const char *text)
{
	char why[128];

	return sl_options_set(link->options, options, name, text, why, sizeof(why)) == 0;
}

static void facts_are_as_options_say(void **state)
{
	const struct sl_link *link = *state;
	void *options = calloc(1, link->state_bytes);
	struct sl_link_facts facts;

	sl_options_defaults(link->options, options);
	sl_link_facts(link, options, &facts);
	assert_true(facts.credits);
	assert_true(link->oneway == (facts.payload != 0));
	if (set_text(link, options, "listen", "10.1.2.3"))
		assert_string_equal(facts.listen, "10.1.2.3");
	else
		assert_string_equal(facts.listen, "");
	if (set_text(link, options, "source", "10.1.2.4"))
		assert_string_equal(facts.source, "10.1.2.4");
	else
		assert_string_equal(facts.source, "");
	if (set_text(link, options, "credits", "false")) {
		sl_link_facts(link, options, &facts);
		assert_false(facts.credits);
	}
	assert_true(facts.sockets == set_text(link, options, "receive_buffer", "123456"));
	sl_link_facts(link, options, &facts);
	assert_int_equal(facts.receive_buffer, facts.sockets ? 123456 : 0);
	free(options);
}

static void two_receivers_do_not_share_an_address(void **state)
{
	struct rig *a = rig_new(*state), *b = rig_new(*state);
	char name[32];
	void *second;

	snprintf(name, sizeof(name), "conformance-%d", (int)getpid());

	assert_int_equal(rig_open_receiver(a), 0);
	if (sl_option_find(a->link->options, "listen")) {
		assert_int_equal(rig_open_receiver(b), -EADDRINUSE);
	} else {
		struct sl_link_env env = {.ring = &b->ring,
					  .pollers = 1,
					  .wake = b->wake,
					  .counters = &b->counters,
					  .message = SL_MESSAGE_MODULE,
					  .pmtu = RIG_PMTU};

		rig_close_receiver(a);
		a->receiver = rig_state(a);
		rig_set(a->link, a->receiver, "name", name);
		assert_int_equal(a->link->open(a->receiver, &env), 0);
		second = rig_state(b);
		rig_set(b->link, second, "name", name);
		assert_int_equal(b->link->open(second, &env), -EADDRINUSE);
		b->receiver = second;
	}
	rig_free(b);
	rig_free(a);
}

/* A source that knows of no lines, or of others, cannot be asked to place them. */
static void offers_of_other_lines_are_refused(void **state)
{
	static const uint32_t other[][2] = {
		{RIG_LINES / 2, RIG_LINE * 2}, {RIG_LINES, RIG_LINE + 1}, {0, 0}, {0, RIG_LINE}};
	struct rig *rig = rig_new(*state);
	void *source = rig_state(rig);
	struct sl_link_env env = {0};
	struct sl_offer offer;
	struct sl_plan plan = {.version = 77};

	assert_int_equal(rig_open_receiver(rig), 0);
	assert_int_equal(rig->link->open(source, &env), 0);
	assert_int_equal(rig_offer(rig, source, 0, &offer), 0);
	for (size_t i = rig_layout.pitch ? 0 : 1; i < 4; i++) {
		offer.lines = other[i][0];
		offer.line_bytes = other[i][1];
		assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &plan),
				 -EINVAL);
	}
	assert_int_equal(plan.version, 77);
	rig->link->close(source);
	free(source);
	rig_free(rig);
}

static void options_are_documented(void **state)
{
	const struct sl_link *link = *state;

	assert_true(link->doc && link->doc[0] && link->guards);
	for (const struct sl_option *o = link->options; o->name; o++)
		assert_true(o->doc[0]);
}

/* A NIC judges keys and ranges itself, takes the numbers of keys from its own count, and has room
 * for several receivers. Where nothing goes back to a source there are neither credits nor keys. */
enum { ANY, NOT_NIC, BOTH_WAYS, BOTH_WAYS_NOT_NIC };

/* Which cases are run once more for every way in which pixels can lie: those that do not count
 * messages. LAID: also behind a NIC, which shows no gap in messages of lines. */
enum { PLAIN, LAID, LAID_NOT_NIC, LAID_ONLY };

static const struct rig_layout layouts[] = {
	{"", 0, 0, 0, false},
	{"lines", SL_MESSAGE_LINE, 0, 0, true},
	{"packets, pitch", SL_MESSAGE_PACKET, 1344, 0, true},
	{"lines, pitch", SL_MESSAGE_LINE, 1344, 0, true},
	{"rectangle", 0, 0, RIG_SOURCE_PITCH, true},
	{"rectangle to lines, pitch", SL_MESSAGE_LINE, 4096, RIG_SOURCE_PITCH, true},
};

#define CASE(f, links, layouts)       \
	{                             \
#f, f, links, layouts \
	}
static const struct {
	const char *name;
	CMUnitTestFunction run;
	int links, layouts;
} cases[] = {
	CASE(frames_arrive_whole_and_in_order, ANY, LAID),
	CASE(no_event_before_the_last_byte, ANY, LAID),
	CASE(modules_are_independent, ANY, LAID),
	CASE(the_source_waits_for_open_slots, BOTH_WAYS, LAID),
	CASE(nothing_is_sent_before_anything_is_granted, BOTH_WAYS, LAID),
	CASE(a_wrong_key_is_counted_and_changes_nothing, BOTH_WAYS, PLAIN),
	CASE(another_modules_key_does_not_open_this_ones_blocks, BOTH_WAYS_NOT_NIC, PLAIN),
	CASE(out_of_range_is_counted_and_raises_no_event, BOTH_WAYS_NOT_NIC, PLAIN),
	CASE(a_frame_sent_twice_is_taken_once, ANY, PLAIN),
	CASE(what_comes_after_its_slot_was_given_up_is_late, ANY, PLAIN),
	CASE(a_lost_packet_costs_its_frame_and_no_other, ANY, LAID_NOT_NIC),
	CASE(credit_comes_back_after_everything_was_lost, BOTH_WAYS, LAID),
	CASE(a_source_that_closes_in_mid_frame_raises_nothing, ANY, PLAIN),
	CASE(a_receiver_that_closes_does_not_hurt_the_source, ANY, PLAIN),
	CASE(a_dropped_transfer_takes_nothing_more, ANY, PLAIN),
	CASE(offers_that_do_not_fit_are_refused, ANY, LAID),
	CASE(a_dropped_transfer_makes_room_for_another, ANY, PLAIN),
	CASE(keys_are_random, BOTH_WAYS_NOT_NIC, PLAIN),
	CASE(waiting_ends_when_slots_were_opened, ANY, PLAIN),
	CASE(the_link_says_up_to_when_it_has_taken_everything, ANY, PLAIN),
	CASE(nothing_is_lost_with_default_buffers_and_a_lazy_receiver, BOTH_WAYS, LAID),
	CASE(closing_a_link_that_never_opened_is_harmless, ANY, PLAIN),
	CASE(the_descriptor_is_whole, ANY, PLAIN),
	CASE(facts_are_as_options_say, ANY, PLAIN),
	CASE(two_receivers_do_not_share_an_address, BOTH_WAYS_NOT_NIC, PLAIN),
	CASE(offers_of_other_lines_are_refused, ANY, LAID_ONLY),
	CASE(options_are_documented, ANY, PLAIN),
};

enum {
	CASES = sizeof(cases) / sizeof(*cases),
	LAYOUTS = sizeof(layouts) / sizeof(*layouts),
	LINKS_MAX = 4,
};

static struct laid_case {
	const struct sl_link *link;
	const struct rig_layout *layout;
	CMUnitTestFunction run;
	char name[160];
} laid_case[CASES * LAYOUTS * LINKS_MAX];

static void run_laid(void **state)
{
	const struct laid_case *it = *state;
	void *link = (void *)it->link;

	rig_layout = *it->layout;
	it->run(&link);
	rig_layout = layouts[0];
}

static bool has_case(const struct sl_link *link, size_t layout, size_t number)
{
	int laid = cases[number].layouts;
	const struct rig_layout *l = &layouts[layout];

	if ((cases[number].links == NOT_NIC || cases[number].links == BOTH_WAYS_NOT_NIC) &&
	    rig_is_nic(link))
		return false;
	if (cases[number].links >= BOTH_WAYS && link->oneway)
		return false;
	if (!layout)
		return laid != LAID_ONLY;
	if (l->message && !(link->messages & l->message))
		return false;
	if (laid == LAID_ONLY)
		return l->message == SL_MESSAGE_LINE || l->pitch;
	return laid == LAID || (laid == LAID_NOT_NIC && !rig_is_nic(link));
}

int conform(const struct sl_link *const *links, size_t n)
{
	static struct CMUnitTest tests[CASES * LAYOUTS * LINKS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < n * LAYOUTS * CASES; i++) {
		const struct sl_link *link = links[i / CASES / LAYOUTS];
		size_t layout = i / CASES % LAYOUTS;
		struct laid_case *it = &laid_case[count];

		if (!has_case(link, layout, i % CASES))
			continue;
		*it = (struct laid_case){link, &layouts[layout], cases[i % CASES].run, ""};
		snprintf(it->name, sizeof(it->name), "%s%s%s: %s", link->name, layout ? ", " : "",
			 layouts[layout].name, cases[i % CASES].name);
		tests[count++] = (struct CMUnitTest){
			.name = it->name, .test_func = run_laid, .initial_state = it};
	}
	return _cmocka_run_group_tests("link conformance", tests, count, NULL, NULL);
}
