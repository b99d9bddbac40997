/* jobs_test.c - viewers that ask for the same share a job; jobs are bounded, and dropped when no
 * viewer wants them. */
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "service/image/jobs.h"
#include "service/image/testing.h"

static struct sl_image_pool pool;
static struct sl_image_jobs jobs;

static int setup(void **state)
{
	return sl_image_jobs_start(&jobs, eventfd(0, EFD_NONBLOCK));
}

static int teardown(void **state)
{
	sl_image_jobs_stop(&jobs);
	close(jobs.bell);
	return pool.live != 0;
}

static struct sl_image_job *take(struct sl_image_element *e, const char *text)
{
	struct sl_image_request request;
	char why[100];

	assert_int_equal(sl_image_request_parse(text, strlen(text), &request, why, sizeof(why)), 0);
	return sl_image_job_take(&jobs, &request, e);
}

static struct sl_image_payload *wait_for(struct sl_image_job *job)
{
	struct pollfd bell = {.fd = jobs.bell, .events = POLLIN};
	struct sl_image_payload *payload;

	while (!sl_image_job_done(&jobs, job, &payload))
		assert_true(poll(&bell, 1, 60000) > 0);
	assert_non_null(payload);
	return payload;
}

static void viewers_of_the_same_share_a_job(void **state)
{
	struct sl_image_element *e = rig_element(&pool, 1);
	struct sl_image_job *a = take(e, "image?bin=2"), *b = take(e, "image?bin=2&after=3");
	struct sl_image_job *c = take(e, "image?bin=3"), *d;
	struct sl_image_payload *first = wait_for(a), *second = wait_for(b), *third = wait_for(c);

	assert_ptr_equal(a, b);
	assert_ptr_equal(first, second);
	assert_ptr_not_equal(first, third);
	sl_image_job_drop(&jobs, a);
	sl_image_job_drop(&jobs, b);
	d = take(e, "image?bin=2"); /* it is still there */
	assert_ptr_equal(d, a);
	sl_image_job_drop(&jobs, d);
	sl_image_job_drop(&jobs, c);
	sl_image_jobs_newest(&jobs, e->id + 1);
	assert_int_equal(jobs.bytes, 0);
	assert_int_equal(first->bytes, 10 * 15 * 2); /* the viewers' own references */
	sl_image_payload_release(first);
	sl_image_payload_release(second);
	sl_image_payload_release(third);
	sl_image_element_release(e);
}

static void a_newer_element_is_another_job(void **state)
{
	struct sl_image_element *e = rig_element(&pool, 1), *f = rig_element(&pool, 1);
	struct sl_image_job *a = take(e, "image"), *b;

	f->id++;
	b = take(f, "image");
	assert_ptr_not_equal(a, b);
	sl_image_payload_release(wait_for(a));
	sl_image_payload_release(wait_for(b));
	sl_image_jobs_newest(&jobs, f->id); /* a has a viewer */
	sl_image_payload_release(wait_for(a));
	sl_image_job_drop(&jobs, a);
	sl_image_job_drop(&jobs, b);
	sl_image_jobs_newest(&jobs, f->id + 1);
	sl_image_element_release(e);
	sl_image_element_release(f);
}

static void there_are_so_many_jobs_and_no_more(void **state)
{
	struct sl_image_element *e = rig_element(&pool, 1);
	struct sl_image_job *job[SL_IMAGE_JOBS];
	char text[60];

	for (int i = 0; i < SL_IMAGE_JOBS; i++) {
		snprintf(text, sizeof(text), "image?bin=%d", i + 1);
		job[i] = take(e, text);
		assert_non_null(job[i]);
	}
	assert_null(take(e, "image?bin=200"));
	assert_ptr_equal(take(e, "image?bin=5"), job[4]); /* one more viewer is no more work */
	sl_image_job_drop(&jobs, job[4]);
	sl_image_payload_release(wait_for(job[7]));
	sl_image_job_drop(&jobs, job[7]);
	job[7] = take(e, "image?bin=200");
	assert_non_null(job[7]);
	for (int i = 0; i < SL_IMAGE_JOBS; i++) {
		if (i % 2)
			sl_image_payload_release(wait_for(job[i]));
		sl_image_job_drop(&jobs, job[i]); /* some are dropped while they are made */
	}
	sl_image_element_release(e);
	/* No job is left behind: there is room for all of them again. */
	for (int tries = 0; pool.live && tries < 2000; tries++) {
		sl_image_jobs_newest(&jobs, 0);
		usleep(5000);
	}
	assert_int_equal(pool.live, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(viewers_of_the_same_share_a_job, setup, teardown),
		cmocka_unit_test_setup_teardown(a_newer_element_is_another_job, setup, teardown),
		cmocka_unit_test_setup_teardown(there_are_so_many_jobs_and_no_more, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("jobs", tests, NULL, NULL);
}
