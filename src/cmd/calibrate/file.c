/* file.c - dark images of a file as an experiment of their own. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/paths.h"
#include "cmd/calibrate/calibrate.h"
#include "detector/replay/stack.h"

/* A text for YAML, which JSON is a part of. */
static void print_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, "  %s: \"", key);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputs("\"\n", out);
}

static bool is_raw(const char *text)
{
	struct sl_paths paths;
	char why[600];
	bool raw;

	if (sl_paths_expand(text, &paths, why, sizeof(why)))
		return false; /* told when it is opened */
	raw = !sl_stack_hdf5_is(paths.path[0]);
	sl_paths_free(&paths);
	return raw;
}

static void describe(const struct sl_geometry *g, const struct sl_dark_file *dark,
		     struct sl_stack_options *o)
{
	*o = (struct sl_stack_options){.bits = 8 * (uint32_t)sl_dtype_bytes(g->dtype)};
	snprintf(o->file, sizeof(o->file), "%s", dark->file);
	snprintf(o->dataset, sizeof(o->dataset), "%s", dark->dataset);
	if (is_raw(o->file)) {
		o->rows = g->modules * g->rows;
		o->columns = g->columns;
		o->numbers = g->dtype == SL_F32				? SL_STACK_FLOAT
			     : g->dtype == SL_I16 || g->dtype == SL_I32 ? SL_STACK_SIGNED
									: SL_STACK_UNSIGNED;
	}
}

/* The images must be this detector's. */
static int count(const struct sl_geometry *g, const struct sl_stack_options *o, uint64_t *images)
{
	const struct sl_stack_shape *s;
	struct sl_stack *stack;
	uint32_t rows;
	int err = sl_stack_open(o, &stack);

	if (err)
		return err;
	s = sl_stack_shape(stack);
	rows = s->modules ? s->modules * s->rows : s->rows;
	*images = sl_stack_images(stack);
	if (rows != g->modules * g->rows || s->columns != g->columns || s->dtype != g->dtype ||
	    (s->modules && s->modules != g->modules)) {
		sl_error(
			"'%s' has images of %u x %u %s; detector '%s' has %u modules of %u x %u %s",
			o->file, rows, s->columns, sl_dtype_name(s->dtype), g->detector, g->modules,
			g->rows, g->columns, sl_dtype_name(g->dtype));
		err = -EINVAL;
	}
	sl_stack_close(stack);
	return err;
}

static int write_experiment(const struct sl_experiment *e, const struct sl_geometry *g,
			    const struct sl_stack_options *o, uint64_t frames, int fd)
{
	static const char *const numbers[] = {"unsigned", "signed", "float"};
	FILE *out = fdopen(fd, "w");
	int err;

	if (!out) {
		err = -errno;
		close(fd);
		return err;
	}
	fputs("detector:\n  kind: replay\n", out);
	print_text(out, "file", o->file);
	print_text(out, "dataset", o->dataset);
	print_text(out, "origin", g->detector);
	fprintf(out, "  rows: %u\n  columns: %u\n  bits: %u\n  numbers: %s\n", o->rows, o->columns,
		o->bits, numbers[o->numbers]);
	fprintf(out, "  modules: %u\n  frames: %llu\n  storage_cells: %u\n", g->modules,
		(unsigned long long)frames, g->cells ? g->cells : 1);
	fputs("calibration:\n", out);
	print_text(out, "file", e->calibration.file);
	print_text(out, "gains", e->calibration.gains);
	fputs("link: {kind: shm}\nemulate: local\nsinks: ['null']\n", out);
	err = ferror(out) ? -EIO : 0;
	return fclose(out) && !err ? -errno : err;
}

int sl_dark_file_open(const struct sl_experiment *e, struct sl_dark_file *dark)
{
	struct sl_stack_options o;
	struct sl_geometry g;
	const char *base = getenv("TMPDIR");
	uint64_t images = 0;
	int fd, err = e->generator->open(e->generator_state, &e->cut.generator_options, &g);

	e->generator->close(e->generator_state);
	if (err) {
		sl_error("detector '%s' cannot be opened: %s", e->generator->name, strerror(-err));
		return err;
	}
	describe(&g, dark, &o);
	err = count(&g, &o, &images);
	if (err)
		return err;
	if (dark->frames && dark->frames < images)
		images = dark->frames;
	snprintf(dark->path, sizeof(dark->path), "%s/sluice-calibrate-XXXXXX",
		 base && base[0] ? base : "/tmp");
	fd = mkostemp(dark->path, O_CLOEXEC);
	err = fd < 0 ? -errno : write_experiment(e, &g, &o, images, fd);
	if (err)
		sl_error("cannot write '%s': %s", dark->path, strerror(-err));
	return err;
}
