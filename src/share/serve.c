/* serve.c - the share's thread: followers connect, get its memory, and send messages. The writer
 * never waits for it. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "share/remote.h"

enum {
	/* Entries of poll before those of peers: listener and kick, listener and endpoint for other
	 * hosts. */
	FIRST_PEERS = 4,
	MOST_PONGS = 1000,
	PAUSE_MS = 100, /* without a free descriptor no connection can be accepted */
};

void sl_share_kick(struct sl_share *share)
{
	const uint64_t one = 1;
	ssize_t n = write(share->kick, &one, sizeof(one));

	(void)n; /* full: the thread wakes all the same */
}

/* ---- peers ---- */

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
}

static bool may_follow(int socket)
{
	struct ucred other;
	socklen_t bytes = sizeof(other);

	return !getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &bytes) &&
	       (other.uid == geteuid() || other.uid == 0);
}

static void take_connection(struct sl_share *share)
{
	int socket = accept4(share->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct sl_share_peer *peer;

	share->pauses = socket < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
	if (socket < 0)
		return;
	peer = share->peers < share->max_peers && may_follow(socket) ? calloc(1, sizeof(*peer))
								     : NULL;
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
}

/* ---- frames of a peer ---- */

static int attach(struct sl_share *share, struct sl_share_peer *peer)
{
	int fd[2] = {share->memory.fd, share->memory.second_fd}, kept[2], fds = 0;
	int err = 0;

	/* Copies: the share may be resized before they are sent. */
	for (; fds < 2 && fd[fds] >= 0; fds++) {
		kept[fds] = dup(fd[fds]);
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
	if (sleeps && !peer->sleeps)
		atomic_fetch_add_explicit(&share->sleepers, 1, memory_order_relaxed);
	if (!sleeps && peer->sleeps)
		atomic_fetch_sub_explicit(&share->sleepers, 1, memory_order_relaxed);
	peer->sleeps = sleeps;
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
		return head->value == SL_SHARE_VERSION && !head->bytes ? attach(share, peer)
								       : -EPROTO;
	case SL_SHARE_FRAME_PING:
		/* A peer that pings and never reads is dropped. */
		return head->bytes || peer->out.frames > MOST_PONGS
			       ? -EPROTO
			       : sl_share_out_put(&peer->out, SL_SHARE_FRAME_PONG, head->value,
						  NULL, 0, NULL, 0);
	case SL_SHARE_FRAME_SLEEPS:
		set_sleeps(share, peer, head->value);
		return head->bytes ? -EPROTO : 0;
	case SL_SHARE_FRAME_MESSAGE:
		if (!peer->id)
			return -EPROTO;
		if (peer->inbox_bytes && peer->inbox_bytes + head->bytes > share->queue_bytes)
			return -EAGAIN;
		err = sl_share_inbox_put(&share->inbox, peer->id, &peer->in);
		if (err)
			return err;
		peer->inbox_bytes += head->bytes;
		share->counts.messages_in++;
		pthread_cond_signal(&share->arrived);
		return 0;
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
		int got = peer->stuck ? 1 : sl_share_in_read(&peer->in, peer->socket, most);
		int err = got == 1 ? handle(share, peer) : got;

		peer->stuck = err == -EAGAIN;
		if (err || got != 1)
			return err == -EAGAIN ? 0 : err;
		sl_share_in_next(&peer->in);
	}
	return 0;
}

static void serve_peer(struct sl_share *share, struct sl_share_peer *peer, short revents)
{
	int err = 0;

	if (peer->stuck || revents & (POLLIN | POLLHUP | POLLERR))
		err = read_peer(share, peer);
	if (!err && peer->out.first) {
		err = sl_share_out_send(&peer->out, peer->socket);
		err = err == -EAGAIN ? 0 : err;
	}
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
		entry[3] = (struct pollfd){.fd = sl_endpoint_fd(r->endpoint),
					   .events = sl_endpoint_events(r->endpoint)};
	for (const struct sl_share_peer *peer = share->peer; peer; peer = peer->next)
		/* One whose message waits for room goes on when the application has taken some. */
		entry[n++] = (struct pollfd){
			.fd = peer->stuck ? -1 : peer->socket,
			.events = (short)(POLLIN | (peer->out.first ? POLLOUT : 0)),
		};
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
	while (share->peer)
		sl_share_drop(share, share->peer);
}
