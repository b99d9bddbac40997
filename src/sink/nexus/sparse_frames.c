/* sparse_frames.c - /entry/sparse_frames. Names and meaning are those of pyFAI 0.21 (pyFAI
 * .io.sparse_frame) and fabio (fabio.sparseimage), but for frame_ptr, which has 64 bits here: a run
 * has more pixels than 32 bits count. Modules lie one below the other. */
#include "sink/nexus/sparse_frames.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sink/nexus/account.h"
#include "sink/nexus/nxmx.h"

#define GROUP	"/entry/sparse_frames"
#define RESULTS "/entry/results"

/* Without a background there are two places to interpolate zeros between. */
enum { NO_BINS = 2 };

static int find(const struct sl_env *env, const char *name)
{
	for (uint32_t i = 0; i < env->results; i++)
		if (!strcmp(env->result[i].name, name))
			return (int)i;
	return -1;
}

static const struct sl_constant *constant(const struct sl_env *env, const char *name)
{
	for (uint32_t i = 0; i < env->constants; i++)
		if (!strcmp(env->constant[i].shape.name, name))
			return &env->constant[i];
	return NULL;
}

bool sl_sparse_frames_are(const struct sl_env *env)
{
	return find(env, "sparse_index") >= 0 && find(env, "sparse_value") >= 0;
}

/* What stands for a pixel that is not known: as the stages mark bad ones. */
static void write_dummy(struct sl_h5 *file, enum sl_dtype dtype)
{
	const struct sl_h5_shape shape = {.type = sl_nxmx_type(dtype)};
	const int16_t bad_i16 = INT16_MIN;
	const float bad_f32 = NAN;
	const uint32_t bad = UINT32_MAX;

	sl_h5_write(file, GROUP "/dummy", &shape,
		    dtype == SL_I16   ? (const void *)&bad_i16
		    : dtype == SL_F32 ? (const void *)&bad_f32
				      : &bad);
}

static int write_mask(struct sl_h5 *file, const struct sl_env *env)
{
	const struct sl_geometry *g = env->geometry;
	const struct sl_h5_shape shape = {
		SL_H5_F32, 2, {(uint64_t)g->modules * g->rows, g->columns}};
	const struct sl_constant *made = constant(env, "sparse_mask");
	uint64_t pixels = g->modules * sl_geometry_pixels(g);
	const uint8_t *masked = env->calibration ? env->calibration->mask : NULL;
	float *mask;

	if (made) {
		sl_h5_write(file, GROUP "/mask", &shape, made->data);
		return 0;
	}
	mask = malloc(pixels * sizeof(*mask));
	if (!mask)
		return -ENOMEM;
	for (uint64_t i = 0; i < pixels; i++)
		mask[i] = masked && masked[i] ? NAN : 0;
	sl_h5_write(file, GROUP "/mask", &shape, mask);
	free(mask);
	return 0;
}

/* fabio multiplies by it, which is a waste of time with ones. */
static void write_norms(struct sl_h5 *file, const struct sl_env *env)
{
	const struct sl_constant *made = constant(env, "sparse_normalization");
	uint64_t pixels = made ? sl_shape_elements(&made->shape) : 0, i = 0;
	const struct sl_h5_shape shape = {
		SL_H5_F32,
		2,
		{(uint64_t)env->geometry->modules * env->geometry->rows, env->geometry->columns}};

	while (i < pixels &&
	       (((const float *)made->data)[i] == 1 || ((const float *)made->data)[i] == 0))
		i++;
	if (i < pixels)
		sl_h5_write(file, GROUP "/normalization", &shape, made->data);
}

static void write_radius(struct sl_h5 *file, const struct sl_env *env)
{
	static const float places[NO_BINS] = {0, 1};
	const struct sl_constant *made = constant(env, "sparse_radius");
	const struct sl_h5_shape shape = {
		SL_H5_F32, 1, {made ? sl_shape_elements(&made->shape) : NO_BINS}};

	sl_h5_write(file, GROUP "/radius", &shape, made ? made->data : places);
	sl_h5_attribute_text(file, GROUP "/radius", "interpretation", "spectrum");
	sl_h5_attribute_text(file, GROUP "/mask", "interpretation", "image");
}

static void open_background(struct sl_sparse_frames *frames, struct sl_h5 *file,
			    const struct sl_env *env)
{
	const struct sl_h5_shape zeros = {SL_H5_F32, 1, {NO_BINS}};

	if (find(env, "sparse_background") >= 0) {
		sl_h5_link(file, GROUP "/background_avg", RESULTS "/sparse_background");
		sl_h5_link(file, GROUP "/background_std", RESULTS "/sparse_deviation");
		return;
	}
	sl_h5_series_open(file, GROUP "/background_avg", &zeros, SL_ACCOUNT_ROWS, &frames->average);
	sl_h5_series_open(file, GROUP "/background_std", &zeros, SL_ACCOUNT_ROWS,
			  &frames->deviation);
}

int sl_sparse_frames_open(struct sl_sparse_frames *frames, struct sl_h5 *file,
			  const struct sl_env *env)
{
	const struct sl_h5_shape pointer = {.type = SL_H5_U64};
	int r;

	*frames = (struct sl_sparse_frames){.total = 0};
	if (!sl_sparse_frames_are(env))
		return 0;
	frames->result = (uint32_t)find(env, "sparse_index");
	sl_h5_group(file, GROUP, "NXdata");
	sl_h5_attribute_text(file, GROUP, "signal", "background_avg");
	sl_h5_link(file, GROUP "/index", RESULTS "/sparse_index");
	sl_h5_link(file, GROUP "/intensity", RESULTS "/sparse_value");
	sl_h5_link(file, GROUP "/found", RESULTS "/sparse_found");
	write_dummy(file, env->result[find(env, "sparse_value")].dtype);
	r = write_mask(file, env);
	write_norms(file, env);
	write_radius(file, env);
	open_background(frames, file, env);
	sl_h5_series_open(file, GROUP "/frame_ptr", &pointer, SL_ACCOUNT_ROWS, &frames->pointer);
	if (frames->pointer)
		sl_h5_series_append(frames->pointer, &frames->total);
	return r;
}

void sl_sparse_frames_append(struct sl_sparse_frames *frames, const struct sl_frame *frame)
{
	static const float zeros[NO_BINS];

	if (!frames->pointer)
		return;
	frames->total += frame->result[frames->result].rows;
	sl_h5_series_append(frames->pointer, &frames->total);
	if (frames->average) {
		sl_h5_series_append(frames->average, zeros);
		sl_h5_series_append(frames->deviation, zeros);
	}
}
