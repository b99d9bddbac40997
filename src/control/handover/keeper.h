/* keeper.h - a small process that holds what must outlive a receiver, and how receivers talk to it.
 *
 * Model:     a keeper has a name and one handover state at most: bytes that it does not
 *            understand, and descriptors (message.h). It listens on an abstract Unix socket of its
 *            user. A receiver claims the handover state and holds it as long as its connection
 *            lasts; a second one is told so. When the connection ends, for whatever reason, the
 *            handover state stays for the next.
 * Security:  a handover state holds keys and open sockets. Both sides look at who the other one is
 *            (SO_PEERCRED), and speak to processes of the same user only.
 * Threads:   one per keeper or connection.
 * Errors:    logged here with what to do, but for keepers that go away later. */
#ifndef SL_CONTROL_HANDOVER_KEEPER_H
#define SL_CONTROL_HANDOVER_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "control/handover/message.h"

enum { SL_KEEPER_NAME = 64 };

/* Letters, digits, '.', '_' and '-'. */
bool sl_keeper_name_valid(const char *name);

struct sl_keeper;

/* -EADDRINUSE: there is one already. */
int sl_keeper_open(const char *name, struct sl_keeper **keeper);
void sl_keeper_poll(struct sl_keeper *keeper, int timeout_ms);
bool sl_keeper_holds(const struct sl_keeper *keeper);
void sl_keeper_close(struct sl_keeper *keeper);

/* ---- receivers ---- */

/* Be the receiver: *socket stays open for as long. *handover is what the keeper holds; type
 * SL_HANDOVER_MESSAGE_NOTHING: nothing. -EBUSY: another receiver runs. */
int sl_keeper_claim(const char *name, int *socket, struct sl_handover_message *handover);

/* Replace what is held, or with NULL forget it. */
int sl_keeper_store(int socket, struct sl_handover_message *handover);

/* The keeper is no more. */
bool sl_keeper_lost(int socket);

#endif
