/* udp.h - what the files of the udp link share.
 *
 * Model:     receiving: one socket on listen:4791 for all queues of this receiver; queue pair
 *            numbers are consecutive from a random base. Sending: one socket per transfer, so
 *            that each queue has its own source port; credits come back to that socket as 8-byte
 *            RDMA writes. Sockets are never connected and never fragment: then the kernel sends
 *            IP identification 0, which the ICRC covers. */
#ifndef SL_LINK_UDP_H
#define SL_LINK_UDP_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>

#include <sluice/link.h>

#include "link/credit.h"
#include "link/place.h"
#include "roce/requester.h"
#include "roce/responder.h"

enum {
	SL_UDP_TRANSFERS = 64,
	SL_UDP_BATCH = 64,	  /* packets per system call */
	SL_UDP_PACKET_MAX = 4352, /* 4096 and the longest headers, rounded up */
};

struct sl_udp_queue { /* receiving */
	_Atomic uint32_t active;
	struct sl_plan plan;
	struct sl_roce_responder responder;
	struct sl_roce_key key;
	struct sl_placer placer;
	struct sl_credit credit;
	uint32_t credit_psn;
	_Atomic uint64_t reported; /* the source's last word on how much it has sent */
	uint64_t heard, heard_ns;  /* a word not acted upon yet, and since when: the poller's */
};

struct sl_udp_source { /* sending */
	int fd;
	struct sl_offer offer;
	struct sl_plan plan;
	struct sl_roce_path path, credit_path;
	struct sockaddr_in dest;
	struct sl_roce_responder responder; /* of credits */
	struct sl_roce_key key;
	uint64_t granted;
	/* The write that was begun and not finished, for want of credit or room in the socket. */
	struct sl_roce_requester cursor;
	uint64_t sent; /* position */
};

struct sl_udp_buffers { /* one batch of packets */
	uint8_t packet[SL_UDP_BATCH][SL_UDP_PACKET_MAX];
	struct sockaddr_in peer[SL_UDP_BATCH];
	uint8_t header[SL_UDP_BATCH][SL_ROCE_HEADERS_MAX];
	uint8_t trailer[SL_UDP_BATCH][SL_ROCE_TRAILER_MAX + 1];
	struct iovec iov[SL_UDP_BATCH][4];
	struct mmsghdr message[SL_UDP_BATCH];
};

struct sl_udp {
	/* options */
	char listen[64], source[64];
	uint32_t port;
	uint64_t receive_buffer, window;
	/* state */
	struct sl_link_env env;
	struct sl_udp_buffers *buffers;
	uint8_t local[SL_ROCE_GID_BYTES];
	int fd; /* receiving; -1 otherwise */
	uint64_t buffer_bytes;
	uint64_t opened_seen; /* slots when credits were last looked at */
	uint32_t qpn_base, queues, sources;
	bool any_id;
	struct sl_udp_queue *queue; /* [SL_UDP_TRANSFERS] */
	struct sl_udp_source *send; /* [SL_UDP_TRANSFERS] */
};

/* A UDP socket as the ICRC needs it: unconnected, DF, bound. Logs and returns -errno. */
int sl_udp_socket(const struct sockaddr_in *bind_to);
void sl_udp_gid(const struct in_addr *ip, uint8_t gid[SL_ROCE_GID_BYTES]);
struct in_addr sl_udp_ip(const uint8_t gid[SL_ROCE_GID_BYTES]);
uint32_t sl_udp_random(void);

/* A queue's only key, as the responder looks for it: arg is that key. */
const struct sl_roce_key *sl_udp_key_of(void *arg, uint32_t rkey);

int sl_udp_poll(void *state, unsigned budget);
int sl_udp_wait(void *state, uint32_t timeout_us);
int sl_udp_post(void *state, uint16_t transfer, const struct sl_write *write, size_t n);
uint64_t sl_udp_reap(void *state, uint16_t transfer);
void sl_udp_take_credits(struct sl_udp *udp, struct sl_udp_source *source);

#endif
