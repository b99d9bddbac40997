/* sls_fuzz.c - any datagrams on the ports of a Jungfrau with two interfaces. */
#include "link/native/sls.h"
#include "native_fuzz.h"

extern const struct sl_link sl_link_sls;

static void header(const uint8_t script[SCRIPT], uint8_t *bytes)
{
	struct sl_sls_header it = {.frame = script[1],
				   .packet = script[2] & 3,
				   .timestamp = script[3],
				   .spec3 = (uint32_t)script[4] << 8,
				   .type = SL_SLS_JUNGFRAU,
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
	sl_sls_write(&it, bytes);
	sl_sls_read(bytes, &again);
	require(again.frame == it.frame && again.packet == it.packet && again.spec3 == it.spec3 &&
		again.type == it.type && again.version == it.version);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fuzz_format format = {
		.link = &sl_link_sls,
		.option = {{"payload", "80"}, {"ports", "2"}},
		.ports = 2,
		.first_port = 50001,
		.header_bytes = SL_SLS_HEADER,
		.header = header,
	};

	return run_script(&format, data, size);
}
