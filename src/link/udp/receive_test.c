/* receive_test.c - payloads are received at the place where they are expected: whatever is lost,
 * doubled, overtaken or made up around it, nothing lands where it does not belong, and nothing that
 * was received or is being read changes. */
#include "base/crc.h"
#include "lib/link_rig.h"
#include "link/udp/udp.h"

extern const struct sl_link sl_link_udp;

enum { WRITES = 16, TRIALS = 200 };

static struct rig *rig_cut(bool segment)
{
	struct rig *rig = rig_new(&sl_link_udp);

	rig->option[0][0] = "segment";
	rig->option[0][1] = segment ? "true" : "false";
	rig_make_ready(rig);
	assert_true(((struct sl_udp *)rig->receiver)->queue[0].fd >= 0);
	return rig;
}

static const struct sl_udp_queue *queue_of(struct rig *rig, uint32_t module)
{
	return &((struct sl_udp *)rig->receiver)->queue[rig->plan[module].transfer];
}

static uint32_t draw(uint32_t *seed, uint32_t below)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % below;
}

static void post(struct rig *rig, uint32_t module, const struct sl_write *write, size_t n)
{
	while (n) {
		int sent =
			rig->link->sending->post(rig->source, rig->plan[module].transfer, write, n);

		assert_true(sent >= 0);
		write += sent;
		n -= (size_t)sent;
		rig_poll(rig);
	}
}

static void packets_in_order_are_all_received_in_place(void **state)
{
	for (int segment = 0; segment < 2; segment++) {
		struct rig *rig = rig_cut(segment);

		for (uint64_t k = 0; k < 10 * RIG_SLOTS; k++) {
			for (uint32_t m = 0; m < RIG_MODULES; m++) {
				assert_int_equal(rig_send(rig, k, m), 0);
				assert_true(rig_arrived(rig, k, m) && rig_intact(rig, k, m));
			}
			rig_release(rig, k);
			rig_poll(rig);
		}
		assert_int_equal(rig_dropped_all(rig), 0);
		for (uint32_t m = 0; m < RIG_MODULES; m++) {
			const struct sl_udp_queue *q = queue_of(rig, m);

			assert_int_equal(q->stream.guessed + q->stream.repaired,
					 10 * RIG_SLOTS * rig->plan[m].packets);
			/* It takes a few to learn how many come together. */
			assert_in_range(q->stream.repaired, 0, 2 * rig->plan[m].packets);
		}
		rig_free(rig);
	}
}

/* Of the same messages, and of lines, with and without a pitch. */
static void lines_in_order_are_all_received_in_place(void **state)
{
	static const struct rig_layout layouts[] = {
		{"", SL_MESSAGE_LINE, 0, 0, true},
		{"", SL_MESSAGE_LINE, 1344, 0, true},
		{"", SL_MESSAGE_PACKET, 1344, 0, true},
		{"", SL_MESSAGE_MODULE, 0, 0, true},
	};

	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
		rig_layout = layouts[i];
		packets_in_order_are_all_received_in_place(state);
	}
	rig_layout = (struct rig_layout){0};
}

static void shuffle(struct sl_write *write, size_t n, uint32_t *seed)
{
	for (size_t i = n - 1; i > 0; i--) {
		size_t j = draw(seed, (uint32_t)i + 1);
		struct sl_write keep = write[i];

		write[i] = write[j];
		write[j] = keep;
	}
}

static void packets_that_overtake_each_other_find_their_places(void **state)
{
	uint32_t seed = 7;

	for (int trial = 0; trial < TRIALS; trial++) {
		struct rig *rig = rig_cut(trial & 1);
		struct sl_write write[WRITES];

		for (uint64_t k = 0; k < RIG_SLOTS; k++) {
			size_t n;

			rig_fill(rig, k, 0);
			n = rig_writes(rig, k, 0, write);
			shuffle(write, n, &seed);
			post(rig, 0, write, n);
			assert_true(rig_arrived(rig, k, 0));
		}
		for (uint64_t k = 0; k < RIG_SLOTS; k++) {
			assert_true(rig_intact(rig, k, 0));
			assert_true(rig_untouched(rig, k, 1));
		}
		assert_int_equal(rig_dropped_all(rig), 0);
		rig_free(rig);
	}
}

/* Any packets missing, any twice and with other bytes the second time, in any order. */
static void what_was_received_never_changes(void **state)
{
	uint32_t seed = 11;

	for (int trial = 0; trial < TRIALS; trial++) {
		struct rig *rig = rig_cut(trial & 1);
		struct sl_write write[WRITES], again[WRITES];
		uint8_t honest[RIG_PIXELS + SL_RECORD_BYTES], other[RIG_PIXELS + SL_RECORD_BYTES];
		size_t n, some = 0, twice = 0;

		rig_fill(rig, 0, 0);
		memcpy(honest, rig->block, sizeof(honest));
		memset(other, 0xee, sizeof(other));
		n = rig_writes(rig, 0, 0, write);
		for (size_t i = 0; i < n; i++)
			if (draw(&seed, 3)) {
				write[some] = write[i];
				write[some].part[0].data =
					honest +
					((const uint8_t *)write[i].part[0].data - rig->block);
				some++;
			}
		post(rig, 0, write, some);
		for (size_t i = 0; i < some; i++)
			if (draw(&seed, 2)) {
				again[twice] = write[i];
				again[twice++].part[0].data = other;
			}
		if (twice)
			shuffle(again, twice, &seed);
		post(rig, 0, again, twice);
		for (size_t i = 0; i < some; i++) {
			uint64_t offset = write[i].va - sl_plan_address(&rig->plan[0], 0, 0);

			assert_memory_equal(sl_ring_block(&rig->ring, 0, 0) + offset,
					    honest + offset, write[i].bytes);
		}
		assert_int_equal(rig_dropped_all(rig), rig_dropped(rig, SL_DROP_DUPLICATE));
		assert_int_equal(rig_dropped_all(rig), twice);
		assert_true(rig_untouched(rig, 0, 1));
		rig_free(rig);
	}
}

static void a_slot_that_is_being_read_is_not_written(void **state)
{
	for (int segment = 0; segment < 2; segment++) {
		struct rig *rig = rig_cut(segment);
		struct sl_write write[WRITES];
		size_t n;

		rig_fill(rig, 0, 0);
		n = rig_writes(rig, 0, 0, write);
		sl_ring_close(&rig->ring, 0, 0); /* given up: its readers have it now */
		post(rig, 0, write, n);
		assert_int_equal(rig_dropped(rig, SL_DROP_LATE), n);
		assert_true(rig_untouched(rig, 0, 0));
		rig_free(rig);
	}
}

static enum sl_packet_fault spoil_packet_3(void *arg, uint16_t module, uint64_t sequence,
					   uint32_t packet)
{
	return packet == 3 ? SL_PACKET_FAULT_CORRUPT : SL_PACKET_FAULT_NONE;
}

/* Received in place, and still not believed. */
static void a_wrong_checksum_is_found_where_it_was_expected(void **state)
{
	for (int segment = 0; segment < 2; segment++) {
		struct rig *rig = rig_new(&sl_link_udp);
		uint64_t ns;

		rig->fault = spoil_packet_3;
		rig->option[0][0] = "segment";
		rig->option[0][1] = segment ? "true" : "false";
		rig_make_ready(rig);
		for (uint64_t k = 0; k < RIG_SLOTS; k++) {
			assert_int_equal(rig_send(rig, k, 0), 0);
			rig_poll(rig);
			assert_false(sl_ring_event(&rig->ring, k, 0, &ns));
			assert_int_equal(sl_ring_packets(&rig->ring, k, 0),
					 rig->plan[0].packets - 1);
		}
		assert_int_equal(rig_dropped(rig, SL_DROP_ICRC), RIG_SLOTS);
		assert_int_equal(rig_dropped_all(rig), RIG_SLOTS);
		rig_free(rig);
	}
}

/* Anything at all, from the very port that the honest packets come from. */
static void noise_from_the_right_port_does_no_harm(void **state)
{
	struct rig *rig = rig_cut(true);
	struct sl_udp *source = rig->source;
	static uint8_t noise[60000];
	uint32_t seed = 3;

	for (int i = 0; i < 500; i++) {
		size_t bytes = draw(&seed, i % 10 ? 5000 : sizeof(noise));

		for (size_t b = 0; b < bytes; b++)
			noise[b] = (uint8_t)draw(&seed, 256);
		bytes = i % 50 ? bytes : 0; /* an empty datagram counts as any other */
		assert_int_equal(sendto(source->send[0].fd, noise, bytes, 0,
					&source->send[0].out.to.any, source->send[0].out.to_bytes),
				 bytes);
		rig_poll(rig);
	}
	assert_int_equal(rig_dropped_all(rig), 500);
	assert_true(rig_dropped(rig, SL_DROP_MALFORMED) >= 10);
	assert_true(rig_untouched(rig, 0, 1));
	for (uint64_t k = 0; k < RIG_SLOTS; k++) {
		assert_int_equal(rig_send(rig, k, 0), 0);
		assert_true(rig_arrived(rig, k, 0) && rig_intact(rig, k, 0));
	}
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_in_order_are_all_received_in_place),
		cmocka_unit_test(lines_in_order_are_all_received_in_place),
		cmocka_unit_test(packets_that_overtake_each_other_find_their_places),
		cmocka_unit_test(what_was_received_never_changes),
		cmocka_unit_test(a_slot_that_is_being_read_is_not_written),
		cmocka_unit_test(a_wrong_checksum_is_found_where_it_was_expected),
		cmocka_unit_test(noise_from_the_right_port_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
