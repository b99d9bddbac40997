/* oracle.c - the oracles of the tests, as programs to be measured. */
#include "stage/rings/oracle.h"
#include "bench/trigger/trigger.h"
#include "stage/tracks/oracle.h"

uint32_t sl_bench_oracle_rings(const struct sl_rings_settings *set, const uint8_t *packed)
{
	struct rings_oracle oracle;

	rings_oracle_event(set, packed, &oracle);
	return (uint32_t)oracle.rings;
}

struct sl_scalar_sector sl_bench_oracle_sector(const struct sl_bench_trigger *trigger,
					       const uint8_t *row)
{
	static struct oracle oracle; /* of this process, which has one thread */
	struct sl_scalar_sector found = {0};
	uint8_t kept[ORACLE_CELLS * ORACLE_CELLS][2];

	oracle.kind = trigger->cells;
	oracle.columns = oracle.rows = 32;
	oracle.x_max = 1 / 3.;
	oracle.bend = trigger->bend;
	oracle_fill(&oracle, row);
	for (int c = 0; c < oracle.columns; c++)
		for (int r = 0; r < oracle.rows; r++)
			found.cells += __builtin_popcount(oracle.layers[c][r]) >= 5;
	if (!oracle_candidates(&oracle, 3, kept, &found.tracks))
		found.tracks = UINT32_MAX;
	return found;
}
