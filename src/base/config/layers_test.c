/* layers_test.c - defaults under a file, locked keys, and where each value says that it is from. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/config/layers.h"
#include "base/config/node.h"
#include "lib/capture.h"

static struct sl_config *parse(const char *name, const char *text)
{
	struct sl_config *config = NULL;

	assert_int_equal(sl_config_parse(name, text, strlen(text), &config), 0);
	return config;
}

/* A file over a layer, with overrides; settled. */
/* "!": by the program itself. */
static int override(struct sl_config *config, const char *set)
{
	return *set == '!' ? sl_config_override_own(config, set + 1)
			   : sl_config_override(config, set);
}

static struct sl_config *merged(const char *file, const char *layer, const char *const *set)
{
	struct sl_config *config = parse("exp.yaml", file), *under = parse("site.yaml", layer);

	assert_int_equal(sl_config_defaults(config, under->root), 0);
	sl_config_close(under); /* the copies stay */
	for (; set && *set; set++)
		assert_int_equal(override(config, *set), 0);
	sl_config_settle(config);
	return config;
}

static void gives(const char *file, const char *layer, const char *const *set, const char *wanted)
{
	struct sl_config *config = merged(file, layer, set);
	char *text = sl_config_text(config);

	assert_string_equal(text, wanted);
	free(text);
	sl_config_close(config);
}

static void maps_merge_and_lists_stand_whole(void **state)
{
	gives("a: 1\n", "a: 2\nb: 3\n", NULL, "a: 1\nb: 3\n");
	gives("ring: {slots: 8}\n", "ring: {slots: 4, poison: true}\n", NULL,
	      "ring:\n  slots: 8\n  poison: true\n");
	gives("stages: [copy]\n", "stages: [veto, correct]\n", NULL, "stages:\n  - copy\n");
	gives("a: 1\n", "stages: [veto: {x: 1}]\n", NULL, "a: 1\nstages:\n  - veto:\n      x: 1\n");
	gives("stages: []\n", "stages: [veto]\n", NULL, "stages: []\n");
	gives("a: {b: {c: 1}}\n", "a: {b: {d: 2}, e: 3}\n", NULL,
	      "a:\n  b:\n    c: 1\n    d: 2\n  e: 3\n");
}

static void a_section_without_a_value_says_nothing(void **state)
{
	gives("ring:\n", "ring: {slots: 4}\n", NULL, "ring:\n  slots: 4\n");
	gives("stages:\n", "stages: [veto]\n", NULL, "stages:\n  - veto\n");
	gives("ring: {slots: }\n", "ring: {slots: 4}\n", NULL, "ring:\n  slots:\n");
}

static void what_is_of_another_type_stands(void **state)
{
	gives("ring: 5\n", "ring: {slots: 4}\n", NULL, "ring: 5\n");
	gives("ring: {slots: 4}\n", "ring: 5\n", NULL, "ring:\n  slots: 4\n");
	gives("stages: [copy]\n", "stages: {copy: {x: 1}}\n", NULL, "stages:\n  - copy\n");
}

static void defaults_of_a_kind_are_for_that_kind(void **state)
{
	static const char layer[] = "link: {kind: udp, buffer: 5}\n";

	gives("link: {kind: udp}\n", layer, NULL, "link:\n  kind: udp\n  buffer: 5\n");
	gives("link: {pmtu: 1}\n", layer, NULL, "link:\n  pmtu: 1\n  kind: udp\n  buffer: 5\n");
	gives("link: {kind: shm}\n", layer, NULL, "link:\n  kind: shm\n");
	gives("a: 1\n", layer, (const char *const[]){"link.kind=shm", NULL},
	      "a: 1\nlink:\n  kind: shm\n");
	gives("link: {kind: udp}\n", layer, (const char *const[]){"link.kind=shm", NULL},
	      "link:\n  kind: shm\n");
	/* What --set says of such a key is no default any more. */
	gives("a: 1\n", layer, (const char *const[]){"link.kind=shm", "link.buffer=6", NULL},
	      "a: 1\nlink:\n  kind: shm\n  buffer: 6\n");
	gives("link: {kind: shm}\n", "link: {buffer: 5}\n", NULL,
	      "link:\n  kind: shm\n  buffer: 5\n");
}

static void items_of_a_list_get_the_defaults_of_their_add_on(void **state)
{
	static const char file[] = "sinks:\n  - nexus\n  - verify: {a: 1}\n  - nexus: {x: 2}\n"
				   "  - nexus:\n  - [1]\n  - {nexus: 1, b: 2}\n  - nexus: 5\n";
	struct sl_config *config = parse("exp.yaml", file);
	struct sl_config *layer =
		parse("site.yaml", "nexus: {x: 7, y: 8}\nnull: {z: 1}\nverify:\n");
	struct sl_node *list = sl_node_get(config->root, "sinks");
	char *text;

	assert_int_equal(sl_config_item_defaults(config, list, layer->root), 0);
	assert_int_equal(sl_config_item_defaults(config, config->root, layer->root), 0);
	sl_config_close(layer);
	text = sl_config_text_with_origins(config);
	assert_string_equal(text, "sinks:\n"
				  "  - nexus:\n"
				  "      x: 7                               # site.yaml:1\n"
				  "      y: 8                               # site.yaml:1\n"
				  "  - verify:\n"
				  "      a: 1                               # exp.yaml:3\n"
				  "  - nexus:\n"
				  "      x: 2                               # exp.yaml:4\n"
				  "      y: 8                               # site.yaml:1\n"
				  "  - nexus:\n"
				  "      x: 7                               # site.yaml:1\n"
				  "      y: 8                               # site.yaml:1\n"
				  "  - - 1                                  # exp.yaml:6\n"
				  "  - nexus: 1                             # exp.yaml:7\n"
				  "    b: 2                                 # exp.yaml:7\n"
				  "  - nexus: 5                             # exp.yaml:8\n");
	free(text);
	sl_config_close(config);
}

static const char *lock(const char *file, const char *locked, const char *set, int wanted,
			const char *text_wanted)
{
	struct sl_config *config = parse("exp.yaml", file), *layer = parse("site.yaml", locked);
	const char *said;
	char *text;

	if (set)
		assert_int_equal(override(config, set), 0);
	capture_begin();
	assert_int_equal(sl_config_lock(config, layer->root), wanted);
	said = capture_end();
	/* What was replaced is not reported again. */
	assert_int_equal(sl_config_lock(config, layer->root), 0);
	sl_config_close(layer);
	text = sl_config_text(config);
	assert_string_equal(text, text_wanted);
	free(text);
	sl_config_close(config);
	return said;
}

static void locked_keys_hold(void **state)
{
	static const char locked[] = "link:\n  kind: udp\n";
	const char *said;

	assert_string_equal(lock("a: 1\n", locked, NULL, 0, "a: 1\nlink:\n  kind: udp\n"), "");
	assert_string_equal(lock("link: {kind: udp}\n", locked, NULL, 0, "link:\n  kind: udp\n"),
			    "");
	assert_string_equal(lock("link:\n", locked, NULL, 0, "link:\n  kind: udp\n"), "");
	said = lock("link:\n  kind: shm\n  x: 1\n", locked, NULL, -EINVAL,
		    "link:\n  kind: udp\n  x: 1\n");
	assert_non_null(strstr(said, "exp.yaml:2: link.kind: is locked to 'udp' by site.yaml:2"));
	said = lock("a: 1\n", locked, "link.kind=shm", -EINVAL, "a: 1\nlink:\n  kind: udp\n");
	assert_non_null(strstr(said, "--set link.kind: is locked to 'udp' by site.yaml:2"));
	assert_string_equal(
		lock("a: 1\n", locked, "link.kind=udp", 0, "a: 1\nlink:\n  kind: udp\n"), "");
	assert_string_equal(
		lock("a: 1\n", locked, "!link.kind=shm", 0, "a: 1\nlink:\n  kind: shm\n"), "");
	said = lock("link: {token: of-the-user}\n", "link: {token: of-the-site}\n", NULL, -EINVAL,
		    "link:\n  token: of-the-site\n");
	assert_non_null(strstr(said, "link.token: is locked by site.yaml:1, to a value that"));
	assert_null(strstr(said, "of-the-"));
	/* No map where a section belongs: its reader reports that. */
	assert_string_equal(lock("link: 5\n", locked, NULL, 0, "link: 5\n"), "");
}

static void all_contradictions_are_told(void **state)
{
	const char *said = lock("a: 1\nb: 2\nl: [1]\n", "a: 3\nb: 4\nl: [2]\n", NULL, -EINVAL,
				"a: 3\nb: 4\nl:\n  - 2\n");

	assert_non_null(strstr(said, "exp.yaml:1: a: is locked to '3' by site.yaml:1"));
	assert_non_null(strstr(said, "exp.yaml:2: b: is locked to '4' by site.yaml:2"));
	assert_non_null(strstr(said, "exp.yaml:3: l: is locked to another value by site.yaml:3"));
}

static void the_same_value_may_be_written_otherwise(void **state)
{
	static const struct {
		const char *file, *locked;
		bool same;
	} cases[] = {
		{"4Ki", "4096", true},	    {"0x10", "16", true},     {"1.50", "1.5", true},
		{"yes", "true", true},	    {"no", "true", false},    {"a", "b", false},
		{"~", "''", false},	    {"'~'", "~", false},      {"~", "null", true},
		{"[1, 2]", "[1, 2]", true}, {"[1, 2]", "[1]", false}, {"1", "[1]", false},
		{"1e400", "1e401", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char file[64], locked[64];
		struct sl_config *a, *b;

		snprintf(file, sizeof(file), "k: %s\n", cases[i].file);
		snprintf(locked, sizeof(locked), "k: %s\n", cases[i].locked);
		a = parse("a", file);
		b = parse("b", locked);
		if (sl_config_same(a->root, b->root) != cases[i].same)
			fail_msg("%s and %s", cases[i].file, cases[i].locked);
		sl_config_close(a);
		sl_config_close(b);
	}
}

static void of_two_locks_the_first_holds(void **state)
{
	struct sl_config *config = parse("exp.yaml", "x: 1\n");
	struct sl_config *host = parse("host.yaml", "a: 1\n"), *user = parse("user.yaml", "a: 2\n");
	const char *said;

	assert_int_equal(sl_config_lock(config, host->root), 0);
	capture_begin();
	assert_int_equal(sl_config_lock(config, user->root), -EINVAL);
	said = capture_end();
	assert_non_null(strstr(said, "user.yaml:1: a: is locked to '1' by host.yaml:1"));
	assert_string_equal(sl_node_get(config->root, "a")->text, "1");
	sl_config_close(host);
	sl_config_close(user);
	sl_config_close(config);
}

struct renamed {
	uint32_t now;
};

static const struct sl_option renamed[] = {
	{"now", SL_OPTION_U32, SL_OPTION_FIELD(struct renamed, now), "1", 0, 99, "", "", NULL,
	 "before"},
	SL_OPTION_END,
};

/* A former name in the file beats a default by the new name, and not a lock. */
static void former_names_have_their_strength(void **state)
{
	struct renamed filled;
	const struct sl_option_set set = {renamed, &filled};
	struct sl_config *config, *layer = parse("site.yaml", "now: 5\n");
	const char *said;

	for (int locked = 0; locked < 2; locked++) {
		config = parse("exp.yaml", "before: 7\n");
		assert_int_equal(
			(locked ? sl_config_lock : sl_config_defaults)(config, layer->root), 0);
		capture_begin();
		assert_int_equal(sl_config_fill(config, config->root, &set, 1, NULL),
				 locked ? -EINVAL : 0);
		said = capture_end();
		assert_int_equal(filled.now, locked ? 5 : 7);
		/* Two names in one text could not be read again. */
		assert_true(locked || !sl_node_child(config->root, "now"));
		assert_non_null(strstr(said, locked ? "before: is locked to '5' by site.yaml:1"
						    : "is called 'now' now"));
		sl_config_close(config);
	}
	sl_config_close(layer);
}

static void every_value_says_where_it_is_from(void **state)
{
	struct sl_config *config =
		merged("a: 1\nlong_name_of_a_key: a text that is longer than a column\nm: {}\n",
		       "b: 2\n\nl: [x, ~]\n", (const char *const[]){"c.d=3", "!e=4", "b=5", NULL});
	struct sl_config *layer = parse("od\nd\xff.yaml", "z: 1\n"), *again;
	char *text;

	assert_int_equal(sl_config_lock(config, layer->root), 0);
	sl_config_close(layer);
	sl_node_get(config->root, "a")->secret = true;
	text = sl_config_text_with_origins(config);
	assert_string_equal(text,
			    "a: \"(not stored)\"                        # exp.yaml:1\n"
			    "long_name_of_a_key: \"a text that is longer than a column\"  # "
			    "exp.yaml:2\n"
			    "m: {}                                    # exp.yaml:3\n"
			    "b: 5                                     # --set\n"
			    "l:\n"
			    "  - x                                    # site.yaml:3\n"
			    "  - ~                                    # site.yaml:3\n"
			    "c:\n"
			    "  d: 3                                   # --set\n"
			    "e: 4                                     # this program\n"
			    "z: 1                                     # od?d?.yaml:1 (locked)\n");
	/* The comments are comments. */
	again = parse("again.yaml", text);
	free(text);
	sl_node_child(again->root, "a")->text = "1";
	assert_true(sl_config_same(config->root, again->root));
	sl_config_close(again);
	sl_config_close(config);
}

/* Options for every item of a long list would be more than a file may have. */
static void layers_cannot_blow_up_a_file(void **state)
{
	char list[8192] = "l: [", options[16384] = "a: {";
	struct sl_config *config, *layer;

	for (size_t i = 0, at = 4; i < 1000; i++, at += 2)
		strcpy(list + at, "a,");
	strcat(list, "]\n");
	for (size_t i = 0, at = 4; i < 1000; i++)
		at += (size_t)sprintf(options + at, "%03zu: 1,", i);
	strcat(options, "}\n");
	config = parse("exp.yaml", list);
	layer = parse("site.yaml", options);
	capture_begin();
	assert_int_equal(sl_config_item_defaults(config, config->root->child, layer->root), -E2BIG);
	assert_string_equal(capture_end(), "sluice: error: exp.yaml: more than 10000 values, with "
					   "those that site.yaml adds\n");
	sl_config_close(layer);
	sl_config_close(config);
}

static void a_huge_text_is_refused_at_once(void **state)
{
	size_t bytes = 100u << 20;
	char *text = calloc(1, bytes);
	struct sl_config *config = NULL;

	assert_non_null(text);
	capture_begin();
	assert_int_equal(sl_config_parse("huge.yaml", text, bytes, &config), -EFBIG);
	assert_string_equal(capture_end(), "sluice: error: huge.yaml: larger than 1 MiB: this is "
					   "no experiment file\n");
	assert_null(config);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_merge_and_lists_stand_whole),
		cmocka_unit_test(a_section_without_a_value_says_nothing),
		cmocka_unit_test(what_is_of_another_type_stands),
		cmocka_unit_test(defaults_of_a_kind_are_for_that_kind),
		cmocka_unit_test(items_of_a_list_get_the_defaults_of_their_add_on),
		cmocka_unit_test(locked_keys_hold),
		cmocka_unit_test(all_contradictions_are_told),
		cmocka_unit_test(the_same_value_may_be_written_otherwise),
		cmocka_unit_test(of_two_locks_the_first_holds),
		cmocka_unit_test(former_names_have_their_strength),
		cmocka_unit_test(every_value_says_where_it_is_from),
		cmocka_unit_test(layers_cannot_blow_up_a_file),
		cmocka_unit_test(a_huge_text_is_refused_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
