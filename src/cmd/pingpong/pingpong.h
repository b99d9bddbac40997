/* pingpong.h - what the files of `sluice pingpong` share: pingpong.c plays, meet.c
 * connects the queue pairs, tcp.c speaks with the other side before that. */
#ifndef SL_CMD_PINGPONG_PINGPONG_H
#define SL_CMD_PINGPONG_PINGPONG_H

#include <stdbool.h>
#include <stdint.h>

#include "endpoint/endpoint.h"
#include "endpoint/greeting.h"
#include "net/net.h"

enum { SL_PINGPONG_QKEY = 0x11111111 }; /* of ibv_ud_pingpong */

struct sl_pingpong_options {
	uint32_t service, port, size, iters, mtu, rx_depth, timeout, roce_port, peer_roce_port;
	char listen[SL_NET_TEXT_BYTES], source[SL_NET_TEXT_BYTES];
	bool check;
};

struct sl_pingpong {
	const struct sl_pingpong_options *o;
	bool server;
	uint8_t transport;
	struct sl_endpoint *endpoint;
	struct sl_qp *qp;
	struct sl_greeting ours, theirs;
	uint8_t *incoming, *outgoing;
	uint32_t header;  /* bytes before an incoming message: UD */
	uint8_t *pattern; /* what a message should be */
	unsigned pending;
	uint64_t progress; /* when something last completed */
	uint32_t sent, received, posted;
	uint64_t wrong;	   /* messages that were not what they should be */
	uint32_t wrong_at; /* where the first one differed */
};

int sl_pingpong_post_receives(struct sl_pingpong *game);

/* Over the TCP connection fd; afterwards the queue pairs of both sides are ready. */
int sl_pingpong_exchange(struct sl_pingpong *game, int fd);

/* Wait on that address (NULL: all of this host) and port for one client; the connection, or -errno,
 * logged. */
int sl_pingpong_accept(const char *listen, uint16_t port);

/* Connect to a server; -errno: logged, with what to do. source may be NULL. */
int sl_pingpong_connect(const char *host, uint16_t port, const char *source);

/* Our address in that connection. */
int sl_pingpong_local(int fd, uint8_t gid[SL_ROCE_GID_BYTES]);

/* One step of the exchange, with a time-out; -errno, logged. */
int sl_pingpong_send(int fd, const struct sl_greeting *ours);
int sl_pingpong_receive(int fd, struct sl_greeting *theirs);
int sl_pingpong_send_done(int fd);
int sl_pingpong_receive_done(int fd);

#endif
