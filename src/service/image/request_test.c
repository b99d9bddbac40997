/* request_test.c - texts of requests: what is understood, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "picture/picture.h"
#include "service/image/request.h"

static struct sl_image_request request;
static char why[200];

static int parse(const char *text)
{
	why[0] = 0;
	return sl_image_request_parse(text, strlen(text), &request, why, sizeof(why));
}

static void defaults_are_the_whole_newest_image(void **state)
{
	assert_int_equal(parse("image"), 0);
	assert_int_equal(request.kind, SL_IMAGE_PIXELS);
	assert_string_equal(request.array, "");
	assert_true(!request.x && !request.width && !request.bin && !request.mean);
	assert_true(!request.has_after && !request.wait_ms && !request.deflate);
	assert_int_equal(parse("image.png?"), 0);
	assert_int_equal(request.kind, SL_IMAGE_PICTURE);
	assert_true(request.size == 1024 && request.low == 1 && request.high == 99.9);
	assert_int_equal(request.scale, SL_PICTURE_LOG);
	assert_int_equal(parse("results?&&"), 0);
	assert_int_equal(request.kind, SL_IMAGE_RESULTS);
}

static void every_key_is_read(void **state)
{
	assert_int_equal(parse("image?array=raw&x=3&y=4&width=5&height=6&bin=7&how=mean&after="
			       "9223372036854775807&wait_ms=30000&encoding=deflate"),
			 0);
	assert_string_equal(request.array, "raw");
	assert_true(request.x == 3 && request.y == 4 && request.width == 5 && request.height == 6);
	assert_true(request.bin == 7 && request.mean == 1 && request.deflate == 1);
	assert_true(request.has_after && request.after == INT64_MAX && request.wait_ms == 30000);
	assert_int_equal(parse("image.png?peaks=1&rings=0&size=16&scale=linear&colours=grey&low=0."
			       "5&high=100&array=%69mage%20%26"),
			 0);
	assert_true(request.peaks == 1 && request.rings == 0 && request.size == 16);
	assert_true(request.scale == SL_PICTURE_LINEAR && request.colours == SL_PICTURE_GREY);
	assert_true(request.low == 0.5 && request.high == 100);
	assert_string_equal(request.array, "image &");
	assert_int_equal(parse("image?after=0"), 0);
	assert_true(request.has_after && request.after == 0);
}

static void nonsense_is_refused_with_its_key(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "neither"},
		{"images", "neither"},
		{"image.jpg?bin=2", "neither"},
		{"image?bin=0", "bin: takes a whole number, 1 to 256"},
		{"image?bin=257", "bin"},
		{"image?bin=-1", "bin"},
		{"image?bin=+1", "bin"},
		{"image?bin= 1", "bin"},
		{"image?bin=1.5", "bin"},
		{"image?bin=0x4", "bin"},
		{"image?bin=99999999999999999999999", "bin"},
		{"image?bin=", "bin"},
		{"image?bin", "bin: has no value"},
		{"image?bin=2&bin=2", "bin: comes twice"},
		{"image?x=4294967296", "x"},
		{"image?width=0", "width"},
		{"image?wait_ms=30001", "wait_ms"},
		{"image?after=9223372036854775808", "after"},
		{"image?how=median", "how: takes max|mean"},
		{"image?how=ma", "how"},
		{"image?how=", "how"},
		{"image?array=12345678901234567890123456789012", "array: is longer"},
		{"image?array=%", "array"},
		{"image?array=%0", "array"},
		{"image?array=%zz", "array"},
		{"image?array=%00", "array"},
		{"image?array=%0a", "array"},
		{"image?peaks=1", "not known"}, /* of a picture */
		{"results?bin=2", "not known"},
		{"image.png?encoding=deflate", "not known"},
		{"image.png?low=nan", "low"},
		{"image.png?low=-1", "low"},
		{"image.png?high=100.1", "high"},
		{"image.png?high=1e1", "high"},
		{"image.png?high=1.2.3", "high"},
		{"image.png?peaks=2", "peaks"},
		{"image.png?size=15", "size"},
		{"image?=5", "not known"},
		{"image?bi=5", "not known"},
		{"image?bin2=5", "not known"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (parse(cases[i].text) != -EINVAL)
			fail_msg("'%s' was taken", cases[i].text);
		if (!strstr(why, cases[i].says))
			fail_msg("'%s': '%s' does not say '%s'", cases[i].text, why, cases[i].says);
	}
}

static void bytes_behind_the_text_are_not_read(void **state)
{
	assert_int_equal(sl_image_request_parse("image?bin=23", 11, &request, why, sizeof(why)), 0);
	assert_int_equal(request.bin, 2);
	assert_int_equal(sl_image_request_parse("image", 5, &request, why, sizeof(why)), 0);
	assert_int_equal(sl_image_request_parse("image\0?", 7, &request, why, sizeof(why)),
			 -EINVAL);
}

static void requests_for_the_same_bytes_are_the_same(void **state)
{
	struct sl_image_request a;

	assert_int_equal(parse("image?bin=4&after=7&wait_ms=100"), 0);
	a = request;
	assert_int_equal(parse("image?wait_ms=2000&bin=4"), 0);
	assert_true(sl_image_request_same(&a, &request));
	assert_int_equal(parse("image?bin=4&how=mean"), 0);
	assert_false(sl_image_request_same(&a, &request));
	assert_int_equal(parse("image.png?bin=4"), 0);
	assert_false(sl_image_request_same(&a, &request));
	assert_true(a.has_after && a.after == 7); /* only looked at */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_the_whole_newest_image),
		cmocka_unit_test(every_key_is_read),
		cmocka_unit_test(nonsense_is_refused_with_its_key),
		cmocka_unit_test(bytes_behind_the_text_are_not_read),
		cmocka_unit_test(requests_for_the_same_bytes_are_the_same),
	};

	return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
