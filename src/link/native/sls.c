/* sls.c - PSI's detectors (Jungfrau, Eiger) as they send: native UDP, a header and pixels.
 *
 * How they send is taken from slsDetectorPackage: payloads and packets of a frame from
 * slsReceiverSoftware/src/GeneralData.h, ports and halves from the help of udp_dstport and
 * udp_dstport2, the first frame number from DEFAULT_STARTING_FRAME_NUMBER of the detector servers.
 *
 * Jungfrau: a module is 512 lines of 1024 pixels, 8192 bytes (4 lines) to a packet. One interface
 * sends all 128; of two, the first sends lines 0 to 255, the second the others, 64 packets each,
 * both numbered from 0. A detector that reads out the middle rows alone (readnrows) leaves packets
 * away and numbers the others as ever: of 128 rows over one interface packets 48 to 79, over two
 * 48 to 63 of the first and 0 to 15 of the second (start_timer() of jungfrauDetectorServer).
 * Eiger: a half-module is 256 lines of 1024 pixels and has two ports, the left and the right half
 * of each line, packets numbered from 0 on both. 4096 bytes to a packet at 10 Gbit/s, 1024 at 1.
 * Pixels of 4 and 12 bits are packed (pack.h). Both half-modules of a module send the line at its
 * middle first. So one of them is turned over, its rows and not its columns: the upper one, where
 * line 0 of the image is at the top. slsReceiver writes lines as they come. The client of
 * slsDetectorPackage counts lines from below, and turns the lower half over (`fliprows`,
 * DetectorImpl::readFrameFromReceiver), as sls_detector_tools (io.py) does; ESRF's fork counts from
 * above, and turns the upper one over (ModRecvFlip in detectors/eiger/Geometry.h).
 *
 * Row and column of a header say where a port lies in the detector. Detectors get them from the
 * client (slsDetectorServer_funcs.c, slsReceiver's Implementation::setModulePositionId): modules,
 * which for an Eiger are half-modules, are stacked in a column until `detsize` is reached, then in
 * the next one; a port counts as a row (Jungfrau) or as a column (Eiger) of its own. The first port
 * of an Eiger's half-module is the left one in both halves: the server of a lower half exchanges
 * its ports (configureMAC() of eigerDetectorServer). */
#include "link/native/sls.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "link/native/native.h"
#include "link/native/receive.h"

enum { TICK_NS = 100, CELL_SHIFT = 8, CELL_MASK = 15 };
enum { HALF_LINES = 256 }; /* of an Eiger's half-module */
enum { UPPER_FIRST, LOWER_FIRST, AS_SENT };
enum { POSITIONS_CHECK, POSITIONS_IGNORE };

struct sl_sls {
	struct sl_native native;
	/* options */
	uint32_t detector, ports, payload;
	uint32_t positions, first_module, column_modules, row_modules, halves, nibbles;
};

/* As the choices of the option: what each kind does, where the options do not say. */
#define KINDS "jungfrau|eiger"

static const struct {
	const char *name;
	enum sl_sls_type type;
	uint32_t payload;
} kinds[] = {
	{"jungfrau", SL_SLS_JUNGFRAU, 8192},
	{"eiger", SL_SLS_EIGER, 4096},
};

static const struct sl_option options[] = {
	SL_NATIVE_OPTIONS(50001, "1"),
	SL_CHOICE(struct sl_sls, detector, jungfrau, KINDS,
		  "whose headers they are; others are refused"),
	SL_U32(struct sl_sls, ports, 0, 0, 4, "ports",
	       "of a module: jungfrau 1 or 2 (interfaces), eiger 2 (left and right of a "
	       "half-module) or 4 (of a module); 0: jungfrau 1, eiger 2 for modules of up to 256 "
	       "rows and 4 for larger ones"),
	SL_U32(struct sl_sls, payload, 0, 0, 8960, "bytes",
	       "of pixels in a packet; 0: jungfrau 8192, eiger 4096 (10 Gbit/s; 1024 at 1)"),
	SL_CHOICE(struct sl_sls, positions, check, "check|ignore",
		  "receiver: what is done with row and column of headers. check: packets that name "
		  "others than those of their port are counted as queue, and not stored"),
	SL_U32(struct sl_sls, first_module, 0, 0, 65535, "modules",
	       "of the detector before module 0 of this experiment, as the detector's hostnames "
	       "are ordered; modules are those of the experiment"),
	SL_U32(struct sl_sls, column_modules, 0, 0, 65535, "modules",
	       "one below the other before the next column of modules begins (detsize); 0: all"),
	SL_U32(struct sl_sls, row_modules, 0, 0, 65535, "modules",
	       "side by side before the next row of modules begins, where modules are counted row "
	       "by row; 0: they are counted column by column"),
	SL_CHOICE(struct sl_sls, halves, upper_first, "upper_first|lower_first|as_sent",
		  "eiger: which half-module of two comes first, by its ports, or by its row with 2 "
		  "ports; the upper one is turned over. as_sent: rows as they come"),
	SL_CHOICE(struct sl_sls, nibbles, low, "low|high",
		  "eiger, 4 bits: which half of a byte is the first of its two pixels"),
	SL_OPTION_END,
};

static bool is_eiger(const struct sl_sls *sls)
{
	return kinds[sls->detector].type == SL_SLS_EIGER;
}

static uint32_t ports_of(const struct sl_sls *sls, uint32_t lines)
{
	if (sls->ports)
		return sls->ports;
	return !is_eiger(sls) ? 1 : lines > HALF_LINES ? 4 : 2;
}

static uint32_t payload_of(const struct sl_sls *sls)
{
	return sls->payload ? sls->payload : kinds[sls->detector].payload;
}

/* Row and column of a module among those of the experiment's kind. */
static void grid_of(const struct sl_sls *sls, uint16_t module, uint32_t *row, uint32_t *column)
{
	uint32_t at = sls->first_module + module;

	*row = at;
	*column = 0;
	if (sls->row_modules) {
		*row = at / sls->row_modules;
		*column = at % sls->row_modules;
	} else if (sls->column_modules) {
		*row = at % sls->column_modules;
		*column = at / sls->column_modules;
	}
}

/* Bit p: port p sends its last line first. */
static uint32_t flipped(const struct sl_sls *sls, uint16_t module, uint32_t ports)
{
	uint32_t row, column;

	if (!is_eiger(sls) || sls->halves == AS_SENT)
		return 0;
	if (ports == 4)
		return sls->halves == UPPER_FIRST ? 3 : 12;
	grid_of(sls, module, &row, &column);
	return row % 2 == sls->halves ? 3 : 0;
}

/* Bits of a pixel, where packets have it packed; 0: they do not. */
static uint32_t packed(const struct sl_sls *sls)
{
	uint32_t bits = sls->native.env.bits;

	return is_eiger(sls) && (bits == 4 || bits == 12) ? bits : 0;
}

static const char *unfit(const struct sl_sls *sls, uint32_t ports)
{
	const struct sl_link_env *env = &sls->native.env;

	if (is_eiger(sls) ? ports != 2 && ports != 4 : ports > 2)
		return "jungfrau has 1 or 2 ports, eiger 2 or 4 (link.ports)";
	if (!is_eiger(sls) && sls->halves != UPPER_FIRST)
		return "only an eiger has half-modules (link.halves)";
	if (sls->column_modules && sls->row_modules)
		return "modules are counted by column or by row (link.column_modules, "
		       "link.row_modules)";
	if (packed(sls) && env->pixel_bytes != (packed(sls) == 4 ? 1 : 2))
		return "raw pixels of an eiger have 1 byte with 4 bits, 2 bytes with 12 "
		       "(detector.bits)";
	if (is_eiger(sls) && env->unread_rows)
		return "only a jungfrau's partial readout is known (detector.read_rows)";
	return NULL;
}

static int shape(const struct sl_native *native, uint16_t module, uint32_t lines,
		 uint32_t line_bytes, struct sl_native_shape *it)
{
	const struct sl_sls *sls = (const struct sl_sls *)native;
	uint32_t ports = ports_of(sls, lines);
	bool eiger = is_eiger(sls);
	const char *why = unfit(sls, ports), *which = "";

	*it = (struct sl_native_shape){
		.across = eiger ? 2 : 1,
		.down = eiger ? ports / 2 : ports,
		.payload = payload_of(sls),
		.packed = packed(sls),
		.high_first = sls->nibbles == 1,
		.flipped = flipped(sls, module, ports),
		.bottom_up = eiger && sls->halves == LOWER_FIRST,
		.unread = native->env.unread_rows,
		.items = 1,
		.block_numbers = 1,
	};
	if (!why) {
		why = sl_native_shape_fill(it, lines, line_bytes, 0);
		which = " (link.ports, link.payload)";
	}
	if (!why)
		return 0;
	sl_error("link sls, a module of %u lines of %u bytes: %s%s", lines, line_bytes, why, which);
	return -EINVAL;
}

/* Row and column, as headers have them. */
static uint32_t place(uint32_t row, uint32_t column)
{
	return (row & 0xffff) | column << 16;
}

static uint32_t place_of(const struct sl_native *native, const struct sl_native_shape *it,
			 uint16_t module, uint32_t port)
{
	const struct sl_sls *sls = (const struct sl_sls *)native;
	uint32_t row, column;

	grid_of(sls, module, &row, &column);
	return place(row * it->down + port / it->across, column * it->across + port % it->across);
}

static void place_text(uint32_t at, char *text, size_t bytes)
{
	snprintf(text, bytes, "row %u, column %u", at & 0xffff, at >> 16);
}

static const char *port_text(const struct sl_native_shape *it, uint32_t port)
{
	static const char *const interfaces[] = {"first interface", "second interface"};
	static const char *const sides[] = {"left", "right"};
	static const char *const quarters[] = {"upper half, left", "upper half, right",
					       "lower half, left", "lower half, right"};

	if (it->across == 1)
		return it->down == 1 ? "" : interfaces[port];
	if (it->down == 1)
		return sides[port];
	return quarters[it->bottom_up ? port ^ 2 : port];
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
	header->place = place(it.row, it.column);
	header->timestamp = it.timestamp * TICK_NS;
	if (it.type == SL_SLS_JUNGFRAU)
		header->cell = it.spec3 >> CELL_SHIFT & CELL_MASK;
	return true;
}

static void write_header(const struct sl_native *native, const struct sl_native_header *header,
			 uint8_t *bytes)
{
	const struct sl_sls *sls = (const struct sl_sls *)native;
	struct sl_sls_header it = {
		.frame = header->number,
		.packet = header->packet,
		.timestamp = header->timestamp / TICK_NS,
		.module = header->module,
		.row = (uint16_t)header->place,
		.column = (uint16_t)(header->place >> 16),
		.type = (uint8_t)kinds[sls->detector].type,
		.version = SL_SLS_VERSION,
	};

	if (is_eiger(sls)) /* each port has a number of its own */
		it.module = (uint16_t)(header->module * SL_NATIVE_PORTS + header->port);
	else
		it.spec3 = (uint32_t)(header->cell & CELL_MASK) << CELL_SHIFT;
	sl_sls_write(&it, bytes);
}

static const struct sl_native_format format = {
	.header_bytes = SL_SLS_HEADER,
	.number_bits = 64,
	.first = 1,
	.shape = shape,
	.place = place_of,
	.place_text = place_text,
	.port_text = port_text,
	.place_advice = ". If the detector counts its modules in another way, or not at all, set "
			"link.first_module, column_modules, row_modules or positions",
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
	struct sl_sls *sls = state;

	sls->native.place_mask = sls->positions == POSITIONS_CHECK ? UINT32_MAX : 0;
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
