/* socket.h - one AF_XDP socket with the memory that it shares with the kernel. */
#ifndef SL_NET_XDP_SOCKET_H
#define SL_NET_XDP_SOCKET_H

#include <xdp/xsk.h>

#include "net/xdp/xdp.h"

#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4) /* linux/if_xdp.h, since Linux 6.6 */
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0) /* the same */
#endif

struct sl_xdp_socket {
	struct xsk_umem *umem;
	struct xsk_socket *socket;
	uint8_t *memory;
	uint32_t chunks;
	struct xsk_ring_prod fill;
	struct xsk_ring_cons done, receive;
	uint32_t shown; /* pieces that the caller has */
	uint32_t first; /* the first of them in the ring */
};

/* All zero when it is not open. Waits for a queue whose last owner is going. bind_flags: of
 * linux/if_xdp.h. */
int sl_xdp_socket_open(struct sl_xdp_socket *s, const char *interface, unsigned queue,
		       uint32_t chunks, uint16_t bind_flags);
void sl_xdp_socket_close(struct sl_xdp_socket *s);

unsigned sl_xdp_socket_peek(struct sl_xdp_socket *s, struct sl_xdp_piece *piece, unsigned most);
void sl_xdp_socket_release(struct sl_xdp_socket *s, unsigned pieces);
uint64_t sl_xdp_socket_lost(const struct sl_xdp_socket *s);

#endif
