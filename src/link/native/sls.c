/* sls.c - PSI's detectors (Jungfrau, Eiger) as they send: native UDP, a header and pixels.
 *
 * How they send is taken from slsDetectorPackage: payloads and packets of a frame from
 * slsReceiverSoftware/src/GeneralData.h, ports and halves from the help of udp_dstport and
 * udp_dstport2, the first frame number from DEFAULT_STARTING_FRAME_NUMBER of the detector servers.
 *
 * Jungfrau: a module is 512 lines of 1024 pixels, 8192 bytes (4 lines) to a packet. One interface
 * sends all 128; of two, the first sends lines 0 to 255, the second the others, 64 packets each,
 * both numbered from 0.
 * Eiger: a half-module is 256 lines of 1024 pixels and has two ports, the left and the right half
 * of each line, packets numbered from 0 on both. 4096 bytes to a packet at 10 Gbit/s, 1024 at 1. */
#include "link/native/sls.h"

#include <errno.h>

#include "base/log.h"
#include "link/native/native.h"
#include "link/native/receive.h"

enum { TICK_NS = 100, CELL_SHIFT = 8, CELL_MASK = 15 };

struct sl_sls {
	struct sl_native native;
	uint32_t detector, ports, payload; /* options */
};

/* As the choices of the option: what each kind does, where the options do not say. */
#define KINDS "jungfrau|eiger"

static const struct {
	const char *name;
	enum sl_sls_type type;
	uint32_t ports, payload;
} kinds[] = {
	{"jungfrau", SL_SLS_JUNGFRAU, 1, 8192},
	{"eiger", SL_SLS_EIGER, 2, 4096},
};

static const struct sl_option options[] = {
	SL_NATIVE_OPTIONS(50001, "1"),
	SL_CHOICE(struct sl_sls, detector, jungfrau, KINDS,
		  "whose headers they are; others are refused"),
	SL_U32(struct sl_sls, ports, 0, 0, 4, "ports",
	       "of a module: jungfrau 1 or 2 (interfaces), eiger 2 (left and right of a "
	       "half-module) "
	       "or 4 (of a module); 0: 1 and 2"),
	SL_U32(struct sl_sls, payload, 0, 0, 8960, "bytes",
	       "of pixels in a packet; 0: jungfrau 8192, eiger 4096 (10 Gbit/s; 1024 at 1)"),
	SL_OPTION_END,
};

static uint32_t ports_of(const struct sl_sls *sls)
{
	return sls->ports ? sls->ports : kinds[sls->detector].ports;
}

static uint32_t payload_of(const struct sl_sls *sls)
{
	return sls->payload ? sls->payload : kinds[sls->detector].payload;
}

static int shape(const struct sl_native *native, uint32_t lines, uint32_t line_bytes,
		 struct sl_native_shape *it)
{
	const struct sl_sls *sls = (const struct sl_sls *)native;
	uint32_t ports = ports_of(sls);
	bool eiger = kinds[sls->detector].type == SL_SLS_EIGER;
	const char *why = NULL;

	*it = (struct sl_native_shape){
		.across = eiger ? 2 : 1,
		.down = eiger ? ports / 2 : ports,
		.payload = payload_of(sls),
		.items = 1,
		.block_numbers = 1,
	};
	if (eiger ? ports != 2 && ports != 4 : ports > 2)
		why = "jungfrau has 1 or 2 ports, eiger 2 or 4";
	if (!why)
		why = sl_native_shape_fill(it, lines, line_bytes, 0);
	if (!why)
		return 0;
	sl_error("link sls, a module of %u lines of %u bytes: %s (link.ports, link.payload)", lines,
		 line_bytes, why);
	return -EINVAL;
}

static bool read_header(const struct sl_native *native, const uint8_t *bytes,
			struct sl_native_header *header)
{
	const struct sl_sls *sls = (const struct sl_sls *)native;
	struct sl_sls_header it;

	sl_sls_read(bytes, &it);
	if (it.version != SL_SLS_VERSION || it.type != kinds[sls->detector].type)
		return false;
	header->number = it.frame;
	header->packet = it.packet;
	header->timestamp = it.timestamp * TICK_NS;
	if (it.type == SL_SLS_JUNGFRAU)
		header->cell = it.spec3 >> CELL_SHIFT & CELL_MASK;
	return true;
}

/* Modules one below the other; a port counts as a module of its own, Jungfrau's second interface
 * above the first. */
static void write_header(const struct sl_native *native, const struct sl_native_header *header,
			 uint8_t *bytes)
{
	const struct sl_sls *sls = (const struct sl_sls *)native;
	uint32_t ports = ports_of(sls);
	bool eiger = kinds[sls->detector].type == SL_SLS_EIGER;
	struct sl_sls_header it = {
		.frame = header->number,
		.packet = header->packet,
		.timestamp = header->timestamp / TICK_NS,
		.module = header->module,
		.type = (uint8_t)kinds[sls->detector].type,
		.version = SL_SLS_VERSION,
	};

	if (eiger) {
		it.module = (uint16_t)(header->module * ports + header->port);
		it.row = (uint16_t)(header->module * (ports / 2) + header->port / 2);
		it.column = header->port % 2;
	} else {
		it.row = (uint16_t)(header->module * ports + (ports - 1u - header->port));
		it.spec3 = (uint32_t)(header->cell & CELL_MASK) << CELL_SHIFT;
	}
	sl_sls_write(&it, bytes);
}

static const struct sl_native_format format = {
	.header_bytes = SL_SLS_HEADER,
	.number_bits = 64,
	.first = 1,
	.shape = shape,
	.read = read_header,
	.write = write_header,
};

static void facts_of(const void *state, struct sl_link_facts *facts)
{
	const struct sl_sls *sls = state;

	sl_native_facts(&sls->native, facts);
	facts->payload = payload_of(sls);
	facts->detector = kinds[sls->detector].name;
	facts->detectors = KINDS;
}

static int open_sls(void *state, const struct sl_link_env *env)
{
	return sl_native_open(state, &format, env);
}

static int poll_sls(void *state, unsigned poller, unsigned budget)
{
	return sl_native_receive(&format, state, poller, budget);
}

static const struct sl_link_receiving receiving = {SL_NATIVE_RECEIVING, .poll = poll_sls};

const struct sl_link sl_link_sls = {
	.name = "sls",
	.doc = "PSI's detectors as they send (Jungfrau, Eiger): native UDP, nothing goes back",
	.wire = "sls",
	.state_bytes = sizeof(struct sl_sls),
	.options = options,
	.facts = facts_of,
	.open = open_sls,
	.receiving = &receiving,
	SL_NATIVE_LINK,
};
