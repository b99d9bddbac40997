/* cross_check.c - what the device made is made again by the CPU, and compared, for some of the
 * frames.
 *
 * Exact: integers must be the same; floats may differ by what the GPU side states. A frame that
 *        both
 * reject has no results to compare, unless it may still be kept. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "unit/cpu/cpu.h"
#include "unit/gpu/gpu.h"

static uint64_t result_bytes(const struct sl_batch_slots *l)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < l->results; i++)
		bytes += (sl_shape_bytes(&l->shape[i]) + 63) / 64 * 64;
	return bytes;
}

/* Results of its own, one behind the other. */
static void init_view(struct sl_cross_check *x, const struct sl_batch_slots *l, uint32_t f)
{
	char *at = (char *)x->results + f * result_bytes(l);

	x->frame[f].verdict = x->verdict + (size_t)f * l->items;
	x->batch.frame[f] = &x->frame[f];
	for (unsigned i = 0; i < l->results; i++) {
		x->frame[f].result[i] = (struct sl_array){.shape = l->shape[i], .host = at};
		at += (sl_shape_bytes(&l->shape[i]) + 63) / 64 * 64;
	}
}

int sl_cross_check_open(struct sl_cross_check *x, const struct sl_batch_slots *l)
{
	uint32_t frames = l->chain->batch_frames;
	int err = sl_host_open(&x->host, l->chain, SL_HOST_GPU_STAGES);

	if (err)
		return err;
	/* What nobody reads is compared all the same. */
	x->frame = calloc(frames, sizeof(*x->frame));
	x->batch.frame = calloc(frames, sizeof(*x->batch.frame));
	x->verdict = calloc((size_t)frames * l->items, sizeof(*x->verdict));
	x->results = aligned_alloc(64, frames * result_bytes(l) + 64);
	if (!x->frame || !x->batch.frame || !x->verdict || !x->results) {
		sl_error("unit.cross_check: no memory");
		return -ENOMEM;
	}
	x->batch.capacity = frames;
	for (uint32_t f = 0; f < frames; f++)
		init_view(x, l, f);
	return 0;
}

void sl_cross_check_close(struct sl_cross_check *x)
{
	sl_host_close(&x->host);
	free(x->frame);
	free(x->batch.frame);
	free(x->verdict);
	free(x->results);
	*x = (struct sl_cross_check){0};
}

/* The pixels and what is known of them; results stay the copy's. */
static void borrow(struct sl_cross_check *x, const struct sl_batch_slots *l,
		   const struct sl_batch *batch)
{
	x->batch.frames = batch->frames;
	x->batch.deadline_ns = batch->deadline_ns;
	for (uint32_t f = 0; f < batch->frames; f++) {
		struct sl_frame *to = &x->frame[f];
		const struct sl_frame *from = batch->frame[f];

		to->sequence = from->sequence;
		to->number = from->number;
		to->timestamp = from->timestamp;
		to->flags = from->flags;
		to->views = from->views;
		to->results = l->results;
		to->items = from->items;
		to->missing = from->missing;
		to->view = from->view;
	}
}

static bool is_near(double a, double b, double bound)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	return a == b || fabs(a - b) <= bound * fmax(fabs(a), fabs(b));
}

/* The first element that differs, or `elements`. */
static uint64_t compare(const struct sl_array *a, const struct sl_array *b, uint64_t elements,
			double bound)
{
	size_t bytes = sl_dtype_bytes(a->shape.dtype);

	if (!memcmp(a->host, b->host, elements * bytes))
		return elements;
	for (uint64_t i = 0; i < elements; i++) {
		const char *p = (const char *)a->host + i * bytes;
		const char *q = (const char *)b->host + i * bytes;
		bool same = !memcmp(p, q, bytes);

		if (a->shape.dtype == SL_F32)
			same = is_near(*(const float *)p, *(const float *)q, bound);
		else if (a->shape.dtype == SL_F64)
			same = is_near(*(const double *)p, *(const double *)q, bound);
		if (!same)
			return i;
	}
	return elements;
}

/* Each kind is named once. */
static void tell(struct sl_cross_check *x, const struct sl_batch_slots *l,
		 const struct sl_frame *frame, const char *what, uint64_t at, uint64_t *unlike)
{
	x->mismatches++;
	if ((*unlike)++)
		return;
	sl_error("%s: frame %" PRIu64 ": %s differs from the CPU's, first at element %" PRIu64
		 "; later ones are counted only",
		 l->platform->name, frame->number, what, at);
}

static bool same_verdicts(const struct sl_frame *a, const struct sl_frame *b)
{
	for (uint32_t i = 0; i < a->items; i++)
		if (a->verdict[i].keep != b->verdict[i].keep ||
		    a->verdict[i].reason != b->verdict[i].reason ||
		    memcmp(&a->verdict[i].score, &b->verdict[i].score, sizeof(float)))
			return false;
	return true;
}

static void compare_frame(struct sl_cross_check *x, const struct sl_batch_slots *l,
			  const struct sl_frame *ours, const struct sl_frame *cpu)
{
	x->frames++;
	if (!same_verdicts(ours, cpu)) {
		tell(x, l, ours, "the verdict", 0, &x->unlike_verdicts);
		return;
	}
	for (unsigned s = 0; sl_device_returns(l, ours) && s < x->host.chain.stages; s++) {
		const struct sl_chain_stage *stage = &x->host.chain.stage[s];

		for (uint32_t i = 0; i < stage->terms.outputs; i++) {
			const struct sl_array *a = &ours->result[stage->terms.result + (int)i];
			const struct sl_array *b = &cpu->result[stage->terms.result + (int)i];
			uint64_t elements = sl_shape_elements(&a->shape), at;
			uint64_t *unlike = &x->unlike[stage->terms.result + (int)i];

			if (!sl_device_returns_result(l, ours, (unsigned)stage->terms.result + i))
				continue; /* it stayed on the device */
			if (a->shape.ragged && a->rows != b->rows) {
				tell(x, l, ours, a->shape.name,
				     a->rows < b->rows ? a->rows : b->rows, unlike);
				return;
			}
			if (a->shape.ragged)
				elements = elements / a->shape.dim[0] * a->rows;
			at = compare(a, b, elements, stage->ops->gpu->float_bound);
			if (at < elements) {
				tell(x, l, ours, a->shape.name, at, unlike);
				return;
			}
		}
	}
}

void sl_cross_check_figures(const struct sl_cross_check *x, sl_unit_figure *figure, void *arg)
{
	char name[SL_NAME_BYTES + 32];

	if (x->unlike_verdicts)
		figure(arg, "frames_unlike_the_cpu_in_verdicts", x->unlike_verdicts, 1);
	for (unsigned i = 0; i < SL_RESULTS && x->frame; i++) {
		snprintf(name, sizeof(name), "frames_unlike_the_cpu_in_%s",
			 x->frame[0].result[i].shape.name);
		if (x->unlike[i])
			figure(arg, name, x->unlike[i], 1);
	}
}

int sl_cross_check_begin(struct sl_cross_check *x, const struct sl_batch_slots *l,
			 const struct sl_batch *batch)
{
	borrow(x, l, batch);
	sl_verdicts_reset(&x->batch);
	return sl_host_run(&x->host, &x->batch);
}

void sl_cross_check_compare(struct sl_cross_check *x, const struct sl_batch_slots *l,
			    const struct sl_batch *batch)
{
	for (uint32_t f = 0; f < batch->frames; f++)
		compare_frame(x, l, batch->frame[f], &x->frame[f]);
}
