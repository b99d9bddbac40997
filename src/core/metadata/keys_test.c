/* keys_test.c - known keys are checked by their table; free ones are texts, or numbers with units;
 * users are people. */
#include "core/metadata/keys.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct sl_metadata_section section;
static char text[SL_METADATA_VALUE], why[300];
static const char *name;

static int setup(void **state)
{
	memset(&section, 0, sizeof(section));
	return 0;
}

static int check(const char *key, const char *value)
{
	why[0] = 0;
	return sl_metadata_check(&section, key, value, &name, text, why, sizeof(why));
}

static void takes(const char *key, const char *value, const char *as, const char *stored)
{
	if (check(key, value))
		fail_msg("%s=%s: %s", key, value, why);
	assert_string_equal(name, as);
	assert_string_equal(text, stored);
}

static void refuses(const char *key, const char *value, int err, const char *words)
{
	assert_int_equal(check(key, value), err);
	if (!strstr(why, words))
		fail_msg("'%s' is not in: %s", words, why);
}

static void known_keys_have_types_units_and_ranges(void **state)
{
	takes("sample", "lysozyme 3", "sample", "lysozyme 3");
	takes("sample_temperature_K", "100", "sample_temperature_K", "100");
	takes("sample_temperature_K", "77.50 K", "sample_temperature_K", "77.5");
	takes("flux_per_s", "1e12 photons/s", "flux_per_s", "1000000000000");
	takes("exposure_s", "0.0001", "exposure_s", "0.0001");
	takes("source_type", "synchrotron", "source_type", "synchrotron");
	takes("polarization_degree", "0.99", "polarization_degree", "0.99");
	refuses("exposure_s", "100 ms", -EINVAL, "takes a number in s, not 'ms'");
	refuses("exposure_s", "long", -EINVAL, "takes 0..1000000 s");
	refuses("exposure_s", "-1", -ERANGE, "takes 0..1000000 s");
	refuses("polarization_degree", "0.5 %", -EINVAL, "takes a number, not '%'");
	refuses("source_type", "sun", -EINVAL, "synchrotron, fel");
	refuses("title", "two\nlines", -EINVAL, "one line");
	refuses("users", "<a@b>", -EINVAL, "is no user");
}

static void a_default_is_not_set(void **state)
{
	takes("exposure_s", "0", "exposure_s", "");
	takes("source_type", "unknown", "source_type", "");
	takes("polarization_degree", "1", "polarization_degree", "");
	takes("sample", "", "sample", "");
	takes("sample", NULL, "sample", "");
}

static void texts_have_a_length(void **state)
{
	char longest[SL_METADATA_VALUE + 1];

	memset(longest, 'x', sizeof(longest));
	longest[SL_METADATA_NAME] = 0;
	refuses("sample", longest, -ERANGE, "at most 127 bytes");
	longest[SL_METADATA_NAME - 1] = 0;
	takes("sample", longest, "sample", longest);
	memset(longest, 'x', sizeof(longest));
	longest[SL_METADATA_VALUE] = 0;
	refuses("title", longest, -ERANGE, "at most 255 bytes");
	refuses("note", longest, -EINVAL, "at most 1023 bytes");
	longest[SL_METADATA_VALUE - 1] = 0;
	takes("note", longest, "note", longest);
}

static void free_keys_are_any_others(void **state)
{
	takes("ring_current", "199.8 mA", "ring_current", "199.8 mA");
	takes("keys.ring_current", "1", "ring_current", "1");
	takes("point", "3", "point", "3");
	takes("T", "77", "T", "77");
	takes("comment", "two\nlines", "comment", "two\nlines");
	takes("comment",
	      "a\ttab, \xe2\x80\xae"
	      "direction, \xc2\xa0, \xc3\xa9",
	      "comment",
	      "a\ttab, \xe2\x80\xae"
	      "direction, \xc2\xa0, \xc3\xa9");
	refuses("comment", "\x1b[2J", -EINVAL, "no control characters");
	refuses("comment", "a\rb", -EINVAL, "no control characters");
	refuses("comment", "\x7f", -EINVAL, "no control characters");
	refuses("comment",
		"\xc2\x9b"
		"2J",
		-EINVAL, "no control characters");
	refuses("title",
		"\xc2\x9b"
		"2J",
		-EINVAL, "control characters");
	refuses("a b", "x", -EINVAL, "A-Z");
	refuses("", "x", -EINVAL, "A-Z");
	refuses("keys.", "x", -EINVAL, "A-Z");
	refuses("keys.sample", "x", -EINVAL, "without 'keys'");
}

static void a_mistyped_key_is_no_free_one(void **state)
{
	refuses("smaple", "x", -EINVAL,
		"did you mean 'sample'? a free key of this name is keys.smaple");
	refuses("user", "x", -EINVAL, "'users'");
	refuses("exposure", "1", -EINVAL, "'exposure_s'");
	takes("keys.user", "x", "user", "x");
	takes("temperature_K", "77", "temperature_K", "77");
}

static void what_other_sections_set_is_not_typed_twice(void **state)
{
	refuses("wavelength", "1", -EINVAL, "detector.photon_energy_keV");
	refuses("keys.distance_m", "1", -EINVAL, "geometry.distance_m");
	refuses("beam_center_x", "1", -EINVAL, "geometry.beam_column");
}

static void the_exposure_fits_the_frame_rate(void **state)
{
	section.frame_rate_Hz = 200;
	takes("exposure_s", "0.005", "exposure_s", "0.005");
	refuses("exposure_s", "0.006", -EINVAL, "detector.frame_rate_Hz: 200");
	section.frame_rate_Hz = 1.0 / 3;
	takes("exposure_s", "3", "exposure_s", "3");
}

static void locked_keys_stay(void **state)
{
	sl_metadata_set(&section.table, "instrument", "ID30A-3");
	sl_metadata_set(&section.table, "source", "ESRF");
	section.locked = 1;
	refuses("instrument", "mine", -EPERM, "locked");
	refuses("instrument", NULL, -EPERM, "locked");
	takes("source", "other", "source", "other");
}

static void a_table_becomes_known_keys(void **state)
{
	struct sl_metadata_known known;

	sl_metadata_set(&section.table, "sample", "salt");
	sl_metadata_set(&section.table, "flux_per_s", "5");
	sl_metadata_set(&section.table, "source_type", "fel");
	sl_metadata_set(&section.table, "other", "5");
	sl_metadata_read_known(&section.table, &known);
	assert_string_equal(known.sample, "salt");
	assert_true(known.flux_per_s == 5 && known.polarization_degree == 1);
	assert_int_equal(known.source_type, 2);
	assert_string_equal(known.title, "");
}

static void numbers_may_have_units(void **state)
{
	static const struct {
		const char *text;
		double value;
		const char *unit;
	} good[] = {{"199.8 mA", 199.8, "mA"},
		    {"-3", -3, ""},
		    {"+1e5  photons/s", 1e5, "photons/s"},
		    {".5 m", 0.5, "m"},
		    {"0", 0, ""},
		    {"0.25", 0.25, ""},
		    {"12 crystals", 12, "crystals"},
		    {"7 \xc2\xb5m", 7, "\xc2\xb5m"}};
	static const char *const bad[] = {
		"",	 "mA",	   "0042",	 "1.2.3",
		"5mA",	 "nan",	   "inf",	 "0x10",
		"1e999", "3 of 4", "-",		 ".",
		"1e",	 "--1",	   "2026-11-18", "1 a-unit-that-is-longer-than-31-bytes"};
	char unit[SL_METADATA_UNIT];
	double value;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (!sl_metadata_number(good[i].text, &value, unit))
			fail_msg("no number: %s", good[i].text);
		assert_true(value == good[i].value);
		assert_string_equal(unit, good[i].unit);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (sl_metadata_number(bad[i], &value, unit))
			fail_msg("a number: %s", bad[i]);
}

static void users_have_names_mail_and_affiliations(void **state)
{
	struct sl_metadata_user user[SL_METADATA_USERS];

	assert_int_equal(sl_metadata_parse_users("", user, why, sizeof(why)), 0);
	assert_int_equal(sl_metadata_parse_users("Ada Lovelace", user, why, sizeof(why)), 1);
	assert_string_equal(user[0].name, "Ada Lovelace");
	assert_string_equal(user[0].email, "");
	assert_int_equal(
		sl_metadata_parse_users(" Ada <ada@b.org> (Engines, London) ,Bea(X), C <c@d>", user,
					why, sizeof(why)),
		3);
	assert_string_equal(user[0].name, "Ada");
	assert_string_equal(user[0].email, "ada@b.org");
	assert_string_equal(user[0].affiliation, "Engines, London");
	assert_string_equal(user[1].name, "Bea");
	assert_string_equal(user[1].affiliation, "X");
	assert_string_equal(user[2].email, "c@d");
}

static void what_is_no_user_is_refused(void **state)
{
	static const char *const bad[] = {",",
					  "Ada,",
					  "Ada,,Bea",
					  "(X)",
					  "<a@b>",
					  "Ada <a@b",
					  "Ada (X",
					  "Ada (X) Y",
					  "Ada (X) <a@b>",
					  "A <b> <c>",
					  "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q"};
	struct sl_metadata_user user[SL_METADATA_USERS];
	char longest[SL_METADATA_NAME + 1];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (sl_metadata_parse_users(bad[i], user, why, sizeof(why)) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
	memset(longest, 'x', sizeof(longest));
	longest[SL_METADATA_NAME] = 0;
	assert_int_equal(sl_metadata_parse_users(longest, user, why, sizeof(why)), -EINVAL);
	longest[SL_METADATA_NAME - 1] = 0;
	assert_int_equal(sl_metadata_parse_users(longest, user, why, sizeof(why)), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(known_keys_have_types_units_and_ranges, setup),
		cmocka_unit_test_setup(a_default_is_not_set, setup),
		cmocka_unit_test_setup(texts_have_a_length, setup),
		cmocka_unit_test_setup(free_keys_are_any_others, setup),
		cmocka_unit_test_setup(a_mistyped_key_is_no_free_one, setup),
		cmocka_unit_test_setup(what_other_sections_set_is_not_typed_twice, setup),
		cmocka_unit_test_setup(the_exposure_fits_the_frame_rate, setup),
		cmocka_unit_test_setup(locked_keys_stay, setup),
		cmocka_unit_test_setup(a_table_becomes_known_keys, setup),
		cmocka_unit_test_setup(numbers_may_have_units, setup),
		cmocka_unit_test_setup(users_have_names_mail_and_affiliations, setup),
		cmocka_unit_test_setup(what_is_no_user_is_refused, setup),
	};

	return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
