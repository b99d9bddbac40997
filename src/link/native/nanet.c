/* nanet.c - event streams as NA62's RICH sends them to NaNet: many events of one length in each UDP
 * packet, numbered by event.
 *
 * A block is a fixed number of packets' events, one after another; its events, where they are rows
 * of 48 bytes, are the rows of a module. A module is a read-out board: its number is the sub-source
 * of its packets. Event numbers have 24 bits and wrap, every 1.7 s at 10 MHz: they are followed, as
 * long as no board is silent for half of that. */
#include "link/native/nanet.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "link/native/native.h"
#include "link/native/receive.h"

enum { TICK_NS = 25, EVENT_BITS = 24 };

struct sl_nanet {
	struct sl_native native;
	uint32_t event_bytes, packet_events, source_id; /* options */
};

static const struct sl_option options[] = {
	SL_NATIVE_OPTIONS(58913, "0"),
	SL_U32(struct sl_nanet, packet_events, 20, 1, 255, "events", "in each packet"),
	SL_U32(struct sl_nanet, event_bytes, 48, 1, 8960, "bytes", "of each event"),
	SL_U32(struct sl_nanet, source_id, 28, 0, 255, "",
	       "which detector's packets they are; others are refused. NA62's RICH is 28 (0x1c)"),
	SL_OPTION_END,
};

static uint32_t payload_of(const struct sl_nanet *nanet)
{
	return nanet->packet_events * nanet->event_bytes;
}

static int shape(const struct sl_native *native, uint16_t module, uint32_t lines,
		 uint32_t line_bytes, struct sl_native_shape *it)
{
	const struct sl_nanet *nanet = (const struct sl_nanet *)native;
	uint64_t events = (uint64_t)lines * line_bytes / nanet->event_bytes;
	const char *why;

	(void)module;
	*it = (struct sl_native_shape){
		.across = 1,
		.down = 1,
		.payload = payload_of(nanet),
		.items = (uint32_t)events,
		.block_numbers = events,
		.packet_numbers = nanet->packet_events,
	};
	why = sl_native_shape_fill(it, lines, line_bytes, 0);
	if (!why && events >= 1 << (EVENT_BITS - 2))
		why = "a block of so many events could not be told from the next";
	if (!why)
		return 0;
	sl_error("link nanet, blocks of %u lines of %u bytes, %u events of %u bytes to a packet: "
		 "%s (link.packet_events, link.event_bytes)",
		 lines, line_bytes, nanet->packet_events, nanet->event_bytes, why);
	return -EINVAL;
}

static bool read_header(const struct sl_native *native, const uint8_t *bytes,
			struct sl_native_header *header)
{
	const struct sl_nanet *nanet = (const struct sl_nanet *)native;
	struct sl_nanet_header it;

	sl_nanet_read(bytes, &it);
	if (it.source != nanet->source_id || it.events != nanet->packet_events ||
	    it.bytes != SL_NANET_HEADER + payload_of(nanet))
		return false;
	header->number = it.event;
	header->place = it.subsource;
	header->timestamp = (uint64_t)it.timestamp * TICK_NS;
	return true;
}

static void write_header(const struct sl_native *native, const struct sl_native_header *header,
			 uint8_t *bytes)
{
	const struct sl_nanet *nanet = (const struct sl_nanet *)native;
	const struct sl_nanet_header it = {
		.event = (uint32_t)header->number,
		.source = (uint8_t)nanet->source_id,
		.bytes = (uint16_t)(SL_NANET_HEADER + payload_of(nanet)),
		.events = (uint8_t)nanet->packet_events,
		.subsource = (uint8_t)header->place,
		.timestamp = (uint32_t)(header->timestamp / TICK_NS),
	};

	sl_nanet_write(&it, bytes);
}

static uint32_t place_of(const struct sl_native *native, const struct sl_native_shape *it,
			 uint16_t module, uint32_t port)
{
	(void)native;
	(void)it;
	(void)port;
	return module;
}

static void place_text(uint32_t place, char *text, size_t bytes)
{
	snprintf(text, bytes, "sub-source %u", place);
}

static const char *port_text(const struct sl_native_shape *it, uint32_t port)
{
	(void)it;
	(void)port;
	return "";
}

static const struct sl_native_format format = {
	.header_bytes = SL_NANET_HEADER,
	.number_bits = EVENT_BITS,
	.shape = shape,
	.place = place_of,
	.place_text = place_text,
	.port_text = port_text,
	.place_advice = "",
	.read = read_header,
	.write = write_header,
};

static void facts_of(const void *state, struct sl_link_facts *facts)
{
	const struct sl_nanet *nanet = state;

	sl_native_facts(&nanet->native, facts);
	facts->payload = payload_of(nanet);
}

static int open_nanet(void *state, const struct sl_link_env *env)
{
	((struct sl_native *)state)->place_mask = UINT32_MAX;
	return sl_native_open(state, &format, env);
}

static int poll_nanet(void *state, unsigned poller, unsigned budget)
{
	return sl_native_receive(&format, state, poller, budget);
}

static const struct sl_link_receiving receiving = {SL_NATIVE_RECEIVING, .poll = poll_nanet};

const struct sl_link sl_link_nanet = {
	.name = "nanet",
	.doc = "events of NA62's RICH as NaNet takes them: many to a UDP packet, nothing goes back",
	.wire = "nanet",
	.state_bytes = sizeof(struct sl_nanet),
	.options = options,
	.facts = facts_of,
	.open = open_nanet,
	.receiving = &receiving,
	SL_NATIVE_LINK,
};
