/* answer.h - an offer becomes a plan: what every link answers alike.
 *
 * Model:     the source offers what it can do, the receiver has its terms. One function compares
 *            them and fills in the plan: service, operation, message, PMTU, packets, PSNs, where
 *            the blocks lie and how. What is a link's own (addresses, keys, queue numbers) is part
 *            of the terms, or added to the plan afterwards.
 * Threads:   any; functions of their arguments.
 * Ownership: plain data. */
#ifndef SL_CORE_ANSWER_H
#define SL_CORE_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/plan.h"

struct sl_plan_terms { /* of the receiver */
	uint16_t transfer;
	uint16_t service, operation, message; /* one bit each */
	/* Most bytes in a packet: the plan has the largest power of two, from 256 to 4096, that is
	 * no larger than this and what is offered. Fixed: it is this, whatever is offered. */
	uint16_t pmtu;
	bool fixed_pmtu;
	uint16_t crc;		  /* records must carry a CRC32C of the pixels */
	bool bare;		  /* blocks without records are taken */
	uint32_t qpn, rkey;	  /* 0: the link has none, or adds them */
	uint32_t psn, credit_psn; /* random; 24 bits count. psn: unless the offer names one */
	/* Of the ring. */
	uint32_t modules, slots;
	uint64_t base, stride, block_at;
	uint64_t pixel_bytes, block_bytes; /* of a module; block: with its record */
	uint32_t lines, line_bytes;
	uint64_t line_pitch, record_at; /* pitch 0: lines follow each other */
	uint64_t window_bytes;
	struct sl_addr dest;
};

/* Whether the offer can be answered on these terms. */
bool sl_plan_accepts(const struct sl_offer *offer, const struct sl_plan_terms *terms);

/* 0, or -EINVAL: it cannot. */
int sl_plan_answer(const struct sl_offer *offer, const struct sl_plan_terms *terms,
		   struct sl_plan *plan);

#endif
