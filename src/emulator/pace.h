/* pace.h - when a front end may send: at the detector's frame period, and no faster than a rate.
 *
 * Model:     frames are due at start + k / rate, whatever happened before: a frame that is late
 *            does not shift the next. How late each began is kept (the jitter of the emulated
 *            period). A limit lets a queue send so many bytes a second: what was sent moves the
 *            time of the next. Who overslept may make up for two milliseconds, and not for more.
 * Threads:   one, the sender's; the histogram may be read meanwhile.
 * Cost:      a clock reading; no division per packet. */
#ifndef SL_EMULATOR_PACE_H
#define SL_EMULATOR_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"

struct sl_pace {
	double rate_Hz;		  /* 0: no period */
	uint64_t start_ns;	  /* frame 0 is due */
	struct sl_histogram late; /* ns between due and begun */
};

void sl_pace_begin(struct sl_pace *pace, double rate_Hz, uint64_t now_ns);
uint64_t sl_pace_due(const struct sl_pace *pace, uint64_t frame);

/* Frame begins now. */
void sl_pace_note(struct sl_pace *pace, uint64_t frame, uint64_t now_ns);

enum { SL_LIMIT_SAVED_NS = 2 * 1000 * 1000 };

struct sl_limit {
	double ns_per_byte; /* 0: none */
	uint64_t next_ns;   /* not before */
};

static inline bool sl_limit_allows(const struct sl_limit *limit, uint64_t now_ns)
{
	return limit->next_ns <= now_ns;
}

/* So much was sent at this time. */
void sl_limit_spend(struct sl_limit *limit, uint64_t bytes, uint64_t now_ns);

#endif
