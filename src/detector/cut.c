/* cut.c - geometry, pixels and calibration of a part of a detector. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "base/log.h"
#include "detector/configuration.h"
#include "detector/cut.h"

const struct sl_option sl_cut_options[] = {
	SL_U32(struct sl_cut_options, first_module, 0, 0, 63, "", "first module that it carries"),
	SL_U32(struct sl_cut_options, modules, 0, 0, 64, "modules",
	       "how many from there on; 0: all the others"),
	SL_U32(struct sl_cut_options, x, 0, 0, 65535, "pixels",
	       "left edge of the rectangle that is sent of each module"),
	SL_U32(struct sl_cut_options, y, 0, 0, 65535, "pixels", "upper edge of it"),
	SL_U32(struct sl_cut_options, width, 0, 0, 65536, "pixels", "0: to the right edge"),
	SL_U32(struct sl_cut_options, height, 0, 0, 65536, "pixels", "0: to the lower edge"),
	SL_U32(struct sl_cut_options, every, 1, 1, 1000000, "frames",
	       "one frame in so many is sent"),
	SL_U32(struct sl_cut_options, phase, 0, 0, 999999, "frames", "the first one that is"),
	SL_U32(struct sl_cut_options, stack, 1, 1, 1024, "frames",
	       "so many frames are one block, with one event and one outcome"),
	SL_CHOICE(
		struct sl_cut_options, part, pixels, "pixels|records|configuration",
		"what is sent: the image, only the 64 bytes that describe it, or how the detector "
		"is set, as text"),
	SL_OPTION_END};

/* Frames phase, phase + every, ... below end. */
static uint64_t chosen_below(const struct sl_cut_options *o, uint64_t end)
{
	return end <= o->phase ? 0 : (end - o->phase - 1) / o->every + 1;
}

int sl_cut_apply(const struct sl_cut_options *o, const struct sl_detector_options *source,
		 struct sl_detector_options *run, char *why, size_t why_bytes)
{
	uint64_t darks = chosen_below(o, source->dark_frames);
	uint64_t all =
		chosen_below(o, source->frames ? source->dark_frames + source->frames : UINT64_MAX);
	uint32_t modules = o->modules ? o->modules : source->modules - o->first_module;

	why[0] = 0;
	if (o->first_module >= source->modules || modules > source->modules - o->first_module)
		snprintf(why, why_bytes, "modules %u to %u: the detector has 0 to %u",
			 o->first_module, o->first_module + modules - 1, source->modules - 1);
	else if (o->phase >= o->every)
		snprintf(why, why_bytes, "phase (%u) must be below every (%u)", o->phase, o->every);
	else if (o->part != SL_CUT_PIXELS && (o->x || o->y || o->width || o->height))
		snprintf(why, why_bytes,
			 "x, y, width and height choose pixels, and part says that none are sent");
	else if (darks % o->stack)
		snprintf(why, why_bytes,
			 "%llu dark frames are no whole number of stacks of %u: one would be "
			 "half dark; change detector.dark_frames",
			 (unsigned long long)darks, o->stack);
	else if (o->stack > 1 && source->dark_every && o->every % source->dark_every)
		snprintf(why, why_bytes,
			 "a stack would have dark frames among bright ones: every (%u) must be a "
			 "multiple of detector.dark_every (%u)",
			 o->every, source->dark_every);
	else if (all / o->stack == darks / o->stack)
		snprintf(why, why_bytes, "not one bright frame of the run would be sent");
	if (why[0])
		return -EINVAL;
	*run = *source;
	run->modules = modules;
	run->dark_frames = darks / o->stack;
	run->frames = source->frames ? all / o->stack - run->dark_frames : 0;
	run->frame_rate_Hz = source->frame_rate_Hz / o->every / o->stack;
	if (source->dark_every) {
		struct sl_darks chopper = sl_detector_darks(source);

		run->chopper_phase =
			(uint32_t)((chopper.phase + (uint64_t)o->phase) % chopper.every);
		/* Not 0, which would mean all frames. */
		run->chopper_step = (uint32_t)((uint64_t)o->every * o->stack % chopper.every) +
				    chopper.every;
	}
	return 0;
}

uint64_t sl_cut_left_over(const struct sl_cut_options *o, const struct sl_detector_options *source)
{
	return source->frames ? chosen_below(o, source->dark_frames + source->frames) % o->stack
			      : 0;
}

static uint32_t pixel_bytes(const struct sl_geometry *g)
{
	return (uint32_t)(g->module_bytes / sl_geometry_pixels(g));
}

static int fit_rectangle(struct sl_cut *cut)
{
	const struct sl_cut_options *o = &cut->options;
	const struct sl_geometry *s = &cut->source_geometry;

	if (o->x >= s->columns || o->y >= s->rows || o->width > s->columns - o->x ||
	    o->height > s->rows - o->y) {
		sl_error("the transfer's rectangle (x %u, y %u, width %u, height %u) is not inside "
			 "a module of %u x %u pixels",
			 o->x, o->y, o->width, o->height, s->columns, s->rows);
		return -EINVAL;
	}
	cut->width = o->width ? o->width : s->columns - o->x;
	cut->height = o->height ? o->height : s->rows - o->y;
	cut->whole = cut->width == s->columns && cut->height == s->rows && o->stack == 1 &&
		     o->part == SL_CUT_PIXELS;
	return 0;
}

/* Whole modules keep their places in the image. Of anything else the image is what was cut, one
 * below the other: places of rectangles would leave it mostly empty. */
static void stack_up(const struct sl_cut *cut, struct sl_layout *layout)
{
	uint32_t modules = cut->geometry.modules, rows = cut->height * cut->options.stack;

	*layout = (struct sl_layout){.rows = 0};
	if (cut->options.part != SL_CUT_PIXELS || modules > SL_LAYOUT_MODULES)
		return;
	layout->rows = modules * rows;
	layout->columns = cut->width;
	for (uint32_t m = 0; m < modules; m++)
		layout->module[m].row = m * rows;
	/* There is one for each piece, and none for all. */
	layout->beam_row = layout->beam_column = NAN;
}

static void lay_out(const struct sl_cut *cut, struct sl_layout *layout)
{
	const struct sl_cut_options *o = &cut->options;

	if (!cut->whole) {
		stack_up(cut, layout);
		return;
	}
	sl_layout_resolve(&cut->source_geometry, layout);
	memmove(layout->module, layout->module + o->first_module,
		cut->geometry.modules * sizeof(*layout->module));
}

/* Whole modules keep their places in space. */
static void cut_planes(const struct sl_cut *cut, struct sl_geometry *g)
{
	const struct sl_geometry *s = &cut->source_geometry;
	uint32_t each = s->planes / s->modules;

	if (!cut->whole)
		g->planes = 0;
	if (g->planes < 2)
		return;
	g->plane += cut->options.first_module * each;
	g->planes = g->modules * each;
}

static void shape(struct sl_cut *cut)
{
	const struct sl_cut_options *o = &cut->options;
	struct sl_geometry *g = &cut->geometry;
	uint64_t step = cut->source_geometry.frame_step ? cut->source_geometry.frame_step : 1;

	*g = cut->source_geometry;
	g->modules = o->modules ? o->modules : g->modules - o->first_module;
	lay_out(cut, &g->layout);
	cut_planes(cut, g);
	g->first_frame += o->phase * step;
	g->frame_step = step * o->every * o->stack;
	g->frames = chosen_below(o, g->frames) / o->stack;
	if (o->part != SL_CUT_PIXELS) {
		g->rows = o->stack;
		g->columns = o->part == SL_CUT_RECORDS ? (uint32_t)SL_RECORD_BYTES
						       : (uint32_t)SL_CONFIGURATION_BYTES;
		g->dtype = SL_U8;
		g->bit_depth = 8;
		g->items = g->unread_rows = 0;
		g->module_bytes = sl_geometry_pixels(g);
		return;
	}
	/* A stack has the events of all its frames; what cuts rows has none that are whole. */
	g->items = cut->height == g->rows && cut->width == g->columns ? g->items * o->stack : 0;
	if (!cut->whole) /* its rows have no place in the module any more */
		g->unread_rows = 0;
	g->rows = cut->height * o->stack;
	g->columns = cut->width;
	g->module_bytes = sl_geometry_pixels(g) * pixel_bytes(&cut->source_geometry);
}

static int open_cut(void *state, const struct sl_detector_options *run,
		    struct sl_geometry *geometry)
{
	struct sl_cut *cut = state;
	int err = cut->generator->open(cut->generator_state, &cut->generator_options,
				       &cut->source_geometry);

	(void)run; /* derived from generator_options */
	if (!err && cut->refine)
		err = cut->refine(cut->refine_arg, &cut->source_geometry);
	if (!err)
		err = fit_rectangle(cut);
	if (err)
		return err;
	shape(cut);
	cut->buffer = malloc(cut->source_geometry.module_bytes);
	cut->text = malloc(SL_CONFIGURATION_BYTES);
	if (!cut->buffer || !cut->text)
		return -ENOMEM;
	sl_detector_configuration(cut->generator, cut->generator_state, &cut->generator_options,
				  &cut->source_geometry, cut->text);
	*geometry = cut->geometry;
	return 0;
}

static void close_cut(void *state)
{
	struct sl_cut *cut = state;

	free(cut->buffer);
	free(cut->table);
	free(cut->text);
	cut->text = NULL;
	cut->buffer = NULL;
	cut->table = NULL;
	cut->generator->close(cut->generator_state);
}

static int prepare_cut(void *state)
{
	struct sl_cut *cut = state;

	return cut->generator->prepare(cut->generator_state);
}

static void cut_pixels(const struct sl_cut *cut, const uint8_t *from, uint8_t *to)
{
	const struct sl_cut_options *o = &cut->options;
	size_t bytes = pixel_bytes(&cut->source_geometry);
	size_t pitch = cut->source_geometry.columns * bytes, line = cut->width * bytes;

	from += o->y * pitch + o->x * bytes;
	for (uint32_t y = 0; y < cut->height; y++)
		memcpy(to + y * line, from + y * pitch, line);
}

/* What a front end that sends the whole module would say of it. */
static void cut_record(struct sl_cut *cut, uint64_t frame, uint32_t module, uint32_t flags,
		       const void *pixels, struct sl_record *record)
{
	uint64_t bytes = cut->source_geometry.module_bytes;

	*record = (struct sl_record){
		.sequence = frame,
		.frame = frame,
		.timestamp = cut->generator->timestamp(cut->generator_state, frame),
		.bytes = (uint32_t)bytes,
		.crc32c = sl_crc32c(0, pixels, bytes),
		.items = sl_geometry_items(&cut->source_geometry),
		.module = (uint16_t)module,
		.flags = (uint16_t)(flags | SL_RECORD_CRC),
		.cell = sl_geometry_cell(&cut->source_geometry, frame),
	};
	sl_record_seal(record);
}

static int render_cut(void *state, uint64_t frame, uint32_t module, uint32_t flags, void *buffer,
		      const void **pixels)
{
	struct sl_cut *cut = state;
	const struct sl_cut_options *o = &cut->options;
	uint64_t each = cut->geometry.module_bytes / o->stack;
	uint64_t step = cut->geometry.frame_step / o->stack;

	if (module >= cut->geometry.modules)
		return -EINVAL;
	module += o->first_module;
	if (cut->whole) /* nothing to copy */
		return cut->generator->render(cut->generator_state, frame, module, flags, buffer,
					      pixels);
	*pixels = buffer;
	for (uint32_t i = 0; i < o->stack; i++) {
		uint8_t *to = (uint8_t *)buffer + i * each;
		const void *whole;
		int err;

		if (o->part == SL_CUT_CONFIGURATION) {
			memcpy(to, cut->text, SL_CONFIGURATION_BYTES);
			continue;
		}
		err = cut->generator->render(cut->generator_state, frame + i * step, module, flags,
					     cut->buffer, &whole);

		if (err)
			return err;
		if (o->part == SL_CUT_RECORDS)
			cut_record(cut, frame + i * step, module, flags, whole,
				   (struct sl_record *)(void *)to);
		else
			cut_pixels(cut, whole, to);
	}
	return 0;
}

/* Of the whole frames: a spot may lie outside the rectangle. */
static void truth_cut(void *state, uint64_t frame, uint32_t flags, struct sl_truth *truth)
{
	struct sl_cut *cut = state;
	uint64_t step = cut->geometry.frame_step / cut->options.stack;

	*truth = (struct sl_truth){.hit = false};
	for (uint32_t i = 0; i < cut->options.stack; i++) {
		struct sl_truth one;

		cut->generator->truth(cut->generator_state, frame + i * step, flags, &one);
		truth->hit |= one.hit;
		truth->spots += one.spots;
	}
}

/* The same: the tables of a stack's frames follow each other. */
static uint32_t truth_rows_cut(void *state, uint64_t frame, uint32_t flags, double *table,
			       uint32_t most)
{
	struct sl_cut *cut = state;
	uint64_t step = cut->geometry.frame_step / cut->options.stack;
	uint32_t rows = 0, columns = 0;

	while (cut->generator->truth_columns[columns].name)
		columns++;
	for (uint32_t i = 0; i < cut->options.stack; i++) {
		uint32_t room = most > rows ? most - rows : 0;

		rows += cut->generator->truth_rows(cut->generator_state, frame + i * step, flags,
						   room ? table + (size_t)rows * columns : NULL,
						   room);
	}
	return rows;
}

static uint64_t timestamp_cut(void *state, uint64_t frame)
{
	struct sl_cut *cut = state;

	return cut->generator->timestamp(cut->generator_state, frame);
}

/* One table of the source, [module][pixel], for one frame's place in the stack, [module][stack]
 * [pixel], of the cut. bytes: of an entry. */
static void cut_table(const struct sl_cut *cut, uint32_t bytes, uint32_t place, const void *from,
		      void *to)
{
	const struct sl_cut_options *o = &cut->options;
	const struct sl_geometry *s = &cut->source_geometry;
	uint64_t whole = sl_geometry_pixels(s), part = (uint64_t)cut->width * cut->height;

	for (uint32_t m = 0; m < cut->geometry.modules; m++)
		for (uint32_t y = 0; y < cut->height; y++) {
			uint64_t out = (m * (uint64_t)o->stack + place) * part +
				       (uint64_t)y * cut->width;
			uint64_t in = (o->first_module + m) * whole +
				      (uint64_t)(o->y + y) * s->columns + o->x;

			memcpy((uint8_t *)to + out * bytes, (const uint8_t *)from + in * bytes,
			       (uint64_t)cut->width * bytes);
		}
}

/* Pedestals, [cell][module][pixel]. A stack goes by the cell of its first frame; those after it are
 * in the cells that follow. */
static void cut_pedestals(const struct sl_cut *cut, uint32_t cells, const float *from, float *to)
{
	const struct sl_geometry *s = &cut->source_geometry;
	uint64_t whole = s->modules * sl_geometry_pixels(s);
	uint64_t part = cut->geometry.modules * sl_geometry_pixels(&cut->geometry);
	uint64_t step = cut->geometry.frame_step / cut->options.stack;

	for (uint32_t cell = 0; cell < cells; cell++)
		for (uint32_t i = 0; i < cut->options.stack; i++)
			cut_table(cut, sizeof(*to), i, from + (cell + i * step) % cells * whole,
				  to + cell * part);
}

static int calibration_cut(void *state, struct sl_calibration *calibration)
{
	struct sl_cut *cut = state;
	uint64_t pixels = cut->geometry.modules * sl_geometry_pixels(&cut->geometry);
	struct sl_calibration whole = {.cells = 0};
	int err = cut->generator->calibration(cut->generator_state, &whole);
	uint32_t cells = whole.cells ? whole.cells : 1, stack = cut->options.stack;
	/* Floats of one gain stage. */
	uint64_t each = sl_calibration_has_gains(&whole) ? pixels * (cells + 1) : 0;
	uint8_t *mask;

	if (err)
		return err;
	free(cut->table);
	cut->table = malloc(3 * each * sizeof(*cut->table) + pixels);
	if (!cut->table)
		return -ENOMEM;
	mask = (uint8_t *)(cut->table + 3 * each);
	*calibration =
		(struct sl_calibration){.cells = whole.cells, .mask = whole.mask ? mask : NULL};
	for (unsigned g = 0; g < 3 && each; g++) {
		float *gain = cut->table + g * each, *pedestal = gain + pixels;

		cut_pedestals(cut, cells, whole.pedestal[g], pedestal);
		for (uint32_t i = 0; i < stack; i++)
			cut_table(cut, sizeof(*gain), i, whole.gain[g], gain);
		calibration->pedestal[g] = pedestal;
		calibration->gain[g] = gain;
	}
	for (uint32_t i = 0; whole.mask && i < stack; i++)
		cut_table(cut, sizeof(*mask), i, whole.mask, mask);
	return 0;
}

void sl_cut_detector(const struct sl_cut *cut, struct sl_detector *detector)
{
	const struct sl_detector *s = cut->generator;

	*detector = (struct sl_detector){
		.name = s->name,
		.doc = s->doc,
		.state_bytes = sizeof(struct sl_cut),
		.rate_Hz = s->rate_Hz,
		.truth_columns = s->truth_columns,
		.open = open_cut,
		.close = close_cut,
		.render = render_cut,
		.prepare = s->prepare ? prepare_cut : NULL,
		.truth = truth_cut,
		.truth_rows = s->truth_rows ? truth_rows_cut : NULL,
		.timestamp = timestamp_cut,
		/* Records have no gain. */
		.calibration = s->calibration && cut->options.part == SL_CUT_PIXELS
				       ? calibration_cut
				       : NULL,
	};
}
