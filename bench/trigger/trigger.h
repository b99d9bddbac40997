/* trigger.h - between the files of `sluice bench trigger`.
 *
 * Model:     events of the emulators `rich` and `tracker` are made once, before the rounds, as
 *            scenes like those of `sluice bench stage`, whose chains, unit and measurement serve
 *            here as well. Beside them run the oracles of the tests, one of plain loops and one in
 *            double precision, on the same events, which must find the same.
 * Files:     rows.c which rows there are; data.c the scenes;
 *            trigger.c programs that are no stages;
 *            oracle.c the oracles; check.c whether all found the same;
 *            latency.c events that come when they are due, through the unit;
 *            udp.c a run of this program over `udp`; jitter.c what the
 *            machine does on its own; report.c table and JSON. */
#ifndef SL_BENCH_TRIGGER_TRIGGER_H
#define SL_BENCH_TRIGGER_TRIGGER_H

#include "bench/stage/stage.h"
#include "stage/rings/scalar_oracle.h"
#include "stage/tracks/scalar_oracle.h"

enum sl_bench_way {		   /* how a row is measured */
		    SL_BENCH_UNIT, /* the stage, in the cpu unit, as fast as it can */
		    SL_BENCH_SCALAR,
		    SL_BENCH_ORACLE,
		    SL_BENCH_OPEN,   /* the stage, in the cpu unit, events at a rate */
		    SL_BENCH_UDP,    /* a run of this program */
		    SL_BENCH_JITTER, /* of the machine */
};

/* A row but for its vectors; work.name and work.chain are as for stages. */
struct sl_bench_trigger {
	struct sl_bench_work work;
	enum sl_bench_way way;
	enum sl_bench_size size;
	uint32_t stack;
	uint32_t cores;	     /* workers; 0: one */
	bool vectors;	     /* also with fewer */
	uint32_t percent;    /* SL_BENCH_OPEN: of the rate that one core can do */
	double most_us;	     /* hoped for: an item, or the 99th percentile; 0: nothing is */
	const char *threads; /* SL_BENCH_UDP: the section `threads` of the run; NULL: as it is */
	uint32_t triplets;   /* rings, if it is told */
	/* tracks: what the stage is told, for the others */
	uint32_t cells;
	double bend;
	bool between; /* duplicates between sectors, too: `tracks` are not those of each sector */
};

/* Events of one kind; scene->parts is 0 where there are no emulators. 0 or -errno, logged. */
int sl_bench_events_make(struct sl_bench_scene *scene, enum sl_bench_size size);

/* Item i of a scene: an event of the RICH, a sector of the tracker; i < frames * items. */
const uint8_t *sl_bench_item(const struct sl_bench_scene *scene, uint64_t i);

/* ---- programs beside the stages ---- */

/* What the stages have when nobody tells them otherwise. */
void sl_bench_rings_settings(const struct sl_bench_trigger *trigger, struct sl_rings_settings *set);
void sl_bench_tracks_plan(const struct sl_bench_trigger *trigger, struct sl_tracks_plan *plan);

uint32_t sl_bench_oracle_rings(const struct sl_rings_settings *set, const uint8_t *packed);
/* tracks is UINT32_MAX where rounding decides about one of them. */
struct sl_scalar_sector sl_bench_oracle_sector(const struct sl_bench_trigger *trigger,
					       const uint8_t *row);

/* ---- one measurement: 0 or -errno ---- */

int sl_bench_open_loop(const struct sl_bench *bench, const struct sl_bench_row *row,
		       struct sl_bench_sample *sample);
int sl_bench_udp(const struct sl_bench *bench, const struct sl_bench_row *row,
		 struct sl_bench_sample *sample);
int sl_bench_jitter(const struct sl_bench *bench, const struct sl_bench_row *row,
		    struct sl_bench_sample *sample);

#endif
