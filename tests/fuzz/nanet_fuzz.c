/* nanet_fuzz.c - any datagrams on the port of a board that sends events. */
#include "link/native/nanet.h"
#include "native_fuzz.h"

extern const struct sl_link sl_link_nanet;

static void header(const struct fuzz_format *format, unsigned port, const uint8_t script[SCRIPT],
		   uint8_t *bytes)
{
	struct sl_nanet_header it = {.event = 2u * script[1],
				     .timestamp = script[2],
				     .bytes = SL_NANET_HEADER + PAYLOAD,
				     .source = SL_NANET_RICH,
				     .events = 2},
			       again;

	if (script[5] & 1)
		it.event = script[6] | (uint32_t)script[7] << 8 | (uint32_t)script[8] << 16;
	if (script[5] & 2)
		it.bytes = script[9];
	if (script[5] & 4)
		it.source = script[10];
	if (script[5] & 8)
		it.events = script[11];
	if (script[5] & 16)
		it.subsource = script[4];
	sl_nanet_write(&it, bytes);
	sl_nanet_read(bytes, &again);
	require(again.event == it.event && again.bytes == it.bytes && again.source == it.source &&
		again.events == it.events && again.subsource == it.subsource);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fuzz_format format = {
		.link = &sl_link_nanet,
		.option = {{"event_bytes", "40"}, {"packet_events", "2"}},
		.ports = 1,
		.first_port = 58913,
		.header_bytes = SL_NANET_HEADER,
		.header = header,
	};

	static struct fuzz *opened;

	return run_script(&format, &opened, data, size);
}
