/* sls_fuzz.c - any datagrams on the ports of a Jungfrau with two interfaces, of one that reads out
 * its middle rows, and of an Eiger's module with 12 and with 4 bits. The first byte says which. */
#include "link/native/sls.h"
#include "native_fuzz.h"

extern const struct sl_link sl_link_sls;

static void header(const struct fuzz_format *format, unsigned port, const uint8_t script[SCRIPT],
		   uint8_t *bytes)
{
	bool eiger = format->bits > 0;
	struct sl_sls_header it = {.frame = script[1],
				   .packet = script[2] & 7,
				   .timestamp = script[3],
				   .row = (uint16_t)(eiger ? port / 2 : port),
				   .column = (uint16_t)(eiger ? port % 2 : 0),
				   .spec3 = (uint32_t)script[4] << 8,
				   .type = eiger ? SL_SLS_EIGER : SL_SLS_JUNGFRAU,
				   .version = SL_SLS_VERSION},
			     again;

	if (script[5] & 1)
		it.frame |= (uint64_t)script[6] << 56 | (uint64_t)script[7] << 8;
	if (script[5] & 2)
		it.packet |= (uint32_t)script[8] << 24 | script[9];
	if (script[5] & 4)
		it.type = script[10];
	if (script[5] & 8)
		it.version = script[11];
	if (script[5] & 16)
		it.row ^= script[9];
	if (script[5] & 32)
		it.column = (uint16_t)(script[8] << 8 | script[9]);
	sl_sls_write(&it, bytes);
	sl_sls_read(bytes, &again);
	require(again.frame == it.frame && again.packet == it.packet && again.spec3 == it.spec3 &&
		again.row == it.row && again.column == it.column && again.type == it.type &&
		again.version == it.version);
}

/* A block is 8 lines of 40 bytes. */
static const struct fuzz_format formats[] = {
	{
		.link = &sl_link_sls,
		.option = {{"payload", "80"}, {"ports", "2"}},
		.ports = 2,
		.first_port = 50001,
		.header_bytes = SL_SLS_HEADER,
		.header = header,
	},
	{
		.link = &sl_link_sls,
		.option = {{"payload", "80"}, {"port", "50011"}},
		.ports = 1,
		.first_port = 50011,
		.header_bytes = SL_SLS_HEADER,
		.unread_rows = 4, /* two packets */
		.header = header,
	},
	{
		.link = &sl_link_sls,
		.option = {{"payload", "20"},
			   {"port", "50021"},
			   {"detector", "eiger"},
			   {"ports", "4"}},
		.ports = 4,
		.first_port = 50021,
		.header_bytes = SL_SLS_HEADER,
		.payload = 20, /* of 60 bytes of a port: ends between the bytes of two pixels */
		.bits = 12,
		.pixel_bytes = 2,
		.header = header,
	},
	{
		.link = &sl_link_sls,
		.option = {{"payload", "8"},
			   {"port", "50031"},
			   {"detector", "eiger"},
			   {"ports", "4"}},
		.ports = 4,
		.first_port = 50031,
		.header_bytes = SL_SLS_HEADER,
		.payload = 8,
		.bits = 4,
		.pixel_bytes = 1,
		.header = header,
	},
};
enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz *opened[FORMATS];
	unsigned which = size ? data[0] % FORMATS : 0;

	return run_script(&formats[which], &opened[which], data + (size > 0), size - (size > 0));
}
