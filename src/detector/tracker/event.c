/* event.c - one bunch crossing in the outer tracker of CMS. */
#include "detector/tracker/event.h"

#include <math.h>
#include <string.h>

#include <sluice/random.h>

#include "detector/trig.h"

enum { KEY_COLLISIONS = 1, KEY_JET, KEY_PILE_UP, KEY_SCATTER, KEY_BACKGROUND };
enum { BARREL = 6, DISKS = 5, LAYERS = BARREL + DISKS };

/* Where the layers are, about: barrel radii, the z of the disks, and where they end. The share of
 * the background is what falls on a layer: it goes down outwards as the density of particles does;
 * eta_max is asinh(120 / radius). */
static const struct {
	double at_cm, share, eta_max;
} layers[LAYERS] = {
	{23, 0.24, 2.3542}, {36, 0.17, 1.9189},	 {51, 0.11, 1.5912}, {69, 0.08, 1.3205},
	{86, 0.06, 1.1353}, {108, 0.05, 0.9578}, {131, 0.065, 0},    {155, 0.06, 0},
	{185, 0.06, 0},	    {221, 0.055, 0},	 {265, 0.05, 0},
};
static const double BARREL_Z_CM = 120, DISK_FROM_CM = 23, DISK_TO_CM = 110, DISK_LOG = 1.564986;
/* Modules do not lie at one radius but overlap. */
static const double STAGGER_CM = 0.8;

/* The modules of the inner part have macro-pixels (PS), those outside strips alone (2S). */
static const double PS_END_CM = 60, PITCH_CM = 0.0095, PIXEL_CM = 0.1467, STRIP_CM = 5.02;

/* The bend is measured between two sensors 1.8 to 2.6 mm apart: q/pT is known to so much over r. */
static const double BEND_CM_PER_GEV = 1.7;

static const double BEAM_SIGMA_CM = 4.5, BEAM_WINDOW_CM = 15;

/* Scattering in 2 % of a radiation length: 13.6 MeV / p sqrt(0.02), per layer. */
static const double SCATTER_GEV = 0.00192;

/* Per collision, above 3 GeV and within |eta| < 2.4; per jet of the hard one. */
static const double TRACKS_PER_COLLISION = 0.18, TRACKS_PER_JET = 4, CUT_GEV = 3;
static const double PT_MAX_GEV = 100, ETA_MAX = 2.4, JET_ETA = 1, JET_WIDTH = 0.15;

/* Stubs of no track per collision, at a cut of 3 GeV: so that the mean of a sector, with what it
 * shares with its neighbours, is about 65 at a pile-up of 140 and 90 at 200, twice of which are
 * the 160 that a row has room for. */
static const double BACKGROUND_PER_COLLISION = 80;
static const double DARK_STUBS = 30;

/* The borders of the eta sectors, as z at 50 cm from the beam: 50 sinh(0.31, 0.89, ...). */
static const double sector_z_cm[SL_TRACKER_ETA_SECTORS + 1] = {
	-273.3115, -172.1603, -98.4848, -50.6118, -15.7495,
	15.7495,   50.6118,   98.4848,	172.1603, 273.3115};

struct making {
	const struct sl_tracker_setup *setup;
	struct sl_tracker_event *event;
};

static double normal(const struct making *m, uint64_t key, uint64_t counter)
{
	return m->setup->normal[sl_draw(key, counter) >> 48];
}

static double uniform(uint64_t key, uint64_t counter, double from, double to)
{
	return from + sl_uniform(sl_draw(key, counter)) * (to - from);
}

static double wrap(double phi)
{
	return phi - 2 * SL_PI * floor(phi / (2 * SL_PI) + 0.5);
}

static double bend_sigma(double r_cm)
{
	return BEND_CM_PER_GEV / r_cm;
}

/* Disk d, counted from 0, is layer 7 - d: see sluice/events.h. */
static uint16_t layer_number(unsigned layer)
{
	return (uint16_t)(layer < BARREL ? layer + 1 : 7 - (layer - BARREL));
}

/* Strips blur what is measured; then the modules' own cut. */
static void measure(struct making *m, uint64_t key, unsigned layer, struct sl_tracker_stub *stub)
{
	bool inner = layer < BARREL ? layer < 3 : stub->r_cm < PS_END_CM;
	double along = uniform(key, 1, -0.5, 0.5) * (inner ? PIXEL_CM : STRIP_CM);
	double limit = 1 / m->setup->pt_cut_GeV + 1.5 * bend_sigma(stub->r_cm);

	stub->phi = wrap(stub->phi + uniform(key, 0, -0.5, 0.5) * PITCH_CM / stub->r_cm);
	*(layer < BARREL ? &stub->z_cm : &stub->r_cm) += along;
	stub->q_over_pt += bend_sigma(stub->r_cm) * normal(m, key, 2);
	stub->layer = layer_number(layer);
	if (fabs(stub->q_over_pt) <= limit && m->event->stubs < SL_TRACKER_STUBS)
		m->event->stub[m->event->stubs++] = *stub;
}

/* Where the track crosses a layer: how long its way is, seen along the beam. 0: nowhere. */
static double crossing(const struct sl_tracker_track *t, double sinh_eta, unsigned layer,
		       double stagger, double *r)
{
	double curve = SL_TRACKER_K * t->charge / t->pt_GeV, way, z, c, s;

	if (layer < BARREL) {
		*r = layers[layer].at_cm + stagger;
		way = sl_asin(curve * *r) / curve;
		z = t->z0_cm + way * sinh_eta;
		return fabs(z) <= BARREL_Z_CM ? way : 0;
	}
	z = layers[layer].at_cm + stagger;
	way = ((sinh_eta > 0 ? z : -z) - t->z0_cm) / sinh_eta;
	if (!(way > 0) || way > 2 * DISK_TO_CM)
		return 0;
	sl_cos_sin(curve * way / (2 * SL_PI), &c, &s);
	*r = s / curve;
	return *r >= DISK_FROM_CM && *r <= DISK_TO_CM ? way : 0;
}

static void follow(struct making *m, uint64_t key, uint16_t number)
{
	struct sl_tracker_track *t = &m->event->track[number];
	double x = t->charge / t->pt_GeV, sinh_eta = sl_sinh(t->eta), r = 0;
	double slope = 0, aside = 0, before = 0;
	uint32_t first = m->event->stubs;

	if (fabs(sinh_eta) < 1e-6)
		sinh_eta = 1e-6;
	for (unsigned layer = 0; layer < LAYERS; layer++) {
		uint64_t at = sl_key(key, layer);
		double stagger = uniform(at, 4, -STAGGER_CM, STAGGER_CM);
		double way = crossing(t, sinh_eta, layer, stagger, &r);

		if (way <= before)
			continue;
		aside += slope * (way - before);
		slope += SCATTER_GEV / t->pt_GeV * normal(m, at, 5);
		before = way;
		if (sl_uniform(sl_draw(at, 6)) >= m->setup->efficiency)
			continue;
		measure(m, at, layer,
			&(struct sl_tracker_stub){
				.phi = t->phi0 - SL_TRACKER_K * x * way + aside / r,
				.r_cm = r,
				.z_cm = t->z0_cm + way * sinh_eta,
				.q_over_pt = x,
				.track = number,
			});
	}
	t->stubs = m->event->stubs - first;
}

/* Where the parameters put it, whatever its stubs. */
static uint32_t sector_of(const struct sl_tracker_track *t)
{
	double curve = SL_TRACKER_K * t->charge / t->pt_GeV;
	double phi = wrap(t->phi0 - sl_asin(curve * SL_TRACKER_R_PHI));
	double z = t->z0_cm + SL_TRACKER_R_Z * sl_sinh(t->eta);
	uint32_t p = (uint32_t)floor((phi + SL_PI) / (2 * SL_PI) * SL_TRACKER_PHI_SECTORS), e;

	for (e = 0; e < SL_TRACKER_ETA_SECTORS && z >= sector_z_cm[e + 1];)
		e++;
	if (z < sector_z_cm[0] || e == SL_TRACKER_ETA_SECTORS)
		return SL_TRACKER_SECTORS;
	return p % SL_TRACKER_PHI_SECTORS * SL_TRACKER_ETA_SECTORS + e;
}

/* How many sectors could find it: those with five of its layers. */
static uint32_t findable(const struct making *m, const struct sl_tracker_track *t)
{
	const struct sl_tracker_stub *stub = &m->event->stub[m->event->stubs - t->stubs];
	uint8_t seen[SL_TRACKER_SECTORS] = {0};
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->stubs; i++) {
		struct sl_tracker_sectors s = sl_tracker_sectors(m->setup, &stub[i]);

		for (uint32_t p = 0; p < s.phis; p++)
			for (uint32_t e = 0; e < s.etas; e++)
				seen[(s.phi + p) % SL_TRACKER_PHI_SECTORS * SL_TRACKER_ETA_SECTORS +
				     s.eta + e] |= (uint8_t)(1 << stub[i].layer);
	}
	for (uint32_t i = 0; i < SL_TRACKER_SECTORS; i++)
		n += __builtin_popcount(seen[i]) >= 5;
	return n;
}

static void add_track(struct making *m, uint64_t key, double pt, double phi, double eta, double z0)
{
	struct sl_tracker_event *event = m->event;
	struct sl_tracker_track *t = &event->track[event->tracks];

	if (event->tracks == SL_TRACKER_TRACKS || fabs(eta) >= ETA_MAX)
		return;
	*t = (struct sl_tracker_track){
		.pt_GeV = pt < PT_MAX_GEV ? pt : PT_MAX_GEV,
		.phi0 = wrap(phi),
		.eta = eta,
		.z0_cm = z0,
		.charge = sl_draw(key, 100) & 1 ? 1 : -1,
	};
	t->sector = sector_of(t);
	follow(m, sl_key(key, KEY_SCATTER), (uint16_t)event->tracks);
	t->sectors = findable(m, t);
	event->tracks++;
}

/* Jets of the hard collision, all from one place; dN/dpT falls with the third power. */
static void add_jets(struct making *m, uint64_t key)
{
	double cut = m->setup->pt_cut_GeV, z0 = BEAM_SIGMA_CM * normal(m, key, 0);
	double mean = TRACKS_PER_JET * (CUT_GEV / cut) * (CUT_GEV / cut);

	for (uint64_t j = 0; j < (uint64_t)(m->setup->jets + 0.5); j++) {
		uint64_t jet = sl_key(key, j);
		double n = sl_poisson_any(mean, sl_draw(jet, 0), m->setup->normal);
		double phi = uniform(jet, 1, -SL_PI, SL_PI), eta = JET_ETA * normal(m, jet, 2);

		for (uint64_t i = 0; i < (uint64_t)n; i++) {
			uint64_t track = sl_key(jet, i);

			add_track(m, track, cut / sqrt(1 - sl_uniform(sl_draw(track, 0))),
				  phi + JET_WIDTH * normal(m, track, 1),
				  eta + JET_WIDTH * normal(m, track, 2), z0);
		}
	}
}

/* Tracks of the other collisions, far and between; dN/dpT falls with the fifth power. */
static void add_pile_up(struct making *m, uint64_t key, double collisions)
{
	double cut = m->setup->pt_cut_GeV, softer = CUT_GEV / cut;
	double n = sl_poisson_any(TRACKS_PER_COLLISION * collisions * softer * softer * softer *
					  softer,
				  sl_draw(key, 0), m->setup->normal);

	for (uint64_t i = 0; i < (uint64_t)n; i++) {
		uint64_t track = sl_key(key, i);

		add_track(m, track, cut / sqrt(sqrt(1 - sl_uniform(sl_draw(track, 0)))),
			  uniform(track, 1, -SL_PI, SL_PI), uniform(track, 2, -ETA_MAX, ETA_MAX),
			  BEAM_SIGMA_CM * normal(m, track, 3));
	}
}

/* A stub of no track: anywhere in its layer, as dense in eta as particles are. */
static void add_background(struct making *m, uint64_t key, double mean)
{
	double n = sl_poisson_any(mean, sl_draw(key, 0), m->setup->normal);

	for (uint64_t i = 0; i < (uint64_t)n; i++) {
		uint64_t at = sl_key(key, i);
		struct sl_tracker_stub stub = {.track = SL_TRACKER_NO_TRACK};
		double u = sl_uniform(sl_draw(at, 10)), limit = 1 / m->setup->pt_cut_GeV;
		unsigned layer = 0;

		while (layer < LAYERS - 1 && u >= layers[layer].share)
			u -= layers[layer++].share;
		stub.phi = uniform(at, 11, -SL_PI, SL_PI);
		stub.q_over_pt = uniform(at, 12, -limit, limit);
		u = uniform(at, 13, -1, 1);
		if (layer < BARREL) {
			stub.r_cm = layers[layer].at_cm + uniform(at, 14, -STAGGER_CM, STAGGER_CM);
			stub.z_cm = stub.r_cm * sl_sinh(u * layers[layer].eta_max);
		} else {
			stub.r_cm = DISK_FROM_CM * sl_exp(DISK_LOG * fabs(u));
			stub.z_cm = layers[layer].at_cm + uniform(at, 14, -STAGGER_CM, STAGGER_CM);
			stub.z_cm = u < 0 ? -stub.z_cm : stub.z_cm;
		}
		measure(m, at, layer, &stub);
	}
}

void sl_tracker_event(const struct sl_tracker_setup *setup, uint64_t key, bool dark,
		      struct sl_tracker_event *event)
{
	struct making m = {setup, event};
	double collisions;

	event->tracks = event->stubs = 0;
	if (dark) {
		add_background(&m, sl_key(key, KEY_BACKGROUND), DARK_STUBS);
		return;
	}
	collisions = sl_poisson_any(setup->pile_up, sl_draw(sl_key(key, KEY_COLLISIONS), 0),
				    setup->normal);
	add_jets(&m, sl_key(key, KEY_JET));
	add_pile_up(&m, sl_key(key, KEY_PILE_UP), collisions);
	add_background(&m, sl_key(key, KEY_BACKGROUND),
		       BACKGROUND_PER_COLLISION * setup->background * collisions * CUT_GEV /
			       setup->pt_cut_GeV);
}

/* In phi: where the track is at 67 cm from the beam, for every momentum that the bend allows. In
 * z: where a line from anywhere in the beam spot through the stub is at 50 cm. */
struct sl_tracker_sectors sl_tracker_sectors(const struct sl_tracker_setup *setup,
					     const struct sl_tracker_stub *stub)
{
	const double wide = 2 * SL_PI / SL_TRACKER_PHI_SECTORS;
	double limit = 1 / setup->pt_cut_GeV;
	double unsure = 3 * bend_sigma(stub->r_cm) + SL_STUB_BEND_PER_GeV / 2;
	double lever = SL_TRACKER_K * (stub->r_cm - SL_TRACKER_R_PHI);
	double a = lever * fmin(fmax(stub->q_over_pt - unsure, -limit), limit);
	double b = lever * fmin(fmax(stub->q_over_pt + unsure, -limit), limit);
	double first = floor((stub->phi + fmin(a, b) + SL_PI) / wide);
	double last = floor((stub->phi + fmax(a, b) + SL_PI) / wide);
	double z = stub->z_cm * SL_TRACKER_R_Z / stub->r_cm;
	double spot = BEAM_WINDOW_CM * fabs(1 - SL_TRACKER_R_Z / stub->r_cm);
	struct sl_tracker_sectors s = {
		.phi = (uint32_t)((int)first + SL_TRACKER_PHI_SECTORS) % SL_TRACKER_PHI_SECTORS,
		.phis = (uint32_t)(last - first) + 1,
	};

	while (s.eta < SL_TRACKER_ETA_SECTORS && z - spot >= sector_z_cm[s.eta + 1])
		s.eta++;
	while (s.eta + s.etas < SL_TRACKER_ETA_SECTORS && z + spot >= sector_z_cm[s.eta + s.etas])
		s.etas++;
	return s;
}

static int32_t rounded(double value, int32_t least, int32_t most)
{
	double whole = floor(value + 0.5);

	return whole < least ? least : whole > most ? most : (int32_t)whole;
}

struct sl_stub sl_tracker_digitise(const struct sl_tracker_stub *stub, uint32_t phi_sector)
{
	double middle = sl_tracker_sector_phi(phi_sector * SL_TRACKER_ETA_SECTORS);

	return (struct sl_stub){
		.phi = rounded(wrap(stub->phi - middle) / SL_STUB_PHI_RAD, -8192, 8191),
		.z = rounded(stub->z_cm / SL_STUB_Z_CM, -8192, 8191),
		.bend = rounded(stub->q_over_pt / SL_STUB_BEND_PER_GeV, -8, 7),
		.r = (uint32_t)rounded(stub->r_cm / SL_STUB_R_CM, 0, 4095),
		.layer = stub->layer,
	};
}
