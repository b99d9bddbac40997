/* pack.c - packing alone: the images of an experiment file, from memory into memory, by several
 * threads. What the packing workers of a sink reach when nothing else runs. */
#include <inttypes.h>

#include "base/thread.h"
#include "bench/part/experiment.h"
#include "bench/peer/peer.h"
#include "codec/pack.h"

#define USAGE "bench_pack EXPERIMENT IMAGES THREADS"

enum { MOST_THREADS = 64, DISTINCT = 16 }; /* images that are packed in turn: larger than caches */

struct pictures {
	const uint8_t *image[DISTINCT];
	uint64_t bytes, each; /* of an image; images for each thread */
	uint32_t distinct, element;
};

struct packing {
	const struct pictures *pictures;
	uint64_t packed; /* bytes */
	struct sl_thread thread;
	uint32_t number;
};

static _Noreturn void give_up(const char *what, int err)
{
	errno = -err;
	bench_fail(what);
}

static void *pack_all(void *arg)
{
	struct packing *p = arg;
	const struct pictures *of = p->pictures;
	size_t room = sl_pack_bound(SL_CODEC_BSLZ4, of->bytes, of->element);
	void *out = malloc(room);
	struct sl_packer packer;

	if (!out || sl_packer_init(&packer, SL_VECTORS_AUTO))
		give_up("no memory for a packer", -ENOMEM);
	for (uint64_t i = 0; i < of->each; i++) {
		int64_t n = sl_pack(&packer, SL_CODEC_BSLZ4,
				    of->image[(i + p->number) % of->distinct], of->bytes,
				    of->element, out, room);

		if (n < 0)
			give_up("cannot pack", (int)n);
		p->packed += (uint64_t)n;
	}
	sl_packer_fini(&packer);
	free(out);
	return NULL;
}

/* The first result of as many frames as the pool has, at most DISTINCT. */
static void make_images(struct bench_experiment *b, struct pictures *to)
{
	struct sl_batch batch;
	int err = 0;

	for (int i = 0; i < BENCH_BATCHES && !err && to->distinct < DISTINCT; i++) {
		err = bench_experiment_fill(b, (uint64_t)i * b->batch, b->batch, false, &batch);
		err = err ? err : bench_experiment_process(b, &batch);
		for (uint32_t f = 0; f < b->batch && !err && to->distinct < DISTINCT; f++)
			to->image[to->distinct++] = batch.frame[f]->result[0].host;
	}
	if (err)
		give_up("the stages failed", err);
	to->bytes = sl_shape_bytes(&b->build.result[0]);
	to->element = (uint32_t)sl_dtype_bytes(b->build.result[0].dtype);
}

int main(int argc, char **argv)
{
	static struct packing packing[MOST_THREADS];
	struct pictures pictures = {.distinct = 0};
	struct bench_experiment b;
	uint64_t threads, packed = 0;
	double start, seconds, images;
	int err;

	if (argc != 4)
		bench_usage(USAGE);
	threads = bench_number(argv[3], USAGE);
	if (!threads || threads > MOST_THREADS)
		bench_usage(USAGE);
	err = bench_experiment_open(&b, argv[1], NULL, 0);
	if (err)
		give_up(argv[1], err);
	make_images(&b, &pictures);
	pictures.each = (bench_number(argv[2], USAGE) + threads - 1) / threads;

	start = bench_now_s();
	for (uint32_t t = 0; t < threads; t++) {
		packing[t] = (struct packing){.pictures = &pictures, .number = t};
		err = sl_thread_start(&packing[t].thread, "pack", NULL, pack_all, &packing[t]);
		if (err)
			give_up("cannot start a thread", err);
	}
	for (uint32_t t = 0; t < threads; t++) {
		sl_thread_join(&packing[t].thread);
		packed += packing[t].packed;
	}
	seconds = bench_now_s() - start;
	images = (double)(pictures.each * threads);
	printf("{\"pixel_GB_per_s\": %.6f, \"image_bytes\": %" PRIu64
	       ", \"packed_bytes_per_image\": %.1f}\n",
	       1e-9 * images * (double)pictures.bytes / seconds, pictures.bytes,
	       (double)packed / images);
	bench_experiment_close(&b);
	return 0;
}
