/* greeting.h - how the ibv_*_pingpong programs of rdma-core introduce themselves to each other.
 *
 * Model:     over TCP, port 18515 unless told otherwise, each sends one text of SL_GREETING_BYTES:
 *              LLLL:QQQQQQ:PPPPPP:GGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGG and a zero byte,
 *            hexadecimal: LID (0 on Ethernet), queue pair, first PSN, GID. The client writes its
 *            own, the server connects its queue pair and answers with its own, the client writes
 *            "done" with a zero byte, and both close the connection.
 * Source:    libibverbs/examples in rdma-core. */
#ifndef SL_ENDPOINT_GREETING_H
#define SL_ENDPOINT_GREETING_H

#include <stdint.h>

#include "roce/roce.h"

enum { SL_GREETING_BYTES = 52, SL_GREETING_PORT = 18515 };

struct sl_greeting {
	uint16_t lid;
	uint32_t qpn, psn;
	uint8_t gid[SL_ROCE_GID_BYTES]; /* all zero: run without -g, which RoCE cannot do */
};

void sl_greeting_format(const struct sl_greeting *greeting, char text[SL_GREETING_BYTES]);

/* -EINVAL: not such a text. */
int sl_greeting_parse(const char text[SL_GREETING_BYTES], struct sl_greeting *greeting);

#endif
