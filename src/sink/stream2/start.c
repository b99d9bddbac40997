/* start.c - what the start message says, out of the environment. */
#include "sink/stream2/start.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { USER_DATA_BYTES = 128 << 10 };

static uint64_t saturation(const struct sl_image *image, const struct sl_env *env)
{
	uint32_t bits = 8 * image->element, depth = env->geometry->bit_depth;

	if (image->from == SL_I16)
		return INT16_MAX - 1; /* `correct` marks an overload with 32767 */
	if (image->from == env->geometry->dtype && depth > 1 && depth <= bits &&
	    !sl_calibration_has_gains(env->calibration))
		bits = depth;
	return (UINT64_C(1) << bits) - 2;
}

static void add_pair(void *to, const char *key, const char *value)
{
	struct sl_stream2_start *start = to;
	struct sl_cbor c = sl_cbor_writer((uint8_t *)start->user_data + start->user_bytes,
					  USER_DATA_BYTES - start->user_bytes);

	sl_cbor_text(&c, key);
	sl_cbor_text(&c, value);
	if (c.used > c.bytes)
		return;
	start->user_bytes += c.used;
	start->user_pairs++;
}

static void note_exposure(void *to, const char *key, const char *value)
{
	if (!strcmp(key, "exposure_s"))
		*(double *)to = strtod(value, NULL);
}

uint64_t sl_start_exposure_ns(const struct sl_env *env, uint64_t period_ns)
{
	double exposure_s = 0;

	if (env->metadata)
		env->metadata->each(env->metadata->arg, note_exposure, &exposure_s);
	return exposure_s > 0 ? (uint64_t)llround(exposure_s * 1e9) : period_ns;
}

/* Packed like the images. */
static int pack_mask(const struct sl_image *image, struct sl_packer *packer,
		     struct sl_stream2_start *start, void **packed)
{
	const uint32_t element = sizeof(*image->mask);
	uint64_t bytes = (uint64_t)image->rows * image->columns * element;
	bool plain = start->codec == SL_CODEC_NONE;
	size_t most = plain ? bytes : sl_pack_bound(start->codec, bytes, element);
	int64_t n = (int64_t)bytes;

	if (!image->mask)
		return 0;
	start->mask = *packed = malloc(most);
	if (!*packed)
		return -ENOMEM;
	if (plain)
		memcpy(*packed, image->mask, bytes);
	else
		n = sl_pack(packer, start->codec, image->mask, bytes, element, *packed, most);
	start->mask_bytes = (uint32_t)n;
	return n > 0 && n <= UINT32_MAX ? 0 : -EINVAL;
}

int sl_start_make(const struct sl_image *image, const struct sl_env *env,
		  const struct sl_stream2_series *series, enum sl_codec codec,
		  struct sl_packer *packer, uint64_t period_ns, void **message, size_t *bytes)
{
	struct sl_stream2_start start = {
		.series = series,
		.env = env,
		.geometry = &image->geometry,
		.rows = image->rows,
		.columns = image->columns,
		.dtype = image->dtype,
		.frame_time_s = 1e-9 * (double)period_ns,
		.count_time_s = 1e-9 * (double)sl_start_exposure_ns(env, period_ns),
		.saturation = saturation(image, env),
		.codec = codec,
		.user_data = malloc(USER_DATA_BYTES)};
	void *mask = NULL;
	int err = start.user_data ? pack_mask(image, packer, &start, &mask) : -ENOMEM;

	sl_clock_iso8601(sl_clock_unix_ns(), start.arm_date, sizeof(start.arm_date));
	sl_image_beam(image, &start.beam_row, &start.beam_column);
	if (!err && env->metadata)
		env->metadata->each(env->metadata->arg, add_pair, &start);
	if (!err) {
		*bytes = sl_stream2_start(&start, NULL, 0);
		*message = malloc(*bytes);
		err = *message ? 0 : -ENOMEM;
	}
	if (!err)
		sl_stream2_start(&start, *message, *bytes);
	free(mask);
	free((void *)start.user_data);
	return err;
}
