/* follow_test.c - the newest element of a share, copied when it is asked for; shares that end and
 * come back, arrays that are wanted later, elements that are too large. */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/share_rig.h"
#include "service/image/follow.h"

#define SECOND UINT64_C(1000000000)

static struct sl_image_follow follow;

static int setup(void **state)
{
	return share_setup(state);
}

static void start(const char *name)
{
	assert_int_equal(sl_image_follow_start(&follow, eventfd(0, EFD_NONBLOCK)), 0);
	if (name)
		sl_image_follow_name(&follow, name);
}

static void stop(void)
{
	sl_image_follow_stop(&follow);
	close(follow.bell);
}

static void wait_for_bell(void)
{
	struct pollfd bell = {.fd = follow.bell, .events = POLLIN};
	uint64_t count;

	assert_true(poll(&bell, 1, 60000) > 0);
	assert_int_equal(read(follow.bell, &count, sizeof(count)), sizeof(count));
}

/* What is known once a look was answered. */
static struct sl_image_view look(void)
{
	uint64_t ticket = sl_image_follow_look(&follow, 0);
	struct sl_image_view view;

	for (;;) {
		sl_image_follow_view(&follow, &view);
		if (view.answered >= ticket)
			return view;
		sl_image_element_release(view.element);
		wait_for_bell();
	}
}

static uint64_t newest(void)
{
	struct sl_image_view view = look();
	uint64_t id;

	assert_non_null(view.element);
	id = view.element->id;
	sl_image_element_release(view.element);
	return id;
}

static void the_newest_element_is_copied_when_it_is_asked_for(void **state)
{
	struct sl_share *share = share_open("newest", 8);
	struct sl_image_view view;
	const uint32_t *image;

	start("share:newest");
	view = look();
	assert_null(view.element);
	assert_true(view.facts.known && !view.facts.over);
	for (uint64_t n = 0; n < 20; n++) {
		share_push(share, n);
		if (n % 3)
			continue;
		view = look();
		assert_non_null(view.element);
		assert_int_equal(view.element->id, n);
		assert_int_equal(view.element->element.note.number, 1000 + n);
		image = sl_image_element_array(view.element, 0);
		for (unsigned i = 0; i < SHARE_IMAGE; i++)
			assert_int_equal(image[i], n);
		assert_int_equal(view.facts.published, n + 1);
		sl_image_element_release(view.element);
	}
	assert_int_equal(newest(), 19);
	assert_int_equal(newest(), 19); /* nothing new: the same */
	stop();
	sl_share_close(share);
}

static void nothing_is_copied_for_nobody(void **state)
{
	struct sl_share *share = share_open("unseen", 8);
	struct sl_image_view view;

	start("share:unseen");
	share_push(share, 0);
	usleep(100000);
	sl_image_follow_view(&follow, &view);
	assert_null(view.element);
	sl_image_follow_look(&follow, sl_clock_ns() + 60 * SECOND); /* a viewer who stays */
	for (uint64_t n = 1; n < 4; n++) {
		uint64_t id = UINT64_MAX;

		while (id != n - 1) {
			wait_for_bell();
			sl_image_follow_view(&follow, &view);
			id = view.element ? view.element->id : UINT64_MAX;
			sl_image_element_release(view.element);
		}
		share_push(share, n);
	}
	stop();
	sl_share_close(share);
}

static void ids_rise_from_run_to_run(void **state)
{
	struct sl_share *share;
	struct sl_image_view view;
	uint64_t last = 0;

	start("share:again");
	for (int run = 0; run < 4; run++) {
		share = share_open("again", 8);
		for (uint64_t n = 0; n < (run == 2 ? 30 : 3); n++)
			share_push(share, n);
		view = look();
		assert_non_null(view.element);
		assert_false(view.facts.over);
		assert_int_equal(view.element->element.n, run == 2 ? 29 : 2);
		assert_true(!run || view.element->id > last);
		last = view.element->id;
		sl_image_element_release(view.element);
		if (run == 3)
			share_push(share, 3); /* that is seen after the end */
		sl_share_close(share);
		if (run == 3)
			assert_int_equal(newest(), last + 1);
		view = look();
		assert_true(view.facts.over);
		assert_int_equal(view.element->id, last + (run == 3));
		sl_image_element_release(view.element);
		/* The share's socket is looked for at most five times a second. */
		usleep(250000);
	}
	stop();
}

static void another_name_is_another_share(void **state)
{
	struct sl_share *one = share_open("one", 4), *two = share_open("two", 4);
	struct sl_image_view view;

	share_push(one, 0);
	for (uint64_t n = 0; n < 5; n++)
		share_push(two, n);
	start(NULL);
	sl_image_follow_look(&follow, 0);
	usleep(50000);
	sl_image_follow_view(&follow, &view);
	assert_int_equal(view.answered, 0); /* it does not know where to look */
	sl_image_follow_name(&follow, "share:one");
	view = look();
	assert_string_equal(view.element->description.name, "one");
	sl_image_element_release(view.element);
	sl_image_follow_name(&follow, "share:two");
	view = look();
	assert_string_equal(view.element->description.name, "two");
	assert_int_equal(view.element->element.n, 4);
	sl_image_element_release(view.element);
	sl_image_follow_name(&follow, "share:none");
	view = look(); /* the last image stays */
	assert_string_equal(view.element->description.name, "two");
	sl_image_element_release(view.element);
	stop();
	sl_share_close(one);
	sl_share_close(two);
}

/* More than "small", so that it must be asked for. */
static const struct sl_share_array large[] = {
	{.name = "image", .type = "<u4", .rank = 2, .dim = {16, 16}},
	{.name = "other", .type = "<u4", .rank = 2, .dim = {1024, 1024}},
};

static void arrays_are_copied_once_they_are_wanted(void **state)
{
	const struct sl_share_options options = {
		.bytes = sizeof(options), .arrays = 2, .array = large, .count = 4};
	struct sl_share *share = NULL;
	struct sl_image_view view;
	const uint32_t *other;

	assert_int_equal(sl_share_open("large", &options, &share, NULL), 0);
	sl_share_reserve(share);
	memset(sl_share_at(share, 1), 0x11, 1024 * 1024 * 4);
	sl_share_commit(share);
	start("share:large");
	view = look();
	assert_int_equal(view.element->held, 1);
	sl_image_element_release(view.element);
	sl_share_close(share); /* what was published can still be had */
	sl_image_follow_want(&follow, 1);
	for (uint64_t held = 0; held != 3;) {
		wait_for_bell();
		sl_image_follow_view(&follow, &view);
		held = view.element->held;
		sl_image_element_release(view.element);
	}
	view = look();
	other = sl_image_element_array(view.element, 1);
	assert_true(other[0] == 0x11111111 && other[1024 * 1024 - 1] == 0x11111111);
	assert_int_equal(view.element->id, 0);
	sl_image_element_release(view.element);
	stop();
}

static void viewers_that_hold_all_copies_keep_no_one_waiting_for_long(void **state)
{
	struct sl_share *share = share_open("held", 8);
	struct sl_image_view held[SL_IMAGE_ELEMENTS];
	struct sl_image_view view;

	start("share:held");
	for (uint64_t n = 0; n < SL_IMAGE_ELEMENTS; n++) {
		share_push(share, n);
		held[n] = look();
		assert_int_equal(held[n].element->id, n);
	}
	share_push(share, SL_IMAGE_ELEMENTS);
	sl_image_follow_look(&follow, 0);
	usleep(100000); /* no copy is free, and none is made */
	sl_image_follow_view(&follow, &view);
	assert_int_equal(view.element->id, SL_IMAGE_ELEMENTS - 1);
	sl_image_element_release(view.element);
	sl_image_element_release(held[0].element);
	share_push(share, SL_IMAGE_ELEMENTS + 1);
	assert_int_equal(newest(), SL_IMAGE_ELEMENTS + 1);
	for (int i = 1; i < SL_IMAGE_ELEMENTS; i++)
		sl_image_element_release(held[i].element);
	stop();
	sl_share_close(share);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_newest_element_is_copied_when_it_is_asked_for),
		cmocka_unit_test(nothing_is_copied_for_nobody),
		cmocka_unit_test(ids_rise_from_run_to_run),
		cmocka_unit_test(another_name_is_another_share),
		cmocka_unit_test(arrays_are_copied_once_they_are_wanted),
		cmocka_unit_test(viewers_that_hold_all_copies_keep_no_one_waiting_for_long),
	};

	return cmocka_run_group_tests_name("follow", tests, setup, share_teardown);
}
