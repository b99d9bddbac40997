/* shares.c - shares of pixels in cells: counted, then written down. */
#include "stage/shares.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "stage/radial.h"
#include "stage/radial_maths.h"

/* A pixel in one direction, in bins: where it begins and ends, and which bins it has a share of. */
struct span {
	double from, to;
	uint32_t first, count, bins;
	bool fold_low, fold_high; /* what lies beyond the first and last bin counts there */
};

static struct span span_of(double middle, double half, uint32_t bins, bool fold_low, bool fold_high)
{
	struct span s = {.from = middle - half,
			 .to = middle + half,
			 .bins = bins,
			 .fold_low = fold_low,
			 .fold_high = fold_high};
	double first = s.from, last = s.to;

	if (fold_low && first < 0)
		first = 0;
	if (fold_high && first >= bins)
		first = bins - 0.5;
	/* Also when one is not a number. A box that only touches the range has no share of it. */
	if (!(first < bins) || !(half > 0 ? last > 0 : first >= 0))
		return s;
	s.first = first > 0 ? (uint32_t)first : 0;
	s.count = (last < bins ? (uint32_t)last : bins - 1) - s.first + 1;
	return s;
}

static double share_of(const struct span *s, uint32_t bin)
{
	double low = bin, high = bin + 1.0;

	if (!(s->to > s->from))
		return 1;
	if (s->from > low || (s->fold_low && bin == 0))
		low = s->from;
	if (s->to < high || (s->fold_high && bin == s->bins - 1))
		high = s->to;
	return high > low ? (high - low) / (s->to - s->from) : 0;
}

/* What is needed to make the tables. */
struct making {
	struct sl_shares *shares;
	const struct sl_shares_options *options;
	const struct sl_rays *rays;
	const struct sl_env *env;
	uint32_t module_pixels;
};

struct footprint {
	struct span bins, sectors;
	double norm;
};

static bool is_good(const struct making *m, uint64_t pixel)
{
	const float *flat = m->options->flat, *dark = m->options->dark;

	return !sl_radial_is_masked(m->env, pixel) && (!dark || isfinite(dark[pixel])) &&
	       (!flat || (isfinite(flat[pixel]) && flat[pixel] > 0));
}

static struct footprint footprint_of(const struct making *m, uint64_t pixel)
{
	const struct sl_shares *s = m->shares;
	uint32_t module = (uint32_t)(pixel / m->module_pixels);
	uint32_t inside = (uint32_t)(pixel % m->module_pixels);
	double scale = s->bins / (s->high - s->low);
	struct footprint f = {.norm = 0};
	struct sl_ray ray;

	if (!is_good(m, pixel))
		return f;
	ray = m->options->boxes ? sl_rays_box(m->rays, module, inside)
				: sl_rays_middle(m->rays, module, inside);
	f.bins = span_of((ray.x - s->low) * scale, ray.half_x * scale, s->bins, s->low == 0, false);
	f.sectors = (struct span){.count = 1, .bins = 1};
	if (m->options->sectors)
		f.sectors = span_of((ray.chi + 180) / 360 * s->sectors,
				    ray.half_chi / 360 * s->sectors, s->sectors, true, true);
	f.norm = ray.norm * (m->options->flat ? m->options->flat[pixel] : 1);
	if (!(f.norm > 0))
		f.bins.count = 0;
	return f;
}

/* How many shares there are, how many of them the fullest cell has, the largest norm. */
struct census {
	uint64_t used, shares, most;
	double norm;
};

static struct census count(const struct making *m, uint32_t *in_cell)
{
	struct census c = {.most = 1};

	for (uint64_t i = 0; i < m->shares->pixels; i++) {
		struct footprint f = footprint_of(m, i);

		c.used += f.bins.count > 0;
		c.shares += f.bins.count ? (uint64_t)f.bins.count * f.sectors.count : 1;
		c.norm = f.bins.count && f.norm > c.norm ? f.norm : c.norm;
		for (uint32_t a = 0; f.bins.count && a < f.sectors.count; a++)
			for (uint32_t b = 0; b < f.bins.count; b++) {
				uint64_t at = (uint64_t)(f.sectors.first + a) * m->shares->bins +
					      f.bins.first + b;

				in_cell[at]++;
				c.most = in_cell[at] > c.most ? in_cell[at] : c.most;
			}
	}
	return c;
}

static int bits_of(uint64_t number)
{
	int bits = 0;

	for (; number; number >>= 1)
		bits++;
	return bits;
}

/* Sums of values times shares fit into 63 bits, and those of norms. */
static void choose_units(struct sl_shares *s, const struct sl_shares_options *o,
			 const struct census *c)
{
	int room = 62 - (int)o->value_bits - bits_of(c->most), exponent;

	s->bits = !o->boxes ? 0 : room < SL_SHARE_BITS ? room : SL_SHARE_BITS;
	frexp(c->norm, &exponent);
	s->norm_unit =
		ldexp(1, exponent - (62 - bits_of(c->most) < 40 ? 62 - bits_of(c->most) : 40));
}

static void add_share(struct sl_shares *s, uint64_t pixel, uint32_t cell, uint32_t share)
{
	s->total[cell] += sl_shares_norm(s, pixel, share);
	if (s->dark)
		s->dark_total[cell] += sl_shares_dark(s, pixel, share);
}

static void fill_pixel(const struct making *m, uint64_t pixel, uint32_t *next)
{
	struct sl_shares *s = m->shares;
	struct footprint f = footprint_of(m, pixel);

	s->norm[pixel] = f.bins.count ? (float)f.norm : 0;
	if (s->cell)
		s->cell[pixel] = s->cells;
	else if (!f.bins.count)
		s->share[(*next)++] = (struct sl_share){s->cells, 0};
	for (uint32_t a = 0; f.bins.count && a < f.sectors.count; a++)
		for (uint32_t b = 0; b < f.bins.count; b++) {
			uint32_t bin = f.bins.first + b, sector = f.sectors.first + a;
			uint32_t cell = sector * s->bins + bin;
			double part = share_of(&f.bins, bin) * share_of(&f.sectors, sector);
			uint32_t share = (uint32_t)lrint(part * (1u << s->bits));

			if (s->cell)
				s->cell[pixel] = cell;
			else
				s->share[(*next)++] = (struct sl_share){cell, share};
			add_share(s, pixel, cell, share);
		}
	if (!s->cell)
		s->share[*next - 1].share |= SL_SHARE_LAST;
}

static void fill(const struct making *m)
{
	struct sl_shares *s = m->shares;
	uint32_t next = 0;

	for (uint64_t i = 0; i < s->pixels; i++) {
		if (s->dark)
			s->dark[i] = m->options->dark[i];
		if (s->first)
			s->first[i] = next;
		fill_pixel(m, i, &next);
	}
	if (s->first)
		s->first[s->pixels] = next;
}

static int refuse(const char *who, const char *why)
{
	sl_error("%s: %s", who, why);
	return -EINVAL;
}

static int allocate(struct sl_shares *s, const struct sl_shares_options *o, uint64_t shares,
		    const char *who)
{
	uint64_t per_cell = s->cells * sizeof(int64_t), per_pixel = s->pixels * sizeof(float);
	uint64_t table = o->boxes ? shares * sizeof(struct sl_share) + per_pixel + sizeof(uint32_t)
				  : per_pixel;
	char *at;
	int err = sl_region_open(SL_REGION_HOST,
				 2 * per_cell + table + (o->dark ? 2 : 1) * per_pixel, &s->memory);

	if (err) {
		sl_error("%s: no memory for tables of %llu pixels and %llu shares", who,
			 (unsigned long long)s->pixels, (unsigned long long)shares);
		return err;
	}
	at = s->memory.base;
	memset(at, 0, 2 * per_cell);
	s->total = (int64_t *)at;
	s->dark_total = (double *)(at + per_cell);
	at += 2 * per_cell;
	if (o->boxes) {
		s->share = (struct sl_share *)at;
		s->first = (uint32_t *)(at + shares * sizeof(struct sl_share));
	} else {
		s->cell = (uint32_t *)at;
	}
	s->norm = (float *)(at + table);
	s->dark = o->dark ? s->norm + s->pixels : NULL;
	return 0;
}

static int make(struct making *m, const char *who)
{
	struct sl_region counts;
	struct census census;
	int err = sl_region_open(SL_REGION_HOST, m->shares->cells * sizeof(uint32_t), &counts);

	if (err) {
		sl_error("%s: no memory for %u cells", who, m->shares->cells);
		return err;
	}
	memset(counts.base, 0, m->shares->cells * sizeof(uint32_t));
	census = count(m, counts.base);
	sl_region_close(&counts);
	if (!census.used)
		return refuse(who, "no pixel that is not masked lies between low and high");
	if (census.shares > UINT32_MAX)
		return refuse(who, "pixels have shares of too many bins: take fewer");
	choose_units(m->shares, m->options, &census);
	err = allocate(m->shares, m->options, census.shares, who);
	if (!err)
		fill(m);
	return err;
}

int sl_shares_open(struct sl_shares *shares, const struct sl_shares_options *o,
		   const struct sl_rays *rays, const struct sl_env *env, const char *who)
{
	struct making m = {.shares = shares,
			   .options = o,
			   .rays = rays,
			   .env = env,
			   .module_pixels = (uint32_t)sl_geometry_pixels(env->geometry)};
	double high = o->high;
	int err = sl_radial_range(rays, o->boxes, o->low, &high, who);

	if (err)
		return err;
	*shares = (struct sl_shares){
		.bins = o->bins,
		.sectors = o->sectors ? o->sectors : 1,
		.low = o->low,
		.high = high,
		.pixels = env->geometry->modules * sl_geometry_pixels(env->geometry),
	};
	shares->cells = shares->bins * shares->sectors;
	err = make(&m, who);
	if (err)
		sl_shares_close(shares);
	return err;
}

void sl_shares_close(struct sl_shares *shares)
{
	if (shares->memory.base)
		sl_region_close(&shares->memory);
	memset(shares, 0, sizeof(*shares));
}

double sl_shares_bin(const struct sl_shares *s, uint32_t bin)
{
	return s->low + (bin + 0.5) * (s->high - s->low) / s->bins;
}

double sl_shares_sector(const struct sl_shares *s, uint32_t sector)
{
	return (sector + 0.5) * 360 / s->sectors - 180;
}
