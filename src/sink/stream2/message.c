/* message.c - fields of the messages, in the order in which DECTRIS' detectors send them. */
#include "sink/stream2/message.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/secret.h"

#define KEV_ANGSTROM 12.398419843320026 /* h c; exact in the SI since 2019 */

/* ---- series ---- */

/* Crockford's base 32: 10 characters are milliseconds, 16 are random. */
static void make_ulid(char text[SL_STREAM2_UNIQUE_BYTES])
{
	static const char digit[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	uint64_t ms = sl_clock_unix_ns() / 1000000;
	uint8_t random[16];

	sl_secret_fill(random, sizeof(random));
	for (int i = 9; i >= 0; i--, ms /= 32)
		text[i] = digit[ms % 32];
	for (int i = 0; i < 16; i++)
		text[10 + i] = digit[random[i] % 32];
	text[26] = 0;
}

/* Seconds since 1970, so that a client of several programs one after another sees ids grow, too. */
static uint64_t next_id(void)
{
	static _Atomic uint64_t last;
	uint64_t now = sl_clock_unix_ns() / 1000000000, before = atomic_load(&last), id;

	do
		id = now > before ? now : before + 1;
	while (!atomic_compare_exchange_weak(&last, &before, id));
	return id;
}

void sl_stream2_series_init(struct sl_stream2_series *series)
{
	series->id = next_id();
	make_ulid(series->unique_id);
}

/* ---- what messages share ---- */

static void text_field(struct sl_cbor *c, const char *key, const char *value)
{
	sl_cbor_text(c, key);
	sl_cbor_text(c, value);
}

static void uint_field(struct sl_cbor *c, const char *key, uint64_t value)
{
	sl_cbor_text(c, key);
	sl_cbor_uint(c, value);
}

static void float_field(struct sl_cbor *c, const char *key, double value)
{
	sl_cbor_text(c, key);
	sl_cbor_float(c, value);
}

static void date_field(struct sl_cbor *c, const char *key, const char *date)
{
	sl_cbor_text(c, key);
	sl_cbor_tag(c, SL_CBOR_DATE_TIME);
	sl_cbor_text(c, date);
}

static void time_field(struct sl_cbor *c, const char *key, uint64_t ns)
{
	sl_cbor_text(c, key);
	sl_cbor_array(c, 2);
	sl_cbor_uint(c, ns);
	sl_cbor_uint(c, SL_STREAM2_TIME_BASE_HZ);
}

static void begin(struct sl_cbor *c, const char *type, const struct sl_stream2_series *series,
		  uint64_t fields)
{
	sl_cbor_tag(c, SL_CBOR_SELF_DESCRIBED);
	sl_cbor_map(c, fields);
	text_field(c, "type", type);
	uint_field(c, "series_id", series->id);
	text_field(c, "series_unique_id", series->unique_id);
}

uint32_t sl_stream2_tag(enum sl_dtype dtype)
{
	return dtype == SL_U8	 ? SL_CBOR_U8
	       : dtype == SL_U16 ? SL_CBOR_U16
	       : dtype == SL_U32 ? SL_CBOR_U32
				 : 0;
}

/* An array of two dimensions, up to its bytes: `length` of them have to follow. */
static void array_head(struct sl_cbor *c, uint32_t rows, uint32_t columns, enum sl_dtype dtype,
		       enum sl_codec codec, uint32_t length)
{
	sl_cbor_tag(c, SL_CBOR_MULTI_DIMENSIONAL);
	sl_cbor_array(c, 2);
	sl_cbor_array(c, 2);
	sl_cbor_uint(c, rows);
	sl_cbor_uint(c, columns);
	sl_cbor_tag(c, sl_stream2_tag(dtype));
	if (codec != SL_CODEC_NONE) {
		sl_cbor_tag(c, SL_CBOR_DECTRIS_COMPRESSED);
		sl_cbor_array(c, 3);
		sl_cbor_text(c, codec == SL_CODEC_BSLZ4 ? "bslz4" : "lz4");
		sl_cbor_uint(c, codec == SL_CODEC_BSLZ4 ? sl_dtype_bytes(dtype) : 0);
	}
	sl_cbor_long_bytes(c, length);
}

/* ---- start ---- */

static void write_goniometer(struct sl_cbor *c, const struct sl_goniometer *goniometer)
{
	sl_cbor_text(c, "goniometer");
	sl_cbor_map(c, goniometer->axes);
	for (uint32_t i = 0; i < goniometer->axes; i++) {
		sl_cbor_text(c, goniometer->axis[i].name);
		sl_cbor_map(c, 2);
		float_field(c, "increment", goniometer->axis[i].increment_deg);
		float_field(c, "start", goniometer->axis[i].start_deg);
	}
}

static void write_mask(struct sl_cbor *c, const struct sl_stream2_start *s)
{
	sl_cbor_text(c, "pixel_mask");
	sl_cbor_map(c, 1);
	sl_cbor_text(c, SL_STREAM2_CHANNEL);
	array_head(c, s->rows, s->columns, SL_U32, s->codec, s->mask_bytes);
	sl_cbor_raw(c, s->mask, s->mask_bytes);
}

static void write_user_data(struct sl_cbor *c, const struct sl_stream2_start *s)
{
	sl_cbor_text(c, "user_data");
	sl_cbor_map(c, s->user_pairs);
	sl_cbor_raw(c, s->user_data, s->user_bytes);
}

/* areaDetector asks for it. The threshold of this program's detectors is not known: half of the
 * photon energy is how counting detectors are set. */
static void write_threshold(struct sl_cbor *c, double energy_eV)
{
	sl_cbor_text(c, "threshold_energy");
	sl_cbor_map(c, 1);
	float_field(c, SL_STREAM2_CHANNEL, energy_eV / 2);
}

/* From arm_date to image_size_y; returns how many fields. */
static uint64_t write_first(struct sl_cbor *c, const struct sl_stream2_start *s)
{
	bool beam = isfinite(s->beam_row) && isfinite(s->beam_column);

	date_field(c, "arm_date", s->arm_date);
	if (beam) {
		float_field(c, "beam_center_x", s->beam_column);
		float_field(c, "beam_center_y", s->beam_row);
	}
	sl_cbor_text(c, "channels");
	sl_cbor_array(c, 1);
	sl_cbor_text(c, SL_STREAM2_CHANNEL);
	float_field(c, "count_time", s->count_time_s);
	text_field(c, "detector_description", s->geometry->detector);
	sl_cbor_text(c, "detector_translation");
	sl_cbor_array(c, 3);
	sl_cbor_float(c, 0);
	sl_cbor_float(c, 0);
	sl_cbor_float(c, s->geometry->distance_m);
	float_field(c, "frame_time", s->frame_time_s);
	if (s->env->goniometer)
		write_goniometer(c, s->env->goniometer);
	text_field(c, "image_dtype", sl_dtype_name(s->dtype));
	uint_field(c, "image_size_x", s->columns);
	uint_field(c, "image_size_y", s->rows);
	return 9 + (beam ? 2 : 0) + !!s->env->goniometer;
}

/* From incident_energy to user_data. */
static uint64_t write_rest(struct sl_cbor *c, const struct sl_stream2_start *s)
{
	const struct sl_geometry *g = s->geometry;
	double keV = g->photon_energy_keV;

	if (keV > 0) {
		float_field(c, "incident_energy", keV * 1000);
		float_field(c, "incident_wavelength", KEV_ANGSTROM / keV);
	}
	if (s->env->frames)
		uint_field(c, "number_of_images", s->env->frames);
	if (s->mask)
		write_mask(c, s);
	sl_cbor_text(c, "pixel_mask_enabled");
	sl_cbor_bool(c, s->mask != NULL);
	float_field(c, "pixel_size_x", g->pixel_size_m);
	float_field(c, "pixel_size_y", g->pixel_size_m);
	uint_field(c, "saturation_value", s->saturation);
	if (g->sensor_material[0])
		text_field(c, "sensor_material", g->sensor_material);
	if (g->sensor_thickness_m > 0)
		float_field(c, "sensor_thickness", g->sensor_thickness_m);
	write_threshold(c, keV * 1000);
	if (s->user_pairs)
		write_user_data(c, s);
	return 5 + (keV > 0 ? 2 : 0) + !!s->env->frames + !!s->mask + !!g->sensor_material[0] +
	       (g->sensor_thickness_m > 0) + !!s->user_pairs;
}

size_t sl_stream2_start(const struct sl_stream2_start *start, void *memory, size_t bytes)
{
	struct sl_cbor c = sl_cbor_writer(memory, bytes), measure = sl_cbor_writer(NULL, 0);
	uint64_t fields = 3 + write_first(&measure, start) + write_rest(&measure, start);

	begin(&c, "start", start->series, fields);
	write_first(&c, start);
	write_rest(&c, start);
	return c.used;
}

/* ---- image and end ---- */

size_t sl_stream2_image_fields(const struct sl_stream2_image *image, void *memory, size_t bytes)
{
	struct sl_cbor c = sl_cbor_writer(memory, bytes);

	begin(&c, "image", image->series, 10);
	uint_field(&c, "image_id", image->id);
	time_field(&c, "real_time", image->real_ns);
	date_field(&c, "series_date", image->series_date);
	time_field(&c, "start_time", image->start_ns);
	time_field(&c, "stop_time", image->start_ns + image->real_ns);
	sl_cbor_text(&c, "user_data");
	sl_cbor_map(&c, 3);
	uint_field(&c, "frame_number", image->frame_number);
	uint_field(&c, "timestamp_ns", image->timestamp);
	uint_field(&c, "missing_modules", image->missing);
	return c.used;
}

size_t sl_stream2_data_head(uint32_t rows, uint32_t columns, enum sl_dtype dtype,
			    enum sl_codec codec, void *memory, size_t bytes)
{
	struct sl_cbor c = sl_cbor_writer(memory, bytes);

	sl_cbor_text(&c, "data");
	sl_cbor_map(&c, 1);
	sl_cbor_text(&c, SL_STREAM2_CHANNEL);
	array_head(&c, rows, columns, dtype, codec, 0);
	return c.used;
}

size_t sl_stream2_end(const struct sl_stream2_series *series, void *memory, size_t bytes)
{
	struct sl_cbor c = sl_cbor_writer(memory, bytes);

	begin(&c, "end", series, 3);
	return c.used;
}
