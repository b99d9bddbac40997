/* state_test.c - a handover state survives being a message, and nothing less passes for one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/handover/state.h"

static uint64_t seed;

static uint64_t any(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return seed ^ seed >> 29;
}

/* Numbers stand for descriptors: nobody uses them. Every third module has none. */
static void any_state(struct sl_handover *e, uint32_t modules)
{
	int fd = 1000;

	sl_handover_init(e);
	memcpy(e->link, "udp", 4);
	e->experiment = any();
	e->slots = (uint32_t)any();
	e->modules = modules;
	e->region_bytes = any();
	e->host = any();
	e->region = fd++;
	e->notes = fd++;
	e->link_fd = fd++;
	for (uint32_t m = 0; m < modules; m++) {
		struct sl_handover_transfer *t = &e->transfer[m];

		t->offer.module = t->plan.module = (uint16_t)m;
		t->offer.frames = any();
		t->offer.first_frame = any();
		t->offer.credit_va = any();
		t->offer.psn_plus_1 = (uint32_t)any();
		t->offer.darks.first = t->plan.darks.first = any();
		t->offer.darks.every = t->plan.darks.every = (uint32_t)any();
		t->offer.darks.phase = t->plan.darks.phase = (uint32_t)any();
		t->offer.darks.step = t->plan.darks.step = (uint32_t)any();
		t->plan.transfer = (uint16_t)(any() % SL_LINK_TRANSFERS);
		t->plan.first_sequence = any();
		t->plan.rkey = (uint32_t)any();
		t->plan.qpn = (uint32_t)any() & 0xffffff;
		t->plan.base = any();
		t->plan.block_bytes = any();
		t->plan.line_pitch = any();
		t->fd = m % 3 == 2 ? -1 : fd++;
	}
}

static struct sl_handover_message message, copy;
static struct sl_handover out, in;

static void a_state_comes_back_as_it_was(void **state)
{
	for (uint32_t modules = 0; modules <= SL_HANDOVER_MODULES; modules++) {
		any_state(&out, modules);
		assert_int_equal(sl_handover_encode(&out, &message), 0);
		assert_int_equal(sl_handover_decode(&message, &in), 0);
		assert_memory_equal(&in, &out, sizeof(out));
		assert_int_equal(message.fds, 0); /* they have moved */
	}
}

static void too_much_is_not_encoded(void **state)
{
	any_state(&out, 3);
	out.modules = SL_HANDOVER_MODULES + 1;
	assert_int_equal(sl_handover_encode(&out, &message), -EINVAL);
	any_state(&out, 3);
	out.link_fd = -1;
	assert_int_equal(sl_handover_encode(&out, &message), -EINVAL);
}

static void expect_refused(int err)
{
	unsigned fds = copy.fds;

	assert_int_equal(sl_handover_decode(&copy, &in), err);
	assert_int_equal(copy.fds, fds); /* still the message's */
	assert_int_equal(in.region, -1);
	assert_int_equal(in.transfer[0].fd, -1);
}

static void a_state_that_is_shorter_or_longer_is_refused(void **state)
{
	any_state(&out, 4);
	assert_int_equal(sl_handover_encode(&out, &message), 0);
	for (size_t n = 0; n < message.bytes; n++) {
		copy = message;
		copy.bytes = n;
		expect_refused(-EPROTO);
	}
	copy = message;
	copy.bytes++;
	expect_refused(-EPROTO);
}

static void descriptors_must_be_as_many_as_it_says(void **state)
{
	any_state(&out, 4);
	assert_int_equal(sl_handover_encode(&out, &message), 0);
	for (unsigned fds = 0; fds < SL_HANDOVER_MESSAGE_FDS; fds++) {
		if (fds == message.fds)
			continue;
		copy = message;
		copy.fds = fds;
		expect_refused(-EPROTO);
	}
}

static void another_version_is_told_apart(void **state)
{
	any_state(&out, 2);
	assert_int_equal(sl_handover_encode(&out, &message), 0);
	for (unsigned at = 0; at < 8; at += 4) {
		copy = message;
		copy.body[at]++;
		expect_refused(-EPROTONOSUPPORT);
	}
}

static void modules_must_be_in_their_place(void **state)
{
	any_state(&out, 2);
	out.transfer[1].offer.module = 0;
	assert_int_equal(sl_handover_encode(&out, &copy), 0);
	expect_refused(-EPROTO);
	any_state(&out, 2);
	out.transfer[1].plan.module = 0;
	assert_int_equal(sl_handover_encode(&out, &copy), 0);
	expect_refused(-EPROTO);
	any_state(&out, 2);
	out.transfer[0].plan.transfer = SL_LINK_TRANSFERS;
	assert_int_equal(sl_handover_encode(&out, &copy), 0);
	expect_refused(-EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_state_comes_back_as_it_was),
		cmocka_unit_test(too_much_is_not_encoded),
		cmocka_unit_test(a_state_that_is_shorter_or_longer_is_refused),
		cmocka_unit_test(descriptors_must_be_as_many_as_it_says),
		cmocka_unit_test(another_version_is_told_apart),
		cmocka_unit_test(modules_must_be_in_their_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
