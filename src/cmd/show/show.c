/* show.c - sluice show: a frame as a PNG file, of an experiment's detector or of a run's file. */
#include "cmd/show/show.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "experiment/experiment.h"
#include "picture/picture.h"
#include "session/outputs.h"

struct show_options {
	char frame[32], output[1024], transfer[SL_TRANSFER_NAME];
	bool dark, modules, geometry;
	uint32_t scale, colours, bin, event, height;
	double low, high;
};

static const struct sl_option options[] = {
	SL_STRING(struct show_options, frame, "",
		  "the detector's number of the frame, or the image of the file; without it the "
		  "first hit, or the first"),
	SL_BOOL(struct show_options, dark, false, "a dark frame"),
	SL_STRING(struct show_options, output, "frame.png", "the file"),
	SL_BOOL(struct show_options, modules, false,
		"modules as they are sent, one below the other"),
	SL_BOOL(struct show_options, geometry, false,
		"where the pixels lie, instead of a frame: modules, gaps, the beam, and rings of "
		"equal resolution"),
	SL_PICTURE_OPTIONS(struct show_options),
	SL_U32(struct show_options, event, 0, 0, 4294967295., "",
	       "of a detector of events: which one of the frame"),
	SL_U32(struct show_options, height, 600, 16, 8192, "pixels",
	       "of the picture of an event, or of the geometry"),
	SL_STRING(struct show_options, transfer, "", "of the file's transfers, this one"),
	SL_OPTION_END,
};

enum { LOOK_AHEAD = 10000 }; /* frames that are looked at for a hit */

struct show {
	struct show_options options;
	struct sl_args args;
	struct sl_picture picture;
	uint8_t *rgb; /* of an event, instead of the picture */
	uint32_t rgb_columns;
	char what[200];
};

static int parse_frame(const struct show_options *o, uint64_t *frame)
{
	char *end;

	errno = 0;
	*frame = strtoull(o->frame, &end, 10);
	if (!errno && o->frame[0] >= '0' && o->frame[0] <= '9' && !*end)
		return 0;
	sl_error("--frame: '%s': takes a number", o->frame);
	return -EINVAL;
}

/* The first hit; where there is none, the first frame. */
static uint64_t find_hit(const struct sl_experiment *e, const struct sl_geometry *g)
{
	for (uint64_t k = 0; k < LOOK_AHEAD; k++) {
		uint64_t frame = sl_geometry_frame(g, k);
		struct sl_truth truth;

		e->detector->truth(e->detector_state, frame, 0, &truth);
		if (truth.hit)
			return frame;
	}
	return sl_geometry_frame(g, 0);
}

/* An event as its detector draws it. */
static int draw_event(struct show *show, struct sl_experiment *e, const struct sl_geometry *g,
		      uint64_t frame, uint32_t flags)
{
	const struct show_options *o = &show->options;
	double aspect = e->detector->picture_aspect;
	int err;

	if (o->event >= sl_geometry_frame_items(g)) {
		sl_error("--event: a frame of this detector has %u, the first is 0",
			 sl_geometry_frame_items(g));
		return -EINVAL;
	}
	show->rgb_columns = (uint32_t)(o->height * (aspect > 0 ? aspect : 1));
	show->rgb = malloc((size_t)o->height * show->rgb_columns * 3);
	err = show->rgb ? e->detector->picture(e->detector_state, frame, flags, o->event, show->rgb,
					       o->height, show->rgb_columns)
			: -ENOMEM;
	if (err)
		sl_error("no picture of frame %llu: %s", (unsigned long long)frame, strerror(-err));
	return err;
}

static int draw_geometry(struct show *show, struct sl_described *described)
{
	int err = sl_show_geometry(described, show->options.height, &show->rgb, &show->rgb_columns,
				   show->what, sizeof(show->what));

	sl_described_free(described);
	return err;
}

static int show_opened(struct show *show, struct sl_experiment *e, const struct sl_geometry *g)
{
	const struct show_options *o = &show->options;
	uint32_t flags = o->dark ? SL_RECORD_DARK : 0;
	struct sl_described described;
	struct sl_truth truth;
	uint64_t frame;
	int err = 0;

	if (o->geometry) {
		err = sl_describe(g, false, e->refined.mask, &described);
		return err ? err : draw_geometry(show, &described);
	}
	if (o->frame[0])
		err = parse_frame(o, &frame);
	else
		frame = o->dark ? sl_geometry_frame(g, 0) : find_hit(e, g);
	if (!err && e->detector->picture && !o->modules)
		err = draw_event(show, e, g, frame, flags);
	else if (!err)
		err = sl_show_detector(e->detector, e->detector_state, g, frame, flags, o->modules,
				       &show->picture);
	if (err)
		return err;
	e->detector->truth(e->detector_state, frame, flags, &truth);
	snprintf(show->what, sizeof(show->what), "%s, %sframe %llu, truth: %u", g->detector,
		 o->dark ? "dark " : "", (unsigned long long)frame, truth.spots);
	return 0;
}

static int show_experiment(struct show *show)
{
	struct sl_experiment *e = NULL;
	struct sl_geometry geometry;
	int err = sl_experiment_open(show->args.plain[0], show->options.transfer, show->args.set,
				     show->args.sets, &e);

	if (err)
		return err;
	err = sl_experiment_open_detector(e, &geometry);
	if (!err)
		err = show_opened(show, e, &geometry);
	e->detector->close(e->detector_state);
	sl_experiment_close(e);
	return err;
}

static int show_run(struct show *show)
{
	struct sl_described described;
	uint64_t index = 0, number;
	int err;

	if (show->options.geometry) {
		err = sl_describe_file(show->args.plain[0], &described);
		return err ? err : draw_geometry(show, &described);
	}
	err = show->options.frame[0] ? parse_frame(&show->options, &index) : 0;

	if (!err)
		err = sl_show_file(show->args.plain[0], index, &show->picture, &number);
	if (!err)
		snprintf(show->what, sizeof(show->what), "image %llu, frame %llu",
			 (unsigned long long)index, (unsigned long long)number);
	return err;
}

static int write_picture(struct show *show)
{
	const struct show_options *o = &show->options;
	const struct sl_picture_look look = {o->scale, o->colours, o->low, o->high};
	struct sl_picture *p = &show->picture;
	uint8_t palette[256][3], *index;
	double range[2];
	int err;

	sl_picture_bin(p, o->bin);
	index = malloc((size_t)p->rows * p->columns);
	if (!index) {
		sl_error("no memory for a picture of %u x %u pixels", p->rows, p->columns);
		return -ENOMEM;
	}
	sl_picture_palette(o->colours, palette);
	err = sl_picture_colour(p, &look, index, range);
	if (!err)
		err = sl_png_write(o->output, p->rows, p->columns, index, palette);
	if (!err)
		printf("%s: %s; %u x %u pixels, colours from %.3g to %.3g\n", o->output, show->what,
		       p->rows, p->columns, range[0], range[1]);
	free(index);
	return err;
}

static int write_event(const struct show *show)
{
	const struct show_options *o = &show->options;
	int err = sl_png_write_rgb(o->output, o->height, show->rgb_columns, show->rgb);

	if (!err && o->geometry)
		printf("%s: %s; %u x %u pixels\n", o->output, show->what, o->height,
		       show->rgb_columns);
	else if (!err)
		printf("%s: %s; event %u; %u x %u pixels\n", o->output, show->what, o->event,
		       o->height, show->rgb_columns);
	return err;
}

int sl_cmd_show(const struct sl_command *command, int argc, char **argv)
{
	struct show show = {.what = ""};
	int err = sl_args_read(command, options, &show.options, argc, argv, &show.args);
	const char *output;

	if (err)
		return err > 0 ? 0 : 1;
	if (show.args.plains != 1) {
		sl_error("takes one experiment file or one file of a run; see sluice show --help");
		return 1;
	}
	output = show.options.output;
	if (sl_outputs_spare(show.args.plain[0], &output, 1))
		return 1;
	if (sl_show_is_file(show.args.plain[0]))
		err = show_run(&show);
	else
		err = show_experiment(&show);
	if (!err)
		err = show.rgb ? write_event(&show) : write_picture(&show);
	free(show.picture.pixels);
	free(show.rgb);
	return err ? 1 : 0;
}
