/* counts_test.c - what a source says it sent, beside the rows of a run. */
#include "audit/counts.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sluice/outcome.h>

static int read_text(const char *text, struct sl_counts *counts, char *why)
{
	FILE *file = fmemopen((void *)text, strlen(text), "r");
	int r;

	assert_non_null(file);
	r = sl_counts_read(file, counts, why, 256);
	fclose(file);
	return r;
}

static void refused(const char *text, const char *says)
{
	struct sl_counts counts;
	char why[256] = "";

	assert_int_equal(read_text(text, &counts, why), -EBADMSG);
	if (!strstr(why, says))
		fail_msg("'%s' is not in '%s'", says, why);
	sl_counts_free(&counts);
}

static void what_is_no_account_is_refused_by_its_line(void **state)
{
	(void)state;
	refused("# nothing\n", "no line 'module'");
	refused("sluice counts 1\nmodule 64 first 0 count 1\n", "line 2");
	refused("module 0 first 0 count -1\n", "line 1: not understood");
	refused("module 0 first 0 count 99999999999999999999\n", "line 1");
	refused("module 0 first 1 count 18446744073709551615\n", "must grow");
	refused("module 0 first 0 count 5\nmodule 0 first 4 count 5\n", "line 2: sequences");
	refused("module 0 first 0 count 5\ncrc 0 3 0000000g\n", "line 2");
	refused("module 0 first 0 count 5\ncrc 0 3 123\n", "line 2");
	refused("module 0 first 0 count 5\ncrc 0 3 00000000\ncrc 0 3 00000000\n", "line 3");
	refused("module 0 first 0 count 5\nleft_out 0 3\nleft_out 0 2\n", "line 3");
	refused("module 0 first 0 count 5 more\n", "line 1");
	refused("left_out 1 3\nmodule 0 first 0 count 5\n", "no line 'module'");
}

/* ---- rows ---- */

struct heard {
	char text[4096];
};

static void hear(void *arg, uint32_t module, uint64_t sequence, const char *text)
{
	struct heard *heard = arg;
	size_t at = strlen(heard->text);

	snprintf(heard->text + at, sizeof(heard->text) - at, "%u %llu %s\n", module,
		 (unsigned long long)sequence, text);
}

/* Rows of one module: sequences, each with an outcome; UINT64_MAX ends. Checksums are 0x100 + the
 * sequence. */
static void compare(const char *text, const uint64_t *sequence, uint8_t outcome, const char *wanted,
		    uint64_t sent, uint64_t compared)
{
	struct heard heard = {""};
	struct sl_counts counts;
	char why[256];

	assert_int_equal(read_text(text, &counts, why), 0);
	assert_int_equal(counts.sent, sent);
	for (; *sequence != UINT64_MAX; sequence++) {
		const uint32_t crc = 0x100 + (uint32_t)*sequence;
		const uint8_t none = 0;
		const struct sl_leaf leaf = {.modules = 1,
					     .source_known = 1,
					     .module_sequence = sequence,
					     .outcome = &outcome,
					     .cause = &none,
					     .source_crc = &crc};

		sl_counts_row(&counts, &leaf, hear, &heard);
	}
	sl_counts_end(&counts, 1, hear, &heard);
	assert_string_equal(heard.text, wanted);
	assert_int_equal(counts.compared, compared);
	sl_counts_free(&counts);
}

#define ROWS(...) ((const uint64_t[]){__VA_ARGS__, UINT64_MAX})

static void every_module_frame_of_the_source_has_one_row(void **state)
{
	(void)state;
	compare("module 0 first 0 count 4\ncrc 0 1 00000101\ncrc 0 3 00000103\n", ROWS(0, 1, 2, 3),
		SL_STORED, "", 4, 2);
	compare("module 0 first 0 count 4\n", ROWS(0, 3), SL_STORED,
		"0 1 the source sent it and the 1 behind it, the run has no rows about them\n", 4,
		0);
	compare("module 0 first 0 count 4\n", ROWS(0, 1, 1, 2, 3), SL_STORED,
		"0 1 the run has a second row about it\n", 4, 0);
	compare("module 0 first 2 count 2\n", ROWS(1, 2, 3, 4), SL_STORED,
		"0 1 the run has a row about it, the source did not send it\n"
		"0 4 the run has a row about it, the source did not send it\n",
		2, 0);
	compare("module 0 first 0 count 2\ncrc 0 1 00000000\n", ROWS(0, 1), SL_STORED,
		"0 1 the source's checksum is 00000000 by its own account, 00000101 in the run\n",
		2, 0);
	compare("module 0 first 0 count 2\nmodule 1 first 7 count 1\n", ROWS(0, 1), SL_STORED,
		"1 7 the source counts it, the run has no such module\n", 3, 0);
}

static void what_was_left_out_may_be_lost_and_nothing_else(void **state)
{
	static const char text[] = "left_out 0 1\nmodule 0 first 0 count 3\n";

	(void)state;
	compare(text, ROWS(0, 1, 2), SL_LOST, "", 2, 0);
	compare(text, ROWS(0, 2), SL_STORED, "", 2, 0);
	compare(text, ROWS(0, 1, 2), SL_STORED,
		"0 1 the source left it out, the run says that it came\n", 2, 0);
}

/* A front end that went away and came back. */
static void ranges_may_have_gaps(void **state)
{
	static const char text[] = "sluice counts 1\nmodule 0 first 0 count 2\n"
				   "sluice counts 1\nmodule 0 first 5 count 2\n";

	(void)state;
	compare(text, ROWS(0, 1, 5, 6), SL_STORED, "", 4, 0);
	compare(text, ROWS(0, 6), SL_STORED,
		"0 1 the source sent it, the run has no row about it\n"
		"0 5 the source sent it, the run has no row about it\n",
		4, 0);
	compare("module 0 first 0 count 18446744073709551614\n", ROWS(0), SL_STORED,
		"0 1 the source sent it and the 18446744073709551612 behind it, the run has no "
		"rows "
		"about them\n",
		UINT64_MAX - 1, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_account_is_refused_by_its_line),
		cmocka_unit_test(every_module_frame_of_the_source_has_one_row),
		cmocka_unit_test(what_was_left_out_may_be_lost_and_nothing_else),
		cmocka_unit_test(ranges_may_have_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
