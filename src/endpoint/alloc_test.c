/* alloc_test.c - endpoints and queue pairs of which an allocation fails: the error is returned, and
 * nothing is left behind. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "endpoint/state.h"
#include "endpoint/table.h"
#include "lib/failing_alloc.h"

static struct sl_endpoint_options options = {.address = {[10] = 0xff, 0xff, 127, 0, 0, 1}};

static int make_table(void *arg)
{
	struct sl_table table;
	int r = sl_table_init(&table, 8);

	sl_table_fini(&table);
	return r;
}

static int make_endpoint(void *arg)
{
	struct sl_endpoint *endpoint = NULL;
	int r = sl_endpoint_open(&options, &endpoint);

	sl_endpoint_close(endpoint);
	return r;
}

static int make_qp(void *arg)
{
	struct sl_qp_options wanted = {.transport = *(uint8_t *)arg};
	struct sl_endpoint *endpoint = NULL;
	struct sl_qp *qp = NULL;
	int r = sl_endpoint_open(&options, &endpoint);

	if (!r)
		r = sl_qp_create(endpoint, &wanted, &qp);
	sl_endpoint_close(endpoint);
	return r;
}

static void an_endpoint_without_memory_is_none(void **state)
{
	assert_true(alloc_fail_each(make_table, NULL) >= 1);
	assert_true(alloc_fail_each(make_endpoint, NULL) >= 4);
}

static void a_queue_pair_without_memory_is_none(void **state)
{
	uint8_t transport[] = {SL_ROCE_UC, SL_ROCE_RC, SL_ROCE_UD};

	for (unsigned i = 0; i < sizeof(transport) / sizeof(transport[0]); i++)
		assert_true(alloc_fail_each(make_qp, &transport[i]) >= 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_endpoint_without_memory_is_none),
		cmocka_unit_test(a_queue_pair_without_memory_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
