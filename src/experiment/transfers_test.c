/* transfers_test.c - one transfer's sections laid over those of the file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/config/node.h"
#include "experiment/transfers.h"
#include "lib/capture.h"

static const char text[] = "link: {kind: udp, listen: 1.1.1.1, pmtu: 1024}\n"
			   "stages: [one, two]\n"
			   "transfers:\n"
			   "  a:\n"
			   "  b:\n"
			   "    every: 3\n"
			   "    link: {listen: 2.2.2.2, port: 5}\n"
			   "    stages: [three]\n"
			   "    control: {address: x}\n"
			   "  c: {control: {port: 9}}\n";

static struct sl_config *parse(const char *yaml)
{
	struct sl_config *config;

	assert_int_equal(sl_config_parse("test", yaml, strlen(yaml), &config), 0);
	return config;
}

static const char *value(struct sl_config *config, const char *section, const char *key)
{
	struct sl_node *node = sl_node_child(sl_node_child(config->root, section), key);

	return node ? node->text : NULL;
}

static void names_come_in_the_order_of_the_file(void **state)
{
	struct sl_config *config = parse(text);
	struct sl_transfer_names names;

	(void)state;
	assert_int_equal(sl_transfer_names(config, &names), 0);
	assert_int_equal(names.n, 3);
	assert_string_equal(names.name[0], "a");
	assert_string_equal(names.name[2], "c");
	sl_config_close(config);
}

static void its_keys_go_before_those_of_the_file(void **state)
{
	struct sl_config *config = parse(text);
	struct sl_transfer_choice choice;
	struct sl_node *stages;

	(void)state;
	assert_int_equal(sl_transfer_choose(config, "b", &choice), 0);
	assert_string_equal(value(config, "link", "kind"), "udp");
	assert_string_equal(value(config, "link", "listen"), "2.2.2.2");
	assert_string_equal(value(config, "link", "pmtu"), "1024");
	assert_string_equal(value(config, "link", "port"), "5");
	assert_string_equal(value(config, "control", "address"), "x");
	stages = sl_node_child(config->root, "stages");
	assert_string_equal(stages->child->text, "three");
	assert_null(stages->child->next);
	/* What is left is its own; errors still name where it was written. */
	assert_string_equal(choice.options->child->key, "every");
	assert_null(choice.options->child->next);
	assert_string_equal(sl_node_child(sl_node_child(config->root, "link"), "listen")->path,
			    "transfers.b.link.listen");
	assert_int_equal(choice.port_offset, 1);
	sl_config_close(config);
}

static void others_leave_the_file_as_it_is(void **state)
{
	struct sl_config *config = parse(text);
	struct sl_transfer_choice choice;

	(void)state;
	assert_int_equal(sl_transfer_choose(config, "a", &choice), 0);
	assert_string_equal(value(config, "link", "listen"), "1.1.1.1");
	assert_int_equal(choice.port_offset, 0);
	sl_config_close(config);
	config = parse(text);
	assert_int_equal(sl_transfer_choose(config, "c", &choice), 0);
	assert_string_equal(value(config, "control", "port"), "9");
	assert_int_equal(choice.port_offset, 0); /* it has named its own */
	sl_config_close(config);
}

static void without_a_choice_none_need_be_named(void **state)
{
	struct sl_config *config = parse("link: {}\n");
	struct sl_transfer_choice choice;

	(void)state;
	assert_int_equal(sl_transfer_choose(config, NULL, &choice), 0);
	assert_null(choice.options);
	sl_config_close(config);
	config = parse("transfers: {only: {every: 2}}\n");
	assert_int_equal(sl_transfer_choose(config, "", &choice), 0);
	assert_string_equal(choice.options->key, "only");
	sl_config_close(config);
}

static void a_wrong_name_is_told_the_right_ones(void **state)
{
	static const struct {
		const char *yaml, *name, *words;
	} bad[] = {
		{text, "d", "no transfer is called 'd'; there are: a, b, c"},
		{text, NULL, "which transfer? there are: a, b, c"},
		{"link: {}\n", "a", "has no transfers"},
		{"transfers: [a]\n", "a", "takes a map of names"},
		{"transfers: {a: 3}\n", "a", "takes a map of options"},
		{"transfers: {a b: {}}\n", "a b", "letters, digits"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct sl_config *config = parse(bad[i].yaml);
		struct sl_transfer_choice choice;

		capture_begin();
		assert_int_equal(sl_transfer_choose(config, bad[i].name, &choice), -EINVAL);
		assert_non_null(strstr(capture_end(), bad[i].words));
		sl_config_close(config);
	}
}

/* A misspelt --set would otherwise be one more receiver, that nobody asked for. */
static void set_makes_no_new_transfer_beside_those_of_the_file(void **state)
{
	struct sl_config *config = parse(text);
	struct sl_transfer_names names;

	(void)state;
	assert_int_equal(sl_config_override(config, "transfers.b.every=3"), 0);
	assert_int_equal(sl_transfer_names(config, &names), 0);
	assert_int_equal(sl_config_override(config, "transfers.typo.every=3"), 0);
	capture_begin();
	assert_int_equal(sl_transfer_names(config, &names), -EINVAL);
	assert_non_null(strstr(capture_end(), "no transfer is called 'typo'; there are: a, b, c"));
	sl_config_close(config);
	config = parse("link: {}\n");
	assert_int_equal(sl_config_override(config, "transfers.a.every=3"), 0);
	assert_int_equal(sl_transfer_names(config, &names), 0);
	assert_int_equal(names.n, 1);
	sl_config_close(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_come_in_the_order_of_the_file),
		cmocka_unit_test(its_keys_go_before_those_of_the_file),
		cmocka_unit_test(others_leave_the_file_as_it_is),
		cmocka_unit_test(without_a_choice_none_need_be_named),
		cmocka_unit_test(a_wrong_name_is_told_the_right_ones),
		cmocka_unit_test(set_makes_no_new_transfer_beside_those_of_the_file),
	};

	return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
