/* rows.c - sluice bench gpu: which rows there are; gpu.c says what they are of. */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gpu/gpu.h"
#include "core/device.h"
#include "stage/tracks/maths.h"

enum { STACK = SL_BENCH_GPU_STACK, BLOCKS = 8 };

#define VETO   "veto:threshold=10,min_pixels=1"
#define SPARSE "sparse:method=threshold,threshold=10"
/* Lists that are about 15 % of what comes in. */
#define SPARSE_LISTS "sparse:method=threshold,threshold=5,max_pixels=400000"
#define IMAGES(row, stages, us)                                                              \
	{                                                                                    \
		.work = {.name = row, .chain = stages}, .size = SL_BENCH_4M, .stack = STACK, \
		.most_us = us                                                                \
	}
#define EVENTS(row, stages, events, us)                                                  \
	{                                                                                \
		.work = {.name = row, .chain = stages}, .size = events, .stack = BLOCKS, \
		.most_us = us                                                            \
	}

#define UNIT(row, stages, events, n)                                                              \
	{                                                                                         \
		.work = {.name = row, .chain = stages, .unread = true}, .way = SL_BENCH_GPU_UNIT, \
		.size = events, .stack = n                                                        \
	}

#define INGEST(row, how, picked)                                                          \
	{                                                                                 \
		.work = {.name = row,                                                     \
			 .chain = "checksum correct:output=photons_i16 " VETO " " picked, \
			 .unread = true},                                                 \
		.way = how, .size = SL_BENCH_4M, .stack = BLOCKS                          \
	}

#define PACED_BY(row, events, n, millions, how)                                             \
	{                                                                                   \
		.work = {.name = "unit/rings/paced/" row, .chain = "rings:look=all"},       \
		.way = SL_BENCH_GPU_PACED, .size = events, .stack = n, .M_per_s = millions, \
		.unit_trigger = how                                                         \
	}
#define PACED(row, events, n, millions) PACED_BY(row, events, n, millions, NULL)

#define RING(row, bytes, is_tagged, is_on_device, us)                                   \
	{                                                                               \
		.work = {.name = row}, .way = SL_BENCH_GPU_RING, .size = SL_BENCH_500K, \
		.stack = 1, .most_us = us, .event_bytes = bytes, .tagged = is_tagged,   \
		.on_device = is_on_device                                               \
	}

#define TAGGED_4096(row, ...)                                                           \
	{                                                                               \
		.work = {.name = row}, .way = SL_BENCH_GPU_RING, .size = SL_BENCH_500K, \
		.stack = 1, .event_bytes = 4096, .tagged = true, __VA_ARGS__            \
	}

#define ALONE(row, kind, only_cells, us)                                                        \
	{                                                                                       \
		.work = {.name = row}, .way = SL_BENCH_GPU_RING, .size = SL_BENCH_SECTORS,      \
		.stack = 1, .most_us = us, .tagged = true, .tracks = kind, .cells = only_cells, \
		.alone = true                                                                   \
	}

#define SECTOR(row, kind, us, only_cells)                                                      \
	{                                                                                      \
		.work = {.name = row}, .way = SL_BENCH_GPU_RING, .size = SL_BENCH_SECTORS,     \
		.stack = 1, .most_us = us, .tagged = true, .tracks = kind, .cells = only_cells \
	}
#define NEXT(row, kind, us)                                                                \
	{                                                                                  \
		.work = {.name = row}, .way = SL_BENCH_GPU_RING, .size = SL_BENCH_SECTORS, \
		.stack = 1, .most_us = us, .tagged = true, .tracks = kind, .cells = true,  \
		.at_once = true                                                            \
	}
#define TRACKS(row, kind, us) SECTOR(row, kind, us, false)
#define CELLS(row, kind, us)  SECTOR(row, kind, us, true)

static const struct sl_bench_trigger rectangles = {.cells = SL_TRACKS_RECTANGLES},
				     hexagons = {.cells = SL_TRACKS_HEXAGONS},
				     bent = {.cells = SL_TRACKS_HEXAGONS, .bend = 3};

static const struct sl_bench_gpu rows[] = {
	{.work = {.name = "memory-copy"},
	 .way = SL_BENCH_GPU_COPY,
	 .size = SL_BENCH_4M,
	 .stack = STACK},
	{.work = {.name = "up"}, .way = SL_BENCH_GPU_UP, .size = SL_BENCH_4M, .stack = 1},
	{.work = {.name = "down"}, .way = SL_BENCH_GPU_DOWN, .size = SL_BENCH_4M, .stack = 1},
	IMAGES("correct", "correct:output=photons_i16", 6.5),
	IMAGES("correct+veto", "correct:output=photons_i16 " VETO, 7),
	IMAGES("correct+veto+sparse", "correct:output=photons_i16 " VETO " " SPARSE, 18),
	IMAGES("correct/f32", "correct:output=kev_f32", 0),
	IMAGES("integrate", "image integrate:bins=1000,unit=q_nm,high=HIGH", 20),
	IMAGES("integrate-bbox", "image integrate:split=bbox,bins=1000,unit=q_nm,high=HIGH", 0),
	IMAGES("peaks", "image peaks", 250),
	IMAGES("spots", "image spots", 0),
	IMAGES("sparse", "image " SPARSE, 0),
	IMAGES("sparse-radial", "image sparse:method=radial,bins=800", 0),
	IMAGES("reduce", "image reduce", 0),
	IMAGES("correlate", "image correlate:regions=rings,rings=100,high=HIGH", 0),
	EVENTS("rings", "rings:look=all", SL_BENCH_RICH_1024, 0.05),
	{.work = {.name = "rings/4096", .chain = "rings:look=all"},
	 .size = SL_BENCH_RICH_1024,
	 .stack = 4,
	 .most_us = 0.05},
	EVENTS("tracks/rectangles", "tracks:look=all,cells=rectangles,bend=0", SL_BENCH_TRACKER_140,
	       0),
	EVENTS("tracks/hexagons", "tracks:look=all,cells=hexagons,bend=0", SL_BENCH_TRACKER_140, 0),
	EVENTS("tracks/rectangles/full", "tracks:look=all,cells=rectangles,bend=0",
	       SL_BENCH_SECTORS, 0),
	EVENTS("tracks/hexagons/full", "tracks:look=all,cells=hexagons,bend=0", SL_BENCH_SECTORS,
	       0),
	EVENTS("tracks/hexagons/fit", "tracks:look=all,cells=hexagons,fit=true",
	       SL_BENCH_TRACKER_140, 0),
	UNIT("unit/correct+veto+sparse", "correct:output=photons_i16 " VETO " " SPARSE, SL_BENCH_4M,
	     4),
	UNIT("unit/rings", "rings:look=all", SL_BENCH_RICH_1024, BLOCKS),
	PACED("1M", SL_BENCH_RICH, 8, 1),
	PACED("10M", SL_BENCH_RICH_1024, 6, 10),
	PACED("20M", SL_BENCH_RICH_1024, 6, 20),
	PACED_BY("1M/persistent", SL_BENCH_RICH, 4, 1, "persistent"),
	PACED_BY("10M/persistent", SL_BENCH_RICH_1024, 4, 10, "persistent"),
	PACED_BY("10M/loop", SL_BENCH_RICH_1024, 6, 10, "loop"),
	PACED_BY("10M/graph", SL_BENCH_RICH_1024, 6, 10, "graph"),
	PACED_BY("10M/wait", SL_BENCH_RICH_1024, 6, 10, "wait"),
	INGEST("ingest/resident", SL_BENCH_GPU_RESIDENT, SPARSE),
	INGEST("ingest/resident/lists", SL_BENCH_GPU_RESIDENT, SPARSE_LISTS),
	INGEST("ingest/written", SL_BENCH_GPU_WRITTEN, SPARSE),
	RING("ring-48/persistent", 48, true, false, 0),
	RING("ring-960/persistent", 960, true, false, 0),
	RING("ring-4096/persistent", 4096, true, false, 3),
	TAGGED_4096("ring-4096/persistent/2", .buffers = 2),
	TAGGED_4096("ring-4096/persistent/next", .at_once = true, .most_us = 3),
	RING("ring-4096/persistent/plain", 4096, false, false, 0),
	RING("ring-4096/persistent/device", 4096, false, true, 0),
	CELLS("ring-cells/rectangles/persistent", &rectangles, 4.5),
	CELLS("ring-cells/hexagons/persistent", &hexagons, 4.5),
	CELLS("ring-cells/hexagons-bend/persistent", &bent, 0),
	NEXT("ring-cells/rectangles/persistent/next", &rectangles, 4.5),
	NEXT("ring-cells/hexagons/persistent/next", &hexagons, 4.5),
	ALONE("ring-cells/rectangles/alone", &rectangles, true, 2),
	ALONE("ring-cells/hexagons/alone", &hexagons, true, 2),
	ALONE("ring-cells/hexagons-bend/alone", &bent, true, 2),
	TRACKS("ring-tracks/rectangles/persistent", &rectangles, 4.5),
	TRACKS("ring-tracks/hexagons/persistent", &hexagons, 4.5),
	TRACKS("ring-tracks/hexagons-bend/persistent", &bent, 0),
	ALONE("ring-tracks/rectangles/alone", &rectangles, false, 0),
	ALONE("ring-tracks/hexagons/alone", &hexagons, false, 0),
	ALONE("ring-tracks/hexagons-bend/alone", &bent, false, 0),
};

static const struct sl_platform *const platforms[] = {&sl_platform_cuda, &sl_platform_opencl,
						      &sl_platform_threads};

/* Threads stand in for a device where a ring is looked at, for the smallest work. */
static bool has(const struct sl_platform *platform, const struct sl_bench_gpu *row)
{
	if (row->way == SL_BENCH_GPU_RING)
		return platform != &sl_platform_threads || !row->tracks;
	if (row->unit_trigger &&
	    (!strcmp(row->unit_trigger, "persistent") || !strcmp(row->unit_trigger, "loop")))
		return platform == &sl_platform_cuda;
	return platform != &sl_platform_threads;
}

/* ---- rows ---- */

/* Whether a platform can be used is found out by the process that measures: a driver that was
 * started in this one would not be of use to that one. */
int sl_bench_gpu_rows(struct sl_bench *bench)
{
	const size_t n = sizeof(rows) / sizeof(rows[0]),
		     m = sizeof(platforms) / sizeof(platforms[0]);

	bench->stages = calloc(1, sizeof(*bench->stages));
	bench->row = calloc(n * m, sizeof(*bench->row));
	if (!bench->stages || !bench->row)
		return -ENOMEM;
	for (size_t p = 0; p < m; p++)
		for (size_t i = 0; i < n; i++) {
			struct sl_bench_row row = {.work = &rows[i].work,
						   .gpu = &rows[i],
						   .platform = platforms[p],
						   .stack = rows[i].stack,
						   .cores = 1,
						   .size = rows[i].size};

			snprintf(row.name, sizeof(row.name), "%s/%s", platforms[p]->name,
				 rows[i].work.name);
			row.latency = rows[i].way == SL_BENCH_GPU_RING ||
				      rows[i].way == SL_BENCH_GPU_PACED;
			if (has(platforms[p], &rows[i]) &&
			    (!bench->o.only[0] || fnmatch(bench->o.only, row.name, 0) == 0))
				bench->row[bench->rows++] = row;
		}
	return 0;
}

int sl_bench_gpu_prepare(struct sl_bench *bench)
{
	for (unsigned i = 0; i < bench->rows; i++) {
		struct sl_bench_row *row = &bench->row[i];
		struct sl_bench_scene *scene = &bench->stages->scene[row->size];
		int err = 0;

		if (!scene->frames && (row->gpu->way != SL_BENCH_GPU_RING || row->gpu->tracks))
			err = row->size <= SL_BENCH_500K ? sl_bench_scene_make(scene, row->size)
							 : sl_bench_events_make(scene, row->size);
		if (err)
			return err;
	}
	return 0;
}
