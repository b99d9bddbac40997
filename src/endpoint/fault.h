/* fault.h - for tests: what happens to packets on their way out.
 *
 * Model:     a hook sees every packet but CNPs before it leaves, replies too, and decides its
 *            fault. Held packets leave after so many others, or when there are no others to send.
 *            */
#ifndef SL_ENDPOINT_FAULT_H
#define SL_ENDPOINT_FAULT_H

#include <stdint.h>

#include "roce/roce.h"

enum sl_endpoint_fault_kind {
	SL_ENDPOINT_FAULT_NONE,
	SL_ENDPOINT_FAULT_LOSE,
	SL_ENDPOINT_FAULT_REPEAT,  /* send it twice */
	SL_ENDPOINT_FAULT_CORRUPT, /* turn one bit, after the ICRC was made */
	SL_ENDPOINT_FAULT_HOLD,	   /* after the next three, so that the order changes */
};

struct sl_endpoint_fault {
	/* NULL: every packet is sent. */
	enum sl_endpoint_fault_kind (*decide)(void *arg, const struct sl_roce_packet *packet);
	void *arg;
};

#endif
