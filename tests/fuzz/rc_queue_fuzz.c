/* rc_queue_fuzz.c - two reliable queue pairs and a network between them that does what the input
 * says: lose, repeat, reorder, wait; also work of any kind, receives that come late, errors.
 *
 * As long as no end fails, every message is executed once and in order and completes in order;
 * memory is only written where a message belongs. When the input ends the network becomes good, and
 * everything that was posted must complete. Packets that lie are in packet_fuzz.c. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "roce/psn.h"
#include "roce/rc_queue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PMTU = 256, BYTES = 1400, RKEY = 0x77, WORKS = 6, LOG = 256, WIRE = 24, REPLIES = 8 };
#define BASE UINT64_C(0x10000)

struct packet {
	size_t bytes;
	uint8_t data[SL_ROCE_HEADERS_MAX + PMTU + 8];
};

struct end {
	struct sl_roce_rc_queue queue;
	struct sl_roce_work works[WORKS], log[LOG]; /* what was posted, ever */
	unsigned posted, completed, executed;	    /* executed: of the peer's */
	struct sl_roce_reply reply[REPLIES];
	unsigned replies;
	struct packet wire[WIRE]; /* to the peer */
	unsigned packets;
	uint8_t *memory, *receive, *target, *source;
};

static struct end ends[2];
static uint64_t now;

static void require(int good)
{
	if (!good)
		abort();
}

static const struct sl_roce_key *lookup(void *arg, uint32_t rkey)
{
	static const struct sl_roce_key key = {RKEY, SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ, 0,
					       BASE, BYTES};

	return rkey == RKEY ? &key : NULL;
}

static struct end *peer_of(const struct end *end)
{
	return end == &ends[0] ? &ends[1] : &ends[0];
}

/* ---- from nothing to ready ---- */

static void end_connect(struct end *end, uint32_t qpn, uint32_t peer_qpn)
{
	struct sl_roce_rc_requester *requester = &end->queue.requester;

	require(!sl_roce_rc_queue_modify(&end->queue, SL_ROCE_RESET));
	end->queue.responder.queue = (struct sl_roce_responder){
		.transport = SL_ROCE_RC,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = qpn,
		.pmtu = PMTU,
		.access = SL_ROCE_REMOTE_WRITE | SL_ROCE_REMOTE_READ,
		.expected_psn = 0xfffff0 + peer_qpn,
		.receives = 2,
		.receive_bytes = BYTES,
	};
	end->queue.responder.peer_qpn = peer_qpn;
	end->queue.responder.rnr_timer = 1;
	end->queue.responder.reads = 2;
	requester->psn = 0xfffff0 + qpn;
	requester->window = 7;
	requester->ack_every = 5;
	requester->reads = 2;
	requester->timeout_ns = 100000;
	requester->retries = SL_ROCE_RETRY_FOREVER;
	requester->rnr_retries = SL_ROCE_RNR_FOREVER;
	requester->works = end->works;
	requester->capacity = WORKS;
	for (int state = SL_ROCE_INIT; state <= SL_ROCE_RTS; state++)
		require(!sl_roce_rc_queue_modify(&end->queue, (enum sl_roce_state)state));
	end->posted = end->completed = end->executed = end->replies = end->packets = 0;
}

static void connect(void)
{
	end_connect(&ends[0], 1, 2);
	end_connect(&ends[1], 2, 1);
}

static void end_make(struct end *end)
{
	memset(end, 0, sizeof(*end));
	end->memory = calloc(1, BYTES); /* their ends are guarded by the sanitizer */
	end->receive = malloc(BYTES);
	end->target = malloc(BYTES);
	end->source = malloc(BYTES);
	require(end->memory && end->receive && end->target && end->source);
	for (int i = 0; i < BYTES; i++)
		end->source[i] = (uint8_t)(i * 3 + 1);
}

static void end_free(struct end *end)
{
	free(end->memory);
	free(end->receive);
	free(end->target);
	free(end->source);
}

/* ---- work, both sides of it ---- */

static void post(struct end *end, uint8_t what, uint8_t length)
{
	struct sl_roce_work work = {.id = end->posted,
				    .kind = what % 3,
				    .immediate = what & 4,
				    .quiet = what & 8,
				    .solicited = what & 16,
				    .imm = end->posted,
				    .rkey = what & 64 && what & 128 ? 0 : RKEY,
				    .bytes = length * 5u};

	work.immediate = work.immediate && work.kind != SL_ROCE_KIND_READ;
	work.va = BASE + (what & 32 ? BYTES - work.bytes : 0);
	if (end->posted == LOG || sl_roce_rc_queue_post(&end->queue, &work))
		return;
	end->log[end->posted++] = work;
}

static void complete(struct end *end)
{
	const struct end *peer = peer_of(end);
	struct sl_roce_completion done;

	while (sl_roce_rc_queue_complete(&end->queue, &done)) {
		require(done.id == end->completed && done.bytes == end->log[done.id].bytes);
		require(done.status == SL_ROCE_SUCCESS || end->queue.state == SL_ROCE_ERROR);
		if (done.status == SL_ROCE_SUCCESS)
			require(peer->executed > done.id);
		end->completed++;
	}
}

static void executed(struct end *end, const struct sl_roce_action *action)
{
	const struct end *peer = peer_of(end);
	const struct sl_roce_work *work = &peer->log[end->executed];

	require(end->executed++ < peer->posted);
	require(action->message_bytes == work->bytes && action->immediate == work->immediate);
	require(!work->immediate || action->imm == work->imm);
	if (work->bytes == 0 || work->kind == SL_ROCE_KIND_READ)
		return;
	require(!memcmp(work->kind == SL_ROCE_KIND_SEND ? end->receive
							: end->memory + (work->va - BASE),
			peer->source, work->bytes));
}

/* ---- the network ---- */

static void carry(struct end *end, const uint8_t *headers, const struct sl_roce_fragment *fragment,
		  const uint8_t *payload)
{
	struct packet *packet = &end->wire[end->packets];

	if (end->packets == WIRE)
		return; /* a full network drops */
	end->packets++;
	packet->bytes = fragment->header_bytes + fragment->bytes + fragment->pad + 4u;
	memset(packet->data, 0, packet->bytes);
	memcpy(packet->data, headers, fragment->header_bytes);
	if (fragment->bytes)
		memcpy(packet->data + fragment->header_bytes, payload, fragment->bytes);
}

static void drop(struct end *end, unsigned index)
{
	if (index >= end->packets)
		return;
	end->packets--;
	memmove(&end->wire[index], &end->wire[index + 1],
		(end->packets - index) * sizeof(end->wire[0]));
}

static void send(struct end *end)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	struct sl_roce_request request;

	if (sl_roce_rc_queue_next(&end->queue, now, headers, &request))
		carry(end, headers, &request.fragment, end->source + request.fragment.offset);
}

/* One packet of the oldest reply. */
static void send_reply(struct end *end)
{
	uint8_t headers[SL_ROCE_HEADERS_MAX];
	struct sl_roce_reply *reply = &end->reply[0];
	struct sl_roce_fragment fragment;

	if (end->replies == 0)
		return;
	if (sl_roce_reply_next(reply, headers, &fragment))
		carry(end, headers, &fragment,
		      reply->bytes ? end->memory + (reply->va - BASE) + fragment.offset : NULL);
	if (reply->pending)
		return;
	sl_roce_rc_responder_answered(&end->queue.responder, reply);
	end->replies--;
	memmove(reply, reply + 1, end->replies * sizeof(*reply));
}

static void keep_reply(struct end *end, const struct sl_roce_reply *reply)
{
	if (!reply->pending)
		return;
	if (end->replies && sl_roce_reply_merge(&end->reply[end->replies - 1], reply))
		return;
	end->reply[end->replies++] = *reply;
}

static void receive(struct end *end, const struct packet *from)
{
	struct sl_roce_packet packet;
	struct sl_roce_outcome got;

	if (end->replies == REPLIES)
		return; /* no room for what it may ask for: to the peer it was lost */
	require(!sl_roce_parse(from->data, from->bytes, &packet));
	if (!sl_roce_rc_queue_receive(&end->queue, NULL, &packet, now, lookup, NULL, &got)) {
		if (got.action.place == SL_ROCE_PLACE_MEMORY)
			memcpy(end->memory + (got.action.va - BASE), packet.payload,
			       got.action.bytes);
		if (got.action.place == SL_ROCE_PLACE_RECEIVE)
			memcpy(end->receive + got.action.offset, packet.payload, got.action.bytes);
		if (got.request && got.action.last)
			executed(end, &got.action);
		if (got.read.bytes)
			memcpy(end->target + got.read.offset, packet.payload, got.read.bytes);
	}
	keep_reply(end, &got.reply);
}

/* The packet at the place arrives; keep: and will arrive once more. */
static void deliver(struct end *end, unsigned index, bool keep)
{
	struct packet packet;

	if (index >= end->packets)
		return;
	packet = end->wire[index];
	if (!keep)
		drop(end, index);
	receive(peer_of(end), &packet);
}

/* ---- the run ---- */

static void check(const struct end *end)
{
	const struct sl_roce_rc_requester *r = &end->queue.requester;

	if (end->queue.state != SL_ROCE_RTS)
		return;
	require(r->oldest <= r->next && r->next <= r->sent && r->sent <= r->end);
	require(r->taken <= r->completed && r->completed <= r->posted && !r->failed);
	/* What is out is waited for. */
	require(r->oldest == r->sent || sl_roce_rc_wake(r) != UINT64_MAX);
}

static void operate(const uint8_t *input)
{
	struct end *end = &ends[input[0] >> 7];
	unsigned index = (input[0] >> 4 & 7) ? 0 : input[1] % WIRE; /* mostly in order */

	switch (input[0] & 15) {
	case 0:
	case 1:
		post(end, input[1], input[2]);
		break;
	case 2:
	case 3:
	case 4:
		send(end);
		break;
	case 5:
	case 6:
		send_reply(end);
		break;
	case 7:
	case 8:
	case 9:
		deliver(end, index, false);
		break;
	case 10:
		deliver(end, index, true);
		break;
	case 11:
		drop(end, index);
		break;
	case 12:
		now += input[1] * 1000u;
		break;
	case 13:
		end->queue.responder.queue.receives += 1 + input[1] % 3;
		break;
	case 14:
		complete(end);
		break;
	default:
		if (input[1] == 0)
			sl_roce_rc_queue_modify(&end->queue, SL_ROCE_ERROR);
	}
}

static bool failed(void)
{
	return ends[0].queue.state == SL_ROCE_ERROR || ends[1].queue.state == SL_ROCE_ERROR;
}

/* A good network until everything is done: it must come to that. */
static void finish(void)
{
	ends[0].queue.responder.queue.receives = SL_ROCE_RECEIVES_UNLIMITED;
	ends[1].queue.responder.queue.receives = SL_ROCE_RECEIVES_UNLIMITED;
	for (int i = 0; !failed(); i++) {
		if (ends[0].completed == ends[0].posted && ends[1].completed == ends[1].posted)
			break;
		require(i < 100000);
		for (int k = 0; k < 2; k++) {
			send(&ends[k]);
			send_reply(&ends[k]);
			deliver(&ends[k], 0, false);
			complete(&ends[k]);
			check(&ends[k]);
		}
		now += 1000;
	}
	if (!failed())
		require(ends[0].executed == ends[1].posted && ends[1].executed == ends[0].posted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	now = 1;
	end_make(&ends[0]);
	end_make(&ends[1]);
	connect();
	for (size_t i = 0; i + 2 < size; i += 3) {
		operate(data + i);
		for (int k = 0; k < 2; k++) {
			complete(&ends[k]);
			check(&ends[k]);
		}
		if (ends[0].queue.state == SL_ROCE_ERROR && ends[1].queue.state == SL_ROCE_ERROR)
			connect();
	}
	finish();
	end_free(&ends[0]);
	end_free(&ends[1]);
	return 0;
}
