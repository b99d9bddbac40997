/* proof_test.c - the proofs as docs/reference/wire.md describes them, and what they depend on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "control/tcp/proof.h"

#define TOKEN "correct horse battery staple"

static struct sl_wire_hello greeting(void)
{
	struct sl_wire_hello hello = {.modules = 2,
				      .host = 0x0102030405060708,
				      .experiment = 0x1112131415161718,
				      .link = "roce",
				      .detector = "jungfrau"};

	for (int i = 0; i < SL_WIRE_NONCE; i++)
		hello.nonce[i] = (uint8_t)(0xa0 + i);
	return hello;
}

static struct sl_wire_challenge question(void)
{
	struct sl_wire_challenge challenge;

	for (int i = 0; i < SL_WIRE_NONCE; i++)
		challenge.nonce[i] = (uint8_t)i;
	return challenge;
}

static struct sl_proof_terms terms_of(enum sl_proof_purpose purpose)
{
	struct sl_proof_terms terms = {.purpose = purpose,
				       .hello = greeting(),
				       .challenge = question(),
				       .ip = {[10] = 0xff, 0xff, 10, 1, 2, 3},
				       .port = 47910};

	return terms;
}

static void check(enum sl_proof_purpose purpose, enum sl_proof_side side, const char *expected)
{
	const struct sl_proof_terms terms = terms_of(purpose);
	struct sl_wire_proof proof;
	char text[2 * sizeof(proof.proof) + 1];

	sl_proof_make(side, TOKEN, &terms, &proof);
	for (size_t i = 0; i < sizeof(proof.proof); i++)
		snprintf(text + 2 * i, 3, "%02x", proof.proof[i]);
	assert_string_equal(text, expected);
}

/* Computed by Python's hmac from the tables of wire.md, which has these numbers, too. */
static void proofs_are_those_of_the_document(void **state)
{
	(void)state;
	check(SL_PROOF_PLANS, SL_PROOF_CONNECTS,
	      "438bfe99c4cf9977965d4517fd454ce58ce0f07d2b4f696469b5f5fb33f7c719");
	check(SL_PROOF_PLANS, SL_PROOF_LISTENS,
	      "5cf5a766e53cd218d51b792d98c64d961f134f2b876f05f2513204b5e6bc475a");
	check(SL_PROOF_FEEDBACK, SL_PROOF_CONNECTS,
	      "512468958dbaf9eb370dc0223ae262e877d46fd9fe704c182c7dc85c5d000298");
	check(SL_PROOF_FEEDBACK, SL_PROOF_LISTENS,
	      "66af15aaaa24f538f56c1b3b4a1b241811b65a027f355e9f8160b888a844458c");
	check(SL_PROOF_SHARES, SL_PROOF_CONNECTS,
	      "23a19cd612db53e97b985dc529025d3943fb9e862461336fc04c5c5ee7aec08e");
	check(SL_PROOF_SHARES, SL_PROOF_LISTENS,
	      "fb71493d1449ca6c1b0c20804dcaca9e6c0c43bb6f3bae9ae89a6f605e071e71");
}

static void a_proof_is_of_one_exchange_one_side_one_purpose_and_one_listener(void **state)
{
	const struct sl_proof_terms terms = terms_of(SL_PROOF_PLANS);
	struct sl_proof_terms other[11];
	struct sl_wire_proof proof, wrong;

	(void)state;
	sl_proof_make(SL_PROOF_CONNECTS, TOKEN, &terms, &proof);
	assert_true(sl_proof_is_right(SL_PROOF_CONNECTS, TOKEN, &terms, &proof));
	assert_false(sl_proof_is_right(SL_PROOF_LISTENS, TOKEN, &terms, &proof));
	assert_false(sl_proof_is_right(SL_PROOF_CONNECTS, TOKEN "s", &terms, &proof));
	for (int i = 0; i < 11; i++)
		other[i] = terms;
	other[0].hello.nonce[0] ^= 1;
	other[1].hello.modules = 3;
	other[2].hello.detector[0] = 'J';
	other[3].hello.experiment++;
	other[4].challenge.nonce[31] ^= 1;
	other[5].purpose = SL_PROOF_FEEDBACK;
	other[6].ip[15] ^= 1;
	other[7].port ^= 1;
	other[8].port ^= 0x8000;
	other[9].purpose = SL_PROOF_SHARES;
	other[10].hello.reserved[63] = 1; /* shares have their name there */
	for (int i = 0; i < 11; i++) {
		assert_false(sl_proof_is_right(SL_PROOF_CONNECTS, TOKEN, &other[i], &proof));
		assert_false(sl_proof_is_right(SL_PROOF_LISTENS, TOKEN, &other[i], &proof));
	}
	for (int i = 0; i < SL_SECRET_PROOF_BYTES; i++) {
		wrong = proof;
		wrong.proof[i] ^= 0x80;
		assert_false(sl_proof_is_right(SL_PROOF_CONNECTS, TOKEN, &terms, &wrong));
	}
}

static void a_front_end_without_a_nonce_asks_for_no_proof(void **state)
{
	struct sl_wire_hello hello = greeting();

	(void)state;
	assert_true(sl_proof_is_asked(&hello));
	memset(hello.nonce, 0, sizeof(hello.nonce));
	assert_false(sl_proof_is_asked(&hello));
	hello.nonce[31] = 1;
	assert_true(sl_proof_is_asked(&hello));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proofs_are_those_of_the_document),
		cmocka_unit_test(a_proof_is_of_one_exchange_one_side_one_purpose_and_one_listener),
		cmocka_unit_test(a_front_end_without_a_nonce_asks_for_no_proof),
	};

	return cmocka_run_group_tests_name("proof", tests, NULL, NULL);
}
