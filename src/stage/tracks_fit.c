/* tracks_fit.c - a helix through the stubs of a candidate.
 *
 * Two straight lines, as the maths header makes them of a helix, by weighted least squares: phi
 * over r and z over the way. While a stub is too far off, or a layer has more than one, the worst
 * is left out, and the lines are drawn anew. Floats, in the order of the row: the same everywhere.
 *
 * Cost: a few dozen operations for each stub, as often as one is left out. */
#include <math.h>

#include "maths/tracks.h"
#include "stage/tracks.h"

enum { DISK_Z = (int)(124 / SL_STUB_Z_CM) }; /* beyond the barrel */

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

	for (uint32_t s = 0; s < SL_STUBS; s++) {
		struct sl_stub stub;
		struct point *p = &point[n];
		int disk;

		if (!(track->set[s / 64] >> s % 64 & 1))
			continue;
		sl_stub_unpack(row + s * SL_STUB_BYTES, &stub);
		disk = stub.z > DISK_Z || stub.z < -DISK_Z;
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

/* The one to leave out, or n: the worst of all that are too far off, or else of those that are not
 * alone in their layer. */
static uint32_t worst(const struct point *point, uint32_t n, const float *off, float limit)
{
	uint32_t in_layer[SL_TRACKS_LAYERS] = {0}, out = n;
	float most = limit;

	for (uint32_t i = 0; i < n; i++) {
		in_layer[point[i].layer]++;
		if (off[i] > most) {
			most = off[i];
			out = i;
		}
	}
	if (out < n)
		return out;
	most = -1;
	for (uint32_t i = 0; i < n; i++)
		if (in_layer[point[i].layer] > 1 && off[i] > most) {
			most = off[i];
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
	struct point point[SL_STUBS];
	uint32_t n = gather(row, track, point);
	float off[SL_STUBS];

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
		out = worst(point, n, off, plan->set.fit_limit);
		if (out == n) {
			conclude(point, n, &phi, &z, chi2, track);
			return true;
		}
		for (n--; out < n; out++)
			point[out] = point[out + 1];
	}
}
