/* nanet_header.c - the header of packets with many events, to and from bytes. */
#include "link/native/nanet.h"

void sl_nanet_read(const uint8_t bytes[SL_NANET_HEADER], struct sl_nanet_header *header)
{
	*header = (struct sl_nanet_header){
		.event = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16,
		.source = bytes[3],
		.bytes = (uint16_t)(bytes[4] | bytes[5] << 8),
		.events = bytes[6],
		.subsource = bytes[7],
		.timestamp = (uint32_t)bytes[8] | (uint32_t)bytes[9] << 8 |
			     (uint32_t)bytes[10] << 16 | (uint32_t)bytes[11] << 24,
	};
}

void sl_nanet_write(const struct sl_nanet_header *header, uint8_t bytes[SL_NANET_HEADER])
{
	for (unsigned i = 0; i < 3; i++)
		bytes[i] = (uint8_t)(header->event >> 8 * i);
	bytes[3] = header->source;
	bytes[4] = (uint8_t)header->bytes;
	bytes[5] = (uint8_t)(header->bytes >> 8);
	bytes[6] = header->events;
	bytes[7] = header->subsource;
	for (unsigned i = 0; i < 4; i++)
		bytes[8 + i] = (uint8_t)(header->timestamp >> 8 * i);
}
