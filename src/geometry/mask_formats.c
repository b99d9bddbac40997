/* mask_formats.c - masks in npy, TIFF and EDF files. Bytes of strangers: every length is
 * checked. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "geometry/mask.h"

static int refuse(char why[SL_MASK_WHY], const char *text)
{
	snprintf(why, SL_MASK_WHY, "%s", text);
	return -EINVAL;
}

static void fill(const struct sl_mask_numbers *numbers, const uint8_t *at, uint64_t count,
		 uint32_t *out)
{
	for (uint64_t i = 0; i < count; i++)
		out[i] = sl_mask_number(numbers, at + i * numbers->size);
}

static uint64_t count_of(const struct sl_mask_image *image)
{
	uint64_t count = 1;

	for (uint32_t i = 0; i < image->rank; i++)
		count *= image->dim[i];
	return count;
}

/* ---- npy ---- */

/* The value of a key in the header's dictionary, or NULL. */
static const char *npy_value(const char *header, const char *key)
{
	const char *at = strstr(header, key);

	if (!at)
		return NULL;
	for (at += strlen(key); *at == '\'' || *at == '"' || *at == ':' || *at == ' ';)
		at++;
	return at;
}

static int npy_numbers(const char *header, struct sl_mask_numbers *numbers)
{
	/* The value has quotes of its own, which npy_value() has skipped. */
	const char *at = npy_value(header, "descr");
	char *end;

	if (!at || !strchr("<>|=", *at) || !strchr("biuf", at[1]) || !at[1])
		return -EINVAL;
	*numbers = (struct sl_mask_numbers){
		.big_endian = *at == '>', .real = at[1] == 'f', .has_sign = at[1] == 'i'};
	numbers->size = (uint32_t)strtoul(at + 2, &end, 10);
	return numbers->size == 1 || numbers->size == 2 || numbers->size == 4 || numbers->size == 8
		       ? 0
		       : -EINVAL;
}

static int npy_shape(const char *header, struct sl_mask_image *image)
{
	const char *at = npy_value(header, "shape");

	if (!at || *at != '(')
		return -EINVAL;
	at++;
	while (*at && *at != ')') {
		char *end;
		unsigned long long side = strtoull(at, &end, 10);

		if (end == at || image->rank == 3 || !isdigit((unsigned char)*at))
			return -EINVAL;
		image->dim[image->rank++] = side;
		for (at = end; *at == ',' || *at == ' ';)
			at++;
	}
	return *at == ')' ? 0 : -EINVAL;
}

/* Columns first: the slowest dimension is the last. */
static void fill_fortran(const struct sl_mask_numbers *n, const uint8_t *at,
			 struct sl_mask_image *image)
{
	uint64_t count = count_of(image), dim[3], index[3] = {0, 0, 0};

	memcpy(dim, image->dim, sizeof(dim));
	for (uint64_t i = 0; i < count; i++) {
		uint64_t to = 0;

		for (uint32_t k = 0; k < image->rank; k++)
			to = to * dim[k] + index[k];
		image->pixel[to] = sl_mask_number(n, at + i * n->size);
		for (uint32_t k = 0; k < image->rank && ++index[k] == dim[k]; k++)
			index[k] = 0;
	}
}

int sl_mask_parse_npy(const uint8_t *data, size_t bytes, struct sl_mask_image *image,
		      char why[SL_MASK_WHY])
{
	struct sl_mask_numbers numbers;
	size_t before = bytes > 6 && data[6] >= 2 ? 12 : 10, length = 0;
	const char *order;
	char header[1024];
	int err;

	if (bytes < before || data[6] < 1 || data[6] > 3)
		return refuse(why, "its header is cut off, or of an unknown version");
	for (size_t i = before; i-- > 8;)
		length = length << 8 | data[i];
	if (length > bytes - before || length >= sizeof(header))
		return refuse(why, "its header is cut off, or too long");
	memcpy(header, data + before, length);
	header[length] = 0;
	if (npy_numbers(header, &numbers))
		return refuse(why, "its numbers must be booleans, integers or floats");
	if (npy_shape(header, image))
		return refuse(why, "its shape is none of two or three dimensions");
	data += before + length;
	bytes -= before + length;
	err = sl_mask_allocate(image, numbers.size, bytes, why);
	if (err)
		return err;
	order = npy_value(header, "fortran_order");
	if (order && *order == 'T')
		fill_fortran(&numbers, data, image);
	else
		fill(&numbers, data, count_of(image), image->pixel);
	return 0;
}

/* ---- TIFF ---- */

struct tiff {
	const uint8_t *data;
	size_t bytes;
	bool big_endian;
	uint64_t width, height, bits, compression, samples, format, rows_per_strip;
	size_t offsets, counts; /* where the lists of strips are */
	uint32_t strips, counted, offset_size, count_size;
};

static uint64_t tiff_number(const struct tiff *t, size_t at, uint32_t size)
{
	uint64_t value = 0;

	if (at > t->bytes || size > t->bytes - at)
		return 0;
	for (uint32_t i = 0; i < size; i++)
		value = value << 8 | t->data[at + (t->big_endian ? i : size - 1 - i)];
	return value;
}

static void tiff_tag(struct tiff *t, size_t at)
{
	uint32_t tag = (uint32_t)tiff_number(t, at, 2), type = (uint32_t)tiff_number(t, at + 2, 2);
	uint32_t count = (uint32_t)tiff_number(t, at + 4, 4);
	uint32_t size = type == 3 ? 2 : type == 4 ? 4 : 1;
	size_t values = (uint64_t)count * size <= 4 ? at + 8 : (size_t)tiff_number(t, at + 8, 4);
	uint64_t first = tiff_number(t, values, size);

	switch (tag) {
	case 256:
		t->width = first;
		break;
	case 257:
		t->height = first;
		break;
	case 258:
		t->bits = first;
		break;
	case 259:
		t->compression = first;
		break;
	case 273:
		t->offsets = values;
		t->strips = count;
		t->offset_size = size;
		break;
	case 277:
		t->samples = first;
		break;
	case 278:
		t->rows_per_strip = first;
		break;
	case 279:
		t->counts = values;
		t->counted = count;
		t->count_size = size;
		break;
	case 339:
		t->format = first;
		break;
	default:
		break;
	}
}

static int tiff_strips(const struct tiff *t, const struct sl_mask_numbers *n,
		       struct sl_mask_image *image, char why[SL_MASK_WHY])
{
	uint64_t line = t->width * n->size, row = 0;

	for (uint32_t s = 0; s < t->strips && row < t->height; s++) {
		size_t at = (size_t)tiff_number(t, t->offsets + (size_t)s * t->offset_size,
						t->offset_size);
		uint64_t rows = t->height - row < t->rows_per_strip ? t->height - row
								    : t->rows_per_strip;

		if (at > t->bytes || rows * line > t->bytes - at)
			return refuse(why, "a strip of it is beyond the end of the file");
		fill(n, t->data + at, rows * t->width, image->pixel + row * t->width);
		row += rows;
	}
	return row == t->height ? 0 : refuse(why, "rows of it are missing");
}

int sl_mask_parse_tiff(const uint8_t *data, size_t bytes, struct sl_mask_image *image,
		       char why[SL_MASK_WHY])
{
	struct tiff t = {.data = data,
			 .bytes = bytes,
			 .big_endian = data[0] == 'M',
			 .bits = 1,
			 .compression = 1,
			 .samples = 1,
			 .format = 1};
	struct sl_mask_numbers numbers;
	size_t at = (size_t)tiff_number(&t, 4, 4);
	uint64_t tags = tiff_number(&t, at, 2);
	int err;

	for (uint64_t i = 0; i < tags && at + 2 + i * 12 + 12 <= bytes; i++)
		tiff_tag(&t, at + 2 + (size_t)i * 12);
	if (t.compression != 1)
		return refuse(why, "it is compressed: write it without");
	if (t.samples != 1 || (t.bits != 8 && t.bits != 16 && t.bits != 32 && t.bits != 64))
		return refuse(why, "its pixels must be one number of 8, 16, 32 or 64 bits");
	t.rows_per_strip = t.rows_per_strip ? t.rows_per_strip : t.height;
	numbers = (struct sl_mask_numbers){(uint32_t)t.bits / 8, t.format == 3, t.big_endian,
					   t.format == 2};
	*image = (struct sl_mask_image){.rank = 2, .dim = {t.height, t.width}};
	err = sl_mask_allocate(image, numbers.size, bytes, why);
	return err ? err : tiff_strips(&t, &numbers, image, why);
}

/* ---- EDF ---- */

/* The value of a key of the header ("key = value ;"), in small letters or not. */
static bool edf_value(const char *header, const char *key, char *value, size_t bytes)
{
	size_t length = strlen(key);

	for (const char *at = header; *at; at += *at != 0) {
		const char *begin = at;

		while (isspace((unsigned char)*begin) || *begin == '{')
			begin++;
		at = begin + strcspn(begin, ";");
		if (strncasecmp(begin, key, length) != 0)
			continue;
		begin += length + strspn(begin + length, " \t");
		if (*begin != '=')
			continue;
		begin += 1 + strspn(begin + 1, " \t");
		snprintf(value, bytes, "%.*s", (int)(at - begin < 60 ? at - begin : 60), begin);
		length = strlen(value);
		while (length && isspace((unsigned char)value[length - 1]))
			value[--length] = 0;
		return true;
	}
	return false;
}

static int edf_numbers(const char *header, struct sl_mask_numbers *n, char why[SL_MASK_WHY])
{
	static const struct {
		const char *name;
		uint32_t size;
		bool real;
	} types[] = {{"UnsignedByte", 1, false},
		     {"SignedByte", 1, false},
		     {"UnsignedShort", 2, false},
		     {"SignedShort", 2, false},
		     {"UnsignedInteger", 4, false},
		     {"SignedInteger", 4, false},
		     {"UnsignedLong", 4, false},
		     {"SignedLong", 4, false},
		     {"Unsigned64", 8, false},
		     {"Signed64", 8, false},
		     {"FloatValue", 4, true},
		     {"Float", 4, true},
		     {"Real", 4, true},
		     {"DoubleValue", 8, true},
		     {"Double", 8, true}};
	char value[64];

	if (edf_value(header, "Compression", value, sizeof(value)) &&
	    strcasecmp(value, "none") != 0 && value[0])
		return refuse(why, "it is compressed: write it without");
	n->big_endian = edf_value(header, "ByteOrder", value, sizeof(value)) &&
			!strcasecmp(value, "HighByteFirst");
	if (!edf_value(header, "DataType", value, sizeof(value)))
		return refuse(why, "its header has no DataType");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcasecmp(value, types[i].name)) {
			n->size = types[i].size;
			n->real = types[i].real;
			n->has_sign = types[i].name[0] == 'S';
			return 0;
		}
	snprintf(why, SL_MASK_WHY, "its DataType '%.40s' is not known", value);
	return -EINVAL;
}

/* Headers fill blocks of 512 bytes, and end with a brace and a line's end. */
static size_t edf_header_bytes(const uint8_t *data, size_t bytes)
{
	size_t first = 0;

	for (size_t i = 0; i + 1 < bytes && i < (1 << 20); i++) {
		if (data[i] != '}' || data[i + 1] != '\n')
			continue;
		first = first ? first : i + 2;
		if ((i + 2) % 512 == 0)
			return i + 2;
	}
	return first;
}

int sl_mask_parse_edf(const uint8_t *data, size_t bytes, struct sl_mask_image *image,
		      char why[SL_MASK_WHY])
{
	size_t header_bytes = edf_header_bytes(data, bytes);
	struct sl_mask_numbers numbers = {.size = 0};
	char *header = header_bytes ? malloc(header_bytes + 1) : NULL, value[64];
	int err;

	if (!header)
		return refuse(why, "its header does not end");
	memcpy(header, data, header_bytes);
	header[header_bytes] = 0;
	image->rank = 2;
	err = edf_numbers(header, &numbers, why);
	for (int i = 0; i < 2 && !err; i++) {
		if (!edf_value(header, i ? "Dim_1" : "Dim_2", value, sizeof(value)))
			err = refuse(why, "its header has no Dim_1 and Dim_2");
		else
			image->dim[i] = strtoull(value, NULL, 10);
	}
	if (!err && edf_value(header, "Dim_3", value, sizeof(value)) && strcmp(value, "1") != 0) {
		image->rank = 3;
		image->dim[2] = image->dim[1];
		image->dim[1] = image->dim[0];
		image->dim[0] = strtoull(value, NULL, 10);
	}
	free(header);
	if (!err)
		err = sl_mask_allocate(image, numbers.size, bytes - header_bytes, why);
	if (!err)
		fill(&numbers, data + header_bytes, count_of(image), image->pixel);
	return err;
}
