/* program.c - which packets go to the sockets, as eBPF instructions: few enough to write down, so
 * that the build needs no compiler for them. */
#include "net/xdp/program.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <stddef.h>
#include <string.h>

enum {
	CODE_MAX = 64,
	CONTEXT = BPF_REG_6,
	DATA = BPF_REG_2,
	END = BPF_REG_3,
	VALUE = BPF_REG_4,
	PASS = 0x7fff, /* a jump to where the packet is passed on; filled in at the end */
	ETHERNET = 14,
	PROTOCOL_UDP = 17,
};

struct code {
	struct bpf_insn insn[CODE_MAX];
	unsigned n;
};

static void add(struct code *c, uint8_t op, uint8_t dst, uint8_t src, int16_t off, int32_t imm)
{
	c->insn[c->n++] = (struct bpf_insn){op, dst, src, off, imm};
}

/* Bytes `at` of the packet, as they are on the wire, must be these; mask 0: all of them. */
static void must(struct code *c, uint8_t size, int16_t at, uint32_t mask, uint32_t wire)
{
	add(c, (uint8_t)(BPF_LDX | size | BPF_MEM), VALUE, DATA, at, 0);
	if (mask)
		add(c, BPF_ALU | BPF_AND | BPF_K, VALUE, 0, 0, (int32_t)mask);
	add(c, BPF_JMP32 | BPF_JNE | BPF_K, VALUE, 0, PASS, (int32_t)wire);
}

static void must_be_there(struct code *c, int32_t bytes)
{
	add(c, BPF_LDX | BPF_W | BPF_MEM, DATA, CONTEXT, offsetof(struct xdp_md, data), 0);
	add(c, BPF_LDX | BPF_W | BPF_MEM, END, CONTEXT, offsetof(struct xdp_md, data_end), 0);
	add(c, BPF_ALU64 | BPF_MOV | BPF_X, VALUE, DATA, 0, 0);
	add(c, BPF_ALU64 | BPF_ADD | BPF_K, VALUE, 0, 0, bytes);
	add(c, BPF_JMP | BPF_JGT | BPF_X, VALUE, END, PASS, 0);
}

static uint32_t wire32(const uint8_t *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static void choose_v4(struct code *c, const uint8_t *address, uint16_t port)
{
	must_be_there(c, ETHERNET + 20 + 8);
	must(c, BPF_H, 12, 0, htons(ETH_P_IP));
	must(c, BPF_B, ETHERNET, 0, 0x45);
	must(c, BPF_H, ETHERNET + 6, htons(0x3fff), 0); /* no fragment */
	must(c, BPF_B, ETHERNET + 9, 0, PROTOCOL_UDP);
	must(c, BPF_W, ETHERNET + 16, 0, wire32(address));
	must(c, BPF_H, ETHERNET + 20 + 2, 0, htons(port));
}

static void choose_v6(struct code *c, const uint8_t *address, uint16_t port)
{
	must_be_there(c, ETHERNET + 40 + 8);
	must(c, BPF_H, 12, 0, htons(ETH_P_IPV6));
	must(c, BPF_B, ETHERNET + 6, 0, PROTOCOL_UDP);
	for (int16_t i = 0; i < 16; i += 4)
		must(c, BPF_W, (int16_t)(ETHERNET + 24 + i), 0, wire32(address + i));
	must(c, BPF_H, ETHERNET + 40 + 2, 0, htons(port));
}

/* Where a kernel does not know packets of several buffers (before 5.18), without a word of them. */
static int load(const struct code *c)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options, .prog_flags = BPF_F_XDP_HAS_FRAGS);
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "sluice_xdp", "Apache-2.0", c->insn, c->n,
			       &options);

	if (fd < 0 && errno == EINVAL)
		fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "sluice_xdp", "Apache-2.0", c->insn, c->n,
				   NULL);
	return fd < 0 ? -errno : fd;
}

int sl_xdp_program(const uint8_t gid[16], uint16_t port, int map)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct code c = {.n = 0};

	add(&c, BPF_ALU64 | BPF_MOV | BPF_X, CONTEXT, BPF_REG_1, 0, 0);
	if (!memcmp(gid, mapped, sizeof(mapped)))
		choose_v4(&c, gid + sizeof(mapped), port);
	else
		choose_v6(&c, gid, port);
	/* bpf_redirect_map(map, queue, what to do where the queue has no socket) */
	add(&c, BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map);
	add(&c, 0, 0, 0, 0, 0);
	add(&c, BPF_LDX | BPF_W | BPF_MEM, BPF_REG_2, CONTEXT,
	    offsetof(struct xdp_md, rx_queue_index), 0);
	add(&c, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, XDP_PASS);
	add(&c, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map);
	add(&c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	for (unsigned i = 0; i < c.n; i++)
		if (c.insn[i].off == PASS)
			c.insn[i].off = (int16_t)(c.n - i - 1);
	add(&c, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, XDP_PASS);
	add(&c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	return load(&c);
}
