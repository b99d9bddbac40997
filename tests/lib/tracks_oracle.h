/* tracks_oracle.h - sectors to try the oracle of the stage `tracks` on. */
#ifndef TRACKS_ORACLE_H
#define TRACKS_ORACLE_H

#include "stage/tracks/oracle.h"

static inline double oracle_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(*seed >> 33) / 2147483648.;
}

static const double oracle_radius[6] = {23, 36, 51, 69, 86, 108};

struct oracle_track { /* phi: at 67 cm */
	double x, phi, z0, cot;
};

/* Stubs of so many tracks, dN/dpT falling with the third power from 3 GeV on, 95 % of the layers
 * each, and others anywhere, up to `stubs`. */
static inline void oracle_sector(uint64_t *seed, uint32_t tracks, uint32_t stubs, uint8_t *row,
				 struct oracle_track *truth)
{
	struct sl_stub stub[SL_STUBS];
	uint32_t n = 0;

	for (uint32_t t = 0; t < tracks; t++) {
		double x = sqrt(1 - oracle_random(seed)) / 3 * (oracle_random(seed) < 0.5 ? 1 : -1);
		double phi = (oracle_random(seed) * 2 - 1) * SL_PI / 32;
		double z0 = (oracle_random(seed) * 2 - 1) * 10;
		double cot = (oracle_random(seed) * 2 - 1) * 0.3;

		truth[t] = (struct oracle_track){x, phi, z0, cot};
		phi += asin(SL_TRACKER_K * SL_TRACKER_R_PHI * x);
		for (uint32_t k = 0; k < 6; k++) {
			double r = oracle_radius[k] + oracle_random(seed) * 1.6 - 0.8;
			double way = asin(SL_TRACKER_K * r * x) / (SL_TRACKER_K * x);

			if (oracle_random(seed) < 0.95 && n < stubs)
				stub[n++] = (struct sl_stub){
					.phi = (int32_t)lrint((phi - asin(SL_TRACKER_K * r * x)) /
							      SL_STUB_PHI_RAD),
					.r = (uint32_t)lrint(r / SL_STUB_R_CM),
					.z = (int32_t)lrint((z0 + way * cot) / SL_STUB_Z_CM),
					.bend = (int32_t)lrint(x * 14),
					.layer = k + 1};
		}
	}
	while (n < stubs) {
		uint32_t k = (uint32_t)(oracle_random(seed) * 6);
		double r = oracle_radius[k] + oracle_random(seed) * 1.6 - 0.8;

		stub[n++] = (struct sl_stub){.phi = (int32_t)((oracle_random(seed) * 2 - 1) * 3800),
					     .r = (uint32_t)lrint(r / SL_STUB_R_CM),
					     .z = (int32_t)((oracle_random(seed) * 2 - 1) * 1000),
					     .bend = (int32_t)(oracle_random(seed) * 11) - 5,
					     .layer = k + 1};
	}
	memset(row, 0, SL_TRACKER_ROW_BYTES);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = i + (uint32_t)(oracle_random(seed) * (n - i));
		struct sl_stub other = stub[j];

		stub[j] = stub[i];
		sl_stub_pack(&other, row + i * SL_STUB_BYTES);
	}
}

#endif
