/* fit.c - a helix through the stubs of a candidate.
 *
 * Two straight lines, as the maths header makes them of a helix: phi over r, and z over the way. A
 * cell has stubs of other particles, too: so lines are drawn through two stubs at a time, far
 * enough apart, and those that are near to the stubs of most layers stay, with the nearest stub of
 * each. Through these go lines by weighted least squares; while a stub is too far off, the worst is
 * left out, and the lines are drawn anew. Floats, in the order of the row: the same everywhere.
 *
 * Cost: about 2 us for ten stubs; bounded by 200 lines and 40 stubs, the first of a cell. */
#include <math.h>
#include <string.h>

#include "stage/tracks/maths.h"
#include "stage/tracks/tracks.h"

enum { NONE = 0xff };

struct point {
	float r, phi, way, z, phi_weight, z_weight;
	uint8_t layer, index;
};

struct line { /* value = at + slope * (position - middle) */
	float at, slope, middle;
};

static uint32_t gather(const uint8_t *row, const struct sl_track *track, struct point *point)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < SL_STUBS && n < SL_TRACKS_POINTS; s++) {
		struct sl_stub stub;
		struct point *p = &point[n];
		int disk;

		if (!(track->set[s / 64] >> s % 64 & 1))
			continue;
		sl_stub_unpack(row + s * SL_STUB_BYTES, &stub);
		disk = stub.z > SL_TRACKS_DISK_Z || stub.z < -SL_TRACKS_DISK_Z;
		/* No module is that near to the beam: garbage, which must not be divided by. */
		p->r = (float)(stub.r > 33 ? stub.r : 33) * (float)SL_STUB_R_CM;
		p->z = (float)stub.z * (float)SL_STUB_Z_CM;
		p->phi = (float)stub.phi * (float)SL_STUB_PHI_RAD + sl_tracks_bow(track->x, p->r);
		p->way = p->r + sl_tracks_detour(track->x, p->r);
		p->phi_weight = 1 / sl_tracks_phi_variance(track->x, p->r, disk);
		p->z_weight = 1 / sl_tracks_z_variance(track->x, p->r, p->z, disk);
		p->layer = (uint8_t)stub.layer;
		p->index = (uint8_t)s;
		n++;
	}
	return n;
}

/* Of n values v at t with weights w, which lie `step` floats apart. */
static struct line draw(const float *t, const float *v, const float *w, uint32_t n, size_t step)
{
	float sum = 0, sum_t = 0, sum_v = 0, tt = 0, tv = 0;
	struct line line;

	for (size_t i = 0; i < n * step; i += step) {
		sum += w[i];
		sum_t += w[i] * t[i];
		sum_v += w[i] * v[i];
	}
	line.middle = sum_t / sum;
	line.at = sum_v / sum;
	for (size_t i = 0; i < n * step; i += step) {
		float off = t[i] - line.middle;

		tt += w[i] * off * off;
		tv += w[i] * off * v[i];
	}
	line.slope = tt > 0 ? tv / tt : 0;
	return line;
}

static float at(const struct line *line, float position)
{
	return line->at + line->slope * (position - line->middle);
}

/* Squared deviations of a stub: phi and z. */
static float deviation(const struct point *p, const struct line *phi, const struct line *z)
{
	float off_phi = p->phi - at(phi, p->r), off_z = p->z - at(z, p->way);

	return off_phi * off_phi * p->phi_weight + off_z * off_z * p->z_weight;
}

/* Of the stubs, the nearest of each layer; what they are off in all, lower is better. A layer
 * without one near enough counts as `limit`. */
static float nearest(const struct point *point, uint32_t n, const struct line *phi,
		     const struct line *z, float limit, uint8_t chosen[SL_TRACKS_LAYERS])
{
	float off[SL_TRACKS_LAYERS], sum = 0;

	for (uint32_t k = 0; k < SL_TRACKS_LAYERS; k++) {
		off[k] = limit;
		chosen[k] = NONE;
	}
	for (uint32_t i = 0; i < n; i++) {
		float d = deviation(&point[i], phi, z);

		if (d < off[point[i].layer]) {
			off[point[i].layer] = d;
			chosen[point[i].layer] = (uint8_t)i;
		}
	}
	for (uint32_t k = 0; k < SL_TRACKS_LAYERS; k++)
		sum += off[k];
	return sum;
}

static struct line through(float a, float va, float b, float vb)
{
	return (struct line){.at = va, .slope = (vb - va) / (b - a), .middle = a};
}

/* Leaves of the points one of a layer at most: those that lie on one helix best. How many. */
static uint32_t choose(struct point *point, uint32_t n, float limit)
{
	uint8_t chosen[SL_TRACKS_LAYERS], best[SL_TRACKS_LAYERS];
	struct point left[SL_TRACKS_LAYERS];
	/* Two stubs tell less of a line than all of them. */
	float least = limit * SL_TRACKS_LOOSE * SL_TRACKS_LAYERS;
	uint32_t pairs = 0, m = 0;

	memset(best, NONE, sizeof(best));
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = i + 1; j < n && pairs < SL_TRACKS_PAIRS; j++) {
			const struct point *a = &point[i], *b = &point[j];
			struct line phi, z;
			float sum;

			if (a->layer == b->layer || !(fabsf(a->r - b->r) > SL_TRACKS_APART_CM))
				continue;
			pairs++;
			phi = through(a->r, a->phi, b->r, b->phi);
			z = through(a->way, a->z, b->way, b->z);
			sum = nearest(point, n, &phi, &z, limit * SL_TRACKS_LOOSE, chosen);
			if (sum < least) {
				least = sum;
				memcpy(best, chosen, sizeof(best));
			}
		}
	for (uint32_t k = 0; k < SL_TRACKS_LAYERS; k++)
		if (best[k] != NONE)
			left[m++] = point[best[k]];
	memcpy(point, left, m * sizeof(*left));
	return m;
}

/* The one to leave out, or n: the worst, if it is too far off. */
static uint32_t worst(uint32_t n, const float *off, float limit)
{
	uint32_t out = n;

	for (uint32_t i = 0; i < n; i++)
		if (off[i] > limit) {
			limit = off[i];
			out = i;
		}
	return out;
}

static uint8_t layers_of(const struct point *point, uint32_t n)
{
	uint32_t layers = 0;

	for (uint32_t i = 0; i < n; i++)
		layers |= 1u << point[i].layer;
	return (uint8_t)layers;
}

static void conclude(const struct point *point, uint32_t n, const struct line *phi,
		     const struct line *z, float chi2, struct sl_track *track)
{
	track->x = -phi->slope / SL_TRACKS_K;
	/* Phi on the helix, not on the line. */
	track->phi = at(phi, SL_TRACKS_R_CM) - sl_tracks_bow(track->x, SL_TRACKS_R_CM);
	track->cot = z->slope;
	track->z0 = at(z, 0);
	track->chi2 = chi2 / (float)(2 * n - 4);
	track->fitted = (uint8_t)n;
	track->layers = layers_of(point, n);
	for (uint32_t k = 0; k < SL_TRACKS_SET; k++)
		track->set[k] = 0;
	for (uint32_t i = 0; i < n; i++)
		track->set[point[i].index / 64] |= 1ull << point[i].index % 64;
}

bool sl_tracks_fit(const struct sl_tracks_plan *plan, const uint8_t *row, struct sl_track *track)
{
	enum { STEP = sizeof(struct point) / sizeof(float) };
	struct point point[SL_TRACKS_POINTS];
	uint32_t n = gather(row, track, point);
	float off[SL_TRACKS_LAYERS];

	n = choose(point, n, plan->set.fit_limit);

	for (;;) {
		struct line phi, z;
		float chi2 = 0;
		uint32_t out;

		if (n < 3 || sl_tracks_ones(layers_of(point, n)) < plan->set.min_layers)
			return false;
		phi = draw(&point->r, &point->phi, &point->phi_weight, n, STEP);
		z = draw(&point->way, &point->z, &point->z_weight, n, STEP);
		for (uint32_t i = 0; i < n; i++)
			chi2 += off[i] = deviation(&point[i], &phi, &z);
		out = worst(n, off, plan->set.fit_limit);
		if (out == n) {
			conclude(point, n, &phi, &z, chi2, track);
			return true;
		}
		for (n--; out < n; out++)
			point[out] = point[out + 1];
	}
}
