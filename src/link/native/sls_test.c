/* sls_test.c - packets of PSI's detectors, written by hand and sent from plain sockets. */
#include "lib/link_rig.h"

#include <errno.h>

#include <netinet/udp.h>

#include "base/log.h"
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

/* The header, written here once more, byte by byte. port: of all modules, one below the other. */
static void build(struct wire *w, uint64_t frame, uint32_t port, uint32_t packet, uint8_t type,
		  uint8_t fill)
{
	memset(w->packet, 0, SL_SLS_HEADER);
	w->packet[34] = (uint8_t)(type == SL_SLS_EIGER ? port / 2 : port); /* row */
	w->packet[36] = (uint8_t)(type == SL_SLS_EIGER ? port % 2 : 0);	   /* column */
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
	build(w, frame, port, packet, SL_SLS_JUNGFRAU, fill_of(frame, port, packet));
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
		{0, 0, PACKET, SL_DROP_RANGE},	/* frame 0: they begin with 1 */
		{34, 1, PACKET, SL_DROP_QUEUE}, /* row */
		{35, 1, PACKET, SL_DROP_QUEUE},
		{36, 1, PACKET, SL_DROP_QUEUE}, /* column */
		{37, 0x80, PACKET, SL_DROP_QUEUE},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct wire *w = wire_new(NULL);

		for (uint32_t p = 0; p < PACKETS; p++) {
			if (p == PACKETS / 2) {
				build(w, 1, 0, p, SL_SLS_JUNGFRAU, 0xee);
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

		build(w, 1, 0, p, SL_SLS_JUNGFRAU, 0xee);
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

			build(w, frame, 0, p, SL_SLS_JUNGFRAU, fill_of(frame, 0, p));
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
			build(w, 1, port, p, type, fill_of(1, port, p));
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
	static const char *const options[] = {"detector", "eiger", "halves", "as_sent", NULL};
	struct wire *w = send_ports(options, SL_SLS_EIGER, 2);

	check_part(w, 0, 0, RIG_LINES, 0, RIG_LINE / 2);
	check_part(w, 1, 0, RIG_LINES, RIG_LINE / 2, RIG_LINE / 2);
	wire_free(w);
}

/* Half-modules send the line in the middle of the module first: the upper one, here module 0, is
 * turned over. */
static void an_upper_half_is_turned_over(void **state)
{
	static const char *const halves[] = {"upper_first", "lower_first", "as_sent"};

	for (unsigned way = 0; way < 3; way++) {
		const char *const options[] = {"detector", "eiger", "halves", halves[way], NULL};
		struct wire *w;

		rig_layout.rectangle = true;
		w = wire_new(options);
		rig_layout.rectangle = false;
		for (uint32_t i = 0; i < 4 * PACKETS / 2; i++) {
			build(w, 1, i / 5, i % 5, SL_SLS_EIGER, fill_of(1, i / 5, i % 5));
			transmit(w, (uint16_t)(PORT + i / 5), PACKET);
		}
		for (uint32_t m = 0; m < 2; m++) {
			bool over = way == m; /* as_sent: none */
			const uint8_t *block = sl_ring_block(&w->rig->ring, 0, m);

			assert_true(rig_arrived(w->rig, 0, m));
			for (unsigned y = 0; y < RIG_LINES; y++)
				for (unsigned x = 0; x < RIG_LINE; x++) {
					unsigned sent = over ? RIG_LINES - 1 - y : y;
					unsigned side = x / (RIG_LINE / 2);
					unsigned at = sent * RIG_LINE / 2 + x % (RIG_LINE / 2);

					assert_int_equal(block[y * RIG_LINE + x],
							 fill_of(1, 2 * m + side, at / PAYLOAD));
				}
		}
		assert_int_equal(rig_dropped_all(w->rig), 0);
		wire_free(w);
	}
}

/* The middle rows alone: packets keep the numbers that they have in a whole frame. */
static void a_partial_readout(void **state)
{
	for (uint32_t ports = 1; ports <= 2; ports++) {
		struct wire *w = calloc(1, sizeof(*w));
		uint32_t packets = PACKETS / ports;

		assert_non_null(w);
		rig_layout.rectangle = true;
		w->rig = rig_new(&sl_link_sls);
		rig_layout.rectangle = false;
		w->rig->option[0][0] = "ports";
		w->rig->option[0][1] = ports == 1 ? "1" : "2";
		w->rig->lines = RIG_LINES;
		w->rig->unread_rows = 4; /* 5 packets */
		open_alone(w->rig);
		w->fd = socket(AF_INET, SOCK_DGRAM, 0);
		for (uint32_t p = 0; p < 5 + PACKETS; p++)
			for (uint32_t port = 0; port < ports; port++) {
				build(w, 1, port, p, SL_SLS_JUNGFRAU, fill_of(1, port, p));
				transmit(w, (uint16_t)(PORT + port), PACKET);
			}
		assert_true(rig_arrived(w->rig, 0, 0));
		for (unsigned i = 0; i < RIG_PIXELS; i++) {
			uint32_t n = i / PAYLOAD, port = n / packets;
			uint32_t packet = n % packets + (port ? 0 : 5);

			assert_int_equal(sl_ring_block(&w->rig->ring, 0, 0)[i],
					 fill_of(1, port, packet));
		}
		assert_int_equal(rig_dropped(w->rig, SL_DROP_RANGE),
				 ports * (5 + PACKETS) - PACKETS);
		wire_free(w);
	}
}

/* ---- where headers say that they come from ---- */

static unsigned warnings;
static char warning[400];

static void note_warning(void *arg, enum sl_log_level level, const char *text)
{
	(void)arg;
	if (level == SL_LOG_WARN) {
		warnings++;
		snprintf(warning, sizeof(warning), "%s", text);
	}
}

static void serve(struct wire *w)
{
	assert_int_equal(w->rig->link->receiving->serve(w->rig->receiver), 0);
}

/* Two cables, each in the other's place: nothing is stored, and each port is told of once. */
static void swapped_cables_are_told_once(void **state)
{
	static const struct sl_log_target target = {note_warning, NULL};
	struct wire *w = wire_new(NULL);

	warnings = 0;
	sl_log_set_target(&target);
	for (uint64_t f = 1; f <= 3; f++)
		for (uint32_t p = 0; p < PACKETS; p++) {
			build(w, f, 1, p, SL_SLS_JUNGFRAU, 0xee);
			transmit(w, PORT, PACKET);
		}
	rig_poll(w->rig);
	assert_int_equal(warnings, 0); /* not by the link thread */
	serve(w);
	serve(w);
	assert_int_equal(warnings, 1);
	assert_string_equal(warning,
			    "port 50001 (module 0) receives packets of row 1, column 0, and "
			    "expects row 0, column 0; port 50002 expects those: are "
			    "cables swapped? Such packets are not stored "
			    "(link.turned_away.queue). If the detector counts its modules in "
			    "another way, or not at all, "
			    "set link.first_module, column_modules, row_modules or positions");
	build(w, 1, 7, 0, SL_SLS_JUNGFRAU, 0xee);
	transmit(w, PORT + 1, PACKET);
	rig_poll(w->rig);
	serve(w);
	assert_int_equal(warnings, 2);
	assert_non_null(
		strstr(warning, "port 50002 (module 1) receives packets of row 7, column 0"));
	assert_non_null(strstr(warning, "no port expects those. Such packets are not stored"));
	sl_log_set_target(NULL);
	assert_int_equal(rig_dropped(w->rig, SL_DROP_QUEUE), 3 * PACKETS + 1);
	assert_int_equal(sl_link_packets(&w->rig->counters), 0);
	/* The right ones still fit. */
	for (uint32_t p = 0; p < PACKETS; p++)
		say(w, 1, 0, p);
	assert_true(is_frame(w, 0, 1));
	wire_free(w);
}

static void positions_can_be_ignored(void **state)
{
	static const char *const options[] = {"positions", "ignore", NULL};
	struct wire *w = wire_new(options);

	for (uint32_t p = 0; p < PACKETS; p++) {
		build(w, 1, 9, p, SL_SLS_JUNGFRAU, fill_of(1, 0, p));
		transmit(w, PORT, PACKET);
	}
	assert_true(is_frame(w, 0, 1));
	assert_int_equal(rig_dropped_all(w->rig), 0);
	wire_free(w);
}

/* Row and column of module 1's ports, by the options. */
static void places_follow_the_options(void **state)
{
	static const struct {
		const char *options[9];
		uint8_t type, ports, row[4], column[4];
	} cases[] = {
		{{NULL}, SL_SLS_JUNGFRAU, 1, {1}, {0}},
		{{"ports", "2", NULL}, SL_SLS_JUNGFRAU, 2, {2, 3}, {0, 0}},
		{{"column_modules", "1", NULL}, SL_SLS_JUNGFRAU, 1, {0}, {1}},
		{{"ports", "2", "column_modules", "1", NULL}, SL_SLS_JUNGFRAU, 2, {0, 1}, {1, 1}},
		{{"first_module", "6", "column_modules", "4", NULL}, SL_SLS_JUNGFRAU, 1, {3}, {1}},
		{{"row_modules", "2", NULL}, SL_SLS_JUNGFRAU, 1, {0}, {1}},
		{{"ports", "2", "row_modules", "2", "first_module", "4", NULL},
		 SL_SLS_JUNGFRAU,
		 2,
		 {4, 5},
		 {1, 1}},
		{{"detector", "eiger", NULL}, SL_SLS_EIGER, 2, {1, 1}, {0, 1}},
		{{"detector", "eiger", "ports", "4", "payload", "500", NULL},
		 SL_SLS_EIGER,
		 4,
		 {2, 2, 3, 3},
		 {0, 1, 0, 1}},
		{{"detector", "eiger", "first_module", "2", "column_modules", "2", NULL},
		 SL_SLS_EIGER,
		 2,
		 {1, 1},
		 {2, 3}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool quarter = cases[i].ports == 4;
		struct wire *w;

		rig_layout.rectangle = true;
		w = wire_new(cases[i].options);
		rig_layout.rectangle = false;
		for (uint32_t port = 0; port < cases[i].ports; port++) {
			build(w, 1, 0, 0, cases[i].type, 1);
			w->packet[34] = cases[i].row[port];
			w->packet[36] = cases[i].column[port];
			transmit(w, (uint16_t)(PORT + cases[i].ports + port),
				 SL_SLS_HEADER + (quarter ? 500 : PAYLOAD));
		}
		rig_poll(w->rig);
		assert_int_equal(rig_dropped_all(w->rig), 0);
		assert_int_equal(sl_link_packets(&w->rig->counters), cases[i].ports);
		wire_free(w);
	}
}

/* ---- front end and receiver ---- */

static enum sl_packet_fault shake(void *arg, uint16_t module, uint64_t sequence, uint32_t packet)
{
	(void)arg;
	return (module + sequence + packet) % 3 == 0   ? SL_PACKET_FAULT_REORDER
	       : (module + sequence + packet) % 7 == 0 ? SL_PACKET_FAULT_DUPLICATE
						       : SL_PACKET_FAULT_NONE;
}

/* Pixels of every depth from the front end to the ring, in order and not. */
static void all_depths_come_as_they_were_sent(void **state)
{
	static const struct {
		uint32_t bits, pixel_bytes;
		const char *payload, *nibbles;
	} kinds[] = {
		{4, 1, "500", "low"},	{4, 1, "25", "high"},  {8, 1, "1000", "low"},
		{12, 2, "750", "low"},	{12, 2, "625", "low"}, {12, 2, "125", "low"},
		{16, 2, "1000", "low"}, {32, 4, "200", "low"},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		for (unsigned way = 0; way < 2; way++) {
			struct rig *rig = rig_new(&sl_link_sls);
			const char *const options[4][2] = {{"detector", "eiger"},
							   {"payload", kinds[i].payload},
							   {"nibbles", kinds[i].nibbles}};

			memcpy(rig->option, options, sizeof(options));
			rig->bits = kinds[i].bits;
			rig->pixel_bytes = kinds[i].pixel_bytes;
			rig->lines = 50; /* of 200 bytes, 100 to a port */
			rig->fault = way ? shake : NULL;
			rig->hold = way ? 5 : 0;
			rig_make_ready(rig);
			for (uint64_t k = 0; k < RIG_SLOTS; k++)
				for (uint32_t m = 0; m < RIG_MODULES; m++)
					assert_int_equal(rig_send(rig, k, m), 0);
			for (uint16_t m = 0; m < RIG_MODULES; m++)
				rig->link->sending->flush(rig->source, m);
			for (uint64_t k = 0; k < RIG_SLOTS; k++)
				for (uint32_t m = 0; m < RIG_MODULES; m++) {
					assert_true(rig_arrived(rig, k, m));
					assert_true(rig_intact(rig, k, m));
				}
			assert_int_equal(rig_dropped_all(rig),
					 rig_dropped(rig, SL_DROP_DUPLICATE) +
						 rig_dropped(rig, SL_DROP_LATE));
			rig_free(rig);
		}
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
	placed = sl_link_packets(&rig->counters);
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
	static const char *const shape[][2] = {{"ports", "3"},	      {"ports", "2"},
					       {"payload", "999"},    {"detector", "eiger"},
					       {"halves", "as_sent"}, {"column_modules", "2"}};

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
		if (i == 5) {
			rig->option[1][0] = "row_modules";
			rig->option[1][1] = "2";
		}
		assert_int_equal(rig_open_receiver(rig), 0);
		assert_int_equal(rig_offer(rig, rig->receiver, 0, &offer), -EINVAL);
		rig_free(rig);
	}
}

/* Depths and partial readout that the link does not know. */
static void what_does_not_fit_the_detector_is_refused(void **state)
{
	static const struct {
		const char *detector;
		uint32_t bits, pixel_bytes, unread_rows, lines;
		int err;
	} cases[] = {
		{"eiger", 4, 1, 0, 50, 0},
		{"eiger", 4, 2, 0, 50, -EINVAL},
		{"eiger", 12, 1, 0, 50, -EINVAL},
		{"eiger", 4, 1, 0, 8, -EINVAL}, /* 625 pixels */
		{"eiger", 16, 2, 10, 50, -EINVAL},
		{"jungfrau", 16, 2, 10, 50, 0},
		{"jungfrau", 16, 2, 1, 50, -EINVAL}, /* a fifth of a packet */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rig *rig = rig_new(&sl_link_sls);
		struct sl_offer offer;

		rig->option[0][0] = "detector";
		rig->option[0][1] = cases[i].detector;
		rig->option[1][0] = "payload";
		rig->option[1][1] = cases[i].bits == 16 ? "1000" : "500";
		rig->bits = cases[i].bits;
		rig->pixel_bytes = cases[i].pixel_bytes;
		rig->unread_rows = cases[i].unread_rows;
		rig->lines = cases[i].lines;
		assert_int_equal(rig_open_receiver(rig), 0);
		assert_int_equal(rig_offer(rig, rig->receiver, 0, &offer), cases[i].err);
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
		cmocka_unit_test(an_upper_half_is_turned_over),
		cmocka_unit_test(a_partial_readout),
		cmocka_unit_test(swapped_cables_are_told_once),
		cmocka_unit_test(positions_can_be_ignored),
		cmocka_unit_test(places_follow_the_options),
		cmocka_unit_test(all_depths_come_as_they_were_sent),
		cmocka_unit_test(what_does_not_fit_the_detector_is_refused),
		cmocka_unit_test(the_front_end_speaks_as_a_detector),
		cmocka_unit_test(a_port_belongs_to_one_receiver),
		cmocka_unit_test(what_found_no_room_in_the_buffer_is_counted),
		cmocka_unit_test(options_that_cannot_be_are_refused),
	};

	return cmocka_run_group_tests_name("sls", tests, NULL, NULL);
}
