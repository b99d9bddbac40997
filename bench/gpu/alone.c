/* alone.c - what a kernel of a ring takes for an event when nothing has to be waited for:
 * events, words and completions are in the device's memory, and one group does one after another.
 *
 * The kernel is the one that polls. It is told to stop before it begins, so it ends when it has
 * done what is there; that takes it some 100 looks, beside thousands of events.
 * Everything is the process's own, which ends after this: not all is given back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "bench/gpu/gpu.h"
#include "gpu/ring/tagged.h"
#include "gpu/table.h"

/* FEW: of a run that is only to show that it works. */
enum { MOST_EVENTS = 4096, FEW_EVENTS = 64, RUNS = 400, WARM = 1, WORDS = 16 };
#define FEW_NS 200000000u

struct alone {
	const struct sl_bench_alone *terms;
	struct sl_device *device;
	struct sl_device_queue *queue;
	struct sl_device_kernel *kernel;
	struct sl_device_memory data, result, completion, enable, stop;
	uint32_t events, buffer_bytes, slot_bytes;
	uint32_t (*completions)[4];
	char *results;
};

static int fill(struct alone *a)
{
	const struct sl_bench_alone *t = a->terms;
	const struct sl_platform *p = a->device->platform;
	uint64_t bytes = (uint64_t)a->events * a->buffer_bytes;
	char *data = aligned_alloc(SL_TAGGED_LINE, bytes);
	uint32_t *enable = calloc(a->events, sizeof(*enable)), stop[4] = {1};
	int err = data && enable ? 0 : -ENOMEM;

	for (uint32_t n = 0; n < a->events && !err; n++) {
		sl_tagged_put(data + (uint64_t)n * a->buffer_bytes, a->buffer_bytes,
			      t->event(t->arg, n), t->bytes, n + 1, false);
		enable[n] = n + 1;
	}
	if (!err)
		err = sl_device_table(a->device, a->queue, data, bytes, &a->data);
	if (!err)
		err = sl_device_table(a->device, a->queue, enable, a->events * sizeof(*enable),
				      &a->enable);
	if (!err)
		err = sl_device_table(a->device, a->queue, stop, sizeof(stop), &a->stop);
	if (!err)
		err = p->memory_open(a->device, (uint64_t)a->events * a->slot_bytes, &a->result);
	if (!err)
		err = p->memory_open(a->device, (uint64_t)a->events * WORDS, &a->completion);
	if (!err)
		err = sl_device_finish(a->device, a->queue);
	free(data);
	free(enable);
	return err;
}

/* All of them once; ns, or -errno. */
static int64_t run(struct alone *a)
{
	const struct sl_device_ring_work *work = a->terms->work;
	const struct sl_device_range range = {{1}, a->terms->threads};
	const uint32_t backoff_ns = 0;
	struct sl_device_argument argument[SL_DEVICE_RING_OWN + SL_DEVICE_RING_ARGUMENTS] = {
		SL_ARG_MEMORY(&a->data),   SL_ARG_MEMORY(&a->data),
		SL_ARG_MEMORY(&a->result), SL_ARG_MEMORY(&a->completion),
		SL_ARG_MEMORY(&a->enable), SL_ARG_MEMORY(&a->stop),
		SL_ARG(a->events),	   SL_ARG(a->buffer_bytes),
		SL_ARG(a->slot_bytes),	   SL_ARG(backoff_ns),
	};
	uint64_t begun = sl_clock_ns();
	int err;

	memcpy(argument + SL_DEVICE_RING_OWN, work->argument,
	       work->arguments * sizeof(argument[0]));
	err = a->device->platform->launch(a->queue, a->kernel, &range, argument,
					  SL_DEVICE_RING_OWN + work->arguments);
	if (!err)
		err = sl_device_finish(a->device, a->queue);
	return err ? err : (int64_t)(sl_clock_ns() - begun);
}

/* What came of event n, as the host would take it out of a ring. */
static bool is_right(const struct alone *a, uint32_t n, char *result)
{
	const uint32_t *word = a->completions[n];
	const struct sl_device_ring_completion completion = {
		.event = n,
		.outcome = (enum sl_device_ring_outcome)(word[0] & 0xff),
		.keep = word[0] & SL_DEVICE_RING_KEEP,
		.bytes = word[1],
		.score = word[2],
	};
	const char *slot = a->results + (uint64_t)n * a->slot_bytes;
	uint32_t turn;

	if (word[3] != n + 1 || completion.outcome != SL_DEVICE_RING_GOOD ||
	    completion.bytes > a->terms->result_bytes)
		return false;
	for (uint32_t i = 0; i * SL_DEVICE_RING_CHUNK < completion.bytes; i++, slot += WORDS) {
		memcpy(&turn, slot + SL_DEVICE_RING_CHUNK, sizeof(turn));
		if (turn != n + 1)
			return false;
		memcpy(result + i * SL_DEVICE_RING_CHUNK, slot, SL_DEVICE_RING_CHUNK);
	}
	return a->terms->is_right(a->terms->arg, n, &completion, result);
}

/* Once more, for completions and results that are not those of a run before. */
static int compare(struct alone *a)
{
	const struct sl_platform *p = a->device->platform;
	uint64_t completions = (uint64_t)a->events * WORDS;
	uint64_t results = (uint64_t)a->events * a->slot_bytes;
	char *result = calloc(1, a->slot_bytes);
	int err = result ? p->zero(a->queue, &a->completion, 0, completions) : -ENOMEM;
	int64_t took;

	if (!err)
		err = p->zero(a->queue, &a->result, 0, results);
	took = err ? err : run(a);
	err = took < 0 ? (int)took
		       : p->read(a->queue, a->completions, &a->completion, 0, completions);
	if (!err)
		err = p->read(a->queue, a->results, &a->result, 0, results);
	if (!err)
		err = sl_device_finish(a->device, a->queue);
	for (uint32_t n = 0; n < a->events && !err; n++)
		if (!is_right(a, n, result)) {
			sl_error("event %u came back as something else: outcome %#x, score %u", n,
				 a->completions[n][0], a->completions[n][2]);
			err = -EBADMSG;
		}
	free(result);
	return err;
}

static int measure(struct alone *a, uint64_t most_ns, struct sl_bench_sample *sample)
{
	uint64_t begun = sl_clock_ns();
	uint32_t ns[RUNS];
	size_t kept = 0;

	for (unsigned i = 0; kept < RUNS && (!kept || sl_clock_ns() - begun < most_ns); i++) {
		int64_t took = run(a);

		if (took < 0)
			return (int)took;
		if (i >= WARM)
			ns[kept++] = (uint32_t)((uint64_t)took / a->events);
	}
	sl_bench_quantiles(ns, kept, sample->quantile_us);
	sample->count = kept * a->events;
	sample->bytes = sample->count * a->terms->bytes;
	sample->frame_bytes = a->terms->bytes;
	sample->GB_per_s = (double)sample->bytes / (double)(sl_clock_ns() - begun);
	return 0;
}

int sl_bench_gpu_alone(struct sl_device *device, const struct sl_bench_alone *terms,
		       uint64_t most_ns, struct sl_bench_sample *sample)
{
	struct alone a = {.terms = terms, .device = device};
	struct sl_device_program *program;
	int err;

	a.events = most_ns < FEW_NS ? FEW_EVENTS : MOST_EVENTS;
	while (a.events > terms->events)
		a.events /= 2;
	a.buffer_bytes = sl_tagged_buffer_bytes(terms->bytes);
	a.slot_bytes = WORDS * sl_tagged_chunks(terms->result_bytes);
	a.completions = calloc(a.events, sizeof(*a.completions));
	a.results = calloc(a.events, a.slot_bytes);
	err = a.completions && a.results ? 0 : -ENOMEM;
	if (!err)
		err = device->platform->queue_open(device, &a.queue);
	if (!err)
		err = fill(&a);
	if (!err)
		err = sl_device_kernels(device, terms->work->kernels, &terms->work->kernel, 1,
					&program, &a.kernel);
	if (!err)
		err = measure(&a, most_ns, sample);
	if (!err)
		err = compare(&a);
	free(a.completions);
	free(a.results);
	return err;
}
