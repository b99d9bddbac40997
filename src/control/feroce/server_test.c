/* server_test.c - FEROCE messages over real sockets: which ports, who is heard, what is
 * wrong with the options. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "control/feroce/server.h"
#include "lib/capture.h"

#define DEVICE 0x7f5d1202 /* 127.93.18.2 */

enum { PORT = 17187, PATIENCE_MS = 5000, QPN = 256 };

static unsigned accepted;

static int accept_offer(void *arg, const struct sl_offer *offer, bool same_host,
			struct sl_plan *plan, char *why, size_t why_bytes)
{
	*plan = (struct sl_plan){.version = SL_PLAN_VERSION,
				 .module = offer->module,
				 .operation = SL_OPERATION_WRITE,
				 .qpn = 5000,
				 .slots = 4,
				 .dest = {.ip = {[10] = 0xff, 0xff, 127, 93, 18, 1}}};
	accepted++;
	return 0;
}

static int meet(void *arg, uint16_t transfer, uint32_t qpn)
{
	return 0;
}

static void look(void *arg, uint32_t module, struct sl_progress *seen)
{
	*seen = (struct sl_progress){.opened = 4, .packets_whole = 5};
}

static int count(void *arg, uint32_t module, uint64_t next, uint64_t sent, uint64_t position,
		 bool final, char *why, size_t why_bytes)
{
	return 0;
}

static void end(void *arg, uint32_t module)
{
}

static void cancel_plan(void *arg, uint16_t transfer)
{
}

static void source_lost(void *arg, uint32_t module)
{
}

static void limit(void *arg, uint64_t sequence)
{
}

static const struct sl_control_ops ops = {
	.accept = accept_offer,
	.set_queue = meet,
	.cancel_plan = cancel_plan,
	.count = count,
	.end = end,
	.source_lost = source_lost,
	.limit = limit,
	.progress = look,
};

/* This process's own, so that test programs can run side by side on one port. */
static const char *address(void)
{
	static char text[32];
	unsigned pid = (unsigned)getpid();

	snprintf(text, sizeof(text), "127.%u.%u.%u", 101 + pid / 250 / 250 % 100,
		 1 + pid / 250 % 250, 1 + pid % 250);
	return text;
}

static struct sl_feroce_server *open_with(uint16_t port, const char *allow, const char *ask)
{
	struct sl_feroce_server_options options = {.address = address(),
						   .port = port,
						   .allow = allow,
						   .open = ask,
						   .host = {.modules = 2, .block_bytes = 1000}};
	struct sl_feroce_server *server;

	accepted = 0;
	assert_int_equal(sl_feroce_server_open(&options, &ops, NULL, &server), 0);
	return server;
}

static int device(uint16_t port, uint16_t *bound)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(DEVICE)};
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
	*bound = ntohs(at.sin_port);
	return fd;
}

static void say(int fd, uint16_t to_port, const void *data, size_t bytes)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(to_port)};

	assert_int_equal(inet_pton(AF_INET, address(), &to.sin_addr), 1);
	assert_int_equal(sendto(fd, data, bytes, 0, (struct sockaddr *)&to, sizeof(to)), bytes);
}

static void ask_open(int fd, uint16_t port, uint16_t to_port)
{
	const struct sl_feroce_message m = {.info = true,
					    .request = SL_FEROCE_OPEN,
					    .local = {.qpn = QPN, .ip = DEVICE},
					    .port = port};
	uint8_t bytes[SL_FEROCE_BYTES];

	sl_feroce_encode(&m, bytes);
	say(fd, to_port, bytes, sizeof(bytes));
}

/* What the server sends to this front end, while it works; false: nothing for a while. */
static bool hear(struct sl_feroce_server *server, int fd, int patience_ms,
		 struct sl_feroce_message *m)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	uint8_t bytes[SL_FEROCE_BYTES + 1];

	for (int ms = 0; ms < patience_ms; ms++) {
		sl_feroce_server_poll(server, sl_clock_ns());
		if (poll(&poll_fd, 1, 1) == 1) {
			ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

			assert_int_equal(n, SL_FEROCE_BYTES);
			assert_int_equal(sl_feroce_decode(bytes, (size_t)n, m), 0);
			return true;
		}
	}
	return false;
}

static void both_ports_are_heard_unless_one_is_named(void **state)
{
	static const struct {
		uint16_t option, to;
	} is[] = {{0, 0x4321}, {0, 0x4322}, {PORT, PORT}};

	for (unsigned i = 0; i < sizeof(is) / sizeof(is[0]); i++) {
		struct sl_feroce_server *server = open_with(is[i].option, "", "");
		struct sl_feroce_message m;
		uint16_t port;
		int fd = device(0, &port);

		ask_open(fd, port, is[i].to);
		assert_true(hear(server, fd, PATIENCE_MS, &m));
		assert_int_equal(m.ack, SL_FEROCE_ACK);
		assert_int_equal(m.port, is[i].option ? PORT : 0x4321);
		assert_int_equal(m.remote.qpn, QPN);
		assert_int_equal(sl_feroce_server_planned(server), 1);
		assert_false(sl_feroce_server_ready(server));
		close(fd);
		sl_feroce_server_close(server);
	}
}

static void only_listed_addresses_are_heard(void **state)
{
	static const struct {
		const char *allow;
		bool heard;
	} is[] = {
		{"", true},
		{"127.93.18.2", true},
		{"127.93.18.0/24", true},
		{"10.0.0.0/8, 127.93.18.2/31", true},
		{"0.0.0.0/0", true},
		{"127.93.18.3", false},
		{"127.93.18.4/30,10.0.0.1", false},
	};

	for (unsigned i = 0; i < sizeof(is) / sizeof(is[0]); i++) {
		struct sl_feroce_server *server = open_with(PORT, is[i].allow, "");
		struct sl_feroce_message m;
		const char *said;
		uint16_t port;
		int fd = device(0, &port);

		ask_open(fd, port, PORT);
		assert_int_equal(hear(server, fd, is[i].heard ? PATIENCE_MS : 50, &m), is[i].heard);
		assert_int_equal(accepted, is[i].heard);
		close(fd);
		capture_begin();
		sl_feroce_server_close(server);
		said = capture_end();
		assert_true(is[i].heard == !strstr(said, "1 datagrams from addresses"));
	}
}

static void garbage_is_counted_and_told_at_the_end(void **state)
{
	struct sl_feroce_server *server = open_with(PORT, "", "");
	const uint8_t bytes[100] = {0x0b}; /* no such request */
	struct sl_feroce_message m;
	const char *said;
	uint16_t port;
	int fd = device(0, &port);

	say(fd, PORT, bytes, 0);
	say(fd, PORT, bytes, 63);
	say(fd, PORT, bytes, 65);
	say(fd, PORT, bytes, 100);
	for (unsigned i = 0; i < 200; i++) /* more than one poll takes */
		say(fd, PORT, bytes, 64);
	ask_open(fd, port, PORT);
	assert_true(hear(server, fd, PATIENCE_MS, &m));
	close(fd);
	capture_begin();
	sl_feroce_server_close(server);
	said = capture_end();
	assert_non_null(strstr(said, "204 that are no messages"));
}

static void devices_to_be_asked_are_asked_and_heard(void **state)
{
	/* They need not be in the list as well. */
	struct sl_feroce_server *server = open_with(PORT, "10.0.0.1", "127.93.18.2");
	struct sl_feroce_message m, answer;
	uint8_t bytes[SL_FEROCE_BYTES];
	uint16_t port;
	int fd = device(SL_FEROCE_PORT, &port);

	assert_true(hear(server, fd, PATIENCE_MS, &m));
	assert_int_equal(m.request, SL_FEROCE_OPEN);
	assert_int_equal(m.port, PORT);
	answer = (struct sl_feroce_message){.info = true,
					    .request = SL_FEROCE_OPEN,
					    .answer = true,
					    .ack = SL_FEROCE_ACK,
					    .local = {.qpn = QPN, .ip = DEVICE},
					    .remote = m.local,
					    .port = SL_FEROCE_PORT};
	sl_feroce_encode(&answer, bytes);
	say(fd, m.port, bytes, sizeof(bytes));
	assert_false(hear(server, fd, 50, &m));
	assert_int_equal(sl_feroce_server_planned(server), 1);
	sl_feroce_server_close(server); /* it never began: the front end may have its queue back */
	assert_int_equal(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT), SL_FEROCE_BYTES);
	assert_int_equal(bytes[0], 0x09);
	close(fd);
}

/* When the next datagram arrived, by the kernel's clock. */
static uint64_t arrival_ns(struct sl_feroce_server *server, int fd)
{
	uint8_t bytes[SL_FEROCE_BYTES];
	_Alignas(struct cmsghdr) char control[64];
	struct iovec part = {bytes, sizeof(bytes)};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	struct timespec at;

	for (int ms = 0; ms < PATIENCE_MS && !poll(&poll_fd, 1, 1); ms++)
		sl_feroce_server_poll(server, sl_clock_ns());
	assert_int_equal(recvmsg(fd, &m, MSG_DONTWAIT), SL_FEROCE_BYTES);
	assert_non_null(CMSG_FIRSTHDR(&m));
	memcpy(&at, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(at));
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

static void requests_to_one_core_are_kept_apart(void **state)
{
	struct sl_feroce_server *server = open_with(PORT, "", "127.93.18.2, 127.93.18.2");
	uint64_t first, second;
	uint16_t port;
	int fd = device(SL_FEROCE_PORT, &port), on = 1;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)), 0);
	first = arrival_ns(server, fd);
	second = arrival_ns(server, fd);
	assert_true(second - first > 50000); /* a core needs 230 ns */
	close(fd);
	sl_feroce_server_close(server);
}

static void wrong_options_are_told(void **state)
{
	static const struct {
		const char *address, *allow, *open, *says;
		int err;
	} is[] = {
		{"nowhere", "", "", "feroce.address", -EINVAL},
		{"::1", "", "", "feroce.address", -EINVAL},
		{"0.0.0.0", "", "", "feroce.address", -EINVAL},
		{"10.255.255.254", "", "", "feroce.allow", -EPERM},
		{"127.0.0.1", "10.0.0.1/33", "", "feroce.allow", -EINVAL},
		{"127.0.0.1", "10.0.0.1/", "", "feroce.allow", -EINVAL},
		{"127.0.0.1", "10.0.0.1/24x", "", "feroce.allow", -EINVAL},
		{"127.0.0.1", "10.0.0.1/24", "", "feroce.allow", -EINVAL}, /* bits beyond */
		{"127.0.0.1", "10.0.0.0/8 somebody", "", "feroce.allow", -EINVAL},
		{"127.0.0.1", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "", "feroce.allow",
		 -EINVAL},
		{"127.0.0.1", "", "10.0.0.1/24", "feroce.open", -EINVAL},
		{"127.0.0.1", "", "10.0.0.1, 10.0.0.2, 10.0.0.3", "feroce.open", -EINVAL},
	};

	for (unsigned i = 0; i < sizeof(is) / sizeof(is[0]); i++) {
		struct sl_feroce_server_options options = {.address = is[i].address,
							   .port = PORT,
							   .allow = is[i].allow,
							   .open = is[i].open,
							   .host = {.modules = 2}};
		struct sl_feroce_server *server;
		const char *said;
		int err;

		capture_begin();
		err = sl_feroce_server_open(&options, &ops, NULL, &server);
		said = capture_end();
		assert_int_equal(err, is[i].err);
		if (!strstr(said, is[i].says))
			fail_msg("'%s' does not say '%s'", said, is[i].says);
	}
}

static void a_port_in_use_is_told(void **state)
{
	struct sl_feroce_server *server = open_with(PORT, "", ""), *second;
	struct sl_feroce_server_options options = {
		.address = address(), .port = PORT, .allow = "", .open = ""};
	const char *said;
	int err;

	capture_begin();
	err = sl_feroce_server_open(&options, &ops, NULL, &second);
	said = capture_end();
	assert_int_equal(err, -EADDRINUSE);
	assert_non_null(strstr(said, "feroce.port"));
	sl_feroce_server_close(server);
}

int main(void)
{
#define CASE(f) cmocka_unit_test(f)
	const struct CMUnitTest tests[] = {
		CASE(both_ports_are_heard_unless_one_is_named),
		CASE(only_listed_addresses_are_heard),
		CASE(garbage_is_counted_and_told_at_the_end),
		CASE(devices_to_be_asked_are_asked_and_heard),
		CASE(requests_to_one_core_are_kept_apart),
		CASE(wrong_options_are_told),
		CASE(a_port_in_use_is_told),
	};

	return cmocka_run_group_tests_name("feroce_server", tests, NULL, NULL);
}
