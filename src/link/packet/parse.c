/* parse.c - IP and UDP headers of a packet as it was on the wire. */
#include <string.h>

#include "link/packet/packet.h"

enum { IPV4_BYTES = 20, IPV6_BYTES = 40, UDP_BYTES = 8, PROTOCOL_UDP = 17 };

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void map_v4(const uint8_t *address, uint8_t gid[SL_ROCE_GID_BYTES])
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, address, 4);
}

/* Length of what follows the IPv4 header; 0: not what a RoCE device sends. */
static size_t parse_v4(const uint8_t *ip, size_t bytes, struct sl_roce_path *path)
{
	uint16_t total = get16(ip + 2), fragment = get16(ip + 6);

	if (ip[0] != 0x45 || ip[9] != PROTOCOL_UDP || total > bytes || total < IPV4_BYTES)
		return 0;
	if (fragment & 0x3fff) /* more to come, or not the first */
		return 0;
	*path = (struct sl_roce_path){
		.ip_id = get16(ip + 4),
		.dont_fragment = fragment & 0x4000,
		.tos = ip[1],
		.ttl = ip[8],
	};
	map_v4(ip + 12, path->source);
	map_v4(ip + 16, path->dest);
	return (size_t)total - IPV4_BYTES;
}

static size_t parse_v6(const uint8_t *ip, size_t bytes, struct sl_roce_path *path)
{
	size_t length = get16(ip + 4);

	if (ip[6] != PROTOCOL_UDP || IPV6_BYTES + length > bytes)
		return 0;
	*path = (struct sl_roce_path){
		.dont_fragment = true,
		.tos = (uint8_t)(ip[0] << 4 | ip[1] >> 4),
		.ttl = ip[7],
	};
	memcpy(path->source, ip + 8, SL_ROCE_GID_BYTES);
	memcpy(path->dest, ip + 24, SL_ROCE_GID_BYTES);
	return length;
}

bool sl_packet_parse(const uint8_t *ip, size_t here, size_t bytes, struct sl_roce_path *path,
		     const uint8_t **data, size_t *data_bytes)
{
	bool v4 = here && ip[0] >> 4 == 4, v6 = here && ip[0] >> 4 == 6;
	size_t header_bytes = v4 ? IPV4_BYTES : IPV6_BYTES, length;
	const uint8_t *udp = ip + header_bytes;

	if ((!v4 && !v6) || here < header_bytes + UDP_BYTES)
		return false;
	length = v4 ? parse_v4(ip, bytes, path) : parse_v6(ip, bytes, path);
	/* The ICRC knows one length only; what the link layer appended is beyond both. */
	if (length < UDP_BYTES || length != get16(udp + 4))
		return false;
	path->source_port = get16(udp);
	path->dest_port = get16(udp + 2);
	*data = udp + UDP_BYTES;
	*data_bytes = length - UDP_BYTES;
	return true;
}
