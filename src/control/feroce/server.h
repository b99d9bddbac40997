/* server.h - where FEROCE front ends find the receiver: UDP sockets, and who may ask.
 *
 * Model:     host.h behind sockets on one address. Plans hold keys and UDP has no
 *            connection that a token could be asked for: off this host the addresses of front ends
 *            must be listed, and others are not heard. An address can be forged; the network
 *            between front ends and receiver must be one where it is not.
 * Threads:   one, the control thread; callbacks run there.
 * Errors:    0 or -errno; what is wrong with the options is logged. */
#ifndef SL_CONTROL_FEROCE_SERVER_H
#define SL_CONTROL_FEROCE_SERVER_H

#include "control/feroce/host.h"

struct pollfd;

struct sl_feroce_server_options {
	const char *address; /* one IPv4 address: where data goes, too */
	uint16_t port;	     /* 0: both that FEROCE knows */
	/* "10.0.0.0/24, 10.0.1.7": who is heard, besides those in `open`; "": this host. */
	const char *allow;
	const char *open;	       /* "10.0.0.5, 10.0.0.6": front ends that wait to be asked */
	struct sl_feroce_options host; /* but for port and front ends */
};

struct sl_feroce_server;

int sl_feroce_server_open(const struct sl_feroce_server_options *options,
			  const struct sl_control_ops *ops, void *arg,
			  struct sl_feroce_server **server);

/* Also tells who does not know it yet that it is over, and logs what strangers sent. */
void sl_feroce_server_close(struct sl_feroce_server *server);

unsigned sl_feroce_server_fds(const struct sl_feroce_server *server, struct pollfd *fds,
			      unsigned most);
/* Handle what there is; does not wait. */
void sl_feroce_server_poll(struct sl_feroce_server *server, uint64_t now_ns);

uint32_t sl_feroce_server_planned(const struct sl_feroce_server *server);
bool sl_feroce_server_ready(const struct sl_feroce_server *server); /* every module connected */
void sl_feroce_server_start(struct sl_feroce_server *server);
void sl_feroce_server_stop(struct sl_feroce_server *server);
void sl_feroce_server_abandon(struct sl_feroce_server *server);
void sl_feroce_server_bye(struct sl_feroce_server *server);
bool sl_feroce_server_leaving(const struct sl_feroce_server *server);

#endif
