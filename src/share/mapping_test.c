/* mapping_test.c - views of a share's memory stay readable after a resize and behind the close, and
 * no mapping outlives its last owner. */
#include <errno.h>

#include "lib/share_rig.h"

/* How many mappings of memory of shares this process has. */
static unsigned mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[400];
	unsigned n = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, "memfd:sluice-share") != NULL;
	fclose(maps);
	return n;
}

static void peek(struct sl_follower *f, struct sl_follow_element *element)
{
	assert_int_equal(sl_follow_peek(f, SL_FOLLOW_EVERY, 2000, element), 0);
}

static void test_a_view_outlives_a_resize_and_the_close(void **state)
{
	struct sl_share *share = share_open("views", 2);
	struct sl_follower *f = follower_open("views");
	const struct sl_share_options options = share_options(4);
	struct sl_share_mapping *first, *second;
	struct sl_follow_element old, new;

	share_push(share, 0);
	peek(f, &old);
	first = sl_follow_hold_mapping(f);
	assert_int_equal(sl_share_resize(share, &options, NULL), 0);
	share_push(share, 1);
	assert_int_equal(sl_follow_peek(f, SL_FOLLOW_EVERY, 2000, &new), -ESTALE);
	peek(f, &new);
	second = sl_follow_hold_mapping(f);
	assert_ptr_not_equal(first, second);
	/* Nothing is written to memory of the former layout any more. */
	assert_true(share_is(&old, 0));
	assert_true(sl_share_mapping_is_valid(first, 0));
	assert_false(sl_share_mapping_is_valid(first, 1));
	assert_false(sl_share_mapping_is_valid(second, 0));
	sl_follow_close(f);
	assert_true(share_is(&new, 1));
	assert_true(sl_share_mapping_is_valid(second, 1));
	for (uint64_t n = 2; n < 6; n++)
		share_push(share, n);
	assert_false(sl_share_mapping_is_valid(second, 1)); /* overtaken */
	sl_share_close(share);
	assert_int_equal(mappings(), 2);
	assert_true(share_is(&old, 0));
	sl_share_mapping_release(first);
	assert_int_equal(mappings(), 1);
	sl_share_mapping_release(second);
	assert_int_equal(mappings(), 0);
	sl_share_mapping_release(NULL);
}

static void test_the_last_owner_unmaps(void **state)
{
	struct sl_share *share = share_open("owners", 2);
	struct sl_follower *f = follower_open("owners");
	struct sl_share_mapping *one = sl_follow_hold_mapping(f), *two = sl_follow_hold_mapping(f);

	assert_non_null(one);
	assert_ptr_equal(one, two);
	sl_share_close(share);
	assert_int_equal(mappings(), 1);
	sl_share_mapping_release(one);
	sl_follow_close(f);
	assert_int_equal(mappings(), 1);
	sl_share_mapping_release(two);
	assert_int_equal(mappings(), 0);

	/* The follower last. */
	share = share_open("owners", 2);
	f = follower_open("owners");
	sl_share_mapping_release(sl_follow_hold_mapping(f));
	share_push(share, 0);
	peek(f, &(struct sl_follow_element){0});
	sl_follow_close(f);
	assert_int_equal(mappings(), 1);
	sl_share_close(share);
	assert_int_equal(mappings(), 0);
}

static void test_memory_of_the_writer(void **state)
{
	struct sl_share *share = share_open("writer", 2);
	struct sl_share_mapping *mapping = sl_share_hold_mapping(share);
	uint32_t *image;

	share_push(share, 0);
	share_push(share, 1);
	sl_share_reserve(share);
	image = sl_share_at(share, 0);
	sl_share_close(share);
	image[0] = 77; /* written to nothing that anybody follows */
	assert_int_equal(image[0], 77);
	assert_false(sl_share_mapping_is_valid(mapping, 0));
	assert_true(sl_share_mapping_is_valid(mapping, 1));
	sl_share_mapping_release(mapping);
	assert_int_equal(mappings(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, share_setup, share_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_view_outlives_a_resize_and_the_close),
		TEST(test_the_last_owner_unmaps),
		TEST(test_memory_of_the_writer),
	};

	return cmocka_run_group_tests_name("mapping", tests, NULL, NULL);
}
