/* save.c - arrays of an element as files: NumPy, plain bytes, pictures. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/part_file.h"
#include "base/log.h"
#include "cmd/share/follower.h"
#include "cmd/share/npy.h"
#include "picture/pixels.h"

#define PIXELS_MOST (UINT64_C(1) << 28)

static bool is_image(const struct sl_share_array *array)
{
	return array->rank >= 2 && !array->ragged;
}

int sl_array_of(const struct sl_share_description *d, const char *name)
{
	char names[SL_SHARE_ARRAYS * 34] = "";
	size_t at = 0;

	for (uint32_t i = 0; i < d->arrays; i++) {
		if (name[0] ? !strcmp(d->array[i].name, name) : is_image(&d->array[i]))
			return (int)i;
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? ", " : "",
				       d->array[i].name);
	}
	if (!name[0])
		return -1;
	sl_error("--array: the share '%s' has no '%s'; it has: %s", d->name, name, names);
	return -EINVAL;
}

static uint64_t first_dim(const struct sl_taken *t)
{
	if (!t->array->ragged)
		return t->array->dim[0];
	return t->rows < t->array->dim[0] ? t->rows : t->array->dim[0];
}

uint64_t sl_taken_bytes(const struct sl_taken *t)
{
	return t->array->ragged ? t->array->bytes / t->array->dim[0] * first_dim(t)
				: t->array->bytes;
}

void sl_taken_words(const struct sl_taken *t, char *text, size_t bytes)
{
	size_t at = 0;

	text[0] = 0;
	for (uint32_t i = 0; i < t->array->rank && at < bytes; i++)
		at += (size_t)snprintf(text + at, bytes - at, "%s%llu", i ? " x " : "",
				       (unsigned long long)(i ? t->array->dim[i] : first_dim(t)));
	if (at < bytes)
		snprintf(text + at, bytes - at, "%s%s%s%s", at ? " " : "", t->array->type,
			 t->array->unit[0] ? " " : "", t->array->unit);
}

/* ---- files ---- */

static int write_all(int fd, const void *data, uint64_t bytes)
{
	const uint8_t *at = data;

	while (bytes) {
		ssize_t n = write(fd, at, bytes < 1 << 30 ? bytes : 1 << 30);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			at += n;
			bytes -= (uint64_t)n;
		}
	}
	return 0;
}

static int save(const char *path, const void *head, size_t head_bytes, const void *data,
		uint64_t bytes)
{
	struct sl_part_file file;
	int err = sl_part_file_open_over(path, &file);

	if (err)
		return err;
	err = write_all(file.fd, head, head_bytes);
	if (!err)
		err = write_all(file.fd, data, bytes);
	if (!err)
		return sl_part_file_publish(&file);
	sl_error("cannot write '%s': %s", path, strerror(-err));
	sl_part_file_discard(&file);
	return err;
}

int sl_save_npy(const char *path, const struct sl_taken *t)
{
	struct sl_npy npy = {.rank = t->array->rank};
	char head[SL_NPY_HEADER];
	size_t bytes;

	memcpy(npy.type, t->array->type, sizeof(npy.type));
	for (uint32_t i = 0; i < npy.rank; i++)
		npy.dim[i] = i ? t->array->dim[i] : first_dim(t);
	bytes = sl_npy_write(&npy, head);
	return save(path, head, bytes, t->data, sl_taken_bytes(t));
}

int sl_save_bytes(const char *path, const void *data, uint64_t bytes)
{
	int err;

	if (strcmp(path, "-") != 0)
		return save(path, NULL, 0, data, bytes);
	fflush(stdout);
	err = write_all(STDOUT_FILENO, data, bytes);
	if (err)
		sl_error("cannot write to stdout: %s", strerror(-err));
	return err;
}

/* ---- pictures ---- */

static int to_picture(const struct sl_taken *t, struct sl_picture *p)
{
	const struct sl_share_array *array = t->array;
	const struct sl_pixels_kind *kind = sl_pixels_kind(array->type);
	uint64_t columns = array->rank ? array->dim[array->rank - 1] : 1, rows = 1;

	for (uint32_t i = 0; i + 1 < array->rank; i++)
		rows *= i ? array->dim[i] : first_dim(t);
	if (array->rank < 2 || !rows || rows > PIXELS_MOST / columns || !kind) {
		sl_error("'%s' is no picture: that has rows and columns of numbers that are not "
			 "complex; choose another --array",
			 array->name);
		return -EINVAL;
	}
	*p = (struct sl_picture){(uint32_t)rows, (uint32_t)columns,
				 malloc(rows * columns * sizeof(float))};
	if (!p->pixels) {
		sl_error("no memory for a picture of %u x %u pixels", p->rows, p->columns);
		return -ENOMEM;
	}
	sl_pixels_to_floats(kind, t->data, rows * columns, p->pixels);
	return 0;
}

int sl_save_png(const char *path, const struct sl_taken *t, const struct sl_picture_look *look,
		uint32_t bin)
{
	uint8_t palette[256][3], *index;
	struct sl_picture p;
	double range[2];
	int err = to_picture(t, &p);

	if (err)
		return err;
	sl_picture_bin(&p, bin);
	index = malloc((size_t)p.rows * p.columns);
	err = index ? sl_picture_colour(&p, look, index, range) : -ENOMEM;
	sl_picture_palette(look->colours, palette);
	if (!err)
		err = sl_png_write(path, p.rows, p.columns, index, palette);
	else
		sl_error("no memory for a picture of %u x %u pixels", p.rows, p.columns);
	free(index);
	free(p.pixels);
	return err;
}
