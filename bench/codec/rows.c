/* rows.c - which rows `sluice bench codec` has, what they are compared with, and their table.
 *
 *   sluice/CODEC/IMAGES          images are packed
 *   sluice/CODEC/IMAGES/unpack   and unpacked
 *   bitshuffle/...               the same by the bitshuffle library */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "bench/codec/rows.h"

static const struct sl_bench_images kinds[] = {
	{"u16-0.01", SL_BENCH_PHOTONS, 2, 0.01},
	{"u16-0.1", SL_BENCH_PHOTONS, 2, 0.1},
	{"u16-1", SL_BENCH_PHOTONS, 2, 1},
	{"u16-10", SL_BENCH_PHOTONS, 2, 10},
	{"u32-0.01", SL_BENCH_PHOTONS, 4, 0.01},
	{"u32-0.1", SL_BENCH_PHOTONS, 4, 0.1},
	{"u32-1", SL_BENCH_PHOTONS, 4, 1},
	{"u32-10", SL_BENCH_PHOTONS, 4, 10},
	{"adu", SL_BENCH_ADU, 2, 0},
	{"noise", SL_BENCH_NOISE, 2, 0},
};
static const struct {
	const char *name;
	enum sl_codec codec;
	bool has_peer;
} codecs[] = {
	{"bslz4", SL_CODEC_BSLZ4, true},
	{"bszstd", SL_CODEC_BSZSTD, true},
	{"lz4", SL_CODEC_LZ4, false},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]), CODECS = sizeof(codecs) / sizeof(codecs[0]) };

static struct sl_bench_codec work[CODECS * KINDS * 4];
static unsigned works;

static const struct sl_bench_ratio comparisons[] = {
	{"sluice/bslz4/u16-0.01", "bitshuffle/bslz4/u16-0.01", 1.3, {0}},
	{"sluice/bslz4/u16-0.1", "bitshuffle/bslz4/u16-0.1", 1.3, {0}},
	{"sluice/bslz4/u16-1", "bitshuffle/bslz4/u16-1", 1.3, {0}},
	{"sluice/bslz4/u16-10", "bitshuffle/bslz4/u16-10", 1.3, {0}},
	{"sluice/bslz4/u32-0.01", "bitshuffle/bslz4/u32-0.01", 1.3, {0}},
	{"sluice/bslz4/u32-0.1", "bitshuffle/bslz4/u32-0.1", 1.3, {0}},
	{"sluice/bslz4/u32-1", "bitshuffle/bslz4/u32-1", 1.3, {0}},
	{"sluice/bslz4/u32-10", "bitshuffle/bslz4/u32-10", 1.3, {0}},
	{"sluice/bslz4/adu", "bitshuffle/bslz4/adu", 1, {0}},
	{"sluice/bslz4/noise", "bitshuffle/bslz4/noise", 1, {0}},
	{"sluice/bslz4/u16-0.1/unpack", "bitshuffle/bslz4/u16-0.1/unpack", 0, {0}},
	{"sluice/bslz4/adu/unpack", "bitshuffle/bslz4/adu/unpack", 0, {0}},
	{"sluice/bszstd/u16-0.1", "bitshuffle/bszstd/u16-0.1", 0, {0}},
	{"sluice/bszstd/adu", "bitshuffle/bszstd/adu", 0, {0}},
};

const struct sl_bench_ratio *sl_bench_codec_comparison(unsigned i)
{
	return i < sizeof(comparisons) / sizeof(comparisons[0]) ? &comparisons[i] : NULL;
}

static void add(struct sl_bench *bench, unsigned codec, unsigned kind, bool unpack, bool peer)
{
	struct sl_bench_row row = {.codec = &work[works]};

	snprintf(row.name, sizeof(row.name), "%s/%s/%s%s", peer ? "bitshuffle" : "sluice",
		 codecs[codec].name, kinds[kind].name, unpack ? "/unpack" : "");
	if (bench->o.only[0] && fnmatch(bench->o.only, row.name, 0) != 0)
		return;
	if (bench->o.compared && !sl_bench_compared(row.name))
		return;
	work[works++] = (struct sl_bench_codec){.images = &kinds[kind],
						.codec = codecs[codec].codec,
						.unpack = unpack,
						.peer = peer};
	bench->row[bench->rows++] = row;
}

int sl_bench_codec_rows(struct sl_bench *bench)
{
	bench->row = calloc(sizeof(work) / sizeof(work[0]) + 1, sizeof(*bench->row));
	if (!bench->row)
		return -ENOMEM;
	for (unsigned c = 0; c < CODECS; c++)
		for (unsigned k = 0; k < KINDS; k++)
			for (unsigned way = 0; way < 4; way++)
				if (way % 2 == 0 || codecs[c].has_peer)
					add(bench, c, k, way / 2, way % 2);
	return 0;
}

static double pick_packed(const struct sl_bench_sample *sample, unsigned which)
{
	(void)which;
	return sample->packed;
}

void sl_bench_print_codecs(const struct sl_bench *bench, FILE *out)
{
	struct sl_bench_figure f, packed;

	fprintf(out, "%-34s %8s %8s %8s %14s\n", "GB/s of images, one core", "median", "min", "max",
		"packed, % of it");
	for (unsigned i = 0; i < bench->rows; i++)
		if (sl_bench_summarise(&bench->row[i], sl_bench_pick_rate, 0, &f) &&
		    sl_bench_summarise(&bench->row[i], pick_packed, 0, &packed))
			fprintf(out, "%-34s %8.3f %8.3f %8.3f %14.2f\n", bench->row[i].name,
				f.median, f.min, f.max, 100 * packed.median);
}
