/* secret_test.c - HMAC-SHA256 against RFC 4231, and numbers that differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/secret.h"

static void check(const char *key, const char *message, const char *expected)
{
	uint8_t proof[SL_SECRET_PROOF_BYTES];
	char text[2 * SL_SECRET_PROOF_BYTES + 1];

	sl_secret_proof(key, message, strlen(message), proof);
	for (size_t i = 0; i < sizeof(proof); i++)
		snprintf(text + 2 * i, 3, "%02x", proof[i]);
	assert_string_equal(text, expected);
}

/* RFC 4231, test cases 1, 2 and 6. */
static void proofs_are_hmac_sha256(void **state)
{
	char key[132] = {0};

	(void)state;
	check("\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b",
	      "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	check("Jefe", "what do ya want for nothing?",
	      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, 131);
	check(key, "Test Using Larger Than Block-Size Key - Hash Key First",
	      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void numbers_differ(void **state)
{
	uint8_t a[600] = {0}, b[600] = {0};

	(void)state;
	sl_secret_fill(a, sizeof(a));
	sl_secret_fill(b, sizeof(b));
	assert_memory_not_equal(a, b, sizeof(a));
	/* The bytes beyond those that the kernel gives at once are filled, too. */
	assert_memory_not_equal(a + 560, b + 560, 40);
	assert_memory_not_equal(a, a + 256, 256);
}

static void same_looks_at_every_byte(void **state)
{
	uint8_t a[32], b[32];

	(void)state;
	sl_secret_fill(a, sizeof(a));
	memcpy(b, a, sizeof(a));
	assert_true(sl_secret_same(a, b, sizeof(a)));
	for (size_t i = 0; i < sizeof(a); i++) {
		b[i] ^= 0x10;
		assert_false(sl_secret_same(a, b, sizeof(a)));
		b[i] ^= 0x10;
	}
	b[31] ^= 1;
	assert_true(sl_secret_same(a, b, 31));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proofs_are_hmac_sha256),
		cmocka_unit_test(numbers_differ),
		cmocka_unit_test(same_looks_at_every_byte),
	};

	return cmocka_run_group_tests_name("secret", tests, NULL, NULL);
}
