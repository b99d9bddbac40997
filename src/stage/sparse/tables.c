/* tables.c - what the radial method of the stage `sparse` knows of every pixel. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "stage/rays.h"
#include "stage/sparse/sparse.h"

enum { BLOCK = SL_OUTSIDE_BLOCK };

static int allocate(struct sl_sparse *s)
{
	uint64_t blocks = (uint64_t)s->modules * s->module_blocks, pixels = s->radial.pixels;
	int err = sl_region_open(SL_REGION_HOST,
				 blocks * sizeof(*s->block) + pixels * sizeof(*s->radius) +
					 s->radial.bins *
						 (sizeof(*s->pixels_of) + sizeof(*s->middle)),
				 &s->memory);

	if (err) {
		sl_error("sparse: no memory for tables of %llu pixels", (unsigned long long)pixels);
		return err;
	}
	s->block = s->memory.base;
	s->radius = (float *)(s->block + blocks);
	s->middle = s->radius + pixels;
	s->pixels_of = (uint32_t *)(s->middle + s->radial.bins);
	memset(s->pixels_of, 0, s->radial.bins * sizeof(*s->pixels_of));
	return 0;
}

static void widen(struct sl_sparse_block *block, uint16_t bin, float norm)
{
	block->first = bin < block->first ? bin : block->first;
	block->last = bin > block->last ? bin : block->last;
	block->least = norm < block->least ? norm : block->least;
	block->most = norm > block->most ? norm : block->most;
}

static void fill(struct sl_sparse *s, const struct sl_rays *rays)
{
	struct sl_radial *r = &s->radial;

	for (uint32_t b = 0; b < r->bins; b++)
		s->middle[b] = (float)sl_radial_middle(r, b);
	s->step = r->bins > 1 ? s->middle[1] - s->middle[0] : (float)(r->high - r->low);
	for (uint32_t b = 0; b < s->modules * s->module_blocks; b++)
		s->block[b] = (struct sl_sparse_block){.first = UINT16_MAX, .least = FLT_MAX};
	for (uint64_t i = 0; i < r->pixels; i++) {
		uint64_t module = i / s->module_pixels, in_module = i % s->module_pixels;

		struct sl_ray ray;

		s->radius[i] = NAN;
		if (r->bin[i] < r->bins) {
			ray = sl_rays_middle(rays, (uint32_t)module, (uint32_t)in_module);
			s->radius[i] = (float)ray.x;
			s->pixels_of[r->bin[i]]++;
			widen(&s->block[module * s->module_blocks + in_module / BLOCK], r->bin[i],
			      r->norm[i]);
		}
	}
}

int sl_sparse_radial_open(struct sl_sparse *s, const struct sl_env *env)
{
	const struct sl_radial_options options = {
		.bins = s->bins,
		.unit = s->unit,
		.low = s->low,
		.high = s->high,
		.solid_angle = s->solid_angle,
		.polarisation = s->polarisation,
	};
	const struct sl_rays_options sight = {.unit = s->unit};
	struct sl_rays rays;
	int err = sl_radial_open(&s->radial, &options, env, "sparse");

	if (!err)
		err = sl_rays_open(&rays, &sight, env, "sparse");
	if (err)
		return err;
	s->module_blocks = (uint32_t)((s->module_pixels + BLOCK - 1) / BLOCK);
	err = allocate(s);
	if (err)
		return err;
	fill(s, &rays);
	return 0;
}

void sl_sparse_radial_close(struct sl_sparse *s)
{
	if (s->memory.base)
		sl_region_close(&s->memory);
	s->memory.base = NULL;
	sl_radial_close(&s->radial);
}
