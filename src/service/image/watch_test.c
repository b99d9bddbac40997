/* watch_test.c - what a status says of a run, and how many of the last frames are hits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "service/image/watch.h"

static struct sl_image_news news;
static struct sl_image_sample sample;
static char url[SL_IMAGE_URL];

static bool read_status(const char *text)
{
	json_t *json = json_loads(text, 0, NULL);
	bool good;

	assert_non_null(json);
	good = sl_image_status_read(json, &news, &sample, url);
	json_decref(json);
	return good;
}

static void a_status_tells_the_share(void **state)
{
	assert_true(read_status(
		"{\"state\":\"running\",\"run\":12,\"frames\":{\"settled\":100,\"kept\":30,"
		"\"prescaled\":5},\"addons\":[{\"kind\":\"unit\",\"name\":\"share\",\"where\":"
		"null},{\"kind\":\"sink\",\"name\":\"share\",\"where\":\"share:live-2\"},"
		"{\"kind\":\"sink\",\"name\":\"share\",\"where\":\"share:second\"}]}"));
	assert_string_equal(url, "share:live-2");
	assert_true(news.known && news.there && news.has_share && news.run == 12);
	assert_string_equal(news.state, "running");
	assert_true(sample.frames == 100 && sample.kept == 25);
	assert_true(read_status("{\"state\":\"armed\",\"run\":null,\"frames\":{},\"addons\":[{"
				"\"kind\":\"sink\",\"name\":\"share\",\"where\":"
				"\"rdma://10.0.0.1:4000/far\"}]}"));
	assert_string_equal(url, "share:far");
	assert_true(read_status("{\"state\":\"configured\",\"frames\":{},\"addons\":[{\"kind\":"
				"\"sink\",\"name\":\"share\",\"where\":null}]}"));
	assert_string_equal(url, "");
	assert_false(news.has_share);
}

static void what_is_no_status_is_refused(void **state)
{
	assert_false(read_status("{}"));
	assert_false(read_status("[]"));
	assert_false(read_status("{\"state\":5,\"frames\":{}}"));
	assert_false(read_status("{\"state\":\"running\",\"frames\":[1,2]}"));
	assert_true(read_status("{\"state\":\"a very long word for any state\",\"run\":-5,"
				"\"frames\":{\"settled\":-7,\"kept\":9},\"addons\":[7,{}]}"));
	assert_int_equal(strlen(news.state), 15);
	assert_true(news.run == 0 && sample.frames == 0 && sample.kept == 0);
}

static void hits_are_of_the_last_frames(void **state)
{
	static struct sl_image_watch w;

	for (uint64_t i = 0; i <= 10; i++) {
		sample = (struct sl_image_sample){400 * i, i < 5 ? 0 : 100 * (i - 5)};
		sl_image_count_hits(&w, &sample, &news);
	}
	/* From 2800 to 4000: 1200 frames, 300 of them kept. */
	assert_int_equal(news.hit_frames, 1200);
	assert_int_equal(news.hits, 300);
	sl_image_count_hits(&w, &sample, &news); /* nothing has come */
	assert_int_equal(news.hit_frames, 1200);
	sample = (struct sl_image_sample){50, 7}; /* another run */
	sl_image_count_hits(&w, &sample, &news);
	assert_true(news.hit_frames == 50 && news.hits == 7);
	sample = (struct sl_image_sample){60, 7};
	sl_image_count_hits(&w, &sample, &news);
	assert_true(news.hit_frames == 60 && news.hits == 7);
	for (uint64_t i = 0; i < 1000; i++) { /* slow: no sample is a thousand frames ago */
		sample = (struct sl_image_sample){100 + i, i / 2};
		sl_image_count_hits(&w, &sample, &news);
	}
	assert_in_range(news.hit_frames, SL_IMAGE_SAMPLES / 2, SL_IMAGE_SAMPLES);
	assert_in_range(news.hits, news.hit_frames / 2 - 1, news.hit_frames / 2 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_status_tells_the_share),
		cmocka_unit_test(what_is_no_status_is_refused),
		cmocka_unit_test(hits_are_of_the_last_frames),
	};

	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
