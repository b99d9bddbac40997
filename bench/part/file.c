/* file.c - a sink of an experiment file alone: kept images that lie in memory, one after the other,
 * until the file is closed and on disk. */
#include <sluice/sink.h>

#include "bench/part/experiment.h"
#include "bench/peer/peer.h"
#include "core/ledger.h"

#define USAGE "bench_file EXPERIMENT PATH IMAGES COMPRESSION AUDIT"

static _Noreturn void give_up(const char *what, int err)
{
	errno = -err;
	bench_fail(what);
}

/* Real images in every frame of the pool: a file system that packs zeros would flatter us. */
static int make_images(struct bench_experiment *b)
{
	struct sl_batch batch;
	int err = 0;

	for (int i = 0; i < BENCH_BATCHES && !err; i++) {
		err = bench_experiment_fill(b, (uint64_t)i * b->batch, b->batch, false, &batch);
		err = err ? err : bench_experiment_process(b, &batch);
	}
	b->sequence = 0;
	return err;
}

static int put_all(struct bench_experiment *b, uint64_t images, struct sl_ledger *ledger)
{
	const struct sl_sink *sink = b->e->sink[0];
	struct sl_batch batch;
	int err = sink->open(b->e->sink_state[0], &b->env);

	for (uint64_t i = 0; i < images && !err; i++) {
		err = bench_experiment_fill(b, i, 1, false, &batch);
		err = err ? err : sink->put(b->e->sink_state[0], batch.frame[0]);
		for (uint32_t m = 0; m < b->geometry.modules && !err; m++) {
			sl_ledger_settle_pending(ledger, m, i, false);
			sl_ledger_report(ledger, m, i + 1);
		}
	}
	return err;
}

int main(int argc, char **argv)
{
	char path[4096], packing[64], audit[64];
	const char *override[] = {path, packing, audit};
	struct bench_experiment b;
	static struct sl_status status;
	struct sl_ledger ledger;
	uint64_t images, bytes;
	double start, seconds;
	int err;

	if (argc != 6)
		bench_usage(USAGE);
	images = bench_number(argv[3], USAGE);
	snprintf(path, sizeof(path), "sinks[0].nexus.path=%s", argv[2]);
	snprintf(packing, sizeof(packing), "sinks[0].nexus.compression=%s", argv[4]);
	snprintf(audit, sizeof(audit), "sinks[0].nexus.audit=%s", argv[5]);
	err = bench_experiment_open(&b, argv[1], override, 3);
	if (!err)
		err = make_images(&b);
	if (!err)
		err = sl_ledger_init(&ledger, b.geometry.modules);
	if (err)
		give_up(argv[1], err);

	bytes = images * sl_shape_bytes(&b.build.result[0]);
	start = bench_now_s();
	err = put_all(&b, images, &ledger);
	sl_ledger_status(&ledger, &status);
	if (!err)
		err = b.e->sink[0]->close(b.e->sink_state[0], &status);
	seconds = bench_now_s() - start;
	if (err)
		give_up("the sink failed", err);
	printf("{\"GB_per_s\": %.6f, \"images_per_s\": %.2f, \"seconds\": %.6f}\n",
	       1e-9 * (double)bytes / seconds, (double)images / seconds, seconds);
	sl_ledger_fini(&ledger);
	bench_experiment_close(&b);
	return 0;
}
