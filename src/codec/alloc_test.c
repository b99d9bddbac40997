/* alloc_test.c - a packer or an unpacker, when an allocation fails: the error is returned, and
 * nothing is left behind. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/pack.h"
#include "codec/unpack.h"
#include "lib/failing_alloc.h"

static uint8_t image[20000], packed[30000], out[20000];
static size_t packed_bytes;

static int make_packer(void *arg)
{
	struct sl_packer packer;
	int r = sl_packer_init(&packer, SL_VECTORS_AUTO);

	if (!r)
		packed_bytes = (size_t)sl_pack(&packer, SL_CODEC_BSLZ4, image, sizeof(image), 2,
					       packed, sizeof(packed));
	sl_packer_fini(&packer); /* a second time does no harm */
	return r;
}

static int use_unpacker(void *arg)
{
	struct sl_unpacker unpacker;
	int r;

	sl_unpacker_init(&unpacker, SL_VECTORS_AUTO);
	r = sl_unpack(&unpacker, SL_CODEC_BSLZ4, packed, packed_bytes, 2, out, sizeof(out));
	sl_unpacker_fini(&unpacker);
	return r;
}

static void test_failed_allocations_are_returned(void **state)
{
	assert_int_equal(alloc_fail_each(make_packer, NULL), 4);
	assert_int_equal(alloc_fail_each(use_unpacker, NULL), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failed_allocations_are_returned),
	};

	return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
