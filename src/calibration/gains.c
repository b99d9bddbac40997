/* gains.c - gain maps as PSI gives them out: float64, three or six planes of a module.
 *
 * That files are so is in github.com/paulscherrerinstitute/jungfrau_utils (jungfrau_utils/scripts,
 * the utility that makes HDF5 of them: np.double, G0 G1 G2 and, in newer ones, HG0 HG1 HG2). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/paths.h"
#include "calibration/tables.h"

static int refuse(const char *path, const char *what)
{
	sl_error("%s: %s", path, what);
	return -EINVAL;
}

static bool is_calibration(const char *path)
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

/* whole: pixels of a plane of the file. */
static int read_planes(FILE *file, const char *path, uint64_t whole, uint32_t module,
		       struct sl_tables *t)
{
	uint64_t pixels = (uint64_t)t->rows * t->columns;
	uint64_t first = (uint64_t)t->unread_rows * t->columns;
	double *plane = malloc(whole * sizeof(*plane));
	int err = plane ? 0 : -ENOMEM;

	for (int g = 0; g < SL_GAINS && !err; g++) {
		err = sl_tables_make(t, &t->gain[g], 1);
		if (!err && fread(plane, sizeof(*plane), whole, file) != whole)
			err = refuse(path, "ends too soon");
		for (uint64_t i = 0; i < pixels && !err; i++)
			t->gain[g][module * pixels + i] = (float)plane[first + i];
	}
	free(plane);
	return err;
}

static int read_module(const char *path, uint32_t module, struct sl_tables *t)
{
	uint32_t rows = t->rows + 2 * t->unread_rows;
	uint64_t pixels = (uint64_t)rows * t->columns, plane = pixels * sizeof(double);
	FILE *file = fopen(path, "rb");
	struct stat st;
	char why[200];
	int err;

	if (!file || fstat(fileno(file), &st)) {
		err = -errno;
		sl_error("cannot read gains from '%s': %s", path, strerror(errno));
	} else if ((uint64_t)st.st_size != 3 * plane && (uint64_t)st.st_size != 6 * plane) {
		snprintf(why, sizeof(why),
			 "has %lld bytes; gains of a module of %u x %u pixels are 3 or 6 planes of "
			 "float64, %llu or %llu bytes",
			 (long long)st.st_size, rows, t->columns, 3ull * plane, 6ull * plane);
		err = refuse(path, why);
	} else {
		err = read_planes(file, path, pixels, module, t);
	}
	if (file)
		fclose(file);
	return err;
}

static int read_modules(const struct sl_paths *paths, const char *text, struct sl_tables *t)
{
	char why[160];
	int err = 0;

	if (paths->n != t->modules) {
		snprintf(why, sizeof(why),
			 "are gains of %zu modules, the detector has %u: name a file for each, in "
			 "order",
			 paths->n, t->modules);
		return refuse(text, why);
	}
	for (uint32_t m = 0; m < t->modules && !err; m++)
		err = read_module(paths->path[m], m, t);
	if (err)
		return err;
	return sl_gains_problem(t, why, sizeof(why)) ? refuse(text, why) : 0;
}

int sl_gains_read(const char *text, struct sl_tables *t)
{
	struct sl_paths paths;
	char why[600];
	int err;

	err = sl_paths_expand(text, &paths, why, sizeof(why));
	if (err) {
		sl_error("calibration.gains: %s", why);
		return err;
	}
	if (paths.n == 1 && is_calibration(paths.path[0])) {
		struct sl_tables file = *t;

		/* The gains alone: the rest of the file is not asked for. */
		memset(file.pedestal, 0, sizeof(file.pedestal));
		memset(file.rms, 0, sizeof(file.rms));
		file.mask = NULL;
		err = sl_calibration_read(paths.path[0], &file);
		memcpy(t->gain, file.gain, sizeof(t->gain));
		memset(file.gain, 0, sizeof(file.gain));
		sl_tables_free(&file);
		if (!err && !t->gain[0])
			err = refuse(text, "has no gains");
	} else {
		err = read_modules(&paths, text, t);
	}
	sl_paths_free(&paths);
	return err;
}
