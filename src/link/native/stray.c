/* stray.c - ports that get packets of another part of the detector: told once, by the control
 * thread, with the port that expects them. */
#include <stdio.h>

#include "base/log.h"
#include "link/native/native.h"

/* The UDP port that expects this place; 0: none does. */
static uint16_t owner_of(const struct sl_native *native, uint32_t place)
{
	for (uint32_t m = 0; m < native->queues; m++) {
		const struct sl_native_queue *queue = &native->queue[m];

		for (uint32_t i = 0; i < queue->ports; i++)
			if (queue->port[i].place == place)
				return sl_native_port_of(native, &queue->placer.shape, m, i);
	}
	return 0;
}

static void tell(const struct sl_native *native, uint32_t module, const struct sl_native_port *port,
		 uint32_t place)
{
	const struct sl_native_format *format = native->format;
	const struct sl_native_shape *shape = &native->queue[module].placer.shape;
	const char *which = format->port_text(shape, port->index);
	uint16_t owner = owner_of(native, place);
	char came[64], expected[64], by[64] = "no port expects those.";

	format->place_text(place, came, sizeof(came));
	format->place_text(port->place, expected, sizeof(expected));
	if (owner)
		snprintf(by, sizeof(by), "port %u expects those: are cables swapped?", owner);
	sl_warn("port %u (module %u%s%s) receives packets of %s, and expects %s; %s Such packets "
		"are not stored (link.turned_away.queue)%s",
		sl_native_port_of(native, shape, module, port->index), module, *which ? ", " : "",
		which, came, expected, by, format->place_advice);
}

void sl_native_tell_strays(struct sl_native *native)
{
	for (uint32_t m = 0; native->queue && m < native->queues; m++)
		for (uint32_t i = 0; i < native->queue[m].ports; i++) {
			struct sl_native_port *port = &native->queue[m].port[i];
			uint64_t stray = atomic_load_explicit(&port->stray, memory_order_relaxed);

			if (!stray || port->stray_told)
				continue;
			port->stray_told = true;
			tell(native, m, port, (uint32_t)stray);
		}
}
