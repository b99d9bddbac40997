/* writer.c - a share: opened, filled element by element, resized, closed. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "share/remote.h"

/* At most one system call for followers in this time. One that goes to sleep within a millisecond
 * of a commit or a wake looks again by itself (follow.c), so that none is left asleep (invariant
 * WOKEN, tests/model/share_wake.pml). */
#define WAKE_NS UINT64_C(50000)

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void sl_share_wake(struct sl_share_words *words)
{
	__atomic_fetch_add(&words->wake, 1, __ATOMIC_RELEASE); /* wait_for() in follow.c */
	syscall(SYS_futex, &words->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- open and close ---- */

static int claim_name(struct sl_share *share, const char *name, char *why, size_t why_bytes)
{
	int folder, err = sl_share_folder(true, &folder, why, why_bytes);

	if (err)
		return err;
	err = sl_registry_claim(folder, name, &share->claim, why, why_bytes);
	close(folder);
	if (err == -EEXIST)
		snprintf(why, why_bytes,
			 "a share '%s' exists already; choose another name, or end the program "
			 "that has it",
			 name);
	if (err)
		return err;
	share->listener = sl_registry_listen(&share->claim);
	if (share->listener >= 0)
		return 0;
	snprintf(why, why_bytes, "its socket: %s", strerror(-share->listener));
	sl_registry_release(&share->claim);
	return share->listener;
}

static int start(struct sl_share *share, const char *name, char *why, size_t why_bytes)
{
	int err = claim_name(share, name, why, why_bytes);

	if (err)
		return err;
	share->kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	err = share->kick < 0 ? -errno : sl_share_serve_start(share);
	if (!err)
		return 0;
	snprintf(why, why_bytes, "its thread: %s", strerror(-err));
	if (share->kick >= 0)
		close(share->kick);
	close(share->listener);
	sl_registry_release(&share->claim);
	return err;
}

/* Its time-outs do not change when the time of day is set. */
static void init_condition(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}

int sl_share_open(const char *name, const struct sl_share_options *options, struct sl_share **out,
		  struct sl_remote_error *error)
{
	struct sl_share_header plan;
	char why[SL_SHARE_WHY];
	struct sl_share *share;
	int err;

	if (!sl_share_name_of(name))
		return sl_share_fail(
			error, -EINVAL, "request",
			"'%s' is no name of a share: 1 to %d of A-Z a-z 0-9 . _ -, and "
			"no '.' or '-' at the beginning",
			name, SL_REGISTRY_NAME - 1);
	name = sl_share_name_of(name);
	share = calloc(1, sizeof(*share));
	if (!share)
		return sl_share_fail(error, -ENOMEM, "memory", "no memory");
	err = sl_share_plan(name, options, &plan, why, sizeof(why));
	if (err)
		goto undo_share;
	share->queue_bytes = options->queue_bytes ? options->queue_bytes : SL_SHARE_QUEUE_BYTES;
	plan.longest = share->queue_bytes;
	err = sl_share_memory_make(&plan, options->memory_fd, &share->memory, why, sizeof(why));
	if (err)
		goto undo_share;
	sl_share_fill_description(&plan, &share->description);
	share->max_peers = options->max_peers ? options->max_peers : SL_SHARE_PEERS;
	snprintf(share->url, sizeof(share->url), "share:%s", name);
	sl_share_inbox_init(&share->inbox);
	pthread_mutex_init(&share->lock, NULL);
	init_condition(&share->arrived);
	err = options->listen ? sl_share_remote_open(share, options, why, sizeof(why)) : 0;
	if (!err)
		err = start(share, name, why, sizeof(why));
	if (!err) {
		*out = share;
		return 0;
	}
	sl_share_remote_close(share);
	pthread_cond_destroy(&share->arrived);
	pthread_mutex_destroy(&share->lock);
	sl_share_memory_fini(&share->memory);
undo_share:
	free(share);
	return sl_share_fail(error, err, err == -EINVAL ? "request" : "share",
			     "cannot open the share '%s': %s", name, why);
}

static void end_generation(struct sl_share_memory *memory, enum sl_share_state state)
{
	/* Pairs with the acquire of followers: what was published is there. */
	__atomic_store_n(&memory->header->words.state, state, __ATOMIC_RELEASE);
	sl_share_wake(&memory->header->words);
}

void sl_share_close(struct sl_share *share)
{
	if (!share)
		return;
	end_generation(&share->memory, SL_SHARE_ENDED);
	if (share->remote)
		sl_share_remote_linger(share);
	sl_share_serve_stop(share);
	sl_share_remote_close(share);
	close(share->kick);
	close(share->listener);
	sl_registry_release(&share->claim);
	sl_share_inbox_fini(&share->inbox);
	sl_share_memory_fini(&share->memory);
	pthread_cond_destroy(&share->arrived);
	pthread_mutex_destroy(&share->lock);
	free(share);
}

const struct sl_share_description *sl_share_describe(const struct sl_share *share)
{
	return &share->description;
}

const char *sl_share_url(const struct sl_share *share)
{
	return share->url;
}

/* ---- elements ---- */

struct sl_share_note *sl_share_reserve(struct sl_share *share)
{
	struct sl_share_place *place = sl_share_place_of(&share->memory, share->n);
	const struct sl_share_note none = {0};

	if (!share->reserved) {
		sl_share_claim(&share->memory.header->words, place, share->n);
		sl_share_store(&place->note, &none, sizeof(none));
		share->reserved = true;
	}
	return &place->note;
}

void *sl_share_at(struct sl_share *share, uint32_t array)
{
	return array < share->description.arrays ? sl_share_data_of(&share->memory, share->n) +
							   share->description.array[array].offset
						 : NULL;
}

static void wake_sleepers(struct sl_share *share)
{
	bool here = atomic_load_explicit(&share->sleepers, memory_order_relaxed);
	bool there = share->remote &&
		     atomic_load_explicit(&share->remote->waiting, memory_order_relaxed);
	uint64_t now;

	if (!here && !there)
		return;
	now = clock_ns(CLOCK_MONOTONIC);
	if (now - share->wake_ns < WAKE_NS)
		return;
	share->wake_ns = now;
	if (here)
		sl_share_wake(&share->memory.header->words);
	if (there)
		sl_share_kick(share);
}

uint64_t sl_share_commit(struct sl_share *share)
{
	struct sl_share_place *place = sl_share_place_of(&share->memory, share->n);
	uint64_t now;

	sl_share_reserve(share); /* of a caller that has not */
	now = clock_ns(CLOCK_REALTIME);
	sl_share_store(&place->note.commit_unix_ns, &now, sizeof(now));
	sl_share_done(&share->memory.header->words, place, share->n);
	share->reserved = false;
	wake_sleepers(share);
	return share->n++;
}

static uint64_t bytes_of(const struct sl_share_array *array, uint32_t rows)
{
	if (!array->ragged)
		return array->bytes;
	return array->bytes / array->dim[0] * (rows < array->dim[0] ? rows : array->dim[0]);
}

uint64_t sl_share_push(struct sl_share *share, const struct sl_share_note *note,
		       const void *const *from)
{
	struct sl_share_note *to = sl_share_reserve(share);

	if (note)
		sl_share_store(to, note, sizeof(*note));
	for (uint32_t i = 0; i < share->description.arrays; i++)
		if (from && from[i])
			sl_share_store(
				sl_share_at(share, i), from[i],
				bytes_of(&share->description.array[i], note ? note->rows[i] : 0));
	return sl_share_commit(share);
}

/* ---- another layout ---- */

/* Both generations lie in the same memory of the application: elements of the new one will be
 * written over those of the old one. */
static bool share_memory(const struct sl_share_memory *a, const struct sl_share_memory *b)
{
	struct stat x, y;

	return a->second && b->second && !fstat(a->second_fd, &x) && !fstat(b->second_fd, &y) &&
	       x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int sl_share_resize(struct sl_share *share, const struct sl_share_options *options,
		    struct sl_remote_error *error)
{
	struct sl_share_memory fresh, old = share->memory;
	struct sl_share_header plan;
	char why[SL_SHARE_WHY];
	int err = sl_share_plan(share->description.name, options, &plan, why, sizeof(why));

	plan.generation = share->description.generation + 1;
	plan.first = plan.words.claimed = plan.words.published = share->n;
	plan.longest = share->queue_bytes;
	if (!err)
		err = sl_share_memory_make(&plan, options->memory_fd, &fresh, why, sizeof(why));
	if (err)
		return sl_share_fail(error, err, err == -EINVAL ? "request" : "share",
				     "cannot resize the share '%s': %s; it stays as it was",
				     share->description.name, why);
	pthread_mutex_lock(&share->lock);
	fresh.header->words.peers = share->peers;
	share->memory = fresh;
	sl_share_fill_description(&plan, &share->description);
	if (share->remote)
		sl_share_remote_move(share);
	pthread_mutex_unlock(&share->lock);
	share->reserved = false;
	if (share_memory(&old, &fresh))
		sl_share_cancel(old.place, old.count);
	end_generation(&old, SL_SHARE_MOVED);
	sl_share_memory_fini(&old);
	return 0;
}

/* ---- messages ---- */

static struct sl_share_peer *find(struct sl_share *share, uint64_t id)
{
	struct sl_share_peer *peer = share->peer;

	while (peer && peer->id != id)
		peer = peer->next;
	return peer;
}

static int put_message(struct sl_share *share, struct sl_share_peer *peer, uint32_t kind,
		       const void *data, uint64_t bytes)
{
	int err;

	if (peer->out.frames >= sl_share_most_messages(share->queue_bytes) ||
	    peer->out.bytes + bytes > share->queue_bytes)
		return -EAGAIN;
	err = sl_share_out_put(&peer->out, SL_SHARE_FRAME_MESSAGE, kind, data, bytes, NULL, 0);
	share->counts.messages_out += !err;
	return err;
}

int sl_share_send(struct sl_share *share, uint64_t id, uint32_t kind, const void *data,
		  uint64_t bytes)
{
	struct sl_share_peer *peer;
	int err = 0;

	if (bytes > share->queue_bytes)
		return -EMSGSIZE;
	pthread_mutex_lock(&share->lock);
	if (id) {
		peer = find(share, id);
		err = peer && !peer->deaf ? put_message(share, peer, kind, data, bytes) : -ENOENT;
	} else {
		for (peer = share->peer; peer; peer = peer->next)
			if (peer->id && !peer->deaf)
				put_message(share, peer, kind, data, bytes);
	}
	pthread_mutex_unlock(&share->lock);
	sl_share_kick(share);
	return err;
}

static void deadline(int timeout_ms, struct timespec *end)
{
	clock_gettime(CLOCK_MONOTONIC, end);
	end->tv_sec += timeout_ms / 1000;
	end->tv_nsec += timeout_ms % 1000 * 1000000L;
	if (end->tv_nsec >= 1000000000L) {
		end->tv_sec++;
		end->tv_nsec -= 1000000000L;
	}
}

int sl_share_receive(struct sl_share *share, int timeout_ms, struct sl_share_message *message)
{
	struct sl_share_peer *peer;
	struct timespec end;
	int took, err = 0;

	if (timeout_ms >= 0)
		deadline(timeout_ms, &end);
	pthread_mutex_lock(&share->lock);
	while (!(took = sl_share_inbox_take(&share->inbox, message)) && !err)
		err = timeout_ms < 0 ? pthread_cond_wait(&share->arrived, &share->lock)
				     : pthread_cond_timedwait(&share->arrived, &share->lock, &end);
	peer = took ? find(share, message->peer) : NULL;
	if (peer) {
		peer->inbox_bytes -= message->bytes;
		peer->inbox_messages--;
	}
	pthread_mutex_unlock(&share->lock);
	if (took)
		sl_share_kick(share); /* this peer may send more */
	return took ? 0 : -ETIMEDOUT;
}

void sl_share_count(const struct sl_share *share, struct sl_share_counts *counts)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)&share->lock;

	pthread_mutex_lock(lock);
	*counts = share->counts;
	counts->peers = share->peers;
	/* The writer's own word: any thread may ask. */
	counts->published =
		__atomic_load_n(&share->memory.header->words.published, __ATOMIC_ACQUIRE);
	pthread_mutex_unlock(lock);
}
