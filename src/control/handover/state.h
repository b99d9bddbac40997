/* state.h - an estate (receiver/handover.h) as a parcel, and back.
 *
 * Model:     fixed little-endian fields, then per module a few more and the messages OFFER and PLAN
 *            as they travel over TCP (control/tcp/wire.h). Descriptors in order: the ring's
 *            memory, the notes, the link's own, then those of modules that have one. An estate is
 *            read by the program that wrote it or by a later one: another layout has another
 *            version.
 * Ownership: encoding borrows the estate's descriptors. Decoding moves the parcel's into the
 *            estate; on error they stay the parcel's. */
#ifndef SL_CONTROL_HANDOVER_STATE_H
#define SL_CONTROL_HANDOVER_STATE_H

#include "control/handover/message.h"
#include "receiver/handover.h"

enum { SL_ESTATE_VERSION = 1 };

/* -EMSGSIZE: too much for a parcel. */
int sl_estate_encode(const struct sl_estate *estate, struct sl_parcel *parcel);

/* -EPROTO, -EPROTONOSUPPORT: written by another version. */
int sl_estate_decode(struct sl_parcel *parcel, struct sl_estate *estate);

#endif
