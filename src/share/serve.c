/* serve.c - the share's thread: followers connect, get its memory, and send messages. The writer
 * never waits for it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "share/remote.h"

enum {
	/* Entries of poll before those of peers: listener and kick; for other hosts listener and
	 * transport. */
	FIRST_PEERS = 4,
	MOST_ANSWERS = 1000, /* that wait for a peer: until it reads, it asks nothing more */
	PAUSE_MS = 100,	     /* without a free descriptor no connection can be accepted */
};

void sl_share_kick(struct sl_share *share)
{
	const uint64_t one = 1;
	ssize_t n = write(share->kick, &one, sizeof(one));

	(void)n; /* full: the thread wakes all the same */
}

/* ---- peers ---- */

void sl_share_show_peers(struct sl_share *share)
{
	__atomic_store_n(&share->memory.header->words.peers, share->peers, __ATOMIC_RELAXED);
}

void sl_share_drop(struct sl_share *share, struct sl_share_peer *peer)
{
	struct sl_share_peer **link = &share->peer;

	while (*link != peer)
		link = &(*link)->next;
	*link = peer->next;
	if (peer->sleeps)
		atomic_fetch_sub_explicit(&share->sleepers, 1, memory_order_relaxed);
	sl_share_in_fini(&peer->in);
	sl_share_out_fini(&peer->out);
	close(peer->socket);
	if (peer->far)
		sl_share_remote_drop(share, peer);
	else
		share->peers--;
	free(peer);
	sl_share_show_peers(share);
}

static bool may_follow(int socket)
{
	struct ucred other;
	socklen_t bytes = sizeof(other);

	return !getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &bytes) &&
	       (other.uid == geteuid() || other.uid == 0);
}

/* There is room for one more: a connection that has not said HELLO gives way, the oldest first. */
static bool has_room(struct sl_share *share)
{
	struct sl_share_peer *oldest = NULL;

	if (share->peers < share->max_peers)
		return true;
	for (struct sl_share_peer *peer = share->peer; peer; peer = peer->next)
		if (!peer->id && !peer->far)
			oldest = peer;
	if (!oldest)
		return false;
	share->counts.refused++;
	sl_share_drop(share, oldest);
	return true;
}

static void take_connection(struct sl_share *share)
{
	int socket = accept4(share->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct sl_share_peer *peer;

	share->pauses = socket < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
	if (socket < 0)
		return;
	peer = may_follow(socket) && has_room(share) ? calloc(1, sizeof(*peer)) : NULL;
	if (!peer) {
		share->counts.refused++;
		close(socket);
		return;
	}
	peer->socket = socket;
	sl_share_out_init(&peer->out);
	peer->next = share->peer;
	share->peer = peer;
	share->peers++;
	sl_share_show_peers(share);
}

/* ---- frames of a peer ---- */

static int attach(struct sl_share *share, struct sl_share_peer *peer)
{
	int fd[2] = {share->memory.fd, share->memory.second_fd}, kept[2], fds = 0;
	int err = 0;

	/* Copies: the share may be resized before they are sent. */
	for (; fds < 2 && fd[fds] >= 0; fds++) {
		kept[fds] = fcntl(fd[fds], F_DUPFD_CLOEXEC, 0);
		if (kept[fds] < 0) {
			err = -errno;
			break;
		}
	}
	if (!err)
		err = sl_share_out_put(&peer->out, SL_SHARE_FRAME_ATTACHED,
				       share->description.generation, NULL, 0, kept, fds);
	if (err)
		while (fds--)
			close(kept[fds]);
	if (!err && !peer->id) {
		peer->id = ++share->last_id;
		share->counts.peers_ever++;
	}
	return err;
}

static void set_sleeps(struct sl_share *share, struct sl_share_peer *peer, bool sleeps)
{
	if (sleeps && !peer->sleeps) {
		atomic_fetch_add_explicit(&share->sleepers, 1, memory_order_relaxed);
		/* It looks again: a commit may not have seen that it sleeps. */
		sl_share_wake(&share->memory.header->words);
	}
	if (!sleeps && peer->sleeps)
		atomic_fetch_sub_explicit(&share->sleepers, 1, memory_order_relaxed);
	peer->sleeps = sleeps;
}

/* A question of a peer, which is answered only when those before have been read: one that asks and
 * never reads takes up neither memory nor descriptors. */
static int answer(struct sl_share *share, struct sl_share_peer *peer)
{
	const struct sl_share_frame *head = &peer->in.head;
	bool hello = head->type == SL_SHARE_FRAME_HELLO;

	if (head->bytes || (hello && head->value != SL_SHARE_VERSION))
		return -EPROTO;
	peer->full = !peer->deaf &&
		     (hello ? peer->out.offers > 0 : peer->out.frames >= MOST_ANSWERS);
	if (peer->full)
		return -EAGAIN;
	if (peer->deaf)
		return 0;
	return hello ? attach(share, peer)
		     : sl_share_out_put(&peer->out, SL_SHARE_FRAME_PONG, head->value, NULL, 0, NULL,
					0);
}

static int keep_message(struct sl_share *share, struct sl_share_peer *peer)
{
	uint64_t bytes = peer->in.head.bytes;
	int err;

	if (!peer->id)
		return -EPROTO;
	peer->stuck = (peer->inbox_bytes && peer->inbox_bytes + bytes > share->queue_bytes) ||
		      peer->inbox_messages >= sl_share_most_messages(share->queue_bytes);
	if (peer->stuck)
		return -EAGAIN;
	err = sl_share_inbox_put(&share->inbox, peer->id, &peer->in);
	if (err)
		return err;
	peer->inbox_bytes += bytes;
	peer->inbox_messages++;
	share->counts.messages_in++;
	pthread_cond_signal(&share->arrived);
	return 0;
}

/* 0: it was handled; -EAGAIN: it waits for room; another -errno: the peer is dropped. */
static int handle(struct sl_share *share, struct sl_share_peer *peer)
{
	const struct sl_share_frame *head = &peer->in.head;
	int err = peer->far ? sl_share_remote_handle(share, peer) : 1;

	if (err != 1)
		return err;
	switch (head->type) {
	case SL_SHARE_FRAME_HELLO:
	case SL_SHARE_FRAME_PING:
		return answer(share, peer);
	case SL_SHARE_FRAME_SLEEPS:
		set_sleeps(share, peer, head->value);
		return head->bytes ? -EPROTO : 0;
	case SL_SHARE_FRAME_MESSAGE:
		return keep_message(share, peer);
	default:
		return -EPROTO;
	}
}

/* Up to this many frames of a peer, then the next one has its turn. */
static int read_peer(struct sl_share *share, struct sl_share_peer *peer)
{
	enum { TURN = 64 };

	for (unsigned i = 0; i < TURN; i++) {
		bool stranger = peer->far && !peer->id;
		uint64_t most = stranger ? SL_SHARE_REMOTE_STRANGER : share->queue_bytes;
		bool waits = peer->stuck || peer->full; /* a frame that is whole already */
		int got = waits ? 1 : sl_share_in_read(&peer->in, peer->socket, most);
		int err = got == 1 ? handle(share, peer) : got;

		if (err || got != 1)
			return err == -EAGAIN ? 0 : err;
		sl_share_in_next(&peer->in);
	}
	return 0;
}

static void send_waiting(struct sl_share_peer *peer)
{
	int err = peer->out.first ? sl_share_out_send(&peer->out, peer->socket) : 0;

	if (!err || err == -EAGAIN)
		return;
	sl_share_out_fini(&peer->out);
	peer->deaf = true;
}

static void serve_peer(struct sl_share *share, struct sl_share_peer *peer, short revents)
{
	int err = 0;

	send_waiting(peer); /* first, so that there is room for answers */
	if (peer->stuck || peer->full || revents & (POLLIN | POLLHUP | POLLERR))
		err = read_peer(share, peer);
	if (!err)
		send_waiting(peer);
	if (err || (peer->far && peer->far->phase == SL_SHARE_LEAVES && !peer->out.first))
		sl_share_drop(share, peer);
}

/* ---- the loop ---- */

static unsigned prepare(struct sl_share *share, struct pollfd *entry)
{
	const struct sl_share_remote *r = share->remote;
	unsigned n = FIRST_PEERS;

	entry[0] = (struct pollfd){.fd = share->pauses ? -1 : share->listener, .events = POLLIN};
	entry[1] = (struct pollfd){.fd = share->kick, .events = POLLIN};
	entry[2] = (struct pollfd){.fd = r && !r->pauses ? r->listener : -1, .events = POLLIN};
	entry[3] = (struct pollfd){.fd = -1};
	if (r)
		entry[3] = (struct pollfd){.fd = r->rdma->ops->fd(r->rdma),
					   .events = r->rdma->ops->events(r->rdma)};
	for (const struct sl_share_peer *peer = share->peer; peer; peer = peer->next) {
		bool sends = peer->out.first || peer->full;

		/* One whose message waits for room goes on when the application has taken some. */
		entry[n++] = (struct pollfd){
			.fd = peer->stuck && !sends ? -1 : peer->socket,
			.events = (short)((peer->stuck || peer->full ? 0 : POLLIN) |
					  (sends ? POLLOUT : 0)),
		};
	}
	return n;
}

static void serve(struct sl_share *share, struct pollfd *entry)
{
	struct sl_share_peer *peer = share->peer, *next;
	bool kicked = entry[1].revents;
	uint64_t kicks;
	ssize_t n;

	if (kicked)
		n = read(share->kick, &kicks, sizeof(kicks));
	(void)n;
	if (share->remote)
		sl_share_remote_settle(share);
	/* Those that poll() looked at, in the same order; a peer that comes now is put in front. */
	for (unsigned i = FIRST_PEERS; peer; peer = next, i++) {
		next = peer->next;
		serve_peer(share, peer, entry[i].revents);
	}
	if (entry[0].revents)
		take_connection(share);
	if (entry[2].revents)
		sl_share_remote_accept(share);
	if (share->remote)
		sl_share_remote_turn(share, kicked, sl_clock_ns());
}

static bool is_paused(const struct sl_share *share)
{
	return share->pauses || (share->remote && share->remote->pauses);
}

/* Until something happens; busy: look only. */
static int sleep_until(const struct sl_share *share, struct pollfd *entry, unsigned n, bool busy)
{
	uint64_t now = sl_clock_ns(),
		 wake = is_paused(share) ? now + PAUSE_MS * 1000000 : UINT64_MAX;
	uint64_t other = share->remote ? sl_share_remote_wake(share) : UINT64_MAX, ns = 0;
	struct timespec time;

	wake = other < wake ? other : wake;
	if (!busy && wake > now)
		ns = wake - now;
	time = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	return ppoll(entry, n, !busy && wake == UINT64_MAX ? NULL : &time, NULL);
}

/* The thread ends, also where it cannot wait for events any longer: what other threads wait for
 * it to do, they do themselves from now on. */
static void stop_serving(struct sl_share *share)
{
	pthread_mutex_lock(&share->lock);
	share->unserved = true;
	if (share->remote)
		sl_share_remote_settle(share);
	pthread_mutex_unlock(&share->lock);
}

static void *run(void *arg)
{
	struct sl_share *share = arg;
	struct pollfd *entry =
		calloc(share->max_peers + SL_SHARE_STRANGERS + FIRST_PEERS, sizeof(*entry));
	bool busy = false;
	unsigned n;

	while (entry && !atomic_load_explicit(&share->ends, memory_order_acquire)) {
		pthread_mutex_lock(&share->lock);
		n = prepare(share, entry);
		pthread_mutex_unlock(&share->lock);
		if (sleep_until(share, entry, n, busy) < 0 && errno != EINTR)
			break;
		share->pauses = false;
		if (share->remote)
			share->remote->pauses = false;
		pthread_mutex_lock(&share->lock);
		serve(share, entry);
		pthread_mutex_unlock(&share->lock);
		busy = share->remote && sl_share_remote_poll(share);
	}
	free(entry);
	stop_serving(share);
	return NULL;
}

int sl_share_serve_start(struct sl_share *share)
{
	return sl_thread_start(&share->thread, "share", NULL, run, share);
}

void sl_share_serve_stop(struct sl_share *share)
{
	/* Pairs with the acquire in run(). */
	atomic_store_explicit(&share->ends, true, memory_order_release);
	sl_share_kick(share);
	sl_thread_join(&share->thread);
	while (share->peer) {
		struct sl_share_peer *peer = share->peer;

		/* What waits for it goes as far as its socket takes it now. */
		if (!peer->far)
			sl_share_out_put(&peer->out, SL_SHARE_FRAME_FAREWELL, 0, NULL, 0, NULL, 0);
		sl_share_out_send(&peer->out, peer->socket);
		sl_share_drop(share, peer);
	}
}
