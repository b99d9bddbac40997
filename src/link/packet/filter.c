/* filter.c - the program with which the kernel chooses packets for the ring. Offsets count
 * from the IP header, whatever the link layer puts before it. */
#include <string.h>

#include "link/packet/packet.h"

enum {
	REJECT = 0xff, /* a jump to the end, filled in when it is known where that is */
	WHOLE = 0x40000,
	PROTOCOL_UDP = 17,
	HEADER_FRAGMENT = 44,
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	QPN_AT = 4, /* in the BTH, with a byte before it that is not part of it */
	FRAGMENT_BYTES = 8,
};

static void add(struct sl_packet_filter *f, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	f->code[f->n++] = (struct sock_filter){code, yes, no, k};
}

static void load(struct sl_packet_filter *f, uint16_t size, uint32_t at)
{
	add(f, (uint16_t)(BPF_LD | size | BPF_ABS), (uint32_t)SKF_NET_OFF + at, 0, 0);
}

static void must(struct sl_packet_filter *f, uint32_t value)
{
	add(f, BPF_JMP | BPF_JEQ | BPF_K, value, 0, REJECT);
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Leaves the destination port to be compared. */
static void choose_v4(struct sl_packet_filter *f, const uint8_t *address)
{
	load(f, BPF_B, 9);
	must(f, PROTOCOL_UDP);
	load(f, BPF_W, 16);
	must(f, get32(address));
	load(f, BPF_H, 6);
	add(f, BPF_ALU | BPF_AND | BPF_K, 0x1fff, 0, 0);
	must(f, 0); /* a later fragment has no port */
	add(f, BPF_LDX | BPF_B | BPF_MSH, (uint32_t)SKF_NET_OFF, 0, 0);
	add(f, BPF_LD | BPF_H | BPF_IND, (uint32_t)SKF_NET_OFF + 2, 0, 0);
}

static void choose_v6(struct sl_packet_filter *f, const uint8_t *address)
{
	for (uint32_t i = 0; i < SL_ROCE_GID_BYTES; i += 4) {
		load(f, BPF_W, 24 + i);
		must(f, get32(address + i));
	}
	load(f, BPF_B, 6);
	add(f, BPF_JMP | BPF_JEQ | BPF_K, PROTOCOL_UDP, 8, 0);
	must(f, HEADER_FRAGMENT);
	load(f, BPF_B, IPV6_BYTES);
	must(f, PROTOCOL_UDP);
	load(f, BPF_H, IPV6_BYTES + 2);
	add(f, BPF_ALU | BPF_AND | BPF_K, 0xfff8, 0, 0);
	must(f, 0);
	load(f, BPF_H, IPV6_BYTES + FRAGMENT_BYTES + 2);
	add(f, BPF_JMP | BPF_JA, 1, 0, 0);
	load(f, BPF_H, IPV6_BYTES + 2);
}

void sl_packet_filter_spread(struct sl_packet_filter *filter, bool v4, uint32_t qpn_base,
			     unsigned pollers)
{
	filter->n = 0;
	load(filter, BPF_W, (v4 ? IPV4_BYTES : IPV6_BYTES) + UDP_BYTES + QPN_AT);
	add(filter, BPF_ALU | BPF_AND | BPF_K, SL_ROCE_QPN_MASK, 0, 0);
	add(filter, BPF_ALU | BPF_SUB | BPF_K, qpn_base, 0, 0);
	add(filter, BPF_ALU | BPF_MOD | BPF_K, pollers, 0, 0);
	add(filter, BPF_RET | BPF_A, 0, 0, 0);
}

void sl_packet_filter_init(struct sl_packet_filter *filter, const uint8_t gid[SL_ROCE_GID_BYTES],
			   uint16_t port, const unsigned interface[2])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	filter->n = 0;
	add(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX), 0, 0);
	add(filter, BPF_JMP | BPF_JEQ | BPF_K, interface[0], 1, 0);
	must(filter, interface[1]);
	/* Not for a neighbour, nor with a VLAN tag that belongs to another interface. */
	add(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE), 0, 0);
	must(filter, PACKET_HOST);
	if (!memcmp(gid, mapped, sizeof(mapped)))
		choose_v4(filter, gid + sizeof(mapped));
	else
		choose_v6(filter, gid);
	must(filter, port);
	add(filter, BPF_RET | BPF_K, WHOLE, 0, 0);
	for (unsigned i = 0; i < filter->n; i++)
		if (filter->code[i].jf == REJECT)
			filter->code[i].jf = (uint8_t)(filter->n - i - 1);
	add(filter, BPF_RET | BPF_K, 0, 0, 0);
}
