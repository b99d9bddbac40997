/* psn.h - packet sequence numbers: 24 bits that wrap. Of two numbers the later one is at most 2^23
 * ahead. */
#ifndef SL_ROCE_PSN_H
#define SL_ROCE_PSN_H

#include <stdint.h>

#define SL_ROCE_PSN_MASK UINT32_C(0xffffff)

static inline uint32_t sl_roce_psn_add(uint32_t psn, uint32_t count)
{
	return (psn + count) & SL_ROCE_PSN_MASK;
}

/* How far a is ahead of b: -2^23 .. 2^23 - 1. */
static inline int32_t sl_roce_psn_diff(uint32_t a, uint32_t b)
{
	uint32_t ahead = (a - b) & SL_ROCE_PSN_MASK;

	return ahead < UINT32_C(0x800000) ? (int32_t)ahead : (int32_t)ahead - 0x1000000;
}

/* Below, equal to or above 0 as a comes before, is, or comes after b. */
static inline int sl_roce_psn_compare(uint32_t a, uint32_t b)
{
	int32_t ahead = sl_roce_psn_diff(a, b);

	return (ahead > 0) - (ahead < 0);
}

#endif
