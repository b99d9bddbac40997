/* pixels.h - one pixel of an image, whatever its type.
 *
 * Model:     what is no measurement (bad, overload) is marked by the value: the lowest and the
 *            highest int16, NaN and infinity, the largest number of an unsigned type. A value
 *            becomes a float; counts above 2^24 are rounded.
 * Cost:      a switch, which a loop over many pixels should not have. */
#ifndef SL_STAGE_PIXELS_H
#define SL_STAGE_PIXELS_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/frame.h>

static inline bool sl_pixel_valid_u8(uint8_t v)
{
	return v != UINT8_MAX;
}

static inline bool sl_pixel_valid_u16(uint16_t v)
{
	return v != UINT16_MAX;
}

static inline bool sl_pixel_valid_u32(uint32_t v)
{
	return v != UINT32_MAX;
}

static inline bool sl_pixel_valid_i16(int16_t v)
{
	return v != INT16_MIN && v != INT16_MAX;
}

static inline bool sl_pixel_valid_f32(float v)
{
	return v - v == 0;
}

/* False: it is no measurement. */
static inline bool sl_pixel_read(enum sl_dtype dtype, const void *image, uint64_t at, float *value)
{
	switch (dtype) {
	case SL_U8:
		*value = ((const uint8_t *)image)[at];
		return sl_pixel_valid_u8(((const uint8_t *)image)[at]);
	case SL_U16:
		*value = ((const uint16_t *)image)[at];
		return sl_pixel_valid_u16(((const uint16_t *)image)[at]);
	case SL_U32:
		*value = (float)((const uint32_t *)image)[at];
		return sl_pixel_valid_u32(((const uint32_t *)image)[at]);
	case SL_I16:
		*value = ((const int16_t *)image)[at];
		return sl_pixel_valid_i16(((const int16_t *)image)[at]);
	default:
		*value = ((const float *)image)[at];
		return sl_pixel_valid_f32(*value);
	}
}

#endif
