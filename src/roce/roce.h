/* roce.h - RoCEv2 packets as plain data: the constants, a parsed packet, the path it travels.
 *
 * Model:     a RoCEv2 packet is the payload of a UDP datagram to port 4791: BTH, extension headers
 *            by opcode, payload, 0..3 bytes of padding, ICRC. Everything in this folder is a pure
 *            function or a state machine in the caller's memory.
 * Threads:   no global state; different objects may be used by different threads.
 * Ownership: the caller's memory throughout; a parsed packet points into the bytes it came from.
 * Cost:      no allocation, no system call, no libc beyond memcpy and memset; builds freestanding.
 * Errors:    0 or a negative enum sl_roce_error; outputs are set only on success. */
#ifndef SL_ROCE_ROCE_H
#define SL_ROCE_ROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sl_roce_error {
	SL_ROCE_OK = 0,
	SL_ROCE_EINVAL = -1,   /* the caller asked for something impossible */
	SL_ROCE_ESHORT = -2,   /* too few bytes for its headers */
	SL_ROCE_EVERSION = -3, /* transport version other than 0 */
	SL_ROCE_EOPCODE = -4,  /* not an opcode we know */
	SL_ROCE_ELENGTH = -5,  /* a payload length its opcode never has */
	SL_ROCE_EPAD = -6,     /* padding that does not fit the length */
	SL_ROCE_EFULL = -7,    /* no room now */
};

enum {
	SL_ROCE_UDP_PORT = 4791,
	SL_ROCE_PKEY_DEFAULT = 0xffff,
	SL_ROCE_PMTU_MAX = 4096,
	SL_ROCE_BTH_BYTES = 12,
	SL_ROCE_HEADERS_MAX = 40, /* BTH and the longest extension, AtomicETH */
	SL_ROCE_ICRC_BYTES = 4,
	SL_ROCE_TRAILER_MAX = 7, /* padding and ICRC */
	SL_ROCE_GID_BYTES = 16,
};

#define SL_ROCE_MESSAGE_MAX (UINT32_C(1) << 31)
#define SL_ROCE_QPN_MASK    UINT32_C(0xffffff)

/* The upper three bits of an opcode. */
enum sl_roce_transport {
	SL_ROCE_RC = 0,
	SL_ROCE_UC = 1,
	SL_ROCE_RD = 2,
	SL_ROCE_UD = 3,
	SL_ROCE_CNP = 4,
	SL_ROCE_XRC = 5,
};

/* What follows the BTH: a set, and the order of the bits is the order on the wire. */
enum sl_roce_header {
	SL_ROCE_HAS_DETH = 1 << 0,
	SL_ROCE_HAS_FETH = 1 << 1,
	SL_ROCE_HAS_RETH = 1 << 2,
	SL_ROCE_HAS_ATOMIC = 1 << 3,
	SL_ROCE_HAS_AETH = 1 << 4,
	SL_ROCE_HAS_ATOMIC_ACK = 1 << 5,
	SL_ROCE_HAS_IMM = 1 << 6,
	SL_ROCE_HAS_IETH = 1 << 7,
	SL_ROCE_HAS_CNP = 1 << 8, /* 16 reserved bytes */
};

/* One packet. Numbers are in host order. Which of the extensions are valid is in `has`. */
struct sl_roce_packet {
	uint8_t opcode;
	uint8_t pad;
	uint8_t byte4;	   /* FECN (0x80), BECN (0x40), reserved; the ICRC does not cover it */
	uint8_t reserved7; /* beside AckReq; the ICRC covers it */
	bool se, mig, ackreq;
	uint16_t pkey;
	uint16_t has; /* set of enum sl_roce_header */
	uint32_t qpn, psn;
	struct {
		uint64_t va;
		uint32_t rkey, length; /* of the whole message */
	} reth;
	struct {
		uint64_t va;
		uint32_t rkey;
		uint64_t swap_or_add, compare;
	} atomic;
	struct {
		uint8_t syndrome;
		uint32_t msn;
	} aeth;
	struct {
		uint32_t qkey, source_qpn;
	} deth;
	uint64_t atomic_ack;
	uint32_t imm, ieth, feth;
	uint16_t header_bytes;	/* BTH and extensions */
	uint32_t payload_bytes; /* without padding */
	const uint8_t *payload; /* NULL when only the headers were at hand */
	uint32_t icrc;		/* as a CRC-32 value; 0 when only the headers were at hand */
};

/* What the network layers say about a packet; the ICRC covers most of it. Addresses are GIDs: an
 * IPv6 address, or ::ffff:a.b.c.d for IPv4. Ports and id in host order. */
struct sl_roce_path {
	uint8_t source[SL_ROCE_GID_BYTES], dest[SL_ROCE_GID_BYTES];
	uint16_t source_port, dest_port;
	uint16_t ip_id;	    /* IPv4 only */
	bool dont_fragment; /* IPv4 only; true for everything that RoCE devices send */
	/* Not covered; 0 where a socket was not asked for them (IP_RECVTOS, IP_RECVTTL, ...). */
	uint8_t tos; /* IPv4 type of service, IPv6 traffic class: DSCP and ECN */
	uint8_t ttl; /* IPv4 time to live, IPv6 hop limit */
};

/* Both ends have an IPv4-mapped address: the packet has an IPv4 header. */
bool sl_roce_path_is_ipv4(const struct sl_roce_path *path);

/* 256, 512, 1024, 2048 or 4096. */
bool sl_roce_pmtu_valid(uint32_t pmtu);

/* Take the payload of a UDP datagram apart. Strict about lengths, version and padding, tolerant
 * about reserved bits; never reads beyond `bytes`. The ICRC is not checked: see icrc.h. */
int sl_roce_parse(const void *udp_payload, size_t bytes, struct sl_roce_packet *packet);

/* The same where the datagram was scattered: `head` holds its first head_bytes (at least the
 * headers), udp_bytes is the length of all of it. Payload and ICRC stay with the caller. */
int sl_roce_parse_headers(const void *head, size_t head_bytes, size_t udp_bytes,
			  struct sl_roce_packet *packet);

/* Write BTH and the extensions that the opcode has. `out` has room for SL_ROCE_HEADERS_MAX.
 * Returns their length, or SL_ROCE_EOPCODE. */
int sl_roce_encode_headers(const struct sl_roce_packet *packet, void *out);

#endif
