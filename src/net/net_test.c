/* net_test.c - addresses both ways, and sockets that show the class of what arrives. */
#include "net/net.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void good_addresses_go_there_and_back(void **state)
{
	static const char *const good[] = {"127.0.0.1", "10.77.0.2", "::1", "2001:db8::17"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		uint8_t gid[SL_NET_GID_BYTES], back[SL_NET_GID_BYTES];
		char text[SL_NET_TEXT_BYTES];
		union sl_net_address address;

		assert_int_equal(sl_net_parse("test", good[i], gid), 0);
		sl_net_format(gid, text);
		assert_string_equal(text, good[i]);
		sl_net_address(gid, 4791, &address);
		assert_int_equal(sl_net_gid(&address, back), 4791);
		assert_memory_equal(gid, back, sizeof(gid));
	}
}

static void what_is_not_one_interface_is_refused(void **state)
{
	static const char *const bad[] = {
		"",	     "localhost", "0.0.0.0", "::",	 "fe80::1",
		"224.0.0.1", "ff02::1",	  "10.0.0",  "1.2.3.4 ", "::ffff:0.0.0.0"};
	uint8_t gid[SL_NET_GID_BYTES] = {42};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(sl_net_parse("test", bad[i], gid), -EINVAL);
	assert_int_equal(gid[0], 42);
}

static void numbers_are_addresses_and_names_are_not(void **state)
{
	union sl_net_address address;

	(void)state;
	assert_int_equal(sl_net_numeric("0.0.0.0", 7, &address), sizeof(struct sockaddr_in));
	assert_false(sl_net_same_host(&address));
	assert_int_equal(sl_net_numeric("127.3.2.1", 7, &address), sizeof(struct sockaddr_in));
	assert_true(sl_net_same_host(&address));
	assert_int_equal(sl_net_numeric("::1", 7, &address), sizeof(struct sockaddr_in6));
	assert_true(sl_net_same_host(&address));
	assert_int_equal(sl_net_numeric("2001:db8::1", 7, &address), sizeof(struct sockaddr_in6));
	assert_false(sl_net_same_host(&address));
	assert_int_equal(sl_net_numeric("localhost", 7, &address), 0);
	assert_int_equal(sl_net_numeric("", 7, &address), 0);
}

/* One byte from one socket to another; the class that arrived with it. */
static int class_over(const char *ip, uint8_t class, bool by_message)
{
	uint8_t gid[SL_NET_GID_BYTES], byte = 7, control[SL_NET_CONTROL_BYTES];
	struct iovec iov = {&byte, 1};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	union sl_net_address to;
	struct pollfd ready;
	int from, at;

	assert_int_equal(sl_net_parse("test", ip, gid), 0);
	at = sl_net_open(gid, 0);
	if (at < 0)
		return at;
	from = sl_net_open(gid, 0);
	assert_true(from >= 0);
	assert_int_equal(sl_net_set_class(from, by_message ? 0 : class), 0);
	message.msg_namelen = sl_net_address(gid, sl_net_port(at), &to);
	message.msg_name = &to;
	if (by_message)
		assert_int_equal(sl_net_send(from, &message, class), 0);
	else
		assert_int_equal(sendmsg(from, &message, 0), 1);
	message.msg_name = NULL;
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	ready = (struct pollfd){.fd = at, .events = POLLIN};
	assert_int_equal(poll(&ready, 1, 10000), 1);
	assert_int_equal(recvmsg(at, &message, 0), 1);
	close(from);
	close(at);
	return sl_net_class(&message);
}

static void the_class_arrives(void **state)
{
	static const uint8_t class[] = {0, SL_NET_ECT0, 0x68 | SL_NET_ECN_CE, 0xc0};

	(void)state;
	for (size_t i = 0; i < sizeof(class); i++)
		for (int by_message = 0; by_message < 2; by_message++) {
			int v6 = class_over("::1", class[i], by_message);

			assert_int_equal(class_over("127.0.0.1", class[i], by_message), class[i]);
			if (v6 == -EADDRNOTAVAIL || v6 == -EAFNOSUPPORT)
				print_message("skipped: no IPv6 on this host\n");
			else
				assert_int_equal(v6, class[i]);
		}
}

static void a_taken_port_is_an_error(void **state)
{
	uint8_t gid[SL_NET_GID_BYTES];
	int fd;

	(void)state;
	assert_int_equal(sl_net_parse("test", "127.0.0.1", gid), 0);
	fd = sl_net_open(gid, 0);
	assert_true(fd >= 0);
	assert_int_equal(sl_net_open(gid, sl_net_port(fd)), -EADDRINUSE);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_addresses_go_there_and_back),
		cmocka_unit_test(what_is_not_one_interface_is_refused),
		cmocka_unit_test(numbers_are_addresses_and_names_are_not),
		cmocka_unit_test(the_class_arrives),
		cmocka_unit_test(a_taken_port_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
