/* recorder.c - the recorder's thread: samples, and the moment at which they are frozen. */
#include "flight/recorder.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "flight/private.h"
#include "net/interface.h"

enum {
	NICE = 10,
	ALL_EVERY = 4,	  /* samples: with everything */
	COST_TIMES = 100, /* a sample is taken after so many times what the last one cost */
	WRITE_WAIT_NS = 1000 * 1000 * 1000, /* the end of a run waits for a record so long */
};
#define INTERVAL_NS (SL_RECORDER_INTERVAL_MS * UINT64_C(1000000))

struct sl_recorder {
	_Atomic bool written; /* the files of this run are there */
	pthread_mutex_t lock; /* guards all that follows */
	pthread_cond_t changed;
	bool stop, running, frozen;
	bool writing; /* the thread writes a record, without the lock */
	struct sl_recorder_run run;
	uint64_t runs;
	uint64_t loss_ns; /* of the first sample with a loss; 0: none was lost */
	unsigned samples; /* of this run */
	struct sl_flight_host host;
	struct sl_series_ring *series;
	struct sl_status *status;
	const char *root;
	struct sl_thread thread;
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* With the lock held. */
static void take_sample(struct sl_recorder *r, bool all)
{
	uint64_t now_ns = sl_clock_ns();

	sl_series_begin(r->series);
	r->run.status(r->run.arg, r->status);
	sl_flight_sample_status(r->status, r->series);
	sl_flight_host_sample(&r->host, all, r->series);
	sl_series_commit(r->series, now_ns);
	if (!r->loss_ns && sl_flight_lost(r->status))
		r->loss_ns = now_ns;
	r->samples++;
}

static struct sl_flight_record *freeze(struct sl_recorder *r)
{
	r->frozen = true;
	return sl_flight_record_take(&r->run, r->series, &r->host, r->loss_ns);
}

static bool write_record(struct sl_flight_record *record)
{
	int err = record ? sl_flight_record_write(record) : -ENOMEM;

	if (err)
		sl_warn("the flight recorder could not be written: %s; sluice explain has the "
			"result alone",
			strerror(-err));
	return !err;
}

static bool is_due_to_freeze(const struct sl_recorder *r, uint64_t now_ns)
{
	return r->loss_ns && !r->frozen && now_ns >= r->loss_ns + (uint64_t)(r->run.after_s * 1e9);
}

/* Of the run that the record is of, unless that has ended since. */
static void write_while_it_goes_on(struct sl_recorder *r, struct sl_flight_record *record)
{
	uint64_t run = r->runs;
	bool written;

	r->writing = true;
	pthread_mutex_unlock(&r->lock);
	written = write_record(record);
	pthread_mutex_lock(&r->lock);
	r->writing = false;
	if (run == r->runs)
		r->written = written;
	pthread_cond_broadcast(&r->changed);
}

static void sleep_until(struct sl_recorder *r, uint64_t ns)
{
	const struct timespec until = {.tv_sec = (time_t)(ns / 1000000000),
				       .tv_nsec = (long)(ns % 1000000000)};

	pthread_cond_timedwait(&r->changed, &r->lock, &until);
}

static void *recorder_main(void *arg)
{
	struct sl_recorder *r = arg;
	uint64_t next_ns = 0, run = 0;

	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		uint64_t now_ns = sl_clock_ns(), cost_ns = cpu_ns();

		if (!r->running) {
			pthread_cond_wait(&r->changed, &r->lock);
			continue;
		}
		if (run == r->runs && now_ns < next_ns) {
			sleep_until(r, next_ns);
			continue;
		}
		run = r->runs;
		take_sample(r, r->samples % ALL_EVERY == 0 || is_due_to_freeze(r, now_ns));
		cost_ns = (cpu_ns() - cost_ns) * COST_TIMES;
		next_ns = now_ns + (cost_ns > INTERVAL_NS ? cost_ns : INTERVAL_NS);
		if (is_due_to_freeze(r, now_ns))
			write_while_it_goes_on(r, freeze(r));
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

int sl_recorder_open(const char *root, struct sl_recorder **recorder)
{
	struct sl_recorder *r = calloc(1, sizeof(*r));
	pthread_condattr_t attributes;
	int err;

	if (!r)
		return -ENOMEM;
	r->root = root;
	r->series = sl_series_open();
	r->status = calloc(1, sizeof(*r->status));
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	err = r->series && r->status ? sl_thread_start(&r->thread, "flight", NULL, recorder_main, r)
				     : -ENOMEM;
	if (err) {
		sl_recorder_close(r);
		return err;
	}
	*recorder = r;
	return 0;
}

void sl_recorder_close(struct sl_recorder *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	sl_thread_join(&r->thread);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	sl_series_close(r->series);
	free(r->status);
	free(r);
}

/* Interfaces of the addresses where data come in, and what is below them. */
static void add_interfaces(struct sl_flight_host *host, const char *listen)
{
	char list[256], name[IF_NAMESIZE], device[IF_NAMESIZE], *save = NULL;

	snprintf(list, sizeof(list), "%s", listen);
	for (char *one = strtok_r(list, ", ", &save); one; one = strtok_r(NULL, ", ", &save)) {
		if (!sl_net_interface(one, name))
			continue;
		sl_flight_host_add_interface(host, name);
		sl_net_interface_device(host->root, name, device);
		sl_flight_host_add_interface(host, device);
	}
}

void sl_recorder_begin(struct sl_recorder *r, const struct sl_recorder_run *run)
{
	pthread_mutex_lock(&r->lock);
	if (!sl_flight_host_open(&r->host, r->root)) {
		r->run = *run;
		add_interfaces(&r->host, run->facts.listen);
		run->status(run->arg, r->status);
		for (unsigned i = 0; i < r->status->disks; i++)
			sl_flight_host_add_disk(&r->host, r->status->disk[i].path);
		sl_series_clear(r->series);
		r->loss_ns = 0;
		r->samples = 0;
		r->frozen = false;
		r->written = false;
		r->running = true;
		r->runs++;
		pthread_cond_broadcast(&r->changed);
	}
	pthread_mutex_unlock(&r->lock);
}

/* A record of this run that the thread is writing. */
static void await_writing(struct sl_recorder *r)
{
	uint64_t until_ns = sl_clock_ns() + WRITE_WAIT_NS;

	while (r->writing && sl_clock_ns() < until_ns)
		sleep_until(r, until_ns);
}

bool sl_recorder_end(struct sl_recorder *r)
{
	struct sl_flight_record *record = NULL;
	bool written;

	pthread_mutex_lock(&r->lock);
	if (!r->running) {
		pthread_mutex_unlock(&r->lock);
		return false;
	}
	r->run.status(r->run.arg, r->status);
	if (sl_flight_lost(r->status) && !r->frozen) {
		take_sample(r, true);
		record = freeze(r);
	}
	await_writing(r);
	written = r->written || r->writing;
	r->running = false;
	sl_flight_host_close(&r->host);
	pthread_mutex_unlock(&r->lock);
	if (record) {
		written = write_record(record);
		r->written = written;
	}
	return written;
}

bool sl_recorder_is_frozen(const struct sl_recorder *r)
{
	return r && r->written;
}
