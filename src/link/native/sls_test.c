/* sls_test.c - packets of PSI's detectors, written by hand and sent from plain sockets. */
#include "lib/link_rig.h"

#include <errno.h>

#include <netinet/udp.h>

#include "link/native/sls.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

extern const struct sl_link sl_link_sls;

enum { PORT = 50001, PAYLOAD = 1000, PACKET = SL_SLS_HEADER + PAYLOAD, PACKETS = 10 };

/* ---- the header ---- */

static const struct sl_sls_header example = {
	.frame = 0x0102030405060708,
	.exposure = 0x11121314,
	.packet = 0x21222324,
	.spec1 = 0x3132333435363738,
	.timestamp = 0x4142434445464748,
	.module = 0x5152,
	.row = 0x6162,
	.column = 0x7172,
	.spec2 = 0x8182,
	.spec3 = 0x91929394,
	.spec4 = 0xa1a2,
	.type = 3,
	.version = 2,
};

static const uint8_t golden[SL_SLS_HEADER] = {
	0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, /* frameNumber */
	0x14, 0x13, 0x12, 0x11,				/* expLength */
	0x24, 0x23, 0x22, 0x21,				/* packetNumber */
	0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31, /* detSpec1 */
	0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41, /* timestamp */
	0x52, 0x51, 0x62, 0x61, 0x72, 0x71, 0x82, 0x81, /* modId, row, column, detSpec2 */
	0x94, 0x93, 0x92, 0x91, 0xa2, 0xa1, 3,	  2,	/* detSpec3, detSpec4, detType, version */
};

static void the_header_has_the_published_layout(void **state)
{
	uint8_t bytes[SL_SLS_HEADER];
	struct sl_sls_header back;

	sl_sls_write(&example, bytes);
	assert_memory_equal(bytes, golden, sizeof(golden));
	sl_sls_read(golden, &back);
	assert_memory_equal(&back, &example, offsetof(struct sl_sls_header, version) + 1);
}

/* ---- packets by hand ---- */

struct wire {
	struct rig *rig;
	int fd;
	uint8_t packet[2 * PACKET];
};

static struct sockaddr_in address_of(unsigned host, uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	char text[32];

	rig_address(text, host);
	assert_int_equal(inet_pton(AF_INET, text, &at.sin_addr), 1);
	return at;
}

/* A receiver alone, as it stands before a detector that asks nothing. */
static void open_alone(struct rig *rig)
{
	assert_int_equal(rig_open_receiver(rig), 0);
	for (uint16_t m = 0; m < RIG_MODULES; m++) {
		struct sl_offer offer;

		assert_int_equal(rig_offer(rig, rig->receiver, m, &offer), 0);
		assert_int_equal(rig->link->receiving->accept(rig->receiver, &offer, &rig->plan[m]),
				 0);
	}
	sl_ring_open(&rig->ring, UINT64_MAX);
}

static struct wire *wire_new(const char *const *options)
{
	struct wire *w = calloc(1, sizeof(*w));
	struct sockaddr_in from = address_of(2, 0);

	assert_non_null(w);
	w->rig = rig_new(&sl_link_sls);
	for (unsigned i = 0; options && options[2 * i]; i++) {
		w->rig->option[i][0] = options[2 * i];
		w->rig->option[i][1] = options[2 * i + 1];
	}
	open_alone(w->rig);
	w->fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_true(w->fd >= 0);
	assert_int_equal(bind(w->fd, (struct sockaddr *)&from, sizeof(from)), 0);
	return w;
}

static void wire_free(struct wire *w)
{
	close(w->fd);
	rig_free(w->rig);
	free(w);
}

/* The header, written here once more, byte by byte. */
static void build(struct wire *w, uint64_t frame, uint32_t packet, uint8_t type, uint8_t fill)
{
	memset(w->packet, 0, SL_SLS_HEADER);
	for (unsigned i = 0; i < 8; i++)
		w->packet[i] = (uint8_t)(frame >> 8 * i);
	for (unsigned i = 0; i < 4; i++)
		w->packet[12 + i] = (uint8_t)(packet >> 8 * i);
	w->packet[24] = (uint8_t)(5 * frame);
	w->packet[41] = (uint8_t)(frame % 16);
	w->packet[46] = type;
	w->packet[47] = 2;
	memset(w->packet + SL_SLS_HEADER, fill, sizeof(w->packet) - SL_SLS_HEADER);
}

static void transmit(struct wire *w, uint16_t port, size_t bytes)
{
	struct sockaddr_in to = address_of(1, port);

	assert_int_equal(sendto(w->fd, w->packet, bytes, 0, (struct sockaddr *)&to, sizeof(to)),
			 bytes);
}

static uint8_t fill_of(uint64_t frame, uint32_t port, uint32_t packet)
{
	return (uint8_t)(frame * 50 + port * 20 + packet + 1);
}

static void say(struct wire *w, uint64_t frame, uint32_t port, uint32_t packet)
{
	build(w, frame, packet, SL_SLS_JUNGFRAU, fill_of(frame, port, packet));
	transmit(w, (uint16_t)(PORT + port), PACKET);
}

/* Module 0 of a jungfrau with one interface. */
static bool is_frame(struct wire *w, uint64_t sequence, uint64_t frame)
{
	const uint8_t *block = sl_ring_block(&w->rig->ring, sequence, 0);
	struct sl_record record;

	if (!rig_arrived(w->rig, sequence, 0))
		return false;
	for (unsigned i = 0; i < RIG_PIXELS; i++)
		if (block[i] != fill_of(frame, 0, i / PAYLOAD))
			return false;
	memcpy(&record, sl_ring_record(&w->rig->ring, sequence, 0), sizeof(record));
	return sl_record_valid(&record) && record.frame == frame && record.cell == frame % 16 &&
	       record.timestamp == (5 * frame & 255) * 100 && record.sequence == sequence;
}

static void frames_come_as_they_were_sent(void **state)
{
	struct wire *w = wire_new(NULL);

	for (uint64_t f = 1; f <= 3 * RIG_SLOTS; f++) {
		for (uint32_t p = 0; p < PACKETS; p++)
			say(w, f, 0, p);
		assert_true(is_frame(w, f - 1, f));
		rig_release(w->rig, f - 1);
	}
	assert_int_equal(rig_dropped_all(w->rig), 0);
	wire_free(w);
}

/* All that does not fit is counted, and hurts nothing that comes with it. */
static void what_is_wrong_is_counted(void **state)
{
	static const struct {
		unsigned at;
		uint8_t value;
		size_t bytes;
		enum sl_drop why;
	} wrong[] = {
		{47, 1, PACKET, SL_DROP_MALFORMED}, /* version */
		{47, 3, PACKET, SL_DROP_MALFORMED},
		{46, 1, PACKET, SL_DROP_MALFORMED}, /* an Eiger */
		{46, 0, PACKET, SL_DROP_MALFORMED},
		{0, 1, PACKET - 1, SL_DROP_MALFORMED}, /* cut off */
		{0, 1, SL_SLS_HEADER, SL_DROP_MALFORMED},
		{0, 1, SL_SLS_HEADER - 1, SL_DROP_MALFORMED},
		{0, 1, 1, SL_DROP_MALFORMED},
		{0, 1, 0, SL_DROP_MALFORMED},
		{0, 1, PACKET + 1, SL_DROP_MALFORMED}, /* too long */
		{0, 1, 2 * PACKET, SL_DROP_MALFORMED},
		{12, PACKETS, PACKET, SL_DROP_RANGE}, /* packetNumber */
		{15, 0x80, PACKET, SL_DROP_RANGE},
		{0, 0, PACKET, SL_DROP_RANGE}, /* frame 0: they begin with 1 */
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct wire *w = wire_new(NULL);

		for (uint32_t p = 0; p < PACKETS; p++) {
			if (p == PACKETS / 2) {
				build(w, 1, p, SL_SLS_JUNGFRAU, 0xee);
				w->packet[wrong[i].at] = wrong[i].value;
				transmit(w, PORT, wrong[i].bytes);
			}
			say(w, 1, 0, p);
		}
		assert_true(is_frame(w, 0, 1));
		assert_int_equal(rig_dropped(w->rig, wrong[i].why), 1);
		assert_int_equal(rig_dropped_all(w->rig), 1);
		wire_free(w);
	}
}

static void strangers_are_counted(void **state)
{
	static const char *options[] = {"senders", NULL, NULL};
	char known[64], other[32];
	struct sockaddr_in from;
	struct wire *w;
	int detector;

	rig_address(other, 2);
	snprintf(known, sizeof(known), "192.0.2.1, %s", other);
	options[1] = known;
	w = wire_new(options);
	detector = w->fd;
	w->fd = socket(AF_INET, SOCK_DGRAM, 0);
	from = address_of(1, 0);
	assert_int_equal(bind(w->fd, (struct sockaddr *)&from, sizeof(from)), 0);
	for (uint32_t p = 0; p < PACKETS; p++) {
		int stranger = w->fd;

		build(w, 1, p, SL_SLS_JUNGFRAU, 0xee);
		transmit(w, PORT, PACKET);
		w->fd = detector;
		say(w, 1, 0, p);
		w->fd = stranger;
	}
	assert_true(is_frame(w, 0, 1));
	assert_int_equal(rig_dropped(w->rig, SL_DROP_PEER), PACKETS);
	close(detector);
	wire_free(w);
}

/* Backwards, doubled, and two frames at a time. */
static void any_order_will_do(void **state)
{
	struct wire *w = wire_new(NULL);

	for (uint32_t i = 0; i < PACKETS; i++) {
		say(w, 2, 0, PACKETS - 1 - i);
		say(w, 1, 0, i * 7 % PACKETS);
		if (i % 3 == 0)
			say(w, 2, 0, PACKETS - 1 - i);
		if (i == 4)
			rig_poll(w->rig);
	}
	assert_true(is_frame(w, 0, 1) && is_frame(w, 1, 2));
	assert_int_equal(rig_dropped(w->rig, SL_DROP_DUPLICATE), 4);
	assert_int_equal(rig_dropped_all(w->rig), 4);
	wire_free(w);
}

/* Packets that the kernel keeps together, some of them not where they are expected. */
static void packets_that_come_together_are_taken_apart(void **state)
{
	static const uint32_t order[2][5] = {{0, 1, 3, 2, 4}, {5, 6, 7, 8, 9}};
	struct wire *w = wire_new(NULL);
	struct sockaddr_in to = address_of(1, PORT);
	uint8_t *many = malloc(5 * PACKET);
	int bytes = PACKET;

	assert_non_null(many);
	if (setsockopt(w->fd, IPPROTO_UDP, UDP_SEGMENT, &bytes, sizeof(bytes)) < 0)
		skip();
	for (unsigned i = 0; i < 6; i++) {
		uint64_t frame = 1 + i / 2;

		for (unsigned n = 0; n < 5; n++) {
			uint32_t p = order[i % 2][n];

			build(w, frame, p, SL_SLS_JUNGFRAU, fill_of(frame, 0, p));
			memcpy(many + n * PACKET, w->packet, PACKET);
		}
		assert_int_equal(
			sendto(w->fd, many, 5 * PACKET, 0, (struct sockaddr *)&to, sizeof(to)),
			5 * PACKET);
		rig_poll(w->rig);
	}
	for (uint64_t f = 1; f <= 3; f++)
		assert_true(is_frame(w, f - 1, f));
	assert_int_equal(rig_dropped_all(w->rig), 0);
	free(many);
	wire_free(w);
}

/* ---- ports ---- */

/* RIG_LINES lines of RIG_LINE bytes; `port` has these. */
static void check_part(struct wire *w, uint32_t port, unsigned line, unsigned lines, unsigned byte,
		       unsigned bytes)
{
	const uint8_t *block = sl_ring_block(&w->rig->ring, 0, 0);

	for (unsigned y = 0; y < lines; y++)
		for (unsigned x = 0; x < bytes; x++)
			assert_int_equal(block[(line + y) * RIG_LINE + byte + x],
					 fill_of(1, port, (y * bytes + x) / PAYLOAD));
}

static struct wire *send_ports(const char *const *options, uint8_t type, uint32_t ports)
{
	struct wire *w;

	rig_layout.rectangle = true;
	w = wire_new(options);
	for (uint32_t p = 0; p < PACKETS / ports; p++)
		for (uint32_t port = 0; port < ports; port++) {
			build(w, 1, p, type, fill_of(1, port, p));
			transmit(w, (uint16_t)(PORT + port), PACKET);
		}
	assert_true(rig_arrived(w->rig, 0, 0));
	rig_layout.rectangle = false;
	return w;
}

static void two_interfaces_of_a_jungfrau(void **state)
{
	static const char *const options[] = {"ports", "2", NULL};
	struct wire *w = send_ports(options, SL_SLS_JUNGFRAU, 2);

	check_part(w, 0, 0, RIG_LINES / 2, 0, RIG_LINE);
	check_part(w, 1, RIG_LINES / 2, RIG_LINES / 2, 0, RIG_LINE);
	/* Module 1 has the next two. */
	for (uint32_t i = 0; i < PACKETS; i++)
		say(w, 1, 2 + i / 5, i % 5);
	assert_true(rig_arrived(w->rig, 0, 1));
	wire_free(w);
}

static void the_ports_of_an_eiger(void **state)
{
	static const char *const options[] = {"detector", "eiger", NULL};
	struct wire *w = send_ports(options, SL_SLS_EIGER, 2);

	check_part(w, 0, 0, RIG_LINES, 0, RIG_LINE / 2);
	check_part(w, 1, 0, RIG_LINES, RIG_LINE / 2, RIG_LINE / 2);
	wire_free(w);
}

/* ---- what the front end sends ---- */

static uint64_t at(const uint8_t *bytes, unsigned n)
{
	uint64_t value = 0;

	while (n--)
		value = value << 8 | bytes[n];
	return value;
}

static void the_front_end_speaks_as_a_detector(void **state)
{
	struct rig *rig = rig_new(&sl_link_sls);
	struct sockaddr_in to = address_of(1, PORT);
	struct sl_record record = {.timestamp = 12345600, .cell = 11};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	struct sl_link_env env = {0};
	struct sl_offer offer;
	struct sl_write write;
	uint8_t packet[2 * PACKET];

	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	rig->source = rig_state(rig);
	assert_int_equal(rig->link->open(rig->source, &env), 0);
	assert_int_equal(rig_offer(rig, rig->source, 0, &offer), 0);
	assert_int_equal(offer.first_frame, 1);
	assert_int_equal(rig->link->sending->accept(rig->source, &offer, &rig->plan[0]), 0);
	assert_int_equal(rig->link->sending->connect(rig->source, &rig->plan[0]), 0);
	rig_fill(rig, 6, 0);
	assert_int_equal(rig_writes(rig, 6, 0, &write), 1);
	write.record = &record;
	assert_int_equal(rig->link->sending->post(rig->source, 0, &write, 1), 1);
	for (uint32_t p = 0; p < PACKETS; p++) {
		assert_int_equal(recv(fd, packet, sizeof(packet), 0), PACKET);
		assert_int_equal(at(packet, 8), 7); /* sequence 6 is frame 7 */
		assert_int_equal(at(packet + 12, 4), p);
		assert_int_equal(at(packet + 24, 8), 123456); /* 10 MHz */
		assert_int_equal(at(packet + 40, 4), 11 << 8);
		assert_int_equal(packet[46], 3);
		assert_int_equal(packet[47], 2);
		assert_memory_equal(packet + SL_SLS_HEADER, rig->block + p * PAYLOAD, PAYLOAD);
	}
	assert_int_equal(rig->link->sending->reap(rig->source, 0), write.position);
	close(fd);
	rig_free(rig);
}

/* ---- this host ---- */

static void a_port_belongs_to_one_receiver(void **state)
{
	struct wire *w = wire_new(NULL);
	struct rig *second = rig_new(&sl_link_sls);
	struct sl_offer offer;
	struct sl_plan plan = {.version = 77};

	assert_int_equal(rig_open_receiver(second), 0);
	assert_int_equal(rig_offer(second, second->receiver, 0, &offer), 0);
	assert_int_equal(second->link->receiving->accept(second->receiver, &offer, &plan),
			 -EADDRINUSE);
	assert_int_equal(plan.version, 77);
	rig_free(second);
	wire_free(w);
}

/* Without a way back the buffer can be too small: what the kernel threw away is told. */
static void what_found_no_room_in_the_buffer_is_counted(void **state)
{
	struct wire *w;
	struct rig *rig;
	uint64_t placed;

	w = wire_new((const char *const[]){"receive_buffer", "20000", NULL});
	rig = w->rig;
	for (uint64_t f = 1; f <= RIG_SLOTS; f++)
		for (uint32_t p = 0; p < PACKETS; p++)
			say(w, f, 0, p);
	rig_poll(rig);
	rig->link->receiving->serve(rig->receiver);
	rig->link->receiving->serve(rig->receiver); /* once */
	placed = atomic_load(&rig->counters.packets);
	assert_true(placed > 0 && placed < RIG_SLOTS * PACKETS);
	assert_int_equal(rig_dropped(rig, SL_DROP_FULL), RIG_SLOTS * PACKETS - placed);
	wire_free(w);
}

static void options_that_cannot_be_are_refused(void **state)
{
	static const char *const wrong[][2] = {
		{"first_frame", "soon"}, {"first_frame", "-1"}, {"first_frame", ""},
		{"first_frame", "7 "},	 {"senders", "nobody"}, {"listen2", "0.0.0.0"},
	};
	static const char *const shape[][2] = {
		{"ports", "3"}, {"ports", "2"}, {"payload", "999"}, {"detector", "eiger"}};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct rig *rig = rig_new(&sl_link_sls);

		rig->option[0][0] = wrong[i][0];
		rig->option[0][1] = wrong[i][1];
		assert_int_equal(rig_open_receiver(rig), -EINVAL);
		rig_free(rig);
	}
	for (size_t i = 0; i < sizeof(shape) / sizeof(*shape); i++) {
		struct rig *rig = rig_new(&sl_link_sls);
		struct sl_offer offer;

		rig->option[0][0] = shape[i][0];
		rig->option[0][1] = shape[i][1];
		if (i == 3) { /* 5000 bytes to a port */
			rig->option[1][0] = "payload";
			rig->option[1][1] = "3000";
		}
		assert_int_equal(rig_open_receiver(rig), 0);
		assert_int_equal(rig_offer(rig, rig->receiver, 0, &offer), -EINVAL);
		rig_free(rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_header_has_the_published_layout),
		cmocka_unit_test(frames_come_as_they_were_sent),
		cmocka_unit_test(what_is_wrong_is_counted),
		cmocka_unit_test(strangers_are_counted),
		cmocka_unit_test(any_order_will_do),
		cmocka_unit_test(packets_that_come_together_are_taken_apart),
		cmocka_unit_test(two_interfaces_of_a_jungfrau),
		cmocka_unit_test(the_ports_of_an_eiger),
		cmocka_unit_test(the_front_end_speaks_as_a_detector),
		cmocka_unit_test(a_port_belongs_to_one_receiver),
		cmocka_unit_test(what_found_no_room_in_the_buffer_is_counted),
		cmocka_unit_test(options_that_cannot_be_are_refused),
	};

	return cmocka_run_group_tests_name("sls", tests, NULL, NULL);
}
