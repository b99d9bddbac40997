/* sample.c - packets for the flight recorder (core/flight.h), as native links see them. */
#include <string.h>

#include "link/native/native.h"

void sl_native_sample(const struct sl_native *native, const struct sl_native_queue *queue,
		      const struct sl_native_port *port, struct sl_flight_tap *tap,
		      const struct msghdr *header, const uint8_t *head, size_t bytes,
		      uint64_t now_ns)
{
	const struct sl_native_placer *placer = &queue->placer;
	size_t here = native->format->header_bytes;
	struct sl_flight_packet packet = {
		.at_ns = now_ns,
		.dest_port =
			sl_native_port_of(native, &placer->shape, placer->plan.module, port->index),
		.module = placer->plan.module,
		.tos = sl_net_class(header),
	};

	memcpy(packet.dest, native->local[port->index % 2], sizeof(packet.dest));
	/* A link that believes any sender does not ask who it was: ::ffff:0.0.0.0 or ::. */
	memcpy(packet.source, packet.dest, 12);
	if (header->msg_name)
		packet.source_port = sl_net_gid(header->msg_name, packet.source);
	sl_flight_keep(&packet, head, here, bytes);
	sl_flight_take(tap, &packet);
}
