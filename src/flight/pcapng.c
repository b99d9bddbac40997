/* pcapng.c - sampled packets as pcapng: the kept bytes of each UDP payload behind headers made of
 * what is known of the packet. draft-ietf-opsawg-pcapng, little-endian. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flight/private.h"
#include "net/net.h"

enum {
	SECTION = 0x0a0d0d0a,
	INTERFACE = 1,
	PACKET = 6,
	MAGIC = 0x1a2b3c4d,
	RAW_IP = 101, /* the link type whose packets begin with an IP header */
	OPTION_END = 0,
	OPTION_COMMENT = 1,
	OPTION_USER = 4, /* of a section: the program */
	OPTION_NAME = 2, /* of an interface */
	OPTION_TSRESOL = 9,
	NANOSECONDS = 9,
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	PROTOCOL_UDP = 17,
	TTL = 64,
};

struct file {
	char *text;
	size_t bytes, room;
	size_t block; /* where the block under way begins */
};

static void put(struct file *f, const void *data, size_t bytes)
{
	if (!f->text)
		return;
	if (f->bytes + bytes > f->room) {
		size_t room = 2 * (f->bytes + bytes);
		char *more = realloc(f->text, room);

		if (!more) {
			free(f->text);
			f->text = NULL;
			return;
		}
		f->text = more;
		f->room = room;
	}
	memcpy(f->text + f->bytes, data, bytes);
	f->bytes += bytes;
}

static void put16(struct file *f, unsigned value)
{
	const uint8_t bytes[2] = {(uint8_t)value, (uint8_t)(value >> 8)};

	put(f, bytes, sizeof(bytes));
}

static void put32(struct file *f, uint32_t value)
{
	put16(f, value & 0xffff);
	put16(f, value >> 16);
}

static void pad(struct file *f)
{
	put(f, "\0\0\0", -f->bytes & 3);
}

static void option(struct file *f, unsigned code, const void *data, size_t bytes)
{
	put16(f, code);
	put16(f, (unsigned)bytes);
	put(f, data, bytes);
	pad(f);
}

static void text_option(struct file *f, unsigned code, const char *text)
{
	option(f, code, text, strlen(text));
}

static void begin(struct file *f, uint32_t type)
{
	f->block = f->bytes;
	put32(f, type);
	put32(f, 0); /* its length */
}

static void end(struct file *f)
{
	uint32_t bytes;

	option(f, OPTION_END, "", 0);
	bytes = (uint32_t)(f->bytes - f->block) + 4;
	put32(f, bytes);
	if (!f->text)
		return;
	for (unsigned i = 0; i < 4; i++)
		f->text[f->block + 4 + i] = (char)(bytes >> 8 * i);
}

/* ---- headers ---- */

static void set16(uint8_t *p, unsigned value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static unsigned checksum(const uint8_t *p, size_t bytes)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < bytes; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

static size_t ipv4(const struct sl_flight_packet *p, const union sl_net_address *source,
		   const union sl_net_address *dest, uint8_t header[IPV6_BYTES])
{
	memset(header, 0, IPV4_BYTES);
	header[0] = 0x45;
	header[1] = p->tos;
	set16(header + 2, (IPV4_BYTES + UDP_BYTES + p->bytes) & 0xffff);
	header[6] = 0x40; /* don't fragment */
	header[8] = TTL;
	header[9] = PROTOCOL_UDP;
	memcpy(header + 12, &source->v4.sin_addr, 4);
	memcpy(header + 16, &dest->v4.sin_addr, 4);
	set16(header + 10, checksum(header, IPV4_BYTES));
	return IPV4_BYTES;
}

static size_t ipv6(const struct sl_flight_packet *p, uint8_t header[IPV6_BYTES])
{
	memset(header, 0, IPV6_BYTES);
	header[0] = (uint8_t)(0x60 | p->tos >> 4);
	header[1] = (uint8_t)(p->tos << 4);
	set16(header + 4, (UDP_BYTES + p->bytes) & 0xffff);
	header[6] = PROTOCOL_UDP;
	header[7] = TTL;
	memcpy(header + 8, p->source, 16);
	memcpy(header + 24, p->dest, 16);
	return IPV6_BYTES;
}

static size_t headers(const struct sl_flight_packet *p, uint8_t header[IPV6_BYTES + UDP_BYTES])
{
	union sl_net_address source, dest;
	size_t n;

	sl_net_address(p->source, p->source_port, &source);
	sl_net_address(p->dest, p->dest_port, &dest);
	n = dest.any.sa_family == AF_INET && source.any.sa_family == AF_INET
		    ? ipv4(p, &source, &dest, header)
		    : ipv6(p, header);
	set16(header + n, p->source_port);
	set16(header + n + 2, p->dest_port);
	set16(header + n + 4, (UDP_BYTES + p->bytes) & 0xffff);
	set16(header + n + 6, 0); /* not known */
	return n + UDP_BYTES;
}

/* ---- blocks ---- */

static void put_section(struct file *f, const struct sl_flight_record *r)
{
	char comment[400];

	begin(f, SECTION);
	put32(f, MAGIC);
	put16(f, 1); /* version 1.0 */
	put16(f, 0);
	put32(f, UINT32_MAX); /* of any length */
	put32(f, UINT32_MAX);
	snprintf(comment, sizeof(comment),
		 "sampled by the flight recorder of a receiver: %d packets in a row, then none for "
		 "a while; first bytes of UDP payloads as they came, IP and UDP headers made anew. "
		 "Loss was first seen %.3f s before the end of this record.",
		 SL_FLIGHT_BURST, (double)(r->taken_ns - r->loss_ns) * 1e-9);
	text_option(f, OPTION_COMMENT, comment);
	text_option(f, OPTION_USER, "sluice");
	end(f);
}

static void put_interface(struct file *f, const struct sl_flight_record *r)
{
	const uint8_t resolution = NANOSECONDS;
	char name[64];

	snprintf(name, sizeof(name), "link %s", r->facts.link);
	begin(f, INTERFACE);
	put16(f, RAW_IP);
	put16(f, 0);
	put32(f, 0); /* whole packets */
	text_option(f, OPTION_NAME, name);
	option(f, OPTION_TSRESOL, &resolution, 1);
	end(f);
}

static void put_packet(struct file *f, const struct sl_flight_record *r,
		       const struct sl_flight_packet *p, bool first_loss)
{
	uint8_t header[IPV6_BYTES + UDP_BYTES];
	uint64_t at_ns = p->at_ns + r->unix_ns;
	size_t n = headers(p, header);
	char comment[96] = "module not known";

	if (p->module != SL_FLIGHT_NO_MODULE)
		snprintf(comment, sizeof(comment), "module %u", p->module);
	begin(f, PACKET);
	put32(f, 0);
	put32(f, (uint32_t)(at_ns >> 32));
	put32(f, (uint32_t)at_ns);
	put32(f, (uint32_t)n + p->kept);
	put32(f, (uint32_t)n + p->bytes);
	put(f, header, n);
	put(f, p->payload, p->kept);
	pad(f);
	snprintf(comment + strlen(comment), sizeof(comment) - strlen(comment), "%s%s",
		 (p->tos & SL_NET_ECN_MASK) == SL_NET_ECN_CE ? ", marked for congestion" : "",
		 first_loss ? ", the first one after a loss was seen" : "");
	text_option(f, OPTION_COMMENT, comment);
	end(f);
}

char *sl_flight_pcapng(const struct sl_flight_record *r, size_t *bytes)
{
	struct file f = {.room = 4096 + r->packets * 256};
	bool after = false;

	f.text = malloc(f.room);
	put_section(&f, r);
	put_interface(&f, r);
	for (size_t i = 0; i < r->packets; i++) {
		bool first = !after && r->packet[i].at_ns >= r->loss_ns;

		put_packet(&f, r, &r->packet[i], first);
		after |= first;
	}
	*bytes = f.bytes;
	return f.text;
}
