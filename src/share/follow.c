/* follow.c - a follower: attached to a share's memory, it looks, copies, and looks again. */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "share/follower.h"

enum {
	COPIES = 1000, /* that the writer may overtake before a call gives up */
	AT_LEAST = 10, /* copies that it tries, however short its time is */
	LONG_MS = 100, /* longest sleep: then it looks whether the writer lives */
	AWAKE = 1000,  /* calls in a row without a sleep: it no longer sleeps */
};
/* After a wake the writer may leave out further ones for 50 us (writer.c): a follower that has seen
 * a commit or a wake in the last millisecond sleeps no longer than that (invariant WOKEN,
 * tests/model/share_wake.pml). */
#define RECENT_NS UINT64_C(1000000)
#define ALIVE_NS  UINT64_C(1000000) /* how often fetches look whether the writer lives */
/* Between two looks at a place that is being filled. */
#define FILLING_NS	20000L
#define FILLING_MOST_NS 1000000L

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t sl_share_end_ns(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : now_ns() + (uint64_t)timeout_ms * 1000000;
}

int sl_share_left_ms(uint64_t end_ns)
{
	uint64_t now = now_ns();

	if (end_ns == UINT64_MAX)
		return -1;
	return now >= end_ns ? 0 : (int)((end_ns - now + 999999) / 1000000);
}

const struct sl_share_description *sl_follow_describe(const struct sl_follower *f)
{
	return &f->description;
}

const uint64_t *sl_follow_flag(const struct sl_follower *f)
{
	return f->ops->flag(f);
}

void sl_follower_describe(struct sl_follower *f, const struct sl_share_header *header)
{
	sl_share_fill_description(header, &f->description);
	if (header->longest)
		f->longest = header->longest;
	f->first = header->first;
	if (f->next < f->first)
		f->next = f->first;
}

int sl_follow_published(struct sl_follower *f, uint64_t *n)
{
	return f->ops->published(f, n);
}

uint64_t sl_follow_peers(const struct sl_follower *f)
{
	return f->ops->peers(f);
}

/* ---- waiting ---- */

static uint64_t published(struct sl_follower *f)
{
	/* Pairs with the release in sl_share_done(). */
	uint64_t p = __atomic_load_n(&f->words->published, __ATOMIC_ACQUIRE);

	if (p != f->seen) {
		f->seen = p;
		f->seen_ns = now_ns();
	}
	return p;
}

static uint32_t wake_of(struct sl_follower *f)
{
	/* Pairs with the release in sl_share_wake(). */
	uint32_t wake = __atomic_load_n(&f->words->wake, __ATOMIC_ACQUIRE);

	if (wake != f->wake) {
		f->wake = wake;
		f->seen_ns = now_ns();
	}
	return wake;
}

/* The writer makes system calls only once a follower has said that it sleeps. Without waiting: the
 * socket may be full of messages that the writer does not take, while elements come. */
static void say_that_it_sleeps(struct sl_follower *f)
{
	f->said = f->said || !sl_follower_say(f, SL_SHARE_FRAME_SLEEPS, 1, NULL, 0, 0);
}

/* A follower that has slept and now only polls must not cost the writer system calls. */
static void say_that_it_is_awake(struct sl_follower *f)
{
	if (!f->said || ++f->awake < AWAKE)
		return;
	f->awake = 0;
	f->said = sl_follower_say(f, SL_SHARE_FRAME_SLEEPS, 0, NULL, 0, 0) != 0;
}

/* Until the writer commits, or some time has passed. `wake` was read, and then the time `now`,
 * before `published` was. */
static void sleep_on(struct sl_follower *f, uint32_t wake, uint64_t now, uint64_t end_ns)
{
	bool recent = !f->said || now < f->seen_ns + RECENT_NS;
	uint64_t most = recent ? RECENT_NS : LONG_MS * UINT64_C(1000000);
	uint64_t left = end_ns == UINT64_MAX ? most : end_ns > now ? end_ns - now : 0;
	struct timespec time;

	f->awake = 0;
	left = left < most ? left : most;
	time = (struct timespec){(time_t)(left / 1000000000), (long)(left % 1000000000)};
	syscall(SYS_futex, &f->words->wake, FUTEX_WAIT, wake, &time, NULL, 0);
}

/* Whether the writer's program is still there: its end of the socket. */
static bool is_alive(const struct sl_follower *f)
{
	struct pollfd p = {.fd = f->socket, .events = POLLRDHUP};

	return poll(&p, 1, 0) <= 0 || !(p.revents & (POLLHUP | POLLRDHUP | POLLERR));
}

/* ---- which element ---- */

uint64_t sl_follower_choose(struct sl_follower *f, enum sl_follow_mode mode, uint64_t p)
{
	uint64_t count = f->description.count;

	if (p <= f->next || p <= f->first)
		return UINT64_MAX;
	if (mode == SL_FOLLOW_NEWEST)
		return p - 1;
	/* Far behind: not to the oldest, which the writer takes next, but a quarter of the
	 * ring on. */
	if (p - f->next >= count)
		f->next = p - count + (count > 1 ? (count + 3) / 4 : 0);
	if (f->next >= p)
		f->next = p - 1;
	return f->next;
}

static uint64_t choose(struct sl_follower *f, enum sl_follow_mode mode)
{
	return sl_follower_choose(f, mode, published(f));
}

static bool is_there(struct sl_follower *f)
{
	uint64_t p = published(f);

	return p > f->next && p > f->first;
}

static enum sl_share_state state_of(const struct sl_follower *f)
{
	/* Pairs with the release of the writer: all that it has published before is seen. */
	return (enum sl_share_state)__atomic_load_n(&f->words->state, __ATOMIC_ACQUIRE);
}

/* Nothing is left of what was published: what now? 0: wait; or what the caller is told. */
static int at_the_end(struct sl_follower *f, enum sl_share_state state, uint64_t end_ns)
{
	int err;

	switch (state) {
	case SL_SHARE_MOVED:
		err = sl_follower_attach(f, end_ns, NULL);
		return err ? err : -ESTALE;
	case SL_SHARE_ENDED:
		return -EPIPE;
	default:
		/* What it published before it died is still read. */
		if (!is_alive(f))
			return state_of(f) == SL_SHARE_LIVE && !is_there(f) ? -ECONNRESET : 0;
		return end_ns != UINT64_MAX && now_ns() >= end_ns ? -ETIMEDOUT : 0;
	}
}

/* The element to take next. */
static int wait_for(struct sl_follower *f, enum sl_follow_mode mode, uint64_t end_ns, uint64_t *n)
{
	say_that_it_is_awake(f);
	for (;;) {
		/* First the words that a change of the others is told by, then the others. */
		uint32_t wake = wake_of(f);
		enum sl_share_state state = state_of(f);
		uint64_t now;
		int err;

		*n = choose(f, mode);
		if (*n != UINT64_MAX)
			return 0;
		err = at_the_end(f, state, end_ns);
		if (err)
			return err;
		say_that_it_sleeps(f);
		now = now_ns();
		if (choose(f, mode) == UINT64_MAX)
			sleep_on(f, wake, now, end_ns);
	}
}

/* n rises, and `missed` has every element between two that are delivered (invariant COUNTED). */
void sl_follower_deliver(struct sl_follower *f, uint64_t n, struct sl_follow_element *element)
{
	element->n = n;
	element->missed = f->had ? n - f->after : 0;
	f->had = true;
	f->after = f->next = n + 1;
}

/* ---- elements ---- */

void sl_follower_limit_rows(const struct sl_follower *f, struct sl_share_note *note)
{
	for (uint32_t i = 0; i < f->description.arrays; i++) {
		const struct sl_share_array *array = &f->description.array[i];

		if (array->ragged && note->rows[i] > array->dim[0])
			note->rows[i] = array->dim[0];
	}
}

/* A part of element n, and its note. into: NULL: the note alone. False: the writer has taken its
 * place. */
static bool copy(const struct sl_follower *f, uint64_t n, uint64_t offset, uint64_t bytes,
		 void *into, struct sl_share_note *note)
{
	const struct sl_share_place *place = sl_share_place_of(&f->memory, n);

	if (sl_share_look(place, n) != SL_SHARE_THERE)
		return false;
	sl_share_load(note, &place->note, sizeof(*note));
	if (into)
		sl_share_load(into, sl_share_data_of(&f->memory, n) + offset, bytes);
	sl_follower_limit_rows(f, note);
	return sl_share_whole(place, n);
}

/* The next element, copied to `data`; NULL: its note alone. */
static int take(struct sl_follower *f, enum sl_follow_mode mode, uint64_t end_ns, void *data,
		struct sl_follow_element *element)
{
	for (unsigned i = 0; i < COPIES; i++) {
		uint64_t n;
		int err = wait_for(f, mode, end_ns, &n);

		if (err)
			return err;
		if (copy(f, n, 0, f->description.data_bytes, data, &element->note)) {
			sl_follower_deliver(f, n, element);
			return 0;
		}
		f->next = n + 1; /* invariant OVERTAKEN: element n + count takes its place */
		if (i >= AT_LEAST && now_ns() >= end_ns)
			return -ETIMEDOUT;
	}
	return -EAGAIN;
}

int sl_follow_next(struct sl_follower *f, enum sl_follow_mode mode, int timeout_ms, void *data,
		   uint64_t data_bytes, struct sl_follow_element *element)
{
	int err;

	if (data_bytes < f->description.data_bytes)
		return -ERANGE;
	err = f->ops->take(f, mode, sl_share_end_ns(timeout_ms), data, element);
	element->data = err ? NULL : data;
	return err;
}

int sl_follow_peek(struct sl_follower *f, enum sl_follow_mode mode, int timeout_ms,
		   struct sl_follow_element *element)
{
	int err;

	if (!f->ops->views)
		return -EOPNOTSUPP;
	err = f->ops->take(f, mode, sl_share_end_ns(timeout_ms), NULL, element);
	element->data = err ? NULL : sl_share_data_of(&f->memory, element->n);
	return err;
}

int sl_follow_is_valid(const struct sl_follower *f, uint64_t n)
{
	const struct sl_share_place *place;

	if (!f->ops->views || n < f->first)
		return 0;
	place = sl_share_place_of(&f->memory, n);
	return sl_share_look(place, n) == SL_SHARE_THERE && sl_share_whole(place, n);
}

/* Whether what this memory has last is what the share has last. */
static int check_current(struct sl_follower *f)
{
	enum sl_share_state state = state_of(f);
	uint64_t now;

	if (state != SL_SHARE_LIVE)
		return at_the_end(f, state, sl_share_end_ns(f->timeout_ms));
	now = now_ns();
	if (now < f->alive_ns + ALIVE_NS)
		return 0;
	f->alive_ns = now;
	return is_alive(f) || state_of(f) != SL_SHARE_LIVE ? 0 : -ECONNRESET;
}

/* One try. */
static int fetch_once(struct sl_follower *f, uint64_t n, uint64_t offset, uint64_t bytes,
		      void *into, struct sl_follow_element *element)
{
	if (!copy(f, n, offset, bytes, into, &element->note))
		return -ESTALE;
	element->n = n;
	element->missed = 0;
	element->data = into;
	return 0;
}

/* The newest element is being overwritten, and no other is published: the share has one place. 0:
 * try again. */
static int wait_while_filled(struct sl_follower *f, uint64_t end_ns, long *pause_ns)
{
	int err = check_current(f);

	if (err)
		return err;
	if (now_ns() >= end_ns)
		return -EAGAIN;
	nanosleep(&(struct timespec){.tv_nsec = *pause_ns}, NULL);
	*pause_ns = 2 * *pause_ns < FILLING_MOST_NS ? 2 * *pause_ns : FILLING_MOST_NS;
	return 0;
}

static int fetch_newest(struct sl_follower *f, uint64_t offset, uint64_t bytes, void *into,
			struct sl_follow_element *element)
{
	uint64_t end_ns = sl_share_end_ns(f->timeout_ms);
	long pause_ns = FILLING_NS;
	unsigned overtaken = 0;
	int err = 0;

	while (!err && overtaken < COPIES) {
		uint64_t last = published(f) - 1;

		if (!fetch_once(f, last, offset, bytes, into, element))
			return 0;
		if (published(f) - 1 == last)
			err = wait_while_filled(f, end_ns, &pause_ns);
		else
			overtaken++;
	}
	return err ? err : -EAGAIN;
}

static int fetch(struct sl_follower *f, uint64_t n, uint64_t offset, uint64_t bytes, void *into,
		 struct sl_follow_element *element)
{
	uint64_t p = published(f);
	bool newest = n == UINT64_MAX;
	int err = newest || n >= p ? check_current(f) : 0;

	if (err)
		return err;
	if (p <= f->first || (!newest && n >= p))
		return -ENODATA;
	if (newest)
		return fetch_newest(f, offset, bytes, into, element);
	return n < f->first ? -ESTALE : fetch_once(f, n, offset, bytes, into, element);
}

int sl_follow_fetch(struct sl_follower *f, uint64_t n, uint64_t offset, uint64_t bytes, void *into,
		    struct sl_follow_element *element)
{
	uint64_t all = f->description.data_bytes;

	if (offset > all || bytes > all - offset)
		return -ERANGE;
	return f->ops->fetch(f, n, offset, bytes ? bytes : all - offset, into, element);
}

static int published_here(struct sl_follower *f, uint64_t *n)
{
	*n = published(f);
	return 0;
}

static const uint64_t *flag(const struct sl_follower *f)
{
	return &f->words->published;
}

static uint64_t peers(const struct sl_follower *f)
{
	return __atomic_load_n(&f->words->peers, __ATOMIC_RELAXED);
}

static void forget(struct sl_follower *f)
{
	sl_share_memory_fini(&f->memory);
}

const struct sl_follower_ops sl_follower_here = {
	.take = take,
	.fetch = fetch,
	.published = published_here,
	.flag = flag,
	.peers = peers,
	.close = forget,
	.views = true,
};

int sl_follow_each(struct sl_follower *f, enum sl_follow_mode mode, int timeout_ms,
		   int (*each)(void *arg, const struct sl_share_description *description,
			       const struct sl_follow_element *element),
		   void *arg)
{
	struct sl_follow_element element;
	void *data = NULL;
	int err = -ESTALE;

	while (err == 0 || err == -ESTALE) {
		if (err == -ESTALE) {
			free(data);
			data = malloc(f->description.data_bytes);
			if (!data)
				return -ENOMEM;
		}
		err = sl_follow_next(f, mode, timeout_ms, data, f->description.data_bytes,
				     &element);
		if (err == -ESTALE)
			continue;
		if (!err)
			err = each(arg, &f->description, &element);
		if (err)
			break;
	}
	free(data);
	return err;
}
