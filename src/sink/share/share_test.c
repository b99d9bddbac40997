/* share_test.c - the sink `share`: what followers get of frames of every kind, and what is refused.
 */
#include <math.h>
#include <unistd.h>

#include "lib/share_rig.h"
#include "sink/conformance.h"
#include "sink/share/answers.h"
#include "sink/share/arrays.h"

extern const struct sl_sink sl_sink_share;

static uint8_t data[65536];
static struct sl_follow_element element;

static struct sl_follower *begin(struct bench *bench)
{
	bench->shape[0].image = bench->shape[1].image = 1; /* as stages have them */
	assert_int_equal(bench_open(bench), 0);
	return follower_open(sl_sink_share.where(bench->state));
}

static void end(struct bench *bench, struct sl_follower *follower)
{
	sl_follow_close(follower);
	assert_int_equal(bench_close(bench), 0);
	bench_fini(bench);
}

static int next(struct sl_follower *follower)
{
	return sl_follow_next(follower, SL_FOLLOW_EVERY, 0, data, sizeof(data), &element);
}

static const struct sl_share_array *array_of(const struct sl_follower *follower, const char *name)
{
	const struct sl_share_description *d = sl_follow_describe(follower);

	for (uint32_t i = 0; i < d->arrays; i++)
		if (!strcmp(d->array[i].name, name))
			return &d->array[i];
	return NULL;
}

static const void *bytes_of(const struct sl_follower *follower, const char *name)
{
	const struct sl_share_array *array = array_of(follower, name);

	assert_non_null(array);
	return data + array->offset;
}

static bool is_absent(const struct sl_follower *follower, const char *name)
{
	long i = array_of(follower, name) - sl_follow_describe(follower)->array;

	return element.note.absent >> i & 1;
}

/* ---- what is in an element ---- */

static void followers_get_what_stages_made_of_kept_frames(void **state)
{
	const struct sl_share_array *image;
	struct sl_follower *follower;
	const uint8_t *outcome;
	const int16_t *pixel;
	struct bench bench;

	bench_init(&bench, &sl_sink_share);
	bench.env.name = "scan 1.left";
	follower = begin(&bench);
	assert_string_equal(sl_sink_share.where(bench.state), "share:scan-1.left");
	assert_string_equal(sl_follow_describe(follower)->run, "scan 1.left");
	assert_null(array_of(follower, "raw"));
	image = array_of(follower, "image");
	assert_string_equal(image->type, "<i2");
	assert_int_equal(image->rank, 2); /* assembled: modules one below the other, no gaps */
	assert_int_equal(image->dim[0], MODULES * ROWS);
	assert_int_equal(image->dim[1], COLUMNS);
	for (uint64_t k = 0; k < 10; k++) {
		assert_int_equal(bench_feed(&bench, k, k % 2 ? VETOED : KEPT), 0);
		if (k % 2)
			continue;
		assert_int_equal(next(follower), 0);
		assert_int_equal(element.n, k / 2);
		assert_int_equal(element.note.number, number_of(k));
		assert_int_equal(element.note.timestamp, tiny_timestamp(NULL, number_of(k)));
		assert_int_equal(element.note.user[0], k);
		assert_int_equal(element.note.keep, 1);
		assert_int_equal(element.note.reason, SL_REASON_BRIGHT_PIXELS);
		assert_true(element.note.score == (float)k / 2);
		assert_int_equal(element.note.flags, SL_FRAME_COMPLETE);
		assert_int_equal(element.note.absent, 0);
		pixel = bytes_of(follower, "image");
		for (uint32_t i = 0; i < PIXELS; i++)
			assert_int_equal(pixel[i], image_pixel(k, i));
		outcome = bytes_of(follower, "outcome");
		assert_true(outcome[0] == SL_STORED && outcome[1] == SL_STORED);
	}
	assert_int_equal(next(follower), -ETIMEDOUT);
	assert_int_equal(bench_figure(&bench, "published"), 5);
	assert_int_equal(bench_figure(&bench, "followers"), 1);
	assert_int_equal(bench_close(&bench), 0);
	assert_int_equal(next(follower), -EPIPE);
	assert_int_equal(bench_figure(&bench, "published"), 5);
	sl_follow_close(follower);
	bench_fini(&bench);
}

/* The test's bench asks the descriptor alone, so frames of other kinds are put here. */
static void put_any(struct bench *bench, uint64_t k, enum kind kind)
{
	assert_int_equal(sl_sink_share.put(bench->state, bench_frame(bench, k, kind)), 0);
}

static void broken_frames_say_what_they_lack(void **state)
{
	struct sl_follower *follower;
	const uint8_t *outcome;
	const int16_t *pixel;
	struct bench bench;

	bench_init(&bench, &sl_sink_share);
	bench_set(&bench, "frames", "all");
	bench_set(&bench, "results", "image raw");
	assert_int_equal(sl_sink_wants(&sl_sink_share, bench.state) &
				 (SL_WANT_RAW | SL_WANT_BROKEN | SL_WANT_REJECTED),
			 SL_WANT_RAW | SL_WANT_BROKEN | SL_WANT_REJECTED);
	follower = begin(&bench);
	put_any(&bench, 0, KEPT);
	assert_int_equal(next(follower), 0);
	assert_int_equal(element.note.absent, 0);
	assert_memory_equal(bytes_of(follower, "raw"), bench.raw, sizeof(bench.raw));
	put_any(&bench, 1, DAMAGED);
	assert_int_equal(next(follower), 0);
	assert_true(is_absent(follower, "image") && is_absent(follower, "raw"));
	assert_false(is_absent(follower, "outcome"));
	assert_int_equal(element.note.missing, 2);
	assert_int_equal(element.note.keep, 0);
	pixel = bytes_of(follower, "image");
	for (uint32_t i = 0; i < PIXELS; i++)
		assert_int_equal(pixel[i], INT16_MIN); /* nothing of frame 0 */
	outcome = bytes_of(follower, "outcome");
	assert_true(outcome[0] == SL_INCOMPLETE && outcome[1] == SL_INCOMPLETE);
	put_any(&bench, 2, DARK);
	assert_int_equal(next(follower), 0);
	assert_int_equal(element.note.flags, SL_FRAME_COMPLETE | SL_FRAME_DARK);
	assert_int_equal(element.note.absent, 0);
	outcome = bytes_of(follower, "outcome");
	assert_int_equal(outcome[0], SL_VETOED);
	end(&bench, follower);
}

/* Two modules of 4 x 6 pixels with two rows between them. */
static void images_are_assembled_with_gaps(void **state)
{
	struct sl_follower *follower;
	const int16_t *pixel;
	struct bench bench;

	for (int assembled = 0; assembled < 2; assembled++) {
		uint32_t second = assembled ? 6 * COLUMNS : 4 * COLUMNS;

		bench_init(&bench, &sl_sink_share);
		bench.geometry.layout = (struct sl_layout){
			.rows = 10, .columns = COLUMNS, .module = {{0, 0, 0}, {6, 0, 0}}};
		bench_set(&bench, "image", assembled ? "assembled" : "modules");
		bench_set(&bench, "results", "image");
		follower = begin(&bench);
		assert_int_equal(bench_feed(&bench, 3, KEPT), 0);
		assert_int_equal(next(follower), 0);
		pixel = bytes_of(follower, "image");
		assert_int_equal(array_of(follower, "image")->rank, assembled ? 2 : 3);
		assert_int_equal(array_of(follower, "image")->dim[0], assembled ? 10 : MODULES);
		for (uint32_t i = 0; i < MODULE_PIXELS; i++) {
			assert_int_equal(pixel[i], image_pixel(3, i));
			assert_int_equal(pixel[second + i], image_pixel(3, MODULE_PIXELS + i));
		}
		for (uint32_t i = MODULE_PIXELS; i < second; i++)
			assert_int_equal(pixel[i], INT16_MIN);
		end(&bench, follower);
	}
}

static void lists_have_as_many_rows_as_their_frame(void **state)
{
	struct sl_shape shapes[2] = {{"image", SL_I16, 3, {MODULES, ROWS, COLUMNS}},
				     {"peaks", SL_F32, 2, {5, 2}, .ragged = 1}};
	float peaks[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
	struct sl_follower *follower;
	struct sl_frame *frame;
	struct bench bench;

	bench_init(&bench, &sl_sink_share);
	bench_set(&bench, "results", "peaks");
	assert_false(sl_sink_share.reads(bench.state, "image"));
	bench.env.result = shapes;
	follower = begin(&bench);
	assert_null(array_of(follower, "image"));
	assert_int_equal(array_of(follower, "peaks")->ragged, 1);
	for (uint32_t rows = 0; rows < 8; rows++) {
		frame = bench_frame(&bench, rows, KEPT);
		frame->result[0].shape = shapes[0];
		frame->result[1] =
			(struct sl_array){.shape = shapes[1], .host = peaks, .rows = rows};
		peaks[0] = (float)rows;
		assert_int_equal(sl_sink_share.put(bench.state, frame), 0);
		assert_int_equal(next(follower), 0);
		assert_int_equal(element.note.rows[0], rows < 5 ? rows : 5);
		if (rows)
			assert_memory_equal(bytes_of(follower, "peaks"), peaks,
					    (rows < 5 ? rows : 5) * 2 * sizeof(float));
	}
	end(&bench, follower);
}

static void blocks_of_events_have_a_verdict_for_each(void **state)
{
	struct sl_verdict verdict[] = {{.number = 70, .score = 0.5f, .keep = 0},
				       {.number = 71, .score = 1.5f, .keep = 1}};
	struct sl_follower *follower;
	struct sl_frame *frame;
	struct bench bench;

	bench_init(&bench, &sl_sink_share);
	bench.geometry.items = 2;
	bench.geometry.items_shared = true;
	follower = begin(&bench);
	assert_int_equal(array_of(follower, "image")->rank, 3); /* events are not assembled */
	assert_string_equal(array_of(follower, "event_number")->type, "<u8");
	frame = bench_frame(&bench, 0, KEPT);
	frame->verdict = verdict;
	frame->items = 2;
	assert_int_equal(sl_sink_share.put(bench.state, frame), 0);
	assert_int_equal(next(follower), 0);
	assert_int_equal(element.note.keep, 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(((const uint64_t *)bytes_of(follower, "event_number"))[i], 70 + i);
		assert_int_equal(((const uint8_t *)bytes_of(follower, "event_keep"))[i], i);
		assert_true(((const float *)bytes_of(follower, "event_score"))[i] ==
			    0.5f + (float)i);
	}
	end(&bench, follower);
}

/* ---- facts ---- */

static float f4_of(const struct sl_follower *follower, const char *name, size_t i)
{
	return ((const float *)bytes_of(follower, name))[i];
}

/* Two modules of 4 x 6 pixels, the second one turned by a quarter, with the beam between them. */
static void followers_learn_where_the_image_and_its_peaks_are(void **state)
{
	static const float bins[] = {0.5f, 1.5f, 2.5f};
	const struct sl_constant constants[] = {
		{{"profile_q", SL_F32, 1, {3}, .doc = "q (1/nm)"}, bins},
		{{"other_q", SL_F32, 1, {3}}, bins}, /* about no result */
	};
	struct sl_shape shapes[3] = {{"image", SL_I16, 3, {MODULES, ROWS, COLUMNS}, .image = 1},
				     {"profile", SL_F32, 2, {3, 3}},
				     {"peaks", SL_F32, 2, {5, 8}, .ragged = 1}};
	/* module, row, column, intensity ...: one in each module, one in neither */
	float peaks[3][8] = {{0, 1, 2.5f, 9}, {1, 1, 2.5f, 9}, {2, 1, 1, 9}}, profile[9] = {0};
	struct sl_follower *follower;
	struct sl_frame *frame;
	const double *plane;
	struct bench bench;

	bench_init(&bench, &sl_sink_share);
	bench.geometry.layout = (struct sl_layout){
		.rows = 12,
		.columns = COLUMNS,
		.beam_row = 5,
		.beam_column = 2,
		.module = {{0, 0, 0},
			   {6, 1, 1}}}; /* the second takes rows 6 to 11, columns 1 to 4 */
	bench.env.result = shapes;
	bench.env.results = 3;
	bench.env.constant = constants;
	bench.env.constants = 2;
	assert_int_equal(bench_open(&bench), 0);
	follower = follower_open(sl_sink_share.where(bench.state));
	frame = bench_frame(&bench, 0, KEPT);
	frame->results = 3;
	frame->result[0].shape = shapes[0];
	frame->result[0].host = bench.image;
	frame->result[1] = (struct sl_array){.shape = shapes[1], .host = profile};
	frame->result[2] = (struct sl_array){.shape = shapes[2], .host = peaks, .rows = 3};
	assert_int_equal(sl_sink_share.put(bench.state, frame), 0);
	assert_int_equal(next(follower), 0);
	assert_string_equal(array_of(follower, "profile_q")->unit, "1/nm");
	assert_true(f4_of(follower, "profile_q", 2) == 2.5f);
	assert_null(array_of(follower, "other_q"));
	assert_true(*(const double *)bytes_of(follower, "photon_energy") == 12.4);
	plane = bytes_of(follower, "image_plane"); /* corner, down, right */
	assert_true(fabs(plane[0] - 2 * 75e-6) < 1e-12 && fabs(plane[1] - 5 * 75e-6) < 1e-12 &&
		    fabs(plane[2] - 0.1) < 1e-12);
	assert_true(fabs(plane[4] + 75e-6) < 1e-12 && fabs(plane[6] + 75e-6) < 1e-12);
	assert_true(plane[9] == 12 && plane[10] == COLUMNS);
	assert_int_equal(array_of(follower, "peaks_in_image")->ragged, 1);
	assert_true(f4_of(follower, "peaks_in_image", 0) == 1 &&
		    f4_of(follower, "peaks_in_image", 1) == 2.5f);
	/* Turned clockwise: its columns go down, its rows to the left, from the right edge. */
	assert_true(f4_of(follower, "peaks_in_image", 2) == 6 + 2.5f &&
		    f4_of(follower, "peaks_in_image", 3) == 1 + 4 - 1);
	assert_true(isnan(f4_of(follower, "peaks_in_image", 4)));
	end(&bench, follower);
}

static void facts_need_an_image_and_can_be_left_out(void **state)
{
	struct sl_shape shapes[2] = {{"image", SL_I16, 3, {MODULES, ROWS, COLUMNS}, .image = 1},
				     {"peaks", SL_F32, 2, {5, 8}, .ragged = 1}};
	float peaks[8] = {1, 2, 3, 9};
	struct sl_follower *follower;
	struct sl_frame *frame;
	struct bench bench;

	bench_init(&bench, &sl_sink_share);
	bench_set(&bench, "image", "modules");
	bench.env.result = shapes;
	assert_int_equal(bench_open(&bench), 0);
	follower = follower_open(sl_sink_share.where(bench.state));
	assert_null(array_of(follower, "image_plane"));
	frame = bench_frame(&bench, 0, KEPT);
	frame->result[0].shape = shapes[0];
	frame->result[0].host = bench.image;
	frame->result[1] = (struct sl_array){.shape = shapes[1], .host = peaks, .rows = 1};
	assert_int_equal(sl_sink_share.put(bench.state, frame), 0);
	assert_int_equal(next(follower), 0);
	assert_true(f4_of(follower, "peaks_in_image", 0) == ROWS + 2 &&
		    f4_of(follower, "peaks_in_image", 1) == 3);
	end(&bench, follower);
	bench_init(&bench, &sl_sink_share);
	bench_set(&bench, "facts", "false");
	follower = begin(&bench);
	assert_null(array_of(follower, "image_plane"));
	assert_int_equal(sl_follow_describe(follower)->arrays, 2);
	end(&bench, follower);
}

/* ---- which frames ---- */

static void one_of_several_frames_is_published(void **state)
{
	struct sl_follower *follower;
	struct bench bench;

	bench_init(&bench, &sl_sink_share);
	bench_set(&bench, "every", "3");
	follower = begin(&bench);
	for (uint64_t k = 0; k < 10; k++)
		assert_int_equal(bench_feed(&bench, k, KEPT), 0);
	for (uint64_t k = 0; k < 10; k += 3) {
		assert_int_equal(next(follower), 0);
		assert_int_equal(element.note.user[0], k);
	}
	assert_int_equal(bench_figure(&bench, "published"), 4);
	assert_int_equal(bench_figure(&bench, "skipped"), 6);
	end(&bench, follower);
}

static void a_viewer_gets_the_latest_now_and_then(void **state)
{
	struct sl_follower *follower;
	struct bench bench;

	bench_init(&bench, &sl_sink_share);
	bench_set(&bench, "latest_Hz", "0.001"); /* one in the time of any test */
	follower = begin(&bench);
	for (uint64_t k = 0; k < 10; k++)
		assert_int_equal(bench_feed(&bench, k, KEPT), 0);
	assert_int_equal(bench_figure(&bench, "published"), 1);
	assert_int_equal(bench_figure(&bench, "skipped"), 9);
	assert_int_equal(sl_follow_describe(follower)->count, 8);
	end(&bench, follower);
}

static void a_run_waits_only_where_it_is_asked_to_or_copies_are_few(void **state)
{
	static const struct {
		const char *latest_Hz, *on_slow;
		enum sl_on_slow result;
	} cases[] = {{"0", "auto", SL_ON_SLOW_DROP}, {"10", "auto", SL_ON_SLOW_WAIT},
		     {"0", "wait", SL_ON_SLOW_WAIT}, {"10", "wait", SL_ON_SLOW_WAIT},
		     {"0", "drop", SL_ON_SLOW_DROP}, {"10", "drop", SL_ON_SLOW_DROP}};
	struct bench bench;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bench_init(&bench, &sl_sink_share);
		bench_set(&bench, "latest_Hz", cases[i].latest_Hz);
		bench_set(&bench, "on_slow", cases[i].on_slow);
		assert_int_equal(sl_sink_share.on_slow(bench.state), cases[i].result);
		assert_false(sl_sink_share.required(bench.state)); /* drop needs that */
		assert_true(sl_sink_share.own_thread(bench.state));
		bench_fini(&bench);
	}
}

static void places_fit_into_memory(void **state)
{
	static const struct {
		const char *option, *value;
		uint64_t places;
	} cases[] = {{"memory_bytes", "4096", 4096 / (256 + 2 * PIXELS + MODULES + 12 * 8)},
		     {"memory_bytes", "1000000", 1000},
		     {"count", "3", 3}};
	struct bench bench;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sl_follower *follower;

		bench_init(&bench, &sl_sink_share);
		bench_set(&bench, cases[i].option, cases[i].value);
		follower = begin(&bench);
		assert_int_equal(sl_follow_describe(follower)->count, cases[i].places);
		end(&bench, follower);
	}
}

/* ---- other ends ---- */

static void what_followers_say_is_taken(void **state)
{
	struct sl_follower *follower;
	struct bench bench;

	bench_init(&bench, &sl_sink_share);
	follower = begin(&bench);
	for (int i = 0; i < 5; i++)
		assert_int_equal(sl_follow_send(follower, 1, "hello", 5, 2000), 0);
	for (int i = 0; i < 200 && bench_figure(&bench, "messages") < 5; i++) {
		sl_sink_share.idle(bench.state);
		usleep(20000);
	}
	assert_int_equal(bench_figure(&bench, "messages"), 5);
	end(&bench, follower);
}

static void wait_for_messages(struct bench *bench, uint64_t n)
{
	for (int i = 0; i < 1000 && bench_figure(bench, "messages") < n; i++)
		usleep(5000);
	assert_int_equal(bench_figure(bench, "messages"), n);
}

/* Of all that is said, what is about an element that was published not long ago. */
static void answers_are_timed(void **state)
{
	struct sl_follower *follower;
	struct bench bench;
	uint64_t n;

	bench_init(&bench, &sl_sink_share);
	bench_set(&bench, "answers", "true");
	follower = begin(&bench);
	n = 0; /* which is not published yet */
	assert_int_equal(sl_follow_send(follower, SL_ANSWER_KIND, &n, sizeof(n), 2000), 0);
	wait_for_messages(&bench, 1);
	assert_int_equal(bench_figure(&bench, "answers"), 0);
	for (uint64_t k = 0; k < 3; k++) {
		uint64_t answer[3];

		assert_int_equal(bench_feed(&bench, k, KEPT), 0);
		assert_int_equal(next(follower), 0);
		answer[0] = element.n;
		assert_int_equal(
			sl_follow_send(follower, SL_ANSWER_KIND, answer, sizeof(answer), 2000), 0);
	}
	n = 1; /* of another kind; too short; empty; of an element that there is not */
	assert_int_equal(sl_follow_send(follower, SL_ANSWER_KIND + 1, &n, sizeof(n), 2000), 0);
	assert_int_equal(sl_follow_send(follower, SL_ANSWER_KIND, &n, 7, 2000), 0);
	assert_int_equal(sl_follow_send(follower, SL_ANSWER_KIND, NULL, 0, 2000), 0);
	n = UINT64_MAX;
	assert_int_equal(sl_follow_send(follower, SL_ANSWER_KIND, &n, sizeof(n), 2000), 0);
	wait_for_messages(&bench, 8);
	assert_int_equal(bench_figure(&bench, "answers"), 3);
	assert_true(bench_figure(&bench, "answer_us_p50") <= bench_figure(&bench, "answer_us_p99"));
	assert_true(bench_figure(&bench, "answer_us_p99") <= bench_figure(&bench, "answer_us_max"));
	end(&bench, follower);
}

/* Elements far back are forgotten, and the next run begins anew. */
static void old_elements_are_not_timed(void **state)
{
	static struct sl_answers answers;
	struct sl_share *share = share_open("answers", 4);
	struct sl_follower *follower = follower_open("share:answers");

	assert_int_equal(sl_answers_start(&answers, share), 0);
	for (uint64_t n = 0; n < SL_ANSWER_ELEMENTS + 10; n++)
		sl_answers_committed(&answers, n, 1000 + n);
	for (uint64_t n = 0; n < SL_ANSWER_ELEMENTS + 20; n++)
		assert_int_equal(sl_follow_send(follower, SL_ANSWER_KIND, &n, sizeof(n), 2000), 0);
	for (int i = 0; i < 1000 && answers.messages < SL_ANSWER_ELEMENTS + 20; i++)
		usleep(5000);
	assert_int_equal(answers.messages, SL_ANSWER_ELEMENTS + 20);
	assert_int_equal(sl_histogram_count(&answers.ns), SL_ANSWER_ELEMENTS - 1);
	sl_answers_stop(&answers);
	sl_answers_stop(&answers);
	sl_follow_close(follower);
	sl_share_close(share);
}

static void a_name_that_is_taken_is_refused(void **state)
{
	struct sl_follower *follower;
	struct bench first, second;

	bench_init(&first, &sl_sink_share);
	bench_set(&first, "name", "twice");
	follower = begin(&first);
	bench_init(&second, &sl_sink_share);
	bench_set(&second, "name", "share:twice");
	assert_int_equal(bench_open(&second), -EEXIST);
	assert_int_equal(bench_close(&second), 0);
	assert_int_equal(bench_feed(&first, 0, KEPT), 0);
	assert_int_equal(next(follower), 0);
	end(&first, follower);
	assert_int_equal(bench_open(&second), 0); /* now it is free */
	assert_int_equal(bench_close(&second), 0);
	bench_fini(&second);
}

static void wrong_options_are_refused(void **state)
{
	static const char *const cases[][2] = {{"results", "image,nothing"},
					       {"results", "rawer"},
					       {"name", "a/b"},
					       {"name", ".hidden"}};
	struct bench bench;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bench_init(&bench, &sl_sink_share);
		bench_set(&bench, cases[i][0], cases[i][1]);
		assert_int_equal(bench_open(&bench), -EINVAL);
		assert_int_equal(bench_close(&bench), 0);
		bench_fini(&bench);
	}
	bench_init(&bench, &sl_sink_share);
	bench.env.results = 1; /* raw alone, which is not asked for */
	assert_int_equal(bench_open(&bench), -EINVAL);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

/* As for viewers of any run: what there is. */
static void what_there_is_is_selected(void **state)
{
	struct sl_follower *follower;
	struct bench bench;

	bench_init(&bench, &sl_sink_share);
	bench_set(&bench, "results", "auto");
	assert_int_equal(sl_sink_wants(&sl_sink_share, bench.state) & SL_WANT_RAW, 0);
	assert_true(sl_sink_share.reads(bench.state, "image"));
	follower = begin(&bench);
	assert_non_null(array_of(follower, "image"));
	assert_null(array_of(follower, "raw")); /* there is an image */
	end(&bench, follower);
	bench_init(&bench, &sl_sink_share);
	bench_set(&bench, "results", "auto");
	bench.env.results = 1;
	follower = begin(&bench);
	assert_non_null(array_of(follower, "raw"));
	end(&bench, follower);
	bench_init(&bench, &sl_sink_share);
	bench_set(&bench, "results", "auto");
	bench.env.results = 0;
	assert_int_equal(bench_open(&bench), -EINVAL);
	assert_int_equal(bench_close(&bench), 0);
	bench_fini(&bench);
}

static void a_run_goes_on_without_a_share_where_it_may(void **state)
{
	struct sl_follower *follower;
	struct bench first, second;

	bench_init(&first, &sl_sink_share);
	bench_set(&first, "name", "live");
	follower = begin(&first);
	bench_init(&second, &sl_sink_share);
	bench_set(&second, "name", "live");
	bench_set(&second, "may_lack", "true");
	assert_int_equal(bench_open(&second), 0);
	assert_string_equal(sl_sink_share.where(second.state), "share:live-2");
	assert_int_equal(bench_close(&second), 0);
	bench_fini(&second);
	end(&first, follower);
	for (int i = 0; i < 2; i++) { /* nothing to publish; no memory */
		bench_init(&second, &sl_sink_share);
		bench_set(&second, "may_lack", "true");
		bench_set(&second, "results", "auto");
		if (i)
			bench_set(&second, "count", "1000000");
		else
			second.env.results = 0;
		if (i) {
			second.geometry.modules = 1;
			second.shape[0].dim[0] = 1;
			second.shape[1] = (struct sl_shape){"cube", SL_F64, 3, {4096, 4096, 1024}};
		}
		assert_int_equal(bench_open(&second), 0);
		assert_string_equal(sl_sink_share.where(second.state), "");
		assert_int_equal(sl_sink_share.put(second.state, bench_frame(&second, 0, KEPT)), 0);
		assert_int_equal(bench_figure(&second, "published"), 0);
		assert_int_equal(bench_close(&second), 0);
		bench_fini(&second);
	}
}

static void names_are_selected_whole(void **state)
{
	assert_true(sl_shared_selects("", "image") && !sl_shared_selects("", "raw"));
	assert_true(sl_shared_selects("image, raw", "raw"));
	assert_false(sl_shared_selects("image", "imag"));
	assert_false(sl_shared_selects("imag", "image"));
	assert_true(sl_shared_selects(" peaks ,image", "peaks"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFORMANCE_CASES,
		cmocka_unit_test(followers_get_what_stages_made_of_kept_frames),
		cmocka_unit_test(broken_frames_say_what_they_lack),
		cmocka_unit_test(images_are_assembled_with_gaps),
		cmocka_unit_test(lists_have_as_many_rows_as_their_frame),
		cmocka_unit_test(blocks_of_events_have_a_verdict_for_each),
		cmocka_unit_test(followers_learn_where_the_image_and_its_peaks_are),
		cmocka_unit_test(facts_need_an_image_and_can_be_left_out),
		cmocka_unit_test(one_of_several_frames_is_published),
		cmocka_unit_test(a_viewer_gets_the_latest_now_and_then),
		cmocka_unit_test(a_run_waits_only_where_it_is_asked_to_or_copies_are_few),
		cmocka_unit_test(places_fit_into_memory),
		cmocka_unit_test(what_followers_say_is_taken),
		cmocka_unit_test(answers_are_timed),
		cmocka_unit_test(old_elements_are_not_timed),
		cmocka_unit_test(a_name_that_is_taken_is_refused),
		cmocka_unit_test(wrong_options_are_refused),
		cmocka_unit_test(what_there_is_is_selected),
		cmocka_unit_test(a_run_goes_on_without_a_share_where_it_may),
		cmocka_unit_test(names_are_selected_whole),
	};

	conforming = &sl_sink_share;
	return cmocka_run_group_tests(tests, share_setup, share_teardown);
}
