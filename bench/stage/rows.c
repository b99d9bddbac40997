/* rows.c - which rows `sluice bench stage` has. A plain name means frames of 2164 x
 * 2068 pixels, stacks of 16, one core; then
 *
 *   .../1             frame by frame
 *   .../2cores        two workers, each on its core; likewise 4 to 16. From 4 on stacks are of 8,
 *                     so that several are in flight
 *   .../500k          frames of 512 x 1024 pixels
 *   .../tilted        a detector that is tilted by 17 and -11 degrees
 *   .../avx2, .../baseline    no better instructions than these, where the stage has the option
 *   PEER/WHAT         the same by other means; memory/WHAT: what this machine's memory does */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "bench/stage/stage.h"
#include "core/registry.h"

enum {
	PLAIN = 1 << 0,
	ONE = 1 << 1,
	TWO = 1 << 2,
	SMALL = 1 << 3,
	AVX2 = 1 << 4,
	BASELINE = 1 << 5,
	VECTORS = AVX2 | BASELINE,
	MANY = 1 << 6,
	SMALL_MANY = 1 << 7,
};

enum { FEW = 8 }; /* frames of a stack where there are many cores */

static const struct {
	unsigned way;
	const char *suffix, *vectors;
	uint32_t stack, cores;
	enum sl_bench_size size;
} ways[] = {
	{PLAIN, "", NULL, SL_BENCH_STACK, 1, SL_BENCH_4M},
	{ONE, "/1", NULL, 1, 1, SL_BENCH_4M},
	{TWO, "/2cores", NULL, SL_BENCH_STACK, 2, SL_BENCH_4M},
	{SMALL, "/500k", NULL, SL_BENCH_STACK, 1, SL_BENCH_500K},
	{MANY, "/4cores", NULL, FEW, 4, SL_BENCH_4M},
	{MANY, "/8cores", NULL, FEW, 8, SL_BENCH_4M},
	{MANY, "/12cores", NULL, FEW, 12, SL_BENCH_4M},
	{MANY, "/14cores", NULL, FEW, 14, SL_BENCH_4M},
	{MANY, "/16cores", NULL, FEW, 16, SL_BENCH_4M},
	{SMALL_MANY, "/500k/4cores", NULL, FEW, 4, SL_BENCH_500K},
	{SMALL_MANY, "/500k/8cores", NULL, FEW, 8, SL_BENCH_500K},
	{SMALL_MANY, "/500k/16cores", NULL, FEW, 16, SL_BENCH_500K},
	{AVX2, "/avx2", "avx2", SL_BENCH_STACK, 1, SL_BENCH_4M},
	{BASELINE, "/baseline", "baseline", SL_BENCH_STACK, 1, SL_BENCH_4M},
};

/* The same bins as pyFAI's. */
#define BINS "bins=1000,unit=q_nm,high=HIGH"

#define PYFAI(row, what, about)                                                                  \
	{                                                                                        \
		.name = row, .mode = what, .python = true, .ways = PLAIN | SMALL, .agree = about \
	}

/* Every frame is kept by this veto, so that the stages after it have work. */
#define VETO   "veto:threshold=10,min_pixels=1"
#define SPARSE "sparse:method=threshold,threshold=10"

static const struct sl_bench_work works[] = {
	{.name = "sluice/correct/i16",
	 .chain = "correct:output=photons_i16",
	 .ways = PLAIN | ONE | TWO | SMALL | VECTORS | MANY | SMALL_MANY},
	{.name = "memcpy/correct-i16-bytes",
	 .program = "peer_correct",
	 .mode = "memcpy",
	 .ways = PLAIN | TWO | SMALL | MANY | SMALL_MANY},
	{.name = "scalar/correct/i16",
	 .program = "peer_correct",
	 .mode = "scalar",
	 .ways = PLAIN | SMALL,
	 .agree = SL_BENCH_AGREE_IMAGE},
	{.name = "openmp/correct/i16",
	 .program = "peer_openmp",
	 .mode = "openmp",
	 .ways = PLAIN | SMALL,
	 .agree = SL_BENCH_AGREE_IMAGE},
	{.name = "numpy/correct",
	 .mode = "numpy",
	 .python = true,
	 .ways = PLAIN | SMALL,
	 .agree = SL_BENCH_AGREE_IMAGE},
	{.name = "sluice/correct/f32",
	 .chain = "correct:output=kev_f32",
	 .ways = PLAIN | ONE | TWO | SMALL | VECTORS},
	{.name = "sluice/correct+veto",
	 .chain = "correct:output=photons_i16 " VETO,
	 .ways = PLAIN | ONE | TWO | MANY},
	/* What is kept are these pixels: nobody wants the image. */
	{.name = "sluice/correct+veto+sparse",
	 .chain = "correct:output=photons_i16 " VETO " " SPARSE,
	 .unread = true,
	 .ways = PLAIN | ONE | TWO | SMALL},
	{.name = "sluice/all",
	 .chain = "correct:output=photons_i16 " VETO " integrate peaks " SPARSE,
	 .unread = true,
	 .ways = PLAIN | TWO | SMALL | MANY | SMALL_MANY},
	{.name = "sluice/integrate/1000bins",
	 .chain = "image integrate:" BINS,
	 .ways = PLAIN | ONE | TWO | SMALL | VECTORS | MANY,
	 .agree = SL_BENCH_AGREE_NO_SPLIT},
	/* The same tables of other bins: as fast. */
	{.name = "sluice/integrate/1000bins/tilted",
	 .chain = "image integrate:" BINS,
	 .tilted = true,
	 .ways = PLAIN},
	PYFAI("pyfai/csr-cython", "csr-cython", SL_BENCH_AGREE_NO_SPLIT),
	PYFAI("pyfai/pocl", "pocl", SL_BENCH_AGREE_NO_SPLIT),
	PYFAI("pyfai/histogram", "histogram", SL_BENCH_AGREE_NO_SPLIT),
	{.name = "sluice/integrate-bbox/1000bins",
	 .chain = "image integrate:split=bbox," BINS,
	 .ways = PLAIN | ONE | TWO | SMALL | VECTORS,
	 .agree = SL_BENCH_AGREE_BBOX},
	{.name = "sluice/integrate-bbox/1000bins/tilted",
	 .chain = "image integrate:split=bbox," BINS,
	 .tilted = true,
	 .ways = PLAIN},
	PYFAI("pyfai/csr-cython-bbox", "csr-cython-bbox", SL_BENCH_AGREE_BBOX),
	PYFAI("pyfai/pocl-bbox", "pocl-bbox", SL_BENCH_AGREE_BBOX),
	{.name = "sluice/spots", .chain = "image spots", .ways = PLAIN | TWO | SMALL | VECTORS},
	{.name = "sluice/peaks",
	 .chain = "image peaks",
	 .ways = PLAIN | TWO | SMALL | VECTORS | MANY | SMALL_MANY},
	PYFAI("pyfai/peakfinder", "peakfinder", SL_BENCH_AGREE_NOTHING),
	{.name = "sluice/sparse",
	 .chain = "image " SPARSE,
	 .ways = PLAIN | ONE | TWO | SMALL | VECTORS},
	{.name = "sluice/correlate/100rings",
	 .chain = "image correlate:regions=rings,rings=100,high=HIGH",
	 .ways = PLAIN | TWO | SMALL | VECTORS | MANY},
	{.name = "sluice/sparse-radial",
	 .chain = "image sparse:method=radial,bins=800",
	 .ways = PLAIN | TWO | SMALL | VECTORS},
	PYFAI("pyfai/sparsify", "sparsify", SL_BENCH_AGREE_NOTHING),
	{.name = "memory/read",
	 .program = "peer_memory",
	 .mode = "read",
	 .ways = PLAIN | TWO | MANY},
	{.name = "memory/write",
	 .program = "peer_memory",
	 .mode = "write",
	 .ways = PLAIN | TWO | MANY},
	{.name = "memory/write-streaming",
	 .program = "peer_memory",
	 .mode = "write-streaming",
	 .ways = PLAIN | TWO | MANY},
	{.name = "memory/copy-streaming",
	 .program = "peer_memory",
	 .mode = "copy-streaming",
	 .ways = PLAIN | TWO | MANY},
};

static bool has_vectors(const struct sl_bench_work *work)
{
	char name[SL_NAME_BYTES];
	const char *first = work->chain;
	const struct sl_stage *stage;

	if (first && !strncmp(first, "image ", 6))
		first += 6;
	if (!first)
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(first, ": "), first);
	stage = sl_stage_find(name);
	return stage && sl_option_find(stage->options, "vectors");
}

static void add(struct sl_bench *bench, const struct sl_bench_work *work, size_t w)
{
	struct sl_bench_row row = {
		.work = work,
		.program = work->program,
		.mode = work->mode,
		.vectors = ways[w].vectors,
		.stack = ways[w].stack,
		.cores = ways[w].cores,
		.size = ways[w].size,
	};

	snprintf(row.name, sizeof(row.name), "%s%s", work->name, ways[w].suffix);
	if ((!bench->o.only[0] || fnmatch(bench->o.only, row.name, 0) == 0) &&
	    (!bench->o.compared || sl_bench_compared(row.name)))
		bench->row[bench->rows++] = row;
}

int sl_bench_stage_rows(struct sl_bench *bench)
{
	const size_t n = sizeof(works) / sizeof(works[0]), m = sizeof(ways) / sizeof(ways[0]);

	bench->stages = calloc(1, sizeof(*bench->stages));
	bench->row = calloc(n * m, sizeof(*bench->row));
	if (!bench->stages || !bench->row)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		for (size_t w = 0; w < m; w++)
			if (works[i].ways & ways[w].way &&
			    (!(ways[w].way & VECTORS) || has_vectors(&works[i])))
				add(bench, &works[i], w);
	return 0;
}

/* ---- before and after all rounds ---- */

static bool is_peer(const struct sl_bench_row *row)
{
	return !row->work->chain;
}

int sl_bench_stage_prepare(struct sl_bench *bench)
{
	struct sl_bench_stages *stages = bench->stages;

	for (unsigned i = 0; i < bench->rows; i++) {
		struct sl_bench_row *row = &bench->row[i];
		struct sl_bench_scene *scene = &stages->scene[row->size];
		int err = 0;

		if (!scene->frames)
			err = sl_bench_scene_make(scene, row->size);
		row->bytes = scene->geometry.module_bytes;
		if (!err && (is_peer(row) || row->work->agree != SL_BENCH_AGREE_NOTHING))
			err = sl_bench_files_make(stages, row->size);
		if (err)
			return err;
	}
	return 0;
}

void sl_bench_stage_end(struct sl_bench *bench)
{
	struct sl_bench_stages *stages = bench->stages;

	if (!stages)
		return;
	sl_bench_python_end(&stages->python);
	sl_bench_files_remove(stages);
	for (unsigned i = 0; i < SL_BENCH_SIZES; i++)
		sl_bench_scene_free(&stages->scene[i]);
	free(stages);
	bench->stages = NULL;
}
