/* socket.c - one AF_XDP socket: its memory, its rings, the frames in them. */
#include "net/xdp/socket.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TRIES_MAX = 2000 }; /* two seconds for a queue to become free */

static size_t memory_bytes(const struct sl_xdp_socket *s)
{
	return (size_t)s->chunks * SL_XDP_CHUNK_BYTES;
}

static int create(struct sl_xdp_socket *s, const char *interface, unsigned queue, uint16_t flags)
{
	const struct xsk_umem_config memory = {
		.fill_size = s->chunks, .comp_size = 64, .frame_size = SL_XDP_CHUNK_BYTES};
	const struct xsk_socket_config config = {
		.rx_size = s->chunks,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = flags};
	int err =
		xsk_umem__create(&s->umem, s->memory, memory_bytes(s), &s->fill, &s->done, &memory);

	if (err)
		return err;
	err = xsk_socket__create(&s->socket, interface, queue, s->umem, &s->receive, NULL, &config);
	if (!err)
		return 0;
	s->socket = NULL;
	xsk_umem__delete(s->umem);
	s->umem = NULL;
	return err;
}

/* The kernel frees the queue of a socket that was closed some time after that. */
static int create_patiently(struct sl_xdp_socket *s, const char *interface, unsigned queue,
			    uint16_t flags)
{
	int err = -EBUSY;

	for (unsigned tries = 0; tries < TRIES_MAX && err == -EBUSY; tries++) {
		if (tries)
			usleep(1000);
		err = create(s, interface, queue, flags);
	}
	return err;
}

int sl_xdp_socket_open(struct sl_xdp_socket *s, const char *interface, unsigned queue,
		       uint32_t chunks, uint16_t bind_flags)
{
	uint32_t at;
	int err;

	*s = (struct sl_xdp_socket){.chunks = chunks};
	s->memory = mmap(NULL, memory_bytes(s), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (s->memory == MAP_FAILED) {
		s->memory = NULL;
		return -ENOMEM;
	}
	err = create_patiently(s, interface, queue, bind_flags);
	if (!err && xsk_ring_prod__reserve(&s->fill, chunks, &at) != chunks)
		err = -ENOBUFS;
	if (err) {
		sl_xdp_socket_close(s);
		return err;
	}
	for (uint32_t i = 0; i < chunks; i++)
		*xsk_ring_prod__fill_addr(&s->fill, at + i) = (uint64_t)i * SL_XDP_CHUNK_BYTES;
	xsk_ring_prod__submit(&s->fill, chunks);
	return 0;
}

void sl_xdp_socket_close(struct sl_xdp_socket *s)
{
	if (s->socket)
		xsk_socket__delete(s->socket);
	if (s->umem)
		xsk_umem__delete(s->umem);
	if (s->memory)
		munmap(s->memory, memory_bytes(s));
	*s = (struct sl_xdp_socket){0};
}

unsigned sl_xdp_socket_peek(struct sl_xdp_socket *s, struct sl_xdp_piece *piece, unsigned most)
{
	s->shown = xsk_ring_cons__peek(&s->receive, most, &s->first);
	for (uint32_t i = 0; i < s->shown; i++) {
		const struct xdp_desc *d = xsk_ring_cons__rx_desc(&s->receive, s->first + i);

		piece[i] = (struct sl_xdp_piece){xsk_umem__get_data(s->memory, d->addr), d->len,
						 d->options & XDP_PKT_CONTD};
	}
	return s->shown;
}

void sl_xdp_socket_release(struct sl_xdp_socket *s, unsigned pieces)
{
	uint32_t at;

	/* The ring has room for every chunk there is, so it never has too little. */
	if (pieces && xsk_ring_prod__reserve(&s->fill, pieces, &at) == pieces) {
		for (uint32_t i = 0; i < pieces; i++)
			*xsk_ring_prod__fill_addr(&s->fill, at + i) =
				xsk_ring_cons__rx_desc(&s->receive, s->first + i)->addr &
				~(uint64_t)(SL_XDP_CHUNK_BYTES - 1);
		xsk_ring_prod__submit(&s->fill, pieces);
		xsk_ring_cons__release(&s->receive, pieces);
	}
	xsk_ring_cons__cancel(&s->receive, s->shown - pieces);
	s->shown = 0;
	/* A driver that ran out of chunks may sleep until it is told. */
	if (xsk_ring_prod__needs_wakeup(&s->fill))
		recvfrom(xsk_socket__fd(s->socket), NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

uint64_t sl_xdp_socket_lost(const struct sl_xdp_socket *s)
{
	struct xdp_statistics n = {0};
	socklen_t bytes = sizeof(n);

	if (getsockopt(xsk_socket__fd(s->socket), SOL_XDP, XDP_STATISTICS, &n, &bytes) < 0)
		return 0;
	return n.rx_dropped + n.rx_ring_full + n.rx_fill_ring_empty_descs;
}
