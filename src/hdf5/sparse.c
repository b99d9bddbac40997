/* sparse.c - sparse frames become images again. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "hdf5/handle.h"
#include "hdf5/sparse.h"

enum { PATH = 256, NAME = 64 };

/* A file that says more is damaged, and not worth the memory. */
#define FRAMES_MOST (UINT64_C(1) << 27)
#define BINS_MOST   (UINT64_C(1) << 20)

struct sl_h5_sparse {
	struct sl_h5 *file;
	char group[PATH];
	struct sl_h5_shape image, list; /* list: of all frames */
	uint64_t images, bins, pixels;
	uint32_t modules; /* that frames may miss; 0: nothing is known of that */
	uint64_t *pointer, *missing;
	float *mask, *norm, *radius, *average;
	double *place; /* [pixels]: bin and part of the way to the next; NaN: masked */
	uint32_t *found, *index;
	void *value;
	uint64_t dummy; /* its bytes */
};

static int refuse(const struct sl_h5_sparse *s, const char *what, const char *why)
{
	sl_error("%s: %s: %s", s->file->path, what, why);
	return -EINVAL;
}

static void path_of(const struct sl_h5_sparse *s, const char *name, char *path, size_t bytes)
{
	snprintf(path, bytes, "%s/%s", s->group, name);
}

/* The shape of a dataset of the group, which must have that rank. */
static int describe(struct sl_h5_sparse *s, const char *name, uint32_t rank,
		    struct sl_h5_shape *shape)
{
	char path[PATH + NAME];
	int r;

	path_of(s, name, path, sizeof(path));
	r = sl_h5_describe(s->file, path, shape);
	if (r == -ENOENT)
		return refuse(s, path,
			      "is not there: these are no sparse frames as pyFAI or sluice write "
			      "them");
	if (r)
		return r;
	return shape->rank == rank && shape->type != SL_H5_TEXT
		       ? 0
		       : refuse(s, path, "has not the dimensions of sparse frames");
}

/* The whole dataset, of that many elements. */
static int load(struct sl_h5_sparse *s, const char *name, enum sl_h5_type type, uint64_t count,
		void **data)
{
	uint64_t bytes = count * sl_h5_type_bytes(type);
	char path[PATH + NAME];

	path_of(s, name, path, sizeof(path));
	*data = malloc(bytes ? bytes : 1);
	if (!*data) {
		sl_error("%s: %s: no memory for %" PRIu64 " bytes", s->file->path, path, bytes);
		return -ENOMEM;
	}
	return sl_h5_read(s->file, path, type, *data, bytes);
}

/* ---- what there is ---- */

/* The default of the default, where it has frames. */
static void find_group(struct sl_h5_sparse *s)
{
	char entry[96] = "", group[128] = "", path[PATH + NAME];
	struct sl_h5_shape shape;

	snprintf(s->group, sizeof(s->group), "/entry/sparse_frames");
	if (sl_h5_read_attribute_text(s->file, "/", "default", entry, sizeof(entry)))
		return;
	snprintf(path, sizeof(path), "%s%s", entry[0] == '/' ? "" : "/", entry);
	if (sl_h5_read_attribute_text(s->file, path, "default", group, sizeof(group)))
		return;
	if (group[0] == '/')
		snprintf(s->group, sizeof(s->group), "%s", group);
	else
		snprintf(s->group, sizeof(s->group), "%s%s/%s", entry[0] == '/' ? "" : "/", entry,
			 group);
	snprintf(path, sizeof(path), "%s/frame_ptr", s->group);
	if (sl_h5_describe(s->file, path, &shape))
		snprintf(s->group, sizeof(s->group), "/entry/sparse_frames");
}

static int measure_image(struct sl_h5_sparse *s)
{
	struct sl_h5_shape mask, radius, intensity;
	int r = describe(s, "mask", 2, &mask);

	r = r ? r : describe(s, "radius", 1, &radius);
	r = r ? r : describe(s, "intensity", 1, &intensity);
	if (r)
		return r;
	if (!sl_h5_elements(&mask, 0) || sl_h5_elements(&mask, 0) > SL_H5_PIXELS_MOST)
		return refuse(s, "mask", "is no image, or one too large");
	if (!radius.dim[0] || radius.dim[0] > BINS_MOST)
		return refuse(s, "radius", "has no bins, or too many");
	if (intensity.type == SL_H5_U64 || intensity.type == SL_H5_I64 ||
	    intensity.type == SL_H5_F64)
		return refuse(s, "intensity", "has pixels of 64 bits, which are not read");
	s->image = (struct sl_h5_shape){intensity.type, 2, {mask.dim[0], mask.dim[1]}};
	s->pixels = mask.dim[0] * mask.dim[1];
	s->bins = radius.dim[0];
	s->list = intensity;
	return 0;
}

static int measure_frames(struct sl_h5_sparse *s)
{
	struct sl_h5_shape pointer, index, average;
	int r = describe(s, "frame_ptr", 1, &pointer);

	r = r ? r : describe(s, "index", 1, &index);
	r = r ? r : describe(s, "background_avg", 2, &average);
	if (r)
		return r;
	if (!pointer.dim[0] || pointer.dim[0] > FRAMES_MOST)
		return refuse(s, "frame_ptr", "is empty, or too long");
	s->images = pointer.dim[0] - 1;
	if (average.dim[0] != s->images || average.dim[1] != s->bins)
		return refuse(s, "background_avg", "has not a row per frame and a bin per radius");
	/* HDF5 would make 0 of what is below. */
	if (index.type > SL_H5_U64 || pointer.type > SL_H5_U64)
		return refuse(s, index.type > SL_H5_U64 ? "index" : "frame_ptr", "is not unsigned");
	if (index.dim[0] != s->list.dim[0])
		return refuse(s, "index", "and intensity are not of the same length");
	return 0;
}

/* ---- what it says ---- */

static int load_pointers(struct sl_h5_sparse *s)
{
	int r = load(s, "frame_ptr", SL_H5_U64, s->images + 1, (void **)&s->pointer);

	if (r)
		return r;
	if (s->pointer[0] != 0)
		return refuse(s, "frame_ptr", "does not begin with 0");
	for (uint64_t i = 0; i < s->images; i++)
		if (s->pointer[i + 1] < s->pointer[i] ||
		    s->pointer[i + 1] - s->pointer[i] > s->pixels)
			return refuse(s, "frame_ptr",
				      "goes back, or gives a frame more pixels than an image has");
	if (s->pointer[s->images] > s->list.dim[0])
		return refuse(s, "index", "ends before the last frame: the file is cut short");
	return 0;
}

static int load_tables(struct sl_h5_sparse *s)
{
	struct sl_h5_shape shape;
	char path[PATH + NAME];
	int r = load(s, "mask", SL_H5_F32, s->pixels, (void **)&s->mask);

	r = r ? r : load(s, "radius", SL_H5_F32, s->bins, (void **)&s->radius);
	if (r)
		return r;
	for (uint64_t b = 0; b < s->bins; b++)
		if (!isfinite(s->radius[b]) || (b && s->radius[b] <= s->radius[b - 1]))
			return refuse(s, "radius", "does not rise from bin to bin");
	path_of(s, "normalization", path, sizeof(path));
	if (sl_h5_describe(s->file, path, &shape) == 0) {
		if (shape.rank != 2 || shape.dim[0] != s->image.dim[0] ||
		    shape.dim[1] != s->image.dim[1])
			return refuse(s, path, "has not the size of the mask");
		r = load(s, "normalization", SL_H5_F32, s->pixels, (void **)&s->norm);
	}
	path_of(s, "dummy", path, sizeof(path));
	if (!r && sl_h5_describe(s->file, path, &shape) == 0 && shape.rank == 0)
		r = sl_h5_read(s->file, path, s->image.type, &s->dummy,
			       sl_h5_type_bytes(s->image.type));
	return r;
}

/* Between which bins a radius lies; beyond the outer ones it is theirs, as numpy.interp has it. */
static double place_of(const struct sl_h5_sparse *s, float at)
{
	uint64_t low = 0, high = s->bins - 1;

	if (!isfinite(at))
		return NAN;
	if (at <= s->radius[0] || at >= s->radius[high])
		return at <= s->radius[0] ? 0 : (double)high;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (s->radius[middle] <= at)
			low = middle;
		else
			high = middle;
	}
	return (double)low +
	       ((double)at - s->radius[low]) / ((double)s->radius[high] - s->radius[low]);
}

static int place_all(struct sl_h5_sparse *s)
{
	s->place = malloc(s->pixels * sizeof(*s->place));
	if (!s->place) {
		sl_error("%s: no memory for %" PRIu64 " pixels", s->file->path, s->pixels);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < s->pixels; i++)
		s->place[i] = place_of(s, s->mask[i]);
	return 0;
}

/* Only files of ours have these. */
static int load_extras(struct sl_h5_sparse *s)
{
	struct sl_h5_shape shape;
	char path[PATH + NAME];
	int r = 0;

	path_of(s, "found", path, sizeof(path));
	if (sl_h5_describe(s->file, path, &shape) == 0 && shape.rank == 1 &&
	    shape.dim[0] == s->images)
		r = load(s, "found", SL_H5_U32, s->images, (void **)&s->found);
	if (r || sl_h5_describe(s->file, "/entry/sluice/frames/outcome", &shape) ||
	    shape.rank != 2 || !shape.dim[1] || shape.dim[1] > 64 || s->image.dim[0] % shape.dim[1])
		return r;
	s->modules = (uint32_t)shape.dim[1];
	if (sl_h5_describe(s->file, "/entry/data/missing_modules", &shape) || shape.rank != 1 ||
	    shape.dim[0] != s->images)
		return 0;
	s->missing = malloc(s->images ? s->images * 8 : 1);
	return !s->missing ? -ENOMEM
			   : sl_h5_read(s->file, "/entry/data/missing_modules", SL_H5_U64,
					s->missing, s->images * 8);
}

static int allocate(struct sl_h5_sparse *s)
{
	uint64_t most = 0;

	for (uint64_t i = 0; i < s->images; i++)
		if (s->pointer[i + 1] - s->pointer[i] > most)
			most = s->pointer[i + 1] - s->pointer[i];
	s->average = malloc(s->bins * sizeof(*s->average));
	s->index = malloc(most ? most * sizeof(*s->index) : 1);
	s->value = malloc(most ? most * sl_h5_type_bytes(s->image.type) : 1);
	if (s->average && s->index && s->value)
		return 0;
	sl_error("%s: no memory for lists of %" PRIu64 " pixels", s->file->path, most);
	return -ENOMEM;
}

int sl_h5_sparse_open(const char *path, struct sl_h5_sparse **opened, struct sl_h5_shape *image,
		      uint64_t *images)
{
	struct sl_h5_sparse *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = sl_h5_open(path, &s->file);
	if (r) {
		if (r == -ENOENT)
			sl_error("%s: %s", path, strerror(ENOENT));
		free(s);
		return r;
	}
	sl_h5_filters();
	find_group(s);
	r = measure_image(s);
	r = r ? r : measure_frames(s);
	r = r ? r : load_pointers(s);
	r = r ? r : load_tables(s);
	r = r ? r : place_all(s);
	r = r ? r : load_extras(s);
	r = r ? r : allocate(s);
	if (r) {
		sl_h5_sparse_close(s);
		return r;
	}
	*opened = s;
	*image = s->image;
	*images = s->images;
	return 0;
}

void sl_h5_sparse_close(struct sl_h5_sparse *s)
{
	void *memory[] = {s->pointer, s->missing, s->mask,  s->norm,  s->radius,
			  s->place,   s->average, s->found, s->index, s->value};

	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		free(memory[i]);
	sl_h5_close(s->file);
	free(s);
}

struct sl_h5 *sl_h5_sparse_file(struct sl_h5_sparse *s)
{
	return s->file;
}

/* ---- images ---- */

static void store(enum sl_h5_type type, void *image, uint64_t i, double value)
{
	double whole = floor(value + 0.5);

	switch (type) {
	case SL_H5_U8:
		((uint8_t *)image)[i] = (uint8_t)(whole < 0 ? 0 : whole > 255 ? 255 : whole);
		break;
	case SL_H5_U16:
		((uint16_t *)image)[i] = (uint16_t)(whole < 0 ? 0 : whole > 65535 ? 65535 : whole);
		break;
	case SL_H5_U32:
		((uint32_t *)image)[i] = (uint32_t)(whole < 0		  ? 0
						    : whole > 4294967295. ? 4294967295.
									  : whole);
		break;
	case SL_H5_I16:
		((int16_t *)image)[i] = (int16_t)(whole < -32768  ? -32768
						  : whole > 32767 ? 32767
								  : whole);
		break;
	case SL_H5_I32:
		((int32_t *)image)[i] = (int32_t)(whole < -2147483648.	? -2147483648.
						  : whole > 2147483647. ? 2147483647.
									: whole);
		break;
	default:
		((float *)image)[i] = (float)value;
	}
}

static void copy(size_t bytes, void *to, uint64_t at, const void *from, uint64_t i)
{
	memcpy((char *)to + at * bytes, (const char *)from + i * bytes, bytes);
}

static void paint(const struct sl_h5_sparse *s, bool background, void *image)
{
	size_t bytes = sl_h5_type_bytes(s->image.type);

	for (uint64_t i = 0; i < s->pixels; i++) {
		uint64_t left, right;
		double value = 0;

		if (isnan(s->place[i])) {
			copy(bytes, image, i, &s->dummy, 0);
			continue;
		}
		left = (uint64_t)s->place[i];
		right = left + 1 < s->bins ? left + 1 : left;
		if (background)
			value = s->average[left] +
				(s->place[i] - (double)left) *
					((double)s->average[right] - s->average[left]);
		value *= s->norm ? s->norm[i] : 1;
		store(s->image.type, image, i, isfinite(value) ? value : 0);
	}
}

/* What is not known. */
static void blank(const struct sl_h5_sparse *s, void *image, uint64_t first, uint64_t end)
{
	for (uint64_t i = first; i < end; i++)
		copy(sl_h5_type_bytes(s->image.type), image, i, &s->dummy, 0);
}

static int read_list(struct sl_h5_sparse *s, uint64_t number, uint64_t count)
{
	uint64_t first = s->pointer[number];
	size_t bytes = sl_h5_type_bytes(s->image.type);
	char path[PATH + NAME], why[128];
	int r;

	path_of(s, "index", path, sizeof(path));
	r = sl_h5_read_rows(s->file, path, first, count, SL_H5_U32, s->index, count * 4);
	path_of(s, "intensity", path, sizeof(path));
	if (!r)
		r = sl_h5_read_rows(s->file, path, first, count, s->image.type, s->value,
				    count * bytes);
	for (uint64_t i = 0; i < count && !r; i++)
		if (s->index[i] >= s->pixels) {
			snprintf(why, sizeof(why),
				 "frame %" PRIu64 " has pixel %u of an image of %" PRIu64, number,
				 s->index[i], s->pixels);
			r = refuse(s, "index", why);
		}
	return r;
}

int sl_h5_sparse_read(struct sl_h5_sparse *s, uint64_t number, bool background, void *image,
		      bool *cut)
{
	uint64_t count, rows = s->modules ? s->image.dim[0] / s->modules : 0;
	char path[PATH + NAME];
	int r;

	if (number >= s->images)
		return -ERANGE;
	count = s->pointer[number + 1] - s->pointer[number];
	path_of(s, "background_avg", path, sizeof(path));
	r = sl_h5_read_row(s->file, path, number, SL_H5_F32, s->average,
			   s->bins * sizeof(*s->average));
	r = r ? r : read_list(s, number, count);
	if (r)
		return r;
	paint(s, background, image);
	for (uint64_t i = 0; i < count; i++)
		copy(sl_h5_type_bytes(s->image.type), image, s->index[i], s->value, i);
	*cut = s->found && s->found[number] > count;
	if (*cut)
		blank(s, image, count ? s->index[count - 1] + UINT64_C(1) : 0, s->pixels);
	for (uint32_t m = 0; s->missing && m < s->modules; m++)
		if (s->missing[number] >> m & 1)
			blank(s, image, m * rows * s->image.dim[1],
			      (m + 1) * rows * s->image.dim[1]);
	return 0;
}
