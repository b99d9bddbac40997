/* sample.c - packets for the flight recorder (core/flight.h), as the udp link sees them. */
#include "link/udp/udp.h"

#include <string.h>

enum { BTH_BYTES = 12 };

/* The module of the queue that the packet names. */
static uint16_t module_of(struct sl_udp *udp, const uint8_t *head, size_t bytes)
{
	const struct sl_udp_queue *queue = NULL;

	if (bytes >= BTH_BYTES)
		queue = sl_udp_queue_of(udp,
					(uint32_t)head[5] << 16 | (uint32_t)head[6] << 8 | head[7]);
	return queue ? queue->plan.module : SL_FLIGHT_NO_MODULE;
}

void sl_udp_sample(struct sl_udp *udp, struct sl_flight_tap *tap, const struct sl_roce_path *path,
		   uint8_t tos, const void *head, size_t here, size_t bytes, uint64_t now_ns)
{
	struct sl_flight_packet packet = {.at_ns = now_ns,
					  .source_port = path->source_port,
					  .dest_port = path->dest_port,
					  .module = module_of(udp, head, here),
					  .tos = tos};

	memcpy(packet.source, path->source, sizeof(packet.source));
	memcpy(packet.dest, path->dest, sizeof(packet.dest));
	sl_flight_keep(&packet, head, here, bytes);
	sl_flight_take(tap, &packet);
}
