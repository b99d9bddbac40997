/* rc_state.h - what the two files of the RC requester share. Only for them. */
#ifndef SL_ROCE_RC_STATE_H
#define SL_ROCE_RC_STATE_H

#include "roce/psn.h"
#include "roce/rc_requester.h"

/* Counts of works and PSNs never wrap; these turn them into a slot and into what is on the wire. */
static inline struct sl_roce_work *sl_roce_rc_work(const struct sl_roce_rc_requester *r,
						   uint64_t index)
{
	return &r->works[index % r->capacity];
}

static inline uint32_t sl_roce_rc_wire(const struct sl_roce_rc_requester *r, uint64_t psn)
{
	return sl_roce_psn_add(r->psn, (uint32_t)(psn & SL_ROCE_PSN_MASK));
}

/* The PSN after a work. */
static inline uint64_t sl_roce_rc_end(const struct sl_roce_work *work)
{
	return work->first + work->packets;
}

/* Start the time-out anew; stop it when nothing is out. */
void sl_roce_rc_arm(struct sl_roce_rc_requester *r, uint64_t now);

/* The next packet is the oldest one again. */
void sl_roce_rc_go_back(struct sl_roce_rc_requester *r);

/* Something was lost: go back, or fail when that was tried often enough. told: by the peer, which
 * says so once per loss; otherwise it was silence. */
void sl_roce_rc_lost(struct sl_roce_rc_requester *r, uint64_t now, bool told);

/* The work that has the PSN `at` completes with status, all others are flushed. */
void sl_roce_rc_fail_at(struct sl_roce_rc_requester *r, uint64_t at, enum sl_roce_status status);

#endif
