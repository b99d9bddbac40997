/* jobs.c - the table of jobs, and the threads that do them. */
#include "service/image/jobs.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/* ---- workers ---- */

/* The one that has waited longest. */
static struct sl_image_job *next_job(struct sl_image_jobs *jobs)
{
	struct sl_image_job *oldest = NULL;

	for (unsigned i = 0; i < SL_IMAGE_JOBS; i++) {
		struct sl_image_job *job = &jobs->job[i];

		if (job->used && job->queued && (!oldest || job->since_ns < oldest->since_ns))
			oldest = job;
	}
	return oldest;
}

static void do_job(struct sl_image_jobs *jobs, struct sl_image_job *job)
{
	const uint64_t one = 1;
	struct sl_image_payload *payload;

	job->queued = false;
	pthread_mutex_unlock(&jobs->lock);
	payload = sl_image_render(&job->request, job->element);
	pthread_mutex_lock(&jobs->lock);
	sl_image_element_release(job->element);
	job->element = NULL;
	job->payload = payload;
	job->bytes = payload ? payload->bytes : 0;
	jobs->bytes += job->bytes;
	job->done = true;
	if (write(jobs->bell, &one, sizeof(one)) < 0)
		return; /* it rings already */
}

static void *work(void *arg)
{
	struct sl_image_jobs *jobs = arg;

	pthread_mutex_lock(&jobs->lock);
	while (!jobs->ends) {
		struct sl_image_job *job = next_job(jobs);

		if (job)
			do_job(jobs, job);
		else
			pthread_cond_wait(&jobs->changed, &jobs->lock);
	}
	pthread_mutex_unlock(&jobs->lock);
	return NULL;
}

/* ---- the table ---- */

static void clear(struct sl_image_jobs *jobs, struct sl_image_job *job)
{
	sl_image_element_release(job->element);
	sl_image_payload_release(job->payload);
	jobs->bytes -= job->bytes;
	memset(job, 0, sizeof(*job));
}

/* Not while a worker has it. */
static bool is_idle(const struct sl_image_job *job)
{
	return job->used && !job->viewers && (job->queued || job->done);
}

static struct sl_image_job *find_same(struct sl_image_jobs *jobs,
				      const struct sl_image_request *request, uint64_t id)
{
	for (unsigned i = 0; i < SL_IMAGE_JOBS; i++) {
		struct sl_image_job *job = &jobs->job[i];

		if (job->used && job->id == id && !(job->done && !job->payload) &&
		    sl_image_request_same(&job->request, request))
			return job;
	}
	return NULL;
}

/* A free one, in the place of one that no viewer has if need be. */
static struct sl_image_job *find_free(struct sl_image_jobs *jobs)
{
	struct sl_image_job *idle = NULL;

	for (unsigned i = 0; i < SL_IMAGE_JOBS; i++) {
		struct sl_image_job *job = &jobs->job[i];

		if (!job->used)
			return job;
		if (is_idle(job) && (!idle || job->since_ns < idle->since_ns))
			idle = job;
	}
	if (idle)
		clear(jobs, idle);
	return idle;
}

/* Payloads that no viewer has go first. */
static bool has_room(struct sl_image_jobs *jobs)
{
	for (unsigned i = 0; i < SL_IMAGE_JOBS && jobs->bytes >= SL_IMAGE_MADE_BYTES; i++)
		if (is_idle(&jobs->job[i]))
			clear(jobs, &jobs->job[i]);
	return jobs->bytes < SL_IMAGE_MADE_BYTES;
}

struct sl_image_job *sl_image_job_take(struct sl_image_jobs *jobs,
				       const struct sl_image_request *request,
				       struct sl_image_element *element)
{
	struct sl_image_job *job;

	pthread_mutex_lock(&jobs->lock);
	job = find_same(jobs, request, element->id);
	if (!job && has_room(jobs))
		job = find_free(jobs);
	if (job && !job->used) {
		*job = (struct sl_image_job){.used = true,
					     .request = *request,
					     .element = sl_image_element_hold(element),
					     .queued = true,
					     .id = element->id,
					     .since_ns = sl_clock_ns()};
		pthread_cond_signal(&jobs->changed);
	}
	if (job)
		job->viewers++;
	pthread_mutex_unlock(&jobs->lock);
	return job;
}

void sl_image_job_drop(struct sl_image_jobs *jobs, struct sl_image_job *job)
{
	pthread_mutex_lock(&jobs->lock);
	job->viewers--;
	if (is_idle(job) && job->queued)
		clear(jobs, job); /* not worth doing */
	pthread_mutex_unlock(&jobs->lock);
}

int sl_image_job_done(struct sl_image_jobs *jobs, struct sl_image_job *job,
		      struct sl_image_payload **payload)
{
	bool done;

	pthread_mutex_lock(&jobs->lock);
	done = job->done;
	if (done)
		*payload = job->payload ? sl_image_payload_hold(job->payload) : NULL;
	pthread_mutex_unlock(&jobs->lock);
	return done;
}

void sl_image_jobs_newest(struct sl_image_jobs *jobs, uint64_t id)
{
	pthread_mutex_lock(&jobs->lock);
	for (unsigned i = 0; i < SL_IMAGE_JOBS; i++)
		if (jobs->job[i].id != id && is_idle(&jobs->job[i]))
			clear(jobs, &jobs->job[i]);
	pthread_mutex_unlock(&jobs->lock);
}

int sl_image_jobs_start(struct sl_image_jobs *jobs, int bell)
{
	int err = 0;

	memset(jobs, 0, sizeof(*jobs));
	jobs->bell = bell;
	pthread_mutex_init(&jobs->lock, NULL);
	pthread_cond_init(&jobs->changed, NULL);
	for (unsigned i = 0; i < SL_IMAGE_WORKERS && !err; i++)
		err = sl_thread_start(&jobs->thread[i], "draw", NULL, work, jobs);
	if (err)
		sl_image_jobs_stop(jobs);
	return err;
}

void sl_image_jobs_stop(struct sl_image_jobs *jobs)
{
	pthread_mutex_lock(&jobs->lock);
	jobs->ends = true;
	pthread_cond_broadcast(&jobs->changed);
	pthread_mutex_unlock(&jobs->lock);
	for (unsigned i = 0; i < SL_IMAGE_WORKERS; i++)
		sl_thread_join(&jobs->thread[i]);
	for (unsigned i = 0; i < SL_IMAGE_JOBS; i++)
		if (jobs->job[i].used)
			clear(jobs, &jobs->job[i]);
	pthread_cond_destroy(&jobs->changed);
	pthread_mutex_destroy(&jobs->lock);
}
