/* sls_header.c - the header of PSI's detectors, to and from bytes. */
#include "link/native/sls.h"

static uint64_t get(const uint8_t *bytes, unsigned n)
{
	uint64_t value = 0;

	while (n--)
		value = value << 8 | bytes[n];
	return value;
}

static void put(uint8_t *bytes, unsigned n, uint64_t value)
{
	for (unsigned i = 0; i < n; i++, value >>= 8)
		bytes[i] = (uint8_t)value;
}

void sl_sls_read(const uint8_t bytes[SL_SLS_HEADER], struct sl_sls_header *header)
{
	*header = (struct sl_sls_header){
		.frame = get(bytes, 8),
		.exposure = (uint32_t)get(bytes + 8, 4),
		.packet = (uint32_t)get(bytes + 12, 4),
		.spec1 = get(bytes + 16, 8),
		.timestamp = get(bytes + 24, 8),
		.module = (uint16_t)get(bytes + 32, 2),
		.row = (uint16_t)get(bytes + 34, 2),
		.column = (uint16_t)get(bytes + 36, 2),
		.spec2 = (uint16_t)get(bytes + 38, 2),
		.spec3 = (uint32_t)get(bytes + 40, 4),
		.spec4 = (uint16_t)get(bytes + 44, 2),
		.type = bytes[46],
		.version = bytes[47],
	};
}

void sl_sls_write(const struct sl_sls_header *header, uint8_t bytes[SL_SLS_HEADER])
{
	put(bytes, 8, header->frame);
	put(bytes + 8, 4, header->exposure);
	put(bytes + 12, 4, header->packet);
	put(bytes + 16, 8, header->spec1);
	put(bytes + 24, 8, header->timestamp);
	put(bytes + 32, 2, header->module);
	put(bytes + 34, 2, header->row);
	put(bytes + 36, 2, header->column);
	put(bytes + 38, 2, header->spec2);
	put(bytes + 40, 4, header->spec3);
	put(bytes + 44, 2, header->spec4);
	bytes[46] = header->type;
	bytes[47] = header->version;
}
