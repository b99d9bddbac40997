/* whole.h - the image of a frame in one piece, [modules][rows][columns], for frame() of a stage.
 *
 * Model:     what an earlier stage made is that already. Raw pixels lie in the modules' views, with
 *            a pitch perhaps: one module without a pitch is used where it is, others are copied.
 * Ownership: the buffer is the caller's, of sl_whole_bytes(). */
#ifndef SL_STAGE_WHOLE_H
#define SL_STAGE_WHOLE_H

#include <string.h>

#include <sluice/stage.h>

/* Of the buffer that is needed; 0: none. */
static inline size_t sl_whole_bytes(const struct sl_shape *in, int input)
{
	return input == SL_STAGE_RAW ? (size_t)sl_shape_bytes(in) : 0;
}

static inline void sl_whole_copy(const struct sl_array *pixels, uint32_t rows, size_t row_bytes,
				 char *to)
{
	uint64_t pitch = pixels->pitch ? pixels->pitch : row_bytes;

	for (uint32_t r = 0; r < rows; r++)
		memcpy(to + r * row_bytes, (const char *)pixels->host + r * pitch, row_bytes);
}

/* row_bytes: of `rows` rows of a module. */
static inline const void *sl_whole_image(const struct sl_frame *frame, int input, uint32_t rows,
					 size_t row_bytes, void *buffer)
{
	if (input != SL_STAGE_RAW)
		return frame->result[input].host;
	if (frame->views == 1 && !frame->view->pixels.pitch)
		return frame->view->pixels.host;
	for (uint32_t m = 0; m < frame->views; m++)
		sl_whole_copy(&frame->view[m].pixels, rows, row_bytes,
			      (char *)buffer + m * rows * row_bytes);
	return buffer;
}

#endif
