/* regions.c - which region each pixel is in: the image, rings about the beam, labels of a file, or
 * each pixel one of its own. Pixels that the calibration masks are in none. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "geometry/mask.h"
#include "stage/correlate/correlate.h"
#include "stage/rays.h"

static int no_memory(void)
{
	sl_error("correlate: no memory for regions");
	return -ENOMEM;
}

static int make_rings(struct sl_correlate *s, const struct sl_env *env)
{
	const struct sl_rays_options options = {.unit = s->unit};
	struct sl_rays rays;
	double high;
	int err = sl_rays_open(&rays, &options, env, "correlate");

	if (err)
		return err;
	high = s->high > 0 ? s->high : sl_rays_farthest(&rays, false);
	if (!(high > s->low)) {
		sl_error("correlate: no pixel lies between low: %g and high: %g", s->low, high);
		return -EINVAL;
	}
	s->count = s->rings;
	s->axis = calloc(s->count, sizeof(*s->axis));
	if (!s->axis)
		return no_memory();
	for (uint32_t r = 0; r < s->count; r++)
		s->axis[r] = s->low + (r + 0.5) * (high - s->low) / s->rings;
	for (uint64_t i = 0; i < s->pixels; i++) {
		double x = sl_rays_middle(&rays, (uint32_t)(i / s->module_pixels),
					  (uint32_t)(i % s->module_pixels))
				   .x;
		double ring = (x - s->low) / (high - s->low) * s->rings;

		/* The farthest pixel is the end of the last ring. */
		if (ring >= 0 && x <= high)
			s->region[i] = ring < s->rings ? (uint32_t)ring : s->rings - 1;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Regions are the labels that there are, by rising number. */
static int number_labels(struct sl_correlate *s, const uint32_t *label)
{
	uint32_t *sorted = malloc(s->pixels * sizeof(*sorted));
	uint64_t n = 0;

	if (!sorted)
		return no_memory();
	memcpy(sorted, label, s->pixels * sizeof(*sorted));
	qsort(sorted, s->pixels, sizeof(*sorted), compare);
	for (uint64_t i = 0; i < s->pixels; i++)
		if (sorted[i] && (!n || sorted[n - 1] != sorted[i]))
			sorted[n++] = sorted[i];
	s->count = (uint32_t)n;
	s->axis = calloc(n + 1, sizeof(*s->axis));
	for (uint64_t i = 0; s->axis && i < n; i++)
		s->axis[i] = sorted[i];
	for (uint64_t i = 0; i < s->pixels; i++) {
		const uint32_t *at =
			label[i] ? bsearch(&label[i], sorted, n, sizeof(*sorted), compare) : NULL;

		s->region[i] = at ? (uint32_t)(at - sorted) : SL_CORRELATE_NONE;
	}
	free(sorted);
	return s->axis ? 0 : no_memory();
}

static int read_labels(struct sl_correlate *s, const struct sl_env *env)
{
	struct sl_geometry geometry = *env->geometry;
	uint32_t *label = calloc(s->pixels, sizeof(*label));
	int err;

	if (!label)
		return no_memory();
	sl_layout_resolve(env->geometry, &geometry.layout);
	err = sl_labels_read(s->labels, "correlate.labels", &geometry, label);
	if (!err)
		err = number_labels(s, label);
	free(label);
	return err;
}

static int fill(struct sl_correlate *s, const struct sl_env *env)
{
	switch (s->regions) {
	case SL_CORRELATE_RINGS:
		return make_rings(s, env);
	case SL_CORRELATE_LABELS:
		return read_labels(s, env);
	default:
		s->count = 1;
		s->axis = calloc(1, sizeof(*s->axis));
		memset(s->region, 0, s->pixels * sizeof(*s->region));
		return s->axis ? 0 : no_memory();
	}
}

/* Each that is in a region becomes one. */
static int number_pixels(struct sl_correlate *s)
{
	uint64_t n = 0;

	free(s->axis);
	s->axis = calloc(s->pixels, sizeof(*s->axis));
	if (!s->axis)
		return no_memory();
	for (uint64_t i = 0; i < s->pixels; i++)
		if (s->region[i] != SL_CORRELATE_NONE) {
			s->axis[n] = (double)i;
			s->region[i] = (uint32_t)n++;
		}
	s->count = (uint32_t)n;
	return 0;
}

static int count_pixels(struct sl_correlate *s)
{
	uint64_t all = 0;

	s->number = calloc((size_t)s->count + 1, sizeof(*s->number));
	if (!s->number)
		return no_memory();
	for (uint64_t i = 0; i < s->pixels; i++)
		if (s->region[i] != SL_CORRELATE_NONE) {
			s->number[s->region[i]]++;
			all++;
		}
	if (all)
		return 0;
	sl_error("correlate: no pixel of the detector is in a region: all are masked, outside of "
		 "the rings, or have the label 0");
	return -EINVAL;
}

int sl_correlate_regions_open(struct sl_correlate *s, const struct sl_env *env)
{
	const uint8_t *mask = env->calibration ? env->calibration->mask : NULL;
	int err;

	if ((s->regions == SL_CORRELATE_LABELS) != (*s->labels != 0)) {
		sl_error("correlate: regions: labels and labels: FILE go together");
		return -EINVAL;
	}
	s->region = malloc(s->pixels * sizeof(*s->region));
	if (!s->region)
		return no_memory();
	memset(s->region, 0xff, s->pixels * sizeof(*s->region));
	err = fill(s, env);
	for (uint64_t i = 0; i < s->pixels && mask && !err; i++)
		s->region[i] = mask[i] ? SL_CORRELATE_NONE : s->region[i];
	if (!err && s->regions == SL_CORRELATE_PIXELS)
		err = number_pixels(s);
	return err ? err : count_pixels(s);
}
