/* crowd.c - a writer beside many followers: does it keep its times? A camera has a frame ready at
 * every period, at half the rate at which this writer can commit, and keeps a few of them. The
 * followers want the newest frame ten times a second. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/share/share.h"

enum {
	MOST = 64,	  /* followers */
	WAIT_US = 100000, /* of a follower, between two frames */
	KEPT = 64,	  /* frames that the camera keeps: one more is missed */
	PATIENCE_MS = 5000,
};

struct crowd {
	const struct sl_bench_share *what;
	struct sl_share *share;
	const void *frame;
	pid_t child[MOST];
	struct {
		_Atomic uint32_t ready, stop;
		_Atomic uint64_t seen;
	} * shared;
	uint32_t *ns;
};

static int follow(const struct crowd *c, const char *url)
{
	struct sl_follow_element element;
	struct sl_follower *follower;
	struct sl_remote_error error;
	void *data = malloc(c->what->bytes);
	int err = data ? sl_follow_open(url, NULL, &follower, &error) : -ENOMEM;

	if (err)
		return 1;
	atomic_fetch_add(&c->shared->ready, 1);
	while (!err && !atomic_load(&c->shared->stop)) {
		err = sl_follow_next(follower, SL_FOLLOW_NEWEST, PATIENCE_MS, data, c->what->bytes,
				     &element);
		if (!err)
			atomic_fetch_add(&c->shared->seen, 1);
		if (!err && !sl_bench_share_is(data, c->what->bytes))
			err = -EBADMSG;
		usleep(WAIT_US);
	}
	sl_follow_close(follower);
	return err && err != -EPIPE && err != -ETIMEDOUT;
}

static int start(const struct sl_bench *bench, const struct sl_bench_row *row, struct crowd *c)
{
	const char *url = sl_share_url(c->share);

	for (uint32_t i = 0; i < c->what->followers; i++) {
		c->child[i] = fork();
		if (c->child[i] < 0)
			return -errno;
		if (!c->child[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			sl_bench_take_side(bench, row, 1);
			_exit(follow(c, url));
		}
	}
	while (atomic_load(&c->shared->ready) < c->what->followers) {
		for (uint32_t i = 0; i < c->what->followers; i++)
			if (waitpid(c->child[i], NULL, WNOHANG) == c->child[i]) {
				c->child[i] = 0;
				return -EIO;
			}
		usleep(1000);
	}
	return 0;
}

static int stop(struct crowd *c)
{
	int err = 0, status;

	atomic_store(&c->shared->stop, 1);
	for (uint32_t i = 0; i < c->what->followers; i++)
		if (c->child[i] > 0 && (waitpid(c->child[i], &status, 0) != c->child[i] || status))
			err = -EIO;
	if (err)
		fprintf(stderr, "a follower failed\n");
	return err;
}

/* Nanoseconds for a commit when nothing waits. */
static double free_period(struct crowd *c, double seconds)
{
	uint64_t start = sl_clock_ns(), now, n = 0;

	do {
		sl_share_push(c->share, NULL, &c->frame);
		n++;
		now = sl_clock_ns();
	} while ((double)(now - start) < 1e9 * seconds);
	return (double)(now - start) / (double)n;
}

/* Times are from when a frame was due until it was committed. */
static void write_at_a_rate(struct crowd *c, double period, double seconds,
			    struct sl_bench_sample *sample)
{
	uint64_t start = sl_clock_ns(), frame = 0, now = start, n = 0;

	while ((double)(now - start) < 1e9 * seconds) {
		uint64_t due = start + (uint64_t)((double)frame * period), behind;

		while ((now = sl_clock_ns()) < due)
			continue;
		behind = (uint64_t)((double)(now - due) / period);
		if (behind >= KEPT) { /* the oldest of them have been overwritten */
			sample->late += behind - KEPT + 1;
			frame += behind - KEPT + 1;
			due = start + (uint64_t)((double)frame * period);
			due = due < now ? due : now;
		}
		sl_share_push(c->share, NULL, &c->frame);
		frame++;
		now = sl_clock_ns();
		c->ns[n++ % SL_BENCH_SHARE_TIMES] = (uint32_t)(now - due);
	}
	sample->count = n;
	sample->per_s = 1e9 * (double)n / (double)(now - start);
	sl_bench_quantiles(c->ns, n < SL_BENCH_SHARE_TIMES ? n : SL_BENCH_SHARE_TIMES,
			   sample->quantile_us);
}

int sl_bench_crowd(const struct sl_bench *bench, const struct sl_bench_row *row,
		   struct sl_bench_sample *sample)
{
	struct crowd c = {.what = row->share};
	uint8_t *frame = sl_bench_share_memory(row->share->bytes, MAP_PRIVATE);
	double period;
	int err, stopped;

	c.shared = sl_bench_share_memory(4096, MAP_SHARED);
	c.ns = sl_bench_share_memory(SL_BENCH_SHARE_TIMES * sizeof(*c.ns), MAP_PRIVATE);
	if (!frame || !c.shared || !c.ns || c.what->followers > MOST)
		return -ENOMEM;
	sl_bench_share_fill(frame, c.what->bytes);
	c.frame = frame;
	sl_bench_take_side(bench, row, 0);
	err = sl_bench_share_open(c.what, &(struct sl_bench_share_way){0}, "crowd", SL_BENCH_PLACES,
				  &c.share);
	if (err)
		return err;
	period = 2 * free_period(&c, bench->o.seconds / 4);
	err = start(bench, row, &c);
	if (!err)
		write_at_a_rate(&c, period, bench->o.seconds, sample);
	stopped = stop(&c);
	sample->kept = atomic_load(&c.shared->seen);
	sl_share_close(c.share);
	return err ? err : stopped;
}
