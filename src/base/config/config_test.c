/* config_test.c - experiment files good and bad: the tree, the structs, and what the user is told.
 */
#include "base/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/capture.h"

struct sample {
	uint32_t modules, port;
	double rate_Hz;
	bool verify;
	char listen[16];
	uint32_t mode;
};

static const struct sl_option shared[] = {
	SL_U32(struct sample, modules, 2, 1, 64, "modules", "how many"),
	SL_F64(struct sample, rate_Hz, 100, 0.5, 1e6, "Hz", "how often"),
	SL_OPTION_END,
};

static const struct sl_option own[] = {
	SL_STRING(struct sample, listen, "127.0.0.1", "where"),
	SL_U32(struct sample, port, 4791, 1, 65535, "", "which"),
	SL_BOOL(struct sample, verify, false, "look again"),
	SL_CHOICE(struct sample, mode, slow, "slow|fast", "how"),
	SL_OPTION_END,
};

static struct sample sample;

static struct sl_config *parse(const char *text)
{
	struct sl_config *config = NULL;

	if (sl_config_parse("exp.yaml", text, strlen(text), &config))
		fail_msg("did not parse: %s", text);
	return config;
}

/* The text must be refused, with exactly these lines on stderr. */
static void refused_bytes(const char *text, size_t bytes, const char *message)
{
	struct sl_config *config = (void *)0x1;
	int err;

	capture_begin();
	err = sl_config_parse("exp.yaml", text, bytes, &config);
	assert_string_equal(capture_end(), message);
	assert_int_equal(err, -EINVAL);
	assert_ptr_equal(config, (void *)0x1); /* outputs are set only on success */
}

static void refused(const char *text, const char *message)
{
	refused_bytes(text, strlen(text), message);
}

static struct sl_node *at(struct sl_config *config, const char *a, const char *b)
{
	struct sl_node *node = sl_node_get(config->root, a);

	return b ? sl_node_get(node, b) : node;
}

static int fill(const char *text, const char *const *also, const char **said)
{
	struct sl_config *config = parse(text);
	const struct sl_option_set sets[] = {{shared, &sample}, {own, &sample}};
	int err;

	memset(&sample, 0xa5, sizeof(sample));
	capture_begin();
	err = sl_config_fill(config, at(config, "s", NULL), sets, 2, also);
	*said = capture_end();
	sl_config_close(config);
	return err;
}

static void complains(const char *text, const char *message)
{
	const char *said;

	assert_int_equal(fill(text, NULL, &said), -EINVAL);
	assert_string_equal(said, message);
}

/* ---- the tree ---- */

static void maps_lists_and_scalars(void **state)
{
	struct sl_config *config = parse("a: {b: 1, c: [x, 'y z']}\nd: text\n");
	struct sl_node *list = at(config, "a", "c");

	assert_int_equal(config->root->kind, SL_NODE_MAP);
	assert_string_equal(at(config, "a", "b")->text, "1");
	assert_int_equal(list->kind, SL_NODE_LIST);
	assert_string_equal(list->child->text, "x");
	assert_string_equal(list->child->next->text, "y z");
	assert_null(list->child->next->next);
	assert_string_equal(at(config, "d", NULL)->text, "text");
	assert_null(at(config, "e", NULL));
	assert_null(at(config, "d", "x"));
	sl_config_close(config);
}

static void nodes_know_path_and_line(void **state)
{
	struct sl_config *config = parse("link:\n  listen: x\n\nstages:\n  - correct: {}\n"
					 "  - veto:\n      threshold: 3\n");
	struct sl_node *veto = at(config, "stages", NULL)->child->next;

	assert_string_equal(config->root->path, "");
	assert_string_equal(at(config, "link", "listen")->path, "link.listen");
	assert_int_equal(at(config, "link", "listen")->line, 2);
	assert_string_equal(veto->path, "stages[1]");
	assert_string_equal(veto->child->child->path, "stages[1].veto.threshold");
	assert_int_equal(veto->child->child->line, 7);
	assert_ptr_equal(veto->child->parent, veto);
	sl_config_close(config);
}

static void a_value_on_the_next_line_has_its_keys_line(void **state)
{
	struct sl_config *config = parse("a:\n  # why\n  5\n");

	assert_int_equal(at(config, "a", NULL)->line, 1);
	sl_config_close(config);
}

static void get_marks_as_read(void **state)
{
	struct sl_config *config = parse("a: 1\nb: 2\n");

	assert_false(config->root->child->read);
	sl_node_get(config->root, "a");
	assert_true(config->root->child->read);
	assert_false(config->root->child->next->read);
	sl_config_close(config);
}

static void the_source_is_kept(void **state)
{
	struct sl_config *config = parse("a: 1 # why\n");

	assert_string_equal(config->source, "a: 1 # why\n");
	assert_string_equal(config->file, "exp.yaml");
	sl_config_close(config);
}

static void crlf_lines(void **state)
{
	struct sl_config *config = parse("a: 1\r\nb:\r\n  c: two words\r\n");

	assert_string_equal(at(config, "a", NULL)->text, "1");
	assert_string_equal(at(config, "b", "c")->text, "two words");
	assert_int_equal(at(config, "b", "c")->line, 3);
	sl_config_close(config);
}

static void byte_order_mark(void **state)
{
	struct sl_config *config = parse("\xef\xbb\xbf"
					 "a: 1\nb: 2\n");

	assert_string_equal(at(config, "a", NULL)->text, "1");
	assert_string_equal(at(config, "b", NULL)->text, "2");
	sl_config_close(config);
}

static void a_document_mark_and_comments(void **state)
{
	struct sl_config *config = parse("# hello\n---\na: 1\n...\n# bye\n");

	assert_string_equal(at(config, "a", NULL)->text, "1");
	sl_config_close(config);
}

static void sixteen_levels_are_fine(void **state)
{
	struct sl_config *config = parse("{a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: "
					 "{a: {a: 1}}}}}}}}}}}}}}}}\n");

	sl_config_close(config);
}

static void closing_nothing_is_fine(void **state)
{
	sl_config_close(NULL);
}

/* ---- what is no experiment file ---- */

static void empty_text(void **state)
{
	static const char message[] =
		"sluice: error: exp.yaml: is empty; it should be a map of sections ('name: ...')\n";

	refused("", message);
	refused("\n\n", message);
	refused("# only a comment\n", message);
}

static void root_is_not_a_map(void **state)
{
	static const char message[] =
		"sluice: error: exp.yaml:1: not a map of sections ('name: ...')\n";

	refused("- a\n- b\n", message);
	refused("just words\n", message);
	refused("---\n", "sluice: error: exp.yaml:2: not a map of sections ('name: ...')\n");
}

static void duplicate_keys(void **state)
{
	refused("a: 1\nb: 2\na: 3\n",
		"sluice: error: exp.yaml:3: a: given twice; the first is on line 1\n");
	refused("a:\n  x: 1\n  x: 1\n",
		"sluice: error: exp.yaml:3: a.x: given twice; the first is on line 2\n");
}

static void all_refusals_are_reported(void **state)
{
	refused("a: 1\na: 2\nb: &x 5\nc: *x\n",
		"sluice: error: exp.yaml:2: a: given twice; the first is on line 1\n"
		"sluice: error: exp.yaml:3: anchors (&name) are not supported; write the value "
		"out\n"
		"sluice: error: exp.yaml:4: aliases (*name) are not supported; write the value "
		"out\n");
}

static void anchors_on_maps_and_lists(void **state)
{
	refused("a: &x {b: 1}\nc: &y [1]\n",
		"sluice: error: exp.yaml:1: anchors (&name) are not supported; write the value "
		"out\n"
		"sluice: error: exp.yaml:2: anchors (&name) are not supported; write the value "
		"out\n");
}

/* The "billion laughs" of aliases within aliases expands to nothing here. */
static void aliases_are_not_expanded(void **state)
{
	struct sl_config *config;
	static const char text[] = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n";

	capture_begin();
	assert_int_equal(sl_config_parse("exp.yaml", text, strlen(text), &config), -EINVAL);
	assert_non_null(strstr(capture_end(), "aliases (*name) are not supported"));
}

static void tags(void **state)
{
	refused("a: !!str 5\n",
		"sluice: error: exp.yaml:1: tags (!name) are not supported; leave them out\n");
	refused("a: !mine {}\n",
		"sluice: error: exp.yaml:1: tags (!name) are not supported; leave them out\n");
}

static void keys_that_are_no_words(void **state)
{
	refused("[a, b]: 1\n", "sluice: error: exp.yaml:1: a key must be a word\n");
	refused("{a: 1}: 1\n", "sluice: error: exp.yaml:1: a key must be a word\n");
	refused("'': 1\n", "sluice: error: exp.yaml:1: a key is empty\n");
	refused("\"a\\nb\": 1\n",
		"sluice: error: exp.yaml:1: a key contains a control character\n");
	refused("\"a\\0b\": 1\n",
		"sluice: error: exp.yaml:1: a key contains a control character\n");
}

static void a_key_that_is_too_long(void **state)
{
	char text[200];

	memset(text, 'k', sizeof(text));
	strcpy(text + 129, ": 1\n");
	refused(text, "sluice: error: exp.yaml:1: a key is longer than 128 bytes\n");
	strcpy(text + 128, ": 1\n");
	sl_config_close(parse(text));
}

static void values_with_nul(void **state)
{
	refused("a: \"x\\0y\"\n", "sluice: error: exp.yaml:1: a value contains a NUL\n");
}

static void several_documents(void **state)
{
	refused("a: 1\n---\nb: 2\n",
		"sluice: error: exp.yaml:2: a second document ('---') starts; use one file each\n");
}

static void tabs_as_indentation(void **state)
{
	struct sl_config *config;
	const char *said;

	capture_begin();
	assert_int_equal(sl_config_parse("exp.yaml", "a:\n\tb: 1\n", 9, &config), -EINVAL);
	said = capture_end();
	assert_non_null(strstr(said, "exp.yaml:2:1: "));
	assert_non_null(strstr(said, "indent with spaces, not tabs\n"));
}

static void malformed(void **state)
{
	static const char *const texts[] = {
		"a: [1, 2\n",  "a: {b: 1\n", "a: 'open\n",     "a: \"\\q\"\n",
		"a: b: c\n",   "a: ]\n",     "a: 1\n  b: 2\n", "a: @x\n",
		"%YAML 9.9\n", "a: |3x\n",   "\"a\" b\n",      "a\nb: 1\n",
	};
	struct sl_config *config;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int err;
		const char *said;

		capture_begin();
		err = sl_config_parse("exp.yaml", texts[i], strlen(texts[i]), &config);
		said = capture_end();
		if (err != -EINVAL)
			fail_msg("accepted: %s", texts[i]);
		assert_ptr_equal(strstr(said, "sluice: error: exp.yaml:"), said);
		assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* one line */
	}
	refused("a: {b: 1\nc: 2\n", "sluice: error: exp.yaml:2:2: did not find expected ',' or '}' "
				    "while parsing a flow mapping from line 1\n");
}

static void too_deep(void **state)
{
	char *text = malloc(200001);

	refused("{a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: "
		"1}}}}}}}}}}}}}}}}}\n",
		"sluice: error: exp.yaml:1: nested deeper than 16 levels\n");
	memset(text, '[', 200000);
	text[200000] = 0;
	refused(text, "sluice: error: exp.yaml:1: nested deeper than 16 levels\n");
	free(text);
}

static void too_many_values(void **state)
{
	size_t n = 20000;
	char *text = malloc(2 * n + 16);

	strcpy(text, "a: [");
	for (size_t i = 0; i < n; i++)
		memcpy(text + 4 + 2 * i, "1,", 3);
	strcat(text + 4 + 2 * n, "]\n");
	refused(text,
		"sluice: error: exp.yaml:1: more than 10000 values: this is no experiment file\n");
	free(text);
}

static void not_text(void **state)
{
	char noise[4096];
	struct sl_config *config;
	uint32_t x = 1;

	refused_bytes("a: 1\nb: \0\n", 10,
		      "sluice: error: exp.yaml:2: not UTF-8 text: it contains a NUL\n");
	refused("a: 1\nb: \xff\n",
		"sluice: error: exp.yaml:2: not UTF-8 text: invalid leading UTF-8 octet\n");
	refused("a: \x01\n",
		"sluice: error: exp.yaml:1: not UTF-8 text: control characters are not allowed\n");
	for (int round = 0; round < 50; round++) {
		for (size_t i = 0; i < sizeof(noise); i++) {
			x = x * 1664525u + 1013904223u;
			noise[i] = (char)(x >> 24);
		}
		capture_begin();
		assert_int_equal(sl_config_parse("exp.yaml", noise, sizeof(noise), &config),
				 -EINVAL);
		assert_non_null(strstr(capture_end(), "not UTF-8 text"));
	}
}

/* ---- files ---- */

static void cannot_open(const char *path, int code, const char *message)
{
	struct sl_config *config;
	char line[512];
	int err;

	capture_begin();
	err = sl_config_open(path, &config);
	snprintf(line, sizeof(line), "sluice: error: %s: %s\n", path, message);
	assert_string_equal(capture_end(), line);
	assert_int_equal(err, code);
}

static char *temporary(void)
{
	static char path[256];
	const char *folder = getenv("TMPDIR");
	int fd;

	snprintf(path, sizeof(path), "%s/sluice-config-XXXXXX", folder ? folder : "/tmp");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	return path;
}

static void missing_file(void **state)
{
	cannot_open("/nonexistent/exp.yaml", -ENOENT, "cannot open: No such file or directory");
}

static void folder_as_file(void **state)
{
	cannot_open("/", -EISDIR, "cannot read: Is a directory");
}

static void empty_file(void **state)
{
	char *path = temporary();

	cannot_open(path, -EINVAL, "is empty; it should be a map of sections ('name: ...')");
	unlink(path);
}

static void file_of_ten_megabytes(void **state)
{
	char *path = temporary();
	int fd = open(path, O_WRONLY);

	assert_int_equal(write(fd, "a: ", 3), 3);
	assert_int_equal(ftruncate(fd, 10 << 20), 0);
	close(fd);
	cannot_open(path, -EFBIG, "larger than 1 MiB: this is no experiment file");
	unlink(path);
}

static void file_that_never_ends(void **state)
{
	cannot_open("/dev/zero", -EFBIG, "larger than 1 MiB: this is no experiment file");
}

static void a_good_file(void **state)
{
	struct sl_config *config;
	char *path = temporary();
	int fd = open(path, O_WRONLY);

	assert_int_equal(write(fd, "a: {b: 7}\n", 10), 10);
	close(fd);
	assert_int_equal(sl_config_open(path, &config), 0);
	assert_string_equal(at(config, "a", "b")->text, "7");
	assert_string_equal(config->file, path);
	sl_config_close(config);
	unlink(path);
}

static void a_scalar_of_a_megabyte(void **state)
{
	size_t n = (1 << 20) - 8;
	struct sl_config *config;
	char *path = temporary(), *text = malloc(n);
	int fd = open(path, O_WRONLY);

	memset(text, 'x', n);
	memcpy(text, "a: ", 3);
	assert_int_equal(write(fd, text, n), n);
	close(fd);
	assert_int_equal(sl_config_open(path, &config), 0);
	assert_int_equal(strlen(at(config, "a", NULL)->text), n - 3);
	sl_config_close(config);
	unlink(path);
	free(text);
}

/* ---- into structs ---- */

static void defaults_without_a_section(void **state)
{
	const char *said;

	assert_int_equal(fill("x: 1\n", NULL, &said), 0);
	assert_string_equal(said, "");
	assert_int_equal(sample.modules, 2);
	assert_int_equal(sample.port, 4791);
	assert_string_equal(sample.listen, "127.0.0.1");
	assert_int_equal(sample.mode, 0);
}

static void an_empty_section_means_defaults(void **state)
{
	const char *said;

	assert_int_equal(fill("s:\n", NULL, &said), 0);
	assert_int_equal(sample.modules, 2);
	assert_int_equal(fill("s: {}\n", NULL, &said), 0);
	assert_int_equal(sample.modules, 2);
}

static void values_from_both_tables(void **state)
{
	const char *said;

	assert_int_equal(fill("s: {modules: 4, rate_Hz: 1k, listen: \"\", port: 0x10,\n"
			      "    verify: yes, mode: fast}\n",
			      NULL, &said),
			 0);
	assert_string_equal(said, "");
	assert_int_equal(sample.modules, 4);
	assert_true(sample.rate_Hz == 1000);
	assert_string_equal(sample.listen, "");
	assert_int_equal(sample.port, 16);
	assert_true(sample.verify);
	assert_int_equal(sample.mode, 1);
}

static void also_keys_are_known(void **state)
{
	static const char *const also[] = {"kind", NULL};
	const char *said;

	assert_int_equal(fill("s: {kind: udp, modules: 3}\n", also, &said), 0);
	assert_string_equal(said, "");
	assert_int_equal(sample.modules, 3);
}

static void a_key_already_read_is_known(void **state)
{
	struct sl_config *config = parse("s: {kind: udp}\n");
	const struct sl_option_set sets[] = {{shared, &sample}};

	sl_node_get(at(config, "s", NULL), "kind");
	assert_int_equal(sl_config_fill(config, at(config, "s", NULL), sets, 1, NULL), 0);
	sl_config_close(config);
}

static void filled_keys_are_marked_as_read(void **state)
{
	struct sl_config *config = parse("s: {modules: 1}\n");
	const struct sl_option_set sets[] = {{shared, &sample}};

	assert_int_equal(sl_config_fill(config, config->root->child, sets, 1, NULL), 0);
	assert_true(config->root->child->read);
	assert_true(config->root->child->child->read);
	sl_config_close(config);
}

static void unknown_key(void **state)
{
	complains("s:\n  lsten: x\n",
		  "sluice: error: exp.yaml:2: s.lsten: unknown key; did you mean 'listen'? known "
		  "here: modules, rate_Hz, listen, port, verify, mode\n");
	complains("s:\n  colour: x\n",
		  "sluice: error: exp.yaml:2: s.colour: unknown key; known here: modules, rate_Hz, "
		  "listen, port, verify, mode\n");
}

static void suggestions_are_close(void **state)
{
	const char *said;

	fill("s: {moduls: 1}\n", NULL, &said);
	assert_non_null(strstr(said, "did you mean 'modules'?"));
	fill("s: {prot: 1}\n", NULL, &said);
	assert_non_null(strstr(said, "did you mean 'port'?"));
	fill("s: {rate_hz: 1}\n", NULL, &said);
	assert_non_null(strstr(said, "did you mean 'rate_Hz'?"));
	fill("s: {xy: 1}\n", NULL, &said);
	assert_null(strstr(said, "did you mean"));
}

static void out_of_range(void **state)
{
	complains("a: 1\n\ns: {modules: 0}\n",
		  "sluice: error: exp.yaml:3: s.modules: 0 is out of range; takes 1..64 modules\n");
	complains("s: {rate_Hz: -3}\n", "sluice: error: exp.yaml:1: s.rate_Hz: -3 is out of range; "
					"takes 0.5..1000000 Hz\n");
	complains("s: {listen: 1234567890123456}\n",
		  "sluice: error: exp.yaml:1: s.listen: '1234567890123456' is too long; takes text "
		  "of at most 15 bytes\n");
}

static void wrong_type(void **state)
{
	complains("s: {modules: two}\n", "sluice: error: exp.yaml:1: s.modules: 'two' is not a "
					 "whole number; takes 1..64 modules\n");
	complains("s: {modules: 1.5}\n", "sluice: error: exp.yaml:1: s.modules: '1.5' is not a "
					 "whole number; takes 1..64 modules\n");
	complains("s: {rate_Hz: .nan}\n", "sluice: error: exp.yaml:1: s.rate_Hz: '.nan' is not a "
					  "number; takes 0.5..1000000 Hz\n");
	complains("s: {verify: perhaps}\n", "sluice: error: exp.yaml:1: s.verify: 'perhaps' is not "
					    "one of its values; takes true or false\n");
	complains("s: {mode: quick}\n", "sluice: error: exp.yaml:1: s.mode: 'quick' is not one of "
					"its values; takes slow or fast\n");
}

static void a_map_or_list_where_a_value_belongs(void **state)
{
	complains("s: {modules: {a: 1}}\n",
		  "sluice: error: exp.yaml:1: s.modules: is a map; takes 1..64 modules\n");
	complains("s: {modules: [1]}\n",
		  "sluice: error: exp.yaml:1: s.modules: is a list; takes 1..64 modules\n");
}

static void no_value(void **state)
{
	static const char message[] =
		"sluice: error: exp.yaml:1: s.modules: has no value; takes 1..64 modules\n";

	complains("s: {modules: }\n", message);
	complains("s: {modules: ~}\n", message);
	complains("s: {modules: null}\n", message);
	complains("s: {listen: }\n", "sluice: error: exp.yaml:1: s.listen: has no value; takes "
				     "text of at most 15 bytes\n");
}

static void quoted_nulls_are_text(void **state)
{
	const char *said;

	assert_int_equal(fill("s: {listen: \"null\"}\n", NULL, &said), 0);
	assert_string_equal(sample.listen, "null");
	assert_int_equal(fill("s: {listen: '~'}\n", NULL, &said), 0);
	assert_string_equal(sample.listen, "~");
}

static void a_section_that_is_no_map(void **state)
{
	complains("s: 5\n",
		  "sluice: error: exp.yaml:1: s: is a single value; takes a map of options\n");
	complains("s: [1]\n", "sluice: error: exp.yaml:1: s: is a list; takes a map of options\n");
}

static void all_complaints_are_reported(void **state)
{
	complains("s:\n  modules: 0\n  port: x\n  foo: 1\n",
		  "sluice: error: exp.yaml:2: s.modules: 0 is out of range; takes 1..64 modules\n"
		  "sluice: error: exp.yaml:3: s.port: 'x' is not a whole number; takes 1..65535\n"
		  "sluice: error: exp.yaml:4: s.foo: unknown key; known here: modules, rate_Hz, "
		  "listen, port, verify, mode\n");
}

static void long_and_odd_values_are_shortened(void **state)
{
	complains("s: {port: \"a\\nb\"}\n", "sluice: error: exp.yaml:1: s.port: 'a b' is not a "
					    "whole number; takes 1..65535\n");
	complains("s: {port: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\xc3\xa9yyyyyyyyyy}\n",
		  "sluice: error: exp.yaml:1: s.port: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		  "...' is not a whole number; takes 1..65535\n");
}

static void errors_name_file_line_and_path(void **state)
{
	struct sl_config *config = parse("a:\n  b: 1\n");

	capture_begin();
	sl_config_error(config, at(config, "a", "b"), "bad %d", 7);
	sl_config_error(config, config->root, "at the root");
	sl_config_error(config, NULL, "nowhere");
	assert_string_equal(capture_end(), "sluice: error: exp.yaml:2: a.b: bad 7\n"
					   "sluice: error: exp.yaml:1: at the root\n"
					   "sluice: error: exp.yaml: nowhere\n");
	sl_config_close(config);
}

#define CASE(f) cmocka_unit_test(f)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(maps_lists_and_scalars),
		CASE(nodes_know_path_and_line),
		CASE(a_value_on_the_next_line_has_its_keys_line),
		CASE(get_marks_as_read),
		CASE(the_source_is_kept),
		CASE(crlf_lines),
		CASE(byte_order_mark),
		CASE(a_document_mark_and_comments),
		CASE(sixteen_levels_are_fine),
		CASE(closing_nothing_is_fine),
		CASE(empty_text),
		CASE(root_is_not_a_map),
		CASE(duplicate_keys),
		CASE(all_refusals_are_reported),
		CASE(anchors_on_maps_and_lists),
		CASE(aliases_are_not_expanded),
		CASE(tags),
		CASE(keys_that_are_no_words),
		CASE(a_key_that_is_too_long),
		CASE(values_with_nul),
		CASE(several_documents),
		CASE(tabs_as_indentation),
		CASE(malformed),
		CASE(too_deep),
		CASE(too_many_values),
		CASE(not_text),
		CASE(missing_file),
		CASE(folder_as_file),
		CASE(empty_file),
		CASE(file_of_ten_megabytes),
		CASE(file_that_never_ends),
		CASE(a_good_file),
		CASE(a_scalar_of_a_megabyte),
		CASE(defaults_without_a_section),
		CASE(an_empty_section_means_defaults),
		CASE(values_from_both_tables),
		CASE(also_keys_are_known),
		CASE(a_key_already_read_is_known),
		CASE(filled_keys_are_marked_as_read),
		CASE(unknown_key),
		CASE(suggestions_are_close),
		CASE(out_of_range),
		CASE(wrong_type),
		CASE(a_map_or_list_where_a_value_belongs),
		CASE(no_value),
		CASE(quoted_nulls_are_text),
		CASE(a_section_that_is_no_map),
		CASE(all_complaints_are_reported),
		CASE(long_and_odd_values_are_shortened),
		CASE(errors_name_file_line_and_path),
	};

	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
