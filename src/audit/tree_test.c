/* tree_test.c - the tree is that of RFC 6962. */
#include "audit/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The leaves and roots with which implementations of Certificate Transparency test themselves
 * (google/certificate-transparency, merkletree/merkle_tree_test.cc). */
static const struct {
	const char *leaf;
	size_t bytes;
	const char *root;
} known[] = {
	{"", 0, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"},
	{"\x00", 1, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"},
	{"\x10", 1, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"},
	{"\x20\x21", 2, "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"},
	{"\x30\x31", 2, "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"},
	{"\x40\x41\x42\x43", 4, "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"},
	{"\x50\x51\x52\x53\x54\x55\x56\x57", 8,
	 "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"},
	{"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f", 16,
	 "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"},
};

enum { KNOWN = sizeof(known) / sizeof(known[0]) };

static void roots_are_those_that_others_publish(void **state)
{
	struct sl_tree tree = {0};
	char text[SL_HASH_TEXT];

	(void)state;
	for (int i = 0; i < KNOWN; i++) {
		struct sl_hash leaf = sl_tree_leaf(known[i].leaf, known[i].bytes), root;

		sl_tree_add(&tree, &leaf);
		root = sl_tree_root(&tree);
		assert_string_equal(sl_hash_text(&root, text), known[i].root);
	}
}

static void the_root_of_no_leaves_is_the_hash_of_nothing(void **state)
{
	const struct sl_tree tree = {0};
	struct sl_hash root = sl_tree_root(&tree);
	char text[SL_HASH_TEXT];

	(void)state;
	assert_string_equal(sl_hash_text(&root, text),
			    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

/* As RFC 6962 defines it: by halves. */
static struct sl_hash defined(const struct sl_hash *leaf, size_t n)
{
	size_t k = 1;
	struct sl_hash left, right;

	if (n == 1)
		return *leaf;
	while (2 * k < n)
		k *= 2;
	left = defined(leaf, k);
	right = defined(leaf + k, n - k);
	return sl_hash_of(1, left.byte, SL_HASH_BYTES, right.byte, SL_HASH_BYTES);
}

static void any_number_of_leaves_gives_the_root_of_the_definition(void **state)
{
	enum { LEAVES = 300 };
	static struct sl_hash leaf[LEAVES];
	struct sl_tree tree = {0};

	(void)state;
	for (uint32_t i = 0; i < LEAVES; i++) {
		struct sl_hash wanted, root;

		leaf[i] = sl_tree_leaf(&i, sizeof(i));
		sl_tree_add(&tree, &leaf[i]);
		wanted = defined(leaf, i + 1);
		root = sl_tree_root(&tree);
		assert_true(sl_hash_same(&root, &wanted));
		assert_int_equal(tree.leaves, i + 1);
	}
}

static void hashes_survive_as_text(void **state)
{
	struct sl_hash hash = sl_hash_of_nothing(), again;
	char text[SL_HASH_TEXT];

	(void)state;
	sl_hash_text(&hash, text);
	assert_int_equal(sl_hash_read(text, &again), 0);
	assert_true(sl_hash_same(&hash, &again));
	text[7] = 'g';
	assert_int_not_equal(sl_hash_read(text, &again), 0);
	text[7] = 0;
	assert_int_not_equal(sl_hash_read(text, &again), 0);
	assert_int_not_equal(sl_hash_read("", &again), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roots_are_those_that_others_publish),
		cmocka_unit_test(the_root_of_no_leaves_is_the_hash_of_nothing),
		cmocka_unit_test(any_number_of_leaves_gives_the_root_of_the_definition),
		cmocka_unit_test(hashes_survive_as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
