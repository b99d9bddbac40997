/* shape.c - packets to pieces of a block. */
#include "link/native/shape.h"

#include <stddef.h>

static uint32_t pieces_of(const struct sl_native_shape *s)
{
	if (s->together || s->packed)
		return 1;
	/* Where lines and packets do not end together, a bit at either end. */
	if (s->payload % s->line_bytes == 0)
		return s->payload / s->line_bytes;
	return s->line_bytes % s->payload == 0 ? 1 : s->payload / s->line_bytes + 2;
}

/* Of a line of a port, in packets; 0: it cannot be packed. */
static uint32_t packed_bytes(const struct sl_native_shape *s)
{
	if (s->packed == 4)
		return s->line_bytes % 2 ? 0 : s->line_bytes / 2;
	if (s->packed == 12)
		return s->line_bytes % 4 ? 0 : s->line_bytes / 4 * 3;
	return s->line_bytes;
}

const char *sl_native_shape_fill(struct sl_native_shape *shape, uint32_t lines, uint32_t line_bytes,
				 uint64_t pitch)
{
	struct sl_native_shape *s = shape;
	uint64_t bytes, unread;

	if (!s->across || !s->down || s->across * s->down > SL_NATIVE_PORTS)
		return "a module has 1 to 4 ports";
	if (!lines || lines % s->down || !line_bytes || line_bytes % s->across)
		return "its lines cannot be shared out among the ports";
	if (!s->payload || s->payload > SL_NATIVE_PAYLOAD)
		return "packets have 1 to 8960 bytes of pixels";
	s->ports = s->across * s->down;
	s->lines = lines / s->down;
	s->line_bytes = line_bytes / s->across;
	s->pitch = pitch ? pitch : line_bytes;
	s->together = s->across == 1 && s->pitch == line_bytes && !s->flipped && !s->packed;
	s->wire_line = packed_bytes(s);
	if (!s->wire_line)
		return "packed pixels come in pairs, and a line of a port is no whole number of "
		       "pairs";
	bytes = (uint64_t)s->lines * s->wire_line;
	if (bytes % s->payload || bytes / s->payload > UINT32_MAX)
		return "the part of a port is not a whole number of packets";
	s->packets = (uint32_t)(bytes / s->payload);
	/* What is not read out lies above the first lines and below the last ones. */
	unread = (uint64_t)s->unread * s->wire_line;
	if (unread % s->payload)
		return "the lines that are not read out are not a whole number of packets";
	for (uint32_t i = 0; i < SL_NATIVE_PORTS; i++)
		s->first_packet[i] = i < s->across ? (uint32_t)(unread / s->payload) : 0;
	s->pieces = pieces_of(s);
	if (s->pieces > SL_NATIVE_PIECES)
		return "a packet would be scattered over more than 32 lines";
	return NULL;
}

unsigned sl_native_pieces(const struct sl_native_shape *shape, uint32_t port, uint32_t packet,
			  struct sl_native_piece piece[SL_NATIVE_PIECES])
{
	const struct sl_native_shape *s = shape;
	uint64_t from = (uint64_t)packet * s->payload;
	uint64_t line = from / s->line_bytes, byte = from % s->line_bytes;
	uint64_t at = sl_native_line_at(s, port, line);
	uint64_t step = s->flipped >> port & 1 ? -s->pitch : s->pitch; /* modulo 2^64 */
	uint32_t left = s->payload;
	unsigned n = 0;

	if (s->together) {
		piece[0] = (struct sl_native_piece){at + byte, left};
		return 1;
	}
	while (left) {
		uint32_t bytes = s->line_bytes - (uint32_t)byte;

		bytes = bytes < left ? bytes : left;
		piece[n++] = (struct sl_native_piece){at + byte, bytes};
		left -= bytes;
		at += step;
		byte = 0;
	}
	return n;
}
