/* origin.c - options, file and name become one geometry. */
#include "detector/replay/origin.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "detector/places.h"
#include "hdf5/geometry.h"

enum { MODULE_ROWS = 512, MODULE_COLUMNS = 1024 };
#define USUAL_PIXEL_M 75e-6

/* Detectors whose modules and places are known by name. */
static const struct {
	const char *name;
	const struct sl_places *places;
} known[] = {{"jungfrau", &sl_places_jungfrau}, {"eiger", &sl_places_eiger}};

static const struct sl_places *places_of(const char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(name, known[i].name))
			return known[i].places;
	return NULL;
}

/* The detector of that name with as many modules. */
static void by_name(const char *name, uint32_t modules, struct sl_geometry *g)
{
	*g = (struct sl_geometry){.modules = modules,
				  .rows = MODULE_ROWS,
				  .columns = MODULE_COLUMNS,
				  .pixel_size_m = USUAL_PIXEL_M,
				  .sensor_thickness_m = 320e-6,
				  .sensor_material = "Si"};
	snprintf(g->detector, sizeof(g->detector), "%s", name);
	sl_places_fill(places_of(name), g);
}

static bool is_stack(const struct sl_geometry *g, const struct sl_stack_shape *shape)
{
	uint64_t rows = (uint64_t)shape->rows * (shape->modules ? shape->modules : 1);

	return rows == (uint64_t)g->modules * g->rows && shape->columns == g->columns;
}

static bool is_assembled(const struct sl_geometry *g, const struct sl_stack_shape *shape)
{
	return !shape->modules && shape->rows == g->layout.rows &&
	       shape->columns == g->layout.columns;
}

/* An image, or modules of equal height, of which nothing else is known. */
static int as_they_are(const char *name, const struct sl_stack_shape *shape, uint32_t modules,
		       struct sl_geometry *g)
{
	if (!shape->modules && shape->rows % modules) {
		sl_error("replay: %u rows cannot be cut into %u modules of the same height; change "
			 "detector.modules, or set detector.origin if the image is assembled",
			 shape->rows, modules);
		return -EINVAL;
	}
	*g = (struct sl_geometry){.modules = modules,
				  .rows = shape->modules ? shape->rows : shape->rows / modules,
				  .columns = shape->columns,
				  .pixel_size_m = USUAL_PIXEL_M};
	snprintf(g->detector, sizeof(g->detector), "%s", name[0] ? name : "replay");
	sl_layout_resolve(g, &g->layout);
	return 0;
}

static int refuse_shape(const char *file, const struct sl_stack_shape *shape,
			const struct sl_geometry *g)
{
	uint64_t rows = (uint64_t)shape->rows * (shape->modules ? shape->modules : 1);

	if (shape->columns == g->columns && rows % g->rows == 0)
		sl_error("replay: '%s' has %llu modules of %u x %u pixels; set detector.modules: "
			 "%llu",
			 file, (unsigned long long)(rows / g->rows), g->rows, g->columns,
			 (unsigned long long)(rows / g->rows));
	else
		sl_error("replay: '%s' has images of %u x %u; %u modules of a %s are %u x %u one "
			 "below the other, or %u x %u assembled. Set detector.modules to what it "
			 "is, to 1 for one panel, or detector.origin to another name",
			 file, shape->rows, shape->columns, g->modules, g->detector,
			 g->modules * g->rows, g->columns, g->layout.rows, g->layout.columns);
	return -EINVAL;
}

/* The assembled image as one piece: the beam stays where it is. */
static void as_panel(struct sl_geometry *g)
{
	g->rows = g->layout.rows;
	g->columns = g->layout.columns;
	g->modules = 1;
	g->layout.asic_rows = g->layout.asic_columns = g->layout.gap = 0;
	g->layout.module[0] = (struct sl_layout_module){.row = 0};
}

/* A layout that the file or the name gives. 1: it is for these images; 0: it is not, and the
 * modules are as they are. */
static int try_layout(const struct sl_stack_shape *shape, uint32_t modules, const char *file,
		      struct sl_origin_found *origin)
{
	struct sl_geometry *g = &origin->geometry;

	origin->cut = is_assembled(g, shape) && !is_stack(g, shape);
	if (origin->cut && modules == 1 && g->modules > 1) {
		origin->cut = false;
		as_panel(g);
		return 1;
	}
	if (modules != g->modules) {
		sl_error("replay: '%s' has images of %u modules; set detector.modules: %u%s", file,
			 g->modules, g->modules,
			 origin->cut ? ", or 1 to play the image as one panel" : "");
		return -EINVAL;
	}
	return origin->cut || is_stack(g, shape);
}

static void ask_for_origin(const struct sl_stack_shape *shape, uint32_t modules, const char *file)
{
	uint32_t rows = shape->modules ? shape->rows : shape->rows / modules;

	if (rows == MODULE_ROWS && shape->columns == MODULE_COLUMNS)
		sl_warn("replay: '%s' has modules of 512 x 1024 pixels, and does not say of which "
			"detector: they are played without gaps and wide pixels. Set "
			"detector.origin: jungfrau or eiger, or any other name if this is right",
			file);
}

/* One panel of any size, or what the name says: 0 or -errno. */
static int choose_named(const char *name, const struct sl_stack_shape *shape, uint32_t modules,
			const char *file, struct sl_origin_found *origin)
{
	struct sl_geometry *g = &origin->geometry;
	bool single;

	by_name(name, modules, g);
	single = modules == 1 && !is_stack(g, shape) && !is_assembled(g, shape);
	if (single && shape->columns == g->columns && shape->rows % g->rows == 0)
		return refuse_shape(file, shape, g);
	if (single) { /* assembled by others: pixels, sensor and name are right all the same */
		g->layout.rows = shape->rows;
		g->layout.columns = shape->columns;
		as_panel(g);
		g->layout.beam_row = shape->rows / 2.0;
		g->layout.beam_column = shape->columns / 2.0;
		return 0;
	}
	origin->cut = is_assembled(g, shape) && !is_stack(g, shape);
	return origin->cut || is_stack(g, shape) ? 0 : refuse_shape(file, shape, g);
}

static int choose_layout(const struct sl_origin_options *o, const struct sl_origin_file *from,
			 const struct sl_stack_shape *shape, uint32_t modules, const char *file,
			 struct sl_origin_found *origin)
{
	if (from->laid_out && (!o->name[0] || !strcmp(o->name, from->geometry.detector))) {
		int fits;

		origin->geometry = from->geometry;
		fits = try_layout(shape, modules, file, origin);
		if (fits)
			return fits < 0 ? fits : 0;
		sl_warn("replay: '%s': the images have another size than its detector: they are "
			"played as they are, without its layout",
			file);
	} else if (places_of(o->name)) {
		return choose_named(o->name, shape, modules, file, origin);
	} else if (!o->name[0]) {
		ask_for_origin(shape, modules, file);
	}
	origin->cut = false;
	return as_they_are(o->name, shape, modules, &origin->geometry);
}

static void take(double option, double file, double *value)
{
	if (option > 0)
		*value = option;
	else if (file > 0)
		*value = file;
}

static void set_beam(const struct sl_origin_options *o, const struct sl_origin_file *from,
		     const struct sl_origin_found *origin, struct sl_layout *layout)
{
	const struct sl_layout *known_beam = &from->geometry.layout;
	/* Of a file that others wrote: in pixels of its image. */
	bool usable = from->laid_out || origin->cut || origin->geometry.modules == 1;

	if (usable && isfinite(known_beam->beam_row) && isfinite(known_beam->beam_column)) {
		layout->beam_row = known_beam->beam_row;
		layout->beam_column = known_beam->beam_column;
	}
	if (o->beam_x != 0 || o->beam_y != 0) {
		layout->beam_row = layout->rows / 2.0 + o->beam_y;
		layout->beam_column = layout->columns / 2.0 + o->beam_x;
	}
}

static void set_figures(const struct sl_origin_options *o, const struct sl_origin_file *from,
			const struct sl_stack_shape *shape, struct sl_geometry *g)
{
	const struct sl_geometry *f = &from->geometry;

	take(o->photon_energy_keV, f->photon_energy_keV, &g->photon_energy_keV);
	take(o->distance_m, f->distance_m, &g->distance_m);
	take(o->pixel_size_m, f->pixel_size_m, &g->pixel_size_m);
	take(o->sensor_thickness_m, f->sensor_thickness_m, &g->sensor_thickness_m);
	if (f->sensor_material[0])
		memcpy(g->sensor_material, f->sensor_material, sizeof(g->sensor_material));
	if (o->sensor_material[0])
		snprintf(g->sensor_material, sizeof(g->sensor_material), "%s", o->sensor_material);
	g->dtype = shape->dtype;
	g->bit_depth = o->bit_depth   ? o->bit_depth
		       : f->bit_depth ? f->bit_depth
				      : 8 * (uint32_t)sl_dtype_bytes(shape->dtype);
	g->cells = o->cells;
}

void sl_origin_nothing(struct sl_origin_file *from)
{
	*from = (struct sl_origin_file){.geometry.layout = {.beam_row = NAN, .beam_column = NAN}};
}

uint32_t *sl_origin_places(const struct sl_geometry *g)
{
	uint64_t pixels = sl_geometry_pixels(g), all = g->modules * pixels;
	uint32_t *places = malloc(all * sizeof(*places));

	for (uint64_t i = 0; places && i < all; i++) {
		double row, column;

		/* The middle of a wide pixel is inside one of the image pixels it covers. */
		sl_layout_centre(g, (uint32_t)(i / pixels), (uint32_t)(i % pixels), &row, &column);
		places[i] = (uint32_t)row * g->layout.columns + (uint32_t)column;
	}
	return places;
}

/* Tilt and places of modules as they were recorded, where images and options leave them so. */
static int set_planes(const struct sl_origin_options *o, const struct sl_origin_file *from,
		      const char *file, struct sl_origin_found *origin)
{
	struct sl_geometry *g = &origin->geometry;
	bool panel = g->modules != from->geometry.modules;
	const char *why = NULL;

	if (!g->planes)
		return 0;
	if (panel && g->planes > 1)
		why = "the image is played as one panel";
	else if (o->distance_m > 0 || o->beam_x != 0 || o->beam_y != 0 || o->pixel_size_m > 0)
		why = "options of the detector set distance, beam or pixel size";
	if (why) {
		sl_warn("replay: '%s' was recorded with a tilt, or with modules out of their "
			"places, which is left out: %s; section geometry may say it",
			file, why);
		g->plane = NULL;
		g->planes = 0;
		return 0;
	}
	origin->plane = malloc(g->planes * sizeof(*origin->plane));
	if (!origin->plane)
		return -ENOMEM;
	memcpy(origin->plane, from->plane, g->planes * sizeof(*origin->plane));
	g->plane = origin->plane;
	return 0;
}

/* Of images that others wrote: a run goes on with the middle, and says so. */
static void ask_for_beam(const struct sl_origin_options *o, const struct sl_origin_file *from,
			 const char *file)
{
	const struct sl_layout *l = &from->geometry.layout;

	if (o->distance_m > 0 && o->beam_x == 0 && o->beam_y == 0 &&
	    !(isfinite(l->beam_row) && isfinite(l->beam_column)))
		sl_warn("replay: '%s' does not say where the beam hits: the middle of the image "
			"is taken; set detector.beam_x and beam_y, or section geometry",
			file);
}

/* Wide pixels are marked, and of use: but not in parts of an image that is one panel. */
static int set_mask(const struct sl_origin_file *from, const struct sl_stack_shape *shape,
		    struct sl_origin_found *origin)
{
	const struct sl_geometry *g = &origin->geometry;
	uint64_t all = g->modules * sl_geometry_pixels(g);
	uint64_t image_rows = (uint64_t)shape->rows * (shape->modules ? shape->modules : 1);
	bool panel = from->laid_out && g->modules != from->geometry.modules;
	uint32_t bad = panel ? UINT32_MAX : ~SL_MASK_VIRTUAL;
	uint32_t *places = NULL;

	if (!from->mask || from->mask_rows != image_rows || from->mask_columns != shape->columns)
		return 0;
	origin->mask = malloc(all);
	if (origin->cut)
		places = sl_origin_places(g);
	if (!origin->mask || (origin->cut && !places)) {
		free(places);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < all; i++)
		origin->mask[i] = (from->mask[places ? places[i] : i] & bad) != 0;
	free(places);
	return 0;
}

int sl_origin_find(const struct sl_origin_options *options, const struct sl_origin_file *from,
		   const struct sl_stack_shape *shape, uint32_t modules, const char *file,
		   struct sl_origin_found *origin)
{
	int err;

	*origin = (struct sl_origin_found){.cut = false};
	err = choose_layout(options, from, shape, modules, file, origin);
	if (err)
		return err;
	set_figures(options, from, shape, &origin->geometry);
	set_beam(options, from, origin, &origin->geometry.layout);
	ask_for_beam(options, from, file);
	err = set_planes(options, from, file, origin);
	return err ? err : set_mask(from, shape, origin);
}
