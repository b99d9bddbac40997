/* stages.c - an experiment's stages on one core: frames that lie in memory go through the unit,
 * batch after batch. With `dump` it only writes to a folder what a peer needs to do the same to the
 * same pixels. */
#include <limits.h>

#include <sluice/option.h>

#include "bench/part/experiment.h"
#include "bench/peer/peer.h"

#define USAGE "bench_stages EXPERIMENT FRAMES | bench_stages EXPERIMENT dump FOLDER"

static _Noreturn void give_up(const char *what, int err)
{
	errno = -err;
	bench_fail(what);
}

/* How many frames of each kind differ: the detector's own option. */
static uint32_t pool_of(const struct bench_experiment *b)
{
	const struct sl_option *option = sl_option_find(b->e->detector->options, "pool");
	char text[64];

	if (!option)
		return 1;
	sl_option_print(option, b->e->detector_state, text, sizeof(text));
	return (uint32_t)strtoul(text, NULL, 10);
}

static uint32_t at_most(uint64_t rest, uint32_t batch)
{
	return rest < batch ? (uint32_t)rest : batch;
}

/* Pedestals first, as in a run; not timed. */
static void process_darks(struct bench_experiment *b)
{
	uint64_t darks = b->e->run.dark_frames;
	struct sl_batch batch;

	for (uint64_t i = 0; i < darks; i += b->batch) {
		int err = bench_experiment_fill(b, i, at_most(darks - i, b->batch), true, &batch);

		err = err ? err : bench_experiment_process(b, &batch);
		if (err)
			give_up("dark frames", err);
	}
}

static double process_bright(struct bench_experiment *b, uint64_t frames, float *score)
{
	uint32_t pool = pool_of(b);
	double start = bench_now_s();
	struct sl_batch batch;

	for (uint64_t i = 0; i < frames; i += b->batch) {
		int err = bench_experiment_fill(b, i, at_most(frames - i, b->batch), false, &batch);

		err = err ? err : bench_experiment_process(b, &batch);
		if (err)
			give_up("bright frames", err);
		for (uint32_t f = 0; f < batch.frames; f++)
			score[(i + f) % pool] = batch.frame[f]->verdict[0].score;
	}
	return bench_now_s() - start;
}

static void measure(struct bench_experiment *b, uint64_t frames)
{
	uint32_t pool = pool_of(b);
	float *score = calloc(pool, sizeof(*score));
	double seconds;

	if (!score)
		give_up("scores", -ENOMEM);
	process_darks(b);
	seconds = process_bright(b, frames, score);
	printf("{\"GB_per_s\": %.6f, \"frames_per_s\": %.2f, \"seconds\": %.6f, \"scores\": [",
	       1e-9 * (double)(frames * bench_experiment_frame_bytes(b)) / seconds,
	       (double)frames / seconds, seconds);
	for (uint32_t i = 0; i < pool; i++)
		printf("%s%.0f", i ? ", " : "", (double)score[i]);
	printf("]}\n");
	free(score);
}

static FILE *create(const char *folder, const char *name)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "wb");
	if (!file)
		bench_fail(path);
	return file;
}

static void put(FILE *file, const void *data, size_t bytes)
{
	if (fwrite(data, 1, bytes, file) != bytes)
		bench_fail("write");
}

static void finish(FILE *file)
{
	if (fclose(file))
		bench_fail("write");
}

static void dump_frames(struct bench_experiment *b, const char *folder, bool dark)
{
	FILE *file = create(folder, dark ? "dark.u16" : "bright.u16");
	struct sl_batch batch;

	for (uint32_t i = 0, pool = pool_of(b); i < pool; i++) {
		int err = bench_experiment_fill(b, i, 1, dark, &batch);

		if (err)
			give_up("frames", err);
		for (uint32_t m = 0; m < b->geometry.modules; m++)
			put(file, batch.frame[0]->view[m].pixels.host, b->geometry.module_bytes);
	}
	finish(file);
}

static void dump(struct bench_experiment *b, const char *folder)
{
	const struct sl_geometry *g = &b->geometry;
	size_t plane = g->modules * sl_geometry_pixels(g) * sizeof(float);
	FILE *file;

	dump_frames(b, folder, false);
	dump_frames(b, folder, true);
	file = create(folder, "calibration.f32"); /* pedestals of G0, G1, G2, then their gains */
	for (int gain = 0; gain < 3; gain++)
		put(file, b->calibration.pedestal[gain], plane);
	for (int gain = 0; gain < 3; gain++)
		put(file, b->calibration.gain[gain], plane);
	finish(file);
	file = create(folder, "about.json");
	fprintf(file,
		"{\"pixels\": %llu, \"pool\": %u, \"dark_frames\": %llu, \"photon_energy_keV\": "
		"%.17g}\n",
		(unsigned long long)(g->modules * sl_geometry_pixels(g)), pool_of(b),
		(unsigned long long)b->e->run.dark_frames, g->photon_energy_keV);
	finish(file);
}

int main(int argc, char **argv)
{
	struct bench_experiment b;
	int err;

	if (argc != 3 && !(argc == 4 && !strcmp(argv[2], "dump")))
		bench_usage(USAGE);
	err = bench_experiment_open(&b, argv[1], NULL, 0);
	if (err)
		give_up(argv[1], err);
	if (!b.env.calibration)
		give_up("the detector has no calibration", -EINVAL);
	if (argc == 4)
		dump(&b, argv[3]);
	else
		measure(&b, bench_number(argv[2], USAGE));
	bench_experiment_close(&b);
	return 0;
}
