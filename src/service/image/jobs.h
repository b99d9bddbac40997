/* jobs.h - work on elements: what several viewers ask for is made once, by a few threads.
 *
 * Model:     a job is a request about one element. Viewers that ask the same of the same element
 *            share a job, also one that is done already; jobs of elements that are no longer the
 *            newest are dropped when no viewer has them. There is a fixed number of jobs: when all
 *            are in use, viewers are told to come again.
 * Threads:   one thread calls the functions; workers do the jobs, and write to `bell` (an eventfd)
 *            when one is done.
 * Ownership: a viewer holds its job until sl_image_job_drop(); what a job has made is valid until
 *            then, or longer by a reference of its own. */
#ifndef SL_SERVICE_IMAGE_JOBS_H
#define SL_SERVICE_IMAGE_JOBS_H

#include <pthread.h>

#include "base/thread.h"
#include "service/image/render.h"

enum { SL_IMAGE_JOBS = 64, SL_IMAGE_WORKERS = 2 };
/* Of all that jobs have made. */
#define SL_IMAGE_MADE_BYTES (UINT64_C(256) << 20)

struct sl_image_job {
	bool used;
	unsigned viewers;
	struct sl_image_request request;
	struct sl_image_element *element; /* NULL: it is done */
	struct sl_image_payload *payload; /* NULL: not done, or no memory */
	bool queued, done;		  /* with `lock` held; neither: a worker has it */
	uint64_t id, since_ns;		  /* of the element; when it was queued */
	uint64_t bytes;			  /* that its payload has */
};

struct sl_image_jobs {
	struct sl_thread thread[SL_IMAGE_WORKERS];
	int bell;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ends;
	uint64_t bytes; /* with `lock` held: of all payloads */
	struct sl_image_job job[SL_IMAGE_JOBS];
};

int sl_image_jobs_start(struct sl_image_jobs *jobs, int bell);
void sl_image_jobs_stop(struct sl_image_jobs *jobs);

/* A job for one more viewer. NULL: there are too many, or they hold too many bytes. */
struct sl_image_job *sl_image_job_take(struct sl_image_jobs *jobs,
				       const struct sl_image_request *request,
				       struct sl_image_element *element);
/* The viewer does not want it any longer. */
void sl_image_job_drop(struct sl_image_jobs *jobs, struct sl_image_job *job);

/* 1: done, *payload is a reference of the caller's, or NULL: no memory; 0: not yet. */
int sl_image_job_done(struct sl_image_jobs *jobs, struct sl_image_job *job,
		      struct sl_image_payload **payload);

/* Elements with other ids are no longer the newest. */
void sl_image_jobs_newest(struct sl_image_jobs *jobs, uint64_t id);

#endif
