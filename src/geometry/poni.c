/* poni.c - PONI files, read and written. */
#include "geometry/poni.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "geometry/text.h"

/* Metres: no sample is farther away, and no wavelength of X-rays is outside. */
#define FAR	     1000.0
#define WAVE_LEAST   1e-13
#define WAVE_MOST    1e-6
#define PIXEL_MOST   0.1
#define TURN_MOST    7.0 /* radians: a turn */
#define HIGHEST_SIDE 1e6

struct parser {
	struct sl_text text;
	struct sl_poni_file *out;
	double version;
	double distance, poni1, poni2, rot1, rot2, rot3; /* NaN: not there yet */
	bool named, configured;				 /* Detector, Detector_config */
};

/* ---- Detector_config: one object of JSON ---- */

static const char *blanks(const char *at)
{
	while (isspace((unsigned char)*at))
		at++;
	return at;
}

/* Behind a string in quotes; NULL: it does not end. */
static const char *behind_string(const char *at)
{
	for (at++; *at && *at != '"'; at++)
		if (*at == '\\' && !*++at)
			return NULL;
	return *at ? at + 1 : NULL;
}

/* Behind a value of any kind: up to a comma or the bracket that closes what is around it. */
static const char *behind_value(const char *at)
{
	int depth = 0;

	while (at && *at) {
		if (depth == 0 && (*at == ',' || *at == '}'))
			return at;
		if (*at == '"') {
			at = behind_string(at);
			continue;
		}
		depth += *at == '[' || *at == '{';
		depth -= *at == ']' || *at == '}';
		if (depth < 0)
			return NULL;
		at++;
	}
	return NULL;
}

static int take_shape(struct parser *p, const char *value)
{
	double side[2];
	char *end = NULL;

	if (!strncmp(value, "null", 4))
		return 0;
	side[0] = *value == '[' ? strtod(value + 1, &end) : NAN;
	if (!isfinite(side[0]) || *blanks(end) != ',')
		return sl_text_error(&p->text, "max_shape: takes [rows, columns]");
	side[1] = strtod(blanks(end) + 1, &end);
	if (*blanks(end) != ']' || !(side[0] >= 1 && side[0] <= HIGHEST_SIDE) ||
	    !(side[1] >= 1 && side[1] <= HIGHEST_SIDE))
		return sl_text_error(&p->text, "max_shape: takes [rows, columns]");
	p->out->rows = (uint32_t)side[0];
	p->out->columns = (uint32_t)side[1];
	p->out->shape_line = p->text.line;
	return 0;
}

static int take_config(struct parser *p, const char *key, const char *value, size_t bytes)
{
	char buffer[64], *text;
	double number;
	int err;

	if (!strcmp(key, "max_shape") || !strcmp(key, "shape"))
		return take_shape(p, value);
	snprintf(buffer, sizeof(buffer), "%.*s", (int)(bytes < 63 ? bytes : 63), value);
	text = sl_text_trim(buffer);
	if (!strcasecmp(key, "splineFile") && strcmp(text, "null") != 0)
		return sl_text_error(&p->text, "a spline file describes a distortion, which is "
					       "not known here");
	if (!strcmp(text, "null"))
		return 0;
	if (!strcmp(key, "pixel1") || !strcmp(key, "pixel2")) {
		err = sl_text_number(&p->text, key, text, 1e-9, PIXEL_MOST, &number);
		if (!err)
			*(key[5] == '1' ? &p->out->pixel1 : &p->out->pixel2) = number;
		p->out->pixel_line = p->text.line;
		return err;
	}
	if (!strcmp(key, "orientation")) {
		err = sl_text_number(&p->text, key, text, 0, 4, &number);
		if (!err)
			p->out->orientation = number < 1 ? 3 : (uint32_t)number;
		return err;
	}
	return 0;
}

static int parse_config(struct parser *p, const char *at)
{
	int err = 0;

	p->configured = true;
	if (!strcmp(at, "None") || !strcmp(at, "null"))
		return 0;
	if (*at != '{')
		return sl_text_error(&p->text, "Detector_config: takes a map, as in {\"pixel1\": "
					       "7.5e-05}");
	at = blanks(at + 1);
	while (*at != '}' && !err) {
		const char *name = at, *end = *at == '"' ? behind_string(at) : NULL, *value;
		char key[32];

		at = end ? blanks(end) : NULL;
		value = at && *at == ':' ? blanks(at + 1) : NULL;
		at = value ? behind_value(value) : NULL;
		if (!at)
			return sl_text_error(&p->text,
					     "Detector_config: it is no map of names to values");
		snprintf(key, sizeof(key), "%.*s", (int)(end - name - 2 < 31 ? end - name - 2 : 31),
			 name + 1);
		err = take_config(p, key, value, (size_t)(at - value));
		if (*at == ',')
			at = blanks(at + 1);
	}
	return err;
}

/* ---- the lines ---- */

static int take_version(struct parser *p, const char *value)
{
	int err = sl_text_number(&p->text, "poni_version", value, 0, 1e6, &p->version);

	if (err || p->version == 1 || p->version == 2 || p->version == 2.1)
		return err;
	return sl_text_error(&p->text, "poni_version: %g is not known here; 1, 2 and 2.1 are",
			     p->version);
}

static int take(struct parser *p, const char *key, char *value)
{
	const struct {
		const char *key, *also;
		double *to, low, high;
	} number[] = {
		{"distance", "dist", &p->distance, 1e-6, FAR},
		{"poni1", NULL, &p->poni1, -FAR, FAR},
		{"poni2", NULL, &p->poni2, -FAR, FAR},
		{"rot1", NULL, &p->rot1, -TURN_MOST, TURN_MOST},
		{"rot2", NULL, &p->rot2, -TURN_MOST, TURN_MOST},
		{"rot3", NULL, &p->rot3, -TURN_MOST, TURN_MOST},
		{"wavelength", NULL, &p->out->wavelength_m, WAVE_LEAST, WAVE_MOST},
		{"pixelsize1", NULL, &p->out->pixel1, 1e-9, PIXEL_MOST},
		{"pixelsize2", NULL, &p->out->pixel2, 1e-9, PIXEL_MOST},
	};

	if (!strcasecmp(key, "poni_version"))
		return take_version(p, value);
	if (!strcasecmp(key, "detector_config"))
		return parse_config(p, value);
	if (!strcasecmp(key, "detector"))
		p->named = true;
	if (!strcasecmp(key, "splinefile") && strcasecmp(value, "none") != 0)
		return sl_text_error(&p->text, "SplineFile: a distortion, which is not known here");
	for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++) {
		if (strcasecmp(key, number[i].key) != 0 &&
		    (!number[i].also || strcasecmp(key, number[i].also) != 0))
			continue;
		if (!strcasecmp(value, "none"))
			return 0;
		if (!strncasecmp(key, "pixel", 5))
			p->out->pixel_line = p->text.line;
		return sl_text_number(&p->text, key, value, number[i].low, number[i].high,
				      number[i].to);
	}
	return 0; /* pyFAI takes no notice of others, too */
}

static int complete(struct parser *p)
{
	const struct {
		const char *key;
		double value;
	} needed[] = {{"Distance", p->distance}, {"Poni1", p->poni1}, {"Poni2", p->poni2},
		      {"Rot1", p->rot1},	 {"Rot2", p->rot2},   {"Rot3", p->rot3}};

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (isnan(needed[i].value))
			return sl_text_error(&p->text, "the file ends without %s", needed[i].key);
	if (p->version >= 2 && (!p->named || !p->configured))
		return sl_text_error(&p->text, "version %g: the file ends without %s", p->version,
				     p->named ? "Detector_config" : "Detector");
	p->out->poni = (struct sl_poni){p->distance, p->poni1, p->poni2, p->rot1, p->rot2, p->rot3};
	return 0;
}

int sl_poni_parse(const char *file, const char *text, size_t bytes, struct sl_poni_file *poni)
{
	struct parser p = {.out = poni,
			   .version = 1,
			   .distance = NAN,
			   .poni1 = NAN,
			   .poni2 = NAN,
			   .rot1 = NAN,
			   .rot2 = NAN,
			   .rot3 = NAN};
	char *line, *colon;
	int more, err = 0;

	*poni = (struct sl_poni_file){.orientation = 3};
	sl_text_begin(&p.text, file, text, bytes);
	while (!err && (more = sl_text_next(&p.text, 0, &line)) != 0) {
		if (more < 0)
			return more;
		colon = strchr(line, ':');
		if (line[0] == '#' || !colon)
			continue;
		*colon = 0;
		err = take(&p, sl_text_trim(line), sl_text_trim(colon + 1));
	}
	return err ? err : complete(&p);
}

static bool same_size(double a, double b)
{
	return fabs(a - b) <= 1e-4 * b;
}

static int check(const char *file, const struct sl_poni_file *p, const struct sl_geometry *g)
{
	double size = g->pixel_size_m;

	if ((p->pixel1 > 0 && !same_size(p->pixel1, size)) ||
	    (p->pixel2 > 0 && !same_size(p->pixel2, size))) {
		sl_error("%s:%u: pixels of %g x %g um; the detector's have %g um", file,
			 p->pixel_line, p->pixel1 * 1e6, p->pixel2 * 1e6, size * 1e6);
		return -EINVAL;
	}
	if (p->rows && (p->rows != g->layout.rows || p->columns != g->layout.columns)) {
		sl_error("%s:%u: an image of %u x %u pixels; the detector's, assembled, has %u x "
			 "%u",
			 file, p->shape_line, p->rows, p->columns, g->layout.rows,
			 g->layout.columns);
		return -EINVAL;
	}
	return 0;
}

/* Rows or columns counted from the other end. */
static void flip(double corner[3], double along[3], double count)
{
	for (int i = 0; i < 3; i++) {
		corner[i] += count * along[i];
		along[i] = -along[i];
	}
}

/* pyFAI's axes 1 and 2 point up and to the left of who looks along the beam. Its default, 3, counts
 * rows upwards and columns to the left; here that is turned by half a turn about the beam, so that
 * rows run down as in any picture. The others say how the image really lies. */
static void orient(const struct sl_poni_file *p, const struct sl_geometry *g,
		   struct sl_plane *plane)
{
	if (p->orientation == 3)
		return;
	for (int i = 0; i < 2; i++) {
		plane->corner[i] = -plane->corner[i];
		plane->down[i] = -plane->down[i];
		plane->right[i] = -plane->right[i];
	}
	if (p->orientation == 1 || p->orientation == 2)
		flip(plane->corner, plane->down, g->layout.rows);
	if (p->orientation == 1 || p->orientation == 4)
		flip(plane->corner, plane->right, g->layout.columns);
}

int sl_poni_plane(const char *file, const struct sl_poni_file *poni, const struct sl_geometry *g,
		  struct sl_plane *plane)
{
	int err = check(file, poni, g);

	if (err)
		return err;
	sl_plane_from_poni(&poni->poni, g->pixel_size_m, g->pixel_size_m, plane);
	orient(poni, g, plane);
	return 0;
}

void sl_poni_write(FILE *out, const struct sl_poni_file *p)
{
	fputs("# 1 is along the rows of the assembled image, downwards; 2 along its columns\n"
	      "poni_version: 2\nDetector: Detector\n",
	      out);
	fprintf(out, "Detector_config: {\"pixel1\": %.17g, \"pixel2\": %.17g", p->pixel1,
		p->pixel2);
	if (p->rows)
		fprintf(out, ", \"max_shape\": [%u, %u]", p->rows, p->columns);
	fprintf(out,
		"}\nDistance: %.17g\nPoni1: %.17g\nPoni2: %.17g\nRot1: %.17g\nRot2: %.17g\n"
		"Rot3: %.17g\n",
		p->poni.distance, p->poni.poni1, p->poni.poni2, p->poni.rot1, p->poni.rot2,
		p->poni.rot3);
	if (p->wavelength_m > 0)
		fprintf(out, "Wavelength: %.17g\n", p->wavelength_m);
}
