/* pattern.c - a detector of any size whose pixels are a hash of (seed, frame, module, position,
 * dark): for tests, sanitizers and measurements.
 *
 * Every pixel of every frame differs from its neighbours in place and in time, so that a pixel that
 * is stale, shifted or of another module never looks right. No calibration, no hits.
 *
 * Cost: about a nanosecond a pixel, nothing kept. */
#include <errno.h>

#include <sluice/detector.h>
#include <sluice/random.h>

struct pattern {
	uint32_t rows, columns, bits; /* bits: index into the choices */

	uint32_t modules, pixels;
	uint64_t seed, period_ns;
};

static const struct sl_option options[] = {
	SL_U32(struct pattern, rows, 4, 1, 4096, "pixels", "height of a module"),
	SL_U32(struct pattern, columns, 16, 1, 4096, "pixels", "width of a module"),
	SL_CHOICE(struct pattern, bits, 16, "4|8|12|16|32",
		  "bits of a pixel; with 4 it has a byte, with 12 two"),
	SL_OPTION_END};

static const struct {
	enum sl_dtype dtype;
	uint32_t bits;
} formats[] = {{SL_U8, 4}, {SL_U8, 8}, {SL_U16, 12}, {SL_U16, 16}, {SL_U32, 32}};

static int open_pattern(void *state, const struct sl_detector_options *run,
			struct sl_geometry *geometry)
{
	struct pattern *p = state;

	p->modules = run->modules;
	p->pixels = p->rows * p->columns;
	p->seed = run->seed;
	p->period_ns = sl_detector_period_ns(run);
	*geometry = (struct sl_geometry){
		.detector = "pattern",
		.modules = p->modules,
		.rows = p->rows,
		.columns = p->columns,
		.dtype = formats[p->bits].dtype,
		.bit_depth = formats[p->bits].bits,
		.module_bytes = p->pixels * (uint64_t)sl_dtype_bytes(formats[p->bits].dtype),
	};
	return 0;
}

static void close_pattern(void *state)
{
}

/* 32-bit multiplications only, and no step that depends on the one before: compilers vectorise the
 * loops below. */
static inline uint32_t pixel(uint32_t position, uint32_t low, uint32_t high)
{
	uint32_t x = (position ^ low) * 0x85ebca6bu;

	x = ((x ^ (x >> 15)) + high) * 0xc2b2ae35u;
	return x ^ (x >> 16);
}

static int render(void *state, uint64_t frame, uint32_t module, uint32_t flags, void *buffer,
		  const void **pixels)
{
	const struct pattern *p = state;
	uint64_t key;
	uint32_t low, high, mask = UINT32_MAX >> (32 - formats[p->bits].bits);

	if (module >= p->modules)
		return -EINVAL;
	key = sl_key(sl_key(sl_key(p->seed, frame), module), flags & SL_RECORD_DARK);
	low = (uint32_t)key;
	high = (uint32_t)(key >> 32);
	switch (formats[p->bits].dtype) {
	case SL_U8:
		for (uint32_t i = 0; i < p->pixels; i++)
			((uint8_t *)buffer)[i] = (uint8_t)(pixel(i, low, high) & mask);
		break;
	case SL_U16:
		for (uint32_t i = 0; i < p->pixels; i++)
			((uint16_t *)buffer)[i] = (uint16_t)(pixel(i, low, high) & mask);
		break;
	default:
		for (uint32_t i = 0; i < p->pixels; i++)
			((uint32_t *)buffer)[i] = pixel(i, low, high);
		break;
	}
	*pixels = buffer;
	return 0;
}

static void truth(void *state, uint64_t frame, uint32_t flags, struct sl_truth *truth)
{
	*truth = (struct sl_truth){.hit = false};
}

static uint64_t timestamp(void *state, uint64_t frame)
{
	return frame * ((struct pattern *)state)->period_ns;
}

const struct sl_detector sl_detector_pattern = {
	.name = "pattern",
	.doc = "modules of any size, each pixel a hash of frame, module and position",
	.state_bytes = sizeof(struct pattern),
	.options = options,
	.open = open_pattern,
	.close = close_pattern,
	.render = render,
	.truth = truth,
	.timestamp = timestamp,
	.parallel = 1,
};
