/* sender.c - one transfer: frames become a block, the block messages, messages packets. */
#include "frontend/sender.h"

#include <string.h>

#include "frontend/crc32c.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "records and credits are little-endian; this processor needs a conversion here"
#endif

/* Pieces of memory that a packet can have at most: several lines, where they do not lie together
 * and packets do not end with them; and the record. */
static uint32_t pieces_for(const struct sl_transfer *transfer, const struct sl_plan *plan)
{
	const struct sl_rectangle *r = &transfer->rectangle;
	bool together = !r->pitch || r->pitch == r->line_bytes || r->lines == 1;
	uint32_t piece = together ? r->lines * r->line_bytes : r->line_bytes;

	if (sl_plan_cuts(plan) || !(transfer->part & SL_PART_PIXELS))
		return 1;
	/* A bit of a piece at either end, and whole ones between. */
	return (plan->pmtu - 1) / piece + 2 + !!(transfer->part & SL_PART_RECORD);
}

static uint32_t pieces_of_block(const struct sl_transfer *transfer)
{
	const struct sl_rectangle *r = &transfer->rectangle;
	bool together = !r->pitch || r->pitch == r->line_bytes;

	return transfer->stack * (together ? 1 : r->lines) + 1;
}

static bool can_do(const struct sl_transfer *transfer, const struct sl_plan *plan)
{
	if (!sl_transfer_valid(transfer) || transfer->stack > SL_SENDER_STACK ||
	    !sl_transfer_fits(transfer, plan))
		return false;
	if (pieces_for(transfer, plan) > SL_SENDER_PIECES &&
	    pieces_of_block(transfer) > SL_SENDER_PIECES)
		return false;
	return plan->service == SL_SERVICE_UC && sl_roce_pmtu_valid(plan->pmtu) && plan->slots &&
	       plan->qpn <= SL_ROCE_QPN_MASK;
}

/* Credits are 8-byte RDMA writes into a word that has an address and a key, and no memory. */
static int open_credits(struct sl_sender *s)
{
	const struct sl_plan *plan = &s->plan;

	s->key = (struct sl_roce_key){.rkey = plan->credit_rkey,
				      .access = SL_ROCE_REMOTE_WRITE,
				      .base = plan->credit_va,
				      .bytes = sizeof(s->granted)};
	s->credits = (struct sl_roce_responder){
		.transport = SL_ROCE_UC,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.qpn = plan->credit_qpn,
		.pmtu = plan->pmtu,
		.access = SL_ROCE_REMOTE_WRITE,
		.expected_psn = plan->credit_psn,
	};
	memcpy(s->credits.peer, plan->dest.ip, sizeof(s->credits.peer));
	memcpy(s->credits.local, plan->source.ip, sizeof(s->credits.local));
	return sl_roce_responder_init(&s->credits);
}

int sl_sender_init(struct sl_sender *sender, const struct sl_transfer *transfer,
		   const struct sl_plan *plan, sl_roce_crc32 *crc32, sl_roce_crc32 *crc32c)
{
	if (!can_do(transfer, plan))
		return SL_ROCE_EINVAL;
	memset(sender, 0, sizeof(*sender));
	sender->transfer = *transfer;
	sender->plan = *plan;
	sender->crc32 = crc32;
	sender->crc32c = crc32c ? crc32c : sl_crc32c_small;
	sender->out = (struct sl_roce_path){
		.source_port = plan->source.port,
		.dest_port = plan->dest.port,
		.dont_fragment = true,
	};
	memcpy(sender->out.source, plan->source.ip, sizeof(sender->out.source));
	memcpy(sender->out.dest, plan->dest.ip, sizeof(sender->out.dest));
	sender->message.done = true;
	if (plan->credit_va)
		return open_credits(sender);
	sender->granted = UINT64_MAX; /* open loop */
	return SL_ROCE_OK;
}

static void begin_block(struct sl_sender *s)
{
	sl_block_make(&s->block, &s->transfer, &s->plan, s->collecting, &s->stamp, s->frame,
		      s->frame, s->crc32c);
	sl_descriptors_begin(&s->descriptors, &s->plan, s->collecting, &s->block.source);
	s->message.done = true;
	s->busy = true;
}

int sl_sender_frame(struct sl_sender *sender, uint64_t frame, const void *pixels,
		    const struct sl_frame_stamp *stamp)
{
	struct sl_sender *s = sender;
	uint64_t sequence;
	uint32_t index;

	if (!sl_transfer_takes(&s->transfer, frame, &sequence, &index))
		return 0;
	if (s->busy)
		return SL_ROCE_EFULL;
	if (index == 0) {
		s->stamp = *stamp;
		s->collecting = sequence;
		s->collected = 0;
	} else if (s->collecting != sequence || s->collected != index) {
		return 0;
	}
	s->frame[s->collected++] = pixels;
	if (s->collected == s->transfer.stack)
		begin_block(s);
	return 1;
}

/* The next message of the block; false when there is no more. */
static bool next_message(struct sl_sender *s)
{
	struct sl_roce_message message = {
		.transport = SL_ROCE_UC,
		.kind = SL_ROCE_KIND_WRITE,
		.pkey = SL_ROCE_PKEY_DEFAULT,
		.pmtu = s->plan.pmtu,
		.qpn = s->plan.qpn,
	};
	struct sl_from_cursor at = s->descriptors.cursor;

	if (!sl_descriptors_next(&s->descriptors, &s->write))
		return false;
	s->cursor = at;
	if (s->write.flags & SL_WRITE_SEND)
		message.kind = SL_ROCE_KIND_SEND;
	message.immediate = s->write.flags & SL_WRITE_IMM;
	message.imm = s->write.imm;
	message.psn = s->write.psn;
	message.rkey = s->write.rkey;
	message.va = s->write.va;
	message.bytes = s->write.bytes;
	return sl_roce_requester_begin(&s->message, &message) == SL_ROCE_OK;
}

static void gather(struct sl_sender *s, uint32_t bytes, struct sl_sender_packet *packet)
{
	packet->pieces = 0;
	while (bytes && packet->pieces < SL_SENDER_PIECES) {
		struct sl_part part = sl_from_next(&s->cursor, bytes);

		packet->piece[packet->pieces++] = (struct sl_roce_piece){part.data, part.bytes};
		bytes -= part.bytes;
	}
}

bool sl_sender_next(struct sl_sender *sender, struct sl_sender_packet *packet)
{
	struct sl_sender *s = sender;
	struct sl_roce_fragment fragment;
	uint32_t left, next;
	uint64_t end;

	if (!s->busy || (s->message.done && !next_message(s)))
		return false;
	left = s->write.bytes - s->message.offset;
	next = left < s->plan.pmtu ? left : s->plan.pmtu;
	end = s->write.position - left + next;
	if (end > s->granted || !sl_roce_requester_next(&s->message, packet->header, &fragment))
		return false;
	gather(s, fragment.bytes, packet);
	packet->header_bytes = fragment.header_bytes;
	packet->trailer_bytes = (uint32_t)sl_roce_seal(&s->out, packet->header,
						       fragment.header_bytes, packet->piece,
						       packet->pieces, s->crc32, packet->trailer);
	packet->bytes = packet->header_bytes + fragment.bytes + packet->trailer_bytes;
	packet->transfer = s->plan.transfer;
	s->sent = end;
	if (s->message.done && s->write.flags & SL_WRITE_IMM) {
		s->busy = false;
		s->collected = 0;
		s->blocks++;
	}
	return true;
}

bool sl_sender_busy(const struct sl_sender *sender)
{
	return sender->busy || sender->collected;
}

static const struct sl_roce_key *only_key(void *arg, uint32_t rkey)
{
	const struct sl_roce_key *key = arg;

	return rkey == key->rkey ? key : NULL;
}

bool sl_sender_answer(struct sl_sender *sender, const struct sl_roce_path *path,
		      const void *udp_payload, size_t bytes)
{
	struct sl_roce_packet packet;
	struct sl_roce_action action;
	uint64_t grant;
	uint16_t id;

	if (!sender->plan.credit_va || sl_roce_parse(udp_payload, bytes, &packet) ||
	    packet.qpn != sender->plan.credit_qpn ||
	    !sl_roce_icrc_check_any_id(path, udp_payload, bytes, sender->crc32, &id) ||
	    sl_roce_responder_receive(&sender->credits, path, &packet, only_key, &sender->key,
				      &action) != SL_ROCE_ACCEPTED ||
	    action.place != SL_ROCE_PLACE_MEMORY || action.bytes != sizeof(grant))
		return false;
	memcpy(&grant, packet.payload, sizeof(grant));
	if (grant > sender->granted) /* it never goes back */
		sender->granted = grant;
	return true;
}

unsigned sl_frontend_frame(struct sl_frontend *frontend, uint64_t frame, const void *pixels,
			   const struct sl_frame_stamp *stamp)
{
	unsigned refused = 0;

	for (uint32_t i = 0; i < frontend->senders; i++)
		refused += sl_sender_frame(&frontend->sender[i], frame, pixels, stamp) < 0;
	return refused;
}

bool sl_frontend_next(struct sl_frontend *frontend, struct sl_sender_packet *packet)
{
	for (uint32_t i = 0; i < frontend->senders; i++) {
		struct sl_sender *sender = &frontend->sender[frontend->turn];

		frontend->turn = frontend->turn + 1 < frontend->senders ? frontend->turn + 1 : 0;
		if (sl_sender_next(sender, packet))
			return true;
	}
	return false;
}

bool sl_frontend_answer(struct sl_frontend *frontend, const struct sl_roce_path *path,
			const void *udp_payload, size_t bytes)
{
	for (uint32_t i = 0; i < frontend->senders; i++)
		if (sl_sender_answer(&frontend->sender[i], path, udp_payload, bytes))
			return true;
	return false;
}
