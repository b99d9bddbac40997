/* geom_check.c - panels that are whole, flat, and do not lie on each other in the data. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "geometry/geom.h"

static int lacks(const char *file, const struct sl_geom_panel *p, const char *what)
{
	sl_error("%s:%u: panel '%s' has no %s", file, p->line, p->name, what);
	return -EINVAL;
}

static int check_panel(const char *file, const struct sl_geom_panel *p)
{
	const struct {
		const char *key;
		double value;
	} needed[] = {{"min_fs", p->min_fs}, {"max_fs", p->max_fs},	{"min_ss", p->min_ss},
		      {"max_ss", p->max_ss}, {"corner_x", p->corner_x}, {"corner_y", p->corner_y},
		      {"res", p->res}};
	double across[3];

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (isnan(needed[i].value))
			return lacks(file, p, needed[i].key);
	if (p->min_fs > p->max_fs || p->min_ss > p->max_ss) {
		sl_error("%s:%u: panel '%s': min_fs and min_ss must not be above max_fs and max_ss",
			 file, p->line, p->name);
		return -EINVAL;
	}
	sl_vector_cross(p->fs, p->ss, across);
	if (!(sl_vector_length(across) >
	      1e-3 * sl_vector_length(p->fs) * sl_vector_length(p->ss))) {
		sl_error("%s:%u: panel '%s': fs and ss have the same direction", file, p->line,
			 p->name);
		return -EINVAL;
	}
	return 0;
}

static bool overlap(const struct sl_geom_panel *a, const struct sl_geom_panel *b)
{
	return a->module == b->module && a->min_fs <= b->max_fs && b->min_fs <= a->max_fs &&
	       a->min_ss <= b->max_ss && b->min_ss <= a->max_ss;
}

static bool is_said(double a, double b, double c, double d)
{
	return !isnan(a) && !isnan(b) && !isnan(c) && !isnan(d);
}

static int check_bad(const char *file, const struct sl_geom *g, const struct sl_geom_bad *b)
{
	const char *why = NULL;

	if (is_said(b->min_x, b->max_x, b->min_y, b->max_y))
		return 0;
	if (!is_said(b->min_fs, b->max_fs, b->min_ss, b->max_ss))
		why = "needs min_ and max_ of fs and ss, or of x and y";
	else if (!b->panel[0])
		why = "of fs and ss needs a panel";
	for (uint32_t i = 0; !why; i++) {
		if (i == g->panels)
			why = "is of a panel that is not there";
		else if (!strcmp(g->panel[i].name, b->panel))
			return 0;
	}
	sl_error("%s:%u: bad region '%s' %s", file, b->line, b->name, why);
	return -EINVAL;
}

int sl_geom_check(const char *file, const struct sl_geom *g)
{
	int err = 0;

	for (uint32_t i = 0; i < g->panels && !err; i++)
		err = check_panel(file, &g->panel[i]);
	for (uint32_t i = 0; i < g->panels && !err; i++)
		for (uint32_t k = 0; k < i; k++) {
			const struct sl_geom_panel *a = &g->panel[i], *b = &g->panel[k];

			if (!overlap(a, b))
				continue;
			sl_error("%s:%u: panel '%s' has pixels of the data that panel '%s' (line "
				 "%u) has as well",
				 file, a->line, a->name, b->name, b->line);
			return -EINVAL;
		}
	for (uint32_t i = 0; i < g->bads && !err; i++)
		err = check_bad(file, g, &g->bad[i]);
	return err;
}
