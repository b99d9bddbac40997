/* sender_test.c - both ends of the way back, over links: what is sent arrives once and as it was;
 * what does not is counted; nobody waits without end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sluice/record.h>

#include "base/clock.h"
#include "core/registry.h"
#include "feedback/inbox.h"
#include "feedback/sender.h"
#include "feedback/wire.h"
#include "lib/capture.h"
#include "lib/fake_verbs.h"
#include "net/net.h"
#include "roce/roce.h"

enum { PAYLOAD = 2000, FULL = (PAYLOAD - SL_FEEDBACK_HEADER) / SL_FEEDBACK_ANSWER };
enum { PORT = 47920, SLOTS = 32, HEARD = 4096 };

static char address[32]; /* of this process alone */

static const struct sl_feedback_senders feedback = {.token = "", .experiment = 77};

/* What was logged since capture_begin() has this in it. */
static void said(const char *words, const char *or_these)
{
	const char *text = capture_end();

	if (!strstr(text, words) && !(or_these && strstr(text, or_these)))
		fail_msg("'%s' was not said, but:\n%s", words, text);
}

/* ---- the front end ---- */

struct ear {
	struct sl_feedback_inbox write;
	pthread_t thread;
	_Atomic bool stop, deaf; /* deaf: it lives, and takes nothing */
	_Atomic uint32_t heard, bad;
	_Atomic uint64_t lost;
	_Atomic uint64_t number[HEARD];
};

static void hear(void *arg, const uint8_t *bytes, size_t n)
{
	struct ear *ear = arg;
	struct sl_feedback_header header;

	if (sl_feedback_read(bytes, n, &header)) {
		atomic_fetch_add(&ear->bad, 1);
		return;
	}
	if (ear->heard < HEARD)
		atomic_store(&ear->number[ear->heard], header.packet);
	atomic_fetch_add(&ear->heard, 1);
}

static void miss(void *arg, uint64_t packets)
{
	struct ear *ear = arg;

	atomic_fetch_add(&ear->lost, packets);
}

static void *listen_on(void *arg)
{
	struct ear *ear = arg;

	while (!atomic_load(&ear->stop))
		if (atomic_load(&ear->deaf))
			usleep(1000);
		else
			sl_feedback_inbox_poll(&ear->write);
	return NULL;
}

static struct ear *open_ear(const char *link, uint16_t service)
{
	const struct sl_feedback_inbox_options options = {
		.link = link,
		.address = address,
		.token = "",
		.port = PORT,
		.service = service,
		.pmtu = 1024,
		.slots = SLOTS,
		.experiment = 77,
	};
	struct ear *ear = aligned_alloc(64, (sizeof(*ear) + 63) / 64 * 64);

	assert_non_null(ear);
	memset(ear, 0, sizeof(*ear));
	ear->write.packet = hear;
	ear->write.lost = miss;
	ear->write.arg = ear;
	assert_int_equal(sl_feedback_inbox_open(&ear->write, &options), 0);
	assert_int_equal(pthread_create(&ear->thread, NULL, listen_on, ear), 0);
	return ear;
}

static void close_ear(struct ear *ear)
{
	atomic_store(&ear->stop, true);
	pthread_join(ear->thread, NULL);
	sl_feedback_inbox_close(&ear->write);
	free(ear);
}

static bool soon(const _Atomic uint32_t *what, uint32_t value)
{
	uint64_t end = sl_clock_ns() + UINT64_C(20000000000);

	while (atomic_load(what) < value && sl_clock_ns() < end)
		usleep(500);
	return atomic_load(what) >= value;
}

/* ---- the sink ---- */

static struct sl_feedback_sender_options to(const char *link, uint16_t service)
{
	return (struct sl_feedback_sender_options){.link = link,
						   .address = address,
						   .source = "",
						   .port = PORT,
						   .service = service,
						   .bytes = PAYLOAD,
						   .wait_s = 20};
}

static struct sl_feedback_sender *open_sender(const struct sl_feedback_sender_options *options)
{
	struct sl_feedback_sender *back;

	assert_int_equal(sl_feedback_sender_open(&feedback, options, NULL, NULL, &back), 0);
	return back;
}

/* Packet `number`, with as many answers as it takes to tell it from others. */
static uint32_t send_one(struct sl_feedback_sender *back, uint64_t number)
{
	uint16_t count = (uint16_t)(1 + number % FULL);
	uint8_t bytes[PAYLOAD];
	const struct sl_feedback_header header = {
		.packet = number, .first = number * FULL, .items = FULL, .count = count};
	const struct sl_feedback_packet packet = {
		.data = bytes,
		.bytes = SL_FEEDBACK_HEADER + count * (uint32_t)SL_FEEDBACK_ANSWER,
		.items = 1,
		.number = number,
	};

	sl_feedback_write_header(&header, bytes);
	for (uint16_t i = 0; i < count; i++)
		sl_feedback_write_answer(&(struct sl_feedback_answer){.number = header.first + i,
								      .decision = SL_FEEDBACK_KEEP},
					 bytes + SL_FEEDBACK_HEADER +
						 i * (size_t)SL_FEEDBACK_ANSWER);
	return sl_feedback_sender_send(back, &packet, 1);
}

static const struct {
	const char *link;
	uint16_t service;
} ways[] = {
	{"udp", SL_SERVICE_UC},	  {"udp", SL_SERVICE_RC},   {"shm", SL_SERVICE_UC},
#ifndef __SANITIZE_THREAD__ /* ends take turns here by what they say; TSan does not see that */
	{"verbs", SL_SERVICE_UC}, {"verbs", SL_SERVICE_RC},
#endif
};

enum { WAYS = sizeof(ways) / sizeof(*ways) };

/* ---- cases ---- */

static void all_arrive_in_order_and_as_they_were(void **state)
{
	(void)state;
	for (unsigned w = 0; w < WAYS; w++) {
		const struct sl_feedback_sender_options options = to(ways[w].link, ways[w].service);
		struct sl_feedback_sender *back;
		struct ear *ear;

		if (!sl_link_find(ways[w].link))
			continue; /* verbs, where it was not built */
		ear = open_ear(ways[w].link, ways[w].service);
		back = open_sender(&options);

		for (uint64_t n = 0; n < 1000; n++)
			assert_int_equal(send_one(back, n), 1);
		assert_int_equal(sl_feedback_sender_close(back), 0);
		assert_true(soon(&ear->heard, 1000));
		for (uint32_t n = 0; n < 1000; n++)
			assert_int_equal(ear->number[n], n);
		assert_int_equal(ear->heard, 1000);
		assert_int_equal(ear->bad + ear->lost, 0);
		close_ear(ear);
	}
}

static void more_packets_at_once_than_there_are_blocks(void **state)
{
	enum { MANY = 2 * SL_FEEDBACK_SENDER_BLOCKS + 5 };
	static uint8_t bytes[MANY][SL_FEEDBACK_HEADER + SL_FEEDBACK_ANSWER];
	static struct sl_feedback_packet packet[MANY];
	const struct sl_feedback_sender_options options = to("udp", SL_SERVICE_RC);
	struct ear *ear = open_ear("udp", SL_SERVICE_RC);
	struct sl_feedback_sender *back = open_sender(&options);

	(void)state;
	for (uint64_t n = 0; n < MANY; n++) {
		sl_feedback_write_header(
			&(struct sl_feedback_header){
				.packet = n, .first = n, .items = 1, .count = 1},
			bytes[n]);
		sl_feedback_write_answer(&(struct sl_feedback_answer){.number = n},
					 bytes[n] + SL_FEEDBACK_HEADER);
		packet[n] = (struct sl_feedback_packet){
			.data = bytes[n], .bytes = sizeof(bytes[n]), .items = 1, .number = n};
	}
	assert_int_equal(sl_feedback_sender_send(back, packet, MANY), MANY);
	assert_int_equal(sl_feedback_sender_close(back), 0);
	assert_true(soon(&ear->heard, MANY));
	close_ear(ear);
}

static void the_front_end_may_come_later_and_go_and_come_back(void **state)
{
	const struct sl_feedback_sender_options options = to("udp", SL_SERVICE_UC);
	struct sl_feedback_sender *back = open_sender(&options);
	struct ear *ear;
	uint64_t n = 0, end;

	(void)state;
	usleep(50000);
	for (unsigned times = 0; times < 3; times++) {
		ear = open_ear("udp", SL_SERVICE_UC);
		/* The first is waited for; later ones are found, and nobody waits. */
		end = sl_clock_ns() + UINT64_C(20000000000);
		while (!atomic_load(&ear->heard) && sl_clock_ns() < end) {
			send_one(back, n++);
			usleep(2000);
		}
		assert_true(ear->heard > 0);
		close_ear(ear);
	}
	sl_feedback_sender_close(back);
}

static void one_sink_after_the_other_may_write(void **state)
{
	const struct sl_feedback_sender_options options = to("shm", SL_SERVICE_UC);
	struct ear *ear = open_ear("shm", SL_SERVICE_UC);

	(void)state;
	for (uint32_t times = 0; times < 5; times++) {
		struct sl_feedback_sender *back = open_sender(&options);

		assert_int_equal(send_one(back, 0), 1);
		assert_int_equal(sl_feedback_sender_close(back), 0);
		assert_int_equal(ear->heard, times + 1); /* it said good-bye: all was taken */
	}
	assert_int_equal(ear->lost, 0);
	close_ear(ear);
}

/* ---- what is lost ---- */

static enum sl_packet_fault lose_some(void *arg, uint16_t module, uint64_t sequence,
				      uint32_t packet)
{
	(void)arg, (void)module;
	return packet == 0 && (sequence % 10 == 3 || sequence >= 198) ? SL_PACKET_FAULT_DROP
								      : SL_PACKET_FAULT_NONE;
}

static void send_lossy(const char *link, uint16_t service, struct ear *ear)
{
	const struct sl_feedback_sender_options options = to(link, service);
	struct sl_feedback_sender *back;

	(void)ear;
	assert_int_equal(sl_feedback_sender_open(&feedback, &options, lose_some, NULL, &back), 0);
	for (uint64_t n = 0; n < 200; n++)
		assert_int_equal(send_one(back, n), 1);
	assert_int_equal(sl_feedback_sender_close(back), 0);
}

static void over_uc_what_is_lost_stays_lost_and_nothing_else(void **state)
{
	(void)state;
	for (unsigned w = 0; w < 3; w += 2) {
		struct ear *ear = open_ear(ways[w].link, SL_SERVICE_UC);
		uint32_t i = 0;

		send_lossy(ways[w].link, SL_SERVICE_UC, ear);
		assert_true(soon(&ear->heard, 178));
		for (uint64_t n = 0; n < 198; n++)
			if (n % 10 != 3)
				assert_int_equal(ear->number[i++], n);
		assert_int_equal(ear->heard, i);
		assert_int_equal(ear->lost, 2); /* those that no other came after */
		assert_int_equal(ear->bad, 0);
		close_ear(ear);
	}
}

static void over_rc_what_is_lost_comes_again(void **state)
{
	struct ear *ear = open_ear("udp", SL_SERVICE_RC);

	(void)state;
	send_lossy("udp", SL_SERVICE_RC, ear);
	assert_true(soon(&ear->heard, 200));
	for (uint32_t n = 0; n < 200; n++)
		assert_int_equal(ear->number[n], n);
	assert_int_equal(ear->lost, 0);
	close_ear(ear);
}

/* ---- who does not answer ---- */

static void without_credit_it_does_not_wait_for_ever(void **state)
{
	const struct sl_feedback_sender_options options = to("udp", SL_SERVICE_UC);
	struct ear *ear = open_ear("udp", SL_SERVICE_UC);
	struct sl_feedback_sender *back = open_sender(&options);
	uint64_t n = 0, start, taken = 0;

	(void)state;
	capture_begin();
	assert_int_equal(send_one(back, n++), 1);
	assert_true(soon(&ear->heard, 1));
	atomic_store(&ear->deaf, true);
	start = sl_clock_ns();
	/* A ring, its own blocks, and then no more. */
	while (n < 2 * (SLOTS + SL_FEEDBACK_SENDER_BLOCKS))
		taken += send_one(back, n++);
	assert_true(sl_clock_ns() - start < UINT64_C(15000000000));
	assert_true(taken >= SL_FEEDBACK_SENDER_BLOCKS &&
		    taken <= SLOTS + SL_FEEDBACK_SENDER_BLOCKS);
	atomic_store(&ear->deaf, false);
	assert_true(soon(&ear->heard, (uint32_t)taken + 1)); /* those that were taken come */
	assert_int_equal(send_one(back, n), 1);
	assert_int_equal(sl_feedback_sender_close(back), 0);
	said("takes no more answers", NULL);
	close_ear(ear);
}

static void a_front_end_that_is_gone_is_told_and_its_packets_counted(void **state)
{
	const struct sl_feedback_sender_options options = to("udp", SL_SERVICE_RC);
	struct ear *ear = open_ear("udp", SL_SERVICE_RC);
	struct sl_feedback_sender *back = open_sender(&options);
	uint64_t taken = 0, n = 0, refused = 0;

	(void)state;
	capture_begin();
	assert_int_equal(send_one(back, n++), 1);
	assert_true(soon(&ear->heard, 1));
	close_ear(ear);
	for (; n < 5000 && !refused; n++) {
		uint32_t one = send_one(back, n);

		taken += one;
		refused += !one;
		usleep(1000);
	}
	assert_int_equal(refused, 1);
	assert_true(sl_feedback_sender_close(back) <= taken);
	said("is gone, and answers with it", NULL);
}

static void who_has_all_answers_may_go_unnoticed(void **state)
{
	const struct sl_feedback_sender_options options = to("udp", SL_SERVICE_RC);
	struct ear *ear = open_ear("udp", SL_SERVICE_RC);
	struct sl_feedback_sender *back = open_sender(&options);
	const char *text;
	bool gone = false;

	(void)state;
	capture_begin();
	assert_int_equal(send_one(back, 0), 1);
	assert_true(soon(&ear->heard, 1));
	for (uint64_t end = sl_clock_ns() + UINT64_C(20000000000); !gone && sl_clock_ns() < end;) {
		usleep(1000);
		pthread_mutex_lock(&back->lock);
		gone = back->reaped == 1; /* acknowledged */
		pthread_mutex_unlock(&back->lock);
	}
	close_ear(ear);
	usleep(100000);
	assert_int_equal(sl_feedback_sender_close(back), 0);
	text = capture_end();
	if (strstr(text, "gone"))
		fail_msg("it was said:\n%s", text);
}

static void nobody_is_waited_for_in_vain(void **state)
{
	struct sl_feedback_sender_options options = to("udp", SL_SERVICE_UC);
	struct sl_feedback_sender *back;

	(void)state;
	options.wait_s = 0.05;
	capture_begin();
	back = open_sender(&options);
	for (uint64_t n = 0; n < 10; n++)
		assert_int_equal(send_one(back, n), 0);
	assert_int_equal(sl_feedback_sender_close(back), 0);
	said("nobody takes answers at", NULL);
}

static void refused(struct sl_feedback_sender_options options, const struct sl_feedback_senders *by,
		    const char *why)
{
	struct sl_feedback_sender *back;

	options.wait_s = 0.5;
	capture_begin();
	assert_int_equal(sl_feedback_sender_open(by, &options, NULL, NULL, &back), 0);
	assert_int_equal(send_one(back, 0), 0);
	assert_int_equal(sl_feedback_sender_close(back), 0);
	said(why, NULL);
}

/* Another may have it now, and not for ever. */
static void who_is_refused_asks_again(void **state)
{
	struct sl_feedback_sender_options options = to("udp", SL_SERVICE_UC);
	struct ear *ear = open_ear("udp", SL_SERVICE_UC);
	struct sl_feedback_sender *first = open_sender(&options), *second;
	uint64_t n = 0, end;

	(void)state;
	assert_int_equal(send_one(first, 0), 1);
	options.wait_s = 0.5; /* until it is told, also on a busy machine */
	capture_begin();
	second = open_sender(&options);
	assert_int_equal(send_one(second, n++), 0);
	said("already served by another feedback sink", NULL);
	assert_int_equal(sl_feedback_sender_close(first), 0);
	end = sl_clock_ns() + UINT64_C(20000000000);
	while (!send_one(second, n++) && sl_clock_ns() < end)
		usleep(1000);
	assert_int_equal(sl_feedback_sender_close(second), 0);
	assert_int_equal(ear->heard, 2);
	close_ear(ear);
}

static void nobody_is_connected_to_before_the_run_begins(void **state)
{
	struct sl_feedback_senders waiting = {.token = "", .experiment = 77, .idle = true};
	const struct sl_feedback_sender_options options = to("udp", SL_SERVICE_UC);
	struct ear *ear = open_ear("udp", SL_SERVICE_UC);
	struct sl_feedback_sender *idle, *busy;

	(void)state;
	assert_int_equal(sl_feedback_sender_open(&waiting, &options, NULL, NULL, &idle), 0);
	usleep(50000);
	busy = open_sender(&options);
	assert_int_equal(send_one(busy, 0), 1);
	assert_int_equal(sl_feedback_sender_close(busy), 0);
	__atomic_store_n(&waiting.idle, false, __ATOMIC_SEQ_CST);
	assert_int_equal(send_one(idle, 1), 1);
	assert_int_equal(sl_feedback_sender_close(idle), 0);
	assert_int_equal(ear->heard, 2);
	close_ear(ear);
}

static void strangers_that_connect_and_wait_shut_nobody_out(void **state)
{
	const struct sl_feedback_sender_options options = to("udp", SL_SERVICE_UC);
	struct ear *ear = open_ear("udp", SL_SERVICE_UC);
	union sl_net_address at;
	socklen_t bytes = sl_net_numeric(address, PORT, &at);
	struct sl_feedback_sender *back;
	int stranger[80];

	(void)state;
	for (unsigned i = 0; i < 80; i++) {
		stranger[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(stranger[i], &at.any, bytes), 0);
	}
	back = open_sender(&options);
	assert_int_equal(send_one(back, 0), 1);
	assert_int_equal(sl_feedback_sender_close(back), 0);
	assert_int_equal(ear->heard, 1);
	for (unsigned i = 0; i < 80; i++)
		close(stranger[i]);
	close_ear(ear);
}

static void who_does_not_belong_here_is_refused_and_told_why(void **state)
{
	const struct sl_feedback_senders other = {.token = "", .experiment = 78};
	struct sl_feedback_sender_options small = to("udp", SL_SERVICE_UC);
	struct ear *ear = open_ear("udp", SL_SERVICE_UC);

	(void)state;
	refused(to("udp", SL_SERVICE_UC), &other, "the detector section differs");
	refused(to("shm", SL_SERVICE_UC), &feedback, "its link speaks 'shm', here it is 'roce'");
	small.bytes = SL_FEEDBACK_HEADER;
	refused(small, &feedback, "are no packets of answers");
	/* The link of this front end could do it; its file says otherwise. */
	refused(to("udp", SL_SERVICE_RC), &feedback,
		"service of the sink is rc, feedback.service of the front end is uc");
	close_ear(ear);
}

/* ---- a device, which makes no plans and grants nothing ---- */

enum { DEVICE_SLOTS = 3, DEVICE_PMTU = 1024, DEVICE_PACKETS = 3, ROUNDS = 20 };

static int open_device(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct timeval patience = {.tv_sec = 20};
	union sl_net_address at;
	socklen_t bytes = sl_net_numeric(address, PORT, &at);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, &at.any, bytes), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	return fd;
}

/* Packet `part` of block k, as the device's numbers say. */
static void expect_write(int fd, const struct sl_feedback_target *device, uint64_t stride,
			 uint64_t k, uint32_t part)
{
	struct sl_roce_packet packet;
	uint8_t bytes[4096];
	ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

	assert_true(n > 0);
	assert_int_equal(sl_roce_parse(bytes, (size_t)n, &packet), 0);
	assert_int_equal(packet.qpn, device->qpn);
	assert_int_equal(packet.psn, (device->psn + k * DEVICE_PACKETS + part) & 0xffffff);
	assert_int_equal(packet.reth.rkey, device->rkey);
	assert_int_equal(packet.reth.va,
			 device->memory + k % DEVICE_SLOTS * stride + part * DEVICE_PMTU);
}

static void a_device_is_written_to_by_its_numbers_and_never_waited_for(void **state)
{
	struct sl_feedback_sender_options options = to("udp", SL_SERVICE_UC);
	uint64_t block = PAYLOAD + sizeof(struct sl_record);

	(void)state;
	options.device = (struct sl_feedback_target){.qpn = 0x1234,
						     .rkey = 0xdeadbeef,
						     .psn = 0xfffff0,
						     .slots = DEVICE_SLOTS,
						     .memory = UINT64_C(0x123400000000),
						     .pmtu = DEVICE_PMTU};
	for (unsigned gaps = 0; gaps < 2; gaps++) {
		struct sl_feedback_sender *back;
		int fd = open_device();

		options.device.stride = gaps ? 4096 : 0;
		back = open_sender(&options);
		for (uint64_t k = 0; k < ROUNDS * DEVICE_SLOTS; k++) {
			assert_int_equal(send_one(back, k), 1);
			for (uint32_t part = 0; part < DEVICE_PACKETS; part++)
				expect_write(fd, &options.device, gaps ? 4096 : block, k, part);
		}
		assert_int_equal(sl_feedback_sender_close(back), 0);
		assert_int_equal(recv(fd, &block, sizeof(block), MSG_DONTWAIT), -1);
		close(fd);
	}
}

static void a_device_whose_blocks_would_overlap_is_not_written_to(void **state)
{
	struct sl_feedback_sender_options options = to("udp", SL_SERVICE_UC);

	(void)state;
	options.device =
		(struct sl_feedback_target){.qpn = 1, .slots = 2, .stride = PAYLOAD, .pmtu = 1024};
	refused(options, &feedback, "feedback.stride: a block has 2064 bytes");
}

/* ---- what is not as it should be ---- */

static void blocks_that_are_no_packets_of_answers_are_counted_as_such(void **state)
{
	const struct sl_feedback_sender_options options = to("shm", SL_SERVICE_UC);
	struct ear *ear = open_ear("shm", SL_SERVICE_UC);
	struct sl_feedback_sender *back = open_sender(&options);
	uint8_t noise[PAYLOAD];

	(void)state;
	assert_int_equal(send_one(back, 0), 1);
	memset(noise, 0xa5, sizeof(noise));
	assert_int_equal(
		sl_feedback_sender_send(back,
					&(struct sl_feedback_packet){
						.data = noise, .bytes = sizeof(noise), .items = 1},
					1),
		1);
	pthread_mutex_lock(&back->lock);
	back->plan.module = 1; /* its records are those of another transfer from now on */
	pthread_mutex_unlock(&back->lock);
	assert_int_equal(send_one(back, 2), 1);
	pthread_mutex_lock(&back->lock);
	back->plan.module = 0;
	pthread_mutex_unlock(&back->lock);
	assert_int_equal(send_one(back, 3), 1);
	assert_int_equal(sl_feedback_sender_close(back), 0);
	assert_int_equal(ear->heard, 2);
	assert_int_equal(ear->number[1], 3);
	assert_int_equal(ear->bad, 2);
	assert_int_equal(ear->lost, 0);
	close_ear(ear);
}

static void a_count_that_cannot_be_true_is_not_believed(void **state)
{
	const struct sl_feedback_sender_options options = to("udp", SL_SERVICE_UC);
	struct ear *ear = open_ear("udp", SL_SERVICE_UC);
	struct sl_feedback_sender *back = open_sender(&options);
	uint64_t end = sl_clock_ns() + UINT64_C(20000000000);
	unsigned connections = 1;

	(void)state;
	capture_begin();
	assert_int_equal(send_one(back, 0), 1);
	pthread_mutex_lock(&back->lock);
	back->begun = back->reaped = 1000000;
	back->posted = back->begun * back->writes;
	pthread_mutex_unlock(&back->lock);
	while (connections < 2 && sl_clock_ns() < end) { /* it comes back with a true one */
		usleep(1000);
		pthread_mutex_lock(&back->lock);
		connections = back->connections;
		pthread_mutex_unlock(&back->lock);
	}
	assert_int_equal(send_one(back, 1), 1);
	assert_int_equal(sl_feedback_sender_close(back), 0);
	said("a count that cannot be true", NULL);
	assert_int_equal(ear->heard, 2);
	close_ear(ear);
}

static void a_link_that_cannot_do_it_is_refused_at_once(void **state)
{
	struct sl_feedback_sender_options options = to("sls", SL_SERVICE_UC);
	struct sl_feedback_sender *back;

	(void)state;
	capture_begin();
	assert_int_equal(sl_feedback_sender_open(&feedback, &options, NULL, NULL, &back), -EINVAL);
	options.link = "pigeon";
	assert_int_equal(sl_feedback_sender_open(&feedback, &options, NULL, NULL, &back), -EINVAL);
	said("no link that goes both ways is called 'pigeon'", NULL);
}

static int choose_address(void **state)
{
	unsigned id = (unsigned)getpid();

	(void)state;
	snprintf(address, sizeof(address), "127.%u.%u.%u", 128 + (id >> 14 & 63), id >> 6 & 255,
		 (id & 63) << 2 | 1);
	fake_verbs_add("fake0", address); /* a NIC without hardware */
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_arrive_in_order_and_as_they_were),
		cmocka_unit_test(more_packets_at_once_than_there_are_blocks),
		cmocka_unit_test(the_front_end_may_come_later_and_go_and_come_back),
		cmocka_unit_test(one_sink_after_the_other_may_write),
		cmocka_unit_test(over_uc_what_is_lost_stays_lost_and_nothing_else),
		cmocka_unit_test(over_rc_what_is_lost_comes_again),
		cmocka_unit_test(without_credit_it_does_not_wait_for_ever),
		cmocka_unit_test(a_front_end_that_is_gone_is_told_and_its_packets_counted),
		cmocka_unit_test(who_has_all_answers_may_go_unnoticed),
		cmocka_unit_test(nobody_is_waited_for_in_vain),
		cmocka_unit_test(who_is_refused_asks_again),
		cmocka_unit_test(nobody_is_connected_to_before_the_run_begins),
		cmocka_unit_test(strangers_that_connect_and_wait_shut_nobody_out),
		cmocka_unit_test(who_does_not_belong_here_is_refused_and_told_why),
		cmocka_unit_test(a_device_is_written_to_by_its_numbers_and_never_waited_for),
		cmocka_unit_test(a_device_whose_blocks_would_overlap_is_not_written_to),
		cmocka_unit_test(blocks_that_are_no_packets_of_answers_are_counted_as_such),
		cmocka_unit_test(a_count_that_cannot_be_true_is_not_believed),
		cmocka_unit_test(a_link_that_cannot_do_it_is_refused_at_once),
	};

	return cmocka_run_group_tests_name("back", tests, choose_address, NULL);
}
