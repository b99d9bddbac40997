/* field.c - numbers per pixel: which kind of file, raw ones, and whether they can be. */
#include "calibration/field.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"

enum { PATH_BYTES = 512 };

static uint64_t pixels_of(const struct sl_geometry *g)
{
	return g->modules * sl_geometry_pixels(g);
}

bool sl_field_is_hdf5(const char *path)
{
	static const uint8_t signature[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
	uint8_t head[sizeof(signature)];
	FILE *file = fopen(path, "rb");
	bool found;

	if (!file)
		return false;
	found = fread(head, sizeof(head), 1, file) == 1 && !memcmp(head, signature, sizeof(head));
	fclose(file);
	return found;
}

static int read_doubles(FILE *file, uint64_t pixels, float *field)
{
	for (uint64_t i = 0; i < pixels; i++) {
		double value;

		if (fread(&value, sizeof(value), 1, file) != 1)
			return -EIO;
		field[i] = (float)value;
	}
	return 0;
}

static int read_raw(const char *path, const char *what, const struct sl_geometry *g, float *field)
{
	uint64_t pixels = pixels_of(g), single = pixels * sizeof(float);
	FILE *file = fopen(path, "rb");
	struct stat st;
	int err = 0;

	if (!file || fstat(fileno(file), &st)) {
		err = -errno;
		sl_error("%s: cannot read '%s': %s", what, path, strerror(errno));
	} else if ((uint64_t)st.st_size != single && (uint64_t)st.st_size != 2 * single) {
		sl_error("%s: '%s' has %lld bytes; %u modules of %u x %u pixels are %llu as "
			 "float32, %llu as float64",
			 what, path, (long long)st.st_size, g->modules, g->rows, g->columns,
			 (unsigned long long)single, 2ull * single);
		err = -EINVAL;
	} else {
		err = (uint64_t)st.st_size == 2 * single
			      ? read_doubles(file, pixels, field)
			      : (fread(field, sizeof(float), pixels, file) == pixels ? 0 : -EIO);
		if (err)
			sl_error("%s: '%s' ends too soon", what, path);
	}
	if (file)
		fclose(file);
	return err;
}

static bool any_finite(const float *field, uint64_t pixels)
{
	for (uint64_t i = 0; i < pixels; i++)
		if (isfinite(field[i]))
			return true;
	return false;
}

/* FILE:/DATASET, unless there is a file of that name. */
static const char *split(const char *text, char *path, size_t bytes)
{
	char *colon;
	struct stat st;

	snprintf(path, bytes, "%s", text);
	colon = strstr(path, ":/");
	if (!colon || !stat(path, &st))
		return NULL;
	*colon = '\0';
	return text + (colon + 1 - path);
}

void sl_field_path(const char *text, char *path, size_t bytes)
{
	split(text, path, bytes);
}

int sl_field_read(const char *text, const char *what, const struct sl_geometry *geometry,
		  float **field)
{
	char path[PATH_BYTES];
	const char *dataset = split(text, path, sizeof(path));
	uint64_t pixels = pixels_of(geometry);
	float *numbers = malloc(pixels * sizeof(*numbers));
	int err = -ENOMEM;

	if (!numbers)
		sl_error("%s: no memory for %llu pixels", what, (unsigned long long)pixels);
	else if (sl_field_is_hdf5(path))
		err = sl_field_read_hdf5(path, dataset, what, geometry, numbers);
	else
		err = read_raw(path, what, geometry, numbers);
	if (!err && !any_finite(numbers, pixels)) {
		sl_error("%s: '%s' has not one finite number", what, text);
		err = -EINVAL;
	}
	if (err) {
		free(numbers);
		return err;
	}
	*field = numbers;
	return 0;
}
