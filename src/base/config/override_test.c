/* override_test.c - trees that are edited, and written as text that reads back the same. */
#include "base/config/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/capture.h"

static const char sample[] = "link: {kind: udp, port: 5}\n"
			     "empty:\n"
			     "stages:\n"
			     "  - correct: {output: i16}\n"
			     "  - veto:\n"
			     "  - mask: {x: 1}\n"
			     "  - mask: {x: 2}\n"
			     "  - {two: 1, keys: 2}\n"
			     "  - word\n";

static struct sl_config *config;

static struct sl_config *parse(const char *text)
{
	struct sl_config *made = NULL;

	if (sl_config_parse("exp.yaml", text, strlen(text), &made))
		fail_msg("did not parse: %s", text);
	return made;
}

static int setup(void **state)
{
	config = parse(sample);
	return 0;
}

static int teardown(void **state)
{
	sl_config_close(config);
	return 0;
}

static void set(const char *assignment)
{
	if (sl_config_override(config, assignment))
		fail_msg("refused: %s", assignment);
}

static void refused(const char *assignment, const char *why)
{
	char *before = sl_config_text(config), *after, line[1024];
	int err;

	capture_begin();
	err = sl_config_override(config, assignment);
	snprintf(line, sizeof(line), "sluice: error: --set%s%.*s: %s\n",
		 strcspn(assignment, "= ") ? " " : "", (int)strcspn(assignment, "= "), assignment,
		 why);
	assert_string_equal(capture_end(), line);
	assert_int_equal(err, -EINVAL);
	after = sl_config_text(config);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static struct sl_node *get(const char *a, const char *b)
{
	return sl_node_get(sl_node_get(config->root, a), b);
}

static struct sl_node *stage(unsigned index)
{
	struct sl_node *item = sl_node_get(config->root, "stages")->child;

	while (index--)
		item = item->next;
	return item;
}

/* ---- overrides ---- */

static void replaces_a_value(void **state)
{
	set("link.port=7");
	assert_string_equal(get("link", "port")->text, "7");
	assert_int_equal(get("link", "port")->line, 0);
	assert_string_equal(get("link", "kind")->text, "udp");
}

static void the_last_one_wins(void **state)
{
	const char *first;

	set("link.port=7");
	first = get("link", "port")->text;
	set("link.port=8");
	assert_string_equal(get("link", "port")->text, "8");
	assert_string_equal(first, "7"); /* strings stay valid until close */
}

static void makes_missing_maps(void **state)
{
	set("a.b.c=1");
	assert_string_equal(sl_node_get(get("a", "b"), "c")->text, "1");
	assert_string_equal(sl_node_get(get("a", "b"), "c")->path, "a.b.c");
	set("link.extra=x");
	assert_string_equal(get("link", "extra")->text, "x");
	set("empty.x=1");
	assert_string_equal(get("empty", "x")->text, "1");
}

static void takes_the_value_as_it_is(void **state)
{
	set("a.b=x=y, [z] # no: comment");
	assert_string_equal(get("a", "b")->text, "x=y, [z] # no: comment");
	set("a.c=");
	assert_string_equal(get("a", "c")->text, "");
	set("top=1");
	assert_string_equal(sl_node_get(config->root, "top")->text, "1");
}

static void reaches_list_items_by_number(void **state)
{
	set("stages[0].correct.output=f32");
	assert_string_equal(sl_node_get(stage(0)->child, "output")->text, "f32");
	set("stages[3].mask.x=9");
	assert_string_equal(sl_node_get(stage(3)->child, "x")->text, "9");
	assert_string_equal(sl_node_get(stage(2)->child, "x")->text, "1");
	set("stages[5]=other");
	assert_string_equal(stage(5)->text, "other");
}

static void reaches_list_items_by_name(void **state)
{
	set("stages.correct.output=f32");
	assert_string_equal(sl_node_get(stage(0)->child, "output")->text, "f32");
	set("stages.veto.threshold=3");
	assert_string_equal(sl_node_get(stage(1)->child, "threshold")->text, "3");
}

static void appends_list_items(void **state)
{
	struct sl_node *stages = sl_node_get(config->root, "stages"), *item = stages->child;

	set("stages[+]=last");
	set("stages[+].share.every=10");
	set("stages.share.name=x"); /* then it has a name */
	set("fresh[+]=1");
	set("fresh[+]=2");
	set("empty[+].a=b");
	while (item->next->next)
		item = item->next;
	assert_string_equal(item->text, "last");
	assert_string_equal(item->path, "stages[6]");
	item = sl_node_get(item->next, "share");
	assert_non_null(item);
	assert_string_equal(sl_node_get(item, "every")->text, "10");
	assert_string_equal(sl_node_get(item, "name")->text, "x");
	assert_int_equal(sl_node_get(item, "name")->origin, SL_ORIGIN_SET);
	item = sl_node_get(config->root, "fresh");
	assert_int_equal(item->kind, SL_NODE_LIST);
	assert_string_equal(item->child->next->text, "2");
	refused("link[+]=x", "only a list takes [+]");
	refused("link.port[+]=x", "only a list takes [+]");
	refused("stages[+][0]=x", "[+] is followed by a name or by the value");
	refused("stages[+][+]=x", "[+] is followed by a name or by the value");
	refused("[+]=x", "the path must start with a name");
	refused("stages[+=x", "a number or + belongs between [ and ]");
	refused("stages[+]x=1", "not of the form path.to.key=value");
}

static void refuses_what_is_no_assignment(void **state)
{
	refused("link.port", "not of the form path.to.key=value");
	refused("", "not of the form path.to.key=value");
	refused("=5", "the path must start with a name");
	refused("[0]=5", "the path must start with a name");
	refused("link..port=5", "the path has an empty name; write path.to.key=value");
	refused(".port=5", "the path has an empty name; write path.to.key=value");
	refused("link.=5", "the path has an empty name; write path.to.key=value");
	refused("stages[x]=5", "a number or + belongs between [ and ]");
	refused("stages[1=5", "a number or + belongs between [ and ]");
	refused("stages[]=5", "a number or + belongs between [ and ]");
	refused("stages[-1]=5", "a number or + belongs between [ and ]");
	refused("stages]=5", "not of the form path.to.key=value");
	refused("stages[0]x=5", "not of the form path.to.key=value");
	refused("stages.[0]=5", "not of the form path.to.key=value");
	refused("!link.port=5", "a key does not begin with '!'");
	refused("link={token: secret}", "that is a section, not a value; set one of its keys");
	refused("link.token secret", "not of the form path.to.key=value");
}

static void refuses_paths_that_do_not_fit(void **state)
{
	refused("link.port.x=5", "the path goes through a value, which has no keys");
	refused("link[0]=5", "only a list takes [number]");
	refused("stages[9]=5", "the list has fewer items; the first is [0]");
	refused("stages[99999999999999999999]=5", "the list has fewer items; the first is [0]");
	refused("stages.none.x=5", "the list has no such item; use its name or [number]");
	refused("stages.two=5", "the list has no such item; use its name or [number]");
	refused("stages.mask.x=5", "the list has two items of that name; use [number]");
	refused("link=5", "that is a section, not a value; set one of its keys");
	refused("stages=5", "that is a section, not a value; set one of its keys");
}

static void refuses_bytes_that_are_no_text(void **state)
{
	static const char *const bad[] = {"a=\xff",	    "a=\xc0\x80",
					  "a=\xed\xa0\x80", "a=\xf8\x80\x80\x80\x80",
					  "a=\xc3",	    "a=\xf4\x90\x80\x80"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		capture_begin();
		assert_int_equal(sl_config_override(config, bad[i]), -EINVAL);
		assert_string_equal(capture_end(),
				    "sluice: error: --set: the assignment is not UTF-8 text\n");
	}
}

static void refuses_a_path_that_is_too_deep(void **state)
{
	const char *why = "the path is deeper than 16 levels";

	capture_begin();
	assert_int_equal(sl_config_override(config, "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1"),
			 -EINVAL);
	assert_non_null(strstr(capture_end(), why));
	set("b.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1"); /* sixteen */
}

static void errors_of_overrides_say_so(void **state)
{
	set("link.port=x");
	capture_begin();
	sl_config_error(config, get("link", "port"), "bad");
	assert_string_equal(capture_end(), "sluice: error: --set link.port: bad\n");
}

/* ---- as text again ---- */

static bool same(const struct sl_node *a, const struct sl_node *b)
{
	if (!a || !b)
		return a == b;
	if (a->kind != b->kind || !a->key != !b->key || strcmp(a->path, b->path))
		return false;
	if (a->key && strcmp(a->key, b->key))
		return false;
	if (a->kind == SL_NODE_SCALAR && strcmp(a->text, b->text))
		return false;
	for (a = a->child, b = b->child; a && b; a = a->next, b = b->next)
		if (!same(a, b))
			return false;
	return !a && !b;
}

static void reads_back(struct sl_config *tree)
{
	char *text = sl_config_text(tree);
	struct sl_config *again;

	assert_non_null(text);
	again = parse(text);
	if (!same(tree->root, again->root))
		fail_msg("not the same tree: %s", text);
	sl_config_close(again);
	free(text);
}

static void text_is_readable(void **state)
{
	char *text;

	set("link.port=7");
	text = sl_config_text(config);
	assert_string_equal(text, "link:\n"
				  "  kind: udp\n"
				  "  port: 7\n"
				  "empty:\n"
				  "stages:\n"
				  "  - correct:\n"
				  "      output: i16\n"
				  "  - veto:\n"
				  "  - mask:\n"
				  "      x: 1\n"
				  "  - mask:\n"
				  "      x: 2\n"
				  "  - two: 1\n"
				  "    keys: 2\n"
				  "  - word\n");
	free(text);
}

static void text_reads_back(void **state)
{
	static const char *const texts[] = {
		"{}\n",
		"a: {}\nb: []\nc: ''\nd:\ne: ~\nf: \"~\"\ng: null\nh: 'null'\ni: \" \"\n",
		"a: [[1, [2, []]], [{}], [{b: [1]}], {c: {d: [e]}}]\n",
		"a: |\n  two\n  lines\nb: >-\n  folded\n  text\nc: \"\\t\\r\\n\\e\\a\\x7f\"\n",
		"'a b': 1\n'#': 2\n'- x': 3\n'---': '---'\n'...': '...'\n'a: b': 'c: d'\n",
		"a: '- x'\nb: '# x'\nc: 'x #y'\nd: '@'\ne: '%'\nf: '!x'\ng: '&x'\nh: '*x'\n",
		"a: -1\nb: -1.5e-3\nc: 1_000\nd: '-'\ne: --\nf: -x\ng: /dev/null\nh: ./x\n",
		"a: 'it''s'\nb: '\"'\nc: '\\'\nd: \"\\\\n\"\ne: 'x: '\nf: ' x'\ng: 'x '\n",
		"a: \"\\u00e9\\u20ac\\U0001F600\\u0085\\u2028\\u2029\\ufeff\\u00a0\\u0080\"\n",
		"\xc3\xa9: \xe2\x82\xac\n",
		"? long key\n: - 1\n  - 2\n",
		"null: 1\n~: 2\ntrue: false\n1: 2\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct sl_config *tree = parse(texts[i]);

		reads_back(tree);
		sl_config_close(tree);
	}
}

static void overrides_read_back(void **state)
{
	static const char *const assignments[] = {
		"a.b=",		 "a.c= ",	    "a.d=null",	     "a.e=~", "a.f=\t\n\r\x01\x7f",
		"a.g=x: y",	 "a.h=[1, 2]",	    "a.i={}",	     "a.j=#", "a.k=\xef\xbb\xbf",
		"a b c.d=e f g", "stages[1].veto=", "empty.x.y=- z",
	};

	for (size_t i = 0; i < sizeof(assignments) / sizeof(assignments[0]); i++) {
		set(assignments[i]);
		reads_back(config);
	}
}

/* Every character of the basic plane that may stand in a text at all. */
static void every_character_reads_back(void **state)
{
	char assignment[16];

	for (unsigned code = 1; code < 0x10000; code += code < 0x3100 ? 1 : 61) {
		/* Blanks around it, which a line break would swallow. */
		char *c = assignment + sprintf(assignment, "a.x=p ");

		if (code >= 0xd800 && code < 0xe000)
			continue;
		if (code >= 0x800)
			*c++ = (char)(0xe0 | code >> 12);
		if (code >= 0x80)
			*c++ = (char)(code >= 0x800 ? 0x80 | (code >> 6 & 0x3f) : 0xc0 | code >> 6);
		*c++ = (char)(code < 0x80 ? code : 0x80 | (code & 0x3f));
		strcpy(c, " q");
		if (code % 256 == 1) { /* keep the tree's memory small */
			teardown(state);
			setup(state);
		}
		set(assignment);
		reads_back(config);
	}
}

static void nulls_stay_nulls(void **state)
{
	struct sl_config *tree = parse("a:\nb: ~\nc: 'null'\nd: null\n");
	char *text = sl_config_text(tree);

	assert_string_equal(text, "a:\nb: ~\nc: \"null\"\nd: null\n");
	free(text);
	sl_config_close(tree);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(replaces_a_value),
		CASE(the_last_one_wins),
		CASE(makes_missing_maps),
		CASE(takes_the_value_as_it_is),
		CASE(reaches_list_items_by_number),
		CASE(reaches_list_items_by_name),
		CASE(appends_list_items),
		CASE(refuses_what_is_no_assignment),
		CASE(refuses_paths_that_do_not_fit),
		CASE(refuses_bytes_that_are_no_text),
		CASE(refuses_a_path_that_is_too_deep),
		CASE(errors_of_overrides_say_so),
		CASE(text_is_readable),
		CASE(text_reads_back),
		CASE(overrides_read_back),
		CASE(every_character_reads_back),
		CASE(nulls_stay_nulls),
	};

	return cmocka_run_group_tests_name("config_override", tests, NULL, NULL);
}
