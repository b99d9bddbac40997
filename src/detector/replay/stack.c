/* stack.c - several files as one row of images. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/paths.h"
#include "detector/replay/origin.h"
#include "detector/replay/stack.h"

struct sl_stack {
	struct sl_stack_part *part;
	size_t parts, last; /* last: the one that was asked before */
	uint64_t images;
	struct sl_stack_shape shape;
	bool raw;
	/* Where images are assembled: one of them, and for each pixel of the modules its place in
	 * it. */
	uint8_t *assembled;
	uint32_t *place;
	uint64_t assembled_bytes;
};

static struct sl_stack_part *add_part(struct sl_stack *stack, const char *path)
{
	struct sl_stack_part *more =
		realloc(stack->part, (stack->parts + 1) * sizeof(*stack->part));

	if (!more)
		return NULL;
	stack->part = more;
	more += stack->parts;
	*more = (struct sl_stack_part){.path = strdup(path), .first = stack->images, .fd = -1};
	if (!more->path)
		return NULL;
	stack->parts++;
	return more;
}

static bool same(const struct sl_stack_shape *a, const struct sl_stack_shape *b)
{
	return a->dtype == b->dtype && a->modules == b->modules && a->rows == b->rows &&
	       a->columns == b->columns;
}

/* All files have images of one kind, and the one that was asked for. */
static int check_shape(struct sl_stack *stack, const struct sl_stack_options *o, const char *path,
		       const struct sl_stack_shape *shape)
{
	if ((o->rows && o->rows != shape->rows) || (o->columns && o->columns != shape->columns)) {
		sl_error(
			"replay: '%s' has images of %u rows and %u columns; %u x %u were asked for",
			path, shape->rows, shape->columns, o->rows, o->columns);
		return -EINVAL;
	}
	if (stack->parts == 1)
		stack->shape = *shape;
	else if (!same(shape, &stack->shape)) {
		sl_error("replay: '%s' has images of %u x %u %s, the first file of %u x %u %s",
			 path, shape->rows, shape->columns, sl_dtype_name(shape->dtype),
			 stack->shape.rows, stack->shape.columns,
			 sl_dtype_name(stack->shape.dtype));
		return -EINVAL;
	}
	return 0;
}

static int add_raw(struct sl_stack *stack, const struct sl_stack_options *o, const char *path)
{
	struct sl_stack_part *part = add_part(stack, path);
	struct sl_stack_shape shape;
	int err = part ? sl_stack_raw_open(o, path, part, &shape) : -ENOMEM;

	if (!err)
		err = check_shape(stack, o, path, &shape);
	if (!err)
		stack->images += part->images;
	return err;
}

static int add_hdf5(struct sl_stack *stack, const struct sl_stack_options *o, const char *path)
{
	char name[256];
	int err = 0;

	stack->raw = false;
	for (unsigned k = 0; !err; k++) {
		struct sl_stack_part *part;
		struct sl_stack_shape shape;

		err = sl_stack_hdf5_dataset(path, o->dataset, k, name, sizeof(name));
		if (err)
			return err == -ENOENT && k ? 0 : err;
		part = add_part(stack, path);
		err = part ? sl_stack_hdf5_open(path, name, part, &shape) : -ENOMEM;
		if (!err)
			err = check_shape(stack, o, path, &shape);
		if (!err)
			stack->images += part->images;
	}
	return err;
}

static int add_file(struct sl_stack *stack, const struct sl_stack_options *o, const char *path)
{
	struct stat st;

	if (access(path, R_OK)) {
		sl_error("replay: cannot read '%s': %s", path, strerror(errno));
		return -errno;
	}
	if (stat(path, &st) || !S_ISREG(st.st_mode)) { /* to open a pipe would wait for a writer */
		sl_error("replay: '%s' is no ordinary file", path);
		return -EINVAL;
	}
	if (o->format == SL_STACK_HDF5 || (o->format == SL_STACK_AUTO && sl_stack_hdf5_is(path)))
		return add_hdf5(stack, o, path);
	return add_raw(stack, o, path);
}

int sl_stack_open(const struct sl_stack_options *options, struct sl_stack **opened)
{
	struct sl_stack *stack;
	struct sl_paths paths;
	char why[600];
	int err = sl_paths_expand(options->file, &paths, why, sizeof(why));

	if (err) {
		sl_error("replay: %s", why);
		return err;
	}
	stack = calloc(1, sizeof(*stack));
	if (stack)
		stack->raw = true;
	else
		err = -ENOMEM;
	for (size_t i = 0; i < paths.n && !err; i++)
		err = add_file(stack, options, paths.path[i]);
	sl_paths_free(&paths);
	if (err && stack)
		sl_stack_close(stack);
	else if (!err)
		*opened = stack;
	return err;
}

void sl_stack_close(struct sl_stack *stack)
{
	for (size_t i = 0; i < stack->parts; i++) {
		if (stack->part[i].fd >= 0)
			close(stack->part[i].fd);
		sl_stack_hdf5_close(&stack->part[i]);
		free(stack->part[i].path);
	}
	free(stack->part);
	free(stack->assembled);
	free(stack->place);
	free(stack);
}

const struct sl_stack_shape *sl_stack_shape(const struct sl_stack *stack)
{
	return &stack->shape;
}

uint64_t sl_stack_images(const struct sl_stack *stack)
{
	return stack->images;
}

const char *sl_stack_first(const struct sl_stack *stack)
{
	return stack->part[0].path;
}

int sl_stack_cut(struct sl_stack *stack, const struct sl_geometry *geometry)
{
	struct sl_stack_shape *shape = &stack->shape;

	stack->assembled_bytes = shape->image_bytes;
	stack->assembled = malloc(shape->image_bytes);
	stack->place = sl_origin_places(geometry);
	if (!stack->assembled || !stack->place)
		return -ENOMEM;
	shape->modules = geometry->modules;
	shape->rows = geometry->rows;
	shape->columns = geometry->columns;
	shape->image_bytes = geometry->modules * sl_geometry_pixels(geometry) *
			     sl_dtype_bytes(shape->dtype);
	stack->raw = false; /* a part of an image is no part of the file */
	return 0;
}

static void cut_out(const struct sl_stack *stack, uint8_t *data)
{
	uint64_t each = sl_dtype_bytes(stack->shape.dtype);
	uint64_t pixels = stack->shape.image_bytes / each;

	for (uint64_t i = 0; i < pixels; i++)
		memcpy(data + i * each, stack->assembled + stack->place[i] * each, each);
}

bool sl_stack_is_raw(const struct sl_stack *stack)
{
	return stack->raw;
}

/* Images are asked for in order, mostly: the part is the same as before, or the next. */
static struct sl_stack_part *find(struct sl_stack *stack, uint64_t image)
{
	for (size_t i = 0; i < stack->parts; i++) {
		size_t at = (stack->last + i) % stack->parts;
		struct sl_stack_part *part = &stack->part[at];

		if (image >= part->first && image - part->first < part->images) {
			stack->last = at;
			return part;
		}
	}
	return NULL;
}

int sl_stack_read_part(struct sl_stack *stack, uint64_t image, uint64_t offset, uint64_t bytes,
		       void *data)
{
	struct sl_stack_part *part = find(stack, image);

	return part && part->fd >= 0
		       ? sl_stack_raw_read(part, image - part->first, offset, bytes, data)
		       : -EINVAL;
}

static int read_stored(struct sl_stack *stack, uint64_t image, void *data, uint64_t bytes)
{
	struct sl_stack_part *part = find(stack, image);
	int err;

	if (!part)
		return -EINVAL;
	if (part->fd < 0)
		return sl_stack_hdf5_read(part, image - part->first, data, bytes);
	err = sl_stack_raw_read(part, image - part->first, 0, bytes, data);
	if (err == -ESTALE)
		sl_error("replay: '%s' is not what it was when it was opened: image %llu is not to "
			 "be had",
			 part->path, (unsigned long long)image);
	else if (err)
		sl_error("replay: cannot read '%s': %s", part->path, strerror(-err));
	return err;
}

int sl_stack_read(struct sl_stack *stack, uint64_t image, void *data)
{
	int err;

	if (!stack->place)
		return read_stored(stack, image, data, stack->shape.image_bytes);
	err = read_stored(stack, image, stack->assembled, stack->assembled_bytes);
	if (!err)
		cut_out(stack, data);
	return err;
}

const char *sl_stack_where(const struct sl_stack *stack, uint64_t image)
{
	for (size_t i = 0; i < stack->parts; i++)
		if (image - stack->part[i].first < stack->part[i].images)
			return stack->part[i].path;
	return "";
}
