/* out_test.c - a socket that is full holds up the sinks once, not for every packet;
 * packets that leave as one message arrive as they were, also where that cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/net.h"
#include "sink/feedback/out.h"

enum { PACKETS = 64, HOLD_MS = 200 };

/* Nobody reads at the other end of this pair. */
static void replace_socket(struct sl_feedback_out *out, int pair[2])
{
	const struct timeval patience = {.tv_usec = HOLD_MS * 1000};

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)),
			 0);
	assert_int_equal(dup2(pair[0], out->fd), out->fd);
	out->segments = false; /* such sockets do not cut messages */
}

static void a_full_socket_is_waited_for_once(void **state)
{
	const struct sl_feedback_sender_options to = {.address = "127.0.0.1", .port = 9};
	static const uint8_t byte = 1;
	struct sl_feedback_packet packet[PACKETS];
	struct sl_feedback_out out;
	uint64_t start, sent;
	char got;
	int pair[2];

	(void)state;
	for (unsigned i = 0; i < PACKETS; i++)
		packet[i] = (struct sl_feedback_packet){.data = &byte, .bytes = 1, .items = 1};
	assert_int_equal(sl_feedback_out_open(&out, SL_FEEDBACK_BY_UDP, &to, NULL, PACKETS), 0);
	replace_socket(&out, pair);
	start = sl_clock_ns();
	for (unsigned i = 0; i < 20; i++)
		sl_feedback_out_send(&out, packet, PACKETS);
	assert_true(out.stuck);
	sent = 20 * PACKETS - out.unsent;
	assert_true(sent > 0 && out.unsent > PACKETS);
	/* Each in turn would have taken this long. */
	assert_true(sl_clock_ns() - start < out.unsent * HOLD_MS * UINT64_C(1000000) / 4);
	while (recv(pair[1], &got, 1, MSG_DONTWAIT) == 1)
		sent--;
	assert_int_equal(sent, 0);
	sl_feedback_out_send(&out, packet, 1);
	assert_false(out.stuck);
	sl_feedback_out_close(&out);
	close(pair[0]);
	close(pair[1]);
}

/* Of every length that a run can end with; `cuts`: messages may be cut by the kernel. */
static void send_and_compare(bool cuts)
{
	static const uint32_t length[] = {700, 700, 700, 120, 120, 700, 120, 64, 700};
	enum { N = sizeof(length) / sizeof(length[0]) };
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sl_feedback_sender_options to = {.address = "127.0.0.1"};
	struct sl_feedback_packet packet[N];
	socklen_t bytes = sizeof(at);
	uint8_t sent[N][700], got[800];
	struct sl_feedback_out out;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, bytes), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
	to.port = ntohs(at.sin_port);
	assert_int_equal(sl_feedback_out_open(&out, SL_FEEDBACK_BY_UDP, &to, NULL, N), 0);
	if (!cuts) /* of what has no checksum the kernel cuts nothing */
		assert_int_equal(sl_net_leave_checksum(out.fd), 0);
	for (unsigned i = 0; i < N; i++) {
		memset(sent[i], (int)i + 1, sizeof(sent[i]));
		packet[i] = (struct sl_feedback_packet){
			.data = sent[i], .bytes = length[i], .items = 1};
	}
	for (unsigned round = 0; round < 2; round++) {
		sl_feedback_out_send(&out, packet, N);
		for (unsigned i = 0; i < N; i++) {
			assert_int_equal(recv(fd, got, sizeof(got), MSG_DONTWAIT), length[i]);
			assert_memory_equal(got, sent[i], length[i]);
		}
	}
	assert_int_equal(recv(fd, got, sizeof(got), MSG_DONTWAIT), -1);
	assert_int_equal(out.unsent + out.refused, 0);
	assert_int_equal(out.segments, cuts && sl_net_segments(out.fd));
	sl_feedback_out_close(&out);
	close(fd);
}

static void packets_arrive_as_they_were(void **state)
{
	(void)state;
	send_and_compare(true);
}

static void packets_arrive_where_messages_are_not_cut(void **state)
{
	(void)state;
	send_and_compare(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_arrive_as_they_were),
		cmocka_unit_test(packets_arrive_where_messages_are_not_cut),
		cmocka_unit_test(a_full_socket_is_waited_for_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
