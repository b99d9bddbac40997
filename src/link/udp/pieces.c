/* pieces.c - packets that come with all their headers, each in one piece of memory or several:
 * check, find the queue, judge.
 *
 * The checksum runs over the pieces where they lie. Then the payload is put together where its
 * PSN says that it belongs, if nothing may be overwritten there, and judged: the copy that puts it
 * together is the one that places it. As with guesses (link/predict.h), what is then refused leaves
 * its traces only in bytes that nobody has been promised. */
#include <string.h>
#include <unistd.h>

#include "base/crc.h"
#include "link/udp/udp.h"
#include "roce/opcode.h"

enum { PIECES_MAX = 32 }; /* that a checksum is taken over; more are put together first */

static size_t length_of(const struct sl_roce_piece *piece, unsigned count)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < count; i++)
		bytes += piece[i].bytes;
	return bytes;
}

/* The bytes from..from+bytes of a datagram. */
static void collect(const struct sl_roce_piece *piece, unsigned count, size_t from, size_t bytes,
		    uint8_t *to)
{
	for (unsigned i = 0; i < count && bytes; i++) {
		size_t take;

		if (from >= piece[i].bytes) {
			from -= piece[i].bytes;
			continue;
		}
		take = piece[i].bytes - from < bytes ? piece[i].bytes - from : bytes;
		memcpy(to, (const uint8_t *)piece[i].data + from, take);
		to += take;
		bytes -= take;
		from = 0;
	}
}

/* All 32 bits: every header that they cover was seen. */
static bool icrc_good(const struct sl_roce_path *path, const struct sl_roce_piece *piece,
		      unsigned count, const struct sl_roce_packet *packet)
{
	size_t left = (size_t)packet->payload_bytes + packet->pad;
	size_t skip = packet->header_bytes;
	struct sl_roce_piece body[PIECES_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < count && left; i++) {
		size_t take = piece[i].bytes - skip < left ? piece[i].bytes - skip : left;

		body[n++] = (struct sl_roce_piece){(const uint8_t *)piece[i].data + skip, take};
		left -= take;
		skip = 0;
	}
	/* The padding is among the pieces, as it came. */
	return sl_roce_icrc(path, piece[0].data, packet->header_bytes, body, n, 0, sl_crc32) ==
	       packet->icrc;
}

/* Acquire: pairs with the release in hand_over(). */
static unsigned owner_of(const struct sl_udp_queue *queue)
{
	return atomic_load_explicit(&queue->poller, memory_order_acquire);
}

static struct sl_udp_queue *queue_of_head(struct sl_udp *udp, const uint8_t *head, size_t bytes)
{
	if (bytes < SL_ROCE_BTH_BYTES)
		return NULL;
	return sl_udp_queue_of(udp, (uint32_t)head[5] << 16 | (uint32_t)head[6] << 8 | head[7]);
}

bool sl_udp_claim(struct sl_udp *udp, unsigned poller, const uint8_t *head, size_t bytes,
		  const struct sl_roce_path *path)
{
	struct sl_udp_queue *queue = queue_of_head(udp, head, bytes);
	unsigned owner = queue ? owner_of(queue) : poller, nobody = 0;
	uint64_t one = 1;

	/* Only its peer may have it change hands; who else wants it is turned away later. */
	if (owner == poller ||
	    memcmp(path->source, queue->plan.source.ip, sizeof(path->source)) != 0)
		return true;
	/* Who sleeps hands nothing over. A wake-up that comes too early is not lost, and one that
	 * finds no room is not needed. */
	if (atomic_compare_exchange_strong(&queue->wanted, &nobody, poller + 1) &&
	    write(udp->env.wake[owner].fd, &one, sizeof(one)) < 0)
		return false;
	return false;
}

/* Where the payload lies in one piece: where it belongs, if it came in several. */
static const uint8_t *gather(struct sl_udp *udp, const struct sl_udp_queue *queue, unsigned poller,
			     const struct sl_roce_piece *piece, unsigned count,
			     const struct sl_roce_packet *packet)
{
	uint8_t *to = udp->buffers[poller].scratch[0];
	struct sl_place place;

	if (packet->header_bytes + packet->payload_bytes <= piece[0].bytes)
		return (const uint8_t *)piece[0].data + packet->header_bytes;
	if (sl_placer_locate(&queue->placer, packet->psn, &place) && place.to &&
	    place.bytes == packet->payload_bytes)
		to = place.to;
	collect(piece, count, packet->header_bytes, packet->payload_bytes, to);
	return to;
}

/* Headers in one piece, and as many pieces as the checksum can do. */
static bool parse(struct sl_udp *udp, unsigned poller, struct sl_roce_piece *whole,
		  const struct sl_roce_piece **piece, unsigned *count,
		  struct sl_roce_packet *packet)
{
	size_t bytes = length_of(*piece, *count);
	uint8_t icrc[SL_ROCE_ICRC_BYTES];

	if (!*count)
		return false;
	if (*count > PIECES_MAX || (*count > 1 && (*piece)->bytes < SL_ROCE_HEADERS_MAX)) {
		uint8_t *linear = udp->buffers[poller].predict.linear[0];

		if (bytes > SL_PREDICT_DATAGRAM)
			return false;
		collect(*piece, *count, 0, bytes, linear);
		*whole = (struct sl_roce_piece){linear, bytes};
		*piece = whole;
		*count = 1;
	}
	if (sl_roce_parse_headers((*piece)->data, (*piece)->bytes, bytes, packet))
		return false;
	collect(*piece, *count, bytes - sizeof(icrc), sizeof(icrc), icrc);
	packet->icrc = sl_roce_icrc_get(icrc);
	return true;
}

void sl_udp_receive_pieces(struct sl_udp *udp, unsigned poller, const struct sl_roce_piece *piece,
			   unsigned count, const struct sl_roce_path *path, bool marked,
			   uint64_t now_ns)
{
	struct sl_flight_tap *tap = sl_udp_tap(udp, poller);
	struct sl_roce_piece whole;
	struct sl_roce_packet packet;
	struct sl_udp_queue *queue;

	if (sl_flight_due(tap, now_ns) && count)
		sl_udp_sample(udp, tap, path, path->tos, piece[0].data, piece[0].bytes,
			      length_of(piece, count), now_ns);
	if (!parse(udp, poller, &whole, &piece, &count, &packet)) {
		sl_udp_count(udp, SL_DROP_MALFORMED);
		return;
	}
	queue = sl_udp_queue_of(udp, packet.qpn);
	if (udp->icrc == SL_UDP_ICRC_CHECK && !icrc_good(path, piece, count, &packet)) {
		sl_udp_count(udp, SL_DROP_ICRC);
	} else if (!queue) {
		sl_udp_count(udp, SL_DROP_QUEUE);
	} else if (owner_of(queue) != poller) {
		sl_udp_count(udp, SL_DROP_PEER); /* its source's packets come to another thread */
	} else {
		if (marked && !memcmp(path->source, queue->plan.source.ip, sizeof(path->source)))
			sl_udp_notify(udp, queue, now_ns);
		packet.payload = gather(udp, queue, poller, piece, count, &packet);
		sl_udp_judge(udp, queue, path, &packet, now_ns);
	}
}

size_t sl_udp_packet_bytes(struct sl_udp *udp, unsigned poller, const uint8_t *head, size_t bytes)
{
	struct sl_udp_queue *queue = queue_of_head(udp, head, bytes);
	const struct sl_roce_opcode *opcode = queue ? sl_roce_opcode(head[0]) : NULL;
	struct sl_place place;

	if (!opcode || owner_of(queue) != poller ||
	    !sl_placer_locate(&queue->placer,
			      (uint32_t)head[9] << 16 | (uint32_t)head[10] << 8 | head[11], &place))
		return 0;
	return opcode->header_bytes + ((place.bytes + 3) & ~UINT32_C(3)) + SL_ROCE_ICRC_BYTES;
}
