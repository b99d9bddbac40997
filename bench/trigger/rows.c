/* rows.c - which rows `sluice bench trigger` has. A plain name is the stage with its
 * default options in the cpu unit, on one core, with the best vectors; rings in blocks of 256
 * events, tracks in sectors of 160 stubs. Then
 *
 *   .../avx2, .../baseline    no better instructions than these
 *   .../4cores and so on      as many workers, each on its core; blocks in stacks of 8
 *   .../32, .../1024          rings: blocks of as many events
 *   .../triplets-128          rings: twice as many are tried
 *   .../noise-6               rings: six hits of noise in an event, not two
 *   .../bend0, .../fit        tracks: any bend; with a helix
 *   .../event-140, -200       tracks: whole events of 288 sectors, at that pile-up
 *   .../at-10, -50, -90       latencies of events that come at so many per cent of what one core
 *                             can do
 *   .../udp                   latencies over `udp`, at half a million events a second
 *   .../udp/latency           data threads never sleep
 *   .../udp/together          and the receiver has one of them in place of three
 *   scalar/..., oracle/...    the same events by a scalar program, and by the oracle of the tests
 *   machine/jitter            what the machine does on its own */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "bench/trigger/trigger.h"
#include "stage/tracks/maths.h"

/* Every time anew: what was rejected once is looked at again. */
#define RINGS	     "rings:look=all"
#define TRACKS(kind) "tracks:look=all,cells=" kind

#define RINGS_AT(suffix, events, share)                                                        \
	{                                                                                      \
		.work = {.name = "sluice/rings" suffix, .chain = RINGS}, .way = SL_BENCH_OPEN, \
		.size = events, .stack = 8, .percent = share                                   \
	}

#define RINGS_CORES(n)                                                        \
	{                                                                     \
		.work = {.name = "sluice/rings/" #n "cores", .chain = RINGS}, \
		.size = SL_BENCH_RICH, .stack = 8, .cores = n                 \
	}

#define TRACKS_CORES(n)                                                                            \
	{                                                                                          \
		.work = {.name = "sluice/tracks/hexagons/event-140/" #n "cores",                   \
			 .chain = TRACKS("hexagons")},                                             \
		.size = SL_BENCH_TRACKER_140, .stack = 8, .cores = n, .cells = SL_TRACKS_HEXAGONS, \
		.bend = 3, .between = true                                                         \
	}

#define TRACKS_AT(share)                                                                          \
	{                                                                                         \
		.work = {.name = "sluice/tracks/hexagons/event-140/at-" #share,                   \
			 .chain = TRACKS("hexagons")},                                            \
		.way = SL_BENCH_OPEN, .size = SL_BENCH_TRACKER_140, .stack = 4, .percent = share, \
		.cells = SL_TRACKS_HEXAGONS, .bend = 3, .between = true                           \
	}

/* us: hoped for at most. */
#define SECTORS(kind, number, suffix, options, deviations, us)                        \
	{                                                                             \
		.work = {.name = "sluice/tracks/" kind suffix,                        \
			 .chain = TRACKS(kind) ",unique=sector" options},             \
		.size = SL_BENCH_SECTORS, .stack = 4, .vectors = true, .most_us = us, \
		.cells = number, .bend = deviations                                   \
	}

#define EVENTS(kind, number, suffix, options, deviations, pile_up)                \
	{                                                                         \
		.work = {.name = "sluice/tracks/" kind "/event-" #pile_up suffix, \
			 .chain = TRACKS(kind) options},                          \
		.size = SL_BENCH_TRACKER_##pile_up, .stack = 4, .cells = number,  \
		.bend = deviations, .between = true                               \
	}

#define BESIDE(who, how, kind, number, suffix, deviations)                                \
	{                                                                                 \
		.work = {.name = who "/tracks/" kind suffix}, .way = how,                 \
		.size = SL_BENCH_SECTORS, .stack = 1, .cells = number, .bend = deviations \
	}

#define KINDS(row, ...)                                       \
	row("rectangles", SL_TRACKS_RECTANGLES, __VA_ARGS__), \
		row("hexagons", SL_TRACKS_HEXAGONS, __VA_ARGS__)

#define BESIDE_KINDS(who, how, suffix, deviations)                                \
	BESIDE(who, how, "rectangles", SL_TRACKS_RECTANGLES, suffix, deviations), \
		BESIDE(who, how, "hexagons", SL_TRACKS_HEXAGONS, suffix, deviations)

static const struct sl_bench_trigger triggers[] = {
	{.work = {.name = "sluice/rings", .chain = RINGS},
	 .size = SL_BENCH_RICH,
	 .stack = 8,
	 .vectors = true,
	 .most_us = 1},
	{.work = {.name = "scalar/rings"},
	 .way = SL_BENCH_SCALAR,
	 .size = SL_BENCH_RICH,
	 .stack = 1},
	{.work = {.name = "oracle/rings"},
	 .way = SL_BENCH_ORACLE,
	 .size = SL_BENCH_RICH,
	 .stack = 1},
	{.work = {.name = "sluice/rings/32", .chain = RINGS}, .size = SL_BENCH_RICH_32, .stack = 8},
	{.work = {.name = "sluice/rings/1024", .chain = RINGS},
	 .size = SL_BENCH_RICH_1024,
	 .stack = 8},
	{.work = {.name = "sluice/rings/triplets-128", .chain = RINGS ",triplets=128"},
	 .size = SL_BENCH_RICH,
	 .stack = 8,
	 .triplets = 128},
	{.work = {.name = "sluice/rings/noise-6", .chain = RINGS},
	 .size = SL_BENCH_RICH_NOISE,
	 .stack = 8},
	RINGS_CORES(4),
	RINGS_CORES(8),
	RINGS_CORES(16),
	KINDS(SECTORS, "", "", 3, 30),
	BESIDE_KINDS("scalar", SL_BENCH_SCALAR, "", 3),
	BESIDE_KINDS("oracle", SL_BENCH_ORACLE, "", 3),
	KINDS(SECTORS, "/fit", ",fit=true", 3, 30),
	KINDS(SECTORS, "/bend0", ",bend=0", 0, 30),
	BESIDE_KINDS("scalar", SL_BENCH_SCALAR, "/bend0", 0),
	SECTORS("one-hexagon", SL_TRACKS_ONE_HEXAGON, "/bend0", ",bend=0", 0, 0),
	BESIDE("scalar", SL_BENCH_SCALAR, "one-hexagon", SL_TRACKS_ONE_HEXAGON, "/bend0", 0),
	KINDS(EVENTS, "", "", 3, 140),
	TRACKS_CORES(4),
	TRACKS_CORES(8),
	TRACKS_CORES(16),
	KINDS(EVENTS, "/fit", ",fit=true", 3, 140),
	KINDS(EVENTS, "/bend0", ",bend=0", 0, 140),
	KINDS(EVENTS, "", "", 3, 200),
	KINDS(EVENTS, "/fit", ",fit=true", 3, 200),
	KINDS(EVENTS, "/bend0", ",bend=0", 0, 200),
	RINGS_AT("/at-10", SL_BENCH_RICH, 10),
	RINGS_AT("/at-50", SL_BENCH_RICH, 50),
	RINGS_AT("/at-90", SL_BENCH_RICH, 90),
	RINGS_AT("/32/at-10", SL_BENCH_RICH_32, 10),
	RINGS_AT("/32/at-50", SL_BENCH_RICH_32, 50),
	RINGS_AT("/32/at-90", SL_BENCH_RICH_32, 90),
	TRACKS_AT(10),
	TRACKS_AT(50),
	TRACKS_AT(90),
	{.work = {.name = "sluice/rings/udp"}, .way = SL_BENCH_UDP, .most_us = 1000},
	{.work = {.name = "sluice/rings/udp/latency"},
	 .way = SL_BENCH_UDP,
	 .most_us = 1000,
	 .threads = "polling: latency"},
	{.work = {.name = "sluice/rings/udp/together"},
	 .way = SL_BENCH_UDP,
	 .most_us = 1000,
	 .threads = "polling: latency, together: true"},
	{.work = {.name = "machine/jitter"}, .way = SL_BENCH_JITTER},
};

static void add(struct sl_bench *bench, const struct sl_bench_trigger *t, const char *vectors)
{
	struct sl_bench_row row = {
		.work = &t->work,
		.trigger = t,
		.vectors = vectors,
		.stack = t->stack,
		.cores = t->cores ? t->cores : 1,
		.size = t->size,
		.latency = t->way >= SL_BENCH_OPEN,
	};

	snprintf(row.name, sizeof(row.name), "%s%s%s", t->work.name, vectors ? "/" : "",
		 vectors ? vectors : "");
	if ((!bench->o.only[0] || fnmatch(bench->o.only, row.name, 0) == 0) &&
	    (!bench->o.compared || sl_bench_compared(row.name)))
		bench->row[bench->rows++] = row;
}

int sl_bench_trigger_rows(struct sl_bench *bench)
{
	const size_t n = sizeof(triggers) / sizeof(triggers[0]);

	bench->stages = calloc(1, sizeof(*bench->stages));
	bench->row = calloc(3 * n, sizeof(*bench->row));
	if (!bench->stages || !bench->row)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		add(bench, &triggers[i], NULL);
		if (!triggers[i].vectors)
			continue;
		add(bench, &triggers[i], "avx2");
		add(bench, &triggers[i], "baseline");
	}
	return 0;
}

int sl_bench_trigger_prepare(struct sl_bench *bench)
{
	for (unsigned i = 0; i < bench->rows; i++) {
		const struct sl_bench_row *row = &bench->row[i];
		struct sl_bench_scene *scene = &bench->stages->scene[row->size];
		int err = 0;

		if (row->trigger->way < SL_BENCH_UDP && !scene->frames)
			err = sl_bench_events_make(scene, row->size);
		if (err)
			return err;
	}
	return 0;
}
