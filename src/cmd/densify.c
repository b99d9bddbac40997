/* densify.c - sluice densify: lists of pixels become images again. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "hdf5/sparse.h"
#include "session/outputs.h"

struct densify_options {
	bool without_background, quiet;
};

static const struct sl_option options[] = {
	SL_BOOL(struct densify_options, without_background, false,
		"zeros where no pixel was picked, instead of the background"),
	SL_BOOL(struct densify_options, quiet, false, "say nothing but errors"),
	SL_OPTION_END,
};

struct densify {
	struct sl_h5_sparse *sparse;
	struct sl_h5_shape image;
	uint64_t images, cut;
	struct sl_h5 *out;
	struct sl_h5_series *series;
	void *pixels;
	size_t bytes;
};

/* Where the images are from, row by row with them, if the file says so. */
static void copy_column(struct densify *d, const char *path)
{
	struct sl_h5 *in = sl_h5_sparse_file(d->sparse);
	struct sl_h5_shape shape;
	uint64_t *column;

	if (sl_h5_describe(in, path, &shape) || shape.type != SL_H5_U64 || shape.rank != 1 ||
	    shape.dim[0] != d->images || !d->images)
		return;
	column = malloc(d->images * sizeof(*column));
	if (column && !sl_h5_read(in, path, SL_H5_U64, column, d->images * sizeof(*column)))
		sl_h5_write(d->out, path, &shape, column);
	free(column);
}

static void begin(struct densify *d, const char *from)
{
	sl_h5_attribute_text(d->out, "/", "NX_class", "NXroot");
	sl_h5_attribute_text(d->out, "/", "default", "entry");
	sl_h5_group(d->out, "/entry", "NXentry");
	sl_h5_attribute_text(d->out, "/entry", "default", "data");
	sl_h5_group(d->out, "/entry/data", "NXdata");
	sl_h5_attribute_text(d->out, "/entry/data", "signal", "data");
	sl_h5_write_text(d->out, "/entry/title", "images of sparse frames");
	sl_h5_attribute_text(d->out, "/entry/title", "source", from);
	copy_column(d, "/entry/data/frame_number");
	copy_column(d, "/entry/data/timestamp");
	copy_column(d, "/entry/data/sequence");
	copy_column(d, "/entry/data/missing_modules");
	sl_h5_series_open(d->out, "/entry/data/data", &d->image, 1, &d->series);
}

static int write_all(struct densify *d, const struct densify_options *o)
{
	int r = sl_h5_status(d->out);

	for (uint64_t i = 0; i < d->images && !r; i++) {
		bool cut = false;

		r = sl_h5_sparse_read(d->sparse, i, !o->without_background, d->pixels, &cut);
		r = r ? r : sl_h5_reserve(d->out, d->bytes);
		if (r == -ENOSPC || r == -EDQUOT || r == -EFBIG)
			sl_error("no space for image %" PRIu64 " of %" PRIu64, i, d->images);
		if (!r)
			r = sl_h5_series_append(d->series, d->pixels);
		d->cut += cut;
	}
	return r;
}

static int convert(struct densify *d, const struct densify_options *o, const char *from,
		   const char *to)
{
	int r;

	d->bytes = d->image.dim[0] * d->image.dim[1] * sl_h5_type_bytes(d->image.type);
	d->pixels = malloc(d->bytes);
	if (!d->pixels) {
		sl_error("%s: no memory for an image of %zu bytes", from, d->bytes);
		return -ENOMEM;
	}
	r = sl_h5_create(to, &d->out);
	if (r)
		return r;
	begin(d, from);
	r = write_all(d, o);
	if (r)
		sl_h5_abandon(d->out);
	else
		r = sl_h5_finish(d->out);
	return r;
}

static void say(const struct densify *d, const char *to)
{
	printf("%s: %" PRIu64 " images of %" PRIu64 " x %" PRIu64 " pixels\n", to, d->images,
	       d->image.dim[0], d->image.dim[1]);
	if (d->cut)
		printf("of %" PRIu64 " not all pixels were stored (max_pixels): what is behind the "
		       "last of them is not known and marked as bad\n",
		       d->cut);
}

int sl_cmd_densify(const struct sl_command *command, int argc, char **argv)
{
	struct densify d = {.images = 0};
	struct densify_options o;
	struct sl_args args;
	int r = sl_args_read(command, options, &o, argc, argv, &args);

	if (r)
		return r == 1 ? 0 : 1;
	if (args.plains != 2) {
		sl_error("densify takes two files: sluice %s", command->usage);
		return 1;
	}
	if (sl_outputs_spare(args.plain[0], &args.plain[1], 1) ||
	    sl_h5_sparse_open(args.plain[0], &d.sparse, &d.image, &d.images))
		return 1;
	r = convert(&d, &o, args.plain[0], args.plain[1]);
	if (!r && !o.quiet)
		say(&d, args.plain[1]);
	free(d.pixels);
	sl_h5_sparse_close(d.sparse);
	return r ? 1 : 0;
}
