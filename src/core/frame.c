/* frame.c - names and sizes of what a frame carries. */
#include <string.h>

#include <sluice/frame.h>

static const struct {
	const char *name;
	size_t bytes;
} dtypes[] = {
	[SL_U8] = {"uint8", 1},	      [SL_U16] = {"uint16", 2}, [SL_U32] = {"uint32", 4},
	[SL_I16] = {"int16", 2},      [SL_I32] = {"int32", 4},	[SL_F32] = {"float32", 4},
	[SL_DTYPES] = {"unknown", 0}, [SL_I64] = {"int64", 8},	[SL_F64] = {"float64", 8},
};
enum { DTYPES = sizeof(dtypes) / sizeof(*dtypes) };

size_t sl_dtype_bytes(enum sl_dtype dtype)
{
	return (unsigned)dtype < DTYPES ? dtypes[dtype].bytes : 0;
}

const char *sl_dtype_name(enum sl_dtype dtype)
{
	return (unsigned)dtype < DTYPES ? dtypes[dtype].name : "unknown";
}

uint64_t sl_shape_elements(const struct sl_shape *shape)
{
	uint64_t elements = 1;

	for (uint32_t i = 0; i < shape->rank && i < SL_RANK; i++)
		elements *= shape->dim[i];
	return elements;
}

uint64_t sl_shape_bytes(const struct sl_shape *shape)
{
	return sl_shape_elements(shape) * sl_dtype_bytes(shape->dtype);
}

const char *sl_reason_name(enum sl_reason reason)
{
	static const char *const names[SL_REASONS] = {
		[SL_REASON_UNJUDGED] = "unjudged",
		[SL_REASON_DARK] = "dark",
		[SL_REASON_BRIGHT_PIXELS] = "bright_pixels",
		[SL_REASON_NO_PEDESTAL] = "no_pedestal",
		[SL_REASON_SCORE] = "score",
		[SL_REASON_SPOTS] = "spots",
		[SL_REASON_PEAKS] = "peaks",
		[SL_REASON_PRESCALED] = "prescaled",
		[SL_REASON_RINGS] = "rings",
		[SL_REASON_TRACKS] = "tracks",
	};

	return (unsigned)reason < SL_REASONS ? names[reason] : "unknown";
}

struct sl_array *sl_frame_result(struct sl_frame *frame, const char *name)
{
	for (uint32_t i = 0; i < frame->results; i++)
		if (!strcmp(frame->result[i].shape.name, name))
			return &frame->result[i];
	return NULL;
}
