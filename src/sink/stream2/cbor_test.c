/* cbor_test.c - the writer gives the bytes of RFC 8949's examples, and those that DECTRIS' detector
 * sent: a recorded image message and end message, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink/stream2/message.h"

static const struct sl_stream2_series recorded = {.id = 1,
						  .unique_id = "01GRXWT80JSDY2FNW8SGCCDZD9"};

static uint8_t *read_all(const char *name, size_t *bytes)
{
	char path[512];
	uint8_t *data = malloc(1 << 20);
	FILE *file;

	snprintf(path, sizeof(path), "%s/stream2/%s", SL_TEST_DATA, name);
	file = fopen(path, "rb");
	assert_non_null(file);
	*bytes = fread(data, 1, 1 << 20, file);
	fclose(file);
	return data;
}

static void numbers_have_the_shortest_head(void **state)
{
	static const struct {
		uint64_t value;
		size_t bytes;
		uint8_t expected[9];
	} example[] = {
		{0, 1, {0x00}},
		{23, 1, {0x17}},
		{24, 2, {0x18, 0x18}},
		{255, 2, {0x18, 0xff}},
		{256, 3, {0x19, 0x01, 0x00}},
		{65535, 3, {0x19, 0xff, 0xff}},
		{65536, 5, {0x1a, 0x00, 0x01, 0x00, 0x00}},
		{1000000, 5, {0x1a, 0x00, 0x0f, 0x42, 0x40}},
		{UINT32_MAX, 5, {0x1a, 0xff, 0xff, 0xff, 0xff}},
		{UINT64_C(1) << 32, 9, {0x1b, 0, 0, 0, 1, 0, 0, 0, 0}},
		{UINT64_MAX, 9, {0x1b, 255, 255, 255, 255, 255, 255, 255, 255}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(example) / sizeof(example[0]); i++) {
		uint8_t text[16];
		struct sl_cbor c = sl_cbor_writer(text, sizeof(text));

		sl_cbor_uint(&c, example[i].value);
		assert_int_equal(c.used, example[i].bytes);
		assert_memory_equal(text, example[i].expected, c.used);
	}
}

static void other_items(void **state)
{
	static const uint8_t expected[] = {
		0xfb, 0x3f, 0xf1, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a, /* 1.1 */
		0xf4, 0xf5,					      /* false, true */
		0x62, 0xc3, 0xbc,				      /* "\u00fc" */
		0x44, 1,    2,	  3,	4,			      /* h'01020304' */
		0x83, 0xa1, 0x61, 'a',	0xc0, 0x60, 0x40,	      /* [{"a": 0("")}, h'' ... */
		0xd9, 0xdc, 0xb4,				      /* 56500( */
		0x5a, 0,    0,	  0,	2,    7,    8,
	};
	uint8_t text[64];
	struct sl_cbor c = sl_cbor_writer(text, sizeof(text));

	(void)state;
	sl_cbor_float(&c, 1.1);
	sl_cbor_bool(&c, false);
	sl_cbor_bool(&c, true);
	sl_cbor_text(&c, "\xc3\xbc");
	sl_cbor_bytes(&c, "\1\2\3\4", 4);
	sl_cbor_array(&c, 3);
	sl_cbor_map(&c, 1);
	sl_cbor_text(&c, "a");
	sl_cbor_tag(&c, SL_CBOR_DATE_TIME);
	sl_cbor_text(&c, "");
	sl_cbor_bytes(&c, "", 0);
	sl_cbor_tag(&c, SL_CBOR_DECTRIS_COMPRESSED);
	sl_cbor_long_bytes(&c, 2);
	sl_cbor_raw(&c, "\7\x08", 2);
	assert_int_equal(c.used, sizeof(expected));
	assert_memory_equal(text, expected, sizeof(expected));
}

static void what_does_not_fit_is_counted_and_not_written(void **state)
{
	uint8_t text[8];
	struct sl_cbor c = sl_cbor_writer(text, 5), none = sl_cbor_writer(NULL, 0);

	(void)state;
	memset(text, 0xee, sizeof(text));
	sl_cbor_text(&c, "abc");
	sl_cbor_uint(&c, 1);
	assert_int_equal(c.used, 5);
	sl_cbor_text(&c, "de");
	sl_cbor_uint(&c, 300);
	assert_int_equal(c.used, 11);
	assert_memory_equal(text,
			    "\x63"
			    "abc\x01\xee\xee\xee",
			    8);
	sl_cbor_text(&none, "abc");
	assert_int_equal(none.used, 4);
}

static void a_length_can_be_set_later(void **state)
{
	static const uint8_t expected[] = {0x5a, 0x12, 0x34, 0x56, 0x78};
	uint8_t text[5];
	struct sl_cbor c = sl_cbor_writer(text, sizeof(text));

	(void)state;
	sl_cbor_long_bytes(&c, 0);
	assert_int_equal(c.used, SL_CBOR_LONG_BYTES_HEAD);
	sl_cbor_set_long_bytes(text, 0x12345678);
	assert_memory_equal(text, expected, sizeof(expected));
}

/* ---- recorded messages ---- */

static void the_end_message_is_as_recorded(void **state)
{
	uint8_t text[128];
	size_t bytes;
	uint8_t *data = read_all("end.cbor", &bytes);

	(void)state;
	assert_int_equal(bytes, 69);
	assert_int_equal(sl_stream2_end(&recorded, text, sizeof(text)), bytes);
	assert_memory_equal(text, data, bytes);
	free(data);
}

/* A channel of the recorded image: compares its head, and returns where its bytes end. */
static size_t channel(const uint8_t *data, size_t at, const char *name)
{
	uint8_t text[128];
	struct sl_cbor c = sl_cbor_writer(text, sizeof(text));
	uint32_t length = 0;

	sl_cbor_text(&c, name);
	sl_cbor_tag(&c, SL_CBOR_MULTI_DIMENSIONAL);
	sl_cbor_array(&c, 2);
	sl_cbor_array(&c, 2);
	sl_cbor_uint(&c, 514);
	sl_cbor_uint(&c, 1030);
	sl_cbor_tag(&c, SL_CBOR_U16);
	sl_cbor_tag(&c, SL_CBOR_DECTRIS_COMPRESSED);
	sl_cbor_array(&c, 3);
	sl_cbor_text(&c, "bslz4");
	sl_cbor_uint(&c, 2);
	for (int i = 0; i < 4; i++)
		length = length << 8 | data[at + c.used + 1 + (size_t)i];
	sl_cbor_long_bytes(&c, length);
	assert_memory_equal(text, data + at, c.used);
	return at + c.used + length;
}

static void rational(struct sl_cbor *c, const char *key, uint64_t value)
{
	sl_cbor_text(c, key);
	sl_cbor_array(c, 2);
	sl_cbor_uint(c, value);
	sl_cbor_uint(c, 50000000);
}

static void the_image_message_is_as_recorded(void **state)
{
	static const char *const name[] = {"threshold_1", "threshold_2", "difference"};
	uint8_t text[512];
	struct sl_cbor c = sl_cbor_writer(text, sizeof(text));
	size_t bytes, at;
	uint8_t *data = read_all("image.cbor", &bytes);

	(void)state;
	sl_cbor_tag(&c, SL_CBOR_SELF_DESCRIBED);
	sl_cbor_map(&c, 10);
	sl_cbor_text(&c, "type");
	sl_cbor_text(&c, "image");
	sl_cbor_text(&c, "series_id");
	sl_cbor_uint(&c, recorded.id);
	sl_cbor_text(&c, "series_unique_id");
	sl_cbor_text(&c, recorded.unique_id);
	sl_cbor_text(&c, "image_id");
	sl_cbor_uint(&c, 0);
	rational(&c, "real_time", 999995);
	sl_cbor_text(&c, "series_date");
	sl_cbor_tag(&c, SL_CBOR_DATE_TIME);
	sl_cbor_text(&c, "2023-02-10T15:49:05.281+01:00");
	rational(&c, "start_time", 0);
	rational(&c, "stop_time", 999995);
	sl_cbor_text(&c, "user_data");
	sl_cbor_array(&c, 2);
	sl_cbor_uint(&c, 1);
	sl_cbor_text(&c, "\xf0\x9f\x92\x99");
	sl_cbor_text(&c, "data");
	sl_cbor_map(&c, 3);
	assert_memory_equal(text, data, c.used);
	at = c.used;
	for (int i = 0; i < 3; i++)
		at = channel(data, at, name[i]);
	assert_int_equal(at, bytes);
	free(data);
}

/* Ours has the same keys in the same order, and the same head of the data, but for the number of
 * channels. */
static void our_image_message_is_built_like_the_recorded_one(void **state)
{
	static const char *const key[] = {"type",	"series_id", "series_unique_id",
					  "image_id",	"real_time", "series_date",
					  "start_time", "stop_time", "user_data"};
	const struct sl_stream2_image image = {.series = &recorded,
					       .series_date = "2023-02-10T15:49:05.281Z",
					       .id = UINT64_MAX,
					       .start_ns = UINT64_MAX / 2,
					       .real_ns = UINT64_MAX / 2,
					       .frame_number = UINT64_MAX,
					       .timestamp = UINT64_MAX,
					       .missing = UINT64_MAX};
	uint8_t fields[SL_STREAM2_FIELDS_BYTES], head[SL_STREAM2_DATA_BYTES];
	size_t n = sl_stream2_image_fields(&image, fields, sizeof(fields)), bytes, at = 0;
	uint8_t *data = read_all("image.cbor", &bytes), *found;

	(void)state;
	assert_true(n < sizeof(fields));       /* whatever the numbers are */
	assert_memory_equal(fields, data, 64); /* up to the number of image_id */
	for (size_t i = 0; i < sizeof(key) / sizeof(key[0]); i++) {
		found = memmem(fields + at, n - at, key[i], strlen(key[i]));
		assert_non_null(found);
		at = (size_t)(found - fields);
	}
	n = sl_stream2_data_head(514, 1030, SL_U16, SL_CODEC_BSLZ4, head, sizeof(head));
	assert_true(n < sizeof(head));
	found = memmem(data, 512, "ddata\xa3", 6);
	assert_non_null(found);
	head[5] = 0xa3; /* three channels */
	assert_memory_equal(head, found, n - 4);
	free(data);
}

static void a_data_head_for_every_type_and_codec(void **state)
{
	static const uint8_t lz4[] = {0xd8, 70,	 0xd9, 0xdc, 0xb4, 0x83, 0x63, 'l',
				      'z',  '4', 0,    0x5a, 0,	   0,	 0,    0};
	static const uint8_t none[] = {0xd8, 64, 0x5a, 0, 0, 0, 0};
	uint8_t head[SL_STREAM2_DATA_BYTES];
	size_t n = sl_stream2_data_head(UINT32_MAX, UINT32_MAX, SL_U32, SL_CODEC_LZ4, head,
					sizeof(head));

	(void)state;
	assert_true(n < sizeof(head));
	assert_memory_equal(head + n - sizeof(lz4), lz4, sizeof(lz4));
	n = sl_stream2_data_head(1, 1, SL_U8, SL_CODEC_NONE, head, sizeof(head));
	assert_memory_equal(head + n - sizeof(none), none, sizeof(none));
	assert_int_equal(sl_stream2_tag(SL_U16), 69);
	assert_int_equal(sl_stream2_tag(SL_I16), 0);
	assert_int_equal(sl_stream2_tag(SL_F32), 0);
}

static void a_series_has_a_ulid_and_a_growing_id(void **state)
{
	struct sl_stream2_series a, b;

	(void)state;
	sl_stream2_series_init(&a);
	sl_stream2_series_init(&b);
	assert_true(b.id > a.id && a.id > 1600000000);
	assert_int_equal(strlen(a.unique_id), 26);
	assert_int_equal(strspn(a.unique_id, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"), 26);
	assert_true(a.unique_id[0] <= '7'); /* 48 bits of time */
	assert_string_not_equal(a.unique_id, b.unique_id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_the_shortest_head),
		cmocka_unit_test(other_items),
		cmocka_unit_test(what_does_not_fit_is_counted_and_not_written),
		cmocka_unit_test(a_length_can_be_set_later),
		cmocka_unit_test(the_end_message_is_as_recorded),
		cmocka_unit_test(the_image_message_is_as_recorded),
		cmocka_unit_test(our_image_message_is_built_like_the_recorded_one),
		cmocka_unit_test(a_data_head_for_every_type_and_codec),
		cmocka_unit_test(a_series_has_a_ulid_and_a_growing_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
