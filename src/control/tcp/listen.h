/* listen.h - the listening socket of a server (server.h). */
#ifndef SL_CONTROL_TCP_LISTEN_H
#define SL_CONTROL_TCP_LISTEN_H

#include "control/tcp/server.h"

/* The peers' name in messages: "front end", unless the options say otherwise. */
const char *sl_server_peer(const struct sl_server_options *options);

/* The socket is the caller's. Logs what is wrong with address, port or token. */
int sl_server_listen(const struct sl_server_options *options, int *listener);

#endif
