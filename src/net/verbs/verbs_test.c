/* verbs_test.c - NICs, memory and queues through a libibverbs without hardware. */
#include "net/verbs/verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/capture.h"
#include "lib/fake_verbs.h"

enum { ROOM = 64, BYTES = 3000, PMTU = 1024 };

static const uint8_t *gid(const char *text)
{
	static uint8_t g[SL_VERBS_GID_BYTES];

	memset(g, 0, 10);
	memset(g + 10, 0xff, 2);
	if (inet_pton(AF_INET, text, g + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, text, g), 1);
	return g;
}

static struct sl_verbs_nic *open_at(const char *address)
{
	struct sl_verbs_nic *nic;

	assert_int_equal(sl_verbs_open("", address ? gid(address) : NULL, ROOM, &nic), 0);
	return nic;
}

static int with_devices(void **state)
{
	fake_verbs_add("fake0", "fe80::1"); /* every interface has one; it is of no use */
	fake_verbs_add("fake0", "fd77::2");
	fake_verbs_add("fake0", "192.0.2.1");
	fake_verbs_add("fake1", "198.51.100.1");
	return 0;
}

/* What was opened has been closed, also where opening failed half-way. */
static int without_devices(void **state)
{
	assert_int_equal(fake_verbs_objects(), 0);
	fake_verbs_forget();
	return 0;
}

static void a_device_is_found_by_its_address(void **state)
{
	static const struct {
		const char *address, *name;
		unsigned index; /* each address is there twice: RoCE v1, then v2 */
	} cases[] = {
		{"192.0.2.1", "fake0", 5}, {"fd77::2", "fake0", 3}, {"198.51.100.1", "fake1", 1}};

	assert_null(sl_verbs_unavailable());
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sl_verbs_nic *nic = open_at(cases[i].address);
		const struct sl_verbs_info *info = sl_verbs_info(nic);

		assert_string_equal(info->name, cases[i].name);
		assert_int_equal(info->gid_index, cases[i].index);
		assert_memory_equal(info->gid, gid(cases[i].address), SL_VERBS_GID_BYTES);
		assert_true(info->active);
		assert_int_equal(info->pmtu, 4096);
		sl_verbs_close(nic);
	}
}

/* A port may name an MTU that this program does not know. */
static void an_unknown_mtu_is_none(void **state)
{
	struct sl_verbs_nic *nic;

	fake_verbs_set_mtu("fake0", 8192);
	nic = open_at("192.0.2.1");
	assert_int_equal(sl_verbs_info(nic)->pmtu, 0);
	sl_verbs_close(nic);
	fake_verbs_set_mtu("fake0", 256);
	nic = open_at("192.0.2.1");
	assert_int_equal(sl_verbs_info(nic)->pmtu, 256);
	sl_verbs_close(nic);
}

static void without_an_address_the_first_is_taken_ipv4_before_ipv6(void **state)
{
	struct sl_verbs_nic *nic = open_at(NULL);

	assert_memory_equal(sl_verbs_info(nic)->gid, gid("192.0.2.1"), SL_VERBS_GID_BYTES);
	sl_verbs_close(nic);
	fake_verbs_forget();
	fake_verbs_add("fake0", "fe80::1");
	fake_verbs_add("fake0", "fd77::2");
	nic = open_at(NULL);
	assert_memory_equal(sl_verbs_info(nic)->gid, gid("fd77::2"), SL_VERBS_GID_BYTES);
	sl_verbs_close(nic);
}

static void what_is_not_there_is_said_with_what_is(void **state)
{
	struct sl_verbs_nic *nic = NULL;
	const char *text;

	capture_begin();
	assert_int_equal(sl_verbs_open("", gid("203.0.113.9"), ROOM, &nic), -ENODEV);
	assert_int_equal(sl_verbs_open("fake1", gid("192.0.2.1"), ROOM, &nic), -ENODEV);
	assert_int_equal(sl_verbs_open("", gid("fe80::1"), ROOM, &nic), -ENODEV);
	text = capture_end();
	assert_non_null(strstr(text, "203.0.113.9"));
	assert_non_null(strstr(text, "fake0 192.0.2.1"));
	assert_non_null(strstr(text, "called fake1"));
	assert_null(nic);
	assert_int_equal(sl_verbs_open("fake1,fake0", gid("192.0.2.1"), ROOM, &nic), 0);
	sl_verbs_close(nic);
	capture_begin();
	fake_verbs_fail("ibv_open_device", EACCES);
	assert_int_equal(sl_verbs_open("fake1", gid("198.51.100.1"), ROOM, &nic), -ENODEV);
	text = capture_end();
	assert_non_null(strstr(text, "fake1 which cannot be opened"));
	fake_verbs_forget();
	capture_begin();
	assert_int_equal(sl_verbs_open("", NULL, ROOM, &nic), -ENODEV);
	text = capture_end();
	assert_non_null(strstr(text, "no RDMA NIC at all"));
}

static void a_port_that_is_down_is_said_to_be(void **state)
{
	struct sl_verbs_nic *nic = NULL;
	const char *text;

	fake_verbs_set_active("fake0", false);
	capture_begin();
	assert_int_equal(sl_verbs_open("", gid("192.0.2.1"), ROOM, &nic), -ENETDOWN);
	text = capture_end();
	assert_non_null(strstr(text, "is down"));
	assert_int_equal(sl_verbs_open("", NULL, ROOM, &nic), 0); /* the one that is up */
	assert_string_equal(sl_verbs_info(nic)->name, "fake1");
	sl_verbs_close(nic);
}

static void opening_that_fails_leaves_nothing_open(void **state)
{
	static const char *const calls[] = {"ibv_alloc_pd", "ibv_create_comp_channel",
					    "ibv_create_cq", "ibv_get_device_list"};
	struct sl_verbs_nic *nic = NULL;

	capture_begin();
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		fake_verbs_fail(calls[i], ENOMEM);
		assert_int_not_equal(sl_verbs_open("", gid("198.51.100.1"), ROOM, &nic), 0);
		assert_int_equal(fake_verbs_objects(), 0);
	}
	assert_int_equal(sl_verbs_open("", NULL, 1u << 20, &nic), -ENOSPC);
	capture_end();
	assert_null(nic);
}

static void count_address(void *arg, const struct sl_verbs_info *info)
{
	static const uint8_t none[SL_VERBS_GID_BYTES];
	unsigned *counts = arg;

	counts[memcmp(info->gid, none, sizeof(none)) != 0]++;
}

static void a_survey_tells_of_addresses_and_of_devices_without(void **state)
{
	unsigned counts[2] = {0};

	fake_verbs_add("bare0", "fe80::7");
	assert_int_equal(sl_verbs_survey(count_address, counts), 4);
	assert_int_equal(counts[0], 1);
	assert_int_equal(counts[1], 3);
}

static void ports_that_come_and_go_are_told_of(void **state)
{
	struct sl_verbs_nic *nic = open_at("192.0.2.1");
	const char *text;

	assert_int_equal(sl_verbs_serve(nic), 0);
	fake_verbs_set_active("fake0", false);
	fake_verbs_set_active("fake0", true);
	capture_begin();
	assert_int_equal(sl_verbs_serve(nic), 0);
	text = capture_end();
	assert_non_null(strstr(text, "went down"));
	assert_non_null(strstr(text, "up again"));
	sl_verbs_close(nic);
}

/* ---- memory ---- */

static void memory_of_any_kind_is_registered(void **state)
{
	struct sl_verbs_nic *nic = open_at("192.0.2.1");
	const uint64_t at = UINT64_C(0x12345) << 24;
	struct sl_verbs_memory memory[3] = {0};
	struct sl_region region[3];

	assert_int_equal(sl_region_open(SL_REGION_HOST, 4 << 20, &region[0]), 0);
	assert_int_equal(sl_region_open(SL_REGION_SHARED, 1 << 20, &region[1]), 0);
	region[2] = (struct sl_region){
		.kind = SL_REGION_DEVICE, .bytes = 1 << 20, .fd = memfd_create("device", 0)};
	assert_int_equal(ftruncate(region[2].fd, 1 << 20), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(sl_verbs_register(nic, &region[i], 0, region[i].bytes, at,
						   SL_VERBS_REMOTE_WRITE, &memory[i]),
				 0);
		assert_int_equal(memory[i].at, at);
		assert_int_not_equal(memory[i].rkey, 0);
	}
	for (unsigned i = 0; i < 3; i++) {
		sl_verbs_unregister(&memory[i]);
		sl_verbs_unregister(&memory[i]); /* once is enough, twice does no harm */
		sl_region_close(&region[i]);
	}
	sl_verbs_close(nic);
}

static void memory_that_is_refused_says_why(void **state)
{
	struct sl_verbs_nic *nic = open_at("192.0.2.1");
	struct sl_region region, gone = {.kind = SL_REGION_DEVICE, .bytes = 1 << 20, .fd = -1};
	struct sl_verbs_memory memory = {0};
	const char *text;

	assert_int_equal(sl_region_open(SL_REGION_HOST, 1 << 20, &region), 0);
	capture_begin();
	fake_verbs_fail("ibv_reg_mr_iova", ENOMEM);
	assert_int_equal(
		sl_verbs_register(nic, &region, 0, 1 << 20, 1 << 20, SL_VERBS_LOCAL, &memory),
		-ENOMEM);
	assert_int_equal(
		sl_verbs_register(nic, &gone, 0, 1 << 20, 1 << 20, SL_VERBS_LOCAL, &memory),
		-EBADF);
	text = capture_end();
	assert_non_null(strstr(text, "memlock unlimited"));
	assert_non_null(strstr(text, "dma-buf"));
	assert_int_equal(
		sl_verbs_register(nic, &region, 4096, 1 << 20, 1 << 20, SL_VERBS_LOCAL, &memory),
		-EINVAL); /* beyond its end */
	assert_null(memory.handle);
	sl_region_close(&region);
	sl_verbs_close(nic);
}

/* ---- queues ---- */

struct pair { /* two NICs with a queue each, connected, and a region that both may use */
	struct sl_verbs_nic *nic[2];
	struct sl_verbs_queue *queue[2];
	struct sl_verbs_memory memory[2];
	struct sl_region region[2];
};

static struct sl_verbs_path path_to(const struct pair *p, unsigned other, uint8_t rnr_retry)
{
	struct sl_verbs_path path = {
		.peer_qpn = sl_verbs_queue_number(p->queue[other]),
		.receive_psn = 0xfffff0 + other,
		.send_psn = 0xfffff1 - other,
		.pmtu = PMTU,
		.timeout = 14,
		.retry = 6,
		.rnr_retry = rnr_retry,
		.min_rnr_timer = 12,
		.reads = 8,
	};

	memcpy(path.peer, sl_verbs_info(p->nic[other])->gid, sizeof(path.peer));
	return path;
}

/* Memory and queues for what the other side may do. */
static struct pair *pair_open_for(bool reliable, uint8_t rnr_retry, enum sl_verbs_access access)
{
	static const char *const address[] = {"192.0.2.1", "198.51.100.1"};
	struct pair *p = calloc(1, sizeof(*p));

	for (unsigned i = 0; i < 2; i++) {
		p->nic[i] = open_at(address[i]);
		assert_int_equal(
			sl_verbs_queue_open(p->nic[i], reliable, 8, 8, access, &p->queue[i]), 0);
		assert_int_equal(sl_region_open(SL_REGION_HOST, 2 * BYTES, &p->region[i]), 0);
		assert_int_equal(sl_verbs_register(p->nic[i], &p->region[i], 0, 2 * BYTES,
						   (uintptr_t)p->region[i].base,
						   i ? access : SL_VERBS_LOCAL, &p->memory[i]),
				 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct sl_verbs_path path = path_to(p, !i, rnr_retry);

		assert_int_equal(sl_verbs_queue_connect(p->queue[i], &path), 0);
	}
	for (unsigned i = 0; i < BYTES; i++)
		((uint8_t *)p->region[0].base)[i] = (uint8_t)(i * 7 + i / 256);
	return p;
}

static struct pair *pair_open(bool reliable, uint8_t rnr_retry)
{
	return pair_open_for(reliable, rnr_retry, SL_VERBS_REMOTE_WRITE);
}

static void pair_close(struct pair *p)
{
	for (unsigned i = 0; i < 2; i++) {
		sl_verbs_queue_close(p->queue[i]);
		sl_verbs_unregister(&p->memory[i]);
		sl_region_close(&p->region[i]);
		sl_verbs_close(p->nic[i]);
	}
	free(p);
}

static struct sl_verbs_send message(const struct pair *p, uint32_t flags)
{
	return (struct sl_verbs_send){
		.id = 77,
		.local = p->memory[0].at,
		.lkey = p->memory[0].lkey,
		.remote = p->memory[1].at,
		.rkey = p->memory[1].rkey,
		.bytes = BYTES,
		.immediate = 0x11223344,
		.flags = flags | SL_VERBS_SIGNAL,
	};
}

/* The status of the one completion that is there; *c is all of it. */
static int status_at(struct pair *p, unsigned end, struct sl_verbs_completion *c)
{
	for (int tries = 0; tries < 10; tries++)
		if (sl_verbs_poll(p->nic[end], c, 1) == 1)
			return c->status;
	return 1;
}

static void messages_arrive_and_complete(void **state)
{
	for (unsigned i = 0; i < 8; i++) {
		struct pair *p = pair_open(i & 1, 7);
		uint32_t flags = (i & 2 ? SL_VERBS_IMMEDIATE : 0u) | (i & 4 ? SL_VERBS_SEND : 0u);
		struct sl_verbs_send send = message(p, flags);
		struct sl_verbs_completion c;

		assert_int_equal(sl_verbs_post_receive(p->queue[1], 5, p->memory[1].at, BYTES,
						       p->memory[1].lkey),
				 0);
		assert_int_equal(sl_verbs_post_send(p->queue[0], &send), 0);
		assert_int_equal(status_at(p, 0, &c), 0);
		assert_int_equal(c.id, 77);
		assert_false(c.received);
		assert_memory_equal(p->region[0].base, p->region[1].base, BYTES);
		if (flags) {
			assert_int_equal(status_at(p, 1, &c), 0);
			assert_int_equal(c.id, 5);
			assert_true(c.received);
			assert_int_equal(c.bytes, BYTES);
			assert_int_equal(c.has_immediate, (flags & SL_VERBS_IMMEDIATE) != 0);
		} else
			assert_int_equal(status_at(p, 1, &c), 1);
		if (flags & SL_VERBS_IMMEDIATE)
			assert_int_equal(c.immediate, 0x11223344);
		pair_close(p);
	}
}

static void memory_is_read(void **state)
{
	struct pair *p = pair_open_for(true, 7, SL_VERBS_REMOTE_READ);
	struct sl_verbs_send read = message(p, SL_VERBS_READ);
	struct sl_verbs_completion c;

	assert_int_equal(sl_verbs_info(p->nic[0])->max_reads, 8);
	memset(p->region[1].base, 0x5a, BYTES);
	assert_int_equal(sl_verbs_post_send(p->queue[0], &read), 0);
	assert_int_equal(status_at(p, 0, &c), 0);
	assert_int_equal(c.id, 77);
	assert_memory_equal(p->region[0].base, p->region[1].base, BYTES);
	pair_close(p);
}

/* What may be read cannot be written, and the other way around. */
static void what_may_be_read_is_not_written(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		struct pair *p =
			pair_open_for(true, 7, i ? SL_VERBS_REMOTE_WRITE : SL_VERBS_REMOTE_READ);
		struct sl_verbs_send send = message(p, i ? SL_VERBS_READ : 0);
		struct sl_verbs_completion c;

		memset(p->region[1].base, 0x5a, BYTES);
		assert_int_equal(sl_verbs_post_send(p->queue[0], &send), 0);
		assert_int_equal(status_at(p, 0, &c), -EACCES);
		assert_int_equal(((uint8_t *)p->region[1].base)[0], 0x5a);
		assert_int_equal(((uint8_t *)p->region[0].base)[0], 0);
		pair_close(p);
	}
}

static void inline_data_is_taken_at_once(void **state)
{
	struct pair *p = pair_open(true, 7);
	struct sl_verbs_send send = message(p, SL_VERBS_INLINE);
	uint64_t word = UINT64_C(0x0123456789abcdef), got;
	struct sl_verbs_completion c;

	send.local = (uintptr_t)&word;
	send.lkey = 0;
	send.bytes = sizeof(word);
	assert_int_equal(sl_verbs_post_send(p->queue[0], &send), 0);
	word = 0;
	assert_int_equal(status_at(p, 0, &c), 0);
	memcpy(&got, p->region[1].base, sizeof(got));
	assert_true(got == UINT64_C(0x0123456789abcdef));
	pair_close(p);
}

static void failures_have_names(void **state)
{
	struct pair *p = pair_open(true, 0);
	struct sl_verbs_send send = message(p, SL_VERBS_IMMEDIATE);
	struct sl_verbs_completion c;

	assert_int_equal(sl_verbs_post_send(p->queue[0], &send), 0); /* no receive is posted */
	assert_int_equal(status_at(p, 0, &c), -ENOBUFS);
	assert_int_equal(sl_verbs_post_send(p->queue[0], &send), 0); /* the queue has failed */
	assert_int_equal(status_at(p, 0, &c), -ECANCELED);
	pair_close(p);

	p = pair_open(true, 7);
	send = message(p, 0);
	send.rkey ^= 1;
	assert_int_equal(sl_verbs_post_send(p->queue[0], &send), 0);
	assert_int_equal(status_at(p, 0, &c), -EACCES);
	assert_int_equal(sl_verbs_serve(p->nic[1]), 1); /* the other end says so, too */
	pair_close(p);

	p = pair_open(true, 7);
	send = message(p, SL_VERBS_SEND);
	sl_verbs_post_receive(p->queue[1], 0, p->memory[1].at, 100, p->memory[1].lkey);
	assert_int_equal(sl_verbs_post_send(p->queue[0], &send), 0);
	assert_int_equal(status_at(p, 0, &c), -EPROTO);
	assert_int_equal(status_at(p, 1, &c), -ECANCELED);
	pair_close(p);

	p = pair_open(true, 7);
	send = message(p, 0);
	sl_verbs_queue_reset(p->queue[1]); /* nobody answers any more */
	assert_int_equal(sl_verbs_post_send(p->queue[0], &send), 0);
	assert_int_equal(status_at(p, 0, &c), -ETIMEDOUT);
	pair_close(p);
}

static void a_full_queue_says_so(void **state)
{
	struct pair *p = pair_open(true, 7);
	struct sl_verbs_send send = message(p, SL_VERBS_SEND);
	struct sl_verbs_completion c;

	for (int i = 0; i < 8; i++) /* they wait for a receive */
		assert_int_equal(sl_verbs_post_send(p->queue[0], &send), 0);
	assert_int_equal(sl_verbs_post_send(p->queue[0], &send), -ENOMEM);
	assert_int_equal(
		sl_verbs_post_receive(p->queue[1], 0, p->memory[1].at, BYTES, p->memory[1].lkey),
		0);
	assert_int_equal(status_at(p, 0, &c), 0);
	assert_int_equal(sl_verbs_post_send(p->queue[0], &send), 0);
	pair_close(p);
}

static bool readable(const struct sl_verbs_nic *nic)
{
	struct pollfd fd = {.fd = sl_verbs_fd(nic), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static void the_channel_wakes_once_per_arming(void **state)
{
	struct pair *p = pair_open(false, 0);
	struct sl_verbs_send send = message(p, SL_VERBS_IMMEDIATE);

	for (int i = 0; i < 4; i++)
		sl_verbs_post_receive(p->queue[1], 0, 0, 0, 0);
	assert_int_equal(sl_verbs_post_send(p->queue[0], &send), 0);
	assert_false(readable(p->nic[1])); /* nobody asked */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sl_verbs_arm(p->nic[1]), 0);
		assert_false(readable(p->nic[1])); /* what was there before does not count */
		assert_int_equal(sl_verbs_post_send(p->queue[0], &send), 0);
		assert_true(readable(p->nic[1]));
		sl_verbs_drain(p->nic[1]);
		assert_false(readable(p->nic[1]));
	}
	pair_close(p); /* and closing does not wait for acknowledgements */
}

static void connections_that_cannot_be_say_what_to_do(void **state)
{
	struct pair *p = pair_open(true, 7);
	struct sl_verbs_path path = path_to(p, 1, 7);
	struct sl_verbs_queue *queue;
	const char *text;

	assert_int_equal(sl_verbs_queue_open(p->nic[0], true, 8, 8, SL_VERBS_REMOTE_WRITE, &queue),
			 0);
	capture_begin();
	fake_verbs_fail("ibv_modify_qp", ETIMEDOUT);
	assert_int_equal(sl_verbs_queue_connect(queue, &path), -ETIMEDOUT);
	text = capture_end();
	assert_non_null(strstr(text, "ip neigh"));
	sl_verbs_queue_close(queue);
	capture_begin();
	queue = NULL;
	assert_int_equal(
		sl_verbs_queue_open(p->nic[0], true, 8, 100000, SL_VERBS_REMOTE_WRITE, &queue),
		-ENOMEM);
	fake_verbs_fail("ibv_modify_qp", EINVAL);
	assert_int_equal(sl_verbs_queue_open(p->nic[0], true, 8, 8, SL_VERBS_REMOTE_WRITE, &queue),
			 -EINVAL);
	text = capture_end();
	assert_non_null(strstr(text, "100000 receives"));
	assert_null(queue);
	pair_close(p);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, with_devices, without_devices)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_device_is_found_by_its_address),
		CASE(an_unknown_mtu_is_none),
		CASE(without_an_address_the_first_is_taken_ipv4_before_ipv6),
		CASE(what_is_not_there_is_said_with_what_is),
		CASE(a_port_that_is_down_is_said_to_be),
		CASE(opening_that_fails_leaves_nothing_open),
		CASE(a_survey_tells_of_addresses_and_of_devices_without),
		CASE(ports_that_come_and_go_are_told_of),
		CASE(memory_of_any_kind_is_registered),
		CASE(memory_that_is_refused_says_why),
		CASE(messages_arrive_and_complete),
		CASE(memory_is_read),
		CASE(what_may_be_read_is_not_written),
		CASE(inline_data_is_taken_at_once),
		CASE(failures_have_names),
		CASE(a_full_queue_says_so),
		CASE(the_channel_wakes_once_per_arming),
		CASE(connections_that_cannot_be_say_what_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
