/* option_test.c - options between text and struct: what is taken, what is refused, what is said. */
#include <sluice/option.h>

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct sample {
	uint32_t slots, any, threads;
	uint64_t bytes;
	double rate_Hz;
	bool verify;
	char path[16];
	uint32_t mode;
	uint32_t fence; /* after the last field: must stay untouched */
};

static const struct sl_option options[] = {
	SL_U32(struct sample, slots, 8, 1, 64, "slots", "how many"),
	SL_U32(struct sample, any, 0, 0, UINT32_MAX, "", "any number"),
	SL_U32_AUTO(struct sample, threads, auto, 16, "threads", "how many at a time"),
	SL_U64(struct sample, bytes, 4Ki, 0, 9007199254740992., "bytes", "how large"),
	SL_F64(struct sample, rate_Hz, 100, 0.5, 1e6, "Hz", "how often"),
	SL_BOOL(struct sample, verify, true, "look again"),
	SL_STRING(struct sample, path, "out.nxs", "where to"),
	SL_CHOICE(struct sample, mode, fast, "slow|fast|fastest", "how"),
	SL_OPTION_END,
};

static struct sample sample;
static char why[256];

static int reset(void **state)
{
	memset(&sample, 0xa5, sizeof(sample));
	sl_options_defaults(options, &sample);
	strcpy(why, "untouched");
	return 0;
}

static int set(const char *name, const char *text)
{
	return sl_option_set(sl_option_find(options, name), &sample, text, why, sizeof(why));
}

/* Refused with this code and explanation, and the struct as it was. */
static void refused(const char *name, const char *text, int code, const char *explanation)
{
	struct sample before = sample;

	if (set(name, text) != code)
		fail_msg("%s: '%s' did not give %d", name, text, code);
	assert_string_equal(why, explanation);
	assert_memory_equal(&sample, &before, sizeof(sample));
}

static void defaults_are_written(void **state)
{
	assert_int_equal(sample.slots, 8);
	assert_int_equal(sample.any, 0);
	assert_int_equal(sample.bytes, 4096);
	assert_true(sample.rate_Hz == 100);
	assert_true(sample.verify);
	assert_string_equal(sample.path, "out.nxs");
	assert_int_equal(sample.mode, 1);
	assert_int_equal(sample.fence, 0xa5a5a5a5);
}

static void set_by_name(void **state)
{
	struct sample before;

	assert_int_equal(sl_options_set(options, &sample, "slots", "16", why, sizeof(why)), 0);
	assert_int_equal(sample.slots, 16);
	before = sample;
	assert_int_equal(sl_options_set(options, &sample, "slots", "0", why, sizeof(why)), -ERANGE);
	assert_int_equal(sl_options_set(options, &sample, "slot", "16", why, sizeof(why)), -ENOENT);
	assert_memory_equal(&sample, &before, sizeof(sample));
}

static void find_by_name(void **state)
{
	assert_ptr_equal(sl_option_find(options, "bytes"), &options[3]);
	assert_null(sl_option_find(options, "byte"));
	assert_null(sl_option_find(options, ""));
}

static void whole_numbers(void **state)
{
	assert_int_equal(set("slots", "1"), 0);
	assert_int_equal(sample.slots, 1);
	assert_int_equal(set("slots", "64"), 0);
	assert_int_equal(sample.slots, 64);
	assert_int_equal(set("slots", "0x10"), 0);
	assert_int_equal(sample.slots, 16);
	assert_int_equal(set("slots", "010"), 0);
	assert_int_equal(sample.slots, 10); /* not octal */
	assert_int_equal(set("any", "4294967295"), 0);
	assert_int_equal(sample.any, UINT32_MAX);
	assert_int_equal(set("bytes", "9007199254740992"), 0);
	assert_int_equal(sample.bytes, UINT64_C(1) << 53);
}

static void suffixes(void **state)
{
	assert_int_equal(set("bytes", "3k"), 0);
	assert_int_equal(sample.bytes, 3000);
	assert_int_equal(set("bytes", "3Ki"), 0);
	assert_int_equal(sample.bytes, 3072);
	assert_int_equal(set("bytes", "2M"), 0);
	assert_int_equal(sample.bytes, 2000000);
	assert_int_equal(set("bytes", "2Mi"), 0);
	assert_int_equal(sample.bytes, 2 << 20);
	assert_int_equal(set("bytes", "5G"), 0);
	assert_int_equal(sample.bytes, UINT64_C(5000000000));
	assert_int_equal(set("bytes", "5Gi"), 0);
	assert_int_equal(sample.bytes, UINT64_C(5) << 30);
	assert_int_equal(set("rate_Hz", "1.5k"), 0);
	assert_true(sample.rate_Hz == 1500);
}

static void not_whole_numbers(void **state)
{
	static const char *const texts[] = {
		"",	 "x",	"-1",  "+1",   " 1",  "1 ",   "1.5", "1e3", "0x", "0xg", "0x0x1",
		"1_000", "0b1", "1kk", "0x1k", "3ki", "3KiB", "3b",  "nan", "k",  "1,0", "٣",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		refused("slots", texts[i], -EINVAL, "takes 1..64 slots");
}

static void whole_numbers_out_of_range(void **state)
{
	refused("slots", "0", -ERANGE, "takes 1..64 slots");
	refused("slots", "65", -ERANGE, "takes 1..64 slots");
	refused("slots", "18446744073709551616", -ERANGE, "takes 1..64 slots");
	refused("slots", "4294967297", -ERANGE, "takes 1..64 slots"); /* 1, if cut to 32 bits */
	refused("any", "4294967296", -ERANGE, "takes 0..4294967295");
	refused("bytes", "18446744073709551615", -ERANGE, "takes 0..9007199254740992 bytes");
	refused("bytes", "99999999999G", -ERANGE, "takes 0..9007199254740992 bytes");
	refused("any", "0xfffffffffffffffff", -ERANGE, "takes 0..4294967295");
}

/* A table's range may be wider than its type; the type's holds as well. */
static void ranges_wider_than_the_type(void **state)
{
	const struct sl_option u32 = SL_U32(struct sample, any, 0, 0, 1e12, "", "any");
	const struct sl_option f64 = SL_F64(struct sample, rate_Hz, 0, 0, HUGE_VAL, "", "any");

	assert_int_equal(sl_option_set(&u32, &sample, "4294967296", NULL, 0), -ERANGE);
	assert_int_equal(sl_option_set(&u32, &sample, "4294967295", NULL, 0), 0);
	assert_int_equal(sl_option_set(&f64, &sample, "1e999", NULL, 0), -ERANGE);
	assert_int_equal(sl_option_set(&f64, &sample, "1e300", NULL, 0), 0);
}

static void real_numbers(void **state)
{
	assert_int_equal(set("rate_Hz", "0.5"), 0);
	assert_true(sample.rate_Hz == 0.5);
	assert_int_equal(set("rate_Hz", "1e6"), 0);
	assert_true(sample.rate_Hz == 1e6);
	assert_int_equal(set("rate_Hz", "+12.25"), 0);
	assert_true(sample.rate_Hz == 12.25);
	assert_int_equal(set("rate_Hz", ".75"), 0);
	assert_true(sample.rate_Hz == 0.75);
}

static void not_real_numbers(void **state)
{
	static const char *const texts[] = {"",	    ".",     "-",   "fast",    "nan", "inf",
					    "-inf", "1.2.3", "1e",  " 1",      "1 ",  "0x10",
					    "1,5",  "--1",   "NAN", "infinity"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		refused("rate_Hz", texts[i], -EINVAL, "takes 0.5..1000000 Hz");
	refused("rate_Hz", "0.49", -ERANGE, "takes 0.5..1000000 Hz");
	refused("rate_Hz", "-1", -ERANGE, "takes 0.5..1000000 Hz");
	refused("rate_Hz", "1e300", -ERANGE, "takes 0.5..1000000 Hz");
	refused("rate_Hz", "1e999", -ERANGE, "takes 0.5..1000000 Hz");
}

static void truths(void **state)
{
	static const char *const yes[] = {"true", "yes", "on"}, *const no[] = {"false", "no",
									       "off"};

	for (int i = 0; i < 3; i++) {
		assert_int_equal(set("verify", no[i]), 0);
		assert_false(sample.verify);
		assert_int_equal(set("verify", yes[i]), 0);
		assert_true(sample.verify);
	}
	refused("verify", "maybe", -EINVAL, "takes true or false");
	refused("verify", "1", -EINVAL, "takes true or false");
	refused("verify", "", -EINVAL, "takes true or false");
	refused("verify", "truex", -EINVAL, "takes true or false");
}

static void strings(void **state)
{
	assert_int_equal(set("path", ""), 0);
	assert_string_equal(sample.path, "");
	assert_int_equal(set("path", "123456789012345"), 0);
	assert_string_equal(sample.path, "123456789012345");
	refused("path", "1234567890123456", -ERANGE, "takes text of at most 15 bytes");
}

/* Structs are compared and hashed as bytes: nothing of an old text may remain. */
static void a_shorter_string_leaves_nothing_behind(void **state)
{
	static const char empty[16];

	assert_int_equal(set("path", "123456789012345"), 0);
	assert_int_equal(set("path", ""), 0);
	assert_memory_equal(sample.path, empty, sizeof(empty));
}

static void outputs_are_texts_of_their_own_type(void **state)
{
	struct files {
		char path[8];
	} s;
	const struct sl_option table[] = {SL_OUTPUT(struct files, path, "a.nxs", "a file"),
					  SL_OPTION_END};
	char text[64], why[64];

	sl_options_defaults(table, &s);
	assert_string_equal(s.path, "a.nxs");
	assert_int_equal(sl_options_check(table, sizeof(s), why, sizeof(why)), 0);
	assert_int_equal(sl_options_set(table, &s, "path", "b/c.nxs", NULL, 0), 0);
	sl_option_print(table, &s, text, sizeof(text));
	assert_string_equal(text, "b/c.nxs");
	assert_int_equal(sl_options_set(table, &s, "path", "12345678", why, sizeof(why)), -ERANGE);
	assert_string_equal(why, "takes path of at most 7 bytes");
}

static void choices(void **state)
{
	assert_int_equal(set("mode", "slow"), 0);
	assert_int_equal(sample.mode, 0);
	assert_int_equal(set("mode", "fastest"), 0);
	assert_int_equal(sample.mode, 2);
	refused("mode", "fas", -EINVAL, "takes slow, fast or fastest");
	refused("mode", "", -EINVAL, "takes slow, fast or fastest");
	refused("mode", "slow|fast", -EINVAL, "takes slow, fast or fastest");
	refused("mode", "Slow", -EINVAL, "takes slow, fast or fastest");
}

/* The word is a value of its own, 0, and none of the numbers. */
static void a_number_or_auto(void **state)
{
	assert_int_equal(sample.threads, 0);
	assert_int_equal(set("threads", "3"), 0);
	assert_int_equal(sample.threads, 3);
	assert_int_equal(set("threads", "auto"), 0);
	assert_int_equal(sample.threads, 0);
	refused("threads", "0", -ERANGE, "takes 1..16 threads or auto");
	refused("threads", "17", -ERANGE, "takes 1..16 threads or auto");
	refused("threads", "automatic", -EINVAL, "takes 1..16 threads or auto");
	refused("slots", "auto", -EINVAL, "takes 1..64 slots");
}

/* A word that a number could mean, too, or several words. */
static void words_that_do_not_fit_a_number(void **state)
{
	struct sl_option wrong[] = {SL_U32_AUTO(struct sample, threads, auto, 16, "", "threads"),
				    SL_OPTION_END};

	assert_int_equal(sl_options_check(wrong, sizeof(struct sample), why, sizeof(why)), 0);
	wrong[0].min = 0;
	assert_int_equal(sl_options_check(wrong, sizeof(struct sample), why, sizeof(why)), -EINVAL);
	wrong[0].min = 1;
	wrong[0].choices = "auto|all";
	assert_int_equal(sl_options_check(wrong, sizeof(struct sample), why, sizeof(why)), -EINVAL);
	wrong[0].choices = "auto";
	wrong[0].type = SL_OPTION_U64;
	assert_int_equal(sl_options_check(wrong, sizeof(struct sample), why, sizeof(why)), -EINVAL);
}

static void printed(const char *name, const char *text, const char *expected)
{
	char out[64];

	assert_int_equal(set(name, text), 0);
	sl_option_print(sl_option_find(options, name), &sample, out, sizeof(out));
	assert_string_equal(out, expected);
}

static void values_print_as_one_would_write_them(void **state)
{
	printed("slots", "0x10", "16");
	printed("threads", "auto", "auto");
	printed("threads", "2", "2");
	printed("bytes", "4Ki", "4096");
	printed("bytes", "9007199254740991", "9007199254740991");
	printed("rate_Hz", "12.4", "12.4");
	printed("rate_Hz", "100", "100");
	printed("rate_Hz", "0.6666666666666666", "0.6666666666666666");
	printed("verify", "no", "false");
	printed("verify", "on", "true");
	printed("path", "a b", "a b");
	printed("mode", "slow", "slow");
	printed("mode", "fastest", "fastest");
}

static void print_respects_the_buffer(void **state)
{
	char out[8] = "1234567";

	assert_int_equal(set("bytes", "123456789"), 0);
	sl_option_print(sl_option_find(options, "bytes"), &sample, out, 4);
	assert_string_equal(out, "123");
	assert_int_equal(out[4], '5');
}

static void takes_respects_the_buffer(void **state)
{
	char out[16];

	for (const struct sl_option *o = options; o->name; o++)
		for (size_t n = 0; n < 12; n++) {
			memset(out, 'x', sizeof(out));
			sl_option_takes(o, out, n);
			for (size_t i = n; i < sizeof(out); i++)
				assert_int_equal(out[i], 'x');
			if (n)
				assert_true(strlen(out) < n);
		}
}

static void why_may_be_null(void **state)
{
	assert_int_equal(sl_option_set(&options[0], &sample, "x", NULL, 0), -EINVAL);
}

static void two_choices_read_well(void **state)
{
	const struct sl_option option = SL_CHOICE(struct sample, mode, udp, "udp|shm", "link");
	char out[64];

	sl_option_takes(&option, out, sizeof(out));
	assert_string_equal(out, "udp or shm");
}

#define CASE(f) cmocka_unit_test_setup(f, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(defaults_are_written),
		CASE(find_by_name),
		CASE(set_by_name),
		CASE(whole_numbers),
		CASE(suffixes),
		CASE(not_whole_numbers),
		CASE(whole_numbers_out_of_range),
		CASE(ranges_wider_than_the_type),
		CASE(real_numbers),
		CASE(not_real_numbers),
		CASE(truths),
		CASE(strings),
		CASE(a_shorter_string_leaves_nothing_behind),
		CASE(outputs_are_texts_of_their_own_type),
		CASE(choices),
		CASE(a_number_or_auto),
		CASE(words_that_do_not_fit_a_number),
		CASE(values_print_as_one_would_write_them),
		CASE(print_respects_the_buffer),
		CASE(takes_respects_the_buffer),
		CASE(why_may_be_null),
		CASE(two_choices_read_well),
	};

	return cmocka_run_group_tests_name("option", tests, NULL, NULL);
}
