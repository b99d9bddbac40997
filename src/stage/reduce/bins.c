/* bins.c - N x N pixels of a module become one, and windows of frames one image.
 *
 * The last row or column of bins of a module has fewer pixels where N does not divide its size. Bad
 * pixels are left out; a bin that has no others is bad (INT32_MIN or INT64_MIN, NaN), and one with
 * an overload is an overload (INT32_MAX or INT64_MAX, infinity). Sums of pixels of up to 16 bits
 * are int32 (int64 from bin: 182 on), those of uint32 int64, of floats float32; means are float32.
 *
 * A window is so many kept frames that follow each other: their sum (int64, float64) and maximum.
 * A bin that is no measurement in one of them is none in the window. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "stage/reduce/reduce.h"

enum { STATISTICS, BINNED, WINDOW_SUM, WINDOW_MOST }; /* the stage's results */

/* Of one bin so far. */
struct bin {
	int64_t whole;
	double real;
	uint32_t valid;
	bool overload;
};

/* Pixels of a row that are in one bin, for each type. */
#define ADD(TYPE, NAME, BAD, OVERLOAD)                                              \
	static void add_##NAME(const void *pixels, uint32_t count, struct bin *bin) \
	{                                                                           \
		const TYPE *pixel = pixels;                                         \
		int64_t whole = 0;                                                  \
		uint32_t valid = 0, over = 0;                                       \
                                                                                    \
		for (uint32_t i = 0; i < count; i++) {                              \
			TYPE v = pixel[i];                                          \
                                                                                    \
			valid += v != (BAD);                                        \
			over += (OVERLOAD);                                         \
			whole += v != (BAD) ? v : 0;                                \
		}                                                                   \
		bin->whole += whole;                                                \
		bin->valid += valid;                                                \
		bin->overload |= over > 0;                                          \
	}

ADD(uint8_t, u8, UINT8_MAX, 0)
ADD(uint16_t, u16, UINT16_MAX, 0)
ADD(uint32_t, u32, UINT32_MAX, 0)
ADD(int16_t, i16, INT16_MIN, v == INT16_MAX)

static void add_f32(const void *pixels, uint32_t count, struct bin *bin)
{
	const float *pixel = pixels;

	for (uint32_t i = 0; i < count; i++) {
		bin->overload |= pixel[i] == INFINITY;
		bin->valid += pixel[i] > -INFINITY;
		bin->real += pixel[i] > -INFINITY ? (double)pixel[i] : 0;
	}
}

typedef void add_row(const void *pixels, uint32_t count, struct bin *bin);

static add_row *const add[SL_DTYPES] = {[SL_U8] = add_u8,
					[SL_U16] = add_u16,
					[SL_U32] = add_u32,
					[SL_I16] = add_i16,
					[SL_F32] = add_f32};

static void store(const struct sl_reduce *r, const struct bin *bin, void *to, uint64_t i)
{
	bool real = r->dtype == SL_F32, bad = !bin->valid, over = bin->overload;
	double sum = real ? bin->real : (double)bin->whole;

	switch (r->bin_dtype) {
	case SL_I32:
		((int32_t *)to)[i] = bad ? INT32_MIN : over ? INT32_MAX : (int32_t)bin->whole;
		break;
	case SL_I64:
		((int64_t *)to)[i] = bad ? INT64_MIN : over ? INT64_MAX : bin->whole;
		break;
	default:
		if (r->binned == SL_REDUCE_MEAN)
			sum /= bin->valid ? bin->valid : 1;
		((float *)to)[i] = bad ? NAN : over ? INFINITY : (float)sum;
	}
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void bin_module(const struct sl_reduce *r, const char *pixels, uint64_t pitch, void *to,
		       uint64_t at)
{
	size_t bytes = sl_dtype_bytes(r->dtype);

	for (uint32_t y = 0; y < r->bin_rows; y++)
		for (uint32_t x = 0; x < r->bin_columns; x++) {
			uint32_t last = least((y + 1) * r->bin, r->rows);
			uint32_t first = x * r->bin, count = least(r->bin, r->columns - first);
			struct bin bin = {0};

			for (uint32_t row = y * r->bin; row < last; row++)
				add[r->dtype](pixels + row * pitch + first * bytes, count, &bin);
			store(r, &bin, to, at++);
		}
}

void sl_reduce_bins_frame(const struct sl_reduce *r, const struct sl_frame *frame)
{
	uint64_t row_bytes = r->columns * sl_dtype_bytes(r->dtype);
	void *to = frame->result[r->result + BINNED].host;

	for (uint32_t m = 0; m < r->modules; m++) {
		uint64_t at = (uint64_t)m * r->bin_rows * r->bin_columns;

		if (r->input == SL_STAGE_RAW) {
			const struct sl_array *raw = &frame->view[m].pixels;

			bin_module(r, raw->host, raw->pitch ? raw->pitch : row_bytes, to, at);
		} else {
			bin_module(r,
				   (const char *)frame->result[r->input].host +
					   m * r->rows * row_bytes,
				   row_bytes, to, at);
		}
	}
}

/* ---- windows ---- */

void sl_reduce_window_begin(struct sl_reduce *r)
{
	r->window_frames = 0;
	memset(r->window_sum, 0, r->bins * 8);
}

static void widen_whole(struct sl_reduce *r, uint64_t i, int64_t v, int64_t bad, int64_t over)
{
	int64_t *sum = (int64_t *)r->window_sum + i, *most = (int64_t *)r->window_most + i;

	if (!r->window_frames || v > *most)
		*most = v;
	if (*sum == INT64_MIN || v == bad)
		*sum = *most = INT64_MIN;
	else if (*sum == INT64_MAX || v == over)
		*sum = *most = INT64_MAX;
	else
		*sum += v;
}

static void widen_real(struct sl_reduce *r, uint64_t i, float v)
{
	double *sum = (double *)r->window_sum + i, *most = (double *)r->window_most + i;

	*sum += v; /* NaN and infinity stay */
	if (!r->window_frames || !(v <= *most))
		*most = isnan(*sum) ? NAN : v;
}

static void widen(struct sl_reduce *r, const void *binned)
{
	for (uint64_t i = 0; i < r->bins; i++)
		if (r->bin_dtype == SL_I32)
			widen_whole(r, i, ((const int32_t *)binned)[i], INT32_MIN, INT32_MAX);
		else if (r->bin_dtype == SL_I64)
			widen_whole(r, i, ((const int64_t *)binned)[i], INT64_MIN, INT64_MAX);
		else
			widen_real(r, i, ((const float *)binned)[i]);
	r->window_frames++;
}

/* The note is the rows of the sum, which nobody has looked at yet. */
void sl_reduce_bins_judge(const struct sl_reduce *r, struct sl_frame *frame)
{
	if (r->window)
		frame->result[r->result + WINDOW_SUM].rows = !(frame->flags & SL_FRAME_DARK) &&
							     sl_frame_is_kept(frame);
}

void sl_reduce_bins_window(struct sl_reduce *r, struct sl_frame *frame)
{
	struct sl_array *sum = &frame->result[r->result + WINDOW_SUM];
	struct sl_array *most = &frame->result[r->result + WINDOW_MOST];

	bool counts;

	if (!r->window)
		return;
	counts = sum->rows;
	sum->rows = most->rows = 0;
	if (!counts)
		return;
	widen(r, frame->result[r->result + BINNED].host);
	if (r->window_frames < r->window)
		return;
	memcpy(sum->host, r->window_sum, r->bins * 8);
	memcpy(most->host, r->window_most, r->bins * 8);
	sum->rows = most->rows = 1;
	sl_reduce_window_begin(r);
}

/* ---- open ---- */

static void describe(struct sl_reduce *r, struct sl_stage_terms *terms)
{
	enum sl_dtype wide = r->bin_dtype == SL_F32 ? SL_F64 : SL_I64;
	struct sl_shape window = {.dtype = wide,
				  .rank = 4,
				  .dim = {1, r->modules, r->bin_rows, r->bin_columns},
				  .ragged = 1};

	terms->output[BINNED] = (struct sl_shape){.name = "binned",
						  .dtype = r->bin_dtype,
						  .rank = 3,
						  .dim = {r->modules, r->bin_rows, r->bin_columns}};
	terms->outputs = BINNED + 1;
	if (!r->window)
		return;
	terms->output[WINDOW_SUM] = terms->output[WINDOW_MOST] = window;
	strcpy(terms->output[WINDOW_SUM].name, "window_sum");
	strcpy(terms->output[WINDOW_MOST].name, "window_max");
	terms->outputs = WINDOW_MOST + 1;
}

/* Sums of a bin, and the two numbers that mark what is none. */
static bool fits_32_bits(const struct sl_reduce *r)
{
	uint64_t pixels = (uint64_t)r->bin * r->bin;

	return r->dtype != SL_U32 && pixels * UINT16_MAX < INT32_MAX;
}

int sl_reduce_bins_open(struct sl_reduce *r, struct sl_stage_terms *terms)
{
	r->bin_dtype = r->dtype == SL_F32 || r->binned == SL_REDUCE_MEAN ? SL_F32
		       : fits_32_bits(r)				 ? SL_I32
									 : SL_I64;
	r->bin_rows = (r->rows + r->bin - 1) / r->bin;
	r->bin_columns = (r->columns + r->bin - 1) / r->bin;
	r->bins = (uint64_t)r->modules * r->bin_rows * r->bin_columns;
	describe(r, terms);
	if (!r->window)
		return 0;
	r->window_sum = calloc(r->bins, 8);
	r->window_most = calloc(r->bins, 8);
	if (!r->window_sum || !r->window_most) {
		sl_error("reduce: no memory for windows");
		return -ENOMEM;
	}
	sl_reduce_window_begin(r);
	return 0;
}

void sl_reduce_bins_close(struct sl_reduce *r)
{
	free(r->window_sum);
	free(r->window_most);
	r->window_sum = r->window_most = NULL;
}
