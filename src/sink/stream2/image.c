/* image.c - assemble, convert, mask. */
#include "sink/stream2/image.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static int choose_type(struct sl_image *m, const struct sl_shape *shape)
{
	m->from = shape->dtype;
	m->dtype = shape->dtype == SL_I16 ? SL_U16 : shape->dtype;
	m->element = (uint32_t)sl_dtype_bytes(m->dtype);
	if (!shape->ragged && (m->dtype == SL_U8 || m->dtype == SL_U16 || m->dtype == SL_U32))
		return 0;
	if (shape->ragged)
		sl_error("stream2: '%s' is a list, not an image: set dataset to an image",
			 shape->name);
	else
		sl_error("stream2: '%s' is %s, and Eiger clients read uint8, uint16, uint32 and "
			 "photons of int16 only. To do: set output: photons_i16 in stage correct, "
			 "or set dataset to another result",
			 shape->name, sl_dtype_name(shape->dtype));
	return -EINVAL;
}

/* Of any rank: what precedes the columns is rows. */
static void measure_modules(struct sl_image *m, const struct sl_shape *shape)
{
	m->columns = shape->rank ? shape->dim[shape->rank - 1] : 1;
	m->rows = 1;
	for (uint32_t i = 0; i + 1 < shape->rank; i++)
		m->rows *= shape->dim[i];
}

static int measure(struct sl_image *m, const struct sl_env *env, const struct sl_shape *shape)
{
	const struct sl_geometry *g = &m->geometry;
	struct sl_mosaic check = {0};
	int err = 0;

	m->from_bytes = sl_shape_bytes(shape);
	if (m->assembled) {
		err = sl_mosaic_open(&check, env, shape, "stream2");
		m->rows = g->layout.rows;
		m->columns = g->layout.columns;
	} else {
		measure_modules(m, shape);
	}
	m->of_modules = m->assembled ||
			(!g->items && m->columns == g->columns && m->rows == g->modules * g->rows);
	m->bytes = (uint64_t)m->rows * m->columns * m->element;
	if (err || m->bytes <= UINT32_MAX / 2)
		return err;
	sl_error("stream2: an image of %u x %u pixels is too large for a message", m->rows,
		 m->columns);
	return -EINVAL;
}

static int make_mask(struct sl_image *m, const struct sl_calibration *calibration)
{
	const struct sl_mosaic mosaic = {.geometry = m->geometry};

	if (!m->of_modules)
		return 0;
	m->mask = m->assembled ? sl_mosaic_mask(&mosaic, calibration)
			       : sl_modules_mask(&m->geometry, calibration);
	return m->mask ? 0 : -ENOMEM;
}

static bool is_bad(uint32_t mask)
{
	return (mask & ~(SL_MASK_GAP | SL_MASK_VIRTUAL)) != 0;
}

static int list_bad(struct sl_image *m)
{
	uint64_t pixels = m->mask ? (uint64_t)m->rows * m->columns : 0;
	uint32_t n = 0;

	for (uint64_t i = 0; i < pixels; i++)
		n += is_bad(m->mask[i]);
	if (!n)
		return 0;
	m->bad = malloc(n * sizeof(*m->bad));
	if (!m->bad)
		return -ENOMEM;
	for (uint64_t i = 0; i < pixels; i++)
		if (is_bad(m->mask[i]))
			m->bad[m->bads++] = (uint32_t)i;
	return 0;
}

int sl_image_open(struct sl_image *m, const struct sl_env *env, const struct sl_shape *shape,
		  bool assembled)
{
	int err;

	*m = (struct sl_image){.geometry = *env->geometry, .assembled = assembled};
	sl_layout_resolve(env->geometry, &m->geometry.layout);
	err = choose_type(m, shape);
	if (!err)
		err = measure(m, env, shape);
	if (!err)
		err = make_mask(m, env->calibration);
	if (!err)
		err = list_bad(m);
	m->changes = assembled || m->bads || m->from == SL_I16;
	return err;
}

void sl_image_close(struct sl_image *m)
{
	free(m->mask);
	free(m->bad);
	m->mask = m->bad = NULL;
	m->bads = 0;
}

void sl_image_beam(const struct sl_image *m, double *row, double *column)
{
	const struct sl_layout *layout = &m->geometry.layout;

	*row = m->of_modules ? layout->beam_row : NAN;
	*column = m->of_modules ? layout->beam_column : NAN;
	if (m->of_modules && !m->assembled && isfinite(*row) && isfinite(*column))
		sl_layout_beam_in_stack(&m->geometry, row, column);
}

/* In place. -32768 has no measurement. */
static uint64_t clip(uint16_t *pixel, uint64_t pixels)
{
	const int16_t *from = (const int16_t *)pixel;
	uint64_t clipped = 0;

	/* In spans, so that the compiler counts in 32 bits. */
	for (uint64_t at = 0; at < pixels; at += 4096) {
		uint32_t in_span = 0, n = pixels - at < 4096 ? (uint32_t)(pixels - at) : 4096;

		for (uint32_t i = 0; i < n; i++) {
			int16_t value = from[at + i];
			int none = value == INT16_MIN, below = value < 0;

			in_span += (uint32_t)(below & !none);
			pixel[at + i] = (uint16_t)(none ? UINT16_MAX : below ? 0 : value);
		}
		clipped += in_span;
	}
	return clipped;
}

/* Masked pixels that are below 0 are no measurement, and so not counted. */
static uint64_t below_zero(const struct sl_image *m, const int16_t *pixel)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < m->bads; i++)
		n += pixel[m->bad[i]] < 0 && pixel[m->bad[i]] != INT16_MIN;
	return n;
}

static void set_bad(const struct sl_image *m, void *memory)
{
	for (uint32_t i = 0; i < m->bads; i++)
		memset((uint8_t *)memory + (uint64_t)m->bad[i] * m->element, 0xff, m->element);
}

/* All modules in one piece, with what marks no measurement in those that are missing. */
static void copy_modules(const struct sl_image *m, const void *result, uint64_t missing,
			 void *memory)
{
	const uint16_t none = 0x8000; /* -32768 */
	uint64_t pixels = sl_geometry_pixels(&m->geometry), bytes = pixels * m->element;

	memcpy(memory, result, m->bytes);
	for (uint32_t k = 0; m->of_modules && missing && k < m->geometry.modules; k++) {
		uint8_t *module = (uint8_t *)memory + k * bytes;

		if (!(missing >> k & 1))
			continue;
		memset(module, 0xff, bytes);
		for (uint64_t i = 0; m->from == SL_I16 && i < pixels; i++)
			memcpy(module + 2 * i, &none, sizeof(none));
	}
}

const void *sl_image_make(const struct sl_image *m, const void *result, uint64_t missing,
			  void *memory, uint64_t *clipped)
{
	const uint8_t most[4] = {0xff, 0xff, 0xff, 0xff}, least_i16[4] = {0x00, 0x80};

	if (!m->changes && !missing)
		return result;
	if (m->assembled)
		sl_layout_assemble(&m->geometry, m->element, result, missing,
				   m->from == SL_I16 ? least_i16 : most, memory);
	else
		copy_modules(m, result, missing, memory);
	if (m->from == SL_I16) {
		*clipped -= below_zero(m, memory);
		*clipped += clip(memory, (uint64_t)m->rows * m->columns);
	}
	set_bad(m, memory);
	return memory;
}
