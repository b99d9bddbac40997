/* state.h - a handover state (receiver/handover.h) as a message, and back.
 *
 * Model:     fixed little-endian fields, then per module a few more and the messages OFFER and PLAN
 *            as they travel over TCP (control/tcp/wire.h). Descriptors in order: the ring's
 *            memory, the notes, the link's own, then those of modules that have one. A handover
 *            state is read by the program that wrote it or by a later one: another layout has
 *            another version.
 * Ownership: encoding borrows the handover state's descriptors. Decoding moves the message's into
 *            the handover state; on error they stay the message's. */
#ifndef SL_CONTROL_HANDOVER_STATE_H
#define SL_CONTROL_HANDOVER_STATE_H

#include "control/handover/message.h"
#include "receiver/handover.h"

enum { SL_HANDOVER_VERSION = 1 };

/* -EMSGSIZE: too much for a message. */
int sl_handover_encode(const struct sl_handover *handover, struct sl_handover_message *message);

/* -EPROTO, -EPROTONOSUPPORT: written by another version. */
int sl_handover_decode(struct sl_handover_message *message, struct sl_handover *handover);

#endif
