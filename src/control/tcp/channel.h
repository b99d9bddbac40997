/* channel.h - one TCP connection that carries control messages.
 *
 * Threads:   one.
 * Errors:    0, 1 or -errno: -EPIPE when the other side is gone, -EPROTO and -EPROTONOSUPPORT as
 *            wire.h, -ETIMEDOUT. */
#ifndef SL_CONTROL_TCP_CHANNEL_H
#define SL_CONTROL_TCP_CHANNEL_H

#include <stdint.h>

#include "control/tcp/wire.h"

struct sl_channel {
	int fd;
	size_t have;
	uint8_t in[4 * SL_WIRE_MAX];
};

/* Take over a connected socket. */
void sl_channel_init(struct sl_channel *channel, int fd);
void sl_channel_close(struct sl_channel *channel);

int sl_channel_send(struct sl_channel *channel, const struct sl_wire_message *message);

/* 1 with a message, 0 when none has arrived within timeout_ms (0: look only). */
int sl_channel_receive(struct sl_channel *channel, int timeout_ms, struct sl_wire_message *message);

/* Tell the other side why, in words. */
void sl_channel_refuse(struct sl_channel *channel, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
