/* shared_status_test.c - callers share a request that began after they asked, and get no older
 * one. */
#include "service/shared_status.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/thread.h"

enum { CALLERS = 40, CALLS = 20 };

static struct sl_shared_status *shared;
static _Atomic unsigned asked, at_once, most;
static _Atomic int64_t now;

/* A status has the number that was the latest when it was taken. */
static int ask(void *arg, const char *name, json_t **status, struct sl_remote_error *error)
{
	unsigned others = atomic_fetch_add(&at_once, 1) + 1;

	if (others > atomic_load(&most))
		atomic_store(&most, others);
	atomic_fetch_add(&asked, 1);
	if (!strcmp(name, "absent")) {
		snprintf(error->code, sizeof(error->code), "absent");
		atomic_fetch_sub(&at_once, 1);
		return -ENOENT;
	}
	*status = json_pack("{s:I}", "now", (json_int_t)atomic_load(&now));
	sl_clock_sleep_until(sl_clock_ns() + 1000000);
	atomic_fetch_sub(&at_once, 1);
	return 0;
}

static int set_up(void **state)
{
	shared = sl_shared_status_open();
	asked = at_once = most = 0;
	now = 0;
	return shared ? 0 : -1;
}

static int tear_down(void **state)
{
	sl_shared_status_close(shared);
	return 0;
}

static void *call(void *arg)
{
	uintptr_t wrong = 0;

	for (int i = 0; i < CALLS; i++) {
		struct sl_remote_error error;
		json_t *status = NULL;
		int64_t before = atomic_fetch_add(&now, 1) + 1;

		wrong += sl_shared_status_ask(shared, "s", ask, &status, &error) != 0;
		wrong += json_integer_value(json_object_get(status, "now")) < before;
		json_decref(status);
	}
	*(uintptr_t *)arg = wrong;
	return NULL;
}

static void callers_share_a_request_that_is_younger_than_their_call(void **state)
{
	struct sl_thread thread[CALLERS] = {0};
	uintptr_t wrong[CALLERS] = {0};

	for (int i = 0; i < CALLERS; i++)
		assert_int_equal(sl_thread_start(&thread[i], "caller", NULL, call, &wrong[i]), 0);
	for (int i = 0; i < CALLERS; i++)
		sl_thread_join(&thread[i]);
	for (int i = 0; i < CALLERS; i++)
		assert_int_equal(wrong[i], 0);
	assert_int_equal(most, 1);
	assert_true(asked >= CALLS && asked < CALLERS * CALLS);
}

static void an_error_is_that_of_the_request(void **state)
{
	struct sl_remote_error error;
	json_t *status = NULL;

	assert_int_equal(sl_shared_status_ask(shared, "absent", ask, &status, &error), -ENOENT);
	assert_null(status);
	assert_string_equal(error.code, "absent");
	assert_int_equal(sl_shared_status_ask(shared, "s", ask, &status, &error), 0);
	json_decref(status);
}

static void more_names_than_places_are_asked_for(void **state)
{
	for (int i = 0; i < 3 * SL_SHARED_STATUS_CALLERS; i++) {
		struct sl_remote_error error;
		json_t *status = NULL;
		char name[64];

		snprintf(name, sizeof(name), "session-%d", i);
		assert_int_equal(sl_shared_status_ask(shared, name, ask, &status, &error), 0);
		json_decref(status);
	}
	assert_int_equal(asked, 3 * SL_SHARED_STATUS_CALLERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			callers_share_a_request_that_is_younger_than_their_call, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_error_is_that_of_the_request, set_up, tear_down),
		cmocka_unit_test_setup_teardown(more_names_than_places_are_asked_for, set_up,
						tear_down),
	};

	return cmocka_run_group_tests_name("shared_status", tests, NULL, NULL);
}
