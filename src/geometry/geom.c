/* geom.c - CrystFEL's geometry files: lines to panels. */
#include "geometry/geom.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "geometry/text.h"

#define KEV_METRE 12.398419843320026e-10
#define FAR	  1e7 /* pixels */

struct group { /* of panels, or of groups */
	char name[SL_GEOM_NAME];
	unsigned line;
	char *members;
};

struct parser {
	struct sl_text text;
	struct sl_geom *geom;
	struct sl_geom_panel defaults;
	struct group *group;
	uint32_t groups;
};

/* ---- values ---- */

/* "+0.5x -0.9y +0.1z", "x", "-y". */
static int take_vector(struct parser *p, const char *key, const char *value, double to[3])
{
	double vector[3] = {0, 0, 0};
	const char *at = value;
	bool any = false;

	while (isspace((unsigned char)*at))
		at++;
	while (*at) {
		double sign = 1, number = 1;
		char *end;

		for (; *at == '+' || *at == '-' || isspace((unsigned char)*at); at++)
			sign *= *at == '-' ? -1 : 1;
		if (isdigit((unsigned char)*at) || *at == '.') {
			number = strtod(at, &end);
			for (at = end; isspace((unsigned char)*at);)
				at++;
		}
		if (*at < 'x' || *at > 'z' || !isfinite(number) || number > FAR)
			return sl_text_error(&p->text,
					     "%s: '%.60s' is no direction; takes one as "
					     "in +0.01x -0.99y",
					     key, value);
		vector[*at - 'x'] += sign * number;
		any = true;
		for (at++; isspace((unsigned char)*at);)
			at++;
	}
	if (!any || !(sl_vector_length(vector) > 0))
		return sl_text_error(&p->text, "%s: a direction of length 0", key);
	memcpy(to, vector, sizeof(vector));
	return 0;
}

static int take_whole(struct parser *p, const char *key, const char *value, double *to)
{
	double number;
	int err = sl_text_number(&p->text, key, value, 0, 1e9, &number);

	if (!err && number != floor(number))
		err = sl_text_error(&p->text, "%s: %g is no whole number", key, number);
	if (!err)
		*to = number;
	return err;
}

/* A number with a unit behind it: factor of the unit, 0: none of them. */
struct unit {
	const char *name;
	double factor;
};

/* 1: it is a place in the data, and no number. */
static int take_quantity(struct parser *p, const char *key, char *value, const struct unit *units,
			 double *to)
{
	double factor = units[0].factor, number;
	char *end = value, unit[16] = "";
	int err;

	if (*value == '/')
		return 1;
	(void)strtod(value, &end);
	if (end != value && *end) {
		snprintf(unit, sizeof(unit), "%s", end);
		*end = 0;
		for (factor = 0; units->name && !(factor > 0); units++)
			factor = !strcmp(sl_text_trim(unit), units->name) ? units->factor : 0;
	}
	err = sl_text_number(&p->text, key, value, -1e12, 1e12, &number);
	if (!err && !(factor > 0))
		err = sl_text_error(&p->text, "%s: '%s' is no unit of it", key, sl_text_trim(unit));
	if (!err)
		*to = number * factor;
	return err;
}

static int take_dimension(struct parser *p, const char *key, const char *value,
			  struct sl_geom_panel *panel)
{
	if (!strcmp(value, "%") || !strcmp(value, "ss") || !strcmp(value, "fs"))
		return 0;
	return take_whole(p, key, value, &panel->module);
}

/* ---- panels ---- */

static bool is_one_of(const char *key, const char *const *names)
{
	for (; *names; names++) {
		size_t n = strlen(*names);

		if ((*names)[n - 1] == '*' ? !strncmp(key, *names, n - 1) : !strcmp(key, *names))
			return true;
	}
	return false;
}

/* Of CrystFEL's keys those that say nothing about places. */
static bool is_passed_over(const char *key)
{
	static const char *const names[] = {"adu_per_eV",
					    "adu_per_photon",
					    "data",
					    "max_adu",
					    "flag_*",
					    "saturation_map*",
					    "badrow_direction",
					    "peak_list*",
					    "bandwidth",
					    "electron_voltage",
					    "rail_direction",
					    "clen_for_centering",
					    "mask*",
					    "median_filter",
					    "integr_radius",
					    "dead_time",
					    "gain*",
					    "offset*",
					    "badmap*",
					    NULL};

	return is_one_of(key, names);
}

static int take_panel_number(struct parser *p, struct sl_geom_panel *panel, const char *key,
			     const char *value, bool *known)
{
	const struct {
		const char *key;
		double *to;
		bool whole;
		double low, high;
	} number[] = {
		{"min_fs", &panel->min_fs, true, 0, 0},
		{"max_fs", &panel->max_fs, true, 0, 0},
		{"min_ss", &panel->min_ss, true, 0, 0},
		{"max_ss", &panel->max_ss, true, 0, 0},
		{"mask_edge_pixels", &panel->edge, true, 0, 0},
		{"corner_x", &panel->corner_x, false, -FAR, FAR},
		{"corner_y", &panel->corner_y, false, -FAR, FAR},
		{"res", &panel->res, false, 1e-3, 1e9},
		{"coffset", &panel->coffset, false, -1000, 1000},
	};

	*known = true;
	for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++)
		if (!strcmp(key, number[i].key))
			return number[i].whole ? take_whole(p, key, value, number[i].to)
					       : sl_text_number(&p->text, key, value, number[i].low,
								number[i].high, number[i].to);
	*known = false;
	return 0;
}

static int take_panel(struct parser *p, struct sl_geom_panel *panel, const char *key, char *value)
{
	bool known;
	int err = take_panel_number(p, panel, key, value, &known);

	if (known)
		return err;
	if (!strcmp(key, "fs"))
		return take_vector(p, key, value, panel->fs);
	if (!strcmp(key, "ss"))
		return take_vector(p, key, value, panel->ss);
	if (!strncmp(key, "dim", 3) && isdigit((unsigned char)key[3]) && !key[4])
		return take_dimension(p, key, value, panel);
	if (!strcmp(key, "no_index")) {
		panel->no_index = strcmp(value, "0") != 0 && strcmp(value, "false") != 0;
		return 0;
	}
	if (!strncmp(key, "mask", 4))
		p->geom->has_mask = true;
	if (is_passed_over(key))
		return 0;
	return sl_text_error(&p->text, "'%.60s' is no key that CrystFEL knows", key);
}

static int take_bad(struct parser *p, struct sl_geom_bad *bad, const char *key, const char *value)
{
	const struct {
		const char *key;
		double *to;
		bool whole;
	} number[] = {
		{"min_fs", &bad->min_fs, true}, {"max_fs", &bad->max_fs, true},
		{"min_ss", &bad->min_ss, true}, {"max_ss", &bad->max_ss, true},
		{"min_x", &bad->min_x, false},	{"max_x", &bad->max_x, false},
		{"min_y", &bad->min_y, false},	{"max_y", &bad->max_y, false},
	};

	if (!strcmp(key, "panel")) {
		snprintf(bad->panel, sizeof(bad->panel), "%s", value);
		return 0;
	}
	for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++)
		if (!strcmp(key, number[i].key))
			return number[i].whole ? take_whole(p, key, value, number[i].to)
					       : sl_text_number(&p->text, key, value, -FAR, FAR,
								number[i].to);
	return sl_text_error(&p->text, "'%.60s' is no key of a bad region", key);
}

/* Room for one more of so many, in steps. */
static int grow(void **list, uint32_t count, size_t each)
{
	void *more;

	if (count % 64)
		return 0;
	more = realloc(*list, ((size_t)count + 64) * each);
	if (!more)
		return -ENOMEM;
	*list = more;
	return 0;
}

static int find_panel(struct parser *p, const char *name, struct sl_geom_panel **panel)
{
	struct sl_geom *g = p->geom;
	int err;

	for (uint32_t i = g->panels; i-- > 0;)
		if (!strcmp(g->panel[i].name, name)) {
			*panel = &g->panel[i];
			return 0;
		}
	if (g->panels == SL_GEOM_PANELS)
		return sl_text_error(&p->text, "more than %d panels", SL_GEOM_PANELS);
	err = grow((void **)&g->panel, g->panels, sizeof(*g->panel));
	if (err)
		return err;
	*panel = &g->panel[g->panels++];
	**panel = p->defaults;
	snprintf((*panel)->name, sizeof((*panel)->name), "%s", name);
	(*panel)->line = p->text.line;
	return 0;
}

static int find_bad(struct parser *p, const char *name, struct sl_geom_bad **bad)
{
	struct sl_geom *g = p->geom;
	int err;

	for (uint32_t i = g->bads; i-- > 0;)
		if (!strcmp(g->bad[i].name, name)) {
			*bad = &g->bad[i];
			return 0;
		}
	if (g->bads == SL_GEOM_PANELS)
		return sl_text_error(&p->text, "more than %d bad regions", SL_GEOM_PANELS);
	err = grow((void **)&g->bad, g->bads, sizeof(*g->bad));
	if (err)
		return err;
	*bad = &g->bad[g->bads++];
	**bad = (struct sl_geom_bad){.line = p->text.line,
				     .min_fs = NAN,
				     .max_fs = NAN,
				     .min_ss = NAN,
				     .max_ss = NAN,
				     .min_x = NAN,
				     .max_x = NAN,
				     .min_y = NAN,
				     .max_y = NAN};
	snprintf((*bad)->name, sizeof((*bad)->name), "%s", name);
	return 0;
}

/* ---- groups: known by name, and without effect ---- */

static int add_group(struct parser *p, const char *name, const char *members)
{
	int err = p->groups < SL_GEOM_PANELS
			  ? 0
			  : sl_text_error(&p->text, "more than %d groups", SL_GEOM_PANELS);

	if (!err)
		err = grow((void **)&p->group, p->groups, sizeof(*p->group));
	if (err)
		return err;
	p->group[p->groups] = (struct group){.line = p->text.line, .members = strdup(members)};
	if (!p->group[p->groups].members)
		return -ENOMEM;
	snprintf(p->group[p->groups].name, SL_GEOM_NAME, "%s", name);
	p->groups++;
	return 0;
}

static bool is_member(const struct parser *p, const char *name)
{
	for (uint32_t i = 0; i < p->geom->panels; i++)
		if (!strcmp(p->geom->panel[i].name, name))
			return true;
	for (uint32_t i = 0; i < p->groups; i++)
		if (!strcmp(p->group[i].name, name))
			return true;
	return false;
}

static int check_groups(struct parser *p)
{
	for (uint32_t i = 0; i < p->groups; i++) {
		char *save = NULL;

		for (char *m = strtok_r(p->group[i].members, ",", &save); m;
		     m = strtok_r(NULL, ",", &save)) {
			m = sl_text_trim(m);
			p->text.line = p->group[i].line;
			if (!is_member(p, m))
				return sl_text_error(&p->text,
						     "group '%s': no panel or group is called "
						     "'%.60s'",
						     p->group[i].name, m);
		}
	}
	return 0;
}

/* ---- the lines ---- */

/* A place in the data leaves it unknown. */
static int take_beam(struct parser *p, const char *key, char *value)
{
	static const struct unit energy[] = {{"eV", 1e-3}, {"keV", 1}, {"MeV", 1e3}, {NULL, 0}};
	static const struct unit length[] = {{"m", 1}, {"A", 1e-10}, {NULL, 0}};
	double wavelength = 0;
	int err;

	if (!strcmp(key, "photon_energy")) {
		err = take_quantity(p, key, value, energy, &p->geom->energy_keV);
	} else {
		err = take_quantity(p, key, value, length, &wavelength);
		if (!err)
			p->geom->energy_keV = KEV_METRE / wavelength;
	}
	if (!err && !(p->geom->energy_keV > 1e-3 && p->geom->energy_keV < 1e4))
		err = sl_text_error(&p->text, "%s: %g keV is no energy of a photon", key,
				    p->geom->energy_keV);
	return err > 0 ? 0 : err;
}

static int take_length(struct parser *p, const char *key, char *value, double *to)
{
	static const struct unit length[] = {{"m", 1}, {"mm", 1e-3}, {NULL, 0}};
	double number;
	int err = take_quantity(p, key, value, length, &number);

	if (!err && fabs(number) > 1000)
		err = sl_text_error(&p->text, "%s: %g m is out of range", key, number);
	if (!err)
		*to = number;
	return err > 0 ? 0 : err;
}

static int take_top(struct parser *p, const char *key, char *value)
{
	if (!strcmp(key, "clen")) {
		p->geom->clen_line = p->text.line;
		p->geom->clen = NAN;
		return take_length(p, key, value, &p->geom->clen);
	}
	if (!strcmp(key, "photon_energy") || !strcmp(key, "wavelength"))
		return take_beam(p, key, value);
	if (!strcmp(key, "detector_shift_x"))
		return take_length(p, key, value, &p->geom->shift_x);
	if (!strcmp(key, "detector_shift_y"))
		return take_length(p, key, value, &p->geom->shift_y);
	if (!strncmp(key, "group_", 6))
		return add_group(p, key + 6, value);
	if (!strncmp(key, "rigid_group_collection_", 23))
		return add_group(p, key + 23, value);
	if (!strncmp(key, "rigid_group_", 12))
		return add_group(p, key + 12, value);
	return take_panel(p, &p->defaults, key, value);
}

static int take_line(struct parser *p, char *line)
{
	char *equals = strchr(line, '='), *key, *value, *slash;
	struct sl_geom_panel *panel;
	struct sl_geom_bad *bad;
	int err;

	if (!*line)
		return 0;
	if (!equals)
		return sl_text_error(&p->text, "'%.60s' is no line of the form  key = value", line);
	*equals = 0;
	key = sl_text_trim(line);
	value = sl_text_trim(equals + 1);
	slash = strchr(key, '/');
	if (!slash)
		return take_top(p, key, value);
	*slash = 0;
	if (!*key || strlen(key) >= SL_GEOM_NAME)
		return sl_text_error(&p->text, "'%.80s' is no name of a panel", key);
	if (!strncmp(key, "bad", 3)) {
		err = find_bad(p, key, &bad);
		return err ? err : take_bad(p, bad, slash + 1, value);
	}
	if (!strcmp(slash + 1, "clen")) /* of the time when each panel had its own */
		return take_top(p, slash + 1, value);
	err = find_panel(p, key, &panel);
	return err ? err : take_panel(p, panel, slash + 1, value);
}

int sl_geom_parse(const char *file, const char *text, size_t bytes, struct sl_geom *geom)
{
	struct parser p = {.geom = geom,
			   .defaults = {.min_fs = NAN,
					.max_fs = NAN,
					.min_ss = NAN,
					.max_ss = NAN,
					.corner_x = NAN,
					.corner_y = NAN,
					.fs = {1, 0, 0},
					.ss = {0, 1, 0},
					.res = NAN,
					.module = -1}};
	char *line;
	int more, err = 0;

	*geom = (struct sl_geom){.clen = NAN, .energy_keV = NAN};
	sl_text_begin(&p.text, file, text, bytes);
	while (!err && (more = sl_text_next(&p.text, ';', &line)) != 0)
		err = more < 0 ? more : take_line(&p, line);
	if (!err && !geom->panels)
		err = sl_text_error(&p.text, "the file ends without a panel");
	if (!err)
		err = check_groups(&p);
	if (!err)
		err = sl_geom_check(file, geom);
	for (uint32_t i = 0; i < p.groups; i++)
		free(p.group[i].members);
	free(p.group);
	return err;
}

void sl_geom_free(struct sl_geom *geom)
{
	free(geom->panel);
	free(geom->bad);
	*geom = (struct sl_geom){.panels = 0};
}
