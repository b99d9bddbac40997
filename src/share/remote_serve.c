/* remote_serve.c - followers on other hosts: let in, connected, told of arrivals. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/secret.h"
#include "share/remote.h"

/* The writer leaves out kicks that would follow within 50 us of one (writer.c): an element that
 * came in that time is seen now. */
#define LOOK_AGAIN_NS UINT64_C(60000)
#define MS	      UINT64_C(1000000)

enum { TURNS = 16 };

/* ---- connections ---- */

void sl_share_remote_accept(struct sl_share *share)
{
	struct sl_share_remote *r = share->remote;
	int socket = accept4(r->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct sl_share_peer *peer = NULL;
	void *far = NULL;

	r->pauses = socket < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
	if (socket < 0)
		return;
	if (r->strangers < SL_SHARE_STRANGERS) {
		peer = calloc(1, sizeof(*peer));
		far = aligned_alloc(64, sizeof(*peer->far));
	}
	if (!peer || !far) {
		free(peer);
		free(far);
		share->counts.refused++;
		close(socket);
		return;
	}
	sl_share_remote_keep(socket);
	memset(far, 0, sizeof(*peer->far));
	peer->far = far;
	peer->far->since_ns = sl_clock_ns();
	peer->socket = socket;
	sl_share_out_init(&peer->out);
	peer->next = share->peer;
	share->peer = peer;
	r->strangers++;
}

static void set_left(struct sl_share *share, struct sl_share_far *far, uint64_t left)
{
	_Atomic uint32_t *waiting = &share->remote->waiting;

	if (left && !far->left)
		atomic_fetch_add_explicit(waiting, 1, memory_order_relaxed);
	if (!left && far->left)
		atomic_fetch_sub_explicit(waiting, 1, memory_order_relaxed);
	far->left = left;
}

void sl_share_remote_drop(struct sl_share *share, struct sl_share_peer *peer)
{
	struct sl_share_far *far = peer->far;

	if (peer->id)
		share->peers--;
	else
		share->remote->strangers--;
	set_left(share, far, 0);
	sl_share_remote_disconnect(share->remote->rdma, far->queue);
	share->remote->rdma->ops->close_local(share->remote->rdma, &far->local);
	free(far);
	pthread_cond_broadcast(&share->remote->settled);
}

/* ---- who may follow ---- */

static int refuse(struct sl_share *share, struct sl_share_peer *peer, enum sl_share_refusal code,
		  const char *text)
{
	share->counts.refused++;
	peer->far->phase = SL_SHARE_LEAVES;
	return sl_share_out_put(&peer->out, SL_SHARE_FRAME_REFUSED, code, text, strlen(text), NULL,
				0);
}

static int welcome(struct sl_share *share, struct sl_share_peer *peer)
{
	struct sl_share_far *far = peer->far;
	char text[SL_SHARE_REMOTE_TEXT];

	if (strcmp(far->hello.name, share->description.name)) {
		snprintf(text, sizeof(text), "no share is called '%s' there", far->hello.name);
		return refuse(share, peer, SL_SHARE_REFUSED_NAME, text);
	}
	if (share->peers >= share->max_peers)
		return refuse(share, peer, SL_SHARE_REFUSED_FULL,
			      "it has as many followers as it takes");
	far->phase = SL_SHARE_WELCOME;
	share->remote->strangers--;
	share->peers++;
	sl_share_show_peers(share);
	peer->id = ++share->last_id;
	share->counts.peers_ever++;
	return sl_share_out_put(&peer->out, SL_SHARE_FRAME_WELCOME, share->queue_bytes, NULL, 0,
				NULL, 0);
}

static int challenge(struct sl_share_peer *peer)
{
	struct sl_share_far *far = peer->far;

	sl_share_remote_terms(&far->hello, &far->terms);
	if (sl_proof_set_listener(&far->terms, SL_PROOF_LISTENS, peer->socket))
		return -ECONNRESET;
	sl_secret_fill(far->terms.challenge.nonce, SL_WIRE_NONCE);
	far->phase = SL_SHARE_PROVES;
	return sl_share_out_put(&peer->out, SL_SHARE_FRAME_CHALLENGE, 0, far->terms.challenge.nonce,
				SL_WIRE_NONCE, NULL, 0);
}

static int greet(struct sl_share *share, struct sl_share_peer *peer)
{
	static const uint8_t none[SL_WIRE_NONCE];
	struct sl_share_far *far = peer->far;
	bool secret = share->remote->secret[0], proves;
	char why[SL_SHARE_WHY], text[SL_SHARE_REMOTE_TEXT];

	if (sl_share_remote_check_hello(peer->in.payload, peer->in.head.bytes, &far->hello, why,
					sizeof(why)))
		return -EPROTO;
	if (far->hello.version != SL_SHARE_REMOTE_VERSION) {
		snprintf(text, sizeof(text), "it speaks version %d, and this program version %u",
			 SL_SHARE_REMOTE_VERSION, far->hello.version);
		return refuse(share, peer, SL_SHARE_REFUSED_VERSION, text);
	}
	proves = memcmp(far->hello.nonce, none, sizeof(none)) != 0;
	if (secret && !proves)
		return refuse(share, peer, SL_SHARE_REFUSED_SECRET,
			      "it has a secret: name a file that has the same (secret_file)");
	if (!secret && proves)
		return refuse(share, peer, SL_SHARE_REFUSED_SECRET,
			      "it has no secret, and this program wants it to prove one");
	return secret ? challenge(peer) : welcome(share, peer);
}

static int check_proof(struct sl_share *share, struct sl_share_peer *peer)
{
	const char *secret = share->remote->secret;
	struct sl_share_far *far = peer->far;
	struct sl_wire_proof proof;
	int err;

	if (peer->in.head.bytes != sizeof(proof.proof))
		return -EPROTO;
	memcpy(proof.proof, peer->in.payload, sizeof(proof.proof));
	if (!sl_proof_is_right(SL_PROOF_CONNECTS, secret, &far->terms, &proof))
		return refuse(share, peer, SL_SHARE_REFUSED_SECRET,
			      "the secret is wrong, or its address is translated on the way");
	sl_proof_make(SL_PROOF_LISTENS, secret, &far->terms, &proof);
	err = sl_share_out_put(&peer->out, SL_SHARE_FRAME_PROOF, 0, proof.proof,
			       sizeof(proof.proof), NULL, 0);
	return err ? err : welcome(share, peer);
}

/* ---- queue pairs ---- */

static const uint32_t access_of[SL_SHARE_QUEUES] = {
	[SL_SHARE_DATA] = SL_ROCE_REMOTE_READ,
	[SL_SHARE_LOOKS] = SL_ROCE_REMOTE_READ,
	[SL_SHARE_ARRIVALS] = 0,
};

static int offer(struct sl_share *share, struct sl_share_peer *peer,
		 struct sl_share_remote_end *ours)
{
	const struct sl_share_remote *r = share->remote;
	struct sl_share_remote_offer offer = {
		.end = *ours,
		.region_bytes = share->memory.bytes,
		.second_bytes = r->second_bytes,
		.region_key = r->region_key,
		.second_key = r->second_key,
	};

	/* Its words change while it is copied; the follower READs them again. */
	memcpy(&offer.header, share->memory.header, offsetof(struct sl_share_header, words));
	memcpy((uint8_t *)&offer.header + offsetof(struct sl_share_header, name),
	       share->memory.header->name,
	       sizeof(offer.header) - offsetof(struct sl_share_header, name));
	return sl_share_out_put(&peer->out, SL_SHARE_FRAME_CONNECTED, share->description.generation,
				&offer, sizeof(offer), NULL, 0);
}

/* CONNECT is answered only when the follower has read the answer before: a follower that asks again
 * and again, and never reads, takes up the memory of one answer. */
static int connect_peer(struct sl_share *share, struct sl_share_peer *peer)
{
	struct sl_share_far *far = peer->far;
	struct sl_share_rdma *rdma = share->remote->rdma;
	struct sl_share_remote_end ours = {.pmtu = sl_share_remote_pmtu(peer->socket)};
	uint8_t address[SL_NET_GID_BYTES];
	char why[SL_SHARE_WHY];
	int err = sl_share_remote_check_end(peer->in.payload, peer->in.head.bytes, true, &far->end,
					    why, sizeof(why));

	if (err)
		return err;
	peer->full = !peer->deaf && peer->out.offers > 0;
	if (peer->full || peer->deaf)
		return peer->full ? -EAGAIN : 0;
	if (rdma->failed)
		return refuse(share, peer, SL_SHARE_REFUSED_OTHER, "its RDMA NIC has failed");
	if (far->end.nic && !rdma->is_nic && rdma->ops->port(rdma) != SL_SHARE_NIC_PORT)
		return refuse(share, peer, SL_SHARE_REFUSED_OTHER,
			      "an RDMA NIC sends to UDP port 4791 alone: let the share listen on "
			      "port 4791");
	set_left(share, far, 0);
	far->writes = false;
	far->line = (struct sl_share_remote_line){0};
	far->connects++;
	sl_share_remote_disconnect(rdma, far->queue);
	err = sl_share_remote_address(peer->socket, true, address);
	if (!err && !far->local.at)
		err = rdma->ops->open_local(rdma, &far->line, sizeof(far->line), &far->local);
	if (!err)
		err = sl_share_remote_queues(rdma, 1, access_of, far->queue, &ours);
	if (!err)
		err = sl_share_remote_connect(rdma, far->queue, address, &ours, &far->end);
	return err ? err : offer(share, peer, &ours);
}

/* ---- arrivals ---- */

/* Of a WRITE to a follower: completions of queue pairs that were closed have another number. */
static uint64_t work_of(const struct sl_share_peer *peer)
{
	return peer->id << 16 | (peer->far->connects & 0xffff);
}

static void tell(struct sl_share *share, struct sl_share_peer *peer)
{
	const struct sl_share_rdma_ops *ops = share->remote->rdma->ops;
	struct sl_share_far *far = peer->far;
	const struct sl_share_words *words = &share->memory.header->words;
	struct sl_share_remote_line line = {
		/* state first: what is published before it changes is seen. */
		.state = __atomic_load_n(&words->state, __ATOMIC_ACQUIRE),
		.published = __atomic_load_n(&words->published, __ATOMIC_ACQUIRE),
		.generation = share->description.generation,
	};
	const struct sl_share_work work = {
		.id = work_of(peer),
		.local = &far->local,
		.at = &far->line,
		.bytes = offsetof(struct sl_share_remote_line, unused),
		.rkey = far->end.key,
		.va = far->end.at,
	};

	if (!far->left || far->writes ||
	    (line.published == far->line.published && line.state == far->line.state &&
	     line.generation == far->line.generation))
		return;
	line.left = far->left - 1;
	far->line = line;
	far->writes = !ops->post(far->queue[SL_SHARE_ARRIVALS], &work);
	set_left(share, far, line.left);
}

static void tell_all(struct sl_share *share)
{
	for (struct sl_share_peer *peer = share->peer; peer; peer = peer->next)
		if (peer->far)
			tell(share, peer);
}

void sl_share_remote_turn(struct sl_share *share, bool kicked, uint64_t now)
{
	struct sl_share_remote *r = share->remote;
	bool due = r->look_ns && now >= r->look_ns;
	struct sl_share_peer *peer = share->peer, *next;

	if (kicked || due) {
		tell_all(share);
		r->look_ns = kicked && atomic_load_explicit(&r->waiting, memory_order_relaxed)
				     ? now + LOOK_AGAIN_NS
				     : 0;
	}
	for (; r->strangers && peer; peer = next) {
		next = peer->next;
		if (peer->far && !peer->id && now - peer->far->since_ns > r->greet_ns)
			sl_share_drop(share, peer);
	}
}

uint64_t sl_share_remote_wake(const struct sl_share *share)
{
	const struct sl_share_remote *r = share->remote;
	uint64_t wake = r->rdma->ops->wake(r->rdma);

	if (r->look_ns && r->look_ns < wake)
		wake = r->look_ns;
	for (const struct sl_share_peer *peer = share->peer; r->strangers && peer;
	     peer = peer->next) {
		uint64_t at = peer->far && !peer->id ? peer->far->since_ns + r->greet_ns + MS
						     : UINT64_MAX;

		wake = at < wake ? at : wake;
	}
	return wake;
}

static bool poll_once(struct sl_share *share)
{
	struct sl_share_rdma *rdma = share->remote->rdma;
	struct sl_share_done done[SL_SHARE_DONE];
	unsigned n;
	bool any = rdma->ops->poll(rdma, sl_clock_ns(), done, &n);

	for (unsigned k = 0; k < n; k++)
		for (struct sl_share_peer *peer = share->peer; peer; peer = peer->next)
			if (peer->far && done[k].id == work_of(peer))
				peer->far->writes = false;
	return any;
}

/* Other descriptors have their turn after TURNS. */
bool sl_share_remote_poll(struct sl_share *share)
{
	struct sl_share_remote *r = share->remote;
	unsigned turns = 0;

	while (turns < TURNS) {
		if (poll_once(share)) {
			sl_idle_work(&r->idle);
			turns++;
		} else if (sl_idle_sleep(&r->idle)) {
			return r->rdma->ops->arm(r->rdma) && poll_once(share);
		}
	}
	return true;
}

/* ---- frames ---- */

static int set_arrivals(struct sl_share *share, struct sl_share_peer *peer)
{
	struct sl_share_far *far = peer->far;
	uint64_t left = peer->in.head.value;

	if (peer->in.head.bytes || !far->queue[SL_SHARE_ARRIVALS])
		return -EPROTO;
	set_left(share, far, left < SL_SHARE_MOST_ARRIVALS ? left : SL_SHARE_MOST_ARRIVALS);
	tell(share, peer);
	/* An element that came before the writer saw this follower, and after tell() looked. */
	share->remote->look_ns = sl_clock_ns() + LOOK_AGAIN_NS;
	return 0;
}

int sl_share_remote_handle(struct sl_share *share, struct sl_share_peer *peer)
{
	uint32_t type = peer->in.head.type;

	switch (peer->far->phase) {
	case SL_SHARE_GREETS:
		return type == SL_SHARE_FRAME_GREETING ? greet(share, peer) : -EPROTO;
	case SL_SHARE_PROVES:
		return type == SL_SHARE_FRAME_PROOF ? check_proof(share, peer) : -EPROTO;
	case SL_SHARE_LEAVES:
		return 0;
	default:
		break;
	}
	switch (type) {
	case SL_SHARE_FRAME_CONNECT:
		return connect_peer(share, peer);
	case SL_SHARE_FRAME_ARRIVALS:
		return set_arrivals(share, peer);
	case SL_SHARE_FRAME_FINISHED:
		peer->far->finished = true;
		pthread_cond_broadcast(&share->remote->settled);
		return peer->in.head.bytes ? -EPROTO : 0;
	case SL_SHARE_FRAME_PING:
	case SL_SHARE_FRAME_MESSAGE:
		return 1;
	default:
		return -EPROTO;
	}
}
