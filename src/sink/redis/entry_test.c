/* entry_test.c - what Redis is told about a frame, byte by byte. */
#include <math.h>

#include "sink/redis/entry.h"
#include "sink/testing.h"

static float profile[20];
static float vector[3] = {1.5f, -2, 0.1f};
static uint32_t found = 4294967295u;
static int16_t ragged[4][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
static double nothing = 0.1;

static const struct sl_shape shapes[] = {
	{"image", SL_I16, 3, {MODULES, ROWS, COLUMNS}, .image = 1},
	{"found", SL_U32, 1, {1}},
	{"vector", SL_F32, 1, {3}},
	{"profile", SL_F32, 1, {20}},
	{"list", SL_I16, 2, {4, 2}, .ragged = 1},
	{"score", SL_F64, 0, {0}},
	{"large", SL_F32, 1, {1000}},
	{"huge", SL_F64, 1, {100000}},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static struct sl_env env = {.result = shapes, .results = SHAPES};

/* A number in a command, which no zero ends; *at: behind it. */
static long number_at(char **at, const char *end)
{
	long number = 0;

	for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
		number = 10 * number + (**at - '0');
	return number;
}

/* The command as its arguments, with blanks between them and '.' for bytes that are no text. */
static const char *arguments(const struct sl_command *command)
{
	static char text[4096];
	char *end = command->bytes + command->length, *at = command->bytes;
	long count;
	size_t n = 0;

	assert_int_equal(command->error, 0);
	assert_int_equal(*at++, '*');
	count = number_at(&at, end);
	for (long i = 0; i < count; i++) {
		long length;

		assert_memory_equal(at, "\r\n$", 3);
		at += 3;
		length = number_at(&at, end);
		assert_memory_equal(at, "\r\n", 2);
		at += 2;
		if (i)
			text[n++] = ' ';
		for (long b = 0; b < length; b++, at++)
			text[n++] = *at > ' ' && *at < 127 ? *at : '.';
	}
	assert_memory_equal(at, "\r\n", 2);
	assert_ptr_equal(at + 2, end);
	text[n] = 0;
	return text;
}

static struct sl_frame *frame_of(struct bench *bench, enum kind kind)
{
	struct sl_frame *frame = bench_frame(bench, 7, kind);
	void *const host[SHAPES] = {bench->image, &found,   vector, profile,
				    ragged,	  &nothing, NULL,   NULL};

	frame->results = frame->results ? SHAPES : 0;
	for (uint32_t i = 0; i < SHAPES; i++)
		frame->result[i] =
			(struct sl_array){.shape = shapes[i], .host = host[i], .rows = 3};
	return frame;
}

static void frame_is(const char *selection, bool kept_only, uint64_t max_rows, enum kind kind,
		     const char *wanted)
{
	struct sl_entry entry = {.stream = "a:b:frames",
				 .max_rows = max_rows,
				 .modules = MODULES,
				 .kept_only = kept_only,
				 .number = 11,
				 .ms = 1700000000123};
	struct sl_command command = {0};
	struct bench bench;
	extern const struct sl_sink sl_sink_null;

	bench_init(&bench, &sl_sink_null);
	assert_int_equal(sl_entry_select(&entry, &env, selection), 0);
	sl_entry_frame(&entry, frame_of(&bench, kind), kind == KEPT ? 5 : -1, &command);
	assert_string_equal(arguments(&command), wanted);
	sl_command_free(&command);
	bench_fini(&bench);
}

static void rows_of_every_kind(void **state)
{
	(void)state;
	frame_is("none", false, 0, KEPT,
		 "XADD a:b:frames 1700000000123-12 sequence 7 frame_number 8 timestamp 8000017 "
		 "keep 1 score 3.5 reason bright_pixels outcome stored image_index 5");
	frame_is("none", false, 100, VETOED,
		 "XADD a:b:frames MAXLEN ~ 100 1700000000123-12 sequence 7 frame_number 8 "
		 "timestamp 8000017 keep 0 score 3.5 reason bright_pixels outcome vetoed/stage");
	frame_is("none", false, 0, DARK,
		 "XADD a:b:frames 1700000000123-12 sequence 7 frame_number 8 timestamp 8000017 "
		 "keep 0 score 3.5 reason dark outcome vetoed/dark");
	frame_is("found", false, 0, DAMAGED,
		 "XADD a:b:frames 1700000000123-12 sequence 7 frame_number 8 timestamp 8000017 "
		 "keep 0 score 3.5 reason bright_pixels outcome "
		 "incomplete/partner,incomplete/damaged");
	frame_is("found", false, 0, LOST,
		 "XADD a:b:frames 1700000000123-12 sequence 7 frame_number 0 timestamp 0 keep 0 "
		 "score 3.5 reason bright_pixels outcome lost/no_arrival");
}

#define ROW                                                                                    \
	"XADD a:b:frames 1700000000123-12 sequence 7 frame_number 8 timestamp 8000017 keep 1 " \
	"score 3.5 reason bright_pixels outcome stored image_index 5 "
#define VETO                                                                                   \
	"XADD a:b:frames 1700000000123-12 sequence 7 frame_number 8 timestamp 8000017 keep 0 " \
	"score 3.5 reason bright_pixels outcome vetoed/stage"

static void results_as_text_and_bytes(void **state)
{
	(void)state;
	memset(profile, 'p', sizeof(profile));
	/* "list" has 3 of 4 rows; "score" is the name of a field of the row already. */
	frame_is("", false, 0, KEPT,
		 ROW "found 4294967295 vector 1.5,-2,0.100000001 profile "
		     "ppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp"
		     "ppp list ............ result_score 0.10000000000000001");
	frame_is("vector, found,vector", false, 0, KEPT,
		 ROW "vector 1.5,-2,0.100000001 found 4294967295");
	frame_is("found", false, 0, VETOED, VETO " found 4294967295");
	frame_is("found", true, 0, VETOED, VETO);
	frame_is("found", true, 0, KEPT, ROW "found 4294967295");
	/* A result that is not in host memory: the row is there all the same. */
	frame_is("large", false, 0, VETOED, VETO);
}

static void floats_are_exact(void **state)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {{0, "0"},
		    {-0.0, "-0"},
		    {-7, "-7"},
		    {999999999999999, "999999999999999"},
		    {1e15, "1000000000000000"},
		    {1e300, "1.0000000000000001e+300"},
		    {-0.5, "-0.5"},
		    {NAN, "nan"},
		    {INFINITY, "inf"}};
	const struct sl_shape shape = {"x", SL_F64, 0, {0}};
	const struct sl_env one = {.result = &shape, .results = 1};
	struct sl_entry entry = {.stream = "s", .modules = MODULES};
	extern const struct sl_sink sl_sink_null;

	(void)state;
	assert_int_equal(sl_entry_select(&entry, &one, ""), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sl_command command = {0};
		struct bench bench;
		double value = rows[i].value;

		bench_init(&bench, &sl_sink_null);
		bench_frame(&bench, 0, KEPT)->result[0] =
			(struct sl_array){.shape = shape, .host = &value};
		sl_entry_frame(&entry, &bench.frame, 0, &command);
		assert_string_equal(strrchr(arguments(&command), ' ') + 1, rows[i].text);
		sl_command_free(&command);
		bench_fini(&bench);
	}
}

static void only_small_results_can_be_selected(void **state)
{
	static const char *const wrong[] = {"image", "huge", "nothing", "found,image",
					    "none,found"};
	struct sl_entry entry = {.stream = "x"};

	(void)state;
	sl_log_level(SL_LOG_ERROR - 1);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(sl_entry_select(&entry, &env, wrong[i]), -EINVAL);
	assert_int_equal(sl_entry_select(&entry, &env, ""), 0);
	assert_int_equal(entry.results, 5);
	assert_int_equal(sl_entry_select(&entry, &env, "large"), 0);
	assert_int_equal(entry.results, 1);
	assert_false(entry.result[0].text);
	sl_log_level(SL_LOG_INFO);
}

static void shapes_are_described(void **state)
{
	char text[SL_ENTRY_DESCRIPTION];

	(void)state;
	sl_entry_describe(&shapes[2], true, text);
	assert_string_equal(text, "float32 (3) text");
	sl_entry_describe(&shapes[4], false, text);
	assert_string_equal(text, "int16 (rows,2) bytes");
	sl_entry_describe(&shapes[5], true, text);
	assert_string_equal(text, "float64 () text");
}

static void the_last_entry(void **state)
{
	struct sl_entry entry = {.stream = "s", .max_rows = 9, .number = 3, .ms = 5};
	struct sl_command command = {0};

	(void)state;
	sl_entry_end(&entry, 3, 1, &command);
	assert_string_equal(arguments(&command),
			    "XADD s MAXLEN ~ 9 5-4 end 1 frames 3 rows_missed 1");
	sl_command_free(&command);
}

static void numbers_of_any_length(void **state)
{
	char text[20];

	(void)state;
	assert_int_equal(sl_digits(0, text), 1);
	assert_memory_equal(text, "0", 1);
	assert_int_equal(sl_digits(UINT64_MAX, text), 20);
	assert_memory_equal(text, "18446744073709551615", 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_every_kind),
		cmocka_unit_test(results_as_text_and_bytes),
		cmocka_unit_test(floats_are_exact),
		cmocka_unit_test(only_small_results_can_be_selected),
		cmocka_unit_test(shapes_are_described),
		cmocka_unit_test(the_last_entry),
		cmocka_unit_test(numbers_of_any_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
