/* results.c - small results of an element, as JSON: numbers, lists, profiles; no images. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "service/image/json.h"
#include "service/image/render.h"
#include "share/image.h"

enum { MOST_BYTES = 256 << 10, IMAGE_SIZE = 16 };

/* What has many rows and columns is an image, however small. */
static bool is_result(const struct sl_image_element *e, uint32_t i)
{
	const struct sl_share_array *array = &e->description.array[i];
	uint64_t rows, columns;

	if (!(e->held >> i & 1) ||
	    sl_image_element_bytes(&e->description, &e->element.note, i) > MOST_BYTES)
		return false;
	return !sl_share_picture_size(array, &rows, &columns) || rows < IMAGE_SIZE ||
	       columns < IMAGE_SIZE;
}

#define NUMBERS(type, format)                                             \
	{                                                                 \
		const type *number = data;                                \
                                                                          \
		for (uint64_t i = 0; i < n; i++)                          \
			fprintf(out, i ? "," format : format, number[i]); \
		break;                                                    \
	}
#define FLOATS(type, digits)                                                  \
	{                                                                     \
		const type *number = data;                                    \
                                                                              \
		for (uint64_t i = 0; i < n; i++) {                            \
			if (i)                                                \
				putc(',', out);                               \
			sl_image_json_number(out, (double)number[i], digits); \
		}                                                             \
		break;                                                        \
	}

static void put_numbers(FILE *out, const char *type, const void *data, uint64_t n)
{
	static const char *const types[] = {"|b1", "|u1", "|i1", "<u2", "<i2", "<u4",
					    "<i4", "<u8", "<i8", "<f4", "<f8"};
	size_t kind = 0;

	while (kind < sizeof(types) / sizeof(types[0]) && strcmp(types[kind], type) != 0)
		kind++;
	putc('[', out);
	switch (kind) {
	case 0:
	case 1:
		NUMBERS(uint8_t, "%u")
	case 2:
		NUMBERS(int8_t, "%d")
	case 3:
		NUMBERS(uint16_t, "%u")
	case 4:
		NUMBERS(int16_t, "%d")
	case 5:
		NUMBERS(uint32_t, "%" PRIu32)
	case 6:
		NUMBERS(int32_t, "%" PRId32)
	case 7:
		NUMBERS(uint64_t, "%" PRIu64)
	case 8:
		NUMBERS(int64_t, "%" PRId64)
	case 9:
		FLOATS(float, 9)
	case 10:
		FLOATS(double, 17)
	default:
		break; /* complex numbers have no word in JSON */
	}
	putc(']', out);
}

static void put_array(FILE *out, const struct sl_image_element *e, uint32_t i)
{
	const struct sl_share_array *array = &e->description.array[i];
	const void *data = sl_image_element_array(e, (int)i);
	uint64_t items = 1, bytes = sl_image_element_bytes(&e->description, &e->element.note, i);

	sl_image_json_text(out, array->name);
	fputs(":{\"type\":", out);
	sl_image_json_text(out, array->type);
	fputs(",\"unit\":", out);
	sl_image_json_text(out, array->unit);
	fputs(",\"shape\":[", out);
	for (uint32_t d = 0; d < array->rank; d++) {
		bool rows = !d && array->ragged;
		uint32_t most = array->dim[d], n = e->element.note.rows[i];

		fprintf(out, "%s%u", d ? "," : "", rows && n < most ? n : most);
		items *= most;
	}
	fputs("],\"data\":", out);
	if (data)
		put_numbers(out, array->type, data, bytes / (array->bytes / items));
	else
		fputs("null", out); /* this frame does not have it */
	putc('}', out);
}

struct sl_image_payload *sl_image_render_results(const struct sl_image_element *e)
{
	struct sl_image_payload *p = sl_image_payload_make(200, SL_IMAGE_JSON);
	const char *between = "";
	size_t unused;
	FILE *out = p ? open_memstream(&p->members, &unused) : NULL;

	if (!out) {
		sl_image_payload_release(p);
		return NULL;
	}
	p->commit_unix_ns = e->element.note.commit_unix_ns;
	p->share = e->share;
	sl_image_put_note(out, e);
	fputs(",\"arrays\":{", out);
	for (uint32_t i = 0; i < e->description.arrays; i++) {
		if (!is_result(e, i))
			continue;
		fputs(between, out);
		put_array(out, e, i);
		between = ",";
	}
	putc('}', out);
	if (!fclose(out))
		return p;
	sl_image_payload_release(p);
	return NULL;
}
