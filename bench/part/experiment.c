/* experiment.c - detector, chain and unit of an experiment file, driven by hand. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "bench/part/experiment.h"

static int open_detector(struct bench_experiment *b)
{
	struct sl_experiment *e = b->e;
	int err = sl_experiment_open_detector(e, &b->geometry);

	if (!err && e->detector->prepare)
		err = e->detector->prepare(e->detector_state);
	if (!err && e->detector->calibration)
		err = e->detector->calibration(e->detector_state, &b->calibration);
	b->env = (struct sl_env){
		.geometry = &b->geometry,
		.calibration = e->detector->calibration ? &b->calibration : NULL,
		.detector = e->detector,
		.detector_state = e->detector_state,
		.batch_frames = b->batch,
		.link = e->link->name,
		.guard = "",
		.proof = "",
		.experiment = e->text,
	};
	return err;
}

static int open_chain(struct bench_experiment *b)
{
	struct sl_experiment *e = b->e;
	unsigned workers;
	int err = sl_chain_open(e, &b->env, &b->build);

	if (err)
		return err;
	b->env.result = b->build.result;
	b->env.results = b->build.results;
	err = e->unit->open(e->unit_state, &b->build.chain, &b->todo, &b->done, &workers);
	if (!err && workers != 1) {
		sl_error("the benchmark is the unit's only worker: set unit.workers to 1");
		err = -EINVAL;
	}
	return err;
}

int bench_experiment_open(struct bench_experiment *b, const char *path,
			  const char *const *overrides, size_t n)
{
	int err;

	*b = (struct bench_experiment){.pool.results.fd = -1};
	err = sl_experiment_open(path, NULL, overrides, n, &b->e);
	if (err)
		return err;
	b->batch = b->e->unit_options.batch;
	b->line = calloc(b->batch, sizeof(*b->line));
	err = b->line ? open_detector(b) : -ENOMEM;
	if (!err)
		err = open_chain(b);
	if (!err)
		err = sl_pool_init(&b->pool, BENCH_BATCHES * b->batch, b->geometry.modules, 1, 1,
				   b->build.result, b->build.results);
	return err;
}

void bench_experiment_close(struct bench_experiment *b)
{
	if (!b->e)
		return;
	sl_pool_fini(&b->pool);
	b->e->unit->close(b->e->unit_state);
	sl_chain_close(&b->build);
	b->e->detector->close(b->e->detector_state);
	sl_experiment_close(b->e);
	free(b->line);
}

static int fill_views(struct bench_experiment *b, struct sl_frame *frame)
{
	const struct sl_detector *detector = b->e->detector;
	uint32_t flags = frame->flags & SL_FRAME_DARK ? SL_RECORD_DARK : 0;

	for (uint32_t m = 0; m < frame->views; m++) {
		const void *pixels = NULL;
		/* Prepared: it points into the detector's memory and needs no buffer. */
		int err = detector->render(b->e->detector_state, frame->number, m, flags, NULL,
					   &pixels);

		if (err)
			return err;
		frame->view[m] =
			(struct sl_view){.module = (uint16_t)m, .pixels.host = (void *)pixels};
	}
	return 0;
}

int bench_experiment_fill(struct bench_experiment *b, uint64_t first, uint32_t frames, bool dark,
			  struct sl_batch *batch)
{
	*batch = (struct sl_batch){.frame = b->line, .frames = frames, .capacity = b->batch};
	for (uint32_t i = 0; i < frames; i++) {
		struct sl_frame *frame = &b->pool.frames[b->next].frame;
		int err;

		b->next = (b->next + 1) % b->pool.count;
		frame->sequence = b->sequence++;
		frame->number = first + i;
		frame->timestamp = b->e->detector->timestamp(b->e->detector_state, first + i);
		frame->flags = SL_FRAME_COMPLETE | (dark ? SL_FRAME_DARK : 0);
		frame->verdict[0] = (struct sl_verdict){.number = first + i, .keep = !dark};
		err = fill_views(b, frame);
		if (err)
			return err;
		b->line[i] = frame;
	}
	return 0;
}

int bench_experiment_process(struct bench_experiment *b, struct sl_batch *batch)
{
	const struct sl_unit *unit = b->e->unit;
	struct sl_batch *back;
	int err = unit->submit(b->e->unit_state, batch);

	if (err)
		return err;
	while (!unit->reap(b->e->unit_state, &back))
		if (!unit->work(b->e->unit_state, 0))
			return -EIO; /* the only worker finds nothing, and nothing is done */
	return back->status;
}

uint64_t bench_experiment_frame_bytes(const struct bench_experiment *b)
{
	return b->geometry.modules * b->geometry.module_bytes;
}
