/* program.h - the program that chooses packets on the interface. */
#ifndef SL_NET_XDP_PROGRAM_H
#define SL_NET_XDP_PROGRAM_H

#include <stdint.h>

/* Loaded into the kernel: UDP to this address and port goes to the sockets in `map`, by receive
 * queue; the rest to the network stack. It is fit for packets of several buffers, where the kernel
 * is. A file descriptor or -errno. */
int sl_xdp_program(const uint8_t gid[16], uint16_t port, int map);

#endif
