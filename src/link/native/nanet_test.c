/* nanet_test.c - packets with many events, written by hand and sent from plain sockets. */
#include "lib/link_rig.h"

#include <errno.h>

#include "link/native/nanet.h"

extern const struct sl_link sl_link_nanet;

/* As the rig sets it: 25 events of 40 bytes to a packet, 10 packets to a block. */
enum {
	PORT = 58913,
	EVENTS = 25,
	PAYLOAD = 1000,
	PACKET = SL_NANET_HEADER + PAYLOAD,
	PACKETS = 10
};

static void the_header_has_the_published_layout(void **state)
{
	static const uint8_t golden[SL_NANET_HEADER] = {0x56, 0x34, 0x12, 0x1c, 0xe8, 0x03,
							20,   5,    0x78, 0x56, 0x34, 0x92};
	static const struct sl_nanet_header example = {.event = 0x123456,
						       .timestamp = 0x92345678,
						       .bytes = 1000,
						       .source = 0x1c,
						       .events = 20,
						       .subsource = 5};
	uint8_t bytes[SL_NANET_HEADER];
	struct sl_nanet_header back;

	sl_nanet_write(&example, bytes);
	assert_memory_equal(bytes, golden, sizeof(golden));
	sl_nanet_read(golden, &back);
	assert_int_equal(back.event, 0x123456);
	assert_int_equal(back.timestamp, 0x92345678);
	assert_int_equal(back.bytes, 1000);
	assert_int_equal(back.source, 0x1c);
	assert_int_equal(back.events, 20);
	assert_int_equal(back.subsource, 5);
}

struct wire {
	struct rig *rig;
	int fd;
	uint8_t packet[PACKET + 1];
};

static struct wire *wire_new(const char *first)
{
	struct wire *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->rig = rig_new(&sl_link_nanet);
	w->rig->option[0][0] = "first_frame";
	w->rig->option[0][1] = first;
	assert_int_equal(rig_open_receiver(w->rig), 0);
	for (uint16_t m = 0; m < RIG_MODULES; m++) {
		struct sl_offer offer;

		assert_int_equal(rig_offer(w->rig, w->rig->receiver, m, &offer), 0);
		assert_int_equal(
			w->rig->link->receiving->accept(w->rig->receiver, &offer, &w->rig->plan[m]),
			0);
	}
	sl_ring_open(&w->rig->ring, UINT64_MAX);
	w->fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_true(w->fd >= 0);
	return w;
}

static void wire_free(struct wire *w)
{
	close(w->fd);
	rig_free(w->rig);
	free(w);
}

static void build(struct wire *w, uint64_t event, uint8_t board, uint8_t fill)
{
	const uint8_t header[SL_NANET_HEADER] = {(uint8_t)event,
						 (uint8_t)(event >> 8),
						 (uint8_t)(event >> 16),
						 0x1c,
						 (uint8_t)PACKET,
						 PACKET >> 8,
						 EVENTS,
						 board,
						 (uint8_t)(event >> 2),
						 (uint8_t)(event >> 10)};

	memcpy(w->packet, header, sizeof(header));
	memset(w->packet + sizeof(header), fill, sizeof(w->packet) - sizeof(header));
}

static void transmit(struct wire *w, uint16_t port, size_t bytes)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	char text[32];

	rig_address(text, 1);
	assert_int_equal(inet_pton(AF_INET, text, &to.sin_addr), 1);
	assert_int_equal(sendto(w->fd, w->packet, bytes, 0, (struct sockaddr *)&to, sizeof(to)),
			 bytes);
}

static void say(struct wire *w, uint64_t event)
{
	build(w, event, 0, (uint8_t)(event / EVENTS));
	transmit(w, PORT, PACKET);
}

static bool is_block(struct wire *w, uint64_t sequence, uint64_t event)
{
	const uint8_t *block = sl_ring_block(&w->rig->ring, sequence, 0);
	struct sl_record record;

	if (!rig_arrived(w->rig, sequence, 0))
		return false;
	for (unsigned i = 0; i < RIG_PIXELS; i++)
		if (block[i] != (uint8_t)(event / EVENTS + i / PAYLOAD))
			return false;
	memcpy(&record, sl_ring_record(&w->rig->ring, sequence, 0), sizeof(record));
	return sl_record_valid(&record) && record.frame == sequence &&
	       record.items == EVENTS * PACKETS && record.timestamp == (event >> 2 & 0xffff) * 25;
}

static void blocks_come_as_they_were_sent(void **state)
{
	struct wire *w = wire_new("0");

	for (uint64_t k = 0; k < 3 * RIG_SLOTS; k++) {
		for (uint32_t p = 0; p < PACKETS; p++)
			say(w, (k * PACKETS + p) * EVENTS);
		assert_true(is_block(w, k, k * PACKETS * EVENTS));
		rig_release(w->rig, k);
	}
	assert_int_equal(rig_dropped_all(w->rig), 0);
	wire_free(w);
}

/* Where the count of events wraps, packets are overtaken and doubled. */
static void any_order_will_do_also_where_events_wrap(void **state)
{
	struct wire *w = wire_new("16777000"); /* 2^24 - 216: within the first block */

	for (uint32_t i = 0; i < PACKETS; i++) {
		uint32_t p = i * 3 % PACKETS;

		build(w, 16777000 + p * EVENTS, 0, (uint8_t)p);
		transmit(w, PORT, PACKET);
		if (i % 4 == 0)
			transmit(w, PORT, PACKET);
		build(w, (16777000 + (PACKETS + 9 - p) * EVENTS) & 0xffffff, 0, (uint8_t)(9 - p));
		transmit(w, PORT, PACKET);
	}
	for (uint64_t k = 0; k < 2; k++) {
		const uint8_t *block = sl_ring_block(&w->rig->ring, k, 0);

		assert_true(rig_arrived(w->rig, k, 0));
		for (unsigned i = 0; i < RIG_PIXELS; i++)
			assert_int_equal(block[i], i / PAYLOAD);
	}
	assert_int_equal(rig_dropped(w->rig, SL_DROP_DUPLICATE), 3);
	assert_int_equal(rig_dropped_all(w->rig), 3);
	wire_free(w);
}

static void what_is_wrong_is_counted(void **state)
{
	static const struct {
		unsigned at;
		uint8_t value;
		size_t bytes;
		enum sl_drop why;
	} wrong[] = {
		{3, 0x18, PACKET, SL_DROP_MALFORMED}, /* another detector's */
		{4, 0, PACKET, SL_DROP_MALFORMED},    /* another length than it says */
		{6, EVENTS - 1, PACKET, SL_DROP_MALFORMED},
		{6, 0, PACKET, SL_DROP_MALFORMED},
		{7, 1, PACKET, SL_DROP_QUEUE},	  /* another board's */
		{0, 1, PACKET, SL_DROP_RANGE},	  /* amid a packet */
		{2, 0xff, PACKET, SL_DROP_RANGE}, /* before the first */
		{0, 0, PACKET - 1, SL_DROP_MALFORMED},
		{0, 0, SL_NANET_HEADER, SL_DROP_MALFORMED},
		{0, 0, 3, SL_DROP_MALFORMED},
		{0, 0, 0, SL_DROP_MALFORMED},
		{0, 0, PACKET + 1, SL_DROP_MALFORMED},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct wire *w = wire_new("0");

		for (uint32_t p = 0; p < PACKETS; p++) {
			if (p == 4) {
				build(w, 0, 0, 0xee);
				w->packet[wrong[i].at] = wrong[i].value;
				transmit(w, PORT, wrong[i].bytes);
			}
			say(w, p * EVENTS);
		}
		assert_true(is_block(w, 0, 0));
		assert_int_equal(rig_dropped(w->rig, wrong[i].why), 1);
		assert_int_equal(rig_dropped_all(w->rig), 1);
		wire_free(w);
	}
}

static void shapes_that_cannot_be_are_refused(void **state)
{
	static const char *const wrong[][2] = {
		{"packet_events", "26"}, {"event_bytes", "41"}, {"packet_events", "255"}};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct rig *rig = rig_new(&sl_link_nanet);
		struct sl_offer offer;

		rig->option[0][0] = wrong[i][0];
		rig->option[0][1] = wrong[i][1];
		assert_int_equal(rig_open_receiver(rig), 0);
		assert_int_equal(rig_offer(rig, rig->receiver, 0, &offer), -EINVAL);
		rig_free(rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_header_has_the_published_layout),
		cmocka_unit_test(blocks_come_as_they_were_sent),
		cmocka_unit_test(any_order_will_do_also_where_events_wrap),
		cmocka_unit_test(what_is_wrong_is_counted),
		cmocka_unit_test(shapes_that_cannot_be_are_refused),
	};

	return cmocka_run_group_tests_name("nanet", tests, NULL, NULL);
}
