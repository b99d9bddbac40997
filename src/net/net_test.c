/* net_test.c - addresses both ways, and sockets that show the class of what arrives. */
#include "net/net.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
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

static int option_of(int fd, int level, int name)
{
	int value = -1;
	socklen_t bytes = sizeof(value);

	assert_int_equal(getsockopt(fd, level, name, &value, &bytes), 0);
	return value;
}

/* No fragments, and no second address family on the port; without a UDP checksum over IPv6, too. */
static void sockets_are_prepared_for_roce(void **state)
{
	uint8_t gid[SL_NET_GID_BYTES];
	int fd;

	(void)state;
	assert_int_equal(sl_net_parse("test", "127.0.0.1", gid), 0);
	fd = sl_net_open(gid, 0);
	assert_true(fd >= 0);
	assert_int_equal(option_of(fd, IPPROTO_IP, IP_MTU_DISCOVER), IP_PMTUDISC_DO);
	assert_int_equal(option_of(fd, IPPROTO_IP, IP_RECVTOS), 1);
	close(fd);
	assert_int_equal(sl_net_parse("test", "::1", gid), 0);
	fd = sl_net_open(gid, 0);
	if (fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT) {
		print_message("# skip: no IPv6 on this host\n");
		skip();
	}
	assert_true(fd >= 0);
	assert_int_equal(option_of(fd, IPPROTO_IPV6, IPV6_V6ONLY), 1);
	assert_int_equal(option_of(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER), IPV6_PMTUDISC_DO);
	assert_int_equal(option_of(fd, IPPROTO_IPV6, IPV6_RECVTCLASS), 1);
	assert_int_equal(option_of(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX), 1);
	close(fd);
}

static void checksums_and_classes_are_set_on_sockets_of_both_families(void **state)
{
	static const struct {
		const char *address;
		int checksum_level, checksum, class_level, class;
	} families[] = {
		{"127.0.0.1", SOL_SOCKET, SO_NO_CHECK, IPPROTO_IP, IP_TOS},
		{"::1", IPPROTO_UDP, UDP_NO_CHECK6_TX, IPPROTO_IPV6, IPV6_TCLASS},
	};
	uint8_t gid[SL_NET_GID_BYTES];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		int fd;

		assert_int_equal(sl_net_parse("test", families[i].address, gid), 0);
		fd = sl_net_open(gid, 0);
		if (i && (fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT))
			continue; /* no IPv6 on this host */
		assert_true(fd >= 0);
		assert_int_equal(sl_net_leave_checksum(fd), 0);
		assert_int_equal(option_of(fd, families[i].checksum_level, families[i].checksum),
				 1);
		assert_int_equal(sl_net_set_class(fd, 0x48), 0);
		assert_int_equal(option_of(fd, families[i].class_level, families[i].class), 0x48);
		close(fd);
	}
	assert_int_equal(sl_net_leave_checksum(-1), -EBADF);
	assert_int_equal(sl_net_set_class(-1, 0), -EBADF);
	assert_int_equal(sl_net_port(-1), 0);
}

/* Every range of three parts, one of them empty. */
static void bytes_of_any_range_are_collected(void **state)
{
	char text[] = "abcdefgh", out[16];
	const struct iovec part[] = {{text, 3}, {text + 3, 0}, {text + 3, 1}, {text + 4, 4}};

	(void)state;
	for (size_t from = 0; from <= 8; from++)
		for (size_t bytes = 0; from + bytes <= 8; bytes++) {
			memset(out, '.', sizeof(out));
			sl_net_collect(part, 4, from, bytes, out + 1);
			assert_memory_equal(out + 1, text + from, bytes);
			assert_int_equal(out[0], '.');
			assert_int_equal(out[1 + bytes], '.');
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
		cmocka_unit_test(sockets_are_prepared_for_roce),
		cmocka_unit_test(checksums_and_classes_are_set_on_sockets_of_both_families),
		cmocka_unit_test(bytes_of_any_range_are_collected),
		cmocka_unit_test(a_taken_port_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
