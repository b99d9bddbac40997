/* answer.c - offers compared with the receiver's terms, and plans made of both. */
#include <errno.h>

#include "core/answer.h"

enum { PMTU_MIN = 256, PMTU_MAX = 4096, MASK_24 = 0xffffff };

/* 0: there is none. */
static uint16_t pmtu_for(const struct sl_offer *offer, const struct sl_plan_terms *terms)
{
	uint16_t pmtu = PMTU_MAX;

	if (terms->fixed_pmtu)
		return terms->pmtu;
	while (pmtu >= PMTU_MIN && (pmtu > terms->pmtu || pmtu > offer->max_pmtu))
		pmtu /= 2;
	return pmtu >= PMTU_MIN ? pmtu : 0;
}

/* Whether the lines that are offered are those of the ring, as far as they matter. */
static bool lines_fit(const struct sl_offer *offer, const struct sl_plan_terms *terms)
{
	if (offer->lines && (uint64_t)offer->lines * offer->line_bytes != terms->pixel_bytes)
		return false;
	if (!terms->line_pitch && terms->message != SL_MESSAGE_LINE)
		return true;
	/* A message is one piece of memory, and so is what a receive is posted for. */
	if (!offer->lines || terms->message == SL_MESSAGE_MODULE ||
	    terms->operation == SL_OPERATION_SEND)
		return false;
	return !terms->line_pitch ||
	       (offer->lines == terms->lines && offer->line_bytes == terms->line_bytes);
}

/* Without records the receiver must know of which sequence a block is, and no checksum proves its
 * pixels. */
static bool block_fits(const struct sl_offer *offer, const struct sl_plan_terms *terms)
{
	if (offer->bare && (!terms->bare || terms->crc))
		return false;
	return offer->block_bytes == (offer->bare ? terms->pixel_bytes : terms->block_bytes);
}

bool sl_plan_accepts(const struct sl_offer *offer, const struct sl_plan_terms *terms)
{
	return offer->module < terms->modules && (offer->services & terms->service) &&
	       (offer->operations & terms->operation) && (offer->messages & terms->message) &&
	       offer->credit_qpn <= MASK_24 && pmtu_for(offer, terms) && block_fits(offer, terms) &&
	       lines_fit(offer, terms);
}

int sl_plan_answer(const struct sl_offer *offer, const struct sl_plan_terms *terms,
		   struct sl_plan *plan)
{
	if (!sl_plan_accepts(offer, terms))
		return -EINVAL;
	*plan = (struct sl_plan){
		.version = SL_PLAN_VERSION,
		.transfer = terms->transfer,
		.module = offer->module,
		.service = terms->service,
		.operation = terms->operation,
		.message = terms->message,
		.pmtu = pmtu_for(offer, terms),
		.ip_id = offer->ip_id,
		.crc = terms->crc,
		.qpn = terms->qpn,
		.rkey = terms->rkey,
		.first_psn = (offer->psn_plus_1 ? offer->psn_plus_1 - 1 : terms->psn) & MASK_24,
		.slots = terms->slots,
		.base = terms->base,
		.stride = terms->stride,
		.block_at = terms->block_at,
		.block_bytes = offer->block_bytes,
		.first_sequence = offer->first_sequence,
		.bare = offer->bare,
		.darks = offer->darks,
		.window_bytes = terms->window_bytes,
		.source = offer->source,
		.dest = terms->dest,
		.credit_qpn = offer->credit_qpn,
		.credit_rkey = offer->credit_rkey,
		.credit_psn = terms->credit_psn & MASK_24,
		.credit_va = offer->credit_va,
		.credit_port = offer->credit_port,
		.lines = offer->lines,
		.line_bytes = offer->lines ? offer->line_bytes : 0,
		.line_pitch = terms->line_pitch,
		.record_at = terms->line_pitch ? terms->record_at : 0,
	};
	plan->packets = sl_plan_packets(plan);
	return 0;
}
