/* follow.c - the thread that follows a share and copies its newest element. */
#include "service/image/follow.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "share/image.h"

enum { PEEK_MS = 50, ATTACH_MS = 1000, SMALL_BYTES = 256 << 10 };

#define MS	  UINT64_C(1000000)
#define COPY_NS	  (20 * MS)    /* from one copy to the next */
#define TRY_NS	  (200 * MS)   /* from one look for a share to the next */
#define SAMPLE_NS (1000 * MS)  /* of the rate, at least */
#define WANTED_NS (10000 * MS) /* that an array stays wanted */
#define IDLE_NS	  (1000 * MS)  /* without a look */

static void ring(const struct sl_image_follow *f)
{
	const uint64_t one = 1;

	if (write(f->bell, &one, sizeof(one)) < 0)
		return; /* it rings already */
}

/* ---- what viewers see ---- */

static void answer(struct sl_image_follow *f, uint64_t ticket)
{
	pthread_mutex_lock(&f->lock);
	f->answered = ticket > f->answered ? ticket : f->answered;
	f->facts.known = true;
	f->facts.over = f->over;
	pthread_mutex_unlock(&f->lock);
	ring(f);
}

static void show(struct sl_image_follow *f, struct sl_image_element *copy, int error)
{
	struct sl_image_element *before = NULL;

	pthread_mutex_lock(&f->lock);
	f->error = error;
	if (copy) {
		before = f->current;
		f->current = copy;
	}
	pthread_mutex_unlock(&f->lock);
	sl_image_element_release(before);
}

/* How fast elements come, over a second or more. */
static void sample(struct sl_image_follow *f, uint64_t now_ns)
{
	uint64_t published = *sl_follow_flag(f->follower);

	pthread_mutex_lock(&f->lock);
	f->facts.published = published;
	if (now_ns - f->sampled_ns >= SAMPLE_NS) {
		/* Nobody looked for a while: what came meanwhile is no rate of now. */
		bool recent = f->sampled_ns && now_ns - f->sampled_ns < 10 * SAMPLE_NS;

		f->facts.rate_Hz = recent ? (double)(published - f->sample) * 1e9 /
						    (double)(now_ns - f->sampled_ns)
					  : -1;
		f->sampled_ns = now_ns;
		f->sample = published;
	}
	pthread_mutex_unlock(&f->lock);
}

/* ---- copies ---- */

/* All small arrays, the image, and what was asked for lately. */
static uint64_t choose_arrays(struct sl_image_follow *f, uint64_t now_ns)
{
	const struct sl_share_description *d = sl_follow_describe(f->follower);
	int image = sl_share_image_of(d);
	uint64_t arrays = image < 0 ? 0 : UINT64_C(1) << image;

	pthread_mutex_lock(&f->lock);
	for (uint32_t i = 0; i < d->arrays; i++)
		if (d->array[i].bytes <= SMALL_BYTES ||
		    (f->wanted_ns[i] && now_ns - f->wanted_ns[i] < WANTED_NS))
			arrays |= UINT64_C(1) << i;
	pthread_mutex_unlock(&f->lock);
	return arrays;
}

static int copy_arrays(struct sl_image_follow *f, struct sl_image_element *copy)
{
	const struct sl_share_description *d = &copy->description;
	struct sl_follow_element seen;
	int err = 0;

	for (uint32_t i = 0; i < d->arrays && !err; i++) {
		uint64_t bytes = sl_image_element_bytes(d, &copy->element.note, i);

		if (!(copy->held >> i & 1) || !bytes)
			continue;
		err = sl_follow_fetch(f->follower, copy->element.n, d->array[i].offset, bytes,
				      copy->data + copy->at[i], &seen);
	}
	return err;
}

/* The newest element that was seen, with these arrays. -ESTALE: it was overtaken. */
static int copy_newest(struct sl_image_follow *f, uint64_t arrays)
{
	struct sl_image_element *copy;
	int err;

	copy = sl_image_element_make(&f->pool, sl_follow_describe(f->follower), &f->newest, arrays,
				     &err);
	if (!copy) {
		show(f, NULL, err == -EAGAIN ? 0 : err);
		return err;
	}
	copy->id = f->base + f->newest.n;
	copy->share = f->share;
	err = copy_arrays(f, copy);
	if (err) {
		sl_image_element_release(copy);
		return err;
	}
	f->next_id = copy->id + 1;
	show(f, copy, 0);
	return 0;
}

/* An array that was not wanted when the element was copied. */
static void complete(struct sl_image_follow *f)
{
	uint64_t arrays = choose_arrays(f, sl_clock_ns());
	bool whole;

	pthread_mutex_lock(&f->lock);
	whole = f->current && !(arrays & ~f->current->held);
	pthread_mutex_unlock(&f->lock);
	if (f->has_newest && !whole)
		copy_newest(f, arrays);
}

/* ---- the share ---- */

static void close_share(struct sl_image_follow *f)
{
	sl_follow_close(f->follower);
	f->follower = NULL;
	f->has_newest = false;
}

static void begin_share(struct sl_image_follow *f, struct sl_follower *follower)
{
	close_share(f);
	f->follower = follower;
	f->over = false;
	f->sampled_ns = 0;
	/* Numbers of a new share begin at 0 again, most often. */
	f->base = *sl_follow_flag(follower) > f->next_id ? 0 : f->next_id;
	f->share++;
	pthread_mutex_lock(&f->lock);
	f->facts.share = f->share;
	f->facts.since_ns = sl_clock_ns();
	memset(f->wanted_ns, 0, sizeof(f->wanted_ns));
	f->facts.rate_Hz = -1;
	pthread_mutex_unlock(&f->lock);
}

/* False: there is no share to look at. */
static bool attach(struct sl_image_follow *f)
{
	const struct sl_follow_options options = {.bytes = sizeof(options),
						  .timeout_ms = ATTACH_MS};
	uint64_t now_ns = sl_clock_ns();
	struct sl_follower *follower;
	char name[SL_IMAGE_URL];
	bool changed;

	pthread_mutex_lock(&f->lock);
	snprintf(name, sizeof(name), "%s", f->name);
	pthread_mutex_unlock(&f->lock);
	changed = strcmp(name, f->attached) != 0;
	if (f->follower && !f->over && !changed)
		return true;
	if (!name[0] || (!changed && now_ns - f->tried_ns < TRY_NS))
		return f->follower != NULL;
	f->tried_ns = now_ns;
	snprintf(f->attached, sizeof(f->attached), "%s", name);
	if (!sl_follow_open(name, &options, &follower, NULL))
		begin_share(f, follower);
	return f->follower != NULL;
}

/* One look. 1: there was a new element; 0: there was none; or -errno. */
static int look(struct sl_image_follow *f, int timeout_ms)
{
	struct sl_follow_element element;
	int err = sl_follow_peek(f->follower, SL_FOLLOW_NEWEST, timeout_ms, &element);

	sample(f, sl_clock_ns());
	if (!err) {
		f->newest = element;
		f->has_newest = true;
		err = copy_newest(f, choose_arrays(f, sl_clock_ns()));
		return err ? err : 1;
	}
	if (err == -EPIPE || err == -ECONNRESET)
		f->over = true;
	return err == -ETIMEDOUT || f->over ? 0 : err;
}

/* ---- the thread ---- */

static void wait_until(struct sl_image_follow *f, uint64_t until_ns)
{
	const struct timespec until = {(time_t)(until_ns / 1000000000),
				       (long)(until_ns % 1000000000)};

	pthread_cond_timedwait(&f->changed, &f->lock, &until);
}

/* Until somebody wants to look, and no sooner than `not_before`. The ticket to be answered; false:
 * the thread ends. */
static bool wait_for_viewers(struct sl_image_follow *f, uint64_t not_before_ns, uint64_t *ticket)
{
	pthread_mutex_lock(&f->lock);
	for (;;) {
		uint64_t now_ns = sl_clock_ns();
		bool wanted = f->asked != f->answered || now_ns < f->until_ns;

		if (f->ends || (f->named && wanted && now_ns >= not_before_ns))
			break;
		wait_until(f, f->named && wanted ? not_before_ns : now_ns + 1000 * MS);
	}
	*ticket = f->asked;
	pthread_mutex_unlock(&f->lock);
	return !f->ends;
}

static bool is_answered(struct sl_image_follow *f, uint64_t ticket)
{
	bool answered;

	pthread_mutex_lock(&f->lock);
	answered = f->answered >= ticket;
	pthread_mutex_unlock(&f->lock);
	return answered;
}

/* One step for the viewers that wait for `ticket`. True: they know all there is to know. */
static bool step(struct sl_image_follow *f, uint64_t ticket, uint64_t *not_before_ns)
{
	bool was_over = f->over, idle = sl_clock_ns() - f->looked_ns > IDLE_NS;
	int err = look(f, was_over || !is_answered(f, ticket) ? 0 : PEEK_MS);

	f->looked_ns = sl_clock_ns();
	if (f->over && !was_over) {
		f->tried_ns = 0; /* the next run may have begun */
		return false;
	}
	if (err > 0 && idle)
		return false; /* it may be the last one of a run that has ended long ago */
	if (!err)
		complete(f);
	if (err > 0)
		*not_before_ns = sl_clock_ns() + COPY_NS;
	else if (err < 0 || f->over)
		*not_before_ns = sl_clock_ns() + COPY_NS / 2;
	return err >= 0 || err == -EFBIG || err == -ENOMEM;
}

static void *run(void *arg)
{
	struct sl_image_follow *f = arg;
	uint64_t not_before_ns = 0, ticket;

	while (wait_for_viewers(f, not_before_ns, &ticket)) {
		bool attached = attach(f);

		not_before_ns = attached ? 0 : sl_clock_ns() + TRY_NS / 2;
		if (!attached || step(f, ticket, &not_before_ns))
			answer(f, ticket);
	}
	close_share(f);
	return NULL;
}

/* ---- the calls ---- */

int sl_image_follow_start(struct sl_image_follow *f, int bell)
{
	pthread_condattr_t attributes;
	int err;

	memset(f, 0, sizeof(*f));
	f->bell = bell;
	f->facts.rate_Hz = -1;
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&f->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	err = sl_thread_start(&f->thread, "follow", NULL, run, f);
	if (err)
		sl_image_follow_stop(f);
	return err;
}

void sl_image_follow_stop(struct sl_image_follow *f)
{
	pthread_mutex_lock(&f->lock);
	f->ends = true;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
	sl_thread_join(&f->thread);
	sl_image_element_release(f->current);
	f->current = NULL;
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
}

void sl_image_follow_name(struct sl_image_follow *f, const char *name)
{
	pthread_mutex_lock(&f->lock);
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->named = true;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

uint64_t sl_image_follow_look(struct sl_image_follow *f, uint64_t until_ns)
{
	uint64_t ticket;

	pthread_mutex_lock(&f->lock);
	ticket = ++f->asked;
	f->until_ns = until_ns > f->until_ns ? until_ns : f->until_ns;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
	return ticket;
}

void sl_image_follow_want(struct sl_image_follow *f, unsigned array)
{
	pthread_mutex_lock(&f->lock);
	f->wanted_ns[array] = sl_clock_ns();
	f->asked++;
	pthread_cond_signal(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

void sl_image_follow_view(struct sl_image_follow *f, struct sl_image_view *view)
{
	pthread_mutex_lock(&f->lock);
	*view = (struct sl_image_view){.element = f->current,
				       .answered = f->answered,
				       .facts = f->facts,
				       .error = f->error};
	if (view->element)
		sl_image_element_hold(view->element);
	pthread_mutex_unlock(&f->lock);
}
