/* poll.c - trigger `persistent`: frames go through a ring that one kernel polls, not through batch
 * slots.
 *
 * Model: a frame is an event of the ring, written where the device reads it; its answer is copied
 * out of the ring when its completion is there. No call of the driver is between the two. The ring
 * has room for all batches that may be under way, so none waits for another, and nothing is
 * overrun: a buffer is written when the completion before was taken.
 * A kernel that does not answer writes into the ring alone, never into frames. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "gpu/dialect/batch.h"
#include "gpu/ring/ring.h"
#include "gpu/table.h"
#include "unit/gpu/gpu.h"

enum { LINE = 64 };
#define MOST_BYTES (1ull << 30) /* of an event of a ring, and of a result */

struct sl_poll {
	struct sl_device_ring ring;
	const struct sl_batch_slots *slots;
	struct sl_gpu_poll terms;
	unsigned first, outputs; /* results */
	uint32_t event_bytes;
	uint64_t published; /* frames */
	uint32_t done;	    /* of the batch that is waited for */
};

static uint64_t up(uint64_t bytes)
{
	return (bytes + LINE - 1) / LINE * LINE;
}

/* The only stage that the device has, and how many it has. */
static const struct sl_chain_stage *polled_stage(const struct sl_chain *chain, unsigned *index,
						 unsigned *gpu_stages)
{
	const struct sl_chain_stage *found = NULL;

	*gpu_stages = 0;
	for (unsigned s = 0; s < chain->stages; s++)
		if (chain->stage[s].ops->gpu) {
			++*gpu_stages;
			*index = s;
			found = &chain->stage[s];
		}
	return found;
}

int sl_poll_check(const struct sl_platform *platform, const struct sl_chain *chain)
{
	unsigned index, gpu_stages;
	const struct sl_chain_stage *stage = polled_stage(chain, &index, &gpu_stages);

	if (gpu_stages == 1 && stage->ops->gpu->poll && stage->input == SL_CHAIN_RAW &&
	    stage->terms.outputs <= SL_GPU_POLL)
		return 0;
	sl_error("%s: unit.trigger: persistent is for experiments with one stage on the device, "
		 "which reads raw events and has a kernel that polls: rings",
		 platform->name);
	return -EINVAL;
}

/* Verdicts, rows, results, each on a cache line. */
static uint64_t lay_out(struct sl_poll *p, const struct sl_chain_stage *stage)
{
	uint64_t at = up(p->slots->items * sizeof(struct sl_kernel_verdict));

	p->first = (unsigned)stage->terms.result;
	p->outputs = stage->terms.outputs;
	p->terms.rows_at = (uint32_t)at;
	at += up(SL_GPU_POLL * sizeof(uint32_t));
	for (unsigned i = 0; i < p->outputs && i < SL_GPU_POLL; i++) {
		p->terms.result_at[i] = (uint32_t)at;
		at += up(sl_shape_bytes(&stage->terms.output[i]));
	}
	return at;
}

static uint32_t power_of_two(uint64_t least)
{
	uint32_t n = 1;

	while (n < least)
		n *= 2;
	return n;
}

/* All batches that may be under way; and no fewer than groups, as rings have it. */
static uint32_t buffers_for(const struct sl_batch_slots *l, unsigned batches, uint32_t groups)
{
	uint64_t frames = (uint64_t)batches * l->chain->batch_frames;

	return power_of_two(frames > groups ? frames : groups);
}

static int open_ring(struct sl_poll *p, uint64_t result_bytes, const struct sl_poll_options *o)
{
	struct sl_device_ring_terms terms = {
		.buffers = p->terms.buffers,
		.event_bytes = p->event_bytes,
		.result_bytes = (uint32_t)result_bytes,
		.groups = p->terms.groups,
		.threads = p->terms.threads,
		.backoff_ns = o->backoff_ns,
		.timeout_ns = o->timeout_ns,
	};
	struct sl_device_ring_work work = {
		.kernels = p->terms.kernels,
		.kernel = p->terms.kernel,
		.arguments = p->terms.arguments,
	};

	memcpy(work.argument, p->terms.argument, sizeof(p->terms.argument));
	return sl_device_ring_open(&p->ring, p->slots->device, &terms, &work);
}

/* How large everything is, and how many groups there are. */
static int choose_terms(struct sl_poll *p, const struct sl_chain_stage *stage, unsigned batches,
			const struct sl_poll_options *o, uint64_t *result_bytes)
{
	const struct sl_batch_slots *l = p->slots;
	uint64_t event_bytes = sizeof(struct sl_kernel_frame) + l->modules * l->module_bytes;
	struct sl_device_info info;
	unsigned processors;

	l->platform->describe(l->device, &info);
	if (!info.polls) {
		sl_error("%s: unit.trigger: persistent: kernels of this device do not see what the "
			 "host writes while they run",
			 l->platform->name);
		return -ENOTSUP;
	}
	*result_bytes = lay_out(p, stage);
	p->terms.answer_bytes = (uint32_t)*result_bytes;
	if (event_bytes > MOST_BYTES || *result_bytes > MOST_BYTES) {
		sl_error("%s: unit.trigger: persistent is for frames of up to 1 GiB, and results "
			 "of as much",
			 l->platform->name);
		return -EINVAL;
	}
	/* A CPU has other things to do, too. */
	processors = info.is_host ? (info.processors + 1) / 2 : info.processors;
	p->terms.groups = o->groups < processors ? o->groups : processors;
	p->terms.queue = l->in;
	p->terms.buffers = buffers_for(l, batches, p->terms.groups);
	p->event_bytes = (uint32_t)event_bytes;
	return 0;
}

int sl_poll_open(struct sl_poll **poll, const struct sl_batch_slots *l, unsigned batches,
		 const struct sl_poll_options *o)
{
	struct sl_poll *p = calloc(1, sizeof(*p));
	const struct sl_chain_stage *stage;
	uint64_t result_bytes;
	unsigned s = 0, gpu_stages;
	int err;

	*poll = p;
	if (!p)
		return -ENOMEM;
	p->slots = l;
	stage = polled_stage(l->chain, &s, &gpu_stages);
	err = choose_terms(p, stage, batches, o, &result_bytes);
	if (err)
		return err;
	err = stage->ops->gpu->poll(l->gpu[s], &p->terms);
	if (!err)
		err = sl_device_finish(l->device, l->in); /* before the kernel begins */
	if (!err)
		err = open_ring(p, result_bytes, o);
	if (err)
		sl_batch_slots_log(l, "a ring of frames", err);
	else
		sl_info("%s: %u groups of %u threads poll", l->platform->name, p->terms.groups,
			p->terms.threads);
	return err;
}

void sl_poll_stop(struct sl_poll *p)
{
	if (p && p->ring.stop.host)
		sl_device_ring_stop(&p->ring);
}

int sl_poll_end(struct sl_poll *p, uint64_t timeout_ns)
{
	if (!p || !p->ring.platform)
		return 0;
	p->ring.terms.timeout_ns = timeout_ns;
	return sl_device_ring_end(&p->ring);
}

void sl_poll_close(struct sl_poll *p)
{
	if (p)
		sl_device_ring_close(&p->ring);
	free(p);
}

/* ---- a batch ---- */

bool sl_poll_has_room(const struct sl_poll *p, uint32_t frames)
{
	/* They are released in order: when the last one is free, all before are. */
	return sl_device_ring_may_write(&p->ring, p->published + frames - 1);
}

static void copy_module(const struct sl_batch_slots *l, const struct sl_array *pixels, char *to)
{
	uint64_t pitch = pixels->pitch ? pixels->pitch : l->row_bytes;

	if (pitch == l->row_bytes) {
		memcpy(to, pixels->host, l->module_bytes);
		return;
	}
	for (uint64_t row = 0; row < l->rows; row++)
		memcpy(to + row * l->row_bytes, (const char *)pixels->host + row * pitch,
		       l->row_bytes);
}

int sl_poll_begin(struct sl_poll *p, const struct sl_batch *batch)
{
	const struct sl_batch_slots *l = p->slots;
	int err = 0;

	for (uint32_t f = 0; f < batch->frames && !err; f++) {
		const struct sl_frame *frame = batch->frame[f];
		char *at = sl_device_ring_begin(&p->ring, p->published);

		*(struct sl_kernel_frame *)(void *)at = (struct sl_kernel_frame){
			.missing = frame->missing,
			.flags = frame->flags | (l->seen ? SL_KERNEL_SEEN : 0),
			.items = frame->items,
		};
		at += sizeof(struct sl_kernel_frame);
		for (uint32_t m = 0; m < l->modules; m++, at += l->module_bytes)
			if (!sl_frame_misses(frame, m))
				copy_module(l, &frame->view[m].pixels, at);
		err = sl_device_ring_commit(&p->ring, p->published, p->event_bytes);
		p->published += !err;
	}
	return err;
}

static int take_answer(const struct sl_poll *p, struct sl_frame *frame)
{
	const char *slot = sl_device_ring_slot(&p->ring);
	const struct sl_kernel_verdict *verdict = (const void *)slot;
	const uint32_t *rows = (const void *)(slot + p->terms.rows_at);

	for (uint32_t i = 0; i < frame->items; i++) {
		frame->verdict[i].score = verdict[i].score;
		frame->verdict[i].keep = verdict[i].keep;
		frame->verdict[i].reason = verdict[i].reason;
	}
	for (unsigned i = 0; i < p->outputs; i++) {
		struct sl_array *result = &frame->result[p->first + i];
		uint64_t bytes = sl_shape_bytes(&result->shape);

		if (!sl_device_returns(p->slots, frame)) {
			result->rows = 0;
			continue;
		}
		if (result->shape.ragged) {
			if (rows[i] > result->shape.dim[0])
				return -EPROTO;
			result->rows = rows[i];
			bytes = bytes / result->shape.dim[0] * rows[i];
		}
		memcpy(result->host, slot + p->terms.result_at[i], bytes);
	}
	return 0;
}

int sl_poll_take(struct sl_poll *p, struct sl_batch *batch)
{
	while (p->done < batch->frames) {
		struct sl_device_ring_completion completion;
		int got = sl_device_ring_take(&p->ring, &completion), err;

		if (got != 1)
			return got;
		err = completion.outcome == SL_DEVICE_RING_GOOD
			      ? take_answer(p, batch->frame[p->done])
			      : -EPROTO;
		sl_device_ring_release(&p->ring);
		if (err)
			return err;
		p->done++;
	}
	p->done = 0;
	return 1;
}

void sl_poll_figures(const struct sl_poll *p, sl_unit_figure *figure, void *arg)
{
	struct sl_device_ring_ledger ledger = sl_device_ring_ledger(&p->ring);

	figure(arg, "device_ring_frames_published", ledger.published, 0);
	figure(arg, "device_ring_frames_good", ledger.good, 0);
	figure(arg, "device_ring_frames_lapped", ledger.lapped, 1);
	figure(arg, "device_ring_frames_wrong", ledger.wrong, 1);
	/* Whoever did them instead, or did not, is in the ledger of the run. */
	figure(arg, "device_ring_frames_unanswered", ledger.unanswered, 0);
}
