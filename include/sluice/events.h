/* events.h - what the bytes of trigger events mean: hits of a RICH, stubs of a tracker; and what
 * their triggers look for.
 *
 * Model:     a block holds many events (sl_geometry.items), each one row of bytes or more, so that
 *            stages and sinks see an image of uint8. A row of a RICH is one event, its hits; a row
 *            of a tracker is one sector of one event, its stubs. Rows have one length: what is not
 *            used is marked. docs/reference/events.md has the same with pictures and figures.
 * Threads:   pure functions.
 * Ownership: nothing is kept.
 * Cost:      a load, a shift and a mask for each hit or stub. */
#ifndef SLUICE_EVENTS_H
#define SLUICE_EVENTS_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- RICH: an event is 48 bytes ----
 *
 * 32 hits of 12 bits, as one little-endian number: hit i is bits 12 i to 12 i + 11. A hit is the
 * number of a photomultiplier; hits come first, in no order, each number once, and SL_RICH_UNUSED
 * fills the rest. Of events with more than 32 hits some are left out, whichever.
 *
 * Photomultipliers are the cells of two equal disks, each a hexagonal lattice; disk = number / 976.
 * Within a disk they count along x, row by row upwards. Positions are in mm from the centre of the
 * disk: mirrors send the light of one ring to one disk or to both, and the two halves lie on the
 * same circle. */
enum {
	SL_RICH_EVENT_BYTES = 48,
	SL_RICH_HITS = 32,
	SL_RICH_UNUSED = 0xfff,
	SL_RICH_DISK_CELLS = 976,
	SL_RICH_CELLS = 2 * SL_RICH_DISK_CELLS,
	SL_RICH_ROWS = 37,
};
#define SL_RICH_PITCH_MM     18.0
#define SL_RICH_ROW_PITCH_MM 15.588457268119896 /* 18 sqrt(3) / 2 */

static inline uint32_t sl_rich_hit(const uint8_t *event, uint32_t i)
{
	const uint8_t *at = event + i / 2 * 3 + i % 2;

	return i % 2 ? (uint32_t)at[0] >> 4 | (uint32_t)at[1] << 4
		     : at[0] | ((uint32_t)at[1] & 0xf) << 8;
}

/* How many hits an event has. */
static inline uint32_t sl_rich_hits(const uint8_t *event)
{
	uint32_t n = 0;

	while (n < SL_RICH_HITS && sl_rich_hit(event, n) != SL_RICH_UNUSED)
		n++;
	return n;
}

static inline void sl_rich_pack(const uint16_t *hit, uint32_t hits, uint8_t *event)
{
	for (uint32_t i = 0; i < SL_RICH_HITS; i += 2) {
		uint32_t a = i < hits ? hit[i] : SL_RICH_UNUSED;
		uint32_t b = i + 1 < hits ? hit[i + 1] : SL_RICH_UNUSED;

		*event++ = (uint8_t)a;
		*event++ = (uint8_t)(a >> 8 | b << 4);
		*event++ = (uint8_t)(b >> 4);
	}
}

/* Where the rows of a disk begin; the last is the end. */
static const uint16_t sl_rich_row[SL_RICH_ROWS + 1] = {
	0,   10,  25,  43,  62,	 84,  107, 133, 160, 188, 217, 247, 278,
	310, 341, 373, 406, 438, 471, 505, 538, 570, 603, 635, 666, 698,
	729, 759, 788, 816, 843, 869, 892, 914, 933, 951, 966, 976};

/* The centre of a cell; cell < SL_RICH_CELLS. */
static inline void sl_rich_position(uint32_t cell, double *x, double *y)
{
	uint32_t at = cell % SL_RICH_DISK_CELLS, row = 0;

	while (at >= sl_rich_row[row + 1])
		row++;
	*x = (2. * (at - sl_rich_row[row]) + 1 + sl_rich_row[row] - sl_rich_row[row + 1]) *
	     (SL_RICH_PITCH_MM / 2);
	*y = ((double)row - SL_RICH_ROWS / 2) * SL_RICH_ROW_PITCH_MM;
}

/* Which events the stage `rings` is to keep, of true rings: its constant "rings_wanted", float32,
 * so that who knows the truth applies the stage's own condition. Limits of radii are those of the
 * particle; what a measured one may be off is not in them. */
struct sl_rings_wanted {
	float min_rings, max_rings; /* 4: more than three */
	float min_matches;	    /* of the rings, with all of what follows */
	float radius_min_mm, radius_max_mm;
	float x_mm, y_mm, distance_mm; /* of the centre from a place; inf: anywhere */
};

/* ---- tracker: a row is one sector of one event, 160 stubs of 6 bytes ----
 *
 * A stub is a little-endian number of 48 bits:
 *
 *   bit  0      valid   0: not used, and so are all after it; the other bits are 0 then
 *   bits 1-3    layer   1 to 6: barrel, from the beam outwards; disk d, from the middle outwards,
 *                       is 8 - d: 7 to 3. No straight track crosses two layers of one number
 *   bits 4-7    bend    signed; q/pT = bend / 14 per GeV, by the module alone
 *   bits 8-21   z       signed, in 0.4 mm
 *   bits 22-33  r       in 0.3 mm
 *   bits 34-47  phi     signed, from the middle of the sector, in pi / 8 / 8192
 *
 * q is 1 or -1; a positive particle turns towards smaller phi. Sectors overlap: a stub is in every
 * sector that its track may belong to. */
enum {
	SL_STUB_BYTES = 6,
	SL_STUBS = 160,
	SL_TRACKER_ROW_BYTES = SL_STUBS * SL_STUB_BYTES,
	SL_TRACKER_PHI_SECTORS = 32,
	SL_TRACKER_ETA_SECTORS = 9,
	/* sector = phi sector * 9 + eta sector; phi sector 0 begins at -pi, eta sector 0 at -2.4 */
	SL_TRACKER_SECTORS = SL_TRACKER_PHI_SECTORS * SL_TRACKER_ETA_SECTORS,
};
#define SL_PI		     3.14159265358979323846
#define SL_STUB_PHI_RAD	     (SL_PI / 8 / 8192)
#define SL_STUB_R_CM	     0.03
#define SL_STUB_Z_CM	     0.04
#define SL_STUB_BEND_PER_GeV (1. / 14)
/* A track's phi is phi0 - asin(K r q/pT), K = B c / 2e11, at 3.8112 T (rad GeV / cm); its sector is
 * the one it is in at these distances from the beam. */
#define SL_TRACKER_K	 0.0057128451
#define SL_TRACKER_R_PHI 67.24
#define SL_TRACKER_R_Z	 50.

struct sl_stub {
	int32_t phi, z, bend;
	uint32_t r, layer;
};

/* Zero when it is not used. */
static inline int sl_stub_unpack(const uint8_t *at, struct sl_stub *stub)
{
	uint32_t low;
	uint16_t high;
	uint64_t bits;

	/* Not six bytes into eight: to read what was written in two parts takes longer than all
	 * the rest. */
	memcpy(&low, at, sizeof(low));
	memcpy(&high, at + sizeof(low), sizeof(high));
	bits = low | (uint64_t)high << 32;
	stub->layer = bits >> 1 & 7;
	stub->bend = (int32_t)((int64_t)(bits << 56) >> 60);
	stub->z = (int32_t)((int64_t)(bits << 42) >> 50);
	stub->r = bits >> 22 & 0xfff;
	stub->phi = (int32_t)((int64_t)(bits << 16) >> 50);
	return bits & 1;
}

static inline void sl_stub_pack(const struct sl_stub *stub, uint8_t *at)
{
	uint64_t bits = 1 | (uint64_t)(stub->layer & 7) << 1 |
			((uint64_t)(uint32_t)stub->bend & 0xf) << 4 |
			((uint64_t)(uint32_t)stub->z & 0x3fff) << 8 |
			(uint64_t)(stub->r & 0xfff) << 22 |
			((uint64_t)(uint32_t)stub->phi & 0x3fff) << 34;

	memcpy(at, &bits, SL_STUB_BYTES);
}

/* Which events the stage `tracks` is to keep: its constant "tracks_wanted", float32. */
struct sl_tracks_wanted {
	float min_tracks; /* 0: tracks decide nothing */
	float pt_GeV;	  /* that have at least this */
};

/* The middle of a sector, -pi to pi. */
static inline double sl_tracker_sector_phi(uint32_t sector)
{
	uint32_t phi = sector / SL_TRACKER_ETA_SECTORS;

	return (2. * phi + 1) * SL_PI / SL_TRACKER_PHI_SECTORS - SL_PI;
}

#ifdef __cplusplus
}
#endif

#endif
