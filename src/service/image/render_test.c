/* render_test.c - the bytes of a container, results as JSON, pictures: of elements made by hand. */
#include <errno.h>
#include <jansson.h>

#include "picture/picture.h"
#include "service/image/render.h"
#include "service/image/testing.h"

#define ALL ((UINT64_C(1) << RIG_ARRAYS) - 1)

static struct sl_image_pool pool;

static struct sl_image_payload *render(const struct sl_image_element *e, const char *text)
{
	struct sl_image_request request;
	struct sl_image_payload *payload;
	char why[200];

	if (sl_image_request_parse(text, strlen(text), &request, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(sl_image_lacks(&request, e), -1);
	payload = sl_image_render(&request, e);
	assert_non_null(payload);
	return payload;
}

static const struct sl_image_now now = {.unix_ns = 1500000,
					.published = 42,
					.rate_Hz = 9.5,
					.run = 7,
					.hit_frames = 1000,
					.hits = 300,
					.state = "running"};

/* All bytes of an answer. */
static uint8_t *answer(const struct sl_image_payload *p, size_t *bytes)
{
	struct sl_image_parts parts;
	uint8_t *all;

	assert_int_equal(sl_image_parts_make(p, &now, &parts), 0);
	assert_true(sl_image_head_is_right(&parts.head));
	*bytes = parts.head.bytes;
	assert_int_equal(*bytes, parts.prefix_bytes + p->bytes + parts.suffix_bytes);
	all = malloc(*bytes + 1);
	assert_non_null(all);
	memcpy(all, parts.prefix, parts.prefix_bytes);
	if (p->bytes)
		memcpy(all + parts.prefix_bytes, p->data, p->bytes);
	memcpy(all + parts.prefix_bytes + p->bytes, parts.suffix, parts.suffix_bytes);
	sl_image_parts_fini(&parts);
	return all;
}

/* A container taken apart by its description: header, and where pixels begin. */
static json_t *take_apart(const uint8_t *all, size_t bytes, const uint8_t **pixels)
{
	uint32_t length;
	json_t *header;

	assert_true(bytes >= 8);
	assert_memory_equal(all, "SLIM", 4);
	memcpy(&length, all + 4, 4);
	assert_true(length % 8 == 0 && 8 + length <= bytes);
	header = json_loadb((const char *)all + 8, length, 0, NULL);
	assert_non_null(header);
	*pixels = all + 8 + length;
	return header;
}

static json_int_t whole(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value))
		fail_msg("%s is no whole number", key);
	return json_integer_value(value);
}

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	assert_non_null(value);
	return value;
}

static void a_container_has_its_header_and_pixels(void **state)
{
	struct sl_image_element *e = rig_element(&pool, ALL);
	struct sl_image_payload *p = render(e, "image");
	const uint8_t *pixels;
	int16_t pixel;
	size_t bytes;
	uint8_t *all = answer(p, &bytes);
	json_t *header = take_apart(all, bytes, &pixels), *peaks;

	assert_int_equal((size_t)(all + bytes - pixels), RIG_ROWS * RIG_COLUMNS * 2);
	for (unsigned i = 0; i < RIG_ROWS * RIG_COLUMNS; i++) {
		memcpy(&pixel, pixels + 2 * i, 2);
		assert_int_equal(pixel, rig_pixel(i / RIG_COLUMNS, i % RIG_COLUMNS));
	}
	assert_int_equal(whole(header, "element"), 141);
	assert_int_equal(whole(header, "n"), 41);
	assert_int_equal(whole(header, "number"), 1234);
	assert_int_equal(whole(header, "commit_unix_ns"), 1000000);
	assert_int_equal(whole(header, "age_ns"), 500000);
	assert_int_equal(whole(header, "missing"), 2);
	assert_int_equal(whole(header, "missed"), 3);
	assert_int_equal(whole(header, "published"), 42);
	assert_int_equal(whole(header, "run"), 7);
	assert_string_equal(text(header, "verdict"), "kept");
	assert_string_equal(text(header, "reason"), "peaks");
	assert_string_equal(text(header, "state"), "running");
	assert_true(json_real_value(json_object_get(header, "score")) == 73.5);
	assert_true(json_real_value(json_object_get(header, "rate_Hz")) == 9.5);
	assert_int_equal(whole(json_object_get(header, "hits"), "frames"), 1000);
	assert_int_equal(whole(json_object_get(header, "hits"), "kept"), 300);
	assert_string_equal(text(header, "array"), "image");
	assert_string_equal(text(header, "type"), "<i2");
	assert_string_equal(text(header, "unit"), "photons");
	assert_int_equal(whole(header, "rows"), RIG_ROWS);
	assert_int_equal(whole(header, "columns"), RIG_COLUMNS);
	assert_int_equal(whole(header, "full_rows"), RIG_ROWS);
	assert_int_equal(whole(header, "bin"), 1);
	assert_int_equal(whole(header, "invalid"), -32768);
	peaks = json_object_get(header, "peaks"); /* one has no place in the image */
	assert_int_equal(json_array_size(peaks), 2);
	assert_true(json_real_value(json_array_get(json_array_get(peaks, 0), 0)) == 5.25);
	assert_true(json_real_value(json_array_get(json_array_get(peaks, 0), 2)) == 70.5);
	assert_true(json_is_null(json_array_get(json_array_get(peaks, 1), 2)));
	assert_true(json_real_value(json_object_get(json_object_get(header, "beam"), "row")) == 10);
	assert_true(json_array_size(json_object_get(header, "rings")) >= 1);
	json_decref(header);
	free(all);
	sl_image_payload_release(p);
	sl_image_element_release(e);
}

static void regions_and_bins(void **state)
{
	struct sl_image_element *e = rig_element(&pool, ALL);
	struct sl_image_payload *p = render(e, "image?x=1&y=3&width=8&height=5&bin=4");
	const int16_t *pixel = (const int16_t *)p->data;
	const float *mean;

	assert_int_equal(p->bytes, 2 * 2 * 2);
	assert_int_equal(pixel[0], 604);
	assert_int_equal(pixel[1], 608);
	assert_int_equal(pixel[2], 704); /* the last row of bins has one row of pixels */
	sl_image_payload_release(p);
	p = render(e, "image?x=0&y=0&width=4&height=2&bin=2&how=mean");
	mean = (const float *)p->data;
	assert_int_equal(p->bytes, 2 * sizeof(float));
	assert_true(isnan(mean[0]) && mean[1] == (2 + 3 + 102 + 103) / 4.f);
	assert_non_null(strstr(p->members, "\"type\":\"<f4\""));
	assert_non_null(strstr(p->members, "\"invalid\":null"));
	assert_non_null(strstr(p->members, "\"how\":\"mean\""));
	sl_image_payload_release(p);
	p = render(e, "image?array=stack&bin=256"); /* modules one below the other */
	assert_int_equal(p->bytes, 1);
	assert_non_null(strstr(p->members, "\"full_rows\":40,"));
	assert_non_null(strstr(p->members, "\"peaks\":null,\"beam\":null,\"rings\":null"));
	sl_image_payload_release(p);
	sl_image_element_release(e);
}

static void what_is_not_there_is_an_error(void **state)
{
	static const struct {
		const char *request, *says;
		unsigned status;
	} cases[] = {
		{"image?array=nothing", "it has: image, peaks", 404},
		{"image?array=peaks", "is no image", 400},
		{"image?array=counts", "is no image", 400},
		{"image?array=wave", "is no image", 400},
		{"image?x=30", "20 rows and 30 columns", 400},
		{"image?x=29&width=2", "20 rows and 30 columns", 400},
		{"image?y=20", "20 rows and 30 columns", 400},
		{"image?height=4294967295&y=1", "20 rows and 30 columns", 400},
	};
	struct sl_image_element *e = rig_element(&pool, ALL);
	struct sl_image_payload *p;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *json;

		p = render(e, cases[i].request);
		assert_int_equal(p->status, cases[i].status);
		json = json_loadb((const char *)p->data, p->bytes, 0, NULL);
		assert_non_null(json);
		if (!strstr(text(json_object_get(json, "error"), "message"), cases[i].says))
			fail_msg("%s: %s", cases[i].request, p->data);
		json_decref(json);
		sl_image_payload_release(p);
	}
	e->element.note.absent = 1;
	p = render(e, "image");
	assert_int_equal(p->status, 404);
	sl_image_payload_release(p);
	sl_image_element_release(e);
}

static void an_array_that_was_not_copied_is_lacking(void **state)
{
	struct sl_image_element *e = rig_element(&pool, ALL & ~UINT64_C(1));
	struct sl_image_request request = {.kind = SL_IMAGE_PIXELS};

	assert_int_equal(sl_image_lacks(&request, e), 0);
	strcpy(request.array, "stack");
	assert_int_equal(sl_image_lacks(&request, e), -1);
	strcpy(request.array, "nothing");
	assert_int_equal(sl_image_lacks(&request, e), -1);
	sl_image_element_release(e);
}

static void results_are_what_is_small(void **state)
{
	struct sl_image_element *e = rig_element(&pool, ALL);
	struct sl_image_payload *p;
	json_t *json, *arrays, *peaks;
	size_t bytes;
	uint8_t *all;

	e->element.note.absent = 1 << 5; /* the profile */
	p = render(e, "results");
	all = answer(p, &bytes);
	json = json_loadb((const char *)all, bytes, 0, NULL);
	assert_non_null(json);
	assert_int_equal(whole(json, "age_ns"), 500000);
	assert_int_equal(whole(json, "element"), 141);
	arrays = json_object_get(json, "arrays");
	assert_null(json_object_get(arrays, "image"));
	assert_null(json_object_get(arrays, "stack"));
	peaks = json_object_get(arrays, "peaks");
	assert_string_equal(text(peaks, "type"), "<f4");
	assert_int_equal(json_integer_value(json_array_get(json_object_get(peaks, "shape"), 0)), 3);
	assert_int_equal(json_array_size(json_object_get(peaks, "data")), 24);
	assert_true(json_is_null(json_array_get(json_object_get(peaks, "data"), 19)));
	assert_true(json_is_null(json_object_get(json_object_get(arrays, "profile"), "data")));
	assert_int_equal(json_array_size(json_object_get(json_object_get(arrays, "wave"), "data")),
			 0);
	assert_non_null(strstr(p->members, "\"data\":[0,9223372036854775807]"));
	json_decref(json);
	free(all);
	sl_image_payload_release(p);
	sl_image_element_release(e);
}

static void a_picture_fits_its_size(void **state)
{
	struct sl_image_element *e = rig_element(&pool, ALL);
	struct sl_image_payload *p = render(e, "image.png?size=16&peaks=1&rings=1&scale=linear");

	if (!sl_png_is_there()) {
		assert_int_equal(p->status, 404);
	} else {
		assert_int_equal(p->status, 200);
		assert_memory_equal(p->data, "\x89PNG\r\n\x1a\n", 8);
		assert_memory_equal(p->data + 16, "\0\0\0\x0f\0\0\0\x0a", 8); /* 15 x 10 */
	}
	sl_image_payload_release(p);
	sl_image_element_release(e);
}

static void a_pool_has_so_many_copies_and_no_more(void **state)
{
	struct sl_image_element *e[SL_IMAGE_ELEMENTS];
	struct sl_share_description d;
	struct sl_follow_element seen = {.n = 0};
	int err;

	for (int i = 0; i < SL_IMAGE_ELEMENTS; i++)
		e[i] = rig_element(&pool, ALL);
	rig_describe(&d);
	assert_null(sl_image_element_make(&pool, &d, &seen, 1, &err));
	assert_int_equal(err, -EAGAIN);
	for (int i = 0; i < SL_IMAGE_ELEMENTS; i++)
		sl_image_element_release(e[i]);
	d.array[0].bytes = SL_IMAGE_ELEMENT_BYTES + 1;
	assert_null(sl_image_element_make(&pool, &d, &seen, 1, &err));
	assert_int_equal(err, -EFBIG);
	assert_int_equal(pool.live, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_container_has_its_header_and_pixels),
		cmocka_unit_test(regions_and_bins),
		cmocka_unit_test(what_is_not_there_is_an_error),
		cmocka_unit_test(an_array_that_was_not_copied_is_lacking),
		cmocka_unit_test(results_are_what_is_small),
		cmocka_unit_test(a_picture_fits_its_size),
		cmocka_unit_test(a_pool_has_so_many_copies_and_no_more),
	};

	return cmocka_run_group_tests_name("render", tests, NULL, NULL);
}
