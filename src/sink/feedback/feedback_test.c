/* feedback_test.c - one answer per event, of every kind of frame, and when it leaves. */
#include "sink/conformance.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "feedback/wire.h"
#include "lib/capture.h"

extern const struct sl_sink sl_sink_feedback;

static int ear = -1; /* where the front end would listen */

static void listen_for(struct bench *bench)
{
	const struct timeval patience = {.tv_sec = 10};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(at);
	char port[8];

	if (ear >= 0)
		close(ear);
	ear = socket(AF_INET, SOCK_DGRAM, 0);
	assert_true(ear >= 0);
	assert_int_equal(bind(ear, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(ear, (struct sockaddr *)&at, &bytes), 0);
	setsockopt(ear, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	snprintf(port, sizeof(port), "%u", ntohs(at.sin_port));
	bench_set(bench, "port", port);
}

static void init(struct bench *bench)
{
	bench_init(bench, &sl_sink_feedback);
	listen_for(bench);
}

struct heard {
	struct sl_feedback_header header;
	struct sl_feedback_answer answer[64];
	ssize_t bytes;
};

static void hear(struct heard *heard)
{
	uint8_t packet[65536];

	heard->bytes = recv(ear, packet, sizeof(packet), 0);
	assert_true(heard->bytes > 0);
	assert_int_equal(sl_feedback_read(packet, (size_t)heard->bytes, &heard->header), 0);
	assert_true(heard->header.count <= 64);
	for (uint32_t i = 0; i < heard->header.count; i++)
		sl_feedback_read_answer(packet, i, &heard->answer[i]);
}

static bool silent(void)
{
	uint8_t byte;

	return recv(ear, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void every_kind_of_frame_has_its_answer(void **state)
{
	static const struct {
		uint16_t decision, reason, flags;
	} wanted[KINDS] = {
		[KEPT] = {SL_FEEDBACK_KEEP, SL_REASON_BRIGHT_PIXELS, 0},
		[VETOED] = {SL_FEEDBACK_REJECT, SL_REASON_BRIGHT_PIXELS, 0},
		[DARK] = {SL_FEEDBACK_REJECT, SL_REASON_DARK, SL_FEEDBACK_DARK},
		[DAMAGED] = {SL_FEEDBACK_NO_DATA, 0, SL_FEEDBACK_BROKEN},
		[LOST] = {SL_FEEDBACK_NO_DATA, 0, SL_FEEDBACK_BROKEN},
	};
	struct bench bench;

	(void)state;
	init(&bench);
	assert_int_equal(bench_open(&bench), 0);
	for (uint64_t k = 0; k < KINDS; k++) {
		bool judged = wanted[k].decision != SL_FEEDBACK_NO_DATA;
		struct heard heard;

		assert_int_equal(bench_feed(&bench, k, k), 0);
		hear(&heard);
		assert_int_equal(heard.header.packet, k);
		assert_int_equal(heard.header.count, 1);
		assert_int_equal(heard.header.items, 1);
		assert_int_equal(heard.header.first, bench.frame.number);
		assert_int_equal(heard.header.timestamp, bench.frame.timestamp);
		assert_int_equal(heard.header.flags, wanted[k].flags | SL_FEEDBACK_LAST);
		assert_int_equal(heard.answer[0].decision, wanted[k].decision);
		assert_int_equal(heard.answer[0].reason, wanted[k].reason);
		assert_true(heard.answer[0].score == (judged ? (float)k / 2 : 0));
		assert_true(silent());
	}
	assert_int_equal(bench_close(&bench), 0);
	assert_int_equal(bench_figure(&bench, "frames"), KINDS);
	assert_int_equal(bench_figure(&bench, "events_kept"), 1);
	assert_int_equal(bench_figure(&bench, "events_rejected"), 2);
	assert_int_equal(bench_figure(&bench, "events_without_data"), 2);
	bench_fini(&bench);
}

enum { EVENTS = 5, ITEMS = EVENTS * MODULES };

/* A block of events for each module, with a verdict for each. */
static void feed_events(struct bench *bench, struct sl_verdict *verdict, uint64_t missing)
{
	struct sl_frame *frame = bench_frame(bench, 6, KEPT);

	for (uint32_t i = 0; i < ITEMS; i++)
		verdict[i] = (struct sl_verdict){.number = frame->number * ITEMS + i,
						 .timestamp = 1000 + i,
						 .score = (float)i,
						 .keep = i % 3 == 0,
						 .reason = SL_REASON_RINGS};
	frame->verdict = verdict;
	frame->items = ITEMS;
	frame->missing = missing;
	if (missing)
		frame->flags = SL_FRAME_PARTIAL;
	assert_int_equal(bench->sink->put(bench->state, frame), 0);
}

static void events_are_answered_one_by_one_in_packets_that_fit(void **state)
{
	struct sl_verdict verdict[ITEMS];
	struct bench bench;
	uint32_t done = 0;

	(void)state;
	init(&bench);
	bench.geometry.items = EVENTS;
	bench_set(&bench, "payload", "120"); /* three answers, and eight bytes that are not used */
	assert_int_equal(bench_open(&bench), 0);
	feed_events(&bench, verdict, 0);
	for (uint32_t n = 0; n < 4; n++) {
		struct heard heard;

		hear(&heard);
		assert_true(heard.bytes <= 120);
		assert_int_equal(heard.header.packet, n);
		assert_int_equal(heard.header.items, ITEMS);
		assert_int_equal(heard.header.first, number_of(6) * ITEMS + done);
		assert_int_equal(heard.header.count, n < 3 ? 3 : 1);
		assert_int_equal(heard.header.flags, n < 3 ? 0 : SL_FEEDBACK_LAST);
		for (uint32_t i = 0; i < heard.header.count; i++, done++) {
			assert_int_equal(heard.answer[i].timestamp, 1000 + done);
			assert_int_equal(heard.answer[i].decision, done % 3 == 0);
			assert_int_equal(heard.answer[i].reason, SL_REASON_RINGS);
			assert_true(heard.answer[i].score == (float)done);
		}
	}
	assert_int_equal(done, ITEMS);
	assert_true(silent());
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

static void events_of_a_missing_module_have_no_data(void **state)
{
	(void)state;
	for (int shared = 0; shared < 2; shared++) {
		struct sl_verdict verdict[ITEMS];
		struct bench bench;
		struct heard heard;

		init(&bench);
		bench.geometry.items = shared ? ITEMS : EVENTS;
		bench.geometry.items_shared = shared;
		assert_int_equal(bench_open(&bench), 0);
		feed_events(&bench, verdict, 2);
		hear(&heard);
		assert_int_equal(heard.header.count, ITEMS);
		assert_int_equal(heard.header.flags, SL_FEEDBACK_PARTIAL | SL_FEEDBACK_LAST);
		for (uint32_t i = 0; i < ITEMS; i++)
			assert_int_equal(heard.answer[i].decision,
					 !shared && i >= EVENTS ? SL_FEEDBACK_NO_DATA : i % 3 == 0);
		assert_int_equal(bench_close(&bench), 0);
		bench_fini(&bench);
	}
}

static void none_is_answered_twice_and_nothing_that_was_not_sent(void **state)
{
	struct bench bench;
	struct heard heard;

	(void)state;
	init(&bench);
	assert_int_equal(bench_open(&bench), 0);
	assert_int_equal(bench_feed(&bench, 3, KEPT), 0);
	/* A module that came late is a broken frame of the same number. */
	assert_int_equal(bench_feed(&bench, 3, DAMAGED), 0);
	bench_frame(&bench, 9, LOST);
	for (unsigned m = 0; m < MODULES; m++)
		bench.view[m].outcome = SL_NO_OUTCOME;
	assert_int_equal(bench.sink->put(bench.state, &bench.frame), 0);
	hear(&heard);
	assert_int_equal(heard.answer[0].decision, SL_FEEDBACK_KEEP);
	assert_true(silent());
	assert_int_equal(bench_figure(&bench, "frames"), 1);
	assert_int_equal(bench_figure(&bench, "frames_answered_before"), 1);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

/* By the emitter's clock when that is ours, otherwise by the last event. */
static void answers_leave_no_sooner_than_they_are_due(void **state)
{
	static bool same_clock;

	(void)state;
	for (int same = 0; same < 2; same++) {
		uint64_t event, gone;
		struct bench bench;
		struct heard heard;

		init(&bench);
		same_clock = same;
		bench.env.same_clock = &same_clock;
		bench_set(&bench, "latency_us", "20000");
		assert_int_equal(bench_open(&bench), 0);
		event = sl_clock_ns();
		bench_frame(&bench, 0, KEPT);
		/* The other would be due already, or not for a long time. */
		bench.frame.hop_ns[SL_HOP_EMIT] = same ? event : 1;
		bench.frame.hop_ns[SL_HOP_EVENT] = same ? 1 : event;
		assert_int_equal(bench.sink->put(bench.state, &bench.frame), 0);
		gone = sl_clock_ns();
		assert_true(gone - event >= 20000000);
		hear(&heard);
		assert_int_equal(heard.header.flags, SL_FEEDBACK_LAST);
		assert_int_equal(bench_figure(&bench, "frames_late"), 0);
		assert_true(bench_figure(&bench, "off_max_ns") <= gone - event - 20000000);
		assert_int_equal(bench_close(&bench), 0);
		bench_fini(&bench);
	}
}

static void what_is_late_leaves_at_once_and_is_counted(void **state)
{
	struct bench bench;
	struct heard heard;

	(void)state;
	init(&bench);
	bench_set(&bench, "latency_us", "10000000");
	assert_int_equal(bench_open(&bench), 0);
	bench_frame(&bench, 0, KEPT);
	bench.frame.hop_ns[SL_HOP_EVENT] = 1;
	assert_int_equal(bench.sink->put(bench.state, &bench.frame), 0);
	hear(&heard);
	assert_int_equal(heard.header.flags, SL_FEEDBACK_LATE | SL_FEEDBACK_LAST);
	bench_frame(&bench, 1, LOST); /* nobody knows when it was */
	bench.frame.number = 2;
	assert_int_equal(bench.sink->put(bench.state, &bench.frame), 0);
	hear(&heard);
	assert_int_equal(heard.header.flags, SL_FEEDBACK_BROKEN | SL_FEEDBACK_LAST);
	assert_int_equal(bench_figure(&bench, "frames_late"), 1);
	assert_int_equal(bench_figure(&bench, "frames_without_a_time"), 1);
	assert_true(bench_figure(&bench, "off_max_ns") > 0);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

/* A front end's word for the time holds nobody up for longer than the latency. */
static void no_event_is_in_the_future(void **state)
{
	static bool same_clock = true;
	struct bench bench;
	struct heard heard;

	(void)state;
	init(&bench);
	bench.env.same_clock = &same_clock;
	bench_set(&bench, "latency_us", "1000");
	assert_int_equal(bench_open(&bench), 0);
	bench_frame(&bench, 0, KEPT);
	bench.frame.hop_ns[SL_HOP_EMIT] = sl_clock_ns() + 3600 * UINT64_C(1000000000);
	assert_int_equal(bench.sink->put(bench.state, &bench.frame), 0);
	hear(&heard);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

static void data_is_kept_when_nobody_listens(void **state)
{
	struct bench bench;

	(void)state;
	init(&bench);
	assert_int_equal(bench_open(&bench), 0);
	close(ear);
	ear = -1;
	for (uint64_t k = 0; k < 20; k++)
		assert_int_equal(bench_feed(&bench, k, KEPT), 0);
	assert_int_equal(bench_close(&bench), 0);
	assert_true(bench_figure(&bench, "packets_refused") > 0);
	assert_int_equal(bench_figure(&bench, "feedback_unsent"), 0);
	bench_fini(&bench);
}

/* The sink's socket becomes something that cannot send. */
static void break_socket(void)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), broken = 0;
	struct sockaddr_in peer;

	assert_true(null >= 0);
	for (int fd = 3; fd < 64; fd++) {
		socklen_t bytes = sizeof(peer);

		if (getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0 && fd != ear)
			broken += dup2(null, fd) == fd;
	}
	assert_int_equal(broken, 1);
	close(null);
}

static void what_cannot_be_sent_fails_the_run_and_not_the_frame(void **state)
{
	struct wanted_figure wanted = {.name = "feedback_unsent"};
	struct sl_verdict verdict[ITEMS];
	struct bench bench;

	(void)state;
	init(&bench);
	bench.geometry.items = EVENTS;
	bench_set(&bench, "payload", "120");
	assert_int_equal(bench_open(&bench), 0);
	break_socket();
	feed_events(&bench, verdict, 0);
	assert_int_equal(bench_close(&bench), 0);
	sl_sink_feedback.figures(bench.state, find_figure, &wanted);
	assert_int_equal(wanted.value, ITEMS);
	assert_true(wanted.failed);
	bench_fini(&bench);
}

/* ---- by write: a way back that does as it is told ---- */

static struct {
	struct sl_feedback_sender_options options;
	char link[16];
	uint32_t takes;	  /* packets, and no more */
	unsigned hold_us; /* that a call takes */
	uint64_t missing;
	unsigned packets, open;
	struct sl_feedback_header header[64];
} way;

static int way_open(const struct sl_feedback_senders *feedback,
		    const struct sl_feedback_sender_options *options,
		    struct sl_feedback_sender **back)
{
	(void)feedback;
	way.options = *options;
	snprintf(way.link, sizeof(way.link), "%s", options->link);
	way.open++;
	*back = (struct sl_feedback_sender *)&way;
	return 0;
}

static uint32_t way_send(struct sl_feedback_sender *back, const struct sl_feedback_packet *packet,
			 uint32_t n)
{
	uint32_t taken = 0;

	assert_ptr_equal(back, &way);
	usleep(way.hold_us);
	for (; taken < n && way.packets < way.takes; taken++, way.packets++) {
		struct sl_feedback_header *header = &way.header[way.packets % 64];

		assert_int_equal(sl_feedback_read(packet[taken].data, packet[taken].bytes, header),
				 0);
		assert_true(packet[taken].bytes <= way.options.bytes);
		assert_int_equal(packet[taken].number, header->packet);
		assert_int_equal(packet[taken].items, header->count);
		assert_int_equal(packet[taken].timestamp, header->timestamp);
	}
	return taken;
}

static uint64_t way_close(struct sl_feedback_sender *back)
{
	assert_ptr_equal(back, &way);
	way.open--;
	return way.missing;
}

static const struct sl_feedback_senders way_backs = {
	.open = way_open, .send = way_send, .close = way_close, .token = ""};

static void init_write(struct bench *bench, uint32_t takes)
{
	memset(&way, 0, sizeof(way));
	way.takes = takes;
	init(bench);
	bench->env.feedback = &way_backs;
	bench->geometry.items = EVENTS;
	bench_set(bench, "by", "write");
	bench_set(bench, "link", "shm");
	bench_set(bench, "service", "rc");
	bench_set(bench, "payload", "120");
}

static void by_write_the_same_packets_go_another_way(void **state)
{
	struct sl_verdict verdict[ITEMS];
	struct bench bench;

	(void)state;
	init_write(&bench, 1000);
	assert_int_equal(bench_open(&bench), 0);
	assert_string_equal(way.link, "shm");
	assert_int_equal(way.options.service, 2);
	assert_int_equal(way.options.bytes, 120);
	assert_int_equal(way.options.device.qpn, 0);
	feed_events(&bench, verdict, 0);
	assert_int_equal(way.packets, 4);
	for (unsigned n = 0; n < 4; n++) {
		assert_int_equal(way.header[n].packet, n);
		assert_int_equal(way.header[n].first, number_of(6) * ITEMS + 3 * n);
		assert_int_equal(way.header[n].flags, n < 3 ? 0 : SL_FEEDBACK_LAST);
	}
	assert_true(silent());
	assert_int_equal(bench_close(&bench), 0);
	assert_int_equal(way.open, 0);
	assert_int_equal(bench_figure(&bench, "packets"), 4);
	assert_int_equal(bench_figure(&bench, "feedback_unsent"), 0);
	bench_fini(&bench);
}

/* They are gone when there was credit, not before. */
static void a_wait_for_credit_is_in_the_jitter(void **state)
{
	struct bench bench;

	(void)state;
	init_write(&bench, 1000);
	way.hold_us = 30000;
	bench_set(&bench, "latency_us", "100");
	assert_int_equal(bench_open(&bench), 0);
	bench_frame(&bench, 0, KEPT);
	bench.frame.hop_ns[SL_HOP_EVENT] = sl_clock_ns();
	assert_int_equal(bench.sink->put(bench.state, &bench.frame), 0);
	assert_int_equal(bench_figure(&bench, "frames_without_a_time"), 0);
	assert_true(bench_figure(&bench, "off_max_ns") >= 30000000);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

static void a_latency_for_which_the_pool_is_too_small_is_told(void **state)
{
	static const char words[] = "raise unit.batch";
	struct bench bench;

	(void)state;
	for (uint32_t pool = 99; pool <= 100; pool++) {
		capture_begin();
		init_write(&bench, 1000);
		bench.env.pool_frames = pool;
		bench.env.frame_rate_Hz = 10000;
		bench_set(&bench, "latency_us", "10000");
		assert_int_equal(bench_open(&bench), 0);
		assert_int_equal(strstr(capture_end(), words) != NULL, pool < 100);
		assert_int_equal(bench_close(&bench), 0);
		bench_fini(&bench);
	}
}

static void a_block_is_no_longer_than_a_frame_needs(void **state)
{
	struct bench bench;

	(void)state;
	init_write(&bench, 1000);
	bench.geometry.items = 0; /* images: one event each */
	assert_int_equal(bench_open(&bench), 0);
	assert_int_equal(way.options.bytes, SL_FEEDBACK_HEADER + SL_FEEDBACK_ANSWER);
	assert_int_equal(bench_feed(&bench, 0, KEPT), 0);
	assert_int_equal(way.packets, 1);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

/* Packets of 3, 3, 3 and 1 answers. */
static void what_the_way_does_not_take_or_loses_fails_the_run(void **state)
{
	struct wanted_figure wanted = {.name = "feedback_unsent"};
	struct sl_verdict verdict[ITEMS];
	struct bench bench;

	(void)state;
	init_write(&bench, 2);
	way.missing = 3;
	assert_int_equal(bench_open(&bench), 0);
	feed_events(&bench, verdict, 0);
	assert_int_equal(bench_figure(&bench, "feedback_unsent"), 4);
	assert_int_equal(bench_close(&bench), 0);
	sl_sink_feedback.figures(bench.state, find_figure, &wanted);
	assert_int_equal(wanted.value, 4 + 3);
	assert_true(wanted.failed);
	bench_fini(&bench);
}

static void without_a_way_back_it_does_not_open(void **state)
{
	struct bench bench;

	(void)state;
	init_write(&bench, 0);
	bench.env.feedback = NULL;
	assert_int_equal(bench_open(&bench), -ENOTSUP);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

static void an_address_that_is_none_is_refused(void **state)
{
	struct bench bench;

	(void)state;
	init(&bench);
	bench_set(&bench, "address", "front-end.example");
	assert_int_equal(bench_open(&bench), -EINVAL);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFORMANCE_CASES,
		cmocka_unit_test(every_kind_of_frame_has_its_answer),
		cmocka_unit_test(events_are_answered_one_by_one_in_packets_that_fit),
		cmocka_unit_test(events_of_a_missing_module_have_no_data),
		cmocka_unit_test(none_is_answered_twice_and_nothing_that_was_not_sent),
		cmocka_unit_test(answers_leave_no_sooner_than_they_are_due),
		cmocka_unit_test(what_is_late_leaves_at_once_and_is_counted),
		cmocka_unit_test(no_event_is_in_the_future),
		cmocka_unit_test(data_is_kept_when_nobody_listens),
		cmocka_unit_test(what_cannot_be_sent_fails_the_run_and_not_the_frame),
		cmocka_unit_test(by_write_the_same_packets_go_another_way),
		cmocka_unit_test(a_wait_for_credit_is_in_the_jitter),
		cmocka_unit_test(a_latency_for_which_the_pool_is_too_small_is_told),
		cmocka_unit_test(a_block_is_no_longer_than_a_frame_needs),
		cmocka_unit_test(what_the_way_does_not_take_or_loses_fails_the_run),
		cmocka_unit_test(without_a_way_back_it_does_not_open),
		cmocka_unit_test(an_address_that_is_none_is_refused),
	};

	conforming = &sl_sink_feedback;
	prepare = listen_for;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
