/* layout_test.c - a share's header: what is planned passes its check, what lies does not. */
#include <errno.h>

#include "lib/share_rig.h"
#include "share/layout.h"

static char why[200];

static struct sl_share_header planned(uint64_t count)
{
	const struct sl_share_options options = share_options(count);
	struct sl_share_header header;

	if (sl_share_plan("name", &options, &header, why, sizeof(why)))
		fail_msg("%s", why);
	return header;
}

static int check(const struct sl_share_header *header)
{
	return sl_share_check(header, header->region_bytes, 0, why, sizeof(why));
}

static void test_plans_pass(void **state)
{
	for (uint64_t count = 1; count < 70; count++) {
		const struct sl_share_header header = planned(count);

		assert_int_equal(check(&header), 0);
		assert_int_equal(header.array[0].offset, 0);
		assert_int_equal(header.array[0].bytes, 1600);
		assert_int_equal(header.array[1].offset % 64, 0);
		assert_true(header.array[1].offset >= 1600);
		assert_true(header.data_offset >= 4096 + count * 256);
		assert_true(header.region_bytes >= header.data_offset + count * header.stride);
		assert_true(header.stride >= header.data_bytes);
	}
}

static void plan_fails(struct sl_share_options options, const char *word)
{
	struct sl_share_header header;

	assert_int_equal(sl_share_plan("name", &options, &header, why, sizeof(why)), -EINVAL);
	if (!strstr(why, word))
		fail_msg("'%s' lacks '%s'", why, word);
}

static void test_wrong_options(void **state)
{
	struct sl_share_options o = share_options(4);
	struct sl_share_array array[2];

	o.bytes = 8;
	plan_fails(o, "options.bytes");
	o = share_options(0);
	plan_fails(o, "one place");
	o = share_options(4);
	o.max_peers = UINT32_MAX;
	plan_fails(o, "max_peers");
	o = share_options(4);
	o.memory_fd = -1;
	plan_fails(o, "memory_fd");
	o.memory_fd = 5;
	o.memory_offset = UINT64_MAX - 4095; /* the sum with the ring's bytes would be small */
	plan_fails(o, "memory_offset");
	o = share_options(4);
	o.arrays = 0;
	plan_fails(o, "arrays");
	o.arrays = SL_SHARE_ARRAYS + 1;
	plan_fails(o, "arrays");

	o = share_options(4);
	o.array = array;
	memcpy(array, share_arrays, sizeof(array));
	strcpy(array[1].name, "image");
	plan_fails(o, "name");
	array[1].name[0] = 0;
	plan_fails(o, "name");
	memset(array[1].name, 'a', sizeof(array[1].name));
	plan_fails(o, "name");
	memcpy(array, share_arrays, sizeof(array));
	strcpy(array[0].type, ">u4");
	plan_fails(o, "'image'");
	memcpy(array, share_arrays, sizeof(array));
	array[0].dim[1] = 0;
	plan_fails(o, "'image'");
	array[0].rank = 7;
	plan_fails(o, "'image'");
	memcpy(array, share_arrays, sizeof(array));
	array[0].rank = 6;
	for (unsigned i = 0; i < 6; i++)
		array[0].dim[i] = UINT32_MAX;
	plan_fails(o, "'image'");
	memcpy(array, share_arrays, sizeof(array));
	o.count = UINT64_C(1) << 39;
	array[0].dim[0] = 1 << 30;
	plan_fails(o, "too large");
}

/* Every number of a header that followers use, changed to what would lead outside of the memory. */
static void test_lies(void **state)
{
	static const uint64_t lies[] = {0, 1, 63, UINT64_MAX, UINT64_MAX / 2, UINT64_C(1) << 62};
	static const size_t at[] = {
		offsetof(struct sl_share_header, count),
		offsetof(struct sl_share_header, data_bytes),
		offsetof(struct sl_share_header, stride),
		offsetof(struct sl_share_header, region_bytes),
		offsetof(struct sl_share_header, data_offset),
		offsetof(struct sl_share_header, array[0].bytes),
		offsetof(struct sl_share_header, array[1].offset),
	};
	const struct sl_share_header good = planned(16);

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		for (size_t j = 0; j < sizeof(lies) / sizeof(lies[0]); j++) {
			struct sl_share_header header = good;

			memcpy((char *)&header + at[i], &lies[j], sizeof(lies[j]));
			if (at[i] == offsetof(struct sl_share_header, count) && lies[j] == 1)
				continue; /* fewer places than there are: harmless */
			assert_int_equal(
				sl_share_check(&header, good.region_bytes, 0, why, sizeof(why)),
				-EPROTO);
		}
}

static void test_the_last_place_is_inside(void **state)
{
	struct sl_share_header header = planned(16);
	uint64_t room = header.data_offset + header.count * header.stride;

	header.region_bytes = room;
	assert_int_equal(check(&header), 0);
	header.region_bytes = room - 1;
	assert_int_equal(check(&header), -EPROTO);
}

static void test_other_kinds(void **state)
{
	struct sl_share_header header = planned(16);

	header.magic = __builtin_bswap64(header.magic);
	assert_int_equal(check(&header), -EPROTO);
	assert_non_null(strstr(why, "another order"));
	header = planned(16);
	header.magic++;
	assert_int_equal(check(&header), -EPROTO);
	header = planned(16);
	header.version = 2;
	assert_int_equal(check(&header), -EPROTO);
	assert_non_null(strstr(why, "version 2"));
	header = planned(16);
	assert_int_equal(sl_share_check(&header, 100, 0, why, sizeof(why)), -EPROTO);
	assert_int_equal(sl_share_check(&header, header.region_bytes, 4096, why, sizeof(why)),
			 -EPROTO);
	header.in_second = 1;
	assert_int_equal(check(&header), -EPROTO);
	header = planned(16);
	memset(header.name, 'a', sizeof(header.name));
	assert_int_equal(check(&header), -EPROTO);
	header = planned(16);
	strcpy(header.array[1].name, header.array[0].name);
	assert_int_equal(check(&header), -EPROTO);
	header = planned(16);
	header.array[0].rank = SL_SHARE_RANK + 1;
	for (unsigned i = 0; i < SL_SHARE_RANK; i++)
		header.array[0].dim[i] = 1;
	header.array[0].offset = 1; /* where a seventh dimension would be */
	header.array[0].bytes = 4;
	assert_int_equal(check(&header), -EPROTO);
	header = planned(16);
	header.array[1].ragged = 2;
	assert_int_equal(check(&header), -EPROTO);
	header = planned(16);
	header.array[1].rank = 0;
	header.array[1].bytes = 4;
	assert_int_equal(check(&header), -EPROTO);
	header = planned(16);
	header.arrays = 0;
	assert_int_equal(check(&header), -EPROTO);
	header = planned(16);
	memset(header.run, 'a', sizeof(header.run));
	assert_int_equal(check(&header), -EPROTO);
	header = planned(16);
	memset(header.array[0].unit, 'a', sizeof(header.array[0].unit));
	assert_int_equal(check(&header), -EPROTO);
	header = planned(16);
	memcpy(header.array[0].type, "<u4aaaaa", 8);
	assert_int_equal(check(&header), -EPROTO);
	header = planned(16);
	header.note_bytes = 128;
	assert_int_equal(check(&header), -EPROTO);
	header = planned(16);
	header.header_bytes = 8192;
	assert_int_equal(check(&header), -EPROTO);
	header = planned(16);
	header.stride += 32; /* not on a cache line */
	assert_int_equal(check(&header), -EPROTO);
	header = planned(16);
	header.data_offset -= 4096; /* over the notes */
	assert_int_equal(check(&header), -EPROTO);
	header = planned(16);
	header.data_offset += 64;
	header.count = 15;
	assert_int_equal(check(&header), -EPROTO);
	header = planned(16);
	header.arrays = 25;
	assert_int_equal(check(&header), -EPROTO);
}

static void test_looks(void **state)
{
	struct sl_share_words words = {0};
	struct sl_share_place place = {0};

	assert_int_equal(sl_share_look(&place, 0), SL_SHARE_NOT_YET);
	sl_share_claim(&words, &place, 0);
	assert_int_equal(sl_share_look(&place, 0), SL_SHARE_NOT_YET);
	assert_int_equal(words.claimed, 1);
	assert_int_equal(words.published, 0);
	sl_share_done(&words, &place, 0);
	assert_int_equal(sl_share_look(&place, 0), SL_SHARE_THERE);
	assert_true(sl_share_whole(&place, 0));
	assert_int_equal(words.published, 1);
	sl_share_claim(&words, &place, 8); /* the next lap has begun */
	assert_int_equal(sl_share_look(&place, 0), SL_SHARE_OVERTAKEN);
	assert_false(sl_share_whole(&place, 0));
	sl_share_done(&words, &place, 8);
	assert_int_equal(sl_share_look(&place, 0), SL_SHARE_OVERTAKEN);
	assert_int_equal(sl_share_look(&place, 16), SL_SHARE_NOT_YET);
	assert_int_equal(sl_share_look(&place, 8), SL_SHARE_THERE);
	sl_share_cancel(&place, 1);
	assert_int_equal(sl_share_look(&place, 8), SL_SHARE_OVERTAKEN);
	assert_false(sl_share_whole(&place, 8));

	/* n + 1 of no number is that of a place that was never written. */
	place = (struct sl_share_place){0};
	assert_int_equal(sl_share_look(&place, UINT64_MAX), SL_SHARE_NOT_YET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plans_pass),  cmocka_unit_test(test_wrong_options),
		cmocka_unit_test(test_lies),	    cmocka_unit_test(test_the_last_place_is_inside),
		cmocka_unit_test(test_other_kinds), cmocka_unit_test(test_looks),
	};

	return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
